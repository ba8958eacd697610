"""Torch's operations: forbid them, and compute their costs.

A forbidden operation is removed from torch until the process ends. Student code can evade a trace
of calls in its own process, but cannot call a removed operation. Before a submission is loaded, the
kernels of forbidden operations are overwritten in torch's dispatcher. This affects all modes,
threads, callbacks, scripts and backward passes. The code of torch's Python functions with the names
of forbidden operations (such as ``torch._refs.softmax``) is overwritten too. Python code cannot
restore the kernels or the code.

Costs are computed from shapes: the elements that an operation stores, computes and reduces.
"""

from __future__ import annotations

import ctypes
import gc
import types
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from grader.guest import interpreter
from grader.wire import AUTOGRAD


def _is_key(name: str) -> bool:
    """Whether a name of the enumeration is a dispatch key: some names only mark ranges of keys."""
    try:
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::_softmax", name)
    except RuntimeError:
        return False
    return True


# Dispatch keys under which an operation can have a kernel that computes. Kernels of the excluded
# keys, such as Autograd, only pass a call on.
KEYS = tuple(
    key
    for key in ("MkldnnCPU", *torch._C.DispatchKey.__members__)
    if not key.startswith(("Autograd", "Autocast", "FuncTorch", "Python", "PreDispatch"))
    if _is_key(key)
)


class ForbiddenOperation(RuntimeError):
    """The student's code called an operation that the exercise forbids."""


class Refusals:
    """Holds the function that reports each refusal, since student code may catch the exception."""

    report: Callable[[str], None] = staticmethod(lambda _: None)


def refuse(name: str) -> NoReturn:
    """Report a call of a forbidden function or kernel, and raise `ForbiddenOperation`."""
    Refusals.report(name)
    raise ForbiddenOperation(name)


def plain_name(function: Any) -> str:
    """The plain name of a torch function: that of ``_softmax.default`` is ``softmax``."""
    return _plain(str(getattr(function, "__name__", "")))


@cache
def _plain(name: str) -> str:
    return name.split(".")[0].strip("_")


# The warm process builds the following tables once. That takes 0.4 s, too long for each jail. The
# trusted process forbids no operations, and never builds the tables.


def look_up() -> None:
    """Build the tables that `forbid` uses."""
    for found in (_operations, _kernels, _functions):
        found()


@cache
def _operations() -> Mapping[str, list[str]]:
    """The names of the dispatcher's operations, grouped by plain name."""
    found = defaultdict(list)
    for operation in torch._C._dispatch_get_all_op_names():
        found[_plain(operation.partition("::")[2])].append(operation)
    return found


@cache
def _kernels() -> Mapping[str, list[str]]:
    """The keys under which each operation of the dispatcher has its own kernel."""
    found = defaultdict(list)
    for key in KEYS:
        for operation in torch._C._dispatch_get_registrations_for_dispatch_key(key):
            found[operation].append(key)
    return found


@cache
def _functions() -> Mapping[str, list[types.FunctionType]]:
    """Torch's Python functions, grouped by plain name; methods also by qualified name."""
    found = defaultdict(list)
    with warnings.catch_warnings(action="ignore"):
        for thing in gc.get_objects():
            if type(thing) is types.FunctionType and str(thing.__module__).startswith("torch"):
                found[_plain(thing.__code__.co_name)].append(thing)
                if "." in thing.__qualname__:
                    found[thing.__qualname__].append(thing)
    return found


def forbid(names: Collection[str]) -> frozenset[str]:
    """Make all functions and operations with these plain names raise `ForbiddenOperation`.

    The name `AUTOGRAD` removes that layer of the dispatcher; torch then records no graph. Returns
    the names whose functions and operations all raise. The other names are left out, because the
    code of some of their functions cannot be replaced.
    """
    if not names:
        return frozenset()
    if AUTOGRAD in names:
        _peel(AUTOGRAD)
    libraries: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):  # torch warns about replaced kernels
        for name in names:
            for operation in _operations().get(name, ()):
                namespace = operation.partition("::")[0]
                if namespace not in libraries:
                    libraries[namespace] = torch._C._dispatch_library(
                        "IMPL", namespace, "", __file__, 0
                    )
                for key in sorted({"CPU", "Meta", *_kernels().get(operation, ())}):
                    libraries[namespace].impl(operation, key, _kernel(name))
            for function in _functions().get(name, ()):
                if not function.__code__.co_freevars:
                    with interpreter.open_to_guest():
                        function.__code__ = _code(name)
    for kernels in libraries.values():
        _keep_forever(kernels)
    interpreter.no_more_of_torch(whole=True)
    return frozenset(
        name
        for name in names
        if not any(function.__code__.co_freevars for function in _functions().get(name, ()))
    )


