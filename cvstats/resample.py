"""Resampling as weights: every draw is a row of counts over samples, shared by all configurations.

Bootstrap draws come in quanta of 32, each from its own seed, so that the first B' of B draws are the draws of a run
with B', and nothing depends on blocks, workers or numpy's own stream of integers.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, Rng, check_count, entropy, nearest, show
from .cube.align import aligned
from .cube.arrays import check_cube, encode_labels
from .cube.values import plain_array
from .kernels.problem import CLASS_NEEDS, LabelCheck

if TYPE_CHECKING:
    from .metrics import Metric

MOST = 2**26  # sums of counts are exact at the cost of digits of what is counted; larger weights are real numbers
QUANTUM = 32
ATTEMPTS = 1000  # for a draw that cannot be used, unless hardly any draw can
WORDS = 32_768  # random words at a time
REMEMBERED = 32_000_000  # counts that are remembered for the next block of configurations


class Draws:
    """Weights over the samples of a cube, draw by draw: made on demand, or given by the caller.

    Attributes
    ----------
    n, times : number of samples, and of draws.
    total : upper bound of the weight of a draw.
    strata : (n,) codes within which units are drawn, if any.
    """

    n: int
    times: int
    total: float
    strata: np.ndarray | None = None
    _part: tuple[bytes, Draws] | None = None  # the draws over some samples that were last asked for
    _memory: Draws | None = None  # the same draws, remembered

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        raise NotImplementedError

    def on(self, rows: np.ndarray) -> Draws:
        """Return the draws over some of the samples: those that somebody predicted."""
        if rows.all():
            return self
        key = rows.tobytes()
        if self._part is None or self._part[0] != key:
            self._part = key, self._over(rows)
        return self._part[1]

    def _over(self, rows: np.ndarray) -> Draws:
        raise NotImplementedError

    def remembered(self) -> Draws:
        """Return the draws for several passes or blocks of configurations: made but once, while they take little."""
        if self._memory is None:
            self._memory = Memory(copy(self)) if self.times * self.n <= REMEMBERED else self
        return self._memory

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_part": None, "_memory": None}  # whoever receives them makes them again


class Bootstrap(Draws):
    """Bootstrap draws made on demand: ``block(start, stop)`` returns counts (draw, n).

    Parameters
    ----------
    n, times, seed
        Number of samples, number of draws, and the entropy of the stream.
    group
        (n,) codes of clusters that are drawn whole.
    strata
        (n,) codes within which units are drawn.
    check
        What draws must hold, so that the others are drawn again, keyed by draw and attempt; None when nothing need be.
    ratio
        How many units a draw takes for each that there is: one, unless draws are to be as large as another data set.
    """

    def __init__(
        self,
        n: int,
        times: int,
        seed: int,
        *,
        group: np.ndarray | None = None,
        strata: np.ndarray | None = None,
        check: LabelCheck | None = None,
        ratio: float = 1.0,
    ) -> None:
        self.n, self.times, self.seed, self.group, self.strata, self.ratio = n, times, seed, group, strata, ratio
        self._units = units = n if group is None else int(group.max()) + 1
        self._slots = max(1, round(units * ratio))  # units that a draw takes
        if units > 64 and strata is None and check is not None and not check.requires and check.weight is None:
            check = None  # of so many units some are left out, but for a chance of 1e-27
        self.check = check
        self._dtype = np.uint8 if ratio <= 16 else np.int32  # one of 256 would not happen in the age of the universe
        self._size: Any = np.uint64(units)
        self._member: np.ndarray | None = None
        if strata is not None and strata.max() > 0:
            layer = strata
            if group is not None:
                layer = np.zeros(units, int)
                layer[group] = strata
            size = np.bincount(layer)
            slot = np.repeat(np.arange(len(size)), np.maximum(1, np.rint(size * ratio).astype(int)))
            self._slots = len(slot)
            self._member = np.argsort(layer, kind="stable")  # units, stratum by stratum
            self._size = size[slot].astype(np.uint64)  # a slot draws from its stratum
            self._start = (np.cumsum(size) - size)[slot].astype(np.uint64)
        self.total = float(self._slots) if group is None else float(self._slots * np.bincount(group).max())

    def _over(self, rows: np.ndarray) -> Draws:
        group, strata = (
            None if codes is None else np.unique(codes[rows], return_inverse=True)[1]
            for codes in (self.group, self.strata)
        )
        n, check = int(rows.sum()), None if self.check is None else self.check.on(rows)
        return Bootstrap(n, self.times, self.seed, group=group, strata=strata, check=check, ratio=self.ratio)

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        first = start // QUANTUM * QUANTUM
        counts = np.empty((stop - first, self.n), self._dtype)
        for at in range(0, len(counts), QUANTUM):
            self._fill(counts[at : at + QUANTUM], ((first + at) // QUANTUM,))
        counts = counts[start - first :]
        redrawn, check = np.zeros(len(counts), int), self.check
        if check is None:
            return counts, redrawn
        bad = np.flatnonzero(~check.pair(counts))
        if bad.size and not self._hopeful:
            return counts, redrawn  # drawing again would be futile
        for attempt in range(1, ATTEMPTS + 1):
            if not bad.size:
                break
            for row in bad.tolist():
                self._fill(counts[row : row + 1], (*divmod(start + row, QUANTUM), attempt))
            redrawn[bad] += 1
            bad = bad[~check.pair(counts[bad])]
        redrawn[bad] = ATTEMPTS + 1  # still not usable
        return counts, redrawn

    @cached_property
    def _hopeful(self) -> bool:
        """Whether one of about a thousand draws is usable, which depends on nothing but design and seed."""
        trials = np.empty((QUANTUM, self.n), self._dtype)
        for attempt in range(QUANTUM):
            self._fill(trials, (0, QUANTUM, attempt))
            if self.check is None or self.check.pair(trials).any():
                return True
        return False

    def _fill(self, out: np.ndarray, key: tuple[int, ...]) -> None:
        """Fill rows with the counts of the first draws of a stream, as many at a time as stay in the cache."""
        units, slots, member = self._units, self._slots, self._member
        stream, one = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)), self._dtype(1)
        step = max(1 + slots % 2, WORDS // slots // 2 * 2)  # an even number of words ends with one of 64 bits
        for rows in (out[at : at + step] for at in range(0, len(out), step)):
            size = len(rows) * slots
            words = stream.random_raw((size + 1) // 2).astype("<u8", copy=False).view("<u4")[:size]
            index = np.multiply(words.reshape(-1, slots), self._size, dtype=np.uint64)  # else numpy 1 takes 32 bits
            index >>= np.uint64(32)
            index += np.uint64(units) * np.arange(len(rows), dtype=np.uint64)[:, None]
            index += np.uint64(0) if member is None else self._start
            counts = np.zeros((len(rows), units), self._dtype)
            np.add.at(counts.reshape(-1), index.reshape(-1).view(np.int64), one)  # slow unless it is of one dtype
            if member is not None:
                counts[:, member] = counts.copy()
            rows[:] = counts if self.group is None else counts[:, self.group]


class Memory(Draws):
    """Draws that are made but once, all of them, when the first are asked for."""

    def __init__(self, draws: Draws) -> None:
        self.draws, self.n, self.times, self.total, self.strata = draws, draws.n, draws.times, draws.total, draws.strata
        self._made: tuple[np.ndarray, np.ndarray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_made": None}

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        if self._made is None:
            self._made = self.draws.block(0, self.times)
        counts, redrawn = self._made
        return counts[start:stop], redrawn[start:stop]

    def _over(self, rows: np.ndarray) -> Draws:
        return self.draws.on(rows).remembered()

    def remembered(self) -> Draws:
        """Return the same."""
        return self


class Given(Draws):
    """Draws supplied by the caller: used as they are, never drawn again."""

    def __init__(self, weights: np.ndarray) -> None:
        self.values = weights
        self.times, self.n = weights.shape
        self.total = float(weights.sum(axis=1).max(initial=0.0))

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of draws `start` to `stop`, and zeros because none was drawn again."""
        part = self.values[start:stop]
        return part, np.zeros(len(part), int)

    def _over(self, rows: np.ndarray) -> Draws:
        return Given(self.values[:, rows])

    def remembered(self) -> Draws:
        """Return the same: nothing need be made."""
        return self


