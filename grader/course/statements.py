"""Statements: the specification of an exercise, read from the docstring of its stub.

Stubs are only read as text, and neither imported nor run. In a statement, the formula is an
indented block, and the parts from ``Made with`` to ``Rules`` are lists of ``name: text``. The parts
come in this order::

    Turn scores into weights.                     a sentence: the result …

        weights[i] = exp(scores[i]) / Σⱼ exp(scores[j])                  … and the formula

    Why: …
    Made with: (a class) the constructor's arguments
    Takes: the arguments of the function or of ``forward``
    Returns: the result
    Rules: further rules for a right answer, each a sentence with a short key
    Example: …
    Source: …

Tests quote rules by their keys. Two keys are built in: `COMPUTES` and `RETURNS`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from grader.course.course import Course, parsed, undefined
from grader.records.faults import CallError

COMPUTES, RETURNS = BUILT_IN = "computes", "returns"
FORBIDDEN = "forbidden"  # the key of the rule about forbidden operations
EMPTY_LINE = "<BLANKLINE>"  # doctest's sign for an empty line of output; no reader sees it
UNCHECKED = "graded, not checked here"  # the mark of a rule that no public check quotes

WHY, MADE_WITH, TAKES, GIVES, RULES = "Why", "Made with", "Takes", "Returns", "Rules"
EXAMPLE, SOURCE = "Example", "Source"
ORDER = (WHY, MADE_WITH, TAKES, GIVES, RULES, EXAMPLE, SOURCE)
FIRST = ("", RULES, EXAMPLE)  # the parts that a small screen shows first

PART = re.compile(rf"^({'|'.join(ORDER)}):(?= |$)")
_ENTRY = re.compile(r"    (\w+): (.*)")


@dataclass(frozen=True)
class Statement:
    """The statement of an exercise."""

    name: str
    signature: str  # ``def causal_mask(num_tokens: int) -> …:``, or the class and its methods
    text: str  # the docstring, with examples that begin with ``>>>``
    stub: str  # the source code of the whole definition

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """The text of each part, by its title; the text before all titles has the key ``""``."""
        return {
            title: text.removeprefix(f"{title}:").lstrip(" ").strip("\n") if title else text
            for title, text in _blocks(self.text).items()
        }

    @cached_property
    def short_signature(self) -> str:
        """The signature on one line, without types: ``def causal_mask(num_tokens)``."""
        (node,) = ast.parse(self.stub).body
        if isinstance(node, ast.FunctionDef):
            return f"def {node.name}({_untyped(node.args)})"
        assert isinstance(node, ast.ClassDef)
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        listed = ", ".join(f"{part.name}({_untyped(part.args)})" for part in methods)
        return f"class {node.name}: {listed}" if listed else f"class {node.name}"

    @property
    def formal(self) -> bool:
        """Whether the statement has titled parts; otherwise it is free prose without rules."""
        return len(self.parts) > 1

    @property
    def computes(self) -> str:
        """The first paragraph, and the formula below it."""
        paragraphs = self.parts[""].split("\n\n")
        first = _joined(paragraphs[0])
        formula = paragraphs[1] if len(paragraphs) > 1 and paragraphs[1].startswith("    ") else ""
        return "\n".join([first, *formula.splitlines()])

    @property
    def formula(self) -> str:
        """The formula without its indentation; "" if there is none."""
        return textwrap.dedent("\n".join(self.computes.split("\n")[1:]))

    @cached_property
    def rules(self) -> Mapping[str, str]:
        """The sentence of each rule in the part ``Rules``, by its key."""
        return self.entries(RULES)

    def entries(self, part: str) -> Mapping[str, str]:
        """The entries of a part that is a list: the text of each entry, by its name."""
        return {name: text for name, text in _entries(self.parts.get(part, "")) if name}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that tests may quote: the two built-in keys, and those of the rules."""
        return (*BUILT_IN, *self.rules)

    def sentence(self, key: str) -> str:
        """The sentence of the rule with this key; for a built-in key, a part of the statement."""
        if key == COMPUTES:
            return self.computes
        if key == RETURNS:
            return f"{GIVES} {_joined(self.parts[GIVES])}" if GIVES in self.parts else ""
        return self.rules[key]

    def marked(self, unchecked: Collection[str]) -> str:
        """The statement's text, with the mark `UNCHECKED` after each rule in `unchecked`."""
        before, title, after = self.text.partition(f"\n{RULES}:\n")
        if not unchecked or not title:
            return self.text
        rules, gap, rest = after.partition("\n\n")
        entry = re.compile(rf"^    (?:{'|'.join(unchecked)}): .*(?:\n {{8}}.*)*", re.MULTILINE)
        marked = entry.sub(rf"\g<0>\n        ({UNCHECKED})", rules)
        return f"{before}{title}{marked}{gap}{rest}"

    def first_and_rest(self, unchecked: Collection[str] = ()) -> tuple[str, str]:
        """Split the text from `marked` in two: the parts to read before coding, and the others.

        The parts to read first are the opening with the formula, the rules and the example.
        """
        blocks = _blocks(self.marked(unchecked))
        first = [blocks.pop(title) for title in FIRST if title in blocks]
        return "\n\n".join(first), "\n\n".join(blocks.values())


