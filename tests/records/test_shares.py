"""Points in another system: shares in thousandths that sum to the whole, in every output."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grader.course.course import load_course
from grader.grades.table import gradebook_csv
from grader.lms.gradescope import results as gradescope
from grader.records.grade import (
    ExerciseResult,
    Grade,
    TestResult,
    counted_elsewhere,
    scaled,
    shared,
    split_points,
)
from grader.records.rows import Row
from tests.support.places import TINY

COURSE = load_course(TINY / "exercises")


def thousandths(points: float) -> int:
    return round(1000 * points)


@st.composite
def grades(draw: st.DrawFn) -> Grade:
    """A grade as the ladder makes it: tests split an exercise, and pass, fail or count half."""
    exercises = []
    for number in range(draw(st.integers(1, 6))):
        most = 1000 * draw(st.integers(1, 9))
        shares = split_points(most, draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
        passed = [draw(st.booleans()) for _ in shares]
        earned = [share if one else 0 for share, one in zip(shares, passed, strict=True)]
        if 2 * sum(earned) > most and draw(st.booleans()):
            earned = split_points(most // 2, earned)
        tests = [
            TestResult(f"test_{n}", f"{n}", "passed" if one else "failed", got / 1000, share / 1000)
            for n, (share, got, one) in enumerate(zip(shares, earned, passed, strict=True))
        ]
        name = f"exercise_{number}"
        exercises.append(
            ExerciseResult(name, "basics", sum(earned) / 1000, most / 1000, tuple(tests))
        )
    total, most = (
        sum(thousandths(getattr(one, field)) for one in exercises) for field in ("points", "max")
    )
    return Grade(
        *("ada", "ada", "graded", total / 1000, most / 1000, "seed", "0f", ("process",), "2.13.0"),
        *(0.4, tuple(exercises)),
    )


wholes = st.integers(1, 200).map(float) | st.sampled_from([22.222, 33.3, 0.5])


@given(grades(), wholes)
def test_shares_sum_to_the_whole_on_every_level(grade: Grade, whole: float) -> None:
    scale = whole / grade.max
    results = counted_elsewhere(grade.exercises, scale)
    assert sum(thousandths(one.max) for one in results) == thousandths(whole)
    for before, after in zip(grade.exercises, results, strict=True):
        assert sum(thousandths(test.max) for test in after.tests) == thousandths(after.max)
        assert sum(thousandths(test.points) for test in after.tests) == thousandths(after.points)
        assert abs(after.max - before.max * scale) < 0.0011
        for old, new in zip(before.tests, after.tests, strict=True):
            assert 0 <= new.points <= new.max
            assert old.points != old.max or new.points == new.max
            assert old.points or not new.points


@given(grades(), wholes)
def test_gradescopes_tests_sum_to_its_score_and_to_the_whole(grade: Grade, whole: float) -> None:
    shown = gradescope(grade, COURSE, whole / grade.max)
    assert sum(thousandths(test.score or 0) for test in shown.tests) == thousandths(shown.score)
    assert sum(thousandths(test.max_score or 0) for test in shown.tests) == thousandths(whole)
    assert (thousandths(shown.score) == thousandths(whole)) or grade.total < grade.max


@given(grades(), wholes)
def test_a_tables_columns_sum_to_its_total(grade: Grade, whole: float) -> None:
    names = [one.name for one in grade.exercises]
    scale = whole / grade.max
    (line,) = csv.DictReader(io.StringIO(gradebook_csv([Row("ada", grade)], names, scale)))
    assert thousandths(float(line["total"])) == thousandths(scaled(grade.total, scale))
    assert sum(thousandths(float(line[n])) for n in names) == thousandths(float(line["total"]))


@given(grades())
def test_where_nothing_is_converted_all_points_stay(grade: Grade) -> None:
    assert counted_elsewhere(grade.exercises, 1.0) == list(grade.exercises)
    assert shared([one.points for one in grade.exercises], 1.0) == [
        one.points for one in grade.exercises
    ]


def test_equal_shares_differ_by_a_thousandth_and_the_first_gets_it() -> None:
    assert shared([1, 1, 1], 100 / 3) == [33.334, 33.333, 33.333]
    assert all(a - b < 0.0011 for a, b in pairwise(shared([2, 2, 2, 2, 1], 100 / 9)[:4]))
