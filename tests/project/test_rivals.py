"""Rivals of the coverage study: each against an answer that is known without it."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks" / "coverage").is_dir(), reason="not in the sdist")


@pytest.fixture(scope="module")
def rivals():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from benchmarks.coverage import rivals

        yield rivals


@pytest.fixture(scope="module")
def normal():
    """One mean of 200 normal values and its bootstrap: limits are mean +- 1.96 standard errors."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=20_000)
    return x, counts, (counts @ x / 200)[:, None]


def plain(x, level=0.95):
    half = stats.norm.ppf((1 + level) / 2) * x.std() / np.sqrt(len(x))
    return pytest.approx((x.mean() - half, x.mean() + half), abs=0.06 * half)


def test_one_configuration_needs_no_correction(rivals, normal):
    x, counts, draws = normal
    scores = x[None].mean(axis=1)
    assert rivals.simultaneous(scores, draws, 0.95) == plain(x)
    assert rivals.zoom(scores, draws, 0.95) == plain(x)
    assert rivals.tilted(scores, draws, counts, x, lambda w: float(w @ x), 0.95) == plain(x)


def test_many_equal_ones_need_bonferroni_or_nearly(rivals):
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(40_000, 20))
    half = stats.norm.ppf(1 - (1 - 0.95 ** (1 / 20)) / 2)  # twenty independent ones
    scores = np.zeros(20)
    assert rivals.simultaneous(scores, draws, 0.95) == pytest.approx((-half, half), rel=0.03)
    assert rivals.zoom(scores, draws, 0.95) == pytest.approx((-half, half), rel=0.03)
    tail = rivals.adjusted_tail(draws, 0.025, upper=False)
    assert tail == pytest.approx(1 - 0.975 ** (1 / 20), rel=0.1)
    assert rivals.adjusted_tail(draws, 0.025, upper=True) == pytest.approx(tail, rel=0.1)


def test_zoom_forgets_those_far_behind(rivals):
    rng = np.random.default_rng(3)
    draws, scores = rng.normal(size=(40_000, 20)), np.r_[0.0, np.full(19, -60.0)]
    z = stats.norm.ppf(0.975)
    assert rivals.zoom(scores, draws + scores, 0.95) == pytest.approx((-z, z), rel=0.04)
    wide = rivals.simultaneous(scores, draws + scores, 0.95)[1]
    assert wide > 1.4 * z


def test_tilting_of_a_share_is_the_exact_limit(rivals):
    """Clopper and Pearson's limits with half of the probability of what was seen: 30 of 40."""
    rng = np.random.default_rng(4)
    x = np.repeat([1.0, 0.0], [30, 10])
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=40_000)
    found = rivals.tilted(np.array([0.75]), (counts @ x / 40)[:, None], counts, x, lambda w: float(w @ x), 0.9)
    for end, beyond in zip(found, (stats.binom.sf(30, 40, found[0]), stats.binom.cdf(29, 40, found[1])), strict=True):
        assert beyond + 0.5 * stats.binom.pmf(30, 40, end) == pytest.approx(0.05, abs=0.005)


def test_a_perfect_winner_has_no_width(rivals):
    ones = np.ones((50, 1))
    assert rivals.simultaneous(np.ones(1), ones, 0.95) == (1, 1)
    assert rivals.tilted(np.ones(1), ones, np.ones((50, 8)), np.ones(8), lambda w: 1.0, 0.95) == (1, 1)


def test_nested_folds_by_hand(rivals):
    outer = [np.array([1.0, 3.0]), np.array([2.0, 6.0])]
    inner = [np.array([2.0, 4.0]), np.array([5.0, 9.0])]
    # gaps 1 and 9, noise 1 and 4, so 2.5, halved; plain error sqrt(14 / 3) / 2 = 1.0801, at most sqrt(2) times that
    error = np.sqrt(2.5 / 2)
    found = 5.0 - 1.0 * (5.0 - 3.0)
    z = stats.norm.ppf(0.975)
    assert rivals.nested(outer, inner, 0.95) == pytest.approx((found - z * error, found + z * error))
    low, high = rivals.nested(outer, outer, 0.95)  # no gap: the plain error
    assert (low + high) / 2 == pytest.approx(3.0)
    assert (high - low) / 2 == pytest.approx(z * np.sqrt(14 / 3) / 2)


def test_corrected_t_is_that_of_the_package(rivals):
    import xarray as xr

    import cvstats as cs

    each = np.random.default_rng(5).normal(size=(3, 5))
    out = cs.corrected_t_test(xr.DataArray(each, dims=("repeat", "fold")), ("repeat", "fold"), test_fraction=0.2)
    found = rivals.corrected_t(each, 0.95)
    assert found == pytest.approx((float(out["conf_low"]), float(out["conf_high"])), rel=1e-9)


def test_conservative_z_finds_the_variance_of_independent_halves(rivals):
    rng = np.random.default_rng(6)
    low, high = rivals.conservative_z(0.0, rng.normal(0, 3, size=(40_000, 2)), 0.95)
    assert (low, high) == pytest.approx((-5.88, 5.88), rel=0.02)
