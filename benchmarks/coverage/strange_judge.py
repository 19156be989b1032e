"""Judge intervals on the saved evidence of the study of strange designs, without drawing again.

python -m benchmarks.coverage.strange_make FOLDER 300        makes the evidence
python -m benchmarks.coverage.strange_judge FOLDER tuning    prints tables of one set
python -m benchmarks.coverage.strange_judge FOLDER           judges all sets, writes benchmarks/results/strange_*.csv
                                                             and the tables of docs/coverage.md and docs/caveats.md
"""

from __future__ import annotations

import gzip
import pickle
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cvstats as cs
from cvstats.cube.arrays import problem_on
from cvstats.intervals import Evidence
from cvstats.intervals.calibrated_limits import PAIRS
from cvstats.judge import errors_of
from cvstats.metrics import at_prior, get_metric
from cvstats.protocols.common import share_seen, within_folds

from .strange_cells import CELLS, Cell
from .strange_make import PRIOR, cube_of
from .summary import fill

ROOT = Path(__file__).resolve().parents[2]
COUNTED = {"accuracy": 1.3, "classes": 1.3, "AUC": 1.5, "losses": 1.75}  # kappa when groups were counted, not samples
NAMED = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "f1": "F1", "mcc": "MCC", "auc": "AUC",
    "brier": "Brier score", "log_loss": "log loss", "mse": "MSE", "mae": "mean absolute error",
}  # fmt: skip
UNSEEN = ("fresh", "last")  # made when the rules stood, generators and learners too
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
    within, errors = np.nan, (0.0, kept["unseen"])
    if name == "auc" and kept["kept"] is None and cell.kind != "separate":
        cube = cube_of(cell, record)[0]
        within = within_folds(cube, problem_on(cube, metric), kept["selected"])
    if metric.error_cost(2) and kept["selected"] >= 0:  # the rule came later than the evidence
        errors = errors_of(metric, problem_on(cube_of(cell, record)[0], metric).columns([kept["selected"]]))
    draws = {part: _spread(kept[part]) for part in ("values", "chosen", "kept")}
    same = {part: kept[part] for part in kept.keys() - {"quantiles", "truth", "selected", "metric", *draws}}
    later = {"samples": len(record["label"]), "within": within, "errors": errors[0], "unseen": errors[1]}
    later["seen"] = share_seen(list(record["fold"].T))
    return Evidence(metric, **(same | draws | later))


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
        family = next(name for name, metrics in FAMILIES.items() if metric in metrics)
        rows.append(
            {
                "cell": key,
                "question": question,
                "family": family,
                "repetitions": len(many),
                "truth": truth.mean(),
                "bias": np.mean([evidence.estimate for evidence, _ in many] - truth),
                "coverage": inside[0].mean(),
                "above": np.mean(truth > ends[:, 1] + 1e-12),
                "bound": np.mean(bound[:, 0] <= truth + 1e-12 if sign > 0 else truth <= bound[:, 1] + 1e-12),
                "width": np.median(np.diff(ends)) / np.median(np.diff(rival)),
                "percentile": inside[1].mean(),
                "doubted": np.mean([method.doubt(evidence) is not None for evidence, _ in many]),
                "counted": counted([evidence for evidence, _ in many], family, float(np.median(np.diff(ends)))),
            }
        )
    return pd.DataFrame(rows)


def counted(many: list[Evidence], family: str, width: float) -> float:
    """Return a width relative to that of the former rule for groups, which took no more than their number for n_eff."""
    if not many[0].grouped:
        return np.nan
    method, most = cs.calibrated(kappa=COUNTED[family]), 1 / PAIRS if family == "AUC" else 1.0
    ends = [method.limits(replace(each, samples=most * each.n, grouped=False), 0.95)[:2] for each in many]
    return width / float(np.median(np.diff(ends)))


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


def by_question(rows: pd.DataFrame) -> str:
    """Return the table by question."""
    lines = ["| question | cells | coverage (mean / min) | bound (mean) | width | percentile (mean / min) |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {name} | {len(each)} | {each.coverage.mean():.3f} / {each.coverage.min():.2f} | {each.bound.mean():.3f} "
        f"| {each.width.median():.2f} | {each.percentile.mean():.3f} / {each.percentile.min():.2f} |"
        for name, each in rows.groupby("question", sort=False)
    ]
    return "\n".join(lines) + "\n"


