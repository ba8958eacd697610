"""Unit 1, tables: rows are examples, columns are their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int


def standardize(x: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """Shift and scale each column to mean 0 and standard deviation 1.

        out[i, j] = (x[i, j] - mean_i x[i, j]) / std_i x[i, j]

    The standard deviation divides by the number of rows.

    Why: columns with different units become comparable.

    Takes:
        x: (rows, columns).

    Returns:
        (rows, columns): the standardized table.

    Rules:
        constant: A column of equal numbers becomes zeros.
        unchanged: `x` stays as it was.

    Example: two columns, the second of which is constant.

    >>> standardize(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])

    Source: NumPy, Broadcasting, https://numpy.org/doc/stable/user/basics.broadcasting.html.
    """
    raise NotImplementedError


def one_hot(labels: Int[np.ndarray, " rows"], classes: int) -> Float64[np.ndarray, "rows classes"]:
    """Turn each label into a row with a single 1.

        out[i, labels[i]] = 1, and all other numbers are 0

    Why: a label becomes a row of probabilities.

    Takes:
        labels: int (rows), each from 0 to classes - 1.
        classes: int, the number of columns.

    Returns:
        float64 (rows, classes).

    Rules:
        empty: No labels give a table without rows.

    Example: two of three classes.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])

    Source: NumPy, Indexing, https://numpy.org/doc/stable/user/basics.indexing.html.
    """
    raise NotImplementedError


def accuracy_by_class(
    scores: Float[np.ndarray, "rows classes"], labels: Int[np.ndarray, " rows"], names: list[str]
) -> dict[str, float | None]:
    """Give the share of right rows among the rows of each class.

        out[names[c]] = share of rows with labels[i] = c and argmax_j scores[i, j] = c

    Why: one accuracy for all rows hides a class that is never right.

    Takes:
        scores: (rows, classes); the largest score of a row is the class that is said.
        labels: int (rows), the true classes.
        names: the names of the classes, in the order of the columns.

    Returns:
        a dictionary from each name to a number from 0 to 1.

    Rules:
        absent: A class without rows has None.
        unchanged: `names` stays as it was.

    Example: the second dog is called a cat, and the eel is called a dog.

    >>> scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [3.0, 1.0, 2.0], [0.0, 2.0, 1.0]])
    >>> accuracy_by_class(scores, np.array([0, 1, 1, 2]), ["cat", "dog", "eel"])
    {'cat': 1.0, 'dog': 0.5, 'eel': 0.0}

    Source: NumPy, argmax, https://numpy.org/doc/stable/reference/generated/numpy.argmax.html.
    """
    raise NotImplementedError
