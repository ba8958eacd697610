"""Reads the library of a course's known answers from the files that declare them."""

from __future__ import annotations

import ast
import copy
import importlib.util
import re
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, reduce
from pathlib import Path

from grader.course.course import COMMON, Course, not_imported, parsed
from grader.course.statements import COMPUTES
from grader.mistakes.declared import (
    COMMONS,
    ENTRIES,
    BadVariant,
    Change,
    Common,
    Entry,
    Variant,
    VariantKind,
)
from grader.records.faults import CallError, did_you_mean
from grader.records.rows import listed
from grader.wire import SourceText

IMPORTS_NO_UNIT = (
    "solutions/{0}.py imports from {1}.py, which is no unit of this course: only the files of "
    "units are read, so move the imported definitions into one of these files"
)


@dataclass(frozen=True)
class Library:
    """All variants of a course, and the references that they change."""

    variants: Sequence[Variant]
    sources: Mapping[str, str]  # reference text by unit
    unit_of: Mapping[str, str]

    def of(self, exercise: str, kind: VariantKind) -> list[Variant]:
        """An exercise's variants of this kind, in the order of the file."""
        return [v for v in self.variants if (v.exercise, v.kind) == (exercise, kind)]

    def submission(self, exercise: str, *variants: Variant) -> tuple[SourceText, ...]:
        """The references that an exercise needs, with some definitions replaced by variants."""
        texts = {unit: self.sources[unit] for unit in self._needed(self.unit_of[exercise])}
        for variant in variants:
            # The variant's definition comes last, so it replaces the reference's.
            texts[self.unit_of[variant.exercise]] += f"\n\n{variant.definition}\n"
        return tuple(SourceText(f"{unit}.py", (text,)) for unit, text in texts.items())

    def _needed(self, unit: str) -> list[str]:
        """A unit, and the units that its references import, directly or indirectly."""
        needed = [unit]
        for name in needed:  # the loop appends to this list
            for node in ast.parse(self.sources[name]).body:
                if isinstance(node, ast.ImportFrom) and node.level and node.module:
                    if node.module not in self.sources:
                        raise CallError(IMPORTS_NO_UNIT.format(name, node.module))
                    needed += {node.module} - {*needed}
        return needed

    def together(self) -> list[str]:
        """The references' texts without imports of each other, to be run in one namespace."""
        texts = []
        for text in self.sources.values():
            tree = ast.parse(text)
            tree.body = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and n.level)]
            texts.append(ast.unparse(tree))
        return texts

    def combined(self, first: Variant, second: Variant) -> Variant | None:
        """A variant with the changes of both variants; None if the changes do not fit together."""
        if first.exercise != second.exercise:
            return None
        original = text_of_definition(self.sources[self.unit_of[first.exercise]], first.exercise)
        text = _with_all_changes(original, (first, second))
        return None if text is None else replace(_at_once((first, second), text), kind=first.kind)


def _with_all_changes(original: str, variants: Sequence[Variant]) -> str | None:
    """A reference's text with the changes of all variants; None if these do not fit together."""
    if not all(variant.change for variant in variants):
        return None
    for changes in _orders([variant.change for variant in variants]):
        with suppress(BadVariant):
            text = reduce(_changed, changes, original)
            if _compiles(text):
                return text
    return None


def _at_once(variants: Sequence[Variant], definition: str) -> Variant:
    """A variant that makes several mistakes; what they say alike is said once."""
    return Variant(
        variants[0].exercise,
        "+".join(variant.slug for variant in variants),
        "pair",
        "; and: ".join(dict.fromkeys(variant.title for variant in variants)),
        " ".join(dict.fromkeys(variant.hint for variant in variants)),
        definition,
        breaks=tuple(dict.fromkeys(key for variant in variants for key in variant.breaks)),
    )


