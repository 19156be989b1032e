"""Fold designs as labelled arrays: what a user needs to train elsewhere and to hand back with the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ._check import InputError, check_count, check_rng, plain, show, warn
from .cube.align import aligned
from .cube.coords import check_unique, sample_ids
from .cube.values import plain_array

Codes = NDArray[np.intp]
SWAP_LIMIT = 300  # groups; above it whole-group swaps cost more than they gain
MOVES = 500  # at most; the deal is nearly balanced when they start
NUMBER_BINS = 5  # quantile bins that stand for classes when numbers are dealt in groups
OUTSIDE = -1  # in an inner design: the sample belongs to the outer fold itself, so it is in no inner fold


def kfold(
    labels: ArrayLike | xr.DataArray,
    k: int | str,
    *,
    repeats: int = 1,
    stratified: bool = True,
    groups: ArrayLike | xr.DataArray | None = None,
    rng: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Deal the samples into `k` folds, at random and balanced.

    Parameters
    ----------
    labels : array-like
        One label per sample. Strings, integers and booleans are classes. Floats are classes when there are two
        distinct values, or when all are whole numbers that occur at least `k` times each; otherwise they are numbers.
        A DataArray (dim ``sample``) or a pandas Series keeps its sample ids.
    k : int or "loo"
        The number of folds, or ``"loo"`` (the same as the number of samples) for leave-one-out; with `groups`,
        ``"loo"`` leaves out one group at a time.
    repeats : int
        The number of random partitions.
    stratified : bool
        Spread every class evenly: fold sizes differ by at most one, overall and within each class. For numbers,
        every run of `k` neighbours in sorted order puts one sample into each fold.
    groups : array-like, optional
        Cluster ids (one per sample) that are never split. Balance is then as good as a greedy deal followed by
        moves and swaps of whole groups can make it.
    rng : int or numpy.random.Generator, optional
        Seed or generator; the same seed gives the same folds.

    Returns
    -------
    xarray.DataArray
        ``fold(sample, repeat)``, integers from 0, with the coordinates ``label`` and, if given, ``group``.

    Raises
    ------
    InputError
        More folds than samples (or groups); a class that only one sample (or group) has; missing labels; repeats of
        leave-one-out.

    Notes
    -----
    When a class has fewer samples (or lies in fewer groups) than `k`, `k` is lowered to that count with one warning,
    so that every fold can hold every class [1]_. Leave-one-out is exempt: it cannot be stratified.

    References
    ----------
    .. [1] Tsamardinos, Rakhshani, Lagani (2015). Performance-estimation properties of cross-validation-based
       protocols with simultaneous hyper-parameter optimization. Int. J. Artificial Intelligence Tools 24, 1540023.
       doi:10.1142/S0218213015400230

    Examples
    --------
    >>> import cvstats as cs
    >>> fold = cs.kfold(["sick"] * 4 + ["well"] * 6, 2, rng=1)
    >>> fold.dims, fold.isel(repeat=0).groupby("label").sum().values.tolist()
    (('sample', 'repeat'), [2, 3])
    """
    label = per_sample(labels, "labels")
    group = None if groups is None else align_groups(groups, label).values
    repeats = check_count(repeats, "repeats")
    fold, notes = _partition(label.values, group, k, repeats, stratified, check_rng(rng))
    if notes:
        warn(f"kfold: {notes}")
    return labelled(fold, label, group)


def _partition(
    values: np.ndarray,
    groups: np.ndarray | None,
    k: int | str,
    repeats: int,
    stratified: bool,
    rng: np.random.Generator,
) -> tuple[np.ndarray, str]:
    """Return fold ids (repeat, sample) and what to warn of."""
    units = np.arange(values.size) if groups is None else np.asarray(pd.factorize(groups)[0])
    n_units = int(units.max()) + 1
    if k == "loo" or (groups is None and k == n_units):
        if repeats > 1:
            raise InputError(f"`repeats` must be 1 for leave-one-out, which has only one partition; got {repeats}.")
        return units[None], ""
    if isinstance(k, str):
        raise InputError(f"`k` must be a number of folds or 'loo'; got {k!r}.")
    k, notes = check_count(k, "k", minimum=2), ""
    classes = class_codes(values, k) if stratified else np.zeros(values.size, np.intp)
    if stratified and classes is not None:
        k, notes = lowered(k, classes, units, values)
    elif k > n_units:
        what = "samples" if groups is None else "groups"
        raise InputError(f"`k`={k} folds cannot be made from {n_units} {what}; use at most {n_units}.")
    if groups is None:
        return deal_sorted(values, k, repeats, rng) if classes is None else deal(classes, k, repeats, rng), notes
    fold = deal_groups(units, bins(values) if classes is None else classes, k, repeats, rng)
    if classes is not None and stratified:
        notes = f"{notes} {missing_classes(fold, classes, values, k)}".strip()
    return fold, notes


