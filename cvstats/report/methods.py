"""The methods paragraph: sentences with every choice a reader needs, in plain text, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cvstats.tables.render import latex_text
from cvstats.tables.words import better, metric_words, number, percent, places_of, printable, several, spread_of

from .analysis import Analysis, Design, design_of

REFERENCES = {
    "bbc": (
        "Tsamardinos, Greasidou, Borboudakis (2018). Bootstrapping the out-of-sample predictions for efficient and "
        "accurate cross-validation. Machine Learning 107, 1895-1922.",
        "10.1007/s10994-018-5714-4",
    ),
    "cvm": (
        "Tsamardinos, Rakhshani, Lagani (2015). Performance-estimation properties of cross-validation-based protocols "
        "with simultaneous hyper-parameter optimization. Int. J. Artificial Intelligence Tools 24, 1540023.",
        "10.1142/S0218213015400230",
    ),
    "implementations": (
        "Winderbaum, Koch (2022). Cross-validation for supervised learning with tuning parameters. "
        "J. Statistics and Computer Science 1, 89-106.",
        "10.47509/JSCS.2022.v01i01.05",
    ),
    "tt": (
        "Tibshirani, Tibshirani (2009). A bias correction for the minimum error rate in cross-validation. "
        "Annals of Applied Statistics 3, 822-829.",
        "10.1214/08-AOAS224",
    ),
    "ncv": (
        "Varma, Simon (2006). Bias in error estimation when using cross-validation for model selection. "
        "BMC Bioinformatics 7, 91.",
        "10.1186/1471-2105-7-91",
    ),
    "wilson": (
        "Wilson (1927). Probable inference, the law of succession, and statistical inference. "
        "J. American Statistical Association 22, 209-212.",
        "10.1080/01621459.1927.10502953",
    ),
}
CITED = {
    "bbc": "Tsamardinos et al. 2018",
    "cvm": "Tsamardinos et al. 2015",
    "implementations": "Winderbaum and Koch 2022",
    "tt": "Tibshirani and Tibshirani 2009",
    "ncv": "Varma and Simon 2006",
    "wilson": "Wilson 1927",
}
PREPROCESSING = ("inside", "outside", "none")


@dataclass(frozen=True)
class Name:
    """A user's own text, shown as it is."""

    text: str


Part = str | Name


def cite(key: str) -> str:
    """Return the citation in the text."""
    return f"({CITED[key]})"


