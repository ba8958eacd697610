"""Asserts that gradients of inputs and of adopted weights agree with the reference's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grader.course.tensors import Make
from grader.course.tolerances import GRADIENTS
from grader.feedback.differences.pair import differing
from grader.proxies.adoption import joined_gradients
from grader.proxies.remote import RemoteModule
from grader.testing.values import agree, argument_name, assert_agrees
from grader.wire import payload


def assert_gradients_agree(
    theirs: Callable[..., Any],
    ours: Callable[..., Any],
    *arguments: Any,
    make: Make,
    of: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Fail unless `theirs` and `ours` give the same gradients of a random projection of the result.

    The gradients of floating-point arguments are compared. If `theirs` is a module that has adopted
    the weights of `ours`, the gradients of these weights are compared too. `of` picks the part of
    the result to differentiate.

    >>> scores = make.normal(queries=4, keys=3)
    >>> assert_gradients_agree(reference.weigh, reference.weigh, scores, make=make)
    >>> assert_gradients_agree(torch.Tensor.detach, reference.weigh, scores, make=make)
    Traceback (most recent call last):
        ...
    AssertionError: no gradient reaches argument 1: is there a .detach(), .data, .item(), ...
    """
    their_arguments, our_arguments = _leaves(arguments), _leaves(arguments)
    _push_back(of(theirs(*their_arguments)), make)
    _push_back(of(ours(*our_arguments)), make)
    pairs = zip(their_arguments, our_arguments, strict=True)
    for number, (their_leaf, our_leaf) in enumerate(pairs, start=1):
        if isinstance(our_leaf, Tensor) and our_leaf.grad is not None:
            _compare_gradient(their_leaf.grad, our_leaf.grad, argument_name(theirs, number))
    if isinstance(theirs, RemoteModule) and theirs.adoption is not None:
        assert isinstance(ours, nn.Module)
        found = list(joined_gradients(theirs, ours))
        if not any(isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in our_arguments):
            _remember_weights(theirs, found)
        for role, actual, expected in found:
            _compare_gradient(actual, expected, role)


def _leaves(arguments: Sequence[Any]) -> list[Any]:
    return [
        argument.detach().clone().requires_grad_()
        if isinstance(argument, Tensor) and argument.is_floating_point()
        else argument
        for argument in arguments
    ]


def _push_back(result: Any, make: Make) -> None:
    floats = [part for part in payload.tensors_of(result) if part.is_floating_point()]
    total = torch.zeros((), dtype=torch.float64)
    for number, part in enumerate(floats):
        upstream = make.normal_like(part, name=f"upstream {number}")
        total = total + (part * upstream).sum()
    if total.requires_grad:
        torch.autograd.backward(total)


def _remember_weights(
    theirs: RemoteModule, found: Sequence[tuple[str, Tensor | None, Tensor]]
) -> None:
    """Record which gradients of weights are wrong: a diagnosis can recognise a mistake by them."""
    for role, actual, expected in found:
        if actual is None:
            theirs.remember(f"no gradient of {role}")
        elif not agree(actual, expected, GRADIENTS):
            off = int(differing(actual, expected, GRADIENTS).sum())
            theirs.remember(f"another gradient of {role}, in {off} elements")


def _compare_gradient(actual: Tensor | None, expected: Tensor, name: str) -> None:
    if actual is None:
        raise AssertionError(
            f"no gradient reaches {name}: is there a .detach(), .data, .item(), .numpy() or "
            "torch.no_grad() on the way, or a new tensor built from numbers?"
        )
    assert_agrees(actual, expected, within=GRADIENTS, what=f"the gradient of {name}")