def _compiles(text: str) -> bool:
    """Whether the text is valid Python that causes no `SyntaxWarning`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        try:
            compile(text, "<two changes>", "exec")
        except SyntaxError:
            return False
    return True


def _orders(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """The orders in which to make changes.

    Changes without patterns come first, since their strings must occur in the original text.
    """
    yield sorted(changes, key=_has_patterns)
    if all(map(_has_patterns, changes)):
        yield changes[::-1]


def load_library(course: Course, exercises: Collection[str] | None = None) -> Library:
    """Read ``solutions/mistakes``; raise `CallError` for an invalid variant.

    With `exercises`, only the files of their units are read.
    """
    asked = course.unit_of if exercises is None else exercises
    units = {course.unit_of[name] for name in asked}
    references = course.reference_files()
    for path in references.values():
        parsed(path)
    sources = {unit: path.read_text("utf-8") for unit, path in references.items()}
    table = _load_common(course)
    known: dict[str, Variant] = {}  # by id
    for unit in (unit for unit in sources if unit in units):
        for path in course.layers("mistakes", f"{unit}.py"):
            # Public variants change the public reference, even if a private one replaces it.
            beside = path.parents[1] / path.name
            reference = beside.read_text("utf-8") if beside.is_file() else sources[unit]
            with _errors_in(path):
                own = _load(path, unit, reference, course, table, [*known.values()])
            known |= {variant.id: variant for variant in own}
    return Library([*known.values()], sources, course.unit_of)


GENERAL = Path(__file__).with_name("general.py")  # the engine's table of common mistakes


def _load_common(course: Course) -> Mapping[str, Common]:
    """The common mistakes by slug: the engine's, then those of the course's layers."""
    table = dict(common_table(GENERAL))
    for path in course.layers("mistakes", COMMON):
        if any(unit.name == path.stem for unit in course.units):
            raise CallError(
                f"{path}: is the table of common mistakes, and no unit can be {path.stem!r}"
            )
        table |= common_table(path)
    return table


def common_table(path: Path) -> Mapping[str, Common]:
    """The common mistakes that a file declares, by slug."""
    with _errors_in(path):
        _run(path)
        if ENTRIES:
            why = "holds common mistakes only; an exercise's mistakes go to its unit's file"
            raise BadVariant(why, ENTRIES[0].line)
        table = {one.slug: one for one in COMMONS}
        if twice := _twice([one.slug for one in COMMONS]):
            raise BadVariant(f"there are two common mistakes {twice!r}", table[twice].line)
        return table


def _load(
    path: Path,
    unit: str,
    reference: str,
    course: Course,
    table: Mapping[str, Common],
    before: Sequence[Variant],
) -> list[Variant]:
    """The variants that a file declares; a pair may consist of mistakes from `before`."""
    _run(path)
    if COMMONS:
        raise BadVariant(f"common mistakes are declared in {COMMON} only", COMMONS[0].line)
    support, definitions = _parts(parsed(path))
    variants: list[Variant] = []
    known: set[str] = set()
    for entry in list(ENTRIES):
        if course.unit_of.get(entry.exercise) != unit:
            own = [name for name in course.unit_of if course.unit_of[name] == unit]
            near = did_you_mean(entry.exercise, own)
            raise BadVariant(f"{entry.exercise!r} is no exercise of unit {unit}{near}", entry.line)
        try:
            definition = ""
            if entry.name:
                definition = f"{support}\n\n{_definition_below(entry, definitions)}"
            original = text_of_definition(reference, entry.exercise)
            if entry.together:
                made = [_pair(entry, [*before, *variants], original, definition)]
            elif entry.but is None:
                made = [_variant(entry, table, original, definition)]
            else:
                made = [*_all_that_fit(entry, table, original)]
        except BadVariant as error:
            name = entry.slug or entry.common or "+".join(entry.together)
            id = f"{entry.exercise}/{name}".removesuffix("/")
            near = _nearest_line(reference, entry)
            raise BadVariant(f"{id}: {error}{near}", entry.line) from None
        for variant in made:
            if variant.id in known:
                raise BadVariant(f"there are two variants {variant.id}: rename one", entry.line)
            known.add(variant.id)
            variants.append(replace(variant, place=f"{path}:{entry.line}"))
    return variants


def _nearest_line(reference: str, entry: Entry) -> str:
    """The line of the reference that an old text of a change resembles, if the text is missing."""
    for old in entry.change:
        if isinstance(old, str) and old not in reference:
            lines = text_of_definition(reference, entry.exercise).splitlines()
            near = max(lines, key=lambda line: SequenceMatcher(None, old, line.strip()).ratio())
            return f"; the nearest line is {near.strip()!r}"
    return ""


def _all_that_fit(entry: Entry, table: Mapping[str, Common], original: str) -> Iterator[Variant]:
    """The variants of all common mistakes that fit, except those that the entry excludes."""
    but = set(entry.but or ())
    if unknown := but - table.keys():
        near = did_you_mean(min(unknown), table, "")
        raise BadVariant(f"there is no common mistake {min(unknown)!r}{near}")
    others = [other for other in ENTRIES if other.exercise == entry.exercise]
    left_out = but.union(*((other.common, other.slug) for other in others))
    for slug in (slug for slug in table if slug not in left_out):
        with suppress(BadVariant):
            yield _variant(replace(entry, common=slug), table, original, "")


def _variant(entry: Entry, table: Mapping[str, Common], original: str, definition: str) -> Variant:
    """The variant that an entry declares, completed from the table of common mistakes."""
    if entry.common and entry.common not in table:
        near = did_you_mean(entry.common, table, "")
        raise BadVariant(f"there is no common mistake {entry.common!r}{near}")
    shared = table.get(entry.common, Common("", "", "", (), {}))
    slug, title = entry.slug or shared.slug, entry.title or shared.title
    hint = entry.hint or shared.hint
    parts = {"slug": slug, "title": title, "hint": hint or entry.kind == "accepted"}
    if missing := [part for part, given in parts.items() if not given]:
        lacks = f"this one has no {listed(missing, 'or')}"
        raise BadVariant(f"a mistake has a slug, a title and a hint, or is common: {lacks}")
    if definition and entry.change:
        raise BadVariant("there is both a change and a definition below it")
    change = entry.change
    if not definition:
        changes = (entry.change,) if entry.change else shared.changes
        change, definition = _first_that_fits(original, changes)
    same_as = entry.same_as or shared.same_as
    return Variant(
        entry.exercise,
        slug,
        entry.kind,
        title,
        hint,
        definition,
        change,
        same_as,
        entry.common,
        entry.breaks or shared.breaks or (COMPUTES,),
    )


def _pair(entry: Entry, variants: Sequence[Variant], original: str, definition: str) -> Variant:
    """The variant that makes several mistakes at once, all of which are declared above it."""
    known = {v.slug: v for v in variants if (v.exercise, v.kind) == (entry.exercise, "mistake")}
    if unknown := [slug for slug in entry.together if slug not in known]:
        near = did_you_mean(unknown[0], known)
        raise BadVariant(f"no mistake {unknown[0]!r} is declared above{near}")
    if definition and entry.change:
        raise BadVariant("there is both a change and a definition below it")
    parts = [known[slug] for slug in entry.together]
    if entry.change:
        _, definition = _first_that_fits(original, (entry.change,))
    definition = definition or _with_all_changes(original, parts) or ""
    if not definition:
        raise BadVariant("the changes do not fit together: give a change or a definition")
    pair = _at_once(parts, definition)
    return replace(
        pair,
        slug=entry.slug or pair.slug,
        title=entry.title or pair.title,
        hint=entry.hint or pair.hint,
        same_as=entry.same_as,
        breaks=entry.breaks or pair.breaks,
    )


def _first_that_fits(original: str, changes: Sequence[Change]) -> tuple[Change, str]:
    """The first change that fits a reference, and the changed text."""
    reasons = []
    for change in changes:
        try:
            if (changed := _changed(original, change)) != original:
                return change, changed
            reasons.append(f"change={change!r} leaves the reference as it is")
        except BadVariant as error:
            reasons.append(str(error))
    raise BadVariant("; ".join(reasons) or "there is neither a change nor a definition below it")


def _run(path: Path) -> None:
    """Run a library's file, which fills `ENTRIES` and `COMMONS`."""
    parsed(path)
    ENTRIES.clear()
    COMMONS.clear()
    name = f"_mistakes_of_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line, why = not_imported(path, error)
        raise BadVariant(str(error) if isinstance(error, BadVariant) else why, line) from None
    finally:
        del sys.modules[name]


