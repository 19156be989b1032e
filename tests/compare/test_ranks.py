"""Wilcoxon, Friedman, Skillings-Mack, Nemenyi, critical differences and p_adjust: against R, scipy and theory."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cvstats import CvstatsWarning, InputError
from cvstats.compare import critical_difference, friedman_test, nemenyi_test, p_adjust, wilcoxon_test

FILE = json.loads((Path(__file__).parents[1] / "reference" / "compare.json").read_text())
W, RANKS, P = FILE["wilcoxon"], FILE["ranks"], FILE["p"]
ALTERNATIVES = {"two.sided": "two-sided", "less": "less", "greater": "greater"}


def array(values, dim="dataset"):
    return xr.DataArray(np.asarray(values, float), dims=dim)


def table(values, names="abcdefgh"):
    values = np.asarray(values, float)
    return xr.DataArray(values, dims=("dataset", "method"), coords={"method": list(names[: values.shape[1]])})


# Wilcoxon --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["clean", "heavy", "big", "coarse", "large"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_equals_r(data, alternative):
    """Exact without ties (R), exact with ties and zeros (enumeration in R), normal with ties and zeros (R)."""
    found = wilcoxon_test(array(W[data]), "dataset", alternative=ALTERNATIVES[alternative])
    assert float(found.statistic) == W[f"{data}_r"]["statistic"]
    assert float(found.p_value) == pytest.approx(W[f"{data}_r"][alternative], rel=1e-9)
    assert bool(found.exact) == (data in ("clean", "heavy", "big"))


def test_wilcoxon_with_an_offset_of_1e9():
    x = array(W["clean"])
    found = wilcoxon_test(x + 1e9, "dataset", other=xr.full_like(x, 1e9))
    assert float(found.p_value) == pytest.approx(W["clean_offset"]["two.sided"], rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9).filter(any))
def test_wilcoxon_is_the_enumeration_of_all_signs(values):
    d = np.array([v for v in values if v != 0], float)
    ranks = stats.rankdata(np.abs(d))
    null = np.array(
        [sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product((0, 1), repeat=len(d))]
    )
    v = ranks[d > 0].sum()
    lower, upper = np.mean(null <= v), np.mean(null >= v)
    found = wilcoxon_test(array(values), "dataset")
    assert float(found.statistic) == v
    assert float(found.p_value) == pytest.approx(min(1, 2 * min(lower, upper)), rel=1e-12)
    assert int(found.n) == len(d)
    assert int(found.n_zero) == len(values) - len(d)


def test_wilcoxon_at_the_border_of_exact_is_r_psignrank():
    """R would switch to the normal approximation at n = 50; the exact value there is psignrank's."""
    x = np.arange(1, 51) * np.where(np.arange(50) % 3, 1, -1)
    exact = wilcoxon_test(array(x), "dataset")
    assert bool(exact.exact)
    assert float(exact.p_value) == pytest.approx(stats.wilcoxon(x, method="exact").pvalue, rel=1e-9)
    longer = wilcoxon_test(array([*x, 51]), "dataset")
    assert not bool(longer.exact)
    normal = stats.wilcoxon([*x, 51], method="asymptotic", correction=True)
    assert float(longer.p_value) == pytest.approx(normal.pvalue, rel=1e-9)


@pytest.mark.slow
def test_wilcoxon_maps_over_cells_with_ties():
    rng = np.random.default_rng(0)
    x = xr.DataArray(rng.integers(-9, 10, size=(2000, 30)), dims=("cell", "dataset"))
    found = wilcoxon_test(x, "dataset")
    for cell in (0, 7, 1999):
        assert float(found.p_value[cell]) == float(wilcoxon_test(x[cell], "dataset").p_value)
    assert float(found.effect_size.max()) <= 1


