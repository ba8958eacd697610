"""Points need evidence: a test earns points only if it ran and passed, whatever was submitted.

`test_submissions.py` asserts the same of the samples and of a submission that gets everything
wrong, and `test_attacks.py` of every attack.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import pytest

from grader.course.course import load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.mistakes import Variant
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support.evidence import assert_only_what_passed_is_paid
from tests.support.places import REAL


@pytest.fixture(scope="module")
def desk(warm: Warm) -> Iterator[Desk]:
    course = load_course(REAL)
    seed, files = course.hidden_seed(), course.tests_of()
    order = Order(course, seed, files, isolation="weak", keeps_sheet=True)
    with sharing(warm), order.desk() as desk:
        yield desk


def test_known_answers_are_paid_for_nothing_but_tests_that_passed(desk: Desk) -> None:
    """One known answer to each exercise, drawn from right answers and mistakes, all in one file."""
    draw = random.Random("evidence")
    library = desk.replays.library
    texts = library.together()
    for name in desk.course.exercises:
        texts.append(draw.choice(_known(desk, name, draw)).definition)
    text = "from __future__ import annotations\n" + "\n\n".join(
        text.replace("from __future__ import annotations\n", "") for text in texts
    )
    # No points hang on a mistake's name, and to look for the names takes most of the time.
    unnamed = dataclasses.replace(desk, sheet=None)
    graded = grade_submission(unnamed, Submission("drawn", (SourceText("drawn.py", (text,)),)))
    assert_only_what_passed_is_paid(graded)
    assert 0 < graded.total < graded.max


def _known(desk: Desk, name: str, draw: random.Random) -> list[Variant]:
    """The exercise's mistakes, or its right answers, whichever are drawn."""
    library = desk.replays.library
    kinds = [library.of(name, kind) for kind in ("mistake", "accepted")]
    return draw.choice([variants for variants in kinds if variants])
