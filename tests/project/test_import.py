"""Importing cvstats stays light, and every public name can be had."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvstats as cs

HEAVY = (
    "scipy.stats",
    "statsmodels",
    "matplotlib",
    "dask",
    "numba",
    "sklearn",
    "h5netcdf",
    "h5py",
    "pyarrow",
    "jinja2",
)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def loaded_after(code):
    listing = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    return set(run(listing).split())


def test_import_is_light():
    found = loaded_after("import cvstats")
    assert not found & set(HEAVY)


def test_star_import_names_are_real():
    for name in cs.__all__:
        assert getattr(cs, name) is not None, name
    assert set(cs.__all__) <= set(dir(cs))


def test_making_and_scoring_a_cube_is_light():
    code = "import cvstats as cs\nc = cs.as_cube([[0.9], [0.2], [0.7]], [1, 0, 1])\ncs.auc(c), cs.accuracy(c)"
    assert not loaded_after(code) & {"statsmodels", "matplotlib", "sklearn", "scipy.stats"}  # xarray itself loads dask


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'cvstats' has no attribute 'no_such_name'"):
        cs.no_such_name  # noqa: B018


def test_version():
    from importlib.metadata import PackageNotFoundError, version

    assert cs.__version__.count(".") == 2
    try:
        assert version("cvstats") == cs.__version__
    except PackageNotFoundError:
        pytest.skip("cvstats is not installed")


def test_typed():
    from pathlib import Path

    assert (Path(cs.__file__).parent / "py.typed").exists()


def test_help_names_what_exists_and_completion_shows_nothing_else():
    listed = set(re.findall(r"[a-z]\w*_\w*\*?|\*_test", cs.__doc__.split("The dozen")[1]))
    assert len(listed) > 30
    assert [name for name in listed if not fnmatch.filter(cs.__all__, name)] == []
    assert set(dir(cs)) == set(cs.__all__)


def test_versions_agree():
    root = Path(__file__).parents[2]
    if not (root / "docs").exists():
        pytest.skip("not part of an installed package")
    assert re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)[1] == cs.__version__
    assert f"\n## {cs.__version__}\n" in (root / "CHANGELOG.md").read_text("utf-8")
