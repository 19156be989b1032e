"""Train the bundled examples with scikit-learn: ``python benchmarks/make_example.py`` (ten minutes, one core).

Nothing imports this file. It is kept beside the data so that anyone can see how every number was made.

breast_cancer
    Wisconsin diagnostic breast cancer data. Can a malignant tumour be told from the *texture, smoothness, symmetry and
    fractal dimension* of its cell nuclei, without their size? A stratified random sample of 120 of the 569 patients is
    the study; the other 449 are never used for training or tuning and give `test_auc` and `test_accuracy`
    of every configuration refitted on the whole study: what is being estimated.
    133 configurations, five repeats of stratified 10-fold CV, all transforms fitted inside the training folds.
    Inner predictions: stratified 5-fold CV inside the training set of every outer fold of every repeat.
    Training predictions: each outer fold's model on its own training set (first repeat).
breast_cancer_separate
    A case-control sample, 60 malignant and 60 benign whatever their frequency, with (5, 5)-fold separate-sampling CV.
diabetes
    Disease progression of 120 of 442 diabetes patients (regression); the others give `test_rmse`.
iris
    Species from sepal length and width only (three classes).

Probabilities are saved with four decimals as integers, 65535 = not predicted.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

Grid = list[tuple[str, dict[str, float], Any]]
MISSING = 65535
HERE = Path(__file__).parents[1] / "cvstats" / "data"


def scaled(*steps: Any) -> Any:
    """Return a pipeline that standardises first, inside the training fold."""
    return make_pipeline(StandardScaler(), *steps)


def logistic(c: float, **options: Any) -> Any:
    """Return a ridge logistic regression."""
    return LogisticRegression(C=c, max_iter=5000, **options)


def classifiers() -> Grid:
    """Return (family, tuning values, estimator), families and values from the simplest to the most flexible."""
    grid: Grid = []
    for smoothing in (1.0, 0.5, 0.1, 0.001, 1e-9):
        grid.append(("naive Bayes", {"var_smoothing": smoothing}, scaled(GaussianNB(var_smoothing=smoothing))))
    for shrinkage in (0.9, 0.75, 0.5, 0.25, 0.1, 0.0):
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
        grid.append(("linear discriminant", {"shrinkage": shrinkage}, scaled(lda)))
    for c in np.logspace(-3, 2, 10).round(5):
        grid.append(("ridge logistic", {"C": c}, scaled(logistic(c))))
    for c in np.logspace(-1.5, 1.5, 8).round(4):
        grid.append(("lasso logistic", {"C": c}, scaled(logistic(c, l1_ratio=1.0, solver="liblinear"))))
    for k in range(1, 11):
        grid.append(("screened logistic", {"n_features": k}, scaled(SelectKBest(k=k), logistic(1.0))))
    for k in range(1, 9):
        grid.append(("PCA logistic", {"n_components": k}, scaled(PCA(k), logistic(1.0))))
    for c in np.logspace(-3, 0.5, 8).round(5):
        grid.append(("quadratic logistic", {"C": c}, scaled(PolynomialFeatures(2), StandardScaler(), logistic(c))))
    for value in (0.9, 0.75, 0.5, 0.25, 0.1, 0.01):
        qda = QuadraticDiscriminantAnalysis(reg_param=value)
        grid.append(("quadratic discriminant", {"reg_param": value}, scaled(qda)))
    for gamma in (0.01, 0.03, 0.1, 0.3):
        for c in (0.1, 1.0, 10.0):
            kernel = Nystroem(gamma=gamma, n_components=60, random_state=0)
            grid.append(("kernel logistic", {"gamma": gamma, "C": c}, scaled(kernel, logistic(c))))
    for k in (31, 21, 15, 11, 9, 7, 5, 3, 1):
        for weights in ("uniform", "distance"):
            values = {"n_neighbors": float(k), "distance_weights": float(weights == "distance")}
            grid.append(("nearest neighbours", values, scaled(KNeighborsClassifier(k, weights=weights))))
    for depth in (1, 2, 3, 4, 6):
        for leaf in (10, 5, 1):
            tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0)
            grid.append(("tree", {"max_depth": depth, "min_samples_leaf": leaf}, tree))
    forests = {"forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}
    for family, forest in forests.items():
        for leaf in (8, 3, 1):
            for width in (1, 3, 6):
                model = forest(40, max_features=width, min_samples_leaf=leaf, random_state=0)
                grid.append((family, {"max_features": width, "min_samples_leaf": leaf}, model))
    for depth in (1, 2, 3):
        for rate in (0.03, 0.1, 0.3):
            boost = GradientBoostingClassifier(n_estimators=50, learning_rate=rate, max_depth=depth, random_state=0)
            grid.append(("boosting", {"max_depth": depth, "learning_rate": rate}, boost))
    return grid


def regressors() -> Grid:
    """Return the regression grid."""
    grid: Grid = [("ridge", {"alpha": a}, scaled(Ridge(a))) for a in np.logspace(3, -1, 12).round(3)]
    grid += [("lasso", {"alpha": a}, scaled(Lasso(a, max_iter=20000))) for a in np.logspace(1.4, -0.5, 12).round(3)]
    grid += [
        ("nearest neighbours", {"n_neighbors": k}, scaled(KNeighborsRegressor(k))) for k in (31, 21, 15, 11, 7, 5, 3)
    ]
    for leaf in (10, 5, 2):
        for width in (1, 3, 6):
            model = RandomForestRegressor(40, max_features=width, min_samples_leaf=leaf, random_state=0)
            grid.append(("forest", {"max_features": width, "min_samples_leaf": leaf}, model))
    return grid


def describe(grid: Grid) -> dict[str, Any]:
    """Return what is saved about each configuration: its name, family, tuning values and complexity."""
    names = [f"{family} " + " ".join(f"{k}={v:g}" for k, v in values.items()) for family, values, _ in grid]
    saved: dict[str, Any] = {"configuration": np.array(names), "family": np.array([row[0] for row in grid])}
    saved["complexity"] = np.arange(1, len(grid) + 1)
    for name in dict.fromkeys(key for _, values, _ in grid for key in values):
        saved[f"tuning_{name}"] = np.array([values.get(name, np.nan) for _, values, _ in grid], float)
    return saved


def predict(model: Any, x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Fit a copy on (x, y) and predict `new`: probabilities of the positive class, of all classes, or values."""
    fitted = clone(model).fit(x, y)
    if not hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict(new))
    probability = np.asarray(fitted.predict_proba(new))
    return probability[:, 1] if probability.shape[1] == 2 else probability


