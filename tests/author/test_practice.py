"""A class to practise on is read like a real one, and is the same each time."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Grader
from tests.support.places import TINY


def made(grader: Grader, to: Path, students: int) -> dict[str, bytes]:
    ran = grader("new", "class", to, "--students", students, "--course", TINY)
    assert ran.code == 0, ran.err
    return {path.name: path.read_bytes() for path in to.iterdir()}


def test_a_made_up_class_is_taken_in_with_its_roster(grader: Grader, tmp_path: Path) -> None:
    made(grader, tmp_path / "class", 40)
    ran = grader(
        "grade",
        tmp_path / "class" / "submissions.zip",
        "--dry-run",
        "--course",
        TINY,
        "--roster",
        tmp_path / "class" / "roster.csv",
    )
    assert ran.code == 0
    assert "a download from Canvas: 3" in ran.out + ran.err
    assert "Amara Okafor" in ran.out
    assert "on the roster without a submission" in ran.out + ran.err


def test_the_same_call_gives_the_same_class_and_a_smaller_one_its_beginning(
    grader: Grader, tmp_path: Path
) -> None:
    first, again = (made(grader, tmp_path / name, 12) for name in ("first", "again"))
    smaller = made(grader, tmp_path / "smaller", 5)
    assert first == again
    for table in ("roster.csv", "canvas.csv"):
        assert first[table].startswith(smaller[table])


def test_a_folder_that_holds_something_stays_as_it_is(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    ran = grader("new", "class", tmp_path, "--course", TINY)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "not an empty folder" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
