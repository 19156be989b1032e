"""The cube that does not fit: 20000 samples x 20000 configurations in float32 on disk (1.6 GB), 1000 draws.

    python benchmarks/speed_huge.py [--folder DIR] [--configurations 20000] [--keep]

Measures, each in a new process: CPU seconds and peak memory of cvstats on the store through dask, and of a plain
loop over the same chunks that calls the same kernel without dask. The peak at a tenth of the configurations tells
whether memory is bounded.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

SAMPLES, CONFIGURATIONS, CHUNK, TIMES = 20_000, 20_000, 500, 1000


def make_store(path: Path, configurations: int) -> None:
    """Write the cube chunk by chunk, so that making it needs no more memory than reading it."""
    import dask.array as da
    import xarray as xr

    import cvstats as cs

    y = np.random.default_rng(0).integers(0, 2, SAMPLES)

    def block(block_info: dict | None = None) -> np.ndarray:
        number = block_info[None]["chunk-location"][1] if block_info else 0
        g = np.random.default_rng([1, number])
        width = min(CHUNK, configurations - number * CHUNK)
        return ((g.random((SAMPLES, width), np.float32) + np.float32(0.1) * y[:, None]) / np.float32(1.1)).astype("f4")

    widths = [min(CHUNK, configurations - start) for start in range(0, configurations, CHUNK)]
    data = da.map_blocks(block, chunks=((SAMPLES,), tuple(widths)), dtype="f4", meta=np.empty((0, 0), "f4"))
    cube = cs.as_cube(xr.DataArray(data, dims=("sample", "configuration")), y, kind="probability")
    cs.write_cube(cube, path)


def by_cvstats(path: Path, metric: str) -> dict[str, float]:
    """BBC on the store through dask, one thread at a time."""
    import dask

    import cvstats as cs

    with dask.config.set(scheduler="synchronous"):
        cube = cs.read_cube(path, chunks={})
        start = time.process_time(), time.perf_counter()
        out = cs.bbc(cube, metric, times=TIMES, rng=1)
    return _measured(start, float(out.estimate))


def by_loop(path: Path, metric: str) -> dict[str, float]:
    """Run the same kernel in a plain loop over the parts, without dask."""
    from dataclasses import replace

    import h5py

    import cvstats as cs
    from cvstats.cube.arrays import problem_on, report_on
    from cvstats.judge import Rules
    from cvstats.judge.loop import Choose, merged
    from cvstats.metrics import get_metric
    from cvstats.resample import make_draws

    cube = cs.read_cube(path, chunks={})
    found = get_metric(metric)
    start = time.process_time(), time.perf_counter()
    n, m = cube.shape
    whole = replace(problem_on(cube, found), rows=np.ones(n, bool), eligible=np.ones(m, bool), gaps=False)
    draws = make_draws(cube, found, TIMES, 1, None).remembered()
    task = Choose(found, draws, None, Rules(ties="first"), None)
    blocks, at = [], 0
    for file in sorted(path.glob("part-*.nc")):
        with h5py.File(file, "r") as stored:
            part = replace(whole, p=stored["prediction"][...][:, :, None])
        report_on(part)
        blocks.append(task(part, np.arange(at, at + part.p.shape[1])))
        at += part.p.shape[1]
    return _measured(start, float(np.nanmean(merged(blocks, found.direction).value)))


def _measured(start: tuple[float, float], estimate: float) -> dict[str, float]:
    cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM"))
    return {"cpu": cpu, "wall": wall, "peak": int(peak.split()[1]) / 1024, "estimate": estimate}


def child(path: Path, metric: str, how: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", how, "--metric", metric, "--store", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def rows(
    folder: Path | None = None,
    configurations: int = CONFIGURATIONS,
    keep: bool = False,
    metrics: Sequence[str] = ("accuracy", "auc"),
) -> list:
    """Return the rows of the table; makes the stores in a temporary folder unless they are there."""
    from speed_jobs import Row

    base = folder or Path(tempfile.mkdtemp(prefix="cvstats_huge_"))
    found = []
    try:
        for size in (configurations // 10, configurations):
            if not (base / f"{size}.cube").exists():
                make_store(base / f"{size}.cube", size)
        size = f"{SAMPLES} x {configurations} on disk"
        for metric in metrics:
            small = child(base / f"{configurations // 10}.cube", metric, "cvstats")
            ours = child(base / f"{configurations}.cube", metric, "cvstats")
            loop = child(base / f"{configurations}.cube", metric, "loop")
            if ours["estimate"] != loop["estimate"]:
                raise RuntimeError(f"dask and the loop differ: {ours['estimate']} and {loop['estimate']}")
            note = f"{ours['wall']:.0f} s of wall time, peak {ours['peak']:.0f} MB, plain loop {loop['cpu']:.0f} s CPU"
            found += [
                Row(
                    f"{size}, {metric}: CPU",
                    "plain chunk loop",
                    ours["cpu"] / loop["cpu"],
                    1.3,
                    False,
                    ours["cpu"],
                    note,
                ),
                Row(f"{size}, {metric}: peak", "a tenth of it", ours["peak"] / small["peak"], 1.25, False, ours["cpu"]),
                Row(f"{size}, {metric}: peak, MB", "1 GB", ours["peak"], 1000.0, False, ours["cpu"]),
            ]
    finally:
        if not keep and folder is None:
            shutil.rmtree(base)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--configurations", type=int, default=CONFIGURATIONS)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", choices=("cvstats", "loop"), help=argparse.SUPPRESS)
    parser.add_argument("--metric", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run = by_cvstats if options.child == "cvstats" else by_loop
        print(json.dumps(run(options.store, options.metric)))
    else:
        for row in rows(options.folder, options.configurations, options.keep):
            print(f"{row.job:45s} {row.against:20s} {row.ratio:8.3g}  bar {row.bar:g}  {row.note}")
