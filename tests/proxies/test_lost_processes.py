"""Lost processes of students: ended, out of time or memory, or with answers that are forged."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from grader import wire
from grader.course.contract import ContractBroken
from grader.sandbox.jails import Warm
from grader.sandbox.session import Channel, Limits, StudentLost
from grader.wire import payload
from tests.support import seats
from tests.support.contracts import ALL, RIGHT, X, free, mix, pair, rows
from tests.support.seats import OpenSeat

# --- processes that end --------------------------------------------------------------------------

BRIEF = Limits(test_seconds=0.3, memory_mb=128)


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        ("os._exit(0)", "crashed", "ended its own process"),
        ("os._exit(7)", "crashed", "ended its own process"),
        ("os.kill(os.getpid(), 9)", "crashed", "SIGKILL"),
        ("os.kill(os.getpid(), 11)", "crashed", "crash inside a library"),
        ("os.closerange(3, 64)", "crashed", ""),
        ("[os.write(n, b'nonsense' * 9) for n in range(3, 64) if is_socket(n)]", "crashed", ""),
        ("while True: pass", "timeout", "does a loop never end?"),
        ("while True: x = x + 1", "timeout", "does a loop never end?"),
        ("forever()", "timeout", "does a loop never end?"),
        ("torch.ones(2**28)", "memory", "more memory than a submission may use"),
        ("torch.ones(2**40)", "memory", "more memory than a submission may use"),
        ("bytearray(2**30)", "memory", "more memory than a submission may use"),
        ("list(range(2**28))", "memory", "more memory than a submission may use"),
    ],
)
def test_a_lost_process_has_a_status_and_the_next_test_a_fresh_one(
    open_seat: OpenSeat, line: str, status: str, told: str
) -> None:
    source = f"""
import os, stat, torch
def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
def forever():
    while True:
        try:
            while True: pass
        except BaseException:
            pass
def free(x):
    if x.sum() == 0:
        return "well"
    {line}
"""
    seat = open_seat(source, free, limits=BRIEF)
    with pytest.raises(StudentLost) as caught:
        seat.student().free(torch.ones(1))
    assert caught.value.status == status
    assert told in caught.value.text
    assert seat.student().free(torch.zeros(1)) == "well"


def test_what_belonged_to_a_lost_process_stays_lost_until_the_next_test(
    open_seat: OpenSeat,
) -> None:
    seat = open_seat(RIGHT.replace("return x + 1", "import os; os._exit(0)"), *ALL)
    student = seat.student()
    module = student.Layer(3, 2)
    with pytest.raises(StudentLost):
        student.free(X)
    with pytest.raises(StudentLost, match="ended in an earlier call"):
        student.rows(X)
    with pytest.raises(StudentLost):
        module(torch.ones(1, 3))
    assert seat.student().rows(X).shape == X.shape


def test_a_jail_that_another_program_kills_is_replaced_by_one_with_the_same_objects(
    open_seat: OpenSeat,
) -> None:
    seat = open_seat(RIGHT, *ALL)
    module = seat.student().Layer(3, 2)
    before = module(torch.ones(1, 3))
    jail: Any = seat.session._channel
    os.kill(jail._pid, signal.SIGKILL)
    assert torch.equal(module(torch.ones(1, 3)), before)
    assert seat.session._channel is not jail


def test_what_a_student_leaves_behind_is_gone_with_the_process(open_seat: OpenSeat) -> None:
    source = """
import os, torch
def free(x):
    if x.sum() == 0:
        return float(torch.tensor(7.0).cos())
    torch.Tensor.cos = lambda self: self
    os._exit(0)
