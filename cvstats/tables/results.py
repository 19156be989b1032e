"""Results put together and read again: bind and confint."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, plain, show, warn
from cvstats.compare.location import wald
from cvstats.intervals import Calibration, quantiles
from cvstats.metrics import traits_of

LIMITS = ("conf_low", "conf_high", "bound_low", "bound_high")


def bind(*results: xr.Dataset, **named: xr.Dataset) -> xr.Dataset:
    """Stack results along ``method``.

    Parameters
    ----------
    *results : Dataset
        Results of protocols or tests, or of `bind` itself. Labels along shared dims must agree.
    **named : Dataset
        Results to stack under the given name instead of their own, for example the same protocol with other settings.
        `winner` beside `bbc`, when both used that estimator, becomes ``"winner (bbc)"`` without being named.

    Returns
    -------
    Dataset
        With a ``method`` dim; ``metric`` (unless it is a dim), ``conf_level``, ``interval`` and ``by`` run along it.
        What a method does not offer is NaN (an empty string for text). Results about different winners come with a
        warning, and ``selected`` says who they are.

    Raises
    ------
    InputError
        Two results have one name, disagree in the labels of a shared dim, or are no results; or some are about a list
        of metrics and others about a single one.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> a = xr.DataArray([0.1, 0.3, 0.2, 0.5], dims="fold")
    >>> both = cs.bind(plain=cs.t_test(a, "fold"), corrected=cs.corrected_t_test(a, "fold", test_fraction=0.25))
    >>> both.std_error.round(3).values.tolist()
    [0.085, 0.13]
    """
    given = [*results, *named.values()]
    if not given:
        raise InputError("`bind` needs at least one result.")
    for one in given:
        if not isinstance(one, xr.Dataset):
            raise InputError(f"`bind` stacks results (Datasets); got {type(one).__name__}.")
    if 0 < sum("metric" in one.dims for one in given) < len(given):
        raise InputError(
            "`bind` got results of a list of metrics and of a single one; give every function a list, or pick one "
            "metric with .sel(metric=...)."
        )
    parts = [_with_method(one, None) for one in results] + [_with_method(one, name) for name, one in named.items()]
    if any("by" in part.coords for part in parts):  # what is judged by one metric was chosen by it
        parts = [part if "by" in part.coords else part.assign_coords(by=part["metric"].variable) for part in parts]
    parts = _told_apart(parts, given)
    labels = [plain(label) for part in parts for label in part["method"].values]
    twice = sorted({str(label) for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(f"`bind` got method {show(twice)} more than once; name them: bind(first=..., second=...).")
    for part in parts[1:]:
        _check_same_labels(parts[0], part)
    stacked = xr.concat(
        _completed(parts),
        dim="method",
        data_vars="minimal",
        coords="minimal",
        join="outer",
        compat="override",
        combine_attrs="drop",
    )
    stacked = stacked.assign_coords(method=np.array(labels) if all(isinstance(n, str) for n in labels) else labels)
    stacked.attrs = {
        "cvstats_version": str(given[0].attrs.get("cvstats_version", "")),
        "call": f"bind({', '.join(str(one.attrs.get('call', '')) for one in given)})",
    }
    _warn_winners(stacked)
    hashes = {one.attrs.get("cube_hash") for one in given}
    if len(hashes) == 1 and None not in hashes:
        stacked.attrs["cube_hash"] = hashes.pop()
    return stacked


def _warn_winners(stacked: xr.Dataset) -> None:
    """Warn when results are about different winners; results that name none do not count."""
    if "selected" not in stacked or stacked["selected"].dims[:1] != ("method",):
        return
    table = stacked["selected"].values.reshape(stacked.sizes["method"], -1)
    for cell in table.T:
        named = {str(m): plain(w) for m, w in zip(stacked["method"].values, cell, strict=True) if w == w and w != ""}
        if len(set(named.values())) > 1:
            who = show([f"{winner} ({method})" for method, winner in named.items()])
            warn(f"bind: the results are about different winners, see `selected`: {who}.")
            return


def _with_method(one: xr.Dataset, name: str | None) -> xr.Dataset:
    if "method" in one.dims:
        if name is not None:
            raise InputError(f"`bind`: {name!r} already has a `method` dim of its own; pass it without a name.")
        return one
    if "method" not in one.coords and name is None:
        raise InputError("`bind` needs results with a `method` coordinate, as every cvstats function returns them.")
    label = name if name is not None else plain(one["method"].values[()])
    wide = one.drop_vars("method", errors="ignore").expand_dims(method=[label])
    for name in ("metric", "conf_level", "interval", "by"):
        if name in one.coords and name not in one.dims:
            wide = wide.assign_coords({name: (("method", *one[name].dims), one[name].values[None])})
    return wide


def _told_apart(parts: list[xr.Dataset], given: list[xr.Dataset]) -> list[xr.Dataset]:
    """Name results of one method by the function that made them too: `winner` may have used the estimator of `bbc`."""
    functions = [str(one.attrs.get("call", "")).split("(")[0] for one in given]
    makers = [(plain(part["method"].values[0]), name) for part, name in zip(parts, functions, strict=True)]
    labels = [plain(label) for part in parts for label in part["method"].values]
    out = []
    for part, maker in zip(parts, makers, strict=True):
        label, function = maker
        alone = part.sizes["method"] == 1 and makers.count(maker) == 1
        clash = alone and labels.count(label) > 1 and function not in ("", label)
        out.append(part.assign_coords(method=[f"{function} ({label})"]) if clash else part)
    return out


def _check_same_labels(first: xr.Dataset, part: xr.Dataset) -> None:
    for dim in [dim for dim in first.dims if dim in part.dims and dim != "method"]:
        if dim in first.indexes and dim in part.indexes:
            mine, theirs = first.indexes[dim], part.indexes[dim]
            found = show([*mine.difference(theirs, sort=False), *theirs.difference(mine, sort=False)])
        else:
            sizes = first.sizes[dim], part.sizes[dim]
            found = "" if sizes[0] == sizes[1] else f"{sizes[0]} and {sizes[1]} values"
        if found:
            raise InputError(f"`bind`: results disagree along {dim!r}: {found} not in all of them; select first.")


def _completed(parts: list[xr.Dataset]) -> list[xr.Dataset]:
    """Return the parts with what each lacks, empty, so that stacking never guesses a dtype."""
    known = {name: values.variable for part in reversed(parts) for name, values in part.data_vars.items()}

    def empty(like: xr.Variable, part: xr.Dataset) -> xr.Variable:
        wide = like.isel(method=[0] * part.sizes["method"], missing_dims="ignore")
        return xr.Variable(wide.dims, np.full(wide.shape, "" if wide.dtype.kind in "UOT" else np.nan))

    return [part.assign({k: empty(v, part) for k, v in known.items() if k not in part}) for part in parts]


def confint(result: xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Return `result` with its interval at another level.

    The kind of interval stays what it is. Calibrated intervals (`winner`) are computed again from the few numbers that
    the result keeps of them, percentile intervals from kept draws (``keep_draws=True``; type 7 quantiles); t-based
    tests get ``estimate`` plus or minus the Student quantile times ``std_error``.

    Parameters
    ----------
    result : Dataset
        A result with ``calibration``, with ``draw_estimate(draw)``, or with ``std_error`` and ``df``.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        A copy with ``conf_low``, ``conf_high`` (and one-sided bounds, where there were any) and the coordinates
        ``conf_level`` and ``interval`` replaced. One-sided alternatives become two-sided intervals. Limits of
        differences between subgroups are NaN, with one warning: results do not keep what they are made of.

    Raises
    ------
    InputError
        `result` does not keep what its interval is made of, or holds intervals of several kinds.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> test = cs.t_test(xr.DataArray([0.1, 0.3, 0.2, 0.5], dims="trial"), "trial")
    >>> cs.confint(test, level=0.5).conf_low.round(4).item()
    0.2097
    """
    level = check_level(level)
    if not isinstance(result, xr.Dataset):
        raise InputError(f"`result` must be a result (Dataset); got {type(result).__name__}.")
    ends = [(1 - level) / 2, (1 + level) / 2, 1 - level, level]
    kinds = np.unique(result["interval"].values).tolist() if "interval" in result.coords else ["percentile"]
    kind = str(kinds[0])
    if len(kinds) > 1:
        raise InputError(f"`result` holds intervals of several kinds ({show(kinds)}); re-read each before bind().")
    if kind == "calibrated" and "calibration" in result:
        limits = _calibrated(result["calibration"], level)
    elif kind == "percentile" and "draw_estimate" in result:
        kept = result["draw_estimate"]
        if bool(kept.isnull().all("draw").any()):
            warn("confint: no draw could be used, so limits are NaN.")
            kept = kept.where(kept.notnull().any("draw"), 0.0)
        drawn = xr.apply_ufunc(
            quantiles, kept, ends, input_core_dims=[["draw"], ["end"]], output_core_dims=[["end"]]
        ).where(result["draw_estimate"].notnull().any("draw"))
        if "bbc_plain" in result:  # the estimate is not their mean
            drawn = _clipped(drawn + (result["estimate"] - result["bbc_plain"]), result)
        limits = [drawn.isel(end=at) for at in range(4)]
    elif kind == "t" and {"estimate", "std_error", "df"} <= set(result.data_vars) and "predict_low" not in result:
        test = wald(result["estimate"], result["std_error"], result["df"].values, level, bounds=True)
        limits = [test[name] for name in LIMITS]
    else:
        raise InputError(
            f"`result` does not keep what its interval ({kind}) is made of; run its function again with level= set to "
            "what is wanted (a percentile interval can be re-read after keep_draws=True)."
        )
    found = result.assign(conf_low=limits[0], conf_high=limits[1])
    if "bound_low" in result:
        found = found.assign(bound_low=limits[2], bound_high=limits[3])
    if "difference_low" in result:
        gone = {name: result[name] * np.nan for name in ("difference_low", "difference_high")}
        found = found.assign(gone)
        warn("confint: what limits of differences between subgroups are made of is not kept: they are NaN.")
    for name, value in (("conf_level", level), ("interval", kind)):
        old = result.coords[name] if name in result.coords else xr.DataArray(0)
        found = found.assign_coords({name: (old.dims, np.full(old.shape, value))})
    return found


def _clipped(limits: xr.DataArray, result: xr.Dataset) -> xr.DataArray:
    """Return limits within the range of the metric that each belongs to."""
    names = result["metric"]
    ranges = [getattr(traits_of(str(name)), "range", (-np.inf, np.inf)) for name in np.ravel(names.values)]
    low, high = (names.copy(data=np.reshape(ends, names.shape)) for ends in zip(*ranges, strict=True))
    return limits.clip(low, high)


def _calibrated(kept: xr.DataArray, level: float) -> list[xr.DataArray]:
    """Return conf_low, conf_high, bound_low and bound_high from the numbers that a result keeps."""

    def limits(numbers: np.ndarray) -> np.ndarray:
        if np.isnan(numbers).all():
            return np.full(4, np.nan)
        one = Calibration(*numbers.tolist())
        return np.array([*one.limits(level)[:2], *(one.limits(2 * level - 1)[:2] if level > 0.5 else (np.nan, np.nan))])

    found = xr.apply_ufunc(
        limits, kept, input_core_dims=[["calibration_part"]], output_core_dims=[["end"]], vectorize=True
    )
    return [found.isel(end=at) for at in range(4)]
