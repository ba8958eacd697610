"""`grader viva`: an oral exam on what a student submitted."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli.app import app
from grader.course.course import Course
from grader.grades.gradebook import existing_gradebook
from grader.grading.order import Order
from grader.intake import Arrivals, Submission
from grader.records.rows import Person
from grader.run.batch import grade_into
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.conftest import Grader, Ran, sharing
from tests.support.gradebooks import HOSTILE
from tests.support.places import TINY

WEIGH = '''
import torch


def weigh(scores):
    # Ada Lovelace wrote this </pre><img src=x onerror=alert(1)>
    """</pre><script>alert("Ada")</script>"""
    largest = scores.max(dim=-1, keepdim=True).values  # by Ada Lovelace
    weights = torch.exp(scores - largest)  # by Ada Lovelace
    return weights / weights.sum(dim=-1, keepdim=True)  # by Ada Lovelace <b>
'''
PEOPLE = {
    "ada": Person("s1", "Ada Lovelace"),
    "bob": Person("s2", "Bob Byron"),
    "cleo": Person("s3", "Cleo"),
    "zoe": Person("s4", "Zoë Absent"),
}


@pytest.fixture(scope="module")
def examined(
    warm: Warm, tiny: Course, right: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Pages on ada's hostile text, on one text by bob and another, and on cleo's wrong answer."""
    folder = tmp_path_factory.mktemp("class") / "grades"
    texts = {"ada": WEIGH, "bob": right, "cleo": "def weigh(scores):\n    return scores\n"}
    submissions = [
        Submission(name, (SourceText(f"{name}_lovelace.py", (text,)),))
        for name, text in {**texts, HOSTILE: right}.items()
    ]
    only = ("weigh", "Projection")
    order = Order(tiny, tiny.hidden_seed(), tiny.tests_of(only), only)
    with sharing(warm):
        grade_into(folder, order, Arrivals(tuple(submissions)), jobs=1)
        with existing_gradebook(folder, tiny.name) as book:
            book.set_people(PEOPLE)
        call = ["viva", str(folder), "--all", "--count", "3", "--jobs", "1", "--course", str(TINY)]
        ran = CliRunner().invoke(app, call)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[1:] == [
        "nothing to ask about: cleo",
        "no page: 1 student without a graded submission",
    ]
    return folder


Viva = Callable[..., Ran]


@pytest.fixture
def book(examined: Path, tmp_path: Path) -> Path:
    """A copy of the gradebook with its pages."""
    return shutil.copytree(examined, tmp_path / "grades")


@pytest.fixture
def viva(grader: Grader, book: Path) -> Viva:
    """Run the command on the copy."""

    def run(*options: str | Path) -> Ran:
        return grader("viva", book, *options, "--jobs", "1", "--course", TINY)

    return run


