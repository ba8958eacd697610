"""The messages between the trusted process and a student's process.

A message travels in a frame: an eight-byte little-endian length, followed by the message in
msgpack. A message is decoded into the types below, or refused. No message is unpickled. No message
names a file, a module or a piece of code of the receiving side. This module does not import torch,
so that commands that only start a process or read files load faster.

Both processes import this folder, and it imports no other room. The trust boundary is three
folders: this one, `guest` and `sandbox`. Read this folder first, in this order:

1. This module: all requests and replies, and the checks during decoding.
2. `frames`: how bytes are sent; commands to processes, and their replies.
3. `payload`: turns values into messages and back, one kind of value after the other.
4. `models`: the models that a test passes to student code.
5. `source`, `definitions`: parse a submission's text, in the student's process. The trusted side
   parses only our own files with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal, cast

import msgspec

# The dispatcher's layer that records graphs for backward and computes forward derivatives.
AUTOGRAD = "Autograd"

MAX_REPLY = 4 * 2**20  # bytes: the course needs less than a megabyte for each reply
MAX_DIMENSIONS = 16
MAX_TEXT = 2_000  # characters of a text from student code
MAX_NAME = 400  # characters of the name of a file, a parameter or a class
MAX_ITEMS = 10_000  # values in nested tuples, lists, sets and dictionaries, and in any list
MAX_DEPTH = 8
MAX_MODELS = 8  # models among the arguments of a call
MAX_USES = 20  # calls of watched functions in the report of a call
MAX_OPERANDS = 4  # tensors of a failing line, in the report of a call that raised

# While a message is decoded, its texts and lists are checked against these limits.
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_few = msgspec.Meta(max_length=MAX_ITEMS)


class WireError(Exception):
    """A message does not have the declared form."""


# --- values ---------------------------------------------------------------------------------------


class TensorData(msgspec.Struct, frozen=True, tag="tensor"):
    """A dense tensor or NumPy array; ``data`` is empty on the meta device."""

    dtype: Name
    shape: Annotated[tuple[int, ...], _few]
    data: bytes
    device: Literal["cpu", "meta"] = "cpu"
    array: bool = False  # whether it is a NumPy array; a NumPy number is an array without axes


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A tuple, a list or a set; the items of a set are plain keys, in a fixed order."""

    kind: Literal["tuple", "list", "set", "frozenset"]
    items: Annotated[list[Value], _few]


class Entries(msgspec.Struct, frozen=True, tag="entries"):
    """A dictionary, as pairs of a plain key and a value; or a dataclass, as its fields.

    A plain key is a string, a number, a bool, None or a tuple of these. The pairs are no dictionary
    on the wire: student code could choose keys with equal hashes, which fill one very slowly.
    """

    entries: Annotated[list[tuple[Value, Value]], _few]
    dataclass: Name = ""  # the name of the class; "" for a dictionary


class Odd(msgspec.Struct, frozen=True, tag="odd"):
    """Replaces a value that cannot be sent; ``what`` describes that value for the student."""

    what: Text


Value = None | bool | int | float | Text | TensorData | Items | Entries | Odd


class TableModelData(msgspec.Struct, frozen=True, tag="table_model"):
    """The weights of a `models.TableModel`; only requests may contain them, not replies.

    Both processes have the code of the model, and rebuild it from the weights.
    """

    table: TensorData
    steps: TensorData


Plain = None | bool | int | float | Name | tuple[int, ...]


class LayerData(msgspec.Struct, frozen=True):
    """A layer of a model: the name of its class, its arguments, and the layers inside it.

    `models.LAYERS` lists the classes and arguments; both processes refuse all others.
    """

    kind: Name
    arguments: dict[Name, Plain]
    parts: dict[Name, LayerData] = {}


class ModelData(msgspec.Struct, frozen=True, tag="model"):
    """A model of a test's: its layers, and its weights and buffers by path. Only in requests."""

    layers: LayerData
    state: dict[Name, TensorData]
    training: list[bool]  # whether each module is in training mode, see `models.training_of`
    frozen: list[Name] = []  # paths of the parameters that need no gradient


