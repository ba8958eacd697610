"""Hidden graders of the tiny course's first unit: every rung, with and without parameters."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    assert_agrees,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_rows_sum_to_one,
    assert_that,
)

# --- center --------------------------------------------------------------------------------------


@rung.shape("center")
@pytest.mark.parametrize("tokens", [1, 5])
def test_center_has_the_shape_of_its_input(student, make, tokens):
    """The result has the shape and dtype of the input."""
    student.center(make.normal(tokens=tokens))


@rung.value("center", points=4)
@pytest.mark.parametrize("tokens", [2, 5, 9])
def test_center_agrees_with_the_reference(student, reference, make, tokens):
    """The mean is gone from every element."""
    x = make.normal(3.0, tokens=tokens)
    assert_agrees(student.center(x), reference.center(x))


@rung.property("center")
def test_center_leaves_nothing_in_the_middle(student, make):
    """What remains has a mean of zero."""
    left = student.center(make.uniform(2.0, 5.0, tokens=6))
    assert_that(abs(left.mean().item()) < 1e-5, "the mean of what remains is not zero")


@rung.gradient("center")
def test_center_has_the_right_gradient(student, reference, make):
    """Gradients flow to the input."""
    assert_gradients_agree(student.center, reference.center, make.normal(tokens=5), make=make)


@rung.efficiency("center")
def test_center_takes_no_loop(student, make):
    """The number of operations does not grow with the input."""
    assert_operations_do_not_grow(student.center, [make.normal(tokens=3)], [make.normal(tokens=8)])


# --- staircase -----------------------------------------------------------------------------------


@rung.shape("staircase")
def test_staircase_is_a_square_of_booleans(student):
    """It is boolean, size by size."""
    student.staircase(3)


@rung.value("staircase", points=2)
@pytest.mark.parametrize("size", [2, 4, 7])
def test_staircase_agrees_with_the_reference(student, reference, size):
    """True on and below the diagonal."""
    assert_agrees(student.staircase(size), reference.staircase(size))


@rung.property("staircase")
def test_staircase_of_one_step(student):
    """A single step is True."""
    assert_that(bool(student.staircase(1).all()), "the only step is False")


# --- weigh ---------------------------------------------------------------------------------------


@rung.shape("weigh")
def test_weigh_keeps_the_shape_of_the_scores(student, make):
    """The weights have the shape and dtype of the scores."""
    student.weigh(make.normal(queries=3, keys=5))


@rung.value("weigh", points=5)
def test_weigh_agrees_with_the_reference(student, reference, make):
    """Every row agrees with the reference."""
    scores = make.normal(2.0, queries=3, keys=5)
    assert_agrees(student.weigh(scores), reference.weigh(scores))


@rung.property("weigh")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_weigh_makes_distributions(student, make, dtype):
    """Each row sums to one."""
    assert_rows_sum_to_one(student.weigh(make.normal(queries=4, keys=6, dtype=dtype)))


@rung.property("weigh")
def test_weigh_leaves_the_scores_alone(student, make):
    """The scores are not changed in place."""
    assert_input_unchanged(student.weigh, make.normal(queries=3, keys=5))


@rung.gradient("weigh")
def test_weigh_has_the_right_gradient(student, reference, make):
    """Gradients flow to the scores."""
    scores = make.normal(queries=3, keys=5)
    assert_gradients_agree(student.weigh, reference.weigh, scores, make=make)


@rung.stability("weigh")
def test_weigh_survives_large_scores(student, reference, make):
    """Scores of a thousand give finite weights."""
    scores = make.normal(1000.0, queries=3, keys=5)
    assert_agrees(student.weigh(scores), reference.weigh(scores))
