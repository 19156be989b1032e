"""The R script in the vignettes, run by Rscript: what arrives in R's data frame is what Python computes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import cvstats as cs
from cvstats.tables.for_r import for_caller

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "vignettes" / "09_coming_from_r.R"
PACKAGES = "library(caret); library(reticulate)"


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPT.exists(), reason="the sdist has no vignettes")
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_same_numbers_in_r(tmp_path: Path) -> None:
    home = {**os.environ, "RETICULATE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    known = subprocess.run(["Rscript", "-e", PACKAGES], env=home, capture_output=True, text=True)
    if known.returncode:
        pytest.skip("caret or reticulate is not installed")
    done = subprocess.run(["Rscript", str(SCRIPT)], cwd=tmp_path, env=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cube = cs.read_predictions(tmp_path / "caret.csv", positive="Class1")
    ours, theirs = cs.tidy(cs.winner(cube, "auc", times=500, rng=1)), pd.read_csv(tmp_path / "winner.csv")
    pd.testing.assert_frame_equal(ours, theirs[list(ours)], check_dtype=False, rtol=1e-12)
    assert str(cs.summary(cs.winner(cube, "auc", times=500, rng=1))).splitlines()[0] in done.stdout


def test_frames_are_pandas_unless_r_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"name": ["a", None], "n": [1, 2**40], "x": [0.5, float("nan")], "same": ["u", "v"]})
    assert for_caller(frame) is frame
    monkeypatch.setitem(sys.modules, "rpytools", ModuleType("rpytools"))
    sent: Any = for_caller(frame)
    assert type(sent).__module__ == "pandas.core.frame"  # the name by which reticulate knows frames
    assert sent.columns.format() == ["name", "n", "x", "same"]
    name, n, x, same = (column for _, column in sent.items())
    assert name.dtype.name == "category"
    assert (name.dtype.categories.values, name.cat.codes.values) == (["a"], [0, -1])
    assert n.values == [1.0, float(2**40)]  # beyond R's whole numbers
    assert x.values[0] == 0.5
    assert same.values == ["u", "v"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_validation_page(tmp_path: Path) -> None:
    """Write the files as the page says, and find every number of ours in its table."""
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8") if (ROOT / "docs").exists() else ""
    code = re.findall(r"```r\n(.*?)```", text, flags=re.DOTALL)
    done = subprocess.run(["Rscript", "-e", "".join(code)], cwd=tmp_path, capture_output=True, text=True)
    if not code or "there is no package called" in done.stderr:
        pytest.skip("the page, pROC, ROCR or modeldata are not here")
    frames = {path.stem: pd.read_csv(path) for path in tmp_path.glob("*.csv")}
    table = frames["aSAH"]
    markers = cs.as_cube(table[["wfns", "s100b", "ndka"]], table["outcome"], positive="Poor", kind="score")
    ours = []
    for name in ("wfns", "s100b", "ndka"):
        one = cs.winner(markers.sel(configuration=[name]), "auc", interval="delong", regime="holdout", times=40, rng=1)
        ours.append(f"{float(one.estimate):.6f} ({float(one.conf_low):.6f} to {float(one.conf_high):.6f})")
    ours.append(f"P = {float(cs.delong_test(markers, a='wfns', b='s100b').p_value):.4g}")
    table = frames["simple"]
    ours.append(
        f"{cs.score(cs.as_cube(table[['predictions']], table['labels'], kind='score', positive=1), 'auc')[0]:.6f}"
    )
    for name in ("xval", "hiv_svm", "hiv_nn"):
        cube = _folds(frames[name])
        ours.append(f"{float(cs.cv(cube, 'auc', average='fold').estimate[0]):.6f}")
    table = frames["two_class_example"]
    cube = cs.as_cube(table[["Class1"]], table["truth"], kind="probability", positive="Class1")
    ours += [f"{float(cs.score(cube, name)[0]):.6g}" for name in ("auc", "accuracy", "kappa")]
    ours.append(", ".join(f"{float(cs.score(cube, name)[0]):.6f}" for name in ("sensitivity", "specificity")))
    ours.append(f"{float(cs.score(cube, 'f1')[0]):.6f}")
    table, classes = frames["hpc_cv"], ["VF", "F", "M", "L"]
    cube = cs.as_cube(table[classes].to_numpy()[:, None], table["obs"], classes=classes)
    ours += [f"{float(cs.score(cube, name)[0]):.6f}" for name in ("accuracy", "kappa")]
    table = frames["solubility_test"]
    cube = cs.as_cube(table[["prediction"]], table["solubility"], kind="value")
    ours += [f"{float(cs.score(cube, name)[0]):.6f}" for name in ("rmse", "mae")]
    stated = [line.strip("|").split("|") for line in text.split("## The numbers")[1].splitlines() if line[:3] == "| `"]
    assert [row[3].strip() for row in stated] == ours
    assert [row[2].split(", pROC")[0].split(", ROCR")[0].split(", caret")[0].strip() for row in stated] == ours


def _folds(table: pd.DataFrame) -> Any:
    return cs.as_cube(table[["prediction"]], table["label"], folds=table["fold"].to_numpy(), kind="score", positive=1)
