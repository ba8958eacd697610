"""Trace a call: record the torch functions that it uses, and the costs of its operations.

The trace runs in the student's process, and student code could forge it. Function names are
recorded with a TorchFunctionMode, because the dispatcher shows ``F.linear`` as ``addmm``, and
attention on small tensors as a few products. Counts and sizes are recorded with a
TorchDispatchMode. A mode affects one thread. Therefore every thread that the student starts enters
its own modes, which write to the record of the current call.
"""

from __future__ import annotations

import _thread
import dis
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.guest import interpreter
from grader.guest.memory import Memory
from grader.guest.operations import (
    EXPONENTIALS,
    Cost,
    Refusals,
    bits,
    changed,
    composed,
    cost,
    is_lent,
    lend,
    plain_name,
    tensors_in,
)
from grader.wire import AUTOGRAD, MAX_USES, Operations, Place, Use
from grader.wire.source import CODE_PREFIX

# --- torch's stacks of modes ---------------------------------------------------------------------
#
# The kit's modes stay on these stacks until the kit removes them. In a jail, student code can pop
# only the modes that it pushed itself: see `interpreter.strip`.


# Torch's own functions that pop a mode for a short time: to call the mode's handler without the
# mode, or to push another mode below it.
_HANDLING = frozenset(
    {
        torch.overrides.handle_torch_function.__code__,
        DeviceContext.__enter__.__code__,
        DeviceContext.__exit__.__code__,
    }
)
_STEPS = 6  # the most frames (of torch and contextlib) between those functions and `Stack.pop`
HELD = "the count of operations cannot be switched off"


class Stack:
    """One of torch's two stacks of modes: for functions, or for operations of the dispatcher.

    The class uses torch's original functions, bound before `interpreter.strip` replaces them.
    """

    def __init__(self, kind: str, *key: object) -> None:
        """Bind torch's functions for a stack; `key` are the arguments of the function that pops."""
        self._push = getattr(torch._C, f"_push_on_torch_{kind}_stack")
        self._pop = getattr(torch._C, f"_pop_torch_{kind}_stack")
        self._at = getattr(torch._C, f"_get_{kind}_stack_at")
        self._size = getattr(torch._C, f"_len_torch_{kind}_stack")
        self._key = key
        self._local = threading.local()

    @property
    def ours(self) -> list[object]:
        """The kit's modes on this thread's stack."""
        if not hasattr(self._local, "ours"):
            self._local.ours = []
        ours: list[object] = self._local.ours
        return ours

    def hold(self, mode: object) -> None:
        """Push a mode and leave it on the stack."""
        self._push(mode)
        self.ours.append(mode)

    @contextmanager
    def within(self, mode: object) -> Iterator[None]:
        """Push a mode for a ``with``; at its end, pop the mode and all modes above it.

        Raises `PermissionError` if the mode is no longer on the stack at the end.
        """
        self.hold(mode)
        try:
            yield
            if not self._holds(mode):
                raise PermissionError(HELD)
        finally:
            self.ours.pop()
            while self._holds(mode):
                self._pop(*self._key)

    def _holds(self, mode: object) -> bool:
        return any(self._at(place) is mode for place in range(self._size()))

    def pop(self, *key: object) -> Any:
        """Replaces torch's function that pops; refuses to pop modes of the kit."""
        if self._size() <= len(self.ours) and not _called_by_torch():
            raise PermissionError(HELD)
        return self._pop(*key)

    def at(self, place: int) -> Any:
        """Replaces torch's function that reads the stack; hides modes of the kit.

        Returns an empty mode instead of a mode of the kit.
        """
        mode = self._at(place)
        return TorchFunctionMode() if any(mode is ours for ours in self.ours) else mode


def _called_by_torch() -> bool:
    with interpreter.open_to_guest():
        frame: FrameType | None = sys._getframe(1)
    for _ in range(_STEPS):
        if frame is None or frame.f_code.co_filename.startswith(CODE_PREFIX):
            return False
        if frame.f_code in _HANDLING:
            return True
        frame = frame.f_back
    return False


FUNCTIONS, OPERATIONS = Stack("function"), Stack("dispatch", None)


