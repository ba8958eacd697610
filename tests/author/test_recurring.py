"""`grader audit --from` groups a class's wrong answers, and drafts a mistake for each group."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grader.author import recurring
from grader.author.audit import audit_course
from grader.course.course import Course, load_course
from grader.grading.order import Order
from grader.intake import take_in
from grader.run.batch import grade_into
from grader.sandbox.jails import Warm
from tests.conftest import Grader, sharing
from tests.support.gradebooks import folder
from tests.support.places import REAL, TINY

pytestmark = pytest.mark.usefixtures("one_warm_process")

SECRET = "Zsofia"  # the student's name, in names, comments and messages
OWN = f"""
# {SECRET}'s homework
class {SECRET}Error(Exception):
    "By {SECRET}."

def center({{0}}):  # {SECRET}
    print("{SECRET}")
    {{1}}
"""
# Two changes at once: a known mistake, the sum over columns, and turned signs.
WEIGH = """
def weigh(scores):
    e = (scores.amax(-1, keepdim=True) - scores).exp()
    return e / e.sum(0, keepdim=True)
"""
CLASS = {
    "ada": OWN.format("x", f"{SECRET} = x.mean(); return x + {SECRET}"),
    "bob": OWN.format("numbers", "return numbers.mean() + numbers"),
    "cleo": OWN.format("x", "total = x.sum() / len(x)\n    return x - -total"),
    "dan": OWN.format("x", "return x - x.median()"),  # a known mistake
    "eve": OWN.format("x", "return x * 7.5"),
    "fay": OWN.format("x", "return (x - x.mean()) / 8"),
    "gus": OWN.format("x", "return 2 ** -3 * (x - x.mean())"),
    "hal": OWN.format("x", f"raise {SECRET}Error('{SECRET}')"),
    "ida": OWN.format("y", f"raise {SECRET}Error('{SECRET}')"),
    "jan": OWN.format("x", "return x - x.mean()"),
    "kim": OWN.format("x", "return x -"),
    "leo": "",
    "max": WEIGH,
    "nia": WEIGH.replace("e ", "weights ").replace("e.", "weights."),
}


@pytest.fixture(scope="module")
def graded(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose library lacks a mistake, and the gradebook of a class that makes it."""
    place = tmp_path_factory.mktemp("graded")
    shutil.copytree(TINY, place / "tiny")
    library = place / "tiny" / "solutions" / "mistakes" / "basics.py"
    text = library.read_text("utf-8")
    start, end = text.index('mistake(\n    "center"'), text.index('@mistake("center", "median"')
    library.write_text(text[:start] + text[end:], "utf-8")  # without: the mean is added
    course = load_course(place / "tiny" / "exercises")
    order = Order(course, course.hidden_seed(), course.tests_of(), ("basics",), isolation="weak")
    with sharing(warm):
        grade_into(place / "grades", order, take_in([folder(place / "class", **CLASS)], course), 1)
    return place


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Course:
    """A copy of the course."""
    shutil.copytree(graded / "tiny", tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


@pytest.fixture
def grades(graded: Path, tmp_path: Path) -> Path:
    """A copy of the gradebook, in which three students add the mean."""
    shutil.copytree(graded / "grades", tmp_path / "grades")
    return tmp_path / "grades"


def read(grader: Grader, grades: Path, course: Course, name: str = "center") -> dict[str, Any]:
    call = ("audit", name, "--from", grades, "--course", course.folder, "--jobs", 1, "--json")
    ran = grader(*call)
    assert ran.code == 0, ran.err
    (found,) = json.loads(ran.out)
    return dict(found)


def test_a_mistake_that_the_library_lacks_comes_back_as_a_group(
    grader: Grader, course: Course, grades: Path
) -> None:
    center = read(grader, grades, course)
    counts = {key: value for key, value in center.items() if isinstance(value, int)}
    assert counts == {"wrong": 10, "lose": 10, "named": 1, "other": 1, "alone": 1}
    adds, eighth, raises = center["groups"]
    assert [group["answers"] for group in center["groups"]] == [3, 2, 2]
    assert 'change={"x - x.mean()": "x + x.mean()"}' in adds["draft"]
    assert "every value is 6 too large" in adds["draft"]
    assert "every value is 1/8 (0.125) of the expected value" in eighth["draft"]
    assert "raises an exception of its own" in raises["draft"]
    drafts = (eighth["draft"], raises["draft"])  # no changes: a file with them is still Python
    assert all(line.startswith("#") for draft in drafts for line in draft.splitlines())

    # The draft, pasted as it is, is caught and named; and so are the answers of the class.
    library = course.solutions / "mistakes" / "basics.py"
    library.write_text(f"{library.read_text('utf-8')}\n{adds['draft']}\n", "utf-8")
    findings = audit_course(course, ("center",), jobs=1)
    pasted = {one.kind: one for one in findings if one.name == "center/todo-1"}["mistake"]
    assert (pasted.well, pasted.named) == (True, True)
    again = read(grader, grades, course)
    assert (again["named"], len(again["groups"])) == (4, 2)
    assert "todo-2" in again["groups"][0]["draft"]


def test_the_output_has_no_text_of_a_student_and_names_only_on_request(
    grader: Grader, course: Course, grades: Path
) -> None:
    call = ("audit", "center", "--from", grades, "--course", course.folder, "--jobs", 1)
    shown = grader(*call)
    assert shown.code == 0
    assert "center: 3 answers, one result" in shown.out
    assert "other reasons: a wrong exercise" in shown.out
    assert "ada" not in shown.out
    assert SECRET not in shown.out + shown.err + json.dumps(read(grader, grades, course))
    named = grader(*call, "--who")
    assert "ada, bob, cleo" in named.out
    assert SECRET not in named.out


def test_a_known_mistake_with_another_change_is_found(
    grader: Grader, course: Course, grades: Path
) -> None:
    (group,) = read(grader, grades, course, "weigh")["groups"]
    assert group["answers"] == 2
    columns, turned = '"weights.sum(dim=-1, keepdim=True)"', '"scores - largest"'
    assert f"{columns}: " in group["draft"]
    assert f'{turned}: "largest - scores"' in group["draft"]


def test_two_known_mistakes_that_fit_are_named_in_the_draft(
    grader: Grader, course: Course, grades: Path
) -> None:
    library = course.solutions / "mistakes" / "basics.py"
    text = library.read_text("utf-8")
    for slug, new in (("one", "x + x.mean()"), ("two", "x.mean() + x")):
        text += f'mistake("center", "{slug}", "{slug}", hint="?", '
        text += f'change={{"x - x.mean()": "{new}"}})\n'
    library.write_text(text, "utf-8")
    ran = grader("audit", "center", "--from", grades, "--course", course.folder, "--jobs", 1)
    assert "one and two give this result" in ran.out
    assert "have changed since the grading" in ran.err


def test_answers_whose_text_the_gradebook_lacks_are_only_counted(
    grader: Grader, course: Course, grades: Path
) -> None:
    with closing(sqlite3.connect(grades / "grades.db")) as database, database:
        database.execute("DELETE FROM submissions")
    call = ("audit", "center", "--from", grades, "--course", course.folder, "--jobs", 1)
    ran = grader(*call, "--json")
    assert "lacks the text of 14 submissions" in ran.err
    (center,) = json.loads(ran.out)
    assert (center["wrong"], center["named"], center["other"]) == (10, 1, 9)


def test_ctrl_c_ends_it_with_130(
    grader: Grader, course: Course, grades: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recurring, "attempted", interrupted)
    ran = grader("audit", "--from", grades, "--course", course.folder, "--jobs", 1)
    assert (ran.code, ran.err) == (130, "grader: stopped; nothing was written\n")


def test_a_wrong_call_is_one_line(grader: Grader, course: Course, grades: Path) -> None:
    calls = {
        "there is no gradebook in": ("--from", grades.parent, "--course", course.folder),
        "holds grades of the course 'tiny'": ("--from", grades, "--course", REAL),
        "another hidden seed": ("--from", grades, "--course", course.folder, "--seed", "other"),
        "has no grades of Projection": ("Projection", "--from", grades, "--course", course.folder),
        "name it with --from": ("--who", "--course", course.folder),
        "--from and --machines": ("--from", grades, "--machines", "--course", course.folder),
    }
    for said, call in calls.items():
        ran = grader("audit", *call)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert said in ran.err