@pytest.mark.parametrize(
    ("values", "effect"),
    [
        ([1.0, -2, 3], (4 - 2) / 6),  # ranks 1 and 3 are positive, 2 is negative
        ([0.0, 1, -2, 3, 0], (4 - 2) / 6),
        ([2.0, 2, -2, 5], (2 + 2 + 4 - 2) / 10),  # three share rank 2
        ([1.0, 2, 3], 1.0),
        ([-1.0, -2], -1.0),
    ],
)
def test_wilcoxon_effect_is_the_rank_biserial_correlation(values, effect):
    """(sum of positive ranks - sum of negative ranks) / sum of all ranks."""
    assert float(wilcoxon_test(array(values), "dataset").effect_size) == pytest.approx(effect, rel=1e-12)


def test_significant_digits_of_any_magnitude():
    from cvstats.kernels.signed_ranks import significant

    found = significant(np.array([123456.0, 0.00123456, 9.8765e10, 9.996, 1.0, np.nan]), 3)
    np.testing.assert_allclose(found, [123000.0, 0.00123, 9.88e10, 10.0, 1.0, np.nan], rtol=1e-12)
    np.testing.assert_allclose(significant(np.array([0.16, 250.0, 94.9]), 1), [0.2, 200.0, 90.0], rtol=1e-12)


def test_wilcoxon_digits_restore_ties_that_rounding_broke():
    c, d = array([0.3, 0.1, 0.9]), array([0.2, 0.2, 0.1])
    assert float(wilcoxon_test(c, "dataset", other=d).statistic) == 4.0  # 0.3 - 0.2 is a last bit below 0.2 - 0.1
    assert float(wilcoxon_test(c, "dataset", other=d, digits=7).statistic) == 4.5


def test_wilcoxon_without_differences_is_nan_with_one_warning():
    x = xr.DataArray([[0.0, 0, 0], [1, 2, 3]], dims=("size", "dataset"), coords={"size": [20, 40]})
    with pytest.warns(
        CvstatsWarning, match=r"no difference other than zero in 1 of 2 cells \(size=20\): NaN"
    ) as record:
        found = wilcoxon_test(x, "dataset")
    assert len(record) == 1
    assert np.isnan(found.p_value.values).tolist() == [True, False]


# Friedman and Skillings-Mack -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["plain", "tied"])
def test_friedman_equals_r(data):
    x = table(RANKS[data])
    found = friedman_test(x, "dataset", by="method", direction="minimize")
    for name, value in RANKS[f"{data}_r"].items():
        assert float(found[name]) == pytest.approx(value, rel=1e-9), name
    np.testing.assert_allclose(found.mean_rank, RANKS[f"{data}_rank"], rtol=1e-12)
    n, k, chi2 = *x.shape, float(found.statistic)
    f = (n - 1) * chi2 / (n * (k - 1) - chi2)
    assert float(found.f_statistic) == pytest.approx(f, rel=1e-12)
    assert float(found.f_p_value) == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-9)
    assert float(found.effect_size) == pytest.approx(chi2 / (n * (k - 1)))
    assert (float(found.f_df), float(found.f_df_residual), int(found.n)) == (k - 1, (k - 1) * (n - 1), n)


def test_direction_reverses_the_ranks_only():
    x = table(RANKS["tied"])
    low, high = (friedman_test(x, "dataset", by="method", direction=name) for name in ("minimize", "maximize"))
    assert float(low.statistic) == pytest.approx(float(high.statistic), rel=1e-12)
    np.testing.assert_allclose(low.mean_rank + high.mean_rank, 5, rtol=1e-12)


def test_skillings_mack_of_the_published_example():
    """Assembly times, Skillings and Mack (1981); Hollander and Wolfe give SM = 15.493 on 3 degrees of freedom."""
    x = np.nan
    times = [
        [3.2, 4.1, 3.8, 4.2], [3.1, 3.9, 3.4, 4.0], [4.3, 3.5, 4.6, 4.8], [3.5, 3.6, 3.9, 4.0], [3.6, 4.2, 3.7, 3.9],
        [4.5, 4.7, 3.7, x], [x, 4.2, 3.4, x], [4.3, 4.6, 4.4, 4.9], [3.5, x, 3.7, 3.9],
    ]  # fmt: skip
    found = friedman_test(table(times), "dataset", by="method", direction="minimize")
    assert float(found.statistic) == pytest.approx(15.493, abs=5e-4)
    assert float(found.df) == 3
    assert str(found.test.item()) == "Skillings-Mack test"
    assert np.isnan(float(found.f_statistic))


