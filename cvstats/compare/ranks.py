"""Comparisons of methods over data sets by ranks: Friedman, Iman-Davenport, Skillings-Mack and Nemenyi."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, plain
from cvstats._results import call_text

from .named import (
    Cells,
    Dims,
    Variable,
    as_dims,
    as_numbers,
    check_by,
    check_length,
    direction_of,
    labelled,
    labels_of,
    other_dim,
)


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

    x, dims, direction = blocks(x, dim, by, direction)
    groups = Cells.of(x, dims, last=by)
    cells = Cells.of(x, (*dims, by))
    ranks, mean_rank = block_ranks(np.swapaxes(groups.pull(x, dims), -1, -2), direction)
    k = ranks.shape[-1]
    count, chi2 = friedman(ranks)
    gaps = np.isnan(ranks).any((-2, -1))
    if gaps.any():
        chi2[gaps] = skillings_mack(ranks[gaps])
    cells.warn(np.isnan(chi2), "Friedman test: everything is tied, or methods are not linked by common data sets")
    df = np.where(np.isnan(chi2), np.nan, k - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        f = np.where(gaps, np.nan, (count - 1) * chi2 / np.maximum(count * (k - 1) - chi2, 0.0))
        f_residual = np.where(np.isnan(f), np.nan, df * (count - 1))
        values = {
            "statistic": chi2,
            "df": df,
            "p_value": chdtrc(df, chi2),
            "f_statistic": f,
            "f_df": np.where(np.isnan(f), np.nan, df),
            "f_df_residual": f_residual,
            "f_p_value": fdtrc(df, f_residual, f),
            "effect_size": np.where(gaps, np.nan, chi2 / (count * (k - 1))),
            "n": count,
        }
    variables: dict[str, Variable] = {name: cells.variable(part) for name, part in values.items()}
    variables["mean_rank"] = groups.variable(mean_rank)
    names = ("Friedman test", "Friedman or Skillings-Mack test", "Skillings-Mack test")
    test = names[int(gaps.any()) + int(gaps.all())]
    call = call_text("friedman_test", dim=dim, by=by, direction=direction)
    return labelled(variables, groups, test=test, call=call)


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
    x, dims, direction = blocks(x, dim, by, direction)
    groups = Cells.of(x, dims, last=by)
    ranks, mean_rank = complete_ranks(x, dims, by, groups, direction)
    second, coords = other_dim(x, by)
    found = nemenyi(mean_rank, ranks.shape[-2])
    variables = {name: groups.variable(part, second) for name, part in found.items()}
    variables["mean_rank"] = groups.variable(mean_rank)
    call = call_text("nemenyi_test", dim=dim, by=by, direction=direction)
    return labelled(variables, groups, test="Nemenyi test", call=call, coords=coords)


def blocks(x: xr.DataArray, dim: Dims, by: str, direction: str | None) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Check a table of data sets by methods; settle which end of the scale gets rank 1."""
    x = as_numbers(x)
    direction = direction_of(x, direction)
    dims = as_dims(x, dim)
    check_by(x, by, dims)
    check_length(x, dims)
    return x, dims, direction


def complete_ranks(
    x: xr.DataArray, dims: tuple[str, ...], by: str, groups: Cells, direction: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks and mean ranks of a table that must have no gaps."""
    values = groups.pull(x, dims)
    gaps = np.isnan(values)
    if gaps.any():
        first = np.argwhere(np.isnan(x.values))[0]
        at = ", ".join(f"{d}={plain(labels_of(x, d)[i])!r}" for d, i in zip(x.dims, first, strict=True))
        raise InputError(
            f"`x` has {int(gaps.sum())} missing cells (the first at {at}); pairwise comparisons need every method on "
            "every data set. Drop incomplete data sets or methods, or use `friedman_test`, which allows gaps."
        )
    return block_ranks(np.swapaxes(values, -1, -2), direction)


def block_ranks(values: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mid-ranks within blocks (last axis: methods) and their means; blocks with one method become NaN."""
    from scipy.stats import rankdata

    signed = -values if direction == "maximize" else values
    ranks = rankdata(signed, axis=-1, nan_policy="omit")
    present = (~np.isnan(ranks)).sum(-1, keepdims=True)
    ranks = np.where(present > 1, ranks, np.nan)
    scaled = ranks * (values.shape[-1] + 1) / (present + 1)
    used = (~np.isnan(ranks)).sum(-2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ranks, np.nansum(scaled, -2) / used


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
    here = present.astype(float)
    covariance = -np.einsum("...ij,...il->...jl", here * share, here)
    diagonal = (here * share * k_block).sum(-2)
    covariance[..., np.arange(k), np.arange(k)] += diagonal
    # a null direction is expected (ranks sum to a constant); a second one means unlinked methods
    values, vectors = np.linalg.eigh(covariance)
    floor = values[..., -1:] * k * 1e-12
    inverse = np.where(values > floor, 1 / np.where(values > floor, values, 1.0), 0.0)
    score = np.einsum("...j,...jl->...l", adjusted, vectors)
    rank = (values > floor).sum(-1)
    return np.where(rank == k - 1, (score**2 * inverse).sum(-1), np.nan)


def nemenyi(mean_rank: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return difference of mean ranks, q and p for all pairs of methods (the last two axes)."""
    from scipy.stats import studentized_range

    k = mean_rank.shape[-1]
    difference = mean_rank[..., :, None] - mean_rank[..., None, :]
    q = np.abs(difference) / np.sqrt(k * (k + 1) / (12 * count))
    distinct, which = np.unique(q, return_inverse=True)
    p_value = np.clip(studentized_range.sf(distinct, k, np.inf), 0.0, 1.0)[which].reshape(q.shape)
    return {"estimate": difference, "statistic": q, "p_value": np.where(q == 0, 1.0, p_value)}
