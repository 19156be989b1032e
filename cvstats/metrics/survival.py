"""Metrics of right-censored survival times that weigh by the inverse probability of censoring.

What they share: G(t), the probability not to be censored until t, is Kaplan-Meier's estimate from the samples that are
scored and their weights; where an event and a censoring fall on one time, the event comes first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, is_number, show

from .base import MADE, SHARE, Metric, define

_SURVIVAL: dict[str, Any] = {"uses": "survival", "linear": False}
_RANK = SHARE | _SURVIVAL | {"family": "rank", "requires": "pairs"}
_UNO = _RANK | {"statistic": "uno_concordance", "words": "Uno's concordance"}


@define(**_UNO, aliases=("cindex_ipcw", "concordance_index_ipcw", "uno_c"))
def uno_concordance(y: np.ndarray, p: np.ndarray, k: int) -> Any:
    r"""Uno's concordance: Harrell's, with pairs weighted so that it does not depend on who was censored.

    .. math:: \frac{\sum_{ij} d_i \hat G(T_i-)^{-2} I(T_i < T_j) I(p_i > p_j)}
              {\sum_{ij} d_i \hat G(T_i-)^{-2} I(T_i < T_j)}

    with d = 1 for observed events and p the risk; tied risks count one half. A sample censored at the very time of
    another's event outlives it. It takes censoring to be independent of everything else. Late pairs have large weights:
    `truncated_concordance` ends where few are left under observation. NaN without comparable pairs.

    References
    ----------
    Uno, Cai, Pencina, D'Agostino, Wei (2011), doi:10.1002/sim.4154.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[3.0], [2.0], [1.0], [2.5]], [1.0, 4.0, 3.0, 6.0], event=[1, 1, 0, 0], kind="score")
    >>> cs.uno_concordance(cube).values.round(4)
    array([0.5714])
    """


def truncated_concordance(time: float) -> Metric:
    r"""Return the metric "Uno's concordance up to a time": only events before it begin a pair.

    .. math:: \frac{\sum_{ij} d_i \hat G(T_i-)^{-2} I(T_i < T_j, T_i < \tau) I(p_i > p_j)}
              {\sum_{ij} d_i \hat G(T_i-)^{-2} I(T_i < T_j, T_i < \tau)}

    in the words of `uno_concordance`, whose latest pairs may weigh more than all others.

    Parameters
    ----------
    time : float
        The truncation time :math:`\tau`, in the unit of the labels.

    Returns
    -------
    Metric
        Called, for instance, ``truncated_concordance(5)`` in results; for the predictions that `concordance` takes.

    References
    ----------
    Uno, Cai, Pencina, D'Agostino, Wei (2011), doi:10.1002/sim.4154.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[3.0], [2.0], [1.0], [2.5]], [1.0, 4.0, 3.0, 6.0], event=[1, 1, 0, 0], kind="score")
    >>> cs.score(cube, cs.truncated_concordance(4)).values
    array([1.])
    """
    return _at("truncated_concordance", time, "up to")


def survival_auc(time: float) -> Metric:
    r"""Return the metric "time-dependent AUC": how well risk tells events by a time from those who live on.

    .. math:: \frac{\sum_{ij} d_i I(T_i \le t) \hat G(T_i-)^{-1} I(T_j > t) I(p_i > p_j)}
              {\sum_i d_i I(T_i \le t) \hat G(T_i-)^{-1} \sum_j I(T_j > t)}

    with d = 1 for observed events and p the risk (cumulative cases, dynamic controls); tied risks count one half. Who
    was censored by that time is neither case nor control. NaN without cases or without controls.

    Parameters
    ----------
    time : float
        The horizon t, in the unit of the labels.

    Returns
    -------
    Metric
        Called, for instance, ``survival_auc(5)`` in results; for risks, predicted times, or survival probabilities, of
        which it takes those at that ``horizon``.

    References
    ----------
    Uno, Cai, Tian, Wei (2007), doi:10.1198/016214507000000149; Blanche, Dartigues, Jacqmin-Gadda (2013),
    doi:10.1002/sim.5958.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[3.0], [2.0], [1.0], [2.5]], [1.0, 4.0, 3.0, 6.0], event=[1, 1, 0, 0], kind="score")
    >>> cs.score(cube, cs.survival_auc(4)).values.round(4)
    array([0.4])
    """
    return _at("survival_auc", time)


def survival_brier(time: float) -> Metric:
    r"""Return the metric "Brier score at a time": squared error of the predicted probability to survive it.

    .. math:: \frac1N \sum_i \frac{d_i I(T_i \le t)}{\hat G(T_i-)} S_i(t)^2
              + \frac{I(T_i > t)}{\hat G(t)} (1 - S_i(t))^2

    with d = 1 for observed events and S the predicted probability to survive t. It judges calibration and ranking
    together. NaN when nobody is under observation beyond t.

    Parameters
    ----------
    time : float
        The horizon t, in the unit of the labels; predictions must have it.

    Returns
    -------
    Metric
        Called, for instance, ``survival_brier(5)`` in results; for survival probabilities (``kind="probability"``) with
        that ``horizon``.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher (1999). Assessment and comparison of prognostic classification schemes.
    doi:10.1002/(SICI)1097-0258(19990915/30)18:17/18<2529::AID-SIM274>3.0.CO;2-5.

    Examples
    --------
    >>> import cvstats as cs, xarray as xr
    >>> p = xr.DataArray([[[0.2]], [[0.6]], [[0.9]]], dims=("sample", "configuration", "horizon"))
    >>> cube = cs.as_cube(p.assign_coords(horizon=[5.0]), [1.0, 4.0, 6.0], event=[1, 1, 0], kind="probability")
    >>> cs.score(cube, cs.survival_brier(5)).values.round(4)
    array([0.1367])
    """
    return _at("survival_brier", time)


def survival_observed_expected(time: float) -> Metric:
    r"""Return the metric "observed over expected events at a time": calibration in the large at a horizon.

    .. math:: \frac{1 - \widehat{KM}(t)}{\frac1N \sum_i 1 - S_i(t)}

    with Kaplan-Meier's estimate of survival above and the predicted probability to survive t below. The target is 1;
    above it, predictions are too hopeful. NaN when nobody is under observation until t. It may judge, but never
    choose.

    Parameters
    ----------
    time : float
        The horizon t, in the unit of the labels; predictions must have it.

    Returns
    -------
    Metric
        Called, for instance, ``survival_observed_expected(5)`` in results; for survival probabilities
        (``kind="probability"``) with that ``horizon``.

    References
    ----------
    McLernon, Giardiello, Van Calster, et al. (2023), doi:10.7326/M22-0844.

    Examples
    --------
    >>> import cvstats as cs, xarray as xr
    >>> p = xr.DataArray([[[0.2]], [[0.6]], [[0.9]]], dims=("sample", "configuration", "horizon"))
    >>> cube = cs.as_cube(p.assign_coords(horizon=[5.0]), [1.0, 4.0, 6.0], event=[1, 1, 0], kind="probability")
    >>> cs.score(cube, cs.survival_observed_expected(5)).values.round(4)
    array([1.5385])
    """
    return _at("survival_observed_expected", time)


def _at(name: str, time: float, word: str = "at") -> Metric:
    if not is_number(time) or not 0 < time < np.inf:
        raise InputError(f"`time` must be a finite time above 0, in the unit of the labels; got {time!r}.")
    made = MADE[name]
    return replace(made, name=f"{name}({time:.12g})", words=f"{made.words} {word} {time:.12g}", time=float(time))


def _bind(metric: Metric, cube: xr.DataArray, notes: list[str]) -> Metric:
    """Check that the cube has what the metric reads; there is nothing to fill in."""
    kind, what = str(cube.coords["kind"].item()), f"metric {metric.name!r}"
    if metric.statistic != "survival_auc" and kind != "probability":
        raise InputError(f"{what} needs survival probabilities (kind='probability'), but the cube has kind={kind!r}.")
    if "horizon" in cube.coords and metric.time not in np.ravel(cube.coords["horizon"].values):
        raise InputError(
            f"{what} needs predictions for that time; the cube has the horizons "
            f"{show(np.ravel(cube.coords['horizon'].values))}."
        )
    return metric


_MEAN = _SURVIVAL | {"family": "smooth", "bind": _bind}
_BIN = SHARE | _MEAN
_TRAITS: dict[str, dict[str, Any]] = {
    "truncated_concordance": _UNO,
    "survival_auc": _RANK | {"words": "time-dependent AUC", "bind": _bind, "aliases": ("roc_auc_survival",)},
    "survival_brier": _MEAN
    | {"direction": "minimize", "range": (0.0, 1.0), "scale": "log"}
    | {"words": "Brier score", "aliases": ("brier_survival", "surv.graf")},
    "survival_observed_expected": _MEAN
    | {"direction": "target", "range": (0.0, np.inf), "target": 1.0, "words": "observed over expected events"},
    "survival_bin_observed": _BIN | {"words": "share of events"},
    "survival_bin_predicted": _BIN | {"words": "mean predicted risk"},
    "survival_bin_size": _BIN | {"words": "samples", "range": (0.0, np.inf), "scale": "plain"},
}
MADE |= {name: Metric(name, **{"statistic": name, **traits}) for name, traits in _TRAITS.items()}


def bin_at(name: str, time: float, number: int) -> Metric:
    """Return the metric that is one bin of the calibration curve at a time."""
    made = _at(name, time)
    return replace(made, name=f"{name}({number})", words=f"{MADE[name].words} in bin {number}", at=(float(number),))
