"""Nothing is misread without a word: what looks like something else is read right, or refused with one clear error."""

import csv
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from cvstats import InputError, as_cube, bootstrap, cli, kfold, load_report, p_adjust, read_predictions, score
from cvstats.formats._roles import SYNONYMS

FILES = Path(__file__).parents[1] / "files"
RNG = np.random.default_rng(1)
Y = np.arange(40) % 2
P = np.clip(0.3 * Y + 0.7 * RNG.random(40), 0, 1)
PROBA = np.column_stack([1 - P, P])


def save(folder, text, name="mine.csv"):
    path = folder / name
    path.write_text(text)
    return path


# -- class probabilities are not repeats


def test_class_probabilities_of_predict_proba_are_not_repeats():
    cube = as_cube({"a": PROBA, "b": PROBA[::-1]}, Y)
    assert cube.dims == ("sample", "configuration")
    assert cube.sel(configuration="a").values.tolist() == P.tolist()
    assert float(score(cube, "auc").sel(configuration="a")) == float(score(as_cube(P, Y), "auc")[0])
    stacked = as_cube(np.stack([PROBA, PROBA[::-1]], axis=1), Y)
    assert np.array_equal(stacked, cube)
    names = np.where(Y == 1, "well", "sick")
    assert as_cube([PROBA], names, positive="sick")[:, 0].values.tolist() == (1 - P).tolist()
    with pytest.raises(InputError, match="`positive` must say which of the labels 'sick', 'well'"):
        as_cube({"a": PROBA}, names)


def test_class_probabilities_of_three_classes_in_sorted_order():
    y = np.array(["b", "c", "a"])[np.arange(30) % 3]
    p = RNG.dirichlet(np.ones(3), 30)
    p[4] = np.nan
    cube = as_cube({"a": p, "b": p}, y)
    assert cube.dims == ("sample", "configuration", "label_class")
    assert cube["label_class"].values.tolist() == ["a", "b", "c"]
    assert cube.identical(as_cube({"a": p, "b": p}, y, classes=["a", "b", "c"]))


def test_what_the_caller_says_about_class_probabilities_wins():
    assert as_cube({"a": PROBA}, Y, repeats=[1, 2]).dims == ("sample", "configuration", "repeat")
    assert as_cube({"a": PROBA}, Y, classes=[1, 0])[:, 0].values.tolist() == (1 - P).tolist()
    assert as_cube({"a": PROBA}, Y + 0.5, kind="value").sizes["repeat"] == 2
    assert as_cube(PROBA, Y, configurations=["a", "b"]).shape == (40, 2)
    assert as_cube({"a": np.column_stack([P, P[::-1]])}, Y).sizes["repeat"] == 2  # does not add up to one
    assert as_cube({"a": np.column_stack([Y, 1 - Y])}, Y, kind="label").sizes["repeat"] == 2
    assert as_cube({"a": np.where(np.eye(40)[:, :2] > 0, np.nan, PROBA)}, Y, repeats=[0, 1]).sizes["repeat"] == 2
    assert as_cube(pd.DataFrame(PROBA), Y, configurations=["a", "b"]).shape == (40, 2)


def test_columns_that_add_up_to_one_but_are_not_the_classes_are_refused():
    three = np.column_stack([P / 2, P / 2, 1 - P])
    with pytest.raises(InputError, match=r"3 columns for each configuration .* `labels` hold 2 classes\. Name the"):
        as_cube({"a": three}, Y)
    assert as_cube({"a": three}, Y, repeats=[1, 2, 3]).sizes["repeat"] == 3
    assert as_cube({"a": np.full((40, 3), 1 / 3)}, Y).sizes["repeat"] == 3  # one constant, however it is read
    with pytest.raises(InputError, match=r"one column for each of the classes 0, 1, .* say `classes=`; if config"):
        as_cube(PROBA, Y)
    with pytest.raises(InputError, match=r"one column for each of the classes 0, 1, .* say `classes=`; if config"):
        as_cube(pd.DataFrame(PROBA), Y)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (100 * PROBA, "but as percentages"),
        (np.log(PROBA), "but as logarithms"),
        (np.column_stack([1 - Y, Y]), "but as whole numbers"),
        (np.where(np.eye(40)[:, :2] > 0, np.nan, PROBA), "but some are missing"),
    ],
)
def test_class_probabilities_in_other_words_are_not_repeats(values, match):
    with pytest.raises(InputError, match=match):
        as_cube({"a": values}, Y)


