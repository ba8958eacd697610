"""Moodle: reads its downloads; writes a worksheet for offline grading, or fills in Moodle's.

A download's entry is called ``Jane Doe_12345_assignsubmission_file/attention.py``, in Moodles
before 4.1 with an underscore at the folder's end, or
``Jane Doe_12345_assignsubmission_file_attention.py``, without a folder. The number is the
participant's. Text typed into Moodle is a page called ``…_onlinetext_…``. It is read or reported if
the student submitted no file. To import a worksheet, Moodle needs the columns Identifier, Grade and
Last modified (grade).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from grader.intake.downloads import Downloads, Upload, most_of
from grader.intake.files import FileItem
from grader.intake.names import suffix
from grader.intake.typed import typed_text
from grader.lms.sheets import (
    EMAIL,
    ID,
    NAME,
    Column,
    Directory,
    Kind,
    Sheet,
    as_number,
    filled_in,
    mark_in,
    missing,
    written_anew,
)
from grader.lms.system import Feedback, FeedbackFiles, Filled, System, Table, Totals
from grader.records.faults import CallError
from grader.records.rows import Person, csv_line, number

# --- downloads -----------------------------------------------------------------------------------

# Match the first place that fits: Moodle writes the beginning of a name, the student the rest.
_ENTRY = re.compile(
    r"(?P<who>.*?)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<rest>.*))?", re.S
)


def _made(names: Collection[str]) -> Collection[str]:
    """The names that have Moodle's form, if most names have it; otherwise none."""
    return most_of(names, [name for name in names if _ENTRY.fullmatch(name)])


def _uploads(items: Sequence[FileItem], _units: Collection[str]) -> list[Upload]:
    """Group the files by participant."""
    files: dict[str, dict[str, FileItem]] = {}
    names: dict[str, str] = {}
    moments: dict[str, float] = {}
    typed: dict[str, dict[str, FileItem]] = {}
    for item in items:
        match = _ENTRY.fullmatch(item.parts[0])
        if match is None:
            continue
        number = match["number"]
        names[number] = match["who"]
        moments[number] = max(moments.get(number, 0.0), item.modified)
        own = files.setdefault(number, {})
        name = "/".join(part for part in (match["rest"], *item.parts[1:]) if part)
        if match["kind"] == "file":
            own[name] = item
        elif suffix(name) == ".html":
            typed.setdefault(number, {})["onlinetext.py"] = typed_text(item, name)
    return [
        Upload(
            names[number],
            number,
            files[number] or typed.get(number, {}),
            (Person(name=names[number], moodle=number),),
            moment=(moments[number],),
        )
        for number in files
    ]


# --- feedback ------------------------------------------------------------------------------------


def _returned(feedback: Feedback) -> tuple[str, bytes] | str:
    """The entry of a zip of feedback files, or why the student gets none.

    Moodle reads the number; the name before it is for people, and has no underscore.
    """
    person = feedback.row.person
    if not person.moodle:
        return "the submission is not from Moodle's download"
    name = re.sub(r"[\W_]+", " ", person.name or feedback.row.student).strip()
    return f"{name}_{person.moodle}_assignsubmission_file_/feedback.html", feedback.page


# --- the worksheet -------------------------------------------------------------------------------

_COLUMNS = (
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
)  # fmt: skip
_COMMA = re.compile(r"\d+,\d+")  # a number with a decimal comma
_PARTICIPANT = "Participant "
_GRADE = "Grade"
# "no" in the languages of Moodle's worksheets, in lower case
_NO = frozenset(
    {
        "no", "nein", "non", "não", "nee", "nej", "nei", "ne", "nie", "ei", "nem", "nu", "hayır",
        "нет", "ні", "не", "όχι", "لا", "לא", "いいえ", "否", "아니요", "không", "tidak",
    }
)  # fmt: skip
# The word before the number depends on the language.
_NUMBER = Kind(lambda row: [row.person.moodle], lambda text: text.rpartition(" ")[2])
_KINDS = ((_NUMBER, "Identifier"), (ID, "ID number"), (EMAIL, "Email address"), (NAME, "Full name"))


def _fresh(totals: Totals) -> Filled:
    """Write a worksheet with the students whose number is known from one of Moodle's downloads."""
    lines = [csv_line(_COLUMNS)]
    known = [row for row in totals.rows if row.person.moodle]
    if not known:
        raise CallError(
            "no student's number in Moodle is known, because no download from Moodle was graded. "
            "Fill in the worksheet that Moodle exports for offline grading: --into WORKSHEET"
        )
    for row in known:
        lines.append(
            csv_line(
                [
                    f"{_PARTICIPANT}{row.person.moodle}",
                    row.person.name,
                    row.person.email,
                    "",
                    totals.of(row),
                    totals.most,
                    "Yes",
                    None,
                    None,
                    None,
                ]
            )
        )
    return Filled(
        "".join(lines),
        tuple(missing(totals.rows, known, "the worksheet")),
        written_anew(totals, totals.title, known),
    )


