"""Which draws a metric can use, judged from labels and weights alone, so that every block of a cube agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .problem import Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric


@dataclass(frozen=True)
class LabelCheck:
    """What the labels of a draw must hold for a metric to be defined."""

    requires: str
    y: np.ndarray
    event: np.ndarray | None
    weight: np.ndarray | None
    n_classes: int

    @classmethod
    def of(cls, metric: Metric, problem: Problem) -> LabelCheck:
        """Return the check for a metric on a problem whose columns share their labels."""
        return cls(metric.requires, problem.y, problem.event, problem.weight, problem.n_classes)

    def on(self, rows: np.ndarray) -> LabelCheck:
        """Return the check for some of the samples."""
        event, weight = (None if part is None else part[rows] for part in (self.event, self.weight))
        return LabelCheck(self.requires, self.y[rows], event, weight, self.n_classes)

    def chosen(self, weights: np.ndarray) -> np.ndarray:
        """Return which rows of `weights` (draw, n) the metric is defined for."""
        w = weights if self.weight is None else weights * self.weight
        codes = self.codes()
        if codes:
            member = np.stack([self.y == code for code in codes], axis=1)
            kind = np.float64 if w.dtype.kind == "f" else np.float32
            some = np.all(w.astype(kind, copy=False) @ member.astype(kind) > 0, axis=1)
        else:
            some = np.any(w, axis=1)
        if self.requires == "spread":
            low = np.where(w > 0, self.y, np.inf).min(axis=1, initial=np.inf)
            high = np.where(w > 0, self.y, -np.inf).max(axis=1, initial=-np.inf)
            some = some & (low < high)
        elif self.requires == "pairs":
            some = some & self._comparable(w)
        return np.asarray(some)

    def _comparable(self, w: np.ndarray) -> np.ndarray:
        """Return whether some observed event is followed by a later (or equally late, censored) sample."""
        assert self.event is not None
        rank = 2.0 * np.unique(self.y, return_inverse=True)[1] + (self.event == 0)
        events = self.event == 1
        first = np.where((w > 0) & events, rank, np.inf).min(axis=1, initial=np.inf)
        latest = np.where(w > 0, rank, -np.inf).max(axis=1, initial=-np.inf)
        return np.asarray(first < latest)

    def pair(self, counts: np.ndarray) -> np.ndarray:
        """Return which draws can both choose (the counts) and judge (the samples left out)."""
        return np.asarray(self.chosen(counts) & self.chosen(counts == 0))

    def possible(self, group: np.ndarray | None = None) -> bool:
        """Return whether some draw could be usable, so that drawing again is not futile.

        What is needed must exist twice, in different units: once to choose, once to judge.
        """
        counted = np.ones(len(self.y), bool) if self.weight is None else self.weight > 0
        unit = np.arange(len(self.y)) if group is None else group
        y, unit = self.y[counted], unit[counted]
        if len(np.unique(unit)) < 2 or not self.chosen(np.ones((1, len(self.y))))[0]:
            return False
        if self.requires == "spread":
            return len(y) >= 4 and int(np.unique(y, return_counts=True)[1].max()) <= len(y) - 2
        if self.requires == "pairs":
            return self._two_pairs(counted)
        return all(len(np.unique(unit[y == code])) >= 2 for code in self.codes())

    def _two_pairs(self, counted: np.ndarray) -> bool:
        """Return whether two comparable pairs exist that share no sample: the two earliest events can begin them."""
        assert self.event is not None
        rank = (2.0 * np.unique(self.y, return_inverse=True)[1] + (self.event == 0))[counted]
        events = np.flatnonzero(self.event[counted] == 1)
        events = events[np.argsort(rank[events], kind="stable")][:2]
        later = np.sort(np.delete(rank, events))[-2:]
        return len(events) == 2 and len(later) == 2 and bool(np.all(rank[events] < later))

    def codes(self) -> list[int]:
        """Return the classes that a draw must hold."""
        if self.requires not in ("classes", "positive", "negative"):
            return []
        if self.requires == "classes" or (self.requires == "positive" and self.n_classes > 2):
            return list(range(self.n_classes))
        return [1] if self.requires == "positive" else [0]
