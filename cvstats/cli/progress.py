"""Which stage the command line is at: one line on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys


def on_terminal() -> bool:
    """Return whether somebody is watching."""
    return bool(getattr(sys.stderr, "isatty", lambda: False)())


def bars() -> bool:
    """Return whether progress bars can be shown."""
    from importlib.util import find_spec

    return on_terminal() and find_spec("tqdm") is not None


def stage(text: str) -> None:
    """Say what is being done, in place of the stage before."""
    if on_terminal():
        sys.stderr.write(f"\r\x1b[K{text} ...")
        sys.stderr.flush()


def clear() -> None:
    """Remove the line."""
    if on_terminal():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
