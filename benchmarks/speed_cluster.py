"""A store of parts on 1, 2 and 4 workers of dask: what scales, a worker that is killed, and blocks spilled to disk.

    python benchmarks/speed_cluster.py [--samples 20000] [--configurations 2000] [--metric accuracy]

Prints wall seconds, CPU seconds of all workers, the largest peak memory of a worker, megabytes spilled, and what a
draw, configuration and sample cost; fails when an estimate differs. More workers than cores cannot be faster. The
last column and the peak are what the arithmetic of docs/cluster.md starts from.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import logging
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import speed_huge

import cvstats as cs

TIMES = 1000


def usage() -> tuple[int, float, float]:
    """Return the process, its CPU seconds so far and its peak memory in megabytes."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    lines = Path("/proc/self/status").read_text().splitlines()  # ru_maxrss would be that of the process that started it
    peak = next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return os.getpid(), spent.ru_utime + spent.ru_stime, peak / 1024


def spilled(dask_worker: Any) -> float:
    """Return the megabytes that a worker has put on disk."""
    return float(dask_worker.data.spilled_total.disk) / 1e6


def run(path: Path, metric: str, workers: int, *, kill: float = 0.0, spill: bool = False) -> tuple[list[float], float]:
    """Return wall and CPU seconds, peak and spilled megabytes, and the estimate, on workers of one thread each.

    One worker is killed after so many seconds, if any. To `spill`, the cluster holds the cube, and workers keep no
    more than half of it in memory.
    """
    import dask
    from distributed import Client, LocalCluster, wait

    limit = 2e9
    cube = cs.read_cube(path, chunks={})
    share = cube.nbytes / workers / 2 / limit
    memory = {"target": share, "spill": False, "pause": False, "terminate": False} if spill else {}
    more = {"memory_limit": int(limit), "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({f"distributed.worker.memory.{name}": value for name, value in memory.items()}),
        LocalCluster(n_workers=workers, threads_per_worker=1, **more) as cluster,
        Client(cluster) as client,
    ):
        cs.bbc(cube.isel(configuration=slice(100)), metric, times=40, rng=1)  # imports
        if spill:
            cube = cube.persist()
            wait(cube)
        before = client.run(usage)
        if kill:
            threading.Timer(kill, os.kill, (next(iter(before.values()))[0], signal.SIGKILL)).start()
        start = time.perf_counter()
        estimate = float(cs.bbc(cube, metric, times=TIMES, rng=1).estimate)
        wall = time.perf_counter() - start
        after, disk = client.run(usage), sum(client.run(spilled).values())
        known = {process: spent for process, spent, _ in before.values()}
        if kill and {process for process, *_ in after.values()} == set(known):
            raise SystemExit("no worker was killed before the end; give more configurations")
        if spill and not disk:
            raise SystemExit("nothing was spilled; give more configurations")
        spent = sum(spent - known.get(process, 0.0) for process, spent, _ in after.values())
        return [wall, spent, max(peak for *_, peak in after.values()), disk], estimate


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--configurations", type=int, default=2_000)
    parser.add_argument("--metric", default="accuracy")
    options = parser.parse_args()
    speed_huge.SAMPLES, speed_huge.CHUNK = options.samples, 100
    print(f"{options.metric}, {options.samples} x {options.configurations}, blocks of 100, {os.cpu_count()} cores\n")
    print("| workers | wall, s | times as fast | CPU, s | peak of a worker, MB | spilled, MB | ns a cell and draw |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.cube"
        speed_huge.make_store(path, options.configurations)
        cases: dict[str, Any] = {"1": {}, "2": {}, "4": {}, "2, one killed": {}, "2, that spill": {"spill": True}}
        first, expected = 0.0, None
        for name, how in cases.items():
            how = {"kill": first / 6} if "killed" in name else how
            (wall, *rest), estimate = run(path, options.metric, int(name[0]), **how)
            first, expected = first or wall, expected or estimate
            if estimate != expected:
                raise SystemExit(f"{name}: the estimate differs: {estimate} and {expected}")
            cost = 1e9 * rest[0] / options.samples / options.configurations / TIMES
            cells = [f"{wall:.2f}", f"{first / wall:.2f}", f"{rest[0]:.2f}", f"{rest[1]:.0f}", f"{rest[2]:.0f}"]
            print(f"| {name} | {' | '.join(cells)} | {cost:.3f} |", flush=True)


if __name__ == "__main__":
    main()
