"""Words and turns that readers stumbled over do not come back into docs, help and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import PAGES
from tests.support.places import ROOT
from tests.tools.messages import MESSAGES

STUMBLES = {
    "say 'shown', 'reported' or 'known'": r"\b(?:is|are|was|were|be|been|gets?) told\b"
    r"|\btold (?:once|of|by|apart|that)\b|\btells of\b",
    "say 'is', 'is written' or 'lies'": r"\bstands?\b(?! (?:for|out|in|alone)\b)(?!-in)",
    "say 'exists' or 'can be installed'": r"\bto be had\b|\bis (?:not )?had\b",
    "name the subject: 'people who', 'the student that'": r"(?:\A|[.;:]\s+)(?:who|whoever) "
    r"(?:is|was|has|asks|grades|reads|writes|looks|made|had|knows|takes|begins|stops|submits)\b",
    "say 'if' or 'when'": r"(?:\A|[.;]\s+)where (?:it|there|one|that|nothing|nobody|they)\b",
    "say 'such a test'": r"\bsuch a one\b",
    "say 'so', 'in it' or 'for ever'": r"\b(?:for good|thereby|therein|whereof|hence)\b",
    "say 'submitted'": r"\bhand(?:s|ed)? in\b(?! hand)",
}
# Code, and tables, whose cells are quoted from elsewhere.
NO_PROSE = re.compile(r"^ *```.*?^ *```|`[^`]*`|^\|[^\n]*", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def prose() -> list[tuple[Path, int, str]]:
    """Each text without code and tables, with its file and the line in which it begins."""
    return [
        (file, first, NO_PROSE.sub(lambda code: re.sub(r"[^\n]", "·", code[0]), text))
        for file, first, text in texts()
    ]


def texts() -> Iterator[tuple[Path, int, str]]:
    yield MESSAGES.relative_to(ROOT), 1, MESSAGES.read_text("utf-8")
    for page in {*ROOT.glob("*.md"), *PAGES, ROOT / "grader" / "README.md"}:
        if page.name == "CHANGELOG.md":  # what is written there is history
            continue
        yield page.relative_to(ROOT), 1, page.read_text("utf-8")
    for folder in ("grader", "exercises"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    continue
                if text := ast.get_docstring(node, clean=False):
                    yield path.relative_to(ROOT), node.body[0].lineno, text


@pytest.mark.parametrize("instead", STUMBLES)
def test_no_text_has_a_turn_that_readers_stumbled_over(
    instead: str, prose: list[tuple[Path, int, str]]
) -> None:
    turn = re.compile(STUMBLES[instead], re.IGNORECASE)
    found = [
        f"{file}:{first + text.count(chr(10), 0, hit.end())}: {hit[0].strip(' .;:')!r}"
        for file, first, text in prose
        for hit in turn.finditer(text)
    ]
    assert not found, f"{instead}:\n" + "\n".join(found)
