"""The difference between two configurations, or between two tuned families, by a paired bootstrap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, plain
from cvstats._results import call_text, result

from .configurations import family
from .location import wald
from .pairs import check_draws, present_rows

if TYPE_CHECKING:
    from cvstats.metrics import Metric
    from cvstats.resample.draws import Draws

# A draw's out-of-bag samples are .368 N of the N: over draws their mean varies 1/.368 - 1 times as much as the mean
# of all N over data sets. KAPPA covers what refitted models add, as in the calibrated interval of the winner.
_OUT_OF_BAG = np.exp(1) - 1
KAPPA = 1.3


def contrast(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    a: Any,
    b: Any,
    level: float = 0.95,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Any = None,
    strata: Any = "auto",
    select: Any = None,
    keep_draws: bool = False,
) -> xr.Dataset:
    """Return the difference a - b between two configurations, or between two tuned families.

    *Two configurations*: the estimand is the difference of their performances, the estimate the difference of their
    scores on all samples, the standard error that of the difference over bootstrap draws of samples.

    *Two families* (lists of configurations): the estimand is the difference between the performances of the
    configurations that tuning would pick from each. Selection is redone within each family in every draw and judged
    on the samples left out; the estimate is the mean of these differences. With ``V`` their variance over draws and
    ``V_s`` the variance of the all-data difference of the draws' winners, the squared standard error is
    ``1.3 (V - V_s) / (e - 1) + V_s``.

    Either way all configurations share the draws, so the comparison is paired; limits are
    ``estimate +- t * std_error`` with Student's t on N - 1 degrees of freedom.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric, of any family.
    a, b : label, list of labels, or dict
        A configuration's label; a list of labels; or coordinate values of the configurations that make up the family,
        such as ``{"learner": "svm"}``.
    level : float
        Confidence level.
    draws, times, rng : as in `bbc`
        Draws from `bootstrap`, or how many to make, and seed or generator.
    strata : str, optional
        As in `winner`: "auto" draws within class for metrics that need every class.
    select : callable, optional
        Selection strategy of the families; `select_best` by default.
    keep_draws : bool
        Also return ``draw_estimate(draw)``.

    Returns
    -------
    Dataset
        ``estimate, std_error, conf_low, conf_high, bound_low, bound_high, statistic, df, p_value``; ``estimate_a`` and
        ``estimate_b``; ``naive`` (difference of the scores of the selected), ``selected_a, selected_b``; ``n_draws``.

    Notes
    -----
    Do not contrast a winner with a loser picked by the same data: name both before looking, contrast families, or use
    `best_set`. The noise of refitting models is covered only roughly, as it is not in the predictions.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), Machine Learning 107, 1895-1922.
    https://doi.org/10.1007/s10994-018-5714-4

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(200, 20, rng=1)
    >>> names = cube.configuration.values
    >>> one = cs.contrast(cube, "accuracy", a=names[0], b=names[1], rng=1)
    >>> tuned = cs.contrast(cube, "accuracy", a=list(names[:10]), b=list(names[10:]), rng=1)
    >>> bool(tuned.conf_low < tuned.estimate < tuned.conf_high), int(one.df)
    (True, 199)
    """
    from cvstats._check import entropy
    from cvstats.cube.align import map_batches
    from cvstats.cube.make import check_cube
    from cvstats.metrics import bound_metric
    from cvstats.protocols.bootstrap import warn_once
    from cvstats.select import select_best

    check_cube(cube)
    level = check_level(level)
    check_draws(times, draws)
    notes: list[str] = []
    ours, theirs = family(cube, plain(a), "a"), family(cube, plain(b), "b")
    if len(ours) == len(theirs) and set(ours) == set(theirs):
        raise InputError("`a` and `b` name the same configurations; there is nothing to compare.")
    found = bound_metric(metric, cube.isel(configuration=np.union1d(ours, theirs)), notes)
    single = len(ours) == 1 and len(theirs) == 1
    strategy = select_best if select is None else select
    seed = entropy(rng)
    flat: list[bool] = []

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        pair, mine = _common(part, ours, theirs)
        weights = _draws(pair, found, draws, times, seed, strata)
        if single:
            values = _two(pair, mine, found, weights)
        else:
            values = _families(pair, mine, found, weights, strategy, seed)
        out = _limits(values, _units(pair), level)
        flat.append(bool(np.isnan(out["p_value"])))
        if keep_draws:
            out["draw_estimate"] = ("draw", values["draws"])
        return xr.Dataset(out)

    with np.errstate(invalid="ignore", over="ignore"):  # infinite losses have no difference: NaN
        out = map_batches(one, cube)
    if any(flat):
        cells = f" in {sum(flat)} of {len(flat)} cells" if len(flat) > 1 else ""
        notes.append(f"the difference does not vary over draws{cells}, so it cannot be tested: NaN")
    warn_once("contrast", notes)
    kind = "paired bootstrap contrast" if single else "contrast of tuned families"
    call = call_text("contrast", metric=found.name, a=a, b=b, level=level, times=times, rng=rng, strata=strata)
    return result(out, method=kind, metric=found.name, conf_level=level, interval="t", call=call, cube=cube)


def _common(cube: xr.DataArray, ours: np.ndarray, theirs: np.ndarray) -> tuple[xr.DataArray, np.ndarray]:
    """Return the configurations of both sides on the samples that both predicted, and where the first side is."""
    places = np.unique(np.concatenate([ours, theirs]))
    part = cube.isel(configuration=places)
    part = part.compute() if hasattr(part.variable._data, "__dask_graph__") else part
    mine, other = np.searchsorted(places, ours), np.searchsorted(places, theirs)
    present = present_rows(part)
    rows = present[:, mine].any(axis=1) & present[:, other].any(axis=1)
    if not rows.any():
        raise InputError("`a` and `b` have no sample in common that both predicted.")
    inside = np.zeros((2, len(places)), bool)
    inside[0, mine] = inside[1, other] = True
    return part.isel(sample=rows), inside


def _draws(cube: xr.DataArray, metric: Metric, given: xr.DataArray | None, times: int, seed: int, strata: Any) -> Draws:
    from cvstats.resample import given_draws, make_draws

    if given is None:
        return make_draws(cube, metric, times, seed, strata)
    if (
        isinstance(given, xr.DataArray) and "sample" in given.indexes
    ):  # draws over all samples serve the samples at hand
        given = given.isel(sample=np.isin(given.indexes["sample"], cube.indexes["sample"]))
    return given_draws(given, cube)


def _units(cube: xr.DataArray) -> int:
    return len(np.unique(cube["group"].values)) if "group" in cube.coords else cube.sizes["sample"]


def _two(cube: xr.DataArray, inside: np.ndarray, metric: Metric, draws: Draws) -> dict[str, Any]:
    """Return the difference of two configurations and its values over draws."""
    from cvstats.cube.blocks import problem_on
    from cvstats.judge import scored
    from cvstats.metrics import score

    first, second = (int(np.flatnonzero(side)[0]) for side in inside)
    _, (table,) = scored(metric, problem_on(cube, metric, compete=False), draws)
    values = table[:, first] - table[:, second]
    own = score(cube, metric).values
    kept = values[~np.isnan(values)]
    units = _units(cube)
    variance = np.var(kept, ddof=1) * units / (units - 1) if len(kept) > 1 and units > 1 else np.nan
    names = cube["configuration"].values
    return {"a": own[first], "b": own[second], "naive": own[first] - own[second], "variance": variance,
            "selected": (names[first], names[second]), "draws": values, "noise": _noise(own)}  # fmt: skip


def _families(
    cube: xr.DataArray, inside: np.ndarray, metric: Metric, draws: Draws, select: Any, seed: int
) -> dict[str, Any]:
    """Return the difference of two tuned families and its values over draws."""
    from cvstats.cube.blocks import problem_on
    from cvstats.judge import Rules, decide
    from cvstats.protocols.common import final_choice

    value, standing, choices = [], [], []
    for side in inside:
        part = cube.isel(configuration=side)
        out = decide(metric, problem_on(part, metric), draws, Rules(select, seed=seed))
        choice = final_choice(part, metric, select=select, std_error=np.sqrt(out.score_variance), known=out.problem)
        value.append(out.value)
        standing.append(choice.scores[out.decision.place])
        choices.append(choice)
    values = value[0] - value[1]
    kept = ~np.isnan(values)
    found = {"a": np.nan, "b": np.nan, "variance": np.nan}
    if kept.sum() > 1:
        chosen = float(np.var((standing[0] - standing[1])[kept], ddof=1))
        sampling = max(float(np.var(values[kept], ddof=1)) - chosen, 0.0) / _OUT_OF_BAG
        found = {
            "a": float(value[0][kept].mean()),
            "b": float(value[1][kept].mean()),
            "variance": KAPPA * sampling + chosen,
        }
    naive = choices[0].value - choices[1].value
    scores = np.concatenate([choice.scores for choice in choices])
    return {
        **found,
        "naive": naive,
        "selected": (choices[0].label, choices[1].label),
        "draws": values,
        "noise": _noise(scores),
    }


def _noise(scores: np.ndarray) -> float:
    """Return the size of a standard error that is nothing but rounding."""
    return float(16 * np.finfo(float).eps * np.nanmax(np.abs(scores), initial=0.0))


def _limits(values: dict[str, Any], units: int, level: float) -> dict[str, Any]:
    error, df = np.sqrt(values["variance"]), units - 1.0
    varies = error > values["noise"] and df > 0
    return {
        **wald(values["a"] - values["b"], error if varies else np.nan, df, level, bounds=True),
        "std_error": error,
        "estimate_a": values["a"],
        "estimate_b": values["b"],
        "naive": values["naive"],
        "selected_a": values["selected"][0],
        "selected_b": values["selected"][1],
        "n_draws": int((~np.isnan(values["draws"])).sum()),
    }
