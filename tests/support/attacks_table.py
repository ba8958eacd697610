"""The attacks in `tests/attacks`, as their headers describe them.

An attack is a ``.py`` file, a notebook, or a folder of source files with an ``about.txt``. Its
first three lines (the first cell of a notebook, the lines of ``about.txt``) say what it tries,
where that worked, and which points it honestly deserves.

A file may also hold several attacks, as those of ``operations`` do. Each begins with a line
``# --- NAME, POINTS`` and a comment that says what it tries; none of them worked elsewhere. The
lines above the first are part of each.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from grader.course.course import Course, load_course
from grader.course.file import LimitTable
from grader.grading.order import Order
from grader.intake import Submission, find_submissions
from grader.records.grade import Grade
from grader.wire import SourceText
from tests.support.evidence import assert_harmless, assert_only_what_passed_is_paid, earned
from tests.support.places import ROOT

ATTACKS = ROOT / "tests" / "attacks"

# Little, since an attack uses up what it is given.
LIMITS = LimitTable(test_seconds=0.6, submission_seconds=20.0, memory_mb=512)


def attacked_course() -> Course:
    """The real course, with the limits under which attacks are graded."""
    real = load_course(ATTACKS.parents[1] / "exercises")
    return replace(real, file=msgspec.structs.replace(real.file, limits=LIMITS))


def attacked_order(course: Course) -> Order:
    """How attacks are graded, wherever this machine has layers to lock them in or not."""
    seed, files = course.hidden_seed(), course.tests_of()
    return Order(course, seed, files, isolation="weak", keeps_sheet=True)


# The classes in the order of a table, with a title for it.
CLASSES: Mapping[str, str] = {
    "comparison": "replaces comparisons, or answers objects that lie to them",
    "answers": "reads expected values, tests or references, in memory and on disk",
    "results": "writes or prints results of its own",
    "exits": "ends the process, or raises what ends others",
    "endless": "never ends, and cannot be interrupted",
    "exhaustion": "uses up memory, processes, disk, descriptors or the stack",
    "replies": "forges what goes over the wire",
    "shadowing": "hands in modules, plugins and hooks in place of the grader's",
    "tensors": "answers tensors that only look right",
    "operations": "uses a forbidden operation, or hides it",
    "planted": "plants known mistakes under exercises that it does not write",
    "exceptions": "feigns the exception that a test expects",
    "leaks": "tells what hidden tests asked",
    "network": "reaches out",
    "neighbours": "reaches for other processes, users and the kernel",
    "reports": "writes into what instructors and students will read",
}

PEERS = frozenset(
    {"otter", "check50", "nbgrader", "classroom", "gradescope-utils", "prairielearn"}
)  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """One hostile submission, and the grade that it honestly deserves."""

    path: Path
    klass: str
    name: str
    tries: str
    worked_in: tuple[str, ...]
    deserves: Mapping[str, float]  # points by exercise; one that is not named earns none
    text: str | None = None  # its part of a file of several

    @property
    def id(self) -> str:
        """``class/name``."""
        return f"{self.klass}/{self.name}"

    def submission(self, course: Course) -> Submission:
        """The attack as a student's submission."""
        if self.text is not None:
            return Submission(self.name, (SourceText(f"{self.name}.py", (self.text,)),))
        (found,) = find_submissions([self.path], course, single=True)
        return found

    def put(self, folder: Path, name: str) -> None:
        """Copy the attack into a class's folder, under this name."""
        if self.text is not None:
            (folder / f"{name}.py").write_text(self.text, "utf-8")
        elif self.path.is_dir():
            shutil.copytree(self.path, folder / name)
        else:
            shutil.copy(self.path, folder / f"{name}{self.path.suffix}")


def assert_deserved(grade: Grade, attack: Attack, course: Course) -> None:
    """The attack has exactly the points that it deserves, and does no harm where it is shown."""
    assert grade.status == "graded", grade.message
    assert earned(grade) == attack.deserves
    assert grade.total == round(sum(attack.deserves.values()), 3)
    assert_only_what_passed_is_paid(grade)
    assert_harmless(grade, course)


