"""otter-grader: writes our notebooks and public checks in otter's formats.

Each unit has one notebook for students, and one for `otter assign`. In otter's notebooks `grader`
is otter's own object, so the kit is called `kit`. Each of otter's tests runs one public check of
the kit, and raises an exception if the check does not pass. Raw cells and comments hold the markers
of `otter assign`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from grader.course.collection import collect, rung
from grader.course.course import Course
from grader.course.file import Exercise, Unit
from grader.feedback.sentences import forbidden_title
from grader.records.grade import OPERATIONS
from grader.records.rows import number
from grader.release.notebooks import (
    NotebookCell,
    cells_of,
    code_cell,
    notebook,
    text_cell,
)

KIT = "kit"

INIT = """\
# Initialize Otter
import otter
grader = otter.Notebook()"""

EXPORT = """\
# Save this notebook first. Then run this cell: it writes the zip to submit.
grader.export(pdf=False)"""

TESTS = '''\
"""otter's view of the public checks of {name}: the kit runs them."""

from otter.test_files import test_case

OK_FORMAT = False

name = "{name}"
points = {points}
'''

TEST = """\
def {name}():
    from grader.student.notebook import require

    require("{exercise}", "{check}")
"""

SOLUTION = """\
# BEGIN SOLUTION NO PROMPT
{solution}
# END SOLUTION
r''' # BEGIN PROMPT
{stub}
'''; # END PROMPT"""


@dataclass(frozen=True)
class Check:
    """A public check, or the check for forbidden operations: otter calls it a test case."""

    exercise: str
    name: str
    title: str

    @property
    def function(self) -> str:
        """The source of the function that runs this check in otter's test file."""
        name = self.name if self.name.startswith("test_") else f"test_{self.name}"
        return TEST.format(name=name, exercise=self.exercise, check=self.name)


def public_checks(course: Course) -> Mapping[str, Sequence[Check]]:
    """The public checks of each exercise, in the ladder's order."""
    tests = collect(course.check_files(), False, course)
    tests.sort(key=lambda test: rung.order.index(test.rung))
    groups = course.file.operations
    found: dict[str, list[Check]] = {name: [] for name in course.exercises}
    for name, exercise in course.exercises.items():
        if exercise.forbidden:
            title = forbidden_title([groups[group].title for group in exercise.forbidden])
            found[name].append(Check(name, OPERATIONS, title))
    for test in tests:
        found[test.exercise].append(Check(test.exercise, test.name, test.title))
    return found


# --- for students --------------------------------------------------------------------------------


def student_version(
    course: Course,
    checks: Mapping[str, Sequence[Check]],
    unchecked_in: Mapping[str, Collection[str]],
) -> Mapping[str, str]:
    """The files for students, by path: a notebook per unit, and a test file per exercise.

    `unchecked_in` is the same as for `cells_of`.
    """
    found: dict[str, str] = {}
    for unit in course.units:
        cells = [
            code_cell(f"{unit.name}-otter", INIT),
            *cells_of(course, unit, unchecked_in, KIT),
            code_cell(f"{unit.name}-export", EXPORT),
        ]
        found[f"{unit.name}/{unit.name}.ipynb"] = notebook(cells)
        for exercise in unit.exercise:
            text = _test_file(exercise, checks[exercise.name], _points(course, exercise))
            found[f"{unit.name}/tests/{exercise.name}.py"] = text
    return found


def _test_file(exercise: Exercise, checks: Sequence[Check], points: str) -> str:
    parts = [TESTS.format(name=exercise.name, points=points)]
    parts += [f"\n\n@test_case(name={check.title!r})\n{check.function}" for check in checks]
    return "".join(parts)


def _points(course: Course, exercise: Exercise) -> str:
    return number(exercise.points * course.worth)


# --- for `otter assign` --------------------------------------------------------------------------


def master(
    course: Course,
    unit: Unit,
    checks: Mapping[str, Sequence[Check]],
    unchecked_in: Mapping[str, Collection[str]],
    settings: Mapping[str, Any],
) -> str:
    """A unit's notebook for `otter assign`, with references and tests.

    `unchecked_in` is the same as for `cells_of`; `settings` are otter's own.
    """
    dumped = yaml.safe_dump(dict(settings), sort_keys=False).rstrip()
    config = _raw(f"{unit.name}-config", f"# ASSIGNMENT CONFIG\n{dumped}")
    cells = cells_of(course, unit, unchecked_in, KIT)
    return notebook([config, *_marked(course, unit, checks, cells)])


def _marked(
    course: Course, unit: Unit, checks: Mapping[str, Sequence[Check]], cells: Sequence[NotebookCell]
) -> Iterator[NotebookCell]:
    """Add otter's markers around each exercise in a notebook's cells."""
    solutions = _solutions(course, unit)
    questions = {
        code_cell(f"{exercise.name}-{part}", "")["id"]: (exercise.name, part)
        for exercise in unit.exercise
        for part in ("statement", "answer", "check")
    }
    for cell in cells:
        name, part = questions.get(cell["id"], ("", ""))
        match part:
            case "statement":
                points = _points(course, course.exercises[name])
                yield _raw(f"{name}-begin", f"# BEGIN QUESTION\nname: {name}\npoints: {points}")
                yield cell
            case "answer":
                text = SOLUTION.format(solution=solutions[name], stub="".join(cell["source"]))
                yield from _block("SOLUTION", name, [code_cell(f"{name}-answer", text)])
            case "check":  # otter itself adds a cell that runs these tests
                yield from _block("TESTS", name, map(_test_cell, checks[name]))
                yield _raw(f"{name}-end", "# END QUESTION")
            case _:
                yield cell


def _block(kind: str, name: str, cells: Iterable[NotebookCell]) -> Iterator[NotebookCell]:
    yield _raw(f"{name}-begin-{kind.lower()}", f"# BEGIN {kind}")
    yield from cells
    yield _raw(f"{name}-end-{kind.lower()}", f"# END {kind}")


def _test_cell(check: Check) -> NotebookCell:
    # otter puts the message between quotes without escaping it.
    title = check.title.replace("\\", "").replace('"', "'")
    config = f'""" # BEGIN TEST CONFIG\nfailure_message: {json.dumps(title)}\n""" # END TEST CONFIG'
    return code_cell(f"{check.exercise}-{check.name}", f"{config}\n{check.function}")


def _raw(name: str, text: str) -> NotebookCell:
    return text_cell(name, text, "raw")


def _solutions(course: Course, unit: Unit) -> Mapping[str, str]:
    """The source of each exercise's reference, with the helpers before it in the file."""
    found: dict[str, str] = {}
    waiting = ""
    for name, text in _statements(course, unit.name):
        waiting += f"\n\n\n{text}" if name else f"\n{text}"
        if course.unit_of.get(name) == unit.name:
            found[name], waiting = waiting.strip("\n"), ""
    # Add the helpers after the last reference to that reference.
    last = unit.exercise[-1].name
    return found | {last: found[last] + waiting}


def _statements(course: Course, unit: str) -> Iterator[tuple[str, str]]:
    """The name (or "") and source of each top-level statement in a unit's file of references.

    An import from another unit is replaced by that unit's statements, because a notebook must not
    need other files.
    """
    text = course.reference_file(unit).read_text("utf-8")
    first, *rest = ast.parse(text).body
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    for node in rest if documented else [first, *rest]:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from _statements(course, node.module or "")
        elif not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            lines = text.splitlines()[_first_line(node) - 1 : node.end_lineno]
            yield getattr(node, "name", ""), "\n".join(lines)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
