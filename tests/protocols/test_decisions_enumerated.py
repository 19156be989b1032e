"""Decisions on tiny cubes: all bootstrap draws, against plain loops that share nothing with the library."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

NAN, INF = math.nan, math.inf
FIVE = pytest.param(5, marks=pytest.mark.slow)  # 3125 draws
LOSSES = ("mse", "mae", "brier", "log_loss", "error_rate")
PROBABILITIES = {  # label, then the configurations
    3: ([1, 0, 1], [[0.7, 0.4, 0.85], [0.2, 0.45, 0.6], [0.35, 0.9, 0.55]]),
    4: ([1, 0, 1, 0], [[0.75, 0.25, 0.88], [0.22, 0.62, 0.75], [0.4, 0.71, 0.12], [0.65, 0.58, 0.31]]),
    5: ([1, 0, 1, 0, 0], [[0.75, 0.25, 0.9], [0.2, 0.6, 0.75], [0.5, 0.7, 0.15], [0.6, 0.55, 0.3], [0.35, 0.1, 0.45]]),
}
NUMBERS = {
    3: ([1.5, 2.0, 4.0], [[1.07, 2.26, 0.53], [2.61, 1.02, 3.11], [3.2, 5.49, 4.83]]),
    4: ([1.5, 2.0, 4.0, 5.5], [[1.0, 2.25, 0.5], [2.5, 1.0, 3.0], [3.0, 5.5, 4.75], [6.25, 4.0, 6.0]]),
    5: ([1.5, 2, 3, 5, 6], [[1, 2.25, 0.5], [2.5, 1.25, 3], [4, 3.5, 3.75], [4.5, 5.75, 4], [7, 5, 6.5]]),
}


def every_draw(n):
    """Return counts of all n^n ordered draws."""
    return [tuple(picked.count(i) for i in range(n)) for picked in itertools.product(range(n), repeat=n)]


# --- metrics, sums over rows (label, prediction, weight) ---


def mean(rows, value):
    total = sum(w for _, _, w in rows)
    return sum(w * value(y, p) for y, p, w in rows) / total if total else NAN


def metric_of(name, rows):
    rows = [row for row in rows if row[2] > 0]
    if name in ("sensitivity", "specificity"):
        return mean([row for row in rows if row[0] == (name == "sensitivity")], lambda y, p: float((p > 0.5) == y))
    if name == "balanced_accuracy":
        return (metric_of("sensitivity", rows) + metric_of("specificity", rows)) / 2
    if name == "auc":
        ones, zeros = ([row for row in rows if row[0] == k] for k in (1, 0))
        pairs = [(a[2] * b[2], (a[1] > b[1]) + 0.5 * (a[1] == b[1])) for a in ones for b in zeros]
        return sum(w * v for w, v in pairs) / sum(w for w, _ in pairs) if pairs else NAN
    value = {
        "mse": lambda y, p: (y - p) ** 2,
        "brier": lambda y, p: (y - p) ** 2,
        "mae": lambda y, p: abs(y - p),
        "accuracy": lambda y, p: float((p > 0.5) == y),
        "error_rate": lambda y, p: float((p > 0.5) != y),
        "log_loss": lambda y, p: -math.log(max(p if y else 1 - p, 2.0**-52)),
    }[name]
    return mean(rows, value)


# --- what is learned from rows (label, prediction, weight) ---


def one_class(rows):
    return len({y for y, _, w in rows if w > 0}) < 2


def cut_rule(goal, probability=True):
    """Return the learner of a threshold; `goal(tp, fp, positives, negatives)` is maximised."""

    def learn(rows):
        rows = [row for row in rows if row[2] > 0]
        if one_class(rows):
            return (lambda p: NAN), {"threshold": NAN}
        levels = sorted({p for _, p, _ in rows})
        candidates = [-INF, *((a + b) / 2 for a, b in itertools.pairwise(levels)), INF]

        def worth(t):
            tp, fp = (sum(w for y, p, w in rows if y == k and p > t) for k in (1, 0))
            return goal(tp, fp, *(sum(w for y, _, w in rows if y == k) for k in (1, 0)))

        best = max(map(worth, candidates))
        tied = [t for t in candidates if worth(t) > best - 1e-12]
        chosen = min(tied, key=lambda t: (abs(t - 0.5), t)) if probability else tied[(len(tied) - 1) // 2]
        return (lambda p: float(p > chosen)), {"threshold": chosen}

    return learn


def odds(p):
    p = min(max(p, 2.0**-52), 1 - 2.0**-52)
    return math.log(p / (1 - p))


def expit(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def intercept_rule(rows):
    """Return the level at which probabilities add up to the positives, by bisection."""
    rows = [(y, odds(p), w) for y, p, w in rows if w > 0]
    if one_class(rows):
        return (lambda p: NAN), {"intercept": NAN}
    low, high = -80.0, 80.0
    for _ in range(200):
        middle = (low + high) / 2
        short = sum(w * (y - expit(middle + x)) for y, x, w in rows) > 0
        low, high = (middle, high) if short else (low, middle)
    return (lambda p: expit(low + odds(p))), {"intercept": low}


def logistic_rule(rows):
    """Return the line of greatest likelihood with a slope that is not negative."""
    rows = [(y, odds(p), w) for y, p, w in rows if w > 0]
    if one_class(rows):
        return (lambda p: NAN), {"intercept": NAN, "slope": NAN}
    share = mean(rows, lambda y, x: y)
    centre = mean(rows, lambda y, x: x)
    a, b = math.log(share / (1 - share)), 0.0
    last, first = max(x for y, x, _ in rows if y == 0), min(x for y, x, _ in rows if y == 1)
    if sum(w * (y - share) * (x - centre) for y, x, w in rows) > 1e-13:
        if last < first:  # separated: the samples next to the gap are wrong with a probability of 2^-52
            b = 52 * math.log(2) / ((first - last) / 2)
            a = -b * (first + last) / 2
        else:
            assert last > first
            a, b = newton(rows, a, b)
    return (lambda p: expit(a + b * odds(p))), {"intercept": a, "slope": b}


def newton(rows, a, b):
    def likelihood(a, b):
        return sum(w * (y * (a + b * x) - math.log1p(math.exp(a + b * x))) for y, x, w in rows)

    for _ in range(300):
        m = [expit(a + b * x) for _, x, _ in rows]
        g = [sum(w * (y - q) * x**k for (y, x, w), q in zip(rows, m, strict=True)) for k in (0, 1)]
        h = [sum(w * q * (1 - q) * x**k for (_, x, w), q in zip(rows, m, strict=True)) for k in (0, 1, 2)]
        area = h[0] * h[2] - h[1] ** 2
        step = (h[2] * g[0] - h[1] * g[1]) / area, (h[0] * g[1] - h[1] * g[0]) / area
        size = 1.0
        while likelihood(a + size * step[0], b + size * step[1]) < likelihood(a, b) - 1e-12 and size > 1e-9:
            size /= 2
        a, b = a + size * step[0], b + size * step[1]
        if max(map(abs, step)) < 1e-14 * max(1, abs(a), abs(b)):
            break
    return a, b


def isotonic_rule(rows):
    """Return the best non-decreasing map by the min-max formula, linear between its knots."""
    rows = [row for row in rows if row[2] > 0]
    knots = sorted({p for _, p, _ in rows})
    sums = [(sum(w * y for y, p, w in rows if p == k), sum(w for _, p, w in rows if p == k)) for k in knots]

    def between(i, j):
        return sum(s for s, _ in sums[i : j + 1]) / sum(t for _, t in sums[i : j + 1])

    last = len(knots) - 1
    level = [max(min(between(i, j) for j in range(k, last + 1)) for i in range(k + 1)) for k in range(last + 1)]

    def apply(p):
        if p <= knots[0]:
            return level[0]
        for (k0, v0), (k1, v1) in itertools.pairwise(zip(knots, level, strict=True)):
            if p <= k1:
                return v0 + (v1 - v0) * (p - k0) / (k1 - k0)
        return level[-1]

    return apply, {}


# --- a decision, and all draws ---


class Plain:
    """Choose in the bag, judge out of it: labels (n), predictions [n][configuration][repeat]."""

    def __init__(self, y, p, by, *, rule=None, seen=True, size=0, replace=True, start=0):
        self.y, self.p, self.by, self.rule, self.seen = y, p, by, rule, seen
        self.size, self.replace, self.start = size, replace, start
        self.n, self.m, self.r = len(y), len(p[0]), len(p[0][0])
        self.sign = -1 if by in LOSSES else 1

    def column(self, share):
        return [
            [sum(s * self.p[i][j][k] for j, s in enumerate(share) if s) for k in range(self.r)] for i in range(self.n)
        ]

    def score(self, metric, column, w):
        return (
            sum(metric_of(metric, [(self.y[i], column[i][k], w[i]) for i in range(self.n)]) for k in range(self.r))
            / self.r
        )

    def adjusted(self, column, w):
        rows = [(self.y[i], column[i][k], w[i]) for i in range(self.n) for k in range(self.r)]
        apply, shown = self.rule(rows)
        return [[apply(value) for value in row] for row in column], shown

    def alone(self, j):
        return [float(i == j) for i in range(self.m)]

    def best(self, columns, w, open_):
        scores = [self.sign * self.score(self.by, column, w) for column in columns]
        if any(math.isnan(s) for s in scores):
            return None
        top = max(s for s, free in zip(scores, open_, strict=True) if free)
        return next(j for j in range(self.m) if open_[j] and scores[j] > top - 1e-12)

    def decide(self, w):
        """Return the share of every configuration, the column that judges see, and what is reported; None: nothing."""
        singles = [self.column(self.alone(j)) for j in range(self.m)]
        if self.size:
            count = [0] * self.m
            for step in range(self.size):
                first = step < self.start
                grown = [[c + (i == j) for i, c in enumerate(count)] for j in range(self.m)]
                mixed = singles if first else [self.column([c / (step + 1) for c in g]) for g in grown]
                open_ = [c == 0 for c in count] if first or not self.replace else [True] * self.m
                j = self.best(mixed, w, open_)
                if j is None:
                    return None
                count[j] += 1
            share = [c / self.size for c in count]
        else:
            if self.rule and self.seen:
                columns = [self.adjusted(column, w)[0] for column in singles]
                if any(math.isnan(v) for column in columns for row in column for v in row):
                    return None
            else:
                columns = singles
            j = self.best(columns, w, [True] * self.m)
            if j is None:
                return None
            share = self.alone(j)
        column, shown = self.column(share), {}
        if self.rule:
            column, shown = self.adjusted(column, w)
            if math.isnan(column[0][0]):
                return None
        return share, column, shown

    def run(self, metric):
        """Return what all n^n draws give: estimates, win rates and the final decision."""
        share, column, shown = self.decide([1] * self.n)
        naive = self.score(metric, column, [1] * self.n)
        values, anchors, wins, used = [], [], [0.0] * self.m, 0
        for w, times in Counter(every_draw(self.n)).items():
            out = [float(c == 0) for c in w]
            made = self.decide(w) if any(out) else None
            value = NAN if made is None else self.score(metric, made[1], out)
            if math.isnan(value):
                continue
            used += times
            values.append(times * value)
            anchors.append(times * self.score(metric, column, out))
            wins = [a + times * b for a, b in zip(wins, made[0], strict=True)]
        plain, anchor = math.fsum(values) / used, math.fsum(anchors) / used
        rates = [a / used for a in wins]
        return {
            "bbc": plain, "anchored": naive + plain - anchor, "naive": naive, "win_rate": rates, "n_draws": used,
            "share": share, **shown,
        }  # fmt: skip


def nested(values):
    """Return predictions with a dimension of one repeat."""
    return [[[v] for v in row] for row in values]


def cube_of(y, p, kind):
    extra = {"positive": 1} if kind in ("probability", "score") else {}
    values = np.array(p)
    return cs.as_cube(values if values.shape[2] > 1 else values[:, :, 0], np.array(y), kind=kind, **extra)


def draws_of(cube, n):
    return xr.DataArray(np.array(every_draw(n)), dims=("draw", "sample"), coords={"sample": cube["sample"].values})


def check(found, expected, estimate, tolerance, parts=()):
    np.testing.assert_allclose(found["estimate"], expected[estimate], rtol=tolerance, atol=tolerance)
    for name in ("naive", "win_rate", "n_draws", *parts):
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


def youden(tp, fp, positives, negatives):
    return tp / positives - fp / negatives


CUTS = {
    "youden": (youden, {"criterion": "youden"}),
    "accuracy": (lambda tp, fp, p, n: (tp + n - fp) / (p + n), {"criterion": "accuracy"}),
    "f1": (lambda tp, fp, p, n: 2 * tp / (p + tp + fp), {"criterion": "f1"}),
    "sensitivity": (lambda tp, fp, p, n: (n - fp) / n if tp >= 0.9 * p - 1e-12 else -INF, {"sensitivity": 0.9}),
    "specificity": (lambda tp, fp, p, n: tp / p if n - fp >= 0.5 * n - 1e-12 else -INF, {"specificity": 0.5}),
    "cost": (lambda tp, fp, p, n: -3 * (p - tp) - fp, {"cost": {1: 3, 0: 1}}),
}
MAPS = {"intercept": intercept_rule, "logistic": logistic_rule, "isotonic": isotonic_rule}


@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
class TestEnumerated:
    @pytest.mark.parametrize("n", [3, 4, FIVE])
    @pytest.mark.parametrize("name", CUTS)
    @pytest.mark.parametrize("kind", ["probability", "score"])
    def test_cut(self, n, name, kind):
        y, p = PROBABILITIES[n]
        p = nested(p) if kind == "probability" else [[[round(8 * v - 4)] for v in row] for row in p]
        goal, arguments = CUTS[name]
        plain = Plain(y, p, "accuracy", rule=cut_rule(goal, kind == "probability"))
        cube = cube_of(y, p, kind)
        options = {"adjust": cs.cut(**arguments), "draws": draws_of(cube, n)}
        check(cs.bbc(cube, "accuracy", **options), plain.run("accuracy"), "bbc", 1e-12, ("threshold",))

    @pytest.mark.parametrize("n", [4, FIVE])
    @pytest.mark.parametrize("method", ["bbc", "anchored"])
    def test_cut_after_the_choice(self, n, method):
        """The Brier score chooses and does not see the threshold, which is learned from the winner alone."""
        y, p = PROBABILITIES[n]
        plain = Plain(y, nested(p), "brier", rule=cut_rule(youden), seen=False)
        cube = cube_of(y, nested(p), "probability")
        function = {"bbc": cs.bbc, "anchored": cs.winner}[method]
        found = function(cube, "accuracy", by="brier", adjust=cs.cut("youden"), draws=draws_of(cube, n), rng=1)
        check(found, plain.run("accuracy"), method, 1e-12, ("threshold",))

    @pytest.mark.parametrize("n", [3, 4, FIVE])
    @pytest.mark.parametrize(  # an isotonic map that says never is infinitely wrong up to rounding
        ("name", "metric"), [*((name, "brier") for name in MAPS), ("intercept", "log_loss"), ("logistic", "log_loss")]
    )
    def test_recalibrate(self, n, name, metric):
        y, p = PROBABILITIES[n]
        plain = Plain(y, nested(p), metric, rule=MAPS[name])
        cube = cube_of(y, nested(p), "probability")
        found = cs.bbc(cube, metric, adjust=cs.recalibrate(name), draws=draws_of(cube, n))
        expected = plain.run(metric)
        check(found, expected, "bbc", 1e-10, [key for key in ("intercept", "slope") if key in expected])

    @pytest.mark.parametrize("n", [4, FIVE])
    def test_recalibrate_anchored(self, n):
        y, p = PROBABILITIES[n]
        plain = Plain(y, nested(p), "auc", rule=logistic_rule, seen=False)
        cube = cube_of(y, nested(p), "probability")
        found = cs.bbc(cube, "brier", by="auc", adjust=cs.recalibrate(), draws=draws_of(cube, n))
        check(found, plain.run("brier"), "bbc", 1e-10, ("intercept", "slope"))
        plain = Plain(y, nested(p), "brier", rule=intercept_rule)
        found = cs.winner(cube, "brier", adjust=cs.recalibrate("intercept"), draws=draws_of(cube, n), rng=1)
        check(found, plain.run("brier"), "anchored", 1e-10, ("intercept",))

    @pytest.mark.parametrize("n", [3, 4, FIVE])
    @pytest.mark.parametrize("method", ["bbc", "anchored"])
    @pytest.mark.parametrize(
        ("mixture", "arguments"),
        [
            ("ensemble", {"size": 4}),
            ("ensemble", {"size": 2, "replace": False}),
            ("ensemble", {"size": 3, "start": 2}),
            ("top_mean", {"k": 2}),
        ],
    )
    def test_mixtures(self, n, method, mixture, arguments):
        y, p = NUMBERS[n]
        how = {"size": 2, "start": 2, "replace": False} if mixture == "top_mean" else arguments
        plain = Plain(y, nested(p), "mse", **how)
        cube = cube_of(y, nested(p), "value")
        function = {"bbc": cs.bbc, "anchored": cs.winner}[method]
        found = function(cube, "mse", select=getattr(cs, mixture)(**arguments), draws=draws_of(cube, n), rng=1)
        check(found, plain.run("mse"), method, 1e-12, ("share",))
        assert found["selected"].dtype.kind == "f"
        assert np.isnan(found["selected"])

    @pytest.mark.parametrize("by", ["auc", "brier", "log_loss"])
    def test_mixture_of_probabilities(self, by):
        y, p = PROBABILITIES[4]
        plain = Plain(y, nested(p), by, size=3)
        cube = cube_of(y, nested(p), "probability")
        found = cs.bbc(cube, "brier", by=by, select=cs.ensemble(3), draws=draws_of(cube, 4))
        check(found, plain.run("brier"), "bbc", 1e-12, ("share",))

    @pytest.mark.parametrize("n", [3, 4, FIVE])
    @pytest.mark.parametrize("by", ["mse", "mae"])
    @pytest.mark.parametrize("method", ["bbc", "anchored"])
    def test_lists(self, n, by, method):
        y, p = NUMBERS[n]
        cube = cube_of(y, nested(p), "value")
        function = {"bbc": cs.bbc, "anchored": cs.winner}[method]
        found = function(cube, ["mse", "mae"], by=by, draws=draws_of(cube, n), rng=1)
        for metric in ("mse", "mae"):
            expected = Plain(y, nested(p), by).run(metric)
            check(found.sel(metric=metric), expected, method, 1e-12)
            alone = function(cube, metric, by=by, draws=draws_of(cube, n), rng=1)
            check(alone, expected, method, 1e-12)

    @pytest.mark.parametrize("decision", ["cut", "intercept", "mixture"])
    def test_repeats(self, decision):
        """Two repeats teach one threshold, one map, one share."""
        y, p = PROBABILITIES[4]
        p = [[[v, round(1 - v / 2 - 0.1 * j, 3)] for j, v in enumerate(row)] for row in p]
        cube = cube_of(y, p, "probability")
        options, how, by = {
            "cut": ({"adjust": cs.cut("youden")}, {"rule": cut_rule(youden)}, "accuracy"),
            "intercept": ({"adjust": cs.recalibrate("intercept")}, {"rule": intercept_rule}, "brier"),
            "mixture": ({"select": cs.ensemble(3)}, {"size": 3}, "brier"),
        }[decision]
        found = cs.bbc(cube, by, draws=draws_of(cube, 4), **options)
        check(found, Plain(y, p, by, **how).run(by), "bbc", 1e-10)

    def test_every_draw_of_the_kernel(self):
        """`select_and_judge` returns each draw's own value."""
        y, p = PROBABILITIES[5]
        plain = Plain(y, nested(p), "accuracy", rule=cut_rule(youden))
        cube = cube_of(y, nested(p), "probability")
        draws = draws_of(cube, 5)[::7]
        found = cs.select_and_judge(cube, "accuracy", choose=draws, adjust=cs.cut("youden"), ties="first")
        for b, w in enumerate(draws.values.tolist()):
            out = [float(c == 0) for c in w]
            made = plain.decide(w) if any(out) else None
            value = NAN if made is None else plain.score("accuracy", made[1], out)
            np.testing.assert_allclose(found["value"][b], value, rtol=1e-12)
