"""Metrics that readers of clinical papers ask for: predictive values, likelihood ratios, agreement."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Sums, define
from .classes import _BY_CLASS, _LABEL, _TABLE, agreement, rest

_BINARY = _TABLE | {"binary_only": True}


@define(
    **_BINARY,
    words="positive predictive value",
    aliases=("pos_pred_value", "positive_predictive_value"),
    unlike=("false_discovery_rate", "fdr"),
)
def ppv(sums: Sums, labels: Sums) -> Any:
    """Positive predictive value, the share of predicted positives that are positive: TP / (TP + FP).

    At the prevalence of the sample; where classes were sampled separately it means nothing. NaN when nothing is
    predicted positive.

    References
    ----------
    Altman, Bland (1994). Diagnostic tests 2: predictive values. BMJ 309, 102. doi:10.1136/bmj.309.6947.102

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.ppv(cs.as_cube([[1], [1], [0]], [1, 0, 1])).values
    array([0.5])
    """
    return sums[0] / sums[1]


@define(
    **_BINARY,
    words="negative predictive value",
    aliases=("neg_pred_value", "negative_predictive_value"),
    unlike=("false_omission_rate", "for"),
)
def npv(sums: Sums, labels: Sums) -> Any:
    """Negative predictive value, the share of predicted negatives that are negative: TN / (TN + FN).

    At the prevalence of the sample; where classes were sampled separately it means nothing. NaN when nothing is
    predicted negative.

    References
    ----------
    Altman, Bland (1994). Diagnostic tests 2: predictive values. BMJ 309, 102. doi:10.1136/bmj.309.6947.102

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.npv(cs.as_cube([[0], [0], [1]], [0, 1, 1])).values
    array([0.5])
    """
    return (labels[1] - (sums[1] - sums[0])) / rest(labels[0], sums[1])


_MEAN_PRECISION = ("mean_precision", "prec", "precision_macro")


@define(**_TABLE, aliases=_MEAN_PRECISION, unlike=("precision_micro", "precision_weighted"))
def precision(sums: Sums, labels: Sums) -> Any:
    """Precision: the positive predictive value; for more than two classes its mean over classes (macro).

    Of two classes NaN when nothing is predicted positive; of more, a class that is never predicted counts 0.

    References
    ----------
    Sokolova, Lapalme (2009), doi:10.1016/j.ipm.2009.03.002.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.precision(cs.as_cube([[1], [1], [0]], [1, 0, 1])).values
    array([0.5])
    """
    k = len(labels) - 1
    if k == 2:
        return sums[0] / sums[1]
    each = [sums[code] / np.where(sums[k + code] > 0, sums[k + code], 1.0) for code in range(k)]
    return np.where(labels[0] > 0, np.mean(each, axis=0), np.nan)


@define(**_LABEL | _BY_CLASS | {"requires": "positive"}, unlike=("recall_weighted", "recall_micro"))
def recall(sums: Sums, labels: Sums) -> Any:
    """Recall: the sensitivity; for more than two classes its mean over classes (macro).

    NaN without positives; of more classes NaN when one is absent, and then the same as `balanced_accuracy`.

    References
    ----------
    Sokolova, Lapalme (2009), doi:10.1016/j.ipm.2009.03.002.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.recall(cs.as_cube([[1], [0], [1]], [1, 1, 0])).values
    array([0.5])
    """
    each = [hit / count for hit, count in zip(sums, labels[1:], strict=True)]
    return each[1] if len(each) == 2 else np.mean(each, axis=0)


# made of rates within classes, but not where no model has left out both
_RATIO = _LABEL | _BY_CLASS | {"binary_only": True, "linear": False, "ratio_free": False}
_RATIO |= {"range": (0.0, np.inf), "scale": "log"}


@define(**_RATIO, aliases=("lr_plus", "plr", "positive_lr"))
def positive_likelihood_ratio(sums: Sums, labels: Sums) -> Any:
    """Likelihood ratio of a positive prediction: sensitivity / (1 - specificity).

    What a positive prediction multiplies the odds by; 1 says nothing. NaN without false positives.

    References
    ----------
    Deeks, Altman (2004), doi:10.1136/bmj.329.7458.168.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.positive_likelihood_ratio(cs.as_cube([[1], [1], [1], [0]], [1, 1, 0, 0])).values
    array([2.])
    """
    false = rest(labels[1], sums[0]) / labels[1]
    return sums[1] / labels[2] / false


@define(**_RATIO | {"direction": "minimize"}, aliases=("lr_minus", "nlr", "negative_lr"))
def negative_likelihood_ratio(sums: Sums, labels: Sums) -> Any:
    """Likelihood ratio of a negative prediction: (1 - sensitivity) / specificity; lower is better.

    What a negative prediction multiplies the odds by; 1 says nothing. NaN without true negatives.

    References
    ----------
    Deeks, Altman (2004), doi:10.1136/bmj.329.7458.168.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.negative_likelihood_ratio(cs.as_cube([[1], [0], [1], [0]], [1, 1, 0, 0])).values
    array([1.])
    """
    true = sums[0] / labels[1]
    return np.where(true > 0, (1 - sums[1] / labels[2]) / true, np.nan)


@define(
    **_LABEL | _BY_CLASS | {"range": (-1.0, 1.0), "binary_only": True},
    words="Youden's index",
    aliases=("j_index", "youden_index", "youdens_j", "informedness"),
)
def youden(sums: Sums, labels: Sums) -> Any:
    """Youden's index: sensitivity + specificity - 1. 0 is guessing; twice the balanced accuracy, less one.

    NaN without both classes. The threshold that maximises it on the samples that judge it makes it far too good: choose
    it with ``adjust=cut("youden")``.

    References
    ----------
    Youden (1950). Index for rating diagnostic tests. Cancer 3, 32-35.
    doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.youden(cs.as_cube([[1], [0], [0], [0]], [1, 1, 0, 0])).values
    array([0.5])
    """
    return sums[0] / labels[1] + sums[1] / labels[2] - 1.0


@define(
    **_TABLE | {"range": (-1.0, 1.0)},
    words="Cohen's kappa",
    aliases=("cohen_kappa", "cohen_kappa_score", "kap"),
    unlike=("weighted_kappa",),
)
def kappa(sums: Sums, labels: Sums) -> Any:
    r"""Cohen's kappa: agreement of predicted and true class beyond that of the same margins by chance.

    .. math:: \frac{p_o - p_e}{1 - p_e}

    It depends on the class ratio. NaN when truth and prediction are one and the same class throughout.

    References
    ----------
    Cohen (1960), doi:10.1177/001316446002000104.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.kappa(cs.as_cube([[1], [0], [1], [0]], [1, 0, 1, 0])).values
    array([1.])
    """
    total, (right, truth, predicted) = labels[0], agreement(sums, labels)
    chance = sum(t * q for t, q in zip(truth, predicted, strict=True)) / total
    return (right - chance) / rest(total, chance)