class BadHeader(ValueError):
    """A header that is not of the form that this file describes."""


SEVERAL = re.compile(r"^# --- (\w+), (.+)\n# (.+)\n", re.MULTILINE)


def all_attacks(root: Path = ATTACKS) -> list[Attack]:
    """Every attack, by class and name; raise `BadHeader` for one that does not say what it is."""
    found = [
        attack
        for folder in root.iterdir()
        if folder.is_dir() and not folder.name.startswith((".", "__"))
        for entry in folder.iterdir()
        if not entry.name.startswith((".", "__"))
        for attack in read_attacks(entry)
    ]
    return sorted(found, key=lambda attack: (attack.klass, attack.name))


def read_attacks(path: Path) -> list[Attack]:
    """The attacks of one file or folder."""
    text = path.read_text("utf-8") if path.suffix == ".py" else ""
    heads = [*SEVERAL.finditer(text)]
    if not heads:
        return [read_attack(path)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found = []
    for head, end in zip(heads, ends, strict=True):
        name, points, tries = head.groups()
        own = text[: heads[0].start()] + text[head.start() : end]
        attack = Attack(path, path.parent.name, name, tries, (), _points(path, points), own)
        found.append(attack)
    return found


def read_attack(path: Path) -> Attack:
    """The attack that is the whole of a file or folder."""
    tries, worked, points = (
        _field(path, line, name)
        for line, name in zip(_header(path), ("Tries", "Worked in", "Deserves"), strict=True)
    )
    peers = () if worked == "-" else tuple(worked.split(", "))
    if not set(peers) <= PEERS:
        raise BadHeader(f"{path}: {sorted(set(peers) - PEERS)} is no peer that we measured")
    if not tries.endswith("."):
        raise BadHeader(f"{path}: what it tries is a sentence")
    return Attack(path, path.parent.name, path.stem, tries, peers, _points(path, points))


def _header(path: Path) -> list[str]:
    if path.is_dir():
        text = (path / "about.txt").read_text(encoding="utf-8")
    elif path.suffix == ".ipynb":
        first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
        text = "".join(first["source"]) if first["cell_type"] == "markdown" else ""
    else:
        text = path.read_text(encoding="utf-8")
    lines = text.splitlines()[:3]
    if len(lines) < 3:
        raise BadHeader(f"{path}: no header of three lines")
    return lines


def _field(path: Path, line: str, name: str) -> str:
    start = f"# {name}: "
    if not line.startswith(start) or not line[len(start) :].strip():
        raise BadHeader(f"{path}: expected `{start}…`, got {line!r}")
    return line[len(start) :].strip()


def _points(path: Path, text: str) -> dict[str, float]:
    """``softmax_rows 2, causal_mask 1`` or ``nothing``."""
    if text == "nothing":
        return {}
    points: dict[str, float] = {}
    for part in text.split(", "):
        found = re.fullmatch(r"([A-Za-z]\w*) (\d+(?:\.\d{1,3})?)", part)
        if found is None or found[1] in points:
            raise BadHeader(f"{path}: {part!r} is not an exercise with its points")
        points[found[1]] = float(found[2])
    return points


# --- the table in docs/explanation/evidence.md ---------------------------------------------------

SHOWN_PEERS = ("otter", "nbgrader", "check50")


def table() -> str:
    """One row a class: how many attacks, how many win here, and which peers lost to such ones."""
    attacks = all_attacks()
    rows = ["| a submission that … | tried | won here | otter-grader | nbgrader | check50 |"]
    rows.append("|---|---|---|---|---|---|")
    for klass, title in CLASSES.items():
        own = [attack for attack in attacks if attack.klass == klass]
        lost = Counter(peer for attack in own for peer in attack.worked_in)
        cells = ("beaten" if lost[peer] else "–" for peer in SHOWN_PEERS)
        rows.append(f"| {title} | {len(own)} | 0 | {' | '.join(cells)} |")
    rows.append(f"| **all** | **{len(attacks)}** | **0** | | | |")
    return "\n".join(rows) + "\n"
