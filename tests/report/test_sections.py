"""What a stranger may add to the report, and what the report computes once."""

import re
from collections import Counter

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.report import analysis as analysis_module
from cvstats.report import page as page_module
from cvstats.report import render_html
from cvstats.report.analysis import Analysis
from cvstats.report.page import Drawing, Listing, Page, section
from cvstats.resample import Bootstrap
from cvstats.tables.render import Cell


@pytest.fixture
def registries(monkeypatch):
    monkeypatch.setattr(page_module, "SECTIONS", page_module.SECTIONS.copy())
    monkeypatch.setattr("cvstats.report.SECTIONS", page_module.SECTIONS)


def test_a_section_and_a_figure_from_outside(registries):
    @section("sizes", "How large it is", before="paragraph")
    def sizes(page):
        rows = [[Cell("samples"), Cell(str(page.analysis.design.samples), key=40.0)]]
        table = Listing(["What", "Count"], rows, caption="Sizes", name="sizes", numeric=[False, True])
        dot = Drawing("dot", lambda ax, narrow: ax.plot([1], [2], "o"), (2.0, 2.0), "A dot.", "One dot, no more.")
        return ["Words & <b>signs</b>.", dot, table]

    @section("nothing", "Never shown")
    def nothing(page):
        return [None, ""]

    html = render_html(Page(Analysis(cs.simulate_cube(40, 3, rng=1), "accuracy", times=40)))
    order = re.findall(r'<section id="(\w+)">', html)
    assert order == [
        "read", "remarks", "methods", "winners", "selected", "optimism", "sizes", "paragraph", "checklist",
        "reproduce", "references",
    ]  # fmt: skip
    own = re.search(r'<section id="sizes">.*?</section>', html, re.S).group()
    assert "<h2>How large it is</h2>" in own
    assert "<p>Words &amp; &lt;b&gt;signs&lt;/b&gt;.</p>" in own
    assert own.count("<svg") == 2
    assert 'id="table-sizes"' in own


def counted(monkeypatch, *names):
    """Count the calls of functions that the analysis uses."""
    calls = Counter()

    def counting(name, function):
        def wrapped(*arguments, **options):
            calls[name] += 1
            return function(*arguments, **options)

        return wrapped

    for name in names:
        monkeypatch.setattr(analysis_module, name, counting(name, getattr(analysis_module, name)))
    return calls


def probability_cube():
    rng = np.random.default_rng(1)
    labels = np.arange(60) % 3 // 2
    scores = np.clip(0.3 * labels[:, None, None] + 0.7 * rng.random((60, 8, 2)), 0, 1).round(2)
    folds = np.stack([rng.permutation(np.arange(60) % 5) for _ in range(2)], axis=1)
    return cs.as_cube(scores, labels, folds=folds, kind="probability")


PARTS = (
    "winner",
    "bbc",
    "tt",
    "cvm_cv",
    "cvt",
    "score",
    "score_tables",
    "curve_of",
    "best_of",
    "describe_cube",
    "design_of",
)


def test_every_part_is_computed_once(monkeypatch):
    calls = counted(monkeypatch, *PARTS)
    render_html(Page(Analysis(cs.simulate_cube(40, 5, repeats=2, rng=1), "accuracy", times=40)))
    assert calls == dict.fromkeys(PARTS, 1)


def test_text_needs_neither_curve_nor_best_set(monkeypatch):
    calls = counted(monkeypatch, *PARTS)
    cs.report_text(cs.simulate_cube(40, 5, rng=1), "accuracy", times=40)
    assert not {"score_tables", "describe_cube"} & set(calls)


@pytest.mark.parametrize("unpredicted", [0, 3])
@pytest.mark.parametrize(("metric", "kinds"), [("accuracy", 1), ("auc", 2)])
def test_each_bootstrap_is_drawn_once(monkeypatch, metric, kinds, unpredicted):
    """Ranks need draws within class, and the published method draws without: two kinds of draws then."""
    drawn = Counter()
    fill = Bootstrap._fill

    def counting(self, out, key):
        drawn[self.strata is None, key[0]] += len(out)
        fill(self, out, key)

    monkeypatch.setattr(Bootstrap, "_fill", counting)
    cube = probability_cube()
    cube[:unpredicted] = np.nan
    render_html(Page(Analysis(cube, metric, times=80)))
    assert len({plain for plain, _ in drawn}) == kinds
    assert sum(drawn.values()) == 80 * kinds


