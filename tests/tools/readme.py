"""Writes the generated tables of READMEs and docs: ``python -m tests.tools.readme``.

A table is between two comments of its name, and is made from the course, the tests or the engine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from grader.author.findings import EXCUSES
from grader.author.mutants import mutants_of
from grader.course.course import load_course
from grader.course.statements import COMPUTES, statement
from grader.mistakes import VariantKind, load_library
from grader.mistakes.known import GENERAL, common_table
from grader.student.scripts import said_of
from tests.support import attacks_table
from tests.tools import structure

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
WRONG: tuple[VariantKind, ...] = ("mistake", "pair")


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


def common_mistakes_table() -> str:
    """One row a common mistake of the engine: its title, and the rules that it breaks."""
    rows = ["| name | title | breaks |", "|---|---|---|"]
    for one in common_table(GENERAL).values():
        broken = ", ".join(f"`{rule}`" for rule in one.breaks or (COMPUTES,))
        rows.append(f"| `{one.slug}` | {one.title} | {broken} |")
    return "\n".join(rows) + "\n"


@cache
def audit_table() -> str:
    """One row a unit: what a green audit has tried, without what ``audit.toml`` excuses."""
    course = load_course(ROOT / "exercises")
    library = load_library(course)
    excuses = tomllib.loads((course.solutions / "mistakes" / EXCUSES).read_text("utf-8"))
    rows = [
        "| unit | right answers accepted | mistakes caught | mutants caught | hidden tests needed "
        "| rules proved | away from tolerances |",
        "|---|---|---|---|---|---|---|",
    ]
    sums = [(0, 0)] * 6
    for number, unit in enumerate(course.units, start=1):
        names = [exercise.name for exercise in unit.exercise]
        graders = (course.solutions / "graders" / f"test_{unit.name}.py").read_text("utf-8")
        right = sum(len(library.of(name, "accepted")) for name in names)
        wrong = sum(len(library.of(name, kind)) for name in names for kind in WRONG)
        tried = [
            (right, ""),
            (wrong, ""),
            (sum(len(mutants_of(library.sources[unit.name], n)) for n in names), "equivalent"),
            (graders.count("\ndef test_"), "kept"),
            # With the two rules that are built in; and a margin for each known answer.
            (sum(2 + len(statement(course, name).rules) for name in names), ""),
            (right + wrong + len(names), "near"),
        ]
        excused = [[id.partition("/")[0] for id in excuses.get(kind, ())] for _, kind in tried]
        counts = [
            (all_of - sum(name in names for name in without), all_of)
            for (all_of, _), without in zip(tried, excused, strict=True)
        ]
        rows.append(_counted(f"{number} `{unit.name}`", counts))
        sums = [(a + c, b + d) for (a, b), (c, d) in zip(sums, counts, strict=True)]
    return "\n".join([*rows, _counted("all", sums)]) + "\n"


def _counted(name: str, counts: Sequence[tuple[int, int]]) -> str:
    return f"| {name} | {' | '.join(f'{part} of {whole}' for part, whole in counts)} |"


def proved() -> str:
    """The sums of the tables of attacks and of the audit, as sentences."""
    *_, all_units = audit_table().splitlines()
    _, _, right, wrong, mutants, *_ = (cell.strip() for cell in all_units.split("|"))
    return (
        f"- {len(attacks_table.all_attacks())} hostile submissions were tried, and none won here. "
        "Some won in otter-grader, nbgrader and check50.\n"
        f"- The audit accepts {right} right answers, and catches {wrong} mistakes and {mutants}\n"
        "  mutants. `solutions/mistakes/audit.toml` has the reasons of the others.\n"
    )


PARTS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"proved": proved},
    DOCS / "students" / "exercises.md": {"exercises": exercises_table},
    DOCS / "explanation" / "evidence.md": {"attacks": attacks_table.table, "audit": audit_table},
    ROOT / "exercises" / "README.md": {
        "looks": looks_table,
        "experiments": experiments_table,
    },
    ROOT / "grader" / "README.md": {"structure": structure.table},
    DOCS / "authors" / "mistakes.md": {"common": common_mistakes_table},
}


def up_to_date(path: Path, text: str) -> str:
    """The text of a README with its tables made anew."""
    for name, part in PARTS[path].items():
        text = put(text, name, part())
    return text


def put(text: str, name: str, part: str, tool: str = "readme") -> str:
    """Put a part between its two comments; raise `ValueError` if the text has no place for it."""
    begin = f"<!-- {name}: written by `python -m tests.tools.{tool}` -->\n"
    end = f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the text has no place for {name}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{part}\n{end}{after}"


if __name__ == "__main__":
    for path in PARTS:
        path.write_text(up_to_date(path, path.read_text("utf-8")), "utf-8")
