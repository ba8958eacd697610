"""Asserts properties that right answers have for any input, such as causality."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from grader.course.contract import ContractBroken
from grader.course.forms import Array
from grader.course.tolerances import UNMOVED, Tolerance
from grader.proxies.calls import Observation, StudentRaised
from grader.proxies.remote import RemoteClass, RemoteFunction, RemoteModule
from grader.testing.values import agree, argument_name, as_tensor, assert_that
from grader.wire import payload
from grader.wire.models import TableModel

Values = TypeVar("Values", Tensor, Array)


def assert_rows_sum_to_one(weights: Tensor | Array, dim: int = -1) -> None:
    """Fail unless the weights along `dim` are not negative, and sum to one.

    >>> assert_rows_sum_to_one(student.weigh(torch.eye(2)))
    >>> assert_rows_sum_to_one(student.weigh(torch.tensor([[0.0, 1.0], [0.0, 2.0]])))
    Traceback (most recent call last):
        ...
    AssertionError: weights along dim -1 should sum to one; a sum is off by 0.231
    """
    weights = as_tensor(weights)
    assert_that(bool((weights >= 0).all()), "a weight is negative, or NaN")
    sums = weights.sum(dim=dim)
    off = (sums - 1).abs().max().item()
    assert_that(
        agree(sums, torch.ones_like(sums)),
        f"weights along dim {dim} should sum to one; a sum is off by {off:.3g}",
    )


def assert_input_unchanged(call: RemoteFunction | RemoteModule, *arguments: Any) -> None:
    """Fail if the student's code changes an argument, or a value inside: an array, a list, a model.

    A model is changed if its weights, buffers or modes are. `call` is a proxy.

    >>> assert_input_unchanged(student.center, make.normal(tokens=4))
    Traceback (most recent call last):
        ...
    AssertionError: `x` was changed in place: build a new tensor instead
    """
    models = [
        (n, a)
        for n, a in enumerate(arguments, 1)
        if isinstance(a, nn.Module) and not isinstance(a, TableModel)
    ]
    before = [payload.pack_model_state(model) for _, model in models]
    seen: Observation = call.observe(*arguments)
    changed = sorted(seen.changed)
    after = [payload.pack_model_state(model) for _, model in models]
    # For the diagnosis: the results may be right, and only the changes identify a mistake.
    call.remember(f"changed: {changed}")
    for number in changed:
        # An earlier call, with more arguments, may have changed one that this call lacks.
        if number >= len(arguments):
            raise AssertionError(
                "an argument passed earlier was changed in place: build a new value instead"
            )
        raise AssertionError(_what_to_do(argument_name(call, number + 1), arguments[number]))
    for (number, _), was, now in zip(models, before, after, strict=True):
        which = argument_name(call, number)
        paths = ", ".join(path for path, weight in was.state.items() if now.state[path] != weight)
        assert_that(not paths, f"{which} was changed, in {paths}: only call it")
        assert_that(
            was.training == now.training,
            f"{which} was left in another mode: leave it in training or evaluation mode as it came",
        )


def _what_to_do(which: str, argument: Any) -> str:
    """The message for an argument that was changed."""
    if isinstance(argument, TableModel):
        return f"the weights of {which} were changed: only call it"
    if isinstance(argument, Tensor | np.ndarray):
        kind = "tensor" if isinstance(argument, Tensor) else "array"
        return f"{which} was changed in place: build a new {kind} instead"
    kind = "dictionary" if isinstance(argument, dict) else type(argument).__name__
    return (
        f"{which} was changed in place: build a new {kind}, and leave the argument and what it "
        "holds unchanged"
    )


NOT_A_NUMBER = (
    "the result has NaN where a number should be: is there 0 / 0, inf - inf, or a softmax of -inf "
    "alone?"
)
NOT_REPEATABLE = (
    "called twice with the same input, your code gives two different results: is something random?"
)


def assert_unmoved(
    before: Tensor | Array,
    after: Tensor | Array,
    why: str,
    again: Callable[[], Tensor | Array],
    *,
    within: Tolerance = UNMOVED,
) -> None:
    """Fail unless results before and after a change agree; `why` is the message.

    There are other messages for a result that has NaN, and for a result that differs between two
    calls with the same input. `again` computes `before` once more to find out.
    """
    if agree(before, after, within):
        return
    assert_that(not bool(as_tensor(before).isnan().any()), NOT_A_NUMBER)
    assert_that(agree(before, again(), within), NOT_REPEATABLE)
    raise AssertionError(why)


def first_tokens(count: int) -> str:
    """``the first token``, ``the first 3 tokens``."""
    return "the first token" if count == 1 else f"the first {count} tokens"


def assert_causal(call: Callable[[Tensor], Tensor], x: Tensor, dim: int = -2) -> None:
    """Fail if an output depends on a later token. `dim` is the tokens' axis of input and output.

    >>> assert_causal(student.weigh, make.normal(queries=4, keys=3))
    Traceback (most recent call last):
        ...
    AssertionError: outputs of the first token changed when only later tokens did: they see ...
    """
    tokens = x.shape[dim]
    before = call(x)
    for cut in range(1, tokens):
        changed = x.clone()
        # The new values are far from the old values, and are not multiples of the old values.
        changed.narrow(dim, cut, tokens - cut).mul_(-2.0).add_(1.0)
        after = call(changed)

        def again(cut: int = cut) -> Tensor:
            return call(x).narrow(dim, 0, cut)

        assert_unmoved(
            before.narrow(dim, 0, cut),
            after.narrow(dim, 0, cut),
            f"outputs of {first_tokens(cut)} changed when only later tokens did: they see the "
            "future",
            again,
        )
        if not torch.equal(before.narrow(dim, cut, 1), after.narrow(dim, cut, 1)):
            continue
        raise AssertionError(f"the output of token {cut} does not depend on the token itself")


def assert_batch_rows_do_not_mix(call: Callable[[Values], Values], x: Values) -> None:
    """Fail if a batch row's output depends on another row. The first axis is the batch.

    >>> assert_batch_rows_do_not_mix(student.weigh, make.normal(queries=4, keys=3))
    Traceback (most recent call last):
        ...
    AssertionError: the output of a batch row changed when only another row's input did
    """
    before = call(x)
    changed: Any = copy.deepcopy(x)
    # The factor is so large that a maximum over the batch would make all other rows negligible.
    changed[0] = changed[0] * -2000.0 + 1.0
    after = call(changed)
    assert_unmoved(
        before[1:],
        after[1:],
        "the output of a batch row changed when only another row's input did",
        lambda: call(x)[1:],
    )
    assert_that(not agree(before[0], after[0]), "the output does not depend on the input")


def assert_moves(call: RemoteFunction | RemoteModule, *inputs: Any) -> None:
    """Fail unless the student's code takes inputs on another device, and returns results there.

    A module is moved to that device first.

    >>> assert_moves(student.Projection(3, 4), make.normal(batch=2, d_in=3))
    """
    moved = [value.to("meta") if isinstance(value, Tensor) else value for value in inputs]
    if isinstance(call, RemoteModule):
        if call.is_lazy:  # its layers get their weights in a first call, and only then can move
            call.call_first(inputs)
        call.to("meta")
    try:
        call(*moved)
    except StudentRaised as raised:
        # Tensors on the device meta have no values. Right code may look at a value; torch then
        # raises an error about the missing values, and this error is accepted.
        no_values = ("meta tensor", "data-independent")
        if not (raised.by_torch and any(text in raised.text.lower() for text in no_values)):
            raise


def assert_refuses(
    call: Callable[..., Any],
    *arguments: Any,
    why: str = "this should raise an exception, but returned a result",
) -> None:
    """Fail unless the student's code raises an ordinary exception for these arguments.

    >>> assert_refuses(student.Projection(3, 4), torch.ones(2, 3))
    Traceback (most recent call last):
        ...
    AssertionError: this should raise an exception, but returned a result
    """
    try:
        call(*arguments)
    except StudentRaised as raised:
        # The exception of an unfinished stub or of a lost process does not count as a refusal.
        if not raised.ordinary:
            raise
        if isinstance(call, RemoteClass | RemoteFunction | RemoteModule):
            call.remember_refusal()
        return
    except ContractBroken:
        pass  # any result is wrong here
    raise AssertionError(why)
