"""Interval methods. Each declares what it is valid for and refuses with a reason otherwise.

A method is a small frozen object with a ``name``: ``limits(evidence, level)`` returns the lower and upper limit and a
standard error. Protocols take a name, a configured object such as ``calibrated(safe_upper=True)``, or anybody's object
that has these. It may also have ``refuse(evidence)``, the reason why it does not apply (or None), ``words`` for people,
``doubt(evidence)``, what is to be said though there are limits (or None), and ``calibration(evidence)``, the
`Calibration` that a result keeps for `confint`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from cvstats._check import InputError, check_count, nearest, whole
from cvstats._results import NO_INTERVAL
from cvstats.cube.arrays import class_names, problem_on

from .calibrated_limits import Calibration, calibrated, wilson_limits
from .evidence import Evidence, Method

# whose shares Wilson's interval is for, and of what: all samples, or a class, true or predicted
SHARES = {
    "accuracy": "",
    "error_rate": "",
    "sensitivity": "true 1",
    "recall": "true 1",
    "specificity": "true 0",
    "ppv": "predicted 1",
    "precision": "predicted 1",
    "npv": "predicted 0",
}
MINIMUM = 5  # units, and samples of each class, below which no interval is given
NAMES = ("conf_low", "conf_high", "std_error", "bound_low", "bound_high")


def quantiles(values: np.ndarray, shares: list[float]) -> np.ndarray:
    """Return quantiles (type 7) along the last axis, NaN left out."""
    return np.moveaxis(np.nanquantile(values, shares, axis=-1), 0, -1)


def check_times(times: int, level: float, interval: str, draws: object = None) -> int:
    """Return how many draws to make; they are refused when too few, unless given, for what the interval needs."""
    count, least = whole(times), 1
    if draws is None and interval in ("percentile", "BCa"):
        least = int(np.ceil(round(2 / (1 - level), 6)))
    if count is None or count < least:
        count = check_count(times, "times")  # what is no number of draws at all is told as such
        raise InputError(
            f"`times`={count} is too small for a {interval} interval at level {level:g}: at least {least} draws are "
            "needed, 1000 or more are advisable."
        )
    return count


@dataclass(frozen=True)
class percentile:  # noqa: N801 - a configured method reads as a call
    r"""Percentile interval of the draws' out-of-bag values: the interval of the BBC paper.

    .. math:: \bigl[\, q_{\alpha/2}(L_1, \dots, L_B),\; q_{1 - \alpha/2}(L_1, \dots, L_B) \,\bigr]

    with :math:`\alpha` = 1 - level, :math:`L_b` the verdict of draw b, and type 7 quantiles. Around another estimate
    than their mean, as `winner`'s, all are moved by the difference and clipped to the metric's range. Valid for any
    metric and design. Too wide for most data, because a draw judges on about .37 N samples, and far too narrow near
    perfect scores: with learners refitted in every fold it covered .938 on average and .602 at worst for accuracy,
    .871 and .086 for AUC (ties to the first; .959, .742, .921, .386 at random).

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, section 3.1.

    Examples
    --------
    >>> import cvstats as cs
    >>> out = cs.bbc(cs.simulate_cube(60, 10, rng=1), "accuracy", interval=cs.percentile(), rng=1)
    >>> str(out.interval.item()), bool(out.conf_low < out.estimate < out.conf_high)
    ('percentile', True)
    """

    name = "percentile"
    words = "percentile interval of the draws"

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        if not len(evidence.values):
            return np.nan, np.nan, np.nan
        low, high = np.quantile(evidence.values, [(1 - level) / 2, (1 + level) / 2])
        shift = evidence.estimate - evidence.bbc
        if shift:
            low, high = np.clip([low + shift, high + shift], *evidence.metric.range)
        return float(low), float(high), float(np.std(evidence.values, ddof=1)) if len(evidence.values) > 1 else np.nan


@dataclass(frozen=True)
class double_bootstrap:  # noqa: N801
    r"""Bootstrap of the whole estimator: BBC is run again on every outer draw, and its quantiles make the interval.

    With :math:`L^*_a` the BBC estimate of outer draw a, the limits are the quantiles of :math:`L^*_1, \dots, L^*_A`.
    Inner out-of-bag samples are those absent by *original sample*, so duplicates of the outer draw do not leak.
    Valid for any metric with predictions in memory; costs about twenty times a plain BBC. It covered .97 with fixed
    models (N = 40, two designs), but .85 and .92 with learners refitted in every fold (two designs, 150 repetitions),
    presumably because it does not see the noise that refitting adds.

    Parameters
    ----------
    outer : int
        Outer draws, at least 40.
    inner : int
        Inner draws for each, at least 10.

    References
    ----------
    Beran (1987). Prepivoting to reduce level error of confidence sets. Biometrika 74, 457-468.
    doi:10.1093/biomet/74.3.457

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 10, rng=1)
    >>> method = cs.double_bootstrap(outer=100, inner=20)
    >>> out = cs.winner(cube, "accuracy", interval=method, times=100, rng=1)
    >>> str(out.interval.item())
    'double_bootstrap'
    """

    outer: int = 300
    inner: int = 60

    name = "double_bootstrap"
    words = "double bootstrap interval"

    def __post_init__(self) -> None:
        object.__setattr__(self, "outer", check_count(self.outer, "outer", minimum=40))
        object.__setattr__(self, "inner", check_count(self.inner, "inner", minimum=10))

    def refuse(self, evidence: Evidence) -> str | None:
        """Return why the method does not apply, or None."""
        if evidence.kept is not None:
            return "it redoes plain choices only, of one configuration by the metric that judges"
        return "it needs the predictions in memory" if evidence.cube is None else None

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from .resampled import outer_estimates

        values = outer_estimates(evidence, self.outer, self.inner)
        values = values[~np.isnan(values)]
        if len(values) < 2:
            return np.nan, np.nan, np.nan
        low, high, error = percentile().limits(replace(evidence, values=values, bbc=evidence.estimate), level)
        return min(low, evidence.estimate), max(high, evidence.estimate), error


@dataclass(frozen=True)
class wilson:  # noqa: N801
    r"""Wilson's score interval for a share of samples, of one configuration fixed in advance.

    With p the share of N samples and z the normal quantile,

    .. math:: \frac{p + z^2 / 2N \pm z \sqrt{p (1 - p) / N + z^2 / 4N^2}}{1 + z^2 / N}.

    Valid for accuracy and error rate (N all samples), sensitivity and recall (the positives), specificity (the
    negatives), positive and negative predictive value (those predicted so; with repeats their mean number) of a cube
    with one configuration, without groups and case weights. Around the best of many it covers .21 to .93 instead of
    .95: it refuses.

    References
    ----------
    Wilson (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.
    doi:10.1080/01621459.1927.10502953

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1], [0], [1], [1], [0], [1]] * 2, [1, 0, 1, 0, 0, 1] * 2)
    >>> out = cs.winner(cube, "accuracy", interval="wilson", rng=1)
    >>> round(float(out.conf_low), 4), round(float(out.conf_high), 4)
    (0.552, 0.953)
    """

    name = "wilson"
    words = "Wilson interval"

    def refuse(self, evidence: Evidence) -> str | None:
        """Return why the method does not apply, or None."""
        name, cube = evidence.metric.name, evidence.cube
        if name not in SHARES or (SHARES[name] and cube is not None and len(class_names(cube) or ()) > 2):
            several, two = ", ".join(list(SHARES)[:2]), ", ".join(list(SHARES)[2:])
            return f"it is for {several}, and for {two} of two classes, not {name}"
        lost = "it needs the predictions in memory" if SHARES[name] and cube is None else None
        return _fixed_only(evidence) or _plain_only(evidence) or lost

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from scipy.special import ndtri

        share, z = evidence.naive, float(ndtri((1 + level) / 2))
        n = self._trials(evidence)
        low, high = wilson_limits(share, n, z)
        return low, high, float(np.sqrt(share * (1 - share) / n))

    def _trials(self, evidence: Evidence) -> float:
        """Return how many samples the share is of."""
        of = SHARES[evidence.metric.name]
        if not of:
            return evidence.n
        assert evidence.cube is not None
        data = problem_on(evidence.cube, evidence.metric)
        hard = data.samples(data.rows).read("label")
        own = np.broadcast_to(data.y[data.rows, None, None], hard.shape) if of in ("true 1", "true 0") else hard
        return float(((own == int(of[-1])) & ~np.isnan(hard)).sum(axis=0).mean())


@dataclass(frozen=True)
class delong:  # noqa: N801
    r"""DeLong's interval for the AUC of one configuration fixed in advance (two classes), clipped to [0, 1].

    With :math:`s^2_1` and :math:`s^2_0` the variances of the placements of the m positives among the negatives and of
    the n negatives among the positives,

    .. math:: \hat\theta \pm z \sqrt{s^2_1 / m + s^2_0 / n}.

    Valid for one repeat, without groups and case weights. Around the best of many it covers .37 to .81 instead of .95:
    it refuses. Perfect separation has no variance, and its interval no width.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), doi:10.2307/2531595.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0, configuration=[0])  # one configuration, fixed in advance
    >>> out = cs.winner(cube, "auc", interval=cs.delong(), rng=1)
    >>> bool(out.conf_low < out.estimate < out.conf_high)
    True
    """

    name = "delong"
    words = "DeLong interval"

    def refuse(self, evidence: Evidence) -> str | None:
        """Return why the method does not apply, or None."""
        if evidence.metric.name != "auc" or evidence.cube is None or "label_class" in evidence.cube.dims:
            return f"it is for the auc of two classes, not {evidence.metric.name}"
        if evidence.cube.sizes.get("repeat", 1) > 1:
            return "it is for one repeat"
        if "partner" in evidence.cube.dims:
            return "it is for predictions of one model, not for classes sampled separately"
        return _fixed_only(evidence) or _plain_only(evidence)

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from scipy.special import ndtri

        from .resampled import delong_variance

        assert evidence.cube is not None
        error = float(np.sqrt(delong_variance(evidence.cube, evidence.metric)))
        half = float(ndtri((1 + level) / 2)) * error
        return max(0.0, evidence.naive - half), min(1.0, evidence.naive + half), error


@dataclass(frozen=True)
class bca:  # noqa: N801
    r"""Bias-corrected and accelerated bootstrap interval for one configuration fixed in advance, any metric.

    The limits are quantiles of the bootstrap scores at :math:`\Phi\bigl(z_0 + (z_0 + z) / (1 - a (z_0 + z))\bigr)`, z
    the normal quantile of either end. The bias correction :math:`z_0` counts draws equal to the estimate as half below;
    the acceleration a comes from the jackknife. It refuses among several configurations, and needs predictions in
    memory. With few distinct scores (few samples, accuracy) it is as coarse as they are.

    Parameters
    ----------
    times : int, optional
        Number of bootstrap draws; by default as many as the protocol makes (its ``times``).

    References
    ----------
    Efron (1987). Better bootstrap confidence intervals. JASA 82, 171-185. doi:10.1080/01621459.1987.10478410

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0, configuration=[0])  # one configuration, fixed in advance
    >>> out = cs.winner(cube, "auc", interval=cs.bca(times=500), times=100, rng=1)
    >>> bool(out.conf_low < out.estimate < out.conf_high)
    True
    """

    times: int | None = None

    name = "bca"
    words = "BCa bootstrap interval"

    def __post_init__(self) -> None:
        if self.times is not None:
            object.__setattr__(self, "times", check_count(self.times, "times"))

    def refuse(self, evidence: Evidence) -> str | None:
        """Return why the method does not apply, or None."""
        return _fixed_only(evidence) or ("it needs the predictions in memory" if evidence.cube is None else None)

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from .resampled import bca_limits

        times = evidence.times if self.times is None else self.times
        check_times(times, level, "BCa")
        return bca_limits(evidence, level, times)


def _fixed_only(evidence: Evidence) -> str | None:
    if evidence.one_configuration:
        return None
    if evidence.kept is not None and len(evidence.scores) == 1:
        return "it is for predictions as they were saved, and they are adjusted here; use interval='calibrated'"
    return (
        f"it is for one configuration fixed in advance, and {len(evidence.scores)} compete here; "
        "choose one with cube.sel(configuration=[...]) or use interval='calibrated'"
    )


def _plain_only(evidence: Evidence) -> str | None:
    if evidence.grouped:
        return "samples come in groups"
    return "samples carry case weights" if evidence.weighted else None


METHODS: dict[str, Callable[[], Method]] = {
    method.name: method for method in (percentile, calibrated, double_bootstrap, wilson, delong, bca)
}


def get_method(interval: Any) -> Method:
    """Return the interval method of a name, or the configured method itself, whoever made it."""
    if isinstance(interval, str):
        if interval not in METHODS:
            raise InputError(
                f"`interval`={interval!r} does not exist{nearest(interval, METHODS)}; known: {', '.join(METHODS)}."
            )
        return METHODS[interval]()
    if not (hasattr(interval, "name") and callable(getattr(interval, "limits", None))):
        raise InputError(
            f"`interval` must be one of {', '.join(METHODS)} or a configured method such as "
            f"calibrated(safe_upper=True), with a name and limits(evidence, level); got {interval!r}."
        )
    method: Method = interval() if isinstance(interval, type) else interval
    return method


def interval_limits(
    method: Method, evidence: Evidence, level: float, *, alone: bool = True
) -> tuple[dict[str, Any], str, str]:
    """Return the limits and bounds of a result, the name of their interval and, when there are none, why.

    A method that does not apply is an error for a metric `alone`; among several, others have limits. A method that has
    a ``calibration`` gives the numbers that make its limits at any level, and the result keeps them. One-sided bounds
    are the limits at 2 level - 1.
    """
    refuse, note, name = getattr(method, "refuse", None), "", evidence.metric.name
    reason = None if refuse is None else refuse(evidence)
    if reason is not None and alone:
        raise InputError(f"interval {method.name!r} does not apply: {reason}.")
    if reason is not None:
        note = f"{name} has no limits: {reason}"
    elif evidence.n < MINIMUM or evidence.smallest_class < MINIMUM:
        few = f"{evidence.n} independent samples" if evidence.n < MINIMUM else f"{evidence.smallest_class} of a class"
        note = f"{'' if alone else f'{name}: '}limits are NaN: {few} is fewer than {MINIMUM}"
    undefined = bool(note) or np.isnan(evidence.estimate)
    if not undefined and (doubt := getattr(method, "doubt", None)) is not None:
        note = doubt(evidence) or ""
    limits: dict[str, Any] = dict.fromkeys(NAMES, np.nan)
    calibration = getattr(method, "calibration", None)
    kept = None if undefined or calibration is None else calibration(evidence)
    if not undefined:
        at = partial(method.limits, evidence) if kept is None else kept.limits
        bounds = at(2 * level - 1)[:2] if level > 0.5 else (np.nan, np.nan)
        limits = dict(zip(NAMES, (*at(level), *bounds), strict=True))
    if calibration is not None:
        kept_numbers = [np.nan] * len(fields(Calibration)) if kept is None else list(vars(kept).values())
        limits["calibration"] = np.array(kept_numbers, float)
    return limits, method.name if reason is None else NO_INTERVAL, note


__all__ = [
    "METHODS", "NAMES", "Calibration", "Evidence", "Method", "bca", "calibrated", "check_times", "delong",
    "double_bootstrap", "get_method", "interval_limits", "percentile", "quantiles", "wilson",
]  # fmt: skip