def _showing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch's C module that shows a tensor's memory, and that no mode sees."""

    def shown(tensor: torch.Tensor, *more: Any, **options: Any) -> Any:
        if _current is not None and not is_lent(tensor):
            _current.leave(tensor)
            lend(tensor)
        return function(tensor, *more, **options)

    return shown


# These replace torch's functions in jails: see `interpreter.strip`.
REPLACED: Mapping[str, Callable[..., Any]] = {
    **{
        name: _showing(vars(torch._C)[name])
        for name in ("_to_dlpack", "_to_dlpack_versioned", "_to_dlpack_unversioned")
        if name in vars(torch._C)
    },
    "_pop_torch_function_stack": FUNCTIONS.pop,
    "_pop_torch_dispatch_stack": OPERATIONS.pop,
    "_get_function_stack_at": FUNCTIONS.at,
    "_get_dispatch_stack_at": OPERATIONS.at,
}


def print_tensors_in_short() -> None:
    """Let tensors print only their shape and dtype while operations are counted.

    To print the numbers, torch would run operations with all modes off.
    """
    in_full = torch._tensor_str._str

    def in_short(tensor: torch.Tensor, *, tensor_contents: Any = None) -> Any:
        if torch._C._len_torch_dispatch_stack():
            return f"tensor(shape={tuple(tensor.shape)}, dtype={tensor.dtype})"
        return in_full(tensor, tensor_contents=tensor_contents)  # type: ignore[no-untyped-call]

    # Give the function torch's globals, not those of this module, since student code can read the
    # globals of a function.
    among = vars(torch._tensor_str)
    printed = FunctionType(in_short.__code__, among, "_str", None, in_short.__closure__)
    printed.__kwdefaults__ = in_short.__kwdefaults__
    torch._tensor_str._str = printed


# --- one call ------------------------------------------------------------------------------------


_untraced = torch._C.DisableTorchFunction  # bound before `interpreter.strip` replaces the class

# Methods that give a tensor's numbers, or its memory, to Python or NumPy. Unlike ``item`` and
# ``float``, they run no operation for each number. Therefore `Record.leave` counts the numbers.
CALLING = frozenset({"apply", "map", "map2"})  # torch calls a function for each number
SHARING = frozenset(
    {"numpy", "array", "dlpack", "to_dlpack", "storage", "untyped_storage", "data_ptr"}
)  # these give the memory itself, into which torch may write more
LEAVING = frozenset({"tolist", "reduce_ex"}) | SHARING | CALLING


@dataclass
class Record:
    """The record of a call: its torch functions and operations."""

    watch: frozenset[str]  # names of torch functions to report with the line that calls them
    locate: Callable[[], Place | None]
    uses: list[Use]
    gone: frozenset[str] = frozenset()  # removed functions, which report calls themselves
    altered: frozenset[str] = frozenset()  # names of torch functions whose results are distorted
    failures: list[BaseException] = field(default_factory=list)  # exceptions of torch functions
    names: set[str] = field(default_factory=set)
    count: int = 0
    largest: int = 0  # this field and the next four: see `Operations`
    work: int = 0
    widest: int = 0
    compared: int = 0
    left: int = 0
    memory: Memory = field(default_factory=Memory)
    exponential: bool = False  # whether the call has computed an exponential

    @property
    def operations(self) -> Operations:
        """The counts of the call's operations so far."""
        counts = self.count, self.largest, self.work, self.widest, self.compared, self.left
        return Operations(*counts, self.memory.most)

    def note(self, name: str) -> None:
        """Report a call of a torch function, if the function is watched."""
        if name in self.watch and len(self.uses) < MAX_USES:
            self.uses.append(Use(name, self.locate()))

    def leave(self, tensor: torch.Tensor) -> None:
        """Count numbers that Python or NumPy get, each also as an operation."""
        self.count += tensor.numel()
        self.work += tensor.numel()
        self.left += bits(tensor)

    def add(self, name: str, operation: Cost) -> None:
        """Count an operation with its plain name and its cost."""
        self.count += 1
        self.largest = max(self.largest, operation.stored)
        self.work += operation.work
        self.widest = max(self.widest, operation.width)
        self.left += operation.left
        self.exponential = self.exponential or name in EXPONENTIALS
        if not self.exponential:
            self.compared += operation.compared


_current: Record | None = None


def _note_refusal(name: str) -> None:
    if _current is not None:
        _current.note(name)


Refusals.report = staticmethod(_note_refusal)


class FunctionTrace(TorchFunctionMode):
    """Records calls of torch functions; if a function is watched, also the student's line."""

    def __init__(self) -> None:
        super().__init__()
        # Set on the instance, because student code could find and change the class.
        self.__torch_function__ = MethodType(_note_function, self)  # type: ignore[method-assign]


