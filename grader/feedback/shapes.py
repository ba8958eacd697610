"""Explains torch's errors about sizes that do not fit.

Torch's message names at most two numbers. The explanation adds the rule, the tensors' shapes, and
the names that the exercise's statement gives to these sizes, such as ``tokens = 5``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from grader.records.rows import listed

Shape = Sequence[int]

PRODUCT = (
    "a matrix product runs over the last size on the left and the last but one on the right, and "
    "{left} is not {right}"
)
BROADCAST = (
    "element by element, sizes are compared from the last axis to the first: two sizes must be "
    "equal, or one of them 1, and {left} is not {right}"
)
KEEPDIM = " If you took a sum, mean or max, keepdim=True keeps its axis as a 1."

# Explanations by a pattern of torch's error message; named groups fill the explanation's fields.
RULES = {
    r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<left>\d+) and (?P<right>\d+)x": PRODUCT,
    r"batch2 tensor to be: \[\d+, (?P<left>\d+)\] but got: \[\d+, (?P<right>\d+)\]": PRODUCT,
    r"mismatch, got input \(\d+\), mat \(\d+x(?P<left>\d+)\), vec \((?P<right>\d+)\)": PRODUCT,
    r"size, expected tensor \[(?P<left>\d+)\] and src \[(?P<right>\d+)\]": PRODUCT,
    r"tensor a \((?P<left>\d+)\) must match the size of tensor b \((?P<right>\d+)\)": BROADCAST,
    r"of the tensor \((?P<left>\d+)\) must match the existing size \((?P<right>\d+)\)": (
        "only a size of 1 can be stretched, and {right} is neither 1 nor {left}"
    ),
    r"shape '\[(?P<shape>[-\d, ]*)\]' is invalid for input of size (?P<count>\d+)": (
        "view and reshape keep every element: the sizes ({shape}) do not multiply to {count}"
    ),
    r"in range of \[-\d+, (?P<last>\d+)\], but got (?P<axis>-?\d+)": (
        "there is no axis {axis}: the axes are 0 to {last}, and -1 is the last of them"
    ),
    r"in dimension (?P<axis>\d+)\. Expected size (?P<left>\d+) but got size (?P<right>\d+)": (
        "tensors are joined along axis {axis}, and all other sizes must be equal: {left} is not "
        "{right}"
    ),
    r"torch\.return_types\.(?P<name>max|min|median|mode|sort|topk)\b": (
        "with dim, {name} gives two things, values and indices: you want its .values"
    ),
}


def explained(text: str, operands: Mapping[str, Shape], sizes: Mapping[str, int]) -> str | None:
    """Explain torch's error about sizes; None if the error is about something else.

    `operands` are the shapes of the tensors in the failing line, by name; `sizes` are the sizes of
    the exercise's dimensions in this call.
    """
    for pattern, sentence in RULES.items():
        if match := re.search(pattern, text):
            rule = sentence.format(**match.groupdict())
            gap = {int(match["left"]), int(match["right"])} if sentence is BROADCAST else set()
            keepdim = (
                KEEPDIM if gap and any(_loses_an_axis(s, gap) for s in operands.values()) else ""
            )
            return f"{rule[0].upper()}{rule[1:]}.{keepdim}{_here(operands, sizes)}"
    return None


def _loses_an_axis(shape: Shape, gap: Collection[int]) -> bool:
    """Whether these two sizes meet if such a tensor meets its own sum over one of its axes."""
    without = ([*shape[:axis], *shape[axis + 1 :]] for axis in range(len(shape)))
    return any(
        {*sizes} == gap for sums in without for sizes in zip(shape[::-1], sums[::-1], strict=False)
    )


def _here(operands: Mapping[str, Shape], sizes: Mapping[str, int]) -> str:
    """A sentence with the tensors' shapes, and with the dimensions' names for their sizes.

    For example: ``Here x is (5, 4) and W is (6, 4) (tokens = 5, d_in = 4).``
    """
    if not operands:
        return ""
    shapes = [f"{name} is {tuple(shape)}" for name, shape in operands.items()]
    seen = dict.fromkeys(size for shape in operands.values() for size in shape)
    meant = [f"{' or '.join(names)} = {size}" for size in seen if (names := _named(size, sizes))]
    return f" Here {listed(shapes, 'and')}" + (f" ({', '.join(meant)})." if meant else ".")


def _named(size: int, sizes: Mapping[str, int]) -> list[str]:
    return [name for name, own in sizes.items() if own == size and size > 1]
