"""A table with one column per configuration, without repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._columns import is_number, numbers_of, numeric, texts
from ._layout import ROW_NAMES, Hints, Parsed, add_up, check_classes, layout, others, stacked
from ._roles import are_probabilities, by_class, no_configurations

KEYS = ("sample", "label", "fold", "group", "weight", "event")


@layout(
    "wide",
    "wide table (sample, label, [fold], one column per configuration)",
    needs=("sample", "label"),
    lacks=("configuration", r"prediction(_.+)?", "row_id", r"\.pred.*", "inst#", "predict", "repeat"),
    # not to be confused with the long table, which has a column called prediction
    knows=KEYS,
    strange=lambda columns, hints: no_configurations([name for name in columns if name not in (ROW_NAMES, *KEYS)]),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Stack the configuration columns into rows; columns that are called like the classes are their probabilities."""
    keys = [name for name in KEYS if name in frame.columns]
    configurations = others(frame, keys)
    if not configurations:
        raise InputError(f"the wide table has no configuration columns beside {show(keys)}.")
    if models := _by_class(frame, configurations, hints):
        columns = [column for classes in models.values() for column in classes.values()]
        note = f"columns {show(columns)} are called like the classes and add up to one: their probabilities"
        read_as = {name: name for name in keys} | {"prediction": show(columns)}
        return stacked(frame[keys], frame, models, read_as=read_as, notes=[note])
    body = frame[configurations]
    whole = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in body.dtypes.unique())
    odd = [] if whole else [name for name, column in body.items() if not numeric(column)]
    if 0 < len(odd) < len(configurations):
        raise InputError(
            f"wide table: some configuration columns hold numbers and others text: {show(odd)}. Drop what is not a "
            "prediction, or name the prediction columns with columns={'prediction': [...]}."
        )
    n, m = len(frame), len(configurations)
    if odd:
        cells = body.to_numpy(object).ravel()
    else:  # at once, if possible: thousands of columns as Series keep the garbage collector busy
        block = body.to_numpy(float) if whole else np.column_stack([numbers_of(column) for _, column in body.items()])
        _refuse_mixture(frame, configurations, block, hints)
        cells = block.ravel()
    numbers = np.tile(np.arange(m, dtype=np.min_scalar_type(-m)), n)
    long = pd.DataFrame({name: _repeated(frame[name], m) for name in keys})
    long["configuration"] = pd.Categorical.from_codes(numbers, categories=pd.Index(configurations))
    long["prediction"] = cells
    note = f"{m} columns were taken as configurations: {show(configurations)}"
    read_as = {name: name for name in keys} | {"prediction": show(configurations)}
    return Parsed(long, {None: "prediction"}, read_as=read_as, notes=[note])


def _repeated(column: pd.Series, times: int) -> pd.Categorical:
    """Return each value so many times, as numbers of the distinct ones, which take little room."""
    codes, found = pd.factorize(column)
    small = np.min_scalar_type(-1 - len(found))
    return pd.Categorical.from_codes(np.repeat(codes.astype(small), times), categories=pd.Index(np.asarray(found)))


def _by_class(frame: pd.DataFrame, columns: list[str], hints: Hints) -> dict[str, dict[Any, str]]:
    """Return models and their columns by class, if columns are called like the classes; raise where only some are."""
    if "prediction" in hints.mapped or hints.kind in ("label", "value") or "label" not in frame.columns:
        return {}
    classes = texts(frame["label"].dropna().unique())
    sets = {w: found for w, found in by_class(columns, classes).items() if len(found) == len(classes) > 1}
    named = next((found for words, found in sets.items() if are_probabilities(*words)), {})
    rest = [name for name in columns if name not in named.values()]
    models = {"".join(words).strip(" ._-"): found for words, found in sets.items()} if rest else {}
    taken = [name for found in models.values() for name in found.values()]
    if sorted(taken) == sorted(columns) and all(add_up(frame, [*found.values()]) for found in models.values()):
        return models
    if not named or (rest and all(map(is_number, columns))):  # configurations may be numbered
        return {}
    remedy = "If each is a configuration, say columns={'prediction': [...]}; else drop what is no prediction."
    if rest:
        raise InputError(
            f"wide table: columns {show(named.values())} are called like the classes, but {show(rest)} not. {remedy}"
        )
    check_classes(frame, columns, "wide", remedy)
    return {hints.name: named}


def _refuse_mixture(frame: pd.DataFrame, names: list[str], block: np.ndarray, hints: Hints) -> None:
    """Raise when some columns hold probabilities of two classes and others do not, unless the caller named them."""
    if "prediction" in hints.mapped or "label" not in frame.columns:
        return
    labels = texts(frame["label"].dropna().unique())
    if len(labels) > 2 or any(is_number(name) for name in set(labels) - {"0", "1", "-1"}):
        return
    unit = ((block >= 0) & (block <= 1) | np.isnan(block)).all(axis=0)
    if unit.any() and not unit.all():
        odd = [name for name, inside in zip(names, unit, strict=True) if not inside]
        raise InputError(
            f"wide table: {show(odd)} lie outside [0, 1] while other columns hold probabilities. Drop what is no "
            "prediction, or name the prediction columns with columns={'prediction': [...]}."
        )
