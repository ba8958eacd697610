"""Questions about answers to exercises of the real course."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from grader.course.course import load_course
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.intake import Submission
from grader.questions.choice import choose
from grader.questions.question import Question
from grader.questions.study import Study, study
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support.places import REAL

EXERCISES = (
    "running_mean_loop", "running_mean_matrix", "softmax_stable", "causal_mask", "CausalHead",
    "adamw_step", "merge_states", "generate",
)  # fmt: skip

Learn = Callable[..., Study]
Ask = Callable[..., list[Question]]


@pytest.fixture(scope="session")
def public_desk(warm: Warm) -> Iterator[Desk]:
    """Some exercises of the real course with their public checks."""
    course = load_course(REAL)
    files = course.checks_of(EXERCISES)
    order = Order(course, course.seed, files, EXERCISES, isolation="weak")
    with ExitStack() as stack:
        with sharing(warm):  # later tests of other folders must not share it
            desk = stack.enter_context(order.desk())
        yield desk


@pytest.fixture
def learn(public_desk: Desk) -> Learn:
    """Study an answer: a text, or the cells of a notebook; and a file of helpers."""

    def learned(
        name: str, answer: str | Sequence[str], desk: Desk = public_desk, helpers: str = ""
    ) -> Study:
        if isinstance(answer, str):
            source = SourceText("ada.py", (answer,))
        else:
            source = SourceText("ada.ipynb", tuple(answer))
        sources = (source, SourceText("helpers.py", (helpers,))) if helpers else (source,)
        return study(desk, Submission("ada", sources), name)

    return learned


@pytest.fixture
def ask(learn: Learn) -> Ask:
    """The questions on an answer."""

    def asked(
        name: str, answer: str | Sequence[str], seed: str = "a seed", count: int = 3
    ) -> list[Question]:
        return choose(learn(name, answer), count, seed)

    return asked
