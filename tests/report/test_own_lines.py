"""A student's own lines beside failing tests: what is found, what is marked, what is hidden."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import msgspec
import pytest

from grader.course.course import Course
from grader.feedback.verdict import verdict_of
from grader.grades.gradebook import open_gradebook
from grader.intake import Submission
from grader.records.grade import OPERATIONS, CodeLocation, ExerciseResult, Grade, TestResult
from grader.records.rows import Row
from grader.report import write_pages
from grader.report.answers import WIDEST, own_lines
from grader.report.feedback import SAME, feedback_page
from grader.wire import SourceText
from tests.conftest import Grader
from tests.support.gradebooks import HOSTILE, PICTURE, grade, mistaken, solved, untouched
from tests.support.places import TINY

TEXT = """\
import torch


def center(x):
    middle = x.mean(dim=-1)
    return x - middle


def weigh(x, mask):
    scores = x @ x
    hidden = scores.masked_fill(mask, float("-inf"))
    return hidden.softmax(dim=-1) @ x
"""
OWN = (SourceText("basics.py", (TEXT,)),)
RAISED = (
    "basics.py line 11 raised ValueError: the mask does not fit\n  hidden = scores.masked_fill("
)


WEIGH = CodeLocation("basics.py", 9)
HIDDEN = CodeLocation("basics.py", 11)  # the line that raises


def failing(
    *tests: TestResult, name: str = "weigh", at: CodeLocation | None = WEIGH
) -> ExerciseResult:
    """An exercise that is there, with these other results."""
    there = TestResult("exists", "The exercise is there", "passed", hidden=False, position=at)
    return ExerciseResult(name, "basics", 0.0, 2.0, (there, *tests))


def wrong(at: CodeLocation | None = WEIGH) -> ExerciseResult:
    """An exercise with a wrong result, at this place."""
    (_, *tests) = mistaken("weigh").tests
    return failing(*tests, at=at)


def error(
    name: str,
    message: str = RAISED,
    *,
    hidden: bool = False,
    case: str = "",
    at: CodeLocation | None = HIDDEN,
) -> TestResult:
    """A test in which the answer raised."""
    return TestResult(
        name, f"The title of {name}", "error", 0, 1, hidden=hidden, message=message, case=case,
        position=at,
    )  # fmt: skip


def page_of(graded: Grade, course: Course, sources: tuple[SourceText, ...] = OWN) -> str:
    return feedback_page(Row(graded.student, graded), course, sources=sources)


def blocks(page: str) -> list[str]:
    """The blocks of the student's lines, as text."""
    found = re.findall(r'<details class="own".*?</details>', page, re.S)
    lines = [block.replace('<span class="line', '\n<span class="line') for block in found]
    return [unescape(re.sub(r"<[^>]+>", "", block)).strip() for block in lines]


def marked(page: str) -> list[str]:
    """The lines that are marked."""
    return [unescape(line).strip() for line in re.findall(r"<mark>(.*?)</mark>", page)]


# --- what stands there ---------------------------------------------------------------------------


def test_an_answer_that_fails_stands_once_with_its_place_and_without_a_mark(tiny: Course) -> None:
    page = page_of(grade("ada", solved("center"), wrong()), tiny)
    (block,) = blocks(page)
    assert block.splitlines() == [
        "Your lines: basics.py, lines 9–12",
        "",
        "    9  def weigh(x, mask):",
        "   10      scores = x @ x",
        '   11      hidden = scores.masked_fill(mask, float("-inf"))',
        "   12      return hidden.softmax(dim=-1) @ x",
    ]
    assert marked(page) == []


def test_the_line_that_raised_is_marked_and_its_exception_told_once(tiny: Course) -> None:
    tests = [error("test_one"), error("test_two", case="3 tokens"), error("test_three")]
    page = page_of(grade("ada", failing(*tests)), tiny)
    assert marked(page) == ['hidden = scores.masked_fill(mask, float("-inf"))']
    assert page.count("the mask does not fit") == 1
    assert page.count(SAME) == 2
    assert f"[3 tokens] {SAME}" in page


def test_another_exception_is_told_in_full_and_what_was_printed_stays(tiny: Course) -> None:
    other = "basics.py line 10 raised ValueError: of another size"
    printed = f"{RAISED}\nyour code printed:\n  hello"
    tests = [error("test_one"), error("test_two", other), error("test_three", printed)]
    page = page_of(grade("ada", failing(*tests)), tiny)
    assert other in page
    assert f"{SAME}\nyour code printed:\n  hello" in page


def test_a_line_outside_of_the_answer_is_quoted_with_its_surroundings(tiny: Course) -> None:
    raised = "basics.py line 5 raised IndexError"
    page = page_of(
        grade("ada", failing(error("test_one", raised, at=CodeLocation("basics.py", 5)))), tiny
    )
    definition, around = blocks(page)
    assert "lines 9–12" in definition
    assert "lines 2–8" in around
    assert marked(page) == ["middle = x.mean(dim=-1)"]


