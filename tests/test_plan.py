"""precision_plan: at the size at hand it is `winner`; by hand; and validated by predicting from half of the samples."""

import numpy as np
import pytest

import cvstats as cs
from cvstats.intervals.evidence import Evidence
from cvstats.metrics.base import get_metric
from cvstats.plan import _by_repeats, _enlarged
from cvstats.resample import Bootstrap

SEED = {"times": 100, "rng": 7}


def binormal(n, c, seed):
    """Return probabilities of `c` configurations with correlated errors."""
    rng = np.random.default_rng(seed)
    y, d = (rng.random(n) < 0.4).astype(int), np.linspace(0.8, 1.2, c)
    noise = np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, c))
    return cs.as_cube(1 / (1 + np.exp(0.4 - d * (noise + d * y[:, None] - d / 2))), y, kind="probability")


def numbers(n, c, seed):
    """Return predicted numbers with an error that all configurations share and one of their own."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    own = np.linspace(0.6, 1, c) * rng.normal(size=(n, c))
    return cs.as_cube(y[:, None] + 0.6 * rng.normal(size=(n, 1)) + own, y, kind="value")


DESIGNS = {
    "independent": (lambda seed: cs.simulate_cube(100, 100, rng=seed), "accuracy"),
    "copula": (lambda seed: cs.simulate_cube(200, 50, dependence=0.5, rng=seed), "accuracy"),
    "binormal": (lambda seed: binormal(160, 20, seed), "auc"),
    "numbers": (lambda seed: numbers(120, 30, seed), "mse"),
}
BUNDLED = [
    *(("breast_cancer", metric) for metric in ("auc", "accuracy", "brier")),
    *(("diabetes", metric) for metric in ("mse", "mae", "r2")),
    *(("iris", metric) for metric in ("accuracy", "brier")),
]


def half(cube, rng):
    """Return half of the samples, of every class if there are few."""
    label = cube["label"].values
    layer = label if len(np.unique(label)) < 10 else np.zeros(len(label))
    rows = [np.flatnonzero(layer == value) for value in np.unique(layer)]
    return cube.isel(sample=np.sort(np.concatenate([rng.choice(one, len(one) // 2, replace=False) for one in rows])))


def width(cube, metric, seed):
    out = cs.winner(cube, metric, times=200, rng=seed)
    return out.conf_high.item() - out.conf_low.item()


def planned(cube, metric, seed):
    """Return the width for all samples as predicted from half of them."""
    pilot = half(cube, np.random.default_rng(seed))
    return cs.precision_plan(pilot, metric, n=cube.sizes["sample"], times=200, rng=seed).width.item()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
@pytest.mark.parametrize("name", DESIGNS)
def test_widths_predicted_from_half_of_the_samples(name):
    make, metric = DESIGNS[name]
    cubes = [make(seed) for seed in range(30)]
    both = [[each(cube, metric, seed) for seed, cube in enumerate(cubes)] for each in (planned, width)]
    assert np.mean(both[0]) / np.mean(both[1]) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
@pytest.mark.parametrize(("name", "metric"), BUNDLED)
def test_widths_of_bundled_cubes(name, metric):
    cube = cs.example_cube(name)
    each = [planned(cube, metric, seed) for seed in range(24)]
    found = np.mean([width(cube, metric, seed) for seed in range(5)])
    assert np.mean(each) / found == pytest.approx(1, abs=0.1)


CUBES = {
    "accuracy": lambda: cs.simulate_cube(60, 10, rng=1),
    "auc": lambda: binormal(60, 6, 1),
    "mse": lambda: numbers(50, 6, 1),
}


@pytest.mark.parametrize("metric", CUBES)
def test_at_the_size_at_hand_it_is_winner(metric):
    cube = CUBES[metric]()
    plan, out = cs.precision_plan(cube, metric, n=cube.sizes["sample"], **SEED), cs.winner(cube, metric, **SEED)
    assert plan.width.item() == pytest.approx(out.conf_high.item() - out.conf_low.item(), abs=1e-12)
    assert plan.win_rate.item() == pytest.approx(out.win_rate.sel(configuration=out.selected).item())


def test_another_metric_chooses():
    cube = binormal(60, 6, 1)
    plan = cs.precision_plan(cube, "brier", by="auc", n=60, **SEED)
    out = cs.winner(cube, "brier", by="auc", **SEED)
    assert plan.width.item() == pytest.approx(out.conf_high.item() - out.conf_low.item(), abs=1e-12)


@pytest.mark.parametrize("metric", ["accuracy", "mse"])
def test_win_rate_and_regret_by_hand(metric):
    cube = CUBES[metric]()
    n = cube.sizes["sample"]
    draws = Bootstrap(n, 100, 7, ratio=0.5).block(0, 100)[0].astype(int)
    assert (draws.sum(axis=1) == n // 2).all()
    sign = 1 if metric == "accuracy" else -1
    loss = cube == cube["label"] if metric == "accuracy" else (cube - cube["label"]) ** 2
    worth = loss.mean("sample").values
    table = sign * draws @ loss.transpose("sample", "configuration").values.astype(float)
    best = np.isclose(table, table.max(axis=1, keepdims=True), rtol=1e-12)
    plan = cs.precision_plan(cube, metric, n=[n // 2], **SEED)
    wins = best[:, np.argmax(sign * worth)]
    assert wins[best.sum(axis=1) == 1].mean() == pytest.approx(plan.win_rate.item(), abs=(best.sum(axis=1) > 1).mean())
    if metric == "mse":  # no ties
        want = np.mean(sign * (worth[np.argmin(worth)] - worth[table.argmax(axis=1)]))
        assert plan.regret.item() == pytest.approx(want, abs=1e-12)


def test_more_samples_are_better():
    plan = cs.precision_plan(binormal(80, 8, 2), "auc", n=[20, 80, 320, 5000], rng=1)
    assert plan.n_samples.values.tolist() == [20, 80, 320, 5000]
    assert (plan.width.diff("n_samples") < 0).all()
    assert (plan.win_rate.diff("n_samples") > 0).all()
    assert (plan.regret.diff("n_samples") < 0).all()
    assert (plan.regret >= 0).all()
    assert plan.width[-1].item() == pytest.approx(plan.width[-2].item() / 4, rel=0.15)  # 1/n of the variance
    assert (plan.method.item(), plan.metric.item(), plan.interval.item()) == ("precision_plan", "auc", "calibrated")
    assert plan.attrs["call"].startswith("precision_plan(metric='auc', n=(20, 80, 320, 5000), draws=(1000,), times=200")


def test_draws_of_another_size_stay_within_class_and_keep_groups_whole():
    strata, group = np.repeat([0, 1], [30, 10]), np.repeat(np.arange(10), 4)
    counts = Bootstrap(40, 64, 1, strata=strata, ratio=2.5).block(0, 64)[0]
    assert (counts[:, :30].sum(axis=1) == 75).all()
    assert (counts[:, 30:].sum(axis=1) == 25).all()
    counts = Bootstrap(40, 64, 1, group=group, ratio=0.5).block(0, 64)[0]
    assert (counts.reshape(64, 10, 4) == counts.reshape(64, 10, 4)[:, :, :1]).all()
    assert (counts.sum(axis=1) == 20).all()
    assert np.array_equal(
        Bootstrap(40, 64, 1, ratio=0.7).block(0, 64)[0][5:9], Bootstrap(40, 64, 1, ratio=0.7).block(5, 9)[0]
    )


def test_groups_and_batches():
    cube = cs.simulate_cube(40, 5, rng=1).drop_vars("fold").assign_coords(group=("sample", np.repeat(np.arange(10), 4)))
    plan, out = cs.precision_plan(cube, "accuracy", n=40, **SEED), cs.winner(cube, "accuracy", **SEED)
    assert plan.width.item() == pytest.approx(out.conf_high.item() - out.conf_low.item(), abs=1e-12)
    both = cube.expand_dims(dataset=["x", "y"])
    batched = cs.precision_plan(both, "accuracy", n=40, **SEED)
    assert batched.width.dims == ("dataset", "n_samples")
    np.testing.assert_allclose(batched.width, np.tile(plan.width, (2, 1)))


@pytest.mark.parametrize("n", [4, [], [50, 3]])
def test_too_few(n):
    with pytest.raises(cs.InputError, match="`n` must hold numbers of samples of 5 or more"):
        cs.precision_plan(CUBES["accuracy"](), "accuracy", n=n)


def repeated(seed, repeats, n=80, c=12):
    """Return probabilities whose noise is in part that of the split."""
    rng = np.random.default_rng(seed)
    y, d = (rng.random(n) < 0.4).astype(int), np.linspace(0.6, 1.4, c)
    own = np.sqrt(0.5) * rng.normal(size=(n, 1)) + np.sqrt(0.3) * rng.normal(size=(n, c))
    logit = own[:, :, None] + np.sqrt(0.4) * rng.normal(size=(n, c, repeats)) + d[:, None] * y[:, None, None]
    return cs.as_cube(1 / (1 + np.exp(0.5 - logit)), y, kind="probability")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
@pytest.mark.parametrize("metric", ["auc", "brier"])
def test_widths_of_ten_repeats_predicted_from_three(metric):
    cubes = [repeated(seed, 10) for seed in range(10)]
    plans = [
        cs.precision_plan(cube.isel(repeat=slice(3)), metric, n=80, repeats=[3, 10], rng=7).width.values[:, 0]
        for cube in cubes
    ]
    three, ten = np.mean(plans, axis=0)
    there = np.mean([width(cube, metric, 7) for cube in cubes])
    assert ten < 0.97 * three, "more repeats are narrower"
    assert ten / there == pytest.approx(1, abs=0.06)


def test_repeats_at_hand_are_winner_and_fewer_are_parts():
    cube = repeated(1, 3, n=40, c=4)
    plan = cs.precision_plan(cube, "brier", n=40, repeats=[1, 3, 6, 12], **SEED)
    assert plan.width.dims == ("n_repeats", "n_samples")
    out = cs.winner(cube, "brier", **SEED)
    assert plan.width.sel(n_repeats=3).item() == pytest.approx(out.conf_high.item() - out.conf_low.item(), abs=1e-12)
    each = [cs.precision_plan(cube.isel(repeat=[at]), "brier", n=40, **SEED) for at in range(3)]
    for name in ("width", "win_rate", "regret"):
        assert plan[name].sel(n_repeats=1).item() == pytest.approx(np.mean([one[name].item() for one in each]))
    square = plan.width[:, 0].values ** 2
    assert np.diff(square[[1, 2]]) / np.diff(square[[2, 3]]) == pytest.approx(2)  # 1/3, 1/6, 1/12
    assert cs.precision_plan(cube, "brier", n=40, **SEED).width.dims == ("n_samples",)


@pytest.mark.slow
def test_draws_quieten_the_estimate():
    cube = binormal(60, 6, 1)
    plan = cs.precision_plan(cube, "auc", n=60, draws=[50, 200], times=300, rng=1)
    assert plan.monte_carlo_error.dims == ("n_samples", "n_draws")
    assert plan.monte_carlo_error[0, 0] == pytest.approx(2 * plan.monte_carlo_error[0, 1].item())
    seen = np.std([cs.winner(cube, "auc", times=50, rng=seed).estimate.item() for seed in range(60)])
    assert plan.monte_carlo_error[0, 0] == pytest.approx(seen, rel=0.3)  # three standard errors of 60 seeds


def test_one_repeat_says_nothing_of_more():
    with pytest.raises(cs.InputError, match=r"`repeats` must be 1 for a cube of one repeat; got 1, 2"):
        cs.precision_plan(CUBES["accuracy"](), "accuracy", n=60, repeats=[1, 2])
    assert cs.precision_plan(CUBES["accuracy"](), "accuracy", n=60, repeats=1, **SEED).sizes["n_repeats"] == 1


def pilot(metric, **changes):
    """Return evidence of two configurations on fifty samples, with whatever is changed."""
    values = {"metric": get_metric(metric), "estimate": 0.7, "bbc": 0.68, "naive": 0.8, "within": 0.75, "n": 50}
    values |= {"scores": np.array([0.8, 0.6]), "variance": np.array([0.02, 0.04]), "chosen": np.array([0.8, 0.6])}
    values |= {"values": np.array([0.5, 0.9]), "samples": 100, "smallest_class": 20, "errors": 3.0}
    return Evidence(**{**values, **changes})


class TestEnlarged:
    """What is known of a data set of another size, by hand."""

    @pytest.mark.parametrize("metric", ["accuracy", "auc", "log_loss", "mse"])
    def test_as_large_as_it_is(self, metric):
        one = pilot(metric, kept=np.array([0.5, 0.7, 0.9]) if metric == "mse" else None)
        same = _enlarged(one, 1.0, [0.2, 0.2])
        for name in ("estimate", "bbc", "naive", "within", "variance", "n", "samples", "smallest_class", "errors"):
            np.testing.assert_allclose(getattr(same, name), getattr(one, name), rtol=1e-12, err_msg=name)
        if metric == "mse":
            np.testing.assert_allclose(same.kept, one.kept, rtol=1e-12)

    def test_four_times_as_large(self):
        large = _enlarged(pilot("auc", kept=np.array([0.5, 0.7, 0.9])), 4.0, [0.2, 0.05])
        assert (large.n, large.samples, large.smallest_class, large.errors) == (200, 400, 80, 12.0)
        np.testing.assert_allclose(large.variance, [0.005, 0.01])
        np.testing.assert_allclose([large.estimate, large.naive, large.bbc], [0.7, 0.75, 0.69])  # half the gaps
        assert large.within == pytest.approx(1 - 0.25 / 0.2 * 0.25)  # naive .80 is now .75
        np.testing.assert_allclose(large.kept, [0.6, 0.7, 0.8])

    @pytest.mark.parametrize(
        ("regret", "share"), [([0.2, 0.05], 0.25), ([0.2, 0.0], 0), ([0.1, 0.3], 3), ([0, 0.3], None)]
    )
    def test_a_loss_falls_by_what_larger_draws_choose_better(self, regret, share):
        large = _enlarged(pilot("mse", estimate=0.9, bbc=0.92, errors=0.0), 4.0, regret)
        noise = (1 - np.sqrt(0.8)) / (1 - np.sqrt(0.5))
        moved = 0.0 if share is None else max(1 - share / noise, -1.0)
        assert large.estimate == pytest.approx(0.9 - 0.1 * moved)
        assert large.naive == pytest.approx(large.estimate - 0.1 * (1 - moved) / 2)
        assert large.bbc == pytest.approx(large.estimate + 0.02 * (1 - moved) / 2)


def test_more_repeats_by_the_variance_of_a_mean():
    cube = binormal(20, 2, 1).expand_dims(repeat=3)
    exact = {
        r: np.array([[np.sqrt(1 + 2 / r), 0.9 - 0.6 / r, 0.3 / r, np.sqrt(0.5 + 1 / r)]]) for r in (1, 2, 3, 5, 99)
    }
    found = _by_repeats(lambda part: exact[part.sizes["repeat"]], cube, np.array([1, 2, 3, 5, 99]))
    np.testing.assert_allclose(found, list(exact.values()), rtol=1e-12)


def test_no_more_often_than_always():
    cube = binormal(20, 2, 1).expand_dims(repeat=2)
    rising = {1: [[1.0, 0.5, 0.1, 1.0]], 2: [[0.9, 0.99, 0.01, 0.9]]}
    found = _by_repeats(lambda part: np.array(rising[part.sizes["repeat"]]), cube, np.array([50]))
    assert found[0, 0, 1] == 1
    assert found[0, 0, 2] == 0


@pytest.mark.parametrize("n", [60, 240])
def test_the_error_of_an_estimate_is_that_of_a_mean_over_draws(n):
    cube = binormal(60, 6, 1)
    plan, out = cs.precision_plan(cube, "auc", n=n, draws=400, **SEED), cs.winner(cube, "auc", keep_draws=True, **SEED)
    gap = (out.draw_estimate - out.draw_anchor).dropna("draw")
    assert plan.monte_carlo_error.item() == pytest.approx(float(gap.std()) / np.sqrt(400 * n / 60), rel=1e-9)
