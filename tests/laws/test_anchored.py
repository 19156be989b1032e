"""Laws of the anchored estimate, for every metric: what must hold whatever the data are."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from shared import EVERY, NUMBER, binary, number, survival

METRICS = sorted({*EVERY, *(name for name in cs.__all__ if isinstance(getattr(cs, name), cs.Metric))})
MADE = {"net_benefit(0.2)": cs.net_benefit(0.2), "prior_error": cs.prior_error({0: 0.8, 1: 0.2})}
every_metric = pytest.mark.parametrize("metric", [*METRICS, *MADE])
quiet = pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")


def get(metric):
    return MADE.get(metric, metric)


def chosen_by(metric):
    """Return what chooses where a metric has a target, by which nothing may be chosen."""
    known = get(metric) if metric in MADE else getattr(cs, metric)
    return {} if known.target is None else {"by": "log_loss"}


def is_binary(metric):
    return metric not in NUMBER and "concordance" not in metric and not metric.startswith("survival")


def cube_for(metric, **arguments):
    return (number if metric in NUMBER else binary if is_binary(metric) else survival)(**arguments)


def copies(metric, n, seed=0):
    """Return one model twice, apart by noise that no metric can see."""
    cube = cube_for(metric, n=n, shape=(1,), seed=seed)
    g = np.random.default_rng(seed)
    two = np.repeat(cube.values, 2, axis=1) + 1e-9 * g.normal(size=(n, 2))
    kept = {name: cube[name] for name in ("label", "event") if name in cube.coords}
    extra = {"event": kept["event"].values} if "event" in kept else {}
    positive = {"positive": 1} if is_binary(metric) else {}
    return cs.as_cube(two, kept["label"].values, kind=str(cube["kind"].item()), **extra, **positive)


def gains(out):
    """Return how much better each draw's choice did than the choice on all samples."""
    return (out["draw_estimate"] - out["draw_anchor"]).dropna("draw")


@quiet
@pytest.mark.parametrize("n", [30, 60, 200])
@every_metric
def test_the_same_model_twice_has_no_optimism(metric, n):
    out = cs.winner(copies(metric, n, seed=n), get(metric), **chosen_by(metric), rng=1, times=300, keep_draws=True)
    gain = gains(out)
    error = float(gain.std(ddof=1)) / np.sqrt(gain.size)
    if n < 60 and chosen_by(metric) and np.isnan(out["estimate"]):
        return  # too few events, or separated classes in too many draws
    assert abs(float(out["optimism"])) <= 3 * error + 1e-7


@quiet
def test_plain_estimate_blames_the_choice_for_small_sets():
    """What the anchor removes: R2 on a third of 30 samples is lower whatever was chosen."""
    cubes = [copies("r2", 30, seed) for seed in range(8)]
    runs = [cs.winner(cube, "r2", rng=1, times=300) for cube in cubes]
    assert np.mean([float(run["naive"] - run["bbc_plain"]) for run in runs]) > 0.03
    assert max(abs(float(run["optimism"])) for run in runs) < 1e-6


@quiet
@every_metric
def test_one_configuration_has_exactly_none(metric):
    out = cs.winner(cube_for(metric, n=30, shape=(1,)), get(metric), **chosen_by(metric), rng=1, times=50)
    assert float(out["optimism"]) == 0
    assert float(out["estimate"]) == float(out["naive"])


@quiet
@pytest.mark.parametrize(
    "metric", [name for name in [*METRICS, *MADE] if not chosen_by(name)]
)  # those with one: medians
def test_is_what_it_says(metric):
    """The naive value, plus the mean over draws of what the draw's choice gained; `bbc_plain` is the plain mean."""
    cube = cube_for(metric, n=40, seed=3)
    out = cs.winner(cube, get(metric), rng=1, times=200, keep_draws=True)
    low, high = getattr(get(metric), "range", None) or getattr(cs, metric).range
    np.testing.assert_allclose(out["estimate"], np.clip(out["naive"] + gains(out).mean(), low, high), rtol=1e-12)
    np.testing.assert_allclose(out["bbc_plain"], out["draw_estimate"].mean(), rtol=1e-12)
    plain = cs.bbc(cube, get(metric), rng=1, times=200, ties="random", strata="auto")
    np.testing.assert_allclose(out["bbc_plain"], plain["estimate"], rtol=1e-12)
    assert low <= float(out["estimate"]) <= high


@quiet
def test_anchor_is_the_final_choice_on_the_samples_left_out():
    cube = number(n=30, seed=5)
    draws = cs.bootstrap(cube, 60, rng=4)
    out = cs.winner(cube, "r2", draws=draws, rng=1, keep_draws=True)
    left = (draws == 0).astype(float)
    expected = cs.score_draws(cube, "r2", left).sel(configuration=out["selected"].item())
    np.testing.assert_allclose(out["draw_anchor"], expected, rtol=1e-12)


