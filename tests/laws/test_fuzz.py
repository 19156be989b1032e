"""Every public function on odd cubes: a valid result or one of our own errors, and the input stays as it was.

Structure (sizes, kinds, gaps, ties, magnitudes, dims, chunks) is drawn by hypothesis, values by numpy from its seed.
More examples: ``FUZZ_EXAMPLES=500 pytest tests/laws/test_fuzz.py``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import cvstats as cs

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "6"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # shrinking would take longer than the tests
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
METRICS = {
    "label": ("accuracy", "error_rate", "balanced_accuracy", "f1", "mcc"),
    "probability": ("accuracy", "balanced_accuracy", "auc", "average_precision", "brier", "log_loss", "sensitivity"),
    "score": ("auc", "average_precision", "smoothed_error_rate", "accuracy"),
    "classes": ("accuracy", "auc", "auc_ovr", "auc_ovr_weighted", "f1", "mcc", "brier", "log_loss", "specificity"),
    "value": ("mse", "rmse", "mae", "r2"),
    "survival": ("concordance",),
}
VALUES = {
    "few": lambda g, shape: g.integers(0, 3, shape) / 2.0,
    "one": lambda g, shape: np.full(shape, 0.5),
    "real": lambda g, shape: g.normal(size=shape),
    "huge": lambda g, shape: g.choice([1e300, -1e300, 1e150, 0.0, 1.0], shape),
    "large": lambda g, shape: g.choice([1e50, -1e50, 1e25, 0.0, 1.0], shape),
    "tiny": lambda g, shape: g.choice([5e-324, 1e-308, -1e-308, 0.0, -0.0], shape),
    "far": lambda g, shape: 1e9 + g.integers(0, 5, shape) / 4,
    "infinite": lambda g, shape: g.choice([np.inf, -np.inf, 0.0, 1.0], shape),
}
WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda g, n: None,
    "whole": lambda g, n: g.integers(0, 4, n),
    "real": lambda g, n: g.uniform(0, 2, n),
    "big": lambda g, n: g.integers(1, 1_000_001, n),
    "zero": lambda g, n: np.zeros(n),
}


def _folds(g: np.random.Generator, how: str, n: int, repeats: int) -> Any:
    if how == "none":
        return None
    size = {"two": 2, "three": 3, "one": 1, "each": n}[how]
    ids = np.stack([g.permutation(np.arange(n) % size) for _ in range(repeats)], axis=1)
    return ids[:, 0] if repeats == 1 else ids


def _predictions(g: np.random.Generator, kind: str, how: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "label":
        return g.integers(0, 2, shape).astype(float)
    values = VALUES[how](g, shape)
    if kind in ("probability", "classes"):
        with np.errstate(over="ignore"):
            values = 1 / (1 + np.exp(-np.clip(values, -50, 50)))
        values = np.round(values, 2) if how == "few" else values
    if kind == "classes":
        values = values + 1e-3
        values = values / values.sum(axis=-1, keepdims=True)
    return np.asarray(values, float)


def _gaps(g: np.random.Generator, how: str, values: np.ndarray) -> None:
    if how == "cells":
        values[g.random(values.shape[:2]) < 0.3] = np.nan
    elif how == "rows":
        values[g.random(len(values)) < 0.3] = np.nan
    elif how == "column":
        values[g.random(len(values)) < 0.7, 0] = np.nan
    elif how == "all":
        values[:] = np.nan


@st.composite
def arguments(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, Any], str]:
    """Draw the array and the arguments that as_cube takes, and the kind of problem."""
    kind = draw(st.sampled_from(list(METRICS)))
    g = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, c = draw(st.sampled_from([1, 2, 3, 5, 8, 14])), draw(st.sampled_from([1, 2, 4]))
    repeats = draw(st.sampled_from([1, 1, 2, 3]))
    shape = (n, c) if repeats == 1 else (n, c, repeats)
    if kind == "classes":
        shape = (*shape, 3)
    values = _predictions(g, kind, draw(st.sampled_from(list(VALUES))), shape)
    if draw(st.booleans()) and n > 2:
        values[1] = values[0]  # duplicated rows
    if draw(st.booleans()) and c > 1:
        values[:, 1] = values[:, 0]  # duplicated configurations
    _gaps(g, draw(st.sampled_from(["none", "none", "none", "cells", "rows", "column", "all"])), values)
    share = draw(st.sampled_from([0.5, 0.5, 0.1, 0.0]))
    labels: np.ndarray = (g.random(n) < share).astype(int)
    given: dict[str, Any] = {"kind": "probability" if kind == "classes" else kind}
    if kind == "classes":
        given["classes"], labels = ["x", "y", "z"], np.array(["x", "y", "z"])[g.integers(0, 3, n)]
    elif kind == "value":
        labels = VALUES[draw(st.sampled_from([name for name in VALUES if name != "infinite"]))](g, n)
    elif kind == "survival":
        labels, given = g.integers(1, 5, n).astype(float), {"kind": "score", "event": g.integers(0, 2, n)}
    elif kind == "score":
        given |= {"threshold": 0.0, "positive": 1}
    else:
        given |= {"positive": 1}
    given["weights"] = WEIGHTS[draw(st.sampled_from(list(WEIGHTS) + ["none"] * 4))](g, n)
    given["folds"] = _folds(g, draw(st.sampled_from(["none", "two", "two", "three", "one", "each"])), n, repeats)
    if draw(st.integers(0, 4)) == 0:
        given["groups"] = g.integers(0, 3, n)
    dtype = draw(st.sampled_from([float, float, np.float32]))
    with np.errstate(over="ignore"):
        return values.astype(dtype), {"labels": labels, **given}, kind


@st.composite
def cubes(draw: st.DrawFn) -> tuple[xr.DataArray, str] | None:
    """Draw a cube and one of its metrics; None where as_cube refused the data in our words."""
    values, given, kind = draw(arguments())
    try:
        cube = cs.as_cube(values, **given)
    except cs.InputError:
        return None
    if draw(st.integers(0, 4)) == 0:
        cube = xr.concat(
            [cube, cube[::-1].assign_coords(sample=cube["sample"])], dim="trial", coords="minimal", compat="override"
        )
    order = draw(st.permutations(cube.dims))
    cube = cube.transpose(*order)
    if draw(st.integers(0, 5)) == 0:
        cube = cube.chunk({"configuration": 1, "sample": -1})
    return cube, draw(st.sampled_from(METRICS[kind]))


def watch(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return what a call gives and our warnings; InputError gives None; anything else propagates, warnings included."""
    refusal: str | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", cs.CvstatsWarning)
        try:
            out = function()
        except cs.InputError as error:
            refusal = str(error)
            out = None
    assert refusal is None or len(refusal) > 20
    assert all(issubclass(item.category, cs.CvstatsWarning) for item in caught)
    return out, [str(item.message) for item in caught]


