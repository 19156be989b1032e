"""Judge intervals on the saved evidence of the study of strange designs, without drawing again.

python -m benchmarks.coverage.strange_make FOLDER 300                                        makes the evidence
python -m benchmarks.coverage.strange_judge FOLDER tuning benchmarks/results/strange_tuning.csv  tables, and all cells
"""

from __future__ import annotations

import gzip
import pickle
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cvstats as cs
from cvstats.cube.arrays import problem_on
from cvstats.intervals import Evidence
from cvstats.metrics import at_prior, get_metric
from cvstats.protocols.bootstrap import within_folds

from .strange_cells import CELLS, Cell
from .strange_make import PRIOR, cube_of

FAMILIES = {
    "accuracy": ("accuracy",),
    "classes": ("balanced_accuracy", "f1", "mcc", "sensitivity"),
    "AUC": ("auc", "average_precision", "auc_ovr", "auc_ovr_weighted"),
    "concordance": ("concordance",),
    "losses": ("brier", "log_loss"),
    "errors": ("mse", "rmse", "mae", "r2"),
    "clinical": ("calibration_slope", "net_benefit"),
}


def _spread(variance: float | None) -> np.ndarray | None:
    """Return two numbers of this variance."""
    return None if variance is None else np.sqrt(variance / 2) * np.array([-1.0, 1.0])


def evidence_of(cell: Cell, record: dict[str, Any], kept: dict[str, Any]) -> Evidence:
    """Return the evidence as it was, draws replaced by others of the same variance."""
    name = kept["metric"].split("(")[0]
    if name == "net_benefit":
        metric = cs.net_benefit(0.2)
    else:
        metric = get_metric(name) if "(" not in kept["metric"] else at_prior(name, {1: PRIOR})
    within = np.nan
    if name == "auc" and kept["kept"] is None and cell.kind != "separate":
        cube = cube_of(cell, record)[0]
        within = within_folds(cube, problem_on(cube, metric), kept["selected"])
    draws = {part: _spread(kept[part]) for part in ("values", "chosen", "kept")}
    same = {part: kept[part] for part in kept.keys() - {"quantiles", "truth", "selected", "metric", *draws}}
    return Evidence(metric, **(same | draws | {"samples": len(record["label"]), "within": within}))


def read(folder: Path, which: str) -> dict[tuple[str, str], list[tuple[Evidence, dict[str, Any]]]]:
    """Return evidence and what is known beside it, by cell and question."""
    found = defaultdict(list)
    for path in sorted(folder.glob(f"{which}-*.pkl.gz")):
        key = path.name.rsplit("-", 1)[0]
        with gzip.open(path) as file:
            for record in pickle.load(file):
                for question, kept in record["judged"].items():
                    found[key, question].append((evidence_of(CELLS[key], record, kept), kept))
    return found


def percentile(evidence: Evidence, kept: dict[str, Any], level: float) -> np.ndarray:
    """Return the percentile limits, moved to the estimate."""
    ends = kept["quantiles"][[0, -1] if level > 0.94 else [1, -2]]
    return np.clip(ends + evidence.estimate - evidence.bbc, *evidence.metric.range)


def table(found: dict[tuple[str, str], list[tuple[Evidence, dict[str, Any]]]], method: Any = None) -> pd.DataFrame:
    """Return one row per cell and question."""
    method, rows = cs.calibrated() if method is None else method, []
    for (key, question), many in found.items():
        many = [(evidence, kept) for evidence, kept in many if np.isfinite(evidence.estimate)]
        truth = np.array([kept["truth"] for _, kept in many])
        ends = np.array([method.limits(evidence, 0.95)[:2] for evidence, _ in many])
        bound = np.array([method.limits(evidence, 0.9)[:2] for evidence, _ in many])
        rival = np.array([percentile(evidence, kept, 0.95) for evidence, kept in many])
        sign = many[0][0].metric.sign
        inside = [(low - 1e-12 <= truth) & (truth <= high + 1e-12) for low, high in (ends.T, rival.T)]
        metric = many[0][1]["metric"].split("(")[0]
        rows.append(
            {
                "cell": key,
                "question": question,
                "family": next(name for name, metrics in FAMILIES.items() if metric in metrics),
                "repetitions": len(many),
                "truth": truth.mean(),
                "bias": np.mean([evidence.estimate for evidence, _ in many] - truth),
                "coverage": inside[0].mean(),
                "above": np.mean(truth > ends[:, 1] + 1e-12),
                "bound": np.mean(bound[:, 0] <= truth + 1e-12 if sign > 0 else truth <= bound[:, 1] + 1e-12),
                "width": np.median(np.diff(ends)) / np.median(np.diff(rival)),
                "percentile": inside[1].mean(),
                "doubted": np.mean([method.doubt(evidence) is not None for evidence, _ in many]),
            }
        )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return coverage and width by family, plain questions and decisions apart."""
    rows = rows.assign(plain=~rows["question"].str.contains(","))
    by = rows.groupby(["family", "plain"], sort=False)
    return by.agg(
        cells=("cell", "size"),
        repetitions=("repetitions", "min"),
        coverage=("coverage", "mean"),
        least=("coverage", "min"),
        bound=("bound", "mean"),
        width=("width", "median"),
        percentile=("percentile", "mean"),
        least_percentile=("percentile", "min"),
    ).reset_index()


def markdown(rows: pd.DataFrame, below: float = 0.9) -> str:
    """Return the tables of the documentation: by question, and the cells that cover least."""
    by = rows.groupby("question", sort=False)
    lines = ["| question | cells | coverage (mean / min) | bound (mean) | width | percentile (mean / min) |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {name} | {len(each)} | {each.coverage.mean():.3f} / {each.coverage.min():.2f} | {each.bound.mean():.3f} "
        f"| {each.width.median():.2f} | {each.percentile.mean():.3f} / {each.percentile.min():.2f} |"
        for name, each in by
    ]
    lines += ["", "| cell | question | repetitions | truth | bias | coverage | truth above | percentile | doubted |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {one.cell.split('-', 1)[1]} | {one.question} | {one.repetitions} | {one.truth:.3f} | {one.bias:+.3f} "
        f"| {one.coverage:.2f} | {one.above:.2f} | {one.percentile:.2f} | {one.doubted:.2f} |"
        for one in rows[rows["coverage"] < below].sort_values("coverage").itertuples()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    result = table(read(Path(sys.argv[1]), sys.argv[2]))
    print(summary(result).round(3).to_string())
    print(markdown(result))
    if len(sys.argv) > 3:
        result.round(4).to_csv(sys.argv[3], index=False)
