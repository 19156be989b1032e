"""How samples and groups are dealt into folds (numpy only; repeats lead, samples last)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]
SWAP_LIMIT = 300  # groups; above it whole-group swaps cost more than they gain
MOVES = 500  # at most; the deal is nearly balanced when they start
NUMBER_BINS = 5  # quantile bins that stand for classes when numbers are dealt in groups


def deal(strata: Codes, k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample): one deck, sorted by stratum and shuffled within, dealt round and round.

    Strata are consecutive stretches of the deck, so fold sizes differ by at most one in each stratum and overall.
    The strata are visited in random order and the folds renamed at random,
    so that no fold is favoured.
    """
    n = strata.shape[-1]
    order = rng.permuted(np.tile(np.arange(int(strata.max(initial=0)) + 1), (repeats, 1)), axis=1)
    visited = np.take_along_axis(order, np.broadcast_to(strata, (repeats, n)), axis=1)
    deck = np.lexsort((rng.random((repeats, n)), visited), axis=1)
    names = rng.permuted(np.tile(np.arange(k), (repeats, 1)), axis=1)
    fold = np.empty((repeats, n), np.intp)
    np.put_along_axis(fold, deck, np.take_along_axis(names, np.broadcast_to(np.arange(n) % k, (repeats, n)), 1), 1)
    return fold


def deal_sorted(values: NDArray[np.float64], k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample) so that every run of `k` neighbours in sorted order visits every fold once."""
    n = values.size
    keys = np.broadcast_to(values, (repeats, n))
    ranked = np.lexsort((rng.random((repeats, n)), keys), axis=1)  # ties in random order
    runs = -(-n // k)
    names = rng.permuted(np.tile(np.arange(k), (repeats, runs, 1)), axis=2).reshape(repeats, runs * k)[:, :n]
    fold = np.empty((repeats, n), np.intp)
    np.put_along_axis(fold, ranked, names, 1)
    return fold


def bins(values: NDArray[np.float64], count: int = NUMBER_BINS) -> Codes:
    """Return quantile bins of about equal size; equal values share a bin."""
    edges = np.quantile(values, np.arange(1, count) / count)
    return np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]


def deal_groups(groups: Codes, strata: Codes, k: int, repeats: int, rng: np.random.Generator) -> Codes:
    """Return fold ids (repeat, sample) that never split a group and balance fold sizes and strata."""
    counts = np.zeros((int(groups.max()) + 1, int(strata.max()) + 1))
    np.add.at(counts, (groups, strata), 1)
    profile = np.column_stack([counts, counts.sum(1)]) if counts.shape[1] > 1 else counts
    profile /= np.sqrt(profile.sum(0) / k)  # so that a fold's squared distance is relative to the stratum's share
    return np.stack([_balance(profile, k, rng)[groups] for _ in range(repeats)])


def _balance(profile: NDArray[np.float64], k: int, rng: np.random.Generator) -> Codes:
    """Return one fold per group: the largest first, each to the fold it unbalances least, then moves and swaps.

    Minimises the sum over folds of the squared length of the fold's profile, which for fixed totals is smallest when
    all folds are alike.
    """
    n = len(profile)
    power = np.einsum("gc,gc->g", profile, profile)
    fold = np.empty(n, np.intp)
    load = np.zeros((k, profile.shape[1]))
    shuffled = rng.permutation(n)
    for group in shuffled[np.argsort(-power[shuffled], kind="stable")]:
        fold[group] = np.argmin(load @ profile[group])
        load[fold[group]] += profile[group]
    gram = profile @ profile.T if n <= SWAP_LIMIT else None
    rows = np.arange(n)
    for _ in range(MOVES):
        affinity = profile @ load.T  # (group, fold)
        own = affinity[rows, fold]
        move = affinity - own[:, None] + power[:, None]
        move[rows, fold] = 0.0
        best = np.unravel_index(np.argmin(move), move.shape)
        gain, swap = move[best], None
        if gram is not None:
            across = affinity[:, fold]  # (g, h): group g against the fold of group h
            exchange = across + across.T - own[:, None] - own + power[:, None] + power - 2 * gram
            exchange[fold[:, None] == fold] = 0.0
            swap = np.unravel_index(np.argmin(exchange), exchange.shape)
            swap = swap if exchange[swap] < gain else None
            gain = min(gain, exchange[swap] if swap is not None else gain)
        if gain > -1e-9:
            break
        if swap is None:
            load[fold[best[0]]] -= profile[best[0]]
            load[best[1]] += profile[best[0]]
            fold[best[0]] = best[1]
        else:
            one, two = swap
            change = profile[one] - profile[two]
            load[fold[one]] -= change
            load[fold[two]] += change
            fold[one], fold[two] = fold[two], fold[one]
    return rng.permutation(k)[fold]
