"""Asserts that values agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.course.forms import describe, number_in
from grader.course.tolerances import ALL_DIGITS, FLOAT64, GRADIENTS, SLOPES, Tolerance
from grader.feedback.differences.pair import differing
from grader.feedback.disagreement import Disagreement
from grader.proxies.remote import RemoteFunction, RemoteModule
from grader.records.rows import counted
from grader.wire.payload import fields_of

MOST_ITEMS = 4  # of a set that are named in a message
MOST_KEYS = 20  # of a dictionary that are named in a message
MOST_CHARACTERS = 80  # of a value in a message

THROUGH_FLOAT32 = (
    "float64 carries 16 digits, but fewer of yours are right: does a value pass through "
    "float32, as by .float() or a new tensor without a dtype? Or do you add something small, "
    "such as an eps?"
)


def argument_name(call: Callable[..., Any], number: int) -> str:
    """An argument of a call, counted from 1, by its name in the statement.

    If the test wraps the student's code in a function of its own, the name is unknown.
    """
    if isinstance(call, RemoteFunction | RemoteModule):
        parameters = call.contract.called.parameters
        if number <= len(parameters):
            return f"`{parameters[number - 1].name}`"
    return f"argument {number}"


def assert_that(condition: bool, message: str) -> None:
    """Fail with a message for the student unless `condition` holds.

    >>> assert_that(1 + 1 == 3, "one and one are two")
    Traceback (most recent call last):
        ...
    AssertionError: one and one are two
    """
    if not condition:
        raise AssertionError(message)


def assert_agrees(
    theirs: Any, ours: Any, *, within: Tolerance | None = None, what: str = ""
) -> None:
    """Fail unless two values agree: tensors, NumPy arrays, numbers, other values, or nests of them.

    Tensors and arrays must agree in shape, dtype and value. Without `within`, the tolerance is that
    of `torch.testing.assert_close` for the dtype; "Tolerances" in docs/reference/testing.md lists
    others. A float is compared like an array of float64. Shapes must be equal without broadcasting.
    NaN never agrees, not even with NaN. Two models agree if their weights and buffers do; see
    `small_model`. All other values must be equal.

    >>> x = torch.tensor([1.0, 2.0, 6.0])
    >>> assert_agrees(student.center(x.clone()), reference.center(x))
    >>> assert_agrees({"loss": 0.5}, {"loss": 0.5, "steps": 3})
    Traceback (most recent call last):
        ...
    AssertionError: the result: expected the keys ['loss', 'steps'], got ['loss']
    """
    if isinstance(ours, nn.Module):
        # Both models are the test's, with the same layers: no reply of a student holds a module.
        their_weights = theirs.state_dict()
        for path, our_weights in ours.state_dict().items():
            assert_agrees(
                their_weights[path], our_weights, within=within, what=f"the model's {path}"
            )
        return
    what = what or "the result"
    theirs, ours = _alike(theirs, ours)
    match ours:
        case tuple() | list():
            inside = "tensors" if all(isinstance(part, Tensor) for part in ours) else "values"
            if not isinstance(theirs, (tuple, list)) or len(theirs) != len(ours):
                raise AssertionError(
                    f"{what}: expected {len(ours)} {inside}, got {describe(theirs)}"
                )
            for number, pair in enumerate(zip(theirs, ours, strict=True), start=1):
                assert_agrees(*pair, within=within, what=f"{what} {number}")
        case dict():
            got = _keys(theirs) if isinstance(theirs, dict) else describe(theirs)
            same = isinstance(theirs, dict) and theirs.keys() == ours.keys()
            assert_that(same, f"{what}: expected the keys {_keys(ours)}, got {got}")
            for name, our_part in ours.items():
                assert_agrees(theirs[name], our_part, within=within, what=f"{what} {name!r}")
        case set() | frozenset():
            if not isinstance(theirs, (set, frozenset)):
                raise AssertionError(f"{what}: expected a set, got {describe(theirs)}")
            if faults := [*_some(ours - theirs, "missing"), *_some(theirs - ours, "too many")]:
                raise AssertionError(f"{what}: {'; '.join(faults)}")
        case _ if (record := fields_of(ours)) is not None:
            other = fields_of(theirs)
            alike = other is not None and (other[0], [*other[1]]) == (record[0], [*record[1]])
            assert_that(alike, f"{what}: expected {describe(ours)}, got {describe(theirs)}")
            for name, our_part in record[1].items():
                assert_agrees(getattr(theirs, name), our_part, within=within, what=f"{what}.{name}")
        case Tensor() | np.ndarray() | bool() | int() | float():
            if not isinstance(theirs, Tensor if isinstance(ours, Tensor) else type(ours)):
                raise AssertionError(f"{what}: expected {_kind(ours)}, got {describe(theirs)}")
            _assert_numbers_agree(as_tensor(theirs), as_tensor(ours), within, what)
        case _:
            same = type(theirs) is type(ours) and theirs == ours
            assert_that(same, f"{what}: expected {_cut(ours)}, got {_cut(theirs)}")


def _alike(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Both values; as numbers of Python if one of them is, and the other has no axes."""
    ours = ours.item() if isinstance(ours, np.str_) else ours
    theirs, ours = (np.asarray(v) if isinstance(v, np.generic) else v for v in (theirs, ours))
    for number, other in ((theirs, ours), (ours, theirs)):
        if isinstance(number, (bool, int, float)) and isinstance(other, Tensor | np.ndarray):
            theirs, ours = (number_in(v) if v is other else v for v in (theirs, ours))
    return (float(theirs), ours) if type(theirs) is int and type(ours) is float else (theirs, ours)


