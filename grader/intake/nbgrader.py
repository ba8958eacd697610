"""nbgrader: ``submitted/<student>/<assignment>/<notebook>.ipynb``.

A student's assignments are read as one submission.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grader.intake.downloads import SUBMITTED, HandIn, System
from grader.intake.files import Item
from grader.records.rows import Person

OTHERS = {"source", "release", "autograded", "feedback"}


def made(names: Collection[str]) -> bool:
    """Whether this is the folder that holds ``submitted``."""
    return SUBMITTED in names and bool(OTHERS & {*names} or names == {SUBMITTED})


def hand_ins(items: Sequence[Item], _units: Collection[str]) -> list[HandIn]:
    """One for each student."""
    below = any(item.parts[0] == SUBMITTED for item in items)
    files: dict[str, dict[str, Item]] = {}
    for item in items:
        if below and item.parts[0] != SUBMITTED:
            continue
        student, *rest = item.parts[below:]
        if rest:
            files.setdefault(student, {})["/".join(rest)] = item
    return [
        HandIn(student, student, own, (Person(),), moment=(max(i.modified for i in own.values()),))
        for student, own in files.items()
    ]


NBGRADER = System("nbgrader", made, hand_ins)
