"""Three ways to evaluate a tuned classifier over realisations of a benchmark: internal, median, external."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_count, check_dim, nearest, show, warn
from cvstats._results import call_text, names_of, result
from cvstats.cube.align import aligned
from cvstats.cube.arrays import check_cube
from cvstats.kernels.signed_ranks import block_ranks, signed_rank
from cvstats.metrics import Metric, bound_metric, get_metric, score

from .nested import check_inner
from .tuning import Inputs, choose, combined_score, over_batches, per_training_set, readable

KINDS = ("internal", "median", "external")
NOT_TUNING = ("complexity", "truth", "test_")  # how names of coordinates begin that are no tuning values


def evaluation_protocols(
    cube: xr.DataArray,
    metric: str | Metric = "error_rate",
    *,
    selection: xr.DataArray | None = None,
    criterion: str | Metric | None = None,
    inner: xr.DataArray | None = None,
    external: xr.DataArray | None = None,
    parameters: Sequence[str] | None = None,
    first: int = 5,
    dim: str = "realisation",
) -> xr.Dataset:
    """Return what three evaluation protocols report for a classifier that is tuned on a grid.

    - *internal*: tuning values are chosen afresh in every realisation (or fold), from its training part only.
    - *median*: the median of the values chosen in the first realisations is used in all of them. Optimistic: the
      median is less variable than any single choice, and its training samples may be others' test samples.
    - *external*: values are chosen once on all samples that are then used for testing. Optimistic.

    Only the internal protocol estimates how the whole procedure, tuning included, will do. The bias of the others is
    their gain over it, realisation by realisation.

    Parameters
    ----------
    cube : DataArray
        The predictions that are judged, with the dim `dim`: for a test set by models trained on the realisation, or
        cross-validated (with folds) over the realisation's samples. Other batch dims (data sets, classifiers) are
        mapped over.
    metric : str or Metric
        What is reported. Predictions of classes that are numbers, such as -1 and 1, may be judged by errors and chosen
        by squared errors: a number is then positive above the mean of the two.
    selection : DataArray, optional
        Predictions that choose in each realisation, such as leave-one-out predictions of its training set. Their
        samples may differ from those of `cube`.
    criterion : str or Metric, optional
        The metric that chooses (default `metric`). A coordinate ``penalty`` of the predictions that choose is added to
        its loss.
    inner : DataArray, optional
        Instead of `selection`, for a cross-validated `cube`: inner predictions as `ncv` takes them. They choose per
        outer fold, by `criterion`.
    external : DataArray, optional
        Predictions that choose for the external protocol: with `dim` for each realisation, without it once for all.
        With `inner`, the cube itself by default.
    parameters : sequence of str, optional
        The tuning values: numeric coordinates on ``configuration``. By default all of them except ``complexity`` and
        those named ``truth...`` or ``test_...``, or the configurations themselves when they are numbers.
    first : int
        Number of realisations whose choices the median is taken of. A median that is not on the grid is an error.
    dim : str
        The dimension of the realisations.

    Returns
    -------
    xarray.Dataset
        Over ``protocol``: ``value(protocol, realisation)`` and ``selected`` (empty or NaN when it differs between
        folds), ``estimate`` and ``std_error`` (mean over realisations), ``bias`` and ``bias_std_error`` (positive =
        better than internal), ``statistic`` and ``p_value`` (Wilcoxon signed-rank test against internal),
        ``mean_rank`` (1 = best) and ``n``. Protocols whose inputs are missing are NaN.
        Ties go to the smallest tuning value when configurations are named by numbers, else to the first.

    References
    ----------
    Cawley, Talbot (2010). On over-fitting in model selection and subsequent selection bias in performance
    evaluation. Journal of Machine Learning Research 11, 2079-2107, section 5.
    https://www.jmlr.org/papers/v11/cawley10a.html

    Examples
    --------
    >>> import cvstats as cs
    >>> press, test = cs.ripley_mixture(32, test=True, n_test=500, realisations=20, rng=1)
    >>> out = cs.evaluation_protocols(test, "error_rate", selection=press)
    >>> out.estimate.sel(protocol=["internal", "median"]).values.round(2)
    array([0.17, 0.15])
    """
    check_cube(cube)
    check_dim(cube.dims, dim)
    judge = get_metric(metric)
    cube, original = readable(cube, judge), cube
    bound = bound_metric(judge, cube)
    by = bound if criterion is None else get_metric(criterion)
    first = check_count(first, "first")
    if selection is not None and inner is not None:
        raise InputError("give `selection` or `inner`, not both: each says how a realisation chooses for itself.")
    if selection is None and inner is None and external is None:
        raise InputError(
            "give `selection`, `inner` or `external`: without predictions that choose there is no protocol."
        )
    inputs: dict[str, xr.DataArray | None] = {"cube": cube}
    for name, part in (("selection", selection), ("external", external)):
        inputs[name] = None
        if part is not None:
            inputs[name] = readable(aligned(check_cube(part), cube, name, ("configuration",)), by)
    if selection is not None:
        check_dim(selection.dims, dim, "selection")
    if inner is not None:
        inputs["inner"] = readable(check_inner(original, inner), by)
        inputs["external"] = readable(original, by) if external is None else inputs["external"]
    grid = _tuning_values(cube, parameters)
    chooses = next(inputs[name] for name in ("selection", "inner", "external") if inputs.get(name) is not None)
    assert chooses is not None
    chooser = bound if criterion is None else bound_metric(by, chooses)
    out = over_batches(lambda one: _values(one, bound, chooser, grid, first, dim), inputs, keep=(dim,))
    out = _compared(out, bound, dim)
    given = {"selection": selection, "criterion": criterion, "inner": inner, "external": external}
    call = call_text("evaluation_protocols", metric=bound.name, first=first, dim=dim, **given)
    return result(out, method="evaluation_protocols", metric=bound.name, call=call, cube=original)


def _tuning_values(cube: xr.DataArray, parameters: Sequence[str] | None) -> pd.DataFrame | None:
    """Return the grid (configuration x parameter), or None when configurations carry no tuning values."""
    numeric = [str(name) for name, c in cube.coords.items() if c.dims == ("configuration",) and c.dtype.kind in "iuf"]
    own = [name for name in numeric if name != "configuration"]
    names = [name for name in own if not name.startswith(NOT_TUNING)] or [*{"configuration"} & {*numeric}]
    for name in parameters or ():
        if name not in numeric:
            raise InputError(
                f"`parameters`: {name!r} is not a numeric coordinate on 'configuration'; found {show(own)}"
                f"{nearest(name, own)}."
            )
    names = names if parameters is None else list(parameters)
    return pd.DataFrame({name: cube[name].values.astype(float) for name in names}) if names else None


def _values(
    inputs: Inputs, metric: Metric, criterion: Metric, grid: pd.DataFrame | None, first: int, dim: str
) -> xr.Dataset:
    """Return the value and the choice of every protocol in every realisation."""
    cube = inputs["cube"]
    assert cube is not None
    scores = score(cube, metric).transpose(dim, "configuration").values
    count, names = len(scores), cube["configuration"].values
    values = np.full((len(KINDS), count), np.nan)
    selected = np.full((len(KINDS), count), -1)
    choices: np.ndarray | None = None  # (realisation, number of choices in it)
    selection, inner, external = inputs["selection"], inputs.get("inner"), inputs["external"]
    if selection is not None:
        selected[0] = choose(selection, criterion).values
        values[0], choices = _at(scores, selected[0]), selected[0][:, None]
    elif inner is not None:
        values[0], choices, selected[0] = _nested(cube, inner, metric, criterion, dim)
    if choices is not None and grid is not None:
        selected[1] = _median(choices, grid, first, dim)
        values[1] = _at(scores, selected[1])
    if external is not None:
        selected[2] = choose(external, criterion).values
        values[2] = _at(scores, selected[2])
    both = ("protocol", dim)
    coords = {"protocol": list(KINDS), dim: cube[dim].values}
    return xr.Dataset({"value": (both, values), "selected": (both, names_of(names, selected))}, coords=coords)


def _at(scores: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return each realisation's score of the configuration it uses."""
    return np.where(index >= 0, scores[np.arange(len(scores)), index], np.nan)


