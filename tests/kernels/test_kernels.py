"""Kernels by themselves: plain arrays in, scores out; the same whatever form the weights or the problem come in."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics

from cvstats.kernels import Problem, order, pairs, walk
from cvstats.kernels.repeats import Presence
from cvstats.metrics import as_metric, get_metric

METRICS = ("accuracy", "f1", "brier", "log_loss", "auc", "average_precision", "concordance", "own")


@as_metric(direction="minimize")
def own(label, prediction, weight):
    return float(np.average(np.abs(label - prediction), weights=weight))


def task(name, *, n=40, m=5, r=3, gaps=False, weight=None, seed=2):
    """Return a metric and a problem with ties; with gaps some samples, repeats and configurations lack predictions."""
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n).astype(float)
    p = np.round(0.2 * y[:, None, None] + 0.8 * g.random((n, m, r)), 1)
    event = None
    if name == "concordance":
        y, event = np.round(g.exponential(size=n), 1), g.integers(0, 2, n).astype(float)
    if gaps:
        p[2:5, 1, 0] = np.nan
        p[:, 3, 1] = np.nan
    kind = "score" if name == "concordance" else "probability"
    return own if name == "own" else get_metric(name), Problem(y, p, weight, event, 2 * (event is None), kind, 0.5)


def draws(n, times, seed=1):
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), times).astype(np.int32)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_rows_columns_and_forms_of_weights_change_nothing(name, gaps):
    metric, problem = task(name, gaps=gaps)
    w = draws(problem.n, 70)
    problem = replace(problem, gaps=gaps)
    scorer = metric.kernel(problem, float(problem.n))
    criterion, scores = scorer.criterion(w)
    assert scores.shape == (70, 5)
    for other in (w.astype(np.uint8), w.astype(np.int64)):
        np.testing.assert_array_equal(scorer.scores(other), scores)
    np.testing.assert_array_equal(scorer.scores(w[:3]), scores[:3])
    for j in range(5):
        alone = metric.kernel(problem.columns(slice(j, j + 1)), float(problem.n))
        np.testing.assert_array_equal(alone.criterion(w)[1][:, 0], scores[:, j])
    best = np.argmax(criterion, axis=1)
    np.testing.assert_allclose(scorer.judged(w, best), scores[np.arange(70), best], rtol=1e-14)
    np.testing.assert_array_equal(np.sign(np.diff(scores[0])), metric.sign * np.sign(np.diff(criterion[0])))


@pytest.mark.parametrize("name", METRICS)
def test_a_score_is_the_mean_over_repeats(name):
    metric, problem = task(name)
    w = draws(problem.n, 40)
    total = float(problem.n)
    each = [metric.kernel(problem.repeats(slice(r, r + 1)), total).scores(w) for r in range(3)]
    np.testing.assert_allclose(metric.kernel(problem, total).scores(w), np.mean(each, axis=0), rtol=1e-13)


@pytest.mark.parametrize("name", METRICS)
def test_case_weights_multiply_draws(name):
    metric, problem = task(name, weight=np.arange(40) % 4.0)
    _, plain = task(name)
    w = draws(problem.n, 40)
    weighted = metric.kernel(problem, 40.0).scores(w)
    np.testing.assert_allclose(weighted, metric.kernel(plain, 120.0).scores(w * (np.arange(40) % 4)), rtol=1e-13)
    some = problem.samples(problem.weight > 0)
    np.testing.assert_allclose(metric.kernel(some, 40.0).scores(w[:, problem.weight > 0]), weighted, rtol=1e-13)


@pytest.mark.parametrize("engine", ["numpy", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("weights", ["whole", "real"])
@pytest.mark.parametrize("name", ["auc", "average_precision", "concordance"])
def test_few_and_many_draws_and_both_engines_agree(monkeypatch, name, weights, engine):
    """Few draws are worked on across columns, many column by column."""
    if engine == "numba":
        pytest.importorskip("numba")
    metric, problem = task(name, gaps=True)
    w = draws(problem.n, 70) * (1.0 if weights == "whole" else np.pi)
    w = w.astype(np.int32) if weights == "whole" else w
    monkeypatch.setattr(walk, "FORCE", "numpy")
    expected = metric.kernel(problem, 40.0).scores(w)
    monkeypatch.setattr(walk, "FORCE", engine)
    for few in (0, 1000):
        monkeypatch.setattr(walk, "FEW", few)
        found = metric.kernel(problem, 40.0).scores(w)
        np.testing.assert_allclose(found, expected, rtol=1e-12 if weights == "real" else 0)
    monkeypatch.setattr(walk, "THREADED", 1)
    monkeypatch.setattr(walk, "thread_count", lambda: 3)
    np.testing.assert_allclose(metric.kernel(problem, 40.0).scores(w), expected, rtol=1e-12 if weights == "real" else 0)


@functools.cache
def ends_of_columns(name, values):
    """Return labels, predictions and draws, and what scikit-learn makes of them."""
    theirs = {"auc": sklearn.metrics.roc_auc_score, "average_precision": sklearn.metrics.average_precision_score}[name]
    g = np.random.default_rng(values)
    y = np.array([0.0, 1.0] * 5)
    p = g.integers(0, values, (10, 6, 1)) / values
    w = g.integers(1, 4, (33, 10)).astype(np.int32)
    return y, p, w, [[theirs(y, column, sample_weight=row) for column in p[:, :, 0].T] for row in w]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("values", [2, 4, 100])
@pytest.mark.parametrize("name", ["auc", "average_precision"])
def test_walks_equal_scikit_learn_whatever_ends_a_column(monkeypatch, name, values, engine):
    """Ties of any length, and either class at both ends of every column."""
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(walk, "FORCE", engine)
    y, p, w, expected = ends_of_columns(name, values)
    found = get_metric(name).kernel(Problem(y, p, None, None, 2, "probability", 0.5), 40.0).scores(w)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "f1", "brier", "auc", "average_precision", "concordance"])
@pytest.mark.parametrize("gaps", [False, True])
def test_sizes_of_blocks_change_nothing(monkeypatch, name, gaps):
    metric, problem = task(name, gaps=gaps)
    w = draws(problem.n, 40)
    whole = metric.kernel(problem, 40.0)
    best = np.arange(40) % 5
    for module, attribute, size in (
        ("sums", "TILE", 7), ("ranks", "TILE", 7), ("walk", "TILE", 99), ("order", "TILE", 50), ("pairs", "TILE", 7),
        ("pairs", "CELLS", 1),
    ):  # fmt: skip
        monkeypatch.setattr(f"cvstats.kernels.{module}.{attribute}", size)
    small = metric.kernel(problem, 40.0)
    np.testing.assert_array_equal(small.scores(w), whole.scores(w))
    np.testing.assert_array_equal(small.judged(w, best), whole.judged(w, best))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("total", [40.0, 1e9])
def test_concordance_is_exact_for_whole_numbers(monkeypatch, total, engine):
    """In single precision while sums fit it, in double beyond; equal times, censored or not, in every tile."""
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(walk, "FORCE", engine)
    g = np.random.default_rng(5)
    n = 600
    y, event = g.integers(0, 9, n).astype(float), g.integers(0, 2, n).astype(float)
    risk = g.integers(0, 5, (n, 2, 1)).astype(float)
    problem = Problem(y, risk, None, event, 0, "score", None)
    w = draws(n, 3)
    comparable = (event[:, None] == 1) & ((y[:, None] < y) | ((y[:, None] == y) & (event == 0)))
    right = (risk[:, None, :, 0] > risk[None, :, :, 0]) + 0.5 * (risk[:, None, :, 0] == risk[None, :, :, 0])
    found = pairs.PairKernel(get_metric("concordance"), problem, total).scores(w)
    for row, scores in zip(w.astype(object), found, strict=True):
        pair = np.outer(row, row) * comparable
        expected = [float((2 * pair * right[:, :, j]).sum()) / float(2 * pair.sum()) for j in range(2)]
        assert scores.tolist() == expected


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("weight", [500.0, 5000.0, 5e6])
def test_concordance_of_samples_that_weigh_much(monkeypatch, weight, engine):
    """Twice the weight of the pairs is 3e7, 3e9 or 3e15: more than single precision, or 32 bits, can count."""
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(walk, "FORCE", engine)
    n = 11
    y, event, risk = np.arange(n, dtype=float), np.ones(n), -np.arange(n, dtype=float)
    risk = np.stack([risk, np.append(risk[1:], 1.0)], axis=1)[:, :, None]  # all in order, and the last first
    problem = Problem(y, risk, weight + y, event, 0, "score", None)
    found = pairs.PairKernel(get_metric("concordance"), problem, float(n)).scores(np.ones((1, n), np.int32))
    w = problem.weight
    every, last = np.triu(np.outer(w, w), 1), np.triu(np.outer(w, w), 1)[:, -1]
    np.testing.assert_array_equal(found, [[1.0, 1 - last.sum() / every.sum()]])


@pytest.mark.parametrize("tile", [3, 256])
def test_concordance_with_gaps_and_equal_times(monkeypatch, tile):
    """What is missing is in no pair, of no repeat that lacks it; equal times on both sides of a tile's end."""
    monkeypatch.setattr(walk, "FORCE", "numpy")
    monkeypatch.setattr(pairs, "TILE", tile)
    g = np.random.default_rng(8)
    n, w = 20, draws(20, 4)
    y, event = g.integers(0, 4, n).astype(float), (g.random(n) < 0.7).astype(float)
    risk = g.integers(0, 5, (n, 3, 2)).astype(float)
    risk[:7, 0, 0] = risk[3:9, 1] = np.nan
    found = pairs.PairKernel(get_metric("concordance"), Problem(y, risk, None, event, 0, "score", None), 20.0).scores(w)
    comparable = (event[:, None] == 1) & ((y[:, None] < y) | ((y[:, None] == y) & (event == 0)))
    for row, scores in zip(w, found, strict=True):
        for j, score in enumerate(scores):
            each = []
            for r in risk[:, j].T:
                pair = np.outer(row, row) * comparable * np.outer(~np.isnan(r), ~np.isnan(r))
                each.append((pair * ((r[:, None] > r) + 0.5 * (r[:, None] == r))).sum() / pair.sum())
            assert score == pytest.approx(np.mean(each), rel=1e-14)


