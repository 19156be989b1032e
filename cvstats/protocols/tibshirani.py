"""The correction of Tibshirani and Tibshirani: what selection gains within each fold."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import show
from cvstats._results import call_text, result
from cvstats.cube.arrays import check_cube, map_batches
from cvstats.cube.coords import folds_of
from cvstats.metrics import Metric, bound_metric
from cvstats.metrics.base import check_average
from cvstats.metrics.scoring import fold_scores

from .common import claimed, final_choice, said, warn_once
from .registry import needs_folds, protocol


@protocol(
    "tt",
    "TT",
    "each fold alone",
    "the fold",
    "Over-corrects with small folds and many configurations.",
    applies=needs_folds,
)
def tt(cube: xr.DataArray, metric: str | Metric, *, undefined: str = "nan") -> xr.Dataset:
    r"""Return the winner's score less the gain that selection makes within single folds.

    With :math:`e_k(j)` the loss of configuration j in fold k and :math:`j^*` the winner on all folds,

    .. math:: L_{TT} = L_{CVT} + \frac1K \sum_k \bigl( e_k(j^*) - \min_j e_k(j) \bigr).

    Always by fold; repeats count as more folds, and where classes were sampled separately a fold is what one model
    left out. Its bias swings with the size of the folds (+.125 at N = 20, -.044 at
    N = 100 in the 2018 simulation). With leave-one-out and many configurations it is twice the loss of `cvt`. It is
    unreliable for AUC in small folds and undefined when a fold lacks a class. The result is not clipped to the metric's
    range; a value outside it comes with a warning.

    Parameters
    ----------
    cube : DataArray
        Predictions with folds.
    metric : str or Metric
        A metric that is defined within every fold.
    undefined : {"nan", "skip"}
        A fold in which it is not defined makes the estimate NaN, with one warning; or it is left out, and ``n_folds``
        counts the others.

    Returns
    -------
    xarray.Dataset
        ``estimate``, ``naive`` (the winner's score by fold), ``optimism`` (what was subtracted) and ``selected``.

    References
    ----------
    Tibshirani, Tibshirani (2009), doi:10.1214/08-AOAS224;
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, Algorithm 4.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1, 0], [0, 0], [1, 1], [0, 1]], [1, 0, 1, 1], folds=[0, 0, 1, 1])
    >>> float(cs.tt(cube, "accuracy").estimate)
    0.5
    """
    check_cube(cube)
    folds_of(cube, "tt")
    bound = bound_metric(metric, cube)
    check_average("fold", undefined)
    by_fold = fold_scores(cube, bound, undefined)
    notes: list[str] = []

    def one(part: xr.DataArray, own: xr.DataArray) -> xr.Dataset:
        values = own.transpose("configuration", ...).values.reshape(own.sizes["configuration"], -1)
        if undefined == "skip":
            values = values[:, ~np.isnan(values).all(axis=0)]
        mean = values.mean(axis=1) if values.shape[1] else np.full(len(values), np.nan)
        choice = final_choice(part, bound, scores=mean)
        if len(lost := part["configuration"].values[~choice.eligible]):
            notes.append(f"{show(lost)} lacked predictions that others have and could not be selected")
        performance = bound.sign * values[choice.eligible]
        mine = bound.sign * values[choice.index] if choice.index >= 0 else np.nan
        bias = float(np.mean(performance.max(axis=0) - mine)) if choice.index >= 0 else np.nan
        claim = claimed(bound, choice.value - bound.sign * bias, choice)
        return xr.Dataset(claim | ({"n_folds": values.shape[1]} if undefined == "skip" else {}))

    out = map_batches(one, cube, by_fold)
    if undefined == "skip" and bool(out["estimate"].isnull().any()):
        notes.append(f"NaN where {bound.name} is defined in no fold")
    low, high = bound.range
    if bool(((out["estimate"] < low) | (out["estimate"] > high)).any()):
        notes.append(f"the corrected {bound.name} lies outside [{low:g}, {high:g}]; it is reported as it is")
    warn_once("tt", notes)
    call = call_text("tt", metric=bound.name, undefined=said(undefined))
    return result(out, method="tt", metric=bound.name, call=call, cube=cube)