def test_a_line_of_a_notebook_is_told_with_its_cell(tiny: Course) -> None:
    cells = SourceText("hw.ipynb", ("import torch", TEXT.partition("\n\n\n")[2]))
    raised = "hw.ipynb cell 2 line 8 raised ValueError"
    test = error("test_one", raised, at=CodeLocation("hw.ipynb", 8, 2))
    graded = failing(test, at=CodeLocation("hw.ipynb", 6, 2))
    page = page_of(grade("ada", graded), tiny, (cells,))
    assert blocks(page)[0].startswith("Your lines: hw.ipynb cell 2, lines 6–9")
    assert marked(page) == ['hidden = scores.masked_fill(mask, float("-inf"))']


@pytest.mark.parametrize("result", [untouched("weigh"), solved("weigh"), wrong(None)])
def test_what_is_right_untouched_or_missing_shows_no_lines(
    tiny: Course, result: ExerciseResult
) -> None:
    assert not blocks(page_of(grade("ada", result), tiny))


def test_a_long_answer_is_cut_and_the_line_that_raised_follows() -> None:
    long = "def weigh(x):\n" + "".join(f"    x = x + {n}\n" for n in range(200))
    sources = [SourceText("basics.py", (long,))]
    raised = error("test_one", at=CodeLocation("basics.py", 150))
    verdict = verdict_of(failing(raised, at=CodeLocation("basics.py", 1)))
    head, around = own_lines(sources, verdict)
    assert (len(head.lines), head.cut, head.short) == (60, True, False)
    assert [line.number for line in around.lines if line.marked] == [150]
    assert len(around.lines) == 7


def test_a_long_line_ends_in_an_ellipsis() -> None:
    sources = [SourceText("basics.py", (f"def weigh(x):\n\treturn {'x + ' * 9999}x",))]
    (own,) = own_lines(sources, verdict_of(wrong(CodeLocation("basics.py", 1))))
    assert own.lines[1].text.startswith("    return x + x")
    assert (len(own.lines[1].text), own.lines[1].text[-1]) == (WIDEST, "…")


def test_hostile_lines_are_text(tiny: Course) -> None:
    hostile = f"def weigh(x):\n    return '{HOSTILE}'\n"
    name = f"{HOSTILE}.py"
    graded = grade("ada", wrong(CodeLocation(name, 1)))
    page = page_of(graded, tiny, (SourceText(name, (hostile,)),))
    assert blocks(page)
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert not {"\u202e", "\x1b"} & set(page)


