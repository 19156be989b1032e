"""Metrics of probabilities, scores and numbers: means of per-sample losses, and what is built from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import show
from cvstats.cube.arrays import encode_labels
from cvstats.cube.blocks import by_chunk

from .base import Metric, Sums, define

SMOOTHING = 8.0
LEAST = 2.0**-52  # smallest probability in a log loss: the machine epsilon, in double precision


_LOSS: dict[str, Any] = {"direction": "minimize", "range": (0.0, np.inf), "family": "mean", "monotone": -1}
_ERROR = _LOSS | {"uses": "value"}


@define(
    **_LOSS | {"range": (0.0, 2.0)},
    uses="probability",
    words="Brier score",
    aliases=("bbrier", "brier_class", "brier_score_loss", "mbrier"),
    scale="log",  # as losses without an upper end: their tails are alike
)
def brier(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Brier score: the mean squared distance of the probability from the outcome.

    .. math:: \frac1N \sum_i (p_i - y_i)^2

    for two classes; for more the sum over classes, so that it lies in [0, 2]. It judges calibration and ranking
    together: two classifiers of equal score may fail in different ways.

    References
    ----------
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.brier(cs.as_cube([[0.5], [0.0]], [1, 0])).values
    array([0.125])
    """
    if k <= 2:
        return [(p - y) ** 2]
    return [np.asarray(sum((p[code] - (y == code).astype(float)) ** 2 for code in range(k)))]


