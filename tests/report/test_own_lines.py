"""A student's own lines beside failing tests: what is found, what is marked, what is hidden."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import msgspec
import pytest

from grader.course.course import Course, load_course
from grader.feedback.excerpts import told_place
from grader.grades.gradebook import open_gradebook
from grader.intake import Submission, find_submissions
from grader.records.grade import ExerciseResult, Grade, TestResult
from grader.records.rows import Row
from grader.report import write_pages
from grader.report.answers import WIDEST, ByName, answer_that_counts, definitions_in, own_lines
from grader.report.feedback import SAME, feedback_page
from grader.wire import Place, SourceText, Wanted
from grader.wire.definitions import find_definitions, skeletons
from grader.wire.source import read_file
from tests.support.gradebooks import HOSTILE, PICTURE, grade, mistaken, solved, untouched
from tests.support.places import ROOT

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


def failing(*tests: TestResult, name: str = "weigh") -> ExerciseResult:
    """An exercise that is there, with these other results."""
    there = TestResult("exists", "The exercise is there", "passed", hidden=False)
    return ExerciseResult(name, "basics", 0.0, 2.0, (there, *tests))


def error(name: str, message: str = RAISED, *, hidden: bool = False, case: str = "") -> TestResult:
    """A test in which the answer raised."""
    return TestResult(
        name, f"The title of {name}", "error", 0, 1, hidden=hidden, message=message, case=case
    )


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


def test_an_answer_that_fails_stands_once_with_its_place_and_its_head_marked(tiny: Course) -> None:
    page = page_of(grade("ada", solved("center"), mistaken("weigh")), tiny)
    (block,) = blocks(page)
    assert block.splitlines() == [
        "Your lines: basics.py, lines 9–12",
        "",
        ">   9  def weigh(x, mask):",
        "   10      scores = x @ x",
        '   11      hidden = scores.masked_fill(mask, float("-inf"))',
        "   12      return hidden.softmax(dim=-1) @ x",
    ]
    assert marked(page) == ["def weigh(x, mask):"]


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
    page = page_of(grade("ada", failing(error("test_one", raised))), tiny)
    definition, around = blocks(page)
    assert "lines 9–12" in definition
    assert "lines 2–8" in around
    assert marked(page) == ["middle = x.mean(dim=-1)"]


def test_a_line_of_a_notebook_is_told_with_its_cell(tiny: Course) -> None:
    cells = SourceText("hw.ipynb", ("import torch", TEXT.partition("\n\n\n")[2]))
    raised = "hw.ipynb cell 2 line 8 raised ValueError"
    page = page_of(grade("ada", failing(error("test_one", raised))), tiny, (cells,))
    assert blocks(page)[0].startswith("Your lines: hw.ipynb cell 2, lines 6–9")
    assert marked(page) == ['hidden = scores.masked_fill(mask, float("-inf"))']


@pytest.mark.parametrize("result", [untouched("weigh"), solved("weigh"), mistaken("missing")])
def test_what_is_right_untouched_or_missing_shows_no_lines(
    tiny: Course, result: ExerciseResult
) -> None:
    assert not blocks(page_of(grade("ada", result), tiny))


def test_a_long_answer_is_cut_and_the_line_that_raised_follows() -> None:
    long = "def weigh(x):\n" + "".join(f"    x = x + {n}\n" for n in range(200))
    sources = [SourceText("basics.py", (long,))]
    head, around = own_lines(sources, Place("basics.py", 1), Place("basics.py", 150))
    assert (len(head.lines), head.cut, head.short) == (60, True, False)
    assert [line.number for line in around.lines if line.marked] == [150]
    assert len(around.lines) == 7


def test_a_long_line_ends_in_an_ellipsis() -> None:
    sources = [SourceText("basics.py", (f"def weigh(x):\n\treturn {'x + ' * 9999}x",))]
    (own,) = own_lines(sources, Place("basics.py", 1), None)
    assert own.lines[1].text.startswith("    return x + x")
    assert (len(own.lines[1].text), own.lines[1].text[-1]) == (WIDEST, "…")


def test_hostile_lines_are_text(tiny: Course) -> None:
    hostile = f"def weigh(x):\n    return '{HOSTILE}'\n"
    page = page_of(
        grade("ada", mistaken("weigh")), tiny, (SourceText(f"{HOSTILE}.py", (hostile,)),)
    )
    assert blocks(page)
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert not {"\u202e", "\x1b"} & set(page)


def test_a_gradebook_gives_each_page_the_lines_that_were_graded(
    tmp_path: Path, tiny: Course
) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises = ("weigh",)
        team = grade("team-7", mistaken("weigh"))
        book.record(team, Submission("team-7", OWN, group=("dan", "eve")))
        write_pages(book, tiny)
    for student in ("dan", "eve"):
        assert len(blocks((tmp_path / "feedback" / f"{student}.html").read_text("utf-8"))) == 1
    assert "masked_fill" not in (tmp_path / "report.html").read_text("utf-8")


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
        error("test_hidden", raised, hidden=True, case="secret case"),
        error("test_again", RAISED, hidden=True),
        spied,
    ]
    if not hidden:
        tests = [
            msgspec.structs.replace(test, message=None, picture=None, case=None) for test in tests
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
    lines = (
        ['hidden = scores.masked_fill(mask, float("-inf"))'] if public else ["def weigh(x, mask):"]
    )
    assert marked(pages[0]) == lines
    assert SAME not in pages[0]  # that a hidden test met the same exception is hidden, too


@pytest.mark.parametrize("level", ["mistakes", "titles", "nothing"])
def test_no_level_of_disclosure_marks_a_line_of_a_hidden_test(tiny: Course, level: str) -> None:
    feedback = msgspec.structs.replace(tiny.file.feedback, hidden=level)
    file = msgspec.structs.replace(tiny.file, feedback=feedback)
    course = Course(tiny.folder, file, tiny.private)
    page = page_of(attacked(hidden=True), course)
    assert marked(page) == ["def weigh(x, mask):"]
    for secret in SECRETS:
        assert secret not in page
    if level == "nothing":
        assert "The title of test_hidden" not in page


def test_an_exception_that_claims_another_line_marks_only_lines_of_the_same_student(
    tiny: Course,
) -> None:
    for claimed in ("other.py line 3 raised X", "basics.py line 99999 raised X", "line 3 raised X"):
        page = page_of(grade("eve", failing(error("test_one", claimed))), tiny)
        assert set(marked(page)) <= {"def weigh(x, mask):"}


# --- where an answer is --------------------------------------------------------------------------


def place_of(name: str, *files: tuple[str, str], told: str = "") -> str:
    sources = [SourceText(file, (text,)) for file, text in files]
    found = answer_that_counts(name, "basics", definitions_in(sources), {}, told)
    return f"{found.file}:{found.line}" if found else ""


ONE, STUB = "def weigh(x):\n    return x\n", "def weigh(x):\n    raise NotImplementedError\n"


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ([("basics.py", f"{ONE}\n{ONE}")], "basics.py:4"),
        ([("basics.py", f"{ONE}\n{STUB}")], "basics.py:1"),
        ([("basics.py", ONE), ("other.py", ONE)], "basics.py:1"),
        ([("a.py", ONE), ("b.py", ONE)], "b.py:1"),
        ([("basics.py", ONE), ("hw.ipynb", f"\n{ONE}")], "hw.ipynb:2"),
        ([("basics.py", STUB), ("hw.py", ONE)], "hw.py:1"),
        ([("basics.py", f'"""\n{ONE}"""\n# def weigh\n{ONE}')], "basics.py:6"),
        ([("basics.py", "class weigh:\n    def weigh(self):\n        pass")], "basics.py:1"),
        ([("basics.py", "async def weigh(x):\n    return x")], "basics.py:1"),
        ([("basics.py", "@torch.no_grad()\ndef weigh(x):\n    return x")], "basics.py:2"),
        ([("basics.py", f"{ONE}\nweigh = other")], "basics.py:4"),
        ([("basics.py", f"{ONE}\nweigh == other")], "basics.py:1"),
        ([("basics.py", STUB)], ""),
        ([("basics.py", "def weigh(x):\r\n    return x")], "basics.py:1"),
        ([("hw.ipynb", f"%%bash\n{ONE}")], ""),
        ([("basics.py", "if fast:\n    def weigh(x):\n        return x")], ""),
    ],
)
def test_the_definition_that_counts_is_found(files: list[tuple[str, str]], where: str) -> None:
    assert place_of("weigh", *files) == where


def test_what_the_engine_said_decides() -> None:
    files = ("basics.py", ONE), ("hw.py", ONE)
    told = "weigh is defined in basics.py and in hw.py; the one in hw.py counts"
    assert place_of("weigh", *files, told=told) == "hw.py:1"
    assert place_of("weigh", *files, told="the one in gone.py counts") == ""


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "tests/submissions").iterdir()))
def test_answers_are_found_where_the_engine_finds_them(name: str) -> None:
    course = load_course(ROOT / "exercises")
    stubs = course.stubs()
    trees = {unit: skeletons(text) for unit, text in stubs.items()}
    ours: ByName = definitions_in([SourceText(unit, (t,)) for unit, t in stubs.items()])
    (submission,) = find_submissions([ROOT / "tests/submissions" / name], course, single=True)
    files = [read_file(source) for source in submission.sources]
    own = definitions_in(submission.sources)
    for unit in course.units:
        for exercise in unit.exercise:
            wanted = Wanted(exercise.name, unit.name, trees[unit.name].get(exercise.name, ""))
            found, _ = find_definitions(wanted, files)
            where = answer_that_counts(exercise.name, unit.name, own, ours, "\n".join(found.notes))
            if found.status == "found" and found.place is not None:
                assert where is not None, exercise.name
                place = found.place
                assert (where.file, where.cell, where.line) == (place.file, place.cell, place.line)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("a.py line 12 raised X", ("a.py", 12, 0)),
        ("a.py line 12 b.py line 3 raised X", ("a.py line 12 b.py", 3, 0)),
        ("nb.ipynb cell 2 line 3 raised X", ("nb.ipynb", 3, 2)),
        ("nb.ipynb line 3 raised X", None),
        ("it raised X at a.py line 12", None),
        ("a.py line ٣ raised X", None),
        ("a.py line 12345678 raised X", None),
    ],
)
def test_the_place_in_a_message_is_read_as_it_was_written(
    message: str, place: tuple[str, int, int] | None
) -> None:
    sources = [
        SourceText("a.py", ("",)),
        SourceText("a.py line 12 b.py", ("",)),
        SourceText("nb.ipynb", ("", "")),
    ]
    found = told_place(message, sources)
    assert (found and (found.file, found.line, found.cell)) == place
