"""The proxies, through a real jail: calls, gradients, exceptions, and processes that are lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from grader import wire
from grader.course.contract import ContractBroken, ContractError
from grader.course.tensors import Make
from grader.grading.diagnosis import same
from grader.proxies.calls import AuthorError, Heard, StudentRaised
from grader.proxies.remote import Student
from grader.sandbox.jails import Warm
from grader.sandbox.session import Channel, Limits, StudentLost
from grader.testing import assert_input_unchanged, assert_refuses
from grader.wire import payload
from tests.support import seats

OpenSeat = Callable[..., seats.Seat]

# --- references: the contracts of these tests ----------------------------------------------------


def rows(x: Float[Tensor, "queries keys"]) -> Float[Tensor, "queries keys"]:
    return torch.softmax(x, dim=-1)


def mix(
    weights: Float[Tensor, "queries keys"],
    values: Float[Tensor, "keys d"],
    scale: float = 1.0,
) -> Float[Tensor, "queries d"]:
    return weights @ values * scale


def pair(
    x: Float[Tensor, " n"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    return x * y, x + 2 * y


def entries(x: Mapping[str, Tensor]) -> object:
    return x["a"] + x["b"]


def free(x: Float[Tensor, " ..."]) -> object:
    return x


Seen = Float[Tensor, " seen"]
Total = Float[Tensor, "total=seen+n"]


def remember(
    x: Float[Tensor, " n"], cache: tuple[Seen, Seen] | None = None
) -> tuple[Float[Tensor, " n"], tuple[Total, Total]]:
    seen = x.new_empty(0) if cache is None else cache[0]
    total = torch.cat([seen, x])
    return x + 1, (total, total)


class Layer(nn.Module):
    def __init__(self, d_in: int, d_out: int, bias: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias)

    def forward(self, x: Float[Tensor, "batch d_in"]) -> Float[Tensor, "batch d_out"]:
        projected: Tensor = self.linear(x)
        return projected


RIGHT = """
import torch
from torch import nn

def rows(x):
    return torch.softmax(x, dim=-1)

def mix(weights, values, scale=1.0):
    return weights @ values * scale

def pair(x, y):
    return x * y, x + 2 * y

def free(x):
    return x + 1

class Layer(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x):
        return self.linear(x)
"""
ALL = (rows, mix, pair, free, Layer)
MAKE = Make("remote", "engine", "tests")
X = MAKE.normal(queries=3, keys=4, name="x")


@pytest.fixture(scope="module")
def right_seat(warm: Warm) -> Iterator[seats.Seat]:
    seat = seats.open_seat(warm.open, RIGHT, *ALL)
    yield seat
    seat.session.close()


@pytest.fixture(name="student")
def _student(right_seat: seats.Seat) -> Any:
    return right_seat.student()


def leaf(name: str, **sizes: Any) -> Tensor:
    return MAKE.normal(name=name, **sizes).requires_grad_()


def gradients_of(result: Tensor, *leaves: Tensor) -> Sequence[Tensor]:
    upstream = MAKE.normal_like(result, name="upstream")
    return torch.autograd.grad(result, leaves, upstream)


# --- calls ---------------------------------------------------------------------------------------


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


def test_what_may_be_anything_tells_no_mistake_from_another(open_seat: OpenSeat) -> None:
    heard = []
    for cache in ("[x, None]", "{'seen': 3, 'past': (x, x)}"):
        source = f"def doubled(x, cache=None):\n    return 2 * x, {cache}"
        seat = open_seat(source, doubled)
        result, kept = seat.student().doubled(X[0])
        assert torch.equal(result, 2 * X[0])
        assert kept is not None
        heard.append(seat.calls.seen.gave())
    assert heard[0] == heard[1]


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


def test_a_class_that_is_no_module_is_told_to_the_student(open_seat: OpenSeat) -> None:
    source = "class Layer:\n    def __init__(self, d_in, d_out):\n        self.d_in = d_in"
    student = open_seat(source, Layer).student()
    with pytest.raises(ContractBroken, match=r"should make an nn\.Module, got an object of type"):
        student.Layer(3, 2)


def test_a_module_lists_parameters_buffers_and_modules(open_seat: OpenSeat) -> None:
    source = f"""{RIGHT}
class Layer(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out)
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool), persistent=False)
        self.inner = nn.ModuleList([nn.Linear(1, 1, bias=False)])
