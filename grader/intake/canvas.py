"""Canvas: one file per entry, ``doejane_LATE_12345_678_attention.py``.

Name, user id, and the id of the upload, which grows; a resubmission may carry ``-1`` before the
extension. Anonymous ones are ``anon_12345_678_attention.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath

from grader.intake.downloads import HandIn, System
from grader.intake.files import Item
from grader.records.rows import Person

# The first place that fits is Canvas' own: what follows is the student's to choose.
NAME = re.compile(r"(?P<who>.*?)(?P<late>_LATE)?_(?P<user>\d+)_(?P<file>\d+)_(?P<name>.+)", re.S)
AGAIN = re.compile(r"(?P<stem>.+)-(?P<times>\d{1,3})")


def made(names: Collection[str]) -> bool:
    """Whether Canvas named all of these."""
    users: dict[str, str] = {}
    for name in names:
        match = NAME.fullmatch(name)
        # ``ada_2026_11_softmax.py`` is a name like that, too; but no two users share a number.
        if match is None or users.setdefault(match["user"], match["who"]) != match["who"]:
            return False
    return bool(names)


def hand_ins(items: Sequence[Item], units: Collection[str]) -> list[HandIn]:
    """One for each user."""
    entries: dict[str, list[tuple[re.Match[str], Item]]] = {}
    for item in items:
        match = NAME.fullmatch("/".join(item.parts))
        if match is not None:
            entries.setdefault(match["user"], []).append((match, item))
    return [_hand_in(user, found, units) for user, found in entries.items()]


def _hand_in(
    user: str, entries: Sequence[tuple[re.Match[str], Item]], units: Collection[str]
) -> HandIn:  # fmt: skip
    names = {match["name"] for match, _ in entries}
    files: dict[str, Item] = {}
    attempts = 1
    last = max(entries, key=lambda entry: int(entry[0]["file"]))[0]
    for match, item in sorted(entries, key=lambda entry: int(entry[0]["file"])):
        name, times = _without_mark(match["name"], names, units)
        attempts = max(attempts, times + 1)
        files[name] = item  # a later upload of one name replaces an earlier one
    who = last["who"] or "anon"
    return HandIn(
        f"anon_{user}" if who == "anon" else who, user, files, (Person(canvas=user),),
        late=last["late"] is not None, moment=(float(last["file"]),), attempts=attempts,
    )  # fmt: skip


def _without_mark(name: str, names: Collection[str], units: Collection[str]) -> tuple[str, int]:
    """A file's own name, and which resubmission it is: a student may end a name in ``-1``, too."""
    path = PurePath(name)
    match = AGAIN.fullmatch(path.stem)
    if match is None:
        return name, 0
    plain = match["stem"] + path.suffix
    known = plain in names or match["stem"].lower() in units
    return (plain, int(match["times"])) if known else (name, 0)


CANVAS = System("Canvas", made, hand_ins)
