"""Metrics of calibration: do predicted probabilities agree with what happened? Most have a target, not a direction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .base import Sums, define
from .classes import _members

_CALIBRATION: dict[str, Any] = {"uses": "probability", "binary_only": True, "linear": False}
_FITTED = _CALIBRATION | {
    "direction": "target",
    "range": (-np.inf, np.inf),
    "family": "custom",
    "requires": "classes",
    "scale": "plain",
}


@define(
    **_FITTED, target=0.0, statistic="calibration_intercept", aliases=("calibration_in_the_large", "mean_calibration")
)
def calibration_intercept(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Calibration in the large: the intercept a of a logistic regression with the predictions as offset; target 0.

    .. math:: \operatorname{logit} P(Y = 1) = a + \operatorname{logit} p

    Positive when risks are too low on average. Probabilities are kept :math:`2^{-52}` away from 0 and 1. NaN without
    both classes. It judges but never chooses: give `by`.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2019), doi:10.1186/s12916-019-1466-7.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.calibration_intercept(cs.as_cube([[0.5], [0.5], [0.5], [0.5]], [1, 1, 1, 0])).values.round(4)
    array([1.0986])
    """


@define(**_FITTED, target=1.0, statistic="calibration_slope", aliases=("cox_slope",))
def calibration_slope(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Calibration slope: b of a logistic regression on the log odds of the predictions; target 1.

    .. math:: \operatorname{logit} P(Y = 1) = a + b \operatorname{logit} p

    Below 1 when risks are too extreme, as those of an overfitted model are. Probabilities are kept :math:`2^{-52}` away
    from 0 and 1. NaN without both classes and when the predictions separate them. It judges but never chooses: give
    `by`.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2019), doi:10.1186/s12916-019-1466-7.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.9], [0.9], [0.1], [0.1], [0.1]], [1, 1, 0, 0, 0, 1])
    >>> cs.calibration_slope(cube).values.round(4)
    array([0.3155])
    """


def _ratio(sums: Sums, labels: Sums) -> Any:
    return np.where(labels[1] > 0, labels[1], np.nan) / sums[0]


@define(
    **_CALIBRATION,
    direction="target",
    range=(0.0, np.inf),
    target=1.0,
    family="smooth",
    requires="positive",
    label_parts=partial(_members, 1),
    formula=_ratio,
    words="observed / expected events",
    aliases=("oe", "oe_ratio", "observed_expected_ratio"),
)
def observed_expected(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Observed over expected events; target 1.

    .. math:: \sum_i y_i \big/ \sum_i p_i

    Above 1 when risks are too low on average. NaN without events. It judges but never chooses: give `by`.

    References
    ----------
    Debray et al. (2017), doi:10.1136/bmj.i6460.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.observed_expected(cs.as_cube([[0.9], [0.2], [0.5]], [1, 0, 1])).values
    array([1.25])
    """
    return [p]


@define(
    **_CALIBRATION,
    direction="minimize",
    range=(0.0, 1.0),
    family="custom",
    requires="classes",
    statistic="ici",
    words="integrated calibration index",
    aliases=("eavg", "integrated_calibration_index"),
    unlike=("ece", "expected_calibration_error"),
)
def ici(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Integrated calibration index: the mean distance between predictions and the smooth calibration curve.

    .. math:: \frac1N \sum_i |p_i - \hat c(p_i)|

    with :math:`\hat c` Cleveland's local regression of the labels on the predictions (lowess: tricube weights, lines,
    the nearest two thirds of the samples, no robustness), as Harrell's ``val.prob`` smooths; others use loess, with
    other numbers. Never 0 on finite data: of a perfectly calibrated model it is the noise of the curve. NaN without
    both classes. Of more than 1000 samples, neighbours are pooled to about 500 groups for the curve, which changes it
    by less than .001.

    References
    ----------
    Austin, Steyerberg (2019), doi:10.1002/sim.8281; Cleveland (1979), doi:10.1080/01621459.1979.10481038.

    Examples
    --------
    >>> import cvstats as cs
    >>> bool(0 < cs.ici(cs.example_cube().isel(repeat=0))[0] < 0.2)
    True
    """
