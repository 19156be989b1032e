"""The first face of the kernel: scores of all configurations under all draws, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from shared import EVERY, cube_for, refusal

refused = refusal(cs.score_draws)


def looped(cube, metric, draws):
    """Score the drawn rows, repeated as often as they were drawn, one draw at a time."""
    rows = []
    for counts in draws.transpose("draw", "sample").values:
        part = cube.isel(sample=np.repeat(np.arange(len(counts)), counts))
        part = part.assign_coords(sample=np.arange(part.sizes["sample"]))
        rows.append(cs.score(part, metric).transpose("configuration", ...).values)
    return np.array(rows)


@pytest.mark.parametrize("metric", EVERY)
def test_equals_a_loop_over_draws(metric):
    cube = cube_for(metric, n=30, shape=(4, 3))
    draws = cs.bootstrap(cube, 7, rng=1)
    out = cs.score_draws(cube, metric, draws)
    assert out.dims == ("draw", "configuration")
    assert out.name == metric == out["metric"].item()
    np.testing.assert_allclose(out, looped(cube, metric, draws), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("metric", ["accuracy", "mcc", "log_loss", "auc", "average_precision"])
def test_groups_and_whole_weights(metric):
    group = np.repeat(np.arange(10), 3)
    cube = cube_for(metric, n=30, shape=(4,), weights=np.arange(30) % 3, groups=group)
    draws = cs.bootstrap(cube, 9, rng=2)
    assert (draws.values.reshape(9, 10, 3) == draws.values[:, ::3, None]).all()
    repeated = (draws * cube["weight"].astype(int)).drop_vars("weight", errors="ignore")
    plain = cube.drop_vars(["weight", "group"])
    expected = looped(plain, metric, repeated)
    np.testing.assert_allclose(cs.score_draws(cube, metric, draws), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "auc", "brier"])
def test_gaps_are_left_out_and_every_configuration_is_scored(metric):
    cube = cube_for(metric, n=30, shape=(4, 2)).copy()
    cube[:3] = np.nan  # nobody
    cube[5:9, 1] = np.nan  # one configuration
    cube[10:14, 2, 0] = np.nan  # one of its repeats
    cube[:, 3, 1] = np.nan  # a whole repeat
    draws = cs.bootstrap(cube, 9, rng=1, strata="label")
    out = cs.score_draws(cube, metric, draws)
    assert not out.isnull().any()
    np.testing.assert_allclose(out, looped(cube, metric, draws), rtol=1e-10)
    ones = xr.ones_like(draws[:1])
    np.testing.assert_allclose(cs.score_draws(cube, metric, ones)[0], cs.score(cube, metric), rtol=1e-12)


def test_real_weights():
    cube = cube_for("brier", n=20, shape=(3,))
    g = np.random.default_rng(0)
    draws = xr.DataArray(g.random((5, 20)), dims=("draw", "sample"), coords={"sample": cube["sample"]})
    loss = (cube.values - cube["label"].values[:, None]) ** 2
    expected = draws.values @ loss / draws.values.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cs.score_draws(cube, "brier", draws), expected, rtol=1e-12)


def test_own_metric():
    @cs.as_metric(direction="maximize", requires="classes")
    def share(label, prediction, weight):
        return float(np.average(prediction > 0.5, weights=weight))

    cube = cube_for("auc", n=12, shape=(3,))
    draws = cs.bootstrap(cube, 6, rng=1, strata="label").copy()
    draws[2] = draws[2].where(cube["label"] == 1, 0)  # one class only
    out = cs.score_draws(cube, share, draws)
    expected = draws.values @ (cube.values > 0.5) / draws.values.sum(axis=1, keepdims=True)
    assert np.isnan(out[2]).all()
    np.testing.assert_allclose(np.delete(out, 2, axis=0), np.delete(expected, 2, axis=0))


def test_a_draw_of_one_class_has_no_auc():
    cube = cube_for("auc", n=20, shape=(3,))
    draws = cs.bootstrap(cube, 5, rng=1, strata="label").copy()
    draws[3] = draws[3].where(cube["label"] == 0, 0)
    assert cs.score_draws(cube, "auc", draws).isnull().all("configuration").values.tolist() == [False] * 3 + [
        True,
        False,
    ]


def test_draws_are_matched_by_sample():
    cube = cube_for("auc", n=20, shape=(3,), samples=[f"s{i}" for i in range(20)])
    draws = cs.bootstrap(cube, 5, rng=1, strata="label")
    turned = draws.isel(sample=slice(None, None, -1))
    xr.testing.assert_identical(cs.score_draws(cube, "auc", turned), cs.score_draws(cube, "auc", draws))
    refused(
        "`draws` does not match the cube along 'sample': only in the cube: 's0'; only in", cube, "auc", draws[:, 1:]
    )
    refused("must hold finite numbers that are not negative.", cube, "auc", -draws)
    refused("must be a DataArray over 'draw' and 'sample'", cube, "auc", draws.values)
    refused("`batch` must be a whole number of at least 1; got 0", cube, "auc", draws, batch=0)


@pytest.mark.parametrize("metric", ["accuracy", "auc", "f1"])
def test_batches_and_chunks_change_nothing(metric, monkeypatch):
    cube = cube_for(metric, n=30, shape=(7, 2)).copy()
    cube[:2] = np.nan
    cube[4, 1, 0] = np.nan
    draws = cs.bootstrap(cube, 70, rng=1, strata="label")
    whole = cs.score_draws(cube, metric, draws)
    xr.testing.assert_identical(cs.score_draws(cube, metric, draws, batch=1), whole)
    xr.testing.assert_identical(cs.score_draws(cube.chunk(configuration=3), metric, draws), whole)
    monkeypatch.setattr("cvstats.cube.arrays.PART", 100)
    xr.testing.assert_identical(cs.score_draws(cube, metric, draws), whole)


def test_batch_dims_and_coordinates_of_configurations_are_kept():
    one, two = (
        cube_for("auc", n=20, shape=(3,), seed=seed).assign_coords(size=("configuration", [1, 5, 9])) for seed in (0, 1)
    )
    cube = xr.concat([one, two], dim=xr.DataArray(["x", "y"], dims="data", name="data"))
    draws = cs.bootstrap(one, 6, rng=1, strata="label")
    out = cs.score_draws(cube, "auc", draws)
    assert out.dims == ("data", "draw", "configuration")
    assert out["size"].values.tolist() == [1, 5, 9]
    np.testing.assert_array_equal(out.sel(data="y"), cs.score_draws(two, "auc", draws))


def test_contrasts_and_sets_are_made_of_these_scores():
    cube = cube_for("auc", n=40, shape=(3,))
    draws = cs.bootstrap(cube, 50, rng=1, strata="label")
    table = cs.score_draws(cube, "auc", draws)
    names = cube["configuration"].values
    out = cs.contrast(cube, "auc", a=names[0], b=names[2], draws=draws, keep_draws=True)
    np.testing.assert_array_equal(out["draw_estimate"], table[:, 0] - table[:, 2])


def test_nothing_is_changed():
    cube = cube_for("accuracy", n=20, shape=(3,))
    draws = cs.bootstrap(cube, 5, rng=1)
    before = cube.copy(deep=True), draws.copy(deep=True)
    cs.score_draws(cube, "accuracy", draws)
    xr.testing.assert_identical(cube, before[0])
    xr.testing.assert_identical(draws, before[1])