@pytest.mark.parametrize("data", ["plain", "tied"])
def test_skillings_mack_without_gaps_is_friedman(data):
    from cvstats.compare.ranks import skillings_mack
    from cvstats.kernels.signed_ranks import block_ranks

    values = np.asarray(RANKS[data], float)
    ranks, _ = block_ranks(values, "minimize")
    assert float(skillings_mack(ranks)) == pytest.approx(RANKS[f"{data}_r"]["statistic"], rel=1e-9)


def test_data_sets_with_one_method_do_not_count():
    values = np.asarray(RANKS["tied"], float)
    values[0, 0] = np.nan
    lonely = np.full((1, 4), np.nan)
    lonely[0, 2] = 1.0
    short, longer = (
        friedman_test(table(v), "dataset", by="method", direction="minimize")
        for v in (values, np.vstack([values, lonely]))
    )
    assert float(short.statistic) == pytest.approx(float(longer.statistic), rel=1e-12)
    np.testing.assert_allclose(short.mean_rank, longer.mean_rank)
    assert int(longer.n) == len(values)


def test_gaps_in_one_table_leave_the_others_alone():
    x = xr.DataArray(np.random.default_rng(0).normal(size=(3, 8, 4)), dims=("size", "dataset", "method"))
    gap = x.copy()
    gap[1, 2, 3] = np.nan
    full, some = (
        friedman_test(x, "dataset", by="method", direction="minimize"),
        friedman_test(gap, "dataset", by="method", direction="minimize"),
    )
    assert (full.statistic == some.statistic).values.tolist() == [True, False, True]
    assert np.isnan(some.f_statistic.values).tolist() == [False, True, False]
    assert str(some.test.item()) == "Friedman or Skillings-Mack test"


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_tests_of_ranks_map_over_other_dims(direction):
    """Sizes that are all different, so that no axis can stand for another."""
    x = np.round(np.random.default_rng(0).normal(size=(3, 8, 4)), 1)
    x = xr.DataArray(x, dims=("size", "dataset", "method"))
    gap = x.copy()
    gap[1, 2, 3] = np.nan
    for data in (x, gap):
        found = friedman_test(data, "dataset", by="method", direction=direction)
        for at in range(3):
            one = friedman_test(data[at], "dataset", by="method", direction=direction)
            for name in one.data_vars:
                np.testing.assert_allclose(found[name][at], one[name], rtol=1e-12, err_msg=name)
    pairs = nemenyi_test(x, "dataset", by="method", direction=direction)
    for at in range(3):
        one = nemenyi_test(x[at], "dataset", by="method", direction=direction)
        for name in one.data_vars:
            np.testing.assert_allclose(pairs[name][at], one[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("k", range(2, 9))
@pytest.mark.parametrize("n", [2, 3, 7, 10, 13])
def test_perfect_agreement_has_an_infinite_f(n, k):
    found = friedman_test(table(np.tile(np.arange(k), (n, 1))), "dataset", by="method", direction="minimize")
    assert float(found.statistic) == pytest.approx(n * (k - 1), rel=1e-12)
    assert float(found.f_statistic) > 1e12
    assert float(found.f_p_value) == pytest.approx(0, abs=1e-5)
    assert float(found.effect_size) == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
def test_skillings_mack_holds_its_level():
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(4000, 15, 4)) * 1.5)
    x[rng.random(x.shape) < 0.15] = np.nan
    found = friedman_test(
        xr.DataArray(x, dims=("cell", "dataset", "method")), "dataset", by="method", direction="minimize"
    )
    assert float((found.p_value < 0.05).mean()) == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 1, 1], [2, 2, 2], [3, 3, 3]],
        [[1, 2, np.nan, np.nan], [2, 1, np.nan, np.nan], [np.nan, np.nan, 1, 2], [np.nan, np.nan, 4, 3]],
    ],
)
def test_friedman_degenerate_is_nan_with_one_warning(values):
    with pytest.warns(CvstatsWarning, match="everything is tied, or methods are not linked") as record:
        found = friedman_test(table(values), "dataset", by="method", direction="minimize")
    assert len(record) == 1
    assert np.isnan(float(found.p_value))


