"""Numbers that are large, small, far from zero, many, or of another type: against exact arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

g = np.random.default_rng(20)


def exact_auc(label: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted AUC in rational arithmetic."""
    won = Fraction(0)
    w = [Fraction(float(value)) for value in weight]
    pairs = [(i, j) for i in np.flatnonzero(label == 1) for j in np.flatnonzero(label == 0)]
    for i, j in pairs:
        won += w[i] * w[j] * (2 * int(score[i] > score[j]) + int(score[i] == score[j]))
    return float(won / (2 * sum(w[i] * w[j] for i, j in pairs)))


@pytest.mark.parametrize("weights", [np.ones(60), g.integers(1, 1_000_001, 60), g.uniform(1e-3, 1e6, 60)])
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9])
def test_auc_far_from_zero_with_large_weights(weights: np.ndarray, offset: float) -> None:
    label, score = np.arange(60) % 2, offset + g.integers(0, 8, 60) / 8
    cube = cs.as_cube(score[:, None], label, kind="score", weights=weights)
    assert cs.auc(cube).item() == pytest.approx(exact_auc(label, score, weights), rel=1e-14)


@pytest.mark.parametrize("weights", [np.ones(50), g.integers(1, 1_000_001, 50), g.uniform(1e-3, 1e6, 50)])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_losses_far_from_zero_with_large_weights(weights: np.ndarray, offset: float) -> None:
    label, value = offset + g.integers(0, 99, 50) / 8, offset + g.integers(0, 99, 50) / 8
    cube = cs.as_cube(value[:, None], label, kind="value", weights=weights)
    y, p, w = ([Fraction(float(v)) for v in part] for part in (label, value, weights))
    total = sum(w)
    sse = sum(a * (b - c) ** 2 for a, b, c in zip(w, p, y, strict=True))
    centre = sum(a * b for a, b in zip(w, y, strict=True)) / total
    sst = sum(a * (b - centre) ** 2 for a, b in zip(w, y, strict=True))
    assert cs.mse(cube).item() == pytest.approx(float(sse / total), rel=1e-13)
    assert cs.r2(cube).item() == pytest.approx(float(1 - sse / sst), rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_variances_far_from_zero(offset: float) -> None:
    values = offset + g.integers(0, 64, 20) / 64
    exact = [Fraction(float(v)) for v in values]
    mean = sum(exact) / 20
    variance = sum((v - mean) ** 2 for v in exact) / 19
    out = cs.t_test(xr.DataArray(values, dims="trial"), "trial", mu=offset)
    assert out.std_error.item() == pytest.approx(float(variance / 20) ** 0.5, rel=1e-12)
    assert out.statistic.item() == pytest.approx(
        float(mean - Fraction(offset)) / float(variance / 20) ** 0.5, rel=1e-12
    )


def test_denormals() -> None:
    tiny = np.array([5e-324, 1e-323, 1.5e-323, 2e-323])
    cube = cs.as_cube(tiny[:, None], [0, 1, 0, 1], kind="score")
    assert cs.auc(cube).item() == 0.75
    assert cs.mae(cs.as_cube(tiny[:, None], np.zeros(4), kind="value")).item() < 1e-300


@pytest.mark.parametrize("metric", ["accuracy", "auc", "brier"])
def test_single_precision_gives_the_numbers_of_its_values(metric: str) -> None:
    p = g.random((40, 3)).astype(np.float32)
    label = np.arange(40) % 2
    single, double = (cs.as_cube(p.astype(kind), label, kind="probability") for kind in (np.float32, np.float64))
    np.testing.assert_allclose(cs.score(single, metric), cs.score(double, metric), rtol=1e-6)
    if metric != "brier":
        np.testing.assert_array_equal(cs.score(single, metric), cs.score(double, metric))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool])
def test_integers_are_numbers(dtype: type) -> None:
    p, label = g.integers(0, 2, (30, 2)), np.arange(30) % 2
    plain = cs.as_cube(p.astype(float), label, kind="label")
    other = cs.as_cube(p.astype(dtype), label.astype(dtype), kind="label")
    np.testing.assert_array_equal(cs.accuracy(plain), cs.accuracy(other))
    np.testing.assert_array_equal(cs.mcc(plain), cs.mcc(other))


