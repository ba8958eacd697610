"""Every idea of the five notebooks has a place in the course, and the place is there.

A place is an exercise, or begins with a command: "try NAME" is an experiment, "look UNIT" shows a
solved unit, "after NAME: words" is a text that has these words.
"""

from __future__ import annotations

import tomllib

import pytest

from grader.course.afterwards import afterwards
from grader.course.course import load_course
from tests.support.places import REAL

COURSE = load_course(REAL)
IDEAS = tomllib.loads((REAL / "ideas.toml").read_text("utf-8"))
SHOWN = (REAL / "README.md").read_text("utf-8")


def exists(place: str) -> bool:
    before, _, words = place.partition(": ")
    command, _, name = before.rpartition(" ")
    if command == "try":
        return any(name in names for names in COURSE.experiments.values())
    if command == "look":
        return COURSE.look_file(name).is_file()
    if name not in COURSE.exercises or not command:
        return name in COURSE.exercises
    found = afterwards(COURSE, name)
    text = " ".join(paragraph for _, paragraph in found.sections) if found else ""
    return command == "after" and bool(words) and words in text


@pytest.mark.parametrize("notebook", ["000", "001", "002", "003", "004"])
def test_every_idea_has_a_place_that_is_there(notebook: str) -> None:
    (ideas,) = (ideas for title, ideas in IDEAS.items() if title.startswith(notebook))
    assert ideas
    for idea, places in ideas.items():
        assert places, f"{idea} has no place"
        assert [place for place in places if not exists(place)] == [], idea
        assert f"| {idea} |" in SHOWN, f"exercises/README.md does not have {idea}"


@pytest.mark.parametrize(
    "place",
    [
        "causal_masks",
        "try nosuch",
        "look nosuch",
        "after nosuch: words",
        "after causal_mask",  # which words?
        "after causal_mask: words that it does not have",
        "hint causal_mask",
    ],
)
def test_a_place_that_is_not_there_is_noticed(place: str) -> None:
    assert not exists(place)
