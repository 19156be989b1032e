"""What the values of a cube are: inferred or given, stored with the positive class and the threshold."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show

from .arrays import SETTLED, encode
from .predictions import SUM_TOLERANCE, Names
from .values import check_threshold, on_dask, unique


def settle(
    data: xr.Variable,
    coords: Names,
    *,
    kind: str | None,
    positive: Any,
    threshold: float | None,
    classes: Sequence[Hashable] | None,
) -> tuple[xr.Variable, dict[Hashable, Any]]:
    """Return the predictions as they are stored and the coordinates that say what they are."""
    settled = {name: coords[name].values.item() for name in SETTLED if name in coords}
    if settled.get("kind") == "label" and "classes" in settled and kind in (None, "label"):
        return _again(data, coords, settled, positive, threshold)
    kind = kind or settled.get("kind")
    positive = settled.get("positive") if positive is None else positive
    threshold = settled.get("threshold") if threshold is None and kind in ("score", "probability") else threshold
    label = coords["label"]
    found = unique(label.values)
    survival = "event" in coords
    if survival and kind not in ("score", "value", "probability"):
        raise InputError(
            "`kind` must be given with `event`: 'score' for risk (higher = earlier event), 'value' for predicted time, "
            "'probability' for the probability to survive a `horizon`."
        )
    kind = kind or _infer(data, label, found)
    check_threshold(threshold, kind)
    if kind != "label":
        data = _as_numbers(data)
    if kind == "value" or survival:
        if label.dtype.kind not in "fiub":
            raise InputError(f"`labels` must be numbers for kind={kind!r}; found {show(found)}.")
        return data, {"kind": kind}
    extra: dict[Hashable, Any] = {"kind": kind}
    known = found if classes is None else [plain(name) for name in classes]
    if "label_class" in data.dims:
        known = [plain(name) for name in coords["label_class"].values]
        _check_known(found, known)
        _check_class_axis(data, known, kind)
        if len(known) > 2:
            return data, extra
        positive = positive_class(known, positive)
        data = data.isel(label_class=known.index(positive))  # nothing is lost: the two columns add up to one
    elif kind == "label" and len(known) > 2:
        return _as_codes(data, known, found), {**extra, "classes": json.dumps(known)}
    elif len(known) > 2:
        raise InputError(
            f"kind={kind!r} with one value per prediction needs two classes, but `labels` hold "
            f"{len(known)}: {show(known)}. Give class probabilities with `classes=`, or kind='value' for numbers."
        )
    positive = positive_class(known, positive)
    if kind == "label":
        others = [name for name in known if name != positive]
        if not others and not on_dask(data):  # labels of one class: the other is what else is predicted
            others = [name for name in unique(data.values) if name != positive]
        names = [others[0] if len(others) == 1 else None, positive]
        data = _as_codes(data, names, found)
        extra["classes"] = json.dumps(names)
    elif threshold is not None or kind == "probability":
        extra["threshold"] = 0.5 if threshold is None else float(threshold)
    return data, {**extra, "positive": positive}


def _again(
    data: xr.Variable, coords: Names, settled: dict[str, Any], positive: Any, threshold: float | None
) -> tuple[xr.Variable, dict[Hashable, Any]]:
    """Return a cube of class codes as it is, when given once more."""
    names = json.loads(settled["classes"])
    if positive is not None and plain(positive) != settled.get("positive"):
        raise InputError(
            f"`positive`={plain(positive)!r}, but `predictions` is a cube of class codes whose positive class is "
            f"{settled.get('positive')!r}. Make the cube anew from the class names."
        )
    check_threshold(threshold, "label")
    _check_known(unique(coords["label"].values), names)
    return data, {name: coords[name] for name in settled}


def _infer(data: xr.Variable, label: xr.Variable, found: list[Any]) -> str:
    """Return the kind that the values and labels suggest; see `as_cube`."""
    if on_dask(data):
        raise InputError("`kind` must be given for dask-backed predictions, because inferring it would load them.")
    values = data.values
    if values.dtype.kind in "OUSTb":
        return "label"
    if values.dtype.kind not in "fiu":
        raise InputError(f"`predictions` have dtype {values.dtype}; give numbers, booleans or class names.")
    known = np.isfinite(values)
    finite = values if known.all() else values[known]
    unit = finite.size > 0 and finite.min() >= 0 and finite.max() <= 1
    if "label_class" in data.dims:
        return "probability" if unit and _sum_gap(data) <= SUM_TOLERANCE else "score"
    numeric = label.dtype.kind in "fiub"
    if numeric and finite.size and all(float(value).is_integer() for value in found) and _all_among(finite, found):
        return "label"
    if len(found) <= 2 and (label.dtype.kind != "f" or is_plain_pair(found)):
        return "probability" if unit else "score"
    if numeric:
        return "value"
    raise InputError(
        f"`predictions` hold numbers but `labels` hold {len(found)} classes: {show(found)}. "
        "Give one column per class with `classes=`, or the predicted classes themselves."
    )


def _all_among(finite: np.ndarray, found: list[Any]) -> bool:
    """Return whether every value is a label; labels of a single class stand for their pair, 0/1 or -1/1."""
    pairs = [[0, 1], [-1, 1]] if len(found) == 1 else []
    sets = [found, *(pair for pair in pairs if found[0] in pair)]
    first = finite.ravel()[:64]  # most scores fail here, without a pass over all values
    return any(bool(np.isin(first, names).all() and np.isin(finite, names).all()) for names in sets)


def is_plain_pair(names: list[Any]) -> bool:
    """Return whether the labels are 0/1, booleans or -1/1 (or one of those)."""
    return set(names) <= {0, 1} or set(names) <= {-1, 1}


def positive_class(known: list[Any], positive: Any) -> Any:
    """Return the positive class: the given one, or the larger of 0/1, booleans and -1/1."""
    positive = plain(positive)
    if positive is not None:
        if positive not in known and len(known) >= 2:
            raise InputError(f"`positive`={positive!r} is not among the labels {show(known)}.")
        return next((name for name in known if name == positive), positive)
    numbers = all(isinstance(name, (bool, int, float)) for name in known)
    if numbers and known and is_plain_pair(known):
        return True if isinstance(known[0], bool) else max([*known, type(known[0])(1)])
    remedy = " If the labels are numbers to predict, give kind='value'." if numbers else ""
    raise InputError(f"`positive` must say which of the labels {show(known)} is the positive class.{remedy}")


def _as_codes(data: xr.Variable, names: list[Any], found: list[Any]) -> xr.Variable:
    """Return class-label predictions as codes; blocks of a dask-backed cube are encoded when they are read."""
    _check_known(found, names)
    if on_dask(data):
        lazy: Any = data.data
        blocks = lazy.map_blocks(_encode_predictions, names, dtype=float, meta=np.empty((0,) * data.ndim))
        return data.copy(data=blocks)
    return data.copy(data=_encode_predictions(data.values, names))


def _encode_predictions(values: np.ndarray, names: list[Any]) -> np.ndarray:
    if values.dtype.kind == "O":
        for value in values.ravel():
            if not isinstance(value, (str, bool, np.bool_, int, np.integer)) and not pd.isna(value):
                raise InputError(
                    f"`predictions` have dtype object and hold {type(value).__name__} such as {value!r}. "
                    "Convert numbers with .astype(float) and class names to strings."
                )
    codes = encode(values, names)
    remedy = " Name every class with `classes=`, or correct the predictions."
    _check_known(unique(values[codes == -1]), names, "predictions", remedy)
    return codes


def _check_known(found: list[Any], names: list[Any], argument: str = "labels", remedy: str = "") -> None:
    stray = [name for name in found if name not in names]
    if stray:
        known = show(name for name in names if name is not None)
        raise InputError(f"`{argument}` hold {show(stray)}, not among the classes {known}.{remedy}")


def _check_class_axis(data: xr.Variable, names: list[Any], kind: str) -> None:
    if len(set(names)) < len(names) or len(names) < 2:
        raise InputError(f"`classes` must name two or more different classes; got {show(names)}.")
    if kind == "label":
        raise InputError("`predictions` has a dimension 'label_class', so it cannot hold kind='label'.")
    if kind == "score" and len(names) == 2:
        raise InputError(
            f"`predictions` has two columns of scores, for {show(names)}; give the scores of the positive class only."
        )
    if kind == "probability" and not on_dask(data) and (gap := _sum_gap(data)) > SUM_TOLERANCE:
        raise InputError(
            f"`predictions`: probabilities of the classes {show(names)} must add up to 1; off by up to {gap:g}. "
            "Give scores with kind='score'."
        )


def _sum_gap(data: xr.Variable) -> float:
    gap = np.abs(data.values.sum(axis=data.dims.index("label_class"), dtype=float) - 1)
    return float(np.fmax.reduce(gap, axis=None, initial=0.0))


def _as_numbers(data: xr.Variable) -> xr.Variable:
    dtype = data.dtype
    if dtype.kind == "f" and dtype.itemsize >= 4:
        return data
    if dtype.kind in "fiub":
        return data.astype(np.float32 if dtype.kind == "f" else np.float64)
    raise InputError(
        f"`predictions` have dtype {dtype}, which is not numeric. Convert with .astype(float), "
        "or give class names with kind='label'."
    )