@contextmanager
def _errors_in(path: Path) -> Iterator[None]:
    """Turn a `BadVariant` of this file into a `CallError` that names the file."""
    try:
        yield
    except BadVariant as error:
        place = path if error.line is None else f"{path}:{error.line}"
        raise CallError(f"{place}: {error}") from None


def _twice(names: Sequence[str]) -> str | None:
    """A name that occurs more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


Definition = ast.FunctionDef | ast.ClassDef


def _parts(tree: ast.Module) -> tuple[str, dict[str, Definition]]:
    """The text that a file's variants share (imports, helpers), and its variants' definitions."""
    support: list[ast.stmt] = []
    definitions: dict[str, Definition] = {}
    for node in tree.body:
        if isinstance(node, Definition) and any(map(_is_entry, node.decorator_list)):
            if node.name in definitions:
                raise BadVariant(f"two definitions are called {node.name}", node.lineno)
            definitions[node.name] = node
        elif not _is_declaration(node):
            support.append(node)
    return "\n".join(map(ast.unparse, support)), definitions


def _is_declaration(node: ast.stmt) -> bool:
    """Whether a statement only serves the library: a string, entries, or their import."""
    if isinstance(node, ast.For):
        return any(isinstance(part, ast.expr) and _is_entry(part) for part in ast.walk(node))
    if isinstance(node, ast.Expr):
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return text or _is_entry(node.value)
    return isinstance(node, ast.ImportFrom) and node.module == "grader.mistakes"


def _is_entry(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    names = ("mistake", "accepted", "common_mistakes")
    return isinstance(function, ast.Name) and function.id in names


def _definition_below(entry: Entry, definitions: Mapping[str, Definition]) -> str:
    """The text of the definition that an entry decorates, renamed to the exercise's name."""
    if entry.name not in definitions:
        raise BadVariant("it decorates no function or class at the top of its file")
    node = copy.copy(definitions[entry.name])
    node.name = entry.exercise
    node.decorator_list = [d for d in node.decorator_list if not _is_entry(d)]
    return ast.unparse(node)


@cache
def text_of_definition(text: str, name: str) -> str:
    """The text of a definition in a reference's file."""
    for node in ast.parse(text).body:
        if isinstance(node, Definition) and node.name == name:
            return textwrap.dedent(ast.get_source_segment(text, node) or "")
    raise BadVariant(f"the reference does not define {name}")


def _has_patterns(change: Change) -> bool:
    return any(isinstance(old, re.Pattern) for old in change)


def _changed(text: str, change: Change) -> str:
    for old, new in change.items():
        if isinstance(old, re.Pattern):
            try:
                text, count = old.subn(new, text)
            except (re.error, IndexError, TypeError) as error:  # no such group; bytes
                raise BadVariant(f"{old.pattern!r} cannot become {new!r}: {error}") from None
            if not count:
                raise BadVariant(f"the pattern {old.pattern!r} matches nothing in the reference")
        elif text.count(old) != 1:
            raise BadVariant(f"{old!r} occurs {text.count(old)} times in the reference, not once")
        else:
            text = text.replace(old, new)
    return text
