"""How often the limits of `separate_cv`, and of `bbc` and `winner` by `prior_error`, hold where the truth is known.

Linear discriminants of three Gaussian features, classes sampled separately, five folds of each; the truth is exact.
Run ``python benchmarks/separate_coverage.py``; it prints the two tables of docs/caveats.md.
"""

from __future__ import annotations

import sys

import numpy as np

import cvstats as cs

ONE = [(80, 0.15, 0.5, 3), (80, 0.7, 0.1, 3), (40, 0.5, 0.02, 3), (80, 0.5, 0.02, 4)]  # n, ratio, prior, distance
BEST = [(40, 0.5, 0.5, 3), (80, 0.5, 0.02, 3), (80, 0.7, 0.1, 3)]
SHRINKAGE = (0, 0.03, 0.1, 0.3, 1, 3)
TIMES = 200
Limits = dict[str, tuple[float, float]]


def percentiles(cube, prior: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return plain percentile limits of the estimate, samples drawn within classes."""
    wrong = ((cube > 0) != (cube["label"] == 1)).mean(["partner", "configuration"])
    weight = cs.bootstrap(cube, TIMES, strata="label", rng=rng).transpose(..., "sample")
    errors = [(weight * wrong * part).sum("sample") / (weight * part).sum("sample") for part in _classes(cube)]
    low, high = np.quantile(prior * errors[0] + (1 - prior) * errors[1], [0.025, 0.975])
    return float(low), float(high)


def _classes(cube):
    return [(cube["label"] == name).astype(float) for name in (0, 1)]


def limits(out) -> tuple[float, float]:
    return float(out["conf_low"].squeeze()), float(out["conf_high"].squeeze())


def one(n: int, ratio: float, prior: float, distance: float, rng: np.random.Generator) -> tuple[float, Limits]:
    """Return the true error of one rule, and limits of its estimate."""
    cube, _ = cs.separate_gaussian(n, ratio=ratio, prior=prior, distance=distance, rng=rng)
    found = cs.separate_cv(cube, prior={0: prior}, times=TIMES, rng=rng)
    return float(cube["truth"].squeeze()), {"separate_cv": limits(found), "percentiles": percentiles(cube, prior, rng)}


def best(n: int, ratio: float, prior: float, distance: float, rng: np.random.Generator) -> tuple[float, Limits]:
    """Return the true error of the best of six rules, and limits of its estimates."""
    cube, _ = cs.separate_gaussian(
        n, ratio=ratio, prior=prior, distance=distance, shrinkage=SHRINKAGE, repeats=1, rng=rng
    )
    metric = cs.prior_error({0: prior})
    reports = {
        name: method(cube, metric, times=TIMES, rng=rng) for name, method in (("winner", cs.winner), ("bbc", cs.bbc))
    }
    picked = reports["winner"]["selected"].item()
    every = cs.separate_cv(cube, prior={0: prior}, times=TIMES, rng=rng)
    reports["separate_cv of the winner"] = every.sel(configuration=picked)
    return float(cube["truth"].sel(configuration=picked)), {name: limits(out) for name, out in reports.items()}


def table(study, cells: list[tuple[int, float, float, float]], times: int) -> None:
    """Print coverage and mean width of every method in every cell."""
    for cell in cells:
        rng = np.random.default_rng([int(1000 * number) for number in cell])
        found = [study(*cell, rng) for _ in range(times)]
        words = []
        for name in found[0][1]:
            ends = np.array([one[name] for _, one in found])
            truth = np.array([right for right, _ in found])
            inside = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
            words += [f"{name} {inside:.3f}", f"{(ends[:, 1] - ends[:, 0]).mean():.3f}"]
        print(f"| {', '.join(f'{number:g}' for number in cell)} | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| n, share of class 0 in the sample, in the population, distance | coverage | width | ... |")
    table(one, ONE, 2 * many)
    table(best, BEST, many)
