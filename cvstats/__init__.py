"""Honest numbers from saved cross-validation predictions.

Names are loaded on first use (PEP 562), so ``import cvstats`` stays as light as xarray itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names by the module that holds them, in the order data flows.
_MODULES: dict[str, tuple[str, ...]] = {
    "_check": ("CvstatsWarning", "InputError"),
    "cube": ("as_cube", "check_cube"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604

if TYPE_CHECKING:
    from ._check import CvstatsWarning as CvstatsWarning
    from ._check import InputError as InputError
    from .cube import as_cube as as_cube
    from .cube import check_cube as check_cube


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}")
    value = getattr(import_module(f"cvstats.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
