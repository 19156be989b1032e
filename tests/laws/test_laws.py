"""Laws that every metric obeys, on cubes that hypothesis makes up: with ties, gaps, weights, repeats and folds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import cvstats as cs
from cvstats.metrics import scoring as _scoring

CLASSES = ("a", "b", "c")
BINARY = ("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "prior_error")
BINARY += ("auc", "auc_ovr", "auc_ovr_weighted", "average_precision", "brier", "log_loss", "smoothed_error_rate")
MANY = ("accuracy", "error_rate", "balanced_accuracy", "f1", "mcc", "prior_error", "auc", "auc_ovr", "auc_ovr_weighted")
MANY += ("average_precision", "brier", "log_loss")
CASES = [("binary", m) for m in BINARY] + [("many", m) for m in MANY]
CASES += [("number", m) for m in ("mse", "rmse", "mae", "r2")] + [("survival", "concordance")]
RANK = [case for case in CASES if case[1].startswith(("auc", "average_precision", "concordance"))]
every_metric = pytest.mark.parametrize(("kind", "name"), CASES)
laws = settings(max_examples=5, deadline=None)


@dataclass
class Data:
    """The arrays of a cube, so that laws can rearrange them before it is made."""

    kind: str
    label: np.ndarray
    prediction: np.ndarray
    event: np.ndarray
    fold: np.ndarray
    extra: dict = field(default_factory=dict)

    def cube(self, rows=None, columns=None, **arguments):
        rows = np.arange(len(self.label)) if rows is None else rows
        columns = np.arange(self.prediction.shape[1]) if columns is None else columns
        options = {
            "binary": {"kind": "probability"},
            "many": {"kind": "probability", "classes": CLASSES},
            "number": {"kind": "value"},
            "survival": {"kind": "score", "event": self.event[rows]},
        }[self.kind]
        p = self.prediction[rows][:, columns]
        names = [f"c{j}" for j in columns]
        return cs.as_cube(p, self.label[rows], folds=self.fold[rows], configurations=names, **options, **arguments)


@st.composite
def data_for(draw, kind, gaps=False):
    g = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, r = draw(st.integers(6, 24)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    digits = draw(st.sampled_from([1, 2, 12]))  # one digit: mostly ties
    y, event = np.arange(n) % (3 if kind == "many" else 2), g.integers(0, 2, n)
    event[:2] = 1
    p = g.random((n, m, r))
    if kind == "binary":
        p = np.clip(np.round(p, digits), 0.1, 0.9)
    elif kind == "many":
        raw = np.round(g.random((n, m, r, 3)), digits) + 0.1
        p, y = raw / raw.sum(axis=-1, keepdims=True), np.array(CLASSES)[y]
    else:
        y = np.round(10 * g.normal(size=n) ** 2, digits) + (np.arange(n) == 1)
        p = np.round(10 * p, digits)
    if gaps:
        p[g.random((n, m, r)) < 0.2] = np.nan
    order = g.permutation(n)
    y, p, event = y[order], p[order], event[order]
    return Data(kind, y, p, event, g.permutation(np.arange(n) % 2))


def metric_of(kind, name):
    if name != "prior_error":
        return name
    return cs.prior_error({"a": 0.5, "b": 0.3, "c": 0.2} if kind == "many" else {0: 0.9, 1: 0.1})


def value(cube, kind, name, **arguments):
    """Return the scores; degenerate made-up data may be undefined, which is not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.CvstatsWarning)
        return cs.score(cube, metric_of(kind, name), **arguments).values


@every_metric
@laws
@given(data=st.data())
def test_permuting_samples_changes_nothing(kind, name, data):
    d = data.draw(data_for(kind, gaps=data.draw(st.booleans())))
    rows = np.random.default_rng(0).permutation(len(d.label))
    cubes = d.cube(rows), d.cube()
    for average in ("pooled", "fold"):
        found, expected = (value(cube, kind, name, average=average) for cube in cubes)
        if name == "average_precision":  # a sum of quotients
            np.testing.assert_allclose(found, expected, rtol=1e-14)
        else:
            np.testing.assert_array_equal(found, expected)


