"""`grader watch`: save a file, read the verdict, and go on when it is solved."""

from __future__ import annotations

import asyncio
import importlib
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.sandbox.jails import Warm
from grader.student.checking import Checker, open_checker
from grader.student.progress import FILE, read_progress, record_progress
from grader.student.watch import run_watch, words
from grader.student.watch.editor import editor_for, line_of
from grader.student.watch.screen import WatchApp
from tests.conftest import assigned
from tests.support.places import TINY
from tests.support.watching import (
    Desk,
    Fake,
    OpenChecks,
    app_of,
    copied,
    fake,
    play,
    save,
    until,
    with_stubs,
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, with three hints for its first exercise; not its first run."""
    return copied(tmp_path, first_run=False)


# --- the screen ----------------------------------------------------------------------------------


@pytest.mark.parametrize("poll", [False, True], ids=["events", "polling"])
def test_a_save_brings_a_new_verdict(course: Course, poll: bool) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub", "Write your lines in basics.py")
        save(course, "wrong")
        await desk.sees("✗ center", "The mean is added", "What remains?", "differs")
        save(course, "right")
        await desk.sees("✓ center", "1 of 4 solved")

    play(course, scenario, poll=poll)


def test_what_is_solved_is_said_and_nothing_moves_on_by_itself(course: Course) -> None:
    save(course, "right")

    async def scenario(desk: Desk) -> None:
        await desk.sees("Solved! n goes on to staircase: One more in each row.")
        assert desk.current == "center"
        await desk.press("n")
        await desk.sees("Build a square of booleans", "· staircase")
        await desk.press("p")
        await desk.sees("Subtract the mean from each element", "✓ center")

    play(course, scenario, start="center")
    assert read_progress(course.folder).solved == {"center"}


def test_the_first_unsolved_exercise_comes_first(
    course: Course,
) -> None:
    shutil.copy(TINY / "solutions" / "basics.py", course.stub_file("basics"))
    record_progress(course.folder, solved=["center"])
    assert app_of(course, None, fake(course)).board.current == "staircase"
    with pytest.raises(CallError, match="did you mean center"):
        run_watch(course, plain=False, poll=False, start="centre")


def test_of_an_assignment_what_is_asked_is_counted_and_what_is_not_is_marked(
    course: Course,
) -> None:
    assignment = assigned(course.folder, "staircase", "weigh")
    for name in assignment.asked:
        save(assignment, "right", name)

    async def scenario(desk: Desk) -> None:
        await desk.sees("staircase (2 of 3 in basics.py", "✓ staircase")
        await desk.press("a")
        await desk.sees("2 of 2 asked pass now.", "all 2 asked exercises: well done!")
        await desk.press("p")
        await desk.sees("center (1 of 3 in basics.py, not asked)")
        await desk.press("l")
        await desk.sees("Subtract the mean  (not asked)")

    play(assignment, scenario, start="staircase")


def test_before_the_first_and_after_the_last_there_is_nothing(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.press("p")
        await desk.sees(words.FIRST)
        await desk.press("n", "n", "n", "n")
        await desk.sees("Projection", words.LAST)

    play(course, scenario)


def test_the_end_of_the_course_says_how_to_hand_in(course: Course) -> None:
    shutil.copy(TINY / "solutions" / "basics.py", course.stub_file("basics"))
    record_progress(course.folder, solved=["center", "staircase", "weigh"])
    save(course, "right", "Projection")

    async def scenario(desk: Desk) -> None:
        await desk.sees("all 4 exercises", "grader pack", "4 of 4 solved")

    play(course, scenario)


def test_the_last_exercise_leads_back_to_what_is_open(course: Course) -> None:
    save(course, "right", "Projection")

    async def scenario(desk: Desk) -> None:
        await desk.sees("Still to do: center")

    play(course, scenario, start="Projection")


def test_what_was_solved_before_and_fails_now_is_marked(course: Course) -> None:
    record_progress(course.folder, solved=["center"])
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center", "(it was solved before)")
        await desk.press("l")
        await desk.sees("> ✗ center", "solved before, fails now: Subtract the")

    play(course, scenario, start="center")
    assert read_progress(course.folder).solved == {"center"}


def test_each_press_gives_one_more_hint_and_is_recorded(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("· center")
        assert "Which mean?" not in desk.text
        for level, hint in enumerate(("Which mean?", "Which axis?", "x - x.mean()"), 1):
            await desk.press("h")
            await desk.sees(f"Hints: {level} of 3", f"{level}. {hint}")
            assert read_progress(course.folder).hints == {"center": level}
        await desk.press("h")
        await desk.sees("That was the last hint")
        await desk.press("n", "h")
        await desk.sees(words.NO_HINTS)

    play(course, scenario)
    assert read_progress(course.folder).hints == {"center": 3}


def test_the_list_is_filtered_by_typing_and_enter_goes_there(course: Course) -> None:
    save(course, "right")
    record_progress(course.folder, solved=["center"])

    async def scenario(desk: Desk) -> None:
        await desk.press("l")
        await desk.sees("✓ center", "> · staircase", "Projection", "layers: A module")
        await desk.press(*"softmax")
        await desk.sees("weigh")
        assert "layers: A module" not in desk.text
        await desk.press("enter")
        await desk.sees("Turn each row into weights")
        assert desk.current == "weigh"
        await desk.press("l", *"no such thing")
        await desk.sees("No exercise matches")
        await desk.press("enter", "escape")
        await desk.press("l", "down", "enter")
        await desk.sees("One linear map, with a bias only if asked for")

    play(course, scenario)


def test_a_reset_asks_first_and_is_undone(course: Course) -> None:
    with_stubs(course)
    path = course.stub_file("basics")
    path.write_text("def center(x):\n    return x - x.mean()\n# center: right\n", "utf-8")
    mine = path.read_text("utf-8")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✓ center")
        await desk.press("r")
        await desk.sees("Put the untouched stub of center back?")
        await desk.press("n")
        await desk.sees(words.LEFT)
        assert path.read_text("utf-8") == mine
        assert desk.current == "center", "n answered the question"
        await desk.press("r", "y")
        await desk.sees("center is a stub again", "u brings your lines back", "u undo")
        assert "raise NotImplementedError" in path.read_text("utf-8")
        await desk.press("u")
        await desk.sees("Your lines of center are back")
        assert path.read_text("utf-8") == mine

    play(course, scenario)


def test_where_nothing_can_be_reset_or_undone_it_says_so(course: Course) -> None:
    before = course.stub_file("basics").read_text("utf-8")

    async def scenario(desk: Desk) -> None:
        await desk.press("r", "y")
        await desk.sees("git checkout")
        await desk.press("u")
        await desk.sees(words.NOTHING_KEPT)

    play(course, scenario)
    assert course.stub_file("basics").read_text("utf-8") == before


def test_a_solution_is_shown_once_the_exercise_is_solved(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        assert "v view" not in desk.text
        await desk.press("v")
        await desk.sees("can be read once you have solved")
        save(course, "right")
        await desk.sees("✓ center", "v view")
        await desk.press("v")
        await desk.sees("A solution of center", "return x - x.mean()")
        assert "tril" not in desk.text, "another exercise's solution"
        await desk.press("escape")
        await desk.sees("Subtract the mean")

    play(course, scenario)


def test_a_course_without_solutions_has_no_such_key(course: Course) -> None:
    shutil.rmtree(course.solutions)
    save(course, "right")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✓ center")
        assert "v view" not in desk.text
        await desk.press("v")
        await desk.sees(words.NO_SOLUTIONS)

    play(course, scenario)


def test_all_are_checked_and_what_broke_is_named(course: Course) -> None:
    record_progress(course.folder, solved=["weigh"])
    for name, found in (("center", "right"), ("weigh", "wrong"), ("Projection", "call")):
        save(course, found, name)

    async def scenario(desk: Desk) -> None:
        await desk.sees("· staircase")
        await desk.press("a")
        await desk.sees("1 of 4 pass now", "1 could not be checked", "failing now: weigh")

    play(course, scenario, start="staircase")
    assert read_progress(course.folder).solved == {"center", "weigh"}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("fault", "The grader itself failed, which is not your fault: the moon is full"),
        ("call", "there is no .py file"),
        ("bug", "The grader itself failed, which is not your fault: ZeroDivisionError"),
    ],
)
def test_faults_are_told_and_the_next_save_tries_again(
    course: Course, found: str, told: str
) -> None:
    save(course, found)

    async def scenario(desk: Desk) -> None:
        await desk.sees(told)
        save(course, "right")
        await desk.sees("✓ center")

    play(course, scenario)


def test_a_checker_that_does_not_open_is_told_and_tried_again(course: Course) -> None:
    tries = []

    @contextmanager
    def opened() -> Iterator[Checker]:
        tries.append(1)
        if len(tries) == 1:
            raise CallError("a test file cannot be collected")
        yield Fake(course)

    async def scenario(desk: Desk) -> None:
        await desk.sees("a test file cannot be collected")
        save(course, "right")
        await desk.sees("✓ center")

    play(course, scenario, checker=opened)


def test_what_students_and_their_code_say_is_never_markup(course: Course) -> None:
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.sees("[bold]loud[/bold]")

    play(course, scenario)


def test_a_newcomer_is_greeted_in_five_lines(tmp_path: Path) -> None:
    course = copied(tmp_path, first_run=True)
    assert len(words.WELCOME) == 5

    async def scenario(desk: Desk) -> None:
        await desk.sees("Welcome to A tiny course", *words.WELCOME)
        await desk.press("enter")
        await desk.sees("Subtract the mean from each element", "· center")
        assert "Welcome" not in desk.text
        await desk.press("question_mark")
        await desk.sees(*(key.sentence for key in words.KEYS))

    play(course, scenario)


def test_a_student_who_was_here_before_is_not_greeted(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("· center")
        assert "Welcome" not in desk.text

    play(course, scenario)


@pytest.mark.parametrize("pane", ["1", "2"])
def test_keys_and_verdict_are_seen_at_80_by_24(course: Course, pane: str) -> None:
    record_progress(course.folder, solved=["center"], hints={"center": 3})
    save(course, "wrong")
    long = "\n".join(f"A long statement, line {n}.\n" for n in range(60))
    path = course.stub_file("basics")
    path.write_text(path.read_text("utf-8").replace("Subtract the mean", long), "utf-8")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center", "line 5.")
        await desk.resize(80, 24)
        await desk.press(pane, "h")
        await desk.press(pane)
        await desk.sees("✗ center", "The mean is added", "That was the last hint")
        assert len(desk.text.splitlines()) <= 24
        last = "\n".join(desk.text.splitlines()[-2:])
        off = "pjru"  # the first exercise, in a clone, and no other one saved
        shown = [f"{key.key} {key.word}" for key in words.KEYS if key.key not in off]
        assert [key for key in shown if key not in last] == []
        await desk.resize(40, 24)
        assert [key for key in shown if key not in desk.text] == []

    play(course, scenario, start="center", size=(120, 50))


def test_a_screen_that_is_far_too_small_breaks_nothing(course: Course) -> None:
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.press("h", "l", "escape", "2")
        await desk.resize(80, 24)
        await desk.sees("✗ center")

    play(course, scenario, size=(12, 4))


def test_a_long_statement_scrolls(course: Course) -> None:
    path = course.stub_file("basics")
    long = "\n".join(f"A long statement, line {n}.\n" for n in range(60))
    path.write_text(path.read_text("utf-8").replace("Subtract the mean", long), "utf-8")

    async def scenario(desk: Desk) -> None:
        await desk.sees("· center", "line 1.")
        await desk.press("end")
        await desk.sees("line 59.")
        await desk.press("home")
        await desk.sees("line 1.")

    play(course, scenario)


def test_without_colour_nothing_is_lost(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    record_progress(course.folder, solved=["center", "staircase"])
    save(course, "wrong")
    save(course, "right", "staircase")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center", "(it was solved before)", "█", "1 of 4 solved")
        colours = set(re.findall(r"fill(?:: |=\")(#\w{6})", desk.svg.partition("<circle")[0]))
        colours |= set(re.findall(r'<rect fill="(#\w{6})" x', desk.svg))
        colours -= {"#c5c8c6"}  # of the picture's frame
        assert colours
        assert {c for c in colours if len({c[1:3], c[3:5], c[5:7]}) > 1} == set()

    play(course, scenario, start="center")


def test_the_statement_stays_when_the_students_file_does_not_parse(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("Subtract the mean from each element")
        course.stub_file("basics").write_text("def center(x:\n# center: wrong\n", "utf-8")
        await desk.sees("✗ center", "Subtract the mean from each element")

    play(course, scenario)


def test_progress_that_cannot_be_written_costs_a_line_and_no_verdict(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("· center")
        (course.folder / FILE).unlink()
        (course.folder / FILE).mkdir()
        await desk.press("h")
        await desk.sees("progress is not recorded", "Which mean?")
        save(course, "right")
        await desk.sees("✓ center", "1 of 4 solved", "progress is not recorded")

    play(course, scenario)


def test_q_quits(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("· center")
        await desk.press("q")
        assert desk.app.return_code == 0

    play(course, scenario)


# --- the editor ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "command", "in_terminal"),
    [
        ("vim", ("vim", "+7", "a.py"), True),
        ("nano -l", ("nano", "-l", "+7", "a.py"), True),
        ("/usr/bin/emacs", ("/usr/bin/emacs", "+7", "a.py"), True),
        ("code --wait", ("code", "--wait", "-g", "a.py:7"), False),
        ("unheard-of", ("unheard-of", "a.py"), True),
    ],
)
def test_an_editor_is_called_at_the_line(
    value: str, command: tuple[str, ...], in_terminal: bool
) -> None:
    for environ in ({"EDITOR": value}, {"VISUAL": value, "EDITOR": "other"}):
        editor = editor_for(environ, Path("a.py"), 7)
        assert (editor.command, editor.in_terminal) == (command, in_terminal)


def test_the_line_of_an_exercise_is_found_in_any_text(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = (\n\ndef centered():\n\ndef center(x:\n", "utf-8")
    assert [line_of(path, name) for name in ("center", "nowhere")] == [5, 1]


def test_o_opens_the_file_in_the_editor(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    script = tmp_path / "code"  # an editor with a window of its own
    script.write_text(f'#!/bin/sh\necho "$@" > {told}.new && mv {told}.new {told}\n', "utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))

    async def scenario(desk: Desk) -> None:
        await desk.press("o")
        await desk.sees("basics.py opens in your editor, at line 13")
        await asyncio.to_thread(until, told.exists)

    play(course, scenario)
    assert told.read_text("utf-8") == f"-g {course.stub_file('basics')}:13\n"


def test_without_an_editor_it_says_what_to_set(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    async def scenario(desk: Desk) -> None:
        await desk.press("o")
        await desk.sees("Set VISUAL or EDITOR")
        monkeypatch.setenv("EDITOR", "code/is-not-here/code")
        await desk.press("o")
        await desk.sees("cannot be started")
        monkeypatch.setenv("EDITOR", "vim")
        await desk.press("o")  # this test has no terminal to lend
        await desk.sees("Open the file yourself", "basics.py, line 13")

    play(course, scenario)


# --- the order of checks -------------------------------------------------------------------------


def test_the_newest_check_goes_first_and_a_result_that_is_out_of_date_is_dropped(
    course: Course,
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)
    asked: list[str] = []

    class Slow(Fake):
        def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
            results = super().check(names)
            asked.extend(names)
            begun.release()
            go_on.acquire()
            return results

    @contextmanager
    def opened() -> Iterator[Checker]:
        yield Slow(course)

    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        try:
            await asyncio.to_thread(begun.acquire)  # center
            await desk.press("a", "n", "n")
            go_on.release(2)
            for _ in range(2):
                await asyncio.to_thread(begun.acquire)
            assert asked == ["center", "center", "weigh"], "staircase gave way, and the rest waits"
            before = desk.app.board._next_check
            save(course, "right", "weigh")  # while it is being checked
            await asyncio.to_thread(until, lambda: desk.app.board._next_check is not before)
            go_on.release(9)
            await desk.sees("✓ weigh")
            await desk.sees("1 of 4 pass now.")
            await desk.press("p", "p")
            await desk.sees("✗ center")
        finally:
            go_on.release(99)

    play(course, scenario, start="center", checker=opened)


def test_a_screen_that_is_left_waits_for_its_check_no_longer_than_its_patience(
    course: Course,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @contextmanager
    def opened() -> Iterator[Checker]:
        begun.set()
        go_on.wait()
        yield Fake(course)

    async def leave(app: WatchApp) -> None:
        async with app.run_test():
            await asyncio.to_thread(begun.wait)

    app = app_of(course, "center", opened)
    asyncio.run(leave(app))
    assert not app.close(0.01)
    go_on.set()


def test_without_a_terminal_it_says_what_to_use(course: Course) -> None:
    with pytest.raises(CallError, match="--plain"):  # pytest holds our input and output
        run_watch(course, plain=False, poll=False, start=None)


# --- the real checker ----------------------------------------------------------------------------


@pytest.fixture
def real(warm: Warm, one_warm_process: None, course: Course) -> OpenChecks:
    """The real checker of the course; torch is loaded before the clock of any wait runs."""
    assert warm.ready
    importlib.import_module("grader.grading.desk")
    return lambda: open_checker(course)


def test_from_a_save_to_a_real_verdict(course: Course, real: OpenChecks) -> None:
    path = course.stub_file("basics")
    stub = path.read_text("utf-8")
    body = "raise NotImplementedError\n\n\ndef staircase"

    async def scenario(desk: Desk) -> None:
        await desk.sees("· center", "still the stub")
        path.write_text(stub.replace(body, "return x + x.mean()\n\n\ndef staircase"), "utf-8")
        await desk.sees("✗ center", "The mean is added", "differs")
        path.write_text("def center(x:\n", "utf-8")
        await desk.sees("✗ center", "is not valid Python")
        path.write_text(stub.replace(body, "return x - x.mean()\n\n\ndef staircase"), "utf-8")
        await desk.sees("✓ center", "n goes on to staircase", "checks passed")

    play(course, scenario, checker=real)
