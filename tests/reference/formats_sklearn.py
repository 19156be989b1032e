"""Predictions and scores as scikit-learn users save them. Run from the repository root."""

import warnings

import numpy as np
import pandas as pd
import sklearn
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.neighbors import KNeighborsClassifier

warnings.simplefilter("ignore")
x, y = load_iris(return_X_y=True)
rows = np.random.default_rng(0).permutation(150)[:60]
x, y = x[rows, :2], y[rows]
two = y > 0
x2, y2 = x[two], (y[two] == 2).astype(int)
cv = StratifiedKFold(4, shuffle=True, random_state=1)
models = {"logistic": LogisticRegression(), "knn": KNeighborsClassifier(5)}
test = cross_validate(models["knn"], x2, y2, cv=cv, return_indices=True)["indices"]["test"]
proba = {name: cross_val_predict(model, x2, y2, cv=cv, method="predict_proba") for name, model in models.items()}
np.savez("tests/files/sklearn_binary.npz", y=y2, **proba, **{f"test_{i}": part for i, part in enumerate(test)})
np.save("tests/files/sklearn_proba.npy", proba["knn"])
np.savetxt("tests/files/sklearn_truth.txt", y2, fmt="%d")
three = {name: cross_val_predict(model, x, y, cv=cv, method="predict_proba") for name, model in models.items()}
np.savez_compressed("tests/files/sklearn_multiclass.npz", y=y, classes=np.array([0, 1, 2]), **three)
labels = {name: cross_val_predict(model, x, y, cv=cv) for name, model in models.items()}
np.savez("tests/files/sklearn_labels.npz", y_true=y, **labels)
grid = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 5]}, cv=cv).fit(x2, y2)
pd.DataFrame(grid.cv_results_).to_csv("tests/files/sklearn_scores.csv", index=False)
with open("tests/files/sklearn_version.txt", "w") as file:
    file.write(f"scikit-learn {sklearn.__version__}\n")
