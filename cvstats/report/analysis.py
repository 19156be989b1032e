"""One analysis of a cube: everything the command line and the report show, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_count, check_level, listened, show
from cvstats.cube.arrays import batch_dims, encode_labels
from cvstats.cube.blocks import coverage, predicted
from cvstats.cube.make import check_cube, class_names
from cvstats.metrics import Metric, bound_metric, score
from cvstats.protocols.doubts import Doubts

CURVE_DRAWS, CURVE_WORK = 200, 5e9  # fewer draws for the curve when predictions times draws exceed this


@dataclass(frozen=True)
class Analysis:
    """What was computed; `winner` is what to report, everything else stands beside it."""

    cube: xr.DataArray
    metric: Metric
    inner: xr.DataArray | None
    regime: str
    times: int
    seed: int
    level: float
    winner: xr.Dataset
    bbc: xr.Dataset
    others: dict[str, xr.Dataset]  # ncv, cvm_cv, tt, cvt: from the most honest to the claim
    skipped: dict[str, str]  # method -> why it could not be computed
    scores: xr.DataArray
    curve: xr.Dataset | None = None
    best: xr.Dataset | None = None
    about: xr.Dataset | None = None  # from describe_cube
    warned: list[str] = field(default_factory=list)

    @property
    def results(self) -> dict[str, xr.Dataset]:
        """All estimates, the recommended one first and the claim last."""
        return {"winner": self.winner, "bbc": self.bbc, **self.others}


def default_metric(cube: xr.DataArray) -> str:
    """Return the metric for a kind of labels: what most readers expect to see.

    Survival: concordance. Numbers: mse. Scores or probabilities of two classes: auc. Classes, and probabilities of
    more than two classes: accuracy, which is defined in every fold and draw.
    """
    if "event" in cube.coords:
        return "concordance"
    kind = str(cube.coords["kind"].item())
    if kind == "value":
        return "mse"
    return "auc" if kind in ("score", "probability") and "label_class" not in cube.dims else "accuracy"


def check_one(cube: xr.DataArray) -> None:
    """Raise unless the cube is one data set of ordinary cross-validation predictions."""
    check_cube(cube)
    if "partner" in cube.dims:
        raise InputError("`cube` is a separate-sampling cube (dimension 'partner'); use separate_cv() for it.")
    if "outer_fold" in cube.dims:
        raise InputError(
            "`cube` holds inner predictions (dimension 'outer_fold'); give the outer ones, and these as `inner`."
        )
    if batch_dims(cube):
        raise InputError(f"`cube` has batch dims {show(batch_dims(cube))}; pick one data set first with .sel().")


def analyse(
    cube: xr.DataArray,
    metric: str | Metric | None = None,
    *,
    inner: xr.DataArray | None = None,
    regime: str = "cv",
    times: int = 1000,
    seed: int = 1,
    level: float = 0.95,
    extras: bool = True,
    progress: bool = False,
) -> Analysis:
    """Return the recommended estimate, the others beside it, and (with `extras`) the curve and the best set."""
    from cvstats.protocols.bootstrap import bbc
    from cvstats.protocols.bootstrap_winner import _same_repeats, winner
    from cvstats.protocols.nested import ncv
    from cvstats.protocols.tibshirani import tt
    from cvstats.protocols.tuned import cvm_cv, cvt

    check_one(cube)
    warned: list[str] = []
    found = listened(warned, lambda: bound_metric(default_metric(cube) if metric is None else metric, cube))
    check_count(times, "times")
    check_level(level)
    common: dict[str, Any] = {"times": times, "rng": seed, "level": level, "progress": progress}
    recommended = listened(warned, lambda: winner(cube, found, inner=inner, regime=regime, **common))
    if np.isnan(float(recommended["naive"])):
        raise InputError(
            f"`metric`: no configuration won, because {found.name} is undefined for all. {' '.join(warned)}"
        )
    paper = listened(warned, lambda: bbc(cube, found, **common))
    others: dict[str, xr.Dataset] = {}
    skipped: dict[str, str] = {}
    attempts: dict[str, Callable[[], xr.Dataset]] = {
        "ncv": lambda: ncv(_same_repeats(cube, inner), found, inner=inner),  # type: ignore[arg-type]
        "cvm_cv": lambda: cvm_cv(cube, found),
        "tt": lambda: tt(cube, found),
    }
    reasons = {
        "ncv": "" if inner is not None else "no inner predictions were saved",
        "cvm_cv": "" if cube.sizes.get("repeat", 1) > 1 else "it needs two repeats",
        "tt": "" if "fold" in cube.coords else "the folds were not saved",
    }
    skipped |= {name: reason for name, reason in reasons.items() if reason}
    for name, attempt in attempts.items():
        if name in skipped:
            continue
        quiet: list[str] = []
        try:
            outcome = listened(quiet, attempt)
        except InputError as error:
            skipped[name] = str(error).rstrip(".")
            continue
        if np.isfinite(float(outcome["estimate"])):
            others[name] = outcome
            warned.extend(quiet)
        else:
            skipped[name] = "it is undefined here, for example because a fold lacks a class"
    others["cvt"] = listened([], lambda: cvt(cube, found))
    scores = listened([], lambda: score(cube, found))
    doubts = Doubts()
    doubts.add(cube, coverage(cube), found, scores.values)
    curve = best = about = None
    if extras:
        from cvstats.compare.best import best_set
        from cvstats.describe import describe_cube
        from cvstats.protocols.optimism import optimism_curve

        about = listened([], lambda: describe_cube(cube))
        if int(predicted(cube)[1].sum()) > 1:
            draws = times if cube.size * times <= CURVE_WORK else min(times, CURVE_DRAWS)
            curve = listened([], lambda: optimism_curve(cube, found, times=draws, rng=seed))
            best = listened([], lambda: best_set(cube, found, level=level, times=draws, rng=seed))
    return Analysis(
        cube=cube,
        metric=found,
        inner=inner,
        regime=regime,
        times=times,
        seed=seed,
        level=level,
        winner=recommended,
        bbc=paper,
        others=others,
        skipped=skipped,
        scores=scores,
        curve=curve,
        best=best,
        about=about,
        warned=once(doubts.notes(), warned),
    )


def once(doubts: list[str], warned: list[str]) -> list[str]:
    """Return the doubts, which several functions have, and then what else each of them warned of."""
    said = "; ".join(doubts)
    rest = [text.replace(f": {said}; ", ": ") for text in warned if not text.endswith(f": {said}.")]
    return list(dict.fromkeys([*doubts, *rest]))


@dataclass(frozen=True)
class Design:
    """What the cube says about how the cross-validation was done."""

    samples: int
    predicted: int
    configurations: int
    eligible: int
    repeats: int
    folds: int  # of one repeat; 0 when not saved
    smallest_fold: int
    largest_fold: int
    stratified: bool | None  # None when there are no classes or folds
    classes: dict[str, int]
    groups: int
    weighted: bool
    events: int | None
    tuning: dict[str, tuple[Any, Any, int]]  # name -> smallest, largest, number of values

    @property
    def leave_one_out(self) -> bool:
        """Whether every fold holds one sample."""
        return self.folds > 1 and self.largest_fold == 1


def design_of(cube: xr.DataArray) -> Design:
    """Return sizes, folds, classes and tuning values of a cube without batch dims."""
    rows, eligible = predicted(cube)
    folds, smallest, largest, stratified = _fold_facts(cube)
    names = class_names(cube)
    classes: dict[str, int] = {}
    if names is not None:
        codes, _ = encode_labels(cube)
        classes = {str(name): int((codes == code).sum()) for code, name in enumerate(names) if name is not None}
    return Design(
        samples=cube.sizes["sample"],
        predicted=int(rows.sum()),
        configurations=cube.sizes["configuration"],
        eligible=int(eligible.sum()),
        repeats=cube.sizes.get("repeat", 1),
        folds=folds,
        smallest_fold=smallest,
        largest_fold=largest,
        stratified=stratified,
        classes=classes,
        groups=len(pd.unique(cube["group"].values)) if "group" in cube.coords else 0,
        weighted="weight" in cube.coords,
        events=int((cube["event"].values == 1).sum()) if "event" in cube.coords else None,
        tuning=_tuning(cube),
    )


def _fold_facts(cube: xr.DataArray) -> tuple[int, int, int, bool | None]:
    """Return folds per repeat, smallest and largest fold, and whether classes are spread evenly over them."""
    if "fold" not in cube.coords or not set(cube["fold"].dims) <= {"sample", "repeat"}:
        return 0, 0, 0, None
    ids = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    held = ids != (-1 if ids.dtype.kind in "iu" else "")
    codes = encode_labels(cube)[0] if class_names(cube) is not None else None
    counts, sizes, even = [], [], True
    for column, inside in zip(ids.T, held.T, strict=True):
        number, names = pd.factorize(column[inside])
        size = np.bincount(number)
        counts.append(len(names))
        sizes.extend(size.tolist())
        if codes is not None:
            for code in np.unique(codes[inside]):
                member = np.bincount(number[codes[inside] == code], minlength=len(names))
                even = even and bool(np.ptp(member) <= 1 if np.ptp(size) <= 1 else np.ptp(member) <= 2)
    stratified = even if codes is not None and sizes and max(sizes) > 1 else None
    return max(counts), min(sizes, default=0), max(sizes, default=0), stratified


def _tuning(cube: xr.DataArray) -> dict[str, tuple[Any, Any, int]]:
    """Return the range of every numeric tuning value that varies; test results are no tuning values."""
    found = {}
    for name, coord in cube.coords.items():
        if coord.dims != ("configuration",) or name == "configuration" or coord.dtype.kind not in "fiu":
            continue
        values = coord.values.astype(float)
        values = np.unique(values[np.isfinite(values)])
        if len(values) > 1 and str(name) not in ("complexity", "truth") and not str(name).startswith("test_"):
            found[str(name)] = (float(values[0]), float(values[-1]), len(values))
    return found
