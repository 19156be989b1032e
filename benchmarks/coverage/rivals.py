"""Rivals of the calibrated limits, written from their papers, for limits of a winner's score.

All take scores in performance direction (higher is better) and return a lower and an upper limit. `draws` are scores of
all configurations (column) in bootstrap draws of the samples (row).

simultaneous    max-T over all configurations; what Rink and Brannath's bounds are made from
tilted          Rink and Brannath (2025), doi:10.1007/s10994-024-06632-w: bootstrap tilting at a level that is adjusted
                for all configurations
zoom            Zrnic and Fithian (2024), doi:10.48550/arXiv.2411.18569: the zoom correction
nested          Bates, Hastie and Tibshirani (2024), doi:10.1080/01621459.2023.2197686: variance by nested folds
corrected_t     Nadeau and Bengio (2003), doi:10.1023/A:1024068626366: corrected resampled t, from repeats
conservative_z  the same paper: variance from halves of the samples. No saved prediction has it, since models have to
                be fitted on either half
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

Limits = tuple[float, float]


def simultaneous(scores: np.ndarray, draws: np.ndarray, level: float) -> Limits:
    """Return limits of the winner such that those of all configurations hold at the same time."""
    error = draws.std(axis=0, ddof=1)
    used, best = error > 0, int(np.argmax(scores))
    if not used[best]:
        return float(scores[best]), float(scores[best])
    largest = (np.abs(draws[:, used] - scores[used]) / error[used]).max(axis=1)
    half = float(np.quantile(largest, level)) * error[best]
    return float(scores[best] - half), float(scores[best] + half)


def adjusted_tail(draws: np.ndarray, tail: float, upper: bool) -> float:
    """Return the tail for one configuration that gives all of them together `tail`: of the least p-value in a draw."""
    rank = (rankdata(draws, axis=0, method="ordinal") - 0.5) / len(draws)  # draws come in no order: ties at random
    return float(np.quantile((rank if upper else 1 - rank).min(axis=1), tail))


def tilted(
    scores: np.ndarray,
    draws: np.ndarray,
    counts: np.ndarray,
    influence: np.ndarray,
    reweighted: Callable[[np.ndarray], float],
    level: float,
) -> Limits:
    """Return limits of the winner by bootstrap tilting.

    `counts` are the draws over samples, `influence` what each sample adds to the winner's score, `reweighted` gives its
    score with other weights. The lower limit is the score under weights exp(tau influence) at which a score as high as
    the one that was seen is as rare as the adjusted tail; probabilities under these weights come from the same draws.
    """
    best = int(np.argmax(scores))
    own, spread, tail = draws[:, best], influence.std(), (1 - level) / 2
    if not spread > 0:
        return float(scores[best]), float(scores[best])
    u = (influence - influence.mean()) / spread

    def weights(tau: float) -> np.ndarray:
        power = np.exp(tau * u - (tau * u).max())
        return power / power.sum()

    ends = []
    for sign in (-1.0, 1.0):
        wanted = adjusted_tail(draws, tail, sign > 0)
        # As high, or as low, as seen; a draw that is equal counts one half.
        beyond = (sign * (scores[best] - own) > 1e-12) + 0.5 * (np.abs(own - scores[best]) <= 1e-12)
        low, high = 0.0, 8.0 / np.sqrt(len(u))  # eight standard errors
        for _ in range(40):
            tau = (low + high) / 2
            log_ratio = counts @ np.log(np.maximum(weights(sign * tau) * len(u), 1e-300))
            ratio = np.exp(log_ratio - log_ratio.max())
            low, high = (tau, high) if (ratio * beyond).sum() / ratio.sum() > wanted else (low, tau)
        ends.append(reweighted(weights(sign * high)))
    return ends[0], ends[1]


def zoom(scores: np.ndarray, draws: np.ndarray, level: float) -> Limits:
    """Return the zoom correction: the values t of the winner that its active radius reaches.

    At t configuration j is given (2 scores_j + t) / 3, or t if that is less. Its noise counts where it is more than
    half of what it lacks to t; the active radius is the quantile of the largest noise that counts.
    """
    noise, best = np.abs(draws - scores), int(np.argmax(scores))
    most = float(np.quantile(noise.max(axis=1), level))

    def reached(t: float) -> bool:
        gap = t - np.minimum((2 * scores + t) / 3, t)
        gap[best] = 0.0
        radius = np.quantile(np.where(noise > gap / 2, noise, 0.0).max(axis=1), level)
        return bool(abs(scores[best] - t) <= radius)

    ends = []
    for sign in (-1.0, 1.0):
        grid = scores[best] + sign * np.linspace(most, 0, 61)  # from outside, since what is reached need not be one run
        ends.append(float(next((t for t in grid if reached(t)), scores[best])))
    return ends[0], ends[1]


def nested(outer: Sequence[np.ndarray], inner: Sequence[np.ndarray], level: float) -> Limits:
    """Return the nested-fold limits of a mean of samples.

    By fold, `outer` has the values of its samples by a model of the others, `inner` those of the others by
    cross-validation among themselves.
    """
    folds, every = len(outer), np.concatenate(outer)
    gap = np.mean([(i.mean() - o.mean()) ** 2 for i, o in zip(inner, outer, strict=True)])
    noise = np.mean([o.var(ddof=1) / len(o) for o in outer])
    plain = every.std(ddof=1) / np.sqrt(len(every))
    error = np.sqrt(max(gap - noise, 0.0)) * np.sqrt((folds - 1) / folds)
    error = min(max(error, plain), plain * np.sqrt(folds))  # never below plain cross-validation's, nor that of one fold
    found = float(np.mean([i.mean() for i in inner]))
    estimate = found - (1 + (folds - 2) / folds) * (found - every.mean())  # training sets are smaller inside
    half = float(ndtri((1 + level) / 2)) * error
    return float(estimate - half), float(estimate + half)


def corrected_t(each: np.ndarray, level: float) -> Limits:
    """Return corrected resampled t limits from the scores of folds (repeat, fold)."""
    many, folds = each.size, each.shape[1]
    error = np.sqrt((1 / many + 1 / (folds - 1)) * each.var(ddof=1))
    half = float(stdtrit(many - 1, (1 + level) / 2)) * error
    return float(each.mean() - half), float(each.mean() + half)


def conservative_z(estimate: float, halves: np.ndarray, level: float) -> Limits:
    """Return conservative Z limits from the estimates of both halves of the samples (split, half)."""
    error = np.sqrt((np.diff(halves, axis=1) ** 2).mean() / 2)
    half = float(ndtri((1 + level) / 2)) * error
    return float(estimate - half), float(estimate + half)
