"""Calls of functions, through a real jail: arguments, results, and how many messages they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from grader import wire
from grader.course.contract import ContractBroken, ContractError
from grader.course.tensors import Make
from grader.proxies.calls import AuthorError
from grader.sandbox.budget import Left
from grader.sandbox.jails import Warm
from grader.sandbox.session import Limits
from tests.support import seats
from tests.support.contracts import (
    ALL,
    RIGHT,
    Layer,
    X,
    free,
    gradients_of,
    leaf,
    mix,
    remember,
    rows,
)
from tests.support.seats import OpenSeat

MAKE = Make("remote", "calls", "tests")


# --- a call and its result -----------------------------------------------------------------------


def test_a_function_is_called_there_and_its_result_is_a_plain_tensor(student: Any) -> None:
    result = student.rows(X)
    assert type(result) is Tensor
    assert not result.requires_grad
    torch.testing.assert_close(result, torch.softmax(X, dim=-1))


def test_arguments_of_every_kind_arrive(student: Any) -> None:
    weights, values = MAKE.normal(queries=2, keys=3), MAKE.normal(keys=3, d=5)
    torch.testing.assert_close(student.mix(weights, values, 0.5), weights @ values * 0.5)


def test_arguments_are_copies(open_seat: OpenSeat) -> None:
    student = open_seat("def rows(x):\n    return x.zero_()", rows).student()
    given = torch.ones(2, 2)
    assert not student.rows(given).any()
    assert given.all()


def chosen(logits: Float[Tensor, " vocab"], top_k: int | None = None) -> int:
    return int(logits.argmax()) if top_k is None else top_k


def test_an_integer_in_a_tensor_without_dimensions_arrives_as_an_integer(
    open_seat: OpenSeat,
) -> None:
    source = (
        "def chosen(logits, top_k=None):\n    return logits.argmax() if top_k is None else top_k"
    )
    student = open_seat(source, chosen).student()
    results = [student.chosen(X[0].requires_grad_()), student.chosen(X[0], None)]
    assert [(type(result), result) for result in results] == [(int, int(X[0].argmax()))] * 2
    assert student.chosen(X[0], 3) == 3


def doubled(x: Float[Tensor, " n"], cache: Any = None) -> tuple[Float[Tensor, " n"], Any]:
    return 2 * x, {"seen": x} if cache is None else cache


def test_a_result_that_may_be_anything_does_not_tell_mistakes_apart(open_seat: OpenSeat) -> None:
    results = []
    for cache in ("[x, None]", "{'seen': 3, 'past': (x, x)}"):
        source = f"def doubled(x, cache=None):\n    return 2 * x, {cache}"
        seat = open_seat(source, doubled)
        result, kept = seat.student().doubled(X[0])
        assert torch.equal(result, 2 * X[0])
        assert kept is not None
        results.append(seat.calls.seen.evidence())
    assert results[0] == results[1]


def test_a_result_that_breaks_the_contract_is_told_in_named_dimensions(
    open_seat: OpenSeat,
) -> None:
    student = open_seat("def rows(x):\n    return x.T", rows).student()
    with pytest.raises(ContractBroken, match="queries and keys look swapped"):
        student.rows(X)


def test_a_result_that_cannot_travel_is_told_to_the_student(open_seat: OpenSeat) -> None:
    source = "import torch\ndef rows(x):\n    return torch.zeros(1).expand(2**40, 2)"
    student = open_seat(source, rows).student()
    with pytest.raises(ContractBroken, match=r"got a tensor of shape \(1099511627776, 2\): larger"):
        student.rows(X)


def test_an_exercise_that_the_course_does_not_have_is_an_attribute_error(student: Any) -> None:
    with pytest.raises(AttributeError, match="no exercise 'softmax'"):
        _ = student.softmax


# --- nested arguments and results ----------------------------------------------------------------

CACHE = """
def remember(x, cache=None):
    total = x if cache is None else torch.cat([cache[0], x])
    return x + 1, {cache}
