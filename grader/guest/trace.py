"""What a call does: which torch functions it uses, and how much work the dispatcher sees.

Runs in the student's process, so a trace is evidence and not proof. Function names come from a
TorchFunctionMode, because the dispatcher shows ``F.linear`` as ``addmm`` and small attention as a
few products; counts and sizes come from a TorchDispatchMode. Modes belong to a thread: every
thread that the student starts enters its own, and writes into the record of the running call.
"""

from __future__ import annotations

import _thread
import dis
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType, MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.guest import interpreter
from grader.guest.forbidding import Refusals, plain_name
from grader.guest.modes import FUNCTIONS, OPERATIONS
from grader.wire import AUTOGRAD, Operations, Place, Use

MAX_USES = 20


@dataclass
class Record:
    """What one call did."""

    watch: frozenset[str]  # names of torch functions to report with the line that calls them
    locate: Callable[[], Place | None]
    uses: list[Use]
    gone: frozenset[str] = frozenset()  # what refuses by itself, and tells: no mode is needed
    altered: frozenset[str] = frozenset()  # torch functions that give something else
    failures: list[BaseException] = field(default_factory=list)  # what torch functions raised
    names: set[str] = field(default_factory=set)
    count: int = 0
    largest: int = 0  # see `Operations` for this and the next two
    work: int = 0
    widest: int = 0

    @property
    def operations(self) -> Operations:
        """The counts so far."""
        return Operations(self.count, self.largest, self.work, self.widest)

    def note(self, name: str) -> None:
        """Report a function if it is watched."""
        if name in self.watch and len(self.uses) < MAX_USES:
            self.uses.append(Use(name, self.locate()))

    def add(self, operation: Cost) -> None:
        """Count one operation more."""
        self.count += 1
        self.largest = max(self.largest, operation.stored)
        self.work += operation.work
        self.widest = max(self.widest, operation.width)


_current: Record | None = None


def _refused(name: str) -> None:
    if _current is not None:
        _current.note(name)


Refusals.tell = staticmethod(_refused)


class FunctionTrace(TorchFunctionMode):
    """Notes the torch functions called, and those that are watched with the student's line."""

    def __init__(self) -> None:
        super().__init__()
        # Of this one mode, not of the class: student code finds and changes classes.
        self.__torch_function__ = MethodType(_note_function, self)  # type: ignore[method-assign]


