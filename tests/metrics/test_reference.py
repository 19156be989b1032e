"""Every metric against other people's software: scikit-learn, and R's pROC, survival and boot.

The values live beside the scripts that made them, ``tests/reference/metrics.py`` and ``metrics.R``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

HERE = Path(__file__).parents[1] / "reference"
PY = json.loads((HERE / "metrics.json").read_text())
R = json.loads((HERE / "metrics_r.json").read_text())


def close(found, expected, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-14)


def cube_of(name, weight="none", **arguments):
    data = PY[name]
    if name == "many":
        arguments = {"classes": [0, 1, 2, 3], **arguments}
    weights = None if weight == "none" else data["weight"][weight]
    return cs.as_cube(np.array(data["prediction"]), data["label"], weights=weights, **arguments)


CASES = [
    (name, weight, metric)
    for name in ("binary", "many", "number")
    for weight, values in PY[name]["scikit_learn"].items()
    for metric in values
]


@pytest.mark.parametrize(("name", "weight", "metric"), CASES)
def test_scikit_learn(name, weight, metric):
    close(cs.score(cube_of(name, weight), metric), PY[name]["scikit_learn"][weight][metric])


@pytest.mark.parametrize("metric", ["auc", "sensitivity", "specificity", "mcc", "smoothed_error_rate"])
def test_r_two_classes(metric):
    close(cs.score(cube_of("binary"), metric), R[metric])


def test_r_prior_error():
    close(cs.score(cube_of("binary"), cs.prior_error({0: 0.9, 1: 0.1})), R["prior_error"])
    close(cs.score(cube_of("binary", "real"), cs.prior_error(0.9)), R["prior_error_weighted"])
    close(cs.score(cube_of("binary", "real"), "smoothed_error_rate"), R["smoothed_error_rate_weighted"])


def test_r_hand_and_till():
    close(cs.auc(cube_of("many")), R["auc_many"])


@pytest.mark.parametrize("metric", ["r2", "rmse"])
def test_r_numbers(metric):
    close(cs.score(cube_of("number"), metric), R[metric])


@pytest.mark.parametrize("weight", ["none", "whole", "real"])
def test_r_concordance(weight):
    data = PY["survival"]
    weights = None if weight == "none" else data["weight"][weight]
    cube = cs.as_cube(np.array(data["risk"]), data["time"], event=data["event"], weights=weights, kind="score")
    close(cs.concordance(cube), R["concordance"][weight])


def test_r_concordance_of_predicted_times():
    data = PY["survival"]
    cube = cs.as_cube(np.array(data["risk"]), data["time"], event=data["event"], kind="value")
    close(cs.concordance(cube), R["concordance"]["time"])


def test_probabilities_and_hard_labels_agree():
    cube = cube_of("binary")
    hard = cs.as_cube((np.array(PY["binary"]["prediction"]) > 0.5).astype(int), PY["binary"]["label"])
    for metric in ("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc"):
        xr.testing.assert_equal(cs.score(hard, metric), cs.score(cube, metric))


def large_data():
    i = np.arange(100_000, dtype=np.int64)
    y = ((i * i % 1009 * 31 + i * 17) % 101 < 40).astype(int)
    return y, (i * 7919 % 5003 + 900 * y) / 5003, 1 + i % 4


class TestLarge:
    """1e5 samples with about twenty ties for every score."""

    @pytest.mark.slow
    def test_auc(self):
        y, score, weight = large_data()
        found = cs.auc(cs.as_cube(score, y, kind="score")).item()
        close(found, PY["large"]["auc"])
        close(found, R["large"])
        close(cs.auc(cs.as_cube(score, y, kind="score", weights=weight)).item(), PY["large"]["auc_weighted"])

    def test_average_precision(self):
        y, score, weight = large_data()
        close(cs.average_precision(cs.as_cube(score, y, kind="score")).item(), PY["large"]["average_precision"])
        weighted = cs.as_cube(score, y, kind="score", weights=weight)
        close(cs.average_precision(weighted).item(), PY["large"]["average_precision_weighted"])


class TestBoot:
    """The draws of R's boot, given as weights: the same statistic in every draw, and the same variance."""

    @pytest.mark.parametrize("metric", ["accuracy", "brier", "auc"])
    def test_statistics(self, metric):
        cube = cube_of("binary").isel(configuration=[0])
        counts = xr.DataArray(np.array(R["boot"]["counts"]), dims=("draw", "sample"))
        out = cs.select_and_judge(cube, metric, choose=counts, judge=counts, ties="first", rng=0)
        close(out["value"], R["boot"][metric])
        place = ["accuracy", "brier", "auc"].index(metric)
        close(out["score_variance"], [R["boot"]["variance"][place]], rtol=1e-10)
