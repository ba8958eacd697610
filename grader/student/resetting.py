"""Puts stubs back into a student's file, and undoes such resets.

Files are read as text; student code is not imported or run. Before a reset, a backup of the file is
written to ``.backups`` in the course's folder.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.student.answers import NOT_INDENTED
from grader.wire.source import UNPARSABLE, parse

FOLDER = ".backups"  # in the course's folder
KEPT = 20  # the number of backups of each unit; older backups are deleted
# In a text that does not parse, lines may have lost their indentation: then a definition ends where
# the next definition begins.
DEFINITION = re.compile(r"(?:async\s+def|def|class)\s|@")

Span = tuple[int, int]  # the first line, and the line after the last; counted from 0


def reset_exercises(course: Course, name: str) -> Path:
    """Put an exercise's stub back, or all stubs of a unit, and return the path of the backup.

    The backup is made before the reset. For an exercise, the rest of the file stays as it is. If
    the stub is there already, the path of the last backup is returned. If a reset is impossible,
    raises a `CallError` that says what to do instead.
    """
    unit = _unit(course, name)
    path = course.stub_file(unit)
    with _as_call_errors(path):
        if not can_reset(course, name):
            raise CallError(
                f"only a student's bundle holds a copy of the stubs of {unit}; "
                f"in a clone of the kit, restore the file with git: git checkout -- {path}"
            )
        before = _bytes_of(path)
        after = _reset(course, before, name)
        made = _kept(course, name)
        if after == before and made:
            return made[-1].path  # without a new backup, whose undo would bring back this stub
        kept = _keep(course, name, before)
        write_whole(path, after)
    return kept


def undo(course: Course, name: str) -> Path | None:
    """Undo the last reset of an exercise or a unit; return its file, or None if there was no reset.

    If the file has changed since the reset, only the definition of the exercise comes back. The
    replaced text becomes the newest backup, so a second undo undoes the first. If an undo would
    lose text, raises a `CallError` that says where the backup is.
    """
    unit = _unit(course, name)
    path = course.stub_file(unit)
    with _as_call_errors(path):
        now = _bytes_of(path)
        for kept in reversed(_kept(course, name)):
            before = kept.path.read_bytes()
            whole = kept.of == name and _is_one_step(course, name, before, now)
            back = before if whole else _brought_back(course, name, now, kept)
            if back == now:  # the backup has the same text as the file
                continue
            _keep(course, name, now)
            write_whole(path, back)
            if whole:  # otherwise the backup has text that did not come back
                kept.path.unlink(missing_ok=True)
            return path
    return None


def can_reset(course: Course, name: str) -> bool:
    """Whether a reset is possible: it needs the untouched stubs in a student's bundle."""
    unit = _unit(course, name)
    return course.pristine(unit) != course.stub_file(unit)


def can_undo(course: Course, name: str) -> bool:
    """Whether there is a backup from a reset of this exercise or of its unit."""
    return bool(_kept(course, name))


def _reset(course: Course, before: bytes, name: str) -> bytes:
    """The bytes of a file after a reset of an exercise or a unit."""
    unit = _unit(course, name)
    path, pristine = course.stub_file(unit), course.pristine(unit).read_bytes()
    if name in course.exercises and before.strip():
        return _with_definition(before, pristine, name, unit, path)
    return _whole(before, pristine)


def _is_one_step(course: Course, name: str, one: bytes, other: bytes) -> bool:
    """Whether a reset turns one of these two texts into the other, with no other change."""
    with suppress(CallError):
        return _reset(course, one, name) == other or _reset(course, other, name) == one
    return False


def _brought_back(course: Course, name: str, now: bytes, last: _Kept) -> bytes:
    """The present text of a file, with the definition of an exercise taken from a backup."""
    unit = _unit(course, name)
    path = course.stub_file(unit)
    if name not in course.exercises:
        raise CallError(
            f"{path.name} has changed since its reset: bring back one exercise at a time (grader "
            f"reset NAME --undo), or copy your lines from {last.path}"
        )
    return _with_definition(now, last.path.read_bytes(), name, unit, path)


