"""The walk down sorted columns, in numpy; numba takes over when it is installed and the job repays compiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._ranks import Task


def walk(statistic: str, task: Task, weights: np.ndarray) -> np.ndarray:
    """Return (column, draw): twice the Mann-Whitney count, or the sum of precision at each positive.

    `weights` is (n, draw) with draws contiguous, so that each step is one vector operation over draws.
    """
    step = _auc_column if statistic == "auc" else _precision_column
    rows = list(weights)
    positive = task.positive.tolist()
    out = np.empty((task.order.shape[0], weights.shape[1]), weights.dtype)
    for column in range(len(out)):
        size = len(rows) if task.count is None else int(task.count[column])
        step(task.order[column, :size].tolist(), task.last[column, :size].tolist(), positive, rows, out[column])
    return out


def _auc_column(order: list[int], last: list[bool], positive: list[bool], rows: list[np.ndarray], out: np.ndarray) -> None:
    """Walk upwards: a negative adds to the weight below, a positive collects twice the weight below it."""
    out[:] = 0
    below = np.zeros_like(out)
    product = np.empty_like(out)
    tied: list[int] = []
    for row, ends in zip(order, last, strict=True):
        if ends and not tied:
            if positive[row]:
                np.multiply(rows[row], below, out=product)
                out += product
                out += product
            else:
                below += rows[row]
            continue
        tied.append(row)
        if ends:
            _tie_group(tied, positive, rows, below, product, out)
            tied.clear()


def _tie_group(
    tied: list[int],
    positive: list[bool],
    rows: list[np.ndarray],
    below: np.ndarray,
    product: np.ndarray,
    out: np.ndarray,
) -> None:
    """Positives of a tie group see the weight below before and after the group's negatives: half of each tie."""
    above = [row for row in tied if positive[row]]
    for row in above:
        np.multiply(rows[row], below, out=product)
        out += product
    for row in tied:
        if not positive[row]:
            below += rows[row]
    for row in above:
        np.multiply(rows[row], below, out=product)
        out += product


def _precision_column(
    order: list[int], last: list[bool], positive: list[bool], rows: list[np.ndarray], out: np.ndarray
) -> None:
    """Walk downwards: at the end of each tie group its positives count the precision reached there."""
    out[:] = 0
    hits, seen = np.zeros_like(out), np.zeros_like(out)
    gain = np.zeros_like(out)
    size = len(order)
    for place in range(size - 1, -1, -1):
        row = order[place]
        seen += rows[row]
        if positive[row]:
            gain += rows[row]
        if place == 0 or last[place - 1]:
            hits += gain
            with np.errstate(divide="ignore", invalid="ignore"):
                out += np.where(gain > 0, gain * (hits / seen), 0.0)
            gain[:] = 0
