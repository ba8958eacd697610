"""`Grade`: what one submission earned, and why. The only thing that crosses from grading onward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

THOUSAND = 1000  # points are counted in integers of a thousandth

SCHEMA = 1

SubmissionStatus = Literal["graded", "unreadable", "empty", "grader_error"]
TestStatus = Literal[
    "passed", "failed", "error", "missing", "timeout", "memory", "crashed", "skipped",
    "grader_error",
]  # fmt: skip

# It was run to its end, and what came was wrong: a result, or an exception.
WRONG: tuple[TestStatus, ...] = ("failed", "error")
# It was run, and did not pass, through no fault of ours.
UNWELL: tuple[TestStatus, ...] = (*WRONG, "timeout", "memory", "crashed")

MatrixCell = bool | float | Literal["nan", "inf", "-inf"]
Matrix = tuple[tuple[MatrixCell, ...], ...]


class Picture(msgspec.Struct, frozen=True):
    """A matrix that was expected, the one that came, and where they differ; or a window of them."""

    expected: Matrix
    actual: Matrix
    wrong: tuple[tuple[bool, ...], ...]
    top: int = 0  # the first row that is shown, of how many
    left: int = 0
    rows: int = 0
    columns: int = 0
    caption: str = ""  # which matrix of many: "batch 0, heads 1"
    row_name: str = ""  # what rows stand for, where that is known: "queries"
    column_name: str = ""


class TestResult(msgspec.Struct, frozen=True):
    """One test of one exercise, in the words that a student sees."""

    name: str
    title: str
    status: TestStatus
    points: float = 0.0
    max: float = 0.0
    hidden: bool = True
    message: str | None = None
    mistake: str | None = None  # a known one that gives the same results
    hint: str | None = None
    picture: Picture | None = None  # of a public test: it shows what was expected
    follows: str | None = None  # the earlier exercise in which the mistake was made, if not here
    case: str | None = None  # the parameters that it did not pass with, where it has any
    rules: Mapping[str, str] = {}  # those of the statement that it found broken, by their keys
    behaviour: tuple[str, ...] = ()  # what the answer does otherwise than a right one

    @property
    def told(self) -> str | None:
        """The message, with the case that it is about."""
        return f"[{self.case}] {self.message}" if self.case and self.message else self.message

    __test__ = False  # not a test class, whatever pytest thinks of its name


# What the engine itself checks of each exercise, besides its tests: that it is there, that it can
# be called, that it leaves alone what is forbidden; where it is wrong, that the exercises are right
# which it uses; and, where that costs points, that it keeps the rules at its heart. A test
# function's name begins with test_.
EXISTS, SIGNATURE, BASES, OPERATIONS, HEART = "exists", "signature", "bases", "operations", "heart"
FIRSTS = frozenset({EXISTS, SIGNATURE, BASES, OPERATIONS, HEART})


class ExerciseResult(msgspec.Struct, frozen=True):
    """One exercise: points are a thousandth exact."""

    name: str
    unit: str
    points: float
    max: float
    tests: tuple[TestResult, ...] = ()
    unchecked: Mapping[str, str] = {}  # rules that only hidden tests look at, where none was run

    @property
    def solved(self) -> bool:
        """Whether there are tests, and every one passed."""
        return bool(self.tests) and all(test.status == "passed" for test in self.tests)

    @property
    def faulty(self) -> bool:
        """Whether the grader itself failed in it: then its points are not known."""
        return any(test.status == "grader_error" for test in self.tests)

    @property
    def untouched(self) -> bool:
        """Whether there is nothing to grade: the stub as it was, or no definition at all."""
        return bool(self.tests) and self.tests[0].status == "missing"


# What is not written down where it is so.
USUAL: dict[str, object] = {
    "message": None, "notes": (), "device": "cpu", "late": False, "attempts": 1, "processor": "",
}  # fmt: skip


class Grade(msgspec.Struct, frozen=True):
    """One submission's grade, as it stands in ``results.jsonl``."""

    student: str
    submission: str
    status: SubmissionStatus
    total: float
    max: float
    seed: str
    course: str
    isolation: tuple[str, ...]
    torch: str
    seconds: float
    exercises: tuple[ExerciseResult, ...] = ()
    message: str | None = None
    notes: tuple[str, ...] = ()
    device: str = "cpu"
    late: bool = False  # by the mark of the system that it came through
    attempts: int = 1  # how many hand-ins are known, of which this is the last
    processor: str = ""  # the vector instructions that torch used: rounding differs by them
    schema: int = SCHEMA

    def to_json(self) -> bytes:
        """One line of ``results.jsonl``, schema first."""
        fields = msgspec.to_builtins(self)
        for name, usual in USUAL.items():
            if fields[name] == usual:
                del fields[name]
        for exercise in fields["exercises"]:
            if not exercise["unchecked"]:
                del exercise["unchecked"]
        for test in (test for exercise in fields["exercises"] for test in exercise["tests"]):
            for name in ("follows", "case", "rules", "behaviour"):
                if not test[name]:
                    del test[name]
        return msgspec.json.encode({"schema": fields.pop("schema"), **fields})

    @staticmethod
    def from_json(line: bytes) -> Grade:
        """The inverse of `to_json`."""
        return msgspec.json.decode(line, type=Grade)


def scaled(points: float, scale: float) -> float:
    """Points in a system where one of ours counts `scale`."""
    return round(points * scale, 3)


def counted_elsewhere(results: Sequence[ExerciseResult], scale: float) -> list[ExerciseResult]:
    """Results with their points, and those of each test, as such a system counts them."""
    change = msgspec.structs.replace
    return [
        change(
            one,
            points=scaled(one.points, scale),
            max=scaled(one.max, scale),
            tests=tuple(
                change(test, points=scaled(test.points, scale), max=scaled(test.max, scale))
                for test in one.tests
            ),
        )
        for one in results
    ]


def from_thousandths(points: int) -> float:
    """Points as people write them."""
    return points / THOUSAND


def share_out(total: int, weights: list[float]) -> list[int]:
    """Split `total` thousandths by weight into integers that add up exactly (largest remainder)."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    exact = [total * weight / whole for weight in weights]
    shares = [int(part) for part in exact]
    by_remainder = sorted(range(len(weights)), key=lambda i: (shares[i] - exact[i], i))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return shares