def test_class_probabilities_in_tables_are_matched_by_the_names_of_their_columns():
    ids = [f"s{i}" for i in range(40)]
    table = pd.DataFrame(PROBA, columns=[0, 1], index=ids)
    plain = as_cube({"a": PROBA}, Y, samples=ids)
    for given in ({"a": table}, {"a": table[[1, 0]]}, {"a": table[[1, 0]].rename(columns=str)}):
        assert as_cube(given, Y).identical(plain)
    assert as_cube([table[[1, 0]]], Y)[:, 0].values.tolist() == P.tolist()
    assert as_cube(table[[1, 0]], Y, classes=[0, 1])[:, 0].values.tolist() == P.tolist()
    three = pd.DataFrame(RNG.dirichlet(np.ones(3), 40), columns=["a", "b", "c"])
    y = np.array(["a", "b", "c"])[np.arange(40) % 3]
    assert as_cube({"m": three[["c", "a", "b"]]}, y).identical(as_cube({"m": three}, y))
    other = three.set_axis(["p1", "p2", "p3"], axis=1)
    with pytest.raises(InputError, match="but their columns are called 'p1', 'p2', 'p3'"):
        as_cube({"m": other}, y)
    assert np.array_equal(as_cube({"m": other}, y, classes=["a", "b", "c"]), as_cube({"m": three}, y))
    with pytest.raises(InputError, match="must share one order of columns"):
        as_cube({"a": table, "b": table[[1, 0]]}, Y)
    with pytest.raises(InputError, match="must share one index"):
        as_cube({"a": table, "b": table[::-1]}, Y)


def test_class_probabilities_on_dask():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.stack([PROBA, PROBA], axis=1), chunks=(40, 1, 2))
    assert np.array_equal(as_cube(lazy, Y, kind="probability"), np.column_stack([P, P]))


# -- masked values


def test_masked_predictions_are_not_predicted():
    mask = np.arange(40) == 3
    for cube in (
        as_cube(np.ma.array(P, mask=mask), Y),
        as_cube({"a": np.ma.array(P, mask=mask)}, Y),
        as_cube([np.ma.array(P, mask=mask)], Y),
        read_predictions({"a": np.ma.array(P, mask=mask), "y": Y}),
    ):
        assert np.flatnonzero(np.isnan(cube.values)).tolist() == [3]
        assert cube.values[~mask, 0].tolist() == P[~mask].tolist()
    missing = as_cube({"a": pd.array(np.where(mask, None, P), dtype="Float64")}, Y)
    assert np.flatnonzero(np.isnan(missing.values)).tolist() == [3]
    whole = as_cube({"a": np.ma.array(Y, mask=mask)}, Y)
    text = as_cube({"a": np.ma.array(np.where(Y, "b", "a"), mask=mask)}, np.where(Y, "b", "a"), positive="b")
    assert np.flatnonzero(np.isnan(whole.values)).tolist() == np.flatnonzero(np.isnan(text.values)).tolist() == [3]


def test_masked_predictions_on_dask():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.ma.array(P[:, None], mask=(np.arange(40) == 3)[:, None]), chunks=(40, 1), asarray=False)
    for given in (lazy, xr.DataArray(lazy, dims=("sample", "configuration"))):
        assert np.flatnonzero(np.isnan(as_cube(given, Y, kind="probability").values)).tolist() == [3]


@pytest.mark.parametrize("name", ["labels", "weights", "folds", "groups", "event"])
def test_masked_values_of_samples_are_refused(name):
    given = {"labels": Y, name: np.ma.array(Y, mask=np.isin(np.arange(40), [2, 5]))}
    kind = "score" if name == "event" else None
    with pytest.raises(InputError, match=f"`{name}` are masked for samples 's2', 's5'; give every sample its value"):
        as_cube(P, samples=[f"s{i}" for i in range(40)], kind=kind, **given)


def test_masked_fold_tables_names_and_orange_arrays_are_refused():
    table = np.ma.array(np.zeros((40, 2), int), mask=np.arange(80).reshape(40, 2) == 7)
    with pytest.raises(InputError, match="`folds` are masked for samples 3;"):
        as_cube(np.column_stack([P, P])[:, None], Y, folds=table)
    with pytest.raises(InputError, match="`folds` are masked in places 1;"):
        as_cube(P, Y, folds=[np.ma.array(np.arange(20), mask=np.arange(20) == 1), np.arange(20, 40)])
    with pytest.raises(InputError, match="names of 'sample' are masked in places 0"):
        as_cube(P, Y, samples=np.ma.array(np.arange(40), mask=np.arange(40) == 0))
    with pytest.raises(InputError, match="`folds` are masked in places 1;"):
        as_cube(P, Y, folds=[(None, np.ma.array(np.arange(20), mask=np.arange(20) == 1)), (None, np.arange(20, 40))])
    orange = {"row_indices": np.arange(40), "actual": Y, "predicted": np.ma.array(P[None], mask=P[None] > 0.5)}
    with pytest.raises(InputError, match="array 'predicted' is masked; Orange's Results hold no masks"):
        read_predictions(orange)


def test_masked_values_taken_out_of_their_array_are_missing():
    hidden = list(np.ma.array(np.where(Y, "b", "a"), mask=np.arange(40) == 3))
    for name, match in (
        ("groups", "must not be missing"),
        ("folds", "for every sample"),
        ("labels", "are missing for"),
    ):
        with pytest.raises(InputError, match=match):
            as_cube(P, **{"labels": Y, "positive": "b" if name == "labels" else None, name: hidden})
    with pytest.raises(InputError, match="names of 'sample' are masked in places 3"):
        as_cube(P, Y, samples=list(np.ma.array(np.arange(40), mask=np.arange(40) == 3)))