def test_repeats_of_samples_with_partners():
    """Columns are partners within repeats; a repeat is taken with all of its partners, and its models."""
    p, model = np.arange(4 * 2 * 6.0).reshape(4, 2, 6), np.arange(12).reshape(4, 3)
    problem = Problem(np.zeros(4), p, None, None, 2, "score", None, partners=2, model=model)
    some = problem.repeats(np.array([2, 0]))
    assert some.p.tolist() == p[:, :, [4, 5, 0, 1]].tolist()
    assert some.model.tolist() == model[:, [2, 0]].tolist()
    fold = np.arange(24).reshape(6, 4)
    alone = Problem(np.zeros(4), p, None, None, 2, "score", None, fold=fold).repeats(slice(1, 3))
    assert alone.p.tolist() == p[:, :, 1:3].tolist()
    assert alone.fold.tolist() == fold[1:3].tolist()


@pytest.mark.parametrize("name", ["accuracy", "f1", "brier"])
def test_real_weights_keep_their_digits(name):
    """Though the whole numbers they multiply need fewer; f1 by sums of its parts."""
    metric, problem = task(name, r=1)
    w = np.random.default_rng(3).random((4, problem.n))
    hard = problem.p[:, :, 0] > 0.5
    expected = {
        "accuracy": lambda y, p, h, w: np.average(h == y, weights=w),
        "brier": lambda y, p, h, w: np.average((p - y) ** 2, weights=w),
        "f1": lambda y, p, h, w: sklearn.metrics.f1_score(y, h, sample_weight=w),
    }[name]
    found = metric.kernel(problem, float(w.sum(axis=1).max())).scores(w)
    by_hand = [[expected(problem.y, problem.p[:, j, 0], hard[:, j], row) for j in range(5)] for row in w]
    np.testing.assert_allclose(found, by_hand, rtol=1e-13)


