"""Survival metrics with censoring weights: against other software, by hand, by their laws, in protocols."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from statsmodels.duration.survfunc import SurvfuncRight

import cvstats as cs
from cvstats.kernels.survival import Censoring

REFERENCE = Path(__file__).parents[1] / "reference"
PYTHON = json.loads((REFERENCE / "survival.json").read_text())
R = json.loads((REFERENCE / "survival_r.json").read_text())
HORIZON = PYTHON["horizon"]
TIME, EVENT = np.array(PYTHON["time"]), np.array(PYTHON["event"])
SURVIVAL, RISK = np.array(PYTHON["survival"]), np.array(PYTHON["risk"])
WHOLE = np.maximum(1, np.round(TIME))
MAKERS = {
    "auc": cs.survival_auc,
    "brier": cs.survival_brier,
    "observed_expected": cs.survival_observed_expected,
}
METRICS = [cs.uno_concordance, cs.truncated_concordance(5), cs.survival_auc(5), cs.survival_brier(5)]
METRICS += [cs.survival_observed_expected(5)]
EACH = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def probabilities(time=WHOLE, **more):
    dims = ("sample", "configuration", "horizon")
    p = xr.DataArray(SURVIVAL, dims=dims, coords={"horizon": HORIZON, "configuration": list("abc")})
    return cs.as_cube(p, time, event=EVENT, kind="probability", **more)


def risks(time=WHOLE, **more):
    return cs.as_cube(RISK, time, event=EVENT, kind="score", **more)


def cube_for(metric, **more):
    """Return the cube that a metric takes: one horizon where it ranks."""
    cube = probabilities(**more)
    return cube.sel(horizon=5) if metric.family == "rank" else cube


def by(metric):
    """Return what chooses: a metric with a target never does."""
    return {} if metric.target is None else {"by": cs.survival_brier(5)}


def at_horizons(cube, make):
    return np.stack([cs.score(cube, make(time)).values for time in HORIZON], axis=-1)


class TestReference:
    def test_scikit_survival(self):
        found, cube = PYTHON["found"], probabilities(TIME)
        np.testing.assert_allclose(cs.score(risks(TIME), "uno_concordance"), found["uno"], atol=1e-10)
        np.testing.assert_allclose(
            cs.score(risks(TIME), cs.truncated_concordance(5)), found["uno_truncated"], atol=1e-10
        )
        np.testing.assert_allclose(at_horizons(risks(TIME), cs.survival_auc), found["auc"], atol=1e-10)
        np.testing.assert_allclose(at_horizons(cube, cs.survival_auc), found["auc"], atol=1e-10)
        np.testing.assert_allclose(at_horizons(cube, cs.survival_brier), found["brier"], atol=1e-10)

    @pytest.mark.parametrize("name", ["plain", "tied", "weighted"])
    def test_survival_and_risk_regression(self, name):
        time, weight = TIME if name == "plain" else WHOLE, R["weight"] if name == "weighted" else None
        found = R["found"][name]
        np.testing.assert_allclose(cs.score(risks(time, weights=weight), cs.uno_concordance), found["uno"], atol=1e-10)
        for key, make in MAKERS.items():
            np.testing.assert_allclose(at_horizons(probabilities(time, weights=weight), make), found[key], atol=1e-10)

    def test_kaplan_meier(self):
        weight = np.array([R["weight"]])
        censoring = Censoring(WHOLE, EVENT)
        rows = np.repeat(np.arange(len(WHOLE)), weight[0])
        later = WHOLE[rows] + 0.5 * (EVENT[rows] == 0)  # events first
        model = SurvfuncRight(later, 1 - EVENT[rows])
        for time in (1.0, 2.0, 5.0, 8.0):
            before = model.surv_prob[model.surv_times <= time + 0.5]
            want = before[-1] if len(before) else 1.0
            assert censoring.until(weight, time).item() == pytest.approx(want, abs=1e-12)


class TestLaws:
    @EACH
    def test_weights_are_rows(self, metric):
        weight = np.arange(len(WHOLE)) % 3
        rows = np.repeat(np.arange(len(WHOLE)), weight)
        cube = cube_for(metric)
        repeated = cube.isel(sample=rows).assign_coords(sample=np.arange(len(rows)))
        want = cs.score(repeated, metric)
        np.testing.assert_allclose(cs.score(cube.assign_coords(weight=("sample", weight)), metric), want, atol=1e-12)
        draws = xr.DataArray(weight[None], dims=("draw", "sample"))
        np.testing.assert_allclose(cs.score_draws(cube, metric, draws)[0], want, atol=1e-12)

    @EACH
    def test_order_does_not_matter(self, metric):
        cube, order = cube_for(metric), np.random.default_rng(1).permutation(len(WHOLE))
        shuffled = cube.isel(sample=order, configuration=[2, 0, 1])
        np.testing.assert_allclose(cs.score(shuffled, metric), cs.score(cube, metric)[[2, 0, 1]], atol=1e-12)

    @EACH
    def test_judging_one_column_is_scoring_it(self, metric):
        cube = cube_for(metric)
        draws = cs.bootstrap(cube, 40, rng=1)
        table = cs.score_draws(cube, metric, (draws == 0).astype(int))
        out = cs.select_and_judge(cube, metric, choose=draws, rng=1, **by(metric))
        picked = table.sel(configuration=out.selected).values
        np.testing.assert_allclose(out.value.values, picked, atol=1e-12)

    @EACH
    def test_no_batch_nor_dask_changes_a_result(self, metric):
        cube = cube_for(metric)
        options = {"times": 60, "rng": 1, **by(metric)}
        results = [cs.bbc(cube, metric, batch=batch, **options) for batch in (None, 1)]
        results.append(cs.bbc(cube.chunk(configuration=1), metric, **options))
        for one in results[1:]:
            assert one.selected == results[0].selected
            np.testing.assert_allclose(one.win_rate, results[0].win_rate)
            np.testing.assert_allclose(one.estimate, results[0].estimate, atol=1e-12)

    def test_without_censoring_they_are_the_plain_metrics(self):
        dims = ("sample", "configuration", "horizon")
        p = xr.DataArray(SURVIVAL, dims=dims, coords={"horizon": HORIZON})
        cube = cs.as_cube(p, TIME, event=np.ones(len(TIME), int), kind="probability")
        late = (TIME > 5).astype(int)
        plain = cs.as_cube(SURVIVAL[:, :, 1], late, kind="probability")
        np.testing.assert_allclose(cs.score(cube, cs.survival_brier(5)), cs.brier(plain), atol=1e-12)
        np.testing.assert_allclose(cs.score(cube, cs.survival_auc(5)), cs.auc(plain), atol=1e-12)
        share = (1 - late).mean() / (1 - SURVIVAL[:, :, 1]).mean(axis=0)
        np.testing.assert_allclose(cs.score(cube, cs.survival_observed_expected(5)), share, atol=1e-12)
        one = cube.sel(horizon=5)
        np.testing.assert_allclose(cs.score(one, "uno_concordance"), cs.concordance(one), atol=1e-12)

    @EACH
    def test_repeats_are_averaged_and_gaps_left_out(self, metric):
        cube = cube_for(metric)
        noisy = cube**1.3
        both = xr.concat([cube, noisy], dim="repeat").transpose("sample", ...).rename("prediction")
        want = (cs.score(cube, metric) + cs.score(noisy, metric)) / 2
        np.testing.assert_allclose(cs.score(both, metric), want, atol=1e-12)
        gone = both.where(both["repeat"] == 0)
        np.testing.assert_allclose(cs.score(gone, metric), cs.score(cube, metric), atol=1e-12)

    @EACH
    def test_who_was_not_predicted_does_not_count(self, metric):
        cube = cube_for(metric)
        gone = np.arange(len(WHOLE)) % 7 == 0
        few = cube.where(xr.DataArray(~gone, dims="sample") | (cube.configuration != "b"))
        want = cs.score(cube, metric).values
        want[1] = cs.score(cube.isel(sample=~gone), metric).values[1]
        np.testing.assert_allclose(cs.score(few, metric), want, atol=1e-12)
        nobody = cube.where(xr.DataArray(~gone, dims="sample"))
        np.testing.assert_allclose(cs.score(nobody, metric), cs.score(cube.isel(sample=~gone), metric), atol=1e-12)

    def test_predicted_times_are_risks_turned_round(self):
        times = cs.as_cube(-RISK, WHOLE, event=EVENT, kind="value")
        for metric in (cs.uno_concordance, cs.survival_auc(5)):
            np.testing.assert_array_equal(cs.score(times, metric), cs.score(risks(), metric))


class TestDegenerate:
    def test_nobody_followed_until_the_horizon(self):
        p = xr.DataArray(SURVIVAL[:4], dims=("sample", "configuration", "horizon"), coords={"horizon": HORIZON})
        cube = cs.as_cube(p, [1.0, 2.0, 3.0, 4.0], event=[1, 0, 1, 0], kind="probability")
        for make in MAKERS.values():
            with pytest.warns(cs.CvstatsWarning, match="is NaN for 3 of 3 scores"):
                assert np.isnan(cs.score(cube, make(5))).all()
        assert np.isfinite(cs.score(cube, cs.survival_brier(2))).all()

    def test_an_event_at_the_horizon_is_a_case_and_a_censoring_neither(self):
        cube = cs.as_cube([[3.0], [2.0], [1.0], [0.0]], [1.0, 5.0, 5.0, 6.0], event=[1, 1, 0, 0], kind="score")
        assert cs.score(cube, cs.survival_auc(5)).item() == 1.0
        turned = cube.copy(data=[[3.0], [0.0], [9.0], [1.0]])  # the censored one's risk is of no account
        assert cs.score(turned, cs.survival_auc(5)).item() == pytest.approx(1 / 2)


class TestRefusals:
    @pytest.mark.parametrize("time", [0, -1, np.nan, np.inf, "5", True, [5.0]])
    def test_times(self, time):
        with pytest.raises(cs.InputError, match="`time` must be a finite time above 0"):
            cs.survival_auc(time)

    def test_a_horizon_that_was_not_predicted(self):
        with pytest.raises(cs.InputError, match=r"needs predictions for that time; the cube has the horizons 2.0, 5.0"):
            cs.score(probabilities(), cs.survival_brier(4))

    def test_probabilities_only(self):
        with pytest.raises(cs.InputError, match="needs survival probabilities"):
            cs.score(risks(), cs.survival_brier(5))

    def test_one_horizon_for_ranks(self):
        for metric in ("concordance", "uno_concordance"):
            with pytest.raises(cs.InputError, match=r"several horizons .* pick one with cube.sel"):
                cs.score(probabilities(), metric)

    def test_cubes(self):
        p = xr.DataArray(SURVIVAL, dims=("sample", "configuration", "horizon"))
        with pytest.raises(cs.InputError, match="dimension 'horizon' without times"):
            cs.as_cube(p, WHOLE, event=EVENT, kind="probability")
        timed = p.assign_coords(horizon=HORIZON)
        with pytest.raises(cs.InputError, match="the dimension 'horizon' is for survival"):
            cs.as_cube(timed, EVENT, kind="probability")
        with pytest.raises(cs.InputError, match="survival probabilities need the times"):
            cs.as_cube(SURVIVAL[:, :, 0], WHOLE, event=EVENT, kind="probability")
        with pytest.raises(cs.InputError, match="coordinate 'horizon' must hold times"):
            cs.as_cube(p.assign_coords(horizon=list("xyz")), WHOLE, event=EVENT, kind="probability")

    def test_other_metrics(self):
        with pytest.raises(cs.InputError, match="does not know censoring"):
            cs.score(probabilities(), "brier")


class TestProtocols:
    def test_a_list_of_horizons_describes_one_decision(self):
        metrics = [cs.survival_brier(time) for time in HORIZON]
        metrics += [cs.survival_auc(5), cs.survival_observed_expected(5)]
        out = cs.winner(probabilities(), metrics, times=60, rng=1)
        assert out.metric.values.tolist() == [metric.name for metric in metrics]
        assert out.selected.dims == ()
        assert np.isfinite(out.estimate).all()

    def test_the_usual_metrics(self):
        names = [metric.name for metric in cs.metric_set(probabilities())]
        assert names == [f"survival_{what}({time:g})" for what in ("brier", "auc") for time in HORIZON]
        assert len(cs.metric_set(probabilities().assign_coords(kind="score"))) == len(HORIZON)

    def test_contrast(self):
        out = cs.contrast(probabilities(), cs.survival_brier(5), a="a", b="b", times=40, rng=1)
        own = cs.score(probabilities(), cs.survival_brier(5))
        assert out.estimate.item() == pytest.approx((own[0] - own[1]).item())

    def test_mixtures(self):
        out = cs.bbc(probabilities(), cs.survival_brier(5), select=cs.ensemble(5), times=40, rng=1)
        assert out.share.sum() == pytest.approx(1)
        assert out.naive <= cs.score(probabilities(), cs.survival_brier(5)).min()

    def test_subgroups(self):
        cube = probabilities().assign_coords(sex=("sample", np.arange(len(WHOLE)) % 2))
        out = cs.winner(cube, cs.survival_brier(5), subgroup="sex", times=40, rng=1)
        for level in (0, 1):
            part = cube.isel(sample=cube.sex.values == level).sel(configuration=out.selected.item())
            naive = cs.score(part.expand_dims("configuration"), cs.survival_brier(5)).item()
            assert out.naive.sel(sex=level).item() == pytest.approx(naive, abs=1e-12)

    def test_files_keep_horizons(self, tmp_path):
        cs.write_cube(probabilities(), tmp_path / "x.nc")
        xr.testing.assert_identical(cs.read_cube(tmp_path / "x.nc"), probabilities())

    def test_own_metrics_receive_the_event(self):
        @cs.as_metric(direction="minimize", uses="any")
        def late(label, prediction, weight, event):
            return np.average((prediction[:, 1] - (label > 5))[event == 1] ** 2, weights=weight[event == 1])

        @cs.as_metric(direction="minimize")
        def named(label, prediction, *, sample_weight, event):
            return late.__wrapped__(label, prediction, sample_weight, event)

        seen = EVENT == 1
        want = ((SURVIVAL[:, :, 1] - (WHOLE > 5)[:, None])[seen] ** 2).mean(axis=0)
        for metric in (late, named):
            np.testing.assert_allclose(cs.score(probabilities(), metric), want)
