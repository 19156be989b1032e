"""No protocol gives a wrong or misleading number without a word: one test for each case that once did."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

NAN = float("nan")
TEXT, NUMBERS = ["a", "b", "c"], [10, 20, 30]


def told(function):
    """Return what a call gives and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", cs.CvstatsWarning)
        out = function()
    return out, [str(one.message) for one in caught]


def nested_cube(names=TEXT, inner_folds=6, repeats=None):
    """Return a cube of 20 negatives and 4 positives in 4 folds, with inner predictions whose folds lack positives.

    The last configuration is perfect.
    """
    y = np.r_[np.ones(4, int), np.zeros(20, int)]
    p = np.random.default_rng(1).random((24, 3))
    p[:, 2] = (p[:, 2] + y) / 2
    fold = np.arange(24) % 4
    inside, inner_fold = np.full((24, 3, 4), NAN), np.zeros((24, 4), int)
    for k in range(4):
        rows = np.flatnonzero(fold != k)
        inside[rows, :, k] = p[rows]
        inner_fold[rows, k] = np.arange(len(rows)) % inner_folds
    inner = xr.DataArray(inside, dims=("sample", "configuration", "outer_fold"))
    inner = inner.assign_coords(fold=(("sample", "outer_fold"), inner_fold), configuration=names)
    cube = cs.as_cube(p, y, folds=fold, kind="score", configurations=names)
    if repeats:
        cube = cs.as_cube(np.stack([p] * repeats, axis=-1), y, folds=fold, kind="score", configurations=names)
        inner = inner.expand_dims(repeat=repeats, axis=-1)
    return cube, inner


def one_class(names=TEXT, repeats=1):
    """Return a cube without a single positive sample: no AUC is defined anywhere."""
    p = np.random.default_rng(2).random((24, 3, repeats))
    p = xr.DataArray(p if repeats > 1 else p[..., 0], dims=["sample", "configuration", "repeat"][: 2 + (repeats > 1)])
    return cs.as_cube(p, [0] * 24, folds=np.arange(24) % 4, kind="score", classes=[0, 1], configurations=names)


def sorted_folds(names=TEXT, repeats=1):
    """Return a cube whose folds hold one class each: AUC is defined pooled, but in no fold."""
    p = np.random.default_rng(3).random((24, 3, repeats))
    p = p if repeats > 1 else p[..., 0]
    return cs.as_cube(p, np.arange(24) // 12, folds=np.arange(24) // 6, kind="score", configurations=names)


# what is chosen -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["fold", "pooled"])
def test_ncv_chooses_nothing_by_inner_folds_that_lack_a_class(average):
    cube, inner = nested_cube()
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner, average=average))
    assert np.isnan(out.estimate)
    assert np.isnan(out.optimism)
    assert out.selected_fold.values.tolist() == [""] * 4
    assert out.win_rate.values.tolist() == [0, 0, 0]
    assert out.selected.item() == "c"  # on all data the outer predictions choose, and they are defined
    assert len(messages) == 1
    assert (
        "ncv: NaN, because auc needs every class to be present and nothing can be chosen in outer fold 0 (inner "
        in (messages[0])
    )
    assert "outer fold 3 (inner fold 3, 4, 5)" in messages[0]


def test_ncv_pooled_inner_predictions_choose_where_inner_folds_cannot():
    cube, inner = nested_cube()
    out = cs.ncv(cube, "auc", inner=inner.drop_vars("fold"))
    assert out.selected_fold.values.tolist() == ["c"] * 4
    assert out.estimate == 1


def test_ncv_with_one_outer_fold_that_cannot_choose_is_undefined_and_keeps_the_others():
    cube, inner = nested_cube(NUMBERS, inner_folds=3)
    fold = inner["fold"].values.copy()
    fold[:4, 2] = 0  # all positives of the training set of fold 2 lie in one inner fold
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner.assign_coords(fold=(inner["fold"].dims, fold))))
    np.testing.assert_array_equal(out.selected_fold, [30, 30, NAN, 30])
    np.testing.assert_array_equal(out.fold_estimate, [1, 1, NAN, 1])
    assert np.isnan(out.estimate)
    assert out.win_rate.values.tolist() == [0, 0, 0.75]
    assert len(messages) == 1
    assert "nothing can be chosen in outer fold 2 (inner fold 1, 2)." in messages[0]


