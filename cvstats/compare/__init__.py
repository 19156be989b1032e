"""Tests and comparisons: of estimates in labelled arrays, and of configurations in one cube."""

from __future__ import annotations

from .adjust import p_adjust
from .best import best_set
from .bias import bias_table
from .configurations import delong_test, mcnemar_test
from .contrasts import contrast
from .diagram import critical_difference
from .location import corrected_t_test, t_test
from .ranks import friedman_test, nemenyi_test
from .signed_rank import wilcoxon_test
from .spread import levene_test, obrien_test, pitman_morgan_test

__all__ = [
    "best_set",
    "bias_table",
    "contrast",
    "corrected_t_test",
    "critical_difference",
    "delong_test",
    "friedman_test",
    "levene_test",
    "mcnemar_test",
    "nemenyi_test",
    "obrien_test",
    "p_adjust",
    "pitman_morgan_test",
    "t_test",
    "wilcoxon_test",
]
