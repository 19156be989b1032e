"""What a metric is: a function that carries its direction, its range and the family that decides how it is computed."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, nearest, show, warn
from cvstats.cube.arrays import check_form, class_names
from cvstats.cube.values import on_dask
from cvstats.kernels import KERNELS, Kernel, Problem

from .scoring import fold_average, pooled_scores

Ingredients = Callable[[np.ndarray, np.ndarray, int], list[np.ndarray]]
LabelParts = Callable[[np.ndarray, int], list[np.ndarray]]
Sums = list[np.ndarray]  # over samples: of ingredients, or of the weights and what labels say
Formula = Callable[[Sums, Sums], np.ndarray]
Direction = Literal["maximize", "minimize", "target"]

REGISTRY: dict[str, Metric] = {}
MADE: dict[str, Metric] = {}  # traits of what a function makes, such as `prior_error`, by the name in results
DIRECTIONS: dict[str, Direction] = {
    name: "maximize" if name in ("maximize", "higher", "max") else "minimize"
    for name in ("maximize", "minimize", "higher", "lower", "max", "min")
}
SHARE: dict[str, Any] = {"direction": "maximize", "range": (0.0, 1.0)}  # the traits of most metrics
GIVEN = 1 / 8  # the probability that a prediction gone wrong is taken to give the truth


def _nothing(*_: Any) -> list[np.ndarray]:
    return []


def _mean(sums: Sums, labels: Sums) -> Any:
    return sums[0] / labels[0]


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """A metric: call it on a cube to get one number per configuration.

    Metrics are made by this package and by `as_metric`; nobody needs to call the class.

    Parameters
    ----------
    name : str
        What it is called in results.
    direction : {"maximize", "minimize", "target"}
        Which values are better; ``"target"``: those nearest `target`.
    range : tuple of float
        Its smallest and largest possible value.
    family : {"mean", "smooth", "rank", "custom"}
        Mean of per-sample values, smooth function of such means, rank statistic, or a function of the user's.
    uses : str
        What it needs: ``"label"``, ``"score"``, ``"probability"``, ``"value"``, ``"margin"`` (score minus
        threshold), ``"survival"`` or ``"any"``.
    binary_only : bool
        Whether it is defined for two classes only.
    linear : bool
        Whether it is linear in a sample's value, so that repeats of a sample may be averaged first.
    monotone : int
        Sign of its dependence on its first sum (in performance direction), 0 if it needs more than one.
    ratio_free : bool
        Whether the class ratio of the sample does not matter: it is computed within classes, or with class
        probabilities of its own.
    requires : str
        What the labels of a draw must hold for it to be defined: ``"classes"``, ``"positive"``, ``"negative"``,
        ``"spread"``, ``"pairs"`` or ``""``.
    statistic, multiclass : str
        Of rank metrics: which statistic, and how several classes are put together.
    ingredients, label_parts, formula : callable
        The per-sample values, the label-only values (if there are any), and the formula of their sums.
    function : callable, optional
        The user's own function.
    bind : callable, optional
        Fills in what the metric must know of a cube, such as the order of its classes; notes what readers must know.
    words : str
        What people call it; by default its name without underscores.
    aliases : tuple of str
        What other packages call it, accepted in any letter case.
    unlike : tuple of str
        Names of metrics that are near it but not the same: suggested, never taken for it.
    scale : {"unit", "log", "plain", "none"}
        Where its calibrated interval is built: on its range, on the log of the distance from its best end, as it is,
        nowhere. By default what its range allows.
    prior : tuple of float, optional
        The class probabilities at which it judges, in the order of the classes, when they are not the samples'.
    time : float, optional
        Of survival metrics: the horizon at which, or until which, it judges.
    target : float, optional
        The value that is best, where neither the largest nor the smallest is. Such a metric judges but never chooses.
    curve, at : str, tuple of float
        Of points of a curve: which one, and where. All that are asked for are computed at once.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.auc, cs.auc.direction, cs.auc.range
    (<metric auc: maximize, range [0, 1], rank>, 'maximize', (0.0, 1.0))
    """

    name: str
    direction: Direction
    range: tuple[float, float]
    family: Literal["mean", "smooth", "rank", "custom"]
    uses: str
    binary_only: bool = False
    linear: bool = True
    monotone: int = 0
    ratio_free: bool = False
    requires: str = ""
    statistic: str = ""
    multiclass: str = ""
    ingredients: Ingredients = field(default=_nothing)
    label_parts: LabelParts | None = None
    formula: Formula = field(default=_mean)
    function: Callable[..., float] | None = None
    bind: Callable[[Metric, xr.DataArray, list[str]], Metric] | None = None
    words: str = ""
    aliases: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    scale: str = ""
    prior: tuple[float, ...] | None = None
    time: float | None = None
    target: float | None = None
    curve: str = ""
    at: tuple[float, ...] = ()
    middle: Callable[..., Any] = field(init=False)  # over draws: slopes, which have a target, have no mean
    sign: int = field(init=False)  # +1 when higher is better, -1 when lower is (or neither)

    def __post_init__(self) -> None:
        sign, middle = 1 if self.direction == "maximize" else -1, np.mean if self.target is None else np.median
        best, worst = self.range[::-1] if sign > 0 else self.range
        scale = self.scale or ("none" if not np.isfinite(best) else "unit" if np.isfinite(worst) else "log")
        words = self.words or self.name.replace("_", " ")
        self.__dict__.update(sign=sign, middle=middle, scale=scale, words=words)  # the class is frozen

    def __call__(self, cube: xr.DataArray, *, average: str = "pooled") -> xr.DataArray:
        """Return the metric of each configuration; see `score`.

        Parameters
        ----------
        cube : DataArray
            Predictions made by `as_cube`.
        average : {"pooled", "fold"}
            Once over all samples, or the mean over folds of each fold's value.

        Returns
        -------
        xarray.DataArray
            One value per configuration (and batch).
        """
        return score(cube, self, average=average)

    def check_kind(self, cube: xr.DataArray) -> None:
        """Raise when the metric cannot be computed from this kind of predictions."""
        coords, uses = cube.coords.variables, self.uses
        kind, survival = str(coords["kind"].values), "event" in coords
        columns = "label_class" in cube.dims  # one for each class
        names = (class_names(cube) or ()) if columns or kind == "label" else ()
        many = columns or len(names) > 2
        wrong = ""
        if uses == "any":
            return
        if uses == "survival" and not survival:
            wrong = "needs the 'event' coordinate (1 observed, 0 censored); give as_cube(event=...)"
        elif uses == "survival":
            if "horizon" in cube.dims and "survival_" not in self.statistic and self.family != "custom":
                wrong = "ranks one prediction per sample, but the cube has several horizons "
                wrong += f"({show(coords['horizon'].values)}); pick one with cube.sel(horizon=...)"
        elif survival:
            wrong = "does not know censoring, but the cube holds survival times. Use concordance"
        elif uses == "value" and kind != "value":
            wrong = f"is for numeric predictions, but the cube has kind={kind!r}. Use accuracy or auc, say, "
            wrong += "or give as_cube(..., kind='value') when the values are numbers"
        elif uses != "value" and kind == "value":
            wrong = "is for class labels, but the cube holds numbers (kind='value'). Use mse or mae, say"
        elif uses in ("score", "margin") and kind == "label":
            wrong = "needs scores or probabilities, but the cube holds hard labels (kind='label')"
        elif uses == "probability" and kind != "probability":
            wrong = f"needs probabilities, but the cube has kind={kind!r}"
            if kind == "score" and cube.size and not on_dask(cube.variable):
                ends = (edge.reduce(cube.values, axis=None) for edge in (np.fmin, np.fmax))
                wrong += " and values from {:.17g} to {:.17g}".format(*ends)
        elif self.binary_only and many:
            wrong = f"is for two classes, but the cube has {len(names)}"
        elif uses in ("label", "margin") and not many and kind == "score" and "threshold" not in coords:
            wrong = "needs class labels" if uses == "label" else "needs the distance from the threshold"
            wrong += ", and scores have no default threshold; give as_cube(..., threshold=...)"
        if wrong:
            raise InputError(f"metric {self.name!r} {wrong}.")

    def optimism(self, naive: Any, estimate: Any) -> Any:
        """Return how much better `naive` looks than `estimate`: positive = optimistic, whatever is better."""
        if self.target is not None:
            return abs(estimate - self.target) - abs(naive - self.target)
        return self.sign * (naive - estimate)

    def kernel(self, problem: Problem, total: float) -> Kernel:
        """Return what scores a problem's configurations; `total` bounds the weight of a draw."""
        return KERNELS[self.statistic or self.family](self, problem, max(total, float(len(problem.y))))

    def error_cost(self, n_classes: int, left: float = 1.0) -> float:
        """Return what an error is taken to cost when the data hold none: 0 unless it is a mean loss of probabilities.

        An error gives the truth a probability of 1/8 and the rest to one other class; less than 1/8 if every prediction
        is so certain, the least certain of which has `left` that much to the others.
        """
        if self.family != "mean" or self.uses != "probability" or self.sign > 0:
            return 0.0
        given = min(left, GIVEN)
        y, p = np.ones(1), np.array([given])
        if n_classes > 2:
            y, p = np.zeros(1), np.array([given, 1 - given, *[0.0] * (n_classes - 2)])[:, None]
        return float(self.ingredients(y, p, n_classes)[0].item())

    def __repr__(self) -> str:
        low, high = self.range
        return f"<metric {self.name}: {self.direction}, range [{low:g}, {high:g}], {self.family}>"

    def __reduce__(self) -> Any:
        # by name where a worker can import it; a script's own metric travels by value
        module, name = self.__dict__.get("__module__"), self.__dict__.get("__qualname__", "")
        if module != "__main__" and getattr(sys.modules.get(str(module)), name, None) is self:
            return name
        return object.__new__, (Metric,), {key: value for key, value in self.__dict__.items() if key not in _HELP}


