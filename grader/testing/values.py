"""Asserts that values agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from grader.course.contract import describe
from grader.course.tolerances import ALL_DIGITS, FLOAT64, GRADIENTS, SLOPES, Tolerance
from grader.feedback.differences.pair import differing
from grader.feedback.disagreement import Disagreement
from grader.proxies.remote import RemoteFunction, RemoteModule

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
        parameters = (call.contract.forward or call.contract.call).parameters
        if number <= len(parameters):
            return f"`{parameters[number - 1].name}`"
    return f"argument {number}"


def assert_that(condition: bool, message: str) -> None:
    """Fail with a message for the student unless `condition` holds."""
    if not condition:
        raise AssertionError(message)


def assert_agrees(
    theirs: Any, ours: Any, *, within: Tolerance | None = None, what: str = ""
) -> None:
    """Fail unless two tensors, or nested collections of them, agree in shape, dtype and value.

    Two models agree if their weights and buffers do; see `small_model`.
    Without `within`, the tolerance is that of `torch.testing.assert_close` for the dtype;
    `grader.course.tolerances` has others. Shapes must be equal without broadcasting. NaN never
    agrees, not even with NaN.
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
    if isinstance(ours, (tuple, list)):
        if not isinstance(theirs, (tuple, list)) or len(theirs) != len(ours):
            raise AssertionError(f"{what}: expected {len(ours)} tensors, got {describe(theirs)}")
        for number, (their_part, our_part) in enumerate(zip(theirs, ours, strict=True), start=1):
            assert_agrees(their_part, our_part, within=within, what=f"{what} {number}")
        return
    if isinstance(ours, dict):
        names = sorted(theirs) if isinstance(theirs, dict) else None
        assert_that(names == sorted(ours), f"{what}: expected the keys {sorted(ours)}, got {names}")
        for name, our_part in ours.items():
            assert_agrees(theirs[name], our_part, within=within, what=f"{what} {name!r}")
        return
    if not isinstance(theirs, Tensor):
        raise AssertionError(f"{what}: expected a tensor, got {describe(theirs)}")
    assert_that(
        theirs.shape == ours.shape,
        f"{what}: expected shape {tuple(ours.shape)}, got {tuple(theirs.shape)}",
    )
    assert_that(theirs.dtype == ours.dtype, f"{what}: expected {ours.dtype}, got {theirs.dtype}")
    assert_that(
        theirs.device == ours.device,
        f"{what}: expected values, got a tensor on device {theirs.device}, which has none",
    )
    theirs, ours = theirs.detach(), ours.detach()
    wrong = differing(theirs, ours, within)
    if wrong.any():
        raise Disagreement(what, ours, theirs, wrong)


def agree(theirs: Tensor, ours: Tensor, within: Tolerance | None = None) -> bool:
    """Whether two tensors agree as in `assert_agrees`, for a test with its own message.

    Both tensors may be the student's, such as results before and after a change of the input.
    """
    theirs, ours = theirs.detach(), ours.detach()
    alike = theirs.shape == ours.shape and theirs.dtype == ours.dtype
    return alike and not bool(differing(theirs, ours, within).any())


def assert_agrees_to_float64(theirs: Any, ours: Any, *, within: Tolerance = FLOAT64) -> None:
    """Fail unless the values agree to more digits than float32 has.

    If right answers have fewer digits, because some add an epsilon, use ``within=DIGITS`` and
    magnify the error of float32; `grader.course.tolerances` says how.
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
