"""A text file with a student's progress: solved exercises, hints read, and questions answered.

Each line is a fact that stays true. To merge two copies, put all their lines into one file, in any
order. Git can do that, and the reader ignores its conflict markers. A second file, which need not
be copied, has the result of each exercise's last check, which later checks may change.
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
    from grader.records.grade import ExerciseResult


FILE = "progress.txt"  # in the course's folder
CHECKED = ".checked.txt"  # the last checks on this computer, oldest first
HEAD = "# What is solved, and which hints were read. Lines may be sorted, and copies merged."


@dataclass(frozen=True)
class LastCheck:
    """The last check of an exercise: whether the answer passed, and its digest if known."""

    passed: bool
    digest: str = UNKNOWN


@dataclass(frozen=True)
class Asked:
    """Questions about an answer: how many replies were right, and the answer's digest if known."""

    right: int
    of: int
    digest: str = UNKNOWN


@dataclass(frozen=True)
class Progress:
    """A student's records, by exercise."""

    solved: frozenset[str] = frozenset()  # solved at some time; the present answer may fail
    hints: Mapping[str, int] = field(default_factory=dict)  # the number of hints that were read
    checked: Mapping[str, LastCheck] = field(default_factory=dict)  # the last checks, oldest first
    asked: Mapping[str, Asked] = field(default_factory=dict)  # the best replies to questions
    place: str = ""  # the exercise that was last checked by name; empty after a check of all

    def with_(
        self,
        solved: Iterable[str] = (),
        hints: Mapping[str, int] | None = None,
        checked: Mapping[str, LastCheck] | None = None,
        asked: Mapping[str, Asked] | None = None,
        place: str | None = None,
    ) -> Progress:
        """This progress with more records; the higher number of hints and right replies counts.

        Without a new `place`, the place stays.
        """
        new = checked or {}
        ever = self.solved.union(solved, (name for name, check in new.items() if check.passed))
        levels = dict(self.hints)
        for name, level in (hints or {}).items():
            levels[name] = max(level, levels.get(name, 0))
        replies = dict(self.asked)
        for name, one in (asked or {}).items():
            replies[name] = max(one, replies.get(name, one), key=lambda some: some.right)
        before = {name: check for name, check in self.checked.items() if name not in new}
        return Progress(
            ever, levels, {**before, **new}, replies, self.place if place is None else place
        )


def read_progress(folder: Path) -> Progress:
    """Read the progress from the files in this folder; unknown lines are skipped.

    Raises `CallError` if a file cannot be read.
    """
    progress = Progress()
    for line in _lines_of(folder / FILE):
        match line.split():
            case ["solved", name]:
                progress = progress.with_(solved=[name])
            case ["hint", name, level] if level.isascii() and level.isdigit():
                progress = progress.with_(hints={name: int(level)})
            case ["asked", name, right, of, *digests] if (right + of).isascii() and (
                right.isdigit() and of.isdigit()
            ):
                one = Asked(int(right), int(of), "".join(digests[:1]))
                progress = progress.with_(asked={name: one})
    for line in _lines_of(folder / CHECKED):
        match line.split():
            case ["passed" | "failed" as how, name, *digests]:
                check = LastCheck(how == "passed", "".join(digests[:1]))
                progress = replace(progress, checked={**progress.checked, name: check})
            case ["place", name]:
                progress = progress.with_(place=name)
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
    asked: Mapping[str, Asked] | None = None,
    place: str | None = None,
) -> Progress:
    """Add these records to the files in this folder, and return the whole progress.

    Each file is replaced atomically, so other programs never read a half-written file. Raises
    `CallError` if a file cannot be read or written.
    """
    before = read_progress(folder)
    after = before.with_(solved, hints, checked, asked, place)
    if [*_lines(after)] != [*_lines(before)]:
        _write(folder / FILE, [HEAD, *_lines(after)])
    if [*_check_lines(after)] != [*_check_lines(before)]:
        _write(folder / CHECKED, _check_lines(after))
    return after


def last_checks(results: Iterable[ExerciseResult], digests: Digests) -> dict[str, LastCheck]:
    """These results as `LastCheck` records, except for stubs and for faults of the grader."""
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


def _lines(progress: Progress) -> Iterator[str]:
    for name in sorted(progress.solved):
        yield f"solved {name}"
    for name, level in sorted(progress.hints.items()):
        yield f"hint {name} {level}"
    for name, asked in sorted(progress.asked.items()):
        yield f"asked {name} {asked.right} {asked.of} {asked.digest}".rstrip()


def _check_lines(progress: Progress) -> Iterator[str]:
    for name, check in progress.checked.items():
        yield f"{'passed' if check.passed else 'failed'} {name} {check.digest}".rstrip()
    if progress.place:
        yield f"place {progress.place}"
