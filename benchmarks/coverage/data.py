"""Data for the coverage study: generators with unlimited new cases, and real data with a large remainder.

A source is ``source(n, rng) -> X, y, Z, t``: a training set of n cases, and cases for the truth. Classification
training sets hold at least six cases of each class (they are drawn again otherwise).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

Source = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
NEW_CASES = 3000
LEAST = 6


def generated(make: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]) -> Source:
    """Return a source from a generator of cases."""

    def source(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        X, y = make(n, rng)
        while y.dtype.kind == "i" and min(y.sum(), n - y.sum()) < LEAST:
            X, y = make(n, rng)
        return (X, y, *make(NEW_CASES, rng))

    return source


def shifted(
    p: int, distance: float, informative: int, share: float = 0.5, tail: float = 0.0, spread: float = 1.0
) -> Source:
    """Two classes with shifted means; `tail` degrees of freedom (0 = normal), class 1 `spread` times as wide."""
    shift = np.zeros(p)
    shift[:informative] = distance / np.sqrt(max(informative, 1))

    def make(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        y = (rng.random(n) < share).astype(int)
        noise = rng.standard_t(tail, (n, p)) / np.sqrt(3) if tail else rng.normal(size=(n, p))
        return noise * np.where(y == 1, spread, 1.0)[:, None] + y[:, None] * shift, y

    return generated(make)


@generated
def exclusive(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw the exclusive or of two signs, with noise."""
    X = rng.normal(size=(n, 4))
    return X, ((X[:, 0] * X[:, 1] + 0.25 * rng.normal(size=n)) > 0).astype(int)


@generated
def circle(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw cases inside or outside a circle, with noise and one useless feature."""
    X = rng.normal(size=(n, 3))
    return X, ((X[:, 0] ** 2 + X[:, 1] ** 2 + 0.7 * rng.normal(size=n)) > 1.6).astype(int)


@generated
def additive(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a logistic model with bent and crossed effects of five among ten features."""
    X = rng.uniform(-1, 1, size=(n, 10))
    score = 3 * X[:, 0] + 2 * np.sin(3 * X[:, 1]) + 3 * X[:, 2] * X[:, 3] + 2 * X[:, 4] ** 2 - 0.7
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


@generated
def mixture(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw Ripley's mixture: each class two normal clouds in the plane."""
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    y, cloud = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return centres[y, cloud] + rng.normal(size=(n, 2)) * np.sqrt(0.03), y


@generated
def linear_value(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a linear model with four of twelve features."""
    X = rng.normal(size=(n, 12))
    return X, X[:, :4] @ np.array([1.5, 1.0, -1.0, 0.5]) + 1.5 * rng.normal(size=n)


@generated
def bent_value(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a smooth curved surface."""
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)


@generated
def friedman_value(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw Friedman's first surface."""
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.normal(size=n) * 2


@generated
def heavy_value(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a linear model with heavy-tailed noise (t on 4 degrees of freedom)."""
    X = rng.normal(size=(n, 8))
    return X, X[:, 0] - X[:, 1] + rng.standard_t(4, n)


@cache
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    loaded = getattr(datasets, "load_" + name.split("-")[0])()
    X, y = np.asarray(loaded.data, float), np.asarray(loaded.target)
    if name == "wine-1":
        y = (y == 1).astype(int)
    elif name == "digits-parity":
        y = (y % 2).astype(int)
    elif name == "digits-8":
        y = (y == 8).astype(int)
    elif name == "digits-38":
        kept = (y == 3) | (y == 8)
        X, y = X[kept], (y[kept] == 8).astype(int)
    elif name == "breast_cancer":
        y = y.astype(int)
    return X, y if name != "diabetes" else y.astype(float)


def real(name: str) -> Source:
    """Return a source that samples a data set without replacement; the truth is on the remainder."""

    def source(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        X, y = _table(name)
        while True:
            order = rng.permutation(len(y))
            taken, rest = order[:n], order[n:]
            if y.dtype.kind == "f" or min(y[taken].sum(), n - y[taken].sum()) >= LEAST:
                return X[taken], y[taken], X[rest], y[rest]

    return source
