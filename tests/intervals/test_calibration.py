"""Calibration: bias, spread and coverage on simulated cubes with known truth.

Targets were computed with independent prototypes at 1000 to 2000 repetitions. Tolerances are about four Monte-Carlo
standard errors, widened by the square root of the ratio of repetitions because fewer are run here. Bias is positive
when optimistic. `benchmarks/coverage/guard.py` holds the same numbers, and more, to recorded values.
"""

from __future__ import annotations

import numpy as np
import pytest

import cvstats as cs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")]


def study(repetitions, n, c, beta, methods, *, seed=0, **options):
    """Return {method: (repetition, [bias, covered, width])} over simulated cubes, and the truth of the winner."""
    rows = {name: [] for name in methods}
    for repetition in range(repetitions):
        made = cs.simulate_cube(n, c, beta=beta, rng=seed * 100_003 + repetition, **options)
        cube, inner = made if isinstance(made, tuple) else (made, None)
        for name, method in methods.items():
            out = method(cube, inner, repetition)
            truth = float(cube["truth"].sel(configuration=out["selected"].item()))
            covered = width = np.nan
            if "conf_low" in out:
                low, high = float(out["conf_low"]), float(out["conf_high"])
                covered, width = float(low <= truth <= high), high - low
            rows[name].append([float(out["estimate"]) - truth, covered, width])
    return {name: np.array(values) for name, values in rows.items()}


def bias(table):
    return table[:, 0].mean()


def rmse(table):
    return np.sqrt((table[:, 0] ** 2).mean())


@pytest.fixture(scope="module")
def hundred():
    methods = {
        "cvt": lambda cube, inner, seed: cs.cvt(cube, "accuracy"),
        "tt": lambda cube, inner, seed: cs.tt(cube, "accuracy"),
        "ncv": lambda cube, inner, seed: cs.ncv(cube, "accuracy", inner=inner),
        "bbc": lambda cube, inner, seed: cs.bbc(cube, "accuracy", times=200, rng=seed),
        "winner": lambda cube, inner, seed: cs.winner(cube, "accuracy", times=300, rng=seed),
        "holdout": lambda cube, inner, seed: cs.winner(cube, "accuracy", regime="holdout", times=300, rng=seed),
    }
    return study(150, 100, 100, (9, 6), methods, inner=True)


class TestHundredSamples:
    """N = 100, C = 100, Beta(9, 6), independent configurations."""

    @pytest.mark.parametrize(
        ("name", "target", "tolerance"),
        [("cvt", 0.0379, 0.003), ("tt", -0.0662, 0.0045), ("ncv", -0.0004, 0.005), ("bbc", -0.0127, 0.004)],
    )
    def test_bias(self, hundred, name, target, tolerance):
        assert bias(hundred[name]) == pytest.approx(target, abs=tolerance * np.sqrt(2000 / 150))

    def test_bbc_x_is_nearly_unbiased(self, hundred):
        assert bias(hundred["holdout"]) == pytest.approx(0.001, abs=0.0035 * np.sqrt(2000 / 150))

    def test_calibrated_interval(self, hundred):
        coverage, width = hundred["winner"][:, 1].mean(), hundred["winner"][:, 2].mean()
        assert 0.95 <= coverage <= 1.0
        assert width == pytest.approx(0.201, abs=0.006 * np.sqrt(1000 / 150))

    def test_holdout_interval(self, hundred):
        coverage, width = hundred["holdout"][:, 1].mean(), hundred["holdout"][:, 2].mean()
        assert 0.91 <= coverage <= 0.99
        assert width == pytest.approx(0.156, abs=0.005 * np.sqrt(1000 / 150))

    def test_percentile_interval_is_wide(self, hundred):
        assert hundred["bbc"][:, 2].mean() == pytest.approx(0.230, abs=0.006 * np.sqrt(1000 / 150))


