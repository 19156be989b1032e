"""The kernel: what wins and how it is judged, against plain enumeration; ties, gaps, strategies, batches, refusals."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats import select as _ties
from cvstats.kernels import walk as _walk
from cvstats.kernels.problem import LabelCheck
from cvstats.resample import ATTEMPTS, Bootstrap
from shared import refusal


def binary(n=24, m=6, repeats=None, seed=0, digits=1, **arguments):
    g = np.random.default_rng(seed)
    y = np.arange(n) % 2
    shape = (n, m) if repeats is None else (n, m, repeats)
    p = np.clip(np.round(0.3 * y.reshape(-1, *[1] * (len(shape) - 1)) + 0.7 * g.random(shape), digits), 0, 1)
    return cs.as_cube(p, y, kind="probability", configurations=[f"c{j}" for j in range(m)], **arguments)


def weighted(cube, weights):
    """Return the cube on the samples that have weight, with the weights as case weights."""
    keep = np.flatnonzero(weights)
    own = cube["weight"].values[keep] if "weight" in cube.coords else 1.0
    return cs.as_cube(cube.isel(sample=keep), weights=weights[keep] * own)


refused = refusal(cs.select_and_judge)


class TestEnumeration:
    @pytest.mark.parametrize("weights", [None, np.arange(24) % 3 + 1])
    @pytest.mark.parametrize(
        "metric", ["accuracy", "error_rate", "auc", "brier", "log_loss", "mcc", "average_precision"]
    )
    def test_one_draw_at_a_time(self, metric, weights):
        cube = binary(repeats=2, weights=weights, digits=12)
        draws = cs.bootstrap(cube, 12, rng=3, strata="label")
        out = cs.select_and_judge(cube, metric, choose=draws, ties="first", rng=0)
        direction = getattr(cs, metric).direction
        for b in range(12):
            w = draws.values[b]
            inside, outside = weighted(cube, w), weighted(cube, (w == 0).astype(float))
            winner = int(cs.select_best(cs.score(inside, metric).values, direction=direction))
            assert out["selected"].values[b] == f"c{winner}"
            expected = cs.score(outside, metric).values[winner]
            np.testing.assert_allclose(out["value"].values[b], expected, rtol=1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize("metric", ["accuracy", "auc"])
    def test_summaries(self, metric):
        cube = binary()
        draws = cs.bootstrap(cube, 40, rng=3, strata="label")
        out = cs.select_and_judge(cube, metric, choose=draws, ties="first", rng=0)
        assert out["usable"].all()
        assert out["n_draws"] == 40
        assert out["n_redrawn"] == 0
        names = cube["configuration"].values
        rate = [(out["selected"].values == name).mean() for name in names]
        np.testing.assert_allclose(out["win_rate"], rate)
        scores = np.array([cs.score(weighted(cube, w), metric).values for w in draws.values])
        np.testing.assert_allclose(out["score_variance"], scores.var(axis=0, ddof=1), rtol=1e-9)
        assert out["metric"].item() == metric

    def test_choose_on_all_judge_on_all_is_the_naive_score(self):
        cube = binary()
        ones = xr.DataArray(np.ones((1, 24), int), dims=("draw", "sample"))
        out = cs.select_and_judge(cube, "auc", choose=ones, judge=ones, ties="first", rng=0)
        np.testing.assert_allclose(out["value"], cs.auc(cube).max())
        assert out["selected"].item() == cube["configuration"].values[cs.auc(cube).values.argmax()]

    def test_other_predictions_judge(self):
        cube = binary(repeats=2)
        first, second = cube.isel(repeat=[0]), cube.isel(repeat=[1])
        ones = xr.DataArray(np.ones((1, 24), int), dims=("draw", "sample"))
        out = cs.select_and_judge(first, "accuracy", choose=ones, judge=ones, judge_cube=second, ties="first", rng=0)
        winner = cs.accuracy(first).values.argmax()
        np.testing.assert_allclose(out["value"], cs.accuracy(second)[winner])
        turned = second.isel(sample=slice(None, None, -1), configuration=slice(None, None, -1))
        again = cs.select_and_judge(first, "accuracy", choose=ones, judge=ones, judge_cube=turned, ties="first", rng=0)
        xr.testing.assert_identical(out, again)

    def test_draws_are_matched_by_sample(self):
        cube = binary(samples=[f"s{i}" for i in range(24)])
        draws = cs.bootstrap(cube, 8, rng=1)
        order = np.random.default_rng(0).permutation(24)
        options = {"ties": "first", "rng": 0}
        one = cs.select_and_judge(cube, "accuracy", choose=draws, **options)
        other = cs.select_and_judge(cube, "accuracy", choose=draws.isel(sample=order), **options)
        xr.testing.assert_identical(one, other)


class TestTies:
    def same(self, m=5, n=20):
        y = np.arange(n) % 2
        p = np.tile((np.arange(n) % 4 < 2).astype(int)[:, None], (1, m))
        return cs.as_cube(p, y, configurations=[f"c{j}" for j in range(m)])

    def test_first(self):
        cube = self.same()
        out = cs.select_and_judge(cube, "accuracy", choose=cs.bootstrap(cube, 50, rng=1), ties="first", rng=0)
        assert (out["selected"] == "c0").all()

    def test_random_is_even_and_reproducible(self):
        cube = self.same()
        draws = cs.bootstrap(cube, 2000, rng=1)
        out = cs.select_and_judge(cube, "accuracy", choose=draws, rng=7)
        assert abs(out["win_rate"] - 0.2).max() < 4 * np.sqrt(0.2 * 0.8 / 2000)
        xr.testing.assert_identical(out, cs.select_and_judge(cube, "accuracy", choose=draws, rng=7))
        assert not out["selected"].equals(cs.select_and_judge(cube, "accuracy", choose=draws, rng=8)["selected"])

    def test_random_depends_on_the_label_not_the_place(self):
        cube = self.same()
        draws = cs.bootstrap(cube, 100, rng=1)
        turned = cube.isel(configuration=[3, 0, 4, 2, 1])
        one, other = (cs.select_and_judge(c, "accuracy", choose=draws, rng=7) for c in (cube, turned))
        np.testing.assert_array_equal(one["selected"], other["selected"])
        np.testing.assert_array_equal(one["value"], other["value"])

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "brier"])
    @pytest.mark.parametrize("ties", ["first", "random"])
    def test_batch_changes_nothing(self, metric, ties):
        cube = binary(repeats=2)
        draws = cs.bootstrap(cube, 100, rng=1, strata="label")
        whole = cs.select_and_judge(cube, metric, choose=draws, ties=ties, rng=7)
        for batch in (1, 32, 64, 1000):
            xr.testing.assert_identical(
                whole, cs.select_and_judge(cube, metric, choose=draws, ties=ties, rng=7, batch=batch)
            )


class TestGaps:
    def test_only_complete_configurations_may_win(self):
        cube = binary().copy()
        best = int(cs.accuracy(cube).values.argmax())
        cube[3, best] = np.nan
        draws = cs.bootstrap(cube, 60, rng=1)
        out = cs.select_and_judge(cube, "accuracy", choose=draws, rng=7)
        assert out["win_rate"][best] == 0
        assert np.isnan(out["score_variance"][best])
        assert not (out["selected"] == f"c{best}").any()

    def test_samples_that_nobody_predicted_do_not_count(self):
        cube = binary().copy()
        cube[[2, 9]] = np.nan
        keep = np.setdiff1d(np.arange(24), [2, 9])
        draws = cs.bootstrap(cube, 30, rng=1)
        one = cs.select_and_judge(cube, "accuracy", choose=draws, ties="first", rng=7)
        other = cs.select_and_judge(
            cube.isel(sample=keep), "accuracy", choose=draws.isel(sample=keep), ties="first", rng=7
        )
        np.testing.assert_array_equal(one["value"], other["value"])
        np.testing.assert_array_equal(one["selected"], other["selected"])

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ["numpy", "numba"])
    @pytest.mark.parametrize("cases", [None, "whole", "real"])
    @pytest.mark.parametrize("metric", ["auc_ovr", "auc_ovr_weighted", "average_precision"])
    def test_rank_metrics_of_incomplete_repeats_by_plain_loops(self, monkeypatch, metric, cases, engine):
        """Each repeat lacks other samples, the same for all configurations; the second has hardly begun."""
        if engine == "numba":
            pytest.importorskip("numba")
        monkeypatch.setattr(_walk, "FORCE", engine)
        g = np.random.default_rng(5)
        n, m, r, k = 18, 4, 3, 2 if metric == "average_precision" else 3
        y = np.arange(n) % k
        p = g.dirichlet(np.ones(k), size=(n, m, r)) + 0.3 * np.eye(k)[y][:, None, None]
        p = np.round(p / p.sum(axis=-1, keepdims=True), 2)  # ties
        p[..., -1] = 1 - p[..., :-1].sum(axis=-1)
        p.swapaxes(1, 2)[g.random((n, r)) < 0.2] = np.nan
        if k == 2:
            p[:, :, 1] = np.where((np.arange(n) == 1)[:, None, None], p[:, :, 1], np.nan)  # one, of the positive class
            p[1, :, 1] = 0.5
        case = {None: np.ones(n), "whole": 1.0 + np.arange(n) % 3, "real": 0.5 + g.random(n)}[cases]
        given = p if k == 3 else p[..., 1]
        cube = cs.as_cube(
            given, y, kind="probability", weights=None if cases is None else case, classes=range(k) if k == 3 else None
        )
        draws, others = (cs.bootstrap(cube, 30, rng=seed, strata="label") for seed in (3, 4))

        def area(s, positive, w):
            pairs = (s[:, None] > s) + 0.5 * (s[:, None] == s)
            both = np.outer(w * positive, w * ~positive)
            return np.sum(pairs * both) / both.sum() if both.sum() else np.nan

        def precision(s, positive, w):
            hits = [np.sum((w * positive)[s >= t]) / np.sum(w[s >= t]) for t in s]
            return np.sum(w * positive * hits) / np.sum(w * positive) if np.sum(w * positive) else np.nan

        def value(j, w):
            each = []
            for i in range(r):
                there = (w > 0) & ~np.isnan(p[:, j, i]).any(axis=-1)
                if np.isnan(p[:, j, i]).any(axis=-1).all():
                    continue
                own = w[there] * case[there]
                if k == 2:
                    each.append(precision(p[there, j, i, 1], y[there] == 1, own))
                    continue
                areas = [area(p[there, j, i, c], y[there] == c, own) for c in range(k)]
                share = [np.sum(own[y[there] == c]) for c in range(k)] if metric.endswith("weighted") else np.ones(k)
                each.append(np.sum(np.array(share) * areas) / np.sum(share))
            return np.mean(each)

        with np.errstate(invalid="ignore", divide="ignore"):
            scores = np.array([[value(j, w) for j in range(m)] for w in draws.values.astype(float)])
            usable = ~np.isnan(scores).any(axis=1)
            judged = [value(j, w) for j, w in zip(scores.argmax(axis=1), others.values.astype(float), strict=True)]
        out = cs.select_and_judge(cube, metric, choose=draws, judge=others, ties="first", rng=0)
        sure = usable & ~np.isnan(judged)
        assert sure.sum() > 5
        np.testing.assert_allclose(out["value"].values[sure], np.array(judged)[sure], rtol=1e-12)

    def test_nobody_is_complete(self):
        cube = binary(m=2).copy()
        cube[0, 0] = np.nan
        cube[1, 1] = np.nan
        text = "so none may be selected; the most complete has 23 of 24"
        refused(text, cube, "accuracy", choose=cs.bootstrap(cube, 5, rng=1))
        refused("every value is NaN", cube * np.nan, "accuracy", choose=cs.bootstrap(cube, 5, rng=1))

    def test_unusable_draws_are_counted_not_dropped(self):
        cube = binary(n=6)
        label = cube["label"].values
        weights = np.stack([np.ones(6, int), label, 1 - label, np.array([2, 2, 1, 1, 0, 0])])
        draws = xr.DataArray(weights, dims=("draw", "sample"))
        out = cs.select_and_judge(cube, "auc", choose=draws, ties="first", rng=0)
        assert out["usable"].values.tolist() == [
            False,
            False,
            False,
            True,
        ]  # nothing left to judge, one class, one class
        assert np.isnan(out["value"][:3]).all()
        assert out["n_draws"] == 1


class TestStrategies:
    def test_one_se_and_within_use_complexity(self):
        cube = binary(n=60).assign_coords(complexity=("configuration", [6, 5, 4, 3, 2, 1]))
        draws = cs.bootstrap(cube, 40, rng=1)
        plain = cs.select_and_judge(cube, "accuracy", choose=draws, ties="first", rng=0)
        for select in (cs.select_one_se, cs.select_within(0.1)):
            out = cs.select_and_judge(cube, "accuracy", choose=draws, select=select, ties="first", rng=0)
            size = cube["complexity"].values
            place = {name: j for j, name in enumerate(cube["configuration"].values)}
            chosen = [size[place[name]] for name in out["selected"].values]
            best = [size[place[name]] for name in plain["selected"].values]
            assert (np.array(chosen) <= np.array(best)).all()
            assert np.mean(chosen) < np.mean(best)

    def test_one_se_by_hand(self):
        cube = binary(n=60).assign_coords(complexity=("configuration", [6, 5, 4, 3, 2, 1]))
        draws = cs.bootstrap(cube, 40, rng=1)
        scores = np.array([cs.score(weighted(cube, w), "accuracy").values for w in draws.values])
        index = cs.select_one_se(
            scores, direction="maximize", std_error=scores.std(axis=0, ddof=1), complexity=cube["complexity"].values
        )
        out = cs.select_and_judge(cube, "accuracy", choose=draws, select=cs.select_one_se, ties="first", rng=0)
        np.testing.assert_array_equal(out["selected"], cube["configuration"].values[index])

    def test_own_strategy(self):
        def last(scores, *, direction, std_error=None, complexity=None):
            return np.full(scores.shape[:-1], scores.shape[-1] - 1)

        cube = binary()
        out = cs.select_and_judge(cube, "auc", choose=cs.bootstrap(cube, 10, rng=1), select=last, rng=0)
        assert (out["selected"] == "c5").all()

    def test_bad_strategy(self):
        cube = binary()
        draws = cs.bootstrap(cube, 10, rng=1)
        text = "`select` must return one index per row of scores, along the last axis."
        refused(text, cube, "auc", choose=draws, select=lambda scores, **_: 0.5 * np.ones(len(scores)), rng=0)
        refused(text, cube, "auc", choose=draws, select=lambda scores, **_: np.zeros(3, int), rng=0)


class TestShapes:
    def test_one_configuration_one_repeat(self):
        cube = binary(m=1)
        out = cs.select_and_judge(cube, "auc", choose=cs.bootstrap(cube, 10, rng=1, strata="label"), rng=0)
        assert (out["selected"] == "c0").all()
        assert out["win_rate"].item() == 1

    def test_batch_dims(self):
        cube = binary(repeats=3).rename(repeat="dataset")
        draws = cs.bootstrap(cube, 20, rng=1, strata="label")
        out = cs.select_and_judge(cube, "auc", choose=draws, ties="first", rng=0)
        assert out["value"].sizes["dataset"] == 3
        for i in range(3):
            alone = cs.select_and_judge(cube.isel(dataset=i), "auc", choose=draws, ties="first", rng=0)
            np.testing.assert_array_equal(out["value"].isel(dataset=i), alone["value"])

    def test_real_weights(self):
        cube = binary(digits=12)
        weights = xr.DataArray(np.random.default_rng(0).exponential(size=(6, 24)), dims=("draw", "sample"))
        for metric in ("accuracy", "brier", "auc", "mcc"):
            out = cs.select_and_judge(cube, metric, choose=weights, judge=weights, ties="first", rng=0)
            best = [cs.score(weighted(cube, w), metric) for w in weights.values]
            expected = [b.max() if getattr(cs, metric).direction == "maximize" else b.min() for b in best]
            np.testing.assert_allclose(out["value"], expected, rtol=1e-12)

    @pytest.mark.slow
    def test_dask(self):
        pytest.importorskip("dask")
        cube = binary(repeats=2)
        draws = cs.bootstrap(cube, 40, rng=1, strata="label")
        for metric in ("accuracy", "auc", "brier"):
            whole = cs.select_and_judge(cube, metric, choose=draws, rng=7)
            for size in (1, 4):
                xr.testing.assert_identical(
                    cs.select_and_judge(cube.chunk(configuration=size), metric, choose=draws, rng=7), whole
                )

    def test_nothing_is_changed(self):
        cube = binary()
        draws = cs.bootstrap(cube, 10, rng=1)
        before, drawn = cube.copy(deep=True), draws.copy(deep=True)
        cs.select_and_judge(cube, "accuracy", choose=draws, rng=0)
        xr.testing.assert_identical(cube, before)
        xr.testing.assert_identical(draws, drawn)

    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_a_configuration_without_a_score_cannot_win(self, direction):
        def mean_unless_constant(y, p, w):
            return np.sum(w * p) / np.sum(w) if np.ptp(p[w > 0]) else np.nan

        metric = cs.as_metric(mean_unless_constant, name="mean", direction=direction)
        cube = cs.as_cube(np.column_stack([np.ones(12), np.arange(12) / 12, np.arange(12) / 13]), np.arange(12) % 2)
        draws = cs.bootstrap(cube, 30, rng=1)
        out = cs.select_and_judge(cube, metric, choose=draws, judge=draws, rng=0)
        best = 1 if direction == "maximize" else 2
        assert out.selected.values.tolist() == [best] * 30
        np.testing.assert_allclose(out.value, draws.values @ cube.values[:, best] / 12, rtol=1e-12)
        alone = cs.select_and_judge(cube.isel(configuration=[0]), metric, choose=draws, rng=0)
        assert int(alone.n_draws) == 0

    def test_more_classes_than_a_byte_holds(self):
        label = np.arange(300)
        guess = np.stack([label, (label + 256) % 300, label], axis=1)
        guess[::3, 0] = (guess[::3, 0] + 1) % 300
        cube = cs.as_cube(guess, label)
        draws = cs.bootstrap(cube, 20, rng=1)
        out = cs.select_and_judge(cube, "accuracy", choose=draws, judge=draws, rng=0)
        np.testing.assert_allclose(out.score, [2 / 3, 0, 1])
        assert out.selected.values.tolist() == [2] * 20
        assert (out.value == 1).all()

    def test_custom_metric(self):
        @cs.as_metric(direction="maximize")
        def share(label, prediction, weight):
            return np.average((prediction > 0.5) == label, weights=weight)

        cube = binary(m=3)
        draws = cs.bootstrap(cube, 12, rng=1)
        one, other = (cs.select_and_judge(cube, m, choose=draws, ties="first", rng=0) for m in (share, "accuracy"))
        np.testing.assert_array_equal(one["selected"], other["selected"])
        np.testing.assert_allclose(one["value"], other["value"])


class TestRefusals:
    def test_texts(self):
        cube = binary(samples=[f"s{i}" for i in range(24)])
        draws = cs.bootstrap(cube, 5, rng=1)
        refused("`ties` must be one of 'random', 'first'; got 'last'.", cube, "auc", choose=draws, ties="last")
        refused("`batch` must be a whole number of at least 1; got 0.", cube, "auc", choose=draws, batch=0)
        refused(
            "must be a DataArray over 'draw' and 'sample', as bootstrap() returns.", cube, "auc", choose=draws.values
        )
        refused("must hold finite numbers that are not negative.", cube, "auc", choose=-draws)
        refused("must hold finite numbers that are not negative.", cube, "auc", choose=draws * np.nan)
        other = draws.assign_coords(sample=["x", *draws["sample"].values[1:]])
        refused(
            "`draws` does not match the cube along 'sample': only in the cube: 's0'; only in", cube, "auc", choose=other
        )
        bare = draws.drop_vars("sample").isel(sample=slice(3))
        refused("`draws` has 3 values along 'sample' where the cube has 24; ", cube, "auc", choose=bare)
        renamed = cube.assign_coords(configuration=["z", *cube["configuration"].values[1:]])
        refused(
            "`judge_cube` does not match the cube along 'configuration': only in the cube: 'c0'; only in `judge_cube`",
            cube,
            "auc",
            choose=draws,
            judge_cube=renamed,
        )
        refused("`metric`='acu' does not exist (did you mean 'auc'?)", cube, "acu", choose=draws)
        refused("`cube` must be an xarray.DataArray made by as_cube(); got ndarray.", cube.values, "auc", choose=draws)


def mixed(x):
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014) in whole numbers."""
    full = 2**64 - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & full
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & full
    return x ^ (x >> 31)


