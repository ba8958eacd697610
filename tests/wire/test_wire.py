"""The wire: what travels comes back the same, and what is forged is refused."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from grader import wire
from grader.intake import read_submission
from grader.wire import payload

quickly = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def crossed(value: Any) -> Any:
    """What arrives on the trusted side when student code returns `value`."""
    sent = wire.encode(wire.Outcomes([wire.Returned(payload.pack(value))]))
    reply = wire.decode_reply(sent)
    assert isinstance(reply, wire.Outcomes)
    (returned,) = reply.outcomes
    assert isinstance(returned, wire.Returned)
    return payload.unpack(returned.value)


def oddity(value: Any) -> str:
    arrived = crossed(value)
    assert isinstance(arrived, wire.Odd), arrived
    return arrived.what


def same_bits(one: Tensor, other: Tensor) -> bool:
    raw = [bytes(t.contiguous().flatten().view(torch.uint8).numpy()) for t in (one, other)]
    return one.dtype == other.dtype and one.shape == other.shape and raw[0] == raw[1]


# --- tensors that arrive as they were ------------------------------------------------------------


@pytest.mark.parametrize("dtype", payload.DTYPES.values(), ids=str)
def test_every_dtype_arrives_bit_by_bit(dtype: torch.dtype) -> None:
    sent = (torch.arange(24) * 37 % 11 - 3).reshape(2, 3, 4).to(dtype)
    arrived = crossed(sent)
    assert same_bits(arrived, sent)
    assert arrived.untyped_storage().nbytes() == sent.untyped_storage().nbytes()


def test_the_dtypes_are_those_that_the_course_needs() -> None:
    assert {"bool", "int64", "float16", "bfloat16", "float32", "float64"} <= set(payload.DTYPES)
    assert not any(dtype.is_complex for dtype in payload.DTYPES.values())


def test_infinities_negative_zero_and_nans_keep_their_bits() -> None:
    sent = torch.tensor([math.inf, -math.inf, -0.0, math.nan, 1e-45])
    sent = torch.cat([sent, torch.tensor([0x7FC00123], dtype=torch.int32).view(torch.float32)])
    assert same_bits(crossed(sent), sent)


BLOCK = torch.arange(24.0).reshape(2, 3, 4)
LAYOUTS = [
    pytest.param(torch.tensor(3.5), id="0-d"),
    pytest.param(torch.tensor(True), id="0-d bool"),
    pytest.param(torch.empty(0), id="empty"),
    pytest.param(torch.empty(2, 0, 3, dtype=torch.int64), id="empty with sizes"),
    pytest.param(BLOCK.transpose(0, 2), id="transposed"),
    pytest.param(BLOCK[:, ::2, 1:], id="strided slice"),
    pytest.param(BLOCK[1, 2], id="a row in a larger memory"),
    pytest.param(BLOCK[0, :1, 2], id="one element of a column"),
    pytest.param(BLOCK[:1, 2, 3:], id="one element of a row"),
    pytest.param(BLOCK.bool()[1, ::5, 2], id="one boolean of a column"),
    pytest.param(torch.tensor([1.0, 2.0]).expand(5, 2), id="expanded"),
    pytest.param(BLOCK.as_strided((3, 3), (1, 1)), id="overlapping"),
    pytest.param(BLOCK.clone().requires_grad_() * 2, id="part of a graph"),
    pytest.param(torch.tensor([1 + 2j, 3 + 4j]).conj().imag, id="negative bit"),
    pytest.param(torch.tensor([1 + 2j]).conj().imag, id="one element with a negative bit"),
    pytest.param(torch.zeros([1] * wire.MAX_DIMENSIONS), id="as many dimensions as allowed"),
]


@pytest.mark.parametrize("sent", LAYOUTS)
def test_every_dense_layout_arrives_as_a_plain_contiguous_tensor(sent: Tensor) -> None:
    arrived = crossed(sent)
    assert torch.equal(arrived, sent)
    assert arrived.dtype == sent.dtype
    assert arrived.is_contiguous()
    assert not arrived.requires_grad


def test_what_arrives_can_be_written_to_and_shares_no_memory() -> None:
    packed = payload.pack_tensor(torch.zeros(3))
    first, second = payload.unpack_tensor(packed), payload.unpack_tensor(packed)
    first += 1
    assert torch.equal(first, torch.ones(3))
    assert not second.any()
    assert not any(packed.data)


def test_a_meta_tensor_arrives_with_shape_and_dtype_and_no_data() -> None:
    arrived = crossed(torch.empty(2**20, 2**20, dtype=torch.bfloat16, device="meta"))
    assert arrived.device.type == "meta"
    assert (arrived.shape, arrived.dtype) == ((2**20, 2**20), torch.bfloat16)


class Disguised(Tensor):
    """A subclass that answers everything with a lie."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("asked")


