"""A grade as Gradescope's ``results.json``: an entry for each test.

Public tests are told at once, hidden ones when grades are published, and of them no more than
students may read. What came from a submission stands in indented blocks, where Markdown and HTML
mean nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from grader import __version__
from grader.course.course import Course
from grader.feedback.pictures.text import drawn
from grader.feedback.terminal import safe
from grader.feedback.visible import for_students
from grader.records.faults import HostFault
from grader.records.grade import (
    FIRSTS,
    ExerciseResult,
    Grade,
    TestResult,
    TestStatus,
    counted,
    scaled,
)
from grader.records.rows import Row
from grader.records.wording import mistake_of

WIDTH = 72  # characters of a picture

VERDICTS: Mapping[TestStatus, str] = {
    "failed": "It is not right yet.",
    "error": "Your code raised an exception.",
    "missing": "It is not written yet.",
    "timeout": "It took too long: does a loop never end?",
    "memory": "It took too much memory.",
    "crashed": "Your code ended its own process, or crashed it.",
    "skipped": "Not tried, because something before it is wrong.",
}
FOLLOWING = (
    "It follows from a mistake in `{}`. Mend that first: if this passes then, nothing else is "
    "wrong here."
)
ABOUT_FILES = "About your files:"


class Test(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry; without a score where it carries no points."""

    name: str
    number: str
    status: Literal["passed", "failed"]
    visibility: Literal["visible", "after_published"]
    output: str = ""
    score: float | None = None
    max_score: float | None = None


class About(msgspec.Struct, frozen=True):
    """What a score rests on."""

    status: str
    isolation: tuple[str, ...]
    course: str
    kit: str
    torch: str


class Results(msgspec.Struct, frozen=True):
    """All of ``results.json``. `score` counts: the sum of the tests' scores, and corrections."""

    score: float
    execution_time: float
    output: str
    extra_data: About
    tests: tuple[Test, ...]
    output_format: str = "md"
    test_output_format: str = "md"
    test_name_format: str = "text"
    stdout_visibility: str = "hidden"


def results(grade: Grade, course: Course, scale: float = 1.0) -> Results:
    """The results of one submission; raise `HostFault` where its points are not known.

    `scale` is what one point of the grade counts there.
    """
    if grade.status == "grader_error":
        raise HostFault(grade.message or "the points are not known")
    grade = for_students(grade, course)
    told = (grade.message,) if grade.message else grade.notes
    # Of what could not be read, every test would say so again.
    exercises = counted(grade.exercises, scale) if grade.status == "graded" else ()
    return Results(
        scaled(grade.total, scale), grade.seconds,
        _paragraphs(ABOUT_FILES, _block("\n".join(told))) if told else "",
        About(grade.status, grade.isolation, grade.course, __version__, grade.torch),
        tuple(test for n, each in enumerate(exercises, 1) for test in _tests(n, each)),
    )  # fmt: skip


def corrected(results: Results, row: Row, scale: float = 1.0) -> Results:
    """The results with what a person corrected: it counts, and is told first."""
    if not row.adjustments or row.total is None:
        return results
    told = [
        f"Corrected by your instructor: {a.exercise} {scaled(a.points, scale):+g}\n\n"
        f"{_block(a.reason)}"
        for a in row.adjustments
    ]
    output = _paragraphs(*told, results.output)
    return msgspec.structs.replace(results, score=scaled(row.total, scale), output=output)


def _tests(number: int, exercise: ExerciseResult) -> Iterator[Test]:
    # What the engine checks comes before, as 0: so a test has the same number for everyone.
    before = sum(test.name in FIRSTS for test in exercise.telling)
    for place, test in enumerate(exercise.telling, 1 - before):
        paid = test.max > 0
        yield Test(
            name=f"{exercise.name}: {test.title}",
            number=f"{number}.{max(place, 0)}",
            status="passed" if test.status == "passed" else "failed",
            # Not "hidden": that would hide the total for good.
            visibility="after_published" if test.hidden else "visible",
            output=_output(exercise, test),
            score=test.points if paid else None,
            max_score=test.max if paid else None,
        )


def _output(exercise: ExerciseResult, test: TestResult) -> str:
    if test.status == "passed":
        return ""
    picture, mistake = test.picture if test is exercise.pictured else None, mistake_of(test)
    return _paragraphs(
        f"**{_plain(mistake)}**" if mistake else "",
        f"*{_plain(test.hint)}*" if test.hint else "",
        VERDICTS[test.status],
        _block(test.message or ""),
        _block(drawn(picture, width=WIDTH) or "") if picture else "",
        FOLLOWING.format(test.follows) if test.follows else "",
    )


# --- Markdown ------------------------------------------------------------------------------------


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _block(text: str) -> str:
    """Text as it is, below a paragraph.

    Unlike a fence, an indented block has no end that could be written into it.
    """
    return textwrap.indent(safe(text).strip("\n").rstrip(), "    ", lambda _: True)


def _plain(text: str) -> str:
    """An author's words, in which only code between backticks means something."""
    one_line = " ".join(text.split())
    return re.sub(r"(`[^`]*`)|([\\*_\[\]<>#|~&])", lambda m: m[1] or f"\\{m[2]}", one_line)
