"""Orders whose desks cost nothing, and work that looks at nothing: for workers on a cluster.

They travel there by name, so nothing here loads torch.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from grader.grading.order import Order
from grader.intake import Submission
from grader.records.faults import CallError
from grader.records.grade import Grade

if TYPE_CHECKING:
    from grader.grading.desk import Desk

KILLER = "student_3"


@dataclass(frozen=True)
class Bare(Order):
    """An order for desks at which there is nothing."""

    pipe: Path | None = None  # into which a desk writes when it is closed

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        yield cast("Desk", SimpleNamespace(isolation=("process",)))
        if self.pipe is not None:
            self.pipe.write_text("closed\n", "utf-8")


def mark(desk: Desk, submission: Submission) -> Grade:
    """Full marks for everyone."""
    name = submission.student
    return Grade(name, name, "graded", 10.0, 10.0, "", "", desk.isolation, "", 0.0)


def kill(desk: Desk, submission: Submission) -> Grade:
    """What no submission should be able to do to its grader."""
    if submission.student == KILLER:
        os.kill(os.getpid(), signal.SIGKILL)
    return mark(desk, submission)


def refuse(desk: Desk, submission: Submission) -> Grade:
    """The call turns out to be wrong at the first submission."""
    raise CallError(f"a recording for {submission.student} cannot be used")
