"""Metrics: what they carry, what they refuse, degenerate data, own metrics and priors."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.metrics import get_metric, traits_of
from cvstats.metrics.base import REGISTRY, _key
from shared import BINARY, EVERY, NUMBER, binary, cube_for, number, refusal, survival

refused = refusal(cs.score)


class TestTraits:
    DIRECTION = dict.fromkeys(EVERY, "maximize") | dict.fromkeys(
        ("error_rate", "brier", "log_loss", "smoothed_error_rate", "mse", "rmse", "mae"), "minimize"
    )

    @pytest.mark.parametrize("name", EVERY)
    def test_direction_range_family(self, name):
        metric = getattr(cs, name)
        assert metric is get_metric(name)
        assert metric.name == name
        assert metric.direction == self.DIRECTION[name]
        assert metric.sign == (1 if metric.direction == "maximize" else -1)
        assert metric.family in ("mean", "smooth", "rank")
        low, high = metric.range
        value = metric(cube_for(name))
        assert low < high
        assert ((value >= low) & (value <= high)).all()
        assert "Examples" in metric.__doc__
        assert metric.__name__ == name

    RANGE = dict.fromkeys(EVERY, (0.0, 1.0)) | {"mcc": (-1.0, 1.0), "r2": (-np.inf, 1.0), "brier": (0.0, 2.0)}
    RANGE |= dict.fromkeys(("log_loss", "mse", "rmse", "mae"), (0.0, np.inf))

    @pytest.mark.parametrize("name", EVERY)
    def test_range_is_the_definitions(self, name):
        assert getattr(cs, name).range == self.RANGE[name]

    @pytest.mark.parametrize("name", EVERY)
    def test_monotone_is_the_sign_of_the_first_sum(self, name):
        """Selection may compare the first sums alone, so the sign must be that of performance."""
        metric = getattr(cs, name)
        one_sum = {"accuracy", "error_rate", "sensitivity", "specificity", "brier", "log_loss", "smoothed_error_rate"}
        one_sum |= {"mse", "mae", "r2"}
        assert bool(metric.monotone) == (name in one_sum)
        if metric.monotone:
            parts = 1 + (len(metric.label_parts(np.array([0.0, 1.0, 1.0]), 2)) if metric.label_parts else 0)
            labels = [np.array(10.0), np.array(6.0), np.array(9.0)][:parts]
            low, high = (metric.sign * metric.formula([np.array(s)], labels) for s in (1.0, 2.0))
            assert np.sign(high - low) == metric.monotone

    REQUIRES = dict.fromkeys(EVERY, "") | dict.fromkeys(("auc", "auc_ovr", "auc_ovr_weighted"), "classes")
    REQUIRES |= {"balanced_accuracy": "classes", "sensitivity": "positive", "average_precision": "positive"}
    REQUIRES |= {"specificity": "negative", "r2": "spread", "concordance": "pairs"}
    BENT = ("f1", "mcc", "rmse", "auc", "auc_ovr", "auc_ovr_weighted", "average_precision", "concordance")

    @pytest.mark.parametrize("name", EVERY)
    def test_what_the_labels_must_hold_and_whether_repeats_may_be_averaged_first(self, name):
        metric = getattr(cs, name)
        assert metric.requires == self.REQUIRES[name]
        assert metric.linear == (name not in self.BENT)
        assert metric.binary_only == (name in ("sensitivity", "specificity", "smoothed_error_rate"))

    def test_prior_error_is_an_error(self):
        metric = cs.prior_error({0: 0.75})
        assert (metric.direction, metric.range, metric.sign) == ("minimize", (0.0, 1.0), -1)

    @pytest.mark.parametrize(
        ("words", "direction"),
        [(("maximize", "higher", "max"), "maximize"), (("minimize", "lower", "min"), "minimize")],
    )
    def test_words_for_the_direction(self, words, direction):
        for word in words:
            metric = cs.as_metric(lambda y, p, w: 0.0, direction=word, name="own")
            assert metric.direction == direction
            assert metric.sign == (1 if direction == "maximize" else -1)
            assert metric.range == (-np.inf, np.inf)

    def test_own_metric_keeps_name_and_docstring_and_cannot_be_changed(self):
        @cs.as_metric(direction="maximize")
        def own(label, prediction, weight):
            """What it is."""
            return 0.0

        assert (own.__name__, own.__doc__) == ("own", "What it is.")
        assert own == own
        assert len({own, cs.auc}) == 2
        with pytest.raises(AttributeError):
            own.direction = "minimize"

    def test_families(self):
        family = {name: getattr(cs, name).family for name in EVERY}
        assert {k for k, v in family.items() if v == "rank"} == {
            "auc", "auc_ovr", "auc_ovr_weighted", "average_precision", "concordance"
        }  # fmt: skip
        smooth = {"balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "rmse", "r2"}
        assert {k for k, v in family.items() if v == "smooth"} == smooth

    def test_repr(self):
        assert repr(cs.auc) == "<metric auc: maximize, range [0, 1], rank>"
        assert repr(cs.r2) == "<metric r2: maximize, range [-inf, 1], smooth>"

    @pytest.mark.parametrize("name", EVERY)
    def test_perfect_predictions_reach_the_good_end(self, name):
        y = np.arange(20) % 2
        if name in BINARY:
            cube = cs.as_cube(y * 1.0, y, kind="probability")
        elif name in NUMBER:
            cube = cs.as_cube(y * 1.5, y * 1.5, kind="value")
        else:
            cube = cs.as_cube(-np.arange(20.0), np.arange(20.0), event=np.ones(20), kind="score")
        low, high = getattr(cs, name).range
        good = high if getattr(cs, name).direction == "maximize" else low
        np.testing.assert_allclose(cs.score(cube, name), [good], atol=1e-3 if name == "smoothed_error_rate" else 1e-15)

    def test_result_is_labelled(self):
        cube = binary().assign_coords(configuration=list("zyxwv"), complexity=("configuration", np.arange(5)))
        found = cs.score(cube, "auc")
        assert found.dims == ("configuration",)
        assert found.name == "auc"
        assert found["metric"].item() == "auc"
        assert found["configuration"].values.tolist() == list("zyxwv")
        assert "complexity" in found.coords
        assert "kind" not in found.coords


ALIASES = {
    "accuracy": "Accuracy ACC accuracy_score classif.acc",
    "auc": "roc_auc AUC ROC roc_auc_score classif.auc roc_auc_ovo AUROC",
    "auc_ovr": "roc_auc_ovr roc_aunu classif.mauc_aunu",
    "auc_ovr_weighted": "roc_auc_ovr_weighted roc_aunp classif.mauc_aunp",
    "average_precision": "pr_auc prAUC average_precision_score classif.prauc",
    "balanced_accuracy": "bal_accuracy balanced_accuracy_score classif.bacc recall_macro Mean_Recall Mean_Sensitivity",
    "brier": "brier_score brier_class brier_score_loss classif.bbrier",
    "concordance": "c-index surv.cindex concordance_survival",
    "error_rate": "classif.ce zero_one_loss",
    "f1": "F1 f1_score f_meas classif.fbeta Mean_F1",
    "log_loss": "logLoss mn_log_loss classif.logloss LOG-LOSS",
    "mae": "MAE mean_absolute_error regr.mae",
    "mcc": "MCC matthews_corrcoef classif.mcc",
    "mse": "MSE mean_squared_error regr.mse",
    "r2": "R2 r2_score regr.rsq rsq_trad",
    "rmse": "RMSE root_mean_squared_error regr.rmse",
    "sensitivity": "Sens sens classif.tpr",
    "specificity": "Spec spec classif.tnr",
}


class TestNames:
    @pytest.mark.parametrize("name", ALIASES)
    def test_what_other_packages_call_it(self, name):
        for alias in ALIASES[name].split():
            assert get_metric(alias) is get_metric(name), alias
        assert cs.score(cube_for(name), ALIASES[name].split()[0]).metric.item() == name  # results carry our name

    def test_what_caret_calls_means_over_classes(self):
        assert {get_metric(name) for name in ("Mean_Precision", "precision_macro")} == {cs.precision}

    def test_words_are_names_too(self):
        assert get_metric("balanced accuracy") is cs.balanced_accuracy
        assert get_metric("Matthews correlation") is cs.mcc

    def test_no_name_belongs_to_two(self):
        owner = {}
        for metric in REGISTRY.values():
            for name in {_key(name) for name in (metric.name, metric.words, *metric.aliases, *metric.unlike)}:
                assert owner.setdefault(name, metric) is metric, name

    def test_words_for_people(self):
        assert (cs.auc.words, cs.log_loss.words, cs.r2.words) == ("AUC", "log loss", "R²")
        own = cs.as_metric(lambda y, p, w: 0.0, direction="maximize", name="my_gain")
        assert own.words == "my gain"
        assert cs.as_metric(own.function, direction="maximize", name="g", words="net gain").words == "net gain"
        assert traits_of("prior_error").words == cs.prior_error(0.5).words == "error rate at the given prior"
        assert traits_of("auc") is cs.auc
        assert traits_of("my_gain") is None

    def test_scale_of_its_interval(self):
        assert {get_metric(name).scale for name in ("brier", "mse", "log_loss", "r2")} == {"log"}
        assert {get_metric(name).scale for name in ("auc", "accuracy", "mcc", "error_rate")} == {"unit"}
        assert cs.as_metric(lambda y, p, w: 0.0, direction="maximize", name="g", range=(0, np.inf)).scale == "none"

    def test_cost_of_an_unseen_error(self):
        assert cs.log_loss.error_cost(2) == cs.log_loss.error_cost(4) == -np.log(1 / 8)
        assert cs.brier.error_cost(2) == (7 / 8) ** 2
        assert cs.brier.error_cost(3) == 2 * (7 / 8) ** 2
        assert cs.log_loss.error_cost(2, 0.3) == -np.log(1 / 8), "a doubtful prediction was among them"
        assert cs.log_loss.error_cost(2, 0.01) == pytest.approx(-np.log(0.01)), "all were certain"
        assert {get_metric(name).error_cost(2) for name in EVERY if name not in ("brier", "log_loss")} == {0.0}


class TestPickle:
    @pytest.mark.parametrize("name", EVERY)
    def test_built_in(self, name):
        metric = getattr(cs, name)
        assert pickle.loads(pickle.dumps(metric)) is metric

    def test_prior_error(self):
        cube = binary()
        metric = cs.prior_error({0: 0.75})
        again = pickle.loads(pickle.dumps(metric))
        xr.testing.assert_equal(cs.score(cube, again), cs.score(cube, metric))

    def test_own_metric_travels_by_value(self):
        cloudpickle = pytest.importorskip("cloudpickle")

        @cs.as_metric(direction="minimize")
        def worst(label, prediction, weight):
            return np.max(np.abs(label - prediction))

        again = cloudpickle.loads(cloudpickle.dumps(worst))
        assert again.name == "worst"
        xr.testing.assert_equal(cs.score(number(), again), cs.score(number(), worst))


class TestRefusals:
    def test_unknown_name(self):
        refused(
            "`metric`='acuracy' does not exist (did you mean 'accuracy'?); known: accuracy, error_rate",
            binary(),
            "acuracy",
        )
        refused("`metric`='roc_acu' does not exist (did you mean 'roc_auc'?)", binary(), "roc_acu")
        refused("`metric`='prior_error' is made by a function: give prior_error(...)", binary(), "prior_error")
        refused("`metric`='brier_survival' is made by a function: give survival_brier(...)", binary(), "brier_survival")
        refused("('balanced_accuracy' is near it, but not the same)", binary(), "Mean_Balanced_Accuracy")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (
                "neg_log_loss",
                "has its sign turned round, and results here never have; use 'log_loss' (lower is better).",
            ),
            ("neg_mean_squared_error", "use 'mse' (lower is better)."),
            ("neg_brier_score", "use 'brier' (lower is better)."),
            ("rsq", "does not exist ('r2' is near it, but not the same); known: accuracy"),
            ("Rsquared", "('r2' is near it, but not the same)"),
            ("fdr", "('ppv' is near it, but not the same)"),
            ("weighted_Kappa", "('kappa' is near it, but not the same)"),
        ],
    )
    def test_names_that_could_be_misread_name_ours(self, name, text):
        refused(text, binary(), name)

    def test_not_a_metric(self):
        refused("`metric` must be a name or a metric; got", binary(), np.mean)
        refused("Wrap your own function with as_metric(f, direction=...)", binary(), len)

    def test_average(self):
        refused(
            "`average` must be one of 'pooled', 'fold'; got 'folds' (did you mean 'fold'?).",
            binary(),
            "auc",
            average="folds",
        )
        refused(
            "averaging by fold needs the coordinate 'fold'; give as_cube(..., folds=...).",
            binary(),
            "auc",
            average="fold",
        )

    def test_not_a_cube(self):
        refused("`cube` must be an xarray.DataArray made by as_cube(); got ndarray.", np.zeros((3, 3)), "auc")

    def test_wrong_kind(self):
        y = np.arange(6) % 2
        hard = cs.as_cube(y[:, None], y)
        scores = cs.as_cube(y[:, None] * 4.0 - 1, y)
        numbers = number()
        for metric in ("auc", "average_precision", "smoothed_error_rate"):
            refused(
                f"metric '{metric}' needs scores or probabilities, but the cube holds hard labels (kind='label').",
                hard,
                metric,
            )
        for metric in ("log_loss", "brier"):
            found = "the cube has kind='score' and values from -1 to 3."
            refused(f"metric '{metric}' needs probabilities, but {found}", scores, metric)
            refused(f"metric '{metric}' needs probabilities, but the cube has kind='label'.", hard, metric)
        refused(
            "metric 'accuracy' needs class labels, and scores have no default threshold; give as_cube(..., threshold=",
            scores,
            "accuracy",
        )
        refused(
            "metric 'smoothed_error_rate' needs the distance from the threshold, and scores have no default",
            scores,
            "smoothed_error_rate",
        )
        refused(
            "metric 'auc' is for class labels, but the cube holds numbers (kind='value'). Use mse or mae, say.",
            numbers,
            "auc",
        )
        refused(
            "metric 'mse' is for numeric predictions, but the cube has kind='score'. Use accuracy or auc, say",
            scores,
            "mse",
        )
        refused("metric 'concordance' needs the 'event' coordinate", scores, "concordance")
        refused(
            "metric 'mse' does not know censoring, but the cube holds survival times. Use concordance.",
            survival(),
            "mse",
        )
        refused("metric 'auc' does not know censoring", survival(), "auc")

    def test_two_classes_only(self):
        many = cs.as_cube(np.random.default_rng(0).dirichlet([1, 1, 1], size=(6, 2)), [0, 1, 2] * 2, classes=[0, 1, 2])
        for metric in ("sensitivity", "specificity", "smoothed_error_rate"):
            refused(f"metric '{metric}' is for two classes, but the cube has 3.", many, metric)

    @pytest.mark.parametrize("metric", [*NUMBER, "smoothed_error_rate"])
    def test_infinite_predictions(self, metric):
        cube = number() if metric in NUMBER else binary().assign_coords(kind="score", threshold=0.5)
        cube = cube.copy()
        cube[3, 1] = np.inf
        refused(
            f"metric '{metric}' needs finite predictions; found infinite ones for samples 3. Rank metrics", cube, metric
        )

    def test_rank_metrics_accept_infinite_scores(self):
        y = np.array([0, 1, 0, 1, 1])
        s = np.array([-np.inf, np.inf, 0.0, 1.0, np.inf])
        np.testing.assert_array_equal(cs.auc(cs.as_cube(s, y, kind="score")), [1.0])
        np.testing.assert_array_equal(cs.average_precision(cs.as_cube(s, y, kind="score")), [1.0])
        np.testing.assert_array_equal(cs.accuracy(cs.as_cube(s, y, kind="score", threshold=0)), [1.0])
        risk = cs.as_cube([np.inf, 0.0, -np.inf], [1.0, 2.0, 3.0], event=[1, 1, 1], kind="score")
        np.testing.assert_array_equal(cs.concordance(risk), [1.0])

    def test_prior(self):
        cube = binary()
        refused("`prior` names 7, not among the classes 0, 1.", cube, cs.prior_error({7: 0.5}))
        refused("`prior` must add up to 1; it adds up to 0.9.", cube, cs.prior_error({0: 0.5, 1: 0.4}))
        refused("`prior` is for class labels, but the cube holds numbers.", number(), cs.prior_error({0: 0.5}))
        many = cs.as_cube(np.array([["a"], ["b"], ["c"]]), list("abc"))
        refused(
            "`prior` lacks the classes 'c'; give the probability of each.", many, cs.prior_error({"a": 0.5, "b": 0.5})
        )
        refused("`prior` must be {label: probability} for 3 classes 'a', 'b', 'c'; got 0.5.", many, cs.prior_error(0.5))
        for bad in (1.5, {0: -0.1}, float("nan")):
            with pytest.raises(cs.InputError, match="`prior` must hold probabilities in"):
                cs.prior_error(bad)
        with pytest.raises(cs.InputError, match="or one number; got 'x'"):
            cs.prior_error("x")

    def test_as_metric(self):
        with pytest.raises(cs.InputError, match="`direction` must be one of"):
            cs.as_metric(len, direction="up")
        with pytest.raises(cs.InputError, match="`range` must be \\(low, high\\) with low < high"):
            cs.as_metric(len, direction="maximize", range=(1, 1))
        with pytest.raises(cs.InputError, match="`function` must be callable as f"):
            cs.as_metric(3, direction="maximize")
        with pytest.raises(cs.InputError, match="`uses` must be one of"):
            cs.as_metric(len, direction="maximize", uses="labels")
        with pytest.raises(cs.InputError, match=r"draws are weights; too many positional.*np.repeat"):
            cs.as_metric(lambda y, p: 1.0, direction="maximize")
        many = cs.as_metric(lambda y, p, w: p, direction="maximize", name="many")
        with pytest.raises(cs.InputError, match="metric 'many' must return one number; it returned array"):
            cs.score(binary(), many)

    @pytest.mark.slow
    def test_as_metric_gives_weights_to_functions_of_scikit_learn(self):
        from sklearn.metrics import log_loss, roc_auc_score

        cube = cs.simulate_cube(40, 3, rng=1) * 0.6 + 0.1
        cube = cs.as_cube(cube.values + np.linspace(0, 0.2, 120).reshape(40, 3), np.arange(40) % 2)
        for function, ours in ((roc_auc_score, "auc"), (log_loss, "log_loss")):
            theirs = cs.as_metric(function, direction="maximize" if ours == "auc" else "minimize")
            draws = cs.bootstrap(cube, 20, rng=1)
            a, b = (cs.bbc(cube, m, draws=draws, interval="percentile", level=0.5) for m in (theirs, ours))
            np.testing.assert_allclose(a["estimate"], b["estimate"], rtol=1e-12)
            assert str(a["metric"].item()) == function.__name__
            again = pickle.loads(pickle.dumps(theirs))
            np.testing.assert_array_equal(again(cube), theirs(cube))


class TestSingleClass:
    def test_one_of_three_classes_leaves_no_pair_to_rank(self):
        p = np.random.default_rng(0).dirichlet(np.ones(3), (6, 4))
        cube = cs.as_cube(p, list("yyyyyy"), classes=list("xyz"))
        with pytest.warns(cs.CvstatsWarning):
            assert np.isnan(cs.bbc(cube, "auc", rng=1, times=50, level=0.5)["estimate"])

    @pytest.mark.parametrize("metric", ["auc", "balanced_accuracy"])
    def test_nan_and_one_warning(self, metric):
        cube = cs.as_cube([[0.1, 0.2], [0.3, 0.4]], [1, 1])
        with pytest.warns(
            cs.CvstatsWarning, match=f"{metric} is NaN for 2 of 2 scores: it needs every class to be present"
        ) as record:
            found = cs.score(cube, metric)
        assert len(record) == 1
        assert np.isnan(found).all()

    def test_no_positives_no_negatives(self):
        zeros, ones = cs.as_cube([[0.1], [0.3]], [0, 0]), cs.as_cube([[0.1], [0.3]], [1, 1])
        for cube, metric, reason in (
            (zeros, "sensitivity", "needs positives"),
            (ones, "specificity", "needs negatives"),
            (zeros, "average_precision", "needs positives"),
        ):
            with pytest.warns(cs.CvstatsWarning, match=reason):
                assert np.isnan(cs.score(cube, metric)).all()
        np.testing.assert_array_equal(cs.average_precision(ones), [1.0])

    def test_other_degenerate_data(self):
        with pytest.warns(cs.CvstatsWarning, match="r2 is NaN for 1 of 1 scores: it needs labels that vary"):
            cs.r2(cs.as_cube([[1.0], [2.0]], [1.5, 1.5], kind="value"))
        with pytest.warns(cs.CvstatsWarning, match="concordance is NaN .* it needs comparable pairs"):
            cs.concordance(cs.as_cube([[1.0], [2.0]], [1.5, 2.5], event=[0, 0], kind="score"))
        with pytest.warns(cs.CvstatsWarning, match="f1 is NaN"):
            cs.f1(cs.as_cube([[0.1], [0.3]], [0, 0]))
        np.testing.assert_array_equal(cs.mcc(cs.as_cube([[0.1], [0.3]], [0, 1])), [0.0])  # 0/0 counts as 0

    def test_names_the_configurations(self):
        p = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
        p[0, 1] = np.nan
        cube = cs.as_cube(p, [0, 1, 1], configurations=["full", "gap"])
        with pytest.warns(cs.CvstatsWarning, match="auc is NaN for 1 of 2 scores \\(configuration 'gap'\\)"):
            cs.auc(cube)

    def test_log_loss_is_clipped_at_machine_epsilon_and_says_so(self):
        cube = cs.as_cube([[0.0, 0.5], [0.5, 0.5]], [1, 0], configurations=["k1", "k2"])
        with pytest.warns(cs.CvstatsWarning) as caught:
            found = cs.log_loss(cube).values
        assert [str(one.message) for one in caught] == [
            "log loss: 1 prediction of 'k1' gave the true class a probability below 2^-52 and was clipped."
        ]
        np.testing.assert_allclose(found, [53 * np.log(2) / 2, np.log(2)])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_log_loss_is_clipped_in_double_precision(self, dtype):
        p = np.array([[0.0, 1e-9, 0.5], [1.0, 0.5, 2.0**-52], [1.0, 0.25, 0.5]], dtype)
        cube = cs.as_cube(p, [1, 0, 1], kind="probability")
        with pytest.warns(cs.CvstatsWarning, match="log loss: 2 predictions of 0 gave .* and were clipped"):
            found = cs.log_loss(cube).values
        truth = np.array([[2.0**-52, p[0, 1], 0.5], [2.0**-52, 0.5, 1 - 2.0**-52], [1.0, 0.25, 0.5]])
        np.testing.assert_allclose(found, -np.log(truth).mean(axis=0), rtol=1e-12)

    def test_log_loss_is_clipped_for_many_classes_and_not_renormalised(self):
        p = np.array([[[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], [[0.25, 0.75, 0.0], [0.0, 1.0, 0.0]]])
        cube = cs.as_cube(p, ["a", "b"], classes=["a", "b", "c"], configurations=["x", "y"])
        with pytest.warns(cs.CvstatsWarning, match="log loss: 1 prediction of 'x' gave"):
            found = cs.log_loss(cube).values
        np.testing.assert_allclose(found, [(52 * np.log(2) - np.log(0.75)) / 2, 0.0], rtol=1e-12)

    def test_log_loss_clips_nothing_that_has_no_weight_or_is_missing(self):
        np.testing.assert_allclose(cs.log_loss(cs.as_cube([[0.0], [0.5]], [1, 0], weights=[0, 1])), np.log(2))
        np.testing.assert_allclose(cs.log_loss(cs.as_cube([[np.nan], [0.5]], [1, 0], kind="probability")), np.log(2))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "call",
        [
            lambda c: cs.score(c, "log_loss", average="fold"),
            lambda c: cs.cv(c, "log_loss"),
            lambda c: cs.cvt(c, "log_loss", average="fold"),
            lambda c: cs.tt(c, "log_loss"),
            lambda c: cs.winner(c, "log_loss", rng=1, times=50),
            lambda c: cs.bbc(c, "log_loss", rng=1, times=50),
            lambda c: cs.bbcd(c, "log_loss", rng=1, times=50),
            lambda c: cs.contrast(c, "log_loss", a="k1", b="k2", rng=1, times=50),
            lambda c: cs.best_set(c, "log_loss", rng=1, times=50),
            lambda c: cs.optimism_curve(c, "log_loss", rng=1, times=50),
            lambda c: cs.select_and_judge(c, "log_loss", choose=cs.bootstrap(c, 20, rng=1), rng=1),
            lambda c: cs.implementations(c, "log_loss"),
            lambda c: cs.prior_reweighted_cv(c, "log_loss", prior=0.5, rng=1),
            lambda c: cs.prior_curve(c, "log_loss", rng=1),
            lambda c: cs.winner(c.chunk(configuration=1), "log_loss", rng=1, times=50),
        ],
    )
    def test_clipped_log_losses_are_said_once_where_the_number_is_given(self, call):
        g = np.random.default_rng(0)
        y = np.arange(40) % 2
        p = np.clip(0.5 + 0.4 * (y - 0.5)[:, None] + 0.2 * g.normal(size=(40, 3)), 0.01, 0.99)
        p[[3, 5], 1] = 0.0  # certain, and wrong
        cube = cs.as_cube(p, y, folds=np.arange(40) // 2 % 4, configurations=["k1", "k2", "k3"])
        with pytest.warns(cs.CvstatsWarning) as caught:
            call(cube)
        said = "log loss: 2 predictions of 'k2' gave the true class a probability below 2^-52 and were clipped"
        assert [str(one.message).count(said) for one in caught] == [1]


class TestCustom:
    def test_gets_plain_arrays(self):
        seen = []

        @cs.as_metric(direction="higher", range=(0, 1), name="share")
        def spy(label, prediction, weight):
            seen.append((label, prediction, weight))
            return np.average((prediction > 0.5) == label, weights=weight)

        cube = binary(shape=(3, 2), weights=np.arange(40) % 3).copy()
        cube[5, 1] = np.nan
        found = spy(cube)
        assert len(seen) == 6
        label, prediction, weight = seen[0]
        assert label.shape == prediction.shape == weight.shape == (26,)
        assert set(label) == {0, 1}
        assert (weight > 0).all()
        np.testing.assert_allclose(found, cs.accuracy(cube))
        assert found.name == "share"
        np.testing.assert_allclose(
            spy(cs.as_cube(cube, folds=np.arange(40) % 4), average="fold"),
            cs.accuracy(cs.as_cube(cube, folds=np.arange(40) % 4), average="fold"),
        )

    def test_repeats_without_predictions_are_left_out_of_the_mean(self):
        cube = cs.as_cube(np.random.default_rng(0).normal(size=(8, 3, 2)), np.arange(8.0), kind="value").copy()
        cube[:, 1, 0] = np.nan
        own = cs.as_metric(
            lambda y, p, w: float(np.average(np.abs(y - p), weights=w)), direction="minimize", name="own"
        )
        error = np.abs(cube.values - np.arange(8.0)[:, None, None]).mean(axis=0)
        np.testing.assert_allclose(own(cube), [error[0].mean(), error[1, 1], error[2].mean()])

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "log_loss"])
    def test_weights_and_folds_over_two_batch_dims(self, metric):
        """Sizes that are all different; every cell is what it would be alone."""
        rng = np.random.default_rng(0)
        cells = [
            [
                cs.as_cube(
                    rng.random((12, 4)), np.arange(12) % 2, kind="probability", folds=rng.permutation(12) % 3,
                    weights=rng.integers(1, 4, 12),
                )
                for _ in range(3)
            ]
            for _ in range(2)
        ]  # fmt: skip
        options = {"coords": "different", "compat": "equals"}
        rows = [xr.concat(row, dim=xr.Variable("size", [1, 2, 3]), **options) for row in cells]
        cube = xr.concat(rows, dim=xr.Variable("trial", [7, 8]), **options)
        for average in ("pooled", "fold"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a fold may lack a class
                found = cs.score(cube, metric, average=average)
                for i in range(2):
                    for j in range(3):
                        one = cs.score(cells[i][j], metric, average=average)
                        np.testing.assert_allclose(found.isel(trial=i, size=j), one, rtol=1e-12)
            assert found["trial"].values.tolist() == [7, 8]
            assert found["size"].values.tolist() == [1, 2, 3]

    def test_class_probabilities_come_as_columns(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(9, 2))
        cube = cs.as_cube(p, list("abc") * 3, classes=list("bca"))

        @cs.as_metric(direction="minimize")
        def loss(label, prediction, weight):
            assert prediction.shape == (9, 3)
            return -np.log(prediction[np.arange(9), label.astype(int)]).mean()

        np.testing.assert_allclose(loss(cube), cs.log_loss(cube))

    def test_without_decorator(self):
        metric = cs.as_metric(
            lambda y, p, w: float(np.average(np.abs(y - p), weights=w)), direction="minimize", name="gap"
        )
        np.testing.assert_allclose(cs.score(number(), metric), cs.mae(number()))

    @pytest.mark.parametrize("requires", ["", "classes", "positive", "negative", "spread", "pairs"])
    def test_what_it_may_require(self, requires):
        metric = cs.as_metric(lambda y, p, w: 0.0, direction="maximize", name="own", requires=requires)
        assert metric.requires == requires


class TestPriorError:
    def test_by_name_and_by_number(self):
        cube = cs.as_cube([["y"], ["n"], ["n"], ["n"]], ["y", "y", "n", "n"], positive="y")
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({"y": 0.2, "n": 0.8})), [0.1])
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({"y": 0.2})), [0.1])
        np.testing.assert_allclose(cs.score(cube, cs.prior_error(0.8)), [0.1])  # the first class: the negative one

    def test_both_classes_count_by_hand(self):
        # 1 of 2 "y" and 1 of 4 "n" are wrong
        cube = cs.as_cube([[v] for v in "ynnnny"], list("yynnnn"), positive="y")
        expected = 0.2 * 1 / 2 + 0.8 * 1 / 4
        for prior in ({"y": 0.2, "n": 0.8}, {"y": 0.2}, {"n": 0.8}, 0.8):
            np.testing.assert_allclose(cs.score(cube, cs.prior_error(prior)), [expected], rtol=1e-12)
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({"y": 1.0, "n": 0.0})), [0.5])
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({"y": 0.0, "n": 1.0})), [0.25])
        for wrong in ({"y": 0.2, "n": 0.8001}, {"y": 0.2, "n": 0.7999}):
            with pytest.raises(cs.InputError, match="`prior` must add up to 1"):
                cs.score(cube, cs.prior_error(wrong))

    def test_many_classes(self):
        cube = cs.as_cube([["a"], ["b"], ["a"], ["c"]], ["a", "b", "c", "c"])
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({"c": 0.5, "a": 0.3, "b": 0.2})), [0.25])

    def test_the_sample_prior_gives_the_error_rate(self):
        cube = binary()
        np.testing.assert_allclose(cs.score(cube, cs.prior_error({0: 0.5, 1: 0.5})), cs.error_rate(cube))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_help_says_how_a_metric_is_called(name):
    metric = get_metric(name)
    assert list(inspect.signature(metric).parameters) == ["cube", "average"]
    text = metric.__doc__
    assert text.count("Predictions made by `as_cube`.") == text.count("References\n") == 1
    assert text.index("Predictions made by") < text.index("References\n")
