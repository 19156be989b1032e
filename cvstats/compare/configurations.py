"""Classical tests of two configurations on one data set: McNemar and DeLong."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_level, check_option, nearest, plain, show, warn
from cvstats._results import call_text, result
from cvstats.cube.arrays import check_cube, map_batches, problem_on
from cvstats.kernels.placements import delong, placements
from cvstats.metrics import bound_metric

from .batch import in_cells
from .location import wald

# what a result says it is about; the summary repeats it
MODELS = "these fitted models, not the methods that made them; contrast() is about methods"


def mcnemar_test(cube: xr.DataArray, *, a: Hashable, b: Hashable, distribution: str = "exact") -> xr.Dataset:
    """Test whether two fitted models have the same accuracy on the same samples.

    Models are taken as given: whether the two *methods*, trained on other samples, would differ is the question of
    `contrast`. Only samples that one of them gets right and the other wrong count. Under the null hypothesis the number
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
    Where the two never differ, p is 1. Samples are taken as independent: with repeats, clusters or case weights use
    `contrast`. Of cross-validated predictions, equal methods are called different in 2 to 17 % of data sets at the 5 %
    level (exact).

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

    check_option(distribution, ("exact", "chi2", "corrected"), "distribution")
    pair = loaded(cube, a=a, b=b)
    _refuse(cube, "mcnemar_test")
    accuracy = bound_metric("accuracy", cube)
    for dim in ("repeat", "inner_repeat"):
        if cube.sizes.get(dim, 1) > 1:
            raise InputError(
                f"mcnemar_test needs one prediction per sample, but the cube has {cube.sizes[dim]} along {dim!r}; "
                f"pick one with .isel({dim}=0), or use contrast(), which averages over them."
            )

    def one(part: xr.DataArray) -> xr.Dataset:
        data = problem_on(part, accuracy, look=False)
        p = data.read("label")[..., 0]
        seen = ~np.isnan(p).any(axis=1)
        right = p[seen] == data.y[seen, None]
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
        test = {"statistic": statistic, "df": df, "p_value": p_value if n else np.nan}
        return xr.Dataset({"estimate": difference, "std_error": error, **test, "n_a": n_a, "n_b": n_b, "n": n})

    name = "McNemar test (fitted models)" if distribution == "chi2" else f"McNemar test ({distribution}, fitted models)"
    call = call_text("mcnemar_test", a=a, b=b, distribution=distribution)
    out = result(map_batches(one, pair), method=name, metric="accuracy", call=call, cube=cube)
    return out.assign_attrs(about=MODELS)


