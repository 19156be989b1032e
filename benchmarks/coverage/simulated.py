"""Designs of fixed models with known truth: these flatter every method, but separate its parts."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import kernel
from .refit import CHUNK, TIMES

PER_CHUNK = 4 * CHUNK  # these are quick


@dataclass(frozen=True)
class Fixed:
    """Configurations with true accuracies from Beta(beta), or as `kind` says, and correlated luck."""

    kind: str  # "grid", "copula", "clear", "crowd", "null", "clusters"
    n: int
    c: int
    beta: tuple[float, float] = (9, 6)
    gap: float = 0.0  # "clear", "crowd": how far the first stands above the mean of the others
    tuning: bool = False
    repetitions: int = 600
    folds: int = 0
    metrics: tuple[str, ...] = ("accuracy",)

    @property
    def set(self) -> str:
        """Which set the design belongs to."""
        return "simulated_tuning" if self.tuning else "simulated"

    @property
    def name(self) -> str:
        """A name for tables."""
        if self.kind in ("clear", "crowd"):
            return f"{self.kind} {self.gap:g} C{self.c}"
        if self.kind == "null":
            return f"null C{self.c}"
        return f"{self.kind} C{self.c} Beta({self.beta[0]:g},{self.beta[1]:g})"

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.set}-{self.name.replace(' ', '_')}-n{self.n}"

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return right (sample, configuration) and the true accuracies."""
        from scipy.special import ndtri

        truth = rng.beta(*self.beta, self.c)
        if self.kind == "null":
            truth = np.full(self.c, 0.5)
        elif self.kind in ("clear", "crowd"):
            truth[0] = min(self.beta[0] / sum(self.beta) + self.gap, 0.98)
            truth = truth[rng.permutation(self.c)]
        own = rng.normal(size=(self.n, self.c))
        if self.kind == "copula":
            own = np.sqrt(0.5) * rng.normal(size=(self.n, 1)) + np.sqrt(0.5) * own
        elif self.kind == "clusters":  # ten configurations each that are nearly one
            luck = rng.normal(size=(self.n, self.c // 10))
            truth = np.repeat(truth[: self.c // 10], 10)
            own = np.sqrt(0.95) * np.repeat(luck, 10, axis=1) + np.sqrt(0.05) * own
        return (own < ndtri(truth)).astype(np.float32), truth


def _simulated() -> list[Fixed]:
    cells = [
        Fixed(kind, n, c, beta)
        for kind in ("grid", "copula")
        for n in (20, 60, 100, 500)
        for c in (20, 200)
        for beta in ((9, 6), (54, 6))
    ]
    cells += [Fixed("null", n, c) for n, c in ((40, 50), (100, 200))]
    cells += [Fixed("clusters", n, 100, beta) for n in (40, 100) for beta in ((9, 6), (54, 6))]
    wide = (60, 40)  # accuracies near .6
    cells += [Fixed("clear", n, 50, wide, gap) for n in (40, 100) for gap in (0.1, 0.2, 0.3)]
    cells += [Fixed("clear", n, 200, wide, 0.2) for n in (30, 60)]
    cells += [
        Fixed("clear", n, c, wide, gap, True) for n, c in ((30, 20), (60, 100), (150, 20)) for gap in (0.12, 0.25)
    ]
    even = (500, 500)  # a crowd of equals
    cells += [Fixed("crowd", n, c, even, gap, True) for n, c, gap in ((40, 50, 0.3), (40, 200, 0.35), (100, 200, 0.25))]
    cells += [Fixed("clear", 20, c, wide, gap, True) for c, gap in ((10, 0.3), (50, 0.35))]
    cells += [Fixed(kind, n, 50, (24, 8), 0.0, True) for kind in ("grid", "copula") for n in (30, 120)]
    return cells


SIMULATED = _simulated()


def run_chunk(design: Fixed, chunk: int, folder: Path) -> None:
    """Run one chunk of repetitions and write it, whole or not at all."""
    seed = zlib.crc32(design.key.encode())
    rows = []
    for number in range(PER_CHUNK):
        rng = np.random.default_rng([seed, chunk * PER_CHUNK + number])
        right, truth = design.draw(rng)
        found = kernel.outcome(kernel.Sums(right), "accuracy", kernel.draw_counts(design.n, TIMES, rng), rng)
        row = {name: np.asarray(getattr(found, name)) for name in ("naive", "bbc", "first")}
        row |= {name: getattr(found, name).astype(np.float32) for name in ("scores", "variance", "values")}
        row["wins"] = found.wins.astype(np.int32)
        row |= {"truth": truth[found.selected], "estimate": np.float64(found.bbc), "smallest": np.int64(design.n)}
        rows.append({f"accuracy/{name}": np.asarray(value) for name, value in row.items()})
    path = folder / f"{design.key}-{chunk:03d}.npz"
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **{name: np.stack([row[name] for row in rows]) for name in rows[0]})
    part.rename(path)
