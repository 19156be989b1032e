"""Every table and figure of the five papers has one row on the page that says what was reproduced."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reproduced.md"
PAPERS = {  # tables and figures
    "Tsamardinos, Rakhshani, Lagani 2015": (14, 6),
    "Braga-Neto, Zollanvari, Dougherty 2014": (1, 4),
    "Winderbaum, Koch 2022": (2, 2),
    "Tsamardinos, Greasidou, Borboudakis 2018": (1, 7),
    "Cawley, Talbot 2010": (8, 14),
}


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not in this tree")
@pytest.mark.parametrize("paper", PAPERS)
def test_no_row_is_missing(paper):
    part = PAGE.read_text(encoding="utf-8").partition(f"## {paper}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:Table|Figure) \d+) \|.*\| ([^|]*) \|$", part, re.MULTILINE)
    tables, figures = PAPERS[paper]
    expected = {f"Table {i + 1}" for i in range(tables)} | {f"Figure {i + 1}" for i in range(figures)}
    assert sorted(name for name, _ in rows) == sorted(expected)
    assert all(said.strip() for _, said in rows)


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not in this tree")
def test_every_long_run_is_made_and_shown_by_a_vignette():
    root = PAGE.parents[1]
    text = "".join(path.read_text(encoding="utf-8") for path in (root / "vignettes").glob("*.py"))
    shown = set(re.findall(r'kept\("(\w+)"', text)) | set(re.findall(r'read_csv\(RESULTS / "papers_(\w+).csv"', text))
    kept = {path.stem.removeprefix("papers_") for path in (root / "benchmarks/results").glob("papers_*")}
    assert shown == kept
