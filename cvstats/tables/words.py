"""Plain words and sensible digits: how metrics, methods and numbers are called wherever people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import plain
from cvstats.metrics import Metric, traits_of

LONGEST = 44  # characters of a user's name shown in a figure
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def metric_words(name: object) -> str:
    """Return what people call a metric of this name.

    >>> metric_words("log_loss"), metric_words("my_metric"), metric_words("net_benefit(0.2)")
    ('log loss', 'my metric', 'net benefit (0.2)')
    """
    known, (_, mark, inside) = traits_of(str(name)), str(name).partition("(")
    own = f" ({inside}" if mark and known and known.name != name else ""  # such as a time, or a prior
    return printable(known.words + own if known else str(name).replace("_", " "))


def method_words(name: object) -> str:
    """Return what people call a method of this name."""
    from cvstats.protocols import PROTOCOLS

    known = PROTOCOLS.get(str(name))
    return printable(known.words if known else str(name).replace("_", " "))


def labels_of(x: xr.Dataset | xr.DataArray, dim: Hashable) -> list[Any]:
    """Return the labels of a dimension as plain objects, or places where it has none."""
    return [plain(label) for label in (x[dim].values if dim in x.coords else range(x.sizes[dim]))]


def printable(text: object) -> str:
    r"""Return text on one line, with control and direction characters made visible.

    >>> printable("a\nb")
    'a�b'
    """
    return _UNPRINTABLE.sub("\ufffd", str(plain(text)))


def short(text: object, longest: int = LONGEST) -> str:
    """Return a name that fits into a figure; the middle is left out because ends tell names apart.

    >>> short("abcdefghij", 7)
    'abc…hij'
    """
    name = printable(text)
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[len(name) - tail :]}"


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


def spread_of(result: xr.Dataset) -> float:
    """Return the standard error of a result, from the width of its interval when it has none (NaN without either)."""
    if "std_error" in result and np.isfinite(float(result["std_error"])) and float(result["std_error"]) > 0:
        return float(result["std_error"])
    if {"conf_low", "conf_high"} <= set(result.data_vars):
        from scipy.special import ndtri

        level = float(result["conf_level"]) if "conf_level" in result.coords else 0.95
        width = float(result["conf_high"]) - float(result["conf_low"])
        if np.isfinite(width) and width > 0 and 0 < level < 1:
            return width / (2 * float(ndtri((1 + level) / 2)))
    return math.nan


def places_of(errors: Any, values: Any = math.nan) -> int:
    """Return the decimals that show the median standard error with two digits, or four of the largest value without.

    >>> places_of(0.021), places_of([0.0996, 0.0996]), places_of(3.2), places_of(float("nan"), 0.91)
    (3, 2, 1, 4)
    """
    spread, size = np.ravel(errors), np.abs(np.ravel(values))
    spread, size = spread[np.isfinite(spread) & (spread > 0)], size[np.isfinite(size) & (size > 0)]
    if spread.size:
        return int(np.clip(1 - int(f"{float(np.median(spread)):.1e}".split("e")[1]), 0, 12))
    return int(np.clip(3 - np.floor(np.log10(size.max())), 0, 12)) if size.size else 1


def number(value: Any, places: int) -> str:
    """Return a number with fixed decimals and a true minus sign."""
    return number_text(float(value), places).replace("-", "\u2212")


def limits_text(result: xr.Dataset, places: int) -> str:
    """Return ``0.86 to 0.96``, or an empty string without an interval."""
    if "conf_low" not in result or not np.isfinite(float(result["conf_low"])):
        return ""
    return f"{number(result['conf_low'], places)} to {number(result['conf_high'], places)}"


def estimate_text(result: xr.Dataset, usual: float = math.nan) -> str:
    """Return an estimate with its limits, to two digits of its standard error, or of the `usual` one without any."""
    spread = spread_of(result)
    places = places_of(spread if math.isfinite(spread) else usual, float(result["estimate"]))
    limits = limits_text(result, places)
    return number(result["estimate"], places) + (f" ({limits})" if limits else "")


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def count(value: Any) -> str:
    """Return a whole number with thin spaces between thousands.

    >>> count(2000000)
    '2\u202f000\u202f000'
    """
    return f"{int(value):,}".replace(",", "\u202f")


def several(value: Any, one: str, many: str | None = None) -> str:
    """Return ``1 repeat`` or ``5 repeats``.

    >>> several(1, "repeat"), several(5, "repeat")
    ('1 repeat', '5 repeats')
    """
    return f"{count(value)} {one if int(value) == 1 else many or one + 's'}"


def percent(share: float, *, digits: int = 0) -> str:
    """Return a share in percent; small ones are not rounded to nothing.

    >>> percent(0.234), percent(0.0001), percent(1.0), percent(0.9999), percent(0.0)
    ('23%', '<1%', '100%', '>99%', '0%')
    """
    if not math.isfinite(share):
        return "–"
    unit = 10.0**-digits
    value = 100 * share
    if 0 < value < unit / 2:
        return f"<{unit:.{digits}f}%"
    if 100 - unit / 2 < value < 100:
        return f">{100 - unit:.{digits}f}%"
    return f"{value:.{digits}f}%"


def level_words(level: float) -> str:
    """Return a confidence level.

    >>> level_words(0.95), level_words(0.975)
    ('95%', '97.5%')
    """
    return percent(level, digits=0 if round(100 * level, 6).is_integer() else 1)


def better(metric: Metric) -> str:
    """Return which way is better."""
    if metric.target is not None:
        return f"{metric.target:g} is best"
    return "higher is better" if metric.sign > 0 else "lower is better"
