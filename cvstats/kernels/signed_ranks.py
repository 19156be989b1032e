"""Ranks of paired differences and of blocks: Wilcoxon's signed-rank distribution, exact with ties."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

EXACT_UP_TO = 50


def signed_rank(values: np.ndarray, alternative: str, digits: int | None = None) -> dict[str, np.ndarray]:
    """Return Wilcoxon's V and its p-value along the last axis; zeros and NaN are left out.

    By hand, because scipy's distribution is not exact with ties and its sizes are not compared to `digits`.
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    zero = values == 0
    kept = ~(zero | np.isnan(values))
    size = np.where(kept, np.abs(values), np.nan)
    if digits is not None:
        size = significant(size, digits)
    n = kept.sum(-1)
    # twice the mid-rank is a whole number; 0 for what is left out
    doubled = np.where(kept, 2 * rankdata(size, axis=-1, nan_policy="omit"), 0).astype(np.int64)
    twice_v, total = np.where(values > 0, doubled, 0).sum(-1), n * (n + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = (2 * twice_v - total) / total
        distance, spread = twice_v / 2 - total / 4, np.sqrt((doubled**2).sum(-1)) / 4
        correction = {"two-sided": np.sign(distance) / 2, "greater": 0.5, "less": -0.5}[alternative]
        z = (distance - correction) / np.where(n > 0, spread, np.nan)
    lower, upper = np.asarray(ndtr(z)), np.asarray(ndtr(-z))
    exact = (n > 0) & (n <= EXACT_UP_TO)
    for at in np.argwhere(exact):
        cell = tuple(at)
        below = _below(tuple(np.sort(doubled[cell][doubled[cell] > 0]).tolist()))
        lower[cell], upper[cell] = below[twice_v[cell]], below[total[cell] - twice_v[cell]]  # a symmetric distribution
    p_value = {"less": lower, "greater": upper, "two-sided": np.minimum(2 * np.minimum(lower, upper), 1.0)}[alternative]
    return {
        "statistic": np.where(n > 0, twice_v / 2, np.nan),
        "p_value": p_value,
        "effect_size": effect,
        "n": n,
        "n_zero": zero.sum(-1),
        "exact": exact,
    }


@lru_cache(maxsize=256)
def _below(ranks: tuple[int, ...]) -> np.ndarray:
    """Return P(V <= v / 2) for v = 0, 1, ...: sign patterns that reach a sum, at most 2**50, are exact in float64."""
    ways = np.zeros(sum(ranks) + 1)
    ways[0], reach = 1.0, 0
    for rank in ranks:
        reach += rank
        ways[rank : reach + 1] += ways[: reach - rank + 1].copy()
    return np.cumsum(ways) / 2.0 ** len(ranks)


@np.errstate(divide="ignore", invalid="ignore")
def significant(values: np.ndarray, digits: int) -> np.ndarray:
    """Round positive numbers to `digits` significant digits."""
    power = digits - 1 - np.floor(np.log10(values))
    return np.where(np.isfinite(power), np.round(values * 10.0**power) / 10.0**power, values)


def block_ranks(values: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mid-ranks within blocks (last axis: methods) and their means; blocks with one method become NaN."""
    from scipy.stats import rankdata

    ranks = rankdata(-values if direction == "maximize" else values, axis=-1, nan_policy="omit")
    present = (~np.isnan(ranks)).sum(-1, keepdims=True)
    ranks = np.where(present > 1, ranks, np.nan)
    used = (~np.isnan(ranks)).sum(-2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ranks, np.nansum(ranks * (values.shape[-1] + 1) / (present + 1), -2) / used
