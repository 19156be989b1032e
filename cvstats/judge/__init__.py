"""The one kernel: score each configuration with one set of weights, select one, judge it with another set.

It runs in two steps. *Choose* walks blocks of configurations and, per draw, keeps the best so far; it needs nothing
but a running maximum, so blocks may live anywhere and merge exactly. *Judge* then reads only the columns that won.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import Rng, check_count, check_option, entropy
from cvstats.cube.align import aligned as aligned
from cvstats.cube.align import map_batches as map_batches
from cvstats.cube.arrays import problem
from cvstats.cube.blocks import Coverage, everything, known_coverage
from cvstats.cube.make import scan_cube
from cvstats.kernels import Problem
from cvstats.kernels.usable import LabelCheck
from cvstats.metrics import Metric, bound_metric
from cvstats.resample import QUANTUM, Bootstrap
from cvstats.select import Select, select_best

from .choosing import CELLS as CELLS
from .choosing import Draws as Draws
from .choosing import Frame, draw_blocks
from .outcome import Outcome, judged_outcome
from .outcome import check_weights as check_weights
from .outcome import source as source


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
    r"""Score every configuration with `choose`, select one per draw, and score that one with `judge`.

    .. math:: j_b = \arg\max_j \theta_j(choose_b), \qquad value_b = \theta_{j_b}(judge_b)

    with :math:`\theta_j(w)` the score of configuration j when samples weigh w, in performance direction. Every protocol
    is this call with other weights. Both weights are non-negative and over ``draw, sample``; case weights of the cube
    multiply them. Sums of whole-number weights are exact, so the numbers do not depend on `batch`, on how a dask-backed
    cube is chunked, or on the number of workers.

    Parameters
    ----------
    cube : DataArray
        The predictions that choose.
    metric : str or Metric
        By which they choose and judge.
    choose : DataArray
        Weights that choose.
    judge : DataArray, optional
        Weights that judge; by default the samples left out of the draw (weight one where `choose` is zero).
    judge_cube : DataArray, optional
        The predictions that judge, when they are others (another repeat, the outer folds): same samples and
        configurations, matched by label.
    select : callable
        Selection strategy, see `select_best`.
    ties : {"random", "first"}
        ``"random"`` breaks ties inside a draw by a key of seed, draw and configuration label; ``"first"`` takes the
        first configuration. Strategies other than `select_best` break ties by their own rule.
    rng : int or numpy.random.Generator, optional
        Seed of the tie keys.
    batch : int, optional
        Draws at a time (rounded up to a multiple of 32); bounds memory, never changes a result.
    progress : bool
        Show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``selected(draw)`` (empty or NaN where no score is defined), ``value(draw)``, ``usable(draw)``;
        ``win_rate(configuration)``, ``score(configuration)`` (on all samples; NaN for those that may not be selected)
        and ``score_variance(configuration)`` (variance over usable draws); ``n_draws`` and ``n_redrawn``.

    Raises
    ------
    InputError
        Weights or `judge_cube` that do not match the cube's labels; negative weights; no configuration that predicted
        every sample.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, whose Algorithm 5 it generalises.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1, 0], [0, 1], [1, 1]], [1, 0, 1])
    >>> draws = cs.bootstrap(cube, 100, rng=1)
    >>> out = cs.select_and_judge(cube, "accuracy", choose=draws, ties="first", rng=1)
    >>> int(out.n_draws) + int((~out.usable).sum())
    100
    """
    seen = scan_cube(cube)
    check_option(ties, ("random", "first"), "ties")
    found = bound_metric(metric, cube)
    if judge_cube is not None:
        judge_cube = aligned(judge_cube, cube, "judge_cube")
    seed = entropy(rng)
    batch = whole_quanta(batch)

    def one(part: xr.DataArray, other: xr.DataArray | None) -> xr.Dataset:
        out = judged_outcome(
            part,
            found,
            choose,
            known_coverage(part, seen),
            judge=judge,
            judge_cube=other,
            select=select,
            ties=ties,
            seed=seed,
            batch=batch,
            progress=progress,
        )
        return out.labelled(part, found)

    return map_batches(one, cube, judge_cube)


def whole_quanta(batch: int | None) -> int | None:
    """Return `batch` rounded up to whole quanta of draws."""
    return None if batch is None else -(-check_count(batch, "batch") // QUANTUM) * QUANTUM


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


def unusable_note(out: Outcome) -> tuple[str, ...]:
    """Return what must be said of draws that were skipped or drawn again."""
    total, lost, again = len(out.usable), int((~out.usable).sum()), out.n_redrawn
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
    found: Coverage | None = None,
) -> Bootstrap:
    """Return bootstrap draws over the predicted samples that are drawn again when `metric` could not use them.

    While nothing is known of the gaps of a dask-backed cube, draws are over all samples and can move to fewer.
    """
    found = found or known_coverage(cube)
    check = Frame.of(cube, metric, everything(cube), check=True).labels
    make = partial(_draws_on, check, times, seed, group, strata)
    draws = make((found or everything(cube)).rows)
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
    usable = check.pair if check.possible(pick(group)) else None
    return Bootstrap(int(rows.sum()), times, seed, group=pick(group), strata=pick(strata), usable=usable)
