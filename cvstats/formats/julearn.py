"""inspector.folds.predict_proba() of julearn."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._columns import natural_column
from ._layout import Hints, Parsed, layout, others, row_ids

COLUMN = re.compile(r"repeat(\d+)_p(\d+)")


@layout(
    "julearn",
    "julearn inspector.folds.predict_proba() (target, repeat<r>_p<k>)",
    needs=("target", r"repeat\d+_p\d+"),
    # not to be confused with mljar (target, prediction)
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`repeat<r>_p<k>`: k is the place of the class in sorted order."""
    found = {name: COLUMN.fullmatch(name) for name in frame.columns}
    cells = {(int(part[1]), int(part[2])): name for name, part in found.items() if part}
    repeats, places = sorted({r for r, _ in cells}), sorted({k for _, k in cells})
    strange = others(frame, (*cells.values(), "target", "sample", *hints.mapped))
    if strange or repeats != list(range(len(repeats))):
        raise InputError(
            f"julearn: columns are `target` and repeat0_p0, repeat0_p1, ..., repeat1_p0, ...; found repeats "
            f"{show(repeats)} and other columns {show(strange) or 'none'}. Drop or rename those."
        )
    if len(cells) != len(repeats) * len(places):
        raise InputError(f"julearn: not every repeat has all of p0 to p{places[-1]}; found {show(cells.values())}.")
    target = natural_column(frame["target"])
    sample, note = row_ids(frame)
    names: list[Any] = [None]
    notes = [note]
    if len(places) > 1:
        names = sorted(target.dropna().unique().tolist())
        notes.append("class columns p0, p1, ... follow the sorted classes")
        if len(names) != len(places):
            raise InputError(
                f"julearn: {len(places)} class columns but `target` holds {len(names)} classes: {show(names)}."
            )
    parts = [
        pd.DataFrame({"sample": sample, "repeat": r, "label": target})
        .assign(**{f"p{k}": natural_column(frame[cells[r, k]]) for k in places})
        for r in repeats
    ]  # fmt: skip
    values = {name: f"p{k}" for name, k in zip(names, places, strict=True)}
    return Parsed(pd.concat(parts, ignore_index=True), values, notes=notes)
