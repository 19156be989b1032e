"""Curves of error rates: ROC, and precision against recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import Rng
from cvstats.adjust import Adjustment
from cvstats.metrics import Metric
from cvstats.metrics.curves import point
from cvstats.select import Mixture, Select, select_best

from .points import GRID, along, judged

RATE = "false_positive_rate"


def roc_curve(
    cube: xr.DataArray,
    *,
    by: str | Metric = "auc",
    select: Select | Mixture = select_best,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    subgroup: str | None = None,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
) -> xr.Dataset:
    r"""Return the ROC curve of what was chosen: as it looks, and corrected for having been chosen.

    At each false positive rate the sensitivity is judged as `winner` judges any metric, with the same draws for all,

    .. math:: \widehat{ROC}_{j^*}(f) + \frac1B \sum_b \bigl[ROC_b(j_b, f) - ROC_b(j^*, f)\bigr],

    on the samples left out of each draw, clipped to [0, 1]. A single ROC curve is the polygon through all thresholds
    (tied scores make a slope), and at a vertical step its upper end. Draws leave out about one in e of the :math:`n_0`
    negatives. Where fewer than two of these lie beyond f, their curve is its last steps and no measure of optimism: the
    sum is taken times (1 - f) n_0 / 2e there, so that the correction ends at 1, as the curves do, with 0. The corrected
    curve and its limits are then made monotone by isotonic regression.

    Limits hold for single points. A band for the whole curve is known for configurations whose predictions are
    independent of the samples that judge them: with d and e the quantiles of the Kolmogorov-Smirnov statistic of the
    positives and of the negatives at level 1 - (1 - level) / 2C, all C curves lie at once between
    :math:`\widehat{ROC}(f - e) - d` and :math:`\widehat{ROC}(f + e) + d`, so that of the winner does, however it was
    chosen. It is given (``band_low``, ``band_high``) for one repeat and a plain choice without groups, case weights and
    gaps; else NaN. It is wide; with models refitted in every fold it is an approximation.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`: two classes, scores or probabilities.
    by : str or Metric
        The metric that chooses.
    select, adjust, subgroup : as in `winner`
        Who is chosen, what is done with predictions, and in whose levels they are judged.
    draws, times, rng, level : as in `winner`
        Draws (or how many, and their seed), and the level of the limits.

    Returns
    -------
    xarray.Dataset
        Over ``false_positive_rate`` (0, .01, ..., 1): ``estimate`` (the corrected sensitivity), ``conf_low``,
        ``conf_high``, ``naive``, ``optimism``, ``band_low``, ``band_high``; and what `winner` says of the decision.

    References
    ----------
    Campbell (1994), Statistics in Medicine 13, 499-508, for the band of one curve; Massart (1990),
    doi:10.1214/aop/1176990746, for how far a sample strays from its distribution.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> curve = cs.roc_curve(cube, times=100, rng=1)
    >>> dict(curve.estimate.sizes), float(curve.estimate[-1])
    ({'false_positive_rate': 101}, 1.0)
    >>> bool(curve.estimate.mean() < curve.naive.mean())
    True
    """
    points = [point("sensitivity_at", rate) for rate in GRID]
    asked = {"by": by, "select": select, "adjust": adjust, "subgroup": subgroup}
    out, _ = judged(
        "roc_curve", cube, RATE, GRID, points, **asked, draws=draws, times=times, rng=rng, level=level
    )  # fmt: skip
    known = out.variables
    naive, beyond = known["naive"], (1 - known[RATE]) * _negatives(cube, out) / np.e  # of those that a draw leaves out
    estimate = naive + np.minimum(beyond / 2, 1) * (known["estimate"] - naive)
    curves: dict[str, Any] = {"estimate": estimate}
    curves |= {name: np.minimum(known[name], estimate) for name in ("conf_low", "bound_low")}
    curves |= {name: np.maximum(known[name], estimate) for name in ("conf_high", "bound_high")}
    curves = {name: _rising(curve) for name, curve in curves.items()}
    plain = select is select_best and adjust is None and subgroup is None
    low, high = _band(cube, naive, level) if plain else (np.nan * naive,) * 2
    return along(out, RATE, **curves, optimism=naive - curves["estimate"], band_low=low, band_high=high)


def _negatives(cube: xr.DataArray, out: xr.Dataset) -> xr.Variable:
    """Return how many negatives were predicted, in each level of a subgroup if there is one."""
    if "n_events" in out:
        return out.variables["n_samples"] - out.variables["n_events"]
    seen = cube.notnull().any([dim for dim in cube.dims if dim not in ("sample", *out["naive"].dims)])
    return (seen & (cube["label"] != cube["positive"])).sum("sample").variable.compute()


def _rising(curve: xr.Variable) -> xr.Variable:
    """Return the nearest curve that never falls and ends at 1."""
    from scipy.optimize import isotonic_regression

    def risen(values: np.ndarray) -> np.ndarray:
        if np.isnan(values).any():
            return values
        return np.append(isotonic_regression(values[:-1]).x, 1.0)

    core = [[RATE]]
    made: xr.Variable = xr.apply_ufunc(risen, curve, input_core_dims=core, output_core_dims=core, vectorize=True)
    return made


def _band(cube: xr.DataArray, naive: xr.Variable, level: float) -> tuple[xr.Variable, xr.Variable]:
    """Return the band that holds for the curves of all configurations at once; NaN where none is known."""
    from scipy.stats import kstwo

    label = cube["label"]
    unknown = {"weight", "group", "partner"} & set(cube.coords) or cube.sizes.get("repeat", 1) > 1
    positives = int((label == cube["positive"]).sum())
    if unknown or label.dims != ("sample",) or not 0 < positives < label.size or bool(cube.isnull().any()):
        return np.nan * naive, np.nan * naive
    share = 1 - (1 - level) / (2 * cube.sizes["configuration"])
    d, e = (float(kstwo.ppf(share, n)) for n in (positives, label.size - positives))
    below = np.maximum(np.floor((GRID - e) * 100 + 1e-9).astype(int), 0)
    above = np.minimum(np.ceil((GRID + e) * 100 - 1e-9).astype(int), len(GRID) - 1)
    low: Any = np.maximum((naive.isel({RATE: below}) - d) * xr.Variable(RATE, GRID - e > 0), 0.0)
    high: Any = np.minimum(naive.isel({RATE: above}) + d, 1.0)
    return low, high


def precision_recall_curve(
    cube: xr.DataArray,
    *,
    by: str | Metric = "auc",
    select: Select | Mixture = select_best,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    subgroup: str | None = None,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
) -> xr.Dataset:
    """Return precision against recall of what was chosen: as it looks, and corrected for having been chosen.

    The precision at a recall is that of the strictest threshold which reaches it (and has anything above it), so that
    its mean over recall is the average precision. Each point is judged as `winner` judges any metric, with the same
    draws for all. Precision depends on the class ratio of the sample. Limits hold for single points; no band for the
    whole curve is known to hold.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`: two classes, scores or probabilities.
    by : str or Metric
        The metric that chooses.
    select, adjust, subgroup : as in `winner`
        Who is chosen, what is done with predictions, and in whose levels they are judged.
    draws, times, rng, level : as in `winner`
        Draws (or how many, and their seed), and the level of the limits.

    Returns
    -------
    xarray.Dataset
        Over ``recall`` (0, .01, ..., 1): ``estimate`` (the corrected precision), ``conf_low``, ``conf_high``,
        ``naive``, ``optimism``; and what `winner` says of the decision.

    References
    ----------
    Saito, Rehmsmeier (2015), doi:10.1371/journal.pone.0118432.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> curve = cs.precision_recall_curve(cube, times=100, rng=1)
    >>> bool(curve.estimate.mean() < curve.naive.mean())
    True
    """
    points = [point("precision_at", recall) for recall in GRID]
    asked = {"by": by, "select": select, "adjust": adjust, "subgroup": subgroup}
    out, _ = judged(
        "precision_recall_curve", cube, "recall", GRID, points, **asked, draws=draws, times=times, rng=rng, level=level
    )  # fmt: skip
    return out
