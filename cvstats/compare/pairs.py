"""What comparisons of configurations share: finding them in the cube, and their scores under many draws."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, nearest, plain, show
from cvstats.cube.make import check_cube

if TYPE_CHECKING:
    from cvstats.judge.choosing import Draws
    from cvstats.metrics import Metric


def one_configuration(cube: xr.DataArray, label: object, argument: str) -> int:
    """Return the position of the configuration named `label`."""
    known = [plain(name) for name in cube["configuration"].values]
    if label not in known:
        close = nearest(label, known)
        raise InputError(f"`{argument}`={label!r} is not a configuration of `cube`; found {show(known)}{close}.")
    return known.index(label)


def family(cube: xr.DataArray, given: Any, argument: str) -> np.ndarray:
    """Return positions of the configurations that `given` names: a label, labels, or coordinate values."""
    if isinstance(given, Mapping):
        inside = np.ones(cube.sizes["configuration"], bool)
        for name, wanted in given.items():
            coord = cube.coords.get(name)
            if coord is None or coord.dims != ("configuration",):
                usual = [n for n, c in cube.coords.items() if c.dims == ("configuration",)]
                raise InputError(f"`{argument}`: {name!r} is no coordinate of the configurations; found {show(usual)}.")
            options = list(wanted) if isinstance(wanted, (list, tuple, set, np.ndarray)) else [wanted]
            inside &= np.isin(coord.values, options)
        if not inside.any():
            raise InputError(f"`{argument}`={dict(given)!r} matches no configuration of `cube`.")
        return np.flatnonzero(inside)
    if isinstance(given, (list, np.ndarray, xr.DataArray)):
        labels = [plain(label) for label in np.asarray(given, dtype=object).ravel()]
        if not labels:
            raise InputError(f"`{argument}` names no configuration.")
        places = [one_configuration(cube, label, argument) for label in labels]
        return np.array(list(dict.fromkeys(places)))
    return np.array([one_configuration(cube, given, argument)])


def one_pair(cube: xr.DataArray, a: Hashable, b: Hashable) -> tuple[int, int]:
    """Return the positions of two different configurations."""
    check_cube(cube)
    first, second = one_configuration(cube, a, "a"), one_configuration(cube, b, "b")
    if first == second:
        raise InputError(f"`a` and `b` are both {a!r}; name two different configurations.")
    return first, second


def draw_scores(
    cube: xr.DataArray, metric: Metric, draws: Draws, rows: np.ndarray, batch: int | None = None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield (draws, usable, scores) in blocks: scores are (draw, configuration), on the samples in `rows`."""
    from cvstats.judge import blocks, restricted
    from cvstats.kernels import kernel
    from cvstats.kernels.usable import LabelCheck

    data = restricted(cube, metric, rows)
    scorer = kernel(metric, data, draws.total)
    check = LabelCheck.of(metric, data)
    for start, stop, weights, _ in blocks(draws, batch, metric, data):
        with np.errstate(invalid="ignore", over="ignore"):
            scores = scorer.scores(weights)
        usable = check.chosen(weights) & ~np.isnan(scores).any(axis=1)
        yield slice(start, stop), usable, scores


def check_draws(times: int, draws: xr.DataArray | None) -> None:
    """Raise unless there will be enough draws for a standard error."""
    check_count(times, "times", minimum=20)
    if draws is not None and isinstance(draws, xr.DataArray) and draws.sizes.get("draw", 0) < 20:
        raise InputError(f"`draws` holds {draws.sizes.get('draw', 0)} draws; at least 20 are needed, 1000 advisable.")


def present_rows(cube: xr.DataArray) -> np.ndarray:
    """Return which samples have a prediction by each configuration, as (sample, configuration)."""
    present = cube.notnull()
    if "label_class" in cube.dims:
        present = present.all("label_class")
    others = [dim for dim in present.dims if dim not in ("sample", "configuration")]
    return np.asarray(present.any(others).transpose("sample", "configuration").values)
