"""Curves of what was chosen: by hand, against scikit-learn, against `winner`, and with known truth."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import isotonic_regression
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve as binned_curve
from statsmodels.duration.survfunc import SurvfuncRight

import cvstats as cs
from cvstats.cube.arrays import problem_on
from cvstats.kernels.columns import STATISTICS, lowess
from cvstats.metrics.curves import point
from cvstats.metrics.survival import bin_at

CURVES = {
    "roc_curve": cs.roc_curve,
    "precision_recall_curve": cs.precision_recall_curve,
    "calibration_curve": cs.calibration_curve,
    "binned": lambda cube, **more: cs.calibration_curve(cube, binned=True, **more),
    "decision_curve": cs.decision_curve,
}
DIMS = dict(zip(CURVES, ["false_positive_rate", "recall", "predicted", "bin", "threshold"], strict=True))
GRID = np.arange(101) / 100
ROOT = Path(__file__).parents[2]
POINTS = {
    "roc_curve": ("sensitivity_at", GRID),
    "precision_recall_curve": ("precision_at", GRID),
    "calibration_curve": ("observed_at", GRID),
    "binned": ("bin_observed", np.arange(10)),
    "decision_curve": ("net_benefit", np.arange(1, 100) / 100),
}


def made(n=80, m=6, seed=1):
    g = np.random.default_rng(seed)
    y = (np.arange(n) % 5 < 2).astype(int)
    p = 1 / (1 + np.exp(-(1.5 * y[:, None] - 0.7 + 1.3 * g.normal(size=(n, m)))))
    return cs.as_cube(p.round(2), y, kind="probability", configurations=[f"c{j}" for j in range(m)])


CUBE = made()
Y = CUBE.label.values


@cache
def curve_of(name):
    return CURVES[name](CUBE, times=40, rng=1)


def column(out, cube=CUBE):
    return cube.sel(configuration=out.selected.item()).values


class TestNaive:
    """The curve of the final decision on all samples, against scikit-learn."""

    def test_roc(self):
        out = curve_of("roc_curve")
        fpr, tpr, _ = sk.roc_curve(Y, column(out), drop_intermediate=False)
        upper = [tpr[fpr <= f + 1e-9].max() if np.isclose(fpr, f).any() else np.interp(f, fpr, tpr) for f in GRID]
        np.testing.assert_allclose(out.naive, upper, atol=1e-12)
        area = np.trapezoid(cs.roc_curve(made(n=200, m=1), times=40, rng=1).naive, GRID)
        assert area == pytest.approx(float(cs.score(made(n=200, m=1), "auc")[0]), abs=0.01)

    def test_precision_and_recall(self):
        out = curve_of("precision_recall_curve")
        precision, recall, _ = sk.precision_recall_curve(Y, column(out))
        precision, recall = precision[-2::-1], recall[-2::-1]  # the strictest threshold first, without its (0, 1)
        np.testing.assert_allclose(out.naive, [precision[recall >= r - 1e-12][0] for r in GRID], atol=1e-12)

    def test_smooth_calibration(self):
        out = curve_of("calibration_curve")
        p = column(out)
        inside = (p.min() - 1e-9 <= GRID) & (p.max() + 1e-9 >= GRID)
        order = np.argsort(p)
        expected = np.clip(lowess(Y[order][None], p[order][None], np.ones((1, len(Y))), GRID)[0], 0, 1)
        np.testing.assert_allclose(out.naive, np.where(inside, expected, np.nan), atol=1e-12)
        assert out.estimate.isnull().values.tolist() == (~inside).tolist()

    def test_binned_calibration(self):
        out = curve_of("binned")
        observed, predicted = binned_curve(Y, column(out), n_bins=10, strategy="quantile")
        np.testing.assert_allclose(out.observed, observed, atol=1e-12)
        np.testing.assert_allclose(out.predicted, predicted, atol=1e-12)
        np.testing.assert_array_equal(out.naive, out.observed)
        assert int(out.n.sum()) == len(Y)

    def test_decision(self):
        out = curve_of("decision_curve")
        p, t, share = column(out), out.threshold.values, Y.mean()
        odds = t / (1 - t)
        treated = p[:, None] > t
        net = (treated * Y[:, None]).mean(axis=0) - odds * (treated * (1 - Y)[:, None]).mean(axis=0)
        np.testing.assert_allclose(out.naive, net, atol=1e-12)
        np.testing.assert_allclose(out.treat_all, share - (1 - share) * odds, atol=1e-12)
        assert not out.treat_none.any()
        np.testing.assert_allclose(out.interventions_avoided, (out.estimate - out.treat_all) / odds, atol=1e-12)
        np.testing.assert_array_equal(t, np.arange(1, 100) / 100)


@pytest.mark.parametrize("name", CURVES)
class TestEveryCurve:
    def test_it_is_the_winner_judged_at_every_point(self, name):
        """Plain loops: choose in the bag, judge both choices on what was left out."""
        draws = cs.bootstrap(CUBE, 30, rng=3, strata="label")
        out = CURVES[name](CUBE, by="auc", draws=draws, rng=1)
        area, final = cs.score_draws(CUBE, "auc", draws).values, int(np.argmax(cs.score(CUBE, "auc").values))
        statistic, at = POINTS[name]

        def judged(j, left):
            p = CUBE.values[left, j]
            order = np.argsort(p)
            with np.errstate(all="ignore"):
                return STATISTICS[statistic](Y[left][order][None], p[order][None], np.ones((1, left.sum())), at)[0]

        chosen = np.argmax(area, axis=1)
        gaps = [judged(j, draw == 0) - judged(final, draw == 0) for j, draw in zip(chosen, draws.values, strict=True)]
        low = -at / (1 - at) if name == "decision_curve" else 0.0
        expected = np.clip(out.naive.values + np.nanmean(gaps, axis=0), low, 1.0)
        if name == "roc_curve":
            share = np.minimum(1, (1 - GRID) * (Y == 0).sum() / np.e / 2)
            expected = out.naive.values + share * (expected - out.naive.values)
            expected[:-1], expected[-1] = isotonic_regression(expected[:-1]).x, 1.0
        known = np.isfinite(out.estimate.values)
        assert known.sum() > 8
        np.testing.assert_allclose(out.estimate.values[known], expected[known], atol=1e-10)

    def test_labels(self, name):
        out = curve_of(name)
        assert out.estimate.dims == (DIMS[name],)
        assert out.metric.ndim == out.interval.ndim == out.method.ndim == 0
        assert out.attrs["call"].startswith(name.replace("binned", "calibration_curve"))
        assert (out.conf_low <= out.estimate + 1e-12).where(out.estimate.notnull(), True).all()
        assert (out.estimate <= out.conf_high + 1e-12).where(out.estimate.notnull(), True).all()
        cs.tidy(out)

    @pytest.mark.slow
    def test_weights_are_repeated_rows(self, name):
        """In the naive curve: what samples decide and how they judge does not depend on how they are written."""
        w = 1 + np.arange(len(Y)) % 3
        heavy = CUBE.assign_coords(weight=("sample", w))
        rows = cs.as_cube(np.repeat(CUBE.values, w, axis=0), np.repeat(Y, w), kind="probability")
        a, b = CURVES[name](heavy, times=40, rng=1), CURVES[name](rows, times=40, rng=1)
        np.testing.assert_allclose(a.naive, b.naive, atol=1e-12)
        if name == "binned":
            np.testing.assert_allclose(a.n, b.n)

    @pytest.mark.slow
    def test_order_of_samples_and_configurations(self, name):
        draws = cs.bootstrap(CUBE, 20, rng=3, strata="label")
        order = np.argsort(np.arange(len(Y)) * 37 % 79, kind="stable")
        moved = CURVES[name](CUBE.isel(sample=order, configuration=slice(None, None, -1)), draws=draws, rng=1)
        plain = CURVES[name](CUBE, draws=draws, rng=1)
        for variable in ("estimate", "naive", "conf_low"):
            np.testing.assert_allclose(moved[variable], plain[variable], atol=1e-10)

    def test_the_same_model_twice_has_no_optimism(self, name):
        twice = xr.concat([CUBE.isel(configuration=[0])] * 2, "configuration").assign_coords(configuration=["a", "b"])
        out = CURVES[name](twice.transpose("sample", "configuration"), times=40, rng=1)
        estimate = out.naive.values if name != "roc_curve" else np.append(isotonic_regression(out.naive[:-1]).x, 1.0)
        np.testing.assert_allclose(out.estimate, estimate, atol=1e-12)

    def test_any_decision(self, name):
        n = 200 if name == "binned" else 80  # no bin of a level is empty in a draw
        cube = made(n).assign_coords(sex=("sample", np.where(np.arange(n) % 2, "f", "m")))
        split = CURVES[name](cube, subgroup="sex", times=20, rng=1)
        assert split.estimate.dims == (DIMS[name], "sex")
        assert split.n_samples.values.tolist() == [n / 2, n / 2]
        mixed = CURVES[name](cube, select=cs.top_mean(2), adjust=cs.recalibrate("logistic"), times=20, rng=1)
        assert {"share", "slope"} <= set(mixed)

    def test_one_configuration_is_judged_as_it_is(self, name):
        out = CURVES[name](CUBE.isel(configuration=[0]), times=40, rng=1)
        np.testing.assert_allclose(out.estimate, out.naive, atol=1e-12)

    def test_figure(self, name):
        plot = {
            "roc_curve": cs.plot_roc,
            "precision_recall_curve": cs.plot_precision_recall,
            "calibration_curve": cs.plot_calibration,
            "binned": cs.plot_calibration,
            "decision_curve": cs.plot_decision,
        }[name]
        out = curve_of(name)
        ax = plot(out, title="a")
        assert ax.get_title(loc="left") == "a"
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert {"corrected", "as it looks", "95 % limits"} <= set(texts)
        with pytest.raises(cs.InputError, match="`curve` must"):
            plot(cs.bbc(CUBE, "auc", times=40, rng=1))


@pytest.mark.parametrize("name", [*CURVES, "specificity"])
@pytest.mark.parametrize("size", [80, 1100])
def test_draws_with_columns_of_their_own_are_judged_as_one_by_one(name, size):
    """Many winners are sorted draw by draw, few of them once: the same numbers, with ties and case weights."""
    statistic, at = POINTS.get(name, ("specificity_at", GRID))
    cube = made(size, 30).assign_coords(weight=("sample", 0.5 + np.arange(size) % 3))
    one = cs.net_benefit(0.2) if statistic == "net_benefit" else point(statistic, 0.1)
    points = replace(one, at=tuple(at.tolist()), statistic=statistic)
    data = problem_on(cube, points)
    weights = np.random.default_rng(1).poisson(1, (40, size)).astype(np.uint8)
    index = np.arange(40) * 7 % 30
    alone = [
        points.kernel(data.columns([j]), 1.0).scores(row[None])[0, 0] for j, row in zip(index, weights, strict=True)
    ]
    kernel = points.kernel(data, 1.0)
    np.testing.assert_allclose(kernel.judged(weights, index), alone, atol=1e-12)
    np.testing.assert_allclose(
        kernel.judged(weights[:2], index[[5, 5]]), kernel.scores(weights[:2])[:, index[5]], atol=1e-12
    )
    np.testing.assert_allclose(
        kernel.scores(weights)[:, 3], [kernel.scores(row[None])[0, 3] for row in weights], atol=1e-12
    )


@pytest.mark.slow
def test_levels_of_a_subgroup_become_lines():
    cube = CUBE.assign_coords(sex=("sample", np.where(np.arange(80) % 2, "f", "m")))
    out = cs.roc_curve(cube, subgroup="sex", times=40, rng=1)
    assert [text.get_text() for text in cs.plot_roc(out).get_legend().get_texts()] == ["f", "m", "guessing"]
    with pytest.raises(cs.InputError, match="has dims 'sex'"):
        cs.plot_decision(cs.decision_curve(cube, subgroup="sex", times=40, rng=1))


def test_roc_rises_from_any_noise_and_ends_at_one():
    g = np.random.default_rng(5)
    out = cs.roc_curve(cs.as_cube(g.random((40, 30)), np.arange(40) % 2, kind="score"), times=60, rng=1)
    for name in ("estimate", "conf_low", "conf_high", "band_low", "band_high"):
        assert (np.diff(out[name]) >= 0).all(), name
    assert float(out.estimate[-1]) == float(out.conf_low[-1]) == 1


@pytest.mark.slow
def test_a_cut_is_refused_where_the_curve_has_its_own_thresholds():
    for adjust in (cs.cut("youden"), [cs.recalibrate("logistic"), cs.cut("youden")]):
        with pytest.raises(cs.InputError, match="a decision curve has its own thresholds"):
            cs.decision_curve(CUBE, adjust=adjust)
    with_cut, without = (cs.roc_curve(CUBE, adjust=adjust, times=40, rng=1) for adjust in (cs.cut("youden"), None))
    np.testing.assert_array_equal(with_cut.naive, without.naive)


def test_what_was_said_is_said_once():
    small = cs.as_cube(np.random.default_rng(1).random((12, 3)), [1, 1, 1, *[0] * 9], kind="probability")
    draws = cs.bootstrap(small, 40, rng=1, strata="label")
    draws = draws.isel(draw=(draws[:, :3] == 0).any("sample").values & (draws[:, 3:] == 0).any("sample").values)
    with pytest.warns(cs.CvstatsWarning) as heard:
        cs.roc_curve(small, draws=draws, rng=1)
    (text,) = [str(one.message) for one in heard]
    assert text == "roc_curve: sensitivity_at: limits are NaN: 3 of a class is fewer than 5."


@pytest.mark.slow
def test_no_band_where_none_is_known():
    for cube in (CUBE.assign_coords(weight=("sample", np.ones(80))), CUBE.where(CUBE["sample"] > 3)):
        assert cs.roc_curve(cube, times=40, rng=1).band_low.isnull().all()
    assert cs.roc_curve(CUBE, select=cs.top_mean(2), times=40, rng=1).band_low.isnull().all()


def test_next_to_1_little_is_corrected_by_the_negatives_of_each_level_and_batch():
    sex = np.where(np.arange(80) % 4 == 0, "f", "m")
    cube = made(m=4).assign_coords(sex=("sample", sex))
    cube = cube.where(cube["sample"] != 7)  # nobody predicted this one, a negative
    draws = cs.bootstrap(cube, 30, rng=3, strata="label")
    split = cs.roc_curve(cube, subgroup="sex", draws=draws, rng=1)
    ratio = cs.winner(cube, cs.sensitivity_at(0.05), by="auc", subgroup="sex", draws=draws, rng=1)
    left = [((Y == 0) & (sex == level) & (np.arange(80) != 7)).sum() / np.e for level in ("f", "m")]
    want = ratio.naive + np.minimum(1, 0.05 * np.array(left) / 2) * (ratio.estimate - ratio.naive)
    near = split.sel(false_positive_rate=slice(0.9, 0.99)).estimate  # unmoved by what makes the curve monotone
    assert (np.abs(near - want).min("false_positive_rate") < 1e-10).all()
    twice = cs.roc_curve(cube.drop_vars("sex").expand_dims(dataset=["x", "y"]), draws=draws, rng=1)
    alone = cs.roc_curve(cube.drop_vars("sex"), draws=draws, rng=1)
    np.testing.assert_allclose(twice.estimate.sel(dataset="y"), alone.estimate, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in the sdist")
def test_corrected_is_nearer_the_truth_than_naive_at_every_point(monkeypatch):
    """By mean absolute error at each rate: over all designs, and beyond chance in those whose curves do not cross."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.roc_error import DESIGNS, run, together

    every = {design: run(design, 30) for design in DESIGNS}
    mean, error = together(list(every.values()))
    assert (mean < 0).all()  # at all 99 rates; the margin of 200 repetitions is 2.4 standard errors
    assert (mean < -2 * error).mean() > 0.9
    for design in ("good", "weak"):
        found = every[design]
        mean, error = together([found])
        assert (mean <= 2.5 * error).all()
        assert (mean < 0).mean() > 0.9
        assert np.abs(found["corrected"]).mean() < 0.85 * np.abs(found["naive"]).mean()
        assert abs(found["corrected"].mean()) < 0.25 * found["naive"].mean()
        assert found["covered"][:, 1:96].mean(axis=0).min() > 0.8
        assert found["band"].all(axis=1).mean() > 0.95


