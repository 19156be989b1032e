"""Whether the corrected ROC curve is nearer the truth than the one as it looks, where the truth is known.

Fixed scores: negatives are normal, positives are shifted by d (and have a standard deviation of their own in the
design "shapes"); part of the noise is shared by all configurations. Refitted models: linear discriminants with a ridge
on random subsets of twelve variables, of which four matter, in five folds; the truth is that of the selected one,
refitted on all samples. The winner is chosen by AUC. Run ``python benchmarks/roc_error.py [REPETITIONS] [DESIGN ...]``;
it prints the table of docs/caveats.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.stats import norm

import cvstats as cs

GRID = np.arange(101) / 100
SHOWN = [1, 2, 5, 10, 20, 30, 50, 70, 80, 90, 95, 97, 99]
Made = tuple[np.ndarray, np.ndarray, Callable[[int], np.ndarray]]  # labels, scores, the true curve of a configuration


def fixed(g: np.random.Generator, n: int, m: int, share: float, shift: tuple[float, float], shared: float) -> Made:
    """Return scores of fixed models whose ROC curves have one shape."""
    y, d = _labels(n, share), g.uniform(*shift, m)
    p = y[:, None] * d + _noise(g, n, m, shared)
    return y, p, lambda j: norm.cdf(d[j] + norm.ppf(GRID))


def shapes(g: np.random.Generator, n: int, m: int) -> Made:
    """Return scores of fixed models whose ROC curves cross: the spread of positives differs from .6 to 2."""
    y, d, s = _labels(n, 0.5), g.uniform(0.5, 1.5, m), g.uniform(0.6, 2, m)
    noise = _noise(g, n, m, 0.5)
    return y, np.where(y[:, None] == 1, d + s * noise, noise), lambda j: norm.cdf((d[j] + norm.ppf(GRID)) / s[j])


def refitted(g: np.random.Generator, n: int, m: int) -> Made:
    """Return out-of-fold scores of linear discriminants, which differ in their variables and their ridge."""
    y, apart = _labels(n, 0.4), np.where(np.arange(12) < 4, 0.5, 0.0)
    x = g.normal(size=(n, 12)) + y[:, None] * apart
    fold = cs.kfold(y, 5, rng=g).values[:, 0]
    subsets = [np.flatnonzero((g.random(12) < 0.5) | (np.arange(12) == j % 12)) for j in range(m)]  # none is empty
    ridge = 10 ** g.uniform(-2, 1, m)

    def fit(rows: np.ndarray, j: int) -> tuple[np.ndarray, float]:
        a, b = x[rows][:, subsets[j]], y[rows]
        means = np.array([a[b == k].mean(axis=0) for k in (0, 1)])
        rest = a - means[b]
        slope = np.linalg.solve(rest.T @ rest / len(b) + ridge[j] * np.eye(a.shape[1]), means[1] - means[0])
        return slope, float(means.sum(axis=0) @ slope / 2)

    p = np.empty((n, m))
    for k in range(5):
        for j in range(m):
            slope, middle = fit(fold != k, j)
            p[fold == k, j] = x[fold == k][:, subsets[j]] @ slope - middle

    def truth(j: int) -> np.ndarray:
        slope, _ = fit(np.full(n, True), j)
        return norm.cdf(slope @ apart[subsets[j]] / np.linalg.norm(slope) + norm.ppf(GRID))

    return y, p, truth


DESIGNS: dict[str, tuple[str, Callable[[np.random.Generator], Made]]] = {
    "good": ("N = 100, C = 30, d in (.6, 1.2)", partial(fixed, n=100, m=30, share=0.4, shift=(0.6, 1.2), shared=0.6)),
    "weak": ("N = 60, C = 50, d in (.3, .7)", partial(fixed, n=60, m=50, share=0.4, shift=(0.3, 0.7), shared=0.6)),
    "same": ("N = 100, C = 30, d = 1", partial(fixed, n=100, m=30, share=0.3, shift=(1.0, 1.0), shared=0.6)),
    "none": ("N = 60, C = 50, d = 0", partial(fixed, n=60, m=50, share=0.4, shift=(0.0, 0.0), shared=0.5)),
    "large": ("N = 200, C = 10, d in (.5, 1.5)", partial(fixed, n=200, m=10, share=0.2, shift=(0.5, 1.5), shared=0.8)),
    "shapes": ("N = 80, C = 20, curves that cross", partial(shapes, n=80, m=20)),
    "refitted": ("N = 100, C = 20, refitted", partial(refitted, n=100, m=20)),
}


def _labels(n: int, share: float) -> np.ndarray:
    return (np.arange(n) < share * n).astype(int)


def _noise(g: np.random.Generator, n: int, m: int, shared: float) -> np.ndarray:
    return np.asarray(shared**0.5 * g.normal(size=(n, 1)) + (1 - shared) ** 0.5 * g.normal(size=(n, m)))


def run(design: str, repetitions: int, times: int = 100) -> dict[str, np.ndarray]:
    """Return errors (repetition, rate) of the naive and the corrected curve, and whether limits and band held."""
    out: dict[str, list[np.ndarray]] = {name: [] for name in ("naive", "corrected", "covered", "band")}
    for seed in range(repetitions):
        y, p, truth_of = DESIGNS[design][1](np.random.default_rng([seed, len(design)]))
        curve = cs.roc_curve(cs.as_cube(p, y, kind="score"), times=times, rng=seed)
        truth = truth_of(int(curve.selected))
        out["naive"].append(curve.naive.values - truth)
        out["corrected"].append(curve.estimate.values - truth)
        for name, pair in {"covered": ("conf_low", "conf_high"), "band": ("band_low", "band_high")}.items():
            low, high = (curve[end].values for end in pair)
            out[name].append((low <= truth + 1e-12) & (truth <= high + 1e-12))
    return {name: np.array(values) for name, values in out.items()}


def together(every: Sequence[dict[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return, at the rates between 0 and 1, how much further the corrected curve is from the truth, and its error.

    Means over all data sets, each design with the same weight; below 0 the corrected curve is nearer.
    """
    gaps = [(np.abs(found["corrected"]) - np.abs(found["naive"]))[:, 1:100] for found in every]
    squares = [gap.var(axis=0, ddof=1) / len(gap) for gap in gaps]
    mean = np.mean([gap.mean(axis=0) for gap in gaps], axis=0)
    return mean, np.sqrt(np.sum(squares, axis=0)) / len(gaps)


