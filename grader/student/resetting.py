"""A stub put back into a student's file, and taken out again.

A file's text only: nothing of the student's is imported or run. What stood in a file before a reset
is kept in ``.backups`` beside the course file first.
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

FOLDER = ".backups"  # beside course.toml
KEPT = 20  # backups of each unit
# In a text that does not parse, lines may have lost their indentation: then a definition ends where
# the next one begins.
DEFINITION = re.compile(r"(?:async\s+def|def|class)\s|@")

Span = tuple[int, int]  # lines from the first up to, and without, the second; counted from 0


def reset_exercises(course: Course, name: str) -> Path:
    """Put an exercise's stub back, or a whole unit's file, and return the backup made before.

    The rest of the file stays as it is. If the stub stands there already, no backup is added, and
    the last one is returned. Raises `CallError` where that cannot be done, and says what can.
    """
    unit = _unit(course, name)
    path = course.stub_file(unit)
    with _as_call_errors(path):
        if not can_reset(course, name):
            raise CallError(
                f"the stubs of {unit} as they were come only with a student's bundle; "
                f"in a clone of the kit, let git restore the file: git checkout -- {path}"
            )
        before = _bytes_of(path)
        after = _reset(course, before, name)
        made = _kept(course, name)
        if after == before and made:
            return made[-1].path  # one more of the same would stand between a student and an undo
        kept = _keep(course, name, before)
        write_whole(path, after)
    return kept


def undo(course: Course, name: str) -> Path | None:
    """Take back the last reset of an exercise, or of a unit; return its file, or None if none is.

    Where the file has changed since, one definition comes back and the rest stays as it is. What is
    taken out becomes the newest backup: to undo twice is to do it again. Raises `CallError` where
    something would be lost, and says where the backup is.
    """
    unit = _unit(course, name)
    path = course.stub_file(unit)
    with _as_call_errors(path):
        now = _bytes_of(path)
        for kept in reversed(_kept(course, name)):
            before = kept.path.read_bytes()
            whole = kept.of == name and _is_one_step(course, name, before, now)
            back = before if whole else _brought_back(course, name, now, kept)
            if back == now:  # it was a stub then, too
                continue
            _keep(course, name, now)
            write_whole(path, back)
            if whole:  # else it holds more than what came back
                kept.path.unlink(missing_ok=True)
            return path
    return None


def can_reset(course: Course, name: str) -> bool:
    """Whether the untouched stubs of an exercise's unit are here, as in a student's bundle."""
    unit = _unit(course, name)
    return course.pristine(unit) != course.stub_file(unit)


def can_undo(course: Course, name: str) -> bool:
    """Whether a reset of this exercise, or of all its unit, could be taken back."""
    return bool(_kept(course, name))


def _reset(course: Course, before: bytes, name: str) -> bytes:
    """A file's bytes after a reset of an exercise, or of its unit."""
    unit = _unit(course, name)
    path, pristine = course.stub_file(unit), course.pristine(unit).read_bytes()
    if name in course.exercises and before.strip():
        return _with_definition(before, pristine, name, unit, path)
    return _whole(before, pristine)


def _is_one_step(course: Course, name: str, one: bytes, other: bytes) -> bool:
    """Whether a reset leads from one of two texts to the other: nothing else has changed since."""
    with suppress(CallError):
        return _reset(course, one, name) == other or _reset(course, other, name) == one
    return False


def _brought_back(course: Course, name: str, now: bytes, last: _Kept) -> bytes:
    """A file in which an exercise's definition is again what a backup has."""
    unit = _unit(course, name)
    path = course.stub_file(unit)
    if name not in course.exercises:
        raise CallError(
            f"{path.name} has changed since its reset: take back one exercise of it (grader reset "
            f"NAME --undo), or look into {last.path}, where all is kept"
        )
    return _with_definition(now, last.path.read_bytes(), name, unit, path)


