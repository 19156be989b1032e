"""Figures of one analysis: methods side by side, who wins how often, optimism by number of configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, plain, show
from cvstats.metrics import traits_of
from cvstats.tables import words

from . import style
from .style import NOTE, finished, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUMMARY = {
    "mean over all": ("conf_low", "conf_high"),
    "a new one": ("predict_low", "predict_high"),
}  # rows of a forest plot below the sites


def plot_intervals(
    results: xr.Dataset,
    *,
    ax: Axes | None = None,
    title: str = "",
    numbers: bool = True,
    truth: float | None = None,
    truth_label: str = "truth",
) -> Axes:
    """Draw the estimates of several methods below each other, with their intervals and with what plain CV claims.

    Parameters
    ----------
    results : Dataset
        A result of a protocol, or several stacked by `bind`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.
    numbers : bool
        Whether to print each estimate and interval at the right.
    truth : float, optional
        A known value to compare with, drawn as a line.
    truth_label : str
        What the legend calls it: the truth of a simulation, or a test set, which is itself an estimate.

    Returns
    -------
    matplotlib.axes.Axes
        Dots are estimates, bars intervals, open diamonds the naive value (``naive``).

    Raises
    ------
    InputError
        `results` are in different metrics, or hold several data sets.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 30, rng=1)
    >>> ax = cs.plot_intervals(cs.bind(cs.cvt(cube, "accuracy"), cs.bbc(cube, "accuracy", times=50, rng=1)))
    >>> ax.get_xlabel()
    'accuracy (higher is better)'
    """
    style.drawable(results, "results", "a protocol such as bbc(), or bind()", ("estimate",), {"method"})
    if "method" not in results.dims:
        label = plain(results["method"].values[()]) if "method" in results.coords else "estimate"
        results = results.drop_vars("method", errors="ignore").expand_dims(method=[label])
    rows = results.sizes["method"]
    ax, shades = style.axes(ax, 6.8, 0.9 + 0.42 * rows, rows=rows)
    at = np.arange(rows)
    blank = np.full(rows, np.nan)
    estimate, low, high, naive = (
        results[name].values.astype(float) if name in results else blank
        for name in ("estimate", "conf_low", "conf_high", "naive")
    )
    if truth is not None:
        ax.axvline(float(truth), color=shades.ink, lw=1, ls=style.DOTTED, label=truth_label, zorder=1)
    moved = np.abs(naive - estimate) > 0
    ax.hlines(at[moved], estimate[moved], naive[moved], color=shades.claim, lw=1, ls=style.DOTTED, zorder=2)
    ax.hlines(at, low, high, color=shades.honest, lw=2.4, zorder=3, label="interval" if np.isfinite(low).any() else "")
    for ends in (low, high):
        ax.plot(ends, at, "|", color=shades.honest, ms=9, mew=1.6, zorder=3)
    claim = "what plain CV claims" if np.isfinite(naive).any() else ""
    ax.plot(naive, at, "D", mfc=shades.paper, mec=shades.claim, mew=1.4, ms=7, zorder=4, ls="", label=claim)
    ax.plot(estimate, at, "o", color=shades.ink, ms=6, zorder=5, ls="", label="estimate")
    names = [words.short(words.method_words(name), 30) for name in words.labels_of(results, "method")]
    texts = _number_texts(results) if numbers else []
    wide = style.width_of(ax) > style.ROOMY
    if texts and not wide:  # no room at the right: below the name
        names = [f"{name}\n{text}" for name, text in zip(names, texts, strict=True)]
    style.row_labels(ax, names)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=6)  # labels of three decimals need room
    if texts and wide:
        right = ax.secondary_yaxis("right")
        right.set_yticks(range(len(texts)), texts)
        right.tick_params(length=0, labelsize=NOTE)
        right.spines["right"].set_visible(False)
    return finished(ax, title, x=_metric_label(results), grid="x", above=4)


def _number_texts(results: xr.Dataset) -> list[str]:
    rows = [results.isel(method=row) for row in range(results.sizes["method"])]
    spreads = np.array([words.spread_of(one) for one in rows])
    usual = float(np.nanmedian(spreads)) if np.isfinite(spreads).any() else np.nan
    return [words.estimate_text(one, usual) for one in rows]


def _metric_label(result: xr.Dataset) -> str:
    if "metric" not in result.coords:
        return "estimate"
    names = {str(plain(name)) for name in np.ravel(result["metric"].values)}
    if len(names) > 1:
        raise InputError(f"`results` are in different metrics: {show(sorted(names))}; draw one metric at a time.")
    name = names.pop()
    known = traits_of(name)
    return words.metric_words(name) + (f" ({words.better(known)})" if known else "")


def plot_forest(
    results: xr.Dataset, *, summary: xr.Dataset | None = None, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Draw the estimates of sites or subgroups below each other (a forest plot), and what they say together.

    Parameters
    ----------
    results : Dataset
        Estimates along one dim, such as ``winner(cube, metric, subgroup="site")``.
    summary : Dataset, optional
        What `meta_analysis` says of them: the mean with its limits, and the interval for a new site.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        One row for each site, then those of the summary, marked as in `plot_intervals`.

    References
    ----------
    Lewis, Clarke (2001). Forest plots: trying to see the wood and the trees. BMJ 322, 1479-1480.
    doi:10.1136/bmj.322.7300.1479

    Examples
    --------
    >>> import numpy as np
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(90, 5, rng=1).assign_coords(site=("sample", np.repeat(list("xyz"), 30)))
    >>> sites = cs.winner(cube, "accuracy", subgroup="site", times=50, rng=1)
    >>> ax = cs.plot_forest(sites, summary=cs.meta_analysis(sites, "site"))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x', 'y', 'z', 'mean over all', 'a new one']
    """
    style.drawable(results, "results", "winner(..., subgroup=...)", ("estimate",))
    dims = results["estimate"].dims
    if len(dims) != 1 or dims[0] == "method":
        raise InputError(f"`results` must have one dim, of sites or subgroups; found {show(dims) or 'none'}.")
    names = [name for name in ("estimate", "conf_low", "conf_high", "naive") if name in results]
    rows = [results[names].drop_vars("method", errors="ignore").rename({dims[0]: "method"})]
    if summary is not None:
        style.drawable(summary, "summary", "meta_analysis()", ("estimate", "predict_low", "predict_high"), set())
        for name, (low, high) in SUMMARY.items():
            one = {"estimate": summary["estimate"], "conf_low": summary[low], "conf_high": summary[high]}
            own = xr.Dataset({key: value.reset_coords(drop=True) for key, value in one.items()})
            rows.append(own.expand_dims(method=[name]))
        rows[0] = rows[0].assign_coords(method=rows[0]["method"].astype(str))
    together = xr.concat(rows, "method", coords="minimal", compat="override", join="outer", data_vars="all")
    return plot_intervals(together, ax=ax, title=title)


