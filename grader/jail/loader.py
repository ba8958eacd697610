"""From a submission's statements to its definitions, without running it from top to bottom.

Runs in the student's process. A notebook may train for minutes, plot, or read a file that is not
there; so only those top-level statements run that an exercise needs: its definition, and the
imports, definitions and assignments whose names that definition uses, transitively, in the order
in which they stand. They run when the exercise is first called, so that a statement which raises
or never ends costs the exercises that need it and no others.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import linecache
import sys
import types
from collections.abc import Sequence
from typing import Any

import msgspec

from grader.jail.definitions import evasions, find
from grader.jail.source import FUTURE_ANNOTATIONS, STAR, SourceFile, Statement, read_file
from grader.jail.wire import Found, Listing, SourceText, Wanted


class NotBound(Exception):
    """An exercise's definition could not be made; the text says why."""


class Submission:
    """The definitions of one submission, made on demand."""

    def __init__(self, sources: Sequence[SourceText], wanted: Sequence[Wanted]) -> None:
        self.files = [read_file(source) for source in sources]
        self.winners: dict[str, Statement] = {}
        self._found: list[Found] = []
        for exercise in wanted:
            found, winner = find(exercise, self.files)
            self._found.append(found)
            if winner is not None:
                self.winners[exercise.name] = winner
        for file in self.files:
            # Tracebacks and inspect.getsource find the text here.
            lines = [f"{line}\n" for line in file.lines]
            linecache.cache[file.code_name] = (sum(map(len, lines)), None, lines, file.code_name)
            file.namespace |= {"__name__": file.stem, "__file__": file.code_name, "__package__": ""}

    def listing(self) -> Listing:
        """What stands under each exercise's name. No line of the submission has run yet."""
        return Listing([self._with_evasions(found) for found in self._found])

    def _with_evasions(self, found: Found) -> Found:
        winner = self.winners.get(found.name)
        hidden = evasions(self._needed(winner)) if winner else []
        return msgspec.structs.replace(found, evasions=hidden)

    def definition(self, name: str) -> Any:
        """The object under an exercise's name, made by running only what it needs."""
        winner = self.winners.get(name)
        if winner is None:
            raise NotBound(f"there is no definition of {name}")
        self._run(self._needed(winner))
        if winner.error is not None:
            raise winner.error
        return winner.file.namespace[name]

    def attribute(self, file: SourceFile, name: str) -> Any:
        """A name of a file that another file imports."""
        if name not in file.namespace:
            makers = [s for s in file.statements if name in s.makes and not self._lost(s)]
            if not makers:
                raise AttributeError(name)
            self._run(self._needed(makers[-1]))
            if name not in file.namespace:
                raise makers[-1].error or AttributeError(name)
        return file.namespace[name]

    def why_missing(self, name: str) -> str:
        """Why a global name is not there, in a sentence that a student can act on."""
        for file in self.files:
            for statement in file.statements:
                if name in statement.makes and statement.error is not None:
                    where, kind = statement.place, type(statement.error).__name__
                    return f"{name} was not made: {where.file} line {where.line} raised {kind}"
        return (
            f"{name} is not defined in the files that were handed in: "
            "did it exist only in your session?"
        )

    # --- running only what is needed -------------------------------------------------------------

    def _needed(self, target: Statement) -> list[Statement]:
        """A statement and all that it uses, transitively, in the order of its file."""
        chosen = {id(target)}
        names, made = set(target.reads), set(target.makes)
        grown = True
        while grown:
            grown = False
            for statement in target.file.statements:
                if id(statement) in chosen:
                    continue
                used = statement.makes & names and not self._lost(statement)
                if used or statement.changes & made or STAR in statement.makes:
                    chosen.add(id(statement))
                    names |= statement.reads
                    made |= statement.makes
                    grown = True
        return [statement for statement in target.file.statements if id(statement) in chosen]

    def _lost(self, statement: Statement) -> bool:
        """Whether another statement of the same file counts as the answer in its place."""
        for name in statement.makes:
            winner = self.winners.get(name)
            if winner is not None and winner is not statement and winner.file is statement.file:
                return winner.is_definition or winner.node.lineno < statement.node.lineno
        return False

    def _run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if statement.ran:
                continue
            statement.ran = True
            try:
                self._borrow(statement)
                code = compile(
                    ast.Module(body=[statement.node], type_ignores=[]), statement.file.code_name,
                    "exec", flags=FUTURE_ANNOTATIONS, dont_inherit=True,
                )  # fmt: skip
                exec(code, statement.file.namespace)
            except BaseException as error:
                # Told when something misses the name: a plot that failed is nobody's concern.
                statement.error = error

    def _borrow(self, statement: Statement) -> None:
        """Fetch exercises that live in another file of the submission and were not imported."""
        here = statement.file.namespace
        own = {name for other in statement.file.statements for name in other.makes}
        for name in statement.reads - own - here.keys() - vars(builtins).keys():
            if name in self.winners:
                here[name] = self.definition(name)


# --- imports among a submission's own files ------------------------------------------------------


class OwnFiles:
    """Meta path finder for a submission's files, under any package prefix.

    It stands last in line, so that a file never shadows an installed package.
    """

    def __init__(self, submission: Submission) -> None:
        self._submission = submission
        self._files = {file.stem: file for file in submission.files}
        self._prefixes = _prefixes(submission.files)

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if fullname.rpartition(".")[2] not in self._files and fullname not in self._prefixes:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """See importlib.abc.Loader."""
        return _OwnModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Attach the file, if the module is one and not only a prefix."""
        file = self._files.get(module.__name__.rpartition(".")[2])
        if file is not None:
            names = {name for statement in file.statements for name in statement.makes}
            module.__dict__["__all__"] = sorted(n for n in names if not n.startswith(("_", STAR)))
            module.__dict__["_lookup"] = lambda name: self._submission.attribute(file, name)


class _OwnModule(types.ModuleType):
    """One of the submission's files; its attributes are made when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_lookup" not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__["_lookup"](name)


def _prefixes(files: Sequence[SourceFile]) -> frozenset[str]:
    """Package names under which the submission's files import each other."""
    stems = {file.stem for file in files}
    prefixes: set[str] = set()
    for node in (n for f in files for s in f.statements for n in ast.walk(s.node)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for parts in (module.split(".") for module in modules):
            for index, part in enumerate(parts):
                if part in stems:
                    prefixes |= {".".join(parts[:cut]) for cut in range(1, index + 1)}
    return frozenset(prefixes)


def install(submission: Submission) -> None:
    """Let imports find the submission's own files, after everything that is installed."""
    for node in (n for f in submission.files for s in f.statements for n in ast.walk(s.node)):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            node.level = 0  # ``from .softmax import x`` means the submission's own file
    sys.meta_path.append(OwnFiles(submission))
