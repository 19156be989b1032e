"""Metrics: functions that carry their direction, their range and the family that decides how they are computed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from ._check import InputError, check_option, nearest, plain, show

Ingredients = Callable[[np.ndarray, np.ndarray, int], list[np.ndarray]]
LabelParts = Callable[[np.ndarray, int], list[np.ndarray]]
Formula = Callable[[list[np.ndarray], list[np.ndarray]], np.ndarray]
Direction = Literal["maximize", "minimize"]

_DIRECTIONS = {"maximize": "maximize", "minimize": "minimize", "higher": "maximize", "lower": "minimize", "max": "maximize", "min": "minimize"}


def _no_ingredients(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    raise TypeError("a rank metric has no per-sample ingredients")


def _nothing(y: np.ndarray, k: int) -> list[np.ndarray]:
    return []


def _mean(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    return sums[0] / labels[0]


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric: call it on a cube to get one number per configuration.

    Attributes
    ----------
    name, direction, range
        What it is called, ``"maximize"`` or ``"minimize"``, and its smallest and largest possible value.
    family
        ``"mean"`` of per-sample values, ``"smooth"`` function of such means, ``"rank"`` statistic, or ``"custom"``.
    uses
        What it needs: ``"label"``, ``"score"``, ``"probability"``, ``"value"``, ``"margin"``, ``"survival"``, ``"any"``.
    linear
        Whether it is linear in a sample's value, so that repeats of a sample may be averaged first.
    monotone
        Sign of its dependence on its first sum (in performance direction), 0 if it needs more than one.
    requires
        What the labels of a draw must hold for it to be defined: ``"classes"``, ``"positive"``, ``"negative"``,
        ``"spread"``, ``"pairs"`` or ``""``.
    """

    name: str
    direction: Direction
    range: tuple[float, float]
    family: Literal["mean", "smooth", "rank", "custom"]
    uses: str
    binary_only: bool = False
    linear: bool = True
    monotone: int = 0
    requires: str = ""
    statistic: str = ""
    multiclass: str = ""
    ingredients: Ingredients = field(default=_no_ingredients, repr=False)
    label_parts: LabelParts = field(default=_nothing, repr=False)
    formula: Formula = field(default=_mean, repr=False)
    function: Callable[..., float] | None = field(default=None, repr=False)
    bind: Callable[[Metric, xr.DataArray], Metric] | None = field(default=None, repr=False)

    @property
    def sign(self) -> int:
        """+1 when higher is better, -1 when lower is."""
        return 1 if self.direction == "maximize" else -1

    def __call__(self, cube: xr.DataArray, *, average: str = "pooled") -> xr.DataArray:
        """Return the metric of each configuration; see `score`."""
        return score(cube, self, average=average)

    def __reduce__(self) -> Any:
        if _REGISTRY.get(self.name) is self:
            return _registered, (self.name,)
        state = {name: value for name, value in self.__dict__.items() if name not in ("__wrapped__",)}
        return _rebuild, (state,)


def _registered(name: str) -> Metric:
    return _REGISTRY[name]


def _rebuild(state: dict[str, Any]) -> Metric:
    metric = object.__new__(Metric)
    metric.__dict__.update(state)
    return metric


_REGISTRY: dict[str, Metric] = {}


def _define(**traits: Any) -> Callable[[Ingredients], Metric]:
    """Turn a function of (label, prediction, number of classes) into a registered metric with its docstring."""

    def make(function: Ingredients) -> Metric:
        metric = _document(Metric(name=function.__name__, ingredients=function, **traits), function)
        _REGISTRY[metric.name] = metric
        return metric

    return make


def _document(metric: Metric, function: Callable[..., Any]) -> Metric:
    """Give a metric its function's name and docstring, so that help() and doctest find them."""
    for name in (*functools.WRAPPER_ASSIGNMENTS, "__wrapped__"):
        metric.__dict__[name] = function if name == "__wrapped__" else getattr(function, name, None)
    return metric


