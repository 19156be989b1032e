"""Decisions made anew in every draw remove their own optimism: fixed models with known truth, plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from cvstats.kernels.cutting import Criterion, Cutter
from cvstats.kernels.mixing import Candidates, mix

pytestmark = pytest.mark.slow
TIMES = 100


def draws_within(y, g):
    """Return counts of bootstrap draws within each class."""
    out = np.zeros((TIMES, len(y)), np.int32)
    for code in np.unique(y):
        rows = np.flatnonzero(y == code)
        for row in out:
            row[rows] = np.bincount(g.integers(0, len(rows), len(rows)), minlength=len(rows))
    return out


def estimates(naive, remade, kept):
    """Return the naive value, the mean value out of the draws, and the anchored one, of values (draw,)."""
    return naive, remade.mean(), naive + (remade - kept).mean()


def youden(y, labels, w):
    """Return the Youden index (draw,) of labels (n, draw) under weights (draw, n)."""
    hit = labels == y[:, None]
    rate = [np.einsum("nd,dn->d", hit[y == code], w[:, y == code]) / w[:, y == code].sum(axis=1) for code in (0, 1)]
    return rate[0] + rate[1] - 1


def threshold_errors(n, m, g):
    """Return what the three estimates of configuration and threshold chosen together are off by."""
    y = (np.arange(n) < round(0.4 * n)).astype(float)
    gap = g.uniform(0.6, 1.2, m)
    noise = np.sqrt(0.6) * g.normal(size=(n, 1)) + np.sqrt(0.4) * g.normal(size=(n, m))
    p = (noise + gap * y[:, None])[:, :, None]
    w = draws_within(y, g)
    cuts = Cutter(y, p, Criterion("youden"), None).cuts(np.concatenate([np.ones((1, n), np.int32), w]))
    value = cuts.tp / cuts.positives - cuts.fp / cuts.negatives
    best = value.argmax(axis=1)
    limit = cuts.threshold[np.arange(len(best)), best]
    truth = ndtr(gap[best[0]] - limit[0]) + ndtr(limit[0]) - 1
    out = (w == 0).astype(float)
    remade = youden(y, p[:, best[1:], 0] > limit[1:], out)
    kept = youden(y, np.repeat(p[:, best[:1], 0] > limit[0], TIMES, axis=1), out)
    return np.array(estimates(value[0, best[0]], remade, kept)) - truth


def ensemble_errors(n, m, g):
    """Return what the three estimates of a greedy ensemble's squared error are off by."""
    own = g.uniform(0.6, 1.0, m)
    residual = (0.6 * g.normal(size=(n, 1)) + own * g.normal(size=(n, m)))[:, :, None]
    w = draws_within(np.zeros(n), g)
    share = Candidates(residual, target=np.zeros((n, 1, 1))).greedy(np.concatenate([np.ones((1, n), int), w]), 20)
    loss = mix(residual, share)[:, :, 0] ** 2
    truth = 0.36 + share[0] ** 2 @ own**2
    out = (w == 0) / (w == 0).sum(axis=1, keepdims=True)
    remade = np.einsum("nd,dn->d", loss[:, 1:], out)
    return np.array(estimates(loss[:, 0].mean(), remade, out @ loss[:, 0])) - truth


@pytest.mark.parametrize(("n", "m", "naive"), [(60, 10, 0.217), (120, 10, 0.139), (60, 50, 0.257)])
def test_threshold_and_configuration(n, m, naive):
    g = np.random.default_rng(n + m)
    errors = np.array([threshold_errors(n, m, g) for _ in range(150)])
    noise = errors.std(axis=0) / np.sqrt(len(errors))
    bias = errors.mean(axis=0)
    assert abs(bias[0] - naive) < 4 * noise[0]
    assert (np.abs(bias[1:]) < 0.01 + 3 * noise[1:]).all()


@pytest.mark.parametrize(("n", "m", "naive"), [(50, 20, -0.158), (100, 20, -0.102)])
def test_ensemble(n, m, naive):
    g = np.random.default_rng(n + m)
    errors = np.array([ensemble_errors(n, m, g) for _ in range(200)])
    noise = errors.std(axis=0) / np.sqrt(len(errors))
    bias = errors.mean(axis=0)
    assert abs(bias[0] - naive) < 4 * noise[0]
    assert (np.abs(bias[1:]) < 0.02 + 3 * noise[1:]).all()
