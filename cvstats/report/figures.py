"""The figures of the report, each with its caption and its words."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import plain
from cvstats.tables.words import count, method_words, metric_words, number, percent, printable

from .analysis import Analysis
from .parts import between, choice_words, known_truth, places
from .svg import Figure, draw_figure


def figures(analysis: Analysis) -> dict[str, Figure]:
    """Return the figures that this analysis allows."""
    from cvstats.plot.estimates import plot_intervals, plot_optimism, plot_win_rates
    from cvstats.tables import bind

    keep = ("estimate", "conf_low", "conf_high", "naive", "std_error")
    slim = {name: out[[v for v in keep if v in out]] for name, out in analysis.results.items()}
    stacked, digits, truth = bind(**slim), places(analysis), known_truth(analysis)
    metric = metric_words(analysis.metric.name)
    known = float(truth) if np.isfinite(truth) else None
    said = "; ".join(_said(name, out, digits) for name, out in analysis.results.items())
    rows = len(analysis.results)
    test = f" The dotted line is the selected configuration's {metric} on a test set." if known is not None else ""
    found = {
        "intervals": draw_figure(
            "intervals",
            lambda ax, narrow: plot_intervals(stacked, ax=ax, truth=known),
            height=(1.0 + 0.42 * rows, 1.2 + 0.52 * rows),
            caption=f"Estimates of the winner's {metric} by method.{test}",
            text=f"Dot plot of {metric}. {said}.",
        )
    }
    rate = np.sort(analysis.winner["win_rate"].values.astype(float))[::-1]
    if len(rate) > 1 and np.isfinite(rate).any():
        bars = min(int((rate > 0).sum()), 11) + 1
        top = plain(analysis.cube["configuration"].values[int(np.nanargmax(analysis.winner["win_rate"].values))])
        found["win_rates"] = draw_figure(
            "win-rates",
            lambda ax, narrow: plot_win_rates(analysis.winner, top=10, ax=ax, longest=22 if narrow else 40),
            height=(0.8 + 0.3 * bars, 0.8 + 0.3 * bars),
            caption="How often each configuration wins when samples are drawn again; the solid bar is selected.",
            text=f"Bar chart of win rates. Most frequent winner: {printable(top)}, {percent(float(rate[0]))} of draws. "
            + choice_words(analysis),
        )
    if analysis.curve is not None:
        curve = analysis.curve
        last = {name: number(curve[name].values[-1], digits) for name in ("naive", "estimate")}
        found["optimism"] = draw_figure(
            "optimism",
            lambda ax, narrow: plot_optimism(curve, ax=ax),
            height=(3.2, 2.9),
            caption="The more configurations are tried, the more plain CV of the winner claims beyond what is there.",
            text=f"Line chart of {metric} against the number of configurations tried. With all "
            f"{count(curve['n_configurations'].values[-1])} plain CV claims {last['naive']} and "
            f"{last['estimate']} is left after correction.",
        )
    return found


def _said(name: str, outcome: xr.Dataset, digits: int) -> str:
    limits = between(outcome, digits)
    return f"{method_words(name)} {number(outcome['estimate'], digits)}" + (f" ({limits})" if limits else "")
