"""Layouts of other tools. Each test says whether its file was written by the real tool or built to its documentation.

Files of real tools are in tests/files, versions beside them, made by tests/reference/formats_*.
"""

import ast
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvstats._check import InputError
from cvstats.formats import LAYOUTS, recognise
from cvstats.formats._layout import Hints
from cvstats.read import load_report, read_predictions

FILES = Path(__file__).parents[1] / "files"


def table(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


# -- caret (real files)


def test_caret_repeated_cv_equals_the_same_predictions_in_our_layout():
    caret = read_predictions(FILES / "caret_repeatedcv.csv", positive="virginica")
    ours = read_predictions(FILES / "caret_repeatedcv_long.csv", positive="virginica")
    assert dict(caret.sizes) == {"sample": 30, "configuration": 4, "repeat": 2}
    assert caret["configuration"].values.tolist() == ours["configuration"].values.tolist()
    np.testing.assert_array_equal(caret.values, ours.values)
    np.testing.assert_array_equal(caret["label"], ours["label"])
    np.testing.assert_array_equal(caret["fold"], ours["fold"])
    assert caret["repeat"].values.tolist() == ["Rep1", "Rep2"]
    assert caret["C"].values.tolist() == [0.5, 2.0, 0.5, 2.0]
    assert load_report(caret)["layout"] == "caret"
    assert load_report(caret)["folds"] == 3


@pytest.mark.slow
def test_caret_by_hand_numbers():
    cube = read_predictions(FILES / "caret_repeatedcv.csv", positive="virginica")
    raw = pd.read_csv(FILES / "caret_repeatedcv.csv")
    row = raw.iloc[101]
    cell = cube.sel(
        sample=row["rowIndex"], configuration=f"C={row['C']:g}, sigma={row['sigma']:g}", repeat=row["Resample"][-4:]
    )
    assert cell.item() == row["virginica"]
    assert cell["label"].item() == row["obs"]


def test_caret_plain_cv_leave_one_out_and_bootstrap():
    plain = read_predictions(FILES / "caret_cv.csv", positive="virginica")
    assert dict(plain.sizes) == {"sample": 30, "configuration": 2}
    assert sorted(set(plain["fold"].values.tolist())) == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    alone = read_predictions(FILES / "caret_loocv.csv", positive="virginica")
    assert load_report(alone)["folds"] == 30
    boot = read_predictions(FILES / "caret_boot.csv", positive="virginica")
    assert boot.sizes["repeat"] == 4
    assert "fold" not in boot.coords
    assert load_report(boot)["missing_cells"] == int(np.isnan(boot.values).sum()) > 0
    assert "overlapping hold-outs" in load_report(boot)["notes"][0]


def test_caret_multiclass_without_tuning_and_regression():
    cube = read_predictions(FILES / "caret_multiclass.csv")
    assert cube["label_class"].values.tolist() == ["setosa", "versicolor", "virginica"]
    assert cube["configuration"].values.tolist() == ["caret_multiclass"]
    labels = read_predictions(FILES / "caret_multiclass.csv", kind="label")
    assert labels["kind"].item() == "label"
    numbers = read_predictions(FILES / "caret_regression.csv")
    assert numbers["kind"].item() == "value"
    assert numbers["k"].values.tolist() == [3, 5]


# -- tidymodels (folds by the real rsample; columns as documented)


def test_tidymodels_repeated_cv_equals_the_same_predictions_in_our_layout():
    cube = read_predictions(FILES / "tidymodels_repeated.csv", positive="virginica")
    ours = read_predictions(FILES / "tidymodels_repeated_long.csv", positive="virginica")
    np.testing.assert_array_equal(cube.values, ours.values)
    np.testing.assert_array_equal(cube["fold"], ours["fold"])
    assert cube["degree"].values.tolist() == [1, 2]
    assert cube["configuration"].values.tolist() == ["Preprocessor1_Model1", "Preprocessor1_Model2"]


def test_tidymodels_plain_cv_and_column_order_does_not_matter():
    cube = read_predictions(FILES / "tidymodels_cv.csv", positive="virginica")
    assert load_report(cube)["folds"] == 5
    frame = pd.read_csv(FILES / "tidymodels_cv.csv")
    again = read_predictions(frame[frame.columns[::-1]], positive="virginica")
    np.testing.assert_array_equal(cube.values, again.values)


def test_tidymodels_regression_summarised_and_survival_as_documented():
    numbers = read_predictions(
        table("id,.pred,.row,penalty,price,.config\nFold1,2.5,1,0.1,3,m1\nFold1,2.5,2,0.1,4,m1\n")
    )
    assert numbers["label"].values.tolist() == [3, 4]
    assert numbers["penalty"].values.tolist() == [0.1]
    mean = read_predictions(table(".pred,.row,y,.config\n2.5,1,3,m1\n1.5,2,4,m1\n"))
    assert load_report(mean)["averaged_repeats"] is True
    survival = read_predictions(table("id,.pred_time,.row,surv,.config\nFold1,200.5,1,306,m1\nFold1,150,2,1010+,m1\n"))
    assert survival["event"].values.tolist() == [1, 0]
    assert survival["label"].values.tolist() == [306, 1010]
    with pytest.raises(InputError, match=r"survival probabilities at several times"):
        read_predictions(table("id,.pred_survival,.eval_time,.row,surv\nFold1,0.5,1,1,306\nFold1,0.4,2,1,306\n"))


def test_tidymodels_bootstrap_and_ambiguous_outcome_as_documented():
    rows = "Bootstrap1,0.2,1,0,m1\nBootstrap1,0.3,2,1,m1\nBootstrap2,0.4,2,1,m1\nBootstrap2,0.5,3,0,m1\n"
    cube = read_predictions(table("id,.pred,.row,y,.config\n" + rows))
    assert cube.sizes["repeat"] == 2
    assert load_report(cube)["missing_cells"] == 2
    text = "id,.pred,.row,y,z,.config\nFold1,2.5,1,3,7,m1\nFold1,2.5,2,4,8,m1\n"
    with pytest.raises(InputError, match=r"outcome could be 'y', 'z'; say which with columns="):
        read_predictions(table(text))
    assert read_predictions(table(text), columns={"label": "z"})["label"].values.tolist() == [7, 8]


# -- mlr (real files) and mlr3 (as documented)


def test_mlr_iterations_become_repeats():
    cube = read_predictions(FILES / "mlr_repeated.csv", positive="virginica")
    assert dict(cube.sizes) == {"sample": 30, "configuration": 1, "repeat": 2}
    assert load_report(cube)["folds"] == 3
    assert set(cube["fold"].values.ravel().tolist()) == {0, 1, 2}  # numbered within each repeat
    assert read_predictions(FILES / "mlr_regression.csv")["kind"].item() == "value"


MLR3 = "row_ids,truth,response,prob.a,prob.b\n1,a,a,0.8,0.2\n2,b,a,0.6,0.4\n"


def test_mlr3_as_documented():
    cube = read_predictions(table(MLR3), positive="b")
    assert cube.values[:, 0].tolist() == [0.2, 0.4]
    stacked = table(MLR3 + "2,b,b,0.3,0.7\n1,a,a,0.9,0.1\n")
    cube = read_predictions(stacked, positive="b")
    assert cube.sizes["repeat"] == 2
    assert "appearances" in load_report(cube)["notes"][0]
    assert cube.sel(sample=2).values[0].tolist() == [0.4, 0.7]
    named = stacked.assign(iteration=[1, 2, 3, 4])
    assert read_predictions(named, positive="b").sizes["repeat"] == 2


def test_mlr3_copies_and_uneven_repeats_are_refused():
    with pytest.raises(InputError, match=r"identical predictions"):
        read_predictions(table(MLR3 + "1,a,a,0.8,0.2\n2,b,a,0.6,0.4\n"), positive="b")
    with pytest.raises(InputError, match=r"not all equally often"):
        read_predictions(table(MLR3 + "1,a,a,0.7,0.3\n"), positive="b")


def test_mlr_training_rows_are_refused():
    with pytest.raises(InputError, match=r"column 'set' holds 'test', 'train'"):
        read_predictions(table("id,truth,response,iter,set\n1,2,3,1,test\n1,2,3,1,train\n"))


# -- scikit-learn and Orange (real files)


def test_sklearn_arrays():
    from sklearn.metrics import roc_auc_score

    cube = read_predictions(FILES / "sklearn_binary.npz")
    raw = np.load(FILES / "sklearn_binary.npz")
    assert cube["configuration"].values.tolist() == ["logistic", "knn"]
    np.testing.assert_array_equal(cube.sel(configuration="knn"), raw["knn"][:, 1])
    assert all((cube["fold"].values[raw[f"test_{i}"]] == i).all() for i in range(4))
    assert roc_auc_score(raw["y"], cube.values[:, 0]) == roc_auc_score(raw["y"], raw["logistic"][:, 1])
    alone = read_predictions(FILES / "sklearn_proba.npy", labels=np.loadtxt(FILES / "sklearn_truth.txt", dtype=int))
    np.testing.assert_array_equal(alone.values[:, 0], raw["knn"][:, 1])
    assert read_predictions(FILES / "sklearn_multiclass.npz").sizes["label_class"] == 3
    assert read_predictions(FILES / "sklearn_labels.npz")["kind"].item() == "label"
    same = read_predictions({name: raw[name] for name in raw.files})
    np.testing.assert_array_equal(same.values, cube.values)


def test_orange_results():
    cube = read_predictions(FILES / "orange_results.npz")
    raw = np.load(FILES / "orange_results.npz")
    assert cube["configuration"].values.tolist() == ["naive bayes", "knn"]
    assert cube["label_class"].values.tolist() == ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    row = 17
    cell = cube.sel(sample=raw["row_indices"][row], configuration="knn")
    np.testing.assert_array_equal(cell, raw["probabilities"][1, row])
    assert load_report(cube)["folds"] == 5
    assert cell["label"].item() == raw["class_values"][int(raw["actual"][row])]
    assert read_predictions(FILES / "orange_results.npz", kind="label")["kind"].item() == "label"


def test_orange_repeats_as_documented():
    arrays = {
        "row_indices": [0, 1, 2, 3, 1, 3, 0, 2],
        "actual": [0, 1, 0, 1, 1, 1, 0, 0],
        "predicted": [[0, 1, 1, 1, 0, 1, 0, 0]],
    }
    arrays["folds"] = [[0, 2], [2, 4], [4, 6], [6, 8]]
    cube = read_predictions({name: np.array(values) for name, values in arrays.items()})
    assert dict(cube.sizes) == {"sample": 4, "configuration": 1, "repeat": 2}
    assert cube["fold"].values.tolist() == [[0, 1], [0, 0], [1, 1], [1, 0]]


def test_arrays_that_cannot_be_read():
    y = np.array([0, 1])
    with pytest.raises(InputError, match=r"truth is missing"):
        read_predictions({"knn": np.array([0.1, 0.2])})
    with pytest.raises(InputError, match=r"these are not: 'knn'"):
        read_predictions({"y": y, "knn": np.array([0.1, 0.2, 0.3])})
    with pytest.raises(InputError, match=r"could all be the label"):
        read_predictions({"y": y, "target": y, "knn": np.array([0.1, 0.2])})
    with pytest.raises(InputError, match=r"3 columns per configuration but 2 classes"):
        read_predictions({"y": y, "knn": np.ones((2, 3))})
    with pytest.raises(InputError, match=r"different widths"):
        read_predictions({"y": y, "knn": np.ones((2, 2)), "svm": np.ones(2)})


# -- OpenML (real files, written by openml-python without a server)


def test_openml_runs():
    cube = read_predictions(FILES / "openml_classification.arff")
    assert dict(cube.sizes) == {"sample": 40, "configuration": 1, "repeat": 2, "label_class": 3}
    assert cube["label_class"].values.tolist() == ["Iris-setosa", "Iris 'odd' name", "Iris, virginica"]
    assert cube.sel(sample=2, repeat=0).values[0].tolist() == [
        0.34391190082286105,
        0.4129324837795101,
        0.2431556153976289,
    ]
    assert cube["label"].sel(sample=21).item() == "Iris, virginica"
    assert cube["fold"].sel(sample=4, repeat=0).item() == 1
    assert load_report(cube)["folds"] == 4
    numbers = read_predictions(FILES / "openml_regression.arff")
    assert numbers.sel(sample=2, repeat=0).item() == 3.3345434515450867
    assert numbers["label"].sel(sample=2).item() == 4.5


def test_openml_learning_curve_is_refused():
    text = "repeat,fold,sample,row_id,prediction,correct\n0,0,0,1,a,a\n0,0,1,1,a,a\n"
    with pytest.raises(InputError, match=r"learning-curve run with 2 training sizes"):
        read_predictions(table(text))


# -- H2O, mljar, PyCaret, AutoGluon, julearn, Weka (real files)


def test_h2o():
    cube = read_predictions(FILES / "h2o_species.csv", positive="virginica")
    assert cube.values[:2, 0].tolist() == [0.90610303, 0.50304438]
    assert load_report(cube)["folds"] == 4
    integers = read_predictions(FILES / "h2o_integer_classes.csv")
    np.testing.assert_array_equal(integers.values, cube.values)
    assert integers["positive"].item() == 1
    assert read_predictions(FILES / "h2o_regression.csv")["kind"].item() == "value"
    bare = read_predictions(
        FILES / "h2o_bare.csv", labels=pd.read_csv(FILES / "h2o_truth.csv")["species"], positive="virginica"
    )
    np.testing.assert_array_equal(bare.values, cube.values)
    with pytest.raises(InputError, match=r"the truth is not in the file"):
        read_predictions(FILES / "h2o_bare.csv")
    with pytest.raises(InputError, match=r"30 of 40 rows are all zero .* per-fold frame"):
        read_predictions(FILES / "h2o_zero_filled.csv")


def test_mljar():
    cube = read_predictions(FILES / "mljar_binary.csv")
    raw = pd.read_csv(FILES / "mljar_binary.csv")
    assert cube["positive"].item() == "virginica"
    np.testing.assert_allclose(cube.values[:, 0], raw.iloc[:, 1], rtol=0, atol=2e-16)
    np.testing.assert_array_equal(cube["label"].values == "virginica", raw["target"] == 1)
    other = read_predictions(FILES / "mljar_binary.csv", positive="versicolor")
    np.testing.assert_array_equal(other.values, 1 - cube.values)
    assert any("one minus" in note for note in load_report(other)["notes"])
    three = read_predictions(FILES / "mljar_multiclass.csv")
    raw = pd.read_csv(FILES / "mljar_multiclass.csv")
    assert three["label"].values.tolist() == [["setosa", "versicolor", "virginica"][i] for i in raw["target"]]
    assert read_predictions(FILES / "mljar_regression.csv")["kind"].item() == "value"


def test_mljar_strange_targets_are_refused():
    with pytest.raises(InputError, match=r"neither the classes 'a', 'b' nor their codes"):
        read_predictions(table("target,prediction_a,prediction_b\n5,0.5,0.5\n6,0.5,0.5\n"))


def test_pycaret():
    raw = read_predictions(FILES / "pycaret_raw.csv", positive="virginica")
    single = read_predictions(FILES / "pycaret_score.csv", positive="virginica")
    np.testing.assert_allclose(raw.values, single.values, atol=1e-12)
    assert raw["sample"].values[:2].tolist() == [83, 73]
    assert load_report(raw)["ignored_columns"] == ["sl", "sw"]
    with pytest.raises(InputError, match=r"target could be 'sl', 'sw', 'pl'"):
        read_predictions(FILES / "pycaret_regression.csv")
    numbers = read_predictions(FILES / "pycaret_regression.csv", columns={"label": "pl"})
    assert numbers["label"].values[0] == 4.0
    many = table("target,prediction_label,prediction_score\na,a,0.5\nb,b,0.6\nc,c,0.7\n")
    with pytest.raises(InputError, match=r"does not give the probabilities of 3 classes"):
        read_predictions(many)
    assert read_predictions(many, kind="label")["kind"].item() == "label"


def test_autogluon():
    truth = pd.read_csv(FILES / "autogluon_truth.csv", index_col=0)["species"]
    files = {"knn": FILES / "autogluon_knn.csv", "gbm": FILES / "autogluon_gbm.csv"}
    cube = read_predictions(files, labels=truth, positive="virginica")
    assert cube["configuration"].values.tolist() == ["knn", "gbm"]
    assert cube["sample"].values[0].startswith("plant ")
    raw = pd.read_csv(files["gbm"], index_col=0)
    np.testing.assert_allclose(cube.sel(configuration="gbm"), raw["virginica"], rtol=0, atol=2e-16)
    assert load_report(cube)["averaged_repeats"] is True
    shuffled = read_predictions(files, labels=truth.sample(frac=1, random_state=1), positive="virginica")
    np.testing.assert_array_equal(shuffled["label"], cube["label"])
    with pytest.raises(InputError, match=r"give the truth with labels="):
        read_predictions(files["knn"])
    with pytest.raises(InputError, match=r"AutoGluon's out-of-fold frame has no truth"):
        read_predictions(files["knn"], format="autogluon")


def test_julearn():
    cube = read_predictions(FILES / "julearn_proba.csv", positive="virginica")
    raw = pd.read_csv(FILES / "julearn_proba.csv")
    assert cube.sizes["repeat"] == 2
    np.testing.assert_allclose(cube.values[:, 0, 1], raw["repeat1_p1"], rtol=0, atol=2e-16)
    labels = read_predictions(FILES / "julearn_predict.csv", positive="virginica")
    assert labels["kind"].item() == "label"
    with pytest.raises(InputError, match=r"2 class columns but `target` holds 3 classes"):
        read_predictions(table("target,repeat0_p0,repeat0_p1\na,.1,.9\nb,.2,.8\nc,.3,.7\n"))
    with pytest.raises(InputError, match=r"not every repeat has all of p0 to p1"):
        read_predictions(table("target,repeat0_p0,repeat0_p1,repeat1_p0\n0,.1,.9,.2\n1,.2,.8,.3\n"))


def test_weka():
    cube = read_predictions(FILES / "weka_distribution.csv")
    assert cube["label_class"].values.tolist() == ["yes", "no", "not known"]
    assert cube.sel(sample="s21").values[0].tolist() == [0.003, 0.997, 0.0]
    assert cube["label"].sel(sample="s21").item() == "yes"
    assert load_report(cube)["folds"] == 5
    labels = read_predictions(FILES / "weka_prediction.csv")
    assert labels["kind"].item() == "label"
    numbers = read_predictions(FILES / "weka_regression.csv")
    assert numbers.sel(sample="s20").item() == 3.461
    assert numbers["label"].sel(sample="s20").item() == 4.0
    with pytest.raises(InputError, match=r"`inst#` restarts in every fold .* -p <index"):
        read_predictions(FILES / "weka_no_ids.csv")
    two = table("inst#,actual,predicted,error,prediction\n1,1:yes,1:yes,,0.9\n2,2:no,1:yes,+,0.6\n")
    assert read_predictions(two, positive="no").values[:, 0].tolist() == pytest.approx([0.1, 0.4])


# -- JADBio and AMLB (as documented)


def test_jadbio_as_documented():
    text = "Sample name,Prob ( class = 0 ),Prob ( class = 1 ),Label\ns1,0.9,0.1,0\ns2,0.2,0.8,1\n"
    cube = read_predictions(table(text))
    assert cube.values[:, 0].tolist() == [0.1, 0.8]
    assert cube["positive"].item() == 1


def test_amlb_as_documented(tmp_path):
    (tmp_path / "0.csv").write_text("no,yes,predictions,truth\n0.9,0.1,no,no\n0.2,0.8,yes,yes\n")
    (tmp_path / "1.csv").write_text("no,yes,predictions,truth\n0.7,0.3,no,yes\n")
    one = read_predictions(tmp_path / "0.csv", positive="yes")
    assert one.values[:, 0].tolist() == [0.1, 0.8]
    folds = read_predictions({"forest": [tmp_path / "0.csv", tmp_path / "1.csv"]}, positive="yes")
    assert dict(folds.sizes) == {"sample": 3, "configuration": 1}
    assert folds["fold"].values.tolist() == [0, 0, 1]


# -- recognition


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("sklearn_scores.csv", "cv_results_"),
        ("caret_scores.csv", "caret"),
        ("weka_experimenter.csv", "Weka Experimenter"),
    ],
)
def test_real_score_files_are_refused(name, what):
    with pytest.raises(InputError, match=rf"this is .*{what}.* holds scores, not predictions"):
        read_predictions(FILES / name)


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ("number,value,params_x,state", "Optuna"),
        ("model,fold,accuracy", "scores per fold"),
        (".metric,.estimator,mean,n", "collect_metrics"),
        ("task,framework,fold,result", "AutoML benchmark"),
        ("model_id,auc,logloss", "leaderboard"),
        ("fit_time,score_time,test_score", "cross_validate"),
    ],
)
def test_documented_score_tables_are_refused(columns, what):
    frame = pd.DataFrame([["1"] * len(columns.split(","))] * 2, columns=columns.split(","))
    with pytest.raises(InputError, match=rf"{what}.*holds scores, not predictions"):
        read_predictions(frame)


