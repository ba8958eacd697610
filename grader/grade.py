"""`Grade`: what one submission earned, and why. The only thing that crosses from grading onward."""

from __future__ import annotations

from typing import Literal

import msgspec

from grader.course import THOUSAND

SCHEMA = 1

SubmissionStatus = Literal["graded", "unreadable", "empty", "grader_error"]
TestStatus = Literal[
    "passed", "failed", "error", "missing", "timeout", "memory", "crashed", "skipped",
    "grader_error",
]  # fmt: skip


class TestResult(msgspec.Struct, frozen=True):
    """One test of one exercise, in the words that a student sees."""

    name: str
    title: str
    status: TestStatus
    points: float = 0.0
    max: float = 0.0
    hidden: bool = True
    message: str | None = None
    mistake: str | None = None
    hint: str | None = None

    __test__ = False  # not a test class, whatever pytest thinks of its name


class ExerciseResult(msgspec.Struct, frozen=True):
    """One exercise: points are a thousandth exact."""

    name: str
    unit: str
    points: float
    max: float
    tests: tuple[TestResult, ...] = ()

    @property
    def solved(self) -> bool:
        """Whether every test passed."""
        return all(test.status == "passed" for test in self.tests)


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
    schema: int = SCHEMA

    def to_json(self) -> bytes:
        """One line of ``results.jsonl``, schema first."""
        fields = msgspec.structs.asdict(self)
        for said_if_any in ("message", "notes"):
            if not fields[said_if_any]:
                del fields[said_if_any]
        return msgspec.json.encode({"schema": fields.pop("schema"), **fields})

    @staticmethod
    def from_json(line: bytes) -> Grade:
        """The inverse of `to_json`."""
        return msgspec.json.decode(line, type=Grade)


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
