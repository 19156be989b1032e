"""What is undefined is NaN, whatever rounding makes of 0/0: real weights, other priors, gaps, folds."""

from __future__ import annotations

import numpy as np
import pytest

import cvstats as cs

pytestmark = pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
WEIGHTS = np.array([3.14159, 1.7, 0.1, 0.3, 1 / 3, 0.7, 1.1, 0.01, 2 / 7, 5.3])
DEGENERATE = [  # name, labels and predictions of the first fold, value there
    ("npv", [0, 1, 1, 0, 1], [1, 1, 1, 1, 1], np.nan),
    ("kappa", [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], np.nan),
    ("kappa", [2, 2, 2, 2, 2], [2, 2, 2, 2, 2], np.nan),
    ("mcc", [2, 2, 2, 2, 2], [2, 0, 1, 2, 0], 0.0),
    ("mcc", [2, 0, 1, 2, 0], [2, 2, 2, 2, 2], 0.0),
    ("positive_likelihood_ratio", [0, 1, 0, 0, 1], [0, 1, 0, 0, 1], np.nan),
]


@pytest.mark.parametrize(("name", "label", "prediction", "value"), DEGENERATE)
def test_real_weights(name, label, prediction, value):
    """Sums of real weights over the same samples may differ by rounding, and 0/0 is then any number."""
    others = [2, 0, 1, 2, 1] if 2 in (*label, *prediction) else [0, 1, 0, 1, 1]
    for seed in range(40):
        cube = cs.as_cube(
            [*prediction, *others],
            [*label, *others],
            folds=np.repeat([0, 1], 5),
            weights=np.random.default_rng(seed).permutation(WEIGHTS),
            kind="label",
        )
        both = [cs.score(cube, name, average="fold").item(), cs.score(cube.isel(sample=slice(5, None)), name).item()]
        np.testing.assert_equal(cs.score(cube.isel(sample=slice(5)), name).item(), value)
        np.testing.assert_allclose(both[0], (value + both[1]) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.7, 0.9])
def test_other_priors(share):
    for n in range(3, 12):
        cube = cs.as_cube(np.ones(n), np.arange(n) % 2, kind="label")
        assert np.isnan(cs.score(cube, cs.at_prior("npv", {1: share})).item())
        assert cs.score(cube, cs.at_prior("mcc", {1: share})).item() == 0


@pytest.mark.parametrize("name", ["mcc", "accuracy", "kappa", "f1"])
def test_nothing_is_known_of_errors_in_a_class_that_is_absent(name):
    cube = cs.as_cube([0, 1, 1], [1, 1, 1], kind="label", positive=1)
    assert np.isnan(cs.score(cube, cs.at_prior(name, {0: 0.3})).item())


def test_nothing_predicted_has_no_precision():
    predicted = np.array([[0.0, np.nan], [1, np.nan], [2, np.nan], [1, np.nan]])
    cube = cs.as_cube(predicted, [0, 1, 2, 2], kind="label")
    np.testing.assert_allclose(cs.precision(cube), [(1 + 0.5 + 1) / 3, np.nan])


def test_no_events_have_no_ratio_to_the_expected():
    cube = cs.as_cube([0.2, 0.4, 0.5, 0.5], [0, 0, 1, 0], folds=[0, 0, 1, 1])
    assert np.isnan(cs.score(cube, "observed_expected", average="fold").item())
    assert cs.score(cube, "observed_expected", average="fold", undefined="skip").item() == 1


class TestR2:
    @pytest.mark.parametrize("constant", [0.1, 1 / 3, 7.7, 1e6])
    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    def test_labels_that_do_not_vary_within_a_fold(self, constant, size):
        rng = np.random.default_rng(size)
        label = np.r_[np.full(size, constant), rng.normal(size=6)]
        cube = cs.as_cube(label + rng.normal(size=len(label)), label, folds=np.repeat([0, 1], [size, 6]), kind="value")
        assert np.isnan(cs.score(cube, "r2", average="fold").item())
        found = cs.score(cube, "r2", average="fold", undefined="skip")
        assert found.item() == pytest.approx(cs.r2(cube.isel(sample=slice(size, None))).item(), rel=1e-12)
        assert found["n_folds"].item() == 1

    def test_folds_far_from_each_other(self):
        label = np.array([1e6 + 1, 1e6 + 2, 1e6 + 4, 1, 2, 4])
        cube = cs.as_cube(label + np.array([0.5, -0.5, 0, 0.5, -0.5, 0]), label, folds=[0] * 3 + [1] * 3, kind="value")
        expected = 1 - 0.5 / (14 / 3)
        assert cs.score(cube, "r2", average="fold").item() == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("constant", [0.1, 1 / 3, 7.7])
    def test_only_equal_labels_predicted(self, constant):
        label = np.r_[np.full(3, constant), 1.0, 2.5, 4.1]
        predicted = np.stack([label + 0.1, np.where(label == constant, label + 0.1, np.nan)], axis=1)
        found = cs.r2(cs.as_cube(predicted, label, kind="value")).values
        assert found[0] > 0.9
        assert np.isnan(found[1])


@pytest.mark.parametrize("kind", ["score", "value"])
def test_time_dependent_auc_when_all_are_censored_before(kind):
    label, event = [1.0, 2.0, 3.0], [0, 0, 0]
    assert np.isnan(cs.score(cs.as_cube([0.1, 0.2, 0.3], label, event=event, kind=kind), cs.survival_auc(4)).item())
