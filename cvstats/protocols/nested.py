"""Nested cross-validation from saved inner predictions."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, listened, show
from cvstats._results import call_text, names_of, result
from cvstats.cube.blocks import complete
from cvstats.cube.make import check_cube, is_lazy
from cvstats.judge import aligned, map_batches
from cvstats.metrics import Metric, bound_metric, score
from cvstats.metrics.scoring import REASONS, fold_scores, repeat_averages
from cvstats.select import select_best

from .bootstrap import warn_once
from .common import final_choice, fold_names, folds_of, optimism
from .registry import needs_folds, protocol


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
    found = bound_metric(metric, cube)
    inner = check_inner(cube, inner)

    notes: list[str] = []

    def one(part: xr.DataArray, own: xr.DataArray | None) -> xr.Dataset:
        assert own is not None
        return _one(part, own, found, average, notes)

    out = listened(notes, lambda: map_batches(one, cube, inner))
    warn_once("ncv", notes)
    return result(
        out,
        method="ncv" if inner_kind == "cv" else "cv2",
        metric=found.name,
        call=call_text("ncv", metric=found.name, inner_kind=inner_kind, average=average),
        cube=cube,
    )


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
        told: list[str] = []
        scores = listened(told, partial(_inner_scores, inside, metric, held))
        scores = np.where(_eligible(inside), scores, np.nan)
        undefined = np.isnan(scores).all(axis=1)
        chosen[:, repeat] = np.where(undefined, -1, select_best(scores, direction=metric.direction))
        lost = undefined & run
        where = f" of repeat {show(cube['repeat'].values[[repeat]])}" if repeats > 1 else ""
        notes.extend([_undecided(inside, metric, held, lost) + where] if lost.any() else told)
    by_fold = by_fold.reindex(fold=folds).transpose("configuration", "fold", ...)
    values = by_fold.values.reshape(by_fold.sizes["configuration"], len(folds), repeats)
    each = values[chosen, np.arange(len(folds))[:, None], np.arange(repeats)]
    each = np.where(chosen >= 0, each, np.nan)
    if average == "fold" or (chosen[run] < 0).any():
        estimate = float(each[run].mean())
    else:
        estimate = _pooled(cube, metric, folds, chosen)
    final = final_choice(cube, metric, average=average)
    wins = np.bincount(chosen[chosen >= 0], minlength=cube.sizes["configuration"]) / chosen.size
    dims, drop = (("outer_fold", "repeat"), slice(None)) if "repeat" in cube.dims else (("outer_fold",), 0)
    names = cube["configuration"].values
    coords = {"outer_fold": folds, "configuration": cube["configuration"].variable}
    if "repeat" in cube.coords and "repeat" in cube.dims:
        coords["repeat"] = cube["repeat"].variable
    return xr.Dataset(
        {
            "estimate": estimate,
            "fold_estimate": (dims, each[..., drop]),
            "selected_fold": (dims, names_of(names, chosen)[..., drop]),
            "win_rate": ("configuration", wins),
            "naive": final.value,
            "optimism": optimism(metric, final.value, estimate),
            "selected": final.label,
        },
        coords=coords,
    )


def _inner_scores(inner: xr.DataArray, metric: Metric, held: np.ndarray) -> np.ndarray:
    """Return the scores (outer_fold, configuration) of inner predictions; `held` (sample, outer_fold) are left out."""
    if "fold" not in inner.coords:
        return np.asarray(score(inner, metric).transpose("outer_fold", "configuration").values)
    fold, judged = inner["fold"], xr.DataArray(held, dims=("sample", "outer_fold"))
    fold = fold.where(~judged, "" if fold.dtype.kind in "UO" else -1).transpose("sample", "outer_fold", ...)
    inner = inner.drop_vars("repeat", errors="ignore").assign_coords(fold=fold.variable)
    if "inner_repeat" not in inner.dims:
        counts = {len(np.unique(ids[~out])) for ids, out in zip(fold.values.T, held.T, strict=True)}
        if len(counts) == 1:  # all outer folds at once, as repeats of their own
            at_once = inner.drop_vars("outer_fold").rename(outer_fold="repeat")
            return np.asarray(repeat_averages(at_once, metric).transpose("repeat", "configuration").values)
    names = {"inner_repeat": "repeat"} if "inner_repeat" in inner.dims else {}
    parts = (inner.isel(outer_fold=number, drop=True).rename(names) for number in range(held.shape[1]))
    return np.stack([score(part, metric, average="fold").values for part in parts])


def _undecided(inner: xr.DataArray, metric: Metric, held: np.ndarray, lost: np.ndarray) -> str:
    """Say in which outer folds nothing can be chosen because the metric is undefined, and in which inner folds."""
    named = []
    for number in np.flatnonzero(lost):
        name = f"outer fold {show(inner['outer_fold'].values[[number]])}"
        if "fold" in inner.coords:
            part = inner.isel(outer_fold=number, sample=~held[:, number], drop=True)
            part = part.rename({"inner_repeat": "repeat"} if "inner_repeat" in part.dims else {})
            by_fold = listened([], partial(fold_scores, part, metric))
            bad = by_fold.isnull().any([dim for dim in by_fold.dims if dim != "fold"])
            name += f" (inner fold {show(by_fold['fold'].values[bad.values])})"
        named.append(name)
    reason = REASONS.get(metric.requires, "is undefined there")
    return f"NaN, because {metric.name} {reason} and nothing can be chosen in {', '.join(named)}"


def _eligible(inner: xr.DataArray) -> np.ndarray:
    """Return which configurations (outer_fold, configuration) predicted all that any predicted in a training set."""
    axes = [dim for dim in ("label_class", "inner_repeat") if dim in inner.dims]
    data = inner.variable.transpose(*axes, "sample", "configuration", "outer_fold").data
    filled = ~np.isnan(data)
    if "label_class" in axes:
        filled = filled.all(axis=0)
    if "inner_repeat" in axes:
        filled = filled.any(axis=0)
    count, most = filled.sum(axis=0), filled.any(axis=1).sum(axis=0)
    if is_lazy(inner):
        import dask

        count, most = dask.compute(count, most)
    return np.stack([complete(own, int(total)) for own, total in zip(count.T, most, strict=True)])


def _pooled(cube: xr.DataArray, metric: Metric, folds: np.ndarray, chosen: np.ndarray) -> float:
    """Return the pooled score of the predictions that each fold's choice made."""
    repeats = cube.sizes.get("repeat", 1)
    values = []
    for repeat in range(repeats):
        outer = cube.isel(repeat=[repeat]) if "repeat" in cube.dims else cube
        held = outer["fold"].values.reshape(cube.sizes["sample"], -1)[:, 0]
        column = np.zeros(len(held), int)
        for number, name in enumerate(folds):
            column[held == name] = chosen[number, repeat]
        picked = outer.isel(
            sample=xr.DataArray(np.arange(len(held)), dims="sample"), configuration=xr.DataArray(column, dims="sample")
        )
        picked = picked.where(xr.DataArray(np.isin(held, folds), dims="sample"))  # nothing chose for what is in no fold
        one = picked.drop_vars("configuration").expand_dims(configuration=[0]).transpose(*outer.dims)
        values.append(float(score(one, metric)[0]))
    return float(np.mean(values))


