"""Classes sampled separately: a pair of samples is compared under the model that left both out, whatever the design."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.kernels import walk
from cvstats.metrics import get_metric
from cvstats.resample import make_draws

N0, N1, CONFIGURATIONS = 17, 14, 4
DESIGNS = [(4, 4), (5, 3), (2, 6)]


def arrays(k0, k1, repeats, gaps, seed=0):
    """Return predictions (sample, configuration, partner, repeat) with many ties, labels, and unequal folds."""
    g = np.random.default_rng(seed)
    y = np.repeat([0, 1], [N0, N1])
    fold = np.stack(
        [np.r_[np.arange(k0), g.integers(0, k0, N0 - k0), np.arange(k1), g.integers(0, k1, N1 - k1)]
         for _ in range(repeats)], axis=1
    )  # fmt: skip
    p = np.round(g.normal(size=(N0 + N1, CONFIGURATIONS, max(k0, k1), repeats)) + 0.8 * y[:, None, None, None], 1)
    p[:, 2] = p[:, 0]  # always tied
    p[:N0, :, k1:] = np.nan
    p[N0:, :, k0:] = np.nan
    if gaps:
        p[3, 1, 0, 0] = np.nan  # one model lacks a sample
        p[20, :, 1] = np.nan  # one model lacks it in every configuration
        p[:, 3, :, -1] = np.nan if repeats > 1 else p[:, 3, :, -1]  # a repeat lacks everything
    return p, y, fold


def separate(p, y, fold, **options):
    array = xr.DataArray(p, dims=("sample", "configuration", "partner", "repeat"))
    array = array.assign_coords(fold=(("sample", "repeat"), fold), partner=np.arange(p.shape[2]))
    return cs.as_cube(array, y, kind="score", positive=1, **options)


def by_pairs(p, y, fold, configuration, weight):
    """Return the AUC by looking at every pair in every repeat."""
    values = []
    for repeat in range(p.shape[3]):
        if np.isnan(p[:, configuration, :, repeat]).all():
            continue
        right, total = 0.0, 0.0
        for a in np.flatnonzero(y == 1):
            for b in np.flatnonzero(y == 0):
                one, two = p[a, configuration, fold[b, repeat], repeat], p[b, configuration, fold[a, repeat], repeat]
                if not np.isnan(one + two):
                    right += weight[a] * weight[b] * ((one > two) + 0.5 * (one == two))
                    total += weight[a] * weight[b]
        values.append(right / total)
    return float(np.mean(values))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("design", DESIGNS)
def test_score_and_judging_by_enumeration(monkeypatch, design, repeats, gaps, engine):
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(walk, "FORCE", engine)
    p, y, fold = arrays(*design, repeats, gaps)
    cube = separate(p, y, fold)
    everybody = np.ones(len(y))
    scores = cs.score(cube, "auc")
    expected = [by_pairs(p, y, fold, j, everybody) for j in range(CONFIGURATIONS)]
    np.testing.assert_allclose(scores, expected, rtol=1e-14)
    assert scores[0] == scores[2]
    draws = cs.bootstrap(cube, 4, rng=3, strata="label")
    out = cs.select_and_judge(cube, "auc", choose=draws, ties="first", rng=1)
    for b, w in enumerate(draws.values):
        inside = np.array([by_pairs(p, y, fold, j, w) for j in range(CONFIGURATIONS)])
        assert out["selected"].values[b] == int(np.flatnonzero(inside >= inside.max() - 1e-12)[0])
        outside = by_pairs(p, y, fold, int(out["selected"][b]), (w == 0).astype(float))
        assert out["value"].values[b] == pytest.approx(outside, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_bbc_and_winner_are_means_over_such_draws(design):
    p, y, fold = arrays(*design, 1, False, seed=4)
    cube = separate(p, y, fold).isel(repeat=0, drop=True)
    draws = cs.bootstrap(cube, 25, rng=3, strata="label")
    values = []
    naive = [by_pairs(p, y, fold, j, np.ones(len(y))) for j in range(CONFIGURATIONS)]
    for w in draws.values:
        inside = np.array([by_pairs(p, y, fold, j, w) for j in range(CONFIGURATIONS)])
        best = int(np.flatnonzero(inside >= inside.max() - 1e-12)[0])
        values.append(by_pairs(p, y, fold, best, (w == 0).astype(float)))
    out = cs.bbc(cube, "auc", draws=draws, rng=1)
    assert float(out.estimate) == pytest.approx(np.mean(values), rel=1e-12)
    assert float(out.naive) == pytest.approx(max(naive), rel=1e-13)
    assert float(cs.winner(cube, "auc", draws=draws, rng=1).bbc_plain) == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_numbers_of_folds_and_places_of_partners_do_not_matter(design, gaps):
    p, y, fold = arrays(*design, 2, gaps, seed=7)
    cube = separate(p, y, fold)
    k = p.shape[2]
    names = np.random.default_rng(1).permutation(k)
    swapped = np.empty_like(p)
    swapped[:, :, names] = p  # partner j moves to place names[j], fold j is called names[j]
    renumbered = separate(swapped, y, names[fold])
    shuffled = cube.isel(partner=np.random.default_rng(2).permutation(k))
    for other in (renumbered, shuffled, cube.isel(sample=slice(None, None, -1)), cube.chunk(configuration=1)):
        xr.testing.assert_equal(cs.score(other, "auc"), cs.score(cube, "auc"))
    draws = cs.bootstrap(cube, 33, rng=3, strata="label")
    plain = cs.select_and_judge(cube, "auc", choose=draws, rng=1)
    for other in (renumbered, shuffled, cube.chunk(configuration=1)):
        xr.testing.assert_equal(cs.select_and_judge(other, "auc", choose=draws, rng=1), plain)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_every_model_may_have_a_scale_of_its_own(design, gaps):
    p, y, fold = arrays(*design, 2, gaps)
    other = p.copy()
    for i, j, repeat in np.ndindex(*design, 2):
        scale, shift = 1 + i + 2 * j + repeat, 10.0 * (i - j)
        for side, mine, partner in ((0, i, j), (1, j, i)):
            rows = (y == side) & (fold[:, repeat] == mine)
            other[rows, :, partner, repeat] = scale * p[rows, :, partner, repeat] + shift
    xr.testing.assert_equal(cs.score(separate(other, y, fold), "auc"), cs.score(separate(p, y, fold), "auc"))


def test_weights_are_repeated_rows():
    p, y, fold = arrays(5, 3, 2, False)
    times = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), times)
    weighted = cs.score(separate(p, y, fold, weights=times.astype(float)), "auc")
    np.testing.assert_allclose(weighted, cs.score(separate(p[rows], y[rows], fold[rows]), "auc"), rtol=1e-14)


def test_one_model_for_all_pairs_is_the_ordinary_auc():
    """If every model says the same of a sample, it does not matter which one compares."""
    p, y, fold = arrays(4, 4, 1, False)
    p[:] = p[:, :, :1]
    ordinary = cs.as_cube(p[:, :, 0, 0], y, kind="score", positive=1)
    np.testing.assert_array_equal(cs.score(separate(p, y, fold), "auc"), cs.score(ordinary, "auc"))


def test_models_are_known_by_folds_that_are_partners():
    p, y, fold = arrays(4, 3, 1, False)
    cube = separate(p, y, fold)
    with pytest.raises(cs.InputError, match=r"has no coordinate 'fold'; give as_cube\(..., folds=...\)"):
        cs.score(cube.drop_vars("fold"), "auc")
    with pytest.raises(
        cs.InputError, match="needs every fold among the partners; coordinate 'fold' holds 3, 'partner'"
    ):
        cs.score(cube.isel(partner=slice(0, 3)), "auc")


@pytest.mark.parametrize("metric", ["average_precision", cs.as_metric(lambda y, p, w: 0.5, direction="maximize")])
def test_what_ranks_across_models_stays_refused(metric):
    cube = separate(*arrays(4, 4, 1, False))
    with pytest.raises(cs.InputError, match="only those of one model can be ranked"):
        cs.score(cube, metric)
    with pytest.raises(cs.InputError, match="only those of one model can be ranked"):
        cs.score(cube.isel(partner=0), "auc")


@pytest.mark.parametrize("strata", [None, "auto", "site"])
def test_draws_keep_the_sizes_of_the_classes(strata):
    p, y, fold = arrays(4, 4, 1, gaps=False)
    cube = separate(p, y, fold).assign_coords(site=("sample", np.arange(N0 + N1) % 2))
    seen = make_draws(cube, get_metric("sensitivity"), 64, 1, strata).block(0, 64)[0]
    assert (seen[:, y == 0].sum(axis=1) == N0).all()
    assert (seen[:, y == 1].sum(axis=1) == N1).all()
    if strata == "site":
        assert (seen[:, (y == 0) & (cube["site"].values == 1)].sum(axis=1) == N0 // 2).all()