@pytest.mark.parametrize(
    "disguise",
    [
        lambda plain: nn.Parameter(plain),
        lambda plain: nn.Buffer(plain),
        lambda plain: plain.as_subclass(Disguised),
    ],
    ids=["Parameter", "Buffer", "with a __torch_function__ of its own"],
)
def test_a_subclass_of_tensor_arrives_as_a_plain_tensor_unasked(disguise: Any) -> None:
    plain = torch.arange(6.0).reshape(2, 3)
    arrived = crossed(disguise(plain.clone()))
    assert type(arrived) is Tensor
    assert torch.equal(arrived, plain)


# --- other values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -(2**63),
        2**63 - 1,
        1.5,
        math.inf,
        "",
        "Wörter ✓",
        (),
        [],
        {},
        (1, [2, (3,)]),
        {"W": 1, "": None},
        {1: "int", 2.5: "float", False: "bool", None: [], ("a", (2,)): "tuple"},
        {1, 2.5, "a", None, (1, "b")},
        frozenset({-1, -2}),
        set(),
        [[[[[[[[1]]]]]]]],
    ],
    ids=lambda value: (
        f"{type(value).__name__} of {len(value)}"
        if isinstance(value, set | frozenset)
        else repr(value)
    ),
)
def test_numbers_strings_none_and_nests_of_them_arrive_as_they_were(value: Any) -> None:
    arrived = crossed(value)
    assert arrived == value
    assert type(arrived) is type(value)


def test_tensors_arrive_inside_nests() -> None:
    arrived = crossed({"pair": (torch.ones(2), [torch.zeros(1)])})
    assert torch.equal(arrived["pair"][0], torch.ones(2))
    assert torch.equal(arrived["pair"][1][0], torch.zeros(1))


def test_the_tuples_that_torch_returns_arrive_as_tuples() -> None:
    values, indices = crossed(torch.tensor([[1.0, 5.0, 2.0]]).max(dim=-1))
    assert (values.item(), indices.item()) == (5.0, 1)


ROWS = np.arange(24.0).reshape(2, 3, 4)
ARRAYS = [
    pytest.param(np.array(3.5), id="0-d"),
    pytest.param(np.empty((2, 0)), id="empty"),
    pytest.param(ROWS.T, id="transposed"),
    pytest.param(ROWS[:, ::-2, 1:], id="negative strides"),
    pytest.param(np.broadcast_to(ROWS[0], (5, 3, 4)), id="broadcast"),
    pytest.param(ROWS.astype(">f8"), id="big endian"),
    pytest.param(ROWS > 7, id="bool"),
    pytest.param(ROWS.astype(np.float16), id="float16"),
    pytest.param(np.array([np.nan, np.inf, -0.0], np.float32), id="not finite"),
]


