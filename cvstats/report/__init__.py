"""The report: one self-contained HTML file, and the methods paragraph alone."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from cvstats._check import InputError, Rng, check_option
from cvstats.formats._output import check_output, replacing
from cvstats.metrics import Metric
from cvstats.tables.words import metric_words, printable, several

from .analysis import Analysis, analyse, design_of

if TYPE_CHECKING:
    from jinja2 import Template

FORMATS = ("text", "markdown", "latex")


def report_text(
    cube: xr.DataArray,
    metric: str | Metric | None = None,
    *,
    format: str = "text",
    preprocessing: str | None = None,
    inner: xr.DataArray | None = None,
    regime: str = "cv",
    times: int = 1000,
    rng: Rng = 1,
    level: float = 0.95,
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
    metric : str or Metric, optional
        By default by the kind of labels, as in `report_html`.
    format : {"text", "markdown", "latex"}
        The markup.
    preprocessing : {"inside", "outside", "none"}, optional
        Where steps that learn from the data were fitted, which predictions cannot tell: inside the training
        folds ([Pi1]), outside, on all samples before splitting ([Pi2]), or none. Left open in brackets when omitted.
    inner, regime, times, rng, level : as in `winner`
        The seed is fixed at 1 unless given.

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
    check_option(format, FORMATS, "format")
    _check_preprocessing(preprocessing)
    options: dict[str, Any] = {"inner": inner, "regime": regime, "times": times, "level": level}
    return paragraph(analyse(cube, metric, seed=_seed(rng), extras=False, **options), format, preprocessing)


def paragraph(analysis: Analysis, format: str, preprocessing: str | None) -> str:
    """Return the methods paragraph of an analysis."""
    from .methods import methods_sentences, render_text

    return render_text(methods_sentences(analysis, preprocessing), format)


def report_html(
    cube: xr.DataArray,
    metric: str | Metric | None = None,
    *,
    path: str | os.PathLike[str],
    title: str | None = None,
    preprocessing: str | None = None,
    inner: xr.DataArray | None = None,
    regime: str = "cv",
    times: int = 1000,
    rng: Rng = 1,
    level: float = 0.95,
    command: str | None = None,
    force: bool = False,
    progress: bool = False,
) -> Path:
    """Write the report of a cube: one HTML file that needs no network and no other file.

    It leads with `winner`'s estimate and interval, beside what plain cross-validation would have claimed and what the
    published BBC says; then what was read, what to keep in mind, the methods side by side, which configurations win
    how often, the cost of trying many, the methods paragraph, and how to reproduce it. All text from the data is
    escaped. The file appears under its name only when it is complete.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube` or `read_predictions`.
    metric : str or Metric, optional
        By default ``"concordance"`` for survival, ``"mse"`` for numbers, ``"auc"`` for scores or probabilities of two
        classes, ``"accuracy"`` otherwise.
    path : str or path
        Where to write; the folder must exist. An earlier report is replaced.
    title : str, optional
        Heading; by default the headline number in words.
    preprocessing : {"inside", "outside", "none"}, optional
        As in `report_text`.
    inner, regime, times, rng, level : as in `winner`
        The seed is fixed at 1 unless given, so that a report can be made again.
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
        No such folder, or one that cannot be written to; a cube of inner or separate-sampling predictions or with batch
        dims; a metric that does not fit the predictions.

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
    check_output(target, page=True, force=force)
    template_engine()  # say what is missing before the work, not after it
    seed = _seed(rng)
    options: dict[str, Any] = {"inner": inner, "regime": regime, "times": times, "level": level}
    analysis = analyse(cube, metric, seed=seed, progress=progress, **options)
    page = render_html(analysis, title=title, preprocessing=preprocessing, command=command)
    write_text(target, page, force=force)
    return target


def render_html(
    analysis: Analysis, *, title: str | None = None, preprocessing: str | None = None, command: str | None = None
) -> str:
    """Return the report as text."""
    import cvstats
    from cvstats.formats import _report

    from . import parts as parts
    from .figures import figures
    from .methods import references_of
    from .remarks import remarks_of

    template, css, script = template_engine()
    design = design_of(analysis.cube)
    source = _report.read(analysis.cube)
    headline = parts.headline(analysis)
    shown = parts.read_facts(analysis.cube, design, source)
    name = metric_words(analysis.metric.name)
    eyebrow = [printable(source["source"])] if source and source.get("source") else []
    eyebrow += [name, several(design.samples, "sample"), several(design.configurations, "configuration")]
    return template.render(
        title=printable(title) if title else parts.statement(headline),
        eyebrow=" · ".join([*eyebrow, parts.design_words(design).split(",")[0]]),
        h=headline,
        single=design.configurations == 1,
        facts=shown,
        remarks=remarks_of(analysis, design, source),
        methods=parts.method_table(analysis),
        choice=parts.choice_words(analysis),
        configurations=parts.configuration_table(analysis),
        figures=figures(analysis),
        paragraph={format: paragraph(analysis, format, preprocessing) for format in FORMATS},
        command=command or _python_call(analysis, preprocessing),
        references=references_of(analysis),
        seed=analysis.seed,
        draws=analysis.times,
        version=cvstats.__version__,
        fingerprint=analysis.winner.attrs.get("cube_hash", ""),
        css=css,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def template_engine() -> tuple[Template, str, str]:
    """Return the template with escaping on, the style sheet and the script, or say how to install what is missing."""
    from importlib.resources import files

    from cvstats.plot.style import figure_class

    try:
        import jinja2
    except ImportError as error:
        raise ImportError('reports need jinja2: pip install "cvstats[report]"') from error
    try:
        figure_class()
    except ImportError as error:
        raise ImportError('reports need matplotlib: pip install "cvstats[report]"') from error
    folder = files("cvstats") / "templates"
    text, css, script = ((folder / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.ChainableUndefined)
    return environment.from_string(text), css, script


def _python_call(analysis: Analysis, preprocessing: str | None) -> str:
    options = f"path='report.html', times={analysis.times}, rng={analysis.seed}, level={analysis.level:g}"
    options += f", regime={analysis.regime!r}" if analysis.regime != "cv" else ""
    options += ", inner=inner" if analysis.inner is not None else ""
    options += f", preprocessing={preprocessing!r}" if preprocessing else ""
    return f"import cvstats as cs\ncs.report_html(cube, {analysis.metric.name!r}, {options})"


def _check_preprocessing(preprocessing: str | None) -> None:
    from .methods import PREPROCESSING

    if preprocessing is not None:
        check_option(preprocessing, PREPROCESSING, "preprocessing")


def _seed(rng: Rng) -> int:
    from cvstats._check import entropy

    return entropy(rng)


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


def write_text(path: Path, text: str, *, force: bool = False) -> None:
    """Write a file so that it is either there whole or not there at all."""
    with replacing(path, page=True, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
