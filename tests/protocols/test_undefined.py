"""No protocol gives a wrong or misleading number without a word: one test for each case that once did."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.metrics import get_metric
from cvstats.protocols.bootstrap_winner import _anchored

NAN = float("nan")
TEXT, NUMBERS = ["a", "b", "c"], [10, 20, 30]


def told(function):
    """Return what a call gives and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", cs.CvstatsWarning)
        out = function()
    return out, [str(one.message) for one in caught]


def nested_cube(names=TEXT, inner_folds=6, repeats=None):
    """Return a cube of 20 negatives and 4 positives in 4 folds, with inner predictions whose folds lack positives.

    The last configuration is perfect.
    """
    y = np.r_[np.ones(4, int), np.zeros(20, int)]
    p = np.random.default_rng(1).random((24, 3))
    p[:, 2] = (p[:, 2] + y) / 2
    fold = np.arange(24) % 4
    inside, inner_fold = np.full((24, 3, 4), NAN), np.zeros((24, 4), int)
    for k in range(4):
        rows = np.flatnonzero(fold != k)
        inside[rows, :, k] = p[rows]
        inner_fold[rows, k] = np.arange(len(rows)) % inner_folds
    inner = xr.DataArray(inside, dims=("sample", "configuration", "outer_fold"))
    inner = inner.assign_coords(fold=(("sample", "outer_fold"), inner_fold), configuration=names)
    cube = cs.as_cube(p, y, folds=fold, kind="score", configurations=names)
    if repeats:
        cube = cs.as_cube(np.stack([p] * repeats, axis=-1), y, folds=fold, kind="score", configurations=names)
        inner = inner.expand_dims(repeat=repeats, axis=-1)
    return cube, inner


def one_class(names=TEXT, repeats=1):
    """Return a cube without a single positive sample: no AUC is defined anywhere."""
    p = np.random.default_rng(2).random((24, 3, repeats))
    p = xr.DataArray(p if repeats > 1 else p[..., 0], dims=["sample", "configuration", "repeat"][: 2 + (repeats > 1)])
    return cs.as_cube(p, [0] * 24, folds=np.arange(24) % 4, kind="score", classes=[0, 1], configurations=names)


def sorted_folds(names=TEXT, repeats=1):
    """Return a cube whose folds hold one class each: AUC is defined pooled, but in no fold."""
    p = np.random.default_rng(3).random((24, 3, repeats))
    p = p if repeats > 1 else p[..., 0]
    return cs.as_cube(p, np.arange(24) // 12, folds=np.arange(24) // 6, kind="score", configurations=names)


# what is chosen -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["fold", "pooled"])
def test_ncv_chooses_nothing_by_inner_folds_that_lack_a_class(average):
    cube, inner = nested_cube()
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner, average=average))
    assert np.isnan(out.estimate)
    assert np.isnan(out.optimism)
    assert out.selected_fold.values.tolist() == [""] * 4
    assert out.win_rate.values.tolist() == [0, 0, 0]
    assert out.selected.item() == "c"  # on all data the outer predictions choose, and they are defined
    assert len(messages) == 1
    assert (
        "ncv: NaN, because auc needs every class to be present and nothing can be chosen in outer fold 0 (inner "
        in (messages[0])
    )
    assert "outer fold 3 (inner fold 3, 4, 5)" in messages[0]


def test_ncv_pooled_inner_predictions_choose_where_inner_folds_cannot():
    cube, inner = nested_cube()
    out = cs.ncv(cube, "auc", inner=inner.drop_vars("fold"))
    assert out.selected_fold.values.tolist() == ["c"] * 4
    assert out.estimate == 1


def test_ncv_with_one_outer_fold_that_cannot_choose_is_undefined_and_keeps_the_others():
    cube, inner = nested_cube(NUMBERS, inner_folds=3)
    fold = inner["fold"].values.copy()
    fold[:4, 2] = 0  # all positives of the training set of fold 2 lie in one inner fold
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner.assign_coords(fold=(inner["fold"].dims, fold))))
    np.testing.assert_array_equal(out.selected_fold, [30, 30, NAN, 30])
    np.testing.assert_array_equal(out.fold_estimate, [1, 1, NAN, 1])
    assert np.isnan(out.estimate)
    assert out.win_rate.values.tolist() == [0, 0, 0.75]
    assert len(messages) == 1
    assert "nothing can be chosen in outer fold 2 (inner fold 1, 2)." in messages[0]


