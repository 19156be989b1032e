"""Bootstrap bias corrected cross-validation (BBC): the paper's method, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import Rng, check_level, entropy, listened, warn
from cvstats._results import call_text, names_of, qualifiers, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import check_form, map_batches, problem_on
from cvstats.intervals import NAMES, Calibration, Evidence, Method, get_method, interval_limits
from cvstats.judge import Decision, Outcome, Rules, Setting, Verdict, decide, unseen_cost, verdicts
from cvstats.judge.asked import adjustment_of, metrics_of, problem_of, stand_in
from cvstats.metrics import Metric, score
from cvstats.resample import Draws, given_draws, make_draws
from cvstats.select import Mixture, Select, select_best

from .common import Choice, Doubts, check_times, design_sizes, final_choice, optimism
from .registry import protocol
from .subgroups import Subgroup, by_level

ESTIMATE = ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high", "naive", "optimism")
EVENTS = 10  # samples of a class below which a metric that has a target says nothing
UNDEFINED = 0.05  # share of draws in which a metric may be undefined though the labels allow it


@dataclass(frozen=True)
class Request:
    """A bootstrap of "decide, then judge" as it was asked for, and what must be said of it in the end."""

    metrics: tuple[Metric, ...]  # that judge
    by: Metric  # that chooses
    draws: xr.DataArray | Draws | None
    times: int
    strata: Any
    level: float
    interval: Method
    rules: Rules
    keep_draws: bool
    notes: list[str]
    subgroup: Any = None  # name of the coordinate in whose levels is judged
    listed: bool = False  # whether results have the dim `metric`
    anchored: bool = False  # whether estimates are anchored, with the plain one beside them
    doubts: Doubts = field(default_factory=Doubts)
    simple: bool = field(init=False)  # whether one configuration is picked by its pooled score and judged by it alone

    def __post_init__(self) -> None:
        check_times(self.times, self.level, self.interval.name, self.draws)
        simple = self.rules.plain and self.metrics == (self.by,) and self.subgroup is None
        object.__setattr__(self, "simple", simple)


@dataclass(frozen=True)
class Run:
    """One bootstrap on a cube without batch dims, and what the interval of each metric needs of it."""

    out: Outcome
    choice: Choice
    final: Decision
    cases: list[Case]  # by metric and, with a subgroup, by level: the level, then all others
    draws: Draws
    subgroup: Subgroup | None = None

    @property
    def fixed(self) -> bool:
        """Whether there was nothing to decide."""
        return self.cases[0].evidence.one_configuration

    @property
    def decided(self) -> bool:
        """Whether there was anything to decide, and something was."""
        return not self.fixed and not self.final.empty[0]


@dataclass(frozen=True)
class Case:
    """How one metric judges, draw by draw and in the end."""

    evidence: Evidence
    value: np.ndarray  # (draw,) NaN where undefined
    pooled: float  # the naive value when samples are pooled, which optimism is measured from
    anchor: np.ndarray = field(default_factory=lambda: np.empty(0))  # (draw,) the decision on all samples, on the same
    everywhere: np.ndarray = field(default_factory=lambda: np.empty(0))  # (draw,) each draw's decision on all samples
    kept: np.ndarray = field(default_factory=lambda: np.empty(0))  # (draw,) the decision on all samples, in the draw

    def anchored(self, gap: np.ndarray) -> float:
        """Return the naive value plus the mean of `gap`: draws' decisions against that on all samples."""
        gap, metric = gap[~np.isnan(gap)], self.evidence.metric
        undefined = np.isnan(self.evidence.estimate) or not len(gap)
        value = np.nan if undefined else self.evidence.naive + middle(metric, gap)
        return float(np.clip(value, *self.evidence.metric.range))

    def estimated(self, estimate: float) -> Case:
        """Return the case with another estimate than plain BBC."""
        return replace(self, evidence=replace(self.evidence, estimate=estimate))