class Part(Draws):
    """Draws `start` to `stop` of others; or the samples that they leave out, once each."""

    def __init__(self, draws: Draws, start: int = 0, stop: int | None = None, *, left_out: bool = False) -> None:
        self.draws, self.start, self.left_out = draws, start, left_out
        self.n, self.times = draws.n, (draws.times if stop is None else stop) - start
        self.total = float(draws.n) if left_out else draws.total

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (draw, n) of draws `start` to `stop` of these and how often each was drawn again."""
        counts, redrawn = self.draws.block(self.start + start, self.start + stop)
        return (counts == 0).view(np.uint8) if self.left_out else counts, redrawn

    def _over(self, rows: np.ndarray) -> Draws:
        return Part(self.draws.on(rows), self.start, self.start + self.times, left_out=self.left_out)


def make_draws(
    cube: xr.DataArray,
    metric: Metric,
    times: int,
    seed: int,
    strata: Any,
    check: LabelCheck | None = None,
    ratio: float = 1.0,
) -> Bootstrap:
    """Return bootstrap draws of all samples of a cube, drawn again when `metric` (or a `check`) refuses them.

    ``strata="auto"`` draws within class where the class ratio does not matter; else strata would hide the variance of
    the class ratio from a metric that depends on it. Classes that were sampled separately have sizes fixed in advance,
    so their samples are always drawn within class.
    """
    automatic = isinstance(strata, str) and strata == "auto"
    if automatic:
        within = metric.requires in CLASS_NEEDS and metric.ratio_free and cube["label"].dims == ("sample",)
        strata = "label" if within else None
    group = layer = None
    if strata is not None or "group" in cube.coords:
        group, layer = codes_of(cube, None, "groups"), codes_of(cube, strata, "strata")
        try:
            check_nested(group, layer)
        except InputError:
            if not automatic:
                raise
            layer = None  # groups that mix classes cannot be drawn within them; unusable draws are drawn again
    if "partner" in cube.dims:
        label = pd.factorize(cube["label"].values)[0]
        layer = label if layer is None else np.unique(layer * (label.max() + 1) + label, return_inverse=True)[1]
        check_nested(group, layer)
    check = check or label_check(cube, metric)
    return Bootstrap(cube.sizes["sample"], times, seed, group=group, strata=layer, check=check, ratio=ratio)


def label_check(cube: xr.DataArray, metric: Metric) -> LabelCheck:
    """Return what the labels of a draw must hold for `metric` to be defined, for a cube without batch dims."""
    y, n_classes = encode_labels(cube)
    coords = cube.coords.variables
    event, weight = (coords[name].values.astype(float) if name in coords else None for name in ("event", "weight"))
    return LabelCheck(metric.requires, np.where(np.isnan(y), 0.0, y), event, weight, n_classes)


def unit_count(cube: xr.DataArray, rows: np.ndarray) -> int:
    """Return how many independent units some samples are: samples, or groups."""
    return len(pd.unique(cube["group"].values[rows])) if "group" in cube.coords else int(rows.sum())


def given_draws(weights: xr.DataArray | Draws, cube: xr.DataArray) -> Draws:
    """Return draws over the samples of a cube, from the caller's labelled weights or as they are."""
    if isinstance(weights, Draws):
        if weights.n != cube.sizes["sample"]:
            raise InputError(f"`draws` are over {weights.n} samples, but the cube has {cube.sizes['sample']}.")
        return weights
    if not isinstance(weights, xr.DataArray) or set(weights.dims) != {"draw", "sample"}:
        raise InputError("`draws` must be a DataArray over 'draw' and 'sample', as bootstrap() returns.")
    values = aligned(weights, cube, "draws").transpose("draw", "sample").values
    if values.dtype.kind not in "iubf" or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("`draws` must hold finite numbers that are not negative.")
    top = float(values.sum(axis=1, dtype=float).max(initial=0.0))
    whole = values.dtype.kind != "f" or np.array_equal(values, np.rint(values))
    if top > MOST or (top > 0 and not whole):  # by a power of two, which changes no digit
        return Given(np.ldexp(values.astype(float), -int(np.ceil(np.log2(top)))))
    return Given(values.astype(np.int32) if values.dtype.kind == "f" and whole else values)


