"""A total is the sum of its lines, whatever people decide and in whatever order."""

from __future__ import annotations

import csv
import io
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course.course import Course, load_course
from grader.grades.corrections import correction
from grader.grades.decided import decision_of
from grader.grades.decisions import assignment_of, comment_of, excuse_of, extension_of
from grader.grades.gradebook import Gradebook, open_gradebook
from grader.grades.lookup import find_student
from grader.grades.table import gradebook_csv
from grader.intake import Submission
from grader.records.faults import CallError
from grader.records.grade import Grade, thousandths
from grader.records.lateness import Lateness, Policy
from grader.records.rows import Adjustment, Person, Row
from grader.wire import SourceText
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.places import TINY

DUE = datetime(2026, 12, 1, 22, 59, tzinfo=UTC)
STUDENTS = ("ada", "bob", "zoe")
SUBMISSIONS = ("ada", "bob", "hw1")
PARTS = (*EXERCISES, "basics", "essay", "total", "late")
SUMMED = ("essay", "unit_corrections", "total_correction", "penalty")


def handed_in(name: str, hours: float, *points: float) -> Grade:
    """A grade of a submission so many hours after the due time."""
    submitted = f"{DUE + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"
    return msgspec.structs.replace(grade_of(name, *points), submitted=submitted)


# --- worked out by hand --------------------------------------------------------------------------


def row_of(*points: float, share: int = 0, **more: object) -> Row:
    """A row with these computed points, which loses a share in hundredths of a percent."""
    late = Lateness(3600, share, "submitted 1 hour late") if share else None
    return Row("ada", grade_of("ada", *points), lateness=late, **more)  # type: ignore[arg-type]


def test_three_totals_that_were_worked_out_on_paper() -> None:
    # Ada: 2 + 1.333 by the tests, essay 4.5 of 5, nothing else: 7.833.
    ada = row_of(
        2, 1.333, questions={"essay": 5}, adjustments=(Adjustment("essay", 4.5, "", True),)
    )
    assert ada.total == 7.833
    # Bob: 1.5 + 0 by the tests, weigh corrected by +0.75: 2.25. The unit gets +0.25: 2.5. An
    # essay of 3: 5.5. A day and an hour late at 10 % a day: 20 % of 5.5 is 1.1. Total 4.4.
    bob = row_of(
        1.5,
        0,
        share=2000,
        questions={"essay": 5},
        adjustments=(
            Adjustment("weigh", 0.75, ""),
            Adjustment("basics", 0.25, ""),
            Adjustment("essay", 3, "", True),
        ),
    )
    assert [(line.part, line.kind, line.points) for line in bob.lines] == [
        ("center", "computed", 1.5),
        ("weigh", "computed", 0),
        ("weigh", "corrected", 0.75),
        ("essay", "marked", 3),
        ("basics", "corrected", 0.25),
        ("late", "late", -1.1),
    ]
    assert bob.total == 4.4
    # Cleo: 2 + 2 by the tests, weigh set to 0.5: 2.5. The total is set to 3. 15 % late: 0.45,
    # of which the instructor gives back 0.2. Total 3 - 0.45 + 0.2 = 2.75.
    cleo = row_of(
        2,
        2,
        share=1500,
        adjustments=(
            Adjustment("weigh", 0.5, "", True),
            Adjustment("total", 3, "", True),
            Adjustment("late", 0.2, ""),
        ),
    )
    assert (cleo.total, cleo.counting(Adjustment("late", 0.2, ""))) == (2.75, 0.2)


def test_a_correction_that_would_make_points_negative_counts_only_so_much() -> None:
    unit = row_of(1, 1, adjustments=(Adjustment("basics", -5, ""),))
    assert (unit.total, unit.limits) == (
        0,
        ["basics: the correction by -5 counts -2: points are never below 0"],
    )
    total = row_of(1, 1, share=10_000, adjustments=(Adjustment("total", -0.5, ""),))
    assert [line.points for line in total.lines] == [1, 1, -0.5, -1.5]


# --- in whatever order ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(TINY / "exercises")


points = st.integers(-4000, 6000).map(lambda n: f"{n / 1000:+.3f}")
fixed = st.integers(0, 6000).map(lambda n: f"={n / 1000:.3f}")
student = st.sampled_from(STUDENTS)
events = st.one_of(
    st.tuples(st.just("adjust"), student, st.sampled_from(PARTS), points | fixed | st.just("0")),
    st.tuples(st.just("extend"), student, st.sampled_from(["1 day", "5 hours", ""])),
    st.tuples(st.just("excuse"), student, st.booleans()),
    st.tuples(st.just("assign"), st.sampled_from(SUBMISSIONS), student, st.booleans()),
    st.tuples(st.just("comment"), student, st.sampled_from(["Good.", ""])),
    st.tuples(st.just("regrade"), st.sampled_from(SUBMISSIONS), st.integers(0, 2000)),
    st.tuples(st.just("rule"), st.sampled_from(["10% a day, 3 days", "25%", "1% an hour"])),
)


def happen(book: Gradebook, course: Course, event: tuple) -> None:  # type: ignore[type-arg]
    """What an instructor does next; what makes no sense is refused, and changes nothing."""
    kind, *rest = event
    rows = book.rows()
    with suppress(CallError):
        match kind:
            case "adjust":
                one = correction(find_student(rows, rest[0]), rest[1], rest[2], "why")
                book.decide([decision_of(rest[0], one.adjustment)])
            case "extend":
                undo = not rest[1]
                book.decide([extension_of(rows, course, book, rest[0], rest[1], "", undo=undo)])
            case "excuse":
                book.decide([excuse_of(rows, rest[0], "", undo=rest[1])])
            case "assign":
                book.decide([assignment_of(rows, book, rest[0], rest[1], undo=rest[2])])
            case "comment":
                book.decide([comment_of(rows, course, rest[0], "", rest[1])])
            case "regrade":
                book.record(handed_in(rest[0], 25, rest[1] / 1000, 1), written(rest[0]))
            case "rule":
                book.policy = Policy(DUE, "us", rest[0])


def written(name: str) -> Submission:
    return Submission(name, (SourceText("a.py", (name,)),))


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=12))
def test_lines_sum_to_totals_which_are_never_negative(course: Course, history: list) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder, open_gradebook(Path(folder), "tiny") as book:
        for name, hours in zip(SUBMISSIONS, (-1, 30, 100), strict=True):
            book.record(handed_in(name, hours, 1.234, 0.567), written(name))
        book.set_people({name: Person() for name in STUDENTS})
        book.exercises, book.questions = EXERCISES, {"essay": 5.0}
        book.policy = Policy(DUE, "us", "10% a day, 3 days")
        for event in history:
            happen(book, course, event)
        book.write_files()
        first = (Path(folder) / "gradebook.csv").read_bytes()
        for row in book.rows():
            assert all(points >= 0 for points in row.points.values())
            if row.total is not None:
                assert row.total >= 0
                assert thousandths(row.total) == sum(thousandths(x.points) for x in row.lines)
        for scale in (1.0, 100 / 9, 0.333):
            table = csv.DictReader(io.StringIO(gradebook_csv(book.rows(), EXERCISES, scale)))
            for line in table:
                if line["total"]:
                    cells = [line[name] for name in (*EXERCISES, *SUMMED) if line.get(name)]
                    assert sum(map(thousandths, map(float, cells))) == thousandths(
                        float(line["total"])
                    )
        book.write_files()
        assert (Path(folder) / "gradebook.csv").read_bytes() == first
