"""Out-of-fold frame of AutoGluon: the index of the training data, one column per class, no truth."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cvstats._check import InputError, show

from ._columns import words
from ._layout import ROW_NAMES, TRUTHS, Hints, Parsed, in_our_words, layout, others

NOTE = "AutoGluon averages the repeats of bagged models, so partition noise cannot be seen in these predictions"


def _columns_if_not_the_classes(columns: Sequence[str], hints: Hints) -> Sequence[str]:
    """Recognised only with the truth at hand: every column is named like a class."""
    classes = words(hints.labels) if hints.labels is not None else set()
    return [] if len(classes) > 1 and {*columns} - {ROW_NAMES, "sample"} == classes else columns


@layout(
    "autogluon",
    "AutoGluon predict_proba_oof() (one column per class; needs labels=)",
    needs=(),
    # not to be confused with AMLB and H2O, which add a column of predicted classes
    knows=("sample", *TRUTHS),
    strange=_columns_if_not_the_classes,
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Rows that are all NaN were never held out."""
    truth = [name for name in TRUTHS if name in frame.columns] if hints.labels is None else []
    rest = others(frame, ("sample", *truth))
    if not rest:
        raise InputError("AutoGluon: no prediction columns; the frame has one column per class.")
    if hints.labels is None and len(truth) != 1:
        raise InputError(
            "AutoGluon's out-of-fold frame has no truth: give it with labels= (a Series by the same index), "
            f"or as one column called 'label'; found {show(truth) or 'none'}."
        )
    values = {name: name for name in rest} if len(rest) > 1 else {None: rest[0]}
    return in_our_words(frame, {"label": truth[0] if truth else None}, values, [NOTE], averaged=True)