def test_masked_values_of_designs_draws_and_tests_are_missing():
    hidden = np.ma.array(Y, mask=np.arange(40) == 3)
    cube = as_cube(P, Y)
    for make in (
        lambda: kfold(hidden, 4),
        lambda: kfold(Y, 4, groups=hidden),
        lambda: bootstrap(cube, 10, groups=hidden),
        lambda: bootstrap(cube, 10, strata=hidden),
    ):
        with pytest.raises(InputError, match="are missing for samples 3"):
            make()
    expected = p_adjust([0.01, 0.02, np.nan])
    np.testing.assert_array_equal(p_adjust(np.ma.array([0.01, 0.02, 0.03], mask=[0, 0, 1])), expected)


# -- mlr3 tables of several learners


def mlr3(learners=3, repeats=2, **names):
    rows = [
        {"learner": f"l{a}", "repeat": r, "fold": i % 4, "row_ids": i, "truth": "ab"[i % 2], "response": "a",
         "prob.a": round(p, 6), "prob.b": round(1 - p, 6)}
        for a in range(learners) for r in range(repeats) for i, p in enumerate(RNG.random(20))
    ]  # fmt: skip
    return pd.DataFrame(rows).rename(columns=names)


@pytest.mark.parametrize("learner", ["learner", "learner_id", "task_id"])
def test_mlr3_learner_names_the_configuration_and_repeat_the_repeat(learner):
    frame = mlr3(learner=learner) if learner != "learner" else mlr3()
    frame = frame.rename(columns={"learner": learner})
    cube = read_predictions(frame, positive="b")
    assert dict(cube.sizes) == {"sample": 20, "configuration": 3, "repeat": 2}
    assert cube["configuration"].values.tolist() == ["l0", "l1", "l2"]
    assert set(cube["fold"].values[:, 0]) == {0, 1, 2, 3}
    assert cube.values[:, 1, 1].tolist() == frame["prob.b"].values[60:80].tolist()


def test_mlr3_learners_and_tasks_name_the_configuration_together():
    both = pd.concat([mlr3().assign(task="small"), mlr3().assign(task="large")])
    cube = read_predictions(both.assign(learner_id=both["learner"] + "x"), positive="b")
    assert cube.sizes["configuration"] == 6
    assert cube["configuration"].values[0] == "learner=l0, task=small"
    assert read_predictions(mlr3(1), positive="b")["configuration"].values.tolist() == ["l0"]


@pytest.mark.parametrize("drop", [["repeat", "fold"], ["repeat"], ["fold"], []])
def test_mlr3_column_that_explains_duplicates_is_never_ignored(drop):
    frame = mlr3(learner="method").rename(columns={"learner": "method"}).drop(columns=drop)
    with pytest.raises(InputError, match=r"differ in column 'method', .* columns=\{'configuration': 'method'\}"):
        read_predictions(frame, positive="b")
    if "repeat" not in drop:
        cube = read_predictions(frame, positive="b", columns={"configuration": "method"})
        assert dict(cube.sizes) == {"sample": 20, "configuration": 3, "repeat": 2}


@pytest.mark.parametrize("name", ["{}", "cv_{:02d}"])
def test_mlr3_iterations_in_any_order_of_rows_are_the_same_repeats(name):
    """Four folds of each repeat: rows sorted by their ids bring the iterations in another order."""
    frame = mlr3(repeats=3)
    folds = np.stack([RNG.permutation(20) % 4 for _ in range(3)])
    frame["fold"] = folds[frame["repeat"], frame["row_ids"]]
    frame["iteration"] = [name.format(4 * r + f + 1) for r, f in zip(frame["repeat"], frame["fold"], strict=True)]
    frame = frame.drop(columns=["repeat", "fold"])
    cube = read_predictions(frame, positive="b")
    assert cube.sizes["repeat"] == 3
    assert np.array_equal(cube["fold"], folds.T)
    for other in (frame.sort_values("row_ids", kind="stable"), frame.sample(frac=1, random_state=1)):
        found = read_predictions(other, positive="b")
        assert found.sel({dim: cube[dim] for dim in cube.dims}).equals(cube)