def test_ncv_names_the_repeat_that_cannot_choose():
    cube, inner = nested_cube(repeats=2)
    _, messages = told(lambda: cs.ncv(cube, "auc", inner=inner))
    assert len(messages) == 1
    assert "of repeat 0; " in messages[0]
    assert messages[0].endswith("of repeat 1.")


def test_ncv_of_a_training_set_without_a_class_says_so():
    cube = cs.as_cube(np.random.default_rng(1).random((8, 2)), [0, 1] * 2 + [0] * 4, folds=[0] * 4 + [1] * 4)
    inner = xr.DataArray(np.random.default_rng(2).random((8, 2, 2)), dims=("sample", "configuration", "outer_fold"))
    held = xr.DataArray(np.arange(8) // 4, dims="sample") == xr.DataArray([0, 1], dims="outer_fold")
    out, messages = told(lambda: cs.ncv(cube, "auc", inner=inner.where(~held), average="pooled"))
    assert np.isnan(out.estimate)
    assert len(messages) == 1
    assert "nothing can be chosen in outer fold 0; auc is NaN for 2 of 4 scores (fold 1)" in messages[0]


def test_winner_with_inner_predictions_that_cannot_choose_is_undefined():
    """A training set without positives has no sensitivity: nobody chooses there."""
    y = np.r_[np.ones(10, int), np.zeros(30, int)]
    fold = np.r_[np.zeros(10, int), np.arange(30) % 2]
    p = np.random.default_rng(1).integers(0, 2, (40, 3))
    cube = cs.as_cube(p, y, folds=fold, configurations=TEXT)
    inner = xr.DataArray(np.repeat(p[..., None], 2, -1).astype(float), dims=("sample", "configuration", "outer_fold"))
    inner = inner.where(xr.DataArray(fold, dims="sample") != xr.DataArray([0, 1], dims="outer_fold"))
    out, messages = told(lambda: cs.winner(cube, "sensitivity", inner=inner, times=50, rng=1))
    assert np.isnan([out.estimate, out.conf_low, out.conf_high, out.bound_low, out.bound_high, out.std_error]).all()
    assert len(messages) == 1
    assert "the estimate is NaN: sensitivity is undefined in the training set of an outer fold" in messages[0]


def _inner_of(cube):
    held = cube["fold"] == xr.DataArray(np.arange(4), dims="outer_fold")
    return cube.drop_vars("fold").expand_dims(outer_fold=4, axis=-1).where(~held.drop_vars(list(held.coords)))


UNDEFINED = {  # every protocol that names a winner, on data where no score is defined: what it names
    "cvt": lambda c: [cs.cvt(c(), "auc").selected],
    "cvt by fold": lambda c: [cs.cvt(c(), "auc", average="fold").selected],
    "cvt one_se": lambda c: [cs.cvt(c(), "auc", average="fold", select=cs.select_within(0.1)).selected],
    "tt": lambda c: [cs.tt(c(), "auc").selected],
    "cvm_cv": lambda c: [(out := cs.cvm_cv(c(repeats=3), "auc")).selected, out.selected_first],
    "cvm_cv by fold": lambda c: [(out := cs.cvm_cv(c(repeats=3), "auc", average="fold")).selected, out.selected_first],
    "ncv": lambda c: [(out := cs.ncv(c(), "auc", inner=_inner_of(c()))).selected, out.selected_fold],
    "bbc": lambda c: [(out := cs.bbc(c(), "auc", times=50, rng=1, keep_draws=True)).selected, out.draw_selected],
    "winner": lambda c: [(out := cs.winner(c(), "auc", times=50, rng=1, keep_draws=True)).selected, out.draw_selected],
    "winner repeats": lambda c: [cs.winner(c(repeats=3), "balanced_accuracy", times=50, rng=1).selected],
    "bbcd": lambda c: [(out := cs.bbcd(c(), "auc", times=50, rng=1)).selected, out.full_selected],
    "drop_configurations": lambda c: [cs.drop_configurations(c(), "auc", times=50, rng=1).best],
    "best_set": lambda c: [cs.best_set(c(), "auc", times=50, rng=1).selected],
    "contrast": lambda c: [cs.contrast(c(), "auc", a=c()["configuration"].values[:1],
                                       b=c()["configuration"].values[1:], times=50, rng=1).selected_b],
    "select_and_judge": lambda c: [cs.select_and_judge(c(), "auc", choose=cs.bootstrap(c(), 5, rng=1), rng=1).selected],
    "implementations": lambda c: [(out := cs.implementations(c(), "auc", inner=_inner_of(c()))).selected, out.chosen],
    "evaluation_protocols": lambda c: [cs.evaluation_protocols(
        c().expand_dims(realisation=5), "auc", selection=c().expand_dims(realisation=5)).selected],
}  # fmt: skip
BY_FOLD = ("cvt by fold", "cvt one_se", "tt", "cvm_cv by fold", "ncv")


@pytest.mark.parametrize("names", [TEXT, NUMBERS], ids=["text", "numbers"])
@pytest.mark.parametrize("protocol", UNDEFINED)
def test_a_protocol_never_names_a_winner_that_an_undefined_score_chose(protocol, names):
    def made(repeats=1):
        cube = one_class(names, repeats)
        return cube.assign_coords(threshold=0.5)

    chosen, messages = told(lambda: UNDEFINED[protocol](made))
    assert messages or protocol in ("drop_configurations", "select_and_judge")
    for label in chosen:
        values = label.values.ravel().tolist()
        assert values
        assert all(value == "" if names is TEXT else np.isnan(value) for value in values)


@pytest.mark.parametrize("names", [TEXT, NUMBERS], ids=["text", "numbers"])
@pytest.mark.parametrize("protocol", BY_FOLD)
def test_a_protocol_by_fold_names_nobody_when_folds_lack_a_class(protocol, names):
    chosen, messages = told(lambda: UNDEFINED[protocol](lambda repeats=1: sorted_folds(names, repeats)))
    assert any("fold 0, 1, 2, 3" in message for message in messages)
    final = chosen[0].item()
    assert final == "" if names is TEXT else np.isnan(final)


def test_a_configuration_that_an_undefined_score_keeps_from_winning_is_named():
    """F1 of a fold without positives is undefined for the configuration that rightly predicts none."""
    y = np.r_[np.ones(6, int), np.zeros(14, int)]
    cube = cs.as_cube(np.column_stack([y, 1 - y]), y, folds=np.arange(20) // 5, configurations=["right", "wrong"])
    out, messages = told(lambda: cs.cvt(cube, "f1", average="fold"))
    assert out.selected.item() == "wrong"
    assert messages[0].endswith(
        "(fold 2, 3; configuration 'right'): it is undefined for these predictions; "
        "a configuration without a score cannot be selected."
    )


def test_batches_with_and_without_a_winner_lie_side_by_side():
    good = cs.as_cube(
        [[0.9, 0.1], [0.8, 0.4], [0.1, 0.7], [0.2, 0.3]], [1, 1, 0, 0], kind="score", configurations=[5, 7]
    )
    data = xr.concat([good.drop_vars("label")] * 2, dim="dataset")
    both = data.assign_coords(label=(("dataset", "sample"), [[1, 1, 0, 0], [0, 0, 0, 0]]))
    out, _ = told(lambda: cs.cvt(both, "auc"))
    np.testing.assert_array_equal(out.selected, [5, NAN])


def test_coverage_counts_results_without_a_winner_as_undefined():
    def simulator(rng):
        cube = one_class() if rng.integers(2) else sorted_folds()
        return cube.assign_coords(truth=("configuration", [0.5, 0.6, 0.7]))

    out, _ = told(
        lambda: cs.coverage(simulator, lambda cube, rng: cs.bbc(cube, "auc", times=50, rng=rng), repetitions=8, rng=1)
    )
    assert 0 < int(out.n) < 8


def test_a_report_without_a_winner_is_refused(tmp_path):
    text = "`metric`: no configuration won, because auc is undefined for all. winner: "
    for make in (cs.report_text, lambda cube, metric: cs.report_html(cube, metric, path=tmp_path / "r.html")):
        with pytest.raises(cs.InputError, match=re.escape(text)):
            make(one_class(), "auc")


def test_a_report_leaves_out_nested_cv_that_cannot_choose():
    cube, inner = nested_cube()
    cube, inner = (
        part.isel(sample=np.tile(np.arange(24), 2)).assign_coords(sample=np.arange(48)) for part in (cube, inner)
    )
    from cvstats.report.analysis import Analysis

    found = Analysis(cube, "auc", inner=inner, times=50)
    assert "ncv" not in found.results
    assert found.skipped["ncv"] == "it is undefined here, for example because a fold lacks a class"


# inner predictions that are not used ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["auc", "f1", "average_precision"])
def test_winner_checks_inner_predictions_and_says_when_they_are_not_used(metric):
    cube, inner = nested_cube(inner_folds=3)
    cube = cube.assign_coords(threshold=0.5)
    plain, before = told(lambda: cs.winner(cube, metric, times=50, rng=1))
    out, messages = told(lambda: cs.winner(cube, metric, inner=inner, times=50, rng=1))
    assert out.estimate == plain.estimate
    said = (
        f"winner: `inner` is not used: {metric} is not linear in the values of single samples, which smoothing nested "
    )
    assert len(messages) == 1
    assert messages[0].startswith(said + "cross-validation over draws takes; ncv() uses it")
    assert [message.replace("winner: ", "") in messages[0] for message in before] == [True] * len(before)
    for bad, text in (
        ("anything", "`inner` must be a DataArray over 'sample', 'configuration', 'outer_fold'; got str"),
        (inner.isel(outer_fold=[0, 1]), "`inner` and the cube have different outer folds"),
        (inner.fillna(0.5), "`inner` leaks"),
        (inner.assign_coords(configuration=["a", "b", "x"]), "`inner` does not match the cube along 'configuration'"),
    ):
        with pytest.raises(cs.InputError, match=re.escape(text)):
            cs.winner(cube, metric, inner=bad, times=50, rng=1)


def test_winner_with_repeats_refuses_inner_predictions_that_are_no_labelled_array():
    cube, _ = nested_cube(repeats=2)
    for metric in ("auc", "brier"):
        with pytest.raises(cs.InputError, match="`inner` must be a DataArray over"):
            cs.winner(cube.assign_coords(kind="probability"), metric, inner="anything", times=50, rng=1)


def test_winner_of_one_configuration_says_that_inner_predictions_are_not_used():
    cube, inner = (part.isel(configuration=[0]) for part in nested_cube(inner_folds=3))
    _, messages = told(lambda: cs.winner(cube.assign_coords(threshold=0.5), "accuracy", inner=inner, times=50, rng=1))
    assert messages == ["winner: `inner` is not used: with one configuration nothing is chosen."]


# ranks without a direction --------------------------------------------------------------------------------------------

RANKED = (cs.friedman_test, cs.nemenyi_test, cs.critical_difference)


@pytest.mark.parametrize("test", RANKED)
@pytest.mark.parametrize("metric", [None, "my_metric", ["auc", "auc", "auc"]])
def test_ranks_of_values_without_a_metric_need_a_direction(test, metric):
    accuracy = xr.DataArray([[0.9, 0.8, 0.7]] * 8, dims=("dataset", "method"), coords={"method": TEXT})
    if metric is not None:
        accuracy = accuracy.assign_coords(metric=metric if isinstance(metric, str) else ("method", metric))
    with pytest.raises(cs.InputError, match="`direction` must say which values are better, 'maximize' or 'minimize'"):
        test(accuracy, "dataset", by="method")
    assert test(accuracy, "dataset", by="method", direction="maximize").mean_rank.values.tolist() == [1, 2, 3]
    assert test(accuracy, "dataset", by="method", direction="minimize").mean_rank.values.tolist() == [3, 2, 1]


@pytest.mark.parametrize("test", RANKED)
@pytest.mark.parametrize(("metric", "ranks"), [("accuracy", [1, 2, 3]), ("error_rate", [3, 2, 1])])
def test_ranks_of_a_metric_take_its_direction(test, metric, ranks):
    values = xr.DataArray([[0.9, 0.8, 0.7]] * 8, dims=("dataset", "method"), coords={"metric": metric})
    assert test(values, "dataset", by="method").mean_rank.values.tolist() == ranks
    given, other = ("maximize", "minimize") if metric == "accuracy" else ("minimize", "maximize")
    assert test(values, "dataset", by="method", direction=given).mean_rank.values.tolist() == ranks
    with pytest.raises(cs.InputError, match=f"but `x` says it is '{metric}', which has '{given}'"):
        test(values, "dataset", by="method", direction=other)


# intervals ------------------------------------------------------------------------------------------------------------


def single(n=60):
    y = np.arange(n) % 2
    return cs.as_cube((np.random.default_rng(1).random(n) + 0.4 * y)[:, None], y, kind="score")


def test_bca_uses_the_times_of_winner():
    def limits(**options):
        out = cs.winner(single(), "auc", rng=1, **options)
        return float(out.conf_low), float(out.conf_high)

    assert limits(interval="bca", times=3000) == limits(interval=cs.bca(times=3000), times=100)
    assert limits(interval="bca", times=3000) != limits(interval="bca", times=300)
    assert limits(interval=cs.bca(), times=300) == limits(interval="bca", times=300)
    assert limits(interval=cs.bca(times=40), times=20) == limits(interval="bca", times=40)
    with pytest.raises(cs.InputError, match=r"`times`=39 is too small for a BCa interval at level 0\.95: at least 40"):
        limits(interval="bca", times=39)
    with pytest.raises(cs.InputError, match="`times`"):
        cs.bca(times=0)


def _result_cases():
    for metric in ("accuracy", "auc", "log_loss", "brier", "mcc", "balanced_accuracy", "error_rate"):
        yield metric, {}
    yield "accuracy", {"repeats": 3}
    yield "mse", {}
    yield "mse", {"repeats": 2}
    yield "accuracy", {"regime": "holdout"}
    yield "mse", {"regime": "holdout"}
    yield "accuracy", {"inner": True}
    yield "auc", {"interval": cs.calibrated(kappa=2.0, psi=0.5, safe_upper=True)}
    yield "accuracy", {"interval": cs.calibrated(safe_upper=False), "keep_draws": True}
    yield "log_loss", {"perfect": True}
    yield "accuracy", {"one": True}


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "options"), list(_result_cases()), ids=str)
@pytest.mark.parametrize("function", [cs.winner, cs.bbc, cs.bbcd])
def test_confint_of_a_calibrated_interval_is_the_interval_at_that_level(function, metric, options):
    options = {"interval": "calibrated", **options}
    g = np.random.default_rng(4)
    y = np.arange(60) % 2
    shape = (60, 8, options.pop("repeats", 1))
    p = np.clip(0.3 * y[:, None, None] + 0.7 * g.random(shape), 0.01, 0.99)
    if options.pop("perfect", False):
        p = np.where(y[:, None, None] == 1, 0.9, 0.1) + 0.05 * g.random(shape)
    if metric == "mse":
        y, p = g.normal(size=60), g.normal(size=shape)
    cube = cs.as_cube(p[..., 0] if shape[2] == 1 else p, y, folds=np.arange(60) % 5,
                      kind="value" if metric == "mse" else "probability")  # fmt: skip
    if options.pop("one", False):
        cube = cube.isel(configuration=[0])
    if function is not cs.winner:
        options.pop("regime", None)
        options.pop("inner", None)
    if options.pop("inner", False):
        held = cube["fold"] == xr.DataArray(np.arange(5), dims="outer_fold")
        inner = cube.drop_vars(["fold", "kind", "label", "threshold", "positive", "classes"], errors="ignore")
        options["inner"] = inner.expand_dims(outer_fold=5, axis=-1).where(~held.drop_vars(list(held.coords)))
    given = {"rng": 1, "times": 200, **options}
    first = function(cube, metric, **given)
    for level in (0.4, 0.8, 0.9, 0.99):
        again, direct = cs.confint(first, level=level), function(cube, metric, level=level, **given)
        for name in ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high"):
            np.testing.assert_array_equal(again[name], direct[name], err_msg=f"{name} at {level}")
        assert (float(again.conf_level), str(again.interval.item())) == (level, "calibrated")