class TestTieKeys:
    """Ties are part of the numbers that a seed promises, so the keys must never change."""

    def test_splitmix_of_the_known_sequence(self):
        # the first outputs of splitmix64 with seed 0: its state grows by the golden ratio
        known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
        state = [(0x9E3779B97F4A7C15 * (i + 1)) % 2**64 for i in range(3)]
        assert [mixed(x) for x in state] == known
        assert _ties._mix(np.array(state, np.uint64)).tolist() == known

    @pytest.mark.parametrize("seed", [0, 1, 2**40 + 3, 2**64 - 1, 2**70 + 5])
    def test_keys_in_whole_numbers(self, seed):
        names = np.array(["a", "b", "Fe_2 / 0.1"])
        hashes = _ties.label_keys(names)
        digests = [hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names]
        assert hashes.tolist() == [int.from_bytes(d, "little") for d in digests]
        draws = np.array([0, 1, 999])
        found = _ties.tie_keys(hashes, draws, seed)
        stream = [mixed((d + 0x9E3779B97F4A7C15 * ((seed + 1) % 2**64)) % 2**64) for d in draws.tolist()]
        assert found.tolist() == [mixed(h ^ s) for h, s in zip(hashes.tolist(), stream, strict=True)]

    def test_the_smallest_key_among_the_tied_wins(self):
        rng = np.random.default_rng(0)
        criterion = rng.integers(0, 3, (50, 6)).astype(float)
        hashes, draws = _ties.label_keys(np.arange(6)), np.arange(100, 150)
        found, top, key = _ties.winners(criterion, draws, hashes, 7)
        np.testing.assert_array_equal(top, criterion.max(axis=1))
        for row in range(50):
            tied = np.flatnonzero(criterion[row] == top[row])
            keys = [_ties.tie_keys(hashes[[j]], draws[[row]], 7)[0] for j in tied]
            assert (found[row], key[row]) == (tied[int(np.argmin(keys))], min(keys))
        single, _, _ = _ties.winners(np.array([[1.0, 2.0, 0.0]]), np.array([0]), hashes[:3], 7)
        np.testing.assert_array_equal(single, [1])


