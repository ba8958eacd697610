"""Hidden graders of the tiny course's second unit."""

import pytest

from grader.course.collection import rung
from grader.testing import (
    adopt,
    assert_agrees,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
)


@rung.shape("Projection")
def test_projection_has_the_shape_of_the_contract(student, make):
    """Each row of d_in becomes one of d_out."""
    student.Projection(4, 5)(make.normal(batch=3, d_in=4))


@rung.value("Projection", points=3)
@pytest.mark.parametrize("bias", [False, True], ids=["without a bias", "with a bias"])
def test_projection_agrees_with_the_reference(student, reference, make, bias):
    """With the same weights, the rows are those of the reference."""
    theirs, ours = student.Projection(4, 5, bias), reference.Projection(4, 5, bias)
    adopt(theirs, ours)
    x = make.normal(batch=3, d_in=4)
    assert_agrees(theirs(x), ours(x))


@rung.property("Projection")
def test_projection_keeps_rows_apart(student, make):
    """Rows of a batch do not see one another."""
    assert_batch_rows_do_not_mix(student.Projection(4, 5), make.normal(batch=3, d_in=4))


@rung.gradient("Projection")
def test_projection_has_the_right_gradients(student, reference, make):
    """Gradients flow to the input and to the weight."""
    theirs, ours = student.Projection(4, 5), reference.Projection(4, 5)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(batch=3, d_in=4), make=make)
