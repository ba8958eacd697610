"""What a notebook shows as one line, without the frames of the grader."""

from __future__ import annotations

from grader.records.faults import CallError


class _Brief(BaseException):
    """Notebooks ask an exception how it is to be shown."""

    def _render_traceback_(self) -> list[str]:
        return [f"grader: {self}"]


class NotChecked(_Brief, CallError):
    """The call was not right; the text says what to do."""


class CheckStopped(_Brief, KeyboardInterrupt):
    """The check was interrupted; the text says where the student's code was."""
