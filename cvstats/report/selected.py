"""What the selected configuration predicted, sample by sample: confusion of classes, residuals of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from cvstats.plot.style import HONEST, MUTED, finished
from cvstats.tables.frames import augment
from cvstats.tables.render import Cell
from cvstats.tables.words import percent, printable

from .analysis import Analysis
from .page import Block, Drawing, Listing, Page

MOST_CLASSES, MOST_POINTS = 20, 3000


def selected_blocks(page: Page) -> Iterator[Block]:
    """Yield the confusion of classes or the residuals of numbers; nothing for mixtures, scores and survival."""
    analysis = page.analysis
    judged = analysis.winner if analysis.decision is None else analysis.decision
    known = judged["selected"].item() in analysis.cube.indexes["configuration"]
    if analysis.cube.chunks is not None or not known or "event" in analysis.cube.coords:
        return
    frame = augment(analysis.cube, judged)
    few = "predicted_class" in frame and frame["predicted_class"].nunique() <= MOST_CLASSES
    if few or "residual" in frame:
        words = "What the selected configuration predicted out of sample, as it is: optimistic, as its plain score is."
        yield "What was predicted out of sample, as it is." if analysis.single else words
        yield _confusion(analysis, frame) if few else _residuals(frame)


def _confusion(analysis: Analysis, frame: pd.DataFrame) -> Listing:
    """Return how often each class was predicted as which, as the mean over repeats."""
    repeats = analysis.cube.sizes.get("repeat", 1)
    known = frame.dropna(subset=["predicted_class"])
    table = pd.crosstab(known["label"].astype(str), known["predicted_class"].astype(str)) / repeats
    names = list(dict.fromkeys([*table.index, *table.columns]))
    table = table.reindex(index=names, columns=names, fill_value=0.0)
    rows = []
    for name in names:
        counts, total = table.loc[name], float(table.loc[name].sum())
        right = float(table.loc[name, name]) / total if total else np.nan
        cells = [Cell(f"{value:.4g}", key=float(value)) for value in counts]
        rows.append([Cell(printable(name), key=name), *cells, Cell(percent(right, digits=1), key=right)])
    head = ["True class", *(f"Predicted {printable(name)}" for name in names), "Right"]
    note = f"{analysis.cut.capitalize()}." if analysis.cut else ""
    note += f" Counts are means over {repeats} repeats." if repeats > 1 else ""
    return Listing(head, rows, 1, "Confusion", note.strip(), "confusion", [False, *[True] * (len(names) + 1)])


def _residuals(frame: pd.DataFrame) -> Drawing:
    """Return predictions against the truth, averaged over repeats."""
    mean = frame.groupby("sample", sort=False)[["label", "prediction"]].mean().dropna()
    some = mean.iloc[:: max(1, len(mean) // MOST_POINTS)]
    error = mean["prediction"] - mean["label"]

    def draw(ax, narrow: bool) -> None:  # type: ignore[no-untyped-def]
        ends = [float(mean.to_numpy().min()), float(mean.to_numpy().max())]
        ax.plot(ends, ends, color=MUTED, lw=1)
        ax.plot(some["prediction"], some["label"], "o", ms=3.5, mfc="none", mec=HONEST, alpha=0.7, ls="")
        finished(ax, x="predicted out of sample", y="true", grid="both")

    left = f" A regular sample of {len(some)} points is shown." if len(some) < len(mean) else ""
    return Drawing(
        "residuals",
        draw,
        height=(3.6, 3.2),
        caption=f"Truth against out-of-sample prediction of the selected configuration; the line is equality.{left}",
        text=f"Scatter plot of {len(mean)} samples. Residuals (predicted minus true) have mean {error.mean():.3g} and "
        f"standard deviation {error.std():.3g}.",
    )
