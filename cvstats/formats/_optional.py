"""Packages that only some readers need: imported when used, with the command that installs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, what: str, extra: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{what} need the package {package!r}, which is not installed. "
            f'Install it with: pip install "cvstats[{extra}]"'
        ) from error