"""
    module = open_seat(source, Layer).student().Layer(3, 2)
    parameters = {path: tuple(value.shape) for path, value in module.parameters().items()}
    assert parameters == {"linear.weight": (2, 3), "linear.bias": (2,), "inner.0.weight": (1, 1)}
    (mask,) = module.buffers()
    assert (mask.path, tuple(mask.shape), mask.dtype) == ("mask", (2, 2), "bool")
    assert module.modules() == ["linear", "inner", "inner.0"]


def test_a_complex_buffer_costs_nothing(open_seat: OpenSeat) -> None:
    source = RIGHT.replace(
        "super().__init__()",
        "super().__init__()\n        self.register_buffer('turn', torch.ones(2) * 1j)",
    )
    module = open_seat(source, Layer).student().Layer(3, 2)
    assert list(module.parameters()) == ["linear.weight", "linear.bias"]
    assert set(module.values()) >= {"linear.weight", "linear.bias"}
    assert module(torch.ones(4, 3)).shape == (4, 2)


def test_assigned_weights_are_used_and_can_be_read_back(student: Any) -> None:
    module = student.Layer(3, 2)
    weight, bias = MAKE.normal(d_out=2, d_in=3), MAKE.normal(d_out=2)
    module.assign({"linear.weight": weight, "linear.bias": bias})
    x = MAKE.normal(batch=4, d_in=3)
    torch.testing.assert_close(module(x), functional.linear(x, weight, bias))
    assert torch.equal(module.values()["linear.weight"], weight)
    assert torch.equal(module.values()["linear.bias"], bias)


def test_a_module_can_be_made_double(student: Any) -> None:
    module = student.Layer(3, 2).double()
    assert module(MAKE.normal(batch=4, d_in=3, dtype=torch.float64)).dtype == torch.float64
    assert {value.dtype for value in module.values().values()} == {torch.float64}
    assert {value.dtype for value in module.parameters().values()} == {torch.float64}


def test_a_module_can_be_moved_to_the_meta_device(student: Any) -> None:
    module = student.Layer(3, 2).to("meta")
    result = module(torch.empty(4, 3, device="meta"))
    assert (result.device.type, tuple(result.shape)) == ("meta", (4, 2))


def test_reset_makes_the_module_anew_with_the_same_arguments(student: Any) -> None:
    module = student.Layer(3, 2, False)
    module.assign({"linear.weight": torch.zeros(2, 3)})
    assert not module.values()["linear.weight"].any()
    module.reset()
    assert module.values()["linear.weight"].all()
    assert list(module.parameters()) == ["linear.weight"]


def test_an_exercise_that_the_course_does_not_have_is_an_attribute_error(student: Any) -> None:
    with pytest.raises(AttributeError, match="no exercise 'softmax'"):
        _ = student.softmax


# --- gradients by ordinary backward() ------------------------------------------------------------


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


def test_an_exception_in_a_students_backward_arrives(open_seat: OpenSeat) -> None:
    source = """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x
    @staticmethod
    def backward(ctx, grad):
        raise ArithmeticError("no way back")
def rows(x):
    return Square.apply(x)
"""
    result = open_seat(source, rows).student().rows(leaf("x", queries=3, keys=4))
    with pytest.raises(StudentRaised, match="no way back"):
        result.sum().backward()


# --- how many messages ---------------------------------------------------------------------------


class Counting:
    """A jail that counts the messages it is sent."""

    def __init__(self, warm: Warm, limits: Limits) -> None:
        self._jail = warm.open(limits)
        self.requests: list[wire.Request] = []

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        self.requests.append(request)
        return self._jail.exchange(request, cpu_seconds)

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


def test_gradients_of_each_call_of_a_list_are_its_own(student: Any) -> None:
    inputs = [leaf("a", queries=2, keys=3), leaf("b", queries=4, keys=3)]
    for x, result in zip(inputs, student.rows.each([(x,) for x in inputs]), strict=True):
        torch.testing.assert_close(
            gradients_of(result, x), gradients_of(torch.softmax(x, dim=-1), x)
        )


def test_the_first_call_of_a_list_that_raises_is_told_and_is_the_last(
    open_seat: OpenSeat,
) -> None:
    source = """
seen = []
def free(x):
    seen.append(x.item())
    if x > 1:
        raise ValueError(x.item())
    return seen
"""
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised, match=r"ValueError: 2\.0"):
        student.free.each([(torch.tensor(value),) for value in (1.0, 2.0, 3.0)])
    assert student.free(torch.tensor(0.0)) == [1.0, 2.0, 0.0]


# --- looking closer ------------------------------------------------------------------------------


def test_observe_tells_which_inputs_the_student_changed(open_seat: OpenSeat) -> None:
    source = "def mix(weights, values):\n    values.add_(1)\n    return weights @ values"
    student = open_seat(source, mix).student()
    weights, values = MAKE.normal(queries=2, keys=3), MAKE.normal(keys=3, d=4)
    seen = student.mix.observe(weights, values)
    torch.testing.assert_close(seen.result, weights @ (values + 1))
    assert seen.changed == {1}


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("return x['a'] + x['b']", set()),
        ("return x['a'] + x.pop('b')", {1}),
        ("x['c'] = x['a'] * 2\n    return x['c']", {1}),
        ("x['a'] = x['a'] * 2\n    return x['a']", {0}),
        ("x.clear()\n    import torch\n    return torch.ones(3, 4)", {0, 1}),
    ],
)
def test_a_dictionary_that_was_passed_is_changed_where_its_tensors_are_others(
    open_seat: OpenSeat, body: str, changed: set[int]
) -> None:
    student = open_seat(f"def entries(x):\n    {body}\n", entries).student()
    assert student.entries.observe({"a": X, "b": X + 1}).changed == changed


@pytest.mark.parametrize("change", ["x.t_()", "x.data = x.double()", "x.mul_(0).div_(0)"])
def test_an_input_of_another_form_or_with_nan_is_a_changed_one(
    open_seat: OpenSeat, change: str
) -> None:
    student = open_seat(f"def free(x):\n    {change}", free).student()
    assert student.free.observe(X).changed == {0}


def test_a_change_in_a_call_that_was_not_observed_is_remembered(open_seat: OpenSeat) -> None:
    source = """
