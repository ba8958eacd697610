"""Finds a student's own answers in the text of a submission, to quote them beside failing tests.

A grade does not say where an answer is. The text is searched as `grader.wire.definitions` chooses
the answer that counts, but it is split into tokens and never parsed, since the trusted side does
not parse a student's code. Therefore only definitions at the margin are found: an answer below an
``if`` is not quoted. Nothing here depends on the results of tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from grader.feedback.excerpts import Excerpt, excerpts_of_answer
from grader.report.similarity import TOKEN, Passage
from grader.wire import Place, SourceText
from grader.wire.ipython import magic_of

MOST_LINES = 60  # lines of a definition
SHORT = 12  # lines of an answer that is shown unfolded
WIDEST = 120  # characters of a line
# What is left of an untouched function's body, besides texts.
UNTOUCHED = frozenset({"raise", "NotImplementedError", "(", ")", "pass", "."})


@dataclass(frozen=True)
class CodeLine:
    """A line of a submission, cut for display."""

    number: int  # in its file, or in its cell
    text: str
    marked: bool


@dataclass(frozen=True)
class Own:
    """Some lines of a student's answer."""

    title: str  # "softmax.py, lines 3–12"
    lines: Sequence[CodeLine]
    cut: bool  # whether the definition has more lines

    @property
    def short(self) -> bool:
        """Whether the lines need not be folded away."""
        return len(self.lines) <= SHORT


@dataclass
class _Definition:
    """A definition at the margin, or a name that gets a value there."""

    place: Place
    words: list[str] = field(default_factory=list)  # its code as tokens, without texts

    @property
    def untouched(self) -> bool:
        """Whether the body of a function only raises NotImplementedError or passes."""
        depth = 0
        for place, word in enumerate(self.words):
            depth += (word in "([{") - (word in ")]}")
            if word == ":" and not depth:
                return self.words[0] != "class" and {*self.words[place + 1 :]} <= UNTOUCHED
        return False


ByName = Mapping[str, Sequence[_Definition]]


def definitions_in(sources: Sequence[SourceText]) -> ByName:
    """The definitions in a submission by name, in the order of the text."""
    found: dict[str, list[_Definition]] = {}
    for source in sources:
        notebook = source.name.endswith(".ipynb")
        for cell, text in enumerate(source.cells, start=1):
            if not (notebook and magic_of(text)):
                for name, one in _in_cell(text, source.name, cell if notebook else 0):
                    found.setdefault(name, []).append(one)
    return found


def answer_that_counts(
    name: str, unit: str, own: ByName, stubs: ByName, told: str = ""
) -> Place | None:
    """Where the answer is that counts; None if there is none, or if it cannot be told.

    A stub never counts. A notebook goes first, then the unit's own file, then what comes last.
    `told` is the engine's own message on which of several definitions counts, or "": a place that
    contradicts it is not given.
    """
    given = [one.words for one in stubs.get(name, ())]
    written = [one for one in own.get(name, ()) if not one.untouched and one.words not in given]
    if told:
        counts = [
            one
            for one in written
            if f"the one in {one.place.file} counts" in told
            or f"the one in {one.place.within} counts" in told
        ]
        written = counts
    if not written:
        return None

    def rank(place: int) -> tuple[bool, bool, int]:
        at = written[place].place
        stem = re.sub(r"\W", "_", PurePosixPath(at.file).stem)
        return bool(at.cell), stem == unit, place

    return written[max(range(len(written)), key=rank)].place


def own_lines(
    sources: Sequence[SourceText], definition: Place | None, at: Place | None
) -> Sequence[Own]:
    """An answer's definition with the line `at` marked; without that line, its head is marked.

    A line outside of the definition, or far below its head, is quoted with its surroundings.
    """
    excerpts = excerpts_of_answer(sources, definition, at or definition, MOST_LINES)
    return [_shown(excerpt) for excerpt in excerpts]


def shown_passage(passage: Passage) -> Own:
    """A passage of a submission that is like another submission's, without a mark."""
    lines = passage.lines[:MOST_LINES]
    shown = [CodeLine(n, _cut(text), False) for n, text in enumerate(lines, start=passage.first)]
    return Own(passage.place, shown, len(passage.lines) > len(lines))


def _shown(excerpt: Excerpt) -> Own:
    last = excerpt.first + len(excerpt.lines) - 1
    lines = f"line {last}" if last == excerpt.first else f"lines {excerpt.first}–{last}"
    return Own(
        f"{excerpt.file}, {lines}",
        [
            CodeLine(number, _cut(text), number == excerpt.marked)
            for number, text in enumerate(excerpt.lines, start=excerpt.first)
        ],
        excerpt.cut,
    )


def _cut(text: str) -> str:
    """A line as it is shown: with spaces in place of tabs, and with an ellipsis if it is long."""
    text = text[: WIDEST * 4].expandtabs(4).rstrip()
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _in_cell(text: str, file: str, cell: int) -> Iterator[tuple[str, _Definition]]:
    """The definitions at the margin of a file or cell, with their names."""
    text = re.sub(r"\r\n?", "\n", text)
    line, seen, waiting, margin = 1, 0, "", ""
    open_one: _Definition | None = None
    for match in TOKEN.finditer(text):
        kind, word, start = match.lastgroup, match[0], match.start()
        if kind == "comment":
            continue
        line += text.count("\n", seen, start)
        seen = start
        at_margin = start == 0 or text[start - 1] == "\n"
        if waiting:  # the token after ``def`` or ``class``
            place = Place(file, line, cell=cell)
            if kind == "name":
                open_one = _Definition(place, [waiting])
                yield word, open_one
            waiting = ""
        elif at_margin and word not in ")]}":
            open_one = None
            waiting = word if word in ("def", "class") else ""
            margin = word if kind == "name" else ""
        elif word == "def" and margin == "async":
            waiting = word
        elif margin and word == "=" and text[match.end() : match.end() + 1] != "=":
            open_one = _Definition(Place(file, line, cell=cell), [margin, word])
            yield margin, open_one
        elif open_one is not None and kind != "string":
            open_one.words.append(word)
        if not at_margin:
            margin = ""
