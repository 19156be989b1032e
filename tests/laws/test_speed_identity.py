"""The kernel against plain loops over scikit-learn, and the same bits whatever the batch, chunks or engine."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
import xarray as xr

import cvstats as cs
from cvstats.kernels import walk as _walk
from cvstats.metrics import get_metric
from cvstats.resample import make_draws

LINEAR = ("accuracy", "brier", "log_loss", "mse", "mae", "balanced_accuracy", "r2")
CLASS_METRICS = ("accuracy", "balanced_accuracy", "f1", "mcc", "brier", "log_loss", "auc", "average_precision")
MANY_METRICS = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
    "brier",
    "log_loss",
    "auc",
    "auc_ovr_weighted",
    "average_precision",
)
TIMES = 5
NUMBER_METRICS = ("mse", "mae", "rmse", "r2")


def make_cube(kind, *, n=53, c=7, repeats=2, gaps=False, weights=None, groups=None, seed=3):
    """Return a ragged cube with many ties; with gaps some samples, repeats and configurations lack predictions."""
    g = np.random.default_rng(seed)
    shape = (n, c, repeats)
    extra = {"weights": weights, "groups": groups}
    if kind == "binary":
        y = g.integers(0, 2, n)
        p = np.clip(np.round(0.3 * y[:, None, None] + g.random(shape) * 0.7, 1), 0.0, 1.0)
        p[:, c // 2] = p[:, c // 3]  # two configurations that always tie
        arguments = {"kind": "probability"}
    elif kind == "classes":
        y = g.integers(0, 3, n)
        p = np.round(g.random((*shape, 3)) + (y[:, None] == np.arange(3))[:, None, None] * 0.4, 1) + 0.1
        p = p / p.sum(axis=-1, keepdims=True)
        arguments = {"classes": [0, 1, 2], "kind": "probability"}
    elif kind == "number":
        y = np.round(g.normal(size=n), 1)
        p = np.round(y[:, None, None] + g.normal(size=shape), 1)
        arguments = {"kind": "value"}
    else:
        y = np.round(g.exponential(size=n), 1) + 0.1
        p = np.round(-y[:, None, None] + g.normal(size=shape), 1)
        arguments = {"kind": "score", "event": g.integers(0, 2, n)}
    if gaps:
        p[:2] = np.nan  # predicted by nobody
        p[5:9, 1] = np.nan  # not eligible
        p[10:14, 2, 0] = np.nan  # a repeat lacks samples
        p[44:, c - 1, 1] = np.nan
        p[:, 3, -1] = np.nan  # a repeat lacks everything
    return cs.as_cube(p, y, configurations=[f"c{j}" for j in range(c)], **arguments, **extra)


def truth(cube, metric, column, w):
    """Return the score of one configuration under weights `w`, by scikit-learn and plain loops."""
    values = cube.isel(configuration=column).transpose("sample", "repeat", ...).values
    y = cube["label"].values
    weight = w * (cube["weight"].values if "weight" in cube.coords else 1.0)
    present = ~np.isnan(values if values.ndim == 2 else values.sum(axis=2))
    if metric in LINEAR:
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(present, per_sample(metric, y, values), np.nan)
        rows = present.any(axis=1)
        each = np.array([loss[i][present[i]].mean() if rows[i] else 0.0 for i in range(len(y))])
        used = rows & (weight > 0)
        y, each, weight = y[used], each[used], weight[used]
        if metric == "balanced_accuracy":
            return np.mean([np.average(each[y == a], weights=weight[y == a]) for a in np.unique(y)])
        if metric == "r2":
            return 1 - (weight * each).sum() / (weight * (y - np.average(y, weights=weight)) ** 2).sum()
        return np.average(each, weights=weight)
    repeats = [r for r in range(values.shape[1]) if present[:, r].any()]
    table = [in_repeat(metric, cube, y, values[:, r], weight * present[:, r]) for r in repeats]
    return float(np.mean(table))


def per_sample(metric, y, p):
    if p.ndim == 3:
        hot = y[:, None] == np.arange(p.shape[2])
        right = np.where(hot[:, None], p, 0).sum(axis=2)
        if metric in ("accuracy", "balanced_accuracy"):
            return p.argmax(axis=2) == y[:, None]
        return -np.log(right) if metric == "log_loss" else ((p - hot[:, None]) ** 2).sum(axis=2)
    t = y[:, None]
    if metric == "log_loss":
        return -np.log(np.where(t == 1, p, 1 - p))
    if metric in ("accuracy", "balanced_accuracy"):
        return (p > 0.5) == t
    return abs(p - t) if metric == "mae" else (p - t) ** 2


def in_repeat(metric, cube, y, p, w):
    keep = w > 0
    y, p, w = y[keep], p[keep], w[keep]
    hard = p.argmax(axis=1) if p.ndim == 2 else (p > 0.5).astype(int)
    if metric == "f1":
        return sk.f1_score(y, hard, sample_weight=w, average="macro" if p.ndim == 2 else "binary")
    if metric == "mcc":
        return sk.matthews_corrcoef(y, hard, sample_weight=w)
    if metric == "auc" and p.ndim == 2:
        return np.mean([pair_auc(p[:, a], w * (y == a), w * (y == b)) for a in range(3) for b in range(3) if a != b])
    if metric == "auc_ovr_weighted":
        share = [w[y == a].sum() for a in range(3)]
        return np.average([pair_auc(p[:, a], w * (y == a), w * (y != a)) for a in range(3)], weights=share)
    if metric == "auc":
        return sk.roc_auc_score(y, p, sample_weight=w)
    if metric == "average_precision":
        if p.ndim == 2:
            return np.mean([sk.average_precision_score(y == a, p[:, a], sample_weight=w) for a in range(3)])
        return sk.average_precision_score(y, p, sample_weight=w)
    if metric == "rmse":
        return np.sqrt(np.average((y - p) ** 2, weights=w))
    return concordance(y, cube["event"].values[keep], p, w)


def pair_auc(p, positive, negative):
    """Return the AUC by looking at every pair."""
    right = (p[:, None] > p[None, :]) + 0.5 * (p[:, None] == p[None, :])
    return (positive[:, None] * negative[None, :] * right).sum() / (positive.sum() * negative.sum())


def concordance(time, event, risk, w):
    """Return Harrell's index by looking at every pair."""
    later = (time[None, :] > time[:, None]) | ((time[None, :] == time[:, None]) & (event[None, :] == 0))
    pair = (w[:, None] * w[None, :]) * (later & (event[:, None] == 1))
    right = (risk[:, None] > risk[None, :]) + 0.5 * (risk[:, None] == risk[None, :])
    return (pair * right).sum() / pair.sum()


