"""The documentation builds without a warning, and its pages work as files, without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import chromium, needs_browser
from tests.support.places import REAL, ROOT
from tests.tools import pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built as `make docs` does."""
    out = tmp_path_factory.mktemp("docs")
    (recipe,) = re.findall(r"-m sphinx (.*) docs build/docs$", make_docs(), re.MULTILINE)
    options = recipe.replace("build/doctrees", str(out / "doctrees")).split()
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", out / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return out / "html"


def make_docs() -> str:
    """The recipe of `make docs`, with its lines joined."""
    return (ROOT / "Makefile").read_text("utf-8").replace("\\\n", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a phone's width that may open files alone."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
    assert complaints == []


@needs_browser
def test_search_finds_a_command_on_pages_that_are_opened_as_files(site: Path, page: Page) -> None:
    page.goto((site / "search.html").as_uri() + "?q=causal_mask_after")
    expect(page.locator("#search-results li a").first).to_have_text("causal_mask_after")


@needs_browser
def test_no_page_is_wider_than_a_phone(site: Path, page: Page) -> None:
    for path in sorted(site.rglob("*.html")):
        if path.parent.name == "exercises" and path.stem not in ("index", "GPT"):
            continue  # all of one kind
        page.goto(path.as_uri())
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, path.name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(?:https?:)?//[^>]*>")
    for path in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = path.read_text("utf-8")
        assert not loading.search(text), path.name
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", text), path.name


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    assert "<math" in (site / "reference" / "testing.html").read_text("utf-8")


def test_there_is_a_page_for_each_exercise_made_of_what_students_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = pages.written()
    shutil.copytree(REAL, tmp_path / "exercises")
    monkeypatch.setattr(pages, "REAL", tmp_path / "exercises")
    assert pages.written() == here
    assert "exercises/causal_mask.md" in here
    assert "diagonal" in here["exercises/causal_mask.md"]