class TestTwentySamples:
    def test_bias_with_beta_9_6(self):
        methods = {
            "cvt": lambda cube, inner, seed: cs.cvt(cube, "accuracy"),
            "tt": lambda cube, inner, seed: cs.tt(cube, "accuracy"),
            "bbc": lambda cube, inner, seed: cs.bbc(cube, "accuracy", times=200, rng=seed),
        }
        tables = study(300, 20, 200, (9, 6), methods)
        widen = np.sqrt(2000 / 300)
        assert bias(tables["cvt"]) == pytest.approx(0.155, abs=0.006 * widen)
        assert bias(tables["tt"]) == pytest.approx(0.119, abs=0.0075 * widen)
        assert bias(tables["bbc"]) == pytest.approx(-0.028, abs=0.009 * widen)

    def test_ties_decide_near_perfect_scores(self):
        methods = {
            "first": lambda cube, inner, seed: cs.bbc(cube, "accuracy", times=300, rng=seed),
            "random": lambda cube, inner, seed: cs.bbc(cube, "accuracy", times=300, rng=seed, ties="random"),
        }
        tables = study(250, 20, 200, (54, 6), methods)
        widen = np.sqrt(1000 / 250)
        assert rmse(tables["first"]) == pytest.approx(0.067, abs=0.006 * widen)
        assert rmse(tables["random"]) == pytest.approx(0.032, abs=0.004 * widen)
        assert tables["first"][:, 1].mean() == pytest.approx(0.80, abs=0.05 * widen)
        assert tables["random"][:, 1].mean() >= 0.97

    def test_one_number_per_sample_makes_tt_equal_cvt(self):
        methods = {
            "cvt": lambda cube, inner, seed: cs.cvt(cube, "accuracy", average="fold"),
            "tt": lambda cube, inner, seed: cs.tt(cube, "accuracy"),
        }
        tables = study(200, 20, 200, (9, 6), methods, dependence="shared")
        np.testing.assert_allclose(tables["tt"][:, 0], tables["cvt"][:, 0], atol=1e-6)
        assert bias(tables["cvt"]) == pytest.approx(0.022, abs=0.010 * np.sqrt(1000 / 200))


def test_five_hundred_samples():
    methods = {
        "cvt": lambda cube, inner, seed: cs.cvt(cube, "accuracy"),
        "tt": lambda cube, inner, seed: cs.tt(cube, "accuracy"),
        "bbc": lambda cube, inner, seed: cs.bbc(cube, "accuracy", times=200, rng=seed),
    }
    tables = study(150, 500, 200, (9, 6), methods)
    widen = np.sqrt(400 / 150)
    assert bias(tables["cvt"]) == pytest.approx(0.0082, abs=0.003 * widen)
    assert bias(tables["tt"]) == pytest.approx(-0.025, abs=0.004 * widen)
    assert bias(tables["bbc"]) == pytest.approx(-0.0038, abs=0.0035 * widen)


def test_out_of_bag_values_are_spread_too_wide():
    """One configuration: the draws' spread is sqrt(.632 / .368) = 1.31 times the binomial standard error."""
    ratios = []
    for seed in range(60):
        cube = cs.simulate_cube(500, 1, rng=seed)
        out = cs.bbc(cube, "accuracy", times=400, rng=seed)
        share = float(out["naive"])
        ratios.append(float(out["std_error"]) / np.sqrt(share * (1 - share) / 500))
    assert np.mean(ratios) == pytest.approx(1.31, abs=0.03)


def test_stacking_repeats_as_rows_would_be_too_narrow():
    """Repeats shrink the noise of the partition only: the interval with ten repeats must not shrink like 1/sqrt(10)."""
    one, ten = [], []
    for seed in range(30):
        cube = cs.simulate_cube(60, 30, repeats=10, rng=seed)
        for table, part in ((one, cube.isel(repeat=[0])), (ten, cube)):
            out = cs.winner(part, "accuracy", times=200, rng=seed)
            table.append(float(out["conf_high"] - out["conf_low"]))
    assert 0.7 < np.mean(ten) / np.mean(one) < 1.02