def test_confint_of_calibrated_batches_and_of_limits_that_are_undefined():
    cube = xr.concat([cs.simulate_cube(40, 5, rng=seed) for seed in (1, 2)], dim="dataset")
    again = cs.confint(cs.winner(cube, "accuracy", rng=1, times=100), level=0.8)
    direct = cs.winner(cube, "accuracy", rng=1, times=100, level=0.8)
    np.testing.assert_array_equal(again.conf_high, direct.conf_high)
    assert again.conf_low.dims == ("dataset",)
    few, _ = told(lambda: cs.winner(cs.simulate_cube(4, 2, folds=2, rng=1), "accuracy", rng=1, times=50))
    assert np.isnan([cs.confint(few, level=0.8).conf_low, cs.confint(few, level=0.8).bound_high]).all()


def test_confint_never_turns_one_kind_of_interval_into_another():
    cube = cs.simulate_cube(40, 5, rng=1)
    double = cs.winner(cube, "accuracy", rng=1, times=60, interval=cs.double_bootstrap(40, 10), keep_draws=True)
    bare = cs.winner(cube, "accuracy", rng=1, times=60, keep_draws=True).drop_vars("calibration")
    for result, kind in ((double, "double_bootstrap"), (bare, "calibrated")):
        with pytest.raises(
            cs.InputError, match=re.escape(f"`result` does not keep what its interval ({kind}) is made of")
        ):
            cs.confint(result, level=0.8)
    both = cs.bind(cs.bbc(cube, "accuracy", rng=1), winner=cs.winner(cube, "accuracy", rng=1))
    with pytest.raises(cs.InputError, match=r"`result` holds intervals of several kinds .'calibrated', 'percentile'."):
        cs.confint(both, level=0.8)
    options = {"a": [0], "b": [1], "rng": 1, "times": 100}
    kept = cs.contrast(cube, "accuracy", keep_draws=True, **options)
    np.testing.assert_allclose(cs.confint(kept, level=0.8).conf_low, cs.contrast(cube, "accuracy", level=0.8, **options).conf_low)  # fmt: skip  # noqa: E501