def as_metric(
    function: Callable[..., float] | None = None,
    *,
    direction: str,
    range: tuple[float, float] = (-np.inf, np.inf),  # noqa: A002
    name: str | None = None,
    uses: str = "any",
    requires: str = "",
) -> Any:
    """Turn ``function(label, prediction, weight) -> float`` into a metric that every protocol accepts.

    The function gets plain arrays for one configuration and repeat: labels (binary: 1 = positive class, else class
    codes or numbers), predictions (one column per class for class probabilities) and positive weights; samples
    without a prediction or with weight zero are left out. It is called once per draw, configuration and repeat, so
    it is much slower than the built-in metrics. Can be used as a decorator.

    Parameters
    ----------
    function
        The function; omitted when used as a decorator with arguments.
    direction
        ``"maximize"`` or ``"minimize"``.
    range
        Smallest and largest possible value.
    name
        Its name in results; the function's own by default.
    uses
        Kind of predictions it needs (see `Metric`); ``"any"`` by default.
    requires
        ``"classes"`` when it is undefined unless every class is present.

    Examples
    --------
    >>> import numpy as np, cvstats as cs
    >>> @cs.as_metric(direction="minimize", range=(0, np.inf))
    ... def worst(label, prediction, weight):
    ...     return np.max(np.abs(label - prediction))
    >>> cube = cs.as_cube([[1.0, 2.5], [2.0, 2.0]], [1.5, 2.25])
    >>> worst(cube).values
    array([0.5, 1. ])
    """
    check_option(direction, tuple(_DIRECTIONS), "direction")
    low, high = (float(value) for value in range)
    if not low < high:
        raise InputError(f"`range` must be (low, high) with low < high; got {range!r}.")

    def make(function: Callable[..., float]) -> Metric:
        if not callable(function):
            raise InputError(f"`function` must be callable as f(label, prediction, weight); got {function!r}.")
        label = name or getattr(function, "__name__", "metric")
        metric = Metric(label, _DIRECTIONS[direction], (low, high), "custom", uses, linear=False, requires=requires, function=function)  # type: ignore[arg-type]
        return _document(metric, function)

    return make if function is None else make(function)


def get_metric(metric: str | Metric | Callable[..., Any]) -> Metric:
    """Return the metric of a name, or the metric itself."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in _REGISTRY:
            raise InputError(
                f"`metric`={metric!r} does not exist{nearest(metric, _REGISTRY)}; known: {', '.join(_REGISTRY)}."
            )
        return _REGISTRY[metric]
    raise InputError(
        f"`metric` must be a name or a metric; got {metric!r}. Wrap your own function with as_metric(f, direction=...)."
    )


def bound_metric(metric: str | Metric | Callable[..., Any], cube: xr.DataArray) -> Metric:
    """Return the metric with what it must know of the cube's classes (such as the order of a prior) filled in."""
    found = get_metric(metric)
    return found.bind(found, cube) if found.bind is not None else found


def score(cube: xr.DataArray, metric: str | Metric, *, average: str = "pooled") -> xr.DataArray:
    """Return the metric of every configuration.

    The metric is computed within each repeat and averaged over repeats. Case weights (coordinate ``weight``) count
    as repeated rows. Predictions that are missing are left out; a sample's value is then its mean over the repeats
    that have it.

    Parameters
    ----------
    cube
        Predictions made by `as_cube`.
    metric
        Name or metric.
    average
        ``"pooled"``: once over all samples. ``"fold"``: within each fold, then the mean over folds (needs folds).

    Returns
    -------
    xarray.DataArray
        Over ``configuration`` and the batch dims.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6]], [1, 0, 1])
    >>> cs.score(cube, "auc").values
    array([1., 0.])
    """
    from ._scoring import pooled_scores, fold_scores

    check_option(average, ("pooled", "fold"), "average")
    if average == "pooled":
        return pooled_scores(cube, metric)
    by_fold = fold_scores(cube, metric)
    return by_fold.mean([dim for dim in ("fold", "repeat") if dim in by_fold.dims], skipna=False)


# --- means of per-sample values ---------------------------------------------------------------------------------


