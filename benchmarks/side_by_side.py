"""Compare two checkouts of cvstats, job by job, in turns.

    git worktree add ../old SOME_COMMIT
    python benchmarks/side_by_side.py ../old [--rounds 7] [--only PATTERN]

Each checkout has one worker process that makes its cubes once; then the two take turns, so that a busy machine hurts
both. The figure is the least CPU time of this checkout over that of the other: below 1 is faster.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

WORKER = r"""
import gc, sys, time, warnings
import numpy as np
import xarray as xr
import cvstats as cs

warnings.simplefilter("ignore")

def scores(n, c, r, seed=0, **more):
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    p = (g.random((n, c, r)) + 0.3 * y[:, None, None]) / 1.3
    return cs.as_cube(p if r > 1 else p[:, :, 0], y, **more)

def numbers(n, c, **more):
    g = np.random.default_rng(0)
    y = g.normal(size=n)
    return cs.as_cube(y[:, None] + g.normal(size=(n, c)), y, kind="value", **more)

def engine(name, call):
    for place in ("cvstats.kernels.walk", "cvstats._walk"):
        try:
            module = __import__(place, fromlist=["FORCE"])
            break
        except ImportError:
            continue
    def run():
        before, module.FORCE = module.FORCE, name
        try:
            return call()
        finally:
            module.FORCE = before
    return run

def bbc(cube, metric, **more):
    return lambda: cs.bbc(cube, metric, times=1000, rng=1, **more)

g = np.random.default_rng(1)
JOBS = {
    "BBC accuracy, paper": lambda: bbc(scores(500, 610, 10), "accuracy"),
    "BBC accuracy, one repeat": lambda: bbc(scores(500, 610, 1), "accuracy"),
    "BBC accuracy, big": lambda: bbc(scores(10_000, 1_000, 1), "accuracy"),
    "BBC accuracy, 100 x 50": lambda: bbc(scores(100, 50, 1), "accuracy"),
    "BBC accuracy, real weights": lambda: bbc(scores(500, 300, 1, weights=g.random(500)), "accuracy"),
    "BBC f1, 500 x 300 x 3": lambda: bbc(scores(500, 300, 3), "f1"),
    "BBC log loss, 500 x 300": lambda: bbc(scores(500, 300, 1), "log_loss"),
    "BBC r2, 500 x 300": lambda: bbc(numbers(500, 300), "r2"),
    "BBC AUC, paper, numba": lambda: engine("numba", bbc(scores(500, 610, 10), "auc")),
    "BBC AUC, 500 x 200, numpy": lambda: engine("numpy", bbc(scores(500, 200, 1), "auc")),
    "BBC AUC, real weights, numba": lambda: bbc(scores(500, 200, 1, weights=g.random(500)), "auc"),
    "BBC average precision, numba": lambda: engine("numba", bbc(scores(500, 200, 1), "average_precision")),
    "BBC average precision, numpy": lambda: engine("numpy", bbc(scores(500, 100, 1), "average_precision")),
    "BBC concordance, 200 x 50": lambda: bbc(
        cs.as_cube(g.random((200, 50)), g.random(200), event=g.integers(0, 2, 200), kind="score"), "concordance"),
    "winner accuracy, 500 x 200 x 3": lambda: lambda: cs.winner(c1, "accuracy", rng=1),
    "winner AUC, example": lambda: lambda: cs.winner(cs.example_cube(), "auc", rng=1),
    "interval of one mean": lambda: bbc(scores(1000, 1, 1), "accuracy"),
    "interval of one AUC": lambda: bbc(scores(1000, 1, 1), "auc"),
    "early dropping": lambda: lambda: cs.bbcd(c2, "accuracy", times=1000, rng=1),
    "contrast AUC": lambda: lambda: cs.contrast(c3, "auc", a=0, b=1),
    "best set accuracy": lambda: lambda: cs.best_set(c1, "accuracy"),
    "score by fold, accuracy": lambda: lambda: cs.score(c2, "accuracy", average="fold"),
    "score, AUC": lambda: lambda: cs.score(c3, "auc"),
    "TT": lambda: lambda: cs.tt(c2, "accuracy"),
    "O'Brien, 2000 cells": lambda: lambda: cs.obrien_test(x1, "trial", by="method"),
}
c1 = scores(500, 200, 3)
c2 = cs.simulate_cube(500, 610, rng=1)
c3 = scores(500, 200, 1)
x1 = xr.DataArray(np.random.default_rng(0).normal(size=(2000, 2, 30)), dims=("cell", "method", "trial"),
                  coords={"method": ["a", "b"]})
made = {}
for line in sys.stdin:
    name = line.strip()
    if name == "names":
        print("|".join(JOBS), flush=True)
        continue
    if name not in made:
        made.clear()
        made[name] = JOBS[name]()
        made[name]()
    gc.collect()
    gc.disable()
    start = time.process_time()
    made[name]()
    print(time.process_time() - start, flush=True)
    gc.enable()
"""


class Worker:
    """One checkout in a process of its own."""

    def __init__(self, root: Path) -> None:
        env = os.environ | ONE | {"PYTHONPATH": str(root)}
        command = [sys.executable, "-c", WORKER]
        self.process = subprocess.Popen(
            command, cwd=root, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, line: str) -> str:
        """Send one line and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="*", help="jobs whose name matches")
    options = parser.parse_args()
    workers = [Worker(HERE), Worker(options.other.resolve())]
    for job in fnmatch.filter(workers[0].ask("names").split("|"), options.only):
        times = [[float(worker.ask(job)) for worker in workers] for _ in range(options.rounds)]
        ours, theirs = (min(column) for column in zip(*times, strict=True))
        print(f"{job:34s} {ours:9.4f} s  {theirs:9.4f} s  {ours / theirs:5.2f}", flush=True)


if __name__ == "__main__":
    main()
