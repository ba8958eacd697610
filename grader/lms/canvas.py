"""Canvas: downloads, with one file per entry; a gradebook, to import or to fill in.

A download's entries are called ``doejane_LATE_12345_678_attention.py``: name, user id, and the id
of the upload, which grows; a resubmission may carry ``-1`` before the extension. Anonymous ones are
``anon_12345_678_attention.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePath

from grader.intake.downloads import Downloads, HandIn
from grader.intake.files import FileItem
from grader.lms.sheets import ID, LOGIN, NAME, Directory, Kind, Sheet, missing, without
from grader.lms.system import Filled, System, Table, Totals
from grader.records.faults import CallError
from grader.records.rows import Person, Row, counted, csv_line, number

# --- downloads -----------------------------------------------------------------------------------

# The first place that fits is Canvas' own: what follows is the student's to choose.
_ENTRY = re.compile(r"(?P<who>.*?)(?P<late>_LATE)?_(?P<user>\d+)_(?P<file>\d+)_(?P<name>.+)", re.S)
_AGAIN = re.compile(r"(?P<stem>.+)-(?P<times>\d{1,3})")


def _made(names: Collection[str]) -> bool:
    """Whether Canvas named all of these."""
    users: dict[str, str] = {}
    for name in names:
        match = _ENTRY.fullmatch(name)
        # ``ada_2026_11_softmax.py`` is a name like that, too; but no two users share a number.
        if match is None or users.setdefault(match["user"], match["who"]) != match["who"]:
            return False
    return bool(names)


def _hand_ins(items: Sequence[FileItem], units: Collection[str]) -> list[HandIn]:
    """One for each user."""
    entries: dict[str, list[tuple[re.Match[str], FileItem]]] = {}
    for item in items:
        match = _ENTRY.fullmatch("/".join(item.parts))
        if match is not None:
            entries.setdefault(match["user"], []).append((match, item))
    return [_hand_in(user, found, units) for user, found in entries.items()]


def _hand_in(
    user: str, entries: Sequence[tuple[re.Match[str], FileItem]], units: Collection[str]
) -> HandIn:
    names = {match["name"] for match, _ in entries}
    files: dict[str, FileItem] = {}
    attempts = 1
    last = max(entries, key=lambda entry: int(entry[0]["file"]))[0]
    for match, item in sorted(entries, key=lambda entry: int(entry[0]["file"])):
        name, times = _without_mark(match["name"], names, units)
        attempts = max(attempts, times + 1)
        files[name] = item  # a later upload of one name replaces an earlier one
    who = last["who"] or "anon"
    return HandIn(
        f"anon_{user}" if who == "anon" else who,
        user,
        files,
        (Person(canvas=user),),
        late=last["late"] is not None,
        moment=(float(last["file"]),),
        attempts=attempts,
    )


def _without_mark(name: str, names: Collection[str], units: Collection[str]) -> tuple[str, int]:
    """A file's own name, and which resubmission it is: a student may end a name in ``-1``, too."""
    path = PurePath(name)
    match = _AGAIN.fullmatch(path.stem)
    if match is None:
        return name, 0
    plain = match["stem"] + path.suffix
    known = plain in names or match["stem"].lower() in units
    return (plain, int(match["times"])) if known else (name, 0)


# --- the gradebook -------------------------------------------------------------------------------

_ABOUT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS = "Points Possible"
_COLUMN = re.compile(r"(?P<title>.*\S)\s+\(\d+\)")  # Canvas adds the assignment's own number
_EXCUSED = "EX"
_NUMBER = Kind(lambda row: [row.person.canvas])
_KINDS = ((_NUMBER, "ID"), (ID, "SIS User ID"), (LOGIN, "SIS Login ID"), (NAME, "Student"))


def _fresh(totals: Totals) -> Filled:
    """A table of our own; a title that Canvas does not know proposes a new assignment there."""
    lines = [
        csv_line([*_ABOUT, totals.column or totals.title]),
        csv_line([f"    {_POINTS}", None, None, None, None, totals.most]),
    ]
    people = [row.person for row in totals.rows]
    for row, (number_there, sis) in zip(totals.rows, _ids(people), strict=True):
        person = row.person
        lines.append(
            csv_line(
                [
                    person.name or row.student,
                    number_there,
                    sis,
                    person.email,
                    person.extra.get("Section", ""),
                    totals.of(row),
                ]
            )
        )
    return Filled("".join(lines))


def _filled(totals: Totals, into: Path) -> Filled:
    """A table that Canvas exported, with the totals in the assignment's column.

    Rows that say EX stay excused, and who has no grade keeps what is there. Raises `CallError`
    where it is not plain which column is meant.
    """
    sheet = Sheet(into)
    sheet.required("Student")
    place = _column(sheet, totals.title, totals.column)
    directory = Directory(totals.rows, sheet.places(_KINDS))
    matched: list[Row] = []
    told: list[str] = []
    excused, bare = 0, []
    for cells in sheet.rows[1:]:
        if _POINTS in cells[0]:
            told += _about_points(cells[place], totals.most)
            continue
        row = directory.find(cells)
        points = totals.of(row) if row is not None else None
        if row is None or points is None:
            bare.append(cells[0].strip())
            continue
        matched.append(row)
        if cells[place].strip() == _EXCUSED:
            excused += 1
            continue
        cells[place] = number(points)
    done = counted(len(matched) - excused, "row")
    told.append(f"{done} filled in, in the column {sheet.header[place]!r}")
    if excused:
        told.append(f"excused in Canvas, and left as it was: {counted(excused, 'row')}")
    told += [*without(bare), *missing(totals.rows, matched, into.name)]
    return Filled(sheet.text(), tuple(told))


def _ids(people: Sequence[Person]) -> list[tuple[str, str]]:
    """Of each person Canvas' own number, and the university's id.

    A roster may have Canvas' numbers for ids: then those that a download tells are the same.
    """
    if any(person.id and person.id == person.canvas for person in people):
        return [(person.canvas or person.id, "") for person in people]
    return [(person.canvas, person.id) for person in people]


def _column(sheet: Sheet, title: str, wanted: str | None) -> int:
    """The column to fill in: the one that is named, or titled like the assignment, or alone."""
    if wanted is not None:
        return sheet.required(wanted, *(h for h in sheet.header if _title(h) == wanted))
    titled = [place for place, head in enumerate(sheet.header) if _COLUMN.fullmatch(head)]
    named = [place for place in titled if _title(sheet.header[place]).lower() == title.lower()]
    if len(named) == 1 or len(titled) == 1:
        return (named or titled)[0]
    columns = ", ".join(repr(sheet.header[place]) for place in titled) or "none at all"
    raise CallError(f"which column of {sheet.path}? --column TITLE; its assignments: {columns}")


def _title(head: str) -> str:
    match = _COLUMN.fullmatch(head)
    return match["title"] if match else head


def _about_points(cell: str, most: float) -> Iterator[str]:
    if cell.strip() and cell.strip().replace(".", "", 1).isdigit() and float(cell) != most:
        yield (
            f"Canvas has {number(float(cell))} points possible, and the grades are of "
            f"{number(most)}: change it there, or give the assignment `points` in course.toml"
        )


SYSTEM = System(
    "canvas",
    "Canvas",
    downloads=Downloads("Canvas", _made, _hand_ins),
    grades=Table("canvas.csv", _fresh, _filled),
)
