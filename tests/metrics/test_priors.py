"""Metrics at a prior: equal to the plain metric when classes weigh what the prior says."""

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.metrics.base import REGISTRY

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
    with pytest.raises(cs.InputError, match="are at different class ratios"):
        cs.winner(CUBE, at, adjust=cs.shift_prior({1: 0.1}), rng=1)


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


def separate(k0, k1, gaps):
    """Return probabilities (sample, configuration, partner, repeat) of unequal folds, labels and folds."""
    g = np.random.default_rng(k0)
    y = np.repeat([0, 1], [13, 11])
    deal = [np.r_[np.arange(k0), g.integers(0, k0, 13 - k0), np.arange(k1), g.integers(0, k1, 11 - k1)] for _ in "ab"]
    p = np.clip(0.3 * y[:, None, None, None] + 0.7 * g.random((24, 3, max(k0, k1), 2)), 0.05, 0.95)
    p[:13, :, k1:], p[13:, :, k0:] = np.nan, np.nan
    if gaps:
        p[2, 1, 0, 0] = p[15, :, 1] = np.nan
    return p, y, np.stack(deal, axis=1)


def as_separate(p, y, fold):
    array = xr.DataArray(p, dims=("sample", "configuration", "partner", "repeat"))
    array = array.assign_coords(fold=(("sample", "repeat"), fold), partner=np.arange(p.shape[2]))
    return cs.as_cube(array, y, kind="probability", positive=1)


FORMULAS = {  # of the shares of true and false positives in the population, and of the positives
    "accuracy": lambda tp, fp, share: tp + (1 - share - fp),
    "ppv": lambda tp, fp, share: tp / (tp + fp),
    "npv": lambda tp, fp, share: (1 - share - fp) / (1 - tp - fp),
    "f1": lambda tp, fp, share: 2 * tp / (tp + fp + share),
    "net_benefit(0.6)": lambda tp, fp, share: tp - fp * 0.6 / 0.4,
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("design", [(3, 3), (4, 2)])
@pytest.mark.parametrize("name", FORMULAS)
def test_separate_sampling_by_plain_loops(name, design, gaps):
    """A sample counts by its mean over partners; the formula is computed in each repeat, at the prior.

    Where the formula is linear, a sample's mean is over all that it has.
    """
    p, y, fold = separate(*design, gaps)
    at = 0.6 if "benefit" in name else 0.5
    metric = cs.at_prior(cs.net_benefit(0.6) if "benefit" in name else name, {1: 0.2})
    expected, together = [], [[0, 1]] if name in ("accuracy", "net_benefit(0.6)") else [[0], [1]]
    for configuration in range(3):
        values = []
        for repeats in together:
            share = {}
            for code, part in ((0, 0.8), (1, 0.2)):
                rows = [p[i, configuration][:, repeats].ravel() for i in np.flatnonzero(y == code)]
                means = [np.mean(row[~np.isnan(row)] > at) for row in rows if not np.isnan(row).all()]
                share[code] = part * np.mean(means)
            values.append(FORMULAS[name](share[1], share[0], 0.2))
        expected.append(np.mean(values))
    np.testing.assert_allclose(cs.score(as_separate(p, y, fold), metric), expected, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*draws could not be used")  # ratios are undefined in some
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    "name", [name for name, one in REGISTRY.items() if one.uses in ("label", "score", "probability")]
)
def test_numbers_of_folds_change_no_metric(name, gaps):
    """Folds of one class are renumbered alone, and with them the partners of the other class."""
    p, y, fold = separate(4, 3, gaps)
    metric = REGISTRY[name]
    if metric.family == "custom" or (metric.family == "rank" and metric.statistic != "auc"):
        pytest.skip("refused: compares predictions of different models")
    metric = metric if metric.ratio_free or metric.family == "rank" else cs.at_prior(metric, {1: 0.1})
    names = np.array([2, 3, 1, 0])
    other, deal = p.copy(), np.where((y == 0)[:, None], names[fold], fold)
    other[y == 1] = other[y == 1][:, :, np.argsort(names)]
    one, two = as_separate(p, y, fold), as_separate(other, y, deal)
    np.testing.assert_allclose(cs.score(one, metric), cs.score(two, metric), rtol=1e-14)
    draws = cs.bootstrap(one, 40, rng=1, strata="label")
    by = None if metric.target is None else "balanced_accuracy"
    for protocol in (cs.bbc, cs.winner):
        a, b = (protocol(cube, metric, by=by, draws=draws, rng=1) for cube in (one, two))
        np.testing.assert_allclose(a.estimate, b.estimate, rtol=1e-13)
        assert a.selected == b.selected
