"""Kernels for means and sums of squares that survive large offsets. NaN marks a value that is not there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray
_TINY = 16 * np.finfo(np.float64).eps


class Moments(NamedTuple):
    """Per group (last axis reduced): count, mean = origin + offset, sum of squares, and the deviations themselves."""

    n: Array
    origin: Array
    offset: Array
    ss: Array
    deviation: Array  # zero where a value is missing
    present: Array


def moments(values: Array) -> Moments:
    """Return mean and sum of squares along the last axis, computed about the group's first value.

    Subtracting a data value is exact or nearly so, and leaves numbers of the size of the spread.
    """
    present = ~np.isnan(values)
    n = present.sum(-1)
    full = bool((n == values.shape[-1]).all())
    origin = values[..., :1] if full else np.take_along_axis(values, present.argmax(-1)[..., None], -1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        deviation = values - origin
        if not full:
            deviation[~present] = 0.0
        offset = deviation.sum(-1) / n
        deviation -= offset[..., None]
        if not full:
            deviation[~present] = 0.0
        rest = deviation.sum(-1)
        offset = offset + rest / n
        ss = np.maximum(np.einsum("...i,...i->...", deviation, deviation) - rest**2 / n, 0.0)
        ss = np.where(np.isfinite(ss), ss, np.nan)  # too large for a sum of squares
    return Moments(n, origin[..., 0], offset, ss, deviation, present)


def unit_scale(deviation: Array, axes: tuple[int, ...]) -> Array:
    """Return the power of two nearest the largest deviation, so that fourth powers neither overflow nor vanish."""
    largest = _largest(deviation, axes, keepdims=True)
    exponent = np.where(np.isfinite(largest) & (largest > 0), np.frexp(largest)[1], 0)
    return np.asarray(np.ldexp(1.0, exponent))


class Anova(NamedTuple):
    """One-way analysis of variance over groups (axis -1 of the group statistics)."""

    statistic: Array
    df: Array
    df_residual: Array
    effect: Array  # eta squared


def anova(n: Array, mean: Array, ss: Array, noise: Array) -> Anova:
    """Return F from group sizes, means and sums of squares; empty groups are left out.

    `noise` is the size of rounding errors in a single value; a residual sum of squares below it counts as zero.
    """
    filled = n > 0
    mean = np.where(filled, mean, 0.0)
    within = np.where(filled, ss, 0.0).sum(-1)
    total = n.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        grand = (n * mean).sum(-1) / total
        between = (n * (mean - grand[..., None]) ** 2).sum(-1)
        return _f_test(between, within, filled.sum(-1) - 1, total - filled.sum(-1), total * noise**2)


def anova_against(n: Array, mean: Array, ss: Array, noise: Array, reference: int) -> Anova:
    """Return F of every group against one reference group; the reference itself gets NaN."""
    n_ref, mean_ref, ss_ref = (part[..., reference : reference + 1] for part in (n, mean, ss))
    total = n + n_ref
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        between = n * n_ref / total * (mean - mean_ref) ** 2
        found = _f_test(between, ss + ss_ref, np.where(n > 0, 1, 0), total - 2, total * noise[..., None] ** 2)
    own = np.arange(n.shape[-1]) == reference
    return Anova(*(np.where(own, np.nan, part) for part in found))


def _f_test(between: Array, within: Array, df: Array, df_residual: Array, noise: Array) -> Anova:
    usable = (df > 0) & (df_residual > 0) & (within > noise)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        f = (between / df) / (within / df_residual)
        effect = between / (between + within)
    return Anova(
        np.where(usable, f, np.nan), df.astype(float), df_residual.astype(float), np.where(usable, effect, np.nan)
    )


def rounding(deviation: Array, axes: tuple[int, ...]) -> Array:
    """Return how large rounding errors of a single value are, given what was subtracted to get it."""
    return np.asarray(_TINY * _largest(deviation, axes))


def _largest(values: Array, axes: tuple[int, ...], *, keepdims: bool = False) -> Array:
    # the extremes of both signs: no copy, unlike abs()
    high = values.max(axes, keepdims=keepdims, initial=0.0)
    low = values.min(axes, keepdims=keepdims, initial=0.0)
    return np.asarray(np.maximum(high, -low))
