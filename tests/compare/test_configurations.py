"""McNemar, DeLong, contrast and best_set: against R, by their laws, and their level on cubes without a difference."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import cvstats as cs
from cvstats import CvstatsWarning, InputError
from cvstats.compare import best_set, contrast, corrected_t_test, delong_test, mcnemar_test, t_test
from cvstats.cube.make import as_cube
from cvstats.metrics import get_metric, score
from cvstats.metrics.scoring import fold_scores
from cvstats.protocols.bootstrap import bbc
from cvstats.resample import bootstrap
from cvstats.simulate import simulate_cube

FILE = json.loads((Path(__file__).parents[1] / "reference" / "compare.json").read_text())
R = FILE["delong"]
EQUAL = (7e6, 3e6)  # all true accuracies are .7


def scores_cube(*columns, y=R["y"], **options):
    return as_cube(
        np.array(columns, float).T, y, configurations=list("abcdef"[: len(columns)]), kind="score", **options
    )


# McNemar -----


def discordant(n_a, n_b, both=20, neither=30):
    right = [(1, 0)] * n_a + [(0, 1)] * n_b + [(1, 1)] * both + [(0, 0)] * neither
    labels = np.arange(len(right)) % 2
    right = np.array(right)
    return as_cube(np.where(right == 1, labels[:, None], 1 - labels[:, None]), labels, configurations=["a", "b"])


@pytest.mark.parametrize("case", range(len(FILE["mcnemar"])))
def test_mcnemar_equals_r(case):
    expected = FILE["mcnemar"][case]
    cube = discordant(expected["n10"], expected["n01"])
    exact = mcnemar_test(cube, a="a", b="b")
    assert (int(exact.n_a), int(exact.n_b), int(exact.n)) == (expected["n10"], expected["n01"], cube.sizes["sample"])
    assert float(exact.p_value) == pytest.approx(expected["exact"], rel=1e-9)
    assert str(exact.method.item()) == "McNemar test (exact, fitted models)"
    for name, kind in (("chisq", "chi2"), ("corrected", "corrected")):
        found = mcnemar_test(cube, a="a", b="b", distribution=kind)
        if expected[name] is None:  # no discordant pair: R has NaN, others even p = 0; nothing speaks against equality
            assert (float(found.statistic), float(found.p_value)) == (0.0, 1.0)
        else:
            assert float(found.statistic) == pytest.approx(expected[name], rel=1e-9)
            assert float(found.p_value) == pytest.approx(expected[f"{name}_p"], rel=1e-9)


def test_mcnemar_estimate_is_a_minus_b_and_swaps_sign():
    cube = discordant(12, 3)
    ab, ba = mcnemar_test(cube, a="a", b="b"), mcnemar_test(cube, a="b", b="a")
    accuracy = score(cube, "accuracy")
    assert float(ab.estimate) == pytest.approx(float(accuracy.sel(configuration="a") - accuracy.sel(configuration="b")))
    assert float(ab.estimate) == -float(ba.estimate)
    assert float(ab.p_value) == float(ba.p_value)
    from statsmodels.stats.contingency_tables import mcnemar

    assert float(ab.p_value) == pytest.approx(mcnemar([[20, 12], [3, 30]], exact=True).pvalue, rel=1e-12)


def test_mcnemar_uses_samples_that_both_predicted_and_maps_over_batches():
    cube = discordant(5, 1).astype(float)
    gap = cube.copy()
    gap[0, 1] = np.nan
    assert int(mcnemar_test(gap, a="a", b="b").n_a) == 4
    both = xr.concat([cube, gap], dim=xr.Variable("trial", [1, 2]))
    found = mcnemar_test(both, a="a", b="b")
    assert found.n_a.values.tolist() == [5, 4]


def test_mcnemar_error_df_and_name_by_hand():
    found = mcnemar_test(discordant(12, 3, both=20, neither=30), a="a", b="b", distribution="chi2")
    # d = 9 / 65; var(a - b per sample) = 15 / 65 - d**2
    assert float(found.std_error) == pytest.approx(np.sqrt((15 / 65 - (9 / 65) ** 2) / 65), rel=1e-12)
    assert float(found.df) == 1
    assert str(found.method.item()) == "McNemar test (fitted models)"
    same = mcnemar_test(discordant(0, 0), a="a", b="b")
    assert (float(same.std_error), float(same.estimate), float(same.p_value)) == (0, 0, 1)
    only = mcnemar_test(discordant(10, 0, 0, 0), a="a", b="b")  # d = 1: no variance is left
    assert (float(only.std_error), float(only.estimate)) == (0, 1)


def test_mcnemar_with_a_label_per_batch():
    cubes = [discordant(5, 1), discordant(2, 4, both=22, neither=28)]
    assert cubes[0].sizes == cubes[1].sizes
    other = cubes[1].assign_coords(label=1 - cubes[1].label)
    both = xr.concat([cubes[0], 1 - other], dim=xr.Variable("trial", [1, 2]), coords="different", compat="equals")
    found = mcnemar_test(both.assign_coords(kind="label", positive=1), a="a", b="b")
    assert found.n_a.values.tolist() == [5, int(mcnemar_test(1 - other, a="a", b="b").n_a)]


# DeLong -----


def plain_delong(scores, y):
    """AUCs and covariance by comparing every positive with every negative."""
    scores, y = np.asarray(scores, float), np.asarray(y)
    wins = [(np.sign(np.subtract.outer(s[y == 1], s[y == 0])) + 1) / 2 for s in scores]
    m, n = wins[0].shape
    ten, one = [w.mean(axis=1) for w in wins], [w.mean(axis=0) for w in wins]
    return [w.mean() for w in wins], np.cov(ten) / m + np.cov(one) / n


@pytest.mark.parametrize("y", [[1, 1, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 1, 1, 0], [1, 0, 0, 1, 0, 1, 1]])
def test_delong_of_tiny_samples_by_comparing_all_pairs(y):
    rng = np.random.default_rng(len(y))
    a, b = rng.integers(0, 4, (2, len(y))).astype(float)
    a[0], b[0] = 5.0, -1.0
    area, cov = plain_delong([a, b], y)
    found = delong_test(scores_cube(a, b, y=y), a="a", b="b", level=0.8)
    assert (float(found.estimate_a), float(found.estimate_b)) == pytest.approx(tuple(area), rel=1e-12)
    error = np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
    assert float(found.std_error) == pytest.approx(error, rel=1e-9)
    assert (float(found.std_error_a), float(found.std_error_b)) == pytest.approx(tuple(np.sqrt(np.diag(cov))), rel=1e-9)
    z = stats.norm.ppf(0.9)
    assert (float(found.conf_low), float(found.conf_high)) == pytest.approx(
        (area[0] - area[1] - z * error, area[0] - area[1] + z * error), rel=1e-9
    )
    assert int(found.n) == len(y)
    assert (str(found.method.item()), str(found.interval.item())) == ("DeLong test (paired, fitted models)", "normal")
    assert np.isnan(float(found.df))


def test_delong_unpaired_limits_are_welchs():
    cube, other = scores_cube(R["s1"], R["s2"]), scores_cube(R["s3"], y=R["y3"])
    found = delong_test(cube, a="b", b="a", other=other, level=0.8)
    (area_a, var_a), (area_b, var_b) = plain_delong([R["s2"]], R["y"]), plain_delong([R["s3"]], R["y3"])
    n_a, n_b = len(R["y"]), len(R["y3"])
    gap, error = area_a[0] - area_b[0], np.sqrt(var_a + var_b)
    df = (var_a + var_b) ** 2 / (var_a**2 / (n_a - 1) + var_b**2 / (n_b - 1))
    t = stats.t.ppf(0.9, df)
    expected = {
        "estimate": gap,
        "std_error": error,
        "df": df,
        "conf_low": gap - t * error,
        "conf_high": gap + t * error,
    }
    expected |= {"statistic": gap / error, "p_value": 2 * stats.t.sf(abs(gap) / error, df), "n": n_a + n_b}
    expected |= {"estimate_a": area_a[0], "estimate_b": area_b[0]}
    expected |= {"std_error_a": np.sqrt(var_a), "std_error_b": np.sqrt(var_b)}
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), rel=1e-9), name
    assert (str(found.method.item()), str(found.interval.item())) == ("DeLong test (unpaired, fitted models)", "t")
    assert float(found.conf_level) == 0.8


def test_delong_unpaired_without_variance_is_nan_with_one_warning():
    perfect = scores_cube([1, 2, 3, 4, 5, 6], y=[0, 0, 0, 1, 1, 1])
    with pytest.warns(CvstatsWarning, match=r"no variance to test against .*separation\): NaN") as record:
        found = delong_test(perfect, a="a", b="a", other=perfect)
    assert len(record) == 1
    assert np.isnan([float(found[name]) for name in ("std_error", "df", "statistic", "p_value", "conf_low")]).all()


def test_delong_says_in_how_many_cells_there_is_no_variance():
    y = [0, 0, 0, 1, 1, 1]
    perfect, other = (scores_cube(s, [1, 3, 2, 3, 1, 2], y=y) for s in ([1, 2, 3, 4, 5, 6], [1, 3, 2, 3, 1, 2]))
    both = xr.concat([perfect, other], dim=xr.Variable("trial", [1, 2]))
    with pytest.warns(CvstatsWarning, match="in 1 of 2 cells: NaN"):
        found = delong_test(both, a="a", b="b")
    assert np.isnan(found.p_value.values).tolist() == [False, True]


def test_delong_uses_samples_that_both_predicted():
    cube = scores_cube(R["s1"], R["s2"])
    gap, part = cube.copy(), cube.isel(sample=slice(2, None))
    gap[0, 0] = gap[1, 1] = np.nan
    found, expected = (delong_test(one, a="a", b="b") for one in (gap, part))
    assert int(found.n) == len(R["y"]) - 2
    for name in ("estimate", "std_error", "estimate_a", "p_value"):
        assert float(found[name]) == pytest.approx(float(expected[name]), rel=1e-12), name
    for absent in (0, 1):
        lost = cube.where(cube.label != absent)
        with pytest.warns(CvstatsWarning, match="one class"):
            nothing = delong_test(lost, a="a", b="b")
        assert np.isnan(float(nothing.estimate_a))
        assert np.isnan(float(nothing.std_error))


def test_delong_with_one_sample_of_a_class_has_an_area_but_no_error():
    for y in ([1, 0, 0, 0], [0, 1, 1, 1]):
        with pytest.warns(CvstatsWarning, match="no variance to test against"):
            found = delong_test(scores_cube([1, 2, 3, 0], [4, 1, 2, 3], y=y), a="a", b="b")
        assert float(found.estimate_a) == pytest.approx(1 / 3 if y[0] else 2 / 3)
        assert np.isnan(float(found.std_error))


def test_delong_equals_proc():
    cube = scores_cube(R["s1"], R["s2"])
    paired = delong_test(cube, a="a", b="b", level=0.9)
    for name, value in R["paired"].items():
        assert float(paired[name]) == pytest.approx(value, rel=1e-9), name
    np.testing.assert_allclose([paired.estimate_a, paired.estimate_b], R["auc"][:2], rtol=1e-12)
    np.testing.assert_allclose([paired.std_error_a**2, paired.std_error_b**2], R["variance"][:2], rtol=1e-9)
    other = scores_cube(R["s3"], y=R["y3"])
    unpaired = delong_test(cube, a="a", b="a", other=other)
    for name, value in R["unpaired"].items():
        assert float(unpaired[name]) == pytest.approx(value, rel=1e-9), name


def test_delong_is_about_ranks():
    a, b = np.array(R["s1"]), np.array(R["s2"])
    found = delong_test(scores_cube(a, b), a="a", b="b")
    bent = delong_test(scores_cube(np.exp(a), b * 1e6 - 1e9), a="a", b="b")
    assert float(found.p_value) == pytest.approx(float(bent.p_value), rel=1e-9)
    assert float(found.estimate) == pytest.approx(float(score(scores_cube(a, b), "auc").diff("configuration")[0]) * -1)
    swapped = delong_test(scores_cube(a, b), a="b", b="a")
    assert float(swapped.estimate) == pytest.approx(-float(found.estimate))


def test_delong_averages_components_over_repeats():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    values = rng.normal(size=(40, 2, 3)) + y[:, None, None]
    cube = as_cube(values, y, configurations=["a", "b"], kind="score")
    found = delong_test(cube, a="a", b="b")
    auc = score(cube, "auc")
    assert float(found.estimate) == pytest.approx(float(auc[0] - auc[1]))
    same = as_cube(np.repeat(values[..., :1], 3, axis=2), y, configurations=["a", "b"], kind="score")
    one = as_cube(values[..., 0], y, configurations=["a", "b"], kind="score")
    assert float(delong_test(same, a="a", b="b").p_value) == pytest.approx(
        float(delong_test(one, a="a", b="b").p_value)
    )
    assert float(found.std_error_a) < float(delong_test(one, a="a", b="b").std_error_a)  # partition noise averages out


def test_delong_without_variance_is_nan_with_one_warning():
    y = [0, 0, 0, 1, 1, 1]
    same = scores_cube(R["s1"], np.exp(np.array(R["s1"])))
    perfect = scores_cube([1, 2, 3, 4, 5, 6], [1, 1, 1, 2, 2, 2], y=y)
    for cube in (same, perfect):
        with pytest.warns(CvstatsWarning, match="delong_test: no variance to test against") as record:
            found = delong_test(cube, a="a", b="b")
        assert len(record) == 1
        assert np.isnan(float(found.p_value))
        assert float(found.estimate) == 0


# contrast -----


def test_contrast_of_two_is_the_difference_of_scores_with_the_paired_error():
    cube = simulate_cube(150, 3, rng=4)
    found = contrast(cube, "accuracy", a=0, b=2, regime="holdout", rng=1, times=4000)
    right = (cube == cube.label).astype(float)
    d = right.sel(configuration=0) - right.sel(configuration=2)
    classical = t_test(d, "sample")
    assert float(found.estimate) == pytest.approx(float(classical.estimate), abs=1e-12)
    assert float(found.std_error) == pytest.approx(float(classical.std_error), rel=0.05)
    assert float(found.df) == 149
    swapped = contrast(cube, "accuracy", a=2, b=0, regime="holdout", rng=1, times=4000)
    assert float(swapped.conf_low) == pytest.approx(-float(found.conf_high))
    loss = contrast(cube, "error_rate", a=0, b=2, rng=1, times=4000)
    assert float(loss.estimate) == pytest.approx(-float(found.estimate))


@pytest.mark.parametrize(("a", "b"), [(0, 2), ([0, 1], [2, 3])])
def test_contrast_limits_are_students(a, b):
    cube = simulate_cube(40, 4, rng=6)
    asked = {"rng": 1, "times": 200, "level": 0.8, "keep_draws": True, "regime": "holdout"}
    found = contrast(cube, "error_rate", a=a, b=b, **asked)
    estimate, error = float(found.estimate), float(found.std_error)
    if a == 0:  # of two, the spread over draws of N samples is that of N - 1 degrees of freedom
        assert error == pytest.approx(np.std(found.draw_estimate.values, ddof=1) * np.sqrt(40 / 39), rel=1e-12)
        assert float(found.naive) == pytest.approx(estimate, rel=1e-12)
    both, one = stats.t.ppf([0.9, 0.8], 39)
    expected = {"conf_low": estimate - both * error, "conf_high": estimate + both * error}
    expected |= {"bound_low": estimate - one * error, "bound_high": estimate + one * error, "df": 39}
    expected |= {"statistic": estimate / error, "p_value": 2 * stats.t.sf(abs(estimate) / error, 39)}
    expected |= {"estimate": float(found.estimate_a - found.estimate_b), "n_draws": 200}
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(value, rel=1e-9), name
    assert (float(found.conf_level), str(found.interval.item())) == (0.8, "t")
    kind = "paired bootstrap contrast" if a == 0 else "contrast of tuned families"
    assert str(found.method.item()) == f"{kind} (fitted models)"
    assert "contrast() is about methods" in found.attrs["about"]
    refitted = contrast(cube, "error_rate", a=a, b=b, rng=1, times=20)
    assert str(refitted.method.item()) == kind
    assert refitted.attrs["about"].startswith("the methods")
    assert "draw_estimate" not in contrast(cube, "error_rate", a=a, b=b, rng=1, times=20)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("metric", ["accuracy", "mcc"])
def test_contrast_of_two_methods_adds_what_training_varies(metric, repeats):
    """V of the scores averaged over repeats, and five quarters of the mean V of single repeats."""
    cube = simulate_cube(40, 3, repeats=repeats, repeat_share=0.5, rng=3)
    draws = bootstrap(cube, 60, rng=1)
    asked = {"a": 0, "b": 2, "draws": draws}
    found = contrast(cube, metric, **asked)
    parts = [cube.isel(repeat=[r]) if repeats > 1 else cube for r in range(repeats)]
    whole, *single = (contrast(part, metric, regime="holdout", **asked).std_error ** 2 for part in (cube, *parts))
    assert float(found.std_error) ** 2 == pytest.approx(float(whole + 1.25 * np.mean(single)), rel=1e-9)
    if repeats > 1:
        assert float(whole) < float(np.mean(single))
    assert float(found.estimate) == float(contrast(cube, metric, regime="holdout", **asked).estimate)


def test_contrast_of_two_methods_leaves_out_a_repeat_that_nobody_predicted():
    cube = simulate_cube(40, 2, repeats=3, repeat_share=0.5, rng=3).astype(float)
    gap = cube.copy()
    gap[:, :, 2] = np.nan
    some, all_of_two = (contrast(part, "accuracy", a=0, b=1, rng=1) for part in (gap, cube.isel(repeat=[0, 1])))
    assert float(some.std_error) == pytest.approx(float(all_of_two.std_error), rel=1e-12)
    assert float(some.std_error) > 0


def test_contrast_of_two_that_share_no_repeat():
    """No single repeat has both, so the variance of all is all that is known."""
    cube = simulate_cube(40, 2, repeats=2, rng=3).astype(float)
    cube[:, 0, 0] = cube[:, 1, 1] = np.nan
    fixed, found = (contrast(cube, "accuracy", a=0, b=1, regime=regime, rng=1) for regime in ("holdout", "cv"))
    assert float(found.std_error) == pytest.approx(1.5 * float(fixed.std_error), rel=1e-12)


def test_contrast_of_folds_averaged_adds_the_same():
    cube = simulate_cube(40, 2, rng=3)
    asked = {"a": 0, "b": 1, "average": "fold", "draws": bootstrap(cube, 60, rng=1)}
    fixed, found = (contrast(cube, "accuracy", regime=regime, **asked) for regime in ("holdout", "cv"))
    assert float(found.std_error) == pytest.approx(1.5 * float(fixed.std_error), rel=1e-9)


@pytest.mark.filterwarnings("ignore:contrast. 1 lacked:cvstats._check.CvstatsWarning")
def test_contrast_of_families_leaves_out_the_incomplete_but_not_their_samples():
    cube = simulate_cube(40, 4, rng=8).astype(float)
    cube[:9, 1] = np.nan
    found = contrast(cube, "accuracy", a=[0, 1], b=[2, 3], rng=1, times=60)
    complete = contrast(cube.isel(configuration=[0, 2, 3]), "accuracy", a=[0], b=[2, 3], rng=1, times=60)
    assert float(found.df) == 39
    turned = contrast(cube, "accuracy", a=[2, 3], b=[0, 1], rng=1, times=60)
    for name in ("estimate", "std_error", "estimate_a", "estimate_b", "p_value"):
        assert float(found[name]) == pytest.approx(float(complete[name]), rel=1e-12), name
    for name, sign in (("estimate", -1), ("std_error", 1), ("p_value", 1), ("df", 1)):
        assert float(turned[name]) == pytest.approx(sign * float(found[name]), rel=1e-12), name


@pytest.mark.parametrize("b", [1, [1, 3]])
def test_contrast_of_a_difference_that_does_not_vary(b):
    """One is always right, the other never: a difference without a standard error has no limits and no test."""
    y = np.arange(20) % 2
    cube = as_cube(np.stack([y, 1 - y, y, 1 - y], axis=1), y)
    with pytest.warns(CvstatsWarning, match="contrast"):
        found = contrast(cube, "accuracy", a=0 if b == 1 else [0, 2], b=b, times=60, rng=1)
    assert (float(found.estimate), float(found.std_error)) == (1.0, 0.0)
    for name in ("conf_low", "conf_high", "bound_low", "bound_high", "statistic", "p_value"):
        assert np.isnan(found[name])


def test_delong_without_a_class_is_nan():
    with pytest.warns(CvstatsWarning):
        found = delong_test(as_cube(np.random.default_rng(0).random((6, 2)), [1] * 6, positive=1), a=0, b=1)
    for name in ("estimate", "estimate_a", "estimate_b", "std_error", "p_value"):
        assert np.isnan(found[name])


@pytest.mark.parametrize("seed", [3, 11, 15, 16])
def test_contrast_of_families_hands_standard_errors_to_the_strategy(seed):
    from cvstats import select_one_se

    cube = simulate_cube(40, 8, rng=seed)
    both = xr.concat([cube, cube], "configuration").assign_coords(configuration=np.arange(16))
    both = both.assign_coords(complexity=("configuration", np.tile(np.arange(8)[::-1], 2)))
    draws = bootstrap(both, 100, rng=1)
    sides = {"a": list(range(8)), "b": list(range(8, 16))}
    with pytest.warns(CvstatsWarning, match="does not vary"):
        found = contrast(both, "accuracy", **sides, draws=draws, select=select_one_se, rng=1)
    scores = score(cube, "accuracy").values
    spread = (draws.values @ (cube == cube.label).values.astype(float) / 40).std(axis=0, ddof=1)
    best = int(np.argmax(scores))
    simplest = max(j for j in range(8) if scores[j] >= scores[best] - spread[best])  # the last is the simplest
    assert (int(found.selected_a), int(found.selected_b)) == (simplest, simplest + 8)
    assert simplest != best


def test_contrast_says_in_how_many_cells_nothing_varies():
    cube = simulate_cube(40, 2, rng=1).drop_vars("truth")
    twins = cube.copy(data=cube.values[:, [0, 0]])
    both = xr.concat([cube, twins], dim=xr.Variable("trial", [1, 2]))
    with pytest.warns(CvstatsWarning, match="does not vary over draws in 1 of 2 cells"):
        found = contrast(both, "accuracy", a=0, b=1, rng=1, times=50)
    assert np.isnan(found.p_value.values).tolist() == [False, True]


@pytest.mark.parametrize(("a", "b"), [("a", "b"), (["a", "c"], ["b", "d"])])
def test_contrast_needs_two_usable_draws(a, b):
    columns = np.random.default_rng(0).normal(size=(4, len(R["y"]))) + np.array(R["y"])
    cube = scores_cube(*columns)
    draws = bootstrap(cube, 20, rng=3)
    negative = xr.DataArray(np.array(R["y"]) == 0, dims="sample")
    for usable in (2, 1):
        some = draws.where(~negative | (draws.draw < usable), 0)  # the others hold one class
        if usable == 1:
            with pytest.warns(CvstatsWarning, match="does not vary over draws"):
                found = contrast(cube, "auc", a=a, b=b, draws=some, rng=1)
            assert np.isnan(float(found.std_error))
            assert np.isnan(float(found.p_value))
        else:
            found = contrast(cube, "auc", a=a, b=b, draws=some, rng=1, keep_draws=True, regime="holdout")
            assert float(found.std_error) > 0
            if a == "a":
                first, second = found.draw_estimate.values[:2]
                n = len(R["y"])
                assert float(found.std_error) == pytest.approx(abs(first - second) * np.sqrt(n / (n - 1) / 2), rel=1e-9)
        assert int(found.n_draws) == usable


def test_contrast_of_two_groups_has_an_error():
    cube = simulate_cube(12, 2, rng=1).assign_coords(group=("sample", np.arange(12) // 6))
    draws = bootstrap(cube.drop_vars("group"), 30, rng=1)
    with pytest.warns(CvstatsWarning, match="limits and p-values are NaN: 2 independent samples is fewer than 5"):
        found = contrast(cube, "accuracy", a=0, b=1, draws=draws, keep_draws=True, regime="holdout")
    assert float(found.df) == 1
    assert np.isnan([float(found[name]) for name in ("statistic", "p_value", "conf_low", "conf_high")]).all()
    assert float(found.std_error) == pytest.approx(np.std(found.draw_estimate.values, ddof=1) * np.sqrt(2), rel=1e-9)


@pytest.mark.parametrize(("a", "left_out"), [(0, "10 samples that only one of `a` and `b`"), ([0, 2], "0 lacked")])
def test_contrast_says_what_it_leaves_out(a, left_out):
    cube = simulate_cube(60, 3, rng=1).astype(float)
    cube[:10, 0] = np.nan
    with pytest.warns(CvstatsWarning, match=left_out) as caught:
        contrast(cube, "accuracy", a=a, b=1, times=20, rng=1)
    assert len(caught) == 1


def test_nothing_is_tested_with_fewer_than_five():
    cube = as_cube(np.random.default_rng(1).random((40, 3)), np.arange(40) < 4)
    with pytest.warns(CvstatsWarning, match="NaN: 4 of a class is fewer than 5"):
        one = contrast(cube, "auc", a=0, b=1, times=50, rng=1)
    with pytest.warns(CvstatsWarning, match="NaN: 4 of a class is fewer than 5"):
        some = best_set(cube, "auc", times=50, rng=1)
    assert np.isnan([one.conf_low, one.conf_high, one.p_value]).all()
    assert some.p_value.isnull().all()
    assert np.isfinite([float(one.estimate), *some.estimate.values]).all()


def test_contrast_of_one_group_has_no_error():
    cube = simulate_cube(12, 2, rng=1).assign_coords(group=("sample", np.zeros(12, int)))
    draws = bootstrap(cube.drop_vars("group"), 30, rng=1)
    with pytest.warns(CvstatsWarning, match="contrast"):
        found = contrast(cube, "accuracy", a=0, b=1, draws=draws)
    assert np.isnan([float(found[name]) for name in ("std_error", "p_value", "conf_low", "bound_high")]).all()


def test_contrast_of_aucs_agrees_with_delong():
    cube = scores_cube(R["s1"], R["s2"])
    found = contrast(cube, "auc", a="a", b="b", regime="holdout", rng=1, times=4000)
    classical = delong_test(cube, a="a", b="b")
    assert float(found.estimate) == pytest.approx(float(classical.estimate))
    assert float(found.std_error) == pytest.approx(float(classical.std_error), rel=0.07)


def test_contrast_of_families_redoes_the_selection():
    cube = simulate_cube(100, 40, rng=3)
    draws = bootstrap(cube, 300, rng=2)
    a, b = list(range(20)), list(range(20, 40))
    found = contrast(cube, "accuracy", a=a, b=b, draws=draws, rng=0, keep_draws=True)
    sides = [bbc(cube.sel(configuration=side), "accuracy", draws=draws, ties="random", rng=0) for side in (a, b)]
    np.testing.assert_allclose([found.estimate_a, found.estimate_b], [side.estimate for side in sides], rtol=1e-12)
    assert float(found.estimate) == pytest.approx(float(found.draw_estimate.mean()))
    assert float(found.naive) == pytest.approx(float(sides[0].naive - sides[1].naive))
    assert (found.selected_a.item(), found.selected_b.item()) == tuple(side.selected.item() for side in sides)
    # the stated formula, rebuilt from the draws: coverage alone would not notice if the second term were lost
    kept = [
        bbc(cube.sel(configuration=side), "accuracy", draws=draws, ties="random", rng=0, keep_draws=True)
        for side in (a, b)
    ]
    standing = [score(cube, "accuracy").sel(configuration=one.draw_selected.values).values for one in kept]
    v, v_s = np.var(found.draw_estimate.values, ddof=1), np.var(standing[0] - standing[1], ddof=1)
    assert v_s > 0.1 * float(found.std_error) ** 2
    assert float(found.std_error) ** 2 == pytest.approx(2.25 * max(v - v_s, 0) / (np.e - 1) + v_s, rel=1e-9)
    fixed = contrast(cube, "accuracy", a=a, b=b, draws=draws, rng=0, regime="holdout")
    assert float(fixed.std_error) ** 2 == pytest.approx(max(v - v_s, 0) / (np.e - 1) + v_s, rel=1e-9)
    marked = cube.assign_coords(learner=("configuration", ["svm"] * 20 + ["rf"] * 20))
    again = contrast(marked, "accuracy", a={"learner": "svm"}, b={"learner": ["rf"]}, draws=draws, rng=0)
    assert float(again.p_value) == float(found.p_value)


@pytest.mark.filterwarnings("ignore:contrast. .* left out:cvstats._check.CvstatsWarning")
def test_contrast_counts_groups_and_uses_common_samples():
    cube = simulate_cube(60, 2, rng=1)
    grouped = cube.assign_coords(group=("sample", np.arange(60) // 3))
    assert float(contrast(grouped, "accuracy", a=0, b=1, rng=1).df) == 19
    gap = cube.copy()
    gap[:10, 0] = np.nan
    assert float(contrast(gap, "accuracy", a=0, b=1, rng=1).df) == 49
    part = cube.isel(sample=slice(10, None))
    assert float(contrast(gap, "accuracy", a=0, b=1, rng=1).p_value) == float(
        contrast(part, "accuracy", a=0, b=1, rng=1).p_value
    )
    draws = bootstrap(cube, 50, rng=1)
    assert int(contrast(gap, "accuracy", a=0, b=1, draws=draws).n_draws) == 50


def test_contrast_maps_over_batches_and_repeats():
    parts = [simulate_cube(50, 4, repeats=2, rng=i) for i in range(3)]
    stacked = xr.concat(
        [part.drop_vars("truth") for part in parts],
        dim=xr.Variable("trial", [5, 6, 7]),
        coords="different",
        compat="equals",
    )
    found = contrast(stacked, "accuracy", a=[0, 1], b=[2, 3], rng=1, times=50)
    alone = contrast(parts[1], "accuracy", a=[0, 1], b=[2, 3], rng=1, times=50)
    assert float(found.estimate.sel(trial=6)) == pytest.approx(float(alone.estimate))


def test_contrast_of_twins_is_nan_with_one_warning():
    cube = simulate_cube(40, 1, rng=1)
    twins = xr.concat([cube, cube], "configuration").assign_coords(configuration=["a", "b"])
    with pytest.warns(CvstatsWarning, match="contrast: the difference does not vary over draws") as record:
        found = contrast(twins, "accuracy", a="a", b="b", rng=1)
    assert len(record) == 1
    assert (float(found.estimate), float(found.std_error)) == (0, 0)
    assert np.isnan(float(found.p_value))


def test_contrast_seed_gives_the_same_numbers():
    cube = simulate_cube(50, 6, rng=1)
    xr.testing.assert_identical(
        contrast(cube, "mcc", a=[0, 1], b=[2], rng=5), contrast(cube, "mcc", a=[0, 1], b=[2], rng=5)
    )


# best_set -----


def test_best_set_shrinks_as_samples_grow_and_holds_the_best():
    sizes = []
    for n in (50, 500, 5000):
        cube = simulate_cube(n, 30, rng=2)
        found = best_set(cube, "accuracy", rng=1)
        assert bool(found.in_set.sel(configuration=found.selected.item()))
        assert bool(found.in_set.values[np.argmax(cube.truth.values)])
        assert int(found.n_set) == int(found.in_set.sum())
        sizes.append(int(found.n_set))
    assert sizes[0] > sizes[1] > sizes[2] >= 1


def test_best_set_direction_order_and_level():
    cube = simulate_cube(200, 20, rng=3)
    draws = bootstrap(cube, 500, rng=1)
    gain, loss = best_set(cube, "accuracy", draws=draws), best_set(cube, "error_rate", draws=draws)
    np.testing.assert_array_equal(gain.in_set, loss.in_set)
    np.testing.assert_allclose(gain.difference, -loss.difference, atol=1e-12)
    assert float(gain.difference.max()) == 0
    wider = best_set(cube, "accuracy", draws=draws, level=0.999)
    assert (wider.in_set | ~gain.in_set).all()
    mixed = np.random.default_rng(0).permutation(20)
    other = best_set(cube.isel(configuration=mixed), "accuracy", draws=draws)
    np.testing.assert_array_equal(other.in_set.sel(configuration=cube.configuration), gain.in_set)
    assert ((gain.p_value > 0.05) == gain.in_set).all()
    falls = gain.p_value.values[np.argsort(gain.statistic.values, kind="stable")]
    assert (np.diff(falls) <= 1e-12).all()


def test_best_set_twins_of_the_best_always_stay():
    cube = simulate_cube(300, 10, rng=5)
    best = best_set(cube, "accuracy", rng=1).selected.item()
    twin = cube.sel(configuration=[best]).assign_coords(configuration=[99])
    found = best_set(xr.concat([cube, twin], "configuration"), "accuracy", rng=1)
    assert bool(found.in_set.sel(configuration=99))
    assert float(found.p_value.sel(configuration=99)) == 1.0


def test_best_set_leaves_out_the_incomplete_with_one_warning():
    cube = simulate_cube(100, 5, rng=1).astype(float)
    cube[:3, 2] = np.nan
    with pytest.warns(CvstatsWarning, match="best_set: 1 configurations did not predict every sample") as record:
        found = best_set(cube, "accuracy", rng=1)
    assert len(record) == 1
    assert not bool(found.in_set[2])
    assert np.isnan(float(found.p_value[2]))
    assert int(best_set(cube.isel(configuration=[0]), "accuracy", rng=1).n_set) == 1


def test_best_set_without_a_usable_draw_is_nan_with_one_warning():
    cube = scores_cube(R["s1"], R["s2"])
    draws = bootstrap(cube, 20, rng=1)
    draws = draws.where(xr.DataArray(np.array(R["y"]) == 1, dims="sample"), 0)
    with pytest.warns(CvstatsWarning, match="best_set: no draw could be used") as record:
        found = best_set(cube, "auc", draws=draws)
    assert len(record) == 1
    assert int(found.n_draws) == 0
    assert np.isnan(found.p_value).all()
    assert found.in_set.all()  # what cannot be tested cannot be excluded
    assert float(found.difference.max()) == 0


@pytest.mark.parametrize("seed", range(8))
def test_best_set_nobody_farther_away_has_a_larger_p_value(seed):
    """Those that stay are tested again among themselves, and none may then look worse than one that left."""
    rng = np.random.default_rng(seed)
    right = rng.random((30, 12)) < np.linspace(0.5, 0.95, 12)
    cube = as_cube(np.where(right, 1.0, 0.0), np.ones(30, int), kind="label", classes=[0, 1])
    found = best_set(cube, "accuracy", times=200, level=0.5, rng=1)
    order = np.argsort(found.statistic.values, kind="stable")
    assert (np.diff(found.p_value.values[order]) <= 1e-12).all()


def test_best_set_does_not_depend_on_chunks():
    cube = simulate_cube(80, 12, rng=1)
    lazy = cube.chunk(configuration=5)
    xr.testing.assert_allclose(best_set(cube, "accuracy", rng=1).p_value, best_set(lazy, "accuracy", rng=1).p_value)


def test_two_configurations_of_a_cube_on_dask_are_compared_as_in_memory():
    cube = scores_cube(*np.random.default_rng(1).random((3, len(R["y"]))), threshold=0.5)
    lazy = cube.chunk(configuration=1)
    for test in (mcnemar_test, delong_test):
        xr.testing.assert_equal(test(lazy, a="c", b="a"), test(cube, a="c", b="a"))
    xr.testing.assert_equal(delong_test(lazy, a="a", b="b", other=lazy), delong_test(cube, a="a", b="b", other=cube))
    codes = as_cube([[0, 1], [1, 0], [1, 1]], [0, 1, 1], configurations=["a", "b"]).chunk(configuration=1)
    with pytest.raises(InputError, match="class codes must be whole numbers"):
        mcnemar_test(codes + 0.5, a="a", b="b")


def plain_best_set(score, table, n, level):
    """The definition in loops: gap, its error, T, and p-values of steps down until nobody leaves."""
    draws, count = table.shape
    centred = [[(table[b, j] - table[:, j].mean()) * np.sqrt(n / (n - 1)) for j in range(count)] for b in range(draws)]

    def error(i, j):
        return np.sqrt(np.mean([(row[i] - row[j]) ** 2 for row in centred]))

    best = int(np.argmax(score))
    gap = [score[best] - s for s in score]
    s = [error(best, j) for j in range(count)]
    t = [0.0 if g == 0 else g / np.sqrt(e**2 + g**2 / n) for g, e in zip(gap, s, strict=True)]
    p, inside, floor = [1.0] * count, list(range(count)), 0.0
    while True:
        leaders = [max(inside, key=lambda j, row=row: row[j]) for row in centred]
        far = [
            {j: 0.0 if error(lead, j) == 0 else (row[lead] - row[j]) / error(lead, j) for j in inside}
            for row, lead in zip(centred, leaders, strict=True)
        ]
        raw = {
            j: (1 + sum(max(f[k] for k in inside if t[k] <= t[j]) >= t[j] for f in far)) / (1 + draws) for j in inside
        }
        for j in inside:
            p[j] = max(floor, *(raw[k] for k in inside if t[k] >= t[j]))
        gone = [j for j in inside if p[j] <= 1 - level]
        if not gone or len(gone) == len(inside):
            return np.array(gap), np.array(s), np.array(t), np.array(p)
        floor = max(p[j] for j in gone)
        inside = [j for j in inside if j not in gone]


@pytest.mark.parametrize(("seed", "level"), [(0, 0.9), (1, 0.5), (2, 0.8), (3, 0.6)])
def test_best_set_equals_its_definition_in_loops(seed, level):
    cube = simulate_cube(40, 6, rng=seed).astype(float)
    cube.values[:, 3] = cube.values[:, 1]  # twins
    right = (cube == cube.label).values.astype(float)
    draws = bootstrap(cube, 60, rng=seed)
    table = draws.values @ right / 40
    gap, error, t, p = plain_best_set(right.mean(axis=0), table, 40, level)
    found = best_set(cube, "accuracy", draws=draws, level=level)
    np.testing.assert_allclose(found.difference, -gap, atol=1e-12)
    np.testing.assert_allclose(found.std_error, error, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.statistic, t, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.p_value, p, rtol=1e-9)
    np.testing.assert_array_equal(found.in_set, p > 1 - level)
    assert (int(found.n_set), int(found.n_draws)) == (int((p > 1 - level).sum()), 60)
    assert found.selected.item() == cube.configuration.values[np.argmax(right.mean(axis=0))]


def test_best_set_counts_samples_or_groups_not_the_rarer_class():
    rng = np.random.default_rng(5)
    y = (np.arange(48) % 4 == 0).astype(int)
    values = np.where(rng.random((48, 4)) < [0.9, 0.8, 0.75, 0.6], y[:, None], 1 - y[:, None])
    for groups in (None, np.arange(48) // 8):  # groups hold both classes
        cube = as_cube(values, y, groups=groups)
        draws = bootstrap(cube, 40, rng=1)
        w, right = draws.values.astype(float), values == y[:, None]
        recall = [(w[:, y == k] @ right[y == k]) / w[:, y == k].sum(axis=1, keepdims=True) for k in (0, 1)]
        scores = np.mean([right[y == k].mean(axis=0) for k in (0, 1)], axis=0)
        expected = plain_best_set(scores, np.mean(recall, axis=0), 48 if groups is None else 6, 0.8)
        found = best_set(cube, "balanced_accuracy", draws=draws, level=0.8)
        np.testing.assert_allclose(found.std_error, expected[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.statistic, expected[2], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.p_value, expected[3], rtol=1e-9)


def test_best_set_leaves_out_what_is_exactly_at_the_level():
    """With 63 draws p-values are multiples of 1/64, so that 1 - level can equal one of them to the last bit."""
    cube = simulate_cube(60, 5, rng=3)
    draws = bootstrap(cube, 63, rng=1)
    right = (cube == cube.label).values.astype(float)
    p = plain_best_set(right.mean(axis=0), draws.values @ right / 60, 60, 1e-9)[3]
    at = np.sort(p)[1]
    assert 1 / 64 < at < 1
    expected = plain_best_set(right.mean(axis=0), draws.values @ right / 60, 60, 1 - at)[3]
    found = best_set(cube, "accuracy", draws=draws, level=1 - at)
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-12)
    assert (found.in_set.values == (expected > at)).all()
    assert not found.in_set.values[p == at].any()


def test_best_set_of_several_blocks_of_draws():
    """p-values are counts over all draws: the same draws five times over leave (1 + count) / (1 + times)."""
    cube = simulate_cube(60, 4, rng=7)
    draws = bootstrap(cube, 50, rng=1)
    five = xr.concat([draws] * 5, "draw").assign_coords(draw=np.arange(250))
    once, often = (
        best_set(cube, "accuracy", draws=draws, level=1e-9),
        best_set(cube, "accuracy", draws=five, level=1e-9),
    )
    np.testing.assert_allclose(often.p_value * 251 - 1, 5 * (once.p_value * 51 - 1), rtol=1e-9)
    assert len(np.unique(once.p_value)) > 2


def half_defined(label, prediction, weight):
    """NaN when the draw holds more wrong than right predictions."""
    share = float(np.sum(weight * (label == prediction)) / np.sum(weight))
    return share if share >= 0.6 else np.nan


def test_draws_without_a_value_for_one_configuration_are_not_used():
    from cvstats.metrics import as_metric

    cube = simulate_cube(30, 3, rng=1)
    right = (cube == cube.label).values.astype(float)
    draws = bootstrap(cube, 80, rng=2)
    table = draws.values @ right / 30
    usable = (table >= 0.6).all(axis=1)
    assert 20 < usable.sum() < 80
    metric = as_metric(half_defined, direction="maximize", range=(0, 1))
    found = best_set(cube, metric, draws=draws)
    assert int(found.n_draws) == usable.sum()
    expected = plain_best_set(right.mean(axis=0), table[usable], 30, 0.95)[3]
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-9)
    two = contrast(cube, metric, a=0, b=1, draws=draws, regime="holdout")
    both = (table[:, :2] >= 0.6).all(axis=1)
    assert int(two.n_draws) == both.sum()
    error = np.std((table[:, 0] - table[:, 1])[both], ddof=1) * np.sqrt(30 / 29)
    assert float(two.std_error) == pytest.approx(error, rel=1e-9)


def test_twenty_draws_are_enough():
    cube = simulate_cube(30, 2, rng=0)
    assert int(contrast(cube, "accuracy", a=0, b=1, draws=bootstrap(cube, 20, rng=1)).n_draws) == 20
    assert int(best_set(cube, "accuracy", times=20, rng=1).n_draws) == 20
    for few in ({"draws": bootstrap(cube, 19, rng=1)}, {"times": 19}):
        with pytest.raises(InputError, match="at least 20"):
            contrast(cube, "accuracy", a=0, b=1, **few)


@pytest.mark.filterwarnings("ignore:contrast. .* left out:cvstats._check.CvstatsWarning")
def test_contrast_uses_samples_that_any_repeat_predicted():
    cube = simulate_cube(40, 2, repeats=3, rng=1).astype(float)
    cube.values[0, 0, 1] = np.nan
    assert float(contrast(cube, "accuracy", a=0, b=1, rng=1, times=50).df) == 39
    cube.values[0, 0] = np.nan
    assert float(contrast(cube, "accuracy", a=0, b=1, rng=1, times=50).df) == 38


@pytest.mark.filterwarnings("ignore:contrast. .* left out:cvstats._check.CvstatsWarning")
def test_contrast_of_class_probabilities_uses_common_samples():
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    p = rng.dirichlet(np.ones(3), size=(36, 2)) + 0.5 * np.eye(3)[y][:, None]
    cube = as_cube(p / p.sum(-1, keepdims=True), y, classes=[0, 1, 2], configurations=["a", "b"])
    gap = cube.copy()
    gap[{"sample": slice(6), "configuration": 1}] = np.nan
    found = contrast(gap, "brier", a="a", b="b", rng=1, times=100)
    part = contrast(cube.isel(sample=slice(6, None)), "brier", a="a", b="b", rng=1, times=100)
    assert float(found.df) == 29
    assert float(found.estimate) == pytest.approx(float(part.estimate), rel=1e-12)
    assert float(found.p_value) == pytest.approx(float(part.p_value), rel=1e-12)


# The level, on simulated cubes without a true difference -----


@pytest.mark.slow
def test_t_tests_of_repeated_folds():
    """Scores of repeated folds are not independent: the plain t-test rejects far too often, the corrected one not."""
    plain, corrected = [], []
    for seed in range(100):
        cube = simulate_cube(60, 2, beta=EQUAL, folds=5, repeats=8, repeat_share=0.9, rng=seed)
        folds = fold_scores(cube, get_metric("accuracy"))
        a, b = (folds.isel(configuration=j, drop=True) for j in (0, 1))
        plain.append(float(t_test(a, ("repeat", "fold"), other=b).p_value) < 0.05)
        corrected.append(float(corrected_t_test(a, ("repeat", "fold"), other=b, test_fraction=1 / 5).p_value) < 0.05)
    assert np.mean(plain) > 0.3
    assert np.mean(corrected) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 100)


@pytest.mark.slow
@pytest.mark.parametrize("dependence", ["independent", 0.5])
def test_contrast_of_two_holds_its_level(dependence):
    p = [
        float(
            contrast(
                simulate_cube(60, 2, beta=EQUAL, dependence=dependence, rng=i),
                "accuracy",
                a=0,
                b=1,
                regime="holdout",
                rng=i,
                times=300,
            ).p_value
        )
        for i in range(250)
    ]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 250))
    assert np.mean(np.array(p) < 0.5) == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 250))


@pytest.mark.slow
@pytest.mark.parametrize("beta", [EQUAL, (9, 6)])
def test_contrast_of_families_covers_the_true_difference(beta):
    missed = []
    for seed in range(80):
        cube = simulate_cube(80, 30, beta=beta, rng=seed)
        found = contrast(cube, "accuracy", a=list(range(10)), b=list(range(10, 30)), rng=seed, times=200)
        truth = cube.truth.values
        true = truth[int(found.selected_a)] - truth[int(found.selected_b)]
        missed.append(not float(found.conf_low) <= true <= float(found.conf_high))
    assert np.mean(missed) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 80)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "c", "dependence"), [(60, 12, "independent"), (150, 25, 0.5)])
def test_best_set_keeps_all_of_the_best(n, c, dependence):
    """All are equally good, so the set is right only if it holds every one of them."""
    lost = []
    for seed in range(200):
        cube = simulate_cube(n, c, beta=EQUAL, dependence=dependence, rng=seed)
        lost.append(int(best_set(cube, "accuracy", rng=seed, times=500).n_set) < c)
    assert np.mean(lost) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 200)


# Bad input -----


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: mcnemar_test(c, a="a", b="d"), "`b`='d' is not a configuration of `cube`; found 'a', 'b'"),
        (lambda c: mcnemar_test(c, a="a", b="a"), "`a` and `b` are both 'a'; name two different configurations"),
        (
            lambda c: mcnemar_test(c, a="a", b="b", distribution="mid"),
            "`distribution` must be one of 'exact', 'chi2', 'corrected'",
        ),
        (
            lambda c: mcnemar_test(c.expand_dims(repeat=2), a="a", b="b"),
            "one prediction per sample, but the cube has 2 along 'repeat'",
        ),
        (
            lambda c: mcnemar_test(c.assign_coords(weight=("sample", np.ones(60))), a="a", b="b"),
            "has the coordinate 'weight'; use contrast",
        ),
        (
            lambda c: delong_test(c.assign_coords(group=("sample", np.ones(60))), a="a", b="b"),
            "has the coordinate 'group'; use contrast",
        ),
        (lambda c: delong_test(c, a="a", b="b", level=2), "`level` must be a number strictly between 0 and 1"),
        (lambda c: contrast(c, "auc", a="a", b="b", regime="fixed"), "`regime` must be"),
        (lambda c: contrast(c, "auc", a="a", b="a"), "`a` and `b` name the same configurations"),
        (lambda c: contrast(c, "auc", a=[], b="a"), "`a` names no configuration"),
        (
            lambda c: contrast(c, "auc", a={"learner": 1}, b="a"),
            "'learner' is no coordinate of the configurations; found 'configuration'",
        ),
        (lambda c: contrast(c, "auc", a={"configuration": "q"}, b="a"), "matches no configuration of `cube`"),
        (lambda c: contrast(c, "auc", a="a", b="b", times=5), "`times` must be a whole number of at least 20"),
        (
            lambda c: contrast(c, "auc", a="a", b="b", draws=bootstrap(c, 5)),
            "`draws` holds 5 draws; at least 20 are needed",
        ),
        (lambda c: best_set(c, "acu"), r"does not exist \(did you mean 'auc'\?\)"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call(scores_cube(R["s1"], R["s2"], threshold=0.0))


def test_bad_input_of_special_cubes():
    three = as_cube(np.full((6, 2, 3), 1 / 3), list("xyzxyz"), classes=["x", "y", "z"], configurations=["a", "b"])
    with pytest.raises(InputError, match="delong_test is for two classes"):
        delong_test(three, a="a", b="b")
    cube = simulate_cube(20, 2, rng=1).astype(float)
    cube[:10, 0] = np.nan
    cube[10:, 1] = np.nan
    with pytest.raises(InputError, match="`a` and `b` have no sample in common that both predicted"):
        contrast(cube, "accuracy", a=0, b=1)


def test_best_set_names_what_did_not_predict_everything():
    g = np.random.default_rng(0)
    values = g.random((12, 3))
    values[2, 1] = np.nan
    cube = cs.as_cube(values, np.arange(12) % 2, kind="probability")
    with pytest.warns(
        CvstatsWarning, match="best_set: 1 configurations did not predict every sample and are not in the set: NaN"
    ) as record:
        out = cs.best_set(cube, "accuracy", times=100, rng=1)
    assert len(record) == 1
    assert not out.in_set.values[1]
    assert np.isnan(out.p_value.values).tolist() == [False, True, False]


@pytest.mark.parametrize("metric", ["accuracy", "error_rate"])
@pytest.mark.parametrize("margin", [0.02, 0.3])
def test_margin_is_two_one_sided_tests(metric, margin):
    cube = cs.simulate_cube(80, 4, rng=3)
    first, second = cube.configuration.values[:2]
    out = cs.contrast(cube, metric, a=first, b=second, margin=margin, rng=1)
    gain = out.estimate.item() * (1 if metric == "accuracy" else -1)
    error, t = out.std_error.item(), stats.t(79)
    assert out.p_noninferior.item() == pytest.approx(t.sf((gain + margin) / error), abs=1e-12)
    both = max(t.sf((gain + margin) / error), t.cdf((gain - margin) / error))
    assert out.p_equivalent.item() == pytest.approx(both, abs=1e-12)
    inside = cs.contrast(cube, metric, a=first, b=second, level=0.9, rng=1)
    assert (both < 0.05) == bool(-margin < inside.conf_low and inside.conf_high < margin)
    other = cs.contrast(cube, metric, a=second, b=first, margin=margin, rng=1)
    assert other.p_equivalent.item() == pytest.approx(both, abs=1e-12)


def test_margin_of_what_does_not_vary_is_nan():
    cube = cs.simulate_cube(40, 2, rng=3)
    twins = cube.copy(data=np.repeat(cube.values[:, :1], 2, axis=1))
    first, second = cube.configuration.values
    with pytest.warns(cs.CvstatsWarning, match="does not vary"):
        out = cs.contrast(twins, "accuracy", a=first, b=second, margin=0.1, rng=1)
    assert np.isnan(out.p_noninferior)
    assert np.isnan(out.p_equivalent)


@pytest.mark.parametrize("margin", [0, -0.1, np.inf, "0.1"])
def test_margin_is_a_size(margin):
    cube = cs.simulate_cube(40, 2, rng=3)
    with pytest.raises(cs.InputError, match="`margin` must be a finite number above 0"):
        cs.contrast(cube, "accuracy", a=cube.configuration.values[0], b=cube.configuration.values[1], margin=margin)


@pytest.mark.parametrize("sides", [None, {"a": 0, "b": 3}, {"a": [0, 1], "b": [2, 3]}])
def test_a_progress_bar_changes_nothing(sides, capsys):
    pytest.importorskip("tqdm")
    cube = cs.simulate_cube(60, 5, rng=1)
    call = cs.best_set if sides is None else cs.contrast
    quiet, shown = (call(cube, "accuracy", times=60, rng=1, progress=bar, **sides or {}) for bar in (False, True))
    assert shown.identical(quiet)
    assert "0/60" in capsys.readouterr().err


def test_names_in_messages_are_plain():
    cube = as_cube([[0.9, 0.1], [0.2, 0.3]], [1, 0], configurations=["a", "b"])
    with pytest.raises(InputError, match="`a` and `b` are both 'a'"):
        mcnemar_test(cube, a=np.str_("a"), b=np.str_("a"))
    with pytest.raises(InputError, match="`a`='c' is not a configuration"):
        mcnemar_test(cube, a=np.str_("c"), b="b")


@pytest.mark.parametrize("family", [tuple, np.array, pd.Index, pd.Series, list])
def test_a_family_is_any_sequence_of_names(family):
    cube = simulate_cube(60, 4, rng=1).assign_coords(configuration=list("abcd"))
    found = contrast(cube, "accuracy", a=family(["a", "b"]), b="c", times=50, rng=1)
    xr.testing.assert_identical(
        found, contrast(cube, "accuracy", a=["b", "a"], b="c", times=50, rng=1).assign_attrs(found.attrs)
    )
