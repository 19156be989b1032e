"""What every kernel takes: labels and predictions as plain arrays, and weights of samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
UNKNOWN = partial(np.ones, 0, bool)  # what is missing, until the predictions are looked at


@dataclass(frozen=True)
class Problem:
    """Labels and predictions of one cube as plain arrays.

    Attributes
    ----------
    y : (n,) or (n, m) codes (binary: 1 = positive), numbers or times; two axes when labels differ between columns.
    p : (n, m, r) predictions as they were saved, or (k, n, m, r) with one plane per class; NaN where missing.
    weight : (n,) case weights or None.
    event : (n,) 1 = observed, or None.
    n_classes : number of classes, 0 for numeric labels.
    kind : what the predictions are: "label", "score", "probability" or "value".
    threshold : above which a prediction is the positive class, or None.
    model : (n, repeat, partner) which model of the repeat made a prediction (-1: none), where classes were sampled
        separately and only predictions of one model compare; the last axis of `p` is then repeats x partners.
    fold : (repeat, fold, n) which samples each fold of a repeat holds, where choosing averages over folds; else None.
    rows : (n,) which samples somebody predicted.
    eligible : (m,) which configurations predicted all of those.
    gaps : whether these lack predictions in some repeat; None while nothing is known of what is missing.
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
    fold: np.ndarray | None = None
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
        y = self.y if self.y.ndim == 1 else self.y[:, index]
        return replace(self, y=y, p=self.p[..., index, :])

    def samples(self, rows: np.ndarray) -> Problem:
        """Return the problem restricted to some samples."""
        weight, event, model = (None if part is None else part[rows] for part in (self.weight, self.event, self.model))
        fold = None if self.fold is None else self.fold[..., rows]
        p = self.p[..., rows, :, :]
        return replace(self, y=self.y[rows], p=p, weight=weight, event=event, model=model, fold=fold)

    def repeats(self, index: slice | np.ndarray) -> Problem:
        """Return the problem restricted to some repeats: the scores of one repeat are those of that problem."""
        if self.model is None:
            return replace(self, p=self.p[..., index], fold=None if self.fold is None else self.fold[index])
        _, repeats, partners = self.model.shape
        p = self.p.reshape(*self.p.shape[:-1], repeats, partners)[..., index, :]
        return replace(self, p=p.reshape(*self.p.shape[:-1], -1), model=self.model[:, index])

    def filled(self) -> np.ndarray:
        """Return (n, m, r): where there is a prediction."""
        gaps = np.isnan(self.p)
        return np.asarray(~(gaps.any(axis=0) if self.p.ndim == 4 else gaps))

    def read(self, uses: str, rows: slice = slice(None), *, whole: bool = False) -> np.ndarray:
        """Return the predictions of some samples in the form that a metric `uses`; NaN stays NaN.

        Of a `whole` cube, without gaps, classes take one byte each.
        """
        block = self.p[..., rows, :, :]
        if uses == "label":
            return self._classes(block, whole and self.n_classes < 256)
        if uses == "margin":
            return np.asarray(block.astype(np.float64, copy=False) - self.threshold)
        if uses == "survival" and self.kind == "value":
            return np.asarray(-block)  # a predicted time: the shorter, the higher the risk
        return np.asarray(block)

    def _classes(self, block: np.ndarray, narrow: bool) -> np.ndarray:
        if self.kind == "label":
            with np.errstate(invalid="ignore"):  # gaps that a first pass over dask has still to find
                return block.astype(np.uint8) if narrow else block
        hard = np.argmax(block, axis=0) if self.n_classes > 2 else block > self.threshold
        if narrow:
            return hard.view(np.uint8) if hard.dtype == bool else hard.astype(np.uint8)
        missing = np.isnan(block)
        missing = missing.any(axis=0) if self.n_classes > 2 else missing
        hard = hard.astype(np.float64 if self.n_classes > 2 else np.float32)
        hard[missing] = np.nan
        return hard


class Weights:
    """Weights of a block of draws (draw, n), and what kernels derive from them alone, computed once.

    Kernels take a plain array too; one object serves the kernels of many blocks of configurations.
    """

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts
        self._known: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, weights: np.ndarray | Weights) -> Weights:
        """Return weights with a memory."""
        return weights if isinstance(weights, Weights) else cls(weights)

    def __len__(self) -> int:
        return len(self.counts)

    def __reduce__(self) -> Any:
        return Weights, (self.counts,)  # whoever receives them derives the rest again

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of these weights under `key`, making it the first time."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]  # type: ignore[no-any-return]

    def cast(self, dtype: Any) -> np.ndarray:
        """Return the weights in the precision of what they are multiplied with; real ones stay double."""
        kind = np.dtype(float if self.counts.dtype.kind == "f" else dtype)  # single precision is exact for counts only
        return self.cached(kind, lambda: self.counts.astype(kind, copy=False))