CASES = [("binary", m) for m in CLASS_METRICS]
CASES += [("classes", m) for m in MANY_METRICS]
CASES += [("number", m) for m in NUMBER_METRICS] + [("survival", "concordance")]


def case_weights(name, n=53):
    return {"none": None, "whole": np.arange(n) % 3 + 1.0, "real": 0.5 + np.arange(n) % 7 / 3}[name]


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize(("gaps", "weights"), [(False, "none"), (True, "none"), (True, "real")])
def test_matches_plain_loops(kind, metric, gaps, weights):
    cube = make_cube(kind, gaps=gaps, weights=case_weights(weights))
    draws = cs.bootstrap(cube, TIMES, rng=5)
    with np.errstate(all="ignore"):
        out = cs.select_and_judge(cube, metric, choose=draws, ties="first", rng=5)
    sign = get_metric(metric).sign
    eligible = np.setdiff1d(np.arange(cube.sizes["configuration"]), [1] if gaps else [])
    somebody = cube.notnull().any([dim for dim in cube.dims if dim != "sample"]).values
    assert out["usable"].all()
    for b in range(TIMES):
        w = np.where(somebody, draws.values[b], 0)
        inside = np.array([sign * truth(cube, metric, j, w) for j in eligible])
        good = inside >= inside.max() - 1e-11
        place = list(cube["configuration"].values[eligible]).index(out["selected"].values[b])
        assert good[place]
        if weights == "none":
            assert place == np.flatnonzero(good)[0]
        judged = (somebody & (w == 0)).astype(float)
        expected = truth(cube, metric, eligible[place], judged)
        assert out["value"].values[b] == pytest.approx(expected, rel=1e-11, abs=1e-12)


def runs(cube, metric, draws, **options):
    with np.errstate(all="ignore"):
        return cs.select_and_judge(cube, metric, choose=draws, rng=7, **options)


