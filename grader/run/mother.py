"""What the workers of a grading are forked from: a process that has torch and the engine loaded.

It knows no course, no seed and no submission, and torch has started no thread, which a fork would
lose. Python's own fork server imports this and nothing else; see `grader.run.workers`.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from types import TracebackType

from grader.grading.order import loading_torch

with loading_torch():
    import torch

    # What a worker needs before its first submission: imported for that alone.
    import grader.grading.desk
    import grader.grading.ladder
    import grader.grading.rows  # noqa: F401 (that a fork finds it loaded is its use)


def _tell(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """What the fork server says of a worker that could not begin."""
    if kind is not EOFError:  # after Ctrl-C while torch loads, nobody says any more what to do
        sys.__excepthook__(kind, error, where)


sys.excepthook = _tell
torch.set_num_threads(1)  # before any operation: one parallel region here would hang each fork
tempfile.tempdir = None  # torch has asked; a worker's environment may name another
gc.freeze()  # a look for garbage would copy in each fork what all share
