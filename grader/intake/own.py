"""A student's own answers, in the folder where they are written.

What is checked there is what is handed in: one list of files serves both.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.intake.arrivals import find_submissions
from grader.intake.files import (
    FoundFile,
    Problem,
    Submission,
    folder_files,
    on_disk,
    read_files,
)
from grader.intake.names import skipped
from grader.records.bundles import is_other, sums
from grader.records.faults import CallError

NOTEBOOKS = "notebooks"  # a folder beside that of the course


def own_files(course: Course) -> list[FoundFile]:
    """What a student hands in, by the names in the zip; nothing is read yet.

    All ``.py`` files and notebooks in the course's folder, and the notebooks beside it in which
    somebody has worked.
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
    # As a zip's are read: which of several counts does not depend on where they lie.
    return [found[name] for name in sorted(found, key=lambda name: name.split("/"))]


def own_folders(course: Course) -> tuple[Path, Path]:
    """The folders in which a student's own answers may lie; the second need not be there."""
    return course.folder, course.folder.parent / NOTEBOOKS


def read_answers(answers: Path, course: Course) -> Submission:
    """A student's own answers; raise `CallError` where there are none."""
    if answers.resolve() == course.folder:
        submission = Submission("answers", *read_files(own_files(course)))
    else:
        (submission,) = find_submissions([answers], course, single=True)
    if not submission.sources:
        why = "; ".join(submission.problems)
        raise CallError(why or f"there is no .py file and no notebook in {answers}")
    return submission
