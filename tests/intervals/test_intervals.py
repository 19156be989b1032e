"""Interval methods: against other software, by hand, at the edges, and what they refuse."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import cvstats as cs
from cvstats.cube.arrays import problem_on
from cvstats.intervals import METHODS, get_method, interval_limits, quantiles
from cvstats.intervals.calibrated_limits import (
    LogScale,
    PlainScale,
    UnitScale,
    bbc_x,
    constants,
    scale_of,
    standing_out,
    variance_of,
    wilson_limits,
)
from cvstats.intervals.evidence import Evidence
from cvstats.intervals.resampled import _seed, bca_limits, outer_estimates
from cvstats.metrics import get_metric
from cvstats.protocols.common import share_seen, within_folds
from cvstats.resample import Bootstrap

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "intervals.json").read_text())
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def labels_cube(correct):
    """Return a cube of 0/1 predictions that are right where `correct` is 1."""
    correct = np.asarray(correct)
    labels = np.arange(len(correct)) % 2
    return cs.as_cube(np.where(correct == 1, labels[:, None], 1 - labels[:, None]), labels, kind="label")


def numbers_cube(n=40, c=6, seed=0):
    """Return a cube of predicted numbers; later configurations are noisier."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    return cs.as_cube(truth[:, None] + rng.normal(size=(n, c)) * np.linspace(0.5, 1.5, c), truth, kind="value")


