"""Kernel ridge regression over a grid of tuning values, cross-validated in closed form (numpy only)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class Machine:
    """Kernel ridge regression f(x) = sum_i a_i exp(-eta |x_i - x|^2) + b for one eta and all `ridge` values at once.

    (a, b) solve C (a, b) = (y, 0) with C = [[K + ridge I, 1], [1', 0]]. Leaving out the samples F changes the
    predictions of F to y_F - (C^-1_FF)^-1 a_F, so no model is ever refitted. One eigendecomposition of K serves every
    ridge value.
    """

    def __init__(self, x: Floats, y: Floats, eta: float, ridge: Floats) -> None:
        self.x, self.y, self.eta = x, y, eta
        values, self.vectors = np.linalg.eigh(rbf(x, x, eta))
        self.inverse = 1 / (values[:, None] + ridge)  # (eigenvalue, ridge)
        ones = self.vectors.sum(0)
        self.border = self.vectors @ (ones[:, None] * self.inverse)  # (K + ridge I)^-1 1
        self.total = self.border.sum(0)
        self.bias = self.border.T @ y / self.total
        self.weights = self.vectors @ ((self.vectors.T @ y)[:, None] * self.inverse) - self.border * self.bias

    def predict(self, x: Floats) -> Floats:
        """Return f at new points (point, ridge)."""
        return np.asarray(rbf(x, self.x, self.eta) @ self.weights + self.bias)

    def leave_one_out(self) -> Floats:
        """Return each sample's prediction by the model trained on all others (sample, ridge)."""
        diagonal = self.vectors**2 @ self.inverse - self.border**2 / self.total
        return np.asarray(self.y[:, None] - self.weights / diagonal)

    def leave_out(self, rows: Ints) -> Floats:
        """Return the predictions of `rows` by the model trained on all other samples (row, ridge)."""
        part, border = self.vectors[rows], self.border[rows]
        block = np.einsum("ie,el,je->lij", part, self.inverse, part, optimize=True)
        block -= border.T[:, :, None] * border.T[:, None, :] / self.total[:, None, None]
        residual = np.linalg.solve(block, self.weights[rows].T[..., None])[..., 0]
        return np.asarray(self.y[rows, None] - residual.T)

    def cross_validate(self, fold: Ints) -> Floats:
        """Return the predictions of every fold by the model trained on the other folds (sample, ridge)."""
        if np.unique(fold).size == fold.size:
            return self.leave_one_out()
        out: Floats = np.empty(self.weights.shape)
        for rows in fold_rows(fold):
            out[rows] = self.leave_out(rows)
        return out

    def cross_validate_inner(self, fold: Ints) -> Floats:
        """Return predictions (sample, ridge, outer fold) without the outer and the own fold; NaN on the outer one."""
        rows = list(fold_rows(fold))
        out = np.full((*self.weights.shape, len(rows)), np.nan)
        for one, two in combinations(range(len(rows)), 2):
            both = self.leave_out(np.concatenate([rows[one], rows[two]]))
            out[rows[one], :, two], out[rows[two], :, one] = np.split(both, [rows[one].size])
        return out


def rbf(x: Floats, other: Floats, eta: float) -> Floats:
    """Return the Gaussian kernel exp(-eta |x - other|^2)."""
    squared = (x**2).sum(1)[:, None] + (other**2).sum(1) - 2 * x @ other.T
    return np.asarray(np.exp(-eta * np.maximum(squared, 0)))


def fold_rows(fold: Ints) -> Iterator[Ints]:
    """Yield the samples of each fold in turn."""
    for number in range(int(fold.max()) + 1):
        yield np.flatnonzero(fold == number)
