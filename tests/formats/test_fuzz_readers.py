"""Broken files: a valid cube or one of our own one-line errors, nothing unpickled, and decompression that stops.

Real files of every layout and container are damaged at random (bytes, lines, cells, arrays, metadata) from fixed seeds.
More cases: ``FUZZ_FILES=500 pytest tests/formats/test_fuzz_readers.py``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvstats as cs

pytest.importorskip("pyarrow")
pytest.importorskip("h5netcdf")

FILES = Path(__file__).parents[1] / "files"
CASES = int(os.environ.get("FUZZ_FILES", "8"))
LIMIT = 2**24  # bytes after decompression
OLD_HDF5 = int(pytest.importorskip("h5py").version.hdf5_version.partition(".")[0]) < 2
CRASH = "earlier versions of the HDF5 library crash on damaged tables of links"
LONG = """sample,configuration,repeat,fold,prediction,label,group,weight
s1,a,1,1,0.5,1,g,1
s2,a,1,2,0.25,0,g,2.5
s3,a,1,1,0.75,1,h,1
s1,b,1,1,0.125,1,g,1
s2,b,1,2,0.5,0,g,2.5
s3,b,1,1,NA,1,h,1
"""
DOCUMENTED = {
    "wide.csv": "sample,label,fold,svm,forest\n1,yes,0,0.5,0.2\n2,no,1,0.25,0.8\n3,yes,0,0.1,0.9\n",
    "classes.csv": "sample,configuration,prediction_a,prediction_b,prediction_c,label\n1,x,.2,.3,.5,a\n2,x,.5,.2,.3,b\n"
    "3,x,.1,.1,.8,c\n",
    "survival.csv": "sample,configuration,prediction,label,event,kind\n1,x,.2,3,1,score\n2,x,.5,5,0,score\n"
    "3,x,1,2,1,score\n",
    "quoted.csv": '"sample";"configuration";"prediction";"label"\n"a; b";"c, ""d""";0,5;"no"\n"e";"c, ""d""";0,25;"yes"'
    "\n",
    "jadbio.csv": "Sample name,Prob ( class = 0 ),Prob ( class = 1 ),Label\ns1,0.9,0.1,0\ns2,0.2,0.8,1\n",
    "amlb.csv": "no,yes,predictions,truth\n0.9,0.1,no,no\n0.2,0.8,yes,yes\n",
    "mlr3.csv": "row_ids,truth,response,prob.a,prob.b,iteration\n1,a,a,.7,.3,1\n2,b,a,.6,.4,1\n3,b,b,.2,.8,2\n",
    "tidy_survival.csv": "id,.pred_time,.row,.config,time,event\nFold1,3,1,m1,2,1\nFold2,5,2,m1,4,0\n",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "sklearn_proba.npy": {"labels": np.loadtxt(FILES / "sklearn_truth.txt", dtype=int)},
    "h2o_bare.csv": {"labels": pd.read_csv(FILES / "h2o_truth.csv")["species"], "positive": "virginica"},
    **{
        f"autogluon_{name}.csv": {
            "labels": pd.read_csv(FILES / "autogluon_truth.csv", index_col=0)["species"],
            "positive": "virginica",
        }
        for name in ("gbm", "knn")
    },
    "pycaret_regression.csv": {"columns": {"label": "pl"}},
    "weka_no_ids.csv": {"columns": {"label": "actual", "prediction": "predicted"}},
    "tidy_survival.csv": {"columns": {"label": "time", "event": "event"}},
    **{name: {"positive": "yes"} for name in ("amlb.csv", "quoted.csv", "wide.csv")},
    "mlr3.csv": {"positive": "b"},
}
TWO_SPECIES = ("caret_", "h2o_s", "h2o_z", "julearn", "mlr_rep", "pycaret_raw", "pycaret_score", "tidymodels")
REFUSED = {  # whole, but no tables of predictions
    "autogluon_truth.csv",
    "caret_scores.csv",
    "h2o_truth.csv",
    "h2o_zero_filled.csv",
    "separate_lda_design.csv",
    "separate_lda_numbers.csv",
    "sklearn_scores.csv",
    "weka_experimenter.csv",
    "weka_no_ids.csv",  # by hand: Weka quotes a class where it is the truth, not where it is predicted
}
WRITTEN = (".csv", ".tsv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".parquet", ".feather", ".nc", ".cube")
TEXT = [
    *sorted(path.name for path in FILES.iterdir() if path.suffix in (".csv", ".arff")),
    *DOCUMENTED,
    "cube.csv",
    "cube.tsv",
]
BINARY = [*sorted(path.name for path in FILES.iterdir() if path.suffix in (".npz", ".npy")), "arrays.npz"]
BINARY += [f"cube{suffix}" for suffix in WRITTEN if suffix not in (".csv", ".tsv", ".cube")]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return whole files of every layout and container, which all can be read."""
    folder = tmp_path_factory.mktemp("originals")
    for name, text in {**DOCUMENTED, "long.csv": LONG}.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in FILES.iterdir():
        if path.name in TEXT or path.name in BINARY:
            shutil.copy(path, folder)
    cube = cs.read_predictions(folder / "long.csv")
    for suffix in WRITTEN:
        cs.write_cube(cube, folder / f"cube{suffix}")
    g = np.random.default_rng(0)
    np.savez(
        folder / "arrays.npz", prediction=g.random((6, 2, 2)), label=[0, 1] * 3, fold=g.integers(0, 2, (6, 2)),
        configuration=["x", "y"], sample=list("abcdef"), group=[0, 0, 1, 1, 2, 2], weight=g.random(6), repeat=[1, 2],
    )  # fmt: skip
    return {path.name: path for path in folder.iterdir()}


def settings_of(name: str) -> dict[str, Any]:
    two = name.startswith(TWO_SPECIES) and not name.startswith(("caret_multi", "caret_reg"))
    two = two or name == "separate_lda.csv"
    return SETTINGS.get(name, {"positive": "virginica"} if two else {})


def read(path: Any, **options: Any) -> str | None:
    """Read a file and return our refusal; anything else that goes wrong propagates, warnings included."""
    refusal: BaseException | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cs.CvstatsWarning)
        try:
            cube = cs.read_predictions(path, **{"max_bytes": LIMIT, **options})
            assert cs.check_cube(cube) is cube
        except cs.InputError as error:
            refusal = error
    if refusal is None:
        return None
    text = str(refusal)
    assert "\n" not in text
    assert 20 < len(text) < 1500
    assert refusal.__suppress_context__ or refusal.__context__ is None
    return text


# --- ways to break a file -----------------------------------------------------------------------------------------
Harm = Callable[[np.random.Generator, bytes], bytes]
CELLS = [
    "", " ", "NA", "nan", "inf", "-inf", "1e400", "-1e308", "1e-320", "99999999999999999999", "-0", "007", "1.10",
    "0x1F", "1,5", "True", "?", '"', "'", "\\", "é", "\ud83d\ude00", "a" * 300, "=cmd()", "__import__('os')", "\t",
    "1:yes", "*0.5", "Fold1.Rep1", "Resample01", "-1", "0", "1", "2", "1_000", "１", "\u202e", "%", "{0 1}", "NULL",
]  # fmt: skip


def flip(g: np.random.Generator, raw: bytes) -> bytes:
    out = np.frombuffer(raw, np.uint8).copy()
    places = g.integers(0, len(out), int(g.integers(1, 9)))
    out[places] ^= g.integers(1, 256, len(places)).astype(np.uint8)
    return out.tobytes()


def cut(g: np.random.Generator, raw: bytes) -> bytes:
    at = int(g.integers(0, len(raw)))
    return raw[:at] if g.random() < 0.7 else raw[at:]


def insert(g: np.random.Generator, raw: bytes) -> bytes:
    at = int(g.integers(0, len(raw) + 1))
    what = [b"\x00", b"\x00" * 40, b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', bytes(g.integers(0, 256, 30))]
    return raw[:at] + what[int(g.integers(len(what)))] + raw[at:]


def splice(g: np.random.Generator, raw: bytes) -> bytes:
    a, b, c = sorted(int(x) for x in g.integers(0, len(raw) + 1, 3))
    return [raw[:a] + raw[b:], raw[:b] + raw[a:], raw[:a] + raw[b:c] + raw[a:b] + raw[c:]][int(g.integers(3))]


def blank(g: np.random.Generator, raw: bytes) -> bytes:
    a, b = sorted(int(x) for x in g.integers(0, len(raw) + 1, 2))
    b = min(b, a + 64)
    return raw[:a] + bytes([int(g.choice([0, 255]))]) * (b - a) + raw[b:]


def lines(g: np.random.Generator, raw: bytes) -> bytes:
    rows = raw.split(b"\n")
    at, to = (int(x) for x in g.integers(0, len(rows), 2))
    how = int(g.integers(6))
    if how == 0:
        del rows[at]
    elif how == 1:
        rows.insert(to, rows[at])
    elif how == 2:
        rows[at], rows[to] = rows[to], rows[at]
    elif how == 3:
        rows = rows[:1] + rows[at:]
    elif how == 4:
        rows = [b"", b"  ", *rows, b"", b"# end"]
    else:
        return b"\r\n".join(rows) if g.random() < 0.5 else b"\r".join(rows)
    return b"\n".join(rows)


def cells(g: np.random.Generator, raw: bytes) -> bytes:
    """Change cells or columns of a table of text."""
    text = raw.decode("utf-8", "replace")
    separator = max(",;\t", key=text.split("\n")[0].count)
    table = [line.split(separator) for line in text.splitlines() if line] or [[""]]
    how, row = int(g.integers(7)), int(g.integers(len(table)))
    column, other = (int(x) for x in g.integers(0, max(len(table[0]), 1), 2))
    if how <= 2:
        for _ in range(int(g.integers(1, 4))):
            row, place = int(g.integers(len(table))), int(g.integers(len(table[row])))
            if place < len(table[row]):
                table[row][place] = CELLS[int(g.integers(len(CELLS)))]
    elif how == 3:  # a whole column
        value = CELLS[int(g.integers(len(CELLS)))]
        table = [table[0], *([value if i == column else cell for i, cell in enumerate(line)] for line in table[1:])]
    elif how == 4:  # swapped columns, with or without their names
        begin = int(g.integers(2))
        for line in table[begin:]:
            if max(column, other) < len(line):
                line[column], line[other] = line[other], line[column]
    elif how == 5:
        table = [[cell for i, cell in enumerate(line) if i != column] for line in table]
    else:
        table = [[*line, line[min(column, len(line) - 1)]] for line in table]
        if g.random() < 0.5:
            table[0][-1] = ["fold", "label", "prediction_x", "extra", "", ".pred_a", "event", "threshold"][row % 8]
    return "\n".join(separator.join(line) for line in table).encode("utf-8", "surrogatepass")


def recode(g: np.random.Generator, raw: bytes) -> bytes:
    text = raw.decode("utf-8", "replace").replace("a", "ä")
    return text.encode(
        ["latin-1", "utf-16", "utf-16-le", "utf-32", "cp037", "utf-7", "shift_jis"][int(g.integers(7))], "replace"
    )


ANY: list[Harm] = [flip, cut, insert, splice, blank]
ON_TEXT: list[Harm] = [*ANY, lines, lines, cells, cells, cells, cells, recode]


@pytest.mark.parametrize("name", TEXT)
def test_text(originals: dict[str, Path], name: str, tmp_path: Path) -> None:
    raw, options = originals[name].read_bytes(), settings_of(name)
    for case in range(2 * CASES):
        g = np.random.default_rng([case, len(raw)])
        broken = raw
        for _ in range(int(g.choice([1, 1, 2, 3]))):
            harm = ON_TEXT[int(g.integers(len(ON_TEXT)))]
            broken = harm(g, broken) or b"x"
        path = tmp_path / name
        path.write_bytes(broken)
        read(path, **(options if case % 4 else {"positive": g.choice(["1", "yes", "a"]).item(), **options}))


@pytest.mark.parametrize("name", BINARY)
def test_binary(originals: dict[str, Path], name: str, tmp_path: Path) -> None:
    if name == "cube.nc" and OLD_HDF5:
        pytest.skip(CRASH)
    raw, options = originals[name].read_bytes(), settings_of(name)
    for case in range(3 * CASES):
        g = np.random.default_rng([case, len(raw)])
        path = tmp_path / name
        path.write_bytes(ANY[int(g.integers(len(ANY)))](g, raw))
        read(path, **options)


@pytest.mark.skipif(OLD_HDF5, reason=CRASH)
@pytest.mark.parametrize("chunks", [None, {}])
def test_a_file_that_was_put_right_is_read_afresh(originals: dict[str, Path], chunks: Any, tmp_path: Path) -> None:
    """What failed once is closed, though its error is kept: the HDF5 library would go on with the damaged file."""
    whole, path = originals["cube.nc"].read_bytes(), tmp_path / "cube.nc"
    cube, errors = cs.read_cube(originals["cube.nc"]), []
    for place in range(0, len(whole), 487):
        path.write_bytes(whole[:place] + bytes(64) + whole[place + 64 :])
        try:
            cs.read_cube(path, chunks=chunks).compute()
        except (cs.InputError, OSError) as error:  # OSError: damaged values of a lazy cube
            errors.append(error)
        path.write_bytes(whole)
        assert cs.read_cube(path).identical(cube), place
    assert len(errors) > 10


@pytest.mark.parametrize("damage", ["bytes", "metadata", "files"])
def test_store(originals: dict[str, Path], damage: str, tmp_path: Path) -> None:
    for case in range(2 * CASES):
        g = np.random.default_rng([case, 3])
        path = tmp_path / f"{case}.cube"
        shutil.copytree(originals["cube.cube"], path)
        files = sorted(file for file in path.rglob("*") if file.is_file())
        if damage == "metadata":
            files = [file for file in files if file.name == "manifest.json"]
        for _ in range(int(g.integers(1, 4))):
            file = files[int(g.integers(len(files)))]
            raw = file.read_bytes() if file.is_file() else b""
            if damage == "bytes" and raw:
                file.write_bytes(ANY[int(g.integers(len(ANY)))](g, raw))
            elif damage == "metadata" and raw:
                file.write_text(_changed(g, raw.decode("utf-8", "replace")))
            elif damage == "files" and raw:
                file.unlink()
                if g.random() < 0.3:
                    file.mkdir()
                elif g.random() < 0.5:
                    other = files[int(g.integers(len(files)))]
                    file.write_bytes(other.read_bytes() if other.is_file() else b"")
        read(path)
        shutil.rmtree(path)


def _changed(g: np.random.Generator, text: str) -> str:
    """Change one value of a JSON file, or one number or word of its text."""
    try:
        meta = json.loads(text)
    except ValueError:
        return text[: len(text) // 2]
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(meta)
    if not places:
        return "[]"
    node, key = places[int(g.integers(len(places)))]
    values = [None, -1, 0, 10**12, 1.5, "", "|O", "<f8", "<U99999999", [], {}, [10**9, 10**9], "NaN", True, "\x00"]
    node[key] = values[int(g.integers(len(values)))]
    return json.dumps(meta)


def test_originals_are_read(originals: dict[str, Path]) -> None:
    assert {name for name, path in originals.items() if read(path, **settings_of(name))} == REFUSED


SUFFIXES = (".csv", ".tsv", ".gz", ".zip", ".parquet", ".feather", ".nc", ".h5", ".cube", ".npz", ".npy", ".arff", ".x")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_wrong_extensions(originals: dict[str, Path], suffix: str, tmp_path: Path) -> None:
    kinds = ["long.csv", "openml_regression.arff", "arrays.npz", "sklearn_proba.npy"]
    for name in [*kinds, *(f"cube{kind}" for kind in WRITTEN)]:
        path = tmp_path / f"{name}{suffix}"
        (shutil.copytree if originals[name].is_dir() else shutil.copy)(originals[name], path)
        read(path)
        read([path])


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty.cube").mkdir()
    (tmp_path / "dir.csv").mkdir()
    (tmp_path / "none.csv").touch()
    (tmp_path / "round.csv").symlink_to(tmp_path / "round.csv")
    for name in ("empty.cube", "dir.csv", "none.csv", "round.csv", "missing.csv", "a\x00b.csv", "x" * 300, "", "."):
        for path in (tmp_path / name, [tmp_path / name], {"a": [tmp_path / name, tmp_path / name]}):
            assert read(path) is not None, name
    for suffix in SUFFIXES:
        (tmp_path / f"none{suffix}").write_bytes(b"")
        assert "empty" in (read(tmp_path / f"none{suffix}") or "")


# --- bombs and code -----------------------------------------------------------------------------------------------
def test_text_bombs(tmp_path: Path) -> None:
    """Each file is small and unpacks to 4 MB; reading stops at the limit of 256 kB."""
    rows = b"sample,configuration,prediction,label\n" + b"1,a,0.5,1\n" * (2**22 // 10)
    packed = {
        "b.csv.gz": gzip.compress(rows, 1),
        "b.csv.bz2": bz2.compress(rows, 1),
        "b.csv.xz": lzma.compress(rows, preset=0),
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("b.csv", rows)
    packed["b.csv.zip"] = archive.getvalue()
    for name, raw in packed.items():
        (tmp_path / name).write_bytes(raw)
    read(tmp_path / "b.csv.gz", max_bytes=10)  # imports
    tracemalloc.start()
    for name in packed:
        assert "more than 262,144 bytes" in (read(tmp_path / name, max_bytes=2**18) or "")
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()


def test_column_bombs(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    def table(rows: int, text: str) -> Any:
        columns = {"sample": pa.repeat(1, rows), "prediction": pa.repeat(0.5, rows), "label": pa.repeat(text, rows)}
        return pa.table(columns)

    parquet.write_table(table(2**20, "a"), tmp_path / "b.parquet")
    assert (tmp_path / "b.parquet").stat().st_size < 20_000
    assert "more than max_bytes" in (read(tmp_path / "b.parquet") or "")
    small = table(2**15, "a" * 1000)
    for packing in ("lz4", "zstd"):
        feather.write_feather(small, tmp_path / "b.feather", compression=packing)
        assert (tmp_path / "b.feather").stat().st_size < 400_000
        assert "decompresses to 33," in (read(tmp_path / "b.feather") or "")
    for kind in (pa.list_(pa.int64()), pa.binary(), pa.struct([("a", pa.int8())])):
        odd = pa.table({"sample": [1], "prediction": [0.5], "label": pa.nulls(1, kind)})
        parquet.write_table(odd, tmp_path / "odd.parquet")
        feather.write_feather(odd, tmp_path / "odd.feather")
        for suffix in (".parquet", ".feather"):
            assert "column 'label' holds" in (read(tmp_path / f"odd{suffix}") or "")


def test_array_bombs(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "b.npz", label=np.zeros(2), prediction=np.zeros(2**22))
    assert "decompress to" in (read(tmp_path / "b.npz") or "")
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
    for count in (10**9, 10**15, 10**30):
        (tmp_path / "b.npy").write_bytes((head % count).ljust(127) + b"\n")
        assert read(tmp_path / "b.npy", labels=[0, 1]) is not None


def test_store_bombs(tmp_path: Path) -> None:
    import h5netcdf

    with h5netcdf.File(tmp_path / "b.nc", "w") as file:
        file.dimensions = {"sample": 10**6, "configuration": 10**6}
        file.create_variable("prediction", ("sample", "configuration"), float, chunks=(1000, 1000))
    assert "say that they hold 8,000,0" in (read(tmp_path / "b.nc") or "")


def test_text_bombs_of_netcdf(tmp_path: Path) -> None:
    """Files of some kB declare texts that would take gigabytes, by their width or by showing one text many times."""
    import h5py

    path, texts = tmp_path / "b.nc", np.array(["a"] * 299 + ["b" * 10**6], dtype=object)
    with h5py.File(path, "w") as file:
        file["label"] = texts
    assert "bytes say that they hold 1,200," in (read(path) or "")
    with h5py.File(path, "w") as file:
        file.create_dataset("label", 300, "S3000000", chunks=(1,))
    assert path.stat().st_size < 10_000
    assert "bytes say that they hold 3,600," in (read(path) or "")


@pytest.mark.parametrize("chunks", [None, (2,)])
def test_netcdf_texts_that_say_too_much_are_not_believed(chunks: tuple[int] | None, tmp_path: Path) -> None:
    """The HDF5 library would make room for 2 GB before it looks, and never return from a collection without end."""
    import h5py

    path = tmp_path / "b.nc"
    with h5py.File(path, "w") as file:
        text = file.create_dataset("label", data=["abc", "de"], dtype=h5py.string_dtype(), chunks=chunks)
        place = text.id.get_chunk_info(0).byte_offset if chunks else None
    with h5py.File(path) as file:
        place = place or file["label"].id.get_offset()
    raw = path.read_bytes()
    path.write_bytes(raw[:place] + (2 * 10**9).to_bytes(4, "little") + raw[place + 4 :])
    assert "bytes say that they hold 16,000,000," in (read(path) or "")
    heap = raw.index(b"GCOL")
    path.write_bytes(raw[: heap + 24] + (2**64 - 16).to_bytes(8, "little") + raw[heap + 32 :])
    assert "its texts do not follow each other" in (read(path) or "")
    with h5py.File(path, "w") as file:
        file.create_dataset("label", data=["abc", "de"], dtype=h5py.string_dtype(), compression="gzip")
    assert "the text 'label' is compressed" in (read(path) or "")


@pytest.mark.parametrize("how", ["external", "virtual", "soft link", "external link", "group"])
def test_netcdf_that_leads_elsewhere(how: str, originals: dict[str, Path], tmp_path: Path) -> None:
    """What is in other files is never read, whichever way the file leads there."""
    import h5py

    path, secret = tmp_path / "cube.nc", tmp_path / "secret"
    shutil.copy(originals["cube.nc"], path)
    secret.write_bytes(np.arange(100.0).tobytes())
    with h5py.File(path, "a") as file:
        if how == "external":
            file.create_dataset("x", (6,), "f8", external=[(str(secret), 0, 48)])
        elif how == "virtual":
            layout = h5py.VirtualLayout((6,), "f8")
            layout[:] = h5py.VirtualSource(str(originals["cube.nc"]), "weight", (6,))[:]
            file.create_virtual_dataset("x", layout)
        elif how == "group":
            file.create_group("x")
        else:
            file["x"] = h5py.SoftLink("/weight") if how == "soft link" else h5py.ExternalLink("secret", "/weight")
    for attempt in (read, lambda path: read(path, kind="score")):
        assert "cube.nc: 'x' is a link, a group or kept in other files" in (attempt(path) or "")
    with pytest.raises(cs.InputError, match="kept in other files"):
        cs.read_cube(path, chunks={})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    os.mkfifo(tmp_path / "p.nc")
    for name in ("p.csv", "p.nc"):
        for path in (tmp_path / name, [tmp_path / name]):
            assert f"{name}: this is a pipe, not a file; save what it holds to a file first" in (read(path) or "")
    assert "this is a device, not a file" in (read("/dev/zero") or "")


def test_no_address_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def fetch(*_: Any, **__: Any) -> None:
        raise AssertionError("an address was fetched")

    monkeypatch.setattr(socket, "create_connection", fetch)
    monkeypatch.setattr(socket.socket, "connect", fetch)
    for suffix in SUFFIXES:
        address = f"http://localhost:9/x{suffix}"
        assert "no such file" in (read(address) or "")
        assert "no such file" in (read([address]) or "")
        assert "no such file" in (read({"p": np.array([0.1, 0.2])}, labels=address) or "")


class Trap:
    """Leaves a mark when it is unpickled."""

    mark: Path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    Trap.mark = tmp_path / "mark"
    raw = pickle.dumps(Trap(), protocol=4)
    np.savez(tmp_path / "a.npz", label=[0, 1], x=np.array([Trap(), None], dtype=object))
    np.save(tmp_path / "a.npy", np.array([Trap(), None], dtype=object))
    for name in ("a.npz", "a.npy", *(f"b{suffix}" for suffix in SUFFIXES)):
        if name.startswith("b"):
            (tmp_path / name).write_bytes(raw)
        assert read(tmp_path / name, labels=[0, 1]) is not None
    assert not Trap.mark.exists()


def test_texts_longer_than_the_file(originals: dict[str, Path], tmp_path: Path) -> None:
    """The HDF5 library would make room for texts of 4 GB."""
    import h5py

    raw, path = bytearray(originals["cube.nc"].read_bytes()), tmp_path / "cube.nc"
    with h5py.File(originals["cube.nc"]) as file:
        offset = file["configuration"].id.get_offset()
    raw[offset : offset + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(raw)
    assert "bytes say that they hold" in (read(path) or "")
