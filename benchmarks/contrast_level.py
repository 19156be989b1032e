"""Whether `contrast` holds its level for methods: two learners, refitted in every fold, of equal expected performance.

Both learners see features of their own that are exchangeable with the other's (or common signals and noise of their
own, or are the same learner with randomness of its own), so that neither is better, whatever the metric. The same
cells with noise added to the features of b (1 and 3 of their standard deviations) give power, and how often limits
cover the true difference: that of the methods (the mean over training sets) and that of the two models refitted on all
samples, both on 1000 new cases. Cells of the tuning half decided the rule, the others check it.

Variances over draws are taken in closed form (the infinitesimal jackknife: for AUC DeLong's), because a thousand draws
for each of a million contrasts would take days; ``check`` compares them with `contrast` itself.

``python benchmarks/contrast_level.py`` prints the tables of docs/comparing.md: ``tuning``, ``validation``, ``check``,
``families`` or ``largest``, then the number of data sets a cell.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit
from scipy.stats import rankdata

import cvstats as cs
from cvstats.compare.contrasts import TRAINING

NEW = 1000
Learner = Callable[..., np.ndarray]

# learners: trained on the rows of x that `used` (fit, sample) marks, what every fit predicts for the rows of z


def _moments(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = weight @ x / weight.sum(1, keepdims=True)
    return mean, np.maximum(weight @ x**2 / weight.sum(1, keepdims=True) - mean**2, 1e-9)


def bayes(
    x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, common: bool = False, **_: object
) -> np.ndarray:
    """Gaussian naive Bayes; with `common` variances nearest class means on scaled features."""
    (one, wide), (zero, narrow) = (_moments(x, used * (y == c)) for c in (1, 0))
    if common:
        wide = narrow = (wide + narrow) / 2
    out = np.log(used @ y + 0.5) - np.log(used @ (1 - y) + 0.5)
    parts = [(z[None] - m[:, None]) ** 2 / v[:, None] + np.log(v[:, None]) for m, v in ((one, wide), (zero, narrow))]
    return expit(out[:, None] + (parts[1] - parts[0]).sum(2) / 2)


def ridge(
    x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, penalty: float = 1.0, link: bool = True, **_: object
) -> np.ndarray:
    """Ridge logistic regression by Newton's steps, or ridge regression of a number."""
    x, z = (np.column_stack([np.ones(len(part)), part]) for part in (x, z))
    beta, prior = np.zeros((len(used), x.shape[1])), np.full(x.shape[1], penalty)
    prior[0] = 1e-6
    for _step in range(7 if link else 1):
        p = expit(beta @ x.T) if link else beta @ x.T
        slope = used * (p * (1 - p) + 1e-6 if link else 1.0)
        slopes = (x.T[None] * slope[:, None]) @ x + np.diag(prior)
        beta = beta + np.linalg.solve(slopes, ((used * (y - p)) @ x - beta * prior)[..., None])[..., 0]
    return expit(beta @ z.T) if link else beta @ z.T


def smooth(
    x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, width: float = 0.5, penalty: float = 1.0, **_: object
) -> np.ndarray:
    """Kernel ridge regression (Gaussian kernel of the given width per feature; 0: linear)."""

    def kernel(a: np.ndarray) -> np.ndarray:
        if not width:
            return a @ x.T / np.sqrt(x.shape[1])
        return np.exp(-((a**2).sum(1)[:, None] + (x**2).sum(1) - 2 * a @ x.T) * width / x.shape[1])

    mean = (used @ y) / used.sum(1)
    inside = kernel(x)[None] * used[:, None] * used[:, :, None] + penalty * np.eye(len(x))
    alpha = np.linalg.solve(inside, (used * (y - mean[:, None]))[..., None])[..., 0]
    return mean[:, None] + alpha @ kernel(z).T


