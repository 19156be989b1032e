"""A store of parts on 1, 2 and 4 workers of dask, and with one of two killed.

    python benchmarks/speed_cluster.py [--samples 20000] [--configurations 2000]

Prints wall seconds, and fails when an estimate differs. More workers than cores cannot be faster.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import logging
import signal
import tempfile
import threading
import time
from pathlib import Path

import speed_huge

import cvstats as cs


def run(path: Path, workers: int, *, kill: float | None = None) -> tuple[float, float]:
    """Return wall seconds and the estimate on a cluster of one-thread workers, one of which may be killed."""
    from distributed import Client, LocalCluster

    more = {"memory_limit": "2GB", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **more) as cluster, Client(cluster) as client:
        before = client.run(os.getpid)
        cs.bbc(cs.read_cube(path, chunks={}), "accuracy", times=40, rng=1)  # imports and the cache of the disk
        if kill is not None:
            threading.Timer(kill, os.kill, (next(iter(before.values())), signal.SIGKILL)).start()
        start = time.perf_counter()
        out = cs.bbc(cs.read_cube(path, chunks={}), "accuracy", times=1000, rng=1)
        seconds = time.perf_counter() - start
        if kill is not None and set(client.run(os.getpid).values()) == set(before.values()):
            raise SystemExit("no worker was killed before the end; give more configurations")
        return seconds, float(out.estimate)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--configurations", type=int, default=2_000)
    options = parser.parse_args()
    speed_huge.SAMPLES, speed_huge.CHUNK = options.samples, 100
    print(f"{options.samples} x {options.configurations}, blocks of 100, {os.cpu_count()} cores, wall seconds")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.cube"
        speed_huge.make_store(path, options.configurations)
        alone, expected = run(path, 1)
        print(f"1 worker             {alone:7.2f}")
        cases = {"2 workers": (2, {}), "4 workers": (4, {}), "2 workers, one killed": (2, {"kill": alone / 6})}
        for name, (workers, how) in cases.items():
            seconds, estimate = run(path, workers, **how)  # type: ignore[arg-type]
            if estimate != expected:
                raise SystemExit(f"{name}: the estimate differs: {estimate} and {expected}")
            print(f"{name:22s} {seconds:7.2f}  {alone / seconds:5.2f} times as fast")


if __name__ == "__main__":
    main()
