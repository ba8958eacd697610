"""`grader watch` beside the current exercise: other answers, lines at work, what solving brings."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from grader.course.course import Course
from grader.intake.own import own_folders
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.student.checking import Checker
from grader.student.lesson import Lesson
from grader.student.progress import record_progress
from grader.student.reward import NO_TEXT
from grader.student.shapes import shapes
from grader.student.watch import words
from tests.support.watching import Desk, Fake, copied, play, save, until

RIGHT = "print('the mean is', x.mean())\n    return x - x.mean()"
ENDLESS = "while True:\n        pass"
STUB = "raise NotImplementedError"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, in which somebody has worked before."""
    return copied(tmp_path, first_run=False)


def write(course: Course, unit: str, old: str, new: str) -> None:
    """Change a unit's file, as an editor saves it."""
    path = course.stub_file(unit)
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def notebook(course: Course, name: str, code: str) -> None:
    """Save a notebook in the folder beside the course."""
    _, folder = own_folders(course)
    folder.mkdir(exist_ok=True)
    cell = {"cell_type": "code", "source": code, "metadata": {}, "outputs": []}
    (folder / name).write_text(json.dumps({"nbformat": 4, "cells": [cell]}), "utf-8")


# --- another exercise's answer -------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_saving_another_exercises_answer_says_so_and_j_goes_there(
    course: Course, size: tuple[int, int]
) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        assert "j jump" not in desk.text
        write(course, "layers", STUB, "self.linear = None")
        await desk.sees("You changed Projection. j goes there.", "j jump")
        await desk.press("j")
        await desk.sees("One linear map, with a bias only if asked for")
        assert desk.current == "Projection"
        await desk.press("j")
        await desk.sees(words.NOTHING_ELSEWHERE)

    play(course, scenario, start="center", size=size)


def test_it_is_told_for_an_exercise_in_the_same_file_too(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        write(course, "basics", "largest = scores", "biggest = scores")
        await desk.sees("You changed weigh. j goes there.")

    play(course, scenario, start="center")


def test_an_answer_in_a_notebook_beside_the_course_counts_as_one(course: Course) -> None:
    notebook(course, "work.ipynb", "pass")

    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        notebook(course, "work.ipynb", "def staircase(size):\n    return size\n")
        await desk.sees("You changed staircase. j goes there.")

    play(course, scenario, start="center")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("x: Float", "y: Float", ["center"]),
        ("Stubs of the", "My stubs of the", []),
        ("def staircase(size: int)", "def staircase(size: int", ["staircase"]),  # broken
        ("largest = scores", "# why?\n    largest = scores", ["weigh"]),
        ("\n\ndef staircase", "\n\n# next\ndef staircase", []),
    ],
)
def test_an_exercise_has_changed_if_the_text_of_its_definition_has(
    course: Course, old: str, new: str, changed: list[str]
) -> None:
    lesson = Lesson(course)
    write(course, "basics", old, new)
    assert lesson.saved() == changed
    assert lesson.saved() == []