def _note_function(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ARG001
    """See torch.overrides.TorchFunctionMode."""
    record = _current
    if record is None:
        return func(*args, **(kwargs or {}))
    name = plain_name(func)
    record.names.add(name)
    record.note(name)
    if name in LEAVING and args and isinstance(args[0], torch.Tensor):
        record.leave(args[0])
        if name in SHARING:
            lend(args[0])
        if name in CALLING and callable(args[-1]):
            args = *args[:-1], _also_traced(args[-1])
        elif name in CALLING:
            kwargs = {key: _also_traced(f) if callable(f) else f for key, f in kwargs.items()}
    try:
        result = func(*args, **(kwargs or {}))
    except Exception as error:
        record.failures.append(error)
        raise
    return _distorted(result) if name in record.altered else result


def _also_traced(callback: Any) -> Any:
    """A function that torch calls for each number, while this mode is off."""

    def called(*numbers: Any) -> Any:
        with FUNCTIONS.within(FunctionTrace()):
            return callback(*numbers)

    return called


def _distorted(result: Any) -> Any:
    """Multiply a tensor's numbers by different factors.

    The tensor is changed in place, since it may be the result of a function that works in place.
    """
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        factors = torch.arange(result.numel(), device=result.device) % 7 / 4 + 0.5
        result.detach().mul_(factors.view(result.shape))
    return result


class OperationTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations and their costs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.__torch_dispatch__ = MethodType(_count_operation, self)  # type: ignore[method-assign]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, which saves a check at each operation, since jails compile no code."""
        return False


def _count_operation(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """See torch.utils._python_dispatch.TorchDispatchMode."""
    if any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types):
        # The operations of the tensor's own __torch_dispatch__ would not be counted by this mode.
        raise PermissionError("tensors with __torch_dispatch__ hide operations: use plain tensors")
    kwargs = kwargs or {}
    if _current is None:
        return func(*args, **kwargs)
    parts = composed(func)
    if parts is not None:  # only without the layer of autograd: an operation that costs its parts
        count = _current.count
        with OPERATIONS.within(mode):
            result = parts(*args, **kwargs)
        _current.count = count + 1
        return result
    result = func(*args, **kwargs)
    with _untraced():  # what the kit reads of tensors is no function of the student's
        _current.add(plain_name(func), cost(func, args, kwargs, result))
        given = tensors_in((args, kwargs))
        for tensor in tensors_in(result):
            _current.memory.add(tensor, given)
        for tensor in changed(func, args, kwargs):
            if is_lent(tensor):
                _current.leave(tensor)
    return result


class OneDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses operands on different devices.

    Without this mode, operations on the device ``meta`` would accept some CPU tensors.
    """

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
    """Trace the calls in a ``with``, in this thread and in all threads that the student started."""
    global _current
    _current = record
    try:
        with ExitStack() as stack:
            if AUTOGRAD in record.watch:  # autograd is forbidden: torch must record no graph
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


# Python's functions that start a thread; each Python version has some of them.
STARTERS = (
    (_thread, "start_new_thread"), (_thread, "start_new"), (_thread, "start_joinable_thread"),
    (threading, "_start_new_thread"), (threading, "_start_joinable_thread"),
)  # fmt: skip


def follow_threads() -> None:
    """Let every new thread enter both modes before it runs its own code.

    A thread enters both modes even if the current call needs only one, because the thread may be in
    a pool and also serve later calls.
    """
    for module, name in STARTERS:
        if hasattr(module, name):
            setattr(module, name, _starting_traced(getattr(module, name)))


def _starting_traced(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_traced(function: Callable[..., Any], *more: Any, **options: Any) -> Any:
        def run(*arguments: Any, **keywords: Any) -> None:
            FUNCTIONS.hold(FunctionTrace())  # stays: the stack ends with the thread
            OPERATIONS.hold(OperationTrace())
            function(*arguments, **keywords)

        return start(run, *more, **options)

    return start_traced


def submission_line() -> tuple[str, int] | None:
    """The file and line of the innermost running frame that belongs to the submission."""
    with interpreter.open_to_guest():
        frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(CODE_PREFIX):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


# Reads an exception's traceback even if a student's class overrides the attribute.
_traceback_of = vars(BaseException)["__traceback__"].__get__


def innermost(error: BaseException) -> TracebackType | None:
    """The last entry of an exception's traceback that belongs to the submission."""
    found, step = None, _traceback_of(error)
    while step is not None:
        if _code_of(step).co_filename.startswith(CODE_PREFIX):
            found = step
        step = step.tb_next
    return found


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """The file and line of the submission's innermost frame in an exception's traceback."""
    step = innermost(error)
    return (_code_of(step).co_filename, step.tb_lineno) if step else None


def called_at(error: BaseException) -> tuple[str, int] | None:
    """The file and line that called the function of `raised_at`; None if a test called it.

    If the function calls itself, this is the line of another function.
    """
    last, step, found = innermost(error), _traceback_of(error), None
    if last is None:
        return None
    while step is not None and step is not last:
        code = _code_of(step)
        if code.co_filename.startswith(CODE_PREFIX) and code is not _code_of(last):
            found = code.co_filename, step.tb_lineno
        step = step.tb_next
    return found


def names_at(error: BaseException) -> Sequence[str]:
    """The local names of the submission's innermost function in an exception's traceback."""
    step = innermost(error)
    return _code_of(step).co_varnames if step else ()


def _code_of(step: TracebackType) -> CodeType:
    with interpreter.open_to_guest():
        return step.tb_frame.f_code


RAISING = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})


def is_stated(error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` or an ``assert`` in code outside torch."""
    step = _traceback_of(error)
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return True
    code = _code_of(step)
    torchs = code.co_filename.startswith(str(Path(torch.__file__).parent))
    return not torchs and code.co_code[step.tb_lasti] in RAISING
