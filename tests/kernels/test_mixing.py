"""Mixtures: greedy selection by plain loops written from the rules, all draws of tiny data, laws and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from cvstats.kernels import mixing
from cvstats.kernels.mixing import Candidates, complete, mix, votes
from cvstats.select import as_mixture, ensemble, top_mean
from shared import refusal


def example(n=30, m=6, r=1, draws=8, seed=0):
    """Return labels 0/1, probabilities and counts of draws."""
    g = np.random.default_rng(seed)
    y = np.arange(n) % 2.0
    p = np.clip(0.25 * y[:, None, None] + 0.75 * g.random((n, m, r)), 0.01, 0.99)
    w = np.stack([np.bincount(g.integers(0, n, n), minlength=n) for _ in range(draws)]).astype(np.int32)
    return y, p, w


def all_draws(n):
    """Return the distinct counts of all bootstrap draws of n samples."""
    return np.array([np.bincount(d, minlength=n) for d in itertools.combinations_with_replacement(range(n), n)])


def squared(y, q, w):
    return np.average((q - y[:, None]) ** 2, weights=np.repeat(w[:, None], q.shape[1], axis=1))


def logarithmic(y, q, w):
    return np.mean([log_loss(y, q[:, k], sample_weight=w, labels=[0, 1]) for k in range(q.shape[1])])


def below_auc(y, q, w):
    return 1 - np.mean([roc_auc_score(y, q[:, k], sample_weight=w) for k in range(q.shape[1])])


def wrong(y, q, w):
    return np.average((q > 0.5) != y[:, None], weights=np.repeat(w[:, None], q.shape[1], axis=1))


def by_hand(y, p, w, size, loss, *, replace=True, start=0):
    """Return the shares of one draw: add what makes the mean best, the first of what differs by rounding only."""
    m = p.shape[1]
    some = w > 0
    y, p, w = y[some], p[some], w[some]

    def best(values):
        least = min(values.values())
        return next(j for j, value in values.items() if value - least <= 1e-12 * max(1, abs(least)))

    alone = {j: loss(y, p[:, j], w) for j in range(m)}
    members = []
    for number in range(size):
        fresh = number < start or not replace
        free = [j for j in range(m) if not (fresh and j in members)]
        if number < start:
            members.append(best({j: alone[j] for j in free}))
        else:
            members.append(best({j: loss(y, np.mean([p[:, i] for i in [*members, j]], axis=0), w) for j in free}))
    return np.bincount(members, minlength=m) / size


def scored(y, loss):
    """Return candidates' losses by a function of one column."""
    return lambda rows, p, w: np.array([loss(y[rows], p[:, j], w) for j in range(p.shape[1])])


OPTIONS = [{}, {"replace": False}, {"start": 2}, {"replace": False, "start": 3}]


