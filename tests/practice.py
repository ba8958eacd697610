"""A class that never was, to try things on: ``python -m tests.practice DIR --students 300``.

Writes what an instructor starts from: ``submissions.zip`` as Canvas hands it out, ``roster.csv``,
and ``canvas.csv``, the gradebook that Canvas exported. The same call gives the same class.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

SAMPLES = Path(__file__).parent / "submissions"
WRITERS = ("ada", "dana_mistakes", "blank")  # right, known mistakes, untouched
FIRST = (
    "Ada", "Bela", "Chidi", "Dana", "Elif", "Farah", "Gil", "Hana", "Ines", "Jonas", "Kaya",
    "Lena", "Malik", "Nour", "Olga", "Priya", "Quinn", "Rosa", "Sami", "Tove",
)  # fmt: skip
LAST = (
    "Abel", "Brandt", "Costa", "Diaz", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jansen",
    "Kowalski", "Larsen", "Mbeki", "Novak", "Okafor", "Park",
)  # fmt: skip


def main() -> None:
    """Write the class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--students", type=int, default=300)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    names = [(first, last) for last in LAST for first in FIRST]
    people = [names[draw.randrange(len(names))] for _ in range(given.students)]
    _roster(given.folder / "roster.csv", people)
    _canvas(given.folder / "canvas.csv", people)
    with ZipFile(given.folder / "submissions.zip", "w") as archive:
        for number, person in enumerate(people):
            if draw.random() < 0.96:  # the others hand in nothing
                for name, data in _handed_in(draw, number, person):
                    archive.writestr(name, data)
    print(f"{given.students} students in {given.folder}")


def _roster(path: Path, people: list[tuple[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["Student ID", "Name", "Email", "Section"])
        for number, (first, last) in enumerate(people):
            email = f"{first}.{last}.{number}@example.edu".lower()
            rows.writerow([_user(number), f"{first} {last}", email, "AB"[number % 2]])


def _canvas(path: Path, people: list[tuple[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        about = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
        rows.writerow([*about, "Quiz (11)", "Attention (12)"])
        rows.writerow(["    Points Possible", "", "", "", "", "5.00", "106.00"])
        for number, (first, last) in enumerate(people):
            name = f"{last}, {first}"
            rows.writerow([name, _user(number), "", f"u{number}", "A", number % 6, ""])


def _user(number: int) -> int:
    return 40_000 + 7 * number


def _handed_in(
    draw: random.Random, number: int, person: tuple[str, str]
) -> Iterator[tuple[str, bytes]]:
    """The entries of one student, as Canvas names them: files, a zip, or a notebook."""
    first, last = person
    late = "_LATE" if draw.random() < 0.1 else ""
    upload = 900_000 + 10 * number
    mark = "-1" if draw.random() < 0.08 else ""
    stem = f"{last}{first}{late}_{_user(number)}".lower().replace("_late", "_LATE")
    files = _answers(draw)
    match draw.choice(("files", "files", "zip", "notebook")):
        case "files":
            for count, (name, text) in enumerate(files.items()):
                yield f"{stem}_{upload + count}_{name}{mark}.py", text.encode()
        case "zip":
            packed = io.BytesIO()
            with ZipFile(packed, "w") as archive:
                for name, text in files.items():
                    archive.writestr(f"homework/{name}.py", text)
            yield f"{stem}_{upload}_homework.zip", packed.getvalue()
        case _:
            cells = [
                {"cell_type": "code", "metadata": {}, "outputs": [], "source": text}
                for text in files.values()
            ]
            notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
            yield f"{stem}_{upload}_attention{mark}.ipynb", json.dumps(notebook).encode()


def _answers(draw: random.Random) -> Mapping[str, str]:
    """A file for each unit that this student began, by one of the writers."""
    skill = draw.random()
    answers = {}
    for path in sorted((SAMPLES / "ada").glob("*.py")):
        weights = (0.2 + 0.8 * skill, 0.6 - 0.4 * skill, 0.4 - 0.3 * skill)
        (writer,) = draw.choices(WRITERS, weights)
        source = SAMPLES / writer / path.name
        if source.is_file():
            answers[path.stem] = source.read_text("utf-8")
    return answers


if __name__ == "__main__":
    main()
