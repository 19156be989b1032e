"""Metrics of probabilities, scores and numbers: means of per-sample losses, and what is built from them."""

from __future__ import annotations

import numpy as np

from ._metric import define

SMOOTHING = 8.0


@define(direction="minimize", range=(0.0, 2.0), family="mean", uses="probability", monotone=-1)
def brier(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Brier score: the squared distance of the probability from the outcome.

    For two classes (p - y)^2; for more the sum over classes, so that it lies in [0, 2].
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.brier(cs.as_cube([[0.5], [0.0]], [1, 0])).values
    array([0.125])
    """
    if k <= 2:
        return [(p - y) ** 2]
    total = np.zeros(p.shape[1:])
    for code in range(k):
        total += (p[code] - (y == code).astype(float)) ** 2
    return [total]


@define(direction="minimize", range=(0.0, np.inf), family="mean", uses="probability", monotone=-1)
def log_loss(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Minus the mean log probability of the true class, unclipped: a certain but wrong prediction costs infinity.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.log_loss(cs.as_cube([[0.5], [0.5]], [1, 0])).round(4).values
    array([0.6931])
    """
    if k <= 2:
        truth = np.where(y == 1, p, 1.0 - p.astype(float))
    else:
        truth = np.take_along_axis(p, np.broadcast_to(y, p.shape[1:]).astype(np.intp)[None], axis=0)[0]
    with np.errstate(divide="ignore"):
        return [-np.log(truth, dtype=float)]


@define(direction="minimize", range=(0.0, 1.0), family="mean", uses="margin", binary_only=True, monotone=-1)
def smoothed_error_rate(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Error rate with the step replaced by (1 - y tanh(8 f)) / 2, f the score minus the threshold, y = -1 or 1.

    Cawley and Talbot (2010), section 4.2, after Bo, Wang and Jiao (2006), doi:10.1162/neco.2006.18.2.454 (the
    smoothing constant 8 is theirs).

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[2.0], [-1.5]], [1, -1], kind="score", threshold=0.0)
    >>> cs.smoothed_error_rate(cube).values.round(6)
    array([0.])
    """
    return [(1 - (2 * y - 1) * np.tanh(SMOOTHING * p)) / 2]


def _distance(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # a difference beyond the largest number is infinite
        return np.asarray(np.abs(p - y))


def _squared(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray((p - y) ** 2)


@define(direction="minimize", range=(0.0, np.inf), family="mean", uses="value", monotone=-1)
def mse(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Mean squared error.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.25])
    """
    return [_squared(p, y)]


@define(direction="minimize", range=(0.0, np.inf), family="mean", uses="value", monotone=-1)
def mae(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Mean absolute error.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mae(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return [_distance(p, y)]


def _root(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    return np.asarray(np.sqrt(sums[0] / labels[0]))


@define(direction="minimize", range=(0.0, np.inf), family="smooth", uses="value", linear=False, formula=_root)
def rmse(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Root mean squared error, within each repeat and then averaged.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.rmse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return [_squared(p, y)]


def _centred(y: np.ndarray, k: int) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        shifted = y - _centre(y)
        return [shifted, shifted**2]


def _centre(y: np.ndarray) -> np.ndarray:
    """Return a centre of the labels (any gives the same R2; a near one avoids cancellation).

    The mean of the distinct values, because it does not change when rows are repeated.
    """
    if y.ndim == 2:
        return np.array([_centre(column) for column in y.T])
    return np.asarray(np.unique(y).mean())


def _explained(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    total, first, second = labels
    spread = second - first**2 / total
    return np.asarray(1 - sums[0] / np.where(spread > 0, spread, np.nan))


@define(
    direction="maximize",
    range=(-np.inf, 1.0),
    family="smooth",
    uses="value",
    monotone=-1,
    requires="spread",
    label_parts=_centred,
    formula=_explained,
)
def r2(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Coefficient of determination, 1 - SSE / SST, with the mean of the judged samples as the baseline.

    NaN when the labels do not vary.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.r2(cs.as_cube([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])).round(4).values
    array([0.7857])
    """
    return [_squared(p, y)]