def _note_function(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ARG001
    """See torch.overrides.TorchFunctionMode."""
    record = _current
    if record is None:
        return func(*args, **(kwargs or {}))
    name = plain_name(func)
    record.names.add(name)
    record.note(name)
    try:
        result = func(*args, **(kwargs or {}))
    except Exception as error:
        record.failures.append(error)
        raise
    return _other_than(result) if name in record.altered else result


def _other_than(result: Any) -> Any:
    """A tensor's numbers, each multiplied by another factor: in place, as some functions work."""
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        factors = torch.arange(result.numel(), device=result.device) % 7 / 4 + 0.5
        result.detach().mul_(factors.view(result.shape))
    return result


class OperationTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, and what they cost."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.__torch_dispatch__ = MethodType(_count_operation, self)  # type: ignore[method-assign]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in a jail: torch need not see to it at each operation."""
        return False


def _count_operation(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """See torch.utils._python_dispatch.TorchDispatchMode."""
    if any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types):
        # Its code would run below this mode, where nothing is counted.
        raise PermissionError("a tensor with __torch_dispatch__ hides operations: do without")
    kwargs = kwargs or {}
    result = func(*args, **kwargs)
    if _current is not None:
        _current.add(cost(func, args, kwargs, result))
    return result


class OneDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what a real device would refuse: the meta device takes some operands of the CPU's."""

    MOVES = frozenset(
        {"_to_copy", "copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_",
         "lift_fresh"}
    )  # fmt: skip

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See torch.utils._python_dispatch.TorchDispatchMode."""
        name = func.overloadpacket.__name__
        operands = (part for part in tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor))
        devices = {operand.device.type for operand in operands if operand.dim() > 0}
        if len(devices) > 1 and name not in self.MOVES:
            here = " and ".join(sorted(devices))
            raise RuntimeError(f"{name} got tensors on different devices: {here}")
        return func(*args, **(kwargs or {}))


@contextmanager
def traced(record: Record, observe: bool, one_device: bool = False) -> Iterator[None]:
    """Trace what happens inside, in this thread and in all that the student has started."""
    global _current
    _current = record
    try:
        with ExitStack() as stack:
            if AUTOGRAD in record.watch:  # forbidden: nothing is recorded
                stack.enter_context(torch.inference_mode())
            if record.watch - record.gone or observe or one_device:
                stack.enter_context(FUNCTIONS.within(FunctionTrace()))
            if observe:
                stack.enter_context(OPERATIONS.within(OperationTrace()))
            if one_device:
                stack.enter_context(OPERATIONS.within(OneDevice()))  # type: ignore[no-untyped-call]
            yield
    finally:
        _current = None


# What starts a thread, in Python's C module and as `threading` calls it; not every Python has all.
STARTERS = (
    (_thread, "start_new_thread"), (_thread, "start_new"), (_thread, "start_joinable_thread"),
    (threading, "_start_new_thread"), (threading, "_start_joinable_thread"),
)  # fmt: skip


def follow_threads() -> None:
    """Let every thread that is started from now on enter the modes, before any code of its own.

    A pool's thread outlives the call that started it, so it enters both, whatever this call asks.
    """
    for module, name in STARTERS:
        if hasattr(module, name):
            setattr(module, name, _starting_traced(getattr(module, name)))


def _starting_traced(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_traced(function: Callable[..., Any], *more: Any, **options: Any) -> Any:
        def run(*arguments: Any, **keywords: Any) -> None:
            FUNCTIONS.hold(FunctionTrace())  # the stacks are the thread's own, and end with it
            OPERATIONS.hold(OperationTrace())
            function(*arguments, **keywords)

        return start(run, *more, **options)

    return start_traced


def submission_line(prefix: str) -> tuple[str, int] | None:
    """File and line of the innermost running frame that belongs to the submission."""
    with interpreter.open_to_guest():
        frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(prefix):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


# Not what a class of the student's calls so.
_traceback_of = vars(BaseException)["__traceback__"].__get__


def raised_at(error: BaseException, prefix: str) -> tuple[str, int] | None:
    """File and line of the submission that an exception came through last."""
    found, step = None, _traceback_of(error)
    while step is not None:
        with interpreter.open_to_guest():
            name = step.tb_frame.f_code.co_filename
        if name.startswith(prefix):
            found = name, step.tb_lineno
        step = step.tb_next
    return found


RAISING = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})


def is_stated(error: BaseException) -> bool:
    """Whether a ``raise`` or ``assert`` raised it: none of torch's, nor a function written in C."""
    step = _traceback_of(error)
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return True
    with interpreter.open_to_guest():
        code = step.tb_frame.f_code
    torchs = code.co_filename.startswith(str(Path(torch.__file__).parent))
    return not torchs and code.co_code[step.tb_lasti] in RAISING


# --- costs ---------------------------------------------------------------------------------------
#
# What one of torch's operations costs: what it stores, what it computes, what it runs over.
#
# Counted from shapes, so that the same answer costs the same on every machine. A view costs
# nothing and stores what it looks at; an element written counts one, and so does a multiply-add.


# Products, and which argument's last axis they sum over.
PRODUCTS = {
    "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0,
    "matmul": 0,  # whole only where autograd is off, else one of the above
    "addmm": 1, "addbmm": 1, "baddbmm": 1, "addmv": 1,
}  # fmt: skip
# What makes one number of many: each element of the result runs over its share of the input.
REDUCTIONS = frozenset(
    {
        "sum", "nansum", "mean", "nanmean", "prod", "amax", "amin", "aminmax", "max", "min",
        "logsumexp", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "argmax",
        "argmin", "any", "all", "count_nonzero", "median", "nanmedian",
    }
)  # fmt: skip
# What keeps an axis and runs along all of it.
SCANS = frozenset(
    {
        "softmax", "log_softmax", "safe_softmax", "cumsum", "cumprod", "cummax", "cummin",
        "logcumsumexp", "sort", "argsort", "msort", "topk", "kthvalue", "mode",
    }
)  # fmt: skip

EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


class Cost(NamedTuple):
    """The cost of one operation, in elements."""

    stored: int = 0  # of its largest result
    work: int = 0  # multiply-adds of a product; elements read by a reduction; else elements written
    width: int = 0  # how many elements one number of the result is made of


def cost(operation: Any, args: Any, kwargs: Any, result: Any) -> Cost:
    """What a call of an operation of the dispatcher cost."""
    results = [part for part in _parts(result) if isinstance(part, Tensor)]
    if not results:
        return Cost()
    stored = max(map(_stored, results))
    name = plain_name(operation)
    if _is_view(operation) or name in EMPTY:
        return Cost(stored)
    written = results[0].numel()
    if name in PRODUCTS and isinstance(factor := args[PRODUCTS[name]], Tensor):
        width = factor.shape[-1] * (factor.shape[0] if name == "addbmm" else 1)
        return Cost(stored, written * width, width)
    source = args[0] if args else None
    if name in REDUCTIONS and isinstance(source, Tensor):
        return Cost(stored, source.numel(), source.numel() // max(written, 1))
    if name in SCANS and isinstance(source, Tensor) and source.dim():
        axis = _axis(operation, args, kwargs)
        return Cost(stored, source.numel(), source.shape[axis])
    return Cost(stored, written)


def _parts(result: Any) -> Any:
    return result if isinstance(result, (tuple, list)) else (result,)


def _stored(tensor: Tensor) -> int:
    """Elements that a tensor really holds: one that is expanded repeats the same ones."""
    if tensor.layout != torch.strided:
        return tensor.numel()
    held = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    return min(tensor.numel(), held)


@cache
def _is_view(operation: Any) -> bool:
    """Whether an operation only looks at its input in another way."""
    aliases = [returned.alias_info for returned in operation._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _axis(operation: Any, args: Any, kwargs: Any) -> int:
    names = [argument.name for argument in operation._schema.arguments]
    if "dim" in kwargs:
        return int(kwargs["dim"])
    place = names.index("dim") if "dim" in names else len(args)
    return int(args[place]) if place < len(args) else -1
