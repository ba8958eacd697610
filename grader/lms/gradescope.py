"""Gradescope: reads its downloads, and writes the bundle with which Gradescope grades.

In Gradescope's container, the bundle grades a submission and writes ``results.json``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from grader import __version__
from grader.course.course import Course
from grader.feedback import terminal
from grader.feedback.verdict import Verdict, verdict_of
from grader.feedback.visible import for_students
from grader.intake import read_submission
from grader.intake.downloads import Downloads, Upload
from grader.intake.files import FileItem
from grader.lms.markdown import block, decided, explained, in_paragraphs
from grader.lms.system import Bundle, Host, ResultFiles, System, grade_one
from grader.records.bundles import bundled, require_free, write_sums
from grader.records.faults import CallError, HostFault
from grader.records.files import files_in, write_whole, zipped
from grader.records.grade import (
    Grade,
    counted_elsewhere,
    scaled,
)
from grader.records.rows import Person, Row, number
from grader.records.times import sensible
from grader.release import texts
from grader.release.courses import carried_seed, carry, load_carried
from grader.release.engine import copy_engine
from grader.release.pins import pip_files
from grader.release.texts import licence, write_text
from grader.sandbox.budget import WALL_FACTOR

# --- downloads -----------------------------------------------------------------------------------
#
# A download has a folder for each submission, and a file that names each submission's submitters.
# Several submitters of one submission are a group.

SUBMITTERS = "submission_metadata.yml"
LARGEST = 10**30  # a student number is smaller


def _made(names: Collection[str]) -> Collection[str]:
    """The name of the file that lists all folders and their submitters, if it is in `names`."""
    return {SUBMITTERS} & {*names}


def _uploads(items: Sequence[FileItem], _units: Collection[str]) -> list[Upload]:
    """The submissions that the file `SUBMITTERS` lists."""
    notes = [item for item in items if item.parts == (SUBMITTERS,)]
    if len(notes) != 1:
        odd = "there twice" if notes else "no file"
        raise CallError(f"{SUBMITTERS} is {odd}: download the submissions again")
    with notes[0].opened() as file:
        metadata = _parsed_yaml(file.read())
    files: dict[str, dict[str, FileItem]] = {}
    for item in items:
        files.setdefault(item.parts[0], {})["/".join(item.parts[1:])] = item
    return [
        _upload(folder, about, files.get(folder, {}))
        for folder, about in metadata.items()
        if isinstance(folder, str)
    ]


def _upload(folder: str, about: Any, files: Mapping[str, FileItem]) -> Upload:
    people = tuple(map(_person, _list(about, "submitters"))) or (Person(),)
    who, number = "", folder
    if len(people) == 1:
        who, number = people[0].name or people[0].email, people[0].id or people[0].email
    created = _moment(_field(about, "created_at"))
    return Upload(
        who or folder,
        number or folder,
        files,
        people,
        moment=(created.timestamp() if created is not None else 0.0,),
        attempts=1 + len(_list(about, "history")),
        submitted=created,
    )


def _moment(created: Any) -> datetime | None:
    if not isinstance(created, datetime):
        return None
    if created.tzinfo is None:  # YAML's times without a zone are in UTC
        created = created.replace(tzinfo=UTC)
    return sensible(created)


def _parsed_yaml(data: bytes) -> dict[str, Any]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise CallError(
            f"{SUBMITTERS} needs a library: pip install 'attention-grader[instructor]'"
        ) from None
    try:
        content = yaml.safe_load(data)
    except Exception:  # a malformed number or date raises exceptions of many types
        content = None
    if not isinstance(content, dict):
        raise CallError(
            f"{SUBMITTERS} is not as Gradescope writes it: download the submissions again"
        )
    return content


def _field(holder: Any, name: str) -> Any:
    """The value of a key, which may be written as a Ruby symbol (``:name``)."""
    if not isinstance(holder, Mapping):
        return None
    return holder.get(f":{name}", holder.get(name))


def _list(holder: Any, name: str) -> list[Any]:
    value = _field(holder, name)
    return value if isinstance(value, list) else []


def _person(submitter: Any) -> Person:
    name, number, email = (_text(_field(submitter, key)) for key in ("name", "sid", "email"))
    return Person(number, name, email)


def _text(value: Any) -> str:
    """A text or number as text; "" for any other value, such as a list that contains itself."""
    if isinstance(value, int) and abs(value) < LARGEST:
        return str(value)
    return value if isinstance(value, str) else ""


# --- a grade as ``results.json`` -----------------------------------------------------------------
#
# One entry for each test. Gradescope shows public tests at once, and hidden tests when grades are
# published. Therefore no entry contains a text that students may not read.

ABOUT_FILES = "About your files:"


class TestEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry; its scores are None if the test carries no points."""

    name: str
    number: str
    status: Literal["passed", "failed"]
    visibility: Literal["visible", "after_published"]
    output: str = ""
    score: float | None = None
    max_score: float | None = None


