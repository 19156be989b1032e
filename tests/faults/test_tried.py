"""What was tried as an attacker or an unlucky user would, where no other test of a reader or writer has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats import cli

LEAK = """
text.usetex: True
font.size: 17
font.family: monospace
axes.prop_cycle: cycler('color', ['r', 'g'])
axes.grid: True
axes.facecolor: yellow
axes.formatter.use_locale: True
axes.unicode_minus: False
figure.dpi: 33
lines.linewidth: 9
path.simplify: False
savefig.bbox: tight
savefig.transparent: True
svg.fonttype: path
"""


def test_a_report_has_the_same_bytes_under_any_matplotlibrc(tmp_path: Path) -> None:
    """TeX is not even installed where this runs, so that a figure drawn by it would fail."""
    pytest.importorskip("jinja2")
    (tmp_path / "matplotlibrc").write_text(LEAK)
    call = [sys.executable, "-W", "error::UserWarning", "-m", "cvstats", "report", "--example", "iris"]
    call += ["--draws", "40", "-o", "r.html"]
    pages = []
    for number, leak in enumerate([None, str(tmp_path / "matplotlibrc")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = {**os.environ, **({"MATPLOTLIBRC": leak} if leak else {})}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        subprocess.run(call, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
        pages.append((folder / "r.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_zarr_store_runs_no_code(tmp_path: Path) -> None:
    """A compressor of pickle in a linked folder: the store is not opened at all."""
    away = tmp_path / "away"
    away.mkdir()
    mark = tmp_path / "ran"
    code = f"cos\nsystem\n(S'touch {mark}'\ntR."
    array = {"zarr_format": 2, "shape": [2, 1], "chunks": [2, 1], "dtype": "<f8", "compressor": {"id": "pickle"}}
    array |= {"fill_value": 0.0, "order": "C", "filters": None}
    (away / ".zarray").write_text(json.dumps(array))
    (away / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["sample", "configuration"]}))
    (away / "0.0").write_text(code)
    store = tmp_path / "x.zarr"
    store.mkdir()
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / "prediction").symlink_to(away, target_is_directory=True)
    for read in (cs.read_cube, cs.read_predictions):
        with pytest.raises(cs.InputError, match=r"xarray\.open_zarr"):
            read(store)
    assert cli.main(["describe", str(store)]) == cli.BAD_INPUT
    assert not mark.exists()


def test_the_hash_of_a_cube_sees_what_changed_and_nothing_else() -> None:
    da = pytest.importorskip("dask.array")
    values = np.random.default_rng(1).random((20, 6))
    cube = cs.as_cube(values, np.arange(20) % 2)

    def found(one: xr.DataArray) -> str:
        return str(cs.cvt(one, "auc").attrs["cube_hash"])

    assert len(found(cube)) == 64
    for step in (2, 3):
        assert found(cube.chunk(configuration=step)) in (found(cube), "not computed"), "chunks change nothing"
    lazy = cube.copy(data=da.from_array(values, chunks=(20, 2), name="fixed"))
    before = found(lazy)
    values[3, 2] /= 2
    assert found(lazy) != before or before == "not computed", "predictions behind dask have changed"
