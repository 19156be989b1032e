"""From separate folds to a report, through a table that R trained: `tests/files/separate_lda.R` is its script."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats as cs
from cvstats.cli import main

FILES = Path(__file__).parents[1] / "files"
PRIOR = {"virginica": 0.02}


def design() -> pd.DataFrame:
    """Return what R gets: 26 versicolor and 21 virginica of R's iris, by the number of their row."""
    label = pd.Series(np.repeat(["versicolor", "virginica"], [26, 21]), index=[*range(51, 77), *range(101, 122)])
    return cs.tidy(cs.pairs(cs.separate_folds(label, 4, 3, rng=1).isel(repeat=0, drop=True)))


def test_the_design_is_the_one_that_was_trained():
    pd.testing.assert_frame_equal(
        pd.read_csv(io.StringIO(design().to_csv(index=False))), pd.read_csv(FILES / "separate_lda_design.csv")
    )


def test_numbers_of_the_table_are_those_of_plain_loops_in_r():
    cube = cs.read_predictions(FILES / "separate_lda.csv", positive="virginica")
    assert cube.sizes["partner"] == 4
    theirs = pd.read_csv(FILES / "separate_lda_numbers.csv", index_col="configuration")
    ours = cs.separate_cv(cube, prior=PRIOR, rng=1)
    np.testing.assert_allclose(ours.class_error, theirs[["versicolor", "virginica"]], rtol=1e-13)
    np.testing.assert_allclose(ours.estimate, theirs["overall"], rtol=1e-13)
    np.testing.assert_allclose(cs.score(cube, "auc"), theirs["auc"], rtol=1e-13)


def test_a_report_of_the_table(tmp_path, capsys):
    page, table = tmp_path / "report.html", str(FILES / "separate_lda.csv")
    asked = ["--positive", "virginica", "--prior", "virginica=.02", "--draws", "200"]
    assert main(["report", table, *asked, "-o", str(page)]) == 0
    assert "Error rate at virginica=0.02 of the winner" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    for part in (
        "In the population",
        "Errors by class",
        "Decision by prevalence",
        "always versicolor",
        "divided into 4 folds of versicolor and 3 folds of virginica; every pair of folds was left out once",
        "its threshold is made for another class ratio",
        "Braga-Neto, Zollanvari, Dougherty (2014)",
    ):
        assert part in text
    assert main(["verify", str(page), table]) == 0
    assert "identical" in capsys.readouterr().out
    again = cs.report_text(cs.read_predictions(table, positive="virginica"), prior=PRIOR, times=200)
    assert "For a population with class probabilities virginica 0.02 the class errors, which every pair" in again


def test_reports_without_a_prior_and_of_ordinary_folds(tmp_path):
    separate = cs.read_predictions(FILES / "separate_lda.csv", positive="virginica")
    text = cs.report_text(separate, times=200)
    assert "No error over both classes is given" in text
    page = cs.report_html(separate, path=tmp_path / "x.html", times=100).read_text(encoding="utf-8")
    assert "Without a prior there is no error over all classes" in page
    ordinary = cs.example_cube().isel(configuration=slice(0, 9, 4), repeat=[0])
    text = cs.report_text(ordinary, prior={"malignant": 0.02}, times=200)
    assert "an approximation (prior-reweighted cross-validation)" in text
    expected = cs.prior_reweighted_cv(ordinary, prior={"malignant": 0.02}, rng=1, times=200)
    mine = expected.sel(configuration=cs.cvt(ordinary, cs.prior_error({"malignant": 0.02})).selected.item())
    assert f"({float(mine.conf_low):.3f} to {float(mine.conf_high):.3f})" in text


@pytest.mark.parametrize("text", ["ill", "ill=much", "=0.2"])
def test_a_prior_is_a_label_and_a_probability(text, capsys):
    assert main(["estimate", "--prior", text]) == 2
    assert "--prior takes LABEL=PROBABILITY" in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_makes_the_table_again(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    for name in ("separate_lda.R", "separate_lda_design.csv"):
        shutil.copy(FILES / name, tmp_path)
    done = subprocess.run(["Rscript", "separate_lda.R"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if done.returncode and "MASS" in done.stderr:
        pytest.skip("R has no MASS")
    made, kept = (pd.read_csv(folder / "separate_lda.csv") for folder in (tmp_path, FILES))
    pd.testing.assert_frame_equal(made, kept, rtol=1e-9)


def test_tables_and_figures_of_cubes_with_partners():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    cube = cs.example_cube("breast_cancer_separate").isel(configuration=slice(0, 36, 9), repeat=0, drop=True)
    metric = cs.at_prior("error_rate", {"malignant": 0.02})
    found = cs.winner(cube, metric, times=100, rng=1)
    rows = cs.augment(cube, found)
    assert len(rows) == 120 * 5
    assert rows.groupby("sample").partner.nunique().eq(5).all()
    about = cs.describe_cube(cube)
    assert int(about.n_samples) == 120
    assert int(about.n_missing.sum()) == 0
    assert about.fold_class_count.values.tolist() == [[12, 12]] * 5
    cs.plot_win_rates(found)
    cs.plot_intervals(found)
    cs.plot_optimism(cs.optimism_curve(cube, metric, times=100, rng=1))
    cs.plot_configurations(cs.best_set(cube, metric, times=100, rng=1))
    cs.plot_scores_by(cs.score(cube, "auc"), "complexity")
    cs.plot_prior(cs.prior_curve(cube, rng=1).isel(configuration=0))
    pyplot.close("all")
