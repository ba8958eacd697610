"""What a student's answers say now, as short digests, which tell of which text a verdict is.

Texts only: nothing of the student's is run, and torch is not loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

from grader.course.course import Course
from grader.intake.files import read_files
from grader.intake.own import own_files
from grader.wire import KERNEL, SourceText, Wanted
from grader.wire.definitions import find_definitions, skeleton, skeletons
from grader.wire.source import UNPARSABLE, SourceFile, TopStatement, read_file

Digests = Mapping[str, str]  # of the exercises that are written; of a stub there is none
UNKNOWN = ""  # the digest of an answer whose text nobody knows


def digests_of(course: Course, cells: Sequence[str] = ()) -> Digests:
    """The digest of each exercise that is written, in what is saved or in the cells that ran.

    It changes with the answer's code, and with the code of what the answer uses: not with a
    comment, a docstring or an annotation. What the cells of a kernel define comes first.
    """
    stubs = skeletons("\n".join(course.stubs().values())) if course.recorded.is_dir() else {}
    saved = _Answers(course, read_files(own_files(course))[0], stubs)
    kernel = _Answers(course, [SourceText(KERNEL, tuple(cells))], stubs)
    found = {name: kernel.digest(name) or saved.digest(name) for name in course.exercises}
    return {name: digest for name, digest in found.items() if digest is not None}


class _Answers:
    """The answers in some files; which of several counts is decided as in a check."""

    def __init__(
        self, course: Course, sources: Sequence[SourceText], stubs: Mapping[str, str]
    ) -> None:
        self._course = course
        self._stubs = stubs
        self._files = [read_file(source) for source in sources]
        self._found: dict[str, tuple[str, TopStatement | None]] = {}
        self._makers: dict[str, dict[str, list[TopStatement]]] = {}  # by file, and by name
        self._texts: dict[int, str] = {}  # of statements

    def digest(self, name: str) -> str | None:
        """What identifies an answer and all that it uses; None if nothing is written."""
        status, winner = self._definition(name)
        if status == "broken" or (winner is not None and not self._can_be_read(winner)):
            return _digest([file.name + "\n".join(file.lines) for file in self._files])
        return _digest(sorted(self._reached(winner))) if winner is not None else None

    def _definition(self, name: str) -> tuple[str, TopStatement | None]:
        if name not in self._found:
            unit = self._course.unit_of[name]
            wanted = Wanted(name, unit, self._stubs.get(name, ""))
            found, winner = find_definitions(wanted, self._files)
            self._found[name] = found.status, winner
        return self._found[name]

    def _reached(self, first: TopStatement) -> set[str]:
        """The code of a statement, and of those that it uses."""
        reached = [first]
        for statement in reached:  # grows meanwhile
            for name in statement.reads | statement.calls_on:
                used = self._made(statement.file).get(name, [])
                if name in self._course.exercises:
                    winner = self._definition(name)[1]
                    used = [winner] if winner is not None else []
                reached += [one for one in used if not any(one is other for other in reached)]
        return {self._text(statement) for statement in reached}

    def _made(self, file: SourceFile) -> Mapping[str, list[TopStatement]]:
        if file.name not in self._makers:
            made = self._makers[file.name] = {}
            for statement in file.statements:
                for name in statement.makes:
                    made.setdefault(name, []).append(statement)
        return self._makers[file.name]

    def _text(self, statement: TopStatement) -> str:
        if id(statement) not in self._texts:
            text = "\n".join(statement.file.lines)
            with suppress(*UNPARSABLE):
                text = skeleton(statement.node)
            self._texts[id(statement)] = text
        return self._texts[id(statement)]

    def _can_be_read(self, statement: TopStatement) -> bool:
        try:
            return bool(statement.code)
        except UNPARSABLE:
            return False


def _digest(texts: Sequence[str]) -> str:
    text = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=6).hexdigest()