def _nested(
    cube: xr.DataArray, inner: xr.DataArray, metric: Metric, criterion: Metric, dim: str
) -> tuple[np.ndarray, ...]:
    """Return value, choices per fold and (when all folds agree) the choice of every realisation."""
    values, choices = [], []
    for i in range(cube.sizes[dim]):
        part, inside = cube.isel({dim: i}), inner.isel({dim: i}) if dim in inner.dims else inner
        chosen = per_training_set(inside, criterion)
        values.append(combined_score(part, metric, inside["outer_fold"].values, chosen))
        choices.append(chosen.ravel())
    table = np.stack(choices)
    return np.array(values), table, np.where((table == table[:, :1]).all(axis=1), table[:, 0], -1)


def _median(choices: np.ndarray, grid: pd.DataFrame, first: int, dim: str) -> int:
    """Return the configuration at the median of each tuning value over the first realisations' choices, -1 without."""
    if first > len(choices):
        raise InputError(f"`first`={first} realisations are asked for, but {dim!r} has {len(choices)}; lower it.")
    index = choices[:first].ravel()
    if (index < 0).all():
        return -1
    median = grid.iloc[index[index >= 0]].median()
    same = np.isclose(grid.to_numpy(), median.to_numpy(), rtol=1e-9, atol=0.0, equal_nan=True).all(axis=1)
    if not same.any():
        wanted = ", ".join(f"{name}={value:g}" for name, value in median.items())
        raise InputError(
            f"the median of the values chosen in the first {first} realisations, {wanted}, is not on the grid; add "
            "that combination as a configuration, or take the median of an odd number of realisations of one parameter."
        )
    return int(np.flatnonzero(same)[0])


