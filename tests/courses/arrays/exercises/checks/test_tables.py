"""Public checks of unit 1, tables."""

import numpy as np

from grader.testing import assert_agrees, assert_input_unchanged, rung


@rung.value("standardize")
def test_standardize_agrees(student, reference, make):
    """Each column has mean 0 and deviation 1."""
    x = make.normal(3.0, rows=5, columns=3).double().numpy()
    assert_agrees(student.standardize(x), reference.standardize(x))


@rung.property("standardize", rules=("unchanged",))
def test_standardize_leaves_the_table_alone(student, make):
    """The table stays as it was."""
    assert_input_unchanged(student.standardize, make.normal(rows=4, columns=2).numpy())


@rung.value("one_hot")
def test_one_hot_of_the_example(student):
    """2 and 0 among three classes."""
    expected = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    assert_agrees(student.one_hot(np.array([2, 0]), 3), expected)


@rung.value("accuracy_by_class")
def test_accuracy_of_the_example(student):
    """All cats are right, half of the dogs, and no eel."""
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [3.0, 1.0, 2.0], [0.0, 2.0, 1.0]])
    result = student.accuracy_by_class(scores, np.array([0, 1, 1, 2]), ["cat", "dog", "eel"])
    assert_agrees(result, {"cat": 1.0, "dog": 0.5, "eel": 0.0})
