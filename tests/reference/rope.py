"""Reference values of the Bayesian correlated t-test by baycomp, Benavoli and colleagues' own package.

Made with baycomp 1.0.3: python rope.py
"""

import json
from pathlib import Path

import baycomp
import numpy as np

rng = np.random.default_rng(17)
runs, folds = 3, 5
x = np.round(0.80 + 0.03 * rng.normal(size=(runs, folds)), 4)
y = np.round(x - 0.008 + 0.01 * rng.normal(size=(runs, folds)), 4)
found = {str(rope): baycomp.CorrelatedTTest.probs(y.ravel(), x.ravel(), rope, runs) for rope in (0.001, 0.01, 0.05)}
once = baycomp.CorrelatedTTest.probs(y[0], x[0], 0.01)
values = {"x": x.tolist(), "y": y.tolist(), "repeated": found, "once": once}
Path(__file__).with_suffix(".json").write_text(json.dumps(values) + "\n")
