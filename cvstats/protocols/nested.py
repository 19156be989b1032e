"""Nested cross-validation from saved inner predictions."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, listened, show
from cvstats._results import call_text, names_of, result
from cvstats.cube.align import aligned
from cvstats.cube.arrays import check_cube, complete, folds_of, map_batches
from cvstats.metrics import Metric, bound_metric, score
from cvstats.metrics.scoring import REASONS, fold_scores, repeat_averages
from cvstats.select import select_best

from .bootstrap import warn_once
from .common import final_choice, fold_names, optimism
from .registry import needs_folds, protocol
from .tuning import combined_score, present


@protocol(
    "ncv",
    "Nested CV",
    "inner predictions of each training set",
    "the outer fold",
    "Nearly unbiased, but noisy.",
    applies=needs_folds,
)
@protocol("cv2", "CV2", "training predictions of each training set", "the outer fold", applies=needs_folds)
def ncv(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    inner: xr.DataArray,
    inner_kind: str = "cv",
    average: str = "fold",
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
    inner : DataArray
        Predictions over ``sample, configuration, outer_fold[, repeat][, inner_repeat]``, NaN on the samples of the
        outer fold itself. With a coordinate ``fold(sample, outer_fold[, repeat][, inner_repeat])`` the choice is by
        the average over inner folds, otherwise pooled. Samples of the outer fold carry any fold id; it is not read.
    inner_kind : {"cv", "training"}
        ``"cv"``: inner cross-validation ([CV3] of Winderbaum and Koch). ``"training"``: predictions of each outer
        fold's model on its own training samples ([CV2]), which is not honest; the method is then labelled ``"cv2"``.
    average : {"pooled", "fold"}
        ``"fold"``: mean over outer folds of the fold's score. ``"pooled"``: one score over all samples, each
        predicted by the configuration its fold chose.

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
    folds_of(cube, "ncv")
    bound = bound_metric(metric, cube)
    inner = check_inner(cube, inner)

    notes: list[str] = []

    def one(part: xr.DataArray, own: xr.DataArray | None) -> xr.Dataset:
        assert own is not None
        return _one(part, own, bound, average, notes)

    out = listened(notes, lambda: map_batches(one, cube, inner))
    warn_once("ncv", notes)
    call = call_text("ncv", metric=bound.name, inner_kind=inner_kind, average=average)
    return result(out, method="ncv" if inner_kind == "cv" else "cv2", metric=bound.name, call=call, cube=cube)


def _one(cube: xr.DataArray, inner: xr.DataArray, metric: Metric, average: str, notes: list[str]) -> xr.Dataset:
    """Run nested cross-validation on a cube without batch dims."""
    repeats = cube.sizes.get("repeat", 1)
    folds = inner["outer_fold"].values
    by_fold = fold_scores(cube, metric)
    run = np.isin(folds, by_fold["fold"].values)  # a fold that nobody predicted is left out
    chosen = np.empty((len(folds), repeats), int)
    for repeat in range(repeats):
        inside = inner.isel(repeat=repeat, drop=True) if "repeat" in inner.dims else inner
        fold = cube["fold"].isel(repeat=repeat) if "repeat" in cube["fold"].dims else cube["fold"]
        held = fold.values[:, None] == folds
        warned: list[str] = []
        scores = listened(warned, partial(_inner_scores, inside, metric, held))
        scores = np.where(_eligible(inside), scores, np.nan)
        undefined = np.isnan(scores).all(axis=1)
        chosen[:, repeat] = np.where(undefined, -1, select_best(scores, direction=metric.direction))
        lost = undefined & run
        where = f" of repeat {show(cube['repeat'].values[[repeat]])}" if repeats > 1 else ""
        notes.extend([_undecided(inside, metric, held, lost) + where] if lost.any() else warned)
    values = by_fold.reindex(fold=folds).transpose("configuration", "fold", ...).values.reshape(-1, *chosen.shape)
    each = np.where(chosen >= 0, np.take_along_axis(values, np.maximum(chosen, 0)[None], axis=0)[0], np.nan)
    estimate = float(each[run].mean()) if average == "fold" else combined_score(cube, metric, folds, chosen)
    final = final_choice(cube, metric, average=average)
    names, several = cube["configuration"].values, "repeat" in cube.dims
    table = {"fold_estimate": each, "selected_fold": names_of(names, chosen)}
    variables = {
        "estimate": estimate,
        **{name: (("outer_fold", "repeat"), v) if several else ("outer_fold", v[:, 0]) for name, v in table.items()},
        "win_rate": ("configuration", np.bincount(chosen[chosen >= 0], minlength=len(names)) / chosen.size),
        "naive": final.value,
        "optimism": optimism(metric, final.value, estimate),
        "selected": final.label,
    }
    coords = {"outer_fold": folds} | {
        dim: cube.coords[dim].variable for dim in ("configuration", "repeat") if dim in cube.coords
    }
    return xr.Dataset(variables, coords)


def _inside(inner: xr.DataArray, held: np.ndarray, number: int) -> xr.DataArray:
    """Return the predictions inside one training set; `held` (sample, outer_fold) are left out."""
    part = inner.isel(outer_fold=number, sample=~held[:, number], drop=True)
    return part.rename(inner_repeat="repeat") if "inner_repeat" in part.dims else part


def _inner_scores(inner: xr.DataArray, metric: Metric, held: np.ndarray) -> np.ndarray:
    """Return the scores (outer_fold, configuration) of inner predictions, by inner fold where these are known."""
    if "fold" not in inner.coords:
        return np.asarray(score(inner, metric).transpose("outer_fold", "configuration").values)
    fold = inner["fold"].where(
        ~xr.DataArray(held, dims=("sample", "outer_fold")), "" if inner["fold"].dtype.kind in "UO" else -1
    )
    table = fold.transpose("outer_fold", "sample", ...).values
    counts = {len(np.unique(ids[~out])) for ids, out in zip(table, held.T, strict=True)}
    if "inner_repeat" not in inner.dims and len(counts) == 1:  # all at once, as repeats of their own, which is faster
        at_once = inner.drop_vars(["repeat", "outer_fold"], errors="ignore").assign_coords(fold=fold.variable)
        averages = repeat_averages(at_once.rename(outer_fold="repeat"), metric)
        return np.asarray(averages.transpose("repeat", "configuration").values)
    parts = (_inside(inner, held, number) for number in range(held.shape[1]))
    return np.stack([score(part, metric, average="fold").values for part in parts])


def _undecided(inner: xr.DataArray, metric: Metric, held: np.ndarray, lost: np.ndarray) -> str:
    """Say in which outer folds nothing can be chosen because the metric is undefined, and in which inner folds."""
    named = []
    for number in np.flatnonzero(lost).tolist():
        name = f"outer fold {show(inner['outer_fold'].values[[number]])}"
        if "fold" in inner.coords:
            by_fold = listened([], partial(fold_scores, _inside(inner, held, number), metric))
            bad = by_fold.isnull().any([dim for dim in by_fold.dims if dim != "fold"])
            name += f" (inner fold {show(by_fold['fold'].values[bad.values])})"
        named.append(name)
    reason = REASONS.get(metric.requires, "is undefined there")
    return f"NaN, because {metric.name} {reason} and nothing can be chosen in {', '.join(named)}"


def _eligible(inner: xr.DataArray) -> np.ndarray:
    """Return which configurations (outer_fold, configuration) predicted all that any predicted in a training set."""
    there = present(inner)
    counts = xr.Dataset({"own": there.sum("sample"), "most": there.any("configuration").sum("sample")}).compute()
    table = zip(counts["own"].transpose("outer_fold", ...).values, counts["most"].values, strict=True)
    return np.stack([complete(own, int(most)) for own, most in table])


def labelled_like(cube: xr.DataArray, other: xr.DataArray, argument: str) -> xr.DataArray:
    """Return other predictions of the cube's samples aligned with it and carrying its labels."""
    names = ("label", "kind", "positive", "threshold", "classes", "weight", "event")
    labels = {name: cube.coords[name].variable for name in names if name in cube.coords}
    return aligned(other, cube, argument).assign_coords(labels)