@_define(direction="maximize", range=(0.0, 1.0), family="mean", uses="label", monotone=1)
def accuracy(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of samples whose predicted class is right.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.accuracy(cs.as_cube([[1, 0], [0, 0]], [1, 0])).values
    array([1. , 0.5])
    """
    return [p == y]


@_define(direction="minimize", range=(0.0, 1.0), family="mean", uses="label", monotone=-1)
def error_rate(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of samples whose predicted class is wrong: the mean 0-1 loss.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.error_rate(cs.as_cube([[1, 0], [0, 0]], [1, 0])).values
    array([0. , 0.5])
    """
    return [p != y]


@_define(direction="minimize", range=(0.0, 2.0), family="mean", uses="probability", monotone=-1)
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
        total += (p[code] - (y == code)) ** 2
    return [total]


@_define(direction="minimize", range=(0.0, np.inf), family="mean", uses="probability", monotone=-1)
def log_loss(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Minus the mean log probability of the true class, unclipped: a certain but wrong prediction costs infinity.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.log_loss(cs.as_cube([[0.5], [0.5]], [1, 0])).round(4).values
    array([0.6931])
    """
    if k <= 2:
        truth = np.where(y == 1, p, 1 - p)
    else:
        truth = np.take_along_axis(p, np.broadcast_to(y, p.shape[1:]).astype(np.intp)[None], axis=0)[0]
    with np.errstate(divide="ignore"):
        return [-np.log(truth)]


SMOOTHING = 8.0


@_define(direction="minimize", range=(0.0, 1.0), family="mean", uses="margin", binary_only=True, monotone=-1)
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


@_define(direction="minimize", range=(0.0, np.inf), family="mean", uses="value", monotone=-1)
def mse(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Mean squared error.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.25])
    """
    return [(p - y) ** 2]


@_define(direction="minimize", range=(0.0, np.inf), family="mean", uses="value", monotone=-1)
def mae(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Mean absolute error.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mae(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return [np.abs(p - y)]


# --- smooth functions of means ----------------------------------------------------------------------------------


def _root(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(sums[0] / labels[0])


@_define(direction="minimize", range=(0.0, np.inf), family="smooth", uses="value", linear=False, formula=_root)
def rmse(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Root mean squared error, within each repeat and then averaged.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.rmse(cs.as_cube([[1.0], [2.0]], [1.5, 2.5])).values
    array([0.5])
    """
    return [(p - y) ** 2]


def _centred(y: np.ndarray, k: int) -> list[np.ndarray]:
    shifted = y - y.mean(axis=0)  # any fixed centre gives the same result; this one avoids cancellation
    return [shifted, shifted**2]


def _explained(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    total, first, second = labels
    spread = second - first**2 / total
    return 1 - sums[0] / np.where(spread > 0, spread, np.nan)


@_define(
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
    return [(p - y) ** 2]


def _class_counts(y: np.ndarray, k: int) -> list[np.ndarray]:
    return [(y == code).astype(float) for code in range(k)]


def _hits(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    return [(p == code) & (y == code) for code in range(k)]


def _mean_recall(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    return np.mean([hit / count for hit, count in zip(sums, labels[1:], strict=True)], axis=0)


@_define(
    direction="maximize",
    range=(0.0, 1.0),
    family="smooth",
    uses="label",
    requires="classes",
    label_parts=_class_counts,
    formula=_mean_recall,
)
def balanced_accuracy(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Mean over classes of the share of that class predicted right. NaN when a class is absent.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.balanced_accuracy(cs.as_cube([[1], [1], [1], [0]], [1, 1, 0, 0])).values
    array([0.75])
    """
    return _hits(y, p, k)


def _one_class(code: int) -> tuple[LabelParts, Formula]:
    def parts(y: np.ndarray, k: int) -> list[np.ndarray]:
        return [(y == code).astype(float)]

    def share(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
        return sums[0] / labels[1]

    return parts, share


@_define(
    direction="maximize",
    range=(0.0, 1.0),
    family="smooth",
    uses="label",
    binary_only=True,
    monotone=1,
    requires="positive",
    label_parts=_one_class(1)[0],
    formula=_one_class(1)[1],
)
def sensitivity(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of the positive class predicted positive (recall). NaN without positives.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.sensitivity(cs.as_cube([[1], [0], [1]], [1, 1, 0])).values
    array([0.5])
    """
    return [(p == 1) & (y == 1)]


@_define(
    direction="maximize",
    range=(0.0, 1.0),
    family="smooth",
    uses="label",
    binary_only=True,
    monotone=1,
    requires="negative",
    label_parts=_one_class(0)[0],
    formula=_one_class(0)[1],
)
def specificity(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Share of the negative class predicted negative. NaN without negatives.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.specificity(cs.as_cube([[1], [0], [1]], [1, 0, 0])).values
    array([0.5])
    """
    return [(p == 0) & (y == 0)]


def _confusion(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    return [*_hits(y, p, k), *(p == code for code in range(k))]


def _f_measure(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    k = len(labels) - 1
    each = [2 * sums[code] / (labels[1 + code] + sums[k + code]) for code in range(k)]
    return each[1] if k == 2 else np.mean(each, axis=0)


@_define(
    direction="maximize",
    range=(0.0, 1.0),
    family="smooth",
    uses="label",
    linear=False,
    label_parts=_class_counts,
    formula=_f_measure,
)
def f1(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """F1 = 2 TP / (2 TP + FP + FN) of the positive class; the mean over classes (macro) for more than two.

    NaN when a class is neither present nor predicted.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.f1(cs.as_cube([[1], [0], [1]], [1, 1, 0])).values
    array([0.5])
    """
    return _confusion(y, p, k)


def _correlation(sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
    """Gorodkin's R_K from the confusion margins; for two classes it is Matthews' coefficient."""
    k = len(labels) - 1
    total, truth, predicted = labels[0], labels[1:], sums[k:]
    right = sum(sums[:k])
    cross = right * total - sum(t * q for t, q in zip(truth, predicted, strict=True))
    spread = (total**2 - sum(t**2 for t in truth)) * (total**2 - sum(q**2 for q in predicted))
    defined = spread > 0
    value = np.where(defined, cross / np.sqrt(np.where(defined, spread, 1.0)), 0.0)
    return np.where(total > 0, value, np.nan)


@_define(
    direction="maximize",
    range=(-1.0, 1.0),
    family="smooth",
    uses="label",
    linear=False,
    label_parts=_class_counts,
    formula=_correlation,
)
def mcc(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Matthews correlation coefficient; Gorodkin's R_K for more than two classes. 0/0 counts as 0.

    Gorodkin (2004), doi:10.1016/j.compbiolchem.2004.09.006.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.mcc(cs.as_cube([[1], [0], [1], [0]], [1, 0, 1, 0])).values
    array([1.])
    """
    return _confusion(y, p, k)


def prior_error(prior: float | Mapping[Any, float]) -> Metric:
    r"""Return the metric "error rate in a population whose class probabilities are known".

    .. math:: \varepsilon = \sum_y P(Y = y) \, \hat\varepsilon_y

    with the error of each class estimated from that class's samples alone (paper 001's equation 14). It is what to
    use when classes were sampled separately, so that their ratio in the data says nothing about the population.

    Parameters
    ----------
    prior
        ``{label: probability}``; with two classes one of them is enough. A number is the probability of the *first*
        class (the negative one of two), the paper's *c*.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1], [0], [0], [0]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.prior_error({1: 0.1, 0: 0.9})).values
    array([0.05])
    """
    given: Mapping[Any, float] | float
    if isinstance(prior, Mapping):
        given = {plain(name): float(value) for name, value in prior.items()}
        values = list(given.values())
    else:
        try:
            given = float(prior)
        except (TypeError, ValueError):
            raise InputError(
                f"`prior` must be {{label: probability}} or one number; got {prior!r}. Arrays go to separate_cv()."
            ) from None
        values = [given]
    if not all(0 <= value <= 1 for value in values):
        raise InputError(f"`prior` must hold probabilities in [0, 1]; got {prior!r}.")

    def bind(metric: Metric, cube: xr.DataArray) -> Metric:
        return replace(metric, formula=_PriorFormula(resolve_prior(given, cube)), bind=None)

    return Metric(
        "prior_error",
        "minimize",
        (0.0, 1.0),
        "smooth",
        "label",
        requires="classes",
        ingredients=_misses,
        label_parts=_class_counts,
        bind=bind,
    )


def _misses(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    return [(p != code) & (y == code) for code in range(k)]


@dataclass(frozen=True)
class _PriorFormula:
    prior: tuple[float, ...]

    def __call__(self, sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
        parts = [p * miss / count for p, miss, count in zip(self.prior, sums, labels[1:], strict=True)]
        return np.sum(np.broadcast_arrays(*parts), axis=0)


def resolve_prior(prior: float | Mapping[Any, float], cube: xr.DataArray) -> tuple[float, ...]:
    """Return the prior in the order of the cube's class codes."""
    from .cube import class_names

    names = class_names(cube)
    if names is None:
        raise InputError("`prior` is for class labels, but the cube holds numbers.")
    if not isinstance(prior, Mapping):
        if len(names) != 2:
            raise InputError(f"`prior` must be {{label: probability}} for {len(names)} classes {show(names)}; got {prior!r}.")
        return (float(prior), 1.0 - float(prior))
    stray = [name for name in prior if name not in names]
    if stray:
        raise InputError(f"`prior` names {show(stray)}, not among the classes {show(names)}.")
    absent = [name for name in names if name not in prior]
    if len(names) == 2 and len(absent) == 1:
        rest = 1.0 - sum(prior.values())
        return tuple(float(prior.get(name, rest)) for name in names)
    if absent:
        raise InputError(f"`prior` lacks the classes {show(absent)}; give the probability of each.")
    if abs(sum(prior.values()) - 1) > 1e-9:
        raise InputError(f"`prior` must add up to 1; it adds up to {sum(prior.values()):g}.")
    return tuple(float(prior[name]) for name in names)


# --- rank statistics --------------------------------------------------------------------------------------------


_RANK: dict[str, Any] = {"direction": "maximize", "range": (0.0, 1.0), "family": "rank", "uses": "score", "linear": False}


@_define(**_RANK, statistic="auc", multiclass="pairs", requires="classes")
def auc(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Area under the ROC curve: how often a positive scores above a negative, ties counting one half.

    For more than two classes Hand and Till's average over pairs of classes. Higher scores always mean the positive
    class (no direction is guessed). NaN when a class is absent. Pooling scores over folds assumes that they are
    comparable across folds; `describe_cube` tests it.

    References
    ----------
    Hanley, McNeil (1982), doi:10.1148/radiology.143.1.7063747; Hand, Till (2001), doi:10.1023/A:1010920819831.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """
    return _no_ingredients(y, p, k)


@_define(**_RANK, statistic="auc", multiclass="macro", requires="classes")
def auc_ovr(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Multi-class AUC, each class against the rest, averaged equally over classes.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc_ovr(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """
    return _no_ingredients(y, p, k)


@_define(**_RANK, statistic="auc", multiclass="weighted", requires="classes")
def auc_ovr_weighted(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Multi-class AUC, each class against the rest, averaged by the frequency of the classes.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc_ovr_weighted(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).values
    array([0.875])
    """
    return _no_ingredients(y, p, k)


@_define(**_RANK, statistic="average_precision", multiclass="macro", requires="positive")
def average_precision(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Average precision: the mean over positives of the precision at their score (steps, no interpolation).

    Tied scores form one threshold. For more than two classes each class against the rest, averaged equally.
    NaN without positives.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.average_precision(cs.as_cube([[0.9], [0.4], [0.4], [0.1]], [1, 1, 0, 0])).round(4).values
    array([0.8333])
    """
    return _no_ingredients(y, p, k)


@_define(
    direction="maximize",
    range=(0.0, 1.0),
    family="rank",
    uses="survival",
    linear=False,
    statistic="concordance",
    requires="pairs",
)
def concordance(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    """Harrell's concordance for right-censored survival: the share of comparable pairs ranked rightly.

    A pair is comparable when the sample with the earlier time had its event observed; one censored at the very time
    of another's event outlives it; two events at one time are not comparable. Tied predictions count one half.
    Values of kind ``"score"`` are risks (higher = earlier event), of kind ``"value"`` predicted times.

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
    return _no_ingredients(y, p, k)
