"""Making a cube: kinds of values, folds, weights and groups, and the text of every refusal."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats as cs
from cvstats.cube.arrays import class_names
from shared import P, Y, refusal

refused = refusal(cs.as_cube)


class TestKinds:
    @pytest.mark.parametrize(
        ("predictions", "labels", "kind"),
        [
            (P, Y, "probability"),
            (P * 4 - 2, Y, "score"),
            (P > 0.5, Y == 1, "label"),
            ((P > 0.5).astype(int), Y, "label"),
            ((P > 0.5).astype(float), Y, "label"),
            ((P > 0.5).astype(int), Y == 1, "label"),
            (P > 0.5, Y, "label"),
            (P * 4, [1.5, 2.0, 0.25, 9.0], "value"),
            (P * 4, [3, 1, 2, 7], "value"),
            (np.where(P > 0.5, 1, -1), Y * 2 - 1, "label"),
            (np.array([[3], [1], [2], [3]]), [3, 1, 2, 1], "label"),
            (P, [0.5, 1.5, 0.5, 1.5], "value"),
        ],
    )
    def test_inference(self, predictions, labels, kind):
        assert cs.as_cube(predictions, labels)["kind"].item() == kind

    def test_class_scores_that_do_not_add_up(self):
        p = np.random.default_rng(0).random((4, 2, 3))
        assert cs.as_cube(p, list("abca"), classes=list("abc"))["kind"].item() == "score"
        refused(
            "probabilities of the classes 'a', 'b', 'c' must add up to 1; off by up to",
            p,
            list("abca"),
            classes=list("abc"),
            kind="probability",
        )

    def test_unknown_kind(self):
        refused(
            "`kind` must be one of 'label', 'score', 'probability', 'value'; got 'scores' (did you mean 'score'?).",
            P,
            Y,
            kind="scores",
        )

    def test_probabilities_outside_the_unit_interval(self):
        refused(
            "`predictions`: probabilities must lie in [0, 1]; found values from 0.1 to 1.8.",
            np.where(P > 0.8, P * 2, P),
            Y,
            kind="probability",
        )
        bad = np.where(P > 0.8, -P, P)
        bad[3] = np.nan
        refused("found values from -0.9 to 0.8. Give scores with kind='score'.", bad, Y, kind="probability")

    def test_object_dtype(self):
        refused("`predictions` have dtype object and hold float such as 0.9", P.astype(object), Y)
        refused(
            "`predictions` have dtype object, which is not numeric. Convert with .astype(float)",
            P.astype(object),
            Y,
            kind="score",
        )
        refused("`predictions` have dtype object and hold Fraction", [[__import__("fractions").Fraction(1, 2)]], [1])
        refused("`predictions` have dtype complex128; give numbers, booleans or class names.", P + 0j, Y)

    def test_object_of_names_with_gaps(self):
        cube = cs.as_cube(np.array([["a", None], ["b", "a"]], object), ["a", "b"], positive="b")
        np.testing.assert_array_equal(cube.values, [[0, np.nan], [1, 0]])

    def test_numbers_for_many_classes(self):
        refused("`predictions` hold numbers but `labels` hold 3 classes: 'a', 'b', 'c'.", P, list("abca"))
        refused("needs two classes, but `labels` hold 3: 0, 1, 2.", P, [0, 1, 2, 0], kind="probability")

    def test_threshold(self):
        assert "threshold" not in cs.as_cube(P * 4, Y).coords
        assert cs.as_cube(P * 4, Y, threshold=2)["threshold"].item() == 2.0
        assert cs.as_cube(P, Y, threshold=0.2)["threshold"].item() == 0.2
        for rows, labels in (([[0.2], [0.3]], [0, 1]), ([[0.2], [0.3], [np.nan]], [0, 1, 1])):
            cube = cs.as_cube(rows, labels, threshold=0.2)
            np.testing.assert_array_equal(cs.accuracy(cube), [1.0])  # strictly above
            np.testing.assert_array_equal(cs.accuracy(cs.as_cube(cube, folds=[0] * len(rows)), average="fold"), [1.0])
        refused(
            "`threshold` is for scores and probabilities, but the predictions have kind='label'.",
            P > 0.5,
            Y,
            threshold=0.5,
        )
        refused("`threshold` of probabilities must lie in [0, 1]; got 2.", P, Y, threshold=2)
        refused("`threshold` must be a finite number; got nan.", P * 4, Y, threshold=float("nan"))

    def test_two_columns_of_scores(self):
        refused(
            "two columns of scores",
            np.stack([-P, P], axis=-1),
            list("abab"),
            classes=["a", "b"],
            kind="score",
            positive="a",
        )

    def test_classes(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2))
        refused(
            "`classes` has 2 names but `predictions` has 3 along 'label_class'.", p, list("abab"), classes=["a", "b"]
        )
        array = xr.DataArray(p, dims=("sample", "configuration", "label_class"), coords={"label_class": list("abc")})
        refused(
            "`classes` are 'b', 'a', 'c', but `predictions` has the classes 'a', 'b', 'c'",
            array,
            list("abca"),
            classes=list("bac"),
        )
        refused("without names; give them as `classes=`", array.drop_vars("label_class"), list("abca"))
        refused(
            "`classes` must name two or more different classes; got 'a', 'a', 'b'.",
            p,
            list("abab"),
            classes=list("aab"),
        )

    def test_class_codes_given_again(self):
        cube = cs.as_cube([["a"], ["b"]], ["a", "b"], positive="a")
        refused(
            "`positive`='b', but `predictions` is a cube of class codes whose positive class is 'a'.",
            cube,
            positive="b",
        )
        refused("`labels` hold 'c', not among the classes 'b', 'a'.", cube, ["a", "c"])

    def test_codes_for_names(self):
        cube = cs.as_cube([["c", "a"], ["b", "b"], ["a", "c"]], ["a", "b", "c"])
        assert json.loads(cube["classes"].item()) == ["a", "b", "c"]
        np.testing.assert_array_equal(cube.values, [[2, 0], [1, 1], [0, 2]])
        np.testing.assert_allclose(cs.accuracy(cube), [1 / 3, 1.0])

    def test_survival(self):
        refused("`kind` must be given with `event`: 'score' for risk", P, [5.0, 3.0, 2.0, 1.0], event=[1, 0, 1, 1])
        refused("`kind` must be given with `event`", P, [5.0, 3.0, 2.0, 1.0], event=[1, 0, 1, 1], kind="label")
        refused("need the times they are for", P, [5.0, 3.0, 2.0, 1.0], event=[1, 0, 1, 1], kind="probability")
        cube = cs.as_cube(P, [5.0, 3.0, 2.0, 1.0], event=[True, False, True, True], kind="score")
        assert cube["event"].dtype.kind == "i"
        assert class_names(cube) is None


class TestFolds:
    def test_ids(self):
        for folds in (
            [0, 0, 1, 1],
            ["x", "x", "y", "y"],
            np.array([[0], [0], [1], [1]]),
            pd.Series([1, 1, 0, 0], [3, 2, 1, 0]),
        ):
            cube = cs.as_cube(P, Y, folds=folds)
            assert cube["fold"].dims == ("sample",)
            assert len(set(cube["fold"].values.tolist())) == 2
        np.testing.assert_array_equal(
            cs.as_cube(P, Y, folds=pd.Series([1, 1, 0, 0], [3, 2, 1, 0]))["fold"], [0, 0, 1, 1]
        )

    def test_test_indices(self):
        expected = [1, 0, 1, 0]
        indices = [np.array([1, 3]), np.array([0, 2])]
        np.testing.assert_array_equal(cs.as_cube(P, Y, folds=indices)["fold"], expected)
        pairs = [
            (np.array([0, 2]), np.array([1, 3])),
            (np.array([1, 3]), np.array([0, 2])),
        ]  # as scikit-learn's split()
        np.testing.assert_array_equal(cs.as_cube(P, Y, folds=pairs)["fold"], expected)

    def test_scikit_learn_split(self):
        from sklearn.model_selection import KFold

        splits = list(KFold(3).split(P))
        fold = cs.as_cube(P, Y, folds=splits)["fold"].values
        for number, (_, test) in enumerate(splits):
            assert (fold[test] == number).all()

    def test_folds_that_do_not_cover(self):
        text = "`folds` do not cover the samples once each: never held out: 3; more than once: 0."
        refused(text, P, Y, folds=[np.array([0, 1]), np.array([2, 0])])
        refused(
            "`folds` has shape (3,) and does not cover the 4 samples; give one fold id per sample",
            P,
            Y,
            folds=[0, 1, 0],
        )
        refused("does not cover the 4 samples x 2 repeats", np.stack([P, P], -1), Y, folds=np.zeros((4, 3), int))
        refused(
            "the test indices of fold 1 must be whole numbers from 0 to 3",
            P,
            Y,
            folds=[np.array([0, 1]), np.array([2, 4])],
        )
        refused(
            "`folds` must be ids per sample [x repeat], or one array of test indices per fold.",
            P,
            Y,
            folds=[[0, 1], [2]],
        )

    def test_float_ids(self):
        for folds in ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, np.nan], pd.Series([0, 0, 1, None])):
            refused(
                "`folds` holds floats; fold ids must be integers or strings. Convert with .astype(int).",
                P,
                Y,
                folds=folds,
            )
        cube = cs.as_cube(P, Y, folds=[0, 0, 1, 1])
        with pytest.raises(cs.InputError, match="holds floats"):
            cs.check_cube(cube.assign_coords(fold=cube["fold"].astype(float)))

    def test_missing_ids(self):
        refused("`folds` must hold integers or strings for every sample", P, Y, folds=["a", None, "b", "b"])
        refused(
            "`folds` must hold integers or strings for every sample; found dtype bool.",
            P,
            Y,
            folds=[True, False, True, True],
        )

    def test_repeats(self):
        p = np.stack([P, P], axis=-1)
        table = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
        for folds in (
            table,
            pd.DataFrame(table),
            xr.DataArray(table, dims=("sample", "repeat")),
            xr.DataArray(table.T, dims=("repeat", "sample")),
        ):
            cube = cs.as_cube(p, Y, folds=folds)
            np.testing.assert_array_equal(cube["fold"].transpose("sample", "repeat"), table)
        refused("`folds` has 2 repeats but `predictions` has no repeat axis.", P, Y, folds=pd.DataFrame(table))
        assert cs.as_cube(P, Y, folds=cs.kfold(Y, 2, rng=1))["fold"].dims == ("sample",)

    def test_repeats_are_matched_by_name(self):
        table = xr.DataArray([[0, 1], [0, 0], [1, 1], [1, 0]], dims=("sample", "repeat"), coords={"repeat": ["b", "a"]})
        cube = cs.as_cube(np.stack([P, P], axis=-1), Y, folds=table, repeats=["a", "b"])
        np.testing.assert_array_equal(cube["fold"], table.values[:, ::-1])
        refused(
            "`folds` does not match `predictions` along 'repeat': only in `predictions`: 'c'; only in `folds`: 'b'.",
            np.stack([P, P], -1),
            Y,
            folds=table,
            repeats=["a", "c"],
        )


class TestOtherValues:
    def test_weights_groups(self):
        cube = cs.as_cube(P, Y, weights=[1, 2, 0, 3], groups=["x", "x", "y", "y"])
        assert cube["weight"].dtype == float
        assert cube["group"].values.tolist() == ["x", "x", "y", "y"]

    @pytest.mark.parametrize("weights", [[1, -1, 1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1]])
    def test_bad_weights(self, weights):
        refused("`weights` must be finite and not negative.", P, Y, weights=weights)

    def test_more_bad_values(self):
        refused("`weights` must be numbers; found dtype <U1.", P, Y, weights=list("abcd"))
        refused("`weights` are all zero", P, Y, weights=[0, 0, 0, 0])
        refused(
            "`event` must be 1 (observed) or 0 (censored); found 1, 2, 0.", P, Y * 1.5, event=[1, 2, 0, 1], kind="score"
        )
        refused("`groups` must not be missing", P, Y, groups=["a", None, "b", "b"])
        refused("`groups` has no dimension 'sample'; found 'x'.", P, Y, groups=xr.DataArray([1, 2], dims="x"))
        refused(
            "`labels` has dimensions 'dataset' that `predictions` lacks.",
            P,
            xr.DataArray(np.zeros((4, 2)), dims=("sample", "dataset")),
        )

    def test_labels_by_batch_are_matched_by_name(self):
        p = xr.DataArray(
            np.stack([P, 1 - P], -1), dims=("sample", "configuration", "dataset"), coords={"dataset": ["a", "b"]}
        )
        labels = xr.DataArray(np.stack([1 - Y, Y], -1), dims=("sample", "dataset"), coords={"dataset": ["b", "a"]})
        cube = cs.as_cube(p, labels)
        np.testing.assert_array_equal(cube["label"].sel(dataset="a"), Y)
        np.testing.assert_allclose(cs.auc(cube).sel(dataset="a"), cs.auc(cube).sel(dataset="b"))
        refused(
            "`labels` has 3 values along 'dataset' where `predictions` has 2; values without labels are paired by "
            "position, so the lengths must agree.",
            p,
            xr.DataArray(np.zeros((4, 3)), dims=("sample", "dataset")),
        )

    def test_names(self):
        refused("`samples` has 3 names but `predictions` has 4 along 'sample'.", P, Y, samples=list("abc"))
        refused(
            "`configurations` has 2 names but `predictions` has 3 along 'configuration'.",
            P,
            Y,
            configurations=["a", "b"],
        )
        refused("`repeats` names repeats, but `predictions` has no repeat axis.", P, Y, repeats=[1])

    @pytest.mark.parametrize("empty", [[], np.empty((0, 3)), np.empty((4, 0)), pd.DataFrame(index=range(4))])
    def test_empty(self, empty):
        refused("`predictions` is empty: sizes", empty, Y)

    def test_shapes(self):
        refused("`predictions` has 4 axes; arrays are sample x configuration", np.zeros((2, 2, 2, 2)), [0, 1])
        refused("`predictions`: rows must have one length", [[1, 2], [3]], [0, 1])
        refused("arrays per configuration must have one shape; found (3,), (4,).", {"a": P[:, 0], "b": P[:3, 0]}, Y)
        refused(
            "Series per configuration must share one index", [pd.Series(P[:, 0]), pd.Series(P[:, 0], list("abcd"))], Y
        )
        refused(
            "`predictions` has no dimension 'sample'; found 'row', 'configuration'.",
            xr.DataArray(P, dims=("row", "configuration")),
            Y,
        )
        refused("give one array per configuration, with one value per sample", {"a": 1.0}, Y)

    def test_long_table(self):
        frame = pd.DataFrame({"sample": [1], "configuration": ["a"], "prediction": [0.5]})
        refused(
            "`predictions` is a long table (columns sample, configuration, prediction); use read_predictions()",
            frame,
            [1],
        )
