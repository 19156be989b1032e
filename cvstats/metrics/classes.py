"""Metrics of predicted classes: shares, and smooth functions of the confusion table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .base import SHARE, Sums, define

ROUNDING = 1e-12  # of a sum: real weights are added with rounding errors below it


def class_counts(y: np.ndarray, k: int) -> list[np.ndarray]:
    """Return, for every class, which samples are of it."""
    return [(y == code).astype(float) for code in range(k)]


def rest(total: Any, part: Any) -> Any:
    """Return what is left of a total; NaN where nothing is, or what the rounding of real weights alone leaves."""
    left = total - part
    return np.where(left > ROUNDING * total, left, np.nan)


def _hits(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    return [(p == code) & (y == code) for code in range(k)]


def _confusion(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Return the diagonal and the column margins; of two classes the second tells all, given the labels."""
    if k == 2:
        return [(p == 1) & (y == 1), p == 1]
    return [*_hits(y, p, k), *(p == code for code in range(k))]


def agreement(sums: Sums, labels: Sums) -> tuple[Any, Sums, Sums]:
    """Return how many were predicted right, and the margins of the classes: true and predicted."""
    k, total, truth = len(labels) - 1, labels[0], labels[1:]
    if k > 2:
        return sum(sums[:k]), truth, sums[k:]
    hits, positive = sums
    return total - truth[1] - positive + 2 * hits, truth, [total - positive, positive]


_LABEL = SHARE | {"uses": "label"}
_ERROR = _LABEL | {"direction": "minimize"}
_BY_CLASS: dict[str, Any] = {"family": "smooth", "ingredients": _hits, "label_parts": class_counts}
_BY_CLASS |= {"ratio_free": True, "requires": "classes"}
_TABLE = _LABEL | {"family": "smooth", "ingredients": _confusion, "label_parts": class_counts, "linear": False}


