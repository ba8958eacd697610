"""A private course over a public one: another seed, more tests and mistakes, own assignments."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import pytest

from grader.course.collection import collect
from grader.course.course import Course, load_course
from grader.mistakes import load_library
from grader.records.faults import CallError
from tests.conftest import Grader
from tests.support.places import TINY

TRICKY = '''
from grader.testing import assert_that, rung


@rung.value("center", points=4)
def test_center_is_seven(student, make):
    """What nobody would expect."""
    assert_that(student.center(make.normal(tokens=3)).mean().item() == 7, "it is not seven")
'''


@pytest.fixture
def private(cold_grader: Grader, tmp_path: Path) -> Path:
    """What `grader new course --overlay` makes."""
    assert cold_grader("new", "course", tmp_path / "mine", "--overlay", "--course", TINY).code == 0
    return tmp_path / "mine"


def totals(out: Path) -> dict[str, str]:
    with (out / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return {row["student"]: row["total"] for row in csv.DictReader(file)}


def test_a_new_course_has_a_seed_that_nobody_else_knows(
    private: Path, cold_grader: Grader, tmp_path: Path
) -> None:
    course = load_course(private)
    assert course.hidden_seed() != load_course(TINY / "exercises").hidden_seed()
    assert len(course.hidden_seed()) >= 32
    assert cold_grader("new", "course", tmp_path / "other", "--overlay", "--course", TINY).code == 0
    assert load_course(tmp_path / "other").hidden_seed() != course.hidden_seed()
    assert private.stat().st_mode & 0o077 == 0


def test_a_new_course_grades_as_the_one_below_it(
    private: Path, grader: Grader, right: str, tmp_path: Path
) -> None:
    (tmp_path / "ada.py").write_text(right, "utf-8")
    ran = grader("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--course", private)
    assert ran.code == 0, ran.err
    assert totals(tmp_path / "out") == {"ada": "10"}


def hidden_tests(course: Course) -> dict[str, tuple[str, float]]:
    """The title and the points of each hidden test."""
    tests = collect(course.grader_files(), True, course)
    return {test.name: (test.title, test.weight) for test in tests}


@pytest.mark.parametrize("file", ["test_basics.py", "test_more.py"])
def test_private_tests_add_to_those_below_and_replace_those_of_their_name(
    private: Path, file: str
) -> None:
    public = hidden_tests(load_course(TINY / "exercises"))
    replaced = next(name for name in public if name.startswith("test_center"))
    again = TRICKY.partition("@rung")
    same_name = "".join(again[1:]).replace("test_center_is_seven", replaced)
    (private / "solutions" / "graders" / file).write_text(f"{TRICKY}\n\n{same_name}", "utf-8")
    mine = ("What nobody would expect", 4)
    assert hidden_tests(load_course(private)) == public | {
        replaced: mine,
        "test_center_is_seven": mine,
    }


def test_a_private_test_does_not_replace_a_test_of_another_exercise(private: Path) -> None:
    text = TRICKY.replace("test_center_is_seven", "test_weigh_agrees")
    path = private / "solutions" / "graders" / "test_more.py"
    public = hidden_tests(load_course(TINY / "exercises"))
    name = next(name for name in public if name.startswith("test_weigh"))
    path.write_text(text.replace("test_weigh_agrees", name), "utf-8")
    with pytest.raises(CallError, match=rf"test_more.py:\d+: there is another test called {name}"):
        hidden_tests(load_course(private))


def known(course: Course) -> dict[str, str]:
    """The hint of each mistake."""
    return {variant.id: variant.hint for variant in load_library(course).variants}


def write(private: Path, file: str, text: str) -> None:
    (private / "solutions" / "mistakes" / file).write_text(text, "utf-8")


def test_private_mistakes_add_to_those_below_and_replace_those_of_their_name(
    private: Path,
) -> None:
    public = known(load_course(TINY / "exercises"))
    (first, second) = [id for id in public if id.startswith("center/")][:2]
    slugs = tuple(id.partition("/")[2] for id in (first, second))
    write(
        private,
        "basics.py",
        f"""
from grader.mistakes import common_mistakes, mistake

mistake("center", "{slugs[0]}", "Mine", hint="Mine?", change={{"x - ": "x * "}})
mistake("center", "new", "New", hint="New?", change={{"x - ": "7 - "}})
mistake("center", together=("{slugs[1]}", "new"), change={{"x - ": "8 - "}})
common_mistakes("center", "plus")
""",
    )
    write(
        private,
        "common.py",
        """
from grader.mistakes import common

