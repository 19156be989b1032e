"""Classical tests of two configurations on one data set: McNemar and DeLong."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, check_option, warn
from cvstats._results import call_text, result

from .pairs import one_configuration, one_pair


def mcnemar_test(cube: xr.DataArray, *, a: Hashable, b: Hashable, distribution: str = "exact") -> xr.Dataset:
    """Test whether two configurations have the same accuracy on the same samples.

    Only samples that one of them gets right and the other wrong count. Under the null hypothesis the number
    ``n_a`` that only `a` gets right is binomial with probability 1/2 out of ``n_a + n_b``.

    Parameters
    ----------
    cube : DataArray
        Predictions of class labels, or of scores with a threshold. One repeat.
    a, b : label
        The configurations.
    distribution : {"exact", "chi2", "corrected"}
        Exact binomial; McNemar's chi-square ``(n_a - n_b)**2 / (n_a + n_b)``; or the same with the continuity
        correction ``(|n_a - n_b| - 1)**2``.

    Returns
    -------
    Dataset
        ``estimate`` (difference of accuracies, a - b) with its ``std_error``; ``statistic`` (``n_a`` for the exact
        test), ``df``, ``p_value``; ``n_a``, ``n_b`` and ``n``.

    Notes
    -----
    Where the two never differ, p is 1. Samples are taken as independent and the models as given: with repeats,
    clusters or case weights use `contrast`.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12, 153-157. https://doi.org/10.1007/BF02295996

    Examples
    --------
    >>> import cvstats as cs
    >>> predictions = [[1, 0], [0, 1], [1, 0], [0, 0], [1, 0], [1, 0]]
    >>> cube = cs.as_cube(predictions, [1, 0, 1, 0, 1, 1], configurations=["a", "b"])
    >>> test = cs.mcnemar_test(cube, a="a", b="b")
    >>> int(test.n_a), int(test.n_b), float(test.p_value)
    (5, 0, 0.0625)
    """
    from scipy.special import bdtr, chdtrc

    from cvstats.cube.arrays import problem
    from cvstats.judge import map_batches
    from cvstats.metrics import bound_metric

    check_option(distribution, ("exact", "chi2", "corrected"), "distribution")
    places = one_pair(cube, a, b)
    _refuse(cube, "mcnemar_test")
    accuracy = bound_metric("accuracy", cube)
    for dim in ("repeat", "inner_repeat"):
        if cube.sizes.get(dim, 1) > 1:
            raise InputError(
                f"mcnemar_test needs one prediction per sample, but the cube has {cube.sizes[dim]} along {dim!r}; "
                f"pick one with .isel({dim}=0), or use contrast(), which averages over them."
            )

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        data = problem(part.isel(configuration=list(places)), accuracy)
        p = data.read("label")[..., 0]
        seen = ~np.isnan(p).any(axis=1)
        y = data.y if data.y.ndim == 1 else data.y[:, 0]
        right = p[seen] == y[seen, None]
        n_a, n_b, n = int((right[:, 0] & ~right[:, 1]).sum()), int((right[:, 1] & ~right[:, 0]).sum()), int(seen.sum())
        off = n_a + n_b
        if distribution == "exact":
            statistic, df, p_value = float(n_a), np.nan, min(1.0, 2 * float(bdtr(min(n_a, n_b), off, 0.5)))
        else:
            gap = max(abs(n_a - n_b) - (distribution == "corrected"), 0)
            statistic, df = (gap**2 / off if off else 0.0), 1.0
            p_value = float(chdtrc(1, statistic))
        difference = (n_a - n_b) / n if n else np.nan
        error = np.sqrt(max(off / n - difference**2, 0.0) / n) if n else np.nan
        values = {
            "estimate": difference,
            "std_error": error,
            "statistic": statistic,
            "df": df,
            "p_value": p_value if n else np.nan,
            "n_a": n_a,
            "n_b": n_b,
            "n": n,
        }
        return xr.Dataset(values)

    name = "McNemar test" + ("" if distribution == "chi2" else f" ({distribution})")
    call = call_text("mcnemar_test", a=a, b=b, distribution=distribution)
    return result(map_batches(one, cube), method=name, metric="accuracy", call=call, cube=cube)


def delong_test(
    cube: xr.DataArray, *, a: Hashable, b: Hashable, other: xr.DataArray | None = None, level: float = 0.95
) -> xr.Dataset:
    """Test whether two configurations have the same area under the ROC curve.

    The estimand is the difference of AUCs, a - b. Its standard error comes from DeLong's structural components, the
    mean placement of every positive among the negatives and of every negative among the positives; on the same
    samples their covariance is used (paired, normal statistic), on other samples the variances add (unpaired,
    Student's t with Welch's degrees of freedom, as pROC).

    Parameters
    ----------
    cube : DataArray
        Scores or probabilities for two classes. Over repeats, AUCs and components are averaged.
    a, b : label
        The configurations.
    other : DataArray, optional
        A second cube, on other samples, in which `b` is looked up: the unpaired test.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        ``estimate, std_error, conf_low, conf_high, statistic, df`` (NaN when paired), ``p_value``; ``estimate_a`` and
        ``estimate_b`` with ``std_error_a`` and ``std_error_b``; ``n``.

    Notes
    -----
    Higher scores always mean the positive class: nothing is flipped. Identical rankings and perfect separation by
    both have no variance: NaN and one warning. Models are taken as given, and pooling scores over folds assumes that
    they are comparable. Never use it to compare the winner with the rest: selection makes it optimistic.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44, 837-845. https://doi.org/10.2307/2531595
    Sun, Xu (2014), IEEE Signal Processing Letters 21, 1389-1393. https://doi.org/10.1109/LSP.2014.2337313

    Examples
    --------
    >>> import cvstats as cs
    >>> scores = [[0.9, 0.4], [0.8, 0.9], [0.3, 0.5], [0.7, 0.6], [0.2, 0.3], [0.4, 0.8]]
    >>> cube = cs.as_cube(scores, [1, 1, 0, 1, 0, 0], configurations=["a", "b"])
    >>> test = cs.delong_test(cube, a="a", b="b")
    >>> round(float(test.estimate), 4), round(float(test.p_value), 4)
    (0.3333, 0.2207)
    """
    from cvstats.judge import map_batches

    level = check_level(level)
    if other is None:
        first, second = one_pair(cube, a, b)
    else:
        from cvstats.cube.make import check_cube

        check_cube(cube)
        check_cube(other)
        first, second = one_configuration(cube, a, "a"), one_configuration(other, b, "b")
        _refuse(other, "delong_test")
    _refuse(cube, "delong_test")
    flat: list[bool] = []

    def one(part: xr.DataArray, companion: xr.DataArray | None) -> xr.Dataset:
        if companion is None:
            ten, one_, n = _components(part.isel(configuration=[first, second]))
            area, covariance = delong(ten, one_)
            found = _paired(area, covariance, level)
        else:
            ten, one_, n = _components(part.isel(configuration=[first]))
            area_a, var_a = delong(ten, one_)
            ten, one_, n_b = _components(companion.isel(configuration=[second]))
            area_b, var_b = delong(ten, one_)
            found = _unpaired(float(area_a[0]), float(area_b[0]), float(var_a[0, 0]), float(var_b[0, 0]), n, n_b, level)
            n += n_b
        flat.append(bool(np.isnan(found["statistic"])))
        return xr.Dataset({**found, "n": n})

    out = map_batches(one, cube, other)
    if any(flat):
        cells = f" in {sum(flat)} of {len(flat)} cells" if len(flat) > 1 else ""
        warn(f"delong_test: no variance to test against (one class, equal rankings or perfect separation){cells}: NaN.")
    kind = "DeLong test (paired)" if other is None else "DeLong test (unpaired)"
    call = call_text("delong_test", a=a, b=b, other=other, level=level)
    interval = "normal" if other is None else "t"
    return result(out, method=kind, metric="auc", conf_level=level, interval=interval, call=call, cube=cube)


def _refuse(cube: xr.DataArray, test: str) -> None:
    for name in ("weight", "group"):
        if name in cube.coords:
            raise InputError(
                f"{test} takes samples as independent and equally weighted, but the cube has the coordinate {name!r}; "
                f"use contrast(), or drop it with .drop_vars({name!r})."
            )


def _components(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the structural components of every configuration, averaged over repeats, and the number of samples."""
    from cvstats.cube.arrays import problem
    from cvstats.metrics import bound_metric

    data = problem(cube, bound_metric("auc", cube))
    if data.model is not None:
        raise InputError(
            "metric 'auc' ranks predictions of different samples, and delong_test takes them for those of one model, "
            "but in a separate-sampling cube (dimension 'partner') every pair of folds has its own; use contrast()."
        )
    if data.n_classes != 2 or data.p.ndim == 4:
        raise InputError("delong_test is for two classes; compare multi-class AUCs with contrast().")
    seen = ~np.isnan(data.p).any(axis=(1, 2))
    y = (data.y if data.y.ndim == 1 else data.y[:, 0])[seen]
    scores = np.moveaxis(data.p[seen], 0, -1)  # configuration, repeat, sample
    ten, one = placements(np.asarray(scores, float), y == 1)
    return ten.mean(axis=1), one.mean(axis=1), int(seen.sum())


