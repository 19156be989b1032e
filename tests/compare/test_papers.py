"""Cawley and Talbot (2010): their printed tables as data, what the paper claims, and what comes out."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from cvstats.compare import critical_difference, friedman_test, nemenyi_test, wilcoxon_test

TABLES = json.loads((Path(__file__).parents[1] / "reference" / "cawley_talbot_2010.json").read_text())["tables"]
DATASETS = list(TABLES["4"]["GPC internal"])


def column(table, name, part=0):
    values = [TABLES[table][name][dataset][part] for dataset in DATASETS]
    return xr.DataArray(values, dims="dataset", coords={"dataset": DATASETS})


def errors(*columns):
    found = xr.concat([column(*one) for one in columns], "method", coords="minimal", compat="override")
    return found.assign_coords({"method": [name for _, name in columns]})


INTERNAL = errors(("4", "GPC internal"), ("4", "KLR internal"), ("4", "KRR internal"))
MIXED = errors(("4", "GPC internal"), ("4", "KLR internal"), ("5", "KRR median"))
MEDIAN = errors(("6", "GPC median"), ("6", "KLR median"), ("6", "KRR median"))
DIGITS = 6  # errors are printed with three decimals: rounding must not break ties


def pair(table, a, b, **options):
    x, y = (table.sel({"method": name}, drop=True) for name in (a, b))
    return wilcoxon_test(x, "dataset", other=y, digits=DIGITS, **options)


def test_the_tables_agree_with_each_other():
    """The same column is printed in several tables, and biases are differences of columns up to rounding."""
    assert TABLES["4"]["KRR internal"] == TABLES["5"]["KRR internal"] == TABLES["2"]["RBF error"]
    assert TABLES["4"]["GPC internal"] == TABLES["3"]["RBF error"]
    assert TABLES["5"]["KRR median"] == TABLES["6"]["KRR median"]
    assert TABLES["5"]["bias"] == TABLES["7"]["KRR bias"]
    for bias, high, low in (
        (column("5", "bias"), column("5", "KRR internal"), column("5", "KRR median")),
        (column("7", "GPC bias"), column("4", "GPC internal"), column("6", "GPC median")),
        (column("8", "bias"), column("8", "internal"), column("8", "external")),
    ):
        np.testing.assert_allclose(bias, high - low, atol=0.0011)


def test_table_4_and_figure_10_internal_protocol():
    """Claim: mean ranks only minimally different, no evidence of superiority. Holds."""
    found = friedman_test(INTERNAL, "dataset", by="method", direction="minimize")
    np.testing.assert_allclose(found.mean_rank, [26 / 13, 27 / 13, 25 / 13])
    assert float(found.statistic) == pytest.approx(2 / 13, rel=1e-12)
    assert float(found.p_value) == pytest.approx(0.926, abs=5e-4)
    assert float(found.f_p_value) == pytest.approx(0.931, abs=5e-4)
    diagram = critical_difference(INTERNAL, "dataset", by="method", direction="minimize")
    assert float(diagram.cd) == pytest.approx(0.919, abs=5e-4)
    assert diagram.clique.values.tolist() == [[True], [True], [True]]
    for a, b in (("GPC internal", "KLR internal"), ("GPC internal", "KRR internal"), ("KLR internal", "KRR internal")):
        assert float(pair(INTERNAL, a, b).p_value) > 0.15


def test_tables_4_and_5_and_figure_12_a_spurious_winner():
    """Claim: KRR under the median protocol beats both others, Wilcoxon at the 95 % level. Holds, Holm-adjusted too."""
    gpc, klr = (pair(MIXED, name, "KRR median") for name in ("GPC internal", "KLR internal"))
    assert (float(gpc.statistic), float(klr.statistic)) == (82.5, 81.0)
    assert float(gpc.p_value) == pytest.approx(0.0063, abs=5e-5)
    assert float(klr.p_value) == pytest.approx(0.0105, abs=5e-5)
    found = friedman_test(MIXED, "dataset", by="method", direction="minimize")
    np.testing.assert_allclose(found.mean_rank, [31 / 13, 31 / 13, 16 / 13])
    assert float(found.p_value) == pytest.approx(0.0031, abs=5e-5)
    for test in ("nemenyi", "wilcoxon"):
        diagram = critical_difference(MIXED, "dataset", by="method", direction="minimize", test=test)
        assert diagram.clique.values.T.tolist() == [[True, True, False]]
    p = nemenyi_test(MIXED, "dataset", by="method", direction="minimize").p_value
    assert float(p.sel({"method": "KRR median", "method_other": "GPC internal"})) == pytest.approx(0.0092, abs=5e-5)


def test_table_6_and_figure_13_median_protocol():
    """Claim: no significant difference by Friedman's test, though KRR is favoured. Holds: its mean rank is lowest."""
    found = friedman_test(MEDIAN, "dataset", by="method", direction="minimize")
    np.testing.assert_allclose(found.mean_rank, [29 / 13, 29 / 13, 20 / 13])
    assert float(found.p_value) == pytest.approx(0.125, abs=5e-4)
    assert float(found.f_p_value) == pytest.approx(0.124, abs=5e-4)
    diagram = critical_difference(MEDIAN, "dataset", by="method", direction="minimize")
    assert diagram.clique.values.tolist() == [[True], [True], [True]]


