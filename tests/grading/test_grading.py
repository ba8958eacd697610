"""One submission becomes one grade: the ladder, the statuses, and the points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.course.collection import rung
from grader.course.course import Course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_exercises, grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, Grade, TestResult, split_points
from grader.sandbox.session import Channel, Limits
from grader.wire import SourceText

Marks = dict[str, str]


def grade_text(desk: Desk, text: str, name: str = "ada.py") -> Grade:
    """Grade a submission of one file."""
    return grade_submission(desk, Submission("ada", (SourceText(name, (text,)),)))


def exercise(graded: Grade, name: str) -> ExerciseResult:
    """One exercise of a grade."""
    return next(result for result in graded.exercises if result.name == name)


def result_of(graded: Grade, name: str, test: str) -> TestResult:
    """One test of an exercise."""
    return next(result for result in exercise(graded, name).tests if result.name == test)


def ladder(desk: Desk, graded: Grade, name: str) -> Marks:
    """The rungs of an exercise, each with the one status that all its tests have."""
    rungs = {test.name: test.rung for test in desk.tests[name]}
    marks: dict[str, set[str]] = {}
    for test in exercise(graded, name).tests:
        marks.setdefault(rungs.get(test.name, test.name), set()).add(test.status)
    return {rung: "/".join(sorted(statuses)) for rung, statuses in marks.items()}


@pytest.fixture
def desk_with(
    one_warm_process: None, tmp_path: Path, tiny: Course
) -> Iterator[Callable[[str], Desk]]:
    """A desk whose only tests are hidden ones with this text."""
    with ExitStack() as stack:

        def open_it(text: str) -> Desk:
            path = tmp_path / "test_broken.py"
            path.write_text(f"import pytest\nfrom grader.testing import *\n\n{text}", "utf-8")
            return stack.enter_context(
                Order(tiny, "s", {path: True}, only=("center",), isolation="weak").desk()
            )

        yield open_it


# --- errors --------------------------------------------------------------------------------------


def test_an_error_in_a_helper_shows_the_line_that_called_it(desk: Desk) -> None:
    text = (
        "def mean_of(x, size):\n    return x.view(size).mean()\n"
        "def center(x):\n    return x - mean_of(x, (7, 9))\n"
    )
    tests = exercise(grade_text(desk, text), "center").tests
    told = next(test.message or "" for test in tests if test.status == "error")
    first, line, called, calling, *_ = told.splitlines()
    assert first.startswith("ada.py line 2 raised RuntimeError")
    assert line == "  return x.view(size).mean()"
    assert called == "ada.py line 4 called this function"
    assert calling == "  return x - mean_of(x, (7, 9))"


# --- right, untouched, absent --------------------------------------------------------------------


def test_the_references_themselves_earn_every_point(desk: Desk, right: str) -> None:
    graded = grade_text(desk, right)
    assert (graded.status, graded.total, graded.max) == ("graded", 10, 10)
    assert {test.status for result in graded.exercises for test in result.tests} == {"passed"}
    assert all(result.solved for result in graded.exercises)


def test_stubs_are_missing_and_earn_nothing(desk: Desk, tiny: Course) -> None:
    stubs = "\n".join(tiny.stub_file(unit.name).read_text("utf-8") for unit in tiny.units)
    graded = grade_text(desk, stubs)
    assert (graded.status, graded.total, graded.max) == ("graded", 0, 10)
    assert {test.status for result in graded.exercises for test in result.tests} == {"missing"}
    assert "still the stub" in (exercise(graded, "center").tests[0].message or "")


def test_an_exercise_that_was_not_handed_in_is_missing(desk: Desk, right: str) -> None:
    graded = grade_text(desk, right.replace("class Projection", "class Proj"))
    assert set(ladder(desk, graded, "Projection").values()) == {"missing"}
    assert "no definition with this name" in (exercise(graded, "Projection").tests[0].message or "")
    assert graded.total == 6


@pytest.mark.parametrize(
    ("problems", "status"), [((), "empty"), (("a.ipynb: not a notebook",), "unreadable")]
)
def test_without_any_source_all_is_missing_and_it_is_said_why(
    desk: Desk, problems: tuple[str, ...], status: str
) -> None:
    graded = grade_submission(desk, Submission("ada", (), problems))
    assert (graded.status, graded.total, graded.max) == (status, 0, 10)
    assert {test.status for result in graded.exercises for test in result.tests} == {"missing"}
    assert graded.message
    assert all(problem in graded.message for problem in problems)


def test_what_could_not_be_read_and_what_was_ambiguous_is_noted(desk: Desk, right: str) -> None:
    other = right.replace("x - x.mean()", "x + -x.mean()")
    sources = (SourceText("a.py", (right,)), SourceText("b.py", (other,)))
    graded = grade_submission(desk, Submission("ada", sources, ("c.py: larger than 4 MB",)))
    assert graded.total == 10
    assert "c.py: larger than 4 MB" in graded.notes
    assert any("center is defined in a.py and in b.py" in note for note in graded.notes)


# --- the ladder ----------------------------------------------------------------------------------

NAMES = {
    "center": "center(x)", "staircase": "staircase(size)", "weigh": "weigh(scores)",
}  # fmt: skip
EXP = "(scores - scores.max(dim=-1, keepdim=True).values).exp()"

LADDER = {
    "a wrong shape": (
        "center", "return x[1:]",
        "shape:failed value:skipped property:skipped gradient:skipped efficiency:skipped",
    ),
    "a wrong dtype": (
        "center", "return (x - x.mean()).double()",
        "shape:failed value:skipped property:skipped gradient:skipped efficiency:skipped",
    ),
    "nothing returned": (
        "center", "x - x.mean()",
        "shape:failed value:skipped property:skipped gradient:skipped efficiency:skipped",
    ),
    "a wrong value": (
        "center", "return x * 0",
        "shape:passed value:failed property:skipped gradient:skipped efficiency:skipped",
    ),
    "a broken property": (
        "weigh", f"weights = {EXP}\n    weights = weights / weights.sum(-1, keepdim=True)\n"
        "    scores.zero_()\n    return weights",
        "shape:passed value:passed property:failed/passed gradient:passed stability:passed",
    ),
    "a broken gradient": (
        "center", "return x - x.mean().item()",
        "shape:passed value:passed property:passed gradient:failed efficiency:passed",
    ),
    "overflow": (
        "weigh", "return scores.exp() / scores.exp().sum(-1, keepdim=True)",
        "shape:passed value:passed property:passed gradient:passed stability:failed",
    ),
    "a loop": (
        "center", "return torch.stack([part - x.mean() for part in x])",
        "shape:passed value:passed property:passed gradient:passed efficiency:failed",
    ),
    "an exception": (
        "center", "raise ValueError('no')",
        "shape:error value:skipped property:skipped gradient:skipped efficiency:skipped",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), LADDER.values(), ids=LADDER.keys())
def test_what_stands_on_a_broken_rung_is_skipped(
    desk: Desk, right: str, name: str, body: str, expected: str
) -> None:
    graded = grade_text(desk, f"{right}\n\ndef {NAMES[name]}:\n    {body}\n")
    marks = ladder(desk, graded, name)
    assert (marks.pop("exists"), marks.pop("signature")) == ("passed", "passed")
    marks.pop("operations", None)
    assert marks == dict(part.split(":") for part in expected.split())
    assert sum(result.solved for result in graded.exercises) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def center():\n    return 1", "takes (nothing); the statement lists (x)"),
        ("def center(x, y):\n    return x", "needs (x, y); the statement lists only (x)"),
        ("def center(x, *, y):\n    return x", "needs y by keyword"),
        ("class center:\n    pass", "should be a function, not a class"),
    ],
)
def test_a_signature_that_does_not_bind_is_told_and_all_else_is_skipped(
    desk: Desk, right: str, text: str, told: str
) -> None:
    graded = grade_text(desk, f"{right}\n\n{text}\n")
    marks = ladder(desk, graded, "center")
    assert marks.pop("exists") == "passed"
    assert marks.pop("signature") == "failed"
    assert set(marks.values()) == {"skipped"}
    assert told in (result_of(graded, "center", "signature").message or "")


@pytest.mark.parametrize(
    "text",
    ["def center(x, scale=1):\n", "def center(*x):\n    x = x[0]\n", "def center(x, /, **k):\n"],
)
def test_a_signature_that_binds_by_position_will_do(desk: Desk, right: str, text: str) -> None:
    graded = grade_text(desk, f"{right}\n\n{text}    return x - x.mean()\n")
    assert exercise(graded, "center").solved


def test_a_text_that_is_not_python_is_an_error_with_its_line_and_not_missing(desk: Desk) -> None:
    graded = grade_text(desk, "import torch\n\ndef center(x):\n    return x -\n", "basics.py")
    marks = ladder(desk, graded, "center")
    assert marks.pop("exists") == "error"
    assert set(marks.values()) == {"skipped"}
    assert "basics.py line 4" in (exercise(graded, "center").tests[0].message or "")
    assert set(ladder(desk, graded, "weigh").values()) == {"missing"}


def test_every_test_of_the_broken_rung_is_run(desk: Desk, right: str) -> None:
    graded = grade_text(desk, f"{right}\n\ndef center(x):\n    return x * 0\n")
    by_name = {test.name: test.status for test in exercise(graded, "center").tests}
    assert by_name["test_center_of_three_numbers"] == "failed"
    assert by_name["test_center_agrees_with_the_reference"] == "failed"


def test_tests_are_told_in_the_order_of_the_ladder_public_before_hidden(
    desk: Desk, right: str
) -> None:
    graded = grade_text(desk, right)
    for name, tests in desk.tests.items():
        told = [test.name for test in exercise(graded, name).tests]
        climbed = sorted(tests, key=lambda test: (rung.order.index(test.rung), test.hidden))
        assert told[:2] == ["exists", "signature"]
        assert [test for test in told[2:] if test != "operations"] == [t.name for t in climbed]


def test_the_case_that_failed_is_named(desk: Desk, right: str) -> None:
    text = f"{right}\n\ndef center(x):\n    return x - x.mean() if len(x) < 9 else x\n"
    value = result_of(grade_text(desk, text), "center", "test_center_agrees_with_the_reference")
    assert value.status == "failed"
    assert (value.message_with_case or "").startswith("[tokens = 9] ")


# --- how a test can end --------------------------------------------------------------------------

ENDINGS = {
    "raising": ("raise ValueError('a bad day')", "error", "raised ValueError: a bad day"),
    "exiting": ("import sys\n    sys.exit(0)", "error", "raised SystemExit: 0"),
    "interrupting": ("raise KeyboardInterrupt", "error", "raised KeyboardInterrupt"),
    "recursing": ("return center(x)", "error", "raised RecursionError"),
    "a part left over": ("x.mean()\n    raise NotImplementedError", "error", "a part to write"),
    "looping": ("while True:\n        pass", "timeout", "too long"),
    "asking torch for memory": ("return torch.ones(10**9)", "memory", "memory"),
    "asking Python for memory": ("return [0] * 10**9", "memory", "memory"),
    "leaving": ("import os\n    os._exit(0)", "crashed", "ended its own process"),
    "aborting": ("import os\n    os.abort()", "crashed", "SIGABRT"),
    "crashing": ("import os\n    os.kill(os.getpid(), 11)", "crashed", "crash inside a library"),
    "returning an oddity": ("return object()", "failed", "expected shape|a tensor"),
    "returning too much": ("return x.new_zeros(1).expand(10**10)", "failed", "larger than"),
}


@pytest.mark.parametrize(("body", "status", "told"), ENDINGS.values(), ids=ENDINGS.keys())
def test_each_way_to_end_has_its_status_and_costs_that_exercise_only(
    desk: Desk, right: str, body: str, status: str, told: str
) -> None:
    graded = grade_text(desk, f"{right}\n\ndef center(x):\n    {body}\n")
    first = result_of(graded, "center", "test_center_keeps_the_shape")
    assert first.status == status
    assert any(word in (first.message or "") for word in told.split("|"))
    assert exercise(graded, "center").points == 0
    assert (graded.status, graded.total) == ("graded", 8)


def test_an_exception_is_told_with_the_students_line(desk: Desk, right: str) -> None:
    graded = grade_text(desk, f"def center(x):\n    y = x\n    return y.shape[7]\n{right[:0]}")
    message = result_of(graded, "center", "test_center_keeps_the_shape").message or ""
    assert message.startswith("ada.py line 3 raised IndexError")
    assert "return y.shape[7]" in message


def test_what_the_code_printed_stands_below_what_went_wrong_in_a_public_check(
    desk: Desk, right: str
) -> None:
    text = right + "\ndef center(x):\n    print('mean', 3)\n    return x\n"
    graded = grade_text(desk, text)
    told = {test.name: test for test in exercise(graded, "center").tests if test.message}
    shown = {
        test.hidden: "your code printed:\n  mean 3" in str(test.message) for test in told.values()
    }
    assert shown[False] is True
    assert shown.get(True, False) is False  # prints hold the inputs of hidden tests


def test_endless_printing_costs_nothing_and_little_of_it_is_kept(desk: Desk, right: str) -> None:
    text = right + (
        "\n\ndef center(x):\n    for _ in range(1000):\n        print('x' * 10**6)\n    return x\n"
    )
    message = result_of(grade_text(desk, text), "center", "test_center_of_three_numbers").message
    assert message is not None
    assert 1_000 < len(message) < 5_000


@pytest.mark.parametrize(
    ("broken", "status"),
    [
        ("raise RuntimeError", "error"),
        ("os._exit(1)", "crashed"),
        ("os.abort()", "crashed"),
        ("return torch.ones(10**9)", "memory"),
        ("while True: pass", "timeout"),
    ],
)
def test_a_crash_in_one_test_leaves_the_next(
    desk: Desk, right: str, broken: str, status: str
) -> None:
    weigh = (
        "\n\nimport os\ndef weigh(scores):\n"
        f"    if scores.dtype == torch.float64: {'pass' if 'while' in broken else broken}\n"
        f"    while scores.dtype == torch.float64 and {'while' in broken}: pass\n"
        f"    weights = {EXP}\n    return weights / weights.sum(-1, keepdim=True)\n"
    )
    graded = grade_text(desk, right + weigh)
    marks = Counter(test.status for test in exercise(graded, "weigh").tests)
    assert result_of(graded, "weigh", "test_weigh_makes_distributions").status == status
    assert marks == {"passed": len(exercise(graded, "weigh").tests) - 1, status: 1}
    assert graded.total == pytest.approx(10 - 1 / 3, abs=0.001)


def test_a_module_lost_within_a_test_is_not_asked_again(desk: Desk, right: str) -> None:
    text = (
        f"{right}\n\nimport os\nclass Projection(nn.Linear):\n"
        "    def forward(self, x):\n        os._exit(0)\n"
    )
    graded = grade_text(desk, text)
    shape = result_of(graded, "Projection", "test_projection_has_the_shape_of_the_contract")
    assert shape.status == "crashed"
    assert graded.total == 6


def test_a_text_that_cannot_even_be_read_in_time_costs_that_submission(desk: Desk) -> None:
    graded = grade_text(desk, "def center(x):\n    return x\n" + "x = [1, 2, 3]\n" * 200_000)
    assert graded.status == "graded"
    assert graded.total == 0
    first = exercise(graded, "center").tests[0].status
    assert first in ("timeout", "memory", "crashed", "error")  # whichever limit comes first


# --- points --------------------------------------------------------------------------------------


def test_a_wrong_value_earns_nothing_for_what_it_keeps(desk: Desk, right: str) -> None:
    rows_still_sum_to_one = "return torch.full_like(scores, 1 / scores.shape[-1])"
    graded = grade_text(desk, f"{right}\n\ndef weigh(scores):\n    {rows_still_sum_to_one}\n")
    assert exercise(graded, "weigh").points == 0


def test_what_passes_is_paid_by_weight(desk: Desk, right: str) -> None:
    overflows = "return scores.exp() / scores.exp().sum(-1, keepdim=True)"
    graded = grade_text(desk, f"{right}\n\ndef weigh(scores):\n    {overflows}\n")
    # Weights 5 + 1 + 1 + 1 + 1 share three points, and the last one is lost.
    assert exercise(graded, "weigh").points == pytest.approx(3 * 8 / 9, abs=0.001)


def test_points_add_up_exactly_in_thousandths(desk: Desk, right: str, tiny: Course) -> None:
    wrong = f"{right}\n\ndef center(x):\n    return x - x.mean().item()\n"
    for graded in (grade_text(desk, right), grade_text(desk, wrong)):
        for result in graded.exercises:
            most = [round(test.max * 1000) for test in result.tests]
            got = [round(test.points * 1000) for test in result.tests]
            assert sum(most) == tiny.exercises[result.name].thousandths
            assert sum(got) == round(result.points * 1000)
            assert all(test.points in (0, test.max) for test in result.tests)
        total = sum(round(result.points * 1000) for result in graded.exercises)
        assert total == round(graded.total * 1000)


def test_public_checks_carry_no_points_beside_hidden_tests(desk: Desk, right: str) -> None:
    for result in grade_text(desk, right).exercises:
        assert {test.max for test in result.tests if not test.hidden} == {0}
        assert sum(test.max > 0 for test in result.tests) >= 2


@pytest.mark.usefixtures("one_warm_process")
def test_public_checks_carry_the_points_where_there_is_nothing_else(
    tiny: Course, right: str
) -> None:
    files = dict.fromkeys(tiny.check_files(), False)
    with Order(tiny, "s", files, only=("staircase",), isolation="weak").desk() as desk:
        graded = grade_text(desk, right)
    assert (graded.total, graded.max) == (1, 1)
    assert [result.name for result in graded.exercises] == ["staircase"]
    assert [test.max for test in graded.exercises[0].tests if test.max] == [1]


@given(
    total=st.integers(0, 100_000),
    weights=st.lists(st.floats(0, 1000, allow_subnormal=False), min_size=1, max_size=12),
)
def test_shares_are_whole_and_fair_and_add_up(total: int, weights: list[float]) -> None:
    shares = split_points(total, weights)
    whole = sum(weights)
    assert sum(shares) == (total if whole else 0)
    for share, weight in zip(shares, weights, strict=True):
        assert share >= 0
        assert abs(share - (total * weight / whole if whole else 0)) <= 1 + 1e-6
        assert share == 0 or weight > 0


def test_equal_weights_differ_by_one_thousandth_at_most() -> None:
    assert split_points(1000, [1, 1, 1]) == [334, 333, 333]
    assert split_points(1000, [2, 0, 1]) == [667, 0, 333]
    assert split_points(0, [1, 2]) == [0, 0]
    assert split_points(10, [0, 0]) == [0, 0]


def test_the_same_submission_gets_the_same_grade_again(desk: Desk, right: str) -> None:
    text = f"{right}\n\ndef weigh(scores):\n    return torch.rand_like(scores)\n"
    first, second = grade_text(desk, text), grade_text(desk, text)
    assert msgspec.structs.replace(first, seconds=0) == msgspec.structs.replace(second, seconds=0)


def test_a_grade_comes_back_from_json_as_it_was(desk: Desk, right: str) -> None:
    graded = grade_text(desk, f"{right}\n\ndef center(x):\n    return 'é\\x1b[31m\\ud800'\n")
    assert Grade.from_json(graded.to_json()) == graded
    assert graded.to_json().startswith(b'{"schema":1,')


# --- forbidden operations ------------------------------------------------------------------------

FORBIDDEN = {
    "by name": "return torch.softmax(scores, dim=-1)",
    "as a method": "return scores.softmax(-1)",
    "as a functional": "import torch.nn.functional as F\n    return F.softmax(scores, -1)",
    "as a module": "return nn.Softmax(dim=-1)(scores)",
    "as a logarithm": "return torch.log_softmax(scores, dim=-1).exp()",
    "by another name": "from torch import softmax as mine\n    return mine(scores, -1)",
    "by getattr": "return getattr(torch, 'soft' + 'max')(scores, -1)",
    "as an operator": "return torch.ops.aten.softmax.int(scores, -1)",
    "under vmap": "return torch.vmap(lambda row: torch.softmax(row, 0))(scores)",
}
UNAVAILABLE = {
    "in a thread": (
        "import threading\n    out = []\n"
        "    work = threading.Thread(target=lambda: out.append(scores.softmax(-1)))\n"
        "    work.start()\n    work.join()\n    return out[0]"
    ),
    "in a pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "    with ThreadPoolExecutor(1) as pool:\n"
        "        return pool.submit(torch.softmax, scores, -1).result()"
    ),
    "hidden from the trace": (
        "with torch._C.DisableTorchFunction():\n        return torch.softmax(scores, -1)"
    ),
}


@pytest.mark.parametrize("body", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_forbidden_operation_voids_the_exercise_and_its_line_is_named(
    desk: Desk, right: str, body: str
) -> None:
    text = f"{right}\n\ndef weigh(scores):\n    {body}\n"
    graded = grade_text(desk, text)
    verdict = result_of(graded, "weigh", "operations")
    assert verdict.status == "failed"
    assert exercise(graded, "weigh").points == 0
    assert graded.total == 7
    message = verdict.message or ""
    line = int(message.removeprefix("ada.py line ").partition(" ")[0])
    assert text.splitlines()[line - 1] in body.splitlines() or any(
        text.splitlines()[line - 1].strip() == part.strip() for part in body.splitlines()
    )
    assert "torch's own softmax" in verdict.title


@pytest.mark.parametrize("body", UNAVAILABLE.values(), ids=UNAVAILABLE.keys())
def test_a_forbidden_operation_where_it_would_not_be_seen_earns_nothing(
    desk: Desk, right: str, body: str
) -> None:
    graded = grade_text(desk, f"{right}\n\ndef weigh(scores):\n    {body}\n")
    assert exercise(graded, "weigh").points == 0
    assert graded.total == 7


def test_of_a_use_that_only_hidden_tests_saw_no_line_is_told(desk: Desk, right: str) -> None:
    body = (
        "    if scores.dtype == torch.float64: return scores.softmax(-1)\n"
        f"    weights = {EXP}\n    return weights / weights.sum(-1, keepdim=True)\n"
    )
    graded = grade_text(desk, f"{right}\n\ndef weigh(scores):\n{body}")
    verdict = result_of(graded, "weigh", "operations")
    assert (verdict.message or "").startswith("your code uses softmax")
    assert exercise(graded, "weigh").points == 0


def test_a_forbidden_operation_is_told_once_and_works_where_it_is_allowed(
    desk: Desk, right: str
) -> None:
    text = right + (
        "\n\ndef weigh(scores):\n    return torch.softmax(scores, -1)\n"
        "\ndef center(x):\n    return x - x.mean() + 0 * torch.softmax(x, 0)\n"
    )
    graded = grade_text(desk, text)
    assert exercise(graded, "center").solved
    told = {test.name: test.status for test in exercise(graded, "weigh").tests if test.message}
    assert told == {"operations": "failed"}
    statuses = {test.status for test in exercise(graded, "weigh").tests[3:]}
    assert statuses == {"skipped"}


def test_a_helper_in_another_file_is_no_hiding_place(desk: Desk, right: str) -> None:
    sources = (
        SourceText(
            "ada.py",
            (
                f"{right}\n\nfrom tools import weigh_them\n\n"
                "def weigh(scores):\n    return weigh_them(scores)\n",
            ),
        ),
        SourceText("tools.py", ("def weigh_them(scores):\n    return scores.softmax(-1)\n",)),
    )
    graded = grade_submission(desk, Submission("ada", sources))
    assert exercise(graded, "weigh").points == 0
    assert "tools.py line 2" in (result_of(graded, "weigh", "operations").message or "")


OWN = f"weights = {EXP}\n    return weights / weights.sum(-1, keepdim=True)\n"

ALLOWED = {
    "a function of one's own with that name": (
        f"def softmax(scores):\n    {OWN}\ndef weigh(scores):\n    return softmax(scores)\n"
    ),
    "a method of one's own with that name": (
        f"class F:\n    @staticmethod\n    def softmax(scores):\n        scores = scores\n        "
        f"{OWN.replace('    return', '        return')}\n"
        "def weigh(scores):\n    return F.softmax(scores)\n"
    ),
    "a variable with that name": f"def weigh(scores):\n    softmax = 'softmax'\n    {OWN}",
    "a line that never runs": (
        f"def weigh(scores):\n    if scores is None:\n        return torch.softmax(scores, 0)\n    "
        f"{OWN}"
    ),
    "a comparison beside the answer": (
        f"def weigh(scores):\n    {OWN}\n\n"
        "def test_weigh():\n    assert weigh(torch.ones(2, 2)) == torch.softmax(torch.ones(2), 0)\n"
        "test_weigh()\n"
    ),
    "another exercise that may use it": (
        "def center(x):\n    torch.softmax(x, 0)\n    return x - x.mean()\n"
    ),
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_only_looks_forbidden_is_not_convicted(desk: Desk, right: str, text: str) -> None:
    graded = grade_text(desk, f"{right}\n\n{text}\n")
    assert result_of(graded, "weigh", "operations").status == "passed"
    assert graded.total == 10


@pytest.mark.parametrize(
    "line",
    [
        "import os, subprocess, multiprocessing, ctypes",
        "import sys; IN_COLAB = 'google.colab' in sys.modules",
        "from torch import jit, nn, overrides",
        "import torch.jit; EPS: torch.jit.Final[float] = 0.0",
    ],
)
def test_what_could_hide_an_operation_costs_nothing_where_none_is_hidden(
    desk: Desk, right: str, line: str
) -> None:
    text = (
        f"{line}\nimport torch\n"
        + (
            "def weigh(scores):\n    assert subprocess or True\n"
            if "subprocess" in line
            else "def weigh(scores):\n"
        )
        + f"    weights = {EXP}\n    return weights / weights.sum(-1, keepdim=True)\n"
    )
    assert exercise(grade_text(desk, f"{right}\n\n{text}"), "weigh").solved


def test_exercises_that_forbid_nothing_have_no_such_check(desk: Desk, right: str) -> None:
    assert "operations" not in ladder(desk, grade_text(desk, right), "center")


# --- faults of ours ------------------------------------------------------------------------------

VALUE = '@rung.value("center")\ndef test_center({}):\n    """T."""\n    {}\n'

FAULTS = {
    "a name that is not there": ("student", "undefined"),
    "an exception": ("student", "1 / 0"),
    "an exercise that is not there": ("student", "student.centre(1)"),
    "a comparison of proxies": ("student, reference", "assert student.center == reference.center"),
    "a contract that the author broke": ("student, make", "student.center(make.normal(a=2, b=3))"),
    "a reference that raises": ("student, reference", "reference.center('text')"),
    "a wrong call of a helper": ("student, make", "make.normal('wide', tokens=2)"),
    "a skip": ("student", "pytest.skip('not today')"),
    "an exit": ("student", "raise SystemExit"),
}


@pytest.mark.parametrize(("fixtures", "body"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_grader_is_told_as_such_and_with_its_place(
    desk_with: Callable[[str], Desk], right: str, fixtures: str, body: str
) -> None:
    broken = desk_with(VALUE.format(fixtures, body))
    try:
        graded = grade_text(broken, right)
    except BaseException as escaped:
        raise AssertionError("a grader's fault ended the batch") from escaped
    assert graded.status == "grader_error"
    fault = result_of(graded, "center", "test_center")
    assert fault.status == "grader_error"
    assert "test_broken.py" in (fault.message or "")
    assert graded.message


def test_a_fault_in_one_test_leaves_what_others_say(
    desk_with: Callable[[str], Desk], right: str
) -> None:
    more = '\n@rung.property("center")\ndef test_more(student):\n    """T."""\n    1 / 0\n'
    graded = grade_text(desk_with(VALUE.format("student", "pass") + more), right)
    assert graded.status == "grader_error"
    assert result_of(graded, "center", "test_center").status == "passed"
    assert result_of(graded, "center", "test_more").status == "grader_error"


def test_an_exercise_for_which_there_is_no_test_is_refused_and_not_a_zero_for_all(
    desk_with: Callable[[str], Desk],
) -> None:
    with pytest.raises(CallError, match="center"):
        desk_with(VALUE.replace('"center"', '"weigh"').format("student", "pass"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("pytest.fail('no')", "failed"),
        (
            "with pytest.raises(StudentRaised):\n        student.center(make.normal(tokens=2))",
            "failed",
        ),
        ("assert student.center(make.normal(tokens=2)) is None", "failed"),
    ],
    ids=["pytest.fail", "pytest.raises", "a plain assert"],
)
def test_the_ways_of_pytest_to_fail_are_failures(
    desk_with: Callable[[str], Desk], right: str, body: str, status: str
) -> None:
    failing = desk_with(VALUE.format("student, make", body))
    try:
        graded = grade_text(failing, right)
    except BaseException as escaped:
        raise AssertionError("a failed test ended the batch") from escaped
    assert result_of(graded, "center", "test_center").status == status
    assert (graded.status, graded.total) == ("graded", 0)


def test_a_student_who_raises_what_the_grader_raises_is_no_fault_of_ours(
    desk: Desk, right: str
) -> None:
    text = f"{right}\n\nclass HostFault(Exception):\n    pass\n\n"
    text += "def center(x):\n    raise HostFault('the grader itself failed')\n"
    graded = grade_text(desk, text)
    assert (graded.status, graded.total) == ("graded", 8)
    assert result_of(graded, "center", "test_center_keeps_the_shape").status == "error"


@pytest.mark.parametrize("name", ["center", "weigh"])
def test_one_process_serves_an_exercise_whatever_it_forbids(
    desk: Desk, right: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, really = [], desk.backend.open

    def counted(limits: Limits) -> Channel:
        opened.append(limits)
        return really(limits)

    monkeypatch.setattr(desk.backend, "open", counted)
    with desk.seat(Submission("ada", (SourceText("ada.py", (right,)),)), [name]) as seat:
        (result,) = grade_exercises(desk, seat, [name])
    assert result.solved
    assert len(opened) == 1


def test_an_exercise_of_another_file_is_found_though_another_process_serves_it(
    desk: Desk,
) -> None:
    borrowing = "def weigh(scores):\n    import torch\n    e = torch.exp(scores - scores.amax(-1, True))\n    center(scores)\n    return e / e.sum(-1, keepdim=True)\n"  # noqa: E501
    sources = (
        SourceText("one.py", (borrowing,)),
        SourceText("two.py", ("def center(x):\n    return x - x.mean()\n",)),
    )
    assert desk.forbidden["weigh"] != desk.forbidden["center"]
    graded = grade_submission(desk, Submission("ada", sources))
    assert exercise(graded, "weigh").solved


def test_a_text_that_is_not_python_is_noted_once_with_all_that_it_costs(desk: Desk) -> None:
    text = "def center(x)\n    return x\n\ndef weigh(scores):\n    return scores\n"
    graded = grade_submission(desk, Submission("eve", (SourceText("basics.py", (text,)),)))
    (note,) = graded.notes
    why = "basics.py line 1 is not valid Python: expected ':'"
    assert note == f"{why}; therefore not graded: center, weigh"


def test_a_name_that_is_nearly_right_is_pointed_at(desk: Desk) -> None:
    graded = grade_text(desk, "def centre(x):\n    return x - x.mean()\n")
    told = exercise(graded, "center").tests[0]
    assert told.status == "missing"
    assert (told.message or "").endswith("there is centre: is that it?")


def test_the_name_of_another_exercise_is_not_pointed_at(desk: Desk) -> None:
    graded = grade_text(desk, "def weigh(scores):\n    return scores\n")
    missing = [e.tests[0] for e in graded.exercises if e.tests[0].status == "missing"]
    assert missing
    assert not any("is that it?" in (test.message or "") for test in missing)


def test_a_class_that_hands_everything_to_its_parent_is_no_stub(desk: Desk) -> None:
    text = "from torch import nn\nclass Projection(nn.Linear):\n    def __init__(self, d_in, d_out, bias=False):\n        super().__init__(d_in, d_out, bias=bias)\n"  # noqa: E501
    assert exercise(grade_text(desk, text), "Projection").tests[0].status == "passed"


def test_an_import_that_only_another_file_has_is_called_missing(desk: Desk) -> None:
    sources = (
        SourceText("one.py", ("def center(x):\n    return x - torch.mean(x)\n",)),
        SourceText("two.py", ("import torch\ndef staircase(size):\n    return torch\n",)),
    )
    graded = grade_submission(desk, Submission("ada", sources))
    told = " ".join(test.message or "" for test in exercise(graded, "center").tests)
    assert "torch is defined in another file, not in this one: is an import missing?" in told


@pytest.mark.parametrize("module", ["one", ".one", "exercises.one", "exercises.basics", ".basics"])
def test_a_name_that_another_file_imports_in_vain_is_in_no_other_file(
    desk: Desk, module: str
) -> None:
    """It was renamed: to import it, or the unit that is left out, would not help."""
    sources = (
        SourceText("one.py", ("def taken_awya(x):\n    return x.mean()\n",)),
        SourceText("two.py", (f"from {module} import taken_away\n",)),
        SourceText("six.py", ("def center(x):\n    return x - taken_away(x)\n",)),
    )
    graded = grade_submission(desk, Submission("ada", sources))
    told = " ".join(test.message or "" for test in exercise(graded, "center").tests)
    assert "taken_away is not defined; did you mean taken_awya?" in told
    assert "is in another" not in told
