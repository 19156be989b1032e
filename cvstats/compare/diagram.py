"""The critical-difference analysis: mean ranks, the critical difference and the groups that cannot be told apart."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import check_level, check_option
from cvstats._results import call_text
from cvstats.kernels.signed_ranks import signed_rank

from .batch import Dims
from .multiplicity import p_adjust
from .ranks import complete_ranks, friedman, nemenyi

TESTS = ("nemenyi", "wilcoxon")


def critical_difference(
    x: xr.DataArray, dim: Dims, *, by: str, level: float = 0.95, test: str = "nemenyi", direction: str | None = None
) -> xr.Dataset:
    """Return the mean ranks of methods over data sets and which of them cannot be told apart.

    Two methods differ when their mean ranks differ by at least the critical difference
    ``cd = q * sqrt(k (k + 1) / (6 N))``, with ``q`` the `level` quantile of the range of ``k`` normals over
    ``sqrt(2)`` (Nemenyi); or, with ``test="wilcoxon"``, when Wilcoxon's signed-rank test of the pair is significant
    after Holm's adjustment over all pairs.

    Parameters
    ----------
    x : DataArray
        One number per data set and method, without gaps.
    dim : str or sequence of str
        The data sets.
    by : str
        The methods. All other dimensions are mapped over.
    level : float
        One minus the family-wise error rate.
    test : {"nemenyi", "wilcoxon"}
        The pairwise test.
    direction : {"minimize", "maximize"}, optional
        Whether rank 1 goes to the smallest value (error rates) or the largest; by default what the coordinate
        ``metric`` of `x` says. Required without one.

    Returns
    -------
    Dataset
        ``mean_rank(by)``; ``cd`` (NaN for Wilcoxon, which has none); ``p_value(by, by_other)``, adjusted;
        ``clique(by, clique)``, true for the members of each largest group without a difference, best ranks first,
        groups of one left out; and Friedman's ``statistic, df`` and ``friedman_p_value``.

    Notes
    -----
    Draw it with `plot_critical_difference`. A pair inside a clique is not shown to be equal. Nemenyi's verdict on a
    pair can change when another method joins the table; Wilcoxon's does not, apart from the adjustment.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
    https://www.jmlr.org/papers/v7/demsar06a.html
    Benavoli, Corani, Mangili (2016), Should we really use post-hoc tests based on mean-ranks?, JMLR 17(5), 1-10.
    https://www.jmlr.org/papers/v17/benavoli16a.html

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> error = xr.DataArray([[1.0, 2, 3]] * 8, dims=("dataset", "method"), coords={"method": ["a", "b", "c"]})
    >>> found = cs.critical_difference(error, "dataset", by="method", direction="minimize")
    >>> round(float(found.cd), 4)
    1.1719
    >>> found.clique.values.T.tolist()
    [[True, True, False], [False, True, True]]
    """
    from scipy.special import chdtrc
    from scipy.stats import studentized_range

    level = check_level(level)
    check_option(test, TESTS, "test")
    data, direction, ranks, mean_rank = complete_ranks(x, dim, by, direction)
    count, k = ranks.shape[-2:]
    if test == "nemenyi":
        name, cd = "Nemenyi critical difference", float(studentized_range.ppf(level, k, np.inf))
        cd *= np.sqrt(k * (k + 1) / (12 * count))
        p_value = nemenyi(mean_rank, count)["p_value"]
        # mean ranks are multiples of 1 / (2 N): the margin only absorbs rounding
        same = np.abs(mean_rank[..., :, None] - mean_rank[..., None, :]) < cd - 1e-12
    else:
        name, cd = "Wilcoxon-Holm comparison of ranks", np.nan
        p_value = pairwise_wilcoxon(data.values)
        same = ~(p_value <= 1 - level)
    members = [_cliques(s, m) for s, m in zip(same.reshape(-1, k, k), mean_rank.reshape(-1, k), strict=True)]
    clique = np.zeros((len(members), k, max(map(len, members), default=0)), bool)
    for cell, found in zip(clique, members, strict=True):
        for column, group in enumerate(found):
            cell[group, column] = True
    chi2 = friedman(ranks)[1]
    variables = {
        "mean_rank": mean_rank,
        "cd": np.full(data.shape, cd),
        "clique": ((*data.dims, by, "clique"), clique.reshape(*data.shape, *clique.shape[1:])),
        "p_value": p_value,
        "statistic": chi2,
        "df": np.full(data.shape, k - 1.0),
        "friedman_p_value": chdtrc(k - 1, chi2),
    }
    call = call_text("critical_difference", dim=dim, by=by, level=level, test=test, direction=direction)
    return data.dataset(name, variables, call=call, level=level)


@np.errstate(invalid="ignore")  # equal infinities do not differ
def pairwise_wilcoxon(values: np.ndarray) -> np.ndarray:
    """Return Holm-adjusted p-values of all pairs (axes: cells, method, data set)."""
    k = values.shape[-2]
    first, second = np.triu_indices(k, 1)
    p = signed_rank(values[..., first, :] - values[..., second, :], "two-sided")["p_value"]
    p = np.where(np.isnan(p), 1.0, p)  # two methods that never differ
    table = np.ones((*values.shape[:-1], k))
    table[..., first, second] = table[..., second, first] = np.apply_along_axis(p_adjust, -1, p, "holm")
    return table


def _cliques(same: np.ndarray, mean_rank: np.ndarray) -> list[list[int]]:
    """Return the maximal sets of two or more methods that are all pairwise `same`, best ranks first (Bron-Kerbosch)."""
    neighbours = [set(np.flatnonzero(row)) - {j} for j, row in enumerate(same)]
    found: list[list[int]] = []

    def grow(chosen: list[int], candidates: set[int], seen: set[int]) -> None:
        if not candidates and not seen:
            if len(chosen) > 1:
                found.append(sorted(chosen, key=lambda j: (mean_rank[j], j)))
            return
        pivot = max(candidates | seen, key=lambda j: len(neighbours[j] & candidates))
        for j in sorted(candidates - neighbours[pivot]):
            grow([*chosen, j], candidates & neighbours[j], seen & neighbours[j])
            candidates = candidates - {j}
            seen = seen | {j}

    grow([], set(range(len(same))), set())
    return sorted(found, key=lambda group: [(mean_rank[j], j) for j in group])
