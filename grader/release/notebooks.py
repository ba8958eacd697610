"""Writes one notebook per unit from the stubs.

For each exercise, a notebook has the statement, the stub to fill in, a cell that runs the check,
and a cell that runs the statement's example. Stubs are read as text. The public checks are
imported, to see which rules they test, but they are not run.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from grader.course.collection import rules_left_out
from grader.course.course import Course, parsed
from grader.course.file import Exercise, Unit
from grader.course.statements import EMPTY_LINE, PART, Statement, listing, opening, statement
from grader.records.rows import listed
from grader.release import hosted
from grader.release.hosted import Wheel
from grader.student.scripts import said_of
from grader.wire.definitions import OWN

NotebookCell = dict[str, Any]

KIT = "grader"  # the kit's name in notebooks; in otter's notebooks, this name is already taken

HOW_TO = """\
Run a cell with Shift+Enter. Begin with the first code cell. For each exercise there is a cell that
ends in `raise NotImplementedError`: replace that line with lines of your own, and run the cell. The
next cell checks your answer. If the statement has an example, a further cell runs it with numbers
that you can change. `grader list` counts the exercises that you solve here.

When you are stuck, `{kit}.hint("{name}")` in a cell of your own gives the next hint, and
`{kit}.check("{name}", show=True)` shows what each of your lines computes. `grader.check("{name}")`
checks again, and `{kit}.heatmap(matrix)` shows a matrix as a picture."""

FROM_BEFORE = """\
Exercises here may build on {names}, from {units}. The next cell imports your answers from your
saved files and notebooks. Remove the `#` in front of the imports that you need; run the cell."""

LOOK = """\
## Something to look at

{about}

The next cell runs your own answers from this notebook: run the cells with these answers first."""

SEE_WHY = "# An experiment, if you like: run this cell. You need not solve anything first."

# For a cell that raises an exception until its exercise is solved. With this tag, Run All goes on.
MAY_FAIL = {"tags": ["raises-exception"]}

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def write_notebooks(course: Course, folder: Path, wheel: Wheel | None = None) -> None:
    """Write ``UNIT.ipynb`` for each unit; the same course gives the same bytes.

    With `wheel`, the notebooks work on a hosted service: see `hosted_cells`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unchecked_in = rules_left_out(course)
    for unit in course.units:
        cells = cells_of(course, unit, unchecked_in)
        text = notebook(cells if wheel is None else hosted_cells(unit, cells, wheel))
        (folder / f"{unit.name}.ipynb").write_bytes(text.encode())


def notebook(cells: Sequence[NotebookCell]) -> str:
    """The text of a notebook of these cells, in nbformat 4.5."""
    made = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    nbformat.validate(made)
    return json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def cells_of(
    course: Course, unit: Unit, unchecked_in: Mapping[str, Collection[str]], kit: str = KIT
) -> list[NotebookCell]:
    """The cells of a unit's notebook, in which the kit is called `kit`.

    `unchecked_in` has, for each exercise, the rules that no public check tests; the exercise's
    statement marks these rules.

    The ids of cells name their content. A unit begins with ``UNIT-title`` and ``UNIT-imports``;
    ``UNIT-given`` has what the stub file defines beside stubs, if anything. Each exercise has
    ``NAME-statement``, ``NAME-answer``, ``NAME-check``, ``NAME-play`` if the statement has an
    example, and ``NAME-why`` if the exercise has experiments. ``UNIT-try`` runs the unit's own
    experiment. ``UNIT-about`` and ``UNIT-look`` contain the docstring and the code of the unit's
    script.
    """
    title, _, about = opening(course, unit.name).partition("\n")
    imports = _imports(course.pristine(unit.name), kit)
    how_to = HOW_TO.format(name=unit.exercise[0].name, kit=kit)
    cells = [
        text_cell(f"{unit.name}-title", f"# {title or unit.title}\n\n{about.strip()}\n\n{how_to}"),
        code_cell(f"{unit.name}-imports", imports),
        *_given(course, unit),
        *_from_before(course, unit),
    ]
    for number, exercise in enumerate(unit.exercise, start=1):
        stated = statement(course, exercise.name)
        name = exercise.name
        cells += [
            text_cell(
                f"{name}-statement", _statement(number, exercise, stated, unchecked_in[name])
            ),
            *(_experiments(course, exercise.experiments, f"{name}-why") if kit == KIT else ()),
            code_cell(f"{name}-answer", short_stub(stated.stub)),
            code_cell(f"{name}-check", f'grader.check("{name}")'),
        ]
        if play := _play(stated, imports, kit):
            cells.append(code_cell(f"{name}-play", play) | {"metadata": MAY_FAIL})
    if kit == KIT:
        cells += _experiments(course, (unit.name,), f"{unit.name}-try")
        cells += _look(course, unit)
    return cells


