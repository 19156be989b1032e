"""Metrics: how repeats, gaps, folds, batch dims, size, precision and dask enter."""

from __future__ import annotations

import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from shared import BINARY, EVERY, binary, cube_for, refusal

refused = refusal(cs.score)


class TestRepeats:
    @pytest.mark.parametrize("metric", EVERY)
    def test_within_each_repeat_then_averaged(self, metric):
        cube = cube_for(metric, shape=(4, 3))
        each = [cs.score(cube.isel(repeat=[r]), metric) for r in range(3)]
        np.testing.assert_allclose(cs.score(cube, metric), np.mean(each, axis=0), rtol=1e-13)

    @pytest.mark.parametrize("metric", EVERY)
    def test_a_repeat_without_predictions_is_left_out(self, metric):
        cube = cube_for(metric, shape=(4, 3)).copy()
        expected = cs.score(cube, metric).values.copy()
        expected[2] = cs.score(cube.isel(repeat=[0, 2], configuration=[2]), metric).item()
        cube[:, 2, 1] = np.nan
        np.testing.assert_allclose(cs.score(cube, metric), expected, rtol=1e-13)

    @pytest.mark.parametrize("metric", EVERY)
    def test_gaps_leave_samples_out(self, metric):
        cube = cube_for(metric).copy()
        cube[[3, 4, 9], 1] = np.nan
        keep = np.setdiff1d(np.arange(40), [3, 4, 9])
        expected = cs.score(cube.isel(sample=keep, configuration=[1]), metric).item()
        np.testing.assert_allclose(cs.score(cube, metric)[1], expected, rtol=1e-13)
        np.testing.assert_allclose(
            cs.score(cube, metric)[0], cs.score(cube.isel(configuration=[0]), metric).item(), rtol=1e-13
        )

    def test_a_sample_counts_by_its_mean_over_the_repeats_it_has(self):
        p = np.array([[[1.0, 1.0]], [[0.0, 1.0]], [[1.0, np.nan]]])
        cube = cs.as_cube(p, [1, 1, 0], kind="label")
        np.testing.assert_allclose(cs.accuracy(cube), [(1 + 0.5 + 0) / 3])

    @pytest.mark.parametrize("metric", BINARY)
    @pytest.mark.parametrize("shape", [(5,), (5, 2)])
    def test_nothing_predicted(self, metric, shape):
        cube = binary(shape=shape).copy()
        cube[:, 2] = np.nan
        with pytest.warns(cs.CvstatsWarning, match="configuration 2") as record:
            found = cs.score(cube, metric)
        assert len(record) == 1
        assert np.isnan(found[2])
        assert not np.isnan(found[[0, 1, 3, 4]]).any()


class TestByFold:
    @pytest.mark.parametrize("weights", [None, np.arange(40) % 3 + 1, 0.5 + np.arange(40) % 7])
    @pytest.mark.parametrize("metric", EVERY)
    def test_mean_of_fold_scores(self, metric, weights):
        folds = np.arange(40) // 2 % 4
        cube = cube_for(metric, shape=(3, 2), folds=folds, weights=weights)
        each = [cs.score(cube.isel(sample=folds == k), metric) for k in range(4)]
        found = cs.score(cube, metric, average="fold")
        np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-12)
        assert found.dims == ("configuration",)
        assert found["metric"].item() == metric

    @pytest.mark.parametrize("weights", [None, np.arange(40) % 3 + 1])
    @pytest.mark.parametrize("metric", EVERY)
    def test_each_repeat_has_its_own_folds(self, metric, weights):
        g = np.random.default_rng(1)
        folds = np.stack([g.permutation(np.arange(40) % 4) for _ in range(3)], axis=1)
        cube = cube_for(metric, shape=(3, 3), folds=folds, weights=weights)
        each = [[cs.score(cube.isel(sample=folds[:, r] == k, repeat=[r]), metric) for k in range(4)] for r in range(3)]
        np.testing.assert_allclose(cs.score(cube, metric, average="fold"), np.mean(each, axis=(0, 1)), rtol=1e-12)

    def test_one_class_fold(self):
        y = np.array([0, 1, 0, 1, 1, 1])
        cube = cs.as_cube(np.random.default_rng(0).random((6, 2)), y, folds=["a", "a", "b", "b", "c", "c"])
        with pytest.warns(
            cs.CvstatsWarning, match="auc is NaN for 2 of 6 scores \\(fold 'c'\\): it needs every class"
        ) as record:
            found = cs.score(cube, "auc", average="fold")
        assert len(record) == 1
        assert np.isnan(found).all()
        assert not np.isnan(cs.score(cube, "accuracy", average="fold")).any()

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "mcc"])
    def test_folds_not_predicted_are_left_out(self, metric):
        folds = np.arange(40) // 2 % 4
        cube = binary(shape=(3, 2), folds=folds).copy()
        cube[folds == 3] = np.nan  # nobody: as in a hold-out
        cube[folds == 2, 1, :] = np.nan  # this configuration was dropped before fold 2
        cube[:, 2, 1] = np.nan  # this one has a single repeat
        found = cs.score(cube, metric, average="fold").values
        plain = [cs.score(cube.isel(sample=folds == k, configuration=[0]), metric).item() for k in range(3)]
        np.testing.assert_allclose(found[0], np.mean(plain))
        plain = [cs.score(cube.isel(sample=folds == k, configuration=[1]), metric).item() for k in range(2)]
        np.testing.assert_allclose(found[1], np.mean(plain))
        plain = [cs.score(cube.isel(sample=folds == k, configuration=[2], repeat=[0]), metric).item() for k in range(3)]
        np.testing.assert_allclose(found[2], np.mean(plain))

    def test_repeats_with_other_folds(self):
        folds = np.array([[0, 0], [0, 1], [1, 2], [1, 0]])
        cube = cs.as_cube(np.random.default_rng(0).random((4, 2, 2)), [0, 1, 0, 1], folds=folds, repeats=["r1", "r2"])
        refused(
            "every repeat needs the same number of folds; repeat 'r1' has 2, repeat 'r2' has 3.",
            cube,
            "accuracy",
            average="fold",
        )

    def test_partners(self):
        cube = xr.DataArray(np.random.default_rng(0).random((4, 2, 2)), dims=("sample", "configuration", "partner"))
        cube = cs.as_cube(cube, [0, 1, 0, 1], folds=[0, 0, 1, 1])
        np.testing.assert_allclose(cs.balanced_accuracy(cube), cs.balanced_accuracy(cube.rename(partner="repeat")))


