"""inspector.folds.predict_proba() of julearn."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import ROW_NAMES, Hints, Layout, Parsed, natural_column, row_ids

COLUMN = re.compile(r"repeat(\d+)_p(\d+)")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`repeat<r>_p<k>`: k is the place of the class in sorted order."""
    found = {name: COLUMN.fullmatch(name) for name in frame.columns}
    cells = {name: (int(part[1]), int(part[2])) for name, part in found.items() if part}
    repeats, places = sorted({r for r, _ in cells.values()}), sorted({k for _, k in cells.values()})
    strange = [name for name in frame.columns if name not in (*cells, "target", "sample", ROW_NAMES, *hints.mapped)]
    if strange or repeats != list(range(len(repeats))):
        raise InputError(
            f"julearn: columns are `target` and repeat0_p0, repeat0_p1, ..., repeat1_p0, ...; found repeats "
            f"{show(repeats)} and other columns {show(strange) or 'none'}. Drop or rename those."
        )
    if len(cells) != len(repeats) * len(places):
        raise InputError(f"julearn: not every repeat has all of p0 to p{places[-1]}; found {show(cells)}.")
    target = natural_column(frame["target"])
    sample, note = row_ids(frame)
    names: list[Any] = [None]
    if len(places) > 1:
        names = sorted(target.dropna().unique().tolist())
        if len(names) != len(places):
            raise InputError(
                f"julearn: {len(places)} class columns but `target` holds {len(names)} classes: {show(names)}."
            )
    by_cell = {cell: name for name, cell in cells.items()}
    n = len(frame)
    out = pd.DataFrame({"sample": np.tile(sample.to_numpy(), len(repeats)), "configuration": hints.name})
    out["repeat"] = np.repeat(repeats, n)
    out["label"] = np.tile(target.to_numpy(), len(repeats))
    for k in places:
        out[f"p{k}"] = pd.concat([natural_column(frame[by_cell[r, k]]) for r in repeats], ignore_index=True)
    values = {name: f"p{k}" for name, k in zip(names, places, strict=True)}
    return Parsed(
        out, values, notes=[note, "class columns p0, p1, ... follow the sorted classes"] if names != [None] else [note]
    )


LAYOUT = Layout(
    name="julearn",
    title="julearn inspector.folds.predict_proba() (target, repeat<r>_p<k>)",
    needs=("target", r"repeat\d+_p\d+"),
    unlike="mljar (target, prediction)",
    parse=parse,
)
