"""What belongs to a cube, matched to it: exactly and by label; and cubes taken apart along some dims."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

import xarray as xr

from cvstats._check import InputError, show

Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)


def aligned(
    other: xr.DataArray,
    to: xr.DataArray | xr.Dataset,
    argument: str,
    dims: Sequence[Hashable] = ("sample", "configuration", "label_class", "horizon"),
    *,
    owner: str = "the cube",
) -> xr.DataArray:
    """Return `other` in the order of the cube `to` along `dims`; raise naming the labels that only one of them has.

    What carries no labels is taken to be in the cube's order. `owner` is what `to` is called in messages.
    """
    for dim in dims:
        if dim not in other.dims or dim not in to.dims:
            continue
        if dim not in other.indexes or dim not in to.indexes:
            if other.sizes[dim] != to.sizes[dim]:
                raise InputError(
                    f"`{argument}` has {other.sizes[dim]} values along {dim!r} where {owner} has {to.sizes[dim]}; "
                    "values without labels are paired by position, so the lengths must agree."
                )
            other = other.assign_coords({dim: to[dim].values}) if dim in to.indexes else other
            continue
        ours, theirs = to.indexes[dim], other.indexes[dim]
        if ours.equals(theirs):
            continue
        lost, extra = ours.difference(theirs, sort=False), theirs.difference(ours, sort=False)
        if len(lost) or len(extra):
            raise InputError(
                f"`{argument}` does not match {owner} along {dim!r}: only in {owner}: {show(lost) or 'none'}; "
                f"only in `{argument}`: {show(extra) or 'none'}."
            )
        if not (ours.is_unique and theirs.is_unique):
            raise InputError(
                f"`{argument}` cannot be matched with {owner} along {dim!r}: labels repeat in another order."
            )
        other = other.isel({dim: theirs.get_indexer(ours)})
    return other


def map_along(dims: Sequence[Hashable], function: Callable[..., Labelled], *cubes: xr.DataArray | None) -> Labelled:
    """Return ``function(*cubes)`` for every label of `dims`, put together along them; some cubes may lack a dim."""
    if not dims:
        return function(*cubes)
    dim, rest = dims[0], dims[1:]
    owner = next(cube for cube in cubes if cube is not None and dim in cube.dims)
    results: list[Any] = []
    for place in range(owner.sizes[dim]):
        parts = (cube if cube is None or dim not in cube.dims else cube.isel({dim: place}) for cube in cubes)
        results.append(map_along(rest, function, *parts).drop_vars([dim], errors="ignore"))
    index = owner[dim] if dim in owner.coords else dim
    stacked: Any = xr.concat(
        results, dim=index, coords="different", compat="equals", join="outer", combine_attrs="override"
    )
    return cast(Labelled, stacked)
