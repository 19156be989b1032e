"""The figures of the report, each with its caption and its words."""

from __future__ import annotations

import numpy as np

from cvstats._check import plain
from cvstats.plot.estimates import plot_intervals, plot_optimism, plot_win_rates
from cvstats.tables.results import bind
from cvstats.tables.words import count, method_words, percent, printable

from .analysis import Analysis
from .blocks import figure
from .drawing import Drawing
from .remarks import choice_words


@figure("header")
def intervals(analysis: Analysis) -> Drawing:
    """Draw all estimates below each other."""
    keep = ("estimate", "conf_low", "conf_high", "naive", "std_error")
    stacked = bind(**{name: out[[v for v in keep if v in out]] for name, out in analysis.results.items()})
    truth = analysis.truth if np.isfinite(analysis.truth) else None
    rows, said = len(analysis.results), []
    for name, out in analysis.results.items():
        limits = analysis.limits(out)
        said.append(f"{method_words(name)} {analysis.number(out['estimate'])}{limits and f' ({limits})'}")
    test = f" The dotted line is the selected configuration's {analysis.name} on a test set." if truth else ""
    return Drawing(
        "intervals",
        lambda ax, narrow: plot_intervals(stacked, ax=ax, truth=truth),
        height=(1.0 + 0.42 * rows, 1.2 + 0.52 * rows),
        caption=f"Estimates of the winner's {analysis.name} by method.{test}",
        text=f"Dot plot of {analysis.name}. {'; '.join(said)}.",
    )


@figure("winners")
def win_rates(analysis: Analysis) -> Drawing | None:
    """Draw who wins how often."""
    rate = analysis.winner["win_rate"].values.astype(float)
    if len(rate) < 2 or not np.isfinite(rate).any():
        return None
    height = 0.8 + 0.3 * (min(int((rate > 0).sum()), 11) + 1)
    top = printable(plain(analysis.cube["configuration"].values[int(np.nanargmax(rate))]))
    return Drawing(
        "win-rates",
        lambda ax, narrow: plot_win_rates(analysis.winner, top=10, ax=ax, longest=22 if narrow else 40),
        height=(height, height),
        caption="How often each configuration wins when samples are drawn again; the solid bar is selected.",
        text=f"Bar chart of win rates. Most frequent winner: {top}, {percent(float(np.nanmax(rate)))} of draws. "
        + choice_words(analysis),
    )


@figure("optimism")
def optimism(analysis: Analysis) -> Drawing | None:
    """Draw what trying many configurations costs."""
    curve = analysis.curve
    if curve is None:
        return None
    claim, left = (analysis.number(curve[name].values[-1]) for name in ("naive", "estimate"))
    return Drawing(
        "optimism",
        lambda ax, narrow: plot_optimism(curve, ax=ax),
        height=(3.2, 2.9),
        caption="The more configurations are tried, the more plain CV of the winner claims beyond what is there.",
        text=f"Line chart of {analysis.name} against the number of configurations tried. With all "
        f"{count(curve['n_configurations'].values[-1])} plain CV claims {claim} and {left} is left after correction.",
    )