# different winners side by side ---------------------------------------------------------------------------------------


def two_winners():
    """Return a cube on which "a" wins pooled and "b" wins by fold, for folds of 2 and of 8 samples."""
    y = np.ones(10, int)
    p = np.ones((10, 2), int)
    p[:2, 0] = 0
    p[[2, 3, 4], 1] = 0
    return cs.as_cube(p, np.r_[y], folds=[0, 0] + [1] * 8, kind="label", classes=[0, 1], configurations=["a", "b"])


def test_bind_says_when_results_are_about_different_winners_and_shows_them():
    cube = two_winners()
    results = (cs.cvt(cube, "accuracy"), cs.tt(cube, "accuracy"))
    with pytest.warns(cs.CvstatsWarning) as caught:
        both = cs.bind(*results)
    assert [str(one.message) for one in caught] == [
        "bind: the results are about different winners, see `selected`: 'a (cvt)', 'b (tt)'."
    ]
    assert cs.tidy(both)["selected"].tolist() == ["a", "b"]
    assert "b" in cs.format_table(both).splitlines()[-1]
    alone = cs.bind(results[0], cs.t_test(xr.DataArray([0.1, 0.2, 0.4], dims="fold"), "fold"))  # names no winner
    assert alone.selected.values.tolist() == ["a", ""]


