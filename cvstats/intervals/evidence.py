"""What interval methods work on, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import xarray as xr

from cvstats.metrics import Metric


@dataclass(frozen=True)
class Evidence:
    """All that an interval method may use, for one cube without batch dims."""

    metric: Metric
    estimate: float  # the point estimate, in the metric's unit
    bbc: float  # plain BBC
    naive: float  # the winner's score on all data
    scores: np.ndarray  # (configuration,) scores on all data of those that may be selected
    variance: np.ndarray  # (configuration,) their variance over draws
    chosen: np.ndarray  # (draw,) score on all data of each draw's winner
    values: np.ndarray  # (draw,) each draw's judged value
    n: int  # independent units: samples, or groups
    samples: int  # how many samples that are
    smallest_class: int  # samples of the rarest class (n for metrics that need none)
    estimator: str = "bbc"  # "bbc", "bbc_cross_repeat", "bbc_ncv" or "bbc_x"
    cube: xr.DataArray | None = None
    seed: int = 0
    times: int = 1000  # draws made, usable or not
    grouped: bool = False
    weighted: bool = False
    wins: np.ndarray | None = None  # (configuration,) share of draws each won
    errors: float = 0.0  # how many samples the winner misclassifies, for a mean loss of probabilities; else 0
    unseen: float = 0.0  # what one more would cost; 0 for other metrics
    within: float = np.nan  # the winner's AUC among samples of the same fold
    seen: float = 1.0  # share of the samples that models were trained on
    kept: np.ndarray | None = (
        None  # (draw,) of any decision but a plain choice: the score of the final decision in draws
    )

    @property
    def one_configuration(self) -> bool:
        """Whether nothing was selected."""
        return len(self.scores) == 1 and self.kept is None


class Method(Protocol):
    """An interval method."""

    name: str  # in results

    def limits(self, evidence: Evidence, level: float) -> tuple[float, float, float]:
        """Return lower limit, upper limit and standard error."""
