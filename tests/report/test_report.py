"""The report and the methods paragraph: complete, escaped, self-contained, written whole or not at all."""

import base64
import hashlib
import os
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import cvstats as cs
from cvstats import resample
from cvstats.judge import loop
from cvstats.report import analysis as analysis_module
from cvstats.report import page, paragraph, render_html, report_html, report_text, sections, write_text
from cvstats.report.analysis import Analysis, default_metric
from cvstats.report.design import read_facts
from cvstats.report.methods import references_of
from cvstats.report.page import Page as ReportPage
from cvstats.report.page import inline
from cvstats.report.remarks import choice_words, remarks_of
from cvstats.resample import Part

HOSTILE = "<script>window.pwned=1</script>"
NAMES = [HOSTILE, '"><img src=x onerror=window.pwned=1>', "{{ 7*7 }}", "$\\frac{a}{b}$", "naïve 模型", "c5"]


def hostile_cube(repeats=2):
    """Return a cube whose every name is trouble."""
    cube = cs.simulate_cube(60, 6, repeats=repeats, rng=2)
    labels = np.where(cube.label.values == 1, "<b>sick</b>", "well & fine")
    truth = cube.label.values.reshape(-1, *[1] * (cube.ndim - 1))
    shape = (-1, *[1] * (cube.ndim - 1))
    wrong = np.where(labels == "<b>sick</b>", "well & fine", "<b>sick</b>")
    values = np.where(cube.values == truth, labels.reshape(shape), wrong.reshape(shape))
    samples = [f"<i>{i}</i>" for i in range(60)]
    return cs.as_cube(
        values, labels, samples=samples, configurations=NAMES, folds=cube.fold.values, positive="<b>sick</b>"
    )


@pytest.fixture(scope="module")
def analysis():
    return Analysis(hostile_cube(), "accuracy", times=60, seed=1)


@pytest.fixture(scope="module")
def html(analysis):
    return render_html(ReportPage(analysis, preprocessing="inside"))


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.scripts, self.words, self.labels, self.data = [], [], [], [], [], []
        self._in = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append("data" if given.get("type") == "application/json" else tag)
        self.links += [given[name] for name in ("src", "href", "xlink:href", "action", "data") if given.get(name)]
        self.labels += [given["aria-label"]] if "aria-label" in given else []
        assert not [name for name in given if name.startswith("on")], "no inline handlers"
        self._in = self.tags[-1]

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, data):
        {"script": self.scripts, "data": self.data}.get(self._in, self.words).append(data)


# --- the page -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_user_text_is_shown_and_never_run(html):
    page = Page(html)
    assert page.tags.count("script") == 1
    assert len(page.scripts) == 1
    assert "pwned" not in page.scripts[0]
    assert page.tags.count("data") == len(page.data) == 1, "the record, which is never run and ends where it should"
    assert "img" not in page.tags
    assert "i" not in page.tags
    assert "b" not in page.tags
    words = "".join(page.words)
    for name in NAMES:
        assert name in words
    assert "well & fine" in words
    assert "49" not in [word.strip() for word in page.words], "names are no templates"


def test_nothing_is_fetched(html):
    page = Page(html)
    assert "link" in page.tags
    outside = [link for link in page.links if not link.startswith(("#", "data:", "https://doi.org/"))]
    assert outside == []
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html).group(1)
    assert policy.startswith("default-src 'none'")
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy.replace("&#39;", "'")


def test_every_figure_has_words_and_two_widths(html):
    for name in ("intervals", "win-rates", "optimism"):
        figure = re.search(rf'<figure id="figure-{name}".*?</figure>', html, re.S).group()
        assert figure.count("<svg") == 2
        assert figure.count('role="img"') == 2
        assert len(re.search(r'aria-label="([^"]+)"', figure).group(1)) > 40
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids)), "ids of inline figures do not clash"


def test_sections_and_numbers(html, analysis):
    for section in ("read", "remarks", "methods", "winners", "optimism", "paragraph", "reproduce", "references"):
        assert f'<section id="{section}">' in html
    digits = analysis.places
    for value in (analysis.winner.estimate, analysis.winner.naive, analysis.bbc.estimate, analysis.winner.conf_low):
        assert f"{float(value):.{digits}f}" in html
    assert "rng=1" in html
    assert "Seed 1, 60 bootstrap draws" in html
    assert analysis.winner.attrs["cube_hash"] in html
    for _, doi in references_of(analysis):
        assert f"https://doi.org/{doi}" in html


