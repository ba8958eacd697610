"""Hidden graders of unit 1, tables."""

import numpy as np
import pytest

from grader.testing import assert_agrees, assert_input_unchanged, rung

SIZES = [(4, 3), (7, 2)]  # rows, columns


@rung.shape("standardize")
def test_standardize_keeps_the_shape(student, make):
    """The table has the shape and dtype of the input."""
    student.standardize(make.normal(rows=6, columns=4).numpy())


@rung.value("standardize", points=3)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_standardize_agrees_with_the_reference(student, reference, make, sizes):
    """Each column has mean 0 and deviation 1."""
    x = make.normal(0.3, rows=sizes[0], columns=sizes[1]).double().numpy() + 5
    assert_agrees(student.standardize(x), reference.standardize(x))


@rung.property("standardize", rules=("constant",))
def test_standardize_makes_zeros_of_a_constant_column(student, reference, make):
    """A constant column becomes zeros."""
    x = make.normal(3.0, rows=5, columns=3).double().numpy()
    x[:, 1] = 2.0
    assert_agrees(student.standardize(x), reference.standardize(x))


@rung.property("standardize", rules=("unchanged",))
def test_standardize_changes_no_input(student, make):
    """The table stays as it was."""
    assert_input_unchanged(student.standardize, make.normal(rows=5, columns=3).numpy())


@rung.shape("one_hot")
def test_one_hot_has_a_column_for_each_class(student):
    """Rows by classes, in float64."""
    student.one_hot(np.array([1, 0, 3, 1, 1]), 4)


@rung.value("one_hot", points=2)
@pytest.mark.parametrize("classes", [3, 5], ids="{} classes".format)
def test_one_hot_agrees_with_the_reference(student, reference, make, classes):
    """The 1 is in the column of the label."""
    labels = make.integers(0, classes, rows=7).numpy()
    assert_agrees(student.one_hot(labels, classes), reference.one_hot(labels, classes))


@rung.property("one_hot", rules=("empty",))
def test_one_hot_of_no_labels(student):
    """No labels give no rows."""
    assert_agrees(student.one_hot(np.zeros(0, np.int64), 3), np.zeros((0, 3)))


@rung.value("accuracy_by_class", points=3)
@pytest.mark.parametrize("classes", [3, 4], ids="{} classes".format)
def test_accuracy_agrees_with_the_reference(student, reference, make, classes):
    """Each class has its share of right rows."""
    scores = make.normal(rows=14, classes=classes).double().numpy()
    labels = np.resize(np.arange(classes), 14)
    names = ["ape", "bee", "cow", "dog"][:classes]
    theirs = student.accuracy_by_class(scores, labels, names)
    assert_agrees(theirs, reference.accuracy_by_class(scores, labels, names))


@rung.property("accuracy_by_class", rules=("absent",))
def test_accuracy_of_a_class_without_rows(student, reference, make):
    """A class without rows has None."""
    scores = make.normal(rows=6, classes=3).double().numpy()
    labels = np.array([0, 2, 0, 2, 2, 0])
    names = ["ape", "bee", "cow"]
    theirs = student.accuracy_by_class(scores, labels, names)
    assert_agrees(theirs, reference.accuracy_by_class(scores, labels, names))


@rung.property("accuracy_by_class", rules=("unchanged",))
def test_accuracy_changes_no_names(student, make):
    """The list of names stays as it was."""
    scores = make.normal(rows=4, classes=2).numpy()
    labels = np.array([0, 1, 1, 0])
    assert_input_unchanged(student.accuracy_by_class, scores, labels, ["ape", "bee"])
