"""A synthetic benchmark with a real learner: Ripley's mixture and kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, check_option, check_rng
from cvstats.folds import deal, inner_ids

from .fixed import Floats, Ints, distinct, score_cube

CENTRES = np.array([[-0.7, 0.3], [0.3, 0.3], [-0.3, 0.7], [0.4, 0.7]])  # two of class -1, two of class 1
RIDGE = tuple(2.0**power for power in range(-8, 3, 2))
ETA = tuple(2.0**power for power in range(-2, 9, 2))


def ripley_mixture(
    n_samples: int = 64,
    *,
    ridge: Sequence[float] = RIDGE,
    eta: Sequence[float] = ETA,
    variance: float = 0.04,
    folds: int | str = "loo",
    repeats: int = 1,
    kind: str = "score",
    inner: bool = False,
    test: bool = False,
    n_test: int = 4096,
    realisations: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> xr.DataArray | tuple[xr.DataArray, ...]:
    """Simulate a real cube: kernel ridge regression, refitted in every fold, over a grid of tuning values.

    Two classes (-1 and 1, equally likely) of two spherical Gaussians each in the plane. The learner minimises
    ``|w|^2 / 2 + sum(residual^2) / (2 ridge)`` with the kernel ``exp(-eta |x - x'|^2)`` and a bias term; predictions
    without a fold come in closed form from the model of all samples (leave-one-out: Allen's PRESS).

    Parameters
    ----------
    n_samples : int
        Training samples, equally many from each Gaussian (as far as possible).
    ridge, eta : sequence of float
        Tuning values; every combination is a configuration, and both are coordinates on ``configuration``.
    variance : float
        Of each Gaussian. 0.04 has a Bayes error of 12.4 %.
    folds : int or "loo"
        Leave-one-out, or the number of stratified folds.
    repeats : int
        Number of random partitions.
    kind : {"score", "value"}
        ``"score"``: f(x), class 1 when above 0, for `error_rate`, `auc` and the like. ``"value"``: the same numbers
        against -1 and 1 as a regression, for `mse` (the PRESS statistic divided by the number of samples).
    inner : bool
        Also return the inner predictions for `ncv`, the other outer folds serving as inner folds.
    test : bool
        Also return the cube of predictions for fresh samples by the models trained on all samples.
    n_test : int
        How many. They give the coordinates ``truth`` (error rate) and ``truth_mse`` whether returned or not.
    realisations : int, optional
        Number of data sets, along the batch dim ``realisation``.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    xarray.DataArray or tuple
        The cube, or (cube, inner), (cube, test), (cube, inner, test) as asked for.

    Raises
    ------
    InputError
        More folds than samples, repeats of leave-one-out, or tuning values that are not distinct and positive.

    References
    ----------
    Cawley, Talbot (2010). On over-fitting in model selection and subsequent selection bias in performance
    evaluation. JMLR 11, 2079-2107, sections 2 and 3.1. Ripley (1996). Pattern Recognition and Neural Networks.
    An, Liu, Venkatesh (2007). Fast cross-validation algorithms for least squares support vector machines and kernel
    ridge regression. Pattern Recognition 40, 2154-2162. doi:10.1016/j.patcog.2006.12.015

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.ripley_mixture(64, ridge=[0.1, 1], eta=[1, 10, 100], rng=1)
    >>> cube.sizes["configuration"], cube.eta.values.tolist()
    (6, [1.0, 10.0, 100.0, 1.0, 10.0, 100.0])
    """
    n = check_count(n_samples, "n_samples", minimum=4)
    n_test, repeats = check_count(n_test, "n_test"), check_count(repeats, "repeats")
    several = 1 if realisations is None else check_count(realisations, "realisations")
    check_option(kind, ("score", "value"), "kind")
    grid = distinct(ridge, "ridge"), distinct(eta, "eta")
    spread = float(np.sqrt(distinct([variance], "variance")[0]))
    k = _folds(folds, n, repeats, inner)
    generator = check_rng(rng)
    place = np.repeat([0, 1, 2, 3], np.bincount(np.arange(n) % 4, minlength=4))
    label = np.where(place < 2, -1, 1)
    fold = np.arange(n)[None] if k == n else deal((label > 0).astype(np.intp), k, repeats, generator)
    shape = (grid[0].size, grid[1].size)
    cv = np.empty((several, repeats, n, *shape))
    nested = np.empty((several, repeats, n, *shape, k)) if inner else None
    fresh = np.empty((several, n_test, *shape))
    test_label = np.empty((several, n_test), np.intp)
    for one in range(several):
        x = CENTRES[place] + spread * generator.standard_normal((n, 2))
        test_place = generator.integers(4, size=n_test)
        test_x = CENTRES[test_place] + spread * generator.standard_normal((n_test, 2))
        test_label[one] = np.where(test_place < 2, -1, 1)
        for column, value in enumerate(grid[1]):
            model = KernelRidge(x, label.astype(float), float(value), grid[0])
            fresh[one, ..., column] = model.predict(test_x)
            for repeat, part in enumerate(fold):
                cv[one, repeat, ..., column] = model.cross_validate(part)
                if nested is not None:
                    nested[one, repeat, ..., column, :] = model.cross_validate_inner(part)
    wrong = (fresh > 0) != (test_label > 0)[..., None, None]
    truth = {"truth": wrong.mean(1), "truth_mse": ((fresh - test_label[..., None, None]) ** 2).mean(1)}
    each_ridge, each_eta = (part.ravel() for part in np.meshgrid(*grid, indexing="ij"))
    coords: dict[str, Any] = {
        "configuration": [f"ridge={r:g} eta={e:g}" for r, e in zip(each_ridge, each_eta, strict=True)],
        "ridge": ("configuration", each_ridge),
        "eta": ("configuration", each_eta),
        **{name: (("realisation", "configuration"), part.reshape(several, -1)) for name, part in truth.items()},
    }

    def cube(values: Floats, labels: Ints, fold: Ints | None) -> xr.DataArray:
        dims = ("realisation", "repeat", "sample", "configuration", "outer_fold")[: values.ndim - 1]
        own: dict[str, Any] = {"label": (("realisation", "sample")[-labels.ndim :], labels)}
        if kind == "value":
            own["label"] = (own["label"][0], labels.astype(float))
        if fold is not None:
            own["fold"] = (("sample", *dims[4:], "repeat"), fold)
        values = values.reshape(*values.shape[:3], -1, *values.shape[5:])
        return score_cube(values, dims, coords | own, batch=realisations is not None)

    out = [cube(cv, label, fold.T)]
    if nested is not None:
        out.append(cube(nested, label, inner_ids(fold.T, k)))
    if test:
        out.append(cube(fresh[:, None], test_label, None))
    return out[0] if len(out) == 1 else tuple(out)


class KernelRidge:
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
        rows = fold_rows(fold)
        out = np.full((*self.weights.shape, len(rows)), np.nan)
        for one, two in combinations(range(len(rows)), 2):
            both = self.leave_out(np.concatenate([rows[one], rows[two]]))
            out[rows[one], :, two], out[rows[two], :, one] = np.split(both, [rows[one].size])
        return out


def rbf(x: Floats, other: Floats, eta: float) -> Floats:
    """Return the Gaussian kernel exp(-eta |x - other|^2)."""
    squared = (x**2).sum(1)[:, None] + (other**2).sum(1) - 2 * x @ other.T
    return np.asarray(np.exp(-eta * np.maximum(squared, 0)))


def fold_rows(fold: Ints) -> list[Ints]:
    """Return the samples of each fold."""
    return [np.flatnonzero(fold == number) for number in range(int(fold.max()) + 1)]


def _folds(folds: Any, n: int, repeats: int, inner: bool) -> int:
    """Return the number of folds."""
    if isinstance(folds, str) and folds != "loo":
        raise InputError(f"`folds` must be a number of folds or 'loo'; got {folds!r}.")
    k = n if folds == "loo" else check_count(folds, "folds", minimum=3 if inner else 2)
    if k > n:
        raise InputError(f"`folds`={k} cannot be made from {n} samples; use at most {n}.")
    if k == n and repeats > 1:
        raise InputError(f"`repeats` must be 1 for leave-one-out, which has only one partition; got {repeats}.")
    return k
