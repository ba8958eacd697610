"""The operands of a failed operation: the names and shapes of its tensors.

Torch's message may contain the sizes ("size of tensor a (4) must match size of tensor b (6)"), but
never the names of the tensors. The bytecode of the failing expression has the names.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grader.guest import interpreter
from grader.guest.trace import innermost
from grader.wire import MAX_DIMENSIONS, MAX_NAME, MAX_OPERANDS

LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")

# Functions that read an attribute even if a student's subclass overrides it.
_shape_of = vars(torch._C.TensorBase)["shape"].__get__
_dict_of = vars(nn.Module)["__dict__"].__get__


def operands_of(error: BaseException) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in the submission's innermost failing expression, by name.

    For an ``nn.Linear``, the shape is that of its weight, (d_out, d_in).
    """
    step = innermost(error)
    if step is None:
        return {}
    # Read only the frame in this block. Reading values, as below, may run student code.
    with interpreter.open_to_guest():
        frame = step.tb_frame
        own, shared = frame.f_locals, frame.f_globals
        instructions = list(dis.get_instructions(frame.f_code))
    shapes: dict[str, tuple[int, ...]] = {}
    for path in _loaded(instructions, step.tb_lasti):
        name, *attributes = path
        value = own.get(name, shared.get(name))
        for attribute in attributes:
            value = _attribute(value, attribute)
        label = ".".join(path)
        if type(value) is nn.Linear:
            label, value = f"{label}.weight", _attribute(value, "weight")
        if issubclass(type(value), Tensor) and len(label) <= MAX_NAME:
            shapes[label] = tuple(_shape_of(value))[:MAX_DIMENSIONS]
    return dict(list(shapes.items())[:MAX_OPERANDS])


def _loaded(instructions: Sequence[dis.Instruction], failed_at: int) -> list[tuple[str, ...]]:
    """Names that the failing expression loads, with attributes, such as ``("self", "W_query")``."""
    failed = next((step for step in instructions if step.offset == failed_at), None)
    if failed is None or failed.positions is None:
        return []
    paths: list[tuple[str, ...]] = []
    last: tuple[str, ...] = ()  # the path to which a following attribute belongs
    for step in instructions:
        if step.offset >= failed_at or not _within(step.positions, failed.positions):
            continue
        if step.opname.startswith(LOADS):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            paths += [(name,) for name in names]
            last = paths[-1]
        elif last and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            last = (*last, step.argval)
            paths.append(last)
        else:
            last = ()
    return paths


def _within(inner: dis.Positions | None, outer: dis.Positions) -> bool:
    if inner is None or None in inner:
        return False
    first, last, start, end = inner
    return (first, start) >= (outer[0], outer[2]) and (last, end) <= (outer[1], outer[3])


def _attribute(module: Any, name: str) -> Any:
    """An attribute of a module, read without running student code.

    Returns None if the attribute is missing, or if `module` is not a module.
    """
    if not issubclass(type(module), nn.Module):
        return None
    own = _dict_of(module)
    for place in (own, *(own.get(kept) for kept in ("_parameters", "_buffers", "_modules"))):
        if isinstance(place, dict) and name in place:
            return place[name]
    return None