class ModelState(msgspec.Struct, frozen=True):
    """A model after a call: the weights and buffers that could be read, by path, and the modes."""

    state: Annotated[dict[Name, TensorData], _few]
    training: Annotated[list[bool], _few]


class Batches(msgspec.Struct, frozen=True, tag="batches"):
    """The values that a generator of the student's process yields. Only in requests."""

    items: list[Value]


Input = Value | TableModelData | ModelData | Batches  # an argument of a call


def clean(text: str) -> str:
    """Make a text encodable: each lone surrogate, which UTF-8 cannot encode, becomes a ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- requests: from the trusted process to a student's process -----------------------------------


class SourceText(msgspec.Struct, frozen=True):
    """A file of a submission: its name, and its cells (a ``.py`` file counts as one cell)."""

    name: str
    cells: tuple[str, ...]


class Wanted(msgspec.Struct, frozen=True):
    """An exercise to find in a submission: its name, its unit, and its stub's `skeleton`."""

    name: str
    unit: str
    stub: str


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Load a submission's text and list its definitions; the reply is a `Listing`."""

    sources: tuple[SourceText, ...]
    wanted: tuple[Wanted, ...]
    forbidden: tuple[str, ...] = ()  # torch functions to remove from this process
    others: tuple[Wanted, ...] = ()  # not listed; found only when other code needs them
    checks: bool = True  # whether to run statements that only check or print: see `checks`
    probes: bool = False  # whether the text has probes: see `sites`


class Seed(msgspec.Struct, frozen=True, tag="seed"):
    """Begin a test: forget all handles, and seed the generators of torch, numpy and Python."""

    seed: int


TRIAL = 0  # in place of a handle, for a call whose result is not kept: see `Invoke`


class Invoke(msgspec.Struct, frozen=True, tag="invoke"):
    """Call a definition, by its name, or a module that was made earlier, by its handle.

    If ``result`` is `TRIAL`, the call is not seeded, its result is not kept, and the student does
    not see the call. The search for a module's parameters makes such calls, to try weights.
    """

    target: str | int
    arguments: list[Input]
    keywords: list[str]  # the student's names for the arguments; empty: pass by position
    result: int  # the handle for the graph or module to keep, or `TRIAL`
    leaves: list[int] = []  # numbers of the tensors, in order, whose gradients `Backward` computes
    construct: bool = False  # whether the call constructs a module, which is kept
    keep_graph: bool = False  # whether to keep the graph of the result, for `Backward`
    watch: tuple[str, ...] = ()  # names of torch functions whose calls are reported
    observe: bool = False  # whether to count operations too
    altered: tuple[str, ...] = ()  # names of torch functions whose results are distorted


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """Overwrite parameters of a module; `values` maps a parameter's path to its new value."""

    handle: int
    values: dict[str, TensorData]


class Convert(msgspec.Struct, frozen=True, tag="convert"):
    """Apply ``train``, ``eval`` or ``to`` to a module; `argument` is the dtype or device."""

    handle: int
    method: Literal["train", "eval", "to_dtype", "to_device"]
    argument: str = ""


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Report a module's parameters and buffers; the outcome is a `Structure`."""

    handle: int
    values: bool = False


class Locate(msgspec.Struct, frozen=True, tag="locate"):
    """List the sites of an answer, which questions are about; the outcome is `Located`."""

    name: str


class Backward(msgspec.Struct, frozen=True, tag="backward"):
    """Run the backward pass from gradients of a kept result; the outcome is `Gradients`."""

    result: int
    gradients: list[TensorData | None]


