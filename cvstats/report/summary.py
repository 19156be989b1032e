"""One look: what was read, what to keep in mind and the headline of a cube; the sentence of a result."""

from __future__ import annotations

import html

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, entropy
from cvstats.metrics import Metric
from cvstats.tables import words

from .analysis import Analysis
from .design import read_facts
from .remarks import remarks_of
from .sections import headline


class Summary:
    """Text for people: prints as it is, and in a notebook as HTML."""

    def __init__(self, title: str, facts: list[tuple[str, str]], remarks: list[str], more: str = "") -> None:
        self.title, self.facts, self.remarks, self.more = title, facts, remarks, more

    def __repr__(self) -> str:
        wide = max((len(name) for name, _ in self.facts), default=0)
        lines = [self.title, *([self.more] if self.more else [])]
        lines += [f"  {name:<{wide}}  {text}" for name, text in self.facts]
        return "\n".join([*lines, *(f"- {text}" for text in self.remarks)])

    def _repr_html_(self) -> str:
        def safe(text: str) -> str:
            return html.escape(text)

        rows = "".join(
            f"<tr><th style='text-align:left'>{safe(a)}</th><td style='text-align:left'>{safe(b)}</td></tr>"
            for a, b in self.facts
        )
        items = "".join(f"<li>{safe(text)}</li>" for text in self.remarks)
        more = f"<p>{safe(self.more)}</p>" if self.more else ""
        table = f"<table>{rows}</table>" if rows else ""
        return f"<p><b>{safe(self.title)}</b></p>{more}{table}{f'<ul>{items}</ul>' if items else ''}"


def summary(
    x: xr.DataArray | xr.Dataset,
    metric: str | Metric | None = None,
    *,
    inner: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = 1,
    level: float = 0.95,
) -> Summary:
    """Return what to know first of a cube (what was read, remarks, headline) or of a result (its sentence).

    Parameters
    ----------
    x : DataArray or Dataset
        A cube, or the result of a protocol, test or curve.
    metric : str or Metric, optional
        Of a cube; by default by the kind of labels, as in `report_html`.
    inner, times, rng, level : as in `winner`
        Of a cube. The seed is fixed at 1 unless given.

    Returns
    -------
    Summary
        An object that prints; in a notebook it shows as HTML. ``str(summary(x))`` is the text.

    Raises
    ------
    InputError
        `x` is neither a cube nor a result of cvstats.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 20, rng=1)
    >>> cs.summary(cs.winner(cube, "accuracy", times=100, rng=1))
    Accuracy 0.785 (95% interval 0.637 to 0.918); plain CV claims 0.833; selected 9.
    >>> print(str(cs.summary(cube, times=100)).splitlines()[0])
    Accuracy of the winner: 0.785 (95% interval 0.637 to 0.918)
    """
    if isinstance(x, xr.Dataset):
        first, *rest = sentences(x)
        return Summary(first, [], rest)
    if not isinstance(x, xr.DataArray):
        raise InputError(f"`x` must be a cube (DataArray) or a result (Dataset); got {type(x).__name__}.")
    analysis = Analysis(x, metric, inner, times=times, seed=entropy(rng), level=level)
    whose = "configuration" if analysis.single else "winner"
    title = f"{words.capital(analysis.name)} of the {whose}: {analysis.estimated}"
    label = "Configuration" if analysis.single else "Selected"
    more = f"{label}: {words.printable(analysis.winner['selected'].item())}. {headline(analysis)}"
    facts = read_facts(x, analysis.design, analysis.source)
    return Summary(title, facts, [remark.text for remark in remarks_of(analysis)], more)


def sentences(result: xr.Dataset) -> list[str]:
    """Return the sentence of a result, one for each of its rows."""
    if "cvstats_version" not in result.attrs:
        raise InputError("`x` is a Dataset that no function of cvstats made; give a cube or a result.")
    main = next((name for name in ("estimate", "statistic", "p_value") if name in result), None)
    if main is None:
        method = words.capital(words.method_words(result["method"].values[()]))
        return [f"{method}: {', '.join(map(str, result.data_vars))}."]
    if "in_set" in result and result["in_set"].dims == ("configuration",):
        name, total = words.metric_words(result["metric"].values[()]), result.sizes["configuration"]
        inside = f"{int(result['n_set'])} of {words.several(total, 'configuration')} cannot be excluded as the best"
        return [f"{words.capital(name)}: {inside}; selected {words.printable(result['selected'].item())}."]
    dims = [str(dim) for dim in result[main].dims]
    rows = [_row(result.isel(dict(zip(dims, place, strict=True))), dims) for place in np.ndindex(result[main].shape)]
    rows = rows if len(rows) <= 60 else [*rows[:60], f"and {len(rows) - 60} more rows"]
    return [*rows, f"About {result.attrs['about']}."] if "about" in result.attrs else rows


def _row(one: xr.Dataset, dims: list[str]) -> str:
    where = [f"{dim} {words.printable(one[dim].item())}" for dim in dims if dim != "metric" and dim in one.coords]
    name = words.metric_words(one["metric"].item()) if "metric" in one.coords and one["metric"].item() != "none" else ""
    made = next((label for label in ("test", "method") if label in one.coords and not one[label].ndim), None)
    name = name or words.method_words(one[made].item() if made else "result")
    compared = {"estimate_a", "n_a"} & set(one.data_vars)  # two configurations or families
    name = f"difference in {name}, a \u2212 b:" if compared else name
    text = words.capital(", ".join([name, *where]))
    if "estimate" in one:
        said, level = words.estimate_text(one), float(one["conf_level"]) if "conf_level" in one.coords else np.nan
        text += f" {said.replace('(', f'({words.level_words(level)} interval ', 1) if np.isfinite(level) else said}"
    parts = [text]
    places = words.places_of(words.spread_of(one), float(one["estimate"])) if "estimate" in one else 4
    if "naive" in one and not one["naive"].ndim and not compared:
        parts.append(f"plain CV claims {words.number(one['naive'], places)}")
    if "p_value" in one and not one["p_value"].ndim:
        said = words.p_text(float(one["p_value"]))
        alike = " (no difference between sites)" if "predict_low" in one else ""
        parts.append((f"P {said}" if said.startswith("<") else f"P = {said}") + alike)
    chosen = one["selected"].item() if "selected" in one and not one["selected"].ndim else ""
    if "share" in one or not (chosen == "" or chosen != chosen):  # else nothing was selected
        parts.append(f"selected {'a mixture' if chosen == '' or chosen != chosen else words.printable(chosen)}")
    return "; ".join(parts) + "."


def text_of(dataset: xr.Dataset) -> str:
    """Return a dataset's text, of a result with its sentence first and every variable shown."""
    if "cvstats_version" not in dataset.attrs:
        return repr(dataset)
    with xr.set_options(display_max_rows=60):  # type: ignore[no-untyped-call]
        return "\n".join([*sentences(dataset), "", repr(dataset)])


def page_of(dataset: xr.Dataset) -> str:
    """Return a dataset's HTML, of a result with its sentence first."""
    said = sentences(dataset) if "cvstats_version" in dataset.attrs else []
    return "".join(f"<p><b>{html.escape(line)}</b></p>" for line in said) + dataset._repr_html_()
