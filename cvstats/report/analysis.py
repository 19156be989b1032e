"""One analysis of a cube: everything the command line and the report show, each part computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, listened, show
from cvstats.compare.best import best_of
from cvstats.cube.arrays import batch_dims, check_cube, class_names, coverage
from cvstats.describe import describe_cube
from cvstats.formats import _report
from cvstats.intervals import check_times
from cvstats.metrics import Metric, at_prior, bound_metric, get_metric, metric_set, score
from cvstats.protocols import PROTOCOLS
from cvstats.protocols.bootstrap import bbc, doubts
from cvstats.protocols.bootstrap_winner import winner
from cvstats.protocols.nested import ncv
from cvstats.protocols.optimism import Tables, curve_of, score_tables
from cvstats.protocols.separate import prior_curve, prior_reweighted_cv, separate_cv
from cvstats.protocols.tibshirani import tt
from cvstats.protocols.tuned import cvm_cv, cvt
from cvstats.resample import Draws, Part, make_draws
from cvstats.tables.words import level_words, limits_text, number, places_of, printable, spread_of

from .design import Design, design_of

FEW_DRAWS = 200  # of what stands beside the estimate, where all would take longer than the estimate itself
MUCH, MANY = 2e8, 1e7  # predictions times draws, and samples times draws, beyond which that is so


def default_metric(cube: xr.DataArray) -> str | Metric:
    """Return the metric for a kind of labels: what most readers expect to see.

    Survival: concordance; with predictions for several times the Brier score (of risks AUC) at the middle one. Numbers:
    mse. Scores or probabilities of two classes: auc. Classes, and probabilities of more than two classes: accuracy,
    which is defined in every fold and draw; its balanced form where the class ratio is the analyst's, because classes
    were sampled separately.
    """
    if "event" in cube.coords:
        by_time = metric_set(cube) if cube.sizes.get("horizon", 1) > 1 else []
        return by_time[cube.sizes["horizon"] // 2] if by_time else "concordance"
    kind = str(cube.coords["kind"].item())
    if kind == "value":
        return "mse"
    if kind in ("score", "probability") and "label_class" not in cube.dims:
        return "auc"
    return "balanced_accuracy" if "partner" in cube.dims else "accuracy"


def check_one(cube: xr.DataArray) -> None:
    """Raise unless the cube is one data set of cross-validation predictions."""
    check_cube(cube)
    if "outer_fold" in cube.dims:
        raise InputError(
            "`cube` holds inner predictions (dimension 'outer_fold'); give the outer ones, and these as `inner`."
        )
    if batch_dims(cube):
        raise InputError(f"`cube` has batch dims {show(batch_dims(cube))}; pick one data set first with .sel().")


@dataclass(eq=False)
class Analysis:
    """What was asked, and what was found: `winner` is what to report, everything else stands beside it.

    A part is computed when it is first asked for, and kept. All parts that resample share one set of draws.
    """

    cube: xr.DataArray
    asked: str | Metric | Sequence[str | Metric] | None = None  # metrics; by default by the kind of labels
    inner: xr.DataArray | None = None
    regime: str = "cv"
    times: int = 1000
    seed: int = 1
    level: float = 0.95
    progress: bool = False
    by: str | Metric | None = None  # the metric that chooses; by default the first
    adjust: Any = None
    subgroup: str | None = None
    prior: Mapping[Any, float] | None = None  # class probabilities of the population, if not those of the samples

    def __post_init__(self) -> None:
        check_one(self.cube)
        check_level(self.level)
        self.times = check_times(self.times, self.level, "percentile")  # of the published method
        self._heard: list[str] = []  # what the functions warned of
        self.skipped: dict[str, str] = {}  # why a protocol is not among the results

    @property
    def named(self) -> list[str | Metric]:
        """The metrics that were asked for, or the usual one."""
        asked = self.asked
        if asked is None:
            asked = "error_rate" if self.prior is not None and self.labelled else default_metric(self.cube)
        metrics = [asked] if isinstance(asked, (str, Metric)) else list(asked)
        if not metrics:
            raise InputError("`metric` is an empty list; name at least one metric.")
        return metrics

    @property
    def metrics(self) -> list[str | Metric]:
        """The metrics, in the population whose class probabilities were given."""
        return [self._in_population(metric) for metric in self.named]

    def _in_population(self, metric: str | Metric) -> str | Metric:
        if self.prior is None or get_metric(metric).ratio_free:
            return metric
        return at_prior(metric, self.prior)

    @property
    def labelled(self) -> bool:
        """Whether the predictions say which class, so that class errors exist."""
        return class_names(self.cube) is not None and ("threshold" in self.cube.coords or self.kind != "score")

    @property
    def kind(self) -> str:
        """What the predictions are."""
        return str(self.cube.coords["kind"].item())

    @property
    def cut(self) -> str:
        """Above which threshold predictions are positive, in words, where they are."""
        found = None if self.decision is None else self.decision.get("threshold")
        found = self.cube.coords.get("threshold") if found is None else found
        return f"positive above {float(found):.4g}" if found is not None and "positive" in self.cube.coords else ""

    @cached_property
    def population(self) -> xr.Dataset | None:
        """Class errors, and the error in the population if a prior was given; for separately sampled classes always."""
        separate = "partner" in self.cube.dims
        if not self.labelled or not (separate or self.prior is not None):
            return None
        function: Any = separate_cv if separate else prior_reweighted_cv
        how = {"prior": self.prior, "level": self.level, "times": self.times, "rng": self.seed}
        out: xr.Dataset = listened([], lambda: function(self.cube, **how))
        return out

    @cached_property
    def prior_line(self) -> xr.Dataset | None:
        """The error by the probability of the class that the prior names, or of the positive one; for two classes."""
        names = class_names(self.cube) or []
        if self.population is None or len(names) != 2:
            return None
        of = next(iter(self.prior)) if self.prior else names[1]
        how: dict[str, Any] = {"prior": {of: np.linspace(0, 1, 101)}, "level": self.level, "times": self.times}
        return listened([], lambda: prior_curve(self.cube, rng=self.seed, **how))

    @cached_property
    def metric(self) -> Metric:
        """The metric, with what it must know of the cube."""
        asked = self.metrics[0] if self.by is None else self._in_population(get_metric(self.by, "by"))
        return listened(self._heard, lambda: bound_metric(asked, self.cube))

    @property
    def within_class(self) -> bool:
        """Whether samples are drawn within class, because the metric needs every class and no group mixes them."""
        return self.draws.strata is not None

    @cached_property
    def draws(self) -> Draws:
        """The bootstrap that all parts share."""
        return make_draws(self.cube, self.metric, self.times, self.seed, "auto").remembered()

    @cached_property
    def plain_draws(self) -> Draws:
        """The same for what depends on the class ratio, and for the published method: drawn without strata."""
        if not self.within_class:
            return self.draws
        return make_draws(self.cube, self.metric, self.times, self.seed, None).remembered()

    @cached_property
    def results(self) -> dict[str, xr.Dataset]:
        """All estimates, and why the others could not be computed."""
        cube, metric, inner, heard = self.cube, self.metric, self.inner, self._heard
        common: dict[str, Any] = {"times": self.times, "rng": self.seed, "level": self.level, "progress": self.progress}
        ours = {"inner": inner, "regime": self.regime, "draws": self.draws, **common}
        papers = {"draws": self.plain_draws, **common}
        results, skipped = {"winner": listened(heard, lambda: winner(cube, metric, **ours))}, {}
        if np.isnan(float(results["winner"]["naive"])):
            said = " ".join(heard)
            raise InputError(f"`metric`: no configuration won, because {metric.name} is undefined for all. {said}")
        results["bbc"] = listened(heard, lambda: bbc(cube, metric, **papers))
        attempts: dict[str, Callable[[], xr.Dataset]] = {
            "ncv": lambda: ncv(_outer(cube, inner), metric, inner=inner),
            "cvm_cv": lambda: cvm_cv(cube, metric),
            "tt": lambda: tt(cube, metric),
        }
        for name, attempt in attempts.items():
            reason, quiet = PROTOCOLS[name].applies(cube), list[str]()
            if name == "ncv" and inner is None:
                reason = "no inner predictions were saved"
            try:
                outcome = None if reason else listened(quiet, attempt)
            except InputError as error:
                outcome, reason = None, str(error).rstrip(".")
            if outcome is not None and np.isfinite(float(outcome["estimate"])):
                results[name] = outcome
                heard.extend(quiet)
            else:
                skipped[name] = reason or "it is undefined here, for example because a fold lacks a class"
        results["cvt"] = listened([], lambda: cvt(cube, metric))
        self.skipped = skipped
        return results

    @property
    def winner(self) -> xr.Dataset:
        """What we recommend."""
        return self.results["winner"]

    @property
    def bbc(self) -> xr.Dataset:
        """The published method."""
        return self.results["bbc"]

    @cached_property
    def decision(self) -> xr.Dataset | None:
        """Several metrics, or subgroups, of one decision, if more than the score of a configuration was asked for."""
        by = None if self.by is None else self._in_population(self.by)
        what = {"by": by, "adjust": self.adjust, "subgroup": self.subgroup}
        single = self.asked is None or isinstance(self.asked, (str, Metric))
        if single and all(given is None for given in what.values()):
            return None
        how: dict[str, Any] = {"times": self.times, "rng": self.seed, "level": self.level, "progress": self.progress}
        how |= {**what, "inner": self.inner, "regime": self.regime}
        return listened(self._heard, lambda: winner(self.cube, self.metrics, **how))

    @cached_property
    def scores(self) -> xr.DataArray:
        """The plain score of every configuration."""
        return listened([], lambda: score(self.cube, self.metric))

    @cached_property
    def warned(self) -> list[str]:
        """The doubts, which several functions have, and then what else each of them warned of."""
        notes = doubts([(self.cube, coverage(self.cube), self.metric, self.scores.values)])
        said = "; ".join(notes)
        heard = self._heard if (self.results, self.decision) else []  # complete once everything is estimated
        rest = [text.replace(f": {said}; ", ": ") for text in heard if not text.endswith(f": {said}.")]
        return list(dict.fromkeys([*notes, *rest]))

    @cached_property
    def design(self) -> Design:
        """What the cube says about how the cross-validation was done."""
        return design_of(self.cube)

    @cached_property
    def source(self) -> dict[str, Any]:
        """What the reader of the file reported."""
        return _report.read(self.cube) or {}

    @cached_property
    def about(self) -> xr.Dataset:
        """What `describe_cube` says of the predictions."""
        return listened([], lambda: describe_cube(self.cube))

    @cached_property
    def tables(self) -> Tables:
        """The scores of all configurations in and out of the shared draws; of the first, when all would take long."""
        draws = self.draws if self.few == self.times else self.first_draws
        return score_tables(self.cube, self.metric, draws)

    @cached_property
    def first_draws(self) -> Draws:
        """The first of the draws, for what would take long with all of them."""
        return Part(self.draws, 0, min(self.times, FEW_DRAWS)).remembered()

    @cached_property
    def first_plain_draws(self) -> Draws:
        """The first of those without strata."""
        if not self.within_class:
            return self.first_draws
        return Part(self.plain_draws, 0, min(self.times, FEW_DRAWS)).remembered()

    @property
    def few(self) -> int:
        """How many of the draws the optimism, the set of the best and the families take."""
        much = self.cube.size * self.times > MUCH or self.cube.sizes["sample"] * self.times > MANY
        return min(self.times, FEW_DRAWS) if much else self.times

    @cached_property
    def contenders(self) -> xr.DataArray:
        """The configurations that won a draw, of a large cube: the first of the same draws choose among these."""
        if self.few == self.times:
            return self.cube
        won = (self.winner["win_rate"].values > 0) | (self.bbc["win_rate"].values > 0)
        won[self.chosen] = True
        return self.cube.isel(configuration=won)

    @cached_property
    def curve(self) -> xr.Dataset | None:
        """The optimism by number of configurations, where there are several."""
        if self.design.eligible < 2:
            return None
        return listened([], lambda: curve_of(self.cube, self.metric, self.tables, self.seed))

    @cached_property
    def best(self) -> xr.Dataset | None:
        """The configurations that cannot be told from the best, where there are several."""
        if self.design.eligible < 2:
            return None
        data, (table, *_) = self.tables
        return best_of(self.cube, self.metric, data, self.scores.values, table, self.level)

    @property
    def name(self) -> str:
        """What people call the metric."""
        return printable(self.metric.words)

    @property
    def single(self) -> bool:
        """Whether there is one configuration, so that nothing was chosen."""
        return self.design.configurations == 1

    @property
    def which(self) -> str:
        """Which configuration is spoken of."""
        return "configuration" if self.single else "selected configuration"

    @property
    def whose(self) -> str:
        """Whose performance it is, in words: nothing won where there is one configuration."""
        return "the configuration\u2019s" if self.single else "the winner\u2019s"

    @cached_property
    def places(self) -> int:
        """The decimals of every number in the metric's unit, from the recommended estimate's standard error."""
        return places_of(spread_of(self.winner), float(self.winner["estimate"]))

    def number(self, value: Any) -> str:
        """Return a number in the metric's unit."""
        return number(value, self.places)

    def limits(self, result: xr.Dataset) -> str:
        """Return ``0.86 to 0.96``, or an empty string without an interval."""
        return limits_text(result, self.places)

    @property
    def estimated(self) -> str:
        """The recommended estimate and its interval, in words."""
        limits = self.limits(self.winner)
        return self.number(self.winner["estimate"]) + (f" ({self.percentage} interval {limits})" if limits else "")

    @property
    def percentage(self) -> str:
        """The level of the interval in words."""
        return level_words(self.level)

    @property
    def truth(self) -> float:
        """The selected configuration's score on a test set, when the cube carries it (``test_<metric>``)."""
        name = f"test_{self.metric.name}"
        if name not in self.cube.coords or self.cube[name].dims != ("configuration",):
            return math.nan
        return float(self.cube[name].values[self.chosen])

    @property
    def chosen(self) -> int:
        """The place of the selected configuration."""
        return int(self.cube.indexes["configuration"].get_loc(self.winner["selected"].item()))


def _outer(cube: xr.DataArray, inner: xr.DataArray | None) -> xr.DataArray:
    """Return the cube restricted to the repeats that have inner predictions."""
    return cube.sel(repeat=inner["repeat"].values) if inner is not None and "repeat" in cube.dims else cube
