"""Resampling as weights: every draw is a row of counts over samples, shared by all configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, Rng, check_count, entropy, nearest, show
from cvstats.cube.align import aligned
from cvstats.cube.arrays import encode_labels
from cvstats.cube.make import check_cube
from cvstats.cube.values import plain_array
from cvstats.kernels.usable import LabelCheck

from .draws import Bootstrap, Draws, Given

if TYPE_CHECKING:
    from cvstats.metrics import Metric

MOST = 2**26  # sums of counts are exact at the cost of digits of what is counted; larger weights are real numbers
CLASS_NEEDS = ("classes", "positive", "negative")  # what metrics require that need certain classes in a draw


def make_draws(cube: xr.DataArray, metric: Metric, times: int, seed: int, strata: Any) -> Bootstrap:
    """Return bootstrap draws of all samples of a cube, drawn again when `metric` could not use them."""
    group, layer = units_of(cube, metric, strata)
    return Bootstrap(cube.sizes["sample"], times, seed, group=group, strata=layer, check=label_check(cube, metric))


def label_check(cube: xr.DataArray, metric: Metric) -> LabelCheck:
    """Return what the labels of a draw must hold for `metric` to be defined, for a cube without batch dims."""
    y, n_classes = encode_labels(cube)
    coords = cube.coords.variables
    event, weight = (coords[name].values.astype(float) if name in coords else None for name in ("event", "weight"))
    return LabelCheck(metric.requires, np.where(np.isnan(y), 0.0, y), event, weight, n_classes)


def units_of(cube: xr.DataArray, metric: Metric, strata: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the codes of groups and strata; ``"auto"`` draws within class where the class ratio does not matter.

    Strata would hide the variance of the class ratio from a metric that depends on it. Classes that were sampled
    separately have sizes fixed in advance, so their samples are always drawn within class.
    """
    group = group_codes(cube, None)
    automatic = isinstance(strata, str) and strata == "auto"
    if automatic:
        within = metric.requires in CLASS_NEEDS and metric.ratio_free and cube["label"].dims == ("sample",)
        strata = "label" if within else None
    layer = strata_codes(cube, strata)
    try:
        check_nested(group, layer)
    except InputError:
        if not automatic:
            raise
        layer = None  # groups that mix classes cannot be drawn within them; unusable draws are drawn again
    if "partner" in cube.dims:
        label = pd.factorize(cube["label"].values)[0]
        layer = label if layer is None else np.unique(layer * (label.max() + 1) + label, return_inverse=True)[1]
        check_nested(group, layer)
    return group, layer


def given_draws(weights: xr.DataArray | Draws, cube: xr.DataArray, argument: str = "draws") -> Draws:
    """Return draws over the samples of a cube, from the caller's labelled weights or as they are."""
    if isinstance(weights, Draws):
        if weights.n != cube.sizes["sample"]:
            raise InputError(f"`{argument}` are over {weights.n} samples, but the cube has {cube.sizes['sample']}.")
        return weights
    if not isinstance(weights, xr.DataArray) or set(weights.dims) != {"draw", "sample"}:
        raise InputError(f"`{argument}` must be a DataArray over 'draw' and 'sample', as bootstrap() returns.")
    values = aligned(weights, cube, argument).transpose("draw", "sample").values
    if values.dtype.kind not in "iubf" or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError(f"`{argument}` must hold finite numbers that are not negative.")
    top = float(values.sum(axis=1, dtype=float).max(initial=0.0))
    whole = values.dtype.kind != "f" or np.array_equal(values, np.rint(values))
    if top > MOST or (top > 0 and not whole):  # by a power of two, which changes no digit
        return Given(np.ldexp(values.astype(float), -int(np.ceil(np.log2(top)))))
    return Given(values.astype(np.int32) if values.dtype.kind == "f" and whole else values)


def bootstrap(
    cube: xr.DataArray,
    times: int = 1000,
    *,
    rng: Rng = None,
    groups: Any = None,
    strata: Any = None,
) -> xr.DataArray:
    """Return bootstrap draws as counts over samples, what ``draws=`` of the protocols takes.

    Each draw takes N of N samples with replacement; a sample is left out with probability (1 - 1/N)^N, about .37.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinates named below) matter.
    times : int
        Number of draws.
    rng : int or numpy.random.Generator, optional
        Seed or generator; the same seed gives the same draws, and the first draws do not depend on `times`.
    groups : str or array-like, optional
        Clusters to draw whole: a coordinate's name or one value per sample; ``group`` of the cube by default.
    strata : str or array-like, optional
        Classes to draw within: a coordinate's name (such as ``"label"``) or one value per sample. A group that lies in
        several strata is an error.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``; every row adds up to the number of samples unless groups differ in size.

    References
    ----------
    Efron (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics 7, 1-26.
    doi:10.1214/aos/1176344552

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2], [0.6]], [1, 0, 1])
    >>> cs.bootstrap(cube, 2, rng=1).sum("sample").values
    array([3, 3])
    """
    check_cube(cube)
    check_count(times, "times")
    group, layer = group_codes(cube, groups), strata_codes(cube, strata)
    check_nested(group, layer)
    draws = Bootstrap(cube.sizes["sample"], times, entropy(rng), group=group, strata=layer)
    return _labelled(draws.block(0, times)[0], cube)


