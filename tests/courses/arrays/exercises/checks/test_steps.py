"""Public checks of unit 2, steps."""

import numpy as np
import pytest

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


# --- convolve -------------------------------------------------------------------------------------


@rung.shape("convolve")
@pytest.mark.parametrize(("length", "width"), [(4, 3), (4, 1)])
def test_convolve_keeps_the_shape(student, make, length, width):
    """The result has the right shape and dtype."""
    signal = make.normal(2.0, length=length).double().numpy()
    kernel = make.normal(1.0, width=width).double().numpy()
    student.convolve(signal, kernel)


@rung.value("convolve")
def test_convolve_gives_the_example(student):
    """The example of the statement comes out as printed."""
    signal, kernel = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.5])
    assert_agrees(student.convolve(signal, kernel), np.array([2.5, 5.0, 10.0]))


@rung.value("convolve")
def test_convolve_gives_the_right_values(student, reference, make):
    """The result for another input agrees with the reference."""
    signal = make.normal(2.0, length=4).double().numpy()
    kernel = make.normal(1.0, width=3).double().numpy()
    assert_agrees(student.convolve(signal, kernel), reference.convolve(signal, kernel))