def test_mlr3_columns_about_samples_are_kept():
    frame = mlr3().assign(patient=lambda d: d["row_ids"] // 2, resampling_id="cv", seconds=lambda d: d["prob.a"])
    cube = read_predictions(frame, positive="b")
    assert cube["patient"].dims == ("sample",)
    assert cube["patient"].values.tolist() == (np.arange(20) // 2).tolist()
    assert cube["resampling_id"].values.tolist() == ["cv"] * 3
    assert load_report(cube)["ignored_columns"] == ["seconds"]
    assert cube.drop_vars("patient").equals(read_predictions(frame.drop(columns="patient"), positive="b"))


def test_mlr3_iterations_of_several_learners_are_not_repeats():
    frame = mlr3(3, 1).drop(columns="repeat").rename(columns={"learner": "method", "fold": "iteration"})
    frame["iteration"] += 4 * frame["method"].str[1:].astype(int)
    with pytest.raises(InputError, match="differ in column 'method'"):
        read_predictions(frame, positive="b")


def test_tidymodels_column_that_explains_duplicates_is_never_ignored():
    frame = pd.DataFrame(
        [
            {"id": f"Bootstrap{b + 3 * a}", ".row": i, ".pred": RNG.random(), "y": i / 7, "model": f"m{a}"}
            for a in range(2) for b in range(3) for i in range(10)
        ]
    )  # fmt: skip
    with pytest.raises(InputError, match=r"differ in column 'model', .* columns=\{'configuration': 'model'\}"):
        read_predictions(frame.rename(columns={"y": "label"}))
    cube = read_predictions(frame, columns={"configuration": "model", "label": "y"})
    assert cube["configuration"].values.tolist() == ["m0", "m1"]
    sets = frame.assign(**{".config": "pre0_mod1", "id": "Fold1"}).drop_duplicates([".row", "model"])
    cube = read_predictions(sets.rename(columns={"model": "wflow_id", "y": "label"}))
    assert cube["configuration"].values.tolist() == [f"wflow_id=m{a}, .config=pre0_mod1" for a in range(2)]


def test_long_table_duplicates_name_the_column_that_tells_them_apart():
    frame = pd.DataFrame({"sample": [1, 2] * 4, "configuration": list("aabb") * 2, "start": [1] * 4 + [2] * 4})
    frame = frame.assign(prediction=RNG.random(8), label=[0, 1] * 4)
    with pytest.raises(InputError, match=r"Column 'start' tells them apart: .* columns=\{'repeat': 'start'\}"):
        read_predictions(frame)
    assert read_predictions(frame, columns={"repeat": "start"}).sizes["repeat"] == 2
    assert read_predictions(frame.rename(columns={"start": "seed"})).sizes["repeat"] == 2


# -- caret's other columns


def test_caret_columns_about_samples_are_not_tuning_values():
    frame = pd.read_csv(FILES / "caret_repeatedcv.csv")
    plain = read_predictions(frame, positive="virginica")
    about = frame.assign(patient="p" + frame["rowIndex"].astype(str), age=40 + frame["rowIndex"] % 17, site="x")
    cube = read_predictions(about.drop(columns="site"), positive="virginica")
    assert cube.drop_vars(["patient", "age"]).drop_attrs().identical(plain.drop_attrs())
    assert cube["patient"].dims == cube["age"].dims == ("sample",)
    assert "columns 'patient', 'age' have one value per rowIndex" in " ".join(load_report(cube)["notes"])
    assert read_predictions(about, positive="virginica").sizes == plain.sizes  # `site` is one value throughout


def test_caret_column_that_is_nothing_is_refused():
    frame = pd.read_csv(FILES / "caret_repeatedcv.csv")
    with pytest.raises(InputError, match=r"caret: column 'seconds' is no tuning value \(it varies within one"):
        read_predictions(frame.assign(seconds=np.arange(len(frame))), positive="virginica")
    cv = pd.read_csv(FILES / "caret_multiclass.csv").rename(columns={"setosa": "x"})
    with pytest.raises(InputError, match=r"of 'versicolor', 'virginica' but not of 'setosa'; is it column 'x'\?"):
        read_predictions(cv)
    boot = pd.read_csv(FILES / "caret_boot.csv").rename(columns={"Resample": "part"})
    with pytest.raises(InputError, match=r"no `Resample` column, .* Was `Resample` renamed\?"):
        read_predictions(boot, positive="virginica")
    parts = pd.read_csv(FILES / "caret_cv.csv").rename(columns={"Resample": "part"})
    cube = read_predictions(parts, positive="virginica")
    assert "fold" not in cube.coords
    assert "'part' names the folds; none were read" in load_report(cube)["notes"][0]
    assert read_predictions(parts, positive="virginica", columns={"fold": "part"})["fold"].values[0] == "Fold1"


# -- names are text


ROLES = {"fold": "split", "group": "site", "configuration": "model", "sample": "who", "repeat": "run"}
NAMES = {"fractions": ["1.1", "1.10"], "zeros": ["001", "1"], "floats": ["1", "1.0"]}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("role", ROLES)
def test_mapped_names_are_read_as_text(tmp_path, role, names):
    first, second = NAMES[names]
    rows = [{"sample": i, "configuration": c, "repeat": r, "prediction": round(RNG.random(), 3), "label": i % 2}
            for c in "ab" for r in (0, 1) for i in range(8)]  # fmt: skip
    table = pd.DataFrame(rows)
    table["fold"] = table["group"] = table["sample"] % 4
    ours = table[role].unique()[:2].tolist()
    named = {ours[0]: first, ours[1]: second}
    table[ROLES[role]] = [named.get(value, "3") for value in table[role]] if len(table[role].unique()) <= 4 else [
        named.get(value, str(value + 10)) for value in table[role]
    ]  # fmt: skip
    path = tmp_path / "mine.csv"
    table.drop(columns=role).to_csv(path, index=False)
    cube = read_predictions(path, columns={role: ROLES[role]})
    found = cube[role].values.ravel().tolist()
    assert {first, second} <= set(found)
    assert cube.sizes == {"sample": 8, "configuration": 2, "repeat": 2}


def test_mapped_whole_numbers_stay_whole_numbers(tmp_path):
    rows = "".join(f"{i},{i % 3 + 1},0.{i},{i % 2}\n" for i in range(1, 9))
    path = save(tmp_path, "who,split,p,y\n" + rows)
    cube = read_predictions(path, columns={"sample": "who", "fold": "split", "prediction": "p", "label": "y"})
    assert cube["fold"].dtype.kind == cube["sample"].dtype.kind == cube["label"].dtype.kind == "i"


def test_mapped_tuning_values_and_classes_stay_apart(tmp_path):
    rows = "".join(f"{i},{v},0.{i}5,{i % 2}\n" for v in ("1.1", "1.10") for i in range(1, 9))
    path = save(tmp_path, "sample,version,prediction,label\n" + rows)
    assert read_predictions(path, columns={"configuration": ["version"]})["configuration"].values.tolist() == [
        "version=1.1", "version=1.10",
    ]  # fmt: skip
    rows = "".join(f"{i},{('1.1', '1.10', '2')[i % 3]},0.25,0.25,0.5\n" for i in range(1, 10))
    path = save(tmp_path, "sample,y,prediction_1.1,prediction_1.10,prediction_2\n" + rows)
    assert sorted(set(read_predictions(path, columns={"label": "y"})["label"].values)) == ["1.1", "1.10", "2"]


def test_command_line_columns_are_read_as_text(tmp_path, capsys):
    rows = "".join(f"{i},{i % 2},0.{(7 * i) % 10}1,{('1.1', '1.10')[i // 20]}\n" for i in range(40))
    path = save(tmp_path, "sample,label,prediction,split\n" + rows)
    assert cli.main(["describe", str(path), "--columns", "fold=split"]) == 0
    assert "2-fold" in capsys.readouterr().out


def test_mapped_columns_are_never_ignored(tmp_path):
    frame = pd.read_csv(FILES / "tidymodels_cv.csv").assign(site=lambda t: t[".row"] % 7)
    cube = read_predictions(frame, positive="virginica", columns={"group": "site"})
    assert (cube["group"] == cube["sample"] % 7).all()
    wide = pd.read_csv(FILES / "julearn_proba.csv", index_col=0).assign(site=1)
    with pytest.raises(InputError, match=r"layout 'julearn' has no place for columns\['group'\]"):
        read_predictions(wide, positive="virginica", columns={"group": "site"})


def test_words_are_not_turned_into_those_of_the_other_class():
    table = pd.DataFrame(
        {"sample": [1, 2, 3], "prediction_ill": ["ill", "well", "ill"], "label": ["ill", "well", "ill"]}
    )
    with pytest.raises(
        InputError, match="column 'prediction_ill' holds text among numbers: 'ill', 'well' in rows 1, 2, 3"
    ):
        read_predictions(table, positive="well")


# -- --labels


def run_labels(tmp_path, labels, samples=("001", "1", "2", "3")):
    rows = "".join(f"{name},0.{i + 1}\n" for i, name in enumerate(samples))
    path = save(tmp_path, "sample,prediction\n" + rows)
    return cli.main(["describe", str(path), "--labels", str(labels)])


def test_labels_file_is_never_fetched(tmp_path, capsys, monkeypatch):
    def fetched(*_, **__):
        raise AssertionError("fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetched)
    assert run_labels(tmp_path, "http://localhost:1/truth.csv") == 2
    assert "--labels: no such file: 'http://localhost:1/truth.csv'" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe")
    assert run_labels(tmp_path, tmp_path / "pipe") == 2


def test_labels_file_ids_are_text(tmp_path, capsys):
    good = save(tmp_path, "id,y\n3,0\n2,1\n001,0\n1,1\n", "good.csv")
    assert run_labels(tmp_path, good) == 0
    capsys.readouterr()
    assert run_labels(tmp_path, save(tmp_path, "id,y\n1,0\n2,1\n3,1\n01,0\n", "bad.csv")) == 2
    assert "only in `predictions`: '001'; only in --labels: '01'" in capsys.readouterr().err
    assert run_labels(tmp_path, save(tmp_path, "y\n0\n1\n0\n1\n", "one.csv")) == 0
    assert run_labels(tmp_path, save(tmp_path, "y;z;w\n0;1;1\n", "three.csv")) == 2
    assert "must have one column (labels) or two (ids, labels); found 3" in capsys.readouterr().err
    assert run_labels(tmp_path, save(tmp_path, "id,y\n,0\n2,1\n", "gap.csv")) == 2
    assert "has rows without an id" in capsys.readouterr().err
    assert run_labels(tmp_path, save(tmp_path, "\x00\x01\x02", "binary.csv")) == 2
    assert "--labels: binary.csv: this is a binary file" in capsys.readouterr().err


def test_labels_beside_those_of_the_file_are_refused(tmp_path, capsys):
    file = save(tmp_path, "sample,configuration,prediction,label\n1,a,.2,0\n2,a,.8,1\n", "own.csv")
    labels = save(tmp_path, "id,y\n1,1\n2,0\n", "other.csv")
    assert cli.main(["describe", str(file), "--labels", str(labels)]) == 2
    assert "the truth is in the file already" in capsys.readouterr().err


def test_labels_and_positive_keep_classes_apart(tmp_path, capsys):
    labels = save(tmp_path, "id,y\n001,1.1\n1,1.10\n2,1.1\n3,1.10\n", "y.csv")
    path = save(tmp_path, "sample,prediction\n001,0.1\n1,0.2\n2,0.3\n3,0.4\n")
    for positive in ("1.1", "1.10"):
        out = ["--labels", str(labels), "--positive", positive, "--kind", "probability"]
        assert cli.main(["describe", str(path), *out]) == 0
        assert f"positive class, {positive}\n" in capsys.readouterr().out


def test_labels_file_shares_the_budget(tmp_path, capsys):
    bomb = tmp_path / "y.csv.gz"
    bomb.write_bytes(gzip.compress(b"y\n" + b"1\n" * 2**21, 9))
    with pytest.raises(InputError, match=r"`labels`: y\.csv\.gz: the file decompresses to more than 1,000,000 bytes"):
        read_predictions(save(tmp_path, "sample,prediction\n1,0.5\n2,0.25\n"), labels=bomb, max_bytes=10**6)


# -- columns mean what they mean in pandas

TABLE = pd.DataFrame(
    {
        "sample": [f"s{i}" for i in range(6)] * 2, "configuration": ["a"] * 6 + ["b"] * 6, "fold": [0, 1, 2] * 4,
        "prediction": [0.5, 0.25, 0.75, 0.125, 0.5, 1, 0, 0.25, 0.5, 1, 0.75, 0.5], "label": [0, 1] * 6,
        "weight": [1.0, 2.0, 0.5] * 4,
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.convert_dtypes(),
        lambda t: t.astype({"sample": "category", "configuration": "category", "fold": "category"}),
        lambda t: t.astype({"label": "category", "prediction": "Float64", "weight": "Float32", "fold": "Int8"}),
        lambda t: t.astype({"sample": "string", "configuration": object, "label": "boolean"}),
        lambda t: t.astype({"sample": pd.CategoricalDtype([f"s{i}" for i in range(9, -1, -1)])}),
        lambda t: t.set_index(["sample", "configuration"]),
    ],
    ids=["nullable", "categories", "numbers", "text", "unused categories", "index"],
)
def test_nullable_and_categorical_columns_are_the_same_cube(change):
    plain = read_predictions(TABLE)
    found = read_predictions(change(TABLE))
    assert content(found) == content(plain) | {key: content(found)[key] for key in ("label", "positive")}
    assert found["label"].values.astype(int).tolist() == plain["label"].values.tolist()
    for name in ("sample", "configuration"):
        assert found[name].values.tolist() == plain[name].values.tolist()


@pytest.mark.parametrize("dtype", ["Float64", "category", object])
def test_missing_values_of_any_type_are_not_predicted(dtype):
    table = TABLE.assign(prediction=TABLE["prediction"].where(np.arange(12) != 4).astype(dtype))
    assert np.flatnonzero(np.isnan(read_predictions(table).values.T.ravel())).tolist() == [4]
    gone = TABLE.assign(sample=TABLE["sample"].where(np.arange(12) != 4).astype("category"))
    with pytest.raises(InputError, match="column 'sample' is missing in row 5"):
        read_predictions(gone)


def test_a_multiindex_says_one_clear_line():
    with pytest.raises(InputError, match=r"rows are a MultiIndex without names; make columns of it with reset_index"):
        read_predictions(TABLE.set_index(["sample", "configuration"]).rename_axis([None, None]))
    with pytest.raises(InputError, match=r"columns are a MultiIndex; flatten them to one name each"):
        read_predictions(pd.concat({"x": TABLE}, axis=1))


def test_a_column_has_one_role():
    with pytest.raises(InputError, match=r"`columns` gives one column two roles; copy it under another name first"):
        read_predictions(TABLE, columns={"sample": "sample", "group": "sample"})


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin")
@pytest.mark.parametrize(
    "command", ["cat {} | {} describe /dev/stdin", "{1} describe <(cat {0})", "{1} describe {0} --labels <(cat {0})"]
)
def test_pipes_of_a_shell_say_one_clear_line(tmp_path, command):
    path = tmp_path / "p.csv"
    TABLE.to_csv(path, index=False)
    run = f"{shlex.quote(sys.executable)} -m cvstats"
    done = subprocess.run(["bash", "-c", command.format(path, run)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "this is a pipe, not a file; save what it holds to a file first" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    redirected = subprocess.run(["bash", "-c", f"{run} describe /dev/stdin < {path}"], capture_output=True, check=False)
    assert redirected.returncode == 0  # a file, whatever it is called


# -- law: renaming or recasing columns gives the same cube or an error, never another cube


def truth(name, **options):
    return pd.read_csv(FILES / name, **options)["species"]


LONG = "sample,configuration,repeat,fold,group,weight,prediction,label\n" + "".join(
    f"s{i},{c},{r},{(i + r) % 3},{i % 4},{1 + i % 2},0.{(7 * i + 3 * r) % 10}{i},{i % 2}\n"
    for c in "ab"
    for r in (1, 2)
    for i in range(12)
)
WIDE = "sample,label,fold,group,weight,m1,m2\n" + "".join(
    f"s{i},{i % 2},{i % 3},{i % 4},{1 + i % 2},0.{i}1,0.{(3 * i) % 10}7\n" for i in range(12)
)
JADBIO = "Sample name,Prob ( class = 0 ),Prob ( class = 1 ),Label\ns1,0.9,0.1,0\ns2,0.2,0.8,1\n"
AMLB = "no,yes,predictions,truth,fold\n0.9,0.1,no,no,1\n0.2,0.8,yes,yes,2\n0.3,0.7,yes,no,2\n"
MLR3 = mlr3().to_csv(index=False)
ITERATIONS = mlr3(3, 1).drop(columns="repeat").rename(columns={"fold": "iteration"}).to_csv(index=False)
TEXTS = {"long": LONG, "wide": WIDE, "jadbio": JADBIO, "amlb": AMLB, "mlr3": MLR3, "mlr3_iterations": ITERATIONS}
NOT_READ = {"h2o_zero_filled", "weka_no_ids", "weka_experimenter", "caret_scores", "sklearn_scores", "h2o_truth",
            "autogluon_truth", "separate_lda_design", "separate_lda_numbers"}  # fmt: skip
OPTIONS = {
    "amlb": {"positive": "yes"},
    "mlr3": {"positive": "b"},
    "mlr3_iterations": {"positive": "b"},
    "h2o_bare": {"labels": truth("h2o_truth.csv"), "positive": "virginica"},
    "autogluon_gbm": {"labels": truth("autogluon_truth.csv", index_col=0), "positive": "virginica"},
    "autogluon_knn": {"labels": truth("autogluon_truth.csv", index_col=0), "positive": "virginica"},
    "pycaret_regression": {"columns": {"label": "pl"}},
}
REAL = sorted({path.stem: path for path in FILES.iterdir() if path.suffix in (".csv", ".arff")}.keys() - NOT_READ)
CASES = {
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "swapped": str.swapcase,
    "dots": lambda name: name.replace("_", ".") if "_" in name else name.replace(".", "_"),
    "spaces": lambda name: name.replace("_", " "),
}


OPTIONAL = ("fold", "group", "weight", "event")
QUOTES = "'\""
ATTRIBUTE = re.compile(r"""(?im)^(@attribute\s+)("[^"]+"|'[^'\\]+'|[^\s'"]+)(?=\s)""")


def with_header(text, change):
    """Return the text of a table with its columns renamed."""
    if ATTRIBUTE.search(text):
        return ATTRIBUTE.sub(lambda part: f'{part[1]}"{change(part[2].strip(QUOTES))}"', text)
    head, _, body = text.partition("\n")
    return ",".join(f'"{change(name)}"' if name else "" for name in next(csv.reader([head]))) + "\n" + body


def names_of(text):
    """Return the names of the columns."""
    found = [part.strip(QUOTES) for _, part in ATTRIBUTE.findall(text)]
    return found or [name for name in next(csv.reader([text.partition("\n")[0]])) if name]


def content(cube):
    """Return what a cube says, whatever its configurations are called."""
    out = {"dims": cube.dims, "shape": cube.shape, "values": str(np.round(cube.values, 9).tolist())}
    for name in ("sample", "repeat", "label", "fold", "group", "weight", "event", "kind", "positive", "threshold"):
        if name in cube.coords:
            out[name] = [str(value) for value in cube[name].values.ravel()]
    return out


def read_text_table(folder, text, name):
    positive = {"positive": "virginica"} if "virginica" in text and "setosa" not in text else {}
    return read_predictions(save(folder, text, name), **OPTIONS.get(Path(name).stem, positive))


@pytest.mark.parametrize("name", [*REAL, *TEXTS])
def test_renamed_or_recased_columns_give_the_same_cube_or_an_error(tmp_path, name):
    path = next((FILES / f"{name}{end}" for end in (".csv", ".arff") if (FILES / f"{name}{end}").exists()), None)
    text = path.read_text() if path else TEXTS[name]
    file = path.name if path else f"{name}.csv"
    right = content(read_text_table(tmp_path, text, file))
    assert content(read_text_table(tmp_path, with_header(text, str), file)) == right
    every = names_of(text)
    changes = [(how, chosen, change) for how, change in CASES.items() for chosen in ([*every], *([c] for c in every))]
    changes += [("renamed", [chosen], lambda _: "column_7") for chosen in every]
    wrong = []
    for how, chosen, change in changes:
        changed = with_header(text, lambda name, of=chosen, by=change: by(name) if name in of else name)
        try:
            found = content(read_text_table(tmp_path, changed, file))
        except InputError:
            continue
        if how == "renamed":  # what nobody can recognise may be missing, but nothing may be in its place
            found = {key: right[key] if key not in found and key in OPTIONAL else found.get(key) for key in right}
        if found != right:
            wrong.append((how, chosen, [key for key in right if found.get(key) != right[key]]))
    assert not wrong, wrong


ARRAYS = {
    **{path.stem: dict(np.load(path)) for path in FILES.glob("*.npz")},
    "named": {
        "prediction": np.stack([PROBA, PROBA[:, ::-1]], axis=1), "label": Y, "fold": np.arange(40) % 5,
        "classes": np.array([1, 0]), "weight": 1 + Y, "group": np.arange(40) // 2,
    },
    "repeats": {"prediction": np.stack([PROBA, PROBA[:, ::-1]], axis=1), "repeat": np.array([4, 5]), "y": Y},
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_renamed_or_recased_arrays_give_the_same_cube_or_an_error(name):
    arrays = ARRAYS[name]
    right = content(read_predictions(arrays))
    wrong = []
    for how, change in {**CASES, "renamed": lambda _: "column_7"}.items():
        for chosen in arrays:
            if change(chosen) == chosen:
                continue
            try:
                found = content(read_predictions({change(k) if k == chosen else k: v for k, v in arrays.items()}))
            except InputError:
                continue
            if found != right:
                wrong.append((how, chosen))
    assert not wrong, wrong


def test_arrays_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match=r"arrays 'classnames', which mean nothing here\. Drop .*: label, fold"):
        read_predictions({"prediction": P, "y": Y, "classnames": np.array([1, 0])})
    with pytest.raises(InputError, match=r"arrays 'fold' are not part of Orange's Results"):
        read_predictions({**ARRAYS["orange_results"], "fold": np.arange(3)})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (LONG.replace("weight", "Weight", 1), r"column 'Weight' is written almost like 'weight', which layout 'long'"),
        (LONG.replace("group", "Fold", 1), r"column 'Fold' is written almost like 'fold', which layout 'long' looks"),
        (AMLB.replace("fold", "part", 1), r"layout 'amlb': columns 'no', 'yes', 'part' should be the classes"),
        (WIDE.replace("fold", "part", 1), r"wide table: 'part' lie outside \[0, 1\] while other columns hold prob"),
        ("target,repeat1_p0\n1,0.5\n0,0.4\n", r"julearn: .* found repeats 1 and other columns none\."),
        ("target,repeat0_p0,x\n1,0.5,1\n0,0.4,1\n", r"julearn: .* found repeats 0 and other columns 'x'\."),
        ("inst#,actual,predicted,prediction\n1,1:a,1:a,.9\n2,2:b,1:a,.9\n", r"Weka: there is no column `error`"),
        ("inst#,actual,predicted,error,p\n1,1:a,1:a,,.9\n2,2:b,1:a,+,.9\n", r"Weka: neither a column `prediction`"),
        ("inst#,actual,predicted,error,a,b\n1,1,2,1,s,t\n2,3,4,1,u,v\n", r"Weka: samples could be named by 'a', 'b'"),
    ],
)  # fmt: skip
def test_columns_that_lost_their_names_are_refused(tmp_path, text, match):
    with pytest.raises(InputError, match=match):
        read_predictions(save(tmp_path, text))


# -- law: whatever people call our columns, and in whatever order they are, the cube is the same or there is an error


def other_name(role, rng):
    """Return another name for a column: a synonym in some spelling, or the same."""
    words = [role, *SYNONYMS.get(role, "").split()]
    case = [str, str.upper, str.title][rng.integers(3)]
    return case(words[rng.integers(len(words))])


@pytest.mark.parametrize(
    "text", [LONG, LONG.replace("prediction", "prediction_1"), WIDE], ids=["long", "class", "wide"]
)
def test_synonyms_and_order_of_columns_never_give_another_cube(text, capsys):
    rng = np.random.default_rng(1)
    frame = pd.read_csv(io.StringIO(text), dtype={"repeat": str})
    right, read = content(read_predictions(frame).sortby("configuration")), 0
    for _ in range(40):
        changed = rng.choice(list(frame.columns), rng.integers(1, 5), replace=False)
        names = {role: other_name(role, rng) for role in changed if role in SYNONYMS}
        given = frame.rename(columns=names)
        if given.columns.is_unique:
            try:
                cube = read_predictions(given[list(rng.permutation(given.columns))])
            except InputError:
                continue
            found, read = content(cube.sortby("configuration")), read + 1
            for key in ("dims", "shape", "values", "sample", "repeat", "label", "kind", "positive"):
                assert found.get(key) == right.get(key), (key, names)
            for key in ("fold", "group", "weight"):  # under a name that says nothing they describe samples
                assert found.get(key, right[key]) == right[key], (key, names)
    assert read > (2 if "m1" in text else 10)  # columns of a wide table may be anything


def test_columns_that_were_split_are_not_taken_for_what_they_were_part_of():
    frame = pd.read_csv(io.StringIO(LONG))
    for role in ("sample", "configuration", "label"):
        halves = {f"{role}_letter": frame[role].astype(str).str[:1], "number": frame[role].astype(str).str[1:]}
        with pytest.raises(InputError):
            read_predictions(frame.drop(columns=role).assign(**halves))
    halves = {"letter": frame["sample"].str[:1], "number": frame["sample"].str[1:]}
    split = frame.drop(columns="sample").assign(**halves)
    joined = read_predictions(split, columns={"sample": "letter+number"})
    assert joined["sample"].values.tolist() == [f"letter=s, number={i}" for i in range(12)]
    assert np.array_equal(joined, read_predictions(frame))
