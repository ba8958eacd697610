"""Whose time is used up: the running test's, or the submission's."""

from __future__ import annotations

import pytest

from grader import wire
from grader.sandbox.session import Limits, Session, StudentLost


class Busy:
    """A channel that says so many CPU seconds after each answer."""

    def __init__(self, seconds: float) -> None:
        self._each, self._spent = seconds, 0.0

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        """Answer, in its own time."""
        del cpu_seconds
        if isinstance(request, wire.Open):
            return wire.Listing([])
        self._spent += self._each
        return wire.Outcomes([wire.Done() for _ in request.calls])

    def cpu_seconds(self) -> float:
        """What it said to have used."""
        return self._spent

    def close(self) -> None:
        """Nothing to end."""


@pytest.mark.parametrize(
    ("limits", "whose"),
    [
        (Limits(test_seconds=1.0, submission_seconds=100.0), "test"),
        (Limits(test_seconds=100.0, submission_seconds=1.0), "submission"),
        (Limits(test_seconds=1.0, submission_seconds=1.0), "submission"),
    ],
)
def test_a_call_beyond_a_limit_is_told_which_one(limits: Limits, whose: str) -> None:
    session = Session(lambda _: Busy(1.5), wire.Open((), ()), limits)
    session.begin_test(0)
    session.run()
    with pytest.raises(StudentLost, match=f"the time for this {whose} is used up") as caught:
        session.run()
    assert caught.value.status == "timeout"
