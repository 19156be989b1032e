"""Our own long table, read and written: one row per sample, configuration, partner and repeat."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.arrays import SETTLED, class_names
from cvstats.cube.make import as_cube

from . import _report
from ._columns import NUMBER, plain
from ._gate import needed
from ._layout import ROW_NAMES, TRUTHS, Hints, Parsed, layout, of_values, truth_column
from ._output import FIRST, LAST, replacing

KEYS = (*FIRST, *LAST)
PREFIX = "prediction_"
ONE = {"oof", "cv", "prob", "proba", "probability", "score", "value", "mean"}  # prediction_<one of these> is no class
DIMS = FIRST[:4]
FORMULA = re.compile(r"'*[=+\-@]")  # what a spreadsheet would compute, with the apostrophes that keep it from doing so


@layout(
    "long",
    "long table (sample, configuration, [partner], [repeat], [fold], prediction or prediction_<class>, label)",
    needs=("sample", r"prediction(_.+)?"),
    lacks=("inst#", "row_id", "prediction_label", r"\.pred.*"),
    # not to be confused with OpenML (row_id; its `sample` is no row), PyCaret (prediction_label), mljar (target)
    knows=(*KEYS, *SETTLED, *TRUTHS),
    chunked=True,
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Take the columns as they are."""
    columns = list(frame.columns)
    by_class = [name for name in columns if name.startswith(PREFIX) and name != PREFIX]
    if "prediction" in columns and by_class:
        raise InputError(
            f"the table has both 'prediction' and {show(by_class)}: give one value per prediction or one per class, "
            "or say which with columns={'prediction': ...}."
        )
    values: dict[Any, str] = {name[len(PREFIX) :]: name for name in by_class} or {None: "prediction"}
    if len(values) == 1 and plain(next(iter(values)) or "") in ONE:
        values = {None: by_class[0]}
    truth = truth_column(frame, hints, "long")
    if truth is not None and truth != "label":
        frame = frame.rename(columns={truth: "label"})
        columns = list(frame.columns)
    known = {*KEYS, *SETTLED, *values.values(), ROW_NAMES}
    extras = [name for name in columns if name not in known]
    parsed = Parsed(frame, values, extras, {role: role for role in KEYS if role in columns} | of_values(values))
    parsed.read_as |= {"label": truth} if truth else {}
    for name in SETTLED[:3]:
        if name in columns:
            setattr(parsed, name, _constant(frame[name], name))
    if parsed.threshold is not None:
        parsed.threshold = float(parsed.threshold)
    return parsed


def _constant(column: pd.Series, name: str) -> Any:
    found = column.dropna().unique()
    if len(found) > 1:
        raise InputError(f"column {name!r} must hold one value for the whole table; found {show(found)}.")
    return found[0] if len(found) else None


