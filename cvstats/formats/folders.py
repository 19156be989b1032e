"""Folders of predictions: one file per model, or one folder per model with a file of the same name in each."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cvstats._check import InputError, show

from ._gate import Budget
from ._roles import no_configurations
from .array_files import load_arrays

TABLE = re.compile(r"[^.~].*\.(csv|tsv|parquet|feather|arff|json|jsonl|ndjson|xlsx)(\.(gz|bz2|xz|zip))?", re.IGNORECASE)
MLJAR = "predictions_out_of_folds.csv"
HELD_OUT = re.compile(r"fold_(\d+)_validation_indices\.npy")
AUTOGLUON = (
    "AutoGluon keeps out-of-fold predictions as pickles, which are never opened. Write each model's with "
    "predictor.predict_proba_oof(model).to_csv(f'oof/{model}.csv') (predict_oof for numbers), and read the folder oof "
    "with labels= (the truth by the same index)."
)


def tables_in(folder: Path) -> dict[str, Path]:
    """Return the tables of a folder by the configuration that they are named after."""
    found = sorted(folder.glob(f"*/{MLJAR}"), key=lambda path: _natural(path.parent.name))
    if found:
        return {path.parent.name: path for path in found}
    if any(folder.glob("models/*/utils/oof.pkl")) or any(folder.glob("*/utils/oof.pkl")):
        raise InputError(f"{folder.name}: {AUTOGLUON}")
    tables = sorted(path for path in folder.iterdir() if TABLE.fullmatch(path.name) and path.is_file())
    if not tables:
        tables = sorted(path for path in folder.glob("*/*") if TABLE.fullmatch(path.name) and path.is_file())
        kinds = sorted({path.name for path in tables})
        if len(kinds) > 1 and len({path.parent for path in tables}) < len(tables):
            raise InputError(
                f"{folder.name}: its folders hold tables of several names: {show(kinds)}. Give those of one name, such "
                f"as {folder.name}/*/{kinds[0]}."
            )
    if not tables:
        raise InputError(f"{str(folder)!r} is a folder but not a cube store, and holds no tables of predictions.")
    return dict(zip(names_of(tables), tables, strict=True))


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return what tells files apart: their names without extensions, or the folders they are in."""
    bare = [Path(os.path.abspath(re.sub(r"(\.\w+?)(\.(gz|bz2|xz|zip))?$", "", str(path)))) for path in paths]
    names = [path.name for path in bare]
    if twice := sorted({path.name for path in bare if bare.count(path) > 1}):
        raise InputError(f"several files are called {show(twice)}; give a mapping of names to files.")
    if odd := no_configurations([name for name in names if len(name) > 1]):  # a letter is as good a name as any
        raise InputError(
            f"files are called {show(odd)}, but each file is one configuration. Rename them, or give a mapping of "
            "configurations to files; a list of files for one configuration is one file per fold."
        )
    if len({*names}) < len(names):
        apart = [path.parent for path in bare] if len({*names}) == 1 else bare
        start = os.path.commonpath([path.parent for path in bare])
        names = [path.relative_to(start).as_posix() for path in apart]
    return names


def held_out(folder: Path, n: int, budget: Budget) -> np.ndarray | None:
    """Return the fold of each row of an mljar folder, or None when it does not say."""
    files = {int(part[1]): path for path in folder.glob("folds/*.npy") if (part := HELD_OUT.fullmatch(path.name))}
    tests = [load_arrays(files[number], budget)[""] for number in sorted(files)]
    rows = np.concatenate([test.ravel() for test in tests]) if tests else np.array([])
    if rows.dtype.kind not in "iu" or not np.array_equal(np.sort(rows), np.arange(n)):
        return None
    fold = np.empty(n, int)
    fold[rows] = np.repeat(np.arange(len(tests)), [test.size for test in tests])
    return fold


def _natural(name: str) -> list[tuple[int, str]]:
    """Return what numbered names are sorted by: 2_Tree before 10_Tree."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]
