"""Data sets of the study of strange designs: a generator makes any number of cases, so the truth is on new ones.

A generator is ``make(n, rng) -> X, y``, with y of whole numbers for classes and of real ones for values; grouped
generators return the group too, and survival generators whether the event was seen. Real data are smoothed: a case is
a row of the table with noise of a quarter of each feature's standard deviation, so that new cases never run out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

Rng = np.random.Generator
Make = Callable[[int, Rng], tuple[np.ndarray, ...]]


def _odds(score: np.ndarray, rng: Rng) -> np.ndarray:
    """Return classes with these log odds."""
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(int)


def shifted(p: int, distance: float, informative: int) -> Make:
    """Two normal classes whose means differ in the first features."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, p))
        X[:, :informative] += y[:, None] * distance / np.sqrt(max(informative, 1))
        return X, y

    return make


def exclusive(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Exclusive or of the signs of two features, with three useless ones."""
    X = rng.normal(size=(n, 5))
    return X, ((X[:, 0] * X[:, 1] + 0.25 * rng.normal(size=n)) > 0).astype(int)


def moons(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Two half circles, one inside the other's opening."""
    y, angle = rng.integers(0, 2, n), np.pi * rng.random(n)
    X = np.stack([np.where(y, 1 - np.cos(angle), np.cos(angle)), np.where(y, 0.5 - np.sin(angle), np.sin(angle))], 1)
    return np.column_stack([X + 0.35 * rng.normal(size=X.shape), rng.normal(size=(n, 2))]), y


def quantiles(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Inside or outside the median sphere of five normal features, some labels flipped."""
    X = rng.normal(size=(n, 5))
    return X, (((X**2).sum(1) > 4.35) ^ (rng.random(n) < 0.08)).astype(int)


def blocks(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Two hundred features in correlated blocks of ten; two blocks matter."""
    common = rng.normal(size=(n, 20))
    X = 0.7 * np.repeat(common, 10, axis=1) + 0.7 * rng.normal(size=(n, 200))
    return X, _odds(1.3 * common[:, 0] - 1.3 * common[:, 1], rng)


def circles(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """One circle inside another, with noise."""
    y, angle = rng.integers(0, 2, n), 2 * np.pi * rng.random(n)
    X = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(y, 0.55, 1.0)[:, None]
    return np.column_stack([X + 0.22 * rng.normal(size=X.shape), rng.normal(size=(n, 1))]), y


def hastie(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Ten normal features, the class by their sum of squares (Hastie, Tibshirani, Friedman, formula 10.2)."""
    X = rng.normal(size=(n, 10))
    return X, ((X**2).sum(1) > 9.34).astype(int)


def bent(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Draw a logistic model with bent and crossed effects of five among eight features."""
    X = rng.uniform(-1, 1, size=(n, 8))
    return X, _odds(3 * X[:, 0] + 2 * np.sin(3 * X[:, 1]) + 3 * X[:, 2] * X[:, 3] + 2 * X[:, 4] ** 2 - 0.7, rng)


def tailed(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Draw a logistic model on features with t noise of two and a half degrees of freedom."""
    X = rng.standard_t(2.5, (n, 6))
    return X, _odds(1.2 * X[:, 0] - 0.8 * X[:, 1] + 0.5, rng)


def friedman_class(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Friedman's first surface above or below its median."""
    X, y = friedman1(n, rng)
    return X, (y > 14.4).astype(int)


def noise(p: int) -> Make:
    """Features that say nothing."""
    return lambda n, rng: (rng.normal(size=(n, p)), rng.integers(0, 2, n))


@cache
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    kind, _, which = name.partition("-")
    loaded = getattr(datasets, f"load_{kind}")()
    X, y = np.asarray(loaded.data, float), np.asarray(loaded.target)
    if which == "odd":
        y = y % 2
    elif which:
        kept = (y == int(which[0])) | (y == int(which[1]))
        X, y = X[kept], (y[kept] == int(which[1])).astype(int)
    return X[:, X.std(0) > 0], y.astype(float) if kind == "diabetes" else y


def real(name: str) -> Make:
    """Return a table of scikit-learn, smoothed."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        X, y = _table(name)
        rows = rng.integers(0, len(y), n)
        return X[rows] + 0.25 * X.std(0) * rng.normal(size=(n, X.shape[1])), y[rows]

    return make


def three(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Three normal classes in a triangle."""
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 5))
    X[:, :2] += 1.5 * np.array([[0, 0], [1, 0], [0.5, 0.9]])[y]
    return X, y


def ordinal(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Three steps of a noisy linear score, the highest rarest."""
    X = rng.normal(size=(n, 6))
    return X, np.digitize(X[:, 0] + 0.7 * X[:, 1] + 0.8 * rng.normal(size=n), [0.0, 1.2])


def linear(p: int, draw: Callable[[Rng, int], np.ndarray]) -> Make:
    """Four of p features with linear effects, and noise of any kind."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        X = rng.normal(size=(n, p))
        return X, X[:, :4] @ np.array([1.5, 1.0, -1.0, 0.5]) + draw(rng, n)

    return make


def wavy(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Draw a smooth curved surface."""
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)


def friedman1(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Friedman's first surface."""
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + 2 * rng.normal(size=n)


def _circuit(n: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(n, 4)) * [100, 520 * np.pi, 1, 10] + [0, 40 * np.pi, 0, 1]
    return X, X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])


def friedman2(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Friedman's second surface, the impedance of a circuit."""
    X, reactance = _circuit(n, rng)
    return X, np.hypot(X[:, 0], reactance) / 100 + 1.2 * rng.normal(size=n)


def friedman3(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Friedman's third surface, the phase of a circuit."""
    X, reactance = _circuit(n, rng)
    return X, np.arctan2(reactance, X[:, 0]) + 0.15 * rng.normal(size=n)


def block_value(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Two hundred features in correlated blocks, of which two matter, and a number to predict."""
    common = rng.normal(size=(n, 20))
    X = 0.7 * np.repeat(common, 10, axis=1) + 0.7 * rng.normal(size=(n, 200))
    return X, common[:, 0] - common[:, 1] + rng.normal(size=n)


def lognormal(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Draw a linear model with skewed noise of a long tail."""
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] + 0.5 * X[:, 1] + np.exp(rng.normal(size=n))


def survival(p: int, shape: float, bend: bool) -> Make:
    """Weibull times of a linear or bent predictor, about four in ten censored."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        X = rng.normal(size=(n, p))
        risk = X[:, 0] ** 2 - 1 + X[:, 1] if bend else 0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.4 * X[:, 2]
        time = rng.weibull(shape, n) * np.exp(-risk)
        end = rng.exponential(2.0, n)
        return X, np.minimum(time, end) + 1e-6, (time <= end).astype(int)

    return make


def lifetimes(p: int) -> Make:
    """Weibull times that no feature has to do with."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        time, end = rng.weibull(1.2, n), rng.exponential(2.0, n)
        return rng.normal(size=(n, p)), np.minimum(time, end) + 1e-6, (time <= end).astype(int)

    return make


def grouped(size: int, within: float, p: int = 6) -> Make:
    """Return groups whose members share part of their features and of what else decides their class."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        group = np.arange(n) // size
        share = rng.normal(size=(n // size + 1, p + 1))[group]
        X = np.sqrt(within) * share[:, :p] + np.sqrt(1 - within) * rng.normal(size=(n, p))
        return X, _odds(1.3 * X[:, 0] + 0.9 * X[:, 1] + 0.8 * share[:, p], rng), group

    return make


def spiral(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Two arms of a spiral, with three useless features."""
    y, turn = rng.integers(0, 2, n), rng.uniform(0.6, 3.6, n)
    arm = np.stack([turn * np.cos(2 * turn + np.pi * y), turn * np.sin(2 * turn + np.pi * y)], 1)
    return np.column_stack([arm + 0.3 * rng.normal(size=arm.shape), rng.normal(size=(n, 3))]), y


def board(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Three by three squares of alternating classes, with two useless features and a few labels flipped."""
    X = rng.uniform(0, 3, size=(n, 4))
    return X, ((X[:, :2].astype(int).sum(1) % 2) ^ (rng.random(n) < 0.05)).astype(int)


def words(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Count sixty words, twelve of which are more frequent in one class."""
    y = rng.integers(0, 2, n)
    rate = np.full((2, 60), 0.7)
    rate[0, :6], rate[1, 6:12] = 1.5, 1.5
    return np.sqrt(rng.poisson(rate[y])), y


def factors(noise: float, cut: bool) -> Make:
    """Eighty features that show five hidden factors; two of them make a number, or (cut) a class."""
    loading = np.random.default_rng(11).normal(size=(5, 80))

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        hidden = rng.normal(size=(n, 5))
        y = hidden[:, 0] + hidden[:, 1] + noise * rng.normal(size=n)
        return hidden @ loading + 2.0 * rng.normal(size=(n, 80)), (y > 0).astype(int) if cut else y

    return make


def additive(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Sum of four curves of twelve even features."""
    X = rng.uniform(-1, 1, size=(n, 12))
    y = 2 * np.sin(4 * X[:, 0]) + 3 * np.abs(X[:, 1]) + np.exp(X[:, 2]) + 1.5 * np.cos(5 * X[:, 3])
    return X, y + 0.6 * rng.normal(size=n)


def sectors(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Three classes by the angle in a plane, twisted with the distance from its middle; three useless features."""
    X = rng.normal(size=(n, 5))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.8 * np.hypot(X[:, 0], X[:, 1]) + 0.25 * rng.normal(size=n)
    return X, (angle // (2 * np.pi / 3)).astype(int) % 3


def wound(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Where on a roll wound up in three dimensions a case lies, with a useless feature."""
    turn, height = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n), rng.uniform(0, 10, n)
    X = np.stack([turn * np.cos(turn), height, turn * np.sin(turn), rng.normal(size=n)], 1)
    return X + 0.5 * rng.normal(size=X.shape), turn + 0.3 * height + 0.5 * rng.normal(size=n)


def ringnorm(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Return a narrow normal class off the middle of a wide one, in eight features (Breiman 1996)."""
    y = rng.integers(0, 2, n)
    return np.where(y == 1, 2 / np.sqrt(8), 0.0)[:, None] + np.where(y == 1, 1, 2)[:, None] * rng.normal(size=(n, 8)), y


def threenorm(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Return two normal heaps and a third between them, in ten features (Breiman 1996)."""
    y, side = rng.integers(0, 2, n), rng.choice([-1.0, 1.0], n)
    signs = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)
    middle = np.where(y[:, None] == 1, side[:, None], signs) * 2 / np.sqrt(10)
    return middle + rng.normal(size=(n, 10)), y


def waveform(classes: int) -> Make:
    """Return mixtures of two of three triangular waves at 21 points, with noise (Breiman and others 1984)."""
    peaks = np.array([11, 15, 7])
    waves = np.maximum(6 - np.abs(np.arange(1, 22) - peaks[:, None]), 0)

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        y, share = rng.integers(0, classes, n), rng.random((n, 1))
        one, other = waves[np.array([0, 0, 1])[y]], waves[np.array([1, 2, 2])[y]]
        return share * one + (1 - share) * other + rng.normal(size=(n, 21)), y

    return make


def planted(p: int, useful: int, strength: float) -> Make:
    """Return many features, a few of which matter, in pairs one of which masks the other; some labels are flipped."""

    def make(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
        X = rng.normal(size=(n, p))
        X[:, 1:useful:2] += 0.8 * X[:, 0 : useful - 1 : 2]
        score = strength * X[:, :useful] @ np.where(np.arange(useful) % 2 == 0, 1.0, -0.7)
        return X, (score + rng.normal(size=n) > 0).astype(int) ^ (rng.random(n) < 0.1)

    return make


def product(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Return a number that products of features make, with t noise of five degrees of freedom."""
    X = rng.uniform(0, 1, size=(n, 10))
    y = 8 * X[:, 0] * X[:, 1] + 6 * X[:, 2] * (X[:, 3] > 0.5) + 4 * np.sqrt(X[:, 4])
    return X, y + 0.8 * rng.standard_t(5, n)


def ramp(n: int, rng: Rng) -> tuple[np.ndarray, ...]:
    """Return a number from six of a hundred features that are correlated with their neighbours."""
    X = rng.normal(size=(n, 101))
    X = 0.6 * X[:, 1:] + 0.8 * X[:, :-1]
    return X, X[:, 5:65:10].sum(1) + 2.0 * rng.normal(size=n)
