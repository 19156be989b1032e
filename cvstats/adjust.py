"""What is done with predictions before they are judged: a threshold, a recalibration, another class ratio.

An adjustment is learned from labels, predictions and weights, in every draw anew on the samples that choose, and then
applied to the samples that judge: learned once on everything it would make every later number too good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, is_number, plain, show
from cvstats.cube.arrays import class_names
from cvstats.kernels.cutting import Criterion, Cutter, paired_cuts, table_value
from cvstats.kernels.logistic import fit_line, isotonic, log_odds, on_line
from cvstats.metrics import Metric, bound_metric, get_metric, prior_in_order

TILE = 1_000_000  # numbers in an intermediate array
CHANGES = ("labels", "probabilities", "ranks")
Rule = tuple[Callable[..., np.ndarray], tuple[str, ...]]  # of predictions and then of the state by these names


@dataclass(frozen=True)
class Fitted:
    """What an adjustment learned: arrays over draws, each of which has its own column."""

    state: Mapping[str, np.ndarray]
    rules: tuple[Rule, ...]  # one after the other
    shown: tuple[str, ...] = ()
    cuts: bool = False  # whether the last rule makes labels of predictions

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers worth reporting, such as ``threshold``, ``intercept`` and ``slope``."""
        return {name: self.state[name] for name in self.shown}

    @property
    def undefined(self) -> np.ndarray:
        """Where nothing could be learned, such as from a single class."""
        lost = [value == np.array(None) if value.dtype == object else np.isnan(value) for value in self.state.values()]
        return np.asarray(np.any([one if one.ndim < 2 else one.any(axis=-1) for one in lost], axis=0))

    def apply(self, p: np.ndarray, *, cut: bool = True) -> np.ndarray:
        """Return adjusted predictions (..., n, column, r), one column for each entry of the state; NaN stays NaN.

        Without `cut` they are as they were before a threshold made labels of them.
        """
        for function, names in self.rules[:-1] if self.cuts and not cut else self.rules:
            p = function(p, *(self.state[name] for name in names))
        return p


@dataclass(frozen=True, repr=False)
class Adjustment:
    """A step between predictions and metrics that is learned from the samples that choose.

    Made by `cut`, `recalibrate`, `shift_prior` and `as_adjustment`. `name` is what results call it, `changes` what it
    moves: ``"labels"``, ``"probabilities"`` (and labels) or ``"ranks"`` (and all else).
    """

    name: str
    changes: str
    classes: tuple[Any, ...] = field(default=(0, 1), kw_only=True)  # in the order of their codes
    kind: str = field(default="probability", kw_only=True)

    def bind(self, cube: xr.DataArray) -> Adjustment:
        """Return the adjustment with the cube's classes filled in; an error if it cannot serve such a cube."""
        names = class_names(cube)
        bound = replace(self, classes=tuple(names or ()), kind=str(cube.coords["kind"].item()))
        bound.check()
        return bound

    def check(self) -> None:
        """Raise for classes and predictions that it cannot serve."""

    def require(self, *kinds: str, two: bool = True) -> None:
        """Raise unless the predictions are of one of these kinds and, with `two`, of two classes."""
        if two and len(self.classes) != 2:
            got = f"{len(self.classes)} classes" if self.classes else "numbers"
            raise InputError(f"{self.name} needs two classes; the cube has {got}.")
        if self.kind not in kinds:
            needs = " or ".join({"probability": "probabilities", "score": "scores"}[kind] for kind in kinds)
            raise InputError(f"{self.name} needs {needs}; the cube has kind={self.kind!r}.")

    def __repr__(self) -> str:
        return f"<adjustment {self.name}: changes {self.changes}>"

    @property
    def cuts(self) -> bool:
        """Whether it makes labels of predictions."""
        return isinstance(self, _Cut)

    def refuse(self, metrics: Iterable[Metric]) -> None:
        """Raise for metrics that cannot judge what it returns."""

    def affects(self, metric: Metric) -> bool:
        """Return whether a metric's value can depend on it."""
        level = 0 if metric.uses in ("label", "margin") else 2 if metric.uses == "score" else 1
        return metric.uses == "any" or CHANGES.index(self.changes) >= level

    def cutter(self, y: np.ndarray, p: np.ndarray) -> Cutter | None:
        """Return what finds the thresholds of all configurations at once and counts hits there; None if it does more.

        `y` (n,) holds codes and `p` (n, m, r) predictions.
        """
        return None

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        """Learn one adjustment for every draw on its own column, or all on the same.

        `y` (n,) holds codes, `p` (n, draw or 1, r) or (k, n, draw or 1, r) predictions (NaN is skipped) and `weights`
        (draw, n) those of the samples that choose. What cannot be learned, such as from a single class, is NaN.
        """
        raise NotImplementedError


