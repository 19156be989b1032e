"""The documentation: every public name is there, docstrings are complete, links lead somewhere."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import cvstats as cs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NAMES = [name for name in cs.__all__ if name != "__version__"]
CALLABLE = [name for name in NAMES if name not in ("CvstatsWarning", "InputError", "Metric")]
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
VIGNETTES = sorted((ROOT / "vignettes").glob("*.py"))
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not part of an installed package")

# One-liners whose summary and example say it all; nothing new may join them.
BRIEF = {
    "bca",
    "check_cube",
    "cvt",
    "example_cube",
    "jackknife",
    "load_report",
    "nested_folds",
    "prior_error",
    "read_cube",
    "report_text",
    "select_best",
    "select_one_se",
    "select_within",
    "separate_folds",
    "subsample",
    "tt",
    "as_metric",
}


def sections(docstring):
    """Return the numpydoc sections of a docstring by name; the summary is under the empty name."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", docstring, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def is_metric(name):
    return isinstance(getattr(cs, name), cs.Metric)


def reference():
    """Return the names that the reference lists."""
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    blocks = re.findall(r":nosignatures:\n\n((?: {3}\w+\n)+)", text + "\n")
    return [line.strip() for block in blocks for line in block.splitlines()]


def test_reference_lists_every_public_name_once():
    assert sorted(reference()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_begins_with_a_sentence(name):
    first = (inspect.getdoc(getattr(cs, name)) or "").split("\n\n")[0]
    assert re.match(r"[A-Z].*[.:]$", first, flags=re.DOTALL), first


@pytest.mark.parametrize("name", CALLABLE)
def test_docstring_has_an_example(name):
    assert ">>>" in sections(inspect.getdoc(getattr(cs, name))).get("Examples", "")


@pytest.mark.parametrize("name", [n for n in CALLABLE if not is_metric(n) and n not in BRIEF])
def test_docstring_documents_every_parameter(name):
    found = getattr(cs, name)
    wanted = [n for n in inspect.signature(found).parameters if n != "self"]
    text = sections(inspect.getdoc(found)).get("Parameters", "")
    heads = re.findall(r"^(\S.*?)(?: : .*)?$", text, flags=re.MULTILINE)
    listed = {part.strip().lstrip("*") for head in heads for part in head.split(",")}
    assert set(wanted) <= listed, set(wanted) - listed


@pytest.mark.parametrize("name", [n for n in CALLABLE if inspect.isfunction(getattr(cs, n)) and n not in BRIEF])
def test_docstring_says_what_comes_back(name):
    found = getattr(cs, name)
    if inspect.signature(found).return_annotation not in (None, "None"):
        assert "Returns" in sections(inspect.getdoc(found))


def test_docstrings_pass_numpydoc_validation():
    validate = pytest.importorskip("numpydoc.validate").validate
    # not asked for: extended summary, See Also, types (they are annotations), punctuation of parameter texts
    ignored = {"ES01", "SA01", "PR01", "PR03", "PR04", "PR07", "PR08", "PR09", "RT01", "RT03", "EX01"}
    errors = []
    for name in CALLABLE:
        if not is_metric(name):
            errors += [(name, *error) for error in validate(f"cvstats.{name}")["errors"] if error[0] not in ignored]
    assert errors == []


def links(text):
    """Return the targets of Markdown links and images, without anchors and web addresses; code is left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    found = re.findall(r"\]\(\s*([^)\s]+)\s*\)", text)
    return [target.split("#")[0] for target in found if not re.match(r"\w+:", target) and not target.startswith("#")]


def exists(target, folder):
    """Say whether a link leads to a file or a page (pages are linked without extension)."""
    places = [folder / target]
    if folder == DOCS:
        places.append(ROOT / target)  # vignettes are copied into the site
    if folder == ROOT / "vignettes":
        places.append(DOCS / "vignettes" / target)
    return any(Path(f"{place}{end}").resolve().exists() for place in places for end in ("", ".md", ".py", ".rst"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages_resolve(page):
    text = page.read_text(encoding="utf-8")
    assert [target for target in links(text) if not exists(target, page.parent)] == []


@pytest.mark.parametrize("path", VIGNETTES, ids=lambda path: path.stem)
def test_links_of_vignettes_resolve(path):
    text = "\n".join(line.removeprefix("#").strip() for line in path.read_text(encoding="utf-8").splitlines())
    wrong = []
    for target in links(text):
        page = (DOCS / "vignettes" / target).resolve()
        known = page.parent == DOCS / "vignettes" and (ROOT / "vignettes" / f"{page.name}.py").exists()
        if not known and not (page.parent == DOCS and any(DOCS.glob(f"{page.stem}.*"))):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_pages_name_functions_that_exist(page):
    text = page.read_text(encoding="utf-8")
    roles = re.findall(r"\{py:obj\}`~?cvstats\.(\w+)`", text)
    calls = re.findall(r"\bcs\.(\w+)", text)
    assert set(roles + calls) <= set(NAMES)


def test_every_page_and_vignette_is_in_a_table_of_contents():
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    trees = "\n".join(re.findall(r"```\{toctree\}(.*?)```", text, flags=re.DOTALL)).split()
    assert {f"vignettes/{path.stem}" for path in VIGNETTES} <= set(trees)
    assert {path.stem for path in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")]} - {"index"} <= set(trees)


@pytest.mark.parametrize("path", VIGNETTES, ids=lambda path: path.stem)
def test_vignettes_are_percent_scripts_that_use_public_names(path):
    text = path.read_text(encoding="utf-8")
    assert "# %% [markdown]\n# # " in text, "a title"
    used = {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cs"
    }
    assert used <= set(cs.__all__), used - set(cs.__all__)


@pytest.mark.parametrize("path", VIGNETTES, ids=lambda path: path.stem)
def test_figures_of_vignettes_have_captions(path):
    text = path.read_text(encoding="utf-8")
    drawn = len(re.findall(r"plt\.(?:subplots|figure)\(", text))
    captions = len(re.findall(r"^# \*Figure \d+[. ]", text, flags=re.MULTILINE))
    assert captions >= drawn
