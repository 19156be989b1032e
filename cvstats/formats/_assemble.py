"""From parsed tables to the cube: number the labels in first-seen order, check, and write each value to its cell.

Two passes over the parts: the first learns the axes, the second fills the cells. Memory is therefore that of the cube
and of one part, however long the file is. Nothing is repaired: a cell with two rows, a sample with two truths or two
folds, a missing id or text among numbers is an error that names the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.kinds import is_plain_pair, positive_class
from cvstats.cube.make import as_cube

from ._axis import Axis, constant, is_number, numbers_of, numeric, same
from ._layout import Hints, Parsed, texts

PER_SAMPLE = ("label", "group", "weight", "event")
SPARSE_CELLS, SPARSE_SHARE = 50_000_000, 20  # a cube this large and this much emptier than its table is a mistake
RESERVED = {"sample", "configuration", "repeat", "label_class", "kind", "positive", "threshold", "classes"}
RESERVED |= {"prediction", "fold", *PER_SAMPLE}


@dataclass
class Part:
    """A parsed table with where it came from."""

    parsed: Parsed
    source: str
    first_row: int  # number of the first row, from 1
    text: bool  # read from text, so that types are to be found out
    aligned: bool  # rows are the file's rows, so that they can be named
    rows: int  # of the file, which may have been stacked since
    codes: dict[str, np.ndarray] = field(default_factory=dict)  # kept between the passes when the part is


class Assembler:
    """Collects parts into one cube."""

    def __init__(self, parts: Callable[[], Iterator[Part]], hints: Hints, several: bool) -> None:
        self.parts, self.hints, self.several = parts, hints, several
        self.sample, self.configuration, self.repeat = Axis("sample"), Axis("configuration"), Axis("repeat")
        self.per_sample = {name: Axis(name) for name in PER_SAMPLE}
        self.fold = Axis("fold")
        self.rows = self.rows_read = 0
        self.notes: dict[str, None] = {}
        self.ignored: dict[str, None] = {}
        self.present: set[str] = set()
        self.first: Parsed | None = None
        self.averaged = False
        self.labels_predicted = False
        self.single = True

    def build(self) -> tuple[xr.DataArray, dict[str, Any]]:
        """Return the cube and the facts for its load report."""
        for part in self.parts():
            self._scan(part)
        assert self.first is not None
        self._allocate()
        for part in self.parts():
            self._fill(part)
        return self._finish()

    # -- first pass

    def _scan(self, part: Part) -> None:
        parsed = part.parsed
        present = RESERVED & {*parsed.frame.columns}
        if self.first is None:
            self.first, self.present = parsed, present
        elif list(self.first.values) != list(parsed.values):
            raise InputError(
                f"{part.source}: the prediction columns are {show(parsed.values)} "
                f"but other files have {show(self.first.values)}."
            )
        elif odd := self.present ^ present:
            raise InputError(f"{part.source}: columns {show(sorted(odd))} are in some files but not in others.")
        self.rows += len(parsed.frame)
        self.rows_read += part.rows
        self.notes.update(dict.fromkeys(parsed.notes))
        self.ignored.update(dict.fromkeys(parsed.ignored))
        self.averaged |= parsed.averaged
        for axis in self._axes():
            part.codes[axis.name] = axis.codes(parsed.frame[axis.name], part.text)
            if (part.codes[axis.name] < 0).any():
                missing = parsed.frame[axis.name].isna().to_numpy()
                raise InputError(f"column {axis.name!r} is missing in {self._where(part, np.flatnonzero(missing))}.")
        for column in parsed.values.values():
            values = parsed.frame[column]
            self.labels_predicted |= not numeric(values)
            self.single &= values.dtype == np.float32

    def _axes(self) -> list[Axis]:
        axes = [self.sample, self.configuration]
        return [*axes, self.repeat] if "repeat" in self.present else axes

    def _where(self, part: Part, rows: np.ndarray) -> str:
        frame = part.parsed.frame
        if not part.aligned:
            return f"the rows of samples {show(dict.fromkeys(texts(frame['sample'].iloc[rows])))}"
        shown = ", ".join(str(row + part.first_row) for row in rows[:5].tolist()) + (
            f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        )
        file = f" of {part.source}" if self.several else ""
        return f"{'row' if len(rows) == 1 else 'rows'} {shown}{file}"

    # -- second pass

    def _allocate(self) -> None:
        assert self.first is not None
        n, m, r = len(self.sample.places), len(self.configuration.places), max(len(self.repeat.places), 1)
        k = len(self.first.values)
        if n * m * r * k > SPARSE_CELLS and n * m * r > SPARSE_SHARE * self.rows:
            raise InputError(
                f"{self.rows:,} rows name {n:,} samples, {m:,} configurations and {r:,} repeats, so that "
                f"{100 * (1 - self.rows / (n * m * r)):.1f} % of the cube would be empty. Is one of these columns not "
                "what its name says? Map them with columns={...}."
            )
        self.shape = (n, m, r)
        if self.labels_predicted:
            if k > 1:
                raise self._text_among_numbers()
            self.values: np.ndarray = np.full((n * m * r, 1), -1, np.int32)
            self.guess = Axis("prediction")
        else:
            self.values = np.full((n * m * r, k), np.nan, np.float32 if self.single else np.float64)
        self.owner = np.full(n * m * r, -1, np.int32 if self.rows < 2**31 else np.int64)
        self.codes = {name: np.full(n, -1) for name in PER_SAMPLE if name in self.present}
        self.folds = np.full(n * r, -1) if "fold" in self.present else None
        extras = [name for name in self.first.extras if name not in RESERVED]
        self.extras = {
            name: (Axis(name), {"configuration": np.full(m, -2), "sample": np.full(n, -2)}) for name in extras
        }
        self.filled = self.blank = 0
        dims = ("sample", "configuration", "repeat") if "repeat" in self.present else ("sample", "configuration")
        self.orders = dict.fromkeys(permutations(dims), -1)  # orders the rows may have, with the last place seen

    def _fill(self, part: Part) -> None:
        parsed, frame = part.parsed, part.parsed.frame
        n, m, r = self.shape
        known = [part.codes.get(axis.name) for axis in self._axes()]
        numbers = [
            axis.codes(frame[axis.name], part.text) if old is None else old
            for axis, old in zip(self._axes(), known, strict=True)
        ]
        s, c = numbers[:2]
        k = numbers[2] if "repeat" in self.present else np.zeros(len(frame), np.int64)
        cell = (s * m + c) * r + k
        rows = np.arange(self.filled, self.filled + len(frame), dtype=self.owner.dtype)
        self._claim(part, cell, rows)
        self._follow({"sample": (s, n), "configuration": (c, m), "repeat": (k, r)})
        block = np.empty((len(frame), len(parsed.values)), self.values.dtype)
        for place, column in enumerate(parsed.values.values()):
            block[:, place] = (
                self.guess.codes(frame[column], part.text) if self.labels_predicted else numbers_of(frame[column])
            )
        self.values[cell] = block
        there = np.asarray(block >= 0 if self.labels_predicted else ~np.isnan(block))
        predicted = np.asarray(there.any(axis=1))
        self.blank += int(len(predicted) - predicted.sum())
        for name, store in self.codes.items():
            self._once(part, store, s, self.per_sample[name].codes(frame[name], part.text), name, predicted)
        if self.folds is not None:
            codes = self.fold.codes(frame["fold"], part.text)
            self._once(part, self.folds, s * r + k, codes, "fold", predicted)
        self._describe(part, {"configuration": c, "sample": s})
        self.filled += len(frame)

    def _describe(self, part: Part, index: dict[str, np.ndarray]) -> None:
        """Keep extra columns that have one value per configuration or per sample."""
        frame = part.parsed.frame
        for name, (axis, stores) in list(self.extras.items()):
            column = frame[name] if name in frame.columns else pd.Series(np.full(len(frame), np.nan))
            glance = pd.factorize(column.iloc[:1000])[0]  # which rules most columns out
            for dim in list(stores):
                if not constant(np.full(len(stores[dim]), -2), index[dim][:1000], glance):
                    del stores[dim]
            codes = axis.codes(column, part.text) if stores else glance
            for dim in list(stores):
                if not constant(stores[dim], index[dim], codes):
                    del stores[dim]
            if not stores:
                del self.extras[name]
                self.ignored[name] = None

    def _follow(self, codes: dict[str, tuple[np.ndarray, int]]) -> None:
        """Keep the orders of the dims in which the rows are sorted, so that a table can be written as it was read."""
        for order, last in list(self.orders.items()):
            for stop in (1000, None):  # a glance at the first rows rules most orders out
                place = np.zeros(1, np.int64)
                for dim in order:
                    place = place * codes[dim][1] + codes[dim][0][:stop]
                if place[0] <= last or (np.diff(place) <= 0).any():
                    del self.orders[order]
                    break
                self.orders[order] = int(place[-1])

    def _claim(self, part: Part, cell: np.ndarray, rows: np.ndarray) -> None:
        """Let every row own its cell; the second owner of a cell is a duplicate row."""
        before = self.owner[cell]
        taken = before >= 0
        if not taken.any():
            self.owner[cell[::-1]] = rows[::-1]  # the first row of a cell wins
            before = self.owner[cell]
            taken = before != rows
        if not taken.any():
            return
        bad = np.flatnonzero(taken)
        names = [axis.name for axis in self._axes()]
        frame = part.parsed.frame
        what = ", ".join(f"{name} {texts(frame[name].iloc[bad[:1]])[0]!r}" for name in names)
        pairs = f"; rows {before[bad[0]] + 1} and {rows[bad[0]] + 1}" if part.aligned and not self.several else ""
        raise InputError(
            f"duplicate rows: {len(bad)} rows predict a cell that another row already predicts; first {what}{pairs}."
            f" {self._duplicate_hint(frame, bad[0])}"
        )

    def _duplicate_hint(self, frame: pd.DataFrame, row: int) -> str:
        """Say what to do about duplicate rows: map the column that tells them apart, or remove them."""
        same_sample = frame[frame["sample"] == frame["sample"].iloc[row]]
        apart = [name for name in self.extras if name in frame.columns and len(set(texts(same_sample[name]))) > 1]
        if apart and len(self.configuration.places) == 1 and not self.several:
            return f"If column {apart[0]!r} names the configurations, say columns={ {'configuration': apart[0]} }."
        if apart:
            return f"Column {apart[0]!r} tells them apart: say what it is with columns={ {'repeat': apart[0]} }, say."
        hint = "" if "repeat" in self.present else " If they are repeats, the table needs a column that says which."
        return f"Remove them.{hint}"

    def _once(
        self, part: Part, store: np.ndarray, index: np.ndarray, codes: np.ndarray, name: str, predicted: np.ndarray
    ) -> None:
        """Keep one value per sample (and repeat); two different ones are a conflict."""
        known = codes >= 0
        if (~known & predicted).any():
            bad = np.flatnonzero(~known & predicted)
            hint = {
                "label": ' (a class called "NA" must be renamed)' if part.text else "",
                "fold": "; fill it in, or leave the column out if folds are not known",
            }.get(name, "")
            raise InputError(f"column {name!r} is missing in {self._where(part, bad)}{hint}.")
        new = known & (store[index] < 0)
        store[index[new][::-1]] = codes[new][::-1]
        clash = known & (store[index] != codes)
        if clash.any():
            bad = np.flatnonzero(clash)
            sample = part.parsed.frame["sample"].iloc[bad[:1]]
            axis = self.fold if name == "fold" else self.per_sample[name]
            values = list(axis.places)
            both = [values[store[index[bad[0]]]], values[codes[bad[0]]]]
            what = {"label": "truth"}.get(name, name)
            raise InputError(
                f"conflicting {what}: {len(bad)} rows disagree with earlier rows of the same sample; first in "
                f"{self._where(part, bad[:1])}: sample {texts(sample)[0]!r} has both {both[0]!r} and {both[1]!r}."
            )

    # -- the cube

    def _finish(self) -> tuple[xr.DataArray, dict[str, Any]]:
        first, hints = self.first, self.hints
        assert first is not None
        n, m, r = self.shape
        repeated = "repeat" in self.present
        missing = int((self.values < 0).sum() if self.labels_predicted else np.isnan(self.values).any(axis=1).sum())
        coords = {axis.name: axis.values(ids=True) for axis in self._axes()}
        dims, shape = list(coords), (n, m, r) if repeated else (n, m)
        if "label" in self.codes and hints.labels is not None:
            raise InputError("the truth is in the file already: leave `labels` (--labels) out, or drop that column.")
        labels = self._per_sample("label", hints.labels)
        distinct = [] if labels is None else pd.unique(np.asarray(labels)).tolist()
        names = {str(name): name for name in distinct} | dict(zip(texts(distinct), distinct, strict=True))
        positive = same(hints.positive if hints.positive is not None else first.positive, names)
        data, classes = self._predictions(names)
        if len(first.values) > 1:
            dims, shape = [*dims, "label_class"], (*shape, len(first.values))
            classes = [same(name, names) for name in first.values]
            classes = [str(name) for name in classes] if len({type(name) for name in classes}) > 1 else classes
        elif None not in first.values:
            data, positive = self._one_class(data, same(next(iter(first.values)), names), positive, distinct)
        array = xr.DataArray(data.reshape(shape), dims=dims, coords=coords)
        per_sample = {"groups": "group", "weights": "weight", "event": "event"}
        given: dict[str, Any] = {argument: self._per_sample(name) for argument, name in per_sample.items()}
        given |= {"kind": hints.kind or first.kind, "positive": positive, "threshold": first.threshold}
        cube = as_cube(array, labels, folds=self._fold_ids(repeated), classes=classes, **given)
        cube = cube.assign_coords(self._extras())
        facts = {
            "rows": self.rows_read,
            "missing_cells": missing,
            "averaged_repeats": self.averaged,
            "ignored_columns": list(self.ignored),
            "notes": list(self.notes),
            "blank_rows": self.blank,
            "row_order": list(next(iter(self.orders), ())),
        }
        return cube, facts

    def _predictions(self, names: dict[str, Any]) -> tuple[np.ndarray, list[Any] | None]:
        """Return the predictions, class names in place of their codes, and the classes if some are never the truth."""
        if not self.labels_predicted:
            return self.values, None
        guesses = [same(name, names) for name in self.guess.places]
        stray = [name for name in guesses if name not in set(names.values())]
        numbers = [name for name in self.guess.places if not is_number(name)]
        if stray and 0 < len(numbers) < len(guesses):
            raise self._text_among_numbers()
        table = np.array([*guesses, None], object)
        known = list(names.values())
        extend = stray and len(stray) < len(guesses) and all(isinstance(name, str) for name in [*known, *stray])
        return np.asarray(table[self.values[:, 0]]), sorted({*known, *stray}) if extend else None

    def _text_among_numbers(self) -> InputError:
        assert self.first is not None
        for part in self.parts():
            for column in part.parsed.values.values():
                values = part.parsed.frame[column]
                if numeric(values):
                    continue
                bad = np.array([value is not None and value == value and not is_number(str(value)) for value in values])
                if bad.any():
                    found = show(dict.fromkeys(texts(values[bad])))
                    rows = self._where(part, np.flatnonzero(bad))
                    return InputError(f"column {column!r} holds text among numbers: {found} in {rows}.")
        return InputError("prediction columns mix numbers and text.")

    def _one_class(self, data: np.ndarray, named: Any, positive: Any, distinct: list[Any]) -> tuple[np.ndarray, Any]:
        """Take the probability of the only class that has a column; the other class is its complement."""
        if positive is None and len(distinct) == 2 and is_plain_pair(distinct):
            positive = positive_class(distinct, None)
        if positive is None or positive == named:
            return data, named
        if len(distinct) > 2 or positive not in distinct:
            raise InputError(f"`positive`={positive!r} is not among the labels {show(distinct)}.")
        self.notes[f"the file holds the probability of {named!r}; that of {positive!r} is one minus it"] = None
        return 1 - data, positive

    def _classes_are_named(self) -> bool:
        return self.first is not None and (self.labels_predicted or None not in self.first.values)

    def _per_sample(self, name: str, given: Any = None) -> Any:
        if name not in self.codes:
            return given
        axis, codes = self.per_sample[name], self.codes[name]
        values = axis.values(ids=name == "group")
        if self._classes_are_named() and name == "label" and len(pd.unique(values)) < len(values):
            return np.array([*axis.places, None], object)[codes]  # classes called 1.1 and 1.10
        return axis.taken(codes, ids=name == "group", text=None)

    def _fold_ids(self, repeated: bool) -> Any:
        if self.folds is None or not self.fold.places:
            return None
        absent = int((self.folds < 0).sum())
        if absent:
            self.notes[f"{absent} samples have no fold in some repeat because nothing predicted them there"] = None
        ids = self.fold.taken(self.folds, ids=True, number=-1).reshape(self.shape[0], self.shape[2])
        return xr.DataArray(ids, dims=("sample", "repeat")) if repeated else ids[:, 0]

    def _extras(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, (axis, stores) in self.extras.items():
            if not stores or not axis.places:
                self.ignored[name] = None
                continue
            dim = "configuration" if "configuration" in stores else "sample"
            out[name] = (dim, axis.taken(stores[dim]))
        return out
