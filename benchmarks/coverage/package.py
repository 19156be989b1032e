"""Whole-package cells through `cvstats.coverage`: groups, repeats, hold-out, double bootstrap. Slow, so few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import cvstats as cs

Simulator = Callable[[np.random.Generator], Any]


def fixed(n: int, c: int, beta: tuple[float, float] = (9, 6), **options: object) -> Simulator:
    """Return a simulator of fixed models."""
    return lambda rng: cs.simulate_cube(n, c, beta=beta, rng=rng, **options)  # type: ignore[call-overload,no-any-return]


def grouped(groups: int, size: int, c: int, share: float = 0.7, known: bool = True) -> Simulator:
    """Return a simulator in which samples of a group share most of their luck; the groups may be kept secret."""

    def simulator(rng: np.random.Generator) -> xr.DataArray:
        from scipy.special import ndtri

        n = groups * size
        truth = rng.beta(9, 6, c)
        common = np.repeat(rng.normal(size=(groups, c)), size, axis=0)
        luck = np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=(n, c))
        label = np.tile([0, 1], n)[:n]
        right = luck < ndtri(truth)
        cube = cs.as_cube(
            np.where(right, label[:, None], 1 - label[:, None]),
            label,
            groups=np.repeat(np.arange(groups), size) if known else None,
            kind="label",
        )
        return cube.assign_coords(truth=("configuration", truth))

    return simulator


def refitted(key: str) -> Callable[[np.random.Generator], tuple[xr.DataArray, xr.DataArray]]:
    """Return a simulator of a design with refitted learners; the truth is the accuracy on new cases."""
    from .designs import DESIGNS
    from .learners import predict_all
    from .refit import cross_validate, deal

    design = next(each for each in DESIGNS if each.key == key)

    def simulator(rng: np.random.Generator) -> tuple[xr.DataArray, xr.DataArray]:
        X, y, Z, t = design.source(design.n, rng)
        fold = deal(y, design.folds, rng)
        cube = cs.as_cube(cross_validate(design, X, y, fold), y, folds=fold, kind="probability")
        right = (predict_all(design.families, X, y, Z) > 0.5) == (t[:, None] == 1)
        names = {"configuration": cube["configuration"].values}
        return cube, xr.DataArray(right.mean(axis=0), dims="configuration", coords=names)

    return simulator


def _winner(**options: object) -> Callable[..., xr.Dataset]:
    def method(cube: xr.DataArray, rng: np.random.Generator) -> xr.Dataset:
        return cs.winner(cube, "accuracy", times=300, rng=rng, **options)  # type: ignore[arg-type]

    return method


def _bbc(cube: xr.DataArray, rng: np.random.Generator) -> xr.Dataset:
    return cs.bbc(cube, "accuracy", times=300, rng=rng)


DOUBLE = cs.double_bootstrap(outer=200, inner=30)
CELLS: dict[str, tuple[Simulator, Callable[..., xr.Dataset], int]] = {
    "groups 30 x 5, known": (grouped(30, 5, 20), _winner(), 400),
    "groups 30 x 5, ignored": (grouped(30, 5, 20, known=False), _winner(), 400),
    "groups 60 x 3, known": (grouped(60, 3, 50), _winner(), 400),
    "repeats 1, N = 60": (fixed(60, 50), _winner(), 400),
    "repeats 3, N = 60": (fixed(60, 50, repeats=3), _winner(), 300),
    "repeats 5, N = 60": (fixed(60, 50, repeats=5), _winner(), 200),
    "hold-out regime, N = 100": (fixed(100, 100, folds=1), _winner(regime="holdout"), 400),
    "hold-out regime, N = 40, Beta(54, 6)": (fixed(40, 100, (54, 6), folds=1), _winner(regime="holdout"), 400),
    "paper's percentile, N = 40, Beta(54, 6)": (fixed(40, 100, (54, 6)), _bbc, 400),
    "double bootstrap, N = 40": (fixed(40, 20), _winner(interval=DOUBLE), 200),
    "double bootstrap, N = 40, Beta(54, 6)": (fixed(40, 20, (54, 6)), _winner(interval=DOUBLE), 200),
    "double bootstrap, circle, N = 60": (refitted("held_out-circle-n60-k5"), _winner(interval=DOUBLE), 150),
    "double bootstrap, mixture, N = 30": (refitted("held_out-mixture-n30-k10"), _winner(interval=DOUBLE), 150),
    "calibrated, N = 40": (fixed(40, 20), _winner(), 400),
    "calibrated, N = 40, Beta(54, 6)": (fixed(40, 20, (54, 6)), _winner(), 400),
}


def run(results: Path, reduced: bool, only: str) -> None:
    """Run the cells that are missing and append each to the tidy file."""
    import pandas as pd
    from tqdm import tqdm

    path = results / "coverage_package.csv"
    done = set(pd.read_csv(path)["cell"]) if path.exists() else set()
    with tqdm([name for name in CELLS if name not in done and only in name]) as bar:
        for name in bar:
            bar.set_description(name)
            simulator, method, repetitions = CELLS[name]
            study = cs.coverage(simulator, method, repetitions=50 if reduced else repetitions, rng=20240501)
            row: dict[str, object] = {"cell": name}
            row |= {key: str(study[key].item()) for key in ("method", "metric", "interval")}
            row["repetitions"] = int(study["n_interval"])
            for key in ("coverage", "coverage_std_error", "coverage_low", "coverage_high", "bias", "rmse", "width"):
                row[key] = round(float(study[key]), 5)
            pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)
