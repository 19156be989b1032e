"""From files to cubes and back: saved predictions of many tools, cubes on disk, and the bundled examples."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, check_count, check_option, show
from .cube.arrays import check_cube
from .cube.make import as_cube
from .formats import GUESSED, LAYOUTS, Hints, Layout, Parsed, Reading, _report, recognise
from .formats._assemble import cube_of
from .formats._candidates import is_recording, read_recording
from .formats._columns import natural_column
from .formats._frames import Table, from_frame
from .formats._gate import Budget, check_input, node
from .formats._layout import NUMBERED
from .formats._manifest import MANIFEST
from .formats._netcdf import read_netcdf, write_netcdf
from .formats._output import check_text
from .formats._rows import TableRows
from .formats._store import compact_store, read_store, write_store
from .formats._tables import read_table
from .formats.array_files import load_arrays, read_arrays
from .formats.folders import held_out, names_of, tables_in
from .formats.long import plain_text, write_long
from .formats.mapping import check_columns, distinct, names_in, narrowed, origin_of, renamed

NAMES = ("sample", "configuration", "repeat", "fold", "label", "group")  # roles whose values are names, not amounts
STORES = (".nc", ".nc4", ".h5", ".cube")
ZARR = 'Zarr stores are opened with xarray: xarray.open_zarr(path)["prediction"] is a cube that all functions take.'
TABLES = (".csv", ".tsv", ".parquet", ".feather", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".tsv.gz")
EXAMPLES = {
    "breast_cancer": "malignant or benign without nuclear size; 120 patients, 133 configurations, 5 x 10 folds",
    "breast_cancer_inner": "its inner predictions, for nested cross-validation",
    "breast_cancer_training": "its training predictions (first repeat), for choosing as one should not",
    "breast_cancer_separate": "60 cases and 60 controls, (5, 5)-fold separate sampling, 3 repeats",
    "diabetes": "disease progression (regression); 120 patients, 40 configurations, 2 x 10 folds",
    "iris": "three species from sepal size; 150 flowers, 54 configurations, 2 x 10 folds",
}


def read_predictions(
    path: Any,
    *,
    format: str = "auto",
    positive: Hashable | None = None,
    columns: Mapping[str, Any] | None = None,
    labels: Any = None,
    kind: str | None = None,
    encoding: str = "utf-8",
    max_bytes: int = 2**31,
) -> xr.DataArray:
    """Read saved predictions of any known layout into a cube.

    Layouts are recognised by their column names: our long and wide tables, tidymodels, caret, mlr3, mlr, OpenML, AMLB,
    AutoGluon, H2O, mljar, PyCaret, Weka, julearn, JADBio, and arrays from scikit-learn and Orange. Files may be CSV
    (plain, .gz, .bz2, .xz, .zip), Parquet (read by row group), Feather, JSON and JSON lines, Excel (with openpyxl),
    ARFF, .npz, .npy, netCDF and stores of cubes. They are data: nothing is unpickled or evaluated, and no address is
    fetched.

    Parameters
    ----------
    path : str, path, DataFrame, list or dict
        File name, data frame, or mapping of arrays. A list or mapping of files, or a folder of them, is one
        configuration each, named by the mapping's keys, the file names, or the folders that hold files of one name
        (mljar); fits of caret and tidymodels keep their tuning values too. A list inside a mapping is one file per
        fold.
    format : str
        Name of the layout when the columns fit several.
    positive : label, optional
        The positive class, for two classes other than 0/1, booleans and -1/1.
    columns : dict, optional
        Our names -> the file's column names, where they cannot be mapped: ``sample``, ``label``, ``prediction``,
        ``configuration``, ``repeat``, ``fold``, ``group``, ``weight``, ``event``. ``prediction`` may be a mapping of
        classes to columns, or a list with one column per configuration; a list or ``"ctd+date"`` for any other name
        stands for columns that together name it. What is not given is found by its name if only one reading is
        possible (and said on stderr); `load_report` says which column was read as what.
    labels : array-like or path, optional
        The truth, for layouts that lack it: one per sample in order, or a Series by sample id; or a table with a column
        of labels, or of ids and labels.
    kind : str, optional
        As in `as_cube`; ``"label"`` takes predicted classes where a file also has probabilities.
    encoding : str
        Of text files.
    max_bytes : int
        The size after decompression at which reading stops, for all files of the call together. Compressed text may
        besides take 200 times the size of its file (but always 16 MB), arrays 1000 times (256 MB).

    Returns
    -------
    xarray.DataArray
        The cube, samples and configurations in first-seen order. `load_report` says what was read.

    Raises
    ------
    InputError
        No layout or several fit; duplicate rows; a sample with two truths or folds; missing ids or truth; text among
        numbers; corrupt, truncated, empty or binary files; tables of scores. TableRows are named, nothing is repaired.

    Examples
    --------
    >>> import pandas as pd
    >>> import cvstats as cs
    >>> table = pd.DataFrame({"sample": [1, 2, 1, 2], "configuration": ["a", "a", "b", "b"],
    ...                       "prediction": [0.9, 0.2, 0.6, 0.7], "label": [1, 0, 1, 0]})
    >>> cube = cs.read_predictions(table)
    >>> dict(cube.sizes), cs.load_report(cube)["layout"]
    ({'sample': 2, 'configuration': 2}, 'long')
    """
    check_option(format, ["auto", *LAYOUTS, "sklearn", "orange"], "format")
    budget, file = Budget(check_count(max_bytes, "max_bytes")), Path(path) if isinstance(path, (str, Path)) else None
    tables = (
        file is not None
        and os.path.isdir(file)
        and not (file.suffix or is_recording(file) or (file / MANIFEST).exists())
    )
    if file is not None and not tables and (file.suffix in (*STORES, ".zarr") or os.path.isdir(file)):
        cube = read_cube(file)
        _refuse_for_cubes(cube, file.name, positive=positive, columns=columns, labels=labels, kind=kind)
        if missing := [name for name in ("label", "kind") if name not in cube.coords]:
            raise InputError(
                f"{file.name}: holds no cube: there is no coordinate {missing[0]!r}. Make it with as_cube()."
            )
        facts = {"layout": "cube", "title": "cube written by write_cube()", "recognised": "by its format"}
        return cube if _report.read(cube) else _report.attach(cube, source=file.name, **facts)
    hints = Hints(labels=_read_labels(labels, encoding, budget), positive=positive, kind=kind)
    if file is not None and file.suffix in (".npz", ".npy") and os.path.isfile(file):
        cube, facts = read_arrays(load_arrays(file, budget), file.name, format, hints)
    elif isinstance(path, Mapping) and path and all(isinstance(value, np.ndarray) for value in path.values()):
        cube, facts = read_arrays(path, "arrays", format, hints)
    else:
        given = tables_in(file) if tables and file is not None else path
        cube, facts = _read_tables(_given(given), format, columns or {}, hints, encoding, budget)
        if tables and file is not None:
            facts["source"] = file.name
            fold = held_out(file, cube.sizes["sample"], budget) if facts["layout"] == "mljar" else None
            cube = cube if fold is None else cube.assign_coords(fold=("sample", fold))
    return _report.attach(cube, **facts)


def _given(path: Any) -> list[tuple[str, int | None, Any]]:
    """Return each table that the caller names: what it is called, which fold it is if a list is one, and what it is."""
    out: list[tuple[str, int | None, Any]] = []
    if isinstance(path, Mapping):
        for name, value in path.items():
            folds = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
            out += [(str(name), fold, part) for fold, part in folds]
    else:
        values = list(path) if isinstance(path, (list, tuple)) else [path]
        files = [Path(value) for value in values if isinstance(value, (str, Path))]
        names = names_of(files) if len(files) == len(values) else ["configuration"] * len(values)
        if len(files) < len(values) > 1:
            raise InputError("a list holds file names; give data frames as a mapping of names to frames.")
        out = [(name, None, value) for name, value in zip(names, values, strict=True)]
    if not out:
        raise InputError("`path` names no files.")
    return out


def _read_tables(
    given: list[tuple[str, int | None, Any]],
    format: str,
    columns: Mapping[str, Any],
    hints: Hints,
    encoding: str,
    budget: Budget,
) -> tuple[xr.DataArray, dict[str, Any]]:
    """Return the cube of one table or several, and the facts for its load report."""
    rows, found, read_as = TableRows(len(given) > 1), [], dict[str, str]()
    for name, fold, what in given:
        said = replace(hints, name=name, mapped=frozenset(columns), several=rows.several)
        table = _open(what, name, columns, encoding, budget)
        with _about(table.name):
            found.append(_take_in(rows, table, format, columns, said, fold, read_as))
        del table  # what is not in the rows is not needed any more
    if rows.several and all(fold is None for _, fold, _ in given):
        _refuse_unmatched(rows)
    with _about("" if rows.several else found[0][0]):
        cube, facts = cube_of(rows, hints)
    sources, headers, readings = zip(*found, strict=True)
    layouts = list(dict.fromkeys(reading.layout.name for reading in readings))
    if len(found) == 1 and layouts == ["long"]:
        facts["columns"] = headers[0]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    facts |= {"source": ", ".join(sources[:3]) + more, "layout": ", ".join(layouts)}
    first = readings[0]
    facts |= {"title": first.layout.title, "recognised": first.how, "read_as": read_as}
    if first.how == GUESSED:
        roles = ", ".join(f"{theirs} as {ours}" for ours, theirs in read_as.items())
        sys.stderr.write(f"cvstats: {sources[0]}: read {roles}\n")
    return cube, facts


def _take_in(
    rows: TableRows,
    table: Table,
    format: str,
    columns: Mapping[str, Any],
    hints: Hints,
    fold: int | None,
    read_as: dict[str, str],
) -> tuple[str, list[str], Reading]:
    """Add the rows of a table; return its name, its columns under our names, and how they were recognised."""
    mapped = check_columns(columns, table)
    wide = names_in(mapped["prediction"]) if isinstance(mapped.get("prediction"), list) else []
    table = renamed(table, mapped)
    reading = recognise(table.columns, format, replace(hints, wide=wide), partial(distinct, table))
    table = renamed(table, reading.columns)
    numbered = reading.layout.name in ("long", "wide") and "sample" not in table.columns
    if reading.layout.name in ("long", "wide"):
        guessed = reading.columns.get("prediction")
        table = narrowed(table, wide or (guessed if isinstance(guessed, list) else []))
    origin = {**reading.columns, **mapped}
    for part in _parts(table, reading.layout, hints, fold):
        if numbered:
            part.notes.append(NUMBERED)
            part.read_as.pop("sample", None)
        rows.add(part)
        read_as |= {role: origin_of(column, origin) for role, column in part.read_as.items()}
    return table.name, table.columns, reading


def _refuse_unmatched(rows: TableRows) -> None:
    """Raise where rows of several tables, which are matched by their numbers, are not equally many."""
    sizes = Counter({part.source: 0 for part in rows.parts})
    sizes.update({part.source: part.rows for part in rows.parts if NUMBERED in part.notes})
    if len({*sizes.values()}) > 1:
        raise InputError(
            f"samples cannot be matched between tables {show(sizes)}: without sample ids rows are numbered, and these "
            f"have {show(count or 'named ones' for count in sizes.values())}. Add a column of sample ids to each."
        )


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Begin what is said of a table with its name."""
    try:
        yield
    except InputError as error:
        raise error if not name or str(error).startswith(f"{name}:") else InputError(f"{name}: {error}") from None


