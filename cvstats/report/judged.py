"""What else the winner is judged by: several metrics of one decision, its worth at each time, and its curves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, listened
from cvstats.curves import calibration_curve, decision_curve, roc_curve
from cvstats.metrics import Metric, metric_set, survival_auc, survival_observed_expected
from cvstats.plot.curves import plot_calibration, plot_decision, plot_roc
from cvstats.protocols.bootstrap_winner import winner
from cvstats.tables.render import Cell
from cvstats.tables.words import count, limits_text, metric_words, number, p_text, places_of, printable, spread_of

from .analysis import FEW_DRAWS, Analysis
from .page import Block, Drawing, Listing

MOST_TIMES = 5
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
            gap = float(np.nanmax(np.abs(curve["naive"].values - curve["estimate"].values)))
            text = f"{caption} The corrected curve differs from the plain one by at most {gap:.3g}."
            made.append(Drawing(f"curve-{name}", partial(_draw, plot, curve), (3.6, 3.3), caption, text, small=True))
    chosen = "Judged" if analysis.single else f"Chosen by {analysis.name} again in each draw and judged"
    note = (
        f"{chosen} on the samples left out of {count(times)} draws; the dashed line is what plain cross-validation "
        "draws. Limits hold point by point."
    )
    return [note, *made] if made else []


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
            draw = partial(_draw, plot_calibration, curve)
            drawn.append(Drawing(f"survival-{len(drawn)}", draw, (3.4, 3.2), caption, text=caption))
    note = f"One decision, the choice by {analysis.name}, judged at each time." if not analysis.single else ""
    return [note, judged_table(found, analysis.percentage, "By time", "times"), *drawn]


def _draw(plot: Callable[..., Any], curve: xr.Dataset, ax: Any, narrow: bool) -> None:
    plot(curve, ax=ax)