@pytest.mark.slow
def test_same_analysis_same_bytes(analysis, html):
    assert render_html(ReportPage(analysis, preprocessing="inside")) == html


def test_tables_hold_every_method_and_configuration(analysis):
    methods = sections.method_table(analysis)
    assert [row[0].text.split(" (")[0] for row in methods.body] == [
        "Recommended", "BBC-CV", "CVM-CV", "TT", "Plain CV of the winner",
    ]  # fmt: skip
    assert methods.note == "Nested CV is not shown: no inner predictions were saved."
    table = sections.configuration_table(analysis)
    scores = [row[1].key for row in table.body]
    assert sorted(row[0].text for row in table.body) == sorted(NAMES)
    assert scores == sorted(scores, reverse=True)
    assert sum(row[2].key for row in table.body) == pytest.approx(1)
    assert {row[3].text for row in table.body} <= {"yes", "no"}


def test_long_tables_are_cut_and_say_so(monkeypatch, analysis):
    monkeypatch.setattr(sections, "MOST_ROWS", 3)
    table = sections.configuration_table(analysis)
    assert len(table.body) == 3
    assert table.note.endswith("The 3 best of 6 configurations are listed.")


def test_of_many_configurations_a_figure_shows_some_and_says_so(monkeypatch):
    cube = cs.simulate_cube(40, 7, rng=1)
    cube = cube.assign_coords(depth=("configuration", [1.0, 2, 3, 4, 5, np.nan, 7]))
    analysis = Analysis(cube, "accuracy", times=40)
    (whole,) = sections.tuning_figures(analysis)
    monkeypatch.setattr(sections, "MOST_ROWS", 3)
    (some,) = sections.tuning_figures(analysis)
    assert "of the 6 configurations that have depth; the best is circled." in whole.caption
    assert some.caption == f"{whole.caption} 3 of them are shown, evenly by rank."
    score = np.where(np.isnan(cube.depth), -np.inf, analysis.scores)
    order = np.argsort(-score, kind="stable")[[0, 2, 4]]
    for drawing, expected in ((whole, [1, 2, 3, 4, 5, 7]), (some, np.sort(cube.depth.values[order]))):
        ax = Figure().subplots()
        drawing.draw(ax, True)
        points, best = ax.get_lines()
        np.testing.assert_array_equal(points.get_xdata(), expected)
        assert best.get_xdata() == cube.depth.values[order[0]]


@pytest.mark.slow
def test_large_cubes_take_fewer_draws_beside_the_estimate_and_say_so(monkeypatch):
    cube = cs.example_cube().isel(repeat=0, configuration=slice(None, None, 5))
    for name, value in {"MUCH": 1, "FEW_DRAWS": 20}.items():
        monkeypatch.setattr(f"cvstats.report.analysis.{name}", value)
    large = Analysis(cube, "auc", times=60)
    assert large.few == large.tables[1][0].shape[0] == 20
    assert "The best set takes 20 of the draws." in sections.configuration_table(large).note
    assert 1 <= large.contenders.sizes["configuration"] < cube.sizes["configuration"]
    how = {"draws": Part(large.draws, 0, 20), "times": 20, "rng": 1}
    xr.testing.assert_allclose(
        cs.roc_curve(large.contenders, **how)[["estimate", "conf_low", "naive"]].drop_vars(
            "configuration", errors="ignore"
        ),
        cs.roc_curve(cube, **how)[["estimate", "conf_low", "naive"]].drop_vars("configuration", errors="ignore"),
    )