_HELP = ("__wrapped__", "__signature__")
_SIGNATURE = inspect.signature(Metric.__call__.__get__(object()))  # bound, so without `self`


def define(**traits: Any) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a function into a registered metric with its docstring.

    It returns the ingredients, from (label, prediction, number of classes); or the value, from the sums of ingredients
    that are among the traits.
    """

    def make(function: Callable[..., Any]) -> Metric:
        part: Any = {"formula" if "ingredients" in traits else "ingredients": function}
        metric = documented(Metric(name=function.__name__, **part, **traits), function)
        takes = inspect.cleandoc(Metric.__call__.__doc__ or "").partition("\n\n")[2]
        own = inspect.cleandoc(function.__doc__ or "") + "\n"
        metric.__dict__["__doc__"] = own.replace("References\n", f"{takes}\n\nReferences\n", 1)
        REGISTRY[metric.name] = metric
        return metric

    return make


def documented(metric: Metric, function: Callable[..., Any]) -> Metric:
    """Give a metric its function's name and docstring, so that help() and doctest find them."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        metric.__dict__[name] = getattr(function, name, None)
    metric.__dict__["__wrapped__"] = function
    metric.__dict__["__signature__"] = _SIGNATURE  # it is called with a cube, whatever the function takes
    return metric


def get_metric(metric: str | Metric | Callable[..., Any], argument: str = "metric") -> Metric:
    """Return the metric of a name (ours, or what other packages call it; any letter case), or the metric itself."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise InputError(
            f"`{argument}` must be a name or a metric; got {metric!r}. "
            "Wrap your own function with as_metric(f, direction=...)."
        )
    if metric in REGISTRY:
        return REGISTRY[metric]
    key = _key(metric)
    made = next((one.name for one in MADE.values() if metric == one.name or key in one.aliases), None)
    if made is not None:
        raise InputError(f"`{argument}`={metric!r} is made by a function: give {made}(...) instead of its name.")
    names = {_key(name): one for one in REGISTRY.values() for name in (one.name, one.words, *one.aliases)}
    for spelling in (key, key.partition(".")[2]):  # mlr3 says classif.auc
        if spelling in names:
            return names[spelling]
    turned = names.get(key.removeprefix("neg_"))
    if turned is not None:
        better = "lower" if turned.sign < 0 else "higher"
        raise InputError(
            f"`{argument}`={metric!r} has its sign turned round, and results here never have; "
            f"use {turned.name!r} ({better} is better)."
        )
    near = next((one.name for one in REGISTRY.values() if key in map(_key, one.unlike)), None)
    hint = f" ({near!r} is near it, but not the same)" if near else nearest(key, REGISTRY) or nearest(key, names)
    raise InputError(f"`{argument}`={metric!r} does not exist{hint}; known: {', '.join(REGISTRY)}.")


def _key(name: str) -> str:
    """Return a name without what spellings differ in: letter case, separators, scikit-learn's ending."""
    return name.strip().lower().replace("-", "_").replace(" ", "_").removesuffix("_score")


