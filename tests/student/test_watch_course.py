"""`grader watch` beside the current exercise: other answers, lines at work, what solving brings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.intake.own import own_folders
from grader.records.grade import ExerciseResult
from grader.student.progress import record_progress
from grader.student.reward import NO_TEXT
from grader.student.showing import Showing
from grader.student.watch import words
from grader.student.watch.lesson import Lesson
from grader.student.watch.threads import Checks, Shown, ShowWorker, Watching
from tests.support.watching import Desk, Fake, Reader, copied, fake, play, save, until

RIGHT = "print('the mean is', x.mean())\n    return x - x.mean()"
ENDLESS = "while True:\n        pass"
STUB = "raise NotImplementedError"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, in which somebody has worked before."""
    return copied(tmp_path, first_run=False)


@pytest.fixture
def reader(course: Course) -> Iterator[Reader]:
    """At lines of text, at the first exercise."""
    reader = Reader(course, fake(course), "center")
    yield reader
    reader.leaves()


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
        assert desk.lesson.name == "Projection"
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
    ("old", "new", "told"),
    [
        ("x: Float", "y: Float", ""),  # it is the current one
        ("Stubs of the", "My stubs of the", ""),  # no exercise at all
        ("def staircase(size: int)", "def staircase(size: int", "You changed staircase."),  # broken
        ("largest = scores", "# why?\n    largest = scores", "You changed weigh."),
        ("\n\ndef staircase", "\n\n# next\ndef staircase", ""),
    ],
)
def test_what_counts_is_the_text_of_each_definition(
    course: Course, old: str, new: str, told: str
) -> None:
    lesson = Lesson(course, "center")
    write(course, "basics", old, new)
    assert lesson.saved().partition(" j goes")[0] == told
    assert lesson.saved() == "", "it was told once"


def test_of_several_changed_ones_it_goes_to_the_first(course: Course) -> None:
    lesson = Lesson(course, "center")
    write(course, "layers", STUB, "pass")
    write(course, "basics", "largest = scores", "biggest = scores")
    assert lesson.saved() == "You changed weigh and Projection. j goes to weigh."
    assert lesson.jump() == ""
    assert lesson.name == "weigh"


def test_plain_tells_of_another_exercises_answer(course: Course, reader: Reader) -> None:
    reader.reads("Not solved yet: center")
    write(course, "layers", STUB, "self.linear = None")
    reader.reads("You changed Projection. j goes there.")
    reader.types("j")
    reader.reads("Exercise Projection: One linear map")


@pytest.mark.parametrize("poll", [False, True], ids=["events", "polling"])
@pytest.mark.parametrize("there", [True, False], ids=["there", "made-later"])
def test_saves_of_notebooks_beside_the_course_are_seen(
    course: Course, poll: bool, there: bool
) -> None:
    saves: list[int] = []
    if there:
        notebook(course, "old.ipynb", "pass")
    watching = Watching(own_folders(course), lambda: saves.append(1), poll=poll)
    watching.start()
    try:
        notebook(course, "new.ipynb", "pass")
        until(lambda: saves)
    finally:
        watching.close()


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


def test_an_endless_answer_holds_up_nothing_and_leaves_no_process(course: Course) -> None:
    write(course, "basics", STUB, ENDLESS)
    started: list[Showing] = []

    def start(name: str) -> Showing:
        started.append(Showing(course, name))
        return started[-1]

    heard: list[Shown] = []
    worker = ShowWorker(start, heard.append)
    worker.show("center")
    worker.show("center")  # instead of the first
    worker.close()
    until(lambda: all(run.ended for run in started))
    assert len(started) == 2
    assert heard == []


def test_the_screen_goes_on_while_an_endless_answer_runs(course: Course) -> None:
    write(course, "basics", STUB, ENDLESS)

    async def scenario(desk: Desk) -> None:
        await desk.press("s")
        await desk.sees("Running your lines of center")
        await desk.press("n")
        await desk.sees("Build a square of booleans")
        assert "Running" not in desk.text

    play(course, scenario, start="center")


def test_at_its_limit_an_endless_answer_is_ended_and_that_is_told(course: Course) -> None:
    write(course, "basics", STUB, ENDLESS)
    heard: list[Shown] = []
    worker = ShowWorker(lambda name: Showing(course, name, limit=0.1), heard.append)
    worker.show("center")
    until(lambda: heard)
    assert heard == [Shown("center", "it showed nothing in 0 s: does a loop never end?", True)]


def test_plain_shows_lines_at_work_too(course: Course, reader: Reader) -> None:
    write(course, "basics", STUB, RIGHT)
    reader.types("s")
    reader.reads("Running your lines of center")
    reader.reads("center: your lines at work, and what they printed")
    reader.reads("return x - x.mean()")
    reader.reads("the mean is tensor")


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
    save(course, "right")

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


def test_plain_tells_what_solving_brings(course: Course, reader: Reader) -> None:
    reader.reads("Not solved yet: center")
    save(course, "right")
    reader.reads("Solved: center")
    reader.reads("the whole course: 2 of 10 points")
    reader.reads("Why it works What remains sums to zero. It always does.")
    reader.reads("Another way")
    reader.reads("Try it Center it twice: the second time nothing changes.")


# --- the cold start ------------------------------------------------------------------------------


def test_until_the_first_verdict_it_says_what_is_going_on(course: Course) -> None:
    loaded, checked = threading.Event(), threading.Event()

    class Slow(Fake):
        def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
            checked.wait()
            return super().check(names)

    @contextmanager
    def opened() -> Iterator[Checks]:
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
