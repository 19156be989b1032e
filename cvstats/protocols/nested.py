"""Nested cross-validation from saved inner predictions."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, listened, show
from cvstats._results import call_text, names_of, result
from cvstats.cube.align import aligned
from cvstats.cube.arrays import check_cube, map_batches
from cvstats.cube.coords import folds_of
from cvstats.metrics import Metric, bound_metric, score
from cvstats.metrics.scoring import REASONS, fold_scores, repeat_averages
from cvstats.select import select_best

from .common import claimed, final_choice, fold_names, said, warn_once
from .registry import needs_folds, protocol
from .tuning import combined_score, eligible


@protocol(
    "ncv",
    "Nested CV",
    "inner predictions of each training set",
    "the outer fold",
    "Nearly unbiased, but noisy.",
    applies=needs_folds,
)
@protocol("cv2", "CV2", "training predictions of each training set", "the outer fold", applies=needs_folds)
@protocol("ncv_criterion", "Nested choice", "a criterion of each training set", "the outer fold", applies=needs_folds)
def ncv(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    inner: xr.DataArray | None = None,
    criterion: xr.DataArray | None = None,
    criterion_direction: str = "minimize",
    inner_kind: str = "cv",
    average: str = "fold",
    undefined: str = "nan",
) -> xr.Dataset:
    """Return the nested cross-validation estimate: each outer fold judges what its own training set chose.

    In every outer fold the configuration is chosen on predictions made inside that fold's training set, and judged
    on the fold itself. Nearly unbiased for the whole procedure "tune, then fit", at the price of training the inner
    models; its spread is larger than that of `bbc`.

    Parameters
    ----------
    cube : DataArray
        Outer predictions, with folds.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    inner : DataArray, optional
        Predictions over ``sample, configuration, outer_fold[, repeat][, inner_repeat]``, NaN on the samples of the
        outer fold itself. With a coordinate ``fold(sample, outer_fold[, repeat][, inner_repeat])`` the choice is by
        the average over inner folds, otherwise pooled. Samples of the outer fold carry any fold id; it is not read.
    criterion : DataArray, optional
        Instead of `inner`, numbers over ``configuration, outer_fold[, repeat]`` that choose in each training set and
        were computed elsewhere: PRESS, evidence, an error with a penalty. The method is then labelled
        ``"ncv_criterion"``.
    criterion_direction : {"minimize", "maximize"}
        Which values of `criterion` are better.
    inner_kind : {"cv", "training"}
        ``"cv"``: inner cross-validation ([CV3] of Winderbaum and Koch). ``"training"``: predictions of each outer
        fold's model on its own training samples ([CV2]), which is not honest; the method is then labelled ``"cv2"``.
    average : {"pooled", "fold"}
        ``"fold"``: mean over outer folds of the fold's score. ``"pooled"``: one score over all samples, each
        predicted by the configuration its fold chose.
    undefined : {"nan", "skip"}
        What a fold does in which the metric is undefined (AUC in a fold of one class), outer or inner: it makes what is
        averaged over folds NaN, with one warning, or is left out; ``n_folds`` then counts the outer folds.

    Returns
    -------
    xarray.Dataset
        ``estimate``, ``fold_estimate`` and ``selected_fold`` over ``outer_fold[, repeat]``, ``win_rate`` (share of
        outer folds that chose a configuration), ``naive``, ``optimism``, ``selected`` (the winner on all data). An
        outer fold in which the metric is undefined for all (inner folds that lack a class) chooses nothing: the
        estimate is NaN, with one warning that names the folds.

    Raises
    ------
    InputError
        `inner` leaks (it has predictions for the samples of the outer fold itself), or does not match the cube.

    References
    ----------
    Varma, Simon (2006), doi:10.1186/1471-2105-7-91;
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, Algorithm 3.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube, inner = cs.simulate_cube(60, 20, inner=True, rng=1)
    >>> out = cs.ncv(cube, "accuracy", inner=inner)
    >>> out.selected_fold.dims
    ('outer_fold',)
    """
    check_cube(cube)
    check_option(inner_kind, ("cv", "training"), "inner_kind")
    check_option(average, ("pooled", "fold"), "average")
    check_option(undefined, ("nan", "skip"), "undefined")
    check_option(criterion_direction, ("minimize", "maximize"), "criterion_direction")
    if (inner is None) == (criterion is None):
        raise InputError("give `inner` (predictions) or `criterion` (numbers): one of them chooses in a training set.")
    folds_of(cube, "ncv")
    if "partner" in cube.dims:
        raise InputError(
            "ncv is for ordinary folds: in a separate-sampling cube (dimension 'partner') every pair of folds would "
            "need inner predictions of its own. winner() and bbc() choose from the cube alone."
        )
    bound = bound_metric(metric, cube)
    chooser = check_inner(cube, inner) if inner is not None else _check_criterion(cube, criterion)
    method = "ncv_criterion" if inner is None else "ncv" if inner_kind == "cv" else "cv2"
    asked = _Asked(bound, average, undefined, bound.direction if inner is not None else criterion_direction)
    notes: list[str] = []

    out = listened(notes, lambda: map_batches(lambda part, own: _one(part, own, asked, notes), cube, chooser))
    warn_once("ncv", notes)
    kind = {"inner_kind": inner_kind} if criterion is None else {"criterion_direction": criterion_direction}
    call = call_text("ncv", metric=bound.name, **kind, average=average, undefined=said(undefined))
    return result(out, method=method, metric=bound.name, call=call, cube=cube)


class _Asked(NamedTuple):
    """What judges, how folds are averaged, what an undefined one does, and which way training sets choose."""

    metric: Metric
    average: str
    undefined: str
    direction: str


def _one(cube: xr.DataArray, chooser: xr.DataArray, asked: _Asked, notes: list[str]) -> xr.Dataset:
    """Run nested cross-validation on a cube without batch dims; predictions or numbers choose."""
    metric, average, skip = asked.metric, asked.average, asked.undefined == "skip"
    repeats = cube.sizes.get("repeat", 1)
    folds = chooser["outer_fold"].values
    by_fold = fold_scores(cube, metric, asked.undefined)
    run = np.isin(folds, by_fold["fold"].values)  # a fold that nobody predicted is left out
    chosen = np.empty((len(folds), repeats), int)
    for repeat in range(repeats):
        inside = chooser.isel(repeat=repeat, drop=True) if "repeat" in chooser.dims else chooser
        fold = cube["fold"].isel(repeat=repeat) if "repeat" in cube["fold"].dims else cube["fold"]
        held = fold.values[:, None] == folds
        warned: list[str] = []
        if "sample" in inside.dims:
            scores = listened(warned, partial(_inner_scores, inside, asked, held))
            scores = np.where(eligible(inside).transpose("outer_fold", "configuration"), scores, np.nan)
        else:
            scores = inside.transpose("outer_fold", "configuration").values
        nothing = np.isnan(scores).all(axis=1)
        chosen[:, repeat] = np.where(nothing, -1, select_best(scores, direction=asked.direction))
        lost = nothing & run
        where = f" of repeat {show(cube['repeat'].values[[repeat]])}" if repeats > 1 else ""
        notes.extend([_undecided(inside, metric, held, lost) + where] if lost.any() else warned)
    values = by_fold.reindex(fold=folds).transpose("configuration", "fold", ...).values.reshape(-1, *chosen.shape)
    each = np.where(chosen >= 0, np.take_along_axis(values, np.maximum(chosen, 0)[None], axis=0)[0], np.nan)
    used = run[:, None] & ~(skip & np.isnan(values).all(axis=0))  # (fold, repeat)
    if average == "fold":
        means = [column[rows].mean() for column, rows in zip(each.T, used.T, strict=True) if rows.any()]
        estimate = float(np.mean(means)) if means else np.nan
    else:
        estimate = combined_score(cube, metric, folds, chosen)
    overall = score(cube, metric, average=average, undefined=asked.undefined if average == "fold" else "nan")
    names, several = cube["configuration"].values, "repeat" in cube.dims
    table = {"fold_estimate": each, "selected_fold": names_of(names, chosen)}
    variables = {
        **claimed(metric, estimate, final_choice(cube, metric, scores=overall)),
        **{name: (("outer_fold", "repeat"), v) if several else ("outer_fold", v[:, 0]) for name, v in table.items()},
        "win_rate": ("configuration", np.bincount(chosen[chosen >= 0], minlength=len(names)) / chosen.size),
        **({"n_folds": int(used.sum())} if skip and average == "fold" else {}),
    }
    coords = {"outer_fold": folds} | {
        dim: cube.coords[dim].variable for dim in ("configuration", "repeat") if dim in cube.coords
    }
    return xr.Dataset(variables, coords)


def _inside(inner: xr.DataArray, held: np.ndarray, number: int) -> xr.DataArray:
    """Return the predictions inside one training set; `held` (sample, outer_fold) are left out."""
    part = inner.isel(outer_fold=number, sample=~held[:, number], drop=True)
    return part.rename(inner_repeat="repeat") if "inner_repeat" in part.dims else part


def _inner_scores(inner: xr.DataArray, asked: _Asked, held: np.ndarray) -> np.ndarray:
    """Return the scores (outer_fold, configuration) of inner predictions, by inner fold where these are known."""
    metric, undefined = asked.metric, asked.undefined
    if "fold" not in inner.coords:
        return np.asarray(score(inner, metric).transpose("outer_fold", "configuration").values)
    fold = inner["fold"].where(
        ~xr.DataArray(held, dims=("sample", "outer_fold")), "" if inner["fold"].dtype.kind in "UOT" else -1
    )
    table = fold.transpose("outer_fold", "sample", ...).values
    counts = {len(np.unique(ids[~out])) for ids, out in zip(table, held.T, strict=True)}
    if "inner_repeat" not in inner.dims and len(counts) == 1:  # all at once, as repeats of their own, which is faster
        at_once = inner.drop_vars(["repeat", "outer_fold"], errors="ignore").assign_coords(fold=fold.variable)
        averages = repeat_averages(at_once.rename(outer_fold="repeat"), metric, undefined)
        return np.asarray(averages.transpose("repeat", "configuration").values)
    parts = (_inside(inner, held, number) for number in range(held.shape[1]))
    return np.stack([score(part, metric, average="fold", undefined=undefined).values for part in parts])


def _undecided(inner: xr.DataArray, metric: Metric, held: np.ndarray, lost: np.ndarray) -> str:
    """Say in which outer folds nothing can be chosen because the metric is undefined, and in which inner folds."""
    named = []
    if "sample" not in inner.dims:
        return f"NaN, because `criterion` is missing for outer fold {show(inner['outer_fold'].values[lost])}"
    for number in np.flatnonzero(lost).tolist():
        name = f"outer fold {show(inner['outer_fold'].values[[number]])}"
        if "fold" in inner.coords:
            by_fold = listened([], partial(fold_scores, _inside(inner, held, number), metric))
            bad = by_fold.isnull().any([dim for dim in by_fold.dims if dim != "fold"])
            where = show(by_fold["fold"].values[bad.values])
            name += f" (inner fold {where})" if where else " (no inner predictions)"
        named.append(name)
    reason = REASONS.get(metric.requires, "is undefined there")
    return f"NaN, because {metric.name} {reason} and nothing can be chosen in {', '.join(named)}"


def labelled_like(cube: xr.DataArray, other: xr.DataArray, argument: str) -> xr.DataArray:
    """Return other predictions of the cube's samples aligned with it and carrying its labels."""
    names = ("label", "kind", "positive", "threshold", "classes", "weight", "event")
    labels = {name: cube.coords[name].variable for name in names if name in cube.coords}
    return aligned(other, cube, argument).assign_coords(labels)


