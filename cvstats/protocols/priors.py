"""Class probabilities in any accepted form, as a table in class order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats.metrics import prior_error, resolve_prior

PriorGiven = float | Mapping[Any, Any] | Any


@dataclass(frozen=True)
class Priors:
    """Class probabilities: `weights` (prior, class) in class order, and as `given`, probabilities of the class `of`."""

    weights: np.ndarray
    given: np.ndarray | None
    of: Any

    @property
    def curve(self) -> bool:
        """Whether there is a dim ``prior``."""
        return self.given is not None and self.given.ndim == 1

    def dims(self, other: str) -> tuple[str, ...]:
        """Return the dims of a value per prior and `other`."""
        return ("prior", other) if self.curve else (other,)


def prior_table(prior: Any, cube: xr.DataArray, names: list[Any]) -> Priors:
    """Return the prior in any accepted form as a table in class order."""
    first, values = names[0], prior
    if isinstance(prior, Mapping):
        arrays = {name: np.asarray(value, float) for name, value in prior.items()}
        if all(value.ndim == 0 for value in arrays.values()):
            prior_error(prior)  # its checks of the numbers
            weights = np.array([resolve_prior(dict(prior), cube)])
            first = next(iter(prior))
            return Priors(weights, arrays[first] if len(names) == 2 else None, first)
        if len(arrays) != 1 or len(names) != 2:
            raise InputError("`prior` as {label: array} must name one of two classes; the other has the rest.")
        first, values = next(iter(arrays.items()))
        if first not in names:
            raise InputError(f"`prior` names {show([first])}, not among the classes {show(names)}.")
    given = np.asarray(values, float)
    if given.ndim > 1 or given.size == 0:
        raise InputError(f"`prior` must be one number or a one-dimensional array; got shape {given.shape}.")
    if given.ndim == 0:
        prior_error(float(given))
        return Priors(np.array([resolve_prior(float(given), cube)]), given, first)
    if len(names) != 2:
        raise InputError(f"`prior` as an array is for two classes; the cube has {len(names)}: {show(names)}.")
    if not np.all((given >= 0) & (given <= 1)):
        raise InputError(
            f"`prior` must hold probabilities in [0, 1]; found {show(given[~((given >= 0) & (given <= 1))])}."
        )
    pair = np.stack([given, 1 - given], axis=1)
    return Priors(pair if first == names[0] else pair[:, ::-1], given, first)
