"""Linear discriminants on two Gaussian classes that were sampled separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, check_level, check_rng, is_number
from cvstats.folds import deal

from .fixed import Floats, Ints, distinct, score_cube

FEATURES = 3


def separate_gaussian(
    n_samples: int = 80,
    *,
    ratio: float = 0.5,
    prior: float = 0.5,
    correlation: tuple[float, float] = (0.8, 0.8),
    distance: float = 3.0,
    folds: int = 5,
    k0: int | None = None,
    k1: int | None = None,
    shrinkage: Sequence[float] = (0.0,),
    repeats: int = 1,
    trials: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Simulate separate sampling: cross-validated linear discriminants whose true error is known exactly.

    Class y has three features from N(mu_y, S_y), S_y with ones on the diagonal and ``correlation[y]`` beside it;
    mu_0 = 0 and mu_1 = (0, 0, theta). The discriminant W(x) = (x - (m_0 + m_1) / 2)' S^-1 (m_0 - m_1) + log(n_0 / n_1)
    decides for class 0 when W > 0. Its true error is c P(W <= 0 | class 0) + (1 - c) P(W > 0 | class 1).

    Parameters
    ----------
    n_samples : int
        The paper's n.
    ratio : float
        The sampling ratio r: n_0 = ceil(n r) samples are of class 0, whatever the population is.
    prior : float
        The paper's c, the probability of class 0 in the population; it enters only the coordinate ``truth``.
    correlation : tuple of float
        Of the features, in class 0 and in class 1.
    distance : float
        Mahalanobis distance of the classes (equal correlations) or their Bhattacharyya distance (unequal ones); it sets
        theta.
    folds, k0, k1 : int
        Folds of ordinary (stratified) cross-validation, and of each class under separate sampling (default `folds`).
    shrinkage : sequence of float
        One configuration per value, which is added to the diagonal of the pooled covariance; 0 is the plain rule.
    repeats : int
        Random partitions of the same data (dim ``repeat``).
    trials : int, optional
        Data sets (batch dim ``trial``), made all at once.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    separate : xarray.DataArray
        Cube of scores -W (class 1 is positive, threshold 0) with dims ``sample, configuration, partner[, repeat]
        [, trial]``: one prediction of a sample for every fold of the other class left out with it.
    ordinary : xarray.DataArray
        Cube of ordinary cross-validation on the same data (on the same folds when k0 = k1 = folds).
        Both have the coordinates ``truth``, ``truth_0`` and ``truth_1``: the error of the rule trained on all n
        samples, overall and by class.

    Raises
    ------
    InputError
        A class with fewer samples than folds, too few samples to train on, or a distance that covariances alone exceed.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014). Cross-validation under separate sampling: strong bias and how to
    correct it. Bioinformatics 30, 3349-3355. doi:10.1093/bioinformatics/btu527

    Examples
    --------
    >>> import cvstats as cs
    >>> separate, ordinary = cs.separate_gaussian(80, ratio=0.7, prior=0.1, rng=1)
    >>> dict(separate.sizes), ordinary.dims
    ({'sample': 80, 'configuration': 1, 'partner': 5}, ('sample', 'configuration'))
    """
    n = check_count(n_samples, "n_samples", minimum=4)
    c, r = check_level(prior, "prior"), check_level(ratio, "ratio")
    n0 = int(np.ceil(round(n * r, 9)))
    k = check_count(folds, "folds", minimum=2)
    k0, k1 = (k if each is None else check_count(each, name, minimum=2) for name, each in (("k0", k0), ("k1", k1)))
    repeats = check_count(repeats, "repeats")
    several = 1 if trials is None else check_count(trials, "trials")
    extra = distinct(shrinkage, "shrinkage", zero=True)
    _check_sizes((n0, n - n0), (k0, k1), k, extra)
    generator = check_rng(rng)
    cov0, cov1 = _covariances(correlation)
    mean1 = np.array([0.0, 0.0, _theta(cov0, cov1, distance)])
    x = generator.standard_normal((several, n, FEATURES))
    x[:, :n0] = x[:, :n0] @ np.linalg.cholesky(cov0).T
    x[:, n0:] = x[:, n0:] @ np.linalg.cholesky(cov1).T + mean1
    label = np.repeat([0, 1], [n0, n - n0])
    fold = np.concatenate([deal(label[label == y], kk, repeats, generator) for y, kk in ((0, k0), (1, k1))], axis=1)
    shared = k0 == k1 == k
    ordinary_fold = fold if shared else deal(label, k, repeats, generator)

    sep = _separate_scores(x, fold, n0, (k0, k1), extra)
    both = sep if shared else _separate_scores(x, ordinary_fold, n0, (k, k), extra)
    own = np.broadcast_to(ordinary_fold[None, :, :, None, None], (*both.shape[:3], 1, both.shape[4]))
    ordinary = np.take_along_axis(both, own, axis=3)[:, :, :, 0]
    errors = _true_errors(_rules(x, np.zeros((1, n), np.intp), n0, (0, 0), extra), mean1, cov0, cov1)
    truth = {"truth": c * errors[0] + (1 - c) * errors[1], "truth_0": errors[0], "truth_1": errors[1]}
    names = ["lda" if value == 0 else f"lda, shrinkage {value:g}" for value in extra]
    coords: dict[str, Any] = {"configuration": names, "shrinkage": ("configuration", extra), "label": ("sample", label)}
    coords |= {name: (("configuration", "trial"), array.T) for name, array in truth.items()}
    dims, batch = ("trial", "repeat", "sample", "configuration"), trials is not None
    designs = [coords | {"fold": (("sample", "repeat"), part.T)} for part in (fold, ordinary_fold)]
    separate = score_cube(np.moveaxis(sep, 4, 3), (*dims, "partner"), designs[0], batch=batch)
    return separate, score_cube(ordinary, dims, designs[1], batch=batch)


