"""The guest: calls a submission's definitions, and answers requests with the results.

It runs in the student's process, which has no reference, expected value or hidden test. Student
code may forge any reply, and the trusted process trusts none. Jails, workers and the channel within
a process all use the class `Guest`.
"""

from __future__ import annotations

import inspect
import io
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from grader import wire
from grader.guest.loader import LoadedSubmission, NotBound, install
from grader.guest.operands import operands_of
from grader.guest.operations import ForbiddenOperation, forbid
from grader.guest.sites import PROBE, sites_of
from grader.guest.trace import (
    Record,
    called_at,
    follow_threads,
    is_stated,
    names_at,
    raised_at,
    submission_line,
    traced,
)
from grader.wire import payload

# Bound before any student code runs, because a submission may replace functions of torch.
_run_backward = torch.autograd.graph._engine_run_backward
_set_grad_enabled = torch._C._set_grad_enabled
_set_default_dtype = torch.set_default_dtype
_set_default_device = torch.set_default_device


@dataclass(frozen=True)
class _Kept:
    """A result with its graph, for a later backward pass."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    parameters: dict[str, Tensor]
    watch: frozenset[str]


class _Passed:
    """The tensors that arrive with the arguments of a call."""

    def __init__(self, unpack: Callable[[wire.TensorData], Tensor], leaves: Sequence[int]) -> None:
        """`leaves` are the numbers of the tensors whose gradients are computed."""
        self._unpack = unpack
        self._wanted = frozenset(leaves)
        self.leaves: list[Tensor] = []  # all tensors as they arrived; student code may get copies

    def take(self, data: wire.TensorData) -> Tensor:
        """Unpack a tensor for the student's code."""
        leaf = self._unpack(data)
        self.leaves.append(leaf)
        if len(self.leaves) - 1 not in self._wanted:
            return leaf
        # Pass a copy, since autograd refuses to change a leaf in place. Changes are detected later.
        return leaf.requires_grad_().clone()


def _yielded(items: list[Any]) -> Iterator[Any]:
    """A generator of these items, which student code can run through only once."""
    yield from items


SLOTS = ("_parameters", "_buffers")
MAX_NAMES = 500  # names of torch functions in the report of a call
MAX_SEEN = 300  # values that probes see in a call
MAX_NUMBERS = 200  # of a tensor that a probe sees


class Prints(io.TextIOBase):
    """A replacement for standard output that keeps the first characters printed."""

    def __init__(self) -> None:
        self._text = ""

    def writable(self) -> bool:
        """See io.TextIOBase."""
        return True

    def write(self, text: str) -> int:
        """Keep the characters that fit into the limit, and drop the others."""
        self._text += text[: wire.MAX_TEXT - len(self._text)]
        return len(text)

    def take(self) -> str:
        """Return the text printed since the last call, and clear it."""
        text, self._text = self._text, ""
        return wire.clean(text)


