"""A small server for assistants that tutor: what a student's own commands give, and nothing else.

It speaks the Model Context Protocol over standard input and output, with the library `mcp`, for one
course. It reaches no solution, and of a mistake no more than its name. Paths in its answers are
those below the course.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Literal

from grader.course.course import Course
from grader.course.statements import statement
from grader.records.faults import CallError, HostFault
from grader.student import reward
from grader.student.answers import digests_of
from grader.student.checking import Checker, open_checker
from grader.student.closing import closing
from grader.student.listing import as_text, listed
from grader.student.notebook_display import Checked
from grader.student.progress import (
    Progress,
    next_hint,
    read_progress,
    record_checks,
    record_progress,
)
from grader.student.scripts import see_why
from grader.student.showing import Showing
from grader.student.standing import standing_after, standing_of
from grader.unsandboxed.worker import BackendName

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ModuleNotFoundError as error:
    raise CallError(f'grader mcp needs {error.name}: pip install "mcp>=2.3,<3"') from None

NAME = "attention-grader"
Client = Literal["claude", "cursor", "vscode"]
INSTRUCTIONS = """\
Exercises in PyTorch that a student solves in files. You are the tutor: ask questions, point to what
a check says, and leave the writing to the student. Call `check` after each change. Call `hint` only
when the student wants one."""


def tutor(course: Course, backend: BackendName = "auto") -> Tutor:
    """The server's tools for a course whose checks can be run; torch is loaded at the first."""
    course.require_answers()
    return Tutor(course, lambda: open_checker(course, course.asked, backend=backend))


class Tutor:
    """The tools, and what they share: a checker, opened at the first check."""

    def __init__(
        self, course: Course, open_one: Callable[[], AbstractContextManager[Checker]]
    ) -> None:
        self._course = course
        self._open = open_one
        self._stack = ExitStack()
        self._checker: Checker | None = None
        # All is done in one thread: a server has several, and a checker belongs to one.
        self._thread = ThreadPoolExecutor(max_workers=1)

    def close(self) -> None:
        """End what checks ran in."""
        self._thread.submit(self._stack.close).result()
        self._thread.shutdown()

    def list_exercises(self) -> str:
        """List the exercises by unit: which are solved, which fail now, and which comes next."""
        return self._answer(self._list)

    def statement(self, name: str) -> str:
        """What an exercise asks for: its signature, rules, and an example."""
        return self._answer(partial(self._statement, name))

    def check(self, name: str) -> str:
        """Run the public checks of an exercise on the student's saved file, and say what is wrong.

        Also for a unit's name. It takes seconds the first time, and less than one after that.
        """
        return self._answer(partial(self._check, name))

    def hint(self, name: str) -> str:
        """Give the next hint of an exercise. Only when the student wishes for one.

        There are three: a question, a pointer, and nearly the solution. That it was read is kept.
        """
        return self._answer(partial(self._hint, name))

    def after(self, name: str) -> str:
        """Why a solved exercise works, another way to write it, and something to try.

        Refused until the exercise is solved.
        """
        return self._answer(partial(self._after, name))

    def show(self, name: str) -> str:
        """Show the student's own lines at work: inputs, the shapes along the way, and prints."""
        return self._answer(partial(self._show, name))

    def _answer(self, work: Callable[[], str]) -> str:
        """What this gives, after all that was asked before; what goes wrong is one line."""
        try:
            return self._thread.submit(work).result()
        except (CallError, HostFault) as error:
            raise ToolError(self._without_paths(str(error))) from None

    # --- in the thread ---------------------------------------------------------------------------

    def _list(self) -> str:
        return as_text(listed(tuple(self._course.exercises), standing_of(self._course)))

    def _statement(self, name: str) -> str:
        self._course.one(name, "a statement is of one exercise")
        found = statement(self._course, name)
        return "\n\n".join(filter(None, (found.signature, found.text, see_why(self._course, name))))

    def _check(self, name: str) -> str:
        chosen = self._course.select([name])
        if self._checker is None:
            self._checker = self._stack.enter_context(self._open())
        digests = digests_of(self._course)
        results = tuple(self._checker.check(chosen))
        before, notes = Progress(), list[str]()
        try:
            before = record_checks(self._course.folder, results, digests)
        except CallError as error:  # it costs no verdict
            notes.append(f"progress is not recorded: {error}")
        standing = standing_after(self._course, before, results, digests)
        below = closing(self._course, results, standing, named=True)
        return self._without_paths(repr(Checked(results, before.solved, below, notes=(*notes,))))

    def _hint(self, name: str) -> str:
        level, said = next_hint(self._course, name, read_progress(self._course.folder))
        with suppress(CallError):  # that it was read cannot be kept: it is given all the same
            record_progress(self._course.folder, hints={name: level})
        return f"hint {level} of {len(self._course.exercises[name].hints)}: {said}"

    def _after(self, name: str) -> str:
        found = reward.after(self._course, name, read_progress(self._course.folder))
        return as_text(reward.in_lines(found))

    def _show(self, name: str) -> str:
        self._course.one(name, "one exercise is shown")
        return self._without_paths(Showing(self._course, name).read())

    def _without_paths(self, text: str) -> str:
        return text.replace(f"{self._course.folder.parent}/", "")


def configuration(course: Course, client: Client) -> str:
    """The JSON by which a client starts this; with whole paths, since it does so elsewhere."""
    starts = {
        "command": sys.executable,
        "args": ["-I", "-m", "grader", "mcp", "--course", str(course.folder)],
    }
    servers = {"servers": {NAME: {"type": "stdio", **starts}}}
    return json.dumps(servers if client == "vscode" else {"mcpServers": {NAME: starts}}, indent=2)


def serve(course: Course, backend: BackendName = "auto") -> None:
    """Serve until the assistant closes standard input."""
    tools = tutor(course, backend)
    try:
        server_of(tools).run()
    finally:
        tools.close()


def server_of(tools: Tutor) -> MCPServer:
    """A server with these tools, by their names; what a tool is for is its docstring."""
    server = MCPServer(NAME, instructions=INSTRUCTIONS, log_level="ERROR")
    given = (
        tools.list_exercises,
        tools.statement,
        tools.check,
        tools.hint,
        tools.after,
        tools.show,
    )
    for tool in given:
        server.tool(structured_output=False)(tool)
    return server
