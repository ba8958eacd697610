"""`grader.check` and the other functions for a notebook's cells.

A check sends the text of the cells that ran to a worker process, which loads the answers as a
grading does. Therefore an answer cannot harm the notebook's kernel.
"""

from __future__ import annotations

import atexit
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.course.course import Course, NoCourse, find_course, load_course
from grader.feedback import terminal
from grader.feedback.verdict import Finding, verdict_of
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.inspection.cases import Bench
from grader.inspection.screen import show_cases
from grader.inspection.tracing import traced
from grader.intake import Submission
from grader.intake.own import read_answers
from grader.records.faults import CallError
from grader.records.grade import BASES, EXISTS, SIGNATURE, ExerciseResult
from grader.student import packing
from grader.student.answers import Digests, digests_of
from grader.student.asking import YOUR_REPLY, exercise_to_ask, hold, questions_on, summary
from grader.student.cells import Cells, cells_of, running_shell
from grader.student.checking import check_exercises
from grader.student.lesson import ALL_SOLVED, FREE, LAST_HINT, Lesson, closing
from grader.student.listing import as_text, listed
from grader.student.notebook_display import (
    BOX,
    OTHER_GROUND,
    Checked,
    CheckStopped,
    Lines,
    NotChecked,
    on_page,
    text,
)
from grader.student.progress import read_progress
from grader.student.reward import reward
from grader.student.scripts import experiments_of, run_experiment
from grader.student.standing import Standing
from grader.unsandboxed.in_process import undisturbed
from grader.unsandboxed.worker import of_this_kernel

LAST_CELL = "run the last cell of its notebook"
NOTHING_DEFINED = "no exercise of the course is defined yet: run a cell that defines one"
NO_CELLS = (
    "grader.check reads a notebook's cells, and there are none here: in a terminal, type "
    "grader check {}"
)
LAST_IS_SOLVED = '{}, which you checked last, is solved: name an exercise, as in grader.hint("{}")'
NO_REPLIES = "there is no field for replies here: in a terminal, type grader ask {}"
NO_COURSE = (
    "there is no course.toml in {here} or in a folder above: name the course's folder, as in "
    'grader.check(..., course="path/to/exercises")'
)


def check(
    *names: str | Callable[..., Any], show: bool = False, course: str | Path | None = None
) -> Checked | Lines:
    """Run the public checks of these exercises or units on the answers in the notebook's cells.

    Without names, all exercises that the notebook defines are checked. With `show`, one exercise is
    traced: its inputs, its shapes line by line, and its prints. `course` is the folder of
    ``course.toml``; by default, the nearest such folder upward. The progress file there records
    solved exercises. Raises `CallError` outside of IPython, and if there is nothing to check.
    """
    called = [name if isinstance(name, str) else getattr(name, "__name__", "") for name in names]
    try:
        folder, shell = found_course(course), running_shell()
        if shell is None:
            raise CallError(NO_CELLS.format(" ".join(called)).rstrip())
        cells, desk = cells_of(shell), _desks.at(folder)
        with undisturbed():
            return _shown(called, desk, cells) if show else _checked(called, desk, cells)
    except CallError as error:
        raise NotChecked(str(error)) from None
    except KeyboardInterrupt:
        raise CheckStopped("stopped") from None


def _checked(called: Sequence[str], desk: Desk, cells: Cells) -> Checked:
    course = desk.course
    chosen = course.select(called)
    if not called:
        chosen = tuple(name for name in chosen if name in cells.names)
        if not chosen:
            raise CallError(NOTHING_DEFINED)
    digests = digests_of(course, cells.ran)
    submission = Submission("you", cells.sources(course))
    results = tuple(check_exercises(desk, submission, chosen, _desks.solved))
    _desks.solved |= {result.name for result in results if result.solved}
    _desks.checked = next((r.name for r in results if not r.solved), chosen[-1])
    solved = {result.name: result.solved for result in results}
    notes = cells.notes(course, submission.sources, solved)
    return _remembered(course, results, digests, bool(called), notes)


def _shown(called: Sequence[str], desk: Desk, cells: Cells) -> Lines:
    """The trace of one exercise's checks, in this process, like ``grader check --show``."""
    if len(called) != 1:
        raise CallError('show=True is for one exercise: grader.check("causal_mask", show=True)')
    desk.course.one(called[0], "name one exercise of it")
    bench = Bench(desk, called[0], Submission("you", cells.sources(desk.course)))
    return Lines(on_page(lambda console: show_cases(traced(bench), console)))


def found_course(given: str | Path | None) -> Path:
    """The folder of the course: `given`, or else the nearest course upward."""
    if given is not None:
        return find_course(Path(given))
    try:
        return find_course(None, student=True)
    except NoCourse:
        raise CallError(NO_COURSE.format(here=Path.cwd())) from None


