"""The commands. They read arguments and print results; other rooms do the work.

Exit codes: 0 all well, 1 the answer is wrong, 2 the call is wrong, 3 the grader itself failed.
"""

from grader.cli import student  # noqa: F401 (defines `grader` without a command)
from grader.cli.app import app, main

__all__ = ["app", "main"]
