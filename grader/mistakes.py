"""A course's known answers: mistakes that people make, and right answers in other forms.

``solutions/mistakes/U.py`` holds those of unit U. A variant is a change to the reference's text::

    mistake(
        "causal_mask", "hides-itself", "A token cannot see itself",
        hint="May the first token look at anything at all?",
        change={"diagonal=1": "diagonal=0"},
    )

or a definition of its own, under any name::

    @accepted("causal_mask", "arange", "Rows and columns counted")
    def mask_by_counting(num_tokens):
        rows = torch.arange(num_tokens)
        return rows[:, None] < rows[None, :]
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from grader.course.course import Course
from grader.records.faults import CallError
from grader.wire import SourceText

Kind = Literal["mistake", "accepted"]
Anything = TypeVar("Anything")


@dataclass(frozen=True)
class Variant:
    """One known answer to an exercise."""

    exercise: str
    slug: str
    kind: Kind
    title: str
    hint: str
    definition: str  # Python text that defines the exercise's name
    change: Mapping[str, str] = field(default_factory=dict)
    # Other mistakes of the exercise that no test can tell from this one, each with the reason.
    same_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """``causal_mask/hides-itself``."""
        return f"{self.exercise}/{self.slug}"


class BadVariant(Exception):
    """A variant that is not of the declared form; the text says which, and why."""


@dataclass(frozen=True)
class _Entry:
    """What a call of `mistake` or `accepted` said."""

    exercise: str
    slug: str
    kind: Kind
    title: str
    hint: str
    change: Mapping[str, str]
    same_as: Mapping[str, str]
    name: str = ""  # of the definition below it


_entries: list[_Entry] = []


def mistake(
    exercise: str, slug: str, title: str, *, hint: str, change: Mapping[str, str] | None = None,
    same_as: Mapping[str, str] | None = None,
) -> Callable[[Anything], Anything]:  # fmt: skip
    """A wrong answer. The title says what is wrong, in a line; the hint asks, and does not tell.

    `change` replaces parts of the reference's text, each of which occurs there once; without it,
    this decorates a definition. `same_as` names mistakes that no test can tell from this one.
    """
    return _noted(_Entry(exercise, slug, "mistake", title, hint, change or {}, same_as or {}))


def accepted(
    exercise: str, slug: str, title: str, *, change: Mapping[str, str] | None = None
) -> Callable[[Anything], Anything]:
    """A right answer that looks different, and must get full points."""
    return _noted(_Entry(exercise, slug, "accepted", title, "", change or {}, {}))


def _noted(entry: _Entry) -> Callable[[Anything], Anything]:
    if entry.change:
        _entries.append(entry)

    def decorate(definition: Anything) -> Anything:
        name = str(getattr(definition, "__name__", ""))
        _entries.append(_Entry(**{**vars(entry), "name": name}))
        return definition

    return decorate


# --- loading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """All variants of a course, and the references that they vary."""

    variants: Sequence[Variant]
    sources: Mapping[str, str]  # reference text by unit
    unit_of: Mapping[str, str]

    def of(self, exercise: str, kind: Kind) -> list[Variant]:
        """The variants of one exercise, in the order in which they stand."""
        return [v for v in self.variants if (v.exercise, v.kind) == (exercise, kind)]

    def submission(self, exercise: str, *variants: Variant) -> tuple[SourceText, ...]:
        """The references that an exercise needs, with these definitions instead of their own."""
        texts = {unit: self.sources[unit] for unit in self._needed(self.unit_of[exercise])}
        for variant in variants:
            # The last definition of a name in a file is the one that counts.
            texts[self.unit_of[variant.exercise]] += f"\n\n{variant.definition}\n"
        return tuple(SourceText(f"{unit}.py", (text,)) for unit, text in texts.items())

    def _needed(self, unit: str) -> list[str]:
        """A unit, and the units that its references import from."""
        needed = [unit]
        for one in needed:  # grows meanwhile
            for node in ast.parse(self.sources[one]).body:
                if isinstance(node, ast.ImportFrom) and node.level and node.module:
                    needed += {node.module} - {*needed}
        return needed

    def together(self) -> list[str]:
        """The references' texts, to be run one after another as if they were one file."""
        texts = []
        for text in self.sources.values():
            tree = ast.parse(text)
            tree.body = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and n.level)]
            texts.append(ast.unparse(tree))
        return texts

    def combined(self, first: Variant, second: Variant) -> Variant | None:
        """Both changes at once, where they are changes of different parts."""
        if not (first.change and second.change) or first.exercise != second.exercise:
            return None
        original = text_of_definition(self.sources[self.unit_of[first.exercise]], first.exercise)
        try:
            text = _changed(_changed(original, first.change), second.change)
        except BadVariant:
            return None
        return Variant(
            first.exercise, f"{first.slug}+{second.slug}", first.kind,
            f"{first.title}; and: {second.title}", f"{first.hint} {second.hint}", text,
        )  # fmt: skip