def unchanged(before: xr.DataArray, after: xr.DataArray) -> None:
    assert before.identical(after)
    assert before.dtype == after.dtype
    assert before.chunks == after.chunks


def sound(out: Any, notes: list[str], metric: cs.Metric, *, ranged: bool = True) -> None:
    """Check the laws of an estimate: in range, never silently NaN, ordered limits, win rates that add up."""
    if isinstance(out, xr.DataArray):
        out = out.to_dataset(name="estimate")
    estimate = np.asarray(out["estimate"], float)
    if np.isnan(estimate).any():
        assert notes, "NaN without a warning"
    seen = estimate[~np.isnan(estimate)]
    if ranged:
        slack = 1e-9
        assert np.all(seen >= metric.range[0] - slack)
        assert np.all(seen <= metric.range[1] + slack)
    if "conf_low" in out and "configuration" not in out["conf_low"].dims:
        low, high = np.asarray(out["conf_low"], float), np.asarray(out["conf_high"], float)
        assert np.isnan(low).tolist() == np.isnan(high).tolist()
        assert not np.any(low > high)
        if np.isnan(low).any():
            assert notes, "NaN limits without a warning"
    if "win_rate" in out:
        total = out["win_rate"].sum("configuration")
        assert bool(((np.abs(total - 1) < 1e-9) | (total == 0)).all())


