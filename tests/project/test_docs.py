"""The documentation: every public name is there, docstrings are complete, links lead somewhere."""

import ast
import doctest
import inspect
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import cvstats as cs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = [name for name in cs.__all__ if name != "__version__"]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(cs, name))]
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
VIGNETTES = sorted((ROOT / "vignettes").glob("*.py"))
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not part of an installed package")

# Readers, containers, tables and figures estimate nothing, so there is no paper to cite; nothing else may join them.
WITHOUT_PAPER = {
    "InputError", "CvstatsWarning", "Metric",
    "read_predictions", "load_report", "read_cube", "write_cube", "compact_cube", "as_cube", "check_cube", "train_test",
    "as_metric", "augment", "bind", "confint", "format_table", "plot_bias", "plot_calibration", "plot_configurations",
    "plot_coverage", "plot_decision", "plot_dropping", "plot_intervals", "plot_optimism", "plot_precision_recall",
    "plot_prior", "plot_roc", "plot_scores_by", "plot_win_rates", "read_scores", "report_html", "score", "summary",
    "tidy",
}  # fmt: skip
# numpydoc's checks that contradict our conventions
IGNORED = {
    "GL01": "the text begins beside the quotes (only numpydoc before 1.11 objects)",
    "ES01": "a summary line that says it all needs no second paragraph",
    "SA01": "related functions are linked where they are mentioned, not listed again",
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


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_an_example_that_runs(name):
    examples = sections(inspect.getdoc(getattr(cs, name))).get("Examples", "")
    assert ">>>" in examples
    assert "SKIP" not in examples


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("InputError", "CvstatsWarning")])
def test_docstring_documents_every_parameter_with_type_and_text(name):
    parse = pytest.importorskip("numpydoc.docscrape").NumpyDocString
    found = getattr(cs, name)
    listed = {}
    for parameter in parse(inspect.getdoc(found))["Parameters"]:
        listed |= {part.strip().lstrip("*"): parameter for part in parameter.name.split(",")}
    assert list(listed) == [n for n in inspect.signature(found).parameters if n != "self"]
    assert [n for n, p in listed.items() if not p.type or not "".join(p.desc).strip()] == []


@pytest.mark.parametrize("name", [*FUNCTIONS, *(n for n in NAMES if is_metric(n))])
def test_docstring_says_what_comes_back(name):
    parse = pytest.importorskip("numpydoc.docscrape").NumpyDocString
    found = getattr(cs, name)
    if inspect.signature(found).return_annotation in (None, "None"):
        return
    returned = parse(inspect.getdoc(found))["Returns"]
    assert returned
    assert all("".join(value.desc).strip() for value in returned)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in WITHOUT_PAPER])
def test_docstring_cites_a_paper_that_can_be_found(name):
    references = sections(inspect.getdoc(getattr(cs, name))).get("References", "")
    assert re.search(r"doi:10\.\d{4,}/\S+|https://(doi\.org|www\.jmlr\.org|www\.jstor\.org)/\S+", references)


def test_utilities_without_a_paper_exist():
    assert set(NAMES) >= WITHOUT_PAPER


@pytest.mark.parametrize("name", NAMES)
def test_docstring_passes_numpydoc_validation(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    assert [error for error in validate(f"cvstats.{name}")["errors"] if error[0] not in IGNORED] == []


def links(text):
    """Return the targets of Markdown links and images, without web addresses; code is left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [target for target in re.findall(r"\]\(\s*([^)\s]+)\s*\)", text) if not re.match(r"\w+:", target)]


def prose(path):
    """Return the Markdown of a page or of a vignette."""
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".md" else "\n".join(line.removeprefix("#").strip() for line in text.splitlines())


def anchors(path):
    """Return the anchors of headings, as code hosts and the site make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", [*PAGES, *VIGNETTES], ids=lambda path: path.name)
def test_links_resolve_in_the_repository(path):
    """Each leads to a file that is there, so it holds on a code host; that the site's hold, its build says."""
    wrong = []
    for target in links(prose(path)):
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        if not page.exists() or (anchor and anchor not in anchors(page)):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_pages_name_functions_that_exist(page):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"\bcs\.(\w+)", text)) <= set(NAMES)
    assert "{py:" not in text, "names are plain code, which reads well on a code host; the site links them by itself"


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