import torch
def free(x):
    if not torch._C._len_torch_dispatch_stack():
        x.zero_()
"""
    student = open_seat(source, free).student()
    assert student.free.observe(X).changed == set()
    student.free(X)
    assert student.free.observe(X).changed == {0}


def test_what_was_seen_of_a_submission_lasts_when_the_next_test_begins(open_seat: OpenSeat) -> None:
    seat = open_seat("def free(x):\n    if x.sum() > 100:\n        x.zero_()", free)
    seat.calls.begin(0, "free", None, hidden=False)
    Student(seat.calls).free(torch.full((3, 4), 100.0))
    seat.calls.begin(1, "free", None, hidden=False)
    assert Student(seat.calls).free.observe(torch.zeros(3, 4)).changed == {0}


def test_a_test_whose_process_does_not_start_has_said_and_printed_nothing(warm: Warm) -> None:
    def opened(limits: Limits) -> Channel:
        if limits.memory_mb == 99:
            raise StudentLost("crashed", "it does not start")
        return warm.open(limits)

    seat = seats.open_seat(opened, "def free(x):\n    print('here')", free)
    seat.session.listens = True
    seat.student().free(X)
    assert seat.session.said
    assert seat.session.printed
    with pytest.raises(StudentLost):
        seat.student(memory_mb=99)
    assert (seat.session.said, seat.session.printed) == ([], "")


def test_nan_in_an_input_that_was_left_alone_is_no_change(open_seat: OpenSeat) -> None:
    student = open_seat("def free(x):\n    return 1", free).student()
    assert student.free.observe(torch.full((2, 2), torch.nan)).changed == set()


@pytest.mark.parametrize(
    "body",
    [
        "[float(number) for number in x]",
        "[number.item() for number in x]",
        "[x[n].item() for n in range(len(x))]",
        "x.tolist()",
        "torch.Tensor.tolist(x)",
        "list(map(float, x))",
    ],
)
def test_each_number_that_becomes_one_of_pythons_counts_as_an_operation(
    open_seat: OpenSeat, body: str
) -> None:
    source = f"import torch\n\ndef free(x):\n    numbers = {body}\n    return x + sum(numbers)\n"
    student = open_seat(source, free).student()
    short, long = (student.free.observe(torch.ones(n)).operations for n in (3, 8))
    assert 5 <= long.count - short.count <= 15  # one a number, or one more where it is looked up
    assert long.work > short.work


def test_observe_counts_operations_and_remembers_the_largest_result(open_seat: OpenSeat) -> None:
    source = """
def free(x):
    for _ in range(len(x)):
        x = x + 1
    return x.expand(50, -1).clone().sum()
