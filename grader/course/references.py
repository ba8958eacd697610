"""A course's references: load its solutions, and draw their weights from the seeds of the inputs.

Solutions are loaded by path, at run time, into the trusted process only; the engine never imports
them. In a course without solutions, `grader.grading.recorded` replaces them.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
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
from grader.course.contract import Contract, ContractError, compile_contracts
from grader.course.course import Course
from grader.course.tensors import Make
from grader.records.faults import CallError

WEIGHT_SCALE = 0.7  # large enough that a missing scale or a swapped projection is visible


PRIVATE = "_solutions_"  # prefix of the packages of references


def load_solutions(course: Course) -> Mapping[str, ModuleType]:
    """Import all references as a private package; relative imports work.

    The package's name depends on the text: a long-lived process reloads references that changed.
    """
    digest = hashlib.blake2b(digest_size=6)
    for path in course.solution_files().values():
        digest.update(str(path).encode() + path.read_bytes())
    package = f"{PRIVATE}{digest.hexdigest()}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(folder) for folder in course.secrets]
    if not any(isinstance(finder, _Texts) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Texts())
    modules = {}
    for unit, path in course.reference_files().items():
        if not path.is_file():
            raise CallError(f"unit {unit} has no reference: {path} is missing")
        try:
            modules[unit] = importlib.import_module(f"{package}.{unit}")
        except Exception as error:
            raise CallError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    return modules


class _Texts(MetaPathFinder):
    """Finds modules of the private packages and compiles them from source, without bytecode.

    Python matches bytecode to a file by its size and its time in seconds. After a quick edit, the
    bytecode may belong to the earlier text.
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
        """Raise, so that Python neither reads nor writes bytecode."""
        raise OSError(path)


class Oracle(Protocol):
    """The source of right results: live references or recordings."""

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """The contract of each exercise."""

    def reference(self, make: Make) -> Reference:
        """The fixture ``reference`` for a case of a test; `make` draws the case's inputs."""


class Reference(Protocol):
    """The references as attributes: ``reference.softmax_rows(x)``, ``reference.X(3, 4)``.

    `make` draws every parameter of a module, biases too. They are the same on every platform, and
    no bias is zero.
    """

    def __getattr__(self, name: str) -> Any:
        """An exercise's reference."""


@dataclass(frozen=True)
class LiveOracle:
    """The references of a course and the contracts compiled from them."""

    definitions: Mapping[str, Any]
    contracts: Mapping[str, Contract]

    def reference(self, make: Make) -> Reference:
        """See `Oracle`."""
        return LiveReference(self, make)


def open_oracle(course: Course) -> LiveOracle:
    """Load all references; raise `CallError` if an exercise has none."""
    modules = load_solutions(course)
    definitions = {}
    for name, unit in course.unit_of.items():
        if not hasattr(modules[unit], name):
            raise CallError(f"{course.reference_file(unit)} does not define {name}")
        definitions[name] = getattr(modules[unit], name)
    try:
        return LiveOracle(definitions, compile_contracts(definitions))
    except ContractError as error:
        raise CallError(f"{course.solutions}: {error}") from None


class LiveReference:
    """See `Reference`."""

    def __init__(self, oracle: LiveOracle, make: Make) -> None:
        self._oracle = oracle
        self._make = make
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._oracle.definitions:
            raise AttributeError(f"the course has no exercise {name!r}")
        definition = self._oracle.definitions[name]
        if not isinstance(definition, type):
            return definition
        return lambda *arguments: self._construct(name, definition, arguments)

    def _construct(self, name: str, definition: type[nn.Module], arguments: Any) -> nn.Module:
        module = definition(*arguments)
        number, self._made = self._made, self._made + 1
        draw_weights(module, self._make, f"{name} {number}")
        return module


class Listener(Protocol):
    """Is notified of all calls that a case of a test makes to references."""

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """A module was made with these arguments."""

    def called(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """A function was called, or a module that was made earlier."""


@dataclass(frozen=True)
class ReferenceCall:
    """A call to a reference: copies of its arguments and its result."""

    exercise: str
    arguments: list[wire.Input]
    result: wire.Value


class Overheard:
    """See `Reference`: notifies a `Listener` of each call."""

    def __init__(self, reference: Reference, listener: Listener) -> None:
        self._reference = reference
        self._listener = listener

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reference, name)

        def call(*arguments: Any) -> Any:
            result = found(*arguments)
            if isinstance(result, nn.Module):
                self._listen(name, result)
                self._listener.made(name, result, arguments)
            else:
                self._listener.called(name, None, arguments, result)
            return result

        return call

    def _listen(self, name: str, made: nn.Module) -> None:
        def notify(module: nn.Module, arguments: Any, result: Any) -> None:
            if module is made:  # not a copy, which the search for weights makes and calls
                self._listener.called(name, module, arguments, result)

        made.register_forward_hook(notify)


def draw_weights(module: nn.Module, make: Make, name: str) -> None:
    """Fill every parameter of a reference from `make`; `name` identifies the module in its case."""
    with torch.no_grad():
        for path, parameter in module.named_parameters():
            drawn = make.normal_like(parameter, WEIGHT_SCALE, name=f"{name} {path}")
            parameter.copy_(drawn)
