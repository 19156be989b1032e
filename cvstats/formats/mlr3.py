"""as.data.table(prediction) of mlr3, and as.data.frame(pred) of its predecessor mlr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import (
    ROW_NAMES,
    Hints,
    Layout,
    Parsed,
    first_is_constant,
    folds_within_repeats,
    refuse_unused,
    repeats_of_iterations,
    tuple_names,
)

PROBABILITY = "prob."
CONFIGURATIONS = ("configuration", "learner", "learner_id", "task", "task_id")
FOLDS = ("iteration", "iter", "fold")
KNOWN = ("row_ids", "id", "truth", "response", "set", "se", "label", "repeat", *CONFIGURATIONS, *FOLDS, ROW_NAMES)


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Rows of several iterations may be stacked; repeats then show as repeated row ids."""
    ids = "row_ids" if "row_ids" in frame.columns else "id"
    if "set" in frame.columns and set(map(str, frame["set"].dropna().unique())) != {"test"}:
        found = [str(name) for name in frame["set"].unique()]
        raise InputError(f"mlr: column 'set' holds {show(found)}; keep the rows of the test sets only.")
    classes = [name for name in frame.columns if name.startswith(PROBABILITY)]
    values: dict[Any, str] = {None: "response"}
    if classes and hints.kind != "label":
        values = {name[len(PROBABILITY) :]: name for name in classes}
    out = pd.DataFrame({"sample": frame[ids], "label": frame["truth"]})
    out["configuration"] = _configurations(frame, hints)
    for name in values.values():
        out[name] = frame[name]
    notes: list[str] = []
    ignored = [name for name in frame.columns if name not in (*KNOWN, *classes, *hints.mapped)]
    key = [out["sample"], out["configuration"], *(frame[name] for name in frame.columns if name == "repeat")]
    refuse_unused(frame, key, ignored)
    about = [name for name in ignored if first_is_constant(out["sample"], frame[name])]  # such as patient or site
    about = [name for name in about if name not in out.columns and len(frame[name].unique()) > 1]
    iteration = next((name for name in FOLDS if name in frame.columns), None)
    if "repeat" in frame.columns:
        out["repeat"] = frame["repeat"]
        if iteration is not None:
            out["fold"] = frame[iteration]
    elif iteration is not None:
        out["fold"] = frame[iteration]
        repeat = np.zeros(len(frame), np.int64)
        for rows in out.groupby("configuration", observed=True, sort=False).indices.values():
            repeat[rows] = repeats_of_iterations(out["sample"].iloc[rows], out["fold"].iloc[rows])
        if repeat.any():
            out["repeat"], out["fold"] = repeat, folds_within_repeats(repeat, out["fold"])
            notes.append(
                f"{repeat.max() + 1} repeats were read off the iterations: a repeat ends when a sample returns"
            )
    else:
        notes += _stacked(out, list(values.values()))
    ignored = [name for name in ignored if name not in about]
    return Parsed(out.join(frame[about]), values, about, ignored=ignored, notes=notes)


def _configurations(frame: pd.DataFrame, hints: Hints) -> Any:
    """Return what names the configurations: the learner, with the task where that says more."""
    names = [name for name in CONFIGURATIONS if name in frame.columns]
    told: list[str] = []
    for name in names:
        known = tuple_names(frame, told) if told else pd.Series(0, index=frame.index)
        if "configuration" not in told and not first_is_constant(known, frame[name]):
            told.append(name)
    if len(told) > 1:
        return tuple_names(frame, told)
    told = told or [name for name in names if not name.startswith("task")][:1]
    return frame[told[0]] if told else hints.name


def _stacked(out: pd.DataFrame, values: list[str]) -> list[str]:
    """Count the appearances of each sample when repeats were stacked without an iteration column."""
    count = out.groupby(["sample", "configuration"], observed=True, sort=False).cumcount().to_numpy()
    if not count.any():
        return []
    times = int(count.max()) + 1
    sizes = np.bincount(count)
    first, rest = (
        out[count == 0].set_index(["sample", "configuration"]),
        out[count == 1].set_index(["sample", "configuration"]),
    )
    copies = len(first) == len(rest) and rest[values].equals(first.loc[rest.index, values])
    if len(set(sizes.tolist())) > 1 or copies:
        rows = np.flatnonzero(count == 1)[:5] + 1
        what = "with identical predictions" if copies else "but not all equally often"
        raise InputError(
            f"duplicate rows: row ids appear up to {times} times {what} and there is no `iteration` column "
            f"(first repeated in row {rows[0]}). Stack the iterations with their number, or remove the duplicates."
        )
    out["repeat"] = count
    return [f"no `iteration` column: the {times} appearances of each row id, in order, were read as repeats"]


MLR3 = Layout(
    name="mlr3",
    title="mlr3 as.data.table(prediction) (row_ids, truth, response, prob.<class>, [iteration])",
    needs=("row_ids", "truth", r"response|prob\..+"),
    unlike="AMLB (predictions, truth), which has no row ids",
    knows=(*KNOWN, r"prob\..+"),
    parse=parse,
)
MLR = Layout(
    name="mlr",
    title="mlr as.data.frame(pred) (id, truth, response, prob.<class>, iter, set)",
    needs=("id", "truth", r"response|prob\..+", "iter", "set"),
    unlike="mlr3, whose ids are called row_ids",
    knows=(*KNOWN, r"prob\..+"),
    parse=parse,
)