def test_every_layout_is_recognised_by_its_own_file_and_no_other():
    files = {
        "caret_cv.csv": "caret", "tidymodels_cv.csv": "tidymodels", "mlr_repeated.csv": "mlr", "h2o_species.csv": "h2o",
        "mljar_binary.csv": "mljar", "mljar_regression.csv": "mljar", "pycaret_raw.csv": "pycaret",
        "julearn_proba.csv": "julearn", "weka_distribution.csv": "weka", "caret_repeatedcv_long.csv": "long",
    }  # fmt: skip
    for name, layout in files.items():
        columns = [column.strip('"') for column in (FILES / name).read_text().lstrip().splitlines()[0].split(",")]
        assert recognise(columns, "auto", Hints()).layout.name == layout
    assert set(files.values()) <= set(LAYOUTS)


def test_ambiguity_lists_the_candidates():
    frame = pd.DataFrame(
        {"pred": [1.0, 2.0], "obs": [1.0, 2.5], "rowIndex": [1, 2], "predict": [1.0, 2.0], "label": [1.0, 2.5]}
    )
    with pytest.raises(InputError, match=r"fit several layouts; say which: format='caret' .*; format='h2o'"):
        read_predictions(frame)
    assert load_report(read_predictions(frame, format="caret"))["layout"] == "caret"


