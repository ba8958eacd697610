"""Restore a worker's process after a submission has run in it.

Settings are restored. Replaced objects, such as a function of torch, are only detected: then the
process cannot serve another submission.
"""

from __future__ import annotations

import builtins
import gc
import math
import os
import random
import sys
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from grader.guest.loader import uninstall
from grader.guest.trace import STARTERS

MODULES = (
    builtins, math, random, np, np.random, torch, torch.autograd, torch.linalg, nn, nn.functional,
    nn.init,
)  # fmt: skip
CLASSES = (torch.Tensor, torch._C.TensorBase, torch.autograd.Function)
# Attributes that Python itself adds to a class, when it reads annotations or copies an instance.
CACHES = frozenset({"__annotations__", "__annotations_cache__", "__slotnames__"})


def _put_environment(kept: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(kept)


def _put(owner: Any, **values: Any) -> None:
    for name, value in values.items():
        setattr(owner, name, value)


def _put_starters(kept: Mapping[tuple[types.ModuleType, str], Any]) -> None:
    for (module, name), start in kept.items():
        setattr(module, name, start)


# Pairs of functions: the first reads a setting, the second restores it.
SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (os.getcwd, os.chdir),
    (lambda: dict(os.environ), _put_environment),
    (lambda: list(sys.path), lambda kept: _put(sys, path=list(kept))),
    (lambda: list(sys.meta_path), lambda kept: _put(sys, meta_path=list(kept))),
    (lambda: dict(sys.modules), sys.modules.update),
    (lambda: {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")},
     lambda kept: _put(sys, **kept)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (lambda: {(module, name): getattr(module, name) for module, name in STARTERS
              if hasattr(module, name)},
     _put_starters),
    (gc.isenabled, lambda _: gc.enable()),
    (np.geterr, lambda kept: np.seterr(**kept)),
    (torch.get_default_dtype, torch.set_default_dtype),
    (lambda: None, torch.set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (lambda: False, torch.set_flush_denormal),
    (lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
     lambda kept: vars(torch._tensor_str.PRINT_OPTS).update(kept)),
)  # fmt: skip


class Untouched:
    """The state of this process, recorded before any submission runs in it."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # later garbage collections skip torch's own objects
        self._settings = [(put, get()) for get, put in SETTINGS]
        self._names = [(where, live, dict(live)) for where, live in _namespaces()]
        self._threads = set(threading.enumerate())
        self._modes = _modes()

    def restore(self) -> str:
        """Undo the effects of a submission, as far as possible.

        Returns why the process cannot serve another submission, or "" if it can.
        """
        uninstall()
        for put, kept in self._settings:
            put(kept)
        gc.collect()  # ends the threads of thread pools that are no longer used
        for where, live, before in self._names:
            name = _changed(live, before)
            if name is not None:
                return f"{where}.{name} was changed"
        if _modes() != self._modes:
            return "a mode of torch is still on"
        if not set(threading.enumerate()) <= self._threads:
            return "a thread still runs"
        return ""


def _namespaces() -> list[tuple[str, Mapping[str, Any]]]:
    """The namespaces in which a submission could replace objects, each with a name to report."""
    layers = [value for value in vars(nn).values() if isinstance(value, type)]
    hooks = [
        (name, value)
        for name, value in vars(module_hooks).items()
        if name.startswith("_global") and isinstance(value, dict)
    ]
    return [
        *((module.__name__, vars(module)) for module in MODULES),
        *((kind.__name__, vars(kind)) for kind in (*CLASSES, *layers)),
        *hooks,
    ]


def _changed(live: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    """A name that was removed, replaced or added in a namespace, or None; ignores added modules."""
    for name, value in before.items():
        if name not in live or live[name] is not value:
            return str(name)
    for name in live.keys() - before.keys() - CACHES:
        if type(live[name]) is not types.ModuleType:
            return str(name)
    return None


def _modes() -> tuple[int, int]:
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