Call = Seed | Invoke | Assign | Convert | Describe | Backward | Locate


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Make these calls in order; stop at the first that raises."""

    calls: list[Call]


Request = Open | Run

# --- replies: never trusted ----------------------------------------------------------------------


# The name of a `SourceText` with the cells that ran in a notebook's kernel, in the order they ran.
KERNEL = "the kernel"


class Place(msgspec.Struct, frozen=True):
    """A line of the submission; `line` counts from the top of the file, or of the cell."""

    file: Name
    line: int
    text: Name = ""
    cell: int = 0  # the number of a notebook's cell, from 1; 0 in other files

    @property
    def within(self) -> str:
        """The file and, if any, its cell: ``hw.ipynb cell 3``; ``cell [3]`` of a kernel."""
        if self.file == KERNEL:
            return f"cell [{self.cell}]"
        return f"{self.file} cell {self.cell}" if self.cell else self.file


def lines_around(place: Place, sources: Iterable[SourceText]) -> list[str]:
    """All lines of the file or cell that contains a place; empty if no source has that line."""
    for source in sources:
        if source.name == place.file:
            cells = (c for n, c in enumerate(source.cells, start=1) if place.cell in (0, n))
            lines = [line for cell in cells for line in re.sub(r"\r\n?", "\n", cell).split("\n")]
            return lines if 0 < place.line <= len(lines) else []
    return []


class Site(msgspec.Struct, frozen=True):
    """A piece of an answer's text: a value on the way, or a place that can be changed.

    Columns are counted in characters, from 0.
    """

    kind: Literal["value", "leave out", "change"]
    place: Place  # of the first line
    start: int  # the column of the first character
    end_line: int
    end: int  # the column after the last character
    text: Text  # what stands there
    new: Text = ""  # what a change puts there
    name: Name = ""  # the name that the value is bound to
    loops: bool = False  # whether the site is in a loop


class Seen(msgspec.Struct, frozen=True):
    """A value that a probe has seen: the number of the probe, and the value."""

    probe: int
    value: Value


class Use(msgspec.Struct, frozen=True):
    """A call of a watched torch function, with the line of the submission that made it."""

    function: Name
    place: Place | None = None


class Operations(msgspec.Struct, frozen=True):
    """The operations of a call, as counted by `grader.guest.trace`."""

    count: int  # the number of operations
    largest: int  # the number of elements stored by the largest tensor
    work: int  # multiply-adds of products, plus elements that other operations write or reduce
    widest: int  # the largest number of elements that a sum, product, maximum or softmax runs over
    compared: int = 0  # elements read by maxima and comparisons before the first exponential
    left: int = 0  # bits of numbers that Python or NumPy got
    held: int = 0  # the most numbers that the tensors made in the call held at one time


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """A call returned a value."""

    value: Value
    uses: Annotated[list[Use], _few] = []
    changed: Annotated[list[int], _few] = []  # numbers of the arguments that were changed
    operations: Operations | None = None
    functions: Annotated[list[Name], _few] = []  # names of all torch functions called
    seen: Annotated[list[Seen], _few] = []  # the values that probes saw, in order
    # The `ModelData` among the arguments, as they are after the call.
    models: Annotated[list[ModelState], msgspec.Meta(max_length=MAX_MODELS)] = []


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """A call raised an exception. The text may be the student's own, and is cut to a limit."""

    kind: Name
    text: Text
    place: Place | None = None
    ordinary: bool = True  # whether a right answer may raise it for a wrong argument
    by_torch: bool = False  # whether an operation of torch failed, not a `raise` of the student's
    uses: Annotated[list[Use], _few] = []
    # Shapes of the tensors in the failing expression, by name; shown only together with the text.
    operands: Annotated[dict[Name, Annotated[tuple[int, ...], _few]], _few] = {}
    caller: Place | None = None  # the line that called the function in which `place` is


class ParameterInfo(msgspec.Struct, frozen=True):
    """A parameter or buffer of a module."""

    path: Text
    shape: Annotated[tuple[int, ...], _few]
    dtype: Name
    owner: Name  # the torch class of the module that owns it, such as "Linear"; else ""
    value: TensorData | None = None
    learned: bool = True  # whether it requires a gradient


