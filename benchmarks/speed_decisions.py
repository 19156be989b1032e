"""The jobs beyond one score of one choice: curves, subgroups, thresholds, separate sampling, fold scores, recording.

Each is timed in turns against a plain loop over a few draws (scaled), or against another program where it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable

import numpy as np
import xarray as xr
from speed_jobs import TIMES, Row, interleaved, make_cube

import cvstats as cs

GRID, FEW = np.arange(101) / 100, 4  # where curves are asked; draws of the loops


def rows(rounds: int, n: int = 500, c: int = 50, draws: int = 200) -> list[Row]:
    """All of them."""
    made = [*curves(rounds, n, c, draws), *subgroups(rounds, n, c), *threshold(rounds, n)]
    return [*made, *separate(rounds), *fold_scores(rounds), *recording(rounds)]


def chosen_loop(cube: xr.DataArray, draws: int, judge: Callable[[np.ndarray, np.ndarray], object]) -> object:
    """Return a loop over draws: the lowest Brier score on drawn rows wins, and is judged on those left out."""
    y, p = cube["label"].values, cube.values

    def run() -> None:
        g = np.random.default_rng(1)
        for _ in range(draws):
            rows = g.integers(0, len(y), len(y))
            best = np.argmin(((p[rows] - y[rows, None]) ** 2).mean(axis=0))
            out = np.setdiff1d(np.arange(len(y)), rows)
            judge(y[out], p[out, best])

    return run


def curves(rounds: int, n: int, c: int, draws: int) -> list[Row]:
    """ROC, calibration and decision curve of the winner, 99 or 101 points each."""
    from sklearn.metrics import roc_curve
    from statsmodels.nonparametric.smoothers_lowess import lowess

    cube, how = make_cube(n, c, 1), {"by": "brier", "times": draws, "rng": 1}

    def roc(y: np.ndarray, p: np.ndarray) -> None:
        false, true, _ = roc_curve(y, p)
        np.interp(GRID, false, true)

    def benefit(y: np.ndarray, p: np.ndarray) -> None:
        for at in GRID[1:-1]:
            np.mean((p > at) & (y == 1)) - at / (1 - at) * np.mean((p > at) & (y == 0))

    jobs = {
        "ROC curve": (cs.roc_curve, "scikit-learn loop", roc),
        "calibration curve": (
            cs.calibration_curve,
            "statsmodels lowess loop",
            lambda y, p: lowess(y, p, it=0, xvals=GRID),
        ),
        "decision curve": (cs.decision_curve, "numpy loop", benefit),
    }
    found = []
    for name, (compute, against, judge) in jobs.items():
        calls = {"ours": lambda compute=compute: compute(cube, **how), "loop": chosen_loop(cube, FEW, judge)}
        seconds = interleaved(calls, rounds)  # type: ignore[arg-type]
        ratio = seconds["loop"] * draws / FEW / seconds["ours"]
        note = f"curves: loop over {FEW} draws without anchor and limits, scaled by {draws // FEW}"
        found.append(Row(f"{name}, N={n}, C={c}, {draws} draws", against, ratio, 0.5, True, seconds["ours"], note))
    return found


def subgroups(rounds: int, n: int, c: int) -> list[Row]:
    """One choice judged in five subgroups; fairlearn's bootstrap, where it is installed, has nothing to choose."""
    g = np.random.default_rng(2)
    cube = make_cube(n, c, 1).assign_coords(site=("sample", g.integers(0, 5, n)))
    calls = {
        "ours": lambda: cs.winner(cube, "brier", subgroup="site", times=TIMES, rng=1),
        "plain": lambda: cs.winner(cube, "brier", times=TIMES, rng=1),
    }
    seconds = interleaved(calls, rounds)
    ratio, ours = seconds["ours"] / seconds["plain"], seconds["ours"]
    made = [Row(f"five subgroups, N={n}, C={c}", "one `winner` call", ratio, 6.0, False, ours)]
    try:
        from fairlearn.metrics import MetricFrame
    except ImportError:
        return made
    fixed = cube.isel(configuration=0)
    given = {"y_true": fixed["label"].values, "y_pred": fixed.values, "sensitive_features": fixed["site"].values}
    few = TIMES // 50
    how = {"n_boot": few, "ci_quantiles": [0.025, 0.975], "random_state": 1}
    call = {"theirs": lambda: MetricFrame(metrics=lambda y, p: ((y - p) ** 2).mean(), **given, **how)}
    ratio = interleaved(call, 1)["theirs"] * TIMES / few / ours
    note = f"fairlearn: one fixed configuration, measured on {few} draws, scaled by {TIMES // few}"
    return [*made, Row(f"five subgroups, N={n}, C={c}", "fairlearn's bootstrap", ratio, 10.0, True, ours, note)]


