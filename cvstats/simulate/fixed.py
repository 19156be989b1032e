"""Cubes of fixed models with known true accuracies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from cvstats._check import InputError, check_count, check_rng
from cvstats.folds import OUTSIDE, inner_ids
from cvstats.kernels.dealing import deal

Floats = NDArray[np.float64]
LABEL_KIND = {"kind": "label", "classes": json.dumps([0, 1]), "positive": 1}  # as as_cube() settles 0/1 labels


def simulate_cube(
    n_samples: int,
    n_configurations: int,
    *,
    beta: tuple[float, float] = (9, 6),
    dependence: str | float = "independent",
    folds: int = 10,
    repeats: int = 1,
    repeat_share: float = 0.6,
    inner: bool = False,
    rng: int | np.random.Generator | None = None,
) -> Any:
    """Simulate the predicted labels of configurations whose true accuracies are known.

    True accuracies P_j are drawn from Beta(a, b); prediction j of sample i is right when u_ij < P_j, u uniform.
    The models are fixed: they do not depend on the folds, as if they had been trained on other data.

    Parameters
    ----------
    n_samples, n_configurations : int
        Size of the cube. Labels are 0/1, as balanced as can be, in random order.
    beta : tuple of float
        Parameters (a, b) of the distribution of true accuracies.
    dependence : str or float
        ``"independent"``: a fresh u for every sample and configuration, as in the published simulation program [1]_;
        ``"shared"``: one u per sample, as its text has it, which makes all configurations nested; or a number in
        [0, 1), the correlation of a Gaussian copula between configurations.
    folds : int
        Number of folds, stratified by label; 1 is a hold-out set.
    repeats : int
        Number of random partitions.
    repeat_share : float
        The (copula) correlation between the luck of a prediction in two of them.
    inner : bool
        Also return the inner predictions for `ncv`. A fixed model predicts a sample alike in every training set, so
        they repeat the outer ones; the other outer folds serve as inner folds.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    cube : xarray.DataArray
        With the coordinates ``truth(configuration)`` (true accuracy), ``label``, ``fold``.
    inner : xarray.DataArray
        Only when asked for: dims ``sample, configuration, outer_fold[, repeat]``; NaN, and fold -1, on the samples
        of the outer fold itself.

    Raises
    ------
    InputError
        More folds than samples, `inner` with fewer than three folds, or parameters out of range.

    References
    ----------
    .. [1] Tsamardinos, Greasidou, Borboudakis (2018). Bootstrapping the out-of-sample predictions for efficient and
       accurate cross-validation. Machine Learning 107, 1895-1922. doi:10.1007/s10994-018-5714-4

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(100, 50, rng=1)
    >>> right = (cube == cube.label).mean("sample")
    >>> bool(right.max() > right.truth[right.argmax("configuration")])  # the winner looks better than it is
    True
    """
    n = check_count(n_samples, "n_samples", minimum=2)
    c = check_count(n_configurations, "n_configurations")
    folds, repeats = check_count(folds, "folds"), check_count(repeats, "repeats")
    a, b = _beta(beta)
    rho, share = _dependence(dependence), _share(repeat_share)
    if folds > n:
        raise InputError(f"`folds`={folds} cannot be made from {n} samples; use at most {n}.")
    generator = check_rng(rng)
    truth = generator.beta(a, b, c)
    label = generator.permutation(np.arange(n) % 2)
    fold = deal(label, folds, repeats, generator).T
    right = _lucky(generator, (n, c, repeats), rho, share, truth)
    values = (right == label[:, None, None]).astype(float)
    dims, inner_dims = ["sample", "configuration", "repeat"], ["sample", "configuration", "outer_fold", "repeat"]
    if repeats == 1:
        values, fold = values[..., 0], fold[:, 0]
        dims, inner_dims = dims[:-1], inner_dims[:-1]
    coords: dict[str, Any] = {dim: np.arange(size) for dim, size in zip(dims, values.shape, strict=True)}
    coords |= LABEL_KIND | {"label": ("sample", label), "truth": ("configuration", truth)}
    # as_cube() would give the same after inspecting every value, which calibration cannot afford
    own: dict[str, Any] = {"fold": (["sample", *dims[2:]], fold)}
    cube = xr.DataArray(values, dims=dims, coords=coords | own, name="prediction")
    if not inner:
        return cube
    if folds < 3:
        raise InputError(f"`inner` needs at least 3 folds, so that two remain inside every training set; got {folds}.")
    # inner predictions of fixed models are the outer ones, missing on the outer fold itself
    inner_fold = inner_ids(fold, folds)
    predicted = np.where((inner_fold == OUTSIDE)[:, None], np.nan, values[:, :, None])
    own = {"outer_fold": np.arange(folds), "fold": (["sample", *inner_dims[2:]], inner_fold)}
    return cube, xr.DataArray(predicted, dims=inner_dims, coords=coords | own, name="prediction")


def _lucky(
    rng: np.random.Generator, shape: tuple[int, int, int], rho: float, share: float, truth: Floats
) -> NDArray[np.bool_]:
    """Return whether each prediction (sample, configuration, repeat) is right.

    Luck is a standard normal number z, right when z < the P_j quantile: rho is its correlation between
    configurations, share between repeats.
    """
    from scipy.special import ndtri

    n, c, repeats = shape

    def luck(times: int) -> Floats:
        own = rng.standard_normal((n, c, times)) if rho < 1 else np.zeros((n, c, times))
        common = rng.standard_normal((n, 1, times)) if rho > 0 else 0.0
        return np.asarray(np.sqrt(rho) * common + np.sqrt(1 - rho) * own)

    if repeats == 1 and rho in (0.0, 1.0):  # plain uniform numbers are cheaper
        return np.asarray(rng.random((n, c if rho == 0 else 1, 1)) < truth[:, None])
    z = luck(repeats) if repeats == 1 else np.sqrt(share) * luck(1) + np.sqrt(1 - share) * luck(repeats)
    return np.asarray(z < ndtri(truth)[:, None])


def _beta(beta: Any) -> tuple[float, float]:
    if not isinstance(beta, (tuple, list)) or len(beta) != 2 or not all(np.isfinite(beta)) or min(beta) <= 0:
        raise InputError(f"`beta` must be two positive numbers (a, b), such as (9, 6); got {beta!r}.")
    return float(beta[0]), float(beta[1])


def _dependence(dependence: Any) -> float:
    """Return the correlation: 0 for independent, 1 for shared, or the copula's."""
    named = {"independent": 0.0, "shared": 1.0}
    if isinstance(dependence, str) and dependence in named:
        return named[dependence]
    if not _is_number(dependence) or not 0 <= dependence < 1:
        raise InputError(
            f"`dependence` must be 'independent', 'shared' or a correlation in [0, 1); got {dependence!r}."
        )
    return float(dependence)


def _share(share: Any) -> float:
    if not _is_number(share) or not 0 <= share <= 1:
        raise InputError(f"`repeat_share` must be a number in [0, 1]; got {share!r}.")
    return float(share)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
