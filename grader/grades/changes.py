"""Compares two gradings: which students' grades changed, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from grader.course.course import Course
from grader.grades.gradebook import Gradebook, existing_gradebook
from grader.grades.privacy import pseudonyms
from grader.records.decisions import LATE
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, Grade, TestResult
from grader.records.rows import ABSENT, EXCUSED, Adjustment, Person, Row, csv_line, number
from grader.records.rows import corrected as corrected_words

# The settings of a grading that can change points while the submission stays the same.
DECIDING = ("seed", "course", "torch", "isolation", "device")
SECRET = frozenset({"seed"})  # settings whose change is reported without their values

REWEIGHTED = "the weights of its tests changed"
SHARED_OUT = "the penalty is a share of points that changed"
LATENESS = "the due time, the rule, an extension or the time of submission changed"
ANOTHER_TEXT = "another submission"


@dataclass(frozen=True)
class ChangedSetting:
    """A setting that differs between two gradings."""

    name: str  # one of `DECIDING`
    before: str | None  # None if the setting is `SECRET`
    after: str | None


@dataclass(frozen=True)
class TestChange:
    """A test whose status changed, or that earns points in only one of the gradings."""

    title: str
    before: str | None  # its status; None if the test did not exist
    after: str | None
    message: str  # the first line of its failure message

    __test__ = False

    @property
    def follows(self) -> bool:
        """Whether an earlier test decided this: skipped now, or skipped before and passed now."""
        return self.after == "skipped" or (self.before, self.after) == ("skipped", "passed")

    @property
    def words(self) -> str:
        """The test's title and the change of its status."""
        if self.before is None or self.after is None:
            return f"{self.title}: {'gone' if self.after is None else f'new, {self.after}'}"
        if self.before == self.after:
            return f"{self.title}: {self.after}, with another weight"
        return f"{self.title}: {self.before} → {self.after}"


