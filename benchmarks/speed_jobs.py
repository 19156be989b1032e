"""The jobs behind the table of speed.py: each times cvstats and a named contender, interleaved, in CPU time."""

from __future__ import annotations

import gc
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

import cvstats as cs
from cvstats.kernels import walk as _walk

HELP = """
import sys
sys.argv = ["cvstats", "--help"]
try:
    from cvstats.cli import main
    main()
except SystemExit:
    pass
"""
SIZES = {"small": (100, 100, 1), "paper": (500, 610, 10), "big": (10_000, 1_000, 1)}
TIMES = 1000


@dataclass
class Row:
    """One line of the table: a ratio, the bar it must reach, and how it was measured."""

    job: str
    against: str
    ratio: float
    bar: float
    least: bool  # whether the bar is a minimum
    seconds: float
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the ratio reaches the bar."""
        return self.ratio >= self.bar if self.least else self.ratio <= self.bar

    def broken(self, factor: float = 10.0) -> bool:
        """Whether the bar is missed by an order of magnitude."""
        return self.ratio < self.bar / factor if self.least else self.ratio > self.bar * factor

    def record(self) -> dict[str, object]:
        """Return the row as JSON keeps it."""
        return asdict(self) | {"met": self.met}


def cpu(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call.

    Garbage is collected between calls, not in them, as timeit does: it costs by what else the process has loaded.
    """
    gc.collect()
    gc.disable()
    start = time.process_time()
    try:
        call()
        return time.process_time() - start
    finally:
        gc.enable()


