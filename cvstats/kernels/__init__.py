"""Scores of all configurations under many weights, in plain numpy: no labels, no xarray, no files."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .custom import CustomKernel
from .pairs import PairKernel
from .problem import LabelCheck, Problem
from .ranks import RankKernel
from .sums import SumKernel

__all__ = ["KERNELS", "Kernel", "LabelCheck", "Problem"]

# by the metric's statistic, else by its family
KERNELS: dict[str, Any] = {
    "mean": SumKernel,
    "smooth": SumKernel,
    "auc": RankKernel,
    "average_precision": RankKernel,
    "concordance": PairKernel,
    "custom": CustomKernel,
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
