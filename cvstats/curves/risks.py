"""Curves of predicted risks: whether they are right, and of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng
from cvstats._results import call_text
from cvstats.adjust import Adjustment
from cvstats.metrics import Metric, net_benefit, survival_brier
from cvstats.metrics.curves import point
from cvstats.metrics.survival import bin_at
from cvstats.select import Mixture, Select, select_best

from .points import GRID, along, judged

BINS = range(10)
THRESHOLDS = np.arange(1, 100) / 100


def calibration_curve(
    cube: xr.DataArray,
    *,
    binned: bool = False,
    horizon: float | None = None,
    by: str | Metric | None = None,
    select: Select | Mixture = select_best,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    subgroup: str | None = None,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
) -> xr.Dataset:
    """Return how often the event happens at each predicted risk, as it looks and corrected for what was chosen.

    Smooth: Cleveland's local regression of labels on predictions (lowess: tricube weights, lines, the nearest two
    thirds of the samples, no robustness), clipped to [0, 1]; given in the range of the final predictions; of more than
    1000 samples, neighbours are pooled to about 500 groups first (a change of less than .001). Binned: the
    share of events in ten bins between quantiles of the predictions. Each point is judged as `winner` judges any
    metric, with the same draws for all; case weights count as repeated rows. Of survival probabilities: at a
    `horizon`, binned by predicted risk, with Kaplan-Meier's estimate in each bin. Limits hold for single points; no
    band for the whole curve is known to hold.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`: two classes, probabilities; or survival times, survival probabilities.
    binned : bool
        Whether to count events in bins instead of smoothing.
    horizon : float, optional
        For survival times: the time that predictions are for; ``binned=True`` is needed.
    by : str or Metric, optional
        The metric that chooses; by default log loss, for survival times the Brier score at the horizon.
    select, adjust, subgroup : as in `winner`
        Who is chosen, what is done with predictions (such as `recalibrate`), and in whose levels they are judged.
    draws, times, rng, level : as in `winner`
        Draws (or how many, and their seed), and the level of the limits.

    Returns
    -------
    xarray.Dataset
        Over ``predicted`` (0, .01, ..., 1): ``estimate`` (the corrected share of events), ``conf_low``, ``conf_high``,
        ``naive``, ``optimism`` (how much nearer the diagonal ``naive`` is); and what `winner` says of the decision.
        Binned, over ``bin`` (0 to 9): the same, and ``predicted`` (mean prediction), ``observed`` (share of events, as
        it looks) and ``n`` (samples, or their weight) of each bin; bins that ties leave empty are NaN.

    References
    ----------
    Cleveland (1979), doi:10.1080/01621459.1979.10481038; Van Calster et al. (2019), doi:10.1186/s12916-019-1466-7.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> smooth = cs.calibration_curve(cube, by="brier", times=50, rng=1)
    >>> dict(smooth.estimate.sizes)
    {'predicted': 101}
    >>> bins = cs.calibration_curve(cube, binned=True, by="brier", times=50, rng=1)
    >>> int(bins.n.sum()) == cube.sizes["sample"]
    True
    """
    timed = isinstance(cube, xr.DataArray) and "event" in cube.coords
    if timed != (horizon is not None) or (timed and not binned):
        raise InputError(
            "a calibration curve of survival times needs `horizon`, a time, and binned=True."
            if timed
            else f"`horizon` is for survival times, and the cube has none (no `event`); got {horizon!r}."
        )
    if by is None:
        by = "log_loss" if horizon is None else survival_brier(horizon)
    asked = {"by": by, "select": select, "adjust": adjust, "subgroup": subgroup}
    more = {"draws": draws, "times": times, "rng": rng, "level": level}
    if binned:
        points, further = ([_bin(name, at, horizon) for at in BINS] for name in ("observed", "predicted"))
        further += [_bin("size", at, horizon) for at in BINS]
        out, rest = judged("calibration_curve", cube, "bin", np.array(BINS), points, *further, **asked, **more)
        predicted, n = (xr.concat(part, dim="bin").assign_coords(bin=np.array(BINS)) for part in (rest[:10], rest[10:]))
        out = along(out, "bin", predicted=predicted, observed=out["naive"], n=n)
        more_said = call_text("", binned=True, horizon=horizon)[1:-1]
        out.attrs["call"] = out.attrs["call"].replace("(", f"({more_said}, ", 1)
    else:
        points = [point("observed_at", risk) for risk in GRID]
        ends = point("predicted_quantile", 0.0), point("predicted_quantile", 1.0)
        out, (low, high) = judged("calibration_curve", cube, "predicted", GRID, points, *ends, **asked, **more)
        known = (out["predicted"] >= low - 1e-12) & (out["predicted"] <= high + 1e-12)
        over = [str(name) for name in out if "predicted" in out[name].dims and name != "n_draws"]
        out = along(out, "predicted", **{name: out[name].where(known) for name in over})
    away = {name: abs(out[name] - out["predicted"]) for name in ("estimate", "naive")}
    return along(out, "bin" if binned else "predicted", optimism=away["estimate"] - away["naive"])


def _bin(name: str, at: int, horizon: float | None) -> Metric:
    """Return what is counted in a bin."""
    if horizon is not None:
        return bin_at(f"survival_bin_{name}", horizon, at)
    made = point(f"bin_{name}", at)
    return replace(made, range=(0.0, np.inf)) if name == "size" else made


def decision_curve(
    cube: xr.DataArray,
    *,
    by: str | Metric = "auc",
    select: Select | Mixture = select_best,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    subgroup: str | None = None,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
) -> xr.Dataset:
    r"""Return the net benefit of what was chosen at every risk threshold, as it looks and corrected.

    At each threshold `net_benefit` is judged as `winner` judges any metric, with the same draws for all. Beside it
    stand the two policies that need no model, to treat everybody,

    .. math:: \pi - (1 - \pi) \frac{t}{1 - t}

    with :math:`\pi` the share of events, and to treat nobody (0). Limits hold for single points, and say nothing of the
    difference from either policy; no band for the whole curve is known to hold.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`: two classes, probabilities.
    by : str or Metric
        The metric that chooses.
    select, adjust, subgroup : as in `winner`
        Who is chosen, what is done with predictions (a `cut` is an error: the curve has its own thresholds), and in
        whose levels they are judged.
    draws, times, rng, level : as in `winner`
        Draws (or how many, and their seed), and the level of the limits.

    Returns
    -------
    xarray.Dataset
        Over ``threshold`` (.01 to .99): ``estimate`` (the corrected net benefit), ``conf_low``, ``conf_high``,
        ``naive``, ``optimism``, ``treat_all``, ``treat_none``, and ``interventions_avoided``, the net reduction of
        interventions per sample against treating everybody; and what `winner` says of the decision.

    References
    ----------
    Vickers, Elkin (2006), doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> curve = cs.decision_curve(cube, times=100, rng=1)
    >>> at = curve.sel(threshold=0.2)
    >>> bool(at.estimate > max(at.treat_all, at.treat_none))
    True
    """
    given = [] if adjust is None else [adjust] if isinstance(adjust, Adjustment) else list(adjust)
    if any(one.cuts for one in given if isinstance(one, Adjustment)):
        raise InputError("`adjust` holds a cut, but a decision curve has its own thresholds; leave it out.")
    points = [net_benefit(threshold) for threshold in THRESHOLDS]
    events = replace(points[0], name="share of events", ingredients=_events, range=(0.0, 1.0), curve="")
    asked = {"by": by, "select": select, "adjust": adjust, "subgroup": subgroup}
    out, (share,) = judged(
        "decision_curve", cube, "threshold", THRESHOLDS, points, events,
        **asked, draws=draws, times=times, rng=rng, level=level,
    )  # fmt: skip
    odds = out["threshold"] / (1 - out["threshold"])
    everybody = share - (1 - share) * odds
    avoided = (out["estimate"] - everybody) / odds
    nobody = xr.zeros_like(out["threshold"])
    return along(out, "threshold", treat_all=everybody, treat_none=nobody, interventions_avoided=avoided)


def _events(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    return [np.broadcast_to(y == 1, p.shape).astype(float)]
