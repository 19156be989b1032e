"""The one kernel: score each configuration with one set of weights, select one, judge it with another set.

It runs in two steps. *Choose* walks blocks of configurations and, per draw, keeps the best so far; it needs nothing
but a running maximum, so blocks may live anywhere and merge exactly. *Judge* then reads only the columns that won.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ._arrays import Problem, batch_dims, problem, raw_block
from ._check import InputError, check_count, check_option, show
from ._choose import CELLS as CELLS
from ._choose import Choose, Chosen, Draws, Frame, Judge, draw_blocks, merge
from ._lazy import (
    PART,
    Coverage,
    column_blocks,
    covered,
    judging_coverage,
    known_coverage,
    map_blocks,
    remember_coverage,
    whole_columns,
)
from ._scan import one_scan
from ._threads import ticker
from ._ties import label_keys
from ._usable import LabelCheck
from .cube import check_cube, is_lazy
from .metrics import Metric, bound_metric
from .resample import QUANTUM, Bootstrap, Given, Rng, entropy, kept
from .select import Select, needs_std_error, select_best


@one_scan
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
        ``selected(draw)``, ``value(draw)``, ``usable(draw)``; ``win_rate(configuration)``, ``score(configuration)``
        (on all samples; NaN for those that may not be selected) and ``score_variance(configuration)`` (variance over
        usable draws); ``n_draws`` and ``n_redrawn``.

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
    results = [part.drop_vars([dim], errors="ignore") for part in results]
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


def _one(
    cube: xr.DataArray,
    judge_cube: xr.DataArray | None,
    metric: Metric,
    choose: xr.DataArray | Draws,
    judge: xr.DataArray | Draws | None,
    select: Select,
    ties: str,
    seed: int,
    batch: int | None,
    progress: bool,
) -> xr.Dataset:
    """Choose and judge on a cube without batch dims.

    Whether predictions are missing is not known before the data of a dask-backed cube have been read. The first pass
    assumes that none are and reports; if that was wrong, a second pass does it right.
    """
    found = known_coverage(cube)
    optimistic = found is None
    if found is None:
        found = Coverage(np.ones(cube.sizes["sample"], bool), np.ones(cube.sizes["configuration"], bool), False)
    data = raw_block(whole_columns(cube) if is_lazy(cube) else cube)
    plain = select is select_best
    frame = Frame.of(cube, metric, found, check=is_lazy(cube))
    draws = source(choose, cube, found.rows)
    here = plain and judge_cube is None
    others = None if judge is None or not here else source(judge, cube, found.rows)
    task = Choose(frame, draws, others, ties, seed, batch, keep=not plain, here=here, tell=optimistic)
    chosen = _blocks_chosen(task, data, cube, found, progress)
    if optimistic:
        told = covered([part.report for part in chosen if part.report is not None], data.shape[-3], data.shape[-1])
        remember_coverage(cube, told)
        if told.gaps or not (told.rows.all() and told.eligible.all()):
            return _one(cube, judge_cube, metric, choose, judge, select, ties, seed, batch, progress)
    best = merge(chosen, ties)
    names = cube["configuration"].values[found.eligible]
    variance = _variance(best.deviation, int(best.usable.sum()))
    index, value = best.index, best.value
    if not plain:
        assert best.scores is not None
        complexity = cube["complexity"].values[found.eligible].astype(float) if "complexity" in cube.coords else None
        error = np.sqrt(variance) if needs_std_error(select) else None
        index = np.asarray(select(best.scores, direction=metric.direction, std_error=error, complexity=complexity))
        if index.shape != (draws.times,) or index.dtype.kind not in "iu":
            raise InputError("`select` must return one index per row of scores, along the last axis.")
    if not here:
        value = _judged_later(
            cube if judge_cube is None else judge_cube, cube, metric, draws, judge, found, index, batch
        )
    usable = best.usable & best.defined & ~np.isnan(value)
    value = np.where(usable, value, np.nan)
    wins = np.bincount(index[usable], minlength=len(names)) / max(1, int(usable.sum()))
    size = cube.sizes["configuration"]
    rate, spread, score = np.zeros(size), np.full(size, np.nan), np.full(size, np.nan)
    rate[found.eligible], spread[found.eligible], score[found.eligible] = wins, variance, best.score
    return xr.Dataset(
        {
            "selected": ("draw", names[index]),
            "value": ("draw", value),
            "usable": ("draw", usable),
            "win_rate": ("configuration", rate if usable.any() else np.full(len(rate), np.nan)),
            "score": ("configuration", score),
            "score_variance": ("configuration", spread),
            "n_draws": int(usable.sum()),
            "n_redrawn": int((best.redrawn > 0).sum()),
        },
        coords={"draw": np.arange(draws.times), "configuration": cube["configuration"].variable, "metric": metric.name},
    )


def _blocks_chosen(task: Choose, data: Any, cube: xr.DataArray, found: Coverage, progress: bool) -> list[Chosen]:
    """Run *choose* on every block of configurations that holds an eligible one."""
    names = cube["configuration"].values[found.eligible]
    random = not task.keep and task.ties == "random"
    hashes = label_keys(names) if random else None
    blocks, arguments, offset = [], [], 0
    for block, columns in _columns(data, found.eligible):
        local = None if columns.all() else np.flatnonzero(columns)
        size = len(columns) if local is None else len(local)
        keys = None if hashes is None else hashes[offset : offset + size]
        if size:
            blocks.append(block)
            arguments.append((offset, keys, local))
        offset += size
    if len(blocks) > 1:
        task.draws = kept(task.draws)
    if is_lazy(cube) or not progress:
        return map_blocks(task, blocks, arguments, progress="choosing" if progress else "")
    with ticker("choosing", len(blocks) * task.draws.times) as tick:
        return [task(block, *argument, tick) for block, argument in zip(blocks, arguments, strict=True)]


def _columns(data: Any, eligible: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield blocks of whole columns (k?, n, m, r) and which of their configurations are eligible."""
    if hasattr(data, "__dask_graph__"):
        sizes, blocks = column_blocks(data)
    else:
        step = max(1, PART // max(1, data.size // data.shape[-2]))
        starts = range(0, data.shape[-2], step)
        sizes = [min(step, data.shape[-2] - start) for start in starts]
        blocks = [data[..., start : start + step, :] for start in starts]
    at = 0
    for size, block in zip(sizes, blocks, strict=True):
        yield block, eligible[at : at + size]
        at += size


def _variance(deviation: np.ndarray, count: int) -> np.ndarray:
    if count < 2:
        return np.full(deviation.shape[1], np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.maximum(deviation[1] - deviation[0] ** 2 / count, 0.0) / (count - 1))


def _judged_later(
    other: xr.DataArray,
    cube: xr.DataArray,
    metric: Metric,
    draws: Draws,
    judge: xr.DataArray | Draws | None,
    found: Coverage,
    index: np.ndarray,
    batch: int | None,
) -> np.ndarray:
    """Return the value of each draw's winner under the judging weights, block by block of the cube that judges."""
    own = judging_coverage(other)
    frame = Frame.of(other, metric, own, check=is_lazy(other))
    weights = None if judge is None else source(judge, other, own.rows)
    shift = None
    if not np.array_equal(own.rows, found.rows):
        if weights is None and (own.rows & ~found.rows).any():
            raise InputError(
                "`judge_cube` has predictions for samples that no configuration of the cube predicted: "
                f"{show(other['sample'].values[own.rows & ~found.rows])}. Leave those samples out, or give `judge`."
            )
        shift = np.flatnonzero(own.rows[found.rows])
    task = Judge(frame, draws, weights, shift, batch)
    column = np.flatnonzero(found.eligible)[index]
    data = raw_block(whole_columns(other) if is_lazy(other) else other)
    blocks, arguments, at, value = [], [], 0, np.empty(len(index))
    for block, columns in _columns(data, np.ones(data.shape[-2], bool)):
        numbers = np.flatnonzero((column >= at) & (column < at + len(columns)))
        if numbers.size:
            blocks.append(block)
            arguments.append((numbers, column[numbers] - at))
        at += len(columns)
    for (numbers, _), part in zip(arguments, map_blocks(task, blocks, arguments), strict=True):
        value[numbers] = part
    return value


def blocks(
    draws: Draws, batch: int | None, metric: Metric, data: Problem
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield (start, stop, weights, times redrawn) in blocks of draws that bound memory."""
    yield from draw_blocks(draws, batch, metric, data.n, data.p.shape[-2])


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
        if weights.n == int(rows.sum()):
            return weights
        if isinstance(weights, Bootstrap) and weights.on is not None and weights.n == len(rows):
            return weights.on(rows)
        raise InputError(f"draws are over {weights.n} samples but {int(rows.sum())} have predictions.")
    values = check_weights(weights, cube)
    return Given(values if rows.all() else values[:, rows])


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
    """Return bootstrap draws over the predicted samples that are drawn again when `metric` could not use them.

    While nothing is known of the gaps of a dask-backed cube, draws are over all samples and can move to fewer.
    """
    found = known_coverage(cube)
    everything = Coverage(np.ones(cube.sizes["sample"], bool), np.ones(cube.sizes["configuration"], bool), False)
    check = Frame.of(cube, metric, everything, check=False).labels
    make = partial(_draws_on, check, times, seed, group, strata)
    draws = make((found or everything).rows)
    if found is None:
        draws.on = make
    return draws


def _draws_on(
    check: LabelCheck,
    times: int,
    seed: int,
    group: np.ndarray | None,
    strata: np.ndarray | None,
    rows: np.ndarray,
) -> Bootstrap:
    def pick(values: np.ndarray | None) -> Any:
        return None if values is None else np.unique(values[rows], return_inverse=True)[1]

    check = check if rows.all() else check.on(rows)
    usable = check.pair if check.possible(pick(strata), pick(group)) else None
    return Bootstrap(int(rows.sum()), times, seed, group=pick(group), strata=pick(strata), usable=usable)
