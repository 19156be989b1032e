"""The calibrated interval: its constants, the scale it is built on, and the few numbers that give it at any level.

Constants and rules were tuned on refitted learners; see the coverage study in the docs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvstats._check import InputError, check_option

if TYPE_CHECKING:
    from cvstats.metrics import Metric

    from .evidence import Evidence


# By the kind of score: a share of samples or pairs, a loss of probabilities, a loss of numbers (with heavier tails).
KAPPA = {"score": 1.2, "probability": 1.35, "value": 2.25}
# Refitting varies what is judged, and no saved prediction shows it. With many configurations the variance of selection
# stands in for it; with one or two, or with samples in groups, nothing does.
FEW = {"score": 1.75, "probability": 2.25, "value": 2.25}
LESS = {"bbc": 1.0, "bbc_cross_repeat": 0.9, "bbc_ncv": 0.9}  # repeats and inner predictions average some of it away
FIXED = {"score": 1.0, "probability": 1.35, "value": 1.35}  # models that are never refitted
# Models of all samples are better than those of folds. Errors fall like n^-1/2 up to a hundred samples, and ever more
# slowly beyond, as what is left is noise.
LEARNING, LEARNERS = 0.5, 100
# Wilson's limit next to perfection is too low for one, two or three errors; that of the Poisson distribution is not.
RARE = 3.0
PAIRS = 3.0  # n_eff of what is averaged over pairs may be so many times N
# The squared coefficient of variation of squared errors is 2 when errors are normal. Above twice that few samples make
# up the mean. By metric, what turns the relative variance of the score, times N, into it.
TAIL, TAILED = 4.0, {"mse": 1.0, "rmse": 4.0}
ROUNDING = 1e-24  # a variance on the unit scale that is none


@dataclass(frozen=True)
class Constants:
    """How wide a calibrated interval is."""

    kappa: float  # inflation of the sampling variance
    psi: float  # weight of the selection variance
    rate: float = 0.0  # errors fall like the number of samples to minus this power
    safe: str = "never"  # when the upper limit heeds the naive score: "never", "standing out" or "always"
    naive: float = KAPPA["score"]  # inflation of the limit at the naive score when it is heeded in full


def constants(evidence: Evidence) -> Constants:
    """Return the constants for the kind of metric and the estimator."""
    metric, estimator = evidence.metric, evidence.estimator
    loss, simple = metric.scale != "unit", evidence.kept is None
    kind = "score" if not loss else "value" if metric.uses == "value" else "probability"
    if estimator == "bbc_x":
        return Constants(FIXED[kind], 0.5)
    few = (simple and len(evidence.scores) <= 2) or (evidence.grouped and not loss)
    kappa = LESS[estimator] * (FEW if few else KAPPA)[kind]
    if metric.scale == "plain" or metric.target is not None:
        return Constants(kappa, 1.0)
    shares = not loss and metric.family != "rank"
    # What pools folds, or learns or mixes, errs on the low side, and so does selection among losses that are near zero.
    safe = "never" if estimator == "bbc_ncv" else "standing out" if shares and simple else "always"
    ended = np.isfinite(metric.range[int(metric.sign > 0)]) and not metric.curve  # a point of a curve is no score
    rate = ended * LEARNING * min(1.0, float(np.sqrt(LEARNERS / evidence.samples)))
    return Constants(kappa, 1.0, rate, safe, KAPPA[kind])


def wilson_limits(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score limits for a share observed on n trials; n need not be whole, z not a normal quantile."""
    widen = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / widen
    half = z / widen * np.sqrt(max(share * (1 - share), 0.0) / n + z * z / (4 * n * n))
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


Spread = tuple[float, float, float]  # on the unit scale n_eff, kappa and psi V_s; on the log scale a standard error