class Guest:
    """Serves a submission; keeps the modules and graphs that the current test has made.

    `definition` returns the object that answers an exercise, by name, until an `Open` request loads
    a submission. Tensors are sent as CPU tensors; student code receives and creates them on
    `device`.
    """

    def __init__(
        self,
        definition: Callable[[str], Any] | None = None,
        prints: Prints | None = None,
        device: str = "cpu",
        *,
        take_away: bool = True,
    ) -> None:
        """With `take_away`, remove forbidden operations from torch; otherwise only report them."""
        self._device = device
        self._take_away = take_away
        self._definition = definition
        self._prints = prints or Prints()
        self.submission: LoadedSubmission | None = None
        self.kept: dict[int, Any] = {}
        self._seed = 0  # the seed for the next call's random numbers
        self._seen: list[wire.Seen] = []  # the values that probes saw in the running call
        self._failures: list[BaseException] = []  # exceptions of torch in the running call
        self._gone: frozenset[str] = frozenset()  # torch functions removed from this process

    def answer(self, request: wire.Request) -> wire.Reply:
        """Execute a request; exceptions of student code become `Raised`."""
        match request:
            case wire.Open(sources, wanted, forbidden, others, checks, probes):
                self._gone = forbid(forbidden if self._take_away else ())
                self.submission = LoadedSubmission(sources, wanted, others, checks=checks)
                self._definition = self.submission.definition
                if probes:
                    for file in self.submission.files:
                        file.namespace[PROBE] = self._probe
                listing = self.submission.listing()
                install(self.submission)
                return listing
            case wire.Run(calls):
                outcomes: list[wire.Outcome] = []
                self._prints.take()
                for call in calls:
                    outcomes.append(self._safely(call))
                    if isinstance(outcomes[-1], wire.Raised):
                        break
                return wire.Outcomes(outcomes, self._prints.take())

    def _safely(self, call: wire.Call) -> wire.Outcome:
        uses: list[wire.Use] = []
        self._failures.clear()
        try:
            return self._do(call, uses)
        except BaseException as error:  # student code may raise SystemExit and the like
            return self._raised(error, uses)

    def _do(self, call: wire.Call, uses: list[wire.Use]) -> wire.Outcome:
        match call:
            case wire.Seed(seed):
                self.kept.clear()
                self._seed = seed
                # Undo settings that an earlier call may have changed.
                _set_grad_enabled(True)
                _set_default_dtype(torch.float32)
                if self._device != "cpu":
                    _set_default_device(self._device)
                np.random.seed(seed % 2**32)
                random.seed(seed)
                return wire.Done()
            case wire.Invoke():
                return self._invoke(call, uses)
            case wire.Assign(handle, values):
                parameters = parameters_of(self.kept[handle])
                with torch.no_grad():
                    for path, value in values.items():
                        parameters[path].copy_(self._unpack(value))
                return wire.Done()
            case wire.Convert(handle, method, argument):
                convert(self.kept[handle], method, argument)
                return wire.Done()
            case wire.Describe(handle, values):
                return describe_module(self.kept[handle], self._pack if values else None)
            case wire.Backward(result, gradients):
                return self._backward(result, gradients, uses)
            case wire.Locate(name):
                assert self.submission is not None
                return wire.Located(sites_of(self.submission, name))

    # --- calls -----------------------------------------------------------------------------------

    def _invoke(self, call: wire.Invoke, uses: list[wire.Use]) -> wire.Outcome:
        assert self._definition is not None
        target = (
            self._definition(call.target)
            if isinstance(call.target, str)
            else self.kept[call.target]
        )
        passed = _Passed(self._unpack, call.leaves)
        arguments = [
            payload.unpack(
                value,
                self._unpack if isinstance(value, wire.ModelData) else passed.take,
                lambda name, fields: self._class(name, target)(**fields),
            )
            for value in call.arguments
        ]
        if call.result != wire.TRIAL:
            self._draw_anew()
        record = Record(
            frozenset(call.watch),
            self._here,
            uses,
            self._gone,
            frozenset(call.altered),
            failures=self._failures,
        )
        self._seen.clear()
        elsewhere = any(tensor.device.type != self._device for tensor in passed.leaves)
        handed = [
            _yielded(value) if isinstance(sent, wire.Batches) else value
            for sent, value in zip(call.arguments, arguments, strict=True)
        ]
        with traced(record, call.observe, one_device=elsewhere):
            if call.keywords:
                value = target(**dict(zip(call.keywords, handed, strict=True)))
            else:
                value = target(*handed)
            # Read the counts before packing, which runs operations too. Pack inside the trace,
            # since packing a result may run student code.
            operations = record.operations if call.observe else None
            functions = sorted(record.names)[:MAX_NAMES] if call.observe else []
            packed = payload.pack(value, self._pack)
            models = [
                state_of(model, sent, self._pack)
                for sent, model in zip(call.arguments, arguments, strict=True)
                if isinstance(sent, wire.ModelData)
            ]
        if call.construct:
            if not isinstance(value, nn.Module):
                kind = f"an object of type {type(value).__name__}"[:100]
                return wire.Returned(wire.Odd(wire.clean(f"{kind}, not an nn.Module")), uses)
            if self._device != "cpu":
                convert(value, "to_device", self._device)
            self.kept[call.result] = value
            return describe_module(value, uses=uses)
        pairs = zip(call.arguments, arguments, strict=True)
        reply = wire.Returned(
            packed,
            uses,
            changed=[n for n, pair in enumerate(pairs) if self._changed(*pair)],
            operations=operations,
            functions=functions,
            seen=[*self._seen],
            models=models,
        )
        if call.keep_graph:
            parameters = parameters_of(target) if isinstance(target, nn.Module) else {}
            self.kept[call.result] = _Kept(
                list(payload.tensors_of(value)), passed.leaves, parameters, frozenset(call.watch)
            )
        return reply

    def _probe(self, number: int, value: Any) -> Any:
        """Keep a value of a probed text for the reply, and return it."""
        if len(self._seen) < MAX_SEEN:
            self._seen.append(wire.Seen(number, payload.pack(value, self._pack_few)))
        return value

    def _class(self, name: str, target: Any) -> Any:
        """The dataclass that the code of a function or module calls by this name."""
        called = type(target).forward if isinstance(target, nn.Module) else target
        scope = getattr(inspect.unwrap(called), "__globals__", {})
        if self.submission is not None:
            return self.submission.named(name, scope.get("__name__"))
        return scope[name]

    def _draw_anew(self) -> None:
        """Seed torch's random generators for a call, so that earlier draws do not matter.

        Then dropout in two equal modules drops the same entries, even if their constructors drew
        different numbers.
        """
        # torch.manual_seed would take a millisecond: it also seeds each accelerator.
        torch.default_generator.manual_seed(self._seed)
        if self._device != "cpu":
            getattr(torch, self._device).manual_seed(self._seed)
        self._seed = (self._seed + 1) % 2**63

    def _backward(
        self, result: int, gradients: list[wire.TensorData | None], uses: list[wire.Use]
    ) -> wire.Outcome:
        kept = self.kept[result]
        pairs = [
            (output, self._unpack(gradient))
            for output, gradient in zip(kept.outputs, gradients, strict=True)
            if gradient is not None and output.requires_grad
        ]
        leaves = [tensor for tensor in kept.inputs if tensor.requires_grad]
        named = {path: p for path, p in kept.parameters.items() if p.requires_grad}
        wanted = [*leaves, *named.values()]
        found: list[Tensor | None] = [None] * len(wanted)
        if pairs and wanted:
            with traced(Record(kept.watch, self._here, uses, self._gone), observe=False):
                # torch.autograd.grad is not used: the trace would record that call as the
                # student's, and would record nothing inside it.
                found = list(
                    _run_backward(
                        tuple(output for output, _ in pairs),
                        tuple(grad for _, grad in pairs),
                        True,
                        False,
                        tuple(wanted),
                        allow_unreachable=True,
                        accumulate_grad=False,
                    )
                )
        packed = [None if g is None else self._pack(g) for g in found]
        by_leaf = iter(packed[: len(leaves)])
        return wire.Gradients(
            [next(by_leaf) if tensor.requires_grad else None for tensor in kept.inputs],
            dict(zip(named, packed[len(leaves) :], strict=True)),
            uses,
        )

    # --- tensors in messages and on the device ---------------------------------------------------

    def _pack(self, tensor: Tensor) -> wire.TensorData:
        return payload.pack_tensor(tensor, home=self._device)

    def _pack_few(self, tensor: Tensor) -> wire.TensorData:
        """A tensor with its numbers if they are few; else on the device meta."""
        few = tensor.numel() <= MAX_NUMBERS and tensor.device.type == self._device
        return self._pack(tensor if few else tensor.to("meta"))

    def _unpack(self, data: wire.TensorData) -> Tensor:
        tensor = payload.unpack_tensor(data)
        return tensor if data.device != "cpu" else tensor.to(self._device)

    def _changed(self, sent: wire.Input, argument: Any) -> bool:
        """Whether an argument now differs in any byte from the message with which it arrived.

        The trusted side finds changes of a `ModelData`, whose weights it gets.
        """
        if isinstance(sent, wire.ModelData):
            return False
        if isinstance(sent, wire.Batches):
            sent = wire.Items("list", sent.items)
        try:
            now = payload.pack_input(argument, self._pack)
        except Exception:  # it holds a value that cannot be sent, or a model lost its weights
            return True
        # As bytes, NaN is equal to itself, and 1 is not equal to 1.0 or True.
        return wire.encode_input(now) != wire.encode_input(sent)

    # --- lines of the submission -----------------------------------------------------------------

    def _here(self) -> wire.Place | None:
        return self._place(submission_line())

    def _place(self, found: tuple[str, int] | None) -> wire.Place | None:
        if found is None or self.submission is None:
            return None
        for file in self.submission.files:
            if file.code_name == found[0]:
                return file.place(found[1])
        return None

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        kind = wire.clean(type(error).__name__[:80])
        try:
            text = wire.clean(str(error)[: wire.MAX_TEXT])
        except BaseException:
            text = "(its text could not be read)"
        if isinstance(error, NotBound):
            kind = "NotBound"
        elif isinstance(error, NameError) and self.submission is not None and error.name:
            text = self.submission.why_missing(str(error.name), names_at(error))
            text = text[: wire.MAX_TEXT]
        place, caller = self._place(raised_at(error)), self._place(called_at(error))
        unfinished = (NotImplementedError, NotBound, ForbiddenOperation)
        ordinary = isinstance(error, Exception) and not isinstance(error, unfinished)
        by_torch = any(error is failure for failure in self._failures) and not is_stated(error)
        sizes = isinstance(error, (RuntimeError, IndexError, TypeError)) and not is_stated(error)
        operands = operands_of(error) if sizes else {}
        return wire.Raised(kind, text, place, ordinary, by_torch, uses, operands, caller)


