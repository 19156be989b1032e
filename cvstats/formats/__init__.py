"""Layouts of saved predictions in the wild, one small file each.

Every file declares a `Layout`: which column names it is recognised by, what it must not be confused with, and how its
table turns into our own words. Recognition is by column name, never by position. Files whose names begin with an
underscore hold what the layouts share: reading tables, and assembling the cube.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cvstats._check import InputError, check_option, clipped, show

from . import amlb, autogluon, caret, h2o, jadbio, julearn, long, mljar, mlr3, openml, pycaret, tidymodels, weka, wide
from ._layout import ROW_NAMES, TRUTHS, Hints, Layout, Parsed

__all__ = ["BY_HAND", "LAYOUTS", "Hints", "Layout", "Parsed", "recognise"]

READERS = (long, wide, tidymodels, caret, mlr3, openml, amlb, autogluon, h2o, mljar, pycaret, weka, julearn, jadbio)
DECLARED = [found for reader in READERS for found in vars(reader).values() if isinstance(found, Layout)]
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in DECLARED}
# our word -> other people's, in lower case without punctuation
SYNONYMS = {
    "sample": "sample id sampleid row rowid rowindex rowids index idx subject subjectid patient patientid case caseid",
    "configuration": "configuration config model modelid modelname method algorithm learner pipeline estimator"
    " classifier regressor params workflow wflowid trial",
    "repeat": "repeat rep repetition iteration iter run seed",
    "fold": "fold foldid cvfold cv split",
    "label": f"{' '.join(TRUTHS)} y true ytrue truelabel trueclass observed response class",
    "prediction": "prediction pred predictions predicted prob proba probability score yhat ypred yprob yscore phat"
    " p risk decision oof",
    "group": "group groupid cluster site",
    "weight": "weight weights sampleweight",
}
WORDS = {role: {re.sub(r"\W|_", "", word) for word in words.split()} for role, words in SYNONYMS.items()}
# tables that look like results but hold no predictions: what they are, regular expressions that all match a column
SCORES = r"(?i)(accuracy|auc|roc_auc|kappa|rmse|rsquared|mae|mse|r2|f1|logloss|log_loss|roc|error|score|mcc|brier)"
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
BY_HAND = "map the columns by hand with columns={'sample': ..., 'label': ..., 'prediction': ..., 'configuration': ...}"


def recognise(columns: Sequence[str], format: str, hints: Hints) -> tuple[Layout, str]:
    """Return the layout of a table and how it was recognised; raise when none or several fit."""
    shown = ", ".join(clipped(name) for name in columns[:12]) + (
        f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    )
    if format != "auto":
        check_option(format, ["auto", *LAYOUTS, "sklearn", "orange"], "format")
        if format not in LAYOUTS:
            raise InputError(f"`format`={format!r} is a layout of arrays (.npz, .npy), but a table was given.")
        layout = LAYOUTS[format]
        missing = layout.missing(columns)
        if missing:
            raise InputError(f"`format`={format!r} needs columns {show(missing)}; found {shown}. Or {BY_HAND}.")
        _refuse_near_miss(layout, columns)
        return layout, "as told (format=)"
    found = [layout for layout in LAYOUTS.values() if layout.matches(columns, hints)]
    if len(found) > 1:
        choices = "; ".join(f"format={layout.name!r} ({layout.title})" for layout in found)
        raise InputError(f"the columns fit several layouts; say which: {choices}. Found {shown}.")
    if found:
        _refuse_near_miss(found[0], columns)
        return found[0], "by its column names"
    _refuse_scores(columns)
    closest, likely = _closest(columns), _guess(columns)
    if likely:
        advice = f"If this is right, say columns={likely}"
    else:
        closest = closest or f" Known layouts: {', '.join(LAYOUTS)}."
        if columns[0] == "":
            closest += " If the columns are classes (AutoGluon), give the truth with labels=."
        advice = f"Otherwise {BY_HAND}"
    raise InputError(f"the layout is not recognised: columns {shown}.{closest} {advice}.")


def _refuse_near_miss(layout: Layout, columns: Sequence[str]) -> None:
    """Raise for a column that would be overlooked because of how its name is written."""
    near = layout.near_miss(columns)
    if near:
        raise InputError(
            f"column {clipped(near[0])} is written almost like {clipped(near[1])}, which layout {layout.name!r} looks "
            "for. Rename it as it should be, say what it is with columns={...}, or drop it."
        )


def _closest(columns: Sequence[str]) -> str:
    shares = {
        layout: 1 - len(layout.missing(columns)) / len(layout.needs) for layout in LAYOUTS.values() if layout.needs
    }
    best = max(shares, key=lambda layout: shares[layout])
    if shares[best] < 0.5:
        return ""
    return f" Closest: {best.name!r}, which also needs {show(best.missing(columns)) or 'other columns to be absent'}."


def _guess(columns: Sequence[str]) -> dict[str, str | list[str]] | None:
    """Return what the columns probably are, for advice and never to read by; None when it cannot be told."""
    plain = {name: re.sub(r"\W|_", "", name).lower() for name in columns}
    found: dict[str, str | list[str]] = {}
    for role, words in WORDS.items():
        named = [name for name in columns if plain[name] in words]
        if len(named) == 1:
            found[role] = named[0]
        elif named:
            return None
    if "label" not in found:
        return None
    if "prediction" not in found:
        rest = [name for name in columns if name not in found.values() and name != ROW_NAMES]
        if not rest or {"configuration", "repeat"} & set(found):
            return None
        found["prediction"] = rest
    elif "sample" not in found and {"configuration", "repeat"} & set(found):
        return None
    return {ours: theirs for ours, theirs in found.items() if ours != theirs}


def _refuse_scores(columns: Sequence[str]) -> None:
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
