"""Canvas: reads its downloads; writes a gradebook, or fills in a gradebook that Canvas exported.

A download's entry is called ``doejane_LATE_12345_678_attention.py``. It has the student's name, the
user id, the id of the upload, and the file's own name. A later upload has a larger id. A
resubmission may have ``-1`` before the extension. Text typed into Canvas is called
``doejane_12345_text.html``, and a link ``doejane_12345_link.html``, without an upload's id. A text
that holds code is read as a file ``text.py``.

With anonymous grading an entry is called ``anon_ab12c_678_attention.py``, with letters and digits
instead of the user id. LATE is then at the beginning, after ``anon``, or after the user id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from grader.intake.downloads import Downloads, Upload, most_of
from grader.intake.files import FileItem
from grader.intake.names import SOURCES, ZIP, suffix
from grader.intake.typed import typed_link, typed_text
from grader.lms.sheets import (
    ID,
    LOGIN,
    NAME,
    Column,
    Directory,
    Kind,
    Sheet,
    as_number,
    filled_in,
    written_anew,
)
from grader.lms.system import Feedback, FeedbackFiles, Filled, System, Table, Totals
from grader.records.faults import CallError
from grader.records.files import zipped
from grader.records.rows import Person, Row, csv_line, number

# --- downloads -----------------------------------------------------------------------------------

# Match the first place that fits: Canvas writes the beginning of a name, the student the rest.
_ID = r"[0-9]{1,20}"  # a number of 64 bits
_REST = rf"_(?:(?P<file>{_ID})_(?P<name>.+)|(?P<typed>(?:text|link)\.html))"
_NAMED = re.compile(rf"(?P<who>.*?)(?P<late>_LATE)?_(?P<user>{_ID}){_REST}", re.S)
_ANONYMOUS = re.compile(
    rf"(?P<first>LATE_)?anon(?P<before>_LATE)?_(?P<user>[A-Za-z0-9]{{1,20}})(?P<late>_LATE)?{_REST}",
    re.S,
)
_AGAIN = re.compile(r"(?P<stem>.+)-(?P<times>\d{1,3})")


@dataclass(frozen=True)
class _Entry:
    """The parts of an entry's name."""

    who: str
    number: str  # the user's id, or the pseudonym if grading is anonymous
    late: bool
    upload: int  # the upload's id; 0 for typed text
    name: str  # the student's own name for the file, or the name that Canvas gave typed text
    typed: bool  # whether the student typed a text, or the address of a link
    person: Person
    whole: str  # all of the entry's name


def _entry(name: str) -> _Entry | None:
    """Parse an entry's name; None if the name does not have Canvas' form."""
    if match := _ANONYMOUS.fullmatch(name):
        who = number = f"anon_{match['user']}"
        late, person = any(match.group("first", "before", "late")), Person()
    elif match := _NAMED.fullmatch(name):
        number = match["user"]
        who = match["who"] or f"anon_{number}"
        late, person = match["late"] is not None, Person(canvas=number)
    else:
        return None
    upload, own = int(match["file"] or 0), match["name"] or match["typed"]
    return _Entry(who, number, late, upload, own, match["typed"] is not None, person, name)


def user_of(name: str) -> str | None:
    """The user's number in a name of Canvas' form; None for another name."""
    entry = _entry(name)
    return entry.number if entry is not None else None


def _made(names: Collection[str]) -> Collection[str]:
    """The names that have Canvas' form, if most names have it; otherwise none."""
    own: dict[str, _Entry] = {name: entry for name in names if (entry := _entry(name)) is not None}
    users: dict[str, str] = {}
    for entry in own.values():
        # ``ada_2026_11_softmax.py`` looks like an entry, but in Canvas no two users share a number.
        if users.setdefault(entry.number, entry.who) != entry.who:
            return ()
    return most_of(names, own)


def _uploads(items: Sequence[FileItem], units: Collection[str]) -> list[Upload]:
    """Group the entries by user."""
    entries: dict[str, list[tuple[_Entry, FileItem]]] = {}
    for item in items:
        entry = _entry("/".join(item.parts))
        if entry is not None:
            entries.setdefault(entry.number, []).append((entry, item))
    return [_upload(found, units) for found in entries.values()]


