"""How to grade, as one value: desks are opened from it, and the key of a grade is made of it.

It loads no torch before a desk is opened.
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
    """What to grade with, and how: enough to set up a desk in any process.

    Without `stubs`, answers are not compared with the stubs in the course's folder: a student
    writes the answers into these very files. With strong `isolation`, a desk is opened only where
    submissions are sure to be kept from `secrets` and from the solutions.
    """

    course: Course
    seed: str
    files: Mapping[Path, bool]  # test files, each with whether its tests are hidden
    only: tuple[str, ...] = ()  # exercises or units; all if none
    stubs: bool = True
    isolation: Isolation = "strong"
    secrets: tuple[Path, ...] = ()
    # Where student code runs; jails, unless it needs a device.
    backend: AbstractContextManager[Backend] | None = None
    device: Device = "cpu"  # on which submissions compute
    remembers: bool = False  # keeps the sheet in the user's cache

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """The desk, in this process; raises `CallError` if the course or the machine is unfit."""
        # The other process loads torch while this one does, so it is started before the import.
        cpu = self.device == "cpu"
        start = self.backend or (jails.Warm() if cpu else worker.backend(device=self.device))
        with start as behind:
            with loading_torch():
                from grader.grading.desk import set_up
                from grader.grading.rows import kept_under
            kept = kept_under(basis(self)) if self.remembers else nullcontext()
            with kept as rows, closing(set_up(self, behind, rows)) as desk:
                yield desk


@contextmanager
def loading_torch() -> Iterator[None]:
    """Meanwhile Python looks for no garbage, nor ever in what is there in the end.

    Torch is half a million objects that stay. Looking through them again and again takes a tenth
    of the time to load it, and once more when the program ends.
    """
    if "torch" in sys.modules:  # then what has come since may be garbage one day
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
# What decides a grade, as a key: while the key is the same, so would be the grade.
#
# A student's name is no part of it, nor are marks of lateness, attempts and groups: those are
# taken from today's hand-in.


KIT = Path(__file__).parents[1]
CARRIED = "bundle"  # the course in a wheel: no part of the kit


def keys(order: Order) -> Callable[[Submission], str]:
    """The key of each submission, under all else that decides its grade."""
    shared = _digest(
        basis(order), order.course.select(order.only), order.isolation, os.environ.get(WITHOUT, "")
    )
    return lambda submission: _digest(shared, submission.sources, submission.problems)


def basis(order: Order) -> str:
    """What decides how any code ends in the tests: ours too, which runs in no jail.

    Ours never runs on the device, but tests allow for what one computes otherwise.
    """
    return _digest(order.seed, order.device, deciding(order.course))


class Deciding(NamedTuple):
    """What decides a grade on this machine, besides the submission and the order."""

    python: str
    torch: str
    kit: str
    course: str


def deciding(course: Course) -> Deciding:
    """Full versions, and hashes of the kit's and the course's text."""
    return Deciding(*_loaded(), course.fingerprint())


@cache
def _loaded() -> tuple[str, str, str]:
    """Python, torch and the kit, as they were when this was first asked.

    That is when a desk is opened: a process keeps what it has loaded then, whatever is installed
    or pulled later. The text of the kit says more than its number, in a clone.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(KIT.rglob("*.py")):
        if path.relative_to(KIT).parts[0] != CARRIED:
            digest.update(path.read_bytes())
    return platform.python_version(), metadata.version("torch"), digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
