"""train()$pred of caret, saved with savePredictions = "all"."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ._layout import ROW_NAMES, Hints, Layout, Parsed, repeats_of_iterations, texts, tuple_names

REPEATED = re.compile(r"(Fold\d+)\.(Rep\d+)")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Name configurations by their tuning values; class columns are those named like the outcomes."""
    known = {"pred", "obs", "rowIndex", "Resample", "weights", "label", ROW_NAMES}
    classes = set(texts(pd.unique(frame["obs"].dropna()))) | set(texts(pd.unique(frame["pred"].dropna())))
    rest = [name for name in frame.columns if name not in known]
    columns = [name for name in rest if name in classes]
    tuning = [name for name in rest if name not in columns]
    values: dict[Any, str] = {None: "pred"}
    if columns and hints.kind != "label":
        values = {name: name for name in columns}
    out = pd.DataFrame({"sample": frame["rowIndex"], "label": frame["obs"]})
    if tuning == ["parameter"] and set(texts(frame["parameter"].unique())) == {"none"}:
        out["configuration"], tuning = hints.name, []
    else:
        out["configuration"] = tuple_names(frame, tuning) if tuning else hints.name
    if "weights" in frame.columns:
        out["weight"] = frame["weights"]
    notes = _resample(frame, out)
    for name in values.values():
        out[name] = frame[name]
    extras = [name for name in tuning if name not in out.columns]
    return Parsed(out.join(frame[extras]), values, extras, notes=notes)


def _resample(frame: pd.DataFrame, out: pd.DataFrame) -> list[str]:
    if "Resample" not in frame.columns:
        out["fold"] = frame["rowIndex"]
        return ["no `Resample` column: leave-one-out, every sample is its own fold"]
    codes, found = pd.factorize(frame["Resample"])
    names = texts(found)
    parts = [REPEATED.fullmatch(name) for name in names]
    if all(parts):
        out["fold"] = pd.Categorical(pd.Index([part[1] for part in parts if part])[codes])
        out["repeat"] = pd.Categorical(pd.Index([part[2] for part in parts if part])[codes])
        return []
    if all(re.fullmatch(r"Fold\d+", name) for name in names):
        out["fold"] = frame["Resample"]
        return []
    out["repeat"] = repeats_of_iterations(frame["rowIndex"], frame["Resample"])
    return ["`Resample` names overlapping hold-outs (bootstrap or leave-group-out), read as repeats without folds"]


LAYOUT = Layout(
    name="caret",
    title="caret $pred (pred, obs, rowIndex, Resample, tuning parameters)",
    needs=("pred", "obs", "rowIndex"),
    unlike="caret $resample, which holds scores per fold",
    parse=parse,
)
