"""Make a submission's definitions without running its files from top to bottom.

This module runs in the student's process. A notebook may train for minutes, plot, or read a missing
file. Therefore only the top-level statements that an exercise needs are run: its definition, and
the imports, definitions and assignments whose names that definition uses, transitively. They run in
the order of the file, when the exercise is first called. If a statement raises or never ends, only
the exercises that need it fail.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib.machinery
import linecache
import re
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import msgspec

from grader.wire import MAX_NAME, Found, FoundStatus, Listing, SourceText, Use, Wanted
from grader.wire.definitions import OWN, discarded, evasions, find_definitions, last_makers
from grader.wire.source import (
    BRANCHING,
    CODE_PREFIX,
    MAIN,
    STAR,
    Condition,
    SourceFile,
    TopStatement,
    modules_of,
    read_file,
)

# The package in which a submission's files are modules. It has enough levels for relative imports
# such as ``from ...x import y``.
PACKAGE = "submission_.of.a.student"
RELATIVE = r"^submission_(\.of(\.a(\.student)?)?)?\.?"
PYTHONS_OWN = (sys.stdlib_module_names | {"test"}) - {*sys.builtin_module_names}
COURSE = "exercises."  # the package of units, from which answers may import other exercises


class NotBound(Exception):
    """An exercise has no definition; the text says which."""


class LoadedSubmission:
    """The definitions of a submission, made on demand."""

    def __init__(
        self,
        sources: Sequence[SourceText],
        wanted: Sequence[Wanted],
        others: Sequence[Wanted] = (),
        *,
        checks: bool = True,
    ) -> None:
        """Find the definitions of `wanted`; those of `others` are found when they are needed.

        Without `checks`, statements that only check or print do not run: see `wire.checks`.
        """
        self._others = {other.name: other for other in others}
        self._unit_of = {exercise.name: exercise.unit for exercise in (*wanted, *others)}
        self.files = [read_file(source, checks=checks) for source in sources]
        self.modules = modules_of(self.files)
        self._candidates: dict[str, Sequence[TopStatement]] = {}  # see `find_definitions`
        self._made: set[str] = set()  # exercises whose statements have run
        self._found: dict[str, Found] = {}
        for exercise in wanted:
            self._find(exercise)
        self._listed = [*self._found]
        for file in self.files:
            file.own_modules = self._shadowing(file)
            # Tracebacks and inspect.getsource find the text here.
            lines = [f"{line}\n" for line in file.lines]
            linecache.cache[file.code_name] = (sum(map(len, lines)), None, lines, file.code_name)
            file.namespace |= {
                "__name__": f"{PACKAGE}.{file.stem}",
                "__file__": file.code_name,
                "__package__": PACKAGE,
            }

    def _shadowing(self, importer: SourceFile) -> dict[str, str]:
        """The files that a file may import by the name of a module of Python: see `own_modules`.

        Python finds only ``.py`` files in the folder of the file that it runs.
        """
        folder = PurePosixPath(importer.name).parent
        return {
            file.stem: f"{PACKAGE}.{file.stem}"
            for file in self.files
            if file.stem in PYTHONS_OWN
            and file is not importer
            and file.name.endswith(".py")
            and (importer.is_kernel or PurePosixPath(file.name).parent == folder)
        }

    def listing(self) -> Listing:
        """The definition found for each exercise; runs no line of the submission."""
        return Listing([self._detailed(self._found[name]) for name in self._listed])

    def _find(self, exercise: Wanted) -> None:
        found, candidates = find_definitions(exercise, self.files)
        self._found[exercise.name] = found
        self._candidates[exercise.name] = candidates

    def _detailed(self, found: Found) -> Found:
        if found.status == "missing":
            return msgspec.structs.replace(found, message=self._similar_name(found.name))
        winner = self.winner(found.name)
        if winner is None:
            return found
        return msgspec.structs.replace(
            found,
            evasions=self._evasions_of(self._candidates[found.name]),
            discarded=discarded(winner),
            bases=self._bases(winner),
        )

    def _similar_name(self, name: str) -> str:
        """The name of a definition that resembles a missing one, or ""."""
        near = difflib.get_close_matches(name, self._other_definitions, n=1, cutoff=0.8)
        return near[0][:MAX_NAME] if near else ""

    @cached_property
    def _other_definitions(self) -> frozenset[str]:
        """The names of definitions in the submission that are not exercises."""
        every = (statement for file in self.files for statement in file.statements)
        names = frozenset(str(getattr(s.node, "name", "")) for s in every if s.is_definition)
        return names - self._unit_of.keys()

    def _evasions_of(self, candidates: Sequence[TopStatement]) -> list[Use]:
        """Expressions that hide operations, in an answer and in all statements that it uses."""
        if not self._evasions:
            return []  # the usual case: saves following the statements that the answer uses
        return [use for s in self.reach(*candidates) for use in self._evasions.get(id(s), ())]

    @cached_property
    def _evasions(self) -> Mapping[int, Sequence[Use]]:
        """Expressions that hide operations, by the id of their statement."""
        every = (statement for file in self.files for statement in file.statements)
        return {id(statement): uses for statement in every if (uses := evasions(statement))}

    def winner(self, name: str) -> TopStatement | None:
        """The statement that counts as the answer to an exercise, as far as the text shows it."""
        other = self._others.pop(name, None)
        if other is not None:
            self._find(other)
        return next(iter(self._candidates.get(name, ())), None)

    def definition(self, name: str) -> Any:
        """The object that answers an exercise, made by running only the statements it needs."""
        winner = self.winner(name)
        if winner is None:
            raise NotBound(f"there is no definition of {name}")
        for candidate in self._candidates[name]:
            if name not in self._made:
                self._run(self._needed(candidate))
            if name in candidate.bound:
                self._made.add(name)
                return candidate.file.namespace[name]
            if candidate.error is not None:
                raise candidate.error
        raise NotBound(_never_runs(name, winner))

    def answer(self, name: str) -> Any:
        """The object that ``from grader.mine import NAME`` imports; raises `AttributeError`."""
        if self.winner(name) is None:
            raise AttributeError(name)
        return self.definition(name)

    def attribute(self, file: SourceFile, name: str) -> Any:
        """The value of a name in `file`, which another file imports.

        If the file has only the stub of an exercise, the value is the answer in another file.
        """
        if name not in file.namespace:
            makers = self._final_makers(name, file)
            if self._is_answered_elsewhere(name, makers):
                return self.definition(name)
            if not makers:
                raise AttributeError(name)
            self._run(self._needed(*makers))
            if name not in file.namespace:
                raise makers[0].error or AttributeError(name)
        return file.namespace[name]

    def is_exercise(self, name: str) -> bool:
        """Whether the course has an exercise of this name."""
        return name in self._unit_of

    def named(self, name: str, module: str | None) -> Any:
        """The value of a name, in the file that is imported as `module`, or in another file.

        Raises `NameError` if no file has it.
        """
        for file in sorted(self.files, key=lambda file: file.namespace["__name__"] != module):
            with suppress(AttributeError):
                return self.attribute(file, name)
        raise NameError(name=name)

    def _is_answered_elsewhere(self, name: str, makers: Sequence[TopStatement]) -> bool:
        """Whether these statements of a file only leave a stub, and another file has the answer.

        An answer that uses its own stub, for example as its base class, gets the stub.
        """
        winner = self.winner(name)
        if winner is None or not makers or any(maker.is_import for maker in makers):
            return False
        answers = {id(one) for one in self._candidates[name]}
        elsewhere = makers[0].file is not winner.file and answers.isdisjoint(map(id, makers))
        return elsewhere and name not in winner.file.taken_names

    def why_missing(self, name: str, around: Collection[str] = ()) -> str:
        """Why a global name is missing, in a sentence for the student.

        `around` are the local names of the function that looks up the name.
        """
        for file in self.files:
            for statement in file.statements:
                if name in statement.makes and statement.error is not None:
                    where = f"{statement.place.within} line {statement.place.line}"
                    return f"{name} was not made: {where} raised {_in_words(statement.error)}"
        if any(self._has(file, name) for file in self.files):
            return f"{name} is defined in another file, not in this one: is an import missing?"
        known = {n for file in self.files for s in file.statements for n in s.makes}
        near = difflib.get_close_matches(name, [*around, *(known - {name})], n=1)
        if near:
            return f"{name} is not defined; did you mean {near[0]}?"
        if any(file.is_kernel for file in self.files):
            return f"no cell that ran in this session defines {name}"
        session = any(file.is_notebook for file in self.files)
        return f"{name} is defined nowhere in these files: " + (
            "did it exist only in your session?"
            if session
            else "is it misspelt, or is an import missing?"
        )

    def unknown(self, statement: TopStatement) -> frozenset[str]:
        """Names that a statement looks up, and that no statement of its file binds."""
        if any(STAR in other.makes for other in statement.file.statements):
            return frozenset()
        made = {name for other in statement.file.statements for name in other.makes}
        return (statement.reads | statement.calls_on) - made - vars(builtins).keys()

    def _has(self, file: SourceFile, name: str) -> bool:
        """Whether a file binds a name; if it imports the name, whether the import finds it."""
        for _ in self.files:  # a limit: an import leads to another file, and may lead back
            maker = self._final_maker(name, file)
            imported = _imports(maker, name)
            if maker is None or not imported:
                return maker is not None
            whole, name = imported[-1]
            if whole == OWN:
                return self.winner(name) is not None
            own = self._own_file(whole)
            if own is None:  # a library, or a unit that the student did not submit
                return _stem(whole) not in self._unit_of.values()
            if not name:
                return True
            file = own
        return False

    # --- the exercises that an answer uses -------------------------------------------------------

    def _bases(self, answer: TopStatement) -> dict[str, FoundStatus]:
        """The other exercises that an answer uses, directly or through other statements.

        A function that is no answer, but happens to have an exercise's name, does not count.
        """
        used: dict[str, FoundStatus] = {}
        reached, pending = {id(answer)}, [answer]
        while pending:
            statement = pending.pop()
            for name, file in self._globals_of(statement):
                exercise, maker = self._meant(name, file, statement.file)
                if exercise and maker is not answer:
                    used[exercise] = self._found[exercise].status
                if maker is not None and id(maker) not in reached:
                    reached.add(id(maker))
                    pending.append(maker)
        return used

    def _globals_of(self, statement: TopStatement) -> Iterator[tuple[str, SourceFile]]:
        """Names that a statement looks up, each with the file in which it is looked up."""
        for name in statement.reads | statement.calls_on:
            yield name, statement.file
        for node in statement.nodes:
            match node:
                case ast.Attribute(ast.Name(module), name):
                    maker = self._last_maker(module, statement.file.statements)
                    for whole, part in _imports(maker, module):
                        if (file := self._own_file(part or whole)) is not None:
                            yield name, file

    def _meant(
        self, name: str, file: SourceFile, home: SourceFile
    ) -> tuple[str, TopStatement | None]:
        """The exercise to which a name in a file refers, and the statement that binds the name.

        The code that uses the name is in the file `home`, which may have imported the other file.

        The exercise is "" if the name refers to no exercise. For an exercise that the student has
        not written, the statement is the stub, or None.
        """
        for _ in self.files:  # a limit: an import leads to another file, and may lead back
            maker = self._final_maker(name, file)
            if maker is None:
                whole = self._offering(name, file)
                if whole is None:  # the name is borrowed from another file, or undefined
                    known = name in self._unit_of and not hasattr(builtins, name)
                    return (name, self.winner(name)) if known else ("", None)
            elif imported := _imports(maker, name):
                whole, name = imported[-1]
                if whole == OWN:
                    return (name if name in self._unit_of else ""), self.winner(name)
            elif file is not home and self._is_answered_elsewhere(name, [maker]):
                return (name if name in self._unit_of else ""), self.winner(name)
            else:
                winner = self.winner(name)
                counts = winner is maker or (winner is None and maker.is_definition)
                return (name if counts and name in self._unit_of else ""), maker
            own = self._own_file(whole)
            if own is None:  # a library, or a file that the student did not submit
                left_out = self._unit_of.get(name) == _stem(whole) and self.winner(name) is None
                return (name if left_out else ""), None
            file = own
        return "", None

    def _offering(self, name: str, file: SourceFile) -> str | None:
        """The module from which a star import may import a name; any library counts."""
        for statement in file.statements:
            if STAR in statement.makes and isinstance(statement.node, ast.ImportFrom):
                module = statement.node.module or ""
                own = self._own_file(module)
                if own is None or self._final_maker(name, own) is not None:
                    return module
        return None

    def _own_file(self, module: str) -> SourceFile | None:
        """The submission's file that a module's dotted name means, or None."""
        return self.modules.get(_stem(module))

    # --- running only the statements that are needed ---------------------------------------------

    def _needed(self, *targets: TopStatement) -> list[TopStatement]:
        """Statements of one file and all that they use, transitively, in the order of the file."""
        statements = targets[0].file.statements
        places = {id(statement): place for place, statement in enumerate(statements)}
        chosen = {id(target) for target in targets}
        pending = [*targets, *(s for s in statements if STAR in s.makes)]
        while pending:
            user = pending.pop()
            chosen.add(id(user))
            before = statements[: places[id(user)]]
            used: list[TopStatement] = [condition for condition, _ in user.guards]
            for name in user.reads:
                used += self._makers(name, before)
            for name in user.calls_on:
                used += self._final_makers(name, user.file)
            used += [other for other in statements if other.changes & user.makes]
            pending += [other for other in used if id(other) not in chosen]
        return [statement for statement in statements if id(statement) in chosen]

    def _makers(self, name: str, before: Sequence[TopStatement]) -> Iterator[TopStatement]:
        """The statements in `before` that may give a name its value, the last first."""
        return last_makers(s for s in reversed(before) if name in s.makes)

    def _final_makers(self, name: str, file: SourceFile) -> list[TopStatement]:
        """The statements that may give a name its final value: the answer's, or else the last."""
        self.winner(name)  # looks for the answer, unless it is known
        answers = [one for one in self._candidates.get(name, ()) if one.file is file]
        return [*last_makers(answers)] or [*self._makers(name, file.statements)]

    def _last_maker(self, name: str, before: Sequence[TopStatement]) -> TopStatement | None:
        """The last statement in `before` that may bind a name."""
        return next(self._makers(name, before), None)

    def _final_maker(self, name: str, file: SourceFile) -> TopStatement | None:
        """The statement that gives a name its final value, as far as the text shows it."""
        return next(iter(self._final_makers(name, file)), None)

    def reach(self, *targets: TopStatement) -> list[TopStatement]:
        """Definitions and all statements that they use, also those in other files."""
        reached: dict[int, TopStatement] = {}
        pending = [*targets]
        while pending:
            for statement in self._needed(pending.pop()):
                if id(statement) in reached:
                    continue
                reached[id(statement)] = statement
                pending += self._imported(statement)
        return list(reached.values())

    def _imported(self, statement: TopStatement) -> Iterator[TopStatement]:
        """Statements of other files that a statement imports or borrows by name."""
        for name in statement.reads | statement.calls_on:
            winner = self.winner(name)
            if winner is not None:
                yield winner
        if statement.is_import:
            words = set(re.findall(r"\w+", ast.unparse(statement.node)))
            yield from (w for w in map(self.winner, words) if w is not None)
            for name, file in self.modules.items():
                if file is not statement.file and name in words:
                    yield from file.statements

    def _run(self, statements: Sequence[TopStatement]) -> None:
        for statement in statements:
            if statement.ran:
                continue
            statement.ran = True
            if any(condition.value is not holds for condition, holds in statement.guards):
                statement.error = next((c.error for c, _ in statement.guards if c.error), None)
                continue
            namespace = statement.file.namespace
            may_not = isinstance(statement.node, BRANCHING)
            before = {name: namespace.get(name) for name in statement.makes} if may_not else {}
            try:
                self._borrow(statement)
                with _as_main(statement):
                    if isinstance(statement, Condition):
                        statement.value = bool(eval(statement.code, namespace))
                    else:
                        exec(statement.code, namespace)
            except BaseException as error:
                # Reported only if a name that the statement binds is needed: a failed plot does no
                # harm.
                statement.error = error
                if not may_not:
                    continue
            statement.bound = frozenset(
                name
                for name in statement.makes
                if not may_not or namespace.get(name) is not before[name]
            )

    def _borrow(self, statement: TopStatement) -> None:
        """Bind the exercises of other files that a statement uses without importing them."""
        here = statement.file.namespace
        own = {name for other in statement.file.statements for name in other.makes}
        names = statement.looks_up | statement.calls_on
        for name in names - own - here.keys() - vars(builtins).keys():
            if self.winner(name) is not None:
                here[name] = self.definition(name)


