"""What a student has solved, and which hints they have read: one small text file.

Each line is a fact that never becomes untrue, so two copies are merged by putting their lines
together, in any order; git does so by itself, conflict markers included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.records.faults import CallError
from grader.records.files import write_whole

if TYPE_CHECKING:
    from grader.course.course import Course


FILE = "progress.txt"  # beside course.toml
HEAD = "# What is solved, and which hints were read. Lines may be sorted, and copies merged."


@dataclass(frozen=True)
class Progress:
    """What is known of a student, by exercise."""

    solved: frozenset[str] = frozenset()  # once, which does not say that they still are
    hints: Mapping[str, int] = field(default_factory=dict)  # how many were read

    def with_(self, solved: Iterable[str] = (), hints: Mapping[str, int] | None = None) -> Progress:
        """This, and what is new."""
        levels = dict(self.hints)
        for name, level in (hints or {}).items():
            levels[name] = max(level, levels.get(name, 0))
        return Progress(self.solved | frozenset(solved), levels)

    def first_unsolved(self, names: Iterable[str]) -> str | None:
        """The first of these exercises that was never solved."""
        return next((name for name in names if name not in self.solved), None)


def read_progress(folder: Path) -> Progress:
    """What the file in this folder says; lines that say nothing known are passed over."""
    try:
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return Progress()
    except OSError as error:
        raise CallError(f"{folder / FILE} cannot be read: {error.strerror}") from None
    progress = Progress()
    for line in text.splitlines():
        match line.split():
            case ["solved", name]:
                progress = progress.with_(solved=[name])
            case ["hint", name, level] if level.isascii() and level.isdigit():
                progress = progress.with_(hints={name: int(level)})
    return progress


def record_progress(
    folder: Path, *, solved: Iterable[str] = (), hints: Mapping[str, int] | None = None
) -> Progress:
    """Add to the file in this folder, and return all that it says then.

    The file is replaced as a whole, so that one who reads meanwhile sees the old or the new.
    """
    before = read_progress(folder)
    after = before.with_(solved, hints)
    if after == before:
        return after
    try:
        write_whole(folder / FILE, "\n".join((HEAD, *_lines(after), "")).encode())
    except OSError as error:
        raise CallError(f"{folder / FILE} cannot be written: {error.strerror}") from None
    return after


ALL_SOLVED = "everything is solved: no hint is left to give"


def next_hint(course: Course, name: str, progress: Progress) -> tuple[int, str]:
    """The first hint of an exercise that was not read, or its last one; counted from one."""
    hints = course.one(name, "a hint is for one exercise").hints
    if not hints:
        raise CallError(f"{name} has no hints")
    level = min(progress.hints.get(name, 0) + 1, len(hints))
    return level, hints[level - 1]


def _lines(progress: Progress) -> Iterator[str]:
    for name in sorted(progress.solved):
        yield f"solved {name}"
    for name, level in sorted(progress.hints.items()):
        yield f"hint {name} {level}"
