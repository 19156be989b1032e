"""Thresholds against other people's software: R's cutpointr, scikit-learn's tuned thresholds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import TunedThresholdClassifierCV

import cvstats as cs

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "cutpoints.json").read_text(encoding="utf-8"))
LABEL, SCORE = np.array(REFERENCE["label"]), np.array(REFERENCE["score"])


def marker():
    return cs.as_cube(SCORE, LABEL, kind="score", positive=1)


@pytest.mark.parametrize(
    ("criterion", "metric", "scale"),
    [("youden", "balanced_accuracy", lambda v: (v + 1) / 2), ("accuracy", "accuracy", float), ("f1", "f1", float)],
)
def test_cutpointr_finds_the_same_cuts(criterion, metric, scale):
    """In the data and in 25 draws: of the cuts that cutpointr calls best ours is the lower median."""
    counts = np.array([np.ones(len(LABEL), int), *REFERENCE["draws"]])
    for row, found in zip(counts, REFERENCE["cuts"][criterion], strict=True):
        cube = marker().isel(sample=np.repeat(np.arange(len(LABEL)), row))
        cube = cube.assign_coords(sample=np.arange(len(LABEL)))
        out = cs.cvt(cube, metric, adjust=cs.cut(criterion))
        np.testing.assert_allclose(out["estimate"], scale(found["value"]), rtol=1e-12)
        tied = sorted(found["cut"])
        np.testing.assert_allclose(out["threshold"], tied[(len(tied) - 1) // 2], rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
def test_cutpointr_bootstraps_the_same():
    """Mean Youden index of the bootstrap's cuts on the samples left out, within chance."""
    theirs = REFERENCE["bootstrap"]
    out = cs.bbc(marker(), "balanced_accuracy", adjust=cs.cut("youden"), times=2000, rng=1)
    ours = 2 * float(out["estimate"]) - 1
    noise = np.hypot(theirs["se"], 2 * float(out["std_error"]) / np.sqrt(2000))
    assert abs(ours - theirs["youden_oob"]) < 4 * noise
    assert 2 * float(out["naive"]) - 1 > theirs["youden_oob"] + 0.05


class Saved(ClassifierMixin, BaseEstimator):
    """A classifier that says what was saved."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.hstack([1 - X, X])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)


def tuned(p, y, criterion):
    """Return the best value, and of the thresholds that reach it the one nearest .5; 0 and 1 stand for the far ends."""
    levels = np.unique(p)
    candidates = np.r_[0.0, (levels[1:] + levels[:-1]) / 2, 1.0]
    search = TunedThresholdClassifierCV(
        Saved().fit(p[:, None], y), scoring=criterion, thresholds=candidates, cv="prefit", refit=False,
        store_cv_results=True,
    ).fit(p[:, None], y)  # fmt: skip
    far = np.where((candidates == 0) | (candidates == 1), np.inf, np.abs(candidates - 0.5))
    good = np.flatnonzero(search.cv_results_["scores"] > search.best_score_ - 1e-12)
    return search.best_score_, candidates[min(good, key=lambda i: (far[i], candidates[i]))]


@pytest.mark.parametrize("criterion", ["balanced_accuracy", "accuracy", "f1"])
@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_tunes_to_the_same_threshold(criterion, seed):
    g = np.random.default_rng(seed)
    y = (g.random(70) < 0.4).astype(int)
    p = expit(1.2 * (y - 0.4) + g.normal(size=70)).round(2)
    out = cs.cvt(cs.as_cube(p, y, kind="probability", positive=1), criterion, adjust=cs.cut(criterion))
    value, threshold = tuned(p, y, criterion)
    np.testing.assert_allclose(out["estimate"], value, rtol=1e-12)
    np.testing.assert_allclose(out["threshold"], threshold, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
def test_scikit_learn_in_every_draw():
    """A bootstrap of scikit-learn's tuned threshold, judged on what was left out, is a cut in every draw."""
    g = np.random.default_rng(8)
    y = (np.arange(60) % 5 < 2).astype(int)
    p = expit(1.2 * (y - 0.4) + g.normal(size=60))
    cube = cs.as_cube(p, y, kind="probability", positive=1)
    draws = cs.bootstrap(cube, 12, rng=2, strata="label")
    found = cs.select_and_judge(cube, "accuracy", choose=draws, adjust=cs.cut("accuracy"), ties="first")
    for b, row in enumerate(draws.values):
        bag = np.repeat(np.arange(60), row)
        threshold = tuned(p[bag], y[bag], "accuracy")[1]
        np.testing.assert_allclose(found["value"][b], ((p > threshold) == y)[row == 0].mean(), rtol=1e-12)
