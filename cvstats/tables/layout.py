"""Publication tables: which number goes where, and with how many digits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_count, check_dim, check_option, nearest, plain, show

from .render import RENDERERS, Cell, Grid

NOTE = "* P < 0.05, ** P < 0.01"
_QUALIFIERS = ("method", "metric", "conf_level", "interval", "test")
# numbers in the metric's unit: scaled together, digits from the standard error
_SCALED = {
    *("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high", "naive", "optimism", "bbc_plain"),
    *("estimate_a", "estimate_b", "difference", "truth", "std_dev", "rmse"),
}
_LEFT_OUT = ("bound_low", "bound_high")
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
        check_count(digits, "digits", minimum=0)
    factor = (100.0 if unit == "%" else 1.0) if scale is None else float(scale)
    wanted = [values] if isinstance(values, str) else None if values is None else list(values)
    if isinstance(x, pd.DataFrame):
        grids = [_listing(x, wanted, stars, digits, unit, factor, caption, labels=0)]
    else:
        result = x.to_dataset(name=str(x.name or "value")) if isinstance(x, xr.DataArray) else x
        if not isinstance(result, xr.Dataset):
            raise InputError(f"`x` must be a Dataset, DataArray or DataFrame; got {type(x).__name__}.")
        grids = _grids(result, rows, columns, wanted, stars, digits, unit, factor, caption)
    return "\n\n".join(RENDERERS[format](grid) for grid in grids)


def _grids(
    result: xr.Dataset,
    rows: str | Sequence[str] | None,
    columns: str | None,
    wanted: list[str] | None,
    stars: bool,
    digits: int | None,
    unit: str,
    factor: float,
    caption: str,
) -> list[Grid]:
    from . import main_dims, tidy

    for name in wanted or ():
        if name not in result:
            raise InputError(f"`values`: no variable {name!r}; found {show(result.data_vars)}{nearest(name, result)}.")
    dims = tuple(result[wanted[0]].dims) if wanted else main_dims(result)
    for name in ([rows] if isinstance(rows, str) else rows) or ():
        check_dim(dims, name, "rows")
    if columns is not None:
        check_dim(dims, columns, "columns")
    elif rows is not None or len(dims) > 1:
        named = [rows] if isinstance(rows, str) else list(rows or [])
        free = [dim for dim in dims if dim not in named]
        columns = "method" if "method" in free else str(free[-1]) if free else None
    if columns is None:
        frame = tidy(result)
        labels = len(dims)
        drop = [name for name in (*_QUALIFIERS, *_LEFT_OUT) if name in frame and name not in dims]
        return [_listing(frame.drop(columns=drop), wanted, stars, digits, unit, factor, caption, labels, result)]
    down = [dim for dim in dims if dim != columns]
    if rows is not None:
        down = [rows] if isinstance(rows, str) else list(rows)
        if len(down) + 1 < len(dims):
            lost = [dim for dim in dims if dim not in down and dim != columns]
            raise InputError(f"`rows` and `columns` leave out {show(lost)}; name them in `rows` or select one label.")
    table = _is_bias(result)
    shown = wanted or (
        [n for n in ("estimate", "std_dev", "truth") if n in result] if table else [_first(result, dims)]
    )
    return [_cross(result, name, down, columns, stars, digits, unit, factor, caption, len(shown) > 1) for name in shown]


def _first(result: xr.Dataset, dims: Sequence[Hashable]) -> str:
    return next(str(name) for name, variable in result.data_vars.items() if variable.dims == tuple(dims))


def _is_bias(result: xr.Dataset) -> bool:
    return {"estimate", "std_dev", "truth", "rmse"} <= set(result.data_vars)


def _cross(
    result: xr.Dataset,
    name: str,
    down: Sequence[Hashable],
    across: str,
    stars: bool,
    digits: int | None,
    unit: str,
    factor: float,
    caption: str,
    titled: bool,
) -> Grid:
    """Return one variable as a cross table."""
    order = (*down, across)
    missing = [dim for dim in order if dim not in result[name].dims]
    wide = result[name].expand_dims({dim: result.sizes[dim] for dim in missing}).transpose(*order)
    times = factor if name in _SCALED or name not in ("p_value", "statistic", "df", "n") else 1.0
    numbers = np.asarray(wide.values)
    body_text: np.ndarray
    if numbers.dtype.kind in "fiu":
        numbers = numbers * times
        if name.endswith("p_value"):
            body_text = np.array([p_text(v) for v in numbers.ravel()], dtype=object)
        else:
            places = digits if digits is not None else _places(name, result, numbers, times)
            body_text = np.array([number_text(v, places) for v in numbers.ravel()], dtype=object)
    else:
        body_text = np.array([str(plain(v)) for v in numbers.ravel()], dtype=object)
    marks = np.full(body_text.shape, "", dtype=object)
    p_name = _STARS.get(name)
    if stars and p_name in result and set(result[p_name].dims) == set(order):
        marks = star_marks(result[p_name].transpose(*order).values.ravel())
    width = result.sizes[across]
    cells = [Cell(t, m) for t, m in zip(body_text, marks, strict=True)]
    labels = _row_labels(result, down)
    body = [[*map(Cell, labels[at]), *cells[at * width : (at + 1) * width]] for at in range(len(labels))]
    heads = [str(plain(label)) for label in _labels(result, across)]
    title = "Mean bias" if name == "estimate" and _is_bias(result) else title_of(name)
    title += f" ({unit})" if unit else ""
    shown = ". ".join(part for part in (caption.rstrip("."), title if titled or unit else "") if part)
    used = any(marks)
    return Grid([*map(str, down), *heads], body, max(len(down), 0), shown, NOTE if used else "")


def _labels(result: xr.Dataset, dim: Hashable) -> np.ndarray:
    return np.asarray(result[dim].values) if dim in result.coords else np.arange(result.sizes[dim])


def _row_labels(result: xr.Dataset, down: Sequence[Hashable]) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    for dim in down:
        rows = [[*row, str(plain(label))] for row in rows for label in _labels(result, dim)]
    return rows


def _places(name: str, result: xr.Dataset, numbers: np.ndarray, times: float) -> int:
    if name in ("std_dev", "rmse") and "n" in result:
        with np.errstate(divide="ignore", invalid="ignore"):
            error = result[name].values / np.sqrt(2 * (result["n"].values - 1)) * times
        return decimals(error)
    if name in _SCALED and "std_error" in result:
        return decimals(result["std_error"].values * times)
    if np.asarray(numbers).dtype.kind in "iu":
        return 0
    return plain_decimals(numbers)


def _listing(
    frame: pd.DataFrame,
    wanted: list[str] | None,
    stars: bool,
    digits: int | None,
    unit: str,
    factor: float,
    caption: str,
    labels: int,
    result: xr.Dataset | None = None,
) -> Grid:
    """Return every row of a data frame as a line; limits share one column."""
    for name in wanted or ():
        if name not in frame:
            raise InputError(
                f"`values`: no column {name!r}; found {show(frame.columns)}{nearest(name, frame.columns)}."
            )
    keys = list(frame.columns[:labels])
    names = [str(name) for name in (wanted if wanted is not None else frame.columns[labels:])]
    header, content = [str(key) for key in keys], [[Cell(str(plain(v))) for v in frame[key]] for key in keys]
    starred = stars and "p_value" in frame and "p_value" not in names
    used = False
    for name in names:
        if name == "conf_high" and "conf_low" in names:
            continue
        column = frame[name]
        if column.dtype.kind not in "fiu":
            header.append(title_of(name))
            content.append([Cell(str(plain(v))) for v in column])
            continue
        times = factor if name in _SCALED else 1.0
        places = [digits] * len(frame) if digits is not None else _row_places(name, frame, factor)
        marks = [""] * len(frame)
        if stars and (name == "p_value" or (starred and name == "estimate")):
            marks = list(star_marks(frame["p_value"].to_numpy(float)))
            used = used or any(marks)
        numbers = column.to_numpy(float) * times
        if name.endswith("p_value"):
            texts = [p_text(v) for v in numbers]
        elif name == "conf_low" and "conf_high" in names:
            upper = frame["conf_high"].to_numpy(float) * times
            texts = [
                "NA" if np.isnan(a) and np.isnan(b) else f"[{number_text(a, d)}, {number_text(b, d)}]"
                for a, b, d in zip(numbers, upper, places, strict=True)
            ]
        else:
            texts = [number_text(v, d) for v, d in zip(numbers, places, strict=True)]
        header.append(_interval_title(result) if name == "conf_low" and "conf_high" in names else title_of(name))
        if unit and name in _SCALED:
            header[-1] += f" ({unit})"
        content.append([Cell(t, m) for t, m in zip(texts, marks, strict=True)])
    body = [list(row) for row in zip(*content, strict=True)]
    return Grid(
        header,
        body,
        max(labels, 1 if not labels and _leading_text(frame, names) else labels),
        caption,
        NOTE if used else "",
    )


def _leading_text(frame: pd.DataFrame, names: Sequence[str]) -> bool:
    return bool(names) and frame[names[0]].dtype.kind not in "fiu"


def _interval_title(result: xr.Dataset | None) -> str:
    if result is not None and "conf_level" in result.coords:
        levels = np.asarray(result["conf_level"].values, float)
        levels = np.unique(levels[~np.isnan(levels)])
        if len(levels) == 1:
            return f"{100 * levels[0]:.4g}% CI"
    return "Interval"


def _row_places(name: str, frame: pd.DataFrame, factor: float) -> list[int]:
    column = frame[name].to_numpy()
    if column.dtype.kind in "iu":
        return [0] * len(frame)
    if name in _SCALED and "std_error" in frame:
        return _each_place(frame["std_error"].to_numpy(float) * factor, column * factor)
    if name in _SCALED and {"conf_low", "conf_high"} <= set(frame.columns):
        return _each_place((frame["conf_high"] - frame["conf_low"]).to_numpy(float) * factor / 3.92, column * factor)
    if name.startswith("df") or name.endswith("_df"):
        return [0 if float(v).is_integer() else 1 for v in column]
    if name == "n" or name.startswith("n_"):
        return [0] * len(frame)
    times = factor if name in _SCALED else 1.0
    return [plain_decimals(column * times)] * len(frame)


def _each_place(errors: np.ndarray, column: np.ndarray) -> list[int]:
    """Return decimals row by row; rows without a standard error take those of the others."""
    known = np.isfinite(errors) & (errors > 0)
    usual = decimals(errors) if known.any() else plain_decimals(column)
    return [decimals(errors[at : at + 1]) if known[at] else usual for at in range(len(errors))]


def decimals(errors: np.ndarray) -> int:
    """Return how many decimals give the median standard error two significant digits.

    >>> decimals(np.array([0.0213])), decimals(np.array([0.0996])), decimals(np.array([12.0]))
    (3, 2, 0)
    """
    usable = errors[np.isfinite(errors) & (errors > 0)]
    if not usable.size:
        return 4
    exponent = int(f"{float(np.median(usable)):.1e}".split("e")[1])
    return int(np.clip(1 - exponent, 0, 12))


def plain_decimals(numbers: np.ndarray) -> int:
    """Return how many decimals give the largest number four significant digits."""
    usable = np.abs(numbers[np.isfinite(numbers)])
    if not usable.size or usable.max() == 0:
        return 1
    return int(np.clip(3 - np.floor(np.log10(usable.max())), 0, 12))


def number_text(value: float, places: int) -> str:
    """Return a number with fixed decimals; never ``-0.00``."""
    if np.isnan(value):
        return "NA"
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def p_text(p: float) -> str:
    """Return a p-value with two significant digits, ``<0.001`` below that.

    >>> p_text(0.0321), p_text(0.74), p_text(0.0002)
    ('0.032', '0.74', '<0.001')
    """
    if np.isnan(p):
        return "NA"
    if p < 0.001:
        return "<0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def star_marks(p: np.ndarray) -> np.ndarray:
    """Return ``**`` below 0.01, ``*`` below 0.05."""
    return np.where(p < 0.01, "**", np.where(p < 0.05, "*", "")).astype(object)


def title_of(name: str, titles: Mapping[str, str] = _TITLES) -> Any:
    """Return how a variable is headed."""
    return titles.get(name, name.replace("_", " ").capitalize())
