"""A synthetic benchmark with a real learner: Ripley's mixture and kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from cvstats._check import InputError, check_count, check_option, check_rng
from cvstats.cube.make import as_cube
from cvstats.folds import OUTSIDE
from cvstats.kernels.dealing import deal

from ._ridge import Machine

Floats = NDArray[np.float64]
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
    grid = _positive(ridge, "ridge"), _positive(eta, "eta")
    spread = float(np.sqrt(_positive([variance], "variance")[0]))
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
            machine = Machine(x, label.astype(float), float(value), grid[0])
            fresh[one, ..., column] = machine.predict(test_x)
            for repeat, part in enumerate(fold):
                cv[one, repeat, ..., column] = machine.cross_validate(part)
                if nested is not None:
                    nested[one, repeat, ..., column, :] = machine.cross_validate_inner(part)
    wrong = (fresh > 0) != (test_label > 0)[..., None, None]
    truth = {"truth": wrong.mean(1), "truth_mse": ((fresh - test_label[..., None, None]) ** 2).mean(1)}
    common = _Labels(grid, truth, kind, realisations is not None)
    out = [common.cube(cv, label, ("fold", ("sample", "repeat"), fold.T))]
    if nested is not None:
        outer = np.arange(k)[:, None]
        own = fold.T[:, None] == outer
        inner_fold = np.where(own, OUTSIDE, fold.T[:, None] - (fold.T[:, None] > outer))
        out.append(common.cube(nested, label, ("fold", ("sample", "outer_fold", "repeat"), inner_fold)))
    if test:
        out.append(common.cube(fresh[:, None], test_label, None))
    return out[0] if len(out) == 1 else tuple(out)


class _Labels:
    """What all cubes of one call share: the grid, the truth, the kind."""

    def __init__(self, grid: tuple[Floats, Floats], truth: dict[str, Floats], kind: str, batch: bool) -> None:
        ridge, eta = (part.ravel() for part in np.meshgrid(*grid, indexing="ij"))
        names = [f"ridge={r:g} eta={e:g}" for r, e in zip(ridge, eta, strict=True)]
        self.coords: dict[str, Any] = {"configuration": names}
        self.coords |= {"ridge": ("configuration", ridge), "eta": ("configuration", eta)}
        for name, array in truth.items():
            self.coords[name] = (("realisation", "configuration"), array.reshape(len(array), -1))
        self.kind, self.batch = kind, batch

    def cube(
        self, values: Floats, label: NDArray[np.intp], fold: tuple[str, tuple[str, ...], Any] | None
    ) -> xr.DataArray:
        """Return values (realisation, repeat, sample, ridge, eta[, outer_fold]) as a cube."""
        dims = ("realisation", "repeat", "sample", "configuration", "outer_fold")[: values.ndim - 1]
        values = values.reshape(*values.shape[:3], -1, *values.shape[5:])
        coords = {dim: np.arange(size) for dim, size in zip(dims, values.shape, strict=True)} | self.coords
        coords["label"] = ("sample" if label.ndim == 1 else ("realisation", "sample"), label)
        if fold is not None:
            coords[fold[0]] = fold[1:]
        order = [dim for dim in ("sample", "configuration", "outer_fold", "repeat", "realisation") if dim in dims]
        cube = xr.DataArray(values, dims=dims, coords=coords).transpose(*order)
        if cube.sizes["repeat"] == 1:
            cube = cube.isel(repeat=0, drop=True)
        if not self.batch:
            cube = cube.isel(realisation=0, drop=True)
        if self.kind == "value":
            return as_cube(cube.assign_coords(label=cube.label.astype(float)), kind="value")
        return as_cube(cube, kind="score", positive=1, threshold=0.0)


def _positive(values: Any, name: str) -> Floats:
    array = np.atleast_1d(np.asarray(values, float))
    valid = array.ndim == 1 and array.size > 0 and bool((np.isfinite(array) & (array > 0)).all())
    if not valid or np.unique(array).size < array.size:
        raise InputError(f"`{name}` must be distinct positive numbers; got {values!r}.")
    return array


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
