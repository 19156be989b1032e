"""The checklist, and the formula of the interval in the methods paragraph."""

import re

import numpy as np
import pytest
from scipy.stats import t as student

import cvstats as cs
from cvstats.report.analysis import Analysis
from cvstats.report.checklist import AUTHOR, ITEMS, checklist


@pytest.fixture(scope="module")
def cube():
    return cs.simulate_cube(60, 8, repeats=1, rng=1)


def test_every_item_is_answered_or_the_authors(cube):
    rows = list(checklist(Analysis(cube, "accuracy", times=40)))
    assert [item for item, _, _ in rows] == list(ITEMS)
    known = {item: answer for item, _, answer in rows if answer != AUTHOR}
    assert {"10", "11", "12a", "12c", "12e", "13", "15", "18f", "21", "23a"} == set(known)
    assert "60 samples" in known["21"]
    assert "8 configurations compared by accuracy" in known["12c"]


def test_groups_subgroups_and_adjustments_are_answered(cube):
    grouped = cube.assign_coords(group=("sample", np.arange(60) // 2), sex=("sample", np.arange(60) % 2))
    rows = checklist(Analysis(grouped, ["accuracy", "mcc"], times=40, subgroup="sex"))
    known = {item: answer for item, _, answer in rows if answer != AUTHOR}
    assert "30 groups" in known["12d"]
    assert "sex" in known["14"]
    assert known["12e"].startswith("accuracy, ")


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_text_has_the_checklist_when_asked(cube, format):
    plain = cs.report_text(cube, "accuracy", times=40, format=format)
    text = cs.report_text(cube, "accuracy", times=40, format=format, checklist=True)
    assert text.startswith(plain)
    assert "TRIPOD" not in plain
    assert "bmj-2023-078378" in text


@pytest.mark.parametrize(("metric", "repeats"), [("accuracy", 1), ("auc", 1), ("accuracy", 2)])
def test_limits_can_be_redone_from_the_paragraph(metric, repeats):
    cube = cs.example_cube().isel(configuration=slice(0, None, 12), repeat=slice(0, repeats))
    out = cs.winner(cube, metric, times=200, rng=1)
    text = cs.report_text(cube, metric, times=200)
    number = r"([\d.e+-]*\d)"
    n_eff, kappa, extra = (float(re.search(rf"{name} = {number}", text).group(1)) for name in ("n_eff", "kappa", "V"))
    t = student.ppf(0.975, int(re.search(r"t on (\d+) degrees", text).group(1)))

    def wilson(c, n):
        middle, half = c + t * t / (2 * n), t * np.sqrt(c * (1 - c) / n + t * t / (4 * n * n))
        return (middle - half) / (1 + t * t / n), (middle + half) / (1 + t * t / n)

    def own(c):
        return wilson(c, c * (1 - c) / (kappa * c * (1 - c) / n_eff + extra))

    below = re.search(rf"worse side is that at the centre {number}", text)
    assert bool(below) == (metric == "accuracy")
    low = own(float(below.group(1) if below else out.estimate))[0]
    high = own(float(out.estimate))[1]
    for n, centre in re.findall(rf"at least that of {number} samples at the centre {number}", text):
        high = max(high, wilson(float(centre), float(n))[1])
    high += float(re.search(rf"moves by {number} of its distance", text).group(1)) * (1 - high)
    assert [low, high] == pytest.approx([float(out.conf_low), float(out.conf_high)], abs=2e-3)