class TestSurvival:
    """Calibration at a horizon: Kaplan-Meier's estimate in bins of the predicted risk."""

    @staticmethod
    def cube(weight=None, rows=None):
        g = np.random.default_rng(3)
        x = g.normal(size=240)
        event_time, censored = g.exponential(5 * np.exp(-x)), g.exponential(20, size=240)
        time, event = np.minimum(event_time, censored).round(2) + 0.01, (event_time <= censored).astype(int)
        survival = np.exp(-np.exp(np.outer(x, [0.6, 1.0, 1.4])))[:, :, None]
        rows = np.arange(240) if rows is None else rows
        survival = xr.DataArray(survival[rows], dims=("sample", "configuration", "horizon"), coords={"horizon": [5.0]})
        return cs.as_cube(survival, time[rows], event=event[rows], kind="probability", weights=weight)

    @pytest.mark.slow
    def test_statsmodels_agrees(self):
        cube = self.cube()
        out = cs.calibration_curve(cube, binned=True, horizon=5, times=60, rng=1)
        risk = 1 - cube.isel(configuration=int(out.selected), horizon=0).values
        place = (risk[:, None] > np.quantile(risk, np.arange(1, 10) / 10)).sum(axis=1)
        for number in range(10):
            mine = place == number
            curve = SurvfuncRight(cube.label.values[mine], cube.event.values[mine])
            at = np.searchsorted(curve.surv_times, 5, "right")
            want = 1 - curve.surv_prob[at - 1] if at else 0.0
            assert out.observed[number].item() == pytest.approx(want, abs=1e-12)
            assert out.predicted[number].item() == pytest.approx(risk[mine].mean(), abs=1e-12)
            assert out.n[number] == mine.sum()
        assert out.attrs["call"].startswith("calibration_curve(binned=True, horizon=5, ")
        assert (out.conf_low <= out.estimate).all()
        assert (out.estimate <= out.conf_high).all()
        cs.plot_calibration(out)

    def test_lost_from_sight_at_the_horizon(self):
        """A study that ends at the horizon: who is censored then is known to have had no event by it."""
        cube = self.cube()
        late = cube.label > 5
        ended = cube.assign_coords(label=cube.label.where(~late, 5.0), event=cube.event.where(~late, 0))
        bins = [bin_at("survival_bin_observed", 5, number) for number in range(10)]
        for metric in (cs.survival_observed_expected(5), *bins):
            np.testing.assert_allclose(cs.score(ended, metric), cs.score(cube, metric), atol=1e-12)

    @pytest.mark.slow
    def test_weights_are_rows(self):
        times = np.random.default_rng(1).integers(1, 3, 240)
        weighed = cs.calibration_curve(self.cube(times.astype(float)), binned=True, horizon=5, times=60, rng=1)
        rows = cs.calibration_curve(
            self.cube(rows=np.repeat(np.arange(240), times)), binned=True, horizon=5, times=60, rng=1
        )
        for name in ("naive", "predicted", "n"):
            np.testing.assert_allclose(weighed[name], rows[name], atol=1e-12)

    def test_what_it_needs_is_said(self):
        with pytest.raises(cs.InputError, match="needs `horizon`, a time, and binned=True"):
            cs.calibration_curve(self.cube(), horizon=5)
        with pytest.raises(cs.InputError, match="`horizon` is for survival times"):
            cs.calibration_curve(CUBE, horizon=5)
        with pytest.raises(cs.InputError, match=r"needs predictions for that time; the cube has the horizons 5"):
            cs.calibration_curve(self.cube(), binned=True, horizon=6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_net_benefit_is_one_number_alone_in_a_list_and_on_the_curve(dtype):
    predicted = np.tile([0.1, 0.2, 0.1, 0.3, 0.9, 0.6, 0.7, 0.7, 0.3, 0.2], 4)  # at thresholds, as shares of trees are
    cube = cs.as_cube(predicted.astype(dtype), [0, 1, 1, 0, 1, 0, 1, 1, 0, 0] * 4, kind="probability")
    metrics = [cs.net_benefit(at) for at in (0.1, 0.2, 0.3, 0.6, 0.7, 0.9)]
    alone = [cs.score(cube, metric).item() for metric in metrics]
    exactly = cs.as_cube(predicted, cube["label"].values, kind="probability")
    np.testing.assert_allclose(alone, [cs.score(exactly, metric).item() for metric in metrics], rtol=1e-12)
    np.testing.assert_allclose(cs.bbc(cube, metrics, times=50, rng=1).naive, alone, rtol=1e-12)
    curve = cs.decision_curve(cube, times=50, rng=1).naive
    np.testing.assert_allclose(curve.sel(threshold=[0.1, 0.2, 0.3, 0.6, 0.7, 0.9], method="nearest"), alone, rtol=1e-12)
