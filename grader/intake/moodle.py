"""Moodle: ``Jane Doe_12345_assignsubmission_file_/attention.py``, or the same without a folder.

The number is the participant's. Text that was typed in comes as ``…_onlinetext_…`` and is no file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from grader.intake.downloads import HandIn, System
from grader.intake.files import Item
from grader.records.rows import Person

# The first place that fits is Moodle's own: what follows is the student's to choose.
NAME = re.compile(
    r"(?P<who>.*?)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)_(?P<rest>.*)", re.S
)


def made(names: Collection[str]) -> bool:
    """Whether Moodle named all of these."""
    return bool(names) and all(NAME.fullmatch(name) for name in names)


def hand_ins(items: Sequence[Item], _units: Collection[str]) -> list[HandIn]:
    """One for each participant."""
    files: dict[str, dict[str, Item]] = {}
    names: dict[str, str] = {}
    moments: dict[str, float] = {}
    for item in items:
        match = NAME.fullmatch(item.parts[0])
        if match is None:
            continue
        number = match["number"]
        names[number] = match["who"]
        moments[number] = max(moments.get(number, 0.0), item.modified)
        own = files.setdefault(number, {})
        name = "/".join(part for part in (match["rest"], *item.parts[1:]) if part)
        if match["kind"] == "file":
            own[name] = item
    return [
        HandIn(
            names[number], number, files[number], (Person(name=names[number], moodle=number),),
            moment=(moments[number],),
        )
        for number in files
    ]  # fmt: skip


MOODLE = System("Moodle", made, hand_ins)
