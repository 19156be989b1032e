"""The one kernel: score each configuration with one set of weights, select one, judge it with another set.

It runs in two steps. *Choose* walks blocks of configurations and, per draw, keeps the best so far; it needs nothing
but a running maximum, so blocks may live anywhere and merge exactly. *Judge* then reads only the columns that won.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, entropy, show, warn
from cvstats._results import names_of
from cvstats.adjust import Adjustment
from cvstats.cube.align import aligned
from cvstats.cube.arrays import check_form, map_batches, problem_on, surveyed
from cvstats.kernels import Problem
from cvstats.metrics import Metric, bound_metric, metrics_of
from cvstats.resample import Draws, given_draws
from cvstats.select import Mixture, Rules, Select, select_best

from .asked import adjustment_of, problem_of
from .loop import Decision, Outcome, decide, scored
from .scorers import mixed_score
from .verdicts import Setting, Verdict, Verdicts, errors_of, verdicts

__all__ = [
    "Decision", "Outcome", "Rules", "Setting", "Verdict", "Verdicts", "decide", "errors_of", "mixed_score",
    "score_draws", "scored", "select_and_judge", "verdicts",
]  # fmt: skip


def score_draws(
    cube: xr.DataArray, metric: str | Metric, draws: xr.DataArray | Draws, *, batch: int | None = None
) -> xr.DataArray:
    r"""Return the score of every configuration under every draw.

    .. math:: \theta_j(w_b) \text{ for draw } b \text{ and configuration } j

    with :math:`\theta_j(w)` the score when samples weigh w: what intervals, contrasts and curves are made of. All
    configurations share the draws, so differences between columns are paired. Case weights of the cube multiply the
    weights; scores are averaged over repeats; predictions that are missing do not count.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    draws : DataArray
        Weights over ``draw, sample``, as `bootstrap`, `subsample` and `jackknife` return: finite and not negative.
    batch : int, optional
        Draws at a time (rounded up to a multiple of 32); bounds memory, never changes a result.

    Returns
    -------
    xarray.DataArray
        Scores over ``draw, configuration`` and batch dims; NaN where the metric is undefined, such as AUC in a draw of
        one class.

    Raises
    ------
    InputError
        Weights that do not match the cube's samples, or that are negative or not finite.

    References
    ----------
    Efron (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics 7, 1-26.
    doi:10.1214/aos/1176344552

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1, 0], [0, 1], [1, 1]], [1, 0, 1])
    >>> cs.score_draws(cube, "accuracy", cs.jackknife(cube)).values
    array([[1. , 0.5],
           [1. , 0.5],
           [1. , 0. ]])
    """
    check_form(cube)
    found = bound_metric(metric, cube)
    rules = Rules(batch=batch)

    def one(part: xr.DataArray) -> xr.DataArray:
        data = problem_on(part, found, compete=False)
        table = scored(found, data, given_draws(draws, part), batch=rules.batch)[1][0]
        kept = {name: coord for name, coord in part.coords.items() if coord.dims == ("configuration",)}
        coords = {"draw": np.arange(len(table)), **kept, "metric": found.name}
        return xr.DataArray(table, dims=("draw", "configuration"), coords=coords, name=found.name)

    return map_batches(one, cube)


def select_and_judge(
    cube: xr.DataArray,
    metric: str | Metric | Sequence[str | Metric],
    *,
    choose: xr.DataArray | Draws,
    judge: xr.DataArray | None = None,
    judge_cube: xr.DataArray | None = None,
    by: str | Metric | None = None,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    average: str = "pooled",
    select: Select | Mixture = select_best,
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
    metric : str, Metric, or list of these
        What judges; a list judges one and the same decisions, and ``value``, ``usable`` and ``n_draws`` have the dim
        ``metric``.
    choose : DataArray
        Weights that choose.
    judge : DataArray, optional
        Weights that judge; by default the samples left out of the draw (weight one where `choose` is zero).
    judge_cube : DataArray, optional
        The predictions that judge, when they are others (another repeat, the outer folds): same samples and
        configurations, matched by label.
    by : str or Metric, optional
        The metric that chooses; by default the metric, or the first of a list.
    adjust : adjustment or list of these, optional
        What is done with predictions, learned with `choose` and applied to those that judge: `cut`, `recalibrate`,
        `shift_prior`, `as_adjustment`. Where it matters to `by`, every configuration is adjusted before it is scored.
    average : {"pooled", "fold"}
        Whether choosing scores all samples at once or averages over folds; judging is pooled.
    select : callable or mixture
        Selection strategy, see `select_best`; or a mixture, see `ensemble`.
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
        and ``score_variance(configuration)`` (variance over usable draws); ``n_draws`` and ``n_redrawn``. Mixtures have
        ``share(draw, configuration)``; adjustments what they learned, such as ``threshold(draw)``.

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
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> draws = cs.bootstrap(cube, 20, rng=1)
    >>> out = cs.select_and_judge(cube, ["brier", "f1"], choose=draws, adjust=cs.cut("f1"), rng=1)
    >>> out.value.dims, out.threshold.dims
    (('metric', 'draw'), ('draw',))
    """
    check_form(cube)
    notes: list[str] = []
    metrics, chooser = metrics_of(metric, by, cube, notes)
    if notes:
        warn(f"{'; '.join(notes)}.")
    listed = isinstance(metric, (list, tuple))
    if judge_cube is not None:
        judge_cube = aligned(judge_cube, cube, "judge_cube")
    rules = Rules(select, ties, entropy(rng), batch, progress, adjustment_of(adjust, cube, metrics), average)
    simple = rules.plain and metrics == (chooser,) and judge_cube is None

    def one(part: xr.DataArray, other: xr.DataArray | None) -> xr.Dataset:
        data = problem_of(part, chooser, metrics, rules)
        judges: Problem | None = None
        weights = None if judge is None else given_draws(judge, part)
        if other is not None:
            judges = surveyed(problem_of(other, chooser, metrics, rules, compete=False))
            if judge is None:
                data = surveyed(data)
                extra = judges.rows & ~data.rows
                if extra.any():
                    raise InputError(
                        "`judge_cube` has predictions for samples that no configuration of the cube predicted: "
                        f"{show(other['sample'].values[extra])}. Leave those samples out, or give `judge`."
                    )
        draws = given_draws(choose, part)
        out = decide(chooser, data, draws, rules, judge=weights, judging=simple)
        if simple:
            return _labelled(out, metrics, [out.value], {}, listed)
        nothing = Decision(np.array([-1]), None if out.share is None else out.share[None])
        judged = verdicts(metrics, Setting(out.problem, draws, weights, judges), out.decision, nothing, rules)
        values = [row[0].value for row in judged.each]
        return _labelled(out.judged(values), metrics, values, judged.parameters, listed)

    found = map_batches(one, cube, judge_cube)
    return found.assign_coords(by=chooser.name) if listed or chooser is not metrics[0] else found


def _labelled(
    out: Outcome, metrics: Sequence[Metric], values: list[np.ndarray], learned: dict[str, np.ndarray], listed: bool
) -> xr.Dataset:
    """Return the outcome with names and labels."""
    names, value = out.problem.names, np.array(values) if listed else values[0]
    dims = ("metric",) if listed else ()
    usable = ~np.isnan(value)
    variables = {
        "selected": ("draw", names_of(names, out.decision.place)),
        "value": ((*dims, "draw"), value),
        "usable": ((*dims, "draw"), usable),
        "win_rate": ("configuration", out.win_rate),
        "score": ("configuration", out.score),
        "score_variance": ("configuration", out.score_variance),
        "n_draws": (dims, usable.sum(axis=-1)),
        "n_redrawn": out.n_redrawn,
        **{name: ("draw", value) for name, value in learned.items()},
    }
    if out.decision.share is not None:
        variables["share"] = (("draw", "configuration"), out.decision.share)
    labels = [metric.name for metric in metrics]
    coords = {"draw": np.arange(value.shape[-1]), "configuration": names, "metric": labels if listed else labels[0]}
    return xr.Dataset(variables, coords=coords)