def test_a_million_samples() -> None:
    n = 1_000_000
    i = np.arange(n)
    label, score = (i % 3 == 0).astype(int), (i * 7919) % 1009
    cube = cs.as_cube(score[:, None].astype(float), label, kind="score", threshold=500.0)
    above = np.bincount(score[label == 1], minlength=1009)
    below = np.bincount(score[label == 0], minlength=1009)
    lower = np.concatenate([[0], np.cumsum(below)[:-1]])
    twice = sum(int(a) * (2 * int(c) + int(b)) for a, b, c in zip(above, below, lower, strict=True))  # whole numbers
    assert cs.auc(cube).item() == float(Fraction(twice, 2 * int(above.sum()) * int(below.sum())))
    assert cs.accuracy(cube).item() == int(((score > 500) == label).sum()) / n


def test_one_diverged_configuration_does_not_blunt_the_others() -> None:
    label = g.normal(size=30)
    p = np.stack([label + 1e-6 * g.normal(size=30), label + 1e-6 * g.normal(size=30), np.full(30, 1e50)], axis=1)
    alone = cs.bbc(cs.as_cube(p[:, :2], label, kind="value"), "mse", times=200, rng=1)
    beside = cs.bbc(cs.as_cube(p, label, kind="value"), "mse", times=200, rng=1)
    assert alone.estimate.item() == beside.estimate.item()


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9])
def test_bbc_far_from_zero(offset: float) -> None:
    """Means and variances over given draws, in rational arithmetic."""
    label, value = offset + g.integers(0, 99, 12) / 8, offset + g.integers(0, 99, (12, 3)) / 8
    cube = cs.as_cube(value, label, kind="value")
    draws = cs.bootstrap(cube, 30, rng=3)
    loss = [[Fraction(float(p)) - Fraction(float(y)) for p in row] for row, y in zip(value, label, strict=True)]
    found = []
    for w in draws.values.astype(int):
        inside = [sum(int(w[i]) * loss[i][j] ** 2 for i in range(12)) / int(w.sum()) for j in range(3)]
        best, out = inside.index(min(inside)), np.flatnonzero(w == 0)
        found.append(sum(loss[i][best] ** 2 for i in out) / len(out))
    mean = sum(found) / 30
    spread = float(sum((v - mean) ** 2 for v in found) / 29) ** 0.5
    out = cs.bbc(cube, "mse", draws=draws)
    assert out.estimate.item() == pytest.approx(float(mean), rel=1e-12)
    assert out.std_error.item() == pytest.approx(spread, rel=1e-11)


@pytest.mark.parametrize("weights", [np.ones(40), g.integers(1, 1_000_001, 40), g.uniform(1e-3, 1e6, 40)])
def test_class_metrics_with_large_weights(weights: np.ndarray) -> None:
    label, guess = g.integers(0, 2, 40), g.integers(0, 2, 40)
    cube = cs.as_cube(guess[:, None].astype(float), label, kind="label", weights=weights)
    w = [Fraction(float(v)) for v in weights]
    cell = {(a, b): sum(w[i] for i in range(40) if label[i] == a and guess[i] == b) for a in (0, 1) for b in (0, 1)}
    total = sum(w)
    assert cs.accuracy(cube).item() == pytest.approx(float((cell[0, 0] + cell[1, 1]) / total), rel=1e-14)
    f1 = 2 * cell[1, 1] / (2 * cell[1, 1] + cell[0, 1] + cell[1, 0])
    assert cs.f1(cube).item() == pytest.approx(float(f1), rel=1e-14)
    top = cell[1, 1] * cell[0, 0] - cell[0, 1] * cell[1, 0]
    rows = [cell[a, 0] + cell[a, 1] for a in (0, 1)] + [cell[0, b] + cell[1, b] for b in (0, 1)]
    assert cs.mcc(cube).item() == pytest.approx(
        float(top) / float(rows[0] * rows[1] * rows[2] * rows[3]) ** 0.5, abs=1e-13
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float16])
def test_narrow_numbers_do_not_overflow(dtype: type) -> None:
    """Differences and squares of small integers leave their own type."""
    value, label = np.array([100, 120, 3, 7], dtype), np.array([1, 2, 110, 90], dtype)
    cube = cs.as_cube(value[:, None], label, kind="value")
    exact = sum((int(a) - int(b)) ** 2 for a, b in zip(value, label, strict=True))
    assert cs.mse(cube).item() == exact / 4
    assert cs.mae(cube).item() == sum(abs(int(a) - int(b)) for a, b in zip(value, label, strict=True)) / 4