def knn(x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, k: int = 7, **_: object) -> np.ndarray:
    """Mean of the k nearest."""
    distance = ((z**2).sum(1)[:, None] + (x**2).sum(1) - 2 * z @ x.T)[None] + np.where(used, 0, 1e9)[:, None]
    near = np.argpartition(distance, k - 1, axis=2)[:, :, :k]
    return (y[near].sum(2) + 0.25) / (k + 0.5)


def stumps(x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, rounds: int = 15, **_: object) -> np.ndarray:
    """Boosted stumps; one round is a single split."""
    cuts = np.quantile(x, np.linspace(0.1, 0.9, 9), axis=0)
    side, new = (np.where((a[:, None] > cuts).reshape(len(a), -1), 1.0, -1.0) for a in (x, z))
    target, weight, out = 2.0 * y - 1, used.astype(float), np.zeros((len(used), len(z)))
    for _round in range(rounds):
        weight = weight / weight.sum(1, keepdims=True)
        edge = (weight * target) @ side
        best = np.abs(edge).argmax(1)
        edge = np.clip(edge[np.arange(len(best)), best], -0.95, 0.95)
        step = np.arctanh(edge)[:, None]
        weight = weight * np.exp(-step * target * side[:, best].T)
        out += step * new[:, best].T
    return expit(2 * out) if rounds > 1 else np.clip(0.5 + edge[:, None] * new[:, best].T / 2, 0, 1)


def screened(x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, kept: int = 5, **_: object) -> np.ndarray:
    """Nearest class means on the features with the largest t, chosen in every fit."""
    (one, v1), (zero, v0) = (_moments(x, used * (y == c)) for c in (1, 0))
    weight = (one - zero) / (v1 + v0) * 2
    size = np.abs(one - zero) / np.sqrt(v1 + v0)
    weight[size < np.sort(size, 1)[:, [-kept]]] = 0
    return expit(weight @ z.T - (weight * (one + zero)).sum(1)[:, None] / 2)


def subspace(
    x: np.ndarray, y: np.ndarray, used: np.ndarray, z: np.ndarray, rng: np.random.Generator, kept: int = 3, **_: object
) -> np.ndarray:
    """Naive Bayes on features that every fit draws anew."""
    out = np.empty((len(used), len(z)))
    for at, row in enumerate(used):
        some = rng.permutation(x.shape[1])[:kept]
        out[at] = bayes(x[:, some], y, row[None], z[:, some])[0]
    return out


# data: the features of a, those of b, and the labels of n cases

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def shifted(
    g: np.random.Generator, n: int, p: int = 5, shift: float = 0.5, rare: float = 0.5, useful: int = 99
) -> Data:
    """Shift normal features by class; the first `useful` of either side."""
    y = (g.permutation(n) < round(rare * n)).astype(float)
    x = g.normal(size=(n, 2, p)) + shift * y[:, None, None] * (np.arange(p) < useful)
    return x[:, 0], x[:, 1], y


def shared(g: np.random.Generator, n: int, p: int = 10, shift: float = 0.7, signals: int = 2) -> Data:
    """Show both the same signals, and noise of their own."""
    y = (g.random(n) < 0.5).astype(float)
    common = g.normal(size=(n, signals)) + shift * y[:, None]
    return np.hstack([common, g.normal(size=(n, p))]), np.hstack([common, g.normal(size=(n, p))]), y


def latent(
    g: np.random.Generator, n: int, p: int = 6, noise: float = 1.0, tails: float = 0.0, number: bool = False
) -> Data:
    """Show one hidden trait in all features and in the outcome."""
    hidden = g.normal(size=n)
    x = hidden[:, None, None] + 1.5 * (g.standard_t(tails, (n, 2, p)) if tails else g.normal(size=(n, 2, p)))
    y = hidden + noise * (g.standard_t(5, n) if tails else g.normal(size=n))
    return x[:, 0], x[:, 1], y if number else (y > 0).astype(float)


def ring(g: np.random.Generator, n: int, p: int = 2, noise: float = 0.5) -> Data:
    """Classes inside and outside a sphere, of which either side sees one half."""
    x = g.normal(size=(n, 2, p))
    y = (x**2).sum((1, 2)) + noise * g.normal(size=n) > 2 * p - 0.6
    return x[:, 0], x[:, 1], y.astype(float)