def test_unknown_layouts_say_what_is_missing():
    with pytest.raises(InputError, match=r"Closest: 'mlr3', which also needs 'row_ids'"):
        read_predictions(pd.DataFrame({"truth": [1.0], "response": [1.0]}))
    with pytest.raises(InputError, match=r"not recognised: columns 'a', 'b'. Known layouts: long, wide"):
        read_predictions(pd.DataFrame({"a": [1.0], "b": [1.0]}))
    with pytest.raises(InputError, match=r"`format`='caret' needs columns 'pred', 'obs', 'rowIndex'; found 'a', 'b'"):
        read_predictions(pd.DataFrame({"a": [1.0], "b": [1.0]}), format="caret")
    with pytest.raises(InputError, match=r"did you mean 'caret'"):
        read_predictions(pd.DataFrame({"a": [1.0], "b": [1.0]}), format="carett")
    with pytest.raises(InputError, match=r"layout of arrays"):
        read_predictions(pd.DataFrame({"a": [1.0], "b": [1.0]}), format="sklearn")


def test_right_columns_with_wrong_values():
    with pytest.raises(InputError, match=r"has the columns of layout 'weka' but not its values"):
        read_predictions(table("inst#,actual,predicted,prediction\n1,1:a,1:a,0.5\ninst#,2:b,1:a,0.5\n"))


