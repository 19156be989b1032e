"""From rows to the cube: check what is said of each sample, and write each value to its cell.

Nothing is repaired: a sample with two truths or two folds or text among numbers is an error that names the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.kinds import is_plain_pair, positive_class
from cvstats.cube.make import as_cube
from cvstats.cube.predictions import SUM_TOLERANCE

from ._axis import Axis, same
from ._columns import constant, first_codes, is_number, numbers_of, numeric, plain, texts
from ._layout import Hints
from ._rows import PER_SAMPLE, TableRows, joined

ROUND_OFF = 1e-6  # how far a probability may lie outside [0, 1] by rounding, in single precision
AMOUNT = re.compile(r"[-+\u2212]?[$\u20ac\u00a3]?\d[\d\s.,'/]*%?")  # a number in other words
RESHUFFLED = 0.2  # share of samples in other folds from which on configurations have folds of their own


def cube_of(rows: TableRows, hints: Hints) -> tuple[xr.DataArray, dict[str, Any]]:
    """Return the cube of the rows, which are used up by that, and the facts for its load report."""
    first, axes, own = rows.first, rows.axes, rows.settle()
    values, guesses = _values(rows)
    if not rows.order:
        rows.refuse_duplicates()
    there = values >= 0 if guesses else ~np.isnan(values)
    predicted = np.asarray(there.any(axis=1) if there.shape[1] > 1 else there[:, 0])
    missing = rows.cells - int(np.count_nonzero(there.all(axis=1) if there.shape[1] > 1 else predicted))
    codes = {name: _once(rows, name, predicted) for name in PER_SAMPLE if name in rows.present}
    fold, extras = _folds(rows, predicted), _extras(rows)
    facts = {
        "rows": sum(part.rows for part in rows.parts),
        "missing_cells": missing,
        "averaged_repeats": any(part.averaged for part in rows.parts),
        "ignored_columns": list(rows.ignored),
        "blank_rows": int((~predicted).sum()),
        "row_order": rows.order,
    }
    if "label" in codes and hints.labels is not None:
        raise InputError("the truth is in the file already: leave `labels` (--labels) out, or drop that column.")
    given = {name: axes[name].taken(found, ids=name == "group", text=None) for name, found in codes.items()}
    if "label" in codes and (guesses or None not in first.values):
        written = axes["label"].places
        if len(pd.unique(axes["label"].values(ids=False))) < len(written):  # classes called 1.1 and 1.10
            given["label"] = np.array([*written, None], object)[codes["label"]]
    labels = given.get("label", hints.labels)
    distinct = [] if labels is None else pd.unique(np.asarray(labels)).tolist()
    names = {str(name): name for name in distinct} | dict(zip(texts(distinct), distinct, strict=True))
    positive = same(hints.positive if hints.positive is not None else first.positive, names)
    spelled, classes, dims = None, None, [*rows.keys]
    if guesses:
        spelled, classes = _guessed(rows, guesses, names)
    if len(first.values) > 1:
        dims.append("label_class")
        classes = [same(name, names) for name in first.values]
        classes = [str(name) for name in classes] if len({type(name) for name in classes}) > 1 else classes
    elif None not in first.values:
        named = same(next(iter(first.values)), names)
        positive = _positive(named, positive, distinct)
        if positive != named:
            if guesses:
                raise _text_among_numbers(rows)
            rows.notes[f"the file holds the probability of {named!r}; that of {positive!r} is one minus it"] = None
            values = 1 - values
    if not guesses and (len(first.values) > 1 or len(distinct) <= 2):
        values, notes = likely_probabilities(values, distinct, hints.kind or first.kind, single=None in first.values)
        rows.notes |= dict.fromkeys(notes)
    if len(first.values) > 1:
        _refuse_stray(values, [name for name in classes or () if distinct and name not in distinct], hints.kind)
    data = _in_cells(rows, values, -1 if guesses else np.nan)
    del values, there, predicted  # which would be held beside the cube
    rows.parts.clear()
    first.frame = pd.DataFrame()
    data = data if len(first.values) > 1 else data[..., 0]
    data = data if spelled is None else spelled[data]
    coords = {name: axes[name].values(ids=True) for name in rows.keys}
    cube = as_cube(
        xr.DataArray(data, coords, dims), labels, folds=fold, classes=classes, groups=given.get("group"),
        weights=given.get("weight"), event=given.get("event"), kind=hints.kind or first.kind, positive=positive,
        threshold=first.threshold,
    )  # fmt: skip
    return cube.assign_coords({**own, **extras}), facts | {"notes": list(rows.notes)}


def _in_cells(rows: TableRows, values: np.ndarray, nothing: float) -> np.ndarray:
    """Return values over all dims, and `nothing` where there is none; places of rows are let go before."""
    place, shape = None if rows.full else rows.place(rows.keys), (*rows.sizes.values(), values.shape[1])
    rows.codes.clear()
    rows.pieces.clear()
    if place is None:
        data = np.empty(shape, values.dtype)
        for number, column in enumerate(values.T):
            data[..., number] = rows.grid(column, rows.keys)
        return data
    data = np.full((rows.cells, values.shape[1]), nothing, values.dtype)
    data[place] = values
    return data.reshape(shape)


def _values(rows: TableRows) -> tuple[np.ndarray, Axis | None]:
    """Return the values of all rows; where they are classes as numbers, with their axis."""
    columns = [[part.frame[name] for name in part.values.values()] for part in rows.parts]
    if all(numeric(column) for part in columns for column in part):
        single = all(column.dtype == np.float32 for part in columns for column in part)
        blocks = [[numbers_of(column) for column in part] for part in columns]
        tables = [np.column_stack(block) if len(block) > 1 else block[0][:, None] for block in blocks]
        return joined(tables).astype(np.float32 if single else float, copy=False), None
    if len(rows.first.values) > 1:
        raise _text_among_numbers(rows)
    axis = Axis()
    codes = [axis.codes(column, part.text) for (column,), part in zip(columns, rows.parts, strict=True)]
    return joined(codes)[:, None], axis


def likely_probabilities(
    values: np.ndarray, labels: list[Any], kind: str | None, single: bool = True
) -> tuple[np.ndarray, list[str]]:
    """Return predictions of classes with those beyond 0 and 1 by rounding on these ends, and a note on that.

    Raise for 0 and 1 only where classes have names, unless `kind` is given: nobody says which class is 1.
    """
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    named = single and kind is None and len(labels) == 2 and all(isinstance(name, str) for name in labels)
    if named and low >= 0 and high <= 1 and np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise InputError(
            f"predictions are 0 or 1 throughout, but the classes are {show(labels)}. If they number the classes, "
            "write the names instead; if they are probabilities of the positive class, say kind='probability'."
        )
    if single and kind is None and low >= 0 and 10 < high <= 100 and (values % 1 > 0).any():
        return values, [f"predictions lie between {low:g} and {high:g}: scores; divide percentages by 100"]
    gap = max(-low, high - 1)
    if kind not in (None, "probability") or not 0 < gap <= ROUND_OFF:
        return values, []
    return values.clip(0, 1), [f"probabilities beyond 0 and 1, by {gap:.1g} at most, were set to 0 and 1: rounding"]


def _refuse_stray(values: np.ndarray, stray: list[Any], kind: str | None) -> None:
    """Raise for columns of classes that are never the truth, unless all are probabilities that add up to one."""
    sums = values.sum(axis=1)
    if stray and kind is None and (np.abs(sums[~np.isnan(sums)] - 1) > SUM_TOLERANCE).any():
        raise InputError(
            f"the columns of predictions name {show(stray)}, which are no classes of the truth, and do not add up to "
            "one. Drop what is no class, or say what the predictions are with columns={'prediction': ...}."
        )


def _text_among_numbers(rows: TableRows) -> InputError:
    for part in rows.parts:
        for name in part.values.values():
            values = part.frame[name]
            words = [not numeric(values) and not is_number(str(value)) for value in values]
            if len(bad := np.flatnonzero(np.array(words) & values.notna())):
                found, where = show(dict.fromkeys(texts(values.iloc[bad]))), rows.where(bad, part)
                return InputError(
                    f"column {name!r} holds text among numbers: {found} in {where}. Write numbers as 0.5 (no decimal "
                    "commas, thousands separators or percent signs) and leave what is missing empty."
                )
    return InputError("predictions are numbers written as text, some or all; convert them to numbers.")


def _once(rows: TableRows, name: str, predicted: np.ndarray, dims: Sequence[str] = ("sample",)) -> np.ndarray:
    """Return the one value that each sample (in each repeat) has; two different ones are a conflict."""
    codes = rows.codes[name]
    if rows.full:
        grid = rows.grid(codes, dims)
        others: Any = [slice(1)] * (grid.ndim - len(dims))
        first = grid[(..., *others)]
        if (first >= 0).all() and (grid == first).all():
            return first.flatten()
    index, known = rows.place(dims), codes >= 0
    if len(bad := np.flatnonzero(~known & predicted)):
        hint = {
            "label": ' (a class called "NA" must be renamed)' if rows.parts[rows.part_of(bad[0])].text else "",
            "fold": "; fill it in, or leave the column out if folds are not known",
        }.get(name, "")
        raise InputError(f"column {name!r} is missing in {rows.where(bad)}{hint}.")
    store = np.full(math.prod(rows.sizes[dim] for dim in dims), -1, codes.dtype)
    kept = slice(None) if known.all() else known
    store[index[kept][::-1]] = codes[kept][::-1]  # the first of each place wins
    if len(bad := _different(rows, name, index, codes, store, known)):
        row, written = bad[0], [*rows.axes[name].places]
        raise InputError(
            f"conflicting {'truth' if name == 'label' else name}: {len(bad)} rows disagree with earlier rows of "
            f"the same sample; first in {rows.where(bad[:1])}: sample "
            f"{[*rows.axes['sample'].places][rows.codes['sample'][row]]!r} has both "
            f"{written[store[index[row]]]!r} and {written[codes[row]]!r}."
        )
    return store


def _different(
    rows: TableRows, name: str, index: np.ndarray, codes: np.ndarray, store: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Return the rows whose value is not that of earlier rows; numbers may differ by rounding."""
    bad = np.flatnonzero(known & (store[index] != codes))
    written = [*rows.axes[name].places] if len(bad) else []
    if name != "label" or not all(is_number(text) for text in written) or len(written) <= 2:
        return bad
    values = np.array([float(text) for text in written])
    scale = 1e-12 * np.abs(values[np.isfinite(values)]).max(initial=0)
    close = np.isclose(values[codes[bad]], values[store[index[bad]]], rtol=1e-9, atol=scale)
    if close.any():
        rows.notes["the truth of some samples is written with more digits in some rows than in others"] = None
    return np.asarray(bad[~close])


