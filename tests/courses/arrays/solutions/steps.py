"""References of unit 2, steps."""

import numpy as np
from jaxtyping import Float, Int


def moving_average(
    series: Float[np.ndarray, " time"], width: int
) -> Float[np.ndarray, " time-width+1"]:
    """Average each window of neighbouring numbers."""
    return np.lib.stride_tricks.sliding_window_view(series, width).mean(axis=1)


def kmeans_step(
    points: Float[np.ndarray, "points d"], centers: Float[np.ndarray, "clusters d"]
) -> tuple[Int[np.ndarray, " points"], Float[np.ndarray, "clusters d"]]:
    """Assign each point to its nearest center, and move the centers to the means."""
    gaps = points[:, None] - centers  # (points, clusters, d)
    labels = (gaps**2).sum(axis=2).argmin(axis=1)
    moved = centers.copy()
    for number in np.unique(labels):
        moved[number] = points[labels == number].mean(axis=0)
    return labels, moved


def convolve(
    signal: Float[np.ndarray, " length"], kernel: Float[np.ndarray, " width"]
) -> Float[np.ndarray, " length-width+1"]:
    """Slide a reversed kernel along a signal, and sum the products at each place."""
    turned = kernel[::-1]
    places = len(signal) - len(kernel) + 1
    return np.array([np.sum(signal[n : n + len(kernel)] * turned) for n in range(places)])
