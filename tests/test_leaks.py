"""What hidden tests ask stays hidden: nothing that a student reads holds a number of it.

The submissions of `tests/attacks/leaks` keep what they are asked, and tell it by some other road.
Each is graded; all that a student can read of it is searched for the inputs of hidden tests.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
import torch

from grader import wire
from grader.course.course import Course
from grader.feedback.visible import for_students
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.play import replay
from grader.intake import Submission, find_submissions
from grader.lms import gradescope
from grader.lms import otter_plugin as otter
from grader.records.grade import Grade
from grader.records.rows import Row
from grader.report.feedback import feedback_page
from grader.sandbox.budget import Left
from grader.unsandboxed.in_process import InProcess
from grader.wire import payload
from tests.support.attacks_table import (
    Attack,
    all_attacks,
    assert_deserved,
    attacked_course,
    attacked_order,
)
from tests.support.places import SAMPLES

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # otter's own

LEAKS = [attack for attack in all_attacks() if attack.klass == "leaks"]
NUMBER = re.compile(r"[-−‐–]?\d+(?:[.\u2024]\d+)?(?:e[-+]?\d+)?")
SHORT, LONG = 4, 7  # significant digits: of what a message rounds, and of a number in full
MOST = 24  # numbers of a tensor: of a larger one its beginning, or all are there by chance
IN_A_ROW = 3  # rounded numbers that are no accident, one after the other


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Numbers that tests asked of, as they can be told."""

    whole: frozenset[str]  # each, in as many digits as float32 has
    rows: frozenset[tuple[str, ...]]  # some that stand together, rounded


@pytest.fixture(scope="module")
def course() -> Course:
    return attacked_course()


@pytest.fixture(scope="module")
def desk(course: Course) -> Iterator[Desk]:
    with attacked_order(course).desk() as opened:
        yield opened


@pytest.fixture(scope="module")
def graded(desk: Desk) -> Callable[[Attack], Grade]:
    """The grade of an attack, worked out once."""
    grades: dict[str, Grade] = {}

    def grade(attack: Attack) -> Grade:
        if attack.id not in grades:
            grades[attack.id] = grade_submission(desk, attack.submission(desk.course))
        return grades[attack.id]

    return grade


@pytest.fixture(scope="module")
def hidden(desk: Desk) -> Numbers:
    """What hidden tests ask of right answers, less what public ones do."""
    secret, known = (numbers_of(asked(desk, hidden=kind)) for kind in (True, False))
    return Numbers(secret.whole - known.whole, secret.rows - known.rows)


