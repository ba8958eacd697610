"""Gradebooks of a made-up class in the tiny course."""

from __future__ import annotations

from pathlib import Path

import msgspec

from grader.grades.decided import decision_of
from grader.grades.gradebook import Gradebook, open_gradebook
from grader.intake import Submission
from grader.records.grade import (
    CodeLocation,
    ExerciseResult,
    Grade,
    Picture,
    SubmissionStatus,
    TestResult,
)
from grader.records.rows import Adjustment, Person
from grader.wire import SourceText

EXERCISES = ("center", "weigh")
SEED = "the-hidden-seed"
MISTAKE, HINT = "Softmax over the wrong axis", "Which axis should sum to one?"
HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\u202egnp\x1b[2J"
)
PICTURE = Picture(
    ((1.0, 0.0), (0.5, 0.5)),
    ((0.5, 0.5), (0.5, 0.5)),
    ((True, True), (False, False)),
    rows=2,
    columns=2,
)


ANSWER = """\
import torch


def weigh(x, mask):
    scores = x @ x.transpose(-2, -1)  # a comment that is too long for a telephone, and for paper
    hidden = scores.masked_fill(mask, float("-inf"))
    return hidden.softmax(dim=-2) @ x
"""


def solved(name: str, most: float = 2.0) -> ExerciseResult:
    """All points, by a hidden test."""
    tests = (
        TestResult("exists", "The exercise is there", "passed", hidden=False),
        TestResult("test_value", "The values are right", "passed", most, most),
    )
    return ExerciseResult(name, "basics", most, most, tests)


def untouched(name: str, most: float = 2.0) -> ExerciseResult:
    """The stub as it was."""
    told = "still the stub"
    tests = (
        TestResult("exists", "The exercise is there", "missing", hidden=False, message=told),
        TestResult("test_value", "The values are right", "missing", 0, most),
    )
    return ExerciseResult(name, "basics", 0.0, most, tests)


def mistaken(
    name: str,
    mistake: str | None = MISTAKE,
    *,
    message: str = "expected 0.25, got 0.75",
    points: float = 0.5,
    most: float = 2.0,
    follows: str | None = None,
    lines: tuple[int, int] | None = None,
) -> ExerciseResult:
    """A public and a hidden test failed, both for one mistake; the hidden one saw 0.8675309.

    `follows` is the earlier exercise in which that was made. `lines` are those of `basics.py` at
    which the answer begins, and which the public test blames.
    """
    hint = HINT if mistake else None
    begins, blamed = (CodeLocation("basics.py", line) for line in lines) if lines else (None, None)
    tests = (
        TestResult("exists", "The exercise is there", "passed", hidden=False, position=begins),
        TestResult(
            "test_public",
            "The example comes out",
            "failed",
            hidden=False,
            message=message,
            mistake=mistake,
            hint=hint,
            picture=PICTURE,
            follows=follows,
            position=blamed,
        ),
        TestResult(
            "test_value",
            "The values are right",
            "failed",
            0,
            most - points,
            message="expected 0.8675309",
            mistake=mistake,
            hint=hint,
            follows=follows,
        ),
        TestResult("test_shape", "The shape is right", "passed", points, points),
        TestResult("test_float64", "In float64 too", "skipped"),
    )
    return ExerciseResult(name, "basics", points, most, tests)


def grade(
    student: str,
    *results: ExerciseResult,
    status: SubmissionStatus = "graded",
    message: str | None = None,
    seconds: float = 0.5,
) -> Grade:
    """A grade with these results."""
    return Grade(
        student,
        student,
        status,
        sum(result.points for result in results),
        4.0,
        SEED,
        "0f",
        ("process", "landlock", "seccomp"),
        "2.13.0",
        seconds,
        results,
        message,
    )


def handed_in(student: str, text: str, *group: str) -> Submission:
    """A submission with a single file."""
    return Submission(student, (SourceText("basics.py", (text,)),), group=group)


def correct(book: Gradebook, student: str, adjustment: Adjustment) -> None:
    """Store points that a person gave."""
    book.decide([decision_of(student, adjustment)])


def write_class(folder: Path) -> None:
    """A class with every kind of row: right, wrong, absent, empty, hostile, corrected, a group.

    Bob and the group submitted the same text.
    """
    center, weigh = EXERCISES
    with open_gradebook(folder, "tiny") as book:
        book.exercises = EXERCISES
        book.record(grade("ada", solved(center), solved(weigh)), handed_in("ada", "x = 1"))
        late = msgspec.structs.replace(
            grade("bob", solved(center), mistaken(weigh, lines=(4, 6)), seconds=9),
            late=True,
            attempts=3,
        )
        book.record(late, handed_in("bob", ANSWER))
        book.record(
            grade(
                HOSTILE, mistaken(center, None, message=HOSTILE), untouched(weigh), message=HOSTILE
            ),
            handed_in(HOSTILE, "x = 3"),
        )
        book.record(
            grade("team-7", mistaken(center, None), mistaken(weigh, lines=(4, 6))),
            handed_in("team-7", ANSWER, "dan", "eve"),
        )
        book.record(
            grade("finn", untouched(center), untouched(weigh), status="empty", message="no file"),
            Submission("finn", ()),
        )
        correct(book, "bob", Adjustment("weigh", 0.25, "a typo in the statement misled Bob"))
        book.set_people(
            {
                "ada": Person("s100", "Ada Lovelace", "ada@example.edu"),
                "bob": Person("s200", "Bob Byron", "bob@example.edu"),
                "zoe": Person("s300", "Zoë Absent", "zoe@example.edu"),
            }
        )


def folder(place: Path, **files: str) -> Path:
    """A folder of submissions: the text of each file by its name."""
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.py").write_text(text, "utf-8")
    return place