def scores_cube(n=60, c=5, seed=0, shift=1.2):
    """Return a cube of scores of two classes; every third sample is positive."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 3 == 0).astype(int)
    return cs.as_cube(rng.normal(size=(n, c)) + shift * labels[:, None], labels, kind="score")


def evidence(metric="accuracy", **changes):
    """Return evidence of three configurations, with whatever is changed."""
    values = {
        "metric": get_metric(metric),
        "estimate": 0.75,
        "bbc": 0.75,
        "naive": 0.8,
        "scores": np.array([0.8, 0.7, 0.6]),
        "variance": np.array([0.8 * 0.2, 0.7 * 0.3, 0.6 * 0.4]) / 50,
        "chosen": np.array([0.8, 0.8, 0.8, 0.7, 0.6]),
        "values": np.linspace(0.6, 0.9, 101),
        "n": 50,
        "samples": 50,
        "smallest_class": 50,
        "wins": np.array([0.6, 0.2, 0.2]),
    }
    return Evidence(**{**values, **changes})


def both(out):
    return [float(out.conf_low), float(out.conf_high)]


class TestPercentile:
    def test_quantiles_are_of_type_7(self):
        low, high, error = cs.percentile().limits(evidence(values=np.arange(11.0)), 0.9)
        np.testing.assert_allclose([low, high], [0.5, 9.5])
        assert error == pytest.approx(np.std(np.arange(11), ddof=1))

    def test_is_the_interval_of_the_kept_draws(self):
        out = cs.bbc(cs.simulate_cube(40, 10, rng=1), "accuracy", rng=1, keep_draws=True)
        draws = out.draw_estimate.values
        np.testing.assert_allclose(both(out), np.quantile(draws, [0.025, 0.975]))
        np.testing.assert_allclose([out.bound_low, out.bound_high], np.quantile(draws, [0.05, 0.95]))

    def test_two_draws_have_a_spread_and_one_has_none(self):
        low, high, error = cs.percentile().limits(evidence(values=np.array([0.2, 0.4])), 0.5)
        assert (low, high, error) == pytest.approx((0.25, 0.35, np.sqrt(0.02)))
        assert np.isnan(cs.percentile().limits(evidence(values=np.array([0.3])), 0.5)[2])

    def test_no_draws_give_nan(self):
        assert np.isnan(cs.percentile().limits(evidence(values=np.array([])), 0.95)).all()


class TestCalibratedByHand:
    def test_wilson_limits_at_the_effective_size(self):
        found = cs.calibrated(kappa=1.3, psi=1.0, safe_upper=False).limits(evidence(estimator="bbc_ncv"), 0.95)
        selection = np.var([0.8, 0.8, 0.8, 0.7, 0.6], ddof=1)
        wobble = 0.75 * 0.25
        size = wobble / (1.3 * wobble / 50 + selection)
        t = stats.t.ppf(0.975, 49)
        np.testing.assert_allclose(found[:2], wilson_limits(0.75, size, t), rtol=1e-12)
        assert found[2] == pytest.approx(np.sqrt(1.3 * wobble / 50 + selection))

    @pytest.mark.parametrize("metric", ["accuracy", "auc"])
    def test_bbc_x_is_the_centre_of_the_lower_limit_of_shares(self, metric):
        given, t = evidence(metric), stats.t.ppf(0.975, 49)
        selection, counts = np.var([0.8, 0.8, 0.8, 0.7, 0.6], ddof=1), metric == "accuracy"
        centre = bbc_x(given)
        assert centre > given.estimate

        def at(c):
            return wilson_limits(c, c * (1 - c) / (1.2 * c * (1 - c) / 50 + selection), t)

        low, high = cs.calibrated(safe_upper=False).limits(given, 0.95)[:2]
        assert low == pytest.approx(at(centre if counts else 0.75)[0])
        assert high == pytest.approx(at(0.75)[1])

    def test_few_errors_have_poissons_limit(self):
        for errors in (0.5, 1, 2, 3):
            given = evidence(naive=1 - errors / 50, scores=np.array([1 - errors / 50, 0.5, 0.5]))
            n_eff = scale_of(given.metric).spread(given, 1.0, 0.0)[0]
            fewest = stats.gamma.ppf(0.025, errors / 50 * n_eff)  # so many errors are expected at least
            at_least = 1 - fewest / n_eff
            assert cs.calibrated().limits(given, 0.95)[1] == pytest.approx(at_least)
            assert cs.calibrated(safe_upper=False).limits(given, 0.95)[1] < at_least

    def test_no_error_has_no_upper_limit_and_four_have_wilsons(self):
        assert cs.calibrated().limits(evidence(naive=1.0, scores=np.array([1.0, 0.5, 0.5])), 0.95)[1] == 1
        some = evidence(naive=0.92, scores=np.array([0.92, 0.5, 0.5]), wins=np.array([0.4, 0.4, 0.2]))
        assert cs.calibrated().limits(some, 0.95) == cs.calibrated(safe_upper=False).limits(some, 0.95)

    def test_loss_on_the_log_scale(self):
        given = evidence(
            "mse",
            estimate=2.0,
            bbc=2.0,
            naive=1.8,
            scores=np.array([1.8, 4.0]),
            variance=np.array([0.4, 0.1]),
            chosen=np.array([1.8, 1.8, 4.0]),
            wins=np.array([1.0, 0.0]),
            estimator="bbc_ncv",
        )
        low, high, error = cs.calibrated(kappa=1.5, psi=1.0).limits(given, 0.95)
        own = 0.4 / 1.8**2  # that of the configuration that won
        se = np.sqrt(1.5 * own + np.var([1.8, 1.8, 4.0], ddof=1) / 4)
        t = stats.t.ppf(0.975, 49)
        np.testing.assert_allclose([low, high], 2 * np.exp([-t * se, t * se]))
        assert error == pytest.approx(2 * se)

    def test_relative_variance_of_the_pool_by_hand(self):
        given = evidence("mse", estimate=2.0, scores=np.array([1.5, 3.0]), variance=np.array([0.02, 0.3]))
        given = replace(given, chosen=np.array([1.5, 1.5, 3.0]), wins=None)
        scale = scale_of(given.metric)
        pooled = 1.7 * 0.32 / (1.5**2 + 3.0**2) + 0.6 * 0.75 / 2.0**2  # var(1.5, 1.5, 3) = .75
        assert scale.spread(given, 1.7, 0.6)[0] == pytest.approx(np.sqrt(pooled))
        quiet = replace(given, wins=np.array([1.0, 0.0]))  # the winners are less noisy than the pool, and they count
        own = 1.7 * 0.02 / 1.5**2 + 0.6 * 0.75 / 2.0**2
        assert scale.spread(quiet, 1.7, 0.6)[0] == pytest.approx(np.sqrt(own))
        gap = replace(given, scores=np.array([1.5, 3.0, np.nan]), variance=np.array([0.02, 0.3, np.nan]))
        assert scale.spread(gap, 1.7, 0.6)[0] == pytest.approx(np.sqrt(pooled))
        for perfect in (replace(given, estimate=0.0), replace(given, scores=np.zeros(2), estimate=1.0)):
            assert scale.spread(perfect, 1.7, 0.6)[0] == 0
        r2 = replace(given, metric=get_metric("r2"), estimate=-1.0, scores=np.array([-0.5, -2.0]))
        assert scale_of(r2.metric).spread(r2, 1.7, 0.6)[0] == pytest.approx(np.sqrt(pooled))  # losses are 1 - r2

    def test_groups_count_as_units(self):
        few, many = evidence(n=10), evidence(n=50)
        method = cs.calibrated()
        assert method.limits(few, 0.95)[0] < method.limits(many, 0.95)[0]

    def test_effective_size_is_capped_at_n(self):
        quiet = evidence(variance=np.full(3, 1e-6))
        scale = scale_of(quiet.metric)
        assert scale.spread(quiet, 1.0, 0.0)[0] == 50

    def test_effective_size_by_hand(self):
        noisy = evidence(variance=np.array([0.16, 0.21, 0.24]) / 20)
        assert scale_of(noisy.metric).spread(noisy, 1.0, 0.0)[0] == pytest.approx(20)
        # Matthews' coefficient has a range of 2: theta = (score + 1) / 2, and variances are divided by 4
        given = evidence("mcc", scores=np.array([0.6, 0.2]), variance=np.array([0.04, 0.06]), wins=None)
        assert scale_of(given.metric).spread(given, 1.0, 0.0)[0] == pytest.approx((0.8 * 0.2 + 0.6 * 0.4) / 0.025)
        spread = scale_of(given.metric).spread(given, 1.3, 0.5)
        assert spread[2] == pytest.approx(0.5 * np.var([0.8, 0.8, 0.8, 0.7, 0.6], ddof=1) / 4)
        loss = evidence("error_rate", scores=np.array([0.3, 0.4]), variance=np.array([0.01, 0.02]), wins=None)
        assert scale_of(loss.metric).spread(loss, 1.0, 0.0)[0] == pytest.approx((0.21 + 0.24) / 0.03)
        gap = evidence(scores=np.array([0.8, 0.7, np.nan]), variance=np.array([0.02, 0.01, np.nan]), wins=None)
        assert scale_of(gap.metric).spread(gap, 1.0, 0.0)[0] == pytest.approx(0.37 / 0.03)
        tiny = evidence(variance=np.full(3, 10.0))
        assert scale_of(tiny.metric).spread(tiny, 1.0, 0.0)[0] == 1.0

    def test_degenerate_cases(self):
        scale = UnitScale(best=1.0, worst=0.0)
        still = evidence(scores=np.ones(3), variance=np.zeros(3), chosen=np.ones(5))
        assert scale.spread(still, 1.3, 1.0)[0] == 50  # both sums vanish
        assert scale.size(scale.spread(still, 1.3, 1.0), 1.0) == pytest.approx(50 / 1.3)  # V_s = 0
        edge = scale.spread(evidence(), 1.0, 1.0)
        assert scale.size(edge, 1.0) == scale.size(edge, 1 - 1 / 100)  # c is kept off the end

    @pytest.mark.parametrize(
        ("n_eff", "centre", "kept"), [(10, 1.0, 0.95), (10, 0.0, 0.05), (10, 0.93, 0.93), (1, 1, 0.5)]
    )
    def test_size_by_hand(self, n_eff, centre, kept):
        wobble = kept * (1 - kept)
        found = UnitScale(best=1.0, worst=0.0).size((n_eff, 1.3, 0.002), centre)
        assert found == pytest.approx(wobble / (1.3 * wobble / n_eff + 0.002))

    def test_less_than_one_hit_has_no_lower_limit(self):
        scale = UnitScale(best=1.0, worst=0.0)
        assert scale.limits((10.0, 1.3, 0.002), 0.099, 2.0)[0] == 0
        assert scale.limits((10.0, 1.3, 0.002), 0.101, 2.0)[0] > 0
        assert scale.limits((10.0, 1.3, 0.002), 0.099, 2.0)[1] == pytest.approx(
            scale.limits((10.0, 1.3, 0.002), 0.101, 2.0)[1], abs=0.01
        )

    @pytest.mark.parametrize(
        ("best", "worst", "width"), [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, -1.0, 2.0), (0.0, 2.0, 2.0)]
    )
    def test_errors_are_in_the_metrics_unit(self, best, worst, width):
        scale = UnitScale(best=best, worst=worst)
        assert scale.error((24.0, 1.0, 0.0), 0.4) == pytest.approx(0.1 * width)  # .4 * .6 / 24 = .1 ** 2
        assert [scale.back(0.0), scale.back(1.0)] == [worst, best]
        assert [scale.forward(worst), scale.forward(best)] == [0.0, 1.0]

    def test_matthews_correlation_by_hand(self):
        """A range of width 2: scores, variances and the result are mapped to [0, 1] and back."""
        given = evidence(
            "mcc", estimate=0.5, bbc=0.5, naive=0.6, scores=np.array([0.6, 0.4]), wins=np.array([0.5, 0.5])
        )  # two configurations, with inner predictions: kappa .9 * 1.75
        given = replace(given, variance=np.array([0.012, 0.016]), chosen=np.array([0.6, 0.6, 0.4]), estimator="bbc_ncv")
        theta, n = np.array([0.8, 0.7]), 50
        n_eff = min(n, np.sum(theta * (1 - theta)) / (0.028 / 4))
        c = 0.75
        size = c * (1 - c) / (0.9 * 1.75 * c * (1 - c) / n_eff + np.var([0.6, 0.6, 0.4], ddof=1) / 4)
        low, high = wilson_limits(c, size, stats.t.ppf(0.975, 49))
        found = cs.calibrated().limits(given, 0.95)
        np.testing.assert_allclose(found, [2 * low - 1, 2 * high - 1, 2 * np.sqrt(c * (1 - c) / size)], rtol=1e-9)

    def test_noise_without_room_for_it(self):
        """All scores at the end of the range but variances above zero: the size of the sample is all there is."""
        given = evidence(scores=np.ones(3), variance=np.full(3, 0.01))
        assert UnitScale(best=1.0, worst=0.0).spread(given, 1.3, 1.0)[0] == 50

    @pytest.mark.parametrize(("bbc", "expected"), [(0.65, 0.7), (0.7, 0.7), (0.85, 0.85), (0.8, 0.8)])
    def test_bbc_x_at_and_beyond_its_ends(self, bbc, expected):
        """Below the mean of all configurations (.7) it is the mean; at the naive score (.8) and above it is BBC."""
        assert bbc_x(evidence(bbc=bbc)) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("wins", "own"),
        [
            ([0.5, 0.25, 0.0, 0.25, 0.0, 0.0], (0.5 * 0.01 / 0.0625 + 0.25 * 0.02 / 0.25) / 0.75),
            ([0.0, 0.0, 0.0, 0.5, 0.3, 0.2], 0.045 / 1.3125),
            ([0.2, 0.0, 0.1, 0.3, 0.0, 0.4], 0.01 / 0.0625),
        ],
    )
    def test_relative_variance_of_winners_that_have_one(self, wins, own):
        """Losses .25, .5, 1, then an infinite one, one whose variance is unknown, and none at all."""
        given = evidence(
            "mse",
            estimate=0.5,
            scores=np.array([0.25, 0.5, 1.0, np.inf, 0.3, 0.0]),
            variance=np.array([0.01, 0.02, 0.01, 0.5, np.nan, 0.005]),
            chosen=np.array([0.25, 0.5]),
            wins=np.array(wins),
        )
        if wins[2]:
            own = (0.2 * 0.01 / 0.0625 + 0.1 * 0.01 / 1.0) / 0.3
        error = LogScale(best=0.0, worst=np.inf).spread(given, 1.75, 1.0)[0]
        assert error == pytest.approx(np.sqrt(1.75 * own + np.var([0.25, 0.5], ddof=1) / 0.25))

    def test_quantiles_are_taken_along_the_last_axis(self):
        values = np.array([[0.1, 0.5, 0.9, np.nan], [3.0, 1.0, 2.0, 4.0]])
        found = quantiles(values, [0.0, 0.4, 0.5, 0.6])
        np.testing.assert_allclose(found, [[0.1, 0.42, 0.5, 0.58], [1.0, 2.2, 2.5, 2.8]])
        np.testing.assert_allclose(quantiles(values[0], [0.0, 0.5, 1.0]), [0.1, 0.5, 0.9])

    def test_variance_of_what_draws_chose(self):
        for chosen, expected in (([], 0.0), ([0.7], 0.0), ([0.7, 0.9], 0.02), ([0.7, np.inf, 0.9], 0.02)):
            assert variance_of(np.array(chosen)) == pytest.approx(expected)

    def test_an_upper_limit_is_not_lowered_by_what_was_not_seen(self):
        given = evidence("log_loss", estimate=0.3, bbc=0.3, naive=0.25, scores=np.array([0.25, 0.3, 0.4]))
        plain = cs.calibrated().limits(given, 0.95)
        assert cs.calibrated().limits(replace(given, unseen=0.31), 0.95) == plain
        more = cs.calibrated().limits(replace(given, unseen=30.0), 0.95)
        share = 1 - 0.025 ** (1 / 50)
        assert more == pytest.approx((plain[0], (1 - share) * 0.3 + share * 30, plain[2]))

    @pytest.mark.parametrize(("doubtful", "given"), [(0.995, 0.005), (0.9, 0.1), (0.6, 1 / 8)])
    def test_errors_of_those_who_are_certain_cost_more(self, doubtful, given):
        label = np.arange(40) % 2
        right = np.full((40, 1), 0.995)
        right[7] = doubtful
        cube = cs.as_cube(np.where(label[:, None] == 1, right, 1 - right), label, kind="probability")
        out = cs.winner(cube, "log_loss", times=100, rng=1)
        share = 1 - 0.025 ** (1 / 40)
        at_least = (1 - share) * float(out.estimate) - share * np.log(given)
        assert float(out.conf_high) == pytest.approx(at_least)

    def test_centres_beyond_the_ends_are_kept_at_them(self):
        scale = UnitScale(best=1.0, worst=0.0)
        spread = scale.spread(evidence(), 1.3, 1.0)
        for beyond, end in ((-0.2, 0.0), (1.2, 1.0), (2.5, 1.0)):
            assert scale.limits(spread, beyond, 2.0) == scale.limits(spread, end, 2.0)
            assert scale.error(spread, beyond) == scale.error(spread, end) == 0

    def test_the_best_loss_is_infinitely_good_on_the_log_scale(self):
        assert scale_of(get_metric("mse")).forward(0.0) == np.inf
        assert scale_of(get_metric("r2")).forward(1.0) == np.inf

    @pytest.mark.parametrize(("direction", "ends"), [("maximize", (0, np.inf)), ("minimize", (-np.inf, 0))])
    def test_without_a_good_end_there_is_no_scale(self, direction, ends):
        metric = cs.as_metric(lambda y, p, w: 0.0, direction=direction, range=ends, name="own")
        assert metric.scale == "none"
        mirrored = cs.as_metric(lambda y, p, w: 0.0, direction=direction, range=(-ends[1], -ends[0]), name="own")
        scale = scale_of(mirrored)
        assert isinstance(scale, LogScale)
        assert scale.best == 0
        assert scale.back(scale.forward(0.3 * -metric.sign)) == pytest.approx(0.3 * -metric.sign)

    @pytest.mark.parametrize(
        ("metric", "estimator", "expected"),
        [
            ("accuracy", "bbc", (1.2, 1.0, 0.5, "standing out")),
            ("mcc", "bbc_cross_repeat", (1.08, 1.0, 0.5, "standing out")),
            ("accuracy", "bbc_ncv", (1.08, 1.0, 0.5, "never")),
            ("accuracy", "bbc_x", (1.0, 0.5, 0.0, "never")),
            ("auc", "bbc", (1.2, 1.0, 0.5, "always")),
            ("auc", "bbc_x", (1.0, 0.5, 0.0, "never")),
            ("mse", "bbc", (2.25, 1.0, 0.5, "always")),
            ("r2", "bbc_cross_repeat", (2.025, 1.0, 0.5, "always")),
            ("brier", "bbc_ncv", (1.215, 1.0, 0.5, "never")),
            ("log_loss", "bbc", (1.35, 1.0, 0.5, "always")),
            ("log_loss", "bbc_x", (1.35, 0.5, 0.0, "never")),
            ("calibration_slope", "bbc", (1.35, 1.0, 0.0, "never")),
            ("observed_expected", "bbc", (1.35, 1.0, 0.0, "never")),
            ("positive_likelihood_ratio", "bbc", (1.35, 1.0, 0.0, "always")),
        ],
    )
    def test_constants_are_those_of_the_coverage_study(self, metric, estimator, expected):
        """Changing one asks for a new study, so they stand here a second time."""
        found = constants(evidence(metric, estimator=estimator))
        assert (found.kappa, found.psi, found.rate, found.safe) == pytest.approx(expected)

    @pytest.mark.parametrize(("metric", "kappa"), [("accuracy", 1.75), ("auc", 1.75), ("brier", 2.25), ("mae", 2.25)])
    def test_one_or_two_configurations_have_no_selection_to_stand_in_for_refitting(self, metric, kappa):
        for many in (1, 2):
            given = evidence(metric, scores=np.full(many, 0.7), wins=np.ones(many))
            assert constants(given).kappa == pytest.approx(kappa)
        assert constants(replace(given, kept=np.zeros(3))).kappa == constants(evidence(metric)).kappa

    def test_groups_take_the_variance_of_the_draws_up_to_the_number_of_samples(self):
        given = evidence(n=10, grouped=True)
        assert constants(given).kappa == 1.75
        assert UnitScale(best=1.0, worst=0.0).spread(given, 1.75, 1.0)[0] == pytest.approx(50)
        assert constants(evidence("brier", grouped=True)).kappa == constants(evidence("brier")).kappa

    def test_those_that_won_count_by_themselves(self):
        """A configuration that never won has little noise for its score and would hide that of the winners."""
        variance = np.array([0.8 * 0.2 / 20, 0.7 * 0.3 / 20, 0.6 * 0.4 / 500])
        given = evidence(variance=variance, wins=np.array([0.7, 0.3, 0.0]))
        assert UnitScale(best=1.0, worst=0.0).spread(given, 1.0, 1.0)[0] == pytest.approx(20)

    def test_what_is_averaged_over_pairs_may_be_surer_than_a_share_of_samples(self):
        for metric, size in (("auc", 100), ("concordance", 100), ("accuracy", 50)):
            given = evidence(metric, variance=evidence().variance / 2)
            assert UnitScale(best=1.0, worst=0.0).spread(given, 1.0, 1.0)[0] == pytest.approx(size)

    def test_pooling_the_scores_of_folds_lowers_an_auc(self):
        plain, lifted = (cs.calibrated().limits(evidence("auc", within=within), 0.95) for within in (0.8, 0.85))
        assert plain == cs.calibrated().limits(evidence("auc"), 0.95)
        assert lifted == pytest.approx((plain[0], plain[1] + 0.25 * (1 - plain[1]), plain[2]))
        assert cs.calibrated().limits(evidence("auc", within=0.7), 0.95) == plain

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "error_rate"])
    def test_models_of_all_samples_err_less_than_those_of_folds(self, metric):
        whole, folds = (cs.calibrated().limits(evidence(metric, seen=seen), 0.95) for seen in (1.0, 0.8))
        better, best = (1, 1.0) if get_metric(metric).sign > 0 else (0, 0.0)
        assert best - folds[better] == pytest.approx((best - whole[better]) * np.sqrt(0.8))
        assert folds[1 - better] == whole[1 - better]
        unsafe = [cs.calibrated(safe_upper=False).limits(evidence(metric, seen=seen), 0.95) for seen in (1.0, 0.8)]
        assert unsafe[0] == unsafe[1]

    def test_many_samples_leave_little_to_learn(self):
        rates = [constants(evidence("auc", samples=many)).rate for many in (20, 100, 400, 10_000)]
        assert rates == pytest.approx([0.5, 0.5, 0.25, 0.05])

    @pytest.mark.parametrize(("metric", "best"), [("mse", 0.0), ("log_loss", 0.0), ("r2", 1.0)])
    def test_losses_of_all_samples_fall_as_well(self, metric, best):
        whole, folds = (cs.calibrated().limits(evidence(metric, seen=seen), 0.95) for seen in (1.0, 0.8))
        better = 1 if metric == "r2" else 0
        assert folds[better] - best == pytest.approx((whole[better] - best) * np.sqrt(0.8))
        assert folds[1 - better] == pytest.approx(whole[1 - better])

    def test_share_seen_by_hand(self):
        assert share_seen([np.array([0, 0, 1, 1, 2, 2])]) == pytest.approx(2 / 3)
        assert share_seen([np.arange(10)]) == pytest.approx(0.9)  # leave one out
        assert share_seen([np.array([0, 0, 0, 1])]) == pytest.approx(1 - 10 / 16)
        assert share_seen([np.array([0, 0, 1, 1]), np.arange(4)]) == pytest.approx((0.5 + 0.75) / 2)
        assert share_seen([np.array([0, -1, -1, -1])]) == pytest.approx(0.75)  # one sample tested, three trained on
        for unknown in ([], [np.zeros(4, int)], [np.full(4, -1)]):
            assert share_seen(unknown) == 0.8

    def test_winner_counts_the_folds(self):
        cube = cs.simulate_cube(60, 10, rng=1).drop_vars("fold", errors="ignore")
        limits = {
            folds: cs.winner(cube.assign_coords(fold=("sample", np.arange(60) % folds)), "accuracy", rng=1)
            for folds in (2, 5, 60)
        }
        misses = {folds: 1 - float(out["conf_high"]) for folds, out in limits.items()}
        assert misses[2] / misses[5] == pytest.approx(np.sqrt(0.5 / 0.8))
        assert misses[60] / misses[5] == pytest.approx(np.sqrt(59 / 60 / 0.8))
        assert 1 - float(cs.winner(cube, "accuracy", rng=1)["conf_high"]) == pytest.approx(misses[5])

    def test_within_folds_by_hand(self):
        """Fold a orders both pairs rightly, fold b one of two; pooled, the shift between folds hides it."""
        score = np.array([0.2, 0.4, 0.3, 1.3, 1.2, 1.25])
        cube = cs.as_cube(score, [0, 1, 0, 1, 0, 1], folds=list("aaabbb"), kind="score", threshold=0)
        metric = get_metric("auc")
        assert within_folds(cube, problem_on(cube, metric), 0) == pytest.approx(1.0)
        cube[3, 0] = 1.1
        assert within_folds(cube, problem_on(cube, metric), 0) == pytest.approx(3 / 4)
        assert np.isnan(within_folds(cube.drop_vars("fold"), problem_on(cube, metric), 0))
        assert np.isnan(within_folds(cube.assign_coords(fold=("sample", range(6))), problem_on(cube, metric), 0))

    @pytest.mark.parametrize(("metric", "factor"), [("mse", 1.0), ("rmse", 4.0)])
    def test_a_few_samples_that_make_up_the_loss_are_told(self, metric, factor):
        """Normal errors: the squared coefficient of variation of their squares is 2."""
        scores = np.array([1.0, 2.0, 3.0])
        given = evidence(metric, estimate=1.1, bbc=1.1, naive=1.0, scores=scores, variance=np.full(3, 2 / factor / 50))
        assert cs.calibrated().doubt(given) is None
        heavy = replace(given, variance=np.full(3, 4.1 / factor / 50))
        assert "a few samples make up most of" in cs.calibrated().doubt(heavy)
        assert cs.calibrated().doubt(replace(heavy, metric=get_metric("mae"))) is None

    def test_the_doubt_is_in_the_warning(self):
        g = np.random.default_rng(1)
        y = np.r_[g.normal(size=59), 60.0]
        with pytest.warns(cs.CvstatsWarning, match="a few samples make up most of mse"):
            cs.winner(cs.as_cube(0.1 * g.normal(size=(60, 4)), y, kind="value"), "mse", times=50, rng=1)

    def test_any_decision_by_hand(self):
        """The noise of the final decision is that of its naive value, and the upper limit heeds it."""
        kept = np.array([0.75, 0.85, 0.8])
        given = evidence(kept=kept)
        n_eff, t = 0.8 * 0.2 / np.var(kept, ddof=1), stats.t.ppf(0.975, 49)
        wobble = 0.75 * 0.25
        size = wobble / (1.2 * wobble / n_eff + np.var(given.chosen, ddof=1))
        low, high, _ = cs.calibrated().limits(given, 0.95)
        assert low == pytest.approx(wilson_limits(0.75, size, t)[0])
        assert high == pytest.approx(max(wilson_limits(0.75, size, t)[1], wilson_limits(0.8, n_eff / 1.2, t)[1]))
        assert (
            UnitScale(best=1.0, worst=0.0).spread(replace(given, kept=np.ones(3), smallest_class=7), 1.0, 1.0)[0] == 7
        )

    def test_noise_of_any_decision_on_every_scale(self):
        """A perfect naive score counts as half a sample short of it; nothing is relative to a loss of zero."""
        kept = np.array([0.75, 0.85, 0.8])
        given = evidence(kept=kept, naive=1.0)
        own, extra = np.var(kept, ddof=1), np.var(given.chosen, ddof=1)
        assert UnitScale(best=1.0, worst=0.0).spread(given, 1.3, 1.0)[0] == pytest.approx(max(0.99 * 0.01 / own, 1.0))
        assert PlainScale(np.inf, -np.inf).spread(given, 1.3, 0.5)[0] == pytest.approx(np.sqrt(1.3 * own + extra / 2))
        for perfect in ({"naive": 0.0}, {"estimate": 0.0}):
            nothing = replace(evidence("mse", kept=kept), **perfect)
            assert LogScale(best=0.0, worst=np.inf).spread(nothing, 1.3, 1.0)[0] == 0

    @pytest.mark.parametrize("metric", ["mcc", "auc", "balanced_accuracy", "f1", "error_rate"])
    def test_scale_maps_the_range_to_zero_and_one(self, metric):
        scale = scale_of(get_metric(metric))
        assert isinstance(scale, UnitScale)
        assert sorted((scale.back(0.0), scale.back(1.0))) == sorted(get_metric(metric).range)
        assert scale.forward(scale.back(0.3)) == pytest.approx(0.3)

    @pytest.mark.parametrize("metric", ["mse", "log_loss", "mae", "rmse", "r2", "brier"])
    def test_losses_and_r2_use_the_log(self, metric):
        scale = scale_of(get_metric(metric))
        assert isinstance(scale, LogScale)
        assert scale.back(scale.forward(0.4)) == pytest.approx(0.4)


class TestSafeUpper:
    def test_never_below_the_naive_wilson_limit(self):
        given = evidence(naive=0.9, scores=np.array([0.9, 0.5, 0.5]))
        scale = scale_of(given.metric)
        naive = scale.limits(scale.spread(given, 1.2, 0.0), 0.9, stats.t.ppf(0.975, 49))[1]
        assert cs.calibrated(safe_upper=False).limits(given, 0.95)[1] < naive
        assert cs.calibrated(safe_upper=True).limits(given, 0.95)[1] == pytest.approx(naive)

    def test_lower_limit_does_not_move(self):
        given = evidence(naive=0.95)
        lows = {cs.calibrated(safe_upper=safe).limits(given, 0.95)[0] for safe in (True, False, "auto")}
        assert len(lows) == 1

    @pytest.mark.parametrize(
        ("wins", "share"),
        [
            ([0.2, 0.4, 0.4], 0.0),
            ([0.4, 0.4, 0.2], 0.0),
            ([0.65, 0.35, 0.0], 0.5),
            ([0.5, 0.3, 0.2], 5 / 12),
            ([0.8, 0.2, 0.0], 1.0),
            ([1, 0, 0], 1.0),
        ],
    )
    def test_standing_out_compares_with_the_next(self, wins, share):
        assert standing_out(evidence(wins=np.array(wins, float))) == pytest.approx(share)

    def test_two_configurations(self):
        given = evidence(scores=np.array([0.7, 0.8]), wins=np.array([0.4, 0.6]))
        assert standing_out(given) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("wins", [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    def test_a_winner_that_won_no_draw_does_not_stand_out(self, wins):
        assert standing_out(evidence(wins=np.array(wins))) == 0

    def test_standing_out_needs_a_rival(self):
        assert standing_out(evidence(wins=None)) == 0
        assert standing_out(evidence(scores=np.array([0.8]), wins=np.array([1.0]))) == 0

    def test_automatic_rule_lies_between(self):
        one = np.random.default_rng(3).random((60, 12)) < np.r_[0.9, np.full(11, 0.6)]
        cube = labels_cube(one.astype(int))
        highs = [
            float(cs.winner(cube, "accuracy", interval=cs.calibrated(safe_upper=safe), rng=1).conf_high)
            for safe in (False, "auto", True)
        ]
        assert highs == sorted(highs)
        assert highs[1] == highs[2]  # one configuration wins nearly every draw

    def test_rank_metrics_always_heed_the_naive_limit(self):
        given = evidence("auc", naive=0.9, wins=np.array([0.3, 0.4, 0.3]))
        auto, safe = cs.calibrated().limits(given, 0.95), cs.calibrated(safe_upper=True).limits(given, 0.95)
        assert auto == safe

    @pytest.mark.parametrize("bad", ["yes", 2, None])
    def test_other_values_are_refused(self, bad):
        with pytest.raises(ValueError, match="`safe_upper`"):
            cs.calibrated(safe_upper=bad)

    @pytest.mark.parametrize(("name", "bad"), [("kappa", -1.0), ("psi", np.nan)])
    def test_constants_are_not_negative(self, name, bad):
        with pytest.raises(ValueError, match=f"`{name}` must be a number >= 0, or None for the tuned constant"):
            cs.calibrated(**{name: bad})


class TestEveryInterval:
    """Laws that hold for any method a winner may have."""

    CASES = (
        ("calibrated", "accuracy", lambda: cs.simulate_cube(30, 20, beta=(54, 6), rng=1)),
        ("calibrated", "error_rate", lambda: cs.simulate_cube(30, 20, rng=2)),
        ("calibrated", "mcc", lambda: cs.simulate_cube(40, 10, rng=3)),
        ("calibrated", "balanced_accuracy", lambda: cs.simulate_cube(40, 10, rng=3)),
        ("calibrated", "f1", lambda: cs.simulate_cube(40, 10, rng=3)),
        ("calibrated", "auc", scores_cube),
        ("calibrated", "concordance", lambda: scores_cube().assign_coords(event=("sample", np.ones(60)))),
        ("calibrated", "mse", numbers_cube),
        ("calibrated", "rmse", numbers_cube),
        ("calibrated", "r2", numbers_cube),
        ("double_bootstrap", "accuracy", lambda: cs.simulate_cube(25, 6, rng=1)),
        ("double_bootstrap", "auc", lambda: scores_cube(30, 4)),
        ("percentile", "accuracy", lambda: cs.simulate_cube(30, 20, rng=1)),
    )

    @pytest.mark.filterwarnings("ignore:winner. every concordance is below .5")
    @pytest.mark.parametrize(("interval", "metric", "make"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
    def test_order_level_and_range(self, interval, metric, make):
        cube = make()
        method = cs.double_bootstrap(outer=60, inner=15) if interval == "double_bootstrap" else interval
        low_end, high_end = get_metric(metric).range
        results = [cs.winner(cube, metric, interval=method, level=level, times=300, rng=1) for level in LEVELS]
        for out in results:
            assert low_end <= float(out.conf_low) <= float(out.estimate) <= float(out.conf_high) <= high_end
        lows, highs = zip(*(both(out) for out in results), strict=True)
        assert list(lows) == sorted(lows, reverse=True)
        assert list(highs) == sorted(highs)
        for out in results[1:]:
            assert float(out.conf_low) <= float(out.bound_low)
            assert float(out.bound_high) <= float(out.conf_high)

    def test_a_bound_is_an_end_of_the_interval_at_twice_the_error(self):
        cube = cs.simulate_cube(50, 10, rng=1)
        one, two = cs.winner(cube, "accuracy", level=0.95, rng=1), cs.winner(cube, "accuracy", level=0.9, rng=1)
        np.testing.assert_allclose([one.bound_low, one.bound_high], both(two))

    @pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "mcc"])
    def test_perfect_winner(self, metric):
        correct = np.ones((30, 3), int)
        correct[::3, 1:] = 0
        out = cs.winner(labels_cube(correct), metric, rng=1)
        assert float(out.estimate) == pytest.approx(1.0, abs=0.002)  # an out-of-bag set of one class has MCC 0
        assert float(out.conf_high) == pytest.approx(1.0, abs=1e-9)
        assert 0.6 < float(out.conf_low) < 1.0

    def test_all_perfect(self):
        out = cs.winner(labels_cube(np.ones((30, 4), int)), "accuracy", rng=1)
        assert float(out.conf_high) == 1.0
        assert float(out.conf_low) == pytest.approx(wilson_limits(1.0, 30 / 1.2, stats.t.ppf(0.975, 29))[0])

    def test_perfect_auc(self):
        out = cs.winner(scores_cube(45, 4, shift=30), "auc", rng=1)
        assert float(out.estimate) == float(out.conf_high) == 1.0
        assert 0.6 < float(out.conf_low) < 1.0

    def test_one_configuration(self):
        out = cs.winner(labels_cube(np.arange(40)[:, None] % 4 > 0), "accuracy", rng=1)
        assert float(out.estimate) == float(out.naive) == 0.75
        t = stats.t.ppf(0.975, 39)
        size = 40 / 1.75  # nothing was selected: V_s = 0
        found, expected = both(out), wilson_limits(0.75, size, t)
        np.testing.assert_allclose(found, expected, atol=0.02)  # n_eff is estimated from the draws

    def test_five_samples(self):
        with pytest.warns(cs.CvstatsWarning, match="draws were unusable and drawn again"):
            out = cs.winner(labels_cube([[1, 0], [1, 1], [0, 1], [1, 1], [1, 0]]), "accuracy", times=200, rng=1)
        assert 0 <= float(out.conf_low) < float(out.estimate) <= float(out.conf_high) <= 1
        assert float(out.conf_high - out.conf_low) > 0.5

    @pytest.mark.parametrize(("metric", "cost"), [("log_loss", np.log(8)), ("brier", 49 / 64)])
    def test_without_an_error_seen_the_upper_limit_allows_for_one(self, metric, cost):
        rng = np.random.default_rng(1)
        label = np.arange(40) % 2
        good = np.where(label == 1, 1 - rng.uniform(0, 0.2, 40), rng.uniform(0, 0.2, 40))
        cube = cs.as_cube(good[:, None], label, kind="probability")
        found = cs.winner(cube, metric, times=200, rng=1, level=0.9)
        share = 1 - 0.05 ** (1 / 40)
        assert found["conf_high"].item() == pytest.approx((1 - share) * found["estimate"].item() + share * cost)
        share = 1 - 0.1 ** (1 / 40)
        assert found["bound_high"].item() == pytest.approx((1 - share) * found["estimate"].item() + share * cost)

    @pytest.mark.parametrize("errors", [1, 3, 4])
    def test_few_errors_seen_allow_for_more(self, errors):
        label = np.arange(40) % 2
        right = np.where(label == 1, 0.9, 0.1)
        right[:errors] = 0.5  # the truth got no more than one half
        out = cs.winner(cs.as_cube(right[:, None], label, kind="probability"), "log_loss", times=200, rng=1)
        share = stats.beta.ppf(0.975, errors + 1, 40 - errors) - errors / 40  # Clopper and Pearson
        at_least = out["estimate"].item() + share * (np.log(8) - out["estimate"].item())
        assert (out["conf_high"].item() == pytest.approx(at_least)) == (errors <= 3)

    def test_without_an_error_seen_among_three_classes_a_brier_score_counts_both_sides(self):
        label = np.arange(30) % 3
        p = np.full((30, 1, 3), 0.05)
        p[np.arange(30), 0, label] = 0.9
        p[:15, 0] = p[:15, 0] * 0.9 + 0.1 / 3  # some are less certain
        cube = cs.as_cube(p, label, classes=[0, 1, 2])
        found = cs.winner(cube, "brier", times=200, rng=1)
        share = 1 - 0.025 ** (1 / 30)
        assert found["conf_high"].item() == pytest.approx((1 - share) * found["estimate"].item() + share * 49 / 32)

    def test_an_error_in_one_repeat_of_three_is_a_third(self):
        label = np.arange(40) % 2
        p = np.tile(np.where(label == 1, 0.9, 0.1)[:, None, None], (1, 1, 3))
        p[0, 0, 0] = 0.7
        out = cs.winner(cs.as_cube(p, label, kind="probability"), "log_loss", times=200, rng=1)
        share = stats.beta.ppf(0.975, 1 + 1 / 3, 40 - 1 / 3) - 1 / 120
        assert out["conf_high"].item() == pytest.approx(
            out["estimate"].item() + share * (np.log(8) - out["estimate"].item())
        )

    def test_brier_stays_inside_its_range(self):
        wrong = evidence("brier", estimate=1.6, bbc=1.6, naive=1.5, scores=np.array([1.5, 1.9]))
        wrong = replace(wrong, wins=np.array([0.7, 0.3]), variance=np.array([0.4, 0.4]), n=8)
        found = cs.calibrated().limits(wrong, 0.999)
        assert found[1] == 2.0

    @pytest.mark.parametrize("interval", ["percentile", "calibrated"])
    def test_a_loss_in_other_units(self, interval):
        """The mean squared error of metres is 10^-6 of that of millimetres, limits and all."""
        rng = np.random.default_rng(3)
        y = rng.normal(size=40)
        p = y[:, None] + rng.normal(size=(40, 4)) * [0.5, 0.5, 0.6, 0.9]
        one, other = (
            cs.winner(cs.as_cube(unit * p, unit * y), "mse", interval=interval, times=100, rng=1) for unit in (1, 1e-3)
        )
        for name in ("estimate", "naive", "std_error", "conf_low", "conf_high", "bound_low", "bound_high"):
            assert float(other[name]) == pytest.approx(1e-6 * float(one[name]), rel=1e-9)

    def test_groups_widen_the_interval(self):
        rng = np.random.default_rng(0)
        lucky = np.repeat(rng.random((20, 6)), 5, axis=0) < 0.7  # five samples of a group share their luck
        cube = labels_cube(lucky.astype(int))
        grouped = cube.assign_coords(group=("sample", np.repeat(np.arange(20), 5)))
        plain, aware = cs.winner(cube, "accuracy", rng=1), cs.winner(grouped, "accuracy", rng=1)
        assert np.diff(both(aware))[0] > 1.5 * np.diff(both(plain))[0]


class TestDoubleBootstrap:
    def test_same_seed_same_limits(self):
        cube = cs.simulate_cube(25, 5, rng=1)
        method = cs.double_bootstrap(outer=60, inner=12)
        one, two = (cs.winner(cube, "accuracy", interval=method, times=100, rng=3) for _ in range(2))
        assert both(one) == both(two)

    def test_one_configuration_is_nearly_the_bootstrap_of_its_score(self):
        cube = numbers_cube(60, 1)
        out = cs.winner(cube, "mse", interval=cs.double_bootstrap(outer=400, inner=40), times=100, rng=1)
        loss = ((cube - cube.label) ** 2).values[:, 0]
        rng = np.random.default_rng(1)
        draws = rng.choice(loss, (4000, 60)).mean(axis=1)
        spread = np.quantile(draws, 0.975) - np.quantile(draws, 0.025)
        assert np.diff(both(out))[0] == pytest.approx(spread, rel=0.25)

    def test_groups_are_drawn_whole(self):
        rng = np.random.default_rng(0)
        lucky = np.repeat(rng.random((15, 4)), 4, axis=0) < 0.7
        cube = labels_cube(lucky.astype(int))
        grouped = cube.assign_coords(group=("sample", np.repeat(np.arange(15), 4)))
        method = cs.double_bootstrap(outer=100, inner=15)
        widths = [
            np.diff(both(cs.winner(each, "accuracy", interval=method, times=60, rng=1)))[0] for each in (cube, grouped)
        ]
        assert widths[1] > 1.3 * widths[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("grouped", [False, True])
    def test_inner_draws_are_of_the_outer_draw(self, monkeypatch, grouped):
        """Inner draws take as many units as there are, from those drawn outside; the rest of the outer draw judges."""
        seen = []

        def keep(metric, problem, draws, rules, *, judge):
            seen.append((draws.values, judge.values, rules.ties, rules.seed))
            values = np.arange(draws.times) % 7 / 7.0
            values[::3] = np.nan  # draws that could not be used
            values[:19] = np.nan  # none in the first outer draw, one in the second
            return SimpleNamespace(value=values)

        monkeypatch.setattr("cvstats.intervals.resampled.decide", keep)
        group = np.arange(400) // 4 if grouped else np.arange(400)
        cube = labels_cube(np.ones((400, 2))).assign_coords(group=("sample", group))
        given = evidence(cube=cube if grouped else cube.drop_vars("group"), seed=3)
        times = 1030 if grouped else 60
        found = outer_estimates(given, times, 10)
        assert len(seen) == (
            2 if grouped else 1
        )  # blocks of 1000 outer draws, as 200 000 // (10 * 400 // 20) makes them
        choose, judge = (np.concatenate([one[part] for one in seen]) for part in (0, 1))
        outer = Bootstrap(400, times, _seed(given, 1), group=group if grouped else None).block(0, times)[0]
        outer = np.repeat(outer, 10, axis=0)
        units = 100 if grouped else 400
        firsts = np.unique(group, return_index=True)[1]
        assert (choose == choose[:, firsts][:, group]).all()
        assert (choose[:, firsts].sum(axis=1) == units).all()
        assert (choose[outer == 0] == 0).all()
        np.testing.assert_array_equal(judge, np.where(choose == 0, outer, 0))
        shares = np.bincount(outer[:, firsts].ravel(), choose[:, firsts].ravel()) / np.bincount(
            outer[:, firsts].ravel()
        )
        np.testing.assert_allclose(shares[:4], np.arange(4), atol=0.1)  # in proportion to how often they were drawn
        assert {one[2] for one in seen} == {"random"}
        assert (
            len({one[3] for one in seen} | {_seed(given, 1), _seed(given, 2)}) == len(seen) + 2
        )  # streams of their own
        values = np.concatenate([np.arange(len(one[0])) % 7 / 7.0 for one in seen])
        starts = np.concatenate([np.arange(len(one[0])) for one in seen])
        values[(starts % 3 == 0) | (starts < 19)] = np.nan
        rows = values.reshape(times, 10)
        expected = [row[~np.isnan(row)].mean() if (~np.isnan(row)).any() else np.nan for row in rows]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert np.isnan(found).sum() == len(seen)

    def test_duplicates_of_the_outer_draw_do_not_leak(self):
        coins = np.random.default_rng(5).random((30, 60)) < 0.5  # the winner of noise is worth .5
        given = evidence(cube=labels_cube(coins.astype(int)), seed=1)
        assert outer_estimates(given, 60, 15).mean() == pytest.approx(0.5, abs=0.06)
        assert coins.mean(axis=0).max() > 0.65

    @pytest.mark.parametrize(("options", "text"), [({"outer": 5}, "`outer`"), ({"inner": 2}, "`inner`")])
    def test_too_few_draws(self, options, text):
        with pytest.raises(ValueError, match=text):
            cs.double_bootstrap(**options)


class TestWhenThereAreLimits:
    """Five units and five samples of each class are enough; bounds need a level above one half."""

    @pytest.mark.parametrize(
        ("n", "smallest", "note"),
        [
            (4, 4, "limits are NaN: 4 independent samples is fewer than 5"),
            (5, 4, "limits are NaN: 4 of a class is fewer than 5"),
            (5, 5, ""),
        ],
    )
    def test_five_are_enough(self, n, smallest, note):
        limits, _, said = interval_limits(cs.percentile(), evidence(n=n, smallest_class=smallest), 0.9)
        assert said == note
        assert np.isnan(list(limits.values())).all() == bool(note)

    @pytest.mark.parametrize(("level", "given"), [(0.5, False), (0.51, True), (0.4, False)])
    def test_bounds_are_ends_of_the_interval_at_twice_the_error(self, level, given):
        limits, _, _ = interval_limits(cs.percentile(), evidence(values=np.arange(101.0)), level)
        found = [limits[name] for name in ("conf_low", "conf_high", "bound_low", "bound_high")]
        tail = 50 * (1 - level)
        ends = [100 * (1 - level), 100 * level] if given else [np.nan, np.nan]
        np.testing.assert_allclose(found, [tail, 100 - tail, *ends], rtol=1e-9)

    def test_constants_may_be_zero(self):
        low, high, error = cs.calibrated(kappa=0, psi=1, safe_upper=False).limits(evidence(estimator="bbc_ncv"), 0.95)
        assert low < 0.75 < high
        assert error == pytest.approx(np.std([0.8, 0.8, 0.8, 0.7, 0.6], ddof=1))
        assert cs.calibrated(kappa=1, psi=0).psi == 0


@dataclass(frozen=True)
class Normal:
    """A method from outside the package: estimate and standard deviation of the draws' values."""

    factor: float = 1.0
    name = "normal"

    def refuse(self, evidence):
        return "it is for accuracy" if evidence.metric.name != "accuracy" else None

    def limits(self, evidence, level):
        error = self.factor * float(np.std(evidence.values, ddof=1))
        half = float(stats.norm.ppf((1 + level) / 2)) * error
        return evidence.estimate - half, evidence.estimate + half, error


