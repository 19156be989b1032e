"""What every kernel takes: labels and predictions as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Problem:
    """Labels and predictions of one cube as plain arrays.

    Attributes
    ----------
    y : (n,) or (n, m) codes (binary: 1 = positive), numbers or times; two axes when labels differ between columns.
    p : (n, m, r) predictions in the form the metric uses, or (k, n, m, r) with one plane per class.
    weight : (n,) case weights or None.
    event : (n,) 1 = observed, or None.
    n_classes : number of classes, 0 for numeric labels.
    """

    y: np.ndarray
    p: Any
    weight: np.ndarray | None
    event: np.ndarray | None
    n_classes: int

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.p.shape[-3])

    def columns(self, index: Any) -> Problem:
        """Return the problem restricted to some columns."""
        y = self.y if self.y.ndim == 1 else self.y[:, index]
        return replace(self, y=y, p=self.p[..., index, :])
