"""Lists of a class as an instructor reads them: the table of grades, and a dry run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader import terminal
from grader.course import Course
from grader.gradebook import open_gradebook
from tests.gradebooks import write_class


def table(place: Path, course: Course, width: int) -> list[list[str]]:
    """The words of each line of the table, printed as wide as this."""
    write_class(place)
    page = io.StringIO()
    with open_gradebook(place, course.name) as book:
        Console(file=page, width=width).print(terminal.gradebook_table(course, book.rows()))
    return [line.split() for line in page.getvalue().splitlines()]


def test_a_name_stands_beside_the_key_of_who_is_absent_too(tmp_path: Path, tiny: Course) -> None:
    lines = table(tmp_path, tiny, 80)
    assert ["zoe", "Zoë", "Absent", "absent", "-", "-"] in lines
    assert ["ada", "Ada", "Lovelace", "graded", "4", "4"] in lines


@pytest.mark.parametrize("width", [26, 30, 80])
def test_a_name_gives_way_in_the_table_and_a_number_never_does(
    tmp_path: Path, tiny: Course, width: int
) -> None:
    lines = table(tmp_path, tiny, width)
    (bob,) = (words for words in lines if words[:1] == ["bob"])
    assert bob[-3:] == ["graded", "2.8", "2.8"]
