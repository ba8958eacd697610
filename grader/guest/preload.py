"""The start of a process that serves submissions: import torch, and hide our own projects."""

from __future__ import annotations

import gc
import importlib.util
import site
import sys
import sysconfig
import types
from contextlib import suppress
from pathlib import Path

# Modules that torch's functions import at their first call, or that answers may import.
USUAL = (
    "torch.fx.experimental.symbolic_shapes",  # for tensors without values, on the device "meta"
    "torch._subclasses.schema_check_mode", "torch.autograd._functions", "torch.nn.utils.prune",
    "torch.profiler._chrome_trace_export", "torch.profiler._cupti_monitor",
    "torch.profiler._cupti_monitor_trace", "torch.utils.flop_counter",
    "torch.utils.serialization.config",
)  # fmt: skip
# More such modules, which few answers need and which take as long to import as all others together.
# They are torch's compiler and its users: optimisers, checkpoints and torch.func.grad import it at
# their first call. The compiler looks for a temporary directory when it is imported.
WHOLE = (
    "torch._dynamo", "torch._decomp.decompositions_for_jvp", "torch.nn.attention.bias",
    "torch.nn.attention.flex_attention", "torch.nn.modules.linear_cross_entropy",
    "torch.utils._cxx_pytree",
)  # fmt: skip


def load_torch(*, whole: bool) -> None:
    """Import the modules that answers use; starts no thread, since a fork would lose it.

    Modules that few answers use are imported only if torch is to be `whole`. A jail loads no more.
    """
    import torch

    # Before any operation: a parallel region here would make a parallel region in a fork hang.
    # Also, results then agree to the last bit on every machine.
    torch.set_num_threads(1)
    import numpy.random  # noqa: F401

    for name in (*USUAL, *WHOLE) if whole else USUAL:
        with suppress(ImportError):  # some versions of torch lack it
            importlib.import_module(name)

    import grader.guest.server  # noqa: F401
    from grader.guest.operations import look_up

    look_up()
    if not whole:
        _run_without_compiler()
    # oneDNN generates machine code while it computes, which `lockdown` refuses.
    torch._C._set_mkldnn_enabled(False)
    x = torch.ones(2, 2, requires_grad=True)
    torch.softmax(x @ x, dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    # Makes torch query the processor now, once: a jail may not.
    x.half()


def _run_without_compiler() -> None:
    """Let functions that torch excludes from compilation run without importing the compiler.

    Torch caches the function to run in an attribute of each, which this sets in advance. With a
    torch that caches it elsewhere, they import the compiler as usual. See ``torch/_compile.py``.
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

    An editable install has the kit's folder on the path, and therefore the courses in it. Their
    solutions and stubs must not be imported.
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
    # This makes Python list and cache the folders: a jail may import from them, but may not list
    # all of them.
    importlib.util.find_spec("no_module_of_this_name")