def _minus_log(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Return minus the log of the true class's probability, which counts as LEAST when it is smaller."""
    if k <= 2:
        truth = np.where(y == 1, p, 1.0 - p.astype(float))
    else:
        truth = np.take_along_axis(p, np.broadcast_to(y, p.shape[1:]).astype(np.intp)[None], axis=0)[0]
    return [-np.log(np.maximum(truth, LEAST, dtype=float))]


def _clipped(cube: xr.DataArray) -> xr.DataArray:
    """Return how many predictions of each configuration give the true class a probability below LEAST."""
    part, coords = cube.variable, cube.coords.variables  # what has no labels need not be aligned
    truth = xr.Variable(coords["label"].dims, encode_labels(cube)[0])
    if "weight" in coords:
        truth = truth.where(coords["weight"] > 0)  # type: ignore[no-untyped-call]
    if "label_class" in cube.dims:
        small = (part < LEAST) & (truth == xr.Variable("label_class", np.arange(cube.sizes["label_class"])))
    else:
        small = ((part < LEAST) & (truth == 1)) | ((part > np.float64(1 - LEAST)) & (truth == 0))
    return xr.DataArray(small.sum([dim for dim in small.dims if dim != "configuration"]))


def _count_clipped(metric: Metric, cube: xr.DataArray, notes: list[str]) -> Metric:
    """Return the metric as counted on a cube, and note which configurations have probabilities below LEAST."""
    bound = replace(metric, ingredients=_minus_log, bind=None)
    if str(cube.coords["kind"].item()) != "probability":
        return bound  # refused where it is computed
    count = by_chunk(cube, _clipped).values
    if count.any():
        which = show(cube["configuration"].values[count > 0])
        one = count.sum() == 1
        notes.append(
            f"log loss: {count.sum()} prediction{'' if one else 's'} of {which} gave the true class a probability "
            f"below 2^-52 and {'was' if one else 'were'} clipped"
        )
    return bound


@define(**_LOSS, uses="probability", bind=_count_clipped, aliases=("cross_entropy", "logloss", "mn_log_loss"))
def log_loss(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Minus the mean log probability of the true class.

    .. math:: -\frac1N \sum_i \log \max(p_i(y_i), 2^{-52})

    A probability below the machine epsilon counts as that (a loss of 36.04), so that one certain but wrong prediction
    does not make it infinite; a warning says how many. Rare large losses dominate it, so an interval for nearly
    separated classes must allow for what was not seen: see `calibrated`.

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.log_loss(cs.as_cube([[0.5], [0.5]], [1, 0])).round(4).values
    array([0.6931])
    """
    return _minus_log(y, p, k)


@define(**_LOSS | {"range": (0.0, 1.0)}, uses="margin", binary_only=True)
def smoothed_error_rate(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Error rate with its step smoothed, so that it changes gradually with the tuning values.

    .. math:: \frac1N \sum_i \frac{1 - y_i \tanh(8 f_i)}{2}

    with f the score minus the threshold and y = -1 or 1. For two classes. It depends on the scale of the scores: small
    scores near the threshold count about one half each.

    References
    ----------
    Bo, Wang, Jiao (2006), doi:10.1162/089976606775774642, for the smoothing; Cawley, Talbot (2010), JMLR 11, 2079-2107,
    section 4.2, for the constant. https://www.jmlr.org/papers/v11/cawley10a.html

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[2.0], [-1.5]], [1, -1], kind="score", threshold=0.0)
    >>> cs.smoothed_error_rate(cube).values.round(6)
    array([0.])
    """
    return [(1 - (2 * y - 1) * np.tanh(SMOOTHING * p)) / 2]


@define(**_ERROR, words="mean squared error")
def mse(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Mean squared error.

    .. math:: \frac1N \sum_i (p_i - y_i)^2

    A few large errors dominate it; see `mae`.

    References
    ----------
    Hodson (2022), doi:10.5194/gmd-15-5481-2022.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.25])
    """
    return [(p - y) ** 2]


@define(**_ERROR, words="mean absolute error")
def mae(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Mean absolute error.

    .. math:: \frac1N \sum_i |p_i - y_i|

    Minimised by the conditional median, not the mean: it prefers other predictions than `mse` when errors are skewed.

    References
    ----------
    Hodson (2022), doi:10.5194/gmd-15-5481-2022.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mae(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return [np.abs(p - y)]


_SQUARES: dict[str, Any] = {"family": "smooth", "uses": "value", "ingredients": mse.ingredients}


@define(**_ERROR | _SQUARES | {"monotone": 0}, linear=False, words="root mean squared error")
def rmse(sums: Sums, labels: Sums) -> Any:
    r"""Root mean squared error, within each repeat and then averaged.

    .. math:: \sqrt{\tfrac1N \sum_i (p_i - y_i)^2}

    In the unit of the labels. Averages over folds or repeats of roots are never larger than the root of the pooled
    mean.

    References
    ----------
    Hodson (2022), doi:10.5194/gmd-15-5481-2022.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.rmse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return np.sqrt(sums[0] / labels[0])


def _centred(y: np.ndarray, k: int) -> list[np.ndarray]:
    """Return labels around a centre and their squares: any centre gives the same R2, a near one avoids cancellation.

    The mean of the distinct values, because it does not change when rows are repeated; labels that do not vary are then
    exactly 0. NaN is no label.
    """
    shifted = y - np.apply_along_axis(_middle, 0, y)
    return [shifted, shifted**2]


def _middle(column: np.ndarray) -> Any:
    known = np.unique(column[~np.isnan(column)])
    return known.mean() if known.size else np.nan


@define(
    **_SQUARES,
    direction="maximize",
    range=(-np.inf, 1.0),
    monotone=-1,
    requires="spread",
    label_parts=_centred,
    words="R²",
    aliases=("coefficient_of_determination", "regr.rsq", "rsq_trad"),
    unlike=("rsq", "rsquared"),  # squared correlations in yardstick and caret, blind to bias
)
def r2(sums: Sums, labels: Sums) -> Any:
    r"""Coefficient of determination, with the mean of the judged samples as the baseline.

    .. math:: 1 - \sum_i (p_i - y_i)^2 \Big/ \sum_i (y_i - \bar y)^2

    Negative when predictions are worse than that mean. NaN when the labels do not vary; meaningless in small folds,
    where the baseline has seen the samples it predicts.

    References
    ----------
    Kvalseth (1985). Cautionary note about R2. The American Statistician 39, 279-285. doi:10.1080/00031305.1985.10479448

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.r2(cs.as_cube([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])).round(4).values
    array([0.7857])
    """
    total, first, second = labels
    spread = second - first**2 / total
    return 1 - sums[0] / np.where(spread > 0, spread, np.nan)
