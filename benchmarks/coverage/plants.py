"""Faults planted on purpose, to see whether the guard notices: each puts faulty methods in the place of right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import cvstats as cs

from . import cells

Method = Callable[..., xr.Dataset]


def moved(method: str, by: float) -> dict[str, Method]:
    """Return a method whose estimate is off by a constant."""
    right = cells.METHODS[method]

    def faulty(*given: Any) -> xr.Dataset:
        found = right(*given)
        return found.assign(estimate=found["estimate"] + by)

    return {method: faulty}


def narrowed(method: str, factor: float) -> dict[str, Method]:
    """Return a method whose interval is too narrow."""
    right = cells.METHODS[method]

    def faulty(*given: Any) -> xr.Dataset:
        found = right(*given)
        middle, half = (found["conf_low"] + found["conf_high"]) / 2, (found["conf_high"] - found["conf_low"]) / 2
        return found.assign(conf_low=middle - factor * half, conf_high=middle + factor * half)

    return {method: faulty}


def in_bag() -> dict[str, Method]:
    """Return a BBC that judges the winner of a draw on the samples that chose it (for predicted labels)."""
    right = cells.METHODS["bbc"]

    def faulty(cube: xr.DataArray, inner: Any, metric: str, seed: int) -> xr.Dataset:
        found = right(cube, inner, metric, seed)
        if metric != "accuracy" or "group" in cube.coords:
            return found
        hit = (cube == cube["label"]).transpose("sample", "configuration", ...).values
        hit = hit.reshape(*hit.shape[:2], -1).mean(axis=2)
        n = len(hit)
        draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=200)
        estimate = float((draws @ hit / n).max(axis=1).mean())
        return found.assign(estimate=found["estimate"] * 0 + estimate)

    return {"bbc": faulty}


def uncorrected(method: str) -> dict[str, Method]:
    """Return a method that is no more than the tuned score."""
    return {method: cells.METHODS["cvt"]}


def prior_ignored() -> dict[str, Method]:
    """Return a separate-sampling estimate that takes the shares in the sample for the prior."""
    right = cells.METHODS["separate_cv"]

    def faulty(cube: xr.DataArray, prior: Any, seed: int) -> xr.Dataset:
        return right(cube, {0: float((cube["label"] == 0).mean())}, seed)

    return {"separate_cv": faulty}


def ties_won() -> dict[str, Method]:
    """Return methods whose AUC counts a tie as a win."""

    def faulty(right: Method) -> Method:
        def method(cube: xr.DataArray, inner: Any, metric: str, seed: int) -> xr.Dataset:
            if metric == "auc":
                cube = cube.copy(data=cube.values + 1e-9 * (cube["label"].values[:, None] == 1))
            return right(cube, inner, metric, seed)

        return method

    return {name: faulty(cells.METHODS[name]) for name in ("cvt", "bbc", "winner", "delong")}


def independent_repeats() -> dict[str, Method]:
    """Return a BBC that takes repeats for samples of their own."""
    right = cells.METHODS["bbc"]

    def faulty(cube: xr.DataArray, inner: Any, metric: str, seed: int) -> xr.Dataset:
        if "repeat" not in cube.dims:
            return right(cube, inner, metric, seed)
        rows = cube.transpose("sample", "repeat", "configuration").values
        label = np.repeat(cube["label"].values, cube.sizes["repeat"])
        flat = cs.as_cube(rows.reshape(-1, rows.shape[2]), label, kind="label")
        return right(flat, inner, metric, seed)

    return {"bbc": faulty}


def few_for_many() -> dict[str, Method]:
    """Return a winner that takes the constant of many configurations for one, too."""
    right = cells.METHODS["winner"]

    def faulty(cube: xr.DataArray, inner: Any, metric: str, seed: int) -> xr.Dataset:
        if cube.sizes["configuration"] > 1:
            return right(cube, inner, metric, seed)
        return cs.winner(cube, metric, times=200, rng=seed, interval=cs.calibrated(kappa=1.25))

    return {"winner": faulty}


def groups_ignored() -> dict[str, Method]:
    """Return a winner that does not know of groups."""
    right = cells.METHODS["winner"]
    return {"winner": lambda cube, *given: right(cube.drop_vars("group", errors="ignore"), *given)}


def smaller_p(method: str, factor: float) -> dict[str, Method]:
    """Return a test whose p-values are too small."""
    right = cells.METHODS[method]

    def faulty(*given: Any) -> xr.Dataset:
        found = right(*given)
        return found.assign(p_value=found["p_value"] * factor)

    return {method: faulty}


# What is wrong, how to plant it, and one design (part of its name) that must notice.
PLANTS: dict[str, tuple[Callable[[], dict[str, Method]], str]] = {
    "bbc: winner judged on in-bag samples": (in_bag, "Beta(54, 6)"),
    "bbc: estimate .01 too high": (lambda: moved("bbc", 0.01), "N = 500"),
    "bbc: estimate .005 too high": (lambda: moved("bbc", 0.005), "N = 500"),
    "bbc: repeats taken for samples": (independent_repeats, "3 repeats"),
    "winner: interval 5 % too narrow": (lambda: narrowed("winner", 0.95), "Beta(54, 6)"),
    "winner: interval 2 % too narrow": (lambda: narrowed("winner", 0.98), "Beta(54, 6)"),
    "tt: no correction": (lambda: uncorrected("tt"), "N = 500"),
    "ncv: selects on all samples": (lambda: uncorrected("ncv"), "refitted"),
    "auc: a tie counts as a win": (ties_won, "AUC with ties, N = 60, C = 1"),
    "separate_cv: prior ignored": (prior_ignored, "r = .15"),
    "separate_cv: interval 10 % too narrow": (lambda: narrowed("separate_cv", 0.9), "r = .15"),
    "winner: constant of many configurations for one": (few_for_many, "strange: one configuration"),
    "winner: groups ignored": (groups_ignored, "strange: groups"),
    "contrast: p-values a third": (lambda: smaller_p("contrast", 1 / 3), "equally good"),
}
