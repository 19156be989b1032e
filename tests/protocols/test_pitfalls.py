"""The five implementations: a hand-worked table, plain loops, agreement with ncv, and missing inputs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.protocols.nested import ncv
from cvstats.protocols.pitfalls import implementations
from cvstats.protocols.tuned import cvt
from cvstats.simulate.fixed import simulate_cube

NAN = np.nan
LABEL = np.array([0, 1, 0, 1, 0, 1])
FOLD = np.array(["a", "a", "a", "b", "b", "c"])
VALUES = [9, 2, 5]  # tuning values, not in order: the smallest is not the first


def labels_cube(wrong, **more):
    """Return a cube that is wrong where `wrong` is 1, missing where NaN."""
    wrong = np.asarray(wrong, float)
    predictions = np.where(wrong == 1, 1 - LABEL[:, None], LABEL[:, None]).astype(float)
    predictions = np.where(np.isnan(wrong), NAN, predictions)
    return cs.as_cube(predictions, LABEL, configurations=more.pop("configurations", VALUES), kind="label", **more)


def inside(wrong, configurations=VALUES):
    """Return predictions inside training sets from {fold: rows of errors, one per training sample}."""
    cubes = []
    for fold, rows in wrong.items():
        table = np.full((6, 3), NAN)
        table[fold != FOLD] = rows
        cubes.append(labels_cube(table, configurations=configurations))
    return xr.concat(cubes, dim=xr.DataArray(list(wrong), dims="outer_fold", name="outer_fold"))


#         9  2  5
WRONG = [[0, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 1, 1]]
LEAKY = [[0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
TRAINING = {
    "a": [[0, 1, 0], [1, 1, 0], [0, 0, 0]],  # 1, 2, 0 errors: 5
    "b": [[0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],  # 0, 1, 1: 9
    "c": [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],  # 2, 1, 1: the smaller of 2 and 5
}
LEAKY_TRAINING = {fold: [[1, 1, 0]] * len(rows) for fold, rows in TRAINING.items()}  # 5 always
INNER = {
    "a": [[0, 1, 1], [0, 0, 0], [0, 0, 0]],  # 0, 1, 1: 9
    "b": [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]],  # 1, 0, 1: 2
    "c": [[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],  # 0, 0, 1: 2 rather than 9
}
RESUBSTITUTION = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]  # 1, 1, 0: 5


def everything(configurations=VALUES):
    return {
        "leaky": labels_cube(LEAKY, folds=FOLD, configurations=configurations),
        "training": inside(TRAINING, configurations),
        "leaky_training": inside(LEAKY_TRAINING, configurations),
        "inner": inside(INNER, configurations),
        "resubstitution": labels_cube(RESUBSTITUTION, configurations=configurations),
    }


def test_the_table_by_hand():
    cube = labels_cube(WRONG, folds=FOLD)
    truth = xr.DataArray([0.4, 0.5, 0.6], dims="configuration", coords={"configuration": [2, 5, 9]})
    out = implementations(cube, "error_rate", truth=truth, **everything())
    rows = {
        # estimate, low, high, selected
        "[Pi1]-[CV1]": (2 / 6, 2, 2, 2),  # totals 2, 2, 3: tie between 9 and 2
        "[Pi2]-[CV1]": (1 / 6, 2, 2, 2),  # totals 1, 1, 2
        "[Pi1]-[CV2]": (3 / 6, 2, 9, 5),  # a with 5, b with 9, c with 2: one error each
        "[Pi2]-[CV2]": (2 / 6, 5, 5, 5),
        "[Pi1]-[CV3]": (2 / 6, 2, 9, 2),  # a with 9: 1, b with 2: 0, c with 2: 1
        "[Pi1]-(9)": (1 / 6, 2, 9, 2),  # a: tie of all three, so 2 (1 error); b 2 (0); c 9 (0)
        "[Pi2]-(9)": (0, 2, 5, 2),  # a: 9 and 2 tie; b: 2; c: 9 and 5 tie
    }
    assert out.implementation.values.tolist() == list(rows)
    for name, (estimate, low, high, selected) in rows.items():
        row = out.sel(implementation=name)
        assert float(row.estimate) == pytest.approx(estimate, abs=1e-15), name
        assert (float(row.chosen_low), float(row.chosen_high)) == (low, high), name
        assert float(row.selected) == selected, name
        assert float(row.truth) == {2: 0.4, 5: 0.5, 9: 0.6}[selected]
        assert float(row.difference) == pytest.approx(estimate - float(row.truth))
    assert out.chosen.sel(implementation="[Pi1]-[CV2]").values.tolist() == [5, 9, 2]
    assert out.chosen.sel(implementation="[Pi1]-[CV3]").values.tolist() == [9, 2, 2]
    assert out.chosen.sel(implementation="[Pi1]-[CV1]").values.tolist() == [2, 2, 2]
    assert out.outer_fold.values.tolist() == ["a", "b", "c"]


def test_principles_and_rules():
    out = implementations(labels_cube(WRONG, folds=FOLD))
    keeps = out.implementation.values[(out.out_of_sample & out.internal_coherence).values]
    assert keeps.tolist() == ["[Pi1]-[CV3]"]
    assert out.implementation.values[out.out_of_sample.values].tolist() == ["[Pi1]-[CV3]"]
    assert out.implementation.values[out.internal_coherence.values].tolist() == ["[Pi1]-[CV2]", "[Pi1]-[CV3]"]
    assert out.rule.sel(implementation="[Pi2]-[CV2]").item() == "(17)"
    assert out.rule.sel(implementation="[Pi1]-[CV3]").item() == "(13)"
    assert out.preprocessing.values.tolist()[:2] == ["[Pi1]", "[Pi2]"]
    assert (out.method.item(), out.metric.item()) == ("implementations", "error_rate")


def test_named_configurations_break_ties_by_the_first():
    names = ["nine", "two", "five"]
    out = implementations(labels_cube(WRONG, folds=FOLD, configurations=names), **everything(names))
    first = out.sel(implementation="[Pi1]-[CV1]")
    assert (first.selected.item(), float(first.estimate)) == ("nine", pytest.approx(2 / 6))
    assert out.chosen.sel(implementation="[Pi1]-[CV2]").values.tolist() == ["five", "nine", "two"]
    double = out.sel(implementation="[Pi1]-[CV3]")
    assert double.chosen.values.tolist() == ["nine", "two", "nine"]
    assert (double.chosen_low.item(), double.chosen_high.item()) == ("nine", "two")  # in the order they are given
    assert float(double.estimate) == pytest.approx(1 / 6)


def test_missing_inputs_give_missing_rows():
    cube = labels_cube(WRONG, folds=FOLD)
    out = implementations(cube)
    known = out.implementation.values[np.isfinite(out.estimate.values)]
    assert known.tolist() == ["[Pi1]-[CV1]", "[Pi1]-(9)"]
    assert np.isnan(out.selected.sel(implementation="[Pi1]-[CV2]"))
    truth = xr.DataArray([0.4, 0.5, 0.6], dims="configuration")
    there = implementations(cube, truth=truth)
    np.testing.assert_array_equal(np.isnan(there.truth), np.isnan(there.estimate))
    partial = implementations(cube, training=inside(TRAINING))
    assert float(partial.estimate.sel(implementation="[Pi1]-[CV2]")) == pytest.approx(3 / 6)
    assert np.isnan(partial.selected.sel(implementation="[Pi1]-[CV2]"))  # (17) needs the resubstitution errors
    only_leaky = implementations(None, leaky=labels_cube(LEAKY, folds=FOLD), leaky_training=inside(LEAKY_TRAINING))
    known = only_leaky.implementation.values[np.isfinite(only_leaky.estimate.values)]
    assert known.tolist() == ["[Pi2]-[CV1]", "[Pi2]-[CV2]", "[Pi2]-(9)"]
    no_folds = implementations(labels_cube(WRONG))
    assert np.isfinite(no_folds.estimate.values).sum() == 1
    assert float(no_folds.chosen_low.sel(implementation="[Pi1]-[CV1]")) == 2
    names = implementations(labels_cube(WRONG, folds=FOLD, configurations=["x", "y", "z"]))
    assert names.selected.sel(implementation="[Pi2]-[CV1]").item() == ""


def test_missing_predictions_bar_a_configuration():
    wrong = np.array(WRONG, float)
    wrong[:, 1] = 0
    wrong[5, 1] = NAN  # perfect, but not on every sample
    out = implementations(labels_cube(wrong, folds=FOLD))
    first = out.sel(implementation="[Pi1]-[CV1]")
    assert (float(first.selected), float(first.estimate)) == (9, pytest.approx(2 / 6))
    assert 2 not in out.chosen.sel(implementation="[Pi1]-(9)").values
    wrong[[0, 1], [0, 2]] = NAN
    with pytest.raises(cs.InputError, match="no configuration predicted every sample"):
        implementations(labels_cube(wrong, folds=FOLD))


def test_eligible_means_every_sample_in_some_repeat_and_every_class():
    """Perfect configurations that lack a sample may not be chosen; one that lacks a repeat may."""
    label = np.array(["a", "b", "c", "a", "b", "c"])
    sure = (label[:, None] == np.array(["a", "b", "c"])).astype(float)
    p = np.stack([0.6 * sure + 0.4 / 3, sure, 0.9 * sure + 0.1 / 3], axis=1)
    p = xr.DataArray(np.stack([p, p]), dims=("repeat", "sample", "configuration", "label_class"))
    p[:, 2, 1, 0] = NAN  # one class of one sample, in both repeats
    p[1, 4, 2] = NAN  # one sample in one repeat
    cube = cs.as_cube(p, label, classes=["a", "b", "c"])
    out = implementations(cube, "brier").sel(implementation="[Pi1]-[CV1]")
    assert out.selected.item() == 2


def test_a_fold_that_cannot_choose_makes_the_estimate_undefined():
    """The middle fold has one class, so that no AUC chooses there: nobody says how its samples would be predicted."""
    label, fold = np.array([0, 1, 0, 1, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1, 2, 2])
    p = np.random.default_rng(0).random((8, 3))
    with pytest.warns(cs.CvstatsWarning, match="auc is NaN"):
        row = implementations(cs.as_cube(p, label, folds=fold), "auc").sel(implementation="[Pi1]-(9)")
    np.testing.assert_array_equal(row.chosen, [1, NAN, 1])
    assert np.isnan([row.chosen_low, row.chosen_high]).all()
    assert np.isnan(row.estimate)


@pytest.mark.parametrize("repeats", [1, 3])
def test_nested_rows_agree_with_ncv(repeats):
    cube, inner = simulate_cube(45, 12, inner=True, repeats=repeats, folds=5, rng=3)
    inner = inner.drop_vars("fold")  # so that ncv, too, chooses by the pooled inner error
    training = inner.copy(data=np.where(np.isnan(inner), NAN, np.random.default_rng(1).integers(0, 2, inner.shape)))
    out = implementations(cube, inner=inner, training=training)
    double = ncv(cube, "error_rate", inner=inner, average="pooled")
    second = ncv(cube, "error_rate", inner=training, inner_kind="training", average="pooled")
    assert float(out.estimate.sel(implementation="[Pi1]-[CV3]")) == pytest.approx(float(double.estimate), rel=1e-12)
    assert float(out.estimate.sel(implementation="[Pi1]-[CV2]")) == pytest.approx(float(second.estimate), rel=1e-12)
    np.testing.assert_array_equal(out.chosen.sel(implementation="[Pi1]-[CV3]"), double.selected_fold)
    first = cvt(cube, "error_rate")
    assert float(out.estimate.sel(implementation="[Pi1]-[CV1]")) == pytest.approx(float(first.estimate))
    assert out.selected.sel(implementation="[Pi1]-[CV1]").item() == first.selected.item()


def test_other_metrics_score_what_each_fold_chose():
    rng = np.random.default_rng(5)
    label, fold = np.arange(20) % 2, np.repeat([0, 1, 2], [8, 6, 6])
    score = np.clip(0.5 + 0.2 * (2 * label[:, None] - 1) + 0.3 * rng.normal(size=(20, 4)), 0.01, 0.99)
    cube = cs.as_cube(score, label, folds=fold)
    own = np.stack([[cs.auc(cube.isel(sample=fold == f)).values[j] for j in range(4)] for f in range(3)])
    chosen = own.argmax(axis=1)
    mixed = cs.as_cube(score[np.arange(20), chosen[fold]][:, None], label)
    out = implementations(cube, "auc")
    row = out.sel(implementation="[Pi1]-(9)")
    assert row.chosen.values.tolist() == chosen.tolist()
    assert float(row.estimate) == pytest.approx(float(cs.auc(mixed)[0]), rel=1e-12)
    assert float(out.estimate[0]) == pytest.approx(float(cs.auc(cube).max()))  # the greatest, not the least


def test_resubstitution_is_read_as_the_cube_is():
    rng = np.random.default_rng(5)
    label, fold = np.array(["no", "yes"])[np.arange(20) % 2], np.arange(20) // 5
    cube = cs.as_cube(rng.random((20, 4)), label, folds=fold, positive="no", threshold=0.3)
    inner = cube.drop_vars("fold").expand_dims(outer_fold=range(4))
    inner = inner.where(xr.DataArray(fold, dims="sample") != inner.outer_fold)
    bare = cube.drop_vars(["label", "kind", "positive", "threshold", "fold"])
    for metric in ("auc", "error_rate"):
        out = implementations(cube, metric, training=inner, resubstitution=bare)
        value = cs.score(cube, metric)
        expected = int(np.argmax(value.values) if metric == "auc" else np.argmin(value.values))
        assert int(out.selected.sel(implementation="[Pi1]-[CV2]")) == expected


def test_class_probabilities_and_regression():
    rng = np.random.default_rng(6)
    p = rng.dirichlet([1, 1, 1], size=(12, 3))
    cube = cs.as_cube(p, np.array(["a", "b", "c"] * 4), classes=["a", "b", "c"], folds=np.arange(12) // 4)
    out = implementations(cube, "brier")
    fold = np.stack([cs.brier(cube.isel(sample=slice(4 * f, 4 * f + 4))).values for f in range(3)])
    assert float(out.estimate.sel(implementation="[Pi1]-(9)")) == pytest.approx(fold.min(axis=1).mean(), rel=1e-9)
    values = cs.as_cube(rng.normal(size=(12, 3)), rng.normal(size=12), folds=np.arange(12) // 4)
    out = implementations(values, "mse")
    assert float(out.estimate[0]) == pytest.approx(float(cs.mse(values).min()))


@pytest.mark.slow
def test_batch_dims():
    cubes, inners = zip(*(simulate_cube(30, 6, inner=True, folds=3, rng=s) for s in (1, 2, 3)), strict=True)
    trial = xr.DataArray([10, 20, 30], dims="trial", name="trial")
    with_label = {"coords": "different", "compat": "equals"}
    cube = xr.concat([c.drop_vars("truth") for c in cubes], dim=trial, **with_label)
    inner = xr.concat([c.drop_vars("truth") for c in inners], dim=trial, **with_label)
    truth = xr.concat([1 - c.truth.drop_vars("truth") for c in cubes], dim=trial, coords="minimal", compat="override")
    out = implementations(cube, inner=inner, truth=truth)
    assert out.difference.sizes == {"trial": 3, "implementation": 7}
    for at, (one, own) in enumerate(zip(cubes, inners, strict=True)):
        alone = implementations(one, inner=own, truth=1 - one.truth)
        for name in ("estimate", "difference", "chosen", "selected"):
            np.testing.assert_array_equal(out[name].isel(trial=at).transpose(*alone[name].dims), alone[name])
    with pytest.raises(cs.InputError, match="different labels along 'trial'"):
        implementations(cube, inner=inner.assign_coords(trial=[1, 2, 3]))
    only_leaky = implementations(None, leaky=cube)
    expected = out.estimate.sel(implementation="[Pi1]-[CV1]")
    np.testing.assert_array_equal(only_leaky.estimate.sel(implementation="[Pi2]-[CV1]"), expected)
    two = xr.concat([cube, 1 - cube], dim=xr.DataArray(["as is", "turned"], dims="how", name="how"))
    out = implementations(two, inner=inner)
    assert out.estimate.sizes == {"how": 2, "trial": 3, "implementation": 7}
    for how in two.how.values:
        np.testing.assert_array_equal(
            out.estimate.sel(how=how), implementations(two.sel(how=how, drop=True), inner=inner).estimate
        )
    gap = xr.DataArray(np.eye(30, 6, dtype=bool), dims=("sample", "configuration"))
    gaps = cube.where(~gap | (cube.trial != 20))
    with pytest.raises(cs.InputError, match="no configuration predicted every sample"):
        implementations(gaps)


def test_folds_numbered_throughout_the_repeats():
    """Folds 3, 4, 5 in the second repeat are its folds 0, 1, 2."""
    cube = simulate_cube(30, 6, repeats=2, folds=3, rng=1)
    shift = xr.DataArray([0, 3], dims="repeat")
    a, b = implementations(cube), implementations(cube.assign_coords(fold=cube.fold + shift))
    np.testing.assert_array_equal(a.estimate, b.estimate)
    row = {"implementation": "[Pi1]-(9)"}
    for repeat in (0, 1):
        there = b.chosen.sel(row).sel(outer_fold=[3 * repeat, 3 * repeat + 1, 3 * repeat + 2], repeat=repeat)
        np.testing.assert_array_equal(there, a.chosen.sel(row).sel(repeat=repeat))
        assert np.isnan(b.chosen.sel(row).sel(repeat=repeat)).sum() == 3
    shared = cube.assign_coords(fold=cube.fold.isel(repeat=0, drop=True))
    each = cube.assign_coords(fold=shared.fold.expand_dims(repeat=2, axis=1))
    xr.testing.assert_equal(implementations(shared), implementations(each))
    named = implementations(cube.assign_coords(repeat=["first", "second"]))
    assert named.chosen["repeat"].values.tolist() == ["first", "second"]
    assert "repeat" not in implementations(cube.drop_vars("repeat")).coords


@pytest.mark.parametrize("mark", [2, -1])
def test_a_fold_that_nobody_predicted_is_left_out(mark):
    """Whether its samples still carry the fold's number, or the one that says they are in no fold."""
    cube, inner = simulate_cube(30, 6, inner=True, folds=3, rng=1)
    inner = inner.drop_vars("fold")
    there = (cube.fold != 2).values
    rest = cube.isel(sample=there)
    gaps = cube.where(cube.fold != 2).assign_coords(fold=cube.fold.where(cube.fold != 2, mark))
    kept = inner.isel(outer_fold=[0, 1])
    out = implementations(gaps, inner=inner if mark == 2 else kept)
    expected = implementations(rest, inner=kept.isel(sample=there))
    rows = {"implementation": ["[Pi1]-[CV1]", "[Pi1]-(9)"]}
    np.testing.assert_array_equal(out.estimate.sel(rows), expected.estimate.sel(rows))
    own = out.chosen.sel(implementation="[Pi1]-(9)")
    assert own.outer_fold.values.tolist() == ([0, 1, 2] if mark == 2 else [0, 1])
    np.testing.assert_array_equal(own[:2], expected.chosen.sel(implementation="[Pi1]-(9)"))
    assert np.isnan(own[2:]).all()
    nested = out.sel(implementation="[Pi1]-[CV3]")
    fold, right = cube.fold.values, cube.values == cube.label.values[:, None]
    wrong = [~right[fold == f, int(nested.chosen[f])] for f in (0, 1)]
    assert float(nested.estimate) == pytest.approx(np.concatenate(wrong).mean(), rel=1e-14)
    if mark == -1:  # predictions in no fold: nothing chose for them
        there = implementations(cube.assign_coords(fold=gaps.fold), inner=kept)
        rows = {"implementation": ["[Pi1]-[CV3]", "[Pi1]-(9)"]}
        np.testing.assert_array_equal(there.estimate.sel(rows), out.estimate.sel(rows))