"""


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("(total, 2 * total)", ""),
        ("[total, total]", ""),
        ("(total, total, total)", "result 2 of remember should be 2 tensors, got a tuple of 3"),
        ("None", "result 2 of remember should be 2 tensors, got None: is there a `return`"),
        ("(x, total)", "result 2.1 of remember should be shape (total=5), got (2): total should"),
    ],
)
def test_a_nest_is_passed_back_and_checked_part_by_part(
    open_seat: OpenSeat, returned: str, told: str
) -> None:
    source = f"import torch{CACHE.format(cache=returned)}"
    student = open_seat(source, remember).student()
    first, second = torch.ones(3), torch.ones(2)
    given = first, first.clone()
    if told:
        with pytest.raises(ContractBroken) as error:
            student.remember(second, given)
        assert str(error.value).startswith(told)
        return
    _, cache = student.remember(first)
    out, cache = student.remember(second, cache)
    assert [len(out), *map(len, cache)] == [2, 5, 5]


def test_a_nest_of_the_tests_must_fit_the_contract(open_seat: OpenSeat) -> None:
    student = open_seat(f"import torch{CACHE.format(cache='(x, x)')}", remember).student()
    with pytest.raises(ContractError, match="cache is 2 tensors, not a tuple of 1 item"):
        student.remember(X, (X,))


# --- arguments in another order ------------------------------------------------------------------

NAMES = {"weights": ("attn",), "values": ("v",), "d_in": ("dim_in",), "d_out": ("dim_out",)}


@pytest.mark.parametrize(
    "header",
    ["values, weights", "v, attn", "scale, values, weights", "V, scale, Attn"],
)
def test_arguments_of_a_function_are_passed_by_name_where_the_order_differs(
    open_seat: OpenSeat, header: str
) -> None:
    names = [name.strip().lower() for name in header.split(",")]
    values = "values" if "values" in names else header.split(",")[0].strip()
    weights = "weights" if "weights" in names else header.split(",")[-1].strip()
    factor = " * scale" if "scale" in names else ""
    source = f"def mix({header}):\n    return {weights} @ {values}{factor}"
    student = open_seat(source, mix, arguments=NAMES).student()
    w, v = leaf("w", queries=2, keys=3), leaf("v", keys=3, d=5)
    scale = [0.5] if factor else []
    theirs = gradients_of(student.mix(w, v, *scale), w, v)
    torch.testing.assert_close(theirs, gradients_of(mix(w, v, *scale), w, v))


def test_arguments_of_a_constructor_are_passed_by_name_where_the_order_differs(
    open_seat: OpenSeat,
) -> None:
    source = RIGHT.replace("self, d_in, d_out, bias=True", "self, bias, dim_out, dim_in")
    source = source.replace("d_in, d_out, bias=bias", "dim_in, dim_out, bias=bias")
    student = open_seat(source, Layer, arguments=NAMES).student()
    module = student.Layer(3, 2, False)
    assert {path: tuple(value.shape) for path, value in module.parameters().items()} == {
        "linear.weight": (2, 3)
    }
    assert module(torch.ones(4, 3)).shape == (4, 2)


def test_changes_are_told_in_the_order_in_which_they_were_given(open_seat: OpenSeat) -> None:
    source = "def mix(values, weights):\n    values.mul_(2)\n    return weights @ values"
    student = open_seat(source, mix).student()
    weights, values = MAKE.normal(queries=2, keys=3), MAKE.normal(keys=3, d=4)
    seen = student.mix.observe(weights, values)
    assert seen.changed == {1}


@pytest.mark.parametrize("header", ["a, b", "values, mystery", "values, weights, **more", "v, v_"])
def test_where_names_do_not_say_arguments_are_passed_in_the_contracts_order(
    open_seat: OpenSeat, header: str
) -> None:
    first = header.partition(",")[0]
    student = open_seat(f"def mix({header}):\n    return {first}", mix, arguments=NAMES).student()
    weights = MAKE.normal(queries=3, keys=3)
    assert torch.equal(student.mix(weights, MAKE.normal(keys=3, d=3)), weights)


# --- how many messages ---------------------------------------------------------------------------


class Counting:
    """A jail that counts the messages it is sent."""

    idle_seconds = 0.0

    def __init__(self, warm: Warm, limits: Limits) -> None:
        self._jail = warm.open(limits)
        self.requests: list[wire.Request] = []

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        self.requests.append(request)
        return self._jail.exchange(request, left)

    def cpu_seconds(self) -> float:
        return self._jail.cpu_seconds()

    def close(self) -> None:
        self._jail.close()


@pytest.fixture(name="counted")
def _counted(warm: Warm) -> Any:
    channels: list[Counting] = []

    def channel(limits: Limits) -> Counting:
        channels.append(Counting(warm, limits))
        return channels[-1]

    seat = seats.open_seat(channel, RIGHT, *ALL)
    yield seat.student(), channels[0].requests
    seat.session.close()


Counted = tuple[Any, list[wire.Request]]


def test_each_sends_one_message_for_all_calls(counted: Counted) -> None:
    student, requests = counted
    inputs = [MAKE.normal(queries=n, keys=2) for n in range(1, 9)]
    before = len(requests)
    results = student.rows.each([(x,) for x in inputs])
    assert len(requests) == before + 1
    torch.testing.assert_close(results, [torch.softmax(x, dim=-1) for x in inputs])


def test_weights_and_modes_travel_with_the_next_call(counted: Counted) -> None:
    student, requests = counted
    module = student.Layer(3, 2)
    before = len(requests)
    module.assign({"linear.weight": torch.zeros(2, 3)})
    module.eval().double()
    module.each([(MAKE.normal(batch=n, d_in=3, dtype=torch.float64),) for n in (1, 2)])
    assert len(requests) == before + 1


@pytest.mark.parametrize("wanted", [True, False], ids=["with grad", "without grad"])
def test_a_graph_is_kept_there_only_where_a_gradient_may_be_asked_for(
    counted: Counted, wanted: bool
) -> None:
    student, requests = counted
    with torch.set_grad_enabled(wanted):
        assert student.rows(leaf("x", queries=3, keys=4)).requires_grad is wanted
    (call,) = (c for r in requests if isinstance(r, wire.Run) for c in r.calls[1:])
    assert isinstance(call, wire.Invoke)
    assert call.keep_graph is wanted


# --- what a proxy refuses ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "misuse",
    [
        lambda proxy: proxy == proxy,
        lambda proxy: proxy != X,
        lambda proxy: proxy < 1,
        lambda proxy: proxy >= 1,
        bool,
        list,
        len,
        lambda proxy: proxy[0],
        lambda proxy: 1 if proxy else 0,
        lambda proxy: proxy.shape,
        lambda proxy: proxy.grad,
        lambda proxy: proxy.W_query,
        lambda proxy: proxy.state_dict(),
    ],
    ids=[
        "==",
        "!=",
        "<",
        ">=",
        "bool",
        "list",
        "len",
        "[0]",
        "if",
        "shape",
        "grad",
        "W_query",
        "state_dict",
    ],
)
@pytest.mark.parametrize("of", ["function", "class", "module"])
def test_a_misused_proxy_is_an_error_that_says_what_to_use(
    student: Any, of: str, misuse: Callable[[Any], Any]
) -> None:
    proxies = {"function": student.rows, "class": student.Layer, "module": student.Layer(3, 2)}
    with pytest.raises(AuthorError, match=r"assert_agrees|can be called"):
        misuse(proxies[of])


def test_arguments_that_break_the_contract_are_the_authors_error(student: Any) -> None:
    with pytest.raises(ContractError):
        student.rows(X, X)
    with pytest.raises(ContractError):
        student.mix(X, X)


@pytest.mark.parametrize("arguments", [(3,), (3, 2, True, 4)], ids=["too few", "too many"])
def test_constructor_arguments_that_break_the_contract_are_the_authors_error(
    student: Any, arguments: Sequence[Any]
) -> None:
    with pytest.raises(ContractError):
        student.Layer(*arguments)


# --- generators ----------------------------------------------------------------------------------

DRAWS = """
import random
import numpy as np
import torch
def free(x):
    return [torch.rand(1).item(), float(np.random.rand()), random.random()]
"""


def test_torch_numpy_and_random_are_seeded_before_each_test(open_seat: OpenSeat) -> None:
    seat = open_seat(DRAWS, free)
    student = seat.student(seed=5)
    first, second = student.free(X), student.free(X)
    assert all(one != other for one, other in zip(first, second, strict=True))
    assert seat.student(seed=5).free(X) == first
    other = seat.student(seed=6).free(X)
    assert all(one != another for one, another in zip(first, other, strict=True))


def test_seeds_say_the_same_in_another_process(open_seat: OpenSeat) -> None:
    seed = MAKE.seed("guest")
    one, other = (open_seat(DRAWS, free).student(seed).free(X) for _ in range(2))
    assert one == other