@pytest.mark.parametrize("kept", [True, False])
def test_each_bootstrap_is_drawn_once_and_shared(monkeypatch, kept):
    """A section that draws for itself, or scores everything once more, would show here."""
    made, passes = [], []
    fill, choose, score = resample.Bootstrap._fill, loop.Choose.__call__, loop._scored_block
    monkeypatch.setattr(resample.Bootstrap, "_fill", lambda *a: (made.append(len(a[1])), fill(*a))[1])
    monkeypatch.setattr(loop.Choose, "__call__", lambda *a: (passes.append("choose"), choose(*a))[1])
    monkeypatch.setattr(loop, "_scored_block", lambda *a: (passes.append("score"), score(*a))[1])
    if not kept:  # too many to be remembered, but for the first of them
        monkeypatch.setattr(analysis_module, "MUCH", 0)
        monkeypatch.setattr(resample, "REMEMBERED", 200 * 100)
    cube = cs.example_cube().isel(repeat=0, sample=slice(0, 100))
    render_html(ReportPage(Analysis(cube, "auc", times=300)))
    assert sum(made) == 2 * 300 + (0 if kept else 2 * 200)  # within class, and without strata as published
    assert sorted(passes) == 5 * ["choose"] + ["score"]  # winner, bbc and three curves; one table of all scores


def test_nothing_is_cut_off_the_figures(monkeypatch, analysis):
    seen = []

    def spread(ax, renderer):
        made(ax, renderer)
        box, room = ax.get_tightbbox(renderer), ax.figure.bbox
        seen.append((box.min >= -0.5).all() and (box.max <= room.max + 0.5).all())

    made = page.spread
    monkeypatch.setattr(page, "spread", spread)
    render_html(ReportPage(analysis))
    html = render_html(ReportPage(Analysis(cs.example_cube(), "auc", times=100)))
    assert len(seen) > 12
    assert all(seen)
    curves = re.findall(r'<figure id="figure-curve-.*?</figure>', html, re.S)
    assert [curve.count("<svg") for curve in curves] == [1, 1, 1], "small enough for phone and desktop"


def test_inline_svg_keeps_only_what_is_used():
    used = '<g id="a"/><g id="b" clip-path="url(#a)"/></svg>'
    text = f'<?xml?><svg width="1pt" viewBox="0 0 72 36"><metadata>x</metadata><style>*{{}}</style>{used}'
    found = inline(text)
    assert found.startswith('<svg viewBox="0 0 72 36" style="max-width: 96px"')
    assert 'id="a"' in found
    assert 'id="b"' not in found
    assert "metadata" not in found
    with pytest.raises(ValueError, match="without a viewBox"):
        inline("<svg></svg>")


# --- kinds of data ------------------------------------------------------------------------------------------------


def survival_cube():
    rng = np.random.default_rng(1)
    time = rng.exponential(size=60)
    risk = -time[:, None] + rng.normal(size=(60, 4))
    return cs.as_cube(risk, time, event=rng.integers(0, 2, 60), kind="score")


def number_cube():
    rng = np.random.default_rng(2)
    y = rng.normal(size=50)
    return cs.as_cube(
        y[:, None] + rng.normal(size=(50, 3)), y, groups=np.repeat(np.arange(10), 5), weights=np.full(50, 2.0)
    )


def class_cube():
    rng = np.random.default_rng(3)
    raw = rng.dirichlet(np.ones(3), size=(60, 4))
    return cs.as_cube(raw, rng.choice(["a", "b", "c"], 60), classes=["a", "b", "c"])


def gappy_cube():
    cube = hostile_cube(repeats=1).copy()
    cube[3, 1] = np.nan
    cube[5] = np.nan
    return cube