def _peel(layer: str) -> None:
    """Remove a layer of the dispatcher: replace its kernels by kernels that pass a call on."""
    kernels = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    with warnings.catch_warnings(action="ignore"):  # torch warns about replaced kernels
        for operation in torch._C._dispatch_get_registrations_for_dispatch_key(layer):
            if operation.startswith("aten::"):
                kernels.impl(operation, layer, torch.library.fallthrough_kernel)
    _keep_forever(kernels)


# Bound at import: a jail has no ctypes.
_INCREF, _OBJECT = ctypes.pythonapi.Py_IncRef, ctypes.py_object


def _keep_forever(kernels: object) -> None:
    """Leak an object on purpose: if it were freed, torch would restore the original kernels.

    The object has no name in Python, so that student code cannot find and delete it.
    """
    _INCREF(_OBJECT(kernels))


def _kernel(name: str) -> Callable[..., Any]:
    return lambda *_, **__: refuse(name)


def _code(name: str) -> types.CodeType:
    """The code of a function that calls `refuse` with this name.

    The code runs with another module's globals, and cannot import the kit in a jail. Therefore
    `refuse` and the name are constants of the code.
    """

    def emptied(*_: Any, **__: Any) -> Any:
        what_refuses = "what refuses"
        what_refuses("a name")  # type: ignore[operator]

    instead = {"what refuses": refuse, "a name": name}
    return emptied.__code__.replace(
        co_consts=tuple(instead.get(str(c), c) for c in emptied.__code__.co_consts)
    )


# --- costs ---------------------------------------------------------------------------------------
#
# Costs are the same on every machine. A view has no work; its elements count as stored. The work of
# writing an element is 1, and that of a multiply-add is 1. An operation that the tables below do
# not list costs all its input: each number of its result may be computed from all numbers of the
# input. A test goes through all of torch's operations, and fails if the tables are too generous.


# Operations that move or fill numbers: each number of the result comes from at most one number of
# the input. Torch marks operations that compute number by number (`torch.Tag.pointwise`), and
# copies of views.
MOVING = frozenset(
    {
        "as_strided_scatter", "block_diag", "cat", "channel_shuffle", "chunk_cat", "complex",
        "constant_pad_nd", "copy", "diag_embed", "diagonal_scatter", "embedding", "fill", "flip",
        "gather", "index", "index_copy", "index_fill", "index_select", "lift", "lift_fresh",
        "masked_scatter", "masked_select", "padded_dense_to_jagged_forward", "pixel_shuffle",
        "pixel_unshuffle", "polar", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
        "repeat", "replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "rot90",
        "select_scatter", "slice_scatter", "stack", "take", "to_copy", "tril", "triu",
        "unsafe_index", "unsafe_view", "zero",
    }
)  # fmt: skip
# The same, unless an argument asks for a sum where several numbers meet at one place.
PUTTING = frozenset({"index_put", "index_put_impl", "put", "unsafe_index_put", "scatter"})
# Computed number by number, though torch does not mark them; the last ones read no number at all.
POINTWISE = frozenset(
    {
        "addr", "glu", "hardswish", "log_sigmoid_forward", "native_dropout", "prelu_kernel",
        "bernoulli", "exponential", "full_like", "new_full", "new_ones", "new_zeros", "normal",
        "ones_like", "rand_like", "randint_like", "randn_like", "random", "uniform", "zeros_like",
    }
)  # fmt: skip
MARKS = frozenset({torch.Tag.pointwise, torch.Tag.view_copy})
# Norms of rows: the second argument is the shape of a row.
NORMS = frozenset({"native_layer_norm", "fused_rms_norm"})

