"""Public checks of the tiny course's second unit."""

from grader.course.collection import rung
from grader.testing import adopt, assert_agrees


@rung.shape("Projection")
def test_projection_gives_one_row_for_each(student, make):
    """Each row of d_in becomes one of d_out."""
    student.Projection(3, 4)(make.normal(batch=2, d_in=3))


@rung.value("Projection")
def test_projection_with_our_weights(student, reference, make):
    """With the same weights, the rows are those of the reference."""
    theirs, ours = student.Projection(3, 4), reference.Projection(3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, d_in=3)
    assert_agrees(theirs(x), ours(x))