def bootstrap(
    cube: xr.DataArray, times: int = 1000, *, rng: Rng = None, groups: Any = None, strata: Any = None
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
    times = check_count(times, "times")
    group, layer = codes_of(cube, groups, "groups"), codes_of(cube, strata, "strata")
    check_nested(group, layer)
    draws = Bootstrap(cube.sizes["sample"], times, entropy(rng), group=group, strata=layer)
    return _labelled(draws.block(0, times)[0].astype(np.int32, copy=False), cube)


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
    times = check_count(times, "times")
    unit, units = _units(cube)
    size = round(fraction * units)
    if not 0 < fraction < 1 or not 0 < size < units:
        raise InputError(f"`fraction` must leave samples both in and out of a draw; {fraction!r} of {units} does not.")
    seed = entropy(rng)
    counts = np.zeros((times, units), np.int32)
    for row in range(times):
        words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(row,))).random_raw(units)
        counts[row, np.argsort(words, kind="stable")[:size]] = 1
    return _labelled(counts[:, unit], cube)


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
    unit, units = _units(cube)
    return _labelled((1 - np.eye(units, dtype=np.int32))[:, unit], cube)


def _units(cube: xr.DataArray) -> tuple[np.ndarray, int]:
    """Return which unit, a sample or a group, every sample belongs to, and how many there are."""
    group = codes_of(cube, None, "groups")
    unit = np.arange(cube.sizes["sample"]) if group is None else group
    return unit, int(unit.max()) + 1


