"""The methods paragraph: sentences with every choice a reader needs, in plain text, Markdown or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files

import numpy as np
import xarray as xr

import cvstats
from cvstats.tables.render import latex_text
from cvstats.tables.words import better, estimate_text, metric_words, printable, several

from .analysis import Analysis
from .design import Design, of_class

TEXTS = json.loads((files("cvstats") / "data" / "report.json").read_text(encoding="utf-8"))
REFERENCES: dict[str, str] = TEXTS["references"]
PREPROCESSING = ("inside", "outside", "none")  # where it was fitted
TINY = 1e-12  # a variance below it is rounding
MARK = "\x00"  # on either side of a user's own text, which never holds it


def paragraph(analysis: Analysis, format: str, preprocessing: str | None = None) -> str:
    """Return the methods paragraph of an analysis."""
    pieces = " ".join(sentences(analysis, preprocessing)).split(MARK)
    writers = WRITERS[format]
    return "".join(writers[at % 2](piece) for at, piece in enumerate(pieces))


def named(text: object) -> str:
    """Return a user's own text, marked to be shown as it is."""
    return f"{MARK}{printable(text)}{MARK}"


def cite(key: str) -> str:
    """Return the citation in the text.

    >>> cite("tt"), cite("bbc"), cite("wilson")
    ('Tibshirani and Tibshirani 2009', 'Tsamardinos et al. 2018', 'Wilson 1927')
    """
    authors, _, rest = REFERENCES[key].partition(" (")
    first, *others = authors.split(", ")
    return first + (" et al." if len(others) > 1 else "".join(f" and {other}" for other in others)) + f" {rest[:4]}"