@pytest.mark.parametrize(
    "read_as",
    [
        "sample=id configuration=model repeat=rep fold=fold label=y prediction=prob",
        "sample=Patient_ID label=y_true prediction=y_pred",
        "sample=IDX label=Y_TRUE prediction=Y_PROBA -=Y_PRED",
        "sample=patient_id label=y_true prediction=oof_proba -=cohort",
        "sample=mbid fold=fold label=target prediction=prediction",
        "sample=id label=target prediction[0]=p0 prediction[1]=p1",
        "sample=id label=target prediction[1]=proba_1",
        "sample=id label=target prediction[0]=Proba.0",
        "sample=ID configuration=Classifier repeat=FoldColumn fold=Fold label=Target prediction=Prediction -=PredClass",
        "sample=sample configuration=model repeat=run label=y_true prediction=prediction",
    ],
)
def test_columns_that_can_be_one_thing_only_are_read_and_said(capsys, read_as):
    columns = dict(pair.split("=") for pair in read_as.split())
    p = np.array([0.1, 0.9, 0.2, 0.7])
    values = {"sample": range(4), "label": [0, 1, 0, 1], "prediction": p, "prediction[1]": p, "prediction[0]": 1 - p}
    cube = read_predictions(pd.DataFrame({name: values.get(role, 7) for role, name in columns.items()}))
    assert cube.values.ravel().tolist() == pytest.approx(p)
    columns.pop("-", None)
    assert load_report(cube)["read_as"] == columns
    assert capsys.readouterr().err.startswith("cvstats: table: read ")


