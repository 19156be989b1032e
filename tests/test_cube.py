"""The cube: every accepted form, what is settled, and the text of every refusal."""

from __future__ import annotations

import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats as cs
from cvstats.cube import class_names, is_lazy

P = np.array([[0.9, 0.4, 0.6], [0.2, 0.7, 0.1], [0.8, 0.6, 0.3], [0.3, 0.1, 0.2]])
Y = np.array([1, 0, 1, 0])


def refused(text, *args, **kwargs):
    with pytest.raises(cs.InputError, match=re.escape(text)):
        cs.as_cube(*args, **kwargs)


class TestForms:
    def test_array(self):
        cube = cs.as_cube(P, Y)
        assert isinstance(cube, xr.DataArray)
        assert cube.name == "prediction"
        assert cube.dims == ("sample", "configuration")
        np.testing.assert_array_equal(cube.values, P)
        np.testing.assert_array_equal(cube["label"], Y)
        assert cube["kind"].item() == "probability"
        assert cube["positive"].item() == 1
        assert cube["threshold"].item() == 0.5

    @pytest.mark.parametrize(
        "form", [P.tolist(), list(P.T), [pd.Series(c) for c in P.T], tuple(P.T), P.astype(np.float32)]
    )
    def test_lists_of_rows_and_of_columns(self, form):
        cube = cs.as_cube(form, Y)
        assert cube.dims == ("sample", "configuration")
        np.testing.assert_allclose(cube.values, P, rtol=1e-7)

    def test_one_configuration(self):
        for form in (P[:, 0], P[:, 0].tolist(), pd.Series(P[:, 0])):
            cube = cs.as_cube(form, Y)
            assert cube.shape == (4, 1)
        assert cs.as_cube(pd.Series(P[:, 0], name="svm"), Y)["configuration"].item() == "svm"

    def test_mapping_keeps_first_seen_order(self):
        cube = cs.as_cube({"z": P[:, 0], "a": P[:, 1], "m": P[:, 2]}, Y)
        assert cube["configuration"].values.tolist() == ["z", "a", "m"]
        np.testing.assert_array_equal(cube.values, P)

    def test_mapping_of_series_carries_sample_ids(self):
        ids = ["d", "b", "c", "a"]
        cube = cs.as_cube({"x": pd.Series(P[:, 0], ids), "y": pd.Series(P[:, 1], ids)}, pd.Series(Y[::-1], ids[::-1]))
        assert cube["sample"].values.tolist() == ids
        np.testing.assert_array_equal(cube["label"], Y)

    def test_frame(self):
        frame = pd.DataFrame(P, index=["s3", "s1", "s2", "s0"], columns=["z", "a", "m"])
        cube = cs.as_cube(frame, Y)
        assert cube["sample"].values.tolist() == ["s3", "s1", "s2", "s0"]
        assert cube["configuration"].values.tolist() == ["z", "a", "m"]
        np.testing.assert_array_equal(cube.values, P)

    def test_frame_with_many_column_levels(self):
        columns = pd.MultiIndex.from_tuples([("svm", 1), ("svm", 2), ("rf", 1)])
        cube = cs.as_cube(pd.DataFrame(P, columns=columns), Y)
        assert cube["configuration"].values.tolist() == ["('svm', 1)", "('svm', 2)", "('rf', 1)"]

    @pytest.mark.parametrize("dtype", ["str", "object", "category", "string", pd.StringDtype("python")])
    def test_frame_of_class_names_in_every_string_dtype(self, dtype):
        names = np.where(P > 0.5, "yes", "no")
        frame = pd.DataFrame({c: pd.Series(names[:, j]).astype(dtype) for j, c in enumerate("abc")})
        cube = cs.as_cube(frame, pd.Series(np.where(Y == 1, "yes", "no")).astype(dtype), positive="yes")
        np.testing.assert_array_equal(cube.values, P > 0.5)
        assert cube["kind"].item() == "label"
        assert json.loads(cube["classes"].item()) == ["no", "yes"]
        assert cube["label"].dtype.kind == "U"

    def test_frame_of_nullable_numbers(self):
        frame = pd.DataFrame(
            {"a": pd.array([0.5, None, 0.25, 0.0], "Float64"), "b": pd.array([1, 0, None, 1], "Int64")}
        )
        cube = cs.as_cube(frame, Y, kind="probability")
        np.testing.assert_array_equal(cube.values, [[0.5, 1], [np.nan, 0], [0.25, np.nan], [0, 1]])

    def test_frame_of_mixed_numbers(self):
        frame = pd.DataFrame({"a": [True, False, True, False], "b": [0, 1, 1, 0], "c": [0.5, 0.1, 0.2, 0.3]})
        cube = cs.as_cube(frame, Y)
        np.testing.assert_array_equal(cube.values, frame.to_numpy(float))

    def test_repeats(self):
        p = np.random.default_rng(0).random((4, 3, 2))
        cube = cs.as_cube(p, Y, repeats=["r1", "r2"])
        assert cube.dims == ("sample", "configuration", "repeat")
        assert cube["repeat"].values.tolist() == ["r1", "r2"]

    def test_class_probabilities(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2))
        cube = cs.as_cube(p, ["a", "b", "c", "a"], classes=["b", "a", "c"])
        assert cube.dims == ("sample", "configuration", "label_class")
        assert cube["label_class"].values.tolist() == ["b", "a", "c"]
        assert cube["kind"].item() == "probability"
        assert class_names(cube) == ["b", "a", "c"]

    def test_class_probabilities_of_one_configuration(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=4)
        cube = cs.as_cube(p, [0, 1, 2, 0], classes=[0, 1, 2])
        assert cube.dims == ("sample", "configuration", "label_class")
        assert cube.shape == (4, 1, 3)

    def test_two_class_columns_become_one(self):
        p = np.stack([1 - P, P], axis=-1)
        cube = cs.as_cube(p, ["n", "y", "n", "y"], classes=["n", "y"], positive="n")
        np.testing.assert_allclose(cube.values, 1 - P)
        assert cube["positive"].item() == "n"
        assert "label_class" not in cube.coords

    def test_repeats_and_classes(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2, 5))
        cube = cs.as_cube(p, [0, 1, 2, 0], classes=[0, 1, 2])
        assert cube.dims == ("sample", "configuration", "repeat", "label_class")

    def test_hard_labels_with_repeats_and_named_classes(self):
        p = np.random.default_rng(0).integers(0, 3, (4, 2, 5))
        cube = cs.as_cube(p, [0, 1, 2, 0], classes=[0, 1, 2], kind="label")
        assert cube.dims == ("sample", "configuration", "repeat")
        assert cs.as_cube(p, [0, 1, 2, 0], classes=[0, 1, 2]).dims == cube.dims

    @pytest.mark.parametrize("dims", [("configuration", "sample", "dataset"), ("dataset", "configuration", "sample")])
    def test_dataarray_in_any_dim_order(self, dims):
        p = np.random.default_rng(0).random((4, 3, 2))
        array = xr.DataArray(p, dims=("sample", "configuration", "dataset"))
        cube = cs.as_cube(array.transpose(*dims), Y)
        assert cube.dims == dims
        np.testing.assert_array_equal(cube.transpose("sample", "configuration", "dataset").values, p)
        xr.testing.assert_allclose(
            cs.auc(cube).transpose("configuration", "dataset"),
            cs.auc(cs.as_cube(array, Y)).transpose("configuration", "dataset"),
        )

    def test_dataarray_keeps_its_other_coordinates(self):
        array = xr.DataArray(
            P,
            dims=("sample", "configuration"),
            coords={
                "configuration": ["c", "a", "b"],
                "complexity": ("configuration", [3, 1, 2]),
                "site": ("sample", list("xyxy")),
                "study": "one",
            },
        )
        cube = cs.as_cube(array, Y)
        assert cube["complexity"].values.tolist() == [3, 1, 2]
        assert cube["site"].values.tolist() == list("xyxy")
        assert cube["study"].item() == "one"
        assert cube["configuration"].values.tolist() == ["c", "a", "b"]

    def test_dataarray_without_configuration(self):
        array = xr.DataArray(P, dims=("sample", "dataset"))
        cube = cs.as_cube(array, Y)
        assert cube.dims == ("sample", "configuration", "dataset")
        picked = cs.as_cube(P, Y, configurations=list("abc")).isel(configuration=1)
        assert cs.as_cube(picked)["configuration"].values.tolist() == ["b"]

    def test_a_cube_is_a_fixed_point(self):
        for cube in (
            cs.as_cube(P, Y, folds=[0, 0, 1, 1]),
            cs.as_cube(P > 0.5, Y == 1),
            cs.as_cube(np.array([["a"], ["b"], ["c"]]), ["a", "b", "c"]),
            cs.as_cube(np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2)), list("abca"), classes=list("abc")),
            cs.as_cube(P * 9, [1.5, 2.5, 3.5, 4.5]),
            cs.as_cube(P * 9, [1.5, 2.5, 3.5, 4.5], event=[1, 0, 1, 1], kind="score"),
        ):
            xr.testing.assert_identical(cs.as_cube(cube), cube)
            assert cs.check_cube(cube) is cube

    def test_stacked_samples_become_text(self):
        array = xr.DataArray(
            P.reshape(2, 2, 3), dims=("site", "person", "configuration"), coords={"site": ["x", "y"], "person": [1, 2]}
        )
        cube = cs.as_cube(array.stack(sample=("site", "person")), Y)  # noqa: PD013
        assert cube["sample"].values.tolist() == ["('x', 1)", "('x', 2)", "('y', 1)", "('y', 2)"]

    def test_inputs_are_not_changed(self):
        p, y, folds = P.copy(), Y.copy(), np.array([0, 0, 1, 1])
        array = xr.DataArray(p, dims=("sample", "configuration"), attrs={"note": "mine"})
        before = array.copy(deep=True)
        cs.as_cube(array, y, folds=folds, weights=[1, 2, 3, 4])
        xr.testing.assert_identical(array, before)
        np.testing.assert_array_equal(p, P)
        np.testing.assert_array_equal(y, Y)

    def test_half_precision_and_integers(self):
        assert cs.as_cube(P.astype(np.float16), Y).dtype == np.float32
        assert cs.as_cube(P.astype(np.float32), Y).dtype == np.float32
        assert cs.as_cube((P * 100).astype(int), Y).dtype == np.float64


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "positive"),
        [
            (Y, 1),
            (Y.astype(bool), True),
            (Y * 2 - 1, 1),
            (Y.astype(float), 1.0),
            (Y.astype(np.uint8), 1),
            (Y.tolist(), 1),
            (pd.Series(Y, dtype="Int64"), 1),
            (pd.Series(Y.astype(bool), dtype="boolean"), True),
            (pd.Categorical(Y), 1),
            (pd.Series(pd.Categorical(Y)), 1),
            (xr.DataArray(Y, dims="sample"), 1),
            ((Y * 2 - 1).astype(float), 1.0),
        ],
    )
    def test_plain_pairs_take_the_larger(self, labels, positive):
        cube = cs.as_cube(P, labels)
        assert cube["positive"].item() == positive
        assert type(cube["positive"].item()) is type(positive)
        np.testing.assert_allclose(cs.auc(cube), cs.auc(cs.as_cube(P, Y)))

    @pytest.mark.parametrize("labels", [["b", "a", "b", "a"], [2, 1, 2, 1], [2.5, 1.5, 2.5, 1.5]])
    def test_any_other_two_need_to_be_told(self, labels):
        first, second = sorted(set(labels))
        refused(
            f"`positive` must say which of the labels {first!r}, {second!r} is the positive class",
            P,
            labels,
            kind="probability",
        )
        cube = cs.as_cube(P, labels, positive=first, kind="probability")
        assert class_names(cube) == [second, first]
        np.testing.assert_allclose(cs.auc(cube), 1 - cs.auc(cs.as_cube(P, Y)))

    def test_numbers_hint_at_values(self):
        refused("If the labels are numbers to predict, give kind='value'.", P, [2, 1, 2, 1])

    def test_unknown_positive(self):
        refused("`positive`='c' is not among the labels 'a', 'b'.", P, list("abab"), positive="c")

    def test_another_length(self):
        refused("`labels` has shape (3,) but `predictions` has 4 samples; give one per sample.", P, Y[:3])
        refused("`labels` has shape (4, 1) but `predictions` has 4 samples", P, Y[:, None])

    def test_labels_are_needed(self):
        refused("`labels` are missing: give one per sample", P)

    def test_ids_are_matched_not_trusted(self):
        frame = pd.DataFrame(P, index=list("abcd"))
        order = [2, 0, 3, 1]
        shuffled = pd.Series(Y[order], np.array(list("abcd"))[order])
        cube = cs.as_cube(frame, shuffled)
        np.testing.assert_array_equal(cube["label"], Y)
        assert cube["sample"].values.tolist() == list("abcd")

    def test_ids_that_do_not_match_name_both_sides(self):
        frame = pd.DataFrame(P, index=list("abcd"))
        refused(
            "sample ids do not match: only in `labels`: 'x', 'y'; only in `predictions`: 'c', 'd'.",
            frame,
            pd.Series(Y, list("abxy")),
        )
        refused("only in `labels`: none; only in `predictions`: 'd'.", frame, pd.Series(Y[:3], list("abc")))
        refused(
            "sample ids do not match: only in `folds`: 9",
            frame.set_axis(range(4)),
            Y,
            folds=pd.Series([0, 1, 0, 1], [0, 1, 2, 9]),
        )

    def test_bare_predictions_take_the_ids_of_the_labels(self):
        labels = pd.Series(Y, [7, 3, 5, 1])  # as after a shuffle: the array is in the order of the labels
        cube = cs.as_cube(P, labels)
        assert cube["sample"].values.tolist() == [7, 3, 5, 1]
        np.testing.assert_array_equal(cube["label"], Y)

    def test_duplicate_ids(self):
        refused("sample names must be unique; found more than once: 'a'.", pd.DataFrame(P, index=list("abac")), Y)
        refused("sample names must be unique; found more than once: 3.", P, Y, samples=[1, 3, 3, 4])
        refused(
            "`labels` has duplicate sample ids: 'a'.", pd.DataFrame(P, index=list("abcd")), pd.Series(Y, list("abac"))
        )
        refused("configuration names must be unique; found more than once: 'x'.", P, Y, configurations=["x", "y", "x"])

    @pytest.mark.parametrize(
        "labels", [[1, np.nan, 1, 0], pd.Series([1, None, 1, 0], dtype="Int64"), [1.0, None, 1.0, 0.0]]
    )
    def test_missing_labels(self, labels):
        refused(
            "`labels` are missing for samples 1 that have predictions; every predicted sample needs a label.", P, labels
        )

    @pytest.mark.parametrize(
        "labels",
        [
            ["a", None, "b", "a"],
            pd.Series(["a", None, "b", "a"], dtype="str"),
            pd.Series(pd.Categorical(["a", None, "b", "a"])),
        ],
    )
    def test_missing_names(self, labels):
        refused("`labels` are missing for samples 1 that have predictions", P, labels, positive="a")

    def test_infinite_labels(self):
        refused("`labels` must be finite; found infinite values.", P * 9, [1.5, np.inf, 2.5, 3.5])

    def test_missing_label_where_nothing_was_predicted(self):
        p = P.copy()
        p[1] = np.nan
        cube = cs.as_cube(p, [1, np.nan, 1, 0])
        np.testing.assert_allclose(cs.accuracy(cube), cs.accuracy(cs.as_cube(P[[0, 2, 3]], Y[[0, 2, 3]])))

    def test_label_not_among_the_classes(self):
        p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2))
        refused("`labels` hold 'd', not among the classes 'a', 'b', 'c'.", p, list("abcd"), classes=list("abc"))
        refused(
            "`labels` hold 'd', not among the classes 'a', 'b', 'c'.",
            np.array([["a"], ["b"], ["c"], ["a"]]),
            list("abcd"),
            classes=list("abc"),
        )

    def test_prediction_not_among_the_classes(self):
        refused(
            "`predictions` hold 'c', not among the classes 'b', 'a'. Name every class",
            np.array([["a"], ["c"]]),
            ["a", "b"],
            positive="a",
        )
        refused("`predictions` hold 7, not among the classes 0, 1.", [[1], [7]], [1, 0], kind="label")

    def test_labels_of_one_class(self):
        cube = cs.as_cube([[1, 0], [0, 1]], [1, 1])
        np.testing.assert_array_equal(cs.accuracy(cube), [0.5, 0.5])
        assert class_names(cube) == [0, 1]
        assert cs.as_cube([[0.1], [0.2]], [0, 0])["positive"].item() == 1
        assert class_names(cs.as_cube([["n"], ["y"]], ["y", "y"], positive="y")) == ["n", "y"]

    def test_names_must_be_numbers_for_values(self):
        refused("`labels` must be numbers for kind='value'; found 'a', 'b'.", P, list("abab"), kind="value")


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
        refused("`kind` must be given with `event`", P, [5.0, 3.0, 2.0, 1.0], event=[1, 0, 1, 1], kind="probability")
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
            "repeat ids do not match: only in `folds`: 'b'; only in `predictions`: 'c'",
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
            "`labels` has 3 along 'dataset' but `predictions` has 2.",
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