def _open(what: Any, name: str, columns: Mapping[str, Any], encoding: str, budget: Budget) -> Table:
    """Open a file or wrap a frame."""
    if isinstance(what, pd.DataFrame) or hasattr(what, "to_pandas"):
        name = "table" if name == "configuration" else name
        return from_frame(what if isinstance(what, pd.DataFrame) else what.to_pandas(), name)
    if not isinstance(what, (str, Path)):
        raise InputError(
            f"`path` must be a file name, a data frame, or a list or mapping of them; got {type(what).__name__}."
        )
    named = [name for role, given in columns.items() if role in NAMES for name in names_in(given)]
    ids = {*named, *(part for name in named for part in name.split("+"))}
    return read_table(Path(what), encoding, budget, ids)


def _parts(table: Table, layout: Layout, hints: Hints, fold: int | None) -> Iterator[Parsed]:
    """Yield the parsed parts of a table; layouts that need all rows at once get them."""
    frames = table.parts() if layout.chunked else iter([table.whole()])
    row = 1
    for frame in frames:
        frame = plain_text(frame) if table.text and layout.name == "long" else frame
        try:
            parsed = layout.parse(frame, hints)
        except InputError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
            raise InputError(f"has the columns of layout {layout.name!r} but not its values ({error}).") from None
        aligned = len(parsed.frame) == len(frame)
        for role in sorted(hints.mapped - {"prediction"}):  # what the caller mapped wins over the layout's own
            if role == "label" and layout.name in ("long", "tidymodels"):
                continue  # they look for it, and split survival times
            if aligned:
                parsed.frame = parsed.frame.assign(**{role: frame[role]})
            elif layout.name != "wide":
                raise InputError(f"layout {layout.name!r} has no place for columns[{role!r}].")
        if "configuration" not in parsed.frame.columns:
            parsed.frame = parsed.frame.assign(configuration=hints.name)
        if fold is not None:
            parsed.frame = parsed.frame.assign(fold=fold, sample=[f"{fold}:{name}" for name in parsed.frame["sample"]])
        yield replace(parsed, source=table.name, first_row=row, rows=len(frame), text=table.text, aligned=aligned)
        row += len(frame)


