"""The zip that a student hands in."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course
from grader.faults import CallError
from grader.files import write_whole

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same answers make the same bytes


def _sums(course: Course) -> dict[str, str]:
    """The SHA-256 sums of a bundle's files as they came, by path from the bundle's folder."""
    try:
        lines = (course.recorded / "SHA256SUMS").read_text("utf-8").splitlines()
    except OSError:
        return {}
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


@dataclass(frozen=True)
class Packed:
    """A zip, and what is in it."""

    path: Path
    names: Sequence[str]


def pack(course: Course, to: Path) -> Packed:
    """Zip a course's unit files, and notebooks with them, into a file of its own.

    Notebooks lie beside the unit files, or in a folder of their own beside that of the course.

    Raises `CallError` if there is nothing to pack, or if `to` is something else than a zip.
    """
    units = [course.stub_file(unit.name) for unit in course.units]
    files = {path.name: path for path in units if path.is_file()}
    files |= {path.name: path for path in sorted(course.folder.glob("*.ipynb"))}
    beside = course.folder.parent / "notebooks"
    pristine = _sums(course)
    for path in sorted(beside.glob("*.ipynb")):
        name = f"{beside.name}/{path.name}"
        if pristine.get(name) != hashlib.sha256(path.read_bytes()).hexdigest():
            files[name] = path  # one that nobody has opened says nothing
    if not files:
        raise CallError(f"there is no unit file and no notebook in {course.folder}")
    if to.exists() and not (to.is_file() and zipfile.is_zipfile(to)):
        raise CallError(f"{to} is there already, and no zip: name another file with --to")
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, path in files.items():
                entry = zipfile.ZipInfo(name, EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        write_whole(to, buffer.getvalue())
    except OSError as error:
        raise CallError(f"{error.filename or to}: {error.strerror}") from None
    return Packed(to, tuple(files))
