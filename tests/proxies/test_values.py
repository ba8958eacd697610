"""Values that are no tensors, in a jail: they arrive, come back, and their changes are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from grader.course.contract import ContractBroken
from grader.proxies.calls import AuthorError
from grader.sandbox.session import StudentLost
from grader.testing import assert_agrees, assert_input_unchanged, assert_unmoved
from tests.support.seats import OpenSeat

Rows = Float[np.ndarray, "rows columns"]
ROWS = np.arange(6.0).reshape(2, 3)


def scaled(x: Rows, by: float = 2.0) -> Rows:
    return x * by


def summary(x: Rows) -> dict[str, float]:
    return {"mean": float(x.mean()), "largest": float(x.max())}


def anything(x: Any) -> Any:
    return x


def both(x: Rows, y: Float[Tensor, " n"]) -> tuple[Float[Tensor, " n"], Rows]:
    return y * 2, x


# --- there and back ------------------------------------------------------------------------------

VALUES = [
    ROWS,
    {"a": [1, 2.5], 3: (None, True), (1, "x"): "text"},
    {1, 2, 3},
    frozenset({"a"}),
    [ROWS > 1, torch.ones(2)],
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_arrives_as_it_is_and_comes_back(open_seat: OpenSeat, value: Any) -> None:
    kinds = f"{type(value).__module__}.{type(value).__name__}"
    source = (
        "import builtins, numpy\n"
        f"def anything(x):\n    assert type(x) is {kinds}, type(x)\n    return x\n"
    )
    assert_agrees(open_seat(source, anything).student().anything(value), value)


@pytest.mark.parametrize(
    "result", ["x * by", "np.multiply(x, by)", "(x.T * by).T", "np.array(x * by, dtype='>f8')"]
)
def test_an_array_is_computed_from_an_array(open_seat: OpenSeat, result: str) -> None:
    source = f"import numpy as np\ndef scaled(x, by=2.0):\n    return {result}\n"
    student = open_seat(source, scaled).student()
    assert_agrees(student.scaled(ROWS, 3.0), scaled(ROWS, 3.0))
    with pytest.raises(AssertionError, match="every value is 2 times the expected value; 5 of 6"):
        assert_agrees(student.scaled(ROWS, 4.0), scaled(ROWS, 2.0))


def test_a_number_of_numpy_is_a_number(open_seat: OpenSeat) -> None:
    source = "def summary(x):\n    return {'mean': x.mean(), 'largest': x.max()}\n"
    got = open_seat(source, summary).student().summary(ROWS)
    assert got == {"mean": 2.5, "largest": 5.0}
    assert {type(one) for one in got.values()} == {float}


def test_gradients_flow_beside_arrays(open_seat: OpenSeat) -> None:
    source = "def both(x, y):\n    return y * 2, x\n"
    y = torch.ones(3, dtype=torch.float64, requires_grad=True)
    doubled, rows = open_seat(source, both).student().both(ROWS, y)
    doubled.sum().backward()
    assert_agrees(y.grad, torch.full((3,), 2.0, dtype=torch.float64))
    assert_agrees(rows, ROWS)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("__import__('torch').ones(2, 3)", "got a tensor of shape (2, 3): use NumPy"),
        ("x.T", "shape (rows=2, columns=3), got (3, 2): rows and columns look swapped"),
        ("x.astype('float32')", "float64 values, got float32: the result should have the input's"),
        ("x.astype(object)", "a NumPy array, got an array of dtype object"),
        ("np.broadcast_to(x[0, 0], (2**20, 2**20))", "got an array of shape (1048576, 1048576): l"),
        ("x.tolist()", "got a list of 2 items"),
        ("None", "got None: is there a `return` at the end?"),
    ],
)
def test_another_result_is_told_to_the_student(open_seat: OpenSeat, result: str, told: str) -> None:
    source = f"import numpy as np\ndef scaled(x, by=2.0):\n    return {result}\n"
    with pytest.raises(ContractBroken) as broken:
        open_seat(source, scaled).student().scaled(ROWS)
    assert told in str(broken.value)


FORGED = """
import numpy as np
class Lying(np.ndarray):
    shape = dtype = property(lambda self: 1 / 0)
    def __array_finalize__(self, other): pass
    def __eq__(self, other): return True
    def all(self): return True
class Keys(dict):
    def items(self): return iter(int, 1)
def scaled(x, by=2.0):
    return np.zeros((2, 3)).view(Lying)
def anything(x):
    if x == "view":
        return np.lib.stride_tricks.as_strided(x=np.zeros(1), shape=(2, 3), strides=(2**40, 2**40))
    return Keys(a=1) if x == "keys" else set(range(20_000))