@quiet
@pytest.mark.parametrize("metric", ["accuracy", "auc", "f1", "brier", "r2", "mse", "concordance"])
@pytest.mark.parametrize("shape", [(5,), (4, 3)])
def test_order_of_samples_and_configurations(metric, shape):
    cube = cube_for(metric, n=36, shape=shape, seed=2)
    draws = cs.bootstrap(cube, 64, rng=3, strata="label" if is_binary(metric) else None)
    out = cs.winner(cube, metric, draws=draws, rng=1)
    g = np.random.default_rng(0)
    other = cube.isel(sample=g.permutation(36), configuration=g.permutation(shape[0]))
    again = cs.winner(other, metric, draws=draws, rng=1)
    for name in ("estimate", "bbc_plain", "naive", "conf_low", "conf_high"):
        np.testing.assert_allclose(again[name], out[name], rtol=1e-11, err_msg=name)
    xr.testing.assert_allclose(again["win_rate"].sortby("configuration").drop_vars("metric"),
                               out["win_rate"].sortby("configuration").drop_vars("metric"))  # fmt: skip


@quiet
@pytest.mark.parametrize("metric", ["accuracy", "auc", "f1", "brier", "r2", "concordance"])
def test_batches_and_chunks(metric):
    pytest.importorskip("dask")
    cube = cube_for(metric, n=36, shape=(7,), seed=2)
    out = cs.winner(cube, metric, rng=1, times=150, keep_draws=True)
    for same in (cs.winner(cube, metric, rng=1, times=150, keep_draws=True, batch=32),
                 cs.winner(cube.chunk(configuration=3), metric, rng=1, times=150, keep_draws=True)):  # fmt: skip
        for name in ("estimate", "bbc_plain", "draw_estimate", "draw_anchor", "conf_low", "conf_high"):
            np.testing.assert_array_equal(same[name], out[name], err_msg=name)


@quiet
@pytest.mark.parametrize("metric", ["accuracy", "auc", "mcc", "log_loss"])
def test_weights_are_repeated_rows(metric):
    cube = cube_for(metric, n=30, seed=6)
    times = np.random.default_rng(1).integers(1, 4, 30)
    weighted = cube.assign_coords(weight=("sample", times.astype(float)))
    rows = np.repeat(np.arange(30), times)
    longer = cube.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
    draws = cs.bootstrap(cube, 60, rng=2, strata="label")
    spread = draws.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
    one, two = cs.winner(weighted, metric, draws=draws, rng=1), cs.winner(longer, metric, draws=spread, rng=1)
    for name in ("estimate", "bbc_plain", "naive", "win_rate"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-12, err_msg=name)


@quiet
def test_error_rate_mirrors_accuracy():
    cube = cube_for("accuracy", n=50, shape=(6, 2), seed=8)
    right, wrong = (cs.winner(cube, metric, rng=3, times=300) for metric in ("accuracy", "error_rate"))
    for name, mirror in {"estimate": "estimate", "naive": "naive", "bbc_plain": "bbc_plain", "conf_low": "conf_high",
                         "bound_low": "bound_high"}.items():  # fmt: skip
        np.testing.assert_allclose(right[name], 1 - wrong[mirror], rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(right["optimism"], wrong["optimism"], atol=1e-12)


def errors_of(cube, metric, truth, seed, single):
    out = cs.winner(cube, metric, rng=seed, times=100, interval="percentile", strata=None)
    alone = float(cs.score(single, metric)[0])
    return [float(out[name]) - truth for name in ("naive", "bbc_plain", "estimate")] + [alone - truth]


def regression(n, g):
    signal = g.normal(size=(n, 1))
    y = signal[:, 0] + np.sqrt(0.5) * g.normal(size=n)
    return cs.as_cube(signal + np.sqrt(0.439) * g.normal(size=(n, 8)), y, kind="value")


def classes(n, g):
    y = (np.arange(n) < 0.2 * n).astype(int)
    score = 0.95 * y[:, None] + np.sqrt(0.5) * g.normal(size=(n, 1)) + np.sqrt(0.5) * g.normal(size=(n, 8))
    return cs.as_cube(score, y, kind="score", positive=1, threshold=0.6)


@quiet
@pytest.mark.parametrize(
    ("metric", "make", "n", "better"),
    [("r2", regression, 40, 0.02), ("r2", regression, 80, 0.01), ("average_precision", classes, 60, 0.0),
     ("f1", classes, 60, 0.0)],
)  # fmt: skip
def test_best_of_eight_equal_models(metric, make, n, better):
    """Small sets bias R2, average precision and F1 even of a fixed model; the anchored estimate shares only that."""
    truth = float(cs.score(make(200_000, np.random.default_rng(0)), metric).mean())
    errors = []
    for seed in range(120):
        g = np.random.default_rng(seed)
        cube = make(n, g)
        errors.append(errors_of(cube, metric, truth, seed, cube.isel(configuration=[0])))
    naive, plain, anchored, single = np.array(errors).T
    noise = np.std(anchored - single) / np.sqrt(len(errors))
    assert naive.mean() > 3 * noise
    assert abs(anchored.mean() - single.mean()) < 0.035 + 3 * noise
    assert np.sqrt(np.mean(anchored**2)) < np.sqrt(np.mean(plain**2)) * 1.02 - better
    assert np.sqrt(np.mean(anchored**2)) < np.sqrt(np.mean(naive**2)) * 1.35
