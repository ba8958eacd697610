"""Sends the grades of a gradebook to Canvas, one student at a time, and each grade and page once.

Canvas may have done what a request asked for although its answer did not arrive. Therefore a
student's state in Canvas is read again before a request is repeated. A page's name there has a
digest of its content, so that a page that is there is recognised.

The memory of exports is that of ``grader export --to canvas``, with the assignment's title as the
column. So each of the two roads knows the grades that the other wrote, and may replace them, while
grades that a person entered stay on both. An assignment's number would be more exact, but the CSV's
memory has titles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from grader.grades.exported import Mark, Past, Push, Written, alike
from grader.grades.gradebook import Gradebook
from grader.intake.names import shown
from grader.lms.canvas import SYSTEM, about_points, directory_of
from grader.lms.canvas_api import TRIES, Api, Refused
from grader.lms.canvas_fetch import Attachment, User, find_assignment
from grader.lms.sheets import missing
from grader.lms.system import Totals
from grader.records.faults import CallError, Unreachable
from grader.records.rows import Row, called, number, some_of

# The views of the memory of exports: a grade whose request began, and a grade that is there. If
# this process is killed between the two, the next push looks which of them is true.
BEGUN, DONE = "api, begun", "api"
COMMENT = "Feedback on your submission: see the attached page."
REFUSED = "Canvas did not take the grade: display it as points in the assignment's settings"
ONE_GRADE = (
    "Canvas gives all members of a group the same grade, the one that is sent last: if corrections "
    "make them differ, first choose to assign grades to each student in the assignment's settings"
)
SEEN = ["submission_comments", "user"]


class _Comment(msgspec.Struct):
    attachments: list[Attachment] = []


class _State(msgspec.Struct):
    """A student's grade and comments in Canvas."""

    user_id: int
    user: User | None = None
    score: float | None = None
    entered_score: float | None = None  # before Canvas takes off points for lateness
    points_deducted: float | None = None
    excused: bool | None = None
    submission_comments: list[_Comment] = []

    @property
    def mark(self) -> float | None:
        return self.score if self.entered_score is None else self.entered_score

    def has(self, page: str) -> bool:
        # Canvas may add a number to the name of a file.
        stem = Path(page).stem
        files = (file for comment in self.submission_comments for file in comment.attachments)
        return any(file.name.startswith(stem) for file in files)


@dataclass(frozen=True)
class Step:
    """What happens to one student in Canvas, and what is there."""

    student: str
    name: str
    there: Mark
    excused_there: bool
    new: float | None  # points; None if the student is excused or has no grade
    writes: bool  # whether to send the points, or that the student is excused
    page: Path | None  # the page to send
    why: str  # the reason if nothing is written

    @property
    def acts(self) -> bool:
        """Whether anything is sent."""
        return self.writes or self.page is not None


@dataclass(frozen=True)
class Plan:
    """A push before it is done."""

    steps: Sequence[Step]
    column: str
    notes: Sequence[str]
    written: Mapping[str, Written]
    targets: Mapping[str, tuple[_State, Any]]  # each student's state, and canvasapi's submission
    assignment: Any  # canvasapi's assignment


def plan(
    api: Api,
    place: tuple[int, int],
    book: Gradebook,
    totals: Totals,
    pages: Mapping[str, Path],
    overwrite: Collection[str] = (),
    overwrite_all: bool = False,
) -> Plan:
    """Decide about each student of an assignment; `place` is the course's number, and its own.

    `pages` are the pages to send, by student. Raises `CallError` if no student of the gradebook is
    in Canvas, and as `Api.asking` does.
    """
    assignment, _, handle = find_assignment(api, *place)
    column = assignment.name
    found = api.every(handle.get_submissions(include=SEEN), _State)
    directory = directory_of(totals.rows)
    targets: dict[str, tuple[_State, Any]] = {}
    strangers: list[str] = []
    doubled: set[str] = set()
    for state, submission in found:
        user = state.user or User(state.user_id)
        row = directory.find([str(user.id), user.sis_user_id or "", user.login_id or "",
                              user.name or ""])  # fmt: skip
        if row is None:
            strangers.append(shown(user.name or str(user.id)))
        elif row.student in targets:
            doubled.add(row.student)
        else:
            targets[row.student] = state, submission
    for student in doubled:
        del targets[student]
    rows = [row for row in totals.rows if row.student in targets]
    if not rows:
        raise CallError(
            f"no student of this gradebook is in {shown(column)!r}: is it another course's? If "
            "not, grade with the roster.csv of `grader canvas fetch`"
        )
    marks = {student: state.mark for student, (state, _) in targets.items()}
    known = _settled(book, column, marks)
    push = Push(Past({column: known}, overwrite, overwrite_all), column, BEGUN)
    steps = [_step(row, totals.of(row), targets[row.student][0], push, pages) for row in rows]
    deducted = [student for student, (state, _) in targets.items() if state.points_deducted]
    notes = [
        *about_points(assignment.points_possible, totals.most),
        *([ONE_GRADE] * assignment.grades_groups),
        *([f"Canvas itself takes points off late work: {some_of(deducted)}"] * bool(deducted)),
        *([f"in Canvas, but not in this gradebook: {some_of(strangers)}"] * bool(strangers)),
        *([f"left out, since two people in Canvas may be meant: {some_of(sorted(doubled))}"]
          * bool(doubled)),
        *missing(totals.rows, rows, "Canvas"),
    ]  # fmt: skip
    return Plan(steps, column, notes, push.written, targets, handle)


