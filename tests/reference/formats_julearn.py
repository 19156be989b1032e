"""Predictions as julearn's inspector returns them (pip install julearn). Run from the repository root."""

import warnings

import julearn
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold

warnings.simplefilter("ignore")
data = load_iris(as_frame=True)
frame = data.frame[data.frame.target > 0].sample(40, random_state=1)
frame.columns = ["sl", "sw", "pl", "pw", "target"]
frame["species"] = np.array(data.target_names)[frame.target]
cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=0)
scores, model, inspector = julearn.run_cross_validation(
    X=["sl", "sw"], y="species", data=frame, model="logit", problem_type="classification", cv=cv, return_inspector=True
)
inspector.folds.predict_proba().to_csv("tests/files/julearn_proba.csv")
inspector.folds.predict().to_csv("tests/files/julearn_predict.csv")
with open("tests/files/julearn_version.txt", "w") as file:
    file.write(f"julearn {julearn.__version__}\n")
