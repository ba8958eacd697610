"""Corrections, removals and differences of a gradebook in a terminal. No logic.

Names, messages and source lines are a student's own: they are printed as plain text.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from grader.feedback.terminal import print_plain, safe
from grader.grades.changes import ChangedSetting, Changes, ExerciseChange, StudentChange, TestChange
from grader.grades.corrections import Correction
from grader.grades.privacy import Forgotten
from grader.records.rows import Adjustment, Row, counted, number

SETTINGS = {
    "seed": "the hidden seed is another one",
    "course": "the course's tests, references or mistakes are not what they were",
    "torch": "torch {} is now {}",
    "isolation": "isolation by {} is now by {}",
    "device": "the device {} is now {}",
}
TABLES = {
    "grades": "the grade",
    "earlier": "grades of earlier runs ({})",
    "people": "what the roster says",
    "adjustments": "corrections ({})",
    "submissions": "the text",
}
SHARED = "what they handed in stays, under its name, for who handed it in too"
BESIDE = "not touched, and to be made again or removed"
ELSEWHERE = (
    "not reached from here: the submissions, the roster's file, exports elsewhere, backups, and "
    "other systems. Who is still among the submissions is back at the next grading."
)
BONUS = "that is more than the exercise is worth: a bonus? 0 takes it back"
NOTHING = "no grade changed"
REWEIGHTED = "its tests do not count for what they did"
FOLLOWING = {
    "skipped": "tests that stand on those, and are skipped now: {}",
    "passed": "tests that were skipped, and pass now: {}",
}
STILL_CORRECTED = "{} still counts on top{}. If it made up for what is mended now, 0 takes it back"
ANOTHER_TEXT = "handed in something else"


# --- what a person did ---------------------------------------------------------------------------


def show_corrections(corrections: Sequence[Correction], console: Console) -> None:
    """Each correction and what it makes of the points; how many there are."""
    for one in corrections:
        _corrected(one, console)
    if len(corrections) > 1:
        students = len({one.before.student for one in corrections})
        print_plain(
            console, f"{len(corrections)} corrections, of {counted(students, 'student')}", "bold"
        )


def _corrected(one: Correction, console: Console) -> None:
    before, after, exercise = one.before, one.after, one.exercise
    name = exercise.name
    points = _arrow(number(before.points[name]), number(after.points[name]))
    totals = _arrow(_points(before.total), _points(after.total))
    print_plain(
        console, f"{after.student}: {name} {points} of {number(exercise.points)}, total {totals}"
    )
    print_plain(console, _correction(before.correction(name), after.correction(name)))
    if after.points[name] > exercise.points:
        print_plain(console, BONUS, "yellow")


def question(row: Row) -> str:
    """What to ask before a student is removed."""
    known = [row.person.name] if row.person.name else []
    total = [] if row.total is None else [counted(row.total, "point")]
    about = f" ({', '.join([*known, *total])})" if known or total else ""
    return safe(f"remove {row.student}{about} for good?")


def show_forgotten(gone: Forgotten, console: Console) -> None:
    """What was removed, and what is left to be removed by hand."""
    counts = [TABLES[table].format(count) for table, count in gone.removed.items() if count]
    print_plain(
        console,
        f"removed what was kept of {gone.student}: {', '.join([*counts, *gone.pages])}",
    )
    if gone.sharers:
        print_plain(console, f"{SHARED}: {', '.join(gone.sharers)}")
    if gone.others:
        print_plain(console, f"{BESIDE}: {', '.join(gone.others)}")
    print_plain(console, ELSEWHERE)


# --- what changed --------------------------------------------------------------------------------


def show_changes(changes: Changes, console: Console) -> None:
    """Each student whose grade changed, with the tests that decided it."""
    for setting in changes.settings:
        print_plain(console, _setting(setting), "yellow")
    if changes.settings:
        console.print()
    for student in changes.students:
        _student(console, student)
        console.print()
    count = len(changes.students)
    every = count + changes.unchanged
    print_plain(console, f"{count} of {counted(every, 'grade')} changed" if count else NOTHING)


def _setting(setting: ChangedSetting) -> str:
    return SETTINGS[setting.name].format(setting.before, setting.after)


def _student(console: Console, change: StudentChange) -> None:
    totals = _arrow(_points(change.before), _points(change.after))
    print_plain(console, f"{change.student}  {totals}", "bold")
    if change.status_before != change.status_after:
        statuses = change.status_before or "not there", change.status_after or "not there"
        print_plain(console, _arrow(*statuses), "yellow", indent=2)
    if change.another_text:
        print_plain(console, ANOTHER_TEXT, indent=2)
    for exercise in change.exercises:
        _exercise(console, exercise)


def _exercise(console: Console, change: ExerciseChange) -> None:
    points = _arrow(_points(change.before), _points(change.after))
    print_plain(console, f"{change.name}  {points}", indent=2)
    if change.corrected_before != change.corrected_after:
        print_plain(console, _correction(change.corrected_before, change.corrected_after), indent=4)
    elif change.corrected_after is not None:
        one = change.corrected_after
        reason = f" ({one.reason})" if one.reason else ""
        told = STILL_CORRECTED.format(f"the correction by {_signed(one.points)}", reason)
        print_plain(console, told, "yellow", indent=4)
    if change.reweighted:
        print_plain(console, REWEIGHTED, indent=4)
    for test in change.tests:
        if not _stands_on_others(test):
            print_plain(console, _test(test), indent=4)
            if test.message:
                print_plain(console, test.message, "dim", indent=6)
    for status in ("skipped", "passed"):
        count = sum(_stands_on_others(t) and t.after == status for t in change.tests)
        if count:
            print_plain(console, FOLLOWING[status].format(count), "dim", indent=4)


def _stands_on_others(change: TestChange) -> bool:
    """Whether it changed since a test before it did: that one says why."""
    return change.after == "skipped" or (change.before, change.after) == ("skipped", "passed")


def _test(change: TestChange) -> str:
    if change.before is None or change.after is None:
        return f"{change.title}: {'gone' if change.after is None else f'new, {change.after}'}"
    if change.before == change.after:
        return f"{change.title}: {change.after}, and counts otherwise"
    return f"{change.title}: {_arrow(change.before, change.after)}"


def _correction(before: Adjustment | None, after: Adjustment | None) -> str:
    if after is None:
        return "the correction was taken back"
    instead = f" instead of {_signed(before.points)}" if before else ""
    reason = f": {after.reason}" if after.reason else ""
    return f"corrected by {_signed(after.points)}{instead}{reason}"


def _signed(points: float) -> str:
    """A correction's points: ``+1``, ``-0.5``."""
    return f"{'+' if points > 0 else ''}{number(points)}"


def _points(points: float | None) -> str:
    return "no points" if points is None else number(points)


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}"
