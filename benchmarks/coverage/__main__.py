"""Do the intervals hold their level? One command each for running, summarising, drawing and checking the study.

python -m benchmarks.coverage run [--reduced] [--only TEXT]   refitted learners; resumable, hours in full
python -m benchmarks.coverage simulate [--reduced]            fixed models with known truth, through cvstats.coverage
python -m benchmarks.coverage summarise                       the tidy files benchmarks/results/coverage*.csv
python -m benchmarks.coverage draw                            the figures of docs/coverage.md
python -m benchmarks.coverage check                           the study's kernel against the package
python -m benchmarks.coverage cost                            time of the calibrated against the percentile interval
"""

from __future__ import annotations

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
RAW = RESULTS / "raw"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(reduced: bool, only: str) -> None:
    """Run all chunks that are missing, first chunks of all designs first."""
    from tqdm import tqdm

    from . import refit, simulated
    from .designs import DESIGNS

    RAW.mkdir(parents=True, exist_ok=True)
    kinds = [(simulated.PER_CHUNK, simulated.run_chunk, each) for each in simulated.SIMULATED]
    kinds += [(refit.CHUNK, refit.run_chunk, each) for each in DESIGNS]
    jobs = [
        (chunk, run_chunk, design, RAW / f"{design.key}-{chunk:03d}.npz")
        for chunk in range(1 if reduced else 100)
        for size, run_chunk, design in kinds
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
    parser.add_argument("step", choices=("run", "simulate", "summarise", "draw", "check", "cost"))
    parser.add_argument("--reduced", action="store_true", help="minutes instead of hours")
    parser.add_argument("--only", default="", help="designs whose name contains this")
    given = parser.parse_args()
    if given.step == "run":
        run(given.reduced, given.only)


if __name__ == "__main__":
    main()