def check_inner(cube: xr.DataArray, inner: xr.DataArray, argument: str = "inner") -> xr.DataArray:
    """Return predictions made inside training sets, aligned with the cube and carrying its labels.

    Raise when they leak or lack outer folds.
    """
    if not isinstance(inner, xr.DataArray) or not {"sample", "configuration", "outer_fold"} <= set(inner.dims):
        found = show(inner.dims) if isinstance(inner, xr.DataArray) else type(inner).__name__
        raise InputError(f"`{argument}` must be a DataArray over 'sample', 'configuration', 'outer_fold'; got {found}.")
    held = folds_of(cube, f"`{argument}`")
    names = inner["outer_fold"].values
    inner = labelled_like(cube, inner, argument).assign_coords(outer_fold=names)
    _check_outer(held, inner, argument)
    own = xr.DataArray(held.variable) == xr.DataArray(names, dims="outer_fold")
    others = [dim for dim in own.dims if dim not in ("sample", "outer_fold")]
    everything = own.all("sample").any(others)
    if bool(everything.any()):
        raise InputError(
            f"outer fold {show(names[everything.values][:1])} holds every sample, so that nothing is left to choose on."
        )
    others = [dim for dim in inner.dims if dim not in ("outer_fold", "repeat", *held.dims)]
    leak = xr.DataArray(inner.notnull().any(others).variable) & own
    leak = leak.any([dim for dim in leak.dims if dim not in ("sample", "outer_fold")]).transpose("outer_fold", "sample")
    if bool(leak.any()):
        fold = int(leak.any("sample").values.argmax())
        raise InputError(
            f"`{argument}` leaks: outer fold {show(names[[fold]])} has inner predictions for its own held-out samples "
            f"{show(cube['sample'].values[leak[fold].values])}; they must be NaN there."
        )
    return inner