def never_chooses(metric: Metric) -> InputError:
    """Return why a metric with a target cannot choose: what is nearest it was made so, and is no better for it."""
    return InputError(
        f"metric {metric.name!r} has a target ({metric.target:g}) instead of a direction: it may judge what was "
        "chosen, but never choose. Give a metric that chooses, such as by='log_loss'."
    )


def traits_of(name: str) -> Metric | None:
    """Return the metric that has a name in results, for what it carries; None for a user's own."""
    return REGISTRY.get(name) or MADE.get(name.partition("(")[0])


def bound_metric(
    metric: str | Metric | Callable[..., Any],
    cube: xr.DataArray,
    notes: list[str] | None = None,
    *,
    any_cube: bool = False,
) -> Metric:
    """Return the metric with what it must know of the cube's classes (such as the order of a prior) filled in.

    What the reader must know of the metric on this cube goes to `notes`, else into a warning; a metric that is bound
    already has said it. `any_cube`: the caller can use what a separate-sampling cube cannot tell.
    """
    metric = get_metric(metric)
    separate = "partner" in cube.dims or ("partner" in cube.coords and cube["partner"].ndim == 0)  # or one picked out
    if separate and not any_cube:
        _refuse_separate(metric, cube)
    if metric.uses == "survival":
        metric.check_kind(cube)  # what draws must hold cannot be told without events
    if metric.bind is None:
        return metric
    said: list[str] = []
    bound = metric.bind(metric, cube, said)
    if notes is not None:
        notes.extend(said)
    elif said:
        warn(f"{'; '.join(said)}.")
    return bound


