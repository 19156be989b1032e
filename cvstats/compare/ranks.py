"""Comparisons by ranks: Wilcoxon, Friedman, Iman-Davenport, Skillings-Mack, Nemenyi, and the critical difference."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, check_level, check_option, plain
from cvstats._results import call_text
from cvstats.kernels.holm import holm
from cvstats.kernels.signed_ranks import block_ranks, signed_rank

from .batch import Batch, Dims, as_numbers, batch, direction_of
from .location import ALTERNATIVES

TESTS = ("nemenyi", "wilcoxon")


def wilcoxon_test(
    x: xr.DataArray,
    dim: Dims,
    *,
    other: xr.DataArray | None = None,
    alternative: str = "two-sided",
    digits: int | None = None,
) -> xr.Dataset:
    """Test whether `x`, or the paired difference ``x - other``, is symmetric about zero.

    The statistic is R's V, the sum of the ranks of ``|difference|`` over the positive differences. Zeros are dropped
    first; ties share their mean rank.

    Up to 50 non-zero differences the p-value is exact: it comes from the permutation distribution of V given the
    (mid-)ranks at hand, all ``2**n`` sign patterns equally likely, so ties are covered. Above that, V is taken as
    normal with mean ``sum(rank) / 2``, variance ``sum(rank**2) / 4`` (which corrects for ties) and a continuity
    correction of one half, as R's ``wilcox.test(exact=FALSE)``. Two-sided p-values are twice the smaller tail.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN is left out with its partner.
    dim : str or sequence of str
        Where the pairs lie (for a comparison over data sets, the data sets). All other dimensions are mapped over.
    other : DataArray, optional
        The second sample, matched by label.
    alternative : {"two-sided", "less", "greater"}
        "greater": `x` tends to exceed `other`.
    digits : int, optional
        Significant digits to which differences are rounded before ranking. Decimal data need it: 0.3 - 0.2 and
        0.2 - 0.1 differ in their last bit, and the tie is lost. The default compares exactly, as R does.

    Returns
    -------
    Dataset
        ``statistic`` (V), ``p_value``, ``effect_size`` (rank-biserial correlation, -1 to 1), ``n`` (non-zero
        differences), ``n_zero`` and ``exact``.

    Notes
    -----
    Without any non-zero difference the result is NaN with one warning. With fewer than six of them no two-sided p-value
    can be below .05. Data sets count as independent and equally important.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1, 80-83.
    https://doi.org/10.2307/3001968
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
    https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> a = xr.DataArray([10.4, 26.5, 23.3, 34.2, 23.4, 16.7], dims="dataset")
    >>> b = xr.DataArray([10.6, 26.9, 23.2, 34.9, 24.4, 18.0], dims="dataset")
    >>> test = cs.wilcoxon_test(a, "dataset", other=b)
    >>> float(test.statistic), float(test.p_value)
    (1.0, 0.0625)
    """
    check_option(alternative, ALTERNATIVES, "alternative")
    if digits is not None:
        digits = check_count(digits, "digits")
    data = batch(x, dim, other=other)
    found = signed_rank(data.difference, alternative, digits)
    data.warn(found["n"] == 0, "Wilcoxon test: no difference other than zero")
    call = call_text("wilcoxon_test", dim=dim, alternative=alternative, digits=digits)
    return data.dataset("Wilcoxon signed-rank test", found, call=call)


def friedman_test(x: xr.DataArray, dim: Dims, *, by: str, direction: str | None = None) -> xr.Dataset:
    """Test whether methods share one distribution of ranks over data sets.

    Methods are ranked within each data set, ties sharing their mean rank. With rank sums ``R_j`` of ``k`` methods over
    ``N`` data sets, ``chi2 = (k - 1) sum_j (R_j - N (k + 1) / 2)**2 / sum_ij (r_ij - (k + 1) / 2)**2``, which
    corrects for ties, on ``k - 1`` degrees of freedom. Iman and Davenport's
    ``F = (N - 1) chi2 / (N (k - 1) - chi2)`` on ``k - 1`` and ``(k - 1)(N - 1)`` is less conservative.

    Parameters
    ----------
    x : DataArray
        One number per data set and method. NaN marks a missing cell.
    dim : str or sequence of str
        The data sets (blocks).
    by : str
        The methods. All other dimensions are mapped over.
    direction : {"minimize", "maximize"}, optional
        Whether rank 1 goes to the smallest value (error rates) or the largest (accuracies); by default what the
        coordinate ``metric`` of `x` says. Required without one. Only ``mean_rank`` depends on it.

    Returns
    -------
    Dataset
        ``statistic, df, p_value, f_statistic, f_df, f_df_residual, f_p_value, effect_size`` (Kendall's W), ``n``
        (blocks used) and ``mean_rank(by)``.

    Notes
    -----
    Where cells are missing the statistic is that of Skillings and Mack: ranks among the methods present, centred and
    weighted by ``sqrt(12 / (k_i + 1))``, with the covariance of the ranks actually given (so ties are corrected for,
    and a complete table gives Friedman's value). Data sets with a single method are left out; the F form is NaN;
    ``mean_rank`` is of ``r (k + 1) / (k_i + 1)``. Methods that cannot be linked through common data sets, and tables
    in which everything is tied, give NaN and one warning.

    References
    ----------
    Friedman (1937), JASA 32, 675-701. https://doi.org/10.1080/01621459.1937.10503522
    Iman, Davenport (1980), Communications in Statistics A9, 571-595. https://doi.org/10.1080/03610928008827904
    Skillings, Mack (1981), Technometrics 23, 171-177. https://doi.org/10.1080/00401706.1981.10486261

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> error = xr.DataArray([[1.0, 2, 3], [2, 1, 3], [1, 2, 3], [1, 2, 3]], dims=("dataset", "method"))
    >>> test = cs.friedman_test(error, "dataset", by="method", direction="minimize")
    >>> float(test.statistic), round(float(test.p_value), 4), test.mean_rank.values.tolist()
    (6.5, 0.0388, [1.25, 1.75, 3.0])
    """
    from scipy.special import chdtrc, fdtrc

    direction = direction_of(as_numbers(x), direction)
    data = batch(x, dim, by=by)
    ranks, mean_rank = block_ranks(np.swapaxes(data.values, -1, -2), direction)
    k = ranks.shape[-1]
    count, chi2 = friedman(ranks)
    gaps = np.isnan(ranks).any((-2, -1))
    chi2[gaps] = skillings_mack(ranks[gaps])
    lost = np.isnan(chi2)
    data.warn(lost, "Friedman test: everything is tied, or methods are not linked by common data sets")
    df = np.where(lost, np.nan, k - 1.0)
    f_df = np.where(gaps, np.nan, df)  # Iman and Davenport's F is for complete tables
    with np.errstate(invalid="ignore", divide="ignore"):
        f = (count - 1) * chi2 / np.maximum(count * f_df - chi2, 0.0)
        f_df = np.where(np.isnan(f), np.nan, f_df)
        variables = {
            "statistic": chi2,
            "df": df,
            "p_value": chdtrc(df, chi2),
            "f_statistic": f,
            "f_df": f_df,
            "f_df_residual": f_df * (count - 1),
            "f_p_value": fdtrc(f_df, f_df * (count - 1), f),
            "effect_size": np.where(gaps, np.nan, chi2 / (count * (k - 1))),
            "n": count,
            "mean_rank": mean_rank,
        }
    test = ("Friedman test", "Friedman or Skillings-Mack test", "Skillings-Mack test")[
        int(gaps.any()) + int(gaps.all())
    ]
    return data.dataset(test, variables, call=call_text("friedman_test", dim=dim, by=by, direction=direction))


def nemenyi_test(x: xr.DataArray, dim: Dims, *, by: str, direction: str | None = None) -> xr.Dataset:
    """Compare all pairs of methods over data sets after Friedman's test, with the family-wise level held.

    With mean ranks ``R`` of ``k`` methods over ``N`` data sets, ``q = |R_i - R_j| / sqrt(k (k + 1) / (12 N))`` is
    referred to the range of ``k`` independent standard normals (the studentized range on infinite degrees of freedom).

    Parameters
    ----------
    x : DataArray
        One number per data set and method, without gaps.
    dim, by, direction : as in `friedman_test`
        The data sets, the methods, and which values are better.

    Returns
    -------
    Dataset
        Over ``(by, by_other)``: ``estimate`` (difference of mean ranks, row minus column), ``statistic`` (q) and
        ``p_value`` (1 on the diagonal); and ``mean_rank(by)``.

    Notes
    -----
    The verdict on a pair depends on which other methods are in the table. The large-sample distribution is rough for
    fewer than ten data sets, and tied ranks make it conservative. `critical_difference` with ``test="wilcoxon"``
    avoids the first.

    References
    ----------
    Nemenyi (1963), Distribution-free multiple comparisons, PhD thesis, Princeton University.
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
    https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> error = xr.DataArray([[1.0, 2, 3]] * 8, dims=("dataset", "method"), coords={"method": ["a", "b", "c"]})
    >>> p = cs.nemenyi_test(error, "dataset", by="method", direction="minimize").p_value
    >>> round(float(p.sel({"method": "a", "method_other": "c"})), 5)
    0.00019
    """
    data, direction, ranks, mean_rank = complete_ranks(x, dim, by, direction)
    variables = {**nemenyi(mean_rank, ranks.shape[-2]), "mean_rank": mean_rank}
    return data.dataset("Nemenyi test", variables, call=call_text("nemenyi_test", dim=dim, by=by, direction=direction))


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


def complete_ranks(
    x: xr.DataArray, dim: Dims, by: str, direction: str | None
) -> tuple[Batch, str, np.ndarray, np.ndarray]:
    """Return a table of data sets by methods that must have no gaps, its direction, ranks and mean ranks."""
    direction = direction_of(as_numbers(x), direction)
    data = batch(x, dim, by=by)
    gaps = np.argwhere(np.isnan(x.values))
    if len(gaps):
        at = ", ".join(f"{d}={plain(x[d].values[i])!r}" for d, i in zip(x.dims, gaps[0], strict=True))
        raise InputError(
            f"`x` has {len(gaps)} missing cells (the first at {at}); pairwise comparisons need every method on "
            "every data set. Drop incomplete data sets or methods, or use `friedman_test`, which allows gaps."
        )
    if f"{by}_other" in x.dims:
        raise InputError(f"`x` already has a dimension '{by}_other', which the pairwise table needs; rename it.")
    return data, direction, *block_ranks(np.swapaxes(data.values, -1, -2), direction)


def friedman(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of blocks and the tie-corrected chi-square of complete tables (axes: block, method)."""
    k = ranks.shape[-1]
    count = (~np.isnan(ranks)).any(-1).sum(-1)
    centred = ranks - (k + 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return count, np.array((k - 1) * (centred.sum(-2) ** 2).sum(-1) / (centred**2).sum((-2, -1)))


def skillings_mack(ranks: np.ndarray) -> np.ndarray:
    """Return the tie-corrected Skillings-Mack statistic of tables with gaps."""
    k = ranks.shape[-1]
    present = ~np.isnan(ranks)
    k_block = present.sum(-1, keepdims=True).astype(float)
    centred = np.where(present, ranks - (k_block + 1) / 2, 0.0)
    weight = 12 / (k_block + 1)
    adjusted = (np.sqrt(weight) * centred).sum(-2)
    # within a block the given ranks are exchangeable: covariance -c off the diagonal, (k_i - 1) c on it
    with np.errstate(invalid="ignore", divide="ignore"):
        share = weight * (centred**2).sum(-1, keepdims=True) / (k_block * (k_block - 1))
    share = np.where(k_block > 1, share, 0.0)
    given = present.astype(float)
    covariance = -np.einsum("...ij,...il->...jl", given * share, given)
    covariance[..., np.arange(k), np.arange(k)] += (given * share * k_block).sum(-2)
    # a null direction is expected (ranks sum to a constant); a second one means unlinked methods
    inverse = np.linalg.pinv(covariance, rcond=k * 1e-12, hermitian=True)
    rank = np.einsum("...jl,...lj->...", covariance, inverse).round()
    return np.where(rank == k - 1, np.einsum("...j,...jl,...l->...", adjusted, inverse, adjusted), np.nan)


def nemenyi(mean_rank: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return difference of mean ranks, q and p for all pairs of methods (the last two axes)."""
    from scipy.stats import studentized_range

    k = mean_rank.shape[-1]
    difference = mean_rank[..., :, None] - mean_rank[..., None, :]
    q = np.abs(difference) / np.sqrt(k * (k + 1) / (12 * count))
    distinct, which = np.unique(q, return_inverse=True)
    p_value = np.clip(studentized_range.sf(distinct, k, np.inf), 0.0, 1.0)[which].reshape(q.shape)
    return {"estimate": difference, "statistic": q, "p_value": np.where(q == 0, 1.0, p_value)}


@np.errstate(invalid="ignore")  # equal infinities do not differ
def pairwise_wilcoxon(values: np.ndarray) -> np.ndarray:
    """Return Holm-adjusted p-values of all pairs (axes: cells, method, data set)."""
    k = values.shape[-2]
    first, second = np.triu_indices(k, 1)
    p = signed_rank(values[..., first, :] - values[..., second, :], "two-sided")["p_value"]
    p = np.where(np.isnan(p), 1.0, p)  # two methods that never differ
    table = np.ones((*values.shape[:-1], k))
    table[..., first, second] = table[..., second, first] = holm(p)
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
