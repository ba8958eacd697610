"""The start of a process that serves submissions: import torch, and hide the kit's courses."""

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
# Torch's compiler, and modules that use it. Few answers need these modules, and their import takes
# as long as that of all others together. Optimisers, checkpoints and torch.func.grad import the
# compiler at their first call. At its import, the compiler looks for a temporary directory.
WHOLE = (
    "torch._dynamo", "torch._decomp.decompositions_for_jvp", "torch.nn.attention.bias",
    "torch.nn.attention.flex_attention", "torch.nn.modules.linear_cross_entropy",
    "torch.utils._cxx_pytree",
)  # fmt: skip


def load_torch(*, whole: bool) -> None:
    """Import torch, and the modules of torch that answers use.

    With `whole`, also import the modules that few answers use. Once a jail is closed, no further
    part of torch can be imported. This function starts no thread, since a fork has only one thread.
    """
    import torch

    # Must come before any operation: after a parallel region in this process, a parallel region in
    # a fork would hang. With one thread, results also agree to the last bit on every machine.
    torch.set_num_threads(1)
    import numpy.random  # noqa: F401

    for name in (*USUAL, *WHOLE) if whole else USUAL:
        with suppress(ImportError):  # some versions of torch lack some modules
            importlib.import_module(name)

    import grader.guest.server  # noqa: F401
    from grader.guest.operations import look_up

    look_up()
    if not whole:
        _run_without_compiler()
    # Switch oneDNN off, since it generates machine code, which `lockdown` refuses.
    torch._C._set_mkldnn_enabled(False)
    x = torch.ones(2, 2, requires_grad=True)
    torch.softmax(x @ x, dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    # This makes torch query the processor now, which is not allowed in a jail.
    x.half()


def _run_without_compiler() -> None:
    """Let functions that torch excludes from compilation run without importing the compiler.

    At the first call of such a function, torch wraps it with the compiler, and caches the result in
    an attribute of the function. `_run_without_compiler` sets that attribute in advance, to the
    function itself. This has no effect if a version of torch caches elsewhere: see
    ``torch/_compile.py``.
    """
    import torch

    hides = vars(torch)["_disable_dynamo"](lambda: None).__code__
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__ is hides:
            cells = dict(zip(hides.co_freevars, thing.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents
            hidden.__dynamo_disable = hidden


def forget_projects() -> None:
    """Let only Python and installed packages be imported.

    With an editable install, the kit's folder is on the path. A submission could then import the
    solutions and the stubs of the courses in that folder.
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
    # This search makes Python list the folders, and cache the lists. A jail may import from these
    # folders, but may not list all of them.
    importlib.util.find_spec("no_module_of_this_name")