def _upload(found: Sequence[tuple[_Entry, FileItem]], units: Collection[str]) -> Upload:
    names = {entry.name for entry, _ in found}
    files: dict[str, FileItem] = {}
    attempts = 1
    last = max((entry for entry, _ in found), key=lambda entry: entry.upload)
    uploaded = any(not entry.typed for entry, _ in found)
    answered = [
        (entry.upload, entry.whole)
        for entry, _ in found
        if not uploaded or suffix(entry.name) in (*SOURCES, ZIP)
    ]
    for entry, item in sorted(found, key=lambda one: one[0].upload):
        if entry.typed:
            if not uploaded:
                files |= _typed(entry.name, item)
            continue
        name, times = _without_mark(entry.name, names, units)
        attempts = max(attempts, times + 1)
        files[name] = item  # a later upload replaces an earlier upload of the same name
    return Upload(
        last.who,
        last.number,
        files,
        (last.person,),
        late=last.late,
        moment=(float(last.upload),),
        attempts=attempts,
        entry=max(answered, default=(0, ""))[1],
    )


def _typed(name: str, item: FileItem) -> dict[str, FileItem]:
    """A typed text as a file of code; a link as a file that is not read."""
    if name.startswith("link"):
        return {"link.py": typed_link(item, name)}
    return {"text.py": typed_text(item, name)}


def _without_mark(name: str, names: Collection[str], units: Collection[str]) -> tuple[str, int]:
    """A file's name without a mark such as ``-1``, and the number of resubmissions in the mark.

    A student may also choose a name that ends in ``-1``. Therefore the mark is removed only if the
    name without the mark is the name of another file or of a unit.
    """
    path = PurePath(name)
    match = _AGAIN.fullmatch(path.stem)
    if match is None:
        return name, 0
    plain = match["stem"] + path.suffix
    known = plain in names or match["stem"].lower() in units
    return (plain, int(match["times"])) if known else (name, 0)


# --- feedback ------------------------------------------------------------------------------------
#
# Canvas matches an uploaded file by the numbers in its name: the user's, and that of the student's
# file. It shows the feedback under the name of that file, so the feedback has the file's type.


def _returned(feedback: Feedback) -> tuple[str, bytes] | str:
    """The entry of a zip for "Upload Submissions", or why the student gets none."""
    entry = _entry(feedback.entry)
    if entry is None:
        return "no .py file, notebook or zip of the submission is from Canvas's download"
    if entry.typed:
        return "the answer was typed into Canvas, so there is no file to answer"
    if not entry.person.canvas:
        return "the download was anonymous"
    if entry.person.canvas != feedback.row.person.canvas:
        return "another member of the group submitted the file"
    return entry.whole, _as_file(feedback, suffix(entry.name))


def _as_file(feedback: Feedback, kind: str) -> bytes:
    """The feedback as a zip with the page, as a notebook with a text, or as comments."""
    if kind == ZIP:
        return zipped({"feedback.html": feedback.page})
    text = feedback.text
    if kind == ".ipynb":
        cell = {"cell_type": "markdown", "id": "feedback", "metadata": {}, "source": text}
        whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(whole, indent=1).encode()
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines()).encode()


# --- the gradebook -------------------------------------------------------------------------------

_ABOUT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS = "Points Possible"
_COLUMN = re.compile(r"(?P<title>.*\S)\s+\(\d+\)")  # Canvas adds the assignment's number
_EXCUSED = "EX"
_READ_ONLY = "read only"  # in place of the points possible, if Canvas does not import a column
_NUMBER = Kind(lambda row: [row.person.canvas])
_KINDS = ((_NUMBER, "ID"), (ID, "SIS User ID"), (LOGIN, "SIS Login ID"), (NAME, "Student"))


def directory_of(rows: Sequence[Row]) -> Directory:
    """Finds a student by a line of these cells: Canvas's id, SIS id, login, name."""
    return Directory(rows, [(kind, place) for place, (kind, _) in enumerate(_KINDS)])


def _fresh(totals: Totals) -> Filled:
    """Write a new table; for an unknown title, Canvas offers to create an assignment."""
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
                    _EXCUSED if row.excused else totals.of(row),
                ]
            )
        )
    title = totals.column or totals.title
    return Filled("".join(lines), push=written_anew(totals, title, totals.rows))