def test_bind_of_numbers_and_batches_compares_winners_cell_by_cell():
    one = xr.Dataset({"estimate": ("d", [0.1, 0.2]), "selected": ("d", [1.0, 2.0])}, coords={"method": "m"})
    same = one.assign_coords(method="n")
    assert cs.bind(one, same).selected.shape == (2, 2)
    empty = same.assign(selected=("d", [1.0, NAN]))
    assert cs.bind(one, empty).selected.shape == (2, 2)
    with pytest.warns(cs.CvstatsWarning, match=r"different winners, see `selected`: '2.0 \(m\)', '3.0 \(n\)'"):
        cs.bind(one, same.assign(selected=("d", [1.0, 3.0])))


# TT in the report -----------------------------------------------------------------------------------------------------


def test_the_report_shows_the_plain_score_that_each_method_starts_from():
    """TT corrects the mean over folds: its estimate and what it removed must add up to a number in the table."""
    from cvstats.report.analysis import Analysis
    from cvstats.report.sections import method_table

    g = np.random.default_rng(5)
    y = np.arange(90) % 2
    fold = np.repeat([0, 1, 2], [10, 20, 60])
    cube = cs.as_cube(g.random((90, 6)) + 0.3 * y[:, None], y, folds=fold, kind="score")
    found = Analysis(cube, "auc", times=100)
    rows = {row[0].text.split(" (")[0]: row for row in method_table(found).body}
    tt, digits = found.results["tt"], found.places
    own = f"{float(tt.naive):.{digits}f}"
    assert own != f"{float(found.winner.naive):.{digits}f}"
    assert rows["TT"][3].text == f"{float(tt.optimism):.{digits}f} from {own}"
    assert "from" not in rows["Recommended"][3].text + rows["BBC-CV"][3].text
    same = tt.selected.item() == found.winner.selected.item()
    assert (f"Here the winner is {tt.selected.item()}." in rows["TT"][0].aside) == (not same)


