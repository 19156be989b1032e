"""Predictive values, Youden's index, kappa and net benefit, by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as sk

import cvstats as cs

G = np.random.default_rng(3)
Y = G.integers(0, 2, 80)
P = np.clip(0.3 * Y[:, None] + G.random((80, 4)) * 0.7, 0, 1).round(2)
W = G.integers(1, 4, 80)
HARD = (P > 0.5).astype(int)
Y3 = G.integers(0, 3, 90)
HARD3 = np.where(G.random((90, 3)) < 0.6, Y3[:, None], G.integers(0, 3, (90, 3)))


def net(y, p, t, w=None):
    w = np.ones(len(y)) if w is None else w
    treated = p > t
    return (np.sum(w * treated * y) - np.sum(w * treated * (1 - y)) * t / (1 - t)) / w.sum()


THEIRS = {
    "ppv": sk.precision_score,
    "npv": lambda y, p, **more: sk.precision_score(y, p, pos_label=0, **more),
    "precision": sk.precision_score,
    "youden": lambda y, p, **more: sk.balanced_accuracy_score(y, p, adjusted=True, **more),
    "kappa": sk.cohen_kappa_score,
}


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("name", THEIRS)
def test_two_classes_equal_scikit_learn(name, weights):
    found = cs.score(cs.as_cube(P, Y, weights=weights, kind="probability"), name)
    expected = [THEIRS[name](Y, column, sample_weight=weights) for column in HARD.T]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["kappa", "precision"])
def test_several_classes_equal_scikit_learn(name):
    found = cs.score(cs.as_cube(HARD3, Y3, kind="label"), name)
    more = {"average": "macro"} if name == "precision" else {}
    np.testing.assert_allclose(found, [THEIRS[name](Y3, column, **more) for column in HARD3.T], rtol=1e-13)


@pytest.mark.parametrize("t", [0.1, 0.5, 0.8])
def test_net_benefit_by_its_formula(t):
    for weights in (None, W):
        found = cs.score(cs.as_cube(P, Y, weights=weights, kind="probability"), cs.net_benefit(t))
        np.testing.assert_allclose(found, [net(Y, column, t, weights) for column in P.T], rtol=1e-12)
    assert found.metric.item() == f"net_benefit({t:g})"


def test_net_benefit_of_treating_all_and_none():
    cube = cs.as_cube(np.tile([0.0, 1.0], (80, 1)), Y, configurations=["none", "all"], kind="probability")
    share = Y.mean()
    np.testing.assert_allclose(cs.score(cube, cs.net_benefit(0.2)), [0.0, share - (1 - share) * 0.25], rtol=1e-13)


@pytest.mark.parametrize("bad", [0, 1, -0.1, "a", True, np.nan])
def test_a_threshold_that_is_no_risk(bad):
    with pytest.raises(cs.InputError, match="strictly between 0 and 1"):
        cs.net_benefit(bad)


def test_what_is_undefined_is_nan():
    cube = cs.as_cube([[0, 1], [0, 1], [0, 1]], [0, 1, 1], kind="label")
    with pytest.warns(cs.CvstatsWarning, match="ppv is NaN"):
        assert np.isnan(cs.score(cube, "ppv")[0])
    with pytest.warns(cs.CvstatsWarning, match="npv is NaN"):
        assert np.isnan(cs.score(cube, "npv")[1])
    assert cs.score(cube, "kappa").values.tolist() == [0.0, 0.0]


def test_each_metric_is_corrected_for_the_choice():
    cube = cs.as_cube(G.random((60, 30)), G.integers(0, 2, 60), kind="probability")
    for metric in ("youden", "kappa", cs.net_benefit(0.3)):
        out = cs.winner(cube, metric, rng=1, times=200)
        assert float(out.optimism) > 0
        assert float(out.conf_low) < float(out.estimate) < float(out.conf_high)