def references_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what the report must cite and its DOI, in the order of `REFERENCES`."""
    used = {"bbc", "implementations", *analysis.results} | ({"wilson"} if _wilson(analysis) else set())
    used |= {"separate_cv"} if analysis.population is not None else set()
    cited = [REFERENCES[key].partition(" doi:") for key in REFERENCES if key in used]
    return [(text, doi) for text, _, doi in cited]


def sentences(analysis: Analysis, preprocessing: str | None) -> Iterator[str]:
    """Yield the paragraph sentence by sentence."""
    design = analysis.design
    yield _data(analysis, design)
    yield _partition(design)
    yield _configurations(design)
    yield TEXTS["preprocessing"][preprocessing or "unknown"]
    yield from _choice(analysis, design)
    yield from _estimate(analysis, design)
    yield from _interval(analysis)
    yield _numbers(analysis)
    yield from _decision(analysis)
    yield from _population(analysis)
    if design.configurations > design.eligible:
        gone = several(design.configurations - design.eligible, "configuration")
        yield f"{gone} lacked predictions that others have and could not be selected."
    if design.samples > design.predicted:
        yield f"Samples without any prediction were left out ({design.samples - design.predicted})."
    if design.weighted:
        yield "Samples carry case weights, which multiply the bootstrap counts."
    yield f"Computed from the saved predictions with cvstats {cvstats.__version__} (seed {analysis.seed})."


def _data(analysis: Analysis, design: Design) -> str:
    text, cube = f"Out-of-sample predictions for {several(design.predicted, 'sample')}", analysis.cube
    if design.classes:
        sizes = ", ".join(f"{size} {of_class(name)}{named(name)}" for name, size in list(design.classes.items())[:6])
        more = f" and {len(design.classes) - 6} further classes" if len(design.classes) > 6 else ""
        text += f" ({sizes}{more})"
    elif design.events is not None:
        text += f" ({several(design.events, 'observed event')})"
    text += f" in {several(design.groups, 'group')}" if design.groups else ""
    text += " were analysed"
    if "positive" in cube.coords:
        text += f", with {named(cube.coords['positive'].item())} as the positive class"
        if analysis.metric.uses == "label" and "threshold" in cube.coords:
            text += f" (predicted above {float(cube.coords['threshold']):g})"
    return f"{text}."


def _partition(design: Design) -> str:
    times = several(design.repeats, "repeat") if design.repeats > 1 else ""
    if not design.folds:
        times = times and f" in {times}"
        if design.own_folds:
            return f"They come from cross-validation{times} in which configurations were split in different ways."
        return f"They come from resampling{times} whose folds were not saved [state the design here]."
    if design.leave_one_out:
        return "They come from leave-one-out cross-validation."
    if design.separate:
        folds = " and ".join(f"{number} folds of {named(name)}" for name, number in design.separate.items())
        return (
            f"Classes were sampled separately and divided into {folds}; every pair of folds was left out once"
            f"{times and f', in {times}'} ({cite('separate_cv')})."
        )
    if design.folds == 1:
        times = times and f" in {times}"
        return f"They come from resampling{times} with all samples in one fold [state the design here]."
    kind = {True: "stratified ", False: "unstratified ", None: ""}[design.stratified]
    whole = " Groups were kept whole in the bootstrap below." if design.groups else ""
    return f"They come from {times and f'{times} of '}{kind}{design.folds}-fold cross-validation.{whole}"


def _configurations(design: Design) -> str:
    if design.configurations == 1:
        return "One configuration was tried, so nothing was tuned on these predictions."
    text = f"{several(design.configurations, 'configuration')} (pipelines with their tuning values) were tried"
    ranges = [
        f"{named(name)} from {low:g} to {high:g} ({values} values)"
        for name, (low, high, values) in design.tuning.items()
    ]
    more = [f"and {len(ranges) - 6} further tuning values"] if len(ranges) > 6 else []
    return text + (f", with {'; '.join([*ranges[:6], *more])}." if ranges else ".")


def _choice(analysis: Analysis, design: Design) -> Iterator[str]:
    measure = f"{analysis.name} ({better(analysis.metric)})"
    average = " within each repeat and averaged over repeats" if design.repeats > 1 else ""
    if design.configurations == 1:
        yield f"Performance was measured by {measure}."
    else:
        yield (
            f"The configuration with the best {measure}, pooled over the held-out folds{average}, was selected; ties "
            "go to the first in the order given. The same predictions thus choose and would judge, so the "
            "selected configuration's own score is optimistic and is not reported as its performance."
        )
    yield (
        "The models were fixed before the samples were used; the estimate is for the selected model."
        if analysis.regime == "holdout"
        else f"The estimate is for the {analysis.which} refitted on all samples by the same process, "
        "preprocessing and tuning included."
    )


def _estimate(analysis: Analysis, design: Design) -> Iterator[str]:
    if design.configurations == 1:
        yield "With one configuration no correction for selection is needed."
        return
    draws = several(int(analysis.winner["n_draws"]), "bootstrap draw")
    unit = "groups" if design.groups else "samples"
    within = " within class" if analysis.within_class else ""
    more = {
        "bbc_cross_repeat": "; each repeat chose in turn and the other repeats judged",
        "bbc_ncv": f", and averaged with nested cross-validation ({cite('ncv')}) smoothed over draws",
        "bbc_x": "; its known pessimism for fixed models was removed (BBC-X)",
    }.get(str(analysis.winner["method"].item()), "")
    yield (
        f"Its performance was estimated by bootstrap bias-corrected cross-validation ({cite('bbc')}): in each of "
        f"{draws} of {unit}{within}, the configuration that is best on the drawn {unit} was judged on those left "
        f"out{more}."
    )
    yield "Ties within a draw were broken at random."


def _wilson(analysis: Analysis) -> bool:
    return bool(analysis.limits(analysis.winner)) and analysis.metric.scale == "unit"


def _interval(analysis: Analysis) -> Iterator[str]:
    kind = f"Wilson limits ({cite('wilson')})" if _wilson(analysis) else "limits on the log scale of the loss"
    if analysis.limits(analysis.winner):
        what, more = "is calibrated for selection:", " of all configurations, and the variance that selection adds"
        if analysis.single:
            what, more = "has", ""
        yield (
            f"The {analysis.percentage} interval {what} {kind} with Student's t and an effective sample size from the "
            f"bootstrap variance{more}; it is this package's own method{_constants(analysis)}."
        )


def _constants(analysis: Analysis) -> str:
    """Return the formula and its numbers, so that a reader could redo the limits."""
    parts = analysis.winner.get("calibration")
    if parts is None or parts.ndim != 1:
        return ""
    known = dict(zip(map(str, parts["calibration_part"].values), map(float, parts.values), strict=True))
    df, moved = f"t on {known['n'] - 1:.0f} degrees of freedom", ""
    if known["lift"] > 0:
        why = " and pooling the scores of folds costs" if analysis.metric.name == "auc" else ""
        moved = (
            f"; the limit on the better side then moves by {known['lift']:.4g} of its distance from the best value, "
            f"since models of all samples are better than those of folds{why}"
        )
    if not _wilson(analysis):
        few = ""
        if np.isfinite(known["misses"]) and known["unseen"]:
            few = (
                f"; with {known['misses']:.4g} misclassified samples it allows for as many errors as Clopper and "
                f"Pearson's limit does, each at a loss of {known['unseen']:.4g}"
            )
        return (
            f" (the log of the loss plus and minus t times a standard error of {known['first']:.4g}, {df}{few}{moved})"
        )
    added = known["extra"] if known["extra"] > TINY else 0.0
    text = (
        f" (limits of Wilson at a centre c as for c(1 - c) / [kappa c(1 - c) / n_eff + V] samples, with n_eff = "
        f"{known['first']:.4g}, kappa = {known['kappa']:.4g} and V = {added:.4g} on the scale from 0 to 1, "
        f"{df}"
    )
    if known["below"] != known["estimate"]:
        text += f"; the limit on the worse side is that at the centre {known['below']:.4g}"
    if np.isfinite(known["towards"]):
        text += (
            f"; the limit on the better side is at least that of {known['naive_first']:.4g} samples at the centre "
            f"{known['towards']:.4g}"
        )
    if np.isfinite(known["misses"]):
        text += (
            f"; the limit on the better side is at least 1 - g / n_eff, g the lower limit of Poisson's mean for "
            f"{max(known['misses'], 0.0):.4g} errors"
        )
    return f"{text}{moved})"


def _numbers(analysis: Analysis) -> str:
    best, who = analysis.winner, named(analysis.winner["selected"].item())
    text = f"The {analysis.which}, {who}, has an estimated {analysis.name} of {analysis.estimated}"
    if not analysis.single:
        text += f"; its uncorrected cross-validated score is {analysis.number(best['naive'])}"
        text += f", and BBC-CV as published gives {analysis.number(analysis.bbc['estimate'])}"
    return f"{text}."


def _decision(analysis: Analysis) -> Iterator[str]:
    found = analysis.decision
    if found is None:
        return
    parts = [found.sel(metric=name) for name in found["metric"].values] if found["estimate"].ndim == 1 else []
    values = "; ".join(f"{metric_words(one['metric'].item())} {estimate_text(one)}" for one in parts)
    yield (
        f"One decision, the choice by {metric_words(found['by'].item())}"
        f"{' with what was adjusted after it' if analysis.adjust is not None else ''}, made again in every draw, was "
        f"judged by every metric{values and ': '}{values}."
    )
    again = [float(one["estimate"]) for one in parts if one["metric"] == analysis.metric.name]
    if analysis.adjust is None and any(value != float(analysis.winner["estimate"]) for value in again):
        yield f"One set of draws serves all of these, so that {analysis.name} differs from the estimate with its own."
    if "threshold" in found:
        yield f"The threshold is {float(found['threshold']):.4g} on all samples and was learned again in every draw."


def _population(analysis: Analysis) -> Iterator[str]:
    found = analysis.population
    if found is None:
        return
    mine = found.isel(configuration=analysis.chosen)
    names = enumerate(mine["label_class"].values.tolist())
    errors = [f"{class_text(mine, at)} among {named(name)}" for at, name in names]
    corrected = "" if analysis.single else " (not corrected for selection)"
    yield f"The error of the {analysis.which} is {' and '.join(errors)}{corrected}."
    if "estimate" not in mine:
        yield "No error over both classes is given, because their ratio in the population was not stated."
        return
    share = ", ".join(f"{named(name)} {value:g}" for name, value in (analysis.prior or {}).items())
    how = (
        "which every pair of separate folds gives"
        if analysis.design.separate
        else "of ordinary folds, an approximation (prior-reweighted cross-validation) to separate-sampling "
        "cross-validation"
    )
    yield (
        f"For a population with class probabilities {share} the class errors, {how}, were weighted with them "
        f"({cite('separate_cv')}): {estimate_text(mine)}."
    )


def class_text(result: xr.Dataset, at: int) -> str:
    """Return the error of one class with its limits."""
    names = {"error": "estimate", "std_error": "std_error", "conf_low": "conf_low", "conf_high": "conf_high"}
    one = result.isel(label_class=at)
    return estimate_text(xr.Dataset({ours: one[f"class_{name}"].variable for name, ours in names.items()}))


def _markdown(text: str) -> str:
    return text.translate({ord(mark): "\\" + mark for mark in "\\`*_[]<>#|"})


def _markdown_code(text: str) -> str:
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


WRITERS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {  # of our words, and of a user's own text
    "text": (str, str),
    "markdown": (_markdown, _markdown_code),
    "latex": (latex_text, lambda text: f"\\texttt{{{latex_text(text)}}}"),
}