class TestCheckCube:
    def bad(self, cube, text):
        with pytest.raises(cs.InputError, match=re.escape(text)):
            cs.check_cube(cube)

    def test_texts(self):
        cube = cs.as_cube(P, Y, folds=[0, 0, 1, 1], weights=[1, 1, 2, 2])
        self.bad(P, "`cube` must be an xarray.DataArray made by as_cube(); got ndarray.")
        self.bad(cube.rename(sample="row"), "`cube` has no dimension 'sample'; found 'row', 'configuration'.")
        self.bad(
            cube.drop_vars("label"), "`cube` has no coordinate 'label'. Make it with as_cube(predictions, labels)."
        )
        self.bad(cube.drop_vars("kind"), "`cube` has no coordinate 'kind'.")
        self.bad(cube.drop_vars("positive"), "`cube` of kind 'probability' has no coordinate 'positive'.")
        self.bad(cube.assign_coords(kind="label"), "`cube` of kind 'label' has no coordinate 'classes'.")
        self.bad(cube.isel(sample=[]), "`cube` is empty: sizes")
        self.bad(cube.assign_coords(kind="scores"), "`kind` must be one of")
        self.bad(cube.assign_coords(sample=[0, 0, 1, 2]), "sample names must be unique; found more than once: 0.")
        self.bad(cube.assign_coords(weight=cube["weight"] * np.nan), "`weights` must be finite and not negative.")
        self.bad(cube * 3, "`cube`: probabilities must lie in [0, 1]; found values from 0.3 to 2.7.")
        self.bad(cube.assign_coords(label=("sample", [1.0, np.nan, 0, 0])), "`labels` are missing for samples 1")
        self.bad(cube.assign_coords(label=1), "coordinate 'label' must have the dimension 'sample'")
        self.bad(cube.astype(object), "`cube` has dtype object; a cube holds floats.")
        self.bad(
            cube.expand_dims(dataset=2).assign_coords(kind=("dataset", ["score", "value"])),
            "coordinate 'kind' must be a single value, but has dims 'dataset'",
        )
        hard = cs.as_cube(P > 0.5, Y)
        self.bad(hard + 0.5, "class codes must be whole numbers from 0 to 1; found 0.5 to 1.5.")
        self.bad(hard + 1, "class codes must be whole numbers from 0 to 1; found 1 to 2.")

    def test_gaps_are_allowed(self):
        for cube in (cs.as_cube(P, Y), cs.as_cube(P > 0.5, Y)):
            cs.check_cube(cube.where(cube["sample"] > 0))
            cs.check_cube(cube * np.nan)


