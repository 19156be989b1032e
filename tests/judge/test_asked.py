"""What draws must hold so that everything that was asked can be decided and judged in them."""

from __future__ import annotations

import numpy as np
import pytest

import cvstats as cs
from cvstats.judge.asked import stand_in
from shared import refusal


@pytest.mark.parametrize(
    ("by", "metrics", "adjust", "requires", "ratio_free"),
    [
        ("auc", ["auc"], None, "classes", True),
        ("brier", ["accuracy"], None, "", False),
        ("sensitivity", ["accuracy"], None, "positive", False),
        ("accuracy", ["sensitivity"], None, "positive", True),
        ("sensitivity", ["sensitivity", "specificity"], None, "classes", True),
        ("brier", ["auc", "accuracy"], None, "classes", False),
        ("accuracy", ["accuracy"], cs.cut("youden"), "classes", False),
        ("mse", ["r2"], None, "spread", False),
    ],
)
def test_draws_hold_what_every_metric_needs(by, metrics, adjust, requires, ratio_free):
    found = stand_in(getattr(cs, by), [getattr(cs, name) for name in metrics], adjust)
    assert (found.name, found.requires, found.ratio_free) == (by, requires, ratio_free)


@pytest.mark.parametrize(
    "asked", [{"metric": ["auc", "smoothed_error_rate"]}, {"metric": "smoothed_error_rate", "by": "auc"}]
)
def test_infinite_predictions_are_refused_by_whatever_averages_them(asked):
    y = np.arange(20) % 2
    scores = np.random.default_rng(0).normal(size=(20, 3)) + y[:, None]
    scores[3, 1] = np.inf
    cube = cs.as_cube(scores, y, kind="score", positive=1, threshold=0.0)
    assert np.isfinite(cs.bbc(cube, "auc", times=60, rng=1)["estimate"])
    refused = refusal(lambda: cs.bbc(cube, **asked, times=60, rng=1))
    refused("metric 'smoothed_error_rate' needs finite predictions; found infinite ones for samples 3")
