"""Separate sampling: hand-worked class errors, brute-force intervals, and the bias of the published simulation."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

import cvstats as cs
from cvstats.protocols.bootstrap import bbc
from cvstats.protocols.separate import classical_cv, prior_curve, prior_reweighted_cv, separate_cv
from cvstats.protocols.tuned import cvt
from cvstats.simulate.gaussian import separate_gaussian

NAN = np.nan


def separate_cube(values, labels, folds=None, *, kind="label", **more):
    """Return a cube of sample x configuration x partner [x repeat]."""
    dims = ("sample", "configuration", "partner", "repeat")[: np.ndim(values)]
    array = xr.DataArray(np.asarray(values, float), dims=dims)
    if folds is not None:
        array = array.assign_coords(fold=(("sample", "repeat")[: np.ndim(folds)], np.asarray(folds)))
    return cs.as_cube(array, labels, kind=kind, **more)


@pytest.fixture
def by_hand():
    """(3, 2) folds of 4 + 3 samples, sizes 2, 1, 1 and 2, 1: class 0 has two partners, class 1 three."""
    rows = [[0, 1, NAN], [0, 0, NAN], [1, 1, NAN], [0, 0, NAN], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    other = [[1, 1, NAN], [0, 0, NAN], [0, 0, NAN], [0, 0, NAN], [1, 1, 1], [1, 1, 1], [1, 0, 0]]
    values = np.stack([rows, other], axis=1)
    return separate_cube(values, [0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 0, 0, 1])


# --- point values -------------------------------------------------------------------------------------------------


def test_class_errors_and_overall_error_by_hand(by_hand):
    with pytest.warns(cs.CvstatsWarning, match="fewer than 5 samples"):
        out = separate_cv(by_hand, prior={0: 0.1}, rng=1)
    # (13): 3 errors of 4 x 2 and 4 of 3 x 3; the second configuration 2 of 8 and 2 of 9
    np.testing.assert_allclose(out.class_error, [[3 / 8, 4 / 9], [2 / 8, 2 / 9]], rtol=1e-14)
    np.testing.assert_allclose(out.estimate, [0.1 * 3 / 8 + 0.9 * 4 / 9, 0.1 * 2 / 8 + 0.9 * 2 / 9], rtol=1e-14)
    np.testing.assert_allclose(out.class_prior, [0.1, 0.9])
    assert out.class_error.dims == ("configuration", "label_class")
    assert out.label_class.values.tolist() == [0, 1]
    assert (out.method.item(), out.metric.item(), out.interval.item()) == ("separate_cv", "error_rate", "wilson")
    assert (out.prior.item(), out.prior_class.item()) == (0.1, 0)
    for name in ("conf_low", "conf_high", "class_conf_low", "class_conf_high", "std_error"):
        assert np.isnan(out[name]).all()


def test_equals_the_metric_and_ordinary_protocols_run_on_the_cube(by_hand):
    metric = cs.prior_error({0: 0.1})
    with pytest.warns(cs.CvstatsWarning):
        expected = separate_cv(by_hand, prior={0: 0.1}, rng=1).estimate.values
    np.testing.assert_allclose(cs.score(by_hand, metric), expected, rtol=1e-14)
    chosen = cvt(by_hand, metric)
    assert chosen.selected.item() == 1
    assert float(chosen.estimate) == pytest.approx(expected[1], rel=1e-14)


def test_bbc_on_a_separate_cube_by_brute_force(by_hand):
    draws = cs.bootstrap(by_hand, 60, rng=3, strata="label")
    wrong = np.nanmean(np.where(by_hand.isnull(), NAN, by_hand != by_hand.label), axis=2)  # (sample, configuration)
    wrong[by_hand.isnull().all("partner").values] = NAN
    label, values = by_hand.label.values, []

    def error(j, w):
        return sum(
            p * np.sum(w * wrong[:, j] * (label == y)) / np.sum(w * (label == y)) for y, p in ((0, 0.3), (1, 0.7))
        )

    for w in draws.values:
        out = (w == 0).astype(float)
        if all(out[label == y].any() for y in (0, 1)):
            values.append(error(int(np.argmin([error(0, w), error(1, w)])), out))
    assert 10 < len(values) < 60
    with pytest.warns(cs.CvstatsWarning):
        found = bbc(by_hand, cs.prior_error({0: 0.3}), draws=draws)
    assert float(found.estimate) == pytest.approx(np.mean(values), rel=1e-12)
    assert int(found.n_draws) == len(values)


def test_leave_one_out_form():
    """(15), (16): two samples of class 0, three of class 1, every pair left out once."""
    values = np.array([[0, 1, 0], [1, 1, 1], [1, 0, NAN], [0, 0, NAN], [1, 1, NAN]])[:, None]
    cube = separate_cube(values, [0, 0, 1, 1, 1], [0, 1, 0, 1, 2])
    with pytest.warns(cs.CvstatsWarning):
        out = separate_cv(cube, prior=0.25, rng=1)
    np.testing.assert_allclose(out.class_error.values[0], [4 / 6, 3 / 6])
    np.testing.assert_allclose(out.estimate.values, [0.25 * 4 / 6 + 0.75 * 3 / 6])


def test_repeats_and_missing_predictions_average_within_the_sample():
    values = np.zeros((4, 1, 2, 2))  # two samples per class
    values[2:] = 1
    values[0, 0] = [[1, 0], [1, NAN]]  # wrong in two of three
    values[3, 0] = [[0, 0], [NAN, NAN]]  # wrong in both it has
    cube = separate_cube(values, [0, 0, 1, 1])
    with pytest.warns(cs.CvstatsWarning):
        out = separate_cv(cube, prior={1: 0.4}, rng=1)
    np.testing.assert_allclose(out.class_error.values[0], [(2 / 3) / 2, 1 / 2])
    np.testing.assert_allclose(out.estimate.values, [0.6 / 3 + 0.4 / 2])
    assert (out.prior.item(), out.prior_class.item()) == (0.4, 1)


def test_other_losses_by_class():
    p = np.array([[0.2, 0.4], [0.1, 0.3], [0.9, 0.5], [0.6, 1.0]])[:, None]
    cube = separate_cube(p, [0, 0, 1, 1], kind="probability")
    with pytest.warns(cs.CvstatsWarning):
        out = separate_cv(cube, "brier", prior=0.5, rng=1)
    expected = [np.mean([0.04, 0.16, 0.01, 0.09]), np.mean([0.01, 0.25, 0.16, 0])]
    np.testing.assert_allclose(out.class_error.values[0], expected, rtol=1e-9)
    np.testing.assert_allclose(out.estimate.values, [np.mean(expected)], rtol=1e-9)
    p[3, 0, 0] = 0.0  # certain but wrong
    with pytest.warns(cs.CvstatsWarning, match="separate_cv: log loss: 1 prediction of 0 gave the true class"):
        out = separate_cv(separate_cube(p, [0, 0, 1, 1], kind="probability"), "log_loss", prior=0.5, rng=1)
    second = -np.mean(np.log([0.9, 0.5, 2.0**-52, 1.0]))
    assert float(out.class_error.values[0, 1]) == pytest.approx(second, rel=1e-12)


def test_three_classes_in_an_ordinary_cube():
    cube = cs.as_cube([["a"], ["b"], ["b"], ["c"], ["a"], ["c"]], ["a", "a", "b", "b", "c", "c"])
    with pytest.warns(cs.CvstatsWarning, match="fewer than 5"):
        out = prior_reweighted_cv(cube, prior={"a": 0.5, "b": 0.3, "c": 0.2}, rng=1)
    np.testing.assert_allclose(out.estimate.values, [0.5 * 0.5 + 0.3 * 0.5 + 0.2 * 0.5])
    assert "prior" not in out.coords
    np.testing.assert_allclose(out.class_prior, [0.5, 0.3, 0.2])


def test_case_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    values, labels, weights = rng.integers(0, 2, (12, 2)).astype(float), np.arange(12) % 2, rng.integers(1, 4, 12)
    weighted = cs.as_cube(values, labels, weights=weights)
    repeated = cs.as_cube(np.repeat(values, weights, axis=0), np.repeat(labels, weights))
    for function in (lambda c: prior_reweighted_cv(c, prior=0.2, rng=1), lambda c: classical_cv(c, rng=1)):
        a, b = function(weighted), function(repeated)
        for name in ("estimate", "class_error", "class_prior"):
            np.testing.assert_allclose(a[name], b[name], rtol=1e-13)


# --- priors -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_array_of_priors_gives_a_dim_and_matches_single_priors():
    cube, _ = separate_gaussian(60, shrinkage=(0.0, 0.5), rng=2)
    out = separate_cv(cube, prior=[0.0, 0.3, 1.0], rng=1)
    assert out.estimate.dims == ("configuration", "prior")
    assert out.prior.values.tolist() == [0.0, 0.3, 1.0]
    assert out.prior_class.item() == 0
    for i, c in enumerate((0.0, 0.3, 1.0)):
        one = separate_cv(cube, prior=c, rng=1)
        for name in ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high"):
            np.testing.assert_array_equal(out[name].isel(prior=i), one[name])
    np.testing.assert_allclose(out.estimate.isel(prior=2), out.class_error.sel(label_class=0))
    single = separate_cv(cube, prior=xr.DataArray([0.3], dims="prior"), rng=1)
    assert single.estimate.dims == ("configuration", "prior")
    turned = separate_cv(cube, prior={1: [1.0, 0.7, 0.0]}, rng=1)
    np.testing.assert_allclose(turned.estimate, out.estimate, rtol=1e-12)
    assert turned.prior_class.item() == 1


def test_a_class_of_probability_zero_does_not_count_even_when_undefined():
    _, ordinary = separate_gaussian(40, rng=1)
    lost = ordinary.where(ordinary.label == 0)  # nobody predicted the other class
    with pytest.warns(cs.CvstatsWarning):
        out = prior_reweighted_cv(lost, prior={0: 1.0, 1: 0.0}, rng=1, times=100)
    np.testing.assert_allclose(out.estimate, out.class_error.sel(label_class=0))
    assert np.isfinite(out.estimate).all()


def test_without_a_prior_only_class_errors_and_the_reason():
    cube, _ = separate_gaussian(60, rng=2)
    with pytest.warns(
        cs.CvstatsWarning, match="only class errors are returned, because classes sampled separately do not tell"
    ):
        out = separate_cv(cube, rng=1)
    assert "estimate" not in out
    assert {"class_error", "class_std_error", "class_conf_low", "class_conf_high"} <= set(out)


# --- intervals ----------------------------------------------------------------------------------------------------


def test_limits_of_an_error_rate_are_wilsons_and_joined_as_variances_are():
    cube, _ = separate_gaussian(60, ratio=0.4, shrinkage=(0.0, 2.0), k0=4, k1=3, repeats=2, rng=5)
    out = separate_cv(cube, prior=0.2, level=0.9, times=200, rng=11)
    draws = cs.bootstrap(cube, 200, rng=11, strata="label").values
    sample = ((cube > 0) != (cube.label == 1)).where(cube.notnull()).mean(["partner", "repeat"])
    sample = sample.transpose("sample", "configuration").values
    y = cube.label.values
    for name, tail in (("conf_low", 0.05), ("conf_high", 0.95), ("bound_low", 0.1), ("bound_high", 0.9)):
        apart = np.zeros(2)
        for code, weight in ((0, 0.2), (1, 0.8)):
            own = y == code
            p = sample[own].mean(axis=0)
            spread = (draws[:, own] @ sample[own] / own.sum()).std(axis=0, ddof=1)
            n = np.minimum(p * (1 - p) / spread**2, own.sum())
            t = student.ppf(tail, own.sum() - 1)
            # the score equation (p - x)^2 = t^2 x (1 - x) / n has two roots
            a, b, c = 1 + t**2 / n, -(2 * p + t**2 / n), p**2
            limit = (-b + np.sign(t) * np.sqrt(b**2 - 4 * a * c)) / (2 * a)
            if name.startswith("conf"):
                np.testing.assert_allclose(out[f"class_{name}"].sel(label_class=code), limit, rtol=1e-9)
            apart += (weight * (limit - p)) ** 2
        np.testing.assert_allclose(out[name], out.estimate + np.sign(tail - 0.5) * np.sqrt(apart), rtol=1e-9)
    assert (out.interval.item(), out.conf_level.item()) == ("wilson", 0.9)


def test_limits_of_other_losses_are_percentiles_of_draws_within_classes():
    cube, _ = separate_gaussian(60, ratio=0.4, shrinkage=(0.0, 2.0), k0=4, k1=3, repeats=2, rng=5)
    cube = cs.as_cube(1 / (1 + np.exp(-cube.drop_vars(["kind", "threshold"]))), kind="probability", positive=1)
    out = separate_cv(cube, "brier", prior=0.2, level=0.9, times=200, rng=11)
    draws = cs.bootstrap(cube, 200, rng=11, strata="label").values
    sample = ((cube - cube.label) ** 2).mean(["partner", "repeat"]).transpose("sample", "configuration").values
    y = cube.label.values
    each = [(draws * (y == code)) @ sample / (draws * (y == code)).sum(1)[:, None] for code in (0, 1)]
    both = 0.2 * each[0] + 0.8 * each[1]
    np.testing.assert_allclose(out.std_error, both.std(0, ddof=1), rtol=1e-12)
    for name, q in (("conf_low", 0.05), ("conf_high", 0.95), ("bound_low", 0.1), ("bound_high", 0.9)):
        np.testing.assert_allclose(out[name], np.quantile(both, q, axis=0), rtol=1e-9, atol=1e-15)
    for name, q in (("class_conf_low", 0.05), ("class_conf_high", 0.95)):
        np.testing.assert_allclose(out[name].sel(label_class=1), np.quantile(each[1], q, axis=0), rtol=1e-9, atol=1e-15)
    assert (out.interval.item(), out.conf_level.item()) == ("percentile", 0.9)
    assert int(out.n_draws) == 200


def test_groups_are_drawn_whole():
    cube, _ = separate_gaussian(40, rng=5)
    grouped = cube.assign_coords(group=("sample", np.arange(40) // 4))
    out = separate_cv(grouped, prior=0.5, times=100, rng=3)
    draws = cs.bootstrap(grouped, 100, rng=3, strata="label").values
    assert (draws.reshape(100, 10, 4) == draws.reshape(100, 10, 4)[..., :1]).all()
    sample = ((cube > 0) != (cube.label == 1)).mean("partner").values[:, 0]
    y = cube.label.values
    both = sum(0.5 * (draws * (y == code)) @ sample / (draws * (y == code)).sum(1) for code in (0, 1))
    np.testing.assert_allclose(out.std_error.values, both.std(ddof=1), rtol=1e-12)


def test_samples_that_nobody_predicted_do_not_count():
    cube, ordinary = separate_gaussian(60, ratio=0.4, shrinkage=(0.0, 2.0), rng=5)
    there = np.arange(60) % 7 != 3
    for function, whole in ((separate_cv, cube), (prior_reweighted_cv, ordinary)):
        gaps = whole.where(xr.DataArray(there, dims="sample"))
        out = function(gaps, prior=0.2, times=100, rng=1)
        xr.testing.assert_equal(out, function(whole.isel(sample=there), prior=0.2, times=100, rng=1))
    with pytest.raises(cs.InputError, match="`cube` holds no predictions"):
        separate_cv(cube * NAN, prior=0.2)


def test_a_class_without_errors_has_an_interval_with_width():
    values = np.ones((20, 1, 2))
    values[:10] = 0
    values[12:15] = 0
    out = separate_cv(separate_cube(values, np.repeat([0, 1], 10)), prior=0.5, rng=1)
    t2 = student.ppf(0.975, 9) ** 2
    assert float(out.class_conf_low.sel(label_class=0)[0]) == 0.0
    assert float(out.class_conf_high.sel(label_class=0)[0]) == pytest.approx(t2 / (10 + t2))
    assert np.isfinite(out.class_conf_high.sel(label_class=1)).all()
    assert float(out.conf_high[0]) > float(out.estimate[0]) + t2 / (10 + t2) / 2


def test_a_class_whose_loss_does_not_vary_is_named():
    values = np.full((20, 1, 2), 0.9)
    values[:10] = 0.25
    values[12:15] = 0.5
    cube = separate_cube(values, np.repeat([0, 1], 10), kind="probability")
    with pytest.warns(cs.CvstatsWarning, match="the error of classes 0 does not vary over draws") as caught:
        out = separate_cv(cube, "brier", prior=0.5, rng=1)
    assert len(caught) == 1
    assert np.isnan(out.class_conf_low.sel(label_class=0)).all()
    assert np.isfinite(out.class_conf_high.sel(label_class=1)).all()
    assert float(out.conf_high[0]) > float(out.estimate[0])


def test_one_small_class_has_no_limits_and_so_has_the_whole():
    values = np.zeros((16, 1, 2))
    values[[0, 6, 9, 13]] = 1
    cube = separate_cube(values, np.repeat([0, 1], [4, 12]))
    with pytest.warns(cs.CvstatsWarning, match="classes 0 have fewer than 5 samples") as caught:
        out = separate_cv(cube, prior=0.5, rng=1)
    assert len(caught) == 1
    for name in ("std_error", "conf_low", "conf_high", "bound_low", "bound_high"):
        assert np.isnan(out[name]).all()
    for name in ("class_std_error", "class_conf_low", "class_conf_high"):
        assert np.isfinite(out[name].values).tolist() == [[False, True]]


def test_without_any_error_limits_still_have_width():
    cube = separate_cube(np.repeat([0.0, 1.0], 10).reshape(20, 1, 1), np.repeat([0, 1], 10))
    out = separate_cv(cube, prior=0.5, rng=1)
    assert (float(out.estimate[0]), float(out.std_error[0])) == (0.0, 0.0)
    t2 = student.ppf(0.975, 9) ** 2
    assert float(out.conf_low[0]) == 0.0
    assert float(out.conf_high[0]) == pytest.approx(np.sqrt(0.5) * t2 / (10 + t2))


@pytest.mark.slow
def test_same_numbers_from_dask_in_any_chunks():
    cube, _ = separate_gaussian(50, shrinkage=(0.0, 0.1, 0.5, 2.0, 8.0), repeats=2, rng=7)
    expected = separate_cv(cube, prior=0.3, times=100, rng=1)
    for size in (1, 2, 5):
        lazy = cube.chunk(configuration=size)
        xr.testing.assert_identical(separate_cv(lazy, prior=0.3, times=100, rng=1).drop_attrs(), expected.drop_attrs())


def test_batch_dims_are_kept():
    cube, ordinary = separate_gaussian(50, shrinkage=(0.0, 0.5), trials=3, rng=7)
    out = separate_cv(cube, prior=0.3, times=100, rng=1)
    assert out.estimate.sizes == {"trial": 3, "configuration": 2}
    one = separate_cv(cube.isel(trial=1), prior=0.3, times=100, rng=1)
    np.testing.assert_array_equal(out.conf_low.isel(trial=1), one.conf_low)
    assert classical_cv(ordinary, times=100, rng=1).estimate.sizes == {"trial": 3, "configuration": 2}


# --- classical cross-validation, the approximation, the curve ------------------------------------------------------


def test_classical_cv_is_read_off_when_folds_agree():
    separate, ordinary = separate_gaussian(60, ratio=0.6, shrinkage=(0.0, 0.5), repeats=2, rng=3)
    a, b = classical_cv(separate, times=100, rng=1), classical_cv(ordinary, times=100, rng=1)
    for name in ("estimate", "conf_low", "conf_high", "class_error"):
        np.testing.assert_array_equal(a[name], b[name])
    np.testing.assert_allclose(a.estimate, cs.score(ordinary, "error_rate"), rtol=1e-14)
    np.testing.assert_allclose(a.class_prior, [0.6, 0.4])
    assert a.method.item() == "classical_cv"


@pytest.mark.slow
@pytest.mark.parametrize("order", [[0, 2, 1, 3, 4], [3, 0, 4, 1, 2], [4, 3, 2, 1, 0]])
def test_classical_cv_finds_partners_by_name_whatever_their_order(order):
    separate, ordinary = separate_gaussian(60, ratio=0.6, shrinkage=(0.0, 0.5), repeats=2, rng=3)
    names = np.array(list("caebd"))
    shuffled = separate.isel(partner=order).assign_coords(partner=names[order])
    shuffled = shuffled.assign_coords(fold=separate.fold.copy(data=names[separate.fold.values]))
    expected = classical_cv(ordinary, times=100, rng=1).estimate
    for cube in (separate, separate.isel(partner=order), shuffled, separate.drop_vars("partner")):
        np.testing.assert_array_equal(classical_cv(cube, times=100, rng=1).estimate, expected)


def test_classical_cv_asks_for_an_ordinary_cube_otherwise(by_hand):
    with pytest.raises(cs.InputError, match=r"classes have 3 and 2 folds.*Give an ordinary cube"):
        classical_cv(by_hand, rng=1)
    separate, _ = separate_gaussian(60, rng=3)
    with pytest.raises(cs.InputError, match="has no coordinate 'fold'"):
        classical_cv(separate.drop_vars("fold"), rng=1)


def test_reweighting_is_labelled_and_differs_from_separate_cv():
    separate, ordinary = separate_gaussian(80, ratio=0.7, rng=4)
    a = separate_cv(separate, prior=0.1, rng=1)
    b = prior_reweighted_cv(ordinary, prior=0.1, rng=1)
    assert b.method.item() == "prior_reweighted_cv"
    assert float(a.estimate[0]) != float(b.estimate[0])
    by_class = [float(cs.score(ordinary, cs.prior_error({y: 1.0}))[0]) for y in (0, 1)]
    np.testing.assert_allclose(b.estimate.values, [0.1 * by_class[0] + 0.9 * by_class[1]], rtol=1e-13)


@pytest.mark.slow
def test_prior_curve():
    separate, ordinary = separate_gaussian(80, ratio=0.7, shrinkage=(0.0, 0.5), rng=4)
    out = prior_curve(separate, rng=1)
    assert out.sizes["prior"] == 101
    np.testing.assert_allclose(out.classical, classical_cv(ordinary, rng=1).estimate)
    np.testing.assert_array_equal(out.estimate.sel(prior=0.5), separate_cv(separate, prior=0.5, rng=1).estimate)
    assert (out.method.item(), prior_curve(ordinary, rng=1).method.item()) == ("separate_cv", "prior_reweighted_cv")
    unequal, _ = separate_gaussian(80, k0=4, k1=5, rng=4)
    assert np.isnan(prior_curve(unequal, prior=[0.1, 0.2], rng=1).classical).all()
    with pytest.raises(cs.InputError, match="must be an array of probabilities for a curve"):
        prior_curve(separate, prior=0.2, rng=1)


def test_case_study_arithmetic():
    """40 and 13.4 per 100 000: class 0 is the diseased one, and hardly counts."""
    for c in (40 / 100_000, 13.4 / 100_000):
        values = np.repeat([[0.0], [1.0]], [30, 70], axis=0)[:, :, None]
        values[:9], values[30:37] = 1.0, 0.0  # errors .3 and .1
        cube = separate_cube(values, np.repeat([0, 1], [30, 70]))
        out = separate_cv(cube, prior={0: c}, rng=1)
        np.testing.assert_allclose(out.estimate.values, [c * 0.3 + (1 - c) * 0.1], rtol=1e-12)


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        (1.5, r"probabilities in \[0, 1\]"),
        ({0: -0.1}, r"probabilities in \[0, 1\]"),
        ([0.2, 1.2], r"probabilities in \[0, 1\]; found 1.2"),
        ([0.2, -0.1], r"probabilities in \[0, 1\]; found -0.1"),
        ([0.2, 1.2, -1], r"probabilities in \[0, 1\]; found 1.2, -1.0"),
        ({"ill": 0.1}, "names 'ill', not among the classes 0, 1"),
        ({"ill": [0.1, 0.2]}, "names 'ill', not among the classes 0, 1"),
        ({0: 0.5, 1: 0.2}, "must add up to 1"),
        ({0: [0.5, 0.2], 1: [0.5, 0.8]}, "must name one of two classes"),
        ([[0.1, 0.2]], "one-dimensional array"),
        ([], "one-dimensional array"),
    ],
)
def test_bad_priors(prior, text):
    cube, ordinary = separate_gaussian(40, rng=1)
    with pytest.raises(cs.InputError, match=text):
        separate_cv(cube, prior=prior, rng=1)
    with pytest.raises(cs.InputError, match=text):
        prior_reweighted_cv(ordinary, prior=prior, rng=1)


def test_other_bad_input():
    cube, ordinary = separate_gaussian(40, rng=1)
    with pytest.raises(cs.InputError, match=r"no dimension 'partner'.*prior_reweighted_cv"):
        separate_cv(ordinary, prior=0.1)
    with pytest.raises(cs.InputError, match=r"use separate_cv\(\)"):
        prior_reweighted_cv(cube, prior=0.1)
    with pytest.raises(cs.InputError, match="`prior` is required"):
        prior_reweighted_cv(ordinary, prior=None)
    for metric in ("auc", "accuracy", "balanced_accuracy", cs.prior_error(0.1)):
        with pytest.raises(cs.InputError, match="must be a mean of per-sample losses"):
            separate_cv(cube, metric, prior=0.1)
    with pytest.raises(cs.InputError, match="class errors are for class labels"):
        classical_cv(cs.as_cube([[1.0], [2.5]], [1.5, 2.5]), "mse")
    with pytest.raises(cs.InputError, match="`times`=20 is too small for a percentile interval"):
        separate_cv(cube, prior=0.1, times=20)
    with pytest.raises(cs.InputError, match="`times` must be a whole number of at least 1"):
        separate_cv(cube, prior=0.1, times=0)
    with pytest.raises(cs.InputError, match="`level` must be"):
        separate_cv(cube, prior=0.1, level=95)
    with pytest.raises(cs.InputError, match="2 of 20 groups hold samples of several classes"):
        separate_cv(cube.assign_coords(group=("sample", (np.arange(40) + 1) // 2 % 20)), prior=0.1, rng=1)
    with pytest.raises(cs.InputError, match="holds no predictions"):
        separate_cv(cube * np.nan, prior=0.1, rng=1)
    three = cs.as_cube([["a"], ["b"], ["c"]], ["a", "b", "c"])
    with pytest.raises(cs.InputError, match="as an array is for two classes; the cube has 3"):
        prior_reweighted_cv(three, prior=[0.1, 0.2])


def test_inputs_are_not_changed(by_hand):
    before = by_hand.copy(deep=True)
    with pytest.warns(cs.CvstatsWarning):
        separate_cv(by_hand, prior=0.1, rng=1)
    xr.testing.assert_identical(by_hand, before)


# --- calibration --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*does not vary over draws:cvstats._check.CvstatsWarning")
@pytest.mark.parametrize(
    ("ratio", "prior", "true_error", "classical", "classical_within", "separate", "separate_within"),
    [
        (0.15, 0.5, 0.1066, -0.056, 0.004, 0.003, 0.008),
        (0.70, 0.1, 0.1108, -0.044, 0.004, 0.002, 0.008),
        (0.50, 0.5, 0.0717, 0.003, 0.004, 0.001, 0.004),
    ],
)
def test_bias_under_separate_sampling(ratio, prior, true_error, classical, classical_within, separate, separate_within):
    """Estimate minus true error over 1000 samples of 80; separate (5, 5)-fold CV is nearly unbiased."""
    cube, ordinary = separate_gaussian(80, ratio=ratio, prior=prior, trials=1000, rng=2024)
    truth = cube.truth.sel(configuration="lda")
    assert float(truth.mean()) == pytest.approx(true_error, abs=0.004)
    plain = cs.score(ordinary, "error_rate").sel(configuration="lda") - truth
    assert float(plain.mean()) == pytest.approx(classical, abs=classical_within)
    own = cs.score(cube, cs.prior_error({0: prior})).sel(configuration="lda") - truth
    assert float(own.mean()) == pytest.approx(separate, abs=separate_within)
    # a few trials through the protocols themselves
    few, few_ordinary = cube.isel(trial=slice(3)), ordinary.isel(trial=slice(3))
    result = separate_cv(few, prior={0: prior}, times=100, rng=1)
    other = classical_cv(few_ordinary, times=100, rng=1)
    np.testing.assert_allclose(result.estimate.values[:, 0], (own + truth).values[:3], rtol=1e-12)
    np.testing.assert_allclose(other.estimate.values[:, 0], (plain + truth).values[:3], rtol=1e-12)


@pytest.mark.slow
def test_interval_covers_the_error_of_the_pairs_models():
    """Coverage of the true overall error, n = 80, 300 trials."""
    cube, _ = separate_gaussian(80, ratio=0.5, distance=1.5, trials=300, rng=5)
    truth = cube.truth.sel(configuration="lda").values
    out = separate_cv(cube, prior=0.5, times=300, rng=1)
    inside = (out.conf_low.values[:, 0] <= truth) & (truth <= out.conf_high.values[:, 0])
    assert 0.92 <= inside.mean() <= 0.99
