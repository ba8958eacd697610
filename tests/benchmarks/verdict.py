"""Seconds from save to verdict on the watch screen, compared with a cold ``pytest``.

Both run the same checks, in turn in one call, so that a busy machine slows both. The screen is the
real screen, without a terminal. The file is saved as editors do. The clock stops when the verdict
is drawn.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

from grader.course.course import load_course
from grader.student.checking import Checks, open_checker
from grader.student.lesson import Lesson
from grader.student.watch.screen import WatchApp
from tests.benchmarks.others import EXERCISE, UNIT, seconds_of_pytest
from tests.support.bundles import recordings
from tests.support.places import ROOT

ROUNDS, EVERY = 30, 4  # saves; and a cold pytest after every second right one
RIGHT = "return torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(diagonal=1)"
WRONG = RIGHT.replace("diagonal=1", "diagonal=0")


class Desk:
    """A student's folder, and the file that is saved again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "exercises"
        course = load_course(ROOT / "exercises")
        shutil.copytree(course.folder, self.folder)
        shutil.copytree(recordings(course), self.folder / "recorded")
        self.file = self.folder / f"{UNIT}.py"
        self.cold = folder / "cold"
        self.cold.mkdir()
        self._stub = self.file.read_text("utf-8")
        self._draft = folder / "draft.py"

    def save(self, body: str) -> None:
        """Save the exercise with this body: a new file takes the old one's place."""
        before, after = self._stub.split(f"def {EXERCISE}(", 1)
        after = after.replace("raise NotImplementedError", body, 1)
        self._draft.write_text(f"{before}def {EXERCISE}({after}", "utf-8")
        self._draft.replace(self.file)


async def verdict(pilot: Pilot[None], lesson: Lesson, solved: bool) -> None:
    """Wait until this verdict is drawn."""
    while EXERCISE not in lesson.verdicts or lesson.verdicts[EXERCISE].solved is not solved:
        await asyncio.sleep(0.001)
    await pilot.pause()


async def measure(desk: Desk) -> tuple[list[float], list[float]]:
    """Seconds from save to verdict, and of a cold pytest."""
    course = load_course(desk.folder)
    lesson = Lesson(course)
    app = WatchApp(lesson, EXERCISE, Checks(course, lambda: open_checker(course)))
    saves, colds = [], []
    async with app.run_test(size=(80, 24)) as pilot:
        for right in (False, True):  # not timed: torch is loaded
            desk.save(RIGHT if right else WRONG)
            await verdict(pilot, lesson, right)
        for number in range(ROUNDS):
            right = number % 2 == 1
            started = time.perf_counter()
            desk.save(RIGHT if right else WRONG)
            await verdict(pilot, lesson, right)
            saves.append(time.perf_counter() - started)
            if number % EVERY == 1:
                colds.append(seconds_of_pytest(desk.cold, desk.file.read_text("utf-8")))
    app.close()
    return saves, colds


def medians() -> tuple[float, float]:
    """Median seconds from save to verdict, and of a cold pytest."""
    with tempfile.TemporaryDirectory() as folder:
        saves, colds = asyncio.run(measure(Desk(Path(folder))))
    return statistics.median(saves), statistics.median(colds)
