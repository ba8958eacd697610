"""The guest: answers requests with what a submission's definitions do.

Runs in the student's process, which holds no reference, no expected value and no hidden test.
Whatever it answers may have been forged by student code, and the trusted side treats it so. The
same class serves every back end.
"""

from __future__ import annotations

import hashlib
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.jail import wire
from grader.jail.loader import NotBound, Submission, install
from grader.jail.source import CODE_PREFIX
from grader.jail.trace import submission_line, traced

# Bound before any student code runs: a submission may override or replace what it likes.
_named_parameters = nn.Module.named_parameters
_named_buffers = nn.Module.named_buffers
_named_modules = nn.Module.named_modules
_train = nn.Module.train
_to = nn.Module.to
_grad = torch.autograd.grad


@dataclass(frozen=True)
class _Kept:
    """A result whose graph a test may push gradients through."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    parameters: dict[str, nn.Parameter]
    watch: frozenset[str]


MAX_NAMES = 500  # of torch functions that one call may report


class Guest:
    """One submission, and the modules and graphs that a test has made so far."""

    def __init__(self) -> None:
        self.submission: Submission | None = None
        self.kept: dict[int, Any] = {}

    def answer(self, request: wire.Request) -> wire.Reply:
        """Do what a request asks; exceptions of student code become `Raised`."""
        match request:
            case wire.Open(sources, wanted):
                self.submission = Submission(sources, wanted)
                listing = self.submission.listing()
                install(self.submission)
                return listing
            case wire.Run(calls):
                outcomes: list[wire.Outcome] = []
                for call in calls:
                    outcomes.append(self._safely(call))
                    if isinstance(outcomes[-1], wire.Raised):
                        break
                return wire.Outcomes(outcomes)

    def _safely(self, call: wire.Call) -> wire.Outcome:
        uses: list[wire.Use] = []
        try:
            return self._do(call, uses)
        except BaseException as error:  # student code may raise anything at all
            return self._raised(error, uses)

    def _do(self, call: wire.Call, uses: list[wire.Use]) -> wire.Outcome:
        match call:
            case wire.Seed(seed):
                self.kept.clear()
                torch.manual_seed(seed)
                np.random.seed(seed % 2**32)
                random.seed(seed)
                return wire.Done()
            case wire.Invoke():
                return self._invoke(call, uses)
            case wire.Assign(handle, values):
                parameters = dict(_named_parameters(self.kept[handle], remove_duplicate=False))
                with torch.no_grad():
                    for path, value in values.items():
                        parameters[path].copy_(wire.unpack_tensor(value))
                return wire.Done()
            case wire.Convert(handle, method, argument):
                convert(self.kept[handle], method, argument)
                return wire.Done()
            case wire.Describe(handle, values):
                return describe(self.kept[handle], values)
            case wire.Backward(result, gradients):
                return self._backward(result, gradients, uses)

    # --- calls -----------------------------------------------------------------------------------

    def _invoke(self, call: wire.Invoke, uses: list[wire.Use]) -> wire.Outcome:
        assert self.submission is not None
        target = (
            self.submission.definition(call.target)
            if isinstance(call.target, str)
            else self.kept[call.target]
        )
        leaves: list[Tensor] = []  # what collects a gradient
        passed: list[Tensor] = []  # what the student's code holds, and may have changed

        def take(data: wire.TensorData) -> Tensor:
            leaves.append(wire.unpack_tensor(data))
            if data.requires_grad:
                # A copy, so that an in-place change is seen as one and not as an error of autograd.
                leaves[-1].requires_grad_()
                passed.append(leaves[-1].clone())
            else:
                passed.append(leaves[-1])
            return passed[-1]

        arguments = [wire.unpack(value, take) for value in call.arguments]
        with traced(frozenset(call.watch), self._here, call.observe) as (functions, operations):
            if functions is not None:
                functions.uses = uses
            value = target(*arguments)
        if call.construct:
            if not isinstance(value, nn.Module):
                return wire.Returned(wire.Odd(f"{_type_name(value)}, not an nn.Module"), uses)
            self.kept[call.result] = value
            return describe(value)
        reply = wire.Returned(
            wire.pack(value),
            uses,
            inputs=[wire.pack_tensor(tensor) for tensor in passed] if call.observe else None,
            operations=operations.report() if operations else None,
            functions=sorted(functions.names)[:MAX_NAMES] if functions and call.observe else [],
        )
        if call.keep_graph:
            parameters = dict(_named_parameters(target)) if isinstance(target, nn.Module) else {}
            self.kept[call.result] = _Kept(
                list(wire.tensors_of(value)), leaves, parameters, frozenset(call.watch)
            )
        return reply

    def _backward(
        self, result: int, gradients: list[wire.TensorData | None], uses: list[wire.Use]
    ) -> wire.Outcome:  # fmt: skip
        kept = self.kept[result]
        pairs = [
            (output, wire.unpack_tensor(gradient))
            for output, gradient in zip(kept.outputs, gradients, strict=True)
            if gradient is not None and output.requires_grad
        ]
        leaves = [tensor for tensor in kept.inputs if tensor.requires_grad]
        named = {path: p for path, p in kept.parameters.items() if p.requires_grad}
        wanted = [*leaves, *named.values()]
        found: list[Tensor | None] = [None] * len(wanted)
        if pairs and wanted:
            with traced(kept.watch, self._here, False) as (functions, _):
                if functions is not None:
                    functions.uses = uses
                found = list(
                    _grad(
                        [output for output, _ in pairs], wanted, [grad for _, grad in pairs],
                        allow_unused=True, retain_graph=True,
                    )
                )  # fmt: skip
        packed = [None if g is None else wire.pack_tensor(g) for g in found]
        by_leaf = iter(packed[: len(leaves)])
        return wire.Gradients(
            [next(by_leaf) if tensor.requires_grad else None for tensor in kept.inputs],
            dict(zip(named, packed[len(leaves) :], strict=True)),
            uses,
        )

    # --- telling where ---------------------------------------------------------------------------

    def _here(self) -> wire.Place | None:
        return self._place(submission_line(CODE_PREFIX))

    def _place(self, found: tuple[str, int] | None) -> wire.Place | None:
        if found is None or self.submission is None:
            return None
        for file in self.submission.files:
            if file.code_name == found[0]:
                return file.place(found[1])
        return None

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        kind = type(error).__name__[:80]
        try:
            text = str(error)[: wire.MAX_TEXT]
        except BaseException:
            text = "(its text could not be read)"
        if isinstance(error, NotBound):
            kind = "NotBound"
        elif isinstance(error, NameError) and self.submission is not None and error.name:
            text = self.submission.why_missing(str(error.name))
        frames = [
            (frame.filename, frame.lineno or 0)
            for frame in traceback.extract_tb(error.__traceback__, limit=-200)
            if frame.filename.startswith(CODE_PREFIX)
        ]
        return wire.Raised(kind, text, self._place(frames[-1] if frames else None), uses)


# --- modules, seen through nn.Module and never through a student's override ----------------------


def describe(module: nn.Module, values: bool = False) -> wire.Structure:
    """A module's parameters, buffers and submodules."""
    modules = dict(_named_modules(module, remove_duplicate=False))

    def info(path: str, tensor: Tensor) -> wire.ParameterInfo:
        owner = modules[path.rpartition(".")[0]]
        own = type(owner).__module__.startswith("torch.nn")
        return wire.ParameterInfo(
            path, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."),
            type(owner).__name__ if own else "",
            wire.pack_tensor(tensor) if values else None,
        )  # fmt: skip

    return wire.Structure(
        [info(path, tensor) for path, tensor in _named_parameters(module)],
        [info(path, tensor) for path, tensor in _named_buffers(module)],
        [path for path in modules if path],
        bool(module.training),
    )


def convert(module: nn.Module, method: str, argument: str) -> None:
    """Apply ``train``, ``eval`` or ``to`` as `torch.nn.Module` defines them."""
    match method:
        case "train":
            _train(module, True)
        case "eval":
            _train(module, False)
        case "to_dtype":
            _to(module, wire.DTYPES[argument])
        case "to_device":
            _to(module, argument)


def seed_from(key: bytes) -> int:
    """A 63-bit seed for torch, numpy and random."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") >> 1


def _type_name(value: Any) -> str:
    return f"an object of type {type(value).__name__}"[:100]


def serve(receive: Callable[[], bytes | None], send: Callable[[bytes], None]) -> None:
    """Answer requests until the other side closes."""
    guest = Guest()
    while (data := receive()) is not None:
        try:
            reply: wire.Reply = guest.answer(wire.decode_request(data))
            packed = wire.encode(reply)
        except Exception as error:
            packed = wire.encode(wire.Refused(f"{type(error).__name__}: {error}"[: wire.MAX_TEXT]))
        if len(packed) > wire.MAX_REPLY:
            packed = wire.encode(wire.Refused("the reply is larger than the limit"))
        send(packed)
