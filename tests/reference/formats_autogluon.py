"""Out-of-fold predictions of AutoGluon (pip install "autogluon.tabular[lightgbm]"). Run from the repository root."""

import shutil
import warnings

import numpy as np
from autogluon.tabular import TabularPredictor, __version__
from sklearn.datasets import load_iris

warnings.simplefilter("ignore")
data = load_iris(as_frame=True)
frame = data.frame[data.frame.target > 0].sample(60, random_state=1)
frame.columns = ["sl", "sw", "pl", "pw", "target"]
frame["species"] = np.array(data.target_names)[frame.target]
frame.index = [f"plant {i}" for i in frame.index]
shutil.rmtree("/tmp/autogluon_example", ignore_errors=True)
predictor = TabularPredictor(label="species", path="/tmp/autogluon_example", verbosity=0).fit(
    frame[["sl", "sw", "species"]],
    hyperparameters={"KNN": {}, "GBM": {}},
    num_bag_folds=4,
    num_bag_sets=2,
    fit_weighted_ensemble=False,
    num_cpus=1,
    ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
)
for name in predictor.model_names():
    kind = "knn" if "Neighbors" in name or "KNN" in name else "gbm"
    predictor.predict_proba_oof(model=name).to_csv(f"tests/files/autogluon_{kind}.csv")
frame["species"].to_csv("tests/files/autogluon_truth.csv")
with open("tests/files/autogluon_version.txt", "w") as file:
    file.write(f"autogluon.tabular {__version__}\n")