def _read_labels(labels: Any, encoding: str, budget: Budget) -> Any:
    """Return labels as an array, or as a Series by sample id; from a local file as they are written there."""
    if isinstance(labels, (str, Path)):
        if node(Path(labels)) == "nothing":
            raise InputError(f"`labels`: no such file: {str(labels)!r}.")
        with _about("`labels`"):
            table = read_table(Path(labels), encoding, budget, None)
        if len(table.columns) > 2:
            raise InputError(
                f"`labels`: {str(labels)!r} must have one column (labels) or two (ids, labels); "
                f"found {len(table.columns)}."
            )
        frame = table.whole()
        found = natural_column(frame.iloc[:, -1])
        if found.nunique() != frame.iloc[:, -1].nunique():  # classes called 1.1 and 1.10
            found = frame.iloc[:, -1].astype(object)
        if len(table.columns) == 1:
            return found.to_numpy()
        if frame.iloc[:, 0].isna().any():
            raise InputError(f"`labels`: {str(labels)!r} has rows without an id.")
        return found.set_axis(natural_column(frame.iloc[:, 0], ids=True))
    if isinstance(labels, pd.DataFrame):
        if labels.shape[1] != 1:
            raise InputError(f"`labels` must be one column; got {show(labels.columns)}.")
        return labels.iloc[:, 0]
    if isinstance(labels, Mapping):
        return pd.Series(labels)
    return np.asarray(labels) if isinstance(labels, (list, tuple)) else labels