# Nemenyi and critical differences --------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["plain", "tied"])
def test_nemenyi_equals_r_and_scikit_posthocs(data):
    import scikit_posthocs

    x = table(RANKS[data])
    found = nemenyi_test(x, "dataset", by="method", direction="minimize")
    assert found.p_value.dims == ("method", "method_other")
    np.testing.assert_allclose(found.p_value, RANKS[f"{data}_nemenyi"], atol=1e-9)
    theirs = scikit_posthocs.posthoc_nemenyi_friedman(x.values).to_numpy()
    np.testing.assert_allclose(found.p_value, theirs, atol=1e-9)
    np.testing.assert_allclose(found.estimate, -found.estimate.T.values)


def test_critical_difference_equals_demsar():
    """Table 5 of Demsar (2006): q at 0.05 for 2 to 10 classifiers, to the digits printed there and to R's."""
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, q_printed, q_r in zip(range(2, 11), printed, RANKS["q95"], strict=True):
        x = table(np.random.default_rng(k).normal(size=(12, k)), "abcdefghij")
        cd = float(critical_difference(x, "dataset", by="method", direction="minimize").cd)
        q = cd / np.sqrt(k * (k + 1) / (6 * 12))
        assert q == pytest.approx(q_r, rel=1e-6)
        assert q == pytest.approx(q_printed, abs=1.1e-3)


def test_cliques_are_the_maximal_groups_within_the_critical_difference():
    rng = np.random.default_rng(3)
    x = table(rng.normal(size=(20, 6)) + 0.5 * np.arange(6))
    found = critical_difference(x, "dataset", by="method", direction="minimize")
    ranks, cd = found.mean_rank.values, float(found.cd)
    groups = {frozenset(np.flatnonzero(column)) for column in found.clique.values.T}
    subsets = [frozenset(c) for size in range(2, 7) for c in itertools.combinations(range(6), size)]
    fit = [s for s in subsets if np.ptp(ranks[list(s)]) < cd]
    assert groups == {s for s in fit if not any(s < t for t in fit)}
    starts = [ranks[column].min() for column in found.clique.values.T]
    assert starts == sorted(starts)
    assert found.clique.dims == ("method", "clique")


def test_wilcoxon_holm_cliques():
    rng = np.random.default_rng(4)
    x = table(rng.normal(size=(15, 4)) + np.array([0, 0.1, 1.2, 1.3]))
    found = critical_difference(x, "dataset", by="method", direction="minimize", test="wilcoxon", level=0.9)
    pairs = list(itertools.combinations(range(4), 2))
    raw = [stats.wilcoxon(x.values[:, i], x.values[:, j], method="exact").pvalue for i, j in pairs]
    expected = p_adjust(raw)
    for (i, j), p in zip(pairs, expected, strict=True):
        assert float(found.p_value[i, j]) == pytest.approx(p, rel=1e-9)
    assert np.isnan(float(found.cd))
    groups = [np.flatnonzero(column).tolist() for column in found.clique.values.T]
    assert groups == [[0, 1], [2, 3]]


def test_methods_that_all_differ_have_no_clique():
    x = table(np.tile([1.0, 2], (40, 1)) + np.arange(40)[:, None])
    found = critical_difference(x, "dataset", by="method", direction="minimize")
    assert found.clique.shape == (2, 0)


