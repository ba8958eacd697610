"""The proxies that a test sees: ``student.softmax_naive(x)``, ``student.CausalAttention(3, 4)``.

A call runs in the student's process. The result comes back as plain tensors, which are checked
against the contract. In the test's process the call is a `torch.autograd.Function`: ``backward()``
sends the output's gradient to the student's process, and receives the gradients of inputs and
parameters. Thus a test can use the student's module like the reference's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract, ContractBroken, fits
from grader.proxies.calls import (
    AuthorError,
    Calls,
    Observation,
    first_outcome,
    make_calls,
    mirror_of,
    observed,
    order_of,
    packed_arguments,
    plain_value,
    require_believable,
    unexpected,
)
from grader.wire import payload


class Student:
    """A submission; its attributes are proxies of the course's exercises."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> RemoteFunction | RemoteClass:
        contract = self._calls.contracts.get(name)
        if contract is None:
            raise AttributeError(f"the course has no exercise {name!r}")
        kind = RemoteFunction if contract.kind == "function" else RemoteClass
        return kind(self._calls, contract)


class _Remote:
    """The base of proxies: comparing, indexing or iterating over a proxy raises `AuthorError`."""

    def __init__(self, calls: Calls, contract: Contract) -> None:
        self._calls = calls
        self.contract = contract
        self.name = contract.name

    def remember(self, observation: str) -> None:
        """Record, for the diagnosis, an observation that the results of calls do not show."""
        self._calls.seen.results.append(observation)

    def remember_refusal(self) -> None:
        """Record that the last call raised an expected exception, without the exception's type.

        The test accepts any exception, so the type cannot identify a mistake.
        """
        results = self._calls.seen.results
        if results and isinstance(results[-1], wire.Raised):
            results[-1] = "raised, as it should"

    def _refuse(self, *_: object) -> NoReturn:
        raise AuthorError(
            "a student's definition is not a value: call it, and pass the returned tensors to "
            "assert_agrees(theirs, ours)"
        )

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __bool__ = __iter__ = __len__ = __getitem__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> NoReturn:
        raise AuthorError(
            f"a proxy has no {name!r}: a function can be called, and has each and observe; a "
            "module also has train, eval, to, double, parameters, values, buffers, modules, reset"
        )


class _RemoteCallable(_Remote):
    """A proxy that can be called once, many times or under observation."""

    _target: str | int  # a function's name, or a module's handle
    made_with: Sequence[Any] = ()  # the arguments with which a module was made
    _mirrors: Mapping[str, Tensor] = {}  # see `parameters`
    _own_weights = False  # whether a module still has its initial random weights

    def __call__(self, *arguments: Any) -> Any:
        """Call the student's code in its process, and check the result against the contract."""
        return self.each([arguments])[0]

    def each(self, argument_lists: Sequence[Sequence[Any]]) -> list[Any]:
        """Make several calls in a single round trip."""
        return make_calls(
            self._calls,
            self.contract,
            self._target,
            argument_lists,
            self.made_with,
            self._mirrors,
            self._own_weights,
        )

    def observe(self, *arguments: Any, altered: Sequence[str] = ()) -> Observation:
        """Make a call and count its operations; functions in `altered` return wrong results."""
        return observed(
            self._calls,
            self.contract,
            self._target,
            arguments,
            self.made_with,
            altered,
            self._own_weights,
        )


class RemoteFunction(_RemoteCallable):
    """A function of the submission."""

    def __init__(self, calls: Calls, contract: Contract) -> None:
        super().__init__(calls, contract)
        self._target = contract.name


class RemoteClass(_Remote):
    """A class of the submission; calling it makes a module in the student's process."""

    def __call__(self, *arguments: Any) -> RemoteModule:
        """Make a module in the student's process."""
        calls, session = self._calls, self._calls.session
        fits(self.contract.call, arguments, self.name)
        handle = next(session.handles)
        order, names = order_of(calls, self.contract.call, self.name, len(arguments), "arguments")
        outcomes = session.run(
            wire.Invoke(
                self.name,
                packed_arguments(self.name, self.contract.call, arguments, order),
                names,
                handle,
                construct=True,
                watch=calls.forbidden.get(self.name, ()),
            )
        )
        outcome = calls.note(self.name, first_outcome(outcomes))
        if isinstance(outcome, wire.Returned) and isinstance(outcome.value, wire.Odd):
            raise ContractBroken(f"{self.name} should make an nn.Module, got {outcome.value.what}")
        if not isinstance(outcome, wire.Structure):
            raise unexpected(outcome)
        require_believable(outcome)
        calls.seen.made[handle] = shapes_of(outcome.parameters)
        return RemoteModule(calls, self.contract, handle, arguments, outcome)


def shapes_of(parameters: Iterable[wire.ParameterInfo | Tensor]) -> str:
    """The shapes of parameters in a text, in an order that does not depend on their names."""
    return " ".join(sorted("x".join(map(str, one.shape)) for one in parameters))


