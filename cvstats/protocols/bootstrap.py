"""Bootstrap bias corrected cross-validation (BBC): the paper's method, to the letter."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_level, entropy, warn
from cvstats._results import call_text, names_of, qualifiers, result
from cvstats.cube.arrays import check_form, map_batches, problem_on
from cvstats.intervals import Calibration, Evidence, Method, get_method, interval_limits
from cvstats.judge import Outcome, Rules, decide
from cvstats.kernels import Problem
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, bound_metric, get_metric
from cvstats.resample import Draws, codes_of, given_draws, label_check, make_draws
from cvstats.select import Select, select_best

from .common import Choice, Doubts, final_choice, optimism
from .registry import protocol


@dataclass(frozen=True)
class Request:
    """A bootstrap of "select, then judge" as it was asked for, and what must be said of it in the end."""

    metric: Metric
    draws: xr.DataArray | Draws | None
    times: int
    strata: Any
    level: float
    interval: Method
    rules: Rules
    keep_draws: bool
    notes: list[str] = field(default_factory=list)
    doubts: Doubts = field(default_factory=Doubts)

    def __post_init__(self) -> None:
        check_times(self.times, self.level, self.interval.name, self.draws)

    def labels(self, method: str) -> dict[str, Any]:
        """Return the qualifiers of the result."""
        return qualifiers(method, self.metric.name, self.level, self.interval.name)


@dataclass(frozen=True)
class Run:
    """One bootstrap on a cube without batch dims, and what the interval needs of it."""

    out: Outcome
    choice: Choice
    evidence: Evidence
    draws: Draws


@protocol(
    "bbc",
    "BBC-CV",
    "each bootstrap draw",
    "samples left out of the draw",
    "The published method, with its percentile interval.",
)
def bbc(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
    interval: Any = "percentile",
    ties: str = "first",
    select: Select = select_best,
    strata: Any = None,
    keep_draws: bool = False,
    batch: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""Return the bootstrap bias corrected estimate of the winner's performance (BBC-CV).

    In draw b the configuration that is best in the bag, :math:`j_b`, is judged on the samples left out,

    .. math:: L_{BBC} = \frac1B \sum_b l\bigl(y_{\setminus b}, \Pi_{\setminus b}(\cdot, j_b)\bigr).

    The estimand is the performance of the winner on all data, refitted on all N samples. Samples are drawn, so all
    repeats and configurations of a sample travel together; missing predictions (incomplete cross-validation) and
    hold-out need nothing special. With one configuration nothing is selected and the estimate is its own score.

    Ties inside a draw go to the first configuration, as in the paper. With few samples and many good configurations
    that is a systematic choice, not a neutral one: at N = 20 with 200 configurations of accuracy about .9 the
    interval then covers .80 instead of .95, with random ties .99. Prefer `winner`, which breaks ties at random and
    has an interval that holds its level.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric, of any family.
    draws : DataArray, optional
        Weights from `bootstrap` (or your own); nothing random is left then. Unusable draws are skipped and counted.
    times : int
        Number of draws.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    level : float
        Level of the two-sided interval and of the one-sided bounds.
    interval : str or interval method
        How the limits are made, by name or configured: see `percentile`.
    ties : {"first", "random"}
        Which of several equally good configurations wins a draw.
    select : callable
        Selection strategy, run again in every draw.
    strata : str, optional
        None, ``"label"``, a coordinate's name, or ``"auto"`` (within class for metrics that need every class).
        Classes that were sampled separately (dimension ``partner``) are always drawn within class.
    keep_draws : bool
        Also return ``draw_estimate(draw)`` and ``draw_selected(draw)``.
    batch : int, optional
        Draws at a time (bounds memory, never changes a result).
    progress : bool
        Show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``estimate``, ``std_error`` (standard deviation of the draws), ``conf_low``, ``conf_high``, ``bound_low``,
        ``bound_high``, ``naive``, ``optimism``, ``selected`` (empty or NaN when no score is defined), ``win_rate``,
        ``n_draws``, ``n_redrawn``; with a calibrated interval ``calibration``, from which `confint` makes it again.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, Algorithm 5.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(100, 50, rng=1)
    >>> out = cs.bbc(cube, "accuracy", rng=1)
    >>> bool(out.estimate < out.naive)
    True
    """
    check_form(cube)
    notes: list[str] = []
    found = bound_metric(metric, cube, notes)
    rules = Rules(select, ties, entropy(rng), batch, progress)
    asked = Request(found, draws, times, strata, check_level(level), get_method(interval), rules, keep_draws, notes)
    labels = asked.labels("bbc")

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        run = bootstrap_run(part, asked)
        return assemble(run, part, asked).assign_coords(labels)

    out = map_batches(one, cube)
    warn_once("bbc", [*asked.doubts.notes(), *notes])
    call = call_text("bbc", metric=found.name, draws=draws, times=times, rng=rng, level=level, ties=ties, strata=strata)
    return result(out, **labels, call=call, cube=cube)


