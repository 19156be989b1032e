"""The methods paragraph: sentences with every choice a reader needs, in plain text, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cvstats
from cvstats.tables.render import latex_text
from cvstats.tables.words import better, limits_text, number, printable, several

from .analysis import Analysis
from .design import Design

REFERENCES = {  # how the text cites it, what it is, its DOI
    "bbc": (
        "Tsamardinos et al. 2018",
        "Tsamardinos, Greasidou, Borboudakis (2018). Bootstrapping the out-of-sample predictions for efficient and "
        "accurate cross-validation. Machine Learning 107, 1895-1922.",
        "10.1007/s10994-018-5714-4",
    ),
    "cvm_cv": (
        "Tsamardinos et al. 2015",
        "Tsamardinos, Rakhshani, Lagani (2015). Performance-estimation properties of cross-validation-based protocols "
        "with simultaneous hyper-parameter optimization. Int. J. Artificial Intelligence Tools 24, 1540023.",
        "10.1142/S0218213015400230",
    ),
    "implementations": (
        "Winderbaum and Koch 2022",
        "Winderbaum, Koch (2022). Cross-validation for supervised learning with tuning parameters. "
        "J. Statistics and Computer Science 1, 89-106.",
        "10.47509/JSCS.2022.v01i01.05",
    ),
    "tt": (
        "Tibshirani and Tibshirani 2009",
        "Tibshirani, Tibshirani (2009). A bias correction for the minimum error rate in cross-validation. "
        "Annals of Applied Statistics 3, 822-829.",
        "10.1214/08-AOAS224",
    ),
    "ncv": (
        "Varma and Simon 2006",
        "Varma, Simon (2006). Bias in error estimation when using cross-validation for model selection. "
        "BMC Bioinformatics 7, 91.",
        "10.1186/1471-2105-7-91",
    ),
    "wilson": (
        "Wilson 1927",
        "Wilson (1927). Probable inference, the law of succession, and statistical inference. "
        "J. American Statistical Association 22, 209-212.",
        "10.1080/01621459.1927.10502953",
    ),
}
PREPROCESSING = {
    "inside": "All data-dependent preprocessing (scaling, dimension reduction, variable selection) was fitted within "
    "each training set and applied to the held-out fold, [Pi1] of Winderbaum and Koch 2022.",
    "outside": "Data-dependent preprocessing was fitted on all samples before splitting, [Pi2] of Winderbaum and Koch "
    "2022: the held-out folds influenced the models, and every estimate below may be optimistic for that reason, "
    "which no analysis of saved predictions can correct.",
    "none": "No step that learns from the data preceded the models.",
}
UNKNOWN_PREPROCESSING = (
    "[State whether preprocessing that learns from the data (scaling, dimension reduction, variable selection) was "
    "fitted within each training set, Pi1, or on all samples before splitting, Pi2: saved predictions cannot tell.]"
)


@dataclass(frozen=True)
class Name:
    """A user's own text, shown as it is."""

    text: str


Part = str | Name


def paragraph(analysis: Analysis, format: str, preprocessing: str | None = None) -> str:
    """Return the methods paragraph of an analysis."""
    escape, name = WRITERS[format]
    return " ".join(
        "".join(name(part.text) if isinstance(part, Name) else escape(part) for part in sentence)
        for sentence in methods_sentences(analysis, preprocessing)
    )


def cite(key: str) -> str:
    """Return the citation in the text."""
    return f"({REFERENCES[key][0]})"


