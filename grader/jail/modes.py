"""Torch's stacks of modes, on which the kit's own stay until the kit takes them away.

A mode sees each function, or each operation, of the code that runs below it. In a jail student code
pops the modes that it pushed itself, and no more: see `interpreter.strip`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from grader.jail import interpreter
from grader.jail.source import CODE_PREFIX

# Calls a mode's handler for functions of torch's that are written in Python, with the mode off.
_HANDLING = torch.overrides.handle_torch_function.__code__
_STEPS = 6  # from there to `Stack.pop`: two functions of torch's, and contextlib's


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
        self.ours: list[object] = []  # modes of the kit that are on it

    @contextmanager
    def within(self, mode: object) -> Iterator[None]:
        """Push a mode, and take it away again, whatever was left on top of it."""
        below = self._size()
        self._push(mode)
        self.ours.append(mode)
        try:
            yield
        finally:
            self.ours.pop()
            while self._size() > below:
                self._pop(*self._key)

    def pop(self, *key: object) -> Any:
        """What torch's own does, for modes that student code pushed."""
        if self._size() <= len(self.ours) and not _asked_by_torch():
            raise PermissionError("operations are counted here, and that cannot be switched off")
        return self._pop(*key)

    def at(self, place: int) -> Any:
        """The mode at a place; of ours, one that does nothing in its stead."""
        mode = self._at(place)
        return TorchFunctionMode() if any(mode is one for one in self.ours) else mode


def _asked_by_torch() -> bool:
    with interpreter.opened():
        frame: FrameType | None = sys._getframe(1)
    for _ in range(_STEPS):
        if frame is None or frame.f_code.co_filename.startswith(CODE_PREFIX):
            return False
        if frame.f_code is _HANDLING:
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
        if OPERATIONS.ours:
            return f"tensor(shape={tuple(tensor.shape)}, dtype={tensor.dtype})"
        return in_full(tensor, tensor_contents=tensor_contents)  # type: ignore[no-untyped-call]

    torch._tensor_str._str = in_short
