"""Kernels for survival metrics that weigh samples by the inverse probability of not being censored.

Who is censored before the horizon says nothing of it, and is represented by those who were followed as long: a sample
weighs 1 / G, with G Kaplan-Meier's estimate of the censoring times, made from the very weights that score. So weights
count as repeated rows here too; but they become real numbers, and sums of them agree to 1e-12, not to the last bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .columns import quantile_bin
from .pairs import PairKernel
from .problem import Kernel, Problem
from .ranks import RankKernel
from .repeats import Presence, over_repeats

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

    def until(self, w: np.ndarray, time: float, side: Literal["left", "right"] = "right") -> np.ndarray:
        """Return G(time), (draw, 1), with those who are censored at that very time ("right") or without ("left")."""
        return self.steps(w)[:, [np.searchsorted(self.time, time, side)]]


class CensoredKernel(Kernel):
    """Scores of all configurations under any weights; G is estimated from the samples that a column predicted.

    Columns that lack the same samples are scored together by one of the kernels below, each repeat as a column.
    Parameters are those of `RankKernel`.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, p = metric, np.asarray(problem.p)
        if p.ndim == 4:
            assert problem.horizon is not None
            p = p[np.flatnonzero(problem.horizon == metric.time)[0]]
        n, self.m, self.r = p.shape
        missing, flat = np.isnan(p).reshape(n, -1), p.reshape(n, -1, 1)
        presence = Presence(missing if missing.any() else None, n, self.m * self.r)
        self.begun = presence.begun.reshape(self.m, self.r)
        self.parts: list[tuple[np.ndarray, np.ndarray, Any]] = []
        for number, rows in enumerate(presence.patterns):
            columns = np.flatnonzero(presence.pattern == number)
            if rows.any():
                part = replace(problem, p=flat[:, columns]).samples(rows)
                self.parts.append((columns, rows, PARTS[metric.statistic](metric, part, total)))

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some configurations under each row of `weights`: (draw, column)."""
        first, last = columns.start * self.r, columns.stop * self.r
        table = np.full((len(weights), last - first), np.nan)
        for places, rows, part in self.parts:
            inside = range(*np.searchsorted(places, (first, last)).tolist())
            if inside:
                table[:, places[inside] - first] = part.some(weights[:, rows], inside)
        return over_repeats(table.T.reshape(len(columns), self.r, -1), self.begun[columns]).T


class UnoKernel(PairKernel):
    """Uno's concordance: pairs weigh the squared inverse of G at the earlier time, which lies before the horizon."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        super().__init__(metric, problem, total)
        assert problem.event is not None
        time = problem.y[self.order]
        self.censoring = Censoring(time, problem.event[self.order])
        if metric.time is not None:
            self.event = self.event & (time < metric.time)

    def _leading(self, w: np.ndarray) -> np.ndarray:
        return self.censoring.weights(w, 2)


class HorizonKernel:
    """What metrics at a horizon share: who had the event by then (cases), and who was followed beyond it (late)."""

    def __init__(self, metric: Metric, problem: Problem) -> None:
        assert problem.event is not None
        assert metric.time is not None
        self.time, self.weight = metric.time, problem.weight
        self.censoring = Censoring(problem.y, problem.event)
        self.late = problem.y > self.time
        self.case = (problem.event == 1) & ~self.late

    def _weighted(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(weights if self.weight is None else weights * self.weight)


class HorizonRankKernel(HorizonKernel):
    """Time-dependent AUC: cases against those followed beyond the horizon, whose common weight cancels."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        super().__init__(metric, problem)
        self.seen = self.case | self.late
        risk, case = problem.read("survival"), self.case.astype(float)
        known = replace(problem, y=case, p=risk, weight=None, event=None, n_classes=2, kind="score").samples(self.seen)
        self.ranks = RankKernel(replace(metric, statistic="auc", uses="score"), known, total)

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some columns under each row of `weights`: (draw, column)."""
        w = self._weighted(weights)
        known = np.where(self.case, self.censoring.weights(w), w)
        return self.ranks.some(known[:, self.seen], columns)


class HorizonMeanKernel(HorizonKernel):
    """Brier score, and observed over expected events, at the horizon: ratios of sums over samples."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        super().__init__(metric, problem)
        survival, late = np.asarray(problem.p[..., 0], dtype=float), self.late[:, None]
        # who is censored at the horizon is known to have had no event by it
        self.side: Literal["left", "right"] = "left"
        if metric.statistic == "survival_brier":
            self.side = "right"  # but weighs as those who were followed beyond it
            self.above, self.below = np.where(late, 1 - survival, survival) ** 2, np.ones((len(survival), 1))
        else:
            self.above, self.below = (~late).astype(float), 1 - survival

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some columns under each row of `weights`: (draw, column)."""
        known, w = self._known(weights)
        above, below = (part if part.shape[1] == 1 else part[:, columns] for part in (self.above, self.below))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((known @ above) / (w @ below))

    def _known(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what those weigh whose fate is known, NaN where nobody was followed so long, and all weights."""
        w = self._weighted(weights).astype(float)
        beyond = self.censoring.until(w, self.time, self.side)
        late = np.divide(w, beyond, out=np.zeros(w.shape), where=self.late & (w > 0))
        known = np.where(self.case, self.censoring.weights(w), late)
        return np.where(beyond > 0, known, np.nan), w


class HorizonBinKernel(HorizonMeanKernel):
    """Calibration at the horizon: ten bins between quantiles of the predicted risk, Kaplan-Meier's estimate in each."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        super().__init__(metric, problem, total)
        self.what, self.bin = metric.statistic, metric.at[0]
        self.risk = np.asarray(1 - problem.p[..., 0], dtype=float)

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some columns under each row of `weights`: (draw, column)."""
        return np.stack([self._column(weights, column) for column in columns], axis=1)

    def _column(self, weights: np.ndarray, column: int) -> np.ndarray:
        risk = self.risk[:, column]
        inside = np.where(quantile_bin(risk, self._weighted(weights)) == self.bin, weights, 0.0)
        known, w = self._known(inside)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.what == "survival_bin_observed":
                return np.asarray(known @ self.above[:, 0] / w.sum(axis=1))
            return np.asarray(w.sum(axis=1) if self.what == "survival_bin_size" else w @ risk / w.sum(axis=1))


PARTS: dict[str, Any] = {
    "uno_concordance": UnoKernel,
    "survival_auc": HorizonRankKernel,
    "survival_brier": HorizonMeanKernel,
    "survival_observed_expected": HorizonMeanKernel,
    **dict.fromkeys(("survival_bin_observed", "survival_bin_predicted", "survival_bin_size"), HorizonBinKernel),
}