# Products of matrices and vectors. Each sums over the last axis of an argument; the number is the
# position of this argument.
PRODUCTS = {
    "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0,
    "addmm": 1, "addbmm": 1, "baddbmm": 1, "addmv": 1,
}  # fmt: skip
# Operations that reduce many numbers to one. Each element of the input is used for one result.
REDUCTIONS = frozenset(
    {
        "sum", "nansum", "mean", "nanmean", "prod", "amax", "amin", "aminmax", "max", "min",
        "logsumexp", "trace", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm",
        "argmax", "argmin", "any", "all", "count_nonzero", "median", "nanmedian",
    }
)  # fmt: skip
# Operations that run along an axis, and whose result keeps this axis.
SCANS = frozenset(
    {
        "softmax", "log_softmax", "safe_softmax", "cumsum", "cumprod", "cummax", "cummin",
        "logcumsumexp", "sort", "argsort", "msort", "topk", "kthvalue", "mode",
        "softmax_backward_data", "log_softmax_backward_data",
    }
)  # fmt: skip

# Operations in `POOLS` reduce each window of the input; the second argument is the window's size.
# Operations in `COLLECTING` reduce the elements that have the same index; the second argument is
# the axis, and the fourth contains the elements.
POOLS = frozenset(
    {
        "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices",
        "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool1d", "avg_pool2d",
        "avg_pool3d",
    }
)  # fmt: skip
COLLECTING = frozenset({"scatter_reduce", "scatter_add", "index_add", "index_reduce"})

# Operations that find a maximum, and operations that compute exponentials. Their order shows
# whether a softmax read its scores once or twice.
MAXIMA = frozenset(
    {
        "amax", "max", "maximum", "fmax", "aminmax", "argmax", "cummax", "sort", "argsort", "msort",
        "topk", "kthvalue", "gt", "ge", "lt", "le", "scatter_reduce", "index_reduce",
        *(name for name in POOLS if name.startswith("max")),
    }
)  # fmt: skip
EXPONENTIALS = frozenset(
    {
        "exp", "exp2", "expm1", "pow", "sigmoid", "logaddexp", "logaddexp2", "logsumexp",
        "logcumsumexp", "softmax", "log_softmax", "safe_softmax",
    }
)  # fmt: skip

EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


class Cost(NamedTuple):
    """The cost of an operation, in elements."""

    stored: int = 0  # elements that the largest result stores
    work: int = 0  # multiply-adds of a product; elements read by a reduction; else elements written
    width: int = 0  # the most elements from which a number of the result is computed
    compared: int = 0  # elements among which a maximum may be found
    left: int = 0  # bits of the number that becomes Python's


def cost(operation: Any, args: Any, kwargs: Any, result: Any) -> Cost:
    """The cost of a call of one of the dispatcher's operations."""
    results = [*tensors_in(result), *changed(operation, args, kwargs)]
    if not results:
        read = sum(tensor.numel() for tensor in tensors_in((args, kwargs)))
        return Cost(0, read, read, read, _bits_of(result, args))
    found = _computed(operation, args, kwargs, results)
    if plain_name(operation) in MAXIMA:
        found = found._replace(compared=found.work)
    return found