def score(cube: xr.DataArray, metric: str | Metric, *, average: str = "pooled", undefined: str = "nan") -> xr.DataArray:
    """Return the metric of every configuration.

    The estimand is the performance of each configuration fixed in advance. The metric is computed within each repeat
    and averaged over repeats. Case weights (coordinate ``weight``) count as repeated rows. Predictions that are missing
    are left out; a sample's value is then its mean over the repeats that have it.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric. One that does not fit the kind of predictions is an error.
    average : {"pooled", "fold"}
        Once over all samples; or within each fold, then the mean over folds (needs folds).
    undefined : {"nan", "skip"}
        What a fold does that lacks what the metric needs, such as a class: it makes the mean NaN, with one warning;
        or the mean is over the other folds, which the coordinate ``n_folds`` counts.

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
    check_average(average, undefined)
    check_form(cube)
    bound = bound_metric(metric, cube)
    return pooled_scores(cube, bound) if average == "pooled" else fold_average(cube, bound, undefined)


def check_average(average: str, undefined: str) -> None:
    """Raise unless both are known, and fit."""
    check_option(average, ("pooled", "fold"), "average")
    check_option(undefined, ("nan", "skip"), "undefined")
    if undefined == "skip" and average == "pooled":
        raise InputError("undefined='skip' leaves folds out of a mean over folds; give average='fold' with it.")


def metrics_of(metric: Any, by: Any, cube: xr.DataArray, notes: list[str]) -> tuple[tuple[Metric, ...], Metric]:
    """Return the metrics that judge and the one that chooses, by default the first of them."""
    several = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    if not several:
        raise InputError("`metric` is an empty list; give one metric or several.")
    judges = tuple(bound_metric(one, cube, notes) for one in several)
    names = [one.name for one in judges]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"`metric` names {show(twice)} more than once.")
    chooser = judges[0]
    if by is not None:
        given = bound_metric(get_metric(by, "by"), cube, notes)
        chooser = next((one for one in judges if one.name == given.name), given)
    if chooser.target is not None:
        raise never_chooses(chooser)
    return judges, chooser


def _refuse_separate(metric: Metric, cube: xr.DataArray) -> None:
    """Raise for what a separate-sampling cube cannot tell: ranks across models, and what depends on the class ratio."""
    where = "in a separate-sampling cube (dimension 'partner')"
    instead = "metrics that need no prior are auc, balanced_accuracy, sensitivity and specificity"
    if metric.statistic == "auc" and "partner" in cube.dims:
        return  # ranked model by model
    if metric.family in ("rank", "custom"):
        does = "ranks" if metric.family == "rank" else "may compare"
        raise InputError(
            f"metric {metric.name!r} {does} predictions of different samples, and only those of one model can be "
            f"ranked, but {where} every pair of folds has its own model. Use prior_error({{label: probability}}); "
            f"{instead}. Or give an ordinary cube."
        )
    if not metric.ratio_free:
        raise InputError(
            f"metric {metric.name!r} depends on how frequent the classes are, but {where} their ratio is the "
            "analyst's choice, not the population's. Give the population's: use the metric "
            f"at_prior({metric.name!r}, {{label: probability}}), or separate_cv(); {instead}."
        )