def _bytes_of(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _unit(course: Course, name: str) -> str:
    course.select([name])  # says what is near, if nothing has this name
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
    """A unit's file as it was before a reset."""

    path: Path
    number: int
    of: str  # what was reset: an exercise, or the unit


def _all_kept(course: Course, unit: str) -> list[_Kept]:
    """What is kept of a unit, oldest first."""
    found = [
        _Kept(path, int(match[1]), match[2] or unit)
        for path in (course.folder / FOLDER).glob(f"{unit}.*.py")
        if (match := re.fullmatch(rf"{unit}\.([0-9]+)(?:\.(\w+))?\.py", path.name))
    ]
    return sorted(found, key=lambda kept: kept.number)


def _kept(course: Course, name: str) -> list[_Kept]:
    """What was kept at resets of this exercise and of its whole unit, oldest first."""
    unit = _unit(course, name)
    return [kept for kept in _all_kept(course, unit) if kept.of in (name, unit)]


def _keep(course: Course, name: str, data: bytes) -> Path:
    """Keep a file's bytes under the next number; a file that was not there is kept as empty."""
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
    """A file's lines with their endings, and how to write more of them."""

    lines: Sequence[str]
    encoding: str
    newline: str


def _whole(before: bytes, pristine: bytes) -> bytes:
    """The stubs of a unit, with the line endings that the file had."""
    text = pristine.decode("utf-8").replace("\r\n", "\n")
    return text.replace("\n", "\r\n" if b"\r\n" in before else "\n").encode("utf-8")


def _with_definition(before: bytes, other: bytes, name: str, unit: str, path: Path) -> bytes:
    """A file in which the other text's definition stands instead of each of this name."""
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
        # What does not parse may stand in another exercise: then the rest is left as it is.
        lines = next((guess for guess in guesses if _is_python("".join(guess))), guesses[0])
    try:
        return "".join(lines).encode(text.encoding)
    except UnicodeEncodeError:
        raise CallError(
            f"{path} is in {text.encoding}, which the stub does not fit into; {instead}"
        ) from None


def _definition(data: bytes, name: str, path: Path, newline: str) -> list[str]:
    """The lines of the last definition of this name."""
    text = _read(data)
    try:
        spans = _definitions(text, name)
    except UNPARSABLE:
        spans = _guessed(text, name, NOT_INDENTED)
    if not spans:
        raise CallError(f"{path.name} as it was holds no {name}")
    first, end = spans[-1]
    return [line.rstrip("\r\n") + newline for line in text.lines[first:end]]


def _read(data: bytes) -> _Text:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding)
    # As Python counts them: str.splitlines would also split at a form feed.
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    newline = "\r\n" if 2 * text.count("\r\n") > len(lines) else "\n"
    return _Text(lines, encoding, newline)


def _replaced(text: _Text, spans: Sequence[Span], stub: Sequence[str]) -> list[str]:
    """The lines with the stub where the last definition stood; at their end, if there was none."""
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


# --- where a definition stands -------------------------------------------------------------------


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "<text>", "exec", dont_inherit=True)  # sees a return outside a function
    except UNPARSABLE:
        return False
    return True


def _definitions(text: _Text, name: str) -> list[Span]:
    """Each definition of this name, decorators included; raises as `ast.parse` does."""
    body = parse("".join(text.lines), magics=False).body
    spans = [_span(node) for node in body]
    return [
        (first, _with_comments(text.lines, end))
        for node, (first, end) in zip(body, spans, strict=True)
        if _names(node) == name
        # A line with a semicolon holds other statements too.
        and sum(first < other_end and other_first < end for other_first, other_end in spans) == 1
    ]


def _names(node: ast.stmt) -> str | None:
    """The one name that a statement defines."""
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
    """Where a body ends, with indented comments after its last statement."""
    for number in range(end, len(lines)):
        if re.match(r"[ \t]+\S", lines[number]):
            end = number + 1
        elif lines[number].strip():
            break
    return end


def _guessed(text: _Text, name: str, stop: re.Pattern[str]) -> list[Span]:
    """Where definitions of this name seem to stand in a text that does not parse."""
    lines = text.lines
    opening = re.compile(rf"(?:async\s+def|def|class)\s+{name}\b")
    spans = []
    for number in (n for n, line in enumerate(lines) if opening.match(line)):
        first, end = number, number + 1
        while first and lines[first - 1].startswith("@"):
            first -= 1
        while end < len(lines) and not stop.match(lines[end]):
            end += 1
        # What stands right above the next definition belongs to that one.
        while end > number + 1 and re.match(r"\s*$|#", lines[end - 1]):
            end -= 1
        spans.append((first, end))
    return spans
