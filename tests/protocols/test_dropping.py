"""Early dropping: hand-worked and brute-force decisions, the live form, and the published simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.protocols.bootstrap import bbc
from cvstats.protocols.dropping import bbcd, drop_configurations
from cvstats.protocols.nested import ncv
from cvstats.simulate.fixed import simulate_cube

NAN = np.nan


def labels_cube(correct, *, folds=None, labels=None, **more):
    """Return a cube of 0/1 predictions that are right where `correct` is 1, missing where NaN."""
    correct = np.asarray(correct, float)
    labels = np.arange(len(correct)) % 2 if labels is None else np.asarray(labels)
    truth = labels.reshape(-1, *[1] * (correct.ndim - 1))
    values = np.where(correct == 1, truth, 1 - truth).astype(float)
    return cs.as_cube(np.where(np.isnan(correct), NAN, values), labels, folds=folds, kind="label", **more)


def every_draw(n):
    """Return all n^n bootstrap draws as counts."""
    return np.array([np.bincount(draw, minlength=n) for draw in itertools.product(range(n), repeat=n)])


def values_of(metric, y, p, w):
    """Return the performance of one prediction vector under weights, by the textbook."""
    if metric == "accuracy":
        return np.sum(w * ((p > 0.5) == y)) / np.sum(w)
    if metric == "mse":
        return -np.sum(w * (p - y) ** 2) / np.sum(w)
    if metric == "log_loss":
        return np.sum(w * np.log(np.where(y == 1, p, 1 - p))) / np.sum(w)
    if metric == "balanced_accuracy":
        return np.mean([np.sum(w * (y == k) * ((p > 0.5) == k)) / np.sum(w * (y == k)) for k in (0, 1)])
    above = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    pairs = np.outer(w * (y == 1), w * (y == 0))
    return np.sum(pairs * above) / np.sum(pairs)


def brute_force(cube, metric, times, seed, threshold, least, strata=None):
    """Replay dropping with plain loops over folds, configurations and draws: dropped_after, p_worse.

    A sample's value is its mean over the repeats seen so far, which is how the mean metrics used here average.
    """
    values, y = cube.values.reshape(*cube.shape[:2], -1), cube.label.values
    repeats = values.shape[2]
    fold = cube.fold.transpose("sample", ...).values.reshape(len(y), -1)
    seen = np.zeros((len(y), repeats), bool)
    alive = np.ones(values.shape[1], bool)
    dropped, p_worse = np.full(len(alive), NAN), np.full(len(alive), NAN)
    steps = [(r, f) for r in range(repeats) for f in np.unique(fold)]
    for number, (r, f) in enumerate(steps[:-1], 1):
        seen[fold[:, r] == f, r] = True
        rows = np.flatnonzero(seen.any(axis=1))
        if len(rows) < least:
            continue
        share = seen[rows] / seen[rows].sum(axis=1, keepdims=True)

        def performance(j, w, rows=rows, share=share):
            each = [
                values_of(metric, y[rows], values[rows, j, k], w * share[:, k]) * np.sum(w * share[:, k])
                for k in range(repeats)
                if share[:, k].any() and np.sum(w * share[:, k])
            ]
            return round(sum(each) / np.sum(w), 12)

        everyone = np.flatnonzero(alive)
        scores = [performance(j, np.ones(len(rows))) for j in everyone]
        leader = everyone[int(np.argmax(scores))]
        draws = cs.bootstrap(cube.isel(sample=rows), times, rng=seed, strata=strata).values
        for j in everyone:
            p_worse[j] = np.mean([performance(j, draw) < performance(leader, draw) for draw in draws])
        out = alive & (p_worse > threshold)
        dropped[out], alive[out] = number, False
    return dropped, p_worse


# --- the live form ------------------------------------------------------------------------------------------------


def test_probability_of_being_worse_by_enumeration():
    """Five samples, all 3125 draws: j is worse when it loses more often than it wins in the draw."""
    right = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 0, 0]])
    cube = labels_cube(right)
    counts = every_draw(5)
    draws = xr.DataArray(counts, dims=("draw", "sample"), coords={"sample": cube.sample.values})
    total = counts @ right  # correct predictions per draw and configuration
    expected = (total < total[:, :1]).mean(axis=0)
    out = drop_configurations(cube, "accuracy", draws=draws, threshold=0.95)
    np.testing.assert_allclose(out.p_worse, expected, atol=1e-15)
    # worse when one of 1, 2 or 3 given samples was drawn; the first is never worse than itself
    np.testing.assert_allclose(expected, [0, *(1 - (1 - np.array([1, 2, 3]) / 5) ** 5)])
    assert out.keep.values.tolist() == [True, True, True, False]
    assert out.best.item() == 0
    loss = drop_configurations(cube, "error_rate", draws=draws, threshold=0.95)
    np.testing.assert_array_equal(loss.p_worse, out.p_worse)


def test_threshold_is_strict():
    cube = labels_cube([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    weights = np.array([[1, 1, 1], [3, 0, 0], [0, 3, 0], [0, 0, 3]])
    draws = xr.DataArray(weights, dims=("draw", "sample"), coords={"sample": cube.sample.values})
    out = drop_configurations(cube, "accuracy", draws=draws, threshold=0.75)
    np.testing.assert_array_equal(out.p_worse, [0, 0.5, 0.75])
    assert out.keep.values.all()
    assert drop_configurations(cube, "accuracy", draws=draws, threshold=0.74).keep.values.tolist() == [
        True,
        True,
        False,
    ]


def test_ties_are_not_worse_and_the_first_is_best():
    cube = labels_cube([[1, 1], [0, 0], [1, 1]])
    out = drop_configurations(cube, "accuracy", rng=1, threshold=0.5)
    assert out.best.item() == 0
    np.testing.assert_array_equal(out.p_worse, [0, 0])


def test_dropped_configurations_stay_dropped():
    right = np.array([[1, 1, 0.0], [1, 0, 1], [1, 1, NAN], [0, 1, NAN], [NAN, NAN, NAN]])
    out = drop_configurations(labels_cube(right), "accuracy", rng=1)
    assert out.keep.values.tolist() == [True, True, False]
    assert np.isnan(out.p_worse.values[2])


def test_dropped_configurations_leave_no_trace():
    """As many left as there are samples."""
    right = (np.random.default_rng(1).random((5, 7)) < 0.6).astype(float)
    right[3:, [0, 4]] = NAN
    cube = labels_cube(right)
    alive = [1, 2, 3, 5, 6]
    out = drop_configurations(cube, "accuracy", rng=1, threshold=0.5)
    rest = drop_configurations(cube.isel(configuration=alive), "accuracy", rng=1, threshold=0.5)
    np.testing.assert_array_equal(out.p_worse[alive], rest.p_worse)
    np.testing.assert_array_equal(out.keep[alive], rest.keep)
    assert out.best.item() == rest.best.item()


def test_repeat_gaps_count_as_dropped():
    right = np.ones((4, 2, 2))
    right[2:, 1, 1] = NAN  # the second configuration was not trained on the last fold of the second repeat
    out = drop_configurations(labels_cube(right), "accuracy", rng=1)
    assert out.keep.values.tolist() == [True, False]


def test_too_few_predictions_keep_everything():
    cube = labels_cube(np.array([[1, 0]] * 40))
    out = drop_configurations(cube, "accuracy", rng=1, min_predictions=41)
    assert out.keep.values.all()
    assert np.isnan(out.p_worse).all()
    assert np.isnan(out.best)
    assert not drop_configurations(cube, "accuracy", rng=1, min_predictions=40).keep.values[1]


def test_undefined_metric_keeps_everything():
    cube = cs.as_cube(np.random.default_rng(0).random((6, 3)), [1, 1, 1, 1, 1, 0], positive=1)
    part = cube.where(cube.label == 1)
    out = drop_configurations(part, "auc", rng=1)
    assert out.keep.values.all()
    assert np.isnan(out.p_worse).all()


def test_given_draws_that_cannot_be_used_are_left_out():
    cube = cs.as_cube([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [1, 0, 1], configurations=["a", "b"])
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 2, 1], [0, 3, 0]])
    draws = xr.DataArray(weights, dims=("draw", "sample"), coords={"sample": cube.sample.values})
    out = drop_configurations(cube, "auc", draws=draws, threshold=0.5)
    np.testing.assert_array_equal(out.p_worse, [0, 1])  # worse in both draws that have both classes
    values = cs.as_cube([[1.1, 1.0], [2.0, 2.9], [3.1, 3.0]], [1.0, 2.0, 3.0])
    out = drop_configurations(values, "r2", draws=draws, threshold=0.5)
    # of the draws with labels that vary (not the last) the second is worse in the first and third
    np.testing.assert_allclose(out.p_worse, [0, 2 / 3])


# --- the replay ---------------------------------------------------------------------------------------------------


def test_by_hand():
    """Three unequal folds. The poor configuration loses every draw once enough samples are seen."""
    right = np.ones((30, 3))
    right[:, 2] = 0
    right[0, 0] = 0  # the first is beaten by the second once
    cube = labels_cube(right, folds=np.repeat([0, 1, 2], [13, 9, 8]))
    out = bbcd(cube, "accuracy", min_predictions=14, times=200, rng=1)
    np.testing.assert_array_equal(out.dropped_after, [NAN, NAN, 2])
    assert out.p_worse.values[2] == 1.0
    assert out.p_worse.values[1] == 0.0
    assert 0.5 < out.p_worse.values[0] < 0.8  # worse when sample 0 is drawn: 1 - (21/22)^22 = .64
    assert int(out.models_trained) == 3 + 3 + 2
    assert float(out.speed_up) == pytest.approx(9 / 8)
    assert (out.selected.item(), out.full_selected.item(), float(out.cost)) == (1, 1, 0.0)
    assert (float(out.naive), float(out.full_naive)) == (1.0, 1.0)
    early = bbcd(cube, "accuracy", min_predictions=13, times=200, rng=1)
    assert early.dropped_after.values[2] == 1
    assert float(early.speed_up) == pytest.approx(9 / 7)


def test_min_predictions_counts_samples_not_predictions():
    right = np.ones((30, 2, 2))
    right[:, 1] = 0
    cube = labels_cube(right, folds=np.repeat([0, 1, 2], 10))
    assert np.isnan(bbcd(cube, "accuracy", min_predictions=31, times=100, rng=1).dropped_after).all()
    assert bbcd(cube, "accuracy", min_predictions=30, times=100, rng=1).dropped_after.values[1] == 3


def test_no_decision_after_the_last_fold():
    right = np.ones((60, 2))
    right[50:, 1] = 0  # equally good until the last fold
    right[:50, 0] = right[:50, 1]
    cube = labels_cube(right, folds=np.repeat(np.arange(6), 10))
    out = bbcd(cube, "accuracy", threshold=0.5, rng=1)
    assert np.isnan(out.dropped_after).all()
    assert float(out.speed_up) == 1.0


def test_what_dropping_cost():
    """A configuration that is unlucky in the first folds is dropped although it wins on all data."""
    right = np.ones((100, 2))
    right[:12, 0] = 0
    right[60:85, 1] = 0
    cube = labels_cube(right, folds=np.repeat(np.arange(10), 10))
    out = bbcd(cube, "accuracy", rng=1)
    np.testing.assert_array_equal(out.dropped_after, [5, NAN])
    assert (out.full_selected.item(), out.selected.item()) == (0, 1)
    assert float(out.full_naive) == pytest.approx(0.88)
    assert float(out.naive) == pytest.approx(0.75)
    assert float(out.cost) == pytest.approx(0.13)
    loss = bbcd(cube, "error_rate", rng=1)
    assert float(loss.cost) == pytest.approx(0.13)
    np.testing.assert_array_equal(loss.dropped_after, out.dropped_after)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "repeats", "times"),
    [
        ("accuracy", 1, 100),
        ("accuracy", 2, 200),
        ("mse", 1, 200),
        ("balanced_accuracy", 1, 200),
        ("auc", 1, 200),
        ("log_loss", 2, 200),
    ],
)
def test_replay_against_plain_loops(metric, repeats, times):
    rng = np.random.default_rng(3)
    n, c = 24, 5
    labels = np.arange(n) % 2
    noise = rng.normal(size=(n, c, repeats)) * np.linspace(0.3, 2.5, c)[:, None]
    score = 1 / (1 + np.exp(-(2 * labels[:, None, None] - 1 + noise)))
    folds = np.stack([rng.permutation(np.arange(n) % 4) for _ in range(repeats)], axis=1)
    if metric == "mse":
        cube = cs.as_cube(score[..., 0], labels + 0.5 * rng.random(n), folds=folds, kind="value")
    else:
        cube = cs.as_cube(score if repeats > 1 else score[..., 0], labels, folds=folds)
    strata = "label" if metric in ("auc", "balanced_accuracy") else None
    dropped, p_worse = brute_force(cube, metric, times, 7, 0.8, 6, strata)
    out = bbcd(cube, metric, threshold=0.8, min_predictions=6, times=times, rng=7, strata=strata)
    np.testing.assert_array_equal(out.dropped_after, dropped)
    np.testing.assert_allclose(out.p_worse, p_worse, atol=1e-12)
    assert np.isfinite(dropped).sum() in (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("metric", "repeats", "strata"), [("accuracy", 1, None), ("accuracy", 3, None), ("auc", 1, "auto")]
)
def test_a_loop_of_live_calls_drops_what_the_replay_drops(metric, repeats, strata):
    cube = simulate_cube(120, 30, repeats=repeats, folds=5, rng=4)
    if metric == "auc":
        rng = np.random.default_rng(1)
        cube = cs.as_cube(0.4 * cube.values + 0.6 * rng.random(cube.shape), cube.label.values, folds=cube.fold.values)
    out = bbcd(cube, metric, times=300, rng=2, strata=strata)
    fold = cube.fold.values.reshape(120, -1)
    live = xr.full_like(cube, NAN)
    keep = np.ones(30, bool)
    dropped = np.full(30, NAN)
    for number, (r, f) in enumerate(itertools.product(range(repeats), range(5)), 1):
        now = np.zeros((120, repeats), bool)
        now[fold[:, r] == f, r] = True
        mask = now[:, None, :] & keep[:, None]
        live = live.copy(data=np.where(mask.reshape(cube.shape), cube.values, live.values))
        if number < 5 * repeats:
            decision = drop_configurations(live, metric, min_predictions=50, times=300, rng=2, strata=strata)
            dropped[keep & ~decision.keep.values] = number
            keep = decision.keep.values
    np.testing.assert_array_equal(out.dropped_after, dropped)
    assert 0 < np.isfinite(dropped).sum() < 30
    # the cube that such a loop leaves behind gives the same answer again
    again = bbcd(live, metric, times=300, rng=2, strata=strata)
    np.testing.assert_array_equal(again.dropped_after, dropped)
    for name in ("estimate", "conf_low", "conf_high", "selected", "models_trained"):
        assert again[name].item() == out[name].item()
    assert float(again.speed_up) == 1.0


def test_threshold_one_is_bbc():
    cube = simulate_cube(60, 20, rng=5)
    a, b = (
        bbcd(cube, "accuracy", threshold=1, times=200, rng=3, keep_draws=True),
        bbc(cube, "accuracy", times=200, rng=3, keep_draws=True),
    )
    for name in b.data_vars:
        np.testing.assert_array_equal(a[name], b[name])
    assert float(a.speed_up) == 1.0
    assert np.isnan(a.dropped_after).all()


def test_final_estimate_is_bbc_over_the_survivors():
    cube = simulate_cube(200, 40, rng=6)
    draws = cs.bootstrap(cube, 150, rng=9)
    out = bbcd(cube, "accuracy", draws=draws, rng=3)
    alive = np.isnan(out.dropped_after.values)
    assert 0 < alive.sum() < 40
    expected = bbc(cube.isel(configuration=alive), "accuracy", draws=draws)
    for name in ("estimate", "conf_low", "conf_high", "naive", "optimism", "selected"):
        assert out[name].item() == expected[name].item()
    np.testing.assert_array_equal(out.win_rate.values[alive], expected.win_rate)
    assert (out.win_rate.values[~alive] == 0).all()
    assert (out.p_worse.values[~alive] > 0.99).all()
    assert (out.p_worse.values[alive] <= 0.99).all()
    other = bbcd(cube, "accuracy", draws=draws, rng=4)  # `draws` serve the estimate, `rng` the dropping
    assert not np.array_equal(other.p_worse, out.p_worse)


def test_select_names_the_current_best():
    """With a strategy that prefers the simple one, the accurate one is not what losers are compared with."""
    right = np.ones((80, 2))
    right[::8, 0] = 0
    cube = labels_cube(right, folds=np.arange(80) % 8).assign_coords(complexity=("configuration", [1, 2]))
    plain = bbcd(cube, "accuracy", threshold=0.9, rng=1)
    np.testing.assert_array_equal(np.isfinite(plain.dropped_after), [True, False])
    within = bbcd(cube, "accuracy", threshold=0.9, rng=1, select=cs.select_within(0.2))
    assert np.isnan(within.dropped_after).all()
    assert within.selected.item() == 0
    one_se = bbcd(cube, "accuracy", threshold=0.9, rng=1, select=cs.select_one_se)
    np.testing.assert_array_equal(np.isfinite(one_se.dropped_after), [True, False])


def test_the_standard_error_of_the_best_is_that_over_draws():
    """The simple configuration is as good as the best within s = sqrt(sum of squares / (draws - 1)), by hand."""

    def best(right, draws):
        cube = labels_cube(right).assign_coords(complexity=("configuration", [1, 2]))
        weights = xr.DataArray(draws, dims=("draw", "sample"), coords={"sample": cube.sample.values})
        return drop_configurations(cube, "accuracy", draws=weights, select=cs.select_one_se).best.item()

    # 1/2 against 3/4, which is 1/4, 3/4, 3/4 over draws: s is .289 (.236 with 3 instead of 2)
    assert best([[1, 1], [1, 1], [0, 1], [0, 0]], [[1, 0, 0, 3], [1, 1, 1, 1], [2, 1, 0, 1]]) == 0
    # 1/4 against 3/4, which is 3/4, 0, 1/4 over draws: s is .382 (.540 with 1 instead of 2)
    assert best([[1, 1], [0, 1], [0, 1], [0, 0]], [[1, 1, 1, 1], [0, 0, 0, 4], [0, 1, 0, 3]]) == 1


@pytest.mark.filterwarnings("ignore:.*drawn again:cvstats._check.CvstatsWarning")
def test_groups_travel_together():
    right = np.ones((18, 2))
    right[:3, 1] = 0
    cube = labels_cube(right, folds=np.repeat([0, 1, 2], 6), groups=np.arange(18) // 3)
    out = bbcd(cube, "accuracy", threshold=0.9, min_predictions=1, times=4000, rng=1)
    # four groups of three before the last fold: worse when the bad group was drawn
    assert out.p_worse.values[1] == pytest.approx(1 - (3 / 4) ** 4, abs=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* groups are split across folds")
def test_automatic_strata_are_the_classes_unless_groups_mix_them():
    rng = np.random.default_rng(2)
    y = np.arange(60) % 2
    p = np.clip(0.5 + 0.3 * (y[:, None] - 0.5) + 0.3 * rng.normal(size=(60, 8)), 0, 1)
    cube = cs.as_cube(p, y, folds=np.arange(60) // 10)
    options = {"threshold": 0.8, "min_predictions": 10, "times": 200, "rng": 1}
    auto, label, none = (bbcd(cube, "auc", strata=strata, **options) for strata in ("auto", "label", None))
    np.testing.assert_array_equal(auto.p_worse, label.p_worse)
    assert not np.array_equal(auto.p_worse, none.p_worse)
    plain = [bbcd(cube, "accuracy", strata=strata, **options).p_worse for strata in ("auto", None)]
    np.testing.assert_array_equal(*plain)  # accuracy does not need every class
    apart = cs.as_cube(p, y, folds=np.arange(60) // 10, groups=np.arange(60) // 4 * 2 + y)
    np.testing.assert_array_equal(*(bbcd(apart, "auc", strata=s, **options).p_worse for s in ("auto", "label")))
    mixed = cs.as_cube(p, y, folds=np.arange(60) // 10, groups=np.arange(60) // 4)
    np.testing.assert_array_equal(*(bbcd(mixed, "auc", strata=s, **options).p_worse for s in ("auto", None)))
    with pytest.raises(cs.InputError, match="strata"):
        drop_configurations(mixed, "auc", strata="label")
    within = bbcd(cube, "accuracy", strata="label", **options).p_worse
    assert not np.array_equal(within, plain[0])  # asked for, not needed


def test_class_probabilities_with_gaps():
    """Three classes; the worst was not trained after the first fold, one class of one prediction is missing."""
    rng = np.random.default_rng(4)
    y = np.arange(30) % 3
    sure = np.eye(3)[y]
    noise = rng.dirichlet(np.ones(3), size=(30, 4))
    p = 0.5 * sure[:, None] + 0.5 * noise
    p[:, 0] = 0.6 * sure + 0.4 * noise[:, 3]
    p[:, 1] = noise[:, 1]
    p[10:, 2] = NAN
    p[25, 3, 0] = NAN
    cube = cs.as_cube(p, y, classes=[0, 1, 2], folds=np.arange(30) // 10)
    out = bbcd(cube, "brier", threshold=1, min_predictions=0, times=200, rng=1)
    np.testing.assert_array_equal(out.dropped_after, [NAN, NAN, 1, 2])
    assert float(out.estimate) == float(bbc(cube.isel(configuration=[0, 1]), "brier", times=200, rng=1).estimate)
    live = drop_configurations(cube, "brier", threshold=0.9, times=200, rng=1)
    assert live.keep.values.tolist() == [True, False, False, False]


def test_incomplete_cross_validation():
    right = np.ones((60, 3))
    right[:, 1] = 0
    right[40:] = NAN  # folds 4 and 5 were never run
    right[20:, 2] = NAN  # the third configuration failed after the second fold
    cube = labels_cube(right, folds=np.repeat(np.arange(6), 10))
    out = bbcd(cube, "accuracy", min_predictions=30, rng=1)
    np.testing.assert_array_equal(out.dropped_after, [NAN, 3, 2])
    assert int(out.models_trained) == 4 + 3 + 2
    assert float(out.speed_up) == pytest.approx(10 / 9)


def test_batch_dims_and_single_configuration():
    cube = xr.concat(
        [simulate_cube(60, 8, rng=s).drop_vars("truth") for s in (1, 2)],
        dim="dataset",
        coords="different",
        compat="equals",
        join="override",
    )
    cube = cube.assign_coords(dataset=["a", "b"])
    out = bbcd(cube, "accuracy", times=100, rng=1)
    assert out.estimate.dims == ("dataset",)
    assert out.dropped_after.sizes == {"dataset": 2, "configuration": 8}
    live = drop_configurations(cube, "accuracy", times=100, rng=1)
    assert live.keep.sizes == {"dataset": 2, "configuration": 8}
    alone = bbcd(simulate_cube(60, 1, rng=1), "accuracy", times=100, rng=1)
    assert float(alone.speed_up) == 1.0
    assert float(alone.optimism) == 0.0


def test_permuting_configurations_permutes_the_result():
    cube = simulate_cube(150, 12, rng=8)
    order = np.random.default_rng(0).permutation(12)
    a = bbcd(cube, "accuracy", times=200, rng=1)
    b = bbcd(cube.isel(configuration=order), "accuracy", times=200, rng=1)
    np.testing.assert_array_equal(a.dropped_after.values[order], b.dropped_after)
    np.testing.assert_array_equal(a.p_worse.values[order], b.p_worse)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_same_numbers_from_dask(metric):
    cube = simulate_cube(100, 20, repeats=2, folds=3, rng=9)
    expected = bbcd(cube, metric, times=200, rng=1)
    for size in (3, 20):
        out = bbcd(cube.chunk(configuration=size), metric, times=200, rng=1)
        xr.testing.assert_identical(out.drop_attrs(), expected.drop_attrs())
    live = drop_configurations(cube.chunk(configuration=7), metric, times=200, rng=1)
    xr.testing.assert_identical(live.drop_attrs(), drop_configurations(cube, metric, times=200, rng=1).drop_attrs())


def test_bad_input():
    cube = simulate_cube(60, 5, rng=1)
    for threshold in (0, 1.2, "high", True, NAN):
        with pytest.raises(cs.InputError, match=r"`threshold` must be a probability in \(0, 1\]"):
            bbcd(cube, "accuracy", threshold=threshold)
        with pytest.raises(cs.InputError, match=r"`threshold` must be a probability in \(0, 1\]"):
            drop_configurations(cube, "accuracy", threshold=threshold)
    with pytest.raises(cs.InputError, match="`min_predictions` must be a whole number"):
        bbcd(cube, "accuracy", min_predictions=-1)
    with pytest.raises(cs.InputError, match="`min_predictions` must be a whole number"):
        drop_configurations(cube, "accuracy", min_predictions=-1)
    with pytest.raises(cs.InputError, match="bbcd needs the coordinate 'fold'"):
        bbcd(cube.drop_vars("fold"), "accuracy")
    with pytest.raises(cs.InputError, match="`times`=30 is too small"):
        bbcd(cube, "accuracy", times=30)
    gaps = cube.where(xr.DataArray(~np.eye(60, 5, dtype=bool), dims=("sample", "configuration")))
    with pytest.raises(cs.InputError, match="no configuration predicted"):
        drop_configurations(gaps, "accuracy")
    with pytest.raises(cs.InputError, match="no configuration predicted"):
        bbcd(gaps, "accuracy")
    with pytest.raises(cs.InputError, match="holds no predictions"):
        drop_configurations(cube * NAN, "accuracy")
    with pytest.raises(cs.InputError, match="`draws` does not match the cube along 'sample': only in the cube"):
        drop_configurations(cube, "accuracy", draws=cs.bootstrap(cube.isel(sample=slice(9)), 10))
    partners = cs.as_cube(
        xr.DataArray(np.zeros((4, 1, 2)), dims=("sample", "configuration", "partner")), [0, 0, 1, 1], kind="label"
    )
    with pytest.raises(cs.InputError, match="early dropping is defined for ordinary folds"):
        drop_configurations(partners, "balanced_accuracy")


def test_inputs_are_not_changed():
    cube = simulate_cube(60, 5, rng=1)
    before = cube.copy(deep=True)
    bbcd(cube, "accuracy", times=100, rng=1)
    xr.testing.assert_identical(cube, before)


# --- calibration --------------------------------------------------------------------------------------------------


def nested_estimate(cube):
    """Return NCV of fixed models, whose inner predictions repeat the outer ones."""
    right = (cube.values == cube.label.values[:, None]).astype(float)
    fold = cube.fold.values
    by_fold = np.stack([right[fold == f].mean(axis=0) for f in np.unique(fold)])
    others = by_fold.sum(axis=0) - by_fold
    return by_fold[np.arange(len(by_fold)), np.argmax(others.round(9), axis=1)].mean()


@pytest.mark.slow
def test_published_simulation():
    """Beta(9, 6), ten folds, no minimum of predictions: over the grid NCV exceeds BBCD by .004 on average."""
    check, inner = simulate_cube(40, 30, inner=True, rng=1)
    assert nested_estimate(check) == pytest.approx(float(ncv(check, "accuracy", inner=inner).estimate), abs=1e-12)
    gaps, errors = [], []
    for n, repetitions in ((20, 80), (40, 60), (60, 50), (80, 50), (100, 50), (500, 16), (1000, 8)):
        bias = []
        for seed in range(repetitions):
            cube = simulate_cube(n, 200, rng=1000 * n + seed)
            truth = cube.truth.values
            out = bbcd(cube, "accuracy", min_predictions=0, times=100, rng=seed)
            nested = nested_estimate(cube) - truth[int(out.full_selected)]
            bias.append(nested - (float(out.estimate) - truth[int(out.selected)]))
        gaps.append(np.mean(bias))
        errors.append(np.std(bias, ddof=1) / np.sqrt(repetitions))
    within = 4 * np.sqrt(np.sum(np.square(errors))) / len(errors)
    assert within < 0.02
    assert np.mean(gaps) == pytest.approx(0.004, abs=within + 0.004)  # other numbers of configurations: .004 more


@pytest.mark.slow
def test_speed_up_and_cost_at_500_samples():
    """Figures 3 and 4: with 500 samples training is two to ten times as fast and nothing is lost."""
    speed, cost = [], []
    for seed in range(20):
        cube = simulate_cube(500, 200, rng=seed)
        out = bbcd(cube, "accuracy", times=500, rng=seed)
        speed.append(float(out.speed_up))
        cost.append(float(out.cost))
    assert 2 < np.mean(speed) < 10
    assert 0 <= np.mean(cost) < 0.003