def _refuse_for_cubes(cube: xr.DataArray, name: str, **given: Any) -> None:
    """Raise when the caller asks for what a stored cube has settled already."""
    for role in ("columns", "labels"):
        if given[role] is not None:
            raise InputError(f"{name}: `{role}` is for tables; this is a cube, which has its labels and dims.")
    for role in ("positive", "kind"):
        settled = str(cube.coords[role].item()) if role in cube.coords else "none"
        if given[role] is not None and str(given[role]) != settled:
            raise InputError(
                f"{name}: `{role}`={given[role]!r}, but this cube was written with {role} {settled!r}; "
                "read the table it came from again."
            )


def load_report(cube: xr.DataArray) -> dict[str, Any]:
    """Return what was read and how: the layout, sizes, missing cells, and notes on what was found.

    Parameters
    ----------
    cube : DataArray
        What `read_predictions` or `example_cube` returned. The report is kept on the cube and survives files of cubes;
        arithmetic loses it.

    Returns
    -------
    dict
        ``layout, title, recognised, source, rows, samples, configurations, repeats, folds, classes, kind,
        missing_cells, duplicate_rows, truth_conflicts`` (both 0: they are errors), ``averaged_repeats,
        zero_filled_folds, read_as`` (our names -> the columns that were read as them), ``ignored_columns, notes``.

    Raises
    ------
    InputError
        The cube was made in another way and has no report.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.load_report(cs.example_cube())["samples"]
    120
    """
    report = _report.read(cube) if isinstance(cube, xr.DataArray) else None
    if report is None:
        raise InputError("`cube` has no load report; only cubes from read_predictions() and example_cube() have one.")
    return report


