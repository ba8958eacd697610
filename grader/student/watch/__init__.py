"""`grader watch`: the exercise, and its verdict after each save, until it is solved.

`lesson` knows where the student is, and `words` what is said; `threads` check, and wait for saves;
`screen` (with its `dialogs`) and `plain` show it, on a full screen and line by line; `editor` opens
the student's own.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, redirect_stdout, suppress

from grader.course.course import Course
from grader.records.faults import CallError, HostFault
from grader.student.checking import open_checker
from grader.student.watch.threads import Checks
from grader.unsandboxed.worker import BackendName

NO_TERMINAL = (
    "`grader watch` needs a terminal: use `grader watch --plain` for lines of text, "
    "or `grader check` for a single check"
)

BROKE_DOWN = "the screen broke down; `grader watch --plain` does without one"
PATIENCE = 0.5  # seconds that a student who quits while torch is loaded is to wait


def run_watch(
    course: Course,
    *,
    plain: bool,
    poll: bool,
    start: str | None,
    backend: BackendName = "auto",
) -> None:
    """Stay with a student until they quit.

    `plain` prints lines, and takes over no screen; `poll` looks at the files itself, where no
    events arrive; `start` is an exercise or a unit, without it the first unsolved exercise; student
    code runs where `backend` says. Raises `CallError` where there is no such exercise, and where a
    full screen has no terminal; `HostFault` where the screen itself fails.
    """
    from grader.student.watch.lesson import Lesson

    lesson = Lesson(course, start)

    def checker() -> AbstractContextManager[Checks]:
        return open_checker(course, backend=backend)

    if plain:
        from grader.student.watch.plain import Plain

        ended = Plain(lesson, checker, poll=poll).run(PATIENCE)
    elif not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise CallError(NO_TERMINAL)
    else:
        from grader.student.watch.screen import WatchApp

        app = WatchApp(lesson, checker, poll=poll)
        with redirect_stdout(sys.stdout):  # a check that is cut short may leave another one behind
            try:
                app.run()
            finally:
                ended = app.close(None if lesson.ready else PATIENCE)
        if app.return_code:
            raise HostFault(BROKE_DOWN)
    if not ended:
        # Torch is being loaded, which nothing interrupts. All that is to be kept has been written,
        # and the processes behind us, idle so far, end when we do.
        with suppress(OSError):  # nobody reads it any more
            sys.stdout.flush()
        os._exit(0)
