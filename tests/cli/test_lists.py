"""Lists of a class as an instructor reads them: the table of grades, and a dry run."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from grader.cli import tables
from grader.course.course import Course
from grader.feedback import terminal
from grader.grades.gradebook import open_gradebook
from tests.conftest import Grader
from tests.support.gradebooks import write_class
from tests.support.places import TINY


def table(place: Path, course: Course, width: int) -> list[list[str]]:
    """The words of each line of the table, printed as wide as this."""
    write_class(place)
    page = io.StringIO()
    with open_gradebook(place, course.name) as book:
        table = tables.gradebook_table(course, book.rows(), width)
        Console(file=page, width=width).print(table)
    return [line.split() for line in page.getvalue().splitlines()]


def test_a_name_stands_beside_the_key_of_who_is_absent_too(tmp_path: Path, tiny: Course) -> None:
    lines = table(tmp_path, tiny, 80)
    assert ["zoe", "Zoë", "Absent", "absent", "-", "-"] in lines
    assert ["ada", "Ada", "Lovelace", "graded", "4", "4"] in lines


@pytest.mark.parametrize("width", [36, 80])
def test_a_name_gives_way_in_the_table_and_a_number_never_does(
    tmp_path: Path, tiny: Course, width: int
) -> None:
    lines = table(tmp_path, tiny, width)
    (bob,) = (words for words in lines if words[:1] == ["bob"])
    assert bob[-3:] == ["graded", "2.8", "2.8"]


def test_where_names_would_vanish_points_per_unit_give_way(tmp_path: Path, tiny: Course) -> None:
    lines = table(tmp_path, tiny, 30)
    (ada,) = (words for words in lines if words[:2] == ["ada", "Ada"])
    assert ada[2:] == ["Lovel…", "graded", "4"]
    assert "gradebook.csv" in {word for words in lines for word in words}


# --- a dry run -----------------------------------------------------------------------------------

ROSTER = (
    "id,First name,Last name,email,section\ns1,Jane,Doe,j@x.edu,A\ns2,Bob,Roe,,A\ns3,Cleo,Poe,,B"
)


@pytest.fixture
def listed(cold_grader: Grader, tmp_path: Path) -> Callable[..., list[str]]:
    """The lines of a dry run on a download from Canvas, with a roster."""

    def run(files: Sequence[str], roster: str = ROSTER) -> list[str]:
        (tmp_path / "roster.csv").write_text(roster, "utf-8")
        (tmp_path / "canvas").mkdir()
        for name in files:
            (tmp_path / "canvas" / name).write_text("x = 1\n", "utf-8")
        ran = cold_grader(
            "grade",
            tmp_path / "canvas",
            "--dry-run",
            "--roster",
            tmp_path / "roster.csv",
            "--course",
            TINY,
        )
        assert (ran.code, ran.err) == (0, "")
        assert not (tmp_path / "out").exists()
        lines: list[str] = ran.out.splitlines()
        return lines

    return run


def test_a_dry_run_has_a_line_for_each_student_then_the_problems_then_the_sum(
    listed: Callable[..., list[str]], tmp_path: Path
) -> None:
    lines = listed(
        [
            "doejane_LATE_1_10_basics-1.py",
            "doejane_LATE_1_11_layers.py",
            "doejane_LATE_1_12_a.py",
            "doejane_LATE_1_13_hw.rar",
            "roebob_2_14_hw.py",
        ]
    )
    assert lines == [
        "doejane Jane Doe (late, 2 times): 3 files: a.py, basics.py and 1 more",
        "roebob Bob Roe: 1 file: hw.py",
        "s3 Cleo Poe: absent",
        "doejane Jane Doe: hw.rar: an archive of a kind that is not read: make it a .zip, or "
        "unpack it into a folder",
        "the roster: id from id, first name from First name, last name from Last name, "
        "e-mail from email; kept as they are: section",
        f"{tmp_path / 'canvas'}: a download from Canvas: 2 submissions, 1 late, 1 resubmitted",
        "1 on the roster without a submission: s3 Cleo Poe",
    ]


def test_a_dry_run_says_how_the_roster_of_github_classroom_was_read(
    listed: Callable[..., list[str]], tmp_path: Path
) -> None:
    roster = (
        '"identifier","github_username","github_id","name"\n"Jane Doe","janehub","1",""\n'
        '"Jane Doe","janehub","1",""\n"Bob Roe","roebob","2",""\n"","","3",""\n'
    )
    path = tmp_path / "roster.csv"
    assert listed(["doejane_1_10_hw.py", "roebob_2_14_hw.py"], roster) == [
        "doejane Jane Doe: 1 file: hw.py",
        "roebob Bob Roe: 1 file: hw.py",
        "the roster: identifier from identifier, name from name, login from github_username; kept "
        "as they are: identifier, github_username, github_id",
        f"{tmp_path / 'canvas'}: a download from Canvas: 2 submissions",
        f"{path}:3: Jane Doe is in line 2 already; the lines are the same, so they count as one "
        "student",
        f"{path}:5: left out, since it has no id, name or e-mail",
    ]


def test_a_dry_run_names_the_members_of_a_group(
    listed: Callable[..., list[str]], tmp_path: Path
) -> None:
    lines = listed(["red_2_14_hw.py"], "id,name,team\ns1,Jane,red\ns2,Bob,red")
    assert lines[0] == "red (s1 Jane, s2 Bob): 1 file: hw.py"


# --- what programs read --------------------------------------------------------------------------


@pytest.mark.parametrize("terminal_there", [True, False])
def test_only_a_terminal_wraps_a_line(terminal_there: bool) -> None:
    page = io.StringIO()
    console = Console(file=page, width=30, force_terminal=terminal_there, color_system=None)
    words = " ".join(["attention"] * 9)
    terminal.indented(console, Text(f"{words}\n\nis all"), 2)
    lines = page.getvalue().splitlines()
    assert (lines == [f"  {words}", "", "  is all"]) is not terminal_there
    assert terminal_there is (max(map(len, lines)) <= 30)
