"""Code that neither runs nor waits to run is stopped early; code that waits for its turn is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.intake import Submission
from grader.records.grade import ExerciseResult
from grader.sandbox import budget, jails
from grader.wire import SourceText

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/schedstat").is_file(), reason="this kernel does not tell who waits"
)

NEVER = {
    "sleeps": "import time\n    time.sleep(1e9)",
    "waits for a lock": "import threading\n    threading.Event().wait()",
    "waits for a thread": (
        "import threading, time\n    one = threading.Thread(target=time.sleep, args=(1e9,))\n"
        "    one.start()\n    one.join()"
    ),
}
ENDLESS = "while True:\n        pass"
HEADS = {"center": "x", "staircase": "size", "weigh": "scores"}


def results(desk: Desk, text: str) -> dict[str, ExerciseResult]:
    graded = grade_submission(desk, Submission("ada", (SourceText("ada.py", (text,)),)))
    return {result.name: result for result in graded.exercises}


def told(result: ExerciseResult) -> list[str | None]:
    return [test.message for test in result.tests if test.status == "timeout"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little rest is allowed."""
    monkeypatch.setattr(budget, "IDLE_TEST", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("body", NEVER.values(), ids=NEVER.keys())
def test_an_answer_that_rests_for_long_is_told_that_it_rests(desk: Desk, body: str) -> None:
    assert told(results(desk, f"def center(x):\n    {body}\n")["center"]) == [jails.IDLE]


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_is_busy_does_not_rest(desk: Desk) -> None:
    assert told(results(desk, f"def center(x):\n    {ENDLESS}\n")["center"]) == [jails.TOO_LONG]


def test_a_short_rest_costs_nothing(desk: Desk, right: str) -> None:
    text = (
        f"{right}\n\nimport time\ndef center(x):\n    time.sleep(0.06)\n    return x - x.mean()\n"
    )
    assert results(desk, text)["center"].solved


def test_where_the_kernel_does_not_tell_the_clock_on_the_wall_counts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jails, "_work_of", lambda _: (0.0, False))
    text = f"def center(x):\n    {NEVER['sleeps']}\n"
    assert told(results(desk, text)["center"]) == [jails.TOO_LONG]


def test_an_exercise_that_has_come_to_an_end_gets_longer_for_its_other_tests(
    desk: Desk, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "SHORT_TESTS", {0: 0.15})
    text = (
        f"{right}\n\nimport time\nquick = 2\ndef center(x):\n    global quick\n    quick -= 1\n"
        "    until = time.process_time() + 0.2\n"
        "    while quick < 0 and time.process_time() < until:\n        pass\n"
        "    return x - x.mean()\n"
    )
    assert results(desk, text)["center"].solved


@pytest.mark.parametrize("body", [ENDLESS, NEVER["sleeps"]], ids=["loops", "sleeps"])
def test_whatever_did_not_end_before_a_right_answer_keeps_its_points(
    desk: Desk, right: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "SHORT_TESTS", {1: 0.3, 2: 0.1})
    monkeypatch.setattr(budget, "IDLE_SUBMISSION", 0.0)
    wrong = "\n".join(f"def {name}({HEADS[name]}):\n    {body}\n" for name in HEADS)
    found = results(desk, f"{right}\n\n{wrong}")
    assert all(told(found[name]) for name in HEADS)
    assert found["Projection"].solved
