"""`grader.check` and `grader.heatmap`: what a notebook asks for, and what it shows.

Knows IPython only by what it finds: outside of it, the same calls work on the caller's own names
and print as text.
"""

from __future__ import annotations

import atexit
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from grader import terminal
from grader.course import Course, find_course, load_course
from grader.desk import Desk, open_desk
from grader.faults import CallError
from grader.grade import ExerciseResult, Matrix, Picture, TestResult
from grader.grading import grade_exercises
from grader.intake import Submission
from grader.jail.here import CellName, Here, Stopped, undisturbed
from grader.messages import MISSING, UNTOUCHED, at
from grader.pictures.svg import heatmap_svg, matrix_of, picture_svg
from grader.pictures.text import UNICODE, drawn, scale, shade
from grader.progress import read_progress, record

WIDTH = 88  # characters of a line of text
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


class _Brief(BaseException):
    """Shown by notebooks as one line, without the frames of the grader."""

    def _render_traceback_(self) -> list[str]:
        return [f"grader: {self}"]


class NotChecked(_Brief, CallError):
    """The call was not right; the text says what to do."""


class CheckStopped(_Brief, KeyboardInterrupt):
    """The check was interrupted; the text says where the student's code was."""


def _check(
    names: Sequence[str | Callable[..., Any]], course: str | Path | None,
    namespace: Mapping[str, Any], name_cell: CellName,
) -> Checked:  # fmt: skip
    here, desk = _desks.at(_found_course(course))
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


def _found_course(given: str | Path | None) -> Path:
    if given is not None:
        return find_course(Path(given))
    try:
        return find_course(None)
    except CallError:
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


# --- what a check shows --------------------------------------------------------------------------

# They stand on light and on dark pages: text keeps the page's colour, and only signs have their
# own ground.
GROUNDS = {"✓": "#1a7f37", "✗": "#b3261e", "!": "#8e24aa"}
OTHER_GROUND = "#5f6368"
BOX = "margin: 0.3em 0 0.6em; padding: 0.2em 0.9em; border-left: 4px solid {ground}"
SIGN = "padding: 0 0.45em; border-radius: 0.4em; color: #fff; background: {ground}"
LIST = "list-style: none; margin: 0.3em 0; padding: 0"
CODE = (
    "white-space: pre-wrap; margin: 0.2em 0 0.6em 1.9em; padding: 0.4em 0.7em; "
    "color: inherit; background: rgba(128, 128, 128, 0.14)"
)


@dataclass(frozen=True, repr=False)
class Checked:
    """How the checks of some exercises ended; notebooks show it with pictures."""

    results: tuple[ExerciseResult, ...]
    solved_before: frozenset[str] = frozenset()
    note: str = ""

    @property
    def solved(self) -> bool:
        """Whether every check passed."""
        return all(result.solved for result in self.results)

    def __repr__(self) -> str:
        page = io.StringIO()
        console = Console(
            file=page, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False,
            highlight=False,
        )  # fmt: skip
        for result in self.results:
            untouched = result.tests[0].status == "missing"
            terminal.verdict(console, result, untouched, result.name in self.solved_before)
        lines = [line.rstrip() for line in page.getvalue().splitlines()]
        return "\n".join([*lines, *filter(None, [self._summary])])

    def _repr_html_(self) -> str:
        parts = [_exercise_html(result, self.solved_before) for result in self.results]
        summary = f"<p>{_text(self._summary)}</p>" if self._summary else ""
        return f"<div>{''.join(parts)}{summary}</div>"

    @property
    def _summary(self) -> str:
        solved = sum(result.solved for result in self.results)
        counted = f"{solved} of {len(self.results)} pass the public checks"
        return "\n".join(filter(None, (counted if len(self.results) != 1 else "", self.note)))


def _exercise_html(result: ExerciseResult, solved_before: frozenset[str]) -> str:
    if result.solved:
        sign, verdict = "✓", "solved"
    elif result.tests[0].status == "missing":
        sign, verdict = "·", "not written yet"
    else:
        sign, verdict = "✗", "not yet right"
    again = not result.solved and result.name in solved_before
    head = (
        f"<p>{_sign(sign, verdict)} <strong>{_text(result.name)}</strong>: {verdict}"
        f"{' <em>(it was solved before)</em>' if again else ''}</p>"
    )
    ground = GROUNDS.get(sign, OTHER_GROUND)
    return f'<div style="{BOX.format(ground=ground)}">{head}{_details(result)}</div>'