def hosted_cells(unit: Unit, cells: Sequence[NotebookCell], wheel: Wheel) -> list[NotebookCell]:
    """A unit's cells for a notebook without the kit, which its first code cell installs.

    Below the title are ``UNIT-hosted``, which says how to save one's work, and ``UNIT-install``.
    Every other code cell begins with a line that raises an exception until the kit is installed.
    """
    title, *others = cells
    return [
        title,
        text_cell(f"{unit.name}-hosted", hosted.ABOUT),
        code_cell(f"{unit.name}-install", wheel.install_cell()),
        *map(_guarded, others),
    ]


def _guarded(cell: NotebookCell) -> NotebookCell:
    if cell["cell_type"] != "code":
        return cell
    # Python wants `from __future__` above all other lines.
    lines: list[str] = cell["source"]
    at = 1 if lines[0].startswith("from __future__") else 0
    return cell | {"source": [*lines[:at], f"{hosted.GUARD}\n", *lines[at:]]}


def short_stub(stub: str) -> str:
    """The stub with only its docstring's first line; the cell above has the whole docstring."""
    (node,) = ast.parse(stub).body
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    text = ast.get_docstring(node)
    if text is None:
        return stub
    lines = stub.splitlines()
    written = node.body[0]
    indent = " " * written.col_offset
    first = f'{indent}"""{text.splitlines()[0]}"""'
    lines[written.lineno - 1 : written.end_lineno] = [first]
    return "\n".join(lines)


# --- the parts of a notebook ---------------------------------------------------------------------


def _imports(path: Path, kit: str) -> str:
    """The import statements of a stub file, and one that imports the kit."""
    text = path.read_text("utf-8")
    lines = [re.sub(r"\s*# noqa.*", "", line) for line in text.splitlines()]
    modules: list[str] = []
    for_types: list[str] = []
    last = 0
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.If)):
            part = lines[node.lineno - 1 : node.end_lineno]
            found = for_types if isinstance(node, ast.If) else modules
            # Keep the blank lines between groups of imports.
            found += [""] * bool(found and node.lineno > last + 1) + part
            last = node.end_lineno or node.lineno
    ours = "import grader" if kit == KIT else f"import grader as {kit}"
    return "\n".join([*modules, "", ours, "", *for_types]).rstrip()


def _given(course: Course, unit: Unit) -> Iterator[NotebookCell]:
    """A cell with what a stub file defines beside stubs, such as dataclasses."""
    path = course.pristine(unit.name)
    lines = path.read_text("utf-8").splitlines()
    parts: list[str] = []
    for node in parsed(path).body:
        named = getattr(node, "name", "") in course.exercises
        if named or isinstance(node, (ast.Import, ast.ImportFrom, ast.If, ast.Expr)):
            continue
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    if parts:
        yield code_cell(f"{unit.name}-given", "\n\n\n".join(parts))


def _from_before(course: Course, unit: Unit) -> Iterator[NotebookCell]:
    """Two cells to import answers from other units, if exercises of this unit require any."""
    needed = {
        name: course.unit_of[name]
        for exercise in unit.exercise
        for name in exercise.requires
        if course.unit_of[name] != unit.name
    }
    if needed:
        names = listed([f"`{name}`" for name in needed], "and")
        units = listed([f"`{unit}`" for unit in dict.fromkeys(needed.values())], "and")
        yield text_cell(f"{unit.name}-before", FROM_BEFORE.format(names=names, units=units))
        imports = [f"# from grader.mine import {name}" for name in needed]
        yield code_cell(f"{unit.name}-pasted", "\n".join(imports))


