"""Kernel for rank statistics: AUC and average precision by walking down sorted columns.

Each column is sorted once; the walk then serves any number of weight vectors. With whole-number weights twice the
Mann-Whitney count is a whole number, so ties between configurations are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .order import TILE, Ranking, contrasts, model_rankings
from .problem import Kernel, Problem
from .repeats import add_up, mean_ratio, over_repeats
from .walk import accelerator, count, lanes_of

if TYPE_CHECKING:
    from cvstats.metrics import Metric


class RankKernel(Kernel):
    """Scores of all configurations under any weights, by walking sorted columns once per block of draws.

    A configuration is scored within each repeat and averaged over repeats. A metric of several classes has several
    binary contrasts, which are averaged. Where classes were sampled separately, a repeat has several models, and only
    predictions of one model are ranked: each model is a ranking of the samples it left out, and counts and numbers of
    pairs are added over the models of a repeat before they are divided.

    Parameters
    ----------
    metric, problem, total
        What to compute, on which arrays, and an upper bound of the sum of weights of a draw.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, self.m = metric, problem.p.shape[-2]
        self.weight, self.bound = whole_weights(problem.weight, total)
        p = problem.read(metric.uses)
        planes = p if p.ndim == 4 else p[None]
        if len(planes) > 1 and np.isnan(np.min(planes)):
            planes = np.where(np.isnan(planes).any(axis=0), np.nan, planes)
        self.separate = problem.model is not None
        if problem.model is None:
            self.rankings = [
                (slice(None), Ranking.of(rows, cut, planes[plane].reshape(problem.n, self.m * p.shape[-1]), rows))
                for plane, rows, cut in contrasts(metric, problem.y, problem.n_classes)
            ]
            repeats = self.width = p.shape[-1]  # columns of a configuration in a ranking
        else:
            self.rankings = list(model_rankings(problem.model, problem.y, planes[0]))
            repeats, self.width = problem.model.shape[1], 1
        self.begun = np.zeros((self.m, repeats), bool)  # anything predicted in a repeat
        self.whole = np.ones(self.m, bool)  # everything predicted
        for mine, ranking in self.rankings:
            self.begun[:, mine] |= ranking.presence.begun.reshape(self.m, self.width)
            self.whole &= ranking.presence.whole.reshape(self.m, self.width).all(axis=1)

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some configurations under each row of `weights`: (draw, column)."""
        size = sum(len(ranking.rows) for _, ranking in self.rankings)
        fast = accelerator(len(columns) * self.width, size, len(weights))
        ready = []
        for _, ranking in self.rankings:
            w = np.take(weights, ranking.rows, axis=1)
            w = w if self.weight is None else w * self.weight[ranking.rows]
            ready.append((lanes_of(w, self.bound, self.metric.statistic, fast), *ranking.totals(w, self.bound)))
        score = np.empty((len(weights), len(columns)))  # whoever looks for the best of a draw goes row by row
        step = max(1, TILE // max(1, self.width * len(weights)))
        for start in columns[::step]:
            block = slice(start, min(start + step, columns.stop))
            own = slice(start * self.width, block.stop * self.width)
            shape = (block.stop - start, self.width, len(weights))
            parts = []
            for (_, ranking), (lanes, *totals) in zip(self.rankings, ready, strict=True):
                counts = count(self.metric.statistic, ranking, lanes, own.start, own.stop).reshape(shape)
                pattern = ranking.presence.pattern[own]
                sides = [part[None] if len(part) == 1 else part[pattern].reshape(shape) for part in totals]
                parts.append((counts, *sides))
            averages = self._averaged(parts, self.begun[block], self.whole[block])
            score[:, start - columns.start : block.stop - columns.start] = averages.T
        return score

    def _averaged(self, parts: list[Any], begun: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return scores (configuration, draw) from the count and both classes' weights of each ranking.

        These are (configuration, repeat, draw), or (1, 1, draw) where all columns share them.
        """
        pairs = self.metric.statistic == "auc"
        scales = [2.0 * positive * negative if pairs else positive for _, positive, negative in parts]
        if self.separate:
            total, scale = np.zeros((2, *begun.shape, parts[0][0].shape[-1]))
            for (repeat, _), part, share in zip(self.rankings, parts, scales, strict=True):
                total[:, repeat] += part[0]
                scale[:, repeat] += share
            return mean_ratio(total, scale, begun, whole)
        if len(parts) == 1:
            return mean_ratio(parts[0][0], scales[0], begun, whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [part[0] / scale for part, scale in zip(parts, scales, strict=True)]
            weights = [part[1] for part in parts] if self.metric.multiclass == "weighted" else [np.ones(1)] * len(parts)
            table = add_up(a * b for a, b in zip(each, weights, strict=True)) / add_up(weights)
            return over_repeats(table, begun)


def whole_weights(weight: np.ndarray | None, total: float) -> tuple[np.ndarray | None, float]:
    """Return case weights, as integers when they are whole, and the bound of a draw's weight with them."""
    if weight is None:
        return None, total
    top = float(weight.max(initial=0.0))
    if top * total < 2**31 and np.array_equal(weight, np.rint(weight)):
        return weight.astype(np.int32), total * max(top, 1.0)
    return weight, total * max(top, 1.0)