def separate_folds(
    labels: ArrayLike | xr.DataArray,
    k0: int | str,
    k1: int | str,
    *,
    repeats: int = 1,
    groups: ArrayLike | xr.DataArray | None = None,
    rng: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Deal each of two classes into folds of its own, for data whose classes were sampled separately.

    A class-0 sample is numbered by its fold ``U_i`` among `k0`, a class-1 sample by its fold ``V_j`` among `k1`;
    class 0 is the first in sorted order. One model is trained per pair ``(i, j)``, without ``U_i`` and ``V_j``: see
    `pairs`. Sizes differ by at most one within a class.

    Parameters
    ----------
    labels : array-like or DataArray
        One label per sample, of exactly two classes.
    k0, k1 : int or "loo"
        Folds of class 0 and of class 1, 2 up to the size of the class; ``"loo"`` leaves out one sample of it at a time.
    repeats : int
        The number of random partitions.
    groups : array-like, optional
        Cluster ids (one per sample) that are never split; each must lie in one class. Folds are then as even as whole
        groups allow, and ``"loo"`` leaves out one group at a time.
    rng : int or numpy.random.Generator, optional
        Seed or generator; the same seed gives the same folds.

    Returns
    -------
    xarray.DataArray
        ``fold(sample, repeat)``, integers from 0 within each class, with the coordinates ``label`` and, if given,
        ``group``.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014). Cross-validation under separate sampling: strong bias and how to
    correct it. Bioinformatics 30, 3349-3355. doi:10.1093/bioinformatics/btu527

    Examples
    --------
    >>> import cvstats as cs
    >>> fold = cs.separate_folds([0, 0, 0, 0, 1, 1, 1], 2, 3, rng=1)
    >>> fold.groupby("label").max().values.ravel().tolist()
    [1, 2]
    """
    label = per_sample(labels, "labels")
    repeats = check_count(repeats, "repeats")
    generator = check_rng(rng)
    names, codes = _two_classes(label, "labels", " for separate folds")
    group = None if groups is None else align_groups(groups, label).values
    unit = np.arange(label.size) if group is None else pd.factorize(group)[0]
    what = "samples" if group is None else "groups"
    if mixed := set(unit[codes == 0]) & set(unit[codes == 1]):
        raise InputError(
            f"`groups`: {len(mixed)} groups hold samples of both classes, so that classes cannot be dealt separately; "
            "use kfold(groups=...)."
        )
    fold = np.empty((repeats, label.size), np.intp)
    for code, (argument, asked) in enumerate([("k0", k0), ("k1", k1)]):
        member = codes == code
        own, size = unit[member], len(np.unique(unit[member]))
        count = size if asked == "loo" else check_count(asked, argument, minimum=2)
        if count > size or count < 2:
            raise InputError(
                f"`{argument}`={asked!r}: class {show(names[[code]])} has {size} {what}, so it can be dealt into 2 to "
                f"{size} folds; lower `{argument}` or collect more."
            )
        together = np.zeros(len(own), np.intp)
        if group is None:
            fold[:, member] = deal(together, count, repeats, generator)
        else:
            fold[:, member] = deal_groups(pd.factorize(own)[0], together, count, repeats, generator)
    return labelled(fold, label, group)


def _two_classes(label: xr.DataArray, argument: str, purpose: str = "") -> tuple[np.ndarray, np.ndarray]:
    names, codes = np.unique(label.values, return_inverse=True)
    if names.size != 2:
        raise InputError(f"`{argument}` must hold exactly two classes{purpose}; found {names.size}: {show(names)}.")
    return names, codes


def pairs(fold: xr.DataArray) -> xr.Dataset:
    """List the k0 x k1 training and test sets of separate-sampling cross-validation.

    Parameters
    ----------
    fold : DataArray
        What `separate_folds` returned: ``fold(sample[, repeat])`` with the coordinate ``label`` of two classes.

    Returns
    -------
    xarray.Dataset
        The masks ``train(pair, sample[, repeat])`` (everything but ``U_i`` and ``V_j``) and ``test`` (both), and
        ``partner``: at which place of the cube's ``partner`` dim to put the prediction of a test sample (-1 for
        training samples). The coordinates ``fold0(pair)`` and ``fold1(pair)`` are i and j, and ``fold`` is the design
        itself: ``tidy(pairs(fold))`` is all that another program needs to train and to save predictions.

    Notes
    -----
    k0 x k1 models are trained: 25 for five folds each, n0 x n1 when both classes are left out one by one.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527.

    Examples
    --------
    >>> import cvstats as cs
    >>> design = cs.pairs(cs.separate_folds([0, 0, 0, 0, 1, 1, 1], 2, 3, rng=1))
    >>> design.sizes["pair"], design.train.isel(pair=0).sum().item()
    (6, 4)
    """
    fold = check_fold(fold)
    label = label_of(fold, "pairs")
    first = label == _two_classes(label, "fold.label")[0][0]
    ids0, ids1 = (np.unique(fold.where(side, drop=True).values.astype(np.intp)) for side in (first, ~first))
    fold0, fold1 = (part.ravel() for part in np.meshgrid(ids0, ids1, indexing="ij"))
    i, j = xr.DataArray(fold0, dims="pair"), xr.DataArray(fold1, dims="pair")
    test = (fold == i.where(first, j)).transpose("pair", *fold.dims)
    partner = j.where(first, i).where(test, OUTSIDE).transpose("pair", *fold.dims)
    coords = {"fold0": ("pair", fold0), "fold1": ("pair", fold1), "fold": fold.variable}
    return xr.Dataset({"train": ~test, "test": test, "partner": partner}, coords)


def nested_folds(
    fold: xr.DataArray, k: int | None = None, *, stratified: bool = True, rng: int | np.random.Generator | None = None
) -> xr.DataArray:
    """Split the training set of every outer fold into inner folds, for nested cross-validation.

    Parameters
    ----------
    fold : DataArray
        The outer design ``fold(sample[, repeat])``, two folds or more.
    k : int, optional
        The number of inner folds, dealt afresh inside each training set (stratified by the coordinate ``label``,
        groups of the coordinate ``group`` kept whole). Default: the remaining outer folds serve as inner folds, so
        that one model is trained for every pair of folds and nothing is random; that needs three outer folds.
    stratified : bool
        Whether inner folds of a given `k` spread the classes evenly.
    rng : int or numpy.random.Generator, optional
        Seed or generator, for a given `k`.

    Returns
    -------
    xarray.DataArray
        ``fold(sample, outer_fold[, repeat])``, integers from 0; **-1 marks the samples of the outer fold itself**.
        It is the ``fold`` coordinate that the inner predictions of `ncv` carry, and `train_test` turns it into masks.

    Notes
    -----
    A class with fewer samples than `k` in some training set lowers the number of inner folds there, with one warning.

    References
    ----------
    Varma, Simon (2006). Bias in error estimation when using cross-validation for model selection. BMC Bioinformatics
    7, 91. doi:10.1186/1471-2105-7-91

    Examples
    --------
    >>> import cvstats as cs
    >>> outer = cs.kfold([0, 1] * 6, 3, rng=1)
    >>> inner = cs.nested_folds(outer)
    >>> inner.sizes["outer_fold"], inner.max().item(), (inner == -1).sum("outer_fold").max().item()
    (3, 1, 1)
    """
    fold = check_fold(fold)
    generator = check_rng(rng)
    ids = np.unique(fold.values)
    outer = xr.DataArray(ids, dims="outer_fold", coords={"outer_fold": ids})
    if ids.size < 2:
        raise InputError(f"`fold` must have at least two folds to nest within; found {show(ids)}.")
    held_out = (fold == outer).transpose("sample", "outer_fold", *[dim for dim in fold.dims if dim != "sample"])
    if k is None:
        if ids.size < 3:
            raise InputError("`k` must be given when there are two outer folds: one remaining fold cannot be split.")
        rank = np.searchsorted(ids, fold.transpose("sample", ...).values)
        return held_out.copy(data=inner_ids(rank, ids.size)).rename("fold")
    values = np.full(held_out.shape, OUTSIDE, np.intp)
    label = label_of(fold, "nested_folds").values if stratified else np.zeros(fold.sizes["sample"])
    group = fold.coords["group"].values if "group" in fold.coords else None
    notes: list[str] = []
    for place in np.ndindex(held_out.shape[1:]):  # one deal per training set
        rows = np.flatnonzero(~held_out.values[(slice(None), *place)])
        part, note = _partition(label[rows], None if group is None else group[rows], k, 1, stratified, generator)
        values[(rows, *place)] = part[0]
        notes += [note] if note else []
    if notes:
        warn(f"nested_folds: in {len(notes)} training sets: {notes[0]}")
    return held_out.copy(data=values).rename("fold")


def train_test(fold: xr.DataArray) -> xr.Dataset:
    """Turn a fold design into boolean masks, one pair per fold.

    Parameters
    ----------
    fold : DataArray
        What `kfold` or `nested_folds` returned, or any array of fold ids with a ``sample`` dim.

    Returns
    -------
    xarray.Dataset
        ``train(sample, fold, ...)`` and ``test(sample, fold, ...)``. Samples marked -1 are in neither.

    Raises
    ------
    InputError
        `fold` is no DataArray with the dim ``sample``, or holds floats.

    Examples
    --------
    >>> import cvstats as cs
    >>> masks = cs.train_test(cs.kfold([0, 1] * 6, 3, rng=1)).isel(repeat=0)
    >>> masks.train.sum("sample").values.tolist(), masks.test.sum("sample").values.tolist()
    ([8, 8, 8], [4, 4, 4])
    """
    design = check_fold(fold, outside=True).rename("design")
    inside = design >= 0 if design.dtype.kind in "iu" else xr.ones_like(design, dtype=bool)
    ids = np.unique(design.values[inside.values])
    each = xr.DataArray(ids, dims="fold", coords={"fold": ids})
    return xr.Dataset({"train": (design != each) & inside, "test": design == each}).transpose("sample", "fold", ...)


def check_fold(fold: object, *, outside: bool = False) -> xr.DataArray:
    """Return `fold` if it is a design: a DataArray with a ``sample`` dim of integer or string ids."""
    if not isinstance(fold, xr.DataArray) or "sample" not in fold.dims:
        found = f"dims {show(fold.dims)}" if isinstance(fold, xr.DataArray) else type(fold).__name__
        raise InputError(f"`fold` must be a DataArray with the dim 'sample', such as kfold() returns; got {found}.")
    if fold.dtype.kind == "f":
        raise InputError("`fold` holds floats; fold ids must be integers or strings. Convert with .astype(int).")
    if fold.dtype.kind not in "iuU":
        raise InputError(f"`fold` must hold integers or strings; found dtype {fold.dtype}.")
    if not outside and fold.dtype.kind == "i" and bool((fold < 0).any()):
        raise InputError("`fold` holds negative ids, which mark samples outside an inner design; give an outer design.")
    return fold.drop_vars([name for name in fold.coords if name not in (*fold.dims, "label", "group")]).rename("fold")


def per_sample(labels: Any, argument: str) -> xr.DataArray:
    """Return labels as a DataArray over ``sample``: ids kept when they have any, else numbered from 0."""
    if isinstance(labels, xr.DataArray) and labels.dims != ("sample",):
        found = show(labels.dims) or "none"
        raise InputError(f"`{argument}` must have the one dim 'sample'; found {found}. Select or rename first.")
    ids, values = sample_ids(labels), plain_array(labels.values if isinstance(labels, xr.DataArray) else labels)
    if values.ndim != 1 or values.size < 2:
        raise InputError(f"`{argument}` must be one-dimensional with at least two samples; got shape {values.shape}.")
    ids = np.arange(values.size) if ids is None else ids
    check_unique(pd.Index(ids), f"`{argument}` has duplicate sample ids")
    missing = np.asarray(pd.isna(values))
    if missing.any():
        raise InputError(f"`{argument}` are missing for samples {show(ids[missing])}; every sample needs one.")
    infinite = np.isinf(values) if values.dtype.kind == "f" else missing
    if infinite.any():
        raise InputError(f"`{argument}` must be finite; found infinite values for samples {show(ids[infinite])}.")
    return xr.DataArray(values, dims="sample", coords={"sample": ids})


def align_groups(groups: Any, label: xr.DataArray) -> xr.DataArray:
    """Return groups in the order of the labels: by id when both carry ids, else by position."""
    group = per_sample(groups, "groups")
    group = group.drop_vars("sample") if sample_ids(groups) is None else group
    return aligned(group, label, "groups", ("sample",), owner="`labels`")


def labelled(fold: np.ndarray, label: xr.DataArray, group: np.ndarray | None = None) -> xr.DataArray:
    """Return the design (repeat, sample) with its sample ids, labels and groups."""
    coords = {"sample": label["sample"].values, "repeat": np.arange(len(fold)), "label": ("sample", label.values)}
    if group is not None:
        coords["group"] = ("sample", group)
    return xr.DataArray(fold.T, dims=("sample", "repeat"), coords=coords, name="fold")


def inner_ids(fold: np.ndarray, k: int) -> np.ndarray:
    """Return (sample, outer fold, ...): how the other folds are numbered where each of the `k` folds is left out."""
    fold, outer = fold[:, None], np.arange(k).reshape(-1, *[1] * (fold.ndim - 1))
    return np.where(fold == outer, OUTSIDE, fold - (fold > outer))


def label_of(fold: xr.DataArray, function: str) -> xr.DataArray:
    """Return the coordinate ``label`` of a design."""
    if "label" not in fold.coords:
        raise InputError(
            f"`fold` has no coordinate 'label', which {function}() needs; "
            "add it with fold.assign_coords(label=('sample', labels))."
        )
    label: xr.DataArray = fold.coords["label"]
    return label


def class_codes(values: np.ndarray, k: int) -> np.ndarray | None:
    """Return class codes, or None when the labels are numbers to be spread by rank."""
    names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if values.dtype.kind == "f" and names.size > 2 and not ((names % 1 == 0).all() and counts.min() >= k):
        return None
    return codes


def lowered(k: int, classes: np.ndarray, units: np.ndarray, values: np.ndarray) -> tuple[int, str]:
    """Return `k`, lowered to the number of samples (or groups) that hold the rarest class, and what to warn of."""
    held = np.bincount(np.unique(np.column_stack([classes, units]), axis=0)[:, 0])
    rarest = int(held.argmin())
    name, count = plain(values[classes == rarest][0]), int(held[rarest])
    what = "sample" if np.unique(units).size == units.size else "group"
    if count < 2:
        raise InputError(
            f"`labels`: class {name!r} is in only one {what}, so folds cannot be stratified by class. Merge classes, "
            "give numbers as floats, or use stratified=False or k='loo'."
        )
    if count >= k:
        return k, ""
    return count, f"`k` was lowered from {k} to {count}, the number of {what}s that hold the rarest class {name!r}."


def missing_classes(fold: np.ndarray, classes: np.ndarray, values: np.ndarray, k: int) -> str:
    """Return what to warn of when a fold lacks a class."""
    names = np.array([plain(values[classes == code][0]) for code in range(int(classes.max()) + 1)])
    seen = np.zeros((len(fold), k, len(names)), bool)
    seen[np.arange(len(fold))[:, None], fold, classes] = True
    absent = names[~seen.all((0, 1))]
    if not absent.size:
        return ""
    return f"keeping groups whole left folds without samples of class {show(absent)}; use fewer folds."


# -- how samples and groups are dealt: numpy only; repeats lead, samples last


def deal(strata: Codes, k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample): one deck, sorted by stratum and shuffled within, dealt round and round.

    Strata are consecutive stretches of the deck, so fold sizes differ by at most one in each stratum and overall.
    The strata are visited in random order and the folds renamed at random,
    so that no fold is favoured.
    """
    n = strata.shape[-1]
    order = rng.permuted(np.tile(np.arange(int(strata.max(initial=0)) + 1), (repeats, 1)), axis=1)
    visited = np.take_along_axis(order, np.broadcast_to(strata, (repeats, n)), axis=1)
    deck = np.lexsort((rng.random((repeats, n)), visited), axis=1)
    names = rng.permuted(np.tile(np.arange(k), (repeats, 1)), axis=1)
    fold = np.empty((repeats, n), np.intp)
    np.put_along_axis(fold, deck, np.take_along_axis(names, np.broadcast_to(np.arange(n) % k, (repeats, n)), 1), 1)
    return fold


