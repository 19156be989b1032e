"""Kernels for means of per-sample values and for smooth functions of such means.

All sums are exact: 0-1 values are whole numbers, real values are rounded once to a grid on which float64 addition
cannot err (fixed point), so a sum does not depend on blocking, chunking or the number of threads, and a tie is a tie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .problem import Kernel, Problem, settled
from .repeats import add_up, over_repeats

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


class SumKernel(Kernel):
    """Scores of all configurations under any weights, by one matrix product per ingredient.

    Parameters
    ----------
    metric, problem
        What to compute and on which arrays.
    total
        Upper bound of the sum of weights of a draw (for exactness).

    Attributes
    ----------
    parts, labels
        Ingredients of predictions (column, n) and of labels alone (1 or column, n), case weights included. Those of a
        class hold its samples only, so that many classes take no more products than few.
    rows
        Which samples each of the parts and then of the labels holds.
    divisor
        What turns sums of `parts` into sums over samples.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric = metric
        self.m, self.r = problem.p.shape[-2:]
        self.merged = self.r if metric.linear else problem.partners  # predictions of a sample that are averaged first
        self.width = self.r // self.merged  # columns of a configuration
        self.divisor = 1.0
        parts, present = self._ingredients(
            problem, bool(np.isnan(np.min(problem.p))) if problem.gaps is None else problem.gaps
        )
        self.begun = np.ones((self.m, self.width), bool)
        if present is not None:
            self.begun = present.any(axis=0).reshape(self.m, self.width)
            present = None if present.all() else present
        labels = [np.ones(len(problem.y))]
        if metric.label_parts is not None:
            y = problem.y
            if present is not None and metric.requires == "spread":  # around a centre of what a column predicted
                y = np.where(present, y[:, None], np.nan)
            labels += metric.label_parts(y, problem.n_classes)
        labels = [part[None] if present is None else np.where(present.T, part.T, 0.0) for part in labels]
        if problem.weight is not None:  # on one grid, so that samples of one weight weigh the same in every column
            weight = on_grid(problem.weight[None], total * self.divisor)[0].astype(float)
            parts, labels = ([part * weight for part in some] for some in (parts, labels))
        self.rows, every = [], []
        for part in (*parts, *labels):
            rows, some = _counting(part) if len(parts) > 1 else (slice(None), part)
            self.rows.append(rows)
            every.append(on_grid(some, total))
        self.dtype = np.result_type(*every)
        self.parts = [part.astype(self.dtype, copy=False) for part in every[: len(parts)]]
        self.labels = every[len(parts) :]
        self.exact = metric.linear and bool(metric.monotone) and len(self.labels[0]) == 1

    def _ingredients(self, problem: Problem, gaps: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return per-sample ingredients (column, n), and where predictions are present (n, column) if some are not.

        With gaps a sample's value is its mean over the repeats that have it. Counting in units of one over the least
        common multiple of all possible numbers of repeats keeps 0-1 losses whole; beyond 20 repeats it is too large.
        Real losses are always counted so: a column's score must not depend on whether its neighbours have gaps.
        """
        metric, n, columns = self.metric, len(problem.y), self.m * self.width
        step = max(1, TILE // max(1, problem.p.size // n))
        flat: list[np.ndarray] = []
        present = np.ones((n, columns), bool) if gaps else None
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            block = problem.read(metric.uses, rows, whole=not gaps)
            y = problem.y[rows, None, None]
            if metric.uses == "label":
                y = y.astype(block.dtype, copy=False)  # codes: comparing mixed types would be slow
            parts = metric.ingredients(y, block, problem.n_classes)
            if not flat:
                whole, most = parts[0].dtype == bool and not gaps, self.merged
                self.divisor = float(most if whole else math.lcm(*range(1, most + 1)) if most <= 20 else 1)
            scale: Any = self.divisor / self.merged
            if present is not None:
                missing = np.isnan(block)
                filled = ~(missing.any(axis=0) if block.ndim == 4 else missing)
                parts = [np.where(filled, part, 0.0) for part in parts]
                filled = filled.reshape(len(y), columns, self.merged)
                present[rows] = filled.any(axis=2)
                scale = self.divisor / np.maximum(filled.sum(axis=2), 1)
            if self.merged > 1:
                count = np.uint8 if self.merged < 256 else np.int64  # whole numbers may be added in any order
                parts = [part.reshape(len(y), columns, self.merged) for part in parts]
                parts = [
                    np.einsum("...r->...", part.view(np.uint8).astype(count, copy=False))
                    if part.dtype == bool
                    else add_up(np.moveaxis(part, -1, 0))
                    for part in parts
                ]
                parts = parts if np.all(scale == 1) else [part * scale for part in parts]
            if not flat:
                flat = [np.empty((columns, n), np.uint8 if part.dtype == bool else part.dtype) for part in parts]
            for table, part in zip(flat, parts, strict=True):
                table[:, rows] = part.reshape(len(y), columns).T
        return flat, present

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise, on exact sums where the metric is monotone in one, and the scores."""
        weights = weights.astype(float if weights.dtype.kind == "f" else self.dtype, copy=False)
        step = self.m if self.exact else max(1, TILE // max(1, len(weights) * self.width))
        score = np.empty((0 if self.exact else len(weights), self.m))
        each = [weights[:, rows] for rows in self.rows]
        for start in range(0, self.m, step):
            some = slice(start, min(start + step, self.m))
            columns = slice(start * self.width, some.stop * self.width)
            sums = [w @ part[columns].T for w, part in zip(each, self.parts, strict=False)]
            own = (part if len(part) == 1 else part[columns] for part in self.labels)
            labels = [w @ part.T for w, part in zip(each[len(sums) :], own, strict=True)]
            table = self._formula(sums, labels)
            if self.exact:  # all in one step
                return (sums[0] if self.metric.monotone > 0 else -sums[0]), table
            if self.width > 1:
                table = over_repeats(table.reshape(len(table), -1, self.width).transpose(1, 2, 0), self.begun[some]).T
            score[:, some] = table
        return settled(score, self.metric.sign), score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        out = np.empty(len(index))
        step = max(1, TILE // max(1, self.width * max(part.shape[1] for part in self.parts)))
        for start in range(0, len(index), step):
            now = slice(start, start + step)
            left, mine = weights[now].astype(float if weights.dtype.kind == "f" else self.dtype), index[now]
            each = []
            for rows, part in zip(self.rows, (*self.parts, *self.labels), strict=True):
                shared = len(part) == 1 or self.m == 1
                own = part if shared else part.reshape(self.m, self.width, -1)[mine]
                each.append(left[:, rows] @ own.T if shared else np.einsum("bn,brn->br", left[:, rows], own))
            table = self._formula(each[: len(self.parts)], each[len(self.parts) :])
            table = np.broadcast_to(table, (len(left), self.width))
            out[now] = table[:, 0] if self.width == 1 else over_repeats(table, self.begun[mine])
        return out

    def _formula(self, sums: list[np.ndarray], labels: list[np.ndarray]) -> np.ndarray:
        """Return the metric of sums, in double precision."""
        with np.errstate(divide="ignore", invalid="ignore"):
            sums, labels = ([part.astype(float, copy=False) for part in some] for some in (sums, labels))
            if self.metric.family == "mean":
                return np.asarray(sums[0] / (labels[0] * self.divisor))
            sums = sums if self.divisor == 1 else [part / self.divisor for part in sums]
            return np.asarray(self.metric.formula(sums, labels))


def _counting(part: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the samples that an ingredient (column, n) counts at all, and the ingredient over them."""
    there = np.asarray(part.any(axis=0))
    if 2 * np.count_nonzero(there) > len(there):
        return slice(None), part
    rows = np.flatnonzero(there)
    return rows, part[:, rows]
