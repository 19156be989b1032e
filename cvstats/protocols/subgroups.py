"""Parts of the samples in which a decision is judged apart: levels of a coordinate, each against all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, nearest, show
from cvstats.intervals.calibrated_limits import constants, variance_of
from cvstats.kernels import Problem
from cvstats.kernels.holm import holm

if TYPE_CHECKING:
    from .bootstrap import Request
    from .common import Case, Run

LEAST = 5  # samples of a class (or in all, where there are none) below which a level is not judged


@dataclass(frozen=True)
class Subgroup:
    """A coordinate over samples and its levels."""

    name: str
    levels: np.ndarray
    codes: np.ndarray  # (n,) the level of each sample
    grouped: bool  # whether it is what samples are grouped by: then they are drawn within its levels

    @classmethod
    def of(cls, cube: xr.DataArray, name: Any) -> Subgroup:
        """Return the subgroup that a coordinate of a cube defines."""
        if name not in cube.coords:
            raise InputError(
                f"`subgroup`={name!r} is not a coordinate of the cube{nearest(name, map(str, cube.coords))}."
            )
        coord = cube.coords[name]
        if coord.dims != ("sample",):
            raise InputError(f"`subgroup`={name!r} must have the one dimension 'sample'; found {show(coord.dims)}.")
        values = coord.values
        missing = np.asarray(pd.isna(values)) | (values == "" if values.dtype.kind in "UOT" else False)
        if missing.any():
            raise InputError(f"`subgroup`={name!r} is missing for samples {show(cube['sample'].values[missing])}.")
        codes, levels = pd.factorize(values, sort=True)
        if len(levels) < 2:
            raise InputError(f"`subgroup`={name!r} has one level only, {show(levels)}; there is nothing to tell apart.")
        grouped = "group" in cube.coords and bool((codes == pd.factorize(cube["group"].values, sort=True)[0]).all())
        return cls(str(name), np.asarray(levels), codes, grouped or name == "group")

    @property
    def parts(self) -> np.ndarray:
        """Which samples (part, n) belong to each level and, after it, to all others."""
        inside = self.codes == np.arange(len(self.levels))[:, None]
        return np.stack([inside, ~inside], axis=1).reshape(-1, len(self.codes))

    def variables(self, data: Problem, known: dict[str, Any]) -> dict[str, Any]:
        """Return the samples and events of each level, and the spread between levels that are groups."""
        inside = self.parts[::2, data.rows]
        y, event = data.y[data.rows], None if data.event is None else data.event[data.rows]
        out: dict[str, Any] = {"n_samples": (self.name, inside.sum(axis=1))}
        if event is not None or data.n_classes == 2:
            out["n_events"] = (self.name, (inside & ((y if event is None else event) == 1)).sum(axis=1))
        if self.grouped:
            dims, shape = known["estimate"][0][:-1], known["estimate"][1].shape[:-1]
            estimate, error = (known[name][1].reshape(-1, len(self.levels)) for name in ("estimate", "std_error"))
            spread = [spread_between(*pair) for pair in zip(estimate, error, strict=True)]
            out["spread_between"] = (dims, np.reshape(spread, shape))
        return out

    def small(self, data: Problem) -> np.ndarray:
        """Return which levels hold too few samples, or too few of a class."""
        inside, y = self.parts[::2, data.rows], data.y[data.rows]
        kinds = [y == code for code in range(data.n_classes)] or [np.ones(len(y), bool)]
        return np.asarray(np.min([(inside & kind).sum(axis=1) for kind in kinds], axis=0) < LEAST)


def differences(pairs: Iterable[Sequence[Case]], level: float, small: np.ndarray) -> dict[str, np.ndarray]:
    """Return how each level differs from all others, with t limits and p-values, adjusted by Holm's method.

    Levels that are too `small` have none. The squared standard error is kappa v + V_s of the difference, with v and V_s
    as in the calibrated interval.
    """
    from scipy.special import stdtr, stdtrit

    rows = []
    for (own, others), few in zip(pairs, small, strict=True):
        gap = np.nan if few else own.evidence.estimate - others.evidence.estimate
        tuned = constants(own.evidence)
        variance = tuned.kappa * variance_of(own.verdict.kept - others.verdict.kept)
        error = np.sqrt(variance + tuned.psi * variance_of(own.verdict.everywhere - others.verdict.everywhere))
        df = own.evidence.n + others.evidence.n - 1
        half = float(stdtrit(df, (1 + level) / 2)) * error
        p = 2 * float(stdtr(df, -abs(gap / error))) if error > 0 else np.nan
        rows.append((gap, gap - half, gap + half, p))
    names = ("difference", "difference_low", "difference_high", "p_value")
    out = dict(zip(names, np.array(rows, float).T, strict=True))
    return out | {"p_adjusted": holm(out["p_value"])}


def by_level(run: Run, asked: Request, cells: list[dict[str, Any]]) -> np.ndarray:
    """Return the variables of every metric and level, with how each level differs from all others."""
    subgroup, metrics = run.subgroup, len(asked.metrics)
    assert subgroup is not None
    small = subgroup.small(run.out.problem)
    if small.any():
        few = f"fewer than {LEAST} samples" + (" of a class" if run.out.problem.n_classes else "")
        asked.notes.append(f"{few} in {subgroup.name} {show(subgroup.levels[small])}: not judged there (NaN)")
    table = np.array(cells, object).reshape(metrics, len(small))
    pairs = np.array(run.cases, object).reshape(metrics, len(small), 2)
    for row, own in zip(table, pairs, strict=True):
        for name, values in differences(own, asked.level, small).items():
            for cell, value in zip(row, values, strict=True):
                cell[name] = value
    for cell in table[:, small].flat:
        cell.update({name: np.full(np.shape(value), np.nan) for name, value in cell.items() if name != "n_draws"})
    return table if asked.listed else np.asarray(table[0])


def spread_between(estimate: np.ndarray, error: np.ndarray) -> float:
    """Return the standard deviation between levels beyond what their standard errors explain (DerSimonian, Laird)."""
    known = np.isfinite(estimate) & (error > 0)
    if known.sum() < 2:
        return np.nan
    weight, value = 1 / error[known] ** 2, estimate[known]
    excess = float((weight * (value - np.average(value, weights=weight)) ** 2).sum()) - (known.sum() - 1)
    scale = float(weight.sum() - (weight**2).sum() / weight.sum())
    return float(np.sqrt(max(excess, 0.0) / scale))
