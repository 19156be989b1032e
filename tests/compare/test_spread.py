"""Levene, O'Brien and Pitman-Morgan: against R and scipy, with offsets, ties and degenerate groups."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from cvstats import CvstatsWarning, InputError
from cvstats.compare import levene_test, obrien_test, pitman_morgan_test

FILE = json.loads((Path(__file__).parents[1] / "reference" / "compare.json").read_text())
R = FILE["spread"]


def padded(groups):
    width = max(map(len, groups))
    rows = [[*group, *[np.nan] * (width - len(group))] for group in groups]
    return xr.DataArray(
        np.array(rows, float), dims=("method", "trial"), coords={"method": ["a", "b", "c"][: len(rows)]}
    )


def agrees(found, reference):
    for name, value in reference.items():
        assert float(found[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("data", ["groups", "tied"])
def test_equals_r(data):
    x = padded(R[data])
    for center in ("median", "mean", "trimmed"):
        agrees(levene_test(x, "trial", by="method", center=center), R[f"{data}_{center}"])
    agrees(obrien_test(x, "trial", by="method"), R[f"{data}_obrien"])
    against = obrien_test(x, "trial", by="method", against="c")
    agrees(against.sel({"method": "a"}), R[f"{data}_obrien_1_3"])
    assert np.isnan(float(against.p_value.sel({"method": "c"})))


def test_an_offset_of_1e9_loses_nothing():
    x = padded(R["groups"]) + 1e9
    agrees(levene_test(x, "trial", by="method"), R["groups_median"])
    # R's own value at this offset has lost digits, ours equals R's on the bare data
    assert float(obrien_test(x, "trial", by="method").statistic) == pytest.approx(
        R["offset_obrien"]["statistic"], rel=1e-6
    )
    agrees(obrien_test(x, "trial", by="method"), R["groups_obrien"])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scale_does_not_matter(scale):
    x = padded(R["groups"])
    for test in (levene_test, obrien_test):
        near, far = test(x, "trial", by="method"), test(x * scale, "trial", by="method")
        assert float(far.statistic) == pytest.approx(float(near.statistic), rel=1e-9)


def test_variances_and_effect_size():
    x = padded(R["groups"])
    found = obrien_test(x, "trial", by="method", against="a")
    sd = [np.std(group, ddof=1) for group in R["groups"]]
    np.testing.assert_allclose(found.std_dev, sd, rtol=1e-12)
    np.testing.assert_allclose(found.variance_ratio, (np.array(sd) / sd[0]) ** 2, rtol=1e-12)
    f, df, rest = (float(found[name].sel({"method": "b"})) for name in ("statistic", "df", "df_residual"))
    assert float(found.effect_size.sel({"method": "b"})) == pytest.approx(f * df / (f * df + rest))


@pytest.mark.slow
def test_many_cells_equal_scipy():
    x = xr.DataArray(np.random.default_rng(0).normal(size=(2000, 8, 30)), dims=("cell", "method", "trial"))
    found = obrien_test(x, "trial", by="method")
    loop = [stats.f_oneway(*stats.obrientransform(*cell)) for cell in x.values[:100]]
    np.testing.assert_allclose(found.statistic[:100], [one.statistic for one in loop], rtol=1e-9)
    np.testing.assert_allclose(found.p_value[:100], [one.pvalue for one in loop], rtol=1e-9)
    # by its definition, because releases of scipy differ on it
    centers = stats.trim_mean(x.values[:20], 0.05, axis=-1)[..., None]
    expected = [stats.f_oneway(*deviations).pvalue for deviations in np.abs(x.values[:20] - centers)]
    np.testing.assert_allclose(
        levene_test(x[:20], "trial", by="method", center="trimmed", trim=0.05).p_value, expected, rtol=1e-9
    )


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_groups_without_variation_are_nan_with_one_warning(offset):
    flat = xr.DataArray(np.repeat([[1.0], [2.0]], 4, axis=1), dims=("method", "trial")) + offset
    for test in (levene_test, obrien_test):
        with pytest.warns(CvstatsWarning, match="no variation within the groups") as record:
            found = test(flat, "trial", by="method")
        assert len(record) == 1
        assert np.isnan(float(found.statistic))
        assert np.isnan(float(found.p_value))
        assert found.std_dev.values.tolist() == [0, 0]


@pytest.mark.parametrize("center", ["median", "mean", "trimmed"])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_two_values_per_group_leave_no_error_to_test_against(center, offset):
    x = xr.DataArray([[0.1, 0.7], [0.2, 5.3]], dims=("method", "trial")) + offset
    with pytest.warns(CvstatsWarning, match="fewer than 2 values in a group, or no variation"):
        assert np.isnan(float(levene_test(x, "trial", by="method", center=center).p_value))
    with pytest.warns(CvstatsWarning, match="O'Brien test: fewer than 3 values in a group"):
        assert np.isnan(float(obrien_test(x, "trial", by="method").p_value))
    with pytest.warns(CvstatsWarning, match="O'Brien test: fewer than 3 values in a group"):
        assert np.isnan(obrien_test(x, "trial", by="method", against=0).p_value).all()


def test_two_values_have_a_standard_deviation_and_the_call_says_what_was_used():
    x = xr.DataArray([[1.0, 4, np.nan], [2, 2, 9]], dims=("method", "trial"))
    found = levene_test(x, "trial", by="method")
    np.testing.assert_allclose(found.std_dev, [3 / np.sqrt(2), np.std([2, 2, 9], ddof=1)], rtol=1e-12)
    assert "trim" not in found.attrs["call"]
    assert "trim=0.2" in levene_test(x, "trial", by="method", center="trimmed", trim=0.2).attrs["call"]


def test_three_values_per_group_are_enough_for_obrien():
    x = xr.DataArray([[1.0, 2, 4], [2, 2, 9]], dims=("method", "trial"))
    expected = stats.f_oneway(*stats.obrientransform(*x.values)).statistic
    assert float(obrien_test(x, "trial", by="method").statistic) == pytest.approx(expected, rel=1e-9)
    assert float(obrien_test(x, "trial", by="method", against=1).statistic[0]) == pytest.approx(expected, rel=1e-9)


def test_one_constant_group_among_others_is_no_problem():
    x = padded([[1.0, 1, 1, 1], [1, 2, 3, 5], [0, 4, 4, 9]])
    expected = stats.f_oneway(*stats.obrientransform(*x.values))
    assert float(obrien_test(x, "trial", by="method").statistic) == pytest.approx(expected.statistic, rel=1e-9)


def exact_f(groups):
    """One-way F of groups of fractions."""
    grand = sum(map(sum, groups)) / sum(map(len, groups))
    means = [sum(g) / len(g) for g in groups]
    between = sum(len(g) * (m - grand) ** 2 for g, m in zip(groups, means, strict=True)) / (len(groups) - 1)
    within = sum(sum((v - m) ** 2 for v in g) for g, m in zip(groups, means, strict=True))
    return float(between / (within / (sum(map(len, groups)) - len(groups))))


def test_spreads_that_hardly_vary_are_tested_exactly():
    """Squared deviations that differ in the ninth digit are far above rounding: fractions give the same F."""
    step = 2.0**-30
    x = xr.DataArray(
        [[-1, 1 + step, -1, 1 - 3 * step, -1, 1], [-1 - step, 1, -1 + 2 * step, 1, -1, 1]], dims=("method", "trial")
    )
    groups = [[Fraction(v) for v in row] for row in x.values.tolist()]
    transformed = []
    for g in groups:
        n, mean = len(g), sum(g) / len(g)
        squares = [(v - mean) ** 2 for v in g]
        s2 = sum(squares) / (n - 1)
        half = Fraction(1, 2)
        transformed.append([((n - 3 * half) * n * q - half * (n - 1) * s2) / ((n - 1) * (n - 2)) for q in squares])
    expected = exact_f(transformed)
    assert float(obrien_test(x, "trial", by="method").statistic) == pytest.approx(expected, rel=1e-5)
    against = obrien_test(x, "trial", by="method", against=1)
    assert float(against.statistic[0]) == pytest.approx(expected, rel=1e-5)
    middle = [sorted(g)[2:4] for g in groups]
    distances = [[abs(v - sum(m) / 2) for v in g] for g, m in zip(groups, middle, strict=True)]
    assert float(levene_test(x, "trial", by="method").statistic) == pytest.approx(exact_f(distances), rel=1e-5)


def test_gaps_may_come_first():
    rows = [[np.nan, 1.0, 2, 4, 9], [3, np.nan, 7, 5, 5.5], [9, 1, 1, 0, np.nan]]
    x = xr.DataArray(rows, dims=("method", "trial"))
    full = [[v for v in row if v == v] for row in rows]
    found = obrien_test(x, "trial", by="method")
    assert float(found.statistic) == pytest.approx(stats.f_oneway(*stats.obrientransform(*full)).statistic, rel=1e-9)
    np.testing.assert_allclose(found.std_dev, [np.std(row, ddof=1) for row in full], rtol=1e-12)
    for center in ("median", "mean"):
        expected = stats.levene(*full, center=center).statistic
        assert float(levene_test(x, "trial", by="method", center=center).statistic) == pytest.approx(expected, rel=1e-9)
    pairs = [(a, b) for a, b in zip(*rows[:2], strict=True) if a == a and b == b]
    alone = [xr.DataArray(list(side), dims="trial") for side in zip(*pairs, strict=True)]
    assert float(pitman_morgan_test(x[0], "trial", other=x[1]).p_value) == pytest.approx(
        float(pitman_morgan_test(alone[0], "trial", other=alone[1]).p_value), rel=1e-12
    )


def test_a_group_of_one_counts_as_a_group():
    groups = [[1.0, 2, 4, 9], [1, 2, 3, 5], [7]]
    found = levene_test(padded(groups), "trial", by="method")
    expected = stats.levene(*groups)
    assert float(found.statistic) == pytest.approx(expected.statistic, rel=1e-9)
    assert float(found.p_value) == pytest.approx(expected.pvalue, rel=1e-9)
    assert float(found.df) == 2
    assert np.isnan(found.std_dev.values).tolist() == [False, False, True]


def test_equal_squares_but_for_rounding_are_no_variation():
    x = xr.DataArray([[0.1, 0.3, 0.1, 0.3], [0.2, 0.8, 0.2, 0.8]], dims=("method", "trial"))
    for against in (None, 0):
        with pytest.warns(CvstatsWarning, match="no variation within the groups"):
            found = obrien_test(x, "trial", by="method", against=against)
        assert np.isnan(found.p_value.values).all()


def test_empty_groups_are_left_out():
    x = padded([[1.0, 2, 4, 9], [1, 2, 3, 4], [np.nan] * 4])
    found = levene_test(x, "trial", by="method")
    assert float(found.df) == 1
    assert float(found.statistic) == pytest.approx(stats.levene(*x.values[:2]).statistic, rel=1e-9)


def test_pitman_morgan_equals_r():
    a, b = (xr.DataArray(FILE["t"][name], dims="trial") for name in "ab")
    agrees(pitman_morgan_test(a, "trial", other=b), R["pitman"])
    agrees(pitman_morgan_test(a + 1e9, "trial", other=b + 1e9), R["pitman"])


def test_pitman_morgan_interval_is_the_set_of_ratios_not_rejected():
    a, b = (xr.DataArray(FILE["t"][name], dims="trial") for name in "ab")
    found = pitman_morgan_test(a, "trial", other=b, level=0.9)
    for limit in (found.conf_low, found.conf_high):
        at_limit = pitman_morgan_test(a, "trial", other=b * np.sqrt(limit), level=0.9)
        assert float(at_limit.p_value) == pytest.approx(0.1, rel=1e-9)
    swapped = pitman_morgan_test(b, "trial", other=a, level=0.9)
    assert float(swapped.conf_low) == pytest.approx(1 / float(found.conf_high))


@pytest.mark.parametrize("gaps", [False, True])
def test_tests_of_spread_map_over_other_dims(gaps):
    """Sizes that are all different, so that no axis can stand for another."""
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 7)) * np.arange(1, 5)[:, None]
    if gaps:
        x[1, 2, 0, :3] = x[0, 1, 3, 4] = np.nan
    x = xr.DataArray(x, dims=("size", "dataset", "method", "trial"))
    centers = ("median", "mean", "trimmed")
    tests = [lambda v, c=c: levene_test(v, "trial", by="method", center=c, trim=0.25) for c in centers]
    tests += [lambda v, a=a: obrien_test(v, "trial", by="method", against=a) for a in (None, 2)]
    tests += [lambda v: pitman_morgan_test(v, "trial", other=v.isel(method=1) + 0.1 * v**2)]
    for test in tests:
        found = test(x)
        for i in range(2):
            for j in range(3):
                one = test(x[i, j])
                for name in one.data_vars:
                    np.testing.assert_allclose(
                        found[name].isel(size=i, dataset=j), one[name], rtol=1e-9, atol=1e-12, err_msg=name
                    )


def test_pitman_morgan_by_the_correlation_of_sum_and_difference():
    a, b = (np.array(FILE["t"][name]) for name in "ab")
    found = pitman_morgan_test(xr.DataArray(a, dims="trial"), "trial", other=xr.DataArray(b, dims="trial"))
    r = np.corrcoef(a + b, a - b)[0, 1]
    df = len(a) - 2
    assert float(found.effect_size) == pytest.approx(r, rel=1e-9)
    assert float(found.statistic) == pytest.approx(r * np.sqrt(df / (1 - r**2)), rel=1e-9)
    assert float(found.estimate) == pytest.approx(np.var(a, ddof=1) / np.var(b, ddof=1), rel=1e-9)
    assert (float(found.df), float(found.n)) == (df, len(a))
    assert float(found.conf_low) < float(found.estimate) < float(found.conf_high)


@pytest.mark.parametrize("scale", [1e-160, 1e-3, 1000.0, 1e160])
def test_pitman_morgan_does_not_depend_on_the_scale(scale):
    a, b = (xr.DataArray(FILE["t"][name], dims="trial") for name in "ab")
    near, far = pitman_morgan_test(a, "trial", other=b), pitman_morgan_test(a * scale, "trial", other=b * scale)
    for name in near.data_vars:
        assert float(far[name]) == pytest.approx(float(near[name]), rel=1e-9), name


def test_pitman_morgan_lockstep_is_nan_with_one_warning():
    a = xr.DataArray([0.1, 0.4, 0.2, 0.9], dims="trial")
    for other in (a, a * 3, a * 0):
        with pytest.warns(
            CvstatsWarning, match="Pitman-Morgan test: fewer than three pairs, or no variation"
        ) as record:
            assert np.isnan(float(pitman_morgan_test(a, "trial", other=other).p_value))
        assert len(record) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: obrien_test(x, "trial", by="methods"),
            r"`by`='methods' is not a dimension; .*did you mean 'method'",
        ),
        (lambda x: obrien_test(x, "trial", by="trial"), "`by`='trial' is also in `dim`"),
        (
            lambda x: obrien_test(x[:1], "trial", by="method"),
            "`by`='method' needs at least 2 levels to compare; it has 1",
        ),
        (lambda x: obrien_test(x[:, :1], "trial", by="method"), "`x` needs at least 2 values along 'trial'"),
        (
            lambda x: obrien_test(x, "trial", by="method", against="NVC"),
            r"`against`='NVC' is not a level of 'method'; found 'NCV', 'TT' \(did you mean 'NCV'\?\)",
        ),
        (lambda x: levene_test(x, "trial", by="method", center="mode"), "`center` must be one of"),
        (
            lambda x: levene_test(x, "trial", by="method", center="trimmed", trim=0.5),
            "`trim` must be at least 0 and below 0.5",
        ),
        (
            lambda x: levene_test(x, "trial", by="method", center="trimmed", trim=-0.01),
            "`trim` must be at least 0 and below 0.5",
        ),
        (
            lambda x: levene_test(x, "trial", by="method", center="trimmed", trim="a"),
            "`trim` must be at least 0 and below 0.5",
        ),
        (lambda x: pitman_morgan_test(x, "trial", other=None), "`other` must be an xarray.DataArray .* got NoneType"),
        (lambda x: pitman_morgan_test(x[:, :2], "trial", other=x[:, :2]), "`x` needs at least 3 values along 'trial'"),
    ],
)
def test_bad_input(call, message):
    x = xr.DataArray([[1.0, 2, 4], [2, 2, 9]], dims=("method", "trial"), coords={"method": ["NCV", "TT"]})
    with pytest.raises(InputError, match=message):
        call(x)


def test_a_mean_trimmed_by_nothing_is_the_mean():
    x = xr.DataArray(np.random.default_rng(0).exponential(size=(3, 9)), dims=("group", "trial"))
    none, mean, some = (
        levene_test(x, "trial", by="group", center=center, trim=trim)
        for center, trim in (("trimmed", 0.0), ("mean", 0.1), ("trimmed", 0.2))
    )
    assert float(none.statistic) == pytest.approx(float(mean.statistic), rel=1e-12)
    assert float(some.statistic) != pytest.approx(float(mean.statistic), rel=1e-3)


@pytest.mark.parametrize("size", [1, 2])
def test_obrien_needs_three_values_of_every_group(size):
    x = np.random.default_rng(0).normal(size=(3, 6))
    x[1, size:] = np.nan
    with pytest.warns(CvstatsWarning):
        found = obrien_test(xr.DataArray(x, dims=("group", "trial")), "trial", by="group")
    assert np.isnan(found.statistic)
