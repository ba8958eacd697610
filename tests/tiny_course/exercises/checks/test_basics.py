"""Public checks of the tiny course's first unit."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import assert_agrees


@rung.shape("center")
def test_center_keeps_the_shape(student, make):
    """The result has as many elements as the input."""
    student.center(make.normal(tokens=4))


@rung.value("center")
def test_center_of_three_numbers(student):
    """1, 2, 6 become -2, -1, 3."""
    assert_agrees(student.center(torch.tensor([1.0, 2.0, 6.0])), torch.tensor([-2.0, -1.0, 3.0]))


@rung.value("staircase")
@pytest.mark.parametrize("size", [1, 3])
def test_staircase_agrees(student, reference, size):
    """True on and below the diagonal."""
    assert_agrees(student.staircase(size), reference.staircase(size))


@rung.value("weigh")
def test_weigh_of_equal_scores(student):
    """Equal scores share the weight."""
    assert_agrees(student.weigh(torch.full((2, 4), 3.0)), torch.full((2, 4), 0.25))
