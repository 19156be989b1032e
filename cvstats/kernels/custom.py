"""A user's own metric: called once per draw, configuration and repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvstats._check import InputError

from .problem import Kernel, Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric


class CustomKernel(Kernel):
    """Scores of all configurations by calling the user's function; slow, but the same interface as the others."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        assert metric.function is not None
        self.metric, self.function, self.problem = metric, metric.function, problem
        self.p = problem.read(metric.uses)
        self.m = self.p.shape[-2]
        self.present = problem.filled()  # (n, m, r)

    def _value(self, column: int, repeat: int, weights: np.ndarray) -> float:
        """Return the function's value for one configuration in one repeat; NaN when no sample is left."""
        p = self.p[..., column, repeat]
        w = weights if self.problem.weight is None else weights * self.problem.weight
        keep = self.present[:, column, repeat] & (w > 0)
        if not keep.any():
            return float("nan")
        event = None if self.problem.event is None else self.problem.event[keep]
        value = self.function(self.problem.y[keep], p[:, keep].T if p.ndim == 2 else p[keep], w[keep], event)
        if np.ndim(value) != 0 or not np.isreal(value):
            raise InputError(f"metric {self.metric.name!r} must return one number; it returned {value!r}.")
        return float(value)

    def _score(self, column: int, weights: np.ndarray) -> float:
        """Return the mean over the repeats in which the configuration predicted anything."""
        begun = np.flatnonzero(self.present[:, column].any(axis=0)).tolist()
        return float(np.mean([self._value(column, r, weights) for r in begun])) if begun else float("nan")

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some configurations under each row of `weights`: (draw, column)."""
        return np.array([[self._score(j, row) for j in columns] for row in weights.astype(float)])