def warn_once(function: str, notes: list[str]) -> None:
    """Issue one warning with all that must be known, each note once."""
    if notes:
        warn(f"{function}: {'; '.join(dict.fromkeys(note.rstrip('.') for note in notes))}.")


def check_times(times: int, level: float, interval: str, draws: object) -> None:
    """Raise when there are too few draws for the quantiles that the interval needs."""
    check_count(times, "times")
    least = int(np.ceil(round(2 / (1 - level), 6)))
    if draws is None and interval == "percentile" and times < least:
        raise InputError(
            f"`times`={times} is too small for a percentile interval at level {level:g}: at least {least} draws are "
            "needed, 1000 or more are advisable."
        )


def bootstrap_run(cube: xr.DataArray, asked: Request, scores: xr.DataArray | None = None) -> Run:
    """Choose in the bag, judge out of it, and gather what intervals need; `scores` choose in the end, if given."""
    metric, rules = asked.metric, asked.rules
    if asked.draws is None:
        draws: Draws = make_draws(cube, metric, asked.times, rules.seed, asked.strata)
    else:
        draws = given_draws(asked.draws, cube)
    out = decide(metric, problem_on(cube, metric), draws, rules)
    choice = final_choice(
        cube,
        metric,
        select=rules.select,
        scores=out.score if scores is None else scores,
        std_error=np.sqrt(out.score_variance),
        known=out.problem,
    )
    values = out.value[out.usable]
    if int(choice.eligible.sum()) == 1 or choice.index < 0:
        estimate = choice.value
    else:
        with np.errstate(over="ignore"):
            estimate = float(values.mean()) if len(values) else np.nan
    n, smallest = design_sizes(cube, metric, out.problem.rows)
    evidence = Evidence(
        metric=metric,
        estimate=estimate,
        bbc=estimate,
        naive=choice.value,
        scores=choice.scores[choice.eligible],
        variance=out.score_variance[choice.eligible],
        chosen=choice.scores[out.decision.place[out.usable]],
        values=values,
        n=n,
        smallest_class=smallest,
        cube=cube if cube.chunks is None else None,
        seed=rules.seed,
        times=len(out.value),
        grouped="group" in cube.coords,
        weighted="weight" in cube.coords,
        wins=out.win_rate[choice.eligible],
        unseen=_unseen(out.problem, metric, choice.index),
    )
    return Run(out, choice, evidence, draws)


def _unseen(data: Problem, metric: Metric, index: int) -> float:
    """Return what a misclassified sample would cost when configuration `index` misclassifies none; else 0."""
    if index < 0 or not metric.error_cost(2):
        return 0.0
    mine = data.columns(slice(index, index + 1)).samples(data.rows)
    losses = get_metric("log_loss").ingredients(mine.y[:, None, None], np.asarray(mine.p), mine.n_classes)[0]
    wrong = (losses >= np.log(2)).sum() / losses.shape[-1]  # the truth got a probability of one half at most
    return metric.error_cost(mine.n_classes) if wrong < 0.5 else 0.0


def design_sizes(cube: xr.DataArray, metric: Metric, rows: np.ndarray) -> tuple[int, int]:
    """Return the number of independent units and of samples of the rarest class among the predicted samples `rows`."""
    group = codes_of(cube, None, "groups")
    n = int(rows.sum()) if group is None else len(np.unique(group[rows]))
    if metric.requires not in CLASS_NEEDS:
        return n, n
    check = label_check(cube, metric)
    return n, min(int((check.y[rows] == code).sum()) for code in check.codes())


def assemble(run: Run, cube: xr.DataArray, asked: Request) -> xr.Dataset:
    """Return the variables that every bootstrap estimate reports, and keep in mind what must be said of it."""
    out, choice, estimate = run.out, run.choice, run.evidence.estimate
    limits, notes = interval_limits(asked.interval, run.evidence, asked.level)
    asked.doubts.add(cube, out.problem, asked.metric, choice.scores)
    asked.notes.extend([*out.notes(), *notes])
    variables: dict[str, Any] = {
        "estimate": estimate,
        **{name: limits[name] for name in ("std_error", "conf_low", "conf_high", "bound_low", "bound_high")},
        "naive": choice.value,
        "optimism": optimism(asked.metric, choice.value, estimate),
        "selected": choice.label,
        "win_rate": ("configuration", out.win_rate),
        "n_draws": out.n_draws,
        "n_redrawn": out.n_redrawn,
    }
    coords: dict[str, Any] = {"configuration": cube.coords.variables["configuration"]}
    if "calibration" in limits:
        variables["calibration"] = ("calibration_part", limits["calibration"])
        coords["calibration_part"] = [part.name for part in fields(Calibration)]
    if asked.keep_draws:
        variables["draw_estimate"] = ("draw", out.value)
        variables["draw_selected"] = ("draw", names_of(out.problem.names, out.decision.place))
        coords["draw"] = np.arange(len(out.value))
    return xr.Dataset(variables, coords=coords)
