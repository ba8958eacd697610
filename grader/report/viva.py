"""The page of a student's oral exam, for the examiner: on a screen, or on paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from grader import __version__
from grader.course.course import Course
from grader.course.file import Assignment
from grader.feedback.terminal import safe
from grader.feedback.verdict import verdict_of
from grader.questions.exam import Exam
from grader.questions.question import LETTERS, Kind, Question
from grader.records.rows import Row
from grader.report.answers import CodeLine, Own, shown_line, whole_answer
from grader.report.rendering import page
from grader.report.similarity import TOKEN, Resemblance
from grader.wire import Place, SourceText

if TYPE_CHECKING:
    from markupsafe import Markup

CAPITALS = LETTERS.upper()  # of choices, as on paper
KINDS: Mapping[Kind, str] = {
    "shape": "Shape", "leave out": "Leave out", "change": "Change", "line": "Which line",
    "part": "Trace a change",
}  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """A question as a page shows it."""

    number: int
    kind: str
    text: Markup
    lines: Sequence[CodeLine]
    instead: Sequence[CodeLine]  # the changed lines
    choices: Sequence[tuple[str, Markup]]  # each with its letter
    reply: Markup
    ran: Markup
    follow_up: str


@dataclass(frozen=True)
class _Exercise:
    """The questions on an exercise, and the student's answer."""

    name: str
    title: str
    own: Sequence[Own]
    asked: Sequence[_Asked]


def exam_page(
    row: Row,
    exam: Exam,
    exercises: Sequence[str],
    course: Course,
    assignment: Assignment | None,
    sources: Sequence[SourceText],
    *,
    nameless: bool = False,
) -> str:
    """The page of a student's oral exam on some of the graded exercises.

    A nameless page has no whole answers, no comments and no names of files, since each may
    contain the student's name; `row` has a pseudonym then.
    """
    assert row.grade is not None
    results = {e.name: e for e in row.grade.exercises if e.name in exercises}
    questions = exam.questions
    if nameless:
        units = {unit.name for unit in course.units}
        names = {
            source.name: f"file-{number}"
            for number, source in enumerate(sources, start=1)
            if Path(source.name).stem not in units
        }
        questions = tuple(_nameless(question, names) for question in questions)
    numbered = enumerate(questions, start=1)
    shown = [
        _Exercise(
            name,
            course.exercises[name].title if name in course.exercises else "",
            [] if nameless else whole_answer(sources, verdict_of(results[name])),
            [_asked(number, question) for number, question in some],
        )
        for name, some in groupby(numbered, key=lambda pair: pair[1].exercise)
    ]
    unsolved = [name for name, result in results.items() if not result.solved]
    return page(
        "viva.html",
        course=course.titled(assignment),
        row=row,
        count=len(questions),
        exercises=shown,
        unsolved=unsolved,
        unasked=exam.unasked,
        version=__version__,
    )


def _asked(number: int, question: Question) -> _Asked:
    """A question for a page."""
    choices = [_code(text) for text in question.choices]
    lines = [CodeLine(at.line, shown_line(at.text), marked=False) for at in question.lines]
    reply = _code(question.reply)
    if question.choices:
        place = question.choices.index(question.reply)
        reply = _code(CAPITALS[place]) + ": " + choices[place]
    return _Asked(
        number,
        KINDS[question.kind],
        _code(question.text),
        lines,
        [CodeLine(at.line, shown_line(at.text), marked=False) for at in question.instead],
        [*zip(CAPITALS, choices, strict=False)],
        reply,
        _code(question.ran),
        question.follow_up,
    )


def _code(text: str) -> Markup:
    """A text in which words between backticks are set as code."""
    from markupsafe import Markup

    parts = safe(text).split("`")
    if len(parts) % 2 == 0:  # a backtick of the student's own
        return Markup("{}").format(safe(text))
    whole = "".join("<code>{}</code>" if n % 2 else "{}" for n in range(len(parts)))
    return Markup(whole).format(*parts)


# --- without names -------------------------------------------------------------------------------


def _nameless(question: Question, names: Mapping[str, str]) -> Question:
    """A question without comments, and with other names of files."""
    from grader.questions.outcomes import RAISES  # needs torch

    # An exception's text may be the student's own.
    ran = question.ran.partition(":")[0] if question.reply == RAISES else question.ran
    told = {"text": question.text, "ran": ran}
    for name, other in names.items():
        told = {key: text.replace(name, other) for key, text in told.items()}
    return msgspec.structs.replace(
        question,
        lines=_without_comments(question.lines, names),
        instead=_without_comments(question.instead, names),
        **told,
    )


def _without_comments(lines: Sequence[Place], names: Mapping[str, str]) -> list[Place]:
    text = "\n".join(line.text for line in lines)
    for match in reversed([*TOKEN.finditer(text)]):
        if match.lastgroup == "comment":
            text = text[: match.start()].rstrip(" \t") + text[match.end() :]
    return [
        Place(names.get(at.file, at.file), at.line, left, at.cell)
        for at, left in zip(lines, text.split("\n"), strict=bool(lines))
    ]


# --- similar submissions --------------------------------------------------------------------------


def alike_in(rows: Sequence[Row], pairs: Iterable[Resemblance]) -> Mapping[str, list[str]]:
    """For each student, the students with similar submissions; members of a group do not count."""
    of: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.grade is not None:
            of[row.grade.submission].append(row.student)
    found: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        names = (pair.one, *pair.others)
        for name in names:
            others = [student for other in names if other != name for student in of[other]]
            for student in of[name]:
                found[student] += [other for other in others if other not in found[student]]
    return found
