"""What the cube itself says about how the cross-validation was done, as numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.cube.arrays import class_names, coverage, encode_labels
from cvstats.tables.words import count, printable, several


@dataclass(frozen=True)
class Design:
    """Sizes, folds, classes and tuning values."""

    samples: int
    predicted: int
    configurations: int
    eligible: int
    repeats: int
    folds: int  # of one repeat; 0 when not saved, or not the same for all configurations
    smallest_fold: int
    largest_fold: int
    stratified: bool | None  # None when there are no classes or folds
    classes: dict[str, int]
    groups: int
    weighted: bool
    events: int | None
    tuning: dict[str, tuple[float, float, int]]  # name -> smallest, largest, number of values
    separate: dict[str, int]  # folds of each class, where classes were sampled and divided separately
    own_folds: bool  # whether configurations were split in different ways

    @property
    def leave_one_out(self) -> bool:
        """Whether every fold holds one sample."""
        return self.folds > 1 and self.largest_fold == 1

    @property
    def words(self) -> str:
        """The resampling design in a few words."""
        times = f"{several(self.repeats, 'repeat')} of " if self.repeats > 1 else ""
        if not self.folds:
            why = "configurations were split in different ways" if self.own_folds else "folds not saved"
            return times.removesuffix(" of ") + (", " if times else "") + why
        if self.leave_one_out:
            return "leave-one-out"
        if self.separate:
            return f"{times}{' x '.join(map(str, self.separate.values()))} separate folds, every pair left out once"
        if self.folds == 1:
            return f"{times}one fold, of all samples"
        kind = "stratified " if self.stratified else ""
        low, high = self.smallest_fold, self.largest_fold
        return f"{times}{kind}{self.folds}-fold, {low if low == high else f'{low} to {high}'} samples a fold"


def design_of(cube: xr.DataArray) -> Design:
    """Return the design of a cube without batch dims."""
    known = coverage(cube)
    names = class_names(cube) or []
    codes = encode_labels(cube)[0] if names else np.zeros(0)
    folds, smallest, largest, stratified = _fold_facts(cube, codes if names else None)
    return Design(
        samples=cube.sizes["sample"],
        predicted=int(known.rows.sum()),
        configurations=cube.sizes["configuration"],
        eligible=int(known.eligible.sum()),
        repeats=cube.sizes.get("repeat", 1),
        folds=folds,
        smallest_fold=smallest,
        largest_fold=largest,
        stratified=stratified,
        classes={str(name): int((codes == code).sum()) for code, name in enumerate(names) if name is not None},
        groups=len(pd.unique(cube["group"].values)) if "group" in cube.coords else 0,
        weighted="weight" in cube.coords,
        events=int((cube["event"].values == 1).sum()) if "event" in cube.coords else None,
        tuning=_tuning(cube),
        separate=_separate(cube, names),
        own_folds="fold" in cube.coords and "configuration" in cube["fold"].dims,
    )


def _separate(cube: xr.DataArray, names: list[Any]) -> dict[str, int]:
    """Return how many folds each class has, of a separate-sampling cube."""
    if "partner" not in cube.dims or "fold" not in cube.coords:
        return {}
    fold, label = cube["fold"].transpose("sample", ...).values, cube["label"].values
    return {str(name): len(np.unique(fold[label == name])) for name in names}


def _fold_facts(cube: xr.DataArray, codes: np.ndarray | None) -> tuple[int, int, int, bool | None]:
    """Return folds per repeat, smallest and largest fold, and whether classes are spread evenly over them."""
    if "fold" not in cube.coords or not set(cube["fold"].dims) <= {"sample", "repeat"}:
        return 0, 0, 0, None
    ids = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    held = ids != (-1 if ids.dtype.kind in "iu" else "")
    counts, sizes, even = [], [], True
    for column, inside in zip(ids.T, held.T, strict=True):
        number, names = pd.factorize(column[inside])
        size = np.bincount(number)
        counts.append(len(names))
        sizes.extend(size.tolist())
        own = codes[inside] if codes is not None else np.zeros(0)
        for code in np.unique(own):
            member = np.bincount(number[own == code], minlength=len(names))
            even = even and bool(np.ptp(member) <= (1 if np.ptp(size) <= 1 else 2))
    stratified = even if codes is not None and sizes and max(sizes) > 1 else None
    return max(counts), min(sizes, default=0), max(sizes, default=0), stratified


def _tuning(cube: xr.DataArray) -> dict[str, tuple[float, float, int]]:
    """Return the range of every numeric tuning value that varies; test results are no tuning values."""
    ranges = {}
    for name, coord in cube.coords.items():
        if coord.dims != ("configuration",) or name == "configuration" or coord.dtype.kind not in "fiu":
            continue
        values = np.unique(coord.values[np.isfinite(coord.values)].astype(float))
        if len(values) > 1 and str(name) not in ("complexity", "truth") and not str(name).startswith("test_"):
            ranges[str(name)] = (float(values[0]), float(values[-1]), len(values))
    return ranges


def of_class(name: str) -> str:
    """Return what stands between a number of samples and a class that is named by a number, too."""
    return "of class " if name[:1].isdigit() or name[:1] in "-+." else ""


def read_facts(cube: xr.DataArray, design: Design, source: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what was read, in words; `source` is the report of the reader."""
    layout = printable(source.get("title") or source.get("layout") or "")
    how = f" ({source['recognised']})" if source.get("recognised") else ""
    classes = ", ".join(f"{count(n)} {of_class(name)}{printable(name)}" for name, n in list(design.classes.items())[:8])
    missing = source.get("missing_cells")
    renamed = [(ours, theirs) for ours, theirs in (source.get("read_as") or {}).items() if ours != theirs]
    censored = design.samples - (design.events or 0)
    events = "" if design.events is None else f"{count(design.events)} observed, {count(censored)} censored"
    facts = {
        "Source": printable(source.get("source") or ""),
        "Layout": layout + how if source.get("layout") else "",
        "Columns read": printable(", ".join(f"{theirs} as {ours}" for ours, theirs in renamed)),
        "Rows read": count(source["rows"]) if source.get("rows") else "",
        "Samples": count(design.samples) + (f" ({classes})" if classes else ""),
        "Events": events,
        "Groups": count(design.groups) if design.groups else "",
        "Configurations": count(design.configurations),
        "Cross-validation": design.words,
        "Predictions": _kind(cube),
        "Missing predictions": "" if missing is None else count(missing) if missing else "none",
        "Columns not used": ", ".join(printable(name) for name in (source.get("ignored_columns") or [])[:12]),
    }
    return [(name, text) for name, text in facts.items() if text]


def _kind(cube: xr.DataArray) -> str:
    kind = str(cube.coords["kind"].item())
    words = {
        "label": "predicted classes",
        "score": "risk scores" if "event" in cube.coords else "scores",
        "probability": "class probabilities" if "label_class" in cube.dims else "probabilities",
        "value": "predicted times" if "event" in cube.coords else "numbers",
    }[kind]
    if "positive" in cube.coords and kind in ("score", "probability"):
        words += f" of the positive class, {printable(cube.coords['positive'].item())}"
    return words