def read_cube(path: str | Path, *, chunks: Any = None) -> xr.DataArray:
    """Read a cube that `write_cube` wrote: a netCDF file or a store of parts.

    Parameters
    ----------
    path : str or path
        The file (.nc) or store (.cube). Any other store is opened with xarray: a cube is a plain DataArray.
    chunks : None, {}, "auto" or dict
        None loads the cube. Anything else, such as ``{"configuration": 500}``, leaves it on disk and returns a cube
        backed by dask, which every protocol streams. Chunk along ``configuration``: a draw needs all samples at once.

    Returns
    -------
    xarray.DataArray
        The cube as it was written: values, coordinates, order and load report. The parts of a store are put together by
        label, configurations in the order in which they were first written; attributes that all parts share are kept.

    Raises
    ------
    InputError
        No such file; not a cube; corrupt or cut off; parts that are missing, damaged (each is checked against its
        SHA-256 hash when its predictions are loaded) or contradict each other, naming the cells; links inside a store
        or a file, or arrays kept in other files; a small file that declares a very large array. Tables of predictions
        are for `read_predictions`.

    Notes
    -----
    The HDF5 library before version 2.0 (h5py before 3.16) may crash on a damaged netCDF file instead of reporting it.

    Examples
    --------
    >>> import tempfile
    >>> import cvstats as cs
    >>> cube = cs.example_cube("iris")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.write_cube(cube, f"{folder}/iris.nc")
    ...     cs.read_cube(f"{folder}/iris.nc").identical(cube)
    True
    """
    path = Path(path)
    if path.suffix == ".zarr":
        raise InputError(f"{path.name}: {ZARR}")
    if is_recording(path):
        return read_recording(path)
    if path.is_dir():
        return read_store(path, chunks)
    check_input(path)
    return read_netcdf(path, chunks)


def write_cube(cube: xr.DataArray, path: str | Path, *, append: bool = False, force: bool = False) -> None:
    """Write a cube: netCDF (.nc) or a store (.cube) without loss, or a long table (.csv, .csv.gz, .parquet, .feather).

    A file appears under its name only when it is complete. It replaces one that cvstats has made: a netCDF file that
    says so, a table with the header of our long table. Cells of a CSV file that a spreadsheet would take for a formula
    begin with an apostrophe, which `read_predictions` takes away again.

    Parameters
    ----------
    cube : DataArray
        The cube, in memory or backed by dask; inner predictions and separate-sampling cubes too (not as a table). One
        that is larger than memory needs a store.
    path : str or path
        Where to; the extension says the format.
    append : bool
        For a store: add to it. Each call adds one immutable part with what is not there yet: configurations, repeats,
        samples, cells that are empty (NaN). The rest must agree: nothing stored is ever overwritten, so a training job
        may write each configuration or fold as it finishes, die, and be run again. Labels, folds and the kind of
        predictions must be those of the store. Several processes may append, one after the other; readers see the
        store as it was before or after, never between. `compact_cube` merges many small parts.
    force : bool
        Replace a file that cvstats has not made. Links, devices and folders are never replaced.

    Raises
    ------
    InputError
        Unknown extension; no such folder; a file that is not ours; appended cells, labels or folds that contradict the
        store, naming them; coordinates that files cannot hold; dims that a table has no place for.

    Examples
    --------
    >>> import tempfile
    >>> import cvstats as cs
    >>> cube = cs.example_cube("diabetes")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in cube.configuration.values[:3]:  # as each finishes training
    ...         cs.write_cube(cube.sel(configuration=[name]), f"{folder}/run.cube", append=True)
    ...     cs.read_cube(f"{folder}/run.cube").sizes["configuration"]
    3
    """
    path = Path(path)
    if not isinstance(cube, xr.DataArray):
        raise InputError(f"`cube` must be an xarray.DataArray made by as_cube(); got {type(cube).__name__}.")
    for dim in ("sample", "configuration"):
        if dim not in cube.dims:
            raise InputError(f"`cube` has no dimension {dim!r}; found {show(cube.dims)}. Make it with as_cube().")
    if not path.parent.is_dir():
        raise InputError(f"no such folder: {str(path.parent)!r}.")
    suffix = path.suffix.lower()
    if suffix == ".zarr":
        raise InputError(f"{path.name}: Zarr is not written; use .cube, or cube.to_dataset().to_zarr(path) of xarray.")
    if append and suffix != ".cube":
        raise InputError(f"append=True needs a store (.cube); got {path.name!r}.")
    check_text(cube)
    if suffix == ".cube":
        write_store(cube, path, append=append)
    elif suffix in STORES:
        write_netcdf(cube, path, force=force)
    elif path.name.lower().endswith(TABLES):
        write_long(check_cube(cube), path, force=force)
    else:
        raise InputError(
            f"cannot tell the format of {path.name!r} from its extension; "
            f"use one of {', '.join((STORES[0], STORES[-1], *TABLES))}."
        )


