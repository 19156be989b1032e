"""What many protocols need: a bootstrap and its cases, the choice on all samples, and folds and what they split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import warn
from cvstats.cube.arrays import coverage, problem_on
from cvstats.intervals import Evidence
from cvstats.judge import Decision, Outcome, Rules, Verdict, decide
from cvstats.kernels import Problem
from cvstats.metrics import Metric, never_chooses, score
from cvstats.resample import Draws, make_draws
from cvstats.select import Choice, Mixture, Select, choose, needs_std_error, select_best

if TYPE_CHECKING:
    from .subgroups import Subgroup

SE_DRAWS = 1000  # draws behind the standard errors that select_one_se needs outside a bootstrap
USUAL = 0.8  # share of samples that models see where folds are unknown: that of five
CHANCE = 1e-3  # how likely a coordinate may be never split by luck and still not look like a group


@dataclass(frozen=True)
class Run:
    """One bootstrap on a cube without batch dims, and what the interval of each metric needs of it."""

    out: Outcome
    choice: Choice
    final: Decision
    cases: list[Case]  # by metric and, with a subgroup, by level: the level, then all others
    draws: Draws
    subgroup: Subgroup | None = None


@dataclass(frozen=True)
class Case:
    """How one metric judges, draw by draw and in the end."""

    evidence: Evidence
    verdict: Verdict
    pooled: float  # the naive value when samples are pooled, which optimism is measured from


def warn_once(function: str, notes: list[str]) -> None:
    """Issue one warning with all that must be known, each note once."""
    if notes:
        warn(f"{function}: {'; '.join(dict.fromkeys(note.rstrip('.') for note in notes))}.")


def decided_on(final: Decision) -> dict[str, Any]:
    """Return the variables that say what was decided beside a configuration's name."""
    share = {} if final.share is None else {"share": ("configuration", final.share[0])}
    learned = {} if final.fitted is None else final.fitted.parameters
    return {**share, **{name: float(value[0]) for name, value in learned.items()}}


def final_choice(
    cube: xr.DataArray,
    metric: Metric,
    *,
    average: str = "pooled",
    select: Select | Mixture = select_best,
    scores: xr.DataArray | np.ndarray | None = None,
) -> Choice:
    """Return the winner on all data of a cube without batch dims; ties go to the first configuration."""
    if metric.target is not None:
        raise never_chooses(metric)
    values, std_error = score(cube, metric, average=average) if scores is None else scores, None
    if needs_std_error(select):
        draws = make_draws(cube, metric, SE_DRAWS, 0, None)
        std_error = np.sqrt(decide(metric, problem_on(cube, metric), draws, Rules(ties="first")).score_variance)
    return choose(coverage(cube), values, metric.direction, select, std_error)


def chosen_by(out: Outcome, by: Metric, rules: Rules, scores: Any = None) -> tuple[Choice, Decision]:
    """Return the winner on all data, by what draws know of it, and the decision that it makes or that was mixed."""
    own = out.score if scores is None else scores
    choice = choose(out.problem, own, by.direction, rules.select, np.sqrt(out.score_variance))
    return choice, Decision(np.array([choice.index]), None if out.share is None else out.share[None])


def claimed(metric: Metric, estimate: float, choice: Choice) -> dict[str, Any]:
    """Return an estimate beside what the winner on all data claims."""
    optimism = metric.sign * (choice.value - estimate)
    return {"estimate": estimate, "naive": choice.value, "optimism": optimism, "selected": choice.label}


def counted(scores: xr.DataArray, choice: Choice) -> dict[str, int]:
    """Return how many folds the choice was made on, where some may have been skipped."""
    if "n_folds" not in scores.coords:
        return {}
    return {"n_folds": int(scores["n_folds"][choice.index]) if choice.index >= 0 else 0}


def said(undefined: str) -> str | None:
    """Return what provenance says of folds in which a metric is undefined: nothing unless they were skipped."""
    return None if undefined == "nan" else undefined


def fold_names(fold: xr.DataArray) -> np.ndarray:
    """Return the names of the folds in order, without what marks a sample that is in none."""
    names = np.unique(fold.values)
    return np.asarray(names[names != ("" if names.dtype.kind in "UOT" else -1)])


def fold_columns(cube: xr.DataArray) -> list[np.ndarray]:
    """Return the folds of each repeat, -1 where a sample is in none."""
    if "fold" not in cube.coords:
        return []
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    nowhere = -1 if table.dtype.kind in "iu" else ""
    return [np.where(column == nowhere, -1, pd.factorize(column)[0]) for column in table.T]


def share_seen(folds: list[np.ndarray]) -> float:
    """Return the share of samples that models were trained on, by the folds of each repeat; that of five if unknown."""
    sizes = [np.bincount(fold[fold >= 0], minlength=1) for fold in folds]
    shares = [1 - (many @ many) / max(many.sum() * len(fold), 1) for many, fold in zip(sizes, folds, strict=True)]
    return float(np.mean(shares)) if 0 < np.sum(shares) < len(shares) else USUAL


def within_folds(cube: xr.DataArray, data: Problem, index: int) -> float:
    """Return the AUC of a configuration among pairs of samples that the same model predicted, or NaN."""
    known = "fold" in cube.coords and set(cube["fold"].dims) <= {"sample", "repeat"}
    if index < 0 or not known or data.model is not None or data.weight is not None or data.p.ndim > 3:
        return np.nan
    column, folds = np.asarray(data.columns([index]).p)[:, 0], fold_columns(cube)
    right = pairs = 0.0
    for repeat in range(column.shape[1]):
        fold = folds[repeat % len(folds)]
        for one in np.unique(fold[fold >= 0]):
            rows = (fold == one) & np.isfinite(column[:, repeat])
            up, own = data.y[rows] == 1, column[rows, repeat]
            high, low = own[up], np.sort(own[~up])
            right += sum(float(np.searchsorted(low, high, side).sum()) for side in ("left", "right")) / 2  # ties: half
            pairs += len(high) * len(low)
    return right / pairs if pairs else np.nan


def split_across(values: np.ndarray, fold: np.ndarray) -> list[Any]:
    """Return the values that are in more than one fold."""
    pairs = pd.DataFrame({"value": values, "fold": fold})[fold >= 0].drop_duplicates()
    return pairs.loc[pairs["value"].duplicated(), "value"].unique().tolist()


def like_groups(cube: xr.DataArray, names: set[Any], folds: list[np.ndarray]) -> dict[str, tuple[int, int]]:
    """Return coordinates whose values repeat and are never split across folds, more often than luck would have it."""
    found = {}
    for name in (name for name in cube.coords if name in names):
        values = cube[name].values
        known = pd.notna(values) & (values.astype(str) != "")
        distinct, size = len(pd.unique(values[known])), int(known.sum())
        luck = sum((size - distinct) * np.log(max(len(np.unique(column[column >= 0])), 1)) for column in folds)
        if luck > -np.log(CHANCE) and not any(split_across(values[known], column[known]) for column in folds):
            found[str(name)] = distinct, size
    return found