def test_table_5_bias_of_the_median_protocol():
    """Claim: positive bias everywhere but twonorm and waveform. Holds, and over data sets the bias is significant.

    Claim: for breast cancer, german, heart and thyroid it exceeds the typical difference between classifiers. Holds
    for the median difference of two classifiers in Table 4 (0.13 points); against the range of the three classifiers
    on the same data set it holds for breast cancer and heart only.
    """
    bias = column("5", "bias")
    assert [name for name in DATASETS if float(bias.sel(dataset=name)) < 0] == ["twonorm", "waveform"]
    test = wilcoxon_test(column("5", "KRR internal"), "dataset", other=column("5", "KRR median"), digits=DIGITS)
    assert (float(test.statistic), float(test.p_value)) == (86.0, pytest.approx(0.0024, abs=5e-5))
    gap = INTERNAL.max("method") - INTERNAL.min("method")
    named = ["breast cancer", "german", "heart", "thyroid"]
    assert (bias > gap).sel(dataset=named).values.tolist() == [True, False, True, False]
    gpc, klr, krr = INTERNAL.values
    typical = np.median(np.abs([gpc - klr, gpc - krr, klr - krr]))
    assert typical == pytest.approx(0.13)
    assert (bias > typical).sel(dataset=named).all()


def test_table_7_the_median_protocol_favours_one_classifier():
    """Claim: where the biases differ (p < 0.05, five data sets) KRR gains more than GPC. Holds.

    The p-values need the hundred realisations, which are not printed; only signs and counts can be checked. Over the
    thirteen data sets the two biases differ too (p = 0.033), a test the paper does not make.
    """
    excess = column("7", "KRR bias") - column("7", "GPC bias")
    marked = [name for name in DATASETS if TABLES["7"]["p"][name] == "< 0.05"]
    assert marked == ["banana", "diabetis", "heart", "ringnorm", "twonorm"]
    assert (excess.sel(dataset=marked) > 0).all()
    test = wilcoxon_test(column("7", "KRR bias"), "dataset", other=column("7", "GPC bias"), digits=DIGITS)
    assert (float(test.statistic), float(test.p_value)) == (76.0, pytest.approx(0.0327, abs=5e-5))


def test_table_8_external_cross_validation_is_optimistic():
    """Claim: optimistic on all thirteen, beyond two standard errors on all but splice and twonorm. Holds.

    Claim: of surprising size on banana and thyroid. Thyroid yes; banana (0.14) is only tenth of thirteen, and breast
    cancer (1.19), by far the largest, is not named: presumably it was meant.
    """
    bias, error = column("8", "bias"), column("8", "bias", 1)
    assert (bias > 0).all()
    assert [name for name in DATASETS if not float((bias / error).sel(dataset=name)) > 2] == ["splice", "twonorm"]
    order = [DATASETS[at] for at in np.argsort(-bias.values)]
    assert order[:2] == ["breast cancer", "thyroid"]
    assert order.index("banana") == 9
    test = wilcoxon_test(column("8", "internal"), "dataset", other=column("8", "external"), digits=DIGITS)
    assert (float(test.statistic), float(test.p_value)) == (91.0, pytest.approx(2 / 2**13, rel=1e-12))


def test_tables_2_and_3_more_kernel_parameters_over_fit():
    """Claim: the simpler RBF kernel usually has the lower error although ARD contains it, with lower PRESS for ARD.

    RBF has the lower mean error on 10 of 13 data sets with KRR and 9 of 13 with GPC. Over data sets Wilcoxon's test
    supports this for KRR (p = 0.021) but not for GPC (p = 0.22), a test the paper does not make.
    """
    for table, wins, p in (("2", 10, 0.0215), ("3", 9, 0.2163)):
        rbf, ard = column(table, "RBF error"), column(table, "ARD error")
        assert int((rbf < ard).sum()) == wins
        assert float(wilcoxon_test(rbf, "dataset", other=ard, digits=DIGITS).p_value) == pytest.approx(p, abs=5e-5)
    press = column("2", "ARD PRESS") < column("2", "RBF PRESS")
    assert int(press.sum()) == 11
