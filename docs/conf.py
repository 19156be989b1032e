"""Sphinx configuration: ``sphinx-build -W docs docs/_build/html``.

Vignettes are copied in from ``vignettes/`` and executed while building; CVSTATS_DOCS_EXECUTE=0 leaves that out.
"""

import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import numpydoc.xref
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

import cvstats  # noqa: E402

project = "cvstats"
author = "The cvstats developers"
copyright = "the cvstats developers, BSD-3-Clause"
version = release = cvstats.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.intersphinx", "numpydoc", "myst_nb"]
exclude_patterns = ["_build", "jupyter_execute", "conf.py", "figures", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]
default_role = "py:obj"

# reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Types in docstrings link to other people's documentation. What is linked stands here, so building needs no network.
ELSEWHERE = {
    "https://docs.python.org/3/library/": {"pathlib.Path": "pathlib.html#pathlib.Path"},
    "https://numpy.org/doc/stable/reference/": {
        "numpy.ndarray": "generated/numpy.ndarray.html", "numpy.random.Generator": "random/generator.html",
    },
    "https://pandas.pydata.org/docs/reference/api/": {"pandas.DataFrame": "pandas.DataFrame.html"},
    "https://docs.xarray.dev/en/stable/generated/": {
        "xarray.DataArray": "xarray.DataArray.html", "xarray.Dataset": "xarray.Dataset.html",
    },
    "https://matplotlib.org/stable/api/": {
        "matplotlib.axes.Axes": "_as_gen/matplotlib.axes.Axes.html", "matplotlib.figure.Figure": "figure_api.html",
    },
}  # fmt: skip
INVENTORIES = HERE / "_build" / "inventories"
INVENTORIES.mkdir(parents=True, exist_ok=True)
intersphinx_mapping = {}
for site, pages in ELSEWHERE.items():
    file = INVENTORIES / f"{site.split('/')[2]}.inv"
    lines = "".join(f"{name} py:class 1 {page} -\n" for name, page in pages.items())
    head = f"# Sphinx inventory version 2\n# Project: {site}\n# Version: 0\n# compressed using zlib\n"
    file.write_bytes(head.encode() + zlib.compress(lines.encode()))
    intersphinx_mapping[file.stem] = (site, str(file))
numpydoc.xref.DEFAULT_LINKS.clear()  # bool, sequence ... need no explanation
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "DataArray": "xarray.DataArray",
    "Dataset": "xarray.Dataset",
    "DataFrame": "pandas.DataFrame",
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "Path": "pathlib.Path",
    "Axes": "matplotlib.axes.Axes",
    "Figure": "matplotlib.figure.Figure",
    "Metric": "cvstats.Metric",
}

# vignettes
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "off" if os.environ.get("CVSTATS_DOCS_EXECUTE") == "0" else "cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# pages
html_theme = "furo"
html_title = f"cvstats {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "native"


REPRESENTATION = re.compile(r"^(<Axes|<matplotlib|\[<matplotlib|array\(\[+<Axes|Text\(|<Figure size)")


class Captions(SphinxPostTransform):
    """Give figures of vignettes their caption, the paragraph below, as alternative text; drop matplotlib's names."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Walk through images and captions in the order of the page."""
        for block in list(self.document.findall(nodes.literal_block)):
            if REPRESENTATION.match(block.astext()) and "output" in block.get("classes", []):
                block.parent.remove(block)
        images: list[nodes.Element] = []
        for node in self.document.findall(lambda n: isinstance(n, (nodes.image, nodes.paragraph))):
            if isinstance(node, nodes.image):
                images.append(node)
            elif images and node.astext().startswith("Figure "):
                for image in images:
                    image["alt"] = node.astext()
                node["classes"].append("caption")
                images = []


DOI = re.compile(r"doi:(10\.\d{4,}/\S+?)(?=[.;,]?(?:\s|$))")


class Identifiers(SphinxPostTransform):
    """Make links of the identifiers of papers in docstrings."""

    default_priority = 6

    def run(self, **kwargs: Any) -> None:
        """Replace every ``doi:...`` that is not part of a link or of code."""
        for text in list(self.document.findall(nodes.Text)):
            if "doi:10." not in text or isinstance(text.parent, (nodes.reference, nodes.literal, nodes.literal_block)):
                continue
            parts: list[nodes.Node] = []
            start = 0
            for found in DOI.finditer(text):
                parts += [nodes.Text(text[start : found.start()])]
                parts += [nodes.reference("", found.group(), refuri=f"https://doi.org/{found.group(1)}")]
                start = found.end()
            text.parent.replace(text, [*parts, nodes.Text(text[start:])])


def stages() -> dict[str, str]:
    """Return the first function of every section of the reference, and the section's title."""
    text = (HERE / "reference.rst").read_text(encoding="utf-8")
    found = re.findall(r"^(\w[^\n]*)\n-+\n.*?:nosignatures:\n\n {3}(\w+)", text, flags=re.MULTILINE | re.DOTALL)
    return {name: title for title, name in found}


def group_sidebar(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the titles of the reference's sections between its functions in the sidebar."""
    tree = context.get("furo_navigation_tree", "")
    for name, title in stages().items():
        link = re.search(rf'<li class="[^"]*"><a class="[^"]*" href="[^"]*">{name}</a>', tree)
        if link and "toctree-l2" in link.group():
            tree = f'{tree[: link.start()]}<li class="stage">{title}</li>{tree[link.start() :]}'
    context["furo_navigation_tree"] = tree


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML, which browsers draw without scripts and without a network."""
    from latex2mathml.converter import convert

    return convert(latex.strip(), display=display)


def visit_math(self: Any, node: nodes.Element) -> None:
    """Write a formula inside a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.Element) -> None:
    """Write a formula of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def copy_vignettes(app: Sphinx) -> None:
    """Put the vignettes where Sphinx looks for pages; unchanged files keep their time, so that nothing is run twice."""
    target = HERE / "vignettes"
    target.mkdir(exist_ok=True)
    wanted = {path.name: path for path in (ROOT / "vignettes").glob("*.[pc]*")}  # code, and the tables it reads
    for stale in {path.name for path in target.iterdir()} - set(wanted):
        (target / stale).unlink()
    for name, path in wanted.items():
        copy = target / name
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")  # links hold in the repository
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")


PUBLIC = "|".join(sorted((name for name in cvstats.__all__ if not name.startswith("_")), key=len, reverse=True))
NAMED = re.compile(rf"(?<![`\w}}])`(?:cs\.)?({PUBLIC})(?:\(\))?`(?!`)")


def link_names(app: Sphinx, page: str, source: list[str]) -> None:
    """Link public names and vignettes in the Markdown pages, which read well and link well on a code host too."""
    if (HERE / f"{page}.md").is_file():
        source[0] = source[0].replace("](../vignettes/", "](vignettes/")
        parts = re.split(
            r"(^```.*?^```$|^#[^\n]*$)", source[0], flags=re.MULTILINE | re.DOTALL
        )  # code and headings stay
        source[0] = "".join(
            NAMED.sub(r"{py:obj}`~cvstats.\1`", part) if at % 2 == 0 else part for at, part in enumerate(parts)
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what is above."""
    app.connect("builder-inited", copy_vignettes, priority=1)
    app.connect("source-read", link_names)
    app.connect("html-page-context", group_sidebar, priority=900)
    app.add_post_transform(Captions)
    app.add_post_transform(Identifiers)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
