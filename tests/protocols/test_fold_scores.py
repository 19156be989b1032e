"""Scores of folds alone: the tables that hold them, enumeration, plain loops, and the bias on simulated data."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats as cs

FILES = Path(__file__).parent.parent / "files"


def scores_of(c=4, k=6, r=None, seed=0, digits=9):
    shape, dims = ((c, k), ("configuration", "fold")) if r is None else ((c, k, r), ("configuration", "fold", "repeat"))
    values = np.random.default_rng(seed).normal(0.7, 0.1, shape).round(digits)
    return xr.DataArray(values, dims=dims, coords={"configuration": [f"c{j}" for j in range(c)]})


# --- the estimate -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_enumeration_of_all_draws(direction):
    """With five folds all 3125 draws can be listed; 120 of them leave no fold out and are drawn again."""
    scores = scores_of(3, 5)
    pick = np.argmax if direction == "maximize" else np.argmin
    values, wins = [], np.zeros(3)
    for draw in itertools.product(range(5), repeat=5):
        left = sorted(set(range(5)) - set(draw))
        if left:
            best = pick(scores.values[:, list(draw)].mean(axis=1))
            values.append(scores.values[best, left].mean())
            wins[best] += 1
    out = cs.bbc_folds(scores, direction=direction, times=40_000, rng=1)
    assert len(values) == 3005
    assert float(out.estimate) == pytest.approx(np.mean(values), abs=5 * np.std(values) / np.sqrt(40_000))
    assert float(out.std_error) == pytest.approx(np.std(values), rel=0.03)
    np.testing.assert_allclose(out.win_rate, wins / wins.sum(), atol=0.015)
    for name, share in (("conf_low", 0.025), ("conf_high", 0.975)):
        low, high = np.quantile(values, [share - 0.01, min(share + 0.01, 1)])
        assert low - 1e-12 <= float(out[name]) <= high + 1e-12


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_plain_loops_over_the_same_draws(direction):
    scores = scores_of(5, 8, 3)
    sign = 1 if direction == "maximize" else -1
    counts = cs.bootstrap(cs.as_cube(np.zeros((8, 1)), np.zeros(8), kind="value"), 200, rng=7).values
    estimates, limits, wins = [], [], np.zeros(5)
    for r in range(3):
        table, values = scores.values[:, :, r], []
        for count in counts:
            best = np.argmax(sign * table @ count)
            wins[best] += 1
            values.append(table[best, count == 0].mean())
        estimates.append(np.mean(values))
        limits.append(np.quantile(values, [0.05, 0.95]))
    out = cs.bbc_folds(scores, direction=direction, times=200, rng=7, level=0.9)
    assert float(out.estimate) == pytest.approx(np.mean(estimates), rel=1e-12)
    np.testing.assert_allclose([out.conf_low, out.conf_high], np.mean(limits, axis=0), rtol=1e-12)
    np.testing.assert_allclose(out.win_rate, wins / 600, rtol=1e-12)
    means = scores.mean(["fold", "repeat"])
    assert float(out.naive) == pytest.approx(sign * float((sign * means).max()), rel=1e-12)
    assert out.selected.item() == means.configuration.values[np.argmax(sign * means.values)]
    assert float(out.optimism) == pytest.approx(sign * float(out.naive - out.estimate), rel=1e-12)
    assert int(out.n_draws) == 600


def test_its_variables_are_those_of_bbc():
    out = cs.bbc_folds(scores_of(), direction="maximize", times=100, rng=1)
    cube = cs.simulate_cube(20, 3, rng=1)
    assert set(out.data_vars) == set(cs.bbc(cube, "accuracy", times=100, rng=1).data_vars)
    assert (out.method.item(), out.metric.item(), out.interval.item(), out.conf_level.item()) == (
        "bbc_folds", "score", "percentile", 0.95,
    )  # fmt: skip
    assert len(
        cs.tidy(
            cs.bind(
                out, cs.bbc_folds(scores_of(), direction="maximize", times=100, rng=2).assign_coords(method="again")
            )
        )
    )


def test_the_order_of_configurations_and_repeats_changes_nothing():
    scores = scores_of(6, 5, 2, digits=1)  # with ties
    out = cs.bbc_folds(scores, direction="maximize", times=100, rng=1)
    turned = cs.bbc_folds(
        scores.isel(configuration=slice(None, None, -1), repeat=[1, 0]), direction="maximize", times=100, rng=1
    )
    xr.testing.assert_allclose(
        turned.drop_vars("selected").sel(configuration=out.configuration), out.drop_vars("selected"), rtol=1e-12
    )


def test_one_configuration_is_its_own_estimate():
    out = cs.bbc_folds(scores_of(1), direction="maximize", times=100, rng=1)
    assert float(out.estimate) == pytest.approx(float(out.naive), rel=1e-12)
    assert float(out.optimism) == pytest.approx(0, abs=1e-12)


def test_equal_configurations_share_the_wins():
    scores = scores_of(1, 10).isel(configuration=[0] * 4).assign_coords(configuration=list("abcd"))
    out = cs.bbc_folds(scores, direction="maximize", times=2000, rng=1)
    np.testing.assert_allclose(out.win_rate, 0.25, atol=0.04)
    assert out.selected.item() == "a"


def test_missing_scores():
    scores = scores_of(4, 6)
    padded = xr.concat([scores, scores.isel(fold=[0]) * np.nan], "fold")
    expected = cs.bbc_folds(scores, direction="maximize", times=100, rng=1)
    xr.testing.assert_allclose(cs.bbc_folds(padded, direction="maximize", times=100, rng=1), expected)
    scores[0, 2] = np.nan
    with pytest.warns(cs.CvstatsWarning, match=r"1 configurations lack scores that others have .* \('c0'\)"):
        out = cs.bbc_folds(scores, direction="maximize", times=100, rng=1)
    rest = cs.bbc_folds(scores[1:], direction="maximize", times=100, rng=1)
    assert float(out.estimate) == float(rest.estimate)
    assert out.win_rate.values.tolist() == [0.0, *rest.win_rate.values.tolist()]
    for j in range(4):
        scores[j, j] = np.nan
    with pytest.raises(cs.InputError, match="no configuration has every score that another has"):
        cs.bbc_folds(scores, direction="maximize")


def test_batches_are_kept():
    both = xr.concat([scores_of(seed=1), scores_of(seed=2)], xr.DataArray(["x", "y"], dims="dataset", name="dataset"))
    out = cs.bbc_folds(both, direction="maximize", times=100, rng=1)
    for name, seed in (("x", 1), ("y", 2)):
        alone = cs.bbc_folds(scores_of(seed=seed), direction="maximize", times=100, rng=1)
        for variable in ("estimate", "conf_low", "naive", "selected", "win_rate"):
            np.testing.assert_array_equal(out[variable].sel(dataset=name), alone[variable])


@pytest.mark.parametrize(
    ("scores", "options", "text"),
    [
        (lambda: scores_of(3, 3), {}, "`scores` has 3 folds; at least 4 are needed"),
        (lambda: scores_of().values, {}, "`scores` must be a DataArray"),
        (lambda: scores_of().rename(fold="split"), {}, "`scores` has no dimension 'fold'"),
        (lambda: scores_of().rename(fold="sample").expand_dims(fold=5), {}, "these are predictions; use winner"),
        (lambda: scores_of() / 0, {}, "`scores` must be finite"),
        (lambda: scores_of().astype(str), {}, "`scores` must hold numbers"),
        (scores_of, {"direction": None}, "`direction` must be 'maximize' or 'minimize'"),
        (scores_of, {"direction": "up"}, "`direction` must be one of"),
        (scores_of, {"times": 10}, "`times`=10 is too small"),
        (scores_of, {"level": 95}, "`level` must be a number strictly between 0 and 1"),
    ],
)
def test_refusals(scores, options, text):
    with np.errstate(all="ignore"), pytest.raises(cs.InputError, match=text):
        cs.bbc_folds(scores(), **{"direction": "maximize", **options})


# design: samples, configurations, folds; bias, root mean squared error and coverage of 400 repetitions with 200 draws
TRUTH = {
    (100, 100, 10): (-0.014, 0.044, 0.973),
    (100, 100, 5): (-0.016, 0.047, 0.948),
    (40, 50, 10): (-0.013, 0.072, 0.990),
    (500, 100, 10): (-0.004, 0.018, 0.970),
    (20, 200, 10): (-0.023, 0.090, 1.00),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", TRUTH)
def test_bias_error_and_coverage_on_simulated_data(design):
    """Fixed models of known accuracy, 0-1 loss; within four Monte-Carlo errors of two such studies."""
    n, c, k = design
    bias, error, coverage = TRUTH[design]
    gaps, inside, times = [], [], 200
    for seed in range(times):
        cube = cs.simulate_cube(n, c, folds=k, rng=seed)
        right = (cube == cube["label"]).groupby("fold").mean("sample")
        out = cs.bbc_folds(right.transpose("configuration", "fold"), direction="maximize", times=200, rng=seed)
        truth = float(cube["truth"].sel(configuration=out.selected.item()))
        gaps.append(float(out.estimate) - truth)
        inside.append(float(out.conf_low) <= truth <= float(out.conf_high))
    noise = np.sqrt(1 / times + 1 / 400)
    assert np.mean(gaps) == pytest.approx(bias, abs=4 * np.std(gaps) * noise + 0.0005)
    assert np.sqrt(np.mean(np.square(gaps))) == pytest.approx(error, abs=4 * np.std(gaps) * noise / np.sqrt(2) + 0.0005)
    assert np.mean(inside) == pytest.approx(coverage, abs=4 * np.sqrt(max(coverage * (1 - coverage), 0.005)) * noise)


# --- tables of scores ---------------------------------------------------------------------------------------------


def test_files_of_other_tools():
    grid = cs.read_scores(FILES / "sklearn_scores.csv")
    assert grid.dims == ("configuration", "fold")
    assert grid.configuration.values.tolist() == ["n_neighbors=3", "n_neighbors=5"]
    assert grid.values.tolist() == [[0.7, 0.6, 0.7, 0.7], [0.6, 0.6, 0.6, 0.7]]
    assert (grid.metric.item(), grid.direction.item()) == ("score", "maximize")
    with pytest.warns(cs.CvstatsWarning, match=r"bbc_folds: limits are NaN: 4 folds are fewer than 5\.$"):
        assert float(cs.bbc_folds(grid, times=100, rng=1).naive) == pytest.approx(0.675)
    caret = cs.read_scores(FILES / "caret_scores.csv", metric="rmse")
    assert (caret.metric.item(), caret.direction.item(), caret.sizes["configuration"]) == ("rmse", "minimize", 1)


def grid_of(splits=4, **more):
    values = {f"split{i}_test_score": [0.1 * i, 0.2 * i] for i in range(splits)}
    return {"params": [{"C": 1}, {"C": 2}], "mean_fit_time": [1, 2], **values, **more}


def test_cv_results_as_a_mapping():
    found = cs.read_scores(grid_of())
    assert found.configuration.values.tolist() == ["{'C': 1}", "{'C': 2}"]
    tuned = cs.read_scores(grid_of(param_C=np.ma.array([1, 2]), param_kernel=["a", "b"]))
    assert tuned.configuration.values.tolist() == ["C=1, kernel=a", "C=2, kernel=b"]
    np.testing.assert_allclose(found, [[0, 0.1, 0.2, 0.3], [0, 0.2, 0.4, 0.6]])


def test_scores_that_are_turned_round_are_turned_back():
    table = {f"split{i}_test_{name}": [-1.0 - i, -2.0] for i in range(4) for name in ("neg_log_loss", "neg_own", "auc")}
    table["params"] = ["a", "b"]
    found = cs.read_scores(table, metric="neg_log_loss")
    assert (found.metric.item(), found.direction.item()) == ("log_loss", "minimize")
    assert found.values.tolist() == [[1, 2, 3, 4], [2, 2, 2, 2]]
    assert cs.read_scores(table, metric="log_loss").identical(found)
    assert cs.read_scores(table, metric="own").direction.item() == "minimize"
    assert cs.read_scores(table, metric="roc_auc").metric.item() == "auc"
    with pytest.raises(cs.InputError, match=r"there are several scores: 'neg_log_loss', 'neg_own', 'auc'. Say which"):
        cs.read_scores(table)
    with pytest.raises(cs.InputError, match=r"`metric`='f1' is not among the scores"):
        cs.read_scores(table, metric="f1")


def test_many_splits_need_their_repeats():
    with pytest.raises(cs.InputError, match="there are 15 splits: of repeated cross-validation"):
        cs.read_scores(grid_of(15))
    found = cs.read_scores(grid_of(15), repeats=3)
    assert dict(found.sizes) == {"configuration": 2, "fold": 5, "repeat": 3}
    np.testing.assert_allclose(found.sel(configuration="{'C': 1}").values.T.ravel(), 0.1 * np.arange(15))
    assert cs.read_scores(grid_of(15), repeats=1).sizes["fold"] == 15
    with pytest.raises(cs.InputError, match="`repeats`=4 does not divide the 15 splits"):
        cs.read_scores(grid_of(15), repeats=4)


def test_cross_validate():
    found = cs.read_scores({"fit_time": [1.0] * 4, "score_time": [1.0] * 4, "test_accuracy": [0.5, 0.6, 0.7, 0.8]})
    assert (found.metric.item(), found.values.tolist()) == ("accuracy", [[0.5, 0.6, 0.7, 0.8]])


def table(text):
    return pd.read_csv(io.StringIO(text))


def test_tidymodels():
    rows = [
        f"Repeat{r},Fold{f:02d},{m},binary,0.{j}{f}{r},Preprocessor1_Model{j}"
        for j in (1, 2) for r in (1, 2) for f in (1, 2, 3, 4) for m in ("roc_auc", "accuracy")
    ]  # fmt: skip
    frame = table("id,id2,.metric,.estimator,.estimate,.config\n" + "\n".join(rows))
    found = cs.read_scores(frame, metric="roc_auc")
    assert dict(found.sizes) == {"configuration": 2, "fold": 4, "repeat": 2}
    assert float(found.sel(configuration="Preprocessor1_Model2", fold="Fold03", repeat="Repeat1")) == 0.231
    assert (found.metric.item(), found.direction.item()) == ("auc", "maximize")
    flows = frame.assign(wflow_id=["w1", "w2"] * 16)
    assert (
        cs.read_scores(flows, metric="accuracy").configuration.values[0] == "wflow_id=w2, .config=Preprocessor1_Model1"
    )
    averaged = table(".metric,.estimator,mean,n,std_err,.config\nroc_auc,binary,0.5,4,0.1,M1")
    with pytest.raises(
        cs.InputError, match=r"averaged before they were saved; save collect_metrics\(x, summarize = FALSE\)"
    ):
        cs.read_scores(averaged)


def test_caret_with_all_configurations():
    rows = [f"0.{k}{r}{f},0.1,{k},Fold{f}.Rep{r}" for k in (1, 2) for r in (1, 2) for f in (10, 2, 3, 4)]
    found = cs.read_scores(table("Accuracy,Kappa,k,Resample\n" + "\n".join(rows)), metric="Accuracy")
    assert found.configuration.values.tolist() == ["k=1", "k=2"]
    assert found.fold.values.tolist() == ["Fold2", "Fold3", "Fold4", "Fold10"]
    assert float(found.sel(configuration="k=2", fold="Fold3", repeat="Rep1")) == 0.213


def test_mlr3():
    rows = [f"t,classif.{name},cv,{i},0.{i}{j}" for j, name in enumerate(("rpart", "ranger"), 1) for i in range(1, 6)]
    frame = table("task_id,learner_id,resampling_id,iteration,classif.ce\n" + "\n".join(rows))
    found = cs.read_scores(frame)
    assert (found.metric.item(), found.direction.item()) == ("error_rate", "minimize")
    assert found.sel(configuration="classif.ranger").values.tolist() == [0.12, 0.22, 0.32, 0.42, 0.52]
    with pytest.raises(cs.InputError, match="several values of 'task_id'"):
        cs.read_scores(frame.assign(task_id=["a", "b"] * 5))


def test_optuna():
    frame = pd.DataFrame({"number": [0, 1], "value": [0.5, 0.6], "params_C": [1, 2], "state": ["COMPLETE", "COMPLETE"]})
    with pytest.raises(cs.InputError, match=r"averaged before they were saved; keep them with trial\.set_user_attr"):
        cs.read_scores(frame)
    found = cs.read_scores(
        frame.assign(**{f"user_attrs_fold{i}": [0.1 * i, 0.2] for i in range(5)}), direction="maximize"
    )
    assert found.configuration.values.tolist() == ["trial 0", "trial 1"]
    np.testing.assert_allclose(found[0], [0, 0.1, 0.2, 0.3, 0.4])


def test_any_long_or_wide_table(tmp_path):
    rows = [f"{m},{f},{r},0.{j}{f}{r},{j}" for j, m in enumerate("ab", 1) for r in (1, 2) for f in (1, 2, 3, 4)]
    text = "model,fold,repeat,auc,C\n" + "\n".join(rows)
    (tmp_path / "long.csv").write_text(text)
    found = cs.read_scores(tmp_path / "long.csv")
    assert found.configuration.values.tolist() == ["a", "b"]
    assert float(found.sel(configuration="b", fold=3, repeat=1)) == 0.231
    other = table(text).rename(columns={"model": "who", "fold": "part", "auc": "points", "repeat": "again"})
    columns = {"configuration": "who", "fold": "part", "repeat": "again", "score": "points"}
    named = cs.read_scores(other, columns=columns, direction="maximize")
    np.testing.assert_array_equal(named, found)
    with pytest.raises(cs.InputError, match="`direction` of 'points' is not known"):
        cs.read_scores(other, columns=columns)
    long = table(text).rename(columns={"auc": "value"}).assign(metric="brier")
    assert cs.read_scores(long.drop(columns="C")).direction.item() == "minimize"
    wide = pd.DataFrame({"model": ["a", "b"], **{f"fold_{i}": [0.1 * i, 0.2] for i in range(1, 6)}, "mean": [0.3, 0.2]})
    np.testing.assert_allclose(cs.read_scores(wide, direction="min")[0], [0.1, 0.2, 0.3, 0.4, 0.5])
    with pytest.raises(cs.InputError, match="`direction` of 'score' is not known"):
        cs.read_scores(wide)


def test_what_is_no_table_of_fold_scores_is_refused(tmp_path):
    with pytest.raises(cs.InputError, match="no scores of folds are recognised in columns 'x', 'y'"):
        cs.read_scores(pd.DataFrame({"x": [1], "y": [2]}))
    with pytest.raises(cs.InputError, match="`source` must be a file name"):
        cs.read_scores(5)
    with pytest.raises(cs.InputError, match="no such file"):
        cs.read_scores(tmp_path / "nothing.csv")
    with pytest.raises(cs.InputError, match="`columns` must give 'fold' and 'score'"):
        cs.read_scores(pd.DataFrame({"x": [1], "y": [2]}), columns={"fold": "x"})
    twice = pd.DataFrame({"model": "a", "fold": [1, 2, 3, 4, 4], "auc": 0.5})
    with pytest.raises(cs.InputError, match=r"1 scores are given twice; first configuration 'a', fold 4"):
        cs.read_scores(twice)
    with pytest.raises(cs.InputError, match="`direction`='minimize', but the way to go for 'auc' is to maximize"):
        cs.read_scores(twice[:4], direction="minimize")
    with pytest.raises(cs.InputError, match=r"holds scores, not predictions.*read_scores\(\) and bbc_folds\(\)"):
        cs.read_predictions(FILES / "sklearn_scores.csv")
