"""The architecture, from the source alone: data flow one way, no cycles, and who may know which library."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import cvstats

ROOT = Path(cvstats.__file__).parent
FLOW = """_check _results kernels cube formats read folds metrics resample select adjust judge intervals protocols
curves compare plan describe simulate tables plot report sklearn cli""".split()  # noqa: SIM905 - as one reads it
FILES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


@functools.cache
def nodes(module):
    return list(ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))))


@functools.cache
def imported(module):
    """Return what a module imports, inside functions too, but not what only type checkers see."""
    package = FILES[module].name == "__init__.py"
    typing = [n for n in nodes(module) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    unseen = {id(node) for branch in typing for part in branch.body for node in ast.walk(part)}
    names = set()
    for node in nodes(module):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".") if package else module.split(".")[:-1]
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            full = ".".join([*parts, *([node.module] if node.module else [])])
            names |= {f"{full}.{a.name}" if f"{full}.{a.name}" in FILES else full for a in node.names}
    return names


def room(module):
    return [*module.split("."), "__init__"][1]


def users(library):
    return sorted(module for module in FILES if any(n.split(".")[0] == library for n in imported(module)))


def test_every_room_has_its_place_in_the_flow():
    assert {room(module) for module in FILES} - {"__init__", "__main__"} <= set(FLOW)


def test_imports_follow_the_data():
    order = {name: place for place, name in enumerate(FLOW)}
    back = [
        f"{module} -> {target}"
        for module in FILES
        for target in imported(module)
        if target in FILES and room(module) in order and order[room(module)] < order.get(room(target), -1)
    ]
    assert back == []


def test_no_import_cycles():
    waiting = {m: {t for t in imported(m) if t in FILES and t not in (m, "cvstats")} for m in FILES}
    waiting.pop("cvstats")
    while True:  # what imports nothing that is left, or is imported by nothing that is left, is in no cycle
        wanted = set().union(*waiting.values())
        free = [module for module, needs in waiting.items() if module not in wanted or not needs & waiting.keys()]
        if not free:
            break
        for module in free:
            del waiting[module]
    assert sorted(waiting) == []


def test_kernels_see_no_labels():
    assert [module for module in users("xarray") + users("pandas") if room(module) == "kernels"] == []


@pytest.mark.parametrize(
    ("library", "place"),
    [
        ("dask", "cvstats.cube.blocks"),
        ("distributed", "cvstats.cube.blocks"),
        ("numba", "cvstats.kernels.compiled"),
        ("sklearn", "cvstats.sklearn"),
    ],
)
def test_a_library_is_known_in_one_place(library, place):
    assert [module for module in users(library) if not module.startswith(place)] == []


def test_few_private_modules_in_the_root():
    private = [path.name for path in ROOT.glob("_*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert sorted(private) == ["_check.py", "_results.py"]


def test_inner_functions_take_few_arguments():
    wide = [
        f"{module}.{node.name}"
        for module in FILES
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef)
        and len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > 8
        and (node.name.startswith("_") or "Parameters" not in (ast.get_docstring(node) or ""))
    ]
    assert wide == []


def test_names_say_what_is_inside():
    empty = {"here", "told", "tell", "machine"}
    named = {
        f"{module}.{name}"
        for module in FILES
        for node in nodes(module)
        for name in [getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "name", None)]
        if name in empty
    }
    assert named == set()


def test_no_two_classes_of_one_name():
    names = [node.name.strip("_") for module in FILES for node in nodes(module) if isinstance(node, ast.ClassDef)]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
