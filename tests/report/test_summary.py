"""The sentence of a result, the summary of a cube, the words of variables, and what a notebook shows."""

import sys
import types

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.report.analysis import Analysis
from cvstats.report.families import family_table
from cvstats.report.summary import page_of, text_of


@pytest.fixture(scope="module")
def cube():
    return cs.simulate_cube(60, 8, rng=1).assign_coords(
        family=("configuration", ["a", "a", "b", "b", "b", "c", "c", "c"])
    )


def test_a_result_says_its_sentence(cube):
    out = cs.winner(cube, "accuracy", times=60, rng=1)
    text = str(cs.summary(out))
    assert text.startswith(f"Accuracy {float(out.estimate):.3f} (95% interval ")
    assert f"plain CV claims {float(out.naive):.3f}" in text
    assert f"selected {out.selected.item()}." in text
    several = str(cs.summary(cs.winner(cube, ["accuracy", "mcc"], times=60, rng=1)))
    assert len(several.splitlines()) == 2
    assert "cannot be excluded as the best" in str(cs.summary(cs.best_set(cube, "accuracy", times=60, rng=1)))
    test = cs.contrast(cube, "accuracy", a=0, b=1, times=60, rng=1)
    assert f"P = {float(test.p_value):.2f}" in str(cs.summary(test))


def test_a_cube_says_what_was_read_and_the_headline(cube):
    text = str(cs.summary(cube, times=60))
    assert "60 (" in text
    assert "Configurations" in text
    assert "Selected: " in text
    html = cs.summary(cube.assign_coords(configuration=[f"<b>{i}</b>" for i in range(8)]), times=60)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>0</b>" not in html


def test_strangers_are_refused():
    with pytest.raises(cs.InputError, match="no function of cvstats made"):
        cs.summary(xr.Dataset({"estimate": 1.0}))
    with pytest.raises(cs.InputError, match="a cube"):
        cs.summary([1, 2])


@pytest.mark.slow
def test_every_variable_has_words(cube):
    results = [
        cs.winner(cube, "accuracy", times=40, rng=1, keep_draws=True),
        cs.bbc(cube, ["accuracy", "mcc"], times=40, rng=1),
        cs.cvt(cube, "accuracy"), cs.tt(cube, "accuracy"), cs.best_set(cube, "accuracy", times=40, rng=1),
        cs.contrast(cube, "accuracy", a=[0, 1], b=[2, 3], times=40, rng=1), cs.describe_cube(cube),
        cs.bbcd(cube, "accuracy", times=40, rng=1), cs.mcnemar_test(cube, a=0, b=1),
        cs.optimism_curve(cube, "accuracy", times=40, rng=1), cs.implementations(cube, metric="error_rate"),
        cs.optimism_curve(cube, "accuracy", times=40, rng=1, order="tried"),
        cs.prior_curve(cs.example_cube("breast_cancer_separate")),
    ]  # fmt: skip
    risk = cs.example_cube().isel(repeat=0, configuration=slice(0, None, 40))
    curves = [cs.roc_curve, cs.precision_recall_curve, cs.calibration_curve, cs.decision_curve]
    results += [draw(risk, times=40, rng=1) for draw in curves]
    results.append(cs.contrast(risk, "auc", a=risk["configuration"][0], b=risk["configuration"][1], margin=0.05, rng=1))
    for out in results:
        for name, variable in out.data_vars.items():
            assert variable.attrs["long_name"], name
            assert variable.attrs["description"].endswith("."), name
    assert not cube["configuration"].attrs, "a user's own coordinates are left alone"


def test_notebooks_begin_with_the_sentence(cube, monkeypatch):
    out = cs.winner(cube, "accuracy", times=40, rng=1)
    assert text_of(out).startswith("Accuracy ")
    missing = [name for name in out.data_vars if name not in text_of(out)]
    assert not missing, "nothing that matters is cut"
    assert page_of(out).startswith("<p><b>Accuracy ")
    other = xr.Dataset({"x": 1})
    assert text_of(other) == repr(other)
    known = {}
    formatter = types.SimpleNamespace(
        for_type_by_name=lambda module, name, f: known.setdefault((module, name), []).append(f)
    )
    shell = types.SimpleNamespace(
        display_formatter=types.SimpleNamespace(formatters={"text/html": formatter, "text/plain": formatter})
    )
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    cs._in_notebooks()
    page, text = known[xr.Dataset.__module__, "Dataset"]
    said = []
    text(out, types.SimpleNamespace(text=said.append), False)
    assert said == [text_of(out)]
    assert page(out).startswith("<p><b>Accuracy ")


