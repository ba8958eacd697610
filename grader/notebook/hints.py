"""`grader.hint`: the next hint of an exercise; and what a play cell says before it is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

from grader.course.course import Course, load_course
from grader.feedback import terminal
from grader.notebook.asking import found_course
from grader.notebook.errors import NotChecked
from grader.notebook.shown import BOX, OTHER_GROUND, text
from grader.progress import ALL_SOLVED, Progress, next_hint, read_progress, record
from grader.records.faults import CallError

SOLVE_FIRST = "Solve it first, then run this cell."


@dataclass(frozen=True, repr=False)
class Hint:
    """One hint; notebooks show it as HTML."""

    name: str
    level: int
    of: int
    hint: str
    note: str = ""

    def __repr__(self) -> str:
        head = f"{self.name}, hint {self.level} of {self.of}"
        return "\n".join(filter(None, (head, terminal.safe(self.hint), *self._below)))

    def _repr_html_(self) -> str:
        head = f"<p><strong>{text(self.name)}</strong>, hint {self.level} of {self.of}</p>"
        below = "".join(f"<p><em>{text(line)}</em></p>" for line in self._below)
        style = BOX.format(ground=OTHER_GROUND)
        return f'<div style="{style}">{head}<p>{text(self.hint)}</p>{below}</div>'

    @property
    def _below(self) -> tuple[str, ...]:
        another = f'another one: grader.hint("{self.name}")' if self.level < self.of else ""
        return tuple(filter(None, (another, self.note)))


def hint(name: str | Callable[..., Any] | None = None, *, course: str | Path | None = None) -> Hint:
    """Give the next hint: first a question, then a pointer, then nearly the solution.

    Without a name, of the first exercise that was never solved. Which hints were read is added to
    the progress beside ``course.toml``. Raises `CallError` where there is no hint to give.
    """
    try:
        asked = getattr(name, "__name__", "") if callable(name) else name
        return _hint(load_course(found_course(course)), asked)
    except CallError as error:
        raise NotChecked(str(error)) from None


def _hint(course: Course, name: str | None) -> Hint:
    """Progress that cannot be kept costs a note, and no hint."""
    progress, note = Progress(), ""
    try:
        progress = read_progress(course.folder)
    except CallError as error:
        note = f"progress is not recorded: {error}"
    name = progress.first_unsolved(course.asked) if name is None else name
    if name is None:
        raise CallError(ALL_SOLVED)
    level, said = next_hint(course, name, progress)
    try:
        record(course.folder, hints={name: level})
    except CallError as error:
        note = f"progress is not recorded: {error}"
    return Hint(name, level, len(course.exercises[name].hints), said, note)


def unsolved(name: str, error: NotImplementedError) -> str:
    """What a play cell says of an exercise where a stub still raises: its own, or another one."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    last = frames[-1]
    own = last.f_locals.get("self")
    raised = last.f_code.co_name if own is None else type(own).__name__
    if raised in (name, "<module>"):
        return SOLVE_FIRST
    return f"{raised} is still to be written. {SOLVE_FIRST}"
