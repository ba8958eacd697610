"""Unit 2, steps: windows over a series, and one step of an algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def moving_average(
    series: Float[np.ndarray, " time"], width: int
) -> Float[np.ndarray, " time-width+1"]:
    """Average each window of neighbouring numbers.

        out[t] = (series[t] + … + series[t + width - 1]) / width

    Why: this is the simplest convolution, and it makes a trend visible.

    Takes:
        series: (time).
        width: int, from 1 to time.

    Returns:
        (time-width+1): one mean for each window that fits.

    Rules:
        unchanged: `series` stays as it was.

    Example: three windows of two numbers.

    >>> moving_average(np.array([1.0, 3.0, 5.0, 9.0]), 2)
    array([2., 4., 7.])

    Source: NumPy, convolve, https://numpy.org/doc/stable/reference/generated/numpy.convolve.html.
    """
    raise NotImplementedError


def kmeans_step(
    points: Float[np.ndarray, "points d"], centers: Float[np.ndarray, "clusters d"]
) -> tuple[Int[np.ndarray, " points"], Float[np.ndarray, "clusters d"]]:
    """Assign each point to its nearest center, and move the centers to the means.

        label[i] = argmin_k |points[i] - centers[k]|²,   center[k] = mean of the points labelled k

    Why: k-means repeats this step until the labels stay the same.

    Takes:
        points: (points, d).
        centers: (clusters, d).

    Returns:
        int (points), the labels; and (clusters, d), the new centers.

    Rules:
        empty: A center without points stays where it is.
        unchanged: `points` and `centers` stay as they were.

    Example: the third center has no point.

    >>> points = np.array([[0.0], [2.0], [9.0]])
    >>> labels, centers = kmeans_step(points, np.array([[0.5], [8.0], [50.0]]))
    >>> labels
    array([0, 0, 1])
    >>> centers
    array([[ 1.],
           [ 9.],
           [50.]])

    Source: Stuart Lloyd 1982, "Least squares quantization in PCM",
    https://doi.org/10.1109/TIT.1982.1056489.
    """
    raise NotImplementedError


def convolve(
    signal: Float[np.ndarray, " length"],
    kernel: Float[np.ndarray, " width"],
) -> Float[np.ndarray, " length-width+1"]:
    """Slide a reversed kernel along a signal, and sum the products at each place.

        result[n] = Σₖ signal[n + width - 1 - k] · kernel[k]

    Why: sounds are filtered, pictures blurred and probabilities of sums computed in this way. A
    layer of a convolutional network does the same, without reversing the kernel.

    Takes:
        signal: (length), any numbers.
        kernel: (width), any numbers; at least one, and at most as many as the signal has.

    Returns:
        (length-width+1): a number for each place at which the kernel lies within the signal.

    Rules:
        dtype: float64 in, float64 out, in full precision.
        unchanged: `signal` and `kernel` stay as they were.

    Example: 2 · 1 + 1 · 0.5 = 2.5 is the first number.

    >>> convolve(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.5]))
    array([ 2.5,  5. , 10. ])

    Source: Wikipedia, "Convolution", https://en.wikipedia.org/wiki/Convolution.
    """
    raise NotImplementedError
