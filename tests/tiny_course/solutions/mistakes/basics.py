"""Known answers of the tiny course's first unit."""

import torch

from grader.mistakes import accepted, mistake

mistake(
    "center",
    "adds",
    "The mean is added",
    hint="What is the mean of what remains?",
    change={"x - ": "x + "},
)


@mistake("center", "median", "The median is subtracted", hint="Which middle is meant?")
def with_the_median(x):
    return x - x.median()


@accepted("center", "in-two-steps", "The mean first")
def in_two_steps(x):
    middle = torch.mean(x)
    return x - middle


mistake(
    "staircase",
    "upside-down",
    "The upper half is True",
    hint="Which half is the past?",
    change={"tril": "triu"},
)
mistake(
    "staircase",
    "mirrored",
    "The matrix is transposed",
    hint="Rows or columns?",
    change={"tril()": "tril().T"},
    same_as={"upside-down": "one half transposed is the other"},
)
mistake(
    "weigh",
    "columns",
    "Each column sums to one",
    hint="Which axis should sum to one?",
    change={"weights.sum(dim=-1, ": "weights.sum(dim=0, "},
)
mistake(
    "weigh",
    "twice",
    "The weights are squared",
    hint="How often is the exponential taken?",
    change={"torch.exp(scores - largest)": "torch.exp(2 * (scores - largest))"},
)


@accepted("staircase", "counted", "Rows and columns counted")
def counted(size):
    steps = torch.arange(size)
    return steps[:, None] >= steps[None, :]


@accepted("weigh", "one-sum-later", "The logarithm of the sum is subtracted")
def one_sum_later(scores):
    return torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))
