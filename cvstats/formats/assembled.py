"""A metatask of Assembled: features, the target, and for every model its classes and confidence.<class>.<model>."""

from __future__ import annotations

import re

import pandas as pd

from cvstats._check import InputError, show

from ._columns import words
from ._layout import TRUTHS, Hints, Parsed, layout, others, row_ids, stacked

SAMPLES = ("sample", "Index-Metatask")


@layout(
    "assembled",
    "Assembled metatask (target, <model>, confidence.<class>.<model>)",
    needs=(r"confidence\..+\..+",),
    lacks=("row_id",),
    # not to be confused with OpenML (row_id, prediction, confidence.<class>)
    knows=("Fold", *SAMPLES),
    names_classes=True,
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Models are the columns for which there are confidences; the target is the one other column with their classes."""
    spread = [name for name in frame.columns if re.fullmatch(r"confidence\..+\..+", name)]
    models = [name for name in others(frame, spread) if any(column.endswith(f".{name}") for column in spread)]
    classes = {model: {c[11 : -len(model) - 1]: c for c in spread if c.endswith(f".{model}")} for model in models}
    rest = others(frame, (*spread, *models, "Fold", *SAMPLES))
    likely = [name for name in rest if models and words(frame[name]) == set(classes[models[0]])]
    named = [name for name in ("label", "ground_truth", *TRUTHS) if name in likely]
    truth = (named or likely)[:1] if named or len(likely) == 1 else []
    if not truth or len({frozenset(found) for found in classes.values()}) > 1:
        raise InputError(
            f"Assembled: models {show(models) or 'none'}; the target could be {show(likely) or 'no column'}. Every "
            "model needs confidence.<class>.<model> of the same classes; name the target with columns={'label': ...}."
        )
    sample, note = next(((frame[name], "") for name in SAMPLES if name in frame.columns), None) or row_ids(frame)
    shared = {"sample": sample, "label": frame[truth[0]]} | ({"fold": frame["Fold"]} if "Fold" in frame.columns else {})
    read_as = {"label": truth[0], "configuration": show(models)}
    ignored, notes = [name for name in rest if name not in truth], [note] if note else []
    return stacked(pd.DataFrame(shared), frame, classes, read_as=read_as, ignored=ignored, notes=notes)