class TestDask:
    def lazy(self, values, dims=("sample", "configuration"), **chunks):
        return xr.DataArray(values, dims=dims).chunk(chunks or {"configuration": 1})

    def test_nothing_is_loaded(self):
        dask = pytest.importorskip("dask")
        import dask.array as da

        def explode(block):
            raise AssertionError("loaded")

        data = da.from_array(P, chunks=(4, 1)).map_blocks(explode, dtype=float, meta=np.empty((0, 0)))
        array = xr.DataArray(data, dims=("sample", "configuration"))
        for kind in ("probability", "score"):
            cube = cs.as_cube(array, Y, kind=kind, folds=[0, 0, 1, 1])
            assert is_lazy(cube)
            cs.check_cube(cube)
        assert is_lazy(cs.as_cube(data, Y, kind="label"))
        assert is_lazy(cs.as_cube(array, Y * 1.5, kind="value"))
        assert dask

    def test_kind_must_be_given(self):
        pytest.importorskip("dask")
        refused("`kind` must be given for dask-backed predictions", self.lazy(P), Y)

    def test_same_as_in_memory(self):
        pytest.importorskip("dask")
        names = np.where(P > 0.5, "yes", "no")
        labels = np.where(Y == 1, "yes", "no")
        lazy = cs.as_cube(self.lazy(names), labels, kind="label", positive="yes")
        xr.testing.assert_identical(lazy.compute(), cs.as_cube(names, labels, positive="yes"))

    def test_stray_values_are_found_when_read(self):
        pytest.importorskip("dask")
        lazy = cs.as_cube(self.lazy(np.array([["a"], ["x"]])), ["a", "b"], kind="label", positive="a")
        with pytest.raises(cs.InputError, match="`predictions` hold 'x', not among the classes"):
            lazy.compute()
        lazy = cs.as_cube(self.lazy(P * 2), Y, kind="probability")
        with pytest.raises(cs.InputError, match="probabilities must lie in"):
            cs.score(lazy, "brier")

    def test_missing_label_reads_only_its_rows(self):
        pytest.importorskip("dask")
        p = P.copy()
        p[1] = np.nan
        assert is_lazy(cs.as_cube(self.lazy(p), [1, np.nan, 1, 0], kind="probability"))
        refused("`labels` are missing for samples 1", self.lazy(P), [1, np.nan, 1, 0], kind="probability")


