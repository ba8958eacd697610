"""A session ends its process when time is used up, and says whose; and when the listing is odd."""

from __future__ import annotations

import pytest

from grader import wire
from grader.sandbox.budget import Left
from grader.sandbox.session import Limits, Session, StudentLost


class Busy:
    """A channel that says so many CPU seconds after each answer."""

    idle_seconds = 0.0

    def __init__(self, seconds: float) -> None:
        self._each, self._spent = seconds, 0.0
        self.closed = False

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Answer, in its own time."""
        del left
        if isinstance(request, wire.Open):
            return wire.Listing([])
        self._spent += self._each
        return wire.Outcomes([wire.Done() for _ in request.calls])

    def cpu_seconds(self) -> float:
        """What it said to have used."""
        return self._spent

    def close(self) -> None:
        """There is nothing to end."""
        self.closed = True


class Unlisted(Busy):
    """A channel that answers something else when it is asked what there is."""

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Answer the wrong question."""
        del request, left
        return wire.Outcomes([])


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
    session.begin_case(0)
    session.run()
    with pytest.raises(StudentLost, match=f"the time for this {whose} is used up") as caught:
        session.run()
    assert caught.value.status == "timeout"


def test_a_channel_that_lists_nothing_is_closed() -> None:
    channel = Unlisted(0.0)
    with pytest.raises(StudentLost, match="the submission could not be listed") as caught:
        Session(lambda _: channel, wire.Open((), ()), Limits())
    assert caught.value.status == "crashed"
    assert channel.closed


def test_after_a_channel_that_lists_nothing_the_next_test_gets_another() -> None:
    first, unlisted, last = Busy(0.0), Unlisted(0.0), Busy(0.0)
    channels = iter([first, unlisted, last])
    session = Session(lambda _: next(channels), wire.Open((), ()), Limits())
    session.close()
    with pytest.raises(StudentLost, match="the submission could not be listed"):
        session.begin_case(0)
    session.begin_case(0)
    assert session.run() == []
    assert (first.closed, unlisted.closed, last.closed) == (True, True, False)
