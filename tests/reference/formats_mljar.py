"""Out-of-fold predictions as mljar-supervised writes them (pip install mljar-supervised). Run from the root."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import supervised
from sklearn.datasets import load_iris
from supervised import AutoML

warnings.simplefilter("ignore")
data = load_iris(as_frame=True)
x = data.data.iloc[:, :2].copy()
x.columns = ["sl", "sw"]
species = np.array(data.target_names)[data.target]


def write(rows: np.ndarray, y: np.ndarray, task: str, name: str) -> None:
    folder = Path("/tmp/mljar_example") / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    auto = AutoML(
        results_path=str(folder),
        mode="Explain",
        algorithms=["Decision Tree"],
        ml_task=task,
        explain_level=0,
        verbose=0,
        train_ensemble=False,
        n_jobs=1,
        random_state=1,
        total_time_limit=60,
        validation_strategy={
            "validation_type": "kfold",
            "k_folds": 4,
            "shuffle": True,
            "stratify": task != "regression",
            "random_seed": 1,
        },
    )
    auto.fit(x.iloc[rows].reset_index(drop=True), y[rows])
    saved = sorted(folder.rglob("predictions_out_of_folds.csv"))[0]
    shutil.copy(saved, f"tests/files/mljar_{name}.csv")


rng = np.random.default_rng(1)
two = rng.permutation(np.flatnonzero(data.target > 0))[:60]
write(two, species, "binary_classification", "binary")
write(rng.permutation(150)[:60], species, "multiclass_classification", "multiclass")
write(rng.permutation(150)[:60], data.data.iloc[:, 2].to_numpy(), "regression", "regression")
with open("tests/files/mljar_version.txt", "w") as file:
    file.write(f"mljar-supervised {supervised.__version__}\n")
