"""Prints corrections, removals and differences of a gradebook, and computes nothing else.

Names, messages and source lines come from students. Therefore they are printed without markup.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo

from rich.console import Console

from grader.course.course import Course
from grader.feedback.terminal import print_plain, safe
from grader.grades.changes import (
    ANOTHER_TEXT,
    REWEIGHTED,
    Changes,
    ExerciseChange,
    SharedReason,
    StudentChange,
)
from grader.grades.corrections import Correction
from grader.grades.losses import ExerciseLosses, Losses, OtherLine
from grader.grades.privacy import Forgotten
from grader.records.decisions import Decision
from grader.records.rows import (
    Adjustment,
    Row,
    corrected,
    counted,
    limited,
    number,
    some_of,
    with_sign,
)
from grader.records.times import shown_time

SETTINGS = {
    "seed": "the hidden seed changed",
    "course": "the course's tests, references or mistakes changed",
    "torch": "torch {} is now {}",
    "isolation": "isolation by {} is now by {}",
    "device": "the device {} is now {}",
}
TABLES = {
    "grades": "the grade",
    "earlier": "grades of earlier runs ({})",
    "people": "the line of the roster",
    "decisions": "corrections and other decisions ({})",
    "exported": "exported grades ({})",
    "submissions": "the text",
}
SHARED = "the submission stays in the gradebook for those who share it"
UNTIMED = "the time of the submission is not known, so with an extension it is in time"
OTHERS = "unchanged files, for you to make again or delete"
ELSEWHERE = (
    "remove the student yourself from: the submissions, the roster's file, exports, backups, and "
    "other systems. If the submissions still include the student, the next grading adds them again."
)
BONUS = "that is more than the exercise is worth: a bonus? 0 removes the correction"
NOTHING = "no grade changed"
FOLLOWING = {
    "skipped": "later tests, skipped now because of these changes: {}",
    "passed": "later tests, skipped before and passed now: {}",
}
STILL_SET = (
    "a person set the points to {}{}, whatever is computed. If the corrected fault is fixed now, "
    "remove the correction with 0"
)
STILL_CORRECTED = (
    "{} still counts on top{}. If the corrected fault is fixed now, remove the correction with 0"
)


# --- corrections and removals --------------------------------------------------------------------


def show_corrections(corrections: Sequence[Correction], course: Course, console: Console) -> None:
    """Print each correction with its points before and after, then their number."""
    for one in corrections:
        _corrected(one, course, console)
    if len(corrections) > 1:
        students = len({one.before.student for one in corrections})
        print_plain(
            console, f"{len(corrections)} corrections, of {counted(students, 'student')}", "bold"
        )


def _corrected(one: Correction, course: Course, console: Console) -> None:
    before, after, part = one.before, one.after, one.part
    parts = {*after.within(part), part}
    points = _arrow(number(before.sum_of(parts)), number(after.sum_of(parts)))
    totals = _arrow(_points(before.total), _points(after.total))
    most = course.most_of(part)
    of_most = "" if most is None else f" of {number(most)}"
    changes = f"{part} {points}{of_most}", f"total {totals}"  # the same if the part is the total
    print_plain(console, f"{after.student}: {', '.join(dict.fromkeys(changes))}")
    print_plain(console, _correction(before.correction(part), after.correction(part)))
    if most is not None and after.sum_of(parts) > most:
        print_plain(console, BONUS, "yellow")
    for line in after.limits:
        print_plain(console, line, "yellow")


def show_decisions(
    new: Sequence[Decision],
    before: Mapping[str, Row],
    after: Mapping[str, Row],
    course: Course,
    console: Console,
) -> None:
    """Print each new decision, with the student's total if it changed."""
    both = before, after
    for one in new:
        print_plain(console, f"{one.student}: {_decided(one, course.zone)}")
        late = before[one.student].lateness if one.student in before else None
        if one.kind == "extension" and not one.removed and late and late.seconds is None:
            print_plain(console, UNTIMED, indent=2)
        totals = [rows[one.student].total if one.student in rows else None for rows in both]
        if totals[0] != totals[1]:
            print_plain(console, f"total {_arrow(*map(_points, totals))}", indent=2)
    if not new:
        print_plain(console, "nothing is new: these decisions stand already")


