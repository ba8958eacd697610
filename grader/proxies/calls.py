"""Calls student code in another process, and sends gradients back through these calls.

Results are rebuilt as plain tensors and checked against the contract before a test sees them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import (
    Contract,
    ContractBroken,
    Signature,
    bind,
    call_order,
    check_result,
)
from grader.course.forms import ANYTHING, NOTHING
from grader.sandbox.session import Session, StudentLost
from grader.wire import payload
from grader.wire.models import TableModel, set_state

MAX_WEIGHTS = 2**20  # elements of all parameters; the course's largest module has a few thousand
MAX_PARAMETERS = 500
MAX_PATH, MAX_STEPS = 300, 20  # characters and dots in a parameter's path
MAX_OPERAND = 80  # characters in the name of a tensor that the failing line uses


class StudentRaised(Exception):
    """An exception in student code, as text: its type, its message, and the student's line."""

    def __init__(
        self,
        kind: str,
        text: str,
        place: wire.Place | None,
        ordinary: bool = True,
        by_torch: bool = False,
        operands: Mapping[str, tuple[int, ...]] | None = None,
        sizes: Mapping[str, int] | None = None,
        caller: wire.Place | None = None,
    ) -> None:
        """`operands` maps names of tensors to shapes; `sizes` has the contract's dimensions.

        `caller` is the student's line that called the function in which `place` is.
        """
        super().__init__(f"{kind}: {text}")
        self.by_torch = by_torch
        self.operands = operands or {}
        self.sizes = sizes or {}
        self.kind = kind
        self.text = text
        self.place = place
        self.caller = caller
        self.ordinary = ordinary


class AuthorError(Exception):
    """Raised if a test asks for something that a proxy lacks; the text says what to use."""


@dataclass(frozen=True)
class Observation:
    """A call's result, the arguments that it changed, and the torch operations that it ran."""

    result: Any
    changed: frozenset[int]  # the arguments that this or an earlier call changed, by number
    operations: wire.Operations
    functions: frozenset[str]  # names of the torch functions that were called


CallResult = wire.Value | wire.Raised  # a call's result or exception
ArgumentOrder = tuple[list[int], list[str]]  # the arguments' numbers, and their keywords


@dataclass
class Seen:
    """The record of a case of a test, for later cases, the diagnosis and the verdict."""

    printed: str = ""
    results: list[CallResult] = field(default_factory=list)  # of calls; also observations, as text
    made: dict[int, CallResult] = field(default_factory=dict)  # descriptions of modules, by handle
    uses: dict[str, list[wire.Use]] = field(default_factory=dict)  # forbidden uses, by exercise
    changed: dict[str, set[int]] = field(default_factory=dict)  # changed arguments, by exercise
    habits: dict[str, tuple[object, ...]] = field(default_factory=dict)  # see `Adoption.habit`

    def evidence(self) -> tuple[CallResult, ...]:
        """The results of calls, or the modules' descriptions if the case failed before any call."""
        return tuple(self.results or self.made.values())

    @property
    def values(self) -> list[CallResult]:
        """The results of calls, without the observations."""
        return [result for result in self.results if not isinstance(result, str)]

    def used(self) -> tuple[str, ...]:
        """The names of the used forbidden functions, sorted."""
        return tuple(sorted({use.function for uses in self.uses.values() for use in uses}))

    def add(self, later: Seen) -> None:
        """Add the parts of the next case's record that later cases need."""
        for name, uses in later.uses.items():
            self.uses.setdefault(name, []).extend(uses)
        for name, places in later.changed.items():
            self.changed.setdefault(name, set()).update(places)
        for name, habits in later.habits.items():
            here = self.habits.get(name, ())
            self.habits[name] = (*here, *(habit for habit in habits if habit not in here))


