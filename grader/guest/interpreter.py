"""The layer of a jail inside Python: protects the ban on operations, and their counting.

The kernel's layers protect other processes and files from a submission. This layer makes it hard
for a submission to bypass torch's dispatcher, or to reach the kit's objects in its own process. It
removes only features that an answer does not need:

- `strip` runs once, in the warm process. It removes two kinds of functions from torch's C module:
  those that compute without the dispatcher (the static runtime, TorchScript's compiler), and those
  that switch off the modes that count operations.
- `close` runs in each jail. It refuses ctypes, the garbage collector's lists of objects, frames,
  tracers, and files of torch that are not loaded yet. Python calls an audit hook before each of
  these actions, and an audit hook cannot be removed.

This layer can be bypassed. A submission may find the kit's own objects (such as a function's
globals), write to the jail's socket itself, or contain a copy of torch's code. Therefore a jail's
reports about its own work are evidence, not proof.
"""

from __future__ import annotations

import _imp
import gc
import importlib.machinery
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from grader.wire.frames import LACKS_TORCH

# Prefixes of names. `COMPILERS` are those of the functions of TorchScript's compiler and runtime,
# which are removed. `LOOKUPS` are those of functions that the dispatcher needs, which are kept.
COMPILERS = ("_jit_", "_create_function_from", "_create_graph", "_fuse_to_static", "_import_ir_")
LOOKUPS = ("_jit_get_", "_jit_is_", "_jit_resolve_packet")
# Functions that compute without calling modes, or that switch modes off.
UNSEEN = frozenset(
    {
        "StaticModule", "import_ir_module", "import_ir_module_from_buffer", "parse_ir",
        "_dispatch_call_boxed", "_DisableTorchDispatch",
        "ExcludeDispatchKeyGuard", "_ExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard",
        "_IncludeDispatchKeyGuard", "_PreserveDispatchKeyGuard", "_SetExcludeDispatchKeyGuard",
        "_dispatch_tls_set_dispatch_key_excluded", "_dispatch_tls_set_dispatch_key_included",
        "_set_dispatch_mode", "_unset_dispatch_mode",
    }
)  # fmt: skip
MODULES = ("_te", "_lazy", "_lazy_ts_backend", "_aoti")  # submodules of torch._C to empty

# Events of Python's audit hooks: https://docs.python.org/3/library/audit_events.html
REFUSED = frozenset(
    {
        "gc.get_objects", "gc.get_referrers", "gc.get_referents",
        "sys.settrace", "sys.setprofile", "sys.monitoring.register_callback", "sys.addaudithook",
        "sys._current_frames", "sys._current_exceptions",
    }
)  # fmt: skip
FRAMES = frozenset({"sys._getframe", "sys._getframemodulename"})
FRAME_OF = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
# Modules that could undo this layer.
FOREIGN = frozenset(
    {"ctypes", "_ctypes", "cffi", "_cffi_backend", "_testcapi", "_testinternalcapi"}
)  # fmt: skip
# A file and a folder of the standard library whose functions return frames to their callers.
FRAME_GIVERS = frozenset({"inspect.py", "logging"})
# TorchScript's functions: where student code runs, they return their argument unchanged.
SCRIPTS = ("script", "trace", "freeze", "optimize_for_inference")


# --- once, in the warm process -------------------------------------------------------------------


def strip(instead: Mapping[str, Callable[..., Any]]) -> None:
    """Replace functions of torch's C module by those in `instead`, or by functions that refuse.

    The functions are replaced in every dictionary, also in the copy from which Python would
    recreate the module. The kit's own modules keep the original functions.
    """
    import torch

    names = {
        name
        for name in vars(torch._C)
        if name in UNSEEN or (name.startswith(COMPILERS) and not name.startswith(LOOKUPS))
    }
    new = {name: _refusing(f"torch._C.{name}") for name in names} | dict(instead)
    # This variant, for tensor subclasses, does not switch off modes.
    new["DisableTorchFunction"] = torch._C.DisableTorchFunctionSubclass
    by_key = _refusing("a kernel by its key")  # the modes would not see this call
    overload_of = torch._C._get_operation_overload

    def overload(*name: str) -> Any:
        found = overload_of(*name)
        return found and (found[0], by_key, *found[2:])

    new["_get_operation_overload"] = overload
    by_id = {id(old): new[name] for name in new if (old := vars(torch._C).get(name)) is not None}
    for holder in gc.get_objects():  # takes a quarter of the time of gc.get_referrers
        if issubclass(type(holder), torch._ops.OpOverload):
            vars(holder).pop("_op_dk", None)
        if (
            issubclass(type(holder), dict)
            and not by_id.keys().isdisjoint(map(id, holder.values()))
            and not str(holder.get("__name__")).startswith("grader.")
        ):
            for key, value in list(holder.items()):
                if id(value) in by_id:
                    holder[key] = by_id[id(value)]
    # On the meta device, torch.slice_scatter and similar functions switch off a dispatch key while
    # they copy.
    torch._prims_common.clone_preserve_strides = torch.clone
    # From torch 2.15 on, `torch.no_grad` as a decorator renames its frame by changing code. Older
    # versions lack the name, so mypy refuses a plain assignment.
    setattr(torch.utils._contextlib, "_set_stack_frame_name", _unchanged)  # noqa: B010
    compile_nothing()
    # The other engines for quantised layers write machine code, which a jail cannot execute.
    if "qnnpack" in torch.backends.quantized.supported_engines:
        torch.backends.quantized.engine = "qnnpack"
    for name in MODULES:
        if isinstance(module := vars(torch._C).get(name), types.ModuleType):
            vars(module).clear()
    with suppress(AttributeError):  # not in every version of torch
        del torch._C._DispatchOperatorHandle.redispatch_boxed
    setattr(torch._ops.OpOverload, "_op_dk", property(by_key, lambda *_: None))  # noqa: B010


