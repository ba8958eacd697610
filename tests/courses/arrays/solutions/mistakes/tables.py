"""Known answers of unit 1, tables."""

import numpy as np

from grader.mistakes import accepted, mistake

# --- standardize ---------------------------------------------------------------------------------

mistake(
    "standardize", "rows", "Each row is standardized, not each column",
    hint="Over which axis does the mean of a column run?",
    change={
        "x.std(axis=0)": "x.std(axis=1, keepdims=True)",
        "x.mean(axis=0)": "x.mean(axis=1, keepdims=True)",
    },
)  # fmt: skip
mistake(
    "standardize", "whole-table", "Mean and deviation are those of the whole table",
    hint="Does each column get a mean of its own?",
    change={"x.std(axis=0)": "x.std(axis=0) * 0 + x.std()", "x.mean(axis=0)": "x.mean()"},
)  # fmt: skip
mistake(
    "standardize", "sample-deviation", "The deviation divides by one row too few",
    hint="By which number does the standard deviation divide here?",
    change={"x.std(axis=0)": "x.std(axis=0, ddof=1)"},
)  # fmt: skip
mistake(
    "standardize", "not-shifted", "The mean is not subtracted",
    hint="What is the mean of your columns?",
    change={"x - x.mean(axis=0)": "x"},
)  # fmt: skip
mistake(
    "standardize", "variance", "The columns are divided by the variance",
    hint="Which power of the deviation is the variance?",
    change={"x.std(axis=0)": "x.var(axis=0)"},
)  # fmt: skip
mistake(
    "standardize", "zero-by-zero", "A constant column becomes NaN",
    hint="What is 0 divided by 0?",
    breaks=("constant",),
    change={"np.where(deviation > 0, deviation, np.inf)": "deviation"},
)  # fmt: skip


@mistake(
    "standardize", "in-place", "The table that was passed is changed",
    hint="Does -= make a new array?", breaks=("unchanged",),
)  # fmt: skip
def in_place(x):
    deviation = x.std(axis=0)
    x -= x.mean(axis=0)
    return x / np.where(deviation == 0, 1, deviation)


@mistake(
    "standardize", "double", "The result is float64, whatever the table is",
    hint="Which dtype has the table?", breaks=("returns",),
)  # fmt: skip
def double(x):
    x = x.astype(np.float64)
    deviation = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(deviation == 0, 1, deviation)


@accepted("standardize", "by-hand", "The deviation from squares")
def by_hand(x):
    shifted = x - x.sum(axis=0, keepdims=True) / len(x)
    deviation = np.sqrt((shifted**2).mean(axis=0))
    return shifted / np.where(deviation > 0, deviation, np.ones_like(deviation))


# --- one_hot -------------------------------------------------------------------------------------

mistake(
    "one_hot", "from-one", "Labels are counted from 1",
    hint="In which column is the 1 for the label 0?",
    change={"np.arange(classes)": "np.arange(1, classes + 1)"},
)  # fmt: skip
mistake(
    "one_hot", "zero-hot", "Zeros and ones are swapped",
    hint="How many ones has each row?",
    change={"==": "!="},
)  # fmt: skip
mistake(
    "one_hot", "thermometer", "All columns up to the label are 1",
    hint="How many ones has each row?",
    change={"==": ">="},
)  # fmt: skip
mistake(
    "one_hot", "integers", "The numbers are integers",
    hint="Which dtype does the statement say?", breaks=("returns",),
    change={"np.float64": "np.int64"},
)  # fmt: skip
mistake(
    "one_hot", "largest-label", "There are only as many columns as labels occur",
    hint="How many columns has the result if the last class does not occur?", breaks=("returns",),
    change={"np.arange(classes)": "np.arange(labels.max(initial=0) + 1)"},
)  # fmt: skip


@mistake(
    "one_hot", "no-labels", "No labels raise an error",
    hint="What is the first label of none?", breaks=("empty",),
)  # fmt: skip
def no_labels(labels, classes):
    assert labels[0] >= 0
    return (labels[:, None] == np.arange(classes)).astype(np.float64)


@accepted("one_hot", "rows-of-the-identity", "Rows of the identity matrix")
def rows_of_the_identity(labels, classes):
    return np.eye(classes)[labels]


@accepted("one_hot", "by-index", "Ones at an index of rows and labels")
def by_index(labels, classes):
    table = np.zeros((len(labels), classes))
    table[np.arange(len(labels)), labels] = 1
    return table


# --- accuracy_by_class ---------------------------------------------------------------------------

mistake(
    "accuracy_by_class", "smallest", "The class with the smallest score is taken",
    hint="Which score of a row says the class?",
    change={"argmax": "argmin"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "share-of-all", "Right rows are divided by the number of all rows",
    hint="Among which rows is the share taken?",
    change={"float(own.mean())": "float(own.sum() / len(labels))"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "wrong-rows", "The shares are those of the wrong rows",
    hint="Are the rows counted that are right?",
    change={"scores.argmax(axis=1) == labels": "scores.argmax(axis=1) != labels"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "by-said-class", "Rows are grouped by the class that is said",
    hint="Whose rows count for a class: those that have its label, or those that are called it?",
    change={"labels == number": "scores.argmax(axis=1) == number"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "counts", "These are numbers of rows, not shares",
    hint="What is the largest share?",
    change={"own.mean()": "own.sum()"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "zero-for-none", "A class without rows has 0",
    hint="What do you know about a class that does not occur?", breaks=("absent",),
    change={"else None": "else 0.0"},
)  # fmt: skip
mistake(
    "accuracy_by_class", "by-number", "The keys are numbers, not names",
    hint="What are the keys of the dictionary?", breaks=("returns",),
    change={"shares[name]": "shares[number]"},
)  # fmt: skip


@mistake(
    "accuracy_by_class", "eats-names", "The list of names is emptied",
    hint="What does pop do to a list?", breaks=("unchanged",),
)  # fmt: skip
def eats_names(scores, labels, names):
    right = scores.argmax(axis=1) == labels
    shares, number = {}, 0
    while names:
        own = right[labels == number]
        shares[names.pop(0)] = float(own.mean()) if len(own) else None
        number += 1
    return shares


@accepted("accuracy_by_class", "numbers-of-numpy", "Numbers of NumPy, in a dict comprehension")
def numbers_of_numpy(scores, labels, names):
    said = np.argmax(scores, axis=-1)
    return {
        name: np.mean(said[labels == n] == n) if np.any(labels == n) else None
        for n, name in enumerate(names)
    }