"""
    student = open_seat(source, free).student()
    short, long = (student.free.observe(torch.ones(n)).operations for n in (3, 8))
    assert long.count - short.count == 5
    assert (short.largest, long.largest) == (150, 400)


COSTS = {
    "x @ y.mT": (12, 60, 5),  # (3, 5) by (5, 4): 12 numbers of 5 products each
    "torch.bmm(x.expand(2, 3, 5), y.mT.expand(2, 5, 4))": (24, 120, 5),
    "x + 1": (15, 15, 0),
    "x.sum()": (1, 15, 15),
    "x.mean(dim=0)": (5, 15, 3),
    "x.amax(dim=-1, keepdim=True)": (3, 15, 5),
    "x.max(dim=0).values": (5, 15, 3),
    "torch.logsumexp(x, dim=1)": (3, 15, 5),
    "torch.softmax(x, dim=0)": (15, 15, 3),
    "x.cumsum(1)": (15, 15, 5),
    "x.sort(dim=0)[0]": (15, 15, 3),
    "x.T": (15, 0, 0),  # a view
    "x.expand(1000, -1, -1)": (15, 0, 0),
    "x.expand(10, -1, -1).clone()": (150, 150, 0),
    "torch.maximum(x, x)": (15, 15, 0),
    "x[:, :2].sum(dim=-1)": (6, 6, 2),  # the slice stores 6 of what it looks at
}


@pytest.mark.parametrize(("code", "expected"), COSTS.items())
def test_observe_tells_what_a_call_stores_computes_and_runs_over(
    open_seat: OpenSeat, code: str, expected: tuple[int, int, int]
) -> None:
    source = f"import torch\ndef free(x):\n    y = x.new_ones(4, 5)\n    return {code}"
    idle = "def free(x):\n    y = x.new_ones(4, 5)"
    x = torch.ones(3, 5)
    seen, before = (open_seat(s, free).student().free.observe(x) for s in (source, idle))
    stored, work, width = expected
    assert seen.operations.work - before.operations.work == work
    assert seen.operations.widest == width
    assert seen.operations.largest == max(stored, before.operations.largest)


COMPARED = {
    "x.amax(dim=-1)": 15,
    "x.max(dim=0).values": 15,
    "torch.maximum(x[0], x[1])": 5,
    "torch.where(x[0] > x[1], x[0], x[1])": 5,
    "x.amax() + (x[:2] - 1).exp().amax()": 15,  # what comes after an exponential does not count
    "x.exp().amax()": 0,
    "x.sum()": 0,
}


@pytest.mark.parametrize(("code", "expected"), COMPARED.items())
def test_observe_tells_what_maxima_read_before_the_first_exponential(
    open_seat: OpenSeat, code: str, expected: int
) -> None:
    seat = open_seat(f"import torch\ndef free(x):\n    return {code}", free)
    assert seat.student().free.observe(torch.ones(3, 5)).operations.compared == expected


def test_a_test_may_give_less_memory_than_the_course(open_seat: OpenSeat) -> None:
    source = "import torch\ndef free(x):\n    return torch.ones(len(x), 1024, 1024).sum()"
    seat = open_seat(source, free)
    eighty_megabytes = torch.ones(20)
    assert seat.student().free(eighty_megabytes) == 20 * 2**20
    with pytest.raises(StudentLost, match="more memory"):
        seat.student(memory_mb=60).free(eighty_megabytes)
    assert seat.student(memory_mb=60).free(torch.ones(5)) == 5 * 2**20
    assert seat.student().free(eighty_megabytes) == 20 * 2**20


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


def test_a_change_inside_a_nest_is_told_with_the_arguments_number(open_seat: OpenSeat) -> None:
    source = "import torch\ndef remember(x, cache):\n    cache[1].add_(1)\n    return x, cache"
    student = open_seat(source, remember).student()
    assert_input_unchanged(student.remember, torch.ones(0), (torch.ones(0), torch.ones(0)))
    with pytest.raises(AssertionError, match="argument 2 was changed in place: build a new tuple"):
        assert_input_unchanged(student.remember, torch.ones(0), (torch.ones(3), torch.ones(3)))


@pytest.mark.parametrize(
    ("change", "cache", "kind"),
    [
        ("cache[1] = cache[1] + 1", [torch.ones(3), torch.ones(3)], "list"),
        ("cache.append(x)", [torch.ones(3)], "list"),
        ("cache['seen'] = x", {"seen": torch.ones(3)}, "dictionary"),
        ("cache['seen'][0].zero_()", {"seen": (torch.ones(3),)}, "dictionary"),
    ],
)
def test_who_changes_a_cache_is_asked_for_a_new_one(
    open_seat: OpenSeat, change: str, cache: Any, kind: str
) -> None:
    def go_on(x: Float[Tensor, " n"], cache: Any) -> tuple[Float[Tensor, " n"], Any]:
        return x, cache

    source = f"def go_on(x, cache):\n    {change}\n    return x, cache"
    student = open_seat(source, go_on).student()
    told = f"argument 2 was changed in place: build a new {kind} with new tensors, and leave"
    with pytest.raises(AssertionError, match=told):
        assert_input_unchanged(student.go_on, torch.ones(3), cache)


def test_a_changed_cache_is_one_mistake_whatever_it_is_made_of(open_seat: OpenSeat) -> None:
    def go_on(x: Float[Tensor, " n"], cache: Any) -> tuple[Float[Tensor, " n"], Any]:
        return x, cache

    def gave(source: str, cache: Any) -> tuple[Heard, ...]:
        seat = open_seat(f"def go_on(x, cache):\n    {source}\n    return x, cache", go_on)
        with pytest.raises(AssertionError, match="argument 2 was changed"):
            assert_input_unchanged(seat.student().go_on, torch.ones(3), cache)
        return seat.calls.seen.gave()

    pairs = gave("cache[1][0].zero_()", [(torch.ones(3),), (torch.ones(3), torch.ones(3))])
    assert (
        gave("cache['k'].zero_(), cache['v'].zero_()", dict.fromkeys("kv", torch.ones(2))) == pairs
    )


def test_what_an_exception_says_that_was_asked_for_tells_no_mistakes_apart(
    open_seat: OpenSeat,
) -> None:
    def gave(exception: str) -> tuple[Heard, ...]:
        source = f"def remember(x, cache):\n    if len(x) > 3: raise {exception}\n    return x"
        seat = open_seat(source, remember)
        student = seat.student()
        for size in (4, 2):
            with contextlib.suppress(AssertionError):
                assert_refuses(student.remember, torch.ones(size), None)
        return seat.calls.seen.gave()

    assert same(gave("ValueError('too long')"), gave("AssertionError"))


def test_observe_works_for_modules_too(student: Any) -> None:
    module = student.Layer(3, 2)
    x = MAKE.normal(batch=4, d_in=3)
    seen = module.observe(x)
    assert torch.equal(seen.result, module(x).detach())
    assert seen.changed == set()
    assert seen.operations.count > 0


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
def test_what_would_compare_a_proxy_is_an_error_that_says_what_to_use(
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


# --- exceptions of student code ------------------------------------------------------------------


def raised_by(open_seat: OpenSeat, source: str) -> StudentRaised:
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised) as caught:
        student.free(X)
    return caught.value


def test_an_exception_arrives_with_kind_text_file_and_line(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "\n\ndef free(x):\n    raise ValueError('odd heads')\n")
    assert (error.kind, error.text) == ("ValueError", "odd heads")
    assert error.place == wire.Place("answers.py", 4, "raise ValueError('odd heads')")


def test_an_exception_inside_torch_is_placed_at_the_students_innermost_line(
    open_seat: OpenSeat,
) -> None:
    source = """