def check_inner(cube: xr.DataArray, inner: xr.DataArray) -> xr.DataArray:
    """Return `inner` aligned with the cube and carrying its labels; raise when it leaks or lacks outer folds."""
    if not isinstance(inner, xr.DataArray) or not {"sample", "configuration", "outer_fold"} <= set(inner.dims):
        found = show(inner.dims) if isinstance(inner, xr.DataArray) else type(inner).__name__
        raise InputError(f"`inner` must be a DataArray over 'sample', 'configuration', 'outer_fold'; got {found}.")
    held = folds_of(cube, "`inner`")
    inner = aligned(inner, cube, "inner")
    inner = inner.assign_coords(
        {
            name: cube.coords[name].variable
            for name in ("label", "kind", "positive", "threshold", "classes", "weight", "event")
            if name in cube.coords
        }
    )
    names = inner["outer_fold"].values if "outer_fold" in inner.coords else np.arange(inner.sizes["outer_fold"])
    known = set(fold_names(held).tolist())
    repeats = range(held.sizes.get("repeat", 0))
    if any(set(fold_names(held.isel(repeat=number)).tolist()) != known for number in repeats):
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
    inner = inner.assign_coords(outer_fold=names)
    if "repeat" in held.dims and cube.sizes["repeat"] > 1 and "repeat" not in inner.dims:
        raise InputError("`inner` has no dimension 'repeat', but the cube's repeats have folds of their own.")
    own = held == xr.DataArray(names, dims="outer_fold")
    everything = own.all("sample")
    if bool(everything.any()):
        fold = int(
            np.flatnonzero(everything.transpose("outer_fold", ...).values.reshape(len(names), -1).any(axis=1))[0]
        )
        raise InputError(f"outer fold {show(names[[fold]])} holds every sample, so that nothing is left to choose on.")
    others = [dim for dim in inner.dims if dim not in ("outer_fold", "repeat", *held.dims)]
    leak = inner.notnull().any(others).drop_vars(list(inner.coords), errors="ignore") & own.drop_vars(list(own.coords))
    if bool(leak.any()):
        per_fold = leak.any("repeat") if "repeat" in leak.dims else leak
        per_fold = per_fold.any([dim for dim in per_fold.dims if dim not in ("sample", "outer_fold")])
        fold = int(np.flatnonzero(per_fold.any("sample").values)[0])
        samples = cube["sample"].values[per_fold.isel(outer_fold=fold).values]
        raise InputError(
            f"`inner` leaks: outer fold {show(names[[fold]])} has inner predictions for its own held-out samples "
            f"{show(samples)}; they must be NaN there."
        )
    return inner
