"""References of unit 1, tables."""

import numpy as np
from jaxtyping import Float, Float64, Int


def standardize(x: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """Shift and scale each column to mean 0 and standard deviation 1."""
    shifted, deviation = x - x.mean(axis=0), x.std(axis=0)
    return shifted / np.where(deviation > 0, deviation, np.inf)


def one_hot(labels: Int[np.ndarray, " rows"], classes: int) -> Float64[np.ndarray, "rows classes"]:
    """Turn each label into a row with a single 1."""
    return (labels[:, None] == np.arange(classes)).astype(np.float64)


def accuracy_by_class(
    scores: Float[np.ndarray, "rows classes"], labels: Int[np.ndarray, " rows"], names: list[str]
) -> dict[str, float | None]:
    """Give the share of right rows among the rows of each class."""
    right = scores.argmax(axis=1) == labels
    shares: dict[str, float | None] = {}
    for number, name in enumerate(names):
        own = right[labels == number]
        shares[name] = float(own.mean()) if len(own) else None
    return shares
