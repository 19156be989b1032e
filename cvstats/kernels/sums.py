"""Kernels for means of per-sample values and for smooth functions of such means.

All sums are exact: 0-1 values are whole numbers, real values are rounded once to a grid on which float64 addition
cannot err (fixed point), so a sum does not depend on blocking, chunking or the number of threads, and a tie is a tie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .problem import Problem, Weights
from .scan import scan

if TYPE_CHECKING:
    from cvstats.metrics import Metric

TILE = 131_072  # numbers in an intermediate array: what fits the cache


def on_grid(values: np.ndarray, total: float) -> np.ndarray:
    """Round each row of `values` (columns, n) so that sums with integer weights up to `total` are exact.

    Row j is rounded to a multiple of 2**-k with k = 52 - ceil(log2(total * max|row j|)): the largest possible sum
    then fits the 53 bits of a double. Whole numbers that are small enough stay as they are, in float32 when that
    is exact too.
    """
    if values.dtype.kind in "biu":
        bound = float(values.max(initial=0)) * total
        return values.astype(np.float32 if bound < 2.0**24 else np.float64)
    top = np.maximum(values.max(axis=-1, initial=0.0), -values.min(axis=-1, initial=0.0)).astype(float)
    bound = float(top.max(initial=0.0)) * total
    step = max(1, TILE // max(1, values.shape[-1]))
    tiles = [slice(start, start + step) for start in range(0, len(values), step)]
    if bound < 2.0**53 and all(np.array_equal(values[tile], np.rint(values[tile])) for tile in tiles):
        return values.astype(np.float32 if bound < 2.0**24 else np.float64)
    with np.errstate(over="ignore"):
        power = 52 - np.ceil(np.log2(np.where(top > 0, top, 1.0) * total))
    unit = np.ldexp(1.0, -np.clip(power, -1000, 1000).astype(int))[:, None]
    out = values.astype(np.float64, copy=values.dtype == np.float64)
    for tile in tiles:
        part = out[tile]
        part /= unit[tile]
        np.rint(part, out=part)
        part *= unit[tile]
    return out


class SumKernel:
    """Scores of all configurations under any weights, by one matrix product per ingredient.

    Parameters
    ----------
    metric, problem
        What to compute and on which arrays.
    total
        Upper bound of the sum of weights of a draw (for exactness).
    pool
        Whether a linear metric may add up a sample's repeats first (one product for all repeats).
    gaps
        Whether predictions are missing somewhere in the cube; by default whether they are missing here. Blocks of
        one cube must agree on it, because it decides in which unit sums are compared.
    """

    def __init__(
        self,
        metric: Metric,
        problem: Problem,
        total: float,
        *,
        pool: bool = True,
        gaps: bool | None = None,
    ) -> None:
        self.metric = metric
        p = problem.p
        self.m, self.r = p.shape[-2], p.shape[-1]
        self.pooled = pool and metric.linear
        gaps = scan(p).gaps if gaps is None else gaps
        self.divisor = 1.0
        width = self.m if self.pooled else self.m * self.r
        flat, present = self._ingredients(problem, width, gaps)
        self.begun = None if self.pooled or present is None else present.any(axis=0).reshape(self.m, self.r)
        present = None if present is None or present.all() else present
        weight = problem.weight
        self.parts, self.infinite = [], []
        most = np.finfo(float).max / max(1.0, total * (1.0 if weight is None else float(weight.max(initial=0.0))))
        for part in flat:
            part, infinite = _set_infinite_aside(part, weight, most)
            self.parts.append(on_grid(part if weight is None else part * weight, total))
            self.infinite.append(infinite)
        labels = [np.ones(problem.n), *metric.label_parts(problem.y, problem.n_classes)]
        self.labels = [self._label(part, present, weight, total, width) for part in labels]
        self.exact = self.pooled and bool(metric.monotone) and len(self.labels[0]) == 1

    def _divisor(self, part: np.ndarray, gaps: bool) -> float:
        """Return what turns sums over repeats into means.

        With gaps a sample's value is its mean over the repeats that have it. Counting in units of one over the least
        common multiple of all possible numbers of repeats keeps 0-1 losses whole; beyond 20 repeats it is too large.
        Real losses are always counted so: a column's score must not depend on whether its neighbours have gaps.
        """
        if not self.pooled:
            return 1.0
        if part.dtype == bool and not gaps:
            return float(self.r)
        return float(math.lcm(*range(1, self.r + 1))) if self.r <= 20 else 1.0

    def _ingredients(self, problem: Problem, width: int, gaps: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return per-sample ingredients (column, n), and where predictions are present (n, column) if some are not."""
        n, p = problem.n, problem.p
        step = max(1, TILE // max(1, p.size // n))
        flat: list[np.ndarray] = []
        present = np.ones((n, width), bool) if gaps else None
        for start in range(0, n, step):
            here = slice(start, min(start + step, n))
            block = problem.read(self.metric.uses, here, whole=not gaps)
            y = problem.y[here, None, None] if problem.y.ndim == 1 else problem.y[here, :, None]
            if self.metric.uses == "label":
                y = y.astype(block.dtype, copy=False)  # codes: comparing mixed types would be slow
            parts = self.metric.ingredients(y, block, problem.n_classes)
            if not start:
                self.divisor = self._divisor(parts[0], gaps)
            missing = _missing(block) if gaps else None
            if present is not None:
                rows = np.ones((len(y), self.m, self.r), bool) if missing is None else ~missing
                parts = self._fill(parts, rows, missing is not None)
                present[here] = rows.any(axis=2) if self.pooled else rows.reshape(len(y), width)
            elif self.pooled:
                parts = [add_repeats(part) for part in parts]
                if self.divisor != self.r:
                    with np.errstate(over="ignore"):
                        parts = [part * (self.divisor / self.r) for part in parts]
            if not flat:
                flat = [np.empty((width, n), np.uint8 if part.dtype == bool else part.dtype) for part in parts]
            for whole, part in zip(flat, parts, strict=True):
                whole[:, here] = part.reshape(len(y), width).T
        return flat, present

    def _fill(self, parts: list[np.ndarray], rows: np.ndarray, some: bool) -> list[np.ndarray]:
        """Return ingredients with zeros for what is missing; pooled ones as means over repeats, times the divisor."""
        parts = [np.where(rows, part, 0) for part in parts] if some else parts
        if not self.pooled:
            return [part * 1.0 for part in parts]
        count = rows.sum(axis=2)
        scale = np.where(count > 0, self.divisor / np.maximum(count, 1), 0.0)
        with np.errstate(over="ignore"):
            return [add_repeats(part) * scale for part in parts]

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
            full = np.where(present, full, 0)
        return on_grid(np.ascontiguousarray(full.T), total)

    def sums(
        self, weights: np.ndarray | Weights, columns: slice = slice(None)
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the ingredient sums (draw, columns) and label sums (draw, 1 or columns) under `weights` (draw, n)."""
        cast = Weights.of(weights).cast
        sums = []
        for part, infinite in zip(self.parts, self.infinite, strict=True):
            value = cast(part.dtype) @ part[columns].T
            if infinite is not None:
                value = value.astype(float)
                value[cast(np.dtype(np.float32)) @ _whole(part, infinite)[columns].T > 0] = np.inf
            sums.append(value)
        return sums, [cast(part.dtype) @ (part if len(part) == 1 else part[columns]).T for part in self.labels]

    def values(self, sums: list[np.ndarray], labels: list[np.ndarray], begun: np.ndarray | None = None) -> np.ndarray:
        """Return scores (draw, m) from sums, averaged over the repeats in which a configuration predicted anything."""
        scaled = [
            _double(value) if self.divisor == 1 else np.divide(value, self.divisor, dtype=float) for value in sums
        ]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            score = self.metric.formula(scaled, [_double(label) for label in labels])
        if self.pooled:
            return np.asarray(score)
        return self._over_repeats(score.reshape(*score.shape[:-1], -1, self.r), begun)

    def _over_repeats(self, score: np.ndarray, begun: np.ndarray | None) -> np.ndarray:
        """Average (..., r) over repeats; `begun` (..., r) says which ones a configuration has."""
        if self.r == 1:
            return np.asarray(score[..., 0])
        if begun is None:
            return np.asarray(add_repeats(score) / self.r)
        count = begun.sum(axis=-1)
        return np.asarray(add_repeats(np.where(begun, score, 0.0)) / np.where(count > 0, count, np.nan))

    def scores(self, weights: np.ndarray | Weights) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def criterion(self, weights: np.ndarray | Weights) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise, on exact sums where the metric is monotone in one, and the scores."""
        if self.exact:
            sums, labels = self.sums(weights)
            first = sums[0] if self.metric.monotone > 0 else -sums[0]
            return first, self.values(sums, labels)
        score = np.empty((len(weights), self.m))
        repeats = 1 if self.pooled else self.r
        step = max(1, TILE // max(1, len(weights) * repeats))
        weights = Weights.of(weights)
        for start in range(0, self.m, step):
            stop = min(start + step, self.m)
            begun = None if self.begun is None else self.begun[start:stop]
            sums, labels = self.sums(weights, slice(start * repeats, stop * repeats))
            score[:, start:stop] = self.values(sums, labels, begun)
        return (score if self.metric.sign > 0 else -score), score

    def judged(self, weights: np.ndarray | Weights, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        weights = weights.counts if isinstance(weights, Weights) else weights
        out = np.empty(len(index))
        repeats = 1 if self.pooled else self.r
        step = max(1, TILE // max(1, repeats * weights.shape[1]))
        for start in range(0, len(index), step):
            here = slice(start, start + step)
            out[here] = self._judged(weights[here], index[here], repeats)
        return out

    def _judged(self, weights: np.ndarray, index: np.ndarray, repeats: int) -> np.ndarray:
        cast = Weights(weights).cast
        n = weights.shape[1]

        def gather(part: np.ndarray) -> np.ndarray:
            """Return (draw, repeat) sums of the winners' rows."""
            left = cast(part.dtype)
            if len(part) == 1:
                return np.asarray(left @ part.T)
            if self.m == 1:
                return np.asarray(left @ part.T)
            rows = part.reshape(self.m, repeats, n)[index]
            return np.asarray(np.einsum("bn,brn->br", left, rows))

        sums = []
        for part, infinite in zip(self.parts, self.infinite, strict=True):
            value = gather(part).astype(float)
            if infinite is not None:
                value[gather(_whole(part, infinite)) > 0] = np.inf
            sums.append(value / self.divisor)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            score = self.metric.formula(sums, [_double(gather(part)) for part in self.labels])
        score = np.broadcast_to(score, (len(index), repeats))
        if self.pooled:
            return np.asarray(score[:, 0])
        return self._over_repeats(score, None if self.begun is None else self.begun[index])


def _double(values: np.ndarray) -> np.ndarray:
    return values.astype(float, copy=False)


def _whole(part: np.ndarray, infinite: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return where an ingredient is infinite, in its own shape."""
    hit = np.zeros(part.shape, np.float32)
    hit[infinite[0]] = infinite[1]
    return hit


def add_repeats(part: np.ndarray) -> np.ndarray:
    """Return the sum over the last axis, added one by one: the same bits for every layout, and fast for few repeats."""
    r = part.shape[-1]
    if part.dtype == bool:  # whole numbers: any order will do
        return np.asarray(np.einsum("...r->...", part.view(np.uint8) if r < 256 else part.astype(np.int64)))
    total = part[..., 0].copy()
    with np.errstate(over="ignore"):  # an infinite sum is set aside
        for repeat in range(1, r):
            total += part[..., repeat]
    return np.asarray(total)


def fold_values(metric: Metric, problem: Problem, member: np.ndarray, total: float) -> np.ndarray:
    """Return the score within each fold and repeat, (r, fold, m).

    `member` (r, fold, n) counts how often a sample is in a fold; `total` is the sum of all counts of a repeat.
    """
    kernel = SumKernel(metric, problem, total, pool=False)
    r, m, n = kernel.r, kernel.m, problem.n

    def by_fold(part: np.ndarray) -> np.ndarray:
        if part.shape[0] == 1:
            return np.asarray(member @ part[0].astype(float))[:, :, None]
        stack = part.reshape(m, r, n).transpose(1, 2, 0)
        return np.asarray(member @ stack.astype(float))

    sums = []
    for part, infinite in zip(kernel.parts, kernel.infinite, strict=True):
        value = by_fold(part)
        if infinite is not None:
            value[by_fold(_whole(part, infinite)) > 0] = np.inf
        sums.append(value)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(metric.formula(sums, [by_fold(part) for part in kernel.labels]))


def _missing(p: np.ndarray) -> np.ndarray | None:
    """Return where predictions are missing (any class plane), or None when none are."""
    if not np.isnan(np.min(p)):
        return None
    gaps = np.isnan(p)
    return np.asarray(gaps.any(axis=0)) if p.ndim == 4 else gaps


def _set_infinite_aside(
    flat: np.ndarray, weight: np.ndarray | None, most: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return the values with infinities as zeros, and which columns and samples (of positive weight) had them.

    What exceeds `most` is infinite too: a sum over a draw could not be represented.
    """
    if flat.dtype.kind != "f" or flat.max(initial=0.0) <= most:
        return flat, None
    hit = flat > most
    finite = np.where(hit, 0.0, flat)
    hit = hit if weight is None else hit & (weight > 0)
    columns = np.flatnonzero(hit.any(axis=1))
    return finite, (columns, hit[columns].astype(np.float32))
