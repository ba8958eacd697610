"""Pictures of `grader watch` on the real course: ``python -m tests.tools.screenshots``.

They go to ``docs/pictures/*.svg``, and are the same on every run.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from grader.course.course import Course, load_course
from grader.student.checking import Checks, open_checker
from grader.student.lesson import Lesson
from grader.student.progress import record_progress
from grader.student.watch.screen import WatchApp

ROOT = Path(__file__).parents[2]
TO = Path(__file__).parents[2] / "docs" / "pictures"
NAME = "causal_mask"
STUB = "raise NotImplementedError"
WRONG = "return torch.ones(num_tokens, num_tokens).triu().bool()"
RIGHT = "return torch.ones(num_tokens, num_tokens).triu(1).bool()"
SIZE = (80, 30)


def main() -> None:
    """Take all pictures."""
    TO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        course = _copied(Path(folder))
        asyncio.run(_first_run(course))
        units = [unit.name for unit in course.units]
        for unit in units[: units.index(course.unit_of[NAME])]:
            shutil.copy(course.reference_file(unit), course.stub_file(unit))
            record_progress(course.folder, solved=course.asked_in(unit))
        asyncio.run(_at_work(course))


def _copied(to: Path) -> Course:
    shutil.copytree(
        ROOT / "exercises", to / "exercises", ignore=shutil.ignore_patterns("progress.txt", ".*")
    )
    (to / "solutions").symlink_to(ROOT / "solutions")
    return load_course(to / "exercises")


def _app(course: Course, name: str, *, first_run: bool = False) -> WatchApp:
    checks = Checks(course, lambda: open_checker(course))
    return WatchApp(Lesson(course), name, checks, first_run=first_run, clock=lambda: "12:00:00")


async def _first_run(course: Course) -> None:
    app = _app(course, next(iter(course.exercises)), first_run=True)
    try:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            _take(app, "first-run")
    finally:
        app.close()


async def _at_work(course: Course) -> None:
    path = course.stub_file(course.unit_of[NAME])
    stub = path.read_text("utf-8")
    path.write_text(stub.replace(STUB, WRONG, 1), "utf-8")
    app = _app(course, NAME)
    verdicts = app.board.lesson.verdicts
    try:
        async with app.run_test(size=SIZE) as pilot:
            await _until(pilot, lambda: NAME in verdicts)
            _take(app, "failing")
            await pilot.press("t")
            await pilot.pause()
            _take(app, "failing-light")
            await pilot.press("t", "s")
            await _until(pilot, lambda: len(app.screen_stack) > 1)
            _take(app, "shapes")
            await pilot.press("escape")
            await pilot.press("h", "h")
            await pilot.pause()
            _take(app, "hint")
            await pilot.press("l", *"softmax")
            await pilot.pause()
            _take(app, "list")
            await pilot.press("escape")
            path.write_text(stub.replace(STUB, RIGHT, 1), "utf-8")
            await _until(pilot, lambda: verdicts[NAME].solved)
            _take(app, "solved")
    finally:
        app.close()


async def _until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    while not condition():
        await pilot.pause(0.05)
    await pilot.pause()


def _take(app: WatchApp, name: str) -> None:
    """Save the screen as SVG, without fonts from the network."""
    svg = re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(title="grader"), flags=re.DOTALL)
    lines = (line.rstrip() for line in svg.splitlines())
    (TO / f"{name}.svg").write_text("\n".join(line for line in lines if line) + "\n", "utf-8")


if __name__ == "__main__":
    main()
