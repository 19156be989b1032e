"""The one kernel: score each configuration with one set of weights, select one, judge it with another set.

It runs in two steps. *Choose* walks blocks of configurations and, per draw, keeps the best so far; it needs nothing
but a running maximum, so blocks may live anywhere and merge exactly. *Judge* then reads only the columns that won.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ._arrays import Problem, batch_dims, problem
from ._check import InputError, check_count, check_option, show
from ._engines import engine
from ._lazy import map_parts, parts_of
from ._ties import break_ties, label_keys, tie_keys
from ._usable import LabelCheck
from .cube import check_cube
from .metrics import Metric, bound_metric
from .resample import QUANTUM, Bootstrap, Given, Rng, entropy
from .select import Select, needs_std_error, select_best

Draws = Bootstrap | Given
CELLS = 6_000_000  # numbers a block of draws may hold at a time


def select_and_judge(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    choose: xr.DataArray | Draws,
    judge: xr.DataArray | None = None,
    judge_cube: xr.DataArray | None = None,
    select: Select = select_best,
    ties: str = "random",
    rng: Rng = None,
    batch: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Score every configuration with `choose`, select one per draw, and score that one with `judge`.

    Every protocol is this call with other weights. Both weights are non-negative and over ``draw, sample``; case
    weights of the cube multiply them. Sums of whole-number weights are exact, so the numbers do not depend on
    `batch`, on how a dask-backed cube is chunked, or on the number of workers.

    Parameters
    ----------
    cube, metric
        The predictions that choose, and by which metric.
    choose
        Weights that choose.
    judge
        Weights that judge; by default the samples left out of the draw (weight one where `choose` is zero).
    judge_cube
        The predictions that judge, when they are others (another repeat, the outer folds): same samples and
        configurations, matched by label.
    select
        Selection strategy, see `select_best`.
    ties
        ``"random"`` breaks ties inside a draw by a key of seed, draw and configuration label; ``"first"`` takes the
        first configuration. Strategies other than `select_best` break ties by their own rule.
    rng
        Seed of the tie keys.
    batch
        Draws at a time (rounded up to a multiple of 32); bounds memory, never changes a result.
    progress
        Show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``selected(draw)``, ``value(draw)``, ``usable(draw)``; ``win_rate(configuration)`` and
        ``score_variance(configuration)`` (variance over usable draws); ``n_draws`` and ``n_redrawn``.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1, 0], [0, 1], [1, 1]], [1, 0, 1])
    >>> draws = cs.bootstrap(cube, 100, rng=1)
    >>> out = cs.select_and_judge(cube, "accuracy", choose=draws, ties="first", rng=1)
    >>> int(out.n_draws) + int((~out.usable).sum())
    100
    """
    check_cube(cube)
    check_option(ties, ("random", "first"), "ties")
    found = bound_metric(metric, cube)
    if judge_cube is not None:
        judge_cube = aligned(judge_cube, cube)
    seed = entropy(rng)
    if batch is not None:
        batch = -(-check_count(batch, "batch") // QUANTUM) * QUANTUM

    def one(part: xr.DataArray, other: xr.DataArray | None) -> xr.Dataset:
        return _one(part, other, found, choose, judge, select, ties, seed, batch, progress)

    return map_batches(one, cube, judge_cube)


def map_batches(
    function: Callable[[xr.DataArray, xr.DataArray | None], xr.Dataset],
    cube: xr.DataArray,
    other: xr.DataArray | None = None,
) -> xr.Dataset:
    """Apply `function` to every combination of batch dims and put the results together along them."""
    dims = batch_dims(cube)
    if not dims:
        return function(cube, other)
    dim = dims[0]
    results = []
    for i in range(cube.sizes[dim]):
        companion = other if other is None or dim not in other.dims else other.isel({dim: i})
        results.append(map_batches(function, cube.isel({dim: i}), companion))
    results = [part.drop_vars(dim, errors="ignore") for part in results]
    index = cube[dim] if dim in cube.coords else dim
    stacked = xr.concat(results, dim=index, coords="different", compat="equals", combine_attrs="override")
    return stacked


def aligned(other: xr.DataArray, cube: xr.DataArray, argument: str = "judge_cube") -> xr.DataArray:
    """Return `other` in the cube's order of samples and configurations; raise naming the labels that do not match."""
    for dim in ("sample", "configuration"):
        here, there = cube.indexes[dim], other.indexes[dim]
        if here.equals(there):
            continue
        lost, extra = here.difference(there, sort=False), there.difference(here, sort=False)
        if len(lost) or len(extra):
            raise InputError(
                f"`{argument}` does not match the cube along {dim!r}: only in the cube: {show(lost) or 'none'}; "
                f"only in `{argument}`: {show(extra) or 'none'}."
            )
        other = other.isel({dim: there.get_indexer(here)})
    return other


@dataclass(frozen=True)
class Chosen:
    """The outcome of *choose* on one block of configurations (or on several, merged)."""

    defined: np.ndarray  # (draw,) whether some configuration had a score
    best: np.ndarray  # (draw,) what was maximised
    index: np.ndarray  # (draw,) position among the eligible configurations
    key: np.ndarray  # (draw,) tie key of the winner
    deviation: np.ndarray  # (m, 2): sum and sum of squares of the score's deviation over usable draws
    scores: np.ndarray | None  # (draw, m) for strategies that need the whole table


def _one(
    cube: xr.DataArray,
    judge_cube: xr.DataArray | None,
    metric: Metric,
    choose: xr.DataArray | Draws,
    judge: xr.DataArray | None,
    select: Select,
    ties: str,
    seed: int,
    batch: int | None,
    progress: bool,
) -> xr.Dataset:
    """Choose and judge on a cube without batch dims."""
    from ._lazy import predicted

    rows, eligible = predicted(cube)
    draws = source(choose, cube, rows)
    names = cube["configuration"].values[eligible]
    plain = select is select_best
    task = _Task(metric, draws, rows, ties, seed, batch, keep=not plain)
    parts = parts_of(cube, eligible)
    hashes = label_keys(names) if plain and ties == "random" else np.zeros(len(names), np.uint64)
    offsets = np.concatenate([[0], np.cumsum([part.sizes["configuration"] for part in parts])[:-1]])
    arguments = [(part, int(at), hashes[at : at + part.sizes["configuration"]]) for part, at in zip(parts, offsets, strict=True)]
    blocks = map_parts(task, arguments, progress=progress, text="choosing")
    chosen = merge(blocks, ties)
    count = usable_count(task, cube, rows)
    variance = _variance(chosen.deviation, int(count.sum()))
    index, defined = chosen.index, chosen.defined
    if not plain:
        assert chosen.scores is not None
        complexity = cube["complexity"].values[eligible].astype(float) if "complexity" in cube.coords else None
        error = np.sqrt(variance) if needs_std_error(select) else None
        index = np.asarray(select(chosen.scores, direction=metric.direction, std_error=error, complexity=complexity))
        if index.shape != (draws.times,) or index.dtype.kind not in "iu":
            raise InputError("`select` must return one index per row of scores, along the last axis.")
    value, redrawn = _judge(judge_cube if judge_cube is not None else cube, metric, draws, judge, rows, eligible, index, batch)
    usable = count & defined & ~np.isnan(value)
    value = np.where(usable, value, np.nan)
    wins = np.bincount(index[usable], minlength=len(names)) / max(1, int(usable.sum()))
    rate, spread = np.zeros(cube.sizes["configuration"]), np.full(cube.sizes["configuration"], np.nan)
    rate[eligible], spread[eligible] = wins, variance
    return xr.Dataset(
        {
            "selected": ("draw", names[index]),
            "value": ("draw", value),
            "usable": ("draw", usable),
            "win_rate": ("configuration", rate if usable.any() else np.full(len(rate), np.nan)),
            "score_variance": ("configuration", spread),
            "n_draws": int(usable.sum()),
            "n_redrawn": int((redrawn > 0).sum()),
        },
        coords={"draw": np.arange(draws.times), "configuration": cube["configuration"].variable, "metric": metric.name},
    )


class _Task:
    """*Choose* on one block of configurations; an object so that workers can receive it."""

    def __init__(
        self, metric: Metric, draws: Draws, rows: np.ndarray, ties: str, seed: int, batch: int | None, *, keep: bool
    ) -> None:
        self.metric, self.draws, self.rows, self.ties, self.seed = metric, draws, rows, ties, seed
        self.batch, self.keep = batch, keep

    def __call__(self, argument: tuple[xr.DataArray, int, np.ndarray]) -> Chosen:
        """Return the block's winner of every draw."""
        part, offset, hashes = argument
        data = restricted(part, self.metric, self.rows)
        machine = engine(self.metric, data, self.draws.total)
        m = data.p.shape[-2]
        times = self.draws.times
        defined, best, index = np.zeros(times, bool), np.full(times, -np.inf), np.zeros(times, np.int64)
        key = np.zeros(times, np.uint64)
        scores = np.empty((times, m)) if self.keep else None
        centre = machine.scores(np.ones((1, data.n), np.int32))
        deviation = np.zeros((m, 2))
        check = LabelCheck.of(self.metric, data)
        for start, stop, weights, _ in blocks(self.draws, self.batch, self.metric, data):
            with np.errstate(invalid="ignore", over="ignore"):
                criterion, score = machine.criterion(weights)
            _accumulate(deviation, score, centre, check.chosen(weights))
            gaps = np.isnan(criterion)
            defined[start:stop] = ~gaps.all(axis=1)
            if scores is not None:
                scores[start:stop] = score
                continue
            criterion = np.where(gaps, -np.inf, criterion) if gaps.any() else criterion
            local = np.argmax(criterion, axis=1)
            top = np.take_along_axis(criterion, local[:, None], axis=1)[:, 0]
            if self.ties == "random":
                local = break_ties(criterion, top, local, hashes, np.arange(start, stop), self.seed)
                key[start:stop] = tie_keys(hashes[local], np.arange(start, stop), self.seed)
            best[start:stop], index[start:stop] = top, local + offset
        return Chosen(defined, best, index, key, deviation, scores)


def merge(blocks: list[Chosen], ties: str) -> Chosen:
    """Merge blocks in configuration order: the better one wins, ties go to the smaller key or to the first."""
    first = blocks[0]
    defined, best, index, key = first.defined, first.best, first.index, first.key
    for block in blocks[1:]:
        better = (block.best > best) | (block.defined & ~defined)
        if ties == "random":
            better |= block.defined & (block.best == best) & (block.key < key)
        best, index = np.where(better, block.best, best), np.where(better, block.index, index)
        key, defined = np.where(better, block.key, key), defined | block.defined
    scores = None
    if first.scores is not None:
        scores = np.concatenate([block.scores for block in blocks if block.scores is not None], axis=1)
    deviation = np.concatenate([block.deviation for block in blocks])
    return Chosen(defined, best, index, key, deviation, scores)


def _accumulate(deviation: np.ndarray, score: np.ndarray, centre: np.ndarray, ok: np.ndarray) -> None:
    """Add up deviations quantum by quantum, an order that no batch size changes."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = score - centre
    if not ok.all():
        gap = np.where(ok[:, None], gap, 0.0)
    for start in range(0, len(gap), QUANTUM):
        part = gap[start : start + QUANTUM]
        deviation[:, 0] += part.sum(axis=0)
        deviation[:, 1] += np.einsum("bm,bm->m", part, part)


def _variance(deviation: np.ndarray, count: int) -> np.ndarray:
    if count < 2:
        return np.full(len(deviation), np.nan)
    with np.errstate(invalid="ignore"):
        return np.maximum(deviation[:, 1] - deviation[:, 0] ** 2 / count, 0.0) / (count - 1)


def _judge(
    cube: xr.DataArray,
    metric: Metric,
    draws: Draws,
    judge: xr.DataArray | None,
    rows: np.ndarray,
    eligible: np.ndarray,
    index: np.ndarray,
    batch: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the value of each draw's winner under the judging weights, reading only the columns that won."""
    winners, place = np.unique(index, return_inverse=True)
    part = cube.isel(configuration=np.flatnonzero(eligible)[winners])
    part = part.compute() if hasattr(part.variable._data, "__dask_graph__") else part
    own = judged_rows(part)
    data = restricted(part, metric, own)
    weights_of = None if judge is None else source(judge, cube, own)
    machine = engine(metric, data, max(draws.total, weights_of.total if weights_of else 0.0))
    inside = np.flatnonzero(rows)
    here = np.flatnonzero(own)
    shift = None if np.array_equal(inside, here) else np.searchsorted(inside, here)
    value, redrawn = np.empty(draws.times), np.zeros(draws.times, int)
    for start, stop, weights, again in blocks(draws, batch, metric, data):
        if weights_of is not None:
            right = weights_of.block(start, stop)[0]
        else:
            right = (weights == 0).astype(np.int32)
            right = right if shift is None else right[:, shift]
        with np.errstate(invalid="ignore", over="ignore"):
            value[start:stop] = machine.judged(right, place[start:stop])
        empty = ~LabelCheck.of(metric, data).chosen(right)
        value[start:stop][empty] = np.nan
        redrawn[start:stop] = again
    return value, redrawn


def blocks(
    draws: Draws, batch: int | None, metric: Metric, data: Problem
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield (start, stop, weights, times redrawn) in blocks of draws that bound memory."""
    wide = 1024 if metric.family == "rank" else 512
    m, r = data.p.shape[-2:]
    columns = m if metric.linear else m * r
    step = batch or max(QUANTUM, min(wide, CELLS // max(1, data.n + columns) // QUANTUM * QUANTUM))
    for start in range(0, draws.times, step):
        stop = min(start + step, draws.times)
        yield start, stop, *draws.block(start, stop)


def restricted(cube: xr.DataArray, metric: Metric, rows: np.ndarray) -> Problem:
    """Return the problem on some samples only."""
    return problem(cube if rows.all() else cube.isel(sample=rows), metric)


def judged_rows(cube: xr.DataArray) -> np.ndarray:
    """Return which samples have a prediction by some configuration."""
    others = [dim for dim in cube.dims if dim != "sample"]
    return np.asarray(cube.notnull().any(others).values)


def source(weights: xr.DataArray | Draws, cube: xr.DataArray, rows: np.ndarray) -> Draws:
    """Return draws over the predicted samples, from the caller's labelled weights or as given."""
    if isinstance(weights, (Bootstrap, Given)):
        if weights.n != int(rows.sum()):
            raise InputError(f"draws are over {weights.n} samples but {int(rows.sum())} have predictions.")
        return weights
    return Given(check_weights(weights, cube)[:, rows])


def check_weights(weights: xr.DataArray, cube: xr.DataArray, argument: str = "draws") -> np.ndarray:
    """Return (draw, sample) weights in the cube's order of samples."""
    if not isinstance(weights, xr.DataArray) or set(weights.dims) != {"draw", "sample"}:
        raise InputError(f"`{argument}` must be a DataArray over 'draw' and 'sample', as bootstrap() returns.")
    if "sample" in weights.indexes:
        here, there = cube.indexes["sample"], weights.indexes["sample"]
        if not here.equals(there):
            lost, extra = here.difference(there, sort=False), there.difference(here, sort=False)
            if len(lost) or len(extra):
                raise InputError(
                    f"`{argument}` and the cube have different samples: only in the cube: {show(lost) or 'none'}; "
                    f"only in `{argument}`: {show(extra) or 'none'}."
                )
            weights = weights.isel(sample=there.get_indexer(here))
    elif weights.sizes["sample"] != cube.sizes["sample"]:
        raise InputError(f"`{argument}` has {weights.sizes['sample']} samples, the cube {cube.sizes['sample']}.")
    values = weights.transpose("draw", "sample").values
    if values.dtype.kind not in "iubf" or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError(f"`{argument}` must hold finite numbers that are not negative.")
    if values.dtype.kind == "f" and np.array_equal(values, np.rint(values)) and values.max(initial=0) < 2**31:
        values = values.astype(np.int32)
    return np.asarray(values)


def usable_count(task: _Task, cube: xr.DataArray, rows: np.ndarray) -> np.ndarray:
    """Return, per draw, whether its choosing labels allow the metric."""
    one = cube.isel(configuration=[0])
    one = one.compute() if hasattr(one.variable._data, "__dask_graph__") else one
    data = restricted(one, task.metric, rows)
    check = LabelCheck.of(task.metric, data)
    out = np.empty(task.draws.times, bool)
    for start, stop, weights, _ in blocks(task.draws, task.batch, task.metric, data):
        out[start:stop] = check.chosen(weights)
    return out


def unusable_note(out: xr.Dataset) -> tuple[str, ...]:
    """Return what must be said of draws that were skipped or drawn again."""
    total, lost, again = out.sizes["draw"], int((~out["usable"]).sum()), int(out["n_redrawn"])
    if lost:
        return (f"{lost} of {total} draws could not be used and were skipped",)
    return (f"{again} of {total} draws were unusable and drawn again",) if again else ()


def draw_source(
    cube: xr.DataArray,
    metric: Metric,
    times: int,
    seed: int,
    *,
    group: np.ndarray | None = None,
    strata: np.ndarray | None = None,
) -> Bootstrap:
    """Return bootstrap draws over the predicted samples that are drawn again when `metric` could not use them."""
    from ._lazy import predicted

    rows, _ = predicted(cube)
    one = cube.isel(configuration=[0])
    one = one.compute() if hasattr(one.variable._data, "__dask_graph__") else one
    check = LabelCheck.of(metric, restricted(one, metric, rows))

    def pick(values: np.ndarray | None) -> Any:
        return None if values is None else np.unique(values[rows], return_inverse=True)[1]

    usable = check.pair if check.possible(pick(strata)) else None
    return Bootstrap(int(rows.sum()), times, seed, group=pick(group), strata=pick(strata), usable=usable)