def _labelled(counts: np.ndarray, cube: xr.DataArray) -> xr.DataArray:
    coords = {"draw": np.arange(len(counts)), "sample": cube["sample"].variable}
    return xr.DataArray(counts, dims=("draw", "sample"), coords=coords, name="weights")


def codes_of(cube: xr.DataArray, given: Any, argument: str) -> np.ndarray | None:
    """Return the codes of ``groups`` or ``strata``, from a coordinate's name or one value per sample.

    Groups are by default those of the cube's ``group`` coordinate; otherwise None means that there are none.
    """
    n = cube.sizes["sample"]
    if given is None and argument == "groups" and "group" in cube.coords:
        given = "group"
    if given is None:
        return None
    if isinstance(given, str):
        if given not in cube.coords:
            raise InputError(
                f"`{argument}`={given!r} is not a coordinate of the cube{nearest(given, map(str, cube.coords))}."
            )
        dims, values = cube.coords[given].dims, cube.coords[given].values
        if dims != ("sample",):
            raise InputError(f"`{argument}`={given!r} must have the one dimension 'sample'; found {show(dims)}.")
    else:
        values = plain_array(given)
        if values.shape != (n,):
            raise InputError(f"`{argument}` must have one value per sample ({n}); got shape {values.shape}.")
    if pd.isna(values).any():
        missing = cube["sample"].values[pd.isna(values)]
        raise InputError(f"`{argument}` are missing for samples {show(missing)}; every sample needs one.")
    codes: np.ndarray = pd.factorize(values, sort=argument == "strata" and values.dtype.kind != "O")[0]
    return codes


def check_nested(group: np.ndarray | None, strata: np.ndarray | None) -> None:
    """Raise when a cluster lies in more than one stratum, because it could not be drawn whole within one."""
    if group is None or strata is None:
        return
    size = int(strata.max()) + 1
    split = np.bincount(np.unique(group * size + strata) // size) > 1
    if split.any():
        raise InputError(
            f"`strata` split {int(split.sum())} of {len(split)} groups; groups are drawn whole, "
            "so each must lie in one stratum. Use strata=None."
        )
