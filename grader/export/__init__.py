"""Grades in the formats of other systems.

Each file here speaks one of them, in pure functions: grades go in, and what goes out holds no seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from grader.course.course import Course
from grader.course.file import Assignment
from grader.export import canvas, gradescope, moodle
from grader.export.sheets import Filled
from grader.intake.names import file_stems
from grader.records.files import drafted, require_empty
from grader.records.rows import Row, gradebook_csv, narrowed

Table = Literal["csv", "canvas", "moodle"]


@dataclass(frozen=True)
class Part:
    """What is exported of a course: these exercises, under this title."""

    title: str
    exercises: tuple[str, ...]
    assignment: Assignment | None = None  # that they are, if it is one

    def scale(self, most: float) -> float:
        """What one point of the exercises' `most` counts elsewhere."""
        return self.assignment.scale(most) if self.assignment is not None else 1.0


def exported(
    rows: Sequence[Row], what: Part, to: Table, into: Path | None = None, column: str | None = None
) -> Filled:  # fmt: skip
    """The table to upload: fresh, or `into` one that the system exported.

    Raises `CallError` where such a table cannot be filled in.
    """
    own = [narrowed(row, what.exercises) for row in rows]
    most = max((row.grade.max for row in own if row.grade), default=0.0)
    scale = what.scale(most)
    match to:
        case "csv":
            return Filled(gradebook_csv(own, what.exercises))
        case "canvas" if into is not None:
            return canvas.filled(own, into, what.title, column, scale, most)
        case "canvas":
            return canvas.fresh(own, column or what.title, scale, most)
        case "moodle" if into is not None:
            return moodle.filled(own, into, column, scale, most)
        case "moodle":
            return moodle.fresh(own, scale, most)


def write_results(to: Path, rows: Sequence[Row], what: Part, course: Course) -> Path:
    """Write a ``results.json`` of Gradescope's for each student who has a grade, into a new folder.

    Raises `CallError` where `to` holds something else.
    """
    graded = {row.student: row for row in rows if row.known}
    stems = file_stems(graded)
    require_empty(to)
    with drafted(to, private=True) as draft:
        for student, row in graded.items():
            own = narrowed(row, what.exercises)
            assert own.grade is not None
            scale = what.scale(own.grade.max)
            results = gradescope.results(own.grade, course, scale)
            results = gradescope.corrected(results, own, scale)
            (draft / stems[student]).mkdir()
            (draft / stems[student] / "results.json").write_bytes(msgspec.json.encode(results))
    return to