class TestStranger:
    @pytest.mark.parametrize("protocol", [cs.bbc, cs.winner, cs.bbcd])
    def test_is_used_like_our_own(self, protocol):
        cube = cs.simulate_cube(40, 5, rng=1)
        out = protocol(cube, "accuracy", interval=Normal(2.0), times=50, rng=1)
        assert str(out.interval.item()) == "normal"
        z = stats.norm.ppf([0.025, 0.05, 0.95, 0.975])
        found = [float(out[name]) for name in ("conf_low", "bound_low", "bound_high", "conf_high")]
        np.testing.assert_allclose(found, float(out.estimate) + z * float(out.std_error))
        assert "calibration" not in out
        assert protocol(cube, "accuracy", interval=Normal, times=50, rng=1).std_error < out.std_error

    def test_its_refusal_is_said(self):
        with pytest.raises(cs.InputError, match="interval 'normal' does not apply: it is for accuracy"):
            cs.bbc(cs.simulate_cube(40, 5, rng=1), "error_rate", interval=Normal(), times=50, rng=1)

    def test_may_keep_what_gives_its_limits_at_any_level(self):
        class Wider:
            name = "calibrated"
            refuse = cs.calibrated().refuse

            def limits(self, evidence, level):
                return self.calibration(evidence).limits(level)

            def calibration(self, evidence):
                return replace(cs.calibrated().calibration(evidence), n=5)

        cube = cs.simulate_cube(40, 5, rng=1)
        wide, narrow = (cs.winner(cube, "accuracy", interval=of, rng=1) for of in (Wider(), "calibrated"))
        assert wide.conf_low < narrow.conf_low
        again = cs.winner(cube, "accuracy", interval=Wider(), level=0.8, rng=1)
        np.testing.assert_allclose(both(cs.confint(wide, level=0.8)), both(again))

    def test_every_method_has_words(self):
        assert all(method().words.isprintable() and "interval" in method().words for method in METHODS.values())


