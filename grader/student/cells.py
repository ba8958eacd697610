"""The cells of a notebook: those that ran in this kernel, and those in the saved file.

A check reads the text of the cells that ran, and the files that these cells may import. A grading
reads the saved notebook. `explain_errors` adds an explanation below IPython's error about a missing
name or a stub. This module does not load torch.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import TracebackType
from typing import Any

from grader.course.course import Course, find_course, load_course
from grader.intake.files import on_disk, read_files
from grader.intake.own import own_files, own_folders
from grader.records.faults import CallError
from grader.student.answers import stub_skeletons
from grader.unsandboxed.text import extents
from grader.wire import KERNEL, Found, SourceText, Wanted
from grader.wire.definitions import find_definitions, is_untouched
from grader.wire.source import UNPARSABLE, SourceFile, TopStatement, parse, read_file

# The names under which the path of a kernel's notebook is found: VS Code sets a variable in the
# kernel, and Jupyter's server sets an environment variable.
VSCODE, JUPYTER = "__vsc_ipynb_file__", "JPY_SESSION_NAME"

RUN_AGAIN = (
    "{name} was deleted, or cell [{count}] stopped before it defined {name}: run that cell again"
)
STARTED_ANEW = (
    "{name} has not been defined since this kernel started. The cell that was [{count}] defines "
    "{name} in the line `{line}`: run that cell again"
)
NOT_RUN = "{name} is not defined yet. The cell with `{line}` defines {name}: run that cell first"
ELSEWHERE = "{file} defines {name}: `from grader.mine import {name}` imports your answer"
HELPER_ELSEWHERE = "{file} defines {name}: copy it into a cell here"
UNWRITTEN = "{name} is an exercise of {unit}, and is not written yet"
STILL_RAISES = (
    "{name} still has a part to write: finish {name} in its cell, run that cell, and then run this "
    "cell again"
)
STUB_HERE = "In this kernel {name} is still the stub. {elsewhere}"
EDITED = (
    "the saved notebook, which a grading reads, has {other} {name} {than}: save the notebook, and "
    "check again. If this line stays, a cell was edited, deleted or run out of order: restart the "
    "kernel, and run all cells from the top"
)
GONE = (
    "this kernel has no {name} any more, or the cell stopped before it defined {name}: the check "
    "read the text of the last cell that defines {name}"
)
NO_TEXT = (
    "{name} is in this kernel, but neither your files nor the cells that ran define it: write "
    "{name} in a cell, because checks and gradings read only text"
)
NOT_READ = (
    "cell [{count}] is not valid Python and did not run: the check read {name} from an earlier cell"
)
MISSPELT = (
    "cell [{count}] defines {other}: did you mean {name}? The check read {name} from an earlier "
    "cell"
)
NEARLY = "{name} is not defined; did you mean {near}?"
NOT_IMPORTED = "{name} is not defined: is `import {name}` missing?"
SHOWN = 60  # a message quotes at most this many characters of a line of code
NEAR = 0.8  # the least similarity (of `difflib`) between a name and its misspelling


@dataclass(frozen=True)
class SavedCell:
    """A code cell in the saved file, and its execution number if the cell has run."""

    text: str
    count: int | None


@dataclass(frozen=True)
class Cells:
    """The cells of one notebook: those that ran, and those in its file."""

    ran: Sequence[str] = ()  # texts by execution number; the last cell is running now
    file: Path | None = None
    names: Collection[str] = ()  # the names of the kernel's variables

    def sources(self, course: Course) -> tuple[SourceText, ...]:
        """The sources of a check: the cells that ran, and the files that these cells may import."""
        return (*self._files(course), SourceText(KERNEL, tuple(self.ran[1:])))

    def _files(self, course: Course) -> tuple[SourceText, ...]:
        """The student's saved files.

        If the notebook is in another folder, also the notebook and the modules next to it.
        """
        found = {file.name: file for file in own_files(course)}
        folder = (self.file.parent if self.file is not None else Path.cwd()).resolve()
        if not {*own_folders(course)} & {folder, *folder.parents}:
            beside = [*folder.glob("*.py"), *filter(None, [self.file])]
            found |= {path.name: on_disk(path, path.name) for path in beside}
        return read_files(found[name] for name in sorted(found))[0]

    def found(self, course: Course, name: str) -> Found:
        """What the cells that ran have for an exercise: an answer, a stub or nothing."""
        wanted = Wanted(name, course.unit_of[name], stub_skeletons(course).get(name, ""))
        return find_definitions(wanted, [read_file(SourceText(KERNEL, tuple(self.ran)))])[0]

    @cached_property
    def saved(self) -> Sequence[SavedCell]:
        """The code cells in the saved file; empty if the file is unreadable."""
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
        """A sentence about an undefined name: where the name is defined, or a similar name."""
        return self._maker(name, course) or self._nearly(name, course)

    def _maker(self, name: str, course: Course | None) -> str:
        """A sentence that names the cell or the file that defines a name; empty if none does."""
        before = [n for n, text in enumerate(self.ran[:-1]) if _makes(text, name)]
        if before:
            return RUN_AGAIN.format(name=name, count=before[-1])
        here = [(cell, made) for cell in self.saved if (made := _makes(cell.text, name))]
        unwritten = bool(here) and is_untouched(here[-1][1].node)
        elsewhere = self.elsewhere(name, course) if not here or unwritten else ""
        if not here or elsewhere:
            return elsewhere
        cell, made = here[-1]
        line = made.file.lines[made.node.lineno - 1].strip()[:SHOWN]
        if cell.count is None:
            return NOT_RUN.format(name=name, line=line)
        return STARTED_ANEW.format(name=name, line=line, count=cell.count)

    def _nearly(self, name: str, course: Course | None) -> str:
        """A sentence with a similar name, or with a module to import; empty if there is neither."""
        if name in sys.stdlib_module_names:
            return NOT_IMPORTED.format(name=name)
        files = map(_parsed, self.ran)
        known = {own for file in files for own in _definitions(file)}
        known |= course.exercises.keys() if course is not None else set()
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=NEAR)
        return NEARLY.format(name=name, near=near[0]) if near else ""

    def elsewhere(self, name: str, course: Course | None) -> str:
        """A sentence on another notebook or file that defines this name; empty if none does."""
        if course is None:
            return ""
        here = self.file.name if self.file is not None else ""
        files = [read_file(one) for one in self._files(course) if Path(one.name).name != here]
        unit = course.unit_of.get(name)
        if unit is None:
            helpers = [file.name for file in files if _defines(file, name)]
            return HELPER_ELSEWHERE.format(file=helpers[0], name=name) if helpers else ""
        found, candidates = find_definitions(Wanted(name, unit, ""), files)
        if not candidates:
            return UNWRITTEN.format(name=name, unit=unit) if found.status != "broken" else ""
        return ELSEWHERE.format(file=candidates[0].file.name, name=name)

    def notes(
        self, course: Course, checked: Sequence[SourceText], solved: Mapping[str, bool]
    ) -> list[str]:
        """Sentences about answers that differ between the checked cells, the kernel and the file.

        `checked` are the sources of the check. `solved` says which of the checked exercises passed.
        """
        return [*dict.fromkeys(filter(None, self._notes(course, checked, solved)))]

    def _notes(
        self, course: Course, checked: Sequence[SourceText], solved: Mapping[str, bool]
    ) -> Iterator[str]:
        *saved, _ = checked
        ran = extents(checked, course.unit_of, solved)
        graded = extents(saved, course.unit_of, solved)
        for name, right in solved.items():
            if not ran[name].code:
                if name in self.names:
                    yield self._without_text(name, saved)
                elif len(solved) == 1 or graded[name].code:
                    yield self.why_missing(name, course)
                continue
            yield GONE.format(name=name) if name not in self.names else ""
            yield self._doubt(name, course.exercises)
            for other in () if right else sorted(ran[name].unknown):
                yield self._without_text(other, saved) or self._maker(other, course)
            if self.file is None:
                continue
            if not graded[name].code:
                yield EDITED.format(name=name, other="no", than="yet")
            elif graded[name].code != ran[name].code:
                yield EDITED.format(name=name, other="another", than="than this kernel")

    def _without_text(self, name: str, files: Sequence[SourceText]) -> str:
        """A sentence on a variable that no cell and no file defines; empty for other variables."""
        makers = [made.node for text in self.ran if (made := _makes(text, name))]
        if makers and isinstance(makers[-1], (ast.Import, ast.ImportFrom)):
            words = {*re.findall(r"\w+", ast.unparse(makers[-1]))}
            if words.isdisjoint({"grader", *(Path(one.name).stem for one in files)}):
                makers = []
        return NO_TEXT.format(name=name) if name in self.names and not makers else ""

    def _doubt(self, name: str, exercises: Collection[str]) -> str:
        """A sentence about a later cell that was meant to define this name; empty if none was."""
        made = [n for n, text in enumerate(self.ran) if _makes(text, name)]
        for count in range(made[-1] + 1, len(self.ran)) if made else ():
            file = _parsed(self.ran[count])
            if any(broken == name for broken, *_ in file.broken):
                return NOT_READ.format(count=count, name=name)
            for other in {*_definitions(file)} - {*exercises}:
                if difflib.get_close_matches(other, [name], cutoff=NEAR):
                    return MISSPELT.format(count=count, other=other, name=name)
        return ""


def running_shell() -> Any:
    """IPython's shell, or None outside of IPython."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def cells_of(shell: Any) -> Cells:
    """The cells that ran in this IPython shell; empty if `shell` is None."""
    if shell is None:
        return Cells()
    named = shell.user_ns.get(VSCODE) or os.environ.get(JUPYTER, "")
    file = Path(named) if isinstance(named, str) else Path()
    is_notebook = file.suffix == ".ipynb" and file.is_file()
    ran = [*shell.history_manager.input_hist_raw]
    ran[-1] = _so_far(ran[-1], _line_in(shell, len(ran) - 1))
    names = shell.user_ns.keys() - shell.user_ns_hidden
    return Cells(ran, file if is_notebook else None, names)


