"""One place for what bad input is told: the error class, the warning class and the checks every module shares."""

from __future__ import annotations

import difflib
import numbers
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

SHOWN = 5  # labels named in a message before "and n more"
LONGEST = 60  # characters of one label in a message
T = TypeVar("T")
Rng = int | np.random.Generator | None


class InputError(ValueError):
    """Bad input: names the argument, the rule, what was found and how to fix it.

    A `ValueError`. Nothing is repaired or guessed, and no result is returned.

    Examples
    --------
    >>> import cvstats as cs
    >>> try:
    ...     cs.score(cs.as_cube([[0.9], [0.2]], [1, 0]), "acuracy")
    ... except cs.InputError as error:
    ...     print(str(error)[:58])
    `metric`='acuracy' does not exist (did you mean 'accuracy'
    """


class CvstatsWarning(UserWarning):
    """The result is valid but degenerate or approximate in a way the reader must know.

    At most one per call; it names the labels concerned. What cannot be computed is NaN in the result.

    Examples
    --------
    >>> import warnings
    >>> import cvstats as cs
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     folds = cs.kfold([0, 0, 0, 1, 1], 3, rng=1)
    >>> caught[0].category is cs.CvstatsWarning, folds.max().item() + 1  # a class has two samples: two folds
    (True, 2)
    """


def warn(message: str) -> None:
    """Issue one warning that points at the caller's code rather than at cvstats."""
    warnings.warn(message, CvstatsWarning, stacklevel=_user_level())


def listened(into: list[str], compute: Callable[[], T]) -> T:
    """Return the value of `compute` and collect its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CvstatsWarning)
        value = compute()
    for warning in caught:
        if issubclass(warning.category, CvstatsWarning):
            into.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return value


def _user_level() -> int:
    import sys

    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("cvstats."):
        frame, level = frame.f_back, level + 1
    return level


def plain(value: Any) -> Any:
    """Return a label as a plain Python object, so that messages never show ``np.str_('a')``."""
    return value.item() if isinstance(value, np.generic) else value


def clipped(label: object) -> str:
    """Return how a label is written in a message: its repr, cut when very long.

    >>> clipped("ab" * 100) == "'" + "ab" * 28 + "..."
    True
    """
    text = repr(label)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def show(labels: Iterable[Any]) -> str:
    """List labels for a message, at most `SHOWN` of them.

    >>> show(["a", "b"])
    "'a', 'b'"
    """
    items = [clipped(plain(label)) for label in labels]
    text = ", ".join(items[:SHOWN])
    return text + (f" and {len(items) - SHOWN} more" if len(items) > SHOWN else "")


def nearest(name: object, options: Iterable[Hashable]) -> str:
    """Return `` (did you mean 'x'?)`` when an option is close, else an empty string."""
    close = difflib.get_close_matches(str(name), [str(option) for option in options], n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is one real number; a truth value is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_option(value: object, options: Sequence[str], argument: str) -> None:
    """Raise unless `value` is one of `options`."""
    if not isinstance(value, str) or value not in options:
        raise InputError(f"`{argument}` must be one of {show(options)}; got {value!r}{nearest(value, options)}.")


def check_dim(dims: Iterable[Hashable], dim: object, argument: str = "dim") -> None:
    """Raise unless `dim` is among `dims`; suggests the nearest."""
    known = list(dims)
    if dim not in known:
        raise InputError(f"`{argument}`={dim!r} is not a dimension; found {show(known)}{nearest(dim, known)}.")


def check_level(level: object, argument: str = "level") -> float:
    """Return `level` as a float strictly between 0 and 1."""
    if not isinstance(level, numbers.Real) or not 0 < float(level) < 1:
        raise InputError(f"`{argument}` must be a number strictly between 0 and 1 (such as 0.95); got {level!r}.")
    return float(level)


def whole(value: object) -> int | None:
    """Return a whole number as an int, else None; 500.0 is one, because R writes 500 for it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    exact = hasattr(value, "__index__") or float(value).is_integer()
    return int(value) if exact else None  # type: ignore[call-overload]


def check_count(value: object, argument: str, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    count = whole(value)
    if count is None or count < minimum:
        raise InputError(f"`{argument}` must be a whole number of at least {minimum}; got {value!r}.")
    return count


def entropy(rng: Any) -> int:
    """Return the integer that seeds everything: the seed itself, or one drawn from a generator (SPEC 7)."""
    if rng is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    seed = whole(rng)
    if seed is not None and seed >= 0:
        return seed
    raise InputError(f"`rng` must be a non-negative integer, a numpy Generator or None; got {rng!r}.")


def check_rng(rng: Any) -> np.random.Generator:
    """Return a Generator from None, a seed or a Generator (SPEC 7)."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(entropy(rng))