def both(cube: xr.DataArray) -> dict[str, Any]:
    names = cube["configuration"].values
    return {"a": names[0], "b": names[-1]}


QUICK: dict[str, Any] = {"times": 40, "rng": 1}
ESTIMATES: dict[str, Callable[[xr.DataArray, str], Any]] = {
    "score": lambda c, m: cs.score(c, m),
    "score_by_fold": lambda c, m: cs.score(c, m, average="fold"),
    "cv": lambda c, m: cs.cv(c, m),
    "cv_by_fold": lambda c, m: cs.cv(c, m, average="fold"),
    "cvt": lambda c, m: cs.cvt(c, m),
    "cvt_one_se": lambda c, m: cs.cvt(c, m, select=cs.select_one_se),
    "cvm_cv": lambda c, m: cs.cvm_cv(c, m),
    "tt": lambda c, m: cs.tt(c, m),
    "bbc": lambda c, m: cs.bbc(c, m, **QUICK),
    "bbc_strata": lambda c, m: cs.bbc(c, m, strata="auto", ties="random", keep_draws=True, **QUICK),
    "bbcd": lambda c, m: cs.bbcd(c, m, min_predictions=2, **QUICK),
    "winner": lambda c, m: cs.winner(c, m, **QUICK),
    "winner_holdout": lambda c, m: cs.winner(c, m, regime="holdout", interval=cs.calibrated(safe_upper=True), **QUICK),
    "best_set": lambda c, m: cs.best_set(c, m, **QUICK),
    "prior_reweighted_cv": lambda c, m: cs.prior_reweighted_cv(c, m, prior=0.3, **QUICK),
    "classical_cv": lambda c, m: cs.classical_cv(c, m, **QUICK),
    "prior_curve": lambda c, m: cs.prior_curve(c, m, prior=[0.1, 0.9], **QUICK),
    "optimism_curve": lambda c, m: cs.optimism_curve(c, m, **QUICK),
    "winner_cut": lambda c, m: cs.winner(c, m, adjust=cs.cut("youden"), **QUICK),
    "bbc_recalibrate": lambda c, m: cs.bbc(c, m, adjust=cs.recalibrate("logistic"), **QUICK),
    "bbc_isotonic": lambda c, m: cs.bbc(c, m, adjust=cs.recalibrate("isotonic"), **QUICK),
    "bbc_ensemble": lambda c, m: cs.bbc(c, m, select=cs.ensemble(size=3), **QUICK),
    "winner_top_mean": lambda c, m: cs.winner(c, m, select=cs.top_mean(2), **QUICK),
    "bbc_fold": lambda c, m: cs.bbc(c, m, average="fold", **QUICK),
}
OTHERS: dict[str, Callable[[xr.DataArray, str], Any]] = {
    "check_cube": lambda c, m: cs.check_cube(c),
    "describe_cube": lambda c, m: cs.describe_cube(c),
    "bootstrap": lambda c, m: cs.bootstrap(c, 40, rng=1),
    "jackknife": lambda c, m: cs.jackknife(c),
    "score_draws": lambda c, m: cs.score_draws(c, m, cs.bootstrap(c, 40, rng=1)),
    "subsample": lambda c, m: cs.subsample(c, 40, rng=1),
    "select_and_judge": lambda c, m: cs.select_and_judge(c, m, choose=cs.bootstrap(c, 40, rng=1), rng=1),
    "drop_configurations": lambda c, m: cs.drop_configurations(c, m, **QUICK),
    "separate_cv": lambda c, m: cs.separate_cv(c, prior=0.5, **QUICK),
    "contrast": lambda c, m: cs.contrast(c, m, **both(c), **QUICK),
    "mcnemar_test": lambda c, m: cs.mcnemar_test(c, **both(c)),
    "delong_test": lambda c, m: cs.delong_test(c, **both(c)),
    "augment": lambda c, m: cs.augment(c, cs.cvt(c, m)),
    "tidy": lambda c, m: cs.tidy(cs.bbc(c, m, **QUICK)),
    "bind": lambda c, m: cs.bind(cs.cvt(c, m), cs.bbc(c, m, **QUICK)),
    "confint": lambda c, m: cs.confint(cs.bbc(c, m, keep_draws=True, **QUICK), level=0.9),
    "format_table": lambda c, m: cs.format_table(cs.bbc(c, m, **QUICK)),
    "cut": lambda c, m: cs.bbc(c, ["accuracy", "sensitivity"], by="auc", adjust=cs.cut(sensitivity=0.8), **QUICK),
    "shift_prior": lambda c, m: cs.bbc(c, m, adjust=cs.shift_prior({1: 0.1}), **QUICK),
    "as_adjustment": lambda c, m: cs.bbc(c, m, adjust=cs.as_adjustment(lambda y, p, w: lambda q: q), **QUICK),
    "as_mixture": lambda c, m: cs.bbc(c, m, select=cs.as_mixture(_even), **QUICK),
    "metric_set": lambda c, m: cs.winner(c, cs.metric_set(c), **QUICK),
    "precision_plan": lambda c, m: cs.precision_plan(c, m, n=[8, 80], **QUICK),
    "survival_auc": lambda c, m: cs.winner(c, cs.survival_auc(2), **QUICK),
    "survival_brier": lambda c, m: cs.winner(c, cs.survival_brier(2), **QUICK),
    "survival_observed_expected": lambda c, m: cs.winner(c, cs.survival_observed_expected(2), **QUICK),
    "truncated_concordance": lambda c, m: cs.winner(c, cs.truncated_concordance(2), **QUICK),
    "net_benefit": lambda c, m: cs.winner(c, cs.net_benefit(0.2), **QUICK),
    "sensitivity_at": lambda c, m: cs.winner(c, [cs.sensitivity_at(0.9), cs.sensitivity_at(0.5)], by=m, **QUICK),
    "specificity_at": lambda c, m: cs.winner(c, cs.specificity_at(0.9), **QUICK),
    "partial_auc": lambda c, m: cs.winner(c, cs.partial_auc(0, 0.2), **QUICK),
    "calibration": lambda c, m: cs.winner(c, ["calibration_slope", "observed_expected"], by=m, **QUICK),
    "roc_curve": lambda c, m: cs.roc_curve(c, **QUICK),
    "precision_recall_curve": lambda c, m: cs.precision_recall_curve(c, **QUICK),
    "calibration_curve": lambda c, m: cs.calibration_curve(c, **QUICK),
    "decision_curve": lambda c, m: cs.decision_curve(c, **QUICK),
    "at_prior": lambda c, m: cs.winner(c, cs.at_prior(m, {1: 0.2}), **QUICK),
    "recalibrate": lambda c, m: cs.cvt(c, m, adjust=cs.recalibrate("intercept")),
    "ensemble": lambda c, m: cs.contrast(c, m, a=cs.ensemble(size=2), b=cs.select_best, **QUICK),
    "top_mean": lambda c, m: cs.cvt(c, m, select=cs.top_mean(1)),
}