def test_advice_for_columns_that_may_be_anything_works():
    frame = pd.DataFrame({name: [0, 1, 0, 1] for name in ["y", "fold", "rf", "svm"]})
    with pytest.raises(InputError) as caught:
        read_predictions(frame)
    advice = "{'label': 'y', 'prediction': ['rf', 'svm']}"
    assert str(caught.value).endswith(f"If this is right, say columns={advice}.")
    assert read_predictions(frame, columns=ast.literal_eval(advice)).sizes["sample"] == 4


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["id", "prob"], r"not recognised.*map the columns by hand"),
        (["y", "target", "prob"], r"several columns could be the label: 'y', 'target'\. Say which, for instance"),
        (["model", "y", "prob"], r"no column names the samples"),
        (["rep", "y", "rf"], r"not recognised.*map the columns by hand"),
        (["y", "fold"], r"not recognised.*map the columns by hand"),
        (["id", "fold"], r"this is a table of folds .*: it holds no predictions"),
        (["id", "y", "y_score", "y_pred"], r"several columns could be the prediction: 'y_score', 'y_pred'"),
        (["id", "y", "proba", "p0", "p1"], r"both 'proba' and 'p0', 'p1' could be the prediction"),
        (["id", "y", "pred_low", "pred_high"], r"not recognised"),
        (["run", "predictions", "labels"], r"no column names the samples; so predictions cannot be matched"),
        (["y", "prob", "row7"], r"no column names the samples; is it 'row7'\?"),
        (
            ["ctd", "date", "turbidity", "pred", "model"],
            r"'pred' is the prediction, .*, but which column is the truth\?",
        ),
    ],
)
def test_what_could_be_several_things_is_an_error_that_lists_them(columns, match):
    with pytest.raises(InputError, match=match):
        read_predictions(pd.DataFrame({name: [0, 1] for name in columns}))


