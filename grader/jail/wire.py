"""The wire between the trusted process and a student's process: messages, and tensors as bytes.

A frame is an eight-byte little-endian length and one msgpack message, which is decoded into the
types below or refused.
Tensors travel as dtype, shape and raw bytes. Nothing is ever unpickled, and nothing in a message
names a file, a module or a piece of code on the receiving side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
import torch
from torch import Tensor
from torch.nn import Parameter

MAX_REPLY = 4 * 2**20  # bytes: the course needs less than one megabyte a reply
MAX_DIMENSIONS = 16
MAX_TEXT = 2_000  # characters of a student's own text that we carry
MAX_NAME = 400  # characters of what a file, a parameter or a class is called
MAX_ITEMS = 10_000  # values in one nest of tuples, lists and dictionaries, and in any list
MAX_DEPTH = 8

# A message is checked against these while it is decoded.
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_few = msgspec.Meta(max_length=MAX_ITEMS)


class WireError(Exception):
    """A message that is not of the declared form."""


class Unsendable(Exception):
    """A value that a reply may not hold; the text says what it is, for the student."""


# --- values ---------------------------------------------------------------------------------------


class TensorData(msgspec.Struct, frozen=True, tag="tensor"):
    """A dense tensor; ``data`` is empty on the meta device."""

    dtype: Name
    shape: Annotated[tuple[int, ...], _few]
    data: bytes
    device: Literal["cpu", "meta"] = "cpu"
    requires_grad: bool = False


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A tuple or a list."""

    kind: Literal["tuple", "list"]
    items: Annotated[list[Value], _few]


class Entries(msgspec.Struct, frozen=True, tag="entries"):
    """A dictionary with string keys."""

    entries: Annotated[dict[Name, Value], _few]


class Odd(msgspec.Struct, frozen=True, tag="odd"):
    """A value that cannot travel; ``what`` describes it for the student."""

    what: Text


Value = None | bool | int | float | Text | TensorData | Items | Entries | Odd

DTYPES: Mapping[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64,
    )
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}

# Bound before any student code runs: a submission may replace what torch offers by name.
_detach = Tensor.detach
_as_subclass = Tensor.as_subclass
_clone = Tensor.clone
_resolve_neg = Tensor.resolve_neg
_reshape = Tensor.reshape
_view = Tensor.view
_numpy = Tensor.numpy
_no_subclass = torch._C.DisableTorchFunctionSubclass


