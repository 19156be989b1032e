"""The door of scikit-learn: collect() equals cross_val_predict, record() keeps what a search itself predicted."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import cvstats as cs
from cvstats.sklearn import collect, record

X, Y = (part[:120] for part in load_breast_cancer(return_X_y=True))
CV = StratifiedKFold(4, shuffle=True, random_state=3)
KNN = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15], "p": [1, 2]})


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails where the training set holds the first sample."""

    def __init__(self, depth=1):
        self.depth = depth

    def fit(self, X, y):
        if self.depth > 1 and 17.99 in X[:, 0]:
            raise RuntimeError("too deep")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile([0.4, 0.6], (len(X), 1))


def test_collect_equals_cross_val_predict():
    cube = collect({"knn": KNN, "tree": DecisionTreeClassifier(max_depth=2, random_state=0)}, X, Y, cv=CV)
    assert dict(cube.sizes) == {"sample": 120, "configuration": 7}
    assert cube.configuration.values.tolist()[-1] == "tree"
    assert cube.family.values.tolist() == ["knn"] * 6 + ["tree"]
    assert cube.n_neighbors.values[:6].tolist() == [1, 1, 5, 5, 15, 15]
    assert np.isnan(cube.n_neighbors.values[6])
    for name, mine in zip(cube.configuration.values, cube.transpose("configuration", ...).values, strict=True):
        if name == "tree":
            model = DecisionTreeClassifier(max_depth=2, random_state=0)
        else:
            at = cube.sel(configuration=name)
            model = KNeighborsClassifier(n_neighbors=int(at.n_neighbors), p=int(at.p))
        np.testing.assert_array_equal(mine, cross_val_predict(model, X, Y, cv=CV, method="predict_proba")[:, 1])
    for number, (_, test) in enumerate(CV.split(X, Y)):
        assert (cube.fold.values[test] == number).all()


def test_repeats_groups_names_and_seeds():
    frame = pd.DataFrame(X[:, :5], index=[f"p{i}" for i in range(120)])
    groups = np.arange(120) // 3
    cube = collect(KNN, frame, pd.Series(np.where(Y == 1, "yes", "no"), frame.index), groups=groups, repeats=2, rng=1)
    assert cube.sizes["repeat"] == 2
    assert cube.sample.values[0] == "p0"
    assert cube.positive.item() == "yes"
    assert (cube.fold.values.reshape(40, 3, 2) == cube.fold.values[::3][:, None]).all()  # groups are whole
    assert not np.array_equal(cube.fold.values[:, 0], cube.fold.values[:, 1])
    again = collect(KNN, frame, pd.Series(np.where(Y == 1, "yes", "no"), frame.index), groups=groups, repeats=2, rng=1)
    assert again.identical(cube)
    forest = RandomizedSearchCV(RandomForestClassifier(5), {"max_depth": range(1, 9)}, n_iter=3)
    one, two = (collect(forest, X, Y, cv=3, rng=5) for _ in range(2))
    assert one.identical(two)
    assert one.sizes["configuration"] == 3


def test_repeated_splitters_become_repeats():
    cube = collect(KNN, X, Y, cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert cube.sizes["repeat"] == 2
    assert cube.notnull().all()


def test_numbers_classes_and_hard_labels():
    x, y = (part[:60] for part in load_diabetes(return_X_y=True))
    cube = collect(GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}), x, y, cv=KFold(3))
    assert cube.kind.item() == "value"
    np.testing.assert_allclose(cube.values[:, 1], cross_val_predict(Ridge(alpha=10.0), x, y, cv=KFold(3)), rtol=1e-12)
    x, y = load_iris(return_X_y=True)
    several = collect({"lr": LogisticRegression(max_iter=500), "svm": SVC()}, x, y, cv=3, rng=1)
    assert several.kind.item() == "label"
    assert float(cs.score(several, "accuracy").min()) > 0.9
    names = np.array(["a", "b", "c"])[y]
    text = collect({"lr": LogisticRegression(max_iter=500), "svm": SVC()}, x, names, cv=3, rng=1)
    np.testing.assert_array_equal(cs.score(text, "accuracy"), cs.score(several, "accuracy"))


