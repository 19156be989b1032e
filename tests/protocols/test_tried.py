"""optimism_curve(order="tried"): the incumbent of a search, against a loop in plain sight."""

import numpy as np
import pytest

import cvstats as cs


def by_hand(cube, metric, draws):
    """Return claims, worths and how often the incumbent is worse than the first, number by number."""
    sign = -1 if metric in ("mse", "brier") else 1
    score = cs.score(cube, metric).values
    inside = cs.score_draws(cube, metric, draws).values
    outside = cs.score_draws(cube, metric, (draws == 0).astype(int)).values
    claims, worths, worse = [], [], []
    for m in range(1, cube.sizes["configuration"] + 1):
        claims.append(max(sign * score[:m]) * sign)
        values, lost = [], []
        for near, far in zip(inside, outside, strict=True):
            held = 0
            for j in range(1, m):
                held = j if sign * near[j] > sign * near[held] else held
            values.append(far[held])
            lost.append(sign * far[held] < sign * far[0])
        worths.append(np.mean(values))
        worse.append(np.mean(lost))
    return claims, worths, worse


@pytest.mark.parametrize("metric", ["accuracy", "brier"])
def test_by_hand(metric):
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 40)
    noisy = np.clip(0.5 + 0.2 * (label[:, None] - 0.5) + 0.25 * rng.normal(size=(40, 7)), 0, 1)
    cube = cs.as_cube(noisy, label, kind="probability")
    draws = cs.bootstrap(cube, 60, rng=3)
    curve = cs.optimism_curve(cube, metric, order="tried", sizes=range(1, 8), draws=draws)
    claims, worths, worse = by_hand(cube, metric, draws)
    np.testing.assert_allclose(curve.naive, claims)
    np.testing.assert_allclose(curve.estimate, worths)
    np.testing.assert_allclose(curve.worse_than_first, worse)
    assert "order='tried'" in curve.attrs["call"]


def test_first_alone_and_all_together():
    cube = cs.simulate_cube(80, 20, rng=1)
    tried, random = (cs.optimism_curve(cube, "accuracy", order=order, rng=1) for order in ("tried", "random"))
    assert tried.worse_than_first[0] == 0
    assert tried.naive[0] == cs.score(cube, "accuracy")[0]
    assert tried.naive[-1] == pytest.approx(random.naive[-1].item())
    assert "worse_than_first" not in random
    cs.plot_optimism(tried)


def test_an_adjusted_search():
    cube = cs.example_cube().isel(repeat=0, configuration=slice(0, 8))
    options = {"adjust": cs.cut("youden"), "times": 40, "rng": 1, "sizes": [1, 8]}
    curve = cs.optimism_curve(cube, "accuracy", by="auc", order="tried", **options)
    every = cs.optimism_curve(cube, "accuracy", by="auc", **options)
    assert curve.naive[-1] == pytest.approx(every.naive[-1].item())
    assert curve.estimate[-1] == pytest.approx(every.estimate[-1].item(), abs=0.02)  # ties apart


def test_searches_that_try_noise_end_worse_than_their_default():
    rng = np.random.default_rng(1)
    label = rng.normal(size=50)
    good, poor = label + 0.8 * rng.normal(size=50), label[:, None] + 1.2 * rng.normal(size=(50, 60))
    cube = cs.as_cube(np.column_stack([good, poor]), label, kind="value")
    curve = cs.optimism_curve(cube, "mse", order="tried", rng=1)
    assert curve.worse_than_first[-1] > curve.worse_than_first[1]
    assert curve.optimism[-1] > curve.optimism[0]


def test_orders():
    with pytest.raises(cs.InputError, match="`order`"):
        cs.optimism_curve(cs.simulate_cube(20, 3, rng=1), "accuracy", order="time")


def test_sizes_and_strategies_of_other_kinds():
    cube = cs.simulate_cube(40, 4, rng=1)
    curve = cs.optimism_curve(cube, "accuracy", sizes=3, times=20, rng=1)
    assert curve["n_configurations"].values.tolist() == [3]
    with pytest.raises(cs.InputError, match="complete configurations; got none"):
        cs.optimism_curve(cube, "accuracy", sizes=[], times=20, rng=1)
    for function in (cs.bbc, cs.winner, cs.cvt):
        with pytest.raises(cs.InputError, match="`select` must be a strategy, such as select_best"):
            function(cube, "accuracy", select="best")


def test_a_curve_says_who_could_not_be_selected():
    cube = cs.simulate_cube(40, 4, rng=1).astype(float)
    cube[0, 2] = np.nan
    with pytest.warns(cs.CvstatsWarning, match="optimism_curve: 2 lacked predictions that others have") as caught:
        curve = cs.optimism_curve(cube, "accuracy", times=20, rng=1)
    assert len(caught) == 1
    assert curve["n_configurations"].values.max() == 3