@every_metric
@laws
@given(data=st.data())
def test_permuting_configurations_permutes_the_scores(kind, name, data):
    d = data.draw(data_for(kind, gaps=data.draw(st.booleans())))
    columns = np.random.default_rng(0).permutation(d.prediction.shape[1])
    cube, other = d.cube(), d.cube(columns=columns)
    for average in ("pooled", "fold"):
        expected = value(cube, kind, name, average=average)[columns]
        np.testing.assert_array_equal(value(other, kind, name, average=average), expected)


@every_metric
@laws
@given(data=st.data())
def test_whole_weights_are_repeated_rows_exactly(kind, name, data):
    d = data.draw(data_for(kind))
    n = len(d.label)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)))
    rows = np.repeat(np.arange(n), weights)
    cubes = d.cube(weights=weights), d.cube(rows)
    for average in ("pooled", "fold"):
        if average == "fold" and len(set(d.fold[rows])) < 2:
            continue  # a fold that has weight zero throughout has no rows to repeat
        found, expected = (value(cube, kind, name, average=average) for cube in cubes)
        if name == "average_precision":
            np.testing.assert_allclose(found, expected, rtol=1e-14)
        else:
            np.testing.assert_array_equal(found, expected)


@every_metric
@laws
@given(data=st.data(), factor=st.sampled_from([0.125, 3.0, 1e6]))
def test_only_the_ratio_of_weights_matters(kind, name, data, factor):
    d = data.draw(data_for(kind))
    weights = np.random.default_rng(0).exponential(size=len(d.label)) + 0.1
    found = value(d.cube(weights=weights * factor), kind, name)
    np.testing.assert_allclose(found, value(d.cube(weights=weights), kind, name), rtol=1e-11, atol=1e-13)
    even = np.full(len(d.label), factor)
    np.testing.assert_allclose(
        value(d.cube(weights=even), kind, name), value(d.cube(), kind, name), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize(("kind", "name"), RANK)
@laws
@given(data=st.data())
def test_increasing_maps_leave_rank_metrics_alone(kind, name, data):
    d = data.draw(data_for(kind, gaps=data.draw(st.booleans())))
    cube = d.cube().assign_coords(kind="score")
    names, places = np.unique(cube.values, return_inverse=True)
    steps = np.cumsum(np.random.default_rng(0).exponential(size=len(names))) - 5.0
    steps[np.isnan(names)] = np.nan
    moved = cube.copy(data=steps[places].reshape(cube.shape))
    np.testing.assert_array_equal(value(moved, kind, name), value(cube, kind, name))


@pytest.mark.parametrize(("kind", "name"), [("binary", "auc"), ("survival", "concordance")])
@laws
@given(data=st.data())
def test_turning_the_scores_around_mirrors_rank_metrics(kind, name, data):
    cube = data.draw(data_for(kind)).cube().assign_coords(kind="score")
    found = value(cube.copy(data=-cube.values), kind, name)
    np.testing.assert_allclose(found, 1 - value(cube, kind, name), atol=1e-15)


@every_metric
@laws
@given(data=st.data())
def test_missing_samples_are_as_if_absent(kind, name, data):
    d = data.draw(data_for(kind))
    keep = np.sort(np.random.default_rng(0).permutation(len(d.label))[:-2])
    gone = np.setdiff1d(np.arange(len(d.label)), keep)
    expected = value(d.cube(keep), kind, name)
    d.prediction[gone] = np.nan
    np.testing.assert_allclose(value(d.cube(), kind, name), expected, rtol=1e-12, atol=1e-13)


@every_metric
@laws
@given(data=st.data())
def test_identical_repeats_change_nothing(kind, name, data):
    d = data.draw(data_for(kind))
    once = d.cube().isel(repeat=[0])
    thrice = once.isel(repeat=[0, 0, 0]).assign_coords(repeat=[0, 1, 2])
    for average in ("pooled", "fold"):
        found = value(thrice, kind, name, average=average)
        np.testing.assert_allclose(found, value(once, kind, name, average=average), rtol=1e-12, atol=1e-13)


@every_metric
@laws
@given(data=st.data())
def test_renumbering_folds_or_repeats_changes_nothing(kind, name, data):
    d = data.draw(data_for(kind, gaps=data.draw(st.booleans())))
    g = np.random.default_rng(0)
    repeats = d.prediction.shape[2]
    d.fold = np.stack([g.permutation(d.fold) for _ in range(repeats)], axis=1)  # each repeat has folds of its own
    cube = d.cube()
    each = np.stack([g.permutation(2) for _ in range(repeats)], axis=1)  # other numbers in every repeat
    folds = [np.take_along_axis(each, d.fold, axis=0), np.array([7, 2])[d.fold], np.array(["z", "a"])[d.fold]]
    others = [cube.assign_coords(fold=(("sample", "repeat"), fold)) for fold in folds]
    others.append(cube.isel(repeat=g.permutation(repeats)))
    for average in ("pooled", "fold"):
        expected = value(cube, kind, name, average=average)
        for other in others:
            found = value(other, kind, name, average=average)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", BINARY)
@laws
@given(data=st.data(), gaps=st.booleans())
def test_renumbering_folds_and_partners_changes_nothing_or_is_refused(name, data, gaps):
    """Class 0 has three folds, which are the partners of class 1; class 1 has two, the partners of class 0."""
    d = data.draw(data_for("binary"))
    g = np.random.default_rng(0)
    n, m, _ = d.prediction.shape
    first = d.label == 0
    values = np.round(g.random((n, m, 3)), data.draw(st.sampled_from([1, 12])))
    values[first, :, 2] = np.nan
    if gaps:
        values[g.random(values.shape) < 0.1] = np.nan
    fold = np.where(first, np.cumsum(first) % 3, np.cumsum(~first) % 2)

    def outcome(values, fold, partners=(0, 1, 2)):
        array = xr.DataArray(values, dims=("sample", "configuration", "partner"))
        array = array.assign_coords(fold=("sample", fold), partner=[0, 1, 2]).isel(partner=list(partners))
        cube = cs.as_cube(array, d.label, kind="probability")
        try:
            return value(cube, "binary", name)
        except cs.InputError:
            return np.array("refused")

    expected = outcome(values, fold)
    for order in ([2, 0, 1], [1, 0, 2], [0, 2, 1]):
        other = np.where(first[:, None, None], values[..., [1, 0, 2]], values[..., order])
        renumbered = np.where(first, np.argsort(order)[fold], np.array([1, 0, 2])[fold])
        np.testing.assert_array_equal(outcome(other, renumbered), expected)
        np.testing.assert_array_equal(outcome(values, fold, order), expected)


@every_metric
@laws
@given(data=st.data())
def test_a_dim_of_length_one_changes_nothing(kind, name, data):
    one = data.draw(data_for(kind)).cube().isel(repeat=0, drop=True)
    for dim in ("repeat", "dataset"):
        found = value(one.expand_dims(dim), kind, name)
        np.testing.assert_array_equal(found.ravel(), value(one, kind, name))
    alone = [value(one.isel(configuration=[j]), kind, name)[0] for j in range(one.sizes["configuration"])]
    np.testing.assert_array_equal(value(one, kind, name), alone)


@every_metric
@laws
@given(data=st.data())
def test_blocks_and_dim_order_change_nothing(kind, name, data):
    cube = data.draw(data_for(kind, gaps=data.draw(st.booleans()))).cube()
    expected = {average: value(cube, kind, name, average=average) for average in ("pooled", "fold")}
    turned = cube.transpose(*reversed(cube.dims))
    before = _scoring.BLOCK
    try:
        _scoring.BLOCK = 1
        for average, numbers in expected.items():
            np.testing.assert_array_equal(value(cube, kind, name, average=average), numbers)
            np.testing.assert_array_equal(value(turned, kind, name, average=average), numbers)
    finally:
        _scoring.BLOCK = before


@every_metric
@laws
@given(data=st.data())
def test_inputs_are_not_mutated(kind, name, data):
    cube = data.draw(data_for(kind, gaps=data.draw(st.booleans()))).cube()
    before = cube.copy(deep=True)
    for average in ("pooled", "fold"):
        value(cube, kind, name, average=average)
    xr.testing.assert_identical(cube, before)


@every_metric
@laws
@given(data=st.data())
def test_values_stay_in_range(kind, name, data):
    found = value(data.draw(data_for(kind, gaps=data.draw(st.booleans()))).cube(), kind, name)
    low, high = cs.prior_error(0.5).range if name == "prior_error" else getattr(cs, name).range
    assert (np.isnan(found) | ((found >= low - 1e-12) & (found <= high + 1e-12))).all()


class TestSelection:
    @laws
    @given(data=st.data(), seed=st.integers(0, 99))
    def test_flipping_the_direction_flips_the_selection(self, data, seed):
        cube = data.draw(data_for("number")).cube()

        def loss(label, prediction, weight):
            return float(np.average(np.abs(label - prediction), weights=weight))

        def gain(label, prediction, weight):
            return -loss(label, prediction, weight)

        draws = cs.bootstrap(cube, 8, rng=seed)
        options = {"choose": draws, "ties": "random", "rng": seed}
        least = cs.select_and_judge(cube, cs.as_metric(loss, direction="minimize"), **options)
        most = cs.select_and_judge(cube, cs.as_metric(gain, direction="maximize"), **options)
        np.testing.assert_array_equal(least["selected"], most["selected"])
        np.testing.assert_array_equal(least["value"], -most["value"])
        worst = cs.select_and_judge(cube, cs.as_metric(loss, direction="maximize"), **options)
        assert (worst["win_rate"].where(least["win_rate"] == 1, 0) < 1).all() or cube.sizes["configuration"] == 1

    @laws
    @given(scores=st.lists(st.floats(-5, 5) | st.just(np.nan), min_size=1, max_size=8))
    def test_select_best_by_direction(self, scores):
        scores = np.array(scores)
        up = cs.select_best(scores, direction="maximize")
        assert up == cs.select_best(-scores, direction="minimize")
        if not np.isnan(scores).all():
            assert scores[up] == np.nanmax(scores)
            assert up == np.flatnonzero(scores == np.nanmax(scores))[0]

    @pytest.mark.parametrize(("up", "down"), [("accuracy", "error_rate"), ("r2", "mse")])
    @laws
    @given(data=st.data(), seed=st.integers(0, 99))
    def test_mirror_metrics_select_the_same(self, up, down, data, seed):
        cube = data.draw(data_for("binary" if up == "accuracy" else "number")).cube()
        draws = cs.bootstrap(cube, 16, rng=seed)
        first, second = (cs.select_and_judge(cube, m, choose=draws, ties="random", rng=seed) for m in (up, down))
        both = first["usable"].values & second["usable"].values
        np.testing.assert_array_equal(first["selected"].values[both], second["selected"].values[both])


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("average", ["pooled", "fold"])
@pytest.mark.parametrize("configurations", [1, 3])
@pytest.mark.parametrize("metric", ["balanced_accuracy", "mcc", "f1", "auc", "brier"])
def test_data_sets_with_labels_and_repeats_of_their_own(metric, configurations, average, gaps):
    """Stacked, they score as each alone."""
    parts = []
    for seed in (1, 2):
        g = np.random.default_rng(seed)
        y = np.concatenate([np.arange(8) % 2, g.integers(0, 2, 16)])
        values = 0.7 * g.random((24, configurations, 2)) + 0.3 * y[:, None, None]
        folds = np.stack([np.arange(24) // 2 % 3, np.arange(24) % 3], axis=1)
        parts.append(cs.as_cube(values, y, folds=folds, kind="probability"))
        if gaps:
            parts[-1][3, 0, 0] = np.nan
    stacked = cs.score(xr.concat(parts, dim="trial", coords="different", compat="equals"), metric, average=average)
    for trial, part in enumerate(parts):
        np.testing.assert_array_equal(stacked.isel(trial=trial).values, cs.score(part, metric, average=average).values)
