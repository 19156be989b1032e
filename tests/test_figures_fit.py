"""Figures obey the reader: letters, colours and sizes of the settings, and nothing is cut off in a narrow column."""

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import cvstats as cs
from cvstats.plot import journal

NAMES = [
    "gradient boosting, 500 trees, depth 6",
    "svm C=100 gamma=0.001",
    "logistic regression, l2",
    "$x_1$ & 50%",
    "e",
]
TIMES = {"times": 60, "rng": 1}


def _risks():
    cube = cs.example_cube().isel(repeat=0, configuration=slice(5))
    return cube.assign_coords(configuration=NAMES)


def _table():
    rng = np.random.default_rng(1)
    error = xr.DataArray(rng.normal(size=(9, 5)), dims=("dataset", "method"), coords={"method": NAMES})
    return cs.critical_difference(error, "dataset", by="method", direction="minimize")


def _bias():
    bias = xr.DataArray(
        np.random.default_rng(1).normal(size=(2, 3, 9)),
        dims=("method", "size", "trial"),
        coords={"method": ["bbc", "cvt"], "size": [20, 100, 500]},
    )
    return cs.bias_table(bias, 0 * bias, dim="trial")


def _sites():
    site = np.repeat(["University hospital", "Rural clinic", "Third"], 30)
    cube = cs.simulate_cube(90, 5, rng=1).assign_coords(site=("sample", site))
    sites = cs.winner(cube, "accuracy", subgroup="site", **TIMES)
    return sites, cs.meta_analysis(sites, "site")


def _coverage(x):
    dims = ("method", "size")
    values = {"coverage": (dims, [[0.9, 0.94], [0.97, 0.96]]), "coverage_std_error": (dims, np.full((2, 2), 0.01))}
    coords = {"method": ["bbc", "winner"], "size": [20, 500], "conf_level": 0.95}
    return cs.plot_coverage(xr.Dataset(values, coords), x=x)


def _both():
    cube = cs.simulate_cube(60, 5, rng=1)
    return cs.bind(cs.winner(cube, "accuracy", **TIMES), cs.bbc(cube, "accuracy", **TIMES), cs.cvt(cube, "accuracy"))


FIGURES = {
    "intervals": lambda: cs.plot_intervals(_both(), title="Accuracy of the winner", truth=0.6),
    "win_rates": lambda: cs.plot_win_rates(cs.bbc(_risks(), "auc", **TIMES), title="Who wins"),
    "optimism": lambda: cs.plot_optimism(cs.optimism_curve(cs.simulate_cube(60, 30, rng=1), "accuracy", **TIMES)),
    "configurations": lambda: cs.plot_configurations(cs.best_set(_risks(), "auc", **TIMES), title="The set"),
    "scores_by": lambda: cs.plot_scores_by(
        cs.score(cs.example_cube().isel(repeat=0), "auc"), "C", family="family", title="By C"
    ),
    "scores_by_name": lambda: cs.plot_scores_by(cs.score(_risks(), "auc"), "configuration"),
    "roc": lambda: cs.plot_roc(cs.roc_curve(_risks(), **TIMES), title="ROC curve"),
    "precision_recall": lambda: cs.plot_precision_recall(cs.precision_recall_curve(_risks(), **TIMES)),
    "calibration": lambda: cs.plot_calibration(cs.calibration_curve(_risks(), by="brier", **TIMES)),
    "decision": lambda: cs.plot_decision(cs.decision_curve(_risks(), **TIMES)),
    "forest": lambda: cs.plot_forest(_sites()[0], summary=_sites()[1]),
    "critical_difference": lambda: cs.plot_critical_difference(_table(), title="Ranks"),
    "bias": lambda: cs.plot_bias(_bias())[0, 0],
    "coverage": lambda: _coverage(None),
    "coverage_by_size": lambda: _coverage("size"),
    "prior": lambda: cs.plot_prior(cs.prior_curve(cs.separate_gaussian(60, folds=3, rng=1)[0], **TIMES), mark=0.3),
    "dropping": lambda: cs.plot_dropping(cs.bbcd(cs.simulate_cube(150, 20, rng=1), "accuracy", **TIMES)),
}


def cut_off(figure):
    """Return by how much what is drawn reaches beyond the figure, in inches."""
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return max(-drawn.x0, -drawn.y0, drawn.x1 - width, drawn.y1 - height)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_in_a_column(name):
    with mpl.rc_context(journal("single")):
        ax = FIGURES[name]()
        assert ax.figure.get_figwidth() == 3.35
        assert cut_off(ax.figure) <= 0.02
        if name != "critical_difference":
            assert ax.get_position().width * 3.35 > 1, "room is left for the marks"


def test_every_figure_is_here():
    assert {name for name in cs.__all__ if name.startswith("plot_")} <= {f"plot_{name}" for name in FIGURES}


@pytest.mark.slow
def test_letters_and_colours_are_the_readers():
    out = cs.bbc(cs.simulate_cube(60, 5, rng=1), "accuracy", **TIMES)
    plain = cs.plot_win_rates(out)
    with mpl.rc_context({"font.size": 20, "axes.prop_cycle": mpl.cycler(color=["#123456", "#654321"])}):
        large = cs.plot_win_rates(out)
        intervals = cs.plot_intervals(out)
    assert large.texts[0].get_fontsize() == pytest.approx(2 * plain.texts[0].get_fontsize())
    assert "#123456" in {mpl.colors.to_hex(bar.get_facecolor()) for bar in large.patches}
    assert "#654321" in {mpl.colors.to_hex(line.get_markeredgecolor()) for line in intervals.lines}
    with mpl.rc_context(mpl.style.library["dark_background"]):
        dark = cs.plot_intervals(out)
    assert mpl.colors.to_hex(dark.lines[-1].get_color()) == "#ffffff"


def test_sizes_are_the_readers():
    out = cs.bbc(cs.simulate_cube(60, 5, rng=1), "accuracy", **TIMES)
    with mpl.rc_context({"figure.figsize": (4, 5)}):
        assert tuple(cs.plot_intervals(out).figure.get_size_inches()) == (4, 5)
    own = Figure(figsize=(2, 2)).subplots()
    assert cs.plot_intervals(out, ax=own).figure.get_figwidth() == 2


def test_journal_widths():
    assert journal("double")["figure.figsize"][0] == 6.85
    assert journal(3.5, size=7)["font.size"] == 7
    for wrong in ("triple", 0.5, True):
        with pytest.raises(cs.InputError, match="`columns` must be one of 'single', 'double' or a width"):
            journal(wrong)


def test_a_separate_cube_is_drawn_too():
    cube = cs.separate_gaussian(60, folds=3, rng=1)[0]
    assert cs.plot_scores_by(cs.score(cube, "auc"), "configuration").get_ylabel() == "plain CV AUC"
    both = cs.bind(*(cs.winner(cube, "auc", **TIMES), cs.cvt(cube, "auc")))
    assert len(cs.plot_intervals(both).get_yticklabels()) == 2
    assert cs.plot_win_rates(cs.bbc(cube, "auc", **TIMES)).patches
    with pytest.raises(cs.InputError, match="every pair of folds has its own model"):
        cs.roc_curve(cube, **TIMES)