@dataclass(frozen=True)
class UnitScale:
    """A metric with two ends, mapped to [0, 1] with 1 the best: Wilson's limits.

    At a centre c they are those of n(c) = c (1 - c) / (kappa c (1 - c) / n_eff + psi V_s) samples.
    """

    best: float
    worst: float

    def forward(self, value: Any) -> Any:
        """Return a value on the scale."""
        return (value - self.worst) / (self.best - self.worst)

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        return self.worst + value * (self.best - self.worst)

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> Spread:
        """Return the spread that the evidence implies."""
        width2 = (self.best - self.worst) ** 2
        extra = psi * variance_of(evidence.chosen) / width2 if psi else 0.0
        if evidence.kept is not None:
            n, noise = float(evidence.n), variance_of(evidence.kept) / width2
            c = min(max(self.forward(evidence.naive), 1 / (2 * n)), 1 - 1 / (2 * n))
            return max(c * (1 - c) / noise, 1.0) if noise > ROUNDING else float(evidence.smallest_class), kappa, extra
        theta = self.forward(evidence.scores)
        most = evidence.samples * (PAIRS if evidence.metric.family == "rank" else 1.0)
        sizes = []
        # Poor configurations may never call the rare class and have little noise: those that won count by themselves.
        for share in (np.ones(len(theta)), np.ones(len(theta)) if evidence.wins is None else evidence.wins):
            noise, wobble = (
                float(np.nansum(share * part)) for part in (evidence.variance / width2, theta * (1 - theta))
            )
            if noise > 0 and wobble > 0:
                sizes.append(min(most, max(wobble / noise, 1.0)))
        return min(sizes, default=float(evidence.n)), kappa, extra

    def size(self, spread: Spread, centre: float) -> float:
        """Return n(c)."""
        n_eff, kappa, extra = spread
        c = min(max(centre, 1 / (2 * n_eff)), 1 - 1 / (2 * n_eff))
        wobble = c * (1 - c)
        return wobble / (kappa * wobble / n_eff + extra)

    def limits(self, spread: Spread, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t, on the scale."""
        low, high = wilson_limits(min(max(centre, 0.0), 1.0), self.size(spread, centre), t)
        return (0.0 if centre * spread[0] < 1 else low), high  # less than one hit may as well be none

    def error(self, spread: Spread, centre: float) -> float:
        """Return the standard error at a centre in the metric's unit."""
        c = min(max(centre, 0.0), 1.0)
        return float(np.sqrt(c * (1 - c) / self.size(spread, centre))) * abs(self.best - self.worst)


@dataclass(frozen=True)
class LogScale:
    """A loss without an upper end (or a score without a lower end): minus the log of its distance from perfection."""

    best: float
    worst: float  # infinite

    def loss(self, value: Any) -> Any:
        """Return how far a value is from the best."""
        return self.best - value if self.best > self.worst else value - self.best

    def forward(self, value: float) -> float:
        """Return a value on the scale."""
        loss = self.loss(value)
        return -float(np.log(loss)) if loss > 0 else np.inf

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        return self.best + float(np.copysign(np.exp(-value), self.worst))

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> Spread:
        """Return the spread that the evidence implies."""
        loss, centre = self.loss(evidence.scores), self.loss(evidence.estimate)
        if evidence.kept is not None:
            naive = self.loss(evidence.naive)
            if not (centre > 0 and naive > 0):
                return 0.0, np.nan, np.nan
            own, extra = variance_of(evidence.kept) / naive**2, variance_of(evidence.chosen) / centre**2
            return float(np.sqrt(kappa * own + psi * extra)), np.nan, np.nan
        good = np.isfinite(loss) & np.isfinite(evidence.variance)
        square = float((loss[good] ** 2).sum())
        if square <= 0 or not centre > 0:
            return 0.0, np.nan, np.nan
        own = float(evidence.variance[good].sum()) / square
        if evidence.wins is not None:  # poor configurations have large losses and another relative noise
            used = good & (loss > 0)
            share = evidence.wins[used]
            if share.sum() > 0:
                own = float((share * evidence.variance[used] / loss[used] ** 2).sum() / share.sum())
        return float(np.sqrt(kappa * own + psi * variance_of(evidence.chosen) / centre**2)), np.nan, np.nan

    def limits(self, spread: Spread, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t, on the scale."""
        return centre - t * spread[0], centre + t * spread[0]

    def error(self, spread: Spread, centre: float) -> float:
        """Return the standard error at a centre in the metric's unit."""
        return float(np.exp(-centre)) * spread[0]


@dataclass(frozen=True)
class PlainScale:
    """A metric that can be any number: Student's limits, as it is."""

    best: float  # infinite
    worst: float

    def forward(self, value: float) -> float:
        """Return a value on the scale."""
        return value

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        return value

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> Spread:
        """Return the spread that the evidence implies."""
        own = evidence.variance[:1] if evidence.kept is None else np.array([variance_of(evidence.kept)])
        return float(np.sqrt(kappa * own[0] + psi * variance_of(evidence.chosen))), np.nan, np.nan

    def limits(self, spread: Spread, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t."""
        return centre - t * spread[0], centre + t * spread[0]

    def error(self, spread: Spread, centre: float) -> float:
        """Return the standard error."""
        return spread[0]


def variance_of(values: np.ndarray) -> float:
    """Return the variance over draws; of the full-data scores of the draws' decisions it is V_s."""
    known = values[np.isfinite(values)]
    return float(known.var(ddof=1)) if len(known) > 1 else 0.0


def scale_of(metric: Metric) -> UnitScale | LogScale | PlainScale:
    """Return the scale of a metric that has one."""
    best, worst = metric.range[::-1] if metric.sign > 0 else metric.range
    if metric.scale == "log":  # a ratio that is better when larger has its finite end at zero
        return LogScale(best, -metric.sign * np.inf) if np.isfinite(best) else LogScale(worst, best)
    return (UnitScale if metric.scale == "unit" else PlainScale)(best, worst)


@dataclass(frozen=True)
class Calibration:
    """All that calibrated limits at any level depend on: numbers only, so that a result can carry them."""

    best: float  # the ends of the scale
    worst: float
    low: float  # the metric's range
    high: float
    first: float  # the spread: n_eff, kappa and psi V_s on the unit scale, the standard error on the log scale
    kappa: float
    extra: float
    naive_first: float  # the first number of the spread without inflation and selection
    n: float  # independent units
    estimate: float
    below: float  # the centre of the lower limit
    towards: float  # where between BBC and the naive score the upper limit is centred too, or NaN
    misses: float  # how many samples the winner misses if they are few, or NaN
    unseen: float  # by a mean loss of probabilities what one more would cost; else 0
    lift: float = 0.0  # share of the way to perfection that the upper limit moves up

    def limits(self, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from scipy.special import betaincinv, gammaincinv, stdtrit

        kind = UnitScale if np.isfinite(self.worst) else LogScale if np.isfinite(self.best) else PlainScale
        scale = kind(self.best, self.worst)
        spread = self.first, self.kappa, self.extra
        t = float(stdtrit(self.n - 1, (1 + level) / 2))
        centre = scale.forward(self.estimate)
        low, high = scale.limits(spread, scale.forward(self.below), t)[0], scale.limits(spread, centre, t)[1]
        if not np.isnan(self.towards):
            high = max(high, scale.limits((self.naive_first, 1.0, 0.0), scale.forward(self.towards), t)[1])
        few = not np.isnan(self.misses)
        if few and kind is UnitScale:
            high = max(high, 1 - float(gammaincinv(max(self.misses, 1e-9), (1 - level) / 2)) / self.first)
        worse, better = scale.back(min(low, centre)), scale.back(max(high, centre))
        better = better + self.lift * (self.best - better) if self.lift else better
        ends = np.clip(sorted((worse, better)), self.low, self.high)
        if few and self.unseen:
            # So few errors among n samples are likely enough up to an error rate of Clopper and Pearson's limit. What
            # new samples cost beyond the errors there were, the data do not show.
            share = float(betaincinv(self.misses + 1, self.n - self.misses, (1 + level) / 2)) - self.misses / self.n
            ends[1] = max(ends[1], self.estimate + share * (self.unseen - self.estimate))
        return float(ends[0]), float(ends[1]), scale.error(spread, centre)


def standing_out(evidence: Evidence) -> float:
    """Return how far the winner stands out, from 0 (won no more draws than the next) to 1 (four times as many)."""
    wins = evidence.wins
    if wins is None or len(wins) < 2:
        return 0.0
    best = int(np.argmax(evidence.metric.sign * evidence.scores))
    own, next_best = float(wins[best]), float(np.delete(wins, best).max())
    if own <= 0:
        return 0.0
    return float(np.clip((own / (own + next_best) - 0.5) / 0.3, 0.0, 1.0))


def bbc_x(evidence: Evidence) -> float:
    """Return BBC-X: BBC moved back by the part of its pessimism that fixed models show. An experimental heuristic.

    With m the mean score over configurations, D = max(BBC - m, 0) and rho = D / (CVT - m), all in performance
    direction, BBC-X = m + 4 D / (rho + sqrt(rho^2 + 8)). It lies between BBC and (CVT + 2 BBC) / 3, and depends on
    how many poor configurations were tried through m.
    """
    sign = evidence.metric.sign
    scores = evidence.scores[np.isfinite(evidence.scores)]
    naive, bbc = sign * evidence.naive, sign * evidence.bbc
    mean = sign * float(scores.mean()) if len(scores) else np.nan
    if evidence.one_configuration or not mean < naive:
        return evidence.naive
    gap = max(bbc - mean, 0.0)
    rho = min(gap / (naive - mean), 1.0)
    return float(sign * (mean + 4 * gap / (rho + np.sqrt(rho**2 + 8))))


@dataclass(frozen=True)
class calibrated:  # noqa: N801
    r"""Calibrated interval: Wilson's limits at an effective sample size that counts noise of data and of selection.

    On the metric's range mapped to [0, 1] (higher = better), with scores :math:`\theta_j`, their bootstrap variances
    :math:`v_j`, win rates :math:`w_j` and :math:`V_s` the variance over draws of the score of the draw's winner,

    .. math:: n_{eff} = \min\Bigl(N, \frac{\sum_j \theta_j (1 - \theta_j)}{\sum_j v_j},
        \frac{\sum_j w_j \theta_j (1 - \theta_j)}{\sum_j w_j v_j}\Bigr),

    .. math:: n(c) = \frac{c (1 - c)}{\kappa\, c (1 - c) / n_{eff} + \psi V_s},

    and Student's t on N - 1 degrees of freedom, of groups if there are any (N in n_eff is always samples, 3 N for what
    is averaged over pairs). Less than one hit, :math:`c\, n_{eff} < 1`, has no lower limit. Losses without an upper end
    are alike on the log scale, with the winners' variance. For models refitted in every fold the upper limit of rank
    metrics, losses and a winner that stands out is at least that at the naive score, and the lower limit of what counts
    samples (accuracy and its relatives) is centred at BBC-X where that is better. A winner that misses :math:`x = (1 -
    \theta) n_{eff} \le 3` has an upper limit of at least :math:`1 - g / n_{eff}`, g the quantile (1 - level) / 2 of the
    gamma distribution with shape x (Poisson's limit). The upper limit of an AUC moves up by what pooling the scores of
    several folds costs. Models of all samples are better than those of folds, which saw the share q of them (.8 where
    folds are unknown): on the better side the distance from perfection is multiplied by :math:`q^\alpha`, :math:`\alpha
    = \min(1/2, 5 / \sqrt N)`. A log loss or Brier score of few misclassified samples (x, at most 3) says little of what
    errors cost: its upper limit allows for more, at the rate of Clopper and Pearson's upper limit beyond x / N, each of
    which gives the truth a probability of 1/8 (or what the least certain prediction left to other classes, if that is
    less).

    Any other decision (another metric chooses, predictions are adjusted, configurations mixed, folds averaged) has one
    recipe: :math:`n_{eff} = \theta (1 - \theta) / v`, :math:`\theta` the naive value of the final decision and v its
    bootstrap variance, :math:`V_s` the variance over draws of the value that the draw's decision has on all samples,
    and an upper limit that heeds the naive value.

    Valid for metrics with a known end of their range, N >= 5 and 5 samples of each class where the metric needs
    classes (NaN limits below). Squared errors with heavy tails get a warning. The page "How the limits are made" of the
    documentation has all constants and where they come from, "Do the intervals hold their level?" what they cover.

    Parameters
    ----------
    kappa, psi : float, optional
        Constants; by default those of the estimator and the kind of metric at hand.
    safe_upper : bool or "auto"
        Whether the upper limit heeds the limit at the winner's naive score. ``"auto"``: always for rank metrics, losses
        and other decisions than a plain choice, and for others in so far as the winner won more draws than the next
        configuration (fully at four times as many); True: always; False: never, nor what few errors leave open, nor
        that models of all samples are better than those of folds.

    References
    ----------
    Wilson (1927), doi:10.1080/01621459.1927.10502953, for the limits; Brown, Cai, DasGupta (2001),
    doi:10.1214/ss/1009213286, for those of few errors; the effective size comes with this package.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(100, 20, rng=1)
    >>> out = cs.winner(cube, "accuracy", interval=cs.calibrated(safe_upper=True), rng=1)
    >>> bool(out.conf_low <= out.estimate <= out.conf_high)
    True
    """

    kappa: float | None = None
    psi: float | None = None
    safe_upper: bool | str = "auto"

    name = "calibrated"
    words = "interval calibrated for selection"

    def __post_init__(self) -> None:
        for value, argument in ((self.kappa, "kappa"), (self.psi, "psi")):
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise InputError(f"`{argument}` must be a number >= 0, or None for the tuned constant; got {value!r}.")
        if not isinstance(self.safe_upper, bool):
            check_option(self.safe_upper, ("auto",), "safe_upper")

    def refuse(self, evidence: Evidence) -> str | None:
        """Return why the method does not apply, or None."""
        if evidence.metric.scale != "none":
            return None
        return (
            f"the range of {evidence.metric.name} has no end to build a scale on; give as_metric(range=...) "
            "or use interval='double_bootstrap'"
        )

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        return self.calibration(evidence).limits(level)

    def calibration(self, evidence: Evidence) -> Calibration:
        """Return the few numbers that give the limits at any level."""
        scale, tuned = scale_of(evidence.metric), constants(evidence)
        kappa = tuned.kappa if self.kappa is None else self.kappa
        psi = tuned.psi if self.psi is None else self.psi
        share = float(self.safe_upper is True)  # where between BBC and naive, 0 to 1
        if self.safe_upper == "auto":
            share = standing_out(evidence) if tuned.safe == "standing out" else float(tuned.safe == "always")
        first, inflated, _ = scale.spread(evidence, 1 + (tuned.naive - 1) * share, 0.0)
        unit = not np.isnan(inflated)
        misses = (1 - scale.forward(evidence.naive)) * first if unit else evidence.errors
        heeded = self.safe_upper is True or (self.safe_upper == "auto" and (tuned.safe != "never" or not unit))
        heeded = heeded and not evidence.metric.curve  # a point of a curve is no score
        # BBC errs on the low side where some configurations are better than others; for shares BBC-X makes up for it.
        below = bbc_x(evidence) if tuned.safe == "standing out" else evidence.estimate
        pooled = max((evidence.within - evidence.naive) / (1 - evidence.naive), 0.0) if evidence.within < 1 else 0.0
        return Calibration(
            scale.best,
            scale.worst,
            *evidence.metric.range,
            *scale.spread(evidence, kappa, psi),
            naive_first=first / inflated if unit else first,
            n=evidence.n,
            estimate=evidence.estimate,
            below=max(evidence.estimate, below, key=scale.forward),
            towards=evidence.bbc + share * (evidence.naive - evidence.bbc) if share > 0 else np.nan,
            misses=misses if heeded and misses <= RARE else np.nan,
            unseen=evidence.unseen,
            lift=1 - (1 - pooled) * (1.0 if self.safe_upper is False else evidence.seen**tuned.rate),
        )

    def doubt(self, evidence: Evidence) -> str | None:
        """Return what these data leave in doubt, or None: losses of which a few samples make up the mean."""
        metric = evidence.metric
        if metric.name not in TAILED:
            return None
        at = int(np.argmin(np.abs(evidence.scores - evidence.naive)))
        noise = evidence.variance[at] if evidence.kept is None else variance_of(evidence.kept)
        loss = evidence.naive - scale_of(metric).best
        if not TAILED[metric.name] * evidence.n * noise > TAIL * loss**2:
            return None
        return (
            f"a few samples make up most of {metric.name}: with tails as heavy as these its limits cannot be trusted, "
            "and those of mae hold better"
        )
