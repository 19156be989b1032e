"""Metrics of your own: a function of labels, predictions and weights."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cvstats._check import InputError, check_option

from .base import DIRECTIONS, Metric, documented
from .scoring import REASONS

USES = ("any", "label", "score", "probability", "value", "margin", "survival")


def as_metric(
    function: Callable[..., float] | None = None,
    *,
    direction: str,
    range: tuple[float, float] = (-np.inf, np.inf),
    name: str | None = None,
    uses: str = "any",
    requires: str = "",
    ratio_free: bool = False,
    words: str = "",
) -> Any:
    """Turn ``function(label, prediction, weight) -> float`` into a metric that every protocol accepts.

    The function gets plain arrays for one configuration and repeat: labels (binary: 1 = positive class, else class
    codes or numbers), predictions (one column per class for class probabilities) and positive weights; samples
    without a prediction or with weight zero are left out. It is called once per draw, configuration and repeat, so
    it is much slower than the built-in metrics. Weights count repeated rows: a function that averages must use them, or
    bootstrap scores are wrong. A function with a keyword ``sample_weight``, as scikit-learn's have, gets them there;
    one with an argument ``event`` gets the survival status (1 observed, 0 censored). Can be used as a decorator.

    Parameters
    ----------
    function : callable, optional
        The function; omitted when used as a decorator with arguments.
    direction : {"maximize", "minimize"}
        Which values are better.
    range : tuple of float
        Smallest and largest possible value. The calibrated interval needs one end of it.
    name : str, optional
        Its name in results; the function's own by default.
    uses : str
        Kind of predictions it needs (see `Metric`); ``"any"`` by default.
    requires : str
        What the labels of a draw must hold, such as ``"classes"`` when it is undefined unless every class is present
        (see `Metric`); nothing by default.
    ratio_free : bool
        Whether the class ratio of the samples does not matter to it, as to AUC; `winner` then draws within class.
    words : str
        What people call it, for reports and figures; by default its name without underscores.

    Returns
    -------
    Metric
        The metric; or a decorator, when `function` is omitted.

    Examples
    --------
    >>> import numpy as np, cvstats as cs
    >>> @cs.as_metric(direction="minimize", range=(0, np.inf))
    ... def worst(label, prediction, weight):
    ...     return np.max(np.abs(label - prediction))
    >>> worst
    <metric worst: minimize, range [0, inf], custom>
    >>> cube = cs.as_cube([[1.0, 2.5], [2.0, 2.0]], [1.5, 2.25])
    >>> worst(cube).values
    array([0.5, 1. ])
    """
    check_option(direction, tuple(DIRECTIONS), "direction")
    check_option(uses, USES, "uses")
    check_option(requires, ("", *REASONS), "requires")
    low, high = (float(value) for value in range)
    if not low < high:
        raise InputError(f"`range` must be (low, high) with low < high; got {range!r}.")

    def make(function: Callable[..., float]) -> Metric:
        if not callable(function):
            raise InputError(f"`function` must be callable as f(label, prediction, weight); got {function!r}.")
        metric = Metric(
            name or str(getattr(function, "__name__", "metric")),
            DIRECTIONS[direction],
            (low, high),
            "custom",
            uses,
            linear=False,
            requires=requires,
            ratio_free=ratio_free,
            function=_weighted(function),
            words=words,
        )
        return documented(metric, function)

    return make if function is None else make(function)


def _weighted(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function of label, prediction, weight and event, or refuse one that cannot weigh."""
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):  # some compiled functions do not tell
        return functools.partial(_called, function, ())
    named = tuple(name for name in ("sample_weight", "event") if name in takes.parameters)
    try:
        takes.bind(*[0] * (2 if "sample_weight" in named else 3), **dict.fromkeys(named, 0))
    except TypeError as error:
        raise InputError(
            f"`function` must be callable as f(label, prediction, weight), since draws are weights; {error}."
            " One that cannot weigh can repeat: "
            "lambda y, p, w: f(np.repeat(y, w.astype(int)), np.repeat(p, w.astype(int)))."
        ) from None
    return functools.partial(_called, function, named)


def _called(
    function: Callable[..., float], named: tuple[str, ...], label: Any, prediction: Any, weight: Any, event: Any = None
) -> float:
    more = {name: value for name, value in (("sample_weight", weight), ("event", event)) if name in named}
    return function(label, prediction, *(() if "sample_weight" in named else (weight,)), **more)