def clean(text: str) -> str:
    """Text that can be encoded: half a surrogate pair, which Python allows, becomes a ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pack_tensor(tensor: Tensor, limit: int = MAX_REPLY) -> TensorData:
    """Copy a tensor into bytes; raise `Unsendable` for what has no dense bytes on this machine."""
    with _no_subclass():
        if type(tensor) not in (Tensor, Parameter):
            # A subclass may have properties of its own, with code in them.
            try:
                tensor = _as_subclass(tensor, Tensor)
            except RuntimeError:
                raise Unsendable("a tensor of a kind without dense storage") from None
        if tensor.layout != torch.strided:
            raise Unsendable(f"a sparse tensor (layout {tensor.layout}); return a dense one")
        if tensor.dtype not in NAMES:
            raise Unsendable(f"a tensor of dtype {tensor.dtype}, which no exercise asks for")
        if tensor.dim() > MAX_DIMENSIONS:
            raise Unsendable(f"a tensor with {tensor.dim()} dimensions")
        shape = tuple(tensor.shape)
        name = NAMES[tensor.dtype]
        if tensor.device.type == "meta":
            return TensorData(name, shape, b"", "meta")
        if tensor.device.type != "cpu":
            raise Unsendable(f"a tensor on device {tensor.device}")
        # The logical size: an expanded tensor is small until someone makes it dense.
        if math.prod(shape) * tensor.element_size() > limit:
            raise Unsendable(f"a tensor of shape {shape}: larger than {limit // 2**20} MB")
        dense = _clone(_resolve_neg(_detach(tensor)), memory_format=torch.contiguous_format)
        flat = _reshape(dense, (-1,))
        data = bytes(_numpy(_view(flat, torch.uint8))) if flat.numel() else b""
        return TensorData(name, shape, data)


def unpack_tensor(packed: TensorData) -> Tensor:
    """Rebuild a plain tensor that owns its memory; raise `WireError` if the parts disagree."""
    dtype = DTYPES.get(packed.dtype)
    if dtype is None:
        raise WireError(f"unknown dtype {packed.dtype[:20]!r}")
    if len(packed.shape) > MAX_DIMENSIONS or any(not 0 <= n < 2**31 for n in packed.shape):
        raise WireError("impossible shape")
    if packed.device == "meta":
        if packed.data or math.prod(packed.shape) >= 2**62:
            raise WireError("a meta tensor carries no data")
        return torch.empty(packed.shape, dtype=dtype, device="meta")
    if len(packed.data) != math.prod(packed.shape) * dtype.itemsize:
        raise WireError("a tensor's bytes do not match its shape")
    if not packed.data:
        return torch.empty(packed.shape, dtype=dtype)
    # A bool is one bit of meaning in a byte: anything else but 0 and 1 would be undefined.
    source = torch.frombuffer(bytearray(packed.data), dtype=torch.uint8)
    flat = source.ne(0) if dtype == torch.bool else source.view(dtype)
    return flat.reshape(packed.shape)


def pack(value: Any, tensor: Callable[[Tensor], TensorData] = pack_tensor) -> Value:
    """Turn a nest of tensors, numbers, strings and None into a `Value`; oddities become `Odd`."""
    left = MAX_ITEMS

    def nest(value: Any, depth: int) -> Value:
        nonlocal left
        kind = type(value)
        if isinstance(value, Tensor):
            try:
                return tensor(value)
            except Unsendable as error:
                return Odd(str(error)[:MAX_TEXT])
        if depth > MAX_DEPTH:
            return Odd("values nested more than eight deep")
        if value is None or kind is bool or kind is float:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return value if -(2**63) <= value < 2**63 else Odd("an integer beyond 64 bits")
        if kind is str:
            return clean(value[:MAX_TEXT])
        if isinstance(value, (tuple, list)):
            inside = list(
                tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)
            )
            left -= len(inside)
            if left < 0:
                return Odd(f"a nest of more than {MAX_ITEMS:,} values")
            items = [nest(item, depth + 1) for item in inside]
            return Items("tuple" if isinstance(value, tuple) else "list", items)
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            left -= len(pairs)
            if left < 0 or not all(type(key) is str for key, _ in pairs):
                return Odd("a dictionary whose keys are not all strings, or with too many of them")
            return Entries({clean(key[:200]): nest(item, depth + 1) for key, item in pairs})
        return Odd(f"an object of type {clean(str(kind.__name__)[:80])}")

    return nest(value, 0)


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors in a nest, in the order in which `pack` meets them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)


def unpack(value: Value, tensor: Callable[[TensorData], Tensor] = unpack_tensor) -> Any:
    """Turn a `Value` back into tensors, numbers, strings, tuples, lists and dictionaries."""
    match value:
        case TensorData():
            return tensor(value)
        case Items(kind, items):
            parts = [unpack(item, tensor) for item in items]
            return tuple(parts) if kind == "tuple" else parts
        case Entries(entries):
            return {key: unpack(item, tensor) for key, item in entries.items()}
        case _:
            return value


# --- requests: from the trusted side to the student's --------------------------------------------


class SourceText(msgspec.Struct, frozen=True):
    """One file of a submission: a name to show, and its cells (a ``.py`` file has one)."""

    name: str
    cells: tuple[str, ...]


class Wanted(msgspec.Struct, frozen=True):
    """An exercise to look for: its name, its unit's file stem, and its stub's skeleton."""

    name: str
    unit: str
    stub: str


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Load a submission's text and list the definitions in it; answers `Listing`."""

    sources: tuple[SourceText, ...]
    wanted: tuple[Wanted, ...]
    forbidden: tuple[str, ...] = ()  # torch functions that are not to be had in this process
    others: tuple[Wanted, ...] = ()  # that those may borrow from another file without an import


class Seed(msgspec.Struct, frozen=True, tag="seed"):
    """Forget all handles and seed torch, numpy and random: a test begins."""

    seed: int


class Invoke(msgspec.Struct, frozen=True, tag="invoke"):
    """Call a definition (``target`` is its name) or a module made before (its handle)."""

    target: str | int
    arguments: list[Value]
    keywords: list[str]  # the student's names for them; empty: by position
    result: int  # the handle under which a graph or a module is kept
    construct: bool = False
    keep_graph: bool = False
    watch: tuple[str, ...] = ()  # report calls of torch functions with these names
    observe: bool = False  # also report operations


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """Overwrite parameters of a module, by path."""

    handle: int
    values: dict[str, TensorData]


class Convert(msgspec.Struct, frozen=True, tag="convert"):
    """Apply one of the module methods that proxies offer."""

    handle: int
    method: Literal["train", "eval", "to_dtype", "to_device"]
    argument: str = ""


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Report a module's parameters and buffers, with values if asked; answers `Structure`."""

    handle: int
    values: bool = False


