"""Bootstrap bias corrected cross-validation (BBC): the paper's method, to the letter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import Rng, check_level, entropy, listened, show
from cvstats._results import QUALIFIERS, call_text, names_of, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import check_form, map_batches, problem_on
from cvstats.intervals import Calibration, Evidence, Method, check_times, get_method, interval_limits
from cvstats.judge import Decision, Outcome, Rules, Setting, Verdict, Verdicts, decide, errors_of, verdicts
from cvstats.judge.asked import adjustment_of, problem_of, stand_in
from cvstats.kernels import Problem
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, metrics_of, score
from cvstats.resample import Draws, given_draws, make_draws, unit_count
from cvstats.select import Choice, Mixture, Select, choose, select_best

from .common import Case, Run, decided_on, fold_columns, like_groups, share_seen, split_across, warn_once, within_folds
from .registry import protocol
from .subgroups import Subgroup, by_level

ESTIMATE = ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high", "naive", "optimism")
EVENTS = 10  # samples of a class below which a metric that has a target says nothing
FEW_GROUPS = 10
HALF = {"auc": "AUC", "auc_ovr": "AUC", "auc_ovr_weighted": "AUC", "concordance": "concordance"}  # .5 is guessing
OURS = {"sample", "label", "fold", "group", "weight", "event"}
Cell = tuple[xr.DataArray, Problem, Metric | None, np.ndarray | None]  # of a cube with batch dims, and its scores
UNDEFINED = 0.05  # share of draws in which a metric may be undefined though the labels allow it


def doubts(cells: Iterable[Cell]) -> list[str]:
    """Return what makes numbers doubtful though they are computed right, in the same words for all that give them.

    Each is said once for all cells of a cube with batch dims: their groups, their gaps and, if given, their scores.
    """
    groups, split, lost, best, said = {}, {}, {}, [], []
    alike: dict[str, tuple[int, int]] = {}  # coordinate -> values, samples
    fewest, seen, total, below = FEW_GROUPS, 0, 0, ""
    for cube, data, metric, scores in cells:
        others = {name for name, coord in cube.coords.variables.items() if coord.dims == ("sample",)} - OURS
        folds = fold_columns(cube) if others or "group" in cube.coords else []
        if "group" in cube.coords:
            group = cube["group"].values
            names = pd.unique(group[data.rows])
            fewest = min(fewest, len(names))
            groups.update(dict.fromkeys(names.tolist()))
            split.update(dict.fromkeys(name for column in folds for name in split_across(group, column)))
        elif folds:
            alike |= like_groups(cube, others, folds)
        seen, total = seen + 1, len(data.eligible)
        if not data.eligible.all():
            lost.update(dict.fromkeys(cube["configuration"].values[~data.eligible].tolist()))
        if metric is not None and scores is not None and metric.name in HALF:
            known = scores[data.eligible & np.isfinite(scores)]
            if len(known) and known.max() < 0.5:
                best.append(float(known.max()))
                below = HALF[metric.name]
    if split:
        said.append(
            f"{len(split)} of {len(groups)} groups are split across folds ({show(split)}), so "
            "models were judged on groups they were trained on: scores are too good"
        )
    if fewest < FEW_GROUPS:
        said.append(f"only {fewest} independent groups: with fewer than {FEW_GROUPS} the interval cannot be trusted")
    for name, (values, samples) in alike.items():
        said.append(
            f"coordinate {name!r} looks like a group ({values} values for {samples} samples, none split across "
            "folds) but is not declared, so samples count as independent: declare it as the group, or drop it"
        )
    if lost:
        some = " in some cell" if seen > 1 else ""
        said.append(
            f"{len(lost)} of {total} configurations lacked predictions that others have and could not be "
            f"selected{some} ({show(lost)})"
        )
    if best:
        some = f" in {len(best)} of {seen} cells" if seen > 1 else ""
        said.append(
            f"every {below} is below .5{some} (the best is {max(best):.3f}): labels or scores are "
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
    cells: list[Cell] = field(default_factory=list)  # that were judged
    simple: bool = field(init=False)  # whether one configuration is picked by its pooled score and judged by it alone

    def __post_init__(self) -> None:
        times = check_times(self.times, self.level, self.interval.name, self.draws)
        object.__setattr__(self, "times", times)
        simple = self.rules.plain and self.metrics == (self.by,) and self.subgroup is None
        object.__setattr__(self, "simple", simple)


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
    has an interval that holds its level. Percentile limits are quantiles of type 7 (linear between draws); the paper
    does not say which it takes.

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

    out = map_batches(lambda part: assemble(bootstrap_run(part, asked), part, asked, "bbc"), cube)
    given = {"draws": draws, "times": times, "rng": rng, "level": level, "ties": ties, "strata": strata}
    return finished("bbc", asked, out, cube, **given)


def finished(method: str, asked: Request, out: xr.Dataset, cube: xr.DataArray, **arguments: Any) -> xr.Dataset:
    """Return the result with its labels, after one warning with all that must be known."""
    function, rules = ("winner" if asked.anchored else method), asked.rules
    if notes := [*doubts(asked.cells), *asked.notes]:
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
        draws = draws.remembered()
    out = decide(by, data, draws, rules, judging=asked.simple, anchored=asked.anchored)
    scores, error = out.score if scores is None else scores, np.sqrt(out.score_variance)
    choice = choose(out.problem, scores, by.direction, rules.select, error)
    final = Decision(np.array([choice.index]), None if out.share is None else out.share[None])
    if rules.average == "fold" and final.empty[0]:  # say in which folds nothing is defined
        listened(asked.notes, lambda: score(cube, by, average="fold"))
    parts, rows = None if subgroup is None else subgroup.parts, [out.problem.rows]
    if asked.simple:
        nothing, errors = np.empty(0), (0.0, 0.0)
        if choice.index >= 0 and by.uses == "probability":
            errors = errors_of(by, out.problem.columns([choice.index]).samples(out.problem.rows))
        everywhere, own = choice.scores[out.decision.place], (choice.value, choice.value, *errors)
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
    cube: xr.DataArray, asked: Request, out: Outcome, choice: Choice, verdict: Verdict, metric: Metric, rows: np.ndarray
) -> Case:
    """Return what there is to say of the decision by one metric, judged on the samples in `rows`."""
    usable = ~np.isnan(verdict.value)
    values, kept = verdict.value[usable], verdict.kept[~np.isnan(verdict.kept)]
    naive, pooled, own = verdict.naive, verdict.pooled, {"kept": kept}
    estimate = float(metric.middle(values)) if len(values) and not np.isnan(naive) else np.nan
    scores, variance = choice.scores, out.score_variance
    lost, defined = int((verdict.defined & ~usable).sum()), int(verdict.defined.sum())
    fixed = int(choice.eligible.sum()) == 1 and asked.rules.adjust is None  # nothing was decided
    codes = out.problem.check(metric.requires).codes() if metric.requires in CLASS_NEEDS else []
    grouped = "group" in cube.coords
    n = unit_count(cube, rows) if grouped else int(rows.sum())
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
    more = asked.interval.name != "percentile"  # which takes draws alone
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
        cube=cube if isinstance(out.problem.p, np.ndarray) else None,
        seed=asked.rules.seed,
        times=len(out.value),
        grouped=grouped,
        weighted="weight" in cube.coords,
        errors=verdict.errors,
        unseen=verdict.unseen,
        within=within_folds(cube, out.problem, choice.index)
        if more and asked.simple and metric.name == "auc"
        else np.nan,
        seen=share_seen(fold_columns(cube)) if more else 1.0,
        **own,
    )
    return Case(evidence, verdict, pooled)


def assemble(run: Run, cube: xr.DataArray, asked: Request, method: str) -> xr.Dataset:
    """Return the variables that every bootstrap estimate reports, and keep in mind what must be said of it."""
    out, choice = run.out, run.choice
    units = {"group", run.subgroup.name} if run.subgroup is not None and run.subgroup.grouped else set()
    known = cube.drop_vars(units, errors="ignore") if units else cube  # samples are then the units, not groups
    asked.cells.append((known, out.problem, asked.by, choice.scores))
    total, lost = len(out.usable), int((~out.usable).sum())
    if lost:
        asked.notes.append(f"{lost} of {total} draws could not be used and were skipped")
    elif out.n_redrawn:
        asked.notes.append(f"{out.n_redrawn} of {total} draws were unusable and drawn again")
    made, intervals = [], []
    for case in run.cases if run.subgroup is None else run.cases[::2]:
        evidence, verdict = case.evidence, case.verdict
        limits, interval, note = interval_limits(asked.interval, evidence, asked.level, alone=not asked.listed)
        asked.notes.extend([note] if note else [])
        cell: dict[str, Any] = {"estimate": evidence.estimate, "naive": evidence.naive}
        cell["optimism"] = evidence.metric.optimism(case.pooled, evidence.estimate)
        cell |= {"n_draws": int((~np.isnan(verdict.value)).sum()), **limits}
        if asked.keep_draws:
            cell["draw_estimate"] = verdict.value
        if asked.anchored:
            cell |= {"draw_anchor": verdict.anchor} if asked.keep_draws else {}
            cell["bbc_plain"] = evidence.bbc
        made.append(cell)
        intervals.append(interval)
    dims: tuple[str, ...] = ("metric",) if asked.listed else ()
    cells = np.array(made if asked.listed else made[0], object)
    if run.subgroup is not None:
        dims, cells = (*dims, run.subgroup.name), by_level(run, asked, made)
        intervals = intervals[:: len(run.subgroup.levels)]
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
    coords |= zip(QUALIFIERS, (method, asked.metrics[0].name, asked.level, asked.interval.name), strict=True)
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