@contextmanager
def _as_main(statement: TopStatement) -> Iterator[None]:
    """In a notebook, let a statement that is no definition see ``"__main__"`` as ``__name__``."""
    namespace = statement.file.namespace
    name = namespace["__name__"]
    if statement.file.is_notebook and not statement.is_definition:
        namespace["__name__"] = MAIN
    try:
        yield
    finally:
        namespace["__name__"] = name


def _never_runs(name: str, definition: TopStatement) -> str:
    """A sentence about a definition that Python does not run."""
    for condition, holds in definition.guards:
        if condition.value is not holds and condition.constant is not holds:
            place, test = condition.place, ast.unparse(condition.node)[:MAX_NAME]
            program = "__name__" in test and not definition.file.is_notebook
            return (
                f"Python does not define {name} here: the condition `{test}` ({place.within} line "
                f"{place.line}) is {not holds}"
                + (", because a grader imports the file" if program else "")
                + f"; move the definition of {name} out of this block"
            )
    where = definition.place.within
    return f"Python does not define {name} here: {where} binds no such name; define it in the file"


def _imports(maker: TopStatement | None, name: str) -> list[tuple[str, str]]:
    """The sources of `name` in an import statement: pairs of a module and a name in that module.

    The name in the module is empty if the statement imports the module itself.
    """
    found: list[tuple[str, str]] = []
    for node in maker.nodes if maker is not None and not maker.is_definition else ():
        match node:
            case ast.Import(aliases):
                found += [
                    (alias.name, "")
                    for alias in aliases
                    if name == alias.asname or (alias.asname is None and name == alias.name)
                ]
            case ast.ImportFrom(module, aliases):
                found += [(module or "", a.name) for a in aliases if name == (a.asname or a.name)]
    return found