def test_log_loss_of_denormal_probabilities() -> None:
    p = np.array([5e-324, 1e-310, 1 - 2**-53, 0.25])
    label = np.array([1, 1, 0, 0])
    exact = (3 * 52 * np.log(2) - np.log(0.75)) / 4  # by hand: three are clipped at 2^-52, and ln 3/4
    with pytest.warns(cs.CvstatsWarning, match="log loss: 3 predictions of 0"):
        found = cs.log_loss(cs.as_cube(p[:, None], label, kind="probability")).item()
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_delong_far_from_zero(offset: float) -> None:
    label = np.arange(30) % 2
    score = g.integers(0, 16, (30, 2)) / 16 + label[:, None] / 4
    near = cs.delong_test(cs.as_cube(score, label, kind="score"), a=0, b=1)
    far = cs.delong_test(cs.as_cube(score + offset, label, kind="score"), a=0, b=1)
    for name in ("estimate", "std_error", "p_value"):
        assert far[name].item() == near[name].item()


def test_a_million_numbers() -> None:
    n = 1_000_000
    i = np.arange(n)
    label, value = (1e9 + (i % 1000) / 8), (1e9 + ((i * 7919) % 1009) / 8)
    cube = cs.as_cube(value[:, None], label, kind="value")
    eighths = ((i * 7919) % 1009) - (i % 1000)  # whole numbers
    assert cs.mse(cube).item() == pytest.approx(float(Fraction(int((eighths**2).sum()), 64 * n)), rel=1e-14)
    assert cs.mae(cube).item() == pytest.approx(float(Fraction(int(np.abs(eighths).sum()), 8 * n)), rel=1e-14)


@pytest.mark.parametrize("repeats", [1, 2])
def test_the_largest_numbers_have_losses_and_limits(repeats):
    rng = np.random.default_rng(0)
    y = rng.normal(size=24)
    p = np.repeat((y[:, None] + rng.normal(size=(24, 4)))[:, :, None], repeats, axis=2)
    sane = p.copy()
    p[3, 1], p[5, 2] = 1e50, -1e50
    cubes = [cs.as_cube(values, y, kind="value", folds=np.arange(24) % 4) for values in (p, sane)]
    for metric in ("mse", "mae", "rmse", "r2"):
        diverged, plain = (cs.score(cube, metric) for cube in cubes)
        assert (diverged[[0, 3]] == plain[[0, 3]]).all()  # neighbours do not notice
        for cube in (cubes[0], cubes[0].isel(configuration=[1])):
            for interval in ("percentile", "calibrated", *(["bca"] if cube.sizes["configuration"] == 1 else [])):
                with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
                    warnings.simplefilter("error")
                    warnings.filterwarnings("ignore", "winner: a few samples make up most of")
                    out = cs.winner(cube, metric, times=100, rng=1, interval=interval)
                assert int(out.n_draws) == 100
                assert np.isfinite([out.estimate, out.conf_low, out.conf_high, out.std_error]).all()
        assert int(cs.winner(cubes[0], metric, times=100, rng=1).selected) in (0, 3)


@pytest.mark.parametrize("scale", [1.001e50, 1e160, 1e300, float(np.finfo(float).max)])
@pytest.mark.parametrize("sign", [1, -1])
def test_larger_numbers_are_refused_at_the_door(scale, sign):
    p = np.zeros((6, 2, 2))
    p[4, 1, 0] = sign * scale
    with pytest.raises(cs.InputError, match=r"`predictions`: numbers must lie within -1e\+50 and 1e\+50; found"):
        cs.as_cube(p, np.arange(6.0), kind="value")
    with pytest.raises(cs.InputError, match=r"`labels` must lie within -1e\+50 and 1e\+50"):
        cs.as_cube(p * 0, np.r_[np.arange(5.0), sign * scale], kind="value")
    cube = cs.as_cube(p * 0 + np.inf, np.arange(6.0), kind="value")  # for ranks
    cube[4, 1, 0] = sign * scale
    with pytest.raises(cs.InputError, match=r"`cube`: numbers must lie within"):
        cs.score(cube, "mse")
    lazy = cs.as_cube(p * 0, np.arange(6.0), kind="value").copy(data=p).chunk(configuration=1)
    with pytest.raises(cs.InputError, match=r"`cube`: numbers must lie within"):
        cs.bbc(lazy, "mse", times=50, rng=1)
    assert cs.as_cube(p, [0, 1] * 3, kind="score", positive=1).max() in (scale, 0)  # scores may have any size
