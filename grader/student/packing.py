"""The zip that a student hands in."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.files import is_other, sums, write_whole, zipped


@dataclass(frozen=True)
class Packed:
    """A zip, and what is in it."""

    path: Path
    names: Sequence[str]


def pack_answers(course: Course, to: Path) -> Packed:
    """Zip a course's unit files, and notebooks with them, into a file of its own.

    Notebooks lie beside the unit files, or in a folder of their own beside that of the course.

    Raises `CallError` if there is nothing to pack, or if `to` is something else than a zip.
    """
    units = [course.stub_file(unit.name) for unit in course.units]
    files = {path.name: path for path in units if path.is_file()}
    files |= {path.name: path for path in sorted(course.folder.glob("*.ipynb"))}
    beside = course.folder.parent / "notebooks"
    pristine = sums(course.folder.parent)
    for path in sorted(beside.glob("*.ipynb")):
        # One that nobody has opened says nothing.
        if is_other(path, pristine.get(Path(beside.name, path.name), "")):
            files[f"{beside.name}/{path.name}"] = path
    if not files:
        raise CallError(f"there is no unit file and no notebook in {course.folder}")
    if to.exists() and not (to.is_file() and zipfile.is_zipfile(to)):
        raise CallError(f"{to} is there already, and no zip: name another file with --to")
    try:
        write_whole(to, zipped(files))
    except OSError as error:
        raise CallError(f"{error.filename or to}: {error.strerror}") from None
    return Packed(to, tuple(files))