# --- modules, read from nn.Module's own attributes, so that no method of the student's runs ------


def walk(module: nn.Module, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """A module and its submodules, with their paths; a shared module appears once for each path."""
    yield path, module
    for name, child in _slots(module, "_modules").items():
        if isinstance(child, nn.Module):
            yield from walk(child, f"{path}.{name}".lstrip("."))


def _slots(module: nn.Module, kind: str) -> dict[str, Any]:
    return object.__getattribute__(module, "__dict__").get(kind) or {}


def tensors_in(module: nn.Module, kind: str) -> dict[str, tuple[Tensor, nn.Module]]:
    """A module's parameters or buffers by path, each with the submodule that owns it.

    `kind` is ``_parameters`` or ``_buffers``. A shared tensor appears once.
    """
    found: dict[int, tuple[str, Tensor, nn.Module]] = {}
    for path, owner in walk(module):
        for name, tensor in _slots(owner, kind).items():
            if isinstance(tensor, Tensor):
                found.setdefault(id(tensor), (f"{path}.{name}".lstrip("."), tensor, owner))
    return {path: (tensor, owner) for path, tensor, owner in found.values()}


def parameters_of(module: nn.Module) -> dict[str, Tensor]:
    """A module's parameters, by path."""
    return {path: tensor for path, (tensor, _) in tensors_in(module, "_parameters").items()}


def describe_module(
    module: nn.Module,
    pack: Callable[[Tensor], wire.TensorData] | None = None,
    uses: list[wire.Use] | None = None,
) -> wire.Structure:
    """A module's parameters, buffers and submodules; with the values if `pack` is given."""

    def info(path: str, tensor: Tensor, owner: nn.Module) -> wire.ParameterInfo:
        own = type(owner).__module__.startswith("torch.nn")
        lazy = is_lazy(tensor)  # a lazy parameter has no shape before the module's first call
        known = tensor.dtype in payload.NAMES and not lazy
        return wire.ParameterInfo(
            path,
            () if lazy else tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            type(owner).__name__[: wire.MAX_NAME] if own else "",
            pack(tensor) if pack and known else None,
            bool(tensor.requires_grad),
        )

    return wire.Structure(
        [info(path, *found) for path, found in tensors_in(module, "_parameters").items()],
        [info(path, *found) for path, found in tensors_in(module, "_buffers").items()],
        [path for path, _ in walk(module) if path],
        bool(module.training),
        uses or [],
    )


def state_of(
    model: nn.Module, sent: wire.ModelData, pack: Callable[[Tensor], wire.TensorData]
) -> wire.ModelState:
    """The weights and buffers that were sent with a model, and its modes, as they are now.

    Student code may have replaced a layer by something else: what cannot be found is left out.
    """
    parts = dict(walk(model))
    state: dict[str, wire.TensorData] = {}
    for path in sent.state:
        owner, _, name = path.rpartition(".")
        found = [_slots(parts[owner], kind).get(name) for kind in SLOTS] if owner in parts else []
        for tensor in found:
            if isinstance(tensor, Tensor):
                with suppress(payload.Unsendable):
                    state[path] = pack(tensor)
    training = (
        object.__getattribute__(part, "__dict__").get("training") for part in parts.values()
    )
    return wire.ModelState(state, [mode is True for mode in training])


def convert(module: nn.Module, method: str, argument: str) -> None:
    """Apply ``train``, ``eval`` or ``to`` to a module, without calling its own methods."""
    for _, part in walk(module):
        if method in ("train", "eval"):
            object.__setattr__(part, "training", method == "train")
            continue
        for kind in SLOTS:
            slots = _slots(part, kind)
            for name, tensor in slots.items():
                if isinstance(tensor, Tensor):
                    slots[name] = _converted(tensor, method, argument)


def _converted(tensor: Tensor, method: str, argument: str) -> Tensor:
    """Convert a parameter or buffer to another dtype or device.

    A change of the dtype keeps the tensor object. A move to another device makes a new object.
    """
    if method == "to_dtype":
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(payload.DTYPES[argument])
        return tensor
    if tensor.device.type == argument:
        return tensor
    moved = tensor.detach().to(argument)
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(moved, requires_grad=tensor.requires_grad)
    return moved


def serve(
    receive: Callable[[], bytes | None],
    send: Callable[[bytes], None],
    device: str = "cpu",
    *,
    take_away: bool = True,
) -> None:
    """Answer requests until `receive` returns None; see `Guest` for `take_away`."""
    prints = Prints()
    sys.stdout = sys.stderr = prints
    follow_threads()
    guest = Guest(prints=prints, device=device, take_away=take_away)
    if device != "cpu":
        _set_default_device(device)
    try:
        while (data := receive()) is not None:
            send(_answered(guest, data))
    finally:
        if device != "cpu":
            _set_default_device(None)


def _answered(guest: Guest, data: bytes) -> bytes:
    try:
        reply: wire.Reply = guest.answer(wire.decode_request(data))
        packed = wire.encode(reply)
    except Exception as error:
        packed = wire.encode(
            wire.Refused(wire.clean(f"{type(error).__name__}: {error}"[: wire.MAX_TEXT]))
        )
    if len(packed) > wire.MAX_REPLY:
        packed = wire.encode(wire.Refused("the reply is larger than the limit"))
    return packed
