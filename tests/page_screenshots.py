"""Pictures of both pages, of a class that never was: ``python -m tests.page_screenshots [DIR]``.

They go to ``tests/screenshots/feedback.png`` and ``report.png``. The class is graded for that,
which takes some minutes; its gradebook is kept in DIR, and taken from there where it is.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from grader.batch import grade_into
from grader.course import Course, load_course
from grader.gradebook import existing_gradebook
from grader.intake import Arrivals, Submission
from grader.jail.wire import SourceText
from grader.mistakes import Kind, Library, load_library, text_of_definition
from grader.report import write_pages
from grader.rows import Adjustment, Person
from grader.workers import Order, default_jobs
from tests.browser import chromium

ROOT = Path(__file__).parents[1]
TO = Path(__file__).parent / "screenshots"
UNITS = ("softmax", "simple_attention", "causal_attention", "multi_head_attention")
NAMES = (
    "Amara Okafor", "Anna Lindqvist", "Bruno Ferreira", "Chiara Conti", "Daniel Weiss", "Elif Kaya",
    "Emma Dubois", "Farid Haddad", "Grace Mwangi", "Hana Suzuki", "Ivan Petrov", "Jana Nováková",
    "Jorge Ramírez", "Katarzyna Wójcik", "Lars Nielsen", "Leila Rahimi", "Liam Byrne",
    "Lucía Ortega", "Mateo Silva", "Mei Chen", "Minh Nguyen", "Nadia Benali", "Noah Fischer",
    "Olga Ivanova", "Priya Nair", "Quentin Marchand", "Rosa Martínez", "Sofia Rossi",
    "Tomasz Zieliński", "Yusuf Demir",
)  # fmt: skip
ABSENT, EMPTY, LATE, CORRECTED = "qmarchand", "fhaddad", "ekaya", "cconti"
ALIKE = ("mnguyen", "tzielinski")  # one of them has the other's answers, with other names in them
WIDTH, HEIGHT = 1280, 1800


def main(kept: Path | None = None) -> None:
    """Take both pictures."""
    course = load_course(ROOT / "exercises")
    with tempfile.TemporaryDirectory() as folder:
        out = kept or Path(folder, "grades")
        if not out.exists():
            _grade_class(course, out)
        with existing_gradebook(out, course.name) as book:
            write_pages(book, course)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto((out / "report.html").as_uri())
            _take(page, "report")
            page.goto((out / "feedback" / f"{CORRECTED}.html").as_uri())
            _take(page, "feedback")


def _take(page: Page, name: str) -> None:
    """Save what the window shows, in as many colours as a palette has."""
    path = TO / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(
            method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)


# --- the class -----------------------------------------------------------------------------------


def _grade_class(course: Course, out: Path) -> None:
    """Grade the class, and correct one of its grades."""
    order = Order(course, "a class", course.test_files(), course.select(UNITS))
    people = {_login(name): Person(name=name) for name in NAMES}
    submissions = tuple(_submissions(course, [login for login in people if login != ABSENT]))
    grade_into(out, order, Arrivals(submissions, people), default_jobs(len(submissions)))
    with existing_gradebook(out, course.name) as book:
        reason = "the statement left room for another reading on Monday"
        book.adjust(CORRECTED, Adjustment("softmax_naive", 0.5, reason))


def _login(name: str) -> str:
    """``jnovakova`` for Jana Nováková."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    first, _, last = plain.partition(" ")
    return first[0] + last


def _submissions(course: Course, logins: Sequence[str]) -> Iterator[Submission]:
    library = load_library(course)
    names = course.select(UNITS)
    for seed, login in enumerate(logins):
        answers = _answers(library, names, seed if login != ALIKE[1] else logins.index(ALIKE[0]))
        if login == ALIKE[1]:
            answers = {unit: re.sub(r"\bscores\b", "s", text) for unit, text in answers.items()}
        sources = tuple(SourceText(f"{unit}.py", (text,)) for unit, text in answers.items())
        yield Submission(login, () if login == EMPTY else sources, late=login == LATE)


def _answers(library: Library, names: Sequence[str], seed: int) -> dict[str, str]:
    """Each exercise right in some form, with a mistake, or left out, as skill has it."""
    dice = random.Random(seed)
    skill = dice.betavariate(3, 1.5)
    texts = {unit: library.sources[unit] for unit in UNITS}
    for place, name in enumerate(names):
        unit, effort = library.unit_of[name], 1.3 - 0.6 * place / len(names)
        kind: Kind = "mistake" if dice.random() > skill else "accepted"
        forms = library.of(name, kind)[:4]
        if dice.random() > skill * effort + 0.25:
            texts[unit] = texts[unit].replace(text_of_definition(texts[unit], name), "")
        elif forms:
            texts[unit] += f"\n\n{dice.choice(forms).definition}\n"
    return texts


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
