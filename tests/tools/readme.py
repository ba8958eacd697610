"""Writes the generated tables of the READMEs: ``python -m tests.tools.readme``.

A table is between two comments of its name, and is made from the course, the tests or the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from grader.course.course import load_course
from grader.student.scripts import said_of
from tests.support import attacks_table
from tests.tools import reference, structure

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def exercises_table() -> str:
    """One row a unit: its exercises and their points."""
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
    """One row a unit: the subject of `grader look`."""
    course = load_course(ROOT / "exercises")
    rows = ["| `grader look …` | shows |", "|---|---|"]
    for unit in course.units:
        rows.append(f"| `{unit.name}` | {said_of(course.look_file(unit.name)).splitlines()[0]} |")
    return "\n".join(rows) + "\n"


def experiments_table() -> str:
    """One row an experiment: its subject, and its exercises or unit."""
    course = load_course(ROOT / "exercises")
    rows = ["| `grader try …` | shows | for |", "|---|---|---|"]
    for name in dict.fromkeys(one for names in course.experiments.values() for one in names):
        about = said_of(course.experiment_file(name)).splitlines()[0]
        named = [e.name for e in course.exercises.values() if name in e.experiments]
        of = ", ".join(f"`{one}`" for one in named) if named else "the unit"
        rows.append(f"| `{name}` | {about} | {of} |")
    return "\n".join(rows) + "\n"


PARTS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"attacks": attacks_table.table, "exercises": exercises_table},
    ROOT / "exercises" / "README.md": {
        "looks": looks_table,
        "experiments": experiments_table,
    },
    ROOT / "grader" / "README.md": {"structure": structure.table},
    ROOT / "docs" / "authors" / "testing.md": {
        "draws": reference.draws,
        "proxies": reference.proxies,
        "rungs": reference.rungs,
        "assertions": reference.assertions,
        "widths": reference.widths,
    },
}


def up_to_date(path: Path, text: str) -> str:
    """The text of a README with its tables made anew."""
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