def as_tensor(value: Any) -> Tensor:
    """A tensor, an array or a number as a tensor; an array's values are copied."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _assert_numbers_agree(
    theirs: Tensor, ours: Tensor, within: Tolerance | None, what: str
) -> None:
    assert_that(
        theirs.shape == ours.shape,
        f"{what}: expected shape {tuple(ours.shape)}, got {tuple(theirs.shape)}",
    )
    wanted, got = (str(one.dtype).removeprefix("torch.") for one in (ours, theirs))
    assert_that(got == wanted, f"{what}: expected {wanted} values, got {got}")
    assert_that(
        theirs.device == ours.device,
        f"{what}: expected values, got a tensor on device {theirs.device}, which has none",
    )
    theirs, ours = theirs.detach(), ours.detach()
    wrong = differing(theirs, ours, within)
    if wrong.any():
        raise Disagreement(what, ours, theirs, wrong)


def _kind(value: Any) -> str:
    kinds = {Tensor: "a tensor", np.ndarray: "a NumPy array", int: "an int"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _keys(value: dict[Any, Any]) -> str:
    """The keys of a dictionary; the first of them if there are many."""
    shown = sorted(map(_cut, value))
    return f"[{', '.join(shown[:MOST_KEYS])}{', …' if len(shown) > MOST_KEYS else ''}]"


def _some(items: Collection[Any], why: str) -> Iterator[str]:
    """How many items are missing or too many, with the first of them."""
    if items:
        are = "is" if len(items) == 1 else "are"
        first = ", ".join(sorted(map(_cut, items))[:MOST_ITEMS])
        yield f"{counted(len(items), 'item')} {are} {why}: {first}"


def _cut(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= MOST_CHARACTERS else f"{shown[:MOST_CHARACTERS]}…"


def agree(theirs: Any, ours: Any, within: Tolerance | None = None) -> bool:
    """Whether two tensors or arrays agree as in `assert_agrees`, for a test with its own message.

    Both may be the student's, such as results before and after a change of the input.

    >>> agree(torch.tensor([1.0]), torch.tensor([1.00001]))
    True
    >>> agree(torch.tensor([1.0]), torch.tensor([1.0001]))
    False
    """
    theirs, ours = as_tensor(theirs).detach(), as_tensor(ours).detach()
    alike = theirs.shape == ours.shape and theirs.dtype == ours.dtype
    return alike and not bool(differing(theirs, ours, within).any())


def assert_agrees_to_float64(theirs: Any, ours: Any, *, within: Tolerance = FLOAT64) -> None:
    """Fail unless the values agree to more digits than float32 has.

    If right answers have fewer digits, because some add an epsilon, use ``within=DIGITS`` and
    magnify the error of float32: by inputs that nearly cancel, or by a factor on both results.

    >>> third = torch.tensor([1 / 3], dtype=torch.float64)
    >>> assert_agrees_to_float64(third.float().double(), third)
    Traceback (most recent call last):
        ...
    AssertionError: float64 carries 16 digits, but fewer of yours are right: does a value ...
    """
    assert_agrees(theirs, ours, within=GRADIENTS)  # a larger difference gets its own message
    try:
        assert_agrees(theirs, ours, within=within)
    except AssertionError:
        raise AssertionError(THROUGH_FLOAT32) from None


def assert_rises_in_float64(
    theirs: Callable[[Tensor], Tensor], ours: Callable[[Tensor], Tensor], x: Tensor
) -> None:
    """Fail unless the results change like the reference's after a step too small for float32.

    The step is added to `x`, whose first axis is a batch. Use this assertion instead of
    `assert_agrees_to_float64` if an approximation with fewer right digits is acceptable or is
    tested separately.
    """
    step = 1e-8
    # Both inputs share a call, since a recording treats inputs that are so close as equal.
    both = torch.cat([x, x + step])
    their_slopes, our_slopes = (_rise(call(both).detach()) / step for call in (theirs, ours))
    assert_that(agree(their_slopes, our_slopes, SLOPES), THROUGH_FLOAT32)


def assert_curves_in_float64(
    theirs: Callable[[Tensor], Tensor], ours: Callable[[Tensor], Tensor], x: Tensor
) -> None:
    """Fail unless the results for `x` and for -`x` add up to the reference's sum in all digits.

    `x`, whose first axis is a batch, holds numbers up to 5e-4, and the sums are 10 or more. Use
    this assertion for a GELU: what is left of it in the sum is its curvature near 0. There, the
    approximation by tanh has the same digits, and a constant in float32 has not.
    """
    both = torch.cat([x, -x])  # in one call, since a recording treats close inputs as equal
    their_sums, our_sums = (_sum(call(both).detach()) for call in (theirs, ours))
    assert_that(agree(their_sums, our_sums, ALL_DIGITS), THROUGH_FLOAT32)


def _rise(results: Tensor) -> Tensor:
    """The difference between the second half of a batch and the first."""
    before, after = results.chunk(2)
    return after - before


def _sum(results: Tensor) -> Tensor:
    """The sum of both halves of a batch."""
    first, second = results.chunk(2)
    return first + second
