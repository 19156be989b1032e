"""Measure the speed of cvstats against named contenders and write the table that the documentation shows.

    python benchmarks/speed.py            everything but the cube on disk; less than ten minutes on an idle machine
    python benchmarks/speed.py --huge     only the 20000 x 20000 cube on disk (1.6 GB, see speed_huge.py)
    python benchmarks/speed.py --short    small sizes; exit code 1 when a bar is missed by an order of magnitude

All contenders run in one process, in turns, on one thread; times are CPU seconds, medians over turns. Compare the
ratios: absolute times do not travel between machines.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import sys  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from pathlib import Path  # noqa: E402

import speed_decisions  # noqa: E402
import speed_files  # noqa: E402
import speed_growth  # noqa: E402
import speed_jobs  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent / "docs"
LIMITS = "every point gets an anchor, a standard error and limits, which the loop does without"
REASONS = {  # known ones why a bar is missed, by how the job begins; shown below the table when it is
    "BBC, 0-1 loss, paper": "the fingerprint of the predictions, SHA-256 of 24 MB of doubles, takes half of a tenth of "
    "the loop's time or more; drawing, checks, sums over repeats and the product do not fit into the rest",
    "interval of one mean": "counts that do not depend on blocks or workers take half of the call, checks and labels a "
    "quarter",
    "long CSV": "ids and classes are read as text, so that 007 stays 007, and numbered; pandas guesses numbers, and "
    "makes no cube",
    "report": "nine figures take about a second; curves, the published BBC, which draws without strata, the set of "
    "the best and the order of all configurations take the rest",
    "4x columns": "names and types of columns are looked at one by one, by pyarrow too; no step grows faster than "
    "that, so what is above 4 is the cache",
    "grid search": "every fit is followed by a new file, which alone takes 5 % of this search; 1.08 to 1.16 in "
    "six runs",
    "4x": "short calls in one run; the slope over four doublings, above, is less than 1",
    "ROC curve": LIMITS,
    "calibration curve": "local regression in numpy, of the draw's winner and of the anchor, in and out of the draw; "
    "statsmodels' is compiled, and the loop has one",
    "decision curve": LIMITS,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="small sizes, for continuous integration")
    parser.add_argument("--huge", action="store_true", help="only the 20000 x 20000 cube on disk")
    parser.add_argument("--quick", action="store_true", help="only the two jobs that take milliseconds")
    parser.add_argument("--metrics", default="accuracy,auc", help="metrics for the cube on disk")
    parser.add_argument("--folder", type=Path, help="folder of the cubes on disk, to keep them")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contender")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for the table and the numbers")
    options = parser.parse_args()
    if options.huge:
        import speed_huge

        rows, growth = speed_huge.rows(options.folder, metrics=options.metrics.split(",")), {}
    elif options.quick:
        rows, growth = speed_jobs.means("paper", 4 * options.rounds) + speed_jobs.single(options.rounds), {}
    else:
        rows, growth = short() if options.short else full(options.rounds)
    for row in rows:
        verdict = "ok" if row.met else "MISSED"
        print(f"{row.job:45s} {row.against:24s} {row.ratio:10.3g}  bar {row.bar:6g}  {verdict}  {row.note}")
    if options.short:
        bad = [row for row in rows if row.broken()]
        for row in bad:
            print(f"an order of magnitude off: {row.job} against {row.against}: {row.ratio:.3g}, bar {row.bar:g}")
        return 1 if bad else 0
    write(options.out, rows, growth)
    return 0


def full(rounds: int) -> tuple[list[speed_jobs.Row], dict[str, object]]:
    rows = speed_jobs.means("paper", 4 * rounds) + speed_jobs.means("big", max(2, rounds // 2))
    rows += speed_jobs.auc("paper", max(2, rounds // 2)) + speed_jobs.auc("big", 1)
    growth = {"accuracy": speed_growth.growth("accuracy", "numpy", rounds)}
    growth["auc"] = speed_growth.growth("auc", "numba" if speed_jobs._has("numba") else "numpy", 2)
    for metric, table in growth.items():
        rows += speed_growth.growth_rows(table, metric)
    rows += speed_growth.memory_rows(speed_jobs.SIZES["paper"])
    rows += speed_jobs.single(rounds) + speed_jobs.dropping(rounds) + speed_jobs.obrien(rounds)
    rows += speed_jobs.decisions(max(2, rounds // 2)) + speed_decisions.rows(max(2, rounds // 2))
    rows += speed_files.rows(rounds) + speed_jobs.imports(rounds)
    return rows, growth


def short() -> tuple[list[speed_jobs.Row], dict[str, object]]:
    speed_jobs.SIZES["paper"] = (300, 200, 3)
    rows = speed_jobs.means("paper", 3) + speed_jobs.auc("paper", 2)
    rows += speed_jobs.single(3, 300) + speed_jobs.dropping(1) + speed_jobs.obrien(1, 400) + speed_jobs.imports(1)
    rows += speed_jobs.decisions(1, 200, 40, 200)
    return rows, {}


def versions() -> dict[str, str]:
    names = ("cvstats", "numpy", "xarray", "scipy", "pandas", "pyarrow", "scikit-learn", "numba", "dask")
    found = {"python": platform.python_version(), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    if found["cvstats"] == "-":
        import cvstats

        found["cvstats"] = cvstats.__version__
    return found


def write(folder: Path, rows: list[speed_jobs.Row], growth: dict[str, object]) -> None:
    """Write the numbers as JSON and the table as Markdown; what is left of an earlier run is the cube on disk."""
    path = folder / "speed_results.json"
    earlier = json.loads(path.read_text()) if path.exists() else {"rows": [], "growth": {}}
    now = [row.record() for row in rows]
    disk = [row["job"].startswith("20000") for row in now]
    kept = [row for row in earlier["rows"] if row["job"].startswith("20000") != any(disk)]
    everything = sorted(now + kept, key=lambda row: row["job"].startswith("20000"))
    growth = growth or earlier["growth"]
    record = {"versions": versions(), "sizes": speed_jobs.SIZES, "draws": speed_jobs.TIMES, "growth": growth}
    path.write_text(json.dumps(record | {"rows": everything}, indent=1, allow_nan=True) + "\n")
    (folder / "speed_table.inc").write_text(table(everything, record))
    print(f"written: {path} and {folder / 'speed_table.inc'}")


def table(rows: list[dict[str, object]], record: dict[str, object]) -> str:
    lines = ["| job | against | measured | bar | CPU seconds |", "|---|---|--:|--:|--:|"]
    for row in rows:
        sign = "≥" if row["least"] else "≤"
        missed = "" if row["met"] else " (missed)"
        seconds = f"{row['seconds']:.3g}" if row["seconds"] == row["seconds"] else ""
        bar = f"{sign} {row['bar']:g}"
        lines.append(f"| {row['job']} | {row['against']} | {row['ratio']:.3g}{missed} | {bar} | {seconds} |")
    growth: dict[str, dict[str, dict[str, object]]] = record["growth"]  # type: ignore[assignment]
    if growth:
        lines += ["", "| doubled four times | " + " | ".join(f"slope, {metric}" for metric in growth) + " |"]
        lines.append("|---|" + "--:|" * len(growth))
        for axis in speed_growth.BASE:
            slopes = " | ".join(f"{growth[metric][axis]['slope']:.2f}" for metric in growth)
            lines.append(f"| {axis} | {slopes} |")
    notes = sorted({str(row["note"]) for row in rows if row["note"] and "slope" not in str(row["note"])})
    found: dict[str, str] = record["versions"]  # type: ignore[assignment]
    lines += ["", "Measured with " + ", ".join(f"{name} {value}" for name, value in found.items()) + ".", ""]
    missed = [str(row["job"]) for row in rows if not row["met"]]
    for job in dict.fromkeys(missed):
        reason = next((why for start, why in REASONS.items() if job.startswith(start)), "the reason is not known")
        notes.append(f"missed, {job}: {reason}")
    return "\n".join(lines + [f"- {note}" for note in notes]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
