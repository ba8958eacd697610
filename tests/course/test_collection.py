"""Collecting graders, and that the kit's own runner and plain pytest agree about them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.course.collection import Case, Test, collect
from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import Climb
from grader.intake import find_submissions
from grader.records.faults import CallError
from tests.support.places import TINY
from tests.support.statements import state_weigh

HEAD = "import pytest\nfrom grader.testing import rung\n\n"
VALUE = '''
@rung.value("center", points=2)
def test_center(student):
    """A title."""
'''

Write = Callable[..., list[Test]]


@pytest.fixture
def collected(tmp_path: Path, tiny: Course) -> Write:
    """Collect the tests in a grader file with this text."""

    def write(text: str, hidden: bool = True) -> list[Test]:
        path = tmp_path / "test_some.py"
        path.write_text(HEAD + text, "utf-8")
        return collect([path], hidden, tiny)

    return write


# --- what is collected ---------------------------------------------------------------------------


def test_a_title_is_the_first_line_of_the_docstring_without_its_stop(collected: Write) -> None:
    docstring = '"""The mean is gone.\n\n    More.\n    """'
    text = f'@rung.value("center")\ndef test_it(student):\n    {docstring}\n'
    assert [test.title for test in collected(text)] == ["The mean is gone"]


def test_a_parametrised_function_is_one_test_with_its_cases(collected: Write) -> None:
    (test,) = collected(
        '@rung.value("center", points=3)\n'
        '@pytest.mark.parametrize("size", [2, 5])\n'
        '@pytest.mark.parametrize("kind", ["a", "b"], ids=["first", "second"])\n'
        'def test_it(student, reference, make, size, kind):\n    """T."""\n'
    )
    assert (test.name, test.weight, test.rung, test.exercise) == ("test_it", 3, "value", "center")
    assert {case.label: dict(case.parameters) for case in test.cases} == {
        "first-2": {"size": 2, "kind": "a"},
        "first-5": {"size": 5, "kind": "a"},
        "second-2": {"size": 2, "kind": "b"},
        "second-5": {"size": 5, "kind": "b"},
    }


def test_a_test_gets_only_the_fixtures_that_it_asks_for(collected: Write) -> None:
    text = '@rung.value("center")\ndef test_it(make, student):\n    """T."""\n'
    assert [test.fixtures for test in collected(text)] == [("make", "student")]


def test_a_shape_test_weighs_nothing(collected: Write) -> None:
    text = '@rung.shape("center")\ndef test_it(student):\n    """T."""\n'
    assert [test.weight for test in collected(text, hidden=False)] == [0]


def test_whether_a_test_is_hidden_is_told_by_who_collects(collected: Write) -> None:
    assert [test.hidden for test in collected(VALUE.replace(", points=2", ""), hidden=True)] == [
        True
    ]
    assert [test.hidden for test in collected(VALUE.replace(", points=2", ""), hidden=False)] == [
        False
    ]


def test_collecting_leaves_no_trace_in_the_course(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(TINY, tmp_path / "copy", ignore=shutil.ignore_patterns("__py*")))
    before = sorted(copy.rglob("*"))
    course = load_course(copy / "exercises")
    assert collect(course.grader_files(), True, course)
    assert sorted(copy.rglob("*")) == before


def test_collecting_prints_nothing(collected: Write, capfd: pytest.CaptureFixture[str]) -> None:
    collected("print('loud')\n" + VALUE)
    assert capfd.readouterr() == ("", "")


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (
            'class TestCenter:\n    @rung.value("center")\n    def test_it(self, student):\n'
            '        """T."""\n',
            5,
            "not a class",
        ),
        (
            f"@pytest.fixture(autouse=True)\ndef quiet():\n    pass\n\n{VALUE}",
            9,
            "'quiet'; a test may use student",
        ),
        (
            f"@pytest.fixture\ndef batch():\n    return 2\n\n{VALUE.replace('student', 'batch')}",
            9,
            "'batch'",
        ),
        (VALUE.replace("student", "student, tmp_path"), 5, "'tmp_path'"),
        (VALUE.replace("student", "student, monkeypatch"), 5, "'monkeypatch'"),
        (VALUE.replace("student", "student, request"), 5, "'request'"),
        ("def test_center(student):\n    pass\n", 4, "test_center needs a rung"),
        (VALUE.replace('    """A title."""', "    pass"), 5, "test_center needs a docstring"),
        (VALUE.replace('"center"', '"centre"'), 5, "no exercise called 'centre'"),
        (VALUE.replace("@rung", "@pytest.mark.skip\n@rung"), 5, "skip"),
        (VALUE.replace("@rung", "@pytest.mark.xfail\n@rung"), 5, "xfail"),
        (
            VALUE.replace("@rung", '@pytest.mark.usefixtures("tmp_path")\n@rung'),
            5,
            "'tmp_path'",
        ),
    ],
    ids=[
        "a class",
        "an autouse fixture",
        "a fixture of its own",
        "tmp_path",
        "monkeypatch",
        "request",
        "no rung",
        "no docstring",
        "an unknown exercise",
        "a skip",
        "an xfail",
        "usefixtures",
    ],
)
def test_what_the_two_runners_could_see_differently_is_refused_with_file_and_line(
    collected: Write, text: str, line: int, why: str
) -> None:
    with pytest.raises(CallError) as error:
        collected(text)
    place = re.search(r"(\S+):(\d+): ", str(error.value))
    assert place is not None
    assert place[1].endswith("test_some.py")
    assert abs(int(place[2]) - line) <= 1  # the decorator's line or the function's
    assert re.search(why, str(error.value))


def test_value_tests_must_hold_half_of_an_exercises_points(collected: Write) -> None:
    more = '\n@rung.property("center", points={})\ndef test_more(student):\n    """T."""\n'
    assert len(collected(VALUE + more.format(2))) == 2
    with pytest.raises(CallError, match=r"test_some\.py.*at least half of center's points"):
        collected(VALUE + more.format(2.5))


def test_public_checks_need_not_hold_half_in_value_tests(collected: Write) -> None:
    text = '@rung.property("center")\ndef test_more(student):\n    """T."""\n'
    assert len(collected(text, hidden=False)) == 1


def test_one_name_in_two_files_is_refused(tmp_path: Path, tiny: Course) -> None:
    paths = [tmp_path / "test_a.py", tmp_path / "test_b.py"]
    for path in paths:
        path.write_text(HEAD + VALUE, "utf-8")
    with pytest.raises(CallError, match=r"test_b\.py:\d+: .*another test called test_center"):
        collect(paths, True, tiny)


def test_a_test_in_another_units_file_is_refused(tmp_path: Path, tiny: Course) -> None:
    """Who grades one unit reads no other's files, and would not miss it."""
    path = tmp_path / "test_layers.py"
    path.write_text(HEAD + VALUE, "utf-8")
    with pytest.raises(CallError, match=r"center belongs to the unit basics: use test_basics\.py"):
        collect([path], True, tiny)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def test_it(student:\n", "was never closed"),
        ("import package_that_is_not_installed\n", "package_that_is_not_installed"),
        ("1 / 0\n", "ZeroDivisionError"),
        ('@rung.height("center")\ndef test_it(student):\n    """T."""\n', "height"),
    ],
)
def test_a_grader_file_that_cannot_be_imported_is_told_with_its_name(
    collected: Write, text: str, why: str
) -> None:
    with pytest.raises(CallError) as error:
        collected(text)
    assert "test_some.py" in str(error.value)
    assert why in str(error.value)


