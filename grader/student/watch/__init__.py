"""`grader watch`: an exercise and its verdict after each save, until the student quits.

`screen` is the full screen: `drawing` styles the text in it, `dialogs` lie over it. `plain` prints
lines instead. Both draw a `Lesson`; their texts are in `words`.
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
BROKE_DOWN = "the screen broke down; `grader watch --plain` does without one"
NO_EXERCISES = "{} is a course without exercises"
PATIENCE = 0.5  # seconds that a student who quits waits at most while torch is loaded


def run_watch(
    course: Course,
    *,
    plain: bool,
    poll: bool,
    start: str | None,
    backend: BackendName = "auto",
) -> None:
    """Stay with a student until they quit.

    `plain` prints lines, and draws no screen. `poll` looks at the files itself, where no events
    arrive. `start` is an exercise or a unit; by default the next exercise. `backend` chooses the
    process in which student code runs. Raises `CallError` if there is no such exercise, or no
    terminal for a screen; `HostFault` if the screen itself fails.
    """
    if not course.exercises:
        raise CallError(NO_EXERCISES.format(course.folder))
    first_run = not (course.folder / FILE).exists()
    lesson = Lesson(course)
    name = course.select([start])[0] if start else lesson.standing.next or course.asked[0]
    checks = Checks(course, lambda: open_checker(course, backend=backend))
    if plain:
        from grader.student.watch.plain import watch

        # Both are ways to stop.
        with closing(checks), suppress(KeyboardInterrupt, BrokenPipeError):
            watch(lesson, name, checks, first_run=first_run, poll=poll)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise CallError(NO_TERMINAL)
    from grader.student.watch.screen import WatchApp

    app = WatchApp(lesson, name, checks, first_run=first_run, poll=poll)
    with redirect_stdout(sys.stdout):  # a check that is cut short may leave another one in place
        try:
            app.run()
        finally:
            ended = app.close(None if checks.ready else PATIENCE)
    if app.return_code:
        raise HostFault(BROKE_DOWN)
    if not ended:
        # Torch is being loaded, which cannot be interrupted. Everything to keep is written by now,
        # and our child processes, idle so far, end when we do.
        with suppress(OSError):  # the terminal may be gone
            sys.stdout.flush()
        os._exit(0)
