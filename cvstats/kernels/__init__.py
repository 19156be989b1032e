"""Scores of all configurations under many weights, in plain numpy: no labels, no xarray, no files."""

from __future__ import annotations

from .columns import STATISTICS, ColumnKernel
from .custom import CustomKernel
from .pairs import PairKernel
from .problem import Kernel, LabelCheck, Problem
from .ranks import RankKernel
from .sums import SumKernel
from .survival import PARTS, CensoredKernel

__all__ = ["KERNELS", "Kernel", "LabelCheck", "Problem"]

# by the metric's statistic, else by its family
KERNELS: dict[str, type[Kernel]] = {
    "mean": SumKernel,
    "smooth": SumKernel,
    "auc": RankKernel,
    "average_precision": RankKernel,
    "concordance": PairKernel,
    **dict.fromkeys(PARTS, CensoredKernel),
    "custom": CustomKernel,
    **dict.fromkeys(STATISTICS, ColumnKernel),
}
