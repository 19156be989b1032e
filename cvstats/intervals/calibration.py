"""Constants and rules of the calibrated interval, tuned on refitted learners (see the coverage study in the docs)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .scales import scale_between, spread_on

if TYPE_CHECKING:
    from .evidence import Evidence


@dataclass(frozen=True)
class Constants:
    """How wide a calibrated interval is."""

    kappa: float  # inflation of the sampling variance
    psi: float  # weight of the selection variance
    safe: str = "never"  # when the upper limit heeds the naive score: "never", "standing out" or "always"


BOUNDED = {
    "bbc": Constants(1.3, 1.0, "standing out"),
    "bbc_cross_repeat": Constants(1.15, 1.0, "standing out"),
    "bbc_ncv": Constants(1.15, 1.0),
    "bbc_x": Constants(1.0, 0.5),
}
# Pooled over folds, AUC compares scores of different models and errs on the low side: the naive limit is heeded always.
RANK = BOUNDED | {"bbc": Constants(1.5, 1.0, "always")}
# Real-valued losses have heavier tails than a 0-1 score.
LOSS = {
    "bbc": Constants(1.75, 1.0),
    "bbc_cross_repeat": Constants(1.55, 1.0),
    "bbc_ncv": Constants(1.55, 1.0),
    "bbc_x": Constants(1.35, 0.5),
}


def constants(evidence: Evidence, bounded: bool) -> Constants:
    """Return the constants for a metric on a bounded or unbounded scale."""
    if not bounded:
        return LOSS[evidence.estimator]
    return (RANK if evidence.metric.family == "rank" else BOUNDED)[evidence.estimator]


GIVEN = 1 / 8  # the probability that a prediction gone wrong is taken to give the truth


def error_cost(metric: str, n_classes: int) -> float:
    """Return what a misclassified sample is taken to cost under a metric of probabilities; 0 for other metrics."""
    if metric == "log_loss":
        return float(-np.log(GIVEN))
    return (1 - GIVEN) ** 2 * (1 if n_classes <= 2 else 2) if metric == "brier" else 0.0


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
    other: float  # a second centre for the upper limit (BBC-X), or NaN
    towards: float  # where between BBC and the naive score the upper limit is centred too, or NaN
    unseen: float  # what a misclassified sample would cost, when the data hold none; else 0

    def limits(self, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
        from scipy.special import stdtrit

        scale = scale_between(self.best, self.worst)
        spread = spread_on(scale, self.first, self.kappa, self.extra)
        t = float(stdtrit(self.n - 1, (1 + level) / 2))
        centre = scale.forward(self.estimate)
        low, high = spread.limits(centre, t)
        if not np.isnan(self.other):
            high = max(high, spread.limits(scale.forward(self.other), t)[1])
        if not np.isnan(self.towards):
            naive = spread_on(scale, self.naive_first, 1.0, 0.0)
            high = max(high, naive.limits(scale.forward(self.towards), t)[1])
        low, high = min(low, centre), max(high, centre)
        ends = np.clip(sorted((scale.back(low), scale.back(high))), self.low, self.high)
        if self.unseen:
            ends[1] = max(ends[1], allow_unseen(self, level))
        return float(ends[0]), float(ends[1]), scale.error_back(centre, spread.error(centre))


def allow_unseen(evidence: Calibration, level: float) -> float:
    """Return the largest loss that is plausible though no sample was misclassified.

    No error among n samples is likely enough up to an error rate u with (1 - u)^n = (1 - level) / 2. Then a share u of
    new samples cost what an error does, and the data do not show it.
    """
    share: float = 1 - ((1 - level) / 2) ** (1 / evidence.n)
    return (1 - share) * evidence.estimate + share * evidence.unseen


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