@dataclass
class Calls:
    """The state that all proxies of a submission share."""

    session: Session
    contracts: Mapping[str, Contract]
    argument_aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parameter_aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    forbidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by exercise
    orders: dict[tuple[str, int, str], ArgumentOrder] = field(
        default_factory=dict
    )  # see `order_of`
    before: Seen = field(default_factory=Seen)  # the records of the cases that have ended
    seen: Seen = field(default_factory=Seen)  # the record of the running case
    _hidden: bool = False  # whether the running test is hidden

    def __post_init__(self) -> None:
        self.found = {found.name: found for found in self.session.listing.found}

    def begin(self, seed: int, exercise: str, memory_mb: int | None, hidden: bool) -> None:
        """Begin a case: add the last case's record to `before`, and empty `seen`."""
        self.end()
        self.session.begin_case(seed, exercise, memory_mb)
        self._hidden = hidden

    def end(self) -> None:
        """End a case: add its record to `before`, and empty `seen`."""
        self.before.add(self.seen)
        self.seen = Seen()

    def uses(self, exercise: str) -> list[wire.Use]:
        """The uses of forbidden functions in an exercise so far."""
        return [*self.before.uses.get(exercise, ()), *self.seen.uses.get(exercise, ())]

    def changed(self, exercise: str) -> frozenset[int]:
        """The numbers of the arguments that an exercise has changed so far."""
        return frozenset(self.before.changed.get(exercise, ())) | frozenset(
            self.seen.changed.get(exercise, ())
        )

    def habits(self, exercise: str) -> tuple[object, ...]:
        """The habits by which an exercise's earlier modules were matched; see `Adoption.habit`."""
        return (*self.before.habits.get(exercise, ()), *self.seen.habits.get(exercise, ()))

    def note(self, exercise: str, outcome: wire.Outcome, own_weights: bool = False) -> wire.Outcome:
        """Record a call's outcome and its uses of forbidden functions; return the outcome.

        With `own_weights`, the module still has its own random weights. Then the numbers of the
        result depend on these weights and cannot identify a mistake: the record leaves them out.
        """
        if isinstance(outcome, wire.Returned):
            value = _promised(self.contracts.get(exercise), outcome.value)
            self.seen.results.append(_without_numbers(value) if own_weights else value)
        elif isinstance(outcome, wire.Raised):
            # The record must not depend on the names of the student's variables.
            self.seen.results.append(msgspec.structs.replace(outcome, operands={}, caller=None))
        elif isinstance(outcome, wire.Gradients):
            self.seen.results += outcome.inputs
        if not isinstance(outcome, wire.Done | wire.Located):
            for use in outcome.uses[: wire.MAX_USES]:
                self.note_use(exercise, use.function, use.place)
        return outcome

    def note_use(self, exercise: str, function: str, place: wire.Place | None) -> bool:
        """Record the use of a forbidden function; return False if the function is not forbidden.

        The function and its place are shown to people, and student code may have forged the reply.
        Therefore the function must be on the course's list, and the place must be a line of the
        submission. In a hidden test the place is dropped: student code could choose a line that
        reveals the test's input.
        """
        if function not in self.forbidden.get(exercise, ()):
            return False
        shown = None if self._hidden else self.session.line(place)
        self.seen.uses.setdefault(exercise, []).append(wire.Use(function, shown))
        return True


def _promised(contract: Contract | None, value: wire.Value) -> wire.Value:
    """Remove the items of a result that the contract does not describe, such as a cache.

    Then the form of a cache does not matter when the result identifies a mistake.
    """
    signature = contract and contract.called
    if signature and leaves_result(signature):
        return None
    parts = getattr(signature and signature.returns, "parts", ())
    if ANYTHING not in parts or not isinstance(value, wire.Items):
        return value
    if len(value.items) != len(parts):
        return value
    pairs = zip(value.items, parts, strict=True)
    return wire.Items(value.kind, [item for item, form in pairs if form != ANYTHING])


def _without_numbers(value: wire.Value) -> wire.Value:
    """Put a result's tensors on the device meta, and replace their numbers by a checksum.

    A diagnosis compares such tensors by dtype and shape. The checksums only show whether two
    answers also gave equal numbers.
    """
    match value:
        case wire.TensorData(data=data):
            checksum = zlib.crc32(data).to_bytes(4)
            return msgspec.structs.replace(value, data=checksum, device="meta")
        case wire.Items(kind, items):
            return wire.Items(kind, list(map(_without_numbers, items)))
        case wire.Entries(entries):
            plain = [(key, _without_numbers(item)) for key, item in entries]
            return msgspec.structs.replace(value, entries=plain)
    return value


# --- calls ---------------------------------------------------------------------------------------


def make_calls(
    calls: Calls,
    contract: Contract,
    target: str | int,
    argument_lists: Sequence[Sequence[Any]],
    made_with: Sequence[Any] = (),
    mirrors: Mapping[str, Tensor] | None = None,
    own_weights: bool = False,
) -> list[Any]:
    """Call a function or module with each list of arguments, and return the checked results.

    All calls are sent in one message.
    """
    pending = [
        _Pending(calls, contract, target, list(arguments), made_with, mirrors or {})
        for arguments in argument_lists
    ]
    outcomes = calls.session.run(*(call.message for call in pending))
    for outcome in outcomes:
        calls.note(contract.name, outcome, own_weights)
    if len(outcomes) < len(pending) and not isinstance(first_outcome(outcomes), wire.Raised):
        raise StudentLost("crashed", "the reply has fewer results than calls")
    return [call.finish(outcome) for call, outcome in zip(pending, outcomes, strict=False)]


