"""Means of a loss within each class, on all samples and over draws within classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from cvstats._check import InputError
from cvstats.cube.blocks import problem_on, surveyed
from cvstats.cube.make import class_names
from cvstats.judge import scored
from cvstats.metrics import Metric
from cvstats.resample import Bootstrap, Given, codes_of

LOSSES = ("error_rate", "brier", "log_loss", "smoothed_error_rate")


def check_loss(metric: Metric, cube: xr.DataArray) -> Metric:
    """Return the metric if it is a mean of per-sample losses of class labels, else say which are."""
    if class_names(cube) is None:
        raise InputError("class errors are for class labels, but the cube holds numbers. Use cv() or winner().")
    if metric.family != "mean" or metric.direction != "minimize" or metric.uses == "value":
        raise InputError(
            f"`metric` must be a mean of per-sample losses ({', '.join(LOSSES)}), because class errors are means over "
            f"the samples of a class; got {metric.name!r}."
        )
    return metric


def within_class(metric: Metric, code: int) -> Metric:
    """Return the mean loss over the samples of one class as a metric."""

    def ingredients(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
        (loss,) = metric.ingredients(y, p, k)
        return [(y == code) & loss if loss.dtype == bool else np.where(y == code, loss, 0.0)]

    def count(y: np.ndarray, k: int) -> list[np.ndarray]:
        return [(y == code).astype(float)]

    def formula(sums: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(sums[0] / labels[1])

    return replace(
        metric, family="smooth", monotone=0, requires="", ingredients=ingredients, label_parts=count, formula=formula
    )


@dataclass(frozen=True)
class ClassDraws:
    """Class errors of every configuration on all samples and in every draw.

    Attributes
    ----------
    point : (configuration, class) errors on all samples.
    mean : (configuration,) mean over all samples, whatever their class.
    draw : (draw, configuration, class) errors, and the mean over samples in draw_mean : (draw, configuration).
    size : (class,) number of samples (of groups, when groups are drawn), and their share of the weight.
    """

    point: np.ndarray
    mean: np.ndarray
    draw: np.ndarray
    draw_mean: np.ndarray
    size: np.ndarray
    share: np.ndarray

    @property
    def times(self) -> int:
        """Number of draws."""
        return len(self.draw)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation over draws, (configuration, class)."""
        return _std(self.draw) if self.times > 1 else np.full(self.point.shape, np.nan)

    def class_limits(self, tails: Sequence[float]) -> np.ndarray:
        """Return type-7 quantiles over draws: (tail, configuration, class)."""
        if not self.times:
            return np.full((len(tails), *self.point.shape), np.nan)
        return _quantile(self.draw, tails)

    def overall(self, weights: np.ndarray | None, tails: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return estimate and spread (prior, configuration) and quantiles (tail, prior, configuration).

        Without weights the classes count by their number of samples.
        """
        values, drawn = self.mean[None], [self.draw_mean]
        if weights is not None:
            values = np.stack([_weighted(self.point, row) for row in weights])
            drawn = [_weighted(self.draw, row) for row in weights]
        if not self.times:
            empty = np.full(values.shape, np.nan)
            return values, empty, np.broadcast_to(empty, (len(tails), *values.shape))
        spread = np.stack([_std(part) for part in drawn])
        return values, spread, np.stack([_quantile(part, tails) for part in drawn], axis=1)


def _weighted(errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum over classes; a class of probability zero does not count, even when undefined."""
    used = weights > 0
    return np.asarray(errors[..., used] @ weights[used])


def _std(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.std(axis=0, ddof=1))


def _quantile(values: np.ndarray, tails: Sequence[float]) -> np.ndarray:
    return np.asarray(np.quantile(values, tails, axis=0))


def class_draws(cube: xr.DataArray, metric: Metric, times: int, seed: int) -> ClassDraws:
    """Return class errors of a cube without batch dims, with draws of whole samples (or groups) within each class."""
    rows = surveyed(problem_on(cube, metric, compete=False)).rows
    cube = cube if rows.all() else cube.isel(sample=rows)
    names = class_names(cube) or []
    label = cube["label"].values
    code = np.select([label == name for name in names], np.arange(len(names)), -1)
    group = codes_of(cube, None, "groups")
    unit = code
    if group is not None:
        low, high = np.full(group.max() + 1, len(names)), np.full(group.max() + 1, -1)
        np.minimum.at(low, group, code)
        np.maximum.at(high, group, code)
        if (low != high).any():
            raise InputError(
                f"`cube`: {int((low != high).sum())} of {len(low)} groups hold samples of several classes; classes "
                "that were sampled separately are drawn separately, so every group must lie in one class."
            )
        unit = low
    size = np.bincount(unit, minlength=len(names))
    weight = cube["weight"].values if "weight" in cube.coords else np.ones(len(code))
    share = np.bincount(code, weight, minlength=len(names)) / weight.sum()
    present = np.unique(code, return_inverse=True)[1]
    everything = Given(np.ones((1, len(code)), np.int32))
    draws = Bootstrap(len(code), times, seed, group=group, strata=present) if times else Given(everything.values[:0])
    data = problem_on(cube, metric, compete=False)
    wanted = [metric, *(within_class(metric, number) for number in range(len(names)))]
    parts = [scored(loss, data, everything, draws)[1] for loss in wanted]
    (mean, draw_mean), *each = parts
    point, draw = (np.stack(tables, axis=-1) for tables in zip(*each, strict=True))
    return ClassDraws(point[0], mean[0], draw, draw_mean, size, share)