class About(msgspec.Struct, frozen=True):
    """Facts for instructors about how a score was computed."""

    status: str
    isolation: tuple[str, ...]
    course: str
    kit: str
    torch: str


class Results(msgspec.Struct, frozen=True):
    """The content of ``results.json``; `score` is the sum of the tests and corrections."""

    score: float
    execution_time: float
    output: str
    extra_data: About
    tests: tuple[TestEntry, ...]
    output_format: str = "md"
    test_output_format: str = "md"
    test_name_format: str = "text"
    stdout_visibility: str = "hidden"


def results(grade: Grade, course: Course, scale: float = 1.0) -> Results:
    """The results of one submission; raises `HostFault` if its points are unknown.

    `scale` is the number of points in Gradescope for one point of the grade.
    """
    if grade.status == "grader_error":
        raise HostFault(grade.message or "the points are not known")
    grade = for_students(grade, course)
    about_files = (grade.message,) if grade.message else grade.notes
    # If the submission could not be read, list no tests: each would repeat the grade's message.
    exercises = counted_elsewhere(grade.exercises, scale) if grade.status == "graded" else ()
    return Results(
        round(sum(exercise.points for exercise in exercises), 3),
        float(round(grade.seconds)),  # its digits would tell a submission about the machine
        in_paragraphs(ABOUT_FILES, block("\n".join(about_files))) if about_files else "",
        About(grade.status, grade.isolation, grade.course, __version__, grade.torch),
        tuple(test for n, each in enumerate(exercises, 1) for test in _tests(n, verdict_of(each))),
    )


def corrected(results: Results, row: Row, scale: float = 1.0) -> Results:
    """Add what people decided to the score, and list it first in the output: points and comments.

    The points that a late submission loses are among them.
    """
    lines = [line for line in row.lines if line.kind != "computed"]
    if row.total is None or not (lines or row.comments):
        return results
    output = in_paragraphs(*decided(row, scale), results.output)
    points = sum(scaled(line.points, scale) for line in lines)
    score = max(0.0, round(results.score + points, 3))
    return msgspec.structs.replace(results, score=score, output=output)


def _tests(number: int, verdict: Verdict) -> Iterator[TestEntry]:
    # The engine's own checks come first, and students differ in which of these checks they have.
    # All of them get the number 0, so that every other test has one number for all students.
    before = sum(finding.engines_own for finding in verdict.worth_reading)
    for place, finding in enumerate(verdict.worth_reading, 1 - before):
        paid = finding.max > 0
        yield TestEntry(
            name=f"{verdict.exercise}: {finding.title}",
            number=f"{number}.{max(place, 0)}",
            status="passed" if finding.status == "passed" else "failed",
            # With "hidden", Gradescope would hide the total even after grades are published.
            visibility="after_published" if finding.hidden else "visible",
            output=explained(finding) if finding.status != "passed" else "",
            score=finding.points if paid else None,
            max_score=finding.max if paid else None,
        )


# --- grading inside Gradescope's container -------------------------------------------------------

METADATA = "submission_metadata.json"


class _User(msgspec.Struct, frozen=True):
    """One of the submitters."""

    name: str = ""


class _Assignment(msgspec.Struct, frozen=True):
    """The part of Gradescope's assignment that we read."""

    total_points: float | None = None


class _Metadata(msgspec.Struct, frozen=True):
    """The part of a submission's metadata that we read. No grade depends on it."""

    users: tuple[_User, ...] = ()
    assignment: _Assignment = _Assignment()

    @property
    def student(self) -> str:
        """The names of all submitters."""
        return ", ".join(user.name for user in self.users if user.name) or "submission"


