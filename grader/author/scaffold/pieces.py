"""The pieces of an exercise, one a file: which exist, and the texts of the others."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse
from pathlib import Path

from grader.author.findings import Audited
from grader.author.scaffold import merging
from grader.author.scaffold.calls import Calls
from grader.author.scaffold.example import Example
from grader.author.scaffold.ladder import Written
from grader.author.scaffold.library import common_mistakes_text
from grader.author.scaffold.source import Source
from grader.author.scaffold.stub import SENTENCES, stub_of
from grader.author.texts import template
from grader.course.contract import dataclasses_in
from grader.course.course import Course, parsed
from grader.course.file import decode_course
from grader.course.statements import BUILT_IN, statement

# The pieces of an exercise, with the words for each.
STUB, REFERENCE, ENTRY = "the stub", "the reference", "the entry"
CHECKS, HIDDEN, MISTAKES = "public checks", "hidden tests", "known mistakes"


@dataclass
class Draft:
    """The exercise as it is derived: what an audit refuses is dropped."""

    course: Course
    name: str
    unit: str
    source: Source
    calls: Calls
    example: Example | None
    there: Mapping[str, Path]  # the pieces that exist, with their files
    checks: list[Written] = field(default_factory=list)
    hidden: list[Written] = field(default_factory=list)
    # The slugs of common mistakes, with the rules that they break; None: all that fit.
    slugs: dict[str, tuple[str, ...]] | None = None
    left_out: list[str] = field(default_factory=list)
    edges: Example | None = None  # with numbers at edges
    dead: Sequence[Audited] = ()  # mutants that only the test of edges catches

    @property
    def rules(self) -> list[str]:
        """The rules of the statement that hidden tests check."""
        if STUB in self.there:
            return [key for key in statement(self.course, self.name).keys if key not in BUILT_IN]
        return [key for key in SENTENCES if key in {test.rule for test in self.hidden}]


def files_of(course: Course, unit: str) -> dict[str, Path]:
    """The file of each piece."""
    solutions = course.solutions
    return {
        STUB: course.folder / f"{unit}.py",
        CHECKS: course.folder / "checks" / f"test_{unit}.py",
        REFERENCE: solutions / f"{unit}.py",
        HIDDEN: solutions / "graders" / f"test_{unit}.py",
        MISTAKES: solutions / "mistakes" / f"{unit}.py",
        ENTRY: course.folder / "course.toml",
    }


def existing(course: Course, name: str, unit: str) -> dict[str, Path]:
    """The pieces of an exercise that exist, with their files."""
    files = files_of(course, unit)
    for path in (path for piece, path in files.items() if piece != ENTRY and path.is_file()):
        parsed(path)  # an error in a file has its file and line
    looks = {
        STUB: merging.defines,
        REFERENCE: merging.defines,
        CHECKS: merging.tests,
        HIDDEN: merging.tests,
        MISTAKES: merging.knows,
    }
    found = {
        piece: files[piece]
        for piece, look in looks.items()
        if files[piece].is_file() and look(files[piece].read_text("utf-8"), name)
    }
    return found | ({ENTRY: files[ENTRY]} if name in course.exercises else {})


def texts_of(
    draft: Draft, waiting_text: str = ""
) -> tuple[dict[Path, str], dict[Path, Sequence[str]]]:
    """The new texts of the unit's files, and the pieces that each gets."""
    files = files_of(draft.course, draft.unit)
    texts: dict[Path, str] = {}
    pieces: dict[Path, Sequence[str]] = {}
    for piece, path in files.items():
        exists = path.is_file()
        text = (
            path.read_text("utf-8")
            if exists
            else template(f"exercise/{FRESH[piece]}", unit=draft.unit, libraries=_libraries(draft))
        )
        if piece not in draft.there:
            text = _with_piece(draft, piece, path, text, waiting_text)
            pieces[path] = [piece]
        if piece not in draft.there or not exists:
            texts[path] = text
    if ENTRY not in draft.there:
        decode_course(files[ENTRY], texts[files[ENTRY]])  # a fault here is ours, not the author's
    return texts, pieces