def rows(name: str, every: Sequence[dict[str, np.ndarray]]) -> None:
    """Print the two rows of the table for a design, or for several together."""
    mean, error = together(every)
    further = f"{(mean > 0).sum()}, by at most {mean.max():.4f}, {(mean > 2 * error).sum()} beyond 2 s.e."
    if (mean < 0).all():
        further = f"0, nearer by at least {np.min(-mean / error):.1f} s.e."
    for kind in ("naive", "corrected"):
        away = np.mean([np.abs(found[kind]).mean(axis=0) for found in every], axis=0)
        cells = [f"{value:.3f}"[1:] for value in (*away[SHOWN], away.mean())]
        first, last = (name, "|") if kind == "naive" else ("", f"{further} |")
        print("|", first, "|", kind, "|", " | ".join(cells), "|", last)
    square = [np.mean([(found[kind] ** 2).mean(axis=0) for found in every], axis=0) for kind in ("naive", "corrected")]
    bias = [f"{np.mean([found[kind].mean() for found in every]):+.4f}" for kind in ("naive", "corrected")]
    held = np.mean([found["covered"].mean(axis=0) for found in every], axis=0)[SHOWN]
    band = np.mean([found["band"].all(axis=1).mean() for found in every])
    apart = np.flatnonzero(square[1][1:100] > square[0][1:100]) + 1
    print(f"<!-- bias {bias}, limits {held.round(2)}, band {band:.3f}, rmse larger at {apart} -->")


def main(repetitions: int, designs: list[str]) -> None:
    """Print the table."""
    print("| design | |", " | ".join(f"{at / 100:g}"[1:] for at in SHOWN), "| mean | points further |", sep=" ")
    print("|---" * (len(SHOWN) + 4), "|", sep="")
    every = []
    for design in designs:
        every.append(run(design, repetitions))
        rows(DESIGNS[design][0], every[-1:])
    rows("**all data sets**", every)


if __name__ == "__main__":
    warnings.simplefilter("ignore", cs.CvstatsWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:] or list(DESIGNS))