@pytest.mark.parametrize("sent", ARRAYS)
def test_an_array_arrives_as_a_plain_array_of_its_own_memory(sent: Any) -> None:
    arrived = crossed([sent])[0]
    assert type(arrived) is np.ndarray
    assert (arrived.dtype, arrived.shape) == (sent.dtype.newbyteorder("="), sent.shape)
    np.testing.assert_array_equal(arrived, sent)
    assert arrived.flags.writeable
    assert arrived.flags.owndata


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.int64(-3), np.bool_(True)])
def test_a_number_of_numpy_arrives_as_an_array_without_axes(number: Any) -> None:
    arrived = crossed(number)
    assert (type(arrived), arrived.dtype, arrived.shape) == (np.ndarray, number.dtype, ())
    assert arrived == number


def test_names_and_keys_of_numpy_arrive_as_those_of_python() -> None:
    names = np.array(["a", "b"])
    sent = [*names], dict.fromkeys(names, 1), {(np.int64(1), np.float32(0.5)), np.bool_(True)}
    arrived = crossed(sent)
    assert repr(arrived[:2]) == "(['a', 'b'], {'a': 1, 'b': 1})"
    assert arrived[2] == {(1, 0.5), True}
    assert {type(one) for pair in arrived[2] - {True} for one in pair} == {int, float}


class Lying(np.ndarray):
    """An array that answers every question with an exception."""

    dtype = shape = property(lambda _: 1 / 0)

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, Lying):
            raise ZeroDivisionError


class LyingDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise ZeroDivisionError

    __iter__ = __len__ = keys = values = __eq__ = items  # type: ignore[assignment]
    __hash__ = None


class LyingSet(set):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        raise ZeroDivisionError

    __len__ = __eq__ = __sub__ = __iter__  # type: ignore[assignment]
    __hash__ = None


@pytest.mark.parametrize(
    ("lying", "plain"),
    [
        (np.zeros(2).view(Lying), np.zeros(2)),
        (LyingDict(a=1), {"a": 1}),
        (LyingSet({1}), {1}),
    ],
    ids=["array", "dict", "set"],
)
def test_a_subclass_is_read_without_its_methods(lying: Any, plain: Any) -> None:
    arrived = crossed(lying)
    assert type(arrived) is type(plain)
    assert np.array_equal(arrived, plain)


def test_a_set_is_sent_in_one_order() -> None:
    words = [f"word {n}" for n in range(50)]
    first, second = (payload.pack({*some}) for some in (words, words[::-1]))
    assert wire.encode_input(first) == wire.encode_input(second)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"ab", "type bytes cannot be sent to a student's code: use a list of ints"),
        ([1, {"a": 2j}], "type complex cannot be sent to a student's code: use two floats"),
        ({1: object()}, "use tensors, NumPy arrays, numbers, strings, None, and tuples, lists"),
        ("x" * 2_001, "a string of more than 2,000 characters cannot be sent"),
        ([np.array([None])], "an array of dtype object: have its rows different lengths?"),
        (torch.zeros(2**21), "larger than 4 MB cannot be sent"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_refused(value: Any, told: str) -> None:
    with pytest.raises(payload.Unsendable) as refused:
        payload.pack_input(value)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "forged",
    [
        wire.Entries([(wire.Items("list", []), 1)]),
        wire.Entries([(wire.TensorData("float32", (), b"1234"), 1)]),
        wire.Entries([(wire.Items("tuple", [wire.Odd("x")]), 1)]),
        wire.Entries([(1, "a"), (True, "b")]),
        wire.Entries([(math.nan, "a")]),
        wire.Items("set", [wire.Items("set", [])]),
        wire.Items("frozenset", [1, 1.0]),
        wire.TensorData("float64", (2,), b"1" * 8, array=True),
        wire.TensorData("bfloat16", (1,), b"12", array=True),
        wire.TensorData("float32", (2,), b"", "meta", array=True),
        wire.TensorData("object", (1,), b"12345678", array=True),
    ],
    ids=str,
)
def test_a_forged_set_dictionary_or_array_is_a_wire_error(forged: wire.Value) -> None:
    reply = wire.decode_reply(wire.encode(wire.Outcomes([wire.Returned([forged][0])])))
    assert isinstance(reply, wire.Outcomes)
    (returned,) = reply.outcomes
    assert isinstance(returned, wire.Returned)
    with pytest.raises(wire.WireError):
        payload.unpack(returned.value)


