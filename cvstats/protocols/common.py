"""What every protocol reports beside its estimate: the naive value, the optimism and the final choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count
from cvstats._results import names_of
from cvstats.cube.blocks import coverage, problem_on
from cvstats.judge import Rules, decide
from cvstats.kernels import Problem
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, score
from cvstats.resample import codes_of, label_check, make_draws
from cvstats.select import Mixture, Select, needs_std_error, select_best

SE_DRAWS = 1000  # draws behind the standard errors that select_one_se needs outside a bootstrap


@dataclass(frozen=True)
class Choice:
    """The configuration that all data choose, and the scores that chose it."""

    label: Any  # the empty choice when no score is defined
    index: int  # among all configurations of the cube; -1 when no score is defined
    value: float
    scores: np.ndarray  # (configuration,), NaN where a configuration may not be selected
    eligible: np.ndarray


def final_choice(
    cube: xr.DataArray,
    metric: Metric,
    *,
    average: str = "pooled",
    select: Select | Mixture = select_best,
    scores: xr.DataArray | np.ndarray | None = None,
    std_error: np.ndarray | None = None,
    known: Problem | None = None,
) -> Choice:
    """Return the winner on all data of a cube without batch dims; ties go to the first configuration.

    What is `known` of missing predictions need not be found again, and likewise the scores. A mixture has no name.
    """
    known = known or coverage(cube)
    values = np.asarray(score(cube, metric, average=average) if scores is None else scores, float)
    values = np.where(known.eligible, values, np.nan)
    if isinstance(select, Mixture):
        return Choice(names_of(known.names, -1)[()], -1, np.nan, values, known.eligible)
    if std_error is None and needs_std_error(select):
        draws = make_draws(cube, metric, SE_DRAWS, 0, None)
        std_error = np.sqrt(decide(metric, problem_on(cube, metric), draws, Rules(ties="first")).score_variance)
    index = int(select(values, direction=metric.direction, std_error=std_error, complexity=known.complexity))
    value = float(values[index])
    index = -1 if np.isnan(value) else index  # nothing is chosen by an undefined score
    return Choice(names_of(known.names, index)[()], index, value, values, known.eligible)


def optimism(metric: Metric, naive: Any, estimate: Any) -> Any:
    """Return how much better `naive` looks than `estimate`: positive = optimistic, for either direction."""
    return metric.sign * (naive - estimate)


def fold_names(fold: xr.DataArray) -> np.ndarray:
    """Return the names of the folds in order, without what marks a sample that is in none."""
    names = np.unique(fold.values)
    return np.asarray(names[names != ("" if names.dtype.kind in "UO" else -1)])


def folds_of(cube: xr.DataArray, protocol: str) -> xr.DataArray:
    """Return the fold coordinate, or say why the protocol needs it."""
    if "fold" not in cube.coords:
        raise InputError(f"{protocol} needs the coordinate 'fold'; give as_cube(..., folds=...).")
    return cube["fold"]


def check_times(times: int, level: float, interval: str, draws: object) -> None:
    """Raise when there are too few draws for the quantiles that the interval needs."""
    check_count(times, "times")
    least = int(np.ceil(round(2 / (1 - level), 6)))
    if draws is None and interval == "percentile" and times < least:
        raise InputError(
            f"`times`={times} is too small for a percentile interval at level {level:g}: at least {least} draws are "
            "needed, 1000 or more are advisable."
        )


def design_sizes(cube: xr.DataArray, metric: Metric, rows: np.ndarray) -> tuple[int, int]:
    """Return the number of independent units and of samples of the rarest class among the predicted samples `rows`."""
    group = codes_of(cube, None, "groups")
    n = int(rows.sum()) if group is None else len(np.unique(group[rows]))
    if metric.requires not in CLASS_NEEDS:
        return n, n
    check = label_check(cube, metric)
    return n, min(int((check.y[rows] == code).sum()) for code in check.codes())
