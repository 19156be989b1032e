"""Protocols against hand-worked values, full enumeration and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.metrics import get_metric
from cvstats.protocols.bootstrap import make_draws


def labels_cube(correct, *, folds=None, labels=None):
    """Return a cube of 0/1 predictions that are right where `correct` is 1."""
    correct = np.asarray(correct)
    labels = np.arange(len(correct)) % 2 if labels is None else np.asarray(labels)
    shape = (-1,) + (1,) * (correct.ndim - 1)
    predictions = np.where(correct == 1, labels.reshape(shape), 1 - labels.reshape(shape)).astype(float)
    predictions[np.isnan(np.asarray(correct, float))] = np.nan
    return cs.as_cube(predictions, labels, folds=folds, kind="label")


def every_draw(cube):
    """Return all N^N bootstrap draws as weights."""
    n = cube.sizes["sample"]
    counts = np.array([np.bincount(draw, minlength=n) for draw in itertools.product(range(n), repeat=n)])
    return xr.DataArray(counts, dims=("draw", "sample"), coords={"sample": cube["sample"].values})


def enumerate_bbc(score, n, n_configurations, sign=1):
    """Return the mean, quantiles and win rates of BBC over all draws, by plain loops; `score(j, weights)`."""
    values, wins = [], np.zeros(n_configurations)
    for draw in itertools.product(range(n), repeat=n):
        counts = np.bincount(draw, minlength=n).astype(float)
        out = (counts == 0).astype(float)
        if not out.any():
            continue
        inside = [sign * score(j, counts) for j in range(n_configurations)]
        if np.isnan(inside).any():
            continue
        best = int(np.argmax(np.round(inside, 12)))
        value = score(best, out)
        if np.isnan(value):
            continue
        values.append(value)
        wins[best] += 1
    return np.array(values), wins / len(values)


class TestTuned:
    def test_cvt_is_the_best_score_on_all_samples(self):
        cube = labels_cube([[1, 1, 0], [0, 1, 1], [0, 1, 1], [1, 0, 0]])
        out = cs.cvt(cube, "accuracy")
        assert out.estimate == 0.75
        assert out.selected == 1
        assert out.naive == out.estimate
        assert out.optimism == 0

    def test_ties_go_to_the_first(self):
        cube = labels_cube([[0, 1, 1], [1, 1, 1]])
        assert cs.cvt(cube, "accuracy").selected == 1

    def test_fold_average_with_unequal_folds_differs_from_pooled(self):
        # folds of 1 and 3: configuration 0 is right in the fold of one only, configuration 1 in two of three
        cube = labels_cube([[1, 0], [0, 1], [0, 1], [0, 0]], folds=[0, 1, 1, 1])
        pooled, by_fold = cs.cvt(cube, "accuracy"), cs.cvt(cube, "accuracy", average="fold")
        assert (float(pooled.estimate), int(pooled.selected)) == (0.5, 1)
        assert (float(by_fold.estimate), int(by_fold.selected)) == (0.5, 0)

    def test_folds_numbered_throughout_repeats_are_folds_of_each(self):
        cube = cs.simulate_cube(40, 5, repeats=2, folds=4, rng=1)
        shifted = cube.assign_coords(fold=cube["fold"] + np.array([0, 4]))
        assert cs.tt(shifted, "accuracy").estimate == cs.tt(cube, "accuracy").estimate

    def test_a_sample_in_no_fold_is_left_out(self):
        cube = labels_cube([[1, 0], [0, 1], [1, 1], [np.nan, np.nan]], folds=[0, 0, 1, -1])
        assert cs.cvt(cube, "accuracy", average="fold").estimate == 0.75

    @pytest.mark.parametrize("folds", [[-1, 0, 0, 1, 1, 1], ["", "a", "a", "b", "b", "b"]])
    def test_a_predicted_sample_in_no_fold_does_not_make_a_fold(self, folds):
        p = [[0.9], [0.8], [0.2], [0.7], [0.1], [0.4]]
        cube = cs.as_cube(p, [0, 1, 0, 1, 1, 0], folds=folds)
        found = cs.score(cube, "accuracy", average="fold")
        assert float(found[0]) == pytest.approx((1 + 2 / 3) / 2)  # the first sample, a wrong one, is left out

    def test_repeats_with_other_numbers_of_folds_are_an_error(self):
        cube = cs.simulate_cube(40, 5, repeats=2, folds=4, rng=1)
        uneven = cube.assign_coords(
            fold=cube["fold"].where(cube["fold"] != 3, 2).where(cube["repeat"] == 1, cube["fold"])
        )
        with pytest.raises(ValueError, match="the same number of folds; repeat 0 has 4, repeat 1 has 3"):
            cs.tt(uneven, "accuracy")

    def test_cv_standard_error_by_hand(self):
        cube = labels_cube([[1], [0], [1], [1], [0], [0]], folds=[0, 0, 1, 1, 2, 2])
        out = cs.cv(cube, "accuracy")
        assert float(out.estimate[0]) == 0.5
        assert float(out.std_error[0]) == pytest.approx(np.std([0.5, 1.0, 0.0], ddof=1) / np.sqrt(3), abs=1e-15)

    def test_cv_standard_error_of_two_folds_repeats_and_gaps_by_hand(self):
        y = np.array([0, 1, 0, 1])
        p = np.array([[0, 1, 0, 0], [0, 1, 1, 1], [1, 1, 0, 1], [0, 0, 0, 1]], float)  # (configuration, sample)
        right = (p == y).astype(float)
        one = cs.cv(cs.as_cube(p.T, y, folds=[0, 0, 1, 1], kind="label"), "accuracy")
        first, second = right[:, :2].mean(axis=1), right[:, 2:].mean(axis=1)
        np.testing.assert_allclose(one.std_error, np.abs(first - second) / 2)  # sd / sqrt(2) = |d| / 2
        gap = p.copy()
        gap[0, 2:] = np.nan  # the first configuration has no second fold
        np.testing.assert_allclose(
            cs.cv(cs.as_cube(gap.T, y, folds=[0, 0, 1, 1], kind="label"), "accuracy").std_error[1:], one.std_error[1:]
        )
        assert np.isnan(float(cs.cv(cs.as_cube(gap.T, y, folds=[0, 0, 1, 1], kind="label"), "accuracy").std_error[0]))
        three = cs.as_cube(
            np.where(np.arange(4)[:, None] == [2, 9, 9, 9], np.nan, p.T), y, folds=[0, 0, 1, 2], kind="label"
        )
        spread = cs.cv(three, "accuracy").std_error.values  # two of three folds are not enough
        assert np.isnan(spread).tolist() == [True, False, False, False]
        twice = np.stack([p.T, p[:, ::-1].T], axis=-1)
        folds = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        both = cs.cv(cs.as_cube(twice, y, folds=folds, kind="label"), "accuracy")
        other = (p[:, ::-1] == y).astype(float)
        second = np.abs(other[:, [0, 2]].mean(axis=1) - other[:, [1, 3]].mean(axis=1)) / 2
        np.testing.assert_allclose(both.std_error, (one.std_error + second) / 2)

    def test_cv_without_folds_has_no_standard_error(self):
        assert np.isnan(cs.cv(labels_cube([[1], [0]]), "accuracy").std_error).all()

    def test_cvm_cv_judges_the_first_repeats_winner_on_the_others(self):
        correct = np.zeros((4, 2, 3))
        correct[:, 0, 0] = [1, 1, 1, 0]  # wins repeat 0
        correct[:, 1, 0] = [1, 1, 0, 0]
        correct[:, 0, 1], correct[:, 0, 2] = [1, 0, 0, 0], [1, 1, 0, 0]
        correct[:, 1, 1], correct[:, 1, 2] = [1, 1, 1, 1], [1, 1, 1, 1]
        out = cs.cvm_cv(labels_cube(correct), "accuracy")
        assert float(out.estimate) == pytest.approx((0.25 + 0.5) / 2)
        assert int(out.selected_first) == 0
        assert int(out.selected) == 1  # the winner over all repeats
        assert float(out.naive) == pytest.approx(10 / 12)
        assert float(out.optimism) == pytest.approx(10 / 12 - 0.375)

    def test_cvm_cv_ties_go_to_the_first(self):
        correct = np.ones((4, 3, 2))
        correct[:, :, 1] = [[0, 1, 1]] * 4
        for names in itertools.permutations("abc"):
            cube = labels_cube(correct).assign_coords(configuration=list(names))
            out = cs.cvm_cv(cube, "accuracy")
            assert (out.selected_first.item(), float(out.estimate)) == (names[0], 0.0)

    def test_cvm_cv_averages_folds_within_repeats(self):
        rng = np.random.default_rng(3)
        correct = (rng.random((10, 3, 3)) < [[0.5], [0.6], [0.7]]).astype(int)
        fold = np.stack([rng.permutation(10) % 4 for _ in range(3)], axis=1)
        out = cs.cvm_cv(labels_cube(correct, folds=fold), "accuracy", average="fold")
        each = np.array(
            [[np.mean([correct[fold[:, r] == f, j, r].mean() for f in range(4)]) for r in range(3)] for j in range(3)]
        )
        first = int(np.argmax(each[:, 0]))
        assert int(out.selected_first) == first
        assert float(out.estimate) == pytest.approx(each[first, 1:].mean(), abs=1e-14)
        assert float(out.naive) == pytest.approx(each.mean(axis=1).max(), abs=1e-14)
        assert int(out.selected) == int(np.argmax(each.mean(axis=1)))
        with pytest.raises(cs.InputError, match="`average`"):
            cs.cvm_cv(labels_cube(correct, folds=fold), "accuracy", average="mean")

    def test_one_fold_has_no_standard_error(self):
        assert np.isnan(cs.cv(labels_cube([[1, 0], [1, 1], [0, 1]], folds=[0, 0, 0]), "accuracy").std_error).all()
        two = cs.cv(labels_cube([[1, 0], [1, 1], [0, 1]], folds=[0, 0, 1]), "accuracy").std_error
        np.testing.assert_allclose(two, [0.5, 0.25])  # fold scores 1, 0 and 1/2, 1

    def test_no_error_and_only_errors(self):
        """Nothing is divided by a score of zero, and an estimate at the end of the range is inside it."""
        for right, metric in itertools.product((0, 1), ("accuracy", "error_rate")):
            cube = labels_cube(np.full((6, 2), right), folds=[0, 0, 0, 1, 1, 1])
            value = float(right == (metric == "accuracy"))
            for out in (cs.cvt(cube, metric), cs.tt(cube, metric)):
                assert (float(out.estimate), float(out.optimism)) == (value, 0.0)

    def test_tt_outside_the_range_in_one_of_two_data_sets(self):
        """Each fold is won by another configuration: the score 1/3 minus the bias 2/3 is below zero."""
        wrong = labels_cube([[1, 0, 0], [0, 1, 0], [0, 0, 1]], folds=[0, 1, 2])
        two = xr.concat([wrong, wrong.copy(data=np.broadcast_to(wrong.label.values[:, None], (3, 3)) * 1.0)], dim="set")
        with pytest.warns(cs.CvstatsWarning, match=r"the corrected accuracy lies outside \[0, 1\]"):
            out = cs.tt(two, "accuracy")
        np.testing.assert_allclose(out.estimate, [1 / 3 - 2 / 3, 1])

    def test_cvm_cv_needs_two_repeats(self):
        with pytest.raises(ValueError, match=r"cvm_cv .* needs two; the cube has 1"):
            cs.cvm_cv(labels_cube([[1], [0]]), "accuracy")

    def test_optimism_is_positive_for_losses_too(self):
        cube = cs.simulate_cube(60, 40, rng=3)
        higher, lower = cs.bbc(cube, "accuracy", rng=1), cs.bbc(cube, "error_rate", rng=1)
        assert float(higher.optimism) > 0
        assert float(lower.optimism) == pytest.approx(float(higher.optimism), abs=1e-12)
        assert float(lower.estimate) == pytest.approx(1 - float(higher.estimate), abs=1e-12)

    def test_batch_dims_are_mapped(self):
        parts = [cs.simulate_cube(30, 5, rng=seed).drop_vars(["label", "truth"]) for seed in (1, 2)]
        labels = [cs.simulate_cube(30, 5, rng=seed)["label"].values for seed in (1, 2)]
        both = xr.concat(
            parts, dim=xr.DataArray(["a", "b"], dims="dataset", name="dataset"), coords="different", compat="equals"
        )
        both = both.assign_coords(label=(("dataset", "sample"), np.array(labels)))
        for function in (
            cs.cvt,
            cs.tt,
            lambda c, m: cs.bbc(c, m, times=50, rng=1),
            lambda c, m: cs.winner(c, m, times=50, rng=1),
        ):
            out = function(both, "accuracy")
            assert out.estimate.dims == ("dataset",)
            for number, name in enumerate(["a", "b"]):
                alone = parts[number].assign_coords(label=("sample", labels[number]))
                assert float(out.estimate.sel(dataset=name)) == float(function(alone, "accuracy").estimate)


class TestTT:
    def test_by_hand_with_unequal_folds(self):
        cube = labels_cube([[1, 0], [1, 0], [0, 1], [1, 1], [1, 0]], folds=[0, 0, 1, 1, 1])
        # fold scores: configuration 0: 1, 2/3; configuration 1: 0, 2/3
        out = cs.tt(cube, "accuracy")
        assert float(out.naive) == pytest.approx(5 / 6)
        assert float(out.estimate) == pytest.approx(5 / 6)  # the winner is best in every fold
        loss = cs.tt(cube, "error_rate")
        assert float(loss.estimate) == pytest.approx(1 / 6)

    def test_bias_by_hand(self):
        cube = labels_cube([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 0]], folds=[0, 0, 1, 1, 2, 2])
        # configuration 0: 1, 0, 1 (mean 2/3); configuration 1: 0, 1, .5; gain of choosing per fold: (0 + 1 + 0) / 3
        assert float(cs.tt(cube, "accuracy").estimate) == pytest.approx(2 / 3 - 1 / 3)

    def test_leave_one_out_with_many_configurations_doubles_the_loss(self):
        cube = cs.simulate_cube(20, 200, rng=1).assign_coords(fold=("sample", np.arange(20)))
        out = cs.tt(cube, "error_rate")
        assert float(out.estimate) == pytest.approx(2 * float(out.naive))

    def test_repeats_count_as_more_folds(self):
        correct = np.array([[[1, 0], [0, 1]], [[1, 1], [0, 1]], [[0, 1], [1, 1]], [[1, 0], [1, 0]]])
        folds = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
        out = cs.tt(labels_cube(correct, folds=folds), "accuracy")
        cells = itertools.product(range(2), range(2))
        scores = np.array([correct[folds[:, r] == fold, :, r].mean(axis=0) for r, fold in cells])
        best = int(np.argmax(scores.mean(axis=0)))
        expected = scores[:, best].mean() - (scores.max(axis=1) - scores[:, best]).mean()
        assert float(out.estimate) == pytest.approx(expected)

    def test_value_outside_the_range_is_reported_with_a_warning(self):
        # each of three folds of one has a perfect configuration, the winner is right once: loss 2/3, corrected 4/3
        cube = labels_cube([[1, 0, 0], [0, 1, 0], [0, 0, 1]], folds=[0, 1, 2])
        with pytest.warns(cs.CvstatsWarning, match=r"tt: the corrected error_rate lies outside \[0, 1\]"):
            out = cs.tt(cube, "error_rate")
        assert float(out.estimate) == pytest.approx(4 / 3)

    def test_needs_folds(self):
        with pytest.raises(ValueError, match="tt needs the coordinate 'fold'"):
            cs.tt(labels_cube([[1], [0]]), "accuracy")

    def test_auc_in_one_class_folds_is_nan(self):
        cube = cs.as_cube(np.random.default_rng(0).random((4, 2)), [0, 0, 1, 1], folds=[0, 0, 1, 1])
        with pytest.warns(cs.CvstatsWarning, match="auc is NaN"):
            assert np.isnan(cs.tt(cube, "auc").estimate)


class TestOneStandardError:
    @pytest.mark.parametrize(("right", "selected"), [(80, 0), (78, 1)])
    @pytest.mark.parametrize("protocol", [cs.cvt, cs.bbc])
    def test_the_simple_one_within_one_standard_error_of_the_best(self, protocol, right, selected):
        """83 of 100 has the standard error .038: 80 is within it, 78 is not."""
        correct = np.arange(100)[:, None] < [right, 83]
        cube = labels_cube(correct.astype(int)).assign_coords(complexity=("configuration", [1, 2]))
        options = {"rng": 1} if protocol is cs.bbc else {}
        out = protocol(cube, "accuracy", select=cs.select_one_se, **options)
        assert out.selected.item() == selected
        assert float(out.naive) == (right / 100 if selected == 0 else 0.83)


class TestNCV:
    def inner_of(self, correct, folds, inner_correct):
        cube = labels_cube(correct, folds=folds)
        folds = np.asarray(folds)
        values = np.stack([labels_cube(part).values for part in inner_correct], axis=-1)
        for number in range(values.shape[-1]):
            values[folds == number, :, number] = np.nan
        inner = xr.DataArray(
            values, dims=("sample", "configuration", "outer_fold"), coords={"outer_fold": range(values.shape[-1])}
        )
        return cube, inner.assign_coords(sample=cube["sample"], configuration=cube["configuration"])

    def test_by_hand(self):
        correct = [[1, 0], [1, 0], [0, 1], [1, 1], [0, 0]]
        folds = [0, 0, 1, 1, 1]
        # training set of fold 0 is samples 2-4 and prefers configuration 1; of fold 1 samples 0-1, prefers 0
        cube, inner = self.inner_of(correct, folds, [correct, correct])
        out = cs.ncv(cube, "accuracy", inner=inner)
        assert out.selected_fold.values.tolist() == [1, 0]
        assert float(out.estimate) == pytest.approx((0 + 1 / 3) / 2)
        assert out.win_rate.values.tolist() == [0.5, 0.5]
        pooled = cs.ncv(cube, "accuracy", inner=inner, average="pooled")
        assert float(pooled.estimate) == pytest.approx(1 / 5)
        assert str(out.method.item()) == "ncv"

    def test_training_predictions_are_labelled_cv2(self):
        correct = [[1, 0], [1, 0], [0, 1], [1, 1]]
        cube, inner = self.inner_of(correct, [0, 0, 1, 1], [np.ones((4, 2)), np.ones((4, 2))])
        out = cs.ncv(cube, "accuracy", inner=inner, inner_kind="training")
        assert str(out.method.item()) == "cv2"
        assert out.selected_fold.values.tolist() == [0, 0]  # all tie: the first
        assert float(out.estimate) == pytest.approx((1 + 0.5) / 2)

    def test_inner_folds_average_decides(self):
        correct = [[1, 1], [1, 1], [1, 0], [0, 1], [0, 1]]
        folds = [0, 0, 1, 1, 1]
        cube, inner = self.inner_of(correct, folds, [correct, correct])
        # training samples of fold 0: 2 in inner fold 0, 3 and 4 in inner fold 1: averages 1/2 and 1/2, tie to the first
        inner = inner.assign_coords(fold=(("sample", "outer_fold"), [[-1, 0], [-1, 1], [0, -1], [1, -1], [1, -1]]))
        assert cs.ncv(cube, "accuracy", inner=inner).selected_fold.values.tolist() == [0, 0]
        assert cs.ncv(cube, "accuracy", inner=inner.drop_vars("fold")).selected_fold.values.tolist() == [1, 0]

    def test_leakage_is_an_error_that_names_fold_and_samples(self):
        correct = [[1, 0], [1, 0], [0, 1], [1, 1]]
        cube, inner = self.inner_of(correct, [0, 0, 1, 1], [correct, correct])
        inner[3, 0, 1] = 1.0
        with pytest.raises(ValueError, match=r"`inner` leaks: outer fold 1 .* held-out samples 3;"):
            cs.ncv(cube, "accuracy", inner=inner)

    def test_a_training_set_without_predictions_chooses_nothing(self):
        cube, inner = cs.simulate_cube(60, 5, inner=True, rng=1)
        with pytest.warns(cs.CvstatsWarning, match=r"nothing can be chosen in outer fold 2 \(no inner predictions\)"):
            out = cs.ncv(cube, "accuracy", inner=inner.where(inner["outer_fold"] != 2))
        assert np.isnan(out.estimate)
        assert np.isnan(out.selected_fold).values.tolist() == [fold == 2 for fold in range(10)]

    def test_repeats(self):
        cube, inner = cs.simulate_cube(40, 8, repeats=2, inner=True, rng=5)
        out = cs.ncv(cube, "accuracy", inner=inner)
        assert out.selected_fold.dims == ("outer_fold", "repeat")
        each = [float(cs.ncv(cube.isel(repeat=r), "accuracy", inner=inner.isel(repeat=r)).estimate) for r in range(2)]
        assert float(out.estimate) == pytest.approx(np.mean(each))

    def test_repeats_keep_their_names_and_need_inner_predictions_of_their_own(self):
        cube, inner = cs.simulate_cube(24, 4, repeats=2, folds=3, inner=True, rng=5)
        named = [part.assign_coords(repeat=["first", "second"]) for part in (cube, inner)]
        out = cs.ncv(named[0], "accuracy", inner=named[1])
        assert out["repeat"].values.tolist() == ["first", "second"]
        plain = cs.ncv(cube.drop_vars("repeat"), "accuracy", inner=inner.drop_vars("repeat"))
        assert "repeat" not in plain.coords
        np.testing.assert_array_equal(out.fold_estimate, plain.fold_estimate)
        with pytest.raises(cs.InputError, match="`inner` has no dimension 'repeat', but the cube's repeats have folds"):
            cs.ncv(cube, "accuracy", inner=inner.isel(repeat=0, drop=True))
        for wrong, found in ((inner.isel(outer_fold=0), "'sample'"), (inner.values, "ndarray")):
            with pytest.raises(cs.InputError, match=rf"must be a DataArray over 'sample'.*; got {found}"):
                cs.ncv(cube, "accuracy", inner=wrong)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("metric", "classes", "repeats", "inner_repeats", "folds"),
        [
            ("accuracy", 2, 1, 1, "equal"),
            ("accuracy", 2, 2, 1, "unequal"),
            ("brier", 3, 1, 1, "none"),
            ("brier", 3, 1, 2, "equal"),
            ("brier", 3, 2, 2, "unequal"),
            ("accuracy", 2, 1, 2, "none"),
            ("accuracy", 2, 1, 1, "named"),
            ("brier", 3, 2, 2, "each its own"),
        ],
    )
    def test_against_plain_loops(self, metric, classes, repeats, inner_repeats, folds):
        """Gaps, classes, inner repeats, unequal inner folds: every training set chooses, its fold judges."""
        for seed in range(7, 12):
            self.plain_loops(np.random.default_rng(seed), metric, classes, repeats, inner_repeats, folds)

    def plain_loops(self, rng, metric, classes, repeats, inner_repeats, folds):
        n, m, k = 36, 4, 3
        y = np.arange(n) % classes
        better = np.array([0.0, 0.3 if classes == 2 else 0.5, 0.35, 1.0]).reshape(m, 1, 1)
        p = rng.dirichlet(np.ones(classes), size=(n, m, repeats)) + better * np.eye(classes)[y][:, None, None]
        inside = rng.dirichlet(np.ones(classes), size=(n, m, k, repeats, inner_repeats))
        inside += better[..., None, None] * np.eye(classes)[y][:, None, None, None, None]
        p, inside = (part / part.sum(axis=-1, keepdims=True) for part in (p, inside))
        fold = np.stack([rng.permutation(n) % k for _ in range(repeats)], axis=1)
        for f in range(k):
            for r in range(repeats):
                inside[fold[:, r] == f, :, f, r] = np.nan
        inside[1, 3] = np.nan  # the last configuration lacks a sample wherever others have it
        inside[2, 2, :, :, 0] = np.nan  # the third in one inner repeat only, which bars it when there is one
        if classes == 3:
            inside[4, 1, 0, :, :, 0] = np.nan  # the second one class of one sample in one training set
        small = (np.arange(n) % 6 == 0).astype(int)
        own = {"equal": small, "unequal": np.stack([small, small, np.arange(n) % 3]), "none": None}
        own["named"] = np.array(["x", "y"])[small]
        own["each its own"] = np.stack([np.tile(small, (k, 1)), np.tile(np.arange(n) // 4 % 2, (k, 1))], axis=-1)
        own = own[folds]
        dims = ["sample", "configuration", "outer_fold", "repeat", "inner_repeat", "label_class"]
        inner = xr.DataArray(inside, dims=dims, coords={"outer_fold": range(k)})
        outer = xr.DataArray(p, dims=["sample", "configuration", "repeat", "label_class"])
        if own is not None:
            own = np.broadcast_to(own, (k, n)).T if own.ndim < 3 else own.transpose(1, 0, 2)
            inner = inner.assign_coords(fold=(("sample", "outer_fold", "inner_repeat")[: own.ndim], own))
        if classes == 2:
            inner, outer = (part.isel(label_class=1) for part in (inner, outer))
        inner = inner if inner_repeats > 1 else inner.isel(inner_repeat=0)
        if repeats == 1:
            inner, outer = (part.isel(repeat=0) for part in (inner, outer))
        cube = cs.as_cube(outer, y, folds=fold if repeats > 1 else fold[:, 0], classes=range(classes))
        inner = inner.assign_coords(sample=cube["sample"].values, configuration=cube["configuration"].values)

        def value(rows, q):
            loss = np.sum((q[rows] - np.eye(classes)[y[rows]]) ** 2, axis=1) if classes == 3 else None
            return -loss.mean() if classes == 3 else np.mean((q[rows, 1] > 0.5) == y[rows])

        chosen, judged = np.empty((k, repeats), int), np.empty((k, repeats))
        for f in range(k):
            for r in range(repeats):
                there = ~np.isnan(inside[:, :, f, r]).any(axis=-1)  # sample, configuration, inner repeat
                complete = there.any(axis=2).sum(axis=0) == there.any(axis=(1, 2)).sum()
                table = np.zeros((n, 1), int) if own is None else own[:, f].reshape(n, -1)
                scores = []
                for j in range(m):
                    each = []
                    for s in range(inner_repeats):
                        ids = table[:, s % table.shape[1]]
                        rows = [np.flatnonzero(there[:, j, s] & (ids == name)) for name in np.unique(ids)]
                        each.append(np.mean([value(row, inside[:, j, f, r, s]) for row in rows]))
                    scores.append(np.mean(each) if complete[j] else -np.inf)
                chosen[f, r] = int(np.argmax(scores))
                judged[f, r] = value(np.flatnonzero(fold[:, r] == f), p[:, chosen[f, r], r])
        sign = -1 if classes == 3 else 1
        out = cs.ncv(cube, metric, inner=inner)
        np.testing.assert_array_equal(out.selected_fold.values.reshape(k, repeats), chosen)
        np.testing.assert_allclose(out.fold_estimate.values.reshape(k, repeats), sign * judged, rtol=1e-12)
        assert float(out.estimate) == pytest.approx(sign * judged.mean(), rel=1e-12)

    def test_a_fold_that_nobody_predicted_is_left_out(self):
        correct = np.array([[1, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], float)
        folds = np.array([0, 0, 1, 1, 2, 2])
        correct[folds == 2] = np.nan
        cube, inner = self.inner_of(correct, folds, [correct] * 3)
        out = cs.ncv(cube, "accuracy", inner=inner)
        # fold 0 is chosen for by samples 2 and 3, fold 1 by samples 0 and 1
        assert out.selected_fold.values[:2].tolist() == [1, 0]
        np.testing.assert_array_equal(out.fold_estimate, [0, 0.5, np.nan])
        assert float(out.estimate) == 0.25
        assert float(cs.ncv(cube, "accuracy", inner=inner, average="pooled").estimate) == 0.25

    def test_inner_predictions_are_matched_by_name_or_else_by_order(self):
        rng = np.random.default_rng(3)
        y, fold = np.arange(18) % 3, np.arange(18) // 6
        cube = cs.as_cube(rng.dirichlet(np.ones(3), size=(18, 4)), y, classes=range(3), folds=fold)
        inner = cube.drop_vars("fold").expand_dims(outer_fold=[0, 1, 2]).copy()
        inner = inner.where(xr.DataArray(fold, dims="sample") != inner.outer_fold)
        plain = inner.drop_vars(["label", "kind"])
        expected = cs.ncv(cube, "brier", inner=inner)
        turned = plain.isel(sample=slice(None, None, -1), configuration=[2, 0, 3, 1], label_class=[1, 2, 0])
        bare = plain.drop_vars(["sample", "configuration", "label_class"])
        for same in (plain, turned, bare):
            np.testing.assert_array_equal(cs.ncv(cube, "brier", inner=same).fold_estimate, expected.fold_estimate)
        assert len(np.unique(expected.selected_fold)) > 1
        for dim, size in (("sample", 18), ("configuration", 4), ("label_class", 3)):
            with pytest.raises(
                cs.InputError, match=f"`inner` has {size - 1} values along '{dim}' where the cube has {size}"
            ):
                cs.ncv(cube, "brier", inner=bare.isel({dim: slice(1, None)}))
            with pytest.raises(cs.InputError, match=f"`inner` does not match the cube along '{dim}'"):
                cs.ncv(cube, "brier", inner=plain.isel({dim: slice(1, None)}))

    def test_folds_must_have_the_same_names_in_every_repeat(self):
        cube, inner = cs.simulate_cube(24, 4, repeats=2, folds=3, inner=True, rng=5)
        shifted = cube.assign_coords(fold=cube.fold + xr.DataArray([0, 3], dims="repeat"))
        with pytest.raises(cs.InputError, match="`inner` needs folds with the same names in every repeat"):
            cs.ncv(shifted, "accuracy", inner=inner)

    def test_a_fold_of_everything_and_leaks_are_named_wherever_they_are(self):
        """In one of two data sets all samples are in fold 1; in another, the second repeat leaks."""
        cube, inner = cs.simulate_cube(12, 2, repeats=2, folds=3, inner=True, rng=5)
        leak = inner.copy(deep=True)
        own = cube["fold"].isel(repeat=1).values
        leak[{"repeat": 1, "outer_fold": 2, "sample": int(np.flatnonzero(own == 2)[1]), "configuration": 0}] = 1.0
        found = rf"`inner` leaks: outer fold 2 has .* samples {np.flatnonzero(own == 2)[1]};"
        with pytest.raises(cs.InputError, match=found):
            cs.ncv(cube, "accuracy", inner=leak)
        two = xr.concat([cube, cube], dim=xr.DataArray(["a", "b"], dims="dataset", name="dataset"))
        both = xr.concat([leak, inner], dim=xr.DataArray(["a", "b"], dims="dataset", name="dataset"))
        own = two.fold.expand_dims(dataset=["a", "b"])  # folds of its own for every data set, if alike
        for same in (two, two.assign_coords(fold=own)):
            with pytest.raises(cs.InputError, match=found):
                cs.ncv(same, "accuracy", inner=both)
        one, inside = cube.isel(repeat=0, drop=True), inner.isel(repeat=0, drop=True)
        folds = xr.DataArray(np.stack([np.ones(12, int), one.fold.values]), dims=("dataset", "sample"))
        with pytest.raises(cs.InputError, match="outer fold 1 holds every sample"):
            cs.ncv(one.expand_dims(dataset=["a", "b"]).assign_coords(fold=folds), "accuracy", inner=inside)

    def test_one_repeat_needs_no_dimension_of_its_own(self):
        cube, inner = cs.simulate_cube(24, 4, repeats=2, folds=3, inner=True, rng=5)
        one = cs.ncv(cube.isel(repeat=[0]), "accuracy", inner=inner.isel(repeat=0, drop=True))
        assert float(one.estimate) == float(
            cs.ncv(cube.isel(repeat=0), "accuracy", inner=inner.isel(repeat=0)).estimate
        )

    def test_predictions_in_no_fold_are_not_judged(self):
        cube, inner = cs.simulate_cube(24, 4, folds=3, inner=True, rng=5)
        there = np.arange(24) % 5 != 0
        marked = cube.assign_coords(fold=cube.fold.where(there, -1))
        for average in ("fold", "pooled"):
            out = cs.ncv(marked, "accuracy", inner=inner, average=average)
            gone = cs.ncv(marked.where(xr.DataArray(there, dims="sample")), "accuracy", inner=inner, average=average)
            assert float(out.estimate) == float(gone.estimate)

    def test_missing_outer_folds_are_named(self):
        correct = [[1, 0], [1, 0], [0, 1], [1, 1]]
        cube, inner = self.inner_of(correct, [0, 0, 1, 1], [correct, correct])
        with pytest.raises(ValueError, match="different outer folds: only in the cube: 1"):
            cs.ncv(cube, "accuracy", inner=inner.isel(outer_fold=[0]))


class TestBBC:
    @pytest.mark.parametrize("n", [3, 4, 5])
    def test_enumeration_accuracy(self, n):
        rng = np.random.default_rng(n)
        correct = (rng.random((n, 3)) < 0.6).astype(int)
        cube = labels_cube(correct)
        values, wins = enumerate_bbc(lambda j, w: np.average(correct[:, j], weights=w), n, 3)
        with pytest.warns(cs.CvstatsWarning):
            out = cs.bbc(cube, "accuracy", draws=every_draw(cube), keep_draws=True)
        assert float(out.estimate) == pytest.approx(values.mean(), abs=1e-12)
        np.testing.assert_allclose(out.win_rate, wins, atol=1e-12)
        assert int(out.n_draws) == len(values)
        if n == 5:
            assert float(out.conf_low) == pytest.approx(np.quantile(values, 0.025), abs=1e-12)
            assert float(out.conf_high) == pytest.approx(np.quantile(values, 0.975), abs=1e-12)
            assert float(out.bound_low) == pytest.approx(np.quantile(values, 0.05), abs=1e-12)

    def test_enumeration_auc_mse_logloss(self):
        rng = np.random.default_rng(1)
        n, labels = 5, np.array([0, 1, 0, 1, 1])
        scores = np.round(rng.random((n, 3)), 1) * 0.8 + 0.1

        def auc(j, w):
            pairs = [(i, k) for i in range(n) for k in range(n) if labels[i] == 1 and labels[k] == 0]
            total = sum(w[i] * w[k] for i, k in pairs)
            won = sum(
                w[i] * w[k] * ((scores[i, j] > scores[k, j]) + 0.5 * (scores[i, j] == scores[k, j])) for i, k in pairs
            )
            return won / total if total else np.nan

        def mse(j, w):
            return np.average((scores[:, j] - labels) ** 2, weights=w)

        def log_loss(j, w):
            return np.average(-np.log(np.where(labels == 1, scores[:, j], 1 - scores[:, j])), weights=w)

        for metric, function, sign, kind in (
            ("auc", auc, 1, None),
            ("mse", mse, -1, "value"),
            ("log_loss", log_loss, -1, None),
        ):
            cube = cs.as_cube(scores, labels.astype(float) if kind else labels, kind=kind)
            values, wins = enumerate_bbc(function, n, 3, sign)
            with pytest.warns(cs.CvstatsWarning):
                out = cs.bbc(cube, metric, draws=every_draw(cube))
            assert float(out.estimate) == pytest.approx(values.mean(), abs=1e-12), metric
            np.testing.assert_allclose(out.win_rate, wins, atol=1e-12, err_msg=metric)

    def test_repeats_travel_together(self):
        rng = np.random.default_rng(2)
        correct = (rng.random((4, 3, 2)) < 0.6).astype(int)
        cube = labels_cube(correct)
        values, _ = enumerate_bbc(lambda j, w: np.average(correct[:, j].mean(axis=1), weights=w), 4, 3)
        with pytest.warns(cs.CvstatsWarning):
            assert float(cs.bbc(cube, "accuracy", draws=every_draw(cube)).estimate) == pytest.approx(
                values.mean(), abs=1e-12
            )

    def test_missing_predictions(self):
        correct = np.array([[1, 0, 1], [0, 1, 1], [1, 1, np.nan], [0, 1, 0], [np.nan] * 3])
        labels = np.array([0, 1, 0, 1, 1])
        cube = labels_cube(correct, labels=labels)
        # configuration 2 may not be selected; sample 4 is left out
        values, wins = enumerate_bbc(lambda j, w: np.average(correct[:4, j], weights=w), 4, 2)
        draws = every_draw(cube.isel(sample=range(4)))
        draws = draws.pad(sample=(0, 1), constant_values=0).assign_coords(sample=cube["sample"].values)
        with pytest.warns(cs.CvstatsWarning):
            out = cs.bbc(cube, "accuracy", draws=draws)
        assert float(out.estimate) == pytest.approx(values.mean(), abs=1e-12)
        np.testing.assert_allclose(out.win_rate, [*wins, 0.0], atol=1e-12)

    def test_no_complete_configuration_is_an_error(self):
        cube = labels_cube([[1, np.nan], [np.nan, 1], [1, 1]])
        with pytest.raises(ValueError, match="no configuration predicted every sample"):
            cs.bbc(cube, "accuracy", rng=1)

    @pytest.mark.parametrize(("level", "least"), [(0.95, 40), (0.9, 20), (0.99, 200), (0.97, 67)])
    def test_each_tail_of_a_percentile_interval_holds_a_draw(self, level, least):
        cube = cs.simulate_cube(30, 4, rng=1)
        for draws, interval, times in ((None, "percentile", least), (None, "calibrated", 5)):
            out = cs.bbc(cube, "accuracy", draws=draws, interval=interval, times=times, level=level, rng=1)
            assert int(out.n_draws) == times
        with pytest.raises(cs.InputError, match=f"`times`={least - 1} is too small .* at least {least} draws"):
            cs.bbc(cube, "accuracy", times=least - 1, level=level, rng=1)

    def test_too_few_draws_for_the_interval(self):
        with pytest.raises(
            ValueError, match=r"`times`=20 is too small for a percentile interval at level 0.95: at least 40"
        ):
            cs.bbc(cs.simulate_cube(20, 3, rng=1), "accuracy", times=20)

    def test_draws_drawn_again_are_counted_once_each(self):
        rng = np.random.default_rng(0)
        y = (np.arange(20) < 3).astype(int)
        cube = cs.as_cube(rng.random((20, 3)), y, kind="probability")
        raw = cs.bootstrap(cube, 300, rng=5).values  # the first attempt at every draw
        inside, outside = raw[:, y == 1], (raw == 0)[:, y == 1]
        unusable = ~(inside.any(axis=1) & outside.any(axis=1))  # negatives are always there
        assert 5 < unusable.sum() < 100
        with pytest.warns(cs.CvstatsWarning, match=f"{unusable.sum()} of 300 draws were unusable and drawn again"):
            out = cs.bbc(cube, "auc", times=300, rng=5, strata=None)
        assert int(out.n_draws) == 300

    def test_groups_are_drawn_whole(self):
        cube = (
            cs.simulate_cube(40, 5, rng=1)
            .drop_vars("fold")
            .assign_coords(group=("sample", np.repeat(np.arange(10), 4)))
        )
        weights = cs.bootstrap(cube, 50, rng=1)
        assert (weights.groupby("group").std() == 0).all() if "group" in weights.coords else True
        per_group = weights.values.reshape(50, 10, 4)
        assert (per_group == per_group[:, :, :1]).all()
        wide, narrow = cs.winner(cube, "accuracy", rng=1), cs.winner(cube.drop_vars("group"), "accuracy", rng=1)
        assert float(wide.conf_high - wide.conf_low) > float(narrow.conf_high - narrow.conf_low)

    def test_strata_keep_class_counts(self):
        cube = cs.simulate_cube(30, 5, rng=1)
        weights = cs.bootstrap(cube, 40, rng=1, strata="label").values
        labels = cube["label"].values
        for label in np.unique(labels):
            assert (weights[:, labels == label].sum(axis=1) == (labels == label).sum()).all()

    def test_one_configuration_returns_its_own_score(self):
        cube = cs.simulate_cube(50, 1, rng=1)
        for function in (cs.bbc, cs.winner):
            out = function(cube, "accuracy", rng=1)
            assert float(out.estimate) == float(cs.cvt(cube, "accuracy").estimate)

    def test_selection_strategies_run_in_every_draw(self):
        cube = cs.simulate_cube(60, 6, rng=2).assign_coords(complexity=("configuration", [1, 2, 3, 4, 5, 6]))
        plain = cs.bbc(cube, "accuracy", rng=1)
        loose = cs.bbc(cube, "accuracy", rng=1, select=cs.select_within(0.5))
        assert float(loose.win_rate[0]) == 1.0
        assert float(plain.win_rate[0]) < 1.0
        assert int(loose.selected) == 0
        assert bool(cs.bbc(cube, "accuracy", rng=1, select=cs.select_one_se).estimate > 0)

    def test_kept_draws_average_to_the_estimate(self):
        out = cs.bbc(cs.simulate_cube(40, 10, rng=1), "accuracy", rng=1, keep_draws=True)
        assert float(out.draw_estimate.mean()) == pytest.approx(float(out.estimate), abs=1e-15)
        assert out.draw_selected.dims == ("draw",)

    def test_first_draws_are_stable(self):
        cube = cs.simulate_cube(40, 10, rng=1)
        few, many = (cs.bbc(cube, "accuracy", rng=7, times=t, keep_draws=True) for t in (100, 333))
        np.testing.assert_array_equal(few.draw_estimate, many.draw_estimate[:100])
        np.testing.assert_array_equal(few.draw_selected, many.draw_selected[:100])

    def test_every_metric_family_goes_through(self):
        rng = np.random.default_rng(0)
        own = cs.as_metric(
            lambda y, p, w: float(np.average(np.abs(y - p) ** 3, weights=w)), direction="minimize", name="cubic"
        )
        n = 60
        cases = [
            ("mse", cs.as_cube(rng.normal(size=(n, 4)), rng.normal(size=n))),
            (own, cs.as_cube(rng.normal(size=(n, 4)), rng.normal(size=n))),
            (
                "concordance",
                cs.as_cube(rng.normal(size=(n, 4)), rng.exponential(size=n), event=rng.integers(0, 2, n), kind="score"),
            ),
            ("auc", cs.as_cube(rng.dirichlet(np.ones(3), (n, 4)), np.arange(n) % 3, classes=[0, 1, 2])),
            ("log_loss", cs.as_cube(rng.dirichlet(np.ones(3), (n, 4)), np.arange(n) % 3, classes=[0, 1, 2])),
        ]
        for metric, cube in cases:
            out = cs.bbc(cube, metric, rng=1, times=60, strata="auto")
            assert np.isfinite(float(out.estimate))
            assert float(out.optimism) == pytest.approx(
                abs(float(out.naive) - float(out.estimate)) * np.sign(float(out.optimism)), abs=1e-12
            )


class TestWinner:
    def test_uses_the_best_of_what_was_saved(self):
        cube, inner = cs.simulate_cube(60, 10, repeats=2, inner=True, rng=1)
        names = {
            "bbc": cs.winner(cube.isel(repeat=0), "accuracy", rng=1),
            "bbc_cross_repeat": cs.winner(cube, "accuracy", rng=1),
            "bbc_ncv": cs.winner(cube, "accuracy", inner=inner, rng=1),
            "bbc_x": cs.winner(cube, "accuracy", regime="holdout", rng=1),
        }
        for name, out in names.items():
            assert str(out.method.item()) == name
            assert str(out.interval.item()) == "calibrated"
            assert float(out.conf_low) <= float(out.estimate) <= float(out.conf_high)
        plain = cs.bbc(cube, "accuracy", rng=1, ties="random")
        assert float(names["bbc_cross_repeat"].bbc_plain) == pytest.approx(float(plain.estimate), abs=1e-12)

    def test_an_unfinished_repeat_falls_back_to_bbc(self):
        cube = cs.simulate_cube(40, 5, repeats=2, rng=1)
        values = cube.values.copy()
        values[30:, :, 1] = np.nan
        out = cs.winner(cube.copy(data=values), "accuracy", rng=1)
        assert str(out.method.item()) == "bbc"
        assert float(out.conf_low) <= float(out.estimate) <= float(out.conf_high)

    def test_inner_predictions_with_batch_dims(self):
        pairs = [cs.simulate_cube(40, 5, inner=True, rng=seed) for seed in (1, 2)]
        index = xr.DataArray(["a", "b"], dims="dataset", name="dataset")
        cube, inner = (
            xr.concat([pair[k] for pair in pairs], dim=index, coords="different", compat="equals", join="exact")
            for k in (0, 1)
        )
        out = cs.winner(cube, "accuracy", inner=inner, times=100, rng=1)
        for number, name in enumerate(["a", "b"]):
            alone = cs.winner(pairs[number][0], "accuracy", inner=pairs[number][1], times=100, rng=1)
            assert float(out.estimate.sel(dataset=name)) == float(alone.estimate)

    def test_cross_repeat_by_brute_force(self):
        cube = cs.simulate_cube(12, 4, repeats=3, folds=3, rng=4)
        right = (cube.values == cube["label"].values[:, None, None]).astype(float)
        draws = cs.bootstrap(cube, 60, rng=2)
        out = cs.winner(cube, "accuracy", draws=draws, rng=2)
        from cvstats.select import label_keys, tie_keys

        keys = label_keys(cube["configuration"].values)
        values, final = [], right.mean(axis=(0, 2)).argmax()
        for number, weights in enumerate(draws.values):
            for repeat in range(3):
                inside = weights @ right[:, :, repeat]
                tied = np.flatnonzero(inside == inside.max())
                best = tied[np.argmin([tie_keys(keys[[j]], np.array([number]), 2)[0] for j in tied])]
                others = [r for r in range(3) if r != repeat]
                if (weights == 0).any():
                    judged = right[weights == 0][:, :, others].mean(axis=(0, 2))
                    values.append(judged[best] - judged[final])
        assert float(out.estimate) == pytest.approx(float(out.naive) + np.mean(values), abs=1e-12)

    @pytest.mark.parametrize("metric", ["accuracy", "mse", "brier"])
    def test_smoothed_ncv_by_brute_force(self, metric):
        cube, inner = cs.simulate_cube(30, 4, folds=3, inner=True, rng=4)
        right = (cube.values == cube["label"].values[:, None]).astype(float)
        if metric != "accuracy":
            rng = np.random.default_rng(1)
            p = np.where(right == 1, cube["label"].values[:, None], 1 - cube["label"].values[:, None])
            p = 0.1 + 0.8 * p * rng.random(p.shape)
            labels = cube["label"].values * (1.0 if metric == "mse" else 1)
            kind = "value" if metric == "mse" else None
            values = xr.DataArray(rng.random(inner.shape), dims=inner.dims).where(inner.notnull().values)
            inner = values.assign_coords(outer_fold=inner["outer_fold"].values)
            cube = cs.as_cube(p, labels, folds=cube["fold"].values, kind=kind)
            right = (p - labels[:, None]) ** 2
            inner = inner.assign_coords({name: cube[name] for name in cube.coords if name != "fold"})
        out = cs.winner(cube, metric, inner=inner, times=200, rng=2, keep_draws=True)
        assert out.method.item() == "bbc_ncv"
        fold = cube["fold"].values
        total = 0.0
        for number in range(3):
            training = inner.isel(outer_fold=number, sample=fold != number)
            part = cs.select_and_judge(
                training.drop_vars("fold", errors="ignore"),
                metric,
                choose=make_draws(training, get_metric(metric), 200, 2, None),
                rng=2,
            )
            total += (right[fold == number] @ part.win_rate.values).sum()
        anchored = float(out.naive + (out.draw_estimate - out.draw_anchor).mean())
        assert float(out.estimate) == pytest.approx((anchored + total / 30) / 2, abs=1e-12)

    def test_inner_predictions_are_checked_and_their_order_of_folds_does_not_matter(self):
        cube, inner = cs.simulate_cube(30, 4, folds=3, inner=True, rng=4)
        out = cs.winner(cube, "accuracy", inner=inner, times=100, rng=2)
        for order in ([2, 1, 0], [1, 2, 0], [0, 2, 1]):
            turned = cs.winner(cube, "accuracy", inner=inner.isel(outer_fold=order), times=100, rng=2)
            assert float(turned.estimate) == pytest.approx(float(out.estimate), rel=1e-12)
        leaking = inner.copy()
        leaking[{"sample": 0, "outer_fold": int(cube["fold"][0])}] = 1.0
        with pytest.raises(cs.InputError, match="`inner` leaks"):
            cs.winner(cube, "accuracy", inner=leaking, times=100, rng=2)
        with pytest.raises(cs.InputError, match="different outer folds"):
            cs.winner(cube, "accuracy", inner=inner.isel(outer_fold=[0, 1]), times=100, rng=2)
        with pytest.raises(cs.InputError, match="`inner` leaks"):
            cs.winner(cube, "mcc", inner=leaking, times=100, rng=2)
        # metrics that are not linear cannot mix configurations: inner predictions are left aside
        with pytest.warns(cs.CvstatsWarning, match="`inner` is not used: mcc is not linear"):
            assert str(cs.winner(cube, "mcc", inner=inner, times=100, rng=2).method.item()) == "bbc"

    def test_strata_and_groups(self):
        """Draws within class by themselves only when the metric needs classes and no group holds several."""
        cube = cs.simulate_cube(40, 3, rng=1)
        label = cube["label"].values
        mixed = cube.assign_coords(group=("sample", np.arange(40) // 4))
        pure = cube.assign_coords(group=("sample", np.argsort(np.argsort(label, kind="stable")) // 2))
        if any(len(set(label[pure["group"].values == g])) > 1 for g in range(20)):
            pure = pure.isel(
                sample=[i for i in range(40) if len(set(label[pure.group.values == pure.group.values[i]])) == 1]
            )

        def counts(given, metric, strata):
            draws = make_draws(given, get_metric(metric), 30, 1, strata).block(0, 30)[0]
            return draws @ (given["label"].values == 1)

        plain = (label == 1).sum()
        assert set(counts(cube, "balanced_accuracy", "auto")) == {plain}
        assert len(set(counts(cube, "accuracy", "auto"))) > 1
        assert set(counts(cube, "accuracy", "label")) == {plain}
        assert len(set(counts(mixed, "balanced_accuracy", "auto"))) > 1
        assert set(counts(pure, "balanced_accuracy", "auto")) == {(pure["label"].values == 1).sum()}
        with pytest.raises(cs.InputError):
            counts(mixed, "accuracy", "label")

    def test_interval_is_monotone_in_level_and_inside_the_range(self):
        cube = cs.simulate_cube(30, 50, beta=(54, 6), rng=1)
        widths = []
        for level in (0.6, 0.8, 0.95, 0.99):
            out = cs.winner(cube, "accuracy", level=level, rng=1)
            assert 0 <= float(out.conf_low) <= float(out.estimate) <= float(out.conf_high) <= 1
            assert float(out.conf_low) <= float(out.bound_low)
            assert float(out.bound_high) <= float(out.conf_high)
            widths.append(float(out.conf_high - out.conf_low))
        assert widths == sorted(widths)

    def test_error_rate_mirrors_accuracy(self):
        cube = cs.simulate_cube(50, 20, rng=1)
        up, down = cs.winner(cube, "accuracy", rng=1), cs.winner(cube, "error_rate", rng=1)
        assert float(down.conf_low) == pytest.approx(1 - float(up.conf_high), abs=1e-12)
        assert float(down.conf_high) == pytest.approx(1 - float(up.conf_low), abs=1e-12)

    def test_perfect_winner_has_an_interval(self):
        correct = np.ones((30, 3), int)
        correct[:10, 1:] = 0
        out = cs.winner(labels_cube(correct), "accuracy", rng=1)
        assert float(out.estimate) == 1.0
        assert float(out.conf_high) == 1.0
        assert 0.75 < float(out.conf_low) < 1.0

    def test_few_samples_give_nan_limits_and_one_warning(self):
        with pytest.warns(cs.CvstatsWarning, match="limits are NaN: 4 independent samples") as caught:
            out = cs.winner(cs.simulate_cube(4, 3, folds=2, rng=1), "accuracy", rng=1)
        assert np.isfinite(float(out.estimate))
        assert np.isnan(float(out.conf_low))
        assert len(caught) == 1

    def test_order_of_configurations_does_not_matter(self):
        cube = cs.simulate_cube(40, 12, rng=3)
        mixed = cube.isel(configuration=np.random.default_rng(1).permutation(12))
        one, two = cs.winner(cube, "accuracy", rng=1), cs.winner(mixed, "accuracy", rng=1)
        for name in ("estimate", "conf_low", "conf_high", "naive"):
            assert float(one[name]) == pytest.approx(float(two[name]), abs=1e-12)
        np.testing.assert_allclose(two.win_rate.sel(configuration=one.configuration), one.win_rate, atol=1e-12)

    def test_holdout_refuses_inner(self):
        cube, inner = cs.simulate_cube(30, 4, inner=True, rng=1)
        with pytest.raises(ValueError, match="`inner` is for models refitted in every fold"):
            cs.winner(cube, "accuracy", inner=inner, regime="holdout")

    def test_bbc_x_formula(self):
        cube = cs.simulate_cube(50, 20, rng=1)
        out = cs.winner(cube, "accuracy", regime="holdout", rng=1)
        mean = float(cs.score(cube, "accuracy").mean())
        gap = max(float(out.bbc_plain) - mean, 0.0)
        rho = gap / (float(out.naive) - mean)
        assert float(out.estimate) == pytest.approx(mean + 4 * gap / (rho + np.sqrt(rho**2 + 8)), abs=1e-12)
        assert float(out.bbc_plain) <= float(out.estimate) <= (float(out.naive) + 2 * float(out.bbc_plain)) / 3 + 1e-12

    @pytest.mark.parametrize(
        "metric", ["mcc", "f1", "balanced_accuracy", "log_loss", "brier", "auc", "average_precision"]
    )
    def test_scale_of_each_metric(self, metric):
        rng = np.random.default_rng(0)
        labels = np.arange(60) % 2
        scores = np.clip(0.5 + 0.3 * (labels[:, None] - 0.5) + 0.2 * rng.normal(size=(60, 10)), 0.01, 0.99)
        out = cs.winner(cs.as_cube(scores, labels), metric, rng=1)
        low, high = getattr(cs, metric).range
        assert low <= float(out.conf_low) <= float(out.estimate) <= float(out.conf_high) <= high
        assert float(out.optimism) > 0


class TestInnerPredictionsThatCannotServe:
    def test_an_outer_fold_that_holds_every_sample(self):
        cube = cs.as_cube(np.array([[0.2, 0.4], [0.8, 0.3]]), [0, 1], kind="probability", folds=[0, 0])
        inner = (
            (cube.drop_vars("fold") * np.nan).expand_dims(outer_fold=[0]).assign_coords(cube.drop_vars("fold").coords)
        )
        for function in (cs.ncv, cs.winner):
            with pytest.raises(cs.InputError, match="outer fold 0 holds every sample, so that nothing is left"):
                function(cube, "accuracy", inner=inner)

    def test_a_cube_without_folds(self):
        cube = cs.as_cube(np.array([[0.2, 0.4], [0.8, 0.3]]), [0, 1], kind="probability")
        inner = cube.expand_dims(outer_fold=[0, 1])
        with pytest.raises(cs.InputError, match="`inner` needs the coordinate 'fold'"):
            cs.winner(cube, "accuracy", inner=inner)

    def test_nothing_predicted(self):
        cube = cs.as_cube(np.array([[0.2, 0.4], [0.8, 0.3]]), [0, 1], kind="probability", folds=[0, 1])
        with pytest.raises(cs.InputError, match="`cube` holds no predictions: every value is NaN"):
            cs.implementations(cube.where(False), "error_rate")