def _compared(out: xr.Dataset, metric: Metric, dim: str) -> xr.Dataset:
    """Return means, bias against the internal protocol, its test, and ranks."""
    value = out["value"].transpose(..., dim, "protocol")
    count = value.count(dim)
    gain = (metric.sign * (value - value.sel(protocol="internal"))).where(value["protocol"] != "internal")
    test = signed_rank(np.swapaxes(gain.values, -1, -2), "two-sided", digits=9)  # ties are ties, whatever the last bit
    flat = ((test["n"] == 0) & (gain.count(dim) > 0)).values
    if value.sizes[dim] > 1 and flat.any():
        warn(f"evaluation_protocols: no difference to test in {flat.sum()} of {flat.size} cells: NaN.")
    lost = np.nan if value.sizes[dim] < 2 else 1.0
    out["estimate"], out["std_error"] = value.mean(dim), _error(value, dim)
    out["bias"], out["bias_std_error"] = gain.mean(dim), _error(gain, dim)
    for name in ("statistic", "p_value"):
        out[name] = out["bias"].copy(data=lost * test[name])
    out["mean_rank"] = xr.full_like(out["estimate"], np.nan)
    ready = [name for name in KINDS if bool((count.sel(protocol=name) > 0).any())]
    if len(ready) > 1:
        ranks = block_ranks(value.sel(protocol=ready).values, metric.direction)[1]
        out["mean_rank"].loc[{"protocol": ready}] = ranks
    out["n"] = count
    return out


def _error(values: xr.DataArray, dim: str) -> xr.DataArray:
    """Return the standard error of the mean; NaN for fewer than two values."""
    more = values.count(dim) - 1
    return (((values - values.mean(dim)) ** 2).mean(dim) / more.where(more > 0)) ** 0.5
