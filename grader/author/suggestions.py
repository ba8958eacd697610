"""Proposes known mistakes for living mutants, as text to paste into a library's file."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from grader.author.changes import change_to, quoted, written
from grader.author.findings import EXCUSES, Audited
from grader.author.mutants import Mutant
from grader.mistakes import text_of_definition

HINT = "TODO: a question that leads to the fault"
REASON = "TODO: why no input shows a difference"
NOTHING = "no living mutant: there is nothing to suggest"
LONGEST_SLUG = 40


def suggestion(source: str, exercise: str, mutant: Mutant, taken: set[str]) -> str:
    """A call of `mistake` that makes the mutant's change, as Python text.

    `source` is the file of references. `taken` are the slugs of the exercise's known answers, to
    which the new slug is added.
    If no change of the file's text makes the mutant, the call decorates the mutant's definition.
    """
    title = _title(mutant)
    slug = _slug(title, taken)
    taken.add(slug)
    start = f"mistake(\n    {quoted(exercise)}, {quoted(slug)}, {quoted(title)},\n"
    start += f"    hint={quoted(HINT)},\n"
    change = change_to(text_of_definition(source, exercise), mutant.definition)
    if change is not None:
        return f"{start}    change={written(change)},\n)  # fmt: skip"
    return f"@{start})  # fmt: skip\n{_named(mutant.definition, slug)}"


def _named(definition: str, slug: str) -> str:
    """The definition under a name of its own: a file cannot define a name twice."""
    (node,) = ast.parse(unannotated(definition)).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    words = re.sub(r"\W", "_", slug)
    node.name = words if words.isidentifier() else f"_{words}"
    return ast.unparse(node)


def unannotated(definition: str) -> str:
    """A definition without annotations, which need imports that the library's file may lack."""
    tree = ast.parse(definition)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant("a type")  # evaluated in the body of a class
    return ast.unparse(tree)


def _title(mutant: Mutant) -> str:
    """What the mutant changes, from the end of its id; its place in the line is left out."""
    change = re.sub(r"#\d+$", "", mutant.id.partition(":")[2])
    old, arrow, new = change.partition("->")
    if not arrow:
        how, _, text = change.partition(" ")
        return f"`{text}` is left out" if how == "without" else f"`{text}` counts always"
    if new.startswith("then "):
        return f"`{new.removeprefix('then ')}` comes too early"
    return f"`{new}` in place of `{old}`"


def _slug(title: str, taken: Collection[str]) -> str:
    words = re.findall(r"\w+", re.sub(r"-(?=\d)", " minus ", title.lower()))
    slug = "-".join(words).replace("_", "-")[:LONGEST_SLUG].strip("-")
    numbers = (f"{slug}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (slug, *numbers) if name not in taken)


def suggested(findings: Sequence[Audited]) -> Iterator[str]:
    """The suggestions in all findings, to be printed, grouped by the line that they change.

    Mutants for which no input shows a difference come last, as lines of `EXCUSES`.
    """
    living = [finding for finding in findings if finding.suggestion]
    for line, group in groupby(
        (one for one in living if one.differs), key=lambda one: one.name.partition(":")[0]
    ):
        exercise, _, number = line.partition("/L")
        mutants = list(group)
        unit = mutants[0].unit
        yield f"# solutions/mistakes/{unit}.py: {exercise}, line {number} without docstrings"
        for one in mutants:
            yield one.suggestion
        yield ""
    alike = [one for one in living if not one.differs]
    if alike:
        yield f"# solutions/mistakes/{EXCUSES}, [equivalent], if they compute the same"
    for one in alike:
        yield f"{quoted(one.name)} = {quoted(REASON)}"
    if not living:
        yield NOTHING
