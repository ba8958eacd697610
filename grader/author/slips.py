"""Slips of authors: errors that reading the files of a course finds, before any of them runs.

Each is a `CallError` of one line: the file, the line, what is wrong, and what to do. Errors without
which a course cannot even be loaded are found where it is loaded, in `course` and `mistakes`.
"""

from __future__ import annotations

import ast
import dis
import inspect
import re
import symtable
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

from grader.course.collection import Test
from grader.course.course import (
    Course,
    defined,
    parsed,
    text_of_course,
    undefined,
    wrong_key,
)
from grader.course.file import refusal
from grader.course.statements import statement
from grader.mistakes import Library, Variant
from grader.records.faults import CallError, did_you_mean

Definition = ast.FunctionDef | ast.ClassDef
LOOKED_UP = ("LOAD_GLOBAL", "LOAD_NAME")  # what Python does with a name that is not local


def refuse_slips(course: Course) -> None:
    """Raise `CallError` for a slip that the files of a course show as they are."""
    for unit in course.units:
        stubs, references = course.stub_file(unit.name), course.reference_file(unit.name)
        for exercise in unit.exercise:
            for key, problem in _slips_in_keys(course, exercise.name):
                raise wrong_key(course, exercise.name, key, problem)
            stub = _definition(stubs, exercise.name, course)
            reference = _definition(references, exercise.name, course)
            for line, problem in _slips_in_stub(stub, reference):
                raise CallError(f"{stubs}:{line}: {problem}")
        for path in course.layers("mistakes", f"{unit.name}.py"):
            _refuse_idle_definitions(path)
    _refuse_idle_aliases(course)


def refuse_slips_in_answers(course: Course, library: Library, names: Collection[str]) -> None:
    """Raise `CallError` for a slip in a known answer to one of these exercises."""
    for name in names:
        keys = statement(course, name).keys
        path = course.reference_file(course.unit_of[name])
        reference, bound = _definition(path, name, course), _bound_in(path)
        own = [variant for variant in library.variants if variant.exercise == name]
        for variant in own:
            for problem in _slips_in_answer(variant, own, keys, reference, bound):
                raise CallError(f"{variant.place}: {variant.id}: {problem}")


def _definition(path: Path, name: str, course: Course) -> Definition:
    """The function or class of this name in a file; raise `CallError` if it is anything else."""
    node = defined(path).get(name)
    if node is None:
        raise undefined(path, name, course)
    if not isinstance(node, Definition):
        raise CallError(f"{path}:{node.lineno}: {name} is no function or class: define it")
    return node


# --- course.toml ---------------------------------------------------------------------------------


def _slips_in_keys(course: Course, name: str) -> Iterator[tuple[str, str]]:
    """The slips in the keys of an exercise in ``course.toml``: pairs of the key and the text."""
    exercise = course.exercises[name]
    hints = [hint.strip() for hint in exercise.hints]
    if "" in hints:
        yield "hints", f"hint {hints.index('') + 1} is empty: write a sentence"
    for number, hint in enumerate(hints):
        if hint in hints[:number]:
            first = hints.index(hint) + 1
            yield "hints", f"hints {first} and {number + 1} are equal: each must say more"
    for script in exercise.experiments:
        if not course.experiment_file(script).is_file():
            yield "experiments", f"{course.experiment_file(script)} is missing: write it"


def _refuse_idle_aliases(course: Course) -> None:
    """Raise `CallError` for aliases of an argument that no reference takes."""
    names = {
        node.arg
        for path in course.reference_files().values()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.arg)
    }
    for name in course.file.aliases.arguments:
        if name not in names:
            why = f"no reference takes the argument {name!r}{did_you_mean(name, names, '')}"
            raise refusal(*text_of_course(course.folder), f"$.aliases.arguments.{name}", why)


def refuse_unknown_operations(course: Course, name: str) -> None:
    """Raise `CallError` for a misspelt function of torch among those that an exercise forbids.

    A course may name functions of other versions of torch. Therefore an unknown name is an error
    only if torch has a function of nearly this name, and the group lacks that function too.
    """
    path, text = text_of_course(course.folder)
    for group in course.exercises[name].forbidden:
        functions = course.file.operations[group].functions
        for function in functions:
            if "." in function or function in _functions_of_torch():
                continue  # a method, such as ``AdamW.step``, or a known function
            near = get_close_matches(function, _functions_of_torch(), n=1, cutoff=0.9)
            if near and near[0] not in functions:
                why = f"torch has no function {function!r}; did you mean {near[0]}?"
                raise refusal(path, text, f"$.operations.{group}.functions", why)


