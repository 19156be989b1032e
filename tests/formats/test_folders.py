"""Folders of models, several fits in one call, folds of each configuration, and files that are no tables of text."""

import gzip
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats as cs
from cvstats import InputError, cli, load_report, read_predictions

FILES = Path(__file__).parents[1] / "files"
N = 30
RNG = np.random.default_rng(1)
Y = np.arange(N) % 2
P = np.round(0.3 * Y + 0.7 * RNG.random((4, N)), 6)


def mljar(folder, names=("1_Tree", "2_Linear", "10_Knn"), target=Y, column="prediction_0_for_no_1_for_yes"):
    for name, p in zip(names, P, strict=False):
        (folder / name).mkdir()
        table = pd.DataFrame({"target": target, column: p})
        table.to_csv(folder / name / "predictions_out_of_folds.csv", index=False)


def test_mljar_folder(tmp_path):
    mljar(tmp_path)
    (tmp_path / "leaderboard.csv").write_text("name,metric_value\n1_Tree,0.5\n")
    fold = RNG.permutation(N) % 3
    (tmp_path / "folds").mkdir()
    for k in range(3):
        np.save(tmp_path / "folds" / f"fold_{k}_validation_indices.npy", np.flatnonzero(fold == k))
        np.save(tmp_path / "folds" / f"fold_{k}_train_indices.npy", np.flatnonzero(fold != k))
    cube = read_predictions(tmp_path, positive="yes")
    assert cube["configuration"].values.tolist() == ["1_Tree", "2_Linear", "10_Knn"]
    assert np.array_equal(cube, P[:3].T)
    assert np.array_equal(cube["fold"], fold)
    files = sorted(tmp_path.glob("*/predictions_out_of_folds.csv"))
    assert {*read_predictions(files, positive="yes")["configuration"].values} == {"1_Tree", "2_Linear", "10_Knn"}
    (tmp_path / "folds" / "fold_2_validation_indices.npy").unlink()
    assert "fold" not in read_predictions(tmp_path, positive="yes").coords


def test_real_folder_of_mljar_and_real_fits_of_caret():
    cube = read_predictions(FILES / "mljar_folder", positive="virginica")
    assert cube["configuration"].values.tolist() == ["1_DecisionTree", "2_Default_NearestNeighbors"]
    assert (load_report(cube)["folds"], load_report(cube)["source"]) == (3, "mljar_folder")
    assert cs.cvt(cube, "auc").estimate > 0.9
    knn = read_predictions(FILES / "caret_fits_knn.csv", positive="virginica")
    assert knn["configuration"].values.tolist() == ["k=3", "k=7"]
    assert knn["plant"].dims == knn["site"].dims == ("sample",)
    fits = [FILES / f"caret_fits_{name}.csv" for name in ("knn", "tree")]
    with pytest.raises(
        InputError, match=r"are of no class but other files have 'versicolor', 'virginica'\. kind='label'"
    ):
        read_predictions(fits, positive="virginica")
    both = read_predictions(fits, positive="virginica", kind="label")
    assert both["configuration"].values[::2].tolist() == ["fit=caret_fits_knn, k=3", "fit=caret_fits_tree, cp=0"]
    assert both["fold"].dims == ("sample", "configuration")


def test_numbers_that_differ_by_rounding_are_one_truth(tmp_path):
    z = np.round(RNG.normal(size=N), 1)
    mljar(tmp_path, ["a"], z, "prediction")
    (tmp_path / "b").mkdir()
    more = pd.DataFrame({"target": z * (1 + 4e-16) + 1e-16, "prediction": P[1]})
    more.to_csv(tmp_path / "b" / "predictions_out_of_folds.csv", index=False)
    cube = read_predictions(tmp_path)
    assert np.array_equal(cube["label"], z)
    assert "more digits" in load_report(cube)["notes"][-1]
    more.assign(target=z + 1e-6).to_csv(tmp_path / "b" / "predictions_out_of_folds.csv", index=False)
    with pytest.raises(InputError, match="conflicting truth"):
        read_predictions(tmp_path)


def test_other_folders(tmp_path):
    with pytest.raises(InputError, match="is a folder but not a cube store, and holds no tables"):
        read_predictions(tmp_path)
    for name, p in zip("xy", P, strict=False):
        pd.DataFrame({"no": 1 - p, "yes": p}).to_csv(tmp_path / f"{name}.csv")
    cube = read_predictions(tmp_path, labels=pd.Series(np.where(Y, "yes", "no")), positive="yes")
    assert cube["configuration"].values.tolist() == ["x", "y"]
    deep = tmp_path / "deep"
    for name in ("a/p.csv", "b/p.csv", "b/q.csv"):
        (deep / name).parent.mkdir(parents=True, exist_ok=True)
        (deep / name).write_text("sample,prediction,label\n1,.5,1\n2,.4,0\n")
    with pytest.raises(InputError, match=r"tables of several names: 'p.csv', 'q.csv'. Give .*, such as deep/\*/p.csv"):
        read_predictions(deep)
    assert read_predictions([deep / "a/p.csv", deep / "b/p.csv"])["configuration"].values.tolist() == ["a", "b"]
    gluon = tmp_path / "gluon" / "models" / "LightGBM" / "utils"
    gluon.mkdir(parents=True)
    (gluon / "oof.pkl").write_bytes(b"")
    with pytest.raises(InputError, match=r"pickles, which are never opened\. .*predict_proba_oof"):
        read_predictions(tmp_path / "gluon")


