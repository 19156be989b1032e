"""Make `mljar_folder` with mljar-supervised 1.3.2: of its folder only what can be read is kept."""

from sklearn.datasets import load_iris
from supervised import AutoML

x, y = load_iris(return_X_y=True, as_frame=True)
two = y > 0
names = y[two].map({1: "versicolor", 2: "virginica"}).reset_index(drop=True)
split = {"validation_type": "kfold", "k_folds": 3, "shuffle": True, "stratify": True}
settings = {"algorithms": ["Decision Tree", "Nearest Neighbors"], "train_ensemble": False, "explain_level": 0}
automl = AutoML(results_path="mljar_folder", mode="Explain", validation_strategy=split, random_state=1, **settings)
automl.fit(x[two].reset_index(drop=True), names)
