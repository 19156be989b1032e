"""What a stranger may add from outside the package: the examples of "Where do I add ..." run, and count like ours."""

import re
from pathlib import Path

import numpy as np
import pytest

import cvstats as cs
from cvstats.formats import LAYOUTS
from cvstats.intervals import METHODS
from cvstats.metrics import base
from cvstats.protocols import PROTOCOLS
from cvstats.report import page, render_html
from cvstats.report.analysis import Analysis

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of an installed package")


@pytest.fixture
def example():
    """Return what runs the example below a heading; afterwards the package forgets it."""
    registries = [LAYOUTS, METHODS, base.REGISTRY, PROTOCOLS, page.SECTIONS]
    before = [dict(registry) for registry in registries]

    def run(heading):
        names = {}
        code = re.search(rf"^## {heading}\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        exec(compile(code.group(1), f"extending.md, {heading}", "exec"), names)
        return names

    yield run
    for registry, known in zip(registries, before, strict=True):
        registry.clear()
        registry.update(known)


def numbers():
    rng = np.random.default_rng(3)
    y = rng.normal(size=40)
    return cs.as_cube(y[:, None] + rng.normal(size=(40, 4)) * [0.6, 0.7, 0.7, 2.0], y, folds=np.arange(40) % 4)


def test_metric(example):
    metric = example("A metric")["worst_tenth"]
    cube = numbers()
    gap = np.abs(cube.values - cube["label"].values[:, None])
    np.testing.assert_allclose(cs.score(cube, metric), np.quantile(gap, 0.9, axis=0))
    out = cs.winner(cube, metric, times=60, rng=1)
    assert out["conf_low"] < out["estimate"] < out["conf_high"]
    assert "worst tenth" in cs.report_text(cube, metric, times=40)


def test_protocol(example):
    pytest.importorskip("matplotlib")
    halves = example("A protocol")["halves"]
    cube = cs.simulate_cube(60, 5, rng=1)
    found = halves(cube, "accuracy")
    chosen = cs.score(cube[1::2], "accuracy").argmax("configuration")
    assert float(found["estimate"]) == pytest.approx(float(cs.score(cube[::2], "accuracy")[chosen]))
    assert float(found["optimism"]) == pytest.approx(float(found["naive"] - found["estimate"]))
    assert halves(cube, "error_rate")["optimism"] == pytest.approx(float(found["optimism"]))
    from cvstats.protocols import PROTOCOLS as now

    assert now["halves"].judges == "the other samples"
    axes = np.ravel(cs.plot_intervals(cs.bind(cs.cvt(cube, "accuracy"), found)))[0]
    assert "Two halves" in [text.get_text() for text in axes.get_yticklabels()]


@pytest.mark.parametrize("known_by", ["object", "class", "name"])
def test_interval(example, known_by):
    method = example("An interval")["Normal"]
    interval = {"object": method(), "class": method, "name": "normal"}[known_by]
    out = cs.bbc(cs.simulate_cube(40, 5, rng=1), "accuracy", interval=interval, times=50, rng=1)
    assert out["interval"].item() == "normal"
    middle = (out["conf_low"] + out["conf_high"]) / 2
    assert float(middle) == pytest.approx(float(out["estimate"]))
    with pytest.raises(cs.InputError, match="interval 'normal' does not apply: it needs 20 samples"):
        cs.bbc(cs.simulate_cube(10, 5, rng=1), "accuracy", interval=interval, times=50, rng=1)


@pytest.mark.parametrize("format", ["auto", "clinic"])
def test_reader(example, tmp_path, format):
    example("A reader")
    rows = ["patient_no,recipe,was_ill,risk_percent", "7,a,1,90", "8,a,0,20", "7,b,1,60", "8,b,0,70"]
    path = tmp_path / "export.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    cube = cs.read_predictions(path, format=format)
    assert cs.load_report(cube)["layout"] == "clinic"
    assert cube["configuration"].values.tolist() == ["a", "b"]
    assert cube["sample"].values.tolist() == [7, 8]
    np.testing.assert_allclose(cube, [[0.9, 0.6], [0.2, 0.7]])
    np.testing.assert_allclose(cs.score(cube, "auc"), [1.0, 0.0])


@pytest.mark.slow
def test_report_section(example):
    pytest.importorskip("matplotlib")
    example("A report section")
    html = render_html(page.Page(Analysis(cs.simulate_cube(40, 3, rng=1), "accuracy", times=40)))
    order = re.findall(r'<section id="(\w+)">', html)
    assert order[order.index("paragraph") - 1] == "sizes"
    assert "<p>40 samples were predicted.</p>" in html


def test_selection_strategy_with_a_tie_rule_of_its_own(example):
    last = example("A selection strategy or tie rule")["select_last"]
    cube = cs.simulate_cube(30, 12, rng=1)
    turned = cube[:, ::-1]
    draws = cs.bootstrap(cube, 100, rng=1)
    options = {"draws": draws, "keep_draws": True}
    ours, first = cs.bbc(turned, "accuracy", **options), cs.bbc(cube, "accuracy", **options)
    found = cs.bbc(cube, "accuracy", select=last, **options)
    assert found.equals(ours.sel(configuration=cube["configuration"].values))
    assert (found["draw_selected"] != first["draw_selected"]).any()
    assert cs.cvt(cube, "accuracy", select=last)["selected"] == cs.cvt(turned, "accuracy")["selected"]
    for direction, scores in (("minimize", [1.0, 0.0, 0.0, np.nan]), ("maximize", [0.0, 1.0, 1.0, np.nan])):
        assert last(np.array(scores), direction=direction) == 2


def test_every_section_of_the_page_is_run_here():
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    here = Path(__file__).read_text(encoding="utf-8")
    assert [heading for heading in headings if f'example("{heading}")' not in here] == []
