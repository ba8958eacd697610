"""`grader explain`: one test of a grading, run again, with all that happened in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import wire
from grader.course.course import Course
from grader.feedback.excerpts import excerpts_of_answer
from grader.grades.gradebook import open_gradebook
from grader.grading.order import Order
from grader.inspection.cases import CallReader
from grader.intake import Arrivals, Submission
from grader.records.grade import SubmissionStatus
from grader.records.rows import Adjustment
from grader.run.batch import grade_into
from grader.sandbox.jails import Warm
from grader.sandbox.session import StudentCall
from grader.wire import Place, SourceText
from tests.conftest import Grader, sharing
from tests.grades.test_gradebook import grade_of
from tests.support.gradebooks import correct
from tests.support.places import TINY

WRONG = """\
import torch


def center(x):
    print("the sum is", x.sum())
    return x - x.sum()


def weigh(scores):
    if len(scores) == 3:
        raise ValueError("three rows")
    return torch.softmax(scores, -1)


def staircase(size):
    return torch.ones(size, size, dtype=torch.bool).tril()
"""
MODULE = """
from torch import nn


class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x):
        return -self.linear(x)
"""
Graded = Callable[[str], Path]


def test_a_forged_answer_of_the_wrong_type_is_told_as_such() -> None:
    forged = StudentCall(wire.Invoke("center", [], [], 1), wire.Gradients([], {}))
    (came_back,) = CallReader(wire.Listing([])).trace(forged).result
    assert came_back.what == "an answer of the wrong type"


@pytest.fixture(scope="module")
def graded(warm: Warm, tiny: Course, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """A gradebook with one student, bob, who handed in this file: it is only read."""
    books: dict[str, Path] = {}

    def into(text: str) -> Path:
        if text not in books:
            books[text] = tmp_path_factory.mktemp("grades")
            handed_in = Submission("bob", (SourceText("bob.py", (text,)),))
            order = Order(tiny, tiny.hidden_seed(), tiny.tests_of())
            with sharing(warm):
                grade_into(books[text], order, Arrivals((handed_in,)), jobs=1)
        return books[text]

    return into


@pytest.fixture
def explained(grader: Grader, graded: Graded) -> Callable[[str, str], Any]:
    """What there is to say about a test of bob's, as a program reads it."""

    def tell(text: str, test: str) -> Any:
        ran = grader("explain", graded(text), "bob", test, "--course", TINY, "--json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)

    return tell


Explained = Callable[[str, str], Any]


# --- what is shown -------------------------------------------------------------------------------


def test_a_hidden_test_is_shown_with_its_inputs_what_came_and_what_was_expected(
    explained: Explained,
) -> None:
    told = explained(WRONG, "test_center_agrees_with_the_reference")
    assert (told["exercise"], told["graded"]["hidden"], told["notes"]) == ("center", True, [])
    shown = told["shown"]
    (call,) = shown["calls"]
    (given,), (result, reference) = call["inputs"], call["result"]
    assert (call["name"], given["name"], given["what"]) == ("center", "x", "(2,) float32")
    assert [result["name"], reference["name"]] == ["result", "reference"]
    assert result["values"] != reference["values"]
    assert (shown["case"], shown["status"]) == ("2", "failed")
    assert "2 of 2 elements differ" in shown["message"]
    assert "the sum is" in shown["message"]
    assert shown["picture"]["expected"] != shown["picture"]["actual"]


def test_the_test_and_the_answer_are_quoted_with_the_numbers_of_their_lines(
    explained: Explained,
) -> None:
    told = explained(WRONG, "center/test_center_agrees_with_the_reference")
    statement, (answer,) = told["statement"], told["answer"]
    assert statement["file"] == "solutions/graders/test_basics.py"
    assert next(iter(statement["lines"].values())) == '@rung.value("center", points=4)'
    source = (TINY / statement["file"]).read_text("utf-8").splitlines()
    assert all(source[int(number) - 1] == line for number, line in statement["lines"].items())
    assert (answer["file"], answer["marked"]) == ("bob.py", None)
    assert answer["lines"] == dict(zip("456", WRONG.splitlines()[3:6], strict=True))


def test_of_an_exercise_what_first_cost_points_is_run_and_the_rest_is_named(
    explained: Explained,
) -> None:
    told = explained(WRONG, "center")
    assert told["graded"]["name"] == "test_center_agrees_with_the_reference"
    assert told["also"] == ["test_center_of_three_numbers (public)"]
    told = explained(WRONG, "test_center_of_three_numbers")
    assert told["shown"]["calls"][0]["inputs"][0]["values"] == "tensor([1., 2., 6.])"


def test_the_line_of_an_exception_is_marked(explained: Explained) -> None:
    told = explained(WRONG, "test_weigh_keeps_the_shape_of_the_scores")
    assert told["answer"][0]["marked"] == 11
    assert told["shown"]["calls"][0]["raised"] == "ValueError: three rows"
    assert told["shown"]["status"] == "error"


def test_the_line_with_a_forbidden_operation_is_marked(explained: Explained) -> None:
    told = explained(WRONG.replace("== 3", "== 30"), "weigh")
    assert told["graded"]["name"] == "operations"
    assert told["answer"][0]["marked"] == 12
    assert (told["shown"]["status"], told["notes"]) == ("failed", [])
    assert "softmax" in told["shown"]["message"]


def test_a_module_is_shown_with_its_parameters_and_the_reference_with_the_same_weights(
    explained: Explained,
) -> None:
    told = explained(MODULE, "test_projection_agrees_with_the_reference")
    made, called = told["shown"]["calls"]
    assert [one["name"] for one in made["result"]] == ["linear.weight"]
    result, reference = (
        [float(number) for number in re.findall(r"-?\d+\.\d*", one["values"])]
        for one in called["result"]
    )
    assert result == [-number for number in reference]
    assert len(result) == 15


def test_what_passes_is_shown_with_what_was_printed(explained: Explained) -> None:
    told = explained(WRONG, "test_center_has_the_shape_of_its_input")
    assert (told["shown"]["status"], told["cases_passed"]) == ("passed", 1)
    assert told["shown"]["calls"][-1]["prints"].startswith("the sum is")


def test_a_test_that_was_skipped_is_run_after_all(explained: Explained) -> None:
    told = explained(WRONG, "test_center_leaves_nothing_in_the_middle")
    assert told["graded"]["status"] == "skipped"
    assert told["notes"] == ["skipped in the grading, because an earlier test had failed"]
    assert told["shown"]["message"].startswith("the mean of what remains is not zero")


def test_an_answer_that_is_not_there_has_nothing_to_run(explained: Explained) -> None:
    told = explained("x = 1\n", "center")
    assert (told["graded"]["name"], told["statement"], told["answer"]) == ("exists", None, [])
    assert told["shown"]["status"] == "missing"


def test_a_call_that_never_ends_is_shown_without_an_answer(explained: Explained) -> None:
    told = explained("def staircase(size):\n    while True:\n        pass\n", "staircase")
    assert told["shown"]["status"] == "timeout"
    assert told["shown"]["calls"][0]["raised"] == "no answer came"


# --- in a terminal -------------------------------------------------------------------------------


def test_people_read_it_as_plain_text(grader: Grader, graded: Graded) -> None:
    hostile = WRONG.replace("    return x -", "    # \x1b[2J[bold]\n    return x -")
    out = graded(hostile)
    ran = grader("explain", out, "bob", "test_center_of_three_numbers", "--course", TINY)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "[bold]" in ran.out
    for told in (
        "bob: center/test_center_of_three_numbers",
        "the test, exercises/checks/test_basics.py",
        "the answer, bob.py",
        "     4  def center(x):",
        "tensor([1., 2., 6.])",
        "expected",
    ):
        assert told in ran.out


# --- what else may differ ------------------------------------------------------------------------


def test_the_seed_is_that_of_the_grade(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "bob.py").write_text(WRONG, "utf-8")
    both = []
    for seed in ("one", "two"):
        out = tmp_path / seed
        grader("grade", tmp_path / "bob.py", "--out", out, "--course", TINY, "--seed", seed)
        ran = grader(
            "explain",
            out,
            "bob",
            "test_center_agrees_with_the_reference",
            "--course",
            TINY,
            "--seed",
            seed,
            "--json",
        )
        both.append(json.loads(ran.out)["shown"]["calls"][0]["inputs"][0]["values"])
        line = json.loads((out / "results.jsonl").read_text("utf-8"))
        told = [t["message"] for t in line["exercises"][0]["tests"] if "agrees" in t["name"]]
        assert json.loads(ran.out)["shown"]["message"].split("\n")[0] in told[0]
    assert both[0] != both[1]


def test_a_gradebook_of_another_course_is_refused_unless_its_seed_is_given(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "bob.py").write_text(WRONG, "utf-8")
    grader("grade", tmp_path / "bob.py", "--out", tmp_path / "out", "--course", TINY)
    other = shutil.copytree(TINY, tmp_path / "other")
    (other / "solutions" / "seed").write_text("of another class", "utf-8")
    call = ("explain", tmp_path / "out", "bob", "center", "--course", other)
    ran = grader(*call)
    assert (ran.code, ran.out) == (2, "")
    assert "was graded with another hidden seed: name that course with --course" in ran.err
    seed = (TINY / "solutions" / "seed").read_text("utf-8").strip()
    assert grader(*call, "--seed", seed).code == 0


def test_a_course_that_changed_since_is_told(grader: Grader, tmp_path: Path) -> None:
    course = shutil.copytree(TINY, tmp_path / "course")
    (tmp_path / "bob.py").write_text(WRONG, "utf-8")
    grader("grade", tmp_path / "bob.py", "--out", tmp_path / "out", "--course", course)
    graders = course / "solutions" / "graders" / "test_basics.py"
    graders.write_text(
        graders.read_text("utf-8").replace("test_center_takes_no_loop", "test_it"), "utf-8"
    )
    ran = grader("explain", tmp_path / "out", "bob", "center", "--course", course)
    assert "graded with other tests or references" in ran.out
    ran = grader(
        "explain", tmp_path / "out", "bob", "test_center_takes_no_loop", "--course", course
    )
    assert (ran.code, "was it graded with another --course?" in ran.err) == (2, True)


def test_a_grade_from_another_processor_is_told(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bob.py").write_text(WRONG, "utf-8")
    call = ("explain", tmp_path / "out", "bob", "center", "--course", TINY)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "ABACUS")
        grader(
            *("grade", tmp_path / "bob.py", "--out", tmp_path / "out", "--course", TINY),
            *("--jobs", "1"),
        )
        assert "ABACUS" not in grader(*call).out
    assert (
        "graded with the vector instructions ABACUS, but this processor has " in grader(*call).out
    )


# --- all that was lost ---------------------------------------------------------------------------


def test_without_a_test_all_lost_points_are_listed(grader: Grader, graded: Graded) -> None:
    out = graded(WRONG)
    ran = grader("explain", out, "bob", "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert re.fullmatch(r"bob  [\d.]+ of 10 points", lines[0])
    shown = [line.split()[0] for line in lines if re.match("  [a-zA-Z]", line)]
    assert shown == ["center", "weigh", "Projection"]
    assert "    The exercise is not there yet: missing" in lines
    assert any(re.search(r": failed, lost [\d.]+$", line) for line in lines)
    assert lines[-1].startswith(f"to run a test again: grader explain {out} bob center/test_")


def test_where_all_tests_passed_explain_says_so(grader: Grader, graded: Graded) -> None:
    out = graded(WRONG)
    ran = grader("explain", out, "bob", "staircase", "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert re.search(r"  staircase  1 of 1\n    all \d+ tests passed\n", ran.out)
    told = json.loads(grader("explain", out, "bob", "staircase", "--course", TINY, "--json").out)
    (staircase,) = told["exercises"]
    assert (staircase["points"], staircase["max"], staircase["tests"]) == (1, 1, [])


def test_what_an_instructor_added_or_took_away_is_listed(
    cold_grader: Grader, tmp_path: Path
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 2, 0.833))
        correct(book, "ada", Adjustment("weigh", -0.9, "late"))
    ran = cold_grader("explain", tmp_path, "ada", "--course", TINY)
    assert ran.out.startswith("ada  2 of 4 points\n  weigh  0 of 2\n")
    assert "    corrected by -0.9: late\n" in ran.out
    assert "    the correction by -0.9 counts -0.833: points are never below 0\n" in ran.out


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [("empty", 0, "no file was submitted"), ("grader_error", 2, "the grader failed on ada")],
)
def test_a_submission_without_tests_is_explained_as_such(
    cold_grader: Grader, tmp_path: Path, status: SubmissionStatus, code: int, told: str
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 0, 0, status=status, message="no file was submitted"))
    ran = cold_grader("explain", tmp_path, "ada", "--course", TINY)
    assert (ran.code, told in ran.out + ran.err) == (code, True)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("student", "test", "told"),
    [
        ("rob", "center", "no student called 'rob' in this gradebook; did you mean bob?"),
        ("bob", "centre", "no test called 'centre'"),
        ("bob", "test_center_takes_no_lop", "did you mean test_center_takes_no_loop?"),
        ("bob", "basics", "basics is a unit"),
        ("bob", "exists", "'exists' may be center/exists, staircase/exists"),
        ("bob", "center/exists", "center/exists passed, and it runs no test"),
    ],
)
def test_what_cannot_be_found_is_told_with_what_is_near(
    grader: Grader, graded: Graded, student: str, test: str, told: str
) -> None:
    ran = grader("explain", graded(WRONG), student, test, "--course", TINY)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_grade_without_its_text_cannot_be_explained(grader: Grader, tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 1, 1))
    ran = grader("explain", tmp_path, "ada", "test_it", "--course", TINY, "--seed", "seed")
    assert (ran.code, "may be center/test_it, weigh/test_it" in ran.err) == (2, True)
    ran = grader("explain", tmp_path, "ada", "center/test_it", "--course", TINY, "--seed", "seed")
    assert (ran.code, "the text of ada is not in the gradebook" in ran.err) == (2, True)


