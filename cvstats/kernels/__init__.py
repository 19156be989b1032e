"""Scores of all configurations under many weights, in plain numpy: no labels, no xarray, no files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .columns import STATISTICS, ColumnKernel
from .custom import CustomKernel
from .pairs import PairKernel
from .problem import LabelCheck, Problem
from .ranks import RankKernel
from .sums import SumKernel
from .survival import PARTS, CensoredKernel

if TYPE_CHECKING:
    from cvstats.metrics import Metric

__all__ = ["Kernel", "LabelCheck", "Problem", "kernel"]

# by the metric's statistic, else by its family
KERNELS: dict[str, Any] = {
    "mean": SumKernel,
    "smooth": SumKernel,
    "auc": RankKernel,
    "average_precision": RankKernel,
    "concordance": PairKernel,
    **dict.fromkeys(PARTS, CensoredKernel),
    "custom": CustomKernel,
    **dict.fromkeys(STATISTICS, ColumnKernel),
}


class Kernel(Protocol):
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


def kernel(metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> Kernel:
    """Return the kernel for `metric`; `total` bounds the weight of a draw (at least that of all samples).

    `gaps` says whether predictions are missing anywhere in the cube (by default: in this problem), which decides in
    which unit configurations are compared; blocks of one cube must agree on it.
    """
    make = KERNELS[metric.statistic or metric.family]
    made: Kernel = make(metric, problem, max(total, float(len(problem.y))), gaps=gaps)
    return made