def text_of(page: Path) -> str:
    """The words of a page, without tags."""
    body = page.read_text("utf-8").partition("<body")[2].partition("<script>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def sheet(folder: Path) -> list[dict[str, str]]:
    """The lines of the sheet for marks."""
    with (folder / "marks.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_student_is_asked_about_their_own_lines_the_same_each_time(
    viva: Viva, book: Path
) -> None:
    page = book / "viva" / "ada.html"
    before, told = page.read_bytes(), text_of(page)
    assert told.count("☐ right") == 3
    assert "10 return weights / weights.sum(dim=-1, keepdim=True)" in told
    assert "Not asked, because they are not solved: Projection ." in told
    assert b"<script>alert" not in before
    assert b"<img" not in before
    page.unlink()
    ran = viva("ada", "--count", "3")
    assert (ran.code, ran.out) == (0, f"1 page in {book / 'viva'}\n")
    assert page.read_bytes() == before


def test_workers_of_a_cluster_find_the_same_questions(grader: Grader, book: Path) -> None:
    pytest.importorskip("distributed", reason="many machines need the extra [cluster]")
    page = book / "viva" / "ada.html"
    before = page.read_bytes()
    page.unlink()
    options = ("ada", "--count", "3", "--course", TINY, "--isolation", "weak")
    ran = grader("viva", book, *options, "--cluster", "local:1")
    assert (ran.code, ran.out) == (0, f"1 page in {book / 'viva'}\n"), ran.err
    assert page.read_bytes() == before
    ran = grader("viva", book, *options, "--cluster", "local:1", "--jobs", "2")
    assert (ran.code, "--cluster excludes --jobs" in ran.err) == (2, True)


def test_each_student_gets_a_page_and_the_same_text_gets_other_questions(book: Path) -> None:
    lines = {line["name"] or "twin": line for line in sheet(book / "viva")}
    ada, bob, cleo, twin = (lines[name] for name in ("Ada Lovelace", "Bob Byron", "Cleo", "twin"))
    assert (ada["student"], ada["exercise"], ada["points"]) == ("ada", "total", "")
    assert (ada["alike"], bob["alike"], twin["alike"]) == ("", twin["student"], "bob")
    pages = [text_of(book / "viva" / line["page"]) for line in (bob, twin, cleo)]
    assert [page.count("☐ right") for page in pages] == [3, 3, 0]
    assert "there is nothing to ask about" in pages[2]
    asked = [re.findall(r"\d\. .*?The reply", page) for page in pages[:2]]
    assert asked[0] != asked[1]


def test_marks_come_back_and_are_not_replaced(viva: Viva, grader: Grader, book: Path) -> None:
    path = book / "viva" / "marks.csv"
    written = path.read_text("utf-8")
    marked = written.replace("bob,Bob Byron,total,,,", "bob,Bob Byron,total,1.5,clear replies,x")
    path.write_text(marked, "utf-8")
    ran = grader("adjust", book, "--from", path, "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert ": total 7 → 8.5\n" in ran.out
    assert "corrected by +1.5: clear replies" in ran.out
    ran = viva("--all")
    assert (ran.code, "this sheet has marks or remarks" in ran.err) == (2, True)
    assert path.read_text("utf-8") == marked


def test_a_sheet_without_a_mark_says_nothing(grader: Grader, book: Path) -> None:
    ran = grader("adjust", book, "--from", book / "viva" / "marks.csv", "--course", TINY)
    assert (ran.code, "marks.csv has no points: there is nothing to write" in ran.err) == (2, True)


def test_a_mark_sets_the_points_of_a_question_named_viva(
    viva: Viva, grader: Grader, book: Path, tmp_path: Path
) -> None:
    with existing_gradebook(book, "tiny") as opened:
        opened.questions = {"viva": 6.0}
    assert viva("--all", "--only", "weigh", "--count", "1").code == 0
    path = book / "viva" / "marks.csv"
    path.write_text(path.read_text("utf-8").replace("Lovelace,viva,,", "Lovelace,viva,0,silence"))
    course = tmp_path / "course"
    course.mkdir()
    own = f'overlay = "{TINY / "exercises"}"\n[[manual]]\nname = "viva"\npoints = 6\n'
    (course / "course.toml").write_text(own, "utf-8")
    ran = grader("adjust", book, "--from", path, "--course", course)
    assert (ran.code, ran.err) == (0, "")
    with existing_gradebook(book, "tiny") as opened:
        unmarked = {row.student: row.unmarked for row in opened.rows()}
    assert (unmarked["ada"], unmarked["bob"]) == ([], ["viva"])


def test_a_forgotten_student_is_in_no_file_and_marks_of_others_stay(
    grader: Grader, book: Path
) -> None:
    path = book / "viva" / "marks.csv"
    path.write_text(path.read_text("utf-8").replace("cleo,Cleo,total,", "cleo,Cleo,total,-0.5"))
    ran = grader("forget", book, "bob", "--yes", "--course", TINY)
    assert (ran.code, "viva/bob.html" in ran.out) == (0, True)
    assert not (book / "viva" / "bob.html").exists()
    lines = sheet(book / "viva")
    assert [line["points"] for line in lines if line["student"] == "cleo"] == ["-0.5"]
    assert [line["alike"] for line in lines] == ["", "", ""]
    for file in book.rglob("*.*"):
        assert b"Byron" not in file.read_bytes()


def test_nameless_pages_have_no_names_and_no_comments(viva: Viva, book: Path) -> None:
    assert viva("--all", "--only", "weigh", "--count", "1", "--anonymous").code == 0
    folder = book / "viva-anonymous"
    assert len([*folder.glob("student-*.html")]) == 4
    for path in folder.iterdir():
        for name in ("lovelace", "byron", "bob", "s1", "onerror"):
            assert name not in path.read_text("utf-8").lower().partition("<body")[2]
            assert name not in path.name


def test_no_hidden_test_is_loaded_and_the_hidden_seed_is_not_needed(
    grader: Grader, book: Path, tmp_path: Path
) -> None:
    course = shutil.copytree(TINY, tmp_path / "course")
    for test in (course / "solutions" / "graders").glob("*.py"):
        test.write_text("raise SystemExit('a hidden test was loaded')\n", "utf-8")
    (course / "solutions" / "seed").unlink()
    page = book / "viva" / "bob.html"
    before = page.read_bytes()
    ran = grader("viva", book, "bob", "--count", "3", "--jobs", "1", "--course", course)
    assert (ran.code, ran.err, page.read_bytes()) == (0, "", before)
    assert "(2, 4)" in text_of(page)  # the size of an input of a public check
    assert "(3, 5)" not in text_of(page)  # that of hidden ones


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "name a student; or --all"),
        (("ada", "--all"), "name a student; or --all"),
        (("zoe",), "zoe has no submission: there is nothing to ask about"),
        (("--all", "--part", "weight"), "did you mean weigh?"),
        (("ada", "--only", "nothing"), "there is no exercise called 'nothing'"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(viva: Viva, options: tuple[str, ...], told: str) -> None:
    ran = viva(*options)
    assert (ran.code, told in ran.err, ran.err.count("\n")) == (2, True, 1)