import torch
def helper(x):
    y = x + 1
    return y.view(7, 7)
def free(x):
    return helper(x)
"""
    error = raised_by(open_seat, source)
    assert error.kind == "RuntimeError"
    assert "shape '[7, 7]' is invalid" in error.text
    assert error.place == wire.Place("answers.py", 5, "return y.view(7, 7)")


def test_a_name_that_is_nowhere_is_told_as_such(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    return batch_size * x")
    assert error.kind == "NameError"
    assert "batch_size is defined nowhere in these files" in error.text


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("raise NotImplementedError", "NotImplementedError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Mine', (BaseException,), {})('x')", "Mine"),
        ("raise ExceptionGroup('two', [ValueError(), TypeError()])", "ExceptionGroup"),
        ("return free(x)", "RecursionError"),
        ("assert False", "AssertionError"),
    ],
)
def test_whatever_is_raised_arrives_as_one_class(open_seat: OpenSeat, line: str, kind: str) -> None:
    assert raised_by(open_seat, f"def free(x):\n    x = x + 1\n    {line}").kind == kind


def test_a_very_long_text_is_cut(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    raise ValueError('no' * 10**6)")
    assert error.text == "no" * (wire.MAX_TEXT // 2)


@pytest.mark.parametrize(
    "text",
    ["raise ValueError", "return 3", "import os; os._exit(0)"],
    ids=["raises", "is no text", "ends the process"],
)
def test_an_exception_whose_text_cannot_be_read_costs_that_call_only(
    open_seat: OpenSeat, text: str
) -> None:
    source = f"""
class Sly(Exception):
    def __str__(self):
        {text}
def free(x):
    if x.sum() > 0:
        raise Sly
    return 1
"""
    seat = open_seat(source, free)
    with pytest.raises((StudentRaised, StudentLost)):
        seat.student().free(torch.ones(1))
    assert seat.student().free(torch.zeros(1)) == 1


def test_a_text_that_is_not_unicode_still_arrives(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    raise ValueError('half \\ud83d a pair')")
    assert error.kind == "ValueError"
    assert error.text.startswith("half ")


def test_an_exception_does_not_stop_the_next_call(open_seat: OpenSeat) -> None:
    source = "def free(x):\n    return 1 / int(x.sum())"
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised, match="ZeroDivisionError"):
        student.free(torch.zeros(2))
    assert student.free(torch.ones(2)) == 0.5


# --- lost processes ------------------------------------------------------------------------------

BRIEF = Limits(test_seconds=0.3, memory_mb=128)


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        ("os._exit(0)", "crashed", "ended its own process"),
        ("os._exit(7)", "crashed", "ended its own process"),
        ("os.kill(os.getpid(), 9)", "crashed", "SIGKILL"),
        ("os.kill(os.getpid(), 11)", "crashed", "crash inside a library"),
        ("os.closerange(3, 64)", "crashed", ""),
        ("[os.write(n, b'nonsense' * 9) for n in range(3, 64) if is_socket(n)]", "crashed", ""),
        ("while True: pass", "timeout", "does a loop never end?"),
        ("while True: x = x + 1", "timeout", "does a loop never end?"),
        ("forever()", "timeout", "does a loop never end?"),
        ("torch.ones(2**28)", "memory", "more memory than a submission may use"),
        ("torch.ones(2**40)", "memory", "more memory than a submission may use"),
        ("bytearray(2**30)", "memory", "more memory than a submission may use"),
        ("list(range(2**28))", "memory", "more memory than a submission may use"),
    ],
)
def test_a_lost_process_has_a_status_and_the_next_test_a_fresh_one(
    open_seat: OpenSeat, line: str, status: str, told: str
) -> None:
    source = f"""
import os, stat, torch
def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
def forever():
    while True:
        try:
            while True: pass
        except BaseException:
            pass
def free(x):
    if x.sum() == 0:
        return "well"
    {line}
"""
    seat = open_seat(source, free, limits=BRIEF)
    with pytest.raises(StudentLost) as caught:
        seat.student().free(torch.ones(1))
    assert caught.value.status == status
    assert told in caught.value.text
    assert seat.student().free(torch.zeros(1)) == "well"


def test_a_student_who_waits_for_ever_is_stopped_by_the_wall_clock(open_seat: OpenSeat) -> None:
    source = "import threading\ndef free(x):\n    threading.Event().wait()"
    student = open_seat(source, free, limits=Limits(test_seconds=0.1)).student()
    with pytest.raises(StudentLost) as caught:
        student.free(X)
    assert caught.value.status == "timeout"


def test_time_is_counted_over_all_calls_of_a_test_and_anew_in_the_next(
    open_seat: OpenSeat,
) -> None:
    source = """
import time
def free(x):
    end = time.process_time() + 0.15
    while time.process_time() < end:
        pass
    return 1
