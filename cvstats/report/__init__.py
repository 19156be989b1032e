"""The report: one self-contained HTML file, and the methods paragraph alone."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from cvstats._check import InputError, Rng, check_option, entropy
from cvstats.formats._output import check_output, replacing
from cvstats.metrics import Metric
from cvstats.tables.words import better, printable, several

from .analysis import Analysis
from .checklist import checklist_text
from .methods import PREPROCESSING, WRITERS, paragraph
from .page import SECTIONS, Page
from .record import beside, record_of, record_text
from .sections import headline, intervals, test_words
from .summary import summary as summary

if TYPE_CHECKING:
    from jinja2 import Template


def report_text(
    cube: xr.DataArray,
    metric: str | Metric | Sequence[str | Metric] | None = None,
    *,
    format: str = "text",
    preprocessing: str | None = None,
    checklist: bool = False,
    inner: xr.DataArray | None = None,
    regime: str = "cv",
    times: int = 1000,
    rng: Rng = 1,
    level: float = 0.95,
    by: str | Metric | None = None,
    adjust: Any = None,
    subgroup: str | None = None,
    prior: Mapping[Any, float] | None = None,
) -> str:
    """Return the paragraph for the methods section, with every choice that readers need.

    Winderbaum and Koch (2022) show five implementations that a paper would all call "cross-validation", with very
    different errors. The paragraph says which one it was: the partition, its repeats and strata, the configurations
    and tuning values tried, where preprocessing was fitted, what chose the winner and how ties were broken, on which
    samples it was judged, which model the estimate is for, the correction, the interval, software and seed. It knows
    only what the cube holds: how models were trained is for you to add.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str, Metric or list of these, optional
        By default by the kind of labels, as in `report_html`.
    format : {"text", "markdown", "latex"}
        The markup.
    preprocessing : {"inside", "outside", "none"}, optional
        Where steps that learn from the data were fitted, which predictions cannot tell: inside the training
        folds, outside, on all samples before splitting, or none. Left open in brackets when omitted.
    checklist : bool
        Add the items of TRIPOD+AI, each answered from the predictions or marked as the authors' to write.
    inner, regime, times, rng, level, by, adjust, subgroup : as in `winner`
        The seed is fixed at 1 unless given.
    prior : dict, optional
        ``{label: probability}`` of the population, as in `report_html`.

    Returns
    -------
    str
        The paragraph.

    References
    ----------
    Winderbaum, Koch (2022), doi:10.47509/JSCS.2022.v01i01.05.

    Examples
    --------
    >>> import cvstats as cs
    >>> text = cs.report_text(cs.simulate_cube(60, 20, rng=1), "accuracy", times=100, preprocessing="none")
    >>> text.startswith("Out-of-sample predictions for 60 samples")
    True
    """
    check_option(format, tuple(WRITERS), "format")
    _check_preprocessing(preprocessing)
    asked = {"by": by, "adjust": adjust, "subgroup": subgroup, "prior": prior}
    analysis = Analysis(cube, metric, inner, regime, times, entropy(rng), level, **asked)
    text = paragraph(analysis, format, preprocessing)
    return f"{text}\n\n{checklist_text(analysis, WRITERS[format][0])}" if checklist else text


def report_html(
    cube: xr.DataArray,
    metric: str | Metric | Sequence[str | Metric] | None = None,
    *,
    path: str | os.PathLike[str],
    title: str | None = None,
    preprocessing: str | None = None,
    inner: xr.DataArray | None = None,
    regime: str = "cv",
    times: int = 1000,
    rng: Rng = 1,
    level: float = 0.95,
    by: str | Metric | None = None,
    adjust: Any = None,
    subgroup: str | None = None,
    prior: Mapping[Any, float] | None = None,
    command: str | None = None,
    force: bool = False,
    progress: bool = False,
) -> Path:
    """Write the report of a cube: one HTML file that needs no network and no other file.

    It leads with `winner`'s estimate and interval, beside what plain cross-validation would have claimed and what the
    published BBC says; then what was read, what to keep in mind, the methods side by side, which configurations win
    how often, the cost of trying many, the methods paragraph, and how to reproduce it. All text from the data is
    escaped. The file appears under its name only when it is complete. Beside it stands its record,
    ``<stem>.record.json``, which is inside the page too: versions, options, the hash of the cube and every number in
    full precision, for ``cvstats verify report.html predictions.csv``.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube` or `read_predictions`.
    metric : str, Metric or list of these, optional
        By default ``"concordance"`` for survival, ``"mse"`` for numbers, ``"auc"`` for scores or probabilities of two
        classes, ``"accuracy"`` otherwise.
    path : str or path
        Where to write; the folder must exist. An earlier report is replaced.
    title : str, optional
        Heading; by default the headline number in words.
    preprocessing : {"inside", "outside", "none"}, optional
        As in `report_text`.
    inner, regime, times, rng, level, by, adjust, subgroup : as in `winner`
        The seed is fixed at 1 unless given, so that a report can be made again.
    prior : dict, optional
        ``{label: probability}`` in the population, where it is not the share of the samples. Metrics that depend on it
        are judged there (see `at_prior`; by default the error rate), and a section gives class errors, the overall
        error and how it depends on the prior: by `separate_cv` where classes were sampled separately, else by its
        approximation, `prior_reweighted_cv`.
    command : str, optional
        The command that reproduces the report; by default the Python call.
    force : bool
        Replace a file that is not a report of cvstats.
    progress : bool
        Show progress bars.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    InputError
        No such folder, or one that cannot be written to; a cube of inner predictions or with batch dims; a metric that
        does not fit the predictions.

    Examples
    --------
    >>> import tempfile
    >>> import cvstats as cs
    >>> cube = cs.example_cube().isel(repeat=0, configuration=slice(None, None, 10))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cs.report_html(cube, "auc", path=f"{folder}/report.html", preprocessing="inside", times=200)
    ...     path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    _check_preprocessing(preprocessing)
    target = check_folder(path)
    for file in (target, beside(target)):
        check_output(file, page=True, force=force)
    template_engine()  # say what is missing before the work, not after it
    asked = {"by": by, "adjust": adjust, "subgroup": subgroup, "prior": prior}
    analysis = Analysis(cube, metric, inner, regime, times, entropy(rng), level, progress, **asked)
    write_report(Page(analysis, title, preprocessing, command), target, force=force)
    return target


def write_report(page: Page, target: Path, *, force: bool = False) -> None:
    """Write a page and its record beside it."""
    record = record_text(record_of(page))
    write_text(target, render_html(page, record), record, force=force)


def render_html(page: Page, record: str | None = None) -> str:
    """Return the report as text, with its record inside."""
    import cvstats

    template, css, script = template_engine()
    analysis, design = page.analysis, page.analysis.design
    sizes = [several(design.samples, "sample"), several(design.configurations, "configuration")]
    eyebrow = [printable(analysis.source.get("source") or ""), analysis.name, *sizes, design.words.split(",")[0]]
    whose, estimate = analysis.whose.capitalize(), analysis.number(analysis.winner["estimate"])
    made = [(name, title, [*filter(None, blocks(page))]) for name, (title, blocks) in SECTIONS.items()]
    return template.render(
        title=printable(page.title) if page.title else f"{whose} {analysis.name} is about {estimate}",
        eyebrow=" · ".join(part for part in eyebrow if part),
        analysis=analysis,
        headline=headline(analysis),
        selected=printable(analysis.winner["selected"].item()),
        direction=better(analysis.metric),
        beyond=test_words(analysis),
        figure=intervals(analysis),
        sections=[(name, title, blocks) for name, title, blocks in made if blocks],
        version=cvstats.__version__,
        record=record or record_text(record_of(page)),
        several=several,
        css=css,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def template_engine() -> tuple[Template, str, str]:
    """Return the template with escaping on, the style sheet and the script, or say how to install what is missing."""
    for name in ("jinja2", "matplotlib.figure"):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(f'reports need {name.split(".")[0]}: pip install "cvstats[report]"') from error
    return _compiled()


@cache
def _compiled() -> tuple[Template, str, str]:
    import jinja2

    folder = files("cvstats") / "templates"
    text, css, script = ((folder / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(text), css, script


def _check_preprocessing(preprocessing: str | None) -> None:
    if preprocessing is not None:
        check_option(preprocessing, PREPROCESSING, "preprocessing")


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return where to write, or raise before any work is done when that cannot succeed."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"`path`: {str(target)!r} is a folder; give a file name.")
    if not target.parent.is_dir():
        raise InputError(f"`path`: no such folder: {str(target.parent)!r}.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"`path`: the folder {str(target.parent)!r} cannot be written to.")
    return target


def write_text(path: Path, text: str, record: str | None = None, *, force: bool = False) -> None:
    """Write a file, and its record if there is one, so that each is either there whole or not there at all."""
    texts = {path: text} if record is None else {path: text, beside(path): record}
    with ExitStack() as stack:
        for file, content in texts.items():
            temporary = stack.enter_context(replacing(file, page=True, force=force))
            temporary.write_text(content, encoding="utf-8", newline="\n")
