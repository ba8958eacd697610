"""Hidden graders of unit 2, steps."""

import numpy as np
import pytest
import torch

from grader.testing import assert_agrees, assert_agrees_to_float64, assert_input_unchanged, rung


@rung.shape("moving_average")
def test_moving_average_has_a_number_for_each_window(student, make):
    """The result has the dtype of the series."""
    student.moving_average(make.normal(time=9).numpy(), 4)


@rung.value("moving_average", points=2)
@pytest.mark.parametrize("width", [1, 2, 5], ids="width {}".format)
def test_moving_average_agrees_with_the_reference(student, reference, make, width):
    """Each window becomes its mean."""
    series = make.normal(2.0, time=8).double().numpy()
    assert_agrees(student.moving_average(series, width), reference.moving_average(series, width))


@rung.property("moving_average", rules=("unchanged",))
def test_moving_average_changes_no_series(student, make):
    """The series stays as it was."""
    assert_input_unchanged(student.moving_average, make.normal(time=6).numpy(), 2)


@rung.shape("kmeans_step")
def test_kmeans_step_gives_labels_and_centers(student, make):
    """A label for each point, and the centers."""
    student.kmeans_step(make.normal(points=7, d=2).numpy(), make.normal(clusters=3, d=2).numpy())


@rung.value("kmeans_step", points=3)
@pytest.mark.parametrize("d", [2, 3], ids="{} dimensions".format)
def test_kmeans_step_agrees_with_the_reference(student, reference, make, d):
    """Points get the label of the nearest center, and centers become means."""
    points = make.normal(2.0, points=12, d=d).double().numpy()
    centers = points[[0, 5, 9]]
    assert_agrees(student.kmeans_step(points, centers), reference.kmeans_step(points, centers))


@rung.property("kmeans_step", rules=("empty",))
def test_kmeans_step_leaves_a_center_without_points(student, reference, make):
    """A center far away stays where it is."""
    points = make.normal(points=6, d=2).double().numpy()
    centers = np.stack([points[0], points[3], np.array([90.0, -90.0])])
    assert_agrees(student.kmeans_step(points, centers), reference.kmeans_step(points, centers))


@rung.property("kmeans_step", rules=("unchanged",))
def test_kmeans_step_changes_no_input(student, make):
    """Points and centers stay as they were."""
    points = make.normal(points=6, d=2).numpy()
    assert_input_unchanged(student.kmeans_step, points, points[:2] + 1)


# --- convolve -------------------------------------------------------------------------------------


@rung.shape("convolve")
@pytest.mark.parametrize(("length", "width"), [(6, 5), (6, 1)])
def test_convolve_has_the_right_shape(student, make, length, width):
    """The result has the right shape and dtype."""
    signal = make.normal(2.0, length=length).double().numpy()
    kernel = make.normal(1.0, width=width).double().numpy()
    student.convolve(signal, kernel)


@rung.value("convolve", points=6)
@pytest.mark.parametrize(("length", "width"), [(6, 5), (5, 4), (6, 3)])
def test_convolve_agrees_with_the_reference(student, reference, make, length, width):
    """The result agrees with the reference."""
    signal = make.normal(2.0, length=length).double().numpy()
    kernel = make.normal(1.0, width=width).double().numpy()
    assert_agrees(student.convolve(signal, kernel), reference.convolve(signal, kernel))


@rung.property("convolve", rules=("dtype",))
def test_convolve_keeps_float64(student, reference, make):
    """float64 gives float64, in full precision."""
    signal = make.normal(2.0, length=4, dtype=torch.float64).numpy()
    kernel = make.normal(1.0, width=3, dtype=torch.float64).numpy()
    assert_agrees_to_float64(student.convolve(signal, kernel), reference.convolve(signal, kernel))


@rung.property("convolve", rules=("unchanged",))
def test_convolve_changes_no_argument(student, make):
    """The arguments stay as they were."""
    signal = make.normal(2.0, length=4).double().numpy()
    kernel = make.normal(1.0, width=3).double().numpy()
    assert_input_unchanged(student.convolve, signal, kernel)
