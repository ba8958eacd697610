"""What holds of a right answer whatever its numbers: causal, unchanged inputs, its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grader.course.contract import ContractBroken
from grader.course.tolerances import UNMOVED
from grader.proxies.calls import Observation, StudentRaised
from grader.proxies.remote import RemoteFunction, RemoteModule
from grader.testing.values import agree, assert_that
from grader.wire.models import TableModel
from grader.wire.payload import tensors_of


def assert_rows_sum_to_one(weights: Tensor, dim: int = -1) -> None:
    """Fail unless the weights along `dim` are a distribution: none negative, sum one."""
    assert_that(bool((weights >= 0).all()), "a weight is negative, or NaN")
    sums = weights.sum(dim=dim)
    off = (sums - 1).abs().max().item()
    assert_that(
        agree(sums, torch.ones_like(sums)),
        f"weights along dim {dim} should sum to one; a sum is off by {off:.3g}",
    )


def assert_input_unchanged(call: RemoteFunction | RemoteModule, *arguments: Any) -> None:
    """Fail if the student's code changed a tensor or a model's weights. `call` is a proxy."""
    owners = [n for n, argument in enumerate(arguments, 1) for _ in tensors_of(argument)]
    seen: Observation = call.observe(*arguments)
    changed = sorted(seen.changed)
    # The results may be right: which argument it was tells one mistake from another.
    call.remember(f"changed: {changed}")
    for number in changed:
        # An earlier call of the exercise may have been given more tensors than this one.
        which = f"argument {owners[number]}" if number < len(owners) else "a tensor passed earlier"
        if number < len(owners) and isinstance(arguments[owners[number] - 1], TableModel):
            raise AssertionError(f"the weights of {which}, the model, were changed: only call it")
        raise AssertionError(f"{which} was changed in place: build a new tensor instead")


def assert_causal(call: Callable[[Tensor], Tensor], x: Tensor, dim: int = -2) -> None:
    """Fail if an output depends on a later token. `dim` is the tokens' axis of input and output."""
    tokens = x.shape[dim]
    before = call(x)
    for cut in range(1, tokens):
        changed = x.clone()
        # Far from what was there, and not a multiple of it.
        changed.narrow(dim, cut, tokens - cut).mul_(-2.0).add_(1.0)
        after = call(changed)
        assert_that(
            agree(before.narrow(dim, 0, cut), after.narrow(dim, 0, cut), UNMOVED),
            f"outputs of the first {cut} tokens changed when only later tokens did: "
            "they see the future",
        )
        if not torch.equal(before.narrow(dim, cut, 1), after.narrow(dim, cut, 1)):
            continue
        raise AssertionError(f"the output of token {cut} does not depend on the token itself")


def assert_batch_rows_do_not_mix(call: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """Fail if one batch row's output depends on another row. The first axis is the batch."""
    before = call(x)
    changed = x.clone()
    # So large that one maximum for the whole batch would bury every other row.
    changed[0] = changed[0] * -2000.0 + 1.0
    after = call(changed)
    assert_that(
        agree(before[1:], after[1:], UNMOVED),
        "the output of one batch row changed when only another row's input did",
    )
    assert_that(not agree(before[0], after[0]), "the output does not depend on the input")


def assert_moves(call: RemoteFunction | RemoteModule, *inputs: Any) -> None:
    """Fail unless the student's code takes inputs from another device, and answers there.

    A module is moved to that device first.
    """
    moved = [value.to("meta") if isinstance(value, Tensor) else value for value in inputs]
    if isinstance(call, RemoteModule):
        call.to("meta")
    try:
        call(*moved)
    except StudentRaised as raised:
        # The device has no values: who looks at some, to be safe, is right all the same. Then an
        # operation of torch's says so. A student's own words do not count.
        no_values = ("meta tensor", "data-independent")
        if not (raised.by_torch and any(told in raised.text.lower() for told in no_values)):
            raise


def assert_refuses(
    call: Callable[..., Any],
    *arguments: Any,
    why: str = "this should raise an exception, and came back with a result",
) -> None:
    """Fail unless the student's code raises an ordinary exception for these arguments."""
    try:
        call(*arguments)
    except StudentRaised as raised:
        # Not finished, or gone: that is no answer to a wrong argument.
        if not raised.ordinary:
            raise
        return
    except ContractBroken:
        pass  # a result of any shape is wrong here
    raise AssertionError(why)