class TestByHand:
    @pytest.mark.slow
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_all_draws_of_five(self, options):
        y, p, _ = example(n=5, m=4, seed=3)
        w = all_draws(5)
        expected = [by_hand(y, p, row, 4, squared, **options) for row in w]
        np.testing.assert_allclose(Candidates(p, target=y[:, None, None]).greedy(w, 4, **options), expected, atol=1e-12)
        found = Candidates(p, loss=scored(y, squared)).greedy(w, 4, **options)
        np.testing.assert_allclose(found, expected, atol=1e-12)

    @pytest.mark.parametrize("r", [1, 3])
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_squared_error(self, options, r):
        y, p, w = example(r=r)
        found = Candidates(p, target=y[:, None, None]).greedy(w, 6, **options)
        np.testing.assert_allclose(found, [by_hand(y, p, row, 6, squared, **options) for row in w], atol=1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", [logarithmic, below_auc, wrong])
    def test_any_loss(self, loss):
        y, p, w = example(n=20, m=4, draws=3)
        p = np.round(p) if loss is wrong else p
        found = Candidates(p, loss=scored(y, loss)).greedy(w, 4)
        np.testing.assert_allclose(found, [by_hand(y, p, row, 4, loss) for row in w], atol=1e-12)

    def test_several_classes(self):
        """The Brier score over classes is a squared error over planes."""
        g = np.random.default_rng(0)
        y, p = g.integers(0, 3, 25), g.dirichlet([1, 1, 1], (25, 5, 2)).transpose(3, 0, 1, 2)
        w = g.integers(0, 3, (4, 25))
        truth = np.stack([y == code for code in range(3)]).astype(float)[:, :, None, None]

        def brier(rows, q, weight):
            return np.einsum("knmr,n->m", (q - truth[:, rows]) ** 2, weight)

        found = Candidates(p, target=truth).greedy(w, 5)
        np.testing.assert_allclose(found, Candidates(p, loss=brier).greedy(w, 5), atol=1e-12)
        assert len(np.unique(found, axis=0)) > 1


class TestLaws:
    def test_shares_add_up(self):
        y, p, w = example(draws=30)
        share = Candidates(p, target=y[:, None, None]).greedy(w, 7)
        np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-15)
        np.testing.assert_allclose(share * 7, np.round(share * 7), atol=1e-12)

    def test_one_step_is_the_best(self):
        y, p, w = example()
        loss = [[squared(y, p[:, j], row) for j in range(p.shape[1])] for row in w]
        share = Candidates(p, target=y[:, None, None]).greedy(w, 1)
        np.testing.assert_array_equal(share.argmax(axis=1), np.argmin(loss, axis=1))

    def test_a_start_of_one_changes_nothing(self):
        y, p, w = example()
        candidates = Candidates(p, target=y[:, None, None])
        np.testing.assert_array_equal(candidates.greedy(w, 6), candidates.greedy(w, 6, start=1))

    def test_copies_go_to_the_first(self):
        y, p, w = example(m=7, draws=40)
        twice = np.concatenate([p, p], axis=1)
        share = Candidates(twice, target=y[:, None, None]).greedy(w, 9)
        assert (share[:, 7:] == 0).all()
        np.testing.assert_array_equal(share[:, :7], Candidates(p, target=y[:, None, None]).greedy(w, 9))

    def test_ties_by_rounding_go_to_the_first(self):
        """The same predictions in another order of repeats are as good, whatever the last bit of the sum."""
        y, p, w = example(m=1, r=7, draws=200)
        share = Candidates(np.concatenate([p, p[..., ::-1]], axis=1), target=y[:, None, None]).greedy(w, 1)
        np.testing.assert_array_equal(share, np.tile([1.0, 0.0], (200, 1)))

    def test_a_diverged_configuration_hides_no_other(self):
        y, p, w = example()
        wild = np.concatenate([p, p[:, :1] * 1e9], axis=1)
        share = Candidates(wild, target=y[:, None, None]).greedy(w, 5)
        np.testing.assert_array_equal(share[:, :-1], Candidates(p, target=y[:, None, None]).greedy(w, 5))

    def test_weights_are_repeated_rows(self):
        y, p, w = example()
        share = Candidates(p, target=y[:, None, None]).greedy(w, 5)
        for b, row in enumerate(w):
            rows = np.repeat(np.arange(len(y)), row)
            again = Candidates(p[rows], target=y[rows][:, None, None]).greedy(np.ones((1, len(rows)), int), 5)
            np.testing.assert_array_equal(again[0], share[b])

    def test_order_and_batches(self, monkeypatch):
        y, p, w = example(r=2, draws=20)
        share = Candidates(p, target=y[:, None, None]).greedy(w, 5)
        order = np.random.default_rng(1).permutation(len(y))
        moved = Candidates(p[order], target=y[order][:, None, None]).greedy(w[:, order], 5)
        np.testing.assert_array_equal(moved, share)
        monkeypatch.setattr(mixing, "TILE", 1)
        np.testing.assert_array_equal(Candidates(p, target=y[:, None, None]).greedy(w, 5), share)

    def test_inputs_stay(self):
        y, p, w = example()
        before = p.copy(), w.copy()
        Candidates(p, target=y[:, None, None]).greedy(w, 3)
        np.testing.assert_array_equal(p, before[0])
        np.testing.assert_array_equal(w, before[1])


class TestGaps:
    def test_only_complete_configurations(self):
        y, p, w = example()
        p[2, 1] = np.nan
        p[5] = np.nan  # nobody predicted it
        np.testing.assert_array_equal(complete(p), [True, False, True, True, True, True])
        share = Candidates(p, target=y[:, None, None]).greedy(w, 5)
        assert (share[:, 1] == 0).all()
        rest = np.delete(np.arange(len(y)), 5)
        others = np.delete(p, 1, axis=1)[rest]
        clean = Candidates(others, target=y[rest][:, None, None]).greedy(w[:, rest], 5)
        np.testing.assert_array_equal(np.delete(share, 1, axis=1), clean)

    def test_nothing_has_weight(self):
        y, p, _ = example()
        for candidates in (Candidates(p, target=y[:, None, None]), Candidates(p, loss=scored(y, squared))):
            assert np.isnan(candidates.greedy(np.zeros((1, len(y)), int), 3)).all()

    def test_an_undefined_loss(self):
        _, p, w = example()
        share = Candidates(p, loss=lambda rows, p, w: np.full(p.shape[1], np.nan)).greedy(w[:1], 3)
        assert np.isnan(share).all()