def test_no_error_shows_a_regular_expression():
    for layout in LAYOUTS.values():
        assert not [word for word in layout.missing([]) if set(word) & set("\\+*?|[]^$")]


def test_several_columns_together_name_the_sample_and_the_configuration():
    rows = [(c, d, m, w, c + d / 10, m + w) for c in range(3) for d in range(2) for m in (1, 2) for w in (0, 5)]
    frame = pd.DataFrame(rows, columns=["ctd", "date", "model", "patch", "turbidity", "pred"])
    names = {"sample": "ctd+date", "configuration": "model+patch", "label": "turbidity"}
    cube = read_predictions(frame, columns=names)
    assert dict(cube.sizes) == {"sample": 6, "configuration": 4}
    assert cube["sample"].values[:2].tolist() == ["ctd=0, date=0", "ctd=0, date=1"]
    assert load_report(cube)["read_as"] == {**names, "prediction": "pred"}
    plus = (
        frame.rename(columns={"ctd": "ctd+date"}).drop(columns="date").drop_duplicates(["ctd+date", "model", "patch"])
    )
    assert read_predictions(plus, columns=names)["sample"].values.tolist() == [0, 1, 2]  # an exact name wins


def test_splits_numbered_throughout_are_repeats():
    rng = np.random.default_rng(1)
    folds = np.stack([rng.permutation(20) % 5 for _ in range(3)], axis=1)
    parts = [
        pd.DataFrame(
            {"id": range(20), "model": m, "split": folds[:, r] + 5 * r, "y": [0, 1] * 10, "prob": rng.random(20)}
        )
        for r in range(3)
        for m in "ab"
    ]
    frame = pd.concat(parts, ignore_index=True)
    cube = read_predictions(frame)
    assert dict(cube.sizes) == {"sample": 20, "configuration": 2, "repeat": 3}
    assert np.array_equal(cube["fold"], folds)
    assert np.array_equal(
        cube.sel(configuration="b").values, np.stack([parts[2 * r + 1]["prob"] for r in range(3)], axis=1)
    )
    assert read_predictions(frame.sample(frac=1, random_state=1)).sel({d: cube[d] for d in cube.dims}).equals(cube)
    with pytest.raises(InputError, match="duplicate rows"):  # splits that do not partition the samples
        read_predictions(frame.assign(split=frame["split"].where(frame["id"] > 0, 7)))


