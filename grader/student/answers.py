"""The text of a student's answers: a digest of each answer, and the lines of each definition.

The text is only parsed: student code is not run, and torch is not loaded.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from grader.course.course import Course
from grader.intake.files import read_files
from grader.intake.own import own_files
from grader.wire import KERNEL, SourceText, Wanted
from grader.wire.definitions import find_definitions, last_makers, skeleton, skeletons
from grader.wire.source import UNPARSABLE, SourceFile, TopStatement, read_file

Digests = Mapping[str, str]  # the digest of each answer, by exercise; a stub has no digest
UNKNOWN = ""  # the digest of an answer whose text is unknown

Definitions = Mapping[str, tuple[str, ...]]  # by exercise: the text of each of its definitions
OPENING = re.compile(r"(?:async\s+def|def|class)\s+(\w+)")
# In a text that does not parse, a definition ends before the next line that is not indented. Lines
# that begin with a closing bracket (the end of a signature) or with a comment do not end a
# definition.
NOT_INDENTED = re.compile(r"[^\s#)\]}]")

# Parsed files are cached, because a save usually changes only one file.
_read = lru_cache(maxsize=256)(read_file)


# --- digests -------------------------------------------------------------------------------------


def digests_of(course: Course, cells: Sequence[str] = ()) -> Digests:
    """The digest of each answer that is written in a saved file, or in cells that ran.

    A digest covers the code of the answer and of all definitions that the answer uses, without
    comments, docstrings and annotations. A definition in the cells replaces a saved one.
    """
    stubs = stub_skeletons(course)
    saved = _Answers(course, read_files(own_files(course))[0], stubs)
    kernel = _Answers(course, [SourceText(KERNEL, tuple(cells))], stubs)
    found = {name: kernel.digest(name) or saved.digest(name) for name in course.exercises}
    return {name: digest for name, digest in found.items() if digest is not None}


def stub_skeletons(course: Course) -> Mapping[str, str]:
    """The code of each stub; empty in a clone, where students write into the only copy."""
    return skeletons("\n".join(course.stubs().values())) if course.recorded.is_dir() else {}


class _Answers:
    """The answers in some files: for each exercise, the definition that a check would use."""

    def __init__(
        self, course: Course, sources: Sequence[SourceText], stubs: Mapping[str, str]
    ) -> None:
        self._course = course
        self._stubs = stubs
        self._files = [_read(source) for source in sources]
        self._found: dict[str, tuple[str, Sequence[TopStatement]]] = {}
        # The statements that bind each name, by file.
        self._makers: dict[str, dict[str, list[TopStatement]]] = {}

    def digest(self, name: str) -> str | None:
        """The digest of an answer and of the code that it uses; None if the answer is unwritten.

        If the answer does not compile, the digest covers the text of all files.
        """
        status, candidates = self._definition(name)
        if status == "broken" or not all(map(_compiles, candidates)):
            return _digest([file.name + "\n".join(file.lines) for file in self._files])
        return _digest(sorted(self._reached(candidates))) if candidates else None

    def _definition(self, name: str) -> tuple[str, Sequence[TopStatement]]:
        if name not in self._found:
            unit = self._course.unit_of[name]
            wanted = Wanted(name, unit, self._stubs.get(name, ""))
            found, candidates = find_definitions(wanted, self._files)
            self._found[name] = found.status, [*last_makers(candidates)]
        return self._found[name]

    def _reached(self, first: Sequence[TopStatement]) -> set[str]:
        """The code of statements, and of all statements that they use, directly or indirectly."""
        reached = [*first]
        for statement in reached:  # the loop extends the list that it walks
            used: list[TopStatement] = [condition for condition, _ in statement.guards]
            for name in statement.reads | statement.calls_on:
                is_exercise = name in self._course.exercises
                used += (
                    self._definition(name)[1]
                    if is_exercise
                    else self._made(statement.file).get(name, [])
                )
            reached += [one for one in used if not any(one is other for other in reached)]
        return {_skeleton(one.node) or "\n".join(one.file.lines) for one in reached}

    def _made(self, file: SourceFile) -> Mapping[str, list[TopStatement]]:
        if file.name not in self._makers:
            made = self._makers[file.name] = {}
            for statement in file.statements:
                for name in statement.makes:
                    made.setdefault(name, []).append(statement)
        return self._makers[file.name]


@lru_cache(maxsize=2048)
def _skeleton(node: ast.stmt) -> str:
    with suppress(*UNPARSABLE):
        return skeleton(node)
    return ""


def _compiles(statement: TopStatement) -> bool:
    try:
        return bool(statement.code)
    except UNPARSABLE:
        return False


def _digest(texts: Sequence[str]) -> str:
    text = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=6).hexdigest()


# --- saves ---------------------------------------------------------------------------------------


def definitions(course: Course) -> Definitions:
    """The text of each exercise's definitions, in all of the student's files.

    Definitions are found line by line, because a file with a syntax error cannot be parsed.
    """
    found: dict[str, tuple[str, ...]] = {}
    sources, _ = read_files(own_files(course))
    for source in sources:
        for cell in source.cells:
            for name, text in _definitions(cell):
                found[name] = (*found.get(name, ()), text)
    return {name: found[name] for name in course.exercises if name in found}


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    """The name and the lines of each definition at the top level."""
    name, lines = "", list[str]()
    for line in (*text.splitlines(), "end"):
        if not NOT_INDENTED.match(line):
            lines.append(line)
            continue
        if name:
            # Empty lines and comments above the next definition belong to that definition.
            while not lines[-1].strip() or lines[-1].startswith("#"):
                del lines[-1]
            yield name, "\n".join(lines)
        opening = OPENING.match(line)
        name, lines = (opening[1] if opening else ""), [line]