@pytest.mark.parametrize("name", ["accuracy", "brier"])
def test_a_sample_in_some_of_the_repeats_counts_as_one_in_all(name):
    """Its value is the mean over the repeats that have it, be it one of three, two or all."""
    metric, problem = task(name)
    p = problem.p.copy()
    p[0, 0, :2] = p[1, 0, 1] = p[2, 1, 0] = np.nan
    values = (p - problem.y[:, None, None]) ** 2 if name == "brier" else (p > 0.5) == problem.y[:, None, None]
    w = draws(problem.n, 6)
    values = np.nanmean(np.where(np.isnan(p), np.nan, values), axis=2)
    found = metric.kernel(replace(problem, p=p), float(problem.n)).scores(w)
    np.testing.assert_allclose(found, w @ values / w.sum(axis=1)[:, None], rtol=1e-13)


def test_presence_knows_each_pattern_once():
    missing = np.zeros((9, 6), bool)
    missing[2, [1, 4]] = True
    missing[:, 5] = True
    presence = Presence(missing, 9, 6)
    assert len(presence.patterns) == 3
    np.testing.assert_array_equal(presence.patterns[presence.pattern], ~missing.T)
    assert presence.begun.tolist() == [True] * 5 + [False]
    assert presence.whole.tolist() == [True, False, True, True, False, False]
    assert Presence(None, 9, 6).patterns.all()


