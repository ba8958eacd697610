"""The pages of the documentation, and the blocks of code in them.

A comment in the line before a block says what it is to a test: ``<!-- not run: WHY -->`` of
commands; ``<!-- file: PATH -->`` of text that a reader writes to a file; ``<!-- answer: PATH -->``
of a definition whose body a reader writes in place of a stub's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import ROOT

PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name != "exercises" or page.name == "index.md"  # the others are generated
    ),
)
ELLIPSIS = "…"  # in an output: left out; a line of its own stands for several lines

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[a-z ]+): (?P<said>[^\n]*) -->\n)?"
    r"```(?P<kind>[^\s`]*)[^\n`]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    kind: str
    text: str
    mark: str  # the word of the comment before the block; "" without a comment
    said: str
    line: int


def blocks(page: Path, kind: str = "") -> list[Block]:
    """The blocks of a page; with `kind`, only those of a kind, such as ``python``."""
    text = page.read_text("utf-8")
    found = [
        Block(
            match["kind"],
            match["text"],
            match["mark"] or "",
            match["said"] or "",
            text.count("\n", 0, match.start("text")),
        )
        for match in _FENCE.finditer(text)
    ]
    return [block for block in found if kind in ("", block.kind)]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines of output below it; raises without ``$``."""
    command, output = "", list[str]()
    lines = block.text.replace("\\\n", " ").splitlines()
    assert lines[0].startswith("$ "), f"line {block.line}: a command begins with `$ `"
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line.removeprefix("$ "), []
        else:
            output.append(line)
    yield command, output


def agrees(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the lines on a page are those that a command printed."""
    if not shown:
        return not printed
    first, *rest = shown
    if first.strip() == ELLIPSIS:
        return any(agrees(rest, printed[start:]) for start in range(len(printed) + 1))
    line = ".*".join(map(re.escape, first.split(ELLIPSIS)))
    return bool(printed and re.fullmatch(line, printed[0]) and agrees(rest, printed[1:]))


def write(block: Block) -> None:
    """Do to a file what the comment before the block says."""
    path = Path(block.said)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text("utf-8") if block.mark == "answer" and path.exists() else ""
    path.write_text(_with_answer(before, block.text), "utf-8")


def _with_answer(text: str, answer: str) -> str:
    """A file's text with the body of an answer below the statement of its stub.

    Without such a stub, the answer is put at the end.
    """
    if not text:
        return answer
    (new,) = (node for node in ast.parse(answer).body if isinstance(node, DEFINES))
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, DEFINES) and node.name == new.name:
            body = answer.splitlines()[new.body[0].lineno - 1 :]
            lines[(node.body[0].end_lineno or 0) : node.end_lineno] = body
            return "\n".join(lines) + "\n"
    return f"{text}\n\n{answer}"


DEFINES = (ast.FunctionDef, ast.ClassDef)
