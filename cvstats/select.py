"""Selection strategies: which configuration a table of scores makes the winner.

A strategy is any function ``select(scores, *, direction, std_error=None, complexity=None)`` that returns the index of
the winner along the last axis. Scores may have leading axes (draws), and NaN marks what cannot be chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ._check import InputError, check_option


class Select(Protocol):
    """The papers' configuration selection strategy."""

    def __call__(
        self,
        scores: np.ndarray,
        *,
        direction: str,
        std_error: np.ndarray | None = None,
        complexity: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the index of the winner along the last axis."""
        ...


def _performance(scores: np.ndarray, direction: str) -> np.ndarray:
    """Return scores with higher better and NaN never best."""
    check_option(direction, ("maximize", "minimize"), "direction")
    values = np.asarray(scores, float) * (1 if direction == "maximize" else -1)
    return np.where(np.isnan(values), -np.inf, values)


def select_best(
    scores: np.ndarray,
    *,
    direction: str,
    std_error: np.ndarray | None = None,
    complexity: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return the best-scoring configuration, the first of several equally good ones.

    .. math:: j^* = \min\{j : \theta_j = \max_i \theta_i\}

    with scores :math:`\theta` in performance direction. The papers' choice, and the default of every protocol.

    Parameters
    ----------
    scores : array-like
        Scores, configurations along the last axis; leading axes are draws. NaN is never chosen; if all are NaN the
        first is returned, and protocols call such a draw unusable.
    direction : {"maximize", "minimize"}
        Which scores are better.
    std_error, complexity : array-like, optional
        Not used here; every strategy is called with them.

    Returns
    -------
    ndarray
        Index of the winner along the last axis.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4 (there *css*).

    Examples
    --------
    >>> import cvstats as cs
    >>> int(cs.select_best([0.7, 0.9, 0.9], direction="maximize"))
    1
    """
    return np.asarray(np.argmax(_performance(scores, direction), axis=-1))


def select_one_se(
    scores: np.ndarray,
    *,
    direction: str,
    std_error: np.ndarray | None = None,
    complexity: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return the simplest configuration within one bootstrap standard error of the best's score.

    .. math:: j^* = \arg\min_j \{\, complexity_j : \theta_j \ge \theta_{best} - se_{best} \,\}

    with scores :math:`\theta` in performance direction. Ties in complexity go to the better score, then to the first.
    It trades a little performance for simplicity; estimates are then for *that* choice, not for the best score.

    Parameters
    ----------
    scores : array-like
        Scores, configurations along the last axis; leading axes are draws. NaN is never chosen.
    direction : {"maximize", "minimize"}
        Which scores are better.
    std_error : array-like
        Standard error of every score. Protocols supply it from their draws; missing is an error.
    complexity : array-like, optional
        What "simple" means: the cube's coordinate ``complexity``. Without it the first configuration is the simplest.

    Returns
    -------
    ndarray
        Index of the winner along the last axis.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees, section 3.4.3.
    doi:10.1201/9781315139470

    Examples
    --------
    >>> import cvstats as cs
    >>> int(cs.select_one_se([0.88, 0.9], direction="maximize", std_error=[0.03, 0.03], complexity=[1, 5]))
    0
    """
    if std_error is None:
        raise InputError("select_one_se needs `std_error`, one bootstrap standard error per configuration.")
    performance = _performance(scores, direction)
    best = np.argmax(performance, axis=-1)[..., None]
    error = np.broadcast_to(np.asarray(std_error, float), performance.shape)
    slack = np.take_along_axis(error, best, axis=-1)
    return _simplest(performance, np.take_along_axis(performance, best, axis=-1) - np.nan_to_num(slack), complexity)


def select_within(loss: float) -> Select:
    r"""Return the strategy "the simplest configuration within `loss` of the best's score".

    .. math:: j^* = \arg\min_j \{\, complexity_j : \theta_j \ge \theta_{best} - loss \,\}

    with scores :math:`\theta` in performance direction; ties and missing complexity as in `select_one_se`.

    Parameters
    ----------
    loss : float
        What may be given up, in the metric's unit; 0 chooses among the tied best. Negative or infinite is an error.

    Returns
    -------
    callable
        A strategy for ``select=``, called as `select_best` is.

    References
    ----------
    Kuhn, Johnson (2013). Applied Predictive Modeling, section 4.6. doi:10.1007/978-1-4614-6849-3

    Examples
    --------
    >>> import cvstats as cs
    >>> int(cs.select_within(0.05)([0.88, 0.9], direction="maximize", complexity=[1, 5]))
    0
    """
    if isinstance(loss, bool) or not isinstance(loss, (int, float, np.floating)) or not 0 <= loss < np.inf:
        raise InputError(f"`loss` must be a finite number that is not negative; got {loss!r}.")
    return _Within(float(loss))


class _Within:
    """The strategy that `select_within` returns; a class so that workers can receive it."""

    def __init__(self, loss: float) -> None:
        self.loss = loss
        self.__name__ = f"select_within({loss:g})"

    def __call__(
        self,
        scores: np.ndarray,
        *,
        direction: str,
        std_error: np.ndarray | None = None,
        complexity: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the index of the simplest configuration within the loss of the best."""
        performance = _performance(scores, direction)
        return _simplest(performance, performance.max(axis=-1, keepdims=True) - self.loss, complexity)


def _simplest(performance: np.ndarray, floor: np.ndarray, complexity: np.ndarray | None) -> np.ndarray:
    """Return the smallest complexity (then the best score, then the first) among those not below `floor`."""
    good = (performance >= floor) & (performance > -np.inf)
    if complexity is None:
        return np.asarray(np.argmax(good, axis=-1))
    size = np.broadcast_to(np.asarray(complexity, float), performance.shape)
    size = np.where(good, np.where(np.isnan(size), np.inf, size), np.inf)
    least = good & (size == size.min(axis=-1, keepdims=True))
    return np.asarray(np.argmax(np.where(least, performance, -np.inf), axis=-1))


def needs_std_error(select: Callable[..., np.ndarray]) -> bool:
    """Return whether a strategy must know standard errors, which takes a first pass over the draws."""
    return select is not select_best and not isinstance(select, _Within)


def label_keys(names: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each configuration label, the same on every machine and in every order."""
    digests = b"".join(hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names.tolist())
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def tie_keys(hashes: np.ndarray, draws: np.ndarray, seed: int) -> np.ndarray:
    """Return the key of (label, draw, seed); the smallest wins a tie."""
    with np.errstate(over="ignore"):
        stream = _mix(draws.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((seed + 1) & (2**64 - 1)))
        return _mix(hashes ^ stream)


def _mix(x: np.ndarray) -> np.ndarray:
    """Scramble 64-bit words (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def winners(
    criterion: np.ndarray, draws: np.ndarray, hashes: np.ndarray | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the winner of each row of what is maximised, what it reached, and its tie key; NaN wins nothing.

    Ties go to the first column; with the `hashes` of the names to the smallest key of name, draw and seed.
    """
    gaps = np.isnan(criterion)
    values = np.where(gaps, -np.inf, criterion) if gaps.any() else criterion
    first = np.argmax(values, axis=1)
    top = values[np.arange(len(first)), first]
    best = np.where(gaps.all(axis=1), np.nan, top)
    if hashes is None:
        return first, best, np.zeros(len(first), np.uint64)
    index = break_ties(values, best, first, hashes, draws, seed)
    return index, best, tie_keys(hashes[index], draws, seed)


def beats(best: np.ndarray, key: np.ndarray, other: np.ndarray, other_key: np.ndarray) -> np.ndarray:
    """Return where winners that come later in configuration order beat the `other` ones, ties by the smaller key."""
    tied = (best == other) & (key < other_key)
    return np.asarray((best > other) | tied | (np.isnan(other) & ~np.isnan(best)))


def ranking(criterion: np.ndarray, hashes: np.ndarray, seed: int) -> np.ndarray:
    """Return the columns of each row (draws from 0), best first, ties in the order in which `winners` takes them."""
    keys = tie_keys(hashes[None, :], np.arange(len(criterion))[:, None], seed)
    values = np.where(np.isnan(criterion), -np.inf, criterion)
    return np.asarray(np.lexsort((keys, -values), axis=-1))


def by_value(names: np.ndarray) -> np.ndarray:
    """Return configurations in ascending order when they are numbers, so that ties go to the smallest; else as is."""
    return np.argsort(names, kind="stable") if names.dtype.kind in "iuf" else np.arange(len(names))


def break_ties(
    criterion: np.ndarray, top: np.ndarray, first: np.ndarray, hashes: np.ndarray, draws: np.ndarray, seed: int
) -> np.ndarray:
    """Return the winner of each draw among those that reach `top`, by the smallest key."""
    tied = criterion == top[:, None]
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if not rows.size:
        return first
    winner = first.copy()
    row, column = np.nonzero(tied[rows])
    keys = tie_keys(hashes[column], draws[rows[row]], seed)
    order = np.lexsort((keys, row))
    head = np.ones(len(order), bool)
    head[1:] = row[order][1:] != row[order][:-1]
    winner[rows] = column[order][head]
    return winner
