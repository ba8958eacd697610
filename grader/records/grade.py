"""`Grade`: a submission's points and the reasons for them. Grading has no other result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from grader.records.descriptions import about

THOUSAND = 1000  # points are counted in integer thousandths

SCHEMA = 1

SubmissionStatus = Literal["graded", "unreadable", "empty", "grader_error"]
TestStatus = Literal[
    "passed", "failed", "error", "missing", "timeout", "memory", "crashed", "skipped",
    "grader_error",
]  # fmt: skip

# The statuses of a test that a wrong result, or an exception of the answer, has ended.
WRONG: tuple[TestStatus, ...] = ("failed", "error")
# The statuses of a test that ran and did not pass because of the answer, not of the grader.
NOT_PASSED: tuple[TestStatus, ...] = (*WRONG, "timeout", "memory", "crashed")

MatrixCell = bool | float | Literal["nan", "inf", "-inf"]
Matrix = tuple[tuple[MatrixCell, ...], ...]


class Picture(msgspec.Struct, frozen=True):
    """The expected and the actual matrix, or a window of each, and the cells that differ."""

    expected: Annotated[Matrix, about("The rows of the expected matrix.")]
    actual: Annotated[Matrix, about("The rows of the matrix that the answer gave.")]
    wrong: Annotated[tuple[tuple[bool, ...], ...], about("The cells in which both differ.")]
    top: Annotated[int, about("The first row of the window.")] = 0
    left: Annotated[int, about("The first column of the window.")] = 0
    rows: Annotated[int, about("The number of rows of the whole matrix.")] = 0
    columns: Annotated[int, about("The number of columns of the whole matrix.")] = 0
    caption: Annotated[
        str, about("The position of the matrix in the tensor, such as: batch 0, heads 1.")
    ] = ""
    row_name: Annotated[str, about("The meaning of rows if known, such as: queries.")] = ""
    column_name: Annotated[str, about("The meaning of columns if known.")] = ""


class CodeLocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a submission, counted from the top of its file, or of its cell."""

    file: Annotated[str, about("The file in the submission.")]
    line: Annotated[int, about("The line, from 1.")]
    cell: Annotated[int, about("The number of a notebook's cell, from 1; 0 in other files.")] = 0


class TestResult(msgspec.Struct, frozen=True):
    """The result of a test: its status, its points, and texts for people."""

    name: Annotated[
        str, about("The name of the test's function, or of one of the engine's own checks.")
    ]
    title: Annotated[str, about("What the test is about, for people.")]
    status: Annotated[TestStatus, about("How the test ended. Only `passed` earns points.")]
    points: Annotated[float, about("The points that the test earned.")] = 0.0
    max: Annotated[float, about("The most points that the test can earn.")] = 0.0
    hidden: Annotated[bool, about("Whether the test is hidden; else it is a public check.")] = True
    message: Annotated[str | None, about("What went wrong; may quote the answer.")] = None
    mistake: Annotated[
        str | None, about("The title of the known mistake that gives the same results.")
    ] = None
    hint: Annotated[str | None, about("The hint of that mistake.")] = None
    picture: Annotated[
        Picture | None,
        about("The matrices; only of a public check, since they show the expected result."),
    ] = None
    follows: Annotated[
        str | None, about("The earlier exercise whose mistake makes this test fail.")
    ] = None
    case: Annotated[
        str | None, about("The parameters with which the test failed, if it has any.")
    ] = None
    rules: Annotated[
        Mapping[str, str], about("The broken rules of the exercise's statement, by key.")
    ] = {}
    behaviour: Annotated[
        tuple[str, ...], about("How the answer behaves differently from a right answer.")
    ] = ()
    position: Annotated[
        CodeLocation | None,
        about(
            "The student's line that raised, uses a forbidden operation, or discards its tensor; "
            "of the check that the answer exists, the answer's first line."
        ),
    ] = None

    @property
    def message_with_case(self) -> str | None:
        """The message, after the case in brackets if the test has parameters."""
        return f"[{self.case}] {self.message}" if self.case and self.message else self.message

    __test__ = False  # keeps pytest from collecting this class


