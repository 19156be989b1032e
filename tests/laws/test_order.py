"""Labels carry no meaning by their order: other names and other orders of them give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

pytestmark = pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
QUICK: dict[str, Any] = {"times": 40, "rng": 5}
ORDER = [3, 0, 2, 1]
IN_TURN = {("bbcd", "repeat"), ("bbcd", "fold")}  # drops after each fold, one repeat after the other: order is meant


def plain_cube() -> xr.DataArray:
    """30 samples, four configurations, three repeats, three folds; no ties."""
    g = np.random.default_rng(11)
    y = np.arange(30) % 2
    values = 1 / (1 + np.exp(-g.normal(y[:, None, None] * [[[1.0], [0.8], [0.5], [0.2]]], 1, (30, 4, 3))))
    folds = np.stack([g.permutation(np.arange(30) % 3) for _ in range(3)], axis=1)
    return cs.as_cube(values, y, folds=folds, positive=1, kind="probability").assign_coords(configuration=[1, 2, 4, 8])


def inner_cube(cube: xr.DataArray) -> xr.DataArray:
    g = np.random.default_rng(12)
    shaken = (
        (cube + 0.1 * g.random(cube.shape)).clip(0, 1).drop_vars("fold").assign_coords(cube.drop_vars("fold").coords)
    )
    outer = xr.DataArray(np.arange(3), dims="outer_fold", coords={"outer_fold": np.arange(3)})
    return shaken.where(cube["fold"] != outer)


def separate_cube() -> xr.DataArray:
    """Classes sampled separately: two folds of one class, three of the other."""
    g = np.random.default_rng(13)
    y = np.repeat([0, 1], [12, 18])
    fold = np.concatenate([np.arange(12) % 3, np.arange(18) % 3])
    values = (g.random((30, 4, 3)) < 0.2) ^ (y[:, None, None] == 1)
    array = xr.DataArray(values.astype(float), dims=("sample", "configuration", "partner")).assign_coords(
        fold=("sample", fold), partner=range(3)
    )
    return cs.as_cube(array, y, kind="label").assign_coords(configuration=[1, 2, 4, 8])


def three_classes() -> xr.DataArray:
    g = np.random.default_rng(14)
    y = np.array(list("xyz"))[np.arange(24) % 3]
    raw = g.random((24, 4, 3)) + 0.6 * (y[:, None] == np.array(list("xyz")))[:, None]
    values = raw / raw.sum(-1, keepdims=True)
    return cs.as_cube(values, y, folds=np.arange(24) // 3 % 4, classes=list("xyz"), kind="probability")


def same(one: xr.Dataset, two: xr.Dataset) -> None:
    """Compare every number; positions of labels may differ."""
    assert set(one.variables) == set(two.variables)
    for name, a in one.data_vars.items():
        b = two[name]
        assert set(a.dims) == set(b.dims)
        labelled = {str(d): a[d].values for d in a.dims if d in a.indexes}
        b = b.sel(labelled).transpose(*a.dims)
        if a.dtype.kind in "fc":
            np.testing.assert_allclose(b.values, a.values, rtol=1e-9, atol=1e-12, err_msg=str(name))
        else:
            np.testing.assert_array_equal(b.values, a.values, err_msg=str(name))


PLAIN = {
    "cv": lambda c, i: cs.cv(c, "brier"),
    "cvt": lambda c, i: cs.cvt(c, "brier", average="fold"),
    "tt": lambda c, i: cs.tt(c, "brier"),
    "ncv": lambda c, i: cs.ncv(c, "brier", inner=i),
    "ncv_auc": lambda c, i: cs.ncv(c, "auc", inner=i),
    "bbc": lambda c, i: cs.bbc(c, "brier", **QUICK),
    "bbc_auc": lambda c, i: cs.bbc(c, "auc", **QUICK),
    "winner": lambda c, i: cs.winner(c, "brier", **QUICK),
    "winner_auc": lambda c, i: cs.winner(c, "auc", **QUICK),
    "winner_inner": lambda c, i: cs.winner(c, "brier", inner=i, **QUICK),
    "double_bootstrap": lambda c, i: cs.winner(c, "brier", interval=cs.double_bootstrap(), **QUICK),
    "bbcd": lambda c, i: cs.bbcd(c, "brier", min_predictions=10, **QUICK),
    "drop_configurations": lambda c, i: cs.drop_configurations(c, "brier", min_predictions=10, **QUICK),
    "optimism_curve": lambda c, i: cs.optimism_curve(c, "brier", **QUICK),
    "implementations": lambda c, i: cs.implementations(c, "brier", inner=i, training=i, leaky=c),
    "contrast": lambda c, i: cs.contrast(c, "brier", a=[1, 2], b=[4, 8], **QUICK),
    "best_set": lambda c, i: cs.best_set(c, "brier", **QUICK),
    "score": lambda c, i: cs.score(c, "auc").to_dataset(name="score"),
}


CHANGES = ("configuration", "repeat", "outer_fold", "dims", "fold")


@pytest.mark.parametrize(("name", "how"), sorted({(n, h) for n in PLAIN for h in CHANGES} - IN_TURN))
def test_protocols(name: str, how: str) -> None:
    cube = plain_cube()
    inner = inner_cube(cube)
    expected = PLAIN[name](cube, inner)
    if how == "dims":
        cube, inner = cube.transpose(), inner.transpose()
    elif how == "fold":
        names = np.array([7, 2, 5])  # neither the order nor the numbers stay
        cube = cube.assign_coords(fold=cube["fold"].copy(data=names[cube["fold"].values]))
        inner = inner.assign_coords(outer_fold=names)
    else:
        order = ORDER if how == "configuration" else [2, 0, 1]
        cube = cube.isel({how: order}, missing_dims="ignore")
        inner = inner.isel({how: order})
    found = PLAIN[name](cube, inner)
    if how == "fold":
        found, expected = (
            out.drop_dims([d for d in ("fold", "outer_fold") if d in out.dims]) for out in (found, expected)
        )
    same(expected, found)


SEPARATE = {
    "separate_cv": lambda c: cs.separate_cv(c, prior={0: 0.3}, **QUICK),
    "prior_curve": lambda c: cs.prior_curve(c, **QUICK),
    "classical_cv": lambda c: cs.classical_cv(c, **QUICK),
    "prior_error": lambda c: cs.score(c, cs.prior_error({0: 0.3})).to_dataset(name="score"),
}


@pytest.mark.parametrize("name", SEPARATE)
@pytest.mark.parametrize("how", ["configuration", "partner", "dims", "fold"])
def test_separate_sampling(name: str, how: str) -> None:
    cube = separate_cube()
    expected = SEPARATE[name](cube)
    if how == "dims":
        cube = cube.transpose()
    elif how == "fold":
        names = np.array([7, 2, 5])
        cube = cube.assign_coords(fold=("sample", names[cube["fold"].values]), partner=names)
    else:
        cube = cube.isel({how: ORDER if how == "configuration" else [2, 0, 1]})
    same(expected, SEPARATE[name](cube))


MANY = ("accuracy", "auc", "auc_ovr", "balanced_accuracy", "brier", "f1", "log_loss", "mcc")


@pytest.mark.parametrize("metric", MANY)
def test_classes(metric: str) -> None:
    cube = three_classes()
    expected = cs.bbc(cube, metric, **QUICK)
    same(expected, cs.bbc(cube.transpose(), metric, **QUICK))
    same(expected, cs.bbc(cube.isel(label_class=[2, 0, 1]), metric, **QUICK))


@pytest.mark.parametrize("metric", ["brier", "auc"])
def test_samples_in_another_order_with_the_same_draws(metric: str) -> None:
    cube = plain_cube()
    draws = cs.bootstrap(cube, 40, rng=1)
    order = np.random.default_rng(2).permutation(30)
    for f in (cs.bbc, cs.winner):
        same(f(cube, metric, draws=draws), f(cube.isel(sample=order), metric, draws=draws))
        same(f(cube, metric, draws=draws), f(cube, metric, draws=draws.isel(sample=order)))