def test_of_several_changed_ones_j_goes_to_the_first(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        notebook(
            course, "work.ipynb", "def weigh(scores):\n    pass\ndef Projection(a, b):\n    pass"
        )
        await desk.sees("You changed weigh and Projection. j goes to weigh.")
        await desk.press("j")
        assert desk.current == "weigh"

    play(course, scenario, start="center")


@pytest.mark.parametrize("poll", [False, True], ids=["events", "polling"])
def test_saves_of_notebooks_in_a_folder_that_is_made_later_are_seen(
    course: Course, poll: bool
) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        notebook(course, "new.ipynb", "def staircase(size):\n    return size\n")
        await desk.sees("You changed staircase.")

    play(course, scenario, start="center", poll=poll)


# --- lines at work -------------------------------------------------------------------------------


def test_s_shows_the_lines_of_a_right_answer_with_shapes_and_prints(course: Course) -> None:
    write(course, "basics", STUB, RIGHT)

    async def scenario(desk: Desk) -> None:
        await desk.press("s")
        await desk.sees("Running your lines of center")
        await desk.sees("center: your lines at work", "return x - x.mean()", "float32")
        assert len(desk.colours("float32")) == 1
        await desk.press("end")
        await desk.sees("your code printed:", "the mean is tensor")
        await desk.press("s")
        await desk.sees("Subtract the mean from each element")

    play(course, scenario, start="center", size=(120, 40))


def arguments_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_the_screen_goes_on_while_an_endless_answer_runs_and_ends_its_process(
    course: Course,
) -> None:
    write(course, "basics", STUB, ENDLESS)

    def running() -> list[psutil.Process]:
        # A child of an earlier test may have ended, and shows no command line.
        return [one for one in psutil.Process().children() if "--show" in arguments_of(one)]

    async def scenario(desk: Desk) -> None:
        await desk.press("s")
        await desk.sees("Running your lines of center")
        await asyncio.to_thread(until, running)
        await desk.press("n")
        await desk.sees("Build a square of booleans")
        assert "Running" not in desk.text
        await asyncio.to_thread(until, lambda: not running())
        await desk.press("p", "s")
        await asyncio.to_thread(until, running)

    play(course, scenario, start="center")
    until(lambda: not running())


def test_at_its_limit_an_endless_answer_is_ended_and_that_is_told(course: Course) -> None:
    write(course, "basics", STUB, ENDLESS)
    with pytest.raises(CallError, match=r"nothing was shown in 0 s: does a loop never end\?"):
        asyncio.run(shapes(course, "center", limit=0.1))


# --- what solving brings -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_a_solved_exercise_brings_progress_and_something_to_read(
    course: Course, size: tuple[int, int]
) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        save(course, "right")
        await desk.sees(
            "Solved! n goes on to staircase",
            "basics: 1 of 3 exercises, 2 of 6 points; the whole course: 2 of 10 points",
            "Why it works",
            "What remains sums to zero. It always does.",
        )
        await desk.press("end")
        await desk.sees("Try it", "Center it twice")
        save(course, "wrong")
        await desk.sees("✗ center")
        assert "Why it works" not in desk.text
        save(course, "right")
        await desk.sees("Why it works", "It always does.")

    play(course, scenario, start="center", size=size)


def test_an_exercise_without_a_text_brings_progress_alone(course: Course) -> None:
    save(course, "right", "staircase")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✓ staircase", "basics: 1 of 3 exercises, 1 of 6 points")
        assert "Why it works" not in desk.text

    play(course, scenario, start="staircase")


def test_a_unit_that_is_complete_says_how_to_see_it_at_work(course: Course) -> None:
    record_progress(course.folder, solved=["staircase", "weigh"])
    for name in ("center", "staircase", "weigh"):
        save(course, "right", name)

    async def scenario(desk: Desk) -> None:
        await desk.sees("✓ center")
        await desk.press("2", "end")
        await desk.sees("This unit is complete. To see it at work: grader look basics")

    play(course, scenario, start="center")


def test_a_text_that_cannot_be_read_costs_no_verdict(course: Course) -> None:
    course.afterwards_file("basics").write_text("[center]\nwhy = 1\n", "utf-8")
    save(course, "right")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✓ center", "2 of 6 points", NO_TEXT)

    play(course, scenario, start="center")


# --- the cold start ------------------------------------------------------------------------------


def test_until_the_first_verdict_it_says_what_is_going_on(course: Course) -> None:
    loaded, checked = threading.Event(), threading.Event()

    class Slow(Fake):
        def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
            checked.wait()
            return super().check(names)

    @contextmanager
    def opened() -> Iterator[Checker]:
        loaded.wait()
        yield Slow(course)

    async def scenario(desk: Desk) -> None:
        try:
            await desk.sees("Loading torch and the checks.", "So far: 1 s.")
            loaded.set()
            await desk.sees(words.FIRST_CHECK)
            checked.set()
            await desk.sees("still the stub")
        finally:
            loaded.set()
            checked.set()

    play(course, scenario, checker=opened)