def cut(
    criterion: str | Metric | None = None,
    *,
    sensitivity: float | None = None,
    specificity: float | None = None,
    cost: Mapping[Any, float] | None = None,
) -> Adjustment:
    """Return the adjustment "predict the positive class above the best threshold".

    The threshold lies midway between two neighbouring distinct scores that have weight, or at an end: -inf makes every
    prediction positive, inf none. One threshold serves all repeats. Of thresholds that are equally good the one nearest
    .5 is taken, then the smaller; of scores that are no probabilities the lower median of them. It is NaN where the
    samples that choose hold one class only. Metrics of scores and probabilities ignore it.

    Parameters
    ----------
    criterion : str or Metric, optional
        What the threshold maximises (a loss: minimises): ``"youden"`` or any metric of predicted classes, such as
        ``"f1"``. Exactly one of the four arguments must be given.
    sensitivity, specificity : float, optional
        The least sensitivity (specificity); the threshold then maximises the other.
    cost : dict, optional
        ``{label: cost of missing it}`` for both classes; the threshold minimises the total cost.

    Returns
    -------
    Adjustment
        For `adjust=`. Results then have the variable ``threshold``.

    References
    ----------
    Youden (1950), doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3.

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats import cut
    >>> y, p = np.array([0, 0, 1, 0, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    >>> learned = cut("youden").fit(y, p[:, None, None], np.ones((1, 5), int))
    >>> learned.parameters["threshold"]
    array([0.25])
    >>> cut(cost={1: 1, 0: 10})
    <adjustment cut(cost={1: 1, 0: 10}): changes labels>
    """
    given = {"criterion": criterion, "sensitivity": sensitivity, "specificity": specificity, "cost": cost}
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) != 1:
        got = ", ".join(given) or "none"
        raise InputError(f"`cut` takes exactly one of criterion, sensitivity, specificity and cost; got {got}.")
    ((form, value),) = given.items()
    if form == "criterion":
        metric = get_metric(value, "criterion")  # type: ignore[arg-type]
        if metric.uses != "label":
            raise InputError(
                f"`cut` needs a metric of predicted classes, such as 'youden' or 'f1'; {metric.name!r} is computed "
                "from the predictions themselves and does not depend on a threshold."
            )
        return _Cut(f"cut({metric.name})", "labels", form, metric)
    if form == "cost":
        if not isinstance(value, Mapping) or not all(_positive(one) for one in value.values()):
            raise InputError(f"`cost` must be {{label: cost of missing it}} with positive costs; got {value!r}.")
        costs = {plain(name): plain(one) for name, one in value.items()}
        return _Cut(f"cut(cost={costs})", "labels", form, costs)
    if not _positive(value) or value > 1:  # type: ignore[operator]
        raise InputError(f"`{form}` must be a number above 0 and at most 1; got {value!r}.")
    return _Cut(f"cut({form}={value})", "labels", form, float(value))  # type: ignore[arg-type]


def _positive(value: object) -> bool:
    return is_number(value) and 0 < value < np.inf


