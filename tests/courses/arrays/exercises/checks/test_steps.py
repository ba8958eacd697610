"""Public checks of unit 2, steps."""

import numpy as np

from grader.testing import assert_agrees, rung


@rung.value("moving_average")
def test_moving_average_agrees(student, reference, make):
    """Each window becomes its mean."""
    series = make.normal(2.0, time=7).numpy()
    assert_agrees(student.moving_average(series, 3), reference.moving_average(series, 3))


@rung.value("kmeans_step", rules=("computes", "empty"))
def test_kmeans_step_of_the_example(student):
    """Two clusters move, and the third stays."""
    points, centers = np.array([[0.0], [2.0], [9.0]]), np.array([[0.5], [8.0], [50.0]])
    labels, moved = student.kmeans_step(points, centers)
    assert_agrees(labels, np.array([0, 0, 1]), what="the labels")
    assert_agrees(moved, np.array([[1.0], [9.0], [50.0]]), what="the centers")