common("plus", "Added", hint="Added?", change={"x - ": "x + "})
""",
    )
    both = {f"center/{slugs[1]}+new": f"{public[second]} New?"}
    mine = {first: "Mine?", "center/new": "New?", "center/plus": "Added?"}
    assert known(load_course(private)) == public | mine | both


def test_public_mistakes_change_the_public_reference(private: Path) -> None:
    """They fit, whatever the private reference looks like."""
    public = known(load_course(TINY / "exercises"))
    text = (TINY / "solutions" / "basics.py").read_text("utf-8")
    assert "x - x.mean()" in text
    mine = text.replace("x - x.mean()", "torch.sub(x, x.mean())")
    (private / "solutions" / "basics.py").write_text(mine, "utf-8")
    assert known(load_course(private)) == public


def test_private_exceptions_of_the_audit_add_to_those_below(
    private: Path, cold_grader: Grader
) -> None:
    write(private, "audit.toml", '[equivalent]\n"center/nothing" = "not needed"\n')
    ran = cold_grader("audit", "center", "--course", private, "--jobs", "1")
    assert ran.code == 1
    assert ran.out.count("no excuse is needed") == 1


def test_the_path_of_the_public_course_is_relative_if_both_can_move(
    cold_grader: Grader, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "here" / "tiny")
    for place, path in {"mine": "../tiny/exercises", "tiny/mine": "../exercises"}.items():
        to = tmp_path / "here" / place
        ran = cold_grader("new", "course", to, "--overlay", "--course", tmp_path / "here" / "tiny")
        assert ran.code == 0, ran.err
        assert f'overlay = "{path}"' in (to / "course.toml").read_text("utf-8")
    (tmp_path / "here").rename(tmp_path / "there")
    course = load_course(tmp_path / "there" / "mine")
    assert course.folder == tmp_path / "there" / "tiny" / "exercises"


def test_a_private_test_adds_to_what_is_asked(
    private: Path, grader: Grader, right: str, tmp_path: Path
) -> None:
    wrong = TRICKY.replace(
        "make.zeros(tokens=3)).sum().item() == 0", "make.zeros(tokens=3)).sum().item() == 7"
    )
    (private / "solutions" / "graders" / "test_more.py").write_text(wrong, "utf-8")
    (tmp_path / "ada.py").write_text(right, "utf-8")
    call = ("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--only", "center")
    assert grader(*call, "--course", private).code == 0
    assert 0 < float(totals(tmp_path / "out")["ada"]) < 2
    ran = grader("explain", tmp_path / "out", "ada", "center", "--course", private)
    assert ran.code == 0, ran.err
    assert "test_center_is_seven" in ran.out


def test_private_references_are_the_ones_that_answers_are_compared_with(private: Path) -> None:
    (private / "solutions" / "layers.py").write_text("x = 1\n", "utf-8")
    course = load_course(private)
    assert course.reference_file("layers") == private / "solutions" / "layers.py"
    assert course.reference_file("basics") == TINY / "solutions" / "basics.py"
    assert course.fingerprint() != load_course(TINY / "exercises").fingerprint()


def test_a_private_course_names_assignments_and_what_feedback_tells(private: Path) -> None:
    path = private / "course.toml"
    more = (
        '\n[[assignment]]\nname = "ps1"\nexercises = ["basics"]\n[feedback]\nhidden = "nothing"\n'
    )
    path.write_text(path.read_text("utf-8") + more, "utf-8")
    course = load_course(private)
    assert course.assignment("ps1").exercises == ("basics",)
    assert course.file.feedback.hidden == "nothing"
    assert course.file.limits == load_course(TINY / "exercises").file.limits


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '\noverlay = "nowhere"',
            r"mine.course\.toml:2: overlay: there is no course\.toml in .*nowhere",
        ),
        ('\noverlay = "../mine"', r"mine.course\.toml:2: .* is a private course, too: name the"),
        ('overlay = "x"\nunit = 1', "unknown key 'unit'"),
        ('overlay = "{}"\n[[assignment]]\nname = "a"\nexercises = ["b"]', r"mine.course\.toml:4"),
    ],
)
def test_a_private_course_that_cannot_be_is_told_with_its_line(
    private: Path, cold_grader: Grader, text: str, problem: str
) -> None:
    (private / "course.toml").write_text(text.format((TINY / "exercises").as_posix()), "utf-8")
    ran = cold_grader("list", "--course", private)
    assert ran.code == 2
    assert re.search(problem, ran.err)


def test_a_private_course_is_not_made_over_another(private: Path, cold_grader: Grader) -> None:
    ran = cold_grader("new", "course", private.parent / "more", "--overlay", "--course", private)
    assert ran.code == 2
    assert f"mine is a private course, too: name the public course, {TINY}" in ran.err
    assert not (private.parent / "more").exists()


def test_a_private_course_that_is_there_already_is_one_to_use(
    private: Path, cold_grader: Grader
) -> None:
    for own in ((), ("--course", private)):
        ran = cold_grader("new", "course", private, "--overlay", *own)
        assert ran.code == 2
        assert f"{private} is a course already: use it, as with --course {private}" in ran.err


def test_a_private_course_is_not_made_where_students_look(
    cold_grader: Grader, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    place = tmp_path / "tiny" / "exercises" / "mine"
    ran = cold_grader("new", "course", place, "--overlay", "--course", tmp_path / "tiny")
    assert ran.code == 2
    assert "which students get" in ran.err
    assert not place.exists()
