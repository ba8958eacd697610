"""Which of a student's submissions counts: the last, the last in time, or the best."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from grader.grades.gradebook import Gradebook, open_gradebook
from grader.intake import Submission
from grader.records.decisions import Decision
from grader.records.lateness import Counts, Policy
from grader.records.rows import Row
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.archives import zipped
from tests.support.places import TINY

DUE = datetime(2026, 12, 1, 22, 59, tzinfo=UTC)


def submit(book: Gradebook, hours: float, *points: float, name: str = "ada") -> None:
    """Record a submission so many hours after the due time, and its grade."""
    when = DUE + timedelta(hours=hours)
    text = SourceText("a.py", (f"answer at {hours}",))
    submitted = f"{when:%Y-%m-%dT%H:%M:%SZ}"
    grade = msgspec.structs.replace(grade_of(name, *points), submitted=submitted)
    book.record(grade, Submission(name, (text,), submitted=when), f"key of {hours}")


def of_ada(book: Gradebook) -> Row:
    """Ada's row."""
    (row,) = book.rows()
    return row


@pytest.mark.parametrize(
    ("counts", "total", "hours"),
    [("last", 1.6, 30), ("last in time", 2, -1), ("best", 2.7, 10)],
)
def test_the_rule_chooses_among_three_submissions(
    tmp_path: Path, counts: Counts, total: float, hours: int
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises, book.policy = EXERCISES, Policy(DUE, "us", "10% a day", counts=counts)
        submit(book, -1, 1, 1)
        submit(book, 10, 2, 1)  # a day: 3 - 0.3
        submit(book, 30, 1, 1)  # two days: 2 - 0.4
        row = of_ada(book)
        assert row.grade is not None
        assert (row.total, row.grade.submitted) == (
            total,
            f"{DUE + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}",
        )
        assert row.versions == (1 if counts == "last" else 3)


def test_an_extension_may_change_which_counts_and_taking_it_back_changes_it_back(
    tmp_path: Path,
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        policy = Policy(DUE, "us", "10% a day", counts="last in time")
        book.exercises, book.policy = EXERCISES, policy
        submit(book, -1, 1, 1)
        submit(book, 10, 2, 1)
        assert of_ada(book).total == 2
        later = f"{DUE + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
        book.decide([Decision("ada", "extension", until=later)])
        assert of_ada(book).total == 3
        book.decide([Decision("ada", "extension", removed=True)])
        assert of_ada(book).total == 2


def test_the_order_in_which_submissions_are_graded_does_not_matter(tmp_path: Path) -> None:
    tables = []
    for number, order in enumerate(((-1, 10, 30), (30, -1, 10), (10, 30, -1))):
        with open_gradebook(tmp_path / str(number), "tiny") as book:
            book.exercises, book.policy = EXERCISES, Policy(DUE, "us", "10% a day", counts="best")
            for hours in order:
                submit(book, hours, 2 if hours == 10 else 1, 1)
            tables.append((of_ada(book).total, of_ada(book).versions))
    assert tables == [(2.7, 3)] * 3


def test_a_regrading_compares_with_the_submission_that_counted(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises, book.policy = EXERCISES, Policy(DUE, "us", "10% a day", counts="best")
        submit(book, -1, 2, 1)
        submit(book, 30, 1, 1)
        before = of_ada(book).total
        run = book.put_aside()
        assert [row.total for row in book.rows(run)] == [before]


def test_who_is_forgotten_leaves_no_earlier_submission(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises, book.policy = EXERCISES, Policy(DUE, "us", "10% a day", counts="best")
        submit(book, -1, 2, 1)
        submit(book, 30, 1, 1)
        assert book.count_submissions() == 2
        book.forget("ada")
        assert (book.count_submissions(), book.rows()) == (0, [])
    assert b"answer at" not in (tmp_path / "grades.db").read_bytes()


# --- through the commands ------------------------------------------------------------------------

RIGHT = "def center(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"
WRONG = "def center(x):\n    return x\n"


def export_of(folder: Path, number: int, text: str, created: str) -> Path:
    """A download from Gradescope with one submission."""
    path = folder / f"assignment_{number}_export.zip"
    about = (
        "submission_7:\n  :submitters:\n  - :name: Jane Doe\n    :sid: '1'\n"
        f"  :created_at: {created}\n"
    )
    files = {"x/submission_metadata.yml": about, "x/submission_7/basics.py": text}
    path.write_bytes(zipped(files))
    return path


def private_course(folder: Path, counts: str) -> Path:
    """A course over the tiny one, in which an assignment has this rule."""
    folder.mkdir()
    (folder / "course.toml").write_text(
        f'overlay = "{TINY / "exercises"}"\n[[assignment]]\nname = "ps1"\nexercises = ["center"]\n'
        f'due = 2026-12-01T12:00:00Z\nlate_by = "us"\nlate = "25% a day"\ncounts = "{counts}"\n',
        "utf-8",
    )
    return folder


def page_in(out: Path) -> str:
    """The only feedback page."""
    (page,) = (out / "feedback").iterdir()
    return page.read_text("utf-8")


@pytest.mark.parametrize("together", [True, False], ids=["in one call", "one after the other"])
def test_two_downloads_are_kept_and_the_best_submission_counts(
    grader: Grader, tmp_path: Path, together: bool
) -> None:
    course = private_course(tmp_path / "course", "best")
    first = export_of(tmp_path, 1, WRONG, "2026-12-01 10:00:00 Z")
    second = export_of(tmp_path, 2, RIGHT, "2026-12-01 14:00:00 Z")
    third = export_of(tmp_path, 3, RIGHT + "# again\n", "2026-12-03 14:00:00 Z")
    out = tmp_path / "grades"
    rest = ("--assignment", "ps1", "--out", out, "--course", course, "--seed", "s", "--quiet")
    calls = [[first, second, third]] if together else [[first], [second], [third], [third]]
    for paths in calls:
        assert grader("grade", *paths, *rest).code == 0
    table = (out / "gradebook.csv").read_bytes()
    (line,) = csv.DictReader(io.StringIO(table.decode()))
    assert (line["total"], line["penalty"], line["submitted"]) == (
        "1.5", "-0.5", "2026-12-01T14:00:00Z",
    )  # fmt: skip
    page = page_in(out)
    assert "of 3 submissions, the one with the most points counts" in page
    assert grader("grade", *calls[-1], *rest).code == 0
    assert (out / "gradebook.csv").read_bytes() == table
    ran = grader("grade", "--again", "--out", out, "--course", course, "--seed", "s")
    assert "no grade changed" in ran.out
    assert (out / "gradebook.csv").read_bytes() == table


def test_the_last_submission_counts_unless_the_assignment_says_otherwise(
    grader: Grader, tmp_path: Path
) -> None:
    course = private_course(tmp_path / "course", "last")
    paths = [
        export_of(tmp_path, 1, RIGHT, "2026-12-01 10:00:00 Z"),
        export_of(tmp_path, 2, WRONG, "2026-12-01 14:00:00 Z"),
    ]
    out = tmp_path / "grades"
    rest = ("--assignment", "ps1", "--out", out, "--course", course, "--seed", "s", "--quiet")
    assert grader("grade", *paths, *rest).code == 0
    (line,) = csv.DictReader(io.StringIO((out / "gradebook.csv").read_text("utf-8")))
    assert (line["submitted"], line["total"]) == ("2026-12-01T14:00:00Z", "0")
    assert "the last of 2 submissions" in page_in(out)


def total_in(out: Path) -> str:
    """The only student's total."""
    (line,) = csv.DictReader(io.StringIO((out / "gradebook.csv").read_text("utf-8")))
    return line["total"]


@pytest.mark.parametrize("counts", ["best", "last in time"])
@pytest.mark.parametrize("first", [None, "2026-12-01 10:00"])
def test_a_time_that_an_instructor_corrects_makes_no_other_submission(
    grader: Grader, tmp_path: Path, counts: str, first: str | None
) -> None:
    course, table = tmp_path / "course", tmp_path / "times.csv"
    course.mkdir()
    (course / "course.toml").write_text(
        f'overlay = "{TINY / "exercises"}"\nzone = "Europe/Berlin"\n[[assignment]]\nname = "ps"\n'
        'exercises = ["center"]\ndue = 2026-12-01T12:00:00\nlate_by = "us"\nlate = "25% a day"\n'
        f'counts = "{counts}"\n',
        "utf-8",
    )
    (tmp_path / "ada.py").write_text(RIGHT, "utf-8")
    call = (
        "grade",
        tmp_path / "ada.py",
        "--course",
        course,
        "--assignment",
        "ps",
        "--no-pages",
        "--seed",
        "s",
        "--out",
    )
    if first:
        table.write_text(f"student,time\nada,{first}\n", "utf-8")
    grader(*call, tmp_path / "g", *(("--times", table) if first else ()))
    table.write_text("student,time\nada,2026-12-02 10:00\n", "utf-8")
    for out in ("g", "fresh"):
        grader(*call, tmp_path / out, "--times", table)
    assert total_in(tmp_path / "g") == total_in(tmp_path / "fresh") == "1.5"
