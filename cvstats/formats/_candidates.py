"""Predictions of trained candidates, split by split: how a running search keeps them, and how they become a cube.

A recording is a folder: ``design.npz`` (samples, labels, test sets), one ``<candidate>.json`` per candidate and one
``<candidate>-<split>.npy`` per call. Files are written under a temporary name and renamed, so that processes need no
lock, an interrupted search leaves whole files, and one that is started again writes the same files again.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, plain, show, warn
from cvstats.cube import as_cube

from ._gate import opened
from ._output import removed_on_failure
from ._rows import RESERVED

DESIGN = "design.npz"
CALL = re.compile(r"([0-9a-f]{32})-(\d+)\.npy")
CANDIDATE = re.compile(r"([0-9a-f]{32})\.json")
TAKEN = {*RESERVED, "family", "complexity"}  # names that no tuning value may have


@dataclass(frozen=True)
class Splits:
    """Which samples there are and which of them each split tests: consecutive splits that partition are a repeat."""

    samples: np.ndarray
    labels: np.ndarray
    tests: Sequence[np.ndarray]  # of each split: the places of its test samples
    groups: np.ndarray | None = None

    def folds(self) -> np.ndarray:
        """Return the fold of each sample (sample, repeat), -1 where it is in none; raise for overlapping test sets."""
        repeats: list[np.ndarray] = []
        fold, number = np.full(len(self.samples), -1), 0
        for test in self.tests:
            if (fold >= 0).all():
                repeats.append(fold)
                fold, number = np.full(len(self.samples), -1), 0
            if (fold[test] >= 0).any():
                raise InputError(
                    f"`cv` tests samples {show(self.samples[test[fold[test] >= 0]])} again before all others were "
                    "tested; a cube needs splits that partition the samples, such as KFold or RepeatedKFold."
                )
            fold[test] = number
            number += 1
        repeats.append(fold)
        if len(repeats) > 1 and (fold < 0).any():
            raise InputError(
                f"`cv` leaves samples {show(self.samples[fold < 0])} untested in its last repeat; a cube needs splits "
                "that partition the samples, such as RepeatedKFold."
            )
        return np.stack(repeats, axis=1)


@dataclass(frozen=True)
class Candidate:
    """One tuned pipeline: its family, its parameters, what it answers with, and its predictions by split."""

    family: str
    parameters: Mapping[str, Any]
    response: str  # "predict_proba", "decision_function" or "predict"
    classes: Sequence[Any] | None  # in the order of its columns; None for numbers
    predictions: Mapping[int, np.ndarray]


def candidates_cube(design: Splits, candidates: Sequence[Candidate]) -> xr.DataArray:
    """Return the cube of some candidates, with family and tuning values as coordinates over ``configuration``.

    The positive class is the later one, as in scikit-learn. Where only some give probabilities, scores are kept:
    decision values, and probabilities less one half, so that zero is everybody's threshold.
    """
    folds = design.folds()
    responses = {candidate.response for candidate in candidates}
    classes = next((list(candidate.classes) for candidate in candidates if candidate.classes is not None), None)
    if classes is None:
        kind: str | None = "value"
    elif responses == {"predict_proba"}:
        kind = "probability"
    elif "predict" in responses or len(classes) > 2:
        kind = "label"
    else:
        kind = "score"
        if len(responses) > 1:
            warn(
                "some candidates give probabilities and some decision values: the cube holds scores, probabilities "
                "less one half, with threshold 0. Wrap the others in CalibratedClassifierCV for probabilities."
            )
    wide = kind == "probability" and classes is not None and len(classes) > 2
    shape = (len(design.samples), len(candidates), folds.shape[1], *([len(classes)] if wide and classes else []))
    known = None if classes is None else np.asarray(classes)
    text = kind == "label" and known is not None and known.dtype.kind not in "iufb"
    values = np.full(shape, None if text else np.nan, object if text else float)
    repeats = np.repeat(np.arange(folds.shape[1]), folds.max(axis=0) + 1)  # of each split
    for place, candidate in enumerate(candidates):
        if classes is not None and candidate.classes != classes:
            raise InputError(f"candidates know different classes: {show(classes)} and {show(candidate.classes or ())}.")
        for split, raw in candidate.predictions.items():
            test = design.tests[split]
            values[test, place, repeats[split]] = _values(np.asarray(raw), candidate.response, kind, known)
    names, tuning = _named(candidates)
    again = list(range(folds.shape[1])) if folds.shape[1] > 1 else None
    if again is None:
        values, folds = values[:, :, 0], folds[:, 0]
    cube = as_cube(
        values, design.labels, folds=folds, samples=design.samples.tolist(), configurations=names, repeats=again,
        classes=classes if wide else None, groups=design.groups, kind=kind, threshold=0.0 if kind == "score" else None,
        positive=known[-1].item() if known is not None and len(known) == 2 else None,
    )  # fmt: skip
    return cube.assign_coords({name: ("configuration", column) for name, column in tuning.items()})


def _values(raw: np.ndarray, response: str, kind: str | None, classes: np.ndarray | None) -> np.ndarray:
    """Return one candidate's predictions in the form that the cube keeps."""
    if classes is None or response == "predict":
        return raw
    if response == "decision_function":
        if kind == "score":
            return raw
        return np.asarray(classes[raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0).astype(int)])
    if kind == "label":
        return np.asarray(classes[raw.argmax(axis=1)])
    if len(classes) == 2:
        return np.asarray(raw[:, 1] - (0.5 if kind == "score" else 0.0))
    return raw