"""
    seat = open_seat(source, free)
    with pytest.raises(StudentLost):
        seat.student().free(torch.ones(1))
    assert seat.student().free(torch.zeros(1)) != 7.0


def test_one_submission_does_not_see_what_another_has_changed(open_seat: OpenSeat) -> None:
    changes = (
        "import torch\ndef free(x):\n    torch.softmax = None\n    return torch.softmax is None"
    )
    asks = "import torch\ndef free(x):\n    return torch.softmax is None"
    assert open_seat(changes, free).student().free(X) is True
    assert open_seat(asks, free).student().free(X) is False


def test_a_test_whose_process_does_not_start_has_said_and_printed_nothing(warm: Warm) -> None:
    def opened(limits: Limits) -> Channel:
        if limits.memory_mb == 99:
            raise StudentLost("crashed", "it does not start")
        return warm.open(limits)

    seat = seats.open_seat(opened, "def free(x):\n    print('here')", free)
    seat.session.listens = True
    seat.student().free(X)
    assert seat.session.calls
    assert seat.session.printed
    with pytest.raises(StudentLost):
        seat.student(memory_mb=99)
    assert (seat.session.calls, seat.session.printed) == ([], "")


# --- time and memory -----------------------------------------------------------------------------


def test_a_student_who_waits_for_ever_is_stopped_by_the_wall_clock(open_seat: OpenSeat) -> None:
    source = "import threading\ndef free(x):\n    threading.Event().wait()"
    student = open_seat(source, free, limits=Limits(test_seconds=0.1)).student()
    with pytest.raises(StudentLost) as caught:
        student.free(X)
    assert caught.value.status == "timeout"


def test_time_is_counted_over_all_calls_of_a_test_and_anew_in_the_next(
    open_seat: OpenSeat,
) -> None:
    source = """
import time
def free(x):
    end = time.process_time() + 0.15
    while time.process_time() < end:
        pass
    return 1