class TestFiles:
    CUBES = (
        lambda: cs.as_cube(
            P, Y, folds=[0, 0, 1, 1], weights=[1, 2, 3, 4], groups=list("abab"), configurations=["z", "ä", "m"]
        ),
        lambda: cs.as_cube(P * 9 - 4, Y == 1, threshold=0.25),
        lambda: cs.as_cube(P > 0.5, np.where(Y == 1, "yes", "no") == "yes"),
        lambda: cs.as_cube(
            np.where(P > 0.5, "yes", "no"), np.where(Y == 1, "yes", "no"), positive="yes", folds=list("xxyy")
        ),
        lambda: cs.as_cube(
            np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2)), list("abca"), classes=list("abc")
        ),
        lambda: cs.as_cube(P * 9, [1.5, 2.5, 3.5, 4.5], event=[1, 0, 1, 1], kind="value"),
        lambda: cs.as_cube(P * 9, [2.5, 1.5, 2.5, 1.5], kind="score", positive=1.5),
    )

    @pytest.mark.parametrize("make", CUBES)
    @pytest.mark.parametrize("store", ["netcdf", "zarr"])
    def test_plain_xarray_round_trip(self, make, store, tmp_path):
        cube = make()
        if store == "netcdf":
            pytest.importorskip("h5netcdf")
            cube.to_netcdf(tmp_path / "cube.nc", engine="h5netcdf")
            again = xr.load_dataarray(tmp_path / "cube.nc", engine="h5netcdf")
        else:
            pytest.importorskip("zarr")
            new = (
                "zarr_format" in inspect.signature(xr.Dataset.to_zarr).parameters
            )  # before 2024.10 there was one format
            cube.to_dataset().to_zarr(tmp_path / "cube.zarr", consolidated=True, **({"zarr_format": 2} if new else {}))
            again = xr.open_zarr(tmp_path / "cube.zarr", chunks=None)["prediction"].load()
        cs.check_cube(again)
        assert class_names(again) == class_names(cube)
        for name in cube.coords:
            np.testing.assert_array_equal(again[name].values, cube[name].values)
            assert again[name].dims == cube[name].dims
        np.testing.assert_array_equal(again.values, cube.values)
        xr.testing.assert_equal(cs.as_cube(again), again)