@pytest.mark.parametrize("metric", ["accuracy", "auc"])
def test_shared_draws_give_what_the_functions_give(metric):
    cube = probability_cube()
    found = Analysis(cube, metric, times=80, seed=5)
    options = {"times": 80, "rng": 5}
    for ours, alone in (
        (found.winner, cs.winner(cube, metric, **options)),
        (found.bbc, cs.bbc(cube, metric, **options)),
        (found.curve, cs.optimism_curve(cube, metric, **options)),
    ):
        assert ours.identical(alone.assign_attrs(ours.attrs))
        assert ours.attrs["cube_hash"] == alone.attrs["cube_hash"]
    assert found.best.equals(cs.best_set(cube, metric, **options)[list(found.best)].reset_coords(drop=True))
    assert found.curve.estimate.values[-1] == pytest.approx(float(found.winner.bbc_plain), abs=1e-12)


def test_several_metrics_of_one_decision_lead(tmp_path):
    cube = probability_cube()
    cube = cube.assign_coords(site=("sample", np.where(np.arange(60) % 2, "north", "south")))
    target = tmp_path / "report.html"
    options = {"by": "auc", "adjust": cs.cut("youden"), "subgroup": "site", "times": 60}
    cs.report_html(cube, ["auc", "sensitivity"], path=target, **options)
    page = target.read_text(encoding="utf-8")
    assert page.index('id="decision"') < page.index('id="read"')
    rows = page[page.index('id="decision"') : page.index('id="read"')]
    assert rows.count("<tr>") == 1 + 4  # two metrics at two sites
    assert "north" in rows
    found = cs.winner(cube, ["auc", "sensitivity"], **options, rng=1)
    assert f'data-key="{float(found["estimate"][1, 0])}"' in rows
    assert "subgroup=&#39;site&#39;" in page


def test_two_estimates_of_one_metric_are_explained():
    said = "so that AUC differs from the estimate with its own"
    assert said in cs.report_text(probability_cube(), ["auc", "brier"], times=60)  # draws are not within class
    assert said not in cs.report_text(probability_cube(), ["auc", "sensitivity"], times=60)


def test_one_metric_is_no_list():
    found = Analysis(probability_cube(), "auc", times=60)
    assert found.decision is None
    assert 'id="decision"' not in render_html(Page(found))
    with pytest.raises(cs.InputError, match="`metric` is an empty list"):
        cs.report_text(probability_cube(), [])


def test_sentences_of_one_configuration_speak_of_no_winner(tmp_path):
    cube = cs.example_cube().isel(repeat=0, configuration=[0])
    page = cs.report_html(cube, path=tmp_path / "r.html", times=50).read_text(encoding="utf-8")
    words = re.sub(r"<(script|style|svg|template)\b.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    for wrong in (
        "winner",
        "wins",
        "would claim",
        "selected configuration",
        "too good",
        "e-3",
        "for ranking",
        "1 rows",
    ):
        assert wrong not in words.split("TRIPOD+AI checklist")[0], wrong


def test_sentences_of_configurations_that_were_split_in_different_ways():
    cube = cs.simulate_cube(40, 2, rng=1)
    own = np.stack([cube["fold"].values, cube["fold"].values[::-1]], 1)
    cube = cube.drop_vars("fold").assign_coords(fold=(("sample", "configuration"), own))
    text = cs.report_text(cube, "accuracy", times=50)
    assert "in which configurations were split in different ways" in text
    assert "not saved" not in text + str(cs.summary(cube, "accuracy", times=50))


def test_predictions_for_several_times_are_judged_at_each(tmp_path):
    rng = np.random.default_rng(0)
    days, event = rng.exponential(size=80) + 0.1, (rng.random(80) < 0.7).astype(int)
    risk = np.exp(-np.log(days)[:, None] + rng.normal(size=(80, 2)))
    alive = np.exp(-0.5 * risk[..., None] * np.array([0.5, 1.0])).clip(0.01, 0.99)
    table = xr.DataArray(alive, dims=("sample", "configuration", "horizon"), coords={"horizon": [0.5, 1.0]})
    cube = cs.as_cube(table, days, event=event, kind="probability", folds=np.arange(80) % 5)
    page = cs.report_html(cube, path=tmp_path / "r.html", times=50).read_text(encoding="utf-8")
    assert "Brier score at 1" in page
    for wanted in (
        "time-dependent AUC (0.5)",
        "time-dependent AUC (1)",
        "Calibration at time 0.5",
        "Calibration at time 1",
    ):
        assert wanted in page
    scores = cs.as_cube(risk, days, event=event, kind="score", folds=np.arange(80) % 5)
    assert "time-dependent AUC (" in cs.report_html(scores, path=tmp_path / "s.html", times=50).read_text(
        encoding="utf-8"
    )


def test_a_configuration_called_zero_has_residuals(tmp_path):
    y = np.random.default_rng(0).normal(size=40)
    cube = cs.as_cube(y[:, None] + [0.1, 2.0], y, kind="value")
    assert "Truth against out-of-sample" in cs.report_html(cube, path=tmp_path / "r.html", times=50).read_text("utf-8")
