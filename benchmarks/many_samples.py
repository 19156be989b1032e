"""Up to a million samples: CPU time and peak memory of `winner`, each size in a process of its own.

    python benchmarks/many_samples.py [--draws 1000]

Counts are drawn, checked and multiplied while they are in the cache, so the time of a sample and draw should not grow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

JOBS = [(100_000, 2, "accuracy"), (500_000, 2, "accuracy"), (1_000_000, 10, "accuracy"), (1_000_000, 10, "auc")]
CHILD = """
import resource, sys, time
import numpy as np
import cvstats as cs

n, m, metric, times = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
g = np.random.default_rng(0)
y = g.integers(0, 2, n)
p = (g.random((n, m)) + 0.3 * y[:, None]) / 1.3
cs.winner(cs.as_cube(p[:1000], y[:1000]), metric, times=times, rng=1)
cube = cs.as_cube(p, y)
start = time.process_time()
cs.winner(cube, metric, times=times, rng=1)
took = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{n:9d} x {m:2d} {metric:9s} {took:8.2f} s {1e9 * took / n / times:7.1f} ns a sample and draw {peak:7.0f} MB")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    times = parser.parse_args().draws
    env = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    for n, m, metric in JOBS:
        subprocess.run([sys.executable, "-c", CHILD, str(n), str(m), metric, str(times)], env=env, check=True)


if __name__ == "__main__":
    main()