def observed(
    calls: Calls,
    contract: Contract,
    target: str | int,
    arguments: Sequence[Any],
    made_with: Sequence[Any] = (),
    altered: Sequence[str] = (),
    own_weights: bool = False,
) -> Observation:
    """Make a single call under observation, and return its `Observation`."""
    call = _Pending(
        calls, contract, target, list(arguments), made_with, {}, observe=True, altered=altered
    )
    seen = first_outcome(calls.session.run(call.message))
    outcome = calls.note(contract.name, seen, own_weights)
    result = call.finish(outcome)
    assert isinstance(outcome, wire.Returned)
    if outcome.operations is None:
        raise StudentLost("crashed", "the reply lacks the counts of operations")
    changed = calls.changed(contract.name)
    return Observation(result, changed, outcome.operations, frozenset(outcome.functions))


class _Pending:
    """A call in progress: builds the message, and turns the reply into a result."""

    def __init__(
        self,
        calls: Calls,
        contract: Contract,
        target: str | int,
        arguments: list[Any],
        made_with: Sequence[Any],
        mirrors: Mapping[str, Tensor],
        observe: bool = False,
        altered: Sequence[str] = (),
    ) -> None:
        self.calls = calls
        self.session = calls.session
        self.contract = contract
        self.mirrors = mirrors
        self.result = next(self.session.handles)
        self.signature = contract.call if contract.forward is None else contract.forward
        learned = (mirror.dtype for mirror in mirrors.values() if mirror.requires_grad)
        self.binding = bind(contract, arguments, made_with, next(learned, None))
        self.given = list(payload.tensors_of(arguments))
        self.graph = (
            torch.is_grad_enabled()
            and not observe
            and (bool(mirrors) or any(leaf.requires_grad for leaf in self.given))
        )
        part = "arguments" if contract.forward is None else "forward"
        self.order, names = order_of(calls, self.signature, contract.name, len(arguments), part)
        ordered = [arguments[index] for index in self.order]
        # The test's own models, each with its parameter's name.
        pairs = [(self.signature.parameters[at].name, arguments[at]) for at in self.order]
        self.models = [(name, value) for name, value in pairs if isinstance(value, nn.Module)]
        # Replies list gradients in the order in which tensors were sent.
        in_order = self.order == sorted(self.order)
        self.sent = self.given if in_order else list(payload.tensors_of(ordered))
        leaves = [
            number
            for number, tensor in enumerate(self.sent if self.graph else ())
            if tensor.requires_grad and tensor.is_floating_point()
        ]
        self.message = wire.Invoke(
            target,
            packed_arguments(contract.name, self.signature, arguments, self.order),
            names,
            self.result,
            leaves,
            keep_graph=self.graph,
            watch=calls.forbidden.get(contract.name, ()),
            observe=observe,
            altered=tuple(altered),
        )

    def finish(self, outcome: wire.Outcome) -> Any:
        """Check the result against the contract, and attach it to this process's autograd graph."""
        if not isinstance(outcome, wire.Returned):
            raise unexpected(outcome, self.binding.sizes)
        for number in outcome.changed:
            if 0 <= number < len(self.order):
                changed = self.calls.seen.changed.setdefault(self.contract.name, set())
                changed.add(self.order[number])
        value = plain_value(outcome.value)
        outputs = list(payload.tensors_of(value)) if self.graph else []
        if any(tensor.is_floating_point() for tensor in outputs):
            attached = _RemoteCall.apply(self, outputs, *self.sent, *self.mirrors.values())  # type: ignore[no-untyped-call]
            value = _replaced(value, iter(attached))
        value = None if leaves_result(self.signature) else value
        value = check_result(self.contract.name, self.signature, self.binding, value)
        self._update_models(outcome.models)
        return value

    def _update_models(self, states: Sequence[wire.ModelState]) -> None:
        """Give the test's models the weights and modes that student code left in its copies.

        Only numbers are taken, in the forms that were sent: the test's models keep their layers.
        """
        sent = [value for value in self.message.arguments if isinstance(value, wire.ModelData)]
        models = [model for model in self.models if not isinstance(model[1], TableModel)]
        if len(states) != len(sent):
            raise StudentLost("crashed", "the reply has other models than were sent")
        found = []
        for (name, _), before, after in zip(models, sent, states, strict=True):
            require_same_layers(name, before, after)
            found.append({path: plain_value(data) for path, data in after.state.items()})
        for (_, model), weights, before, after in zip(models, found, sent, states, strict=True):
            set_state(model, weights, after.training)
            if (before.state, before.training) != (after.state, after.training):
                modes = wire.Items("list", [*after.training])
                now = wire.Entries([*after.state.items(), ("training", modes)])
                self.calls.seen.results.append(now)

    def backward(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the sent tensors, then of the parameters, from those of the results."""
        packed = [None if g is None else payload.pack_tensor(g) for g in gradients]
        outcome = first_outcome(self.session.run(wire.Backward(self.result, packed)))
        self.calls.note(self.contract.name, outcome)
        if not isinstance(outcome, wire.Gradients):
            raise unexpected(outcome)
        if len(outcome.inputs) != len(self.sent):
            raise StudentLost("crashed", "the reply has gradients for other inputs than were sent")
        received = [plain_value(value) for value in outcome.inputs]
        received += [
            None if (data := outcome.parameters.get(path)) is None else plain_value(data)
            for path in self.mirrors
        ]
        for tensor, gradient in zip([*self.sent, *self.mirrors.values()], received, strict=True):
            if gradient is not None and (
                not isinstance(gradient, Tensor)
                or gradient.shape != tensor.shape
                or gradient.dtype != tensor.dtype
                or gradient.device != tensor.device
            ):
                raise StudentLost("crashed", "a gradient has another form than its tensor")
        return received


class _RemoteCall(torch.autograd.Function):
    """Attaches the result of a remote call to the autograd graph of this process."""

    @staticmethod
    def forward(ctx: Any, pending: _Pending, outputs: list[Tensor], *_: Tensor) -> Any:
        """Return the outputs, which have already arrived, as part of the graph."""
        ctx.pending = pending
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(o for o in outputs if not o.is_floating_point()))
        return tuple(output.clone() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        """Ask the student's process for the gradients."""
        return None, None, *ctx.pending.backward(gradients)


def leaves_result(signature: Signature) -> bool:
    """Whether a call's result does not matter, since the function changes a model."""
    return signature.returns == NOTHING and any(p.kind == "model" for p in signature.parameters)


def packed_arguments(
    name: str, signature: Signature, arguments: Sequence[Any], order: Sequence[int]
) -> list[wire.Input]:
    """Pack the arguments of a call in this order; `AuthorError` for one that cannot be sent."""
    packed = []
    for index in order:
        try:
            value = payload.pack_input(arguments[index])
            if signature.parameters[index].kind == "batches" and isinstance(value, wire.Items):
                value = wire.Batches(value.items)
            packed.append(value)
        except payload.Unsendable as error:
            parameter = signature.parameters[index].name
            raise AuthorError(f"{name}, argument {parameter}: {error}") from None
    return packed


def order_of(calls: Calls, signature: Signature, name: str, count: int, part: str) -> ArgumentOrder:
    """The order in which to pass `count` arguments, and their keywords if passed by name."""
    key = name, count, part
    if key not in calls.orders:
        found = calls.found.get(name)
        listed = (found.forward if part == "forward" else found.arguments) if found else None
        calls.orders[key] = argument_order(signature, listed, count, calls.argument_aliases)
    return calls.orders[key]


def argument_order(
    signature: Signature,
    listed: Sequence[wire.Argument] | None,
    count: int,
    aliases: Mapping[str, Sequence[str]],
) -> ArgumentOrder:
    """The order and keywords of `order_of`, for a definition with the parameters `listed`."""
    by_position = list(range(count)), list[str]()
    if not listed or any(argument.kind in ("star", "double_star") for argument in listed):
        return by_position
    names = {argument.name: argument.optional for argument in listed}
    order = call_order(signature, names, aliases)
    if order is None:
        return by_position
    given = {name: index for name, index in order.items() if index < count}
    if len(given) < count:
        return by_position
    return list(given.values()), list(given)


def mirror_of(info: wire.ParameterInfo) -> Tensor:
    """Make a local tensor with a parameter's shape and dtype, which collects its gradient."""
    dtype = payload.DTYPES.get(info.dtype, torch.uint8)
    mirror = torch.zeros(info.shape, dtype=dtype)
    return mirror.requires_grad_() if dtype.is_floating_point else mirror


def require_same_layers(name: str, before: wire.ModelData, after: wire.ModelState) -> None:
    """Raise `ContractBroken` unless a model has the same weights and layers after a call.

    `name` is that of the parameter. Shapes and dtypes are compared before any tensor is rebuilt.
    """
    if after.state.keys() - before.state.keys():
        raise StudentLost("crashed", "the reply has other weights than were sent")
    for path, sent in before.state.items():
        got = after.state.get(path)
        form = (got.shape, got.dtype, got.device) if got else None
        if got and got.array:
            raise StudentLost("crashed", "the reply has an array in place of a weight")
        if form != (sent.shape, sent.dtype, sent.device):
            now = f"has shape {got.shape} and dtype {got.dtype[:20]}" if got else "is gone"
            on_meta = " without values" if got and got.device == "meta" else ""
            raise ContractBroken(
                f"{path} of `{name}` {now}{on_meta} after the call; before, it had shape "
                f"{sent.shape} and dtype {sent.dtype}. {KEEP_LAYERS}"
            )
    if len(after.training) != len(before.training):
        raise ContractBroken(f"`{name}` has more or fewer layers after the call. {KEEP_LAYERS}")


KEEP_LAYERS = "Change the weights of the layers that you are given, and keep the layers"


def require_believable(structure: wire.Structure) -> None:
    """Raise `StudentLost` for a module that is malformed, or too large to rebuild here."""
    infos = [*structure.parameters, *structure.buffers]
    for info in infos:
        if len(info.shape) > wire.MAX_DIMENSIONS or any(size < 0 for size in info.shape):
            raise StudentLost("crashed", f"{info.path[:80]} has an impossible shape")
    if any(len(info.path) > MAX_PATH or info.path.count(".") > MAX_STEPS for info in infos):
        raise StudentLost("crashed", "the path of a parameter or buffer is too long")
    if len({info.path for info in infos}) < len(infos):
        raise StudentLost("crashed", "two parameters or buffers have the same path")
    # An axis of size 0 must not hide huge axes: torch refuses them even in an empty tensor.
    sizes = (math.prod(max(size, 1) for size in info.shape) for info in structure.parameters)
    if len(structure.parameters) > MAX_PARAMETERS or sum(sizes) > MAX_WEIGHTS:
        raise StudentLost("memory", "the module has more weights than any exercise asks for")


def first_outcome(outcomes: list[wire.Outcome]) -> wire.Outcome:
    """The first outcome, or the last outcome if it is an exception."""
    if not outcomes:
        raise StudentLost("crashed", "the reply has fewer results than calls")
    return outcomes[-1] if isinstance(outcomes[-1], wire.Raised) else outcomes[0]


def unexpected(outcome: wire.Outcome, sizes: Mapping[str, int] | None = None) -> Exception:
    """The exception to raise for an outcome that is an exception or has the wrong type.

    `sizes` are the sizes of the contract's dimensions in this call.
    """
    if isinstance(outcome, wire.Raised):
        out_of_memory = outcome.kind == "MemoryError" or "allocate memory" in outcome.text
        if out_of_memory:
            return StudentLost("memory", "it asked for more memory than a submission may use")
        # The guest limits these lengths too, but student code may have replaced the guest.
        kind, text = outcome.kind[:80], outcome.text[: wire.MAX_TEXT]
        operands = {
            name[:MAX_OPERAND]: shape[: wire.MAX_DIMENSIONS]
            for name, shape in islice(outcome.operands.items(), wire.MAX_OPERANDS)
        }
        return StudentRaised(
            kind,
            text,
            outcome.place,
            outcome.ordinary,
            outcome.by_torch,
            operands,
            sizes,
            outcome.caller,
        )
    return StudentLost("crashed", "the reply was of the wrong type")


def plain_value(value: wire.Value) -> Any:
    """Decode a value of the wire; raise `StudentLost` if that fails."""
    try:
        return payload.unpack(value)
    except (wire.WireError, RuntimeError, ValueError, OverflowError) as error:
        raise StudentLost("crashed", f"the reply could not be read ({error})") from None


def _replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        return type(value)(_replaced(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _replaced(item, tensors) for key, item in value.items()}
    if (record := payload.fields_of(value)) is not None:
        return payload.Record(record[0], _replaced(record[1], tensors))
    return value