@pytest.mark.slow
def test_the_report_names_another_winner_in_its_row(tmp_path):
    y = np.arange(60) % 2
    fold = np.repeat([0, 1], [6, 54])
    wrong = np.zeros((60, 2), bool)
    wrong[:4, 0] = wrong[10:16, 1] = True  # "a": 4 errors, in the small fold; "b": 6, in the large one
    cube = cs.as_cube(np.where(wrong, 1 - y[:, None], y[:, None]), y, folds=fold, configurations=["a", "b"])
    path = cs.report_html(cube, "accuracy", path=tmp_path / "report.html", times=100)
    text = path.read_text(encoding="utf-8")
    assert "Here the winner is b." in text
    assert "All rows estimate the performance of the same thing" not in text
    assert "may choose another configuration; then both are given" in text


# folds that are skipped because they were asked to be -----------------------------------------------------------------


def lopsided(repeats=1, configurations=3):
    """Return a cube of 30 samples whose first folds lack a class, and the plain AUCs (configuration, repeat, fold)."""
    g = np.random.default_rng(8)
    y = np.r_[np.zeros(12, int), g.integers(0, 2, 18)]
    fold = np.stack([np.arange(30) // 6 if r == 0 else g.integers(0, 5, 30) for r in range(repeats)], axis=1)
    p = g.random((30, configurations, repeats)) + 0.3 * y[:, None, None]
    aucs = np.full((configurations, repeats, 5), NAN)
    for j, r, k in np.ndindex(aucs.shape):
        rows = fold[:, r] == k
        up, down = p[rows & (y == 1), j, r], p[rows & (y == 0), j, r]
        if len(up) and len(down):
            aucs[j, r, k] = np.mean((up[:, None] > down) + 0.5 * (up[:, None] == down))
    cube = cs.as_cube(p, y, folds=fold, kind="score", repeats=range(repeats))
    return (cube if repeats > 1 else cube.isel(repeat=0, drop=True)), aucs


@pytest.mark.parametrize("repeats", [1, 3])
def test_skipped_folds_leave_the_mean_of_the_others(repeats):
    cube, aucs = lopsided(repeats)
    means = np.nanmean(aucs, axis=2).mean(axis=1)
    number = np.isfinite(aucs[0]).sum()
    scores = cs.score(cube, "auc", average="fold", undefined="skip")
    np.testing.assert_allclose(scores, means, rtol=1e-13)
    assert scores["n_folds"].values.tolist() == [number] * 3
    out = cs.cv(cube, "auc", average="fold", undefined="skip")
    np.testing.assert_allclose(out.estimate, means, rtol=1e-13)
    assert out.n_folds.values.tolist() == [number] * 3
    each = [np.nanstd(aucs[:, r], axis=1, ddof=1) / np.sqrt(np.isfinite(aucs[0, r]).sum()) for r in range(repeats)]
    np.testing.assert_allclose(out.std_error, np.mean(each, axis=0), rtol=1e-12)
    claim = cs.cvt(cube, "auc", average="fold", undefined="skip")
    assert float(claim.estimate) == pytest.approx(means.max(), rel=1e-13)
    assert int(claim.selected) == means.argmax()
    assert int(claim.n_folds) == number


@pytest.mark.parametrize("repeats", [1, 3])
def test_tt_and_ncv_over_the_folds_that_have_every_class(repeats):
    cube, aucs = lopsided(repeats)
    flat = aucs.reshape(3, -1)
    flat = flat[:, np.isfinite(flat[0])]
    best = flat.mean(axis=1).argmax()
    out = cs.tt(cube, "auc", undefined="skip")
    assert float(out.estimate) == pytest.approx(flat[best].mean() - (flat.max(axis=0) - flat[best]).mean(), rel=1e-12)
    assert int(out.n_folds) == flat.shape[1]
    g = np.random.default_rng(1)
    shape = (3, 5, repeats)[: 2 + (repeats > 1)]
    dims = ("configuration", "outer_fold", "repeat")[: len(shape)]
    criterion = xr.DataArray(g.random(shape), dims=dims, coords={"outer_fold": range(5)})
    nested = cs.ncv(cube, "auc", criterion=criterion, undefined="skip")
    chosen = criterion.values.reshape(3, 5, repeats).argmin(axis=0)
    each = np.take_along_axis(aucs.transpose(0, 2, 1), chosen[None], axis=0)[0]
    assert float(nested.estimate) == pytest.approx(np.nanmean(each, axis=0).mean(), rel=1e-13)
    assert int(nested.n_folds) == flat.shape[1]
    turned = cs.ncv(cube, "auc", criterion=-criterion, criterion_direction="maximize", undefined="skip")
    xr.testing.assert_equal(turned.estimate, nested.estimate)
    assert nested.method.item() == "ncv_criterion"


def test_ncv_skips_inner_folds_without_a_class():
    cube, inner = nested_cube()
    out = cs.ncv(cube, "auc", inner=inner, undefined="skip")
    y, best, values = cube.label.values, [], []
    for k in range(4):
        inside = inner.isel(outer_fold=k)
        each = []
        for fold in range(6):
            rows = (cube.fold.values != k) & (inside.fold.values == fold)
            up, down = inside.values[rows & (y == 1)], inside.values[rows & (y == 0)]
            if len(up) and len(down):
                each.append(np.mean(up[:, None] > down, axis=(0, 1)))
        best.append(int(np.mean(each, axis=0).argmax()))
        rows = cube.fold.values == k
        up, down = cube.values[rows & (y == 1), best[k]], cube.values[rows & (y == 0), best[k]]
        values.append(np.mean(up[:, None] > down))
    assert out.selected_fold.values.tolist() == [TEXT[j] for j in best]
    assert float(out.estimate) == pytest.approx(np.mean(values), rel=1e-13)


def test_what_is_skipped_everywhere_is_nan_and_said():
    for function in (
        lambda: cs.score(sorted_folds(), "auc", average="fold", undefined="skip"),
        lambda: cs.tt(sorted_folds(), "auc", undefined="skip").estimate,
    ):
        out, messages = told(function)
        assert np.isnan(out).all()
        assert len(messages) == 1


def test_skipping_is_refused_where_it_means_nothing():
    cube, _ = lopsided()
    with pytest.raises(cs.InputError, match="give average='fold'"):
        cs.score(cube, "auc", undefined="skip")
    with pytest.raises(cs.InputError, match="one metric that chooses and judges"):
        cs.cvt(cube, ["auc", "average_precision"], average="fold", undefined="skip")
    with pytest.raises(cs.InputError, match="`undefined`"):
        cs.tt(cube, "auc", undefined="drop")
    for criterion, text in [
        (None, "give `inner`"),
        (np.ones((3, 5)), "must be a DataArray over 'configuration', 'outer_fold'"),
        (xr.DataArray(np.ones((3, 4)), dims=("configuration", "outer_fold")), "different outer folds"),
        (xr.DataArray(np.ones((3, 5, 2)), dims=("configuration", "outer_fold", "trial")), "the dimension 'trial'"),
    ]:
        with pytest.raises(cs.InputError, match=text):
            cs.ncv(cube, "auc", criterion=criterion)


def test_an_estimate_is_undefined_where_plain_bbc_is_or_no_draw_compares():
    given = SimpleNamespace(estimate=0.7, naive=0.8, metric=get_metric("auc"))
    assert _anchored(given, np.array([-0.1, np.nan, -0.3])) == pytest.approx(0.6)
    assert _anchored(given, np.array([0.5])) == 1
    assert np.isnan(_anchored(given, np.array([np.nan])))
    given.estimate = np.nan
    assert np.isnan(_anchored(given, np.array([-0.1])))


def test_tt_says_who_could_not_be_selected_in_one_warning():
    cube = cs.as_cube(np.random.default_rng(1).random((40, 3)), np.arange(40) % 2, folds=np.arange(40) // 8)
    cube = cube.where((cube["configuration"] > 0) | (cube["sample"] > 0))
    with pytest.warns(cs.CvstatsWarning, match="tt: 0 lacked predictions .* could not be selected") as caught:
        cs.tt(cube, "auc")
    assert len(caught) == 1


def test_folds_of_text_of_any_length():
    p = np.random.default_rng(1).random((40, 2))
    p[0] = np.nan
    cube = cs.as_cube(p, np.arange(40) % 2, folds=["", *(f"fold {i % 3}" for i in range(1, 40))])
    text = np.dtypes.StringDType(na_object=np.nan)  # what a pandas index becomes along a new dim
    other = cube.assign_coords(fold=("sample", cube["fold"].values.astype(text)))
    for function in (cs.tt, cs.cv, cs.implementations):
        xr.testing.assert_identical(function(other, "auc"), function(cube, "auc"))
