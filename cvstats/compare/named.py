"""Named dims in, numpy out, named dims back: what every comparison shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, check_option, nearest, plain, show, warn
from cvstats._results import result

Dims = str | Sequence[str]
Variable = tuple[tuple[Hashable, ...], Any]

DIRECTIONS = ("minimize", "maximize")
QUALIFIERS = ("method", "metric", "conf_level", "interval")
_NAMED_CELLS = 3  # degenerate cells named in a warning


def as_numbers(x: object, argument: str = "x") -> xr.DataArray:
    """Return `x` unless it is no DataArray of numbers."""
    if not isinstance(x, xr.DataArray):
        raise InputError(f"`{argument}` must be an xarray.DataArray with named dims; got {type(x).__name__}.")
    if x.dtype.kind not in "fiub":
        raise InputError(f"`{argument}` must hold numbers; its dtype is {x.dtype}.")
    return x


def as_dims(x: xr.DataArray, dim: Dims, argument: str = "dim") -> tuple[str, ...]:
    """Return the dim or dims to reduce, checked against `x`."""
    dims = (dim,) if isinstance(dim, str) else tuple(dim)
    if not dims:
        raise InputError(f"`{argument}` must name at least one dimension of {show(x.dims)}.")
    for name in dims:
        check_dim(x.dims, name, argument)
    if len(set(dims)) < len(dims):
        raise InputError(f"`{argument}` names a dimension twice: {show(dims)}.")
    return dims


def check_by(x: xr.DataArray, by: str, dims: Sequence[str], *, minimum: int = 2) -> None:
    """Raise unless `by` is a dimension of its own with at least `minimum` levels."""
    check_dim(x.dims, by, "by")
    if by in dims:
        raise InputError(f"`by`={by!r} is also in `dim`; the values of a group must lie along another dimension.")
    if x.sizes[by] < minimum:
        raise InputError(f"`by`={by!r} needs at least {minimum} levels to compare; it has {x.sizes[by]}.")


def direction_of(x: xr.DataArray, direction: str | None, default: str | None = None) -> str:
    """Return the direction given, else that of the metric `x` says it is in, else the default; without one, raise."""
    if direction is not None:
        check_option(direction, DIRECTIONS, "direction")
    known = None
    if "metric" in x.coords and x["metric"].ndim == 0:
        from cvstats.metrics import get_metric

        with suppress(InputError):
            known = str(get_metric(str(x["metric"].values)).direction)
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


def check_length(x: xr.DataArray, dims: Sequence[str], *, minimum: int = 2, argument: str = "x") -> int:
    """Return how many values lie along `dims`; raise below `minimum`."""
    length = int(np.prod([x.sizes[name] for name in dims]))
    if length < minimum:
        raise InputError(f"`{argument}` needs at least {minimum} values along {show(dims)}; it has {length}.")
    return length


def level_index(x: xr.DataArray, by: str, level: object, argument: str = "against") -> int:
    """Return the position of the label `level` along `by`."""
    labels = [plain(label) for label in labels_of(x, by)]
    if level not in labels:
        raise InputError(
            f"`{argument}`={level!r} is not a level of {by!r}; found {show(labels)}{nearest(level, labels)}."
        )
    return labels.index(level)


def labels_of(x: xr.DataArray | xr.Dataset, dim: Hashable) -> np.ndarray:
    """Return the labels along `dim`, positions where it has none."""
    return x.coords[dim].values if dim in x.coords else np.arange(x.sizes[dim])


def match(x: xr.DataArray, other: object, *, free: Sequence[str] = (), argument: str = "other") -> xr.DataArray:
    """Return `other` in the label order of `x` on every shared dim, except the `free` ones.

    Alignment is exact: a label that only one of the two has is an error, never a silent inner join.
    """
    given = as_numbers(other, argument)
    for dim in x.dims:
        if dim not in given.dims or dim in free:
            continue
        if dim not in x.indexes or dim not in given.indexes:
            if x.sizes[dim] != given.sizes[dim]:
                raise InputError(
                    f"`{argument}` has {given.sizes[dim]} values along {dim!r} where `x` has {x.sizes[dim]}; "
                    "values are paired by position here, so the lengths must agree."
                )
            continue
        mine, theirs = x.indexes[dim], given.indexes[dim]
        if mine.equals(theirs):
            continue
        lonely = [*mine.difference(theirs, sort=False), *theirs.difference(mine, sort=False)]
        if lonely:
            raise InputError(
                f"`{argument}` is not paired with `x` along {dim!r}: {show(lonely)} found in only one of them; "
                "select the common labels first, or pass paired=False where the test offers it."
            )
        if not (mine.is_unique and theirs.is_unique):
            raise InputError(f"`{argument}` cannot be paired with `x` along {dim!r}: labels repeat in another order.")
        given = given.sel({dim: mine})
    return given


@dataclass(frozen=True)
class Cells:
    """The cells a test maps over: dims, sizes and coordinates, and the metric the numbers are in."""

    dims: tuple[Hashable, ...]
    shape: tuple[int, ...]
    coords: Mapping[Hashable, Any]
    metric: str

    @classmethod
    def of(cls, x: xr.DataArray, drop: Sequence[Hashable], *, last: Hashable | None = None) -> Cells:
        """Return the cells left when `drop` is reduced, with the dim `last` moved to the end."""
        gone = set(drop)
        dims = tuple(dim for dim in x.dims if dim not in gone and dim != last)
        dims += () if last is None else (last,)
        coords = {
            name: coord.variable
            for name, coord in x.coords.items()
            if gone.isdisjoint(coord.dims) and (name in dims or name not in QUALIFIERS)
        }
        metric = x.coords.get("metric")
        named = str(metric.values) if metric is not None and metric.ndim == 0 else "none"
        return cls(dims, tuple(x.sizes[dim] for dim in dims), coords, named)

    def pull(self, x: xr.DataArray, dims: Sequence[str]) -> np.ndarray:
        """Return `x` as float64 with the cells first and all of `dims` flattened into the last axis."""
        length = int(np.prod([x.sizes[dim] for dim in dims]))
        return np.asarray(x.transpose(*self.dims, *dims).values, dtype=np.float64).reshape(*self.shape, length)

    def variable(self, values: Any, *more: Hashable) -> Variable:
        """Return values over the cells (and the dims in `more`) as a Dataset variable."""
        return (*self.dims, *more), values

    def warn(self, bad: np.ndarray, reason: str) -> None:
        """Warn once, naming the first cells in which `bad` is true."""
        count = int(np.count_nonzero(bad))
        if not count:
            return
        where = ""
        if self.dims:
            named = []
            for cell in np.argwhere(bad)[:_NAMED_CELLS]:
                labels = (self._label(dim, at) for dim, at in zip(self.dims, cell, strict=True))
                named.append(", ".join(f"{dim}={label!r}" for dim, label in zip(self.dims, labels, strict=True)))
            dots = "; ..." if count > _NAMED_CELLS else ""
            where = f" in {count} of {bad.size} cells ({'; '.join(named)}{dots})"
        warn(f"{reason}{where}: NaN.")

    def _label(self, dim: Hashable, at: int) -> Any:
        coord = self.coords.get(dim)
        return plain(coord.values[at]) if coord is not None else int(at)


def labelled(
    variables: Mapping[str, Variable],
    cells: Cells,
    *,
    test: str,
    call: str,
    conf_level: float = np.nan,
    interval: str = "none",
    coords: Mapping[Hashable, Any] | None = None,
) -> xr.Dataset:
    """Return a test's Dataset. Where `method` is a dim of the data, the test's name goes to the coordinate `test`."""
    dims = {dim for used, _ in variables.values() for dim in used}
    hidden = {name: f"_{name}" for name in QUALIFIERS if name in dims}
    renamed = {name: (tuple(hidden.get(str(d), d) for d in used), values) for name, (used, values) in variables.items()}
    dataset = result(renamed, method=test, metric=cells.metric, conf_level=conf_level, interval=interval, call=call)
    if hidden:
        if "method" in hidden:
            dataset = dataset.assign_coords(test=test)
        dataset = dataset.drop_vars(list(hidden)).rename_dims({short: name for name, short in hidden.items()})
    known = {name: coord for name, coord in cells.coords.items() if set(coord.dims) <= dims}
    return dataset.assign_coords({**known, **(coords or {})})


def other_dim(x: xr.DataArray, by: str) -> tuple[str, dict[Hashable, Any]]:
    """Return the name of the second axis of a pairwise table, and its coordinate when `by` has one."""
    name = f"{by}_other"
    if name in x.dims:
        raise InputError(f"`x` already has a dimension {name!r}, which the pairwise table needs; rename it.")
    return name, ({name: (name, x.coords[by].values)} if by in x.coords else {})
