"""Where a student is in the course, and what there is to be shown. It knows no screen.

What happened comes in, and a line to be told goes out. Only one thread may use it.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from grader.course.course import Course
from grader.course.file import Exercise
from grader.course.statements import Statement, opening, statement
from grader.feedback.verdict import verdict_of
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult
from grader.records.rows import listed
from grader.student.answers import digests_of
from grader.student.progress import FILE, Progress, last_checks, record_progress
from grader.student.resetting import can_undo, reset_exercises, undo
from grader.student.reward import Reward, reward
from grader.student.running import told_of_file
from grader.student.scripts import see_why
from grader.student.standing import standing_of
from grader.student.watch import words
from grader.student.watch.threads import CheckedOne, Failed, News, Opened
from grader.student.watch.written import AnswersWritten


@dataclass(frozen=True)
class LessonRow:
    """An exercise in the list."""

    name: str
    unit: str
    title: str
    asked: bool
    solved: bool  # once
    failing: bool  # although it was solved once
    current: bool
    best: bool = False  # what a search means, as far as that can be known


def _clock() -> str:
    return time.strftime("%H:%M:%S")


class Lesson:
    """One student at one course: the current exercise, its verdict, and what is known so far."""

    def __init__(
        self, course: Course, start: str | None = None, clock: Callable[[], str] = _clock
    ) -> None:
        if not course.exercises:
            raise CallError(f"{course.folder} is a course without exercises")
        self.course = course
        self.first_run = not (course.folder / FILE).exists()
        standing = standing_of(course)
        self.progress: Progress = standing.progress
        chosen = course.select([start])[0] if start else standing.next
        self.name = chosen or course.asked[0]
        self.ready = False  # whether torch is loaded
        self.checked_at = ""  # when the current exercise was checked last
        self.trouble = ""  # why it could not be
        self.elsewhere = ""  # another exercise, whose answer was saved last
        self._results: dict[str, ExerciseResult] = {}
        self._of_file: dict[str, tuple[str, ...]] = {}  # what each check leaves out of a file
        self._statements: dict[str, Statement] = {}
        self._openings: dict[str, str] = {}  # of units
        self._all: dict[str, bool] | None = None  # what a check of all has found so far
        self._rewards: dict[str, Reward] = {}
        self._answers = AnswersWritten(course)
        self._clock = clock
        for name in self.names:  # now: a clone's stubs are the files that the student writes into
            self._look(name)

    # --- what there is to show -------------------------------------------------------------------

    @property
    def exercise(self) -> Exercise:
        """The current exercise."""
        return self.course.exercises[self.name]

    @property
    def file(self) -> Path:
        """Where the current exercise is to be written."""
        return self.course.stub_file(self.course.unit_of[self.name])

    @property
    def names(self) -> Sequence[str]:
        """All exercises, in the course's order."""
        return tuple(self.course.exercises)

    @property
    def count(self) -> int:
        """How many of those that are asked were solved, at any time."""
        return sum(name in self.progress.solved for name in self.course.asked)

    @property
    def result(self) -> ExerciseResult | None:
        """The current exercise's last result."""
        return self._results.get(self.name)

    @property
    def checked_any(self) -> bool:
        """Whether any exercise was checked yet."""
        return bool(self._results)

    @property
    def reward(self) -> Reward | None:
        """What the current exercise brings, if it is solved now."""
        solved = not self.trouble and self.result is not None and self.result.solved
        return self._rewards.get(self.name) if solved else None

    @property
    def solved_before(self) -> bool:
        """Whether the current exercise was ever solved."""
        return self.name in self.progress.solved

    @property
    def hints(self) -> Sequence[str]:
        """The hints that were read."""
        return self.exercise.hints[: self.progress.hints.get(self.name, 0)]

    def statement(self) -> Statement | str:
        """What the current exercise asks for, or why that cannot be read."""
        return self._statements.get(self.name) or self._look(self.name)

    @property
    def unchecked(self) -> Mapping[str, str]:
        """The rules of the current exercise that only grades look at, as far as that is known."""
        return self.result.unchecked if self.result is not None else {}

    def about_unit(self) -> str:
        """What the current exercise's unit is about, if it is the first one in it."""
        unit = self.course.unit_of[self.name]
        first = next(name for name, its in self.course.unit_of.items() if its == unit)
        if first != self.name:
            return ""
        if unit not in self._openings:
            self._openings[unit] = opening(self.course, unit)
        return self._openings[unit]

    def see_why(self) -> str:
        """Which experiments show why the current exercise is as it is, if there are some."""
        return see_why(self.course, self.name)

    def next_step(self) -> str:
        """What to do after the current verdict, where that is not in the verdict."""
        if self.trouble or self.result is None:
            return ""
        told = self._step(self.result), *self._of_file.get(self.name, ())
        return "\n".join(filter(None, told))

    def _step(self, result: ExerciseResult) -> str:
        if result.solved:
            left = verdict_of(result).left_unchecked
            told = words.solved(self.course, self.name, self.progress.solved)
            return f"{told}\n{left}" if left else told
        if result.untouched:
            return words.UNTOUCHED.format(self.file.name)
        return ""

    def known_keys(self) -> Sequence[words.Shortcut]:
        """The keys that do something in this course."""
        return [key for key in words.KEYS if key.key != "v" or self.course.has_solutions]

    def offered(self) -> Sequence[words.Shortcut]:
        """The keys that do something now."""
        off = set()
        if not self.solved_before:
            off.add("v")
        if not can_undo(self.course, self.name):
            off.add("u")
        if not self.elsewhere:
            off.add("j")
        return [key for key in self.known_keys() if key.key not in off]

    def rows(self, wanted: str = "") -> list[LessonRow]:
        """The exercises that match each of these words, or else those whose names are near."""
        rows = [self._row(name) for name in self.names]
        if not wanted.split():
            return [replace(row, best=row.current) for row in rows]
        texts = [f"{row.name} {row.title} {row.unit}".casefold() for row in rows]
        typed = wanted.casefold().split()
        found = [
            row
            for row, text in zip(rows, texts, strict=True)
            if all(word in text for word in typed)
        ]
        name = "_".join(typed)
        if not found:
            near = get_close_matches(name, [row.name.casefold() for row in rows])
            found = [row for row in rows if row.name.casefold() in near]
            best = near[0] if near else ""
        else:
            best = min((row.name.casefold() for row in found), key=lambda one: _distance(one, name))
        return [replace(row, best=row.name.casefold() == best) for row in found]

    def _row(self, name: str) -> LessonRow:
        result = self._results.get(name)
        solved = name in self.progress.solved
        failing = not result.solved if result is not None else name in self.progress.failing
        return LessonRow(
            name,
            self.course.unit_of[name],
            self.course.exercises[name].title,
            name in self.course.asked,
            solved,
            solved and failing,
            name == self.name,
        )

    def solution(self) -> str:
        """A solution's text, read and never run; raise `CallError` where it may not be seen."""
        if not self.course.has_solutions:
            raise CallError(words.NO_SOLUTIONS)
        if not self.solved_before:
            raise CallError(words.NOT_YET)
        path = self.course.reference_file(self.course.unit_of[self.name])
        try:
            text = path.read_text(encoding="utf-8")
            body = ast.parse(text).body
        except (OSError, SyntaxError, ValueError) as error:
            raise CallError(f"{path.name} cannot be read: {error}") from None
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == self.name:
                first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
        raise CallError(f"{path.name} has no solution of {self.name}")

    # --- what the student does -------------------------------------------------------------------

    def go(self, name: str) -> None:
        """Make this the current exercise."""
        self.name = name
        self.trouble = self.checked_at = self.elsewhere = ""
        self._look(name)

    def step(self, by: int) -> str:
        """Go so many exercises on; say so if there is none."""
        index = self.names.index(self.name) + by
        if not 0 <= index < len(self.names):
            return words.LAST if by > 0 else words.FIRST
        self.go(self.names[index])
        return ""

    def jump(self) -> str:
        """Go to the other exercise whose answer was saved; say so if there is none."""
        if not self.elsewhere:
            return words.NOTHING_ELSEWHERE
        self.go(self.elsewhere)
        return ""

    def hint(self) -> str:
        """Read one more hint."""
        if not self.exercise.hints:
            return words.NO_HINTS
        if len(self.hints) == len(self.exercise.hints):
            return words.NO_MORE_HINTS
        return self._record(hints={self.name: len(self.hints) + 1})

    def reset(self) -> str:
        """Put the current exercise's stub back."""
        try:
            kept = reset_exercises(self.course, self.name)
        except (CallError, HostFault) as error:
            return str(error)
        return words.WAS_RESET.format(self.name, _near(kept, self.course.folder))

    def undo(self) -> str:
        """Put back what stood there before a reset."""
        try:
            file = undo(self.course, self.name)
        except (CallError, HostFault) as error:
            return str(error)
        return words.NOTHING_KEPT if file is None else words.WAS_UNDONE.format(self.name)

    def begin_all(self) -> Sequence[str]:
        """Begin a check of all that are asked, and return their names."""
        self._all = {}
        return self.course.asked

    # --- what is heard ---------------------------------------------------------------------------

    def saved(self) -> str:
        """Take in that a file was saved; say so if that was another exercise's answer."""
        changed = self._answers.changed()
        if changed:
            self.elsewhere = "" if self.name in changed else changed[0]
        if not changed or not self.elsewhere:
            return ""
        there = f"to {self.elsewhere}" if len(changed) > 1 else "there"
        return words.ELSEWHERE.format(listed(changed, "and"), there)

    def hear(self, news: News) -> str:
        """Take in what the worker says; return what is to be told of it, besides the verdict."""
        if isinstance(news, Opened):
            self.ready = True
            return ""
        name = news.result.name if isinstance(news, CheckedOne) else news.name
        said = ""
        if isinstance(news, CheckedOne):
            self._results[name] = news.result
            self._of_file[name] = (*told_of_file(self.course, name),)  # as it was checked
            said = self._record(checked=last_checks([news.result], digests_of(self.course)))
        for one in {name, self.name}:  # what another check finds changes how far one is
            if one in self._results and self._results[one].solved:
                self._rewards[one] = reward(self.course, one, self.progress)
        if name == self.name:
            self.trouble = news.text if isinstance(news, Failed) else ""
            self.checked_at = self._clock()
        return " ".join(part for part in (said, self._hear_of_all(news)) if part)

    def _hear_of_all(self, news: CheckedOne | Failed) -> str:
        if self._all is None or news.remaining is None:
            return ""
        if isinstance(news, CheckedOne):
            self._all[news.result.name] = True
        else:
            self._all[news.name] = False
        count = len(self.course.asked)
        if news.remaining:
            return words.CHECKING_ALL.format(count - news.remaining, count)
        found, self._all = self._all, None
        if len(found) < count:
            return words.STOPPED_ALL
        passing = [n for n, known in found.items() if known and self._results[n].solved]
        broken = [row.name for row in self.rows() if row.failing]
        faults = sum(not known for known in found.values())
        return words.all_checked(self.course, len(passing), broken, faults)

    def _record(self, **news: Any) -> str:
        try:
            # Another window may have recorded something meanwhile.
            self.progress = record_progress(self.course.folder, **news)
        except CallError as error:
            self.progress = self.progress.with_(**news)
            return f"This is not remembered: {error}"
        return ""

    def _look(self, name: str) -> Statement | str:
        """A statement as it was when it could last be read."""
        try:
            found = statement(self.course, name)
        except CallError as error:
            return self._statements.get(name, str(error))
        if not found.text and name in self._statements:  # the student has deleted the docstring
            return self._statements[name]
        self._statements[name] = found
        return found


def _near(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _distance(name: str, wanted: str) -> tuple[bool, bool, bool]:
    """How far a name is from what was typed: the same, begun, held, or something else."""
    return name != wanted, not name.startswith(wanted), wanted not in name
