"""predict_model() of PyCaret: the features, the target, and prediction columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import ROW_NAMES, TRUTHS, Hints, Layout, Parsed, row_ids, texts

SCORE = "prediction_score"


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Turn the single score, which is the probability of the *predicted* class, into that of each class."""
    raw = [name for name in frame.columns if name.startswith(SCORE + "_")]
    sample, note = row_ids(frame)
    notes = [note]
    out = pd.DataFrame({"sample": sample, "configuration": hints.name})
    features = [
        name
        for name in frame.columns
        if not name.startswith("prediction_") and name not in (ROW_NAMES, "sample", "fold")
    ]
    truth = _truth(frame, features, raw, hints)
    if truth is not None:
        out["label"] = frame[truth]
        notes.append(f"the truth is column {truth!r}")
    if "fold" in frame.columns:
        out["fold"] = frame["fold"]
    values: dict[Any, str] = {None: "prediction_label"}
    if hints.kind == "label" or (not raw and SCORE not in frame.columns):
        out["prediction_label"] = frame["prediction_label"]
    elif raw:
        values = {name[len(SCORE) + 1 :]: name for name in raw}
        out = out.join(frame[raw])
    else:
        label = hints.labels if truth is None else frame[truth]
        classes = sorted(
            {*texts(pd.unique(pd.Series(label).dropna())), *texts(frame["prediction_label"].dropna().unique())}
        )
        if len(classes) != 2:
            raise InputError(
                f"PyCaret: `prediction_score` is the probability of the predicted class only, which does not give the "
                f"probabilities of {len(classes)} classes. Save predict_model(..., raw_score=True), "
                "or read kind='label'."
            )
        score = frame[SCORE].to_numpy(float)
        said = np.array(texts(frame["prediction_label"]))
        out["p0"], out["p1"] = (
            np.where(said == classes[0], score, 1 - score),
            np.where(said == classes[1], score, 1 - score),
        )
        values = {classes[0]: "p0", classes[1]: "p1"}
        notes.append("`prediction_score` belongs to the predicted class; it was turned into class probabilities")
    ignored = [name for name in features if name != truth]
    return Parsed(out, values, ignored=ignored, notes=notes)


def _truth(frame: pd.DataFrame, features: list[str], raw: list[str], hints: Hints) -> str | None:
    """Return the target: by a common name, else the only feature column that holds the predicted classes."""
    if hints.labels is not None:
        return None
    named = [name for name in TRUTHS if name in features]
    if not named:
        guessed = set(texts(frame["prediction_label"].dropna().unique())) | {name[len(SCORE) + 1 :] for name in raw}
        if raw or SCORE in frame.columns:
            found = {
                name: set(texts(frame[name].dropna().unique())) for name in features if frame[name].nunique() <= 1000
            }
            named = [name for name, values in found.items() if values <= guessed or (not raw and guessed <= values)]
    if len(named) != 1:
        raise InputError(
            f"PyCaret: the target could be {show(named or features)}; say which with columns={{'label': <column>}}."
        )
    return named[0]


LAYOUT = Layout(
    name="pycaret",
    title="PyCaret predict_model() (prediction_label, prediction_score or prediction_score_<class>, the target)",
    needs=("prediction_label",),
    lacks=("configuration",),
    unlike="our long table with classes called label and score",
    knows=("sample", "fold", "prediction_score(_.+)?", *TRUTHS),
    parse=parse,
)