def references_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what the report must cite and its DOI, in the order of `REFERENCES`."""
    used = {"bbc", "implementations", *analysis.results} | ({"wilson"} if _wilson(analysis) else set())
    return [(text, doi) for key, (_, text, doi) in REFERENCES.items() if key in used]


def methods_sentences(analysis: Analysis, preprocessing: str | None) -> list[list[Part]]:
    """Return the paragraph sentence by sentence."""
    design = analysis.design
    return [
        _data(analysis, design),
        _partition(design),
        _configurations(design),
        [PREPROCESSING[preprocessing] if preprocessing else UNKNOWN_PREPROCESSING],
        _choice(analysis, design),
        _refit(analysis),
        *_estimate(analysis, design),
        *_interval(analysis),
        _numbers(analysis),
        *_missing(design),
        [f"Computed from the saved predictions with cvstats {cvstats.__version__} (seed {analysis.seed})."],
    ]


def _data(analysis: Analysis, design: Design) -> list[Part]:
    parts: list[Part] = [f"Out-of-sample predictions for {several(design.predicted, 'sample')}"]
    if design.classes:
        sizes = list(design.classes.items())
        parts.append(" (")
        for at, (name, size) in enumerate(sizes[:6]):
            parts += [f"{', ' if at else ''}{size} ", Name(name)]
        parts.append(f" and {len(sizes) - 6} further classes)" if len(sizes) > 6 else ")")
    elif design.events is not None:
        parts.append(f" ({several(design.events, 'observed event')})")
    if design.groups:
        parts.append(f" in {several(design.groups, 'group')}")
    parts.append(" were analysed")
    if "positive" in analysis.cube.coords:
        parts += [", with ", Name(printable(analysis.cube.coords["positive"].item())), " as the positive class"]
        if analysis.metric.uses == "label" and "threshold" in analysis.cube.coords:
            parts.append(f" (predicted above {float(analysis.cube.coords['threshold']):g})")
    return [*parts, "."]


def _partition(design: Design) -> list[Part]:
    if not design.folds:
        times = f" in {several(design.repeats, 'repeat')}" if design.repeats > 1 else ""
        return [f"They come from resampling{times} whose folds were not saved [state the design here]."]
    if design.leave_one_out:
        return ["They come from leave-one-out cross-validation."]
    kind = {True: "stratified ", False: "unstratified ", None: ""}[design.stratified]
    times = f"{several(design.repeats, 'repeat')} of " if design.repeats > 1 else ""
    whole = " Groups were kept whole in the bootstrap below." if design.groups else ""
    return [f"They come from {times}{kind}{design.folds}-fold cross-validation.{whole}"]


def _configurations(design: Design) -> list[Part]:
    if design.configurations == 1:
        return ["One configuration was tried, so nothing was tuned on these predictions."]
    parts: list[Part] = [
        f"{several(design.configurations, 'configuration')} (pipelines with their tuning values) were tried"
    ]
    if design.tuning:
        parts.append(", with ")
        for at, (name, (low, high, values)) in enumerate(list(design.tuning.items())[:6]):
            parts += ["; " if at else "", Name(printable(name)), f" from {low:g} to {high:g} ({values} values)"]
        if len(design.tuning) > 6:
            parts.append(f"; and {len(design.tuning) - 6} further tuning values")
    return [*parts, "."]


def _choice(analysis: Analysis, design: Design) -> list[Part]:
    measure = f"{analysis.name} ({better(analysis.metric)})"
    if design.configurations == 1:
        return [f"Performance was measured by {measure}."]
    average = " within each repeat and averaged over repeats" if design.repeats > 1 else ""
    return [
        f"The configuration with the best {measure}, pooled over the held-out folds{average}, was selected; ties go to "
        "the first in the order given. The same predictions thus choose and would judge ([CV1]), so the selected "
        "configuration's own score is optimistic and is not reported as its performance."
    ]


def _refit(analysis: Analysis) -> list[Part]:
    if analysis.regime == "holdout":
        return ["The models were fixed before the samples were used; the estimate is for the selected model."]
    return [
        "The estimate is for the selected configuration refitted on all samples by the same process, "
        "preprocessing and tuning included."
    ]


def _estimate(analysis: Analysis, design: Design) -> list[list[Part]]:
    if design.configurations == 1:
        return [["With one configuration no correction for selection is needed."]]
    draws = several(int(analysis.winner["n_draws"]), "bootstrap draw")
    unit = "groups" if design.groups else "samples"
    within = " within class" if analysis.within_class else ""
    more = {
        "bbc_cross_repeat": "; each repeat chose in turn and the other repeats judged",
        "bbc_ncv": f", and averaged with nested cross-validation {cite('ncv')} smoothed over draws",
        "bbc_x": "; its known pessimism for fixed models was removed (BBC-X)",
    }.get(str(analysis.winner["method"].item()), "")
    first = (
        f"Its performance was estimated by bootstrap bias-corrected cross-validation {cite('bbc')}: in each of {draws} "
        f"of {unit}{within}, the configuration that is best on the drawn {unit} was judged on those left out{more}."
    )
    return [[first], ["Ties within a draw were broken at random."]]


def _wilson(analysis: Analysis) -> bool:
    return str(analysis.winner["interval"].item()) == "calibrated" and analysis.metric.scale == "unit"


def _interval(analysis: Analysis) -> list[list[Part]]:
    name = str(analysis.winner["interval"].item())
    if name != "calibrated":
        return [] if name == "none" else [[f"The {analysis.percentage} interval is of the type '{name}'."]]
    kind = f"Wilson limits {cite('wilson')}" if _wilson(analysis) else "limits on the log scale of the loss"
    return [
        [
            f"The {analysis.percentage} interval is calibrated for selection: {kind} with Student's t, an effective "
            "sample size from the bootstrap variance of all configurations, and the variance that selection adds."
        ]
    ]


def _numbers(analysis: Analysis) -> list[Part]:
    best, places = analysis.winner, analysis.places
    limits = limits_text(best, places)
    text = f", has an estimated {analysis.name} of {number(best['estimate'], places)}"
    text += f" ({analysis.percentage} interval {limits})" if limits else ""
    if analysis.design.configurations > 1:
        text += f"; its uncorrected cross-validated score is {number(best['naive'], places)}"
        text += f", and BBC-CV as published gives {number(analysis.bbc['estimate'], places)}"
    return ["The selected configuration, ", Name(printable(best["selected"].item())), f"{text}."]


def _missing(design: Design) -> list[list[Part]]:
    found: list[list[Part]] = []
    gone = several(design.configurations - design.eligible, "configuration")
    if design.configurations > design.eligible:
        found.append([f"{gone} lacked predictions that others have and could not be selected."])
    if design.samples > design.predicted:
        found.append([f"Samples without any prediction were left out ({design.samples - design.predicted})."])
    if design.weighted:
        found.append(["Samples carry case weights, which multiply the bootstrap counts."])
    return found


def _markdown(text: str) -> str:
    return text.translate({ord(mark): "\\" + mark for mark in "\\`*_[]<>#|"})


def _markdown_code(text: str) -> str:
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


Writer = Callable[[str], str]
WRITERS: dict[str, tuple[Writer, Writer]] = {  # of our words, and of a user's own text
    "text": (str, str),
    "markdown": (_markdown, _markdown_code),
    "latex": (latex_text, lambda text: f"\\texttt{{{latex_text(text)}}}"),
}