def test_two_cases_of_a_test_that_have_one_label_are_refused(collected: Write) -> None:
    text = (
        '@rung.value("center", points=3)\n'
        '@pytest.mark.parametrize("size", [pytest.param(2, id="b-c"), pytest.param(7, id="c")])\n'
        '@pytest.mark.parametrize("kind", ["a", "a-b"])\n'
        'def test_it(student, size, kind):\n    """T."""\n'
    )
    with pytest.raises(CallError, match=r"test_some.py:\d+: two cases of test_it .* \[a-b-c\]"):
        collected(text)


def test_ctrl_c_while_graders_are_collected_is_heard(collected: Write) -> None:
    with pytest.raises(KeyboardInterrupt):
        collected("raise KeyboardInterrupt\n")


def test_a_grader_file_without_tests_is_refused(collected: Write) -> None:
    with pytest.raises(CallError, match="no tests"):
        collected("x = 1\n")


def test_a_grader_file_that_is_not_there_is_refused(tmp_path: Path, tiny: Course) -> None:
    with pytest.raises(CallError, match=r"test_none\.py is missing"):
        collect([tmp_path / "test_none.py"], True, tiny)


# --- rules ---------------------------------------------------------------------------------------


@pytest.fixture
def stating(tmp_path: Path) -> Callable[[str], list[Test]]:
    """Collect hidden tests with this text in a course whose `weigh` states rules."""
    shutil.copytree(TINY, tmp_path / "tiny")
    course = state_weigh(load_course(tmp_path / "tiny" / "exercises"))

    def write(text: str) -> list[Test]:
        path = tmp_path / "test_some.py"
        path.write_text(HEAD + text, "utf-8")
        return collect([path], True, course)

    return write


