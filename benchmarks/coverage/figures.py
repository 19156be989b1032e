"""Figures and tables of docs/coverage.md, drawn with `plot_coverage` from the tidy files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

import cvstats as cs

from . import replay, summary

METHODS = [replay.FIRST, "percentile, random ties", "calibrated"]


def by_size(cells: pd.DataFrame) -> xr.Dataset:
    """Return mean coverage over designs as a study with dims size and method."""
    part = cells[cells["method"].isin(METHODS)]
    part = part.assign(variance=part["coverage_std_error"] ** 2)
    mean = part.groupby(["size", "method"])["coverage"].mean()
    error = part.groupby(["size", "method"])["variance"].agg(lambda v: (v.sum() ** 0.5) / len(v))
    table = pd.DataFrame({"coverage": mean, "coverage_std_error": error})
    study = table.to_xarray().reindex(method=METHODS)
    return study.assign_coords(conf_level=replay.LEVEL)


def by_cell(cells: pd.DataFrame, method: str) -> xr.Dataset:
    """Return the coverage of one method as a study with one row per cell."""
    part = cells[cells["method"] == method]
    names = [f"{design}, N = {size}" for design, size in zip(part["design"], part["size"], strict=True)]
    return xr.Dataset(
        {name: ("cell", part[name].to_numpy()) for name in ("coverage", "coverage_std_error")},
        coords={"cell": names, "conf_level": replay.LEVEL},
    )


def draw(results: Path, docs: Path) -> None:
    """Write the figures and fill the tables of the page."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "coverage", "font.size": 9})
    folder = docs / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    cells, fixed = summary.read(results), summary.read(results, "coverage_simulated")
    package = summary.read(results, "coverage_package")
    held = cells[(cells["set"] == "held_out") & (cells["saved"] == "r1")]
    for metric in ("accuracy", "auc"):
        _panels(held[held["metric"] == metric], folder / f"coverage_{metric}.svg")
        _sizes(held[held["metric"] == metric], folder / f"coverage_{metric}_size.svg", metric)
    if len(fixed):
        clear = fixed[fixed["design"].str.startswith("clear") & (fixed["set"] == "simulated")]
        _panels(clear, folder / "coverage_clear.svg", [*METHODS, "calibrated, always safe"])
    blocks = {
        "bars": summary.bars(cells),
        "main": summary.main_table(cells),
        "accuracy": summary.cell_table(cells, "accuracy"),
        "auc": summary.cell_table(cells, "auc"),
        "estimators": summary.estimator_table(cells),
    }
    fresh = summary.read(results, "coverage_fresh")
    if len(fresh):
        blocks["fresh"] = summary.bars(fresh, 400)
    if len(fixed):
        blocks["simulated"] = summary.simulated_table(fixed)
    if len(package):
        keep = ["cell", "method", "repetitions", "coverage", "coverage_low", "bias", "width"]
        blocks["package"] = summary.markdown(package[keep])
    page = docs / "coverage.md"
    if page.exists():
        summary.fill(page, blocks)


def _panels(cells: pd.DataFrame, path: Path, methods: list[str] | None = None) -> None:
    """Draw one panel per method, one row per cell."""
    from matplotlib.figure import Figure

    names = METHODS if methods is None else methods
    rows = len(cells[cells["method"] == names[0]])
    figure = Figure(figsize=(2.2 + 2.2 * len(names), 0.9 + 0.2 * rows), layout="constrained")
    panels = figure.subplots(1, len(names), sharex=True)
    for number, (method, ax) in enumerate(zip(names, panels, strict=True)):
        study = by_cell(cells, method)
        cs.plot_coverage(study, ax=ax, title=method)
        ax.set_xlabel("covered (%)")
        ax.set_yticks(range(rows), [""] * rows if number else list(study["cell"].values))
    figure.savefig(path, metadata={"Date": None})


def _sizes(cells: pd.DataFrame, path: Path, metric: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    cs.plot_coverage(by_size(cells), x="size", ax=figure.subplots(), title=f"held-out designs, {metric}")
    figure.savefig(path, metadata={"Date": None})
