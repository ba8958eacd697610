"""What a student may read of a grade."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from grader.course.course import Course, load_course
from grader.feedback.visible import FAILED_ITSELF, for_students
from grader.records.grade import ExerciseResult, Grade, TestResult

PUBLIC = TestResult("shape", "The shape is right", "failed", hidden=False, message="got (2, 3)")
NAMED = TestResult(
    "value",
    "The values are right",
    "failed",
    0,
    2,
    message="expected 0.731",
    mistake="Softmax over the wrong axis",
    hint="Which axis should sum to one?",
    follows="staircase",
    rules={"later": "No token sees a later one."},
    behaviour=("It sees the future.",),
)
PASSED = TestResult("rows", "Rows sum to one", "passed", 1, 1)
GRADE = Grade(
    "ada",
    "ada",
    "graded",
    1.0,
    3.0,
    "a secret seed",
    "abc",
    (),
    "2.13.0",
    0.1,
    (ExerciseResult("center", "basics", 1.0, 3.0, (PUBLIC, NAMED, PASSED)),),
)


BROKEN = TestResult("x", "It works", "grader_error", hidden=False, message="Traceback: 0.731")


def course(tiny: Course, folder: Path, told: str) -> Course:
    text = (tiny.folder / "course.toml").read_text("utf-8")
    table = f'[feedback]\nhidden = "{told}"\n\n[limits]'
    (folder / "course.toml").write_text(text.replace("[limits]", table), "utf-8")
    return load_course(folder)


def test_the_seed_is_never_told(tiny: Course) -> None:
    assert b"secret" not in for_students(GRADE, tiny).to_json()


def test_where_the_grader_failed_its_traceback_is_ours(tiny: Course) -> None:
    results = (ExerciseResult("center", "basics", 0, 3, (BROKEN,)),)
    grade = msgspec.structs.replace(
        GRADE, status="grader_error", message="Traceback: 0.731", exercises=results
    )
    told = for_students(grade, tiny)
    assert b"0.731" not in told.to_json()
    assert told.message == told.exercises[0].tests[0].message == FAILED_ITSELF


def test_a_hidden_test_is_told_by_title_verdict_and_mistake_and_never_by_numbers(
    tiny: Course,
) -> None:
    (exercise,) = for_students(GRADE, tiny).exercises
    public, named, passed = exercise.tests
    assert public == PUBLIC
    assert named.message is None
    assert (named.title, named.status, named.max) == ("The values are right", "failed", 2)
    assert (named.mistake, named.hint) == (NAMED.mistake, NAMED.hint)
    assert named.follows == "staircase"
    assert (named.rules, named.behaviour) == (NAMED.rules, NAMED.behaviour)
    assert passed == PASSED


def test_a_course_may_keep_what_is_wrong_to_itself(tiny: Course, tmp_path: Path) -> None:
    (exercise,) = for_students(GRADE, course(tiny, tmp_path, "verdicts")).exercises
    assert [test for test in exercise.tests if test.hidden] == [
        TestResult(NAMED.name, NAMED.title, "failed", 0, 2),
        TestResult(PASSED.name, PASSED.title, "passed", 1, 1),
    ]


@pytest.mark.parametrize(
    ("tests", "status"),
    [((PUBLIC, NAMED, PASSED), "failed"), ((PASSED,), "passed")],
)
def test_a_course_may_tell_no_more_than_whether_all_hidden_tests_pass(
    tiny: Course, tmp_path: Path, tests: tuple[TestResult, ...], status: str
) -> None:
    exercise = ExerciseResult("center", "basics", 1.0, 3.0, tests)
    grade = Grade("ada", "ada", "graded", 1, 3, "", "", (), "", 0, (exercise,))
    (told,) = for_students(grade, course(tiny, tmp_path, "nothing")).exercises
    *public, last = told.tests
    assert all(not test.hidden for test in public)
    assert (last.status, last.mistake, last.points) == (status, None, 1.0)


def test_what_a_course_may_tell_is_one_of_three_words(tiny: Course, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"course\.toml:\d+: hidden: .*'numbers'"):
        course(tiny, tmp_path, "numbers")
