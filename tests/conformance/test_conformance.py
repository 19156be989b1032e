"""The conformance vectors hold, and the runner says so in one table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvstats as cs
from conformance import run

HERE = Path(__file__).parent


LONG = ("clinical", "curves", "decisions", "folds", "protocols", "separate")
VECTORS = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow][path.stem not in LONG :]) for path in run.files()]


@pytest.mark.parametrize("path", VECTORS)
def test_all_vectors_hold(path: Path) -> None:
    found = list(run.rows([path]))
    assert len(found) > 100
    assert [(row.name, row.quantity, row.expected, row.got) for row in found if not row.passed] == []


def metrics_of(vector: dict[str, Any]) -> set[str]:
    """The names of the metrics of a vector: a name, ``{name: arguments}``, or a list of those."""
    given = vector.get("metric", [])
    return {
        name
        for metric in (given if isinstance(given, list) else [given])
        for name in ([metric] if isinstance(metric, str) else metric)
    }


def test_every_metric_has_a_value() -> None:
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in run.files()]
    scored = [vector for content in contents for vector in content["vectors"] if vector["function"] == "score"]
    metrics = {name for name in cs.__all__ if isinstance(getattr(cs, name), cs.Metric)}
    assert {name for vector in scored for name in metrics_of(vector)} >= metrics | {"net_benefit", "prior_error"}


def test_every_public_function_has_a_vector_or_a_reason() -> None:
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in run.files()]
    called = {vector["function"] for content in contents for vector in content["vectors"]}
    metrics = {name for content in contents for vector in content["vectors"] for name in metrics_of(vector)}
    reasons = (HERE / "README.md").read_text(encoding="utf-8").partition("without a vector")[2].partition("\n## ")[0]
    excused = {name for row in reasons.splitlines() for name in re.findall(r"`(\w+)`", [*row.split("|"), ""][1])}
    assert called <= set(cs.__all__)
    assert not called & excused
    plots = {name for name in cs.__all__ if name.startswith("plot_")}
    assert called | metrics | excused | plots | {"__version__"} == {*cs.__all__, "plot_"}
    names = [vector["name"] for content in contents for vector in content["vectors"]]
    assert len(set(names)) == len(names)


def test_the_runner_prints_a_table_and_fails_on_a_wrong_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content: dict[str, Any] = json.loads((HERE / "metrics.json").read_text(encoding="utf-8"))
    content["vectors"] = content["vectors"][:2]
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(content), encoding="utf-8")
    content["vectors"][1]["expected"]["value"][0] += 1e-6
    bad.write_text(json.dumps(content), encoding="utf-8")
    assert run.main([str(good)]) == 0
    assert "2 quantities, 0 failures" in capsys.readouterr().out
    assert run.main([str(bad), "--failures"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].split()[-1] == "NO"
    assert lines[2] == "2 quantities, 1 failures"


@pytest.mark.parametrize(
    ("expected", "got", "passed"),
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([1.0, np.nan], [1.0, 0.0], False),
        ([np.inf], [np.inf], True),
        ([np.inf], [1e308], False),
        ([1.0], [1.0, 1.0], False),
        ([1e9], [1e9 + 1e-3], True),
        ([0.0], [1e-9], False),
    ],
)
def test_compare(expected: list[float], got: list[float], passed: bool) -> None:
    assert run.compare(np.array(expected), np.array(got), 1e-10)[1] is passed
