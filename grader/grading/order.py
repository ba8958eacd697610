"""An order says how to grade. It opens desks, and determines the key of each grade.

Torch is loaded only when a desk is opened.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from grader.course.course import Course
from grader.intake import Submission
from grader.sandbox import jails
from grader.sandbox.jails import WITHOUT
from grader.sandbox.session import Device
from grader.unsandboxed import worker

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.sandbox.jails import Isolation
    from grader.sandbox.session import Backend


@dataclass(frozen=True)
class Order:
    """How to grade, in plain data from which any process can open a desk.

    `stubs` says whether to compare answers with the stubs in the course's folder. It is False if
    students write their answers into these files. With strong `isolation`, opening a desk fails if
    a submission could read `secrets` or the solutions.
    """

    course: Course
    seed: str
    files: Mapping[Path, bool]  # test files; True if a file's tests are hidden
    only: tuple[str, ...] = ()  # exercises or units; empty for all
    stubs: bool = True
    isolation: Isolation = "strong"
    secrets: tuple[Path, ...] = ()
    # Where student code runs; if None, in jails, or in a worker for a GPU.
    backend: AbstractContextManager[Backend] | None = None
    device: Device = "cpu"  # the device on which submissions compute
    keeps_sheet: bool = False  # whether the sheet's rows are kept in the user's cache

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """Open a desk in this process; raise `CallError` if the course or the machine is unfit."""
        # Start the backend's process before the import: both processes load torch in parallel.
        cpu = self.device == "cpu"
        start = self.backend or (jails.Warm() if cpu else worker.backend(device=self.device))
        with start as behind:
            with loading_torch():
                from grader.grading.opening import set_up
                from grader.grading.rows import kept_under
            kept = kept_under(basis(self)) if self.keeps_sheet else nullcontext()
            with kept as rows, closing(set_up(self, behind, rows)) as desk:
                yield desk


@contextmanager
def loading_torch() -> Iterator[None]:
    """Switch garbage collection off while torch loads; then exempt all objects from collection.

    Torch creates half a million objects that live as long as the process. Garbage collection of
    these objects takes a tenth of the loading time, and as much again when the program ends.
    """
    if "torch" in sys.modules:  # torch is loaded: `gc.freeze` would exempt newer objects
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


# --- the key of a grade --------------------------------------------------------------------------
#
# Two gradings with the same key give the same grade.
#
# The key does not depend on the student's name, lateness, attempts and groups: a gradebook takes
# these from the latest submission.


KIT = Path(__file__).parents[1]
CARRIED = "bundle"  # the folder of the course inside a wheel; it is not part of the kit


def keys(order: Order) -> Callable[[Submission], str]:
    """A function of a submission, which gives the key of the grade under this order."""
    shared = _digest(
        basis(order), order.course.select(order.only), order.isolation, os.environ.get(WITHOUT, "")
    )
    return lambda submission: _digest(shared, submission.sources, submission.problems)


def basis(order: Order) -> str:
    """A digest of everything that decides the results of the tests on a known mistake.

    The device is one part: mistakes run on the CPU, but a test's tolerance depends on the device.
    """
    return _digest(order.seed, order.device, deciding(order.course))


class Deciding(NamedTuple):
    """The parts of a grade's key that come from the installed software and the course."""

    python: str
    torch: str
    kit: str
    course: str


def deciding(course: Course) -> Deciding:
    """The versions of Python and torch, and hashes of the kit's and the course's files."""
    return Deciding(*_loaded(), course.fingerprint())


@cache
def _loaded() -> tuple[str, str, str]:
    """The versions of Python and torch, and a hash of the kit's source, as of the first call.

    The first call comes when a desk is opened. Later calls repeat the first result, since a later
    install or pull does not change the modules that a process has loaded. The hash is needed
    because a clone's source may change while its version number stays.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(KIT.rglob("*.py")):
        if path.relative_to(KIT).parts[0] != CARRIED:
            digest.update(path.read_bytes())
    return platform.python_version(), metadata.version("torch"), digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
