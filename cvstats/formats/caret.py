"""train()$pred of caret, saved with savePredictions = "all"."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._layout import ROW_NAMES, Hints, Layout, Parsed, first_is_constant, repeats_of_iterations, texts, tuple_names

REPEATED = re.compile(r"(Fold\d+)\.(Rep\d+)")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Name configurations by their tuning values; class columns are those named like the outcomes."""
    known = {"pred", "obs", "rowIndex", "Resample", "weights", "label", ROW_NAMES}
    classes = set(texts(pd.unique(frame["obs"].dropna()))) | set(texts(pd.unique(frame["pred"].dropna())))
    rest = [name for name in frame.columns if name not in known | hints.mapped]
    columns = [name for name in rest if name in classes]
    about = [name for name in rest if name not in columns and _describes_samples(frame, name)]
    tuning = [name for name in rest if name not in (*columns, *about)]
    if columns and about and len(columns) < len(classes):
        raise InputError(
            f"caret: there are probabilities of {show(columns)} but not of {show(sorted(classes - set(columns)))}; "
            f"is it column {about[0]!r}? Rename or drop that one."
        )
    _check_tuning(frame, tuning)
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
    notes = _resample(frame, out, about)
    if about:
        notes.append(f"columns {show(about)} have one value per rowIndex: they describe samples and are not tuned")
    for name in values.values():
        out[name] = frame[name]
    extras = [name for name in (*tuning, *about) if name not in out.columns]
    return Parsed(out.join(frame[extras]), values, extras, notes=notes)


def _describes_samples(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column varies between samples only; tuning values vary within them, or not at all."""
    return len(frame[name].unique()) > 1 and first_is_constant(frame["rowIndex"], frame[name])


def _check_tuning(frame: pd.DataFrame, tuning: list[str]) -> None:
    """Raise for a column that varies within the configurations which the other columns name well enough."""
    held_out = [name for name in ("rowIndex", "Resample") if name in frame.columns]
    for name in tuning:
        others = [other for other in tuning if other != name]
        key = tuple_names(frame, others) if others else pd.Series(0, index=frame.index)
        if not frame[held_out].assign(key=key).duplicated().any() and not first_is_constant(key, frame[name]):
            raise InputError(
                f"caret: column {name!r} is no tuning value (it varies within one configuration), does not describe "
                "samples, and is not named like a class. Rename or drop it."
            )


def _resample(frame: pd.DataFrame, out: pd.DataFrame, about: list[str]) -> list[str]:
    if "Resample" not in frame.columns:
        if len(frame) < frame["rowIndex"].nunique() * out["configuration"].nunique():
            raise InputError(
                "caret: there is no `Resample` column, so this is leave-one-out, but not every configuration predicts "
                "every row. Was `Resample` renamed?"
            )
        if about:
            return [f"no `Resample` column: leave-one-out, or one of {show(about)} names the folds; none were read"]
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
    knows=("Resample", "weights", "label", "parameter"),
    parse=parse,
)