def test_a_gradebook_gives_each_page_the_lines_that_were_graded(
    tmp_path: Path, tiny: Course
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises = ("weigh",)
        team = grade("team-7", wrong())
        book.record(team, Submission("team-7", OWN, group=("dan", "eve")))
        write_pages(book, tiny)
    for student in ("dan", "eve"):
        assert len(blocks((tmp_path / "feedback" / f"{student}.html").read_text("utf-8"))) == 1
    assert "masked_fill" not in (tmp_path / "report.html").read_text("utf-8")


def test_a_broken_rule_stands_first_and_has_its_line_marked(tiny: Course) -> None:
    told = "basics.py line 12 uses softmax: the exercise is to write it yourself"
    rule = TestResult(
        OPERATIONS, "It uses torch's own softmax", "failed", hidden=False, message=told,
        position=CodeLocation("basics.py", 12),
    )  # fmt: skip
    page = page_of(grade("ada", failing(rule, error("test_one", at=None))), tiny)
    box, rest = page.split('<div class="mistake">', 1)[1].split("</div>", 1)
    assert "own softmax" in box
    assert told in box
    assert told not in rest
    assert marked(page) == ["return hidden.softmax(dim=-1) @ x"]


def test_unwritten_exercises_are_folded_into_one_line_of_their_unit(tiny: Course) -> None:
    graded = grade("ada", wrong(), untouched("center"), untouched("staircase"))
    page = page_of(graded, tiny)
    assert "Exercises: 1 not right yet, 2 not written." in page
    assert page.count('<details class="exercise') == 1
    assert page.count("still the stub") == 1
    (folded,) = re.findall(r'<details class="unwritten.*?</details>', page, re.S)
    assert "2 not written" in folded
    assert 'id="center"' in folded


def test_tests_that_did_not_run_are_named_with_the_command_that_shows_more(tiny: Course) -> None:
    skipped = TestResult("test_more", "More", "skipped", 0, 1)
    page = page_of(grade("ada", failing(error("test_one"), skipped)), tiny)
    assert "1 test did not run" in page
    assert "<code>grader check weigh</code>" in page


# --- what is hidden ------------------------------------------------------------------------------

SECRETS = ("8.675309", "tensor([[0.1234", "secret case", "IndexError", "a secret exception")


def attacked(*, hidden: bool) -> Grade:
    """A grade whose hidden tests raised, with inputs in their messages; or without messages."""
    raised = (
        "basics.py line 12 raised IndexError: a secret exception at tensor([[0.1234, 8.675309]])"
        "\n  return hidden.softmax(dim=-1) @ x\nyour code printed:\n  8.675309"
    )
    spied = TestResult(
        "test_spied", "The values are right", "failed", 0, 1,
        message="basics.py line 10: expected 8.675309", picture=PICTURE, case="secret case",
    )  # fmt: skip
    tests = [
        error(
            "test_hidden", raised, hidden=True, case="secret case", at=CodeLocation("basics.py", 12)
        ),
        error("test_again", RAISED, hidden=True),
        spied,
    ]
    if not hidden:
        tests = [
            msgspec.structs.replace(test, message=None, picture=None, case=None, position=None)
            for test in tests
        ]
    return grade("eve", solved("center"), failing(*tests))


@pytest.mark.parametrize("public", [(), (error("test_public"),)])
def test_a_page_is_the_same_whatever_hidden_tests_said(
    tiny: Course, public: tuple[TestResult, ...]
) -> None:
    pages = []
    for hidden in (True, False):
        graded = attacked(hidden=hidden)
        weigh = graded.exercises[1]
        first, *others = weigh.tests
        weigh = msgspec.structs.replace(weigh, tests=(first, *public, *others))
        graded = msgspec.structs.replace(graded, exercises=(graded.exercises[0], weigh))
        pages.append(page_of(graded, tiny))
    assert pages[0] == pages[1]
    for secret in SECRETS:
        assert secret not in pages[0]
    lines = ['hidden = scores.masked_fill(mask, float("-inf"))'] if public else []
    assert marked(pages[0]) == lines
    assert SAME not in pages[0]  # that a hidden test met the same exception is hidden, too


@pytest.mark.parametrize("level", ["mistakes", "titles", "nothing"])
def test_no_level_of_disclosure_marks_a_line_of_a_hidden_test(tiny: Course, level: str) -> None:
    feedback = msgspec.structs.replace(tiny.file.feedback, hidden=level)
    file = msgspec.structs.replace(tiny.file, feedback=feedback)
    course = Course(tiny.folder, file, tiny.private)
    page = page_of(attacked(hidden=True), course)
    assert marked(page) == []
    for secret in SECRETS:
        assert secret not in page
    if level == "nothing":
        assert "The title of test_hidden" not in page


@pytest.mark.parametrize(
    "place",
    [("other.py", 3, 0), ("basics.py", 99999, 0), ("basics.py", -4, 0), ("basics.py", 1, 7)],
)
def test_a_place_that_is_not_in_the_submission_shows_nothing_else(
    tiny: Course, place: tuple[str, int, int]
) -> None:
    """A jail reports places; nothing there is believed."""
    page = page_of(grade("eve", failing(error("test_one", at=CodeLocation(*place)))), tiny)
    assert marked(page) == []
    assert not blocks(page_of(grade("eve", wrong(CodeLocation(*place))), tiny))


# --- where an answer is --------------------------------------------------------------------------

RAISES = """import torch


def helper(x):
    raise ValueError("no")


def center(x):
    return helper(x)
"""


@pytest.mark.parametrize(
    ("name", "content", "places"),
    [
        ("basics.py", RAISES, [("basics.py", 8, 0), ("basics.py", 5, 0)]),
        (
            "hw.ipynb",
            json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
                {"cell_type": "code", "metadata": {}, "source": cell}
                for cell in RAISES.split("\n\n\n")
            ]}),
            [("hw.ipynb", 1, 3), ("hw.ipynb", 2, 2)],
        ),
    ],
)  # fmt: skip
def test_a_grade_says_where_the_answer_is_and_which_line_raised(
    name: str, content: str, places: list[tuple[str, int, int]], tmp_path: Path, grader: Grader
) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / name).write_text(content, "utf-8")
    out = tmp_path / "out"
    course = ("--course", TINY / "exercises")
    assert grader("grade", tmp_path / "ada", "--out", out, "--only", "center", *course).code == 0
    graded = Grade.from_json((out / "results.jsonl").read_bytes())
    tests = graded.exercises[0].tests
    found = [test.position for test in tests if test.position is not None]
    assert [(one.file, one.line, one.cell) for one in dict.fromkeys(found)] == places
    (page,) = (path.read_text("utf-8") for path in (out / "feedback").iterdir())
    assert marked(page) == ['raise ValueError("no")']


def test_a_line_that_discards_its_tensor_is_marked(tmp_path: Path, grader: Grader) -> None:
    text = "def center(x):\n    x.sub(x.mean())\n    return x\n"
    (tmp_path / "basics.py").write_text(text, "utf-8")
    out = tmp_path / "out"
    call = ("--out", out, "--only", "center", "--course", TINY / "exercises")
    assert grader("grade", tmp_path / "basics.py", *call).code == 0
    page = (out / "feedback" / "basics.html").read_text("utf-8")
    assert marked(page) == ["x.sub(x.mean())"]


def test_a_grade_of_an_earlier_version_shows_no_lines(tiny: Course) -> None:
    old = mistaken("weigh")
    assert not blocks(page_of(grade("ada", old), tiny))
