"""Bootstrap bias corrected cross-validation (BBC): the paper's method, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import Rng, check_level, entropy, listened, show, warn
from cvstats._results import call_text, names_of, qualifiers, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import check_form, map_batches, problem_on
from cvstats.intervals import Calibration, Evidence, Method, check_times, get_method, interval_limits
from cvstats.judge import Decision, Outcome, Rules, Setting, Verdict, Verdicts, decide, unseen_cost, verdicts
from cvstats.judge.asked import adjustment_of, problem_of, stand_in
from cvstats.kernels import Problem
from cvstats.kernels.placements import placements
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, metrics_of, score
from cvstats.resample import Draws, given_draws, make_draws, unit_count
from cvstats.select import Choice, Mixture, Select, choose, select_best

from .common import fold_columns, like_groups, split_across
from .registry import protocol
from .subgroups import Subgroup, by_level

ESTIMATE = ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high", "naive", "optimism")
EVENTS = 10  # samples of a class below which a metric that has a target says nothing
FEW_GROUPS = 10
HALF = {"auc": "AUC", "auc_ovr": "AUC", "auc_ovr_weighted": "AUC", "concordance": "concordance"}  # .5 is guessing
OURS = {"sample", "label", "fold", "group", "weight", "event"}
UNDEFINED = 0.05  # share of draws in which a metric may be undefined though the labels allow it


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
        folds = fold_columns(cube) if others or "group" in cube.coords else []
        if "group" in cube.coords:
            group = cube["group"].values
            names = pd.unique(group[found.rows])
            self.fewest = min(self.fewest, len(names))
            self.groups.update(dict.fromkeys(names.tolist()))
            self.split.update(dict.fromkeys(name for column in folds for name in split_across(group, column)))
        elif folds:
            self.alike |= like_groups(cube, others, folds)
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
    anchor: np.ndarray  # (draw,) the decision on all samples, on the same
    everywhere: np.ndarray  # (draw,) each draw's decision on all samples
    kept: np.ndarray  # (draw,) the decision on all samples, in the draw

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

    out = map_batches(lambda part, _: assemble(bootstrap_run(part, asked), part, asked, "bbc"), cube)
    given = {"draws": draws, "times": times, "rng": rng, "level": level, "ties": ties, "strata": strata}
    return finished("bbc", asked, out, cube, **given)


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


def bootstrap_run(cube: xr.DataArray, asked: Request, scores: Any = None) -> Run:
    """Decide in the bag, judge out of it, and gather what intervals need; `scores` choose in the end, if given."""
    by, rules = asked.by, asked.rules
    subgroup = None if asked.subgroup is None else Subgroup.of(cube, asked.subgroup)
    strata = asked.strata
    if subgroup is not None and subgroup.grouped:
        cube, strata = cube.drop_vars("group", errors="ignore"), subgroup.codes
    data = problem_on(cube, by) if asked.simple else problem_of(cube, by, asked.metrics, rules)
    if asked.draws is None:
        needs = by if asked.simple else stand_in(by, asked.metrics, rules.adjust)
        draws: Draws = make_draws(cube, needs, asked.times, rules.seed, strata, data.check(needs.requires))
    else:
        draws = given_draws(asked.draws, cube)
    if asked.anchored:  # they are used more than once
        draws.remembered()
    out = decide(by, data, draws, rules, judging=asked.simple)
    scores, error = out.score if scores is None else scores, np.sqrt(out.score_variance)
    choice = choose(out.problem, scores, by.direction, rules.select, error)
    final = Decision(np.array([choice.index]), None if out.share is None else out.share[None])
    if rules.average == "fold" and final.empty[0]:  # say in which folds nothing is defined
        listened(asked.notes, lambda: score(cube, by, average="fold"))
    parts, rows = None if subgroup is None else subgroup.parts, [out.problem.rows]
    if asked.simple:
        nothing, unseen = np.empty(0), 0.0
        if choice.index >= 0 and by.uses == "probability":
            unseen = unseen_cost(by, out.problem.columns([choice.index]).samples(out.problem.rows))
        everywhere, own = choice.scores[out.decision.place], (choice.value, choice.value, unseen)
        verdict = Verdict(out.value, nothing, everywhere, nothing, out.usable, *own)
        judged = Verdicts([[verdict]], {}, final)
    else:
        judged = verdicts(asked.metrics, Setting(out.problem, draws), out.decision, final, rules, parts)
        out = out.judged([verdict.value for row in judged.each for verdict in row])
        rows = rows if parts is None else [out.problem.rows & part for part in parts]
    cases = [
        _case(cube, asked, out, choice, verdict, metric, some)
        for metric, row in zip(asked.metrics, judged.each, strict=True)
        for verdict, some in zip(row, rows, strict=True)
    ]
    return Run(out, choice, judged.final, cases, draws, subgroup)


def _case(
    cube: xr.DataArray,
    asked: Request,
    out: Outcome,
    choice: Choice,
    verdict: Verdict,
    metric: Metric,
    rows: np.ndarray,
) -> Case:
    """Return what there is to say of the decision by one metric, judged on the samples in `rows`."""
    usable = ~np.isnan(verdict.value)
    values, kept = verdict.value[usable], verdict.kept[~np.isnan(verdict.kept)]
    naive, pooled, own = verdict.naive, verdict.pooled, {"kept": kept}
    estimate = middle(metric, values) if len(values) and not np.isnan(naive) else np.nan
    scores, variance = choice.scores, out.score_variance
    lost, defined = int((verdict.defined & ~usable).sum()), int(verdict.defined.sum())
    fixed = int(choice.eligible.sum()) == 1 and asked.rules.adjust is None  # nothing was decided
    codes = out.problem.check(metric.requires).codes() if metric.requires in CLASS_NEEDS else []
    n = unit_count(cube, rows)
    smallest = min(int((out.problem.y[rows] == code).sum()) for code in codes) if codes else n
    if metric.target is not None and smallest < EVENTS:
        asked.notes.append(f"{metric.name} is NaN: {smallest} samples of a class are fewer than {EVENTS}")
        estimate = naive = pooled = np.nan
    elif lost > UNDEFINED * defined:
        asked.notes.append(f"{metric.name} is NaN: it is undefined in {lost} of {defined} draws")
        estimate = np.nan
    elif fixed and not asked.simple:
        estimate = pooled = naive
        scores, variance = np.array([naive]), np.array([kept.var(ddof=1) if len(kept) > 1 else np.nan])
        own = {"wins": np.ones(1)}
    elif asked.rules.plain and metric is asked.by and asked.subgroup is None:  # as if it judged alone
        estimate = naive if fixed else estimate
        scores, variance = choice.scores[choice.eligible], out.score_variance[choice.eligible]
        own = {"wins": out.win_rate[choice.eligible]}
    evidence = Evidence(
        metric=metric,
        estimate=estimate,
        bbc=estimate,
        naive=naive,
        scores=scores,
        variance=variance,
        chosen=verdict.everywhere[usable],
        values=values,
        n=n,
        samples=int(rows.sum()),
        smallest_class=smallest,
        cube=None if cube.chunks is not None else cube,
        seed=asked.rules.seed,
        times=len(out.value),
        grouped="group" in cube.coords,
        weighted="weight" in cube.coords,
        unseen=verdict.unseen,
        within=within_folds(cube, out.problem, choice.index) if asked.simple and metric.name == "auc" else np.nan,
        **own,
    )
    return Case(evidence, verdict.value, pooled, verdict.anchor, verdict.everywhere, verdict.kept)


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
            up = data.y[rows] == 1
            many = float(up.sum() * (~up).sum())
            if many:
                right += many * float(placements(column[rows, repeat], up)[0].mean())
                pairs += many
    return right / pairs if pairs else np.nan


def middle(metric: Metric, values: np.ndarray) -> float:
    """Return the mean over draws, or the median for what has a target: slopes of few samples have no mean."""
    return float(values.mean() if metric.target is None else np.median(values))


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
    evidence = case.evidence
    limits, name, note = interval_limits(asked.interval, evidence, asked.level, alone=not asked.listed)
    asked.notes.extend([note] if note else [])
    variables = {
        "estimate": evidence.estimate,
        "naive": evidence.naive,
        "optimism": evidence.metric.optimism(case.pooled, evidence.estimate),
        "n_draws": int((~np.isnan(case.value)).sum()),
        **limits,
    }
    if asked.keep_draws:
        variables["draw_estimate"] = case.value
    if asked.anchored:
        variables |= {"draw_anchor": case.anchor} if asked.keep_draws else {}
        variables["bbc_plain"] = evidence.bbc
    return variables, name
