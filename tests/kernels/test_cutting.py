"""Thresholds: plain loops written from the rules, all draws of tiny data, laws, degenerate data, scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score, matthews_corrcoef

from cvstats.kernels import cutting, walk
from cvstats.kernels.cutting import Criterion, Cutter, paired_cuts

CRITERIA = {
    "youden": Criterion("youden"),
    "accuracy": Criterion("linear"),
    "cost": Criterion("linear", 3.0, 1.0),
    "f1": Criterion("f1"),
    "mcc": Criterion("mcc"),
    "sensitivity": Criterion("sensitivity", 4.0, 5.0),
    "specificity": Criterion("specificity", 2.0, 3.0),
    "hits alone": Criterion("linear", 1.0, 0.0),
    "function": Criterion("function", function=lambda tp, fp, p, n: tp / (tp + fp)),
}
ENGINES = ("numpy", "numba")
PARTS = ("threshold", "tp", "fp", "positives", "negatives")


@pytest.fixture(params=["numpy", pytest.param("numba", marks=pytest.mark.slow)])  # which is compiled first
def engine(request, monkeypatch):
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(walk, "FORCE", request.param)
    return request.param


def criterion_by_hand(name, tp, fp, p, n):
    """Return the criterion as a fraction (top, bottom) of whole numbers, or None where it is undefined or forbidden."""
    tn, fn = n - fp, p - tp
    if name == "youden":
        return (tp * n + tn * p, p * n)
    if name == "accuracy":
        return (tp + tn, p + n)
    if name == "cost":
        return (-(3 * fn + fp), 1)
    if name == "f1":
        return (2 * tp, 2 * tp + fp + fn) if tp + fp + fn else None
    if name == "mcc":
        top, bottom = tp * tn - fp * fn, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return (top * abs(top), bottom) if bottom else (0, 1)
    if name == "sensitivity":
        return (tn, n) if 5 * tp >= 4 * p else None
    if name == "specificity":
        return (tp, p) if 3 * tn >= 2 * n else None
    if name == "hits alone":
        return (tp, p)
    return (tp, tp + fp) if tp + fp else None


def by_hand(name, y, x, w, nearest):
    """Return threshold, tp, fp, positives and negatives of one column of scores x, by plain loops."""
    rows = [(x[i, k], y[i], w[i]) for i in range(len(y)) for k in range(x.shape[1]) if w[i] > 0 and x[i, k] == x[i, k]]
    p, n = sum(r[2] for r in rows if r[1] == 1), sum(r[2] for r in rows if r[1] != 1)
    if p == 0 or n == 0:
        return np.nan, p, n, p, n
    seen = sorted({r[0] for r in rows})
    candidates = [-np.inf, *((a + b) / 2 for a, b in itertools.pairwise(seen)), np.inf]
    best, tied = None, []
    for t in candidates:
        tp, fp = sum(r[2] for r in rows if r[1] == 1 and r[0] > t), sum(r[2] for r in rows if r[1] != 1 and r[0] > t)
        value = criterion_by_hand(name, tp, fp, p, n)
        if value is None:
            continue
        if best is None or value[0] * best[1] > best[0] * value[1]:
            best, tied = value, []
        if value[0] * best[1] == best[0] * value[1]:
            tied.append((t, tp, fp))
    if nearest is None:
        return (*tied[(len(tied) - 1) // 2], p, n)
    return (*min(tied, key=lambda c: (abs(c[0] - nearest), c[0])), p, n)


def all_draws(n):
    """Return the counts of every bootstrap draw of n samples."""
    return np.array([np.bincount(d, minlength=n) for d in itertools.product(range(n), repeat=n)], np.int32)


def agree(cuts, j, b, expected):
    np.testing.assert_array_equal([getattr(cuts, part)[b, j] for part in PARTS], expected)


def same(one, other):
    for part in PARTS:
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def example(n=40, m=6, r=1, draws=50, seed=0, digits=2):
    """Return labels, predictions with ties and gaps, and counts of draws."""
    g = np.random.default_rng(seed)
    y = (g.random(n) < 0.4).astype(float)
    p = np.round(np.clip(0.25 * y[:, None, None] + 0.75 * g.random((n, m, r)), 0, 1), digits)
    if m > 1:
        p[g.random((n, m, r)) < 0.05] = np.nan
    w = np.stack([np.bincount(g.integers(0, n, n), minlength=n) for _ in range(draws)]).astype(np.int32)
    return y, p, w


@pytest.mark.parametrize("nearest", [0.5, None])
@pytest.mark.parametrize("name", CRITERIA)
class TestByHand:
    @pytest.mark.slow
    def test_all_draws_of_five(self, name, nearest, engine):
        y = np.array([0, 1, 0, 1, 1])
        p = np.array([[0.1, 0.3], [0.4, 0.3], [0.6, 0.3], [0.6, 0.8], [0.9, 0.2]])[:, :, None]
        w = all_draws(5)
        cuts = Cutter(y, p, CRITERIA[name], nearest).cuts(w)
        for number, row in {tuple(row): b for b, row in enumerate(w.tolist())}.items():
            for j in range(2):
                agree(cuts, j, row, by_hand(name, y, p[:, j], number, nearest))
        first = {tuple(row): b for b, row in enumerate(w.tolist())}
        same(cuts, cutting.Cuts(*(getattr(cuts, part)[[first[tuple(row)] for row in w.tolist()]] for part in PARTS)))

    @pytest.mark.parametrize(("m", "r"), [(6, 1), (4, 3), (1, 2)])  # a single column has no gaps
    def test_ties_gaps_and_repeats(self, name, nearest, m, r, engine):
        y, p, w = example(m=m, r=r, draws=12)
        cuts = Cutter(y, p, CRITERIA[name], nearest).cuts(w)
        for b, j in itertools.product(range(len(w)), range(p.shape[1])):
            agree(cuts, j, b, by_hand(name, y, p[:, j], w[b].tolist(), nearest))

    def test_a_column_for_each_draw(self, name, nearest):
        y, p, w = example(m=20, r=2, draws=20)
        cuts = paired_cuts(y, p, w, CRITERIA[name], nearest)
        full = Cutter(y, p, CRITERIA[name], nearest).cuts(w)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(cuts, part), np.diag(getattr(full, part)))


class TestLaws:
    @pytest.mark.slow
    @pytest.mark.parametrize("weigh", [1, np.random.default_rng(5).random(150)], ids=["whole", "real"])
    @pytest.mark.parametrize("name", CRITERIA)
    def test_engines_give_the_same_bits(self, name, weigh, monkeypatch):
        pytest.importorskip("numba")
        y, p, w = example(n=150, m=8, r=2, draws=40, digits=3)
        w = w * weigh
        found = []
        for force in ENGINES:
            monkeypatch.setattr(walk, "FORCE", force)
            found.append(Cutter(y, p, CRITERIA[name]).cuts(w))
        same(*found)

    def test_batches_change_nothing(self, engine, monkeypatch):
        y, p, w = example(draws=700)
        whole = Cutter(y, p, CRITERIA["youden"]).cuts(w)
        monkeypatch.setattr(cutting, "TILE", 1)
        same(whole, Cutter(y, p, CRITERIA["youden"]).cuts(w))
        part = Cutter(y, p, CRITERIA["youden"]).cuts(w[17:18])
        np.testing.assert_array_equal(part.threshold[0], whole.threshold[17])

    @pytest.mark.parametrize("name", CRITERIA)
    def test_weights_are_repeated_rows(self, name, engine):
        y, p, w = example(draws=5)
        cuts = Cutter(y, p, CRITERIA[name]).cuts(w)
        for b, row in enumerate(w):
            again = Cutter(np.repeat(y, row), np.repeat(p, row, axis=0), CRITERIA[name])
            ones = again.cuts(np.ones((1, row.sum()), np.int32))
            for part in PARTS:
                np.testing.assert_array_equal(getattr(ones, part)[0], getattr(cuts, part)[b])

    def test_order_of_samples_does_not_matter(self, engine):
        y, p, w = example(r=2)
        order = np.random.default_rng(1).permutation(len(y))
        same(
            Cutter(y, p, CRITERIA["mcc"]).cuts(w),
            Cutter(y[order], p[order], CRITERIA["mcc"]).cuts(w[:, order]),
        )

    @pytest.mark.parametrize("name", CRITERIA)
    def test_monotone_maps_leave_the_table(self, name, engine):
        y, p, w = example()
        one, other = (Cutter(y, x, CRITERIA[name], None).cuts(w) for x in (p, np.exp(3 * p) - 7))
        for part in PARTS[1:]:
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))

    def test_cutting_there_gives_the_table(self, engine):
        y, p, w = example(r=2)
        cuts = Cutter(y, p, CRITERIA["f1"]).cuts(w)
        above = p[None] > cuts.threshold[:, None, :, None]
        np.testing.assert_array_equal(np.einsum("bnmr,bn,n->bm", above, w, y), cuts.tp)
        np.testing.assert_array_equal(np.einsum("bnmr,bn,n->bm", above, w, 1 - y), cuts.fp)

    def test_real_weights_scale_away(self, engine):
        y, p, w = example()
        whole, real = (Cutter(y, p, CRITERIA["f1"]).cuts(v) for v in (w, w * 0.25))
        np.testing.assert_array_equal(whole.threshold, real.threshold)
        np.testing.assert_allclose(real.tp, whole.tp * 0.25, rtol=1e-12, atol=1e-12)

    def test_inputs_stay(self, engine):
        y, p, w = example()
        before = y.copy(), p.copy(), w.copy()
        Cutter(y, p, CRITERIA["youden"]).cuts(w)
        for old, new in zip(before, (y, p, w), strict=True):
            np.testing.assert_array_equal(old, new)


class TestDegenerate:
    def test_one_class_has_no_threshold(self, engine):
        p = np.array([0.2, 0.4, 0.6])[:, None, None]
        for y in ([1, 1, 1], [0, 0, 0]):
            cuts = Cutter(np.array(y), p, CRITERIA["accuracy"]).cuts(np.ones((1, 3), np.int32))
            assert np.isnan(cuts.threshold).all()

    def test_a_draw_without_a_class(self, engine):
        p = np.array([0.2, 0.4, 0.6])[:, None, None]
        cuts = Cutter(np.array([0, 1, 1]), p, CRITERIA["youden"]).cuts(np.array([[0, 2, 1], [1, 1, 1]]))
        np.testing.assert_array_equal(cuts.threshold[:, 0], [np.nan, (0.2 + 0.4) / 2])

    def test_nothing_has_weight(self, engine):
        y, p, _ = example()
        cuts = Cutter(y, p, CRITERIA["youden"]).cuts(np.zeros((2, len(y)), np.int32))
        assert np.isnan(cuts.threshold).all()
        assert (cuts.positives == 0).all()

    def test_a_column_without_predictions(self, engine):
        y, p, w = example(m=3)
        p[:, 1] = np.nan
        cuts = Cutter(y, p, CRITERIA["youden"]).cuts(w)
        assert np.isnan(cuts.threshold[:, 1]).all()
        assert np.isfinite(cuts.threshold[:, 0]).all()

    def test_equal_scores_leave_the_ends(self, engine):
        p = np.full((4, 1, 1), 0.3)
        one = np.ones((1, 4), np.int32)
        assert Cutter(np.array([1, 1, 1, 0]), p, CRITERIA["accuracy"]).cuts(one).threshold == -np.inf
        assert Cutter(np.array([1, 0, 0, 0]), p, CRITERIA["accuracy"]).cuts(one).threshold == np.inf
        assert Cutter(np.array([1, 1, 0, 0]), p, CRITERIA["accuracy"]).cuts(one).threshold == -np.inf  # the smaller

    def test_neighbouring_doubles(self, engine):
        low = 0.7
        p = np.array([low, np.nextafter(low, 1)])[:, None, None]
        cuts = Cutter(np.array([0, 1]), p, CRITERIA["youden"]).cuts(np.ones((1, 2), np.int32))
        assert p[0, 0, 0] <= cuts.threshold[0, 0] < p[1, 0, 0]

    def test_huge_scores_do_not_overflow(self, engine):
        p = np.array([1.5e308, 1.7e308])[:, None, None]
        cuts = Cutter(np.array([0, 1]), p, CRITERIA["youden"], None).cuts(np.ones((1, 2), np.int32))
        assert 1.5e308 < cuts.threshold[0, 0] < 1.7e308


class TestTies:
    y, p = np.array([1, 0, 1, 0, 1, 0]), np.array([0.1, 0.2, 0.45, 0.5, 0.8, 0.9])[:, None, None]
    one = np.ones((1, 6), np.int32)

    def test_nearest_one_half(self, engine):
        # accuracy 1/2 at -inf, .325, .65 and inf
        assert Cutter(self.y, self.p, CRITERIA["accuracy"]).cuts(self.one).threshold == (0.5 + 0.8) / 2
        assert Cutter(self.y, self.p, CRITERIA["accuracy"], 0.3).cuts(self.one).threshold == (0.2 + 0.45) / 2

    def test_then_the_smaller(self, engine):
        p = np.array([0.125, 0.375, 0.625, 0.875])[:, None, None]
        cuts = Cutter(np.array([0, 1, 0, 1]), p, CRITERIA["accuracy"]).cuts(np.ones((1, 4), np.int32))
        assert cuts.threshold == 0.25  # as good, and as near, as .75

    def test_lower_median(self, engine):
        assert Cutter(self.y, self.p, CRITERIA["accuracy"], None).cuts(self.one).threshold == (0.2 + 0.45) / 2


class TestScikitLearn:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "function"),
        [("youden", balanced_accuracy_score), ("f1", f1_score), ("mcc", matthews_corrcoef)],
    )
    def test_no_threshold_is_better(self, name, function, engine):
        y, p, w = example(n=40, m=1, draws=3, digits=8)
        cuts = Cutter(y, p, CRITERIA[name]).cuts(w)
        x = p[:, 0, 0]
        grid = [-1.0, *((a + b) / 2 for a, b in itertools.pairwise(np.unique(x)))]
        for b, row in enumerate(w):
            best = max(function(y, x > t, sample_weight=row) for t in grid)
            assert function(y, x > cuts.threshold[b, 0], sample_weight=row) == pytest.approx(best, abs=1e-12)
            table = confusion_matrix(y, x > cuts.threshold[b, 0], sample_weight=row)
            assert (table[1, 1], table[0, 1]) == (cuts.tp[b, 0], cuts.fp[b, 0])
