"""The text that `grader check NAME --show` prints: a trace of a student's lines, with shapes.

The command runs in a separate process, which can be killed at any time.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from grader.course.course import Course
from grader.records.faults import CallError

MOST_SHOWN = 2**16  # bytes of text that are shown at most
LIMIT = 60.0  # seconds
NOTHING_SHOWN = "nothing was shown in {:.0f} s: does a loop never end?"
CUT_SHORT = "… your code was stopped here, after {:.0f} s: does a loop never end?\n"


async def shapes(
    course: Course, name: str, *, width: int | None = None, limit: float = LIMIT
) -> str:
    """The shapes and prints in the public checks of an exercise, up to the time limit.

    With a `width`, the text has the colours of a terminal of that width. If the coroutine is
    cancelled, the process is killed. Raises `CallError` if there is no text.
    """
    # Unbuffered (-u): an endless loop must not hide the output of earlier lines.
    command = [sys.executable, "-u", "-X", "utf8", "-I", "-m", "grader", "check", name]
    environ = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    if width is not None:
        environ |= {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [*command, "--show", "--course", str(course.folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
    ) as process:
        assert process.stdout is not None
        reading = asyncio.create_task(asyncio.to_thread(process.stdout.read, MOST_SHOWN))
        try:
            ended, _ = await asyncio.wait([reading], timeout=limit)
        finally:
            process.kill()
        text = (await reading).decode(errors="replace")
    if not text:
        raise CallError(NOTHING_SHOWN.format(limit))
    return text if ended else text + CUT_SHORT.format(limit)
