"""Making a cube: every accepted form of predictions and labels, and the text of every refusal."""

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

    def test_many_levels_of_samples_are_matched(self):
        index = pd.MultiIndex.from_product([["p", "q"], [1, 2]])
        cube = cs.as_cube(pd.DataFrame(P, index=index), pd.Series(Y, index=index)[::-1])
        assert cube["sample"].values.tolist() == ["('p', 1)", "('p', 2)", "('q', 1)", "('q', 2)"]
        np.testing.assert_array_equal(cube["label"], Y)

    @pytest.mark.parametrize("call", [cs.check_cube, cs.describe_cube, lambda c: cs.bbc(c, "auc"), cs.report_text])
    @pytest.mark.parametrize("dim", ["configuration", "sample"])
    def test_a_multi_index_is_one_clear_error(self, dim, call):
        cube = cs.as_cube(P, Y)
        levels = pd.MultiIndex.from_arrays([range(cube.sizes[dim]), [1] * cube.sizes[dim]], names=["a", "b"])
        cube = cube.assign_coords(xr.Coordinates.from_pandas_multiindex(levels, dim))
        with pytest.raises(cs.InputError, match=rf"the {dim} names are a MultiIndex of 'a', 'b'; .* as_cube\(cube\)"):
            call(cube)
        assert cs.as_cube(cube)[dim].values.tolist()[0] == "(0, 1)"

    def test_nullable_whole_numbers_without_gaps_are_whole(self):
        cube = cs.as_cube(P, Y, folds=pd.array([0, 1, 0, 1], "Int64"), groups=pd.array([7, 7, 8, 8], "UInt8"))
        assert (cube["fold"].dtype, cube["fold"].values.tolist()) == (np.dtype(int), [0, 1, 0, 1])
        assert cube["group"].values.tolist() == [7, 7, 8, 8]

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
            "`labels` does not match `predictions` along 'sample': only in `predictions`: 'c', 'd'; "
            "only in `labels`: 'x', 'y'.",
            frame,
            pd.Series(Y, list("abxy")),
        )
        refused("only in `predictions`: 'd'; only in `labels`: none.", frame, pd.Series(Y[:3], list("abc")))
        refused(
            "`folds` does not match `predictions` along 'sample': only in `predictions`: 3; only in `folds`: 9.",
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
