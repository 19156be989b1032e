"""The estimators: each chooses on some samples, judges on others, and says so in a few lines."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from .registry import Protocol, protocol

if TYPE_CHECKING:
    from .registry import PROTOCOLS

__all__ = ["PROTOCOLS", "Protocol", "protocol"]


def __getattr__(name: str) -> Any:
    if name != "PROTOCOLS":
        raise AttributeError(f"module 'cvstats.protocols' has no attribute {name!r}")
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")  # each declares its own
    from .registry import PROTOCOLS

    return PROTOCOLS
