"""The attacks that live in `tests/attacks`, as their headers describe them.

An attack is a ``.py`` file, a notebook, or a folder of source files with an ``about.txt``. Its
first three lines (the first cell of a notebook, the lines of ``about.txt``) say what it tries,
where that worked, and which points it honestly deserves.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from grader.course.course import Course, load_course
from grader.course.file import LimitTable
from grader.grading.order import Order
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
    return Order(course, seed, files, isolation="weak", remembers=True)


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

    @property
    def id(self) -> str:
        """``class/name``."""
        return f"{self.klass}/{self.name}"


class BadHeader(ValueError):
    """A header that is not of the form that this file describes."""


def all_attacks(root: Path = ATTACKS) -> list[Attack]:
    """Every attack, by class and name; raise `BadHeader` for one that does not say what it is."""
    folders = [folder for folder in sorted(root.iterdir()) if folder.is_dir()]
    return [
        read_attack(entry)
        for folder in folders
        if not folder.name.startswith((".", "__"))
        for entry in sorted(folder.iterdir())
        if not entry.name.startswith((".", "__"))
    ]


def read_attack(path: Path) -> Attack:
    """One attack from its file or folder."""
    lines = _header(path)
    fields = [
        _field(path, line, name)
        for line, name in zip(lines, ("Tries", "Worked in", "Deserves"), strict=True)
    ]
    peers = () if fields[1] == "-" else tuple(fields[1].split(", "))
    if not set(peers) <= PEERS:
        raise BadHeader(f"{path}: {sorted(set(peers) - PEERS)} is no peer that we measured")
    if not fields[0].endswith("."):
        raise BadHeader(f"{path}: what it tries is a sentence")
    return Attack(path, path.parent.name, path.stem, fields[0], peers, _points(path, fields[2]))


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


# --- the table in the README ---------------------------------------------------------------------

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
