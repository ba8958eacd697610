"""From paths to submissions: which files belong to whom, read as text and never run.

A submission is a ``.py`` file, a notebook, or a folder of those. Its text goes to the student's
process as it is; nothing here parses Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.faults import CallError
from grader.jail.wire import SourceText, clean

SUFFIXES = (".py", ".ipynb")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")  # told, not read
MAX_FILE = 4 * 2**20  # bytes
MAX_FILES = 500
MAX_TOTAL = 16 * 2**20  # bytes
# Not the student's own work; "checks" are the course's public tests, handed back.
SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "__MACOSX", "checks", "node_modules", "site-packages", "venv"}
)


@dataclass(frozen=True)
class Submission:
    """What one student handed in."""

    student: str
    sources: tuple[SourceText, ...]
    problems: tuple[str, ...] = ()  # files that could not be read, one line each

    @property
    def status(self) -> str:
        """``empty`` without any source file, ``unreadable`` if none could be read."""
        if self.sources:
            return "ready"
        return "unreadable" if self.problems else "empty"


class Unreadable(Exception):
    """A file that is no text, or no notebook; the text says why."""


def find_submissions(
    paths: Sequence[Path], course: Course, *, single: bool = False
) -> list[Submission]:  # fmt: skip
    """The submissions under these paths, by name; raise `CallError` if there are none.

    A file is one submission, and so is a folder with a file named like a unit, or with no files
    and folders at all. Any other folder is a folder of submissions.
    """
    units = {unit.name for unit in course.units}
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise CallError(f"there is no such file or folder: {path}")
        own = [path] if single or _is_one(path, units) else sorted(_entries(path))
        for entry in own:
            name = clean(entry.resolve().stem if entry.is_file() else entry.resolve().name)
            if name in found:
                raise CallError(
                    f"two submissions are called {name!r}: {found[name]} and {entry}; rename one"
                )
            found[name] = entry
    if not found:
        raise CallError(f"no submissions in {', '.join(map(str, paths))}")
    return [read_submission(name, found[name]) for name in sorted(found)]


def _is_one(path: Path, units: set[str]) -> bool:
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise CallError(f"{path} is neither a .py file nor a notebook")
        return True
    names = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    inside = path / "exercises"
    names += list(inside.iterdir()) if inside.is_dir() else []
    return not names or any(n.stem in units and n.suffix in SUFFIXES for n in names)


def _entries(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "__")) or entry.is_symlink():
            continue
        if entry.is_dir() or entry.suffix in (*SUFFIXES, *ARCHIVES):
            yield entry


def read_submission(student: str, path: Path) -> Submission:
    """Read all source files of one submission. What cannot be read is a problem, not an error."""
    sources: list[SourceText] = []
    problems: list[str] = []
    files = [path] if path.is_file() else sorted(_source_files(path))
    if len(files) > MAX_FILES:
        problems.append(f"more than {MAX_FILES} source files; only the first ones were read")
    left = MAX_TOTAL
    for file in files[:MAX_FILES]:
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        try:
            left -= file.stat().st_size
            if left < 0:
                raise Unreadable(f"the submission is larger than {MAX_TOTAL // 2**20} MB in all")
            sources.append(SourceText(clean(name), _read(file)))
        except (Unreadable, OSError) as error:
            problems.append(f"{name}: {error}")
    return Submission(student, tuple(sources), tuple(problems))


def _source_files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        # A link may point at anything on the grading machine: never followed.
        if entry.is_symlink() or entry.name.startswith("."):
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _source_files(entry)
        elif entry.suffix in SUFFIXES and entry.is_file():
            yield entry


def _read(file: Path) -> tuple[str, ...]:
    if file.suffix in ARCHIVES:
        raise Unreadable("an archive: unpack it into a folder of the same name")
    if file.stat().st_size > MAX_FILE:
        raise Unreadable(f"larger than {MAX_FILE // 2**20} MB")
    data = file.read_bytes()
    if file.suffix == ".ipynb":
        return _cells(data)
    try:
        return (data.decode("utf-8-sig"),)
    except UnicodeDecodeError:
        # What editors on Windows write; any byte means something in it.
        return (data.decode("cp1252", errors="replace"),)


def _cells(data: bytes) -> tuple[str, ...]:
    """The code cells of a notebook of any version, however untidy."""
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    except ValueError:
        raise Unreadable("not a notebook: the file is not JSON") from None
    if isinstance(content, dict) and content.get("nbformat") in (1, 2, 3):
        content = _upgraded(content)
    if not isinstance(content, dict) or content.get("nbformat") != 4:
        raise Unreadable("not a notebook of a format that is known (nbformat 1 to 4)")
    # Only the sources are read: a validator would refuse a notebook for an odd output.
    try:
        return tuple(
            _text(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"
        )
    except (KeyError, TypeError):
        raise Unreadable("not a notebook: its cells are not of the known form") from None


def _text(source: Any) -> str:
    """A cell's source: a string, or a list of lines."""
    if not isinstance(source, str):
        source = "".join(source)
    return clean(str(source))


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    import nbformat

    try:
        return dict(nbformat.convert(nbformat.from_dict(content), 4))  # type: ignore[no-untyped-call]
    except Exception as error:  # nbformat raises what its many versions raise
        raise Unreadable(f"not a notebook: {type(error).__name__}") from None
