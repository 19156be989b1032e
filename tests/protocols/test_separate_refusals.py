"""Classes sampled separately: what such a cube cannot tell is refused in one sentence, whoever asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.metrics.base import REGISTRY

QUICK: dict[str, Any] = {"times": 50, "rng": 1}
RANKS = {"average_precision", "concordance", "uno_concordance"}
MODEL_BY_MODEL = {"auc", "auc_ovr", "auc_ovr_weighted"}
FITTED = {"calibration_intercept", "calibration_slope", "ici"}
FREE = {"auc", "balanced_accuracy", "recall", "sensitivity", "specificity", "youden"}


@cs.as_metric(direction="maximize", range=(0, 1))
def own(label, prediction, weight):
    return float(np.average((prediction > 0.5) == label, weights=weight))


def separate_cube() -> xr.DataArray:
    """24 + 16 samples, three folds of one class and two of the other, three configurations of probabilities."""
    g = np.random.default_rng(3)
    y = np.repeat([0, 1], [24, 16])
    fold = np.concatenate([np.arange(24) % 3, np.arange(16) % 2])
    values = 1 / (1 + np.exp(-g.normal(2.0 * y[:, None, None] - 1, 1.5, (40, 3, 3))))
    values[y == 0, :, 2] = np.nan  # two partners
    array = xr.DataArray(values, dims=("sample", "configuration", "partner")).assign_coords(fold=("sample", fold))
    return cs.as_cube(array.assign_coords(partner=range(3)), y, kind="probability", positive=1)


EVERYWHERE = {
    "score": lambda c, m: cs.score(c, m),
    "cv": lambda c, m: cs.cv(c, m),
    "cvt": lambda c, m: cs.cvt(c, m),
    "cvt_fold": lambda c, m: cs.cvt(c, m, average="fold"),
    "cvm_cv": lambda c, m: cs.cvm_cv(c, m),
    "tt": lambda c, m: cs.tt(c, m),
    "bbc": lambda c, m: cs.bbc(c, m, **QUICK),
    "winner": lambda c, m: cs.winner(c, m, **QUICK),
    "drop_configurations": lambda c, m: cs.drop_configurations(c, m, **QUICK),
    "optimism_curve": lambda c, m: cs.optimism_curve(c, m, **QUICK),
    "contrast": lambda c, m: cs.contrast(c, m, a=0, b=1, **QUICK),
    "contrast_families": lambda c, m: cs.contrast(c, m, a=[0, 1], b=[2], **QUICK),
    "best_set": lambda c, m: cs.best_set(c, m, **QUICK),
    "select_and_judge": lambda c, m: cs.select_and_judge(c, m, choose=cs.bootstrap(c, 20, rng=1), rng=1),
    "implementations": lambda c, m: cs.implementations(c, m),
    "lazy": lambda c, m: cs.winner(c.chunk(configuration=1), m, **QUICK),
    "one_partner": lambda c, m: cs.score(c.isel(partner=0), m),
}


@pytest.mark.parametrize("metric", ["average_precision", own])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_rank_metrics_are_refused_because_models_differ(name, metric):
    does = "may compare" if metric is own else "ranks"
    with pytest.raises(cs.InputError, match=f"{does} predictions of different samples, and only those of one model"):
        EVERYWHERE[name](separate_cube(), metric)


NO_MODEL = {  # where auc, which is ranked model by model, cannot be
    "implementations": "compares ways of ordinary cross-validation",
    "drop_configurations": "early dropping is defined for ordinary folds",
    "cvm_cv": "it needs two; the cube has 1",
    "one_partner": "ranks predictions of different samples, and only those of one model",
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_auc_is_ranked_model_by_model(name):
    if name in NO_MODEL:
        with pytest.raises(cs.InputError, match=NO_MODEL[name]):
            EVERYWHERE[name](separate_cube(), "auc")
        return
    assert EVERYWHERE[name](separate_cube(), "auc") is not None


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_metrics_of_the_class_ratio_are_refused_without_a_prior(name, metric):
    with pytest.raises(cs.InputError, match="depends on how frequent the classes are") as caught:
        EVERYWHERE[name](separate_cube(), metric)
    for hint in (
        "analyst's choice, not the population's",
        f"at_prior({metric!r}, {{label: probability",
        "separate_cv()",
    ):
        assert hint in str(caught.value)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_metric_says_whether_it_depends_on_the_class_ratio(name):
    metric = REGISTRY[name]
    assert metric.ratio_free == (name in FREE)
    if name in FREE or name in MODEL_BY_MODEL:
        assert np.isfinite(cs.score(separate_cube(), name)).all()
        return
    reason = "ranks predictions" if name in RANKS else "how frequent the classes are"
    with pytest.raises(cs.InputError, match="may compare predictions" if name in FITTED else reason):
        cs.score(separate_cube(), name)


@pytest.mark.parametrize("metric", [*sorted(FREE), cs.prior_error({0: 0.9}), cs.at_prior("ppv", {0: 0.9})])
def test_metrics_free_of_the_class_ratio_do_not_change_with_it(metric):
    """Twice as many samples of one class."""
    cube = separate_cube()
    more = cube.isel(sample=np.r_[:24, :24, 24:40]).assign_coords(sample=range(64))
    np.testing.assert_allclose(cs.score(more, metric), cs.score(cube, metric), rtol=1e-12)
    for function in (cs.bbc, cs.winner):
        assert np.isfinite(function(cube, metric, **QUICK).estimate)


def test_tests_of_two_configurations_are_refused():
    with pytest.raises(cs.InputError, match="'auc' ranks predictions of different samples"):
        cs.delong_test(separate_cube(), a=0, b=1)
    with pytest.raises(cs.InputError, match="it is for predictions of one model, not for classes sampled separately"):
        cs.winner(separate_cube().isel(configuration=[0]), "auc", interval="delong", **QUICK)
    with pytest.raises(cs.InputError, match="'accuracy' depends on how frequent the classes are"):
        cs.mcnemar_test(separate_cube(), a=0, b=1)


def test_class_errors_and_priors_still_work_on_such_a_cube():
    cube = separate_cube()
    for metric in ("error_rate", "brier", "log_loss"):
        assert np.isfinite(cs.separate_cv(cube, metric, prior={0: 0.9}, **QUICK).estimate).all()
        assert np.isfinite(cs.prior_curve(cube, metric, **QUICK).estimate).all()
    equal = cube.isel(partner=[0, 1], sample=np.flatnonzero(cube.fold != 2))
    assert np.isfinite(cs.classical_cv(equal, **QUICK).estimate).all()


def test_a_column_named_partner_is_no_separate_sampling():
    cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7]], [1, 0]).assign_coords(partner=("sample", ["x", "y"]))
    assert cs.score(cube, "auc").values.tolist() == [1.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["auc", cs.prior_error({0: 0.9})])
@pytest.mark.parametrize("repeats", [1, 2])
def test_pairs_of_folds_are_folds(metric, repeats):
    """Averages by fold, and TT, by plain loops over the models."""
    cube = separate_cube()
    if repeats == 2:
        cube = xr.concat([cube, cube[:, ::-1].assign_coords(configuration=cube.configuration)], dim="repeat")
        cube = cube.transpose("sample", "configuration", "partner", "repeat").assign_coords(repeat=[0, 1])
    y, fold, p = cube.label.values, cube.fold.values, cube.values.reshape(40, 3, 3, -1)
    table = np.empty((3, repeats, 3, 2))
    for j, r, u, v in np.ndindex(table.shape):
        down, up = p[(y == 0) & (fold == u), j, v, r], p[(y == 1) & (fold == v), j, u, r]
        if metric == "auc":
            table[j, r, u, v] = np.mean(up[:, None] > down)
        else:
            table[j, r, u, v] = 0.9 * np.mean(down > 0.5) + 0.1 * np.mean(up <= 0.5)
    flat, sign = table.reshape(3, -1), 1 if metric == "auc" else -1
    means = flat.mean(axis=1)
    np.testing.assert_allclose(cs.score(cube, metric, average="fold"), means, rtol=1e-13)
    best = (sign * means).argmax()
    claim = cs.cvt(cube.chunk(configuration=1), metric, average="fold")
    assert (int(claim.selected), float(claim.estimate)) == (best, pytest.approx(means[best], rel=1e-13))
    gain = (sign * (flat - flat[best])).max(axis=0).mean()
    assert float(cs.tt(cube, metric).estimate) == pytest.approx(means[best] - sign * gain, rel=1e-12)


def test_what_needs_ordinary_folds_says_why():
    cube = separate_cube()
    for text, function in [
        ("a sample is complete only when", lambda: cs.bbcd(cube, "auc")),
        ("every pair of folds would need inner predictions", lambda: cs.ncv(cube, "auc", inner=cube)),
        ("compares ways of ordinary cross-validation", lambda: cs.implementations(cube, "auc")),
        (r"cvt\(\) and tt\(\) average over pairs", lambda: cs.winner(cube, "auc", average="fold")),
    ]:
        with pytest.raises(cs.InputError, match=text):
            function()
