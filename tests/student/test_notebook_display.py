"""What a notebook shows in a browser: on light and dark pages, and where it is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

import grader
from grader.feedback.disagreement import picture_of
from grader.feedback.pictures.svg import picture_svg
from grader.feedback.pictures.text import drawn
from grader.student.notebook_display import Lines, NotChecked, with_text
from tests.support.browser import chromium, needs_browser

pytestmark = needs_browser

# JupyterLab's rule for what is in a <pre>, and the colours of its two themes.
JUPYTER = "<style>pre {{ word-break: break-all; white-space: pre-wrap }}</style><body {}>{}</body>"
THEMES = {
    "light": ("rgb(0, 0, 0)", "rgb(255, 255, 255)"),
    "dark": ("rgb(255, 255, 255)", "rgb(17, 17, 17)"),
}
UNKNOWN_TO_JUPYTER = r"display: flow-root|height: calc\([^)]*\)"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of a browser, for whatever is to be looked at."""
    with chromium() as browser:
        yield browser.new_page(viewport={"width": 500, "height": 500})


def sanitized(html: str) -> str:
    """What JupyterLab 4 leaves of HTML that is not trusted, as far as this is about pictures."""
    without = re.sub(r"</?(svg|path|text|title|desc)\b[^>]*>", "", html)
    return re.sub(UNKNOWN_TO_JUPYTER, "", re.sub(' aria-hidden="true"', "", without))


@pytest.mark.parametrize("theme", THEMES)
def test_a_picture_is_drawn_in_the_colours_of_the_page(page: Page, theme: str) -> None:
    ink, ground = THEMES[theme]
    heatmap = grader.heatmap(torch.eye(2), tokens="ab", title="weights")
    colors = f'style="color: {ink}; background: {ground}"'
    page.set_content(JUPYTER.format(colors, heatmap._repr_html_()))
    title = page.locator("svg text", has_text="weights").first
    assert title.evaluate("e => getComputedStyle(e).fill") == ink
    fills: list[Any] = page.locator("svg path").evaluate_all(
        "all => all.map(e => [getComputedStyle(e).fill, getComputedStyle(e).fillOpacity])"
    )
    assert ["rgb(31, 95, 191)", "0"] in fills, "zero is the page itself"
    assert ["rgb(31, 95, 191)", "1"] in fills


@pytest.mark.parametrize("trusted", [True, False])
def test_a_picture_or_its_text_is_seen_and_never_both(page: Page, trusted: bool) -> None:
    ours = torch.zeros(2, 3)
    picture = picture_of(ours, ours + 1)
    assert picture is not None
    lines = drawn(picture, width=72)
    assert lines is not None
    html = with_text(picture_svg(picture), lines)
    page.set_content(JUPYTER.format("", html if trusted else sanitized(html)))
    assert page.locator("div").is_visible() is trusted
    assert page.locator("pre").is_visible() is not trusted
    assert "expected" in page.locator("pre").inner_text()


def test_words_are_not_split_on_a_narrow_page(page: Page) -> None:
    line = " ".join(["considerable"] * 20)
    page.set_content(JUPYTER.format('style="width: 200px"', Lines(line)._repr_html_()))
    # A word that is split has a part of it on each of two lines.
    boxes = page.locator("pre").evaluate(
        """pre => [...pre.textContent.matchAll(/\\w+/g)].map(word => {
            const range = document.createRange()
            range.setStart(pre.firstChild, word.index)
            range.setEnd(pre.firstChild, word.index + word[0].length)
            return range.getClientRects().length
        })"""
    )
    assert boxes == [1] * 20


def test_a_long_message_is_broken_between_words() -> None:
    lines = NotChecked(" ".join(["considerable"] * 20))._render_traceback_()
    assert len(lines) > 1
    assert {word for line in lines for word in line.split()} == {"grader:", "considerable"}
