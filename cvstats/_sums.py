"""Kernels for means of per-sample values and for smooth functions of such means.

All sums are exact: 0-1 values are whole numbers, real values are rounded once to a grid on which float64 addition
cannot err (fixed point), so a sum does not depend on blocking, chunking or the number of threads, and a tie is a tie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import Problem

if TYPE_CHECKING:
    from .metrics import Metric


def on_grid(values: np.ndarray, total: float) -> np.ndarray:
    """Round each row of `values` (columns, n) so that sums with integer weights up to `total` are exact.

    Row j is rounded to a multiple of 2**-k with k = 52 - ceil(log2(total * max|row j|)): the largest possible sum
    then fits the 53 bits of a double. Whole numbers that are small enough stay as they are, in float32 when that
    is exact too.
    """
    top = np.abs(values).max(axis=-1, initial=0.0)
    bound = float(top.max(initial=0.0)) * total
    if bound < 2.0**53 and not np.any(values - np.rint(values)):
        return values.astype(np.float32 if bound < 2.0**24 else np.float64)
    with np.errstate(divide="ignore"):
        power = 52 - np.ceil(np.log2(np.where(top > 0, top, 1.0) * total))
    power = np.clip(power, -1000, 1000).astype(int)[..., None]
    return np.ldexp(np.rint(np.ldexp(values.astype(np.float64), power)), -power)


class SumEngine:
    """Scores of all configurations under any weights, by one matrix product per ingredient.

    Parameters
    ----------
    metric, problem
        What to compute and on which arrays.
    total
        Upper bound of the sum of weights of a draw (for exactness).
    pool
        Whether a linear metric may add up a sample's repeats first (one product for all repeats).
    """

    def __init__(self, metric: Metric, problem: Problem, total: float, *, pool: bool = True) -> None:
        self.metric = metric
        p = problem.p
        self.m, self.r = p.shape[-2], p.shape[-1]
        missing = _missing(p)
        y = problem.y[:, None, None] if problem.y.ndim == 1 else problem.y[:, :, None]
        parts = metric.ingredients(y, p, problem.n_classes)
        labels = [np.ones(problem.n), *metric.label_parts(problem.y, problem.n_classes)]
        self.pooled = pool and metric.linear
        self.divisor = 1.0
        present: np.ndarray | None = None if missing is None else ~missing
        if self.pooled:
            parts, present = self._pool(parts, present)
        else:
            parts = [part if present is None else np.where(present, part, 0) for part in parts]
        width = self.m if self.pooled else self.m * self.r
        self.repeat_weight = self._repeat_weight(present)
        weight = problem.weight
        self.parts, self.infinite = [], []
        for part in parts:
            flat = np.ascontiguousarray(part.reshape(problem.n, width).T)
            if weight is not None:
                flat = flat * weight
            flat, infinite = _set_infinite_aside(flat)
            self.parts.append(on_grid(flat, total))
            self.infinite.append(infinite)
        self.labels = [self._label(part, present, weight, total, width) for part in labels]

    def _pool(self, parts: list[np.ndarray], present: np.ndarray | None) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Add up each sample's repeats; with gaps a sample's value is its mean over the repeats that have it."""
        if present is None:
            self.divisor = float(self.r)
            small = np.uint8 if self.r < 256 else np.int64
            return [part.sum(axis=2, dtype=small if part.dtype == bool else None) for part in parts], None
        count = present.sum(axis=2)
        self.divisor = float(math.lcm(*(int(k) for k in np.unique(count) if k > 0), 1))
        scale = np.where(count > 0, self.divisor / np.maximum(count, 1), 0.0)
        pooled = [np.where(present, part, 0).sum(axis=2) * scale for part in parts]
        return pooled, (None if (count > 0).all() else count > 0)

    def _repeat_weight(self, present: np.ndarray | None) -> np.ndarray | None:
        """Return (m, r) weights that leave out repeats in which a configuration predicted nothing."""
        if self.pooled or present is None:
            return None
        some = present.any(axis=0)
        return np.asarray(some / np.maximum(some.sum(axis=1, keepdims=True), 1))

    def _label(
        self, part: np.ndarray, present: np.ndarray | None, weight: np.ndarray | None, total: float, width: int
    ) -> np.ndarray:
        """Return a label-only ingredient as (1, n) when all columns share it, else as (columns, n)."""
        if weight is not None:
            part = part * (weight if part.ndim == 1 else weight[:, None])
        if part.ndim == 1 and present is None:
            return on_grid(part[None, :], total)
        wide = part[:, None] if part.ndim == 1 else part
        if not self.pooled:
            wide = np.repeat(wide, self.r, axis=1) if wide.shape[1] > 1 else wide
        full = np.broadcast_to(wide, (part.shape[0], width))
        if present is not None:
            full = np.where(present.reshape(part.shape[0], width), full, 0)
        return on_grid(np.ascontiguousarray(full.T), total)

    def sums(self, weights: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the ingredient sums (draw, columns) and label sums (draw, 1 or columns) under `weights` (draw, n)."""
        cast: dict[np.dtype, np.ndarray] = {}

        def product(part: np.ndarray) -> np.ndarray:
            left = cast.setdefault(part.dtype, weights.astype(part.dtype, copy=False))
            return np.asarray(left @ part.T)

        sums = []
        for part, infinite in zip(self.parts, self.infinite, strict=True):
            value = product(part)
            if infinite is not None:
                columns, where = infinite
                value = value.astype(float)
                value[:, columns] = np.where(weights @ where.T > 0, np.inf, value[:, columns])
            sums.append(value)
        return sums, [product(part) for part in self.labels]

    def values(self, sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
        """Return scores from sums, averaged over repeats."""
        scaled = [value.astype(float) / self.divisor for value in sums]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = self.metric.formula(scaled, [label.astype(float, copy=False) for label in labels])
        if self.pooled:
            return np.asarray(score)
        return self._over_repeats(score.reshape(*score.shape[:-1], self.m, self.r))

    def _over_repeats(self, score: np.ndarray) -> np.ndarray:
        if self.r == 1:
            return np.asarray(score[..., 0])
        if self.repeat_weight is None:
            return np.asarray(score.mean(axis=-1))
        return np.asarray(np.where(self.repeat_weight > 0, score, 0.0) @ np.ones(self.r) * self.repeat_weight.max(axis=-1))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.values(*self.sums(weights))

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise, on exact sums where the metric is monotone in one, and the scores."""
        sums, labels = self.sums(weights)
        score = self.values(sums, labels)
        if self.pooled and self.metric.monotone and labels[0].shape[-1] == 1:
            return sums[0] * np.float32(self.metric.monotone), score
        return self.metric.sign * score, score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        columns = index if self.pooled else (index[:, None] * self.r + np.arange(self.r)).ravel()
        each = weights if self.pooled else np.repeat(weights, self.r, axis=0)

        def gather(part: np.ndarray) -> np.ndarray:
            rows = part[columns] if part.shape[0] > 1 else np.broadcast_to(part, (len(columns), part.shape[1]))
            return np.einsum("bn,bn->b", each.astype(part.dtype, copy=False), rows)

        sums = []
        for part, infinite in zip(self.parts, self.infinite, strict=True):
            value = gather(part).astype(float)
            if infinite is not None:
                hit = np.zeros((part.shape[0], part.shape[1]), np.float32)
                hit[infinite[0]] = infinite[1]
                value[gather(hit) > 0] = np.inf
            sums.append(value)
        labels = [gather(part) for part in self.labels]
        scaled = [value / self.divisor for value in sums]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = self.metric.formula(scaled, [label.astype(float) for label in labels])
        if self.pooled:
            return np.asarray(score)
        table = score.reshape(len(index), self.r)
        if self.repeat_weight is None:
            return np.asarray(table.mean(axis=1))
        rows = self.repeat_weight[index]
        return np.asarray((np.where(rows > 0, table, 0.0) * rows).sum(axis=1))


def fold_values(metric: Metric, problem: Problem, member: np.ndarray) -> np.ndarray:
    """Return the score within each fold and repeat: `member` is (r, fold, n), the result (r, fold, m)."""
    engine = SumEngine(metric, problem, float(problem.n), pool=False)
    r, m, n = engine.r, engine.m, problem.n

    def by_fold(part: np.ndarray) -> np.ndarray:
        if part.shape[0] == 1:
            return np.asarray(member @ part[0].astype(float))[:, :, None]
        stack = part.reshape(m, r, n).transpose(1, 2, 0)
        return np.asarray(member @ stack.astype(float))

    sums = []
    for part, infinite in zip(engine.parts, engine.infinite, strict=True):
        value = by_fold(part)
        if infinite is not None:
            hit = np.zeros(part.shape, np.float32)
            hit[infinite[0]] = infinite[1]
            value[by_fold(hit) > 0] = np.inf
        sums.append(value)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(metric.formula(sums, [by_fold(part) for part in engine.labels]))


def _missing(p: np.ndarray) -> np.ndarray | None:
    """Return where predictions are missing (any class plane), or None when none are."""
    if not np.isnan(np.min(p)):
        return None
    gaps = np.isnan(p)
    return np.asarray(gaps.any(axis=0)) if p.ndim == 4 else gaps


def _set_infinite_aside(flat: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return the values with infinities as zeros, and which columns and samples had them."""
    if flat.dtype.kind != "f" or np.isfinite(flat.max(initial=0.0)):
        return flat, None
    hit = np.isinf(flat)
    columns = np.flatnonzero(hit.any(axis=1))
    return np.where(hit, 0.0, flat), (columns, hit[columns].astype(np.float32))