def test_bad_input():
    cube = labels_cube(WRONG, folds=FOLD)
    with pytest.raises(cs.InputError, match="give `cube`"):
        implementations(None)
    leak = inside(TRAINING).fillna(0.0)
    with pytest.raises(cs.InputError, match=r"`training` leaks: outer fold 'a' has .* samples 0, 1, 2"):
        implementations(cube, training=leak)
    with pytest.raises(cs.InputError, match="`inner` and the cube have different outer folds"):
        implementations(cube, inner=inside(INNER).isel(outer_fold=[0, 1]))
    with pytest.raises(cs.InputError, match="`inner` needs the coordinate 'fold'"):
        implementations(labels_cube(WRONG), inner=inside(INNER))
    with pytest.raises(
        cs.InputError, match="`leaky` does not match the cube along 'configuration': only in the cube: 9"
    ):
        implementations(cube, leaky=labels_cube(LEAKY, folds=FOLD, configurations=[1, 2, 5]))
    with pytest.raises(cs.InputError, match="`resubstitution` does not match the cube along 'configuration'"):
        implementations(cube, resubstitution=labels_cube(RESUBSTITUTION, configurations=[1, 2, 5]))
    with pytest.raises(cs.InputError, match="has no coordinate 'label'"):
        implementations(cube, leaky=labels_cube(LEAKY, folds=FOLD).drop_vars("label"))
    with pytest.raises(cs.InputError, match="`truth` must be a DataArray over 'configuration'"):
        implementations(cube, truth=[0.1, 0.2, 0.3])
    with pytest.raises(cs.InputError, match=r"`truth` lacks the configurations \[5\]"):
        implementations(cube, truth=xr.DataArray([1.0, 2.0], dims="configuration", coords={"configuration": [9, 2]}))


