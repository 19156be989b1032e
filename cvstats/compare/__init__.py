"""Tests and comparisons: of estimates in labelled arrays, and of configurations in one cube."""

from __future__ import annotations

from .adjust import p_adjust
from .bias import bias_table
from .diagram import critical_difference
from .location import corrected_t_test, t_test
from .ranks import friedman_test, nemenyi_test
from .signed_rank import wilcoxon_test
from .spread import levene_test, obrien_test, pitman_morgan_test

__all__ = [
    "bias_table",
    "corrected_t_test",
    "critical_difference",
    "friedman_test",
    "levene_test",
    "nemenyi_test",
    "obrien_test",
    "p_adjust",
    "pitman_morgan_test",
    "t_test",
    "wilcoxon_test",
]
