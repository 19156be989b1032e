"""Tables of the study: one tidy file of cells, one of means and minima, and the bars it is held to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import replay

ORDER = [replay.FIRST, *replay.METHODS, replay.HOLDOUT]


def write_tables(raw: Path, results: Path) -> None:
    """Write the tidy files from the records."""
    tables = {
        "coverage": replay.study_rows(raw),
        "coverage_simulated": replay.study_rows(raw, simulated=True),
        "coverage_fresh": replay.fresh_rows(raw),
    }
    for name, rows in tables.items():
        if rows:
            pd.DataFrame(rows).round(5).to_csv(results / f"{name}.csv", index=False)


def read(results: Path, name: str = "coverage") -> pd.DataFrame:
    """Return a tidy file as a table."""
    path = results / f"{name}.csv"
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def by_method(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return means and minima over cells, by `keys` and method."""
    table = cells.groupby([*keys, "method"], sort=False).agg(
        cells=("coverage", "size"),
        coverage=("coverage", "mean"),
        minimum=("coverage", "min"),
        bound=("bound_coverage", "mean"),
        bound_minimum=("bound_coverage", "min"),
        bias=("bias", "mean"),
        width=("width_ratio", "median"),
    )
    return table.reset_index()


def markdown(table: pd.DataFrame) -> str:
    """Return a table as markdown, numbers with three digits."""

    def text(value: object) -> str:
        if isinstance(value, float | np.floating):
            return "inf" if np.isinf(value) else f"{value:.3f}"
        return str(value)

    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    lines += ["| " + " | ".join(text(value) for value in row) + " |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def main_table(cells: pd.DataFrame) -> str:
    """Return coverage by set, metric and method, of designs with one repeat."""
    plain = cells[cells["saved"] == "r1"]
    table = by_method(plain, ["set", "metric"])
    table["coverage (mean / min)"] = [
        f"{a:.3f} / {b:.3f}" for a, b in zip(table["coverage"], table["minimum"], strict=True)
    ]
    table["bound (mean / min)"] = [
        f"{a:.3f} / {b:.3f}" for a, b in zip(table["bound"], table["bound_minimum"], strict=True)
    ]
    table["width"] = [f"{value:.2f}" for value in table["width"]]
    return markdown(table[["set", "metric", "method", "cells", "coverage (mean / min)", "bound (mean / min)", "width"]])


def estimator_table(cells: pd.DataFrame) -> str:
    """Return bias, error and coverage by what was saved: repeats and inner predictions."""
    rows = []
    chosen = cells[(cells["saved"] != "r1") & (cells["method"] == "calibrated")]
    plain = cells[cells["method"] == "percentile, random ties"]
    for row in chosen.itertuples():
        same = (plain["design"] == row.design) & (plain["size"] == row.size) & (plain["metric"] == row.metric)
        same &= (plain["saved"] == row.saved) & (plain["set"] == row.set) & (plain["folds"] == row.folds)
        bbc = plain[same].iloc[0]
        rows.append(
            {
                "set": row.set,
                "design": f"{row.design}, N = {row.size}",
                "metric": row.metric,
                "saved": row.saved,
                "repetitions": row.repetitions,
                "bias": float(row.bias),
                "BBC's bias": float(bbc["bias"]),
                "RMSE / BBC's": float(row.rmse / bbc["rmse"]),
                "coverage": float(row.coverage),
                "width": float(row.width_ratio),
            }
        )
    return markdown(pd.DataFrame(rows))


def bars(cells: pd.DataFrame, repetitions: int = 500) -> str:
    """Return whether the held-out designs hold what is promised, for accuracy and AUC."""
    rows = []
    held = cells[(cells["set"] == "held_out") & (cells["saved"] == "r1") & (cells["method"] == "calibrated")]
    for metric, width in (("accuracy", 0.92), ("auc", 1.05)):
        part = held[held["metric"] == metric]
        checks = {
            f"fewest repetitions in a cell, at least {repetitions}": (
                part["repetitions"].min(),
                part["repetitions"].min() >= repetitions,
            ),
            "lowest 99 % upper limit of coverage, at least .93": (
                part["coverage_upper99"].min(),
                part["coverage_upper99"].min() >= 0.93,
            ),
            "mean coverage within [.94, .98]": (part["coverage"].mean(), 0.94 <= part["coverage"].mean() <= 0.98),
            "lowest 99 % upper limit of the lower bound's coverage, at least .92": (
                part["bound_upper99"].min(),
                part["bound_upper99"].min() >= 0.92,
            ),
            f"median width, at most {width} of percentile": (
                part["width_ratio"].median(),
                part["width_ratio"].median() <= width,
            ),
        }
        for name, (value, holds) in checks.items():
            rows.append(
                {
                    "metric": metric,
                    "bar": name,
                    "found": f"{value:.3f}" if value < 2 else f"{value:.0f}",
                    "holds": "yes" if holds else "**no**",
                }
            )
    return markdown(pd.DataFrame(rows))


def cell_table(cells: pd.DataFrame, metric: str) -> str:
    """Return every held-out cell of a metric, calibrated and percentile."""
    part = cells[(cells["set"] == "held_out") & (cells["saved"] == "r1") & (cells["metric"] == metric)]
    keys = ["design", "size", "folds"]
    wide = part.pivot_table(index=keys, columns="method", values="coverage", sort=False)
    mine = part[part["method"] == "calibrated"].set_index(keys)
    table = pd.DataFrame(
        {
            "repetitions": mine["repetitions"],
            "truth": mine["truth"],
            "bias": mine["bias"],
            replay.FIRST: wide[replay.FIRST],
            "percentile, random ties": wide["percentile, random ties"],
            "calibrated": wide["calibrated"],
            "lower bound": mine["bound_coverage"],
            "width": mine["width_ratio"],
        }
    )
    return markdown(table.reset_index())


def simulated_table(cells: pd.DataFrame) -> str:
    """Return coverage by kind of fixed-model design."""
    kind = cells["design"].str.split(" ").str[0]
    table = by_method(
        cells.assign(kind=np.where(cells["set"] == "simulated_tuning", kind + " (tuning)", kind)), ["kind"]
    )
    keep = ["kind", "method", "cells", "coverage", "minimum", "bound_minimum", "bias", "width"]
    return markdown(table[keep])


def fill(page: Path, blocks: dict[str, str]) -> None:
    """Put tables between the marks of a page: <!-- name --> ... <!-- end -->."""
    text = page.read_text()
    for name, block in blocks.items():
        start = text.find(f"<!-- {name} -->")
        if start < 0:
            continue
        begin = start + len(f"<!-- {name} -->")
        end = text.index("<!-- end -->", begin)
        text = text[:begin] + "\n" + block + "\n" + text[end:]
    page.write_text(text)
