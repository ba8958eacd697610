"""The reference side: a course's solutions, with weights from the same seeds as inputs.

Loaded by path at run time into the trusted process only; the engine never imports solutions. Where
there are none, `grader.grading.recorded` answers in their place.
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


PRIVATE = "_solutions_"  # how the package of a course's references is called


def load_solutions(course: Course) -> Mapping[str, ModuleType]:
    """Import the references of each unit as one private package; relative imports work.

    A process that lives for long loads them again when their text is another one.
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
            raise CallError(f"unit {unit} has no reference: {path} is not there")
        try:
            modules[unit] = importlib.import_module(f"{package}.{unit}")
        except Exception as error:
            raise CallError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    return modules


class _Texts(MetaPathFinder):
    """Finds the modules of the private packages by their text alone.

    Bytecode that lies beside a text is found by its time in seconds and its size: it may be of what
    the text was before it was edited.
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
        """No times, so that no bytecode is looked for, and none is written."""
        raise OSError(path)


class Oracle(Protocol):
    """What knows the right results of a course's exercises."""

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """What each exercise promises."""

    def reference(self, make: Make) -> Reference:
        """What one case of a test calls ``reference``; `make` draws the case's inputs."""


class Reference(Protocol):
    """``reference.softmax_rows(x)``, ``reference.X(3, 4)``: an attribute for each exercise.

    Modules come with every parameter drawn from `make`, biases too, so that they are the same on
    every platform and no bias is zero.
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
    """Load all references; raise `CallError` where one is missing."""
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
    """Hears what one case of a test asks of references, and what they answer."""

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """A module was made with these arguments."""

    def consulted(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """A function was called, or a module that was made."""


@dataclass(frozen=True)
class Consulted:
    """What a reference was asked, and what it gave; as they were then."""

    exercise: str
    arguments: list[wire.Input]
    result: wire.Value


class Overheard:
    """See `Reference`: one that a `Listener` hears."""

    def __init__(self, reference: Reference, listener: Listener) -> None:
        self._reference = reference
        self._listener = listener

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reference, name)

        def asked(*arguments: Any) -> Any:
            result = found(*arguments)
            if isinstance(result, nn.Module):
                self._listen(name, result)
                self._listener.made(name, result, arguments)
            else:
                self._listener.consulted(name, None, arguments, result)
            return result

        return asked

    def _listen(self, name: str, made: nn.Module) -> None:
        def heard(module: nn.Module, arguments: Any, result: Any) -> None:
            if module is made:  # a copy of it is the search for weights
                self._listener.consulted(name, module, arguments, result)

        made.register_forward_hook(heard)


def draw_weights(module: nn.Module, make: Make, name: str) -> None:
    """Fill every parameter of a reference from `make`; `name` tells this module from others."""
    with torch.no_grad():
        for path, parameter in module.named_parameters():
            drawn = make.normal_like(parameter, WEIGHT_SCALE, name=f"{name} {path}")
            parameter.copy_(drawn)
