"""The scale on which a calibrated interval is built: [0, 1] with Wilson's limits, the log of a loss, or the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from cvstats.metrics import Metric

    from .evidence import Evidence


def wilson_limits(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score limits for a share observed on n trials."""
    widen = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / widen
    half = z / widen * np.sqrt(max(share * (1 - share), 0.0) / n + z * z / (4 * n * n))
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def quantiles(values: np.ndarray, shares: list[float]) -> np.ndarray:
    """Return quantiles (type 7) along the last axis, NaN left out; next to an infinite value lies infinity."""
    low, high = (np.nanquantile(values, shares, axis=-1, method=end) for end in ("lower", "higher"))
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.nanquantile(values, shares, axis=-1)
        found = np.where(np.isinf(low) | np.isinf(high), low + high, found)
    return np.moveaxis(np.where(low == high, low, found), 0, -1)


class Spread(Protocol):
    """How uncertain a value at some centre is."""

    def limits(self, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t."""
        ...

    def error(self, centre: float) -> float:
        """Return the standard error at a centre."""
        ...

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Return what `spread_on` makes it from again."""
        ...


class Scale(Protocol):
    """A map from the metric's unit to performance direction and back."""

    @property
    def ends(self) -> tuple[float, float]:
        """Return its best and worst end, in the metric's unit."""
        ...

    def forward(self, value: float) -> float:
        """Return a value on the scale."""
        ...

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        ...

    def error_back(self, centre: float, error: float) -> float:
        """Return a standard error in the metric's unit."""
        ...

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> Spread:
        """Return the spread that the evidence implies."""
        ...


@dataclass(frozen=True)
class UnitSpread:
    """Wilson's limits at n(c) = c (1 - c) / (kappa c (1 - c) / n_eff + psi V_s)."""

    n_eff: float
    kappa: float
    extra: float  # psi * V_s

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Return what `spread_on` makes it from again."""
        return self.n_eff, self.kappa, self.extra

    def size(self, centre: float) -> float:
        """Return n(c)."""
        edge = 1 / (2 * self.n_eff)
        c = min(max(centre, edge), 1 - edge)
        wobble = c * (1 - c)
        return wobble / (self.kappa * wobble / self.n_eff + self.extra)

    def limits(self, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t."""
        return wilson_limits(min(max(centre, 0.0), 1.0), self.size(centre), t)

    def error(self, centre: float) -> float:
        """Return the standard error at a centre."""
        c = min(max(centre, 0.0), 1.0)
        return float(np.sqrt(c * (1 - c) / self.size(centre)))


@dataclass(frozen=True)
class UnitScale:
    """A metric with two ends, mapped to [0, 1] with 1 the best."""

    best: float
    worst: float

    @property
    def ends(self) -> tuple[float, float]:
        """Return its best and worst end, in the metric's unit."""
        return self.best, self.worst

    def forward(self, value: float) -> float:
        """Return a value on the scale."""
        return (value - self.worst) / (self.best - self.worst)

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        return self.worst + value * (self.best - self.worst)

    def error_back(self, centre: float, error: float) -> float:
        """Return a standard error in the metric's unit."""
        return error * abs(self.best - self.worst)

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> UnitSpread:
        """Return the spread that the evidence implies."""
        width2 = (self.best - self.worst) ** 2
        theta = (evidence.scores - self.worst) / (self.best - self.worst)
        noise = float(np.nansum(evidence.variance)) / width2
        wobble = float(np.nansum(theta * (1 - theta)))
        n_eff = float(evidence.n) if noise <= 0 else min(float(evidence.n), max(wobble / noise, 1.0))
        if noise > 0 and wobble <= 0:
            n_eff = float(evidence.n)
        return UnitSpread(n_eff, kappa, psi * selection_variance(evidence) / width2)


@dataclass(frozen=True)
class LineSpread:
    """A constant standard error on the scale."""

    std_error: float

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Return what `spread_on` makes it from again."""
        return self.std_error, np.nan, np.nan

    def limits(self, centre: float, t: float) -> tuple[float, float]:
        """Return the limits around a centre at quantile t."""
        return centre - t * self.std_error, centre + t * self.std_error

    def error(self, centre: float) -> float:
        """Return the standard error at a centre."""
        return self.std_error


@dataclass(frozen=True)
class LogScale:
    """A loss without an upper end (or a score without a lower end): minus the log of its distance from perfection."""

    best: float
    sign: int  # +1 when the metric grows with performance

    @property
    def ends(self) -> tuple[float, float]:
        """Return its best and worst end, in the metric's unit."""
        return self.best, -self.sign * np.inf

    def _loss(self, value: float) -> float:
        return (self.best - value) * self.sign

    def forward(self, value: float) -> float:
        """Return a value on the scale."""
        loss = self._loss(value)
        return -float(np.log(loss)) if loss > 0 else np.inf

    def back(self, value: float) -> float:
        """Return a value in the metric's unit."""
        return self.best - self.sign * float(np.exp(-value))

    def error_back(self, centre: float, error: float) -> float:
        """Return a standard error in the metric's unit."""
        return float(np.exp(-centre)) * error

    def spread(self, evidence: Evidence, kappa: float, psi: float) -> LineSpread:
        """Return the spread that the evidence implies."""
        loss = (self.best - evidence.scores) * self.sign
        good = np.isfinite(loss) & np.isfinite(evidence.variance)
        square = float((loss[good] ** 2).sum())
        centre = self._loss(evidence.estimate)
        if square <= 0 or not centre > 0:
            return LineSpread(0.0)
        own = float(evidence.variance[good].sum()) / square
        if evidence.wins is not None:  # poor configurations have large losses and little relative noise
            used = good & (loss > 0)
            share = evidence.wins[used]
            if share.sum() > 0:
                own = max(own, float((share * evidence.variance[used] / loss[used] ** 2).sum() / share.sum()))
        return LineSpread(float(np.sqrt(kappa * own + psi * selection_variance(evidence) / centre**2)))


def selection_variance(evidence: Evidence) -> float:
    """Return V_s: the variance over draws of the full-data score of the draw's winner."""
    chosen = evidence.chosen[np.isfinite(evidence.chosen)]
    return float(chosen.var(ddof=1)) if len(chosen) > 1 else 0.0


def spread_on(scale: Scale, first: float, kappa: float, extra: float) -> Spread:
    """Return the spread that has these `numbers` on a scale."""
    return UnitSpread(first, kappa, extra) if isinstance(scale, UnitScale) else LineSpread(first)


def scale_between(best: float, worst: float) -> Scale:
    """Return the scale with these ends."""
    return UnitScale(best, worst) if np.isfinite(worst) else LogScale(best, 1 if worst < 0 else -1)


def scale_of(metric: Metric) -> Scale | None:
    """Return the scale for a metric, by its range, or None when the range has no end to build on.

    Losses of real values (Brier) use the log like unbounded ones.
    """
    low, high = metric.range
    if np.isfinite(low) and np.isfinite(high) and metric.name != "brier":
        return UnitScale(best=high, worst=low) if metric.sign > 0 else UnitScale(best=low, worst=high)
    if metric.sign < 0 and np.isfinite(low):
        return LogScale(best=low, sign=-1)
    if metric.sign > 0 and np.isfinite(high):
        return LogScale(best=high, sign=1)
    return None
