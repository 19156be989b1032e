"""Internal, median and external evaluation: a hand-worked study, plain loops, and the bias of the median."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.protocols.evaluation import evaluation_protocols
from cvstats.protocols.nested import ncv
from cvstats.simulate.ripley import ripley_mixture

NAN = np.nan
GRID = {"eta": [1.0, 1.0, 1.0, 4.0, 4.0, 4.0], "ridge": [0.1, 1.0, 10.0, 0.1, 1.0, 10.0]}


def errors_cube(errors, n=20, names=None, grid=GRID):
    """Return a cube over realisations in which configuration j makes errors[realisation][j] errors of n."""
    errors = np.asarray(errors)
    label = np.arange(n) % 2
    wrong = np.arange(n)[:, None, None] < errors.T[None]  # (sample, configuration, realisation)
    values = np.where(wrong, 1 - label[:, None, None], label[:, None, None]).astype(float)
    array = xr.DataArray(values, dims=("sample", "configuration", "realisation"))
    array = array.assign_coords(realisation=np.arange(len(errors)))
    names = [f"c{j}" for j in range(errors.shape[1])] if names is None else names
    coords = {name: ("configuration", np.array(column)) for name, column in (grid or {}).items()}
    return cs.as_cube(array.assign_coords(coords), label, configurations=names, kind="label")


# errors of 20 of the configurations (eta, ridge) = (1, .1) (1, 1) (1, 10) (4, .1) (4, 1) (4, 10)
CHOOSE = [[5, 4, 6, 5, 2, 7], [5, 2, 6, 5, 3, 7], [5, 4, 6, 1, 2, 7], [5, 4, 6, 5, 7, 1], [5, 4, 6, 5, 2, 7]]
JUDGE = [[8, 7, 9, 6, 5, 4], [8, 7, 9, 6, 5, 4], [8, 7, 9, 6, 3, 4], [8, 7, 9, 6, 5, 9], [8, 7, 9, 6, 4, 4]]


def test_by_hand():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    external = errors_cube([np.sum(CHOOSE, axis=0)], n=60).isel(realisation=0, drop=True)
    out = evaluation_protocols(cube, "error_rate", selection=selection, external=external, first=3)
    # chosen: c4, c1, c3, c5, c4; the medians of eta (4, 1, 4) and ridge (1, 1, .1) are 4 and 1: c4
    assert out.selected.sel(protocol="internal").values.tolist() == ["c4", "c1", "c3", "c5", "c4"]
    assert set(out.selected.sel(protocol="median").values.tolist()) == {"c4"}
    assert set(out.selected.sel(protocol="external").values.tolist()) == {"c4"}  # totals 25 18 30 21 16 29
    internal, median = np.array([5, 7, 6, 9, 4]) / 20, np.array([5, 5, 3, 5, 4]) / 20
    np.testing.assert_allclose(out.value.sel(protocol="internal"), internal)
    np.testing.assert_allclose(out.value.sel(protocol="median"), median)
    np.testing.assert_allclose(out.estimate, [internal.mean(), median.mean(), median.mean()])
    row = out.sel(protocol="median")
    gain = internal - median  # 0 .1 .15 .2 0
    assert float(row.bias) == pytest.approx(gain.mean())
    assert float(row.bias_std_error) == pytest.approx(gain.std(ddof=1) / np.sqrt(5))
    assert float(row.std_error) == pytest.approx(median.std(ddof=1) / np.sqrt(5))
    assert float(row.statistic) == 6.0  # zeros dropped: ranks 1 + 2 + 3
    assert float(row.p_value) == pytest.approx(0.25)  # two-sided, exact: 2 / 2^3
    # ranks per realisation: (2, 2, 2), (3, 1.5, 1.5) three times, (2, 2, 2)
    np.testing.assert_allclose(out.mean_rank, [13 / 5, 8.5 / 5, 8.5 / 5])
    assert out.n.values.tolist() == [5, 5, 5]
    for name in ("bias", "bias_std_error", "p_value", "statistic"):
        assert np.isnan(out[name].sel(protocol="internal"))
    assert (out.method.item(), out.metric.item()) == ("evaluation_protocols", "error_rate")


def test_rounding_does_not_break_ties_between_differences():
    """.3 - .2 and .2 - .1 differ in the last bit, and are one tenth both: ranks 1.5 and 1.5."""
    selection = errors_cube([[0, 1], [0, 1], [1, 0], [1, 0]], names=[1, 2], grid=None)
    cube = errors_cube([[3, 2], [1, 2], [5, 6], [5, 6]], n=10, names=[1, 2], grid=None)
    out = evaluation_protocols(cube, selection=selection, external=selection.isel(realisation=2, drop=True), first=1)
    np.testing.assert_allclose(out.statistic.sel(protocol="external"), 1.5)


def test_bias_is_positive_when_optimistic_for_either_direction():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    loss = evaluation_protocols(cube, "error_rate", selection=selection, first=3)
    gain = evaluation_protocols(cube, "accuracy", selection=selection, first=3)
    np.testing.assert_allclose(gain.bias, loss.bias)
    np.testing.assert_allclose(gain.estimate, 1 - loss.estimate)
    np.testing.assert_allclose(gain.mean_rank, loss.mean_rank)
    assert float(loss.bias.sel(protocol="median")) > 0


def test_missing_inputs_give_missing_rows():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    out = evaluation_protocols(cube, selection=selection, first=3)
    assert np.isnan(out.estimate.sel(protocol="external"))
    assert set(out.selected.sel(protocol="external").values.tolist()) == {""}
    np.testing.assert_allclose(out.mean_rank.values[:2], [9 / 5, 6 / 5])  # (2, 1) three times, two ties
    outside = evaluation_protocols(cube, external=selection)  # chosen in each realisation for itself
    assert np.isfinite(outside.estimate.values).tolist() == [False, False, True]
    np.testing.assert_allclose(outside.value.sel(protocol="external"), np.array([5, 7, 6, 9, 4]) / 20)
    bare = evaluation_protocols(errors_cube(JUDGE, grid=None), selection=errors_cube(CHOOSE, n=12, grid=None))
    assert np.isfinite(bare.estimate.values).tolist() == [True, False, False]  # no tuning values, no median


def test_a_median_off_the_grid_names_the_combination():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    with pytest.raises(cs.InputError, match=r"the first 2 realisations, eta=2.5, ridge=1, is not on the grid"):
        evaluation_protocols(cube, selection=selection, first=2)
    holes = [0, 1, 3, 5]  # without (4, 1)
    with pytest.raises(cs.InputError, match=r"eta=4, ridge=1, is not on the grid"):
        choose = [[5, 4, 1, 2], [5, 1, 4, 2], [5, 4, 2, 1]]  # (4, .1), (1, 1), (4, 10)
        grid = {name: np.array(column)[holes] for name, column in GRID.items()}
        evaluation_protocols(errors_cube(choose, grid=grid), selection=errors_cube(choose, grid=grid), first=3)
    one = evaluation_protocols(cube, selection=selection, first=3, parameters=["eta"])
    assert one.selected.sel(protocol="median").values[0] == "c3"  # the first with eta 4


def test_numbered_configurations_are_their_own_tuning_values_and_ties_go_to_the_smallest():
    names = [30, 10, 20]
    selection = errors_cube([[1, 1, 2], [2, 2, 1], [1, 2, 2], [3, 0, 3]], names=names, grid=None)
    cube = errors_cube([[1, 2, 3]] * 4, names=names, grid=None)
    out = evaluation_protocols(cube, selection=selection, first=3)
    assert out.selected.sel(protocol="internal").values.tolist() == [10, 20, 30, 10]
    assert out.selected.sel(protocol="median").values.tolist() == [20] * 4
    np.testing.assert_allclose(out.value.sel(protocol="internal"), np.array([2, 3, 1, 2]) / 20)


def test_coordinates_that_are_no_tuning_values_are_left_out():
    grid = {**GRID, "complexity": np.arange(6), "truth": np.linspace(0, 1, 6), "test_auc": np.linspace(1, 2, 6)}
    selection, cube = errors_cube(CHOOSE, n=12, grid=grid), errors_cube(JUDGE, grid=grid)
    assert evaluation_protocols(cube, selection=selection, first=3).selected.values[1, 0] == "c4"


def test_criterion_chooses_and_metric_judges():
    press, test = ripley_mixture(
        24, ridge=[0.1, 1.0], eta=[1.0, 10.0, 100.0], test=True, n_test=200, realisations=6, rng=3
    )
    values = cs.as_cube(press.drop_vars(["kind", "positive", "threshold"]), kind="value")
    out = evaluation_protocols(test, "error_rate", selection=values, criterion="mse", first=5)
    chosen = cs.mse(values).transpose("realisation", "configuration").values.argmin(axis=1)
    names = values.configuration.values
    assert out.selected.sel(protocol="internal").values.tolist() == names[chosen].tolist()
    own = cs.error_rate(test).transpose("realisation", "configuration").values
    np.testing.assert_allclose(out.value.sel(protocol="internal"), own[np.arange(6), chosen])
    eta, ridge = np.median(values.eta.values[chosen[:5]]), np.median(values.ridge.values[chosen[:5]])
    median = int(np.flatnonzero((values.eta.values == eta) & (values.ridge.values == ridge))[0])
    np.testing.assert_allclose(out.value.sel(protocol="median"), own[:, median])
    numbers = cs.as_cube(test.drop_vars(["kind", "positive", "threshold"]), kind="value")
    for judged, chooser in ((test, press), (numbers, values), (numbers, press)):  # kinds need not be swapped by hand
        same = evaluation_protocols(judged, "error_rate", selection=chooser, criterion="mse", first=5)
        xr.testing.assert_equal(same, out)
    once = values.isel(realisation=4, drop=True)
    out = evaluation_protocols(test, "error_rate", selection=values, external=once, criterion="mse", first=5)
    assert set(out.selected.sel(protocol="external").values.tolist()) == {names[chosen[4]]}


def test_inner_predictions_choose_by_the_criterion_and_external_ones_too():
    cube, inner = ripley_mixture(30, eta=[1.0, 10.0, 100.0], folds=5, inner=True, n_test=10, realisations=3, rng=2)
    out = evaluation_protocols(cube, "error_rate", inner=inner, criterion="smoothed_error_rate", first=3)
    for at in range(3):
        one, inside = cube.isel(realisation=at), inner.isel(realisation=at)
        wrong = []
        for fold in inside.outer_fold.values:
            part = cs.as_cube(inside.sel(outer_fold=fold).drop_vars(["fold", "outer_fold"], errors="ignore"))
            chosen = int(cs.score(part, "smoothed_error_rate").values.argmin())
            rows = one.fold.values.ravel() == fold
            wrong.append((one.values.reshape(30, -1)[rows, chosen] > 0) != (one.label.values[rows] == 1))
        assert float(out.value.sel(protocol="internal")[at]) == pytest.approx(np.concatenate(wrong).mean())
        best = int(cs.score(one, "smoothed_error_rate").values.argmin())
        assert out.selected.sel(protocol="external").values[at] == cube.configuration.values[best]


def test_a_penalty_is_added_to_the_loss_that_chooses():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    dear = selection.assign_coords(penalty=("configuration", [0.0, 0.0, 0.0, 1.0, 0.1, 1.0]))
    for metric in ("error_rate", "accuracy"):
        out = evaluation_protocols(cube, metric, selection=dear, first=3)
        # c1 or c4 with 1.2 errors of 12 more: 4 and 3.2, 2 and 4.2, 4 and 3.2, 4 and 8.2, 4 and 3.2
        assert out.selected.sel(protocol="internal").values.tolist() == ["c4", "c1", "c4", "c1", "c4"]


def test_a_realisation_that_cannot_choose_has_no_value():
    """In the second of five only positives are predicted: no AUC chooses there, and the median is that of the rest."""
    label = np.arange(12) % 2
    p = np.full((12, 3, 5), 0.5)
    for realisation, configuration in enumerate([1, 2, 1, 0, 2]):
        p[label == 1, configuration, realisation] = 0.9
    array = xr.DataArray(p, dims=("sample", "configuration", "realisation"))
    cube, selection = (cs.as_cube(part, label, configurations=[3, 1, 2]) for part in (array[..., ::-1], array))
    gaps = selection.where((selection.label == 1) | (selection.realisation != 1))
    with pytest.warns(cs.CvstatsWarning, match="auc is NaN"):
        out = evaluation_protocols(cube, "auc", selection=gaps, first=4)
    np.testing.assert_array_equal(out.selected.sel(protocol="internal"), [1, NAN, 1, 3, 2])
    np.testing.assert_array_equal(out.value.sel(protocol="internal"), [0.5, NAN, 1, 0.5, 0.5])
    assert out.selected.sel(protocol="median").values.tolist() == [1] * 5  # of 1, 1, 3
    assert out.n.values.tolist() == [4, 5, 0]


def test_tuning_values_that_do_not_apply():
    """A family without `ridge` has none, and the median of no value is no value."""
    grid = {"eta": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], "ridge": [NAN, NAN, NAN, 0.1, 0.1, 0.1]}
    selection = errors_cube([[1, 2, 3, 4, 4, 4], [2, 1, 3, 4, 4, 4], [2, 3, 1, 4, 4, 4]], grid=grid)
    out = evaluation_protocols(errors_cube([[1, 2, 3, 4, 5, 6]] * 3, grid=grid), selection=selection, first=3)
    assert set(out.selected.sel(protocol="median").values.tolist()) == {"c1"}


def test_one_realisation():
    """One pair of values has neither a test nor a standard error."""
    selection, cube = errors_cube(CHOOSE[1:2], n=12), errors_cube(JUDGE[1:2])
    out = evaluation_protocols(cube, selection=selection, external=errors_cube(CHOOSE[:1], n=12), first=1)
    assert out.value.values.ravel().tolist() == [7 / 20, 7 / 20, 5 / 20]
    external = out.sel(protocol="external")
    assert float(external.bias) == pytest.approx(0.1)
    for name in ("bias_std_error", "std_error", "statistic", "p_value"):
        assert np.isnan(external[name])


@pytest.mark.filterwarnings("ignore::cvstats.CvstatsWarning")
def test_protocols_missing_in_one_data_set():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    dataset = xr.DataArray(["a", "b"], dims="dataset", name="dataset")
    two = [xr.concat([part, part], dim=dataset) for part in (cube, selection)]
    own = errors_cube(CHOOSE[::-1], n=12)
    external = xr.concat([own, own * NAN], dim=dataset)
    out = evaluation_protocols(two[0], selection=two[1], external=external, first=3)
    alone = evaluation_protocols(cube, selection=selection, external=own, first=3)
    assert np.isfinite(alone.p_value[1:]).all()
    for name in ("estimate", "bias", "p_value", "statistic", "mean_rank"):
        np.testing.assert_allclose(out[name].sel(dataset="a"), alone[name])
    assert np.isnan(out.estimate.sel(dataset="b", protocol="external"))
    assert np.isfinite(out.p_value.sel(dataset="b", protocol="median"))


def test_one_protocol_alone_has_no_rank():
    out = evaluation_protocols(errors_cube(JUDGE), external=errors_cube(CHOOSE, n=12))
    assert np.isfinite(out.estimate.values).tolist() == [False, False, True]
    assert np.isnan(out.mean_rank).all()


def test_cross_validated_form_agrees_with_ncv():
    cube, inner = ripley_mixture(30, ridge=[0.1, 1.0], eta=[1.0, 10.0], inner=True, folds=5, realisations=4, rng=2)
    out = evaluation_protocols(cube, "error_rate", inner=inner, first=3)
    for i in range(4):
        nested = ncv(
            cube.isel(realisation=i), "error_rate", inner=inner.isel(realisation=i).drop_vars("fold"), average="pooled"
        )
        assert float(out.value.sel(protocol="internal")[i]) == pytest.approx(float(nested.estimate), rel=1e-12)
        chosen = set(nested.selected_fold.values.tolist())  # one label only when all folds agree
        assert out.selected.sel(protocol="internal").values[i] == (chosen.pop() if len(chosen) == 1 else "")
    best = cs.error_rate(cube).min("configuration").values  # the external choice is the best of the cube itself
    np.testing.assert_allclose(out.value.sel(protocol="external"), best)
    assert float(out.bias.sel(protocol="external")) >= 0


def test_other_batch_dims_and_padded_realisations():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    both = [
        xr.concat(
            [part, part.isel(realisation=[1, 0, 2, 3, 4]).assign_coords(realisation=range(5))],
            dim=xr.DataArray(["a", "b"], dims="dataset", name="dataset"),
        )
        for part in (cube, selection)
    ]
    out = evaluation_protocols(both[0], selection=both[1], first=3)
    alone = evaluation_protocols(cube, selection=selection, first=3)
    assert out.estimate.sizes == {"dataset": 2, "protocol": 3}
    for name in ("estimate", "bias", "p_value", "mean_rank", "std_error"):
        np.testing.assert_allclose(out[name].sel(dataset="a"), alone[name])
        np.testing.assert_allclose(out[name].sel(dataset="b"), alone[name])  # the same realisations in another order
    short = [part.where(part.realisation < 4) for part in (cube, selection)]
    with pytest.warns(cs.CvstatsWarning, match="error_rate is NaN"):
        padded = evaluation_protocols(short[0], selection=short[1], first=3)
    fewer = evaluation_protocols(
        cube.isel(realisation=slice(4)), selection=selection.isel(realisation=slice(4)), first=3
    )
    assert padded.n.values.tolist() == [4, 4, 0]
    for name in ("estimate", "bias", "bias_std_error", "p_value"):
        np.testing.assert_allclose(padded[name], fewer[name])


def test_bad_input():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    with pytest.raises(cs.InputError, match="give `selection`, `inner` or `external`"):
        evaluation_protocols(cube)
    with pytest.raises(cs.InputError, match=r"`dim`='realization' is not a dimension.*did you mean 'realisation'"):
        evaluation_protocols(cube, selection=selection, dim="realization")
    with pytest.raises(cs.InputError, match="`selection`='realisation' is not a dimension"):
        evaluation_protocols(cube, selection=selection.isel(realisation=0, drop=True))
    with pytest.raises(cs.InputError, match="`first`=9 realisations are asked for, but 'realisation' has 5"):
        evaluation_protocols(cube, selection=selection, first=9)
    with pytest.raises(cs.InputError, match="`first` must be a whole number of at least 1"):
        evaluation_protocols(cube, selection=selection, first=0)
    with pytest.raises(cs.InputError, match="`selection` and `cube` have different labels along 'realisation'"):
        evaluation_protocols(cube, selection=selection.assign_coords(realisation=range(1, 6)))
    with pytest.raises(
        cs.InputError, match="`selection` does not match the cube along 'configuration': only in the cube: 'c5'"
    ):
        evaluation_protocols(cube, selection=selection.isel(configuration=slice(5)))
    with pytest.raises(cs.InputError, match=r"`parameters`: 'etta' is not a numeric coordinate.*did you mean 'eta'"):
        evaluation_protocols(cube, selection=selection, parameters=["etta"])
    inner = cube.expand_dims(outer_fold=[0, 1])
    with pytest.raises(cs.InputError, match="give `selection` or `inner`, not both"):
        evaluation_protocols(cube, selection=selection, inner=inner)
    gap = xr.DataArray(np.eye(12, 6, dtype=bool), dims=("sample", "configuration")) & (selection.realisation == 2)
    with pytest.raises(cs.InputError, match="no configuration predicted every sample"):  # in one realisation of five
        evaluation_protocols(cube, selection=selection.where(~gap))
    with pytest.raises(cs.InputError, match="`inner` needs the coordinate 'fold'"):
        evaluation_protocols(cube, inner=inner)


def test_configurations_are_matched_by_label():
    selection, cube = errors_cube(CHOOSE, n=12), errors_cube(JUDGE)
    expected = evaluation_protocols(cube, selection=selection, first=3)
    turned = evaluation_protocols(cube, selection=selection.isel(configuration=[5, 3, 1, 0, 2, 4]), first=3)
    np.testing.assert_array_equal(turned.value, expected.value)


@pytest.mark.slow
def test_the_median_protocol_is_optimistic():
    """Ripley's mixture, 64 samples, fresh test sets: the median of five choices beats each choice on its own."""
    press, test = ripley_mixture(64, test=True, n_test=2000, realisations=100, rng=8)
    out = evaluation_protocols(test, "error_rate", selection=press)
    row = out.sel(protocol="median")
    assert float(row.bias) > 2 * float(row.bias_std_error)
    assert float(row.p_value) < 0.01
    assert float(row.mean_rank) < 1.5 < float(out.mean_rank.sel(protocol="internal"))


def test_the_best_position_by_hand():
    from cvstats.metrics import get_metric
    from cvstats.protocols.tuning import best

    nan = np.nan
    values = [[0.2, 0.1, 0.1], [0.3, 0.3, 0.3], [nan, 0.4, nan], [nan, nan, nan]]
    scores = xr.DataArray(values, dims=("trial", "configuration"), coords={"configuration": [4.0, 2.0, 1.0]})
    allowed = xr.DataArray([True, True, True], dims="configuration")
    error, gain = get_metric("error_rate"), get_metric("accuracy")
    assert best(scores, allowed, error).values.tolist() == [2, 2, 1, -1]  # ties go to the smallest value
    assert best(scores, allowed, gain).values.tolist() == [0, 2, 1, -1]
    named = scores.assign_coords(configuration=["c", "b", "a"])
    assert best(named, allowed, error).values.tolist() == [1, 0, 1, -1]  # else to the first
    some = xr.DataArray([True, True, False], dims="configuration")
    assert best(scores, some, error).values.tolist() == [1, 1, 1, -1]