def caret(seed, classes, tuned="k"):
    rng, obs = np.random.default_rng(seed), np.where(Y, "Yes", "No")
    fold = [f"Fold{i + 1}" for i in rng.permutation(N) % 5]
    parts = []
    for value in (1, 3):
        p = rng.random(N)
        frame = pd.DataFrame({"pred": obs, "obs": obs, "rowIndex": np.arange(N) + 1, tuned: value, "Resample": fold})
        parts.append(frame.assign(**{name: p if name == "Yes" else 1 - p for name in classes}))
    return pd.concat(parts)


@pytest.mark.slow
def test_fits_keep_the_name_of_their_file_and_folds_may_differ(tmp_path):
    knn, again = caret(1, ["No", "Yes"]), caret(2, ["Yes", "No"])
    knn.to_csv(tmp_path / "knn.csv", index=False)
    again.to_csv(tmp_path / "again.csv", index=False)
    cube = read_predictions([tmp_path / "knn.csv", tmp_path / "again.csv"], positive="Yes")
    assert cube["configuration"].values.tolist() == ["fit=knn, k=1", "fit=knn, k=3", "fit=again, k=1", "fit=again, k=3"]
    assert np.allclose(cube.isel(configuration=2), again["Yes"].to_numpy()[:N])
    assert cube["fold"].dims == ("sample", "configuration")
    assert "folds differ between configurations" in load_report(cube)["notes"][0]
    for name in ("cube.nc", "cube.cube", "cube.csv", "cube.parquet"):
        cs.write_cube(cube, tmp_path / name)
        more = {} if name.endswith((".nc", ".cube")) else {"positive": "Yes"}
        back = read_predictions(tmp_path / name, **more)
        assert np.array_equal(back["fold"], cube["fold"])
        assert np.allclose(back, cube)
    bare = cube.drop_vars("fold")
    for protocol in (cs.cvt, cs.bbc, cs.winner):
        more = {} if protocol is cs.cvt else {"rng": 1, "times": 200}
        assert protocol(cube, "auc", **more).estimate.item() == protocol(bare, "auc", **more).estimate.item()
    assert cs.describe_cube(cube).n_samples.item() == N
    assert cs.cv(cube, "auc").std_error.isnull().all()
    for call in (
        lambda: cs.tt(cube, "accuracy"),
        lambda: cs.bbcd(cube, "auc"),
        lambda: cs.cvt(cube, "auc", average="fold"),
        lambda: cs.winner(cube, "auc", average="fold"),
        lambda: cs.score(cube, "auc", average="fold"),
        lambda: cs.ncv(cube, "auc", inner=cube),
    ):
        with pytest.raises(InputError, match=r"split in different ways .* Pooled methods take such cubes"):
            call()
    one = cs.report_text(cube, "auc", times=200)
    assert "4 configurations" in one


def test_configurations_without_a_sample_in_common_are_refused(tmp_path):
    for name, form in (("a", "{}"), ("b", "{:04d}")):
        ids = [form.format(i) for i in range(N)]
        pd.DataFrame({"sample": ids, "prediction": P[0], "label": Y}).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(InputError, match=r"'a' and 'b' have no sample in common: '0', '1', '2' \.\.\. against '0000'"):
        read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_predictions_that_know_the_truth_are_remarked():
    names = np.array(list("abc"))[np.arange(60) % 3]
    models = {f"m{k}": np.where(RNG.random(60) < 0.7, names, RNG.permutation(names)) for k in range(3)}
    frame = pd.DataFrame({"ID": range(60), "ground_truth": names, **models})
    assert not [note for note in load_report(read_predictions(frame))["notes"] if "right" in note]
    oracle = load_report(read_predictions(frame.assign(VirtualBest=names)))["notes"][-1]
    assert oracle.startswith("configuration VirtualBest is right throughout, the next best")
    y = np.arange(60) % 2
    seen = pd.DataFrame({"id": range(60), "y": y, "oof_a": np.where(y, 0.9, 0.1), "oof_b": np.where(y, 0.8, 0.2)})
    assert "right to 100.0 to 100.0 %" in load_report(read_predictions(seen))["notes"][-1]
    z = RNG.normal(size=60)
    assert (
        "median 100.0 %"
        in load_report(read_predictions(pd.DataFrame({"id": range(60), "y": z, "pred": z + 1e-4})))["notes"][-1]
    )


