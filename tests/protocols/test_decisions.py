"""Decisions by plain loops: thresholds, ensembles, recalibration, lists of metrics, fold averages, anchors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from sklearn.metrics import brier_score_loss, f1_score, roc_auc_score

import cvstats as cs
from shared import refusal


def tiny(n=4, m=3, r=1, seed=0, kind="probability"):
    """Return labels 0/1 and a cube of few distinct probabilities."""
    g = np.random.default_rng(seed)
    y = np.arange(n) % 2
    p = np.round(np.clip(0.5 + 0.2 * (y[:, None, None] - 0.5) + 0.25 * g.normal(size=(n, m, r)), 0.05, 0.95), 1)
    names = [f"c{j}" for j in range(m)]
    return y, p, cs.as_cube(p if r > 1 else p[..., 0], y, configurations=names, folds=np.arange(n) // 2, kind=kind)


def every_draw(n):
    counts = np.array([np.bincount(d, minlength=n) for d in itertools.product(range(n), repeat=n)])
    return xr.DataArray(counts, dims=("draw", "sample"))


def some_draws(n, times=60, seed=3):
    g = np.random.default_rng(seed)
    counts = np.stack([np.bincount(g.integers(0, n, n), minlength=n) for _ in range(times)])
    return xr.DataArray(counts, dims=("draw", "sample"))


def rate(y, label, w, code):
    inside = w * (y == code)
    return (inside * (label == code)).sum() / inside.sum() if inside.sum() else np.nan


def youden(y, label, w):
    return rate(y, label, w, 1) + rate(y, label, w, 0) - 1


def accuracy(y, label, w):
    return (w * (label == y)).sum() / w.sum() if w.sum() else np.nan


def over_repeats(value, y, p, w):
    """Return the mean over repeats of a metric of columns (n, r)."""
    return np.mean([value(y, column, w) for column in p.T])


def best_cut(y, p, w):
    """Return the threshold with the best Youden index, repeats pooled: nearest .5, then the smaller."""
    flat, label, weight = p.ravel(), np.repeat(y, p.shape[1]), np.repeat(w, p.shape[1])
    scores = np.unique(flat[weight > 0])
    if len(np.unique(label[weight > 0])) < 2:
        return np.nan
    limits = [-np.inf, *((scores[1:] + scores[:-1]) / 2), np.inf]
    value = [round(youden(label, (flat > limit).astype(int), weight), 12) for limit in limits]
    return min((-v, abs(limit - 0.5), limit) for v, limit in zip(value, limits, strict=True))[2]


def decide_cut(y, p, w, by=accuracy):
    """Return the configuration and threshold chosen together: every configuration is cut before it is scored."""
    limits = [best_cut(y, p[:, j], w) for j in range(p.shape[1])]
    scores = [over_repeats(by, y, (p[:, j] > limits[j]).astype(int), w) for j in range(p.shape[1])]
    if np.isnan(limits).any():
        return None
    best = int(np.argmax(np.round(scores, 12)))
    return best, limits[best]


def cut_value(y, p, choice, w, metric):
    return over_repeats(metric, y, (p[:, choice[0]] > choice[1]).astype(int), w)


class TestThreshold:
    @pytest.mark.parametrize(("n", "r"), [(4, 1), (4, 2)])
    def test_configuration_and_threshold_over_all_draws(self, n, r):
        y, p, cube = tiny(n, r=r, seed=n + r)
        draws = every_draw(n)
        ones = np.ones(n)
        final = decide_cut(y, p, ones)
        values, anchors = [], []
        for w in draws.values:
            choice = decide_cut(y, p, w)
            left = (w == 0).astype(float)
            if choice is None or not left.any():
                continue
            values.append(cut_value(y, p, choice, left, accuracy))
            anchors.append(cut_value(y, p, final, left, accuracy))
        naive = cut_value(y, p, final, ones, accuracy)
        with pytest.warns(cs.CvstatsWarning):
            out = cs.bbc(cube, "accuracy", adjust=cs.cut("youden"), draws=draws)
        assert float(out.estimate) == pytest.approx(np.mean(values), abs=1e-12)
        assert float(out.naive) == pytest.approx(naive, abs=1e-12)
        assert float(out.threshold) == pytest.approx(final[1], abs=1e-12)
        assert int(out.n_draws) == len(values)
        assert out.selected.item() == f"c{final[0]}"
        if r == 1:
            many = cs.select_and_judge(cube, "accuracy", choose=draws, adjust=cs.cut("youden"), ties="first")
            np.testing.assert_allclose(many.value.values[many.usable.values], values, atol=1e-12)
            shifted = naive + np.mean(np.subtract(values, anchors))
            assert np.clip(shifted, 0, 1) == pytest.approx(anchored_first(cube, draws, "accuracy"), abs=1e-12)

    def test_chosen_by_auc_and_cut_afterwards(self):
        y, p, cube = tiny(20, 4, seed=5)
        draws = some_draws(20)
        out = cs.select_and_judge(
            cube, ["sensitivity", "auc"], by="auc", choose=draws, adjust=cs.cut("youden"), ties="first"
        )
        for number, w in enumerate(draws.values):
            if len(np.unique(y[w > 0])) < 2 or len(np.unique(y[w == 0])) < 2:
                continue
            scores = [roc_auc_score(y, p[:, j, 0], sample_weight=w) for j in range(4)]
            best = int(np.argmax(np.round(scores, 12)))
            limit = best_cut(y, p[:, best], w)
            left = (w == 0).astype(float)
            label = (p[:, best, 0] > limit).astype(int)
            assert out.selected.values[number] == f"c{best}"
            assert out.threshold.values[number] == pytest.approx(limit)
            assert out.value.values[0, number] == pytest.approx(rate(y, label, left, 1), abs=1e-12)
            expected = roc_auc_score(y, p[:, best, 0], sample_weight=left)
            assert out.value.values[1, number] == pytest.approx(expected, abs=1e-12)

    def test_scores_need_no_threshold_of_their_own(self):
        g = np.random.default_rng(1)
        y = np.arange(40) % 2
        cube = cs.as_cube(3 * g.normal(size=(40, 3)) + y[:, None], y, kind="score")
        out = cs.winner(cube, ["accuracy", "auc"], by="auc", adjust=cs.cut("accuracy"), times=50, rng=1)
        assert np.isfinite(out.estimate).all()
        refusal(cs.winner)("scores have no default threshold", cube, "accuracy", times=50, rng=1)

    def test_infinite_predictions_are_refused(self):
        y, p, _ = tiny(10)
        q = p[..., 0].copy()
        q[0, 0] = np.inf
        cube = cs.as_cube(q, y, kind="score")
        refusal(cs.bbc)("cut(f1) needs finite predictions", cube, "f1", adjust=cs.cut("f1"), times=50, rng=1)


def anchored_first(cube, draws, metric):
    """Return the anchored estimate with ties to the first, from kept draws of both choices."""
    many = cs.select_and_judge(cube, metric, choose=draws, adjust=cs.cut("youden"), ties="first")
    kept = cs.cvt(cube, metric, adjust=cs.cut("youden"))
    y, p = cube["label"].values, cube.sel(configuration=kept.selected.item()).values
    label = (p > float(kept.threshold)).astype(int)
    anchor = [accuracy(y, label, (w == 0).astype(float)) for w in draws.values]
    gap = many.value.values - np.array(anchor)
    return float(np.clip(kept.naive + np.nanmean(gap), 0, 1))


def greedy(y, p, w, size):
    """Return shares by forward selection on the weighted Brier score."""
    count = np.zeros(p.shape[1])
    for step in range(size):
        losses = []
        for j in range(p.shape[1]):
            trial = count + (np.arange(p.shape[1]) == j)
            losses.append(np.average((p[..., 0] @ trial / (step + 1) - y) ** 2, weights=w))
        count[int(np.argmin(np.round(losses, 12)))] += 1
    return count / size


class TestMixture:
    def test_ensemble_over_all_draws(self):
        n = 4
        y, p, cube = tiny(n, seed=9)
        draws = every_draw(n)
        values = []
        for w in draws.values:
            left = w == 0
            if left.any():
                values.append(np.mean((p[left][..., 0] @ greedy(y, p, w, 3) - y[left]) ** 2))
        with pytest.warns(cs.CvstatsWarning):
            out = cs.bbc(cube, "brier", select=cs.ensemble(3), draws=draws)
        share = greedy(y, p, np.ones(n), 3)
        np.testing.assert_allclose(out.share.values, share, atol=1e-12)
        assert float(out.estimate) == pytest.approx(np.mean(values), abs=1e-12)
        assert float(out.naive) == pytest.approx(np.mean((p[..., 0] @ share - y) ** 2), abs=1e-12)
        assert out.selected.item() == ""
        assert float(out.win_rate.sum()) == pytest.approx(1)

    def test_chosen_by_any_metric_and_judged_by_others(self):
        y, p, cube = tiny(24, 4, seed=2)
        w = np.ones(24)
        out = cs.cvt(cube, ["auc", "brier"], by="auc", select=cs.ensemble(4))
        count = np.zeros(4)
        for step in range(4):
            trials = [(p[..., 0] @ (count + np.eye(4)[j])) / (step + 1) for j in range(4)]
            count[int(np.argmax(np.round([roc_auc_score(y, q, sample_weight=w) for q in trials], 12)))] += 1
        np.testing.assert_allclose(out.share, count / 4)
        mixed = p[..., 0] @ count / 4
        assert float(out.estimate[0]) == pytest.approx(roc_auc_score(y, mixed), abs=1e-12)
        assert float(out.estimate[1]) == pytest.approx(brier_score_loss(y, mixed), abs=1e-12)

    def test_top_mean_and_own_mixture_agree_where_they_must(self):
        _, _, cube = tiny(30, 4, seed=4)

        def mean(label, prediction, weight):
            return np.full(prediction.shape[1], 1 / prediction.shape[1])

        same = [
            cs.winner(cube, ["auc", "f1"], by="brier", select=select, times=60, rng=1)
            for select in (cs.top_mean(4), cs.as_mixture(mean))
        ]
        np.testing.assert_allclose(same[0].estimate, same[1].estimate, atol=1e-12)
        np.testing.assert_allclose(same[0].conf_low, same[1].conf_low, atol=1e-12)

    def test_votes(self):
        y, p, _ = tiny(15, 3, seed=6)
        label = (p[..., 0] > 0.5).astype(int)
        cube = cs.as_cube(label, y)
        out = cs.cvt(cube, "accuracy", select=cs.top_mean(3))
        assert float(out.estimate) == pytest.approx(np.mean((label.mean(axis=1) > 0.5) == y))

    def test_refusals(self):
        _, _, cube = tiny(20)
        refusal(cs.winner)(
            "needs the predictions in memory", cube.chunk({"configuration": 1}), "auc", select=cs.ensemble(2)
        )
        scores = cs.as_cube(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2, kind="score")
        refusal(cs.winner)("share a scale", scores, "auc", select=cs.ensemble(2), rng=1)
        refusal(cs.winner)("needs 9 different configurations", cube, "auc", select=cs.top_mean(9), rng=1)


class TestListsOfMetrics:
    def test_list_of_one_equals_a_single_call(self):
        _, _, cube = tiny(40, 5, seed=1)
        for protocol in (cs.winner, cs.bbc):
            one, many = (protocol(cube, metric, times=100, rng=1, keep_draws=True) for metric in ("f1", ["f1"]))
            for name in one.data_vars:
                xr.testing.assert_identical(
                    many[name].isel(metric=0, missing_dims="ignore").variable, one[name].variable
                )
            assert many.interval.dims == ("metric",)
            assert many.by.item() == "f1"

    def test_every_metric_judges_one_choice(self):
        y, p, cube = tiny(30, 5, seed=8)
        draws = some_draws(30)
        out = cs.bbc(cube, ["f1", "brier"], by="auc", draws=draws, keep_draws=True)
        alone = cs.select_and_judge(cube, "auc", choose=draws, ties="first")
        np.testing.assert_array_equal(out.draw_selected, alone.selected)
        for number, w in enumerate(draws.values):
            best, left = int(str(out.draw_selected.values[number])[1:]), w == 0
            brier = brier_score_loss(y[left], p[left, best, 0])
            assert float(out.draw_estimate[1, number]) == pytest.approx(brier, abs=1e-12)
            f1 = f1_score(y[left], p[left, best, 0] > 0.5, zero_division=np.nan)
            np.testing.assert_allclose(out.draw_estimate[0, number], f1, atol=1e-12)
        np.testing.assert_allclose(out.win_rate, alone.win_rate)

    def test_refusals(self):
        _, _, cube = tiny(20)
        refused = refusal(cs.winner)
        refused("`metric` is an empty list", cube, [])
        refused("`metric` names 'auc' more than once.", cube, ["auc", "roc_auc"])
        refused("regime='holdout' is for one configuration", cube, ["auc", "brier"], regime="holdout")
        refused("`adjust` must be one or several of", cube, "auc", adjust="youden")
        refused("give a metric at the same prior", cube, "brier", adjust=cs.shift_prior({1: 0.1}))


class TestByFold:
    def test_choice_of_every_draw_by_a_loop(self):
        y, p, cube = tiny(24, 4, seed=3)
        fold = np.arange(24) // 6
        cube = cube.assign_coords(fold=("sample", fold))
        draws = some_draws(24)
        out = cs.select_and_judge(cube, ["auc", "accuracy"], choose=draws, average="fold", ties="first")
        for number, w in enumerate(draws.values):
            scores = []
            for j in range(4):
                parts = [
                    roc_auc_score(y[fold == k], p[fold == k, j, 0], sample_weight=w[fold == k])
                    for k in range(4)
                    if len(np.unique(y[(fold == k) & (w > 0)])) == 2
                ]
                scores.append(np.mean(parts))
            best, left = int(np.argmax(np.round(scores, 12))), w == 0
            assert out.selected.values[number] == f"c{best}"
            if len(np.unique(y[left])) == 2:
                assert float(out.value[0, number]) == pytest.approx(roc_auc_score(y[left], p[left, best, 0]), abs=1e-12)
            assert float(out.value[1, number]) == pytest.approx(np.mean((p[left, best, 0] > 0.5) == y[left]))

    def test_repeats_with_folds_of_their_own_and_a_fold_that_was_not_run(self):
        y, p, cube = tiny(24, 3, 2, seed=3)
        fold = np.stack([np.arange(24) // 6, np.arange(24) // 2 % 4], axis=1)
        p[fold[:, 1] == 2, 1, 1] = np.nan
        cube = cube.copy(data=p).assign_coords(fold=(("sample", "repeat"), fold))
        draws = some_draws(24, 20)
        out = cs.select_and_judge(cube, "auc", choose=draws, average="fold", ties="first")
        for number, w in enumerate(draws.values):
            scores = np.empty((3, 2))
            for j, r in np.ndindex(3, 2):
                there = [(fold[:, r] == k) & (w > 0) & ~np.isnan(p[:, j, r]) for k in range(4)]
                full = [rows for rows in there if len(np.unique(y[rows])) == 2]
                scores[j, r] = np.mean([roc_auc_score(y[k], p[k, j, r], sample_weight=w[k]) for k in full])
            assert out.selected.values[number] == f"c{int(np.argmax(np.round(scores.mean(axis=1), 12)))}"

    def test_cut_on_the_whole_draw_and_chosen_by_fold(self):
        y, p, cube = tiny(24, 4, seed=3)
        fold = np.arange(24) // 6
        cube = cube.assign_coords(fold=("sample", fold))
        draws = some_draws(24, 20)
        out = cs.select_and_judge(cube, "accuracy", choose=draws, adjust=cs.cut("youden"), average="fold", ties="first")
        for number, w in enumerate(draws.values):
            limits = [best_cut(y, p[:, j], w) for j in range(4)]
            hit = [(p[:, j, 0] > limits[j]) == y for j in range(4)]
            scores = [np.mean([np.average(own[k], weights=w[k]) for k in (fold == np.arange(4)[:, None]) if w[k].any()])
                      for own in hit]  # fmt: skip
            best = int(np.argmax(np.round(scores, 12)))
            assert (out.selected.values[number], float(out.threshold[number])) == (f"c{best}", limits[best])

    def test_naive_is_what_cvt_says_and_the_winner_is_that_of_the_fold_means(self):
        _, _, cube = tiny(40, 6, seed=5)
        cube = cube.assign_coords(fold=("sample", np.arange(40) // 8))
        plain = cs.score(cube, "auc", average="fold")
        for out in (cs.winner(cube, "auc", average="fold", times=60, rng=1), cs.cvt(cube, ["auc"], average="fold")):
            assert float(np.ravel(out.naive)[0]) == pytest.approx(float(plain.max()), abs=1e-12)
            assert out.selected.item() == plain.configuration.values[int(np.argmax(plain.values))]
        bbc = cs.bbc(cube, "auc", average="fold", times=60, rng=1)
        pooled = cs.score(cube.sel(configuration=[bbc.selected.item()]), "auc").item()
        assert float(bbc.optimism) == pytest.approx(pooled - float(bbc.estimate), abs=1e-12)

    def test_a_fold_without_a_class_leaves_nothing_to_choose(self):
        y = np.repeat([0, 1], 10)
        cube = cs.as_cube(np.random.default_rng(0).random((20, 3)), y, folds=np.arange(20) // 5)
        with pytest.warns(cs.CvstatsWarning, match="fold 0, 1, 2, 3"):
            out = cs.winner(cube, "auc", average="fold", times=60, rng=1)
        assert np.isnan(out.estimate)
        assert np.isnan(out.naive)


class TestAnchored:
    @pytest.mark.parametrize("metric", ["auc", "f1", "brier", "accuracy", "average_precision"])
    def test_estimate_is_naive_plus_the_mean_gap(self, metric):
        _, _, cube = tiny(40, 5, seed=7)
        out = cs.winner(cube, metric, times=100, rng=1, keep_draws=True)
        gap = (out.draw_estimate - out.draw_anchor).mean()
        assert float(out.estimate) == pytest.approx(float(out.naive + gap), abs=1e-12)
        assert float(out.bbc_plain) == pytest.approx(float(out.draw_estimate.mean()), abs=1e-12)

    def test_one_configuration_has_no_optimism_unless_it_is_adjusted(self):
        _, _, cube = tiny(40, 1, seed=7)
        for metric in ("auc", ["f1", "brier"]):
            assert float(np.abs(cs.winner(cube, metric, times=50, rng=1).optimism).max()) == 0
        out = cs.winner(cube, "accuracy", adjust=cs.cut("accuracy"), times=100, rng=1)
        assert float(out.optimism) > 0
        for interval in ("wilson", "bca"):
            refused = refusal(cs.winner)
            refused("they are adjusted here", cube, "accuracy", adjust=cs.cut("accuracy"), times=50, interval=interval)

    def test_percentile_limits_are_moved_and_read_again(self):
        _, _, cube = tiny(40, 6, seed=7)
        out = cs.winner(cube, "f1", interval="percentile", times=100, rng=1, keep_draws=True)
        low = np.quantile(out.draw_estimate, 0.025) + float(out.estimate - out.bbc_plain)
        assert float(out.conf_low) == pytest.approx(low, abs=1e-12)
        again = cs.confint(out, level=0.95)
        for name in ("conf_low", "conf_high", "bound_low", "bound_high"):
            assert float(again[name]) == pytest.approx(float(out[name]), abs=1e-12)

    def test_calibrated_limits_of_a_list_are_read_again(self):
        _, _, cube = tiny(40, 6, seed=7)
        out = cs.winner(cube, ["auc", "log_loss"], adjust=cs.recalibrate(), times=100, rng=1)
        again = cs.confint(out, level=0.95)
        np.testing.assert_allclose(again.conf_high, out.conf_high, atol=1e-12)
        wider = cs.confint(out, level=0.99)
        assert (wider.conf_high > out.conf_high).all()


class TestTogether:
    @pytest.mark.parametrize(
        "options",
        [
            {"adjust": cs.cut("youden"), "by": "accuracy"},
            {"adjust": [cs.recalibrate(), cs.cut("f1")], "by": "auc"},
            {"select": cs.ensemble(3), "by": "brier"},
            {"average": "fold", "by": "auc"},
            {"adjust": cs.recalibrate("isotonic"), "by": "brier"},
        ],
    )
    def test_batch_weights_and_order_change_nothing(self, options):
        g = np.random.default_rng(0)
        y = g.integers(0, 2, 40)
        p = np.clip(0.5 + 0.3 * (y[:, None] - 0.5) + 0.2 * g.normal(size=(40, 4)), 0.01, 0.99)
        fold = np.tile(np.arange(4), 10)
        cube = cs.as_cube(p, y, configurations=list("abcd"), folds=fold)
        metrics = ["brier", "accuracy", "auc"]
        out = cs.winner(cube, metrics, times=70, rng=1, strata=None, **options)
        small = cs.winner(cube, metrics, times=70, rng=1, strata=None, batch=32, **options)
        np.testing.assert_allclose(out.estimate, small.estimate, atol=1e-10)
        turned = cs.winner(cube.isel(configuration=[2, 0, 3, 1]), metrics, times=70, rng=1, strata=None, **options)
        if "select" not in options:  # ties of mixtures go to the first
            np.testing.assert_allclose(out.estimate, turned.estimate, atol=1e-10)
        count = g.integers(1, 3, 40)
        weighed = cube.assign_coords(weight=("sample", count))
        rows = np.repeat(np.arange(40), count)
        repeated = cube.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
        one, other = (cs.cvt(c, metrics, **options) for c in (weighed, repeated))
        np.testing.assert_allclose(one.estimate, other.estimate, atol=1e-9)

    @pytest.mark.parametrize("options", [{"adjust": cs.cut("youden"), "by": "accuracy"}, {"average": "fold"}])
    def test_dask_and_batch_dims(self, options):
        _, _, cube = tiny(30, 5, seed=1)
        _, _, second = tiny(30, 5, seed=2)
        both = xr.concat([cube, second], "dataset", coords="minimal", compat="override")
        metrics = ["auc", "sensitivity"]
        lazy = cs.winner(cube.chunk({"configuration": 2}), metrics, times=60, rng=1, **options)
        plain = cs.winner(cube, metrics, times=60, rng=1, **options)
        np.testing.assert_allclose(lazy.estimate, plain.estimate, atol=1e-10)
        stacked = cs.winner(both, metrics, times=60, rng=1, **options)
        assert set(stacked.estimate.dims) == {"dataset", "metric"}
        np.testing.assert_allclose(stacked.estimate.isel(dataset=0), plain.estimate, atol=1e-12)

    def test_cross_repeat_with_a_threshold(self):
        _, _, cube = tiny(20, 3, r=2, seed=4)
        draws = some_draws(20)
        out = cs.winner(cube, ["accuracy", "brier"], adjust=cs.cut("youden"), draws=draws, rng=1)
        assert out.method.item() == "bbc_cross_repeat"
        assert np.isfinite(out.estimate).all()
        assert out.selected.item() == cs.cvt(cube, "accuracy", adjust=cs.cut("youden")).selected.item()


def people(n=120, m=4, seed=0):
    """Return a cube with the coordinates sex and site."""
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    p = np.clip(0.5 + 0.3 * (y[:, None] - 0.5) + 0.25 * g.normal(size=(n, m)), 0.01, 0.99)
    cube = cs.as_cube(p, y, configurations=list("abcdefgh"[:m]))
    return cube.assign_coords(sex=("sample", g.choice(["f", "m"], n)), site=("sample", g.integers(0, 4, n)))


class TestSubgroup:
    def test_by_a_loop(self):
        cube = people()
        draws = some_draws(120, 80)
        out = cs.bbc(cube, ["brier", "sensitivity"], by="auc", subgroup="sex", draws=draws, keep_draws=True)
        y, sex = cube["label"].values, cube["sex"].values
        for number, w in enumerate(draws.values):
            chosen = cube.sel(configuration=out.draw_selected.values[number]).values
            for place, name in enumerate(["f", "m"]):
                rows = (w == 0) & (sex == name)
                brier = np.mean((chosen[rows] - y[rows]) ** 2)
                assert float(out.draw_estimate[0, place, number]) == pytest.approx(brier, abs=1e-12)
        assert out.estimate.dims == ("metric", "sex")
        assert out.selected.dims == ()
        np.testing.assert_array_equal(out.n_samples, [(sex == "f").sum(), (sex == "m").sum()])
        np.testing.assert_array_equal(out.n_events, [y[sex == "f"].sum(), y[sex == "m"].sum()])
        difference = out.estimate.sel(sex="f") - out.estimate.sel(sex="m")
        np.testing.assert_allclose(out.difference.sel(sex="f"), difference, atol=1e-12)
        assert (out.difference_low < out.difference).all()
        assert (out.p_adjusted >= out.p_value).all()

    def test_anchored_in_every_level(self):
        out = cs.winner(people(), "f1", subgroup="site", times=80, rng=1, keep_draws=True)
        gap = (out.draw_estimate - out.draw_anchor).mean("draw")
        np.testing.assert_allclose(out.estimate, out.naive + gap, atol=1e-12)
        assert "spread_between" not in out

    def test_sites_are_drawn_within(self):
        cube = people()
        cube = cube.assign_coords(group=("sample", cube["site"].values))
        out = cs.winner(cube, "auc", subgroup="site", times=80, rng=1)
        assert float(out.spread_between) >= 0
        same = cs.winner(cube.drop_vars("group"), "auc", subgroup="site", strata="site", times=80, rng=1)
        np.testing.assert_allclose(out.estimate, same.estimate, atol=1e-12)

    def test_small_levels_are_not_judged(self):
        cube = people()
        sex = cube["sex"].values.copy()
        sex[:6] = "x"
        with pytest.warns(cs.CvstatsWarning, match="fewer than 5 samples of a class in sex 'x'"):
            out = cs.winner(cube.assign_coords(sex=("sample", sex)), "brier", subgroup="sex", times=60, rng=1)
        assert np.isnan(out.estimate.sel(sex="x"))
        assert np.isnan(out.p_adjusted.sel(sex="x"))
        assert np.isfinite(out.estimate.sel(sex=["f", "m"])).all()

    def test_refusals(self):
        cube = people()
        refused = refusal(cs.winner)
        refused("`subgroup`='sx' is not a coordinate of the cube (did you mean 'sex'?)", cube, "auc", subgroup="sx")
        refused("`subgroup`='kind' must have the one dimension 'sample'", cube, "auc", subgroup="kind")
        gap = cube["sex"].values.copy()
        gap[3] = ""
        refused("is missing for samples 3", cube.assign_coords(sex=("sample", gap)), "auc", subgroup="sex")
        one = cube.assign_coords(sex=("sample", np.full(120, "f")))
        refused("has one level only, 'f'", one, "auc", subgroup="sex")


class TestOthers:
    @pytest.mark.parametrize("options", [{"by": "brier"}, {"adjust": cs.cut("youden")}, {"average": "fold"}])
    def test_curve_ends_at_the_plain_estimate(self, options):
        cube = people(60).assign_coords(fold=("sample", np.arange(60) % 5))
        curve = cs.optimism_curve(cube, "accuracy", times=60, rng=1, **options)
        out = cs.winner(cube, "accuracy", times=60, rng=1, **options)
        assert float(curve.estimate[-1]) == pytest.approx(float(out.bbc_plain), abs=1e-12)
        assert float(curve.naive[-1]) == pytest.approx(float(out.naive), abs=1e-12)
        alone = cs.winner(cube.isel(configuration=[0]), "accuracy", times=60, rng=1, **options)
        assert np.isfinite(alone.estimate)

    def test_contrast_of_decisions(self):
        cube = people(80)
        sides = {"a": cs.ensemble(4), "b": cs.select_best}
        out = cs.contrast(cube, "brier", **sides, times=80, rng=1)
        alone = [cs.winner(cube, "brier", select=select, times=80, rng=1) for select in sides.values()]
        assert float(out.estimate_a) == pytest.approx(float(alone[0].estimate), abs=1e-12)
        assert float(out.estimate_b) == pytest.approx(float(alone[1].estimate), abs=1e-12)
        np.testing.assert_allclose(out.share_a, alone[0].share)
        assert out.method.item() == "contrast of decisions"
        turned = cs.contrast(cube, "brier", a=cs.select_best, b=sides["a"], times=80, rng=1)
        assert float(turned.estimate) == pytest.approx(-float(out.estimate), abs=1e-12)
        assert float(turned.p_value) == pytest.approx(float(out.p_value), abs=1e-12)
        refusal(cs.contrast)("nothing to compare", cube, "brier", a=cs.select_best, b=cs.select_best)

    def test_best_set_by_fold_agrees_with_scores_by_fold(self):
        cube = people(100).assign_coords(fold=("sample", np.arange(100) % 5))
        out = cs.best_set(cube, "auc", average="fold", times=100, rng=1)
        np.testing.assert_allclose(out.estimate, cs.score(cube, "auc", average="fold"), atol=1e-12)
        pooled = cs.best_set(cube, "accuracy", times=100, rng=1)
        folded = cs.best_set(cube, "accuracy", average="fold", times=100, rng=1)
        np.testing.assert_allclose(pooled.estimate, folded.estimate, atol=1e-12)  # folds of one size


def test_a_metric_that_cannot_choose_is_called_by():
    cube = cs.simulate_cube(30, 3, rng=1)
    with pytest.raises(cs.InputError, match="`by`='acuracy' does not exist"):
        cs.winner(cube, "accuracy", by="acuracy")
