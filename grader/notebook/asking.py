"""`grader.check`: the public checks on what a notebook, or any other caller, has defined.

Knows IPython only by what it finds: outside of it, the same call works on the caller's own names.
"""

from __future__ import annotations

import atexit
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from grader.course.course import Course, load_course
from grader.course.location import NoCourse, find_course
from grader.feedback.sentences import MISSING, UNTOUCHED, at
from grader.grading.desk import Desk, open_desk
from grader.grading.ladder import grade_exercises
from grader.intake import Submission
from grader.notebook.errors import CheckStopped, NotChecked
from grader.notebook.shown import Checked
from grader.progress import read_progress, record
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.unsandboxed.in_process import CellName, Here, Stopped, undisturbed

NOT_DEFINED = "it is not defined in this session yet: run the cell that defines it, and check again"
STILL_A_STUB = "still the stub: write your own lines, run the cell, and check again"
NOTHING_DEFINED = "no exercise of the course is defined yet: run a cell that defines one"
NO_COURSE = (
    "no course.toml was found near {here}: name its folder, as in "
    'grader.check(..., course="path/to/exercises")'
)


def check(*names: str | Callable[..., Any], course: str | Path | None = None) -> Checked:
    """Run the public checks of these exercises or units on what the caller has defined.

    Without names, of all exercises that are defined. `course` is the folder of ``course.toml``;
    without it, the nearest one upward. What is solved is added to the progress there. Raises
    `CallError` where there is nothing to check.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    namespace: Mapping[str, Any] = sys._getframe(1).f_globals if shell is None else shell.user_ns
    try:
        return _check(names, course, namespace, _cell_names(shell))
    except CallError as error:
        raise NotChecked(str(error)) from None
    except KeyboardInterrupt as stop:
        place = stop.place if isinstance(stop, Stopped) else None
        raise CheckStopped(f"stopped at {at(place)}" if place else "stopped") from None


def _check(
    names: Sequence[str | Callable[..., Any]], course: str | Path | None,
    namespace: Mapping[str, Any], name_cell: CellName,
) -> Checked:  # fmt: skip
    here, desk = _desks.at(found_course(course))
    called = [name if isinstance(name, str) else getattr(name, "__name__", "") for name in names]
    chosen = desk.course.select(called)
    if not names:
        chosen = tuple(name for name in chosen if name in namespace)
        if not chosen:
            raise CallError(NOTHING_DEFINED)
    with (
        here.looking_into(namespace, name_cell), undisturbed(),
        desk.seat(Submission("you", ()), chosen) as seat,
    ):  # fmt: skip
        results = grade_exercises(desk, seat, chosen)
    return _remembered(desk.course, tuple(map(_in_words_of_notebooks, results)))


def found_course(given: str | Path | None) -> Path:
    """The folder of the course that is meant."""
    if given is not None:
        return find_course(Path(given))
    try:
        return find_course(None, student=True)
    except NoCourse:
        raise CallError(NO_COURSE.format(here=Path.cwd())) from None


def _in_words_of_notebooks(result: ExerciseResult) -> ExerciseResult:
    """What is missing is not missing from a file, but was not run."""
    words = {MISSING: NOT_DEFINED, UNTOUCHED: STILL_A_STUB}
    first, *rest = result.tests
    first = msgspec.structs.replace(first, message=words.get(first.message or "", first.message))
    return msgspec.structs.replace(result, tests=(first, *rest))


def _remembered(course: Course, results: tuple[ExerciseResult, ...]) -> Checked:
    """Progress that cannot be kept costs a note, and no verdict."""
    try:
        before = read_progress(course.folder).solved
        record(course.folder, solved=[result.name for result in results if result.solved])
    except CallError as error:
        return Checked(results, note=f"progress is not recorded: {error}")
    return Checked(results, before)


def _cell_names(shell: Any) -> CellName:
    """How IPython numbers the cells, where it tells."""

    def name(file: str) -> str | None:
        told = getattr(getattr(shell, "compile", None), "format_code_name", None)
        label = told(file) if told is not None else None
        number = re.search(r"\d+", label[1]) if label else None
        return f"cell [{number[0]}]" if number else None

    return name


class _Desks:
    """Open desks by the course's folder: collecting checks takes seconds, once a session."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._open: dict[Path, tuple[Here, Desk]] = {}
        atexit.register(self._stack.close)

    def at(self, folder: Path) -> tuple[Here, Desk]:
        """The desk of this course, with the back end that looks into a notebook."""
        if folder not in self._open:
            course, here = load_course(folder), Here()
            files = dict.fromkeys(course.check_files(), False)
            with undisturbed():
                desk = self._stack.enter_context(
                    open_desk(
                        course, seed=course.seed, files=files, stubs=False,
                        backend=nullcontext(here),
                    )
                )  # fmt: skip
            self._open[folder] = here, desk
        return self._open[folder]


_desks = _Desks()
