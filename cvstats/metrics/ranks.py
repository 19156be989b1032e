"""Metrics of rank order: AUC and its relatives, average precision, concordance."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import SHARE, define

# Ranks are computed by the kernel that `statistic` names: these functions have a docstring and no body.
_RANK = SHARE | {"family": "rank", "uses": "score", "linear": False}
_AUC = _RANK | {"statistic": "auc", "requires": "classes"}


@define(
    **_AUC,
    ratio_free=True,
    multiclass="pairs",
    words="AUC",
    aliases=("auroc", "mauc_au1u", "roc", "roc_auc", "roc_auc_ovo"),
    unlike=("gini", "gini_coefficient", "roc_auc_ovo_weighted"),
)
def auc(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Area under the ROC curve: how often a positive scores above a negative, ties counting one half.

    .. math:: \frac{1}{mn} \sum_{i: y_i = 1} \sum_{j: y_j = 0} I(p_i > p_j) + \tfrac12 I(p_i = p_j)

    For more than two classes Hand and Till's average over pairs of classes. Higher scores always mean the positive
    class (no direction is guessed). NaN when a class is absent. Pooling scores over folds assumes that they are
    comparable across folds; `describe_cube` tests it. Where classes were sampled separately, a positive and a negative
    are compared under the model that left both out.

    References
    ----------
    Hanley, McNeil (1982), doi:10.1148/radiology.143.1.7063747; Hand, Till (2001), doi:10.1023/A:1010920819831.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """


@define(
    **_AUC, multiclass="macro", words="AUC (one against the rest)", aliases=("mauc_aunu", "roc_auc_ovr", "roc_aunu")
)
def auc_ovr(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Multi-class AUC, each class against the rest, averaged equally over classes.

    .. math:: \frac1K \sum_k AUC(k \text{ against the rest})

    Two classes: the usual `auc`. Unlike Hand and Till's average over pairs it depends on the class ratio. NaN when a
    class is absent.

    References
    ----------
    Fawcett (2006). An introduction to ROC analysis. Pattern Recognition Letters 27, 861-874.
    doi:10.1016/j.patrec.2005.10.010

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc_ovr(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """


@define(
    **_AUC,
    multiclass="weighted",
    words="AUC (one against the rest, weighted)",
    aliases=("mauc_aunp", "roc_auc_ovr_weighted", "roc_aunp"),
)
def auc_ovr_weighted(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Multi-class AUC, each class against the rest, averaged by the frequency of the classes.

    .. math:: \sum_k \frac{n_k}{N} AUC(k \text{ against the rest})

    Two classes: the usual `auc`. Frequent classes dominate it. NaN when a class is absent.

    References
    ----------
    Fawcett (2006). An introduction to ROC analysis. Pattern Recognition Letters 27, 861-874.
    doi:10.1016/j.patrec.2005.10.010

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc_ovr_weighted(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """


@define(
    **_RANK,
    statistic="average_precision",
    multiclass="macro",
    requires="positive",
    aliases=("ap", "auprc", "pr_auc", "prauc"),
)
def average_precision(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Average precision: the mean over positives of the precision at their score.

    .. math:: \frac1m \sum_{i: y_i = 1} \frac{\#\{j : p_j \ge p_i, y_j = 1\}}{\#\{j : p_j \ge p_i\}}

    Steps, no interpolation; tied scores form one threshold. For more than two classes each class against the rest,
    averaged equally. NaN without positives. Its chance level is the share of positives, so values from samples with
    different class ratios cannot be compared.

    References
    ----------
    Davis, Goadrich (2006), doi:10.1145/1143844.1143874.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.average_precision(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).round(4).values
    array([0.8333])
    """


@define(
    **_RANK | {"uses": "survival"},
    statistic="concordance",
    requires="pairs",
    aliases=("c_index", "cindex", "concordance_index", "concordance_survival", "harrell_c"),
)
def concordance(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    """Harrell's concordance for right-censored survival: the share of comparable pairs ranked rightly.

    A pair is comparable when the sample with the earlier time had its event observed; one censored at the very time
    of another's event outlives it; two events at one time are not comparable. Tied predictions count one half.
    Values of kind ``"score"`` are risks (higher = earlier event), of kind ``"value"`` predicted times. NaN without
    comparable pairs; with heavy censoring it depends on who was censored.

    References
    ----------
    Harrell, Califf, Pryor, Lee, Rosati (1982), doi:10.1001/jama.1982.03320430047030.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[3.0], [2.0], [1.0]], [5.0, 8.0, 6.0], event=[1, 1, 0], kind="score")
    >>> cs.concordance(cube).values
    array([1.])
    """
