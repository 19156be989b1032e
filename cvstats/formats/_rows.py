"""The rows of all parts of a table on their way to a cube: labels numbered in first-seen order, places, and checks.

Of every part only numbers are kept: the places of its labels and its values. Nothing is repaired: a cell with two rows
or a missing id is an error that names the rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show
from cvstats.cube.arrays import SETTLED
from cvstats.cube.predictions import SUM_TOLERANCE

from ._axis import Axis
from ._columns import constant, first_codes, numbers_of, numeric, plain, refuse_unused, splits_in_repeats, texts
from ._layout import Parsed
from ._output import FIRST, LAST

KEYS, PER_SAMPLE = FIRST[:4], LAST  # what names a cell, and what is said of its sample
SPARSE_CELLS, SPARSE_SHARE = 50_000_000, 20  # a cube this large and this much emptier than its table is a mistake
TOTALS = {"total", "totals", "grandtotal", "subtotal", "sum", "mean", "average", "overall"}
STEP = 2**15  # rows that are looked at at a time
RESERVED = {*FIRST, *LAST, *SETTLED, "label_class", "prediction"}


class TableRows:
    """The rows of all parts, as numbers."""

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
                raise InputError(f"column {name!r} is missing in {self.where(np.flatnonzero(codes < 0), part)}.")
        part.frame = frame[[*part.values.values(), *(name for name in self.extras if name in frame.columns)]]

    def part_of(self, row: int) -> int:
        """Return the number of the part that a row is in."""
        return int(np.searchsorted(self.starts, row, "right")) - 1

    def where(self, rows: np.ndarray, part: Parsed | None = None) -> str:
        """Name rows of a part; rows of all parts are named as far as they are in the first one."""
        if part is None:
            number = self.part_of(rows[0])
            part, rows = self.parts[number], rows - self.starts[number]
            rows = rows[rows < len(part.frame)]
        if not part.aligned:
            names = [*self.axes["sample"].places, "nan"]
            codes = self.pieces["sample"][self.parts.index(part)][rows]
            return f"the rows of samples {show(dict.fromkeys(names[code] for code in codes))}"
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        shown = ", ".join(str(row + part.first_row) for row in rows[:5].tolist()) + more
        return f"{'row' if len(rows) == 1 else 'rows'} {shown}{f' of {part.source}' if self.several else ''}"

    def settle(self) -> dict[str, Any]:
        """Settle the dims when all rows are there; return a column called partner that is none."""
        self.codes = {name: joined(pieces) for name, pieces in self.pieces.items()}
        own = self._no_partner()
        if "fold" in self.codes and not {"repeat", "partner"} & {*self.keys}:
            self._tell_repeats_apart()
        self.sizes = {name: len(self.axes[name].places) for name in self.keys}
        self.cells = math.prod(self.sizes.values())
        self._refuse_sparse()
        self.order = self._row_order()
        self.full = bool(self.order) and self.total == self.cells  # every cell has its row
        if not self.full:
            self._refuse_strangers()
        if self.sizes.get("repeat", 1) > 1 and not self._returns():
            raise InputError(
                "no sample is predicted in more than one repeat: does column 'repeat' hold folds? Say "
                "columns={'fold': 'repeat'}."
            )
        last = next(reversed(self.axes["sample"].places))
        if plain(last) in TOTALS:
            raise InputError(f"the last sample is called {last!r}: is it a total of the rows above? Remove such rows.")
        return own

    def _returns(self) -> bool:
        """Return whether any sample is predicted in several repeats."""
        first = first_codes(self.codes["sample"], self.codes["repeat"])
        return self.full or bool((first[self.codes["sample"]] != self.codes["repeat"]).any())

    def _no_partner(self) -> dict[str, Any]:
        """Return a column called partner that says something else of each sample: a partner has several predictions."""
        if "partner" not in self.keys:
            return {}
        if not constant(self.codes["sample"], self.codes["partner"]):
            if len(bad := np.flatnonzero(self.codes["partner"] < 0)):
                raise InputError(f"column 'partner' is missing in {self.where(bad)}.")
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
        extras = {name: pd.concat([column.astype(object) for column in self.columns(name)]) for name in self.extras}
        refuse_unused(extras, rows["sample"], rows["configuration"])
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

    def columns(self, name: str) -> list[pd.Series]:
        """Return an extra column of each part, missing where a part has none."""
        return [part.frame.get(name, pd.Series(np.nan, index=part.frame.index)) for part in self.parts]

    def place(self, order: Sequence[str], rows: slice = slice(None)) -> np.ndarray:
        """Return the place of rows among all cells, with the dims in an order."""
        kind: Any = np.int32 if math.prod(self.sizes[name] for name in order) < 2**31 else np.int64
        place = np.zeros(len(self.codes[order[0]][rows]), kind)
        for name in order:
            place *= self.sizes[name]
            place += self.codes[name][rows]
        return place

    def grid(self, column: np.ndarray, dims: Sequence[str]) -> np.ndarray:
        """Return the values of all rows, sorted and complete, over all dims; those of `dims` come first."""
        grid = column.reshape([self.sizes[name] for name in self.order])
        return grid.transpose([self.order.index(name) for name in (*dims, *(k for k in self.keys if k not in dims))])

    def _row_order(self) -> list[str]:
        """Return the order of the dims in which the rows are sorted, so that a table can be written as it was read."""
        for order in permutations(self.keys):
            places = (self.place(order, slice(row, row + STEP + 1)) for row in range(0, self.total, STEP))
            if all((place[1:] > place[:-1]).all() for place in places):
                return list(order)
        return []

    def _refuse_sparse(self) -> None:
        if self.cells * len(self.first.values) > SPARSE_CELLS and self.cells > SPARSE_SHARE * self.total:
            n, m, *r = self.sizes.values()
            empty = 100 * (1 - self.total / self.cells)
            raise InputError(
                f"{self.total:,} rows name {n:,} samples, {m:,} configurations and {math.prod(r):,} repeats, so "
                f"that {empty:.1f} % of the cube would be empty. Is one of these columns not "
                "what its name says? Map them with columns={...}."
            )

    def refuse_duplicates(self) -> None:
        """Raise when two rows predict one cell, and say how to tell them apart."""
        place, taken = self.place(self.keys), np.zeros(self.cells, bool)
        taken[place] = True
        if np.count_nonzero(taken) == len(place):
            return
        bad = np.flatnonzero(pd.Series(place).duplicated())
        row, number = bad[0], self.part_of(bad[0])
        part = self.parts[number]
        what = ", ".join(f"{name} {[*self.axes[name].places][self.codes[name][row]]!r}" for name in self.keys)
        pairs = f"; rows {np.argmax(place == place[row]) + 1} and {row + 1}"
        frame = part.frame[self.pieces["sample"][number] == self.codes["sample"][row]]
        apart = [name for name in self.extras if name in frame.columns and len(set(texts(frame[name]))) > 1]
        if pivot := self._of_classes(place == place[row], apart, part):
            hint = f"Column {pivot!r} names the class of each row: give each class a column, prediction_<class>."
        elif apart and len(self.axes["configuration"].places) == 1 and not self.several:
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

    def _of_classes(self, same: np.ndarray, apart: Sequence[str], part: Parsed) -> str | None:
        """Return the column by which rows of one cell are told apart if these are probabilities of the classes."""
        start, classes = self.starts[self.parts.index(part)], {*self.axes["label"].places}
        rows = part.frame[same[start : start + len(part.frame)]]
        values = rows[next(iter(part.values.values()))]
        if not numeric(values) or abs(numbers_of(values).sum() - 1) > SUM_TOLERANCE:
            return None
        return next((name for name in apart if len(rows) > 1 and {*texts(rows[name])} == classes), None)


def joined(pieces: list[np.ndarray]) -> np.ndarray:
    """Return pieces as one array."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
