"""Mixtures of configurations under many weights: which share each has, learned anew in every draw.

A mixture is a weighted mean of the predictions of some configurations: numbers, probabilities, class votes, or scores
that share a scale. Shares (draw, configuration) are not negative and add up to one, and one share serves all repeats.
Only configurations that predicted whatever anyone predicted take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TILE = 4_000_000  # numbers in an intermediate array
CLOSE = 1e-12  # losses that differ by less than this part of what they are summed from are tied: it is rounding
Loss = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class SquaredSteps:
    """Sums of squared residuals (mean squared error, Brier score): entries (e, m) with weights (draw, e).

    The sum S of the members' residuals tells all: the next member j makes it ``|S|^2 + 2 S.e_j + |e_j|^2``.
    """

    def __init__(self, residual: np.ndarray, weights: np.ndarray) -> None:
        self.residual, self.weights = residual, weights
        self.columns = np.ascontiguousarray(residual.T)
        self.own = weights @ residual**2
        self.sum = np.zeros(weights.shape)  # of the members' residuals, weighted
        self.norm = np.zeros(len(weights))
        self.count = 0

    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared error (draw, m) of the mean of the members and one more, and its scale."""
        self.next = self.norm[:, None] + 2 * (self.sum @ self.residual) + self.own
        scale = (self.count + 1) ** 2
        return self.next / scale, (self.norm[:, None] + self.own) / scale

    def add(self, member: np.ndarray) -> None:
        """Add a member; `losses` was called before."""
        self.norm = self.next[np.arange(len(member)), member]
        self.sum += self.weights * self.columns[member]
        self.count += 1


class ScoredSteps:
    """Any loss, by scoring the candidate mixtures of one draw after the other.

    ``loss(rows, p, w)`` returns the loss (m,) of predictions (..., rows, m, r) of the samples `rows` under weights w.
    """

    def __init__(self, p: np.ndarray, weights: np.ndarray, loss: Loss) -> None:
        self.p, self.loss = p, loss
        self.rows = [np.flatnonzero(row) for row in weights]
        self.weights = [row[rows] for row, rows in zip(weights, self.rows, strict=True)]
        self.sums = [np.zeros((*p.shape[:-3], len(rows), 1, p.shape[-1])) for rows in self.rows]
        self.count = 0

    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss (draw, m) of the mean of the members and one more, and its scale."""
        out = np.full((len(self.rows), self.p.shape[-2]), np.nan)
        for b, (rows, w, sums) in enumerate(zip(self.rows, self.weights, self.sums, strict=True)):
            if len(rows):
                out[b] = self.loss(rows, (sums + self.p[..., rows, :, :]) / (self.count + 1), w)
        return out, np.abs(out)

    def add(self, member: np.ndarray) -> None:
        """Add a member."""
        for rows, sums, j in zip(self.rows, self.sums, member, strict=True):
            sums += self.p[..., rows, j : j + 1, :]
        self.count += 1


Steps = SquaredSteps | ScoredSteps  # a greedy search in progress, in a block of draws


@dataclass(frozen=True)
class Candidates:
    """What a mixture is learned from.

    Attributes
    ----------
    p : (n, m, r) or (k, n, m, r) predictions.
    target : what a squared error compares them with, of their shape or broadcast to it; None for any other loss.
    loss : any other loss; see `ScoredSteps`.
    """

    p: np.ndarray
    target: np.ndarray | None = None
    loss: Loss | None = None

    def greedy(self, weights: np.ndarray, size: int, *, replace: bool = True, start: int = 0) -> np.ndarray:
        """Return shares (draw, m) by forward selection: `size` times the member that makes the mixture best.

        The first `start` members are the best configurations by themselves, each once. Without `replace` all are
        different. Ties go to the first. NaN where nothing has a loss.
        """
        eligible = complete(self.p)
        p = self.p
        n, m, r = p.shape[-3:]
        planes = p.size // (n * m * r)
        if self.target is not None:
            residual = np.where(np.isnan(p), 0.0, p) - self.target  # what nobody predicted is off by the same for all
            residual = residual.reshape(planes, n, m, r).transpose(1, 0, 3, 2).reshape(-1, m)
        out = np.empty((len(weights), m))
        step = max(1, TILE // max(1, p.size // m))
        for begin in range(0, len(weights), step):
            w = weights[begin : begin + step].astype(float)
            steps: Steps
            if self.target is not None:
                steps = SquaredSteps(residual, np.repeat(w, planes * r, axis=1))
            else:
                assert self.loss is not None
                steps = ScoredSteps(p, w, self.loss)
            share = _search(steps, np.broadcast_to(eligible, (len(w), m)), size, replace=replace, start=start)
            out[begin : begin + step] = np.where((w > 0).any(axis=1, keepdims=True), share, np.nan)
        return out


def _search(steps: Steps, eligible: np.ndarray, size: int, *, replace: bool, start: int) -> np.ndarray:
    count = np.zeros(eligible.shape)
    rows = np.arange(len(count))
    alone: tuple[np.ndarray, np.ndarray] | None = None
    defined = np.ones(len(count), bool)
    for number in range(size):
        losses = steps.losses()
        alone = losses if alone is None else alone
        loss, scale = alone if number < start else losses
        free = eligible if replace and number >= start else eligible & (count == 0)
        loss = np.where(free & ~np.isnan(loss), loss, np.inf)
        least = loss.min(axis=1, keepdims=True)
        defined &= np.isfinite(least[:, 0])
        with np.errstate(invalid="ignore"):
            member = (loss - least <= CLOSE * scale).argmax(axis=1)
        count[rows, member] += 1
        steps.add(member)
    return np.where(defined[:, None], count / size, np.nan)


def complete(p: np.ndarray) -> np.ndarray:
    """Return which configurations (m,) of predictions (..., n, m, r) miss nothing that another has."""
    missing = np.isnan(p)
    return np.asarray(~(missing & ~missing.all(axis=-2, keepdims=True)).any(axis=(*range(p.ndim - 2), -1)))


def mix(p: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the mixtures (..., n, d, r) of predictions (..., n, m, r) with shares (d, m); NaN where a member has none.

    Members are added one after the other, so that equal predictions give equal mixtures.
    """
    out = np.zeros((*p.shape[:-2], len(share), p.shape[-1]))
    for j in np.flatnonzero((share != 0).any(axis=0)):
        some = np.flatnonzero(share[:, j] != 0)
        out[..., some, :] += p[..., j : j + 1, :] * share[some, j][:, None]
    return out


def votes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return class codes (n, m, r) as votes, one plane per class (k, n, m, r); of two classes the codes are votes."""
    if n_classes == 2:
        return codes.astype(float)
    planes = np.stack([codes == code for code in range(n_classes)]).astype(float)
    return np.where(np.isnan(codes), np.nan, planes)
