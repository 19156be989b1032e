"""Kernels for means of per-sample values and for smooth functions of such means.

All sums are exact: 0-1 values are whole numbers, real values are rounded once to a grid on which float64 addition
cannot err (fixed point), so a sum does not depend on blocking, chunking or the number of threads, and a tie is a tie.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .problem import Problem, Weights
from .repeats import add_up, over_repeats
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
    gaps
        Whether predictions are missing somewhere in the cube; by default whether they are missing here. Blocks of
        one cube must agree on it, because it decides in which unit sums are compared.

    Attributes
    ----------
    parts, labels
        Ingredients of predictions (column, n) and of labels alone (1 or column, n), case weights included.
    divisor
        What turns sums of `parts` into sums over samples.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        self.metric = metric
        self.m, self.r = problem.p.shape[-2:]
        self.width = 1 if metric.linear else self.r  # columns of a configuration; if linear, repeats are added first
        gaps = scan(problem.p).gaps if gaps is None else gaps
        self.divisor = 1.0
        weight = 1.0 if problem.weight is None else problem.weight
        flat, present = self._ingredients(problem, gaps)
        self.begun = np.ones((self.m, self.width), bool)
        if present is not None:
            self.begun = present.any(axis=0).reshape(self.m, self.width)
            present = None if present.all() else present
        self.parts = [on_grid(part if problem.weight is None else part * weight, total) for part in flat]
        labels = [np.ones(problem.n), *metric.label_parts(problem.y, problem.n_classes)]
        self.labels = [on_grid(self._by_column(part, present) * weight, total) for part in labels]
        self.exact = metric.linear and bool(metric.monotone) and len(self.labels[0]) == 1

    def _ingredients(self, problem: Problem, gaps: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return per-sample ingredients (column, n), and where predictions are present (n, column) if some are not."""
        n, columns = problem.n, self.m * self.width
        step = max(1, TILE // max(1, problem.p.size // n))
        flat: list[np.ndarray] = []
        present = np.ones((n, columns), bool) if gaps else None
        for start in range(0, n, step):
            here = slice(start, min(start + step, n))
            block = problem.read(self.metric.uses, here, whole=not gaps)
            y = problem.y[here, None, None] if problem.y.ndim == 1 else problem.y[here, :, None]
            if self.metric.uses == "label":
                y = y.astype(block.dtype, copy=False)  # codes: comparing mixed types would be slow
            parts = self.metric.ingredients(y, block, problem.n_classes)
            if not start and self.metric.linear:
                self.divisor = self._divisor(parts[0], gaps)
            if present is not None:
                missing = np.isnan(block)
                rows = ~(missing.any(axis=0) if block.ndim == 4 else missing)
                parts = [np.where(rows, part, 0.0) for part in parts]
                present[here] = rows.any(axis=2) if self.metric.linear else rows.reshape(len(y), columns)
                scale = self.divisor / np.maximum(rows.sum(axis=2), 1)
            else:
                scale = self.divisor / self.r
            if self.metric.linear:
                parts = [_added(part) if np.all(scale == 1) else _added(part) * scale for part in parts]
            if not flat:
                flat = [np.empty((columns, n), np.uint8 if part.dtype == bool else part.dtype) for part in parts]
            for whole, part in zip(flat, parts, strict=True):
                whole[:, here] = part.reshape(len(y), columns).T
        return flat, present

    def _divisor(self, part: np.ndarray, gaps: bool) -> float:
        """Return what turns sums over repeats into means.

        With gaps a sample's value is its mean over the repeats that have it. Counting in units of one over the least
        common multiple of all possible numbers of repeats keeps 0-1 losses whole; beyond 20 repeats it is too large.
        Real losses are always counted so: a column's score must not depend on whether its neighbours have gaps.
        """
        if part.dtype == bool and not gaps:
            return float(self.r)
        return float(math.lcm(*range(1, self.r + 1))) if self.r <= 20 else 1.0

    def _by_column(self, part: np.ndarray, present: np.ndarray | None) -> np.ndarray:
        """Return a label-only ingredient as (1, n) when all columns share it, else as (columns, n)."""
        if part.ndim == 1 and present is None:
            return part[None]
        wide = part[:, None] if part.ndim == 1 else np.repeat(part, self.width, axis=1)
        full = np.broadcast_to(wide, (len(part), self.m * self.width))
        return np.ascontiguousarray((full if present is None else np.where(present, full, 0)).T)

    def sums(
        self, weights: np.ndarray | Weights, columns: slice = slice(None)
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the ingredient sums (draw, columns) and label sums (draw, 1 or columns) under `weights` (draw, n)."""
        cast = Weights.of(weights).cast
        sums = [cast(part.dtype) @ part[columns].T for part in self.parts]
        return sums, [cast(part.dtype) @ (part if len(part) == 1 else part[columns]).T for part in self.labels]

    def _formula(self, sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
        """Return the metric of sums."""
        scaled = [_double(part) if self.divisor == 1 else np.divide(part, self.divisor, dtype=float) for part in sums]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.metric.formula(scaled, [_double(label) for label in labels]))

    def scores(self, weights: np.ndarray | Weights) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def criterion(self, weights: np.ndarray | Weights) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise, on exact sums where the metric is monotone in one, and the scores."""
        weights = Weights.of(weights)
        if self.exact:
            sums, labels = self.sums(weights)
            return (sums[0] if self.metric.monotone > 0 else -sums[0]), self._formula(sums, labels)
        score = np.empty((len(weights), self.m))
        step = max(1, TILE // max(1, len(weights) * self.width))
        for start in range(0, self.m, step):
            here = slice(start, min(start + step, self.m))
            table = self._formula(*self.sums(weights, slice(start * self.width, here.stop * self.width)))
            if self.width > 1:
                table = over_repeats(table.reshape(len(table), -1, self.width).transpose(1, 2, 0), self.begun[here]).T
            score[:, here] = table
        return (score if self.metric.sign > 0 else -score), score

    def judged(self, weights: np.ndarray | Weights, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        counts = Weights.of(weights).counts
        out = np.empty(len(index))
        step = max(1, TILE // max(1, self.width * counts.shape[1]))
        for start in range(0, len(index), step):
            here = slice(start, start + step)
            gather = partial(self._gather, Weights(counts[here]), index[here])
            table = self._formula([gather(part) for part in self.parts], [gather(part) for part in self.labels])
            table = np.broadcast_to(table, (len(table), self.width))
            out[here] = table[:, 0] if self.width == 1 else over_repeats(table, self.begun[index[here]])
        return out

    def _gather(self, weights: Weights, index: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Return the sums (draw, width) of an ingredient of each draw's own configuration."""
        left = weights.cast(part.dtype)
        if len(part) == 1 or self.m == 1:
            return np.asarray(left @ part.T)
        return np.asarray(np.einsum("bn,brn->br", left, part.reshape(self.m, self.width, -1)[index]))


def _double(values: np.ndarray) -> np.ndarray:
    return values.astype(float, copy=False)


def _added(part: np.ndarray) -> np.ndarray:
    """Return the sum over repeats, the last axis; quickly for whole numbers, of which any order will do."""
    r = part.shape[-1]
    if part.dtype == bool:
        return np.asarray(np.einsum("...r->...", part.view(np.uint8) if r < 256 else part.astype(np.int64)))
    return add_up(part[..., repeat] for repeat in range(r))