def _filled(totals: Totals, into: Path) -> Filled:
    """Fill the totals into the assignment's column of a table that Canvas exported.

    Cells with EX (excused) and cells of students without a grade stay as they are. Raises
    `CallError` if the column is ambiguous.
    """
    sheet = Sheet(into)
    sheet.required("Student")
    place = _column(sheet, totals.title, totals.column)
    directory = Directory(totals.rows, sheet.places(_KINDS))
    lines = [cells for cells in sheet.rows[1:] if _POINTS not in cells[0]]
    maxima = [cells[place] for cells in sheet.rows[1:] if _POINTS in cells[0]]
    notes = [note for cell in maxima for note in about_points(as_number(cell), totals.most)]

    def is_excused(cells: Sequence[str]) -> bool:
        return cells[place].strip() == _EXCUSED

    title = _title(sheet.header[place])  # a table without numbers of assignments has it too
    alone = sum(_title(head) == title for head in sheet.header) == 1
    known = title if alone else sheet.header[place]
    column = Column(place, known, 0, is_excused, "excused in Canvas", excused=_EXCUSED)
    return filled_in(sheet, lines, directory, column, totals, notes)


def _ids(people: Sequence[Person]) -> list[tuple[str, str]]:
    """Each person's number in Canvas, and id at the university.

    A roster may use Canvas' numbers as ids. This is the case if any person's id equals the number
    that Canvas' download gives for the person.
    """
    if any(person.id and person.id == person.canvas for person in people):
        return [(person.canvas or person.id, "") for person in people]
    return [(person.canvas, person.id) for person in people]


def _column(sheet: Sheet, title: str, wanted: str | None) -> int:
    """The column to fill in: the column with this title, or `wanted` if there is none.

    Raises `CallError` if there is no such column, or more than one.
    """
    places = [n for n, head in enumerate(sheet.header) if n and head not in _ABOUT]
    titled = [n for n in places if _COLUMN.fullmatch(sheet.header[n])]
    listed = ", ".join(repr(sheet.header[n]) for n in titled) or "none at all"
    own = [n for n in places if _title(sheet.header[n]).lower() == title.lower()]
    if wanted is None:
        if len(own) == 1:
            return own[0]
        why = "several columns are" if own else "no column is"
        raise CallError(
            f"which column of {sheet.path}? {why} called {title!r}: --column TITLE; its "
            f"assignments: {listed}"
        )
    exact = [n for n in places if sheet.header[n] == wanted]
    found = exact or [n for n in places if _title(sheet.header[n]) == wanted]
    if len(found) != 1:
        count = "several columns are" if found else "no column is"
        raise CallError(
            f"{count} called {wanted!r} in {sheet.path}: name one with its number; its "
            f"assignments: {listed}"
        )
    (place,) = found
    if own and place not in own:
        raise CallError(
            f"these grades are for {title!r}, and {sheet.path} has the column "
            f"{sheet.header[own[0]]!r}, so {wanted!r} is another assignment's: leave out --column. "
            f"To fill in {wanted!r} all the same, remove the other column from the file"
        )
    if any(_POINTS in cells[0] and _READ_ONLY in cells[place].lower() for cells in sheet.rows[1:]):
        raise CallError(
            f"Canvas computes {wanted!r} itself: name an assignment; there is: {listed}"
        )
    return place


def _title(head: str) -> str:
    match = _COLUMN.fullmatch(head)
    return match["title"] if match else head


def about_points(there: float | None, most: float) -> Iterator[str]:
    """A line if the points possible in Canvas differ from the maximum of the grades."""
    if there is not None and round(there, 3) != round(most, 3):
        yield (
            f"Canvas has {number(there)} points possible, and these grades have a maximum of "
            f"{number(most)}: change it in Canvas, or set the assignment's `points` in course.toml"
        )


SYSTEM = System(
    "canvas",
    "Canvas",
    downloads=Downloads("Canvas", _made, _uploads),
    grades=Table("canvas.csv", _fresh, _filled),
    returned=FeedbackFiles(
        _returned, "in Canvas: Gradebook, the assignment's menu, Upload Submissions"
    ),
)
