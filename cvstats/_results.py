"""How every result is labelled: qualifiers as scalar coordinates, provenance as string attributes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import xarray as xr

from ._check import plain, whole

NO_INTERVAL = "none"
QUALIFIERS = ("method", "metric", "conf_level", "interval")  # scalar coordinates of every result
AXES = {"sample": 0, "configuration": 1, "repeat": 2}  # in which order predictions are hashed, then by name
HASHED = ("label", "fold", "event", "group", "weight", "kind", "positive", "threshold", "classes", "horizon")
AT_ONCE = 2**16  # predictions that are hashed at once


def result(
    variables: Mapping[Any, Any],
    *,
    method: str,
    metric: str = "none",
    conf_level: float = np.nan,
    interval: str = NO_INTERVAL,
    call: str = "",
    cube: xr.DataArray | None = None,
) -> xr.Dataset:
    """Return `variables` as a Dataset that says which method, metric and interval made it.

    The four qualifiers are scalar coordinates on every result, because ``xr.concat`` would otherwise let one
    result inherit another's; the name of a dim stays the dim's, and a method then goes to the coordinate ``test``.
    Provenance goes to attributes, as strings.
    """
    import cvstats

    dataset = variables if isinstance(variables, xr.Dataset) else xr.Dataset(dict(variables))
    labels: dict[str, Any] = dict(zip(QUALIFIERS, (method, metric, float(conf_level), interval), strict=True))
    known = dataset.coords.variables
    own = {name for name in labels if name in dataset.sizes or (name in known and known[name].ndim)}
    labels = {name: value for name, value in labels.items() if name not in own}
    if "method" in dataset.sizes:
        labels["test"] = method
    if not all(name in known and known[name].values[()] == value for name, value in labels.items()):
        dataset = dataset.assign_coords(labels)
    describe(dataset)
    dataset.attrs = {"cvstats_version": cvstats.__version__, "call": call}
    if cube is not None:
        dataset.attrs["cube_hash"] = cube_hash(cube)
    return dataset


def describe(dataset: xr.Dataset) -> None:
    """Give every variable that no user made its name for people and a sentence."""
    words = variable_words()
    for name, variable in dataset.variables.items():
        if str(name) in words and (name in dataset.data_vars or not variable.ndim):
            variable.attrs = dict(zip(("long_name", "description"), words[str(name)], strict=True))


@cache
def variable_words() -> dict[str, tuple[str, str]]:
    """Return the name for people and the one-sentence description of every variable that results may hold."""
    table = json.loads((files("cvstats") / "data" / "variables.json").read_text(encoding="utf-8"))
    return {name: (long_name, description) for name, (long_name, description) in table.items()}


def names_of(configurations: np.ndarray, index: Any) -> np.ndarray:
    """Return the labels at some positions; -1 is the empty choice, NaN among numbers and an empty string otherwise."""
    index = np.asarray(index)
    labels = np.asarray(configurations[index])
    if (index >= 0).all():
        return labels
    return np.where(index < 0, np.nan if configurations.dtype.kind in "iuf" else "", labels)


def call_text(function: str, **arguments: object) -> str:
    """Return the call as text for provenance, big arguments named rather than printed.

    >>> call_text("bbc", metric="auc", times=1000, draws=None)
    "bbc(metric='auc', times=1000)"
    """
    shown = []
    for name, value in arguments.items():
        if value is None:
            continue
        if isinstance(value, (str, bool, tuple)):
            text = repr(str(value) if isinstance(value, str) else value)  # a name may be numpy's
        elif isinstance(value, (int, float, np.integer, np.floating)):
            exact = whole(value)
            text = repr(float(value) if exact is None else exact)
        else:
            text = f"<{getattr(value, '__name__', type(value).__name__)}>"
        shown.append(f"{name}={text}")
    return f"{function}({', '.join(shown)})"


def cube_hash(cube: xr.DataArray) -> str:
    """Return the SHA-256 hash of what a cube says: its predictions, the names along its dims, and `HASHED`.

    The same for every container, chunking and order of dims, samples, configurations, repeats and classes, and for
    numbers stored as 1 or 1.0; another one after any change of a value or a name. Coordinates that only describe, such
    as tuning values, do not count. A cube on dask would have to be read for it: ``"not computed"``.
    """
    if hasattr(cube.variable._data, "__dask_graph__"):
        return "not computed"
    known, order, parts = cube.coords.variables, {}, []
    dims = sorted(cube.dims, key=lambda dim: (AXES.get(str(dim), len(AXES)), str(dim)))
    for dim in dims:
        names = _canonical(known[dim].values if dim in known else np.arange(cube.sizes[dim]))
        place = np.argsort(names, kind="stable")
        if (place[1:] < place[:-1]).any():
            order[dim] = place
        parts.append(([dim], names[place]))
    for name in (name for name in HASHED if name in known):
        along = sorted(known[name].dims, key=str)
        values = known[name].transpose(*along).values if len(along) > 1 else known[name].values
        for dim in order.keys() & set(along):  # not by isel, which fails for text that pandas holds
            values = values.take(order[dim], along.index(dim))
        for axis in reversed(range(values.ndim)):
            if along[axis] != "sample" and (values == values.take([0], axis)).all():  # folds that repeats share
                values, along = values.take(0, axis), along[:axis] + along[axis + 1 :]
        parts.append(([name, *along], _canonical(values)))
    digest = hashlib.sha256()
    for said, values in parts:
        kind = values.dtype.kind
        digest.update(json.dumps([*map(str, said), kind, values.shape]).encode())
        digest.update(json.dumps(values.tolist()).encode() if kind in "UO" else np.ascontiguousarray(values).data)
    data, first = cube.variable.transpose(*dims).values, order.pop(dims[0], None)
    rows = max(1, AT_ONCE * len(data) // data.size)
    for start in range(0, len(data), rows):  # so that no copy is large
        block = data[slice(start, start + rows) if first is None else first[start : start + rows]]
        for dim, place in order.items():
            block = block.take(place, dims.index(dim))
        block = _canonical(block)
        if float(block.flat[0]).is_integer() and block.min() >= -128 and block.max() < 128:
            codes = block.astype("i1")
            block = codes if (codes == block).all() else block  # of classes: an eighth of the bytes
        digest.update(block.dtype.str.encode())
        digest.update(block.data)
    return digest.hexdigest()


def _canonical(values: np.ndarray) -> np.ndarray:
    """Return values in the one form that is hashed: doubles with one zero and one NaN if exact, truth values, text."""
    if values.dtype.kind in "OT":  # "T": text of any length, which a pandas index of names becomes
        kinds = {type(plain(value)) for value in values.flat}
        if not (kinds <= {int, float} or kinds in ({str}, {bool})):
            return np.array([repr(plain(value)) for value in values.flat], object).reshape(values.shape)
        values = np.array(values.ravel().tolist()).reshape(values.shape)
    kind = values.dtype.kind
    if kind in "Mm":
        return values.astype(f"{kind}8[ns]").astype("<i8")
    if kind != "f" and not (kind in "iu" and (np.abs(values.astype(float)) < 2**53).all()):
        return values if kind in "biu" else values.astype(str)
    if values.dtype == "<f8" and values.min(initial=1.0) > 0:
        return np.ascontiguousarray(values)
    out = np.asarray(np.add(values, 0.0, dtype="<f8", order="C"))
    if np.isnan(out.min(initial=0.0)):
        out[np.isnan(out)] = np.nan
    return out
