"""Which kernel serves which family of metrics. All have the same three methods: scores, criterion, judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .custom import CustomEngine
from .pairs import ConcordanceEngine
from .problem import Problem
from .ranks import RankEngine
from .sums import SumEngine

if TYPE_CHECKING:
    from cvstats.metrics import Metric


class Engine(Protocol):
    """Scores under many weight vectors at once."""

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        ...

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (on exact sums where possible) and the scores, both (draw, m)."""
        ...

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        ...


def engine(
    metric: Metric,
    problem: Problem,
    total: float,
    *,
    gaps: bool | None = None,
    convert: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Engine:
    """Return the kernel for `metric`; `total` bounds the weight of a draw (at least that of all samples).

    `gaps` says whether predictions are missing anywhere in the cube (by default: in this problem), which decides in
    which unit configurations are compared. `convert` is applied to predictions that are not yet in the metric's form.
    """
    total = max(total, float(problem.n))
    if metric.family in ("mean", "smooth"):
        return SumEngine(metric, problem, total, gaps=gaps, convert=convert)
    if convert is not None:
        problem = replace(problem, p=convert(problem.p))
    if metric.family == "custom":
        return CustomEngine(metric, problem, total)
    if metric.statistic == "concordance":
        return ConcordanceEngine(metric, problem, total, gaps=gaps)
    return RankEngine(metric, problem, total, gaps=gaps)
