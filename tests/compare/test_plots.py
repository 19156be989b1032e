"""The two comparison plots: they draw what the result says."""

import matplotlib
import numpy as np
import pytest
import xarray as xr

from cvstats import InputError
from cvstats.compare import bias_table, critical_difference
from cvstats.plot.studies import plot_bias, plot_critical_difference

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def diagram():
    x = np.random.default_rng(0).normal(size=(20, 5)) + 0.6 * np.arange(5)
    x = xr.DataArray(x, dims=("dataset", "method"), coords={"method": list("edcba")})
    return critical_difference(x, "dataset", by="method", direction="minimize")


@pytest.fixture
def table():
    x = np.random.default_rng(0).normal(size=(3, 4, 2, 9))
    coords = {"method": ["CVM", "TT", "NCV"], "size": [20, 40, 100, 1500], "dataset": ["a", "b"]}
    x = xr.DataArray(x, dims=("method", "size", "dataset", "trial"), coords=coords)
    return bias_table(x, x * 0, dim="trial")


def test_critical_difference_diagram(diagram):
    ax = plot_critical_difference(diagram, title="Ranks")
    texts = [text.get_text().strip() for text in ax.texts]
    for name, rank in zip("edcba", diagram.mean_rank.values, strict=True):
        assert f"{name} ({rank:.2f})" in texts
    assert f"CD = {float(diagram.cd):.3g}" in texts
    bars = [line for line in ax.lines if line.get_linewidth() == 3.5]
    assert len(bars) == diagram.sizes["clique"]
    inside = diagram.mean_rank.values[diagram.clique.values[:, 0]]
    assert bars[0].get_xdata()[0] == pytest.approx(inside.min(), abs=0.1)
    assert ax.get_title() == "Ranks"
    ax.figure.canvas.draw()


def test_wilcoxon_diagram_has_no_cd_and_draws_into_given_axes():
    import matplotlib.pyplot as plt

    x = xr.DataArray(np.random.default_rng(1).normal(size=(9, 2)), dims=("dataset", "method"))
    ax = plt.subplots()[1]
    assert (
        plot_critical_difference(
            critical_difference(x, "dataset", by="method", direction="minimize", test="wilcoxon"), ax=ax
        )
        is ax
    )
    assert not any("CD" in text.get_text() for text in ax.texts)


def test_bias_figure_has_a_column_per_method_and_a_line_per_data_set(table):
    panels = plot_bias(table)
    assert panels.shape == (2, 3)
    axes = list(panels.ravel())
    assert [ax.get_title() for ax in axes[:3]] == ["CVM", "TT", "NCV"]
    first = axes[0].containers
    assert len(first) == 2
    np.testing.assert_allclose(first[0].lines[0].get_ydata(), table.estimate.sel({"method": "CVM", "dataset": "a"}))
    np.testing.assert_allclose(axes[3].lines[0].get_ydata(), table.std_dev.sel({"method": "CVM", "dataset": "a"}))
    assert [label.get_text() for label in axes[5].get_xticklabels()] == ["20", "40", "100", "1500"]
    axes[0].figure.canvas.draw()


def test_bias_figure_without_methods_or_spread(table):
    import matplotlib.pyplot as plt

    given = plt.figure()
    one = table.sel({"method": "TT"}).isel(dataset=0)
    panels = plot_bias(one, spread=False, figure=given)
    assert panels[0, 0].figure is given
    assert panels.shape == (1, 1)


def test_bad_input(diagram, table):
    with pytest.raises(InputError, match=r"`result` must come from critical_difference\(\)"):
        plot_critical_difference(table)
    many = diagram.expand_dims(size=2)
    with pytest.raises(InputError, match=r"pick one table first with .sel\(\)"):
        plot_critical_difference(many)
    with pytest.raises(InputError, match=r"`table` must come from bias_table\(\)"):
        plot_bias(diagram)
    with pytest.raises(InputError, match=r"`x`='sizes' is not a dimension; .*did you mean 'size'"):
        plot_bias(table, x="sizes")
    with pytest.raises(InputError, match="`table` has dims 'dataset', 'extra' besides 'size' and 'method'"):
        plot_bias(table.expand_dims(extra=2, axis=-1))
