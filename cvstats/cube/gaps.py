"""What is missing in a cube: who predicted what, block by block, and which configurations may then win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cvstats._check import InputError
from cvstats.kernels import Problem


@dataclass(frozen=True)
class Report:
    """What one block of configurations says about missing predictions."""

    somebody: np.ndarray  # (n,) whether some configuration of the block has a prediction
    count: np.ndarray  # (m,) samples that the configuration predicted in some repeat
    missing: np.ndarray  # (m,) missing predictions, repeats counted


def report(data: Problem) -> Report:
    """Report what is missing in a block in memory."""
    filled = data.filled()
    some = np.asarray(filled.any(axis=2))
    return Report(np.asarray(some.any(axis=1)), some.sum(axis=0), (~filled).sum(axis=(0, 2)))


def reported(data: Problem, reports: Sequence[Report]) -> Problem:
    """Return the problem with what the reports of all its blocks say of missing predictions."""
    n, m, repeats = data.p.shape[-3:]
    rows = np.logical_or.reduce([part.somebody for part in reports])
    count = np.concatenate([part.count for part in reports])
    missing = np.concatenate([part.missing for part in reports])
    total = int(rows.sum())
    if not total:
        raise InputError("`cube` holds no predictions: every value is NaN.")
    eligible = np.asarray(count == total) if data.compete else np.ones(m, bool)
    if not eligible.any():
        raise InputError(
            "no configuration predicted every sample that any configuration predicted, so none may be selected; "
            f"the most complete has {int(count.max())} of {total} samples. Drop samples or configurations."
        )
    gaps = bool((missing[eligible] > (n - total) * repeats).any())
    return replace(data, rows=rows, eligible=eligible, gaps=gaps)