def _line_in(shell: Any, count: int) -> int | None:
    """The line that runs now in the cell of this number; None if IPython does not say."""
    name_of = getattr(shell.compile, "format_code_name", lambda _: None)
    for frame, line in walk_stack(None):
        label = name_of(frame.f_code.co_filename)
        is_cell = label is not None and re.findall(r"\d+", label[1]) == [str(count)]
        if is_cell and frame.f_code.co_name == "<module>":
            return line
    return None


def _so_far(cell: str, line: int | None) -> str:
    """The text of a cell, up to and including the statement that runs now, at this line."""
    if line is None or cell.lstrip().startswith("%%"):  # IPython runs the cell as one statement
        return cell
    try:
        ends = [one.end_lineno for one in parse(cell, magics=True).body if one.lineno <= line]
    except UNPARSABLE:
        return cell
    return "\n".join(cell.split("\n")[: ends[-1]]) if ends else cell


@lru_cache(maxsize=512)  # a check looks for each exercise in all cells
def _parsed(cell: str) -> SourceFile:
    return read_file(SourceText("cell.ipynb", (cell,)))


def _makes(text: str, name: str) -> TopStatement | None:
    """The last statement of a cell that binds a name; None if there is no such statement."""
    file = _parsed(text)
    if not file.mentions(name):
        return None
    return next((s for s in reversed(file.statements) if name in s.makes), None)


def _defines(file: SourceFile, name: str) -> bool:
    return file.mentions(name) and name in _definitions(file)


def _definitions(file: SourceFile) -> Iterator[str]:
    return (name for s in file.statements if s.is_definition for name in s.makes)


# --- explanations below errors -------------------------------------------------------------------


def explain_errors(shell: Any) -> None:
    """Make this shell show an explanation below each error about a missing name or a stub."""
    if not shell.custom_exceptions:  # do not replace the handler of another extension
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
    """The explanation of an error in a cell: at most one line."""
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
    """The exercise whose code raised an error; empty if other code raised the error."""
    *_, last = [frame for frame, _ in walk_tb(error.__traceback__)]
    own = last.f_locals.get("self")
    name = last.f_code.co_name if own is None else type(own).__name__
    return name if name in exercises else ""