"""
    seat = open_seat(source, free, limits=Limits(test_seconds=0.4))
    for _ in range(2):
        student = seat.student()
        assert [student.free(X), student.free(X)] == [1, 1]
    with pytest.raises(StudentLost) as caught:
        student.free(X)
    assert caught.value.status == "timeout"


def test_a_submission_that_has_used_up_its_time_gets_no_more(open_seat: OpenSeat) -> None:
    source = "def free(x):\n    while True: pass\ndef rows(x):\n    return x"
    seat = open_seat(source, free, rows, limits=Limits(submission_seconds=0.3))
    with pytest.raises(StudentLost):
        seat.student().free(X)
    with pytest.raises(StudentLost, match="time for this submission is used up") as caught:
        seat.student().rows(X)
    assert caught.value.status == "timeout"


def test_what_belonged_to_a_lost_process_stays_lost_until_the_next_test(
    open_seat: OpenSeat,
) -> None:
    seat = open_seat(RIGHT.replace("return x + 1", "import os; os._exit(0)"), *ALL)
    student = seat.student()
    module = student.Layer(3, 2)
    with pytest.raises(StudentLost):
        student.free(X)
    with pytest.raises(StudentLost, match="gone since an earlier call"):
        student.rows(X)
    with pytest.raises(StudentLost):
        module(torch.ones(1, 3))
    student = seat.student()
    with pytest.raises(StudentLost, match="gone since an earlier call"):
        module(torch.ones(1, 3))
    assert student.rows(X).shape == X.shape


def test_what_a_student_leaves_behind_is_gone_with_the_process(open_seat: OpenSeat) -> None:
    source = """
import os, torch
def free(x):
    if x.sum() == 0:
        return float(torch.tensor(7.0).cos())
    torch.Tensor.cos = lambda self: self
    os._exit(0)
"""
    seat = open_seat(source, free)
    with pytest.raises(StudentLost):
        seat.student().free(torch.ones(1))
    assert seat.student().free(torch.zeros(1)) != 7.0


def test_one_submission_does_not_see_what_another_has_changed(open_seat: OpenSeat) -> None:
    changes = (
        "import torch\ndef free(x):\n    torch.softmax = None\n    return torch.softmax is None"
    )
    asks = "import torch\ndef free(x):\n    return torch.softmax is None"
    assert open_seat(changes, free).student().free(X) is True
    assert open_seat(asks, free).student().free(X) is False


# --- forged answers ------------------------------------------------------------------------------

LISTING = wire.Listing(
    [wire.Found(each.__name__, "found", "function") for each in (rows, mix, pair, free)]
)
STRUCTURE = wire.Structure([wire.ParameterInfo("w", (2, 3), "float32", "")], [], [], True)
FORGED = wire.TensorData("float33", (3, 4), b"")


class Forging:
    """A channel that answers with what it was given."""

    def __init__(self, *replies: wire.Reply) -> None:
        self._replies = [LISTING, *replies]

    def exchange(self, *_: object) -> wire.Reply:
        return self._replies.pop(0)

    def cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


def forged(*outcomes: Sequence[wire.Outcome]) -> Any:
    """A student whose first message is answered with the first outcomes, and so on."""
    replies = [wire.Outcomes(list(each)) for each in outcomes]
    replies[0].outcomes.insert(0, wire.Done())  # for the seed
    return seats.open_seat(lambda _: Forging(*replies), "", *ALL).student()


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [wire.Done()],
        [STRUCTURE],
        [wire.Gradients([], {})],
        [wire.Returned(FORGED)],
        [wire.Returned(wire.TensorData("float32", (2**63, 0), b""))],
        [wire.Returned(wire.TensorData("float32", (3, 4), b"short"))],
        [wire.Returned(wire.Items("list", [FORGED]))],
        [wire.Returned(1), wire.Returned(1)],
    ],
    ids=lambda outcomes: " ".join(type(outcome).__name__ for outcome in outcomes) or "none",
)
def test_a_forged_answer_to_a_call_is_a_lost_process(outcomes: Sequence[wire.Outcome]) -> None:
    with pytest.raises(StudentLost) as caught:
        forged(outcomes).free(X)
    assert caught.value.status == "crashed"


def test_fewer_answers_than_messages_queued_are_a_lost_process() -> None:
    student = seats.open_seat(lambda _: Forging(wire.Outcomes([])), "", *ALL).student()
    with pytest.raises(StudentLost):
        student.free(X)


def test_an_answer_of_another_kind_is_a_lost_process() -> None:
    student = seats.open_seat(lambda _: Forging(LISTING), "", *ALL).student()
    with pytest.raises(StudentLost):
        student.free(X)


@pytest.mark.parametrize(
    "parameter",
    [
        wire.ParameterInfo("w", (-1,), "float32", ""),
        wire.ParameterInfo("w", (2**63,), "float32", ""),
        wire.ParameterInfo("w", (2**30, 2**30), "float32", ""),
    ],
    ids=["negative", "beyond 64 bits", "beyond memory"],
)
def test_a_forged_module_is_a_lost_process(parameter: wire.ParameterInfo) -> None:
    student = forged([wire.Structure([parameter], [], [], True)])
    with pytest.raises((StudentLost, ContractBroken)):
        student.Layer(3, 2)


@pytest.mark.parametrize(
    "outcome",
    [
        wire.Done(),
        wire.Returned(payload.pack(X)),
        wire.Gradients([], {}),
        wire.Gradients([payload.pack(X), payload.pack(X)], {}),
        wire.Gradients([FORGED], {}),
        wire.Gradients([1.5], {}),
        wire.Gradients([payload.pack(X.T)], {}),
        wire.Gradients([payload.pack(X.double())], {}),
        wire.Gradients([payload.pack(X.to("meta"))], {}),
        wire.Gradients([wire.Items("list", [payload.pack(X)])], {}),
    ],
    ids=[
        "done",
        "returned",
        "none",
        "two",
        "unknown dtype",
        "a number",
        "transposed",
        "another dtype",
        "another device",
        "a list",
    ],
)
def test_a_forged_gradient_is_a_lost_process(outcome: wire.Outcome) -> None:
    result = forged([wire.Returned(payload.pack(X))], [outcome]).rows(X.clone().requires_grad_())
    with pytest.raises(StudentLost):
        result.sum().backward()


@pytest.mark.parametrize(
    "gradient",
    [FORGED, payload.pack_tensor(torch.ones(3, 2)), payload.pack_tensor(torch.ones(2, 3).double())],
    ids=["unknown dtype", "another shape", "another dtype"],
)
def test_a_forged_parameter_gradient_is_a_lost_process(gradient: wire.TensorData) -> None:
    result = wire.Returned(payload.pack(torch.zeros(1, 2)))
    student = forged([STRUCTURE], [result], [wire.Gradients([None], {"w": gradient})])
    with pytest.raises(StudentLost):
        student.Layer(3, 2)(torch.ones(1, 3)).sum().backward()


def test_forged_values_of_parameters_are_a_lost_process() -> None:
    info = wire.ParameterInfo("w", (2, 3), "float32", "", FORGED)
    student = forged([STRUCTURE], [wire.Structure([info], [], [], True)])
    with pytest.raises(StudentLost):
        student.Layer(3, 2).values()


def test_an_observation_that_was_left_out_is_a_lost_process() -> None:
    with pytest.raises(StudentLost):
        forged([wire.Returned(1)]).free.observe(X)


def test_a_parameter_far_larger_than_its_memory_costs_only_the_student(
    open_seat: OpenSeat,
) -> None:
    source = RIGHT.replace(
        "super().__init__()",
        "super().__init__()\n        self.huge = nn.Parameter(torch.zeros(1).expand(2**45))",
    )
    with pytest.raises((StudentLost, ContractBroken)):
        open_seat(source, Layer).student().Layer(3, 2)


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


DROPS = """
import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.never_used = torch.rand({drawn})
        self.dropout = nn.Dropout(0.5)
    def forward(self, x):
        return self.dropout(torch.ones(len(x), 2))
