"""What a process does once that is to serve submissions: load torch, and forget our projects."""

from __future__ import annotations

import gc
import importlib.util
import site
import sys
import sysconfig
import types
from contextlib import suppress
from pathlib import Path

# What torch's functions import when they are first called, and what answers may import.
USUAL = (
    "torch.fx.experimental.symbolic_shapes",  # for tensors without values, on the device "meta"
    "torch._subclasses.schema_check_mode", "torch.autograd._functions", "torch.nn.utils.prune",
    "torch.profiler._chrome_trace_export", "torch.profiler._cupti_monitor",
    "torch.profiler._cupti_monitor_trace", "torch.utils.flop_counter",
    "torch.utils.serialization.config",
)  # fmt: skip
# The same, of what takes as long to import as all the rest, and few answers need: torch's compiler,
# which optimisers, checkpoints and torch.func.grad import when they are first used, and which looks
# for a temporary directory then.
WHOLE = (
    "torch._dynamo", "torch._decomp.decompositions_for_jvp", "torch.nn.attention.bias",
    "torch.nn.attention.flex_attention", "torch.nn.modules.linear_cross_entropy",
    "torch.utils._cxx_pytree",
)  # fmt: skip


def load_torch(*, whole: bool) -> None:
    """Import what students use, and start no thread: a fork would lose it.

    What few use is there only if torch is to be `whole`: no part of it is loaded in a jail.
    """
    import torch

    # Before any operation: one parallel region here would hang a parallel region in a fork. And
    # results agree to the last bit, wherever they were computed.
    torch.set_num_threads(1)
    import numpy.random  # noqa: F401

    for name in (*USUAL, *WHOLE) if whole else USUAL:
        with suppress(ImportError):  # another version of torch may lack it
            importlib.import_module(name)

    import grader.guest.server  # noqa: F401
    from grader.guest.operations import look_up

    look_up()
    if not whole:
        _run_without_compiler()
    # It writes machine code while it computes, which no jail may: see `lockdown`.
    torch._C._set_mkldnn_enabled(False)
    x = torch.ones(2, 2, requires_grad=True)
    torch.softmax(x @ x, dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    # Asks the system about the processor, once, if nothing has done so yet: a jail may not.
    x.half()


def _run_without_compiler() -> None:
    """Let functions that torch hides from its compiler run without importing it to hide from.

    Torch keeps what to run instead in an attribute of each; where it does so in another way, they
    ask for the compiler, and get it. See ``torch/_compile.py``.
    """
    import torch

    hides = vars(torch)["_disable_dynamo"](lambda: None).__code__
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__ is hides:
            cells = dict(zip(hides.co_freevars, thing.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents
            hidden.__dynamo_disable = hidden


def forget_projects() -> None:
    """Leave only Python and installed packages importable.

    A kit installed in place has its own folder on the path, and with it every course beside it:
    solutions, and files that would be imported instead of those that a student has saved since.
    """
    installed = [
        *sysconfig.get_paths().values(),
        *site.getsitepackages(),
        str(Path(sys.base_prefix, "DLLs")),
    ]
    sys.path[:] = [
        path for path in sys.path if any(Path(path).is_relative_to(root) for root in installed)
    ]
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if finder.__module__.startswith(("_frozen_importlib", "importlib", "six"))
    ]
    sys.path_importer_cache.clear()
    # Python lists the folders now: a jail may import from them, and list only some.
    importlib.util.find_spec("no_module_of_this_name")