def interleaved(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each call, taken in turns after one unmeasured turn."""
    turns = [{name: cpu(call) for name, call in calls.items()} for _ in range(rounds + 1)]
    return {name: statistics.median(turn[name] for turn in turns[1:]) for name in calls}


def make_cube(n: int, c: int, r: int, seed: int = 0):
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    p = (g.random((n, c, r)) + 0.3 * y[:, None, None]) / 1.3
    return cs.as_cube(p if r > 1 else p[:, :, 0], y)


def stacked(cube):
    """Return labels and predictions (n, c, r) as plain arrays."""
    values = cube.values
    return cube["label"].values, values if values.ndim == 3 else values[:, :, None]


def sklearn_loop(cube, metric: str, draws: int, columns: int) -> Callable[[], None]:
    """Return one call per draw and configuration on the stacked repeats, for a few draws and configurations."""
    from sklearn.metrics import accuracy_score, roc_auc_score

    y, p = stacked(cube)
    hard = p > 0.5
    r = p.shape[2]
    g = np.random.default_rng(1)

    def run() -> None:
        for _ in range(draws):
            inside = g.integers(0, len(y), len(y))
            truth = np.repeat(y[inside], r)
            for j in range(columns):
                if metric == "accuracy":
                    accuracy_score(truth, hard[inside, j].ravel())
                else:
                    roc_auc_score(truth, p[inside, j].ravel())

    return run


def numpy_loop(cube, draws: int) -> Callable[[], None]:
    """Return the loop over draws that a careful numpy user writes, on losses summed over repeats."""
    y, p = stacked(cube)
    loss = ((p > 0.5) != y[:, None, None]).sum(axis=2).astype(float)
    g = np.random.default_rng(1)

    def run() -> None:
        for _ in range(draws):
            inside = g.integers(0, len(y), len(y))
            best = np.argmin(loss[inside].sum(axis=0))
            out = np.ones(len(y), bool)
            out[inside] = False
            loss[out, best].mean()

    return run


def forced(engine: str, call: Callable[[], object]) -> Callable[[], object]:
    """Return the call with the walk down sorted columns done by one engine."""

    def run() -> object:
        before, _walk.FORCE = _walk.FORCE, engine
        try:
            return call()
        finally:
            _walk.FORCE = before

    return run


def means(size: str, rounds: int) -> list[Row]:
    """BBC with 0-1 loss against scikit-learn, numpy and the machine's own matrix product."""
    n, c, r = SIZES[size]
    cube = make_cube(n, c, r)
    block = np.random.default_rng(0).random((512, n)).astype(np.float32)
    loss = np.random.default_rng(0).random((c, n)).astype(np.float32)
    some, few, several = 2, max(2, 20 // r), 20
    product = _product(cube)
    times = interleaved(
        {
            "bbc": lambda: cs.bbc(cube, "accuracy", times=TIMES, rng=1),
            "peak": lambda: block @ loss.T,
            "product": product,
            "sklearn": sklearn_loop(cube, "accuracy", some, few),
            "numpy": numpy_loop(cube, several),
        },
        rounds,
    )
    ours, peak = times["bbc"], times["peak"] * TIMES / 512
    scale = TIMES * c / (some * few)
    rows = [
        Row(
            f"BBC, 0-1 loss, {size}",
            "scikit-learn loop",
            times["sklearn"] * scale / ours,
            5000.0,
            True,
            ours,
            f"loop measured on {some} draws x {few} configurations, scaled by {scale:.0f}",
        ),
        Row(
            f"BBC, 0-1 loss, {size}",
            "numpy loop over draws",
            times["numpy"] * TIMES / several / ours,
            10.0,
            True,
            ours,
            f"loop measured on {several} draws, scaled by {TIMES / several:.0f}",
        ),
        Row(
            f"BBC, 0-1 loss, {size}: whole call",
            "matrix-product peak",
            peak / ours,
            0.2 if size == "big" else 0.15,
            True,
            ours,
            "float32 product of the same shape",
        ),
        Row(
            f"BBC, 0-1 loss, {size}: its product alone",
            "matrix-product peak",
            peak / (times["product"] * TIMES / 512),
            0.8,
            True,
            times["product"] * TIMES / 512,
        ),
    ]
    if size == "big":
        return [row for row in rows if "peak" in row.against]
    return rows


def _product(cube) -> Callable[[], object]:
    """Return the product that the kernel itself makes for 512 draws."""
    from cvstats.cube.arrays import problem_on
    from cvstats.metrics import get_metric
    from cvstats.resample import Bootstrap

    n = cube.sizes["sample"]
    data = problem_on(cube, get_metric("accuracy"))
    scorer = get_metric("accuracy").kernel(data, float(n))
    weights = Bootstrap(n, 512, 1).block(0, 512)[0].astype(np.float32)
    return lambda: weights @ scorer.parts[0].T  # type: ignore[attr-defined]


def auc(size: str, rounds: int) -> list[Row]:
    """BBC with AUC against scikit-learn, with numpy alone and with numba."""
    n, c, r = SIZES[size]
    cube = make_cube(n, c, r)
    some, few = 2, 10
    calls = {"sklearn": sklearn_loop(cube, "auc", some, few)}
    engines = ["numpy", "numba"] if _has("numba") else ["numpy"]
    for engine in engines:
        calls[engine] = forced(engine, lambda: cs.bbc(cube, "auc", times=TIMES, rng=1))
    times = interleaved(calls, rounds)
    scale = TIMES * c / (some * few)
    bars = {"paper": {"numpy": 300.0, "numba": 1500.0}, "big": {"numpy": 100.0, "numba": 700.0}}
    bars["small"] = bars["paper"]
    note = f"loop measured on {some} draws x {few} configurations, scaled by {scale:.0f}"
    return [
        Row(
            f"BBC, AUC, {size}, {engine}",
            "scikit-learn loop",
            times["sklearn"] * scale / times[engine],
            bars[size][engine],
            True,
            times[engine],
            note,
        )
        for engine in engines
    ]


def single(rounds: int, n: int = 1000) -> list[Row]:
    """One configuration: the interval of a mean and of an AUC against scipy.stats.bootstrap (and R's boot)."""
    from scipy.stats import bootstrap
    from sklearn.metrics import roc_auc_score

    cube = make_cube(n, 1, 1)
    y, p = cube["label"].values, cube.values[:, 0]
    hits = ((p > 0.5) == y).astype(float)
    options = {"n_resamples": TIMES, "method": "percentile"}

    def scipy_mean() -> object:
        return bootstrap((hits,), np.mean, vectorized=True, rng=np.random.default_rng(1), **options)

    def scipy_auc() -> object:
        g = np.random.default_rng(1)
        return bootstrap((y, p), roc_auc_score, vectorized=False, paired=True, rng=g, **options)

    calls = {"ours": lambda: cs.bbc(cube, "accuracy", times=TIMES, rng=1), "scipy": scipy_mean}
    mean = interleaved(calls, 10 * rounds)  # short calls: more turns
    area = interleaved({"ours": lambda: cs.bbc(cube, "auc", times=TIMES, rng=1), "scipy": scipy_auc}, rounds)
    contender = "scipy.stats.bootstrap"
    rows = [
        Row(f"interval of one mean, N={n}: time", contender, mean["ours"] / mean["scipy"], 1.3, False, mean["ours"]),
        Row(f"interval of one AUC, N={n}: speed", contender, area["scipy"] / area["ours"], 3.0, True, area["ours"]),
    ]
    seconds = _r_boot(n)
    if seconds is not None:
        rows.append(
            Row(f"interval of one mean, N={n}: time", "R boot", mean["ours"] / seconds, 1.3, False, mean["ours"])
        )
    return rows


def _r_boot(n: int) -> float | None:
    """Return the CPU seconds of R's boot for the mean of n numbers, or None where it is not installed."""
    if shutil.which("Rscript") is None:
        return None
    code = (
        f"suppressMessages(library(boot)); x <- as.numeric(runif({n}) < .7); f <- function(d, i) mean(d[i]);"
        f"t <- replicate(5, sum(system.time(boot.ci(boot(x, f, R = {TIMES}), type = 'perc'))[1:2])); cat(median(t))"
    )
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 and done.stdout else None


def dropping(rounds: int) -> list[Row]:
    """Replay of early dropping over ten folds against one BBC."""
    cube = cs.simulate_cube(500, 610, rng=1)
    calls = {
        "bbcd": lambda: cs.bbcd(cube, "accuracy", times=TIMES, rng=1),
        "bbc": lambda: cs.bbc(cube, "accuracy", times=TIMES, rng=1),
    }
    times = interleaved(calls, rounds)
    return [Row("early dropping, 10 folds", "one BBC", times["bbcd"] / times["bbc"], 6.0, False, times["bbcd"])]


def decisions(rounds: int, n: int = 500, c: int = 100, times: int = TIMES) -> list[Row]:
    """More than a plain choice: a threshold with the configuration, three metrics of one choice, an ensemble."""
    cube = make_cube(n, c, 1)
    three = ["auc", "brier", "sensitivity"]
    calls: dict[str, Callable[[], object]] = {
        "auc": lambda: cs.bbc(cube, "auc", times=times, rng=1),
        "cut": lambda: cs.bbc(cube, "balanced_accuracy", adjust=cs.cut("youden"), times=times, rng=1),
        "three": lambda: cs.bbc(cube, three, times=times, rng=1),
        "judging": lambda: cs.select_and_judge(
            cube.isel(configuration=slice(0, 1)), three, choose=cs.bootstrap(cube, times, rng=1), rng=1
        ),
    }
    seconds = interleaved(calls, rounds)
    size = f"N={n}, C={c}"
    rows = [
        Row(f"threshold and configuration, {size}", "AUC", seconds["cut"] / seconds["auc"], 6.0, False, seconds["cut"]),
        Row(
            f"three metrics of one choice, {size}",
            "AUC alone and judging",
            seconds["three"] / (seconds["auc"] + seconds["judging"]),
            1.3,
            False,
            seconds["three"],
        ),
    ]
    draws, few = max(40, times // 5), 2
    ours = interleaved({"ours": lambda: cs.bbc(cube, "brier", select=cs.ensemble(25), times=draws, rng=1)}, 1)["ours"]
    loop = interleaved({"loop": lambda: _greedy_loop(cube, few)}, 1)["loop"] / few * draws
    return [*rows, Row(f"ensemble of 25, {size}, {draws} draws", "Python loop", loop / ours, 50.0, True, ours)]


def _greedy_loop(cube, draws: int) -> None:
    """Greedy selection of 25 members on bootstrap rows, by scikit-learn's score of every candidate."""
    from sklearn.metrics import brier_score_loss

    y, p, g = cube["label"].values, cube.values, np.random.default_rng(1)
    for _ in range(draws):
        rows = g.integers(0, len(y), len(y))
        total = np.zeros(len(y))
        for step in range(25):
            losses = [brier_score_loss(y[rows], (total[rows] + p[rows, j]) / (step + 1)) for j in range(p.shape[1])]
            total += p[:, int(np.argmin(losses))]


def obrien(rounds: int, cells: int = 2000) -> list[Row]:
    """O'Brien's test over many cells against a loop over scipy."""
    import xarray as xr
    from scipy.stats import f_oneway, obrientransform

    x = np.random.default_rng(0).normal(size=(cells, 2, 30))
    array = xr.DataArray(x, dims=("cell", "method", "trial"), coords={"method": ["a", "b"]})
    some = max(1, cells // 20)

    def loop() -> None:
        for i in range(some):
            f_oneway(*obrientransform(x[i, 0], x[i, 1]))

    times = interleaved({"ours": lambda: cs.obrien_test(array, "trial", by="method"), "scipy": loop}, rounds)
    ratio = times["scipy"] * cells / some / times["ours"]
    note = f"loop measured on {some} cells, scaled by {cells // some}"
    return [Row(f"O'Brien's test, {cells} cells", "scipy loop", ratio, 100.0, True, times["ours"], note)]


def imports(rounds: int) -> list[Row]:
    """Start-up, in CPU time of a new interpreter beyond the bare one."""
    codes = {
        "bare": "pass",
        "numpy": "import numpy",
        "xarray": "import xarray",
        "cvstats": "import cvstats",
        "help": HELP,
    }
    found: dict[str, list[float]] = {name: [] for name in codes}
    for turn in range(rounds + 1):
        for name, code in codes.items():
            seconds = _child_cpu([sys.executable, "-c", code])
            if turn:
                found[name].append(seconds)
    cpu = {name: statistics.median(values) for name, values in found.items()}
    ours, base = cpu["cvstats"] - cpu["bare"], cpu["xarray"] - cpu["bare"]
    rows = [Row("import cvstats", "import xarray", ours / base, 1.2, False, ours)]
    start, light = cpu["help"] - cpu["bare"], cpu["numpy"] - cpu["bare"]
    return [*rows, Row("cvstats --help", "import numpy", start / light, 2.0, False, start)]


def _child_cpu(command: list[str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _has(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None
