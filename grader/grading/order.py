"""How to grade, as one value: it opens desks, and gives each grade its key.

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
    """How to grade: enough to open a desk in any process.

    Without `stubs`, answers are not compared with the stubs in the course's folder, since students
    write their answers into these files. With strong `isolation`, a desk is opened only where no
    submission can read `secrets` or the solutions.
    """

    course: Course
    seed: str
    files: Mapping[Path, bool]  # test files, each with whether its tests are hidden
    only: tuple[str, ...] = ()  # exercises or units; all if none
    stubs: bool = True
    isolation: Isolation = "strong"
    secrets: tuple[Path, ...] = ()
    # Where student code runs; without one, in jails, or for a GPU in a worker.
    backend: AbstractContextManager[Backend] | None = None
    device: Device = "cpu"  # on which submissions compute
    keeps_sheet: bool = False  # whether the sheet is kept in the user's cache

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """The desk, in this process; raises `CallError` if the course or the machine is unfit."""
        # It loads torch at the same time as this process, if it is started before the import.
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
    """Switch garbage collection off while torch is loaded, and exempt its objects for good.

    Torch makes half a million objects that stay. To search them takes a tenth of the loading time,
    and as much again when the program ends.
    """
    if "torch" in sys.modules:  # newer objects are no part of torch
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
# The key leaves out the student's name, lateness, attempts and groups: these come from the latest
# submission.


KIT = Path(__file__).parents[1]
CARRIED = "bundle"  # the course in a wheel, which is no part of the kit


def keys(order: Order) -> Callable[[Submission], str]:
    """A function that gives the key of a submission graded by this order."""
    shared = _digest(
        basis(order), order.course.select(order.only), order.isolation, os.environ.get(WITHOUT, "")
    )
    return lambda submission: _digest(shared, submission.sources, submission.problems)


def basis(order: Order) -> str:
    """A digest of everything that decides how a known mistake ends in the tests.

    The device is part of it: mistakes run on the CPU, but tests allow for a GPU's rounding.
    """
    return _digest(order.seed, order.device, deciding(order.course))


class Deciding(NamedTuple):
    """The parts of a grade's key that come from this machine and the course."""

    python: str
    torch: str
    kit: str
    course: str


def deciding(course: Course) -> Deciding:
    """Full versions, and hashes of the kit's and the course's text."""
    return Deciding(*_loaded(), course.fingerprint())


@cache
def _loaded() -> tuple[str, str, str]:
    """Versions of Python and torch, and a hash of the kit's text, at the first call.

    The first call comes when a desk is opened: a later install or pull does not change the modules
    that a process has loaded. In a clone, the text says more than a version number.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(KIT.rglob("*.py")):
        if path.relative_to(KIT).parts[0] != CARRIED:
            digest.update(path.read_bytes())
    return platform.python_version(), metadata.version("torch"), digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
