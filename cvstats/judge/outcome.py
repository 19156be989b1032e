"""One run of "choose, then judge" on a cube without batch dims: blocks of configurations in, plain arrays out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats._results import names_of
from cvstats.cube.arrays import raw_block
from cvstats.cube.blocks import (
    PART,
    Coverage,
    column_blocks,
    covered,
    everything,
    judging_coverage,
    map_blocks,
    remember_coverage,
    whole_columns,
)
from cvstats.cube.make import is_lazy
from cvstats.kernels.threads import ticker
from cvstats.metrics import Metric
from cvstats.resample import Bootstrap, Given, kept
from cvstats.select import Select, label_keys, needs_std_error, select_best

from .choosing import Choose, Chosen, Draws, Frame, Judge, merge

MOST = 2**26  # sums of counts are exact at the cost of digits of what is counted; larger weights are real numbers


@dataclass(frozen=True)
class Outcome:
    """What `select_and_judge` found on a cube without batch dims, as plain arrays."""

    place: np.ndarray  # (draw,) position of the winner among all configurations; -1 where no score is defined
    value: np.ndarray  # (draw,) NaN where not usable
    usable: np.ndarray
    win_rate: np.ndarray  # (configuration,)
    score: np.ndarray
    score_variance: np.ndarray
    n_draws: int
    n_redrawn: int

    def labelled(self, cube: xr.DataArray, metric: Metric) -> xr.Dataset:
        """Return the variables with their names and labels."""
        names = cube.coords.variables["configuration"]
        variables = {
            "selected": ("draw", names_of(names.values, self.place)),
            "value": ("draw", self.value),
            "usable": ("draw", self.usable),
            "win_rate": ("configuration", self.win_rate),
            "score": ("configuration", self.score),
            "score_variance": ("configuration", self.score_variance),
            "n_draws": self.n_draws,
            "n_redrawn": self.n_redrawn,
        }
        coords = {"draw": np.arange(len(self.value)), "configuration": names, "metric": metric.name}
        return xr.Dataset(variables, coords=coords)


def judged_outcome(
    cube: xr.DataArray,
    metric: Metric,
    choose: xr.DataArray | Draws,
    found: Coverage | None,
    *,
    judge: xr.DataArray | Draws | None = None,
    judge_cube: xr.DataArray | None = None,
    select: Select = select_best,
    ties: str = "random",
    seed: int = 0,
    batch: int | None = None,
    progress: bool = False,
) -> Outcome:
    """Choose and judge on a checked cube without batch dims; other arguments are those of `select_and_judge`.

    Which predictions were `found` is not known (None) before the data of a dask-backed cube have been read. The first
    pass assumes that none are missing and reports; if that was wrong, a second pass does it right.
    """
    optimistic = found is None
    if found is None:
        found = everything(cube)
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
            return judged_outcome(
                cube,
                metric,
                choose,
                told,
                judge=judge,
                judge_cube=judge_cube,
                select=select,
                ties=ties,
                seed=seed,
                batch=batch,
                progress=progress,
            )
    best = merge(chosen, ties)
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
    places = np.flatnonzero(found.eligible)
    wins = np.bincount(index[usable], minlength=len(places)) / max(1, int(usable.sum()))
    size = cube.sizes["configuration"]
    rate, spread, score = np.zeros(size), np.full(size, np.nan), np.full(size, np.nan)
    rate[places], spread[places], score[places] = wins, variance, best.score
    rate = rate if usable.any() else np.full(size, np.nan)
    redrawn = int((best.redrawn > 0).sum())
    place = np.where(best.usable & best.defined, places[index], -1)
    return Outcome(place, value, usable, rate, score, spread, int(usable.sum()), redrawn)


def _blocks_chosen(task: Choose, data: Any, cube: xr.DataArray, found: Coverage, progress: bool) -> list[Chosen]:
    """Run *choose* on every block of configurations that holds an eligible one."""
    random = not task.keep and task.ties == "random"
    hashes = label_keys(cube.coords.variables["configuration"].values[found.eligible]) if random else None
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
    with np.errstate(invalid="ignore", over="ignore"):
        square = deviation[0] ** 2 / count
        variance = np.maximum(deviation[1] - square, 0.0) / (count - 1)
    return np.where(np.isfinite(square), variance, np.nan)  # too large for a variance


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
    top = float(values.sum(axis=1, dtype=float).max(initial=0.0))
    whole = values.dtype.kind != "f" or np.array_equal(values, np.rint(values))
    if top > MOST or (top > 0 and not whole):  # by a power of two, which changes no digit
        return np.asarray(np.ldexp(values.astype(float), -int(np.ceil(np.log2(top)))))
    if values.dtype.kind == "f" and whole:
        values = values.astype(np.int32)
    return np.asarray(values)
