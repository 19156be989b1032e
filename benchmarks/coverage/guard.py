"""A guard against drift: measure bias and coverage again and compare with recorded values.

The recorded values come from a larger run with another seed. Means are compared by Welch's t, shares by Fisher's exact
test, so that both Monte-Carlo errors count. An alarm is a p-value below ALARM divided by the number of comparisons:
when nothing has changed but the random stream, about one run in 1 / ALARM at most raises any alarm. The seed is
fixed, so that what has passed passes again as long as numbers do not change.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from . import cells
from .plants import PLANTS

RECORDED = Path(__file__).with_name("recorded.json")
ALARM = 0.001
SEEDS = {"short": 1, "full": 2, "record": 3}
RECORD = 2  # times the full grid
CHUNK = 20
NUMBERS = ("bias", "shift", "covered", "width", "rejected")
SHARES = ("covered", "rejected")
Key = tuple[str, str, str]
Values = dict[Key, np.ndarray]


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and number of repetitions of one number."""

    mean: float
    std: float
    n: int

    @property
    def error(self) -> float:
        """Return the Monte-Carlo standard error."""
        return float(self.std / np.sqrt(self.n))


@dataclass(frozen=True)
class Verdict:
    """One number, measured and recorded."""

    key: Key
    now: Summary
    recorded: Summary
    p_value: float
    alarm: bool
    detects: float

    def __str__(self) -> str:
        now, then = self.now, self.recorded
        return (
            f"{' / '.join(self.key):75s} {now.mean:8.4f} +- {now.error:.4f}  recorded {then.mean:8.4f} +- "
            f"{then.error:.4f}  p = {self.p_value:.1e}"
        )


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Put a faulty method in the place of the right one."""
    saved = dict(cells.METHODS)
    if name is not None:
        cells.METHODS.update(PLANTS[name][0]())
    try:
        yield
    finally:
        cells.METHODS.update(saved)


def run_chunk(cell: str, start: int, stop: int, seed: int, plant: str | None) -> list[dict[str, cells.Numbers]]:
    """Run some repetitions of one cell; each has a random stream of its own."""
    with warnings.catch_warnings(), planted(plant):
        warnings.simplefilter("ignore")
        return [
            cells.CELLS[cell].run(np.random.default_rng([seed, crc32(cell.encode()), repetition]))
            for repetition in range(start, stop)
        ]


def measure(form: str, *, jobs: int = 1, plant: str | None = None, only: str = "") -> Values:
    """Run a form of the grid ("short", "full" or "record") and return the values of every number."""
    tasks = []
    for name, cell in cells.CELLS.items():
        repetitions = {"short": cell.short, "full": cell.full, "record": RECORD * cell.full}[form]
        if only in name:
            tasks += [(name, at, min(at + CHUNK, repetitions)) for at in range(0, repetitions, CHUNK)]
    arguments = [*zip(*tasks, strict=True), [SEEDS[form]] * len(tasks), [plant] * len(tasks)]
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            chunks = list(pool.map(run_chunk, *arguments))
    else:
        chunks = list(map(run_chunk, *arguments))
    values: dict[Key, list[float]] = {}
    for (name, _, _), chunk in zip(tasks, chunks, strict=True):
        for row in chunk:
            for method, numbers in row.items():
                for number, value in numbers.items():
                    values.setdefault((name, method, number), []).append(float(value))
    return {key: np.array(each) for key, each in values.items()}


def summarise(values: np.ndarray) -> Summary:
    """Return mean, standard deviation and count; rounding noise is no spread."""
    std = float(values.std(ddof=1))
    return Summary(float(values.mean()), std if std > 1e-9 else 0.0, values.size)


def compare(now: dict[Key, Summary], recorded: dict[Key, Summary]) -> list[Verdict]:
    """Compare every number with its recorded value."""
    unknown = sorted(set(now) - set(recorded))
    if unknown:
        raise SystemExit(f"no recorded value for {unknown[0]} (and {len(unknown) - 1} more); run with --record.")
    limit = ALARM / len(recorded)  # of the whole grid, even when only a part is run
    verdicts = []
    for key, found in now.items():
        p = p_value(key[2], found, recorded[key])
        verdicts.append(Verdict(key, found, recorded[key], p, p < limit, detects(found, recorded[key], limit)))
    return verdicts


def p_value(number: str, now: Summary, then: Summary) -> float:
    """Return the two-sided p-value of a difference."""
    from scipy.stats import fisher_exact, ttest_ind_from_stats

    if number in SHARES:
        inside = [round(each.mean * each.n) for each in (now, then)]
        return float(fisher_exact([inside, [now.n - inside[0], then.n - inside[1]]]).pvalue)
    if now.std == then.std == 0:
        return float(abs(now.mean - then.mean) < 1e-9)
    found = ttest_ind_from_stats(now.mean, now.std, now.n, then.mean, then.std, then.n, equal_var=False)
    return float(found.pvalue)


def detects(now: Summary, then: Summary, limit: float) -> float:
    """Return the drift that raises an alarm in nine runs of ten (normal approximation)."""
    from scipy.special import ndtri

    return float((ndtri(1 - limit / 2) + ndtri(0.9)) * np.hypot(then.std / np.sqrt(now.n), then.error))


def false_alarms(values: Values, splits: int = 1000) -> int:
    """Count alarms between random parts of one run, of the size of the short form, and the rest: nothing changed."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(splits):
        order: dict[str, np.ndarray] = {}
        now, then = {}, {}
        for key, each in values.items():
            size = cells.CELLS[key[0]].short
            order.setdefault(key[0], rng.permutation(RECORD * cells.CELLS[key[0]].full))
            at = order[key[0]][order[key[0]] < each.size]  # some repetitions have no interval
            now[key], then[key] = summarise(each[at[:size]]), summarise(each[at[size:]])
        alarms += any(verdict.alarm for verdict in compare(now, then))
    return alarms