@dataclass(frozen=True)
class ExerciseChange:
    """An exercise whose points changed, corrections included; or another part of the grade."""

    name: str
    before: float | None  # the points; None if the exercise was not graded
    after: float | None
    tests: tuple[TestChange, ...]
    reweighted: bool  # whether the points of the exercise or of any test changed
    corrected_before: Adjustment | None
    corrected_after: Adjustment | None
    counting: float  # the points by which the correction changes the total: see `Row.counting`
    penalty: str = ""  # why a penalty changed that no person changed

    @property
    def gained(self) -> float | None:
        """The points gained; negative if points were lost; None if it was not graded both times."""
        if self.before is None or self.after is None:
            return None
        return round(self.after - self.before, 3)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The changes that decided the points, in words; the tests that follow are left out."""
        weights = (REWEIGHTED,) * self.reweighted + (self.penalty,) * bool(self.penalty)
        return (*weights, *(test.words for test in self.tests if not test.follows))


@dataclass(frozen=True)
class StudentChange:
    """A student whose grade changed."""

    student: str
    status_before: str | None  # None if the student had no row
    status_after: str | None
    before: float | None  # the total; None if it is unknown
    after: float | None
    another_text: bool  # whether the student submitted another text
    exercises: tuple[ExerciseChange, ...]
    person: Person  # id, name and e-mail

    @property
    def grouped(self) -> Mapping[tuple[str, tuple[str, ...]], ExerciseChange]:
        """The changes for reasons that other students may share, by exercise and reasons.

        Not among them: corrections, and the exercises of a student who submitted another text.
        """
        if self.another_text:
            return {}
        return {
            (change.name, change.reasons): change
            for change in self.exercises
            if change.reasons and change.gained is not None
            if change.corrected_before is None and change.corrected_after is None
        }


@dataclass(frozen=True)
class SharedReason:
    """An exercise in which the points of several students changed for the same reasons."""

    exercise: str
    reasons: tuple[str, ...]
    students: tuple[StudentChange, ...]
    gained: tuple[float, float]  # the fewest and the most points that one of them gained


@dataclass(frozen=True)
class Changes:
    """The differences between two gradings."""

    settings: tuple[ChangedSetting, ...]
    students: tuple[StudentChange, ...]
    unchanged: int  # the number of students whose grade did not change

    @property
    def shared(self) -> tuple[SharedReason, ...]:
        """The reasons that concern at least two students, the most frequent first."""
        found: dict[tuple[str, tuple[str, ...]], list[StudentChange]] = {}
        for student in self.students:
            for key in student.grouped:
                found.setdefault(key, []).append(student)
        frequent = sorted(
            (key for key, students in found.items() if len(students) > 1),
            key=lambda key: -len(found[key]),
        )
        return tuple(_shared(*key, found[key]) for key in frequent)

    def anonymous(self, names: Mapping[str, str]) -> Changes:
        """Replace the names, and drop messages and reasons, which may contain real names."""
        return replace(
            self,
            students=tuple(
                replace(
                    change,
                    student=names[change.student],
                    exercises=tuple(map(_without_words, change.exercises)),
                    person=Person(),
                )
                for change in self.students
            ),
        )


def changes(
    old: Mapping[str, Row], new: Mapping[str, Row], another_text: Collection[str] = ()
) -> Changes:
    """Compare two gradings, each a dict from students to rows.

    `another_text` lists the students who submitted another text. A student counts as changed if the
    status, the total or the points of an exercise changed.
    """
    students = [
        change
        for student in sorted(old.keys() | new.keys())
        if (change := _student(old.get(student), new.get(student), student in another_text))
    ]
    both = old.keys() & new.keys()
    return Changes(
        tuple(_settings([old[s].grade for s in both], [new[s].grade for s in both])),
        tuple(students),
        len(old.keys() | new.keys()) - len(students),
    )


def compared(
    course: Course, new: Path, old: Path | None = None, anonymous: bool = False
) -> Changes:
    """Compare the gradebook `new` with the gradebook `old`.

    Without `old`, compare `new` with the grades that its last regrading replaced. If `anonymous`,
    students get the pseudonyms of `new`. Raises `CallError` if a gradebook is missing, or if `old`
    is None and `new` was never regraded.
    """
    with ExitStack() as stack:
        book = stack.enter_context(existing_gradebook(new, course.identity))
        after = {row.student: row for row in book.rows()}
        if old is not None:
            other = stack.enter_context(existing_gradebook(old, course.identity))
            before, texts = {row.student: row for row in other.rows()}, rewritten(other, book)
        else:
            run = book.last_run()
            if run is None:
                raise CallError(f"{new} was never regraded: name the gradebook to compare it with")
            before, texts = {row.student: row for row in book.rows(run)}, set()
        found = changes(before, after, texts)
        if not anonymous:
            return found
        return found.anonymous(pseudonyms(before.keys() | after.keys(), book.salt))


def rewritten(old: Gradebook, new: Gradebook) -> set[str]:
    """The students whose graded texts differ, among those whose text is in both gradebooks."""
    names = {row.student: row.grade.submission for row in old.rows() if row.grade is not None}
    found = set()
    for row in new.rows():
        before = old.submission(names.get(row.student, ""))
        after = new.submission(row.grade.submission) if row.grade is not None else None
        if before is not None and after is not None and before.sources != after.sources:
            found.add(row.student)
    return found


def _settings(old: list[Grade | None], new: list[Grade | None]) -> Iterator[ChangedSetting]:
    for name in DECIDING:
        before, after = _values(old, name), _values(new, name)
        if before != after:
            shown = (None, None) if name in SECRET else (", ".join(before), ", ".join(after))
            yield ChangedSetting(name, *shown)


def _values(grades: list[Grade | None], name: str) -> list[str]:
    found = [getattr(grade, name) for grade in grades if grade is not None]
    return sorted({value if isinstance(value, str) else " ".join(value) for value in found})


def _shared(
    exercise: str, reasons: tuple[str, ...], students: Sequence[StudentChange]
) -> SharedReason:
    gained = [student.grouped[exercise, reasons].gained or 0.0 for student in students]
    return SharedReason(exercise, reasons, tuple(students), (min(gained), max(gained)))


# --- a table to mail from ------------------------------------------------------------------------


COLUMNS = ("student", "id", "name", "email", "before", "after", "change", "reasons")


def changes_csv(changes: Changes) -> str:
    """A line for each student whose grade changed. It has no message of a hidden test."""
    lines = [csv_line(COLUMNS)]
    for one in changes.students:
        known = one.before is not None and one.after is not None
        gained = round((one.after or 0) - (one.before or 0), 3) if known else None
        person = one.person
        lines.append(
            csv_line(
                [
                    *(one.student, person.id, person.name, person.email),
                    *(one.before, one.after, gained),
                    "; ".join(_all_reasons(one)),
                ]
            )
        )
    return "".join(lines)


def _all_reasons(change: StudentChange) -> Iterator[str]:
    if change.status_before != change.status_after:
        yield f"{change.status_before or ABSENT} → {change.status_after or ABSENT}"
    if change.another_text:
        yield ANOTHER_TEXT
    for one in change.exercises:
        points = ["no points" if p is None else number(p) for p in (one.before, one.after)]
        corrected = one.corrected_after
        if corrected == one.corrected_before:
            correction = []
        elif corrected is None:
            correction = ["the correction was removed"]
        else:
            reason = f": {corrected.reason}" if corrected.reason else ""
            correction = [f"{corrected_words(corrected)}{reason}"]
        why = ", ".join([*one.reasons, *correction])
        yield f"{one.name} {' → '.join(points)}{f' ({why})' if why else ''}"


# --- a student -----------------------------------------------------------------------------------


def _student(old: Row | None, new: Row | None, another_text: bool) -> StudentChange | None:
    """The change of a student's grade; None if the grade is the same."""
    row = new or old
    assert row is not None
    change = StudentChange(
        row.student,
        old.status if old else None,
        new.status if new else None,
        old.total if old else None,
        new.total if new else None,
        another_text,
        tuple(_exercises(old, new)),
        Person(row.person.id, row.person.name, row.person.email),
    )
    if change.status_before == change.status_after == EXCUSED:
        return None  # whatever is computed does not count
    same = (change.status_before, change.before) == (change.status_after, change.after)
    return None if same and not change.exercises else change


