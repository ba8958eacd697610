"""Writes the files of an invented class, with which instructors can practise grading.

A grading of a real class starts with the same files: ``submissions.zip`` as Canvas exports it,
``roster.csv``, and ``canvas.csv``, Canvas's gradebook. An answer is an accepted answer, has a known
mistake, or is missing. The class is the same each time. A smaller class has the first students of a
larger class.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from grader.course.course import Course
from grader.mistakes import Library, VariantKind, load_library, text_of_definition
from grader.records.files import EPOCH, drafted, require_empty
from grader.records.rows import letters

NAMES = (
    ("Amara", "Okafor"), ("Anna", "Lindqvist"), ("Bruno", "Ferreira"), ("Chiara", "Conti"),
    ("Daniel", "Weiss"), ("Elif", "Kaya"), ("Emma", "Dubois"), ("Farid", "Haddad"),
    ("Grace", "Mwangi"), ("Hana", "Suzuki"), ("Ivan", "Petrov"), ("Jana", "Nováková"),
    ("Jorge", "Ramírez"), ("Katarzyna", "Wójcik"), ("Lars", "Nielsen"), ("Leila", "Rahimi"),
    ("Liam", "Byrne"), ("Lucía", "Ortega"), ("Mateo", "Silva"), ("Mei", "Chen"),
    ("Minh", "Nguyen"), ("Nadia", "Benali"), ("Noah", "Fischer"), ("Olga", "Ivanova"),
    ("Priya", "Nair"), ("Quentin", "Marchand"), ("Rosa", "Martínez"), ("Sofia", "Rossi"),
    ("Tomasz", "Zieliński"), ("Yusuf", "Demir"),
)  # fmt: skip
# The shares of students who submit nothing, late, again, only a screenshot, or copied answers.
ABSENT, LATE, AGAIN, PICTURED, COPIED = 0.04, 0.1, 0.08, 0.03, 0.04


@dataclass(frozen=True)
class Enrolled:
    """A student of the class."""

    number: int  # Canvas's number of the student
    first: str
    last: str
    answers: Mapping[str, str]  # for each unit, the text of the student's file


def write_class(to: Path, course: Course, count: int) -> None:
    """Write the files of a class of `count` students into `to`.

    The folder is private, because its submissions contain solutions. Raises `CallError` if `to` is
    not empty, or if the course has no solutions.
    """
    course.require_solutions("new class")
    require_empty(to)
    students = list(_students(course, count))
    with drafted(to, private=True) as draft:
        _write_roster(draft / "roster.csv", students)
        _write_canvas(draft / "canvas.csv", students, course.most(course.exercises))
        with ZipFile(draft / "submissions.zip", "w") as archive:
            for student in students:
                for name, data in _uploads(student):
                    archive.writestr(ZipInfo(name, EPOCH), data)


# --- students and their answers ------------------------------------------------------------------


def _students(course: Course, count: int) -> Iterator[Enrolled]:
    answers = _Answers(load_library(course), tuple(course.exercises))
    neighbour: Mapping[str, str] = {}
    for place in range(count):
        draw = random.Random(place)
        own = answers.drawn(draw)
        if draw.random() < COPIED:  # copy the previous student's answers, and rename a variable
            own = {unit: re.sub(r"\bscores\b", "s", text) for unit, text in neighbour.items()}
        neighbour = own
        rounds, index = divmod(place, len(NAMES))
        last = NAMES[(index + rounds) % len(NAMES)][1]
        yield Enrolled(40_000 + 7 * place, NAMES[index][0], last, own)


class _Answers:
    """Draws random answers for students from the library of known answers."""

    def __init__(self, library: Library, names: Sequence[str]) -> None:
        self._library = library
        self._names = names
        self._forms = cache(lambda name, kind: library.of(name, kind)[:4])
        self._own = cache(lambda unit, name: text_of_definition(library.sources[unit], name))

    def drawn(self, draw: random.Random) -> Mapping[str, str]:
        """A student's files; a random skill decides which answers are right, wrong or missing."""
        skill = draw.betavariate(3, 1.5)
        texts = {**self._library.sources}
        for place, name in enumerate(self._names):
            unit, effort = self._library.unit_of[name], 1.3 - 0.6 * place / len(self._names)
            kind: VariantKind = "mistake" if draw.random() > skill else "accepted"
            forms = self._forms(name, kind)
            if draw.random() > skill * effort + 0.25:
                texts[unit] = texts[unit].replace(self._own(unit, name), "")
            elif forms:
                texts[unit] += f"\n\n{draw.choice(forms).definition}\n"
        return texts


# --- roster and gradebook ------------------------------------------------------------------------


def _write_roster(path: Path, students: Sequence[Enrolled]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["Student ID", "Name", "Email", "Section"])
        for place, one in enumerate(students):
            email = f"{letters(one.first)}.{letters(one.last)}.{place}@example.edu"
            rows.writerow([one.number, f"{one.first} {one.last}", email, "AB"[place % 2]])


def _write_canvas(path: Path, students: Sequence[Enrolled], most: float) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        about = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
        rows.writerow([*about, "Quiz (11)", "Homework (12)"])
        rows.writerow(["    Points Possible", "", "", "", "", "5.00", f"{most:.2f}"])
        for place, one in enumerate(students):
            name = f"{one.last}, {one.first}"
            rows.writerow([name, one.number, "", f"u{place}", "AB"[place % 2], place % 6, ""])


# --- submissions ---------------------------------------------------------------------------------


def _uploads(student: Enrolled) -> Iterator[tuple[str, bytes]]:
    """The names, in Canvas's form, and contents of a student's uploads.

    A student uploads Python files, a zip, a notebook, only a screenshot, or no file at all.
    """
    draw = random.Random(student.number)
    if draw.random() < ABSENT:
        return
    late = "_LATE" if draw.random() < LATE else ""
    mark = "-1" if draw.random() < AGAIN else ""
    stem = f"{letters(student.last + student.first)}{late}_{student.number}"
    upload = 10 * student.number
    if draw.random() < PICTURED:
        yield f"{stem}_{upload}_screenshot{mark}.png", b"\x89PNG\r\n"
        return
    match draw.choice(("files", "files", "zip", "notebook")):
        case "files":
            for count, (unit, text) in enumerate(student.answers.items()):
                yield f"{stem}_{upload + count}_{unit}{mark}.py", text.encode()
        case "zip":
            packed = io.BytesIO()
            with ZipFile(packed, "w") as archive:
                for unit, text in student.answers.items():
                    archive.writestr(ZipInfo(f"homework/{unit}.py", EPOCH), text)
            yield f"{stem}_{upload}_homework.zip", packed.getvalue()
        case _:
            cells = [
                {"cell_type": "code", "metadata": {}, "outputs": [], "source": text}
                for text in student.answers.values()
            ]
            notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
            yield f"{stem}_{upload}_homework{mark}.ipynb", json.dumps(notebook).encode()