def delong_test(
    cube: xr.DataArray, *, a: Hashable, b: Hashable, other: xr.DataArray | None = None, level: float = 0.95
) -> xr.Dataset:
    """Test whether two fitted models have the same area under the ROC curve.

    Models are taken as given: whether the two *methods*, trained on other samples, would differ is the question of
    `contrast`.

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
    both have no variance: NaN and one warning. Pooling scores over folds assumes that they are comparable. Of
    cross-validated predictions, equal methods are called different in 5 to 35 % of data sets at the 5 % level. Never
    use it to compare the winner with the rest: selection makes it optimistic.

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
    level = check_level(level)
    first, second = (loaded(cube, a=a, b=b), None) if other is None else (loaded(cube, a=a), loaded(other, b=b))
    for given in (cube,) if other is None else (other, cube):
        _refuse(given, "delong_test")

    def one(part: xr.DataArray, companion: xr.DataArray | None) -> xr.Dataset:
        if companion is None:
            area, covariance, n = _areas(part)
            df = None
        else:
            sides = _areas(part), _areas(companion)
            area, each, size = (np.hstack([np.ravel(side[at]) for side in sides]) for at in range(3))
            covariance = np.diag(each)
            with np.errstate(invalid="ignore", divide="ignore"):
                df, n = each.sum() ** 2 / (each**2 / (size - 1)).sum(), int(size.sum())
        variance, both = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], np.trace(covariance)
        # rounding leaves a trace where the two have equal placements
        found = wald(area[0] - area[1], np.sqrt(variance) if variance > 1e-13 * both else np.nan, df, level)
        std_error = np.sqrt(np.diag(covariance))
        own = {"estimate_a": area[0], "estimate_b": area[1], "std_error_a": std_error[0], "std_error_b": std_error[1]}
        return xr.Dataset({**found, **own, "n": n})

    out = map_batches(one, first, second)
    flat = out["statistic"].isnull()
    if bool(flat.any()):
        reason = "no variance to test against (one class, equal rankings or perfect separation)"
        warn(f"delong_test: {reason}{in_cells(flat)}: NaN.")
    pairing, interval = ("paired", "normal") if other is None else ("unpaired", "t")
    kind = f"DeLong test ({pairing}, fitted models)"
    call = call_text("delong_test", a=a, b=b, other=other, level=level)
    out = result(out, method=kind, metric="auc", conf_level=level, interval=interval, call=call, cube=cube)
    return out.assign_attrs(about=MODELS)


def _refuse(cube: xr.DataArray, test: str) -> None:
    for name in ("weight", "group"):
        if name in cube.coords:
            raise InputError(
                f"{test} takes samples as independent and equally weighted, but the cube has the coordinate {name!r}; "
                f"use contrast(), or drop it with .drop_vars({name!r})."
            )


def _areas(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the AUC of every configuration (placements averaged over repeats), their covariance, and sample size."""
    data = problem_on(cube, bound_metric("auc", cube), look=False)
    if data.model is not None:
        raise InputError(
            "metric 'auc' ranks predictions of different samples, and delong_test takes them for those of one model, "
            "but in a separate-sampling cube (dimension 'partner') every pair of folds has its own; use contrast()."
        )
    if data.n_classes != 2 or data.p.ndim == 4:
        raise InputError("delong_test is for two classes; compare multi-class AUCs with contrast().")
    seen = ~np.isnan(data.p).any(axis=(1, 2))
    scores = np.moveaxis(data.p[seen], 0, -1)  # configuration, repeat, sample
    over, under = placements(np.asarray(scores, float), data.y[seen] == 1)
    return *delong(over.mean(axis=1), under.mean(axis=1)), int(seen.sum())


def one_configuration(cube: xr.DataArray, label: object, argument: str) -> int:
    """Return the position of a configuration, or say which there are."""
    known = [plain(name) for name in cube["configuration"].values]
    if label not in known:
        close = nearest(label, known)
        raise InputError(f"`{argument}`={plain(label)!r} is not a configuration of `cube`; found {show(known)}{close}.")
    return known.index(label)


def family(cube: xr.DataArray, given: Any, argument: str) -> np.ndarray:
    """Return positions of the configurations that `given` names: a label, labels, or coordinate values."""
    if isinstance(given, Mapping):
        inside = np.ones(cube.sizes["configuration"], bool)
        for name, wanted in given.items():
            coord = cube.coords.get(name)
            if coord is None or coord.dims != ("configuration",):
                usual = [n for n, c in cube.coords.items() if c.dims == ("configuration",)]
                raise InputError(f"`{argument}`: {name!r} is no coordinate of the configurations; found {show(usual)}.")
            options = list(wanted) if isinstance(wanted, (list, tuple, set, np.ndarray)) else [wanted]
            inside &= np.isin(coord.values, options)
        if not inside.any():
            raise InputError(f"`{argument}`={dict(given)!r} matches no configuration of `cube`.")
        return np.flatnonzero(inside)
    if isinstance(given, (list, tuple, np.ndarray, pd.Index, pd.Series, xr.DataArray)):
        labels = [plain(label) for label in np.asarray(given, dtype=object).ravel()]
        if not labels:
            raise InputError(f"`{argument}` names no configuration.")
        places = [one_configuration(cube, label, argument) for label in labels]
        return np.array(list(dict.fromkeys(places)))
    return np.array([one_configuration(cube, given, argument)])


def loaded(cube: xr.DataArray, **labels: Hashable) -> xr.DataArray:
    """Return the configurations that arguments name, in memory."""
    check_cube(cube)
    places = [one_configuration(cube, label, argument) for argument, label in labels.items()]
    if len(set(places)) < len(places):
        raise InputError(f"`a` and `b` are both {plain(labels['a'])!r}; name two different configurations.")
    some = cube.isel(configuration=places)
    return some if cube.chunks is None else check_cube(some.compute())