def _folds(rows: TableRows, predicted: np.ndarray) -> Any:
    if "fold" not in rows.present:
        return None
    nowhere = rows.codes["fold"] == rows.axes["fold"].places.get("-1", -2)
    if len(bad := np.flatnonzero(nowhere & predicted)):
        raise InputError(
            f"column 'fold' is -1 in {rows.where(bad)}, so the sample is in no test set, but it is predicted."
        )
    dims = [name for name in rows.keys if name not in ("configuration", "partner")]
    try:
        codes = _once(rows, "fold", predicted, dims)
    except InputError:
        if not _folds_of_configurations(rows, dims):
            raise
        dims = [name for name in rows.keys if name != "partner"]
        rows.notes["folds differ between configurations, so what is averaged by fold cannot be computed"] = None
        codes = _once(rows, "fold", predicted, dims)
    if not rows.axes["fold"].places:
        return None
    if absent := int((codes < 0).sum()):
        rows.notes[f"{absent} samples have no fold in some repeat because nothing predicted them there"] = None
    ids = rows.axes["fold"].taken(codes, ids=True, number=-1)
    shape = [rows.sizes[dim] for dim in dims]
    return xr.DataArray(ids.reshape(shape), dims=dims) if len(dims) > 1 else ids


def _folds_of_configurations(rows: TableRows, dims: list[str]) -> bool:
    """Return whether configurations were split in their own ways: many of their samples are in other folds."""
    codes, index = rows.codes["fold"], rows.place(dims)
    first = first_codes(index, codes)
    other = pd.Series(first[index] != codes).groupby(rows.codes["configuration"]).agg(["sum", "mean"])
    other = other[other["sum"] > 0]
    return bool(len(other) and other["mean"].min() >= RESHUFFLED and other["sum"].min() > 2)


