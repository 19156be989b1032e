"""The grid of the regression guard: simulated data with known truth, and what each method makes of them.

A cell draws one data set and returns, per method, the numbers to be averaged over repetitions:

bias      estimate minus truth of what was selected; positive is optimistic
shift     estimate minus the tuned score of the same data: what the method corrects, with little Monte-Carlo error
covered   whether the 95 % interval contains the truth (a share, like `rejected`)
width     of the interval
rejected  whether a true null hypothesis was rejected at 5 %, or a set lost one of the best
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

import cvstats as cs
from cvstats.metrics import get_metric

from . import strange_make
from .package import grouped
from .strange_cells import CELLS as STRANGE

Numbers = dict[str, float | bool]
Run = Callable[[np.random.Generator], dict[str, Numbers]]
Simulator = Callable[[np.random.Generator], tuple[xr.DataArray, xr.DataArray | None]]
EQUAL = (1e6, 3e5)  # all configurations are right with the same probability


@dataclass(frozen=True)
class Cell:
    """One design: what to do with one data set, and how many the short form and the full grid take."""

    run: Run
    short: int
    full: int


# Methods: (cube, inner predictions, metric, seed) -> result. A planted fault replaces one of them.
METHODS: dict[str, Callable[..., xr.Dataset]] = {
    "cvt": lambda cube, inner, metric, seed: cs.cvt(cube, metric),
    "tt": lambda cube, inner, metric, seed: cs.tt(cube, metric),
    "ncv": lambda cube, inner, metric, seed: cs.ncv(cube, metric, inner=inner),
    "bbc": lambda cube, inner, metric, seed: cs.bbc(cube, metric, times=200, rng=seed),
    "bbc, random ties": lambda cube, inner, metric, seed: cs.bbc(cube, metric, times=200, rng=seed, ties="random"),
    "bbcd": lambda cube, inner, metric, seed: cs.bbcd(cube, metric, min_predictions=0, times=200, rng=seed),
    "winner": lambda cube, inner, metric, seed: cs.winner(cube, metric, times=200, rng=seed),
    "winner, inner": lambda cube, inner, metric, seed: cs.winner(cube, metric, inner=inner, times=200, rng=seed),
    "winner, holdout": lambda cube, inner, metric, seed: cs.winner(cube, metric, regime="holdout", times=200, rng=seed),
    "wilson": lambda cube, inner, metric, seed: cs.bbc(cube, metric, times=200, rng=seed, interval="wilson"),
    "delong": lambda cube, inner, metric, seed: cs.bbc(cube, metric, times=200, rng=seed, interval="delong"),
    "bca": lambda cube, inner, metric, seed: cs.bbc(cube, metric, times=200, rng=seed, interval="bca"),
    "separate_cv": lambda cube, prior, seed: cs.separate_cv(cube, prior=prior, times=200, rng=seed),
    "classical_cv": lambda cube, prior, seed: cs.classical_cv(cube, times=200, rng=seed),
    "prior_reweighted_cv": lambda cube, prior, seed: cs.prior_reweighted_cv(cube, prior=prior, times=200, rng=seed),
    "contrast": lambda cube, a, b, seed: cs.contrast(cube, "accuracy", a=a, b=b, regime="holdout", times=200, rng=seed),
    "best_set": lambda cube, seed: cs.best_set(cube, "accuracy", times=300, rng=seed),
    "threshold": lambda cube, seed: cs.winner(cube, "youden", adjust=cs.cut("youden"), times=100, rng=seed),
    "ensemble": lambda cube, seed: cs.winner(cube, "mse", select=cs.ensemble(20), times=100, rng=seed),
}


def judged(found: xr.Dataset, truth: float, tuned: float | None, sign: int) -> Numbers:
    """Return the numbers of one result."""
    estimate = float(found["estimate"])
    numbers: Numbers = {"bias": sign * (estimate - truth)}
    if tuned is not None:
        numbers["shift"] = sign * (estimate - tuned)
    if "conf_low" in found:
        low, high = float(found["conf_low"]), float(found["conf_high"])
        numbers["covered"] = low <= truth <= high
        if not np.isnan(low):  # no interval covers nothing and has no width
            numbers["width"] = high - low
    return numbers


def selecting(simulator: Simulator, metric: str, *methods: str) -> Run:
    """Return a cell of methods that select a configuration and estimate its performance."""

    def run(rng: np.random.Generator) -> dict[str, Numbers]:
        cube, inner = simulator(rng)
        seed = int(rng.integers(2**31))
        tuned = float(METHODS["cvt"](cube, inner, metric, seed)["estimate"])
        rows = {}
        for name in methods:
            found = METHODS[name](cube, inner, metric, seed)
            truth = float(cube["truth"].sel(configuration=found["selected"].item()))
            rows[name] = judged(found, truth, None if name == "cvt" else tuned, get_metric(metric).sign)
        return rows

    return run


def fixed(n: int, c: int, beta: tuple[float, float] = (9, 6), **options: Any) -> Simulator:
    """Return a simulator of fixed models (with inner predictions if asked for)."""

    def simulator(rng: np.random.Generator) -> tuple[xr.DataArray, xr.DataArray | None]:
        made: Any = cs.simulate_cube(n, c, beta=beta, rng=rng, **options)
        return made if isinstance(made, tuple) else (made, None)

    return simulator


def scored(n: int, c: int, step: float = 0.5) -> Simulator:
    """Return a simulator of scores rounded to a grid, so with ties; the true AUC counts a tie as one half."""
    grid = np.arange(-12, 14, step)

    def simulator(rng: np.random.Generator) -> tuple[xr.DataArray, None]:
        label = rng.permutation(np.arange(n) % 2)
        gain = rng.uniform(0.3, 1.8, c)
        noise = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, c)))
        values = np.round((label[:, None] * gain + noise) / step) * step
        zero = np.diff(ndtr(np.append(grid, grid[-1] + step) - step / 2))
        one = np.diff(ndtr(np.append(grid, grid[-1] + step)[:, None] - step / 2 - gain), axis=0)
        truth = (zero.cumsum() - zero / 2) @ one
        cube = cs.as_cube(values, label, folds=rng.permutation(np.arange(n) % 5), kind="score")
        return cube.assign_coords(truth=("configuration", truth)), None

    return simulator


def regression(n: int, c: int) -> Simulator:
    """Return a simulator of regressions with known mean squared errors."""

    def simulator(rng: np.random.Generator) -> tuple[xr.DataArray, None]:
        label = rng.standard_normal(n)
        spread = rng.uniform(0.6, 1.2, c)
        noise = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, c)))
        cube = cs.as_cube(label[:, None] + spread * noise, label, folds=np.arange(n) % 5, kind="value")
        return cube.assign_coords(truth=("configuration", spread**2)), None

    return simulator


def clustered(rng: np.random.Generator) -> tuple[xr.DataArray, None]:
    """Simulate groups of five samples that share most of their luck."""
    return grouped(30, 5, 20)(rng), None


def refitted(rng: np.random.Generator) -> tuple[xr.DataArray, xr.DataArray]:
    """Simulate learners that are refitted in every fold; truth is the error rate on new cases."""
    made: Any = cs.ripley_mixture(48, ridge=(0.03, 0.3, 3), eta=(0.3, 3, 30), folds=4, inner=True, n_test=1000, rng=rng)
    return made[0], made[1]


def strange(key: str, metric: str) -> Run:
    """Return a cell of the study of strange designs: learners refitted in every fold, truth on new cases."""
    cell = STRANGE[key]

    def simulator(rng: np.random.Generator) -> tuple[xr.DataArray, xr.DataArray | None]:
        record, new_cases = strange_make.predicted(cell, rng)
        truth = cs.score(strange_make.known(cell, *new_cases), metric).values
        cube, inner = strange_make.cube_of(cell, record)
        return cube.assign_coords(truth=("configuration", truth)), inner

    return selecting(simulator, metric, "cvt", "winner")


def separately(ratio: float, prior: float) -> Run:
    """Return a cell of separate sampling: linear discriminants, 80 samples, exact true error."""

    def run(rng: np.random.Generator) -> dict[str, Numbers]:
        cube, ordinary = cs.separate_gaussian(80, ratio=ratio, prior=prior, rng=rng)
        seed = int(rng.integers(2**31))
        truth = float(cube["truth"].squeeze())
        rows = {}
        for name, part in (("separate_cv", cube), ("classical_cv", ordinary), ("prior_reweighted_cv", ordinary)):
            rows[name] = judged(METHODS[name](part, {0: prior}, seed).squeeze(), truth, None, -1)
        return rows

    return run


def comparing(rng: np.random.Generator) -> dict[str, Numbers]:
    """Compare equally good configurations, and two families whose best differ."""
    seed = int(rng.integers(2**31))
    equal = cs.simulate_cube(60, 12, beta=EQUAL, dependence=0.3, rng=rng)
    found = METHODS["contrast"](equal, 0, 1, seed)
    kept = METHODS["best_set"](equal, seed)
    mcnemar = cs.mcnemar_test(equal, a=0, b=1, distribution="chi2")
    rows: dict[str, Numbers] = {
        "contrast of two": {"rejected": float(found["p_value"]) < 0.05} | judged(found, 0.0, None, 1),
        "best_set": {"rejected": int(kept["n_set"]) < 12},
        "mcnemar_test": {"rejected": float(mcnemar["p_value"]) < 0.05},
    }
    families = cs.simulate_cube(60, 12, rng=rng)
    found = METHODS["contrast"](families, list(range(4)), list(range(4, 12)), seed)
    truth = families["truth"].values
    difference = truth[int(found["selected_a"])] - truth[int(found["selected_b"])]
    rows["contrast of families"] = judged(found, float(difference), None, 1)
    return rows


def deciding(rng: np.random.Generator) -> dict[str, Numbers]:
    """Choose marker and threshold together, and mix predictions of a number: fixed models of 60 samples."""
    seed, y = int(rng.integers(2**31)), (np.arange(60) < 24).astype(int)
    gap, own = rng.uniform(0.6, 1.2, 10), rng.uniform(0.6, 1.0, 20)
    noise = np.sqrt(0.6) * rng.standard_normal((60, 1)) + np.sqrt(0.4) * rng.standard_normal((60, 10))
    found = METHODS["threshold"](cs.as_cube(noise + gap * y[:, None], y, kind="score", positive=1), seed)
    limit = float(found["threshold"])
    truth = float(ndtr(gap[int(found["selected"])] - limit) + ndtr(limit) - 1)
    rows = {"threshold": judged(found, truth, float(found["naive"]), 1)}
    error = 0.6 * rng.standard_normal((60, 1)) + own * rng.standard_normal((60, 20))
    found = METHODS["ensemble"](cs.as_cube(error, np.zeros(60), kind="value"), seed)
    truth = 0.36 + float(found["share"].values ** 2 @ own**2)
    rows["ensemble"] = judged(found, truth, float(found["naive"]), -1)
    return rows


def resampled(rng: np.random.Generator) -> dict[str, Numbers]:
    """Compare two equally good configurations over repeated folds, 5 x 8, and scores of trials."""
    cube = cs.simulate_cube(60, 2, beta=EQUAL, folds=5, repeats=8, repeat_share=0.9, rng=rng)
    fold = (cube == cube["label"]).values.astype(float)
    each = np.stack([[fold[cube["fold"].values[:, r] == k, :, r].mean(axis=0) for k in range(5)] for r in range(8)])
    a, b = (xr.DataArray(each[..., j], dims=("repeat", "fold")) for j in (0, 1))
    trials = xr.DataArray(rng.standard_normal((4, 20)), dims=("method", "trial"))
    one, other = trials.isel(method=0), trials.isel(method=1)
    found = {
        "corrected_t_test": cs.corrected_t_test(a, ("repeat", "fold"), other=b, test_fraction=1 / 5),
        "t_test": cs.t_test(one, "trial", other=other),
        "wilcoxon_test": cs.wilcoxon_test(one, "trial", other=other),
        "pitman_morgan_test": cs.pitman_morgan_test(one, "trial", other=other),
        "friedman_test": cs.friedman_test(trials, "trial", by="method", direction="minimize"),
        "levene_test": cs.levene_test(trials, "trial", by="method"),
        "obrien_test": cs.obrien_test(trials, "trial", by="method"),
    }
    return {name: {"rejected": float(result["p_value"]) < 0.05} for name, result in found.items()}


CELLS: dict[str, Cell] = {
    "N = 100, C = 100": Cell(
        selecting(fixed(100, 100, inner=True), "accuracy", "cvt", "tt", "ncv", "bbc", "winner", "winner, holdout"),
        120,
        300,
    ),
    "N = 20, C = 200": Cell(selecting(fixed(20, 200), "accuracy", "cvt", "tt", "bbc", "winner"), 150, 300),
    "N = 500, C = 50": Cell(selecting(fixed(500, 50), "accuracy", "cvt", "tt", "bbc", "winner"), 100, 300),
    "N = 40, C = 50, Beta(54, 6)": Cell(
        selecting(fixed(40, 50, (54, 6)), "accuracy", "cvt", "bbc", "bbc, random ties", "winner", "winner, holdout"),
        150,
        300,
    ),
    "N = 60, C = 40, copula .5": Cell(
        selecting(fixed(60, 40, dependence=0.5), "accuracy", "cvt", "tt", "bbc", "bbcd", "winner"), 120, 300
    ),
    "N = 60, C = 20, 3 repeats": Cell(
        selecting(fixed(60, 20, repeats=3), "accuracy", "cvt", "bbc", "winner"), 120, 300
    ),
    "N = 80, C = 1": Cell(selecting(fixed(80, 1), "accuracy", "bbc", "wilson", "bca", "winner"), 150, 300),
    "30 groups of 5, C = 20": Cell(selecting(clustered, "accuracy", "cvt", "bbc", "winner"), 150, 300),
    "AUC with ties, N = 60, C = 20": Cell(selecting(scored(60, 20), "auc", "cvt", "bbc", "winner"), 150, 300),
    "AUC with ties, N = 60, C = 1": Cell(selecting(scored(60, 1), "auc", "bbc", "delong", "winner"), 150, 300),
    "MSE, N = 60, C = 20": Cell(selecting(regression(60, 20), "mse", "cvt", "tt", "bbc", "winner"), 150, 300),
    "refitted, N = 48, C = 9": Cell(
        selecting(refitted, "error_rate", "cvt", "tt", "ncv", "bbc", "winner", "winner, inner"), 60, 300
    ),
    "separate sampling, r = .15, c = .5": Cell(separately(0.15, 0.5), 120, 300),
    "separate sampling, r = .70, c = .1": Cell(separately(0.70, 0.1), 120, 300),
    "equally good, N = 60, C = 12": Cell(comparing, 200, 300),
    "threshold and ensemble, N = 60": Cell(deciding, 100, 200),
    "no difference, 8 x 5 folds, 20 trials": Cell(resampled, 200, 600),
    "strange: rare class, balanced accuracy": Cell(strange("tuning-shift-rare-n80", "balanced_accuracy"), 40, 100),
    "strange: one configuration, AUC": Cell(strange("tuning-shift-one-n60", "auc"), 60, 100),
    "strange: two configurations, accuracy": Cell(strange("tuning-shift-two-n50", "accuracy"), 40, 100),
    "strange: junk, accuracy": Cell(strange("tuning-junk-n60", "accuracy"), 40, 100),
    "strange: unstratified, AUC": Cell(strange("tuning-moons-loose-n100", "auc"), 40, 100),
    "strange: near zero, log loss": Cell(strange("tuning-digits-17-n40", "log_loss"), 20, 50),
    "strange: repeats, accuracy": Cell(strange("tuning-shift-repeats-n50", "accuracy"), 40, 100),
    "strange: squared error": Cell(strange("tuning-linear-n40", "mse"), 40, 100),
    "strange: concordance": Cell(strange("tuning-weibull-n80", "concordance"), 40, 100),
    "strange: groups, accuracy": Cell(strange("tuning-groups-30-n150", "accuracy"), 40, 100),
    "strange: separate sampling, AUC": Cell(strange("tuning-separate-n60", "auc"), 20, 50),
}