def crossed(g: np.random.Generator, n: int, p: int = 2, noise: float = 0.5) -> Data:
    """Exclusive or, twice, and features that do not matter."""
    x = g.normal(size=(n, 2, p))
    return x[:, 0], x[:, 1], ((x[..., 0] * x[..., 1]).sum(1) + noise * g.normal(size=n) > 0).astype(float)


def nothing(g: np.random.Generator, n: int, p: int = 5) -> Data:
    """No signal, the same features."""
    x = g.normal(size=(n, p))
    return x, x, (g.permutation(n) < n // 2).astype(float)


def twin(g: np.random.Generator, n: int, p: int = 8, shift: float = 0.5) -> Data:
    """Show both the same features."""
    x, _, y = shifted(g, n, p, shift)
    return x, x, y


def line(
    g: np.random.Generator, n: int, p: int = 5, noise: float = 2.0, tails: float = 0.0, uneven: bool = False
) -> Data:
    """Add up all features and noise to a number."""
    x = g.normal(size=(n, 2, p))
    e = noise * (g.standard_t(tails, n) if tails else g.normal(size=n))
    return x[:, 0], x[:, 1], x.sum((1, 2)) / np.sqrt(p) + e * (np.exp(x[:, :, 0].sum(1) / 2) if uneven else 1)


def waves(g: np.random.Generator, n: int, p: int = 4, noise: float = 0.5) -> Data:
    """Friedman's interaction and square, once for either side."""
    x = g.random((n, 2, p))
    f = 2 * np.sin(np.pi * x[..., 0] * x[..., 1]) + 4 * (x[..., 2] - 0.5) ** 2 + x[..., 3]
    return 3 * x[:, 0], 3 * x[:, 1], f.sum(1) + noise * g.normal(size=n)


class Cell(NamedTuple):
    """A null cell: data, learners of both sides (the same unless given), samples, folds."""

    data: Callable[..., Data]
    a: Learner
    n: int
    folds: int = 5
    b: Learner | None = None
    number: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """By which neither side is better: of different learners without signal, ranks and decisions."""
        decisions = ("accuracy", "auc", "balanced_accuracy")
        return ("mse",) if self.number else decisions if self.b else (*decisions, "log_loss", "brier")


number = partial(ridge, link=False)
TUNING = {
    "shift .5, naive Bayes": Cell(shifted, bayes, 60),
    "shift .3, nearest means": Cell(partial(shifted, shift=0.3), partial(bayes, common=True), 60),
    "shift .3, nearest means, large": Cell(partial(shifted, shift=0.3), partial(bayes, common=True), 200, 10),
    "shift .8, logistic": Cell(partial(shifted, shift=0.8), ridge, 100, 10),
    "shift .5, knn": Cell(partial(shifted, p=3), knn, 40),
    "shift, 1:9, logistic": Cell(partial(shifted, p=4, shift=0.9, rare=0.1), ridge, 150),
    "noise features, logistic": Cell(shared, ridge, 80),
    "noise features, stumps": Cell(partial(shared, p=5), stumps, 100, 10),
    "trait, kernel": Cell(latent, smooth, 60, 10),
    "shift .5, narrow kernel": Cell(partial(shifted, p=4), partial(smooth, width=3.0, penalty=0.3), 60),
    "shift, screened means": Cell(partial(shifted, p=20, shift=0.6, useful=5), screened, 60, 10),
    "p = 60, weak, linear kernel": Cell(partial(shifted, p=60, shift=0.2), partial(smooth, width=0.0), 50),
    "shift .6, three neighbours": Cell(partial(shifted, p=2, shift=0.6), partial(knn, k=3), 40),
    "trait, one stump, small": Cell(latent, partial(stumps, rounds=1), 60),
    "20 noise features, stumps": Cell(partial(shared, p=20), stumps, 60),
    "50 noise features, screened means": Cell(partial(shared, p=50), screened, 60),
    "one useful feature, logistic": Cell(partial(shifted, p=10, shift=1.0, useful=1), ridge, 60, 10),
    "weak trait, naive Bayes": Cell(partial(latent, noise=3.0), bayes, 150),
    "faint, nearest means": Cell(partial(shifted, p=10, shift=0.25), partial(bayes, common=True), 40),
    "faint, nearest means, ten folds": Cell(partial(shifted, p=10, shift=0.25), partial(bayes, common=True), 40, 10),
    "two folds, nearest means": Cell(partial(shifted, shift=0.4), partial(bayes, common=True), 60, 2),
    "five folds, nearest means": Cell(partial(shifted, shift=0.4), partial(bayes, common=True), 60, 5),
    "thirty folds, nearest means": Cell(partial(shifted, shift=0.4), partial(bayes, common=True), 60, 30),
    "linear, ridge": Cell(line, number, 60, number=True),
    "linear, t4, ridge": Cell(partial(line, tails=4.0), number, 100, 10, number=True),
    "waves, kernel": Cell(waves, smooth, 80, number=True),
}
VALIDATION = {
    "ring, knn": Cell(ring, knn, 80, 10),
    "ring, boosted stumps": Cell(ring, stumps, 150),
    "exclusive or, kernel": Cell(crossed, smooth, 100),
    "exclusive or, naive Bayes": Cell(partial(crossed, noise=0.2), bayes, 60, 10),
    "heavy-tailed trait, logistic": Cell(partial(latent, tails=3.0), ridge, 40, 10),
    "trait, one stump": Cell(latent, partial(stumps, rounds=1), 100),
    "trait, large, logistic": Cell(partial(latent, noise=2.0), ridge, 300),
    "p = 100, screened means": Cell(partial(shifted, p=100, shift=0.8, useful=4), screened, 50),
    "p = 100, linear kernel": Cell(partial(shifted, p=100, shift=0.3), partial(smooth, width=0.0), 40),
    "same features, random subspaces": Cell(twin, subspace, 60),
    "no signal, knn and logistic": Cell(nothing, knn, 60, 10, ridge),
    "1:9, noise features, naive Bayes": Cell(partial(shifted, p=8, shift=1.2, rare=0.1, useful=2), bayes, 120, 10),
    "uneven noise, ridge": Cell(partial(line, uneven=True, noise=1.0), number, 80, number=True),
    "trait, number, knn": Cell(partial(latent, number=True), knn, 60, 10, number=True),
    "waves, ridge, large": Cell(waves, number, 200, number=True),
}


def refitted(cell: Cell, g: np.random.Generator, repeats: int, harm: float) -> tuple[np.ndarray, ...]:
    """Return labels, folds and predictions (sample, side, repeat), then labels and predictions of new cases."""
    data = [cell.data(g, n) for n in (cell.n, NEW if harm else 2)]  # without a difference its truth is known
    y, new = data[0][2], data[1][2]
    fold = cs.kfold(y, cell.folds, repeats=repeats, stratified=not cell.number, rng=g).values.T
    used = (fold[:, None] != np.arange(cell.folds)[:, None]).reshape(-1, cell.n)
    out, then = np.empty((cell.n, 2, repeats)), np.empty((len(new), 2))
    for at, learner in enumerate((cell.a, cell.b or cell.a)):
        x, z = data[0][at], data[1][at]
        if harm and at:
            x, z = (part + harm * x.std(0) * g.normal(size=part.shape) for part in (x, z))
        every = learner(x, y, used, x, rng=g).reshape(repeats, cell.folds, cell.n)
        out[:, at] = np.take_along_axis(every, fold[:, None], 1)[:, 0].T
        if harm:
            then[:, at] = learner(x, y, np.ones((1, cell.n), bool), z, rng=g)[0]
    if not cell.number:
        out, then = np.clip(out, 0.005, 0.995), np.clip(then, 0.005, 0.995)
    return y, fold.T, out, new, then


def influence(y: np.ndarray, p: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of every column, and what each sample adds to it; V is the mean square over N - 1."""
    out = np.empty(p.shape)
    if metric == "auc":
        rank = rankdata(p, axis=0)
        for c in (1, 0):
            share = (rank[y == c] - rankdata(p[y == c], axis=0)) / (y != c).sum()
            out[y == c] = share if c else 1 - share
        parts = [out[y == c].mean(0) for c in (0, 1)]
    else:
        right = (p > 0.5) == (y[:, None] > 0)
        out[:] = {
            "log_loss": lambda: -np.log(np.where(y[:, None] > 0, p, 1 - p)),
            "accuracy": lambda: right,
            "balanced_accuracy": lambda: right,
        }.get(metric, lambda: (p - y[:, None]) ** 2)()
        if metric != "balanced_accuracy":
            return out.mean(0), out - out.mean(0)
        parts = [out[y == c].mean(0) for c in (0, 1)]
    for c in (0, 1):
        out[y == c] = (out[y == c] - parts[c]) * len(y) / (y == c).sum() * (1 if metric == "auc" else 0.5)
    return (parts[0] + parts[1]) / 2, out


def study(cell: Cell, times: int, seed: list[int], harm: float = 0.0, repeats: int = 5) -> dict[str, np.ndarray]:
    """Return by metric, for every data set: difference, V and V_1 of one repeat and of all, and the true difference."""
    g, rows = np.random.default_rng(seed), {}
    for _ in range(times):
        y, _fold, out, new, then = refitted(cell, g, repeats, harm)
        for metric in cell.metrics:
            score, each = influence(y, out.reshape(len(y), -1), metric)
            gap, each = np.diff(score.reshape(2, -1), axis=0)[0], np.diff(each.reshape(len(y), 2, -1), axis=1)[:, 0]
            squares = [(part**2).mean(0) / (len(y) - 1) for part in (each, each.mean(1))]
            true = float(np.diff(influence(new, then, metric)[0])[0]) if harm else 0.0
            row = (gap[0], squares[0][0], squares[0][0], gap.mean(), squares[1], squares[0].mean(), true)
            rows.setdefault(metric, []).append(row)
    return {metric: np.array(part) for metric, part in rows.items()}


def rates(found: np.ndarray, n: int, truth: np.ndarray | float, added: float) -> list[float]:
    """Return how often the difference from `truth` is beyond its limits, for one repeat and for all."""
    t = stats.t.ppf(0.975, n - 1)
    parts = found[:, :3], found[:, 3:6]
    return [float((np.abs(gap - truth) > t * np.sqrt(v + added * v1)).mean()) for gap, v, v1 in (p.T for p in parts)]


def tables(cells: dict[str, Cell], times: int, seed: int) -> None:
    """Print sizes, then power and coverage, and their means."""
    for harm in (0.0, 1.0, 3.0):
        head = ["cell", "N, folds", "metric"] + (["difference"] if harm else [])
        head += [f"{word}R = {repeats}" for word in ("plain, ", "") for repeats in (1, 5)]
        head += [f"{word}, R = {repeats}" for word in ("methods", "models") for repeats in (1, 5)] if harm else []
        print("\n" + "| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
        every = []
        for place, (name, cell) in enumerate(cells.items()):
            for metric, found in study(cell, times // (1 + bool(harm)), [seed, place, int(harm)], harm).items():
                true = found[:, 6]
                every.append(rates(found, cell.n, 0.0, 0.0) + rates(found, cell.n, 0.0, TRAINING))
                if harm:
                    missed = [rates(found, cell.n, truth, TRAINING) for truth in (true.mean(), true)]
                    every[-1] += (1 - np.ravel(missed)).tolist()
                known = [f"{-true.mean():+.3f}"] if harm else []
                numbers = [name, f"{cell.n}, {cell.folds}", metric, *known, *(f"{one:.3f}" for one in every[-1])]
                print("| " + " | ".join(numbers) + " |", flush=True)
        for word, of in (("mean", np.mean), ("smallest", np.min), ("largest", np.max)):
            blank = ["", "", ""] if harm else ["", ""]
            print("| " + " | ".join([f"**{word}**", *blank, *(f"{one:.3f}" for one in of(every, axis=0))]) + " |")


def check(times: int) -> None:
    """Print standard errors of `contrast` over those in closed form."""
    for name, cell in (TUNING | VALIDATION).items():
        g, ratio = np.random.default_rng(5), []
        for _ in range(times):
            y, fold, out, _, _ = refitted(cell, g, 5, 0.0)
            kind = {"kind": "value"} if cell.number else {"kind": "probability", "threshold": 0.5}
            cube = cs.as_cube(out, y, folds=fold, configurations=["a", "b"], **kind)
            for metric in cell.metrics:
                _, each = influence(y, out.reshape(len(y), -1), metric)
                each = np.diff(each.reshape(len(y), 2, -1), axis=1)[:, 0]
                v = (each.mean(1) ** 2).mean() + TRAINING * (each**2).mean()
                made = cs.contrast(cube, metric, a="b", b="a", times=1000, rng=1)
                ratio.append(float(made["std_error"]) / np.sqrt(v / (len(y) - 1)))
        print(f"{name}: {np.mean(ratio):.3f} ({np.min(ratio):.3f} to {np.max(ratio):.3f})", flush=True)


def largest(times: int) -> None:
    """Print the size in the cell where it is largest, by what is added to V."""
    cell = TUNING["p = 60, weak, linear kernel"]
    for metric, found in study(cell, times, [77, 1]).items():
        sizes = [rates(found, cell.n, 0.0, added) for added in (0.0, 0.75, 1.0, TRAINING)]
        print(f"| {metric} | " + " | ".join(f"{one:.3f} {many:.3f}" for one, many in sizes) + " |", flush=True)


FAMILIES = {
    "shift .5, knn": (partial(shifted, p=3), 40, [partial(knn, k=k) for k in (3, 7, 13)]),
    "p = 60, weak, linear kernel": (
        partial(shifted, p=60, shift=0.2), 50, [partial(smooth, width=0.0, penalty=q) for q in (0.1, 1.0, 10.0)],
    ),
    "trait, logistic, two alike": (latent, 60, [partial(ridge, penalty=q) for q in (1.0, 1.2)]),
    "ring, boosted stumps": (ring, 100, [partial(stumps, rounds=r) for r in (3, 10, 30)]),
    "p = 100, screened means": (
        partial(shifted, p=100, shift=0.8, useful=4), 60, [partial(screened, kept=k) for k in (2, 5, 20)],
    ),
}  # fmt: skip


def families(times: int) -> None:
    """Print the size of the contrast of two tuned families."""
    for name, (data, n, learners) in FAMILIES.items():
        g, p = np.random.default_rng(6), []
        for _ in range(times):
            x, z, y = data(g, n)
            fold = cs.kfold(y, 5, rng=g).values.T
            used = fold != np.arange(5)[:, None]
            out = [np.take_along_axis(one(part, y, used, part), fold, 0)[0] for part in (x, z) for one in learners]
            cube = cs.as_cube(
                np.clip(np.stack(out, 1), 0.005, 0.995), y, folds=fold[0], kind="probability", threshold=0.5
            )
            m = len(learners)
            sides = {"a": list(range(m)), "b": list(range(m, 2 * m)), "times": 200, "rng": 1}
            p.append(
                [float(cs.contrast(cube, metric, **sides)["p_value"]) for metric in ("accuracy", "auc", "log_loss")]
            )
        print(
            f"| {name} | {n} | " + " | ".join(f"{one:.3f}" for one in (np.array(p) < 0.05).mean(0)) + " |", flush=True
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", cs.CvstatsWarning)
    asked = sys.argv[1] if len(sys.argv) > 1 else "validation"
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    if asked in ("tuning", "validation"):
        tables({"tuning": TUNING, "validation": VALIDATION}[asked], many, seed=1 + (asked == "validation"))
    else:
        {"check": check, "families": families, "largest": largest}[asked](many)