def compile_nothing() -> None:
    """Let ``torch.compile`` and TorchScript return their argument, which then runs as it is.

    Compiling takes longer than a test may take, and needs a C++ compiler.
    """
    import torch

    torch.compile = _unchanged
    for name in SCRIPTS:
        setattr(torch.jit, name, _unchanged)


def _unchanged(model: Any = None, *_: Any, **__: Any) -> Any:
    return _unchanged if model is None else model


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise PermissionError(f"{name} is unavailable while an answer is graded")

    return refused


# --- in each jail --------------------------------------------------------------------------------

_closed = False
_open = False


@contextmanager
def open_to_guest() -> Iterator[None]:
    """Let the kit read frames and change functions in a ``with`` that runs no student code."""
    global _open
    _open = True
    try:
        yield
    finally:
        _open = False


def close(folder: str, *, whole: bool) -> None:
    """Refuse the actions listed at the top of this module, until this process ends.

    `folder` is torch's folder, in which no more files can be read. `whole` says whether all parts
    of torch are loaded. If not, importing another part ends the process.

    A request for a frame raises `ValueError`, as in a Python without frames; libraries catch this
    error.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] in FOREIGN]:
        vars(sys.modules.pop(name)).clear()  # other code may still refer to the module
    libraries = (*{str(Path(os.__file__).parent), *filter(None, sys.path)}, folder)
    for name in ("create_builtin", "create_dynamic"):
        setattr(_imp, name, _without_foreign(getattr(_imp, name)))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__getattr__":
            if arguments[1] in FRAME_OF and not (_open or _called_from(traceback.__file__, 2)):
                raise AttributeError(arguments[1])
        elif event == "object.__setattr__":
            if arguments[1] == "__code__" and not _open:
                _refuse("to change a function's code")
        elif event in FRAMES:
            if not (_open or _called_by_library(libraries)):
                raise ValueError("frames are unavailable while an answer is graded")
        elif event in REFUSED or event.startswith("ctypes."):
            _refuse(event)
        elif event == "import":
            if str(arguments[0]).partition(".")[0] in FOREIGN:
                raise ImportError(f"{arguments[0]} cannot be loaded while an answer is graded")
        elif event == "open" and str(arguments[0]).startswith(folder):
            _refuse("to read torch's files")

    no_more_of_torch(whole=whole)
    sys.addaudithook(hook)
    global _closed
    _closed = True


def _called_from(path: str, depth: int) -> bool:
    """Whether the innermost `depth` frames above the audit hook all run code of the file `path`.

    With depth 2, the function that asks for a frame and its caller must both be in `path`. So a
    library may use frames itself, to print a traceback, but may not get them for student code.
    """
    with open_to_guest():
        caller: types.FrameType | None = sys._getframe(2)  # above the hook
    for _ in range(depth):
        if caller is None or caller.f_code.co_filename != path:
            return False
        caller = caller.f_back
    return True


def _called_by_library(folders: tuple[str, ...]) -> bool:
    """Whether the request for a frame comes from a library that does not return frames."""
    with open_to_guest():
        name = sys._getframe(2).f_code.co_filename
    return name.startswith(folders) and not FRAME_GIVERS & {*Path(name).parts}


def no_more_of_torch(*, whole: bool) -> None:
    """Load no further part of torch; `whole` says whether all parts are loaded.

    Further calls have no effect.
    """
    if not any(isinstance(finder, NoMoreOfTorch) for finder in sys.meta_path):
        sys.meta_path.insert(0, NoMoreOfTorch(whole=whole))


class NoMoreOfTorch:
    """Meta path finder that gives an empty module for each module of torch that is not loaded.

    An import that the answer does not use then does no harm. If this process has only the usual
    parts of torch, the process ends instead, with the exit code `LACKS_TORCH`. The test is then
    repeated in a process that has all parts.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if not name.startswith("torch."):
            return None
        if not self._whole:
            os._exit(LACKS_TORCH)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """See importlib.abc.Loader."""
        return _Unavailable(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """See importlib.abc.Loader."""


class _Unavailable(types.ModuleType):
    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.__name__}.{name} is unavailable while an answer is graded")


def hide() -> None:
    """Remove the kit's modules from ``sys.modules``, after the kit's code has imported them."""
    if not _closed:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")


def _without_foreign(create: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `create`, which makes modules written in C, to refuse certain modules.

    The modules in `FOREIGN`, ``_thread`` and ``_imp`` were changed. If they were made again, they
    would have all their functions back.
    """

    def create_module(spec: Any, *more: Any) -> Any:
        if str(spec.name).rpartition(".")[2] in FOREIGN | {"_thread", "_imp"}:
            raise ImportError(f"{spec.name} cannot be loaded while an answer is graded")
        return create(spec, *more)

    return create_module


def _refuse(event: str) -> NoReturn:
    raise PermissionError(f"{event}: this is unavailable while an answer is graded")