@cache
def _functions_of_torch() -> frozenset[str]:
    """The plain names of torch's functions and operations: see `grader.guest.operations`."""
    import torch

    names = {name.partition("::")[2] for name in torch._C._dispatch_get_all_op_names()}
    for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "torch"]:
        names |= vars(module).keys()
    return frozenset(name.partition(".")[0].strip("_") for name in names)


# --- stubs ---------------------------------------------------------------------------------------


def _slips_in_stub(stub: Definition, reference: Definition) -> Iterator[tuple[int, str]]:
    """The slips in a stub: pairs of the line and the text."""
    if not ast.get_docstring(stub):
        yield stub.lineno, f"{stub.name} has no statement: write a docstring"
    if not any(isinstance(n, ast.Name) and n.id == "NotImplementedError" for n in ast.walk(stub)):
        yield stub.lineno, f"{stub.name} is solved: end the stub with `raise NotImplementedError`"
    wanted = _functions(reference)
    for name, function in _functions(stub).items():
        if name in wanted:
            for problem in _differences(function, wanted[name]):
                yield function.lineno, f"{stub.name} {problem}"


def _functions(node: Definition) -> Mapping[str, ast.FunctionDef]:
    """The function itself, or the methods of a class that a student writes."""
    if isinstance(node, ast.FunctionDef):
        return {"": node}
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return {part.name: part for part in methods if part.name in ("__init__", "forward")}


def _differences(stub: ast.FunctionDef, reference: ast.FunctionDef) -> Iterator[str]:
    """The differences of a stub's signature from the reference's."""
    theirs, ours = _parameters(stub), _parameters(reference)
    if [*theirs] != [*ours]:
        yield f"takes ({', '.join(theirs)}), but the reference ({', '.join(ours)})"
        return
    pairs = [(f"argument {name}", theirs[name], ours[name]) for name in theirs if name != "self"]
    if stub.name != "__init__":
        pairs.append(("result", (stub.returns, None), (reference.returns, None)))
    for what, (annotation, default), (wanted, own) in pairs:
        if wanted is None:
            continue  # the contract says that the reference lacks an annotation
        if annotation is None:
            yield f"has no annotation of its {what}: write {ast.unparse(wanted)}"
        elif _plain(annotation) != _plain(wanted):
            yield (
                f"has the annotation {ast.unparse(annotation)} of its {what}, but the reference "
                f"has {ast.unparse(wanted)}"
            )
        if _plain(default) != _plain(own):
            texts = ["none" if node is None else ast.unparse(node) for node in (default, own)]
            yield f"has as default of its {what} {texts[0]}, but the reference has {texts[1]}"


def _parameters(function: ast.FunctionDef) -> dict[str, tuple[ast.expr | None, ast.expr | None]]:
    """The annotation and the default of each parameter, by name."""
    own = function.args
    named = [*own.posonlyargs, *own.args]
    first = len(named) - len(own.defaults)
    defaults = dict(zip([one.arg for one in named[first:]], own.defaults, strict=True))
    defaults |= {
        one.arg: default
        for one, default in zip(own.kwonlyargs, own.kw_defaults, strict=True)
        if default is not None
    }
    extra = [one for one in (own.vararg, own.kwarg) if one is not None]
    return {
        one.arg: (one.annotation, defaults.get(one.arg))
        for one in (*named, *own.kwonlyargs, *extra)
    }


def _plain(node: ast.expr | None) -> str:
    """Python text to compare: without quotes around it, modules before names, and spaces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with suppress(SyntaxError):
            node = ast.parse(node.value, mode="eval").body
    text = "" if node is None else ast.unparse(node)
    return re.sub(r"\b[A-Za-z_]\w*\.(?=[A-Za-z_])|\s", "", text)


# --- tests ---------------------------------------------------------------------------------------


def refuse_idle_tests(tests: Iterable[Test]) -> None:
    """Raise `CallError` for a test that never uses the student's answer."""
    for test in tests:
        code = dis.get_instructions(inspect.unwrap(test.function))
        if not any(instruction.argval == "student" for instruction in code):
            raise CallError(f"{test.place}: {test.name} never calls student: it tests no answer")


