"""The cube afterwards: what check_cube refuses, cubes on dask, and cubes in files."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.cube.arrays import class_names
from shared import P, Y, refusal

refused = refusal(cs.as_cube)


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
            assert cube.chunks is not None
            cs.check_cube(cube)
        assert cs.as_cube(data, Y, kind="label").chunks is not None
        assert cs.as_cube(array, Y * 1.5, kind="value").chunks is not None
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
        assert cs.as_cube(self.lazy(p), [1, np.nan, 1, 0], kind="probability").chunks is not None
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


@pytest.mark.parametrize("name", ["sample", "configuration", "label", "kind", "label_class"])
def test_every_coordinate_that_names_something_is_needed(name):
    cube = cs.as_cube(np.full((4, 2, 3), 1 / 3), [0, 1, 2, 0], classes=range(3))
    with pytest.raises(cs.InputError, match=f"has no coordinate '{name}'"):
        cs.check_cube(cube.drop_vars(name))


@pytest.mark.parametrize("threshold", [np.nan, np.inf, 1.5])
def test_a_threshold_that_cuts_nothing_is_refused(threshold):
    cube = cs.as_cube(P, Y).assign_coords(threshold=threshold)
    with pytest.raises(cs.InputError, match="`threshold`"):
        cs.score(cube, "accuracy")
