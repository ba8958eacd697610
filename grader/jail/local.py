"""Definitions of our own behind the same proxies as a student's, in this process.

For code that is trusted: known mistakes, whose results are compared with a student's. Nothing is
isolated here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any

# Counting operations makes torch load its compiler, which makes a folder for itself, unless it is
# told of one that is there. It puts nothing into it.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())

from grader import wire
from grader.guest.server import Guest


class Local:
    """A channel to definitions that are here already."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._guest = Guest(definitions.__getitem__)
        self._listing = _listing(tuple(definitions))

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        """Do it here and now; `cpu_seconds` is not enforced."""
        del cpu_seconds
        return self._listing if isinstance(request, wire.Open) else self._guest.answer(request)

    def cpu_seconds(self) -> float:
        """Nothing that counts."""
        return 0.0

    def close(self) -> None:
        """Nothing to end."""


@cache
def _listing(names: tuple[str, ...]) -> wire.Listing:
    return wire.Listing([wire.Found(name, "found") for name in names])
