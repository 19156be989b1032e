"""R sends 500 as 500.0: a whole number is one whatever its type, in every argument that asks for one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats as cs
import cvstats.sklearn

Whole = Callable[[int], Any]

CUBE = cs.simulate_cube(40, 4, rng=1)
RISKS = cs.example_cube().isel(repeat=0, configuration=slice(3))
TRIALS = xr.concat(
    [cs.simulate_cube(40, 4, rng=seed) for seed in (1, 2, 3)],
    "trial",
    join="override",
    coords="minimal",
    compat="override",
)
PAIR = xr.DataArray([0.11, 0.25, 0.32, 0.48], dims="dataset"), xr.DataArray([0.1, 0.2, 0.4, 0.3], dims="dataset")
SEPARATE = cs.separate_gaussian(40, folds=2, rng=1)[0]
LABELS = [0, 1] * 10
SEARCH = {"params": [{"C": 1}, {"C": 9}], **{f"split{s}_test_score": [0.5 + s / 9, 0.6] for s in range(12)}}


def _collect(w: Whole) -> Any:
    from sklearn.linear_model import LogisticRegression

    x = np.random.default_rng(1).normal(size=(20, 2))
    return cvstats.sklearn.collect(
        {"a": LogisticRegression()}, x, np.array(LABELS), cv=2, repeats=w(2), rng=w(1), n_jobs=w(1)
    )


def _study(w: Whole) -> Any:
    def method(cube: xr.DataArray, rng: np.random.Generator) -> xr.Dataset:
        return cs.bbc(cube, "accuracy", times=40, rng=rng)

    return cs.coverage(lambda rng: cs.simulate_cube(20, 2, folds=2, rng=rng), method, repetitions=w(2), rng=w(1))


def _scores(w: Whole) -> Any:
    return cs.read_scores(pd.DataFrame(SEARCH), repeats=w(2), max_bytes=w(10_000))


def _page(w: Whole) -> Any:
    path = cs.report_html(CUBE, "accuracy", path="page.html", times=w(40), rng=w(1))
    return [line for line in path.read_text(encoding="utf-8").splitlines() if "created" not in line]


CALLS: dict[str, Callable[[Whole], Any]] = {
    "best_set": lambda w: cs.best_set(CUBE, "accuracy", times=w(30), rng=w(1)),
    "contrast": lambda w: cs.contrast(CUBE, "accuracy", a=0, b=1, times=w(30), rng=w(1)),
    "wilcoxon_test": lambda w: cs.wilcoxon_test(PAIR[0], "dataset", other=PAIR[1], digits=w(3)),
    "calibration_curve": lambda w: cs.calibration_curve(RISKS, times=w(40), rng=w(1)),
    "decision_curve": lambda w: cs.decision_curve(RISKS, times=w(40), rng=w(1)),
    "precision_recall_curve": lambda w: cs.precision_recall_curve(RISKS, times=w(40), rng=w(1)),
    "roc_curve": lambda w: cs.roc_curve(RISKS, times=w(40), rng=w(1)),
    "kfold": lambda w: cs.kfold(LABELS, w(3), repeats=w(2), rng=w(1)),
    "nested_folds": lambda w: cs.nested_folds(cs.kfold(LABELS, 4, rng=1), w(2), rng=w(1)),
    "separate_folds": lambda w: cs.separate_folds(LABELS, w(2), w(2), repeats=w(2), rng=w(1)),
    "bca": lambda w: cs.winner(CUBE[:, :1], "accuracy", interval=cs.bca(times=w(40)), times=40, rng=1),
    "double_bootstrap": lambda w: cs.winner(
        CUBE, "accuracy", interval=cs.double_bootstrap(outer=w(40), inner=w(10)), times=40, rng=1
    ),
    "score_draws": lambda w: cs.score_draws(CUBE, "accuracy", cs.bootstrap(CUBE, 5, rng=1), batch=w(2)),
    "select_and_judge": lambda w: cs.select_and_judge(
        CUBE, "accuracy", choose=cs.bootstrap(CUBE, 5, rng=1), rng=w(1), batch=w(2)
    ),
    "precision_plan": lambda w: cs.precision_plan(CUBE, "accuracy", n=w(80), times=w(40), rng=w(1)),
    "plot_configurations": lambda w: _rows(
        cs.plot_configurations(cs.best_set(CUBE, "accuracy", times=30, rng=1), top=w(2), longest=w(9))
    ),
    "plot_win_rates": lambda w: _rows(
        cs.plot_win_rates(cs.bbc(CUBE, "accuracy", times=40, rng=1), top=w(2), longest=w(9))
    ),
    "bbc": lambda w: cs.bbc(CUBE, "accuracy", times=w(40), rng=w(1), batch=w(7)),
    "winner": lambda w: cs.winner(CUBE, "accuracy", times=w(40), rng=w(1), batch=w(7)),
    "bbcd": lambda w: cs.bbcd(CUBE, "accuracy", min_predictions=w(8), times=w(40), rng=w(1), batch=w(7)),
    "drop_configurations": lambda w: cs.drop_configurations(
        CUBE, "accuracy", min_predictions=w(8), times=w(40), rng=w(1)
    ),
    "evaluation_protocols": lambda w: cs.evaluation_protocols(
        TRIALS, "accuracy", selection=TRIALS, first=w(1), dim="trial"
    ),
    "bbc_folds": lambda w: cs.bbc_folds(_scores(w), times=w(40), rng=w(1)),
    "read_scores": _scores,
    "optimism_curve": lambda w: cs.optimism_curve(CUBE, "accuracy", sizes=[w(1), w(4)], times=w(40), rng=w(1)),
    "classical_cv": lambda w: cs.classical_cv(SEPARATE, times=w(40), rng=w(1)),
    "prior_curve": lambda w: cs.prior_curve(SEPARATE, times=w(40), rng=w(1)),
    "prior_reweighted_cv": lambda w: cs.prior_reweighted_cv(RISKS, prior=0.2, times=w(40), rng=w(1)),
    "separate_cv": lambda w: cs.separate_cv(SEPARATE, prior=0.2, times=w(40), rng=w(1)),
    "read_predictions": lambda w: cs.read_predictions(cs.tidy(CUBE), max_bytes=w(10**9)),
    "report_html": _page,
    "report_text": lambda w: cs.report_text(CUBE, "accuracy", times=w(40), rng=w(1)),
    "summary": lambda w: str(cs.summary(CUBE, "accuracy", times=w(40), rng=w(1))),
    "bootstrap": lambda w: cs.bootstrap(CUBE, w(3), rng=w(1)),
    "subsample": lambda w: cs.subsample(CUBE, w(3), rng=w(1)),
    "ensemble": lambda w: cs.bbc(RISKS, "brier", select=cs.ensemble(size=w(3), start=w(1)), times=40, rng=1),
    "top_mean": lambda w: cs.bbc(RISKS, "brier", select=cs.top_mean(w(2)), times=40, rng=1),
    "coverage": _study,
    "ripley_mixture": lambda w: cs.ripley_mixture(
        w(20), ridge=[1.0], eta=[1.0], folds=w(2), repeats=w(1), n_test=w(30), realisations=w(2), rng=w(1)
    )[0],
    "separate_gaussian": lambda w: cs.separate_gaussian(
        w(30), folds=w(2), k0=w(2), k1=w(2), repeats=w(1), trials=w(2), rng=w(1)
    )[0],
    "simulate_cube": lambda w: cs.simulate_cube(w(20), w(3), folds=w(2), repeats=w(2), rng=w(1)),
    "format_table": lambda w: cs.format_table(cs.cvt(CUBE, "accuracy"), digits=w(2)),
    "collect": _collect,
}
NO_CALL = {"Metric", "InputError", "CvstatsWarning"}  # classes that nobody makes by hand


def _rows(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("name", CALLS)
def test_floats_that_are_whole_are_whole_numbers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exact, sent = CALLS[name](int), CALLS[name](float)
    if isinstance(exact, (xr.Dataset, xr.DataArray)):
        assert exact.drop_attrs().identical(sent.drop_attrs())
    else:
        assert exact == sent


def test_every_function_that_takes_a_whole_number_is_here() -> None:
    functions = {name: getattr(cs, name) for name in cs.__all__ if callable(getattr(cs, name)) and name not in NO_CALL}
    functions["collect"] = cvstats.sklearn.collect
    wanted = {
        name
        for name, function in functions.items()
        if not isinstance(function, cs.Metric)
        and re.search(r"\bint\b|\bRng\b", str(inspect.signature(function)).split("->")[0])
    }
    assert wanted == set(CALLS)
