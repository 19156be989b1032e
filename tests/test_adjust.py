"""Adjustments: thresholds, recalibration and priors against other software, plain loops, laws and refusals."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import cvstats as cs
from cvstats.adjust import as_adjustment, as_written, cut, in_turn, recalibrate, shift_prior
from cvstats.kernels.logistic import fit_line
from cvstats.metrics import bound_metric, get_metric
from shared import refusal

EDGE = 2.0**-52


def example(n=60, m=3, r=1, draws=12, seed=0, gaps=True):
    g = np.random.default_rng(seed)
    y = (g.random(n) < 0.4).astype(float)
    p = expit(1.3 * (y[:, None, None] - 0.5) + g.normal(size=(n, m, r)))
    if gaps:
        p[g.random(p.shape) < 0.05] = np.nan
    w = np.stack([np.bincount(g.integers(0, n, n), minlength=n) for _ in range(draws)]).astype(np.int32)
    return y, p, w


def pooled(y, p, w, j, b):
    """Return label, prediction and weight of one configuration and draw, all repeats, as plain rows."""
    x, r = p[:, j].ravel(), p.shape[2]
    some = ~np.isnan(x) & (np.repeat(w[b], r) > 0)
    return np.repeat(y, r)[some], x[some], np.repeat(w[b], r)[some].astype(float)


def glm(label, prediction, weight, offset=False):
    z = logit(np.clip(prediction, EDGE, 1 - EDGE))
    design = np.ones((len(z), 1)) if offset else np.stack([np.ones(len(z)), z], axis=1)
    model = sm.GLM(label, design, sm.families.Binomial(), freq_weights=weight, offset=z if offset else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(tol=1e-14, maxiter=200, tol_criterion="params").params


def fit_all(step, y, p, weights):
    """Return what is learned for every draw and configuration, as arrays over both."""
    each = [step.fit(y, p[..., j : j + 1, :], weights) for j in range(p.shape[-2])]
    return replace(each[0], state={name: np.stack([one.state[name] for one in each], axis=1) for name in each[0].state})


def taken(learned, index):
    """Return what was learned for some draws and configurations, given as an index of those two axes."""
    return replace(learned, state={name: value[index] for name, value in learned.state.items()})


def all_draws(n):
    """Return the distinct counts of all bootstrap draws of n samples."""
    return np.unique(
        [np.bincount(d, minlength=n) for d in itertools.combinations_with_replacement(range(n), n)], axis=0
    )


class TestLogistic:
    @pytest.mark.parametrize("r", [1, 3])
    def test_equals_statsmodels(self, r):
        y, p, w = example(r=r)
        found = fit_all(recalibrate("logistic"), y, p, w).parameters
        for b, j in itertools.product(range(len(w)), range(p.shape[1])):
            expected = glm(*pooled(y, p, w, j, b))
            np.testing.assert_allclose(
                [found["intercept"][b, j], found["slope"][b, j]], expected, rtol=1e-10, atol=1e-10
            )

    @pytest.mark.parametrize("r", [1, 3])
    def test_intercept_equals_statsmodels(self, r):
        y, p, w = example(r=r)
        found = fit_all(recalibrate("intercept"), y, p, w).parameters
        assert list(found) == ["intercept"]
        for b, j in itertools.product(range(len(w)), range(p.shape[1])):
            np.testing.assert_allclose(
                found["intercept"][b, j], glm(*pooled(y, p, w, j, b), offset=True)[0], rtol=1e-10, atol=1e-10
            )

    @pytest.mark.slow
    def test_all_draws_of_six(self):
        y, p = np.array([0, 1, 0, 1, 0, 1.0]), np.array([0.1, 0.2, 0.35, 0.6, 0.65, 0.9])[:, None, None]
        w = all_draws(6)
        found = fit_all(recalibrate("logistic"), y, p, w).parameters
        kinds = set()
        for b, row in enumerate(w):
            label, x, weight = pooled(y, p, w, 0, b)
            z, line = logit(x), (found["intercept"][b, 0], found["slope"][b, 0])
            mean = np.average(label, weights=weight)
            if mean in (0, 1):
                kinds.add("one class")
                assert np.isnan(line).all()
            elif np.sum(weight * (label - mean) * z) <= 1e-15:
                kinds.add("falling")
                np.testing.assert_allclose(line, [logit(mean), 0], atol=1e-12)
            elif z[label == 0].max() < z[label == 1].min():
                kinds.add("separated")
                edge = np.array([z[label == 0].max(), z[label == 1].min()])
                np.testing.assert_allclose(line[0] + line[1] * edge, [-52 * np.log(2), 52 * np.log(2)], rtol=1e-9)
            else:
                kinds.add("proper")
                np.testing.assert_allclose(line, glm(label, x, weight), rtol=1e-10, atol=1e-10)
                miss = weight * (label - expit(line[0] + line[1] * z))
                np.testing.assert_allclose([miss.sum(), (miss * z).sum()], 0, atol=1e-10)
            assert len(row) == 6
        assert kinds == {"one class", "falling", "separated", "proper"}

    def test_classes_that_touch(self):
        y, p = np.array([0, 0, 1, 1.0]), np.array([0.2, 0.5, 0.5, 0.8])[:, None, None]
        learned = fit_all(recalibrate(), y, p, np.array([[1, 1, 3, 1]]))
        np.testing.assert_allclose(taken(learned, 0).apply(p)[:, 0, 0], [0, 0.75, 0.75, 1], atol=1e-14)

    def test_constant_predictions(self):
        y, p = np.array([0, 0, 1.0]), np.full((3, 1, 1), 0.7)
        learned = fit_all(recalibrate(), y, p, np.ones((1, 3), int))
        np.testing.assert_allclose(taken(learned, 0).apply(p), 1 / 3, rtol=1e-14)
        assert learned.parameters["slope"] == 0

    def test_certain_predictions(self):
        """Hard zeros and ones, some of them wrong, have finite maps."""
        y, p = np.array([0, 0, 1, 1, 1.0]), np.array([0, 1, 1, 1, 0.0])[:, None, None]
        one = np.ones((1, 5), int)
        np.testing.assert_allclose(
            taken(fit_all(recalibrate(), y, p, one), 0).apply(p)[:, 0, 0], [0.5, 2 / 3, 2 / 3, 2 / 3, 0.5]
        )
        level = fit_all(recalibrate("intercept"), y, p, one)
        assert taken(level, 0).apply(p).sum() == pytest.approx(y.sum(), rel=1e-9)

    def test_steps_that_overshoot(self):
        """Plain Newton steps run away from here."""
        y, x = np.array([1.0, 1, 0, 1, 1]), np.array([[-0.7, 2.0, -2.1, -10.4, 0.0]])
        w = np.array([[19.0, 55, 2, 2, 153]])
        line = np.ravel(fit_line(y, x, w, free=True))
        np.testing.assert_allclose(line, glm(y, expit(x[0]), w[0]), rtol=1e-9)
        miss = w[0] * (y - expit(line[0] + line[1] * x[0]))
        np.testing.assert_allclose([miss.sum(), miss @ x[0]], 0, atol=1e-10)

    def test_a_level_far_off(self):
        y, p = np.array([0, 0, 1, 1, 1.0]), np.array([0, 1, 1, 1, 1.0])[:, None, None]
        level = fit_all(recalibrate("intercept"), y, p, np.ones((1, 5), int))
        np.testing.assert_allclose(taken(level, 0).apply(p)[:, 0, 0], [0, 0.75, 0.75, 0.75, 0.75], atol=1e-9)

    def test_calibrated_on_average(self):
        y, p, w = example(gaps=False)
        for method in ("logistic", "intercept", "isotonic"):
            learned = fit_all(recalibrate(method), y, p, w)
            for b in range(len(w)):
                mean = np.einsum("n,nmr->m", w[b], taken(learned, b).apply(p)) / w[b].sum()
                np.testing.assert_allclose(mean, w[b] @ y / w[b].sum(), rtol=1e-10)

    def test_real_weights(self):
        y, p, w = example(gaps=False)
        v = w * np.random.default_rng(3).random(len(y))
        found = fit_all(recalibrate(), y, p, v).parameters
        for b, j in itertools.product(range(3), range(3)):
            np.testing.assert_allclose(
                [found["intercept"][b, j], found["slope"][b, j]], glm(*pooled(y, p, v, j, b)), rtol=1e-9
            )

    def test_method(self):
        refusal(recalibrate)("`method` must be one of 'logistic', 'intercept', 'isotonic'; got 'platt'.", "platt")


class TestIsotonic:
    @pytest.mark.parametrize("r", [1, 2])
    def test_equals_scikit_learn(self, r):
        y, p, w = example(r=r, draws=4)
        p = np.round(p, 2)  # ties
        learned = fit_all(recalibrate("isotonic"), y, p, w)
        assert learned.parameters == {}
        for b in range(len(w)):
            found = taken(learned, b).apply(p)
            for j in range(p.shape[1]):
                label, x, weight = pooled(y, p, w, j, b)
                model = IsotonicRegression(out_of_bounds="clip").fit(x, label, weight)
                some = ~np.isnan(p[:, j])
                np.testing.assert_allclose(found[:, j][some], model.predict(p[:, j][some]), atol=1e-12)
                assert np.isnan(found[:, j][~some]).all()


class TestCut:
    def test_forms_equal_any_metric(self):
        """A copy of a metric goes the general way: the same cuts."""
        y, p, w = example(r=2)
        for name in ("accuracy", "error_rate", "balanced_accuracy", "f1", "mcc"):
            metric = get_metric(name)
            one, other = (fit_all(cut(m), y, p, w).parameters["threshold"] for m in (metric, replace(metric)))
            table = [_score(metric, y, p, w, t) for t in (one, other)]
            np.testing.assert_allclose(*table, atol=1e-12)  # equally good, should rounding split a tie
            assert (one == other).mean() > 0.9

    def test_youden_is_balanced_accuracy(self):
        y, p, w = example()
        np.testing.assert_array_equal(
            fit_all(cut("youden"), y, p, w).parameters["threshold"],
            fit_all(cut("balanced_accuracy"), y, p, w).parameters["threshold"],
        )

    def test_own_metric(self):
        @cs.as_metric(direction="maximize", uses="label")
        def right(label, prediction, weight):
            assert (weight > 0).all()
            return np.average(label == prediction, weights=weight)

        y, p, w = example(n=12, draws=3)
        np.testing.assert_array_equal(
            fit_all(cut(right), y, p, w).parameters["threshold"],
            fit_all(cut("accuracy"), y, p, w).parameters["threshold"],
        )

    def test_costs_count_what_is_missed(self):
        y, p, w = example(gaps=False)
        found = fit_all(cut(cost={1: 0.3, 0: 0.1}), y, p, w).parameters["threshold"]
        grid = np.concatenate([[-1.0], np.unique(p), [2.0]])
        for b, j in itertools.product(range(len(w)), range(p.shape[1])):
            x = p[:, j, 0]
            cost = [w[b] @ (0.3 * ((y == 1) & (x <= t)) + 0.1 * ((y == 0) & (x > t))) for t in (*grid, found[b, j])]
            assert cost[-1] == pytest.approx(min(cost), abs=1e-12)

    def test_labels(self):
        y, p, w = example(r=2)
        learned = fit_all(cut("f1"), y, p, w)
        assert list(learned.parameters) == ["threshold"]
        b = 3
        found, limit = taken(learned, b).apply(p), learned.parameters["threshold"][b]
        np.testing.assert_array_equal(found, np.where(np.isnan(p), np.nan, p > limit[None, :, None]))

    def test_the_columns_of_winners(self):
        y, p, w = example(r=2)
        index = np.arange(len(w)) % 3
        for step in (
            cut("mcc"),
            recalibrate(),
            recalibrate("intercept"),
            recalibrate("isotonic"),
            shift_prior({1: 0.1}),
        ):
            each, all_of_them = step.fit(y, p[:, index], w), taken(fit_all(step, y, p, w), (np.arange(len(w)), index))
            for name, value in each.parameters.items():
                np.testing.assert_allclose(value, all_of_them.parameters[name], rtol=1e-12)
            np.testing.assert_allclose(each.apply(p[:, index]), all_of_them.apply(p[:, index]), rtol=1e-12)

    @pytest.mark.parametrize(("scores", "threshold"), [([0.4, 0.5, 0.88, 0.92], 0.45), ([0.1, 0.12, 0.6, 0.7], 0.65)])
    def test_probabilities_take_the_one_nearest_a_half(self, scores, threshold):
        cube = cs.as_cube(scores, [0, 1, 0, 1])
        step, p = cut("youden").bind(cube), cube.values[:, :, None]  # either end of the middle is as good
        found = fit_all(step, cube["label"].values, p, np.ones((1, 4), int)).parameters["threshold"]
        assert found == pytest.approx(threshold)

    def test_scores_take_the_lower_median(self):
        cube = cs.as_cube(
            [[-9.0], [-8.0], [-6.0], [0.0], [1.0], [3.0]], [1, 0, 1, 0, 1, 0], kind="score", threshold=0.0
        )
        p, one, y = cube.values[:, :, None], np.ones((1, 6), int), cube["label"].values
        assert fit_all(cut("accuracy").bind(cube), y, p, one).parameters["threshold"] == -7  # of -inf, -7, .5 and inf
        assert fit_all(cut("accuracy"), y, p, one).parameters["threshold"] == 0.5

    def test_decimals_are_meant(self):
        assert as_written(0.07, 1.0) == (7.0, 100.0)
        assert as_written(0.1, 0.3) == (1.0, 3.0)
        assert as_written(np.pi, 1.0) == (np.pi, 1.0)
        y = np.repeat([1, 0], [100, 1])
        p = np.concatenate([np.arange(100), [92.5]])[:, None, None] / 100
        found = fit_all(cut(sensitivity=0.07), y, p, np.ones((1, 101), int)).parameters["threshold"]
        assert (p[:100] > found).sum() >= 7
        assert not p[100] > found

    @pytest.mark.parametrize(
        ("text", "arguments", "named"),
        [
            ("`cut` takes exactly one of criterion, sensitivity, specificity and cost; got none.", (), {}),
            ("specificity and cost; got criterion, sensitivity.", ("f1",), {"sensitivity": 0.9}),
            ("`cut` needs a metric of predicted classes, such as 'youden' or 'f1'; 'auc' is", ("auc",), {}),
            ("`criterion`='fone' does not exist", ("fone",), {}),
            ("`sensitivity` must be a number above 0 and at most 1; got 90.", (), {"sensitivity": 90}),
            ("`sensitivity` must be a number above 0 and at most 1; got 1.5.", (), {"sensitivity": 1.5}),
            ("`specificity` must be a number above 0 and at most 1; got 0.", (), {"specificity": 0}),
            ("with positive costs; got {1: inf, 0: 1}.", (), {"cost": {1: np.inf, 0: 1}}),
            ("`cost` must be {label: cost of missing it} with positive costs; got 5.", (), {"cost": 5}),
            ("with positive costs; got {1: -1, 0: 1}.", (), {"cost": {1: -1, 0: 1}}),
        ],
    )
    def test_refusals(self, text, arguments, named):
        refusal(cut)(text, *arguments, **named)


def _score(metric, y, p, w, threshold):
    """Return the pooled score at thresholds (draw, m)."""
    out = np.empty(threshold.shape)
    for b, j in np.ndindex(*out.shape):
        label, x, weight = pooled(y, p, w, j, b)
        parts = metric.ingredients(label, (x > threshold[b, j]).astype(float), 2)
        labels = [np.ones(len(label)), *(metric.label_parts(label, 2) if metric.label_parts else [])]
        out[b, j] = metric.formula(
            [np.asarray(weight @ part) for part in parts], [np.asarray(weight @ part) for part in labels]
        )
    return out


class TestShiftPrior:
    def test_odds(self):
        y, p, w = example()
        learned = fit_all(shift_prior({1: 0.05}), y, p, w)
        for b in range(len(w)):
            share = w[b] @ y / w[b].sum()
            odds = p / (1 - p) * (0.05 / 0.95) / (share / (1 - share))
            np.testing.assert_allclose(taken(learned, b).apply(p), odds / (1 + odds), rtol=1e-12)

    def test_given_origin(self):
        y, p, w = example()
        found = taken(fit_all(shift_prior({1: 0.05, 0: 0.95}, {1: 0.5}), y, p, w), 0).apply(p)
        np.testing.assert_allclose(found, p * 0.05 / (p * 0.05 + (1 - p) * 0.95), rtol=1e-12)

    def test_several_classes(self):
        g = np.random.default_rng(0)
        y, p = g.integers(0, 3, 30), g.dirichlet([1, 1, 1], (30, 2, 2)).transpose(3, 0, 1, 2)
        w = g.integers(1, 3, (4, 30))
        step = replace(shift_prior({"a": 0.2, "b": 0.3, "c": 0.5}), classes=("c", "a", "b"))
        learned = fit_all(step, y, p, w)
        for b in range(4):
            share = np.bincount(y, w[b])
            raw = p * (np.array([0.5, 0.2, 0.3]) / share)[:, None, None, None]
            np.testing.assert_allclose(taken(learned, b).apply(p), raw / raw.sum(axis=0), rtol=1e-12)

    def test_same_prior_changes_nothing(self):
        y, p, _ = example()
        ones = np.ones((1, len(y)), int)
        np.testing.assert_allclose(taken(fit_all(shift_prior({1: y.mean()}), y, p, ones), 0).apply(p), p, rtol=1e-12)

    def test_what_may_judge_it(self):
        step = shift_prior({1: 0.1}).bind(cs.as_cube([0.2, 0.7, 0.4], [0, 1, 1]))
        fine = ["auc", cs.sensitivity_at(0.5), cs.at_prior("brier", {1: 0.1}), cs.at_prior("accuracy", {0: 0.9})]
        cube = cs.as_cube([0.2, 0.7, 0.4], [0, 1, 1])
        step.refuse([bound_metric(metric, cube, []) for metric in fine])
        with pytest.raises(cs.InputError, match="at different class ratios"):
            step.refuse([bound_metric(cs.at_prior("brier", {1: 0.2}), cube, [])])

    def test_an_absent_class(self):
        y, p, _ = example()
        assert np.isnan(taken(fit_all(shift_prior({1: 0.1}), y, p, (y[None] == 1).astype(int)), 0).apply(p)).all()

    @pytest.mark.parametrize(
        ("text", "arguments"),
        [
            ("`to` must be {label: probability}, each above 0; got 0.5.", (0.5,)),
            ("`to` must be {label: probability}, each above 0; got {1: 0}.", ({1: 0},)),
            ("`from_prior` must be {label: probability}, each above 0; got {}.", ({1: 0.5}, {})),
        ],
    )
    def test_refusals(self, text, arguments):
        refusal(shift_prior)(text, *arguments)

    def test_refusals_of_a_cube(self):
        cube = cs.as_cube([[0.2], [0.7]], ["no", "yes"], positive="yes")
        refused = refusal(lambda to: shift_prior(to).bind(cube))
        refused("`to` names 1, not among the classes 'no', 'yes'.", {1: 0.5})
        refused("`to` must add up to 1; it adds up to 0.7.", {"yes": 0.5, "no": 0.2})
        refused("`to` must leave every class a probability above 0; got {'yes': 1.0}.", {"yes": 1})
        many = cs.as_cube(np.full((3, 1, 3), 1 / 3), ["a", "b", "c"], classes=["a", "b", "c"])
        refusal(lambda to: shift_prior(to).bind(many))("`to` lacks the classes 'b', 'c'; give", {"a": 0.5})


class TestOwn:
    def test_map(self):
        def centre(label, prediction, weight):
            assert (weight > 0).all()
            shift = np.average(label - prediction, weights=weight)
            return lambda prediction: prediction + shift

        g = np.random.default_rng(0)
        y, p, w = g.normal(size=20), g.normal(size=(20, 2, 3)), g.integers(0, 3, (4, 20))
        p[3, 1, 2] = np.nan
        learned = fit_all(replace(as_adjustment(centre), kind="value"), y, p, w)
        for b, j in itertools.product(range(4), range(2)):
            label, x, weight = pooled(y, p, w, j, b)
            np.testing.assert_allclose(
                taken(learned, b).apply(p)[:, j], p[:, j] + np.average(label - x, weights=weight), rtol=1e-12
            )

    def test_classes(self):
        def soften(label, prediction, weight):
            assert prediction.shape == (len(label), 3)
            return lambda prediction: (prediction + 1 / 3) / 2

        g = np.random.default_rng(0)
        y, p = g.integers(0, 3, 10), g.dirichlet([1, 1, 1], (10, 2, 2)).transpose(3, 0, 1, 2)
        learned = fit_all(as_adjustment(soften), y, p, np.ones((2, 10), int))
        np.testing.assert_allclose(taken(learned, 1).apply(p), (p + 1 / 3) / 2, rtol=1e-12)
        p[:, 4, 1, 0], p[1, 7, 0, 1] = np.nan, np.nan  # all classes, and one of them
        learned = fit_all(as_adjustment(soften), y, p, np.ones((2, 10), int))
        expected = np.where(np.isnan(p).any(axis=0), np.nan, (p + 1 / 3) / 2)
        np.testing.assert_allclose(taken(learned, 1).apply(p), expected, rtol=1e-12)

    def test_refusals(self):
        y, p, w = example(draws=1)
        refused = refusal(lambda f: taken(fit_all(as_adjustment(f, name="mine"), y, p, w), 0).apply(p))
        refused("`fit` must be callable as fit(label, prediction, weight); got 3.", 3)
        refused("adjustment 'mine' must return a function of predictions; got 1.", lambda y, p, w: 1)
        refused("adjustment 'mine' must return predictions of the shape it gets,", lambda y, p, w: lambda p: p[:2])
        refused(
            "adjustment 'mine' must return probabilities; got values outside [0, 1].", lambda y, p, w: lambda p: p + 1
        )
        for least, most in ((-0.1, 1), (0, 1.1)):  # a single value will do
            refused("got values outside", lambda y, p, w, ends=(least, most): lambda p: np.r_[ends, p[2:]])


class TestInTurn:
    def test_each_learns_from_the_last(self):
        y, p, w = example(r=2)
        learned = fit_all(in_turn([shift_prior({1: 0.2}), recalibrate(), cut("f1")]), y, p, w)
        assert list(learned.parameters) == ["intercept", "slope", "threshold"]
        for b in range(len(w)):
            q = taken(fit_all(shift_prior({1: 0.2}), y, p, w[b : b + 1]), 0).apply(p)
            q = taken(fit_all(recalibrate(), y, q, w[b : b + 1]), 0).apply(q)
            last = taken(fit_all(cut("f1"), y, q, w[b : b + 1]), 0)
            np.testing.assert_allclose(learned.parameters["threshold"][b], last.parameters["threshold"], rtol=1e-9)
            np.testing.assert_array_equal(taken(learned, b).apply(p), last.apply(q))

    def test_two_maps_of_ones_own(self):
        y, p, w = example(draws=2)
        halve = as_adjustment(lambda label, prediction, weight: lambda prediction: prediction / 2)
        np.testing.assert_allclose(taken(fit_all(in_turn([halve, halve]), y, p, w), 1).apply(p), p / 4)

    def test_changes(self):
        assert in_turn([recalibrate(), cut("f1")]).changes == "probabilities"
        assert in_turn([recalibrate("isotonic"), cut("f1")]).changes == "ranks"
        assert in_turn([cut("f1")]).changes == "labels"

    def test_refusals(self):
        refusal(in_turn)(
            "cut(f1) makes labels of predictions, so it must be the last adjustment.", [cut("f1"), recalibrate()]
        )
        refusal(in_turn)("shift_prior() and as_adjustment(); got 'f1'.", ["f1"])
        refusal(in_turn)("shift_prior() and as_adjustment(); got none.", [])
        refusal(in_turn)("`adjust` recalibrates twice;", [recalibrate("intercept"), recalibrate()])


class TestBinding:
    def test_labels_of_the_cube(self):
        cube = cs.as_cube([[0.2], [0.7], [0.4]], ["sick", "well", "well"], positive="sick")
        step = cut(cost={"sick": 5, "well": 1}).bind(cube)
        assert (step.criterion().hit, step.criterion().alarm) == (5.0, 1.0)
        refusal(cut(cost={"sick": 5}).bind)("`cost` must name the classes 'well', 'sick'; got 'sick'.", cube)

    def test_kinds(self):
        probability = cs.as_cube([[0.2], [0.7]], [0, 1])
        score = cs.as_cube([[-2.0], [7.0]], [0, 1], kind="score")
        label = cs.as_cube([[0], [1]], [0, 1], kind="label")
        number = cs.as_cube([[0.3], [1.2]], [0.1, 1.4], kind="value")
        many = cs.as_cube(np.full((3, 1, 3), 1 / 3), ["a", "b", "c"], classes=["a", "b", "c"])
        for step in (cut("f1"), recalibrate(), recalibrate("isotonic"), shift_prior({1: 0.1}), as_adjustment(len)):
            assert step.bind(probability).name == step.name
        refusal(cut("f1").bind)("cut(f1) needs scores or probabilities; the cube has kind='label'.", label)
        refusal(cut("f1").bind)("cut(f1) needs two classes; the cube has numbers.", number)
        refusal(cut("f1").bind)("cut(f1) needs two classes; the cube has 3 classes.", many)
        refusal(recalibrate().bind)("recalibrate(logistic) needs probabilities; the cube has kind='score'.", score)
        refusal(recalibrate().bind)("recalibrate(logistic) needs two classes; the cube has 3 classes.", many)
        refusal(recalibrate("isotonic").bind)("needs two classes; the cube has 3 classes.", many)
        refusal(shift_prior({1: 0.1}).bind)("needs probabilities; the cube has kind='score'.", score)
        assert as_adjustment(len).bind(number).kind == "value"
        refusal(in_turn([recalibrate(), cut("f1")]).bind)("recalibrate(logistic) needs probabilities;", score)

    def test_who_is_affected(self):
        affected = {
            cut("f1"): ("accuracy", "f1"),
            recalibrate(): ("accuracy", "f1", "brier", "log_loss"),
            recalibrate("isotonic"): ("accuracy", "f1", "brier", "log_loss", "auc", "average_precision"),
        }
        for step, names in affected.items():
            for name in ("accuracy", "f1", "brier", "log_loss", "auc", "average_precision"):
                assert step.affects(get_metric(name)) == (name in names), (step, name)

    def test_words(self):
        assert repr(cut(sensitivity=0.9)) == "<adjustment cut(sensitivity=0.9): changes labels>"


class TestLaws:
    STEPS = (
        cut("f1"),
        cut(specificity=0.8),
        recalibrate(),
        recalibrate("intercept"),
        recalibrate("isotonic"),
        shift_prior({1: 0.3}),
    )

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_weights_are_repeated_rows(self, step):
        y, p, w = example(draws=3)
        learned = fit_all(step, y, p, w)
        for b, row in enumerate(w):
            again = fit_all(step, np.repeat(y, row), np.repeat(p, row, axis=0), np.ones((1, row.sum()), int))
            np.testing.assert_allclose(taken(learned, b).apply(p), taken(again, 0).apply(p), rtol=1e-10)

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_order_and_batches(self, step, monkeypatch):
        y, p, w = example()
        learned = fit_all(step, y, p, w)
        order = np.random.default_rng(2).permutation(len(y))
        moved = fit_all(step, y[order], p[order], w[:, order])
        monkeypatch.setattr("cvstats.adjust.TILE", 1)
        single = fit_all(step, y, p, w)
        for b in range(len(w)):
            np.testing.assert_allclose(taken(learned, b).apply(p), taken(moved, b).apply(p), rtol=1e-10)
            np.testing.assert_allclose(taken(learned, b).apply(p), taken(single, b).apply(p), rtol=1e-10)

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_nothing_learned_from_nothing(self, step):
        y, p, _ = example()
        assert np.isnan(taken(fit_all(step, y, p, np.zeros((1, len(y)), int)), 0).apply(p)).all()

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_one_draw_that_teaches_nothing_leaves_the_others(self, step):
        y, p, _ = example()
        w = np.array([np.zeros(len(y)), np.ones(len(y))], int)
        learned, alone = step.fit(y, p[:, [0, 0]], w), step.fit(y, p[:, [0]], w[1:])
        np.testing.assert_array_equal(learned.undefined, [True, False])
        found = learned.apply(p[:, [0, 0]])
        assert np.isnan(found[:, 0]).all()
        np.testing.assert_allclose(found[:, 1], alone.apply(p[:, [0]])[:, 0], rtol=1e-12)

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_inputs_stay(self, step):
        y, p, w = example()
        before = y.copy(), p.copy(), w.copy()
        taken(fit_all(step, y, p, w), 0).apply(p)
        for old, new in zip(before, (y, p, w), strict=True):
            np.testing.assert_array_equal(old, new)
