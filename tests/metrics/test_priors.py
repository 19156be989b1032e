"""Metrics at a prior: equal to the plain metric when classes weigh what the prior says."""

import numpy as np
import pytest

import cvstats as cs

G = np.random.default_rng(5)
Y = np.repeat([0, 1], [40, 20])
P = np.clip(0.35 * Y[:, None] + 0.65 * G.random((60, 3)), 0.01, 0.99)
CUBE = cs.as_cube(P, Y, kind="probability")
NAMES = ["accuracy", "error_rate", "brier", "log_loss", "ppv", "npv", "precision", "f1", "mcc", "kappa"]


@pytest.mark.parametrize("share", [0.02, 1 / 3, 0.7])
@pytest.mark.parametrize("name", [*NAMES, "net_benefit"])
def test_equals_case_weights_that_make_the_prior(name, share):
    metric = cs.net_benefit(0.2) if name == "net_benefit" else getattr(cs, name)
    weights = np.where(Y == 1, share / 20, (1 - share) / 40)
    expected = cs.score(cs.as_cube(P, Y, kind="probability", weights=weights), metric)
    np.testing.assert_allclose(cs.score(CUBE, cs.at_prior(metric, {1: share})), expected, rtol=1e-12)


def test_error_rate_equals_prior_error():
    ours, theirs = cs.at_prior("error_rate", {1: 0.1}), cs.prior_error({1: 0.1})
    np.testing.assert_allclose(cs.score(CUBE, ours), cs.score(CUBE, theirs), rtol=1e-14)
    one, other = (cs.bbc(CUBE, metric, rng=1, times=200, strata="label") for metric in (ours, theirs))
    assert float(one.estimate) == pytest.approx(float(other.estimate), rel=1e-12)
    assert one.metric.item() == "error_rate(1=0.1)"


def test_three_classes_and_repeats():
    y = np.repeat(list("abc"), [20, 10, 30])
    p = G.dirichlet(np.ones(3), (60, 2, 2))
    cube = cs.as_cube(p, y, classes=list("abc"), repeats=[0, 1])
    prior = {"a": 0.2, "b": 0.3, "c": 0.5}
    weights = np.array([prior[name] for name in y]) / np.array([{"a": 20, "b": 10, "c": 30}[name] for name in y])
    weighted = cs.as_cube(p, y, classes=list("abc"), repeats=[0, 1], weights=weights)
    for name in ("accuracy", "brier", "f1", "precision", "kappa"):
        np.testing.assert_allclose(cs.score(cube, cs.at_prior(name, prior)), cs.score(weighted, name), rtol=1e-12)


@pytest.mark.parametrize("name", ["auc", "sensitivity", "balanced_accuracy", "youden"])
def test_what_ignores_the_ratio_stays(name):
    np.testing.assert_array_equal(cs.score(CUBE, cs.at_prior(name, {1: 0.02})), cs.score(CUBE, name))


def test_separate_sampling_and_shifted_probabilities():
    at = cs.at_prior("brier", {1: 0.05})
    out = cs.winner(CUBE, at, adjust=cs.shift_prior({1: 0.05}), rng=1, times=200)
    unshifted = cs.winner(CUBE, at, rng=1, times=200)
    assert float(out.estimate) < float(unshifted.estimate)  # probabilities for the sample's ratio are too high there
    with pytest.raises(cs.InputError, match="same prior"):
        cs.winner(CUBE, "brier", adjust=cs.shift_prior({1: 0.05}), rng=1)


@pytest.mark.parametrize(
    ("metric", "prior", "text"),
    [
        ("average_precision", {1: 0.1}, "no function of means"),
        ("accuracy", 0.1, "must be {label: probability}"),
        ("accuracy", {1: 1.5}, "probabilities in"),
        (cs.prior_error({1: 0.1}), {1: 0.1}, "a prior of its own"),
    ],
)
def test_refusals(metric, prior, text):
    with pytest.raises(cs.InputError, match=text):
        cs.at_prior(metric, prior)
    with pytest.raises(cs.InputError, match="not among the classes"):
        cs.score(CUBE, cs.at_prior("accuracy", {"ill": 0.1}))
