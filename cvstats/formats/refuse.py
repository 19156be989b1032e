"""Tables that look like results but hold no predictions: said plainly, so that nobody searches for the right option."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cvstats._check import InputError

SCORES = r"(?i)(accuracy|auc|roc_auc|kappa|rmse|rsquared|mae|mse|r2|f1|logloss|log_loss|roc|error|score|mcc|brier)"

# (what it is, regular expressions that all match a column)
NOT_PREDICTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("an Optuna study (trials_dataframe())", ("number", r"values?(_\d+)?", r"params_.+|state")),
    ("a Weka Experimenter result", ("Key_Dataset", "Key_Run")),
    ("scikit-learn's cv_results_", (r"mean_test_.+", r"params|split\d+_test_.+")),
    ("scores from scikit-learn's cross_validate", ("fit_time", r"test_.+")),
    ("tidymodels' collect_metrics()", (r"\.metric", r"\.estimator")),
    ("caret's $resample or $results", (SCORES, "Resample|AccuracySD|RMSESD|ROCSD")),
    ("an AutoML benchmark result table", ("framework", "fold", "result|metric")),
    ("an H2O leaderboard", ("model_id", SCORES)),
    ("an mlr3 benchmark score", ("learner_id", "resampling_id", r"classif\..+|regr\..+")),
    ("a table of scores per fold", ("(?i)fold|split|cv_?fold|resample|iteration", SCORES)),
)
ROW_IDS = r"(?i)sample|row_?id|row_?ids|rowindex|inst#|\.row|id|sample name|prediction.*|pred|predict|\.pred.*"


def refuse_scores(columns: Sequence[str]) -> None:
    """Raise when the columns are those of a table of scores or trials."""
    for what, needs in NOT_PREDICTIONS:
        if not all(any(re.fullmatch(need, name) for name in columns) for need in needs):
            continue
        if what.startswith("a table") and any(re.fullmatch(ROW_IDS, name) for name in columns):
            continue
        raise InputError(
            f"this is {what}: it holds scores, not predictions. cvstats needs every out-of-sample prediction "
            "with its sample id and the truth; save those when training (see read_predictions). For scores of folds "
            "there are read_scores() and bbc_folds()."
        )