def show_history(decisions: Sequence[Decision], zone: tzinfo | None, console: Console) -> None:
    """Print when, what, why and by whom, the oldest first."""
    for one in decisions:
        when = shown_time(datetime.fromisoformat(one.when), zone) if one.when else "earlier"
        by = f" by {one.by}" if one.by else ""
        reason = f": {one.text}" if one.text and one.kind != "comment" else ""
        print_plain(console, f"{when}{by}  {one.student}: {_decided(one, zone)}{reason}")
    if not decisions:
        print_plain(console, "nobody has decided anything yet")


def _decided(one: Decision, zone: tzinfo | None) -> str:
    """What was decided, without the reason."""
    about = f" about {one.part}" if one.part else ""
    match one.kind:
        case "points":
            given = Adjustment(one.part, one.points, "", one.sets)
            return f"{one.part}: " + ("correction removed" if one.removed else given.words)
        case "comment":
            return f"comment{about} removed" if one.removed else f"comment{about}: {one.text}"
        case "extension":
            if one.removed:
                return "extension removed"
            return f"extended until {shown_time(datetime.fromisoformat(one.until), zone)}"
        case "excused":
            return "no longer excused" if one.removed else "excused"
        case "assigned":
            return f"submission {one.part!r} " + (
                "no longer theirs" if one.removed else "is theirs"
            )


def question(row: Row) -> str:
    """The question before a student is removed."""
    known = [row.person.name] if row.person.name else []
    total = [] if row.total is None else [counted(row.total, "point")]
    about = f" ({', '.join([*known, *total])})" if known or total else ""
    return safe(f"remove {row.student}{about} permanently?")


def show_forgotten(gone: Forgotten, console: Console) -> None:
    """Print the removed data, and the places where the instructor must remove the rest."""
    counts = [TABLES[table].format(count) for table, count in gone.removed.items() if count]
    print_plain(
        console,
        f"removed the data of {gone.student}: {', '.join([*counts, *gone.pages])}",
    )
    if gone.sharers:
        print_plain(console, f"{SHARED}: {', '.join(gone.sharers)}")
    if gone.others:
        print_plain(console, f"{OTHERS}: {', '.join(gone.others)}")
    print_plain(console, ELSEWHERE)


# --- a student's losses --------------------------------------------------------------------------


def show_losses(losses: Losses, folder: str, console: Console) -> None:
    """Print each exercise that cost points, its tests, and how to run one of these again.

    `folder` is the grades folder as the instructor typed it.
    """
    student, total = losses.student, f"{number(losses.total)} of {counted(losses.max, 'point')}"
    print_plain(console, f"{student}  {total}", "bold")
    if losses.message:
        print_plain(console, losses.message, "yellow")
        return
    for comment in losses.comments:
        about = f" on {comment.part}" if comment.part else ""
        print_plain(console, f"comment{about}: {comment.text}", indent=2)
    for other in losses.others:
        _other(other, console)
    whole = len(losses.exercises) == 1
    for one in losses.exercises:
        if whole or one.correction or one.tests or one.points < one.max:
            _losses(console, one)
    failed = [(test.lost, one.name, test.name) for one in losses.exercises for test in one.tests]
    if failed:
        _, *names = max(failed, key=lambda test: test[0])
        line = shlex.join(["grader", "explain", folder, student, "/".join(names)])
        print_plain(console, f"to run a test again: {line}")
    elif losses.exercises and not whole:
        print_plain(console, "all tests passed")


def _other(line: OtherLine, console: Console) -> None:
    """Print points that belong to no exercise."""
    print_plain(console, f"{line.part}  {with_sign(line.points)}", indent=2)
    if line.why:
        print_plain(console, line.why, indent=4)


def _losses(console: Console, one: ExerciseLosses) -> None:
    print_plain(console, f"{one.name}  {number(one.points)} of {number(one.max)}", indent=2)
    if not one.tests and not one.skipped:
        print_plain(console, f"all {counted(one.passed, 'test')} passed", indent=4)
    for test in one.tests:
        lost = f", lost {number(test.lost)}" if test.lost else ""
        print_plain(console, f"{test.title}: {test.status}{lost}", indent=4)
        if test.mistake:
            print_plain(console, test.mistake, "italic", indent=6)
    if one.skipped:
        print_plain(console, f"tests that did not run: lost {number(one.skipped)}", indent=4)
    if one.correction is not None:
        print_plain(console, _correction(None, one.correction), indent=4)
        if not one.correction.sets and one.counting != one.correction.points:
            print_plain(console, limited(one.correction.points, one.counting), "yellow", indent=4)


