"""A grading in a process of its own. Tests kill it, or any process below it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import psutil

from grader.grading.order import Order
from grader.records.faults import HostFault
from tests.support.places import TINY

Victim = Literal["grader", "worker", "warm process", "jail"]
# Part of the command line of processes forked below the grader, and of their parent.
LINEAGES = {
    "worker": "multiprocessing.forkserver",
    "warm process": "grader.guest.warm",
    "jail": "grader.guest.warm",
}
FORKED = ("worker", "jail")


def write_class(folder: Path, students: int) -> Path:
    """A class whose answers are right and wrong in turn."""
    folder.mkdir()
    units = ("basics", "layers")
    right = "\n\n".join((TINY / "solutions" / f"{unit}.py").read_text("utf-8") for unit in units)
    wrong = f"{right}\n\ndef center(x):\n    return x - x.sum()\n"
    for number in range(students):
        text = (right, wrong)[number % 2]
        (folder / f"student_{number:02}.py").write_text(f"{text}\n# {number}\n", "utf-8")
    return folder


def results(out: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """The files of a grading, without the parts that differ between runs."""
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    graded = [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]
    return (out / "gradebook.csv").read_bytes(), graded


def dies_once(marks: Path, _: object, item: int) -> int:
    """Work for `share`: ends its process at the third item, unless it was tried before."""
    mark = marks / str(item)
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def dies_at_three(_: object, item: int) -> int:
    """Work that kills every process that takes one of its items."""
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def stays(_: object, item: int) -> int:
    """Work that succeeds."""
    return item


def dies_while_it_answers(_: object, item: int) -> Any:
    """Work whose answer is cut off at one item: its process dies with half of it sent."""
    if item != 3:
        return item
    really = Connection._send  # type: ignore[attr-defined]

    def half(self: Connection, data: bytes, *more: Any) -> None:
        really(self, bytes(data)[: len(data) // 2], *more)
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = half  # type: ignore[attr-defined]
    return bytes(300_000)


class Untravelled(Exception):
    """Made of two parts, of which pickle keeps one."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def raises_what_cannot_travel(_: object, item: int) -> int:
    """Work that raises an exception that cannot be pickled."""
    raise Untravelled("cannot be", "put into words")


def answers_what_cannot_travel(_: object, item: int) -> Any:
    """Work whose result cannot be pickled."""
    return lambda: item


class Roomless(Order):
    """An order whose desk cannot be opened, through a fault of ours."""

    @contextmanager
    def desk(self) -> Iterator[Any]:
        """Fail."""
        raise HostFault("no room for a desk")
        yield


class Deadly(Order):
    """An order that ends every process which takes it."""

    @contextmanager
    def desk(self) -> Iterator[Any]:
        """Fail."""
        os.kill(os.getpid(), signal.SIGKILL)
        yield


class Deskless(Order):
    """An order for work that needs no desk, and no torch."""

    @contextmanager
    def desk(self) -> Iterator[Any]:
        """An empty desk."""
        yield SimpleNamespace(isolation=())


class Grading:
    """`grader grade`, as a shell starts it."""

    def __init__(
        self,
        students: Path,
        out: Path,
        *options: str,
        course: Path = TINY,
        before: Callable[[], None] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`before` runs in the process before it becomes the grader."""
        call = ("grade", students, "--out", out, "--course", course, "--no-pages", "--json-lines")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", *map(str, call), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
            env=environment,
            start_new_session=True,
        )

    def wait_for(self, grades: int) -> None:
        """Wait until the gradebook has so many grades."""
        assert self.process.stdout is not None
        for _ in range(grades):
            assert self.process.stdout.readline()

    def finish(self) -> tuple[int, str]:
        """The exit code and standard error, read until every process has closed it."""
        told = self.process.communicate()[1]
        return self.process.returncode, told

    def press_ctrl_c(self) -> bool:
        """Signal all its processes, as a terminal does; False if the grading has ended."""
        if self.process.poll() is not None:
            return False
        os.killpg(self.process.pid, signal.SIGINT)
        return True

    def kill(self, victim: Victim) -> bool:
        """Kill the first such process that appears; False if the grading has ended."""
        while self.process.poll() is None:
            for process in self._running(victim):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    return True
        return False

    def _running(self, victim: Victim) -> list[psutil.Process]:
        try:
            grader = psutil.Process(self.process.pid)
            if victim == "grader":
                return [grader]
            below = grader.children(recursive=True)
            named = [one for one in below if LINEAGES[victim] in " ".join(one.cmdline())]
            pids = {one.pid for one in named}
            return [one for one in named if (one.ppid() in pids) is (victim in FORKED)]
        except psutil.NoSuchProcess:  # it ended while we looked
            return []