def test_ncv_names_the_repeat_that_cannot_choose():
    cube, inner = nested_cube(repeats=2)
    _, messages = told(lambda: cs.ncv(cube, "auc", inner=inner))
    assert len(messages) == 1
    assert "of repeat 0; " in messages[0]
    assert messages[0].endswith("of repeat 1.")


def test_ncv_of_a_training_set_without_a_class_says_so():
    cube = cs.as_cube(np.random.default_rng(1).random((8, 2)), [0, 1] * 2 + [0] * 4, folds=[0] * 4 + [1] * 4)
    inner = xr.DataArray(np.random.default_rng(2).random((8, 2, 2)), dims=("sample", "configuration", "outer_fold"))
    held = xr.DataArray(np.arange(8) // 4, dims="sample") == xr.DataArray([0, 1], dims="outer_fold")
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner.where(~held), average="pooled"))
    assert np.isnan(out.estimate)
    assert len(messages) == 1
    assert "nothing can be chosen in outer fold 0; auc is NaN for 2 of 4 scores (fold 1)" in messages[0]


def test_winner_with_inner_predictions_that_cannot_choose_is_undefined():
    """A training set without positives has no sensitivity: nobody chooses there."""
    y = np.r_[np.ones(10, int), np.zeros(30, int)]
    fold = np.r_[np.zeros(10, int), np.arange(30) % 2]
    p = np.random.default_rng(1).integers(0, 2, (40, 3))
    cube = cs.as_cube(p, y, folds=fold, configurations=TEXT)
    inner = xr.DataArray(np.repeat(p[..., None], 2, -1).astype(float), dims=("sample", "configuration", "outer_fold"))
    inner = inner.where(xr.DataArray(fold, dims="sample") != xr.DataArray([0, 1], dims="outer_fold"))
    out, messages = told(lambda: cs.winner(cube, "sensitivity", inner=inner, times=50, rng=1))
    assert np.isnan(out.estimate)
    assert len(messages) == 1
    assert "the estimate is NaN: sensitivity is undefined in the training set of an outer fold" in messages[0]


def _inner_of(cube):
    held = cube["fold"] == xr.DataArray(np.arange(4), dims="outer_fold")
    return cube.drop_vars("fold").expand_dims(outer_fold=4, axis=-1).where(~held.drop_vars(list(held.coords)))


UNDEFINED = {  # every protocol that names a winner, on data where no score is defined: what it names
    "cvt": lambda c: [cs.cvt(c(), "auc").selected],
    "cvt by fold": lambda c: [cs.cvt(c(), "auc", average="fold").selected],
    "cvt one_se": lambda c: [cs.cvt(c(), "auc", average="fold", select=cs.select_within(0.1)).selected],
    "tt": lambda c: [cs.tt(c(), "auc").selected],
    "cvm_cv": lambda c: [(out := cs.cvm_cv(c(repeats=3), "auc")).selected, out.selected_first],
    "cvm_cv by fold": lambda c: [(out := cs.cvm_cv(c(repeats=3), "auc", average="fold")).selected, out.selected_first],
    "ncv": lambda c: [(out := cs.ncv(c(), "auc", inner=_inner_of(c()))).selected, out.selected_fold],
    "bbc": lambda c: [(out := cs.bbc(c(), "auc", times=50, rng=1, keep_draws=True)).selected, out.draw_selected],
    "winner": lambda c: [(out := cs.winner(c(), "auc", times=50, rng=1, keep_draws=True)).selected, out.draw_selected],
    "winner repeats": lambda c: [cs.winner(c(repeats=3), "balanced_accuracy", times=50, rng=1).selected],
    "bbcd": lambda c: [(out := cs.bbcd(c(), "auc", times=50, rng=1)).selected, out.full_selected],
    "drop_configurations": lambda c: [cs.drop_configurations(c(), "auc", times=50, rng=1).best],
    "best_set": lambda c: [cs.best_set(c(), "auc", times=50, rng=1).selected],
    "contrast": lambda c: [cs.contrast(c(), "auc", a=c()["configuration"].values[:1],
                                       b=c()["configuration"].values[1:], times=50, rng=1).selected_b],
    "select_and_judge": lambda c: [cs.select_and_judge(c(), "auc", choose=cs.bootstrap(c(), 5, rng=1), rng=1).selected],
    "implementations": lambda c: [(out := cs.implementations(c(), "auc", inner=_inner_of(c()))).selected, out.chosen],
    "evaluation_protocols": lambda c: [cs.evaluation_protocols(
        c().expand_dims(realisation=5), "auc", selection=c().expand_dims(realisation=5)).selected],
}  # fmt: skip
BY_FOLD = ("cvt by fold", "cvt one_se", "tt", "cvm_cv by fold", "ncv")