def test_inputs_are_not_changed():
    cube, given = labels_cube(WRONG, folds=FOLD), everything()
    before, copies = cube.copy(deep=True), {name: part.copy(deep=True) for name, part in given.items()}
    implementations(cube, **given)
    xr.testing.assert_identical(cube, before)
    for name, part in given.items():
        xr.testing.assert_identical(part, copies[name])


def test_what_did_not_choose_has_no_lowest_and_highest_choice():
    for names, missing in ((VALUES, lambda v: np.isnan(v)), (["x", "y", "z"], lambda v: v == "")):
        out = implementations(labels_cube(WRONG, folds=FOLD, configurations=names))
        nobody = missing(out.chosen.values).any(axis=1)
        assert nobody.any()
        np.testing.assert_array_equal(missing(out.chosen_low.values), nobody)
        np.testing.assert_array_equal(missing(out.chosen_high.values), nobody)


@pytest.mark.slow
def test_nested_cross_validation_is_pooled_in_one_way():
    """The same predictions, whether a sample is missing in one repeat or the cubes are lazy."""
    cube, inner = cs.simulate_cube(40, 5, folds=4, repeats=2, inner=True, rng=3)
    gaps = cube.where((cube["sample"] > 3) | (cube["repeat"] > 0))
    for part in (cube, gaps):
        table = implementations(part, "error_rate", inner=inner)
        nested = ncv(part, "error_rate", inner=inner, average="pooled")
        assert float(nested.estimate) == pytest.approx(
            float(table.estimate.sel(implementation="[Pi1]-[CV3]")), rel=1e-12
        )
        lazy = part.chunk({"configuration": 2}), inner.chunk({"configuration": 3})
        assert float(ncv(lazy[0], "error_rate", inner=lazy[1], average="pooled").estimate) == float(nested.estimate)
        again = implementations(lazy[0], "error_rate", inner=lazy[1])
        np.testing.assert_array_equal(again.estimate, table.estimate)


