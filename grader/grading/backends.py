"""Where student code runs: in jails, or in a worker process where those cannot be."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from grader.records.faults import CallError

if TYPE_CHECKING:
    from grader.sandbox.session import Backend, Channel, Limits


BackendName = Literal["auto", "jail", "worker"]
Device = Literal["cpu", "cuda"]


def backend(name: BackendName = "auto", device: Device = "cpu") -> AbstractContextManager[Backend]:
    """Start a back end; it loads torch in the background.

    ``auto`` is a jail wherever one can be, and a worker elsewhere. A worker isolates nothing: it is
    for a student's own checks, and for a GPU, which no jail may touch. Raises `CallError` where a
    jail is asked for and cannot be.
    """
    possible = sys.platform == "linux" and hasattr(os, "fork")
    if name == "jail" and device != "cpu":
        raise CallError(f"no jail may touch {device}: leave out --backend, or take a worker")
    if name == "jail" and not possible:
        raise CallError("jails need Linux; a worker runs everywhere (--backend worker)")
    if name == "worker" or device != "cpu" or not possible:
        from grader.unsandboxed.worker import Workers

        return Workers(device)
    return jails()


def jails() -> AbstractContextManager[Backend]:
    """Start the process that jails are forked from."""
    # Imported here: it needs modules that only Unix has.
    from grader.sandbox.jails import Warm

    return Warm()


class Nowhere:
    """A back end for a desk at which no submission is seated: no process is started for it."""

    layers: tuple[str, ...] = ()

    def open(self, limits: Limits) -> Channel:
        """Never asked for."""
        raise NotImplementedError(limits)
