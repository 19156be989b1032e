"""What recording costs: a search of 300 candidates, 5 folds, 3 repeats and two processes, with and without `record`.

Run ``python benchmarks/record_overhead.py``; plain and recorded searches take turns, and the ratio of their medians is
printed. The promise is at most 10 % more time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cvstats import read_cube
from cvstats.sklearn import record

X, Y = make_classification(400, 20, n_informative=6, random_state=1)
GRID = {"svc__C": np.logspace(-2, 3, 20), "svc__gamma": np.logspace(-4, 0, 15)}
CV = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=1)


def seconds(scoring: object) -> float:
    """Return how long a search takes."""
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, scoring=scoring, cv=CV, n_jobs=2, refit=False)
    start = time.perf_counter()
    search.fit(X, Y)
    return time.perf_counter() - start


def main(turns: int) -> None:
    """Time both in turns and print the ratio."""
    plain, recorded = [], []
    for turn in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            scorer = record(f"{folder}/search", "roc_auc", X, Y, CV)
            for into, scoring in [(plain, "roc_auc"), (recorded, scorer)][:: 1 if turn % 2 else -1]:
                into.append(seconds(scoring))
            sizes = dict(read_cube(f"{folder}/search").sizes)
        print(f"plain {plain[-1]:.1f} s, recorded {recorded[-1]:.1f} s, {sizes}", flush=True)
    print(f"ratio of medians {statistics.median(recorded) / statistics.median(plain):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
