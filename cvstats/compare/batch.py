"""Named dims to arrays and back: what every test of labelled numbers shares."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, check_option, nearest, plain, show, warn
from cvstats._results import QUALIFIERS, result
from cvstats.cube.align import aligned
from cvstats.metrics import get_metric

Dims = str | Sequence[str]

_NAMED_CELLS = 3  # degenerate cells named in a warning


@dataclass(frozen=True)
class Batch:
    """Numbers to test at once: cells first, then groups along `by`, observations last. `other` is zero unless given."""

    values: np.ndarray
    other: np.ndarray
    dims: tuple[Hashable, ...]  # of the cells
    by: str | None
    coords: Mapping[Hashable, xr.Variable]
    metric: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the cells."""
        return self.values.shape[: len(self.dims)]

    @property
    def difference(self) -> np.ndarray:
        """`values` minus `other`; NaN where both are infinite."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(self.values - self.other)

    def level(self, label: object) -> int:
        """Return the position of `label` among the groups."""
        assert self.by is not None
        labels = [self._label(self.by, at) for at in range(self.values.shape[-2])]
        if label not in labels:
            close = nearest(label, labels)
            raise InputError(f"`against`={plain(label)!r} is not a level of {self.by!r}; found {show(labels)}{close}.")
        return labels.index(label)

    def warn(self, bad: np.ndarray, reason: str) -> None:
        """Warn once, naming the first cells (or groups) in which `bad` is true."""
        if not bad.any():
            return
        dims, where = self._names(bad.ndim), ""
        if dims:
            cells = np.argwhere(bad)
            named = [
                ", ".join(f"{dim}={self._label(dim, at)!r}" for dim, at in zip(dims, cell, strict=True))
                for cell in cells[:_NAMED_CELLS]
            ]
            dots = "; ..." if len(cells) > _NAMED_CELLS else ""
            where = f" in {len(cells)} of {bad.size} cells ({'; '.join(named)}{dots})"
        warn(f"{reason}{where}: NaN.")

    def dataset(
        self, test: str, variables: Mapping[str, Any], *, call: str, level: float = np.nan, interval: str = "none"
    ) -> xr.Dataset:
        """Label arrays over cells, over cells and groups, or over cells and pairs of groups."""
        named = {
            name: values if isinstance(values, tuple) else (self._names(np.ndim(values)), values)
            for name, values in variables.items()
        }
        used = {dim for dims, _ in named.values() for dim in dims}
        coords = {name: coord for name, coord in self.coords.items() if set(coord.dims) <= used}
        second = f"{self.by}_other"
        if second in used and self.by in coords:
            coords[second] = xr.Variable(second, coords[self.by].values)
        out = xr.Dataset(named, coords)
        return result(out, method=test, metric=self.metric, conf_level=level, interval=interval, call=call)

    def _names(self, count: int) -> tuple[Hashable, ...]:
        return (*self.dims, self.by, f"{self.by}_other")[:count]

    def _label(self, dim: Hashable, at: int) -> Any:
        return plain(self.coords[dim].values[at]) if dim in self.coords else int(at)


def batch(
    x: object,
    dim: Dims,
    *,
    other: object = None,
    paired: bool = True,
    by: str | None = None,
    levels: int = 2,
    minimum: int = 2,
    names: tuple[str, str] = ("x", "other"),
) -> Batch:
    """Return the numbers along `dim` (several dims are one long sample) of every cell, and those of `other`.

    `other` is aligned exactly: a label that only one of the two has is an error, never a silent inner join. Unless
    `paired`, only the cells are aligned.
    """
    x = as_numbers(x, names[0])
    dims = as_dims(x, dim, minimum, names[0])
    if by is not None:
        check_dim(x.dims, by, "by")
        if by in dims:
            raise InputError(f"`by`={by!r} is also in `dim`; the values of a group must lie along another dimension.")
        if x.sizes[by] < levels:
            raise InputError(f"`by`={by!r} needs at least {levels} levels to compare; it has {x.sizes[by]}.")
    given, metric = xr.zeros_like(x), x.coords.get("metric")
    if other is not None:
        shared = [name for name in x.dims if paired or name not in dims]
        given = aligned(as_numbers(other, names[1]), x, names[1], shared, owner=f"`{names[0]}`")
        as_dims(given, dims, minimum, names[1])
        x, given = xr.broadcast(x, given, exclude=() if paired else dims)
    cells = tuple(name for name in x.dims if name not in dims and name != by)
    kept = cells if by is None else (*cells, by)
    coords = {
        name: coord.variable
        for name, coord in x.coords.items()
        if set(coord.dims) <= set(kept) and (name in kept or name not in QUALIFIERS)
    }
    tables = (np.asarray(part.transpose(*kept, *dims).values, np.float64) for part in (x, given))
    values, others = (part.reshape(*part.shape[: len(kept)], math.prod(part.shape[len(kept) :])) for part in tables)
    named = str(metric.values) if metric is not None and metric.ndim == 0 else "none"
    return Batch(values, others, cells, by, coords, named)


def in_cells(bad: xr.DataArray) -> str:
    """Return in how many cells something is so, nothing where there is one cell only."""
    return f" in {int(bad.sum())} of {bad.size} cells" if bad.size > 1 else ""


def as_numbers(x: object, argument: str = "x") -> xr.DataArray:
    """Return `x` unless it is no DataArray of numbers."""
    if not isinstance(x, xr.DataArray):
        pick = f" Pick one of its variables: {show(x.data_vars)}." if isinstance(x, xr.Dataset) else ""
        raise InputError(f"`{argument}` must be an xarray.DataArray with named dims; got {type(x).__name__}.{pick}")
    if x.dtype.kind not in "fiub":
        raise InputError(f"`{argument}` must hold numbers; its dtype is {x.dtype}.")
    return x


def as_dims(x: xr.DataArray, dim: Dims, minimum: int = 0, argument: str = "x") -> tuple[str, ...]:
    """Return the dim or dims to reduce, checked against `x`, which must have `minimum` values along them."""
    dims = tuple(dim) if isinstance(dim, Iterable) and not isinstance(dim, str) else (dim,)
    if not dims:
        raise InputError(f"`dim` must name at least one dimension of {show(x.dims)}.")
    for name in dims:
        check_dim(x.dims, name)
    if len(set(dims)) < len(dims):
        raise InputError(f"`dim` names a dimension twice: {show(dims)}.")
    length = math.prod(x.sizes[name] for name in dims)
    if length < minimum:
        raise InputError(f"`{argument}` needs at least {minimum} values along {show(dims)}; it has {length}.")
    return dims


def direction_of(x: xr.DataArray, direction: str | None, default: str | None = None) -> str:
    """Return the direction given, else that of the metric `x` says it is in, else the default; without one, raise."""
    if direction is not None:
        check_option(direction, ("minimize", "maximize"), "direction")
    known = None
    if "metric" in x.coords and x["metric"].ndim == 0:
        with suppress(InputError):
            known = str(get_metric(str(x["metric"].values)).direction).replace("target", "")
    if default is None and known and direction and known != direction:
        raise InputError(f"`direction`={direction!r}, but `x` says it is {x['metric'].item()!r}, which has {known!r}.")
    if direction or known:
        return str(direction or known)
    if default is None:
        raise InputError(
            "`direction` must say which values are better, 'maximize' or 'minimize', because `x` has no coordinate "
            "'metric' that does: accuracies ranked as losses would put the worst first."
        )
    return default
