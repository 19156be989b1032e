"""Kernels for survival metrics that weigh samples by the inverse probability of not being censored.

Who is censored before the horizon says nothing of it, and is represented by those who were followed as long: a sample
weighs 1 / G, with G Kaplan-Meier's estimate of the censoring times, made from the very weights that score. So weights
count as repeated rows here too; but they become real numbers, and sums of them agree to 1e-12, not to the last bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .pairs import PairKernel
from .problem import Problem
from .ranks import RankKernel
from .repeats import over_repeats
from .sums import settled

if TYPE_CHECKING:
    from cvstats.metrics import Metric


class Censoring:
    """Kaplan-Meier's estimate of G(t) = P(not censored until t) under many weights; events leave before censored."""

    def __init__(self, time: np.ndarray, event: np.ndarray) -> None:
        self.order = np.lexsort((event == 0, time))
        self.time, self.censored = time[self.order], event[self.order] == 0
        self.place = np.searchsorted(self.time, time)  # of the first sample of the same time

    def steps(self, w: np.ndarray) -> np.ndarray:
        """Return G (draw, n + 1) before each sample in order of time, and after the last."""
        left = np.zeros((len(w), w.shape[1] + 1))  # the weight of those at risk
        left[:, -2::-1] = np.cumsum(w[:, self.order[::-1]], axis=1, dtype=float)
        at_risk = np.where(self.censored & (left[:, :-1] > 0), left[:, :-1], 1.0)
        left[:, 1:] = np.where(self.censored & (left[:, :-1] > 0), left[:, 1:], 1.0) / at_risk
        left[:, 0] = 1.0
        return np.cumprod(left, axis=1)

    def weights(self, w: np.ndarray, power: int = 1) -> np.ndarray:
        """Return w / G(T-)**power (draw, n): what samples weigh whose event was seen."""
        whole = self.steps(w)[:, self.place] ** power
        return np.asarray(np.divide(w, whole, out=np.zeros(w.shape), where=w > 0))  # G is above 0 before all that count

    def until(self, w: np.ndarray, time: float) -> np.ndarray:
        """Return G(time), (draw, 1)."""
        return self.steps(w)[:, [np.searchsorted(self.time, time, "right")]]


class UnoKernel(PairKernel):
    """Uno's concordance: pairs weigh the squared inverse of G at the earlier time, which lies before the horizon."""

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        super().__init__(metric, problem, total, gaps=gaps)
        assert problem.event is not None
        time = problem.y[self.order]
        self.censoring = Censoring(time, problem.event[self.order])
        if metric.time is not None:
            self.event = self.event & (time < metric.time)

    def _leading(self, w: np.ndarray) -> np.ndarray:
        return self.censoring.weights(w, 2)

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise and the scores, both (draw, m)."""
        score = self.scores(weights)
        return settled(score), score


class _HorizonKernel:
    """What all metrics at a horizon share: who had the event by then, and who was followed beyond it."""

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        assert problem.event is not None
        assert metric.time is not None
        self.metric, self.time, self.weight = metric, metric.time, problem.weight
        self.censoring = Censoring(problem.y, problem.event)
        self.late = problem.y > self.time
        self.case = (problem.event == 1) & ~self.late
        p = problem.p
        if p.ndim == 4:
            assert problem.horizon is not None
            p = p[np.flatnonzero(problem.horizon == self.time)[0]]
        self.problem = replace(problem, p=p, weight=None)

    def _weighted(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(weights if self.weight is None else weights * self.weight)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        raise NotImplementedError

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise and the scores, both (draw, m)."""
        score = self.scores(weights)
        return settled(self.metric.sign * score), score


class HorizonRankKernel(_HorizonKernel):
    """Time-dependent AUC: events by the horizon against those followed beyond it."""

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        super().__init__(metric, problem, total, gaps=gaps)
        data, seen = self.problem, self.case | self.late
        risk = replace(data, y=self.case.astype(float), p=data.read("survival"), n_classes=2, kind="score", event=None)
        self.ranks = RankKernel(replace(metric, statistic="auc", uses="score"), risk.samples(seen), total)
        self.seen = seen

    def _known(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights (draw, n) of those whose fate is known; what controls share cancels."""
        w = self._weighted(weights)
        return np.where(self.case, self.censoring.weights(w), w)[:, self.seen]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.ranks.scores(self._known(weights))

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        return self.ranks.judged(self._known(weights), index)


class HorizonMeanKernel(_HorizonKernel):
    """Brier score, and observed against expected events, at the horizon: ratios of sums over samples."""

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        super().__init__(metric, problem, total, gaps=gaps)
        survival = np.asarray(self.problem.p, dtype=float)
        self.begun = ~np.isnan(survival).all(axis=0)  # (m, r)
        there = ~np.isnan(survival)
        survival = np.where(there, survival, 0.0)
        late = self.late[:, None, None]
        if metric.statistic == "survival_brier":
            above, below = np.where(late, 1 - survival, survival) ** 2 * there, there.astype(float)
        else:
            above, below = (~late & there).astype(float), np.where(there, 1 - survival, 0.0)
        self.above, self.below = above, below

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self._scores(weights, slice(None))

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        out = np.empty(len(index))
        for j in np.unique(index).tolist():
            draws = np.flatnonzero(index == j)
            out[draws] = self._scores(weights[draws], slice(j, j + 1))[:, 0]
        return out

    def _scores(self, weights: np.ndarray, columns: slice) -> np.ndarray:
        w = self._weighted(weights).astype(float)
        beyond = self.censoring.until(w, self.time)
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where(self.case, self.censoring.weights(w), np.where(self.late & (w > 0), w / beyond, 0.0))
            ratio = np.tensordot(known, self.above[:, columns], 1) / np.tensordot(w, self.below[:, columns], 1)
        ratio = np.where(beyond[..., None] > 0, ratio, np.nan)  # followed until the horizon by nobody
        return over_repeats(ratio.transpose(1, 2, 0), self.begun[columns]).T
