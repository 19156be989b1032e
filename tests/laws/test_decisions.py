"""Laws of decisions: thresholds, recalibration, mixtures, several metrics, choices by fold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

import cvstats as cs
from shared import BINARY, binary, cube_for, number, refusal

quiet = pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
RATES = ["balanced_accuracy", "sensitivity", "specificity"]
NUMBERS = ("estimate", "naive", "optimism", "n_draws")


def smooth(n=60, m=5, r=1, seed=0, **arguments):
    """Return probabilities without ties."""
    g = np.random.default_rng(seed)
    y = (np.arange(n) % 5 < 2).astype(int)
    p = expit(1.2 * (y[:, None, None] - 0.4) + g.normal(size=(n, m, r)))
    return cs.as_cube(
        p if r > 1 else p[:, :, 0], y, kind="probability", positive=1, folds=np.arange(n) // 5 % 5, **arguments
    )


DECISIONS = {
    "list": {"metric": ["brier", "auc", "accuracy"]},
    "by": {"metric": ["accuracy", "sensitivity"], "by": "auc"},
    "youden": {"metric": RATES, "adjust": cs.cut("youden")},
    "cut after auc": {"metric": RATES, "by": "auc", "adjust": cs.cut("f1")},
    "sensitivity": {"metric": ["balanced_accuracy"], "adjust": cs.cut(sensitivity=0.8)},
    "logistic": {"metric": ["brier", "log_loss"], "adjust": cs.recalibrate()},
    "intercept": {"metric": ["log_loss", "accuracy"], "adjust": cs.recalibrate("intercept")},
    "isotonic": {"metric": ["brier"], "adjust": cs.recalibrate("isotonic")},
    "both": {"metric": RATES, "adjust": [cs.recalibrate(), cs.cut("youden")]},
    "fold": {"metric": ["brier", "accuracy"], "average": "fold"},
    "ensemble": {"metric": ["brier", "auc"], "select": cs.ensemble(6)},
    "top": {"metric": ["brier", "auc"], "select": cs.top_mean(3)},
    "ensemble cut": {"metric": ["brier", "accuracy"], "select": cs.ensemble(4), "adjust": cs.cut("accuracy")},
}
every_decision = pytest.mark.parametrize("decision", DECISIONS)


def call(function, cube, decision, **options):
    asked = dict(DECISIONS[decision])
    return function(cube, asked.pop("metric"), **asked, **options)


def same(one, two, names=NUMBERS, tolerance=1e-10):
    for name in names:
        np.testing.assert_allclose(one[name], two[name], rtol=tolerance, atol=tolerance, err_msg=name)


@quiet
@every_decision
@pytest.mark.parametrize("function", [cs.bbc, cs.winner])
def test_shape_of_the_result(decision, function):
    metrics = DECISIONS[decision]["metric"]
    out = call(function, smooth(), decision, rng=1, times=60)
    for name in ("estimate", "naive", "optimism", "conf_low", "conf_high", "n_draws"):
        assert out[name].dims == ("metric",), name
    assert out["metric"].values.tolist() == metrics
    assert out["method"].ndim == 0
    assert out["by"].item() == DECISIONS[decision].get("by", metrics[0])
    assert out["selected"].ndim == 0
    assert out["win_rate"].dims == ("configuration",)
    np.testing.assert_allclose(out["win_rate"].sum(), 1)
    mixed = decision.startswith(("ensemble", "top"))
    assert ("share" in out) == mixed
    if mixed:
        np.testing.assert_allclose(out["share"].sum(), 1)
        assert np.isnan(out["selected"])
    assert ("threshold" in out) == any(word in decision for word in ("youden", "cut", "sensitivity", "both"))
    assert ("slope" in out) == (decision in ("logistic", "both"))
    assert ("intercept" in out) == (decision in ("logistic", "both", "intercept"))
    for name in ("threshold", "slope", "intercept"):
        assert name not in out or out[name].ndim == 0


@quiet
@every_decision
@pytest.mark.parametrize("function", [cs.bbc, cs.winner])
def test_a_list_is_its_members(decision, function):
    """Each metric alone, chosen by the same metric on the same draws, has the same numbers."""
    cube, asked = smooth(), dict(DECISIONS[decision])
    draws = cs.bootstrap(cube, 60, rng=3, strata="label")
    metrics = asked.pop("metric")
    by = asked.pop("by", metrics[0])
    out = function(cube, metrics, by=by, **asked, draws=draws, rng=1)
    for metric in metrics:
        alone = function(cube, metric, by=by, **asked, draws=draws, rng=1)
        assert alone["estimate"].ndim == 0
        same(out.sel(metric=metric), alone, (*NUMBERS, "win_rate", "std_error", "conf_low", "conf_high"))


@quiet
@pytest.mark.parametrize("metric", [*BINARY, "mse", "r2", "concordance"])
@pytest.mark.parametrize("function", [cs.bbc, cs.winner, cs.cvt])
def test_a_list_of_one_is_the_plain_call(metric, function):
    cube = cube_for(metric, n=40, seed=4)
    options = {} if function is cs.cvt else {"rng": 1, "times": 100}
    one, plain = function(cube, [metric], **options), function(cube, metric, **options)
    assert one["estimate"].dims == ("metric",)
    names = ("estimate", "naive", "optimism", "selected")
    names += () if function is cs.cvt else ("win_rate", "n_draws", "conf_low", "conf_high", "std_error")
    for name in [name for name in names if name in plain]:
        np.testing.assert_allclose(np.squeeze(one[name].values), plain[name].values, rtol=1e-12, err_msg=name)


@quiet
@every_decision
def test_order_of_samples_and_configurations(decision):
    cube = smooth(seed=2)
    draws = cs.bootstrap(cube, 50, rng=3, strata="label")
    g = np.random.default_rng(1)
    other = cube.isel(sample=g.permutation(60), configuration=g.permutation(5))
    out, again = (call(cs.winner, one, decision, draws=draws, rng=1) for one in (cube, other))
    shown = [name for name in ("threshold", "slope", "intercept") if name in out]
    same(out, again, (*NUMBERS, "bbc_plain", "conf_low", "conf_high", *shown))
    same(out.sortby("configuration"), again.sortby("configuration"), ["win_rate"])


@quiet
@every_decision
def test_weights_are_repeated_rows(decision):
    cube = smooth(n=40, seed=5)
    times = np.random.default_rng(1).integers(1, 4, 40)
    weighted = cube.assign_coords(weight=("sample", times.astype(float)))
    rows = np.repeat(np.arange(40), times)
    longer = cube.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
    draws = cs.bootstrap(cube, 50, rng=2, strata="label")
    spread = draws.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
    one, two = call(cs.bbc, weighted, decision, draws=draws), call(cs.bbc, longer, decision, draws=spread)
    shown = [name for name in ("threshold", "slope", "intercept", "share") if name in one]
    same(one, two, (*NUMBERS, "win_rate", *shown), 1e-9)


@quiet
@every_decision
def test_batches_and_chunks(decision):
    pytest.importorskip("dask")
    cube = smooth(seed=6)
    out = call(cs.winner, cube, decision, rng=1, times=100)
    names = (*NUMBERS, "win_rate", "conf_low", "conf_high")
    same(out, call(cs.winner, cube, decision, rng=1, times=100, batch=32), names)
    lazy = cube.chunk(configuration=2)
    if "select" in DECISIONS[decision]:
        refusal(call)(".load()", cs.winner, lazy, decision, rng=1, times=100)
    else:
        same(out, call(cs.winner, lazy, decision, rng=1, times=100), names)


@quiet
@every_decision
def test_batch_dimensions(decision):
    """Data sets side by side are as if each were alone."""
    import xarray as xr

    cubes = [smooth(seed=seed) for seed in (7, 8)]
    together = xr.concat(cubes, dim="dataset", coords="minimal", compat="override").assign_coords(dataset=[0, 1])
    draws = cs.bootstrap(cubes[0], 50, rng=2, strata="label")
    out = call(cs.bbc, together, decision, draws=draws)
    for number_, cube in enumerate(cubes):
        same(out.isel(dataset=number_), call(cs.bbc, cube, decision, draws=draws), (*NUMBERS, "win_rate"))


@quiet
@every_decision
def test_groups_are_drawn_whole(decision):
    cube = smooth(seed=3).assign_coords(group=("sample", np.arange(60) // 3))
    draws = cs.bootstrap(cube, 60, rng=1)
    assert (draws.values.reshape(60, -1, 3) == draws.values[:, ::3, None]).all()
    same(
        call(cs.bbc, cube, decision, rng=1, times=60), call(cs.bbc, cube, decision, draws=draws), (*NUMBERS, "win_rate")
    )


@quiet
@every_decision
def test_who_cannot_win_does_not_matter(decision):
    """A configuration that lacks a prediction is as good as absent."""
    cube = smooth(seed=3)
    values = cube.values.copy()
    values[4, 1] = np.nan
    draws = cs.bootstrap(cube, 60, rng=2, strata="label")
    one, two = (
        call(cs.winner, each, decision, draws=draws, rng=1)
        for each in (cube.copy(data=values), cube.isel(configuration=[0, 2, 3, 4]))
    )
    same(one, two, ("estimate", "naive", "bbc_plain", "conf_low", "conf_high"))


@quiet
@every_decision
def test_the_scale_of_weights_does_not_matter(decision):
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    draws = cs.bootstrap(smooth(seed=3), 60, rng=2, strata="label")
    one, two = (
        call(cs.bbc, smooth(seed=3).assign_coords(weight=("sample", times * weight)), decision, draws=draws)
        for times in (1, 4)
    )
    same(one, two, (*NUMBERS, "win_rate"), 1e-8)


@quiet
@every_decision
def test_the_same_repeat_twice_is_one(decision):
    cube = smooth(seed=3)
    twice = cs.as_cube(
        np.repeat(cube.values[:, :, None], 2, axis=2), cube["label"].values, kind="probability", positive=1,
        folds=np.repeat(cube["fold"].values[:, None], 2, axis=1),
    )  # fmt: skip
    draws = cs.bootstrap(cube, 60, rng=2, strata="label")
    same(call(cs.bbc, twice, decision, draws=draws), call(cs.bbc, cube, decision, draws=draws), tolerance=1e-8)


@quiet
@every_decision
def test_confint_reads_the_limits_again(decision):
    cube = smooth(seed=3)
    out = call(cs.winner, cube, decision, rng=1, times=60)
    for level in (0.95, 0.8):
        same(
            cs.confint(out, level=level),
            call(cs.winner, cube, decision, rng=1, times=60, level=level),
            ("conf_low", "conf_high"),
        )


@quiet
@pytest.mark.parametrize("function", [cs.bbc, cs.winner])
@pytest.mark.parametrize("adjust", [None, (cs.cut("accuracy"), cs.cut("error_rate"))])
def test_error_rate_mirrors_accuracy(function, adjust):
    cube = binary(n=50, seed=8)
    options = [{} if adjust is None else {"adjust": one} for one in adjust or (None, None)]
    right, wrong = (
        function(cube, [metric], rng=3, times=200, **more)
        for metric, more in zip(("accuracy", "error_rate"), options, strict=True)
    )
    np.testing.assert_allclose(right["estimate"].values, 1 - wrong["estimate"].values, rtol=1e-12)
    np.testing.assert_allclose(right["conf_low"].values, 1 - wrong["conf_high"].values, rtol=1e-10)
    np.testing.assert_allclose(right["optimism"].values, wrong["optimism"].values, atol=1e-12)
    np.testing.assert_array_equal(right["win_rate"], wrong["win_rate"])


@quiet
class TestSpecialCases:
    def test_a_mixture_of_one_is_the_best(self):
        cube = number(n=40, seed=3)
        for mixture in (cs.ensemble(1), cs.top_mean(1)):
            best, mixed = cs.bbc(cube, "mse", rng=1, times=100), cs.bbc(cube, "mse", rng=1, times=100, select=mixture)
            same(best, mixed, (*NUMBERS, "win_rate", "conf_low", "conf_high"), 1e-12)

    def test_the_mean_of_all_is_one_fixed_column(self):
        cube = number(n=40, seed=3)
        draws = cs.bootstrap(cube, 80, rng=1)
        out = cs.bbc(cube, "mse", draws=draws, select=cs.top_mean(5))
        fixed = cs.as_cube(cube.mean("configuration").values[:, None], cube["label"].values, kind="value")
        left = (draws == 0).astype(float).assign_coords(sample=fixed["sample"].values)
        np.testing.assert_allclose(out["estimate"], cs.score_draws(fixed, "mse", left).mean(), rtol=1e-12)
        anchored = cs.winner(cube, "mse", draws=draws, select=cs.top_mean(5), rng=1)
        np.testing.assert_allclose(anchored["optimism"], 0, atol=1e-12)

    def test_a_share_of_ones_own(self):
        cube = number(n=30, seed=2)

        def equal(label, prediction, weight):
            assert prediction.shape == (len(label), 5, 1)
            return np.full(5, 0.2)

        one = cs.bbc(cube, "mse", rng=1, times=60, select=cs.as_mixture(equal))
        same(one, cs.bbc(cube, "mse", rng=1, times=60, select=cs.top_mean(5)))

    def test_recalibration_undoes_a_line(self):
        """Probabilities moved along a rising line of log odds are recalibrated to the same."""
        cube = smooth(seed=4)
        moved = cube.copy(data=expit(0.7 + 1.9 * logit(cube.values)))
        draws = cs.bootstrap(cube, 60, rng=1, strata="label")
        one, two = (
            cs.winner(c, ["brier", "log_loss"], adjust=cs.recalibrate(), draws=draws, rng=1) for c in (cube, moved)
        )
        same(one, two, (*NUMBERS, "conf_low", "conf_high"), 1e-8)
        np.testing.assert_allclose(one["slope"], 1.9 * two["slope"], rtol=1e-8)

    def test_a_shift_to_where_one_is_changes_nothing(self):
        cube = smooth(seed=4)
        prior = cs.prior_error({0: 0.7, 1: 0.3})
        draws = cs.bootstrap(cube, 60, rng=1, strata="label")
        stays = cs.shift_prior({1: 0.3}, {1: 0.3})
        one, two = cs.bbc(cube, prior, draws=draws), cs.bbc(cube, prior, draws=draws, adjust=stays)
        same(one, two, tolerance=1e-12)

    def test_a_shift_needs_a_metric_at_its_prior(self):
        with pytest.raises(cs.InputError, match="prior"):
            cs.bbc(smooth(), "accuracy", adjust=cs.shift_prior({1: 0.3}), rng=1, times=60)

    def test_scores_and_probabilities_ignore_a_cut(self):
        cube = smooth(seed=4)
        draws = cs.bootstrap(cube, 60, rng=1, strata="label")
        for metric in ("auc", "brier", "log_loss", "average_precision"):
            same(cs.bbc(cube, metric, draws=draws), cs.bbc(cube, metric, draws=draws, adjust=cs.cut("youden")))

    def test_one_marker_is_still_a_decision(self):
        cube = smooth(m=1, n=40, seed=1)
        out = cs.winner(cube, "balanced_accuracy", adjust=cs.cut("youden"), rng=1, times=200)
        assert float(out["optimism"]) > 0.01
        for interval in ("wilson", "bca"):
            with pytest.raises(cs.InputError):
                cs.winner(cube, "accuracy", adjust=cs.cut("accuracy"), interval=interval, rng=1, times=200)
        with pytest.raises(cs.InputError):
            cs.winner(cube, "auc", adjust=cs.recalibrate("isotonic"), interval="delong", rng=1, times=200)

    def test_one_fold_is_pooled(self):
        cube = smooth(seed=4).assign_coords(fold=("sample", np.zeros(60, int)))
        draws = cs.bootstrap(cube, 60, rng=1, strata="label")
        for function in (cs.bbc, cs.winner):
            one = function(cube, ["brier", "auc"], average="fold", draws=draws, rng=1)
            same(one, function(cube, ["brier", "auc"], draws=draws, rng=1))

    def test_by_fold_names_the_winner_of_a_grid_search(self):
        cube = smooth(n=45, m=12, seed=9)
        for metric in ("auc", "brier", "accuracy"):
            chosen = cs.winner(cube, metric, average="fold", rng=1, times=60)["selected"].item()
            by_fold = cs.score(cube, metric, average="fold")
            assert chosen == cs.cvt(cube, metric, average="fold")["selected"].item()
            best = by_fold.max() if metric != "brier" else by_fold.min()
            np.testing.assert_allclose(by_fold.sel(configuration=chosen), best)

    def test_within_class_only_if_every_metric_ignores_the_ratio(self):
        """Draws within class would hide the variance of the class ratio from accuracy."""
        g = np.random.default_rng(0)
        y = (np.arange(100) < 10).astype(int)
        cube = cs.as_cube(expit(y[:, None] * 2 + g.normal(size=(100, 2))), y, kind="probability", positive=1)
        both = cs.winner(cube, ["auc", "sensitivity"], rng=1, times=60, keep_draws=True)
        mixed = cs.winner(cube, ["auc", "accuracy"], rng=1, times=60, keep_draws=True)
        inside = cs.winner(cube, "auc", rng=1, times=60, keep_draws=True, strata="label")
        plain = cs.winner(cube, "auc", by="auc", rng=1, times=60, keep_draws=True, strata=None)
        np.testing.assert_allclose(both["draw_estimate"].sel(metric="auc"), inside["draw_estimate"], rtol=1e-12)
        np.testing.assert_allclose(mixed["draw_estimate"].sel(metric="auc"), plain["draw_estimate"], rtol=1e-12)

    def test_scores_are_mixed_only_on_one_scale(self):
        g = np.random.default_rng(0)
        y = np.arange(40) % 2
        cube = cs.as_cube(y[:, None] + g.normal(size=(40, 3)), y, kind="score", positive=1)
        with pytest.raises(cs.InputError, match="common_scale"):
            cs.bbc(cube, "auc", select=cs.ensemble(3), rng=1, times=60)
        out = cs.bbc(cube, "auc", select=cs.ensemble(3, common_scale=True), rng=1, times=60)
        assert np.isfinite(out["estimate"])


# --- bias on designs with known truth ---


def threshold_errors(n, m, g):
    y = (np.arange(n) < round(0.4 * n)).astype(int)
    gap = g.uniform(0.6, 1.2, m)
    noise = np.sqrt(0.6) * g.normal(size=(n, 1)) + np.sqrt(0.4) * g.normal(size=(n, m))
    cube = cs.as_cube(noise + gap * y[:, None], y, kind="score", positive=1)
    out = cs.winner(
        cube, "balanced_accuracy", adjust=cs.cut("youden"), strata="label", rng=int(g.integers(2**31)), times=100
    )
    limit = float(out["threshold"])
    truth = ndtr(gap[int(out["selected"])] - limit) + ndtr(limit) - 1
    values = [2 * float(out[name]) - 1 - truth for name in ("naive", "bbc_plain", "estimate")]
    return [*values, 2 * float(out["conf_low"]) - 1 <= truth <= 2 * float(out["conf_high"]) - 1]


def ensemble_errors(n, m, g):
    own = g.uniform(0.6, 1.0, m)
    residual = 0.6 * g.normal(size=(n, 1)) + own * g.normal(size=(n, m))
    cube = cs.as_cube(residual, np.zeros(n), kind="value")
    out = cs.winner(cube, "mse", select=cs.ensemble(20), rng=int(g.integers(2**31)), times=100)
    truth = 0.36 + float(out["share"].values ** 2 @ own**2)
    values = [float(out[name]) - truth for name in ("naive", "bbc_plain", "estimate")]
    return [*values, float(out["conf_low"]) <= truth <= float(out["conf_high"])]


@quiet
@pytest.mark.parametrize(
    ("errors", "n", "m", "naive"),
    [
        (threshold_errors, 60, 10, 0.217),
        (threshold_errors, 120, 10, 0.139),
        (threshold_errors, 60, 50, 0.257),
        (ensemble_errors, 100, 20, -0.102),
        (ensemble_errors, 100, 100, -0.154),
    ],
)
def test_bias_is_gone(errors, n, m, naive):
    """What was decided on all samples is worth what is estimated, within .02; limits hold their level."""
    g = np.random.default_rng(n + m)
    found = np.array([errors(n, m, g) for _ in range(150)])
    bias, noise = found[:, :3].mean(axis=0), found[:, :3].std(axis=0) / np.sqrt(len(found))
    assert abs(bias[0] - naive) < 4 * noise[0] + 0.005
    assert (np.abs(bias[1:]) < 0.02 + 2 * noise[1:]).all()
    assert found[:, 3].mean() > 0.9