def _remainder(x: Floats, fold: Ints, k: int) -> tuple[Floats, Floats, Floats]:
    """Return size, mean and scatter of a class without each of `k` folds, or (k = 0) of the whole class alone."""
    trials, n, d = x.shape
    kept = (fold[:, None] != np.arange(k)[:, None]).astype(float) if k else np.ones((len(fold), 1, n))
    count = kept.sum(-1)  # (repeat, fold)
    mean = np.einsum("rkn,tnd->trkd", kept, x, optimize=True) / count[..., None]
    outer = (x[..., :, None] * x[..., None, :]).reshape(trials, n, d * d)
    second = np.einsum("rkn,tne->trke", kept, outer, optimize=True).reshape(trials, *count.shape, d, d)
    return count, mean, second - count[..., None, None] * mean[..., :, None] * mean[..., None, :]


def _rules(x: Floats, fold: Ints, n0: int, folds: tuple[int, int], shrinkage: Floats) -> tuple[Floats, Floats]:
    """Return slope and intercept of the discriminant without each pair of folds; positive values mean class 0.

    Axes: trial, repeat, fold of class 0, fold of class 1, configuration (and feature).
    """
    size0, mean0, scatter0 = _remainder(x[:, :n0], fold[:, :n0], folds[0])
    size1, mean1, scatter1 = _remainder(x[:, n0:], fold[:, n0:], folds[1])
    n0s, n1s = size0[:, :, None], size1[:, None, :]
    m0, m1 = mean0[:, :, :, None], mean1[:, :, None, :]
    pooled = (scatter0[:, :, :, None] + scatter1[:, :, None, :]) / (n0s + n1s - 2)[..., None, None]
    pooled = pooled[..., None, :, :] + shrinkage[:, None, None] * np.eye(FEATURES)
    apart = np.broadcast_to((m0 - m1)[..., None, :, None], (*pooled.shape[:-1], 1))
    slope: Floats = np.linalg.solve(pooled, apart)[..., 0].astype(np.float64)
    return slope, np.log(n0s / n1s)[..., None] - np.einsum("...cd,...d->...c", slope, (m0 + m1) / 2)


