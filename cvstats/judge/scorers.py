"""Scores that choose: averaged over folds, or of predictions that are adjusted in every draw before they are scored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cvstats.adjust import Adjustment, Fitted
from cvstats.cube.arrays import map_blocks
from cvstats.kernels import Kernel, LabelCheck, Problem
from cvstats.kernels.cutting import table_value
from cvstats.kernels.mixing import Candidates, votes
from cvstats.kernels.problem import settled
from cvstats.kernels.sums import SumKernel
from cvstats.metrics import Metric, brier, mse, rmse

DIGITS = 12  # of scores of fitted probabilities


class FoldKernel(Kernel):
    """Scores within each fold, averaged over the folds of a repeat and then over repeats.

    A fold in which a draw leaves the metric undefined is skipped. Where every sample counts once, as in the choice on
    all samples, one such fold leaves the score undefined.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        assert problem.fold is not None
        self.metric, self.m = metric, problem.p.shape[-2]
        self.repeats: list[list[tuple[np.ndarray, Kernel, LabelCheck, np.ndarray]]] = []
        for number, folds in enumerate(problem.fold):
            one = problem.repeats(slice(number, number + 1))
            self.repeats.append([])
            for rows in map(np.flatnonzero, folds):
                part = one.samples(rows)
                begun = np.asarray(part.filled().any(axis=(0, 2)))  # who predicted anything there
                if begun.any():
                    scorer = metric.kernel(part, total)
                    self.repeats[-1].append((rows, scorer, part.check(metric.requires), begun))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self._averaged(weights, np.arange(self.m), lambda one, w: one.scores(w))

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        return self._averaged(weights, index[:, None], lambda one, w: one.judged(w, index)[:, None])[:, 0]

    def _averaged(
        self, counts: np.ndarray, index: np.ndarray, score: Callable[[Kernel, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        strict = (counts == 1).all(axis=1)[:, None]
        size = len(counts), index.shape[-1]
        total, number, undefined = np.zeros(size), np.zeros(size), np.zeros(size, bool)
        for parts in self.repeats:
            added, known = np.zeros(size), np.zeros(size)
            for rows, scorer, check, begun in parts:
                w = np.ascontiguousarray(counts[:, rows])
                value = np.where(check.chosen(w)[:, None] & begun[index], score(scorer, w), np.nan)
                there = ~np.isnan(value)
                added += np.where(there, value, 0.0)
                known += there
                undefined |= strict & begun[index] & ~there
            total += added / np.maximum(known, 1)
            number += known > 0
        return np.where(undefined | (number == 0), np.nan, total / np.maximum(number, 1))


class AdjustedKernel(Kernel):
    """Scores of configurations whose predictions are adjusted first, by what the samples that choose teach.

    It only chooses: what was learned from other samples is judged by `verdicts`.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float, adjust: Adjustment) -> None:
        self.metric, self.problem, self.total, self.adjust = metric, problem, total, adjust
        self.cutter = None
        pooled = problem.fold is None and (problem.p.shape[-1] == 1 or (metric.linear and not problem.gaps))
        if pooled and metric.uses == "label" and problem.model is None:  # the table at the threshold says it all
            self.cutter = adjust.cutter(problem.y, problem.p)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise and the scores, both (draw, m)."""
        counts, data = weights, self.problem
        w = counts if data.weight is None else counts * data.weight
        if self.cutter is not None:
            cuts = self.cutter.cuts(w)
            with np.errstate(divide="ignore", invalid="ignore"):
                value = table_value(self.metric, cuts.tp, cuts.fp, cuts.positives, cuts.negatives)
            value = np.where(np.isnan(cuts.threshold), np.nan, value)
            return settled(value), self.metric.sign * value
        score = np.empty((len(counts), data.p.shape[-2]))
        every = np.arange(len(counts))
        for j in range(score.shape[1]):
            column = data.p[..., j : j + 1, :]
            fitted = self.adjust.fit(data.y, column, w)
            own = replace(data, p=np.repeat(column, len(counts), axis=-2), gaps=None)
            scorer = choosing_kernel(self.metric, adjusted(self.metric, own, fitted), self.total)
            score[:, j] = scorer.judged(counts, every)
        fine = np.round(score, DIGITS) if data.kind == "probability" else score  # maps that separate are all perfect
        return settled(fine, self.metric.sign), score


def choosing_kernel(metric: Metric, problem: Problem, total: float, adjust: Adjustment | None = None) -> Kernel:
    """Return what scores the configurations of a block when they are chosen by `metric`."""
    if adjust is not None and adjust.affects(metric):
        return AdjustedKernel(metric, problem, total, adjust)
    if problem.fold is not None:
        return FoldKernel(metric, problem, total)
    return metric.kernel(problem, total)


def adjusted(metric: Metric, problem: Problem, fitted: Fitted) -> Problem:
    """Return the problem with adjusted predictions in the form that `metric` reads: one column for each fit."""
    if fitted.cuts and metric.uses in ("label", "any"):
        return replace(problem, p=fitted.apply(problem.p), kind="label", threshold=None)
    p = fitted.apply(problem.p, cut=False)
    if fitted.cuts and metric.uses == "margin":
        return replace(problem, p=p - fitted.state["threshold"][:, None], threshold=0.0)
    return replace(problem, p=p)


def mixable(problem: Problem) -> Problem:
    """Return the problem in a form whose mean over configurations has a meaning: class labels become votes."""
    if problem.kind != "label":
        return problem
    return replace(problem, p=votes(problem.p, problem.n_classes), kind="probability", threshold=0.5)


def candidates(metric: Metric, problem: Problem, adjust: Adjustment | None) -> Candidates:
    """Return what mixtures of the configurations of a `mixable` problem are learned from, when `metric` chooses."""
    plain = problem.fold is None and (adjust is None or not adjust.affects(metric))
    squared = metric in (mse, brier) or (metric is rmse and problem.p.shape[-1] == 1)
    if plain and squared:
        y, k = problem.y, problem.n_classes
        target = y[:, None, None] if problem.p.ndim == 3 else (y == np.arange(k)[:, None])[..., None, None]
        return Candidates(problem.p, target=target)
    without = replace(problem, p=np.empty((problem.n, 0, 0)), weight=None, gaps=None)
    return Candidates(problem.p, loss=partial(_loss, metric, without, adjust))


def _loss(
    metric: Metric, data: Problem, adjust: Adjustment | None, rows: np.ndarray, p: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Return the loss (m,) of predictions (..., rows, m, r) of some samples under weights that hold case weights."""
    part = replace(data.samples(rows), p=p)
    return np.asarray(-metric.sign * choosing_kernel(metric, part, float(w.sum()), adjust).scores(w[None])[0])


def mixed_score(metric: Metric, data: Problem, share: np.ndarray) -> float:
    """Return the score when a sample's value is a mixture of all configurations', by `share` (sample, configuration).

    For metrics that are linear in the values of single samples.
    """
    weight = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    _, parts = map_blocks(partial(_mixed_sums, metric, weight), data)
    # fsum: the order in which blocks of configurations arrive must not show
    sums = [np.array([math.fsum(np.concatenate(values))]) for values in zip(*(each for each, _ in parts), strict=True)]
    return float(metric.formula(sums, parts[0][1])[0])


def _mixed_sums(
    metric: Metric, weight: np.ndarray, block: Problem, columns: np.ndarray, _: Any
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return mixed sums over one block of configurations, and label sums."""
    scorer = SumKernel(metric, block, float(block.n))
    mine = np.ascontiguousarray(weight[block.rows][:, columns].T)
    labels = [np.array([values[0].astype(float).sum()]) for values in scorer.labels]
    parts = zip(scorer.rows, scorer.parts, strict=False)
    return [(values * mine[:, rows]).sum(axis=1) / scorer.divisor for rows, values in parts], labels
