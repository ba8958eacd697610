"""The two exceptions that decide an exit code. Light on import."""

from __future__ import annotations


class CallError(Exception):
    """The call is wrong, not the kit: one line that says what to do; exit code 2."""


class HostFault(Exception):
    """Our own side failed: never counted against a student; exit code 3."""