TABLE = pd.DataFrame(
    {"sample": ["01", "02"] * 2, "configuration": list("aabb"), "prediction": [0.1, 0.9, 0.2, 0.8], "label": [0, 1] * 2}
)


@pytest.mark.parametrize("how", [{"orient": "records"}, {}, {"orient": "split"}, {"orient": "records", "lines": True}])
def test_json(tmp_path, how):
    TABLE.to_json(tmp_path / "p.json", **how)
    assert read_predictions(tmp_path / "p.json").equals(read_predictions(TABLE))


def test_json_that_is_no_table(tmp_path):
    path = tmp_path / "p.json"
    for text, match in [
        ('[{"a": 1', "malformed"),
        ('[{"sample": [1], "prediction": 1}, {"sample": [2], "prediction": 2}]', "holds lists or records"),
        ('{"a": 1}', "malformed, or no table"),
        ("[" * 100_000, "malformed"),
        (json.dumps({"columns": ["a", "a"], "data": [[1, 2]]}), "must be unique"),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match=match):
            read_predictions(path)


def test_files_of_other_programs_get_the_line_to_type(tmp_path):
    with gzip.open(tmp_path / "fit.rds", "wb") as file:
        file.write(b"X\n\x00\x00\x00\x03rest")
    with pytest.raises(InputError, match=r'In R type: write.csv\(readRDS\("fit.rds"\), "fit.csv", row.names = FALSE\)'):
        read_predictions(tmp_path / "fit.rds")
    with gzip.open(tmp_path / "run.RData", "wb") as file:
        file.write(b"RDX3\nX\n")
    with pytest.raises(InputError, match=r'load\("run.RData"\); write.csv'):
        read_predictions(tmp_path / "run.RData")
    (tmp_path / "m.joblib").write_bytes(b"x\x9c123")
    with pytest.raises(InputError, match=r"never opened; .* joblib.load\('m.joblib'\).to_csv\('m.csv'\)"):
        read_predictions(tmp_path / "m.joblib")
    with zipfile.ZipFile(tmp_path / "p.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "no")
    with pytest.raises(InputError, match="Excel workbook"):
        read_predictions(tmp_path / "p.xlsx")


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    TABLE.to_excel(tmp_path / "p.xlsx", index=False)
    assert read_predictions(tmp_path / "p.xlsx").equals(read_predictions(TABLE))


def test_splits_of_repeated_cross_validation_are_repeats():
    folds = np.stack([RNG.permutation(N) % 5 for _ in range(3)], axis=1)
    tests = [np.flatnonzero(folds[:, r] == k) for r in range(3) for k in range(5)]
    values = np.stack([P[:3].T] * 2, axis=1)
    assert np.array_equal(cs.as_cube(values, Y, folds=tests)["fold"], folds)
    with pytest.raises(InputError, match="`folds` has 3 repeats but `predictions` has no repeat axis"):
        cs.as_cube(values[:, :, 0], Y, folds=tests)
    for odd in (tests[:9], [*tests[:5], tests[0]], [*tests[:4], tests[0]]):
        with pytest.raises(InputError, match="do not cover the samples once each"):
            cs.as_cube(values, Y, folds=odd)


def test_options_stand_anywhere_and_classes_are_mapped(tmp_path, capsys):
    TABLE.rename(columns={"label": "ill", "prediction": "yes", "sample": "who"}).assign(
        no=1 - TABLE["prediction"]
    ).to_csv(tmp_path / "p.csv", index=False)
    mapped = ["--columns", "sample=who,label=ill,probability[1]=yes,probability[0]=no"]
    for words in (["describe", str(tmp_path / "p.csv"), *mapped], [*mapped, "describe", str(tmp_path / "p.csv")]):
        assert cli.main(words) == 0
        assert "who as sample, ill as label, no as prediction[0]" in capsys.readouterr().out.replace(
            "yes as prediction[1], ", ""
        )
    both = [str(tmp_path / "p.csv"), "--positive", "1", str(tmp_path / "q.csv")]
    (tmp_path / "q.csv").write_bytes((tmp_path / "p.csv").read_bytes())
    assert cli.main(["describe", *both, *mapped]) == 2  # the same configurations twice
    assert "duplicate rows" in capsys.readouterr().err
    assert (
        cli.main(
            ["describe", str(tmp_path / "p.csv"), "--columns", "probability[1]=yes", "--columns", "prediction=yes"]
        )
        == 2
    )
    assert "not both" in capsys.readouterr().err


def test_text_is_read_the_same_without_pyarrow(tmp_path, monkeypatch):
    TABLE.to_csv(tmp_path / "p.csv", index=False)
    quick = read_predictions(tmp_path / "p.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # importing it fails
    assert read_predictions(tmp_path / "p.csv").identical(quick)
