"""Cubes and checks that several test files use."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cvstats as cs

P = np.array([[0.9, 0.4, 0.6], [0.2, 0.7, 0.1], [0.8, 0.6, 0.3], [0.3, 0.1, 0.2]])
Y = np.array([1, 0, 1, 0])
BINARY = ("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "auc", "auc_ovr")
BINARY += ("auc_ovr_weighted", "average_precision", "brier", "log_loss", "smoothed_error_rate")
NUMBER = ("mse", "rmse", "mae", "r2")
EVERY = (*BINARY, *NUMBER, "concordance")


def binary(n=40, shape=(5,), seed=0, **arguments):
    g = np.random.default_rng(seed)
    y = np.arange(n) % 2
    p = np.clip(0.25 * y.reshape(-1, *[1] * len(shape)) + 0.75 * g.random((n, *shape)), 0.01, 0.99)
    return cs.as_cube(p, y, **arguments)


def number(n=40, shape=(5,), seed=0, **arguments):
    g = np.random.default_rng(seed)
    y = g.normal(size=n)
    return cs.as_cube(y.reshape(-1, *[1] * len(shape)) + g.normal(size=(n, *shape)), y, kind="value", **arguments)


def survival(n=40, shape=(5,), seed=0, **arguments):
    g = np.random.default_rng(seed)
    time = g.exponential(size=n).round(1)
    risk = -time.reshape(-1, *[1] * len(shape)) + g.normal(size=(n, *shape))
    return cs.as_cube(risk, time, event=g.integers(0, 2, n), kind="score", **arguments)


def cube_for(metric, **arguments):
    return (binary if metric in BINARY else number if metric in NUMBER else survival)(**arguments)


def refusal(function):
    """Return a check that the function raises our error with a text in it."""

    def refused(text, *args, **kwargs):
        with pytest.raises(cs.InputError, match=re.escape(text)):
            function(*args, **kwargs)

    return refused
