"""Load a course's references, and draw the weights of their modules from a case's seed.

Solutions are loaded by path, at run time, and only into the trusted process. The kit's code
never imports solutions by name. In a course without solutions, `grader.grading.recorded` gives
recorded results instead.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from os import stat_result
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import nn

from grader import wire
from grader.course.contract import (
    Contract,
    ContractError,
    compile_contract,
    dataclasses_in,
    fits,
)
from grader.course.course import Course, not_imported, parsed, undefined
from grader.course.tensors import Make
from grader.records.faults import CallError

WEIGHT_SCALE = 0.7  # of drawn weights; large enough to show a missing scale or swapped projection


PRIVATE = "_solutions_"  # the names of packages with references begin with this


def load_solutions(course: Course) -> Mapping[str, ModuleType]:
    """Import all references as modules of a private package, in which relative imports work.

    The package's name depends on the text of the files. Therefore a long-lived process imports
    references anew after a change.
    """
    digest = hashlib.blake2b(digest_size=6)
    for _, path in course.solution_files():
        digest.update(str(path).encode() + path.read_bytes())
    package = f"{PRIVATE}{digest.hexdigest()}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(folder) for folder in course.secrets]
    if not any(isinstance(finder, _Texts) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Texts())
    modules = {}
    for unit, path in course.reference_files().items():
        parsed(path)
        try:
            modules[unit] = importlib.import_module(f"{package}.{unit}")
        except Exception as error:
            line, why = not_imported(path, error)
            raise CallError(f"{path}:{line or 1}: {why}") from None
    return modules


class _Texts(MetaPathFinder):
    """Finds modules of the private packages and compiles them from source, without bytecode.

    Python uses cached bytecode if the source file has the same size, and the same time in seconds,
    as before. After a quick edit, Python could therefore use the bytecode of the earlier text.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        del target
        stem = name.rpartition(".")[2]
        for folder in path or () if name.startswith(PRIVATE) else ():
            for file in (Path(folder, f"{stem}.py"), Path(folder, stem, "__init__.py")):
                if file.is_file():
                    return spec_from_file_location(name, file, loader=_Text(name, str(file)))
        return None


class _Text(SourceFileLoader):
    def path_stats(self, path: str) -> stat_result:  # type: ignore[override]
        """Raise `OSError`, so that Python neither reads nor writes bytecode."""
        raise OSError(path)


class Oracle(Protocol):
    """The source of right results: the references themselves, or recordings of their results."""

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """The contract of each exercise."""

    def reference(self, make: Make) -> Reference:
        """The fixture ``reference`` for a case of a test; `make` draws the case's inputs."""


class Reference(Protocol):
    """The fixture ``reference``, with the references as attributes: ``reference.softmax_rows(x)``.

    All parameters of a reference's module are random numbers from `make`, also the biases, so that
    no bias is zero. These numbers are the same on every platform. A dataclass in the annotations
    of a reference is an attribute, too: ``reference.State(step=1)``.
    """

    def __getattr__(self, name: str) -> Any:
        """An exercise's reference, or a dataclass."""


@dataclass(frozen=True)
class LiveOracle:
    """The references of a course, and the contracts that are compiled from them."""

    definitions: Mapping[str, Any]
    contracts: Mapping[str, Contract]

    def reference(self, make: Make) -> Reference:
        """See `Oracle`."""
        return LiveReference(self, make)


def open_oracle(course: Course) -> LiveOracle:
    """Load all references of a course; raise `CallError` if an exercise has no reference."""
    modules = load_solutions(course)
    definitions, contracts = {}, {}
    for name, unit in course.unit_of.items():
        path = course.reference_file(unit)
        if not hasattr(modules[unit], name):
            raise undefined(path, name, course)
        definitions[name] = getattr(modules[unit], name)
        try:
            contracts[name] = compile_contract(name, definitions[name])
        except ContractError as error:  # it begins with file and line
            raise CallError(str(error)) from None
    return LiveOracle(definitions, contracts)


class LiveReference:
    """See `Reference`."""

    def __init__(self, oracle: LiveOracle, make: Make) -> None:
        self._oracle = oracle
        self._make = make
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._oracle.definitions:
            for exercise, contract in self._oracle.contracts.items():
                if name in dataclasses_in(contract):
                    module = sys.modules[self._oracle.definitions[exercise].__module__]
                    return getattr(module, name)
            raise AttributeError(f"the course has no exercise {name!r}")
        definition = self._oracle.definitions[name]
        if not isinstance(definition, type):
            return _with_generators(definition, self._oracle.contracts[name])
        return lambda *arguments: self._construct(name, definition, arguments)

    def _construct(self, name: str, definition: type[nn.Module], arguments: Any) -> nn.Module:
        module = definition(*arguments)
        number, self._made = self._made, self._made + 1
        draw_weights(module, self._make, f"{name} {number}")
        return module


def _with_generators(definition: Callable[..., Any], contract: Contract) -> Callable[..., Any]:
    """A reference that takes lists where the function takes generators, as a student's does."""
    at = [n for n, one in enumerate(contract.call.parameters) if one.kind == "batches"]
    if not at:
        return definition

    def call(*arguments: Any) -> Any:
        fits(contract.call, arguments, contract.name)
        return definition(
            *((item for item in value) if n in at else value for n, value in enumerate(arguments))
        )

    return call


class Listener(Protocol):
    """The interface for an object that is notified of a test case's calls to references."""

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """A module was made with these arguments."""

    def called(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        result: Any,
        models: Sequence[nn.Module] = (),
    ) -> None:
        """A function was called, or a module that was made earlier.

        `models` are the models among a function's arguments, as they are after the call; in
        `arguments` they are as before.
        """


@dataclass(frozen=True)
class ReferenceCall:
    """A call to a reference: copies of the arguments and of the result."""

    exercise: str
    arguments: list[wire.Input]
    result: wire.Value


class Overheard:
    """Passes calls on to another `Reference`, and notifies a `Listener` of each call."""

    def __init__(self, reference: Reference, listener: Listener) -> None:
        self._reference = reference
        self._listener = listener

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reference, name)
        if isinstance(found, type):  # a dataclass
            return found

        def call(*arguments: Any) -> Any:
            models = [value for value in arguments if isinstance(value, nn.Module)]
            before = [copy.deepcopy(a) if isinstance(a, nn.Module) else a for a in arguments]
            result = found(*arguments)
            if isinstance(result, nn.Module):
                self._listen(name, result)
                self._listener.made(name, result, arguments)
            else:
                self._listener.called(name, None, before, result, models)
            return result

        return call

    def _listen(self, name: str, made: nn.Module) -> None:
        def notify(module: nn.Module, arguments: Any, result: Any) -> None:
            if module is made:  # matching weights also calls copies of the module
                self._listener.called(name, module, arguments, result)

        made.register_forward_hook(notify)


def draw_weights(module: nn.Module, make: Make, name: str) -> None:
    """Fill all parameters of a module with random numbers from `make`.

    `name` identifies the module among the modules of a test case.
    """
    with torch.no_grad():
        for path, parameter in module.named_parameters():
            drawn = make.normal_like(parameter, WEIGHT_SCALE, name=f"{name} {path}")
            parameter.copy_(drawn)
