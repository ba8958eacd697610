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
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader.grades.exported import BEGUN, DONE, Mark, Past, Push, Written, alike
from grader.grades.gradebook import Gradebook
from grader.intake.names import shown
from grader.lms.canvas import SYSTEM, about_points, directory_of
from grader.lms.canvas_api import TRIES, Api, CanvasRefused, Field, NotAllowed
from grader.lms.canvas_fetch import Attachment, User, find_assignment, path_of
from grader.lms.sheets import missing
from grader.lms.system import Totals
from grader.records.faults import CallError, Unreachable
from grader.records.rows import Row, called, number, some_of

COMMENT = "Feedback on your submission: see the attached page."
AS_POINTS = "display the grade as points in the assignment's settings"
REFUSED = f"Canvas stored another grade than the one that was sent: {AS_POINTS}"
ONE_GRADE = (
    "Canvas gives all members of a group the same grade, the one that is sent last: if corrections "
    "make them differ, first choose to assign grades to each student in the assignment's settings"
)
SEEN = [("include[]", "submission_comments"), ("include[]", "user")]
# Types of grading in Canvas that show or store something else than the points that are sent.
NO_POINTS = frozenset({"pass_fail", "gpa_scale", "letter_grade", "not_graded"})
HOPELESS = 3  # so many refusals at the beginning, and no success, mean that all will be refused


class _Comment(msgspec.Struct):
    attachments: list[Attachment] | None = None


class _State(msgspec.Struct):
    """A student's grade and comments in Canvas."""

    user_id: int
    user: User | None = None
    score: float | None = None
    entered_score: float | None = None  # before Canvas takes off points for lateness
    points_deducted: float | None = None
    late: bool | None = None
    excused: bool | None = None
    submission_comments: list[_Comment] | None = None

    @property
    def mark(self) -> float | None:
        return self.score if self.entered_score is None else self.entered_score

    @property
    def seen(self) -> tuple[float | None, bool]:
        """What a person may have changed."""
        return self.mark, bool(self.excused)

    def has(self, page: str) -> bool:
        # Canvas may add a number to the name of a file.
        stem = Path(page).stem
        comments = self.submission_comments or ()
        files = (file for comment in comments for file in comment.attachments or ())
        return any(file.name.startswith(stem) for file in files)


@dataclass(frozen=True)
class PushStep:
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
class PushPlan:
    """A push before it is done."""

    steps: Sequence[PushStep]
    column: str
    notes: Sequence[str]
    written: Mapping[str, Written]
    settled: Mapping[str, Written]  # grades of interrupted requests that are in Canvas
    targets: Mapping[str, _State]  # each student's state
    path: str  # of the assignment, below the API's address


def plan(
    api: Api,
    place: tuple[int, int],
    book: Gradebook,
    totals: Totals,
    pages: Mapping[str, Path],
    overwrite: Collection[str] = (),
    overwrite_all: bool = False,
) -> PushPlan:
    """Decide about each student of an assignment; `place` is the course's number, and its own.

    `pages` are the pages to send, by student. Raises `CallError` if no student of the gradebook is
    in Canvas, and as `Api.asking` does.
    """
    assignment, path = find_assignment(api, *place), path_of(*place)
    column = assignment.name
    if assignment.grading_type in NO_POINTS:
        raise CallError(
            f"{shown(column)!r} does not show points (its type is {assignment.grading_type}): "
            f"{AS_POINTS}"
        )
    found = api.every("the list of submissions", f"{path}/submissions", _State, *SEEN)
    directory = directory_of(totals.rows)
    targets: dict[str, _State] = {}
    strangers: list[str] = []
    doubled: set[str] = set()
    for state in found:
        user = state.user or User(state.user_id)
        names = (user.id, user.sis_user_id or "", user.login_id or "", user.name or "")
        row = directory.find([str(name) for name in names])
        if row is None:
            strangers.append(shown(user.name or str(user.id)))
        elif row.student in targets:
            doubled.add(row.student)
        else:
            targets[row.student] = state
    for student in doubled:
        del targets[student]
    rows = [row for row in totals.rows if row.student in targets]
    if not rows:
        raise CallError(
            f"no student of this gradebook is in {shown(column)!r}: is it another course's? If "
            "not, grade with the roster.csv of `grader canvas fetch`"
        )
    known = book.exported(SYSTEM.name).get(column, {})
    push = Push(Past({column: known}, overwrite, overwrite_all), column, BEGUN)
    steps = [_step(row, totals.of(row), targets[row.student], push, pages) for row in rows]
    deducted = [student for student, state in targets.items() if state.points_deducted]
    # Before the first grade, Canvas has taken off 0 points of late work, or says nothing.
    late = [student for student, state in targets.items()
            if state.late and state.points_deducted == 0]  # fmt: skip
    notes = [
        *about_points(assignment.points_possible, totals.most),
        *([ONE_GRADE] * assignment.grades_groups),
        *([f"Canvas itself takes points off late work: {some_of(deducted)}"] * bool(deducted)),
        *([f"Canvas itself may take points off late work: {some_of(late)}"] * bool(late)),
        *([f"in Canvas, but not in this gradebook: {some_of(strangers)}"] * bool(strangers)),
        *([f"left out, since two people in Canvas may be meant: {some_of(sorted(doubled))}"]
          * bool(doubled)),
        *missing(totals.rows, rows, "Canvas"),
    ]  # fmt: skip
    return PushPlan(steps, column, notes, push.written, _settled(known, targets), targets, path)