def as_written(one: float, other: float) -> tuple[float, float]:
    """Return two whole numbers in the ratio of two decimals, so that sums of multiples are exact.

    >>> as_written(0.1, 0.3)
    (1.0, 3.0)
    """
    ratio = Fraction(repr(float(one))) / Fraction(repr(float(other)))
    small = max(ratio.numerator, ratio.denominator) < 2**20
    return (float(ratio.numerator), float(ratio.denominator)) if small else (float(one), float(other))


@dataclass(frozen=True, repr=False)
class _Cut(Adjustment):
    form: str
    value: Any

    def check(self) -> None:
        self.require("score", "probability")
        self.criterion()

    def bind(self, cube: xr.DataArray) -> Adjustment:
        value = bound_metric(self.value, cube, []) if isinstance(self.value, Metric) else self.value
        return super(_Cut, replace(self, value=value)).bind(cube)

    def criterion(self) -> Criterion:
        """Return what the kernel maximises."""
        if self.form == "cost":
            if set(self.value) != set(self.classes):
                raise InputError(f"`cost` must name the classes {show(self.classes)}; got {show(self.value)}.")
            return Criterion("linear", *as_written(self.value[self.classes[1]], self.value[self.classes[0]]))
        if self.form != "criterion":
            return Criterion(self.form, *as_written(self.value, 1.0))
        name = self.value.name
        ours = name in _FORMS and get_metric(name) is self.value
        return Criterion(_FORMS[name]) if ours else Criterion("function", function=partial(table_value, self.value))

    @property
    def nearest(self) -> float | None:
        """Where ties go; None: to the lower median."""
        return 0.5 if self.kind == "probability" else None

    def cutter(self, y: np.ndarray, p: np.ndarray) -> Cutter:
        self._refuse_infinite(p)
        return Cutter(y, p, self.criterion(), self.nearest)

    def _refuse_infinite(self, p: np.ndarray) -> None:
        if np.isinf(p).any():
            raise InputError(f"{self.name} needs finite predictions: no threshold lies between infinite ones.")

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        if p.shape[1] == 1 != len(weights):
            threshold = self.cutter(y, p).cuts(weights).threshold[:, 0]
        else:
            self._refuse_infinite(p)
            threshold = paired_cuts(y, p, weights, self.criterion(), self.nearest).threshold
        return Fitted({"threshold": threshold}, ((_above, ("threshold",)),), ("threshold",), cuts=True)


_FORMS = {name: name for name in ("youden", "f1", "mcc")} | {"balanced_accuracy": "youden"}  # of metrics, by name
_FORMS |= dict.fromkeys(("accuracy", "error_rate"), "linear")