def _bytes_of(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _unit(course: Course, name: str) -> str:
    course.select([name])  # raises an error with similar names, if the name is unknown
    return course.unit_of.get(name, name)


@contextmanager
def _as_call_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CallError(f"{error.filename or path}: {error.strerror}") from None


# --- backups -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kept:
    """A backup: a unit's file as it was before a reset."""

    path: Path
    number: int
    of: str  # the exercise or the unit that was reset


def _all_kept(course: Course, unit: str) -> list[_Kept]:
    """The backups of a unit, oldest first."""
    found = [
        _Kept(path, int(match[1]), match[2] or unit)
        for path in (course.folder / FOLDER).glob(f"{unit}.*.py")
        if (match := re.fullmatch(rf"{unit}\.([0-9]+)(?:\.(\w+))?\.py", path.name))
    ]
    return sorted(found, key=lambda kept: kept.number)


def _kept(course: Course, name: str) -> list[_Kept]:
    """The backups from resets of an exercise or of its whole unit, oldest first."""
    unit = _unit(course, name)
    return [kept for kept in _all_kept(course, unit) if kept.of in (name, unit)]


def _keep(course: Course, name: str, data: bytes) -> Path:
    """Write the next backup, which is empty for a missing file; delete backups beyond `KEPT`."""
    unit = _unit(course, name)
    made = _all_kept(course, unit)
    number = made[-1].number + 1 if made else 1
    of = f".{name}" if name != unit else ""
    path = course.folder / FOLDER / f"{unit}.{number}{of}.py"
    path.parent.mkdir(exist_ok=True)
    write_whole(path, data)
    for old in made[: 1 - KEPT]:
        old.path.unlink()
    return path


# --- the new text --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A file: its lines with their endings, its encoding, and its usual line ending."""

    lines: Sequence[str]
    encoding: str
    newline: str


def _whole(before: bytes, pristine: bytes) -> bytes:
    """All stubs of a unit, with the line endings that the student's file has."""
    text = pristine.decode("utf-8").replace("\r\n", "\n")
    return text.replace("\n", "\r\n" if b"\r\n" in before else "\n").encode("utf-8")


def _with_definition(before: bytes, other: bytes, name: str, unit: str, path: Path) -> bytes:
    """The file, with its definitions of a name replaced by the definition from another text."""
    instead = f"the whole file can be put back with: grader reset {unit}"
    try:
        text = _read(before)
    except (SyntaxError, UnicodeDecodeError):
        raise CallError(f"{path} is not text that Python can read; {instead}") from None
    stub = _definition(other, name, path, text.newline)
    try:
        lines = _replaced(text, _definitions(text, name), stub)
    except UNPARSABLE as error:
        where = f"{path} line {getattr(error, 'lineno', None) or 1} is not valid Python"
        if not _guessed(text, name, NOT_INDENTED):
            raise CallError(f"{where}, and no {name} was found in it; {instead}") from None
        guesses = [
            _replaced(text, _guessed(text, name, end), stub) for end in (NOT_INDENTED, DEFINITION)
        ]
        # The syntax error may be in another exercise, which must stay unchanged. Therefore prefer a
        # guess that gives valid Python.
        lines = next((guess for guess in guesses if _is_python("".join(guess))), guesses[0])
    try:
        return "".join(lines).encode(text.encoding)
    except UnicodeEncodeError:
        raise CallError(
            f"{path} has the encoding {text.encoding}, which cannot encode the stub; {instead}"
        ) from None


def _definition(data: bytes, name: str, path: Path, newline: str) -> list[str]:
    """The lines of the last definition of this name in a text."""
    text = _read(data)
    try:
        spans = _definitions(text, name)
    except UNPARSABLE:
        spans = _guessed(text, name, NOT_INDENTED)
    if not spans:
        raise CallError(f"the earlier text of {path.name} does not define {name}")
    first, end = spans[-1]
    return [line.rstrip("\r\n") + newline for line in text.lines[first:end]]


def _read(data: bytes) -> _Text:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding)
    # Split lines as Python does: `str.splitlines` would also split at a form feed.
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    newline = "\r\n" if 2 * text.count("\r\n") > len(lines) else "\n"
    return _Text(lines, encoding, newline)


def _replaced(text: _Text, spans: Sequence[Span], stub: Sequence[str]) -> list[str]:
    """The lines with the stub in place of the last definition; other definitions are deleted.

    If there is no definition, the stub is added at the end.
    """
    lines = list(text.lines)
    if not spans:
        if lines:
            lines[-1] = lines[-1].rstrip("\r\n") + text.newline
        return [*lines, text.newline, text.newline, *stub]
    *earlier, (first, end) = spans
    lines[first:end] = stub
    for first, end in reversed(earlier):
        while not lines[end].strip():
            end += 1
        del lines[first:end]
    return lines


# --- the place of a definition -------------------------------------------------------------------


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            # `compile`, unlike `ast.parse`, also rejects a return outside a function.
            compile(text, "<text>", "exec", dont_inherit=True)
    except UNPARSABLE:
        return False
    return True


def _definitions(text: _Text, name: str) -> list[Span]:
    """The lines of each definition of this name, with decorators; raises the errors of `parse`."""
    body = parse("".join(text.lines), magics=False).body
    spans = [_span(node) for node in body]
    return [
        (first, _with_comments(text.lines, end))
        for node, (first, end) in zip(body, spans, strict=True)
        if _names(node) == name
        # Leave a line alone if a semicolon joins other statements to the definition.
        and sum(first < other_end and other_first < end for other_first, other_end in spans) == 1
    ]


def _names(node: ast.stmt) -> str | None:
    """The name that a statement defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _span(node: ast.stmt) -> Span:
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return first - 1, node.end_lineno or node.lineno


def _with_comments(lines: Sequence[str], end: int) -> int:
    """The line after a definition, which includes indented comments after its last statement."""
    for number in range(end, len(lines)):
        if re.match(r"[ \t]+\S", lines[number]):
            end = number + 1
        elif lines[number].strip():
            break
    return end


def _guessed(text: _Text, name: str, stop: re.Pattern[str]) -> list[Span]:
    """The likely lines of each definition of a name, in a text that does not parse."""
    lines = text.lines
    opening = re.compile(rf"(?:async\s+def|def|class)\s+{name}\b")
    spans = []
    for number in (n for n, line in enumerate(lines) if opening.match(line)):
        first, end = number, number + 1
        while first and lines[first - 1].startswith("@"):
            first -= 1
        while end < len(lines) and not stop.match(lines[end]):
            end += 1
        # Empty lines and comments right above the next definition belong to that definition.
        while end > number + 1 and re.match(r"\s*$|#", lines[end - 1]):
            end -= 1
        spans.append((first, end))
    return spans
