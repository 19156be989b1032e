"""Resampling as weights: every draw is a row of counts over samples, shared by all configurations.

Draws come in quanta of 32, each from its own seed, so that the first B' of B draws are the draws of a run with B',
and nothing depends on blocks, workers or numpy's own stream of integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, Rng, check_count, entropy, nearest, show
from .cube.make import check_cube
from .cube.values import plain_array

QUANTUM = 32
ATTEMPTS = 1000  # for a draw that cannot be used, unless hardly any draw can
WORDS = 32_768  # random words at a time
KEPT = 32_000_000  # counts that are remembered for the next block of configurations


class Bootstrap:
    """Bootstrap draws made on demand: ``block(start, stop)`` returns counts (draw, n).

    Parameters
    ----------
    n, times, seed
        Number of samples, number of draws, and the entropy of the stream.
    group
        (n,) codes of clusters that are drawn whole.
    strata
        (n,) codes within which units are drawn.
    usable
        Tells which rows of counts can be used; the others are drawn again, keyed by draw and attempt.
    """

    def __init__(
        self,
        n: int,
        times: int,
        seed: int,
        *,
        group: np.ndarray | None = None,
        strata: np.ndarray | None = None,
        usable: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.n, self.times, self.seed, self.group, self.usable = n, times, seed, group, usable
        self.on: Callable[[np.ndarray], Bootstrap] | None = None  # makes the draws over some of the samples only
        self._hopeful: bool | None = None
        units = n if group is None else int(group.max()) + 1
        layer = np.zeros(units, int) if strata is None else strata
        if strata is not None and group is not None:
            layer = np.zeros(units, int)
            layer[group] = strata
        size = np.bincount(layer)
        start = np.concatenate([[0], np.cumsum(size)[:-1]])
        self._units = units
        self._member = np.argsort(layer, kind="stable")  # units, stratum by stratum
        slot = np.sort(layer, kind="stable")
        self._layered = len(size) > 1  # one slot per unit: it draws from its stratum
        self._size = size[slot].astype(np.uint64) if self._layered else np.uint64(units)
        self._start = start[slot].astype(np.int64)
        self.total = float(units) if group is None else float(units * np.bincount(group).max())

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        counts = np.empty((stop - start, self.n), np.int32)
        for q in range(start // QUANTUM, -(-stop // QUANTUM)):
            low, high = max(start, q * QUANTUM), min(stop, (q + 1) * QUANTUM)
            self._fill(counts[low - start : high - start], (q,), low - q * QUANTUM)
        redrawn = np.zeros(len(counts), int)
        if self.usable is None:
            return counts, redrawn
        bad = np.flatnonzero(~self.usable(counts))
        attempts = ATTEMPTS if bad.size and self._hope() else 0
        for attempt in range(1, attempts + 1):
            if not bad.size:
                break
            for row in bad.tolist():
                draw = start + row
                self._fill(counts[row : row + 1], (draw // QUANTUM, draw % QUANTUM, attempt), 0)
            redrawn[bad] += 1
            bad = bad[~self.usable(counts[bad])]
        redrawn[bad] = ATTEMPTS + 1  # still not usable
        return counts, redrawn

    def _hope(self) -> bool:
        """Return whether one of about a thousand draws is usable, which depends on nothing but design and seed."""
        if self._hopeful is None:
            assert self.usable is not None
            trials, self._hopeful = np.empty((QUANTUM, self.n), np.int32), False
            for attempt in range(QUANTUM):
                self._fill(trials, (0, QUANTUM, attempt), 0)
                if self.usable(trials).any():
                    self._hopeful = True
                    break
        return self._hopeful

    def _fill(self, out: np.ndarray, key: tuple[int, ...], skip: int) -> None:
        """Fill rows with the counts of a stream's draws after the first `skip`, a few rows at a time.

        Raw 32-bit words u become unit (u * size) >> 32 of their stratum.
        """
        units = self._units
        stream = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
        if skip:
            stream.advance(skip * units // 2)
        odd = skip * units % 2  # the first row begins in the middle of a 64-bit word
        step = max(2, WORDS // units // 2 * 2)
        room = np.empty((min(step, len(out)), units), np.uint64)
        for start in range(0, len(out), step):
            rows = out[start : start + step]
            size = len(rows) * units
            words = stream.random_raw((size + odd + 1) // 2).astype("<u8", copy=False).view("<u4")[odd : odd + size]
            words = words.reshape(len(rows), units)
            index = np.multiply(words, self._size, out=room[: len(rows)], dtype=np.uint64)  # numpy 1 would take 32 bits
            index >>= np.uint64(32)
            self._count(index.view(np.int64), rows)
            if odd:
                stream = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
                stream.advance((skip + start + len(rows)) * units // 2)
                odd = (skip + start + len(rows)) * units % 2

    def _count(self, index: np.ndarray, out: np.ndarray) -> None:
        """Count how often each unit was drawn, and give every sample the count of its unit."""
        units = self._units
        if self._layered:
            index += self._start
        if units < 4096:
            index += np.arange(0, index.size, units)[:, None]
            counts = np.bincount(index.ravel(), minlength=index.size).reshape(index.shape)
        else:
            counts = np.array([np.bincount(row, minlength=units) for row in index])
        if self._layered:
            plain = np.empty_like(counts)
            plain[:, self._member] = counts
            counts = plain
        out[:] = counts if self.group is None else counts[:, self.group]


class Kept(Bootstrap):
    """Bootstrap draws that several blocks of configurations use: made once by each process, as narrow integers.

    ``memo(start, stop)`` is a place for what else depends on the draws alone.
    """

    def __init__(self, draws: Bootstrap) -> None:
        self.__dict__.update(draws.__dict__)
        self._known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._memo: dict[tuple[int, int], dict[Any, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}, "_memo": {}}  # whoever receives them makes them again

    def memo(self, start: int, stop: int) -> dict[Any, Any]:
        """Return what was kept with the draws `start` to `stop`, to read and to add to."""
        return self._memo.setdefault((start, stop), {})

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        if (start, stop) not in self._known:
            counts, redrawn = super().block(start, stop)
            narrow = np.uint8 if counts.max(initial=0) < 256 else np.int32
            self._known[start, stop] = counts.astype(narrow), redrawn
        return self._known[start, stop]


def kept(draws: Bootstrap | Given) -> Bootstrap | Given:
    """Return the draws in a form that remembers them while they take little memory."""
    small = isinstance(draws, Bootstrap) and draws.times * draws.n <= KEPT
    return Kept(draws) if small and isinstance(draws, Bootstrap) else draws


class Given:
    """Draws supplied by the caller: used as they are, never drawn again."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.times, self.n = weights.shape
        self.total = float(weights.sum(axis=1).max(initial=0.0))

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of draws `start` to `stop`, and zeros because none was drawn again."""
        part = self.weights[start:stop]
        return part, np.zeros(len(part), int)


def bootstrap(
    cube: xr.DataArray,
    times: int = 1000,
    *,
    rng: Rng = None,
    groups: Any = None,
    strata: Any = None,
) -> xr.DataArray:
    """Return bootstrap draws as counts over samples, what ``draws=`` of the protocols takes.

    Each draw takes N of N samples with replacement; a sample is left out with probability (1 - 1/N)^N, about .37.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinates named below) matter.
    times : int
        Number of draws.
    rng : int or numpy.random.Generator, optional
        Seed or generator; the same seed gives the same draws, and the first draws do not depend on `times`.
    groups : str or array-like, optional
        Clusters to draw whole: a coordinate's name or one value per sample; ``group`` of the cube by default.
    strata : str or array-like, optional
        Classes to draw within: a coordinate's name (such as ``"label"``) or one value per sample. A group that lies in
        several strata is an error.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``; every row adds up to the number of samples unless groups differ in size.

    References
    ----------
    Efron (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics 7, 1-26.
    doi:10.1214/aos/1176344552

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2], [0.6]], [1, 0, 1])
    >>> cs.bootstrap(cube, 2, rng=1).sum("sample").values
    array([3, 3])
    """
    check_cube(cube)
    check_count(times, "times")
    group, layer = group_codes(cube, groups), strata_codes(cube, strata)
    check_nested(group, layer)
    draws = Bootstrap(cube.sizes["sample"], times, entropy(rng), group=group, strata=layer)
    return _labelled(draws.block(0, times)[0], cube)


def subsample(cube: xr.DataArray, times: int = 1000, *, fraction: float = 0.632, rng: Rng = None) -> xr.DataArray:
    """Return draws without replacement: each holds the share `fraction` of the samples (or of the groups) once.

    The default share is that of the distinct samples in a bootstrap draw, so about as many are left to judge. A draw
    then chooses on fewer samples than a bootstrap draw counts, and the choice is noisier.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinate ``group``) matter.
    times : int
        Number of draws.
    fraction : float
        Share of the samples in a draw; it must leave samples both in and out.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``, 0 or 1; what ``draws=`` of the protocols takes.

    References
    ----------
    Politis, Romano (1994). Large sample confidence regions based on subsamples under minimal assumptions. Annals of
    Statistics 22, 2031-2050. doi:10.1214/aos/1176325770

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2], [0.6], [0.1]], [1, 0, 1, 0])
    >>> cs.subsample(cube, 2, fraction=0.5, rng=1).sum("sample").values
    array([2, 2])
    """
    check_cube(cube)
    check_count(times, "times")
    group = group_codes(cube, None)
    units = cube.sizes["sample"] if group is None else int(group.max()) + 1
    size = round(fraction * units)
    if not 0 < fraction < 1 or not 0 < size < units:
        raise InputError(f"`fraction` must leave samples both in and out of a draw; {fraction!r} of {units} does not.")
    seed = entropy(rng)
    counts = np.zeros((times, units), np.int32)
    for row in range(times):
        words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(row,))).random_raw(units)
        counts[row, np.argsort(words, kind="stable")[:size]] = 1
    return _labelled(counts if group is None else counts[:, group], cube)


def jackknife(cube: xr.DataArray) -> xr.DataArray:
    """Return the leave-one-out weights: draw i leaves out sample i (or group i).

    Its spread gives standard errors of smooth statistics; for quantiles and other jagged ones it fails, and N draws
    hold the cube N times over: use `bootstrap` for large N.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinate ``group``) matter.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``, 0 or 1.

    References
    ----------
    Efron, Stein (1981). The jackknife estimate of variance. Annals of Statistics 9, 586-596. doi:10.1214/aos/1176345462

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.jackknife(cs.as_cube([[0.9], [0.2]], [1, 0])).values
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    check_cube(cube)
    group = group_codes(cube, None)
    units = cube.sizes["sample"] if group is None else int(group.max()) + 1
    weights = 1 - np.eye(units, dtype=np.int32)
    return _labelled(weights if group is None else weights[:, group], cube)


