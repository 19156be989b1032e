"""From parsed tables to the cube: number the labels in first-seen order, check, and write each value to its cell.

Of every part only numbers are kept: the places of its labels and its values. Nothing is repaired: a cell with two rows,
a sample with two truths or two folds, a missing id or text among numbers is an error that names the rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.kinds import is_plain_pair, positive_class
from cvstats.cube.make import as_cube

from ._axis import Axis, same
from ._columns import (
    constant,
    first_codes,
    is_number,
    numbers_of,
    numeric,
    refuse_unused,
    splits_in_repeats,
    texts,
)
from ._layout import Hints, Parsed

KEYS = ("sample", "configuration", "partner", "repeat")
PER_SAMPLE = ("label", "group", "weight", "event")
SPARSE_CELLS, SPARSE_SHARE = 50_000_000, 20  # a cube this large and this much emptier than its table is a mistake
RESHUFFLED = 0.2  # share of samples in other folds from which on configurations have folds of their own
RESERVED = {*KEYS, *PER_SAMPLE, "fold", "label_class", "kind", "positive", "threshold", "classes", "prediction"}


class Assembly:
    """The rows of all parts, as numbers, on their way to a cube."""

    def __init__(self, several: bool) -> None:
        self.several = several
        self.parts: list[Parsed] = []
        self.starts: list[int] = []  # the first row of each part, from 0
        self.axes: defaultdict[str, Axis] = defaultdict(Axis)
        self.pieces: defaultdict[str, list[np.ndarray]] = defaultdict(list)
        self.notes: dict[str, None] = {}
        self.ignored: dict[str, None] = {}
        self.extras: dict[str, None] = {}
        self.total = 0

    def add(self, part: Parsed) -> None:
        """Take in a part: the numbers of its labels, and its values."""
        frame = part.frame
        present = RESERVED & {*frame.columns}
        if not self.parts:
            self.first, self.present = part, present
            self.keys = [name for name in KEYS if name in present]
        elif {*self.first.values} != {*part.values}:
            both = (part.values, self.first.values)
            mine, others = (show(values) if None not in values else "of no class" for values in both)
            hint = " kind='label' reads classes from all." if any(None in values for values in both) else ""
            raise InputError(f"{part.source}: the prediction columns are {mine} but other files have {others}.{hint}")
        elif odd := self.present ^ present:
            raise InputError(f"{part.source}: columns {show(sorted(odd))} are in some files but not in others.")
        part.values = {name: part.values[name] for name in self.first.values}
        self.extras |= dict.fromkeys(name for name in part.extras if name not in RESERVED)
        self.notes.update(dict.fromkeys(part.notes))
        self.ignored.update(dict.fromkeys(part.ignored))
        self.starts.append(self.total)
        self.parts.append(part)
        self.total += len(frame)
        for name in (*self.keys, *(name for name in (*PER_SAMPLE, "fold") if name in present)):
            codes = self.axes[name].codes(frame[name], part.text)
            self.pieces[name].append(codes)
            if name in self.keys and name != "partner" and (codes < 0).any():
                raise InputError(f"column {name!r} is missing in {self._where(np.flatnonzero(codes < 0), part)}.")
        part.frame = frame[[*part.values.values(), *(name for name in self.extras if name in frame.columns)]]

    def _part(self, row: int) -> int:
        """Return the number of the part that a row is in."""
        return int(np.searchsorted(self.starts, row, "right")) - 1

    def _where(self, rows: np.ndarray, part: Parsed | None = None) -> str:
        """Name rows of a part; rows of all parts are named as far as they are in the first one."""
        if part is None:
            number = self._part(rows[0])
            part, rows = self.parts[number], rows - self.starts[number]
            rows = rows[rows < len(part.frame)]
        if not part.aligned:
            names = [*self.axes["sample"].places, "nan"]
            codes = self.pieces["sample"][self.parts.index(part)][rows]
            return f"the rows of samples {show(dict.fromkeys(names[code] for code in codes))}"
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        shown = ", ".join(str(row + part.first_row) for row in rows[:5].tolist()) + more
        return f"{'row' if len(rows) == 1 else 'rows'} {shown}{f' of {part.source}' if self.several else ''}"

    # -- all rows

    def cube(self, hints: Hints) -> tuple[xr.DataArray, dict[str, Any]]:
        """Return the cube of the rows, and the facts for its load report."""
        first, axes = self.first, self.axes
        self.codes = {name: _joined(pieces) for name, pieces in self.pieces.items()}
        own = self._no_partner()
        if "fold" in self.codes and not {"repeat", "partner"} & {*self.keys}:
            self._tell_repeats_apart()
        self.shape = [len(axes[name].places) for name in self.keys]
        cells, dims, shape = int(np.prod(self.shape)), list(self.keys), list(self.shape)
        self._refuse_sparse(cells)
        self.order = order = self._row_order()
        self.full = full = bool(order) and self.total == cells  # every cell has its row
        if not full:
            self._refuse_strangers()
        values, guesses = self._values()
        if not order:
            self._refuse_duplicates(self._place(self.keys), cells)
        there = values >= 0 if guesses else ~np.isnan(values)
        predicted = np.asarray(there.any(axis=1) if there.shape[1] > 1 else there[:, 0])
        missing = cells - int(np.count_nonzero(there.all(axis=1) if there.shape[1] > 1 else predicted))
        codes = {name: self._once(name, predicted) for name in PER_SAMPLE if name in self.present}
        fold, extras = self._folds(predicted), self._extras()
        if full:
            data = np.empty((*shape, values.shape[1]), values.dtype)
            for place, column in enumerate(values.T):
                data[..., place] = self._grid(column, dims)
            data = data.reshape(cells, -1)
        else:
            data = np.full((cells, values.shape[1]), -1 if guesses else np.nan, values.dtype)
            data[self._place(self.keys)] = values
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
        classes: list[Any] | None = None
        if guesses:
            data, classes = self._guessed(data, guesses, names)
        if len(first.values) > 1:
            dims, shape = [*dims, "label_class"], [*shape, len(first.values)]
            classes = [same(name, names) for name in first.values]
            classes = [str(name) for name in classes] if len({type(name) for name in classes}) > 1 else classes
        elif None not in first.values:
            data, positive = self._one_class(data, same(next(iter(first.values)), names), positive, distinct)
        coords = {name: axes[name].values(ids=True) for name in self.keys}
        rows, averaged = sum(part.rows for part in self.parts), any(part.averaged for part in self.parts)
        first.frame = first.frame.iloc[:0]
        del values, there
        for held in (self.parts, self.pieces, self.codes):  # which would be held beside the cube
            held.clear()
        cube = as_cube(
            xr.DataArray(data.reshape(shape), dims=dims, coords=coords), labels, folds=fold, classes=classes,
            groups=given.get("group"), weights=given.get("weight"), event=given.get("event"),
            kind=hints.kind or first.kind, positive=positive, threshold=first.threshold,
        )  # fmt: skip
        return cube.assign_coords({**own, **extras}), {
            "rows": rows,
            "missing_cells": missing,
            "averaged_repeats": averaged,
            "ignored_columns": list(self.ignored),
            "notes": list(self.notes),
            "blank_rows": int((~predicted).sum()),
            "row_order": order,
        }

    def _no_partner(self) -> dict[str, Any]:
        """Return a column called partner that says something else of each sample: a partner has several predictions."""
        if "partner" not in self.keys:
            return {}
        if not constant(self.codes["sample"], self.codes["partner"]):
            if len(bad := np.flatnonzero(self.codes["partner"] < 0)):
                raise InputError(f"column 'partner' is missing in {self._where(bad)}.")
            return {}
        self.keys.remove("partner")
        first = first_codes(self.codes["sample"], self.codes["partner"])
        return {"partner": ("sample", self.axes["partner"].taken(first))}

    def _tell_repeats_apart(self) -> None:
        """Find the repeats where samples return under another split: splits 0 to 14 are three repeats of five."""
        names = [*self.axes["fold"].places]
        rows = pd.DataFrame({name: self.codes[name] for name in ("sample", "configuration", "fold")})
        again = rows.duplicated(["sample", "configuration"]).any()
        if not again or rows.duplicated().any() or (rows["fold"] < 0).any():
            return
        refuse_unused({name: self._column(name) for name in self.extras}, rows["sample"], rows["configuration"])
        split = pd.Series(pd.Categorical.from_codes(rows["fold"], categories=pd.Index(names)))
        written = pd.Series(names, index=names).str.extract(r"(Fold\d+)\.(Rep\d+)")
        repeat, fold = splits_in_repeats(rows["sample"], rows["configuration"], split)
        if written.notna().all(axis=None):  # caret
            for role, place in (("fold", 0), ("repeat", 1)):
                self.axes[role] = Axis()
                self.codes[role] = self.axes[role].codes(split.map(dict(written[place])), text=True)
        elif fold is not None or all(part.iterations for part in self.parts):
            self._number("repeat", repeat)
            note = "folds are overlapping hold-outs (bootstrap or leave-group-out), read as repeats without folds"
            if fold is None:
                self.present.discard("fold")
            else:
                self._number("fold", fold)
                note = f"{repeat.max() + 1} repeats were read off the splits: a repeat ends when a sample returns"
            self.notes[note] = None
        else:
            return
        self.keys.append("repeat")

    def _number(self, name: str, codes: np.ndarray) -> None:
        self.axes[name], self.codes[name] = Axis({str(i): i for i in range(codes.max() + 1)}, {"i"}), codes

    def _refuse_strangers(self) -> None:
        """Raise when configurations have no sample in common, such as 7 of one and 0007 of another."""
        sample, configuration = self.codes["sample"], self.codes["configuration"]
        first = configuration[0]
        known = np.zeros(len(self.axes["sample"].places), bool)
        known[sample[configuration == first]] = True
        shared = np.bincount(configuration, known[sample], len(self.axes["configuration"].places))
        if (shared > 0).all():
            return
        other, names = int(np.argmin(shared)), [*self.axes["configuration"].places]
        ids = np.array([*self.axes["sample"].places], object)
        theirs = [ids[np.unique(sample[configuration == code])] for code in (first, other)]
        raise InputError(
            f"configurations {names[first]!r} and {names[other]!r} have no sample in common: {show(theirs[0][:3])} ... "
            f"against {show(theirs[1][:3])} ... Are ids written in different ways (7 and 0007), or are these other "
            "data? Predictions can only be compared on the same samples."
        )

    def _column(self, name: str) -> pd.Series:
        """Return an extra column of all parts, missing where a part has none."""
        columns = [part.frame.get(name, pd.Series(np.nan, index=part.frame.index)) for part in self.parts]
        return columns[0] if len(columns) == 1 else pd.concat([column.astype(object) for column in columns])

    def _place(self, order: Sequence[str], stop: int | None = None) -> np.ndarray:
        """Return the place of the rows among all cells, with the dims in an order."""
        sizes = {name: self.shape[self.keys.index(name)] for name in order}
        kind: Any = np.int32 if np.prod([*sizes.values()]) < 2**31 else np.int64
        place = np.zeros(len(self.codes[order[0]][:stop]), kind)
        for name, size in sizes.items():
            place *= size
            place += self.codes[name][:stop]
        return place

    def _grid(self, column: np.ndarray, dims: Sequence[str]) -> np.ndarray:
        """Return the values of all rows, sorted and complete, over all dims; those of `dims` come first."""
        grid = column.reshape([self.shape[self.keys.index(name)] for name in self.order])
        return grid.transpose([self.order.index(name) for name in (*dims, *(k for k in self.keys if k not in dims))])

    def _row_order(self) -> list[str]:
        """Return the order of the dims in which the rows are sorted, so that a table can be written as it was read."""
        for order in permutations(self.keys):
            places = (self._place(order, stop) for stop in (1000, None))
            if all((place[1:] > place[:-1]).all() for place in places):
                return list(order)
        return []

    def _refuse_sparse(self, cells: int) -> None:
        if cells * len(self.first.values) > SPARSE_CELLS and cells > SPARSE_SHARE * self.total:
            n, m, *r = self.shape
            raise InputError(
                f"{self.total:,} rows name {n:,} samples, {m:,} configurations and {int(np.prod(r)):,} repeats, so "
                f"that {100 * (1 - self.total / cells):.1f} % of the cube would be empty. Is one of these columns not "
                "what its name says? Map them with columns={...}."
            )

    def _refuse_duplicates(self, place: np.ndarray, cells: int) -> None:
        """Raise when two rows predict one cell, and say how to tell them apart."""
        taken = np.zeros(cells, bool)
        taken[place] = True
        if np.count_nonzero(taken) == len(place):
            return
        bad = np.flatnonzero(pd.Series(place).duplicated())
        row, number = bad[0], self._part(bad[0])
        part = self.parts[number]
        what = ", ".join(f"{name} {[*self.axes[name].places][self.codes[name][row]]!r}" for name in self.keys)
        pairs = f"; rows {np.argmax(place == place[row]) + 1} and {row + 1}"
        frame = part.frame[self.pieces["sample"][number] == self.codes["sample"][row]]
        apart = [name for name in self.extras if name in frame.columns and len(set(texts(frame[name]))) > 1]
        if apart and len(self.axes["configuration"].places) == 1 and not self.several:
            hint = f"If column {apart[0]!r} names the configurations, say columns={ {'configuration': apart[0]} }."
        elif apart:
            hint = f"Column {apart[0]!r} tells them apart: say what it is with columns={ {'repeat': apart[0]} }, say."
        else:
            repeats = " If they are repeats, the table needs a column that says which."
            hint = "Remove them." + ("" if "repeat" in self.keys else repeats)
        raise InputError(
            f"duplicate rows: {len(bad)} rows predict a cell that another row already predicts; "
            f"first {what}{pairs if part.aligned and not self.several else ''}. {hint}"
        )

    def _values(self) -> tuple[np.ndarray, Axis | None]:
        """Return the values of all rows; where they are classes as numbers, with their axis."""
        columns = [[part.frame[name] for name in part.values.values()] for part in self.parts]
        if all(numeric(column) for part in columns for column in part):
            single = all(column.dtype == np.float32 for part in columns for column in part)
            blocks = [[numbers_of(column) for column in part] for part in columns]
            tables = [np.column_stack(block) if len(block) > 1 else block[0][:, None] for block in blocks]
            return _joined(tables).astype(np.float32 if single else float, copy=False), None
        if len(self.first.values) > 1:
            raise self._text_among_numbers()
        axis = Axis()
        codes = [axis.codes(column, part.text) for (column,), part in zip(columns, self.parts, strict=True)]
        return _joined(codes)[:, None], axis

    def _text_among_numbers(self) -> InputError:
        for part in self.parts:
            for name in part.values.values():
                values = part.frame[name]
                words = [not numeric(values) and not is_number(str(value)) for value in values]
                if len(bad := np.flatnonzero(np.array(words) & values.notna())):
                    found = show(dict.fromkeys(texts(values.iloc[bad])))
                    return InputError(f"column {name!r} holds text among numbers: {found} in {self._where(bad, part)}.")
        return InputError("prediction columns mix numbers and text.")

    def _once(self, name: str, predicted: np.ndarray, dims: Sequence[str] = ("sample",)) -> np.ndarray:
        """Return the one value that each sample (in each repeat) has; two different ones are a conflict."""
        codes = self.codes[name]
        if self.full:
            grid = self._grid(codes, dims)
            others: Any = [slice(1)] * (grid.ndim - len(dims))
            first = grid[(..., *others)]
            if (first >= 0).all() and (grid == first).all():
                return first.ravel()
        index, known = self._place(dims), codes >= 0
        if len(bad := np.flatnonzero(~known & predicted)):
            hint = {
                "label": ' (a class called "NA" must be renamed)' if self.parts[self._part(bad[0])].text else "",
                "fold": "; fill it in, or leave the column out if folds are not known",
            }.get(name, "")
            raise InputError(f"column {name!r} is missing in {self._where(bad)}{hint}.")
        store = np.full(int(np.prod([self.shape[self.keys.index(dim)] for dim in dims])), -1, codes.dtype)
        rows = slice(None) if known.all() else known
        store[index[rows][::-1]] = codes[rows][::-1]  # the first of each place wins
        if len(bad := self._different(name, index, codes, store, known)):
            row, written = bad[0], [*self.axes[name].places]
            raise InputError(
                f"conflicting {'truth' if name == 'label' else name}: {len(bad)} rows disagree with earlier rows of "
                f"the same sample; first in {self._where(bad[:1])}: sample "
                f"{[*self.axes['sample'].places][self.codes['sample'][row]]!r} has both "
                f"{written[store[index[row]]]!r} and {written[codes[row]]!r}."
            )
        return store

    def _different(
        self, name: str, index: np.ndarray, codes: np.ndarray, store: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return the rows whose value is not that of earlier rows; numbers may differ by rounding."""
        bad = np.flatnonzero(known & (store[index] != codes))
        written = [*self.axes[name].places] if len(bad) else []
        if name != "label" or not all(is_number(text) for text in written) or len(written) <= 2:
            return bad
        values = np.array([float(text) for text in written])
        scale = 1e-12 * np.abs(values[np.isfinite(values)]).max(initial=0)
        close = np.isclose(values[codes[bad]], values[store[index[bad]]], rtol=1e-9, atol=scale)
        if close.any():
            self.notes["the truth of some samples is written with more digits in some rows than in others"] = None
        return np.asarray(bad[~close])

    def _folds(self, predicted: np.ndarray) -> Any:
        if "fold" not in self.present:
            return None
        dims = [name for name in self.keys if name not in ("configuration", "partner")]
        try:
            codes = self._once("fold", predicted, dims)
        except InputError:
            if not self._folds_of_configurations(dims):
                raise
            dims = [name for name in self.keys if name != "partner"]
            self.notes["folds differ between configurations, so what is averaged by fold cannot be computed"] = None
            codes = self._once("fold", predicted, dims)
        if not self.axes["fold"].places:
            return None
        if absent := int((codes < 0).sum()):
            self.notes[f"{absent} samples have no fold in some repeat because nothing predicted them there"] = None
        ids = self.axes["fold"].taken(codes, ids=True, number=-1)
        shape = [self.shape[self.keys.index(dim)] for dim in dims]
        return xr.DataArray(ids.reshape(shape), dims=dims) if len(dims) > 1 else ids

    def _folds_of_configurations(self, dims: list[str]) -> bool:
        """Return whether configurations were split in their own ways: many of their samples are in other folds."""
        codes, index = self.codes["fold"], self._place(dims)
        first = first_codes(index, codes)
        other = pd.Series(first[index] != codes).groupby(self.codes["configuration"]).agg(["sum", "mean"])
        other = other[other["sum"] > 0]
        return bool(len(other) and other["mean"].min() >= RESHUFFLED and other["sum"].min() > 2)

    def _extras(self) -> dict[str, Any]:
        """Return extra columns that have one value per configuration, else per sample."""
        out: dict[str, Any] = {}
        for name in self.extras:
            columns = [part.frame.get(name, pd.Series(np.nan, index=part.frame.index)) for part in self.parts]
            glance = pd.factorize(columns[0].iloc[:1000])[0]  # which rules most columns out
            axis, codes = Axis(), None
            for dim in ("configuration", "sample"):
                index = self.codes[dim]
                if not constant(index[: len(glance)], glance):
                    continue
                if codes is None:
                    pairs = zip(columns, self.parts, strict=True)
                    codes = np.concatenate([axis.codes(column, part.text) for column, part in pairs])
                if axis.places and constant(index, codes):
                    out[name] = (dim, axis.taken(first_codes(index, codes)))
                    break
            else:
                self.ignored[name] = None
        return out

    def _guessed(self, codes: np.ndarray, axis: Axis, names: dict[str, Any]) -> tuple[np.ndarray, list[Any] | None]:
        """Return class names in place of their codes, and the classes if some are never the truth."""
        guesses, known = [same(name, names) for name in axis.places], list(names.values())
        stray = [name for name in guesses if name not in set(known)]
        if stray and len({is_number(name) for name in axis.places}) > 1:
            raise self._text_among_numbers()
        extend = stray and len(stray) < len(guesses) and all(isinstance(name, str) for name in [*known, *stray])
        return np.array([*guesses, None], object)[codes[:, 0]], sorted({*known, *stray}) if extend else None

    def _one_class(self, data: np.ndarray, named: Any, positive: Any, distinct: list[Any]) -> tuple[np.ndarray, Any]:
        """Take the probability of the only class that has a column; the other class is its complement."""
        if named not in distinct:
            raise InputError(
                f"the only column of predictions is named after class {named!r}, but the labels are {show(distinct)}; "
                "say what it is with columns={'prediction': ...}."
            )
        if positive is None and len(distinct) == 2 and is_plain_pair(distinct):
            positive = positive_class(distinct, None)
        if positive is None or positive == named:
            return data, named
        if len(distinct) > 2 or positive not in distinct:
            raise InputError(f"`positive`={positive!r} is not among the labels {show(distinct)}.")
        self.notes[f"the file holds the probability of {named!r}; that of {positive!r} is one minus it"] = None
        return 1 - data, positive


def _joined(pieces: list[np.ndarray]) -> np.ndarray:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