def _stem(module: str) -> str:
    return module.rpartition(".")[2]


# --- imports among a submission's own files ------------------------------------------------------


class OwnFiles:
    """Meta path finder for a submission's files, under any package prefix.

    There are two instances. One is the last finder on the path and finds all files, so that a file
    never shadows an installed package. The other is `first` on the path. It finds only files under
    ``exercises.``, because a clone has a package of that name, with stubs.
    """

    def __init__(self, submission: LoadedSubmission, *, first: bool = False) -> None:
        self._submission = submission
        self._first = first
        self._files = submission.modules

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return _prefixes(self._submission.files, self._files)

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        prefix = re.sub(RELATIVE, "", fullname)
        is_file = fullname.rpartition(".")[2] in self._files
        if self._first and not (is_file and fullname.startswith(COURSE)):
            return None
        # An empty prefix is `PACKAGE`, the target of relative imports.
        if prefix and not is_file and prefix not in self._prefixes:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """See importlib.abc.Loader."""
        return _OwnModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Connect a module with its file, unless the module is only a package prefix."""
        file = self._files.get(module.__name__.rpartition(".")[2])
        if file is not None:
            module.__dict__["_lookup"] = lambda name: (
                self._offered(file) if name == "__all__" else self._submission.attribute(file, name)
            )

    def _offered(self, file: SourceFile) -> list[str]:
        """The names that ``from file import *`` imports: those that can be made."""
        names = {name for s in file.statements if s.may_run for name in s.makes}
        offered: list[str] = []
        for name in sorted(name for name in names if not name.startswith(("_", STAR))):
            with suppress(Exception):  # a missing library costs only the names that need it
                self._submission.attribute(file, name)
                offered.append(name)
        return offered


class _OwnModule(types.ModuleType):
    """One of the submission's files; its attributes are made at first use."""

    def __getattr__(self, name: str) -> Any:
        if (name.startswith("__") and name != "__all__") or "_lookup" not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__["_lookup"](name)


