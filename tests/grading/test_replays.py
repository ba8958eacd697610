"""A known answer ends in this process, where mistakes are tried, as it does in a student's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.course.course import load_course
from grader.grading.desk import Desk
from grader.grading.diagnosis import same
from grader.grading.order import Order
from grader.grading.play import play, replay
from grader.intake import Submission
from grader.mistakes import Variant
from grader.unsandboxed.worker import Workers
from tests.support.places import REAL

EVERY = 97  # of so many mistakes, the test of the worker takes one


@pytest.fixture(name="desk", scope="module")
def _desk() -> Iterator[Desk]:
    course = load_course(REAL)
    order = Order(course, "replays", course.tests_of(), isolation="weak", backend=Workers())
    with order.desk() as desk:
        yield desk


def known(desk: Desk, kind: str) -> list[Variant]:
    return [v for v in desk.replays.library.variants if v.kind == kind]


def test_every_accepted_answer_passes_a_hidden_test_of_values(desk: Desk) -> None:
    failed = []
    for variant in known(desk, "accepted"):
        test = next(t for t in desk.tests[variant.exercise] if t.hidden and t.rung == "value")
        if not replay(desk, desk.replays.definitions(variant), test, test.cases[0]).passed:
            failed.append(variant.id)
    assert failed == []


def test_a_mistake_gives_a_worker_what_it_gives_here(desk: Desk) -> None:
    unlike = []
    for variant in known(desk, "mistake")[::EVERY]:
        name, sources = variant.exercise, desk.replays.library.submission(variant.exercise, variant)
        with desk.seat(Submission("known", sources), [name]) as seat:
            for test in (t for t in desk.tests[name] if not t.hidden):
                theirs = play(desk, seat, test, test.cases[0]).seen.evidence()
                ours = replay(desk, desk.replays.definitions(variant), test, test.cases[0])
                if not same(ours.seen.evidence(), theirs):
                    unlike.append((variant.id, test.key))
    assert unlike == []