def plain_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Take away the apostrophe that keeps a spreadsheet from computing a name."""
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            found = [str(text) for text in frame[name].cat.categories]
            bare = [text[1:] if text[:1] == "'" and FORMULA.match(text) else text for text in found]
            if bare != found and len({*bare}) == len(bare):
                frame = frame.assign(**{name: frame[name].cat.rename_categories(bare)})
    return frame


def guarded(values: list[Any]) -> list[Any]:
    """Return cells with an apostrophe before text that a spreadsheet would take for a formula."""
    return [f"'{v}" if isinstance(v, str) and FORMULA.match(v) and not NUMBER.fullmatch(v) else v for v in values]


def long_frame(cube: xr.DataArray) -> pd.DataFrame:
    """Return one row per cell: ids, fold, prediction (one column per class for several classes), truth, and the rest.

    Rows and columns come in the order in which a table was read, if the cube came from one.
    """
    extra = [dim for dim in cube.dims if dim not in (*DIMS, "label_class")]
    if extra:
        raise InputError(f"a long table has no place for dims {show(extra)}; write a .nc file, or select from them.")
    report = _report.read(cube) or {}
    dims = [str(dim) for dim in cube.dims if dim in DIMS]
    order = report.get("row_order") or []
    if "label_class" in cube.dims:
        classes = {name: f"{PREFIX}{name}" for name in cube["label_class"].values}
        table = cube.to_dataset(dim="label_class").rename(classes)
    else:
        classes = {None: "prediction"}
        table = cube.to_dataset(name="prediction")
    frame = table.to_dataframe(dim_order=order if set(order) == set(dims) else dims).reset_index()
    if str(cube["kind"].item()) == "label":
        names = np.array([*(class_names(cube) or []), None], dtype=object)
        frame["prediction"] = names[frame["prediction"].fillna(-1).astype(int)]
    known = (*FIRST, *classes.values(), *LAST)
    rest = [str(name) for name in cube.coords if name not in known and len(cube[name].dims) == 1]
    kept = [name for name in known if name in frame and (name not in cube.coords or cube[name].dims)]
    frame = frame[kept + [name for name in rest if name != "label_class"]].assign(**_unsettled(cube))
    if report.get("missing_cells") and not report.get("blank_rows"):
        frame = frame[frame[list(classes.values())].notna().any(axis=1)].reset_index(drop=True)
    as_read = report.get("columns") or []
    return frame[as_read] if set(as_read) == set(frame.columns) else frame


def _unsettled(cube: xr.DataArray) -> dict[str, Any]:
    """Return what a reader of the table would settle otherwise: a kind or threshold that is not the inferred one."""
    kind = str(cube["kind"].item())
    if kind == "label" or "event" in cube.coords:
        return {} if kind == "label" else {"kind": kind}
    bare = cube.drop_vars([name for name in cube.coords if name not in (*DIMS, "label_class", "label")])
    positive = cube["positive"].item() if "positive" in cube.coords else None
    try:
        guess = as_cube(bare, positive=positive)
    except InputError:
        return {"kind": kind}
    out: dict[str, Any] = {} if str(guess["kind"].item()) == kind else {"kind": kind}
    threshold = float(cube["threshold"]) if "threshold" in cube.coords else None
    if threshold is not None and threshold != (0.5 if kind == "probability" else None):
        out["threshold"] = threshold
    return out


def write_long(cube: xr.DataArray, path: Path, *, force: bool = False) -> None:
    """Write the long table as CSV (compressed by its extension), Parquet or Feather."""
    if cube.dtype.itemsize > 8:
        raise InputError(f"predictions of dtype {cube.dtype} are not written to tables; use cube.astype(float).")
    frame = long_frame(cube)
    kinds = {name: kind for name, kind in frame.dtypes.items() if isinstance(kind, np.dtype) and not kind.isnative}
    frame = frame.astype({name: kind.newbyteorder("=") for name, kind in kinds.items()})
    with replacing(path, force=force) as temporary:
        name = path.name.lower()
        if name.endswith(".parquet"):
            needed("pyarrow", "Parquet files", "io")
            frame.to_parquet(temporary, engine="pyarrow", index=False)
        elif name.endswith(".feather"):
            needed("pyarrow", "Feather files", "io")
            frame.to_feather(temporary)
        else:
            for key, kind in frame.dtypes.items():
                if kind.kind == "O":
                    frame[key] = guarded(frame[key].tolist())
                elif kind == np.float32:  # with all digits, so that no value changes
                    frame[key] = frame[key].astype(float)
            frame = frame.set_axis(guarded(list(frame.columns)), axis=1)
            with _opened(temporary, path.suffix.lower(), path.name) as file:
                frame.to_csv(file, sep="\t" if ".tsv" in name else ",", index=False, lineterminator="\n")


@contextmanager
def _opened(path: Path, suffix: str, name: str) -> Iterator[IO[str]]:
    """Open a text file for writing, compressed by its extension, with nothing in it that changes between runs."""
    with ExitStack() as stack:
        raw: Any
        if suffix == ".gz":
            binary = stack.enter_context(path.open("wb"))
            raw = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0))
        elif suffix == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED))
            raw = stack.enter_context(archive.open(zipfile.ZipInfo(name.removesuffix(".zip")), "w", force_zip64=True))
        else:
            openers: dict[str, Any] = {".bz2": bz2.open, ".xz": lzma.open}
            raw = stack.enter_context(openers.get(suffix, open)(path, "wb"))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
