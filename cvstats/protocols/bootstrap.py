"""Bootstrap bias corrected cross-validation (BBC): the paper's method, to the letter."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_level, check_option, entropy, warn
from cvstats._results import call_text, names_of, qualifiers, result
from cvstats.cube.arrays import encode_labels, problem
from cvstats.cube.blocks import Coverage, coverage, known_coverage
from cvstats.cube.make import is_lazy, scan_cube
from cvstats.intervals import Calibration, Evidence, get_method, interval_limits
from cvstats.judge import draw_source, map_batches, unusable_note, whole_quanta
from cvstats.judge.outcome import Outcome, judged_outcome
from cvstats.kernels.scan import Scan
from cvstats.kernels.usable import LabelCheck
from cvstats.metrics import Metric, bound_metric, get_metric
from cvstats.resample import Bootstrap, check_nested, group_codes, strata_codes
from cvstats.select import Select, select_best

from .common import Choice, final_choice, optimism
from .doubts import Doubts

CLASS_METRICS = ("classes", "positive", "negative")


@dataclass(frozen=True)
class Run:
    """One bootstrap of "select, then judge" on a cube without batch dims, and what the interval needs of it."""

    names: xr.Variable  # of the configurations
    out: Outcome
    choice: Choice
    evidence: Evidence
    draws: xr.DataArray | Bootstrap
    coverage: Coverage
    notes: tuple[str, ...]


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
    seen = scan_cube(cube)
    notes: list[str] = []
    found = bound_metric(metric, cube, notes)
    level = check_level(level)
    method = get_method(interval)
    check_times(times, level, method.name, draws)
    seed = entropy(rng)
    labels = qualifiers("bbc", found.name, level, method.name)
    doubts = Doubts()

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        run = bootstrap_run(part, found, None, draws, times, seed, ties, select, strata, batch, progress, seen)
        limits, note = interval_limits(method, run.evidence, level)
        doubts.add(part, run.coverage, found, run.choice.scores)
        notes.extend([*run.notes, *note])
        return assemble(run, run.evidence.estimate, limits, keep_draws, labels)

    out = map_batches(one, cube)
    warn_once("bbc", [*doubts.notes(), *notes])
    return result(
        out,
        **labels,
        call=call_text(
            "bbc", metric=found.name, draws=draws, times=times, rng=rng, level=level, ties=ties, strata=strata
        ),
        cube=cube,
    )


def warn_once(function: str, notes: list[str]) -> None:
    """Issue one warning with all that must be known, each note once."""
    if notes:
        warn(f"{function}: {'; '.join(dict.fromkeys(note.rstrip('.') for note in notes))}.")


def check_times(times: int, level: float, interval: str, draws: xr.DataArray | None) -> None:
    """Raise when there are too few draws for the quantiles that the interval needs."""
    check_count(times, "times")
    least = int(np.ceil(round(2 / (1 - level), 6)))
    if draws is None and interval == "percentile" and times < least:
        raise InputError(
            f"`times`={times} is too small for a percentile interval at level {level:g}: at least {least} draws are "
            "needed, 1000 or more are advisable."
        )


def bootstrap_run(
    cube: xr.DataArray,
    metric: Metric,
    scores: xr.DataArray | None,
    draws: xr.DataArray | None,
    times: int,
    seed: int,
    ties: str,
    select: Select,
    strata: Any,
    batch: int | None,
    progress: bool,
    seen: Scan | None,
) -> Run:
    """Choose in the bag, judge out of it, and gather what intervals need; the cube has no batch dims."""
    found = known_coverage(cube, seen)
    weights: xr.DataArray | Bootstrap
    weights = draws if draws is not None else make_draws(cube, metric, times, seed, strata, found)
    check_option(ties, ("random", "first"), "ties")
    batch = whole_quanta(batch)
    out = judged_outcome(
        cube, metric, weights, found, select=select, ties=ties, seed=seed, batch=batch, progress=progress
    )
    found = found or coverage(cube)
    error = np.sqrt(out.score_variance)
    known = out.score if scores is None else scores.values
    choice = final_choice(cube, metric, select=select, scores=known, std_error=error, found=found)
    values = out.value[out.usable]
    alone = int(choice.eligible.sum()) == 1
    with np.errstate(over="ignore"):
        estimate = choice.value if alone or choice.index < 0 else (float(values.mean()) if len(values) else np.nan)
    n, smallest = design_sizes(cube, metric, found.rows)
    evidence = Evidence(
        metric=metric,
        estimate=estimate,
        bbc=estimate,
        naive=choice.value,
        scores=choice.scores[choice.eligible],
        variance=out.score_variance[choice.eligible],
        chosen=choice.scores[out.place[out.usable]],
        values=values,
        n=n,
        smallest_class=smallest,
        cube=None if is_lazy(cube) else cube,
        seed=seed,
        times=len(out.value),
        grouped="group" in cube.coords,
        weighted="weight" in cube.coords,
        wins=out.win_rate[choice.eligible],
        unseen=_unseen(cube, metric, choice.index),
    )
    return Run(cube.coords.variables["configuration"], out, choice, evidence, weights, found, unusable_note(out))


def _unseen(cube: xr.DataArray, metric: Metric, index: int) -> float:
    """Return what a misclassified sample would cost when configuration `index` misclassifies none; else 0."""
    if index < 0 or not metric.error_cost(2):
        return 0.0
    mine = cube.isel(configuration=[index]).compute()
    data = problem(mine, metric)
    losses = get_metric("log_loss").ingredients(data.y[:, None, None], data.p, data.n_classes)[0]
    wrong = (losses >= np.log(2)).sum() / losses.shape[-1]  # the truth got a probability of one half at most
    return metric.error_cost(data.n_classes) if wrong < 0.5 else 0.0


def make_draws(
    cube: xr.DataArray, metric: Metric, times: int, seed: int, strata: Any, found: Coverage | None = None
) -> Bootstrap:
    """Return the draws that groups and strata ask for."""
    group = group_codes(cube, None)
    automatic = isinstance(strata, str) and strata == "auto"
    if automatic:
        strata = "label" if metric.requires in CLASS_METRICS and cube["label"].dims == ("sample",) else None
    layer = strata_codes(cube, strata)
    if automatic and group is not None and layer is not None:
        try:
            check_nested(group, layer)
        except InputError:
            layer = None  # groups that mix classes cannot be drawn within them; unusable draws are drawn again
    check_nested(group, layer)
    return draw_source(cube, metric, times, seed, group=group, strata=layer, found=found)


def design_sizes(cube: xr.DataArray, metric: Metric, rows: np.ndarray) -> tuple[int, int]:
    """Return the number of independent units and of samples of the rarest class among the predicted samples `rows`."""
    group = group_codes(cube, None)
    n = int(rows.sum()) if group is None else len(np.unique(group[rows]))
    if metric.requires not in CLASS_METRICS:
        return n, n
    codes, classes = encode_labels(cube)
    wanted = LabelCheck(metric.requires, codes, None, None, classes).codes()
    return n, min(int((codes[rows] == code).sum()) for code in wanted)


def assemble(run: Run, estimate: float, limits: dict[str, Any], keep_draws: bool, labels: dict[str, Any]) -> xr.Dataset:
    """Return the variables that every bootstrap estimate reports, with the qualifiers in `labels`."""
    metric = run.evidence.metric
    variables: dict[str, Any] = {
        "estimate": estimate,
        "std_error": limits["std_error"],
        "conf_low": limits["conf_low"],
        "conf_high": limits["conf_high"],
        "bound_low": limits["bound_low"],
        "bound_high": limits["bound_high"],
        "naive": run.choice.value,
        "optimism": optimism(metric, run.choice.value, estimate),
        "selected": run.choice.label,
        "win_rate": ("configuration", run.out.win_rate),
        "n_draws": run.out.n_draws,
        "n_redrawn": run.out.n_redrawn,
    }
    coords: dict[str, Any] = {"configuration": run.names} | labels
    if "calibration" in limits:
        variables["calibration"] = ("calibration_part", limits["calibration"])
        coords["calibration_part"] = [field.name for field in fields(Calibration)]
    if keep_draws:
        variables["draw_estimate"] = ("draw", run.out.value)
        variables["draw_selected"] = ("draw", names_of(run.names.values, run.out.place))
        coords["draw"] = np.arange(len(run.out.value))
    return xr.Dataset(variables, coords=coords)
