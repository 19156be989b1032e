"""Selection strategies that mix configurations instead of picking one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvstats._check import InputError, check_count

from .mixing import Candidates, complete


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
    >>> from cvstats.kernels.mixtures import ensemble
    >>> ensemble(20)
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

    Examples
    --------
    >>> from cvstats.kernels.mixtures import top_mean
    >>> top_mean(3)
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

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats.kernels.mixtures import as_mixture
    >>> as_mixture(lambda label, prediction, weight: np.full(prediction.shape[1], 1 / prediction.shape[1]), name="mean")
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
        out = np.zeros((len(weights), len(eligible)))
        for b, row in enumerate(weights):
            some = row > 0
            out[b, eligible] = (
                self._checked(self.function(y[some], p[some], row[some]), p.shape[1]) if some.any() else np.nan
            )
        return out

    def _checked(self, share: Any, size: int) -> np.ndarray:
        values = np.asarray(share, float)
        if values.shape != (size,) or not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
            raise InputError(
                f"mixture {self.name!r} must return {size} shares, none negative, that add up to 1; got {share!r}."
            )
        return np.asarray(values / values.sum())
