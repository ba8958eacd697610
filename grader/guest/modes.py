"""Torch's stacks of modes, on which the kit's own stay until the kit takes them away.

A mode sees each function, or each operation, of the code that runs below it. In a jail student code
pops the modes that it pushed itself, and no more: see `interpreter.strip`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from grader.guest import interpreter
from grader.wire.source import CODE_PREFIX

# Torch's own functions that pop a mode for a moment: to call its handler with the mode off, and to
# put another one below it.
_HANDLING = frozenset(
    {
        torch.overrides.handle_torch_function.__code__,
        DeviceContext.__enter__.__code__,
        DeviceContext.__exit__.__code__,
    }
)
_STEPS = 6  # from there to `Stack.pop`: two functions of torch's, and contextlib's
HELD = "operations are counted here, and that cannot be switched off"


class Stack:
    """One of torch's two stacks: of modes that see functions, or of those that see operations.

    Torch's own functions for it are bound here, before `interpreter.strip` replaces them.
    """

    def __init__(self, kind: str, *key: object) -> None:
        """`key` is what torch's function that pops wants to be given."""
        self._push = getattr(torch._C, f"_push_on_torch_{kind}_stack")
        self._pop = getattr(torch._C, f"_pop_torch_{kind}_stack")
        self._at = getattr(torch._C, f"_get_{kind}_stack_at")
        self._size = getattr(torch._C, f"_len_torch_{kind}_stack")
        self._key = key
        self._local = threading.local()

    @property
    def ours(self) -> list[object]:
        """The kit's modes that are on this thread's stack."""
        if not hasattr(self._local, "ours"):
            self._local.ours = []
        ours: list[object] = self._local.ours
        return ours

    def hold(self, mode: object) -> None:
        """Push a mode for good."""
        self._push(mode)
        self.ours.append(mode)

    @contextmanager
    def within(self, mode: object) -> Iterator[None]:
        """Push a mode, and take it away again, whatever was left on top of it.

        Raises `PermissionError` if it was taken away meanwhile.
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
        """What torch's own does, for modes that student code pushed."""
        if self._size() <= len(self.ours) and not _asked_by_torch():
            raise PermissionError(HELD)
        return self._pop(*key)

    def at(self, place: int) -> Any:
        """The mode at a place; of ours, one that does nothing in its stead."""
        mode = self._at(place)
        return TorchFunctionMode() if any(mode is one for one in self.ours) else mode


def _asked_by_torch() -> bool:
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
# In place of torch's own, in jails: see `interpreter.strip`.
REPLACED: Mapping[str, Callable[..., Any]] = {
    "_pop_torch_function_stack": FUNCTIONS.pop,
    "_pop_torch_dispatch_stack": OPERATIONS.pop,
    "_get_function_stack_at": FUNCTIONS.at,
    "_get_dispatch_stack_at": OPERATIONS.at,
}


def print_tensors_in_short() -> None:
    """Let a tensor that is printed while operations are counted show no more than its shape.

    Torch prints its numbers by operations, for which it would switch the count off.
    """
    in_full = torch._tensor_str._str

    def in_short(tensor: torch.Tensor, *, tensor_contents: Any = None) -> Any:
        if torch._C._len_torch_dispatch_stack():
            return f"tensor(shape={tuple(tensor.shape)}, dtype={tensor.dtype})"
        return in_full(tensor, tensor_contents=tensor_contents)  # type: ignore[no-untyped-call]

    # Among torch's names and not ours: student code reads what a function can see.
    among = vars(torch._tensor_str)
    printed = FunctionType(in_short.__code__, among, "_str", None, in_short.__closure__)
    printed.__kwdefaults__ = in_short.__kwdefaults__
    torch._tensor_str._str = printed
