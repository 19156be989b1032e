"""The usual metrics of a kind of labels."""

import numpy as np
import pytest

import cvstats as cs


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression", "survival"])
def test_sets_hold_metrics(kind):
    names = cs.metric_set(kind)
    assert names
    assert names == [cs.metrics.get_metric(name).name for name in names]


def test_the_kind_of_a_cube_decides():
    labels, p = np.arange(12) % 2, np.linspace(0.05, 0.95, 24).reshape(12, 2)
    assert cs.metric_set(cs.as_cube(p, labels)) == cs.metric_set("binary")
    assert cs.metric_set(cs.as_cube(p, labels, kind="score")) == ["auc", "average_precision"]
    assert cs.metric_set(cs.as_cube(p, labels, kind="score", threshold=0.5)) == [
        name for name in cs.metric_set("binary") if name != "brier"
    ]
    assert cs.metric_set(cs.as_cube(p, labels + 0.5, kind="value")) == cs.metric_set("regression")
    assert cs.metric_set(cs.example_cube("iris"))[0] == "auc"
    survival = cs.as_cube(p, np.arange(1.0, 13), event=labels, kind="score")
    assert cs.metric_set(survival) == ["concordance"]


def test_a_set_is_judged_as_one_decision():
    cube = cs.example_cube().isel(configuration=slice(0, 133, 30), repeat=0)
    out = cs.winner(cube, cs.metric_set(cube), times=40, rng=1)
    assert out["metric"].values.tolist() == cs.metric_set("binary")
    assert out["selected"].ndim == 0


def test_unknown_set():
    with pytest.raises(cs.InputError, match=r"`what` must be one of 'binary'.*did you mean 'binary'"):
        cs.metric_set("binari")
