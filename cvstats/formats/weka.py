"""Weka's predictions as CSV: -classifications "...output.prediction.CSV -p <id attribute> [-distribution]"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._columns import natural_column, texts, words
from ._layout import Hints, Parsed, in_our_words, layout, of_both_classes

NOMINAL = re.compile(r"(\d+):(.*)", re.DOTALL)
SPREAD = r"distribution(\.\d+)?"
KNOWN = ("inst#", "actual", "predicted", "error", "prediction", "distribution")


@layout(
    "weka",
    "Weka CSV (inst#, actual, predicted, error, prediction or distribution)",
    needs=("inst#", "actual", "predicted"),
    # not to be confused with Weka Experimenter results (Key_Dataset, Key_Run), which hold scores
    knows=(*KNOWN, r"distribution\.\d+", "sample"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Labels look like ``1:name``; ``*`` marks the predicted class; ``inst#`` restarts in every fold."""
    instance = pd.to_numeric(natural_column(frame["inst#"])).to_numpy()
    if not np.isfinite(instance).all():
        raise InputError("Weka: `inst#` must number the rows.")
    if "error" not in frame.columns:
        raise InputError("Weka: there is no column `error`, which it always writes; was it renamed?")
    fold = np.concatenate([[0], np.cumsum(np.diff(instance) <= 0)])
    sample, notes = _sample(frame, bool(fold.any()))
    roles: dict[str, Any] = {"sample": sample}
    if fold.any():
        roles["fold"] = fold
        notes.append(f"{fold[-1] + 1} folds were read off `inst#`, which restarts in every fold")
    if not all(NOMINAL.fullmatch(text) for text in words(frame["actual"])) or frame["actual"].isna().all():
        roles["label"] = natural_column(frame["actual"])
        frame = frame.assign(predicted=natural_column(frame["predicted"]))
        return in_our_words(frame, roles, {None: "predicted"}, notes, kind="value")
    truth, names = _codes(frame["actual"])
    said, more = _codes(frame["predicted"])
    names |= more
    roles["label"] = pd.Categorical([names[code] for code in truth])
    spread = [name for name in frame.columns if re.fullmatch(SPREAD, name)]
    if not {"prediction", "distribution"} & set(frame.columns):
        raise InputError("Weka: neither a column `prediction` nor `distribution`; was it renamed?")
    values: dict[Any, str] = {None: "predicted"}
    if spread and hints.kind != "label":
        absent = [i for i in range(1, len(spread) + 1) if i not in names]
        names |= {i: f"class {i}" for i in absent}
        if absent:
            notes.append(f"classes number {show(absent)} never occur; their names are not in the file")
        frame = frame.assign(**{name: _number(frame[name]) for name in spread})
        values = {names[place]: name for place, name in enumerate(spread, start=1)}
    elif "prediction" in frame.columns and len(names) == 2 and hints.kind != "label":
        classes = [names[code] for code in sorted(names)]
        score = _number(frame["prediction"])
        frame, values = of_both_classes(frame, [names[code] for code in said], score, classes)
        notes.append("`prediction` is the probability of the predicted class; it was turned into class probabilities")
    else:
        frame = frame.assign(predicted=pd.Categorical([names[code] for code in said]))
        if "prediction" in frame.columns:
            notes.append("probabilities of the predicted class only: read as class labels (use -distribution for all)")
    return in_our_words(frame, roles, values, notes, kind="label" if None in values else None)


def _sample(frame: pd.DataFrame, folds: bool) -> tuple[str, list[str]]:
    """Return the column that names the samples: an attribute with unique values."""
    attributes = [name for name in frame.columns if name not in KNOWN and not re.fullmatch(SPREAD, name)]
    named = [name for name in attributes if frame[name].is_unique]
    named = ["sample"] if "sample" in named else named
    if len(named) > 1:
        raise InputError(f"Weka: samples could be named by {show(named)}; say which with columns={{'sample': ...}}.")
    if named:
        return named[0], [f"samples are named by attribute {named[0]!r}"]
    if folds:
        raise InputError(
            "Weka: `inst#` restarts in every fold and there is no attribute with unique sample ids "
            f"(others: {show(attributes) or 'none'}). Write the predictions with -p <index of an id attribute>."
        )
    return "inst#", []


def _codes(column: pd.Series) -> tuple[np.ndarray, dict[int, str]]:
    codes, found = pd.factorize(column)
    if (codes < 0).any():
        raise InputError(f"Weka: column {column.name!r} is missing in rows {show(np.flatnonzero(codes < 0) + 1)}.")
    parts = [part for text in texts(found) if (part := NOMINAL.fullmatch(text))]
    if len(parts) < len(found):
        raise InputError(f"Weka: column {column.name!r} should hold labels like '1:name'; found {show(found)}.")
    return np.array([int(part[1]) for part in parts])[codes], {int(part[1]): part[2] for part in parts}


def _number(column: pd.Series) -> np.ndarray:
    if column.dtype.kind in "iuf":
        return column.to_numpy(float)
    return pd.to_numeric(pd.Series(texts(column)).str.lstrip("*")).to_numpy(float)
