"""What a call does: which torch functions it uses, and how much work the dispatcher sees.

Runs in the student's process, so a trace is evidence and not proof. Function names come from a
TorchFunctionMode, because the dispatcher shows ``F.linear`` as ``addmm`` and small attention as a
few products; counts and sizes come from a TorchDispatchMode. Both follow into any thread that
the student starts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.jail.wire import Operations, Place, Use

MAX_USES = 20


def plain_name(function: Any) -> str:
    """The name by which people know a torch function: ``_softmax.default`` is ``softmax``."""
    name = str(getattr(function, "__name__", ""))
    return name.split(".")[0].strip("_")


class FunctionTrace(TorchFunctionMode):
    """Notes the torch functions called, and those that are watched with the student's line."""

    def __init__(self, watch: frozenset[str], locate: Callable[[], Place | None]) -> None:
        super().__init__()
        self.watch = watch
        self.locate = locate
        self.uses: list[Use] = []
        self.names: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """See torch.overrides.TorchFunctionMode."""
        name = plain_name(func)
        self.names.add(name)
        if name in self.watch and len(self.uses) < MAX_USES:
            self.uses.append(Use(name, self.locate()))
        return func(*args, **(kwargs or {}))


class OperationTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, and remembers the largest result."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self.largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """See torch.utils._python_dispatch.TorchDispatchMode."""
        result = func(*args, **(kwargs or {}))
        self.count += 1
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, torch.Tensor):
                self.largest = max(self.largest, part.numel())
        return result

    def report(self) -> Operations:
        """The counts so far."""
        return Operations(self.count, self.largest)


_run_thread = threading.Thread.run


@contextmanager
def traced(
    watch: frozenset[str], locate: Callable[[], Place | None], observe: bool
) -> Iterator[tuple[FunctionTrace | None, OperationTrace | None]]:
    """Trace what happens inside, in this thread and in those started meanwhile."""
    functions = FunctionTrace(watch, locate) if watch or observe else None
    operations = OperationTrace() if observe else None
    modes = [mode for mode in (functions, operations) if mode is not None]

    def run(thread: threading.Thread) -> None:
        with ExitStack() as inner:
            for mode in modes:
                inner.enter_context(mode)
            _run_thread(thread)

    with ExitStack() as stack:
        if modes:
            threading.Thread.run = run  # type: ignore[method-assign, assignment]
            stack.callback(setattr, threading.Thread, "run", _run_thread)
        for mode in modes:
            stack.enter_context(mode)
        yield functions, operations


def submission_line(prefix: str) -> tuple[str, int] | None:
    """File and line of the innermost running frame that belongs to the submission."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(prefix):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
