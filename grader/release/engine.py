"""Copies the engine's source into a bundle: all of it, or the part for students."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

import grader
from grader.records.files import files_in

# A student's bundle contains only these rooms and modules of the engine. They are enough for a
# student's commands, for notebooks and for plain pytest.
FOR_STUDENTS = (
    *("__init__", "__main__", "testing", "mine", "pytest_plugin"),
    *("records", "wire", "course", "guest", "sandbox", "mistakes", "unsandboxed", "proxies"),
    *("feedback", "intake", "grading", "questions", "inspection", "student", "playing"),
    *(
        "cli.app",
        "cli.commands",
        "cli.completion",
        "cli.streams",
        "cli.student",
        "cli.play",
        "cli.doctor",
    ),
)
# Modules in these rooms that only instructors use: a student's bundle leaves them out.
INSTRUCTORS = (
    *("feedback.visible", "grading.asking", "inspection.explanation"),
    *("intake.typed", "mistakes.general", "questions.exam"),
)

TYPED = Path("py.typed")
BUILT = {".pyc", ".pyo", ".so", ".pyd"}


def copy_engine(to: Path, parts: Collection[str] | None = None) -> None:
    """Copy the engine's source and data, or only the rooms and modules in `parts`."""
    source = Path(grader.__file__).parent
    # In a wheel, the engine's folder contains a student's bundle: do not copy that.
    for path in source_files(source, without="bundle"):
        if parts is None or path == TYPED or _belongs(path, parts):
            _copy(source / path, to / path)


def _belongs(path: Path, parts: Collection[str]) -> bool:
    """Whether a file belongs to one of these rooms or modules, or is an `__init__` above one."""
    name = ".".join(path.with_suffix("").parts)
    if name in INSTRUCTORS:
        return False
    opens = name.removesuffix(".__init__") if path.name == "__init__.py" else None
    return (
        name in parts
        or path.parts[0] in parts
        or any(part.startswith(f"{opens}.") for part in parts)
    )


def copy_source(folder: Path, to: Path) -> None:
    """Copy a folder without built and hidden files."""
    for path in source_files(folder):
        _copy(folder / path, to / path)


def source_files(folder: Path, *, without: str = "") -> list[Path]:
    """The files of a folder, except built and hidden files and the folder `without`."""
    return [path for path in files_in(folder) if path.parts[0] != without and not _is_built(path)]


def _is_built(path: Path) -> bool:
    hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
    return hidden or path.suffix in BUILT or path.name.endswith("~")


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