def references_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what the report must cite, in the order of `REFERENCES`."""
    used = {"bbc", "implementations"}
    used |= {key for key, method in (("ncv", "ncv"), ("tt", "tt"), ("cvm", "cvm_cv")) if method in analysis.others}
    if _interval(analysis) == "calibrated" and _bounded(analysis):
        used.add("wilson")
    return [REFERENCES[key] for key in REFERENCES if key in used]


def methods_sentences(analysis: Analysis, preprocessing: str | None) -> list[list[Part]]:
    """Return the paragraph sentence by sentence."""
    design = design_of(analysis.cube)
    return [
        _data(analysis, design),
        _partition(design),
        _configurations(design),
        _preprocessing(preprocessing),
        _choice(analysis, design),
        _refit(analysis),
        *_estimate(analysis, design),
        _numbers(analysis),
        *_missing(design),
        _software(analysis),
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


def _preprocessing(preprocessing: str | None) -> list[Part]:
    if preprocessing == "inside":
        return [
            "All data-dependent preprocessing (scaling, dimension reduction, variable selection) was fitted within "
            f"each training set and applied to the held-out fold, [Pi1] of {CITED['implementations']}."
        ]
    if preprocessing == "outside":
        return [
            "Data-dependent preprocessing was fitted on all samples before splitting, "
            f"[Pi2] of {CITED['implementations']}: the held-out folds influenced the models, and every estimate below "
            "may be optimistic for that reason, which no analysis of saved predictions can correct."
        ]
    if preprocessing == "none":
        return ["No step that learns from the data preceded the models."]
    return [
        "[State whether preprocessing that learns from the data (scaling, dimension reduction, variable selection) was "
        "fitted within each training set, Pi1, or on all samples before splitting, Pi2: saved predictions cannot tell.]"
    ]


def _choice(analysis: Analysis, design: Design) -> list[Part]:
    if design.configurations == 1:
        return [
            f"Performance was measured by {metric_words(analysis.metric.name)} ({better(analysis.metric.direction)})."
        ]
    average = " within each repeat and averaged over repeats" if design.repeats > 1 else ""
    return [
        f"The configuration with the best {metric_words(analysis.metric.name)} ({better(analysis.metric.direction)}), "
        f"pooled over the held-out folds{average}, was selected; ties go to the first in the order given. "
        "The same predictions thus choose and would judge ([CV1]), so the selected configuration's own score is "
        "optimistic and is not reported as its performance."
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
        return [["With one configuration no correction for selection is needed."], *_interval_words(analysis)]
    draws = several(int(analysis.winner["n_draws"]), "bootstrap draw")
    unit = "groups" if design.groups else "samples"
    within = " within class" if analysis.metric.requires in ("classes", "positive", "negative") else ""
    first = (
        f"Its performance was estimated by bootstrap bias-corrected cross-validation {cite('bbc')}: in each of {draws} "
        f"of {unit}{within}, the configuration that is best on the drawn {unit} was judged on those left out"
    )
    method = str(analysis.winner["method"].item())
    more = {
        "bbc_cross_repeat": "; each repeat chose in turn and the other repeats judged",
        "bbc_ncv": f", and averaged with nested cross-validation {cite('ncv')} smoothed over draws",
        "bbc_x": "; its known pessimism for fixed models was removed (BBC-X)",
    }.get(method, "")
    ties = "Ties within a draw were broken at random."
    return [[f"{first}{more}."], [ties], *_interval_words(analysis)]


def _interval(analysis: Analysis) -> str:
    return str(analysis.winner["interval"].item())


def _bounded(analysis: Analysis) -> bool:
    import math

    return all(math.isfinite(end) for end in analysis.metric.range) and analysis.metric.name != "brier"


def _interval_words(analysis: Analysis) -> list[list[Part]]:
    name = _interval(analysis)
    level = percent(analysis.level, digits=0 if round(100 * analysis.level, 6).is_integer() else 1)
    if name == "calibrated":
        kind = f"Wilson limits {cite('wilson')}" if _bounded(analysis) else "limits on the log scale of the loss"
        return [
            [
                f"The {level} interval is calibrated for selection: {kind} with Student's t, an effective sample size "
                "from the bootstrap variance of all configurations, and the variance that selection adds."
            ]
        ]
    return [] if name == "none" else [[f"The {level} interval is of the type '{name}'."]]


def _numbers(analysis: Analysis) -> list[Part]:
    recommended, metric = analysis.winner, analysis.metric
    value = float(recommended["estimate"])
    places = places_of(spread_of(recommended), value)
    parts: list[Part] = ["The selected configuration, "]
    parts += [Name(printable(recommended["selected"].item())), f", has an estimated {metric_words(metric.name)} of "]
    parts.append(f"{number(value, places)}")
    low, high = float(recommended["conf_low"]), float(recommended["conf_high"])
    if low == low and high == high:
        parts.append(f" ({percent(analysis.level)} interval {number(low, places)} to {number(high, places)})")
    if analysis.cube.sizes["configuration"] > 1:
        parts.append(f"; its uncorrected cross-validated score is {number(recommended['naive'], places)}")
        parts.append(f", and BBC-CV as published gives {number(analysis.bbc['estimate'], places)}")
    return [*parts, "."]


def _missing(design: Design) -> list[list[Part]]:
    found: list[list[Part]] = []
    gone = design.configurations - design.eligible
    if gone:
        found.append(
            [f"{several(gone, 'configuration')} lacked predictions that others have and could not be selected."]
        )
    if design.samples > design.predicted:
        found.append([f"Samples without any prediction were left out ({design.samples - design.predicted})."])
    if design.weighted:
        found.append(["Samples carry case weights, which multiply the bootstrap counts."])
    return found


def _software(analysis: Analysis) -> list[Part]:
    import cvstats

    return [f"Computed from the saved predictions with cvstats {cvstats.__version__} (seed {analysis.seed})."]


def render_text(sentences: list[list[Part]], format: str) -> str:
    """Return sentences as one paragraph of the wanted format."""
    escape, name = WRITERS[format]
    return " ".join(
        "".join(name(part.text) if isinstance(part, Name) else escape(part) for part in sentence)
        for sentence in sentences
    )


def _as_is(text: str) -> str:
    return text


def _markdown(text: str) -> str:
    for mark in "\\`*_[]<>#|":
        text = text.replace(mark, "\\" + mark)
    return text


def _markdown_code(text: str) -> str:
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _latex_code(text: str) -> str:
    return f"\\texttt{{{latex_text(text)}}}"


Writer = Callable[[str], str]
WRITERS: dict[str, tuple[Writer, Writer]] = {
    "text": (_as_is, _as_is),
    "markdown": (_markdown, _markdown_code),
    "latex": (latex_text, _latex_code),
}