"""


def test_two_modules_that_drop_alike_drop_the_same_however_they_were_made(
    open_seat: OpenSeat,
) -> None:
    x = MAKE.normal(batch=20, d_in=3)
    dropped = []
    for drawn in (0, 9):
        layer = open_seat(DROPS.format(drawn=drawn), Layer).student(seed=4).Layer(3, 2)
        dropped.append(layer.each([(x,), (x,)]))
    (one, again), (other, _) = dropped
    assert torch.equal(one, other)
    assert not torch.equal(one, again)


def test_initial_weights_are_the_same_in_each_test_of_one_seed(open_seat: OpenSeat) -> None:
    seat = open_seat(RIGHT, *ALL)
    one, other = (seat.student(3).Layer(3, 2).values()["linear.weight"] for _ in range(2))
    assert torch.equal(one, other)


# --- a student's overrides are not asked ---------------------------------------------------------

OVERRIDES = [
    "def parameters(self, recurse=True): return iter(())",
    "def named_parameters(self, *a, **k): return iter(())",
    "def buffers(self, recurse=True): return iter(())",
    "def named_buffers(self, *a, **k): return iter(())",
    "def modules(self): return iter(())",
    "def named_modules(self, *a, **k): return iter(())",
    "def children(self): return iter(())",
    "def train(self, mode=True): return self",
    "def eval(self): return self",
    "def double(self): return self",
    "def to(self, *a, **k): return self",
    "def state_dict(self, *a, **k): raise RuntimeError",
]


@pytest.mark.parametrize("where", ["Layer", "Inner"])
@pytest.mark.parametrize("override", OVERRIDES, ids=lambda line: line[4:].partition("(")[0])
def test_an_overridden_method_of_a_module_changes_nothing(
    open_seat: OpenSeat, override: str, where: str
) -> None:
    lines = {name: override if name == where else "" for name in ("Layer", "Inner")}
    source = f"""