def load_library(course: Course) -> Library:
    """Read ``solutions/mistakes``; raise `CallError` for a variant that makes no sense."""
    sources = {
        unit.name: course.reference_file(unit.name).read_text("utf-8") for unit in course.units
    }
    variants: list[Variant] = []
    for unit in course.units:
        path = course.mistakes_file(unit.name)
        if path.is_file():
            try:
                variants += _load(path, unit.name, sources[unit.name], course)
            except BadVariant as error:
                raise CallError(f"{path}: {error}") from None
    ids = [variant.id for variant in variants]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise CallError(f"{course.solutions / 'mistakes'}: there are two variants {twice}")
    return Library(variants, sources, course.unit_of)


def _load(path: Path, unit: str, reference: str, course: Course) -> list[Variant]:
    _entries.clear()
    name = f"_mistakes_of_{unit}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadVariant(f"cannot be imported: {type(error).__name__}: {error}") from None
    finally:
        del sys.modules[name]
    entries = list(_entries)
    support, definitions = _parts(path.read_text("utf-8"))
    variants = []
    for entry in entries:
        if course.unit_of.get(entry.exercise) != unit:
            raise BadVariant(f"{entry.exercise!r} is no exercise of unit {unit}")
        if entry.change:
            text = _changed(text_of_definition(reference, entry.exercise), entry.change)
        else:
            text = f"{support}\n\n{_renamed(definitions[entry.name], entry.exercise)}"
        variants.append(
            Variant(
                entry.exercise, entry.slug, entry.kind, entry.title, entry.hint, text,
                entry.change, entry.same_as,
            )
        )  # fmt: skip
    return variants


Definition = ast.FunctionDef | ast.ClassDef


def _parts(text: str) -> tuple[str, dict[str, Definition]]:
    """What all definitions of a file may need, and the decorated definitions by name."""
    support: list[ast.stmt] = []
    definitions: dict[str, Definition] = {}
    for node in ast.parse(text).body:
        if isinstance(node, Definition) and any(map(_is_entry, node.decorator_list)):
            if node.name in definitions:
                raise BadVariant(f"two definitions are called {node.name}")
            definitions[node.name] = node
        elif not _says_nothing(node):
            support.append(node)
    return "\n".join(map(ast.unparse, support)), definitions


def _says_nothing(node: ast.stmt) -> bool:
    """Whether a statement of the library means nothing to a submission."""
    if isinstance(node, ast.Expr):
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return text or _is_entry(node.value)
    return isinstance(node, ast.ImportFrom) and node.module == "grader.mistakes"


def _is_entry(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Name) and function.id in ("mistake", "accepted")


def _renamed(node: Definition, name: str) -> str:
    node = copy.copy(node)
    node.name = name
    node.decorator_list = [d for d in node.decorator_list if not _is_entry(d)]
    return ast.unparse(node)


@cache
def text_of_definition(text: str, name: str) -> str:
    """The text of a reference's definition, as it stands there."""
    for node in ast.parse(text).body:
        if isinstance(node, Definition) and node.name == name:
            return textwrap.dedent(ast.get_source_segment(text, node) or "")
    raise BadVariant(f"the reference does not define {name}")


def _changed(text: str, change: Mapping[str, str]) -> str:
    for old, new in change.items():
        if text.count(old) != 1:
            raise BadVariant(f"{old!r} occurs {text.count(old)} times in the reference, not once")
        text = text.replace(old, new)
    return text
