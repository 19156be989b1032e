"""How every result is labelled: qualifiers as scalar coordinates, provenance as string attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

NO_INTERVAL = "none"


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
    labels = qualifiers(method, metric, conf_level, interval)
    known = dataset.coords.variables
    own = {name for name in labels if name in dataset.sizes or (name in known and known[name].ndim)}
    labels = {name: value for name, value in labels.items() if name not in own}
    if "method" in dataset.sizes:
        labels["test"] = method
    if not all(name in known and known[name].values[()] == value for name, value in labels.items()):
        dataset = dataset.assign_coords(labels)
    dataset.attrs = {"cvstats_version": cvstats.__version__, "call": call}
    if cube is not None:
        dataset.attrs["cube_hash"] = cube_hash(cube)
    return dataset


def qualifiers(
    method: str, metric: str = "none", conf_level: float = np.nan, interval: str = NO_INTERVAL
) -> dict[str, Any]:
    """Return the scalar coordinates that every result carries; whoever makes a Dataset may put them on at once."""
    return {"method": method, "metric": metric, "conf_level": float(conf_level), "interval": interval}


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
        if isinstance(value, (str, int, float, bool, np.integer, np.floating, tuple)):
            text = repr(value.item() if isinstance(value, np.generic) else value)
        else:
            text = f"<{getattr(value, '__name__', type(value).__name__)}>"
        shown.append(f"{name}={text}")
    return f"{function}({', '.join(shown)})"


def cube_hash(cube: xr.DataArray) -> str:
    """Return a short content hash of a cube: predictions, labels and folds.

    A dask-backed cube is hashed by dask's own deterministic key of the graph, so that nothing is loaded.
    """
    import hashlib

    digest = hashlib.blake2b(digest_size=8)
    data: Any = cube.variable._data
    if hasattr(data, "__dask_graph__"):
        digest.update(str(data.name).encode())
    else:
        digest.update(_folded(cube.values).tobytes())
    digest.update(repr([(str(dim), int(size)) for dim, size in cube.sizes.items()]).encode())
    coords = cube.coords.variables
    for name in sorted(map(str, coords)):
        values = coords[name].values
        digest.update(name.encode())
        digest.update(
            "\x1f".join(map(str, np.ravel(values))).encode() if values.dtype.kind in "OUS" else values.tobytes()
        )
    return digest.hexdigest()


def _folded(values: np.ndarray, lanes: int = 8192) -> np.ndarray:
    """Fold an array into `lanes` words at memory speed: a polynomial of its rows of words, modulo 2**64."""
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    lanes = min(lanes, max(64, raw.size // 256))  # small arrays: few words to digest
    width = 8 * lanes
    whole = raw.size // width
    rows = raw[: whole * width].view(np.uint64).reshape(whole, lanes)
    powers = np.multiply.accumulate(np.full(whole, 0x9E3779B97F4A7C15, np.uint64))[::-1]
    rest = np.zeros(width, np.uint8)
    rest[: raw.size - whole * width] = raw[whole * width :]
    return np.asarray(np.einsum("i,ij->j", powers, rows) + rest.view(np.uint64))
