"""What is observed of a call, in a real jail: changed inputs, operations, watched functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from grader import wire
from grader.course.tensors import Make
from grader.proxies.calls import CallResult, StudentRaised
from grader.proxies.remote import Student
from grader.testing import assert_input_unchanged
from tests.support.contracts import Layer, X, free, mix, remember, rows
from tests.support.seats import OpenSeat

MAKE = Make("remote", "observing", "tests")


# --- changed inputs ------------------------------------------------------------------------------


def test_observe_tells_which_inputs_the_student_changed(open_seat: OpenSeat) -> None:
    source = "def mix(weights, values):\n    values.add_(1)\n    return weights @ values"
    student = open_seat(source, mix).student()
    weights, values = MAKE.normal(queries=2, keys=3), MAKE.normal(keys=3, d=4)
    seen = student.mix.observe(weights, values)
    torch.testing.assert_close(seen.result, weights @ (values + 1))
    assert seen.changed == {1}


def entries(x: Mapping[str, Tensor]) -> object:
    return x["a"] + x["b"]


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("return x['a'] + x['b']", set()),
        ("return x['a'] + x.pop('b')", {0}),
        ("x['c'] = x['a'] * 2\n    return x['c']", {0}),
        ("x['a'] = x['a'] * 2\n    return x['a']", {0}),
        ("x.clear()\n    import torch\n    return torch.ones(3, 4)", {0}),
    ],
)
def test_a_dictionary_whose_tensors_are_others_is_changed(
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


def test_nan_in_an_input_that_was_left_alone_is_no_change(open_seat: OpenSeat) -> None:
    student = open_seat("def free(x):\n    return 1", free).student()
    assert student.free.observe(torch.full((2, 2), torch.nan)).changed == set()


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


def test_a_change_inside_a_nest_is_told_with_the_arguments_name(open_seat: OpenSeat) -> None:
    source = "import torch\ndef remember(x, cache):\n    cache[1].add_(1)\n    return x, cache"
    student = open_seat(source, remember).student()
    assert_input_unchanged(student.remember, torch.ones(0), (torch.ones(0), torch.ones(0)))
    with pytest.raises(AssertionError, match="`cache` was changed in place: build a new tuple"):
        assert_input_unchanged(student.remember, torch.ones(0), (torch.ones(3), torch.ones(3)))


@pytest.mark.parametrize(
    ("change", "cache", "kind"),
    [
        ("cache[1] = cache[1] + 1", [torch.ones(3), torch.ones(3)], "list"),
        ("cache.append(x)", [torch.ones(3)], "list"),
        ("cache['seen'] = x", {"seen": torch.zeros(3)}, "dictionary"),
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
    told = f"`cache` was changed in place: build a new {kind}, and leave"
    with pytest.raises(AssertionError, match=told):
        assert_input_unchanged(student.go_on, torch.ones(3), cache)


def test_a_changed_cache_is_one_mistake_whatever_it_is_made_of(open_seat: OpenSeat) -> None:
    def go_on(x: Float[Tensor, " n"], cache: Any) -> tuple[Float[Tensor, " n"], Any]:
        return x, cache

    def gave(source: str, cache: Any) -> tuple[CallResult, ...]:
        seat = open_seat(f"def go_on(x, cache):\n    {source}\n    return x, cache", go_on)
        with pytest.raises(AssertionError, match="`cache` was changed"):
            assert_input_unchanged(seat.student().go_on, torch.ones(3), cache)
        return seat.calls.seen.evidence()

    pairs = gave("cache[1][0].zero_()", [(torch.ones(3),), (torch.ones(3), torch.ones(3))])
    assert (
        gave("cache['k'].zero_(), cache['v'].zero_()", dict.fromkeys("kv", torch.ones(2))) == pairs
    )


# --- operations ----------------------------------------------------------------------------------


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
    assert 5 <= long.count - short.count <= 15  # one a number; two where x[n] looks it up
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


# What is stored (the largest result), computed, and run over for one number of a result.
COSTS = {
    "x @ y.mT": (12, 60, 5),  # (3, 5) by (5, 4): 12 numbers of 5 products each
    "torch.bmm(x.expand(2, 3, 5), y.mT.expand(2, 5, 4))": (24, 120, 5),
    "x + 1": (15, 15, 1),
    "x.sum()": (1, 15, 15),
    "x.mean(dim=0)": (5, 15, 3),
    "x.amax(dim=-1, keepdim=True)": (3, 15, 5),
    "x.max(dim=0).values": (5, 15, 3),
    "torch.logsumexp(x, dim=1)": (3, 15, 5),
    "torch.softmax(x, dim=0)": (15, 15, 3),
    "x.cumsum(1)": (15, 15, 5),
    "x.sort(dim=0)[0]": (15, 15, 3),
    "x.T": (15, 0, 1),  # a view: only y is computed
    "x.expand(1000, -1, -1)": (15, 0, 1),
    "x.expand(10, -1, -1).clone()": (150, 150, 1),
    "torch.maximum(x, x)": (15, 15, 1),
    "x.clone().masked_fill_(y[:3] > 0, 0.0)": (15, 45, 1),
    "torch.cat([x, x])": (30, 30, 1),
    "torch.nn.functional.pad(x, (0, 1))": (18, 18, 1),
    "x.clone().index_put((torch.tensor([0, 2]),), x[1])": (15, 30, 1),
    "x.gather(1, torch.zeros(3, 2, dtype=torch.int64))": (6, 12, 1),
    "(y[:3] > 0).scatter_(-1, torch.zeros(3, 1, dtype=torch.int64), True)": (15, 33, 1),
    "x[:, :2].sum(dim=-1)": (6, 6, 2),  # the slice is a view of 6 numbers
    "torch.nn.functional.max_pool1d(x[None], 5)": (3, 15, 5),
    "torch.nn.functional.avg_pool1d(x[None], 3, stride=1)": (9, 15, 3),
    "torch.nn.functional.conv1d(x[:, None], y.new_ones(1, 1, 4))": (6, 24 + 4, 4),
    "x.new_zeros(3, 1).scatter_add(1, x.long() - 1, x)": (15, 3 + 3 * 15, 5),
    "y.new_zeros(2, 5).index_add(0, torch.tensor([0, 1, 1]), x)": (15, 10 + 15, 3),
    # In no list: each number of the result may be computed from all of the input.
    "torch.cdist(x, x)": (9, 9 * 30, 30),
    "torch.histc(x, 4)": (4, 4 * 15, 15),
    "x.new_zeros(3).index_put((y[0, :3].long() - 1,), x[:, 0], accumulate=True)": (
        3, 3 + 3 + 3 + 3 * 9, 9,
    ),
    "torch._cummax_helper(x, x.clone(), x.long(), 1)": (15, 15 + 15 + 15 * 45, 45),  # no result
    "torch._foreach_exp_([x.clone()])": (15, 15 + 15 * 15, 15),  # no result
}  # fmt: skip


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


HELD = {
    "[x + 1 for _ in range(4)]": 60,
    "[(x + n).sum() for n in range(4)]": 15 + 4,  # the last term, and all sums
    "[x[n : n + 1] for n in range(3)]": 0,  # views of what was given
    "[(x + 1)[:1] for _ in range(4)]": 60,  # a view keeps all of its memory
    "[(x + 1).detach() for _ in range(4)]": 60,
    "[(x + 1).data for _ in range(4)]": 60,
    "[x.new_zeros(7).add_(1), x.new_zeros(7)]": 14,
    "x.new_zeros(2).resize_(9)": 9,
    "[x.to_sparse() for _ in range(3)]": 45,
    "keep(x)": 60,
}


@pytest.mark.parametrize(("code", "expected"), HELD.items())
def test_observe_tells_how_many_numbers_all_tensors_hold_at_one_time(
    open_seat: OpenSeat, code: str, expected: int
) -> None:
    source = (
        "import torch\nkept = []\n"
        "def keep(x):\n    kept.extend(x * n for n in range(4))\n    kept.clear()\n    x + 1\n"
        f"def free(x):\n    made = {code}\n    return x"
    )
    seen = open_seat(source, free).student().free.observe(torch.ones(3, 5))
    assert seen.operations.held == expected


COMPARED = {
    "x.amax(dim=-1)": 15,
    "x.max(dim=0).values": 15,
    "torch.nn.functional.max_pool1d(x[None], 5)": 15,
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


# The bits that become Python's or NumPy's.
LEFT = {
    "x.sum()": 0,
    "x.sum().item()": 32,
    "float(x.double().sum())": 64,
    "int(x.argmax())": 64,
    "1 if x.sum() > 3 else 2": 1,
    "torch.equal(x, x)": 1,
    "x.tolist()": 15 * 32,
    "x.numpy()": 15 * 32,
    "numpy.asarray(x[0])": 5 * 32,
    "numpy.from_dlpack(x)": 15 * 32,
    "x.clone().apply_(lambda number: number)": 15 * 32,
    "torch.from_numpy(numpy.array(3.0))": 0,
    "torch.from_numpy(numpy.zeros(15)).copy_(x.view(-1))": 15 * 64,
    "torch.frombuffer(numpy.zeros(15), dtype=torch.float64).view(3, 5).copy_(x)": 15 * 64,
    "torch.asarray(numpy.zeros((3, 5))).add_(x)": 15 * 64,
    "x.add_(1)": 0,  # what is passed to an answer is torch's own
    "torch.utils.dlpack.to_dlpack(x)": 15 * 32,
    "x.clone().map_(x, lambda one, other: one)": 15 * 32,
    "x.tolist(), x.add_(1), x.add_(1)": 15 * 32,  # a list shares no memory
    "[(torch.ones(1).tolist(), torch.zeros(999).add_(1)) for _ in range(50)]": 50 * 32,
    "[(torch.ones(1).numpy(), torch.zeros(999).add_(1)) for _ in range(50)]": 50 * 32,
}


@pytest.mark.parametrize(("code", "expected"), LEFT.items())
def test_observe_tells_how_many_bits_leave_torch(
    open_seat: OpenSeat, code: str, expected: int
) -> None:
    source = f"import numpy\nimport torch\ndef free(x):\n    {code}\n    return x + 1"
    x = torch.ones(3, 5)
    assert open_seat(source, free).student().free.observe(x).operations.left == expected


@pytest.mark.parametrize("shown", ["window.numpy()", "numpy.from_dlpack(window)"])
def test_what_is_written_through_a_window_for_numpy_leaves_torch(
    open_seat: OpenSeat, shown: str
) -> None:
    source = f"""
import numpy
import torch

def free(x):
    window = torch.empty(5)
    seen = {shown}
    for row in x:
        window.copy_(row)
    return x + 1
"""
    student = open_seat(source, free).student()
    assert student.free.observe(torch.ones(3, 5)).operations.left == (5 + 15) * 32


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