class Structure(msgspec.Struct, frozen=True, tag="structure"):
    """A module's parts, read from the attributes of `torch.nn.Module`."""

    parameters: Annotated[list[ParameterInfo], _few]
    buffers: Annotated[list[ParameterInfo], _few]
    modules: Annotated[list[Text], _few]
    training: bool
    uses: Annotated[list[Use], _few] = []


class Gradients(msgspec.Struct, frozen=True, tag="gradients"):
    """Gradients of the tensors in the arguments, in order, and of the parameters, by path.

    None means that there is no gradient.
    """

    inputs: Annotated[list[Value], _few]
    parameters: Annotated[dict[Text, TensorData | None], _few]
    uses: Annotated[list[Use], _few] = []


class Located(msgspec.Struct, frozen=True, tag="located"):
    """The sites of an answer, in the order of its text."""

    sites: Annotated[list[Site], _few]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The call succeeded and has no result."""


Outcome = Returned | Raised | Structure | Gradients | Located | Done


class Argument(msgspec.Struct, frozen=True):
    """A parameter of a student's function."""

    name: Name
    kind: Literal["positional", "star", "keyword", "double_star"]
    optional: bool


FoundStatus = Literal["found", "stub", "missing", "broken"]


class Found(msgspec.Struct, frozen=True):
    """A submission's definition of an exercise, or the reason why there is none."""

    name: Name
    status: FoundStatus
    kind: Literal["function", "class", "other"] = "other"
    place: Place | None = None
    arguments: Annotated[list[Argument], _few] | None = None  # None if the text does not show them
    forward: Annotated[list[Argument], _few] | None = None  # arguments of a module's ``forward``
    message: Text = ""
    notes: Annotated[list[Text], _few] = []
    evasions: Annotated[list[Use], _few] = []
    discarded: Annotated[list[Use], _few] = []
    # Other exercises that the definition uses, directly or indirectly, each with its status.
    bases: Annotated[dict[Name, FoundStatus], _few] = {}


class Listing(msgspec.Struct, frozen=True, tag="listing"):
    """The reply to `Open`."""

    found: Annotated[list[Found], _few]


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """The reply to `Run`: an outcome for each call, up to the first that raised."""

    outcomes: Annotated[list[Outcome], _few]
    printed: Text = ""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The kit's code in the student's process failed; the student is not at fault."""

    why: Text


Reply = Listing | Outcomes | Refused

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """Encode a message as bytes, without a frame."""
    return _encoder.encode(message)


def encode_input(value: Input) -> bytes:
    """Encode an argument; equal bytes mean equal values, also for NaN."""
    return _encoder.encode(value)


def decode_request(data: bytes) -> Request:
    """Decode a request, which comes from the trusted side."""
    return cast(Request, _requests.decode(data))


def decode_reply(data: bytes) -> Reply:
    """Decode a reply from a student's process; raise `WireError` for any other bytes."""
    try:
        reply = cast(Reply, _replies.decode(data))
        _refuse_many_and_deep(reply)
        return reply
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"the reply does not have the declared form: {error}"[:MAX_TEXT]) from None


def _refuse_many_and_deep(reply: Reply) -> None:
    """Raise `WireError` if a reply has too many values, or values that are nested too deeply.

    A value that takes one byte in a message becomes a whole object in this process, and each level
    of nesting costs a recursive call.
    """
    left = 2 * MAX_ITEMS
    layer: list[Value] = []
    for outcome in reply.outcomes if isinstance(reply, Outcomes) else ():
        if isinstance(outcome, Returned):
            layer += [outcome.value, *(seen.value for seen in outcome.seen)]
        elif isinstance(outcome, Gradients):
            layer += outcome.inputs
    for _ in range(MAX_DEPTH + 2):
        left -= len(layer)
        if left < 0:
            raise WireError("the reply has too many values")
        inside: list[Value] = []
        for value in layer:
            if isinstance(value, Items):
                inside += value.items
            elif isinstance(value, Entries):
                inside += [part for pair in value.entries for part in pair]
        layer = inside
    if layer:
        raise WireError("the reply is nested too deeply")
