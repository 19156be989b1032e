"""Draws: totals, strata, groups, reproducibility, and the text of every refusal."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.resample import Bootstrap, given_draws


def cube(n=30, **arguments):
    y = np.arange(n) % 3 == 0
    return cs.as_cube(np.random.default_rng(0).random((n, 2)), y, samples=[f"s{i}" for i in range(n)], **arguments)


class TestBootstrap:
    def test_labelled_counts(self):
        draws = cs.bootstrap(cube(), 50, rng=1)
        assert draws.dims == ("draw", "sample")
        assert draws.name == "weights"
        assert draws["sample"].values.tolist() == [f"s{i}" for i in range(30)]
        assert draws.dtype.kind == "i"
        assert (draws >= 0).all()
        assert (draws.sum("sample") == 30).all()

    def test_same_seed_same_draws(self):
        xr.testing.assert_identical(cs.bootstrap(cube(), 40, rng=1), cs.bootstrap(cube(), 40, rng=1))
        assert not cs.bootstrap(cube(), 40, rng=1).equals(cs.bootstrap(cube(), 40, rng=2))

    @pytest.mark.parametrize("times", [1, 31, 32, 33, 64])
    def test_first_draws_do_not_depend_on_the_number(self, times):
        np.testing.assert_array_equal(cs.bootstrap(cube(), times, rng=1), cs.bootstrap(cube(), 100, rng=1)[:times])

    @pytest.mark.parametrize("words", [10, 10_000])
    @pytest.mark.parametrize("n", [6, 7])
    def test_blocks_may_begin_and_end_anywhere(self, monkeypatch, n, words):
        """With an odd number of samples a draw may begin in the middle of a 64-bit word."""
        monkeypatch.setattr("cvstats.resample.WORDS", words)
        draws = Bootstrap(n, 100, 5)
        whole = draws.block(0, 100)[0]
        for start, stop in ((1, 100), (3, 32), (5, 6), (31, 71), (33, 34), (64, 97)):
            np.testing.assert_array_equal(draws.block(start, stop)[0], whole[start:stop])

    def test_generator(self):
        one, other = (cs.bootstrap(cube(), 5, rng=np.random.default_rng(3)) for _ in range(2))
        xr.testing.assert_identical(one, other)
        shared = np.random.default_rng(3)
        assert not cs.bootstrap(cube(), 5, rng=shared).equals(cs.bootstrap(cube(), 5, rng=shared))

    def test_no_seed_differs_and_leaves_global_state_alone(self):
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        assert not cs.bootstrap(cube(), 5).equals(cs.bootstrap(cube(), 5))
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    def test_uniform(self):
        """Counts are Binomial(n, 1/n): mean 1, variance 1 - 1/n, and about .368 left out."""
        draws = cs.bootstrap(cube(200), 2000, rng=0).values
        assert abs(draws.mean(axis=0) - 1).max() < 5 * np.sqrt(1 / 2000)
        assert abs(draws.var() - (1 - 1 / 200)) < 0.01
        assert abs((draws == 0).mean() - (1 - 1 / 200) ** 200) < 0.002
        big = cs.bootstrap(cube(5000), 40, rng=0).values  # counted row by row
        assert (big.sum(axis=1) == 5000).all()
        assert abs((big == 0).mean() - np.exp(-1)) < 0.005

    def test_strata(self):
        c = cube()
        label = c["label"].values
        for strata in ("label", label, label.tolist()):
            draws = cs.bootstrap(c, 30, rng=1, strata=strata).values
            assert (draws[:, label].sum(axis=1) == label.sum()).all()
            assert (draws[:, ~label].sum(axis=1) == (~label).sum()).all()
        assert (draws.std(axis=0) > 0).all()

    def test_groups_stay_whole(self):
        group = np.repeat(np.arange(10), 3)
        for c, groups in ((cube(groups=group), None), (cube(), group)):
            draws = cs.bootstrap(c, 30, rng=1, groups=groups).values.reshape(30, 10, 3)
            assert (draws == draws[..., :1]).all()
            assert (draws[..., 0].sum(axis=1) == 10).all()

    def test_unequal_groups(self):
        group = np.array(["a"] * 5 + ["b"] * 15 + ["c"] * 10)
        draws = cs.bootstrap(cube(groups=group), 20, rng=1)
        assert len(set(draws.sum("sample").values.tolist())) > 1
        assert (draws.values[:, [0, 5, 20]].sum(axis=1) == 3).all()

    def test_groups_within_strata(self):
        group = np.repeat(np.arange(10), 3)
        layer = group < 4
        draws = cs.bootstrap(cube(groups=group), 30, rng=1, strata=layer).values.reshape(30, 10, 3)
        assert (draws[:, :4, 0].sum(axis=1) == 4).all()
        assert (draws[:, 4:, 0].sum(axis=1) == 6).all()

    def test_texts(self):
        c = cube(groups=np.repeat(np.arange(10), 3))
        with pytest.raises(cs.InputError, match=r"`strata` split .* of 10 groups; groups are drawn whole"):
            cs.bootstrap(c, 5, strata="label")
        with pytest.raises(
            cs.InputError, match=r"`strata`='labels' is not a coordinate of the cube \(did you mean 'label'\?\)"
        ):
            cs.bootstrap(cube(), 5, strata="labels")
        with pytest.raises(cs.InputError, match="`strata`='positive' must have the one dimension 'sample'"):
            cs.bootstrap(cube(), 5, strata="positive")
        with pytest.raises(cs.InputError, match=r"`groups` must have one value per sample \(30\); got shape \(3,\)"):
            cs.bootstrap(cube(), 5, groups=[1, 2, 3])
        gap = ["a", None] + ["b"] * 28
        named = cube().assign_coords(site=("sample", np.array(gap, object)), age=("sample", [1.0, np.nan] + [2.0] * 28))
        for given in (gap, "site", "age"):
            for argument in ("groups", "strata"):
                with pytest.raises(cs.InputError, match=f"`{argument}` are missing for samples 's1'; every sample"):
                    cs.bootstrap(named, 5, **{argument: given})
        with pytest.raises(cs.InputError, match="`times` must be a whole number of at least 1; got 0"):
            cs.bootstrap(cube(), 0)
        for rng in (-1, "a", True, 1.5):
            with pytest.raises(
                cs.InputError, match="`rng` must be a non-negative integer, a numpy Generator or None; got"
            ):
                cs.bootstrap(cube(), 5, rng=rng)


class TestSubsample:
    def test_without_replacement(self):
        draws = cs.subsample(cube(), 40, fraction=0.6, rng=1)
        assert set(np.unique(draws)) == {0, 1}
        assert (draws.sum("sample") == 18).all()
        np.testing.assert_array_equal(draws[:7], cs.subsample(cube(), 7, fraction=0.6, rng=1))
        assert abs(cs.subsample(cube(), 2000, fraction=0.6, rng=1).mean("draw") - 0.6).max() < 0.05

    def test_groups(self):
        draws = cs.subsample(cube(groups=np.repeat(np.arange(10), 3)), 20, fraction=0.5, rng=1).values.reshape(
            20, 10, 3
        )
        assert (draws == draws[..., :1]).all()
        assert (draws[..., 0].sum(axis=1) == 5).all()

    @pytest.mark.parametrize("fraction", [0.0, 1.0, 0.001, 0.999, -1])
    def test_fraction(self, fraction):
        with pytest.raises(cs.InputError, match="`fraction` must leave samples both in and out of a draw"):
            cs.subsample(cube(), 5, fraction=fraction)


class TestJackknife:
    def test_leaves_one_out(self):
        np.testing.assert_array_equal(cs.jackknife(cube(4)), 1 - np.eye(4))

    def test_groups(self):
        weights = cs.jackknife(cube(6, groups=list("aabbbc")))
        np.testing.assert_array_equal(weights, [[0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0]])

    def test_standard_error_of_a_mean(self):
        """The jackknife variance of a mean is the textbook one."""
        y = np.random.default_rng(0).normal(size=25)
        c = cs.as_cube(y + 1.5, y * 0, kind="value")
        out = cs.select_and_judge(c, "mae", choose=cs.jackknife(c), judge=cs.jackknife(c), ties="first", rng=0)
        values = np.abs(y + 1.5)
        expected = values.std(ddof=1) / 5
        found = np.sqrt(24 / 25 * ((out["value"] - out["value"].mean()) ** 2).sum())
        np.testing.assert_allclose(found, expected)


class Rule:
    """A check of draws by a plain function."""

    judging = True

    def __init__(self, rule):
        self.rule = rule

    def pair(self, counts):
        return self.rule(counts)


def test_designs_that_hardly_any_draw_fits_are_given_up_early():
    calls = 0

    def never(counts):
        nonlocal calls
        calls += 1
        return np.zeros(len(counts), bool)

    draws = Bootstrap(10, 200, 1, check=Rule(never))
    _, redrawn = draws.block(0, 200)
    assert not redrawn.any()
    assert calls == 1 + 32


@pytest.mark.slow
def test_rare_draws_are_found_whatever_the_block():
    def rare(counts):
        return counts[:, 0] >= 4  # about one draw in fifty

    whole, redrawn = Bootstrap(10, 70, 1, check=Rule(rare)).block(0, 70)
    assert rare(whole).all()
    assert redrawn.max() > 32
    part, _ = Bootstrap(10, 33, 1, check=Rule(rare)).block(32, 33)
    assert (part == whole[32:33]).all()


def test_given_draws_are_taken_as_they_are():
    c = cube()
    draws = cs.bootstrap(c, 6, rng=1)
    counts, again = given_draws(draws, c).block(2, 5)
    assert counts.tolist() == draws.values[2:5].tolist()
    assert again.tolist() == [0, 0, 0]
    counts, again = given_draws(draws.astype(float), c).block(2, 5)
    assert counts.tolist() == draws.values[2:5].tolist()
    assert again.tolist() == [0, 0, 0]
