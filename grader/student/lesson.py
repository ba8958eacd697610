"""A student's work on a course: the state of each exercise, verdicts, hints and saves.

`grader check`, `grader watch`, notebooks and the server for tutors each show a `Lesson`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.course.course import Course
from grader.course.statements import Statement, opening, statement
from grader.feedback.terminal import all_asked
from grader.feedback.verdict import Verdict, verdict_of
from grader.intake.own import NOTEBOOKS
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.student.answers import UNKNOWN, Digests, definitions, digests_of
from grader.student.progress import (
    Asked,
    LastCheck,
    Progress,
    last_checks,
    read_progress,
    record_progress,
)
from grader.student.standing import Standing

NOT_RECORDED = "progress is not recorded: {}"
NO_HINTS = "{} has no hints"
ALL_SOLVED = "all exercises are solved: name an exercise to get its hints"
LAST_HINT = "this is the last hint"
FREE = "hints cost no points"
HIDDEN = "hidden tests look at the same rules on other inputs"


@dataclass(frozen=True)
class Hint:
    """One hint of an exercise."""

    name: str
    level: int  # from 1 to `of`
    of: int
    text: str


@dataclass(frozen=True)
class Closing:
    """The lines below the verdicts of a check; an empty line is not shown."""

    count: str
    hidden: str
    next: str


class Lesson:
    """The state of one student's work on one course.

    If the progress file cannot be read or written, `unrecorded` says why; verdicts and hints still
    work.
    """

    def __init__(self, course: Course, digests: Digests | None = None) -> None:
        """`digests` are those of the student's answers; by default, those of the saved files."""
        self.course = course
        self.unrecorded = ""
        self.verdicts: dict[str, Verdict] = {}  # the last verdict of each exercise in this lesson
        progress = Progress()
        try:
            progress = read_progress(course.folder)
        except CallError as error:
            self.unrecorded = NOT_RECORDED.format(error)
        self.standing = Standing(
            course, progress, digests_of(course) if digests is None else digests
        )
        self._written = definitions(course)
        self._statements: dict[str, Statement] = {}
        self._openings: dict[str, str] = {}  # the introductions of units, by unit

    # --- statements ------------------------------------------------------------------------------

    def statement(self, name: str) -> Statement | str:
        """The statement of an exercise, or a message if the statement cannot be read.

        If the student has broken the file or deleted the docstring, the statement that was
        read earlier is returned.
        """
        try:
            found = statement(self.course, name)
        except CallError as error:
            return self._statements.get(name, str(error))
        if not found.text and name in self._statements:
            return self._statements[name]
        self._statements[name] = found
        return found

    def about_unit(self, name: str) -> str:
        """The introduction of a unit, if this is the unit's first exercise; otherwise empty."""
        unit = self.course.unit_of[name]
        if name != next(one for one, its in self.course.unit_of.items() if its == unit):
            return ""
        if unit not in self._openings:
            self._openings[unit] = opening(self.course, unit)
        return self._openings[unit]

    # --- checks ----------------------------------------------------------------------------------

    def record(
        self,
        results: Iterable[ExerciseResult],
        digests: Digests | None = None,
        *,
        named: bool | None,
    ) -> tuple[Verdict, ...]:
        """Record the results of a check in the progress, and return the verdicts.

        `digests` belong to the answers that were checked; by default, the lesson's own digests are
        used. `named` says whether the student named exercises; otherwise all were checked. With
        None, the student asked for no check, and stays at the same place.
        """
        results = tuple(results)
        before = self.standing.progress.solved
        if digests is not None:
            self.standing = replace(self.standing, digests=digests)
        checked = last_checks(results, self.standing.digests)
        place = "" if named is False else next(reversed(checked), None) if named else None
        self._record(checked=checked, place=place)
        verdicts = tuple(verdict_of(result, result.name in before) for result in results)
        self.verdicts |= {verdict.exercise: verdict for verdict in verdicts}
        return verdicts

    def passed(self, name: str) -> None:
        """Record that an exercise passed all checks; for `grader check --show`, without results."""
        digest = self.standing.digests.get(name, UNKNOWN)
        self._record(checked={name: LastCheck(True, digest)}, place=name)

    def saved(self) -> Sequence[str]:
        """The exercises whose saved definitions have changed since the last call."""
        before, self._written = self._written, definitions(self.course)
        return [n for n in self.course.exercises if before.get(n) != self._written.get(n)]

    # --- hints -----------------------------------------------------------------------------------

    def hint(self, name: str) -> Hint:
        """Give the first unread hint, or the last hint if all are read; record the hint as read."""
        hints = self.course.one(name, "a hint is for one exercise").hints
        if not hints:
            raise CallError(NO_HINTS.format(name))
        level = min(self.standing.progress.hints.get(name, 0) + 1, len(hints))
        self._record(hints={name: level})
        return Hint(name, level, len(hints), hints[level - 1])

    # --- questions -------------------------------------------------------------------------------

    def asked(self, name: str, right: int, of: int, digest: str) -> None:
        """Record how many replies to questions about an answer were right."""
        self._record(asked={name: Asked(right, of, digest)})

    def refresh(self) -> None:
        """Read the progress again, which another command may have changed."""
        self._record()

    def _record(self, **news: Any) -> None:
        try:
            # Another window may have changed the file: `record_progress` reads the file again.
            progress, self.unrecorded = record_progress(self.course.folder, **news), ""
        except CallError as error:
            progress = self.standing.progress.with_(**news)
            self.unrecorded = NOT_RECORDED.format(error)
        self.standing = replace(self.standing, progress=progress)


def closing(
    course: Course,
    verdicts: Sequence[Verdict],
    standing: Standing | None,
    *,
    named: bool,
    in_cells: bool = False,
) -> Closing:
    """The lines below the verdicts of a check.

    `named` says whether the student named exercises; otherwise all were checked. Answers in another
    folder have no `standing`: then the next exercise is the first wrong exercise.
    """
    solved = sum(verdict.solved for verdict in verdicts)
    of = len(verdicts) if named or in_cells else all_asked(course)
    wrong = next((verdict.exercise for verdict in verdicts if not verdict.solved), None)
    todo = None
    if wrong is None or not named:
        todo = standing.next if standing is not None else wrong
    return Closing(
        f"{solved} of {of} pass the public checks",
        HIDDEN if wrong is None else "",
        f"next: {todo}, in {_file_of(course, todo, in_cells)}" if todo is not None else "",
    )


def _file_of(course: Course, name: str, in_cells: bool) -> str:
    unit = course.unit_of[name]
    notebook = course.folder.parent / NOTEBOOKS / f"{unit}.ipynb"
    return notebook.name if in_cells and notebook.is_file() else course.stub_file(unit).name
