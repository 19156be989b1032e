"""Publication tables: which number goes where, and with how many digits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_count, check_dim, check_option, nearest, plain, show

from .frames import QUALIFIERS, main_dims, tidy
from .render import RENDERERS, Cell, Grid
from .words import labels_of, number_text, p_text, places_of

NOTE = "* P < 0.05, ** P < 0.01"
# numbers in the metric's unit: scaled together, digits from the standard error
_SCALED = {
    *("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high", "naive", "optimism", "bbc_plain"),
    *("estimate_a", "estimate_b", "difference", "truth", "std_dev", "rmse"),
}
_STARS = {"estimate": "p_value", "std_dev": "obrien_p_value"}
_TITLES = {"std_dev": "Standard deviation", "rmse": "Root mean square", "p_value": "P", "std_error": "SE", "df": "df"}


def format_table(
    x: xr.Dataset | xr.DataArray | pd.DataFrame,
    format: str = "text",
    *,
    rows: str | Sequence[str] | None = None,
    columns: str | None = None,
    values: str | Sequence[str] | None = None,
    stars: bool = True,
    digits: int | None = None,
    unit: str = "",
    scale: float | None = None,
    caption: str = "",
) -> str:
    """Return a result as a table to read or to publish.

    With `columns` the labels of that dimension head the columns and all other dims (or `rows`) name the rows, one
    table per entry of `values`; this is the default for results over two or more dims, and for a `bias_table` it
    shows mean bias, standard deviation and truth. Otherwise every row of `tidy` is a line.

    Parameters
    ----------
    x : Dataset, DataArray or DataFrame
        A result, a metric's values, or any data frame.
    format : {"text", "markdown", "latex", "html"}
        LaTeX needs the package booktabs.
    rows, columns : str, optional
        Dims for the rows and the columns of a cross table.
    values : str or sequence of str, optional
        Which variables to show.
    stars : bool
        Mark ``P < 0.05`` with ``*`` and ``P < 0.01`` with ``**`` (the t-test for ``estimate``, O'Brien's test for
        ``std_dev``).
    digits : int, optional
        Decimals. By default as many as give the (median) standard error two significant digits; without a standard
        error, four significant digits of the largest number.
    unit : str
        Shown in the heading; ``"%"`` also multiplies numbers in the metric's unit by 100.
    scale : float, optional
        What to multiply numbers in the metric's unit by instead.
    caption : str
        Above the table (below it in LaTeX and HTML, as their markup has it).

    Returns
    -------
    str
        The table, lines separated by newlines.

    Raises
    ------
    InputError
        An unknown format, variable or dimension; the nearest name is suggested.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> bias = xr.DataArray([[0.02, 0.05, 0.04], [0.0, 0.01, -0.02]], dims=("size", "trial"), coords={"size": [20, 40]})
    >>> print(cs.format_table(cs.t_test(bias, "trial"), values=["estimate", "std_error", "p_value"]))
    size  Estimate      SE      P
    -----------------------------
    20      0.0367  0.0088  0.053
    40     -0.0033  0.0088   0.74
    """
    check_option(format, tuple(RENDERERS), "format")
    if digits is not None:
        digits = check_count(digits, "digits", minimum=0)
    factor = (100.0 if unit == "%" else 1.0) if scale is None else float(scale)
    layout = Style(stars, digits, unit, factor, caption)
    wanted = [values] if isinstance(values, str) else None if values is None else list(values)
    if isinstance(x, pd.DataFrame):
        grids = [layout.listing(x, wanted)]
    else:
        result = x.to_dataset(name=str(x.name or "value")) if isinstance(x, xr.DataArray) else x
        if not isinstance(result, xr.Dataset):
            raise InputError(f"`x` must be a Dataset, DataArray or DataFrame; got {type(x).__name__}.")
        down = None if rows is None else [rows] if isinstance(rows, str) else list(rows)
        grids = _grids(layout, result, down, columns, wanted)
    return "\n\n".join(RENDERERS[format](grid) for grid in grids)


@dataclass(frozen=True)
class Style:
    """How numbers are shown: marks, decimals (None: from the standard error), unit, and what they are multiplied by."""

    stars: bool
    digits: int | None
    unit: str
    factor: float
    caption: str

    def cells(
        self, name: str, x: xr.Dataset | pd.DataFrame, values: Any, times: float, *, each: bool, p: Any = None
    ) -> list[Cell]:
        """Return values of a variable of `x` as text: multiplied, with decimals of their own or shared ones."""
        values = np.ravel(values)
        if values.dtype.kind not in "fiu":
            texts = [str(plain(value)) for value in values]
        elif name.endswith("p_value"):
            texts = [p_text(value) for value in values]
        else:
            places = _places(name, x, values, times, each) if self.digits is None else [self.digits] * len(values)
            texts = [number_text(value * times, digits) for value, digits in zip(values, places, strict=True)]
        stars = np.ravel(p) if p is not None and self.stars else np.ones(len(texts))
        marks = ["**" if value < 0.01 else "*" if value < 0.05 else "" for value in stars]
        return [Cell(text, mark) for text, mark in zip(texts, marks, strict=True)]

    def cross(self, result: xr.Dataset, name: str, down: Sequence[Hashable], across: str, *, titled: bool) -> Grid:
        """Return one variable as a cross table."""
        order, p_name, width = (*down, across), _STARS.get(name), result.sizes[across]
        missing = [dim for dim in order if dim not in result[name].dims]
        values = result[name].expand_dims({dim: result.sizes[dim] for dim in missing}).transpose(*order).values
        starred = p_name in result and set(result[p_name].dims) == set(order)
        p = result[p_name].transpose(*order).values if starred else None
        times = 1.0 if name in ("p_value", "statistic", "df", "n") else self.factor
        cells = self.cells(name, result, values, times, each=False, p=p)
        labels = product(*(map(str, labels_of(result, dim)) for dim in down))
        body = [[*map(Cell, label), *cells[at * width : (at + 1) * width]] for at, label in enumerate(labels)]
        title = "Mean bias" if name == "estimate" and _is_bias(result) else title_of(name)
        title += f" ({self.unit})" if self.unit else ""
        shown = ". ".join(part for part in (self.caption.rstrip("."), title if titled or self.unit else "") if part)
        return _grid([*down, *labels_of(result, across)], body, len(down), shown)

    def listing(
        self, frame: pd.DataFrame, wanted: list[str] | None, labels: int = 0, result: xr.Dataset | None = None
    ) -> Grid:
        """Return a data frame row by row, its first columns as labels; limits become one column."""
        for name in wanted or ():
            if name not in frame:
                close = nearest(name, frame.columns)
                raise InputError(f"`values`: no column {name!r}; found {show(frame.columns)}{close}.")
        keys = list(frame.columns[:labels])
        names = [str(name) for name in (wanted if wanted is not None else frame.columns[labels:])]
        limits = {"conf_low", "conf_high"} <= set(names)
        header, content = keys.copy(), [[Cell(str(plain(v))) for v in frame[k]] for k in keys]
        starred = "p_value" if "p_value" in names else "estimate"
        for name in (name for name in names if name != "conf_high" or not limits):
            times = self.factor if name in _SCALED else 1.0
            p = frame["p_value"] if name == starred and "p_value" in frame else None
            cells = self.cells(name, frame, frame[name], times, each=True, p=p)
            title = title_of(name)
            if name == "conf_low" and limits:
                upper, title = self.cells(name, frame, frame["conf_high"], times, each=True), _interval_title(result)
                pairs = [(low.text, high.text) for low, high in zip(cells, upper, strict=True)]
                cells = [Cell("NA" if low == high == "NA" else f"[{low}, {high}]") for low, high in pairs]
            scaled = self.unit and name in _SCALED and frame[name].dtype.kind in "fiu"
            header.append(f"{title} ({self.unit})" if scaled else title)
            content.append(cells)
        text_first = bool(names) and frame[names[0]].dtype.kind not in "fiu"
        return _grid(header, [list(row) for row in zip(*content, strict=True)], labels or int(text_first), self.caption)


def _grid(header: Sequence[Any], body: list[list[Cell]], labels: int, caption: str) -> Grid:
    note = NOTE if any(cell.marks for row in body for cell in row) else ""
    return Grid([str(name) for name in header], body, labels, caption, note)


def _grids(
    layout: Style, result: xr.Dataset, rows: list[str] | None, columns: str | None, wanted: list[str] | None
) -> list[Grid]:
    for name in wanted or ():
        if name not in result:
            raise InputError(f"`values`: no variable {name!r}; found {show(result.data_vars)}{nearest(name, result)}.")
    dims = tuple(result[wanted[0]].dims) if wanted else main_dims(result)
    for name in rows or ():
        check_dim(dims, name, "rows")
    if columns is not None:
        check_dim(dims, columns, "columns")
    elif rows is not None or len(dims) > 1:
        free = [dim for dim in dims if dim not in (rows or ())]
        columns = "method" if "method" in free else str(free[-1]) if free else None
    if columns is None:
        frame = tidy(result)
        drop = [name for name in (*QUALIFIERS, "bound_low", "bound_high") if name in frame and name not in dims]
        return [layout.listing(frame.drop(columns=drop), wanted, len(dims), result)]
    down = [dim for dim in dims if dim != columns] if rows is None else rows
    lost = [dim for dim in dims if dim not in down and dim != columns]
    if lost:
        raise InputError(f"`rows` and `columns` leave out {show(lost)}; name them in `rows` or select one label.")
    bias = [name for name in ("estimate", "std_dev", "truth") if name in result] if _is_bias(result) else None
    first = [str(name) for name, variable in result.data_vars.items() if variable.dims == dims][:1]
    shown = wanted or bias or first
    return [layout.cross(result, name, down, columns, titled=len(shown) > 1) for name in shown]


def _is_bias(result: xr.Dataset) -> bool:
    return {"estimate", "std_dev", "truth", "rmse"} <= set(result.data_vars)


def _places(name: str, x: xr.Dataset | pd.DataFrame, values: np.ndarray, times: float, each: bool) -> list[int]:
    """Return decimals: two digits of the standard error, of each row or of most; four digits of numbers without one."""
    if values.dtype.kind in "iu" or name == "n" or name.startswith("n_"):
        return [0] * len(values)
    errors = None
    if name in ("std_dev", "rmse") and "n" in x and not each:
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.ravel(x[name] / np.sqrt(2 * (x["n"] - 1)))
    elif name in _SCALED and "std_error" in x:
        errors = np.ravel(x["std_error"])
    elif name in _SCALED and {"conf_low", "conf_high"} <= {*x} and each:
        errors = np.ravel(x["conf_high"] - x["conf_low"]) / 3.92
    if errors is None and (name.startswith("df") or name.endswith("_df")):
        return [0 if float(value).is_integer() else 1 for value in values]
    errors = np.full(len(values), np.nan) if errors is None else errors * times
    usual = places_of(errors, values * times)
    own = errors if each else np.full(len(values), np.nan)
    return [places_of(error) if 0 < error < np.inf else usual for error in own]


def _interval_title(result: xr.Dataset | None) -> str:
    if result is not None and "conf_level" in result.coords:
        levels = np.asarray(result["conf_level"].values, float)
        levels = np.unique(levels[~np.isnan(levels)])
        if len(levels) == 1:
            return f"{100 * levels[0]:.4g}% CI"
    return "Interval"


def title_of(name: str) -> str:
    """Return how a variable is headed."""
    return _TITLES.get(name, name.replace("_", " ").capitalize())
