"""Returns the feedback pages to students through their learning system, in a zip to upload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.feedback.verdict import verdict_of
from grader.feedback.visible import for_students
from grader.grades.gradebook import FEEDBACK, Gradebook, feedback_names
from grader.intake.names import shown
from grader.lms.markdown import decided, failures, in_markdown, in_paragraphs
from grader.lms.system import Feedback, FeedbackFiles, System
from grader.records.faults import unwritten
from grader.records.files import write_whole, zipped
from grader.records.rows import Row, called, counted, number, some_of

SHARED = "several students share one file in {}"


@dataclass(frozen=True)
class Zip:
    """A zip of feedback that was written."""

    path: Path
    reached: int  # students
    unreached: Mapping[str, list[str]]  # students by the reason why the zip has no file for them
    where: str  # where to upload it

    def lines(self) -> Iterator[str]:
        """Lines about the zip for the instructor."""
        students = counted(self.reached, "student")
        yield f"{self.path}: feedback for {students}; upload it {self.where}"
        for why, names in self.unreached.items():
            yield f"not in the zip, since {why}: {some_of(names)}"


def write_zip(book: Gradebook, course: Course, system: System, returned: FeedbackFiles) -> Zip:
    """Write the zip into the gradebook's folder, from the pages that are there."""
    rows = [row for row in book.rows() if row.grade is not None]
    names = feedback_names(rows)
    found: dict[str, tuple[str, bytes]] = {}
    unreached: dict[str, list[str]] = {}
    for row in rows:
        page = (book.folder / FEEDBACK / names[row.student]).read_bytes()
        entry = returned.entry(Feedback(row, page, feedback_text(row, course), _entry(book, row)))
        if isinstance(entry, str):
            unreached.setdefault(entry, []).append(_called(row))
        else:
            found[row.student] = entry
    uses = Counter(name for name, _ in found.values())
    for row in rows:  # a page has personal corrections, which the others must not see
        if row.student in found and uses[found[row.student][0]] > 1:
            del found[row.student]
            unreached.setdefault(SHARED.format(system.title), []).append(_called(row))
    path = book.folder / f"feedback-{system.name}.zip"
    try:
        write_whole(path, zipped(dict(found.values())))
    except OSError as error:
        raise unwritten(path, error) from None
    return Zip(path, len(found), unreached, returned.where)


def feedback_text(row: Row, course: Course) -> str:
    """A student's feedback as Markdown: the points, what people decided, and what is wrong."""
    assert row.grade is not None
    grade = for_students(row.grade, course)
    most = f" of {number(round(row.max, 2))}" if row.max is not None else ""
    total = "unknown" if row.total is None else f"{number(round(row.total, 2))}{most}"
    verdicts = [verdict_of(exercise) for exercise in grade.exercises]
    begun = [one for one in verdicts if one.state == "unsolved"]
    unwritten_yet = [f"`{one.exercise}`" for one in verdicts if one.state == "untouched"]
    return in_paragraphs(
        f"# {in_markdown(course.file.title)}: {total} points",
        in_markdown(grade.message or ""),
        *decided(row),
        *map(failures, begun),
        f"Not written: {', '.join(unwritten_yet)}" if unwritten_yet else "",
    )


def _entry(book: Gradebook, row: Row) -> str:
    assert row.grade is not None
    submission = book.submission(row.grade.submission)
    return submission.entry if submission is not None else ""


def _called(row: Row) -> str:
    return called(row.student, shown(row.person.name))
