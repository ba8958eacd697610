"""The forms of values: what annotations promise, and what a result is told that breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int
from torch import Tensor

from grader.course.contract import (
    ContractBroken,
    ContractError,
    bind,
    check_result,
    compile_contract,
)
from grader.testing import assert_agrees
from grader.wire.payload import Record

ROWS = np.arange(6.0).reshape(2, 3)
Rows = Float[np.ndarray, "rows columns"]


def judged(annotation: Any, value: Any, argument: Any = ROWS, takes: Any = Rows) -> Any:
    """The value that a test gets, if a function of `argument` promises this annotation."""

    def f(x: Any) -> Any:
        raise NotImplementedError(x)

    f.__annotations__ = {"x": takes, "return": annotation}
    contract = compile_contract("f", f)
    return check_result("f", contract.call, bind(contract, [argument]), value)


@dataclass
class Point:
    x: float
    label: str | None = None


@dataclass
class Renamed:
    x: float
    label: str | None = None


@dataclass
class Counted:
    total: int = field(init=False)


@dataclass
class Linked:
    rest: Linked | None


KEPT = [
    (Rows, ROWS, ROWS),
    (np.ndarray, ROWS > 1, ROWS > 1),
    (Tensor, torch.ones(2, 2), torch.ones(2, 2)),
    (npt.NDArray[np.int32], np.ones(2, np.int32), np.ones(2, np.int32)),
    (Int[np.ndarray, " rows"], np.array([1, 2]), np.array([1, 2])),
    (float, np.array(2.5, np.float32), 2.5),
    (float, torch.tensor(2.5), 2.5),
    (float, 2, 2.0),
    (int, np.array(3), 3),
    (bool, np.array(True), True),
    (str, "a", "a"),
    (None, None, None),
    (list[int], (1, np.array(2)), (1, 2)),
    (tuple[int, ...], [1, 2], [1, 2]),
    (tuple[Rows, float], (ROWS, np.array(1.0)), (ROWS, 1.0)),
    (Sequence[str], ["a"], ["a"]),
    (set[str], {"a"}, {"a"}),
    (set[tuple[int, int]], frozenset({(1, 2)}), {(1, 2)}),
    (dict[str, float], {"a": np.array(1.5)}, {"a": 1.5}),
    (Mapping[int | None, list[int]], {None: [1]}, {None: [1]}),
    (int | str, "a", "a"),
    (float | None, None, None),
    (Any, {"x": [ROWS]}, {"x": [ROWS]}),
    (list, [1, "a"], [1, "a"]),
    (Point, Point(cast(float, np.array(1.5))), Record("Point", {"x": 1.5, "label": None})),
    (Point, Record("Point", {"x": 2, "label": "a"}), Record("Point", {"x": 2.0, "label": "a"})),
]


@pytest.mark.parametrize(("annotation", "value", "given"), KEPT)
def test_a_promised_value_arrives_with_the_numbers_of_python(
    annotation: Any, value: Any, given: Any
) -> None:
    got = judged(annotation, value)
    assert type(got) is type(given)
    assert_agrees(got, given)
    given, got = ((vars(one) if isinstance(one, Record) else one) for one in (given, got))
    if isinstance(given, dict | list | tuple):
        inside = [*given.values()] if isinstance(given, dict) else given
        arrived = [*got.values()] if isinstance(got, dict) else got
        assert [type(one) for one in arrived] == [type(one) for one in inside]


BROKEN = [
    (Rows, ROWS.T, "f should return shape (rows=2, columns=3), got (3, 2): rows and columns look"),
    (Rows, ROWS.astype(np.float32), "f should return float64 values, got float32: the result sho"),
    (Float32[np.ndarray, " rows"], np.ones(2), "f should return float32 values, got float64"),
    (
        Rows,
        torch.ones(2, 3),
        "f should return a NumPy array, got a tensor of shape (2, 3): use Num",
    ),
    (
        Tensor,
        ROWS,
        "f should return a tensor, got a NumPy array of shape (2, 3): use torch, not Nu",
    ),
    (Rows, [[1.0]], "f should return a NumPy array, got a list of 1 item"),
    (float, True, "f should return a float, got bool 'True'"),
    (float, ROWS, "f should return a float, got a NumPy array of shape (2, 3) with float64 values"),
    (int, 2.0, "f should return an int, got float '2.0'"),
    (str, None, "f should return a string, got None: is there a `return` at the end?"),
    (list[int], [1, "2"], "result 2 of f should be an int, got str '2'"),
    (list[list[int]], [[1], [2, None]], "result 2.2 of f should be an int, got None"),
    (dict[str, list[int]], {"a": [1, 2.5]}, "item 2 of the entry 'a' of f should be an int, got f"),
    (dict[str, Rows], {"b": ROWS.T}, "the entry 'b' of f should be shape (rows=2, columns=3), got"),
    (dict[str, int], {1: 1}, "the key 1 of f should be a string, got int '1'"),
    (set[int], {"a"}, "an item of f should be an int, got str 'a'"),
    (set[int], [1], "f should return a set, got a list of 1 item"),
    (int | str, 2.5, "f should return an int or a string, got float '2.5'"),
    (list[int] | None, [1, "a"], "result 2 of f should be an int, got str 'a'"),
    (Point, Point(cast(float, "a")), "the field x of f should be a float, got str 'a'"),
    (Point, {"x": 1.0}, "f should return Point(x, label), got a dictionary of 1 entries"),
    (Point, Renamed(1.0), "f should return Point(x, label), got Renamed(x, label)"),
    (Point, Record("Point", {"y": 1.0}), "f should return Point(x, label), got Point(y)"),
]


@pytest.mark.parametrize(("annotation", "value", "told"), BROKEN)
def test_a_broken_promise_is_told_with_its_place(annotation: Any, value: Any, told: str) -> None:
    with pytest.raises(ContractBroken) as broken:
        judged(annotation, value)
    assert str(broken.value).startswith(told)


def test_a_float_result_of_integers_has_the_default_dtype_of_its_library() -> None:
    whole = Int[np.ndarray, " n"], np.array([1, 2])
    judged(Float[np.ndarray, " n"], np.ones(2), whole[1], whole[0])
    judged(Float[Tensor, " n"], torch.ones(2), whole[1], whole[0])
    with pytest.raises(ContractBroken, match="float64 values, got float32"):
        judged(Float[np.ndarray, " n"], np.ones(2, np.float32), whole[1], whole[0])


def test_dimensions_are_measured_inside_dictionaries_and_lists() -> None:
    named = dict[str, list[Float64[np.ndarray, "rows columns"]]]
    judged(Bool[np.ndarray, " columns"], np.ones(3, bool), {"a": [ROWS, ROWS]}, named)
    with pytest.raises(ContractError, match="columns is 3 and also 2"):
        judged(None, None, {"a": [ROWS, ROWS.T]}, named)


@pytest.mark.parametrize(
    ("takes", "argument", "told"),
    [
        (Rows, torch.ones(2, 3), "f: x is a NumPy array, not a tensor of shape (2, 3)"),
        (list[int], [1, ROWS], "f: item 2 of x is an int, not a NumPy array of shape (2, 3)"),
        (dict[str, float], {"a": "b"}, "f: the entry 'a' of x is a float, not str 'b'"),
        (float, torch.tensor(1.0), "f: x is a float, not a tensor of shape ()"),
        (tuple[int, str], (1,), "f: x is 2 values, not a tuple of 1 item"),
        (Point, Point(cast(float, "a")), "f: the field x of x is a float, not str 'a'"),
    ],
)
def test_an_argument_of_another_form_is_the_authors_error(
    takes: Any, argument: Any, told: str
) -> None:
    with pytest.raises(ContractError) as error:
        judged(None, None, argument, takes)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (bytes, "bytes cannot be sent to a student's code: use a list of ints"),
        (complex, "complex cannot be sent"),
        (Counted, "Counted: total has init=False: make it a property"),
        (Linked, "Linked holds itself: use lists or tuples"),
        (list[bytes], "bytes cannot be sent"),
        (Callable[[int], int], "Callable"),
        (list[Iterator[int]], "make it a parameter of its own"),
        (dict[Tensor, int], "keys of a dict and items of a set are strings, numbers"),
        (set[list[int]], "keys of a dict and items of a set are strings, numbers"),
        (Float[np.ndarray, "*batch d"], "*batch is no dimension: use names, numbers"),
        (npt.NDArray[np.str_], "cannot be sent"),
    ],
)
def test_an_annotation_that_nothing_can_meet_is_refused_at_the_reference(
    annotation: Any, told: str
) -> None:
    def f(x: Any) -> Any:
        raise NotImplementedError(x)

    f.__annotations__ = {"x": annotation, "return": None}
    with pytest.raises(ContractError) as error:
        compile_contract("f", f)
    where = f"{__file__}:{f.__code__.co_firstlineno}: f: parameter x: "
    assert str(error.value).startswith(where)
    assert told in str(error.value)