def _settled(book: Gradebook, column: str, marks: Mapping[str, Mark]) -> Mapping[str, Written]:
    """The grades that exports wrote, after a look whether interrupted requests were done."""
    known = book.exported(SYSTEM.name).get(column, {})
    done = {
        student: replace(one, view=DONE)
        for student, one in known.items()
        if one.view == BEGUN and alike(marks.get(student), one.points)
    }
    book.remember_export(SYSTEM.name, column, done)
    return {**known, **done}


def _step(
    row: Row, points: float | None, state: _State, push: Push, pages: Mapping[str, Path]
) -> Step:
    student, there, why = row.student, state.mark, ""
    by_hand = "not from this gradebook: --overwrite NAME replaces it"
    page = None
    if row.excused:
        why = "excused in both" if state.excused else ""
        writes = not state.excused and push.may_replace(student, there)
        why = why or ("" if writes else by_hand)
    elif points is None:
        writes, why = False, f"no grade: {row.status}"
    elif state.excused and not push.is_named(student):
        writes, why = False, "excused in Canvas: --overwrite NAME gives a grade"
    else:
        writes = push.writes(student, points, None if state.excused else there)
        ours = writes or student in push.same
        why = "" if writes else "the same already" if ours else by_hand
        # A page tells the gradebook's points: it would contradict a grade that a person gave.
        page = pages.get(student) if ours else None
        if page is not None and state.has(page_name(page)):
            page = None
    name = called(student, shown(row.person.name))
    return Step(student, name, there, bool(state.excused), points, writes, page, why)


def page_name(page: Path) -> str:
    """The name of a page in Canvas, which changes with its content."""
    digest = hashlib.blake2b(page.read_bytes(), digest_size=8).hexdigest()
    return f"feedback-{digest}.html"


def carry_out(api: Api, plan: Plan, book: Gradebook, advance: Callable[[], None]) -> Iterator[str]:
    """Send what the plan says, and yield a line for each student whom Canvas refused.

    Each grade is remembered in the gradebook as soon as it is there. Raises as `Api.asking` does.
    """
    for step in plan.steps:
        if not step.acts:
            continue
        written = plan.written.get(step.student) if step.writes else None
        if written is not None:
            book.remember_export(SYSTEM.name, plan.column, {step.student: written})
        try:
            _send(api, plan, step)
        except Refused as error:
            yield f"{step.name}: {error}"
        else:
            if written is not None:
                done = {step.student: replace(written, view=DONE)}
                book.remember_export(SYSTEM.name, plan.column, done)
        advance()


def _send(api: Api, plan: Plan, step: Step) -> None:
    """Send a student's grade and page in one request; look at the state before another try."""
    state, submission = plan.targets[step.student]
    before = state.mark
    for turn in range(1, TRIES + 1):
        if state.mark != before and not alike(state.mark, step.new or 0):
            raise Refused("somebody changed the grade meanwhile, so it stays")
        try:
            changes = _changes(api, step, state, submission)
            if changes:
                with api.asking(f"grade of {step.name}"):
                    submission.edit(**changes)
                    state = api.data(submission, _State)
                if "submission" in changes and not _is_done(step, state):
                    raise Refused(f"{REFUSED}; it has {state.mark}")
            return
        except Unreachable:
            if turn == TRIES:
                raise
        api.pause(turn)
        with api.asking(f"submission of {step.name}"):
            again = plan.assignment.get_submission(state.user_id, include=SEEN)
            state = api.data(again, _State)


def _is_done(step: Step, state: _State) -> bool:
    """Whether a student's grade or excuse is in Canvas."""
    if step.new is None:
        return bool(state.excused)
    return not state.excused and alike(state.mark, step.new)


def _changes(api: Api, step: Step, state: _State, submission: Any) -> dict[str, Any]:
    """What a student's submission still lacks, as arguments of canvasapi's `edit`."""
    changes: dict[str, Any] = {}
    if step.writes and not _is_done(step, state):
        points = {"excuse": True} if step.new is None else {"posted_grade": number(step.new)}
        changes["submission"] = points
    if step.page is not None and not state.has(page_name(step.page)):
        place = (
            f"courses/{submission.course_id}/assignments/{submission.assignment_id}"
            f"/submissions/{state.user_id}/comments/files"
        )
        file = api.upload(place, page_name(step.page), step.page.read_bytes())
        changes["comment"] = {"text_comment": COMMENT, "file_ids": [file]}
    return changes