class TestBatch:
    @pytest.mark.parametrize("average", ["pooled", "fold"])
    @pytest.mark.parametrize("metric", EVERY)
    def test_batch_dims_are_kept(self, metric, average):
        cube = cube_for(metric, shape=(3, 4), folds=np.arange(40) // 2 % 4).rename(repeat="trial")
        cube = xr.concat([cube, cube[:, ::-1].assign_coords(configuration=cube["configuration"])], dim="size")
        found = cs.score(cube, metric, average=average)
        assert set(found.dims) == {"size", "trial", "configuration"}
        for i in range(2):
            for j in range(4):
                alone = cs.score(cube.isel(size=i, trial=j), metric, average=average)
                np.testing.assert_allclose(found.isel(size=i, trial=j), alone, rtol=1e-13)

    @pytest.mark.parametrize("average", ["pooled", "fold"])
    @pytest.mark.parametrize("metric", EVERY)
    def test_labels_that_carry_batch_dims_and_padding(self, metric, average):
        parts = [cube_for(metric, n=n, seed=n, folds=np.arange(n) // 2 % 3) for n in (24, 40)]
        samples = np.arange(40)
        padded = []
        for part in parts:
            wide = part.drop_vars(["label", "fold", "event"], errors="ignore").reindex(sample=samples)
            fill = {name: part[name].reindex(sample=samples) for name in ("label", "event") if name in part.coords}
            padded.append(wide.assign_coords(fill))
        stack = xr.concat(padded, dim=xr.Variable("dataset", ["small", "large"]))
        if "event" in stack.coords:
            stack = stack.assign_coords(event=stack["event"].fillna(0).astype(int))
        cube = cs.as_cube(stack, folds=samples // 2 % 3)
        assert "dataset" in cube["label"].dims
        found = cs.score(cube, metric, average=average)
        for name, part in zip(["small", "large"], parts, strict=True):
            np.testing.assert_allclose(found.sel(dataset=name), cs.score(part, metric, average=average), rtol=1e-12)

    def test_weights_that_carry_batch_dims(self):
        cube = binary(shape=(3, 2)).rename(repeat="dataset")
        weight = xr.DataArray(np.stack([np.arange(40) % 3, np.arange(40) % 5], 1), dims=("sample", "dataset"))
        weighted = cs.as_cube(cube, weights=weight)
        for metric in ("accuracy", "auc", "mcc"):
            found = cs.score(weighted, metric)
            for i in range(2):
                alone = cs.score(cs.as_cube(cube.isel(dataset=i), weights=weight.values[:, i]), metric)
                np.testing.assert_allclose(found.isel(dataset=i), alone, rtol=1e-13)

    def test_folds_that_carry_batch_dims(self):
        cube = binary(shape=(3, 2)).rename(repeat="dataset")
        fold = xr.DataArray(np.stack([np.arange(40) // 2 % 4, np.arange(40) // 2 % 5], 1), dims=("sample", "dataset"))
        found = cs.score(cs.as_cube(cube, folds=fold), "auc", average="fold")
        for i in range(2):
            alone = cs.score(cs.as_cube(cube.isel(dataset=i), folds=fold.values[:, i]), "auc", average="fold")
            np.testing.assert_allclose(found.isel(dataset=i), alone, rtol=1e-13)


class TestScale:
    def test_memory(self):
        """A 5000 x 300 x 5 cube: the peak of what is allocated stays below three times the cube."""
        g = np.random.default_rng(0)
        cube = cs.as_cube(g.random((5000, 300, 5), dtype=np.float32), g.integers(0, 2, 5000), kind="probability")
        cs.score(cube.isel(sample=slice(0, 40), configuration=[0]), "auc")
        tracemalloc.start()
        try:
            cs.score(cube, "auc")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 3 * cube.nbytes

    @pytest.mark.parametrize("metric", EVERY)
    def test_no_python_loop_over_configurations(self, metric):
        def calls(c):
            cube = cube_for(metric, n=30, shape=(c, 2))
            count = 0

            def tick(frame, event, argument):
                nonlocal count
                count += event == "call"

            cs.score(cube, metric)
            sys.setprofile(tick)
            try:
                cs.score(cube, metric)
            finally:
                sys.setprofile(None)
            return count

        assert calls(500) <= calls(5) + 30

    @pytest.mark.parametrize("metric", EVERY)
    def test_single_precision_is_scored_in_double(self, metric):
        cube = cube_for(metric).astype(np.float32)
        np.testing.assert_allclose(cs.score(cube, metric), cs.score(cube.astype(float), metric), rtol=1e-13)


class TestDask:
    @pytest.mark.parametrize("average", ["pooled", "fold"])
    @pytest.mark.parametrize("metric", EVERY)
    def test_same_numbers(self, metric, average):
        pytest.importorskip("dask")
        cube = cube_for(metric, shape=(7, 2), folds=np.arange(40) // 2 % 4)
        expected = cs.score(cube, metric, average=average)
        for chunks in ({"configuration": 3}, {"configuration": 2, "sample": 11}, {"sample": 9, "repeat": 1}):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the dask-backed cube is split along")
                found = cs.score(cube.chunk(chunks), metric, average=average)
            xr.testing.assert_identical(found, expected)

    def test_one_warning(self):
        pytest.importorskip("dask")
        cube = cs.as_cube(np.random.default_rng(0).random((6, 5)), np.ones(6, int)).chunk(configuration=1)
        with pytest.warns(cs.CvstatsWarning, match="auc is NaN for 5 of 5 scores") as record:
            cs.score(cube, "auc")
        assert len(record) == 1


@pytest.mark.parametrize("block", [1, 60, 200])
@pytest.mark.parametrize("metric", ["accuracy", "auc", "log_loss", "mcc"])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("weights", [None, np.arange(30) % 4 / 2])
def test_blocks_of_columns_change_nothing(monkeypatch, block, metric, many, weights):
    """Cubes beyond the block size are scored in blocks of configurations; here the blocks are tiny."""
    rng = np.random.default_rng(0)
    classes, y = (["a", "b", "c"], np.array(list("abc"))[np.arange(30) % 3]) if many else (None, np.arange(30) % 2)
    p = rng.dirichlet([1, 1, 1], size=(30, 5, 2)) if many else rng.random((30, 5, 2))
    cube = cs.as_cube(p, y, kind="probability", classes=classes, folds=np.arange(30) // 6 % 5, weights=weights).copy()
    cube[3, 1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = [cs.score(cube, metric, average=average) for average in ("pooled", "fold")]
        monkeypatch.setattr("cvstats.metrics.scoring.BLOCK", block)
        again = [cs.score(cube, metric, average=average) for average in ("pooled", "fold")]
    for one, two in zip(whole, again, strict=True):
        assert np.isfinite(one).all() or metric != "accuracy"
        xr.testing.assert_identical(one, two)


@pytest.mark.parametrize("metric", ["log_loss", "auc", "accuracy"])
def test_a_fold_without_class_probabilities_is_left_out_of_the_mean(metric):
    rng = np.random.default_rng(1)
    y = np.array(list("abc"))[np.arange(36) % 3]
    fold = np.arange(36) // 12
    cube = cs.as_cube(rng.dirichlet([1, 1, 1], size=(36, 4)), y, classes=["a", "b", "c"], folds=fold).copy()
    whole = cs.score(cube, metric, average="fold")
    cube[fold == 1, 2] = np.nan  # the third configuration has no second fold
    found = cs.score(cube, metric, average="fold")
    parts = [cs.score(cube.isel(sample=np.flatnonzero(fold == f), configuration=[2]), metric) for f in (0, 2)]
    assert float(found[2]) == pytest.approx(float(np.mean(parts)), rel=1e-12)
    np.testing.assert_allclose(found[[0, 1, 3]], whole[[0, 1, 3]], rtol=1e-12)


def test_an_undefined_fold_makes_the_mean_nan_even_when_another_fold_is_missing():
    y = np.array([0, 1, 0, 1, 1, 1, 0, 1])
    fold = np.array([0, 0, 0, 0, 1, 1, 2, 2])  # the second fold holds one class
    cube = cs.as_cube(np.random.default_rng(0).random((8, 3)), y, kind="probability", folds=fold).copy()
    cube[6:, 1] = np.nan
    with pytest.warns(cs.CvstatsWarning, match="auc is NaN"):
        assert np.isnan(cs.score(cube, "auc", average="fold")).all()
    cube[4:6, 1] = np.nan  # without its predictions there the fold does not count
    with pytest.warns(cs.CvstatsWarning, match="auc is NaN"):
        found = cs.score(cube, "auc", average="fold")
    alone = cs.score(cube.isel(sample=slice(4), configuration=[1]), "auc")
    assert np.isnan(found.values).tolist() == [True, False, True]
    assert float(found[1]) == pytest.approx(float(alone[0]))


@pytest.mark.parametrize("metric", ["accuracy", "mse", "balanced_accuracy"])
def test_whole_and_broken_case_weights_together(metric):
    w = np.array([1, 1.5, 2, 0.25, 3, 0])
    y = np.array([0, 1, 1, 0, 1, 0])
    p = np.array([[0, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0]]).T * 1.0
    cube = cs.as_cube(p, y * 1.0 if metric == "mse" else y, kind="value" if metric == "mse" else "label", weights=w)
    loss = (p != y[:, None]).astype(float)
    by_class = [np.average(1 - loss[y == c], axis=0, weights=w[y == c]) for c in (0, 1)]
    expected = {"mse": np.average(loss, axis=0, weights=w), "balanced_accuracy": np.mean(by_class, axis=0)}
    expected["accuracy"] = 1 - expected["mse"]
    np.testing.assert_allclose(cs.score(cube, metric), expected[metric], rtol=1e-12)


def test_repeats_without_predictions_are_left_out_of_a_custom_metric():
    """Configuration 0 has no second repeat, 1 has half of it, 2 has nothing at all."""
    own = cs.as_metric(lambda y, p, w: np.average(p, weights=w), direction="maximize", name="own")
    p = np.random.default_rng(0).random((6, 4, 2))
    p[:, 0, 1] = p[:3, 1, 1] = p[:, 2] = np.nan
    with pytest.warns(cs.CvstatsWarning, match="own is NaN for 1 of 4 scores"):
        found = cs.score(cs.as_cube(p, np.arange(6) % 2, kind="score"), own)
    expected = [p[:, 0, 0].mean(), (p[:, 1, 0].mean() + p[3:, 1, 1].mean()) / 2, np.nan, p[:, 3].mean()]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_fold_that_lacks_one_class_of_every_prediction_is_left_out():
    rng = np.random.default_rng(1)
    fold = np.arange(36) // 12
    cube = cs.as_cube(rng.dirichlet([1, 1, 1], size=(36, 2)), np.arange(36) % 3, classes=range(3), folds=fold).copy()
    cube[fold == 1, 0, 2] = np.nan
    found = cs.score(cube, "brier", average="fold")
    parts = [cs.score(cube.isel(sample=fold == f), "brier") for f in (0, 2)]
    assert float(found[0]) == pytest.approx(float(np.mean([part[0] for part in parts])), rel=1e-12)


def test_folds_numbered_throughout_the_repeats_are_numbered_from_0_in_each():
    from cvstats.metrics.scoring import fold_scores

    rng = np.random.default_rng(1)
    fold = np.stack([rng.permutation(12) % 3 for _ in range(3)], axis=1)
    one, other, third = (
        fold_scores(cs.as_cube(p, np.arange(12) % 2, folds=fold + shift), cs.accuracy)
        for p in [rng.random((12, 2, 3))]
        for shift in (0, [1, 4, 7], [1, 1, 4])
    )
    assert one.fold.values.tolist() == other.fold.values.tolist() == third.fold.values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, third)
