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
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package:
            problem = f'which is not installed. Install it with: pip install "cvstats[{extra}]"'
        else:
            problem = f"which is installed but cannot be imported: {' '.join(str(error).split())}"
        raise ImportError(f"{what} need the package {package!r}, {problem}") from error
