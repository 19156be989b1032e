"""Tests and comparisons: of estimates in labelled arrays, and of configurations in one cube."""

from __future__ import annotations

from .best import best_set as best_set
from .bias import bias_table as bias_table
from .configurations import delong_test as delong_test
from .configurations import mcnemar_test as mcnemar_test
from .contrasts import contrast as contrast
from .location import corrected_t_test as corrected_t_test
from .location import t_test as t_test
from .multiplicity import p_adjust as p_adjust
from .ranks import critical_difference as critical_difference
from .ranks import friedman_test as friedman_test
from .ranks import nemenyi_test as nemenyi_test
from .ranks import wilcoxon_test as wilcoxon_test
from .sites import meta_analysis as meta_analysis
from .spread import levene_test as levene_test
from .spread import obrien_test as obrien_test
from .spread import pitman_morgan_test as pitman_morgan_test