def test_critical_differences_map_over_other_dims():
    x = xr.DataArray(np.random.default_rng(0).normal(size=(3, 9, 4)), dims=("size", "dataset", "method"))
    found = critical_difference(x, "dataset", by="method", direction="minimize")
    for at in range(3):
        one = critical_difference(x[at], "dataset", by="method", direction="minimize")
        np.testing.assert_array_equal(found.mean_rank[at], one.mean_rank)
        kept = found.clique[at].values
        np.testing.assert_array_equal(kept[:, kept.any(0)], one.clique)
    empty = critical_difference(x[:0], "dataset", by="method", direction="minimize")
    assert empty.mean_rank.shape == (0, 4)
    assert empty.clique.shape == (0, 4, 0)


@pytest.mark.parametrize("data", ["plain", "tied"])
def test_critical_difference_comes_with_friedmans_test(data):
    x = table(RANKS[data])
    for test in ("nemenyi", "wilcoxon"):
        found, friedman = (
            critical_difference(x, "dataset", by="method", direction="minimize", test=test),
            RANKS[f"{data}_r"],
        )
        assert float(found.statistic) == pytest.approx(friedman["statistic"], rel=1e-9)
        assert float(found.df) == 3
        assert float(found.friedman_p_value) == pytest.approx(friedman["p_value"], rel=1e-9)


def test_wilcoxon_holm_comparisons_map_over_other_dims():
    x = xr.DataArray(np.random.default_rng(0).normal(size=(3, 9, 4)), dims=("size", "dataset", "method"))
    x = x + 0.7 * xr.DataArray(np.arange(4), dims="method")
    found = critical_difference(x, "dataset", by="method", direction="minimize", test="wilcoxon")
    for at in range(3):
        one = critical_difference(x[at], "dataset", by="method", direction="minimize", test="wilcoxon")
        np.testing.assert_array_equal(found.p_value[at], one.p_value)
        kept = found.clique[at].values
        np.testing.assert_array_equal(kept[:, kept.any(0)], one.clique)


def test_methods_that_never_differ_are_the_same():
    x = table(np.random.default_rng(0).normal(size=(12, 1)) + np.array([0.0, 0.0, 5.0]))
    found = critical_difference(x, "dataset", by="method", direction="minimize", test="wilcoxon")
    p = 3 * 2 * 0.5**12  # two of the three comparisons are as clear as can be; Holm multiplies by three, then two
    expected = [[1, 1, p], [1, 1, p], [p, p, 1]]
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-9)
    assert found.clique.values.T.tolist() == [[True, True, False]]


@pytest.mark.parametrize("seed", range(12))
def test_cliques_of_any_graph_are_all_the_maximal_ones(seed):
    """Pairwise tests need not respect the order of the ranks, so the graph may be any."""
    from cvstats.compare.ranks import _cliques

    rng = np.random.default_rng(seed)
    same = np.triu(rng.random((7, 7)) < rng.uniform(0.2, 0.8), 1)
    same = same | same.T | np.eye(7, dtype=bool)
    mean_rank = rng.permutation(7).astype(float)
    subsets = [set(c) for size in range(2, 8) for c in itertools.combinations(range(7), size)]
    full = [s for s in subsets if all(same[i, j] for i, j in itertools.combinations(s, 2))]
    expected = [s for s in full if not any(s < t for t in full)]
    found = _cliques(same, mean_rank)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    order = [[mean_rank[j] for j in group] for group in found]
    assert order == sorted(order)
    assert all(group == sorted(group) for group in order)


# p_adjust --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["holm", "hochberg", "hommel", "bonferroni", "BH", "BY", "fdr", "none"])
def test_p_adjust_equals_r(method):
    p = np.array([np.nan if value is None else value for value in P["p"]])
    expected = np.array([np.nan if value is None else value for value in P[method]])
    for name in (method, method.upper(), method.lower()):
        np.testing.assert_allclose(p_adjust(p, name), expected, rtol=1e-9)


