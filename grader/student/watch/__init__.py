"""`grader watch`: shows an exercise, and checks it after each save, until the student quits.

`screen` is the full screen: `drawing` styles its text, and `dialogs` has the windows that cover it.
`plain` prints lines of text instead. Both show a `Lesson`; their texts are in `words`.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing, redirect_stdout, suppress

from grader.course.course import Course
from grader.records.faults import CallError, HostFault
from grader.student.checking import Checks, open_checker
from grader.student.lesson import Lesson
from grader.student.progress import FILE
from grader.unsandboxed.worker import BackendName

NO_TERMINAL = (
    "`grader watch` needs a terminal: use `grader watch --plain` for lines of text, "
    "or `grader check` for a single check"
)
BROKE_DOWN = "the full screen failed; `grader watch --plain` works without a full screen"
NO_EXERCISES = "{} is a course without exercises"
PATIENCE = 0.5  # seconds: if torch is still being loaded, quitting waits at most this long


def run_watch(
    course: Course,
    *,
    plain: bool,
    poll: bool,
    start: str | None,
    backend: BackendName = "auto",
) -> None:
    """Run `grader watch` until the student quits.

    With `plain`, lines of text replace the full screen. With `poll`, the files are read again and
    again, for file systems that report no changes. `start` is an exercise or a unit; by default,
    the next exercise to solve. `backend` chooses the process in which student code runs. Raises
    `CallError` if `start` is unknown, or if the full screen has no terminal. Raises `HostFault` if
    the full screen itself fails.
    """
    if not course.exercises:
        raise CallError(NO_EXERCISES.format(course.folder))
    first_run = not (course.folder / FILE).exists()
    lesson = Lesson(course)
    name = course.select([start])[0] if start else lesson.standing.next or course.asked[0]
    checks = Checks(course, lambda: open_checker(course, backend=backend))
    if plain:
        from grader.student.watch.plain import watch

        with closing(checks), suppress(KeyboardInterrupt):  # a student may stop with Ctrl-C
            watch(lesson, name, checks, first_run=first_run, poll=poll)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise CallError(NO_TERMINAL)
    from grader.student.watch.screen import WatchApp

    app = WatchApp(lesson, name, checks, first_run=first_run, poll=poll)
    with redirect_stdout(sys.stdout):  # an interrupted check may leave sys.stdout replaced
        try:
            app.run()
        finally:
            ended = app.close(None if checks.ready else PATIENCE)
    if app.return_code:
        raise HostFault(BROKE_DOWN)
    if not ended:
        # Loading torch cannot be interrupted, so end this process at once. All progress is written
        # by now. The child processes have not begun to work, and end together with this process.
        with suppress(OSError):  # the terminal may be gone
            sys.stdout.flush()
        os._exit(0)
