"""Honest numbers from saved cross-validation predictions.

Names are loaded on first use (PEP 562), so ``import cvstats`` stays as light as xarray itself. Which names there are,
and where they live, stands once, in ``__init__.pyi``.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: module for module, name in re.findall(r"^from \.(\S+) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}")
    value = getattr(import_module(f"cvstats.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _in_notebooks() -> None:
    """Where IPython runs, let results begin with their sentence."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None

    def page(dataset: Any) -> Any:
        return import_module("cvstats.report.summary").page_of(dataset)

    def text(dataset: Any, printer: Any, cycle: bool) -> None:
        printer.text(import_module("cvstats.report.summary").text_of(dataset))

    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type_by_name("xarray.core.dataset", "Dataset", page)
        shell.display_formatter.formatters["text/plain"].for_type_by_name("xarray.core.dataset", "Dataset", text)


_in_notebooks()
