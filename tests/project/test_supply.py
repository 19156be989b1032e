"""What is shipped and what it rests on: wheel, sdist, versions, and a reason for every dependency."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "pyproject.toml"
pytestmark = pytest.mark.skipif(not PYPROJECT.is_file(), reason="needs the source tree")

WHEEL = [
    r"cvstats/([a-z_]+/){0,2}[a-z_0-9]+\.py",
    r"cvstats/__init__\.pyi",
    r"cvstats/py\.typed",
    r"cvstats/data/\w+\.npz",
    r"cvstats/data/(report|variables)\.json",
    r"cvstats/templates/report\.(html|css|js)",
    r"cvstats-[\d.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE)",
]
SDIST = [
    *WHEEL[:-1],
    r"tests/([a-z]+/)?(\w+/){0,2}\w+\.(py|R|sh|json|md|csv|txt|arff|npz|npy)",
    r"(README|CHANGELOG|CONTRIBUTING)\.md|CITATION\.cff|LICENSE|pyproject\.toml|PKG-INFO|\.gitignore",
]
JUNK = ("cvstats/__pycache__/cube.cpython-311.pyc", "tests/.hypothesis/x", "cvstats/.mypy_cache/x", "report.html")


def requirements(*, groups=()):
    """Return {name: specifier} of the package's requirements, and of the named groups."""
    text = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    lists = [text["project"]["dependencies"], *text["project"]["optional-dependencies"].values()]
    lists += [text["dependency-groups"][name] for name in groups]
    entries = [entry for each in lists for entry in each if isinstance(entry, str) and not entry.startswith("cvstats[")]
    parts = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?(.*)", entry).groups() for entry in entries]
    return {name.lower(): rest for name, rest in parts}


def release(text):
    """Return a version as numbers without zeros at the end."""
    return re.sub(r"(\.0)+$", "", text)


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="not in the sdist")
def test_lowest_versions_are_the_lower_bounds():
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    bounds = requirements(groups=["test"])
    assert all(re.fullmatch(r">=[\d.]+", bound) for bound in bounds.values()), bounds
    assert {k: release(v) for k, v in pinned.items()} == {k: release(v[2:]) for k, v in bounds.items()}


@pytest.mark.skipif(not (ROOT / "CONTRIBUTING.md").is_file(), reason="not in the sdist")
def test_every_dependency_has_a_reason():
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Dependencies")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, flags=re.MULTILINE)[1:]
    named = {name for packages, reason in rows if len(reason) > 10 for name in re.findall(r"[\w-]+", packages)}
    wanted = requirements(groups=["test", "lint", "docs"])
    assert set(wanted) <= named, set(wanted) - named
    assert named <= set(wanted), named - set(wanted)


def build(tree, out, **environment):
    """Build wheel and sdist of a tree without a network, and return them."""
    code = "import sys; from hatchling.build import build_sdist as s, build_wheel as w; w(sys.argv[1]); s(sys.argv[1])"
    out.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"} | environment
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=tree, env=environment, check=True, capture_output=True)
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Copy the source tree twice, to other places, times and permissions, one of them with junk inside."""
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", ".coverage*", "__pycache__", ".*_cache", ".hypothesis", "_build", "build", "dist"
    )
    made = []
    for name in ("one", "another, with junk"):
        tree = tmp_path_factory.mktemp("trees") / name
        shutil.copytree(ROOT, tree, ignore=ignored)
        made.append(tree)
    for path in made[1].rglob("*.py"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o600)
    for name in JUNK:
        (made[1] / name).parent.mkdir(exist_ok=True)
        (made[1] / name).write_text("junk", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def built(trees, tmp_path_factory):
    return build(trees[0], tmp_path_factory.mktemp("built") / "dist", TZ="UTC")


def listing(path):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return [member.name.split("/", 1)[1] for member in sdist.getmembers()]


def on_disk(folder, tree):
    return {path.relative_to(tree).as_posix() for path in (tree / folder).rglob("*") if path.is_file()}


def test_wheel_has_what_it_should_and_nothing_else(built, trees):
    names = listing(next(path for path in built if path.suffix == ".whl"))
    assert [name for name in names if not any(re.fullmatch(each, name) for each in WHEEL)] == []
    assert on_disk("cvstats", trees[0]) == {n for n in names if n.startswith("cvstats/")}
    assert sum("dist-info" in name for name in names) == 5


def test_sdist_has_what_it_should_and_nothing_else(built, trees):
    names = listing(next(path for path in built if path.suffix == ".gz"))
    assert [name for name in names if not any(re.fullmatch(each, name) for each in SDIST)] == []
    assert on_disk("cvstats", trees[0]) | on_disk("tests", trees[0]) <= set(names)
    assert {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "pyproject.toml"} <= set(names)


def test_builds_are_the_same_bytes_anywhere_and_any_time(built, trees, tmp_path):
    again = build(trees[1], tmp_path / "dist", TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    digests = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths} for paths in (built, again)]
    assert digests[0] == digests[1]