@protocol(
    "bbc",
    "BBC-CV",
    "each bootstrap draw",
    "samples left out of the draw",
    "The published method, with its percentile interval.",
)
def bbc(
    cube: xr.DataArray,
    metric: str | Metric | Sequence[str | Metric],
    *,
    by: str | Metric | None = None,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    subgroup: str | None = None,
    average: str = "pooled",
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
    interval: Any = "percentile",
    ties: str = "first",
    select: Select | Mixture = select_best,
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
    metric : str, Metric, or list of these
        Name, such as ``"auc"``, or metric, of any family. Of a list all judge one and the same decision, and results
        have the dim ``metric``.
    by : str or Metric, optional
        The metric that chooses; by default the metric, or the first of a list.
    adjust : adjustment or list of these, optional
        What is done with predictions before they are judged, learned in every draw anew: `cut`, `recalibrate`,
        `shift_prior`, `as_adjustment`. Where it matters to `by`, every configuration is adjusted before it is scored.
    subgroup : str, optional
        Name of a coordinate over samples: the decision is made on everybody and judged within each of its levels.
        Results have that dim, and also ``n_samples``, ``n_events``, ``difference`` (from all others) with
        ``difference_low`` and ``difference_high``, ``p_value`` and ``p_adjusted`` (Holm). Levels with fewer than 5
        samples of a class are NaN. Where the subgroup is the group, samples are drawn within its levels, and
        ``spread_between`` is the standard deviation between levels beyond their standard errors.
    average : {"pooled", "fold"}
        Whether choosing (and ``naive``) scores all samples at once, or averages over folds as GridSearchCV and caret
        do. Within a draw folds that lack a class are skipped. Judging is always pooled, and ``optimism`` is then
        measured from the pooled naive value.
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
    select : callable or mixture
        Selection strategy, run again in every draw; or `ensemble`, `top_mean`, `as_mixture`, which average several
        configurations.
    strata : str, optional
        None, ``"label"``, a coordinate's name, or ``"auto"`` (within class if every metric that judges needs classes
        and ignores their ratio). Classes that were sampled separately (dimension ``partner``) are always drawn within
        class.
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
        ``n_draws``, ``n_redrawn``; with a calibrated interval ``calibration``, from which `confint` makes it again. A
        mixture has ``share(configuration)``, an empty ``selected``, and mean shares as ``win_rate``; adjustments have
        ``threshold``, ``intercept``, ``slope``.

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
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> out = cs.bbc(cube, ["auc", "sensitivity"], by="auc", adjust=cs.cut("youden"), times=200, rng=1)
    >>> out.estimate.dims, bool(0 < out.threshold < 1)
    (('metric',), True)
    """
    check_form(cube)
    notes: list[str] = []
    metrics, chooser = metrics_of(metric, by, cube, notes)
    learned = None if adjust is None else adjustment_of(adjust, cube, metrics)
    rules = Rules(select, ties, entropy(rng), batch, progress, learned, average)
    asked = Request(
        metrics, chooser, draws, times, strata, check_level(level), get_method(interval), rules, keep_draws, notes,
        subgroup=subgroup, listed=isinstance(metric, (list, tuple)),
    )  # fmt: skip

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        return assemble(bootstrap_run(part, asked), part, asked, "bbc")

    return finished(
        "bbc",
        asked,
        map_batches(one, cube),
        cube,
        draws=draws,
        times=times,
        rng=rng,
        level=level,
        ties=ties,
        strata=strata,
    )


def finished(method: str, asked: Request, out: xr.Dataset, cube: xr.DataArray, **arguments: Any) -> xr.Dataset:
    """Return the result with its labels, after one warning with all that must be known."""
    function, rules = ("winner" if asked.anchored else method), asked.rules
    if notes := [*asked.doubts.notes(), *asked.notes]:
        warn_once(function, notes)
    names = tuple(metric.name for metric in asked.metrics)
    decision = {
        "by": asked.by.name if asked.by is not asked.metrics[0] else None,
        "adjust": rules.adjust.name if rules.adjust else None,
        "subgroup": asked.subgroup,
        "average": "fold" if rules.average == "fold" else None,
        "select": rules.select.name if isinstance(rules.select, Mixture) else None,
    }
    call = call_text(function, metric=names if asked.listed else names[0], **decision, **arguments)
    if asked.listed or decision["by"]:
        out = out.assign_coords(by=asked.by.name)
    level, interval = asked.level, asked.interval.name
    return result(out, method=method, metric=names[0], conf_level=level, interval=interval, call=call, cube=cube)


def warn_once(function: str, notes: list[str]) -> None:
    """Issue one warning with all that must be known, each note once."""
    if notes:
        warn(f"{function}: {'; '.join(dict.fromkeys(note.rstrip('.') for note in notes))}.")


def bootstrap_run(cube: xr.DataArray, asked: Request, scores: xr.DataArray | None = None) -> Run:
    """Decide in the bag, judge out of it, and gather what intervals need; `scores` choose in the end, if given."""
    by, rules = asked.by, asked.rules
    subgroup = None if asked.subgroup is None else Subgroup.of(cube, asked.subgroup)
    strata = asked.strata
    if subgroup is not None and subgroup.grouped:
        cube, strata = cube.drop_vars("group", errors="ignore"), subgroup.codes
    if asked.draws is None:
        needs = by if asked.simple else stand_in(by, asked.metrics, rules.adjust)
        draws: Draws = make_draws(cube, needs, asked.times, rules.seed, strata)
    else:
        draws = given_draws(asked.draws, cube)
    data = problem_on(cube, by) if asked.simple else problem_of(cube, by, asked.metrics, rules)
    out = decide(by, data, draws, rules, judging=asked.simple)
    own, error = out.score if scores is None else scores, np.sqrt(out.score_variance)
    choice = final_choice(cube, by, select=rules.select, scores=own, std_error=error, known=out.problem)
    final = Decision(np.array([choice.index]), None if out.share is None else out.share[None])
    if final.empty[0] and rules.average == "fold":  # say in which folds nothing is defined
        listened(asked.notes, lambda: score(cube, by, average="fold"))
    if asked.simple:
        return Run(out, choice, final, [_simple_case(cube, asked, out, choice)], draws)
    parts = None if subgroup is None else subgroup.parts
    judged = verdicts(asked.metrics, Setting(out.problem, draws), out.decision, final, rules, parts)
    out = out.judged([verdict.value for row in judged.each for verdict in row])
    cases = []
    for metric, row in zip(asked.metrics, judged.each, strict=True):
        for number, verdict in enumerate(row):
            rows = out.problem.rows if parts is None else out.problem.rows & parts[number]
            cases.append(_judged_case(cube, asked, out, choice, verdict, metric, rows))
    return Run(out, choice, judged.final, cases, draws, subgroup)


def _simple_case(cube: xr.DataArray, asked: Request, out: Outcome, choice: Choice) -> Case:
    """Return what there is to say of one configuration that was picked and judged by one metric."""
    metric, eligible = asked.by, choice.eligible
    values = out.value[out.usable]
    if int(eligible.sum()) == 1 or choice.index < 0:
        estimate = choice.value
    else:
        with np.errstate(over="ignore"):
            estimate = float(values.mean()) if len(values) else np.nan
    unseen = 0.0
    if choice.index >= 0 and metric.error_cost(2):
        unseen = unseen_cost(
            metric, out.problem.columns(slice(choice.index, choice.index + 1)).samples(out.problem.rows)
        )
    evidence = Evidence(
        **_known(cube, asked, metric, out.problem.rows),
        times=len(out.value),
        estimate=estimate,
        bbc=estimate,
        naive=choice.value,
        scores=choice.scores[eligible],
        variance=out.score_variance[eligible],
        chosen=choice.scores[out.decision.place[out.usable]],
        values=values,
        wins=out.win_rate[eligible],
        unseen=unseen,
    )
    return Case(evidence, out.value, choice.value)


def _judged_case(
    cube: xr.DataArray,
    asked: Request,
    out: Outcome,
    choice: Choice,
    verdict: Verdict,
    metric: Metric,
    rows: np.ndarray,
) -> Case:
    """Return what there is to say of any other decision."""
    usable = ~np.isnan(verdict.value)
    values, kept = verdict.value[usable], verdict.kept[~np.isnan(verdict.kept)]
    naive, pooled, own = verdict.naive, verdict.pooled, {"kept": kept}
    estimate = middle(metric, values) if len(values) and not np.isnan(naive) else np.nan
    scores, variance = choice.scores, out.score_variance
    lost, defined = int((verdict.defined & ~usable).sum()), int(verdict.defined.sum())
    known = _known(cube, asked, metric, rows)
    if metric.target is not None and known["smallest_class"] < EVENTS:
        asked.notes.append(
            f"{metric.name} is NaN: {known['smallest_class']} samples of a class are fewer than {EVENTS}"
        )
        estimate = naive = pooled = np.nan
    elif lost > UNDEFINED * defined:
        asked.notes.append(f"{metric.name} is NaN: it is undefined in {lost} of {defined} draws")
        estimate = np.nan
    elif int(choice.eligible.sum()) == 1 and asked.rules.adjust is None:  # nothing was decided
        estimate = pooled = naive
        scores, variance = np.array([naive]), np.array([kept.var(ddof=1) if len(kept) > 1 else np.nan])
        own = {"wins": np.ones(1)}
    elif asked.rules.plain and metric is asked.by and asked.subgroup is None:  # as if it judged alone
        scores, variance = choice.scores[choice.eligible], out.score_variance[choice.eligible]
        own = {"wins": out.win_rate[choice.eligible]}
    evidence = Evidence(
        **known,
        times=len(out.value),
        estimate=estimate,
        bbc=estimate,
        naive=naive,
        scores=scores,
        variance=variance,
        chosen=verdict.everywhere[usable],
        values=values,
        unseen=verdict.unseen,
        **own,
    )
    return Case(evidence, verdict.value, pooled, verdict.anchor, verdict.everywhere, verdict.kept)


def middle(metric: Metric, values: np.ndarray) -> float:
    """Return the mean over draws, or the median for what has a target: slopes of few samples have no mean."""
    return float(values.mean() if metric.target is None else np.median(values))


def _known(cube: xr.DataArray, asked: Request, metric: Metric, rows: np.ndarray) -> dict[str, Any]:
    """Return what an interval may know of the design."""
    n, smallest = design_sizes(cube, metric, rows)
    return {
        "metric": metric,
        "n": n,
        "smallest_class": smallest,
        "cube": None if cube.chunks is not None else cube,
        "seed": asked.rules.seed,
        "grouped": "group" in cube.coords,
        "weighted": "weight" in cube.coords,
    }


def assemble(run: Run, cube: xr.DataArray, asked: Request, method: str) -> xr.Dataset:
    """Return the variables that every bootstrap estimate reports, and keep in mind what must be said of it."""
    out, choice = run.out, run.choice
    units = {"group", run.subgroup.name} if run.subgroup is not None and run.subgroup.grouped else set()
    known = cube.drop_vars(units, errors="ignore")  # samples are then the units, not groups
    asked.doubts.add(known, out.problem, asked.by, choice.scores)
    total, lost = len(out.usable), int((~out.usable).sum())
    if lost:
        asked.notes.append(f"{lost} of {total} draws could not be used and were skipped")
    elif out.n_redrawn:
        asked.notes.append(f"{out.n_redrawn} of {total} draws were unusable and drawn again")
    made = [_cell(case, asked) for case in (run.cases if run.subgroup is None else run.cases[::2])]
    dims: tuple[str, ...] = ("metric",) if asked.listed else ()
    cells = np.array([cell for cell, _ in made] if asked.listed else made[0][0], object)
    if run.subgroup is not None:
        dims, cells = (*dims, run.subgroup.name), by_level(run, asked, [cell for cell, _ in made])
    intervals = [name for _, name in made[:: len(made) // len(asked.metrics)]]
    judged: dict[str, Any] = {}
    for name in next(iter(cells.flat)):
        values = np.array([cell[name] for cell in cells.flat])
        further = {"calibration": ("calibration_part",)}.get(name, ("draw",)) if values.ndim > 1 else ()
        judged[name] = (dims + further, values.reshape(cells.shape + values.shape[1:]))
    variables: dict[str, Any] = {name: judged.pop(name) for name in ESTIMATE}
    variables |= {"selected": choice.label, "win_rate": ("configuration", out.win_rate)}
    if run.final.share is not None or run.final.fitted is not None:
        variables |= decided_on(run.final)
    variables |= {"n_draws": judged.pop("n_draws"), "n_redrawn": out.n_redrawn, **judged}
    coords: dict[str, Any] = {"configuration": cube.coords.variables["configuration"]}
    coords |= qualifiers(method, asked.metrics[0].name, asked.level, asked.interval.name)
    if "calibration" in variables:
        coords["calibration_part"] = [part.name for part in fields(Calibration)]
    if asked.keep_draws:
        variables["draw_selected"] = ("draw", names_of(out.problem.names, out.decision.place))
        coords["draw"] = np.arange(len(out.value))
    if asked.listed:
        coords |= {"metric": [metric.name for metric in asked.metrics], "interval": ("metric", intervals)}
    if run.subgroup is not None:
        coords[run.subgroup.name] = run.subgroup.levels
        variables |= run.subgroup.variables(out.problem, variables)
    return xr.Dataset(variables, coords=coords)


def decided_on(final: Decision) -> dict[str, Any]:
    """Return the variables that say what was decided beside a configuration's name."""
    share = {} if final.share is None else {"share": ("configuration", final.share[0])}
    learned = {} if final.fitted is None else final.fitted.parameters
    return {**share, **{name: float(value[0]) for name, value in learned.items()}}


def _cell(case: Case, asked: Request) -> tuple[dict[str, Any], str]:
    """Return the variables of one metric, and the kind of its interval."""
    evidence, method = case.evidence, asked.interval
    reason = method.refuse(evidence) if asked.listed else None
    if reason is None:
        limits, notes = interval_limits(method, evidence, asked.level)
        asked.notes.extend(f"{evidence.metric.name}: {note}" if asked.listed else note for note in notes)
    else:  # one of several metrics: the others have limits
        limits = dict.fromkeys(NAMES, np.nan)
        if hasattr(method, "calibration"):
            limits["calibration"] = np.full(len(fields(Calibration)), np.nan)
        asked.notes.append(f"{evidence.metric.name} has no limits: {reason}")
    variables = {
        "estimate": evidence.estimate,
        "naive": evidence.naive,
        "optimism": optimism(evidence.metric, case.pooled, evidence.estimate),
        "n_draws": int((~np.isnan(case.value)).sum()),
        **limits,
    }
    if asked.keep_draws:
        variables["draw_estimate"] = case.value
    if asked.anchored:
        variables |= {"draw_anchor": case.anchor} if asked.keep_draws else {}
        variables["bbc_plain"] = evidence.bbc
    return variables, "none" if reason else method.name