def agree(one, two, weights):
    """Whole-number weights give the same bits; under real ones the last may differ."""
    if weights != "real":
        xr.testing.assert_identical(one, two)
        return
    xr.testing.assert_identical(one["selected"], two["selected"])
    for name in ("value", "score"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize("ties", ["first", "random"])
def test_batch_and_chunks_change_nothing(kind, metric, ties):
    cube = make_cube(kind, gaps=metric in ("f1", "auc", "mse", "concordance"), weights=case_weights("whole"), repeats=9)
    draws = cs.bootstrap(cube, 97, rng=2)
    whole = runs(cube, metric, draws, ties=ties)
    for batch in (32, 64):
        xr.testing.assert_identical(runs(cube, metric, draws, ties=ties, batch=batch), whole)
    for chunk in (1, 5):
        part = cube.chunk(configuration=chunk)
        xr.testing.assert_identical(runs(part, metric, draws, ties=ties).compute(scheduler="sync"), whole)
    swapped = cube.isel(configuration=slice(None, None, -1))
    if ties == "random":
        other = runs(swapped, metric, draws, ties=ties)
        for name in ("selected", "value", "usable"):
            xr.testing.assert_equal(other[name], whole[name])


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_first_draws_do_not_depend_on_how_many_follow(kind, metric):
    cube = make_cube(kind)
    long, short = (runs(cube, metric, make_draws(cube, get_metric(metric), times, 11, None)) for times in (70, 33))
    for name in ("selected", "value", "usable"):
        xr.testing.assert_identical(long[name].isel(draw=slice(33)), short[name])


@pytest.mark.parametrize(("kind", "metric"), [case for case in CASES if get_metric(case[1]).family == "rank"])
@pytest.mark.parametrize(("gaps", "weights"), [(False, "none"), (True, "none"), (True, "whole"), (False, "real")])
def test_numba_gives_the_same_numbers_as_numpy(kind, metric, gaps, weights, monkeypatch):
    pytest.importorskip("numba")
    cube = make_cube(kind, gaps=gaps, weights=case_weights(weights))
    draws = make_draws(cube, get_metric(metric), 97, 5, None)
    monkeypatch.setattr(_walk, "FORCE", "numpy")
    plain = runs(cube, metric, draws)
    monkeypatch.setattr(_walk, "FORCE", "numba")
    agree(runs(cube, metric, draws), plain, weights)


@pytest.mark.parametrize("n", [1, 2, 31, 4097])
def test_odd_sizes(n):
    g = np.random.default_rng(n)
    y = np.arange(n) % 2
    cube = cs.as_cube(g.random((n, 3)).round(1), y, kind="probability")
    draws = cs.bootstrap(cube, 37, rng=1)
    for metric in ("accuracy", "auc", "f1"):
        whole = runs(cube, metric, draws)
        xr.testing.assert_identical(runs(cube, metric, draws, batch=32), whole)
        xr.testing.assert_identical(runs(cube.chunk(configuration=1), metric, draws), whole)


@pytest.mark.parametrize("metric", ["auc", "average_precision"])
@pytest.mark.parametrize("digits", [16, 3, 2, 1])  # from no ties to nothing but ties
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_any_share_of_ties(metric, digits, weights, monkeypatch):
    g = np.random.default_rng(digits)
    n = 211
    y = g.integers(0, 2, n)
    p = np.round(g.random((n, 5)) * 0.8 + 0.2 * y[:, None], digits)
    cube = cs.as_cube(p, y, kind="probability", weights=case_weights(weights, n))
    draws = make_draws(cube, get_metric(metric), 33, 5, None)
    found = {}
    for engine in ("numpy", "numba"):
        if engine == "numba":
            pytest.importorskip("numba")
        monkeypatch.setattr(_walk, "FORCE", engine)
        found[engine] = runs(cube, metric, draws)
    agree(found["numba"], found["numpy"], weights)
    case = cube["weight"].values if weights != "none" else np.ones(n)
    for b, counts in enumerate(draws.block(0, 33)[0][:3]):
        w = counts * case
        score = [in_repeat(metric, cube, y, p[:, j], w) for j in range(5)]
        assert score[int(found["numpy"]["selected"][b])] == pytest.approx(max(score), rel=1e-12)
        out = in_repeat(metric, cube, y, p[:, int(found["numpy"]["selected"][b])], case * (counts == 0))
        assert found["numpy"]["value"].values[b] == pytest.approx(out, rel=1e-12)
    everything = [in_repeat(metric, cube, y, p[:, j], case) for j in range(5)]
    np.testing.assert_allclose(found["numpy"]["score"], everything, rtol=1e-12)
    np.testing.assert_allclose(found["numpy"]["score"], cs.score(cube, metric), rtol=1e-14 if weights == "real" else 0)


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize("gaps", [False, True])
def test_score_on_all_samples_is_that_of_score(kind, metric, gaps):
    cube = make_cube(kind, gaps=gaps, repeats=3)
    out = runs(cube, metric, cs.bootstrap(cube, 33, rng=1))
    with np.errstate(all="ignore"):
        plain = cs.score(cube, metric).values
    if gaps:
        np.testing.assert_allclose(out["score"], np.where(np.arange(7) == 1, np.nan, plain), rtol=1e-14, atol=1e-14)
    else:
        np.testing.assert_array_equal(out["score"], plain)