def threshold(rounds: int, n: int) -> list[Row]:
    """Time the threshold of one configuration, chosen again in every draw, against R's cutpointr."""
    cube = make_cube(n, 1, 1)
    call = {"ours": lambda: cs.bbc(cube, "balanced_accuracy", adjust=cs.cut("youden"), times=TIMES, rng=1)}
    ours = interleaved(call, rounds)["ours"]
    code = (
        f"suppressMessages(library(cutpointr)); y <- rbinom({n}, 1, .5);"
        f"d <- data.frame(y = y, p = runif({n}) + .3 * y);"
        "t <- system.time(suppressMessages(cutpointr(d, p, y, method = maximize_metric, metric = youden, pos_class = 1,"
        f"direction = '>=', boot_runs = {TIMES // 10})))[1:2]; cat(10 * sum(t))"
    )
    seconds = r_seconds(code)
    note = f"cutpointr measured on {TIMES // 10} draws, scaled by 10"
    job = f"threshold of one configuration, N={n}"
    return [] if seconds is None else [Row(job, "R cutpointr", seconds / ours, 10.0, True, ours, note)]


def r_seconds(code: str) -> float | None:
    """Return the number that R prints, or None where R or a package is missing."""
    if shutil.which("Rscript") is None:
        return None
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 and done.stdout else None


def separate(rounds: int) -> list[Row]:
    """AUC of pairs under the model that left both out, where classes were sampled separately."""
    cube = cs.example_cube("breast_cancer_separate")
    names = {"ours": "auc", "plain": "balanced_accuracy"}
    calls = {key: lambda name=name: cs.bbc(cube, name, times=TIMES, rng=1) for key, name in names.items()}
    seconds = interleaved(calls, rounds)
    ratio = seconds["ours"] / seconds["plain"]
    return [Row("same-model AUC, separate sampling, example", "balanced accuracy", ratio, 20.0, False, seconds["ours"])]


def fold_scores(rounds: int, c: int = 610) -> list[Row]:
    """BBC from the scores of ten folds against a loop over draws."""
    values = np.random.default_rng(1).random((c, 10))
    scores = xr.DataArray(values, dims=("configuration", "fold"))

    def loop() -> None:
        g = np.random.default_rng(1)
        for _ in range(TIMES):
            rows = g.integers(0, 10, 10)
            best = values[:, rows].mean(axis=1).argmax()
            values[best, np.setdiff1d(np.arange(10), rows)].mean()

    calls = {"ours": lambda: cs.bbc_folds(scores, direction="maximize", times=TIMES, rng=1), "loop": loop}
    seconds = interleaved(calls, 2 * rounds)
    return [
        Row(
            f"BBC of ten fold scores, C={c}",
            "numpy loop",
            seconds["loop"] / seconds["ours"],
            1.0,
            True,
            seconds["ours"],
        )
    ]


def recording(rounds: int) -> list[Row]:
    """Time a search that records its predictions against the same search."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    from cvstats.sklearn import record

    x, y = make_classification(400, 20, n_informative=6, random_state=1)
    cv = StratifiedKFold(5, shuffle=True, random_state=1)
    grid = {"C": np.logspace(-2, 3, 8), "gamma": np.logspace(-4, 0, 5)}

    def recorded() -> None:
        with tempfile.TemporaryDirectory() as folder:
            scorer = record(f"{folder}/search", "roc_auc", x, y, cv)
            GridSearchCV(SVC(), grid, scoring=scorer, cv=cv, refit=False).fit(x, y)

    calls = {
        "ours": recorded,
        "plain": lambda: GridSearchCV(SVC(), grid, scoring="roc_auc", cv=cv, refit=False).fit(x, y),
    }
    seconds = interleaved(calls, max(1, rounds // 2))
    job = "grid search of 40 candidates, recorded"
    return [Row(job, "the search alone", seconds["ours"] / seconds["plain"], 1.1, False, seconds["ours"])]
