"""What the README says of the course is what the course says of itself."""

from __future__ import annotations

import pytest

from tests.readme import README, exercises_table, up_to_date


def test_the_tables_in_the_readme_are_those_of_today() -> None:
    text = README.read_text("utf-8")
    assert up_to_date(text) == text, "run `python -m tests.readme`"


def test_every_exercise_stands_in_the_table_of_its_unit() -> None:
    rows = exercises_table().splitlines()
    (row,) = (row for row in rows if "`causal_mask`" in row)
    assert row.startswith("| 5 `causal_attention`: No peeking | 10 |")


def test_a_table_without_its_place_is_noticed() -> None:
    with pytest.raises(ValueError, match="no place for attacks"):
        up_to_date("# a README without comments\n")
