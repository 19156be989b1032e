"""Laws of the metrics that clinical readers ask for, of survival and of curves: ties, gaps, weights, repeats."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

pytestmark = pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
LABELS = {name: {} for name in ("youden", "ppv", "npv", "precision", "recall", "kappa")}
LABELS |= {"positive_likelihood_ratio": {}, "negative_likelihood_ratio": {}}
RISKS = {"net_benefit": {"threshold": 0.3}, "observed_expected": {}, "ici": {}}
FITTED = {"calibration_slope": {}, "calibration_intercept": {}}
POINTS = {"partial_auc": {"low": 0.1, "high": 0.5}, "sensitivity_at": {"specificity": 0.8}}
POINTS |= {"specificity_at": {"sensitivity": 0.8}}
TIMES = {"uno_concordance": {}, "truncated_concordance": {"time": 6.0}, "survival_auc": {"time": 5.0}}
HORIZON = {"survival_brier": {"time": 5.0}, "survival_observed_expected": {"time": 5.0}}
METRICS: dict[str, dict[str, float]] = LABELS | RISKS | FITTED | POINTS | TIMES | HORIZON
every_metric = pytest.mark.parametrize("name", METRICS)
seeds = (0, 2)  # one digit, mostly ties; and twelve


def metric_of(name: str, scale: float = 1.0) -> Any:
    """Return the metric; `scale` is the unit of time."""
    arguments = {key: scale * value if key == "time" else value for key, value in METRICS[name].items()}
    return getattr(cs, name)(**arguments) if arguments else name


class Data(NamedTuple):
    """The arrays of a cube, so that laws can rearrange them before it is made."""

    label: np.ndarray
    event: np.ndarray
    prediction: np.ndarray

    def cube(self, name: str, rows: Any = slice(None), **arguments: Any) -> xr.DataArray:
        """Return the cube that a metric asks for."""
        p, label = self.prediction[rows], self.label[rows]
        if name in HORIZON or name in TIMES:
            arguments |= {"event": self.event[rows]}
        if name not in HORIZON:
            return cs.as_cube(p, label, kind="score" if name in TIMES else "probability", **arguments)
        array = xr.DataArray(p[..., None], dims=("sample", "configuration", "repeat", "horizon"))
        return cs.as_cube(array.assign_coords(horizon=[5.0]), label, kind="probability", **arguments)


def data_of(name: str, seed: int, gaps: bool = False) -> Data:
    """Return made-up data: few digits, so many ties; times tied with each other and with the horizon."""
    g = np.random.default_rng(seed)
    n, digits = 40, [1, 2, 12][seed % 3]
    p = np.clip(np.round(g.random((n, 3, 2)), digits), 0.02, 0.98)
    label: np.ndarray = np.arange(n) % 2
    if name in TIMES or name in HORIZON:
        label = np.round(g.exponential(5, n), seed % 2) + 1
        label[:2] = 5.0
    if gaps:
        p[g.random(p.shape) < 0.1] = np.nan
    return Data(label, g.integers(0, 3, n) > 0, p)


def value(cube: xr.DataArray, name: str, **arguments: Any) -> np.ndarray:
    """Return the scores of the configurations."""
    return np.asarray(cs.score(cube, metric_of(name), **arguments))


def assert_same(name: str, found: Any, expected: Any) -> None:
    """Fits agree to 1e-9, sums to 1e-12."""
    tolerance = 1e-9 if name in FITTED else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@every_metric
def test_the_order_of_samples_and_configurations_changes_nothing(name: str) -> None:
    for seed in seeds:
        d = data_of(name, seed, gaps=seed > 0)
        rows, columns = np.random.default_rng(9).permutation(40), [2, 0, 1]
        expected = value(d.cube(name), name)
        assert np.isfinite(expected).all()
        assert_same(name, value(d.cube(name, rows), name), expected)
        assert_same(name, value(d.cube(name).isel(configuration=columns), name), expected[columns])


@every_metric
def test_whole_weights_are_repeated_rows(name: str) -> None:
    for seed in seeds:
        d, weights = data_of(name, seed), np.random.default_rng(seed).integers(0, 4, 40)
        expected = value(d.cube(name, np.repeat(np.arange(40), weights)), name)
        assert_same(name, value(d.cube(name, weights=weights), name), expected)
        if name != "ici":  # its window holds two thirds of the rows, rounded down
            assert_same(name, value(d.cube(name, weights=0.375 * weights), name), expected)


@every_metric
def test_draws_count_as_weights(name: str) -> None:
    d = data_of(name, 1)
    cube = d.cube(name)
    draws = cs.bootstrap(cube, 5, rng=1)
    found = np.asarray(cs.score_draws(cube, metric_of(name), draws))
    expected = [value(d.cube(name, weights=np.asarray(counts)), name) for counts in draws]
    assert_same(name, found, expected)


@every_metric
def test_what_was_not_predicted_is_as_if_absent(name: str) -> None:
    for seed in seeds:
        d = data_of(name, seed)
        d.prediction[[3, 4, 11], 1], d.prediction[20] = np.nan, np.nan
        found = value(d.cube(name), name)
        assert_same(name, found[[0, 2]], value(d.cube(name, np.delete(np.arange(40), 20)), name)[[0, 2]])
        assert_same(name, found[1], value(d.cube(name, np.delete(np.arange(40), [3, 4, 11, 20])), name)[1])


@every_metric
def test_repeats_are_averaged(name: str) -> None:
    d = data_of(name, 2)
    one, two = (value(Data(d.label, d.event, d.prediction[:, :, [r]]).cube(name), name) for r in (0, 1))
    assert_same(name, value(d.cube(name), name), (one + two) / 2)


@pytest.mark.parametrize("name", [*LABELS, *RISKS, *FITTED, *POINTS])
def test_names_of_classes_change_nothing(name: str) -> None:
    d = data_of(name, 1)
    named = Data(np.array(["well", "ill"])[d.label], d.event, d.prediction).cube(name, positive="ill")
    np.testing.assert_array_equal(value(named, name), value(d.cube(name), name))


@pytest.mark.parametrize(
    ("name", "other", "turned"),
    [
        ("calibration_slope", "calibration_slope", lambda v: v),
        ("calibration_intercept", "calibration_intercept", lambda v: -v),
        ("ici", "ici", lambda v: v),
        ("kappa", "kappa", lambda v: v),
        ("youden", "youden", lambda v: v),
        ("ppv", "npv", lambda v: v),
        ("sensitivity_at", "specificity_at", lambda v: v),
        ("positive_likelihood_ratio", "negative_likelihood_ratio", lambda v: 1 / v),
    ],
)
def test_the_other_class_as_the_positive_one(name: str, other: str, turned: Any) -> None:
    """Seen from the other class: what is said of one is said of the other, turned round where it has a side."""
    d = data_of(name, 2)  # no prediction is at the threshold, where only one side is positive
    swapped = Data(1 - d.label, d.event, 1 - d.prediction)
    for column in (0, 1):
        this, that = (Data(x.label, x.event, x.prediction[:, :, [column]]) for x in (d, swapped))
        np.testing.assert_allclose(value(that.cube(other), other), turned(value(this.cube(name), name)), rtol=1e-9)


@pytest.mark.parametrize("name", [*POINTS, *TIMES])
def test_increasing_maps_leave_ranks_alone(name: str) -> None:
    d = data_of(name, 0)
    np.testing.assert_array_equal(
        value(Data(d.label, d.event, d.prediction**3).cube(name), name), value(d.cube(name), name)
    )


@pytest.mark.parametrize("name", [*TIMES, *HORIZON])
def test_the_unit_of_time_changes_nothing(name: str) -> None:
    d = data_of(name, 1)
    days = Data(2 * d.label, d.event, d.prediction).cube(name)
    if name in HORIZON:
        days = days.assign_coords(horizon=[10.0])
    assert_same(name, cs.score(days, metric_of(name, scale=2)), value(d.cube(name), name))


def test_worse_predictions_score_worse() -> None:
    """Every metric with a direction prefers the truth to noise."""
    g = np.random.default_rng(0)
    for name in METRICS:
        d = data_of(name, 2)
        early = d.label.max() - d.label if name in TIMES else d.label > 5 if name in HORIZON else d.label
        good = 0.15 + 0.4 * early / early.max() + 0.4 * g.random(40)
        cube = Data(d.label, d.event, np.stack([good, g.permutation(good)], axis=1)[:, :, None]).cube(name)
        metric = metric_of(name)
        direction = (getattr(cs, name) if isinstance(metric, str) else metric).direction
        better, worse = value(cube, name)
        if direction in ("maximize", "minimize"):
            assert (better > worse) == (direction == "maximize"), name


CURVES = ("roc_curve", "precision_recall_curve", "calibration_curve", "decision_curve")


@pytest.mark.parametrize("name", CURVES)
class TestCurves:
    def test_whole_weights_are_repeated_rows(self, name: str) -> None:
        d, weights = data_of("ici", 2), np.random.default_rng(3).integers(0, 4, 40)
        found = getattr(cs, name)(d.cube("ici", weights=weights), times=20, rng=1)["naive"]
        rows = getattr(cs, name)(d.cube("ici", np.repeat(np.arange(40), weights)), times=20, rng=1)["naive"]
        np.testing.assert_allclose(found, rows, atol=1e-9)

    def test_the_order_of_samples_and_configurations_changes_nothing(self, name: str) -> None:
        cube = data_of("ici", 2).cube("ici")
        draws, order = cs.bootstrap(cube, 20, rng=2), np.random.default_rng(4).permutation(40)
        expected = getattr(cs, name)(cube, draws=draws, rng=1)
        moved = getattr(cs, name)(
            cube.isel(sample=order, configuration=[1, 2, 0]), draws=draws.isel(sample=order), rng=1
        )
        for part in ("naive", "estimate", "conf_low", "conf_high"):
            np.testing.assert_allclose(moved[part], expected[part], atol=1e-9)

    def test_a_choice_between_the_same_predictions_is_not_optimistic(self, name: str) -> None:
        d = data_of("ici", 2)
        twice = Data(d.label, d.event, d.prediction[:, [0, 0]]).cube("ici")
        curve = getattr(cs, name)(twice, times=30, rng=1)
        np.testing.assert_allclose(curve["estimate"], curve["naive"], atol=1e-9)