FRESH = {
    STUB: "stub_file.txt",
    CHECKS: "checks_file.txt",
    REFERENCE: "reference_file.txt",
    HIDDEN: "graders_file.txt",
    MISTAKES: "mistakes_file.txt",
    ENTRY: "entry.toml",  # a course always has a course.toml
}


def _libraries(draft: Draft) -> str:
    """The imports of a new file of stubs: what answers will need."""
    if "np.ndarray" in draft.source.text:
        return "import numpy as np  # noqa: F401 - your answers will need it"
    return (
        "import torch  # noqa: F401 - your answers will need it\n"
        "from torch import nn  # noqa: F401 - a unit of functions does not"
    )


def _with_piece(draft: Draft, piece: str, path: Path, text: str, waiting_text: str) -> str:
    name, source = draft.name, draft.source
    if piece == ENTRY:
        fresh = draft.unit not in {unit.name for unit in draft.course.units}
        title = _title(draft)
        return merging.with_exercise(path, text, draft.unit, name, title, new_unit=fresh)
    if piece == STUB:
        stub = stub_of(source, draft.calls, draft.example, draft.edges, draft.rules)
        own = [*_dataclasses(draft, text), stub]
        needed = _needed_by("\n".join(own), source.imports)
        runs = [line for line in needed if "dataclasses" in line]  # a decorator is run
        text = merging.with_imports(text, runs)
        text = merging.with_imports(text, [*filterfalse(runs.count, needed)], typing_only=True)
        return merging.with_definitions(text, own)
    if piece == REFERENCE:
        text = merging.with_imports(text, source.imports)
        if merging.defines(text, name):
            return merging.with_replaced(text, name, source.text)
        known = [part for part in source.support if part not in text]
        return merging.with_definitions(text, [*known, source.text])
    if piece == MISTAKES:
        all_of_them = f'common_mistakes("{name}")\n'
        few = common_mistakes_text(name, [*(draft.slugs or ())])
        call = all_of_them if draft.slugs is None else few
        parts = [part for part in (call, waiting_text) if part]
        imports = [("common_mistakes", call), ("mistake", waiting_text)]
        lines = [f"from grader.mistakes import {function}" for function, used in imports if used]
        text = merging.with_imports(text, lines)
        return merging.with_definitions(text, ["\n".join(parts)] if parts else [], name)
    tests = [test.text for test in (draft.checks if piece == CHECKS else draft.hidden)]
    text = merging.with_imports(text, _imports_of_tests("\n".join(tests)))
    return merging.with_definitions(text, tests, name)


def _dataclasses(draft: Draft, text: str) -> list[str]:
    """The dataclasses of the contract that the file of stubs has not."""
    names = dataclasses_in(draft.calls.trial.contract)
    defined = {name for name in names if merging.defines(text, name)}
    return [
        part
        for part in draft.source.support
        if any(merging.defines(part, name) for name in names - defined)
    ]


def _title(draft: Draft) -> str:
    """The first line of the docstring, without its full stop; else the name in words."""
    line = draft.source.docstring.partition("\n")[0].rstrip(".")
    return line or draft.name.replace("_", " ").capitalize()


HELPERS = (
    "LARGE_SCORES", "adopt", "assert_agrees", "assert_agrees_to_float64",
    "assert_batch_rows_do_not_mix", "assert_gradients_agree", "assert_input_unchanged",
    "assert_learns_the_weights", "rung",
)  # fmt: skip


def _imports_of_tests(text: str) -> list[str]:
    lines = [f"import {module}" for module in ("pytest", "torch") if f"{module}." in text]
    lines += ["import numpy as np"] if "np." in text else []
    used = [
        name for name in HELPERS if f"{name}(" in text or f"{name}." in text or f"={name}" in text
    ]
    return [*lines, *(f"from grader.testing import {name}" for name in used)]


def _needed_by(stub: str, imports: Sequence[str]) -> list[str]:
    """The imports that a stub's annotations and bases need."""
    names = {node.id for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.Name)}
    found = []
    for line in imports:
        (node,) = ast.parse(line).body
        assert isinstance(node, ast.Import | ast.ImportFrom)
        if {one.asname or one.name.partition(".")[0] for one in node.names} & names:
            found.append(line)
    return found
