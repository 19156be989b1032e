"""What makes a number doubtful though it is computed right: said by every function that gives it, in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import show
from cvstats.kernels import Problem
from cvstats.metrics import Metric

FEW_GROUPS = 10
CHANCE = 1e-3  # how likely a coordinate may be never split by luck and still not look like a group
HALF = {"auc": "AUC", "auc_ovr": "AUC", "auc_ovr_weighted": "AUC", "concordance": "concordance"}  # .5 is guessing
OURS = {"sample", "label", "fold", "group", "weight", "event"}


@dataclass
class Doubts:
    """Collects doubts over the cells of a cube with batch dims, so that each is said once."""

    cells: int = 0
    groups: dict[Any, None] = field(default_factory=dict)
    split: dict[Any, None] = field(default_factory=dict)
    fewest: int = FEW_GROUPS
    lost: dict[Any, int] = field(default_factory=dict)  # configuration -> cells in which it could not be selected
    total: int = 0
    best: list[float] = field(default_factory=list)  # of the cells whose scores are all below one half
    score: str = ""
    alike: dict[str, tuple[int, int]] = field(default_factory=dict)  # coordinate -> values, samples

    def add(
        self, cube: xr.DataArray, found: Problem, metric: Metric | None = None, scores: np.ndarray | None = None
    ) -> None:
        """Look at one cell: its groups, its gaps and, if given, its scores."""
        self.cells += 1
        folds = _fold_columns(cube)
        if "group" in cube.coords:
            group = cube["group"].values
            names = pd.unique(group[found.rows])
            self.fewest = min(self.fewest, len(names))
            self.groups.update(dict.fromkeys(names.tolist()))
            self.split.update(dict.fromkeys(name for column in folds for name in _split(group, column)))
        else:
            self.alike |= _like_groups(cube, folds)
        self.total = len(found.eligible)
        for name in cube["configuration"].values[~found.eligible].tolist() if not found.eligible.all() else ():
            self.lost[name] = self.lost.get(name, 0) + 1
        if metric is not None and scores is not None and metric.name in HALF:
            known = scores[found.eligible & np.isfinite(scores)]
            if len(known) and known.max() < 0.5:
                self.best.append(float(known.max()))
                self.score = HALF[metric.name]

    def notes(self) -> list[str]:
        """Return what is to be said."""
        return list(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.split:
            yield (
                f"{len(self.split)} of {len(self.groups)} groups are split across folds ({show(self.split)}), so "
                "models were judged on groups they were trained on: scores are too good"
            )
        if self.fewest < FEW_GROUPS:
            yield f"only {self.fewest} independent groups: with fewer than {FEW_GROUPS} the interval cannot be trusted"
        for name, (values, samples) in self.alike.items():
            yield (
                f"coordinate {name!r} looks like a group ({values} values for {samples} samples, none split across "
                "folds) but is not declared, so samples count as independent: declare it as the group, or drop it"
            )
        if self.lost:
            some = " in some cell" if self.cells > 1 else ""
            yield (
                f"{len(self.lost)} of {self.total} configurations lacked predictions that others have and could not be "
                f"selected{some} ({show(self.lost)})"
            )
        if self.best:
            cells = f" in {len(self.best)} of {self.cells} cells" if self.cells > 1 else ""
            yield (
                f"every {self.score} is below .5{cells} (the best is {max(self.best):.3f}): labels or scores are "
                "reversed, or nothing was learned"
            )


def _fold_columns(cube: xr.DataArray) -> list[np.ndarray]:
    """Return the folds of each repeat, -1 where a sample is in none."""
    if "fold" not in cube.coords:
        return []
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    nowhere = -1 if table.dtype.kind in "iu" else ""
    return [np.where(column == nowhere, -1, pd.factorize(column)[0]) for column in table.T]


def _split(values: np.ndarray, fold: np.ndarray) -> list[Any]:
    """Return the values that are in more than one fold."""
    pairs = pd.DataFrame({"value": values, "fold": fold})[fold >= 0].drop_duplicates()
    return pairs.loc[pairs["value"].duplicated(), "value"].unique().tolist()


def _like_groups(cube: xr.DataArray, folds: list[np.ndarray]) -> dict[str, tuple[int, int]]:
    """Return coordinates whose values repeat and are never split across folds, more often than luck would have it."""
    found = {}
    for name, coord in cube.coords.items():
        if coord.dims != ("sample",) or name in OURS or not folds:
            continue
        known = pd.notna(coord.values) & (coord.values.astype(str) != "")
        repeated = int(known.sum()) - len(pd.unique(coord.values[known]))
        luck = sum(repeated * np.log(max(len(np.unique(column[column >= 0])), 1)) for column in folds)
        if luck > -np.log(CHANCE) and not any(_split(coord.values[known], column[known]) for column in folds):
            found[str(name)] = len(pd.unique(coord.values[known])), int(known.sum())
    return found
