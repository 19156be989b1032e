"""A user's own metric: called once per draw, configuration and repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvstats._check import InputError

from .problem import Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric


def custom_column(metric: Metric, problem: Problem, column: int, repeat: int, weights: np.ndarray) -> float:
    """Return the user's metric of one configuration in one repeat; NaN when no sample is left."""
    assert metric.function is not None
    p = problem.p[..., column, repeat]
    present = ~(np.isnan(p).any(axis=0) if p.ndim == 2 else np.isnan(p))
    w = weights if problem.weight is None else weights * problem.weight
    keep = present & (w > 0)
    if not keep.any():
        return float("nan")
    y = problem.y if problem.y.ndim == 1 else problem.y[:, column]
    prediction = p[:, keep].T if p.ndim == 2 else p[keep]
    value = metric.function(y[keep], prediction, w[keep])
    if np.ndim(value) != 0 or not np.isreal(value):
        raise InputError(f"metric {metric.name!r} must return one number; it returned {value!r}.")
    return float(value)


class CustomEngine:
    """Scores of all configurations by calling the user's function; slow, but the same interface as the others."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, self.problem = metric, problem
        self.m, self.r = problem.p.shape[-2], problem.p.shape[-1]
        planes = problem.p if problem.p.ndim == 4 else problem.p[None]
        self.some = ~np.isnan(planes).any(axis=0).all(axis=0)

    def _one(self, column: int, weights: np.ndarray) -> float:
        values = [
            custom_column(self.metric, self.problem, column, r, weights) for r in range(self.r) if self.some[column, r]
        ]
        return float(np.mean(values)) if values else float("nan")

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return np.array([[self._one(column, row) for column in range(self.m)] for row in weights.astype(float)])

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise and the scores."""
        score = self.scores(weights)
        return self.metric.sign * score, score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        return np.array([self._one(int(j), row) for j, row in zip(index, weights.astype(float), strict=True)])
