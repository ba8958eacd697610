"""What a student has solved, and which hints they have read: one small text file.

Each line is a fact that never becomes untrue, so two copies are merged by putting their lines
together, in any order; git does so by itself, conflict markers included. What fails now, though it
was solved once, may change at each check: that stands in a file of its own, which no copy needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.records.faults import CallError
from grader.records.files import write_whole

if TYPE_CHECKING:
    from grader.course.course import Course
    from grader.records.grade import ExerciseResult


FILE = "progress.txt"  # beside course.toml
FAILING = ".failing.txt"  # beside it
HEAD = "# What is solved, and which hints were read. Lines may be sorted, and copies merged."


@dataclass(frozen=True)
class Progress:
    """What is known of a student, by exercise."""

    solved: frozenset[str] = frozenset()  # once, which does not say that they still are
    hints: Mapping[str, int] = field(default_factory=dict)  # how many were read
    failing: frozenset[str] = frozenset()  # of what was solved: what failed when last checked

    def with_(
        self,
        solved: Iterable[str] = (),
        hints: Mapping[str, int] | None = None,
        failed: Iterable[str] = (),
    ) -> Progress:
        """This, and what is new."""
        ever = self.solved | frozenset(solved)
        failing = (self.failing - frozenset(solved) | frozenset(failed)) & ever
        levels = dict(self.hints)
        for name, level in (hints or {}).items():
            levels[name] = max(level, levels.get(name, 0))
        return Progress(ever, levels, failing)

    def first_unsolved(self, names: Sequence[str], after: str | None = None) -> str | None:
        """The first of these exercises that was never solved, or fails now.

        Those that follow `after` come first: who begins in the middle goes on from there.
        """
        begin = names.index(after) + 1 if after in names else 0
        ordered = [*names[begin:], *names[:begin]]
        return next((name for name in ordered if name not in self.solved - self.failing), None)


def read_progress(folder: Path) -> Progress:
    """What the files in this folder say; lines that say nothing known are passed over."""
    progress = Progress()
    for line in _lines_of(folder / FILE):
        match line.split():
            case ["solved", name]:
                progress = progress.with_(solved=[name])
            case ["hint", name, level] if level.isascii() and level.isdigit():
                progress = progress.with_(hints={name: int(level)})
    return progress.with_(failed=_lines_of(folder / FAILING))


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CallError(f"{path} cannot be read: {error.strerror}") from None


def record_progress(
    folder: Path,
    *,
    solved: Iterable[str] = (),
    hints: Mapping[str, int] | None = None,
    failed: Iterable[str] = (),
) -> Progress:
    """Add to the files in this folder, and return all that they say then.

    A file is replaced as a whole, so that one who reads meanwhile sees the old or the new.
    """
    before = read_progress(folder)
    after = before.with_(solved, hints, failed)
    if (after.solved, after.hints) != (before.solved, before.hints):
        _write(folder / FILE, [HEAD, *_lines(after)])
    if after.failing != before.failing:
        _write(folder / FAILING, sorted(after.failing))
    return after


def record_checks(folder: Path, results: Iterable[ExerciseResult]) -> Progress:
    """Add what was solved and what failed, and return what was known before.

    Of what the grader itself failed in, nothing is known.
    """
    before = read_progress(folder)
    known = [result for result in results if not result.faulty]
    record_progress(
        folder,
        solved=[result.name for result in known if result.solved],
        failed=[result.name for result in known if not result.solved],
    )
    return before


def _write(path: Path, lines: Iterable[str]) -> None:
    try:
        write_whole(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise CallError(f"{path} cannot be written: {error.strerror}") from None


ALL_SOLVED = "everything is solved: no hint is left to give"
LAST_HINT = "this is the last one"
FREE = "hints cost no points"


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