class TestConfigured:
    @pytest.mark.parametrize("name", ["percentile", "calibrated", "double_bootstrap", "wilson", "delong", "bca"])
    def test_methods_are_values(self, name):
        method = get_method(name)
        assert method == getattr(cs, name)()
        assert hash(method) == hash(getattr(cs, name)())
        with pytest.raises(AttributeError):
            method.name = "other"

    def test_fewest_draws(self):
        assert cs.double_bootstrap(outer=40, inner=10).inner == 10
        for few in ({"outer": 39}, {"inner": 9}):
            with pytest.raises(cs.InputError, match="must be a whole number of at least"):
                cs.double_bootstrap(**few)

    def test_double_bootstrap_limits_by_hand(self, monkeypatch):
        values = np.array([*np.arange(101) / 100, np.nan])
        monkeypatch.setattr("cvstats.intervals.resampled.outer_estimates", lambda evidence, outer, inner: values)
        method = cs.double_bootstrap()
        error = np.std(np.arange(101) / 100, ddof=1)
        np.testing.assert_allclose(method.limits(evidence(estimate=0.5), 0.9), [0.05, 0.95, error])
        np.testing.assert_allclose(method.limits(evidence(estimate=0.97), 0.9), [0.05, 0.97, error])
        np.testing.assert_allclose(method.limits(evidence(estimate=0.02), 0.9), [0.02, 0.95, error])
        for few in ([], [0.5], [0.5, np.nan]):
            values = np.array(few)
            assert np.isnan(method.limits(evidence(), 0.9)).all()
        values = np.array([0.4, 0.6])
        np.testing.assert_allclose(method.limits(evidence(estimate=0.5), 0.9), [0.41, 0.59, np.sqrt(0.02)])

    def test_methods_that_need_the_predictions_say_so(self):
        alone = {"scores": np.array([0.8]), "wins": np.array([1.0])}
        assert "it is for the auc of two classes" in cs.delong().refuse(evidence("auc", **alone))
        for method in (cs.bca(), cs.double_bootstrap()):
            assert method.refuse(evidence(**alone)) == "it needs the predictions in memory"

    @pytest.mark.filterwarnings("ignore:winner. every AUC is below .5")
    def test_delong_is_clipped(self):
        score = np.array([*range(1, 10), 10.5, *range(10, 20)])
        y = (np.arange(20) >= 10).astype(int)
        for sign, end in ((1, "conf_high"), (-1, "conf_low")):
            cube = cs.as_cube(sign * score[:, None], y, kind="score")
            out = cs.winner(cube, "auc", interval="delong", times=50, rng=1)
            assert float(out.estimate) == pytest.approx(0.99 if sign > 0 else 0.01)
            assert float(out[end]) == (1.0 if sign > 0 else 0.0)