def check_inner(cube: xr.DataArray, inner: xr.DataArray) -> xr.DataArray:
    """Return `inner` aligned with the cube and carrying its labels; raise when it leaks or lacks outer folds."""
    if not isinstance(inner, xr.DataArray) or not {"sample", "configuration", "outer_fold"} <= set(inner.dims):
        found = show(inner.dims) if isinstance(inner, xr.DataArray) else type(inner).__name__
        raise InputError(f"`inner` must be a DataArray over 'sample', 'configuration', 'outer_fold'; got {found}.")
    held = folds_of(cube, "`inner`")
    names = inner["outer_fold"].values
    inner = labelled_like(cube, inner, "inner").assign_coords(outer_fold=names)
    known = set(fold_names(held).tolist())
    if any(set(fold_names(held.isel(repeat=at)).tolist()) != known for at in range(held.sizes.get("repeat", 0))):
        raise InputError(
            "`inner` needs folds with the same names in every repeat, so that `outer_fold` says which was left out; "
            "number the folds of each repeat from 0."
        )
    missing, extra = known - set(names.tolist()), set(names.tolist()) - known
    if missing or extra:
        raise InputError(
            f"`inner` and the cube have different outer folds: only in the cube: {show(sorted(missing)) or 'none'}; "
            f"only in `inner`: {show(sorted(extra)) or 'none'}."
        )
    if "repeat" in held.dims and cube.sizes["repeat"] > 1 and "repeat" not in inner.dims:
        raise InputError("`inner` has no dimension 'repeat', but the cube's repeats have folds of their own.")
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
            f"`inner` leaks: outer fold {show(names[[fold]])} has inner predictions for its own held-out samples "
            f"{show(cube['sample'].values[leak[fold].values])}; they must be NaN there."
        )
    return inner
