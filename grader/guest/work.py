"""The worker process: torch loaded once, one submission after another.

Started as ``python -I -m grader.guest.work`` with two pipes for standard input and output. Nothing
is isolated here: it serves a student's own checks, where there is no fork.
"""

from __future__ import annotations

import builtins
import gc
import math
import os
import queue
import random
import sys
import threading
import types
import warnings
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from time import process_time, sleep
from typing import Any, BinaryIO, NoReturn

import msgspec
import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from grader.guest.loader import uninstall
from grader.guest.preload import forget_projects, load_torch
from grader.guest.trace import STARTERS
from grader.wire import frames
from grader.wire.frames import Begin, Loaded

MAX_REQUEST = 2**30
TICK = 0.05  # seconds between looks at the time that a request has taken


class Line:
    """The pipes to the other side."""

    def __init__(self) -> None:
        self._requests, self._replies = _take_pipes()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._process = os.getpid()
        # A thread of its own: whatever student code is at, it ends when the other side has.
        threading.Thread(target=self._listen, daemon=True).start()

    def receive(self) -> bytes:
        """Wait for a frame."""
        return self._inbox.get()

    def send(self, data: bytes) -> None:
        """Send a frame."""
        if os.getpid() != self._process:
            os._exit(0)  # a fork that student code made: it has no answer to give
        frames.write(self._replies, data)

    def _listen(self) -> None:
        try:
            while (data := frames.read(self._requests, MAX_REQUEST)) is not None:
                self._inbox.put(data)
        finally:
            os._exit(0)


class Clock:
    """Ends this process when one request takes more CPU time than it may."""

    def __init__(self) -> None:
        self._running = threading.Event()
        self._until = inf
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self, seconds: float) -> None:
        """Count from now on."""
        self._until = process_time() + seconds
        self._running.set()

    def stop(self) -> None:
        """Count no more."""
        self._running.clear()
        self._until = inf

    def _watch(self) -> None:
        while self._running.wait():
            if process_time() > self._until:
                os._exit(frames.TIMED_OUT)
            sleep(TICK)


def main() -> NoReturn:
    """Load torch, say so, then serve until the other side goes away."""
    line, clock = Line(), Clock()
    package = str(Path(__file__).parent)
    try:
        try:
            untouched = _preload()
        except Exception as error:
            line.send(msgspec.msgpack.encode(Loaded(package, f"{type(error).__name__}: {error}")))
            os._exit(1)
        line.send(msgspec.msgpack.encode(Loaded(package)))
        while True:
            begin = msgspec.msgpack.decode(line.receive(), type=Begin)
            if begin.device == "cpu":  # a GPU's driver maps far more than it uses
                _limit_memory(begin.memory_mb)
            _serve(line, clock, begin)
            why_not = untouched.restore()
            clock.stop()
            line.send(why_not.encode())
    finally:
        os._exit(1)


def _serve(line: Line, clock: Clock, begin: Begin) -> None:
    """Answer the requests of one submission, each within its CPU time."""
    from grader.guest.server import serve

    def receive() -> bytes | None:
        data = line.receive()
        clock.start(begin.cpu_seconds)
        return data or None

    def send(data: bytes) -> None:
        clock.stop()
        line.send(data)

    with warnings.catch_warnings():
        serve(receive, send, begin.device)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes, and leave to student code descriptors that lead nowhere."""
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (0, 1):
            msvcrt.setmode(descriptor, os.O_BINARY)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return requests, replies


def _preload() -> Untouched:
    """Load torch, and remember how that leaves the process."""
    load_torch()

    forget_projects()
    return Untouched()


def _limit_memory(megabytes: int) -> None:
    """Let what a submission allocates beyond this raise an error, where the kernel counts it."""
    try:
        import resource

        status = Path("/proc/self/status").read_text("ascii")
    except (ImportError, OSError):
        return
    lines = status.splitlines()
    (now,) = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + megabytes * 2**20
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()


# --- putting back --------------------------------------------------------------------------------
#
# A worker's process as it was, after a submission has run in it.
#
# What can be put back is put back. What should not have been touched at all, such as a function
# of torch's that now is another one, is found and told: such a process serves no other
# submission.


MODULES = (
    builtins, math, random, np, np.random, torch, torch.autograd, torch.linalg, nn, nn.functional,
    nn.init,
)  # fmt: skip
CLASSES = (torch.Tensor, torch._C.TensorBase, torch.autograd.Function)
# Python itself leaves these in a class, when it is copied or asked for them.
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


# How to ask for a setting, and how to put it back.
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
    """What this process is like before any submission runs in it."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # torch's own objects: later looks for garbage take no time over them
        self._settings = [(put, get()) for get, put in SETTINGS]
        self._names = [(where, live, dict(live)) for where, live in _namespaces()]
        self._threads = set(threading.enumerate())
        self._modes = _modes()

    def restore(self) -> str:
        """Forget the submission that ran here; returns why no other should, or an empty text."""
        uninstall()
        for put, kept in self._settings:
            put(kept)
        gc.collect()  # a pool's threads end when nothing holds the pool
        for where, live, before in self._names:
            name = _changed(live, before)
            if name is not None:
                return f"{where}.{name} is not what it was"
        if _modes() != self._modes:
            return "a mode of torch is still on"
        if not set(threading.enumerate()) <= self._threads:
            return "a thread still runs"
        return ""


def _namespaces() -> list[tuple[str, Mapping[str, Any]]]:
    """What a submission might replace things in, by name."""
    layers = [value for value in vars(nn).values() if isinstance(value, type)]
    hooks = [
        (name, value) for name, value in vars(module_hooks).items()
        if name.startswith("_global") and isinstance(value, dict)
    ]  # fmt: skip
    return [
        *((module.__name__, vars(module)) for module in MODULES),
        *((kind.__name__, vars(kind)) for kind in (*CLASSES, *layers)),
        *hooks,
    ]


def _changed(live: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    """A name that was taken away, replaced, or added by someone who is no import statement."""
    for name, value in before.items():
        if name not in live or live[name] is not value:
            return str(name)
    for name in live.keys() - before.keys() - CACHES:
        if type(live[name]) is not types.ModuleType:
            return str(name)
    return None


def _modes() -> tuple[int, int]:
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
