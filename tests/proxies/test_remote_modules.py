"""A student's module, through a real jail: its parameters, weights, modes and seeds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from grader.course.contract import ContractBroken
from grader.course.tensors import Make
from grader.sandbox.session import StudentLost
from tests.support.contracts import ALL, RIGHT, Layer
from tests.support.seats import OpenSeat

MAKE = Make("remote", "modules", "tests")


# --- what a module has ---------------------------------------------------------------------------


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


def test_a_parameter_far_larger_than_its_memory_costs_only_the_student(
    open_seat: OpenSeat,
) -> None:
    source = RIGHT.replace(
        "super().__init__()",
        "super().__init__()\n        self.huge = nn.Parameter(torch.zeros(1).expand(2**45))",
    )
    with pytest.raises((StudentLost, ContractBroken)):
        open_seat(source, Layer).student().Layer(3, 2)


# --- what can be done with it --------------------------------------------------------------------


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


def test_observe_works_for_modules_too(student: Any) -> None:
    module = student.Layer(3, 2)
    x = MAKE.normal(batch=4, d_in=3)
    seen = module.observe(x)
    assert torch.equal(seen.result, module(x).detach())
    assert seen.changed == set()
    assert seen.operations.count > 0


# --- seeds ---------------------------------------------------------------------------------------

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
