"""Fold designs: balance laws, comparison with scikit-learn, nested and separate designs, error texts."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cvstats._check import CvstatsWarning, InputError
from cvstats.folds import kfold, nested_folds, pairs, separate_folds, train_test

seeds = st.integers(0, 2**31)


def table(fold, labels, repeat=0):
    """Fold x class counts."""
    return pd.crosstab(fold.isel(repeat=repeat).values, np.asarray(labels)).to_numpy()


def whole(groups, fold):
    """Whether every group lies in one fold."""
    return len(set(zip(groups, fold, strict=True))) == len(set(groups))


@st.composite
def class_labels(draw, smallest=2):
    counts = draw(st.lists(st.integers(smallest, 30), min_size=1, max_size=4))
    labels = np.repeat(np.array(["d", "a", "c", "b"])[: len(counts)], counts)
    return np.random.default_rng(draw(seeds)).permutation(labels)


# --- kfold: laws


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(class_labels(smallest=5), st.integers(2, 5), st.integers(1, 3), seeds)
def test_sizes_differ_by_at_most_one_overall_and_per_class(labels, k, repeats, seed):
    assume(k < len(labels))
    fold = kfold(labels, k, repeats=repeats, rng=seed)
    assert fold.dims == ("sample", "repeat")
    assert fold.dtype.kind == "i"
    for repeat in range(repeats):
        counts = table(fold, labels, repeat)
        assert counts.shape[0] == k
        assert np.ptp(counts, axis=0).max() <= 1
        assert np.ptp(counts.sum(1)) <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 60), st.integers(2, 4), seeds)
def test_unstratified_sizes_differ_by_at_most_one(n, k, seed):
    sizes = np.bincount(kfold(np.arange(n), k, stratified=False, rng=seed).values[:, 0], minlength=k)
    assert sizes.sum() == n
    assert np.ptp(sizes) <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 60), st.integers(2, 4), seeds)
def test_numbers_every_run_of_k_neighbours_visits_every_fold(n, k, seed):
    values = np.random.default_rng(seed).normal(size=n)
    fold = kfold(values, k, rng=seed).values[np.argsort(values), 0]
    if k == n:
        return
    for start in range(0, n - k + 1, k):
        assert sorted(fold[start : start + k]) == list(range(k))
    assert np.ptp(np.bincount(fold, minlength=k)) <= 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(6, 40), st.integers(2, 4), st.booleans(), seeds)
def test_groups_are_never_split_and_no_fold_is_empty(n_groups, k, stratified, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 7, n_groups))
    labels = np.where(rng.random(groups.size) < 0.4, "a", "b")
    labels[:2], labels[-2:] = "a", "b"
    shuffled = rng.permutation(groups.size)
    groups, labels = groups[shuffled], labels[shuffled]
    assume(min(np.unique(groups[labels == name]).size for name in "ab") > 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CvstatsWarning)
        fold = kfold(labels, k, groups=groups, stratified=stratified, rng=seed)
    assert whole(groups, fold.values[:, 0])
    used = np.unique(fold.values)
    assert used.tolist() == list(range(used.size))
    assert stratified or used.size == k


def test_same_seed_same_folds_and_generators_work():
    labels = np.arange(40) % 3
    assert kfold(labels, 5, repeats=3, rng=7).identical(kfold(labels, 5, repeats=3, rng=7))
    assert kfold(labels, 5, rng=7).identical(kfold(labels, 5, rng=np.random.default_rng(7)))
    assert not kfold(labels, 5, rng=7).equals(kfold(labels, 5, rng=8))
    assert kfold(labels, 5).shape == (40, 1)


def test_every_sample_is_equally_likely_in_every_fold():
    labels = np.array([0] * 7 + [1] * 4)
    fold = kfold(labels, 3, repeats=6000, rng=1).values
    share = (fold[:, :, None] == np.arange(3)).mean(1)
    assert np.abs(share - 1 / 3).max() < 4 * np.sqrt(2 / 9 / 6000)
    together = (fold[0] == fold[1]).mean()  # same class: 3 + 2 + 2 samples per fold
    assert together == pytest.approx((3 * 2 + 2 + 2) / (7 * 6), abs=4 * 0.5 / np.sqrt(6000))


def test_no_fold_gets_the_smaller_numbers():
    """Within every run of k neighbours the folds come in random order."""
    label = np.random.default_rng(0).normal(size=200)
    fold = kfold(label, 4, repeats=50, rng=1)
    runs = fold.values[np.argsort(label)].reshape(50, 4, 50)  # run, place in the run, repeat
    for name in range(4):
        assert (runs == name).mean(axis=(0, 2)) == pytest.approx(np.full(4, 0.25), abs=0.04)


def test_input_is_not_changed():
    labels = xr.DataArray(["x", "y"] * 5, dims="sample", coords={"sample": [f"s{i}" for i in range(10)]})
    before = labels.copy(deep=True)
    fold = kfold(labels, 3, rng=1)
    kept = fold.copy(deep=True)
    nested_folds(fold)
    nested_folds(fold, 2)
    train_test(fold)
    pairs(separate_folds(labels, 2, 2))
    assert fold.identical(kept)
    assert labels.identical(before)


# --- kfold: kinds of labels, ids, leave-one-out


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b"] * 8,
        [0, 1] * 8,
        [True, False] * 8,
        [0.0, 1.0] * 8,
        pd.Series(["a", "b"] * 8, dtype="category"),
        pd.Series(["a", "b"] * 8),
        np.array(["a", "b"] * 8, dtype=object),
        [1.0, 2.0, 3.0, 4.0] * 4,
    ],
    ids=["str", "int", "bool", "float", "category", "series", "object", "whole floats"],
)
def test_kinds_of_labels(labels):
    counts = table(kfold(labels, 4, rng=2), labels)
    assert np.ptp(counts, axis=0).max() == 0


def test_sample_ids_labels_and_groups_stay_with_the_folds():
    ids = [f"patient {i}" for i in range(12)]
    series = pd.Series(["a", "b"] * 6, index=ids)
    groups = pd.Series(np.repeat(np.arange(6), 2), index=ids)
    fold = kfold(series, 3, groups=groups.iloc[::-1], rng=1)  # matched by id, not by position
    assert fold.sample.values.tolist() == ids
    assert fold.label.values.tolist() == series.tolist()
    assert fold.group.values.tolist() == groups.tolist()
    array = xr.DataArray(series.to_numpy(), dims="sample", coords={"sample": ids})
    assert kfold(array, 3, groups=groups, rng=1).sample.equals(fold.sample)


def test_leave_one_out_by_name_and_by_number():
    labels = ["a"] * 3 + ["b"] * 4
    for k in ("loo", 7):
        assert kfold(labels, k).values[:, 0].tolist() == list(range(7))
    assert kfold(labels, "loo", groups=[3, 3, 1, 1, 1, 2, 2]).values[:, 0].tolist() == [0, 0, 1, 1, 1, 2, 2]


def test_k_is_lowered_to_the_rarest_class_with_one_warning():
    labels = ["rare"] * 4 + ["common"] * 30
    text = "kfold: `k` was lowered from 10 to 4, the number of samples that hold the rarest class 'rare'."
    with pytest.warns(CvstatsWarning, match=re.escape(text)) as caught:
        fold = kfold(labels, 10, repeats=5, rng=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert fold.max() == 3
    assert (table(fold, labels)[:, 1] == 1).all()
    with pytest.warns(CvstatsWarning, match="number of groups that hold the rarest class 'rare'"):
        kfold(labels, 10, groups=np.arange(34) // 2, rng=1)


def test_a_fold_without_a_class_is_warned_of():
    labels = np.array([0] * 30 + [1] * 30 + [0, 1, 0, 1])
    groups = np.array([0] * 30 + [1] * 30 + [2, 2, 3, 3])
    with pytest.warns(CvstatsWarning, match="left folds without samples of class 0, 1; use fewer folds") as caught:
        kfold(labels, 3, groups=groups, rng=1)
    assert len(caught) == 1


def test_counts_as_floats_are_numbers():
    counts = np.array([0, 0, 1, 2, 3, 5, 8, 13, 13, 21], float)
    fold = kfold(counts, 2, rng=1)
    assert np.bincount(fold.values[:, 0]).tolist() == [5, 5]


# --- against scikit-learn


def test_balance_is_at_least_that_of_stratified_kfold():
    from sklearn.model_selection import StratifiedKFold

    rng = np.random.default_rng(5)
    for _ in range(20):
        labels = rng.permutation(np.repeat([0, 1, 2], rng.integers(5, 20, 3)))
        theirs = np.stack(
            [np.bincount(labels[test], minlength=3) for _, test in StratifiedKFold(5).split(labels, labels)]
        )
        ours = table(kfold(labels, 5, rng=rng), labels)
        assert sorted(ours.sum(0)) == sorted(theirs.sum(0))
        assert np.ptp(ours, axis=0).max() <= np.ptp(theirs, axis=0).max()
        assert np.ptp(ours.sum(1)) <= np.ptp(theirs.sum(1))


@pytest.mark.slow
def test_grouped_balance_beats_stratified_group_kfold():
    from sklearn.model_selection import StratifiedGroupKFold

    rng = np.random.default_rng(6)

    def spread(counts):
        return ((counts - counts.mean(0)) ** 2 / counts.mean(0)).sum()

    ours, theirs = [], []
    for trial in range(20):
        groups = np.repeat(np.arange(30), rng.integers(1, 9, 30))
        labels = (rng.random(groups.size) < rng.beta(1, 1, 30)[groups]).astype(int)
        split = StratifiedGroupKFold(5, shuffle=True, random_state=trial).split(labels, labels, groups)
        theirs.append(spread(np.stack([np.bincount(labels[test], minlength=2) for _, test in split])))
        ours.append(spread(table(kfold(labels, 5, groups=groups, rng=trial), labels)))
    assert np.mean(ours) < 0.5 * np.mean(theirs)
    assert (np.array(ours) <= np.array(theirs)).mean() > 0.9


def test_groups_of_one_sample_balance_like_plain_stratification():
    labels = np.array([0] * 13 + [1] * 9)
    counts = table(kfold(labels, 4, groups=np.arange(22), rng=3), labels)
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(1)) <= 1


def test_grouped_numbers_are_balanced_by_quantile_bins():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 3)
    values = rng.normal(size=40)[groups] + rng.normal(size=120) / 3
    fold = kfold(values, 4, groups=groups, rng=1).values[:, 0]
    means = np.array([values[fold == f].mean() for f in range(4)])
    assert np.ptp(means) < 0.3
    assert np.bincount(fold).tolist() == [30] * 4


# --- separate folds and pairs


def test_separate_folds_number_each_class_on_its_own():
    labels = np.array(["b", "a", "a", "b", "a", "b", "a", "b", "b", "a", "b"])
    fold = separate_folds(labels, 2, 3, repeats=2, rng=1)
    for repeat in range(2):
        values = fold.isel(repeat=repeat).values
        assert sorted(np.bincount(values[labels == "a"])) == [2, 3]
        assert sorted(np.bincount(values[labels == "b"])) == [2, 2, 2]
    assert separate_folds(labels, "loo", "loo", rng=1).max() == 5
    assert fold.identical(separate_folds(labels, 2, 3, repeats=2, rng=1))


def test_pairs_are_the_designs_of_separate_sampling():
    labels = np.array([1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1])
    fold = separate_folds(labels, 2, 3, repeats=2, rng=1)
    design = pairs(fold)
    assert design.sizes["pair"] == 6
    assert design.train.dims == ("pair", "sample", "repeat")
    for pair in range(6):
        i, j = int(design.fold0[pair]), int(design.fold1[pair])
        for repeat in range(2):
            values = fold.isel(repeat=repeat).values
            held_out = ((labels == 0) & (values == i)) | ((labels == 1) & (values == j))
            one = design.isel(pair=pair, repeat=repeat)
            assert (one.test.values == held_out).all()
            assert (one.train.values == ~held_out).all()
            partner = np.where(held_out, np.where(labels == 0, j, i), -1)
            assert (one.partner.values == partner).all()
    assert pairs(fold.isel(repeat=0)).train.dims == ("pair", "sample")
    # every class-0 sample is predicted once per class-1 fold and the other way round
    times = design.test.sum("pair").values
    assert (times[labels == 0] == 3).all()
    assert (times[labels == 1] == 2).all()


# --- nested folds and masks


def test_the_other_outer_folds_serve_as_inner_folds():
    fold = kfold(np.arange(30) % 2, 5, repeats=2, rng=1)
    inner = nested_folds(fold)
    assert inner.dims == ("sample", "outer_fold", "repeat")
    assert inner.name == "fold"
    for outer in range(5):
        expected = np.where(fold == outer, -1, fold - (fold > outer))
        assert (inner.sel(outer_fold=outer).transpose("sample", "repeat").values == expected).all()


def test_fresh_inner_folds_are_stratified_inside_each_training_set():
    labels = np.array(["a"] * 12 + ["b"] * 18)
    fold = kfold(labels, 3, repeats=2, rng=1)
    inner = nested_folds(fold, 4, rng=2)
    assert ((inner == -1) == (fold == inner.outer_fold)).all()
    for outer in range(3):
        for repeat in range(2):
            values = inner.sel(outer_fold=outer, repeat=repeat).values
            inside = values >= 0
            counts = pd.crosstab(values[inside], labels[inside]).to_numpy()
            assert counts.shape == (4, 2)
            assert np.ptp(counts, axis=0).max() <= 1
    assert inner.identical(nested_folds(fold, 4, rng=2))
    assert nested_folds(fold.drop_vars("label"), 4, stratified=False, rng=2).max() == 3


def test_inner_folds_keep_groups_whole():
    groups = np.repeat(np.arange(20), 3)
    labels = np.tile([0, 1, 1], 20)
    inner = nested_folds(kfold(labels, 4, groups=groups, rng=1), 3, rng=1).isel(repeat=0)
    for outer in range(4):
        assert whole(groups, inner.sel(outer_fold=outer).values)


def test_nested_folds_warn_once_when_the_inner_k_is_lowered():
    fold = kfold(["a"] * 4 + ["b"] * 20, 4, rng=1)
    with pytest.warns(CvstatsWarning, match="in 4 training sets: `k` was lowered from 5 to 3") as caught:
        nested_folds(fold, 5, rng=1)
    assert len(caught) == 1


def test_the_fold_coordinate_of_a_cube_can_be_nested():
    fold = kfold([0, 1] * 6, 3, rng=1).isel(repeat=0, drop=True)
    coordinate = fold.assign_coords(fold=fold)["fold"]  # carries itself, as a cube's coordinate does
    assert nested_folds(coordinate).equals(nested_folds(fold))
    assert train_test(coordinate).equals(train_test(fold))


def test_masks_of_plain_nested_and_named_folds():
    fold = kfold([0, 1] * 6, 3, repeats=2, rng=1)
    masks = train_test(fold)
    assert masks.test.dims == ("sample", "fold", "repeat")
    assert (masks.train == ~masks.test).all()
    assert (masks.test.sum("fold") == 1).all()
    inner = nested_folds(fold)
    masks = train_test(inner)
    assert not (masks.train & masks.test).any()
    assert ((masks.train | masks.test).any("fold") == (inner >= 0)).all()
    named = xr.DataArray(["u", "v", "u", "v"], dims="sample")
    assert train_test(named).test.sel(fold="u").values.tolist() == [True, False, True, False]
    assert nested_folds(xr.DataArray(["u", "v", "w", "u"], dims="sample")).values.T.tolist() == [
        [-1, 0, 1, -1],
        [0, -1, 1, 0],
        [0, 1, -1, 0],
    ]


# --- errors

good = kfold([0, 1] * 6, 3, rng=1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: kfold([0, 1] * 6, "lo"), "`k` must be a number of folds or 'loo'; got 'lo'."),
        (lambda: kfold([0, 1] * 6, 1), "`k` must be a whole number of at least 2; got 1."),
        (lambda: kfold([0, 1] * 6, 2.5), "`k` must be a whole number of at least 2; got 2.5."),
        (lambda: kfold([0, 1] * 6, 3, repeats=0), "`repeats` must be a whole number of at least 1; got 0."),
        (lambda: kfold([0, 1] * 6, "loo", repeats=2), "`repeats` must be 1 for leave-one-out"),
        (
            lambda: kfold([0, 1] * 6, 3, rng="a"),
            "`rng` must be a non-negative integer, a numpy Generator or None; got 'a'.",
        ),
        (lambda: kfold([0, 1] * 6, 3, rng=True), "`rng` must be a non-negative integer"),
        (lambda: kfold([0, 0, 1], 2), "class 1 is in only one sample, so folds cannot be stratified by class."),
        (lambda: kfold([0, 0, 1, 1], 2, groups=[0, 1, 2, 2]), "class 1 is in only one group"),
        (lambda: kfold([0, 1] * 3, 7, stratified=False), "`k`=7 folds cannot be made from 6 samples; use at most 6."),
        (lambda: kfold(np.arange(6) / 7, 7), "`k`=7 folds cannot be made from 6 samples; use at most 6."),
        (
            lambda: kfold([0, 1] * 3, 4, stratified=False, groups=[0, 0, 1, 1, 2, 2]),
            "`k`=4 folds cannot be made from 3 groups; use at most 3.",
        ),
        (lambda: kfold([0.0, np.nan, 1.0], 2), "`labels` are missing for samples 1; every sample needs one."),
        (lambda: kfold(["a", None, "b"], 2), "`labels` are missing for samples 1; every sample needs one."),
        (lambda: kfold([0.0, np.inf, 1.0], 2), "`labels` must be finite; found infinite values for samples 1."),
        (lambda: kfold([[0, 1]], 2), "`labels` must be one-dimensional with at least two samples; got shape (1, 2)."),
        (
            lambda: kfold([0, 1] * 3, 2, groups=[0, 1]),
            "`groups` has 2 values along 'sample' where `labels` has 6; values without labels are paired by position",
        ),
        (
            lambda: kfold(pd.Series([0, 1] * 2), 2, groups=pd.Series([0, 1] * 2, index=[0, 1, 2, 9])),
            "`groups` does not match `labels` along 'sample': only in `labels`: 3; only in `groups`: 9.",
        ),
        (
            lambda: kfold(pd.Series([0, 1, 0, 1], index=["a", "b", "a", "c"]), 2),
            "`labels` has duplicate sample ids: 'a'.",
        ),
        (
            lambda: kfold(xr.DataArray([0, 1, 0, 1], dims="patient"), 2),
            "`labels` must have the one dim 'sample'; found 'patient'. Select or rename first.",
        ),
        (
            lambda: separate_folds([0, 1, 2] * 3, 2, 2),
            "`labels` must hold exactly two classes for separate folds; found 3: 0, 1, 2.",
        ),
        (
            lambda: separate_folds([0, 0, 1, 1], 3, 2),
            "`k0`=3: class 0 has 2 samples, so it can be dealt into 2 to 2 folds",
        ),
        (lambda: separate_folds([0, 0, 1, 1], 2, 1), "`k1` must be a whole number of at least 2; got 1."),
        (lambda: separate_folds([0, 0, 1], 2, "loo"), "`k1`='loo': class 1 has 1 samples"),
        (lambda: pairs(good.drop_vars("label")), "`fold` has no coordinate 'label', which pairs() needs; add it with"),
        (lambda: pairs(good.isel(sample=slice(0, 12, 2))), "`fold.label` must hold exactly two classes; found 1: 0."),
        (
            lambda: nested_folds(good.values),
            "`fold` must be a DataArray with the dim 'sample', such as kfold() returns",
        ),
        (lambda: train_test(good.rename(sample="row")), "`fold` must be a DataArray with the dim 'sample'"),
        (lambda: nested_folds(good.astype(float)), "`fold` holds floats; fold ids must be integers or strings."),
        (lambda: nested_folds(good > 0), "`fold` must hold integers or strings; found dtype bool."),
        (lambda: nested_folds(nested_folds(good)), "`fold` holds negative ids"),
        (lambda: nested_folds(good * 0), "`fold` must have at least two folds to nest within; found 0."),
        (lambda: nested_folds(good.clip(0, 1)), "`k` must be given when there are two outer folds"),
        (
            lambda: nested_folds(good.drop_vars("label"), 2),
            "`fold` has no coordinate 'label', which nested_folds() needs",
        ),
    ],
)
def test_error_texts(call, text):
    with pytest.raises(InputError, match=re.escape(text)):
        call()


@pytest.mark.parametrize("seed", range(15))
def test_no_move_or_swap_of_groups_would_balance_better(seed):
    """The search ends where no single move of a group and no swap of two lessens the folds' squared profiles."""
    from cvstats.folds import _balance

    rng = np.random.default_rng(seed)
    profile, k = rng.integers(0, 6, (12, 3)).astype(float), 3
    fold = _balance(profile, k, np.random.default_rng(seed))

    def cost(where):
        return sum((profile[where == f].sum(axis=0) ** 2).sum() for f in range(k))

    reached = cost(fold)
    for group in range(12):
        for other in range(k):
            moved = fold.copy()
            moved[group] = other
            assert cost(moved) >= reached - 1e-6
        for partner in range(group):
            swapped = fold.copy()
            swapped[[group, partner]] = fold[[partner, group]]
            assert cost(swapped) >= reached - 1e-6


def test_separate_folds_keep_groups_whole():
    label = np.repeat(["ill", "well"], [24, 40])
    group = np.r_[np.arange(24) // 3, 100 + np.arange(40) // 2]
    fold = separate_folds(label, 4, 5, groups=group, repeats=3, rng=2)
    for repeat in range(3):
        one = fold.isel(repeat=repeat).values
        assert all(len(set(one[group == name])) == 1 for name in np.unique(group))
        assert np.bincount(one[label == "ill"]).tolist() == [6] * 4
        assert np.bincount(one[label == "well"]).tolist() == [8] * 5
    assert fold["group"].values.tolist() == group.tolist()
    assert int(pairs(fold).sizes["pair"]) == 20
    alone = separate_folds(label, "loo", 2, groups=group, rng=1)
    assert len(np.unique(alone.values[label == "ill"])) == 8
    with pytest.raises(InputError, match="class 'ill' has 8 groups, so it can be dealt into 2 to 8 folds"):
        separate_folds(label, 9, 2, groups=group)
    with pytest.raises(InputError, match="1 groups hold samples of both classes"):
        separate_folds(label, 2, 2, groups=np.r_[group[:24], 0, group[25:]])
