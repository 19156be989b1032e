"""Cubes of fixed models with known true accuracies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from cvstats._check import InputError, check_count, check_rng, is_number
from cvstats._results import call_text, result
from cvstats.cube.make import as_cube
from cvstats.folds import OUTSIDE, deal, inner_ids

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
LEVELS = (0.05, 0.95)
ORDER = ("sample", "configuration", "partner", "outer_fold", "repeat")
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
    pair = isinstance(beta, (tuple, list)) and len(beta) == 2
    if not pair or not all(is_number(part) and 0 < part < np.inf for part in beta):
        raise InputError(f"`beta` must be two positive numbers (a, b), such as (9, 6); got {beta!r}.")
    known = {"independent": 0.0, "shared": 1.0}
    if not (dependence in known if isinstance(dependence, str) else is_number(dependence) and 0 <= dependence < 1):
        raise InputError(
            f"`dependence` must be 'independent', 'shared' or a correlation in [0, 1); got {dependence!r}."
        )
    if not is_number(repeat_share) or not 0 <= repeat_share <= 1:
        raise InputError(f"`repeat_share` must be a number in [0, 1]; got {repeat_share!r}.")
    if folds > n:
        raise InputError(f"`folds`={folds} cannot be made from {n} samples; use at most {n}.")
    generator = check_rng(rng)
    truth = generator.beta(*beta, c)
    label = generator.permutation(np.arange(n) % 2)
    fold = deal(label, folds, repeats, generator).T
    rho = known[dependence] if isinstance(dependence, str) else float(dependence)
    right = _lucky(generator, (n, c, repeats), rho, repeat_share, truth)
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


def score_cube(values: np.ndarray, dims: tuple[str, ...], coords: dict[str, Any], *, batch: bool) -> xr.DataArray:
    """Return a cube of scores; its first dim stays when it is a `batch` of data sets, a single repeat does not."""
    numbers = {dim: np.arange(size) for dim, size in zip(dims, values.shape, strict=True)}
    cube = xr.DataArray(values, dims=dims, coords=numbers | coords)
    gone = [dim for dim, single in ((dims[0], not batch), ("repeat", cube.sizes["repeat"] == 1)) if single]
    cube = cube.transpose(*(dim for dim in ORDER if dim in dims), dims[0]).isel(dict.fromkeys(gone, 0), drop=True)
    if cube["label"].dtype.kind == "f":
        return as_cube(cube, kind="value")
    return as_cube(cube, kind="score", positive=1, threshold=0.0)


def distinct(values: Any, name: str, *, zero: bool = False) -> Floats:
    """Return tuning values as an array; they must differ and be positive, or not negative."""
    try:
        array = np.atleast_1d(np.asarray(values, float))
    except (TypeError, ValueError):
        array = np.empty(0)
    valid = array.ndim == 1 and array.size and bool((np.isfinite(array) & ((array > 0) | (zero & (array == 0)))).all())
    if not valid or np.unique(array).size < array.size:
        what = "distinct numbers that are not negative" if zero else "distinct positive numbers"
        raise InputError(f"`{name}` must be {what}; got {values!r}.")
    return array


def expected_maximum(probability: Any, n_samples: Any, n_configurations: Any) -> xr.Dataset:
    """Give the exact distribution of the best of m estimated accuracies when all m are truly equal.

    The maximum of m independent Binomial(n, p) / n has P(max <= k / n) = F(k)^m with F the binomial distribution
    function, hence the mean 1 - sum over k < n of F(k)^m / n. It is what tuning on n samples reports when m equally
    good configurations err independently; dependence between them makes the optimism smaller.

    Parameters
    ----------
    probability, n_samples, n_configurations : number, list or DataArray
        The p, n and m above. Lists become dims of the argument's name, so that lists make a table; DataArrays are
        broadcast by dimension.

    Returns
    -------
    xarray.Dataset
        ``mean``, ``optimism`` (mean minus p) and ``quantiles`` over ``quantile`` (0.05 and 0.95): the smallest
        attainable value that the maximum does not exceed with at least that probability.

    Raises
    ------
    InputError
        Probabilities outside [0, 1], or counts that are not whole numbers of at least 1.

    References
    ----------
    Tsamardinos, Rakhshani, Lagani (2015). Performance-estimation properties of cross-validation-based protocols
    with simultaneous hyper-parameter optimization. Int. J. Artificial Intelligence Tools 24, 1540023, Table 1.
    doi:10.1142/S0218213015400230

    Examples
    --------
    >>> import cvstats as cs
    >>> best = cs.expected_maximum(0.85, [20, 100], 10)
    >>> best["mean"].round(4).values.tolist()
    [0.9588, 0.9026]
    """
    p = _argument(probability, "probability")
    n = _argument(n_samples, "n_samples")
    m = _argument(n_configurations, "n_configurations")
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise InputError("`probability` must lie in [0, 1].")
    for name, array in (("n_samples", n), ("n_configurations", m)):
        if not bool(((array >= 1) & (array % 1 == 0)).all()):
            raise InputError(f"`{name}` must be whole numbers of at least 1.")
    mean, quantiles = xr.apply_ufunc(
        _maximum, p, n, m, output_core_dims=[[], ["quantile"]], kwargs={"levels": np.array(LEVELS)}, join="exact"
    )
    variables = {"mean": mean, "optimism": mean - p, "quantiles": quantiles.assign_coords(quantile=list(LEVELS))}
    given = {"probability": probability, "n_samples": n_samples, "n_configurations": n_configurations}
    call = call_text("expected_maximum", **given)
    return result(variables, method="expected_maximum", metric="accuracy", call=call)


def _argument(value: Any, name: str) -> xr.DataArray:
    if isinstance(value, xr.DataArray):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise InputError(f"`{name}` must be a number, a list of numbers or a DataArray; got {value!r}.")
    return xr.DataArray(array, dims=[name] * array.ndim, coords={name: array} if array.ndim else None)


def _maximum(p: Floats, n: Floats, m: Floats, *, levels: Floats) -> tuple[Floats, Floats]:
    """Return mean and quantiles of the maximum, quantiles on a last axis."""
    from scipy.special import bdtr, bdtrc

    p, n, m = (array[..., None] for array in np.broadcast_arrays(p, n, m))
    k = np.arange(int(n.max()) + 1, dtype=float)
    inside = np.minimum(k, n)
    above = bdtrc(inside, n, p)
    with np.errstate(divide="ignore"):  # F = 0 has probability 0 of holding the maximum
        log_f = np.where(above < 0.5, np.log1p(-above), np.log(bdtr(inside, n, p)))
    mean = np.abs(np.expm1(m * log_f).sum(-1)) / n[..., 0]
    reached = (m * log_f)[..., None] >= np.log(levels)
    return mean, np.argmax(reached, axis=-2) / n
