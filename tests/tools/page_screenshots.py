"""Pictures of both pages, of a made-up class: ``python -m tests.tools.page_screenshots [DIR]``.

They go to ``docs/pictures/feedback.png`` and ``report.png``. Grading the class takes some
minutes. DIR keeps its gradebook; if there is one, the class is not graded again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from grader.author.practice import write_class
from grader.course.course import Course, load_course
from grader.grades.gradebook import existing_gradebook
from grader.grading.order import Order
from grader.intake import read_roster, take_in
from grader.lms import DOWNLOADS
from grader.records.rows import Adjustment
from grader.report import write_pages
from grader.run.batch import grade_into
from grader.run.workers import default_jobs
from tests.support.browser import chromium
from tests.support.gradebooks import correct

ROOT = Path(__file__).parents[2]
TO = Path(__file__).parents[2] / "docs" / "pictures"
UNITS = ("softmax", "simple_attention", "causal_attention", "multi_head_attention")
STUDENTS = 30
REASON = "the statement left room for another reading on Monday"
CORRECTED = ("contichiara", Adjustment("softmax_naive", 0.5, REASON))
WIDTH, HEIGHT = 1280, 1800


def main(kept: Path | None = None) -> None:
    """Take both pictures."""
    course = load_course(ROOT / "exercises")
    with tempfile.TemporaryDirectory() as folder:
        out = kept or Path(folder, "grades")
        if not out.exists():
            _grade_class(course, out, Path(folder, "class"))
        with existing_gradebook(out, course.name) as book:
            write_pages(book, course)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto((out / "report.html").as_uri())
            _take(page, "report")
            page.goto((out / "feedback" / f"{CORRECTED[0]}.html").as_uri())
            _take(page, "feedback")


def _take(page: Page, name: str) -> None:
    """Save the window as a picture with a palette of 256 colours."""
    path = TO / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(
            method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)


# --- the class -----------------------------------------------------------------------------------


def _grade_class(course: Course, out: Path, folder: Path) -> None:
    """Grade the class, and correct one of its grades."""
    write_class(folder, course, STUDENTS)
    roster = read_roster(folder / "roster.csv")
    arrivals = take_in([folder / "submissions.zip"], course, roster, DOWNLOADS)
    order = Order(course, "a class", course.tests_of(), course.select(UNITS))
    grade_into(out, order, arrivals, default_jobs(STUDENTS), roster=roster)
    with existing_gradebook(out, course.name) as book:
        correct(book, *CORRECTED)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
