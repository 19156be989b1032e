"""Draws as plain arrays: rows of weights over samples, made on demand or given.

Bootstrap draws come in quanta of 32, each from its own seed, so that the first B' of B draws are the draws of a run
with B', and nothing depends on blocks, workers or numpy's own stream of integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvstats.kernels import Weights
from cvstats.kernels.usable import LabelCheck

QUANTUM = 32
ATTEMPTS = 1000  # for a draw that cannot be used, unless hardly any draw can
WORDS = 32_768  # random words at a time
PIECE = 4 * QUANTUM  # draws that are remembered together
REMEMBERED = 32_000_000  # counts that are remembered for the next block of configurations


class Draws:
    """Weights over the samples of a cube, draw by draw: made on demand, or given by the caller.

    Attributes
    ----------
    n, times : number of samples, and of draws.
    total : upper bound of the weight of a draw.
    """

    n: int
    times: int
    total: float

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        raise NotImplementedError

    def on(self, rows: np.ndarray) -> Draws:
        """Return the draws over some of the samples."""
        raise NotImplementedError

    def weights(self, start: int, stop: int) -> tuple[Weights, np.ndarray]:
        """Return the weights of a block in the form that kernels share, and how often each was drawn again."""
        counts, redrawn = self.block(start, stop)
        return Weights(counts), redrawn

    def remembered(self) -> Draws:
        """Return the draws in a form that serves several blocks of configurations at the price of one."""
        return self


class Bootstrap(Draws):
    """Bootstrap draws made on demand: ``block(start, stop)`` returns counts (draw, n).

    Parameters
    ----------
    n, times, seed
        Number of samples, number of draws, and the entropy of the stream.
    group
        (n,) codes of clusters that are drawn whole.
    strata
        (n,) codes within which units are drawn.
    check
        What draws must hold, so that the others are drawn again, keyed by draw and attempt; None when nothing need be.
    judging
        Whether the samples left out must pass the check too.
    """

    def __init__(
        self,
        n: int,
        times: int,
        seed: int,
        *,
        group: np.ndarray | None = None,
        strata: np.ndarray | None = None,
        check: LabelCheck | None = None,
        judging: bool = True,
    ) -> None:
        self.n, self.times, self.seed, self.group, self.strata = n, times, seed, group, strata
        self.check, self.judging = check, judging
        self._usable: Callable[[np.ndarray], np.ndarray] | None = None
        if check is not None and (not judging or check.possible(group)):  # else drawing again is futile
            self._usable = check.pair if judging else check.chosen
        self._hopeful: bool | None = None
        units = n if group is None else int(group.max()) + 1
        layer = np.zeros(units, int) if strata is None else strata
        if strata is not None and group is not None:
            layer = np.zeros(units, int)
            layer[group] = strata
        size = np.bincount(layer)
        start = np.concatenate([[0], np.cumsum(size)[:-1]])
        self._units = units
        self._member = np.argsort(layer, kind="stable")  # units, stratum by stratum
        slot = np.sort(layer, kind="stable")
        self._layered = len(size) > 1  # one slot per unit: it draws from its stratum
        self._size = size[slot].astype(np.uint64) if self._layered else np.uint64(units)
        self._start = start[slot].astype(np.int64)
        self.total = float(units) if group is None else float(units * np.bincount(group).max())

    def on(self, rows: np.ndarray) -> Bootstrap:
        """Return the draws over some of the samples: those that somebody predicted."""
        if rows.all():
            return self
        group, strata = (
            None if codes is None else np.unique(codes[rows], return_inverse=True)[1]
            for codes in (self.group, self.strata)
        )
        check = None if self.check is None else self.check.on(rows)
        n, judging = int(rows.sum()), self.judging
        return Bootstrap(n, self.times, self.seed, group=group, strata=strata, check=check, judging=judging)

    def remembered(self) -> Draws:
        """Return draws that are made once by each process, while they take little memory."""
        return Remembered(self) if self.times * self.n <= REMEMBERED else self

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        counts = np.empty((stop - start, self.n), np.int32)
        for q in range(start // QUANTUM, -(-stop // QUANTUM)):
            low, high = max(start, q * QUANTUM), min(stop, (q + 1) * QUANTUM)
            self._fill(counts[low - start : high - start], (q,), low - q * QUANTUM)
        redrawn = np.zeros(len(counts), int)
        if self._usable is None:
            return counts, redrawn
        bad = np.flatnonzero(~self._usable(counts))
        attempts = ATTEMPTS if bad.size and self._hope() else 0
        for attempt in range(1, attempts + 1):
            if not bad.size:
                break
            for row in bad.tolist():
                draw = start + row
                self._fill(counts[row : row + 1], (draw // QUANTUM, draw % QUANTUM, attempt), 0)
            redrawn[bad] += 1
            bad = bad[~self._usable(counts[bad])]
        redrawn[bad] = ATTEMPTS + 1  # still not usable
        return counts, redrawn

    def _hope(self) -> bool:
        """Return whether one of about a thousand draws is usable, which depends on nothing but design and seed."""
        if self._hopeful is None:
            assert self._usable is not None
            trials, self._hopeful = np.empty((QUANTUM, self.n), np.int32), False
            for attempt in range(QUANTUM):
                self._fill(trials, (0, QUANTUM, attempt), 0)
                if self._usable(trials).any():
                    self._hopeful = True
                    break
        return self._hopeful

    def _fill(self, out: np.ndarray, key: tuple[int, ...], skip: int) -> None:
        """Fill rows with the counts of a stream's draws after the first `skip`, a few rows at a time.

        Raw 32-bit words u become unit (u * size) >> 32 of their stratum.
        """
        units = self._units
        stream = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
        if skip:
            stream.advance(skip * units // 2)
        odd = skip * units % 2  # the first row begins in the middle of a 64-bit word
        step = max(2, WORDS // units // 2 * 2)
        room = np.empty((min(step, len(out)), units), np.uint64)
        for start in range(0, len(out), step):
            rows = out[start : start + step]
            size = len(rows) * units
            words = stream.random_raw((size + odd + 1) // 2).astype("<u8", copy=False).view("<u4")[odd : odd + size]
            words = words.reshape(len(rows), units)
            index = np.multiply(words, self._size, out=room[: len(rows)], dtype=np.uint64)  # numpy 1 would take 32 bits
            index >>= np.uint64(32)
            self._count(index.view(np.int64), rows)
            if odd:
                stream = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
                stream.advance((skip + start + len(rows)) * units // 2)
                odd = (skip + start + len(rows)) * units % 2

    def _count(self, index: np.ndarray, out: np.ndarray) -> None:
        """Count how often each unit was drawn, and give every sample the count of its unit."""
        units = self._units
        if self._layered:
            index += self._start
        if units < 4096:
            index += np.arange(0, index.size, units)[:, None]
            counts = np.bincount(index.ravel(), minlength=index.size).reshape(index.shape)
        else:
            counts = np.array([np.bincount(row, minlength=units) for row in index])
        if self._layered:
            plain = np.empty_like(counts)
            plain[:, self._member] = counts
            counts = plain
        out[:] = counts if self.group is None else counts[:, self.group]


class Remembered(Draws):
    """Draws that several blocks of configurations use: made once by each process, as narrow integers."""

    def __init__(self, draws: Bootstrap) -> None:
        self.draws, self.n, self.times, self.total = draws, draws.n, draws.times, draws.total
        self._pieces: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._weights: dict[tuple[int, int], Weights] = {}
        self._part: tuple[bytes, Draws] | None = None  # the draws over some samples that were last asked for

    def __getstate__(self) -> Bootstrap:
        return self.draws  # whoever receives them makes them again

    def __setstate__(self, draws: Bootstrap) -> None:
        self.__init__(draws)  # type: ignore[misc]

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (draw, n) of draws `start` to `stop` and how often each was drawn again."""
        first = start // PIECE
        parts = [self._piece(number) for number in range(first, -(-stop // PIECE))]
        counts, redrawn = (np.concatenate(each) for each in zip(*parts, strict=True))
        wanted = slice(start - first * PIECE, stop - first * PIECE)
        return counts[wanted], redrawn[wanted]

    def _piece(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if number not in self._pieces:
            counts, redrawn = self.draws.block(number * PIECE, min((number + 1) * PIECE, self.times))
            self._pieces[number] = counts.astype(np.uint8 if counts.max(initial=0) < 256 else np.int32), redrawn
        return self._pieces[number]

    def weights(self, start: int, stop: int) -> tuple[Weights, np.ndarray]:
        """Return the weights of a block, with what kernels have made of them, and how often each was drawn again."""
        counts, redrawn = self.block(start, stop)
        return self._weights.setdefault((start, stop), Weights(counts)), redrawn

    def on(self, rows: np.ndarray) -> Draws:
        """Return the draws over some of the samples."""
        if rows.all():
            return self
        key = rows.tobytes()
        if self._part is None or self._part[0] != key:
            self._part = key, self.draws.on(rows).remembered()
        return self._part[1]


class Given(Draws):
    """Draws supplied by the caller: used as they are, never drawn again."""

    def __init__(self, weights: np.ndarray) -> None:
        self.values = weights
        self.times, self.n = weights.shape
        self.total = float(weights.sum(axis=1).max(initial=0.0))

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of draws `start` to `stop`, and zeros because none was drawn again."""
        part = self.values[start:stop]
        return part, np.zeros(len(part), int)

    def on(self, rows: np.ndarray) -> Given:
        """Return the weights of some of the samples."""
        return self if rows.all() else Given(self.values[:, rows])


class Part(Draws):
    """Draws `start` to `stop` of others; or the samples that they leave out, once each."""

    def __init__(self, draws: Draws, start: int = 0, stop: int | None = None, *, left_out: bool = False) -> None:
        self.draws, self.start, self.left_out = draws, start, left_out
        self.n, self.times = draws.n, (draws.times if stop is None else stop) - start
        self.total = float(draws.n) if left_out else draws.total

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (draw, n) of draws `start` to `stop` of these and how often each was drawn again."""
        counts, redrawn = self.draws.block(self.start + start, self.start + stop)
        return (counts == 0).view(np.uint8) if self.left_out else counts, redrawn

    def on(self, rows: np.ndarray) -> Part:
        """Return the draws over some of the samples."""
        return Part(self.draws.on(rows), self.start, self.start + self.times, left_out=self.left_out)
