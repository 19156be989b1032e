"""Calibration, likelihood ratios, and points of curves: against R (tests/reference/curves.R) and scikit-learn; laws."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

import cvstats as cs
from cvstats.kernels import columns
from cvstats.kernels.columns import lowess

R = json.loads((Path(__file__).parents[1] / "reference" / "curves.json").read_text())
Y, P = np.array(R["label"]), np.array(R["prediction"])
WEIGHTS = {"none": None, "whole": np.array(R["whole"]), "real": np.array(R["real"])}
POINTS = [cs.sensitivity_at(0.85), cs.specificity_at(0.7), cs.partial_auc(0.05, 0.4)]
NAMES = [
    "calibration_intercept", "calibration_slope", "observed_expected", "ici", "recall",
    "positive_likelihood_ratio", "negative_likelihood_ratio",
]  # fmt: skip
EVERY = [*NAMES, *POINTS]


def cube_of(p=P, y=Y, **more):
    return cs.as_cube(p, y, kind="probability", positive=1, **more)


class TestAgainstR:
    @pytest.mark.parametrize("at", range(5))
    def test_rates_at_fixed_rates(self, at):
        rate = R["rates"][at]
        np.testing.assert_allclose(cs.score(cube_of(), cs.sensitivity_at(rate)), R["sensitivity_at"][at], atol=1e-12)
        np.testing.assert_allclose(cs.score(cube_of(), cs.specificity_at(rate)), R["specificity_at"][at], atol=1e-12)

    def test_partial_area(self):
        np.testing.assert_allclose(cs.score(cube_of(), cs.partial_auc(0, 0.1)), R["partial_auc"]["first"], atol=1e-12)
        found = cs.score(cube_of(), cs.partial_auc(0.15, 0.6))
        np.testing.assert_allclose(found, R["partial_auc"]["middle"], atol=1e-12)
        np.testing.assert_allclose(cs.score(cube_of(), cs.partial_auc(0, 1)), cs.score(cube_of(), "auc"), atol=1e-12)

    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_logistic_fits(self, weights):
        cube = cube_of(weights=WEIGHTS[weights])
        intercept, slope = R["intercept_and_slope"][weights]
        np.testing.assert_allclose(cs.score(cube, "calibration_intercept"), intercept, atol=1e-10)
        np.testing.assert_allclose(cs.score(cube, "calibration_slope"), slope, atol=1e-10)

    def test_a_slope_may_be_negative(self):
        np.testing.assert_allclose(cs.score(cube_of(1 - P[:, :1]), "calibration_slope"), R["backwards"][1], atol=1e-10)

    @pytest.mark.parametrize("weights", ["none", "whole"])
    def test_smooth(self, weights):
        w = np.ones(len(Y)) if WEIGHTS[weights] is None else WEIGHTS[weights]
        for j, (at, expected) in enumerate(zip(R["distinct"], R["lowess"][weights], strict=True)):
            order = np.argsort(P[:, j])
            found = lowess(Y[None, order], P[None, order, j], w[None, order].astype(float), np.array(at))[0]
            np.testing.assert_allclose(found, expected, atol=1e-10)

    def test_pooling_many_neighbours_does_not_show(self, monkeypatch):
        rng = np.random.default_rng(1)
        for p in (rng.uniform(size=4000), rng.beta(1, 6, 4000), np.round(rng.uniform(size=4000), 2)):
            p = np.sort(p)[None]
            y, w = rng.uniform(size=p.shape) < p**1.3, rng.poisson(1, (2, p.size)).astype(float)
            at = np.linspace(p.min(), p.max(), 21)
            with monkeypatch.context() as patch:
                patch.setattr(columns, "POOLED", 10**9)
                exact = lowess(y, p, w, at)
            np.testing.assert_allclose(lowess(y, p, w, at), exact, atol=2e-3)

    def test_integrated_calibration_index_is_harrells_eavg(self):
        np.testing.assert_allclose(cs.score(cube_of(), "ici"), R["eavg"], atol=1e-10)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_likelihood_ratios(self, weights):
        cube, w = cube_of(weights=WEIGHTS[weights]), WEIGHTS[weights]
        theirs = [sk.class_likelihood_ratios(Y, column > 0.5, sample_weight=w) for column in P.T]
        np.testing.assert_allclose(cs.score(cube, "positive_likelihood_ratio"), [one[0] for one in theirs], rtol=1e-12)
        np.testing.assert_allclose(cs.score(cube, "negative_likelihood_ratio"), [one[1] for one in theirs], rtol=1e-12)

    def test_recall(self):
        cube = cube_of()
        assert cs.score(cube, "recall_score").metric.item() == "recall"
        np.testing.assert_array_equal(cs.score(cube, "recall"), cs.score(cube, "sensitivity"))
        y, p = np.arange(60) % 3, (np.arange(60) * 7 % 11 + np.arange(60)) % 3
        found = cs.score(cs.as_cube(p[:, None], y, kind="label"), "recall")
        np.testing.assert_allclose(found, sk.recall_score(y, p, average="macro"), rtol=1e-13)

    def test_observed_over_expected(self):
        w = WEIGHTS["real"]
        found = cs.score(cube_of(weights=w), "observed_expected")
        np.testing.assert_allclose(found, (w @ Y) / (w @ P), rtol=1e-12)


class TestLaws:
    @pytest.mark.parametrize("metric", EVERY, ids=str)
    def test_weights_are_repeated_rows(self, metric):
        w = WEIGHTS["whole"]
        repeated = cube_of(np.repeat(P, w, axis=0), np.repeat(Y, w))
        np.testing.assert_allclose(cs.score(cube_of(weights=w), metric), cs.score(repeated, metric), atol=1e-12)

    @pytest.mark.parametrize("metric", EVERY, ids=str)
    def test_order_of_samples_and_configurations(self, metric):
        order = np.argsort(np.arange(len(Y)) * 37 % 89, kind="stable")
        moved = cs.score(cube_of(P[order][:, ::-1], Y[order]), metric)
        np.testing.assert_allclose(moved[::-1], cs.score(cube_of(), metric), atol=1e-12)

    @pytest.mark.parametrize("metric", EVERY, ids=str)
    def test_draws_are_repeated_rows(self, metric):
        cube = cube_of()
        draws = cs.bootstrap(cube, 3, rng=1, strata="label")
        for draw, row in zip(draws.values, cs.score_draws(cube, metric, draws).values, strict=True):
            own = cs.score(cube_of(np.repeat(P, draw, axis=0), np.repeat(Y, draw)), metric)
            np.testing.assert_allclose(row, own, atol=1e-12)

    @pytest.mark.parametrize("metric", EVERY, ids=str)
    def test_repeats_are_averaged_and_gaps_left_out(self, metric):
        two = np.stack([P, P[:, [1, 2, 0]]], axis=2)
        each = [cs.score(cube_of(two[..., r]), metric).values for r in (0, 1)]
        np.testing.assert_allclose(cs.score(cube_of(two), metric), np.mean(each, axis=0), atol=1e-12)
        holes = P.copy()
        holes[5:9, 1] = np.nan
        kept = np.delete(np.arange(len(Y)), np.arange(5, 9))
        expected = cs.score(cube_of(P[kept], Y[kept]), metric)[1]
        np.testing.assert_allclose(cs.score(cube_of(holes), metric)[1], expected, atol=1e-12)

    def test_exchanging_the_classes(self):
        turned = cs.as_cube(1 - P, 1 - Y, kind="probability", positive=1)
        for rate in (0.3, 0.8, 1.0):
            a, b = cs.score(cube_of(), cs.sensitivity_at(rate)), cs.score(turned, cs.specificity_at(rate))
            np.testing.assert_allclose(a, b, atol=1e-12)
        a, b = (cs.score(one, "calibration_slope") for one in (cube_of(), turned))
        np.testing.assert_allclose(a, b, atol=1e-9)
        a, b = (cs.score(one, "calibration_intercept") for one in (cube_of(), turned))
        np.testing.assert_allclose(a, -b, atol=1e-9)

    def test_rates_ignore_monotone_maps(self):
        for metric in POINTS:
            np.testing.assert_allclose(cs.score(cube_of(P**3), metric), cs.score(cube_of(), metric), atol=1e-12)


class TestTargets:
    def test_they_never_choose(self):
        for call in (cs.winner, cs.bbc, cs.cvt, cs.tt, cs.best_set, cs.drop_configurations):
            with pytest.raises(cs.InputError, match=r"has a target \(1\) instead of a direction"):
                call(cube_of(folds=np.arange(90) % 3), "calibration_slope")
        with pytest.raises(cs.InputError, match="never choose"):
            cs.winner(cube_of(), "auc", by="calibration_slope")
        with pytest.raises(cs.InputError, match="never choose"):
            cs.contrast(cube_of(), "observed_expected", a=[0, 1], b=[2])

    def test_estimate_is_naive_plus_the_median_of_differences(self):
        cube = cube_of()
        draws = cs.bootstrap(cube, 60, rng=2, strata="label")
        out = cs.winner(cube, ["calibration_slope", "observed_expected"], by="auc", draws=draws, rng=1)
        area, final = cs.score_draws(cube, "auc", draws).values, int(out.selected)
        for at, metric in enumerate(out.metric.values):
            left = cs.score_draws(cube, metric, (draws == 0).astype(int)).values
            inside = np.argmax(area, axis=1)
            gap = np.median(left[np.arange(60), inside] - left[:, final])
            naive = float(cs.score(cube, metric)[final])
            assert out.estimate.values[at] == pytest.approx(naive + gap, abs=1e-10)
            expected = abs(out.estimate.values[at] - 1) - abs(naive - 1)
            assert out.optimism.values[at] == pytest.approx(expected, abs=1e-12)
        plain = cs.bbc(cube, "calibration_slope", by="auc", draws=draws)
        left = cs.score_draws(cube, "calibration_slope", (draws == 0).astype(int)).values
        assert float(plain.estimate) == pytest.approx(np.median(left[np.arange(60), inside]), abs=1e-10)

    def test_limits_as_they_are_and_on_the_log_scale(self):
        metrics = ["calibration_slope", "calibration_intercept", "observed_expected", "positive_likelihood_ratio"]
        out = cs.winner(cube_of(), metrics, by="auc", times=200, rng=1)
        assert (out.conf_low < out.estimate).all()
        assert (out.estimate < out.conf_high).all()
        one, centre = out.sel(metric="calibration_slope"), out.estimate.values
        assert float(one.conf_high + one.conf_low) == pytest.approx(2 * float(one.estimate))
        for at in (2, 3):
            assert float(out.conf_low[at] * out.conf_high[at]) == pytest.approx(centre[at] ** 2)

    def test_few_events_say_nothing(self):
        y = Y.copy()
        y[np.flatnonzero(Y)[9:]] = 0
        with pytest.warns(cs.CvstatsWarning, match="calibration_slope is NaN: 9 samples of a class are fewer than 10"):
            out = cs.winner(cube_of(y=y), ["auc", "calibration_slope"], times=60, rng=1)
        assert np.isnan(out.estimate.values).tolist() == [False, True]
        assert np.isfinite(cs.score(cube_of(y=y), "calibration_slope")).all()

    def test_what_has_no_fit_is_nan(self):
        apart = np.where(Y == 1, 0.8, 0.3)[:, None] + np.arange(90)[:, None] / 1000
        with pytest.warns(cs.CvstatsWarning, match="calibration_slope is NaN"):
            assert np.isnan(
                cs.score(cube_of(np.hstack([apart, 1 - apart]), configurations=["a", "b"]), "calibration_slope")
            ).all()
        with pytest.warns(cs.CvstatsWarning, match="positive_likelihood_ratio is NaN"):
            assert np.isnan(cs.score(cube_of(apart), "positive_likelihood_ratio")).all()

    def test_words(self):
        assert cs.calibration_slope.target == 1
        assert repr(cs.calibration_slope).startswith("<metric calibration_slope: target")


class TestWilson:
    @pytest.mark.parametrize(
        ("metric", "which"),
        [
            ("sensitivity", lambda y, hard: y == 1),
            ("recall", lambda y, hard: y == 1),
            ("specificity", lambda y, hard: y == 0),
            ("ppv", lambda y, hard: hard == 1),
            ("precision", lambda y, hard: hard == 1),
            ("npv", lambda y, hard: hard == 0),
        ],
    )
    def test_of_a_share(self, metric, which):
        from statsmodels.stats.proportion import proportion_confint

        hard = (P[:, 0] > 0.5).astype(int)
        own = which(Y, hard)
        right = int((hard == Y)[own].sum())
        out = cs.winner(cube_of(P[:, :1]), metric, interval="wilson", times=50, rng=1)
        low, high = proportion_confint(right, int(own.sum()), method="wilson")
        np.testing.assert_allclose([out.conf_low, out.conf_high], [low, high], atol=1e-12)

    def test_not_of_several_classes(self):
        cube = cs.as_cube(np.arange(60)[:, None] % 3, np.arange(60) * 7 % 11 % 3, kind="label")
        with pytest.raises(cs.InputError, match="of two classes, not recall"):
            cs.winner(cube, "recall", interval="wilson", times=50)


@pytest.mark.parametrize("bad", [-0.1, 1.5, "a", True, np.nan])
def test_rates_that_are_none(bad):
    for make in (cs.sensitivity_at, cs.specificity_at, lambda value: cs.partial_auc(0, value)):
        with pytest.raises(cs.InputError, match="must be a rate from 0 to 1"):
            make(bad)


def test_ends_in_order():
    with pytest.raises(cs.InputError, match="`low` must be below `high`"):
        cs.partial_auc(0.5, 0.5)


def test_points_of_one_curve_judged_together_or_alone():
    cube = cube_of()
    many = [cs.sensitivity_at(rate) for rate in (0.5, 0.8, 0.9)] + [cs.net_benefit(t) for t in (0.2, 0.4)]
    out = cs.winner(cube, [*many, "brier"], by="auc", times=60, rng=1, strata="label")
    for at, metric in enumerate(many):
        alone = cs.winner(cube, metric, by="auc", times=60, rng=1, strata="label")
        for name in ("estimate", "conf_low", "conf_high", "naive", "optimism", "bbc_plain"):
            assert float(out[name][at]) == pytest.approx(float(alone[name]), abs=1e-12), (metric, name)


def test_at_a_prior_points_are_not_joined():
    cube = cube_of()
    shifted = [cs.at_prior(cs.net_benefit(t), {1: 0.1}) for t in (0.2, 0.4)]
    out = cs.winner(cube, shifted, by="auc", times=40, rng=1)
    alone = cs.winner(cube, shifted[0], by="auc", times=40, rng=1)
    assert float(out.estimate[0]) == pytest.approx(float(alone.estimate), abs=1e-12)
    assert replace(shifted[0], bind=None).curve  # joined only until it knows the cube's classes


def test_tied_predictions_have_a_window_without_width():
    """Most samples share one prediction: the local fit there is their mean, without overflow."""
    y = np.arange(40) % 4 == 0
    p = np.where(np.arange(40) < 36, 0.25, 0.9)
    cube = cs.as_cube(p[:, None], y.astype(int), kind="probability")
    with pytest.warns(cs.CvstatsWarning, match="undefined in 20 of 20 draws"):  # far from both values
        smooth = cs.calibration_curve(cube, times=20, rng=1)
    assert float(smooth["naive"].sel(predicted=0.25)) == pytest.approx(y[:36].mean(), abs=1e-12)
    assert np.isfinite(float(cs.score(cube, "ici")[0]))
