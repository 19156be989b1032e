"""Do the intervals hold their level? One command each for running, summarising, drawing and checking the study.

python -m benchmarks.coverage run [--reduced] [--only TEXT]       refitted learners and fixed models; resumable
python -m benchmarks.coverage package [--reduced] [--only TEXT]   groups, repeats, hold-out through cvstats.coverage
python -m benchmarks.coverage summarise                           the tidy files benchmarks/results/coverage*.csv
python -m benchmarks.coverage draw                                figures and tables of docs/coverage.md
python -m benchmarks.coverage check                               the study's kernel against the package
python -m benchmarks.coverage cost                                time of the calibrated against the percentile interval
python -m benchmarks.coverage guard [--full] [--table]            has a method drifted from its recorded values?
python -m benchmarks.coverage guard --plant all                   would the guard notice? (--record: new values)

The full run takes hours on two cores, the reduced one minutes. Records go to benchmarks/results/raw, one file per
design and chunk of repetitions; a run that was stopped goes on where it was. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
RAW = RESULTS / "raw"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(reduced: bool, only: str) -> None:
    """Run all chunks that are missing: accuracy and AUC first, and first chunks of all designs first."""
    from tqdm import tqdm

    from . import refit, simulated
    from .designs import DESIGNS

    RAW.mkdir(parents=True, exist_ok=True)
    plain = [each for each in DESIGNS if "accuracy" in each.metrics and each.repeats == 1 and not each.inner]
    others = [each for each in DESIGNS if each not in plain]
    jobs = [
        (chunk, run_chunk, design, RAW / f"{design.key}-{chunk:03d}.npz")
        for designs, size, run_chunk in (
            (plain, refit.CHUNK, refit.run_chunk),
            (simulated.SIMULATED, simulated.PER_CHUNK, simulated.run_chunk),
            (others, refit.CHUNK, refit.run_chunk),
        )
        for chunk in range(1 if reduced else 100)
        for design in designs
        if only in design.key and chunk * size < design.repetitions
    ]
    with tqdm([job for job in jobs if not job[3].exists()], mininterval=5) as bar:
        for chunk, run_chunk, design, path in bar:
            bar.set_description(design.key)
            if not path.exists():  # another process may have made it meanwhile
                run_chunk(design, chunk, RAW)


def main() -> None:
    """Read the command line and run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("run", "package", "summarise", "draw", "check", "cost", "guard"))
    parser.add_argument("--reduced", action="store_true", help="minutes instead of hours")
    parser.add_argument("--only", default="", help="designs whose name contains this")
    parser.add_argument("--full", action="store_true", help="guard: the full grid, some minutes")
    parser.add_argument("--table", action="store_true", help="guard: write docs/guard_table.inc")
    parser.add_argument(
        "--record", action="store_true", help="guard: measure the values to compare with (--only: of some)"
    )
    parser.add_argument("--plant", help="guard: name of a planted fault, or all")
    parser.add_argument("--jobs", type=int, default=1, help="guard: number of processes")
    given = parser.parse_args()
    if given.step == "run":
        run(given.reduced, given.only)
    elif given.step == "package":
        from . import package

        package.run(RESULTS, given.reduced, given.only)
    elif given.step == "summarise":
        from . import summary

        summary.write_tables(RAW, RESULTS)
        print(summary.bars(summary.read(RESULTS)))
        print(summary.main_table(summary.read(RESULTS)))
    elif given.step == "draw":
        from . import figures

        figures.draw(RESULTS, DOCS)
    elif given.step == "check":
        from . import checks

        checks.check()
    elif given.step == "cost":
        from . import checks

        checks.cost()
    else:
        from . import guard

        form = "record" if given.record else "full" if given.full else "short"
        sys.exit(
            guard.main(form, given.jobs, given.plant, given.only, DOCS / "guard_table.inc" if given.table else None)
        )


if __name__ == "__main__":
    main()
