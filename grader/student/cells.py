"""The cells of a notebook: what ran in this kernel, what is saved, and who defines a name.

A name that is missing, and a stub that was called, are explained below the error as IPython shows
it. It knows IPython only by what it is handed.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any

from grader.course.course import Course, find_course, load_course
from grader.intake.files import read_files
from grader.intake.own import own_files
from grader.records.faults import CallError
from grader.wire import SourceText, Wanted
from grader.wire.definitions import find_definitions, is_untouched
from grader.wire.source import SourceFile, TopStatement, read_file

# Where a front end says which file a kernel belongs to: VS Code by a name, Jupyter's server by the
# environment.
VSCODE, JUPYTER = "__vsc_ipynb_file__", "JPY_SESSION_NAME"

RUN_AGAIN = "{name} is gone, or cell [{count}] stopped before it: run that cell again"
STARTED_ANEW = (
    "{name} is not defined since the kernel was started. The cell that was [{count}] defines it, "
    "the one with `{line}`: run it again"
)
NOT_RUN = "{name} is not defined yet. The cell with `{line}` defines it: run it first"
ELSEWHERE = "{file} defines {name}: `from grader.mine import {name}` brings it here"
HELPER_ELSEWHERE = "{file} defines {name}: copy it into a cell here"
UNWRITTEN = "{name} is an exercise of {unit}, and is not written yet"
STILL_RAISES = "{name} still has a part to write: write it in its cell, run that, then this again"
STUB_HERE = "In this kernel {name} is still the stub. {elsewhere}"
EDITED = (
    "the notebook as it is saved has another {name} than this kernel: if you have run its cell "
    "since you edited it, save the notebook; if not, run it, and check again"
)
NOT_READ = (
    "cell [{count}] is no valid Python, so nothing of it ran: this is about the {name} that ran "
    "before it"
)
MISSPELT = (
    "cell [{count}] defines {other}: did you mean {name}? This is about the {name} that ran before"
)
NEARLY = "{name} is not defined; did you mean {near}?"
NOT_IMPORTED = "{name} is not defined: is `import {name}` missing?"
SHOWN = 60  # characters of a line
NEAR = 0.8  # of two names that may be meant for one another


@dataclass(frozen=True)
class SavedCell:
    """A code cell as the file has it, and its number when it ran, if it did."""

    text: str
    count: int | None


@dataclass(frozen=True)
class Cells:
    """The cells of one notebook."""

    ran: Sequence[str] = ()  # by number; the last one is running
    file: Path | None = None

    @cached_property
    def saved(self) -> Sequence[SavedCell]:
        """The code cells in the file; none where it cannot be read."""
        try:
            cells = json.loads(self.file.read_text("utf-8"))["cells"] if self.file else []
            return [
                SavedCell("".join(cell["source"]), cell.get("execution_count"))
                for cell in cells
                if cell["cell_type"] == "code"
            ]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def why_missing(self, name: str, course: Course | None) -> str:
        """Who defines a name that this kernel does not know, and what to do; or nothing."""
        before = [n for n, text in enumerate(self.ran[:-1]) if _makes(text, name)]
        if before:
            return RUN_AGAIN.format(name=name, count=before[-1])
        here = [(cell, made) for cell in self.saved if (made := _makes(cell.text, name))]
        unwritten = bool(here) and is_untouched(here[-1][1].node)
        elsewhere = self.elsewhere(name, course) if not here or unwritten else ""
        if not here or elsewhere:
            return elsewhere or self._nearly(name, course)
        cell, made = here[-1]
        line = made.file.lines[made.node.lineno - 1].strip()[:SHOWN]
        if cell.count is None:
            return NOT_RUN.format(name=name, line=line)
        return STARTED_ANEW.format(name=name, line=line, count=cell.count)

    def _nearly(self, name: str, course: Course | None) -> str:
        """What a name may be meant for that nobody defines; or nothing."""
        if name in sys.stdlib_module_names:
            return NOT_IMPORTED.format(name=name)
        files = (read_file(SourceText("cell.ipynb", (text,))) for text in self.ran)
        known = {own for file in files for own in _definitions(file)}
        known |= course.exercises.keys() if course is not None else set()
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=NEAR)
        return NEARLY.format(name=name, near=near[0]) if near else ""

    def elsewhere(self, name: str, course: Course | None) -> str:
        """Which other notebook or file of the course defines a name; or nothing."""
        if course is None:
            return ""
        sources, _ = read_files(own_files(course))
        here = self.file.name if self.file is not None else ""
        files = [read_file(one) for one in sources if Path(one.name).name != here]
        unit = course.unit_of.get(name)
        if unit is None:
            helpers = [file.name for file in files if _defines(file, name)]
            return HELPER_ELSEWHERE.format(file=helpers[0], name=name) if helpers else ""
        found, winner = find_definitions(Wanted(name, unit, ""), files)
        if winner is None:
            return UNWRITTEN.format(name=name, unit=unit) if found.status != "broken" else ""
        return ELSEWHERE.format(file=winner.file.name, name=name)

    def doubt(self, name: str, running: ast.stmt | None, exercises: Collection[str]) -> str:
        """Why what runs may not be what the student sees in the cell; or nothing."""
        made = [n for n, text in enumerate(self.ran) if _makes(text, name)]
        for count in range(made[-1] + 1, len(self.ran)) if made else ():
            file = read_file(SourceText("cell.ipynb", (self.ran[count],)))
            if any(broken == name for broken, *_ in file.broken):
                return NOT_READ.format(count=count, name=name)
            for other in {*_definitions(file)} - {*exercises}:
                if difflib.get_close_matches(other, [name], cutoff=NEAR):
                    return MISSPELT.format(count=count, other=other, name=name)
        return EDITED.format(name=name) if self._edited(name, running) else ""

    def _edited(self, name: str, running: ast.stmt | None) -> bool:
        """Whether the file has definitions that this kernel never ran, and not what it runs."""
        here = [made.node for cell in self.saved if (made := _makes(cell.text, name))]
        if running is None or not here or is_untouched(here[-1]):
            return False
        ever = [made.node for text in self.ran if (made := _makes(text, name))]
        saved, last = {*map(ast.unparse, here)}, ast.unparse(here[-1])
        return ast.unparse(running) not in saved and last not in map(ast.unparse, ever)


def cells_of(shell: Any) -> Cells:
    """The cells of the notebook to which this shell of IPython belongs, if there is one."""
    if shell is None:
        return Cells()
    named = shell.user_ns.get(VSCODE) or os.environ.get(JUPYTER, "")
    file = Path(named) if isinstance(named, str) else Path()
    is_notebook = file.suffix == ".ipynb" and file.is_file()
    return Cells(shell.user_ns.get("_ih", ()), file if is_notebook else None)


def _makes(text: str, name: str) -> TopStatement | None:
    """The last statement of a cell that binds a name, if any does."""
    file = read_file(SourceText("cell.ipynb", (text,)))
    if not file.mentions(name):
        return None
    return next((s for s in reversed(file.statements) if name in s.makes), None)


def _defines(file: SourceFile, name: str) -> bool:
    return file.mentions(name) and name in _definitions(file)


def _definitions(file: SourceFile) -> Iterator[str]:
    return (name for s in file.statements if s.is_definition for name in s.makes)


# --- errors, as IPython shows them ---------------------------------------------------------------


def explain_errors(shell: Any) -> None:
    """From now on, explain a missing name and a stub below the error that a cell ends with."""
    if not shell.custom_exceptions:  # else somebody else explains some, and keeps doing so
        shell.set_custom_exc((NameError, NotImplementedError), _show_explained)


def _show_explained(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    with suppress(Exception):  # an explanation that fails must not hide the error
        for line in explained(error, cells_of(shell)):
            error.add_note(line)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def explained(error: BaseException, cells: Cells) -> Iterator[str]:
    """What to say of an error in a cell: in one line, or in none."""
    try:
        course = load_course(find_course(None, student=True))
    except CallError:
        course = None
    if type(error) is NameError and error.name:
        yield from filter(None, [cells.why_missing(error.name, course)])
    elif type(error) is NotImplementedError and not error.args and course is not None:
        name = _raised_by(error, course.exercises)
        if name:
            yield _of_a_stub(name, cells, course)


def _of_a_stub(name: str, cells: Cells, course: Course) -> str:
    elsewhere = cells.elsewhere(name, course)
    if not elsewhere or elsewhere == UNWRITTEN.format(name=name, unit=course.unit_of[name]):
        return STILL_RAISES.format(name=name)
    return STUB_HERE.format(name=name, elsewhere=elsewhere)


def _raised_by(error: BaseException, exercises: Mapping[str, object]) -> str:
    """The exercise that raised an error; or nothing."""
    *_, last = [frame for frame, _ in walk_tb(error.__traceback__)]
    own = last.f_locals.get("self")
    name = last.f_code.co_name if own is None else type(own).__name__
    return name if name in exercises else ""
