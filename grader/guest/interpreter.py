"""What Python itself no longer does in a jail: reach past torch's dispatcher, or into the kit.

The kernel's layers keep a submission from others. This one keeps what an answer has no use for
from the submission, so that what is forbidden stays forbidden and what is counted is counted:

- `strip`, once in the warm process: the parts of torch's C module that compute without the
  dispatcher (the static runtime, TorchScript's compiler) or switch off those who listen to it.
- `close`, in each jail: ctypes, the collector's lists of objects, frames, tracers, and files of
  torch that were not loaded by then. Python calls an audit hook before each of those, and has no
  way to remove one.

Whoever takes the kit's own objects apart (a function knows its globals), answers on the jail's
socket in the guest's place, or brings along code that torch has too, is not stopped by this: what a
jail says of its own work is evidence, and no proof.
"""

from __future__ import annotations

import _imp
import gc
import importlib.machinery
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from grader.wire.frames import LACKS_TORCH

# TorchScript's compiler and what runs its graphs; the dispatcher's own look-ups stay.
COMPILERS = ("_jit_", "_create_function_from", "_create_graph", "_fuse_to_static", "_import_ir_")
LOOKUPS = ("_jit_get_", "_jit_is_", "_jit_resolve_packet")
# What computes, and what keeps modes from seeing it.
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
MODULES = ("_te", "_lazy", "_lazy_ts_backend", "_aoti")  # whole parts of it

# Events of Python's audit hooks: https://docs.python.org/3/library/audit_events.html
REFUSED = frozenset(
    {
        "gc.get_objects", "gc.get_referrers", "gc.get_referents",
        "sys.settrace", "sys.setprofile", "sys.monitoring.register_callback",
        "sys._current_frames", "sys._current_exceptions",
    }
)  # fmt: skip
FRAMES = frozenset({"sys._getframe", "sys._getframemodulename"})
FRAME_OF = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
# Modules that do what is refused here.
FOREIGN = frozenset(
    {"ctypes", "_ctypes", "cffi", "_cffi_backend", "_testcapi", "_testinternalcapi"}
)  # fmt: skip
# Modules of Python's own that give frames to whoever asks them.
ASKED = frozenset({"inspect.py", "logging"})
# In TorchScript's place: what is to be compiled stays as it is.
SCRIPTS = ("script", "trace", "freeze", "optimize_for_inference")


# --- once, in the warm process -------------------------------------------------------------------


def strip(instead: Mapping[str, Callable[..., Any]]) -> None:
    """Take out of torch's C module what no answer needs; `instead` takes the place of some.

    Wherever a dictionary holds one of these, it holds what refuses from now on: also the copy from
    which Python would make the module anew. Modules of the kit keep theirs.
    """
    import torch

    names = {
        name
        for name in vars(torch._C)
        if name in UNSEEN or (name.startswith(COMPILERS) and not name.startswith(LOOKUPS))
    }
    new = {name: _refusing(f"torch._C.{name}") for name in names} | dict(instead)
    # What subclasses use to call the plain function; it does not switch off modes.
    new["DisableTorchFunction"] = torch._C.DisableTorchFunctionSubclass
    by_id = {id(old): new[name] for name in new if (old := vars(torch._C).get(name)) is not None}
    for holder in gc.get_objects():  # a quarter of the time of gc.get_referrers
        if (
            issubclass(type(holder), dict)
            and not by_id.keys().isdisjoint(map(id, holder.values()))
            and not str(holder.get("__name__")).startswith("grader.")
        ):
            for key, value in list(holder.items()):
                if id(value) in by_id:
                    holder[key] = by_id[id(value)]
    # On the device meta, torch.slice_scatter and its like switch off a key around their copy.
    torch._prims_common.clone_preserve_strides = torch.clone
    for name in SCRIPTS:
        setattr(torch.jit, name, _as_it_is)
    for name in MODULES:
        if isinstance(module := vars(torch._C).get(name), types.ModuleType):
            vars(module).clear()
    # Kernels called by the dispatcher's keys, past those that come before.
    with suppress(AttributeError):  # not in every version of torch
        del torch._C._DispatchOperatorHandle.redispatch_boxed
    refusing = property(_refusing("a kernel by its key"), lambda *_: None)
    setattr(torch._ops.OpOverload, "_op_dk", refusing)  # noqa: B010


