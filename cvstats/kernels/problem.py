"""What every kernel takes and does: labels and predictions as plain arrays; and which weights a metric can use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cvstats.metrics import Metric

CLASS_NEEDS = ("classes", "positive", "negative")  # what metrics require that need certain classes in a draw
FIRST = 16  # samples of a class that are looked at first
UNKNOWN = partial(np.ones, 0, bool)  # what is missing, until the predictions are looked at


@dataclass(frozen=True)
class Problem:
    """Labels and predictions of one cube as plain arrays.

    Attributes
    ----------
    y : (n,) codes (binary: 1 = positive), numbers or times.
    p : (n, m, r) predictions as they were saved, or (k, n, m, r), a plane per class or horizon; NaN where missing.
    weight : (n,) case weights or None.
    event : (n,) 1 = observed, or None.
    n_classes : number of classes, 0 for numeric labels.
    kind : what the predictions are: "label", "score", "probability" or "value".
    threshold : above which a prediction is the positive class, or None.
    model : (n, repeat, partner) which model of the repeat made a prediction (-1: none), where classes were sampled
        separately and only predictions of one model compare.
    partners : predictions of a sample in one repeat, where classes were sampled separately: the last axis of `p` is
        repeats x partners.
    fold : (repeat, fold, n) which samples each fold of a repeat holds, where choosing averages over folds; else None.
    horizon : (k,) times at which survival is predicted, else None.
    rows : which samples of the whole cube somebody predicted.
    eligible : (m,) which configurations predicted all of those.
    gaps : whether these lack predictions in some repeat; None while nothing is known of what is missing. It decides in
        which unit configurations are compared, so it stays that of the whole cube in its blocks.
    finite : name of the metric that needs finite predictions, or "".
    compete : whether a configuration must be complete to be eligible; those that only judge need not.
    names, complexity : (m,) of the configurations; what "simple" means is None when nothing says it.
    """

    y: np.ndarray
    p: Any
    weight: np.ndarray | None
    event: np.ndarray | None
    n_classes: int
    kind: str
    threshold: float | None
    model: np.ndarray | None = None
    partners: int = 1
    fold: np.ndarray | None = None
    horizon: np.ndarray | None = None
    rows: np.ndarray = field(default_factory=UNKNOWN)
    eligible: np.ndarray = field(default_factory=UNKNOWN)
    gaps: bool | None = None
    finite: str = ""
    compete: bool = True
    names: np.ndarray = field(default_factory=UNKNOWN)
    complexity: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.p.shape[-3])

    def columns(self, index: Any) -> Problem:
        """Return the problem restricted to some columns."""
        return replace(self, p=self.p[..., index, :])

    def samples(self, rows: np.ndarray) -> Problem:
        """Return the problem restricted to some samples."""
        weight, event, model = (None if part is None else part[rows] for part in (self.weight, self.event, self.model))
        fold = None if self.fold is None else self.fold[..., rows]
        p = self.p[..., rows, :, :]
        return replace(self, y=self.y[rows], p=p, weight=weight, event=event, model=model, fold=fold)

    def repeats(self, index: slice | np.ndarray) -> Problem:
        """Return the problem restricted to some repeats: the scores of one repeat are those of that problem."""
        if self.partners == 1:
            return replace(self, p=self.p[..., index], fold=None if self.fold is None else self.fold[index])
        p = self.p.reshape(*self.p.shape[:-1], -1, self.partners)[..., index, :]
        model = None if self.model is None else self.model[:, index]
        return replace(self, p=p.reshape(*self.p.shape[:-1], -1), model=model)

    def filled(self) -> np.ndarray:
        """Return (n, m, r): where there is a prediction."""
        gaps = np.isnan(self.p)
        return np.asarray(~(gaps.any(axis=0) if self.p.ndim == 4 else gaps))

    def check(self, requires: str) -> LabelCheck:
        """Return what the labels of a draw must hold for a metric that `requires` it to be defined."""
        return LabelCheck(requires, self.y, self.event, self.weight, self.n_classes)

    def read(self, uses: str, rows: slice = slice(None), *, whole: bool = False) -> np.ndarray:
        """Return the predictions of some samples in the form that a metric `uses`; NaN stays NaN.

        Of a `whole` cube, without gaps, classes take one byte each.
        """
        block = self.p[..., rows, :, :]
        if uses == "margin":
            return np.asarray(block.astype(np.float64, copy=False) - self.threshold)
        if uses == "survival" and self.kind in ("value", "probability"):
            return np.asarray(-block)  # a predicted time, or the probability to survive: the less, the higher the risk
        if uses != "label":
            return np.asarray(block)
        many, narrow = self.n_classes > 2, whole and self.n_classes < 256
        if self.kind == "label":
            with np.errstate(invalid="ignore"):  # gaps that a first pass over dask has still to find
                return np.asarray(block.astype(np.uint8) if narrow else block)
        hard = np.argmax(block, axis=0) if many else block > self.threshold
        if narrow:
            return np.asarray(hard.astype(np.uint8) if many else hard.view(np.uint8))
        missing = np.isnan(block)
        hard = hard.astype(np.float64 if many else np.float32)
        hard[missing.any(axis=0) if many else missing] = np.nan
        return np.asarray(hard)


class Kernel:
    """Scores of a problem's configurations by one metric, under many weight vectors at once.

    Made of the metric, the problem, and an upper bound of the sum of weights of a draw. A kernel says how `some`
    configurations are scored; the rest follows, unless it has a better way.
    """

    metric: Metric
    m: int  # number of configurations

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        raise NotImplementedError

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of neighbouring configurations under each row of `weights`: (draw, column[, place])."""
        raise NotImplementedError

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m[, place])."""
        return self.some(weights, range(self.m))

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (on exact sums where possible) and the scores, both (draw, m)."""
        score = self.scores(weights)
        return settled(score, self.metric.sign), score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        draws = [np.flatnonzero(index == j) for j in np.unique(index)]
        each = [self.some(weights[mine], range(index[mine[0]], index[mine[0]] + 1))[:, 0] for mine in draws]
        out = np.empty((len(index), *each[0].shape[1:]))
        out[np.concatenate(draws)] = np.concatenate(each)
        return out


