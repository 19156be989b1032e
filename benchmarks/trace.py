"""The way of a call: files and functions of ours that one call passes through.

    python benchmarks/trace.py [--all]

Counts every function of the package that runs between the call and its result; ``--all`` names them in the order of
their first call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import cvstats as cs

PACKAGE = Path(cs.__file__).parent


def passed(call: Callable[[], object]) -> list[tuple[str, str]]:
    """Return (file, function) of ours in the order of their first call; comprehensions count as their function."""
    seen: dict[tuple[str, str], None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and PACKAGE in path.parents and not code.co_name.startswith("<"):
            seen.setdefault((str(path.relative_to(PACKAGE)), getattr(code, "co_qualname", code.co_name)))

    call()  # lazy imports and caches are not part of the story
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(seen)


def main() -> None:
    """Print the counts for the two calls that matter most."""
    cube = cs.simulate_cube(100, 50, repeats=2, rng=1)
    scores = cs.example_cube()
    calls = {
        "bbc(accuracy)": lambda: cs.bbc(cube, "accuracy", rng=1),
        "winner(accuracy)": lambda: cs.winner(cube, "accuracy", rng=1),
        "winner(auc)": lambda: cs.winner(scores, "auc", rng=1),
    }
    for name, call in calls.items():
        found = passed(call)
        files = list(dict.fromkeys(file for file, _ in found))
        print(f"{name}: {len(files)} files, {len(found)} functions")
        if "--all" in sys.argv:
            for file in files:
                print(f"  {file}: {', '.join(function for where, function in found if where == file)}")


if __name__ == "__main__":
    main()