class RemoteModule(_RemoteCallable):
    """A module of the submission."""

    def __init__(
        self,
        calls: Calls,
        contract: Contract,
        handle: int,
        made_with: Sequence[Any],
        structure: wire.Structure,
    ) -> None:
        super().__init__(calls, contract)
        self._target = self.handle = handle
        self.made_with = made_with
        self.structure = structure
        self.training = structure.training
        self.adoption: Any = None  # an `Adoption`, after a test has given the module weights
        self.aliases = calls.parameter_aliases
        self._own_weights = bool(structure.parameters)
        # Local tensors that collect gradients; the real values are in the student's process.
        self._mirrors: dict[str, Tensor] = {
            info.path: mirror_of(info) for info in structure.parameters
        }

    def train(self) -> RemoteModule:
        """Switch to training mode."""
        self.training = True
        return self._convert("train")

    def eval(self) -> RemoteModule:
        """Switch to evaluation mode."""
        self.training = False
        return self._convert("eval")

    def double(self) -> RemoteModule:
        """Convert parameters and buffers to float64."""
        return self.to(torch.float64)

    def to(self, target: torch.dtype | str) -> RemoteModule:
        """Move to a dtype, or to the device ``"meta"``."""
        if isinstance(target, torch.dtype):
            for path, mirror in self._mirrors.items():
                if mirror.requires_grad:
                    self._mirrors[path] = mirror.detach().to(target).requires_grad_()
            return self._convert("to_dtype", payload.NAMES[target])
        return self._convert("to_device", str(target))

    def _convert(self, method: Any, argument: str = "") -> RemoteModule:
        self._calls.session.later(wire.Convert(self.handle, method, argument))
        return self

    def reset(self) -> RemoteModule:
        """Replace the student's module by a new module, made with the same arguments."""
        fresh = RemoteClass(self._calls, self.contract)(*self.made_with)
        self.__dict__.update(fresh.__dict__)
        return self

    def parameters(self) -> dict[str, Tensor]:
        """Local tensors in place of the parameters, by path; ``backward`` sets their ``.grad``.

        Each has its parameter's shape and dtype, but holds zeros. `values` fetches the real values.
        """
        return dict(self._mirrors)

    def values(self) -> dict[str, Tensor]:
        """Copies of the values of all parameters and buffers, by path.

        Raises `AssertionError` if a parameter has vanished or changed its shape since the module
        was made.
        """
        outcome = first_outcome(self._calls.session.run(wire.Describe(self.handle, values=True)))
        if not isinstance(outcome, wire.Structure):
            raise unexpected(outcome)
        now = {info.path: info.shape for info in outcome.parameters}
        for info in self.structure.parameters:
            if now.get(info.path) != info.shape:
                then = tuple(info.shape)
                raise AssertionError(
                    f"{info.path} had shape {then} when the module was made; after a call, the "
                    "parameter is gone or has another shape. Make parameters in __init__, and do "
                    "not replace them in forward"
                )
        return {
            info.path: plain_value(info.value)
            for info in (*outcome.parameters, *outcome.buffers)
            if info.value is not None
        }

    def buffers(self) -> list[wire.ParameterInfo]:
        """The description of each buffer."""
        return list(self.structure.buffers)

    def modules(self) -> list[str]:
        """Paths of all submodules."""
        return list(self.structure.modules)

    def assign(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters by path. The new values are sent with the next call."""
        packed = {path: payload.pack_tensor(value) for path, value in values.items()}
        self._calls.session.later(wire.Assign(self.handle, packed))
        self._own_weights = False

    def try_all(
        self, candidates: Sequence[Mapping[str, Tensor]], arguments: Sequence[Any]
    ) -> list[Any]:
        """The module's result with each of these sets of weights; None if the call raised.

        All calls are sent in one message. It ends at an exception, and later results are left out.
        """
        calls: list[wire.Call] = []
        for candidate in candidates:
            packed = {path: payload.pack_tensor(value) for path, value in candidate.items()}
            calls.append(wire.Assign(self.handle, packed))
            calls.append(
                wire.Invoke(self.handle, [payload.pack_input(a) for a in arguments], [], wire.TRIAL)
            )
        outcomes = self._calls.session.run(*calls)[1::2]
        return [
            plain_value(outcome.value) if isinstance(outcome, wire.Returned) else None
            for outcome in outcomes
        ]

    @property
    def habits(self) -> tuple[object, ...]:
        """The habits by which this class's earlier modules were matched; see `Adoption.habit`."""
        return self._calls.habits(self.name)

    def remember_habit(self, habit: object) -> None:
        """Add a habit; a class may have several, such as for modules with and without biases."""
        if habit not in self.habits:
            habits = self._calls.seen.habits
            habits[self.name] = (*habits.get(self.name, ()), habit)

    def remember_make(self, description: str) -> None:
        """Record a description of the module, for the diagnosis of a case that fails before a call.

        Until then, the record describes the module by the shapes of its parameters.
        """
        self._calls.seen.made[self.handle] = description

    def forget_make(self, ours: nn.Module) -> None:
        """Forget the shapes if they are those of the reference.

        A right module whose weights are not found has these shapes, and so have mistakes that only
        swap weights of two places.
        """
        if self._calls.seen.made.get(self.handle) == shapes_of(ours.parameters()):
            del self._calls.seen.made[self.handle]

    @property
    def is_lazy(self) -> bool:
        """Whether some layers get their weights in the first call, as `nn.LazyLinear` does."""
        return any(info.owner.startswith("Lazy") for info in self.structure.parameters)

    def call_first(self, arguments: Sequence[Any]) -> None:
        """Call the module with these arguments, ignore the result, and fetch its new structure."""
        packed = [payload.pack_input(argument) for argument in arguments]
        call = wire.Invoke(self.handle, packed, [], wire.TRIAL)
        outcome = first_outcome(self._calls.session.run(call, wire.Describe(self.handle))[1:])
        if not isinstance(outcome, wire.Structure):
            raise unexpected(outcome)
        require_believable(outcome)
        self.structure = outcome
        self._mirrors = {info.path: mirror_of(info) for info in outcome.parameters}