def _separate_scores(x: Floats, fold: Ints, n0: int, folds: tuple[int, int], shrinkage: Floats) -> Floats:
    """Return scores (trial, repeat, sample, partner, configuration) of models without the folds of both."""
    rules, (repeats, n) = _rules(x, fold, n0, folds, shrinkage), fold.shape
    scores, each = np.full((len(x), repeats, n, max(folds), shrinkage.size), np.nan), np.arange(repeats)[:, None]
    turned = [np.swapaxes(part, 2, 3) for part in rules]
    for rows, partners, by_fold in ((slice(0, n0), folds[1], rules), (slice(n0, n), folds[0], turned)):
        slope, intercept = (part[:, each, fold[:, rows]] for part in by_fold)  # (trial, repeat, sample, partner, ...)
        scores[:, :, rows, :partners] = -np.einsum("trspcd,tsd->trspc", slope, x[:, rows], optimize=True) - intercept
    return scores


def _true_errors(rule: tuple[Floats, Floats], mean1: Floats, cov0: Floats, cov1: Floats) -> tuple[Floats, Floats]:
    """Return the errors of both classes (trial, configuration) of a rule made of all samples."""
    from scipy.special import ndtr

    slope, intercept = (part[:, 0, 0, 0] for part in rule)
    spread0, spread1 = (np.sqrt(np.einsum("tcd,de,tce->tc", slope, cov, slope)) for cov in (cov0, cov1))
    return ndtr(-intercept / spread0), ndtr((slope @ mean1 + intercept) / spread1)


def _covariances(correlation: Any) -> tuple[Floats, Floats]:
    valid = isinstance(correlation, (tuple, list)) and len(correlation) == 2
    if not valid or not all(-1 / (FEATURES - 1) < float(rho) < 1 for rho in correlation):
        raise InputError(f"`correlation` must be two numbers in (-0.5, 1), one per class; got {correlation!r}.")
    eye = np.eye(FEATURES)
    one, two = (float(rho) + (1 - float(rho)) * eye for rho in correlation)
    return one, two


def _theta(cov0: Floats, cov1: Floats, distance: Any) -> float:
    """Return the shift of the last feature that puts the classes at the given distance."""
    if not is_number(distance) or not distance > 0:
        raise InputError(f"`distance` must be a positive number; got {distance!r}.")
    between = (cov0 + cov1) / 2
    unit = np.linalg.inv(between)[-1, -1]
    if np.array_equal(cov0, cov1):
        return float(distance / np.sqrt(unit))
    log_dets = [np.linalg.slogdet(cov)[1] for cov in (between, cov0, cov1)]
    apart = (log_dets[0] - (log_dets[1] + log_dets[2]) / 2) / 2  # what unequal covariances contribute
    if distance <= apart:
        raise InputError(f"`distance` must exceed {apart:.4g}, the distance of these covariances; got {distance!r}.")
    return float(np.sqrt(8 * (distance - apart) / unit))


def _check_sizes(sizes: tuple[int, int], folds: tuple[int, int], k: int, shrinkage: Floats) -> None:
    for name, size, own in zip(("class 0", "class 1"), sizes, folds, strict=True):
        if size < max(own, k):
            raise InputError(
                f"`ratio` leaves {size} samples in {name}, fewer than its {max(own, k)} folds; "
                "change `ratio`, `n_samples` or the number of folds."
            )
    train = sum(size - -(-size // min(own, k)) for size, own in zip(sizes, folds, strict=True))
    if train - 2 < FEATURES and (shrinkage == 0).any():
        raise InputError(
            f"`n_samples` leaves {train} samples to train on, too few for the covariance of {FEATURES} features; "
            "raise `n_samples` or `shrinkage`."
        )
