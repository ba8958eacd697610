"""A small server for AI assistants that tutor a student: its tools are the student's own commands.

The server speaks the Model Context Protocol over standard input and output, with the library `mcp`,
for one course. It sends no solution and no definition of a known mistake. Paths in its answers are
relative to the folder above the course.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

from grader.course.course import Course
from grader.course.statements import EMPTY_LINE, statement
from grader.intake.own import read_answers
from grader.records.faults import CallError, HostFault
from grader.student import reward
from grader.student.asking import exercise_to_ask, in_words, questions_on
from grader.student.checking import Checks, open_checker
from grader.student.lesson import Lesson, closing
from grader.student.listing import as_text, listed
from grader.student.notebook_display import Checked
from grader.student.scripts import see_why
from grader.student.shapes import shapes
from grader.student.standing import standing_of
from grader.unsandboxed.worker import BackendName

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ModuleNotFoundError as error:
    raise CallError(f'grader mcp needs {error.name}: pip install "mcp>=2.3,<3"') from None

NAME = "grader"
Client = Literal["claude", "cursor", "vscode"]
INSTRUCTIONS = """\
Exercises that a student solves in files. You are the tutor: ask questions, point to what
a check says, and leave the writing to the student. Call `check` after each change. Call `hint` only
when the student wants one."""


class Tutor:
    """The tools of the server. They share one `Checks`, which loads torch at the first check."""

    def __init__(self, course: Course, backend: BackendName = "auto") -> None:
        course.require_answers()
        self.course = course
        self._checks = Checks(course, lambda: open_checker(course, course.asked, backend=backend))
        # The server uses several threads, but checks must all run in the same thread.
        self._thread = ThreadPoolExecutor(max_workers=1)

    def close(self) -> None:
        """End the processes of the checks."""
        self._thread.submit(self._checks.close).result()
        self._thread.shutdown()

    def list_exercises(self) -> str:
        """List the exercises by unit: which are solved, which fail now, and which comes next."""
        return self._answer(self._list)

    def statement(self, name: str) -> str:
        """Give the statement of an exercise: signature, rules, and an example."""
        return self._answer(partial(self._statement, name))

    def check(self, name: str) -> str:
        """Run the public checks of an exercise on the student's saved file, and say what is wrong.

        `name` may also be a unit. The first check takes some seconds, a later check less than one
        second.
        """
        return self._answer(partial(self._check, name))

    def hint(self, name: str) -> str:
        """Give the next hint of an exercise. Call this only if the student asks for a hint.

        There are three hints: a question, a pointer, and nearly the solution. The student's
        progress records the hint as read.
        """
        return self._answer(partial(self._hint, name))

    def after(self, name: str) -> str:
        """Explain why a solved exercise works, another way to write it, and something to try.

        The call fails until the exercise is solved.
        """
        return self._answer(partial(self._after, name))

    def question(self, name: str) -> str:
        """Give a question about the student's own solved answer, without the reply.

        The question was made by running the answer with small changes. The call fails until the
        exercise is solved, and records nothing: `grader ask` does that.
        """
        return self._answer(partial(self._question, name))

    def show(self, name: str) -> str:
        """Show a trace of the student's own lines: inputs, shapes line by line, and prints."""
        return self._answer(partial(self._show, name))

    def _answer(self, work: Callable[[], str]) -> str:
        """Run `work` in the thread of the checks, after all earlier work, and return its text."""
        try:
            return self._without_paths(self._thread.submit(work).result())
        except (CallError, HostFault) as error:
            raise ToolError(self._without_paths(str(error))) from None

    # --- in the thread of the checks -------------------------------------------------------------

    def _list(self) -> str:
        return as_text(listed(tuple(self.course.exercises), standing_of(self.course)))

    def _statement(self, name: str) -> str:
        self.course.one(name, "a statement belongs to one exercise")
        found = statement(self.course, name)
        text = found.text.replace(EMPTY_LINE, "")
        return "\n\n".join(filter(None, (found.signature, text, see_why(self.course, name))))

    def _check(self, name: str) -> str:
        lesson = Lesson(self.course)
        results, digests = self._checks.check(self.course.select([name]))
        verdicts = lesson.record(results, digests, named=True)
        below = closing(self.course, verdicts, lesson.standing, named=True)
        notes = tuple(filter(None, [lesson.unrecorded]))
        solved_before = frozenset(one.exercise for one in verdicts if one.solved_before)
        return repr(Checked(tuple(results), solved_before, below, notes=notes))

    def _hint(self, name: str) -> str:
        hint = Lesson(self.course).hint(name)
        return f"hint {hint.level} of {hint.of}: {hint.text}"

    def _after(self, name: str) -> str:
        return as_text(reward.in_lines(reward.after(standing_of(self.course), name)))

    def _question(self, name: str) -> str:
        standing = standing_of(self.course)
        asked = exercise_to_ask(standing, name)
        submission = read_answers(self.course.folder, self.course)
        questions = questions_on(self._checks.checker().desk, submission, asked, "tutor")
        return "\n".join(in_words(questions[0]))

    def _show(self, name: str) -> str:
        self.course.one(name, "one exercise can be shown at a time")
        return asyncio.run(shapes(self.course, name))

    def _without_paths(self, text: str) -> str:
        return text.replace(f"{self.course.folder.parent}/", "")


def configuration(course: Course, client: Client) -> str:
    """The JSON that tells a client how to start this server, with absolute paths."""
    starts = {
        "command": sys.executable,
        "args": ["-I", "-m", "grader", "mcp", "--course", str(course.folder)],
    }
    servers = {"servers": {NAME: {"type": "stdio", **starts}}}
    return json.dumps(servers if client == "vscode" else {"mcpServers": {NAME: starts}}, indent=2)


def serve(course: Course, backend: BackendName = "auto") -> None:
    """Run the server until the assistant closes standard input."""
    tools = Tutor(course, backend)
    try:
        server_of(tools).run()
    finally:
        tools.close()


def server_of(tools: Tutor) -> MCPServer:
    """A server with these tools; the assistant reads each tool's docstring as its description."""
    server = MCPServer(NAME, instructions=INSTRUCTIONS, log_level="ERROR")
    given: list[Callable[[str], str] | Callable[[], str]] = [
        tools.list_exercises,
        tools.statement,
        tools.check,
        tools.hint,
        tools.show,
    ]
    if tools.course.file.questions:
        given.append(tools.question)
    if "after" not in tools.course.lacking:
        given.append(tools.after)
    for tool in given:
        server.tool(structured_output=False)(tool)
    return server