def low(rows: pd.DataFrame, below: float = 0.9) -> str:
    """Return the table of the cells that cover least."""
    lines = ["| cell | question | repetitions | truth | bias | coverage | truth above | percentile | doubted |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {one.cell.split('-', 1)[1]} | {one.question} | {one.repetitions} | {one.truth:.3f} | {one.bias:+.3f} "
        f"| {one.coverage:.3f} | {one.above:.3f} | {one.percentile:.3f} | {one.doubted:.2f} |"
        for one in rows[rows["coverage"] < below].sort_values("coverage").itertuples()
    ]
    return "\n".join(lines) + "\n"


def bars(rows: pd.DataFrame) -> str:
    """Return what was asked of the validation cells, and what was found."""
    of = rows["question"].str.split(",").str[0]
    family = rows["family"]
    lines = ["| metrics | asked | found | holds |", "| --- | --- | --- | --- |"]

    def line(name: str, asked: str, found: str, holds: bool) -> None:
        lines.append(f"| {name} | {asked} | {found} | {'yes' if holds else '**no**'} |")

    def least(name: str, part: pd.DataFrame, bar: float, but: str = "") -> None:
        one = part.loc[part["coverage"].idxmin()]
        found = f"{one.coverage:.3f} ({one.cell.split('-', 1)[1]}, {one.question})"
        line(name, f"least coverage at least {bar:.2f}{but}", found, one.coverage >= bar)

    def width(name: str, part: pd.DataFrame, bar: float) -> None:
        found = part["width"].median()
        line(name, f"median width at most {bar:.2f} of percentile", f"{found:.3f}", found <= bar)

    for name, wide in (("accuracy", 0.92), ("AUC", 1.0)):
        part = rows[family == name]
        least(name, part, 0.92)
        mean = part["coverage"].mean()
        line(name, "mean coverage in [.94, .98]", f"{mean:.3f}", 0.94 <= mean <= 0.98)
        width(name, part[~part["question"].str.contains(",")], wide)
    least("balanced accuracy, F1, MCC", rows[of.isin(["balanced_accuracy", "f1", "mcc"])], 0.9)
    loss = rows[of.isin(["brier", "log_loss", "mse", "rmse", "mae"])]
    least("losses", loss[loss["doubted"] < 0.5], 0.9, ", but for cells that `winner` mostly doubts")
    width("losses", loss[~loss["question"].str.contains(",")], 1.1)
    groups = rows["counted"].dropna()
    groups = groups[family[groups.index] != "losses"]
    if groups.empty:
        return "\n".join(lines) + "\n"
    found = f"{groups.median():.2f} ({groups.min():.2f} to {groups.max():.2f})"
    line("groups", "median width at most .75 of counting groups only", found, groups.median() <= 0.75)
    return "\n".join(lines) + "\n"


def worst(rows: pd.DataFrame) -> str:
    """Return the short table of the caveats."""
    lines = ["| metric | mean coverage | worst cell |", "|---|---|---|"]
    for question, name in NAMED.items():
        each = rows[rows["question"] == question]["coverage"]
        lines.append(f"| {name} | {each.mean():.3f} | {each.min():.2f} |".replace(" 0.", " ."))
    return "\n".join(lines) + "\n"


def refresh(folder: Path) -> None:
    """Judge all sets; write all cells to files and the tables to the page."""
    blocks, judged = {}, {}
    for which in ("tuning", "validation", *UNSEEN):
        rows = judged[which] = table(read(folder, which))
        rows.round(4).to_csv(ROOT / "benchmarks" / "results" / f"strange_{which}.csv", index=False)
        blocks |= {f"strange {which}": by_question(rows), f"strange {which} low": low(rows)}
        each = rows.groupby("cell")["repetitions"].max()
        many = " to ".join(map(str, sorted({each.min(), each.max()})))
        blocks[f"strange {which} size"] = f"{len(each)} {which} cells, {many} repetitions."
    rows = judged["validation"]
    blocks["strange bars"] = bars(rows)
    blocks["strange bars unseen"] = bars(pd.concat([judged[which] for which in UNSEEN], ignore_index=True))
    fill(ROOT / "docs" / "coverage.md", blocks)
    fill(ROOT / "docs" / "caveats.md", {"strange caveats": worst(rows)})
    print(blocks["strange bars"], blocks["strange bars unseen"], sep="\n")


if __name__ == "__main__":
    np.seterr(divide="ignore")  # percentiles of a metric that no draw changes have no width
    if len(sys.argv) > 2:
        result = table(read(Path(sys.argv[1]), sys.argv[2]))
        print(summary(result).round(3).to_string(), by_question(result), low(result), sep="\n")
        if sys.argv[2] == "validation":
            print(bars(result))
    else:
        refresh(Path(sys.argv[1]))