# Names of the engine's own checks of each exercise; names of test functions begin with test_. The
# checks: the answer exists; it can be called; the exercises that it uses are right; it uses no
# forbidden operation; it keeps the rules at the exercise's heart.
EXISTS, SIGNATURE, BASES, OPERATIONS, HEART = "exists", "signature", "bases", "operations", "heart"
ENGINE_CHECKS = frozenset({EXISTS, SIGNATURE, BASES, OPERATIONS, HEART})


class ExerciseResult(msgspec.Struct, frozen=True):
    """The result of an exercise; points are exact to a thousandth."""

    name: Annotated[str, about("The exercise's name.")]
    unit: Annotated[str, about("The name of the exercise's unit.")]
    points: Annotated[float, about("The points that the answer earned.")]
    max: Annotated[float, about("The most points that an answer can earn.")]
    tests: Annotated[
        tuple[TestResult, ...], about("The results of tests, in the order of the ladder.")
    ] = ()
    unchecked: Annotated[
        Mapping[str, str],
        about("The rules that only hidden tests check, by key; empty if hidden tests ran."),
    ] = {}

    @property
    def solved(self) -> bool:
        """Whether the exercise has tests, and all of them passed."""
        return bool(self.tests) and all(test.status == "passed" for test in self.tests)

    @property
    def faulty(self) -> bool:
        """Whether the grader itself failed; then the points are unknown."""
        return any(test.status == "grader_error" for test in self.tests)

    @property
    def untouched(self) -> bool:
        """Whether there is no answer: the stub is unchanged, or the definition is missing."""
        return bool(self.tests) and self.tests[0].status == "missing"


# Fields of `Grade` that ``results.jsonl`` omits if they have these values.
USUAL: dict[str, object] = {
    "message": None, "notes": (), "device": "cpu", "late": False, "attempts": 1, "processor": "",
    "submitted": "",
}  # fmt: skip


class Grade(msgspec.Struct, frozen=True):
    """A submission's grade: a line of ``results.jsonl``."""

    student: Annotated[str, about("The student's name in the gradebook.")]
    submission: Annotated[str, about("The name under which the submission came.")]
    status: Annotated[
        SubmissionStatus,
        about(
            "graded; unreadable: no text could be read; empty: no .py file and no notebook; "
            "grader_error: the grader itself failed, and the points are unknown."
        ),
    ]
    total: Annotated[float, about("The computed points, without corrections and penalties.")]
    max: Annotated[float, about("The most points that a submission can earn.")]
    seed: Annotated[
        str, about("The seed from which hidden tests drew their inputs: keep it private.")
    ]
    course: Annotated[str, about("A hash of the parts of the course that decide grades.")]
    isolation: Annotated[tuple[str, ...], about("The layers of the jail, by name.")]
    torch: Annotated[str, about("The version of torch.")]
    seconds: Annotated[float, about("The time that the grading took.")]
    exercises: Annotated[
        tuple[ExerciseResult, ...], about("The results of exercises, in teaching order.")
    ] = ()
    message: Annotated[str | None, about("Why the submission was not graded.")] = None
    notes: Annotated[
        tuple[str, ...], about("Remarks about the submission, such as a file that does not parse.")
    ] = ()
    device: Annotated[str, about("The device of the answers.")] = "cpu"
    late: Annotated[bool, about("Whether the learning platform marked it as late.")] = False
    attempts: Annotated[
        int, about("The number of the student's submissions; the last of them is graded.")
    ] = 1
    submitted: Annotated[
        str, about("The time of the submission, ISO 8601 in UTC; empty if unknown.")
    ] = ""
    processor: Annotated[
        str, about("The vector instructions that torch used, which affect rounding.")
    ] = ""
    schema: Annotated[int, about("The version of this schema.")] = SCHEMA

    def to_json(self) -> bytes:
        """The grade as a line of ``results.jsonl``, which begins with the key ``schema``."""
        fields = msgspec.to_builtins(self)
        for name, usual in USUAL.items():
            if fields[name] == usual:
                del fields[name]
        for exercise in fields["exercises"]:
            if not exercise["unchecked"]:
                del exercise["unchecked"]
        for test in (test for exercise in fields["exercises"] for test in exercise["tests"]):
            for name in ("follows", "case", "rules", "behaviour", "position"):
                if not test[name]:
                    del test[name]
        return msgspec.json.encode({"schema": fields.pop("schema"), **fields})

    @staticmethod
    def from_json(line: bytes) -> Grade:
        """Read a grade from a line of ``results.jsonl``; the inverse of `to_json`."""
        return msgspec.json.decode(line, type=Grade)


