"""Tables in our own layout, mapped columns, bad files, and the load report."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from cvstats._check import InputError
from cvstats._results import cube_hash
from cvstats.cube.make import as_cube
from cvstats.formats import _axis, _tables, _text
from cvstats.formats._gate import Budget
from cvstats.protocols.separate import separate_cv
from cvstats.read import example_cube, load_report, read_predictions, write_cube

FILES = Path(__file__).parents[1] / "files"
LONG = """sample,configuration,repeat,fold,prediction,label
s1,b,1,1,0.9,1
s2,b,1,2,0.25,0
s1,a,1,1,0.5,1
s2,a,1,2,0.125,0
s1,b,2,2,0.75,1
s2,b,2,1,0.3,0
s1,a,2,2,0.625,1
s2,a,2,1,0.2,0
"""


def save(tmp_path: Path, text: str | bytes, name: str = "p.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -- what is read


def test_long_table_keeps_first_seen_order(tmp_path):
    cube = read_predictions(save(tmp_path, LONG))
    assert dict(cube.sizes) == {"sample": 2, "configuration": 2, "repeat": 2}
    assert cube["configuration"].values.tolist() == ["b", "a"]
    assert cube.sel(sample="s1", configuration="a", repeat=2).item() == 0.625
    assert cube["fold"].sel(sample="s1").values.tolist() == [1, 2]
    assert cube["kind"].item() == "probability"


def test_load_report_says_what_was_read(tmp_path):
    report = load_report(read_predictions(save(tmp_path, LONG + "s3,b,1,1,,1\n")))
    assert report["layout"] == "long"
    assert report["recognised"] == "by its column names"
    assert report["source"] == "p.csv"
    sizes = {key: report[key] for key in ("rows", "samples", "configurations", "repeats", "folds", "missing_cells")}
    assert sizes == {"rows": 9, "samples": 3, "configurations": 2, "repeats": 2, "folds": 2, "missing_cells": 4}
    assert report["duplicate_rows"] == report["truth_conflicts"] == report["zero_filled_folds"] == 0
    assert report["averaged_repeats"] is False
    with pytest.raises(InputError, match=r"has no load report"):
        load_report(xr.DataArray(0))


def test_extra_columns_describe_configurations_or_samples(tmp_path):
    frame = pd.read_csv(io.StringIO(LONG))
    frame["complexity"] = frame["configuration"].map({"a": 1, "b": 2})
    frame["age"] = frame["sample"].map({"s1": 50.5, "s2": 60.5})
    frame["note"] = list("abcdefgh")
    cube = read_predictions(frame)
    assert cube["complexity"].dims == ("configuration",)
    assert cube["complexity"].values.tolist() == [2, 1]
    assert cube["age"].dims == ("sample",)
    assert load_report(cube)["ignored_columns"] == ["note"]


def test_class_columns_and_predicted_labels(tmp_path):
    rows = "1,a,.2,.3,.5,z\n2,a,.6,.3,.1,x\n3,a,.1,.8,.1,y\n"
    text = "sample,configuration,prediction_x,prediction_y,prediction_z,label\n" + rows
    cube = read_predictions(save(tmp_path, text))
    assert cube["label_class"].values.tolist() == ["x", "y", "z"]
    text = "sample,configuration,prediction,label\n1,a,x,x\n2,a,y,x\n3,a,,z\n"
    cube = read_predictions(save(tmp_path, text))
    assert cube["kind"].item() == "label"
    assert np.isnan(cube.values[2, 0])


def test_class_columns_match_integer_labels(tmp_path):
    cube = read_predictions(save(tmp_path, "sample,prediction_0,prediction_1,label\n1,.2,.8,1\n2,.6,.4,0\n"))
    assert cube.values[:, 0].tolist() == [0.8, 0.4]
    assert cube["positive"].item() == 1
    assert cube["configuration"].values.tolist() == ["p"]


def test_positive_given_as_text_finds_the_integer(tmp_path):
    cube = read_predictions(save(tmp_path, "sample,configuration,prediction,label\n1,a,.2,2\n2,a,.6,3\n"), positive="2")
    assert cube["positive"].item() == 2


def test_wide_table(tmp_path):
    cube = read_predictions(save(tmp_path, "sample,label,fold,svm,forest\n1,1,0,.9,.8\n2,0,1,.1,.2\n"))
    assert cube["configuration"].values.tolist() == ["svm", "forest"]
    assert cube.values.tolist() == [[0.9, 0.8], [0.1, 0.2]]
    assert "2 columns were taken as configurations" in load_report(cube)["notes"][0]
    assert load_report(cube)["rows"] == 2
    with pytest.raises(InputError, match=r"some configuration columns hold numbers and others text: 'site'"):
        read_predictions(pd.DataFrame({"sample": [1, 2], "label": [0, 1], "svm": [0.1, 0.2], "site": ["a", "b"]}))
    with pytest.raises(InputError, match=r"no configuration columns"):
        read_predictions(pd.DataFrame({"sample": [1, 2], "label": [0, 1]}))


def test_survival_weights_and_groups(tmp_path):
    text = "sample,configuration,prediction,label,event,group,weight\n1,a,2.5,10.5,1,g1,1\n2,a,1.5,20,0,g2,2.5\n"
    cube = read_predictions(save(tmp_path, text), kind="score")
    assert cube["event"].values.tolist() == [1, 0]
    assert cube["group"].values.tolist() == ["g1", "g2"]
    assert cube["weight"].values.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    "suffix", [".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".tsv", ".parquet", ".feather"]
)
def test_every_table_format_gives_the_same_cube(tmp_path, suffix):
    cube = read_predictions(save(tmp_path, LONG))
    path = tmp_path / f"copy{suffix}"
    write_cube(cube, path)
    xr.testing.assert_equal(read_predictions(path), cube)


def test_separators_and_row_names(tmp_path):
    cube = read_predictions(save(tmp_path, LONG))
    german = LONG.replace(",", ";").replace(".", ",")
    xr.testing.assert_equal(read_predictions(save(tmp_path, german)), cube)
    lines = LONG.splitlines()
    r = "\n".join([lines[0], *(f"{i},{line}" for i, line in enumerate(lines[1:]))]) + "\n"
    xr.testing.assert_equal(read_predictions(save(tmp_path, r)), cube)
    xr.testing.assert_equal(
        read_predictions(save(tmp_path, b"\xef\xbb\xbf" + LONG.replace("\n", "\r\n").encode())), cube
    )


def test_ids_are_kept_as_written(tmp_path):
    text = "sample,configuration,prediction,label\n007,1.10,.5,01\n7,1.10,.25,02\n007,1.1,.5,01\n7,1.1,.25,02\n"
    cube = read_predictions(save(tmp_path, text), positive="02")
    assert cube["sample"].values.tolist() == ["007", "7"]
    assert cube["configuration"].values.tolist() == ["1.10", "1.1"]
    assert cube["label"].values.tolist() == ["01", "02"]


@pytest.mark.parametrize("name", ["None", "null", "n/a", "-"])
def test_class_names_that_look_missing(tmp_path, name):
    text = f"sample,configuration,prediction,label\n1,a,.5,{name}\n2,a,.25,x\n"
    cube = read_predictions(save(tmp_path, text), positive="x")
    assert cube["label"].values.tolist() == [name, "x"]


def test_label_types(tmp_path):
    head = "sample,configuration,prediction,label\n"
    assert read_predictions(save(tmp_path, head + "1,a,.5,True\n2,a,.25,False\n"))["label"].dtype == bool
    assert read_predictions(save(tmp_path, head + "1,a,.5,1\n2,a,.25,0\n"))["label"].dtype.kind == "i"
    numbers = read_predictions(save(tmp_path, head + "1,a,.5,1.0\n2,a,2.25,3.0\n3,a,1,2.0\n"))
    assert numbers["label"].dtype.kind == "f"
    assert numbers["sample"].dtype.kind == "i"


def test_labels_given_apart(tmp_path):
    path = save(tmp_path, "sample,configuration,prediction\n1,a,.5\n2,a,.25\n")
    with pytest.raises(InputError, match=r"the truth is not in the file.*labels="):
        read_predictions(path)
    cube = read_predictions(path, labels=pd.Series([0, 1], index=[2, 1]))
    assert cube["label"].values.tolist() == [1, 0]
    assert read_predictions(path, labels=[1, 0])["label"].values.tolist() == [1, 0]
    assert read_predictions(path, labels={2: 0, 1: 1})["label"].values.tolist() == [1, 0]


def test_several_files_are_configurations(tmp_path):
    a = save(tmp_path, "target,prediction_1\n1,.5\n0,.25\n", "forest.csv")
    b = save(tmp_path, "target,prediction_1\n1,.75\n0,.5\n", "svm.csv")
    cube = read_predictions([a, b])
    assert cube["configuration"].values.tolist() == ["forest", "svm"]
    assert read_predictions({"A": a, "B": b})["configuration"].values.tolist() == ["A", "B"]
    c = save(tmp_path, "target,prediction_1\n1,.75\n1,.5\n", "odd.csv")
    with pytest.raises(InputError, match=r"conflicting truth: .*row 2 of odd.csv: sample '1' has both '0' and '1'"):
        read_predictions([a, c])
    with pytest.raises(InputError, match=r"several files are called 'forest'"):
        read_predictions([a, a])
    d = save(tmp_path, "target,prediction_x,prediction_y\nx,.75,.25\ny,.5,.5\n", "other.csv")
    with pytest.raises(InputError, match=r"the prediction columns are 'x', 'y' but other files have '1'"):
        read_predictions([a, d])


# -- columns mapped by hand


def test_columns_by_hand():
    frame = pd.DataFrame(
        {"pid": [1, 2, 1, 2], "model": list("aabb"), "p": [0.9, 0.1, 0.8, 0.2], "truth_": [1, 0, 1, 0]}
    )
    names = {"sample": "pid", "configuration": "model", "prediction": "p", "label": "truth_"}
    cube = read_predictions(frame, columns=names)
    assert cube.sel(sample=2, configuration="b").item() == 0.2
    two = frame.assign(q=1 - frame["p"])
    cube = read_predictions(two, columns={**names, "prediction": {0: "q", 1: "p"}})
    assert cube.sel(sample=1, configuration="a").item() == 0.9
    tuned = frame.assign(C=[1, 1, 2, 2], gamma=[0.5, 0.5, 0.1, 0.1])
    cube = read_predictions(tuned, columns={**names, "configuration": ["C", "gamma"]})
    assert cube["configuration"].values.tolist() == ["C=1, gamma=0.5", "C=2, gamma=0.1"]
    wide = pd.DataFrame({"pid": [1, 2], "y": [1, 0], "m1": [0.9, 0.1], "m2": [0.8, 0.2], "site": ["u", "v"]})
    cube = read_predictions(wide, columns={"sample": "pid", "label": "y", "prediction": ["m1", "m2"]})
    assert cube["configuration"].values.tolist() == ["m1", "m2"]
    alone = pd.DataFrame({"y": [1, 0], "p": [0.9, 0.1]})
    assert read_predictions(alone, columns={"label": "y", "prediction": "p"})["sample"].values.tolist() == [0, 1]


def test_columns_by_hand_mistakes():
    frame = pd.DataFrame({"pid": [1, 2], "model": list("ab"), "p": [0.9, 0.1], "y": [1, 0]})
    with pytest.raises(InputError, match=r"`columns`\['sample'\] names 'id', which is not a column; found 'pid'"):
        read_predictions(frame, columns={"sample": "id"})
    with pytest.raises(InputError, match=r"`columns` must be one of 'sample'.*did you mean 'prediction'"):
        read_predictions(frame, columns={"predictions": "p"})
    with pytest.raises(InputError, match=r"must say which column names the samples"):
        read_predictions(frame, columns={"prediction": "p", "label": "y", "configuration": "model"})
    with pytest.raises(
        InputError, match=r"\['label'\] must name one column; only sample, configuration, .* may name several"
    ):
        read_predictions(frame, columns={"prediction": "p", "label": ["y", "p"], "sample": "pid"})
    with pytest.raises(InputError, match=r"leave 'configuration' out"):
        read_predictions(frame, columns={"prediction": ["p"], "label": "y", "sample": "pid", "configuration": "model"})


# -- conflicts and bad files: one clear error each


def bad(tmp_path, text, match, name="p.csv", **options):
    path = save(tmp_path, text, name)
    with pytest.raises(InputError, match=match) as caught:
        read_predictions(path, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(name)


def test_conflicts_name_the_rows(tmp_path):
    bad(
        tmp_path,
        LONG + "s2,a,2,1,0.4,0\n",
        r"duplicate rows: 1 rows .* first sample 's2', configuration 'a', repeat '2'; rows 8 and 9",
    )
    plain = "sample,configuration,prediction,label\n1,a,.5,1\n2,a,.5,0\n1,a,.5,1\n"
    bad(tmp_path, plain, r"rows 1 and 3\. Remove them\. If they are repeats")
    models = "sample,tool,fold,prediction,label\n1,svm,0,.5,1\n2,svm,1,.4,0\n1,knn,0,.6,1\n2,knn,1,.3,0\n"
    bad(tmp_path, models, r"duplicate .* If column 'tool' names .*, say columns=\{'configuration': 'tool'\}\.")
    assert read_predictions(save(tmp_path, models, "p.csv"), columns={"configuration": "tool"}).shape == (2, 2)
    assert read_predictions(save(tmp_path, models.replace("tool", "model"), "p.csv")).shape == (2, 2)
    bad(
        tmp_path,
        LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,1,0.2,1"),
        r"conflicting truth: .*row 8: sample 's2' has both '0' and '1'",
    )
    bad(
        tmp_path,
        LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,7,0.2,0"),
        r"conflicting fold: .*row 8: sample 's2' has both '1' and '7'",
    )
    bad(
        tmp_path,
        LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,1,0.2,NA"),
        r"column 'label' is missing in row 8 \(a class called",
    )
    bad(tmp_path, LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,,0.2,0"), r"column 'fold' is missing in row 8; fill it in, or")
    assert read_predictions(save(tmp_path, LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,,,0"))).isnull().sum() == 1
    bad(tmp_path, LONG.replace("s2,a,2,1,0.2,0", ",a,2,1,0.2,0"), r"column 'sample' is missing in row 8")
    bad(
        tmp_path,
        LONG.replace("s2,a,2,1,0.2,0", "s2,a,2,1,oops,0"),
        r"column 'prediction' holds text among numbers: 'oops' in row 8",
    )
    bad(
        tmp_path,
        LONG.replace("prediction", "prediction_0")
        .replace("label", "prediction,label")
        .replace(",0\n", ",.5,0\n")
        .replace(",1\n", ",.5,1\n"),
        "has both 'prediction' and 'prediction_0'",
    )


def test_broken_files(tmp_path):
    bad(tmp_path, "", "the file is empty")
    bad(tmp_path, "\n\n", "the file is empty")
    bad(tmp_path, LONG.splitlines()[0] + "\n", "the table is empty: it has columns 'sample'")
    bad(tmp_path, LONG[:-3], r"line 9 has 5 cells but the header has 6. The file seems to be cut off")
    bad(tmp_path, LONG.replace("s1,a,1,1,0.5,1", "s1,a,1,1"), "line 4 has 4 cells but the header has 6")
    bad(tmp_path, LONG.replace("s1,a,1,1,0.5,1", "s1,a,1,1,0.5,1,9"), "malformed: Expected 6 fields in line 4, saw 7")
    bad(tmp_path, bytes(range(256)) * 10, "binary file")
    bad(tmp_path, LONG.encode("utf-16"), "UTF-16; save it as UTF-8")
    bad(tmp_path, LONG.replace("s1", "sé").encode("latin-1"), r"not UTF-8 \(byte 0xe9\).*encoding='latin-1'")
    assert (
        read_predictions(save(tmp_path, LONG.replace("s1", "sé").encode("latin-1")), encoding="latin-1")["sample"][0]
        == "sé"
    )
    with pytest.raises(InputError, match=r"not known to Python"):
        read_predictions(save(tmp_path, LONG), encoding="utf-99")
    bad(tmp_path, LONG.replace("fold", "repeat"), "column names must be unique; found more than once: 'repeat'")
    bad(tmp_path, "just some words\nand more\n", "only one column, 'just some words'")
    bad(tmp_path, "1,2,3\n4,5,6\n", r"the first line holds numbers")
    bad(tmp_path, "@relation x\n@attribute a numeric\n", "no @data section", name="p.arff")
    bad(tmp_path, "@relation x\n@attribute 'a numeric\n@data\n", "cannot read the ARFF line", name="p.arff")
    bad(
        tmp_path,
        "@relation x\n@attribute a numeric\n@attribute b numeric\n@data\n{0 1}\n",
        "sparse ARFF",
        name="p.arff",
    )
    with pytest.raises(InputError, match=r"no such file"):
        read_predictions(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match=r"must be a file name, a data frame"):
        read_predictions(3)
    with pytest.raises(InputError, match=r"names no files"):
        read_predictions([])


def test_broken_compressed_files(tmp_path):
    for pack, name in ((gzip.compress, "p.csv.gz"), (bz2.compress, "p.csv.bz2"), (lzma.compress, "p.csv.xz")):
        bad(tmp_path, pack(LONG.encode())[:-12], "corrupt or cut off", name=name)
        bad(tmp_path, pack(LONG.encode() * 1000), "decompresses to more than 5,000 bytes", name=name, max_bytes=5000)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.csv", LONG)
        file.writestr("b.csv", LONG)
    bad(tmp_path, archive.getvalue(), "the zip archive holds 2 files", name="p.zip")
    bad(tmp_path, archive.getvalue()[:60], "corrupt or cut off", name="p.zip")
    bad(tmp_path, LONG, "has more than 100 bytes", max_bytes=100)


def test_broken_parquet_and_feather(tmp_path):
    cube = read_predictions(save(tmp_path, LONG))
    for suffix in (".parquet", ".feather"):
        path = tmp_path / f"x{suffix}"
        write_cube(cube, path)
        bad(tmp_path, path.read_bytes()[:-20], "corrupt or cut off", name=f"cut{suffix}")
        with pytest.raises(InputError, match=r"more than max_bytes=10"):
            read_predictions(path, max_bytes=10)
    pd.DataFrame({"sample": [], "label": []}).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match=r"the table is empty"):
        read_predictions(tmp_path / "none.parquet")


def test_files_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "p.npz", y=np.array([0, 1]), x=np.array([{"a": 1}, None], dtype=object))
    with pytest.raises(InputError, match=r"never unpickled"):
        read_predictions(tmp_path / "p.npz")
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match=r"never unpickled"):
        read_predictions(tmp_path / "p.npy")
    pd.DataFrame({"a": [1]}).to_pickle(tmp_path / "p.pkl")
    with pytest.raises(InputError, match=r"pickle"):
        read_predictions(tmp_path / "p.pkl")
    (tmp_path / "cut.npz").write_bytes((FILES / "sklearn_binary.npz").read_bytes()[:200])
    with pytest.raises(InputError, match=r"corrupt or cut off"):
        read_predictions(tmp_path / "cut.npz")
    with pytest.raises(InputError, match=r"decompress to .* more than max_bytes=100"):
        read_predictions(FILES / "sklearn_binary.npz", max_bytes=100)


def test_frames_with_mixed_types():
    frame = pd.read_csv(io.StringIO(LONG))
    frame["label"] = pd.Series([1, "a"] * 4, dtype=object)
    with pytest.raises(InputError, match=r"column 'label' mixes types 'int', 'str'"):
        read_predictions(frame)
    with pytest.raises(InputError, match=r"MultiIndex"):
        read_predictions(pd.concat({"x": frame}, axis=1))


def test_a_table_that_is_not_a_cube_is_refused():
    n = 8000
    frame = pd.DataFrame(
        {"sample": range(n), "configuration": [f"m{i}" for i in range(n)], "prediction": 0.5, "label": 1}
    )
    with pytest.raises(InputError, match=r"% of the cube would be empty"):
        read_predictions(frame)


def test_zero_filled_folds_are_reported(tmp_path):
    frame = pd.DataFrame({"sample": range(12), "configuration": "a", "fold": [0, 1, 2] * 4, "label": [0, 1] * 6})
    frame["prediction"] = np.where(frame["fold"] == 1, 0.0, 0.6)
    report = load_report(read_predictions(frame))
    assert report["zero_filled_folds"] == 1
    assert "nothing but zeros" in report["notes"][0]


# -- round trips, size


@pytest.mark.slow
@pytest.mark.parametrize("order", [("sample", "configuration", "repeat"), ("configuration", "repeat", "sample")])
def test_long_csv_to_cube_to_long_csv_is_identical(tmp_path, order):
    rng = np.random.default_rng(1)
    cells = pd.MultiIndex.from_product([range(7), ["b", "a"], [2, 1]], names=["sample", "configuration", "repeat"])
    frame = pd.DataFrame({"prediction": rng.random(len(cells))}, index=cells).reset_index()
    frame["fold"] = (frame["sample"] + frame["repeat"]) % 3
    frame["label"] = frame["sample"] % 2
    frame["complexity"] = frame["configuration"].map({"a": 1, "b": 2})
    keys = {
        "configuration": frame["configuration"].map({"b": 0, "a": 1}),
        "repeat": -frame["repeat"],
        "sample": frame["sample"],
    }
    frame = frame.iloc[np.lexsort([keys[name] for name in reversed(order)])]
    frame = frame[["sample", "configuration", "repeat", "fold", "prediction", "label", "complexity"]]
    for kept in (frame, frame.drop(frame.index[[16, 25]])):
        path = tmp_path / "in.csv"
        kept.to_csv(path, index=False)
        write_cube(read_predictions(path), tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()
        write_cube(read_predictions(path), tmp_path / "cube.nc")
        write_cube(read_predictions(tmp_path / "cube.nc"), tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
def test_examples_survive_the_long_table(tmp_path, name):
    cube = example_cube(name).isel(configuration=slice(0, 12))
    write_cube(cube, tmp_path / "x.csv.gz")
    back = read_predictions(tmp_path / "x.csv.gz", positive="malignant" if name == "breast_cancer" else None)
    np.testing.assert_array_equal(back.values, cube.values)
    for coord in ("label", "fold", "complexity", "family", "configuration", "sample", "kind"):
        np.testing.assert_array_equal(back[coord].values, cube[coord].values)
        assert back[coord].dtype.kind == cube[coord].dtype.kind


def test_scores_survive_the_long_table(tmp_path):
    cube = read_predictions(save(tmp_path, LONG), kind="score").assign_coords(threshold=0.25)
    write_cube(cube, tmp_path / "x.csv")
    back = read_predictions(tmp_path / "x.csv")
    assert back["kind"].item() == "score"
    assert back["threshold"].item() == 0.25
    inner = example_cube("breast_cancer_inner")
    with pytest.raises(InputError, match=r"no place for dims 'outer_fold'"):
        write_cube(inner, tmp_path / "x.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_partners_survive_the_long_table(tmp_path, name):
    cube = example_cube("breast_cancer_separate").isel(configuration=slice(0, 40, 10))
    cube = cube.where((cube.label == "benign") | (cube.partner < 3))  # fewer folds of one class than of the other
    write_cube(cube, tmp_path / name)
    back = read_predictions(tmp_path / name, positive="malignant")
    assert cube_hash(back) == cube_hash(cube)
    assert back.dims == ("sample", "configuration", "partner", "repeat")
    xr.testing.assert_equal(separate_cv(back, prior=0.1, rng=1), separate_cv(cube, prior=0.1, rng=1))


def test_a_column_called_partner_may_say_something_else(tmp_path):
    rows = "sample,configuration,prediction,label,partner\n"
    rows += "".join(f"{i},{name},0.{i},{i % 2},{'yes' if i < 2 else ''}\n" for name in "ab" for i in range(4))
    cube = read_predictions(save(tmp_path, rows))
    assert "partner" not in cube.dims
    assert cube["partner"].dims == ("sample",)
    with pytest.raises(InputError, match="column 'partner' is missing in row 2"):
        read_predictions(save(tmp_path, "sample,configuration,partner,prediction,label\n1,a,0,.1,0\n1,a,,.2,0\n"))


@pytest.mark.slow
def test_parquet_is_read_by_row_group(tmp_path, monkeypatch):
    cube = example_cube().isel(configuration=slice(0, 8))
    write_cube(cube, tmp_path / "one.parquet")
    frame = pd.read_parquet(tmp_path / "one.parquet")
    frame.to_parquet(tmp_path / "many.parquet", row_group_size=700, index=False)
    sizes = []
    whole = _tables.read_table(tmp_path / "many.parquet", "utf-8", Budget(10**9))
    sizes = [len(part) for part in whole.parts()]
    assert max(sizes) == 700
    assert len(sizes) > 5
    one = read_predictions(tmp_path / "one.parquet", positive="malignant")
    many = read_predictions(tmp_path / "many.parquet", positive="malignant")
    xr.testing.assert_equal(one, many)
    np.testing.assert_array_equal(many.values, cube.values)
    doubled = pd.concat([frame, frame.iloc[[5]]])
    doubled.to_parquet(tmp_path / "twice.parquet", row_group_size=700, index=False)
    with pytest.raises(InputError, match=r"duplicate rows: .*rows 6 and 4801"):
        read_predictions(tmp_path / "twice.parquet", positive="malignant")


def test_missing_packages_name_the_extra(tmp_path, monkeypatch):
    from cvstats.formats import _gate

    def absent(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    write_cube(read_predictions(save(tmp_path, LONG)), tmp_path / "x.parquet")
    monkeypatch.setattr(_gate, "import_module", absent)
    with pytest.raises(ImportError, match=r'Parquet files need the package \'pyarrow\'.*pip install "cvstats\[io\]"'):
        read_predictions(tmp_path / "x.parquet")
    with pytest.raises(ImportError, match=r"netCDF files need the package 'h5netcdf'"):
        write_cube(example_cube(), tmp_path / "x.nc")
    with pytest.raises(ImportError, match=r"cube stores need the package 'h5netcdf', which is not installed"):
        write_cube(example_cube(), tmp_path / "x.cube")

    def broken(module):
        raise ImportError("cannot import name 'x'\nfrom 'y'")

    monkeypatch.setattr(_gate, "import_module", broken)
    with pytest.raises(ImportError, match=r"'h5netcdf', which is installed but cannot be imported: .* 'x' from 'y'"):
        write_cube(example_cube(), tmp_path / "x.cube")


def test_inputs_are_not_changed():
    frame = pd.read_csv(io.StringIO(LONG))
    before = frame.copy(deep=True)
    read_predictions(frame)
    read_predictions(frame, columns={"sample": "sample", "prediction": "prediction"})
    pd.testing.assert_frame_equal(frame, before)


def test_r_data_files_are_named(tmp_path):
    bad(
        tmp_path,
        gzip.compress(b"X\n\x00\x00\x00\x03rest"),
        r"this is an R data file\. In R type: write\.csv",
        name="p.rds",
    )


def test_a_first_row_longer_than_the_header(tmp_path):
    lines = LONG.splitlines()
    long = "\n".join([lines[0], lines[1] + ",8,9", *lines[2:]]) + "\n"
    bad(tmp_path, long, "line 2 has 8 cells but the header has 6")
    bad(tmp_path, long.replace("s1", '"s1"'), "line 2 has 8 cells but the header has 6")


def test_infinite_ids_stay_text(tmp_path):
    cube = read_predictions(save(tmp_path, "sample,configuration,prediction,label\ninf,a,0.5,1\n2,a,0.25,0\n"))
    assert cube["sample"].values.tolist() == ["inf", "2"]


def test_messages_stay_short(tmp_path):
    header = ",".join(f"{'x' * 500}{i}" for i in range(20))
    with pytest.raises(InputError, match=r"layout is not recognised") as found:
        read_predictions(save(tmp_path, f"{header}\n{','.join('1' * 20)}\n"))
    assert len(str(found.value)) < 2000


NAMES = ["=1+1", "-x", "+a", "@b", "'=quoted", "''", "-1.5", "plain", "'plain"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_no_cell_is_a_formula_to_a_spreadsheet_and_names_come_back(tmp_path, suffix):
    n = len(NAMES)
    labels = ["=yes", "no"] * 4 + ["no"]
    cube = as_cube(np.linspace(0, 1, n * n).reshape(n, n), labels, samples=NAMES, configurations=NAMES, positive="=yes")
    write_cube(cube, tmp_path / f"x{suffix}")
    back = read_predictions(tmp_path / f"x{suffix}", positive="=yes")
    for name in ("sample", "configuration", "label"):
        assert back[name].values.tolist() == cube[name].values.tolist()
    if suffix == ".csv":
        rows = list(csv.reader((tmp_path / "x.csv").read_text().splitlines()))
        starts = {cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@")}
        assert starts == {"-1.5"}
    write_cube(back, tmp_path / f"y{suffix}")
    assert (tmp_path / f"y{suffix}").read_bytes() == (tmp_path / f"x{suffix}").read_bytes()


def test_an_apostrophe_that_tells_names_apart_stays(tmp_path):
    text = "sample,configuration,prediction,label\n'=a,m,0.5,1\n=a,m,0.25,0\n"
    assert read_predictions(save(tmp_path, text))["sample"].values.tolist() == ["'=a", "=a"]


def test_lines_that_end_in_carriage_returns_only(tmp_path):
    old = read_predictions(save(tmp_path, LONG.replace("\n", "\r"), "old.csv"))
    xr.testing.assert_equal(read_predictions(save(tmp_path, LONG)), old)


@pytest.mark.slow
def test_a_header_of_megabytes(tmp_path):
    names = [f"{'x' * 300}{i}" for i in range(2000)]
    rows = "".join(f"{i},{i % 2},{','.join(['0.5'] * 2000)}\n" for i in range(4))
    cube = read_predictions(save(tmp_path, f"sample,label,{','.join(names)}\n{rows}"))
    assert dict(cube.sizes) == {"sample": 4, "configuration": 2000}
    assert cube["configuration"].values.tolist() == names


def test_cells_longer_than_csv_allows(tmp_path):
    long = "y" * 200_000
    bad(tmp_path, LONG.replace("s1", long), "the table is malformed: field larger than field limit")
    bad(tmp_path, LONG.replace("sample", long), "the table is malformed: field larger than field limit")


def test_all_files_share_one_budget(tmp_path):
    files = {name: save(tmp_path, LONG, f"{name}.csv") for name in "abc"}
    size = len(LONG)
    with pytest.raises(InputError, match=r"c.csv: the file has more than 10 bytes"):
        read_predictions(files, max_bytes=2 * size + 10)
    truth = save(tmp_path, "label\n1\n0\n1\n", "truth.csv")
    with pytest.raises(InputError, match=r"a.csv: the file has more than"):
        read_predictions(files["a"], labels=truth, max_bytes=size)


def test_labels_from_a_file(tmp_path):
    table = "sample,configuration,prediction\n001,a,0.5\n1,a,0.25\n2,a,0.75\n"
    truth = save(tmp_path, "id,y\n2,1\n001,0\n1,1\n", "truth.csv")
    cube = read_predictions(save(tmp_path, table), labels=truth)
    assert cube["sample"].values.tolist() == ["001", "1", "2"]
    assert cube["label"].values.tolist() == [0, 1, 1]
    with pytest.raises(InputError, match=r"`labels`: no such file: 'http://localhost:1/x.csv'"):
        read_predictions(save(tmp_path, table), labels="http://localhost:1/x.csv")


CELLS = ["a", "bb", "007", "7", "a long name of 30 letters: x", "a long name of 30 letters: y", "", "NA", "\u00e9",
         "12345678", "123456789", "x" * 16, "x" * 17, " 7", "7 ", "y" * 128, "y" * 129]  # fmt: skip
QUOTED = ["a, b", 'say "x"', "two\nlines", '"', ",\n,"]


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_cells_are_read_as_the_whole_is_by_pandas(seed, monkeypatch):
    g, columns = np.random.default_rng(seed), {}
    rows, quoting = int(g.choice([1, 5, 60, 400])), [None, csv.QUOTE_MINIMAL, csv.QUOTE_ALL][seed % 3]
    monkeypatch.setattr(_axis, "FEW", int(g.choice([0, 100])))
    for kind in g.choice(["again", "runs", "any", "letters", "fractions"], 4):
        some = g.permutation(CELLS if quoting is None else [*CELLS, *QUOTED])[: g.integers(1, len(CELLS))]
        place = {"again": np.arange(rows), "runs": np.arange(rows) // 17}.get(kind, g.integers(0, 99, rows))
        cells = some[place % len(some)].tolist()
        if kind == "letters":
            cells = g.choice([*"ab01"], rows).tolist()
        elif kind == "fractions":
            cells = [str(v) if g.random() < 0.9 else str(g.choice(["NA", "nan", "1e-3"])) for v in g.random(rows)]
        columns[f"c{len(columns)}"] = cells
    end = str(g.choice(["\n", "\r\n"]))
    written = io.StringIO(newline="")
    plain = {"quoting": csv.QUOTE_NONE, "quotechar": None}
    writer = csv.writer(written, lineterminator=end, **plain if quoting is None else {"quoting": quoting})
    writer.writerows([columns, *zip(*columns.values(), strict=True)])
    text = io.BytesIO(written.getvalue().removesuffix(str(g.choice(["", end]))).encode())
    found = []
    for block, tall in ((int(g.choice([64, 300])), 0), (2**20, 0), (2**20, 10**9), (0, 0)):
        monkeypatch.setattr(_text, "BLOCK", block)
        monkeypatch.setattr(_text, "LINES", 1)
        monkeypatch.setattr(_text, "TALL", tall)
        if not block:
            monkeypatch.setattr(_text.Cells, "_by_arrow", lambda self, fractions: None)
        text.seek(0)
        try:
            found.append(_text.delimited(text, "t", "utf-8").frame(()).astype(object).fillna("missing"))
        except InputError as error:  # nothing but missing cells
            found.append(pd.DataFrame([str(error)]))
    for other in found[:-1]:
        pd.testing.assert_frame_equal(other, found[-1])