def plot_win_rates(
    result: xr.Dataset, *, top: int = 12, ax: Axes | None = None, title: str = "", longest: int = words.LONGEST
) -> Axes:
    """Draw how often each configuration wins over the bootstrap draws, the most frequent winner first.

    Parameters
    ----------
    result : Dataset
        From `bbc`, `bbcd` or `winner`, with ``win_rate``.
    top : int
        How many configurations to show; the others share one bar at the bottom.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.
    longest : int
        Characters of a name that are shown; the middle of longer ones is left out.

    Returns
    -------
    matplotlib.axes.Axes
        The configuration selected on all samples has a solid bar, the others are hatched.

    Raises
    ------
    InputError
        `result` has no ``win_rate``, or holds several data sets.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 30, rng=1)
    >>> ax = cs.plot_win_rates(cs.bbc(cube, "accuracy", times=50, rng=1), top=5)
    >>> len(ax.get_yticklabels()) <= 6
    True
    """
    style.drawable(result, "result", "bbc() or winner()", ("win_rate",), {"configuration"})
    top, longest = check_count(top, "top"), check_count(longest, "longest", minimum=5)
    rate = result["win_rate"].values.astype(float)
    if np.isnan(rate).all():
        raise InputError("`result` has no win rates to draw: none of its draws was usable.")
    labels = words.labels_of(result, "configuration")
    chosen = plain(result["selected"].values[()]) if "selected" in result and result["selected"].ndim == 0 else None
    order = [at for at in np.argsort(-np.nan_to_num(rate), kind="stable") if rate[at] > 0]
    shown = order[:top]
    if chosen in labels and labels.index(chosen) not in shown:
        shown.append(labels.index(chosen))
    rest = [at for at in order if at not in shown]
    shades = palette()
    solid: dict[str, Any] = {"facecolor": shades.honest, "edgecolor": shades.honest}
    hatched: dict[str, Any] = {"facecolor": shades.paper, "edgecolor": shades.muted, "hatch": "////"}
    looks = [solid if labels[at] == chosen else hatched for at in shown]
    bars = [(words.short(labels[at], longest), float(rate[at]), look) for at, look in zip(shown, looks, strict=True)]
    if rest:
        dashed: dict[str, Any] = {"facecolor": shades.paper, "edgecolor": shades.muted, "ls": (0, (3, 2))}
        bars.append((words.several(len(rest), "other"), float(rate[rest].sum()), dashed))
    ax, _ = style.axes(ax, 6.4, 0.9 + 0.3 * max(1, len(bars)), rows=len(bars))
    wide = style.width_of(ax) > style.ROOMY  # else there is no room for words beside the bars
    for row, (_, value, look) in enumerate(bars):
        ax.barh(row, value, height=0.62, lw=1, **look)
        text = words.percent(value) + (" (selected)" if wide and look is solid else "")
        ax.annotate(text, (value, row), (4, 0), textcoords="offset points", va="center", fontsize=NOTE)
    style.row_labels(ax, [name for name, _, _ in bars])
    largest = max((value for _, value, _ in bars), default=1.0)
    ax.set_xlim(0, min(1.32 * largest, 1.25) if largest > 0 else 1)
    ax.set_xticks(*_percent_ticks(largest, 5.5 if wide else 3.5))
    one = "n_draws" in result and not result["n_draws"].ndim  # several metrics have a number each
    draws = f"{int(result['n_draws'])} bootstrap draws" if one else "bootstrap draws"
    return finished(ax, title, x=f"wins (% of {draws})" if wide else "wins (% of draws)", grid="x")