def test_assembled_metatasks():
    rng, labels = np.random.default_rng(1), np.array(["ill", "well", "dead"] * 4)
    hard = pd.DataFrame({"Index-Metatask": range(12), "Fold": np.arange(12) % 4, "ground_truth": labels})
    hard = hard.assign(**{name: rng.permutation(labels) for name in ("rf", "svm")})
    cube = read_predictions(hard)
    assert (cube.sizes["configuration"], cube["kind"].item()) == (2, "label")
    p = rng.dirichlet([1, 1, 1], (12, 2))
    soft = hard.rename(columns={"ground_truth": "class"}).assign(V1=rng.random(12))
    soft = soft.assign(
        **{
            f"confidence.{c}.{m}": p[:, j, k]
            for j, m in enumerate(("rf", "svm"))
            for k, c in enumerate(("ill", "well", "dead"))
        }
    )
    cube = read_predictions(soft)
    assert np.array_equal(
        cube.sel(label_class=["ill", "well", "dead"]).transpose("sample", "configuration", "label_class"), p
    )
    assert load_report(cube)["layout"] == "assembled"
    assert load_report(cube)["ignored_columns"] == ["V1"]


def test_wide_whole_numbers_are_numbers_beside_fractions_and_alone(tmp_path):
    frame = pd.DataFrame({"sample": range(6), "label": [0, 1] * 3, "points": [0, 5, 2, 7, 0, 3]})
    for other in ([0.1, 0.9, 0.2, 0.8, 0.3, 0.7], [1, 4, 3, 9, 0, 2]):
        frame["other"] = other
        frame.to_csv(tmp_path / "wide.csv", index=False)
        both = {"columns": {"prediction": ["points", "other"]}}
        typed, written = read_predictions(frame, **both), read_predictions(tmp_path / "wide.csv", **both)
        assert typed.coords["kind"].item() == written.coords["kind"].item() == "score"
        np.testing.assert_array_equal(typed.values, frame[["points", "other"]])
        np.testing.assert_array_equal(written.values, typed.values)


