"""The study's kernel against the package, and what a calibrated interval costs."""

from __future__ import annotations

import time

import numpy as np
import xarray as xr

import cvstats as cs

from . import kernel, replay
from .designs import DESIGNS
from .refit import cross_validate, deal


def check(repetitions: int = 3) -> None:
    """Raise unless the kernel gives the package's numbers on the same draws."""
    compared = 0
    for design in [each for each in DESIGNS if each.repeats == 1 and not each.inner]:
        for number in range(repetitions):
            rng = np.random.default_rng(number)
            X, y, _, _ = design.source(design.n, rng)
            predictions = cross_validate(design, X, y, deal(y, design.folds, rng))
            kind = "value" if y.dtype.kind == "f" else "probability"
            cube = cs.as_cube(predictions, y, kind=kind)
            if "concordance" in design.metrics:
                cube = cube.assign_coords(event=("sample", np.ones(len(y), int)))
            for metric in design.metrics:
                compared += _compare(metric, predictions, y, cube, rng)
    print(f"{compared} estimates and intervals agree with cvstats")


def _compare(metric: str, predictions: np.ndarray, y: np.ndarray, cube: xr.DataArray, rng: np.random.Generator) -> int:
    counts = kernel.draw_counts(len(y), 60, rng, y if metric == "auc" else None)
    machine = kernel.machine_of(metric, predictions, y)
    if metric not in (
        "accuracy",
        "auc",
        "concordance",
    ):  # real losses that differ in the last bits only: either choice is right
        best_two = np.sort(kernel.SIGN[metric] * machine.in_bag(counts), axis=1)[:, -2:]
        if (np.diff(best_two, axis=1) < 1e-9).any():
            return 0
    found = kernel.outcome(machine, metric, counts, rng)
    draws = xr.DataArray(counts.astype(int), dims=("draw", "sample"), coords={"sample": cube["sample"].values})
    paper = cs.bbc(cube, metric, draws=draws, rng=1)
    theirs = [float(paper[name]) for name in ("estimate", "conf_low", "conf_high", "bound_low", "bound_high")]
    np.testing.assert_allclose(found.first, theirs, atol=1e-6)
    assert int(paper["selected"]) == found.selected
    # ties apart, the calibrated interval of the records is that of the package
    record = {f"{metric}/{name}": np.asarray(getattr(found, name))[None] for name in ("naive", "scores", "variance")}
    record |= {f"{metric}/wins": np.round(paper["win_rate"].values * 60).astype(int)[None]}
    record |= {f"{metric}/values": np.zeros((1, 60)), f"{metric}/smallest": np.array([len(y)])}
    record |= {f"{metric}/{name}": np.array([float(paper["estimate"])]) for name in ("bbc", "estimate")}
    if metric in ("log_loss", "brier"):
        record |= {"accuracy/scores": cs.score(cube, "accuracy").values[None]}
    mine = cs.calibrated().limits(next(replay.evidences(record, metric, len(y))), 0.95)
    same = cs.bbc(cube, metric, draws=draws, interval="calibrated", rng=1)
    np.testing.assert_allclose(mine[:2], [float(same["conf_low"]), float(same["conf_high"])], atol=1e-6)
    return 2


def cost(rounds: int = 15) -> dict[str, float]:
    """Return and print the time of a calibrated interval as a multiple of a percentile one, contenders interleaved."""
    ratios = {}
    for name, n, c, metric in (
        ("small", 100, 100, "accuracy"),
        ("large", 500, 600, "accuracy"),
        ("auc", 200, 40, "auc"),
    ):
        rng = np.random.default_rng(1)
        labels = np.arange(n) % 2
        cube = cs.as_cube(1 / (1 + np.exp(-rng.normal(size=(n, c)) - labels[:, None])), labels, kind="probability")
        times: dict[str, list[float]] = {"percentile": [], "calibrated": []}
        for turn in range(rounds + 1):
            for interval, spent in times.items():
                begin = time.process_time()
                cs.bbc(cube, metric, interval=interval, times=1000, rng=turn)
                spent.append(time.process_time() - begin)
        ratios[name] = float(np.median(times["calibrated"][1:]) / np.median(times["percentile"][1:]))
        print(f"{name}: N = {n}, C = {c}, {metric}: calibrated / percentile = {ratios[name]:.3f}")
    return ratios
