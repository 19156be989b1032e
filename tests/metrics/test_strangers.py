"""Metrics made outside the package: each is known everywhere once it is defined, and treated like our own.

Each is a straight line through one of ours, so every estimate, limit and choice must be the same line through ours.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cvstats as cs
from cvstats.metrics import base, define, get_metric, traits_of


def half_distance(y, p, k):
    """Half the distance of a prediction from the truth: the pinball loss of the median."""
    return [np.abs(p - y) / 2]


def informedness(y, p, k):
    """Share of positives found plus share of negatives found, minus one."""
    return [(p == 1) & (y == 1), (p == 0) & (y == 0)]


def _class_sizes(y, k):
    return [(y == 1).astype(float), (y == 0).astype(float)]


def _sum_of_shares(sums, labels):
    return sums[0] / labels[1] + sums[1] / labels[2] - 1


def gini(label, prediction, weight):
    """Twice the area under the ROC curve, minus one, by counting pairs."""
    one, zero = label == 1, label == 0
    gap = np.sign(prediction[one, None] - prediction[zero])
    return float(weight[one] @ gap @ weight[zero] / (weight[one].sum() * weight[zero].sum()))


@pytest.fixture
def metrics(monkeypatch):
    """Return the three metrics; the registry forgets them afterwards."""
    monkeypatch.setattr(base, "REGISTRY", base.REGISTRY.copy())
    mean = define(
        direction="minimize", range=(0.0, np.inf), family="mean", uses="value", monotone=-1, aliases=("Pinball",)
    )(half_distance)
    smooth = define(
        direction="maximize",
        range=(-1.0, 1.0),
        family="smooth",
        uses="label",
        binary_only=True,
        ratio_free=True,
        requires="classes",
        label_parts=_class_sizes,
        formula=_sum_of_shares,
        words="Youden index",
        unlike=("peirce_skill",),
    )(informedness)
    ranks = cs.as_metric(
        gini,
        direction="maximize",
        range=(-1, 1),
        uses="score",
        requires="classes",
        ratio_free=True,
        words="Gini coefficient",
    )
    return {"mean": mean, "smooth": smooth, "ranks": ranks}


def numbers():
    rng = np.random.default_rng(3)
    y = rng.normal(size=40)
    return cs.as_cube(y[:, None] + rng.normal(size=(40, 4)) * [0.6, 0.7, 0.7, 2.0], y, folds=np.arange(40) % 4)


def classes():
    rng = np.random.default_rng(4)
    y = np.arange(40) % 2
    p = np.clip(0.5 + 0.2 * (2 * y - 1)[:, None] + rng.normal(size=(40, 4)) * [0.2, 0.25, 0.3, 0.5], 0, 1)
    return cs.as_cube(p, y, folds=np.arange(40) // 2 % 4)


CASES = {"mean": (numbers, "mae", 0.5, 0.0), "smooth": (classes, "balanced_accuracy", 2.0, -1.0)}
CASES["ranks"] = (classes, "auc", 2.0, -1.0)
LEVELS = ("estimate", "naive", "conf_low", "conf_high", "bound_low", "bound_high")


@pytest.mark.parametrize("which", CASES)
class TestEverywhere:
    def test_score(self, metrics, which):
        make, ours, slope, shift = CASES[which]
        for average in ("pooled", "fold"):
            found = cs.score(make(), metrics[which], average=average)
            np.testing.assert_allclose(found, slope * cs.score(make(), ours, average=average) + shift)
        assert found.metric.item() == metrics[which].name

    @pytest.mark.parametrize("protocol", [cs.bbc, cs.winner])
    def test_protocols(self, metrics, which, protocol):
        make, ours, slope, shift = CASES[which]
        found, known = (
            protocol(make(), metric, times=60, rng=1, interval="percentile") for metric in (metrics[which], ours)
        )
        for name in LEVELS:
            np.testing.assert_allclose(found[name], slope * known[name] + shift, err_msg=name)
        np.testing.assert_allclose(found["optimism"], slope * known["optimism"])
        assert found["selected"] == known["selected"]
        np.testing.assert_array_equal(found["win_rate"], known["win_rate"])

    def test_calibrated_interval(self, metrics, which):
        make, ours, slope, shift = CASES[which]
        found, known = (cs.winner(make(), metric, times=60, rng=1) for metric in (metrics[which], ours))
        assert found.conf_low < found.estimate < found.conf_high
        if which != "ranks":  # the package knows what ranks pooled over folds need; of a function it knows nothing
            for name in LEVELS:
                np.testing.assert_allclose(found[name], slope * known[name] + shift, err_msg=name)

    def test_best_set(self, metrics, which):
        make, ours, *_ = CASES[which]
        found, known = (cs.best_set(make(), metric, times=200, rng=1) for metric in (metrics[which], ours))
        np.testing.assert_array_equal(found["in_set"], known["in_set"])

    def test_report(self, metrics, which):
        text = cs.report_text(CASES[which][0](), metrics[which], times=60)
        assert f"({'lower' if which == 'mean' else 'higher'} is better)" in text


def test_a_defined_metric_is_known_by_name(metrics):
    assert get_metric("half_distance") is get_metric("pinball") is traits_of("half_distance") is metrics["mean"]
    assert get_metric("Youden index") is metrics["smooth"]
    np.testing.assert_array_equal(cs.score(numbers(), "PINBALL"), metrics["mean"](numbers()))
    with pytest.raises(cs.InputError, match=r"\('informedness' is near it, but not the same\); known: .*informedness"):
        get_metric("peirce_skill")
    with pytest.raises(cs.InputError, match=r"did you mean 'half_distance'"):
        get_metric("half_distanse")


def test_they_carry_what_is_asked_of_a_metric(metrics):
    assert [metric.words for metric in metrics.values()] == ["half distance", "Youden index", "Gini coefficient"]
    assert [metric.scale for metric in metrics.values()] == ["log", "unit", "unit"]
    assert {metric.error_cost(2) for metric in metrics.values()} == {0.0}
    assert metrics["mean"].__doc__.startswith("Half the distance")
    for metric in metrics.values():
        cube = numbers() if metric is metrics["mean"] else classes()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(metric))(cube), metric(cube))


def test_a_loss_of_probabilities_allows_for_errors_that_were_not_seen(metrics):
    def surprise(y, p, k):
        """Distance of the probability from the truth."""
        return [np.abs(p - y)]

    metric = define(
        direction="minimize", range=(0.0, 1.0), family="mean", uses="probability", monotone=-1, scale="log"
    )(surprise)
    assert metric.error_cost(2) == 7 / 8
    y = np.arange(20) % 2
    p = np.where(y == 1, 0.99, 0.01)[:, None] + np.linspace(-0.005, 0.005, 20)[:, None]
    p[0] = 0.2  # not all are certain
    out = cs.winner(cs.as_cube(p, y), metric, times=60, rng=1)
    share = 1 - 0.025 ** (1 / 20)
    assert float(out.conf_high) == pytest.approx((1 - share) * float(out.estimate) + share * 7 / 8)
