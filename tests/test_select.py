"""Selection strategies: winners by hand, ties, gaps, leading axes, and the text of every refusal."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cvstats as cs
from cvstats.select import ranking


class TestBest:
    def test_by_direction(self):
        scores = np.array([0.7, 0.9, 0.1])
        assert cs.select_best(scores, direction="maximize") == 1
        assert cs.select_best(scores, direction="minimize") == 2

    def test_ties_go_to_the_first(self):
        assert cs.select_best([0.5, 0.9, 0.9], direction="maximize") == 1
        assert cs.select_best([0.5, 0.1, 0.1], direction="minimize") == 1

    def test_missing_is_never_best(self):
        assert cs.select_best([np.nan, 0.2, np.nan], direction="maximize") == 1
        assert cs.select_best([np.nan, 0.2, 0.1], direction="minimize") == 2

    def test_infinite_losses(self):
        assert cs.select_best([np.inf, 3.0], direction="minimize") == 1
        assert cs.select_best([-np.inf, -3.0], direction="maximize") == 1

    def test_along_the_last_axis(self):
        table = np.arange(24.0).reshape(2, 3, 4)
        found = cs.select_best(table, direction="maximize")
        assert found.shape == (2, 3)
        assert (found == 3).all()

    def test_direction(self):
        with pytest.raises(cs.InputError, match=r"`direction` must be one of 'maximize', 'minimize'; got 'up'\."):
            cs.select_best([1.0], direction="up")

    def test_scores_are_not_changed(self):
        scores = np.array([0.7, np.nan, 0.1])
        before = scores.copy()
        cs.select_best(scores, direction="minimize")
        np.testing.assert_array_equal(scores, before)


class TestOneSe:
    scores, error, size = np.array([0.80, 0.88, 0.90, 0.89]), np.array([0.5, 0.5, 0.03, 0.5]), np.array([1, 2, 9, 2])

    def test_simplest_within_one_error_of_the_best(self):
        found = cs.select_one_se(self.scores, direction="maximize", std_error=self.error, complexity=self.size)
        assert found == 3  # 1 and 3 are equally simple: the better score wins
        loss = cs.select_one_se(1 - self.scores, direction="minimize", std_error=self.error, complexity=self.size)
        assert loss == 3

    def test_the_error_is_that_of_the_best(self):
        tight = np.array([0.5, 0.5, 0.001, 0.5])
        assert cs.select_one_se(self.scores, direction="maximize", std_error=tight, complexity=self.size) == 2

    def test_without_complexity_the_first(self):
        assert cs.select_one_se(self.scores, direction="maximize", std_error=self.error) == 1

    def test_ties_in_everything_go_to_the_first(self):
        found = cs.select_one_se([0.9, 0.9], direction="maximize", std_error=[0.1, 0.1], complexity=[2, 2])
        assert found == 0

    def test_many_draws_share_the_errors(self):
        table = np.stack([self.scores, self.scores[::-1]])
        found = cs.select_one_se(table, direction="maximize", std_error=self.error, complexity=self.size)
        assert found.shape == (2,)
        assert found[0] == 3

    def test_unknown_complexity_is_not_simple(self):
        found = cs.select_one_se([0.9, 0.9], direction="maximize", std_error=[0.1, 0.1], complexity=[np.nan, 5])
        assert found == 1

    def test_error_is_needed(self):
        with pytest.raises(
            cs.InputError, match="select_one_se needs `std_error`, one bootstrap standard error per config"
        ):
            cs.select_one_se([0.9], direction="maximize")


class TestWithin:
    def test_simplest_within_a_loss(self):
        scores, size = [0.80, 0.88, 0.90], [1, 2, 9]
        for loss, winner in ((0.0, 2), (0.02, 1), (0.021, 1), (0.11, 0)):
            found = cs.select_within(loss + 1e-12)(scores, direction="maximize", complexity=size)
            assert found == winner
        assert cs.select_within(0.0)(scores, direction="maximize") == 2

    def test_losses(self):
        assert cs.select_within(0.5)([1.0, 1.2, 0.8], direction="minimize", complexity=[2, 1, 3]) == 1

    def test_name_and_pickle(self):
        strategy = cs.select_within(0.05)
        assert strategy.__name__ == "select_within(0.05)"
        again = pickle.loads(pickle.dumps(strategy))
        assert again([0.88, 0.9], direction="maximize", complexity=[1, 5]) == 0

    @pytest.mark.parametrize("loss", [-0.1, np.nan, np.inf, "a", True])
    def test_bad_loss(self, loss):
        with pytest.raises(cs.InputError, match="`loss` must be a finite number that is not negative; got"):
            cs.select_within(loss)


@pytest.mark.parametrize("draws", [1, 70])
def test_ranking_is_by_the_criterion_first(draws):
    """However few draws or many columns; equal values stand together, what is undefined is last."""
    g = np.random.default_rng(draws)
    criterion = g.integers(0, 30, (draws, 64)).astype(float)
    criterion[:, 5] = np.nan
    hashes = g.integers(0, 2**63, 64).astype(np.uint64)
    order = np.array(list(ranking(criterion, hashes, 3)))
    assert (np.sort(order, axis=1) == np.arange(64)).all()
    best_first = np.take_along_axis(criterion, order, axis=1)
    assert (np.diff(best_first[:, :-1], axis=1) <= 0).all()
    assert (order[:, -1] == 5).all()
