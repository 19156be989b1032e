"""as.data.table(prediction) of mlr3, and as.data.frame(pred) of its predecessor mlr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError

from ._columns import first_is_constant, refuse_unused, tuple_names
from ._layout import Hints, Parsed, chosen, class_columns, in_our_words, layout, others

CONFIGURATIONS = ("configuration", "learner", "learner_id", "task", "task_id")
FOLDS = ("iteration", "iter", "fold")
KNOWN = ("row_ids", "id", "truth", "response", "set", "se", "label", "repeat", *CONFIGURATIONS, *FOLDS, "")


@layout(
    "mlr",
    "mlr as.data.frame(pred) (id, truth, response, prob.<class>, iter, set)",
    needs=("id", "truth", r"response|prob\..+", "iter", "set"),
    # not to be confused with mlr3, whose ids are called row_ids
    knows=(*KNOWN, r"prob\..+"),
)
@layout(
    "mlr3",
    "mlr3 as.data.table(prediction) (row_ids, truth, response, prob.<class>, [iteration])",
    needs=("row_ids", "truth", r"response|prob\..+"),
    # not to be confused with AMLB (predictions, truth), which has no row ids
    knows=(*KNOWN, r"prob\..+"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Rows of several iterations may be stacked; repeats then show as repeated row ids."""
    classes = class_columns(frame.columns, r"prob\.(.*)")
    ids = "row_ids" if "row_ids" in frame.columns else "id"
    fold = next((name for name in FOLDS if name in frame.columns), None)
    roles: dict[str, Any] = {"sample": ids, "label": "truth", "repeat": "repeat", "fold": fold}
    roles |= {"configuration": _configurations(frame, hints)}
    extras = others(frame, (*KNOWN, *classes.values(), *hints.mapped))
    parsed = in_our_words(frame, roles, chosen(classes, "response", hints), [], extras, iterations=True)
    out = parsed.frame
    keys = [name for name in ("sample", "configuration", "repeat") if name in out.columns]
    refuse_unused({name: frame[name] for name in extras}, *(out[name] for name in keys))
    if "repeat" not in out.columns and fold is None:
        parsed.notes += _stacked(out, list(parsed.values.values()))
    return parsed


def _configurations(frame: pd.DataFrame, hints: Hints) -> pd.Series:
    """Return what names the configurations: the learner, with the task where that says more."""
    names = [name for name in CONFIGURATIONS if name in frame.columns]
    used: list[str] = []
    for name in names:
        known = tuple_names(frame, used) if used else pd.Series(0, index=frame.index)
        if "configuration" not in used and not first_is_constant(known, frame[name]):
            used.append(name)
    if len(used) > 1:
        return tuple_names(frame, used)
    used = used or [name for name in names if not name.startswith("task")][:1]
    return frame[used[0]] if used else pd.Series(hints.name, index=frame.index)


def _stacked(out: pd.DataFrame, values: list[str]) -> list[str]:
    """Count the appearances of each sample when repeats were stacked without an iteration column."""
    keys = ["sample", "configuration"]
    count = out.groupby(keys, observed=True, sort=False).cumcount().to_numpy()
    if not count.any():
        return []
    times = int(count.max()) + 1
    first, second = (out[count == number].set_index(keys) for number in (0, 1))
    copies = len(first) == len(second) and second[values].equals(first.loc[second.index, values])
    if len(set(np.bincount(count).tolist())) > 1 or copies:
        what = "with identical predictions" if copies else "but not all equally often"
        raise InputError(
            f"duplicate rows: row ids appear up to {times} times {what} and there is no `iteration` column "
            f"(first repeated in row {np.argmax(count == 1) + 1}). Stack the iterations with their number, or remove "
            "the duplicates."
        )
    out["repeat"] = count
    return [f"no `iteration` column: the {times} appearances of each row id, in order, were read as repeats"]