# --- changes -------------------------------------------------------------------------------------


def show_changes(changes: Changes, console: Console) -> None:
    """Print each student whose grade changed, with the tests that decided it."""
    for setting in changes.settings:
        text = SETTINGS[setting.name].format(setting.before, setting.after)
        print_plain(console, text, "yellow")
    if changes.settings:
        console.print()
    shared = changes.shared
    for reason in shared:
        _shared(console, reason)
    keys = {(reason.exercise, reason.reasons) for reason in shared}
    for student in changes.students:
        above = {key[0] for key in student.grouped if key in keys}
        same = student.status_before == student.status_after and not student.another_text
        if not same or above != {change.name for change in student.exercises}:
            _student(console, student, above)
            console.print()
    count = len(changes.students)
    every = count + changes.unchanged
    print_plain(console, f"{count} of {counted(every, 'grade')} changed" if count else NOTHING)


def _shared(console: Console, reason: SharedReason) -> None:
    least, most = map(with_sign, reason.gained)
    points = f"{least} each" if least == most else f"{least} to {most}"
    count = counted(len(reason.students), "student")
    print_plain(
        console, f"{reason.exercise}: {'; '.join(reason.reasons)} for {count}, {points}", "bold"
    )
    totals = [
        f"{change.student} {_arrow(_points(change.before), _points(change.after))}"
        for change in reason.students
    ]
    print_plain(console, some_of(totals), indent=2)
    console.print()


def _student(console: Console, change: StudentChange, above: Collection[str]) -> None:
    """Print a student's change; the exercises in `above` are only named."""
    totals = _arrow(_points(change.before), _points(change.after))
    print_plain(console, f"{change.student}  {totals}", "bold")
    if change.status_before != change.status_after:
        statuses = change.status_before or "not there", change.status_after or "not there"
        print_plain(console, _arrow(*statuses), "yellow", indent=2)
    if change.another_text:
        print_plain(console, ANOTHER_TEXT, indent=2)
    for exercise in change.exercises:
        if exercise.name in above:
            points = _arrow(_points(exercise.before), _points(exercise.after))
            print_plain(console, f"{exercise.name}  {points}, as above", indent=2)
        else:
            _exercise(console, exercise)


def _exercise(console: Console, change: ExerciseChange) -> None:
    points = _arrow(_points(change.before), _points(change.after))
    print_plain(console, f"{change.name}  {points}", indent=2)
    if change.corrected_before != change.corrected_after:
        print_plain(console, _correction(change.corrected_before, change.corrected_after), indent=4)
    elif change.corrected_after is not None:
        one = change.corrected_after
        reason = f" ({one.reason})" if one.reason else ""
        text = STILL_CORRECTED.format(f"the correction by {with_sign(one.points)}", reason)
        text = STILL_SET.format(number(one.points), reason) if one.sets else text
        print_plain(console, text, "yellow", indent=4)
    after = change.corrected_after
    if after is not None and not after.sets and change.counting != after.points:
        text = limited(after.points, change.counting)
        print_plain(console, text, "yellow", indent=4)
    if change.reweighted:
        print_plain(console, REWEIGHTED, indent=4)
    if change.penalty:
        print_plain(console, change.penalty, indent=4)
    for test in change.tests:
        if not test.follows:
            print_plain(console, test.words, indent=4)
            if test.message:
                print_plain(console, test.message, "dim", indent=6)
    for status in ("skipped", "passed"):
        count = sum(t.follows and t.after == status for t in change.tests)
        if count:
            print_plain(console, FOLLOWING[status].format(count), "dim", indent=4)


def _correction(before: Adjustment | None, after: Adjustment | None) -> str:
    if after is None:
        return "the correction was removed"
    instead = f" instead of {before.words.removeprefix('=')}" if before else ""
    reason = f": {after.reason}" if after.reason else ""
    return f"{corrected(after)}{instead}{reason}"


def _points(points: float | None) -> str:
    return "no points" if points is None else number(points)


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}"
