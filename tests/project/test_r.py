"""The R script in the vignettes, run by Rscript: what arrives in R's data frame is what Python computes."""

from __future__ import annotations

import os
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