class TestWilson:
    @pytest.mark.parametrize(("right", "n"), [(0, 12), (7, 12), (12, 12), (93, 100)])
    @pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
    def test_statsmodels(self, right, n, level):
        from statsmodels.stats.proportion import proportion_confint

        cube = labels_cube((np.arange(n) < right)[:, None])
        out = cs.winner(cube, "accuracy", interval="wilson", level=level, times=100, rng=1)
        expected = proportion_confint(right, n, alpha=1 - level, method="wilson")
        np.testing.assert_allclose(both(out), np.clip(expected, 0, 1), atol=1e-12)
        share = right / n
        assert float(out.std_error) == pytest.approx(np.sqrt(share * (1 - share) / n), abs=1e-12)

    def test_error_rate_mirrors(self):
        cube = labels_cube((np.arange(20) < 13)[:, None])
        up, down = (cs.winner(cube, m, interval="wilson", times=100, rng=1) for m in ("accuracy", "error_rate"))
        np.testing.assert_allclose(both(down), [1 - float(up.conf_high), 1 - float(up.conf_low)])


class TestDelong:
    def cube(self, score):
        return cs.as_cube(np.array(score)[:, None], REFERENCE["delong"]["label"], kind="score")

    @pytest.mark.parametrize(("level", "key"), [(0.95, "level95"), (0.8, "level80")])
    def test_proc(self, level, key):
        made = REFERENCE["delong"]
        out = cs.winner(self.cube(made["score"]), "auc", interval="delong", level=level, times=100, rng=1)
        assert float(out.estimate) == pytest.approx(made["auc"])
        assert float(out.std_error) == pytest.approx(np.sqrt(made["variance"]))
        np.testing.assert_allclose(both(out), made[key], rtol=1e-10)

    def test_perfect_auc_has_no_width(self):
        made = REFERENCE["delong_top"]
        out = cs.winner(self.cube(made["score"]), "auc", interval="delong", times=100, rng=1)
        np.testing.assert_allclose([float(out.estimate), *both(out)], [made["auc"], *made["level95"]])