@pytest.mark.parametrize("names", [TEXT, NUMBERS], ids=["text", "numbers"])
@pytest.mark.parametrize("protocol", UNDEFINED)
def test_a_protocol_never_names_a_winner_that_an_undefined_score_chose(protocol, names):
    def made(repeats=1):
        cube = one_class(names, repeats)
        return cube.assign_coords(threshold=0.5)

    chosen, messages = told(lambda: UNDEFINED[protocol](made))
    assert messages or protocol in ("drop_configurations", "select_and_judge")
    for label in chosen:
        values = label.values.ravel().tolist()
        assert values
        assert all(value == "" if names is TEXT else np.isnan(value) for value in values)


@pytest.mark.parametrize("names", [TEXT, NUMBERS], ids=["text", "numbers"])
@pytest.mark.parametrize("protocol", BY_FOLD)
def test_a_protocol_by_fold_names_nobody_when_folds_lack_a_class(protocol, names):
    chosen, messages = told(lambda: UNDEFINED[protocol](lambda repeats=1: sorted_folds(names, repeats)))
    assert any("fold 0, 1, 2, 3" in message for message in messages)
    final = chosen[0].item()
    assert final == "" if names is TEXT else np.isnan(final)


def test_batches_with_and_without_a_winner_lie_side_by_side():
    good = cs.as_cube(
        [[0.9, 0.1], [0.8, 0.4], [0.1, 0.7], [0.2, 0.3]], [1, 1, 0, 0], kind="score", configurations=[5, 7]
    )
    data = xr.concat([good.drop_vars("label")] * 2, dim="dataset")
    both = data.assign_coords(label=(("dataset", "sample"), [[1, 1, 0, 0], [0, 0, 0, 0]]))
    out, _ = told(lambda: cs.cvt(both, "auc"))
    np.testing.assert_array_equal(out.selected, [5, NAN])


def test_coverage_counts_results_without_a_winner_as_undefined():
    def simulator(rng):
        cube = one_class() if rng.integers(2) else sorted_folds()
        return cube.assign_coords(truth=("configuration", [0.5, 0.6, 0.7]))

    out, _ = told(
        lambda: cs.coverage(simulator, lambda cube, rng: cs.bbc(cube, "auc", times=50, rng=rng), repetitions=8, rng=1)
    )
    assert 0 < int(out.n) < 8


def test_a_report_without_a_winner_is_refused(tmp_path):
    text = "`metric`: no configuration won, because auc is undefined for all. winner: "
    for make in (cs.report_text, lambda cube, metric: cs.report_html(cube, metric, path=tmp_path / "r.html")):
        with pytest.raises(cs.InputError, match=re.escape(text)):
            make(one_class(), "auc")


def test_a_report_leaves_out_nested_cv_that_cannot_choose():
    cube, inner = nested_cube()
    cube, inner = (
        part.isel(sample=np.tile(np.arange(24), 2)).assign_coords(sample=np.arange(48)) for part in (cube, inner)
    )
    from cvstats._analysis import analyse

    found = analyse(cube, "auc", inner=inner, times=50, extras=False)
    assert "ncv" not in found.others
    assert found.skipped["ncv"] == "it is undefined here, for example because a fold lacks a class"