def _even(label: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.full(prediction.shape[1], 1 / prediction.shape[1])


@pytest.mark.parametrize("name", ESTIMATES)
@given(drawn=cubes())
@fuzzed
def test_estimates(name: str, drawn: tuple[xr.DataArray, str] | None) -> None:
    if drawn is None:
        return
    cube, metric = drawn
    before = cube.copy(deep=True)
    out, notes = watch(lambda: ESTIMATES[name](cube, metric))
    unchanged(before, cube)
    if out is not None:
        sound(out, notes, getattr(cs, metric), ranged=name != "tt")


@pytest.mark.parametrize("name", OTHERS)
@given(drawn=cubes())
@fuzzed
def test_other_functions(name: str, drawn: tuple[xr.DataArray, str] | None) -> None:
    if drawn is None:
        return
    cube, metric = drawn
    before = cube.copy(deep=True)
    watch(lambda: OTHERS[name](cube, metric))
    unchanged(before, cube)


@given(drawn=arguments())
@settings(fuzzed, max_examples=4 * EXAMPLES)
def test_as_cube_settles_or_refuses(drawn: tuple[np.ndarray, dict[str, Any], str]) -> None:
    values, given_, _ = drawn
    before = values.copy()
    out, _ = watch(lambda: cs.as_cube(values, **given_))
    assert np.array_equal(before, values, equal_nan=True)
    if out is not None:
        assert cs.check_cube(out) is out


@pytest.mark.parametrize("kind", [None, "label", "score", "probability", "value"])
@given(
    predictions=st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=2)), max_size=6
    ),
    labels=st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(-1, 2), st.floats(), st.text(max_size=2)), max_size=6
    ),
)
@settings(fuzzed, max_examples=3 * EXAMPLES)
def test_as_cube_on_anything(kind: str | None, predictions: list[Any], labels: list[Any]) -> None:
    watch(lambda: cs.as_cube(predictions, labels, kind=kind))


