"""Selection strategies: which configuration a table of scores makes the winner, or which share each gets.

A strategy is any function ``select(scores, *, direction, std_error=None, complexity=None)`` that returns the index of
the winner along the last axis. Scores may have leading axes (draws), and NaN marks what cannot be chosen. A `Mixture`
picks none but averages several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._check import InputError, check_count, check_option
from ._results import names_of
from .kernels import Problem
from .kernels.mixing import Candidates, complete
from .kernels.problem import settled

if TYPE_CHECKING:
    from .adjust import Adjustment


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
    """Return scores with higher better and NaN never best; what rounding alone tells apart is tied."""
    check_option(direction, ("maximize", "minimize"), "direction")
    values = settled(np.asarray(scores, float), 1 if direction == "maximize" else -1)
    return np.where(np.isnan(values), -np.inf, values)


def select_best(
    scores: np.ndarray, *, direction: str, std_error: np.ndarray | None = None, complexity: np.ndarray | None = None
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
    scores: np.ndarray, *, direction: str, std_error: np.ndarray | None = None, complexity: np.ndarray | None = None
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
        self, scores: np.ndarray, *, direction: str, complexity: np.ndarray | None = None, **_: Any
    ) -> np.ndarray:
        """Return the index of the simplest configuration within the loss of the best."""
        performance = _performance(scores, direction)
        return _simplest(performance, performance.max(axis=-1, keepdims=True) - self.loss, complexity)


def _simplest(performance: np.ndarray, floor: np.ndarray, complexity: np.ndarray | None) -> np.ndarray:
    """Return the smallest complexity (then the best score, then the first) among those not below `floor`."""
    good = (performance >= settled(floor)) & (performance > -np.inf)
    if complexity is None:
        return np.asarray(np.argmax(good, axis=-1))
    size = np.broadcast_to(np.asarray(complexity, float), performance.shape)
    size = np.where(good, np.where(np.isnan(size), np.inf, size), np.inf)
    least = good & (size == size.min(axis=-1, keepdims=True))
    return np.asarray(np.argmax(np.where(least, performance, -np.inf), axis=-1))


@dataclass(frozen=True, repr=False)
class Mixture:
    """A strategy that gives every configuration a share; made by `ensemble`, `top_mean` and `as_mixture`."""

    name: str
    common_scale: bool

    def __repr__(self) -> str:
        return f"<mixture {self.name}>"

    def check(self, kind: str, n_configurations: int, *, lazy: bool = False) -> None:
        """Raise for predictions that cannot be mixed."""
        if kind == "score" and not self.common_scale:
            raise InputError(
                f"{self.name} would average scores (kind='score') of different configurations; "
                "say common_scale=True if they share a scale, or give probabilities."
            )
        if lazy:
            raise InputError(f"{self.name} needs the predictions in memory; call .load() on the cube first.")

    def shares(self, y: np.ndarray, candidates: Candidates, weights: np.ndarray) -> np.ndarray:
        """Return shares (draw, configuration), each draw's learned under its own weights (draw, n)."""
        raise NotImplementedError


def ensemble(size: int = 50, *, replace: bool = True, start: int = 0, common_scale: bool = False) -> Mixture:
    """Return the strategy "greedy forward selection of a mixture".

    Exactly `size` times the configuration is added that makes the mean of all members so far best by the metric that
    chooses; ties go to the first. A configuration's share is how often it was added. Numbers, probabilities and class
    votes are averaged. There is no early stop: it would be one more choice.

    Parameters
    ----------
    size : int
        Number of steps.
    replace : bool
        Whether a configuration may be added again.
    start : int
        How many of the steps take the best configurations by themselves, each once, whatever they do together.
    common_scale : bool
        Whether scores that are no probabilities share a scale, so that their mean has a meaning.

    Returns
    -------
    Mixture
        For `select=`. Results then have ``share(configuration)``.

    References
    ----------
    Caruana, Niculescu-Mizil, Crew, Ksikes (2004), doi:10.1145/1015330.1015432.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.ensemble(20)
    <mixture ensemble(size=20)>
    """
    size, start = check_count(size, "size"), check_count(start, "start", minimum=0)
    if start > size:
        raise InputError(f"`start` must be at most `size`, {size}; got {start}.")
    words = f"size={size}" + ("" if replace else ", replace=False") + (f", start={start}" if start else "")
    return _Greedy(f"ensemble({words})", common_scale, size, bool(replace), start)


