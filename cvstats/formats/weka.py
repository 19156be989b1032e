"""Weka's predictions as CSV: -classifications "...output.prediction.CSV -p <id attribute> [-distribution]"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import Hints, Layout, Parsed, natural_column, texts

NOMINAL = re.compile(r"(\d+):(.*)", re.DOTALL)
KNOWN = ("inst#", "actual", "predicted", "error", "prediction", "distribution")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Labels look like ``1:name``; ``*`` marks the predicted class; ``inst#`` restarts in every fold."""
    instance = pd.to_numeric(natural_column(frame["inst#"])).to_numpy()
    if not np.isfinite(instance).all():
        raise InputError("Weka: `inst#` must number the rows.")
    if "error" not in frame.columns:
        raise InputError("Weka: there is no column `error`, which it always writes; was it renamed?")
    fold = np.concatenate([[0], np.cumsum(np.diff(instance) <= 0)])
    notes = []
    attributes = [name for name in frame.columns if name not in KNOWN and not re.fullmatch(r"distribution\.\d+", name)]
    named = [name for name in attributes if frame[name].is_unique]
    named = ["sample"] if "sample" in named else named
    if len(named) > 1:
        raise InputError(f"Weka: samples could be named by {show(named)}; say which with columns={{'sample': ...}}.")
    if named:
        sample = frame[named[0]]
        notes.append(f"samples are named by attribute {named[0]!r}")
    elif fold.any():
        raise InputError(
            "Weka: `inst#` restarts in every fold and there is no attribute with unique sample ids "
            f"(others: {show(attributes) or 'none'}). Write the predictions with -p <index of an id attribute>."
        )
    else:
        sample = frame["inst#"]
    out = pd.DataFrame({"sample": sample, "configuration": hints.name})
    if fold.any():
        out["fold"] = fold
        notes.append(f"{fold[-1] + 1} folds were read off `inst#`, which restarts in every fold")
    nominal = [NOMINAL.fullmatch(text) for text in texts(frame["actual"].dropna().unique())]
    if not all(nominal) or not nominal:
        out["label"], out["prediction"] = natural_column(frame["actual"]), natural_column(frame["predicted"])
        return Parsed(out, {None: "prediction"}, kind="value", notes=notes)
    truth, said = _codes(frame["actual"]), _codes(frame["predicted"])
    names = {**truth[1], **said[1]}
    out["label"] = pd.Categorical([names[code] for code in truth[0]])
    if not {"prediction", "distribution"} & set(frame.columns):
        raise InputError("Weka: neither a column `prediction` nor `distribution`; was it renamed?")
    spread = [name for name in frame.columns if re.fullmatch(r"distribution(\.\d+)?", name)]
    values: dict[Any, str] = {None: "guess"}
    if spread and hints.kind != "label":
        absent = [i for i in range(1, len(spread) + 1) if i not in names]
        names.update({i: f"class {i}" for i in absent})
        if absent:
            notes.append(f"classes number {show(absent)} never occur; their names are not in the file")
        for place, name in enumerate(spread, start=1):
            out[name] = _number(frame[name])
            values = {**({} if place == 1 else values), names[place]: name}
    elif "prediction" in frame.columns and len(names) == 2 and hints.kind != "label":
        score = _number(frame["prediction"])
        for code in sorted(names):
            out[f"p{code}"] = np.where(said[0] == code, score, 1 - score)
        values = {name: f"p{code}" for code, name in sorted(names.items())}
        notes.append("`prediction` is the probability of the predicted class; it was turned into class probabilities")
    else:
        out["guess"] = pd.Categorical([names[code] for code in said[0]])
        if "prediction" in frame.columns:
            notes.append("probabilities of the predicted class only: read as class labels (use -distribution for all)")
    return Parsed(out, values, kind="label" if None in values else None, notes=notes)


def _codes(column: pd.Series) -> tuple[np.ndarray, dict[int, str]]:
    codes, found = pd.factorize(column)
    if (codes < 0).any():
        raise InputError(f"Weka: column {column.name!r} is missing in rows {show(np.flatnonzero(codes < 0) + 1)}.")
    parts = [NOMINAL.fullmatch(text) for text in texts(found)]
    if not all(parts):
        raise InputError(f"Weka: column {column.name!r} should hold labels like '1:name'; found {show(found)}.")
    numbers = np.array([int(part[1]) for part in parts if part])
    return numbers[codes], {int(part[1]): part[2] for part in parts if part}


def _number(column: pd.Series) -> np.ndarray:
    if column.dtype.kind in "iuf":
        return column.to_numpy(float)
    return pd.to_numeric(pd.Series(texts(column)).str.lstrip("*")).to_numpy(float)


LAYOUT = Layout(
    name="weka",
    title="Weka CSV (inst#, actual, predicted, error, prediction or distribution)",
    needs=("inst#", "actual", "predicted"),
    unlike="Weka Experimenter results (Key_Dataset, Key_Run), which hold scores",
    knows=(*KNOWN, r"distribution\.\d+", "sample"),
    parse=parse,
)