class TestMix:
    def test_mean(self):
        _, p, _ = example(r=2)
        share = np.array([[0.5, 0.5, 0, 0, 0, 0], [0, 0, 0.25, 0.75, 0, 0]])
        found = mix(p, share)
        np.testing.assert_allclose(found[:, 0], (p[:, 0] + p[:, 1]) / 2, rtol=1e-15)
        np.testing.assert_allclose(found, np.einsum("nmr,dm->ndr", p, share), rtol=1e-14)

    def test_gaps_of_members_only(self):
        _, p, _ = example()
        p[3, 0], p[4, 5] = np.nan, np.nan
        found = mix(p, np.array([[0.5, 0.5, 0, 0, 0, 0]]))
        assert np.isnan(found[3]).all()
        assert np.isfinite(np.delete(found, 3, axis=0)).all()

    def test_votes(self):
        codes = np.array([0, 2, 1, np.nan, 2])[:, None, None]
        planes = votes(codes, 3)
        np.testing.assert_array_equal(planes[:, :, 0, 0].T[[0, 1, 2, 4]], np.eye(3)[[0, 2, 1, 2]])
        assert np.isnan(planes[:, 3]).all()
        np.testing.assert_array_equal(votes(codes, 2), codes)


class TestStrategies:
    def test_ensemble(self):
        y, p, w = example()
        candidates = Candidates(p, target=y[:, None, None])
        np.testing.assert_array_equal(ensemble(5, start=2).shares(y, candidates, w), candidates.greedy(w, 5, start=2))
        assert repr(ensemble(5, replace=False, start=2)) == "<mixture ensemble(size=5, replace=False, start=2)>"

    def test_top_mean(self):
        y, p, w = example()
        share = top_mean(3).shares(y, Candidates(p, target=y[:, None, None]), w)
        for b, row in enumerate(w):
            order = np.argsort([squared(y, p[:, j], row) for j in range(p.shape[1])], kind="stable")
            np.testing.assert_allclose(share[b, order], [1 / 3, 1 / 3, 1 / 3, 0, 0, 0])

    def test_own(self):
        def by_accuracy(label, prediction, weight):
            assert prediction.shape == (len(label), 5, 2)
            right = np.einsum("nmr,n->m", (prediction > 0.5) == label[:, None, None], weight)
            return right / right.sum()

        y, p, w = example(r=2)
        p[0, 3, 1] = np.nan
        share = as_mixture(by_accuracy).shares(y, Candidates(p), w)
        assert (share[:, 3] == 0).all()
        right = np.einsum("nmr,bn->bm", (p > 0.5) == y[:, None, None], w)[:, [0, 1, 2, 4, 5]]
        np.testing.assert_allclose(share[:, [0, 1, 2, 4, 5]], right / right.sum(axis=1, keepdims=True), rtol=1e-12)

    def test_own_with_classes(self):
        g = np.random.default_rng(0)
        p = g.dirichlet([1, 1, 1], (10, 4, 2)).transpose(3, 0, 1, 2)

        def even(label, prediction, weight):
            assert prediction.shape == (len(label), 4, 2, 3)
            return np.full(4, 0.25)

        y, w = g.integers(0, 3, 10), np.ones((2, 10), int)
        np.testing.assert_array_equal(as_mixture(even).shares(y, Candidates(p), w), np.full((2, 4), 0.25))

    def test_refusals(self):
        refusal(ensemble)("`size` must be a whole number of at least 1; got 0.", 0)
        refusal(ensemble)("`start` must be at most `size`, 5; got 6.", 5, start=6)
        refusal(top_mean)("`k` must be a whole number of at least 1; got 1.5.", 1.5)
        refusal(as_mixture)("`function` must be callable as f(label, prediction, weight); got 3.", 3)
        refusal(ensemble(9, replace=False).check)(
            "ensemble(size=9, replace=False) needs 9 different configurations; 4 can be chosen.", "probability", 4
        )
        refusal(top_mean(5).check)("top_mean(5) needs 5 different configurations; 4 can be chosen.", "value", 4)
        refusal(ensemble(9).check)("ensemble(size=9) would average scores (kind='score')", "score", 4)
        refusal(ensemble(9).check)("needs the predictions in memory; call .load()", "value", 4, lazy=True)
        ensemble(9, common_scale=True).check("score", 4)
        y, p, w = example()
        for share in ([1.0], np.full(6, 0.2), [1.5, -0.5, 0, 0, 0, 0], np.full(6, np.nan)):
            refusal(as_mixture(lambda y, p, w, share=share: share, name="mine").shares)(
                "mixture 'mine' must return 6 shares, none negative, that add up to 1; got", y, Candidates(p), w
            )
