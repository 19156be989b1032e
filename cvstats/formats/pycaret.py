"""predict_model() of PyCaret: the features, the target, and prediction columns."""

from __future__ import annotations

import pandas as pd

from cvstats._check import InputError, show

from ._columns import words
from ._layout import TRUTHS, Hints, Parsed, chosen, class_columns, in_our_words, layout, of_both_classes, others

SCORE = "prediction_score"


@layout(
    "pycaret",
    "PyCaret predict_model() (prediction_label, prediction_score or prediction_score_<class>, the target)",
    needs=("prediction_label",),
    lacks=("configuration",),
    # not to be confused with our long table with classes called label and score
    knows=("sample", "fold", "prediction_score(_.+)?", *TRUTHS),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Turn the single score, which is the probability of the *predicted* class, into that of each class."""
    raw = class_columns(frame.columns, f"{SCORE}_(.*)")
    features = [name for name in others(frame, ("sample", "fold")) if not name.startswith("prediction_")]
    truth = _truth(frame, features, raw, hints)
    notes = [] if truth is None else [f"the truth is column {truth!r}"]
    values = chosen(raw, "prediction_label", hints)
    if not raw and SCORE in frame.columns and hints.kind != "label":
        classes = sorted(words(hints.labels if truth is None else frame[truth]) | words(frame["prediction_label"]))
        if len(classes) != 2:
            raise InputError(
                f"PyCaret: `prediction_score` is the probability of the predicted class only, which does not give the "
                f"probabilities of {len(classes)} classes. Save predict_model(..., raw_score=True), "
                "or read kind='label'."
            )
        frame, values = of_both_classes(frame, frame["prediction_label"], frame[SCORE].to_numpy(float), classes)
        notes.append("`prediction_score` belongs to the predicted class; it was turned into class probabilities")
    ignored = [name for name in features if name != truth]
    return in_our_words(frame, {"label": truth, "fold": "fold"}, values, notes, ignored=ignored)


def _truth(frame: pd.DataFrame, features: list[str], raw: dict[str, str], hints: Hints) -> str | None:
    """Return the target: by a common name, else the only feature column that holds the predicted classes."""
    if hints.labels is not None:
        return None
    named = [name for name in TRUTHS if name in features]
    if not named and (raw or SCORE in frame.columns):
        guessed = words(frame["prediction_label"]) | set(raw)
        found = {name: words(frame[name]) for name in features if frame[name].nunique() <= 1000}
        named = [name for name, values in found.items() if values <= guessed or (not raw and guessed <= values)]
    if len(named) != 1:
        raise InputError(
            f"PyCaret: the target could be {show(named or features)}; say which with columns={{'label': <column>}}."
        )
    return named[0]