def _blocks(text: str) -> dict[str, str]:
    """Split a docstring into its parts, by title; each part includes the line with its title."""
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for line in text.splitlines():
        if match := PART.match(line):
            current = found.setdefault(match[1], [])
        current.append(line)
    return {title: "\n".join(lines).strip("\n") for title, lines in found.items()}


def listing(paragraph: str) -> tuple[str, Sequence[tuple[str, str]]] | None:
    """The title and entries of a paragraph that is a titled list; None for any other paragraph.

    An entry is a pair of name and text; the name may be empty.
    """
    title, _, rest = paragraph.partition("\n")
    if not (title.endswith(":") and PART.match(title) and rest):
        return None
    return title.removesuffix(":"), _entries(rest)


def _entries(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if match := _ENTRY.fullmatch(line):
            found.append((match[1], [match[2]]))
        elif found:
            found[-1][1].append(line)
        elif line.strip():
            found.append(("", [line]))
    return [(name, _joined("\n".join(lines))) for name, lines in found]


def _joined(text: str) -> str:
    return " ".join(text.split())


# --- reading statements from stubs ---------------------------------------------------------------


def statement(course: Course, name: str) -> Statement:
    """Read an exercise's statement; raise `CallError` if its stub cannot be read."""
    path = course.pristine(course.unit_of[name])
    parsed(path)
    found = _stated(path.read_text(encoding="utf-8"))
    if name not in found:
        raise undefined(path, name, course)
    return found[name]


def stated_or_none(course: Course, name: str) -> Statement | None:
    """Read an exercise's statement; None if a student's edits made its file unreadable."""
    try:
        return statement(course, name)
    except CallError:
        return None


@lru_cache(maxsize=64)
def _stated(text: str) -> Mapping[str, Statement]:
    """The statements in a file of stubs, by name; the first definition of a name counts."""
    found: dict[str, Statement] = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in found:
            stub = textwrap.dedent(ast.get_source_segment(text, node) or "")
            docstring = ast.get_docstring(node) or ""
            found[node.name] = Statement(node.name, _signature(node), docstring, stub)
    return found


def opening(course: Course, unit: str) -> str:
    """The docstring of a unit's file, which introduces the unit."""
    try:
        return ast.get_docstring(ast.parse(course.pristine(unit).read_text("utf-8"))) or ""
    except (OSError, SyntaxError, ValueError):
        return ""


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"def {node.name}({ast.unparse(node.args)}){returns}:"
    bases = ", ".join(map(ast.unparse, node.bases))
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    lines = [f"class {node.name}({bases}):", *(f"    {_signature(part)}" for part in methods)]
    return "\n".join(lines)


def _untyped(arguments: ast.arguments) -> str:
    """A function's parameters with their defaults, but without types and without ``self``."""
    bare = ast.parse(f"def f({ast.unparse(arguments)}): ...").body[0]
    assert isinstance(bare, ast.FunctionDef)
    own = bare.args
    for argument in (*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg):
        if argument is not None:
            argument.annotation = None
    own.args = [argument for argument in own.args if argument.arg != "self"]
    return ast.unparse(own)
