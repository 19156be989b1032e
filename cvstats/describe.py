"""What a cube holds, and what to know of it before believing a number."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import check_level, show, warn
from ._results import call_text, result
from .cube.arrays import check_cube, class_names, encode_labels, map_batches, map_blocks, problem_on
from .kernels import Problem
from .kernels.holm import holm

TESTS = {
    "class": "Kruskal-Wallis of scores between folds, within class",
    "event": "Kruskal-Wallis of scores between folds, within event status",
    "value": "Kruskal-Wallis of residuals between folds",
    "none": "none",
}
SHIFT = ("statistic", "df", "p_value", "effect")
CELLS = 2_000_000  # numbers ranked or hashed at a time


def describe_cube(cube: xr.DataArray, *, level: float = 0.95) -> xr.Dataset:
    r"""Return what a cube holds: sizes, classes, folds, gaps, doubtful configurations, and shifts between folds.

    Pooled AUC (and every pooled rank metric) compares scores of different folds, hence of different models. When
    these shift from fold to fold it is misleading, usually too low. The test ranks the scores within each class and
    compares the folds (Kruskal-Wallis, corrected for ties); statistics :math:`H_c` and degrees of freedom of the
    classes add up:

    .. math:: H = \sum_c H_c \sim \chi^2, \quad df = \sum_c (K_c - 1).

    The smallest p-value over repeats (and class columns) is multiplied by their number, then adjusted over
    configurations by Holm's method. Residuals are tested for numeric predictions, scores within event status for
    survival, nothing for hard labels. Folds of one sample cannot show a shift (NaN). With many samples even a
    harmless shift is significant: see ``shift_effect``.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`; dask-backed ones are read block by block.
    level : float
        One minus the family-wise error rate at which ``shifted`` is true and a warning is given.

    Returns
    -------
    xarray.Dataset
        ``n_samples``, ``n_unpredicted`` (samples without any prediction), ``n_repeats``, ``n_configurations``;
        ``class_count(label_class)``, or ``n_events``, or ``label_mean`` and ``label_sd``; ``fold_size(fold)`` and
        ``fold_class_count`` (over ``repeat`` too); per configuration ``n_missing`` (cells), ``complete`` (may be
        selected), ``duplicated`` (as an earlier one), ``same_as`` (the first configuration with identical
        predictions), ``constant``, ``constant_in_folds``, and ``shift_statistic``, ``shift_df``, ``shift_p_value``,
        ``shift_p_adjusted``, ``shift_effect`` (share of rank variance between folds beyond chance), ``shifted``.
        The scalar coordinate ``shift_test`` names the test.

    References
    ----------
    Kruskal, Wallis (1952), doi:10.1080/01621459.1952.10483441; Forman, Scholz (2010), doi:10.1145/1882471.1882479.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.9], [0.2, 0.2], [0.8, 0.8], [0.3, 0.3]], [1, 0, 1, 0], folds=[0, 0, 1, 1])
    >>> about = cs.describe_cube(cube)
    >>> about.class_count.values, about.duplicated.values
    (array([2, 2]), array([False,  True]))
    """
    check_cube(cube)
    alpha = 1 - check_level(level)
    names = class_names(cube)
    own = "fold" in cube.coords and "configuration" in cube["fold"].dims  # folds of each configuration say nothing here
    shared = cube.drop_vars("fold") if own else cube
    test = _which_test(shared)
    folds = pd.Index(np.unique(shared["fold"].values) if "fold" in shared.coords else [])
    cells = map_batches(lambda part: _one(part, names, folds, test), shared)
    first = _first_alike(cells["digest"])
    shifted = cells["shift_p_adjusted"] < alpha
    configuration = cube["configuration"]
    variables = dict(cells.drop_vars("digest").data_vars) | {
        "n_configurations": cube.sizes["configuration"],
        "n_repeats": cube.sizes.get("repeat", 1),
        "duplicated": ("configuration", first != np.arange(len(first))),
        "same_as": ("configuration", configuration.values[first]),
        "shifted": shifted,
    }
    out = result(variables, method="describe", call=call_text("describe_cube", level=level), cube=cube)
    out = out.assign_coords(shift_test=TESTS[test], configuration=configuration.variable)
    if test in ("class", "event"):
        _warn_shift(out, test)
    return out


def _which_test(cube: xr.DataArray) -> str:
    kind = str(cube["kind"].item())
    if kind == "label" or "fold" not in cube.coords or "partner" in cube.dims:
        return "none"
    return "event" if "event" in cube.coords else "value" if kind == "value" else "class"


def _one(cube: xr.DataArray, names: list[Any] | None, folds: pd.Index, test: str) -> xr.Dataset:
    """Describe a cube without batch dims."""
    labelled = np.asarray(pd.notna(cube["label"].values))
    if not labelled.all():
        cube = cube.isel(sample=labelled)
    data = replace(problem_on(cube, look=False), gaps=True)  # gaps are described, not left out
    parts = map_blocks(partial(_columns, test, _fold_codes(cube)), data)[1]
    about = {name: np.concatenate([part[name] for part in parts], axis=-1) for name in parts[0]}
    predicted = about.pop("predicted")
    some = predicted.any(axis=1)
    about["complete"] = (predicted.sum(axis=0) == some.sum()) & some.any()
    about["shift_p_adjusted"] = holm(about["shift_p_value"])
    counts = {"n_samples": int(labelled.sum()), "n_unpredicted": int((~some).sum())}
    out = xr.Dataset(counts | {name: ("configuration", values) for name, values in about.items()})
    return out.assign(_labels(cube, names)).assign(_folds(cube, names, folds))


def _labels(cube: xr.DataArray, names: list[Any] | None) -> dict[str, Any]:
    if names is None:
        if "event" in cube.coords:
            return {"n_events": int(cube["event"].sum())}
        values = cube["label"].values.astype(float)
        spread = float(values.std(ddof=1)) if len(values) > 1 else np.nan
        return {"label_mean": float(values.mean()) if len(values) else np.nan, "label_sd": spread}
    member = _class_members(cube, names)
    return {"class_count": _by_class(("label_class",), member.sum(axis=1), names)}


def _class_members(cube: xr.DataArray, names: list[Any]) -> np.ndarray:
    """Return (class, n) membership in 0/1 of the classes that have a name."""
    codes = encode_labels(cube)[0]
    known = [code for code, name in enumerate(names) if name is not None]
    return np.asarray((codes[None, :] == np.array(known)[:, None]).astype(int))


def _by_class(dims: tuple[str, ...], values: np.ndarray, names: list[Any]) -> xr.DataArray:
    known = np.array([name for name in names if name is not None])
    return xr.DataArray(values, dims=dims, coords={"label_class": known})


def _folds(cube: xr.DataArray, names: list[Any] | None, folds: pd.Index) -> dict[str, Any]:
    if not len(folds):
        return {}
    fold = cube["fold"].transpose("sample", ...)
    codes = folds.get_indexer(pd.Index(fold.values.ravel())).reshape(fold.sizes["sample"], -1)
    member = (codes.T[:, None, :] == np.arange(len(folds))[:, None]).astype(int)  # (repeat or 1, fold, n)
    dims, first = (("repeat", "fold"), slice(None)) if fold.ndim > 1 else (("fold",), 0)
    coords = {"fold": folds.to_numpy()} | ({"repeat": cube["repeat"].variable} if fold.ndim > 1 else {})
    out = {"fold_size": xr.DataArray(member.sum(axis=2)[first], dims=dims, coords=coords)}
    if names is not None:
        count = np.einsum("rfn,cn->rfc", member, _class_members(cube, names))[first]
        out["fold_class_count"] = _by_class((*dims, "label_class"), count, names).assign_coords(coords)
    return out


def _columns(test: str, folds: np.ndarray | None, block: Problem, *_: Any) -> dict[str, np.ndarray]:
    """Return what is known of each configuration (the last axis) from its own predictions alone."""
    planes = block.p if block.p.ndim == 4 else block.p[None]  # (class, sample, configuration, repeat)
    absent = np.isnan(planes).any(axis=0)
    about = {
        "predicted": ~absent.all(axis=2),
        "n_missing": absent.sum(axis=(0, 2)),
        "constant": _constant(planes) & ~absent.all(axis=(0, 2)),
        "constant_in_folds": _constant_in_folds(planes, folds),
        "digest": _digests(planes),
    }
    shift = np.full((len(SHIFT), planes.shape[2]), np.nan)
    if test != "none" and folds is not None:
        strata = np.asarray({"class": block.y, "event": block.event}.get(test, np.zeros(len(folds))))
        if test == "value":
            planes = planes - block.y[:, None, None]
        step = max(1, CELLS // max(1, len(folds)))
        for part in (slice(start, start + step) for start in range(0, planes.shape[2], step)):
            shift[:, part] = _worst_shift(planes[:, :, part], folds, strata)
    return about | {f"shift_{name}": values for name, values in zip(SHIFT, shift, strict=True)}


def _worst_shift(planes: np.ndarray, folds: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Return the fields of the smallest p-value over classes and repeats, Bonferroni's correction made."""
    each = range(folds.shape[1])
    tests = np.array([_fold_shift(plane[..., at], folds[:, at], strata) for plane in planes for at in each])
    p = tests[:, SHIFT.index("p_value")]
    worst = np.argmin(np.where(np.isnan(p), np.inf, p), axis=0)
    out = tests[worst, :, np.arange(p.shape[1])].T
    count = np.maximum((~np.isnan(p)).sum(axis=0), 1)
    out[SHIFT.index("p_value")] = np.minimum(out[SHIFT.index("p_value")] * count, 1.0)
    return np.asarray(out)


def _fold_shift(values: np.ndarray, fold: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Return the test of each column of `values` (n, m), its fields as rows; NaN values are left out.

    Within each stratum the values are ranked and compared between folds (Kruskal-Wallis, corrected for ties); the
    statistics of the strata add up, and so do their degrees of freedom. A stratum that has a single fold, or at most
    one value in every fold, or only tied values, says nothing and is left out; without any other the result is NaN.
    """
    from scipy.special import chdtrc
    from scipy.stats import rankdata

    m = values.shape[1]
    statistic, df, between, total, spare = (np.zeros(m) for _ in range(5))
    for code in np.unique(stratum):
        rows = stratum == code
        part = values[rows].astype(float)
        present = ~np.isnan(part)
        ranks = rankdata(part, axis=0, nan_policy="omit")
        member = (fold[rows] == np.unique(fold[rows])[:, None]).astype(float)
        size = member @ present
        count = size.sum(axis=0)
        centred = np.where(present, ranks - (count + 1) / 2, 0.0)
        sums = member @ centred
        ssb = np.divide(sums**2, size, out=np.zeros_like(sums), where=size > 0).sum(axis=0)
        sst = np.einsum("nm,nm->m", centred, centred)
        groups = (size > 0).sum(axis=0)
        use = (groups > 1) & (count > groups) & (sst > 0)
        statistic += np.where(use, (count - 1) * ssb / np.where(use, sst, 1.0), 0.0)
        df += np.where(use, groups - 1, 0)
        between, total = between + np.where(use, ssb, 0.0), total + np.where(use, sst, 0.0)
        spare += np.where(use, count - 1, 0)
    known = df > 0
    left = np.maximum(spare - df, 1)
    share = 1 - (1 - between / np.where(known, total, 1.0)) * spare / left  # as an adjusted R2: 0 is what chance gives
    return np.where(known, [statistic, df, chdtrc(np.maximum(df, 1), statistic), np.clip(share, 0.0, 1.0)], np.nan)


def _fold_codes(cube: xr.DataArray) -> np.ndarray | None:
    """Return (n, r) codes of the folds, or None."""
    if "fold" not in cube.coords:
        return None
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    codes = pd.factorize(table.ravel())[0].reshape(table.shape)
    repeats = int(np.prod([cube.sizes[dim] for dim in ("repeat", "partner", "inner_repeat") if dim in cube.dims]))
    return np.broadcast_to(codes, (len(codes), repeats)) if codes.shape[1] == 1 else codes


def _constant(planes: np.ndarray) -> np.ndarray:
    """Return which configurations predict one value throughout; gaps are left out."""
    if not planes.shape[1]:
        return np.zeros(planes.shape[2], bool)
    low, high = (extreme.reduce(planes, axis=(1, 3)) for extreme in (np.fmin, np.fmax))
    return np.asarray((low == high).all(axis=0))


def _constant_in_folds(planes: np.ndarray, folds: np.ndarray | None) -> np.ndarray:
    """Return which configurations predict one value for all samples of a fold, in every fold."""
    alike, seen = np.ones(planes.shape[2], bool), np.zeros(planes.shape[2], bool)
    for repeat, codes in enumerate(() if folds is None or folds.shape[1] != planes.shape[3] else folds.T):
        for fold in np.unique(codes):
            part = planes[:, codes == fold][..., [repeat]]
            count = (~np.isnan(part).any(axis=0)).sum(axis=(0, 2))
            alike &= _constant(part) | (count == 0)
            seen |= count > 1
    return alike & seen


def _first_alike(digest: xr.DataArray) -> np.ndarray:
    """Return, for each configuration, the position of the first with identical predictions (by hash, not in pairs)."""
    table = digest.transpose("configuration", ...).values.reshape(digest.sizes["configuration"], -1)
    _, first, codes = np.unique(["".join(row) for row in table], return_index=True, return_inverse=True)
    return np.asarray(first[codes])


def _digests(planes: np.ndarray) -> np.ndarray:
    """Return a 128-bit hash of each configuration's predictions; minus zero is zero and all NaN are one."""
    values, keys = np.moveaxis(planes, 2, 0), []
    step = max(1, CELLS // max(1, values[:1].size))
    for start in range(0, len(values), step):
        block = np.ascontiguousarray(values[start : start + step]) + 0.0
        block[np.isnan(block)] = np.nan
        keys += [hashlib.blake2b(column.data, digest_size=16).hexdigest() for column in block]
    return np.array(keys)


def _warn_shift(about: xr.Dataset, test: str) -> None:
    shifted = about["shifted"]
    if not bool(shifted.any()):
        return
    columns = shifted.any([dim for dim in shifted.dims if dim != "configuration"]).values
    metric = "AUC" if test == "class" else "concordance"
    warn(
        f"scores shift between folds in {int(columns.sum())} of {len(columns)} configurations "
        f"({show(about['configuration'].values[columns])}; {TESTS[test]}, smallest adjusted p = "
        f"{float(about['shift_p_adjusted'].min()):.2g}): pooled {metric} compares scores across folds and is "
        "misleading. Use average='fold'."
    )