def compact_cube(path: str | Path) -> None:
    """Merge the parts of a store into few, as large as dask reads them well.

    What the store holds does not change. Readers that have opened it lazily must open it again.

    Parameters
    ----------
    path : str or path
        A store (.cube) that `write_cube` has appended to.

    Raises
    ------
    InputError
        No such store; parts that are missing, damaged or contradict each other.

    Examples
    --------
    >>> import tempfile
    >>> import cvstats as cs
    >>> cube = cs.example_cube("diabetes").isel(configuration=slice(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in cube.configuration.values:
    ...         cs.write_cube(cube.sel(configuration=[name]), f"{folder}/run.cube", append=True)
    ...     cs.compact_cube(f"{folder}/run.cube")
    ...     cs.read_cube(f"{folder}/run.cube").equals(cube)
    True
    """
    compact_store(Path(path))


def example_cube(name: str = "breast_cancer") -> xr.DataArray:
    """Return a bundled cube of real predictions.

    Models were trained with scikit-learn by ``benchmarks/make_example.py``. ``breast_cancer`` (default): is a tumour
    malignant, from the texture, smoothness, symmetry and fractal dimension of its cell nuclei? 120 patients, 133
    configurations of 14 model families, 5 repeats of stratified 10-fold cross-validation. `test_auc` and
    `test_accuracy` are each configuration's performance on 449 other patients after training on all 120: what is being
    estimated (these 120 happen to be a little harder to tell apart than the others, which an interval must allow for).
    ``breast_cancer_inner`` holds its inner predictions for `ncv` and `winner`, ``breast_cancer_training`` the training
    predictions of the first repeat, ``breast_cancer_separate`` a case-control sample for `separate_cv`. ``diabetes`` is
    a regression, ``iris`` has three classes.

    Parameters
    ----------
    name : str
        One of the names above; any other is an error that lists them.

    Returns
    -------
    xarray.DataArray
        The cube, with tuning values, ``family`` and ``complexity`` as coordinates of the configurations where known.

    References
    ----------
    Wolberg, Street, Mangasarian (1993). Breast Cancer Wisconsin (Diagnostic). UCI Machine Learning Repository.
    doi:10.24432/C5DW2B

    Examples
    --------
    >>> import cvstats as cs
    >>> dict(cs.example_cube().sizes)
    {'sample': 120, 'configuration': 133, 'repeat': 5}
    """
    check_option(name, list(EXAMPLES), "name")
    with as_file(files("cvstats") / "data" / f"{name}.npz") as file, np.load(file, allow_pickle=False) as arrays:
        data = {key: arrays[key] for key in arrays.files}
    raw = data.pop("prediction")
    values = np.where(raw == 65535, np.nan, raw / 1e4) if raw.dtype == np.uint16 else raw.astype(float)
    extra = {"breast_cancer_inner": ["outer_fold", "repeat"], "breast_cancer_training": ["outer_fold"],
             "breast_cancer_separate": ["partner", "repeat"], "iris": ["repeat", "label_class"]}  # fmt: skip
    dims = ["sample", "configuration", *extra.get(name, ["repeat"])]
    coords: dict[str, Any] = {dim: (dim, data.pop(dim)) for dim in (*dims[:2], "label_class") if dim in data}
    coords |= {dim: (dim, np.arange(values.shape[place])) for place, dim in enumerate(dims) if dim not in coords}
    for key in [key for key in data if key not in ("label", "fold")]:
        coords[key.removeprefix("tuning_")] = ("configuration", data[key])
    if "fold" in data:
        coords["fold"] = (("sample", *[dim for dim in dims[2:] if dim in ("outer_fold", "repeat")]), data["fold"])
    array = xr.DataArray(values, dims=dims, coords=coords)
    positive = "malignant" if name.startswith("breast") else None
    kind = "value" if name == "diabetes" else "probability"
    cube = as_cube(array, data["label"], kind=kind, positive=positive)
    facts = {"layout": "example", "title": EXAMPLES[name], "recognised": "bundled", "source": f"example_cube({name!r})"}
    return _report.attach(cube, **facts)
