"""Simulators: exact values, agreement with R, brute-force refits, laws, calibration, error texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from cvstats._check import InputError
from cvstats.cube.make import as_cube
from cvstats.folds import nested_folds, pairs
from cvstats.simulate import coverage, expected_maximum, ripley_mixture, separate_gaussian, simulate_cube
from cvstats.simulate import gaussian as separate
from cvstats.simulate.ripley import KernelRidge, rbf

REFERENCE = Path(__file__).parent / "reference"
seeds = st.integers(0, 2**31)


@pytest.fixture(scope="module")
def reference():
    return json.loads((REFERENCE / "simulate_reference.json").read_text())


# --- expected_maximum


@pytest.fixture(scope="module")
def table1():
    return json.loads((REFERENCE / "simulate_table1.json").read_text())


def exact_table1(table1):
    best = expected_maximum(table1["probability"], table1["n_samples"], table1["n_configurations"])
    return best.transpose("n_configurations", "n_samples", "quantile")


def test_all_36_means_of_table_1(table1):
    exact, printed = exact_table1(table1)["mean"].values, np.array(table1["mean"])
    assert np.abs(exact - printed).max() < 0.001
    rows, columns = np.nonzero(np.abs(exact - printed) > 0.0005)  # these printed digits are simulation noise
    differ = [(table1["n_configurations"][i], table1["n_samples"][j]) for i, j in zip(rows, columns, strict=True)]
    assert differ == [(5, 20), (5, 100), (10, 40), (10, 80), (10, 100), (20, 20), (20, 40), (50, 80)]


def test_percentiles_of_table_1(table1):
    exact = exact_table1(table1)["quantiles"].values
    for place, name in enumerate(("low", "high")):
        assert np.abs(exact[..., place] - np.array(table1[name])).max() <= 0.0051, name  # printed with two digits


@pytest.mark.parametrize(
    ("m", "n", "value"),
    [(10, 100, 0.9026), (5, 20, 0.9359), (20, 40, 0.9453), (100, 500, 0.8887), (1000, 1000, 0.8854)],
)
def test_five_exact_means(m, n, value):
    assert float(expected_maximum(0.85, n, m)["mean"]) == pytest.approx(value, abs=5e-5)


def test_maximum_equals_base_r(reference):
    r = reference["maximum"]
    p, n, m = (xr.DataArray(np.array(r[name]), dims="cell") for name in ("p", "n", "m"))
    best = expected_maximum(p, n, m)
    np.testing.assert_allclose(best["mean"], r["mean"], rtol=1e-11)
    np.testing.assert_allclose(best["quantiles"].sel(quantile=0.05), r["low"], rtol=1e-14)
    np.testing.assert_allclose(best["quantiles"].sel(quantile=0.95), r["high"], rtol=1e-14)
    np.testing.assert_allclose(best["optimism"], np.array(r["mean"]) - np.array(r["p"]), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.integers(1, 60), st.integers(1, 500))
def test_maximum_laws(p, n, m):
    best = expected_maximum(p, n, [m, m + 1])
    assert 0 <= best["mean"][0] <= best["mean"][1] <= 1
    assert float(best["mean"][0]) >= p - 1e-12
    assert float(expected_maximum(p, n, 1)["mean"]) == pytest.approx(p, abs=1e-12)
    low, high = best["quantiles"].isel(n_configurations=0).values
    assert low <= high


def test_maximum_broadcasts_by_name():
    best = expected_maximum([0.5, 0.9], 20, [1, 2, 3])
    assert dict(best["mean"].sizes) == {"probability": 2, "n_configurations": 3}
    assert best.probability.values.tolist() == [0.5, 0.9]
    assert str(best.method.item()) == "expected_maximum"
    assert float(expected_maximum(0.0, 5, 9)["mean"]) == 0
    assert float(expected_maximum(1.0, 5, 9)["mean"]) == 1


# --- simulate_cube


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_simulated_cube_is_what_as_cube_makes(repeats):
    cube = simulate_cube(30, 7, repeats=repeats, folds=5, rng=1)
    plain = as_cube(cube.values, cube.label.values, folds=cube.fold.values, kind="label")
    assert plain.assign_coords(truth=cube.truth).identical(cube)
    assert np.ptp(np.bincount(cube.label)) <= 1
    assert np.ptp(np.bincount(cube.fold.values.reshape(30, -1)[:, 0])) <= 1


@pytest.mark.parametrize("dependence", ["independent", "shared", 0.0, 0.5])
@pytest.mark.parametrize("repeats", [1, 2])
def test_accuracies_are_the_truth(dependence, repeats):
    cube = simulate_cube(20000, 20, dependence=dependence, repeats=repeats, rng=3)
    right = (cube == cube.label).mean("sample")
    z = (right - cube.truth) / np.sqrt(cube.truth * (1 - cube.truth) / 20000)
    assert float(abs(z).max()) < 4.5


def test_truth_follows_the_beta_distribution():
    truth = simulate_cube(2, 50000, beta=(54, 6), folds=1, rng=1).truth
    assert float(truth.mean()) == pytest.approx(0.9, abs=0.001)
    assert float(truth.var()) == pytest.approx(0.0015, abs=5e-5)


def test_shared_luck_nests_configurations():
    for repeats in (1, 2):
        cube = simulate_cube(200, 30, dependence="shared", repeats=repeats, rng=1)
        right = (cube == cube.label).sortby("truth").astype(int).transpose("sample", "configuration", ...).values
        assert (np.diff(right, axis=1) >= 0).all()


def test_copula_correlation_between_configurations_and_repeats():
    from scipy.stats import multivariate_normal, norm

    rho, share = 0.5, 0.6
    cube = simulate_cube(200000, 2, dependence=rho, repeats=2, repeat_share=share, rng=5)
    right = (cube == cube.label).values
    quantile = norm.ppf(cube.truth.values)

    def both(a, b, correlation):
        return multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([a, b])

    tolerance = 4.5 * 0.5 / np.sqrt(200000)
    one, two = quantile
    assert (right[:, 0, 0] & right[:, 1, 0]).mean() == pytest.approx(both(one, two, rho), abs=tolerance)
    assert (right[:, 0, 0] & right[:, 0, 1]).mean() == pytest.approx(both(one, one, share), abs=tolerance)
    assert (right[:, 0, 0] & right[:, 1, 1]).mean() == pytest.approx(both(one, two, rho * share), abs=tolerance)


def test_repeat_share_at_its_ends():
    cube = simulate_cube(100, 5, repeats=3, repeat_share=1.0, rng=1)
    assert (cube == cube.isel(repeat=0)).all()
    cube = simulate_cube(20000, 1, repeats=2, repeat_share=0.0, rng=1)
    right = (cube == cube.label).values[:, 0].astype(float)
    assert abs(np.corrcoef(right.T)[0, 1]) < 4.5 / np.sqrt(20000)


@pytest.mark.parametrize("repeats", [1, 2])
def test_inner_predictions_repeat_the_outer_ones(repeats):
    cube, inner = simulate_cube(40, 6, folds=5, repeats=repeats, inner=True, rng=2)
    more = ("repeat",) if repeats > 1 else ()
    assert inner.dims == ("sample", "configuration", "outer_fold", *more)
    assert inner.fold.dims == ("sample", "outer_fold", *more)
    own = cube.fold.drop_vars("fold") == inner.outer_fold
    assert (inner.isnull() == own).all()
    assert ((inner == cube) | own).all()
    expected = nested_folds(cube.fold)
    assert (inner.fold.drop_vars("fold") == expected.transpose(*inner.fold.dims)).all()
    assert cube.identical(simulate_cube(40, 6, folds=5, repeats=repeats, rng=2))
    assert str(inner.kind.item()) == "label"


def test_same_seed_same_cube():
    assert simulate_cube(20, 5, rng=1).identical(simulate_cube(20, 5, rng=np.random.default_rng(1)))
    assert not simulate_cube(20, 5, rng=1).equals(simulate_cube(20, 5, rng=2))


def cvt_bias(n, c, repetitions, **options):
    rng = np.random.default_rng(2024)
    bias = np.empty(repetitions)
    for i in range(repetitions):
        cube = simulate_cube(n, c, rng=rng, **options)
        right = (cube.values == cube.label.values[:, None]).mean(0)
        bias[i] = right.max() - cube.truth.values[right.argmax()]
    return bias.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "c", "repetitions", "options", "value", "tolerance"),
    [
        (100, 100, 2000, {}, 0.0379, 0.003),
        (20, 200, 2000, {}, 0.155, 0.006),
        (500, 200, 400, {}, 0.0082, 0.003),
        (20, 200, 1000, {"dependence": "shared"}, 0.022, 0.010),
    ],
)
def test_optimism_of_the_tuned_estimate(n, c, repetitions, options, value, tolerance):
    assert cvt_bias(n, c, repetitions, **options) == pytest.approx(value, abs=tolerance)


# --- separate_gaussian


def test_theta_has_the_stated_distance(reference):
    equal = separate._theta(*separate._covariances((0.8, 0.8)), 3.0)
    unequal = separate._theta(*separate._covariances((0.8, 0.4)), 3.0)
    assert equal == pytest.approx(1.6125, abs=5e-5)
    assert unequal == pytest.approx(3.5398, abs=5e-5)
    assert equal == pytest.approx(reference["theta"]["equal"], abs=1e-8)
    assert unequal == pytest.approx(reference["theta"]["unequal"], abs=1e-8)


def whole_rule(x, n0, shrinkage=(0.0,)):
    none = np.zeros((1, x.shape[1]), int)
    return separate._rules(x, none, n0, (0, 0), np.array(shrinkage))


def test_discriminant_equals_mass_lda(reference):
    r = reference["lda"]
    x, y = np.array(r["x"]), np.array(r["y"])
    slope, intercept = whole_rule(x[None], int((y == 0).sum()))
    w = x @ slope[0, 0, 0, 0, 0] + intercept[0, 0, 0, 0, 0]
    np.testing.assert_allclose(w, r["w"], rtol=1e-9, atol=1e-9)


def refitted(x, label, train, shrinkage):
    """W of all samples by a discriminant trained the slow way."""
    zero, one = x[train & (label == 0)], x[train & (label == 1)]
    pooled = (np.cov(zero.T) * (len(zero) - 1) + np.cov(one.T) * (len(one) - 1)) / (len(zero) + len(one) - 2)
    slope = np.linalg.solve(pooled + shrinkage * np.eye(3), zero.mean(0) - one.mean(0))
    return (x - (zero.mean(0) + one.mean(0)) / 2) @ slope + np.log(len(zero) / len(one))


def test_every_pair_of_left_out_folds_is_a_refit():
    rng = np.random.default_rng(1)
    n0, n1, k0, k1, shrinkage = 11, 14, 2, 3, np.array([0.0, 0.3])
    label = np.repeat([0, 1], [n0, n1])
    x = rng.normal(size=(2, n0 + n1, 3)) + label[:, None]
    fold = np.stack([np.concatenate([rng.permutation(n0) % k0, rng.permutation(n1) % k1]) for _ in range(2)])
    scores = separate._separate_scores(x, fold, n0, (k0, k1), shrinkage)
    coords = {"label": ("sample", label)}
    design = pairs(xr.DataArray(fold.T, dims=("sample", "repeat"), coords=coords))
    expected = np.full(scores.shape, np.nan)
    for trial, repeat, pair in np.ndindex(2, 2, k0 * k1):
        one = design.isel(pair=pair, repeat=repeat)
        rows = np.flatnonzero(one.test.values)
        for c, value in enumerate(shrinkage):
            w = refitted(x[trial], label, one.train.values, value)
            expected[trial, repeat, rows, one.partner.values[rows], c] = -w[rows]
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_separate_cube_has_the_documented_shape():
    sep, ordinary = separate_gaussian(30, ratio=0.4, k0=3, k1=4, shrinkage=(0, 0.5), repeats=2, trials=3, rng=1)
    assert dict(sep.sizes) == {"sample": 30, "configuration": 2, "partner": 4, "repeat": 2, "trial": 3}
    assert dict(ordinary.sizes) == {"sample": 30, "configuration": 2, "repeat": 2, "trial": 3}
    assert (sep.label == 0).sum() == 12
    assert (np.isnan(sep.values[:, :, 3]).all((1, 2, 3)) == (sep.label.values == 1)).all()
    assert int(sep.isnull().sum()) == 18 * 2 * 2 * 3
    assert sep.fold.dims == ("sample", "repeat")
    assert (sep.fold.values[:12].max(), sep.fold.values[12:].max()) == (2, 3)
    assert (str(sep.kind.item()), int(sep.positive), float(sep.threshold)) == ("score", 1, 0.0)
    np.testing.assert_allclose(sep.truth, (sep.truth_0 + sep.truth_1) / 2)
    assert sep.shrinkage.values.tolist() == [0, 0.5]


def test_ordinary_folds_are_the_diagonal_when_the_numbers_of_folds_agree():
    sep, ordinary = separate_gaussian(30, repeats=2, rng=1)
    assert ordinary.fold.equals(sep.fold)
    own = sep.isel(partner=sep.fold.drop_vars("fold").drop_vars("partner", errors="ignore"))
    np.testing.assert_array_equal(own.transpose(*ordinary.dims).values, ordinary.values)


def test_true_error_is_exact():
    rng = np.random.default_rng(0)
    cov0, cov1 = separate._covariances((0.8, 0.4))
    mean1 = np.array([0, 0, 2.0])
    x = rng.normal(size=(1, 40, 3)) + np.repeat([0, 1], [15, 25])[:, None]
    rule = whole_rule(x, 15)
    error0, error1 = separate._true_errors(rule, mean1, cov0, cov1)
    slope, intercept = (part[0, 0, 0, 0, 0] for part in rule)
    n = 400000
    tolerance = 4.5 * 0.5 / np.sqrt(n)
    w0 = rng.multivariate_normal(np.zeros(3), cov0, n) @ slope + intercept
    w1 = rng.multivariate_normal(mean1, cov1, n) @ slope + intercept
    assert (w0 <= 0).mean() == pytest.approx(error0.item(), abs=tolerance)
    assert (w1 > 0).mean() == pytest.approx(error1.item(), abs=tolerance)


@pytest.mark.parametrize(("n", "ratio", "n0"), [(80, 0.15, 12), (80, 0.7, 56), (100, 0.07, 7), (81, 0.5, 41)])
def test_class_sizes(n, ratio, n0):
    sep, _ = separate_gaussian(n, ratio=ratio, folds=2, rng=1)
    assert int((sep.label == 0).sum()) == n0


def separate_estimates(cube, c):
    """(13) and (14) by hand."""
    label = cube.label.values
    positive = cube.values[:, 0] > 0
    wrong = np.where(np.isnan(cube.values[:, 0]), np.nan, positive != (label == 1)[:, None, None])
    return c * np.nanmean(wrong[label == 0], axis=(0, 1)) + (1 - c) * np.nanmean(wrong[label == 1], axis=(0, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("r", "c", "true_error", "classical", "separately", "tolerance"),
    [
        (0.15, 0.5, 0.1066, -0.056, 0.003, 0.008),
        (0.70, 0.1, 0.1108, -0.044, 0.002, 0.008),
        (0.50, 0.5, 0.0717, 0.003, 0.001, 0.004),
    ],
)
def test_bias_under_separate_sampling(r, c, true_error, classical, separately, tolerance):
    sep, ordinary = separate_gaussian(80, ratio=r, prior=c, trials=1000, rng=11)
    truth = sep.truth.values[0]
    estimate8 = ((ordinary.values[:, 0] > 0) != (ordinary.label.values == 1)[:, None]).mean(0)
    assert truth.mean() == pytest.approx(true_error, abs=0.004)
    assert (estimate8 - truth).mean() == pytest.approx(classical, abs=0.004)
    assert (separate_estimates(sep, c) - truth).mean() == pytest.approx(separately, abs=tolerance)


@pytest.mark.slow
def test_separate_estimate_has_the_expectation_of_the_smaller_sample():
    # the theorem: expectation = true error of the rule trained on 4/5 of each class
    sep, _ = separate_gaussian(80, ratio=0.25, prior=0.3, trials=4000, rng=3)
    smaller, _ = separate_gaussian(64, ratio=0.25, prior=0.3, trials=4000, rng=4)
    estimate = separate_estimates(sep, 0.3)
    error = estimate.std() / np.sqrt(4000)
    assert estimate.mean() == pytest.approx(smaller.truth.values.mean(), abs=4 * error)


# --- ripley_mixture


def refit(x, y, rows, eta, ridge):
    keep = np.setdiff1d(np.arange(len(y)), rows)
    n = keep.size
    system = np.block([[rbf(x[keep], x[keep], eta) + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0]])
    solution = np.linalg.solve(system, np.append(y[keep], 0))
    return rbf(x[rows], x[keep], eta) @ solution[:-1] + solution[-1]


@pytest.fixture(scope="module")
def machine():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(22, 2)), np.sign(rng.normal(size=22))
    ridge = np.array([0.01, 0.3, 2.0])
    return KernelRidge(x, y, 1.3, ridge), x, y, ridge


def test_closed_forms_equal_refits(machine):
    model, x, y, ridge = machine
    fold = np.arange(22) % 4
    rows = [np.flatnonzero(fold == number) for number in range(4)]
    inner = model.cross_validate_inner(fold)
    for place, value in enumerate(ridge):
        alone = [refit(x, y, np.array([i]), 1.3, value)[0] for i in range(22)]
        np.testing.assert_allclose(model.leave_one_out()[:, place], alone, atol=1e-10)
        np.testing.assert_allclose(model.cross_validate(np.arange(22))[:, place], alone, atol=1e-10)
        np.testing.assert_allclose(model.predict(x)[:, place], refit_all(x, y, 1.3, value), atol=1e-10)
        for one in range(4):
            part = model.cross_validate(fold)[rows[one], place]
            np.testing.assert_allclose(part, refit(x, y, rows[one], 1.3, value), atol=1e-10)
            assert np.isnan(inner[rows[one], place, one]).all()
            for two in set(range(4)) - {one}:
                both = refit(x, y, np.concatenate([rows[one], rows[two]]), 1.3, value)
                np.testing.assert_allclose(inner[rows[two], place, one], both[rows[one].size :], atol=1e-10)


def refit_all(x, y, eta, ridge):
    n = len(y)
    system = np.block([[rbf(x, x, eta) + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0]])
    solution = np.linalg.solve(system, np.append(y, 0))
    return rbf(x, x, eta) @ solution[:-1] + solution[-1]


def test_kernel_equals_scikit_learn():
    from sklearn.metrics.pairwise import rbf_kernel

    x = np.random.default_rng(1).normal(size=(9, 2))
    np.testing.assert_allclose(rbf(x, x[:4], 2.5), rbf_kernel(x, x[:4], gamma=2.5), rtol=1e-12)


def test_mixture_cubes_have_the_documented_shape():
    cube, inner, test = ripley_mixture(
        24, ridge=[0.1, 1], eta=[1, 4, 16], folds=4, repeats=2, inner=True, test=True, n_test=50, realisations=3, rng=1
    )
    assert dict(cube.sizes) == {"sample": 24, "configuration": 6, "repeat": 2, "realisation": 3}
    assert inner.dims == ("sample", "configuration", "outer_fold", "repeat", "realisation")
    assert dict(test.sizes) == {"sample": 50, "configuration": 6, "realisation": 3}
    assert cube.ridge.values.tolist() == [0.1] * 3 + [1.0] * 3
    assert cube.configuration.values[4] == "ridge=1 eta=4"
    assert sorted(np.bincount(cube.label.values + 1).tolist()) == [0, 12, 12]
    assert (inner.isnull() == (cube.fold.drop_vars("fold") == inner.outer_fold)).all()
    assert (inner.fold.drop_vars("fold") == nested_folds(cube.fold)).all()
    wrong = ((test > 0) != (test.label > 0)).mean("sample")
    np.testing.assert_allclose(wrong.transpose(*cube.truth.dims), cube.truth)
    np.testing.assert_allclose(((test - test.label) ** 2).mean("sample").transpose(*cube.truth.dims), cube.truth_mse)


def test_mixture_as_scores_and_as_values():
    options = {"ridge": [0.1], "eta": [4.0], "n_test": 10, "rng": 1}
    scores, values = ripley_mixture(16, **options), ripley_mixture(16, kind="value", **options)
    np.testing.assert_array_equal(scores.values, values.values)
    assert (str(scores.kind.item()), str(values.kind.item())) == ("score", "value")
    assert scores.fold.values.tolist() == list(range(16))
    assert values.label.dtype.kind == "f"
    assert scores.identical(ripley_mixture(16, **options))


def test_press_is_n_times_the_mean_squared_error():
    from cvstats.metrics import score

    cube = ripley_mixture(20, ridge=[0.1, 1.0], eta=[4.0], kind="value", n_test=10, rng=1)
    press = ((cube - cube.label) ** 2).sum("sample")
    np.testing.assert_allclose(score(cube, "mse") * 20, press)


def test_a_large_training_set_approaches_the_bayes_error(reference):
    bayes = dict(zip(reference["bayes_error"]["variance"], reference["bayes_error"]["error"], strict=True))
    assert bayes[0.04] == pytest.approx(0.1238, abs=1e-4)  # as published
    for variance, error in bayes.items():
        cube = ripley_mixture(600, ridge=[0.3], eta=[4.0], variance=variance, n_test=40000, rng=1)
        assert error - 0.006 < cube.truth.item() < error + 0.012
        assert float(((cube > 0) != (cube.label > 0)).mean()) == pytest.approx(cube.truth.item(), abs=0.05)


# --- coverage


def normal_mean(rng, n=25, mean=0.3):
    x = rng.normal(mean, 1, (n, 1))
    return as_cube(x, np.zeros(n), kind="value"), mean


def z_interval(cube, level=0.9):
    from scipy.stats import norm

    x = cube.values[:, 0]
    half, half1 = norm.ppf([(1 + level) / 2, level]) / np.sqrt(x.size)
    values = {"estimate": x.mean(), "conf_low": x.mean() - half, "conf_high": x.mean() + half}
    bounds = {"bound_low": x.mean() - half1, "bound_high": x.mean() + half1}
    return xr.Dataset(values | bounds).assign_coords(metric="mse", method="z", conf_level=level, interval="normal")


def test_coverage_of_an_exact_interval():
    study = coverage(normal_mean, z_interval, repetitions=1000, rng=1)
    for name in ("coverage", "coverage_low", "coverage_high"):
        assert float(study[name]) == pytest.approx(0.9, abs=4 * float(study[f"{name}_std_error"])), name
    assert float(study.coverage_std_error) == pytest.approx(np.sqrt(0.09 / 1000), rel=0.1)
    assert float(study.truth_below + study.truth_above + study.coverage) == pytest.approx(1)
    assert float(study.bias) == pytest.approx(0, abs=4 * float(study.bias_std_error))
    assert float(study.rmse) == pytest.approx(0.2, abs=4 * float(study.rmse_std_error))
    assert float(study.rmse_std_error) == pytest.approx(0.2 / np.sqrt(2 * 1000), rel=0.1)
    assert float(study.width) == pytest.approx(2 * 1.6449 / 5, abs=1e-4)
    assert float(study.width_median) == pytest.approx(float(study.width))
    assert (int(study.n), int(study.n_interval)) == (1000, 1000)
    assert (str(study.method.item()), str(study.metric.item()), float(study.conf_level)) == ("z", "mse", 0.9)


def test_coverage_reads_the_truth_of_the_selected_configuration_and_the_direction():
    def simulator(rng):
        return simulate_cube(20, 30, rng=rng)

    def method(cube, rng):
        right = (cube == cube.label).mean("sample").values
        assert isinstance(rng, np.random.Generator)
        selected = cube.configuration.values[right.argmax()]
        return xr.Dataset({"estimate": right.max(), "selected": selected}).assign_coords(metric="accuracy")

    study = coverage(simulator, method, repetitions=50, rng=3)
    expected = []
    for stream in np.random.default_rng(3).spawn(50):
        cube = simulate_cube(20, 30, rng=stream)
        right = (cube == cube.label).mean("sample").values
        expected.append(right.max() - cube.truth.values[right.argmax()])
    assert float(study.bias) == pytest.approx(np.mean(expected), abs=1e-14)
    assert float(study.rmse) == pytest.approx(np.sqrt(np.mean(np.square(expected))), abs=1e-14)
    assert float(study.bias_std_error) == pytest.approx(np.std(expected, ddof=1) / np.sqrt(50), abs=1e-14)
    assert np.isnan(study.coverage)
    assert np.isnan(study.width_median)
    assert int(study.n_interval) == 0
    flipped = coverage(simulator, method, repetitions=50, direction="minimize", rng=3)
    assert float(flipped.bias) == -float(study.bias)


def test_missing_intervals_are_counted_and_left_out():
    def sometimes(cube):
        found = z_interval(cube)
        return found if cube.values[0, 0] > 0.3 else found.assign(conf_low=np.nan, conf_high=np.nan)

    study = coverage(normal_mean, sometimes, repetitions=200, rng=1)
    assert 60 < int(study.n_interval) < 140
    assert int(study.n) == 200
    assert 0.7 < float(study.coverage) < 1


def test_coverage_keeps_batch_dims():
    def method(cube):
        estimate = (cube == cube.label).mean(("sample", "configuration"))
        return xr.Dataset({"estimate": estimate.drop_vars(["kind", "classes", "positive"])})

    def simulator(rng):
        cube = simulate_cube(20, 30, repeats=2, rng=rng)
        return cube, cube.truth.mean().item()

    study = coverage(simulator, method, repetitions=20, direction="maximize", rng=1)
    assert study.bias.dims == ("repeat",)
    assert study.repeat.values.tolist() == [0, 1]


# --- errors


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: simulate_cube(1, 5), "`n_samples` must be a whole number of at least 2; got 1."),
        (lambda: simulate_cube(20, 0), "`n_configurations` must be a whole number of at least 1; got 0."),
        (
            lambda: simulate_cube(20, 5, beta=(9, 0)),
            "`beta` must be two positive numbers (a, b), such as (9, 6); got (9, 0).",
        ),
        (lambda: simulate_cube(20, 5, beta=3), "`beta` must be two positive numbers"),
        (
            lambda: simulate_cube(20, 5, dependence="shard"),
            "`dependence` must be 'independent', 'shared' or a correlation in [0, 1); got 'shard'.",
        ),
        (lambda: simulate_cube(20, 5, dependence=1.0), "correlation in [0, 1); got 1.0."),
        (lambda: simulate_cube(20, 5, dependence=True), "correlation in [0, 1); got True."),
        (lambda: simulate_cube(20, 5, repeat_share=1.2), "`repeat_share` must be a number in [0, 1]; got 1.2."),
        (lambda: simulate_cube(5, 5), "`folds`=10 cannot be made from 5 samples; use at most 5."),
        (lambda: simulate_cube(20, 5, folds=2, inner=True), "`inner` needs at least 3 folds"),
        (lambda: simulate_cube(20, 5, rng=-1), "`rng` must be a non-negative integer"),
        (lambda: expected_maximum(1.1, 10, 2), "`probability` must lie in [0, 1]."),
        (lambda: expected_maximum(0.5, 0, 2), "`n_samples` must be whole numbers of at least 1."),
        (lambda: expected_maximum(0.5, 10, 2.5), "`n_configurations` must be whole numbers of at least 1."),
        (
            lambda: expected_maximum("a", 10, 2),
            "`probability` must be a number, a list of numbers or a DataArray; got 'a'.",
        ),
        (lambda: separate_gaussian(80, ratio=1), "`ratio` must be a number strictly between 0 and 1"),
        (lambda: separate_gaussian(80, prior=0), "`prior` must be a number strictly between 0 and 1"),
        (lambda: separate_gaussian(20, ratio=0.1), "`ratio` leaves 2 samples in class 0, fewer than its 5 folds"),
        (lambda: separate_gaussian(80, k1=60), "`ratio` leaves 40 samples in class 1, fewer than its 60 folds"),
        (
            lambda: separate_gaussian(6, folds=2),
            "`n_samples` leaves 2 samples to train on, too few for the covariance of 3",
        ),
        (
            lambda: separate_gaussian(80, correlation=0.8),
            "`correlation` must be two numbers in (-0.5, 1), one per class",
        ),
        (lambda: separate_gaussian(80, correlation=(0.8, 1.0)), "`correlation` must be two numbers in (-0.5, 1)"),
        (lambda: separate_gaussian(80, distance=0), "`distance` must be a positive number; got 0."),
        (
            lambda: separate_gaussian(80, correlation=(0.9, 0.0), distance=0.1),
            "`distance` must exceed 0.617, the distance of these covariances; got 0.1.",
        ),
        (
            lambda: separate_gaussian(80, shrinkage=(0.1, 0.1)),
            "`shrinkage` must be distinct numbers that are not negative",
        ),
        (lambda: ripley_mixture(64, ridge=[0.0]), "`ridge` must be distinct positive numbers; got [0.0]."),
        (lambda: ripley_mixture(64, eta=[1.0, 1.0]), "`eta` must be distinct positive numbers; got [1.0, 1.0]."),
        (lambda: ripley_mixture(64, variance=-1), "`variance` must be distinct positive numbers; got [-1]."),
        (lambda: ripley_mixture(64, folds="lo"), "`folds` must be a number of folds or 'loo'; got 'lo'."),
        (lambda: ripley_mixture(8, folds=9), "`folds`=9 cannot be made from 8 samples; use at most 8."),
        (lambda: ripley_mixture(8, repeats=2), "`repeats` must be 1 for leave-one-out"),
        (lambda: ripley_mixture(8, folds=2, inner=True), "`folds` must be a whole number of at least 3; got 2."),
        (lambda: ripley_mixture(8, kind="label"), "`kind` must be one of 'score', 'value'; got 'label'."),
        (
            lambda: coverage(normal_mean, lambda cube: 3.0, repetitions=2),
            "`method` must return a Dataset with 'estimate'; got float.",
        ),
        (
            lambda: coverage(lambda rng: normal_mean(rng)[0], z_interval, repetitions=2),
            "`simulator` must return a cube with the coordinate 'truth', or (cube, truth).",
        ),
        (
            lambda: coverage(lambda rng: simulate_cube(20, 3, rng=rng), z_interval, repetitions=2),
            "`method` must return 'selected' when the truth differs between configurations",
        ),
        (
            lambda: coverage(normal_mean, lambda cube: z_interval(cube).assign_coords(metric="mine"), repetitions=2),
            "`direction` must be 'maximize' or 'minimize', because the result's metric 'mine' does not say which.",
        ),
        (
            lambda: coverage(normal_mean, z_interval, repetitions=2, direction="up"),
            "`direction` must be one of 'maximize', 'minimize'; got 'up'.",
        ),
    ],
)
def test_error_texts(call, text):
    with pytest.raises(InputError, match=re.escape(text)):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate_cube(20, 2, beta=("a", "b")), "`beta` must be two positive numbers"),
        (lambda: simulate_cube(20, 2, beta=(9, np.inf)), "`beta` must be two positive numbers"),
        (lambda: ripley_mixture(16, ridge=["a"]), "`ridge` must be distinct positive numbers"),
        (lambda: ripley_mixture(16, variance="a"), "`variance` must be distinct positive numbers"),
    ],
)
def test_text_is_no_number(call, message):
    with pytest.raises(InputError, match=message):
        call()