def _settled(known: Mapping[str, Written], targets: Mapping[str, _State]) -> Mapping[str, Written]:
    """The grades of interrupted requests that are in Canvas, so that no earlier ones count."""
    return {
        student: Written(one.points, DONE)
        for student, one in known.items()
        if one.view == BEGUN and student in targets and alike(targets[student].mark, one.points)
    }


def _step(
    row: Row, points: float | None, state: _State, push: Push, pages: Mapping[str, Path]
) -> PushStep:
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
    return PushStep(student, name, there, bool(state.excused), points, writes, page, why)


def page_name(page: Path) -> str:
    """The name of a page in Canvas, which changes with its content."""
    digest = hashlib.blake2b(page.read_bytes(), digest_size=8).hexdigest()
    return f"feedback-{digest}.html"


def carry_out(
    api: Api, plan: PushPlan, book: Gradebook, advance: Callable[[], None]
) -> Iterator[str]:
    """Send what the plan says, and yield a line for each student whom Canvas refused.

    Each grade is remembered in the gradebook as soon as it is there. Raises `CallError` if Canvas
    stores another grade than the one that was sent, and as `Api.asking` does.
    """
    acting = [step for step in plan.steps if step.acts]
    forbidden = 0
    for count, step in enumerate(acting, 1):
        try:
            _send(api, plan, step, book)
        except NotAllowed as error:
            forbidden += 1
            if forbidden == count == HOPELESS:
                raise
            yield f"{step.name}: {error}"
        except CanvasRefused as error:
            yield f"{step.name}: {error}"
        advance()


def _send(api: Api, plan: PushPlan, step: PushStep, book: Gradebook) -> None:
    """Send a student's grade and page in one request.

    Before each try, look what is there: a person may have changed it since the plan was made.
    """
    before = plan.targets[step.student]
    path = f"{plan.path}/submissions/{before.user_id}"
    written = plan.written.get(step.student) if step.writes else None
    for turn in range(1, TRIES + 1):
        try:
            state = api.one(f"the submission of {step.name}", path, _State, *SEEN)
            if not _is_done(step, state) and state.seen != before.seen:
                raise CanvasRefused("somebody changed the grade meanwhile, so it stays")
            changes = _changes(api, step, state, path)
            if changes:
                if written is not None:
                    book.remember_export(SYSTEM.name, plan.column, {step.student: written})
                state = api.change(f"the grade of {step.name}", path, _State, *changes)
                if step.writes and not _is_done(step, state):
                    raise CallError(f"{step.name}: {REFUSED}; it has {state.mark}")
        except Unreachable:
            if turn == TRIES:
                raise
            api.pause(turn)
        else:
            if written is not None:
                done = {step.student: Written(written.points, DONE)}
                book.remember_export(SYSTEM.name, plan.column, done)
            return


def _is_done(step: PushStep, state: _State) -> bool:
    """Whether a student's grade or excuse is in Canvas."""
    if step.new is None:
        return bool(state.excused)
    return not state.excused and alike(state.mark, step.new)


def _changes(api: Api, step: PushStep, state: _State, path: str) -> list[Field]:
    """What a student's submission still lacks, as the fields of a request."""
    changes: list[Field] = []
    if step.writes and not _is_done(step, state):
        excuse = ("submission[excuse]", "true")
        changes.append(
            excuse if step.new is None else ("submission[posted_grade]", number(step.new))
        )
    if step.page is not None and not state.has(page_name(step.page)):
        file = api.upload(f"{path}/comments/files", page_name(step.page), step.page.read_bytes())
        changes += [("comment[text_comment]", COMMENT), ("comment[file_ids][]", file)]
    return changes
