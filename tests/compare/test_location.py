"""t-tests: against R, with offsets, degenerate cells and bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from cvstats import CvstatsWarning, InputError
from cvstats.compare import corrected_t_test, p_adjust, t_test

R = json.loads((Path(__file__).parents[1] / "reference" / "compare.json").read_text())["t"]
ALTERNATIVES = {"two.sided": "two-sided", "less": "less", "greater": "greater"}


def array(values, dim="trial", **coords):
    return xr.DataArray(np.asarray(values, float), dims=dim, coords=coords or None)


def agrees(found, reference, skip=()):
    for name, value in reference.items():
        if name in skip or value is None:  # R's infinite limits are null in JSON
            continue
        assert float(found[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_equals_r(alternative):
    ours = ALTERNATIVES[alternative]
    a, b, c = (array(R[name]) for name in "abc")
    agrees(t_test(a, "trial", mu=0.1, alternative=ours, level=0.9), R[f"one_{alternative}"])
    agrees(t_test(a, "trial", other=b, alternative=ours), R[f"paired_{alternative}"])
    agrees(t_test(a, "trial", other=c, paired=False, alternative=ours), R[f"welch_{alternative}"])


def test_one_sided_limits_are_infinite_on_the_far_side_and_bounds_are_always_there():
    a = array(R["a"])
    less, greater, both = (t_test(a, "trial", alternative=name) for name in ("less", "greater", "two-sided"))
    assert float(less.conf_low) == -np.inf
    assert float(greater.conf_high) == np.inf
    assert float(less.conf_high) == float(both.bound_high)
    assert float(greater.conf_low) == float(both.bound_low)
    assert float(both.conf_low) < float(both.bound_low)


def test_an_offset_of_1e9_loses_nothing():
    a, c = array(R["a"]), array(R["c"])
    # R keeps the mean itself as a double near 1e9, which costs it seven digits; compare with R on the bare data
    assert float(t_test(a + 1e9, "trial", mu=1e9).statistic) == pytest.approx(R["one_offset"]["statistic"], rel=1e-6)
    far = t_test(a + 1e9, "trial", other=c + 1e9, paired=False)
    assert float(far.statistic) == pytest.approx(R["welch_offset"]["statistic"], rel=1e-6)
    agrees(far, R["welch_two.sided"])
    near, far = t_test(a, "trial"), t_test(a + 1e9, "trial", mu=1e9)
    assert float(far.statistic) == pytest.approx(float(near.statistic), rel=1e-12)
    assert float(far.effect_size) == pytest.approx(float(near.effect_size), rel=1e-12)


def test_two_values_are_enough():
    agrees(t_test(array(R["two"]), "trial"), R["two_values"])


def test_corrected_equals_the_formula_in_r_and_is_wider():
    a, b = array(R["a"]), array(R["b"])
    found = corrected_t_test(a, "trial", other=b, test_fraction=0.2)
    agrees(found, R["corrected"])
    assert found.std_error > t_test(a, "trial", other=b).std_error
    assert str(found.method.item()) == "corrected resampled t-test"


def test_repeats_and_folds_are_one_long_sample():
    scores = xr.DataArray(np.random.default_rng(0).normal(size=(3, 5)), dims=("repeat", "fold"))
    flat = array(scores.values.ravel())
    both = corrected_t_test(scores, ("repeat", "fold"), test_fraction=0.2)
    assert float(both.p_value) == float(corrected_t_test(flat, "trial", test_fraction=0.2).p_value)
    assert float(both.df) == 14


def test_effect_size_is_cohens_d():
    a, b = array(R["a"]), array(R["b"])
    d = a - b
    assert float(t_test(a, "trial", other=b).effect_size) == pytest.approx(float(d.mean() / d.std(ddof=1)))
    welch = t_test(a, "trial", other=b, paired=False)
    pooled = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert float(welch.effect_size) == pytest.approx(float((a.mean() - b.mean()) / pooled))


def test_maps_over_other_dims_like_scipy():
    from scipy import stats

    x = xr.DataArray(np.random.default_rng(1).normal(size=(3, 4, 9)), dims=("method", "size", "trial"))
    y = xr.DataArray(np.random.default_rng(2).normal(size=(4, 5)), dims=("size", "trial"))
    found = t_test(x, "trial")
    assert found.p_value.dims == ("method", "size")
    np.testing.assert_allclose(found.p_value, stats.ttest_1samp(x.values, 0, axis=-1).pvalue, rtol=1e-9)
    wide = t_test(x, "trial", other=y, paired=False)
    expected = stats.ttest_ind(x.values, y.values[None], axis=-1, equal_var=False)
    np.testing.assert_allclose(wide.p_value, expected.pvalue, rtol=1e-9)
    np.testing.assert_allclose(wide.df, expected.df, rtol=1e-9)


def test_pairs_are_matched_by_label():
    a = array([1.0, 2, 4], trial=["x", "y", "z"])
    b = array([3.0, 1, 0], trial=["z", "x", "y"])
    assert float(t_test(a, "trial", other=b).estimate) == pytest.approx(1.0)


def test_nan_goes_with_its_partner():
    a, b = array([1.0, 2, np.nan, 4]), array([0.0, np.nan, 5, 1])
    found = t_test(a, "trial", other=b)
    assert int(found.n) == 2
    assert float(found.estimate) == 2.0


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_constant_cells_are_nan_with_one_warning(offset):
    x = xr.DataArray(
        [[1.0, 1, 1], [1, 2, 3], [0.1, np.nan, np.nan]], dims=("size", "trial"), coords={"size": [20, 40, 60]}
    )
    with pytest.warns(CvstatsWarning, match=r"in 2 of 3 cells \(size=20; size=60\): NaN") as record:
        found = t_test(x + offset, "trial")
    assert len(record) == 1
    assert np.isnan(found.p_value.values).tolist() == [True, False, True]
    assert np.isnan(found.conf_low.values).tolist() == [True, False, True]
    assert float(found.estimate[0]) == 1 + offset


def test_labels_survive_and_qualifiers_are_written():
    x = xr.DataArray(
        np.random.default_rng(0).normal(size=(2, 5)),
        dims=("method", "trial"),
        coords={"method": ["bbc", "tt"], "metric": "auc", "conf_level": 0.5, "interval": "percentile"},
    )
    found = t_test(x, "trial", level=0.9)
    assert found.method.values.tolist() == ["bbc", "tt"]
    assert str(found.test.item()) == "one-sample t-test"
    assert (str(found.metric.item()), float(found.conf_level), str(found.interval.item())) == ("auc", 0.9, "t")
    assert "t_test(dim='trial'" in found.attrs["call"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=12).filter(lambda v: len(set(v)) > 1), st.integers(0, 5))
def test_order_of_values_and_scale_do_not_matter(values, seed):
    x = array(values)
    shuffled = array(np.random.default_rng(seed).permutation(values) * 1e-30)
    a, b = t_test(x, "trial"), t_test(shuffled, "trial")
    assert float(a.p_value) == pytest.approx(float(b.p_value), rel=1e-9, abs=1e-300)


def test_inputs_are_not_changed():
    a, b = array(R["a"]), array(R["b"])
    before = a.copy(deep=True)
    t_test(a, "trial", other=b)
    xr.testing.assert_identical(a, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: t_test(x, "trail"),
            r"`dim`='trail' is not a dimension; found 'size', 'trial' \(did you mean 'trial'\?\)",
        ),
        (lambda x: t_test(x.isel(trial=[0]), "trial"), "`x` needs at least 2 values along 'trial'; it has 1"),
        (lambda x: t_test(x, "trial", alternative="both"), "`alternative` must be one of"),
        (lambda x: t_test(x, "trial", level=95), "`level` must be a number strictly between 0 and 1"),
        (lambda x: t_test(x.values, "trial"), "`x` must be an xarray.DataArray with named dims; got ndarray"),
        (lambda x: t_test(x.astype(str), "trial"), "`x` must hold numbers"),
        (lambda x: t_test(x, []), "`dim` must name at least one dimension"),
        (lambda x: t_test(x, ["trial", "trial"]), "`dim` names a dimension twice"),
        (
            lambda x: t_test(x, "trial", other=x.assign_coords(trial=[0, 1, 9])),
            "`other` does not match `x` along 'trial': only in `x`: 2; only in `other`: 9",
        ),
        (
            lambda x: t_test(x.drop_vars("trial"), "trial", other=x.isel(trial=[0, 1]).drop_vars("trial")),
            "`other` has 2 values along 'trial' where `x` has 3",
        ),
        (
            lambda x: t_test(x, "trial", other=x.isel(trial=0, drop=True)),
            "`dim`='trial' is not a dimension; found 'size'",
        ),
        (lambda x: corrected_t_test(x, "trial", test_fraction=10), "strictly between 0 and 1"),
        (lambda x: corrected_t_test(x, "trial", test_fraction="1/5"), "`test_fraction` must be a number"),
    ],
)
def test_bad_input(call, message):
    x = xr.DataArray(np.arange(6.0).reshape(2, 3) ** 2, dims=("size", "trial"), coords={"trial": [0, 1, 2]})
    with pytest.raises(InputError, match=message):
        call(x)


def test_welch_against_a_constant_group_has_the_other_groups_degrees_of_freedom():
    # with s_b = 0 Welch's formula reduces to df = n_a - 1 and se = s_a / sqrt(n_a)
    a, b = array([1.0, 2, 4, 9]), array([3.0, 3, 3])
    found = t_test(a, "trial", other=b, paired=False)
    assert float(found.df) == pytest.approx(3.0)
    assert float(found.std_error) == pytest.approx(np.std([1, 2, 4, 9], ddof=1) / 2)
    assert int(found.n) == 7
    swapped = t_test(b, "trial", other=a, paired=False)
    assert float(swapped.df) == pytest.approx(3.0)
    assert float(swapped.statistic) == pytest.approx(-float(found.statistic))


def test_welch_with_two_values_counts_them_and_with_one_says_so():
    a = array([1.0, 2, 4])
    assert int(t_test(a, "trial", other=array([0.0, 1]), paired=False).n) == 5
    for pair in ((a, array([5.0, np.nan])), (array([5.0, np.nan]), a)):
        with pytest.warns(CvstatsWarning, match="fewer than two values"):
            found = t_test(pair[0], "trial", other=pair[1], paired=False)
        assert int(found.n) == 1
        assert np.isnan(float(found.p_value))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("swapped", [False, True])
def test_welch_spread_that_is_rounding_of_the_larger_mean_is_none(sign, swapped):
    noisy = array(sign * (1e9 + np.spacing(1e9) * np.array([0, 1, 0, 1])))
    still = array([0.0, 0, 0])
    a, b = (still, noisy) if swapped else (noisy, still)
    with pytest.warns(CvstatsWarning, match="no variation"):
        found = t_test(a, "trial", other=b, paired=False)
    assert np.isnan(float(found.statistic))


def test_welch_keeps_the_metric_of_the_first():
    x = xr.DataArray([[1.0, 2, 4], [0, 1, 5]], dims=("size", "trial"), coords={"metric": "auc", "size": [1, 2]})
    found = t_test(x, "trial", other=array([0.0, 3, 4]), paired=False)
    assert str(found.metric.item()) == "auc"
    assert found["size"].values.tolist() == [1, 2]
    assert str(t_test(array([0.0, 3, 4]), "trial", other=x, paired=False).metric.item()) == "none"


@pytest.mark.parametrize("share", [0, 1, 0.0, 1.0])
def test_a_test_fraction_of_nothing_or_everything_is_refused(share):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        corrected_t_test(array([1.0, 2, 4]), "trial", test_fraction=share)


def test_a_warning_names_three_cells_at_most():
    still = xr.DataArray(np.ones((4, 3)), dims=("size", "trial"), coords={"size": [10, 20, 30, 40]})
    with pytest.warns(CvstatsWarning, match=r"in 4 of 4 cells \(size=10; size=20; size=30; \.\.\.\): NaN"):
        t_test(still, "trial")
    with pytest.warns(CvstatsWarning, match=r"in 3 of 3 cells \(size=10; size=20; size=30\): NaN"):
        t_test(still[:3], "trial")


def test_labels_that_repeat_can_be_paired_in_the_same_order_only():
    a = array([1.0, 2, 4], trial=["x", "x", "z"])
    assert float(t_test(a, "trial", other=array([0.0, 0, 0], trial=["x", "x", "z"])).estimate) == pytest.approx(7 / 3)
    for first, second in ((["x", "x", "z"], ["z", "x", "x"]), (["x", "y", "z"], ["z", "y", "x"])):
        other = array([0.0, 0, 0], trial=second)
        if len(set(first)) == 3:
            assert float(t_test(array([1.0, 2, 4], trial=first), "trial", other=other).estimate) == pytest.approx(7 / 3)
        else:
            with pytest.raises(InputError, match="labels repeat in another order"):
                t_test(array([1.0, 2, 4], trial=first), "trial", other=other)


def test_values_without_labels_are_paired_by_position_with_labelled_ones():
    plain, named = array([1.0, 2, 4]), array([0.0, 1, 5], trial=["z", "y", "x"])
    assert float(t_test(plain, "trial", other=named).estimate) == pytest.approx((1 + 1 - 1) / 3)
    assert float(t_test(named, "trial", other=plain).estimate) == pytest.approx(-(1 + 1 - 1) / 3)
    with pytest.raises(InputError, match="lengths must agree"):
        t_test(plain, "trial", other=named[:2])


def test_a_label_that_repeats_in_one_of_the_two_cannot_be_paired():
    a, b = array([1.0, 2], trial=["x", "z"]), array([0.0, 1, 5], trial=["x", "z", "z"])
    for one, two in ((a, b), (b, a)):
        with pytest.raises(InputError, match="labels repeat in another order"):
            t_test(one, "trial", other=two)


def test_gaps_may_come_first():
    """Cells of four with one gap each: a square table must not pass for a full one."""
    rows = [[np.nan, 1.0, 2, 4], [3, np.nan, 7, 5], [9, 1, 1, np.nan]]
    x = xr.DataArray(rows, dims=("size", "trial"))
    found = t_test(x, "trial")
    for at, row in enumerate(rows):
        alone = t_test(array([v for v in row if v == v]), "trial")
        for name in ("estimate", "std_error", "statistic", "p_value", "n"):
            assert float(found[name][at]) == pytest.approx(float(alone[name]), rel=1e-12), name


@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
def test_one_value_has_an_estimate_but_no_test():
    x = xr.DataArray([[1.5, np.nan, np.nan], [np.nan, np.nan, np.nan]], dims=("row", "trial"))
    found = t_test(x, "trial")
    np.testing.assert_array_equal(found.estimate, [1.5, np.nan])
    assert np.isnan(found.p_value).all()


ROPE = json.loads((Path(__file__).parents[1] / "reference" / "rope.json").read_text())
MASS = ("p_left", "p_rope", "p_right")


def repeated(name):
    return xr.DataArray(ROPE[name], dims=("repeat", "fold"))


@pytest.mark.parametrize("rope", ROPE["repeated"])
def test_rope_equals_baycomp(rope):
    dims = ("repeat", "fold")
    out = corrected_t_test(repeated("x"), dims, other=repeated("y"), test_fraction=1 / 5, rope=float(rope))
    np.testing.assert_allclose([out[name] for name in MASS], ROPE["repeated"][rope], atol=1e-10)
    one = corrected_t_test(repeated("x")[0], "fold", other=repeated("y")[0], test_fraction=1 / 5, rope=0.01)
    np.testing.assert_allclose([one[name] for name in MASS], ROPE["once"], atol=1e-10)


def test_rope_maps_over_dims_and_turns_round_with_the_difference():
    ways = [corrected_t_test(s * repeated("x"), "fold", test_fraction=0.2, rope=0.79) for s in (1, -1)]
    assert ways[0].p_rope.dims == ("repeat",)
    np.testing.assert_allclose(ways[0].p_left, ways[1].p_right)
    np.testing.assert_allclose(sum(ways[0][name] for name in MASS), 1)


def test_rope_of_what_does_not_vary_is_at_its_mean():
    x = xr.DataArray([[0.02] * 5, [0.01] * 5, [-0.02] * 5, [0.5] + [np.nan] * 4], dims=("case", "fold"))
    with pytest.warns(CvstatsWarning, match="no variation"):
        out = corrected_t_test(x, "fold", test_fraction=0.2, rope=0.01)
    np.testing.assert_array_equal(out.p_left, [0, 0, 1, np.nan])
    np.testing.assert_array_equal(out.p_rope, [0, 1, 0, np.nan])
    np.testing.assert_array_equal(out.p_right, [1, 0, 0, np.nan])


@pytest.mark.parametrize("rope", [-0.1, np.inf, np.nan, "0.1", True])
def test_rope_is_a_size(rope):
    with pytest.raises(InputError, match="`rope` must be a finite number of at least 0"):
        corrected_t_test(repeated("x"), "fold", test_fraction=0.2, rope=rope)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: t_test(x, "trial", mu=[0, 1]), "`mu` must be a finite number"),
        (lambda x: t_test(x, "trial", mu=np.nan), "`mu` must be a finite number"),
        (lambda x: t_test(x, "trial", mu="0"), "`mu` must be a finite number"),
        (lambda x: t_test(x, ...), "`dim`=Ellipsis is not a dimension"),
        (
            lambda x: t_test(x.to_dataset(name="estimate"), "trial"),
            "got Dataset. Pick one .* 'estimate'",
        ),
        (lambda x: p_adjust(x.to_dataset(name="p_value")), "got Dataset. Pick one of its variables: 'p_value'"),
        (lambda _: p_adjust(["a"]), r"`p` must hold numbers; got \['a'\]"),
        (lambda _: p_adjust(xr.DataArray(["a"])), "`p` must hold numbers; its dtype is"),
    ],
)
def test_what_is_no_number_or_no_array_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(xr.DataArray([0.1, 0.2, 0.4], dims="trial"))
