"""What happens in the public checks of one exercise: inputs, the shapes along the way, results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path

from grader import wire
from grader.course.course import Course
from grader.guest.server import Prints
from grader.inspection.bench import InProcess, forbidden, obstacle, open_bench, run_cases
from grader.inspection.shown import Call, Shown
from grader.inspection.stepping import Trail
from grader.inspection.telling import Teller, case_shown, ending_shown, is_shown, raised


def show(course: Course, name: str, folder: Path | None = None) -> Iterator[Shown]:
    """Run the public tests of an exercise here, and tell of each case what happened in it.

    Student code runs in this process: on their own computer only. Raises `CallError` for a name
    or a folder that is not right.
    """
    with open_bench(course, name, folder) as bench:
        channel = _Telling()
        with bench.seat(channel) as seat:
            hindrance = obstacle(bench, seat)
            if hindrance is not None:
                yield ending_shown(hindrance)
                return
            for test, case, ran in run_cases(bench, seat):
                yield case_shown(test, case, ran, channel.take())
                if channel.stopped:
                    return
            used = forbidden(bench, seat)
            if used is not None:
                yield ending_shown(used)


class _Telling(InProcess):
    """A channel that tells what each call did."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = False  # by Ctrl-C
        self._calls: list[Call] = []

    @cached_property
    def _teller(self) -> Teller:
        return Teller(self.listing)

    def take(self) -> list[Call]:
        """The calls since the last time."""
        calls, self._calls = self._calls, []
        return calls

    def do(self, call: wire.Call) -> wire.Outcome:
        """One call, followed if a student would want to see it."""
        prints, trail = Prints(), Trail(self.submission.files)
        with redirect_stdout(prints), redirect_stderr(prints):
            if not is_shown(call):
                return super().do(call)
            with trail.following():
                outcome = super().do(call)
        if isinstance(outcome, wire.Raised):
            self.stopped = outcome.kind == "KeyboardInterrupt"
        name, inputs = self._teller.called(call)
        self._calls.append(
            Call(
                name, tuple(inputs), trail.steps(), len(trail.left_out),
                tuple(self._teller.came_back(call, outcome)), raised(outcome), prints.take(),
            )
        )  # fmt: skip
        return outcome