def placements(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each positive's share of negatives below it, and each negative's share of positives above it.

    From mid-ranks within the class and overall (last axis: samples), so in O(n log n).
    """
    from scipy.stats import rankdata

    above, below = scores[..., positive], scores[..., ~positive]
    m, n = above.shape[-1], below.shape[-1]
    everybody = rankdata(np.concatenate([above, below], axis=-1), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ten = (everybody[..., :m] - rankdata(above, axis=-1)) / n
        one = 1 - (everybody[..., m:] - rankdata(below, axis=-1)) / m
    return ten, one


def delong(ten: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return AUCs and their covariance matrix from components (configuration, sample of the class)."""
    m, n = ten.shape[-1], one.shape[-1]
    k = len(ten)
    if m == 0 or n == 0:
        return np.full(k, np.nan), np.full((k, k), np.nan)
    area = ten.mean(axis=-1)
    if m < 2 or n < 2:
        return area, np.full((k, k), np.nan)
    return area, np.atleast_2d(np.cov(ten)) / m + np.atleast_2d(np.cov(one)) / n


def _paired(area: np.ndarray, covariance: np.ndarray, level: float) -> dict[str, float]:
    from scipy.special import ndtr, ndtri

    # rounding leaves a trace where the two components are equal
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    floor = 1e-13 * float(covariance[0, 0] + covariance[1, 1])
    error = np.sqrt(variance) if variance > floor else np.nan
    difference = float(area[0] - area[1])
    statistic = difference / error
    half = float(ndtri((1 + level) / 2)) * error
    return {
        "estimate": difference,
        "std_error": error,
        "conf_low": difference - half,
        "conf_high": difference + half,
        "statistic": statistic,
        "df": np.nan,
        "p_value": 2 * float(ndtr(-abs(statistic))),
        **_each(area, np.diag(covariance)),
    }


def _unpaired(a: float, b: float, var_a: float, var_b: float, n_a: int, n_b: int, level: float) -> dict[str, float]:
    from scipy.special import stdtr, stdtrit

    variance = var_a + var_b
    error = np.sqrt(variance) if variance > 0 else np.nan
    df = variance**2 / (var_a**2 / (n_a - 1) + var_b**2 / (n_b - 1)) if variance > 0 else np.nan
    statistic = (a - b) / error
    half = float(stdtrit(df, (1 + level) / 2)) * error
    return {
        "estimate": a - b,
        "std_error": error,
        "conf_low": a - b - half,
        "conf_high": a - b + half,
        "statistic": statistic,
        "df": df,
        "p_value": 2 * float(stdtr(df, -abs(statistic))),
        **_each(np.array([a, b]), np.array([var_a, var_b])),
    }


def _each(area: np.ndarray, variance: np.ndarray) -> dict[str, float]:
    error = np.sqrt(variance)
    return {
        "estimate_a": float(area[0]),
        "estimate_b": float(area[1]),
        "std_error_a": float(error[0]),
        "std_error_b": float(error[1]),
    }