def holds(requires, y, event, present, k):
    """Whether the samples in `present` hold what a metric needs, by its definition."""
    some = [i for i in range(len(y)) if present[i]]
    seen = {y[i] for i in some}
    if requires == "classes":
        return seen >= set(range(k))
    if requires == "positive":
        return seen >= ({1} if k == 2 else set(range(k)))
    if requires == "negative":
        return 0 in seen
    if requires == "spread":
        return len(seen) > 1
    if requires == "pairs":  # an event is comparable with whoever lived longer, or was censored at the same time
        return any(event[i] and (y[i] < y[j] or (y[i] == y[j] and not event[j])) for i in some for j in some)
    return bool(some)


class TestUsable:
    """Which draws can be used, against the definitions, on all draws of a few samples."""

    @pytest.mark.parametrize("requires", ["", "classes", "positive", "negative", "spread", "pairs"])
    @pytest.mark.parametrize("seed", range(12))
    def test_all_draws_of_a_few_samples(self, requires, seed):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 6)), int(rng.integers(2, 4))
        y = rng.integers(0, k, n).astype(float)
        event = rng.integers(0, 2, n)
        weight = None if seed % 3 else rng.integers(0, 3, n).astype(float)
        check = LabelCheck(requires, y, event, weight, k)
        counts = np.array([np.bincount(d, minlength=n) for d in itertools.product(range(n), repeat=n)])
        counted = np.ones(n, bool) if weight is None else weight > 0
        chosen = [holds(requires, y, event, (c > 0) & counted, k) for c in counts]
        judged = [holds(requires, y, event, (c == 0) & counted, k) for c in counts]
        np.testing.assert_array_equal(check.chosen(counts), chosen)
        np.testing.assert_array_equal(check.pair(counts), np.array(chosen) & np.array(judged))
        drawn, redrawn = Bootstrap(n, 40, seed, check=check).block(0, 40)
        assert check.pair(drawn).all() or not redrawn.any() or redrawn.max() > ATTEMPTS
        assert check.pair(counts).any() or not redrawn.any()  # drawing again would be futile

    @pytest.mark.parametrize("requires", ["", "classes", "positive", "negative"])
    @pytest.mark.parametrize("seed", range(6))
    def test_groups_go_whole(self, requires, seed):
        rng = np.random.default_rng(seed)
        group = np.unique(rng.integers(0, 3, 6), return_inverse=True)[1]
        y = rng.integers(0, 2, 6).astype(float)
        check, units = LabelCheck(requires, y, None, None, 2), int(group.max()) + 1
        counts = np.array([np.bincount(d, minlength=units) for d in itertools.product(range(units), repeat=units)])
        drawn, redrawn = Bootstrap(6, 40, seed, group=group, check=check).block(0, 40)
        usable = check.pair(counts[:, group]).any()
        assert check.pair(drawn).all() == usable  # of so few groups a usable draw is soon found
        assert usable or not redrawn.any()

    @pytest.mark.parametrize(
        ("y", "possible"),
        [
            ([0, 1, 2], False),
            ([0, 1, 2, 3], True),
            ([0, 0, 1, 1], True),
            ([0, 0, 0, 1], False),
            ([0, 0, 0, 1, 2], True),
        ],
    )
    def test_spread_needs_two_values_twice(self, y, possible):
        check = LabelCheck("spread", np.array(y, float), None, None, 2)
        n = len(y)
        counts = np.array([np.bincount(d, minlength=n) for d in itertools.product(range(n), repeat=n)])
        assert possible == bool(check.pair(counts).any())
        drawn, redrawn = Bootstrap(n, 40, 1, check=check).block(0, 40)
        assert check.pair(drawn).all() == possible == redrawn.any()

    @pytest.mark.parametrize("select", [cs.select_best, cs.select_one_se])
    @pytest.mark.parametrize("metric", ["auc", "balanced_accuracy"])
    def test_unusable_draws_leave_no_trace(self, metric, select):
        cube = binary()
        draws = cs.bootstrap(cube, 40, rng=1).astype(int)
        draws[::4] = draws[::4].where(cube.label == 1, 0)  # one class only
        out = cs.select_and_judge(cube, metric, choose=draws, ties="first", select=select)
        usable = out["usable"].values
        assert usable.tolist() == [number % 4 > 0 for number in range(40)]
        other = cs.select_and_judge(cube, metric, choose=draws.isel(draw=usable), ties="first", select=select)
        np.testing.assert_array_equal(out["win_rate"], other["win_rate"])
        np.testing.assert_array_equal(out["value"][usable], other["value"])
        expected = cs.score_draws(cube, metric, draws.isel(draw=usable)).var("draw", ddof=1)
        for found in (out, other):
            np.testing.assert_allclose(found["score_variance"], expected, rtol=1e-10)

    def test_a_configuration_without_a_score_never_wins(self):
        cube = binary()
        cube[:, 0] = 0.1  # never positive, so that its predictive value is undefined
        draws = cs.bootstrap(cube, 40, rng=1)
        parts = (cube, cube.isel(configuration=slice(1, None)))
        out, other = (cs.select_and_judge(part, "ppv", choose=draws, ties="first") for part in parts)
        assert out["usable"].values.all()
        np.testing.assert_array_equal(out["selected"], other["selected"])
        np.testing.assert_array_equal(out["value"], other["value"])

    @pytest.mark.parametrize("select", [cs.top_mean(2), cs.ensemble(4)])
    def test_mixtures_are_learned_where_draws_can_be_used(self, select):
        cube = binary(digits=2)
        draws = cs.bootstrap(cube, 40, rng=1).astype(int)
        draws[::4] = draws[::4].where(cube.label == 1, 0)
        out = cs.select_and_judge(cube, "auc", choose=draws, select=select)
        usable = out["usable"].values
        assert usable.tolist() == [number % 4 > 0 for number in range(40)]
        other = cs.select_and_judge(cube, "auc", choose=draws.isel(draw=usable), select=select)
        np.testing.assert_allclose(out["win_rate"], other["win_rate"], rtol=1e-12)
        np.testing.assert_array_equal(out["value"][usable], other["value"])

    @pytest.mark.filterwarnings("ignore:.* draws were unusable and drawn again")
    @pytest.mark.parametrize("select", [cs.top_mean(2), cs.select_one_se])
    def test_draws_that_were_made_again_are_counted(self, select):
        rare = cs.as_cube(np.random.default_rng(0).random((24, 5)), np.arange(24) < 3, kind="probability")
        expected = cs.bbc(rare, "auc", times=60, rng=1, strata=None)["n_redrawn"]
        assert 0 < expected < 60
        assert cs.bbc(rare, "auc", times=60, rng=1, strata=None, select=select)["n_redrawn"] == expected

    @pytest.mark.parametrize("size", [1e-60, 1e60])
    def test_real_weights_of_any_size_count(self, size):
        check = LabelCheck("classes", np.array([0.0, 1, 1]), None, None, 2)
        weights = size * np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [2, 0, 3]])
        assert check.chosen(weights).tolist() == [True, False, False, True]

    def test_some_rows(self):
        y, event, weight = np.arange(4.0), np.array([1, 0, 1, 1]), np.array([1.0, 2, 0, 1])
        check = LabelCheck("pairs", y, event, weight, 2)
        part = check.on(np.array([True, False, True, True]))
        assert (part.y.tolist(), part.event.tolist(), part.weight.tolist()) == ([0, 2, 3], [1, 1, 1], [1, 0, 1])