def _as_it_is(what: Any = None, *_: Any, **__: Any) -> Any:
    return _as_it_is if what is None else what


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise PermissionError(f"{name} is unavailable while an answer is graded")

    return refused


# --- in each jail --------------------------------------------------------------------------------

_closed = False
_open = False


@contextmanager
def open_to_guest() -> Iterator[None]:
    """Let the guest itself see frames, and empty functions, for a moment: no student code runs."""
    global _open
    _open = True
    try:
        yield
    finally:
        _open = False


def close(folder: str, *, whole: bool) -> None:
    """Refuse from now on; `folder` is torch's, of which nothing more is read.

    Where torch is not the `whole`, whoever asks for more ends the process.

    Frames are refused as by a Python without them: libraries that ask for one can do without.
    """
    _forget(name for name in list(sys.modules) if name.partition(".")[0] in FOREIGN)
    libraries = (*{str(Path(os.__file__).parent), *filter(None, sys.path)}, folder)
    for name in ("create_builtin", "create_dynamic"):
        setattr(_imp, name, _but_foreign(getattr(_imp, name)))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__getattr__":
            if arguments[1] in FRAME_OF and not (_open or _asked_from(traceback.__file__, 2)):
                raise AttributeError(arguments[1])
        elif event == "object.__setattr__":
            if arguments[1] == "__code__" and not _open:
                _refuse("to change a function's code")
        elif event in FRAMES:
            if not (_open or _asked_by_library(libraries)):
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


def _asked_from(path: str, deep: int) -> bool:
    """Whether what asks for a frame is code of a file, and so is who asked for that.

    A library that gives frames to its caller is asked by student code, and one that prints a
    traceback by itself.
    """
    with open_to_guest():
        asking: types.FrameType | None = sys._getframe(2)  # above the hook
    for _ in range(deep):
        if asking is None or asking.f_code.co_filename != path:
            return False
        asking = asking.f_back
    return True


def _asked_by_library(folders: tuple[str, ...]) -> bool:
    """Whether what asks for a frame is a library's code, for use of its own."""
    with open_to_guest():
        name = sys._getframe(2).f_code.co_filename
    return name.startswith(folders) and not ASKED & {*Path(name).parts}


def no_more_of_torch(*, whole: bool) -> None:
    """Load no part of torch from now on; the first to ask for this says whether it is `whole`."""
    if not any(isinstance(finder, NoMoreOfTorch) for finder in sys.meta_path):
        sys.meta_path.insert(0, NoMoreOfTorch(whole=whole))


class NoMoreOfTorch:
    """Finds modules of torch that were not loaded: empty ones, so that an import costs nothing.

    Where there is more of torch than this process has, the process ends, and says so by its exit
    code: another one, in which it is loaded, is asked the same again.
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
    """Take the kit's own modules off the list of imported ones, once the guest has its own."""
    if not _closed:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")


def _but_foreign(create: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a module of C, but for those that would come back as they were."""

    def create_module(spec: Any, *more: Any) -> Any:
        if str(spec.name).rpartition(".")[2] in FOREIGN | {"_thread", "_imp"}:
            raise ImportError(f"{spec.name} cannot be loaded while an answer is graded")
        return create(spec, *more)

    return create_module


def _refuse(what: str) -> NoReturn:
    raise PermissionError(f"{what}: this is unavailable while an answer is graded")


def _forget(names: Iterable[str]) -> None:
    """Empty modules: whoever holds one holds nothing."""
    for name in names:
        vars(sys.modules.pop(name)).clear()
