"""Reference values of the metrics from scikit-learn. Writes metrics.json: the data, and what scikit-learn says of them.

Run: python tests/reference/metrics.py   (then Rscript tests/reference/metrics.R, which reads the same data)
"""

import json
from pathlib import Path

import numpy as np
import sklearn
import sklearn.metrics as sk

HERE = Path(__file__).parent


def binary_data(rng, n=60, m=4):
    y = (rng.random(n) < 0.4).astype(int)
    p = np.round(np.clip(0.3 * y[:, None] + 0.7 * rng.random((n, m)), 0.0, 1.0), 2)  # two digits: many ties
    p[:, -1] = np.clip(np.round(p[:, -1], 1), 0.1, 0.9)
    return y, np.clip(p, 0.01, 0.99)


def binary_values(y, p, w):
    hard = (p > 0.5).astype(int)
    return {
        "accuracy": sk.accuracy_score(y, hard, sample_weight=w),
        "error_rate": sk.zero_one_loss(y, hard, sample_weight=w),
        "balanced_accuracy": sk.balanced_accuracy_score(y, hard, sample_weight=w),
        "sensitivity": sk.recall_score(y, hard, sample_weight=w),
        "specificity": sk.recall_score(y, hard, sample_weight=w, pos_label=0),
        "f1": sk.f1_score(y, hard, sample_weight=w),
        "mcc": sk.matthews_corrcoef(y, hard, sample_weight=w),
        "auc": sk.roc_auc_score(y, p, sample_weight=w),
        "average_precision": sk.average_precision_score(y, p, sample_weight=w),
        "brier": sk.brier_score_loss(y, p, sample_weight=w),
        "log_loss": sk.log_loss(y, p, sample_weight=w),
    }


def many_data(rng, n=90, m=3, k=4):
    y = rng.integers(0, k, n)
    raw = np.round(rng.random((n, m, k)) + 0.5 * (y[:, None, None] == np.arange(k)), 1) + 0.1
    p = raw / raw.sum(axis=-1, keepdims=True)
    return y, p


def many_values(y, p, w):
    hard = p.argmax(axis=1)
    values = {
        "accuracy": sk.accuracy_score(y, hard, sample_weight=w),
        "error_rate": sk.zero_one_loss(y, hard, sample_weight=w),
        "balanced_accuracy": sk.balanced_accuracy_score(y, hard, sample_weight=w),
        "f1": sk.f1_score(y, hard, sample_weight=w, average="macro"),
        "mcc": sk.matthews_corrcoef(y, hard, sample_weight=w),
        "auc_ovr": sk.roc_auc_score(y, p, sample_weight=w, multi_class="ovr", average="macro"),
        "auc_ovr_weighted": sk.roc_auc_score(y, p, sample_weight=w, multi_class="ovr", average="weighted"),
        "average_precision": np.mean(
            [sk.average_precision_score(y == c, p[:, c], sample_weight=w) for c in range(p.shape[1])]
        ),
        "log_loss": sk.log_loss(y, p, sample_weight=w),
        "brier": np.average(((p - (y[:, None] == np.arange(p.shape[1]))) ** 2).sum(axis=1), weights=w),
    }
    if w is None:  # scikit-learn's one-vs-one takes no weights
        values["auc"] = sk.roc_auc_score(y, p, multi_class="ovo", average="macro")
    return values


def number_values(y, p, w):
    return {
        "mse": sk.mean_squared_error(y, p, sample_weight=w),
        "rmse": sk.root_mean_squared_error(y, p, sample_weight=w),
        "mae": sk.mean_absolute_error(y, p, sample_weight=w),
        "r2": sk.r2_score(y, p, sample_weight=w),
    }


def large_data(n=100_000):
    """Return labels and scores by whole-number arithmetic, so that R makes the same: 1e5 samples, 5003 values."""
    i = np.arange(n, dtype=np.int64)
    y = ((i * i % 1009 * 31 + i * 17) % 101 < 40).astype(int)
    score = (i * 7919 % 5003 + 900 * y) / 5003
    return y, score, 1 + i % 4


def table(function, y, p, weights):
    out = {}
    for name, w in weights.items():
        rows = [function(y, p[:, j], w) for j in range(p.shape[1])]
        out[name] = {metric: [float(row[metric]) for row in rows] for metric in rows[0]}
    return out


def main():
    rng = np.random.default_rng(20240501)
    out = {"versions": {"scikit-learn": sklearn.__version__, "numpy": np.__version__}}
    for name, data, function in (
        ("binary", binary_data(rng), binary_values),
        ("many", many_data(rng), many_values),
        ("number", None, number_values),
    ):
        if data is None:
            y = np.round(rng.normal(3, 2, 50), 2)
            data = y, np.round(y[:, None] + rng.normal(0, 1.5, (50, 3)), 2)
        y, p = data
        whole = rng.integers(0, 4, len(y))
        whole[:2] = 1
        weights = {"none": None, "whole": whole, "real": np.round(rng.exponential(size=len(y)) + 0.01, 3)}
        given = {key: value.tolist() for key, value in weights.items() if value is not None}
        values = table(function, y, p, weights)
        out[name] = {"label": y.tolist(), "prediction": p.tolist(), "weight": given, "scikit_learn": values}
    n = 80
    time = np.round(rng.exponential(size=n) * 8).astype(int) + 1  # whole numbers: many ties
    event = (rng.random(n) < 0.6).astype(int)
    risk = np.round(-0.2 * time[:, None] + rng.normal(size=(n, 3)), 1)
    out["survival"] = {
        "time": time.tolist(),
        "event": event.tolist(),
        "risk": risk.tolist(),
        "weight": {
            "whole": rng.integers(1, 5, n).tolist(),
            "real": np.round(rng.exponential(size=n) + 0.01, 3).tolist(),
        },
    }
    y, score, weight = large_data()
    out["large"] = {
        "auc": sk.roc_auc_score(y, score),
        "auc_weighted": sk.roc_auc_score(y, score, sample_weight=weight),
        "average_precision": sk.average_precision_score(y, score),
        "average_precision_weighted": sk.average_precision_score(y, score, sample_weight=weight),
    }
    (HERE / "metrics.json").write_text(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