def test_probabilities_beside_decision_values_become_scores():
    models = {
        "svm": make_pipeline(StandardScaler(), SVC()),
        "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    }
    with pytest.warns(cs.CvstatsWarning, match="threshold 0"):
        cube = collect(models, X, Y, cv=CV)
    assert cube.kind.item() == "score"
    alone = collect({"tree": models["tree"]}, X, Y, cv=CV)
    for metric in ("auc", "accuracy"):
        assert float(cs.score(cube, metric)[1]) == float(cs.score(alone, metric)[0])


def test_a_candidate_that_fails_is_missing_there():
    with pytest.warns(
        cs.CvstatsWarning, match=r"3 of 8 fits failed and are NaN \('Fragile depth=2'\); first: RuntimeError: too"
    ):
        cube = collect(GridSearchCV(Fragile(), {"depth": [1, 2]}), X, Y, cv=CV)
    assert cube.notnull().all("sample").values.tolist() == [True, False]
    assert cube.notnull().sum("sample").values.tolist() == [120, 30]
    with pytest.raises(cs.InputError, match="every candidate failed"):
        collect(Fragile(depth=2), X, Y, cv=[(np.arange(60), np.arange(60, 120))])


def test_inner_predictions_serve_nested_protocols():
    cube, inner = collect(KNN, X, Y, cv=3, inner=True, rng=1)
    assert set(inner.dims) == {"sample", "configuration", "outer_fold"}
    np.testing.assert_array_equal(inner.isnull().all("configuration").transpose(*inner.fold.dims), inner.fold == -1)
    out = cs.ncv(cube, "accuracy", inner=inner)
    assert 0.8 < float(out.estimate) <= 1
    outer = int(cube.fold[0])
    train = np.flatnonzero(cube.fold.values != outer)
    fold = inner.fold.sel(outer_fold=outer).values
    splits = [(np.flatnonzero((fold >= 0) & (fold != k)), np.flatnonzero(fold == k)) for k in range(3)]
    model = KNeighborsClassifier(n_neighbors=1, p=1)
    for a, b in splits:
        expected = model.fit(X[a], Y[a]).predict_proba(X[b])[:, 1]
        np.testing.assert_array_equal(inner.sel(outer_fold=outer).isel(configuration=0, sample=b), expected)
    assert set(np.concatenate([b for _, b in splits])) == set(train)
    cube, inner = collect(KNN, X, Y, cv=3, repeats=2, inner=True, rng=1)
    assert np.isfinite(float(cs.ncv(cube, "accuracy", inner=inner).estimate))


def test_a_class_that_a_training_set_lacks_has_probability_zero():
    x, y = load_iris(return_X_y=True)
    with pytest.warns(cs.CvstatsWarning, match="SVC"):
        cube = collect({"SVC": SVC(), "knn": KNeighborsClassifier()}, x, y, cv=KFold(3))
    assert cube.notnull().all(["sample", "label_class"]).values.tolist() == [False, True]
    cube = collect(KNeighborsClassifier(), x, y, cv=KFold(3))
    assert float(cs.score(cube, "accuracy")[0]) == 0
    assert (cube.sum("label_class") == 1).all()


@pytest.mark.parametrize(
    ("models", "more", "text"),
    [
        ({}, {}, "is empty"),
        ({"a": 3}, {}, "must be an estimator or a search; got int"),
        ({"a": Ridge(), "b": KNeighborsClassifier()}, {}, "classifiers and regressors"),
        (KNN, {"cv": ShuffleSplit(5, random_state=0)}, "again before all others were tested"),
        (KNN, {"cv": KFold(3), "repeats": 2}, "this one would repeat itself"),
        (KNN, {"cv": GroupKFold(3), "groups": np.arange(120) // 2, "repeats": 2}, "would repeat itself"),
    ],
)
def test_what_cannot_be_collected_says_why(models, more, text):
    with pytest.raises(cs.InputError, match=text):
        collect(models, X, Y, **more)


def test_indexes_must_agree():
    frame = pd.DataFrame(X)
    with pytest.raises(cs.InputError, match="index of `X` and that of `y` differ"):
        collect(KNN, frame, pd.Series(Y, index=np.arange(120)[::-1]))


@pytest.mark.parametrize("jobs", [None, 2])
def test_record_keeps_what_the_search_predicted(tmp_path, jobs):
    scorer = record(tmp_path / "run", "roc_auc", X, Y, CV)
    search = GridSearchCV(KNN.estimator, KNN.param_grid, scoring=scorer, cv=CV, n_jobs=jobs, return_train_score=True)
    search.fit(X, Y)
    cube = cs.read_cube(tmp_path / "run")
    whole = collect(KNN, X, Y, cv=CV)
    assert sorted(cube.configuration.values) == [
        name.replace("KNeighborsClassifier ", "") for name in sorted(whole.configuration.values)
    ]
    np.testing.assert_array_equal(cube.sel(configuration=whole.configuration.values), whole)
    by_fold = cs.score(cube, "auc", average="fold")
    results = {
        f"n_neighbors={p['n_neighbors']}, p={p['p']}": s
        for p, s in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    np.testing.assert_allclose(by_fold, [results[name] for name in by_fold.configuration.values], rtol=1e-12)


def test_an_interrupted_search_leaves_what_it_had_done(tmp_path):
    """The process is ended in the middle; starting again completes the same recording."""
    code = f"""
import os
import sys
sys.path.insert(0, {str(cs.__file__).rsplit("/cvstats/", 1)[0]!r})
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from cvstats.sklearn import Recorder, record
x, y = (part[:120] for part in load_breast_cancer(return_X_y=True))
cv = StratifiedKFold(4, shuffle=True, random_state=3)
scorer = record(sys.argv[1], "roc_auc", x, y, cv)
calls = 0
class Dying(Recorder):
    def __call__(self, *parts):
        global calls
        calls += 1
        if calls > int(sys.argv[2]):
            os._exit(9)
        return super().__call__(*parts)
scorer = Dying(scorer.folder, scorer.scoring, scorer.known, scorer.classes)
GridSearchCV(KNeighborsClassifier(), {{"n_neighbors": [1, 5, 15]}}, scoring=scorer, cv=cv).fit(x, y)
"""
    path = tmp_path / "run"
    assert subprocess.run([sys.executable, "-c", code, path, "6"], check=False).returncode == 9
    part = cs.read_cube(path)
    assert part.notnull().sum("sample").values.tolist() == [120, 60]
    assert subprocess.run([sys.executable, "-c", code, path, "99"], check=False).returncode == 0
    cube = cs.read_cube(path)
    assert cube.notnull().all()
    assert cube.n_neighbors.values.tolist() == [1, 5, 15]


def test_what_is_recorded_is_predicted_once(tmp_path, monkeypatch):
    asked, own = [], SVC.decision_function

    def decision_function(self, rows):
        asked.append(len(rows))
        return own(self, rows)

    monkeypatch.setattr(SVC, "decision_function", decision_function)
    scorer = record(tmp_path / "run", "roc_auc", X, Y, CV)
    search = GridSearchCV(SVC(), {"C": [1, 10]}, scoring=scorer, cv=CV, refit=False)
    recorded = search.fit(X, Y).cv_results_["mean_test_score"]
    assert len(asked) == 2 * CV.get_n_splits()
    plain = search.set_params(scoring="roc_auc").fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(recorded, plain)


def test_two_searches_share_a_recording(tmp_path):
    scorer = record(tmp_path / "run", None, X, Y, CV)
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, scoring=scorer, cv=CV).fit(X, Y)
    scorer = record(tmp_path / "run", None, X, Y, CV)
    GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, scoring=scorer, cv=CV).fit(X, Y)
    cube = cs.read_cube(tmp_path / "run")
    assert cube.configuration.values.tolist() == [
        "DecisionTreeClassifier max_depth=1", "DecisionTreeClassifier max_depth=2",
        "KNeighborsClassifier n_neighbors=1", "KNeighborsClassifier n_neighbors=5",
    ]  # fmt: skip


def test_what_cannot_be_recorded_says_why(tmp_path):
    with pytest.raises(cs.InputError, match="random_state"):
        record(tmp_path / "a", None, X, Y, StratifiedKFold(3, shuffle=True))
    with pytest.raises(cs.InputError, match="hold the same data"):
        record(tmp_path / "a", None, np.zeros((6, 1)), np.array([0, 1] * 3), KFold(3))
    scorer = record(tmp_path / "a", None, X, Y, CV)
    with pytest.raises(cs.InputError, match="no predictions yet"):
        cs.read_cube(tmp_path / "a")
    other = StratifiedKFold(4, shuffle=True, random_state=4)
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, scoring=scorer, cv=other).fit(X, Y)
    with pytest.raises(cs.InputError, match="no predictions yet"):
        cs.read_cube(tmp_path / "a")
    with pytest.raises(cs.InputError, match="other samples, labels or splits"):
        record(tmp_path / "a", None, X, Y, other)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_text("")
    with pytest.raises(cs.InputError, match="is not a recording"):
        record(tmp_path / "b", None, X, Y, CV)


def test_a_recording_holds_no_code(tmp_path):
    """Neither pickles nor files of other splits are read."""
    scorer = record(tmp_path / "run", None, X, Y, CV)
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, scoring=scorer, cv=CV).fit(X, Y)
    call = next((tmp_path / "run").glob("*-0.npy"))
    np.save(call, np.array([{}], object), allow_pickle=True)
    with pytest.raises((cs.InputError, ValueError)):
        cs.read_cube(tmp_path / "run")
    about = json.loads(next((tmp_path / "run").glob("*.json")).read_text())
    assert about["family"] == "KNeighborsClassifier"