KINDS = {
    "labels": (hostile_cube, "accuracy"),
    "survival": (survival_cube, "concordance"),
    "numbers": (number_cube, "mse"),
    "classes": (class_cube, "accuracy"),
    "gaps": (gappy_cube, "accuracy"),
    "one configuration": (lambda: hostile_cube().isel(configuration=[0]), "accuracy"),
    "scores": (lambda: cs.as_cube(np.arange(40.0).reshape(20, 2) % 7, np.arange(20) % 2), "auc"),
    "leave one out": (lambda: cs.as_cube(0.3 * np.eye(30)[:, :4], np.arange(30) % 2, folds=np.arange(30)), "auc"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data(kind):
    make, metric = KINDS[kind]
    cube = make()
    assert default_metric(cube) == metric
    found = Analysis(cube, times=40, seed=3)
    assert found.number(found.winner.estimate) not in ("", "NA")
    assert read_facts(cube, found.design, {})
    assert sections.method_table(found).body
    assert sections.configuration_table(found).body
    assert paragraph(found, "text", None).startswith("Out-of-sample predictions for")
    assert all(remark.text.endswith((".", "?", "!")) for remark in remarks_of(found))


@pytest.mark.slow
def test_one_configuration_needs_no_correction():
    found = Analysis(hostile_cube().isel(configuration=[0]), times=40)
    assert found.curve is None
    sentence = "Only one configuration was tried, so there is no selection to correct for."
    assert sections.headline(found) == sentence
    assert choice_words(found) == ""
    text = paragraph(found, "text", None)
    assert "nothing was tuned" in text
    assert "<script>" in render_html(ReportPage(found))[-9000:], "the page itself still works"


def test_remarks_in_plain_words():
    cube = gappy_cube()
    found = Analysis(cube, times=40)
    found.source = {"notes": ["odd thing"], "averaged_repeats": True}
    said = " ".join(remark.text for remark in remarks_of(found))
    assert "1 of 6 configurations lacked predictions that others have and could not be selected (" in said
    assert "Left out: 1 sample without any prediction." in said
    assert "Odd thing." in said
    assert "already averaged over repeats" in said
    few = Analysis(KINDS["leave one out"][0](), times=40)
    said = " ".join(remark.text for remark in remarks_of(few))
    assert "Leave-one-out" in said
    assert "Only 30 samples" in said
    grouped = number_cube()
    said = " ".join(remark.text for remark in remarks_of(Analysis(grouped, times=40)))
    assert "10 groups, which are drawn whole" in said
    assert "case weights" in said


def test_doubtful_configurations_are_named():
    rng = np.random.default_rng(1)
    labels, folds = np.arange(100) % 2, np.repeat(np.arange(5), 20)
    shifted = 0.4 * labels + 0.5 * rng.random(100) + folds  # good within folds, not across them
    columns = np.stack([shifted, shifted, np.zeros(100)], axis=1)
    cube = cs.as_cube(columns, labels, configurations=["first", "copy", "flat"], folds=folds, kind="score")
    found = Analysis(cube, "auc", times=40)
    said = [remark.text for remark in remarks_of(found)]
    assert "1 configuration has the predictions of another: copy." in said
    assert "1 configuration predicts one value for every sample of a fold: flat." in said
    assert any(text.startswith("Scores shift between folds in 2 of 3 configurations: first, copy.") for text in said)
    assert said[0].startswith("The selected configuration's scores shift between folds")


def test_perfect_scores_are_doubted():
    labels = np.arange(40) % 2
    cube = cs.as_cube(np.stack([labels, labels, 1 - labels], axis=1), labels)
    found = Analysis(cube, times=40)
    said = [remark.text for remark in remarks_of(found)]
    assert any("perfect" in text for text in said)
    assert any(text.startswith("2 configurations share the best plain score") for text in said)
    assert found.results["cvt"].estimate == 1


@pytest.mark.slow
def test_test_scores_are_shown():
    cube = cs.simulate_cube(40, 4, rng=1)
    cube = cube.assign_coords(test_accuracy=("configuration", [0.125, 0.25, 0.5, 0.75]))
    found = Analysis(cube, "accuracy", times=40)
    chosen = cube.test_accuracy.sel(configuration=found.winner.selected.item()).item()
    assert found.truth == chosen
    assert f"its accuracy is {found.number(chosen)}." in render_html(ReportPage(found))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cube: cube.expand_dims(trial=2), "batch dims 'trial'"),
        (lambda cube: cube.expand_dims(outer_fold=2), "inner predictions"),
    ],
)
def test_other_cubes_are_refused(change, message):
    with pytest.raises(cs.InputError, match=message):
        Analysis(change(hostile_cube(repeats=1)))


def test_inner_predictions_add_nested_cv():
    cube, inner = cs.simulate_cube(60, 5, inner=True, rng=1)
    found = Analysis(cube, "accuracy", inner=inner, times=40)
    assert list(found.results) == ["winner", "bbc", "ncv", "tt", "cvt"]
    assert "nested cross-validation (Varma and Simon 2006)" in paragraph(found, "text", None)