def fold_ids(splitter: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the number (from 0) of the fold that holds each sample out."""
    fold = np.empty(len(y), np.int64)
    for number, (_, test) in enumerate(splitter.split(x, y)):
        fold[test] = number
    return fold


def packed(probability: np.ndarray) -> np.ndarray:
    """Return probabilities with four decimals as uint16, NaN as 65535."""
    return np.where(np.isnan(probability), MISSING, np.round(np.nan_to_num(probability) * 1e4)).astype(np.uint16)


def save(name: str, **arrays: Any) -> None:
    """Write one compressed file beside this script."""
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def size_free() -> tuple[np.ndarray, np.ndarray]:
    """Return the twelve features that do not measure size, and 1 for malignant."""
    data = datasets.load_breast_cancer(as_frame=True)
    wanted = ("texture", "smoothness", "symmetry", "fractal dimension")
    x = data.data[[c for c in data.data.columns if any(w in c for w in wanted)]].to_numpy()
    return x, 1 - data.target.to_numpy()


def breast_cancer(repeats: int = 5, k: int = 10, inner_k: int = 5) -> None:
    """Train the main example with its inner and training predictions."""
    everything, truth = size_free()
    study, rest = train_test_split(np.arange(len(truth)), train_size=120, stratify=truth, random_state=2)
    study.sort()
    x, y, grid = everything[study], truth[study], classifiers()
    n, c = len(y), len(grid)
    outer = np.full((n, c, repeats), np.nan)
    inner = np.full((n, c, k, repeats), np.nan)
    training = np.full((n, c, k), np.nan)
    fold = np.empty((n, repeats), np.int64)
    inner_fold = np.full((n, k, repeats), -1)
    for r in range(repeats):
        fold[:, r] = fold_ids(StratifiedKFold(k, shuffle=True, random_state=r), x, y)
        for i in range(k):
            train = np.flatnonzero(fold[:, r] != i)
            test = np.flatnonzero(fold[:, r] == i)
            splitter = StratifiedKFold(inner_k, shuffle=True, random_state=1000 * r + i)
            inner_fold[train, i, r] = fold_ids(splitter, x[train], y[train])
            for j, (_, _, model) in enumerate(grid):
                both = predict(model, x[train], y[train], x)
                outer[test, j, r] = both[test]
                if r == 0:
                    training[train, j, i] = both[train]
                for inside in range(inner_k):
                    held = np.flatnonzero(inner_fold[:, i, r] == inside)
                    fit = np.setdiff1d(train, held)
                    inner[held, j, i, r] = predict(model, x[fit], y[fit], x[held])
    test_auc, test_accuracy = np.empty(c), np.empty(c)
    for j, (_, _, model) in enumerate(grid):
        p = predict(model, x, y, everything[rest])
        test_auc[j] = roc_auc_score(truth[rest], p)
        test_accuracy[j] = np.mean((p > 0.5) == truth[rest])
    common = {"sample": study, "label": np.array(["benign", "malignant"])[y], **describe(grid)}
    tests = {"tuning_test_auc": test_auc.round(4), "tuning_test_accuracy": test_accuracy.round(4)}
    save("breast_cancer", prediction=packed(outer), fold=fold, **common, **tests)
    save("breast_cancer_inner", prediction=packed(inner), fold=inner_fold, **common)
    save("breast_cancer_training", prediction=packed(training), **common)


def separate(k: int = 5, repeats: int = 3) -> None:
    """Train the separate-sampling example: leave one fold of each class out, for every pair of folds."""
    everything, truth = size_free()
    rng = np.random.default_rng(7)
    chosen = np.sort(np.concatenate([rng.choice(np.flatnonzero(truth == g), 60, replace=False) for g in (0, 1)]))
    x, y = everything[chosen], truth[chosen]
    grid = [row for row in classifiers() if row[0] in ("naive Bayes", "linear discriminant", "ridge logistic", "tree")]
    out = np.full((len(y), len(grid), k, repeats), np.nan)
    fold = np.empty((len(y), repeats), np.int64)
    for r in range(repeats):
        for g in (0, 1):
            members = np.flatnonzero(y == g)
            fold[members, r] = fold_ids(KFold(k, shuffle=True, random_state=10 * r + g), x[members], y[members])
        for a in range(k):
            for b in range(k):
                left = ((y == 0) & (fold[:, r] == a)) | ((y == 1) & (fold[:, r] == b))
                partner = np.where(y[left] == 0, b, a)
                for j, (_, _, model) in enumerate(grid):
                    out[np.flatnonzero(left), j, partner, r] = predict(model, x[~left], y[~left], x[left])
    label = np.array(["benign", "malignant"])[y]
    save("breast_cancer_separate", prediction=packed(out), fold=fold, sample=chosen, label=label, **describe(grid))


def diabetes(repeats: int = 2, k: int = 10) -> None:
    """Train the regression example."""
    data = datasets.load_diabetes()
    study, rest = train_test_split(np.arange(len(data.target)), train_size=120, random_state=1)
    study.sort()
    x, y, grid = data.data[study], data.target[study], regressors()
    out, fold = np.empty((len(y), len(grid), repeats), np.float32), np.empty((len(y), repeats), np.int64)
    for r in range(repeats):
        fold[:, r] = fold_ids(KFold(k, shuffle=True, random_state=r), x, y)
        for i in range(k):
            test = fold[:, r] == i
            for j, (_, _, model) in enumerate(grid):
                out[test, j, r] = predict(model, x[~test], y[~test], x[test])
    miss = [predict(model, x, y, data.data[rest]) - data.target[rest] for _, _, model in grid]
    rmse = np.sqrt(np.mean(np.square(miss), axis=1)).round(3)
    common = {"sample": study, "label": y, **describe(grid), "tuning_test_rmse": rmse}
    save("diabetes", prediction=out.round(2), fold=fold, **common)


def iris(repeats: int = 2, k: int = 10) -> None:
    """Train the three-class example."""
    data = datasets.load_iris()
    x, y = data.data[:, :2], data.target
    families = ("naive Bayes", "linear discriminant", "ridge logistic", "nearest neighbours", "tree")
    grid = [row for row in classifiers() if row[0] in families]
    out = np.empty((len(y), len(grid), repeats, 3))
    fold = np.empty((len(y), repeats), np.int64)
    for r in range(repeats):
        fold[:, r] = fold_ids(StratifiedKFold(k, shuffle=True, random_state=r), x, y)
        for i in range(k):
            test = fold[:, r] == i
            for j, (_, _, model) in enumerate(grid):
                out[test, j, r] = predict(model, x[~test], y[~test], x[test])
    label = np.array([str(name) for name in data.target_names])
    common = {"sample": np.arange(len(y)), "label": label[y], "label_class": label, **describe(grid)}
    save("iris", prediction=packed(out), fold=fold, **common)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # liblinear and QDA warn about the very values the grid is meant to cover
    for make in sys.argv[1:] or ["iris", "diabetes", "separate", "breast_cancer"]:
        globals()[make]()
