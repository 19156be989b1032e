"""Several metrics of one decision: those that were asked for, and of survival times those at each horizon."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, listened
from cvstats.curves import calibration_curve
from cvstats.metrics import Metric, metric_set, survival_auc, survival_observed_expected
from cvstats.plot.curves import plot_calibration
from cvstats.protocols.bootstrap_winner import winner
from cvstats.tables.render import Cell
from cvstats.tables.words import limits_text, metric_words, number, p_text, places_of, printable, spread_of

from .analysis import FEW_DRAWS, Analysis
from .page import Block, Drawing, Listing

MOST_TIMES = 5


def judged_table(found: xr.Dataset, percentage: str, caption: str, name: str) -> Listing:
    """Return estimate, interval and plain CV score of one decision by every metric, in every subgroup."""
    down, rows = [str(dim) for dim in found["estimate"].dims], []
    shown = ["estimate", "conf_low", "naive", "optimism", *(["p_adjusted"] if "p_adjusted" in found else [])]
    for place in np.ndindex(found["estimate"].shape):
        one = found.isel(dict(zip(down, place, strict=True)))
        places = places_of(spread_of(one), float(one["estimate"]))
        texts = {name: number(one[name], places) for name in shown} | {"conf_low": limits_text(one, places) or "–"}
        if "p_adjusted" in shown:
            texts["p_adjusted"] = p_text(float(one["p_adjusted"]))
        names = [metric_words(one[dim].item()) if dim == "metric" else printable(one[dim].item()) for dim in down]
        keys = {name: float(one[name]) for name in texts}
        cells = [Cell(text, key=keys[name] if np.isfinite(keys[name]) else None) for name, text in texts.items()]
        rows.append([*(Cell(name, key=name) for name in names), *cells])
    head = [*(dim.capitalize() for dim in down), "Estimate", f"{percentage} interval", "Plain CV", "Optimism"]
    note = "" if len(shown) < 5 else "P is of the difference between a level and all others, Holm-adjusted."
    numeric = [False] * len(down) + [True] * len(shown)
    return Listing([*head, "P"][: len(numeric)], rows, len(down), caption, note, name, numeric)


def survival_blocks(analysis: Analysis) -> list[Block]:
    """Return what the choice is worth at each time that was predicted, or at the median time of events."""
    cube = analysis.cube
    if "event" not in cube.coords or cube.chunks is not None:
        return []
    times = np.ravel(cube["horizon"].values)[:MOST_TIMES].tolist() if "horizon" in cube.coords else []
    metrics: list[str | Metric] = [metric for metric in metric_set(cube) if getattr(metric, "time", None) in times]
    calibrated = bool(times) and analysis.kind == "probability"
    if calibrated:
        metrics += [survival_observed_expected(time) for time in times]
    if not metrics:
        times = [float(np.median(cube["label"].values[cube["event"].values == 1]))]
        metrics = [survival_auc(times[0])]
    how: dict[str, Any] = {"by": analysis.metric, "times": min(analysis.times, FEW_DRAWS), "rng": analysis.seed}
    try:
        found = listened([], partial(winner, cube, metrics, level=analysis.level, **how))
    except InputError:  # such as a metric of the user that no list takes
        return []
    drawn: list[Block] = []
    for time in times if calibrated else ():
        curve = listened([], partial(calibration_curve, cube, binned=True, horizon=time, **how))
        caption = f"Calibration at time {time:g}: share of events by then (Kaplan-Meier), against the predicted risk."
        if np.isfinite(curve["estimate"].values).any():
            drawn.append(
                Drawing(
                    f"survival-{len(drawn)}",
                    lambda ax, narrow, curve=curve: plot_calibration(curve, ax=ax),  # type: ignore[misc]
                    height=(3.4, 3.2),
                    caption=caption,
                    text=caption,
                )
            )
    note = f"One decision, the choice by {analysis.name}, judged at each time." if not analysis.single else ""
    return [note, judged_table(found, analysis.percentage, "By time", "times"), *drawn]