def test_penalties_choose_and_are_not_reported():
    """Squared errors with the penalty of the lasso, as in (9), (11), (13), (17) and (18), by plain loops."""
    rng = np.random.default_rng(5)
    n, m, k = 12, 5, 3
    label, fold = rng.normal(size=n), np.arange(n) % k
    outer, leaked = (label[:, None] + rng.normal(size=(n, m)) for _ in range(2))
    outside = fold[:, None, None] == np.arange(k)
    training, inner = (np.where(outside, np.nan, label[:, None, None] + rng.normal(size=(n, m, k))) for _ in range(2))
    sizes = {name: rng.uniform(0, 1, size=(m, k)) for name in ("training", "inner")}
    whole = {name: rng.uniform(0, 1, size=m) for name in ("cube", "leaky", "resubstitution")}
    values = np.arange(1.0, m + 1)
    loss = {name: (part - label[:, None]) ** 2 for name, part in (("cube", outer), ("leaky", leaked))}

    cubes = {
        name: cs.as_cube(part, label, configurations=values, folds=fold, kind="value").assign_coords(
            penalty=("configuration", whole[name])
        )
        for name, part in (("cube", outer), ("leaky", leaked), ("resubstitution", leaked))
    }
    dims = ("sample", "configuration", "outer_fold")
    inside = {
        name: xr.DataArray(part, dims=dims, coords={"configuration": values, "outer_fold": np.arange(k)}).assign_coords(
            penalty=(dims[1:], sizes[name])
        )
        for name, part in (("training", training), ("inner", inner))
    }
    out = cs.implementations(cubes.pop("cube"), "mse", **cubes, **inside)

    for pi, name in (("[Pi1]", "cube"), ("[Pi2]", "leaky")):
        best = int(np.argmin(loss[name].mean(axis=0) + whole[name]))
        row = out.sel(implementation=f"{pi}-[CV1]")
        assert float(row.selected) == values[best]
        np.testing.assert_allclose(row.estimate, loss[name][:, best].mean())
    for choice, part in (("[CV2]", training), ("[CV3]", inner)):
        name, total, chosen = "training" if choice == "[CV2]" else "inner", 0.0, []
        for j in range(k):
            error = np.nanmean((part[:, :, j] - label[:, None]) ** 2, axis=0) + sizes[name][:, j]
            chosen.append(int(np.argmin(error)))
            total += loss["cube"][fold == j, chosen[-1]].sum()
        row = out.sel(implementation=f"[Pi1]-{choice}")
        np.testing.assert_array_equal(row.chosen, values[chosen])
        np.testing.assert_allclose(row.estimate, total / n)
    full = int(np.argmin(loss["leaky"].mean(axis=0) + whole["resubstitution"]))
    assert float(out.selected.sel(implementation="[Pi1]-[CV2]")) == values[full]