"""


def test_what_student_code_makes_of_arrays_and_dictionaries_is_read_as_it_is(
    open_seat: OpenSeat,
) -> None:
    student = open_seat(FORGED, scaled, anything).student()
    with pytest.raises(AssertionError, match="every value is 0"):
        assert_agrees(student.scaled(ROWS), scaled(ROWS))
    assert student.anything("keys") == {"a": 1}
    with pytest.raises(ContractBroken, match=r"anything's result holds a nest of more than 10,000"):
        student.anything("set")
    with pytest.raises(StudentLost):
        student.anything("view")


# --- arguments that cannot be sent ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"x", "an object of type bytes cannot be sent to a student's code: use a list of ints"),
        ([{"a": object()}], "an object of type object cannot be sent to a student's code: use"),
        (np.array([None]), "an array of dtype object"),
        ({torch.ones(1): 1}, "a dictionary with other keys than strings and numbers cannot be"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_refused_at_the_authors_line(
    open_seat: OpenSeat, value: Any, told: str
) -> None:
    student = open_seat("def anything(x):\n    return 1\n", anything).student()
    with pytest.raises(AuthorError) as refused:
        student.anything(value)
    assert str(refused.value).startswith(f"anything, argument x: {told}")


# --- changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "value", "kind"),
    [
        ("x[0] = 7", ROWS, "array"),
        ("x.sort()", [2, 1], "list"),
        ("x.append(float('nan'))", [float("nan")], "list"),
        ("x['b'] = 1", {"a": 1}, "dictionary"),
        ("x['a'].add(1)", {"a": {2}}, "dictionary"),
        ("x.discard(1)", {1, 2}, "set"),
        ("x[0]['a'][0] += 1", [{"a": np.zeros(2)}], "list"),
        ("x[0] = float(x[0])", [1, 2], "list"),
    ],
)
def test_a_change_of_an_argument_is_seen(
    open_seat: OpenSeat, change: str, value: Any, kind: str
) -> None:
    student = open_seat(f"def anything(x):\n    {change}\n    return 1\n", anything).student()
    with pytest.raises(AssertionError, match=f"`x` was changed in place: build a new {kind}"):
        assert_input_unchanged(student.anything, value)


@pytest.mark.parametrize("value", [*VALUES, [float("nan")], {"a": np.array([np.nan])}])
def test_an_argument_that_is_only_read_is_unchanged(open_seat: OpenSeat, value: Any) -> None:
    source = "def anything(x):\n    return [len(x), str(x), sorted(map(str, x))]\n"
    assert_input_unchanged(open_seat(source, anything).student().anything, value)


def test_the_changed_argument_is_named_whatever_the_order_of_the_students_parameters(
    open_seat: OpenSeat,
) -> None:
    source = "def scaled(by, x):\n    x *= by\n    return x.copy()\n"
    student = open_seat(source, scaled).student()
    with pytest.raises(AssertionError, match="`x` was changed in place: build a new array"):
        assert_input_unchanged(student.scaled, ROWS, 3.0)


# --- differences in words ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        (2, 3, "the result: expected 3, got 2"),
        (2.5, 2.5000004, "the result: expected 2.5000004, got 2.5"),
        (True, False, "the result: expected False, got True"),
        ("a", "b", "the result: expected 'b', got 'a'"),
        (None, "b", "the result: expected 'b', got None"),
        (2, None, "the result: expected None, got 2"),
        ("2", 2, "the result: expected an int, got str '2'"),
        (ROWS, torch.ones(2, 3), "expected a tensor, got a NumPy array of shape (2, 3)"),
        (torch.ones(2, 3), ROWS, "expected a NumPy array, got a tensor of shape (2, 3)"),
        ([1, 2], [1, 3], "the result 2: expected 3, got 2"),
        ([1], [1, 3], "the result: expected 2 values, got a list of 1 item"),
        ({1, 2}, {2, 3, 4}, "the result: 2 items are missing: 3, 4; 1 item is too many: 1"),
        ({1: 2}, {1: 3}, "the result 1: expected 3, got 2"),
        ({"1": 2}, {1: 2}, "the result: expected the keys [1], got ['1']"),
        ({"a": ROWS}, {"a": ROWS + 1}, "the result 'a': off by one: each column holds"),
        ({n: n for n in range(9000)}, {1: 2}, "expected the keys [1], got [0, 1, 10, 100, 1000, "),
        (torch.ones((), device="meta"), 1.0, "the result: expected a float, got a tensor of shape"),
        (ROWS.astype(np.float32), ROWS, "the result: expected float64 values, got float32"),
    ],
)
def test_values_that_differ_are_told_in_words(theirs: Any, ours: Any, told: str) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_agrees(theirs, ours)
    assert told in str(failed.value)
    assert len(str(failed.value)) < 300


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (2.5, np.float64(2.5)),
        (np.array(2.5), 2.5),
        (torch.tensor(3), 3),
        (2.5 + 1e-12, 2.5),
        (2, 2.0),
        ([1, "a", None, {2}], (1, "a", None, frozenset({2}))),
        (ROWS.T[::-1], ROWS.T[::-1]),
        ({1: ["a"]}, {np.int64(1): [np.str_("a")]}),
    ],
)
def test_values_that_agree_pass(theirs: Any, ours: Any) -> None:
    assert_agrees(theirs, ours)


def test_arrays_before_and_after_a_change_are_compared() -> None:
    assert_unmoved(ROWS, ROWS + 1e-9, "moved", lambda: ROWS)
    with pytest.raises(AssertionError, match="moved"):
        assert_unmoved(ROWS, ROWS + 1, "moved", lambda: ROWS)
