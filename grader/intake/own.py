"""Finds a student's own answers in the folder of the course.

Checking and packing use the same list of files, so that a student submits exactly what was checked.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.intake.arrivals import find_submissions
from grader.intake.files import (
    FoundFile,
    Problem,
    folder_files,
    on_disk,
    read_files,
)
from grader.intake.names import SOURCES, real_name, skipped, suffix
from grader.intake.submission import Submission
from grader.records.bundles import is_other, sums
from grader.records.faults import CallError

NOTEBOOKS = "notebooks"  # a sibling of the course's folder


def own_files(course: Course) -> list[FoundFile]:
    """List the files to submit, under the names that they get in the zip, without reading them.

    These are all ``.py`` files and notebooks in the course's folder, and the notebooks in its
    sibling `NOTEBOOKS` that the student has changed.
    """
    folder, beside = own_folders(course)
    pristine = sums(course.folder.parent)
    worked_in = [
        path
        for path in sorted(beside.glob("*.ipynb"))
        if not skipped(path.name, folder=False)
        and is_other(path, pristine.get(Path(NOTEBOOKS, path.name), ""))
    ]
    found: dict[str, FoundFile] = {file.name: file for file in folder_files(folder)}
    for path in worked_in:
        name = f"{NOTEBOOKS}/{path.name}"
        taken = Problem(name, f"{folder.name}/{name} has the same name: rename one of them")
        found[name] = taken if name in found else on_disk(path, name)
    # In the order of the zip's files, so that checking and grading use the same definitions.
    return [found[name] for name in sorted(found, key=lambda name: name.split("/"))]


def misnamed(course: Course) -> list[str]:
    """A line for each source file of a student's that is left out, with the reason.

    A file such as ``gpt.py.txt`` is a source file under another name.
    """
    return [
        f"{file.name}: {file.why}"
        for file in own_files(course)
        if isinstance(file, Problem) and suffix(real_name(file.name)) in SOURCES
    ]


def own_folders(course: Course) -> tuple[Path, Path]:
    """The folders that may hold a student's own answers; the second may not exist."""
    return course.folder, course.folder.parent / NOTEBOOKS


def read_answers(answers: Path, course: Course) -> Submission:
    """Read a student's own answers; raise `CallError` if there are none."""
    if answers.resolve() == course.folder:
        submission = Submission("answers", *read_files(own_files(course)))
    else:
        (submission,) = find_submissions([answers], course, single=True)
    if not submission.sources:
        why = "; ".join(submission.problems)
        raise CallError(why or f"there is no .py file and no notebook in {answers}")
    return submission
