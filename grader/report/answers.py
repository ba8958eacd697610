"""Lines of students' answers, as pages show them: numbered, cut to size, one of them marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.feedback.excerpts import Excerpt, excerpts_of_answer
from grader.feedback.verdict import Verdict
from grader.records.grade import CodeLocation
from grader.report.similarity import Passage
from grader.wire import Place, SourceText

MOST_LINES = 60  # lines of a definition
SHORT = 12  # lines of an answer that is shown unfolded
WIDEST = 120  # characters of a line


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

    @property
    def marked(self) -> bool:
        """Whether a line is marked."""
        return any(line.marked for line in self.lines)


def own_lines(sources: Sequence[SourceText], verdict: Verdict) -> Sequence[Own]:
    """The answer to an exercise, with the line marked that a test blames, if any does.

    A line outside of the definition, or far below its first line, is quoted with its surroundings.
    Empty if nothing is wrong, or if the grade does not say where the answer is.
    """
    if verdict.state != "unsolved" or verdict.faulty:
        return ()
    definition = _place(verdict.definition)
    at = _place(verdict.at_fault)
    return [_shown(one) for one in excerpts_of_answer(sources, definition, at, MOST_LINES)]


def whole_answer(sources: Sequence[SourceText], verdict: Verdict) -> Sequence[Own]:
    """The answer to an exercise, without a mark, whether it is right or not."""
    definition = _place(verdict.definition)
    return [_shown(one) for one in excerpts_of_answer(sources, definition, None, MOST_LINES)]


def _place(position: CodeLocation | None) -> Place | None:
    return Place(position.file, position.line, cell=position.cell) if position else None


def shown_passage(passage: Passage) -> Own:
    """A passage of a submission that is like another submission's, without a mark."""
    lines = passage.lines[:MOST_LINES]
    shown = [
        CodeLine(n, shown_line(text), False) for n, text in enumerate(lines, start=passage.first)
    ]
    return Own(passage.place, shown, len(passage.lines) > len(lines))


def _shown(excerpt: Excerpt) -> Own:
    first, last = min(excerpt.lines), max(excerpt.lines)
    lines = f"line {last}" if last == first else f"lines {first}–{last}"
    return Own(
        f"{excerpt.file}, {lines}",
        [
            CodeLine(number, shown_line(text), number == excerpt.marked)
            for number, text in excerpt.lines.items()
        ],
        excerpt.cut,
    )


def shown_line(text: str) -> str:
    """A line as it is shown: with spaces in place of tabs, and with an ellipsis if it is long."""
    text = text[: WIDEST * 4].expandtabs(4).rstrip()
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
