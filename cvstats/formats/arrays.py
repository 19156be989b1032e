"""Arrays saved by numpy: scikit-learn's cross_val_predict in sample order, and Orange's Results."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.make import as_cube
from cvstats.cube.values import unmasked

from ._assemble import Part, assemble
from ._gate import Budget, first_line
from ._layout import Hints, Parsed, folds_within_repeats

ORANGE = {"row_indices", "actual"}
ORANGE_KNOWS = {*ORANGE, "predicted", "probabilities", "folds", "learner_names", "class_values"}
NAMES = {
    "label": ("label", "labels", "y", "y_true", "target", "truth"),
    "fold": ("fold", "folds", "test_fold"),
    "sample": ("sample", "samples"),
    "group": ("group", "groups"),
    "weight": ("weight", "weights", "sample_weight"),
    "event": ("event",),
    "classes": ("classes", "label_class", "classes_"),
    "configuration": ("configuration", "configurations"),
    "repeat": ("repeat", "repeats"),
    "prediction": ("prediction", "predictions"),
}
INDICES = re.compile(r"(?:indices_)?test_(\d+)")


def load_arrays(path: Path, budget: Budget) -> dict[str, np.ndarray]:
    """Load the arrays of an .npz or .npy file; Python objects (pickles) are refused."""
    try:
        if not path.stat().st_size:
            raise InputError(f"{path.name}: the file is empty.")
        if path.suffix == ".npy":
            with path.open("rb") as file:
                loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                raise InputError(f"{path.name}: this is an archive of arrays; call it .npz.")
            return {"": loaded}
        with zipfile.ZipFile(path) as archive:
            total = sum(info.file_size for info in archive.infolist())
        budget.take(total, f"{path.name}: the arrays decompress to")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except InputError:
        raise
    except Exception as error:  # numpy's header parser raises whatever Python's own tokenizer does
        if "pickle" in str(error).lower() or "object array" in str(error).lower():
            raise InputError(
                f"{path.name}: holds Python objects, which are never unpickled. Save plain arrays of numbers or text."
            ) from None
        raise InputError(f"{path.name}: the file of arrays is corrupt or cut off ({first_line(error)}).") from None


def read_arrays(
    arrays: Mapping[str, np.ndarray], name: str, format: str, hints: Hints
) -> tuple[xr.DataArray, dict[str, Any]]:
    """Return the cube of arrays, by their names, and the facts for its load report."""
    facts: dict[str, Any] = {"source": name, "recognised": "by its array names"}
    orange = set(arrays) >= ORANGE and bool({"predicted", "probabilities"} & set(arrays))
    if orange and format in ("auto", "orange"):
        parsed = _parse_orange(arrays, name, hints)
        part = Part(parsed, name, 1, text=False, aligned=False, rows=len(parsed.frame))
        cube, more = assemble([part], hints, False)
        return cube, {**facts, **more, "layout": "orange", "title": "Orange Results"}
    cube, notes = _in_sample_order(arrays, name, hints)
    title = "arrays in sample order (scikit-learn's cross_val_predict)"
    return cube, {**facts, "layout": "sklearn", "title": title, "notes": notes}


def _in_sample_order(arrays: Mapping[str, np.ndarray], name: str, hints: Hints) -> tuple[xr.DataArray, list[str]]:
    """Return the cube of arrays in sample order, and notes on how their names were read."""
    found = {role: [n for n in names if n in arrays] for role, names in NAMES.items()}
    twice = {role: names for role, names in found.items() if len(names) > 1}
    if twice:
        role, both = next(iter(twice.items()))
        raise InputError(f"{name}: arrays {show(both)} could all be the {role}; keep one.")
    given = {role: arrays[where[0]] for role, where in found.items() if where}
    labels = hints.labels if hints.labels is not None else given.get("label")
    if labels is None:
        raise InputError(
            f"{name}: the truth is missing: save it as an array called 'label' (or y), or give it with labels=. "
            f"Found arrays {show(arrays) if list(arrays) != [''] else 'without names'}."
        )
    n = len(np.asarray(labels))
    tests = {int(part[1]): arrays[key] for key in arrays if (part := INDICES.fullmatch(key))}
    taken = {where[0] for where in found.values() if where} | {key for key in arrays if INDICES.fullmatch(key)}
    others = {(key or hints.name): unmasked(arrays[key]) for key in arrays if key not in taken}
    notes = []
    names: np.ndarray | None
    if "prediction" in given:
        if others:
            raise InputError(
                f"{name}: beside 'prediction' there are arrays {show(others)}, which mean nothing here. Drop them, or "
                f"name them as they should be: {', '.join(names[0] for names in NAMES.values())}."
            )
        predictions: Any = given["prediction"]
        names = given.get("configuration")
    else:
        odd = {key: array.shape for key, array in others.items() if array.ndim not in (1, 2) or len(array) != n}
        if odd or not others:
            what = ", ".join(f"{key!r} {shape}" for key, shape in odd.items()) or "none"
            raise InputError(
                f"{name}: without an array called 'prediction', every other array is one configuration with {n} rows "
                f"(one per label); these are not: {what}."
            )
        if len({array.shape[1:] for array in others.values()}) > 1:
            raise InputError(
                f"{name}: arrays of different widths: {show(f'{k} {a.shape}' for k, a in others.items())}."
            )
        predictions = np.stack(list(others.values()), axis=1)
        names = np.array(list(others))
        notes.append("each array is one configuration, rows in sample order")
    classes = given.get("classes")
    if classes is None and "prediction" not in given and predictions.ndim == 3:
        flat = np.asarray(labels)
        classes = np.unique(flat[~pd.isna(flat)])
        if len(classes) != predictions.shape[-1]:
            raise InputError(
                f"{name}: {predictions.shape[-1]} columns per configuration but {len(classes)} classes in the labels "
                f"({show(classes)}); save the class names as an array called 'classes'."
            )
        notes.append("columns are the sorted classes, as scikit-learn orders them")
    if predictions.dtype.kind == "S":
        raise InputError(f"{name}: predictions are bytes; save text as str.")
    folds: Any = given.get("fold")
    if tests:
        folds = [tests[i] for i in sorted(tests)]
    cube = as_cube(
        predictions, labels, folds=folds, samples=_list(given.get("sample")), configurations=_list(names),
        repeats=_list(given.get("repeat")), classes=_list(classes), groups=given.get("group"),
        weights=given.get("weight"),
        event=given.get("event"), kind=hints.kind, positive=_written_like(hints.positive, labels),
    )  # fmt: skip
    return cube, notes


def _list(values: np.ndarray | None) -> Any:
    return None if values is None else np.asarray(values)


def _written_like(positive: Any, labels: Any) -> Any:
    for name in np.unique(np.asarray(labels)).tolist() if positive is not None else []:
        if str(name) == str(positive):
            return name
    return positive


def _parse_orange(arrays: Mapping[str, np.ndarray], name: str, hints: Hints) -> Parsed:
    """Turn Orange's arrays (method axis first, repeats stacked along the row axis) into rows."""
    if unknown := set(arrays) - ORANGE_KNOWS:
        raise InputError(
            f"{name}: arrays {show(sorted(unknown))} are not part of Orange's Results. Drop them, or name them as they "
            f"should be: {', '.join(sorted(ORANGE_KNOWS))}."
        )
    for key, array in arrays.items():
        if np.ma.is_masked(array):
            raise InputError(f"{name}: array {key!r} is masked; Orange's Results hold no masks.")
    rows = np.asarray(arrays["row_indices"])
    n = len(rows)
    probability = arrays.get("probabilities")
    use = (
        probability
        if probability is not None and np.size(probability) and hints.kind != "label"
        else arrays["predicted"]
    )
    use = np.asarray(use)
    if use.ndim < 2 or use.shape[1] != n:
        raise InputError(f"{name}: Orange arrays have methods first, then rows; got shape {use.shape} for {n} rows.")
    m = use.shape[0]
    learners = [str(x) for x in arrays.get("learner_names", [f"method {i}" for i in range(m)])]
    actual = np.asarray(arrays["actual"])
    frame = pd.DataFrame({"sample": np.tile(rows, m), "configuration": np.repeat(learners, n)})
    classes = arrays.get("class_values")
    if classes is not None and len(classes):
        frame["label"] = np.tile(np.asarray(classes)[actual.astype(int)], m)
    else:
        frame["label"] = np.tile(actual.astype(int) if use.ndim == 3 else actual, m)
    notes = []
    if "folds" in arrays:
        fold = _orange_folds(np.asarray(arrays["folds"]), n, name)
        frame["fold"] = np.tile(fold, m)
    count = pd.Series(rows).groupby(rows).cumcount().to_numpy()
    if count.any():
        frame["repeat"] = np.tile(count, m)
        if "fold" in frame:
            frame["fold"] = np.tile(folds_within_repeats(count, fold), m)
        notes.append(f"{count.max() + 1} repeats were read off row indices that return")
    if use.ndim == 2:
        guess = use.ravel()
        if classes is not None and len(classes):
            frame["prediction"] = np.asarray(classes)[guess.astype(int)]
        else:
            frame["prediction"] = guess
        return Parsed(frame, {None: "prediction"}, notes=notes)
    names = [str(x) for x in classes] if classes is not None else [str(i) for i in range(use.shape[2])]
    for k in range(use.shape[2]):
        frame[f"p{k}"] = use[:, :, k].ravel()
    return Parsed(frame, {label: f"p{k}" for k, label in enumerate(names)}, notes=notes)


def _orange_folds(folds: np.ndarray, n: int, name: str) -> np.ndarray:
    if folds.ndim == 1 and len(folds) == n and folds.dtype.kind in "iu":
        return folds
    if folds.ndim != 2 or folds.shape[1] != 2:
        raise InputError(f"{name}: `folds` must hold start and stop of each slice (k x 2) or one id per row.")
    out = np.full(n, -1)
    for number, (start, stop) in enumerate(folds):
        out[start:stop] = number
    return out
