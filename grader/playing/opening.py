"""From a name to a game: the course's script, run with the student's own answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader import mine
from grader.course.course import Course, answers_in
from grader.playing.game import Game, game_of
from grader.records.faults import CallError
from grader.student.scripts import run_script
from grader.student.standing import standing_of

NOTHING = "there is nothing called {!r} to play; what there is: {}"
UNCHECKED = (
    "No check calls these right so far, so what you see may come from them: {}. "
    "Try: grader check {}"
)


@dataclass(frozen=True)
class Opened:
    """A game, and whose code it is made of."""

    name: str
    game: Game
    places: Mapping[str, str]  # where each of the student's answers is
    unchecked: tuple[str, ...]  # those that no check calls right


def open_game(course: Course, name: str) -> Opened:
    """The game of this name; raises `CallError` for what is not there, or not written."""
    plays = course.plays()
    if name not in plays:
        raise CallError(NOTHING.format(name, ", ".join(plays) or "nothing in this course"))
    path = plays[name]
    names = answers_in(path)
    places = mine.places_of(course, names)
    standing = standing_of(course)
    unchecked = tuple(one for one in names if not standing.is_solved(one))
    game = game_of(run_script(course, path, f"playing {name}"), path.name)
    return Opened(name, game, places, unchecked)
