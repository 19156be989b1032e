"""Orange's evaluation Results saved as arrays (pip install orange3). Run from the repository root."""

import warnings

import numpy as np
import Orange
from Orange.classification import KNNLearner, NaiveBayesLearner
from Orange.evaluation import CrossValidation

warnings.simplefilter("ignore")
iris = Orange.data.Table("iris")[::3]
results = CrossValidation(k=5, random_state=1)(iris, [NaiveBayesLearner(), KNNLearner(n_neighbors=3)])
np.savez_compressed(
    "tests/files/orange_results.npz",
    row_indices=results.row_indices,
    folds=np.array([[part.start, part.stop] for part in results.folds]),
    actual=results.actual,
    predicted=results.predicted,
    probabilities=results.probabilities,
    learner_names=np.array(["naive bayes", "knn"]),
    class_values=np.array(results.domain.class_var.values),
)
with open("tests/files/orange_version.txt", "w") as file:
    file.write(f"Orange {Orange.__version__}\n")
