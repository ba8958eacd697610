"""Feedback in a zip, from the download of a system back to the students in it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest

from tests.conftest import Grader
from tests.support.archives import zipped
from tests.support.places import TINY

COURSE = ("--course", TINY / "exercises")
WRONG = "def center(x):\n    return x + x.mean()\n"
NOTEBOOK = json.dumps(
    {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None,
         "source": WRONG},
    ]}
)  # fmt: skip
CANVAS: dict[str, str | bytes] = {
    "doejane_LATE_11_101_basics.py": WRONG,
    "doejane_LATE_11_102_more.py": "x = 1\n",
    "doejane_LATE_11_109_essay.pdf": b"%PDF-1.7",
    "roebob_12_103_basics.ipynb": NOTEBOOK,
    "poecleo_13_104_answers.zip": zipped({"basics.py": WRONG}),
    "typist_14_text.html": f"<pre>{WRONG}</pre>",
}


def canvas_takes(name: str) -> tuple[str, str] | None:
    """The user and the attachment that Canvas reads in the name of an uploaded file, or None."""
    numbers = [part for part in name.split("_") if part.isdigit()][:2]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def moodle_takes(name: str) -> tuple[str, str] | None:
    """The participant and the file that Moodle reads in an entry's path, or None."""
    folder, _, file = name.partition("/")
    parts = folder.split("_", 4)
    plugin = parts[2:4] == ["assignsubmission", "file"]
    return (parts[1], file) if len(parts) > 3 and plugin and parts[1].isdigit() else None


def graded(grader: Grader, place: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = place / "submissions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = grader("grade", place / "submissions", "--out", place / "grades", "--no-pages", *COURSE)
    assert ran.code == 0, ran.err
    return place / "grades"


@pytest.fixture
def book(grader: Grader, tmp_path: Path) -> Path:
    return graded(grader, tmp_path, CANVAS)


def zip_of(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_canvas_gets_a_file_of_the_students_type_under_the_name_of_the_newest_file(
    book: Path, grader: Grader
) -> None:
    assert grader("adjust", book, "roebob", "center", "+1", "--reason", "seen", *COURSE).code == 0
    ran = grader("report", book, "--zip", "canvas", *COURSE)
    assert ran.code == 0
    files = zip_of(book / "feedback-canvas.zip")
    assert {name: canvas_takes(name) for name in files} == {
        "doejane_LATE_11_102_more.py": ("11", "102"),
        "roebob_12_103_basics.ipynb": ("12", "103"),
        "poecleo_13_104_answers.zip": ("13", "104"),
    }
    comments = files["doejane_LATE_11_102_more.py"].decode()
    assert all(line.startswith("#") for line in comments.splitlines())
    assert "The mean is added" in comments
    text = files["roebob_12_103_basics.ipynb"].decode()
    notebook = json.loads(text)
    nbformat.validate(notebook)
    (cell,) = notebook["cells"]
    assert "Corrected by your instructor: center +1" in cell["source"]
    with ZipFile(io.BytesIO(files["poecleo_13_104_answers.zip"])) as inner:
        assert inner.read("feedback.html") == (book / "feedback" / "poecleo.html").read_bytes()


def test_a_line_names_whom_the_zip_cannot_reach_and_where_to_upload_it(
    book: Path, grader: Grader
) -> None:
    out = grader("report", book, "--zip", "canvas", *COURSE).out
    assert "feedback for 3 students; upload it in Canvas: Gradebook" in out
    assert "typed into Canvas, so there is no file to answer: typist" in out
    moodle = grader("report", book, "--zip", "moodle", *COURSE).out
    assert "feedback for 0 students" in moodle
    assert "not from Moodle's download: " in moodle


def test_nothing_of_a_hidden_test_is_in_a_file_that_is_not_on_the_page(
    book: Path, grader: Grader
) -> None:
    lines = (book / "results.jsonl").read_text("utf-8").splitlines()
    tests = [
        test
        for line in lines
        for exercise in json.loads(line)["exercises"]
        for test in exercise["tests"]
    ]
    hidden = [test["message"] for test in tests if test["hidden"] and test["message"]]
    assert hidden
    grader("report", book, "--zip", "canvas", *COURSE)
    whole = b"".join(zip_of(book / "feedback-canvas.zip").values()).decode("utf-8", "replace")
    unmarked = whole.replace("\n#", "\n")
    for message in hidden:
        assert message.splitlines()[0] not in unmarked


def test_moodle_gets_each_page_in_the_folder_of_its_participant(
    grader: Grader, tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {
        "Jane Doe_678_assignsubmission_file_/basics.py": WRONG,
        "Zoë O'Neil_Jr_679_assignsubmission_file_/basics.py": WRONG,
    }
    book = graded(grader, tmp_path, files)
    ran = grader("report", book, "--zip", "moodle", *COURSE)
    assert "feedback for 2 students; upload it in Moodle" in ran.out
    written = zip_of(book / "feedback-moodle.zip")
    assert sorted(filter(None, map(moodle_takes, written))) == [
        ("678", "feedback.html"),
        ("679", "feedback.html"),
    ]
    pages = {path.read_bytes() for path in (book / "feedback").glob("*.html")}
    assert {*written.values()} == pages


def test_anonymous_reports_have_no_zip(book: Path, grader: Grader) -> None:
    ran = grader("report", book, "--anonymous", "--zip", "canvas", *COURSE)
    assert ran.code == 2
    assert "excludes --zip" in ran.err
    assert not (book / "feedback-canvas.zip").exists()
