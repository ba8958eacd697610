"""`grader ask`: questions about one's own solved answer, in a terminal and for a tutor."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.student.progress import read_progress
from grader.student.tutor import Tutor
from tests.conftest import Grader, Ran
from tests.support.places import TINY

WEIGH = """
import torch
def weigh(scores):
    largest = scores.max(dim=-1, keepdim=True).values
    weights = torch.exp(scores - largest)
    return weights / weights.sum(dim=-1, keepdim=True)
"""


ANY = "a\n(1, 1)\n" * 3  # replies of which one is none is asked again


@pytest.fixture
def folder(tiny: Course, tmp_path: Path) -> Path:
    """A folder of exercises in which `weigh` is written."""
    exercises = tmp_path / "exercises"
    shutil.copytree(tiny.folder, exercises)
    shutil.copytree(TINY / "solutions", tmp_path / "solutions")
    shutil.copytree(tiny.folder, exercises / "recorded" / "stubs")
    (exercises / "basics.py").write_text(WEIGH, "utf-8")
    return exercises


Asked = Callable[..., Ran]


@pytest.fixture
def asked(folder: Path, grader: Grader, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Run `grader ask` with these replies: by default, one for each kind of question."""

    def ask(*arguments: str, replies: str = ANY) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(replies))
        return grader("ask", *arguments, "--course", folder)

    return ask


def test_only_a_solved_answer_is_asked_about(folder: Path, asked: Asked, grader: Grader) -> None:
    ran = asked("weigh")
    assert (ran.code, ran.out) == (2, "")
    assert "weigh is not solved yet; grader check weigh" in ran.err
    grader("check", "weigh", "--course", folder)
    assert asked("weigh").code == 0
    (folder / "basics.py").write_text(WEIGH.replace("-1", "0"), "utf-8")
    assert asked("weigh").code == 2


def test_three_questions_are_asked_answered_and_recorded(
    folder: Path, asked: Asked, grader: Grader
) -> None:
    grader("check", "weigh", "--course", folder)
    ran = asked()
    assert ran.code == 0
    for number in (1, 2, 3):
        assert f"Question {number} of 3" in ran.out
    assert ran.out.count("What was run: ") == 3
    right = len(re.findall(r"Right\.", ran.out))
    assert f"{right} of 3 right about weigh; this is practice" in ran.out
    kept = read_progress(folder).asked["weigh"]
    assert (kept.right, kept.of) == (right, 3)
    assert f"(questions: {right} of 3)" in grader("list", "--course", folder).out
    rows = json.loads(grader("list", "weigh", "--json", "--course", folder).out)
    assert rows[0]["questions_right"] == right


def test_the_right_replies_are_those_that_were_run(
    folder: Path, asked: Asked, grader: Grader
) -> None:
    grader("check", "weigh", "--course", folder)
    replies = re.findall(r"Right\.|No\. Right is: (?:(\w)\) )?(.*)", asked("weigh").out)
    typed = "".join(f"{letter or text or 'a'}\n" for letter, text in replies)
    assert "3 of 3 right about weigh" in asked("weigh", replies=typed).out
    assert read_progress(folder).asked["weigh"].right == 3
    asked("weigh")
    assert read_progress(folder).asked["weigh"].right == 3  # the best replies count


def test_a_slip_is_no_wrong_reply(folder: Path, asked: Asked, grader: Grader) -> None:
    """Nothing, a letter of no choice, or a letter in place of a shape: the question stays."""
    grader("check", "weigh", "--course", folder)
    once, slipped = asked("weigh"), asked("weigh", replies=ANY.replace("a\n", "\nz\na\n"))
    assert slipped.code == 0
    assert "Type a letter from a to " in slipped.out
    assert slipped.out.splitlines()[-2:] == once.out.splitlines()[-2:]


def test_replies_that_end_early_record_nothing(folder: Path, asked: Asked, grader: Grader) -> None:
    grader("check", "weigh", "--course", folder)
    ran = asked("weigh", replies="a\n")
    assert (ran.code, read_progress(folder).asked) == (2, {})
    assert "the replies ended before the last question; nothing is recorded" in ran.err


def test_a_course_may_ask_no_questions(folder: Path, asked: Asked, grader: Grader) -> None:
    grader("check", "weigh", "--course", folder)
    course = folder / "course.toml"
    course.write_text("questions = 0\n" + course.read_text("utf-8"), "utf-8")
    assert "this course asks no questions" in asked("weigh").err


def test_a_tutor_may_ask_but_learns_no_reply(folder: Path, grader: Grader) -> None:
    grader("check", "weigh", "--course", folder)
    from grader.course.course import load_course

    tools = Tutor(load_course(folder))
    try:
        said = tools.question("weigh")
    finally:
        tools.close()
    assert "?" in said
    assert "What was run" not in said
    assert read_progress(folder).asked == {}