BODY = 'def test_{}(student{}):\n    """T."""\n'


def test_a_test_quotes_what_is_computed_unless_it_names_rules(
    stating: Callable[[str], list[Test]],
) -> None:
    tests = stating(
        f'@rung.shape("weigh")\n{BODY.format("a", "")}'
        f'@rung.value("weigh")\n{BODY.format("b", "")}'
        f'@rung.property("weigh", rules=("large", "unchanged"))\n{BODY.format("c", "")}'
    )
    assert [test.rules for test in tests] == [
        ("returns",),
        ("computes",),
        ("large", "unchanged"),
    ]


def test_a_case_may_quote_other_rules_than_its_test(stating: Callable[[str], list[Test]]) -> None:
    (test,) = stating(
        '@rung.value("weigh")\n@pytest.mark.parametrize("n", [1, pytest.param(2, '
        f'marks=rung.quotes("large"))])\n{BODY.format("a", ", n")}'
    )
    assert [case.rules for case in test.cases] == [("computes",), ("large",)]
    assert test.rules == ("computes", "large")


@pytest.mark.parametrize(
    "text",
    [
        f'@rung.value("weigh", rules=("dtype",))\n{BODY.format("a", "")}',
        '@rung.value("weigh")\n@pytest.mark.parametrize("n", [pytest.param(2, '
        f'marks=rung.quotes("dtype"))])\n{BODY.format("a", ", n")}',
    ],
    ids=["of a test", "of a case"],
)
def test_a_rule_that_the_statement_does_not_have_is_refused(
    stating: Callable[[str], list[Test]], text: str
) -> None:
    why = (
        r"test_some\.py:\d+: the statement of weigh has no rule called 'dtype'; "
        "there are computes, returns, large, unchanged"
    )
    with pytest.raises(CallError, match=why):
        stating(text)


# --- the two runners agree -----------------------------------------------------------------------

WRONG = """
def center(x):
    return x - x.mean() if len(x) != 9 else x

def staircase(size):
    return torch.ones(size, size).tril()

def weigh(scores):
    return torch.softmax(scores, dim=0)

class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=True)

    def forward(self, x):
        return self.linear(x.detach())
"""

CRASHING = """
import os, ctypes

def center(x):
    return 1 / 0 if len(x) == 5 else x - x.mean()

def staircase(size):
    if size == 4:
        os._exit(0)
    return torch.ones(size, size, dtype=torch.bool).tril()

def weigh(scores):
    if scores.dtype == torch.float64:
        return torch.zeros(10**9, dtype=torch.float64)
    if scores.abs().max() > 100:
        os.abort()
    exp = scores.exp()
    return exp / exp.sum(dim=-1, keepdim=True)

class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        if bias:
            raise SystemExit
        self.linear = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x):
        return self.linear(x)
"""