def test_a_state_dict_arrives_as_a_dictionary() -> None:
    arrived = crossed(nn.Linear(2, 3).state_dict())
    assert type(arrived) is dict
    assert {path: value.shape for path, value in arrived.items()} == {
        "weight": (3, 2),
        "bias": (3,),
    }


def test_a_long_text_is_cut() -> None:
    assert crossed("x" * 10_000) == "x" * wire.MAX_TEXT


def test_a_text_that_is_not_unicode_still_arrives() -> None:
    assert isinstance(crossed("half a \ud83d pair"), str)


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
)
nests = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(leaves, inner, max_size=3)
        | st.frozensets(leaves, max_size=3)
    ),
    max_leaves=8,
)


@settings(quickly, max_examples=40)
@given(nests)
def test_any_shallow_nest_arrives_as_it_was(value: Any) -> None:
    assert crossed([value]) == [value]


# --- what cannot travel says what it is ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.eye(3).to_sparse(), "sparse"),
        (torch.zeros(2, dtype=torch.complex64), "complex64"),
        (torch.zeros(2, dtype=torch.complex64, device="meta"), "complex64"),
        (torch.zeros(2, dtype=torch.float8_e4m3fn), "float8_e4m3fn"),
        (torch.zeros(1).expand(2**25), "(33554432,): larger than 4 MB"),
        (torch.zeros(1, 1, dtype=torch.bool).expand(2**20, 2**20), "larger than 4 MB"),
        (torch.zeros([1] * 17), "17 dimensions"),
        (2**63, "beyond 64 bits"),
        (-(10**400), "beyond 64 bits"),
        ({(1, b"2")}, "a set of other items"),
        ({math.nan}, "a set of other items"),
        (np.array([1, "a", None]), "dtype object"),
        (np.zeros(2, [("a", int), ("b", float)]), "dtype void128"),
        (np.array(["a"]), "dtype str32"),
        (np.zeros(2, np.complex64), "dtype complex64"),
        (np.longdouble(1), "dtype float128"),
        (np.zeros((1,) * 17), "17 dimensions"),
        (np.lib.stride_tricks.as_strided(np.zeros(1), (2**20, 2**20), (0, 0)), "larger than 4 MB"),
        (range(3), "type range"),
        (3 + 4j, "type complex"),
        (b"bytes", "type bytes"),
        (object(), "type object"),
        (nn.Linear(1, 1), "type Linear"),
        (Tensor, "type"),
        ({torch.ones(1): 2}, "other keys than strings"),
        ({math.nan: 2}, "other keys than strings"),
        ({(1, frozenset()): 2}, "other keys than strings"),
        ({2**63: 1}, "a dictionary with keys that are too large"),
        ({"x" * 2001: 1, "x" * 2002: 2}, "a dictionary with keys that are too large"),
        ({(n, -n) for n in range(4000)}, "a set of items that are too large"),
        (set(range(10_001)), "more than 10,000 values"),
        ([None] * 10_001, "more than 10,000 values"),
        ((None,) * 10_001, "more than 10,000 values"),
        ({str(n): n for n in range(10_001)}, "too many"),
        (type("E" * 5000, (), {})(), "E" * 80),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 50 else "",
)
def test_what_cannot_travel_arrives_as_a_few_words(value: Any, told: str) -> None:
    what = oddity(value)
    assert told in what
    assert len(what) < 200


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_quantised_tensor_arrives_as_a_few_words() -> None:
    assert "quint8" in oddity(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8))


def test_what_refers_to_itself_ends() -> None:
    row: list[Any] = []
    row.append(row)
    table: dict[str, Any] = {}
    table["again"] = table
    for arrived in crossed((row, table)):
        while not isinstance(arrived, wire.Odd):
            (arrived,) = arrived.values() if isinstance(arrived, dict) else arrived
        assert "nested" in arrived.what