def provenance(form: str) -> dict[str, Any]:
    """Return what the numbers depend on."""
    packages = {name: version(name) for name in ("cvstats", "numpy", "scipy")}
    return {"form": form, "seed": SEEDS[form], "python": platform.python_version(), **packages}


def record(jobs: int, only: str = "") -> None:
    """Measure the values to compare with, and how often chance alone raises an alarm; with `only`, of some cells."""
    values, splits = measure("record", jobs=jobs, only=only), 1000
    alarms = false_alarms(values, splits)
    found = {key: summarise(value) for key, value in values.items()}
    if only:  # alarms of both parts together are at most their sum
        before, kept = load()
        alarms += before["false_alarms"]
        found = {key: each for key, each in kept.items() if key[0] not in {name for name, _, _ in found}} | found
    rows = [
        {"cell": cell, "method": method, "number": number, "mean": each.mean, "std": each.std, "n": each.n}
        for (cell, method, number), each in found.items()
    ]
    made = {**provenance("record"), "splits": splits, "false_alarms": alarms}
    lines = ",\n".join(json.dumps(row) for row in rows)
    RECORDED.write_text(f'{{"made": {json.dumps(made)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")


def load() -> tuple[dict[str, Any], dict[Key, Summary]]:
    """Return how the recorded values were made, and the values."""
    text = json.loads(RECORDED.read_text(encoding="utf-8"))
    rows = {
        (row["cell"], row["method"], row["number"]): Summary(row["mean"], row["std"], row["n"]) for row in text["rows"]
    }
    return text["made"], rows


def check(form: str, *, jobs: int = 1, plant: str | None = None, only: str = "") -> list[Verdict]:
    """Measure, compare, and return the verdicts."""
    values = measure(form, jobs=jobs, plant=plant, only=only)
    return compare({key: summarise(each) for key, each in values.items()}, load()[1])


def power() -> str:
    """Return a table of the drifts that raise an alarm in nine runs of ten: the smallest of the grid and the median."""
    recorded = load()[1]
    limit = ALARM / len(recorded)
    lines = ["| form | bias | shift | coverage | width, relative | rejected |", "| --- | --- | --- | --- | --- | --- |"]
    for form in ("short", "full"):
        shown = []
        for number in NUMBERS:
            found = []
            for key, then in recorded.items():
                if key[2] == number and then.std > 0:
                    now = Summary(then.mean, then.std, getattr(cells.CELLS[key[0]], form))
                    found.append(detects(now, then, limit) / (then.mean if number == "width" else 1))
            shown.append(f"{min(found):.3f} ({np.median(found):.3f})")
        lines.append(f"| {form} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def table(verdicts: list[Verdict], form: str) -> str:
    """Return the table of the documentation: one line per cell and method, recorded values in parentheses."""
    made = load()[0]
    now = provenance(form)
    quiet = f"alarmed {made['false_alarms']} in {made['splits']} times when parts of the recorded run were compared"
    lines = [
        f"Drifts noticed in nine runs of ten, in the most sensitive design (in the median one); chance alone {quiet}:",
        "",
        *power().splitlines(),
        "",
        f"The {form} form with cvstats {now['cvstats']}, numpy {now['numpy']}, scipy {now['scipy']}, Python "
        f"{now['python']}, seed {now['seed']}; in parentheses the recorded values (seed {made['seed']}, twice the full "
        f"grid): {len(verdicts)} comparisons, {sum(v.alarm for v in verdicts)} alarms, smallest p-value "
        f"{min(v.p_value for v in verdicts):.2g}. *Rejected* is the share of true null hypotheses rejected at 5 %.",
        "",
        "| design | method | repetitions | bias | shift | coverage | width | rejected |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows: dict[tuple[str, str], dict[str, Verdict]] = {}
    for verdict in verdicts:
        rows.setdefault(verdict.key[:2], {})[verdict.key[2]] = verdict
    for (cell, method), numbers in rows.items():
        shown = [_shown(numbers.get(name)) for name in NUMBERS]
        lines.append(f"| {cell} | {method} | {next(iter(numbers.values())).now.n} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _shown(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    digits = 3 if verdict.key[2] in SHARES else 4
    now, then = (round(each.mean, digits) + 0.0 for each in (verdict.now, verdict.recorded))  # + 0.0: no minus zero
    return f"{now:.{digits}f} ({then:.{digits}f}){' **drift**' if verdict.alarm else ''}"


def main(form: str, jobs: int, plant: str | None, only: str, out: Path | None) -> int:
    """Run the guard and say what it found; 1 when something drifted."""
    if form == "record":
        record(jobs, only)
        return 0
    if plant == "all":
        for name, (_, where) in PLANTS.items():
            alarms = [each for each in check(form, jobs=jobs, plant=name, only=where) if each.alarm]
            print(f"{name}: {len(alarms)} alarms", *sorted(alarms, key=lambda each: each.p_value)[:3], sep="\n    ")
        return 0
    verdicts = check(form, jobs=jobs, plant=plant, only=only)
    alarms = [each for each in verdicts if each.alarm]
    for verdict in alarms or sorted(verdicts, key=lambda each: each.p_value)[:3]:
        print(verdict)
    print(f"guard: {len(verdicts)} comparisons, {len(alarms)} beyond Monte-Carlo error")
    if out is not None:
        out.write_text(table(verdicts, form), encoding="utf-8")
    return 1 if alarms else 0