class TestBca:
    @pytest.mark.parametrize(("level", "key"), [(0.95, "level95"), (0.8, "level80")])
    def test_r_boot(self, level, key):
        made = REFERENCE["bca"]
        cube = cs.as_cube(np.array(made["guess"])[:, None], made["truth"], kind="value")
        out = cs.winner(cube, "mse", interval=cs.bca(times=20_000), level=level, times=100, rng=1)
        assert float(out.estimate) == pytest.approx(made["t0"])
        assert float(out.std_error) == pytest.approx(made["std_error"], rel=0.03)
        np.testing.assert_allclose(both(out), made[key], rtol=0.03)

    def test_scipy(self):
        cube = numbers_cube(50, 1, seed=4)
        loss = ((cube - cube.label) ** 2).values[:, 0]
        found = stats.bootstrap((loss,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1))
        out = cs.winner(cube, "mse", interval=cs.bca(times=20_000), times=100, rng=1)
        np.testing.assert_allclose(both(out), found.confidence_interval, rtol=0.03)

    @pytest.mark.parametrize("grouped", [False, True])
    @pytest.mark.parametrize("level", [0.9, 0.99])
    def test_textbook_formula_on_the_same_draws(self, grouped, level):
        """Accuracy has many ties: draws equal to the estimate count as half below it."""
        right = (np.random.default_rng(2).random(36) < 0.8).astype(float)
        cube = labels_cube(right[:, None])
        group = np.arange(36) // 3 if grouped else np.arange(36)
        if grouped:
            cube = cube.assign_coords(group=("sample", group))
        given = evidence(scores=right.mean(keepdims=True), wins=np.ones(1), naive=right.mean(), cube=cube, seed=5)
        low, high, error = bca_limits(given, level, 700)
        codes = group if grouped else None
        draws = Bootstrap(36, 700, _seed(given, 1), group=codes).block(0, 700)[0]
        scores = draws @ right / draws.sum(axis=1)
        half = np.mean(scores < right.mean()) + np.mean(scores == right.mean()) / 2
        assert np.mean(scores == right.mean()) > 0.05
        left = np.array([right[group != g].mean() for g in np.unique(group)])
        d = left.mean() - left
        z = stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])

        def expected(below):
            a, z0 = (d**3).sum() / (6 * (d**2).sum() ** 1.5), stats.norm.ppf(below)
            return np.quantile(scores, stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))))

        np.testing.assert_allclose([low, high], expected(half), rtol=1e-9)
        assert error == pytest.approx(np.std(scores, ddof=1), rel=1e-9)
        for naive, below in (
            (-1.0, 1 / 1400),
            (2.0, 1 - 1 / 1400),
        ):  # beyond all draws: half a draw is on the other side
            np.testing.assert_allclose(
                bca_limits(replace(given, naive=naive), level, 700)[:2], expected(below), rtol=1e-9
            )

    def test_without_errors_there_is_no_width(self):
        cube = labels_cube(np.ones((12, 1)))
        given = evidence(scores=np.ones(1), wins=np.ones(1), naive=1.0, cube=cube, seed=5)
        assert bca_limits(given, 0.95, 100) == (1.0, 1.0, 0.0)

    def test_estimate_beyond_all_draws_is_not_infinitely_biased(self):
        right = np.repeat([1.0, 0.0], 20)
        for naive, end in ((1.0, 1), (0.0, 0)):  # far from any draw's score
            given = evidence(scores=np.array([naive]), wins=np.ones(1), naive=naive, cube=labels_cube(right[:, None]))
            limits = bca_limits(replace(given, seed=5), 0.9, 200)[:2]
            assert np.isfinite(limits).all()
            assert abs(limits[end] - naive) < 0.4

    def test_differs_from_the_percentiles_of_the_score(self):
        made = REFERENCE["bca"]
        loss = (np.array(made["guess"]) - made["truth"]) ** 2
        draws = np.random.default_rng(0).choice(loss, (20_000, len(loss))).mean(axis=1)
        assert made["level95"][1] > np.quantile(draws, 0.975) + 0.03