def _percent_ticks(largest: float, most: float) -> tuple[list[float], list[str]]:
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if largest / s <= most), 0.25 if most > 5 else 0.5)
    ticks = [step * at for at in range(int(np.floor(largest / step + 1e-9)) + 1)]
    return ticks, [words.percent(tick) for tick in ticks]


def plot_optimism(curve: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw what plain CV claims and what is left after correction, against the number of configurations tried.

    Parameters
    ----------
    curve : Dataset
        From `optimism_curve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The shaded gap is the optimism.

    Raises
    ------
    InputError
        `curve` does not come from `optimism_curve`.

    Examples
    --------
    >>> import cvstats as cs
    >>> curve = cs.optimism_curve(cs.simulate_cube(60, 30, rng=1), "accuracy", times=50, rng=1)
    >>> cs.plot_optimism(curve).get_xlabel()
    'number of configurations tried'
    """
    style.drawable(curve, "curve", "optimism_curve()", ("estimate", "naive", "n_configurations"), {"n_configurations"})
    ax, shades = style.axes(ax, 6.4, 3.4)
    x = curve["n_configurations"].values
    naive, honest = curve["naive"].values.astype(float), curve["estimate"].values.astype(float)
    ax.fill_between(x, naive, honest, color=shades.rule, alpha=0.55, lw=0, label="optimism")
    dashed: dict[str, Any] = {"ls": style.DASHED, "marker": "D", "mfc": shades.paper, "ms": 4.5}
    ax.plot(x, naive, color=shades.claim, lw=1.6, label="what plain CV claims", **dashed)
    ax.plot(x, honest, color=shades.ink, lw=1.8, marker="o", ms=4, label="corrected")
    if len(x) > 1:
        ax.set_xscale("log")
    _count_ticks(ax, x)
    gap = float(curve["optimism"].values[-1]) if "optimism" in curve else abs(naive[-1] - honest[-1])
    if np.isfinite(gap):
        text = words.number(gap, min(words.places_of(abs(gap)) if gap else 1, 4))  # two digits
        beside: dict[str, Any] = {"xytext": (6, 0), "textcoords": "offset points", "annotation_clip": False}
        ax.annotate(text, (x[-1], (naive[-1] + honest[-1]) / 2), va="center", fontsize=NOTE, **beside)
    return finished(ax, title, x="number of configurations tried", y=_metric_label(curve), grid="y", above=3)


def _count_ticks(ax: Axes, x: np.ndarray) -> None:
    decades = [m * 10**e for e in range(7) for m in (1, 2, 5)]
    ticks = [tick for tick in decades if x.min() <= tick <= x.max()]
    if len(ticks) > 7:
        ticks = [tick for tick in ticks if str(tick)[0] == "1"]
    if int(x.max()) not in ticks:
        ticks = [tick for tick in ticks if tick * 1.5 < x.max()] + [int(x.max())]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