def _named(candidates: Sequence[Candidate]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the name of each candidate, by what tells it from its family, and the tuning values as columns."""
    families = [candidate.family for candidate in candidates]
    varying: dict[str, list[str]] = {}
    for family in dict.fromkeys(families):
        own = [candidate.parameters for candidate in candidates if candidate.family == family]
        keys = dict.fromkeys(key for parameters in own for key in parameters)
        varying[family] = [key for key in keys if len({repr(parameters.get(key)) for parameters in own}) > 1]
    names = []
    for candidate in candidates:
        mine = varying[candidate.family]
        shown = [f"{key}={candidate.parameters[key]}" for key in mine if key in candidate.parameters]
        alone = len(varying) == 1 and shown
        names.append(", ".join(shown) if alone else " ".join([candidate.family, ", ".join(shown)]).strip())
    columns = {"family": np.array(families)}
    for key in dict.fromkeys(key for mine in varying.values() for key in mine):
        given = [c.parameters.get(key) if key in varying[c.family] else None for c in candidates]
        number = all(value is None or (isinstance(value, (int, float)) and value is not True) for value in given)
        none, kind = (np.nan, plain) if number else ("", str)
        column = [none if value is None else kind(value) for value in given]
        columns[f"param_{key}" if key in TAKEN else key] = np.array(column)
    return names, columns


# -- recordings


def write_design(folder: Path, design: Splits) -> None:
    """Begin a recording; one that has begun must have the same design."""
    folder.mkdir(exist_ok=True)
    if (folder / DESIGN).exists():
        old = _read_design(folder)
        same = len(old.tests) == len(design.tests) and all(map(np.array_equal, old.tests, design.tests))
        if not (same and np.array_equal(old.samples, design.samples) and np.array_equal(old.labels, design.labels)):
            raise InputError(f"{str(folder)!r} holds a recording of other samples, labels or splits; choose another.")
        return
    if any(folder.iterdir()):
        raise InputError(f"{str(folder)!r} exists and is not a recording; choose another name.")
    arrays: dict[str, Any] = {f"test_{number}": test for number, test in enumerate(design.tests)}
    _put(folder / DESIGN, lambda file: np.savez(file, samples=design.samples, labels=design.labels, **arrays))


def write_call(folder: Path, key: str, split: int, about: Mapping[str, Any], prediction: np.ndarray) -> None:
    """Add what a candidate predicted for the test samples of a split."""
    if not (folder / f"{key}.json").exists():
        _put(folder / f"{key}.json", lambda file: file.write(json.dumps(about).encode()))
    _put(folder / f"{key}-{split}.npy", lambda file: np.save(file, prediction, allow_pickle=False))


def read_recording(folder: Path) -> xr.DataArray:
    """Return the cube of a recording, candidates in the order of their parameters."""
    design = _read_design(folder)
    about: dict[str, dict[str, Any]] = {}
    calls: dict[str, dict[int, np.ndarray]] = {}
    for name in sorted(os.listdir(folder)):
        if found := CANDIDATE.fullmatch(name):
            with opened(folder / name, inside=True) as file:
                about[found[1]] = json.loads(file.read())
        elif found := CALL.fullmatch(name):
            with opened(folder / name, inside=True) as file:
                values = np.load(file, allow_pickle=False)
            split = int(found[2])
            if split >= len(design.tests) or len(values) != len(design.tests[split]):
                raise InputError(f"{folder.name}/{name} does not belong to the recording's splits.")
            calls.setdefault(found[1], {})[split] = values
    if not calls:
        raise InputError(
            f"{folder.name} holds no predictions yet: no test set of the `cv` given to record() has been scored."
        )
    candidates = [Candidate(predictions=calls[key], **about[key]) for key in calls if key in about]
    return candidates_cube(design, sorted(candidates, key=_order))


def is_recording(folder: Path) -> bool:
    """Return whether a folder is a recording."""
    return (folder / DESIGN).is_file()


def _read_design(folder: Path) -> Splits:
    with opened(folder / DESIGN, inside=True) as file, np.load(file, allow_pickle=False) as found:
        tests = [found[f"test_{number}"] for number in range(len(found.files) - 2)]
        return Splits(found["samples"], found["labels"], tests)


def _order(candidate: Candidate) -> tuple[Any, ...]:
    """Return a key by which numbers sort as numbers and come before text."""
    given = sorted(candidate.parameters.items())
    return candidate.family, [(k, 0, v, "") if isinstance(v, (int, float)) else (k, 1, 0.0, str(v)) for k, v in given]


def _put(path: Path, write: Any) -> None:
    """Write a file under a temporary name and rename it."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    with removed_on_failure(temporary, path.name):
        with temporary.open("xb") as file:
            write(file)
        os.replace(temporary, path)