def top_mean(k: int, *, common_scale: bool = False) -> Mixture:
    """Return the strategy "the mean of the k best configurations", ties to the first.

    Parameters
    ----------
    k : int
        How many; more than there are is an error.
    common_scale : bool
        Whether scores that are no probabilities share a scale, so that their mean has a meaning.

    Returns
    -------
    Mixture
        For `select=`. Results then have ``share(configuration)``.

    References
    ----------
    Caruana, Niculescu-Mizil, Crew, Ksikes (2004), doi:10.1145/1015330.1015432, section 2.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.top_mean(3)
    <mixture top_mean(3)>
    """
    k = check_count(k, "k")
    return _Greedy(f"top_mean({k})", common_scale, k, False, k)


@dataclass(frozen=True, repr=False)
class _Greedy(Mixture):
    size: int
    replace: bool
    start: int

    def check(self, kind: str, n_configurations: int, *, lazy: bool = False) -> None:
        super().check(kind, n_configurations, lazy=lazy)
        most = self.start if self.replace else self.size
        if most > n_configurations:
            raise InputError(f"{self.name} needs {most} different configurations; {n_configurations} can be chosen.")

    def shares(self, y: np.ndarray, candidates: Candidates, weights: np.ndarray) -> np.ndarray:
        return candidates.greedy(weights, self.size, replace=self.replace, start=self.start)


def as_mixture(function: Callable[..., Any], *, name: str | None = None, common_scale: bool = False) -> Mixture:
    """Turn ``function(label, prediction, weight) -> share`` into a strategy that mixes configurations.

    The function gets plain arrays, samples with positive weight only: labels (binary: 1 = positive class, else class
    codes or numbers), predictions (sample, configuration, repeat[, class]) of the configurations that can be chosen,
    and weights. It returns one share per configuration, none negative, adding up to one. It is called once per draw.

    Parameters
    ----------
    function : callable
        Learns the shares.
    name : str, optional
        What results call it; the function's own name by default.
    common_scale : bool
        Whether scores that are no probabilities share a scale, so that their mean has a meaning.

    Returns
    -------
    Mixture
        For `select=`. Results then have ``share(configuration)``.

    References
    ----------
    Breiman (1996). Stacked regressions. Machine Learning 24, 49-64. doi:10.1007/BF00117832

    Examples
    --------
    >>> import numpy as np
    >>> import cvstats as cs
    >>> def mean(label, prediction, weight):
    ...     return np.full(prediction.shape[1], 1 / prediction.shape[1])
    >>> cs.as_mixture(mean)
    <mixture mean>
    """
    if not callable(function):
        raise InputError(f"`function` must be callable as f(label, prediction, weight); got {function!r}.")
    return _Own(name or str(getattr(function, "__name__", "mixture")), common_scale, function)


@dataclass(frozen=True, repr=False)
class _Own(Mixture):
    function: Callable[..., Any]

    def shares(self, y: np.ndarray, candidates: Candidates, weights: np.ndarray) -> np.ndarray:
        eligible = complete(candidates.p)
        p = candidates.p[..., eligible, :]
        p = np.moveaxis(p, 0, -1) if p.ndim == 4 else p
        size, out = p.shape[1], np.where(eligible, np.full((len(weights), 1), np.nan), 0.0)
        for b, row in enumerate(weights):
            some = row > 0
            if not some.any():
                continue
            share = self.function(y[some], p[some], row[some])
            values = np.asarray(share, float)
            if values.shape != (size,) or not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
                raise InputError(
                    f"mixture {self.name!r} must return {size} shares, none negative, that add up to 1; got {share!r}."
                )
            out[b, eligible] = values / values.sum()
        return out


@dataclass(frozen=True)
class Rules:
    """How a draw chooses, and how the work is cut: options that travel together."""

    select: Select | Mixture = select_best
    ties: str = "random"
    seed: int = 0  # of the tie keys
    batch: int | None = None  # draws at a time
    progress: bool = False
    adjust: Adjustment | None = None  # what is done with predictions, learned in every draw anew
    average: str = "pooled"  # over which samples choosing scores: all, or each fold
    plain: bool = field(init=False)  # whether one configuration is picked by its pooled score, and nothing else is done

    def __post_init__(self) -> None:
        check_option(self.ties, ("random", "first"), "ties")
        check_option(self.average, ("pooled", "fold"), "average")
        if self.batch is not None:
            object.__setattr__(self, "batch", check_count(self.batch, "batch"))
        plain = self.adjust is None and self.average == "pooled" and not isinstance(self.select, Mixture)
        object.__setattr__(self, "plain", plain)


