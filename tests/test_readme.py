"""What READMEs and docs say of course, tests and engine is what those say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.readme import PARTS, README, exercises_table, up_to_date


@pytest.mark.parametrize("path", PARTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_tables_in_a_readme_are_those_of_today(path: Path) -> None:
    text = path.read_text("utf-8")
    assert up_to_date(path, text) == text, "run `python -m tests.tools.readme`"


def test_every_exercise_stands_in_the_table_of_its_unit() -> None:
    rows = exercises_table().splitlines()
    (row,) = (row for row in rows if "`causal_mask`" in row)
    assert row.startswith("| 5 `causal_attention`: No peeking | 10 |")


def test_a_table_without_its_place_is_noticed() -> None:
    with pytest.raises(ValueError, match="no place for proved"):
        up_to_date(README, "# a README without comments\n")
