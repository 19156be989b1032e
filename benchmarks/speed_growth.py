"""How time and memory grow: draws, configurations, samples and repeats doubled four times; peak memory of one call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
from speed_jobs import Row, forced, make_cube

import cvstats as cs

BASE = {"draws": 500, "configurations": 200, "samples": 500, "repeats": 2}
DOUBLED = 4


def growth(metric: str, engine: str, rounds: int) -> dict[str, dict[str, object]]:
    """Return CPU seconds along each axis, the log-log slope, and the worst cost of a fourfold size."""
    found: dict[str, dict[str, object]] = {}
    for axis in BASE:
        sizes = [BASE[axis] * 2**step for step in range(DOUBLED + 1)]
        best = [np.inf] * len(sizes)
        for turn in range(rounds + 1):
            for at, size in enumerate(sizes):
                now = BASE | {axis: size}
                cube = make_cube(now["samples"], now["configurations"], now["repeats"])
                call = forced(engine, partial(cs.bbc, cube, metric, times=now["draws"], rng=1))
                start = time.process_time()
                call()
                if turn:
                    best[at] = min(best[at], time.process_time() - start)
        slope = np.polyfit(np.log(sizes), np.log(best), 1)[0]
        fourfold = max(best[at + 2] / best[at] for at in range(DOUBLED - 1))
        found[axis] = {"sizes": sizes, "seconds": best, "slope": float(slope), "fourfold": float(fourfold)}
    return found


def growth_rows(table: dict[str, dict[str, object]], metric: str) -> list[Row]:
    return [
        Row(
            f"4x {axis}, {metric}",
            "the smaller size",
            float(found["fourfold"]),  # type: ignore[arg-type]
            4.6,
            False,
            float(found["seconds"][-1]),  # type: ignore[index]
            f"log-log slope {found['slope']:.2f}",
        )
        for axis, found in table.items()
        if axis != "repeats"
    ]


CHILD = """
import json, sys, tracemalloc
sys.path.insert(0, {here!r})
from speed_jobs import forced, make_cube
import cvstats as cs
small = make_cube(50, 5, 2)
forced({engine!r}, lambda: cs.bbc(small, {metric!r}, times=100, rng=1))()
cube = make_cube(*{size!r})
tracemalloc.start()
forced({engine!r}, lambda: cs.bbc(cube, {metric!r}, times={times!r}, rng=1))()
print(json.dumps(tracemalloc.get_traced_memory()[1] / 1e6))
"""


def extra_memory(metric: str, size: tuple[int, int, int], times: int, engine: str = "numpy") -> float:
    """Return the megabytes that one call in a new process holds at its peak beside the cube, as numpy reports them."""
    here = os.path.dirname(os.path.abspath(__file__))
    code = CHILD.format(here=here, metric=metric, size=size, times=times, engine=engine)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    return float(json.loads(done.stdout))


def memory_rows(size: tuple[int, int, int]) -> list[Row]:
    rows = []
    for metric, bar in (("accuracy", 10.0), ("auc", 75.0)):
        few, many = (extra_memory(metric, size, times) for times in (1000, 4000))
        job = f"extra memory, {metric}, paper"
        rows.append(Row(f"{job}: megabytes", "the cube itself", few, bar, False, np.nan, "numpy engine"))
        rows.append(Row(f"{job}: 4000 draws", "1000 draws", many / few, 1.1, False, np.nan))
    return rows
