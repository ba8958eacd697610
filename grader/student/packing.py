"""The zip that a student submits: `pack_answers` checks its files, and `settle` writes the zip."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.feedback.terminal import all_asked
from grader.feedback.verdict import Verdict, verdict_of
from grader.intake import read_submission
from grader.intake.files import MAX_FILE, Listed, Unreadable, too_large
from grader.intake.names import ZIP, suffix
from grader.intake.own import misnamed, own_files
from grader.records.faults import CallError, HostFault
from grader.records.files import write_whole, zipped
from grader.records.grade import ExerciseResult
from grader.records.rows import counted
from grader.student.checking import open_checker
from grader.student.progress import Progress
from grader.unsandboxed.worker import BackendName

ZIP_NAME = "answers.zip"  # by default
MOST_REASON = 200  # characters of the reason why an answer is wrong


@dataclass(frozen=True)
class Packed:
    """A zip that is not written yet: its bytes, its files, and the results of their checks."""

    data: bytes
    names: tuple[str, ...]
    unread: tuple[str, ...]  # a line for each source file that is left out or unreadable
    results: tuple[ExerciseResult, ...]  # the results of the public checks on the zip


def pack_answers(course: Course, to: Path, backend: BackendName = "auto") -> Packed:
    """Zip a student's files in memory, and run the public checks; equal files give equal bytes.

    `settle` writes the zip to `to` later. Raises `CallError` if `to` is not the name of a zip, or
    if there are no files to zip. Raises `HostFault` if the grader itself fails in a check.
    """
    _require_room(to)
    read: dict[str, bytes] = {}
    unread = misnamed(course)
    for file in own_files(course):
        if isinstance(file, Listed):
            try:
                if file.size > MAX_FILE:
                    raise Unreadable(too_large(file.name))
                read[file.name] = file.read()
            except (OSError, Unreadable) as error:
                unread.append(f"{file.name}: {error}")
    if not read:
        raise CallError(f"there is no unit file and no notebook in {course.folder}")
    data = zipped(read)
    with tempfile.TemporaryDirectory() as folder:
        handed_in = Path(folder, ZIP_NAME)
        handed_in.write_bytes(data)
        unread += read_submission("answers", handed_in).problems
        with open_checker(course, course.asked, handed_in, backend) as checker:
            results = checker.check()
    if any(result.faulty for result in results):
        raise HostFault("the grader itself failed in a check: no zip was written")
    return Packed(data, tuple(read), tuple(unread), tuple(results))


def objections(course: Course, packed: Packed, known: Progress) -> Iterator[str]:
    """Lines that say what is wrong with a zip, and how to repair it."""
    yield from packed.unread
    unwritten = [result.name for result in packed.results if result.untouched]
    if unwritten:
        yield f"not written: {', '.join(_by_unit(course, unwritten))}"
    for result in packed.results:
        verdict = verdict_of(result, result.name in known.solved)
        yield from filter(None, [verdict.which_counts])
        if result.solved or result.name in unwritten:
            continue
        again = ", solved before" if verdict.lost else ""
        why = verdict.mistake.heading if verdict.mistake else _first(verdict)
        yield f"wrong: {result.name}{again}: {why} (grader check {result.name})"
    gone = [name for name in unwritten if name in known.solved]
    if gone:
        yield (
            f"solved before, but not written now: {', '.join(gone)} (is a notebook not saved? Was "
            "an exercise reset? grader reset NAME --undo)"
        )


def settle(
    course: Course,
    packed: Packed,
    objections: Sequence[str],
    to: Path,
    all_the_same: str,
    anyway: bool,
) -> Iterator[str]:
    """Write the zip, if there are no objections or if `anyway` is set; yield the lines of a report.

    `all_the_same` is the command that writes the zip in spite of objections. Raises `CallError` if
    the file cannot be written.
    """
    yield f"to submit: {', '.join(packed.names)}"
    yield from objections
    solved = sum(result.solved for result in packed.results)
    yield f"{solved} of {all_asked(course)} pass the public checks"
    if objections and not anyway:
        yield f"{to} is not written; to submit these files as they are: {all_the_same}"
        return
    try:
        write_whole(to, packed.data)
    except OSError as error:
        raise CallError(f"{error.filename or to}: {error.strerror}") from None
    yield f"{to} is written"


def _first(verdict: Verdict) -> str:
    """The reason of the first finding in a line."""
    if not verdict.wrong:
        return "it is not yet right"
    finding = verdict.wrong[0]
    first = finding.message.partition("\n")[0] or finding.wording.sentence
    return first if len(first) <= MOST_REASON else f"{first[:MOST_REASON]} …"


def _require_room(to: Path) -> None:
    """Raise `CallError` if the name does not end in .zip, or if another kind of file is there."""
    if suffix(to.name) != ZIP:
        raise CallError(f"{to} is not the name of a zip: name a file that ends with {ZIP}")
    if to.exists() and not (to.is_file() and zipfile.is_zipfile(to)):
        raise CallError(f"{to} exists already, and is not a zip: name another file with --to")


def _by_unit(course: Course, names: Sequence[str]) -> Iterator[str]:
    """The names of exercises; if all exercises of a unit are missing, the unit's name instead."""
    for unit in course.units:
        asked = course.asked_in(unit.name)
        missing = [name for name in asked if name in names]
        if len(missing) > 1 and missing == list(asked):
            yield f"all of {unit.name} ({counted(len(missing), 'exercise')})"
        else:
            yield from missing