@pytest.mark.parametrize("metric", ["accuracy", "mcc"])
def test_families_are_contrasts_of_the_same_draws(cube, metric):
    analysis = Analysis(cube, metric, times=80, seed=3)
    table = family_table(analysis)
    best = table.body[0][0].text
    judged = {row[0].text: row for row in table.body}
    for name in {"a", "b", "c"} - {best}:
        out = cs.contrast(cube, metric, a={"family": name}, b={"family": best}, times=80, rng=3)
        assert judged[name][5].key == pytest.approx(float(out.estimate), abs=1e-12)
        assert judged[name][4].key == pytest.approx(float(out.estimate_a), abs=1e-12)
        assert judged[name][2].text == str(out.selected_a.item())
        assert judged[name][6].text == f"{analysis.number(out.conf_low)} to {analysis.number(out.conf_high)}"
    p = [
        float(cs.contrast(cube, metric, a={"family": n}, b={"family": best}, times=80, rng=3).p_value)
        for n in list(judged)[1:]
    ]
    np.testing.assert_allclose([judged[n][7].key for n in list(judged)[1:]], cs.p_adjust(np.array(p)), atol=1e-12)


def test_without_families_there_is_no_table(cube):
    assert family_table(Analysis(cube.drop_vars("family"), "accuracy", times=40)) is None
    alone = cube.assign_coords(family=("configuration", [f"f{i}" for i in range(8)]))
    assert family_table(Analysis(alone, "accuracy", times=40)) is None, "every configuration its own family"


@pytest.mark.filterwarnings("ignore::cvstats._check.CvstatsWarning")
def test_what_cannot_be_estimated_costs_neither_nothing_nor_something():
    p = np.random.default_rng(1).random((40, 3))
    text = str(cs.summary(cs.as_cube(p, np.arange(40) < 1, folds=np.arange(40) % 5)))
    assert "what selection costs cannot be estimated here" in text
    assert "costs nothing" not in text


def test_one_fold_is_no_cross_validation():
    p = np.random.default_rng(1).random((40, 1))
    cube = cs.as_cube(p, np.arange(40) % 2, folds=np.zeros(40, int))
    assert "one fold, of all samples" in str(cs.summary(cube))
    text = cs.report_text(cube, times=60, rng=1)
    assert "with all samples in one fold [state the design here]" in text
    assert "1-fold" not in text


def test_sentences_of_comparisons_and_of_nothing_selected(cube):
    def said(result):
        return str(cs.summary(result)).splitlines()

    names = cube["configuration"].values
    difference = said(cs.contrast(cube, "accuracy", a=names[0], b=names[1], times=40, rng=1))[0]
    assert difference.startswith("Difference in accuracy, a \u2212 b: ")
    assert "plain CV" not in difference
    assert said(cs.mcnemar_test(cube, a=names[0], b=names[1]))[0].startswith("Difference in accuracy, a \u2212 b: ")
    table = xr.DataArray([[1.0, 2, 3, 5], [0, 4, 8, 13]], dims=("method", "trial"), coords={"method": ["a", "b"]})
    assert said(cs.levene_test(table, "trial", by="method"))[0].startswith("Brown-Forsythe test; P = ")
    assert said(cs.t_test(table, "trial"))[1].startswith("- One-sample t-test, method b 6.2 ")
    assert said(cs.implementations(cube))[1] == "- Error rate, implementation [Pi2]-[CV1] NA."
    both = cs.as_cube(np.random.default_rng(1).random((40, 3)), np.arange(40) % 2)
    assert "selected a mixture" in said(cs.winner(both, "brier", select=cs.top_mean(2), times=40, rng=1))[0]
