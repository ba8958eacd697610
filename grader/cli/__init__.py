"""The commands. They read arguments and print results; the work is done elsewhere.

Exit codes: 0 all well, 1 the answer is wrong, 2 the call is wrong, 3 the grader itself failed.
"""

from grader.cli import student  # noqa: F401 (what `grader` does without a command)
from grader.cli.app import app, main

__all__ = ["app", "main"]