def _prefixes(files: Sequence[SourceFile], stems: Collection[str]) -> frozenset[str]:
    """Package names under which the submission's files import each other."""
    prefixes: set[str] = set()
    for node in (n for f in files for s in f.statements for n in s.nodes):
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


def install(submission: LoadedSubmission) -> None:
    """Let imports find a submission's files: units before installed packages, others after them."""
    sys.meta_path.insert(0, OwnFiles(submission, first=True))
    sys.meta_path.append(OwnFiles(submission))
    if any(OWN in line for file in submission.files for line in file.lines):
        own = _OwnModule(OWN)
        own.__dict__["_lookup"] = submission.answer
        sys.modules.setdefault(OWN, own)
    for file in submission.files:
        # Dataclasses and `inspect` look up the module of a class.
        with suppress(ImportError):
            importlib.import_module(file.namespace["__name__"]).__file__ = file.code_name


def uninstall() -> None:
    """Undo `install`, and remove the submission's modules and cached lines."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder) is not OwnFiles]
    for name in [name for name, module in sys.modules.items() if type(module) is _OwnModule]:
        del sys.modules[name]
    for name in [name for name in linecache.cache if name.startswith(CODE_PREFIX)]:
        del linecache.cache[name]


def _in_words(error: BaseException) -> str:
    """An exception's type; for a missing library, also a sentence about the available libraries."""
    kind = type(error).__name__
    if type(error) is not ModuleNotFoundError or type(error.name) is not str:
        return kind
    return (
        f"{kind}: there is no {error.name} here. An answer may import Python's own library, torch "
        "and numpy"
    )
