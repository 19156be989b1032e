"""When only the scores of folds were saved: the bootstrap bias correction with folds in the place of samples."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_level, check_option, entropy, listened, plain, show
from cvstats._results import call_text, result
from cvstats.cube.make import as_cube
from cvstats.formats.scores import by_number, long_scores, partitioned, read_frame
from cvstats.metrics import Metric, get_metric
from cvstats.metrics.base import DIRECTIONS

from .bootstrap import bbc
from .common import warn_once
from .registry import protocol

FEWEST = 4  # folds
PARTS = ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high")


def read_scores(
    source: str | Path | pd.DataFrame | Mapping[str, Any],
    *,
    metric: str | None = None,
    direction: str | None = None,
    repeats: int | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    max_bytes: int = 2**31,
) -> xr.DataArray:
    """Read the scores of folds, for `bbc_folds`, where predictions were not saved.

    Known are scikit-learn's ``cv_results_`` (the mapping itself too) and ``cross_validate``, tidymodels'
    ``collect_metrics(summarize = FALSE)``, caret's ``$resample`` (of all configurations with ``returnResamp = "all"``),
    mlr3's ``$score()``, Optuna trials that carry their folds as user attributes, and any table with columns of folds
    and scores, or with one column for each fold.

    Parameters
    ----------
    source : str, path, DataFrame or mapping
        The table: a file as in `read_predictions`, a data frame, or a mapping of columns.
    metric : str, optional
        Which score, where the table has several.
    direction : {"maximize", "minimize"}, optional
        Which scores are better, for scores that cvstats does not know.
    repeats : int, optional
        Of how many repeats the splits are, where the table does not say: needed for more than ten splits. The folds of
        a repeat follow each other.
    columns : dict, optional
        Our names -> the table's: ``fold``, ``score``, and where there are such ``configuration``, ``repeat`` and
        ``metric``.
    encoding : str
        Of text files.
    max_bytes : int
        The size after decompression at which reading stops.

    Returns
    -------
    xarray.DataArray
        Dims ``configuration`` (first-seen order), ``fold`` and, if repeated, ``repeat``; scalar coordinates ``metric``
        and ``direction``. Scores that scikit-learn turns round (``neg_log_loss``) are turned back. A score that the
        table lacks is NaN.

    Raises
    ------
    InputError
        Scores that were averaged before they were saved; several metrics, or more than ten splits, and nothing said; a
        score that is given twice; an unknown metric without its direction.

    Examples
    --------
    >>> import cvstats as cs
    >>> found = {"params": [{"C": 1}, {"C": 10}], "split0_test_score": [0.7, 0.8], "split1_test_score": [0.6, 0.9],
    ...          "split2_test_score": [0.7, 0.7], "split3_test_score": [0.8, 0.9]}
    >>> scores = cs.read_scores(found)
    >>> dict(scores.sizes), scores.direction.item()
    ({'configuration': 2, 'fold': 4}, 'maximize')
    """
    if repeats is not None:
        repeats = check_count(repeats, "repeats")
    frame, name = read_frame(source, encoding, max_bytes)
    try:
        long, higher = long_scores(frame, name, columns)
        said = _one_metric(list(dict.fromkeys(map(str, long["metric"]))), metric)
        long = partitioned(long[long["metric"].astype(str) == said], repeats)
        turned = _direction(said, direction, higher)
        keys = ["configuration", "fold", *(["repeat"] if "repeat" in long else [])]
        twice = long[keys].astype(str).duplicated()
        if twice.any():
            where = ", ".join(f"{key} {plain(long.loc[twice, key].iloc[0])!r}" for key in keys)
            raise InputError(f"{int(twice.sum())} scores are given twice; first {where}.")
    except InputError as error:
        raise error if str(error).startswith("`") else InputError(f"{name}: {error}") from None
    codes, labels = zip(*(pd.factorize(long[key].astype(object)) for key in keys), strict=True)
    values = np.full([len(found) for found in labels], np.nan)
    values[codes] = long["value"].to_numpy(float) * (-1 if said.startswith("neg_") else 1)
    coords: dict[str, Any] = {key: np.array(found.tolist()) for key, found in zip(keys, labels, strict=True)}
    out = xr.DataArray(values, coords | {"metric": _canonical(said), "direction": turned}, keys, "score")
    order = [sorted(range(len(found)), key=[by_number(name) for name in found].__getitem__) for found in labels[1:]]
    return out.isel(dict(zip(keys[1:], order, strict=True)))


def _one_metric(found: list[str], asked: str | None) -> str:
    """Return which of the scores in a table was asked for."""
    if asked is None:
        if len(found) > 1:
            raise InputError(f"there are several scores: {show(found)}. Say which: metric=...")
        return found[0]
    for name in (asked, *found):
        if name in found and _canonical(name) == _canonical(asked):
            return name
    raise InputError(f"`metric`={asked!r} is not among the scores {show(found)}.")


def _canonical(name: str) -> str:
    """Return the name that a score has here."""
    try:
        return get_metric(name.removeprefix("neg_")).name
    except InputError:
        return name.removeprefix("neg_")


def _direction(name: str, asked: str | None, higher: bool) -> str:
    """Return which values of a score are better: what is known of it, or what the caller says."""
    if asked is not None:
        check_option(asked, tuple(DIRECTIONS), "direction")
    known = "minimize" if name.startswith("neg_") else "maximize" if higher else None
    with suppress(InputError):
        known = get_metric(name.removeprefix("neg_")).direction
    if known is None and asked is None:
        raise InputError(f"`direction` of {name!r} is not known: say whether to 'maximize' or 'minimize' it.")
    if known and asked and DIRECTIONS[asked] != known:
        raise InputError(f"`direction`={asked!r}, but the way to go for {name!r} is to {known}.")
    return known or DIRECTIONS[str(asked)]


@protocol(
    "bbc_folds",
    "BBC of fold scores",
    "a bootstrap draw of folds",
    "folds left out of the draw",
    "For tables of scores, where predictions were not saved.",
)
def bbc_folds(
    scores: xr.DataArray, *, direction: str | None = None, times: int = 1000, rng: Rng = None, level: float = 0.95
) -> xr.Dataset:
    r"""Return the bias corrected estimate of the winner's performance from the scores of folds alone.

    In draw b folds are drawn with replacement, the configuration with the best mean score over the drawn folds,
    :math:`j_b`, is chosen, and judged by its mean score over the folds left out; the estimate is the mean over draws.
    It is `bbc` with folds in the place of samples, and random ties. Folds of other repeats hold the same samples again,
    so that repeats are judged apart, and estimates and limits averaged.

    With ten folds its bias and error are about those of `bbc` on the predictions, and its percentile interval covers
    .96 to .99 (fixed models, see Notes). With predictions use `winner`: it says more.

    Parameters
    ----------
    scores : DataArray
        Scores with the dims ``configuration``, ``fold`` and, if cross-validation was repeated, ``repeat``: what
        `read_scores` returns, or your own. NaN is a score that is missing: a configuration that lacks a score that
        another has cannot win. Other dims are batches.
    direction : {"maximize", "minimize"}
        Which scores are better. By default what the coordinate ``direction`` says, as `read_scores` sets it.
    times : int
        Number of draws for each repeat.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    level : float
        Level of the two-sided interval and of the one-sided bounds.

    Returns
    -------
    xarray.Dataset
        The variables of `bbc`: ``estimate``, ``std_error``, ``conf_low``, ``conf_high``, ``bound_low``, ``bound_high``,
        ``naive`` (the best mean score), ``optimism``, ``selected``, ``win_rate``, ``n_draws`` and ``n_redrawn`` (of all
        repeats).

    Raises
    ------
    InputError
        Fewer than four folds; infinite scores; no configuration with all scores; an unknown direction.

    Notes
    -----
    Bias and root mean squared error of the estimated accuracy, and coverage of the interval, over 400 simulated data
    sets of N samples, C fixed configurations and K folds (`simulate_cube`): N = 100, C = 100, K = 10: -.019, .045, .98;
    K = 5: -.015, .047, .93; N = 20, C = 200, K = 10: -.028, .093, .99; N = 500, C = 100, K = 10: -.002, .019, .96.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, for the bootstrap of predictions.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> values = np.random.default_rng(1).normal(0.7, 0.05, (20, 10))
    >>> out = cs.bbc_folds(xr.DataArray(values, dims=("configuration", "fold")), direction="maximize", rng=1)
    >>> bool(out.estimate < out.naive)
    True
    """
    given = _checked(scores)
    metric = _mean_of(given, direction)
    check_level(level)
    seed = entropy(rng)
    there = given.notnull() | given.isnull().all("configuration")
    eligible = there.all([dim for dim in given.dims if dim != "configuration"]).values
    lost = given["configuration"].values[~eligible]
    if not eligible.any():
        raise InputError("`scores`: no configuration has every score that another has, so that none may be selected.")
    kept = given.isel(configuration=eligible)
    cube = as_cube(kept.rename(fold="sample"), np.zeros(given.sizes["fold"]), kind="value")
    apart = cube.rename(repeat="partition") if "repeat" in cube.dims else cube.expand_dims(partition=1)
    notes: list[str] = []
    runs = listened(notes, lambda: bbc(apart, metric, times=times, rng=seed, level=level, ties="random"))
    average = kept.mean([dim for dim in ("fold", "repeat") if dim in kept.dims])
    best = average.isel(configuration=(metric.sign * average).argmax("configuration"))
    out, wins = runs[list(PARTS)].mean("partition"), runs["win_rate"].mean("partition")
    naive = best.reset_coords(drop=True)
    out = out.assign(
        naive=naive,
        optimism=metric.sign * (naive - out["estimate"]),
        selected=best["configuration"].reset_coords(drop=True),
        win_rate=wins.reindex(configuration=given["configuration"].values, fill_value=0.0),
    ).assign(runs[["n_draws", "n_redrawn"]].sum("partition"))
    said = [f"{len(lost)} configurations lack scores that others have and could not be selected ({show(lost)})"]
    said = said if len(lost) else []
    for part in (part for note in notes for part in note.removeprefix("bbc: ").rstrip(".").split("; ")):
        if "drawn again" not in part:  # usual with folds
            said.append(part.replace("independent samples is", "folds are"))
    warn_once("bbc_folds", said)
    call = call_text("bbc_folds", direction=metric.direction, times=times, rng=rng, level=level)
    return result(out, method="bbc_folds", metric=metric.name, conf_level=level, interval="percentile", call=call)


def _checked(scores: xr.DataArray) -> xr.DataArray:
    """Return scores as doubles, with names along every dim."""
    if not isinstance(scores, xr.DataArray):
        raise InputError(f"`scores` must be a DataArray, such as read_scores() returns; got {type(scores).__name__}.")
    for dim in ("configuration", "fold"):
        if dim not in scores.dims:
            raise InputError(f"`scores` has no dimension {dim!r}; found {show(scores.dims)}.")
    if "sample" in scores.dims:
        raise InputError("`scores` has the dimension 'sample': these are predictions; use winner().")
    if scores.dtype.kind not in "fiub":
        raise InputError(f"`scores` must hold numbers; found dtype {scores.dtype}.")
    found = scores.astype(float)
    if np.isinf(found.values).any():
        raise InputError("`scores` must be finite, or NaN where there is none.")
    folds = int(found.notnull().any([dim for dim in found.dims if dim not in ("fold", "repeat")]).sum("fold").min())
    if folds < FEWEST:
        raise InputError(f"`scores` has {folds} folds; at least {FEWEST} are needed, 10 are advisable.")
    names = {dim: np.arange(size) for dim, size in found.sizes.items() if dim not in found.coords}
    return found.assign_coords(names)


def _mean_of(scores: xr.DataArray, direction: str | None) -> Metric:
    """Return the mean of scores as a metric, with the name and direction that the scores carry."""
    said = str(scores.coords["direction"].item()) if "direction" in scores.coords else None
    if direction is None and said is None:
        raise InputError("`direction` must be 'maximize' or 'minimize': the scores do not say which are better.")
    check_option(direction or said, tuple(DIRECTIONS), "direction")
    turned = DIRECTIONS[direction or str(said)]
    name = str(scores.coords["metric"].item()) if "metric" in scores.coords else "score"
    sign, everything = (1 if turned == "maximize" else -1), (-np.inf, np.inf)
    return Metric(name, turned, everything, "mean", "value", monotone=sign, ingredients=lambda y, p, k: [p + 0 * y])