def _statement(
    number: int, exercise: Exercise, stated: Statement, unchecked: Collection[str]
) -> str:
    points = f"{exercise.points:g} point{'' if exercise.points == 1 else 's'}"
    head = [
        f"## {number}. {exercise.title}: `{exercise.name}`",
        f"*{points}*",
    ]
    return "\n\n".join([*head, *paragraphs(stated.marked(unchecked))])


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring as Markdown, with examples and formulas in fenced blocks."""
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip().startswith(">>>"):
            yield f"```python\n{textwrap.dedent(part).replace(EMPTY_LINE, '')}\n```"
        elif part.startswith("    "):
            yield f"```text\n{textwrap.dedent(part)}\n```"
        elif found := listing(part):
            title, entries = found
            items = [f"- `{name}`: {said}" if name else f"- {said}" for name, said in entries]
            yield "\n".join([f"**{title}**", "", *items])
        else:
            yield PART.sub(r"**\1:**", part.strip("\n"), count=1)


def _play(stated: Statement, imports: str, kit: str) -> str:
    """The text of a cell that runs the statement's examples, and draws the first tensor."""
    lines: list[str] = []
    dimensions = 0
    for example in doctest.DocTestParser().get_examples(stated.text):
        source = example.source.rstrip("\n")
        if not example.want:
            lines.append(source)
        elif not dimensions and (shown := re.match(r"tensor\((\[+)", example.want)):
            dimensions = len(shown[1])
            lines += [f"result = {source}", "print(result)"]
        else:
            lines.append(f"print({source})")
    if not lines:
        return ""
    if dimensions:
        # Of a batch, draw only the first matrix.
        first = f"[{', '.join('0' * (dimensions - 2))}]" if dimensions > 2 else ""
        lines.append(f"{kit}.heatmap(result{first}{_axes(stated, dimensions)})")
    # The cell has its own imports, so that it works even if no other cell has run.
    used = {node.id for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Name)}
    needed = [ast.unparse(node) for node in _import_nodes(imports) if _bound(node) & {*used, kit}]
    head = ["# Change the numbers, and run this cell again.", *needed, ""]
    return "\n".join([*head, *lines])


def _import_nodes(text: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]


def _bound(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {alias.asname or alias.name.split(".")[0] for alias in node.names}


def _experiments(course: Course, names: Sequence[str], cell: str) -> Iterator[NotebookCell]:
    """A cell that runs the existing experiments of `names`, with a comment about each."""
    lines: list[str] = []
    for name in names:
        path = course.experiment_file(name)
        if path.is_file():
            lines += [f"# {said_of(path).splitlines()[0]}", f'grader.experiment("{name}")']
    if lines:
        text = "\n".join([SEE_WHY, *lines])
        yield code_cell(cell, text) | {"metadata": MAY_FAIL}


def _look(course: Course, unit: Unit) -> Iterator[NotebookCell]:
    """The unit's script as the last cell, below a cell with the script's docstring."""
    path = course.look_file(unit.name)
    if not path.is_file():
        return
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    about = ast.get_docstring(tree) or ""
    lines = text.splitlines()
    # Drop imports of answers, which would replace this notebook's answers with saved answers.
    own = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == OWN]
    for node in [*own, *(tree.body[:1] if about else ())]:
        lines[node.lineno - 1 : node.end_lineno] = [""] * len(
            lines[node.lineno - 1 : node.end_lineno]
        )
    yield text_cell(f"{unit.name}-about", LOOK.format(about=about).replace("\n\n\n\n", "\n\n"))
    code = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip())
    yield code_cell(f"{unit.name}-look", code) | {"metadata": MAY_FAIL}


def _axes(stated: Statement, dimensions: int) -> str:
    """Arguments for `heatmap` that name rows and columns, from the stub's return annotation."""
    (node,) = ast.parse(stated.stub).body
    if isinstance(node, ast.ClassDef):
        (node,) = (part for part in node.body if getattr(part, "name", "") == "forward")
    returns = getattr(node, "returns", None)
    shapes = [
        part.value
        for part in ast.walk(returns or ast.Constant(None))
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    names = [name.split("=")[0] for name in shapes[0].split() if name != "..."] if shapes else []
    if dimensions == 1 and len(names) == 1:
        return f', columns="{names[0]}"'
    if dimensions > 1 and len(names) > 1:
        return f', rows="{names[-2]}", columns="{names[-1]}"'
    return ""


def text_cell(name: str, text: str, kind: str = "markdown") -> NotebookCell:
    """A cell to read: Markdown, or ``raw``."""
    return {
        "cell_type": kind,
        "id": name[:64],  # the format's limit for an id
        "metadata": {},
        # Each line of text becomes a line of JSON, so that a diff is easy to read.
        "source": text.splitlines(keepends=True),
    }


def code_cell(name: str, text: str) -> NotebookCell:
    """A cell to run."""
    return text_cell(name, text, "code") | {"execution_count": None, "outputs": []}
