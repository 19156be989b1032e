"""What every protocol reports beside its estimate: the final choice, the optimism, and what is doubtful."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_count, show
from cvstats._results import names_of
from cvstats.cube.arrays import coverage, problem_on
from cvstats.judge import Rules, decide
from cvstats.kernels import Problem
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, may_choose, score
from cvstats.resample import codes_of, label_check, make_draws
from cvstats.select import Mixture, Select, needs_std_error, select_best

SE_DRAWS = 1000  # draws behind the standard errors that select_one_se needs outside a bootstrap
FEW_GROUPS = 10
CHANCE = 1e-3  # how likely a coordinate may be never split by luck and still not look like a group
HALF = {"auc": "AUC", "auc_ovr": "AUC", "auc_ovr_weighted": "AUC", "concordance": "concordance"}  # .5 is guessing
OURS = {"sample", "label", "fold", "group", "weight", "event"}


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
    may_choose(metric)
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


def counted(scores: xr.DataArray, choice: Choice) -> dict[str, int]:
    """Return how many folds the choice was made on, where some may have been skipped."""
    if "n_folds" not in scores.coords:
        return {}
    return {"n_folds": int(scores["n_folds"][choice.index]) if choice.index >= 0 else 0}


def said(undefined: str) -> str | None:
    """Return what provenance says of folds in which a metric is undefined: nothing unless they were skipped."""
    return None if undefined == "nan" else undefined


def optimism(metric: Metric, naive: Any, estimate: Any) -> Any:
    """Return how much better `naive` looks than `estimate`: positive = optimistic, whatever is better."""
    if metric.target is not None:
        return abs(estimate - metric.target) - abs(naive - metric.target)
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


@dataclass
class Doubts:
    """What makes a number doubtful though it is computed right, said in the same words by all that give it.

    Collects doubts over the cells of a cube with batch dims, so that each is said once.
    """

    cells: int = 0
    groups: dict[Any, None] = field(default_factory=dict)
    split: dict[Any, None] = field(default_factory=dict)
    fewest: int = FEW_GROUPS
    lost: dict[Any, int] = field(default_factory=dict)  # configuration -> cells in which it could not be selected
    total: int = 0
    best: list[float] = field(default_factory=list)  # of the cells whose scores are all below one half
    score: str = ""
    alike: dict[str, tuple[int, int]] = field(default_factory=dict)  # coordinate -> values, samples

    def add(
        self, cube: xr.DataArray, found: Problem, metric: Metric | None = None, scores: np.ndarray | None = None
    ) -> None:
        """Look at one cell: its groups, its gaps and, if given, its scores."""
        self.cells += 1
        others = {name for name, coord in cube.coords.variables.items() if coord.dims == ("sample",)} - OURS
        folds = _fold_columns(cube) if others or "group" in cube.coords else []
        if "group" in cube.coords:
            group = cube["group"].values
            names = pd.unique(group[found.rows])
            self.fewest = min(self.fewest, len(names))
            self.groups.update(dict.fromkeys(names.tolist()))
            self.split.update(dict.fromkeys(name for column in folds for name in _split(group, column)))
        elif folds:
            self.alike |= _like_groups(cube, others, folds)
        self.total = len(found.eligible)
        for name in cube["configuration"].values[~found.eligible].tolist() if not found.eligible.all() else ():
            self.lost[name] = self.lost.get(name, 0) + 1
        if metric is not None and scores is not None and metric.name in HALF:
            known = scores[found.eligible & np.isfinite(scores)]
            if len(known) and known.max() < 0.5:
                self.best.append(float(known.max()))
                self.score = HALF[metric.name]

    def notes(self) -> list[str]:
        """Return what is to be said."""
        said = []
        if self.split:
            said.append(
                f"{len(self.split)} of {len(self.groups)} groups are split across folds ({show(self.split)}), so "
                "models were judged on groups they were trained on: scores are too good"
            )
        if self.fewest < FEW_GROUPS:
            said.append(
                f"only {self.fewest} independent groups: with fewer than {FEW_GROUPS} the interval cannot be trusted"
            )
        for name, (values, samples) in self.alike.items():
            said.append(
                f"coordinate {name!r} looks like a group ({values} values for {samples} samples, none split across "
                "folds) but is not declared, so samples count as independent: declare it as the group, or drop it"
            )
        if self.lost:
            some = " in some cell" if self.cells > 1 else ""
            said.append(
                f"{len(self.lost)} of {self.total} configurations lacked predictions that others have and could not be "
                f"selected{some} ({show(self.lost)})"
            )
        if self.best:
            cells = f" in {len(self.best)} of {self.cells} cells" if self.cells > 1 else ""
            said.append(
                f"every {self.score} is below .5{cells} (the best is {max(self.best):.3f}): labels or scores are "
                "reversed, or nothing was learned"
            )
        return said


def _fold_columns(cube: xr.DataArray) -> list[np.ndarray]:
    """Return the folds of each repeat, -1 where a sample is in none."""
    if "fold" not in cube.coords:
        return []
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    nowhere = -1 if table.dtype.kind in "iu" else ""
    return [np.where(column == nowhere, -1, pd.factorize(column)[0]) for column in table.T]


def _split(values: np.ndarray, fold: np.ndarray) -> list[Any]:
    """Return the values that are in more than one fold."""
    pairs = pd.DataFrame({"value": values, "fold": fold})[fold >= 0].drop_duplicates()
    return pairs.loc[pairs["value"].duplicated(), "value"].unique().tolist()


def _like_groups(cube: xr.DataArray, names: set[Any], folds: list[np.ndarray]) -> dict[str, tuple[int, int]]:
    """Return coordinates whose values repeat and are never split across folds, more often than luck would have it."""
    found = {}
    for name in (name for name in cube.coords if name in names):
        values = cube[name].values
        known = pd.notna(values) & (values.astype(str) != "")
        distinct, size = len(pd.unique(values[known])), int(known.sum())
        luck = sum((size - distinct) * np.log(max(len(np.unique(column[column >= 0])), 1)) for column in folds)
        if luck > -np.log(CHANCE) and not any(_split(values[known], column[known]) for column in folds):
            found[str(name)] = distinct, size
    return found
