"""Loads torch and the engine into the process from which a grading's workers are forked.

That process knows no course, seed or submission. Torch starts no threads in it, because a fork
would not have them. Python's fork server imports only this module; see `grader.run.workers`.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from types import TracebackType

from grader.grading.order import loading_torch

with loading_torch():
    import torch

    # Imported only so that these modules are already loaded in each fork.
    import grader.grading.desk
    import grader.grading.ladder
    import grader.grading.rows  # noqa: F401


def _print_error(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    """Print the reason why a worker did not start, unless Ctrl-C ended it while torch loaded."""
    if kind is not EOFError:
        sys.__excepthook__(kind, error, where)


sys.excepthook = _print_error
torch.set_num_threads(1)  # after a parallel operation here, each fork would hang
tempfile.tempdir = None  # importing torch has set this, but a worker may have another TMPDIR
gc.freeze()  # garbage collection in a fork would copy the pages that all forks share
