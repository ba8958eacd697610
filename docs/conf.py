"""Sphinx's settings: ``make docs`` builds the pages into ``build/docs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from grader import __version__
from tests.tools import pages

REFERENCE = Path(__file__).parent / "reference"

project = "attention-grader"
version = release = __version__
extensions = ["myst_parser"]
nitpicky = True
smartquotes = False  # `--show` has two hyphens, outside of code too

myst_enable_extensions = ["deflist", "dollarmath", "linkify"]
myst_linkify_fuzzy_links = False  # course.toml is no address
myst_heading_anchors = 4

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
# Formulas are part of the page, and need no script.
html_math_renderer = "mathml"
# A page that is opened as a file may not read other files: search lists titles only.
html_show_search_summary = False


def setup(app: Sphinx) -> None:
    """Make the pages that come from the code, and formulas without a script."""
    app.add_html_math_renderer("mathml", (_formula, None), (_display, None))
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _fill_in)


def _formula(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _write_pages(app: Sphinx) -> None:
    written = {REFERENCE / path: text for path, text in pages.written().items()}
    for old in (REFERENCE / "exercises").glob("*.md"):
        if old.name != "index.md" and old not in written:
            old.unlink(missing_ok=True)
    for path, text in written.items():
        # Another build may read a page that is there already.
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _fill_in(app: Sphinx, page: str, text: list[str]) -> None:
    text[0] = pages.fill_in(text[0])
