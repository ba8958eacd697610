"""Known answers of unit 2, steps."""

import numpy as np

from grader.mistakes import accepted, common_mistakes, mistake

# --- moving_average ------------------------------------------------------------------------------

mistake(
    "moving_average", "sums", "These are sums, not means",
    hint="By which number is a mean divided?",
    change={".mean(axis=1)": ".sum(axis=1)"},
)  # fmt: skip
mistake(
    "moving_average", "medians", "These are medians, not means",
    hint="Which numbers of a window take part in its mean?",
    change={
        "np.lib.stride_tricks.sliding_window_view(series, width).mean(axis=1)":
        "np.median(np.lib.stride_tricks.sliding_window_view(series, width), axis=1)",
    },
)  # fmt: skip
mistake(
    "moving_average", "padded", "The series is padded with zeros at both ends",
    hint="How many windows fit into the series?", breaks=("returns",),
    change={
        "np.lib.stride_tricks.sliding_window_view(series, width).mean(axis=1)":
        "np.convolve(series, np.ones(width, series.dtype) / series.dtype.type(width), 'full')",
    },
)  # fmt: skip
mistake(
    "moving_average", "wrong-divisor", "The sum is divided by one number too many",
    hint="How many numbers has a window?",
    change={".mean(axis=1)": ".sum(axis=1) / (width + 1)"},
)  # fmt: skip


@mistake(
    "moving_average", "in-place", "The series that was passed is changed",
    hint="Where does cumsum write with out=?", breaks=("unchanged",),
)  # fmt: skip
def in_place(series, width):
    means = np.lib.stride_tricks.sliding_window_view(series, width).mean(axis=1)
    np.cumsum(series, out=series)
    return means


@accepted("moving_average", "convolution", "A convolution with equal weights")
def convolution(series, width):
    return np.convolve(series, np.full(width, 1 / width, series.dtype), mode="valid")


@accepted("moving_average", "loop", "A loop over the windows")
def loop(series, width):
    windows = [series[t : t + width] for t in range(len(series) - width + 1)]
    return np.array([window.mean() for window in windows], dtype=series.dtype)


# --- kmeans_step ---------------------------------------------------------------------------------

mistake(
    "kmeans_step", "furthest", "Points go to the furthest center",
    hint="Is the nearest center the one with the smallest distance?",
    change={"argmin": "argmax"},
)  # fmt: skip
mistake(
    "kmeans_step", "signed", "Differences are summed without squares",
    hint="Can a distance be negative?",
    change={"gaps**2": "gaps"},
)  # fmt: skip
mistake(
    "kmeans_step", "sums", "Centers are sums of their points",
    hint="By which number is a mean divided?",
    change={"mean(axis=0)": "sum(axis=0)"},
)  # fmt: skip
mistake(
    "kmeans_step", "halfway", "Centers move only half of the way",
    hint="Where is the center after the step?",
    change={
        "points[labels == number].mean(axis=0)":
        "(points[labels == number].mean(axis=0) + moved[number]) / 2",
    },
)  # fmt: skip
mistake(
    "kmeans_step", "zeros", "A center without points moves to zero",
    hint="What is known about a center without points?", breaks=("empty",),
    change={"centers.copy()": "np.zeros_like(centers)"},
)  # fmt: skip
mistake(
    "kmeans_step", "in-place", "The centers that were passed are changed",
    hint="Is `moved` a new array?", breaks=("unchanged",),
    change={"centers.copy()": "centers"},
)  # fmt: skip
mistake(
    "kmeans_step", "swapped", "The centers come first, and then the labels",
    hint="In which order does the statement name the results?", breaks=("returns",),
    change={"return labels, moved": "return moved, labels"},
)  # fmt: skip


@accepted("kmeans_step", "norms", "Distances by norms, and a list of means")
def norms(points, centers):
    labels = np.linalg.norm(points[:, None] - centers[None], axis=-1).argmin(-1)
    means = [
        points[labels == k].mean(0) if (labels == k).any() else center
        for k, center in enumerate(centers)
    ]
    return labels, np.stack(means)


# --- convolve -------------------------------------------------------------------------------------


common_mistakes(
    "convolve",
    "changed-in-place", "float32-inside", "nothing-returned", "all-zeros",
    "negated", "mean-for-sum", "one-step-short",
)  # fmt: skip

mistake(
    "convolve", "not-reversed", "The kernel is not reversed",
    hint="Which number of the kernel meets the last number of the signal's first part?",
    change={"kernel[::-1]": "kernel"},
)  # fmt: skip
mistake(
    "convolve", "signal-reversed", "The signal is reversed, not the kernel",
    hint="Does the first number of your result come from the beginning of the signal?",
    change={
        "turned = kernel[::-1]": "signal = signal[::-1]",
        "* turned": "* kernel",
    },
)  # fmt: skip


@mistake(
    "convolve", "same-length", "The kernel also hangs over the ends of the signal",
    hint="At how many places does the kernel lie within the signal?",
    breaks=("returns",),
)  # fmt: skip
def over_the_ends(signal, kernel):
    return np.convolve(signal, kernel, mode="same")


@accepted("convolve", "numpy", "With NumPy's own function")
def by_numpy(signal, kernel):
    return np.convolve(signal, kernel, mode="valid")