class Backward(msgspec.Struct, frozen=True, tag="backward"):
    """Push gradients of a kept result back; answers the gradients of inputs and parameters."""

    result: int
    gradients: list[TensorData | None]


Call = Seed | Invoke | Assign | Convert | Describe | Backward


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Do these calls in order; stop at the first that raises."""

    calls: list[Call]


Request = Open | Run

# --- replies: never trusted ----------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True):
    """A line of the submission."""

    file: Name
    line: int
    text: Name = ""


class Use(msgspec.Struct, frozen=True):
    """A watched torch function was called from a line of the submission."""

    function: Name
    place: Place | None = None


class Operations(msgspec.Struct, frozen=True):
    """What the dispatcher saw: operations, and the largest number of elements in one result."""

    count: int
    largest: int


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """A call came back."""

    value: Value
    uses: Annotated[list[Use], _few] = []
    changed: Annotated[list[int], _few] = []  # which of the tensors sent are not what they were
    operations: Operations | None = None
    functions: Annotated[list[Name], _few] = []


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """A call raised; the text is the student's own and cut to a limit."""

    kind: Name
    text: Text
    place: Place | None = None
    ordinary: bool = True  # what `except Exception` catches, and an answer to a wrong argument
    uses: Annotated[list[Use], _few] = []


class ParameterInfo(msgspec.Struct, frozen=True):
    """A parameter or buffer of a module."""

    path: Text
    shape: Annotated[tuple[int, ...], _few]
    dtype: Name
    owner: Name  # the class of the module that holds it, "Linear" for torch's own
    value: TensorData | None = None


class Structure(msgspec.Struct, frozen=True, tag="structure"):
    """A module as `torch.nn.Module` itself sees it."""

    parameters: Annotated[list[ParameterInfo], _few]
    buffers: Annotated[list[ParameterInfo], _few]
    modules: Annotated[list[Text], _few]
    training: bool
    uses: Annotated[list[Use], _few] = []


class Gradients(msgspec.Struct, frozen=True, tag="gradients"):
    """Gradients by argument position and by parameter path; None where none arrived."""

    inputs: Annotated[list[Value], _few]
    parameters: Annotated[dict[Text, TensorData | None], _few]
    uses: Annotated[list[Use], _few] = []


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Nothing to report."""


Outcome = Returned | Raised | Structure | Gradients | Done


class Argument(msgspec.Struct, frozen=True):
    """One parameter of a student's function."""

    name: Name
    kind: Literal["positional", "star", "keyword", "double_star"]
    optional: bool


class Found(msgspec.Struct, frozen=True):
    """What a submission holds under an exercise's name."""

    name: Name
    status: Literal["found", "stub", "missing", "broken"]
    kind: Literal["function", "class", "other"] = "other"
    place: Place | None = None
    arguments: Annotated[list[Argument], _few] | None = (
        None  # None: not to be read from the text alone
    )
    forward: Annotated[list[Argument], _few] | None = None
    message: Text = ""
    notes: Annotated[list[Text], _few] = []
    evasions: Annotated[list[Use], _few] = []


class Listing(msgspec.Struct, frozen=True, tag="listing"):
    """The answer to `Open`."""

    found: Annotated[list[Found], _few]


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """The answer to `Run`: one outcome a call, fewer if one raised."""

    outcomes: Annotated[list[Outcome], _few]
    printed: Text = ""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The guest itself could not do what was asked, through no fault of the student."""

    why: Text


Reply = Listing | Outcomes | Refused

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """One message as bytes, without its frame."""
    return _encoder.encode(message)


def decode_request(data: bytes) -> Request:
    """Bytes from the trusted side as a request."""
    return cast(Request, _requests.decode(data))


def decode_reply(data: bytes) -> Reply:
    """Bytes from a student's process as a reply; raise `WireError` for anything else."""
    try:
        reply = cast(Reply, _replies.decode(data))
        _refuse_many(reply)
        return reply
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"a reply that is not of the declared form: {error}"[:MAX_TEXT]) from None


def _refuse_many(reply: Reply) -> None:
    """Raise `WireError` for values by the million: each costs bytes there, and an object here."""
    left = 2 * MAX_ITEMS
    waiting: list[Value] = []
    for outcome in reply.outcomes if isinstance(reply, Outcomes) else ():
        if isinstance(outcome, Returned):
            waiting.append(outcome.value)
        elif isinstance(outcome, Gradients):
            waiting += outcome.inputs
    while waiting:
        value = waiting.pop()
        left -= 1
        if left < len(waiting):
            raise WireError("a reply of too many values")
        if isinstance(value, Items):
            waiting += value.items
        elif isinstance(value, Entries):
            waiting += value.entries.values()
