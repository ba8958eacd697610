"""The commands. They read arguments and print results; the work is done elsewhere.

Exit codes: 0 all well, 1 the answer is wrong, 2 the call is wrong, 3 the grader itself failed.
"""

from grader.cli import student, grade, conversation, release, author  # noqa: F401, I001 (in help's order)
from grader.cli.app import app, main

__all__ = ["app", "main"]
