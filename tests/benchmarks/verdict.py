"""From save to verdict on the watch screen, beside a cold ``pytest`` of the same checks.

Both in one run, in turn, so that a busy machine slows both: ``make bench``. The screen is the real
one, without a terminal; the file is saved as editors do, and the clock stops when the verdict is
drawn. The pytest file holds the same checks in their plainest form: no kit, no wall.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

from grader.course import load_course
from grader.watch.screen import WatchApp
from grader.watch.state import Lesson
from tests.bundles import ROOT, recordings

ROUNDS, EVERY = 30, 4  # saves; and a cold pytest after every second right one
EXERCISE = "causal_mask"
RIGHT = "return torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(diagonal=1)"
WRONG = RIGHT.replace("diagonal=1", "diagonal=0")
PLAIN = """
import pytest, torch
from causal_attention import causal_mask

def test_it_is_a_square_of_booleans():
    mask = causal_mask(5)
    assert mask.dtype == torch.bool and mask.shape == (5, 5)

def test_of_three_tokens():
    expected = [[False, True, True], [False, False, True], [False, False, False]]
    assert torch.equal(causal_mask(3), torch.tensor(expected))

@pytest.mark.parametrize("tokens", [5, 1, 8])
def test_of_other_numbers_of_tokens(tokens):
    expected = torch.tensor([[k > q for k in range(tokens)] for q in range(tokens)])
    assert torch.equal(causal_mask(tokens), expected)
"""


class Desk:
    """A student's folder, and the file that is saved again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "exercises"
        course = load_course(ROOT / "exercises")
        shutil.copytree(course.folder, self.folder)
        shutil.copytree(recordings(course), self.folder / "recorded")
        self._file = self.folder / "causal_attention.py"
        self._stub = self._file.read_text("utf-8")
        self._draft = folder / "draft.py"
        (self.folder / "test_plain.py").write_text(PLAIN, "utf-8")

    def save(self, body: str) -> None:
        """Save the exercise with this body: a new file takes the old one's place."""
        before, after = self._stub.split(f"def {EXERCISE}(", 1)
        after = after.replace("raise NotImplementedError", body, 1)
        self._draft.write_text(f"{before}def {EXERCISE}({after}", "utf-8")
        self._draft.replace(self._file)

    def seconds_of_pytest(self) -> float:
        """A new Python, torch, pytest, and the checks."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:grader", "test_plain.py"]
        started = time.perf_counter()
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        return time.perf_counter() - started


async def verdict(pilot: Pilot[None], lesson: Lesson, solved: bool) -> None:
    """Wait until this verdict is drawn."""
    while lesson.result is None or lesson.result.solved is not solved:
        await asyncio.sleep(0.001)
    await pilot.pause()


async def measure(desk: Desk) -> tuple[list[float], list[float]]:
    """Seconds from save to verdict, and of a cold pytest."""
    lesson = Lesson(load_course(desk.folder), EXERCISE)
    app = WatchApp(lesson)
    saves, colds = [], []
    async with app.run_test(size=(80, 24)) as pilot:
        for right in (
            False,
            True,
        ):  # not timed: torch is loaded
            desk.save(RIGHT if right else WRONG)
            await verdict(pilot, lesson, right)
        for number in range(ROUNDS):
            right = number % 2 == 1
            started = time.perf_counter()
            desk.save(RIGHT if right else WRONG)
            await verdict(pilot, lesson, right)
            saves.append(time.perf_counter() - started)
            if number % EVERY == 1:
                colds.append(desk.seconds_of_pytest())
    app.close()
    return saves, colds


def main() -> None:
    """Print the medians, and how they compare."""
    with tempfile.TemporaryDirectory() as folder:
        saves, colds = asyncio.run(measure(Desk(Path(folder))))
    warm, cold = statistics.median(saves), statistics.median(colds)
    print(
        f"save to verdict: {warm * 1000:.0f} ms (median of {len(saves)}, "
        f"{min(saves) * 1000:.0f} to {max(saves) * 1000:.0f}); cold pytest of the same checks: "
        f"{cold:.1f} s (median of {len(colds)}): {cold / warm:.0f} times as long"
    )


if __name__ == "__main__":
    main()
