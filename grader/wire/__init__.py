"""The wire between the trusted process and a student's process: its messages.

A frame is an eight-byte little-endian length and, as a rule, one msgpack message, which is decoded
into the types below or refused. Nothing is ever unpickled, and nothing in a message names a file, a
module or a piece of code on the receiving side. `payload` turns tensors into these types and back;
this module is light, so that what only starts a process or reads files need not load torch.

Both sides of the wall import this folder, and it imports nothing else of the kit. It is the first
of the three folders of the trust boundary; `guest` and `sandbox` come next. In this order:

1. This module: all that may be asked and answered, and what is refused while it is decoded.
2. `frames`: how bytes travel; what the processes themselves are told, and tell.
3. `payload`: tensors, to and fro.
4. `models`: modules of the kit's own that a test hands to student code.
5. `source`, `definitions`: a submission's text, parsed, beside the student's code; the trusted side
   parses only our own files with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal, cast

import msgspec

# The dispatcher's layer that records what backward needs, and carries forward derivatives.
AUTOGRAD = "Autograd"

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


class TableModelData(msgspec.Struct, frozen=True, tag="table_model"):
    """The weights of a `models.TableModel`, which both sides know; no reply may hold one."""

    table: TensorData
    steps: TensorData


Input = Value | TableModelData  # what a call may pass


def clean(text: str) -> str:
    """Text that can be encoded: half a surrogate pair, which Python allows, becomes a ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
    others: tuple[Wanted, ...] = ()  # not listed: looked for when something calls or borrows them


class Seed(msgspec.Struct, frozen=True, tag="seed"):
    """Forget all handles and seed torch, numpy and random: a test begins."""

    seed: int


TRIAL = 0  # no handle


class Invoke(msgspec.Struct, frozen=True, tag="invoke"):
    """Call a definition (``target`` is its name) or a module made before (its handle).

    A `TRIAL` leaves no trace: nothing of it is kept, it draws no random numbers of its own, and
    nobody is shown it. So adoption tries weights.
    """

    target: str | int
    arguments: list[Input]
    keywords: list[str]  # the student's names for them; empty: by position
    result: int  # the handle under which a graph or a module is kept; or `TRIAL`
    construct: bool = False
    keep_graph: bool = False
    watch: tuple[str, ...] = ()  # report calls of torch functions with these names
    observe: bool = False  # also report operations
    altered: tuple[str, ...] = ()  # these torch functions give something else than they should


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


KERNEL = "the kernel"  # of a `SourceText`: the cells that ran in a notebook's kernel, in that order


class Place(msgspec.Struct, frozen=True):
    """A line of the submission, counted from the top of its file or of its cell."""

    file: Name
    line: int
    text: Name = ""
    cell: int = 0  # of a notebook, counted from 1; 0: the file has none

    @property
    def within(self) -> str:
        """``hw.ipynb cell 3``, ``cell [3]`` or ``softmax.py``: in what its lines are counted."""
        if self.file == KERNEL:
            return f"cell [{self.cell}]"
        return f"{self.file} cell {self.cell}" if self.cell else self.file


def lines_around(place: Place, sources: Iterable[SourceText]) -> list[str]:
    """All lines of the file or the cell in which a place is; none if it is in none of these."""
    for source in sources:
        if source.name == place.file:
            cells = (c for n, c in enumerate(source.cells, start=1) if place.cell in (0, n))
            lines = [line for cell in cells for line in re.sub(r"\r\n?", "\n", cell).split("\n")]
            return lines if 0 < place.line <= len(lines) else []
    return []


class Use(msgspec.Struct, frozen=True):
    """A watched torch function was called from a line of the submission."""

    function: Name
    place: Place | None = None


class Operations(msgspec.Struct, frozen=True):
    """What the dispatcher saw of a call; see `grader.guest.trace`."""

    count: int  # of operations
    largest: int  # elements that its largest tensor stores
    work: int  # multiply-adds of products, and elements that other operations write or reduce
    widest: int  # the most elements that one sum, product, maximum, softmax or the like runs over
    compared: int = 0  # elements that maxima and comparisons ran over before the first exponential


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
    by_torch: bool = False  # an operation of torch's failed; no statement of the student's raised
    uses: Annotated[list[Use], _few] = []
    # Shapes of what the failing expression names; told to whom the text is told.
    operands: Annotated[dict[Name, Annotated[tuple[int, ...], _few]], _few] = {}


class ParameterInfo(msgspec.Struct, frozen=True):
    """A parameter or buffer of a module."""

    path: Text
    shape: Annotated[tuple[int, ...], _few]
    dtype: Name
    owner: Name  # the class of the module that holds it, "Linear" for torch's own
    value: TensorData | None = None
    learned: bool = True  # a parameter may be kept without being trained


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


FoundStatus = Literal["found", "stub", "missing", "broken"]


class Found(msgspec.Struct, frozen=True):
    """What a submission holds under an exercise's name."""

    name: Name
    status: FoundStatus
    kind: Literal["function", "class", "other"] = "other"
    place: Place | None = None
    arguments: Annotated[list[Argument], _few] | None = (
        None  # None: not to be read from the text alone
    )
    forward: Annotated[list[Argument], _few] | None = None
    message: Text = ""
    notes: Annotated[list[Text], _few] = []
    evasions: Annotated[list[Use], _few] = []
    thrown_away: Annotated[list[Use], _few] = []
    # Other exercises that it uses, itself or by way of what it uses, and what stands there.
    bases: Annotated[dict[Name, FoundStatus], _few] = {}


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
        _refuse_many_and_deep(reply)
        return reply
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"a reply that is not of the declared form: {error}"[:MAX_TEXT]) from None


def _refuse_many_and_deep(reply: Reply) -> None:
    """Raise `WireError` for values by the million: each costs bytes there, and an object here.

    And for a nest in a nest in a nest, which costs one of Python's calls each, wherever it is read.
    """
    left = 2 * MAX_ITEMS
    layer: list[Value] = []
    for outcome in reply.outcomes if isinstance(reply, Outcomes) else ():
        if isinstance(outcome, Returned):
            layer.append(outcome.value)
        elif isinstance(outcome, Gradients):
            layer += outcome.inputs
    for _ in range(MAX_DEPTH + 2):
        left -= len(layer)
        if left < 0:
            raise WireError("a reply of too many values")
        inside: list[Value] = []
        for value in layer:
            if isinstance(value, Items):
                inside += value.items
            elif isinstance(value, Entries):
                inside += value.entries.values()
        layer = inside
    if layer:
        raise WireError("a reply nested too deep")
