"""What happens in the public checks of one exercise: inputs, the shapes along the way, results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader import wire
from grader.course.course import Course
from grader.inspection.bench import forbidden_ending, obstacle, open_bench, run_cases
from grader.inspection.shown import Shown, ShownCall
from grader.inspection.stepping import Trail
from grader.inspection.telling import Teller, case_shown, ending_shown, exception_text, is_shown
from grader.unsandboxed.in_process import Do, InProcess, Loaded, unseen_prints


def show(course: Course, name: str, folder: Path | None = None) -> Iterator[Shown]:
    """Run the public tests of an exercise here, and tell of each case what happened in it.

    Student code runs in this process: on their own computer only. Raises `CallError` for a name
    or a folder that is not right.
    """
    with open_bench(course, name, folder) as bench:
        answers = Loaded()
        watched = _Watched(answers)
        with bench.seat(InProcess(answers, around=watched.do)) as seat:
            hindrance = obstacle(bench, seat)
            if hindrance is not None:
                yield ending_shown(hindrance)
                return
            teller = Teller(seat.listing)
            for test, case, ran in run_cases(bench, seat):
                yield case_shown(test, case, ran, watched.take(teller))
                if watched.stopped:
                    return
            used = forbidden_ending(bench, seat)
            if used is not None:
                yield ending_shown(used)


@dataclass(frozen=True)
class _Made:
    """A call that was made, and followed."""

    call: wire.Call
    outcome: wire.Outcome
    trail: Trail
    printed: str


@dataclass
class _Watched:
    """Sees what each call does."""

    answers: Loaded
    stopped: bool = False  # by Ctrl-C
    _made: list[_Made] = field(default_factory=list)

    def do(self, call: wire.Call, do: Do) -> wire.Outcome:
        """One call, followed if a student would want to see it."""
        trail = Trail(self.answers.files)
        with unseen_prints() as prints:
            if not is_shown(call):
                return do()
            with trail.following():
                outcome = do()
        if isinstance(outcome, wire.Raised):
            self.stopped = outcome.kind == "KeyboardInterrupt"
        self._made.append(_Made(call, outcome, trail, prints.take()))
        return outcome

    def take(self, teller: Teller) -> list[ShownCall]:
        """The calls since the last time, in words."""
        made, self._made = self._made, []
        return [_told(one, teller) for one in made]


def _told(made: _Made, teller: Teller) -> ShownCall:
    name, inputs = teller.called(made.call)
    return ShownCall(
        name,
        tuple(inputs),
        made.trail.steps(),
        len(made.trail.left_out),
        tuple(teller.came_back(made.call, made.outcome)),
        exception_text(made.outcome),
        made.printed,
    )