@define(**_LABEL, family="mean", monotone=1, aliases=("acc",))
def accuracy(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Share of samples whose predicted class is right.

    .. math:: \frac1N \sum_i I(\hat y_i = y_i)

    Misleading when classes are unbalanced: always predicting a class that makes up 90 % scores .9.

    References
    ----------
    Ferri, Hernandez-Orallo, Modroiu (2009), doi:10.1016/j.patrec.2008.08.010.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.accuracy(cs.as_cube([[1, 0], [0, 0]], [1, 0])).values
    array([1. , 0.5])
    """
    return [p == y]


@define(
    **_ERROR,
    family="mean",
    monotone=-1,
    aliases=("classif.ce", "classification_error", "misclassification_rate", "mmce", "zero_one_loss"),
)
def error_rate(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    r"""Share of samples whose predicted class is wrong: the mean 0-1 loss, one minus the accuracy.

    .. math:: \frac1N \sum_i I(\hat y_i \ne y_i)

    It says nothing about a population with another class ratio than the sample's: see `prior_error`.

    References
    ----------
    Ferri, Hernandez-Orallo, Modroiu (2009), doi:10.1016/j.patrec.2008.08.010.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.error_rate(cs.as_cube([[1, 0], [0, 0]], [1, 0])).values
    array([0. , 0.5])
    """
    return [p != y]


_MEAN_RECALL = ("bacc", "bal_accuracy", "mean_recall", "mean_sensitivity", "recall_macro")


@define(**_LABEL, **_BY_CLASS, aliases=_MEAN_RECALL, unlike=("mean_balanced_accuracy",))
def balanced_accuracy(sums: Sums, labels: Sums) -> Any:
    r"""Mean over classes of the share of that class predicted right.

    .. math:: \frac1K \sum_k \frac{\#\{i : \hat y_i = y_i = k\}}{\#\{i : y_i = k\}}

    NaN when a class is absent; noisy when one has few samples.

    References
    ----------
    Brodersen, Ong, Stephan, Buhmann (2010), doi:10.1109/ICPR.2010.764.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.balanced_accuracy(cs.as_cube([[1], [1], [1], [0]], [1, 1, 0, 0])).values
    array([0.75])
    """
    return np.mean([hit / count for hit, count in zip(sums, labels[1:], strict=True)], axis=0)


def _members(code: int, y: np.ndarray, k: int) -> list[np.ndarray]:
    return [(y == code).astype(float)]


def _share_of_class(sums: Sums, labels: Sums) -> Any:
    return sums[0] / labels[1]


def _within(code: int, requires: str) -> dict[str, Any]:
    own = {"label_parts": partial(_members, code), "formula": _share_of_class, "requires": requires}
    return _LABEL | own | {"family": "smooth", "binary_only": True, "monotone": 1, "ratio_free": True}


@define(**_within(1, "positive"), aliases=("sens", "tpr", "true_positive_rate"))
def sensitivity(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of the positive class predicted positive (recall): TP / (TP + FN).

    NaN without positives. Always predicting the positive class makes it 1, so do not select by it alone.

    References
    ----------
    Altman, Bland (1994). Diagnostic tests 1: sensitivity and specificity. BMJ 308, 1552. doi:10.1136/bmj.308.6943.1552

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.sensitivity(cs.as_cube([[1], [0], [1]], [1, 1, 0])).values
    array([0.5])
    """
    return [(p == 1) & (y == 1)]


@define(**_within(0, "negative"), aliases=("spec", "tnr", "true_negative_rate"))
def specificity(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of the negative class predicted negative: TN / (TN + FP).

    NaN without negatives. Always predicting the negative class makes it 1, so do not select by it alone.

    References
    ----------
    Altman, Bland (1994). Diagnostic tests 1: sensitivity and specificity. BMJ 308, 1552. doi:10.1136/bmj.308.6943.1552

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.specificity(cs.as_cube([[1], [0], [1]], [1, 0, 0])).values
    array([0.5])
    """
    return [(p == 0) & (y == 0)]


@define(
    **_TABLE,
    words="F1",
    aliases=("f_meas", "fbeta", "mean_f1"),
    unlike=("f", "f1_macro", "f1_micro", "f1_weighted", "f2"),
)
def f1(sums: Sums, labels: Sums) -> Any:
    """F1 = 2 TP / (2 TP + FP + FN) of the positive class; the mean over classes (macro) for more than two.

    It ignores true negatives, so it depends on which class is positive and on the class ratio. NaN when a class is
    neither present nor predicted.

    References
    ----------
    Sokolova, Lapalme (2009), doi:10.1016/j.ipm.2009.03.002.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.f1(cs.as_cube([[1], [0], [1]], [1, 1, 0])).values
    array([0.5])
    """
    k = len(labels) - 1
    if k == 2:
        return 2 * sums[0] / (labels[2] + sums[1])
    return np.mean([2 * sums[code] / (labels[1 + code] + sums[k + code]) for code in range(k)], axis=0)


@define(**_TABLE | {"range": (-1.0, 1.0)}, words="Matthews correlation", aliases=("matthews_corrcoef", "phi"))
def mcc(sums: Sums, labels: Sums) -> Any:
    r"""Matthews correlation coefficient of predicted and true class; Gorodkin's R_K for more than two classes.

    .. math:: \frac{TP \cdot TN - FP \cdot FN}{\sqrt{(TP + FP)(TP + FN)(TN + FP)(TN + FN)}}

    0/0 counts as 0: a constant prediction, or samples of one class, correlate with nothing.

    References
    ----------
    Matthews (1975), doi:10.1016/0005-2795(75)90109-9; Gorodkin (2004), doi:10.1016/j.compbiolchem.2004.09.006.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mcc(cs.as_cube([[1], [0], [1], [0]], [1, 0, 1, 0])).values
    array([1.])
    """
    total, (right, truth, predicted) = labels[0], agreement(sums, labels)
    cross = right * total - sum(t * q for t, q in zip(truth, predicted, strict=True))
    spread = rest(total**2, sum(t**2 for t in truth)) * rest(total**2, sum(q**2 for q in predicted))
    defined = spread > 0
    value = np.where(defined, cross / np.sqrt(np.where(defined, spread, 1.0)), 0.0)
    return np.where(total > 0, value, np.nan)