def _extras(rows: TableRows) -> dict[str, Any]:
    """Return extra columns that have one value per configuration, else per sample."""
    out: dict[str, Any] = {}
    for name in rows.extras:
        columns = rows.columns(name)
        glance = pd.factorize(columns[0].iloc[:1000])[0]  # which rules most columns out
        axis, codes = Axis(), None
        for dim in ("configuration", "sample"):
            index = rows.codes[dim]
            if not constant(index[: len(glance)], glance):
                continue
            if codes is None:
                pairs = zip(columns, rows.parts, strict=True)
                codes = np.concatenate([axis.codes(column, part.text) for column, part in pairs])
            if axis.places and constant(index, codes):
                out[name] = (dim, axis.taken(first_codes(index, codes)))
                break
        else:
            rows.ignored[name] = None
    return out


def _guessed(rows: TableRows, axis: Axis, names: dict[str, Any]) -> tuple[np.ndarray, list[Any] | None]:
    """Return the classes that were predicted, by number, and all classes if some are never the truth."""
    guesses, known = [same(name, names) for name in axis.places], {*names.values()}
    stray = [name for name in guesses if name not in known]
    if stray and (len({is_number(name) for name in axis.places}) > 1 or all(map(AMOUNT.fullmatch, stray))):
        raise _text_among_numbers(rows)
    written = {plain(str(name)): name for name in known}
    if alike := [name for name in stray if plain(str(name)) in written]:
        both = show(written[plain(str(name))] for name in alike)
        raise InputError(f"predictions hold {show(alike)}, written almost like the classes {both}; write them alike.")
    extend = stray and len(stray) < len(guesses) and all(isinstance(name, str) for name in [*known, *stray])
    return np.array([*guesses, None], object), sorted({*known, *stray}) if extend else None


def _positive(named: Any, positive: Any, distinct: list[Any]) -> Any:
    """Return the positive class where only one class has a column; the other class is its complement."""
    if named not in distinct:
        raise InputError(
            f"the only column of predictions is named after class {named!r}, but the labels are {show(distinct)}; "
            "say what it is with columns={'prediction': ...}."
        )
    if positive is None and len(distinct) == 2 and is_plain_pair(distinct):
        positive = positive_class(distinct, None)
    if positive is None or positive == named:
        return named
    if len(distinct) > 2 or positive not in distinct:
        raise InputError(f"`positive`={positive!r} is not among the labels {show(distinct)}.")
    return positive
