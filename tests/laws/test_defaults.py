"""Defaults are a promise: results in papers name the function, not its arguments."""

import inspect

import pytest

import cvstats as cs

BOOTSTRAP = {"times": 1000, "level": 0.95, "select": cs.select_best, "keep_draws": False, "progress": False}
LEVEL = {"level": 0.95}
DRAWN = {"level": 0.95, "times": 1000}
POOLED = {"average": "pooled"}
STRICT = {"undefined": "nan"}
CURVE = DRAWN | {"select": cs.select_best}
DEFAULTS = {
    "score": POOLED | STRICT,
    "cv": POOLED | STRICT,
    "cvt": POOLED | STRICT | {"select": cs.select_best},
    "cvm_cv": {"average": "pooled"},
    "tt": STRICT,
    "ncv": STRICT | {"inner_kind": "cv", "average": "fold", "criterion_direction": "minimize"},
    "bbc": BOOTSTRAP | POOLED | {"interval": "percentile", "ties": "first"},
    "bbcd": BOOTSTRAP | {"interval": "percentile", "ties": "first", "threshold": 0.99, "min_predictions": 50},
    "winner": BOOTSTRAP | POOLED | {"interval": "calibrated", "regime": "cv", "strata": "auto"},
    "drop_configurations": {"threshold": 0.99, "min_predictions": 0, "times": 1000, "select": cs.select_best},
    "separate_cv": DRAWN | {"metric": "error_rate"},
    "classical_cv": DRAWN | {"metric": "error_rate"},
    "prior_reweighted_cv": DRAWN | {"metric": "error_rate"},
    "optimism_curve": POOLED | {"times": 200, "order": "random"},
    "precision_plan": LEVEL | {"times": 200, "draws": 1000},
    "roc_curve": CURVE | {"by": "auc"},
    "precision_recall_curve": CURVE | {"by": "auc"},
    "calibration_curve": CURVE | {"binned": False},  # `by`: log loss, or the Brier score at the horizon
    "decision_curve": CURVE | {"by": "auc"},
    "confint": LEVEL,
    "kfold": {"repeats": 1, "stratified": True},
    "nested_folds": {"stratified": True},
    "separate_folds": {"repeats": 1},
    "subsample": {"times": 1000, "fraction": 0.632},
    "prior_curve": DRAWN | {"metric": "error_rate"},
    "implementations": {"metric": "error_rate"},
    "evaluation_protocols": {"metric": "error_rate", "first": 5, "dim": "realisation"},
    "bootstrap": {"times": 1000},
    "select_and_judge": POOLED | {"select": cs.select_best, "ties": "random", "progress": False},
    "t_test": LEVEL | {"paired": True, "mu": 0.0, "alternative": "two-sided"},
    "corrected_t_test": LEVEL,
    "wilcoxon_test": {"alternative": "two-sided"},
    "levene_test": {"center": "median", "trim": 0.1},
    "obrien_test": {},
    "pitman_morgan_test": LEVEL,
    "friedman_test": {},
    "nemenyi_test": {},
    "critical_difference": LEVEL | {"test": "nemenyi"},
    "meta_analysis": LEVEL | {"scale": "auto"},
    "mcnemar_test": {"distribution": "exact"},
    "delong_test": LEVEL,
    "contrast": DRAWN | POOLED | {"strata": "auto", "keep_draws": False, "regime": "cv", "progress": False},
    "best_set": DRAWN | POOLED | {"strata": "auto", "progress": False},
    "bias_table": LEVEL | {"by": "method"},
    "p_adjust": {"method": "holm"},
    "calibrated": {"safe_upper": "auto"},
    "double_bootstrap": {"outer": 300, "inner": 60},
    "bca": {},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    parameters = inspect.signature(getattr(cs, name)).parameters
    found = {key: p.default for key, p in parameters.items() if p.default is not p.empty and p.default is not None}
    assert found == DEFAULTS[name]
