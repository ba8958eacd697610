"""Which course a command uses: the one named, the one around, or the one that the kit carries."""

from __future__ import annotations

import os
import re
from pathlib import Path

from grader.records.faults import CallError

SOLUTIONS, RECORDED = "solutions", "recorded"  # beside a course's folder, and in it
NAMED = "GRADER_COURSE"  # the environment variable that names a course, as --course does


class NoCourse(CallError):
    """No course is named, and none was found."""


def find_course(given: Path | None, start: Path | None = None, *, student: bool = False) -> Path:
    """The folder of the course that a command is for: the one place that decides this.

    A course is code: its checks, references and hidden tests run as whoever types the command. So
    a course is used because somebody chose it, and not because it lies near:

    1. The course that is named: `given` (``--course``), or else the environment variable `NAMED`.
    2. The nearest course upward from `start` (the working directory), but only if it is the kit's
       own, beside this engine; or, for a `student`'s own commands, if it holds no solutions, as in
       the bundle that a student works in. Its checks run as they do.
    3. Where there is none upward, the kit's own.

    An instructor's working directory may be a hand-in. Raises `CallError` for any other course that
    was merely found, also where a `student`'s command was typed, and where there is none.
    """
    named = given if given is not None else _named_by_environment()
    if named is not None:
        if (folder := _course_at(named)) is None:
            raise CallError(f"there is no course.toml in {named}")
        return folder
    own = kits_own()
    found = nearest_course(start or Path.cwd()) or own
    if found is None:
        raise NoCourse(
            "there is no course.toml here or in a folder above; go to the course's folder, "
            f"or name it with --course DIR or {NAMED}"
        )
    if found != own:
        _refuse_unchosen(found, student)
    return found


def nearest_course(start: Path) -> Path | None:
    """The nearest course upward from a folder whose files are trusted already."""
    return next(filter(None, map(_course_at, (start, *start.parents))), None)


def _course_at(place: Path) -> Path | None:
    for folder in (place, place / "exercises"):
        if (folder / "course.toml").is_file():
            return folder.resolve()
    return None


def kits_own() -> Path | None:
    """The course beside this engine, as in a clone and in a student's folder."""
    return _course_at(Path(__file__).parents[2])


def _named_by_environment() -> Path | None:
    text = os.environ.get(NAMED, "")
    if text and not Path(text).is_absolute():
        raise CallError(
            f"{NAMED} is {text!r}, which is another course in every folder: give a path that "
            "begins at the root"
        )
    return Path(text) if text else None


def _refuse_unchosen(found: Path, student: bool) -> None:
    """Raise `CallError` for a course that was merely found, unless it is a `student`'s bundle."""
    met = f"the course in {found} was found above the working directory, and nobody named it"
    # An overlay is nothing but solutions, whatever lies below it.
    if lies_over_another(text_of_course(found)[1]) or has_solutions(found):
        raise CallError(
            f"{met}: its solutions would run as you. If it is yours, name it with --course DIR or "
            f"{NAMED}"
        )
    if not student:
        raise CallError(
            f"{met}; it has no solutions, so it is a student's copy. Name yours with --course DIR "
            f"or {NAMED}"
        )


def has_solutions(folder: Path) -> bool:
    """Whether solutions lie beside a course's folder, and nothing was recorded in their place."""
    recorded = folder / RECORDED / "course.json"
    return (folder.parent / SOLUTIONS).is_dir() and not recorded.is_file()


def lies_over_another(text: str) -> bool:
    """Whether a ``course.toml`` lays solutions over another course."""
    return re.search(r"^\s*overlay\s*=", text, re.MULTILINE) is not None


def text_of_course(folder: Path) -> tuple[Path, str]:
    """A course's ``course.toml``, and what it says; raise `CallError` where it cannot be read."""
    path = folder / "course.toml"
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: {error}") from None