import torch
from torch import nn
class Inner(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("one", torch.ones(1))
    {lines["Inner"]}
    def forward(self, x):
        return self.drop(self.linear(x)) * self.one
class Layer(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.inner = Inner(d_in, d_out)
    {lines["Layer"]}
    def forward(self, x):
        return self.inner(x)
"""
    module = open_seat(source, Layer).student().Layer(3, 200)
    assert list(module.parameters()) == ["inner.linear.weight", "inner.linear.bias"]
    assert [info.path for info in module.buffers()] == ["inner.one"]
    assert module.modules() == ["inner", "inner.linear", "inner.drop"]
    module.double().eval()
    x = MAKE.normal(batch=2, d_in=3, dtype=torch.float64)
    values = module.values()
    expected = functional.linear(x, values["inner.linear.weight"], values["inner.linear.bias"])
    torch.testing.assert_close(module(x), expected)
    assert (module.train()(x) == 0).any()


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


# --- watched functions ---------------------------------------------------------------------------


WATCHED = ["softmax", "special_softmax"]


def uses(open_seat: OpenSeat, body: str) -> list[wire.Use]:
    """What is noted of a call of `rows`, whose text is `body`."""
    seat = open_seat(f"import torch\nfrom torch import nn\n{body}", rows, watch=WATCHED)
    torch.testing.assert_close(seat.student().rows(X), torch.softmax(X, dim=-1))
    return seat.calls.uses("rows")


@pytest.mark.parametrize(
    "body",
    [
        "def rows(x):\n    return torch.softmax(x, dim=-1)  # here",
        "def rows(x):\n    return x.softmax(-1)  # here",
        "def rows(x):\n    return nn.functional.softmax(x, dim=-1)  # here",
        "def rows(x):\n    return nn.Softmax(dim=-1)(x)  # here",
        "def rows(x):\n    return torch.special.softmax(x, dim=-1)  # here",
        "from torch import softmax as soft\ndef rows(x):\n    return soft(x, dim=-1)  # here",
        "from torch.nn.functional import softmax as s\ndef rows(x):\n    return s(x, -1)  # here",
        "def rows(x):\n    return getattr(torch, 'soft' + 'max')(x, -1)  # here",
        "def rows(x):\n    return torch.Tensor.softmax(x, -1)  # here",
        "def rows(x):\n    return torch.ops.aten.softmax(x, -1)  # here",
        "def rows(x):\n    return torch.ops.aten.softmax.int(x, -1)  # here",
        "def rows(x):\n    return torch.ops.aten._softmax(x, -1, False)  # here",
        "def rows(x):\n    return torch._softmax(x, -1, False)  # here",
        "def rows(x):\n    return torch._C._VariableFunctions.softmax(x, -1)  # here",
        "def rows(x):\n    return torch.vmap(lambda row: row.softmax(-1))(x)  # here",
        "import functools\nrows = functools.partial(torch.softmax, dim=-1)",
        "rows = lambda x: x.softmax(-1)  # here",
        "act = nn.Softmax(dim=-1)\ndef rows(x):\n    return act(x)  # here",
        "def helper(x):\n    return x.softmax(-1)  # here\ndef rows(x):\n    return helper(x)",
    ],
    ids=[
        "torch",
        "method",
        "functional",
        "class",
        "special",
        "alias",
        "functional alias",
        "getattr",
        "Tensor",
        "ops",
        "ops overload",
        "ops inner",
        "inner",
        "C",
        "vmap",
        "partial",
        "lambda",
        "made before",
        "helper",
    ],
)
def test_a_watched_function_is_noted_with_the_students_line(open_seat: OpenSeat, body: str) -> None:
    noted = uses(open_seat, body)
    assert noted
    assert {use.function for use in noted} <= {*WATCHED}
    if "# here" in body:
        (use,) = {use.place for use in noted}
        assert use is not None
        assert use.file == "answers.py"
        assert use.text.endswith("# here")


@pytest.mark.parametrize(
    "body",
    [
        "def softmax(x):\n    e = x.exp()\n    return e / e.sum(-1, keepdim=True)\n"
        "def rows(x):\n    return softmax(x)",
        "def rows(x):\n    softmax = x.exp()\n    return softmax / softmax.sum(-1, keepdim=True)",
        "class torch_:\n    softmax = staticmethod(lambda x: x.exp() / x.exp().sum(-1)[:, None])\n"
        "def rows(x):\n    'no torch.softmax here'\n    return torch_.softmax(x)",
        "def rows(x):\n    return x.log_softmax(-1).exp()",
    ],
    ids=["own function", "own variable", "own method", "another function"],
)
def test_what_is_only_called_like_a_watched_function_is_not_noted(
    open_seat: OpenSeat, body: str
) -> None:
    assert uses(open_seat, body) == []


def test_a_use_is_noted_although_the_call_raises_afterwards(open_seat: OpenSeat) -> None:
    source = "def rows(x):\n    x.softmax(-1)\n    raise ValueError"
    seat = open_seat(source, rows, watch=["softmax"])
    with pytest.raises(StudentRaised):
        seat.student().rows(X)
    assert [use.function for use in seat.calls.uses("rows")] == ["softmax"]


def test_uses_in_a_modules_constructor_and_forward_are_noted_under_its_name(
    open_seat: OpenSeat,
) -> None:
    source = """
import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.w = torch.ones(d_in, d_out).softmax(-1)  # made
    def forward(self, x):
        return torch.softmax(x @ self.w, -1)  # called
"""
    seat = open_seat(source, Layer, rows, watch=["softmax"])
    seat.student().Layer(3, 2)(torch.ones(4, 3))
    places = [use.place.text for use in seat.calls.uses("Layer") if use.place]
    assert [place.partition("# ")[2] for place in places] == ["made", "called"]
    assert not seat.calls.uses("rows")
