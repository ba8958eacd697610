"""What a student has solved, and which hints they have read: one small text file.

Each line is a fact that never becomes untrue, so two copies are merged by putting their lines
together, in any order; git does so by itself, conflict markers included. How each exercise's last
check ended, and on which text, changes with each check: that stands in a file of its own, which no
copy needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.student.answers import UNKNOWN, Digests

if TYPE_CHECKING:
    from grader.course.course import Course
    from grader.records.grade import ExerciseResult


FILE = "progress.txt"  # beside course.toml
CHECKED = ".checked.txt"  # beside it: how the last checks on this computer ended, latest last
HEAD = "# What is solved, and which hints were read. Lines may be sorted, and copies merged."


@dataclass(frozen=True)
class LastCheck:
    """How the last check of an exercise ended, and the digest of what was checked, if known."""

    passed: bool
    digest: str = UNKNOWN


@dataclass(frozen=True)
class Progress:
    """What is known of a student, by exercise."""

    solved: frozenset[str] = frozenset()  # once, which does not say that they still are
    hints: Mapping[str, int] = field(default_factory=dict)  # how many were read
    checked: Mapping[str, LastCheck] = field(default_factory=dict)  # the latest comes last

    @property
    def failing(self) -> frozenset[str]:
        """Of what was solved: what failed when last checked."""
        return frozenset(n for n, check in self.checked.items() if not check.passed) & self.solved

    def with_(
        self,
        solved: Iterable[str] = (),
        hints: Mapping[str, int] | None = None,
        checked: Mapping[str, LastCheck] | None = None,
    ) -> Progress:
        """This, and what is new."""
        new = checked or {}
        ever = self.solved.union(solved, (name for name, check in new.items() if check.passed))
        levels = dict(self.hints)
        for name, level in (hints or {}).items():
            levels[name] = max(level, levels.get(name, 0))
        before = {name: check for name, check in self.checked.items() if name not in new}
        return Progress(ever, levels, {**before, **new})


def read_progress(folder: Path) -> Progress:
    """What the files in this folder say; lines that say nothing known are passed over."""
    progress = Progress()
    for line in _lines_of(folder / FILE):
        match line.split():
            case ["solved", name]:
                progress = progress.with_(solved=[name])
            case ["hint", name, level] if level.isascii() and level.isdigit():
                progress = progress.with_(hints={name: int(level)})
    for line in _lines_of(folder / CHECKED):
        match line.split():
            case ["passed" | "failed" as how, name, *digests]:
                check = LastCheck(how == "passed", "".join(digests[:1]))
                progress = replace(progress, checked={**progress.checked, name: check})
    return progress


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
    checked: Mapping[str, LastCheck] | None = None,
) -> Progress:
    """Add to the files in this folder, and return all that they say then.

    A file is replaced as a whole, so that one who reads meanwhile sees the old or the new.
    """
    before = read_progress(folder)
    after = before.with_(solved, hints, checked)
    if (after.solved, after.hints) != (before.solved, before.hints):
        _write(folder / FILE, [HEAD, *_lines(after)])
    if [*after.checked.items()] != [*before.checked.items()]:
        _write(folder / CHECKED, map(_check_line, after.checked, after.checked.values()))
    return after


def record_checks(folder: Path, results: Iterable[ExerciseResult], digests: Digests) -> Progress:
    """Add how these checks ended, on answers of these digests; return what was known before."""
    before = read_progress(folder)
    record_progress(folder, checked=last_checks(results, digests))
    return before


def last_checks(results: Iterable[ExerciseResult], digests: Digests) -> dict[str, LastCheck]:
    """How checks ended. Of stubs, and of what the grader itself failed in, nothing is known."""
    return {
        result.name: LastCheck(result.solved, digests.get(result.name, UNKNOWN))
        for result in results
        if not (result.faulty or result.untouched)
    }


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


def _check_line(name: str, check: LastCheck) -> str:
    return f"{'passed' if check.passed else 'failed'} {name} {check.digest}".rstrip()
