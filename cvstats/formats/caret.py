"""train()$pred of caret, saved with savePredictions = "all"."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._columns import first_is_constant, texts, tuple_names, words
from ._layout import Hints, Parsed, chosen, in_our_words, layout, like_classes, others

KNOWN = ("pred", "obs", "rowIndex", "Resample", "weights", "label")
ROLES: dict[str, Any] = {"sample": "rowIndex", "label": "obs", "weight": "weights"}


@layout(
    "caret",
    "caret $pred (pred, obs, rowIndex, Resample, tuning parameters)",
    needs=("pred", "obs", "rowIndex"),
    # not to be confused with caret $resample, which holds scores per fold
    knows=("Resample", "weights", "label", "parameter"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Name configurations by their tuning values; class columns are those named like the outcomes."""
    classes = words(frame["obs"]) | words(frame["pred"])
    rest = others(frame, (*KNOWN, *hints.mapped))
    by_class = like_classes(rest, classes)
    columns = list(by_class.values())
    varies = [name for name in rest if name not in columns and len(frame[name].unique()) > 1]
    about = [name for name in varies if first_is_constant(frame["rowIndex"], frame[name])]  # such as patient or site
    tuning = [name for name in rest if name not in (*columns, *about)]
    if columns and about and len(columns) < len(classes):
        raise InputError(
            f"caret: there are probabilities of {show(columns)} but not of {show(sorted(classes - set(by_class)))}; "
            f"is it column {about[0]!r}? Rename or drop that one."
        )
    _check_tuning(frame, tuning)
    if tuning == ["parameter"] and set(texts(frame["parameter"].unique())) == {"none"}:
        tuning = []
    new: dict[str, Any] = {"configuration": tuple_names(frame, tuning)} if tuning else {}
    if tuning and hints.several:  # fits of the same parameters, told apart by their files
        new["configuration"] = tuple_names(frame.assign(fit=hints.name), ["fit", *tuning])
    notes = _resample(frame, new, about)
    if about:
        notes.append(f"columns {show(about)} have one value per rowIndex: they describe samples and are not tuned")
    values = chosen(by_class, "pred", hints)
    return in_our_words(frame, ROLES | new, values, notes, [*tuning, *about], iterations=True)


def _check_tuning(frame: pd.DataFrame, tuning: list[str]) -> None:
    """Raise for a column that varies within the configurations which the other columns name well enough."""
    held_out = [name for name in ("rowIndex", "Resample") if name in frame.columns]
    for name in tuning:
        rest = [other for other in tuning if other != name]
        key = tuple_names(frame, rest) if rest else pd.Series(0, index=frame.index)
        if not frame[held_out].assign(key=key).duplicated().any() and not first_is_constant(key, frame[name]):
            raise InputError(
                f"caret: column {name!r} is no tuning value (it varies within one configuration), does not describe "
                "samples, and is not named like a class. Rename or drop it."
            )


def _resample(frame: pd.DataFrame, new: dict[str, Any], about: list[str]) -> list[str]:
    """Add folds and repeats to the new columns, and return notes on them."""
    if "Resample" not in frame.columns:
        configurations = new["configuration"].nunique() if new else 1
        if len(frame) < frame["rowIndex"].nunique() * configurations:
            raise InputError(
                "caret: there is no `Resample` column, so this is leave-one-out, but not every configuration predicts "
                "every row. Was `Resample` renamed?"
            )
        if about:
            return [f"no `Resample` column: leave-one-out, or one of {show(about)} names the folds; none were read"]
        new["fold"] = frame["rowIndex"]
        return ["no `Resample` column: leave-one-out, every sample is its own fold"]
    new["fold"] = "Resample"
    return []
