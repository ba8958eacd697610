"""Kills gradings at random moments, starts them again, and compares what comes out in the end.

``python -m tests.benchmarks.survival [--kills 20] [--students 10] [VICTIM…]``: for each victim, how
often it was killed, how often the command was typed, and how many of the gradebooks that were
finished are those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.victims import Grading, Victim, results, write_class

KILLED: tuple[Victim, ...] = ("grader", "worker", "warm process", "jail")
OFTEN = 8  # kills in the time of an undisturbed run, once there was one
VICTIMS = (*KILLED, "Ctrl-C", "full disk")


def main() -> None:
    """Print the table; exit code 1 if a gradebook differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("victims", nargs="*", metavar="VICTIM", help=", ".join(VICTIMS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--seed", type=int, default=8)
    given = parser.parse_args()
    # A shell's background job ignores Ctrl-C, and so would the gradings.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    all_equal = True
    with tempfile.TemporaryDirectory() as folder:
        calm = undisturbed(Path(folder), given.students)
        print(f"undisturbed: {given.students} submissions in {calm.seconds:.0f} s")
        print(f"{'victim':14}{'kills':>7}{'runs':>7}{'gradebooks':>12}{'equal':>7}", flush=True)
        for victim in given.victims or VICTIMS:
            draw = random.Random(f"{given.seed} {victim}")
            kills = runs = gradebooks = equal = 0
            while kills < given.kills:
                out = Path(folder, f"{victim} {gradebooks}")
                code = None
                while code != 0:
                    disturbed = kills < given.kills
                    code, done = run(calm, out, draw, victim if disturbed else "")
                    kills, runs = kills + done, runs + 1
                gradebooks += 1
                equal += results(out) == results(calm.out)
            print(f"{victim:14}{kills:7}{runs:7}{gradebooks:12}{equal:7}", flush=True)
            all_equal &= equal == gradebooks
    raise SystemExit(not all_equal)


@dataclass(frozen=True)
class Calm:
    """A grading that nobody disturbed."""

    students: Path
    out: Path
    seconds: float
    size: int  # of its database


def undisturbed(folder: Path, students: int) -> Calm:
    """What all others are compared with."""
    hand_in, out = write_class(folder / "class", students), folder / "undisturbed"
    began = time.perf_counter()
    assert Grading(hand_in, out).finish() == (0, "")
    return Calm(hand_in, out, time.perf_counter() - began, (out / "grades.db").stat().st_size)


def run(calm: Calm, out: Path, draw: random.Random, victim: str) -> tuple[int, int]:
    """The exit code of a run, and how often its victim was killed, if there is one."""
    if victim == "full disk":  # no file may be larger than a part of the database
        room = draw.randrange(calm.size)
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))
        code = Grading(calm.students, out, before=limit).finish()[0]
        return code, code != 0
    grading = Grading(calm.students, out, "--jobs", "2" if victim == "worker" else "1")
    strike: Callable[[], bool] | None = None
    if victim == "Ctrl-C":
        strike = grading.press_ctrl_c
    elif victim in KILLED:
        strike = partial(grading.kill, next(name for name in KILLED if name == victim))
    kills, longest = 0, calm.seconds
    while strike is not None and grading.process.poll() is None:
        time.sleep(draw.uniform(0, longest))
        kills += strike()
        if victim == "Ctrl-C":
            break  # who presses it again while a run ends kills nothing more
        longest = calm.seconds / OFTEN
    return grading.finish()[0], kills


if __name__ == "__main__":
    main()