def _labelled(counts: np.ndarray, cube: xr.DataArray) -> xr.DataArray:
    coords = {"draw": np.arange(len(counts)), "sample": cube["sample"].variable}
    return xr.DataArray(counts, dims=("draw", "sample"), coords=coords, name="weights")


def sample_values(cube: xr.DataArray, given: Any, argument: str) -> np.ndarray:
    """Return one value per sample from a coordinate's name, a DataArray or an array."""
    n = cube.sizes["sample"]
    if isinstance(given, str):
        if given not in cube.coords:
            raise InputError(
                f"`{argument}`={given!r} is not a coordinate of the cube{nearest(given, map(str, cube.coords))}."
            )
        values = cube.coords[given]
        if values.dims != ("sample",):
            raise InputError(f"`{argument}`={given!r} must have the one dimension 'sample'; found {show(values.dims)}.")
        return np.asarray(values.values)
    values = plain_array(given)
    if values.shape != (n,):
        raise InputError(f"`{argument}` must have one value per sample ({n}); got shape {values.shape}.")
    if pd.isna(values).any():
        missing = cube["sample"].values[pd.isna(values)]
        raise InputError(f"`{argument}` are missing for samples {show(missing)}; every sample needs one.")
    return values


def group_codes(cube: xr.DataArray, groups: Any) -> np.ndarray | None:
    """Return codes of the clusters, by default those of the cube's ``group`` coordinate."""
    if groups is None:
        if "group" not in cube.coords:
            return None
        groups = "group"
    codes: np.ndarray = pd.factorize(sample_values(cube, groups, "groups"))[0]
    return codes


def strata_codes(cube: xr.DataArray, strata: Any) -> np.ndarray | None:
    """Return codes of the strata, or None."""
    if strata is None:
        return None
    values = sample_values(cube, strata, "strata")
    codes: np.ndarray = pd.factorize(values, sort=values.dtype.kind != "O")[0]
    return codes


def check_nested(group: np.ndarray | None, strata: np.ndarray | None) -> None:
    """Raise when a cluster lies in more than one stratum, because it could not be drawn whole within one."""
    if group is None or strata is None:
        return
    low, high = np.full(group.max() + 1, strata.max() + 1), np.full(group.max() + 1, -1)
    np.minimum.at(low, group, strata)
    np.maximum.at(high, group, strata)
    if (low != high).any():
        raise InputError(
            f"`strata` split {int((low != high).sum())} of {len(low)} groups; groups are drawn whole, "
            "so each must lie in one stratum. Use strata=None."
        )
