"""Pictures of `grader play addition`: ``python -m tests.tools.play_screenshots``.

They go to ``docs/pictures/playing.svg``, ``attention.svg`` and ``addition.png``. The model is
trained first, in half a minute, from one of the two sets of answers of the tests.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page
from rich.console import Console, Group, RenderableType
from rich.text import Text

from grader.course.course import load_course
from grader.playing import screen
from grader.playing.curve import BLOCKS
from grader.playing.learning import Choices
from grader.playing.session import Session
from tests.support.browser import chromium

ROOT = Path(__file__).parents[2]
TO = Path(__file__).parents[2] / "docs" / "pictures"
ANSWERS = ROOT / "tests" / "support" / "gpts" / "modules.py"
HALF_WAY = 200  # steps: half of the sums are right
WIDTH = 80


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        exercises = Path(folder, "exercises")
        shutil.copytree(ROOT / "exercises", exercises)
        shutil.copyfile(ANSWERS, exercises / "gpt.py")
        session = Session(
            load_course(exercises), "addition", Choices(), Path(folder, "addition.html")
        )
        learning = session.learning
        with session.at_work():
            for _ in learning.steps():
                if learning.step == HALF_WAY:
                    _save("playing", screen.drawn(learning, BLOCKS))
            told, drawn = io.StringIO(), io.StringIO()
            with redirect_stdout(drawn):
                heads = screen.conclude(learning, Console(file=told, width=WIDTH), "addition")
        _save("attention", [Text(told.getvalue().strip()), Text(drawn.getvalue())])
        session.write(heads)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 900, "height": 1200})
            page.goto(session.out.as_uri())
            _take(page, TO / "addition.png")


def _save(name: str, shown: Iterable[RenderableType]) -> None:
    """The terminal's output as SVG, the same on every run."""
    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor"
    )
    console.print(Group(*shown))
    console.save_svg(str(TO / f"{name}.svg"), title="grader play addition", unique_id=name)


def _take(page: Page, path: Path) -> None:
    """Save the window as a picture with a palette of 256 colours."""
    page.screenshot(path=path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(
            method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