def test_columns_are_sorted_with_ties_in_the_order_given():
    g = np.random.default_rng(0)
    p = g.choice([-np.inf, -1.0, -0.0, 0.0, 1.0, 1.0 + 2**-52, np.inf, np.nan], (50, 8))
    rows = g.permutation(50)[:41]
    found, last = order.sort_columns(p, rows)
    for column in range(8):
        values = p[rows, column]
        expected = np.argsort(values, kind="stable")
        np.testing.assert_array_equal(found[column], expected)
        ends = np.append(values[expected][1:] != values[expected][:-1], True)
        np.testing.assert_array_equal(last[column], ends)
    assert order.sort_columns(np.arange(5.0)[:, None], np.arange(5))[1] is None


def test_predictions_are_read_as_the_metric_uses_them():
    p = np.array([0.2, 0.5, np.nan, 0.9]).reshape(4, 1, 1)
    problem = Problem(np.zeros(4), p, None, None, 2, "probability", 0.5)
    np.testing.assert_array_equal(problem.read("label")[:, 0, 0], [0, 0, np.nan, 1])
    np.testing.assert_allclose(problem.read("margin")[:, 0, 0], [-0.3, 0, np.nan, 0.4])
    assert problem.read("score") is p or np.shares_memory(problem.read("score"), p)
    whole = problem.samples(np.array([0, 1, 3]))
    assert whole.read("label", whole=True).dtype == np.uint8
    assert whole.read("label", slice(1, 3), whole=True).ravel().tolist() == [0, 1]
    many = Problem(
        np.zeros(2), np.array([[0.1, 0.5], [0.2, 0.3], [0.7, 0.2]])[:, :, None, None], None, None, 3, "", None
    )
    assert many.read("label", whole=True).ravel().tolist() == many.read("label").ravel().tolist() == [2, 0]
    times = Problem(np.ones(2), np.array([3.0, 5.0]).reshape(2, 1, 1), None, np.ones(2), 0, "value", None)
    assert times.read("survival").ravel().tolist() == [-3.0, -5.0]
