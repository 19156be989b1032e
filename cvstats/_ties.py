"""Ties inside a draw, broken at random by a key of seed, draw and configuration label only."""

from __future__ import annotations

import hashlib

import numpy as np


def label_keys(names: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each configuration label, the same on every machine and in every order."""
    digests = b"".join(hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names.tolist())
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def tie_keys(hashes: np.ndarray, draws: np.ndarray, seed: int) -> np.ndarray:
    """Return the key of (label, draw, seed); the smallest wins a tie."""
    with np.errstate(over="ignore"):
        stream = _mix(draws.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((seed + 1) & (2**64 - 1)))
        return _mix(hashes ^ stream)


def _mix(x: np.ndarray) -> np.ndarray:
    """Scramble 64-bit words (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def break_ties(
    criterion: np.ndarray, top: np.ndarray, first: np.ndarray, hashes: np.ndarray, draws: np.ndarray, seed: int
) -> np.ndarray:
    """Return the winner of each draw among those that reach `top`, by the smallest key."""
    tied = criterion == top[:, None]
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if not rows.size:
        return first
    winner = first.copy()
    row, column = np.nonzero(tied[rows])
    keys = tie_keys(hashes[column], draws[rows[row]], seed)
    order = np.lexsort((keys, row))
    head = np.ones(len(order), bool)
    head[1:] = row[order][1:] != row[order][:-1]
    winner[rows] = column[order][head]
    return winner
