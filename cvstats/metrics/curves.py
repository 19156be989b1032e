"""Metrics that are points of a curve: what one rate, share or benefit is where another is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cvstats._check import InputError, is_number

from .base import MADE, SHARE, Metric

_POINT = SHARE | {"linear": False, "binary_only": True, "requires": "classes"}
_ROC = _POINT | {"family": "rank", "uses": "score", "ratio_free": True}


def _make(name: str, words: str, **traits: object) -> None:
    MADE[name] = Metric(name, words=words, statistic=name, **traits)  # type: ignore[arg-type]


_make("sensitivity_at", "sensitivity at a fixed specificity", **_ROC, curve="sensitivity_at")
_make("specificity_at", "specificity at a fixed sensitivity", **_ROC, curve="specificity_at")
_make("partial_auc", "partial AUC", **_ROC)
_make("precision_at", "precision", **_POINT | {"family": "rank", "uses": "score"}, curve="precision_at")
for _name, _words in {
    "observed_at": "observed share of events",
    "bin_observed": "observed share of events",
    "bin_predicted": "mean prediction",
    "bin_size": "samples",
    "predicted_quantile": "prediction",
}.items():
    _make(_name, _words, **_POINT | {"family": "custom", "uses": "probability"}, curve=_name)


def point(name: str, at: float) -> Metric:
    """Return the metric that is one point of a curve."""
    return replace(MADE[name], name=f"{name}({at:g})", words=f"{MADE[name].words} at {at:g}", at=(float(at),))


def together(metrics: Sequence[Metric]) -> list[tuple[slice, Metric]]:
    """Return metrics and their places in the list; neighbours that are points of one curve as one with many places."""
    out: list[tuple[slice, Metric]] = []
    for number, metric in enumerate(metrics):
        place, last = out[-1] if out else (slice(0), None)
        if last is not None and metric.curve and metric.curve == last.curve:
            joined = replace(last, at=(*last.at, *metric.at), statistic=metric.curve)
            out[-1] = slice(place.start, number + 1), joined
        else:
            out.append((slice(number, number + 1), metric))
    return out


def _rate(value: Any, argument: str) -> float:
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"`{argument}` must be a rate from 0 to 1; got {value!r}.")
    return float(value)


def sensitivity_at(specificity: float) -> Metric:
    """Return the metric "sensitivity where the specificity has a given value".

    The height of the ROC curve at the false positive rate 1 - specificity: thresholds differ between samples, and
    neighbouring ones are mixed where no threshold has just this specificity (linear interpolation). No threshold need
    be chosen; to judge one that was chosen so, use ``adjust=cut(specificity=...)`` and `sensitivity`.

    Parameters
    ----------
    specificity : float
        From 0 to 1.

    Returns
    -------
    Metric
        Called ``sensitivity_at(0.9)`` in results; for cubes of two classes that hold scores or probabilities.

    References
    ----------
    Zweig, Campbell (1993). Receiver-operating characteristic (ROC) plots. Clinical Chemistry 39, 561-577.
    doi:10.1093/clinchem/39.4.561

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.6], [0.7], [0.1]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.sensitivity_at(0.5)).values, cs.score(cube, cs.sensitivity_at(1)).values
    (array([1.]), array([0.5]))
    """
    value = _rate(specificity, "specificity")
    return replace(point("sensitivity_at", value), at=(1 - value,))


def specificity_at(sensitivity: float) -> Metric:
    """Return the metric "specificity where the sensitivity has a given value": `sensitivity_at`, and back.

    Parameters
    ----------
    sensitivity : float
        From 0 to 1.

    Returns
    -------
    Metric
        Called ``specificity_at(0.9)`` in results; for cubes of two classes that hold scores or probabilities.

    References
    ----------
    Zweig, Campbell (1993). Receiver-operating characteristic (ROC) plots. Clinical Chemistry 39, 561-577.
    doi:10.1093/clinchem/39.4.561

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.6], [0.7], [0.1]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.specificity_at(0.5)).values, cs.score(cube, cs.specificity_at(1)).values
    (array([1.]), array([0.5]))
    """
    value = _rate(sensitivity, "sensitivity")
    return replace(point("specificity_at", value), at=(1 - value,))


def partial_auc(low: float, high: float) -> Metric:
    r"""Return the metric "area under a part of the ROC curve".

    .. math:: \int_{low}^{high} ROC(f) \, df

    over false positive rates f, as it is: between 0 and high - low, not rescaled.

    Parameters
    ----------
    low, high : float
        False positive rates, 0 <= low < high <= 1; (0, .1) is where the specificity is at least .9.

    Returns
    -------
    Metric
        Called ``partial_auc(0, 0.1)`` in results; for cubes of two classes that hold scores or probabilities.

    References
    ----------
    McClish (1989), doi:10.1177/0272989X8900900307.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.6], [0.7], [0.1]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.partial_auc(0, 0.5)).values, cs.score(cube, cs.partial_auc(0, 1)).values
    (array([0.25]), array([0.75]))
    """
    ends = _rate(low, "low"), _rate(high, "high")
    if not ends[0] < ends[1]:
        raise InputError(f"`low` must be below `high`; got {low!r} and {high!r}.")
    name, words = f"partial_auc({low:g}, {high:g})", f"partial AUC ({low:g} to {high:g})"
    return replace(MADE["partial_auc"], name=name, words=words, range=(0.0, ends[1] - ends[0]), at=ends)


def net_benefit(threshold: float) -> Metric:
    r"""Return the metric "net benefit of treating above a risk threshold".

    .. math:: \frac{TP}{N} - \frac{FP}{N} \cdot \frac{t}{1 - t}

    with a sample treated when its probability lies strictly above t: true positives are gained, false positives weigh
    the odds of the threshold. Treating nobody has net benefit 0; compare with treating everybody too.

    Parameters
    ----------
    threshold : float
        The risk at which one is indifferent, strictly between 0 and 1.

    Returns
    -------
    Metric
        Called ``net_benefit(0.2)`` in results; for cubes of two classes that hold probabilities.

    References
    ----------
    Vickers, Elkin (2006), doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.4], [0.1], [0.3]], [1, 0, 0, 1])
    >>> cs.score(cube, cs.net_benefit(0.2)).values
    array([0.4375])
    """
    if not is_number(threshold) or not 0 < threshold < 1:
        raise InputError(f"`threshold` must be a risk strictly between 0 and 1; got {threshold!r}.")
    t = float(threshold)
    return replace(
        MADE["net_benefit"],
        name=f"net_benefit({t})",
        words=f"net benefit at {t:g}",
        range=(-t / (1 - t), 1.0),
        ingredients=partial(_benefit, t),
        scale="unit",
        at=(t,),
    )


def _benefit(threshold: float, y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    gain: Any = np.where(y == 1, 1.0, -threshold / (1 - threshold))
    return [np.where(p > threshold, gain, 0.0)]


MADE["net_benefit"] = Metric(
    "net_benefit", "maximize", (-np.inf, 1.0), "mean", "probability", binary_only=True, monotone=1, words="net benefit",
    curve="net_benefit",
)  # fmt: skip