def _filled(totals: Totals, into: Path) -> Filled:
    """Fill the totals into the grade column of a worksheet that Moodle exported.

    Locked grades stay as they are. If the worksheet is not in English, `totals.column` names the
    column.
    """
    sheet = Sheet(into)
    place = _grade_place(sheet, totals.column)
    top = _most_place(sheet, place)
    locked = _locked_place(sheet, place)
    # The titles of the columns depend on the language. But the first column always holds the
    # number, and the second column the name.
    directory = Directory(totals.rows, [*sheet.places(_KINDS), (_NUMBER, 0), (NAME, 1)])

    def is_locked(cells: Sequence[str]) -> bool:
        return locked is not None and cells[locked].strip().casefold() in _NO

    column = Column(place, totals.title, 1, is_locked, "locked in Moodle", form=_form)
    lines = sheet.rows[1:]
    notes = {note for cells in lines if top is not None for note in _about_most(cells[top], totals)}
    return filled_in(sheet, lines, directory, column, totals, sorted(notes))


def _grade_place(sheet: Sheet, wanted: str | None) -> int:
    """The index of the grade column; raises `CallError` if `wanted` is another column."""
    if len(sheet.header) < 3:
        raise CallError(
            f"{sheet.path} is no worksheet of Moodle: it has {len(sheet.header)} columns"
        )
    if wanted is None:
        if _GRADE not in sheet.header:
            raise CallError(
                f"{sheet.path} has no column {_GRADE}: name the grade column with --column TITLE; "
                f"it has: {', '.join(sheet.header)}"
            )
        return sheet.required(_GRADE)
    place = sheet.required(wanted)
    likely = sheet.place(_GRADE)
    if likely is None:
        # In each language, the maximum follows the grade.
        pairs = [n for n in range(2, len(sheet.header) - 1) if _is_grade_before_most(sheet, n)]
        likely = pairs[0] if len(pairs) == 1 else place
    if place != likely:
        raise CallError(
            f"the grades of {sheet.path} are in the column {sheet.header[likely]!r}, and not in "
            f"{wanted!r}: leave out --column, or name that column"
        )
    return place


def _is_grade_before_most(sheet: Sheet, place: int) -> bool:
    marks = [mark_in(cells[place]) for cells in sheet.rows[1:]]
    return _is_constant(sheet, place + 1) and not any(isinstance(mark, str) for mark in marks)


def _is_constant(sheet: Sheet, place: int) -> bool:
    """Whether all cells of a column that are not empty hold the same number."""
    marks = {mark_in(cells[place]) for cells in sheet.rows[1:]} - {None}
    return len(marks) == 1 and not any(isinstance(mark, str) for mark in marks)


def _most_place(sheet: Sheet, grade: int) -> int | None:
    """The index of the column with the maximum grade, in any language; None if there is none."""
    place = sheet.place("Maximum Grade")
    if place is None and grade + 1 < len(sheet.header) and _is_constant(sheet, grade + 1):
        return grade + 1
    return place


def _locked_place(sheet: Sheet, grade: int) -> int | None:
    """The index of the column that says whether a grade can be changed, in any language."""
    place = sheet.place("Grade can be changed")
    if place is None and grade + 2 < len(sheet.header):
        words = {cells[grade + 2].strip().casefold() for cells in sheet.rows[1:]}
        return grade + 2 if words & _NO and len(words - {""}) <= 2 else None
    return place


def _form(points: float, cells: Sequence[str]) -> str:
    """The points, with a decimal comma if the line has one."""
    comma = any(_COMMA.fullmatch(cell.strip()) for cell in cells)
    return number(points).replace(".", ",") if comma else number(points)


def _about_most(cell: str, totals: Totals) -> Iterator[str]:
    maximum = as_number(cell)
    if maximum is not None and maximum != round(totals.most, 3):
        yield (
            f"Moodle has a maximum grade of {cell.strip()}, and these grades have one of "
            f"{number(totals.most)}: set the assignment's `points` in course.toml"
        )


SYSTEM = System(
    "moodle",
    "Moodle",
    downloads=Downloads("Moodle", _made, _uploads, archive=r".+-.+-\d+"),
    grades=Table("moodle.csv", _fresh, _filled),
    returned=FeedbackFiles(
        _returned, "in Moodle: the assignment, Upload multiple feedback files in a zip"
    ),
)
