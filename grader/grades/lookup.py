"""Finds students and tests by the text that a person types."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.course.course import Course
from grader.grades.gradebook import Gradebook
from grader.intake import Submission
from grader.intake.names import escaped
from grader.records.faults import CallError
from grader.records.grade import BASES, ExerciseResult, Grade, TestResult
from grader.records.rows import Row, letters, spellings

MOST_NAMED = 8  # names in a message


def find_student(rows: Sequence[Row], text: str) -> Row:
    """Find a student by the name in the gradebook, or else by id, e-mail or name in any spelling.

    A part of a name is enough, such as the surname, if no other student has it. Raises `CallError`
    unless exactly one student fits.
    """
    for row in rows:
        if row.student == text:
            return row
    found = [row for row in rows if is_meant(row, text)]
    if not found and letters(text):
        found = [row for row in rows if letters(text) in map(letters, row.person.name.split())]
    if len(found) == 1:
        return found[0]
    if found:
        raise CallError(f"{_shown(text)} may be {_listed(row.student for row in found)}: name one")
    near = _nearest(text, (name for row in rows for name in _known_as(row)))
    raise CallError(f"there is no student called {_shown(text)} in this gradebook{near}")


def is_meant(row: Row, text: str) -> bool:
    """Whether a text is one of a student's names, in any spelling."""
    same = text.casefold() in map(str.casefold, _known_as(row))
    return same or letters(text) in spellings(row.person.name)


def _known_as(row: Row) -> list[str]:
    person = row.person
    known = (row.student, person.id, person.email, person.login, person.name)
    return [name for name in known if name]


def refuse_another_seed(book: Gradebook, seed: str, meant: str) -> None:
    """Raise `CallError` if a gradebook was graded with another hidden seed than `seed`.

    `meant` says, in the message, which seed the user should give with --seed.
    """
    seeds = {grade.seed for grade in book.grades()}
    if seeds and seed not in seeds:
        raise CallError(
            f"{book.folder} was graded with another hidden seed: name that course with --course, "
            f"or {meant} with --seed"
        )


@dataclass(frozen=True)
class Graded:
    """A test in a student's grade, and the text that was graded."""

    grade: Grade
    submission: Submission
    exercise: ExerciseResult
    test: TestResult


def find_graded(book: Gradebook, course: Course, student: str, test: str) -> Graded:
    """Find a test of a student in a gradebook; `student` and `test` are texts that a person typed.

    Raises `CallError` if there is no such test, or if the student's submission cannot run.
    """
    row = find_student(book.rows(), student)
    if row.grade is None:
        raise CallError(f"{row.student} {row.ungraded}: there is no test to run")
    exercise, result = find_test(course, row.grade, test)
    submission = book.submission(row.grade.submission)
    if submission is None:
        raise CallError(f"the text of {row.student} is not in the gradebook: grade it again first")
    if submission.status != "ready":
        raise CallError(f"{row.student} submitted nothing that can run: {row.grade.message}")
    return Graded(row.grade, submission, exercise, result)


def find_test(course: Course, grade: Grade, text: str) -> tuple[ExerciseResult, TestResult]:
    """Find a test by name, title or ``EXERCISE/NAME``.

    An exercise gives its first failed test; if all passed, its last.

    Raises `CallError` unless exactly one test fits.
    """
    results = {result.name: result for result in grade.exercises}
    name, _, rest = text.partition("/")
    units = {unit.name for unit in course.units}
    if not rest and name in units | course.exercises.keys():
        result = _graded(results, course.one(name, "name one exercise of it").name)
        return result, _first_failed(result) or result.tests[-1]
    if rest and name in course.exercises:
        return _one_test([_graded(results, name)], rest)
    return _one_test(list(grade.exercises), text)


def passed_exercise(course: Course, row: Row, text: str) -> ExerciseResult | None:
    """The exercise that a text names, if all its tests passed; else None."""
    results = {result.name: result for result in (row.grade.exercises if row.grade else ())}
    name = course.one(text, "name one exercise of it").name if text in course.exercises else ""
    return results[name] if name in results and results[name].solved else None


def _first_failed(result: ExerciseResult) -> TestResult | None:
    """The first failed test that carries points; without one, the first test that did not pass."""
    open_ = [test for test in result.tests if test.status != "passed"]
    failed = [test for test in open_ if test.status not in ("skipped", "missing")]
    # Sort the check of prerequisites to the end: it only refers to another exercise.
    failed.sort(key=lambda test: test.name == BASES)
    return next((test for test in failed if test.max), None) or next(iter(failed or open_), None)


def _graded(results: dict[str, ExerciseResult], exercise: str) -> ExerciseResult:
    if exercise not in results:
        raise CallError(f"{exercise} was not graded in this gradebook")
    return results[exercise]


def _one_test(results: Sequence[ExerciseResult], text: str) -> tuple[ExerciseResult, TestResult]:
    every = [(result, test) for result in results for test in result.tests]
    found = [
        (result, test)
        for result, test in every
        if text == test.name or text.casefold() == test.title.casefold()
    ]
    places = list(dict.fromkeys(f"{result.name}/{test.name}" for result, test in found))
    if len(places) > 1:
        raise CallError(f"{_shown(text)} may be {_listed(places)}: name one")
    if not found:
        near = _nearest(text, (name for _, test in every for name in (test.name, test.title)))
        raise CallError(f"there is no test called {_shown(text)}{near}")
    # A public and a hidden test may share a name: prefer a failed test, then a hidden one.
    return max(found, key=lambda pair: (pair[1].status != "passed", pair[1].hidden))


def _nearest(text: str, known: Iterable[str]) -> str:
    every = list(known)
    near = difflib.get_close_matches(text, every, n=1)
    near = near or [name for name in every if text.casefold() in name.casefold()]
    return f"; did you mean {escaped(near[0])}?" if near else ""


def _listed(names: Iterable[str]) -> str:
    every = [escaped(name) for name in names]
    more = f" and {len(every) - MOST_NAMED} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more


def _shown(text: str) -> str:
    return f"'{escaped(text)}'"
