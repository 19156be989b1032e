"""What was asked of a decision, checked: which metrics judge, which chooses, and what is done with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from cvstats._check import InputError
from cvstats.adjust import Adjustment, in_turn
from cvstats.cube.arrays import encode_labels, problem_on
from cvstats.cube.partners import models
from cvstats.kernels import Problem
from cvstats.metrics import Metric
from cvstats.metrics.scoring import REASONS, fold_members
from cvstats.select import Rules


def adjustment_of(adjust: Any, cube: xr.DataArray, metrics: Sequence[Metric]) -> Adjustment | None:
    """Return one adjustment that does what was asked for on this cube, or None."""
    if adjust is None:
        return None
    bound = in_turn([adjust] if isinstance(adjust, Adjustment) else adjust).bind(cube)
    bound.refuse(metrics)
    return bound


def stand_in(by: Metric, metrics: Sequence[Metric], adjust: Adjustment | None) -> Metric:
    """Return a metric that needs of draws what all of them need, and ignores the class ratio if all judges do."""
    if adjust is None and all(one is by for one in metrics):
        return by
    needs = {one.requires for one in (by, *metrics)} | ({"classes"} if adjust is not None and adjust.classes else set())
    strongest = "classes" if {"positive", "negative"} <= needs else max(needs, key=["", *REASONS].index)
    return replace(by, requires=strongest, ratio_free=all(one.ratio_free for one in metrics))


def problem_of(
    cube: xr.DataArray, by: Metric, metrics: Sequence[Metric], rules: Rules, *, compete: bool = True
) -> Problem:
    """Return the problem of a cube without batch dims, fit to choose by one metric and to judge by others."""
    if rules.plain and len(metrics) == 1 and metrics[0] is by:
        return problem_on(cube, by, compete=compete)
    if rules.adjust is not None and rules.adjust.cuts and "threshold" not in cube.coords:
        cube = cube.assign_coords(threshold=0.0)  # learned in every draw; what stands here is never read
    for one in metrics:
        one.check_kind(cube)
    every = (by, *metrics)
    finite = next((one for one in every if one.family != "rank" and one.uses in ("value", "margin")), by)
    data = problem_on(cube, finite, compete=compete)
    ranks = next((one for one in every if one.family == "rank"), None)
    if ranks is not None and ranks is not finite and "partner" in cube.dims:
        data = replace(data, model=models(cube, ranks.name, *encode_labels(cube)))
    if rules.average == "fold" and compete:
        if "partner" in cube.dims:
            raise InputError(
                "draws are averaged by fold for ordinary folds only: with partners every sample is in several folds. "
                "Leave average='fold' out; cvt() and tt() average over pairs of folds."
            )
        data = replace(data, fold=fold_members(cube)[1].astype(bool))
    return data