def deal_sorted(values: NDArray[np.float64], k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample) so that every run of `k` neighbours in sorted order visits every fold once."""
    n = values.size
    keys = np.broadcast_to(values, (repeats, n))
    ranked = np.lexsort((rng.random((repeats, n)), keys), axis=1)  # ties in random order
    runs = -(-n // k)
    names = rng.permuted(np.tile(np.arange(k), (repeats, runs, 1)), axis=2).reshape(repeats, runs * k)[:, :n]
    fold = np.empty((repeats, n), np.intp)
    np.put_along_axis(fold, ranked, names, 1)
    return fold


def bins(values: NDArray[np.float64]) -> Codes:
    """Return quantile bins of about equal size; equal values share a bin."""
    edges = np.quantile(values, np.arange(1, NUMBER_BINS) / NUMBER_BINS)
    return np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]


def deal_groups(groups: Codes, strata: Codes, k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample) that never split a group and balance fold sizes and strata."""
    counts = np.zeros((int(groups.max()) + 1, int(strata.max()) + 1))
    np.add.at(counts, (groups, strata), 1)
    profile = np.column_stack([counts, counts.sum(1)]) if counts.shape[1] > 1 else counts
    profile /= np.sqrt(profile.sum(0) / k)  # so that a fold's squared distance is relative to the stratum's share
    return np.stack([_balance(profile, k, rng)[groups] for _ in range(repeats)])