def _remembered(
    course: Course,
    results: tuple[ExerciseResult, ...],
    digests: Digests,
    named: bool,
    notes: Sequence[str],
) -> Checked:
    """Record the results in the progress, and return the verdicts."""
    lesson = Lesson(course, digests)
    verdicts = lesson.record(results, named=named)
    more = [*notes, *filter(None, [lesson.unrecorded])]
    brought = None
    if len(results) == 1 and results[0].solved and not lesson.unrecorded:
        brought = reward(lesson.standing, results[0].name)
        brought = replace(brought, look=LAST_CELL if brought.look else "")
    solved_before = frozenset(one.exercise for one in verdicts if one.solved_before)
    below = closing(course, verdicts, lesson.standing, named=named, in_cells=True)
    return Checked(results, solved_before, below, brought, tuple(more))


class _Desks:
    """The open desks, by the course's folder. A desk stays open, because opening takes seconds."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._open: dict[Path, Desk] = {}
        self.solved: set[str] = set()  # the exercises that were solved in this kernel
        # Of the last check: the first wrong exercise, or the last exercise if all are right.
        self.checked: str | None = None
        atexit.register(self._stack.close)

    def at(self, folder: Path) -> Desk:
        """The desk of the course in this folder, opened at the first call."""
        if folder not in self._open:
            course = load_course(folder)
            order = Order(
                course,
                course.seed,
                dict.fromkeys(course.check_files(), False),
                stubs=False,
                backend=nullcontext(of_this_kernel()),
                isolation="weak",
            )
            with undisturbed():
                self._open[folder] = self._stack.enter_context(order.desk())
        return self._open[folder]


_desks = _Desks()


# --- hints ---------------------------------------------------------------------------------------
#
# `grader.hint`: the next hint of an exercise.


@dataclass(frozen=True, repr=False)
class Hint:
    """A hint, which notebooks show as HTML."""

    name: str
    level: int
    of: int
    hint: str
    note: str = ""

    def __repr__(self) -> str:
        head = f"{self.name}, hint {self.level} of {self.of}"
        return "\n".join(filter(None, (head, terminal.safe(self.hint), *self._below)))

    def _repr_html_(self) -> str:
        head = f"<p><strong>{text(self.name)}</strong>, hint {self.level} of {self.of}</p>"
        below = "".join(f"<p><em>{text(line)}</em></p>" for line in self._below)
        style = BOX.format(ground=OTHER_GROUND)
        return f'<div style="{style}">{head}<p>{text(self.hint)}</p>{below}</div>'

    @property
    def _below(self) -> tuple[str, ...]:
        another = (
            f'the next hint: grader.hint("{self.name}")' if self.level < self.of else LAST_HINT
        )
        return tuple(filter(None, (f"{another}; {FREE}", self.note)))


def hint(name: str | Callable[..., Any] | None = None, *, course: str | Path | None = None) -> Hint:
    """Give the next hint: first a question, then a pointer, then nearly the solution.

    Without a name, the hint is for the exercise that was checked last in this kernel; after a check
    of several exercises, for the first wrong one. Before any check, it is for the next exercise.
    The progress file next to ``course.toml`` records that the hint was read. Raises `CallError` if
    there is no hint, or if no name is given and the exercise checked last is solved.
    """
    try:
        asked = getattr(name, "__name__", "") if callable(name) else name
        return _hint(load_course(found_course(course)), asked)
    except CallError as error:
        raise NotChecked(str(error)) from None


def _hint(course: Course, name: str | None) -> Hint:
    lesson = Lesson(course, digests_of(course, cells_of(running_shell()).ran))
    given = lesson.hint(name or _last_checked(lesson.standing))
    return Hint(given.name, given.level, given.of, given.text, lesson.unrecorded)


def _last_checked(standing: Standing) -> str:
    """The exercise that was checked last; before any check in this kernel, the next exercise."""
    last, following = _desks.checked, standing.next
    if following is None:
        raise CallError(ALL_SOLVED)
    if last is None or last not in standing.course.exercises:
        return following
    if standing.is_solved(last):
        raise CallError(LAST_IS_SOLVED.format(last, following))
    return last


# --- questions -----------------------------------------------------------------------------------


def ask(
    name: str | Callable[..., Any] | None = None,
    *,
    again: bool = False,
    course: str | Path | None = None,
) -> Lines:
    """Ask questions about a solved answer, one after another.

    They are about the answer in the notebook's cells, or else about the saved one. Without a name,
    the exercise is the one that was solved last. With `again`, the questions are others than the
    last time. The progress file records how many replies were right. Raises `CallError` if the
    exercise is not solved.
    """
    asked = getattr(name, "__name__", "") if callable(name) else name
    try:
        desk, cells = _desks.at(found_course(course)), cells_of(running_shell())
        lesson = Lesson(desk.course, digests_of(desk.course, cells.ran))
        chosen = exercise_to_ask(lesson.standing, asked)
        if cells.found(desk.course, chosen).status == "found":
            submission = Submission("you", cells.sources(desk.course))
        else:
            submission = read_answers(desk.course.folder, desk.course)
        with undisturbed():
            seed = secrets.token_hex(4) if again else ""
            questions = questions_on(desk, submission, chosen, seed)
        try:
            right = hold(lesson, chosen, questions, print, lambda: input(YOUR_REPLY))
        except (EOFError, RuntimeError):  # this front end has no field for replies
            raise CallError(NO_REPLIES.format(chosen)) from None
        return Lines(summary(chosen, right, len(questions)))
    except CallError as error:
        raise NotChecked(str(error)) from None
    except KeyboardInterrupt:
        raise CheckStopped("stopped; nothing is recorded") from None


# --- experiments ---------------------------------------------------------------------------------


def experiment(name: str, *, course: str | Path | None = None) -> None:
    """Run an experiment of the course, or all experiments of an exercise.

    An experiment shows why a rule holds. It uses the student's answers if they are solved, and
    stand-ins otherwise. Raises `CallError` for an unknown name.
    """
    try:
        opened = load_course(found_course(course))
        for one in experiments_of(opened, name):
            run_experiment(opened, one)
    except CallError as error:
        raise NotChecked(str(error)) from None


# --- the list, and the zip ------------------------------------------------------------------------


def list_(*names: str, course: str | Path | None = None) -> Lines:
    """List the exercises with their states, and the next exercise to solve."""
    try:
        opened = load_course(found_course(course))
        digests = digests_of(opened, cells_of(running_shell()).ran)
        standing = Standing(opened, read_progress(opened.folder), digests)
        return Lines(as_text(listed(opened.select(names), standing)))
    except CallError as error:
        raise NotChecked(str(error)) from None


def pack(
    to: str | Path | None = None, *, anyway: bool = False, course: str | Path | None = None
) -> Lines:
    """Check the saved files, and write the zip to submit, as ``grader pack`` does.

    The zip is ``answers.zip`` next to the course's folder, unless `to` names another path. If an
    exercise is unsolved, or if a file cannot be packed, the zip is written only with `anyway`.
    """
    try:
        with undisturbed():
            opened = load_course(found_course(course))
            # Not next to the notebook: students run `grader pack` in the folder above the course.
            place = Path(to) if to is not None else opened.folder.parent / packing.ZIP_NAME
            return _pack(opened, place, anyway)
    except CallError as error:
        raise NotChecked(str(error)) from None


def _pack(course: Course, to: Path, anyway: bool) -> Lines:
    packed = packing.pack_answers(course, to)
    objections = [*packing.objections(course, packed, read_progress(course.folder))]
    unsaved = [r.name for r in packed.results if r.name in _desks.solved and not r.solved]
    if unsaved:
        objections.append(
            f"solved in this kernel, but not in the saved files: {', '.join(sorted(unsaved))} "
            "(save the notebook, and pack again)"
        )
    as_it_is = "grader.pack(anyway=True)"
    return Lines("\n".join(packing.settle(course, packed, objections, to, as_it_is, anyway)))


# --- asserting -----------------------------------------------------------------------------------
#
# `require` asserts that one public check passes. The tests for otter call it, because otter runs
# one check at a time.
#
# Each call runs all checks of the exercise, because a verdict depends on the earlier checks.


NOT_TRIED = "not tried, because an earlier check does not pass: {title}"


def require(exercise: str, test: str) -> None:
    """Raise `AssertionError` unless one check of an exercise passes on the notebook's answer.

    `test` is the name of a public check, or ``operations`` for the forbidden operations. Raises
    `CallError` if there is nothing to check.
    """
    checked = check(exercise)
    assert isinstance(checked, Checked)
    (result,) = checked.results
    findings = verdict_of(result).findings
    found = next((one for one in findings if one.name == test), None)
    if found is None or found.status != "passed":
        raise AssertionError(terminal.safe("\n".join(_told(findings, found))))


def _told(findings: Sequence[Finding], found: Finding | None) -> Iterator[str]:
    """The reason why a check did not pass: its own message, or that of the first failing check."""
    first = next(one for one in findings if one.status != "passed")
    if found is None or found.status in ("missing", "skipped"):
        # Otter has no tests for existence, signature and bases: their message is shown here.
        asked = first.name in (EXISTS, SIGNATURE, BASES)
        yield first.message if asked else NOT_TRIED.format(title=first.title)
        return
    below = [one.message for one in findings if one.name == BASES]
    yield from filter(None, (*below, found.message, *found.named))
