"""Kernels behind the interval methods that resample again: double bootstrap, BCa and DeLong's variance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from cvstats.cube.arrays import coverage, problem_on
from cvstats.judge import Rules, decide, scored
from cvstats.kernels.placements import delong, placements
from cvstats.resample import Bootstrap, Given, codes_of

if TYPE_CHECKING:
    from cvstats.metrics import Metric

    from .evidence import Evidence

OUTER_STREAM, INNER_STREAM = 1, 2  # keep these draws apart from those of the estimate


def _seed(evidence: Evidence, *key: int) -> int:
    return int(np.random.SeedSequence(evidence.seed, spawn_key=(2**31, *key)).generate_state(2, np.uint64)[0])


def outer_estimates(evidence: Evidence, outer: int, inner: int) -> np.ndarray:
    """Return BBC on each of `outer` bootstrap data sets; inner out-of-bag is by original sample."""
    cube = evidence.cube
    assert cube is not None
    kept = cube.isel(sample=coverage(cube).rows)
    data, n = problem_on(kept, evidence.metric), kept.sizes["sample"]
    groups = codes_of(kept, None, "groups")
    draws = Bootstrap(n, outer, _seed(evidence, OUTER_STREAM), group=groups).block(0, outer)[0]
    units = n if groups is None else int(groups.max()) + 1
    first = np.arange(n) if groups is None else np.unique(groups, return_index=True)[1]
    estimates = np.empty(outer)
    rng = np.random.Generator(np.random.PCG64(_seed(evidence, INNER_STREAM)))
    step = max(1, 200_000 // (inner * max(1, n // 20)))
    for start in range(0, outer, step):
        block = draws[start : start + step]
        counts = rng.multinomial(units, block[:, first] / units, size=(inner, len(block))).transpose(1, 0, 2)
        counts = counts if groups is None else counts[:, :, groups]
        choose = counts.reshape(-1, n)
        judge = np.where(choose == 0, np.repeat(block, inner, axis=0), 0)
        rules = Rules(seed=_seed(evidence, INNER_STREAM, start))
        out = decide(evidence.metric, data, Given(choose), rules, judge=Given(judge))
        values = out.value.reshape(len(block), inner)
        with np.errstate(invalid="ignore"):
            estimates[start : start + len(block)] = np.nansum(values, axis=1) / (~np.isnan(values)).sum(axis=1)
    return estimates


def bca_limits(evidence: Evidence, level: float, times: int) -> tuple[float, float, float]:
    """Return BCa limits and the bootstrap standard error of the score of the only configuration."""
    from scipy.special import ndtr, ndtri

    cube = evidence.cube
    assert cube is not None
    data = problem_on(cube, evidence.metric)
    groups = codes_of(cube, None, "groups")
    units = np.unique(np.arange(data.n) if groups is None else groups, return_inverse=True)[1]
    draws = Bootstrap(data.n, times, _seed(evidence, OUTER_STREAM), group=groups)
    each = np.unique(units[data.rows])
    left_out = Given((units[None, :] != each[:, None]).astype(np.int32))
    _, (table, left) = scored(evidence.metric, data, draws, left_out)
    scores, left = table[~np.isnan(table[:, 0]), 0], left[:, 0]
    if len(scores) < 2 or not np.isfinite(left).all():
        return np.nan, np.nan, np.nan
    below = (np.sum(scores < evidence.naive) + np.sum(scores <= evidence.naive)) / (2 * len(scores))
    bias = float(ndtri(np.clip(below, 1 / (2 * len(scores)), 1 - 1 / (2 * len(scores)))))
    gap = left.mean() - left
    cube_sum, square = float((gap**3).sum()), float((gap**2).sum())
    acceleration = cube_sum / (6 * square**1.5) if square > 0 else 0.0
    z = ndtri([(1 - level) / 2, (1 + level) / 2])
    shares = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
    low, high = np.quantile(scores, shares)
    return float(low), float(high), float(scores.std(ddof=1))


def delong_variance(cube: xr.DataArray, metric: Metric) -> float:
    """Return DeLong's variance of the AUC of the only configuration of a cube with two classes."""
    data = problem_on(cube, metric)
    data = data.samples(data.rows)
    return float(delong(*placements(data.p.reshape(1, data.n), data.y == 1))[1][0, 0])
