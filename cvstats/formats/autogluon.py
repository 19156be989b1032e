"""Out-of-fold frame of AutoGluon: the index of the training data, one column per class, no truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import ROW_NAMES, TRUTHS, Hints, Layout, Parsed, row_ids, texts

NOTE = "AutoGluon averages the repeats of bagged models, so partition noise cannot be seen in these predictions"


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Rows that are all NaN were never held out."""
    truth = [name for name in TRUTHS if name in frame.columns] if hints.labels is None else []
    rest = [name for name in frame.columns if name not in (ROW_NAMES, "sample", *truth)]
    if not rest:
        raise InputError("AutoGluon: no prediction columns; the frame has one column per class.")
    sample, note = row_ids(frame)
    out = pd.DataFrame({"sample": sample, "configuration": hints.name})
    if hints.labels is None and len(truth) != 1:
        raise InputError(
            "AutoGluon's out-of-fold frame has no truth: give it with labels= (a Series by the same index), "
            f"or as one column called 'label'; found {show(truth) or 'none'}."
        )
    if truth:
        out["label"] = frame[truth[0]]
    values: dict[Any, str] = {name: name for name in rest} if len(rest) > 1 else {None: rest[0]}
    return Parsed(out.join(frame[rest]), values, notes=[note, NOTE], averaged=True)


def _columns_are_the_classes(columns: Sequence[str], hints: Hints) -> bool:
    """Recognised only with the truth at hand: every column is named like a class."""
    if hints.labels is None:
        return False
    labels = np.asarray(hints.labels)
    classes = set(texts(pd.unique(labels[~pd.isna(labels)])))
    rest = {name for name in columns if name not in (ROW_NAMES, "sample")}
    return len(classes) > 1 and rest == classes


LAYOUT = Layout(
    name="autogluon",
    title="AutoGluon predict_proba_oof() (one column per class; needs labels=)",
    needs=(),
    unlike="AMLB and H2O, which add a column of predicted classes",
    knows=("sample", *TRUTHS),
    parse=parse,
    auto=_columns_are_the_classes,
)
