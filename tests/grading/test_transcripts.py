"""A test that gets the answers of an earlier submission ends as it did, without being run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import msgspec
import pytest

from grader.course.collection import Test
from grader.course.course import Course
from grader.grading import transcripts
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import Grade
from grader.sandbox.jails import Warm
from grader.wire import SourceText

MUTATES = "def center(x):\n    x -= x.mean()\n    return x\n"
PRINTS = "def center(x):\n    print('here', x.shape)\n    return x\n"
RAISES = "def center(x):\n    raise ValueError('no')\n"
ROUNDS = "def center(x):\n    return (x.double() - x.double().mean()).float()\n"
FORBIDDEN = "import torch\ndef weigh(scores):\n    return torch.softmax(scores, -1)\n"
SUMS = "import torch\ndef weigh(scores):\n    w = scores.exp()\n    return w / w.sum(0)\n"
KEYWORDS = "def staircase(n):\n    import torch\n    return torch.ones(n, n).tril().bool()\n"
LOOPS = "def center(x):\n    while True:\n        pass\n"
OTHERWISE = """
from torch import nn
class Projection(nn.Module):
    def __init__(self, d_out, d_in, bias=False):
        super().__init__()
        self.weights = nn.Linear(d_in, d_out, bias=bias)
    def forward(self, x):
        return self.weights(x)
"""


@pytest.fixture
def fresh(warm: Warm, tiny: Course) -> Iterator[Callable[[], Desk]]:
    """Opens a desk at which nothing was graded yet."""
    with ExitStack() as stack:

        def opened() -> Desk:
            files = tiny.tests_of()
            return stack.enter_context(
                Order(
                    tiny, tiny.hidden_seed(), files, backend=nullcontext(warm), isolation="weak"
                ).desk()
            )

        yield opened


def counting(desk: Desk) -> list[str]:
    """Have the desk's tests write down when they are run."""
    ran: list[str] = []

    def counted(test: Test) -> Test:
        def function(**arguments: object) -> None:
            ran.append(test.key)
            test.function(**arguments)

        return replace(test, function=function)

    desk.tests = {name: [counted(test) for test in tests] for name, tests in desk.tests.items()}
    return ran


def graded(desk: Desk, *texts: str) -> Grade:
    sources = tuple(SourceText(f"{n}.py", (text,)) for n, text in enumerate(texts))
    return msgspec.structs.replace(
        grade_submission(desk, Submission("someone", sources)), seconds=0.0
    )


@pytest.mark.parametrize(
    "text", [MUTATES, PRINTS, RAISES, ROUNDS, FORBIDDEN, SUMS, KEYWORDS, OTHERWISE]
)
def test_the_grade_is_that_of_a_desk_without_a_past(
    fresh: Callable[[], Desk], right: str, text: str
) -> None:
    """Whatever was graded before: right answers, the same one, and other wrong ones."""
    alone = graded(fresh(), text)
    desk = fresh()
    for before in (right, PRINTS, text, SUMS):
        graded(desk, before)
    assert graded(desk, text) == alone


def test_the_same_answers_are_not_compared_again(fresh: Callable[[], Desk], right: str) -> None:
    desk = fresh()
    ran = counting(desk)
    first = graded(desk, right)
    assert ran
    ran.clear()
    assert graded(desk, f"# in other words\n{right}\n") == first
    assert ran == []


def test_modules_with_a_great_many_weights_leave_room_for_what_others_ask(
    fresh: Callable[[], Desk], right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MOST_BYTES", 2**22)
    monkeypatch.setattr(transcripts, "MOST_OF_ONE", 2**20)
    desk = fresh()
    for more in range(5):
        extra = f"        self.b_more = nn.Parameter(torch.zeros({100_000 + more}))\n"
        text = OTHERWISE.replace("    def forward", f"{extra}    def forward")
        assert graded(desk, right, f"import torch\n{text}").total == 10
    ran = counting(desk)
    graded(desk, right)
    assert ran
    before = len(ran)
    graded(desk, right)
    assert len(ran) == before


def test_another_answer_is_compared(fresh: Callable[[], Desk], right: str) -> None:
    desk = fresh()
    ran = counting(desk)
    graded(desk, right)
    ran.clear()
    worse = graded(desk, right, MUTATES.replace("center", "weigh"))
    assert ran
    assert worse.total < worse.max


def test_a_loop_without_end_is_waited_for_each_time(fresh: Callable[[], Desk]) -> None:
    desk = fresh()
    for _ in range(2):
        (center, *_) = graded(desk, LOOPS).exercises
        assert "timeout" in {test.status for test in center.tests}
