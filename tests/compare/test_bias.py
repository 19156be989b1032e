"""The bias table: its parts equal the tests they stand for; the layout of a published table comes out of one call."""

import numpy as np
import pytest
import xarray as xr

from cvstats import CvstatsWarning, InputError
from cvstats.compare import bias_table, obrien_test, pitman_morgan_test, t_test
from cvstats.tables import format_table

METHODS = ["CVM", "NS-CVM", "CVM-CV", "NS-CVM-CV", "TT", "NS-TT", "NCV", "NS-NCV"]
SIZES = [20, 40, 60, 80, 100, 500, 1500]


@pytest.fixture
def estimates():
    rng = np.random.default_rng(0)
    values = rng.normal(0.8, 0.1, size=(8, 7, 7, 30)) + 0.05 * np.arange(8)[:, None, None, None]
    dims = ("method", "size", "dataset", "trial")
    return xr.DataArray(
        values, dims=dims, coords={"method": METHODS, "size": SIZES, "trial": np.arange(30), "metric": "auc"}
    )


@pytest.fixture
def truth():
    rng = np.random.default_rng(1)
    return xr.DataArray(
        rng.normal(0.8, 0.05, size=(7, 7, 30)),
        dims=("size", "dataset", "trial"),
        coords={"size": SIZES, "trial": np.arange(30)},
    )


def test_parts_equal_the_single_tests(estimates, truth):
    dims = ("dataset", "trial")
    table = bias_table(estimates, truth, dim=dims, against="NCV", level=0.9)
    bias = (estimates - truth).transpose(*estimates.dims)
    single = t_test(bias, dims, level=0.9)
    for name in ("estimate", "std_error", "conf_low", "conf_high", "statistic", "df", "p_value"):
        np.testing.assert_allclose(table[name].transpose("method", "size"), single[name], rtol=1e-9, err_msg=name)
    spread = obrien_test(bias, dims, by="method", against="NCV").transpose("method", "size")
    np.testing.assert_allclose(table.obrien_p_value.transpose("method", "size"), spread.p_value, rtol=1e-9)
    one = pitman_morgan_test(bias.sel({"method": "TT"}), dims, other=bias.sel({"method": "NCV"}))
    np.testing.assert_allclose(table.pitman_p_value.sel({"method": "TT"}), one.p_value, rtol=1e-9)
    np.testing.assert_allclose(table.pitman_statistic.sel({"method": "TT"}), one.statistic, rtol=1e-9)
    np.testing.assert_allclose(table.std_dev, spread.std_dev.transpose(*table.std_dev.dims), rtol=1e-9)
    np.testing.assert_allclose(table.rmse.transpose("method", "size"), np.sqrt((bias**2).mean(dims)), rtol=1e-12)
    np.testing.assert_allclose(table.truth.sel({"method": "TT"}), truth.mean(dims), rtol=1e-12)
    assert np.allclose(table.truth_ratio, 1)
    assert np.isnan(table.obrien_p_value.sel({"method": "NCV"})).all()
    assert np.isnan(table.pitman_p_value.sel({"method": "NCV"})).all()
    assert str(table.metric.item()) == "auc"
    assert str(table.test.item()) == "bias table"


def test_truth_may_differ_by_method(estimates, truth):
    own = truth * xr.DataArray(np.linspace(1, 2, 8), dims="method", coords={"method": METHODS})
    table = bias_table(estimates, own, dim=("dataset", "trial"), against="CVM")
    np.testing.assert_allclose(table.truth_ratio.sel(size=20), np.linspace(1, 2, 8), rtol=1e-12)


def test_optimism_is_positive_for_losses_too(estimates, truth):
    performance = bias_table(estimates, truth, dim=("dataset", "trial"))
    loss = bias_table(1 - estimates, 1 - truth, dim=("dataset", "trial"), direction="minimize")
    np.testing.assert_allclose(performance.estimate, loss.estimate, rtol=1e-9)
    assert "obrien_p_value" not in performance


def test_direction_comes_from_the_metric_unless_given(estimates, truth):
    loss = bias_table(estimates.assign_coords(metric="error_rate"), truth, dim="trial")
    gain = bias_table(estimates.assign_coords(metric="my own"), truth, dim="trial")
    np.testing.assert_allclose(loss.estimate, -gain.estimate)
    forced = bias_table(estimates.assign_coords(metric="error_rate"), truth, dim="trial", direction="maximize")
    np.testing.assert_array_equal(forced.estimate, gain.estimate)


def test_the_whole_table_as_text(estimates, truth):
    text = format_table(bias_table(estimates, truth, dim=("dataset", "trial"), against="NCV"))
    blocks = text.split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ["Mean bias", "Standard deviation", "Truth"]
    header = blocks[0].splitlines()[1].split()
    assert header == ["size", *METHODS]
    assert [line.split()[0] for line in blocks[0].splitlines()[3:10]] == [str(size) for size in SIZES]
    assert "**" in blocks[0]
    assert "* P < 0.05, ** P < 0.01" in blocks[0]
    assert "*" not in blocks[2]


