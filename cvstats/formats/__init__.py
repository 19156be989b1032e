"""Layouts of saved predictions in the wild, one small file each.

Every file declares a `layout`: which column names it is recognised by, what it must not be confused with, and how its
table turns into our own words. Recognition is by column name, never by position. Files whose names begin with an
underscore hold what the layouts share: reading tables, and assembling the cube.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from cvstats._check import InputError, check_option, clipped, show

from ._columns import plain
from ._layout import LAYOUTS, Hints, Layout, Parsed, layout, matching
from ._roles import advice, guess, missing_roles

__all__ = ["BY_HAND", "LAYOUTS", "Hints", "Layout", "Parsed", "Reading", "layout", "recognise"]

READERS = "long wide tidymodels caret mlr3 openml assembled amlb autogluon h2o mljar pycaret weka julearn jadbio"
for reader in READERS.split():
    import_module(f".{reader}", __name__)
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
GUESSED = "by what its columns are called"
# roles that a column of another spelling may not play, such as the weight of a patient
UNSURE = ("group", "partner", "weight", "weights", "event", "kind", "positive", "threshold", "classes")
BY_HAND = "map the columns by hand with columns={'sample': ..., 'label': ..., 'prediction': ..., 'configuration': ...}"


@dataclass(frozen=True)
class Reading:
    """How a table is read: its layout, how that was recognised, and our names or the layout's -> columns."""

    layout: Layout
    how: str
    columns: dict[str, Any] = field(default_factory=dict)


def recognise(
    columns: Sequence[str], format: str, hints: Hints, distinct: Callable[..., list[list[str]]] = lambda *columns: [[]]
) -> Reading:
    """Return how a table is read; raise when no layout fits or several. `distinct` returns the values of columns."""
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    shown = ", ".join(map(clipped, columns[:12])) + more
    if format != "auto":
        check_option(format, ["auto", *LAYOUTS, "sklearn", "orange"], "format")
        if format not in LAYOUTS:
            raise InputError(f"`format`={format!r} is a layout of arrays (.npz, .npy), but a table was given.")
        reading = _spelled(LAYOUTS[format], columns, "as told (format=)")
        missing = reading.layout.missing({*columns, *reading.columns})
        if missing:
            raise InputError(f"`format`={format!r} needs columns {show(missing)}; found {shown}. Or {BY_HAND}.")
        return reading
    if "prediction" in hints.mapped:
        layout = LAYOUTS["wide" if hints.wide else "long"]
        return Reading(layout, "as told (columns=)", _others(guess(columns, distinct, hints)))
    if inner := [name for name in columns if plain(name) == "innerfold"]:
        raise InputError(
            f"column {inner[0]!r} says that these predictions were made inside the training sets of a nested "
            "cross-validation. They are not out-of-sample for any choice made there, but the `inner` of ncv() and "
            "winner(): a DataArray of sample, configuration and outer_fold, given to as_cube()."
        )
    found = [layout for layout in LAYOUTS.values() if layout.matches(columns, hints)]
    found = found or [layout for layout in LAYOUTS.values() if layout.matches(_canonical(layout, columns), hints)]
    if len(found) > 1:
        choices = "; ".join(f"format={layout.name!r} ({layout.title})" for layout in found)
        raise InputError(f"the columns fit several layouts; say which: {choices}. Found {shown}.")
    if found:
        reading = _spelled(found[0], columns, "by its column names")
        roles = missing_roles(columns) if found[0].name == "long" and not hints.mapped else {}
        return replace(reading, columns={**roles, **reading.columns}, how=GUESSED) if roles else reading
    _refuse_scores(columns)
    likely = guess(columns, distinct, hints)
    if likely:
        return Reading(LAYOUTS["wide" if isinstance(likely["prediction"], list) else "long"], GUESSED, _others(likely))
    if set(map(plain, columns)) <= {"sample", "id", "rowid", "row", "index", "fold", "repeat", "label", "group", ""}:
        raise InputError(f"this is a table of folds (columns {shown}): it holds no predictions. Give those.")
    closest, maybe = _closest(columns, hints), advice(columns)
    if maybe:
        said = f"If this is right, say columns={maybe}"
    else:
        closest = closest or f" Known layouts: {', '.join(LAYOUTS)}."
        if columns[0] == "":
            closest += " If the columns are classes (AutoGluon), give the truth with labels=."
        said = f"Otherwise {BY_HAND}"
    raise InputError(f"the layout is not recognised: columns {shown}.{closest} {said}.")


def _others(names: dict[str, Any]) -> dict[str, Any]:
    return {ours: theirs for ours, theirs in names.items() if ours != theirs}


def _canonical(layout: Layout, columns: Sequence[str]) -> list[str]:
    spelling = layout.spelling(columns)
    return [spelling.get(name, name) for name in columns]


def _spelled(layout: Layout, columns: Sequence[str], how: str) -> Reading:
    """Return a reading with columns as the layout writes them; raise where that is not clear."""
    spelling = layout.spelling(columns)
    taken = Counter([*columns, *spelling.values()])
    for name, meant in spelling.items():
        lacking = any(matching(lack, [meant]) for lack in layout.lacks)
        named = layout.names_classes and meant not in (*layout.needs, *layout.knows)
        if taken[meant] > 1 or meant in UNSURE or lacking or named:
            raise InputError(
                f"column {clipped(name)} is written almost like {clipped(meant)}, which layout {layout.name!r} looks "
                "for. Rename it as it should be, say what it is with columns={...}, or drop it."
            )
    return Reading(layout, how, {meant: name for name, meant in spelling.items()})


def _closest(columns: Sequence[str], hints: Hints) -> str:
    shares = {one: 1 - len(one.missing(columns)) / len(one.needs) for one in LAYOUTS.values() if one.needs}
    best = max(shares, key=lambda layout: shares[layout])
    if shares[best] < 0.5:
        return ""
    absent = best.missing(columns)
    odd = [name for name in columns if any(matching(lack, [name]) for lack in best.lacks)]
    odd = odd or [name for name in best.strange(columns, hints) if not absent]
    if absent:
        return f" Closest: {best.name!r}, which also needs {show(absent)}."
    return f" Closest: {best.name!r}, but that has no columns like {show(odd)}."


def _refuse_scores(columns: Sequence[str]) -> None:
    """Raise when the columns are those of a table of scores or trials."""
    for what, needs in NOT_PREDICTIONS:
        if not all(matching(need, columns) for need in needs):
            continue
        if what.startswith("a table") and matching(ROW_IDS, columns):
            continue
        raise InputError(
            f"this is {what}: it holds scores, not predictions. cvstats needs every out-of-sample prediction "
            "with its sample id and the truth; save those when training (see read_predictions). For scores of folds "
            "there are read_scores() and bbc_folds()."
        )