def test_p_adjust_keeps_shape_labels_and_families():
    p = xr.DataArray([[0.01, 0.02], [0.03, np.nan]], dims=("size", "method"), coords={"size": [20, 40]}, name="p_value")
    before = p.copy(deep=True)
    everything = p_adjust(p)
    np.testing.assert_allclose(everything, [[0.03, 0.04], [0.04, np.nan]])
    by_size = p_adjust(p, dim="method")
    np.testing.assert_allclose(by_size, [[0.02, 0.02], [0.03, np.nan]])
    down = p_adjust(p, dim="size")
    np.testing.assert_allclose(down, [[0.02, 0.02], [0.03, np.nan]])
    assert by_size.dims == p.dims
    assert by_size.coords["size"].values.tolist() == [20, 40]
    xr.testing.assert_identical(p, before)
    assert np.isnan(p_adjust(np.array([np.nan]))).all()
    assert p_adjust([]).shape == (0,)


def test_p_adjust_takes_the_ends_of_the_scale():
    assert p_adjust([0.0, 1.0, 0.4], "bonferroni").tolist() == pytest.approx([0, 1, 1])
    for wrong in (-1e-9, 1.0001):
        with pytest.raises(InputError, match="between 0 and 1"):
            p_adjust([0.5, wrong])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: friedman_test(x, "data_set", by="method", direction="minimize"),
            "`dim`='data_set' is not a dimension; .*did you mean 'dataset'",
        ),
        (
            lambda x: friedman_test(x[:1], "dataset", by="method", direction="minimize"),
            "`x` needs at least 2 values along 'dataset'",
        ),
        (
            lambda x: friedman_test(x[:, :1], "dataset", by="method", direction="minimize"),
            "`by`='method' needs at least 2 levels",
        ),
        (
            lambda x: friedman_test(x, "dataset", by="method", direction="up"),
            "`direction` must be one of 'minimize', 'maximize'",
        ),
        (
            lambda x: nemenyi_test(x.where(x > 1), "dataset", by="method", direction="minimize"),
            "`x` has 3 missing cells .the first at dataset=0, method='a'.; pairwise comparisons need every method",
        ),
        (
            lambda x: nemenyi_test(x.rename(dataset="method_other"), "method_other", by="method", direction="minimize"),
            "already has a dimension 'method_other'",
        ),
        (
            lambda x: critical_difference(x, "dataset", by="method", direction="minimize", test="t"),
            "`test` must be one of 'nemenyi', 'wilcoxon'",
        ),
        (lambda x: wilcoxon_test(x, "dataset", digits=0), "`digits` must be a whole number of at least 1"),
        (lambda x: wilcoxon_test(x, "dataset", alternative="more"), "`alternative` must be one of"),
        (lambda x: p_adjust([0.1, 1.2]), "`p` must hold p-values between 0 and 1 .or NaN.; found 1.2"),
        (lambda x: p_adjust([0.1], "homel"), "`method` must be one of .*did you mean 'hommel'"),
        (lambda x: p_adjust([0.1], dim="a"), "`dim` needs `p` to be an xarray.DataArray"),
    ],
)
def test_bad_input(call, message):
    x = table([[1.0, 2, 3]] * 3)
    with pytest.raises(InputError, match=message):
        call(x)


@pytest.mark.parametrize(
    ("test", "name"), [("nemenyi", "Nemenyi critical difference"), ("wilcoxon", "Wilcoxon-Holm comparison of ranks")]
)
def test_critical_difference_is_named(test, name):
    x = xr.DataArray(np.random.default_rng(0).random((6, 3)), dims=("data", "algorithm"))
    assert critical_difference(x, "data", by="algorithm", direction="minimize", test=test)["method"].item() == name


def test_no_difference_has_no_statistic():
    with pytest.warns(CvstatsWarning, match="no difference other than zero"):
        found = wilcoxon_test(xr.DataArray(np.zeros(6), dims="data"), "data")
    assert np.isnan([found.statistic, found.p_value]).all()