@pytest.mark.parametrize(
    ("interval", "metric"),
    [
        (cs.bca(100), "auc"),
        (cs.bca(100), "accuracy"),
        ("delong", "auc"),
        ("wilson", "accuracy"),
        ("calibrated", "auc"),
        (cs.double_bootstrap(40, 10), "accuracy"),
    ],
)
def test_samples_that_nobody_predicted_do_not_count(interval, metric):
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    p = np.clip(0.5 + 0.3 * (y - 0.5) + 0.2 * rng.normal(size=40), 0, 1)[:, None]
    there = np.arange(40) % 7 != 3
    gaps = cs.winner(cs.as_cube(np.where(there[:, None], p, np.nan), y), metric, interval=interval, times=50, rng=1)
    rest = cs.winner(cs.as_cube(p[there], y[there]), metric, interval=interval, times=50, rng=1)
    assert both(gaps) == both(rest)
    assert float(gaps.conf_low) < float(gaps.estimate) < float(gaps.conf_high)


class TestRefusals:
    def refused(self, cube, metric, interval, text):
        with pytest.raises(ValueError, match=text):
            cs.winner(cube, metric, interval=interval, times=100, rng=1)

    @pytest.mark.parametrize("interval", ["wilson", "bca"])
    def test_selected_configurations(self, interval):
        text = rf"interval '{interval}' does not apply: it is for one configuration fixed in advance, and 4 compete"
        self.refused(cs.simulate_cube(30, 4, rng=1), "accuracy", interval, text)

    def test_delong_of_a_selected_configuration(self):
        self.refused(scores_cube(), "auc", "delong", "one configuration fixed in advance, and 5 compete")

    def test_wilson_of_another_metric(self):
        text = (
            "interval 'wilson' does not apply: it is for accuracy, error_rate, and for sensitivity, recall, "
            "specificity, ppv, precision, npv of two classes, not balanced_accuracy"
        )
        self.refused(cs.simulate_cube(30, 1, rng=1), "balanced_accuracy", "wilson", text)

    def test_delong_of_another_metric(self):
        text = "interval 'delong' does not apply: it is for the auc of two classes, not accuracy"
        self.refused(cs.simulate_cube(30, 1, rng=1), "accuracy", "delong", text)

    def test_delong_of_several_repeats(self):
        cube = scores_cube(30, 1)
        cube = xr.concat([cube, cube], "repeat").transpose("sample", "configuration", "repeat")
        self.refused(cube, "auc", "delong", "interval 'delong' does not apply: it is for one repeat")

    def test_wilson_of_groups_and_weights(self):
        cube = cs.simulate_cube(30, 1, rng=1)
        grouped = cube.assign_coords(group=("sample", np.arange(30) // 3))
        self.refused(grouped, "accuracy", "wilson", "does not apply: samples come in groups")
        weighted = cube.assign_coords(weight=("sample", np.ones(30)))
        self.refused(weighted, "accuracy", "wilson", "does not apply: samples carry case weights")

    def test_calibrated_without_an_end_of_the_range(self):
        @cs.as_metric(direction="maximize", range=(-np.inf, np.inf))
        def gain(truth, prediction, weight):
            return float(np.average(truth * prediction, weights=weight))

        text = "the range of gain has no end to build a scale on; give as_metric"
        self.refused(numbers_cube(), gain, "calibrated", text)

    def test_predictions_on_disk(self):
        text = "it needs the predictions in memory"
        assert cs.double_bootstrap().refuse(evidence(cube=None)) == text
        assert cs.bca().refuse(evidence(cube=None, scores=np.array([0.8]))) == text

    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"`interval`='calibrate' does not exist.*calibrated.*known: percentile"):
            get_method("calibrate")

    def test_something_else(self):
        with pytest.raises(ValueError, match="`interval` must be one of percentile, calibrated"):
            get_method(3)
        with pytest.raises(ValueError, match="`interval` must be one of percentile, calibrated"):
            get_method(int)

    def test_a_stranger_need_not_refuse(self):
        class Half:
            name = "half"

            def limits(self, evidence, level):
                return 0.0, level, 0.5

        out = cs.bbc(cs.simulate_cube(30, 3, rng=1), "accuracy", interval=Half(), rng=1)
        assert [float(out[name]) for name in ("conf_low", "conf_high", "bound_high")] == pytest.approx([0, 0.95, 0.9])

    def test_a_stranger_without_limits(self):
        class Nothing:
            name = "nothing"

        with pytest.raises(cs.InputError, match=r"with a name and limits\(evidence, level\); got"):
            get_method(Nothing())

    def test_class_and_object_both_work(self):
        assert get_method(cs.calibrated) == get_method("calibrated") == cs.calibrated()

    def test_few_of_a_class(self):
        labels = np.r_[np.ones(4, int), np.zeros(20, int)]
        cube = cs.as_cube(np.random.default_rng(0).normal(size=(24, 3)), labels, kind="score")
        with pytest.warns(cs.CvstatsWarning, match="limits are NaN: 4 of a class is fewer than 5") as caught:
            out = cs.winner(cube, "auc", times=200, rng=1)
        assert len(caught) == 1
        assert np.isnan(both(out)).all()
        assert np.isfinite(float(out.estimate))

    @pytest.mark.parametrize(
        ("metric", "sizes", "few"),
        [
            ("sensitivity", (20, 4), 4),
            ("sensitivity", (4, 20), None),
            ("specificity", (4, 20), 4),
            ("specificity", (20, 4), None),
            ("average_precision", (4, 20), None),
            ("average_precision", (20, 4), 4),
            ("average_precision", (4, 20, 20), 4),  # the mean over classes, each in turn the positive one
            ("average_precision", (20, 20, 4), 4),
            ("balanced_accuracy", (20, 4), 4),
            ("accuracy", (20, 4), None),
        ],
    )
    def test_few_of_a_class_that_the_metric_needs(self, metric, sizes, few):
        y = np.repeat(np.arange(len(sizes)), sizes)
        rng = np.random.default_rng(1)
        p = rng.dirichlet(np.ones(len(sizes)), size=(len(y), 2)) + 0.3 * np.eye(len(sizes))[y][:, None]
        p /= p.sum(axis=-1, keepdims=True)
        cube = cs.as_cube(p, y, classes=range(3)) if len(sizes) == 3 else cs.as_cube(p[..., 1], y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = cs.bbc(cube, metric, times=100, rng=1)
        text = " ".join(str(one.message) for one in caught)
        assert ("of a class" in text) == (few is not None)
        assert few is None or f"limits are NaN: {few} of a class is fewer than 5" in text
        assert np.isnan(both(out)).all() == (few is not None)


def test_log_scale_of_other_decisions_by_hand():
    kept, chosen = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.4, 0.4])
    one = evidence("log_loss", estimate=0.4, naive=0.25, kept=kept, chosen=chosen)
    want = np.sqrt(1.3 * kept.var(ddof=1) / 0.25**2 + 0.7 * chosen.var(ddof=1) / 0.4**2)
    assert scale_of(one.metric).spread(one, 1.3, 0.7)[0] == pytest.approx(want)


@pytest.mark.parametrize(("metric", "factor"), [("mse", 1), ("rmse", 4)])
@pytest.mark.parametrize("kept", [True, False])
def test_tails_are_heavy_above_twice_the_variation_of_normal_errors(metric, factor, kept):
    for share, heavy in ((3.9, False), (4.1, True)):  # the squared coefficient of variation of the squared errors
        variance = share * 2.0**2 / 50 / factor
        draws = np.sqrt(variance) * np.array([-1, 0, 1]) + 2
        given = {"kept": draws} if kept else {"variance": np.array([9, variance, 9])}
        one = evidence(metric, naive=2.0, estimate=2.5, scores=np.array([3.0, 2.0, 4.0]), **given)
        assert (cs.calibrated().doubt(one) is not None) == heavy
