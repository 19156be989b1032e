"""The usual metrics of a kind of labels, by name."""

from __future__ import annotations

import xarray as xr

from cvstats._check import InputError, check_option

from .base import Metric, bound_metric
from .survival import survival_auc, survival_brier

SETS = {
    "binary": ("auc", "average_precision", "brier", "sensitivity", "specificity", "ppv", "npv"),
    "multiclass": ("auc", "accuracy", "balanced_accuracy", "log_loss"),
    "regression": ("rmse", "mae", "r2"),
    "survival": ("concordance",),
}


def metric_set(what: str | xr.DataArray) -> list[str | Metric]:
    """Return the metrics that are usually reported together, for a call such as ``winner(cube, metric_set(cube))``.

    The first chooses unless ``by=`` names another, and all describe the one decision it makes.

    Parameters
    ----------
    what : {"binary", "multiclass", "regression", "survival"} or DataArray
        A kind of labels; or a cube, whose kind is taken, without the metrics that its predictions do not allow (such
        as a Brier score of scores that are no probabilities).

    Returns
    -------
    list of str or Metric
        Names of metrics; of survival probabilities (or risks) at horizons the metrics at each. "binary": discrimination
        (AUC, average precision), the Brier score, and sensitivity, specificity and predictive values at the cube's
        threshold or at the one that ``adjust=cut(...)`` learns.

    References
    ----------
    Collins, Reitsma, Altman, Moons (2015), Transparent reporting of a multivariable prediction model for individual
    prognosis or diagnosis (TRIPOD), Annals of Internal Medicine 162, 55-63, doi:10.7326/M14-0697.

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.metric_set("regression")
    ['rmse', 'mae', 'r2']
    >>> cs.metric_set(cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6]], [1, 0, 1], kind="score"))
    ['auc', 'average_precision']
    """
    if not isinstance(what, xr.DataArray):
        check_option(what, tuple(SETS), "what")
        return list(SETS[what])
    if "event" in what.coords:
        kind = "survival"
        if "horizon" in what.dims:
            makers = (survival_brier, survival_auc)[str(what.coords["kind"].item()) == "score" :]
            return [make(time) for make in makers for time in what["horizon"].values.tolist()]
    elif str(what.coords["kind"].item()) == "value":
        kind = "regression"
    else:
        kind = "binary" if "positive" in what.coords else "multiclass"
    return [name for name in SETS[kind] if _fits(name, what)]


def _fits(name: str, cube: xr.DataArray) -> bool:
    try:
        bound_metric(name, cube, []).check_kind(cube)
    except InputError:
        return False
    return True
