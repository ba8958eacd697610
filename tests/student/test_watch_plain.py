"""`grader watch --plain`: a check after every save, in lines of text."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.course import Course
from grader.feedback.verdict import verdict_of
from grader.records.grade import ExerciseResult, TestResult
from grader.student.progress import read_progress
from grader.student.watch import words
from grader.student.watch.plain import verdict_lines
from tests.support.watching import copied, reading, save


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, in which somebody has worked before."""
    return copied(tmp_path, first_run=False)


def test_a_save_brings_a_new_verdict_in_words(course: Course) -> None:
    with reading(course) as reader:
        reader.reads("A tiny course: 0 of 4 solved.")
        reader.reads("Exercise center: Subtract the mean (1 of 3 in basics.py, 2 points)")
        reader.reads("Not solved yet: center")
        reader.reads("Write your lines in basics.py, and save.")
        save(course, "wrong")
        verdict = reader.reads("What remains?")
        assert "Likely mistake: The mean is added" in verdict
        reader.reads("Wrong: It is right")
        reader.reads("expected yours differs")
        save(course, "right")
        reader.reads("Solved: center")
        reader.reads("Solved! Next comes staircase: One more in each row, in basics.py.")
        reader.reads("the whole course: 2 of 10 points")
        reader.reads("Why it works What remains sums to zero. It always does.")
        save(course, "wrong")
        reader.reads("Not solved yet: center, although it was solved before")
        shown = reader.all.replace("\n", "").replace("�", "")  # the escape in their message
        assert shown.isascii()
        assert shown.isprintable()
    assert read_progress(course.folder).solved == {"center"}


def test_another_exercise_that_is_saved_becomes_the_current_one(course: Course) -> None:
    with reading(course) as reader:
        reader.reads("Not solved yet: center")
        path = course.stub_file("layers")
        text = path.read_text("utf-8")
        path.write_text(text.replace("raise NotImplementedError", "self.linear = None"), "utf-8")
        reader.reads("Exercise Projection: One linear map")
        reader.reads("Not solved yet: Projection")
        save(course, "right", "Projection")
        reader.reads("Solved: Projection")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("fault", "The grader itself failed, which is not your fault: the moon is full"),
        ("call", "there is no .py file"),
    ],
)
def test_a_check_that_cannot_be_made_costs_a_line_and_the_next_save_tries_again(
    course: Course, found: str, told: str
) -> None:
    save(course, found)
    with reading(course) as reader:
        reader.reads(told)
        save(course, "right")
        reader.reads("Solved: center")


def test_a_newcomer_is_told_how_to_go_on_without_keys(tmp_path: Path) -> None:
    with reading(copied(tmp_path, first_run=True), first_run=True) as reader:
        reader.reads("Welcome to A tiny course.")
        for line in words.PLAIN_WELCOME:
            reader.reads(line)


def test_a_verdict_breaks_long_lines_between_words() -> None:
    message = f"center should return a tensor of this shape:\n    {'a well-known shape, ' * 5}"
    found = TestResult(
        "value",
        "It is right for three numbers, and for any other number of numbers",
        "failed",
        message=message,
        mistake="The mean is added to each of the numbers",
        hint="By how much?",
    )
    lines = [*verdict_lines(verdict_of(ExerciseResult("center", "basics", 0, 2, (found,))), 40)]
    assert max(map(len, lines)) <= 40
    said = " ".join(lines).split()
    assert said[said.index("center", 5) :] == message.split()
    assert lines[-1].startswith("      ")  # a broken line keeps its indent