def _exercises(old: Row | None, new: Row | None) -> Iterator[ExerciseChange]:
    """The exercises whose points changed; none unless both gradings gave the student points."""
    if old is None or new is None or not (old.has_points and new.has_points):
        return
    earlier, later = _by_part(old), _by_part(new)
    for name in dict.fromkeys([*earlier, *later]):
        before, after = earlier.get(name), later.get(name)
        if before != after:
            results = _result(old, name), _result(new, name)
            corrected = new.correction(name)
            same_rule = old.lateness == new.lateness
            penalty = (SHARED_OUT if same_rule else LATENESS) if name == LATE else ""
            yield ExerciseChange(
                name,
                before,
                after,
                tuple(_tests(*results)),
                _reweighted(*results),
                old.correction(name),
                corrected,
                new.counting(corrected) if corrected else 0.0,
                penalty if corrected == old.correction(name) else "",
            )


def _by_part(row: Row) -> dict[str, float]:
    """The points of each exercise, and of each other part that has or could have some."""
    others = (*row.questions, *sorted(row.parts - row.points.keys() - row.questions.keys()))
    return {**row.points, **{part: row.sum_of([part]) for part in others}}


def _result(row: Row, exercise: str) -> ExerciseResult | None:
    exercises = row.grade.exercises if row.grade else ()
    return next((result for result in exercises if result.name == exercise), None)


def _tests(old: ExerciseResult | None, new: ExerciseResult | None) -> Iterator[TestChange]:
    """The tests that changed; none if only one of the gradings has the exercise."""
    if old is None or new is None:
        return
    earlier, later = _by_name(old), _by_name(new)
    for name in dict.fromkeys([*earlier, *later]):
        before, after = earlier.get(name), later.get(name)
        if _outcome(before) != _outcome(after):
            yield _change(before, after)


def _by_name(result: ExerciseResult) -> dict[tuple[str, bool], TestResult]:
    """The tests by name and visibility, since a public and a hidden test may share a name."""
    return {(test.name, test.hidden): test for test in result.tests}


def _outcome(test: TestResult | None) -> tuple[str, bool] | None:
    # Do not compare points: they also change with the test's weight, which `_reweighted` reports.
    return (test.status, test.points > 0) if test else None


def _change(old: TestResult | None, new: TestResult | None) -> TestChange:
    both = [test for test in (new, old) if test is not None]
    message = next((test.message_with_case for test in both if test.message_with_case), "")
    return TestChange(
        both[0].title,
        old.status if old else None,
        new.status if new else None,
        message.strip().partition("\n")[0],
    )


def _reweighted(old: ExerciseResult | None, new: ExerciseResult | None) -> bool:
    return old is not None and new is not None and _weights(old) != _weights(new)


def _weights(result: ExerciseResult) -> tuple[object, ...]:
    return result.max, {name: test.max for name, test in _by_name(result).items()}


def _without_words(change: ExerciseChange) -> ExerciseChange:
    return replace(
        change,
        tests=tuple(replace(test, message="") for test in change.tests),
        corrected_before=_without_reason(change.corrected_before),
        corrected_after=_without_reason(change.corrected_after),
    )


def _without_reason(adjustment: Adjustment | None) -> Adjustment | None:
    return msgspec.structs.replace(adjustment, reason="") if adjustment else None