def test_tidymodels_survival_with_its_own_event_column():
    text = "id,.pred_time,.row,.config,time,status\nFold1,3,1,m1,2,1\nFold2,5,2,m1,4,0\n"
    cube = read_predictions(table(text), columns={"label": "time", "event": "status"})
    assert cube["label"].values.tolist() == [2, 4]
    assert cube["event"].values.tolist() == [1, 0]


def test_weka_instances_are_numbers():
    with pytest.raises(InputError, match=r"`inst#` must number the rows"):
        read_predictions(
            table("inst#,actual,predicted,error,prediction\ninf,1:yes,1:yes,,0.9\n-inf,2:no,1:yes,+,0.6\n")
        )


def test_tidymodels_event_is_yardsticks_and_workflows_name_configurations():
    text = "wflow_id,.config,id,.row,.pred_ill,.pred_well,.pred_class,outcome\n" + "".join(
        f"{w},pre0_mod{m},Resample{i % 3 + 1},{i},0.{i + m},0.{9 - i - m + 1},ill,{'ill' if i % 2 else 'well'}\n"
        for w in ("knn", "tree")
        for m in (1, 2)
        for i in range(1, 7)
    )
    cube = read_predictions(table(text))
    assert (cube["positive"].item(), cube.values[0, 0]) == ("ill", 0.2)
    assert "the event is 'ill', the first level, as yardstick takes it" in load_report(cube)["notes"][0]
    assert cube["configuration"].values[[0, 3]].tolist() == [
        "wflow_id=knn, .config=pre0_mod1",
        "wflow_id=tree, .config=pre0_mod2",
    ]
    assert cube["fold"].values.tolist() == [f"Resample{i % 3 + 1}" for i in range(1, 7)]  # of group_vfold_cv()
    assert read_predictions(table(text), positive="well").values[0, 0] == 0.8
    classes = read_predictions(table(text).drop(columns=[".pred_ill", ".pred_well"]), positive="ill")
    assert classes["kind"].item() == "label"
