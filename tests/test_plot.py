"""Figures draw what the results say, keep no global state, and take users' names literally."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import cvstats as cs
from cvstats._results import result
from cvstats.plot import (
    plot_bias,
    plot_coverage,
    plot_critical_difference,
    plot_dropping,
    plot_intervals,
    plot_optimism,
    plot_prior,
    plot_win_rates,
)
from cvstats.protocols.optimism import optimism_curve
from cvstats.tables.words import (
    count,
    method_words,
    metric_words,
    number,
    percent,
    places_of,
    printable,
    several,
    short,
)

NAN = float("nan")


def estimate(method, value, low=NAN, high=NAN, naive=NAN, metric="auc"):
    values = {"estimate": value, "conf_low": low, "conf_high": high, "naive": naive}
    return result(values, method=method, metric=metric, conf_level=0.95, interval="percentile")


@pytest.fixture
def ax():
    return Figure(figsize=(6, 4)).subplots()


@pytest.fixture(scope="module")
def cube():
    return cs.simulate_cube(50, 6, rng=3)


@pytest.fixture(scope="module")
def stacked():
    return cs.bind(
        estimate("winner", 0.82, 0.7, 0.9, 0.88), estimate("bbc", 0.83, 0.72, 0.93, 0.88), estimate("cvt", 0.88)
    )


def texts(labels):
    return [label.get_text() for label in labels]


def lines_by_label(ax):
    return {line.get_label(): line for line in ax.lines}


# --- intervals ----------------------------------------------------------------------------------------------------


def test_intervals_draw_the_numbers(stacked, ax):
    assert plot_intervals(stacked, ax=ax) is ax
    drawn = lines_by_label(ax)
    np.testing.assert_array_equal(drawn["estimate"].get_xdata(), stacked.estimate)
    np.testing.assert_array_equal(drawn["what plain CV claims"].get_xdata(), stacked.naive)
    segments = next(c for c in ax.collections if c.get_label() == "interval").get_segments()
    assert [tuple(part[:, 0]) for part in segments[:2]] == [(0.7, 0.9), (0.72, 0.93)]
    assert texts(ax.get_yticklabels()) == ["Recommended", "BBC-CV", "Plain CV of the winner"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first method is on top"
    assert ax.get_xlabel() == "AUC (higher is better)"


def test_intervals_print_digits_by_the_standard_error(stacked):
    right = plot_intervals(stacked).child_axes[0]
    assert texts(right.get_yticklabels()) == ["0.820 (0.700 to 0.900)", "0.830 (0.720 to 0.930)", "0.880"]
    narrow = Figure(figsize=(3.6, 3)).subplots()
    plot_intervals(stacked, ax=narrow)
    assert texts(narrow.get_yticklabels())[0] == "Recommended\n0.820 (0.700 to 0.900)"
    bare = plot_intervals(stacked, numbers=False)
    assert not bare.child_axes


def test_intervals_of_one_result_and_truth():
    ax = plot_intervals(estimate("bbc", 0.8, 0.7, 0.9, 0.85), truth=0.75)
    assert texts(ax.get_yticklabels()) == ["BBC-CV"]
    assert lines_by_label(ax)["truth"].get_xdata()[0] == 0.75
    alone = plot_intervals(estimate("cvt", 0.8).drop_vars(["conf_low", "conf_high", "naive"]))
    assert set(alone.get_legend_handles_labels()[1]) == {"estimate"}


def test_intervals_of_a_loss_say_so():
    assert plot_intervals(estimate("bbc", 3.0, metric="mse")).get_xlabel() == "mean squared error (lower is better)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, r"`results` must be a result \(Dataset\) from a protocol .*; got int"),
        (xr.Dataset({"x": 1}), "`results` must come from a protocol .*: it lacks 'estimate'"),
        (xr.Dataset({"estimate": ("size", [1.0, 2.0])}), r"`results` has dims 'size'; pick one first with .sel\(\)"),
    ],
)
def test_intervals_refuse(given, message):
    with pytest.raises(cs.InputError, match=message):
        plot_intervals(given)


def test_different_metrics_are_refused():
    both = cs.bind(estimate("bbc", 0.8), estimate("tt", 3.0, metric="mse"))
    with pytest.raises(cs.InputError, match="different metrics: 'auc', 'mse'"):
        plot_intervals(both)


def test_axes_must_be_axes(stacked):
    with pytest.raises(cs.InputError, match="`ax` must be a matplotlib Axes; got str"):
        plot_intervals(stacked, ax="here")


# --- win rates ----------------------------------------------------------------------------------------------------


def rates(values, selected, names=None):
    names = names or [f"c{i}" for i in range(len(values))]
    data = {"win_rate": ("configuration", values), "selected": selected, "n_draws": 1000}
    return xr.Dataset(data, coords={"configuration": names})


def test_win_rates_are_sorted_and_complete():
    ax = plot_win_rates(rates([0.1, 0.4, 0.0, 0.3, 0.2], "c0"), top=2)
    assert texts(ax.get_yticklabels()) == ["c1", "c3", "c0", "1 other"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.4, 0.3, 0.1, 0.2])
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [True, True, False, False], "the selected one is solid"
    assert "10% (selected)" in texts(ax.texts)
    assert ax.get_xlabel() == "wins (% of 1000 bootstrap draws)"


def test_names_are_literal():
    ax = plot_win_rates(rates([0.5, 0.5], "$x_1$", ["$x_1$", "a\nb\x1b[31m" + 60 * "z"]))
    ax.figure.draw_without_rendering()
    first, second = texts(ax.get_yticklabels())
    assert first == "$x_1$"
    assert not ax.get_yticklabels()[0].get_parse_math()
    assert "\n" not in second
    assert "\x1b" not in second
    assert len(second) == 44


def test_names_are_no_tex():
    import matplotlib as mpl

    with mpl.rc_context({"text.usetex": True}):
        ax = plot_win_rates(rates([0.5, 0.5], "a_1", ["a_1", "b%"]))
        assert not any(label.get_usetex() for label in ax.get_yticklabels())


def test_win_rates_refuse():
    with pytest.raises(cs.InputError, match=r"`result` must come from bbc\(\) or winner\(\): it lacks 'win_rate'"):
        plot_win_rates(xr.Dataset({"estimate": 1.0}))
    with pytest.raises(cs.InputError, match="`top` must be a whole number of at least 1"):
        plot_win_rates(rates([1.0], "c0"), top=0)


# --- optimism -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "f1"])
def test_curve_is_the_mean_over_all_subsets(cube, metric):
    """Enumerates every subset; the curve must be their exact mean."""
    curve = optimism_curve(cube, metric, sizes=[1, 2, 5, 6], times=40, rng=5)
    names = cube.configuration.values
    for size in (2, 5):
        parts = [cube.sel(configuration=list(chosen)) for chosen in itertools.combinations(names, size)]
        plain = np.mean([float(cs.cvt(part, metric).estimate) for part in parts])
        honest = np.mean([float(cs.winner(part, metric, times=40, rng=5).bbc_plain) for part in parts])
        at = curve.sel(n_configurations=size)
        assert float(at.naive) == pytest.approx(plain, rel=1e-12)
        assert float(at.estimate) == pytest.approx(honest, rel=1e-12)
    sign = 1 if metric != "error_rate" else -1
    np.testing.assert_allclose(curve.optimism, sign * (curve.naive - curve.estimate))


def test_curve_ends_at_the_plain_bbc(cube):
    curve = optimism_curve(cube, "mcc", times=60, rng=2)
    out = cs.winner(cube, "mcc", times=60, rng=2)
    assert float(curve.estimate[-1]) == pytest.approx(float(out.bbc_plain), rel=1e-12)
    assert float(curve.naive[-1]) == pytest.approx(float(out.naive), rel=1e-12)


def test_curve_skips_incomplete_configurations(cube):
    gappy = cube.astype(float).copy()
    gappy[0, 2] = np.nan
    with pytest.warns(cs.CvstatsWarning, match="optimism_curve: .* lacked predictions that others have"):
        out = optimism_curve(gappy, "accuracy", times=40, rng=1)
    assert int(out.n_configurations.max()) == 5


def test_curve_refuses(cube):
    with pytest.raises(cs.InputError, match="`sizes` must lie between 1 and 6, the complete configurations; got 7"):
        optimism_curve(cube, "accuracy", sizes=[7])
    with pytest.raises(cs.InputError, match=r"`cube` has batch dims 'trial'; pick one data set first with .sel\(\)"):
        optimism_curve(cube.expand_dims(trial=2), "accuracy")


def test_optimism_draws_both_curves(cube, ax):
    curve = optimism_curve(cube, "accuracy", times=40, rng=1)
    assert plot_optimism(curve, ax=ax, title="a $ title") is ax
    drawn = lines_by_label(ax)
    np.testing.assert_array_equal(drawn["what plain CV claims"].get_ydata(), curve.naive)
    np.testing.assert_array_equal(drawn["corrected"].get_ydata(), curve.estimate)
    assert drawn["corrected"].get_linestyle() != drawn["what plain CV claims"].get_linestyle()
    assert texts(ax.get_xticklabels())[-1] == "6"
    with pytest.raises(cs.InputError, match=r"`curve` must come from optimism_curve\(\)"):
        plot_optimism(curve.drop_vars("naive"))


# --- studies ------------------------------------------------------------------------------------------------------


@pytest.fixture
def study():
    dims = ("method", "size")
    return xr.Dataset(
        {"coverage": (dims, [[0.9, 0.94], [0.97, 0.96]]), "coverage_std_error": (dims, np.full((2, 2), 0.01))},
        coords={"method": ["bbc", "winner"], "size": [20, 500], "conf_level": 0.95},
    )


def test_coverage_as_lines(study, ax):
    plot_coverage(study, x="size", ax=ax)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["promised: 95%", "BBC-CV", "Recommended"]
    bbc, winner = (handle.lines[0] for handle in handles[1:])
    np.testing.assert_allclose(bbc.get_ydata(), [90, 94])
    assert bbc.get_marker() != winner.get_marker(), "told apart without colour"
    assert bbc.get_linestyle() != winner.get_linestyle()
    assert ax.get_xlabel() == "sample size"


def test_coverage_as_rows(study):
    ax = plot_coverage(study)
    assert texts(ax.get_yticklabels())[:2] == ["BBC-CV, size 20", "BBC-CV, size 500"]
    np.testing.assert_allclose(ax.lines[1].get_xdata(), [90, 94, 97, 96])
    assert ax.lines[0].get_xdata()[0] == 95


def test_coverage_of_a_real_study():
    found = cs.coverage(
        lambda rng: cs.simulate_cube(20, 5, rng=rng), lambda cube, rng: cs.bbc(cube, "accuracy", times=40, rng=rng),
        repetitions=5, rng=1,
    )  # fmt: skip
    assert texts(plot_coverage(found).get_yticklabels()) == ["BBC-CV"]


def test_coverage_refuses(study):
    with pytest.raises(cs.InputError, match=r"`x`='sizes' is not a dimension; found .*did you mean 'size'"):
        plot_coverage(study, x="sizes")
    with pytest.raises(cs.InputError, match="at most one can become lines"):
        plot_coverage(study.expand_dims(design=2), x="size")
    mixed = study.assign_coords(conf_level=("method", [0.9, 0.95]))
    with pytest.raises(cs.InputError, match=r"`study` holds levels 0\.9, 0\.95; pick one"):
        plot_coverage(mixed, x="size")
    assert plot_coverage(mixed, x="size", level=0.9).lines[0].get_ydata()[0] == 90


def test_prior(ax):
    separate, _ = cs.separate_gaussian(60, ratio=0.5, prior=0.3, rng=1)
    curve = cs.separate_cv(separate, prior=np.linspace(0, 1, 5), times=50, rng=1)
    plot_prior(curve.isel(configuration=0), ax=ax, mark=0.3, title="t")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve.estimate.isel(configuration=0))
    assert ax.get_xlabel() == "probability of class 0 in the population"
    assert ax.get_ylabel() == "error rate"
    both = plot_prior(cs.prior_curve(separate, prior=[0.1, 0.5], times=50, rng=1))
    assert "classical CV" in both.get_legend_handles_labels()[1]
    single = cs.separate_cv(separate, prior=0.3, times=50, rng=1)
    with pytest.raises(cs.InputError, match="one prior only"):
        plot_prior(single)
    with pytest.raises(cs.InputError, match="it lacks 'prior'"):
        plot_prior(xr.Dataset({"estimate": 1.0}))
    with pytest.raises(cs.InputError, match="at most one can become lines"):
        plot_prior(curve.drop_vars("method").expand_dims(method=2))


def test_dropping_counts_the_models(ax):
    cube = cs.simulate_cube(150, 20, rng=1)
    out = cs.bbcd(cube, "accuracy", times=50, rng=1)
    plot_dropping(out, ax=ax)
    saved, trained = ax.patches
    alive = trained.get_data().values
    assert alive.sum() == int(out.models_trained)
    assert alive[0] == 20
    assert saved.get_hatch()
    assert ax.get_title(loc="left").startswith(f"{int(out.models_trained)} of 200 models trained")
    with pytest.raises(cs.InputError, match=r"`result` must come from bbcd\(\): it lacks 'dropped_after'"):
        plot_dropping(xr.Dataset({"estimate": 1.0}))


def test_comparison_plots_are_here_too():
    assert cs.plot_bias is plot_bias
    assert cs.plot_critical_difference is plot_critical_difference


@pytest.mark.slow
def test_no_global_state():
    code = (
        "import sys, cvstats as cs\n"
        "out = cs.bbc(cs.simulate_cube(30, 4, rng=1), 'accuracy', times=40, rng=1)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "cs.plot_intervals(out); cs.plot_win_rates(out)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_matplotlib_is_named(stacked, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'figures need matplotlib: pip install "cvstats\[plot\]"'):
        plot_intervals(stacked)


# --- words --------------------------------------------------------------------------------------------------------


def test_words():
    assert metric_words("mcc") == "Matthews correlation"
    assert method_words("own_method") == "own method"
    assert printable("a\u202eb\x00") == "a\ufffdb\ufffd"
    assert short("x" * 50, 10) == "xxxxx…xxxx"
    assert number(-0.0312, 2) == "\u22120.03"
    assert count(1234567) == "1\u202f234\u202f567"
    assert several(2, "class", "classes") == "2 classes"
    assert (percent(NAN), percent(0.12345, digits=1)) == ("–", "12.3%")
    assert (places_of(0.0021), places_of(25.0), places_of(NAN, 123.0)) == (4, 0, 1)


def test_win_rates_without_a_usable_draw_are_refused():
    cube = cs.as_cube(np.array([[0.2, 0.4], [0.8, 0.3], [0.1, 0.9]]), [0, 0, 0], kind="score", positive=1)
    with pytest.warns(cs.CvstatsWarning):
        out = cs.bbc(cube, "auc", times=40, rng=1)
    with pytest.raises(cs.InputError, match="has no win rates to draw: none of its draws was usable"):
        cs.plot_win_rates(out)


def test_configurations_draw_the_set():
    best = cs.best_set(cs.simulate_cube(60, 8, rng=1), "accuracy", times=60, rng=1)
    ax = cs.plot_configurations(best, top=5)
    drawn = np.concatenate([line.get_xdata() for line in ax.lines if line.get_marker() == "o"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(best["difference"].values)[-5:])
    assert len(ax.get_yticklabels()) == 5
    with pytest.raises(cs.InputError, match="best_set"):
        cs.plot_configurations(cs.cvt(cs.simulate_cube(20, 2, rng=1), "accuracy"))


def test_scores_by_a_tuning_value():
    cube = cs.simulate_cube(60, 6, rng=1).assign_coords(
        C=("configuration", [0.01, 0.1, 1, 10, 100, np.nan]), kernel=("configuration", list("abcabc"))
    )
    scores = cs.score(cube, "accuracy")
    ax = cs.plot_scores_by(scores, "C", family="kernel")
    assert ax.get_xscale() == "log"
    drawn = np.concatenate([line.get_ydata() for line in ax.lines[:-1]])
    np.testing.assert_allclose(np.sort(drawn), np.sort(scores.values[:5]))
    circled = ax.lines[-1].get_ydata()
    assert float(np.ravel(circled)[0]) == scores.values[:5].max()
    assert [text.get_text() for text in cs.plot_scores_by(scores, "kernel").get_xticklabels()] == ["a", "b", "c"]
    with pytest.raises(cs.InputError, match="no coordinate over 'configuration'; there are"):
        cs.plot_scores_by(scores, "gamma")
    with pytest.raises(cs.InputError, match="alone"):
        cs.plot_scores_by(cube, "C")


def test_win_rates_of_one_decision_that_several_metrics_judge():
    cube = cs.simulate_cube(60, 6, rng=1)
    both = cs.winner(cube, ["accuracy", "youden"], times=50, rng=1)
    assert cs.plot_win_rates(both).get_xlabel() == "wins (% of bootstrap draws)"
    assert cs.plot_win_rates(both.sel(metric="youden")).get_xlabel() == "wins (% of 50 bootstrap draws)"
    with pytest.raises(cs.InputError, match="must have one dim, of sites or subgroups; found none"):
        cs.plot_forest(both.sel(metric="youden"))
