"""The parts of READMEs that are written by a program: ``python -m tests.tools.readme``.

Each stands between two comments, and says between them what the course and the tests hold today.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from grader.course.course import load_course
from tests.support import attacks_table
from tests.tools import structure

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def exercises_table() -> str:
    """One row a unit: its exercises, and what they are worth."""
    course = load_course(ROOT / "exercises")
    rows = ["| unit | points | exercises |", "|---|---|---|"]
    for number, unit in enumerate(course.units, start=1):
        points = sum(exercise.points for exercise in unit.exercise)
        names = ", ".join(f"`{exercise.name}`" for exercise in unit.exercise)
        rows.append(f"| {number} `{unit.name}`: {unit.title} | {points:g} | {names} |")
    total = sum(exercise.points for exercise in course.exercises.values())
    rows.append(f"| **all** | **{total:g}** | {len(course.exercises)} exercises |")
    return "\n".join(rows) + "\n"


def looks_table() -> str:
    """One row a unit: what there is to look at once it is solved."""
    course = load_course(ROOT / "exercises")
    rows = ["| `grader look …` | shows |", "|---|---|"]
    for unit in course.units:
        about = ast.get_docstring(ast.parse(course.look_file(unit.name).read_text("utf-8"))) or ""
        rows.append(f"| `{unit.name}` | {about.splitlines()[0]} |")
    return "\n".join(rows) + "\n"


PARTS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"attacks": attacks_table.table, "exercises": exercises_table},
    ROOT / "exercises" / "README.md": {"looks": looks_table},
    ROOT / "grader" / "README.md": {"structure": structure.table},
}


def up_to_date(path: Path, text: str) -> str:
    """The text of a README with every part as it is today."""
    for name, part in PARTS[path].items():
        begin = f"<!-- {name}: written by `python -m tests.tools.readme` -->\n"
        end = f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{path.name} has no place for {name}")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{part()}\n{end}{after}"
    return text


if __name__ == "__main__":
    for path in PARTS:
        path.write_text(up_to_date(path, path.read_text("utf-8")), "utf-8")