# --- the paragraph ------------------------------------------------------------------------------------------------


def test_paragraph_names_every_choice(analysis):
    """What Winderbaum and Koch ask authors to report."""
    text = paragraph(analysis, "text", "inside")
    for words in (
        "2 repeats of stratified 10-fold cross-validation",  # the partition
        "6 configurations",  # how much was tried
        "fitted within each training set",  # where preprocessing happened
        "thus choose and would judge",  # what chose the winner
        "best accuracy (higher is better), pooled over the held-out folds",  # criterion
        "ties go to the first in the order given",
        "refitted on all samples by the same process",  # the model the estimate is for
        "60 bootstrap draws of samples",  # which samples judge
        "Ties within a draw were broken at random",
        "95% interval is calibrated",
        "uncorrected cross-validated score",
        "positive class",
        f"cvstats {cs.__version__} (seed 1)",
    ):
        assert words in text
    assert "on all samples before splitting" in paragraph(analysis, "text", "outside")
    assert "No step that learns from the data" in paragraph(analysis, "text", "none")
    assert "[State whether preprocessing" in paragraph(analysis, "text", None)


def test_paragraph_lists_tuning_values():
    cube = cs.simulate_cube(40, 3, rng=1).assign_coords(C=("configuration", [0.1, 1.0, 10.0]))
    assert "C from 0.1 to 10 (3 values)" in report_text(cube, "accuracy", times=40)


def test_latex_and_markdown_are_escaped(analysis):
    latex, markdown = (paragraph(analysis, kind, None) for kind in ("latex", "markdown"))
    assert r"\texttt{$<$b$>$sick$<$/b$>$}" in latex
    assert r"95\%" in latex
    assert r"well \& fine" in latex
    assert not re.search(r"(?<!\\)[%&#_]", latex)
    assert "`<b>sick</b>`" in markdown
    assert r"\[State whether" in markdown


def test_paragraph_refuses():
    cube = cs.simulate_cube(20, 2, rng=1)
    with pytest.raises(cs.InputError, match="`format` must be one of 'text', 'markdown', 'latex'; got 'tex'"):
        report_text(cube, "accuracy", format="tex")
    with pytest.raises(cs.InputError, match="`preprocessing` must be one of 'inside', 'outside', 'none'"):
        report_text(cube, "accuracy", preprocessing="before")


# --- the file -----------------------------------------------------------------------------------------------------


def test_report_html_writes_the_file(tmp_path):
    path = report_html(cs.simulate_cube(40, 4, rng=1), "accuracy", path=tmp_path / "r.html", times=40, title="T <1>")
    text = path.read_text(encoding="utf-8")
    assert "<h1>T &lt;1&gt;</h1>" in text
    assert text.endswith("</html>")
    assert sorted(name.name for name in tmp_path.iterdir()) == ["r.html", "r.record.json"]


@pytest.mark.parametrize("fault", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, fault):
    target = tmp_path / "r.html"
    target.write_text("old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fault, fail)
    with pytest.raises(OSError, match="No space left"):
        write_text(target, "new", force=True)
    assert target.read_text() == "old"
    assert [name.name for name in tmp_path.iterdir()] == ["r.html"]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "r.html", "new")
    assert list(tmp_path.iterdir()) == []


def test_bad_targets_are_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("cvstats.report.Analysis", lambda *a, **k: pytest.fail("worked first"))
    cube = cs.simulate_cube(20, 2, rng=1)
    with pytest.raises(cs.InputError, match="no such folder"):
        report_html(cube, "accuracy", path=tmp_path / "nowhere" / "r.html")
    with pytest.raises(cs.InputError, match="is a folder; give a file name"):
        report_html(cube, "accuracy", path=tmp_path)


def test_missing_extras_are_named(tmp_path, monkeypatch):
    cube = cs.simulate_cube(20, 2, rng=1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(ImportError, match=r'reports need jinja2: pip install "cvstats\[report\]"'):
            report_html(cube, "accuracy", path=tmp_path / "r.html")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'reports need matplotlib: pip install "cvstats\[report\]"'):
        report_html(cube, "accuracy", path=tmp_path / "r.html")
