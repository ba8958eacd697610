"""Submissions that went for the grader itself, and once won. The full attack suite comes later."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import Grade, TestResult
from grader.sandbox.jails import Jail
from grader.sandbox.session import Limits
from grader.wire import SourceText
from tests.support.seats import process_of, warm_of


@pytest.fixture(scope="module")
def alone(tiny: Course) -> Iterator[Desk]:
    """A desk with a warm process of its own, which may be killed."""
    files = tiny.tests_of()
    with Order(tiny, "hostile", files, isolation="weak").desk() as desk:
        yield desk


def graded(desk: Desk, text: str) -> Grade:
    return grade_submission(desk, Submission("mallory", (SourceText("mallory.py", (text,)),)))


def results_of(grade: Grade, exercise: str) -> list[TestResult]:
    return [test for e in grade.exercises if e.name == exercise for test in e.tests]


def points(grade: Grade, exercise: str) -> float:
    return sum(test.points for test in results_of(grade, exercise))


def test_a_warm_process_that_died_is_started_again(alone: Desk, right: str) -> None:
    os.kill(process_of(warm_of(alone)).pid, signal.SIGKILL)
    honest = graded(alone, right)
    assert (honest.status, honest.total) == ("graded", honest.max)


@pytest.mark.parametrize("number", [signal.SIGTERM, 40])
def test_any_signal_is_a_crash_and_no_fault_of_ours(desk: Desk, number: int) -> None:
    text = f"import os\ndef center(x):\n    os.kill(os.getpid(), {int(number)})\n"
    mallory = graded(desk, text)
    assert mallory.status == "graded"
    assert "crashed" in {test.status for test in results_of(mallory, "center")}


def test_what_a_submission_forks_ends_with_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    jails: list[Jail] = []

    def noted(limits: Limits) -> Jail:
        jails.append(really(limits))
        return jails[-1]

    really = warm_of(desk).open
    monkeypatch.setattr(desk.backend, "open", noted)
    graded(desk, "import os, time\ndef center(x):\n    os.fork() or time.sleep(600)\n")
    groups = {jail._pid for jail in jails}
    assert groups
    deadline = time.monotonic() + 10  # a process that is killed takes a moment to be gone
    while groups & set(running_groups()) and time.monotonic() < deadline:
        pass
    assert not groups & set(running_groups())


def running_groups() -> Iterator[int]:
    """The process group of each process that runs."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = status.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it ended while we looked
        if state not in "ZX":
            yield int(group)


@pytest.mark.parametrize(
    "line",
    [
        'import sys; sys.modules["grader.guest.trace"]._current = None',
        "import grader.guest.trace as t; t._current = None",
        "import os; os.fork()",
    ],
)
def test_switching_the_trace_off_earns_nothing(desk: Desk, line: str) -> None:
    text = f"import torch\ndef weigh(scores):\n    {line}\n    return torch.softmax(scores, -1)\n"
    assert points(graded(desk, text), "weigh") == 0


def test_code_inside_a_result_is_traced_or_not_run(desk: Desk) -> None:
    text = """
import torch
class Lazy(torch.Tensor):
    @property
    def layout(self):
        self.data.copy_(torch.softmax(self.source, -1))
        return torch.strided
def weigh(scores):
    lazy = torch.zeros_like(scores).as_subclass(Lazy)
    lazy.source = scores
    return lazy
"""
    assert points(graded(desk, text), "weigh") == 0


def test_a_function_used_only_in_backward_is_found_too(desk: Desk) -> None:
    text = """
import torch
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        ctx.save_for_backward(scores)
        exp = torch.exp(scores)
        return exp / exp.sum(-1, keepdim=True)
    @staticmethod
    def backward(ctx, upstream):
        weights = torch.softmax(ctx.saved_tensors[0], -1)
        return weights * (upstream - (upstream * weights).sum(-1, keepdim=True))
def weigh(scores):
    return Own.apply(scores)
"""
    assert points(graded(desk, text), "weigh") == 0


def test_what_one_exercise_switches_off_is_on_again_for_the_next(desk: Desk, right: str) -> None:
    text = right + (
        "\n\n_center = center\n"
        "def center(x):\n    import torch\n    torch.set_grad_enabled(False)\n"
        "    torch.set_default_dtype(torch.float64)\n    return x - x.mean()\n"
    )
    honest, mallory = graded(desk, right), graded(desk, text)
    for exercise in ("staircase", "weigh", "Projection"):
        assert points(mallory, exercise) == points(honest, exercise)


LAYER = """
import torch
from torch import nn
class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        {made}
        self.size = d_out
    def forward(self, x):
        return x.new_zeros(x.shape[0], self.size)
"""


@pytest.mark.parametrize(
    "made",
    [
        'self.a = nn.ModuleDict({chr(97 + i // 26) + chr(97 + i % 26) + "x": nn.Linear(1, 1) '
        "for i in range(400)})",
        'self.a = nn.ParameterDict({"\\u00b2": torch.ones(3, 4), "\\u00b3": torch.ones(3, 4)})',
        "self.a = nn.Parameter(torch.empty(2**40, device='meta'))",
        "self.a = nn.Parameter(torch.zeros(1).expand(2**40))",
    ],
    ids=["very many weights", "odd numbers", "a weight without memory", "an expanded weight"],
)
def test_odd_weights_are_a_wrong_answer_and_no_fault_of_ours(desk: Desk, made: str) -> None:
    mallory = graded(desk, LAYER.format(made=made))
    assert mallory.status == "graded"
    assert points(mallory, "Projection") == 0


def test_an_answer_that_drips_is_late(desk: Desk) -> None:
    text = """
import os, time
def center(x):
    for fd in range(3, 64):
        try:
            os.write(fd, (2**20).to_bytes(8, "little"))
        except OSError:
            continue
        while True:
            os.write(fd, b"x")
            time.sleep(0.002)
"""
    statuses = {test.status for test in results_of(graded(desk, text), "center")}
    assert "timeout" in statuses