def subsample(cube: xr.DataArray, times: int = 1000, *, fraction: float = 0.632, rng: Rng = None) -> xr.DataArray:
    """Return draws without replacement: each holds the share `fraction` of the samples (or of the groups) once.

    The default share is that of the distinct samples in a bootstrap draw, so about as many are left to judge. A draw
    then chooses on fewer samples than a bootstrap draw counts, and the choice is noisier.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinate ``group``) matter.
    times : int
        Number of draws.
    fraction : float
        Share of the samples in a draw; it must leave samples both in and out.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``, 0 or 1; what ``draws=`` of the protocols takes.

    References
    ----------
    Politis, Romano (1994). Large sample confidence regions based on subsamples under minimal assumptions. Annals of
    Statistics 22, 2031-2050. doi:10.1214/aos/1176325770

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2], [0.6], [0.1]], [1, 0, 1, 0])
    >>> cs.subsample(cube, 2, fraction=0.5, rng=1).sum("sample").values
    array([2, 2])
    """
    check_cube(cube)
    check_count(times, "times")
    group = group_codes(cube, None)
    units = cube.sizes["sample"] if group is None else int(group.max()) + 1
    size = round(fraction * units)
    if not 0 < fraction < 1 or not 0 < size < units:
        raise InputError(f"`fraction` must leave samples both in and out of a draw; {fraction!r} of {units} does not.")
    seed = entropy(rng)
    counts = np.zeros((times, units), np.int32)
    for row in range(times):
        words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(row,))).random_raw(units)
        counts[row, np.argsort(words, kind="stable")[:size]] = 1
    return _labelled(counts if group is None else counts[:, group], cube)


def jackknife(cube: xr.DataArray) -> xr.DataArray:
    """Return the leave-one-out weights: draw i leaves out sample i (or group i).

    Its spread gives standard errors of smooth statistics; for quantiles and other jagged ones it fails, and N draws
    hold the cube N times over: use `bootstrap` for large N.

    Parameters
    ----------
    cube : DataArray
        Only its samples (and the coordinate ``group``) matter.

    Returns
    -------
    xarray.DataArray
        ``weights`` over ``draw, sample``, 0 or 1.

    References
    ----------
    Efron, Stein (1981). The jackknife estimate of variance. Annals of Statistics 9, 586-596. doi:10.1214/aos/1176345462

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.jackknife(cs.as_cube([[0.9], [0.2]], [1, 0])).values
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    check_cube(cube)
    group = group_codes(cube, None)
    units = cube.sizes["sample"] if group is None else int(group.max()) + 1
    weights = 1 - np.eye(units, dtype=np.int32)
    return _labelled(weights if group is None else weights[:, group], cube)


def _labelled(counts: np.ndarray, cube: xr.DataArray) -> xr.DataArray:
    coords = {"draw": np.arange(len(counts)), "sample": cube["sample"].variable}
    return xr.DataArray(counts, dims=("draw", "sample"), coords=coords, name="weights")


def sample_values(cube: xr.DataArray, given: Any, argument: str) -> np.ndarray:
    """Return one value per sample from a coordinate's name, a DataArray or an array."""
    n = cube.sizes["sample"]
    if isinstance(given, str):
        if given not in cube.coords:
            raise InputError(
                f"`{argument}`={given!r} is not a coordinate of the cube{nearest(given, map(str, cube.coords))}."
            )
        values = cube.coords[given]
        if values.dims != ("sample",):
            raise InputError(f"`{argument}`={given!r} must have the one dimension 'sample'; found {show(values.dims)}.")
        return np.asarray(values.values)
    values = plain_array(given)
    if values.shape != (n,):
        raise InputError(f"`{argument}` must have one value per sample ({n}); got shape {values.shape}.")
    if pd.isna(values).any():
        missing = cube["sample"].values[pd.isna(values)]
        raise InputError(f"`{argument}` are missing for samples {show(missing)}; every sample needs one.")
    return values


def group_codes(cube: xr.DataArray, groups: Any) -> np.ndarray | None:
    """Return codes of the clusters, by default those of the cube's ``group`` coordinate."""
    if groups is None:
        if "group" not in cube.coords:
            return None
        groups = "group"
    codes: np.ndarray = pd.factorize(sample_values(cube, groups, "groups"))[0]
    return codes


def strata_codes(cube: xr.DataArray, strata: Any) -> np.ndarray | None:
    """Return codes of the strata, or None."""
    if strata is None:
        return None
    values = sample_values(cube, strata, "strata")
    codes: np.ndarray = pd.factorize(values, sort=values.dtype.kind != "O")[0]
    return codes


def check_nested(group: np.ndarray | None, strata: np.ndarray | None) -> None:
    """Raise when a cluster lies in more than one stratum, because it could not be drawn whole within one."""
    if group is None or strata is None:
        return
    low, high = np.full(group.max() + 1, strata.max() + 1), np.full(group.max() + 1, -1)
    np.minimum.at(low, group, strata)
    np.maximum.at(high, group, strata)
    if (low != high).any():
        raise InputError(
            f"`strata` split {int((low != high).sum())} of {len(low)} groups; groups are drawn whole, "
            "so each must lie in one stratum. Use strata=None."
        )