def scaled(points: float, scale: float) -> float:
    """Convert points to another grading system, in which a point of the kit is worth `scale`."""
    return round(points * scale, 3)


def shared(points: Sequence[float], scale: float) -> list[float]:
    """Convert points as `scaled` does, so that the results sum to the converted sum.

    Each result is within a thousandth of its exact value. Points must not be negative.
    """
    parts = list(map(thousandths, points))
    whole = thousandths(scaled(from_thousandths(sum(parts)), scale))
    return [from_thousandths(part) for part in split_points(whole, parts)]


def counted_elsewhere(
    results: Sequence[ExerciseResult], scale: float, most: Mapping[str, float] | None = None
) -> list[ExerciseResult]:
    """Convert all points of the results, including the points of tests, to another system.

    The maxima of the exercises sum to the whole, the maxima of an exercise's tests to the exercise,
    and its points to those of the tests. A test that has all its points keeps all of them. `most`
    has the maximum of each exercise there, if the results are only a part of the whole.
    """
    maxima = (
        shared([result.max for result in results], scale)
        if most is None
        else [most.get(result.name, scaled(result.max, scale)) for result in results]
    )
    return [
        _elsewhere(result, scale, thousandths(share))
        for result, share in zip(results, maxima, strict=True)
    ]


def _elsewhere(result: ExerciseResult, scale: float, most: int) -> ExerciseResult:
    change = msgspec.structs.replace
    maxima = split_points(most, [thousandths(test.max) for test in result.tests])
    earned = [thousandths(test.points) for test in result.tests]
    whole = most
    if result.points != result.max:
        whole = min(most, thousandths(scaled(result.points, scale)))
    if all(test.points in (0, test.max) for test in result.tests):
        points = [share if part else 0 for share, part in zip(maxima, earned, strict=True)]
    else:  # only a part of a test's points counts, because a central rule is broken
        points = list(map(min, split_points(whole, earned), maxima))
    return change(
        result,
        points=from_thousandths(sum(points) if any(maxima) else whole),
        max=from_thousandths(most),
        tests=tuple(
            change(test, points=from_thousandths(part), max=from_thousandths(share))
            for test, part, share in zip(result.tests, points, maxima, strict=True)
        ),
    )


def thousandths(points: float) -> int:
    """Convert points to integer thousandths, in which they are added and stored."""
    return round(points * THOUSAND)


def from_thousandths(points: int) -> float:
    """Convert integer thousandths to points, for display and storage."""
    return points / THOUSAND


def split_points(total: int, weights: Sequence[float]) -> list[int]:
    """Split `total` thousandths by weight into integers whose sum is `total`.

    Uses the largest-remainder method.
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    exact = [total * weight / whole for weight in weights]
    shares = [int(part) for part in exact]
    by_remainder = sorted(range(len(weights)), key=lambda i: (shares[i] - exact[i], i))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return shares