@dataclass(frozen=True)
class Choice:
    """The configuration that all data choose, and the scores that chose it."""

    label: Any  # the empty choice when no score is defined
    index: int  # among all configurations of the cube; -1 when no score is defined
    value: float
    scores: np.ndarray  # (configuration,), NaN where a configuration may not be selected
    eligible: np.ndarray


def choose(
    known: Problem, scores: Any, direction: str, select: Select | Mixture = select_best, std_error: Any = None
) -> Choice:
    """Return the winner by scores on all data of a problem with what is missing; a mixture has no name."""
    values, index, value = np.where(known.eligible, scores, np.nan), -1, np.nan
    if not isinstance(select, Mixture):
        index = int(select(values, direction=direction, std_error=std_error, complexity=known.complexity))
        value = float(values[index])
        index = -1 if np.isnan(value) else index  # nothing is chosen by an undefined score
    label = known.names[index] if index >= 0 else names_of(known.names, index)[()]
    return Choice(label, index, value, values, known.eligible)


def picked(
    select: Select | Mixture, table: np.ndarray, direction: str, variance: np.ndarray, known: Problem
) -> np.ndarray:
    """Return the winner of each draw (row of scores) among the eligible configurations, by the caller's strategy."""
    assert not isinstance(select, Mixture)
    complexity = None if known.complexity is None else known.complexity[known.eligible]
    error = np.sqrt(variance) if needs_std_error(select) else None
    index = np.asarray(select(table, direction=direction, std_error=error, complexity=complexity))
    if index.shape != (len(table),) or index.dtype.kind not in "iu":
        raise InputError("`select` must return one index per row of scores, along the last axis.")
    return index


def needs_std_error(select: Select | Mixture) -> bool:
    """Return whether a strategy must know standard errors, which takes a first pass over the draws; raise if none."""
    if not (callable(select) or isinstance(select, Mixture)):
        raise InputError(f"`select` must be a strategy, such as select_best or ensemble(); got {select!r}.")
    return select is not select_best and not isinstance(select, (_Within, Mixture))


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
    values, index, draw = criterion, np.argmax(criterion, axis=1), np.arange(len(criterion))
    best = values[draw, index]
    if np.isnan(best).any():  # what argmax finds first
        values = np.where(np.isnan(criterion), -np.inf, criterion)
        index = np.argmax(values, axis=1)
        best = np.where(np.isnan(criterion).all(axis=1), np.nan, values[draw, index])
    if hashes is None:
        return index, best, np.zeros(len(index), np.uint64)
    reached = values == best[:, None]
    tied = np.flatnonzero(reached.sum(axis=1) > 1)
    if tied.size:
        row, column = np.nonzero(reached[tied])
        order = np.lexsort((tie_keys(hashes[column], draws[tied[row]], seed), row))
        index[tied] = column[order][np.append(True, np.diff(row[order]) > 0)]  # the smallest key of each row
    return index, best, tie_keys(hashes[index], draws, seed)


def beats(best: np.ndarray, key: np.ndarray, other: np.ndarray, other_key: np.ndarray) -> np.ndarray:
    """Return where winners that come later in configuration order beat the `other` ones, ties by the smaller key."""
    tied = (best == other) & (key < other_key)
    return np.asarray((best > other) | tied | (np.isnan(other) & ~np.isnan(best)))


def ranking(criterion: Iterable[np.ndarray], hashes: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Yield the columns of each row (draws from 0), best first, ties in the order in which `winners` takes them."""
    low = np.uint64(2 ** len(hashes).bit_length() - 1)  # bits for the column; the first are for its tie group
    for draw, values in enumerate(criterion):
        row = np.where(np.isnan(values), np.inf, -values)
        order = np.argsort(row)
        row = row[order]
        group = np.append(False, row[1:] != row[:-1]).cumsum(dtype=np.uint64)
        first = np.uint64(max(1, int(group[-1]).bit_length()))
        keys = tie_keys(hashes[order], np.array([draw]), seed) >> first & ~low
        yield (np.sort(group << np.uint64(64) - first | keys | order.astype(np.uint64)) & low).astype(np.intp)


def by_value(names: np.ndarray) -> np.ndarray:
    """Return configurations in ascending order when they are numbers, so that ties go to the smallest; else as is."""
    return np.argsort(names, kind="stable") if names.dtype.kind in "iuf" else np.arange(len(names))