"""
    seat = open_seat(source, free, limits=Limits(test_seconds=0.4))
    for _ in range(2):
        student = seat.student()
        assert [student.free(X), student.free(X)] == [1, 1]
    with pytest.raises(StudentLost) as caught:
        student.free(X)
    assert caught.value.status == "timeout"


def test_a_submission_that_has_used_up_its_time_gets_no_more(open_seat: OpenSeat) -> None:
    source = "def free(x):\n    while True: pass\ndef rows(x):\n    return x"
    seat = open_seat(source, free, rows, limits=Limits(submission_seconds=0.3))
    with pytest.raises(StudentLost):
        seat.student().free(X)
    with pytest.raises(StudentLost, match="time for this submission is used up") as caught:
        seat.student().rows(X)
    assert caught.value.status == "timeout"


def test_a_test_may_give_less_memory_than_the_course(open_seat: OpenSeat) -> None:
    source = "import torch\ndef free(x):\n    return torch.ones(len(x), 1024, 1024).sum()"
    seat = open_seat(source, free)
    eighty_megabytes = torch.ones(20)
    assert seat.student().free(eighty_megabytes) == 20 * 2**20
    with pytest.raises(StudentLost, match="more memory"):
        seat.student(memory_mb=60).free(eighty_megabytes)
    assert seat.student(memory_mb=60).free(torch.ones(5)) == 5 * 2**20
    assert seat.student().free(eighty_megabytes) == 20 * 2**20


# --- forged answers ------------------------------------------------------------------------------

LISTING = wire.Listing(
    [wire.Found(each.__name__, "found", "function") for each in (rows, mix, pair, free)]
)
STRUCTURE = wire.Structure([wire.ParameterInfo("w", (2, 3), "float32", "")], [], [], True)
FORGED = wire.TensorData("float33", (3, 4), b"")


class Forging:
    """A channel that answers with what it was given."""

    idle_seconds = 0.0

    def __init__(self, *replies: wire.Reply) -> None:
        self._replies = [LISTING, *replies]

    def exchange(self, *_: object) -> wire.Reply:
        return self._replies.pop(0)

    def cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


def forged(*outcomes: Sequence[wire.Outcome]) -> Any:
    """A student whose first message is answered with the first outcomes, and so on."""
    replies = [wire.Outcomes(list(each)) for each in outcomes]
    replies[0].outcomes.insert(0, wire.Done())  # the first message begins with the seed
    return seats.open_seat(lambda _: Forging(*replies), "", *ALL).student()


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [wire.Done()],
        [STRUCTURE],
        [wire.Gradients([], {})],
        [wire.Returned(FORGED)],
        [wire.Returned(wire.TensorData("float32", (2**63, 0), b""))],
        [wire.Returned(wire.TensorData("float32", (3, 4), b"short"))],
        [wire.Returned(wire.Items("list", [FORGED]))],
        [wire.Returned(1), wire.Returned(1)],
    ],
    ids=lambda outcomes: " ".join(type(outcome).__name__ for outcome in outcomes) or "none",
)
def test_a_forged_answer_to_a_call_is_a_lost_process(outcomes: Sequence[wire.Outcome]) -> None:
    with pytest.raises(StudentLost) as caught:
        forged(outcomes).free(X)
    assert caught.value.status == "crashed"


def test_fewer_answers_than_messages_queued_are_a_lost_process() -> None:
    student = seats.open_seat(lambda _: Forging(wire.Outcomes([])), "", *ALL).student()
    with pytest.raises(StudentLost):
        student.free(X)


def test_an_answer_of_another_kind_is_a_lost_process() -> None:
    student = seats.open_seat(lambda _: Forging(LISTING), "", *ALL).student()
    with pytest.raises(StudentLost):
        student.free(X)


@pytest.mark.parametrize(
    "parameter",
    [
        wire.ParameterInfo("w", (-1,), "float32", ""),
        wire.ParameterInfo("w", (2**63,), "float32", ""),
        wire.ParameterInfo("w", (2**30, 2**30), "float32", ""),
    ],
    ids=["negative", "beyond 64 bits", "beyond memory"],
)
def test_a_forged_module_costs_only_the_student(parameter: wire.ParameterInfo) -> None:
    student = forged([wire.Structure([parameter], [], [], True)])
    with pytest.raises((StudentLost, ContractBroken)):
        student.Layer(3, 2)


@pytest.mark.parametrize(
    "outcome",
    [
        wire.Done(),
        wire.Returned(payload.pack(X)),
        wire.Gradients([], {}),
        wire.Gradients([payload.pack(X), payload.pack(X)], {}),
        wire.Gradients([FORGED], {}),
        wire.Gradients([1.5], {}),
        wire.Gradients([payload.pack(X.T)], {}),
        wire.Gradients([payload.pack(X.double())], {}),
        wire.Gradients([payload.pack(X.to("meta"))], {}),
        wire.Gradients([wire.Items("list", [payload.pack(X)])], {}),
    ],
    ids=[
        "done",
        "returned",
        "none",
        "two",
        "unknown dtype",
        "a number",
        "transposed",
        "another dtype",
        "another device",
        "a list",
    ],
)
def test_a_forged_gradient_is_a_lost_process(outcome: wire.Outcome) -> None:
    result = forged([wire.Returned(payload.pack(X))], [outcome]).rows(X.clone().requires_grad_())
    with pytest.raises(StudentLost):
        result.sum().backward()


@pytest.mark.parametrize(
    "gradient",
    [FORGED, payload.pack_tensor(torch.ones(3, 2)), payload.pack_tensor(torch.ones(2, 3).double())],
    ids=["unknown dtype", "another shape", "another dtype"],
)
def test_a_forged_parameter_gradient_is_a_lost_process(gradient: wire.TensorData) -> None:
    result = wire.Returned(payload.pack(torch.zeros(1, 2)))
    student = forged([STRUCTURE], [result], [wire.Gradients([None], {"w": gradient})])
    with pytest.raises(StudentLost):
        student.Layer(3, 2)(torch.ones(1, 3)).sum().backward()


def test_forged_values_of_parameters_are_a_lost_process() -> None:
    info = wire.ParameterInfo("w", (2, 3), "float32", "", FORGED)
    student = forged([STRUCTURE], [wire.Structure([info], [], [], True)])
    with pytest.raises(StudentLost):
        student.Layer(3, 2).values()


def test_an_observation_that_was_left_out_is_a_lost_process() -> None:
    with pytest.raises(StudentLost):
        forged([wire.Returned(1)]).free.observe(X)
