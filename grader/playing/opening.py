"""Opens a game by its name: runs the course's script with the student's own answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader import mine
from grader.course.course import Course, answers_in
from grader.playing.game import Game, game_of
from grader.records.faults import CallError
from grader.student.scripts import run_script
from grader.student.standing import standing_of

UNKNOWN = "there is no game called {!r} to play; choose from: {}"
UNCHECKED = (
    "These answers have not passed their checks so far, so they may be the reason for odd results: "
    "{}. Try: grader check {}"
)


@dataclass(frozen=True)
class Opened:
    """A game, and the student's answers that its model is made of."""

    name: str
    game: Game
    places: Mapping[str, str]  # the file and line of each answer
    unchecked: tuple[str, ...]  # answers that have not passed their checks


def open_game(course: Course, name: str) -> Opened:
    """The game of this name; raises `CallError` if the game or an answer is missing."""
    plays = course.plays()
    if name not in plays:
        raise CallError(UNKNOWN.format(name, ", ".join(plays) or "none in this course"))
    path = plays[name]
    names = answers_in(path)
    places = mine.places_of(course, names)
    standing = standing_of(course)
    unchecked = tuple(one for one in names if not standing.is_solved(one))
    game = game_of(run_script(course, path, f"playing {name}"), path.name)
    return Opened(name, game, places, unchecked)