def _details(result: ExerciseResult) -> str:
    """The mistake's name on top, then test by test."""
    first = result.tests[0]
    if first.status == "missing":
        return f"<p>{_text(first.message or '')}</p>"
    tests = "".join(map(_test_html, result.tests))
    listed = f'<ul style="{LIST}">{tests}</ul>'
    if result.solved:
        count = f"{len(result.tests)} checks passed"
        return f"<details><summary>{count}</summary>{listed}</details>"
    named = next((test for test in result.tests if test.mistake), None)
    if named is None:
        return listed
    hint = f"<br><em>{_text(named.hint)}</em>" if named.hint else ""
    return f"<p><strong>{_text(named.mistake or '')}</strong>{hint}</p>{listed}"


def _test_html(test: TestResult) -> str:
    sign = terminal.SIGNS.get(test.status, ("✗", ""))[0]
    plain = test.status in ("passed", "failed", "error")
    status = "" if plain else f" ({test.status.replace('_', ' ')})"
    shown = test.status not in ("passed", "skipped")
    message = f'<pre style="{CODE}">{_text(test.message)}</pre>' if test.message and shown else ""
    picture = _picture_html(test.picture) if test.picture is not None else ""
    return f"<li>{_sign(sign, test.status)} {_text(test.title)}{status}{message}{picture}</li>"


def _sign(sign: str, meaning: str) -> str:
    style = SIGN.format(ground=GROUNDS.get(sign, OTHER_GROUND))
    return f'<span role="img" aria-label="{_text(meaning)}" style="{style}">{_text(sign)}</span>'


def _picture_html(picture: Picture) -> str:
    text = drawn(picture, width=WIDTH) or ""
    svg = _svg_or_none(lambda: picture_svg(picture))
    margin = "margin: 0.2em 0 0.8em 1.9em"
    return (
        f'<div style="{margin}">{svg}</div>' if svg else f'<pre style="{CODE}">{_text(text)}</pre>'
    )


def _svg_or_none(draw: Callable[[], str]) -> str | None:
    """None where matplotlib is missing, or fails at it: a picture must not cost a verdict."""
    try:
        return draw()
    except Exception:
        return None


def _text(text: str) -> str:
    return escape(terminal.safe(text))


# --- one matrix ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Heatmap:
    """One matrix to look at: as a picture in a notebook, and as blocks of shade in text."""

    matrix: Matrix
    title: str = ""
    rows: str = ""
    columns: str = ""

    def __repr__(self) -> str:
        shown = [row[: WIDTH // 2 - 4] for row in self.matrix[:WIDTH]]
        top = scale(shown, shown)
        label = len(str(len(shown) - 1))
        lines = [
            f"{index:>{label}} " + "".join(f"{shade(cell, top, UNICODE):>2}" for cell in row)
            for index, row in enumerate(shown)
        ]
        size = f"{len(self.matrix)} by {len(self.matrix[0])}"
        axes = f", rows: {self.rows}, columns: {self.columns}" if self.rows or self.columns else ""
        return "\n".join([*filter(None, [self.title]), *lines, size + axes])

    def _repr_svg_(self) -> str | None:
        return _svg_or_none(
            lambda: heatmap_svg(
                self.matrix, title=self.title, rows=self.rows, columns=self.columns
            )
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return self._repr_svg_() or f"<pre>{_text(repr(self))}</pre>"


def heatmap(weights: Any, *, rows: str = "", columns: str = "", title: str = "") -> Heatmap:
    """Show attention weights or a mask: a tensor with two axes, an array or a list of lists.

    `rows` and `columns` say what stands along the axes. Raises `CallError` for what is no matrix.

    >>> grader.heatmap(weights, rows="queries", columns="keys")
    """
    try:
        return Heatmap(matrix_of(weights), title, rows, columns)
    except CallError as error:
        raise NotChecked(str(error)) from None
