"""Which tests are slow: random search, faults on purpose, processes, browsers, builds and simulations.

``pytest -m "not slow"`` is the fast lane, for while one writes; the default runs all. Tests that are slow one by one
carry the mark themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SLOW = (
    "faults",
    "laws",
    "cube/test_blocks.py",
    "formats/test_fuzz_readers.py",
    "formats/test_misread.py",
    "formats/test_stores.py",
    "metrics/test_design.py",
    "project/test_guard.py",
    "protocols/test_decisions",
    "protocols/test_fold_scores.py",
    "project/test_supply.py",
    "report/test_browser.py",
    "report/test_sections.py",
    "test_cli.py",
    "test_describe.py",
    "test_simulate.py",
    "test_sklearn.py",
    "test_verify.py",
)


def slow(path: Path) -> bool:
    """Return whether all tests of a folder or file are slow."""
    return path.is_relative_to(HERE) and path.relative_to(HERE).as_posix().startswith(SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole folders and files out of the fast lane before they are imported."""
    return True if config.option.markexpr == "not slow" and slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders and files."""
    for item in items:
        if slow(item.path):
            item.add_marker(pytest.mark.slow)