def asked(desk: Desk, *, hidden: bool) -> list[torch.Tensor]:
    """Every tensor that these tests send to a submission: to calls, as weights, as gradients.

    Of public tests also what right answers give: students are shown it, and among so many numbers
    one is now and then a hidden one's by chance.
    """
    sent: list[torch.Tensor] = []

    really = InProcess.exchange

    def exchange(channel: InProcess, request: wire.Request, left: Left) -> wire.Reply:
        if isinstance(request, wire.Run):
            sent.extend(t for call in request.calls for t in tensors_in(call))
        reply = really(channel, request, left)
        if not hidden:
            sent.extend(tensors_in(reply))
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InProcess, "exchange", exchange)
        for test in (t for tests in desk.tests.values() for t in tests if t.hidden is hidden):
            for case in test.cases:
                replay(desk, desk.definitions, test, case)
    return sent


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The floating-point tensors in a message."""
    if isinstance(value, wire.TensorData):
        tensor = payload.unpack_tensor(value)
        if tensor.is_floating_point() and tensor.device.type == "cpu":
            yield tensor
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from tensors_in(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from tensors_in(item)


def numbers_of(tensors: Sequence[torch.Tensor]) -> Numbers:
    """How the numbers in these tensors look where they are told."""
    whole, rows = set[str](), set[tuple[str, ...]]()
    for tensor in tensors:
        if tensor.numel() > MOST:
            tensor = tensor.flatten()[:MOST]
        listed = [abs(number) for number in tensor.flatten().tolist()]
        whole |= {digits(number, LONG) for number in listed if is_odd(number, LONG)}
        rows |= in_rows(listed)
        if tensor.dim() > 1:  # a picture shows the last two axes, perhaps turned around
            rows |= in_rows([abs(n) for n in tensor.transpose(-1, -2).flatten().tolist()])
    return Numbers(frozenset(whole), frozenset(rows))


def in_rows(numbers: Sequence[float]) -> set[tuple[str, ...]]:
    """Neighbours of which each has enough digits to be known again."""
    rounded = [digits(n, SHORT) if is_odd(n, SHORT) else "" for n in numbers]
    rows = zip(*(rounded[start:] for start in range(IN_A_ROW)), strict=False)
    return {row for row in rows if all(row)}


def digits(number: float, count: int) -> str:
    return f"{number:.{count - 1}e}"


def is_odd(number: float, count: int) -> bool:
    """Whether so many digits say which number it is: 0.5 and 300 may stand anywhere."""
    return 1e-6 < number < 1e6 and float(digits(number, count - 1)) != float(digits(number, count))


# --- what a student reads ------------------------------------------------------------------------


def told(result: Grade, course: Course, text: Submission) -> Iterator[tuple[str, str]]:
    """Every text and number that a student may read of a grade, with the road it came by.

    The page quotes answers from the `text` that was graded.
    """
    mine = for_students(result, course)
    yield from texts_in(mine, "grade")
    yield "page", feedback_page(Row(result.student, result), course, sources=text.sources)
    yield from texts_in(gradescope.results(result, course), "gradescope")
    for exercise in mine.exercises:
        yield from texts_in(vars(otter._test_file(exercise)), "otter")
    yield from (("otter", remark) for remark in otter._remarks(mine))


def texts_in(value: Any, road: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """All strings and numbers below a value, whatever it is made of."""
    assert depth < 30, "something holds itself"
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (str, float, int)):
        yield road, str(value)
    elif isinstance(value, bytes):
        yield road, value.decode("utf-8", "replace")
        # A picture may keep its numbers as they lie in memory.
        for kind, size in (("f", 4), ("d", 8)):
            if value and len(value) % size == 0:
                yield road, str(list(struct.unpack(f"{len(value) // size}{kind}", value)))
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from texts_in(getattr(value, name), f"{road}.{name}", depth + 1)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from texts_in(name, road, depth + 1)
            yield from texts_in(part, f"{road}.{name}", depth + 1)
    elif isinstance(value, (Sequence, set, frozenset)):
        parts = list(value)
        yield from texts_in_rows(parts, road)
        for part in parts:
            yield from texts_in(part, road, depth + 1)
    elif hasattr(value, "__dict__"):
        yield from texts_in(vars(value), road, depth + 1)


def texts_in_rows(parts: Sequence[Any], road: str) -> Iterator[tuple[str, str]]:
    """Numbers of a list in one text, so that neighbours are seen as such."""
    if parts and all(isinstance(part, (float, int)) for part in parts):
        yield road, " ".join(map(str, parts))


def leaked(text: str, hidden: Numbers) -> list[str]:
    """The numbers of hidden tests that stand in a text."""
    found = [abs(float(word)) for word in map(plain, NUMBER.findall(text)) if len(word) < 40]
    whole = [digits(n, LONG) for n in found if is_odd(n, LONG)]
    rows = in_rows(found)
    return [*(hidden.whole & set(whole)), *map(str, hidden.rows & rows)]


def plain(word: str) -> str:
    return re.sub("[−‐–]", "-", word).replace("\u2024", ".")


# --- the tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", LEAKS, ids=lambda attack: attack.id)
def test_a_student_reads_nothing_that_hidden_tests_asked(
    attack: Attack, graded: Callable[[Attack], Grade], course: Course, hidden: Numbers
) -> None:
    result = graded(attack)
    assert_deserved(result, attack, course)
    for road, text in told(result, course, attack.submission(course)):
        assert not leaked(text, hidden), f"{road}: {text[:300]}"


@pytest.mark.parametrize("attack", LEAKS, ids=lambda attack: attack.id)
def test_a_forbidden_operation_is_told_by_the_courses_name_for_it_and_a_line_that_is_there(
    attack: Attack, graded: Callable[[Attack], Grade], desk: Desk, course: Course
) -> None:
    submission = attack.submission(course)
    lines = {source.name: "".join(source.cells).count("\n") + 1 for source in submission.sources}
    for exercise in graded(attack).exercises:
        for test in exercise.tests:
            if test.name != "operations" or not test.message:
                continue
            use = re.fullmatch(
                r"(?:(?P<file>.+) line (?P<line>\d+)|your code) "
                r"uses (?P<name>.+): the exercise is to write it yourself, .*",
                test.message,
            )
            assert use is not None, test.message
            assert use["name"] in desk.forbidden[exercise.name], test.message
            if use["file"] is not None:
                assert use["file"] in lines, test.message
                assert 0 < int(use["line"]) <= lines[use["file"]], test.message


# --- that the search would find it ---------------------------------------------------------------


def test_the_search_knows_what_hidden_tests_ask(hidden: Numbers) -> None:
    assert len(hidden.whole) > 1000
    assert len(hidden.rows) > 1000


def test_a_number_in_full_is_found_in_the_midst_of_a_text() -> None:
    numbers = numbers_of([torch.tensor([0.12345678, 2.0])])
    assert leaked("it raised X: LEAK [-0.12345677614212036, 7]", numbers)
    assert not leaked("it raised X: LEAK [0.1234, 2.0]", numbers)


def test_rounded_numbers_are_found_where_they_stand_together() -> None:
    numbers = numbers_of([torch.tensor([0.123456, 1.765432, 2.567891])])
    assert leaked("0.1235 −1.765  2.568", numbers)
    assert not leaked("0.1235 and 9.999 and 1.765 and 2.568", numbers)


def test_right_answers_tell_nothing_either(desk: Desk, course: Course, hidden: Numbers) -> None:
    path = SAMPLES / "ada"
    (submission,) = find_submissions([path], course, single=True)
    for road, text in told(grade_submission(desk, submission), course, submission):
        assert not leaked(text, hidden), f"{road}: {text[:300]}"