def test_one_odd_part_leaves_the_other_parts_as_they_are() -> None:
    odd, tensor = crossed((torch.eye(2).to_sparse(), torch.ones(2)))
    assert isinstance(odd, wire.Odd)
    assert torch.equal(tensor, torch.ones(2))


def test_a_tensor_as_large_as_the_limit_is_sent_and_one_element_more_is_not() -> None:
    assert payload.pack_tensor(torch.zeros(8), limit=32).shape == (8,)
    with pytest.raises(payload.Unsendable):
        payload.pack_tensor(torch.zeros(9), limit=32)


# --- forged replies ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        wire.TensorData("float32", (2,), b"1234567"),
        wire.TensorData("float32", (2,), b"123456789"),
        wire.TensorData("float32", (2,), b""),
        wire.TensorData("float32", (0,), b"1234"),
        wire.TensorData("float32", (), b""),
        wire.TensorData("float32", (-1,), b"1234"),
        wire.TensorData("float32", (-2, -1), b"12345678"),
        wire.TensorData("float32", (-1, 0), b""),
        wire.TensorData("float32", (2**63, 0), b""),
        wire.TensorData("float32", (2**62, 0, 2**62), b""),
        wire.TensorData("float32", (1,) * 17, b"1234"),
        wire.TensorData("float33", (1,), b"1234"),
        wire.TensorData("", (1,), b"1234"),
        wire.TensorData("torch.float32", (1,), b"1234"),
        wire.TensorData("complex64", (1,), b"12345678"),
        wire.TensorData("__class__", (), b""),
        wire.TensorData("float32", (2,), b"12345678", "meta"),
        wire.TensorData("float32", (-1,), b"", "meta"),
        wire.TensorData("float32", (2**40, 2**40), b"", "meta"),
        wire.TensorData("float32", (2**63, 0), b"", "meta"),
    ],
    ids=lambda forged: f"{forged.dtype}{list(forged.shape)[:3]}+{len(forged.data)}{forged.device}",
)
def test_a_tensor_whose_parts_disagree_is_a_wire_error(forged: wire.TensorData) -> None:
    with pytest.raises(wire.WireError):
        payload.unpack_tensor(forged)


@quickly
@given(
    st.sampled_from([*payload.DTYPES, "complex128", "storage"]),
    st.lists(st.integers(-2, 4) | st.sampled_from([2**31, 2**62, 2**63, 2**64 - 1]), max_size=18),
    st.binary(max_size=70),
    st.sampled_from(["cpu", "meta"]),
)
def test_any_tensor_data_unpacks_to_what_it_says_or_is_a_wire_error(
    dtype: str, shape: list[int], data: bytes, device: Any
) -> None:
    try:
        tensor = payload.unpack_tensor(wire.TensorData(dtype, tuple(shape), data, device))
    except wire.WireError:
        return
    assert tensor.shape == tuple(shape)
    assert (tensor.dtype, tensor.device.type) == (payload.DTYPES[dtype], device)


def test_a_boolean_is_never_a_byte_beyond_one() -> None:
    forged = wire.TensorData("bool", (3,), bytes([0, 1, 255]))
    assert payload.unpack_tensor(forged).view(torch.uint8).tolist() == [0, 1, 1]


def everything_unpacks_or_is_a_wire_error(data: bytes) -> None:
    try:
        reply = wire.decode_reply(data)
        for outcome in reply.outcomes if isinstance(reply, wire.Outcomes) else []:
            if isinstance(outcome, wire.Returned):
                payload.unpack(outcome.value)
    except wire.WireError:
        pass


@quickly
@given(st.binary(max_size=200))
def test_any_bytes_are_a_reply_or_a_wire_error(data: bytes) -> None:
    everything_unpacks_or_is_a_wire_error(data)


TRUE_REPLY = wire.encode(
    wire.Outcomes(
        [
            wire.Returned(
                payload.pack(
                    ([torch.ones(2, 1), "é"], {"w": torch.ones(1, dtype=torch.bool)}, 1.5)
                ),
                uses=[wire.Use("softmax", wire.Place("answers.py", 3))],
                operations=wire.Operations(3, 4, 5, 6),
            ),
            wire.Gradients([None, payload.pack_tensor(torch.ones(1))], {"w": None}),
            wire.Raised("ValueError", "no"),
        ]
    )
)


