"""The curves of the winner: ROC, calibration and decision curve, as plain CV draws them and corrected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, listened
from cvstats.curves import calibration_curve, decision_curve, roc_curve
from cvstats.plot.curves import plot_calibration, plot_decision, plot_roc
from cvstats.tables.words import count

from .analysis import FEW_DRAWS, Analysis
from .page import Block, Drawing

CURVE_CELLS = 5e6  # predictions beyond which the report draws no curves

CURVES: dict[str, tuple[Callable[..., xr.Dataset], Callable[..., Any], str]] = {
    "roc": (roc_curve, plot_roc, "ROC curve: sensitivity against the false positive rate."),
    "calibration": (
        calibration_curve,
        plot_calibration,
        "Calibration: how often the event happens, against the probability that was predicted.",
    ),
    "decision": (
        decision_curve,
        plot_decision,
        "Decision curve: net benefit against the threshold probability, beside treating all and none.",
    ),
}


def curve_blocks(analysis: Analysis) -> list[Block]:
    """Return the curves that predictions of two classes allow, chosen as the winner is and corrected by fewer draws."""
    cube = analysis.cube
    if "positive" not in cube.coords or cube.chunks is not None or cube.size > CURVE_CELLS:
        return []
    times, made = min(analysis.times, FEW_DRAWS), list[Block]()
    how = {"times": times, "rng": analysis.seed, "level": analysis.level}
    for name, (compute, plot, caption) in CURVES.items():
        if analysis.kind not in ("probability", *(["score"] if compute is roc_curve else [])):
            continue
        try:
            shared = analysis.first_draws if compute is roc_curve else analysis.first_plain_draws
            curve = listened([], partial(compute, analysis.contenders, by=analysis.metric, draws=shared, **how))
        except InputError:  # such as a metric of the user that no list takes
            continue
        if np.isfinite(curve["estimate"].values).any():
            made.append(_drawing(name, curve, plot, caption))
    chosen = "Judged" if analysis.single else f"Chosen by {analysis.name} again in each draw and judged"
    note = (
        f"{chosen} on the samples left out of {count(times)} draws; the dashed line is what plain cross-validation "
        "draws. Limits hold point by point."
    )
    return [note, *made] if made else []


def _drawing(name: str, curve: xr.Dataset, plot: Callable[..., Any], caption: str) -> Drawing:
    gap = float(np.nanmax(np.abs(curve["naive"].values - curve["estimate"].values)))
    return Drawing(
        f"curve-{name}",
        lambda ax, narrow: plot(curve, ax=ax),
        height=(3.6, 3.3),
        caption=caption,
        text=f"{caption} The corrected curve differs from the plain one by at most {gap:.3g}.",
        small=True,
    )
