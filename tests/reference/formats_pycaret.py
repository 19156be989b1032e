"""Hold-out predictions as PyCaret's predict_model returns them (pip install pycaret). Run from the repository root."""

import warnings

import numpy as np
import pycaret
from pycaret.classification import ClassificationExperiment
from pycaret.regression import RegressionExperiment
from sklearn.datasets import load_iris

warnings.simplefilter("ignore")
data = load_iris(as_frame=True)
frame = data.frame[data.frame.target > 0].sample(80, random_state=1)
frame.columns = ["sl", "sw", "pl", "pw", "target"]
frame["species"] = np.array(data.target_names)[frame.target]
exp = ClassificationExperiment()
exp.setup(frame[["sl", "sw", "species"]], target="species", session_id=1, verbose=False, html=False, n_jobs=1, fold=3)
model = exp.create_model("lda", verbose=False)
exp.predict_model(model, verbose=False).to_csv("tests/files/pycaret_score.csv")
exp.predict_model(model, raw_score=True, verbose=False).to_csv("tests/files/pycaret_raw.csv")
reg = RegressionExperiment()
reg.setup(frame[["sl", "sw", "pl"]], target="pl", session_id=1, verbose=False, html=False, n_jobs=1, fold=3)
reg.predict_model(reg.create_model("lr", verbose=False), verbose=False).to_csv("tests/files/pycaret_regression.csv")
with open("tests/files/pycaret_version.txt", "w") as file:
    file.write(f"pycaret {pycaret.__version__}\n")