RAISED = {
    "failed": "AssertionError|ContractBroken|Disagreement",
    "error": "StudentRaised",
    "skipped": "StudentRaised: ForbiddenOperation",  # told by the check for those
}


def with_our_runner(desk: Desk, submission: Path) -> dict[str, tuple[str, str]]:
    """How each hidden test ends, run by itself: what it raised, and a failure's message."""
    (handed_in,) = find_submissions([submission], desk.course, single=True)
    ended = {}
    with desk.seat(handed_in) as seat:
        for test in (test for tests in desk.tests.values() for test in tests if test.hidden):
            *_, (_, _, ran) = Climb(desk, seat, test.exercise).cases([test])
            kind = "" if ran.status == "passed" else RAISED.get(ran.status, "StudentLost")
            told = re.sub(r"^\[.*?\] ", "", ran.message or "") if ran.status == "failed" else ""
            ended[test.name] = (kind, told)
    return ended


def agree(ours: Mapping[str, tuple[str, str]], report: Path) -> None:
    """Compare with a JUnit report: a test's first case that did not pass is its outcome."""
    theirs: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"].partition("[")[0]
        assert case.find("error") is None
        assert case.find("skipped") is None
        failure = case.find("failure")
        theirs[name] = theirs.get(name) or (
            failure.attrib["message"] if failure is not None else ""
        )
    assert theirs.keys() == ours.keys()
    for name, (kind, told) in ours.items():
        assert bool(kind) == bool(theirs[name]), name
        assert re.match(rf"(\w+\.)*({kind})", theirs[name]), (name, theirs[name])
        assert told in theirs[name]  # to the last digit: both drew the same inputs


@pytest.mark.usefixtures("one_warm_process")
@pytest.mark.parametrize("answers", ["", WRONG, CRASHING], ids=["right", "wrong", "crashing"])
def test_plain_pytest_agrees_with_our_runner(
    desk: Desk, tmp_path: Path, right: str, answers: str
) -> None:
    submission = tmp_path / "ada.py"
    submission.write_text(right + answers, "utf-8")
    ours = with_our_runner(desk, submission)
    assert len(ours) > 15
    assert any(kind for kind, _ in ours.values()) == bool(answers)
    report = tmp_path / "report.xml"
    # In this process, next to the torch that is loaded already.
    pytest.main(
        [
            str(TINY / "solutions" / "graders"),
            "--submission",
            str(submission),
            "--grader-seed",
            desk.seed,
            "--junit-xml",
            str(report),
            "-q",
            "-c",
            os.devnull,
            "--rootdir",
            str(TINY),
            "--noconftest",
            "--import-mode=importlib",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
    )
    agree(ours, report)


def test_the_pytest_command_finds_the_kits_fixtures_by_itself(
    desk: Desk, tmp_path: Path, right: str
) -> None:
    submission = tmp_path / "ada.py"
    submission.write_text(f"{right}\n\ndef center(x):\n    return x\n", "utf-8")
    report = tmp_path / "report.xml"
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests/tiny_course/solutions/graders",
            "--submission",
            submission,
            "--grader-seed",
            desk.seed,
            "--junit-xml",
            report,
            "-q",
            "-k",
            "center",
        ],
        cwd=TINY.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout
    ours = with_our_runner(desk, submission)
    agree({name: ended for name, ended in ours.items() if "center" in name}, report)


def test_a_label_of_bare_numbers_is_shown_with_their_names() -> None:
    steps = {"step": 2, "decay": 0.2}
    assert Case("2-0.2", steps).words == "step = 2, decay = 0.2"
    assert Case("the second step", steps).words == "the second step"
    assert Case("a row", {"rows": "a row"}).words == "a row"
    assert Case("", {}).words == ""


def test_a_public_check_has_no_points(collected: Write) -> None:
    with pytest.raises(
        CallError, match=r"test_some\.py:\d+: test_center is a public check.*points="
    ):
        collected(VALUE, hidden=False)
    assert collected(VALUE.replace(", points=2", ""), hidden=False)