def grade_for_gradescope(root: Path) -> None:
    """Grade one submission and write ``results/results.json``, which students see.

    `root` holds ``source/`` (the bundle), ``submission/``, ``submission_metadata.json`` and
    ``results/``. Instructors see the printed output. If it raises `CallError` or `HostFault`, it
    writes no results.
    """
    written = root / "results" / "results.json"
    written.unlink(missing_ok=True)
    metadata = _read_metadata(root / METADATA)
    course = load_carried(root / "source")
    grade = grade_one(
        course,
        read_submission(metadata.student, root / "submission"),
        only=course.asked,
        isolation="weak",  # uses all layers that the container has; the results name them
        secrets=[root / METADATA],  # has hidden results of earlier submissions
    )
    print(terminal.course_line(course))
    for note in terminal.notes([Row(grade.student, grade)]):
        print(note.plain)
    worth, there = number(grade.max * course.worth), metadata.assignment.total_points
    if there is not None and number(there) != worth:
        print(
            f"the graded exercises are worth {worth} points, and this assignment {number(there)}: "
            "change the assignment's points in its settings"
        )
    write_whole(written, msgspec.json.encode(results(grade, course, course.worth)))


def _read_metadata(path: Path) -> _Metadata:
    """The metadata; empty if Gradescope has changed the format."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Metadata, strict=False)
    except (OSError, msgspec.DecodeError):
        return _Metadata()


# --- the bundle: an ``autograder.zip`` to upload, and the same files outside of the zip ----------

ZIP = "autograder.zip"
PROGRAMS = ("run_autograder", "setup.sh")  # Gradescope runs these

OURS_MB = 700  # memory for the grader and two idle processes with torch; measured: 620
OURS_MINUTES = 5  # time to load torch and to compute references on half a CPU


def release_gradescope(
    course: Course,
    to: Path,
    *,
    seed: str | None = None,
    torch_index: str | None = None,
    replace: bool = False,
) -> list[Path]:
    """Write the bundle into `to`, and return its files.

    The bundle holds the solutions, the hidden tests and the seed. Other users of this machine
    cannot read it, and Gradescope shows it to instructors only. The same course gives the same
    bytes.

    `torch_index` is the address of a second package index for pip. Raises `CallError` if there is
    no seed, if `to` holds other files, or if it holds an edited bundle and `replace` is not set.
    """
    course.require_solutions("release gradescope")
    seed = seed or course.hidden_seed()
    require_free(to, replace)
    with bundled(to, private=True) as draft:
        carry(course, draft)
        copy_engine(draft / "grader")
        written = {
            carried_seed(course): f"{seed}\n",
            "README.md": _readme(course),
            "pyproject.toml": (project := texts.pyproject(course, grading=True)),
            **pip_files(project, torch_index),
            "LICENSE": licence(),
            **{name: texts.as_it_is(f"gradescope/{name}", __package__) for name in PROGRAMS},
        }
        for name, text in written.items():
            write_text(draft / name, text)
        for name in PROGRAMS:
            (draft / name).chmod(0o755)
        packed = {path.as_posix(): draft / path for path in files_in(draft)}
        (draft / ZIP).write_bytes(zipped(packed, PROGRAMS))
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]


def _readme(course: Course) -> str:
    """The README for the instructor, with the memory and time that a container needs."""
    limits = course.file.limits
    return texts.template(
        "gradescope/README.md",
        __package__,
        title=texts.full_title(course),
        points=number(course.most(course.asked) * course.worth),
        gigabytes=f"{math.ceil((OURS_MB + limits.memory_mb) / 512) / 2:g}",
        minutes=str(math.ceil(limits.submission_seconds * WALL_FACTOR / 60) + OURS_MINUTES),
    )


def _results_file(row: Row, course: Course, scale: float) -> bytes:
    assert row.grade is not None
    shown = results(row.grade, course, scale)
    return msgspec.json.encode(corrected(shown, row, scale))


def _next_steps(to: Path, files: int) -> Sequence[str]:
    return (
        f"{files} files in {to}, among them the solutions and the seed: keep the folder private",
        f"upload {to / ZIP}; {to / 'README.md'} says which container to choose",
    )


_HOST_HELP = """\
Grade the submission that Gradescope put below ROOT.

If the grader itself fails, it writes no results. Gradescope then says that the autograder
failed, and gives no score: a zero would blame the student.
"""
_RELEASE_HELP = """\
Write an autograder for Gradescope. It holds the solutions: keep it private.

Gradescope shows public checks at once, and hidden tests when grades are published.
"""

SYSTEM = System(
    "gradescope",
    "Gradescope",
    downloads=Downloads("Gradescope", _made, _uploads, archive=r"assignment_\d+_export"),
    grades=ResultFiles("results.json", _results_file),
    host=Host(
        grade_for_gradescope,
        argument="ROOT",
        about="Gradescope's folder.",
        example="/autograder",
        help=_HOST_HELP,
        kind=Path,
    ),
    bundle=Bundle(
        release_gradescope,
        _next_steps,
        example="gradescope/",
        help=_RELEASE_HELP,
        options=("seed", "torch_index"),
    ),
)