def test_stars_of_the_two_tables_come_from_the_two_tests(estimates, truth):
    noisy = estimates.copy()
    noisy[0] = 0.8 + (noisy[0] - 0.8) * 3
    table = bias_table(noisy, truth, dim=("dataset", "trial"), against="NCV")
    spread = format_table(table, values="std_dev").splitlines()
    for line, size in zip(spread[2:9], SIZES, strict=True):
        assert line.split()[1].endswith("**"), (line, size)
        assert not line.split()[7].endswith("*")


def test_missing_trials_are_left_out(estimates, truth):
    gap = estimates.copy()
    gap[2, 3, 4, 5] = np.nan
    table = bias_table(gap, truth, dim=("dataset", "trial"), against="NCV")
    cell = table.sel({"method": "CVM-CV", "size": 80})
    assert int(cell.n) == 209
    left = (gap - truth).sel({"method": "CVM-CV", "size": 80}).values.ravel()
    assert float(cell.estimate) == pytest.approx(np.nanmean(left), rel=1e-12)
    assert np.isfinite(float(cell.obrien_p_value))


def test_constant_bias_is_nan_with_one_warning(estimates, truth):
    flat = estimates.copy()
    flat[0] = truth.values + 0.1
    with pytest.warns(
        CvstatsWarning, match=r"bias_table: too few values, or no variation, for a test in 7 of 56 cells"
    ) as record:
        table = bias_table(flat, truth, dim=("dataset", "trial"), against="NCV")
    assert len(record) == 1
    assert np.isnan(table.p_value.sel({"method": "CVM"})).all()
    np.testing.assert_allclose(table.estimate.sel({"method": "CVM"}), 0.1, rtol=1e-9)


def test_cells_with_few_values_by_hand():
    nan = np.nan
    claim = xr.DataArray(
        [[0.9, 0.7, nan], [0.8, nan, nan], [nan, nan, nan], [0.875, 0.625, nan]],
        dims=("method", "trial"),
        coords={"method": ["two", "one", "none", "same"]},
    )
    truth = xr.DataArray([0.75, 0.5, 0.6], dims="trial")
    with pytest.warns(CvstatsWarning, match="in 3 of 4 cells") as record:
        table = bias_table(claim, truth, dim="trial")
    assert len(record) == 1
    assert table.n.values.tolist() == [2, 1, 0, 2]
    np.testing.assert_allclose(table.estimate, [0.175, 0.05, nan, 0.125], rtol=1e-12)
    np.testing.assert_allclose(table.rmse, [np.sqrt((0.15**2 + 0.2**2) / 2), 0.05, nan, 0.125], rtol=1e-9)
    np.testing.assert_allclose(table.truth, [0.625, 0.75, nan, 0.625], rtol=1e-12)
    np.testing.assert_allclose(table.std_error, [0.025, nan, nan, 0.0], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(table.std_dev, [0.025 * np.sqrt(2), nan, nan, 0.0], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(table.df, [1, nan, nan, 1])
    np.testing.assert_allclose(table.statistic, [7.0, nan, nan, nan], rtol=1e-9)
    # Student's t on one degree of freedom is Cauchy's distribution
    np.testing.assert_allclose(table.p_value, [1 - 2 * np.arctan(7) / np.pi, nan, nan, nan], rtol=1e-9)
    half = 0.025 * np.tan(np.pi * 0.475)
    np.testing.assert_allclose(table.conf_high[0], 0.175 + half, rtol=1e-9)
    np.testing.assert_allclose(table.conf_low[0], 0.175 - half, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e, t: bias_table(e, t, dim="trials"), "`dim`='trials' is not a dimension; .*did you mean 'trial'"),
        (
            lambda e, t: bias_table(e, t, dim="trial", against="NVC"),
            "`against`='NVC' is not a level of 'method'; .*did you mean",
        ),
        (lambda e, t: bias_table(e, t, dim="method", against="NCV"), "`by`='method' is also in `dim`"),
        (
            lambda e, t: bias_table(e, t, dim="trial", against="NCV", by="protocol"),
            "`by`='protocol' is not a dimension",
        ),
        (
            lambda e, t: bias_table(e, t.isel(trial=slice(9)), dim="trial"),
            "`truth` does not match `estimates` along 'trial'",
        ),
        (lambda e, t: bias_table(e, t, dim="trial", direction="down"), "`direction` must be one of"),
        (
            lambda e, t: bias_table(e.isel(trial=[0]), t.isel(trial=[0]), dim="trial"),
            "`estimates` needs at least 2 values",
        ),
        (lambda e, t: bias_table(e.values, t, dim="trial"), "`estimates` must be an xarray.DataArray"),
    ],
)
def test_bad_input(estimates, truth, call, message):
    with pytest.raises(InputError, match=message):
        call(estimates, truth)