@quickly
@given(st.integers(0, len(TRUE_REPLY) - 1), st.integers(0, 255))
def test_a_reply_with_one_byte_changed_is_a_reply_or_a_wire_error(at: int, byte: int) -> None:
    everything_unpacks_or_is_a_wire_error(TRUE_REPLY[:at] + bytes([byte]) + TRUE_REPLY[at + 1 :])


@pytest.mark.parametrize("cut", range(0, len(TRUE_REPLY), 7))
def test_a_reply_that_ends_early_is_a_wire_error(cut: int) -> None:
    assert wire.decode_reply(TRUE_REPLY)
    with pytest.raises(wire.WireError):
        wire.decode_reply(TRUE_REPLY[:cut])


def test_a_reply_with_bytes_left_over_is_a_wire_error() -> None:
    with pytest.raises(wire.WireError):
        wire.decode_reply(TRUE_REPLY + b"\xc0")


@pytest.mark.parametrize("depth", [10, 100, 400, 2_000, 100_000])
def test_a_reply_nested_deeper_than_ours_is_a_wire_error(depth: int) -> None:
    """Where Python nests calls no deeper, that is one error; C nests them as deep as it likes."""
    shell = msgspec.msgpack.encode({"type": "items", "kind": "list", "items": [None]})[:-1]
    reply = msgspec.msgpack.encode(
        {"type": "outcomes", "outcomes": [{"type": "returned", "value": None}]}
    )
    with pytest.raises(wire.WireError):
        wire.decode_reply(reply[:-1] + shell * depth + b"\xc0")


def test_a_reply_may_nest_as_deep_as_what_is_packed() -> None:
    lists: object = 1.0
    tables: object = 1.0
    for _ in range(20):
        lists = [lists]
        tables = {(1, "a"): tables}
    for nest in (lists, tables):
        reply = wire.encode(wire.Outcomes([wire.Returned(payload.pack(nest))]))
        assert wire.encode(wire.decode_reply(reply)) == reply


TAGS = st.sampled_from(
    ["listing", "outcomes", "refused", "returned", "raised", "structure", "gradients", "done",
     "tensor", "items", "entries", "odd", "open", "run", 7, None]
)  # fmt: skip
FIELDS = st.sampled_from(
    ["value", "uses", "inputs", "outcomes", "items", "entries", "what", "kind", "text", "place",
     "found", "parameters", "dtype", "shape", "data", "device", "why", "printed", "line"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=9)
    | st.sampled_from(["list", "float32", "cpu"]),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.tuples(TAGS, st.dictionaries(FIELDS, inside, max_size=5)).map(
            lambda tagged: {"type": tagged[0], **tagged[1]}
        )
    ),
    max_leaves=12,
)


@quickly
@given(ANYTHING)
def test_any_message_of_known_words_is_a_reply_or_a_wire_error(message: object) -> None:
    everything_unpacks_or_is_a_wire_error(msgspec.msgpack.encode(message))
    reply = {"type": "outcomes", "outcomes": [{"type": "returned", "value": message}]}
    everything_unpacks_or_is_a_wire_error(msgspec.msgpack.encode(reply))


# Messages that are small on the wire, and would be large or slow once they are objects.
BEFORE, AFTER = msgspec.msgpack.encode(
    {"type": "outcomes", "outcomes": [{"type": "returned", "value": "@"}]}
).split(msgspec.msgpack.encode("@"))
LIST = msgspec.msgpack.encode({"type": "items", "kind": "list", "items": 0})[:-1]
EMPTY = LIST + b"\x90"
TEN_THOUSAND = b"\xdc" + (10_000).to_bytes(2, "big")


