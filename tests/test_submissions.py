"""The sample submissions, each with the exact grade that it deserves, exercise by exercise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import find_submissions
from grader.records.grade import Grade
from tests.support.evidence import assert_only_what_passed_is_paid
from tests.support.places import REAL, SAMPLES

COURSE: Course = load_course(REAL)
FULL = {name: exercise.points for name, exercise in COURSE.exercises.items()}


def full(*names: str) -> dict[str, float]:
    """All the points of these exercises."""
    return {name: FULL[name] for name in names}


# Points by exercise; an exercise that is not named earns none.
DESERVED: dict[str, dict[str, float]] = {
    "ada": FULL,
    "blank": {},
    "bob_four_classes": full(
        "SelfAttention_v1", "SelfAttention_v2", "CausalAttention", "MultiHeadAttention"
    ),
    "cleo_notebook": full(
        "attention_scores_for_query", "attention_scores_loop", "attention_scores",
        "attention_weights", "context_vector", "simple_self_attention",
    ),
    "dana_mistakes": {
        **full("prefix_sum_matrix", "softmax_naive", "causal_mask", "merge_heads"),
        "softmax_stable": 1.737,  # right where the scores are near each other
        "masked_softmax": 2.357,  # right but for rows with every key hidden
        "repeat_kv": 0.125,  # right for a single head, which a test of its own asks for
        "CachedAttention": 0.666,  # right as long as one call has all the tokens
        "flash_attention": 2.5,  # right, and nothing is tiled: half, without its heart
        "linear_attention": 1.5,  # right, and quadratic: likewise
    },
    "eve_syntax_error": full("prefix_sum_matrix", "running_mean_matrix", "running_mean_matmul"),
    "finn_empty": {},
    "gil_endless_loop": full("normalize_by_sum", "softmax_rows", "softmax_stable"),
}  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    files = COURSE.tests_of()
    order = Order(COURSE, COURSE.hidden_seed(), files, isolation="weak", remembers=True)
    with order.desk() as opened:
        yield opened


@pytest.fixture(scope="module")
def grades(desk: Desk) -> dict[str, Grade]:
    return {s.student: grade_submission(desk, s) for s in find_submissions([SAMPLES], COURSE)}


def earned(grade: Grade) -> dict[str, float]:
    return {exercise.name: exercise.points for exercise in grade.exercises if exercise.points}


def statuses(grade: Grade, exercise: str) -> set[str]:
    (result,) = (result for result in grade.exercises if result.name == exercise)
    return {test.status for test in result.tests}


def told(grade: Grade, exercise: str) -> str:
    (result,) = (result for result in grade.exercises if result.name == exercise)
    return "\n".join(test.message for test in result.tests if test.message)


def test_every_sample_is_graded(grades: dict[str, Grade]) -> None:
    assert sorted(grades) == sorted(DESERVED)


@pytest.mark.parametrize("student", DESERVED)
def test_each_exercise_has_exactly_the_points_that_it_deserves(
    student: str, grades: dict[str, Grade]
) -> None:
    assert earned(grades[student]) == DESERVED[student]
    assert grades[student].total == round(sum(DESERVED[student].values()), 3)
    assert grades[student].max == 114


@pytest.mark.parametrize("student", DESERVED)
def test_a_test_has_points_only_if_it_passed(student: str, grades: dict[str, Grade]) -> None:
    assert_only_what_passed_is_paid(grades[student])


@pytest.mark.parametrize("student", ["ada", "bob_four_classes", "dana_mistakes"])
def test_another_seed_gives_other_inputs_and_the_same_points(
    student: str, desk: Desk, grades: dict[str, Grade]
) -> None:
    (submission,) = (s for s in find_submissions([SAMPLES], COURSE) if s.student == student)
    other = dataclasses.replace(desk, seed="another seed")
    assert earned(grade_submission(other, submission)) == earned(grades[student])


def test_an_untouched_submission_is_the_stubs_and_all_of_it_is_missing(
    grades: dict[str, Grade],
) -> None:
    for unit in COURSE.units:
        stub = COURSE.stub_file(unit.name).read_text("utf-8")
        assert (SAMPLES / "blank" / f"{unit.name}.py").read_text("utf-8") == stub
    for name in FULL:
        assert statuses(grades["blank"], name) == {"missing"}


def test_an_empty_folder_is_told_as_empty(grades: dict[str, Grade]) -> None:
    assert grades["finn_empty"].status == "empty"


def test_a_syntax_error_is_told_with_its_line(grades: dict[str, Grade]) -> None:
    for name in ("normalize_by_sum", "softmax_naive", "softmax_rows"):
        assert statuses(grades["eve_syntax_error"], name) == {"error", "skipped"}
        assert "softmax.py line 12" in told(grades["eve_syntax_error"], name)
    assert statuses(grades["eve_syntax_error"], "softmax_stable") == {"missing"}


def test_an_endless_loop_costs_its_exercise_only(grades: dict[str, Grade]) -> None:
    assert "timeout" in statuses(grades["gil_endless_loop"], "softmax_naive")
    assert statuses(grades["gil_endless_loop"], "softmax_rows") == {"passed"}


def test_a_forbidden_function_is_told_with_its_line(grades: dict[str, Grade]) -> None:
    message = told(grades["dana_mistakes"], "scaled_dot_product_attention")
    assert "self_attention.py line 13" in message
    assert "scaled_dot_product_attention" in message


@pytest.mark.parametrize(
    ("exercise", "words"),
    [
        ("softmax_rows", "sum to one"),
        ("masked_softmax", "zero"),
    ],
)
def test_a_mistake_is_told_in_words(exercise: str, words: str, grades: dict[str, Grade]) -> None:
    assert words in told(grades["dana_mistakes"], exercise)
