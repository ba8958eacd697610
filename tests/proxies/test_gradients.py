"""Gradients by ordinary backward(), through a real jail."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from grader.course.tensors import Make
from tests.support.contracts import RIGHT, Layer, gradients_of, leaf, rows
from tests.support.seats import OpenSeat

MAKE = Make("remote", "gradients", "tests")


# --- of functions --------------------------------------------------------------------------------


def test_gradients_reach_the_input_of_a_function(student: Any) -> None:
    x = leaf("x", queries=3, keys=4)
    (theirs,) = gradients_of(student.rows(x), x)
    (ours,) = gradients_of(torch.softmax(x, dim=-1), x)
    torch.testing.assert_close(theirs, ours)


def test_gradients_are_right_to_first_order_in_float64(student: Any) -> None:
    x = MAKE.normal(queries=2, keys=3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(student.rows, x)


def test_each_of_several_inputs_gets_its_own_gradient(student: Any) -> None:
    weights, values = leaf("w", queries=2, keys=3), leaf("v", keys=3, d=5)
    theirs = gradients_of(student.mix(weights, values, 0.5), weights, values)
    ours = gradients_of(weights @ values * 0.5, weights, values)
    torch.testing.assert_close(theirs, ours)


def test_an_input_that_asks_for_no_gradient_gets_none(student: Any) -> None:
    weights, values = leaf("w", queries=2, keys=3).detach(), leaf("v", keys=3, d=5)
    student.mix(weights, values).sum().backward()
    assert weights.grad is None
    assert values.grad is not None
    torch.testing.assert_close(values.grad, weights.sum(0)[:, None].expand(3, 5).contiguous())


def test_gradients_flow_from_each_of_several_results(student: Any) -> None:
    x, y = leaf("a", n=4), leaf("b", n=4)
    product, total = student.pair(x, y)
    torch.testing.assert_close(gradients_of(product, x, y), gradients_of(x * y, x, y))
    torch.testing.assert_close(gradients_of(total, x, y), gradients_of(x + 2 * y, x, y))
    both = gradients_of(torch.cat([product, total]), x, y)
    torch.testing.assert_close(both, gradients_of(torch.cat([x * y, x + 2 * y]), x, y))


def test_gradients_flow_through_one_call_after_another(student: Any) -> None:
    x, values = leaf("x", queries=3, keys=4), leaf("v", keys=4, d=2)
    theirs = gradients_of(student.mix(student.rows(x * 2), values), x, values)
    ours = gradients_of(torch.softmax(x * 2, dim=-1) @ values, x, values)
    torch.testing.assert_close(theirs, ours)


def test_gradients_of_each_call_of_a_list_are_its_own(student: Any) -> None:
    inputs = [leaf("a", queries=2, keys=3), leaf("b", queries=4, keys=3)]
    for x, result in zip(inputs, student.rows.each([(x,) for x in inputs]), strict=True):
        torch.testing.assert_close(
            gradients_of(result, x), gradients_of(torch.softmax(x, dim=-1), x)
        )


# --- of modules ----------------------------------------------------------------------------------


def test_gradients_reach_a_modules_input_and_its_parameters(student: Any) -> None:
    module = student.Layer(3, 2)
    weight, bias = leaf("weight", d_out=2, d_in=3), leaf("bias", d_out=2)
    module.assign({"linear.weight": weight.detach(), "linear.bias": bias.detach()})
    x = leaf("x", batch=4, d_in=3)
    mirrors = module.parameters()
    theirs = gradients_of(module(x), x, mirrors["linear.weight"], mirrors["linear.bias"])
    ours = gradients_of(functional.linear(x, weight, bias), x, weight, bias)
    torch.testing.assert_close(theirs, ours)


def test_parameter_gradients_of_two_calls_add_up(student: Any) -> None:
    module = student.Layer(3, 2)
    first, second = MAKE.normal(batch=4, d_in=3), MAKE.normal(batch=5, d_in=3)
    for x in (first, second):
        module(x).sum().backward()
    expected = (first.sum(0) + second.sum(0)).expand(2, 3).contiguous()
    torch.testing.assert_close(module.parameters()["linear.weight"].grad, expected)
    torch.testing.assert_close(module.parameters()["linear.bias"].grad, torch.tensor([9.0, 9.0]))


def test_a_parameter_that_the_result_does_not_use_gets_no_gradient(open_seat: OpenSeat) -> None:
    source = RIGHT.replace("return self.linear(x)", "return x @ self.linear.weight.T")
    module = open_seat(source, Layer).student().Layer(3, 2)
    module(MAKE.normal(batch=4, d_in=3)).sum().backward()
    assert module.parameters()["linear.weight"].grad is not None
    assert module.parameters()["linear.bias"].grad is None


# --- what a student does to the graph ------------------------------------------------------------


def test_where_the_student_cuts_the_graph_no_gradient_arrives(open_seat: OpenSeat) -> None:
    student = open_seat("def rows(x):\n    return x.detach() * 2", rows).student()
    x = leaf("x", queries=3, keys=4)
    student.rows(x).sum().backward()
    assert x.grad is None


def test_gradients_flow_although_the_input_was_changed_in_place(open_seat: OpenSeat) -> None:
    student = open_seat("def rows(x):\n    x *= 3\n    return x * x", rows).student()
    x = leaf("x", queries=3, keys=4)
    (theirs,) = gradients_of(student.rows(x), x)
    torch.testing.assert_close(theirs, gradients_of(9 * x * x, x)[0])