# --- tests of hypotheses
def _column(x: xr.DataArray, at: int) -> xr.DataArray:
    return x.isel(method=at)


TESTS: dict[str, Callable[[xr.DataArray], Any]] = {
    "t_test": lambda x: cs.t_test(x, "trial"),
    "t_test_paired": lambda x: cs.t_test(_column(x, 0), "trial", other=_column(x, -1)),
    "t_test_welch": lambda x: cs.t_test(_column(x, 0), "trial", other=_column(x, -1), paired=False),
    "corrected_t_test": lambda x: cs.corrected_t_test(x, "trial", test_fraction=0.2),
    "wilcoxon_test": lambda x: cs.wilcoxon_test(x, "trial"),
    "levene_test": lambda x: cs.levene_test(x, "trial", by="method"),
    "obrien_test": lambda x: cs.obrien_test(x, "trial", by="method"),
    "pitman_morgan_test": lambda x: cs.pitman_morgan_test(_column(x, 0), "trial", other=_column(x, -1)),
    "friedman_test": lambda x: cs.friedman_test(x, "trial", by="method", direction="minimize"),
    "nemenyi_test": lambda x: cs.nemenyi_test(x, "trial", by="method", direction="minimize"),
    "critical_difference": lambda x: cs.critical_difference(x, "trial", by="method", direction="minimize"),
    "p_adjust": lambda x: cs.p_adjust(x, "BH"),
    "bias_table": lambda x: cs.bias_table(x, 0.0, dim="trial"),
}


@st.composite
def tables(draw: st.DrawFn) -> xr.DataArray:
    """Draw numbers over methods and trials."""
    g = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2, 3, 8, 60])))
    values = np.asarray(VALUES[draw(st.sampled_from(list(VALUES)))](g, shape), float)
    if draw(st.integers(0, 2)) == 0:
        values[g.random(shape) < 0.3] = np.nan
    if draw(st.booleans()):
        values[0] = values[-1]
    if draw(st.integers(0, 3)) == 0:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    x = xr.DataArray(values, dims=("method", "trial"), coords={"method": [f"m{i}" for i in range(shape[0])]})
    return x.transpose(*draw(st.permutations(x.dims)))


@pytest.mark.parametrize("name", TESTS)
@given(x=tables())
@settings(fuzzed, max_examples=2 * EXAMPLES)
def test_tests_of_hypotheses(name: str, x: xr.DataArray) -> None:
    before = x.copy(deep=True)
    out, notes = watch(lambda: TESTS[name](x))
    unchanged(before, x)
    if out is None:
        return
    p = np.asarray(out if isinstance(out, xr.DataArray) else out["p_value"], float)
    assert np.all(np.isnan(p) | ((p >= 0) & (p <= 1)))
    if np.isnan(p).any() and name != "p_adjust":
        assert notes, "NaN without a warning"