# --- excerpts ------------------------------------------------------------------------------------

CELL = """\
y = 1

@decorated
def weigh(
    scores,
) -> Tensor:
    # first

# at the margin
    return scores


z = weigh(1)
"""


def test_a_definition_ends_where_the_next_line_is_indented_no_deeper() -> None:
    notebook = [SourceText("a.ipynb", ("x = 1", CELL))]
    (found,) = excerpts_of_answer(notebook, Place("a.ipynb", 4, cell=2), None)
    assert found.lines == dict(enumerate(CELL.splitlines()[3:10], start=4))


def test_a_statement_that_stays_in_an_answer_is_not_quoted() -> None:
    lines = [
        "class A:",
        '    """Say.',
        "",
        "Rules:",
        '    """',
        "    def go(",
        "        self,",
        "    ):",
    ]
    lines += ["        r'''One line.'''", '        text = """a', "b", '"""', "        return text"]
    (found,) = excerpts_of_answer([SourceText("a.py", ("\n".join(lines),))], Place("a.py", 1), None)
    assert [*found.lines] == [1, 2, *range(6, 11)]
    assert found.lines[2] == '    """Say. …'


def test_a_line_elsewhere_is_quoted_with_those_around_it() -> None:
    sources = [SourceText("a.py", (CELL,)), SourceText("b.py", ("1\r\n2\r\n3\r\n4\r\n5\r\n6",))]
    definition, around = excerpts_of_answer(sources, Place("a.py", 4), Place("b.py", 6))
    assert (definition.marked, around.file, around.marked) == (None, "b.py", 6)
    assert around.lines == {3: "3", 4: "4", 5: "5", 6: "6"}


@pytest.mark.parametrize("place", [Place("c.py", 1), Place("a.py", 0), Place("a.py", 10**9)])
def test_a_place_that_is_not_in_the_submission_is_not_quoted(place: Place) -> None:
    assert excerpts_of_answer([SourceText("a.py", (CELL,))], place, place) == ()