def _above(p: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Return class codes, 1 strictly above the threshold."""
    limit = threshold[..., None]
    return np.where(np.isnan(p) | np.isnan(limit), np.nan, p > limit)


def recalibrate(method: str = "logistic") -> Adjustment:
    r"""Return the adjustment "map the probabilities so that they agree with the labels", for two classes.

    .. math:: \operatorname{logit} p' = a + b \operatorname{logit} p, \qquad b \ge 0

    by maximum likelihood (``"logistic"``), with :math:`b = 1` (``"intercept"``), or the best non-decreasing map
    (``"isotonic"``). One map serves all repeats. Probabilities are kept 2^-52 away from 0 and 1 first.

    A slope that would be negative is 0, which makes every prediction the share of positives. When a threshold separates
    the classes the likelihood has no maximum: the slope is then as large as it needs to be for the samples next to the
    gap to be predicted with a probability of 2^-52 of being wrong. Nothing can be learned from one class: NaN.

    Parameters
    ----------
    method : {"logistic", "intercept", "isotonic"}
        The family of maps. An isotonic map is linear between the predictions it was learned from and flat beyond them;
        it makes ties, so it counts as changing ranks, needs a few hundred samples, and is fitted one draw and
        configuration at a time (scipy's ``isotonic_regression``), much slower than the others.

    Returns
    -------
    Adjustment
        For `adjust=`. Results then have the variables ``intercept`` and ``slope``, ``intercept``, or none.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Zadrozny, Elkan (2002), doi:10.1145/775047.775151.

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats import recalibrate
    >>> y, p = np.array([0, 1, 0, 1, 1]), np.array([0.01, 0.2, 0.3, 0.4, 0.9])
    >>> learned = recalibrate("intercept").fit(y, p[:, None, None], np.ones((1, 5), int))
    >>> learned.apply(p[:, None, None])[:, 0, 0].round(2)
    array([0.05, 0.54, 0.67, 0.76, 0.98])
    """
    check_option(method, ("logistic", "intercept", "isotonic"), "method")
    name = f"recalibrate({method})"
    if method == "isotonic":
        return _Mapping(name, "ranks", isotonic)
    return _Logistic(name, "probabilities", method == "logistic")


@dataclass(frozen=True, repr=False)
class _Logistic(Adjustment):
    free: bool  # whether the slope is learned too

    def check(self) -> None:
        self.require("probability")

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        n, _, r = p.shape
        label = np.repeat(np.asarray(y, float), r)
        line = np.empty((2, len(weights)))
        step = max(1, TILE // max(1, n * r))
        for start in range(0, len(weights), step):
            block = slice(start, start + step)
            columns = (p if p.shape[1] == 1 else p[:, block]).transpose(1, 0, 2).reshape(-1, n * r)
            w = np.where(np.isnan(columns), 0.0, np.repeat(weights[block].astype(float), r, axis=1))
            line[:, block] = fit_line(label, log_odds(np.where(np.isnan(columns), 0.5, columns)), w, free=self.free)
        state = dict(zip(("intercept", "slope"), line, strict=True))
        return Fitted(state, ((on_line, tuple(state)),), ("intercept", "slope") if self.free else ("intercept",))


def shift_prior(to: Mapping[Any, float], from_prior: Mapping[Any, float] | None = None) -> Adjustment:
    r"""Return the adjustment "probabilities for a population with another class ratio".

    .. math:: p'_k \propto p_k \, \frac{\pi_k}{\pi^{0}_k}

    with :math:`\pi` the class probabilities of the population and :math:`\pi^0` those of the data that the models were
    trained on. It is right when the classes themselves look the same in both; it moves no rank of two classes. NaN when
    a class is absent from the samples that choose.

    Parameters
    ----------
    to : dict
        ``{label: probability}`` of the population; with two classes one of them is enough.
    from_prior : dict, optional
        The same of the training data; by default the (weighted) class ratio of the samples that choose, learned anew in
        every draw.

    Returns
    -------
    Adjustment
        For `adjust=`. The judged metric must be at the same class ratio.

    References
    ----------
    Elkan (2001). The foundations of cost-sensitive learning. IJCAI 17, 973-978; Saerens, Latinne, Decaestecker (2002),
    doi:10.1162/089976602753284446.

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats import shift_prior
    >>> y, p = np.array([0, 1, 0, 1]), np.array([0.1, 0.5, 0.3, 0.9])
    >>> learned = shift_prior({1: 0.1}).fit(y, p[:, None, None], np.ones((1, 4), int))
    >>> learned.apply(p[:, None, None])[:, 0, 0].round(3)
    array([0.012, 0.1  , 0.045, 0.5  ])
    """
    given, origin = _probabilities(to, "to"), None if from_prior is None else _probabilities(from_prior, "from_prior")
    text = f"{given}" if origin is None else f"{given}, from_prior={origin}"
    return _Shift(f"shift_prior({text})", "probabilities", given, origin)


def _probabilities(prior: Any, argument: str) -> dict[Any, float]:
    if not isinstance(prior, Mapping) or not prior or not all(_positive(v) and v <= 1 for v in prior.values()):
        raise InputError(f"`{argument}` must be {{label: probability}}, each above 0; got {prior!r}.")
    return {plain(name): float(value) for name, value in prior.items()}


@dataclass(frozen=True, repr=False)
class _Shift(Adjustment):
    to: Mapping[Any, float]
    origin: Mapping[Any, float] | None

    def check(self) -> None:
        self.require("probability", two=False)
        for argument, prior in {"to": self.to, "from_prior": self.origin}.items():
            if prior is not None and min(prior_in_order(prior, self.classes, argument)) <= 0:
                raise InputError(f"`{argument}` must leave every class a probability above 0; got {dict(prior)}.")

    def refuse(self, metrics: Iterable[Metric]) -> None:
        to = prior_in_order(self.to, self.classes, "to")
        for metric in metrics:
            prior = getattr(metric, "prior", None)
            if prior is None and not metric.ratio_free and self.affects(metric):
                raise InputError(
                    f"{self.name} makes probabilities for another class ratio than that of the samples, at which "
                    f"metric {metric.name!r} would judge them; give a metric at the same prior: at_prior(metric, ...)."
                )
            if prior is not None and not np.allclose(prior, to, rtol=0, atol=1e-9):
                raise InputError(f"{self.name} and metric {metric.name!r} are at different class ratios.")

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        to = np.array(prior_in_order(self.to, self.classes, "to"))
        if self.origin is None:
            share = np.stack([weights @ (y == code) for code in range(len(to))], axis=-1).astype(float)
        else:
            share = np.broadcast_to(prior_in_order(self.origin, self.classes, "from_prior"), (len(weights), len(to)))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where((share > 0).all(axis=1, keepdims=True), to / share, np.nan)
        return Fitted({"factor": factor}, ((_shifted, ("factor",)),))


def _shifted(p: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return probabilities times a factor for each class (column, class), made to add up to 1."""
    if p.ndim == 3:
        one, other = (factor[..., code, None] for code in (1, 0))
        return np.asarray(p * one / (p * one + (1 - p) * other))
    raw = p * np.moveaxis(factor, -1, 0)[:, None, ..., None]
    return np.asarray(raw / raw.sum(axis=0))


def as_adjustment(fit: Callable[..., Any], *, name: str | None = None) -> Adjustment:
    """Turn ``fit(label, prediction, weight) -> callable(prediction) -> prediction`` into an adjustment.

    The function gets plain arrays for one configuration, repeats pooled: labels (binary: 1 = positive class, else class
    codes or numbers), predictions (one column per class for class probabilities) and positive weights, and returns
    what maps predictions of that form. It is called once per draw and configuration, and counts as changing ranks.

    Parameters
    ----------
    fit : callable
        Learns the map.
    name : str, optional
        What results call it; the function's own name by default.

    Returns
    -------
    Adjustment
        For `adjust=`.

    References
    ----------
    Van Calster, McLernon, van Smeden, Wynants, Steyerberg (2019), doi:10.1186/s12916-019-1466-7.

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats import as_adjustment
    >>> def centre(label, prediction, weight):
    ...     shift = np.average(label - prediction, weights=weight)
    ...     return lambda prediction: prediction + shift
    >>> as_adjustment(centre)
    <adjustment centre: changes ranks>
    """
    if not callable(fit):
        raise InputError(f"`fit` must be callable as fit(label, prediction, weight); got {fit!r}.")
    return _Mapping(name or str(getattr(fit, "__name__", "adjustment")), "ranks", fit, any_kind=True)


@dataclass(frozen=True, repr=False)
class _Mapping(Adjustment):
    learn: Callable[..., Any]
    any_kind: bool = False

    def check(self) -> None:
        if not self.any_kind:
            self.require("probability")

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        r, wide = p.shape[-1], p.shape[-2] > 1
        label, maps = np.repeat(y, r), np.empty(len(weights), object)  # None where there is nothing to learn from
        for b, row in enumerate(weights):
            (column, known), weight = _rows(p[..., b if wide else 0, :]), np.repeat(row, r)
            some = known & (weight > 0)
            if not some.any():
                continue
            maps[b] = self.learn(label[some], column[some], weight[some])
            if not callable(maps[b]):
                raise InputError(f"adjustment {self.name!r} must return a function of predictions; got {maps[b]!r}.")
        mapped = partial(_mapped, name=self.name, unit=self.kind == "probability")
        return Fitted({"map": maps}, ((mapped, ("map",)),))


def _rows(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, r) as (n * r,), and (k, n, r) as (n * r, k); and which rows are known."""
    flat = column.reshape(-1 if column.ndim == 2 else (len(column), -1)).T
    return flat, ~np.isnan(flat if flat.ndim == 1 else flat.sum(axis=1))


def _mapped(p: np.ndarray, map: np.ndarray, name: str, unit: bool) -> np.ndarray:
    """Return every column through its own map."""
    out = np.full(p.shape, np.nan)
    for j, one in enumerate(map):
        column, some = _rows(p[..., j, :])
        if one is None or not some.any():
            continue
        value = np.asarray(one(column[some]), float)
        if value.shape != column[some].shape:
            raise InputError(
                f"adjustment {name!r} must return predictions of the shape it gets, {column[some].shape}; "
                f"got {value.shape}."
            )
        if unit and not ((value >= 0) & (value <= 1)).all():
            raise InputError(f"adjustment {name!r} must return probabilities; got values outside [0, 1].")
        whole = np.full(column.shape, np.nan)
        whole[some] = value
        out[..., j, :] = whole.T.reshape(p[..., j, :].shape) if column.ndim == 2 else whole.reshape(p.shape[0], -1)
    return out


def in_turn(adjustments: Iterable[Adjustment]) -> Adjustment:
    """Return one adjustment that applies several, each learned from what those before it return."""
    steps = tuple(adjustments)
    wrong = [step for step in steps if not isinstance(step, Adjustment)]
    if wrong or not steps:
        got = repr(wrong[0]) if wrong else "none"
        makers = "cut(), recalibrate(), shift_prior() and as_adjustment()"
        raise InputError(f"`adjust` must be one or several of {makers}; got {got}.")
    if sum(isinstance(step, _Logistic) for step in steps) > 1:
        raise InputError("`adjust` recalibrates twice; one logistic map after another is one logistic map.")
    early = [step.name for step in steps[:-1] if isinstance(step, _Cut)]
    if early:
        raise InputError(f"{early[0]} makes labels of predictions, so it must be the last adjustment.")
    if len(steps) == 1:
        return steps[0]
    changes = max((step.changes for step in steps[:-1]), key=CHANGES.index)
    return _InTurn(", ".join(step.name for step in steps), max(changes, steps[-1].changes, key=CHANGES.index), steps)


@dataclass(frozen=True, repr=False)
class _InTurn(Adjustment):
    steps: tuple[Adjustment, ...]

    @property
    def cuts(self) -> bool:
        return self.steps[-1].cuts

    def bind(self, cube: xr.DataArray) -> Adjustment:
        steps = tuple(step.bind(cube) for step in self.steps)
        return replace(self, steps=steps, classes=steps[0].classes, kind=steps[0].kind)

    def refuse(self, metrics: Iterable[Metric]) -> None:
        for step in self.steps:
            step.refuse(metrics)

    def fit(self, y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> Fitted:
        state: dict[str, np.ndarray] = {}
        rules: list[Rule] = []
        shown: list[str] = []
        for number, step in enumerate(self.steps):
            one = step.fit(y, p, weights)
            if number < len(self.steps) - 1:
                p = one.apply(np.repeat(p, len(weights), axis=-2) if p.shape[-2] == 1 else p)
            names = {name: name if name not in state else f"{name}_{number}" for name in one.state}
            state.update({names[name]: value for name, value in one.state.items()})
            function, given = one.rules[0]
            rules.append((function, tuple(names[name] for name in given)))
            shown += [names[name] for name in one.shown]
        return Fitted(state, tuple(rules), tuple(shown), one.cuts)