def _check_criterion(cube: xr.DataArray, criterion: xr.DataArray | None) -> xr.DataArray:
    """Return what chooses instead of inner predictions, in the order of the cube."""
    if not isinstance(criterion, xr.DataArray) or not {"configuration", "outer_fold"} <= set(criterion.dims):
        found = show(criterion.dims) if isinstance(criterion, xr.DataArray) else type(criterion).__name__
        raise InputError(
            f"`criterion` must be a DataArray over 'configuration', 'outer_fold'[, 'repeat']; got {found}."
        )
    dims = [dim for dim in criterion.dims if dim != "outer_fold"]
    extra = [dim for dim in dims if dim not in cube.dims or dim in ("sample", "label_class")]
    if extra:
        raise InputError(f"`criterion` has the dimension {show(extra[:1])}, which the cube's configurations have not.")
    criterion = aligned(criterion, cube, "criterion", dims)
    _check_outer(cube["fold"], criterion, "criterion")
    return criterion.astype(float)


def _check_outer(held: xr.DataArray, part: xr.DataArray, argument: str) -> None:
    """Raise unless what chooses in training sets has the cube's outer folds, and its repeats."""
    names = part["outer_fold"].values
    known = set(fold_names(held).tolist())
    if any(set(fold_names(held.isel(repeat=at)).tolist()) != known for at in range(held.sizes.get("repeat", 0))):
        raise InputError(
            f"`{argument}` needs folds with the same names in every repeat, so that `outer_fold` says which was left "
            "out; number the folds of each repeat from 0."
        )
    missing, extra = known - set(names.tolist()), set(names.tolist()) - known
    if missing or extra:
        raise InputError(
            f"`{argument}` and the cube have different outer folds: only in the cube: "
            f"{show(sorted(missing)) or 'none'}; only in `{argument}`: {show(sorted(extra)) or 'none'}."
        )
    if held.sizes.get("repeat", 1) > 1 and "repeat" not in part.dims:
        raise InputError(f"`{argument}` has no dimension 'repeat', but the cube's repeats have folds of their own.")
