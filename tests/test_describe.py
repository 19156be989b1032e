"""What describe_cube says of a cube, and its test of shifts between folds against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import cvstats as cs
from cvstats.describe import describe_cube


def shifting(n=120, m=4, repeats=None, seed=0, size=0.0, **arguments):
    """Return scores that move by `size` per fold in the last configuration."""
    g = np.random.default_rng(seed)
    y = np.arange(n) % 2
    fold = np.arange(n) // 2 % 4
    p = g.normal(size=(n, m) if repeats is None else (n, m, repeats)) + y.reshape(
        -1, *[1] * (1 if repeats is None else 2)
    )
    p[:, -1] += size * fold.reshape(-1, *[1] * (0 if repeats is None else 1))
    return cs.as_cube(p, y, folds=fold, kind="score", configurations=[f"c{j}" for j in range(m)], **arguments)


class TestContent:
    def test_sizes_and_classes(self):
        cube = cs.as_cube(
            np.random.default_rng(0).random((9, 3, 2)), list("yynnnynyn"), positive="y", folds=[0, 1, 2] * 3
        )
        about = describe_cube(cube)
        assert about["n_samples"] == 9
        assert about["n_configurations"] == 3
        assert about["n_repeats"] == 2
        assert about["n_unpredicted"] == 0
        assert about["class_count"].sel(label_class="y") == 4
        assert about["class_count"].sel(label_class="n") == 5
        assert about["fold_size"].values.tolist() == [3, 3, 3]
        assert about["fold_class_count"].sum() == 9
        np.testing.assert_array_equal(about["fold_class_count"].sum("fold"), about["class_count"])
        assert about["method"].item() == "describe"
        assert about.attrs["cube_hash"]

    def test_unequal_folds_of_each_repeat(self):
        folds = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, 0]])
        cube = cs.as_cube(np.random.default_rng(0).random((5, 2, 2)), [0, 1, 0, 1, 1], folds=folds, repeats=["r", "s"])
        about = describe_cube(cube)
        assert about["fold_size"].dims == ("repeat", "fold")
        np.testing.assert_array_equal(about["fold_size"], [[2, 3], [2, 3]])
        assert about["fold_class_count"].sel(repeat="s", fold=1, label_class=1).item() == 2

    def test_repeats_with_other_folds_are_described(self):
        folds = np.array([[0, 0], [0, 1], [1, 2], [1, 0]])
        about = describe_cube(cs.as_cube(np.random.default_rng(0).random((4, 2, 2)), [0, 1, 0, 1], folds=folds))
        np.testing.assert_array_equal(about["fold_size"], [[2, 2, 0], [2, 1, 1]])

    def test_gaps(self):
        p = np.random.default_rng(0).random((6, 3, 2))
        p[0] = np.nan  # nobody
        p[2, 1, 0] = np.nan  # in one repeat only
        p[3, 2] = np.nan
        about = describe_cube(cs.as_cube(p, [0, 1] * 3))
        assert about["n_unpredicted"] == 1
        np.testing.assert_array_equal(about["n_missing"], [2, 3, 4])
        np.testing.assert_array_equal(about["complete"], [True, True, False])

    def test_duplicated_and_constant(self):
        p = np.random.default_rng(0).random((8, 7))
        p[:, 3] = p[:, 1]
        p[:, 4] = 0.25
        p[:, 5] = np.repeat([0.1, 0.2], 4)
        p[:, 6] = p[:, 1]
        p[2, [1, 3]] = np.nan
        p[2, 6] = np.nan
        about = describe_cube(cs.as_cube(p, [0, 1] * 4, folds=[0] * 4 + [1] * 4, configurations=list("zyxwvut")))
        np.testing.assert_array_equal(about["duplicated"], [0, 0, 0, 1, 0, 0, 1])
        assert about["same_as"].values.tolist() == list("zyxyvuy")
        np.testing.assert_array_equal(about["constant"], [0, 0, 0, 0, 1, 0, 0])
        np.testing.assert_array_equal(about["constant_in_folds"], [0, 0, 0, 0, 1, 1, 0])

    def test_minus_zero_is_zero(self):
        about = describe_cube(cs.as_cube([[0.0, -0.0], [1.5, 1.5]], [0, 1], kind="score"))
        np.testing.assert_array_equal(about["duplicated"], [False, True])

    def test_constant_in_leave_one_out_says_nothing(self):
        about = describe_cube(cs.as_cube(np.random.default_rng(0).random((6, 2)), [0, 1] * 3, folds=np.arange(6)))
        assert not about["constant_in_folds"].any()
        assert np.isnan(about["shift_p_value"]).all()
        assert not about["shifted"].any()

    def test_nothing_predicted(self):
        about = describe_cube(cs.as_cube(np.full((4, 2), np.nan), [0, 1, 0, 1], kind="score"))
        assert about["n_unpredicted"] == 4
        assert not about["complete"].any()
        assert not about["constant"].any()


class TestKinds:
    def test_hard_labels(self):
        cube = cs.as_cube(np.random.default_rng(0).integers(0, 3, (12, 2)), [0, 1, 2] * 4, folds=[0, 1] * 6)
        about = describe_cube(cube)
        assert about["shift_test"].item() == "none"
        assert np.isnan(about["shift_p_value"]).all()
        assert about["class_count"].values.tolist() == [4, 4, 4]

    def test_numbers(self):
        g = np.random.default_rng(0)
        y = g.normal(size=40)
        fold = np.arange(40) % 4
        cube = cs.as_cube(y[:, None] + g.normal(size=(40, 2)) + np.array([0, 5]) * fold[:, None], y, folds=fold)
        about = describe_cube(cube)  # no warning: nothing ranks across folds
        assert about["shift_test"].item() == "Kruskal-Wallis of residuals between folds"
        np.testing.assert_array_equal(about["shifted"], [False, True])
        np.testing.assert_allclose(about["label_mean"], y.mean())
        np.testing.assert_allclose(about["label_sd"], y.std(ddof=1))
        residual = cube.values[:, 0] - y
        expected = stats.kruskal(*[residual[fold == k] for k in range(4)])
        np.testing.assert_allclose([about["shift_statistic"][0], about["shift_p_value"][0]], expected)

    def test_survival(self):
        g = np.random.default_rng(0)
        cube = cs.as_cube(
            g.normal(size=(40, 2)),
            g.exponential(size=40),
            event=np.arange(40) % 2,
            kind="score",
            folds=np.arange(40) // 2 % 4,
        )
        about = describe_cube(cube)
        assert about["n_events"] == 20
        assert about["shift_test"].item() == "Kruskal-Wallis of scores between folds, within event status"
        with pytest.warns(cs.CvstatsWarning, match="pooled concordance compares scores across folds"):
            describe_cube(cube + cube["fold"] * 9)

    def test_many_classes(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(60, 3))
        cube = cs.as_cube(p, list("abc") * 20, classes=list("cab"), folds=np.arange(60) // 3 % 4)
        about = describe_cube(cube)
        assert about["class_count"].sel(label_class="a") == 20
        columns = [describe_cube(plane(cube, c))["shift_p_value"].values for c in "cab"]
        expected = np.minimum(
            3 * np.min([strata_test(p[:, :, j], np.arange(60) % 3, np.arange(60) // 3 % 4) for j in range(3)], axis=0),
            1,
        )
        np.testing.assert_allclose(about["shift_p_value"], expected)
        assert np.shape(columns) == (3, 3)

    def test_without_folds(self):
        about = describe_cube(cs.as_cube(np.random.default_rng(0).random((6, 2)), [0, 1] * 3))
        assert "fold_size" not in about
        assert about["shift_test"].item() == "none"

    def test_one_class_only(self):
        about = describe_cube(cs.as_cube([[0.1], [0.2]], [1, 1]))
        assert about["class_count"].values.tolist() == [2]
        assert about["label_class"].values.tolist() == [1]


def plane(cube, name):
    scores = cube.sel(label_class=name, drop=True).drop_vars(["kind"])
    return cs.as_cube(scores, (cube["label"] == name).astype(int), kind="probability")


def strata_test(values, stratum, fold):
    """Return the p-values of Kruskal-Wallis statistics added up over strata, column by column with scipy."""
    out = []
    for column in values.T:
        total, df = 0.0, 0
        for code in np.unique(stratum):
            groups = [column[(stratum == code) & (fold == k) & ~np.isnan(column)] for k in np.unique(fold)]
            groups = [group for group in groups if len(group)]
            total += stats.kruskal(*groups).statistic
            df += len(groups) - 1
        out.append(stats.chi2.sf(total, df))
    return np.array(out)


class TestShift:
    def test_against_scipy(self):
        cube = shifting()
        y, fold = cube["label"].values, cube["fold"].values
        about = describe_cube(cube)
        np.testing.assert_allclose(about["shift_p_value"], strata_test(cube.values, y, fold))
        assert about["shift_df"].values.tolist() == [6, 6, 6, 6]
        assert not about["shifted"].any()

    def test_ties_and_gaps_against_scipy(self):
        cube = shifting().round(0).copy()
        cube[3:20, 1] = np.nan
        cube[cube["fold"].values == 2, 2] = np.nan
        about = describe_cube(cube)
        np.testing.assert_allclose(
            about["shift_p_value"], strata_test(cube.values, cube["label"].values, cube["fold"].values)
        )
        assert about["shift_df"].values.tolist() == [6, 6, 4, 6]

    def test_finds_and_warns(self):
        cube = shifting(size=1.0)
        text = (
            r"scores shift between folds in 1 of 4 configurations \('c3'; Kruskal-Wallis of scores .*, within class, "
        )
        with pytest.warns(
            cs.CvstatsWarning, match=text + r"smallest adjusted p = .*\): pooled AUC .* Use average='fold'\."
        ) as record:
            about = describe_cube(cube)
        assert len(record) == 1
        np.testing.assert_array_equal(about["shifted"], [False, False, False, True])
        assert about["shift_effect"][3] > 0.3
        assert (about["shift_effect"][:3] < 0.1).all()
        pooled, by_fold = cs.auc(cube)[3], cs.auc(cube, average="fold")[3]
        assert pooled < by_fold - 0.05  # what the warning is about

    def test_adjusted_by_holm(self):
        with pytest.warns(cs.CvstatsWarning):
            about = describe_cube(shifting(size=1.0))
        np.testing.assert_allclose(about["shift_p_adjusted"], cs.p_adjust(about["shift_p_value"].values, "holm"))

    def test_smallest_over_repeats(self):
        cube = shifting(repeats=3)
        about = describe_cube(cube)
        each = [strata_test(cube.values[:, :, r], cube["label"].values, cube["fold"].values) for r in range(3)]
        np.testing.assert_allclose(about["shift_p_value"], np.minimum(3 * np.min(each, axis=0), 1))

    def test_level(self):
        cube = shifting(size=0.4)
        p = describe_cube(cube, level=1 - 1e-12)["shift_p_adjusted"].values.min()
        assert 1e-12 < p < 0.2
        assert not describe_cube(cube, level=1 - p / 2)["shifted"].any()
        with pytest.warns(cs.CvstatsWarning):
            assert describe_cube(cube, level=1 - 2 * p)["shifted"].any()
        with pytest.raises(cs.InputError, match="`level` must be a number strictly between 0 and 1"):
            describe_cube(cube, level=95)

    def test_holds_its_level(self):
        """Without shifts, the p-values of 4000 configurations are uniform."""
        p = describe_cube(shifting(n=200, m=4000, seed=3))["shift_p_value"].values
        for level in (0.05, 0.5):
            assert abs((p < level).mean() - level) < 4 * np.sqrt(level * (1 - level) / 4000) + 0.01


class TestBatchAndDask:
    def test_batch_dims(self):
        cube = shifting(repeats=2).rename(repeat="dataset")
        about = describe_cube(cube)
        for i in range(2):
            alone = describe_cube(cube.isel(dataset=i))
            for name in ("shift_p_value", "n_missing", "class_count", "n_samples"):
                np.testing.assert_array_equal(
                    about[name].isel(dataset=i) if "dataset" in about[name].dims else about[name], alone[name]
                )
        assert about["duplicated"].dims == ("configuration",)

    def test_padded_data_sets(self):
        p = np.random.default_rng(0).random((6, 2, 2))
        p[4:, :, 0] = np.nan
        label = np.array([[0, 1], [1, 0], [0, 1], [1, 0], [np.nan, 1], [np.nan, 1]])
        cube = cs.as_cube(
            xr.DataArray(p, dims=("sample", "configuration", "dataset")),
            xr.DataArray(label, dims=("sample", "dataset")),
            folds=[0, 0, 1, 1, 2, 2],
        )
        about = describe_cube(cube)
        assert about["n_samples"].values.tolist() == [4, 6]
        np.testing.assert_array_equal(about["class_count"].transpose("dataset", "label_class"), [[2, 2], [2, 4]])
        assert (about["n_missing"] == 0).all()

    def test_dask(self):
        pytest.importorskip("dask")
        p = np.random.default_rng(0).random((30, 6))
        p[:, 5] = p[:, 0]
        p[3, 2] = np.nan
        cube = cs.as_cube(p, [0, 1] * 15, folds=np.arange(30) // 2 % 3)
        lazy = describe_cube(cube.chunk(configuration=2))
        xr.testing.assert_equal(lazy, describe_cube(cube))

    def test_dask_is_read_once(self):
        pytest.importorskip("dask")
        cube, reads = cs.as_cube(np.random.default_rng(0).random((30, 6)), [0, 1] * 15, folds=np.arange(30) % 3), []
        lazy = cube.chunk(configuration=2)
        counted = lazy.copy(data=lazy.data.map_blocks(lambda block: (reads.append(1), block)[1], meta=np.empty((0, 0))))
        describe_cube(counted)
        assert len(reads) == 3

    def test_alike_in_one_batch_only_is_not_alike(self):
        p = np.random.default_rng(0).random((6, 3, 2))
        p[:, 1, 0], p[:, 2] = p[:, 0, 0], p[:, 0]
        cube = cs.as_cube(xr.DataArray(p, dims=("sample", "configuration", "dataset")), [0, 1] * 3)
        assert describe_cube(cube)["same_as"].values.tolist() == [0, 1, 0]

    def test_does_not_change_the_cube(self):
        cube = shifting()
        before = cube.copy(deep=True)
        describe_cube(cube)
        xr.testing.assert_identical(cube, before)

    def test_separate_sampling_cube(self):
        cube = xr.DataArray(np.random.default_rng(0).random((4, 2, 2)), dims=("sample", "configuration", "partner"))
        about = describe_cube(cs.as_cube(cube, [0, 1, 0, 1], folds=[0, 0, 1, 1]))
        assert about["shift_test"].item() == "none"
        assert about["fold_size"].values.tolist() == [2, 2]