@pytest.mark.slow
def test_five_lines_from_scikit_learn_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier

    code, _ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    x, y = (part[50:] for part in load_iris(return_X_y=True))
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    grid = {"n_neighbors": [1, 5]}
    names = {"cs": cs, "X": x, "y": y, "cv": cv, "grid": grid, "model": KNeighborsClassifier()}
    monkeypatch.chdir(tmp_path)
    exec(code, names | {"GridSearchCV": GridSearchCV})
    assert "n_neighbors=5" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_ten_lines_of_the_readme_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code.strip().splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_table_of_the_readme_is_read(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = re.search(r"```\n(sample,.*?)```", text, flags=re.DOTALL).group(1)
    (tmp_path / "predictions.csv").write_text(table + "P002,svm C=10,1,well,0.2\n", encoding="utf-8")
    cube = cs.read_predictions(tmp_path / "predictions.csv", positive="ill")
    assert cube.sizes == {"sample": 2, "configuration": 2}
    assert cs.score(cube, "auc").values.tolist() == [1.0, 1.0]


def test_architecture_has_a_line_for_every_room_and_knows_where_objects_live():
    package = Path(cs.__file__).parent
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table, objects = (
        re.search(rf"^## {title}\n(.*?)^## ", text, flags=re.M | re.S)[1] for title in ("Rooms", "Seven.*?")
    )
    named = [room.rstrip("/") for row in cells(table) for room in re.findall(r"`(\w+(?:/|\.py))`", row[0])]
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {path.name for path in package.glob("*.py")}
    assert set(named) == rooms - {"__init__.py", "__main__.py"}
    homes = {row[0].strip("`"): row[1].strip("`") for row in cells(objects)[2:]}
    assert len(homes) == 7
    for name, home in homes.items():
        assert re.search(rf"^(class|def) {name}\b", (package / home).read_text(encoding="utf-8"), flags=re.M), name


LIFE = DOCS / "life_of_a_call.md"


def run_examples(page):
    """Run the examples of a page, one after the other, and return the names that they leave."""
    names = {}
    for code in re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        example = doctest.DocTestParser().get_doctest(code, names, page.name, page.name, 0)
        said = []
        doctest.DocTestRunner().run(example, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        names = example.globs
    return names


def test_life_of_a_call_passes_through_what_its_page_names():
    where = ROOT / "benchmarks" / "trace.py"
    if not where.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    spec = spec_from_file_location("trace_of_a_call", where)
    trace = module_from_spec(spec)
    spec.loader.exec_module(trace)
    cube = run_examples(LIFE)["cube"]
    passed = trace.passed(lambda: cs.bbc(cube, "accuracy", rng=1))
    text = LIFE.read_text(encoding="utf-8")
    hops = [
        (file, name)
        for file, names in re.findall(r"^- `(\S+\.py)` ((?:`[\w.]+`(?:, )?)+):", text, flags=re.MULTILINE)
        for name in re.findall(r"`([\w.]+)`", names)
    ]
    assert len(hops) > 20
    assert [hop for hop in hops if hop not in passed] == [], "no longer part of the call"
    assert hops == sorted(hops, key=passed.index), "the order of the page is not that of the call"
    assert {file for file, _ in passed} - set(re.findall(r"`(\S+\.py)`", text)) == set(), "not on the page"


def cells(text):
    """Return the rows of Markdown tables as lists of cells."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_caveats_repeat_what_the_coverage_study_found():
    text = (DOCS / "coverage.md").read_text(encoding="utf-8")
    validation = text.split("<!-- strange validation -->")[1].split("<!-- end -->")[0]
    study = {row[0]: row[2] for row in cells(validation)}
    names = {
        "accuracy": "accuracy",
        "balanced accuracy": "balanced_accuracy",
        "F1": "f1",
        "MCC": "mcc",
        "AUC": "auc",
        "MSE": "mse",
        "mean absolute error": "mae",
        "Brier score": "brier",
        "log loss": "log_loss",
    }
    stated = {
        names[row[0]]: f"0{row[1]} / 0{row[2]}"
        for row in cells((DOCS / "caveats.md").read_text(encoding="utf-8"))
        if row[0] in names and len(row) == 3
    }
    assert stated == {name: study[name] for name in names.values()}
