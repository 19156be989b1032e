"""Does an interval hold its level? Simulate, estimate, compare with the truth, and count."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, check_option, check_rng, show
from cvstats._results import result
from cvstats.compare.location import moments
from cvstats.metrics import traits_of

from .fixed import Floats

READ = ("estimate", "conf_low", "conf_high", "bound_low", "bound_high")


def coverage(
    simulator: Callable[[np.random.Generator], Any],
    method: Callable[..., xr.Dataset],
    *,
    repetitions: int = 1000,
    direction: str | None = None,
    rng: int | np.random.Generator | None = None,
) -> xr.Dataset:
    """Measure how often a method's interval covers the truth, and how far off its estimate is.

    Parameters
    ----------
    simulator : callable
        ``simulator(rng)`` returns a cube with the coordinate ``truth``, or (cube, truth). The truth is in the
        metric's own unit: one number, or a DataArray over ``configuration``, read at the result's ``selected``.
    method : callable
        ``method(cube)`` or ``method(cube, rng=...)`` returns a result with ``estimate`` and, if it has an interval,
        ``conf_low`` and ``conf_high`` (``bound_low`` and ``bound_high`` for one-sided bounds).
    repetitions : int
        Number of simulated cubes. Repetition i has its own random stream, so the first ones of a longer study are
        those of a shorter one.
    direction : {"maximize", "minimize"}, optional
        ``"maximize"`` or ``"minimize"``; by default that of the result's ``metric``.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        ``coverage`` (truth inside the limits), ``truth_below`` and ``truth_above`` (how it was missed),
        ``coverage_low`` and ``coverage_high`` (truth on the right side of the one-sided bounds; NaN without them),
        ``bias`` (positive = optimistic), ``rmse``, ``width`` (mean) and ``width_median``; each but the last with its
        Monte-Carlo standard error (``coverage_std_error`` ...). ``n`` counts repetitions with an estimate and
        ``n_interval`` those with an interval; the others are left out.

    Raises
    ------
    InputError
        The simulator gives no truth; the method returns no estimate, or no ``selected`` when the truth differs between
        configurations.

    Notes
    -----
    500 repetitions tell coverage to within about .02 (two standard errors), 2000 to within .01. Simulated fixed
    models flatter every method; models refitted in each fold (`ripley_mixture`, or your own learner) are the harder
    test.

    References
    ----------
    Morris, White, Crowther (2019). Using simulation studies to evaluate statistical methods. Statistics in Medicine 38,
    2074-2102. doi:10.1002/sim.8086

    Examples
    --------
    >>> import cvstats as cs
    >>> def simulator(rng):
    ...     return cs.simulate_cube(40, 20, rng=rng)
    >>> def method(cube):
    ...     return cs.cvt(cube, "accuracy")
    >>> study = cs.coverage(simulator, method, repetitions=50, rng=1)
    >>> bool(study.bias > 3 * study.bias_std_error), int(study.n)  # the tuned estimate is optimistic
    (True, 50)
    """
    repetitions = check_count(repetitions, "repetitions", minimum=2)
    if direction is not None:
        check_option(direction, ("maximize", "minimize"), "direction")
    parameters = inspect.signature(method).parameters.values()
    pass_rng = any(each.name == "rng" or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    rows: list[dict[str, Floats]] = []
    first = xr.Dataset()
    for stream in check_rng(rng).spawn(repetitions):
        simulated = simulator(stream)
        cube, truth = simulated if isinstance(simulated, tuple) else (simulated, None)
        found = method(cube, rng=stream) if pass_rng else method(cube)
        if not isinstance(found, xr.Dataset) or "estimate" not in found:
            what = show(found.data_vars) if isinstance(found, xr.Dataset) else type(found).__name__
            raise InputError(f"`method` must return a Dataset with 'estimate'; got {what}.")
        rows.append({name: found[name].values.astype(float) for name in READ if name in found})
        rows[-1]["truth"] = _truth(cube, truth, found)
        first = found if len(rows) == 1 else first
    data = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    name = str(first.coords["metric"].item()) if "metric" in first.coords else "none"
    labels = {dim: first[dim] for dim in first["estimate"].dims if dim in first.coords}
    variables = {
        key: xr.DataArray(value, dims=first["estimate"].dims, coords=labels)
        for key, value in _summary(data, _sign(direction, name)).items()
    }
    qualifiers = {key: first.coords[key].item() for key in ("method", "interval", "conf_level") if key in first.coords}
    call = f"coverage(repetitions={repetitions})"
    return result(variables, metric=name, call=call, **({"method": "coverage"} | qualifiers))


def _summary(data: dict[str, Floats], sign: int) -> dict[str, Floats]:
    """Return the shares and means over repetitions (the first axis), with their standard errors."""
    truth, estimate = data["truth"], data["estimate"]
    missing = np.full_like(truth, np.nan)
    low, high, bound_low, bound_high = (data.get(name, missing) for name in READ[1:])
    has = ~np.isnan(low) & ~np.isnan(high)
    error = sign * (estimate - truth)
    events = {
        "coverage": ((low <= truth) & (truth <= high), has),
        "truth_below": (truth < low, has),
        "truth_above": (truth > high, has),
        "coverage_low": (bound_low <= truth, ~np.isnan(bound_low)),
        "coverage_high": (truth <= bound_high, ~np.isnan(bound_high)),
    }
    columns = {name: np.where(known, event, np.nan) for name, (event, known) in events.items()}
    out: dict[str, Floats] = {}
    for name, values in {**columns, "bias": error, "rmse": error**2, "width": high - low}.items():
        m = moments(np.moveaxis(values, 0, -1))
        with np.errstate(divide="ignore"):
            out[name], out[f"{name}_std_error"] = m.mean, m.std_dev / np.sqrt(m.n)
    with np.errstate(invalid="ignore", divide="ignore"):  # delta method for the root
        out["rmse"] = np.sqrt(out["rmse"])
        out["rmse_std_error"] = np.where(out["rmse"] > 0, out["rmse_std_error"] / (2 * out["rmse"]), 0.0)
    out["width_median"] = np.nanmedian(high - low, axis=0) if has.any() else np.full_like(out["width"], np.nan)
    out["n"], out["n_interval"] = (~np.isnan(error)).sum(0), has.sum(0)
    return out


def _truth(cube: xr.DataArray, truth: Any, found: xr.Dataset) -> Floats:
    """Return the truth of what the result is about, shaped like its estimate."""
    if truth is None:
        if "truth" not in cube.coords:
            raise InputError("`simulator` must return a cube with the coordinate 'truth', or (cube, truth).")
        truth = cube.coords["truth"]
    if "configuration" in getattr(truth, "dims", ()) and "configuration" not in found["estimate"].dims:
        if "selected" not in found:
            raise InputError(
                "`method` must return 'selected' when the truth differs between configurations; "
                f"found {show(found.data_vars)}."
            )
        chosen = found["selected"].where(found["estimate"].notnull(), truth["configuration"][0].item())  # none: any
        truth = truth.sel(configuration=chosen)
    if isinstance(truth, xr.DataArray):
        truth = truth.transpose(*found["estimate"].dims).values
    return np.broadcast_to(np.asarray(truth, float), found["estimate"].shape)


def _sign(direction: str | None, metric: str) -> int:
    known = direction or getattr(traits_of(metric), "direction", None)
    if known is None:
        raise InputError(
            f"`direction` must be 'maximize' or 'minimize', because the result's metric {metric!r} does not say which."
        )
    return 1 if known == "maximize" else -1
