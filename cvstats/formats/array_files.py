"""Arrays saved by numpy: scikit-learn's cross_val_predict in sample order, and Orange's Results."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.make import as_cube
from cvstats.cube.values import unmasked

from ._assemble import cube_of, likely_probabilities
from ._axis import same
from ._columns import texts
from ._gate import Budget, first_line
from ._layout import Hints, Parsed
from ._roles import no_configurations
from ._rows import TableRows

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
        if path.suffix != ".npy":
            with zipfile.ZipFile(path) as archive:
                total = sum(info.file_size for info in archive.infolist())
            budget.take(total, f"{path.name}: the arrays decompress to", path)
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if path.suffix != ".npy":
                return {name: loaded[name] for name in loaded.files}
        if not isinstance(loaded, np.ndarray):
            raise InputError(f"{path.name}: this is an archive of arrays; call it .npz.")
        return {"": loaded}
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
        parsed, rows = _parse_orange(arrays, name, hints), TableRows(several=False)
        rows.add(replace(parsed, source=name, rows=len(parsed.frame)))
        cube, more = cube_of(rows, hints)
        return cube, {**facts, **more, "layout": "orange", "title": "Orange Results"}
    cube, notes = _in_sample_order(arrays, name, hints)
    title = "arrays in sample order (scikit-learn's cross_val_predict)"
    return cube, {**facts, "layout": "sklearn", "title": title, "notes": notes}


def _in_sample_order(arrays: Mapping[str, np.ndarray], name: str, hints: Hints) -> tuple[xr.DataArray, list[str]]:
    """Return the cube of arrays in sample order, and notes on how their names were read."""
    named = {role: [n for n in names if n in arrays] for role, names in NAMES.items()}
    for role, both in named.items():
        if len(both) > 1:
            raise InputError(f"{name}: arrays {show(both)} could all be the {role}; keep one.")
    given: dict[str, Any] = {role: arrays[where[0]] for role, where in named.items() if where}
    labels = hints.labels if hints.labels is not None else given.get("label")
    if labels is None:
        raise InputError(
            f"{name}: the truth is missing: save it as an array called 'label' (or y), or give it with labels=. "
            f"Found arrays {show(arrays) if list(arrays) != [''] else 'without names'}."
        )
    flat = np.asarray(labels)
    tests = {int(part[1]): arrays[key] for key in arrays if (part := INDICES.fullmatch(key))}
    taken = {key for where in named.values() for key in where}
    rest = [key for key in arrays if key not in taken and not INDICES.fullmatch(key)]
    others = {key or hints.name: unmasked(arrays[key]) for key in rest}
    if odd := no_configurations(list(others)):
        raise InputError(
            f"{name}: arrays {show(odd)} are not called like configurations. Leave out what is no prediction, and call "
            "the others after their models."
        )
    predictions, names, classes, notes = given.get("prediction"), given.get("configuration"), given.get("classes"), []
    if predictions is None:
        predictions, names = _stacked(others, len(flat), name), list(others)
        notes.append("each array is one configuration, rows in sample order")
        if classes is None and predictions.ndim == 3:
            classes = np.unique(flat[~pd.isna(flat)])
            if len(classes) != predictions.shape[-1]:
                raise InputError(
                    f"{name}: {predictions.shape[-1]} columns per configuration but {len(classes)} classes in the "
                    f"labels ({show(classes)}); save the class names as an array called 'classes'."
                )
            notes.append("columns are the sorted classes, as scikit-learn orders them")
    elif others:
        raise InputError(
            f"{name}: beside 'prediction' there are arrays {show(others)}, which mean nothing here. Drop them, or "
            f"name them as they should be: {', '.join(names[0] for names in NAMES.values())}."
        )
    if predictions.dtype.kind == "S":
        raise InputError(f"{name}: predictions are bytes; save text as str.")
    found = pd.unique(flat[~pd.isna(flat)]).tolist()
    if predictions.dtype.kind in "fiu" and (classes is not None or len(found) <= 2):
        predictions, more = likely_probabilities(predictions, found, hints.kind, single=classes is None)
        notes += more
    cube = as_cube(
        predictions, labels, folds=[tests[i] for i in sorted(tests)] if tests else given.get("fold"),
        samples=given.get("sample"), configurations=names, repeats=given.get("repeat"), classes=classes,
        groups=given.get("group"), weights=given.get("weight"), event=given.get("event"), kind=hints.kind,
        positive=same(hints.positive, {str(label): label for label in np.unique(flat).tolist()}),
    )  # fmt: skip
    return cube, notes


def _stacked(others: Mapping[str, np.ndarray], n: int, name: str) -> np.ndarray:
    """Return arrays of one configuration each as one."""
    odd = {key: array.shape for key, array in others.items() if array.ndim not in (1, 2) or len(array) != n}
    if odd or not others:
        what = ", ".join(f"{key!r} {shape}" for key, shape in odd.items()) or "none"
        raise InputError(
            f"{name}: without an array called 'prediction', every other array is one configuration with {n} rows "
            f"(one per label); these are not: {what}."
        )
    if len({array.shape[1:] for array in others.values()}) > 1:
        raise InputError(f"{name}: arrays of different widths: {show(f'{k} {a.shape}' for k, a in others.items())}.")
    return np.stack(list(others.values()), axis=1)


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
    rows, actual = np.asarray(arrays["row_indices"]), np.asarray(arrays["actual"])
    probability, n = arrays.get("probabilities", np.array([])), len(rows)
    use = np.asarray(probability if np.size(probability) and hints.kind != "label" else arrays["predicted"])
    if use.ndim < 2 or use.shape[1] != n:
        raise InputError(f"{name}: Orange arrays have methods first, then rows; got shape {use.shape} for {n} rows.")
    classes = np.asarray(arrays.get("class_values", []))

    def named(codes: np.ndarray) -> np.ndarray:
        return np.asarray(classes[codes.astype(int)]) if len(classes) else codes

    one = pd.DataFrame({"sample": rows, "label": named(actual.astype(int) if use.ndim == 3 else actual)})
    if "folds" in arrays:
        one["fold"] = _orange_folds(np.asarray(arrays["folds"]), n, name)
    learners = [str(x) for x in arrays.get("learner_names", [f"method {i}" for i in range(len(use))])]
    frame = pd.concat([one.assign(configuration=learner) for learner in learners], ignore_index=True)
    if use.ndim == 2:
        return Parsed(frame.assign(prediction=named(use.ravel())), {None: "prediction"}, iterations=True)
    names = texts(classes) if "class_values" in arrays else [str(k) for k in range(use.shape[2])]
    columns = {f"p{k}": use[:, :, k].ravel() for k in range(use.shape[2])}
    return Parsed(frame.assign(**columns), dict(zip(names, columns, strict=False)), iterations=True)


def _orange_folds(folds: np.ndarray, n: int, name: str) -> np.ndarray:
    if folds.ndim == 1 and len(folds) == n and folds.dtype.kind in "iu":
        return folds
    if folds.ndim != 2 or folds.shape[1] != 2:
        raise InputError(f"{name}: `folds` must hold start and stop of each slice (k x 2) or one id per row.")
    out = np.full(n, -1)
    for number, (start, stop) in enumerate(folds):
        out[start:stop] = number
    return out