def settled(values: np.ndarray, sign: int = 1) -> np.ndarray:
    """Return `sign` times values without their last bits (46 stay): those that rounding alone tells apart are tied."""
    out = np.asarray(np.multiply(values, sign, dtype=float))
    bits = out.view(np.int64)  # in place: a table may be large
    bits += 64
    bits &= -128
    return out


@dataclass(frozen=True)
class LabelCheck:
    """What the labels of a draw must hold for a metric to be defined."""

    requires: str
    y: np.ndarray
    event: np.ndarray | None
    weight: np.ndarray | None
    n_classes: int
    judging: bool = True  # whether the samples left out of a draw must hold it too

    def on(self, rows: np.ndarray) -> LabelCheck:
        """Return the check for some of the samples."""
        event, weight = (None if part is None else part[rows] for part in (self.event, self.weight))
        return replace(self, y=self.y[rows], event=event, weight=weight)

    def chosen(self, weights: np.ndarray) -> np.ndarray:
        """Return which rows of `weights` (draw, n) the metric is defined for."""
        if self.requires in CLASS_NEEDS and (codes := self.codes()):
            each = [self._some(weights, np.flatnonzero(self.y == code)) for code in codes]
            return np.asarray(np.all(each, axis=0))
        w = weights if self.weight is None else weights * self.weight
        if self.requires == "spread":  # some label differs from the first
            there = w > 0
            first = self.y[np.argmax(there, axis=1)]
            return np.asarray(np.any(there & (self.y != first[:, None]), axis=1))
        some = w.max(axis=1, initial=0) > 0
        return np.asarray(some & self._comparable(w) if self.requires == "pairs" else some)

    def _some(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return which rows of `weights` give some of the samples `rows` weight: most give it to one of the first."""
        scale = np.ones(1, np.uint8) if self.weight is None else self.weight[rows]
        there = np.asarray((weights[:, rows[:FIRST]] * scale[..., :FIRST]).any(axis=1))
        if not there.all():
            there[~there] = (weights[~there][:, rows] * scale).any(axis=1)
        return there

    def _comparable(self, w: np.ndarray) -> np.ndarray:
        """Return whether some observed event is followed by a later (or equally late, censored) sample."""
        assert self.event is not None
        order = np.lexsort((self.event == 0, self.y))
        y, event, there = self.y[order], self.event[order] == 1, w[:, order] > 0
        begins = there & event
        first, last = np.argmax(begins, axis=1), len(order) - 1 - np.argmax(there[:, ::-1], axis=1)
        later = (y[first] < y[last]) | ~event[last]
        return np.asarray(begins[np.arange(len(w)), first] & later)

    def pair(self, counts: np.ndarray) -> np.ndarray:
        """Return which draws can choose (the counts) and, if they are to, judge (the samples left out)."""
        usable = self.chosen(counts)
        return usable & self.chosen(counts == 0) if self.judging else usable

    def codes(self) -> list[int]:
        """Return the classes that a draw must hold."""
        if self.requires == "classes" or (self.requires == "positive" and self.n_classes > 2):
            return list(range(self.n_classes))
        return {"positive": [1], "negative": [0]}.get(self.requires, [])