def _computed(operation: Any, args: Any, kwargs: Any, results: Sequence[Tensor]) -> Cost:
    stored = max(map(_stored, results))
    name = plain_name(operation)
    if _is_view(operation) or name in EMPTY:
        return Cost(stored)
    written = results[0].numel()
    if name in PRODUCTS and isinstance(factor := args[PRODUCTS[name]], Tensor):
        width = factor.shape[-1] * (factor.shape[0] if name == "addbmm" else 1)
        return Cost(stored, written * width, width)
    if name == "convolution":
        width = args[1][0].numel()
        return Cost(stored, written * width, width)
    source = args[0] if args else None
    if name in POOLS and isinstance(source, Tensor):
        window = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
        return Cost(stored, source.numel(), prod(window))
    if name in COLLECTING and isinstance(collected := args[3], Tensor) and collected.dim():
        return Cost(stored, collected.numel(), collected.shape[args[1]])
    if name in REDUCTIONS and isinstance(source, Tensor):
        return Cost(stored, source.numel(), source.numel() // max(written, 1))
    if name in SCANS and isinstance(source, Tensor) and source.dim():
        axis = _axis(operation, args, kwargs)
        return Cost(stored, source.numel(), source.shape[axis])
    if name in NORMS and isinstance(source, Tensor):
        return Cost(stored, source.numel(), prod(args[1]))
    if _is_pointwise(operation) or name in MOVING:
        return Cost(stored, written, 1)
    if name in PUTTING and not _sums(operation, args, kwargs):
        return Cost(stored, written, 1)
    width = sum(tensor.numel() for tensor in tensors_in((args, kwargs)))
    if not width:  # made of nothing
        return Cost(stored, written)
    return Cost(stored, max(written, 1) * width, width, width)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in an operation's arguments, or in its result."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for part in value for tensor in tensors_in(part)]


@cache
def _is_pointwise(operation: Any) -> bool:
    """Whether an operation computes number by number; torch marks some of its forms only."""
    name = operation._schema.name.partition("::")[2]
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    forms = [getattr(packet, form) for form in packet.overloads()] if packet else []
    tags = {tag for form in (operation, *forms) for tag in form.tags}
    return plain_name(operation) in POINTWISE or not tags.isdisjoint(MARKS)


def _sums(operation: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation of `PUTTING` adds, or multiplies, numbers that meet at one place."""
    names = [argument.name for argument in operation._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    return bool(given.get("accumulate") or given.get("reduce"))


@cache
def _changes(operation: Any) -> list[tuple[int, str]]:
    """The arguments that an operation writes to: their positions and names."""
    arguments = enumerate(operation._schema.arguments)
    return [(n, a.name) for n, a in arguments if a.alias_info is not None and a.alias_info.is_write]


def changed(operation: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a call of an operation writes to."""
    written = [
        args[place] if place < len(args) else kwargs.get(name)
        for place, name in _changes(operation)
    ]
    return tensors_in(written)


# --- numbers that leave torch --------------------------------------------------------------------
#
# What Python or NumPy compute is not counted. Therefore the numbers that they get are counted.


def bits(tensor: Tensor) -> int:
    """The bits of a tensor's numbers; a boolean is a single bit."""
    return tensor.numel() * (1 if tensor.dtype == torch.bool else 8 * tensor.element_size())


def _bits_of(result: Any, args: Any) -> int:
    """The bits of a number that is no tensor: of ``item``, or of a verdict such as ``equal``."""
    if isinstance(result, bool):
        return 1
    given = tensors_in(args)
    return 8 * given[0].element_size() if given and isinstance(result, (int, float, complex)) else 0


# Memory that torch has lent. The objects are kept, so that their addresses are not used again.
_lent: dict[int, object] = {}


def lend(tensor: Tensor) -> None:
    """Note that Python or NumPy can read a tensor's memory from now on."""
    storage = tensor.untyped_storage()
    _lent[storage._cdata] = storage


def is_lent(tensor: Tensor) -> bool:
    """Whether Python or NumPy can read a tensor's memory, by `lend` or since it is theirs.

    Torch cannot resize memory of others, or memory that it has shown to NumPy.
    """
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return False
    storage = tensor.untyped_storage()
    return not storage.resizable() or storage._cdata in _lent


def _stored(tensor: Tensor) -> int:
    """The number of elements in a tensor's memory; repeated elements (`expand`) count once."""
    if tensor.layout != torch.strided:
        return tensor.numel()
    held = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    return min(tensor.numel(), held)


# Bound before `interpreter.strip` replaces the function.
_overload_of = torch._C._get_operation_overload


@cache
def composed(operation: Any) -> Callable[..., Any] | None:
    """What computes an operation by others, if torch has no kernel of its own for it.

    A forbidden operation has a kernel that refuses the call.
    """
    key, has = "CompositeImplicitAutograd", torch._C._dispatch_has_kernel_for_dispatch_key
    if not has(operation.name(), key) or has(operation.name(), "CPU"):
        return None
    overload = operation._overloadname
    found = _overload_of(operation._schema.name, "" if overload == "default" else overload)
    return partial(found[1], torch._C.DispatchKey.CompositeImplicitAutograd)


@cache
def _is_view(operation: Any) -> bool:
    """Whether the result of an operation is a view of its input."""
    if torch.Tag.inplace_view in operation.tags:
        return True
    aliases = [returned.alias_info for returned in operation._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _axis(operation: Any, args: Any, kwargs: Any) -> int:
    names = [argument.name for argument in operation._schema.arguments]
    if "dim" in kwargs:
        return int(kwargs["dim"])
    place = names.index("dim") if "dim" in names else len(args)
    return int(args[place]) if place < len(args) else -1