def filled(inside: bytes, count: int) -> bytes:
    """As many of these, in lists of ten thousand, as fit into a reply."""
    block = LIST + TEN_THOUSAND + inside * 10_000
    return LIST + b"\xdc" + count.to_bytes(2, "big") + block * count


BOMBS = {
    "millions of nothing": LIST + b"\xdd\x00\x3f\xff\x00" + b"\xc0" * 0x3FFF00,
    "lists of nothing": filled(b"\xc0", 400),
    "lists of empty lists": filled(EMPTY, 10),
    "a list that claims to be long": LIST + b"\xdd\xff\xff\xff\xff\xc0",
    "a text that claims to be long": b"\xdb\xff\xff\xff\xffno",
    "bytes that claim to be many": b"\xc6\xff\xff\xff\xffno",
    "a dictionary of one key": msgspec.msgpack.encode({"type": "entries", "entries": 0})[:-1]
    + b"\xdf\x00\x0f\xff\xff" + b"\xa0\xc0" * 0xFFFFF,
    "pairs of lists": msgspec.msgpack.encode({"type": "entries", "entries": 0})[:-1]
    + TEN_THOUSAND + (b"\x92" + LIST + b"\xdc\x00\x64" + b"\xc0" * 100 + b"\xc0") * 10_000,
    "a very deep list": (LIST + b"\x91") * 100_000,
    "a very long text": b"\xdb\x00\x3f\x00\x00" + b"x" * 0x3F0000,
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_no_reply_takes_much_memory_here(bomb: bytes) -> None:
    message = BEFORE + bomb + AFTER
    assert len(message) <= wire.MAX_REPLY + 1000
    tracemalloc.start()
    try:
        with pytest.raises(wire.WireError):
            wire.decode_reply(message)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.parametrize("of_many", [[[None] * 6_000] * 3, {"a": [1] * 9_000, "b": [2] * 2_000}])
def test_a_nest_of_very_many_values_is_told_and_not_sent(of_many: Any) -> None:
    assert "more than 10,000 values" in str(payload.pack(of_many))


def test_texts_and_lists_of_a_reply_have_limits() -> None:
    long = "x" * (wire.MAX_TEXT + 1)
    for reply in (
        wire.Refused(long),
        wire.Outcomes([], printed=long),
        wire.Outcomes([wire.Raised("E", long)]),
        wire.Outcomes([wire.Raised("E", "", wire.Place(long, 1))]),
        wire.Outcomes([wire.Returned(wire.Odd(long))]),
        wire.Outcomes([wire.Returned(None, functions=["f"] * (wire.MAX_ITEMS + 1))]),
        wire.Listing([wire.Found("f", "found", notes=[long])]),
    ):
        with pytest.raises(wire.WireError, match="length"):
            wire.decode_reply(wire.encode(reply))


def test_whatever_intake_reads_can_be_sent(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": "x = '\ud83d'", "metadata": {}, "outputs": []}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "half.ipynb").write_text(json.dumps(notebook), encoding="ascii")
    with Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfcbung.py")).open("w") as file:
        file.write("y = 1\n")
    submission = read_submission("someone", tmp_path)
    assert len(submission.sources) == 2
    assert wire.decode_request(wire.encode(wire.Open(submission.sources, ())))


@pytest.mark.parametrize(
    "request_of_ours",
    [
        wire.Run([wire.Seed(1)]),
        wire.Open((wire.SourceText("a.py", ("x = 1",)),), (wire.Wanted("f", "a", ""),)),
    ],
)
def test_a_request_is_no_reply(request_of_ours: wire.Request) -> None:
    data = wire.encode(request_of_ours)
    assert wire.decode_request(data) == request_of_ours
    with pytest.raises(wire.WireError):
        wire.decode_reply(data)


def test_the_text_of_a_wire_error_is_short() -> None:
    forged = msgspec.msgpack.encode({"type": "x" * 100_000})
    with pytest.raises(wire.WireError) as caught:
        wire.decode_reply(forged)
    assert len(str(caught.value)) <= wire.MAX_TEXT