def refuse_idle_excuses(course: Course, path: Path, names: Collection[str]) -> None:
    """Raise `CallError` for an excuse in this file that is about no exercise of the course."""
    for name in names:
        exercise = name.partition("/")[0]
        if exercise not in course.exercises:
            near = did_you_mean(exercise, course.exercises, "")
            place = place_of_excuse(path, name)
            raise CallError(f"{place}: {name!r} is about no exercise of the course{near}")


def place_of_excuse(path: Path, name: str) -> str:
    """The file and line of an excuse, which is in this file."""
    before = path.read_text("utf-8").partition(name)[0]
    return f"{path}:{before.count(chr(10)) + 1}"


# --- known answers -------------------------------------------------------------------------------


def _slips_in_answer(
    variant: Variant,
    known: Sequence[Variant],
    keys: Sequence[str],
    reference: Definition,
    bound: frozenset[str],
) -> Iterator[str]:
    """The slips in a known answer to an exercise with these known answers and keys of rules.

    `bound` are the names that the reference's file binds.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(variant.definition)
    except SyntaxError as error:
        yield f"the changed reference is no Python: {error.msg}"
        return
    for key in variant.breaks:
        if key not in keys:
            yield f"the statement has no rule called {key!r}{did_you_mean(key, keys)}"
    others = [one.slug for one in known if one.kind == "mistake" and one is not variant]
    # A row of the common table may name mistakes that only other exercises have.
    for slug in variant.same_as if not variant.common else ():
        if slug not in others:
            yield f"same_as names {slug!r}, which is no mistake{did_you_mean(slug, others)}"
    if variant.change:
        own = _globals_of(ast.Module([reference], []))
        for name in sorted(_globals_of(tree) - own - bound):
            if find_spec(name) is not None:  # other names may be missing on purpose: `self.` is
                yield (
                    f"the changed reference uses {name}, which its file does not import: import "
                    "it there, or write a whole definition"
                )
        return  # what follows cannot happen to a changed reference
    nodes = [node for node in tree.body if isinstance(node, Definition)]
    node = next(node for node in reversed(nodes) if node.name == variant.exercise)
    if _bare(node) == _bare(reference):
        yield "this is the reference itself: change it, or leave this answer out"
    yield from _other_calls(node, reference)


def _bound_in(path: Path) -> frozenset[str]:
    """The names that a file binds outside functions."""
    symbols = symtable.symtable(path.read_text("utf-8"), str(path), "exec").get_symbols()
    return frozenset(one.get_name() for one in symbols if one.is_assigned() or one.is_imported())


def _globals_of(tree: ast.Module) -> frozenset[str]:
    """The names that a text looks up outside its functions."""
    found = set[str]()
    parts = [compile(tree, "", "exec")]
    for code in parts:  # a function's code is a constant of the code around it
        parts += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        found |= {one.argval for one in dis.get_instructions(code) if one.opname in LOOKED_UP}
    return frozenset(found)


def _refuse_idle_definitions(path: Path) -> None:
    """Raise `CallError` for a definition in a file of known answers that nothing there uses."""
    used = {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}
    for node in parsed(path).body:
        if isinstance(node, Definition) and not node.decorator_list and node.name not in used:
            raise CallError(
                f"{path}:{node.lineno}: {node.name} is no known answer: write @mistake(…) or "
                "@accepted(…) above it"
            )


def _bare(node: Definition) -> str:
    """A definition without docstrings and annotations, as a text that equal definitions share."""
    copied = ast.parse(ast.unparse(node)).body[0]
    for part in ast.walk(copied):
        if isinstance(part, ast.arg):
            part.annotation = None
        if isinstance(part, Definition):
            if ast.get_docstring(part) is not None:
                del part.body[0]
            if isinstance(part, ast.FunctionDef):
                part.returns = None
    return ast.dump(copied)


def _other_calls(node: Definition, reference: Definition) -> Iterator[str]:
    """A text if the reference's calls do not fit a variant's function."""
    theirs, ours = _functions(node).get(""), _functions(reference).get("")
    if theirs is None or ours is None or theirs.args.vararg is not None:
        return
    given = _parameters(ours)
    needed = [name for name, (_, default) in _parameters(theirs).items() if default is None]
    if len(needed) > len(given) or len(_parameters(theirs)) < len(given):
        yield f"takes ({', '.join(_parameters(theirs))}), but the reference ({', '.join(given)})"
