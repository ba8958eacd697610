"""Opens Python's debugger in a student's code, at the first public case that does not pass."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from pdb import Pdb
from types import FrameType, TracebackType
from typing import IO

from rich.console import Console

from grader import wire
from grader.course.course import Course
from grader.feedback.terminal import print_plain
from grader.grading.ladder import Climb
from grader.grading.play import Transcript, play
from grader.inspection.cases import (
    calls_of,
    check_trace,
    open_bench,
    run_cases,
    runs_answer,
)
from grader.inspection.tracing import is_function
from grader.unsandboxed.in_process import Do, InProcess, Loaded, unseen_prints
from grader.wire.source import CODE_PREFIX

ALL_PASS = "nothing to stop at: all public checks of {} pass"
NO_LINE = "none of your lines was running when the check failed: there is nothing to stop at"
STEPPING = (
    "commands: n (run a line), s (step into your function), p x.shape (print a value), "
    "a (inputs), l (the lines around), c (run to the end), q (quit)"
)
AFTERWARDS = (
    "commands: p x.shape (print a value), a (inputs), l (the lines around), u (to the caller), "
    "d (back down), q (quit)"
)


def debug(
    course: Course,
    name: str,
    folder: Path | None = None,
    *,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
) -> bool:
    """Open a debugger in the first public case that does not pass; return False if all pass.

    The debugger stops at the line that raised an exception. For a wrong result, it stops at the
    first line of the call that returned the result. Student code runs in this process, so use this
    on the student's own computer only. Raises `CallError` for a wrong name or folder.
    """
    out = stdout or sys.stdout
    console = Console(file=out, highlight=False)
    with open_bench(course, name, folder) as bench:
        with bench.seat(InProcess(Loaded(), around=_unseen)) as seat:
            climb = Climb(bench.desk, seat, bench.name)
            hindrance = check_trace(climb.hindrance)
            cases = () if hindrance else run_cases(bench, climb)
            failed = next((one for one in cases if one[-1].status != "passed"), None)
            hindrance = hindrance or check_trace(climb.forbidden())
        if failed is None:
            why = f"{hindrance.title}: {hindrance.message}" if hindrance else ALL_PASS.format(name)
            print_plain(console, why)
            return hindrance is not None
        test, case, played = failed
        label = f" [{case.label}]" if case.label else ""
        message = played.message or played.status
        print_plain(console, f"{test.title}{label}\n{message}\n".expandtabs())
        number, raised = _place(played)
        if number is None:
            print_plain(console, NO_LINE)
            return True
        print_plain(console, AFTERWARDS if raised else STEPPING)
        answers = Loaded()
        stop = _Stop(answers, number, raised, _Debugger(stdin, stdout))
        channel = InProcess(answers, around=stop.do)
        with bench.seat(channel) as seat, redirect_stdout(out):
            play(bench.desk, seat, test, case)
    return True


def _unseen(_: wire.Call, do: Do) -> wire.Outcome:
    """Make a call, and discard its prints."""
    with unseen_prints():
        return do()


def _place(played: Transcript) -> tuple[int | None, bool]:
    """The number of the call in which to stop, and whether to stop at the line that raised."""
    calls = calls_of(played)
    last = calls[-1].outcome if calls else None
    if played.status == "error" and isinstance(last, wire.Raised):
        # If Ctrl-C ended the call, stop at its first line: the call may not end by itself.
        return len(calls) - 1, last.kind != "KeyboardInterrupt"
    invoked = [n for n, one in enumerate(calls) if isinstance(one.call, wire.Invoke)]
    return (invoked[-1] if invoked else None), False


@dataclass
class _Stop:
    """Opens the debugger in one call of a case."""

    answers: Loaded
    left: int  # the number of calls before the call in which to stop
    raised: bool  # whether to stop at the line that raised, not at the first line
    debugger: _Debugger

    def do(self, call: wire.Call, do: Do) -> wire.Outcome:
        if not runs_answer(call):
            return do()
        self.left -= 1
        if self.left != -1:
            return do()
        if not self.raised:
            outcome = self.debugger.runcall(do)
            assert outcome is not None
            return outcome
        outcome = do()
        if self.answers.error is not None:
            self.debugger.look_back(self.answers.error)
        return outcome


class _Debugger(Pdb):
    """Pdb that stops only in a student's own functions, and shows only their frames."""

    def __init__(self, stdin: IO[str] | None, stdout: IO[str] | None) -> None:
        super().__init__(stdin=stdin, stdout=stdout, nosigint=True, readrc=stdin is None)

    def look_back(self, error: BaseException) -> None:
        """Stop at the student's line that raised, or that called the code that raised."""
        self.reset()
        trace = error.__traceback__
        while trace is not None and not _is_students(trace.tb_frame):
            trace = trace.tb_next
        if trace is None:
            print(NO_LINE, file=self.stdout)
        else:
            self.interaction(None, trace)

    def canonic(self, filename: str) -> str:
        """See bdb.Bdb: keep the file name of a student's code, which is not a path."""
        return filename if filename.startswith(CODE_PREFIX) else super().canonic(filename)

    def stop_here(self, frame: FrameType) -> bool:
        """See bdb.Bdb."""
        own = _is_students(frame) and is_function(frame.f_code)
        return own and super().stop_here(frame)

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """See bdb.Bdb: do not stop at the call, since the next event stops at the first line."""

    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        """See bdb.Bdb: leave out the frames of torch and of the kit."""
        stack, place = super().get_stack(f, t)
        own = [entry for entry in stack[: place + 1] if _is_students(entry[0])]
        return (own, len(own) - 1) if own else (stack, place)


def _is_students(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(CODE_PREFIX)