def _balance(profile: NDArray[np.float64], k: int, rng: np.random.Generator) -> Codes:
    """Return one fold per group: the largest first, each to the fold it unbalances least, then moves and swaps.

    Minimises the sum over folds of the squared length of the fold's profile, which for fixed totals is smallest when
    all folds are alike.
    """
    n = len(profile)
    power = np.einsum("gc,gc->g", profile, profile)
    fold = np.empty(n, np.intp)
    load = np.zeros((k, profile.shape[1]))
    shuffled = rng.permutation(n)
    for group in shuffled[np.argsort(-power[shuffled], kind="stable")]:
        fold[group] = np.argmin(load @ profile[group])
        load[fold[group]] += profile[group]
    gram = profile @ profile.T if n <= SWAP_LIMIT else None
    rows = np.arange(n)
    for _ in range(MOVES):
        affinity = profile @ load.T  # (group, fold)
        own = affinity[rows, fold]
        move = affinity - own[:, None] + power[:, None]
        move[rows, fold] = 0.0
        best = np.unravel_index(np.argmin(move), move.shape)
        gain, swap = move[best], None
        if gram is not None:
            across = affinity[:, fold]  # (g, h): group g against the fold of group h
            exchange = across + across.T - own[:, None] - own + power[:, None] + power - 2 * gram
            exchange[fold[:, None] == fold] = 0.0
            swap = np.unravel_index(np.argmin(exchange), exchange.shape)
            swap = swap if exchange[swap] < gain else None
            gain = min(gain, exchange[swap] if swap is not None else gain)
        if gain > -1e-9:
            break
        if swap is None:
            load[fold[best[0]]] -= profile[best[0]]
            load[best[1]] += profile[best[0]]
            fold[best[0]] = best[1]
        else:
            one, two = swap
            change = profile[one] - profile[two]
            load[fold[one]] -= change
            load[fold[two]] += change
            fold[one], fold[two] = fold[two], fold[one]
    return rng.permutation(k)[fold]