class TestBlocks:
    """Cubes beyond the block size are worked off in blocks of configurations; here the blocks are tiny."""

    @pytest.mark.parametrize("part", [1, 50, 130])
    @pytest.mark.parametrize("ties", ["first", "random"])
    @pytest.mark.parametrize("metric", ["accuracy", "auc", "mcc"])
    def test_blocks_change_nothing(self, monkeypatch, metric, ties, part):
        cube = binary(n=24, m=7, repeats=2).copy()
        cube[:4, 2] = np.nan  # may not be chosen
        first, second = cube.isel(repeat=[0]), cube.isel(repeat=[1])
        draws = cs.bootstrap(cube, 40, rng=1)
        options = {"choose": draws, "ties": ties, "rng": 3}
        whole = cs.select_and_judge(cube, metric, **options)
        other = cs.select_and_judge(first, metric, judge_cube=second, **options)
        monkeypatch.setattr("cvstats.cube.arrays.PART", part)
        xr.testing.assert_identical(cs.select_and_judge(cube, metric, **options), whole)
        xr.testing.assert_identical(cs.select_and_judge(first, metric, judge_cube=second, **options), other)
        assert "c2" not in whole.selected.values
        assert np.isnan(whole.score_variance[2])

    def test_variance_needs_two_draws(self):
        cube = binary(digits=12)
        draws = cs.bootstrap(cube, 2, rng=1)
        right = ((cube.values > 0.5) == cube.label.values[:, None]).astype(float)
        one, two = draws.values @ right / 24
        out = cs.select_and_judge(cube, "accuracy", choose=draws, rng=0)
        np.testing.assert_allclose(out.score_variance, (one - two) ** 2 / 2, atol=1e-15)
        assert np.isnan(cs.select_and_judge(cube, "accuracy", choose=draws[:1], rng=0).score_variance).all()

    def test_variance_of_scores_far_from_zero(self):
        """Sums of squares of the scores themselves would lose all digits."""
        rng = np.random.default_rng(0)
        y = rng.normal(size=20)
        cube = cs.as_cube(y[:, None] + 1e4 + 1e-3 * rng.normal(size=(20, 3)), y)
        draws = cs.bootstrap(cube, 50, rng=1)
        out = cs.select_and_judge(cube, "mse", choose=draws, rng=0)
        loss = (cube.values - y[:, None]) ** 2
        scores = draws.values @ (loss - 1e8) / 20
        np.testing.assert_allclose(out.score_variance, scores.var(axis=0, ddof=1), rtol=1e-5)

    def test_unusable_draws_do_not_count_in_the_variance(self):
        cube = binary(digits=12)
        draws = cs.bootstrap(cube, 30, rng=1).copy()
        draws[::3] = draws[::3].where(cube.label == 1, 0)  # one class only
        out = cs.select_and_judge(cube, "auc", choose=draws, ties="first", rng=0)
        usable = np.arange(30) % 3 > 0
        np.testing.assert_array_equal(out.usable, usable)
        scores = np.array([cs.auc(weighted(cube, draws.values[b])).values for b in np.flatnonzero(usable)])
        np.testing.assert_allclose(out.score_variance, scores.var(axis=0, ddof=1), rtol=1e-9)

    @pytest.mark.parametrize("repeats", [255, 256, 257])
    def test_many_repeats_are_counted_rightly(self, repeats):
        y = np.arange(6) % 2
        right = np.ones((6, 2, repeats), bool)
        right[0, 1] = False
        cube = cs.as_cube(np.where(right, y[:, None, None], 1 - y[:, None, None]), y, kind="label")
        np.testing.assert_allclose(cs.accuracy(cube), [1, 5 / 6], rtol=1e-12)
        draws = cs.bootstrap(cube, 20, rng=1)
        out = cs.select_and_judge(cube, "accuracy", choose=draws, ties="first", rng=0)
        assert (out.selected.values == 0).all()
        np.testing.assert_allclose(out.value, 1.0, rtol=1e-12)

    @pytest.mark.parametrize("largest", [2**24 + 1, 10**9 + 7, 2**40 + 1])
    def test_whole_losses_are_added_exactly(self, largest):
        """Beyond 2**24 a float of 32 bits skips odd numbers."""
        p = np.array([[largest, 1], [1, largest], [3, 5], [7, 11], [2, 2]], float)
        cube = cs.as_cube(p, np.zeros(5), kind="value")
        assert (cs.mae(cube) * 5).values.tolist() == [largest + 13, largest + 19]
        ones = xr.ones_like(cs.bootstrap(cube, 1, rng=1))
        out = cs.select_and_judge(cube, "mae", choose=ones, judge=ones, ties="first", rng=0)
        assert float(out.value[0]) * 5 == largest + 13

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [100, 255, 256, 300, 70_000, 3_000_000])
    @pytest.mark.parametrize("cases", [False, True])
    def test_rank_statistics_of_large_whole_weights(self, size, cases):
        """Against all pairs in whole numbers: 8, 16 and 32 bits must not overflow."""
        rng = np.random.default_rng(size)
        y = np.arange(16) % 2
        p = np.round(rng.random((16, 3)), 1)
        w = rng.integers(1, size, (2, 16))
        w[:, 0] = size
        own = rng.integers(1, 50, 16) if cases else np.ones(16, int)
        cube = cs.as_cube(p, y, kind="probability", weights=own if cases else None)
        draws = xr.DataArray(w, dims=("draw", "sample"), coords={"sample": cube.sample.values})
        out = cs.select_and_judge(cube, "auc", choose=draws, judge=draws, ties="first", rng=0)
        for b in range(2):
            weight = [int(a) * int(c) for a, c in zip(w[b], own, strict=True)]
            pairs = [(i, j) for i in range(16) for j in range(16) if y[i] == 1 and y[j] == 0]
            area = [
                sum(weight[i] * weight[j] * (2 * (q[i] > q[j]) + (q[i] == q[j])) for i, j in pairs)
                / (2 * sum(weight[i] * weight[j] for i, j in pairs))
                for q in p.T
            ]
            assert out.selected.values[b] == int(np.argmax(area))
            assert float(out.value[b]) == pytest.approx(max(area), rel=1e-12)

    @pytest.mark.parametrize("unit", [10**6, 10**9, 2.0**31, 3e9, 5e14, 2.0**300])
    @pytest.mark.parametrize("metric", ["accuracy", "auc", "brier"])
    def test_weights_of_any_size_give_the_same_numbers(self, metric, unit):
        cube = binary(digits=12)
        draws = cs.bootstrap(cube, 20, rng=1, strata="label")
        options = {"ties": "first", "rng": 0}
        one = cs.select_and_judge(cube, metric, choose=draws, judge=draws, **options)
        large = draws.astype(np.int64) * unit
        other = cs.select_and_judge(cube, metric, choose=large, judge=large, **options)
        np.testing.assert_array_equal(one.selected, other.selected)
        np.testing.assert_allclose(one.value, other.value, rtol=1e-8)
        np.testing.assert_allclose(one.score_variance, other.score_variance, rtol=1e-6)

    @pytest.mark.parametrize("metric", ["accuracy", "brier", "mse"])
    def test_weighted_means_to_the_last_digits(self, metric):
        """Counts beyond 2^24, which single precision does not hold, real weights, and losses of any unit."""
        rng = np.random.default_rng(0)
        y = np.arange(6) % 2
        p = rng.random((6, 2))
        large = np.array([[2**24 + 1, 2**24 + 3, 5, 7, 2**23 + 1, 0], [1, 2**24 + 1, 3, 2**24 + 5, 11, 2**22 + 1]])
        for weights in (large, rng.random((2, 6)) + 0.1, large * 0.1):
            for unit in (1.0, 1e-9, 1e9) if metric == "mse" else (1.0,):
                cube = cs.as_cube(p * unit, y * unit, kind="value") if metric == "mse" else cs.as_cube(p, y)
                draws = xr.DataArray(weights, dims=("draw", "sample"), coords={"sample": cube.sample.values})
                out = cs.select_and_judge(cube, metric, choose=draws, judge=draws, ties="first", rng=0)
                loss = (unit * (p - y[:, None])) ** 2
                value = ((p > 0.5) == y[:, None]).astype(float) if metric == "accuracy" else -loss
                table = weights @ value / weights.sum(axis=1, keepdims=True)
                best = table.argmax(axis=1)
                assert out.selected.values.tolist() == best.tolist()
                expected = table[[0, 1], best] * (1 if metric == "accuracy" else -1)
                np.testing.assert_allclose(out.value, expected, rtol=1e-7 if weights is large else 1e-12)
                if metric == "accuracy":
                    np.testing.assert_allclose(out.value, expected, rtol=1e-13)
                np.testing.assert_allclose(cs.score(cube, metric), abs(value.mean(axis=0)), rtol=1e-12)

    @pytest.mark.parametrize("gaps", [False, True])
    @pytest.mark.parametrize(
        "metric", ["accuracy", "brier", "balanced_accuracy", "f1", "mcc", "auc", "average_precision", "log_loss"]
    )
    def test_tiles_change_nothing(self, monkeypatch, metric, gaps):
        cube = binary(repeats=3, digits=2, weights=np.arange(24) % 3 + 1).copy()
        if gaps:
            cube[3, :, 1] = cube[5, 2:, 2] = np.nan
            cube[:, 1, 0] = np.nan
        draws = cs.bootstrap(cube, 40, rng=3, strata="label")
        found = []
        for tile in (1 << 17, 150, 1):
            monkeypatch.setattr("cvstats.kernels.sums.TILE", tile)
            monkeypatch.setattr("cvstats.kernels.ranks.TILE", tile)
            found.append(cs.select_and_judge(cube, metric, choose=draws, ties="random", rng=0))
        xr.testing.assert_identical(found[0], found[1])
        xr.testing.assert_identical(found[0], found[2])

    def test_one_draw_is_won_by_one(self):
        cube = binary(digits=12)
        out = cs.select_and_judge(cube, "accuracy", choose=cs.bootstrap(cube, 1, rng=1), rng=0)
        assert sorted(out.win_rate.values.tolist()) == [0, 0, 0, 0, 0, 1]

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "average_precision"])
    def test_infinite_scores_are_large_scores(self, metric):
        rng = np.random.default_rng(0)
        y, p = np.arange(20) % 2, rng.normal(size=(20, 3))
        p[0, 0], p[1, 1], p[2, 2] = np.inf, np.inf, -np.inf
        found = []
        for values in (p, np.clip(p, -1e9, 1e9)):
            cube = cs.as_cube(values, y, kind="score", threshold=0.0)
            draws = cs.bootstrap(cube, 20, rng=1, strata="label")
            found.append(cs.select_and_judge(cube, metric, choose=draws, ties="first", rng=0))
        xr.testing.assert_equal(*found)

    def test_no_weight_may_be_negative(self):
        cube = binary()
        weights = cs.bootstrap(cube, 3, rng=1).astype(float)
        for bad in (-0.25, np.nan, np.inf):
            weights[1, 5] = bad
            refused("must hold finite numbers that are not negative.", cube, "accuracy", choose=weights)

    def test_samples_of_weights_must_be_the_cubes(self):
        cube = binary()
        weights = cs.bootstrap(cube, 3, rng=1)
        refused("only in the cube: 23; only in `draws`: none", cube, "accuracy", choose=weights[:, :-1])
        fewer = cube.isel(sample=slice(23))
        refused("only in the cube: none; only in `draws`: 23", fewer, "accuracy", choose=weights)
        plain = weights.drop_vars("sample")
        refused("`draws` has 23 values along 'sample' where the cube has 24; ", cube, "accuracy", choose=plain[:, :-1])

    def test_a_judge_may_not_know_more_samples(self):
        first, second = binary(seed=1).copy(), binary(seed=2)
        first[20:] = np.nan
        text = "`judge_cube` has predictions for samples that no configuration of the cube predicted: 20, 21, 22, 23."
        refused(text, first, "accuracy", choose=cs.bootstrap(first, 5, rng=1), judge_cube=second, rng=0)
        fewer = second.copy()
        fewer[15:] = np.nan
        draws = cs.bootstrap(first, 40, rng=1)
        out = cs.select_and_judge(first, "accuracy", choose=draws, judge_cube=fewer, ties="first", rng=0)
        right = ((second.values > 0.5) == second.label.values[:, None])[:15]
        place = first.indexes["configuration"].get_indexer(out.selected.values)
        for b in np.flatnonzero(out.usable):
            left = draws.values[b, :15] == 0
            assert float(out.value[b]) == pytest.approx(right[left, place[b]].mean())


@pytest.mark.parametrize("metric", ["accuracy", "error_rate"])
def test_samples_of_one_real_weight_weigh_the_same_in_every_configuration(metric):
    """What is right beyond the draw must not decide a tie within it: the first of the tied wins."""
    right = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 1], [1, 0, 0]]).astype(float)  # the last two stay out
    draw = xr.DataArray([[1, 1, 1, 0, 0]] * 3, dims=("draw", "sample"))
    for a, b, heavy in itertools.product((1 / 3, 0.7123, 1.9), (0.1, np.pi), (5.3, 1e3, 1e5)):
        cube = cs.as_cube(right, np.ones(5, int), weights=[a, b, a, heavy, heavy / 3], kind="label", positive=1)
        for order in itertools.permutations(range(3)):
            turned = cube.isel(configuration=list(order))
            out = cs.select_and_judge(turned, metric, choose=draw, judge=1 - draw, ties="first", rng=0)
            assert set(out["selected"].values.tolist()) == {order[0]}
