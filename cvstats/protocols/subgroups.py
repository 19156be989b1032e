"""Parts of the samples in which a decision is judged apart: levels of a coordinate, each against all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, nearest, show
from cvstats.intervals.calibration import constants, variance_of
from cvstats.kernels import Problem

if TYPE_CHECKING:
    from .bootstrap import Case

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
        missing = np.asarray(pd.isna(values)) | (values == "" if values.dtype.kind in "UO" else False)
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

    def counts(self, data: Problem) -> dict[str, np.ndarray]:
        """Return how many samples were predicted in each level, and how many of them are events."""
        inside = self.parts[::2, data.rows]
        y, event = data.y[data.rows], None if data.event is None else data.event[data.rows]
        counts = {"n_samples": inside.sum(axis=1)}
        if event is not None or data.n_classes == 2:
            counts["n_events"] = (inside & ((y if event is None else event) == 1)).sum(axis=1)
        return counts

    def small(self, data: Problem) -> np.ndarray:
        """Return which levels hold too few samples, or too few of a class."""
        inside, y = self.parts[::2, data.rows], data.y[data.rows]
        kinds = [y == code for code in range(data.n_classes)] or [np.ones(len(y), bool)]
        return np.asarray(np.min([(inside & kind).sum(axis=1) for kind in kinds], axis=0) < LEAST)


def differences(pairs: Sequence[tuple[Case, Case]], level: float, small: np.ndarray) -> dict[str, np.ndarray]:
    """Return how each level differs from all others, with t limits and p-values, adjusted by Holm's method.

    Levels that are too `small` have none. The squared standard error is kappa v + V_s of the difference, with v and V_s
    as in the calibrated interval.
    """
    from scipy.special import stdtr, stdtrit
    from statsmodels.stats.multitest import multipletests

    rows = []
    for (own, others), few in zip(pairs, small, strict=True):
        gap = np.nan if few else own.evidence.estimate - others.evidence.estimate
        tuned = constants(own.evidence)
        variance = tuned.kappa * variance_of(own.kept - others.kept)
        error = np.sqrt(variance + tuned.psi * variance_of(own.everywhere - others.everywhere))
        df = own.evidence.n + others.evidence.n - 1
        half = float(stdtrit(df, (1 + level) / 2)) * error
        p = 2 * float(stdtr(df, -abs(gap / error))) if error > 0 else np.nan
        rows.append((gap, gap - half, gap + half, p))
    names = ("difference", "difference_low", "difference_high", "p_value")
    out = dict(zip(names, np.array(rows, float).T, strict=True))
    adjusted, known = out["p_value"].copy(), ~np.isnan(out["p_value"])
    if known.any():
        adjusted[known] = multipletests(adjusted[known], method="holm")[1]
    return out | {"p_adjusted": adjusted}


def spread_between(estimate: np.ndarray, error: np.ndarray) -> float:
    """Return the standard deviation between levels beyond what their standard errors explain (DerSimonian, Laird)."""
    known = np.isfinite(estimate) & (error > 0)
    if known.sum() < 2:
        return np.nan
    weight, value = 1 / error[known] ** 2, estimate[known]
    excess = float((weight * (value - np.average(value, weights=weight)) ** 2).sum()) - (known.sum() - 1)
    scale = float(weight.sum() - (weight**2).sum() / weight.sum())
    return float(np.sqrt(max(excess, 0.0) / scale))
