"""Predictions of an OpenML run (ARFF, or the same columns in CSV)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._layout import Hints, Layout, Parsed

CONFIDENCE = "confidence."


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`sample` is a learning-curve index here, never the row; the truth is `correct` or `truth`."""
    truth = [name for name in ("correct", "truth") if name in frame.columns]
    if len(truth) != 1:
        raise InputError(f"OpenML: the truth is called 'correct' or 'truth'; found {show(truth) or 'neither'}.")
    notes = []
    if "sample" in frame.columns:
        sizes = frame["sample"].unique()
        if len(sizes) > 1:
            raise InputError(
                f"OpenML: learning-curve run with {len(sizes)} training sizes in column 'sample'; "
                "keep the rows of one size."
            )
        notes.append("column `sample` is OpenML's learning-curve index; samples are named by `row_id`")
    classes = [name for name in frame.columns if name.startswith(CONFIDENCE)]
    values: dict[Any, str] = {None: "prediction"}
    if classes and hints.kind != "label":
        values = {name[len(CONFIDENCE) :]: name for name in classes}
    out = pd.DataFrame({"sample": frame["row_id"], "configuration": hints.name, "label": frame[truth[0]]})
    for name in ("repeat", "fold", *values.values()):
        if name in frame.columns:
            out[name] = frame[name]
    return Parsed(out, values, kind="value" if truth == ["truth"] else None, notes=notes)


LAYOUT = Layout(
    name="openml",
    title="OpenML run predictions (repeat, fold, row_id, prediction, correct or truth, confidence.<class>)",
    needs=("row_id", "prediction", "fold", "correct|truth"),
    unlike="our long table: OpenML's `sample` is not the row",
    knows=("repeat", "sample", r"confidence\..+"),
    parse=parse,
)
