"""What follows from a mistake in an earlier exercise says so, and earns nothing by it."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.feedback.verdict import mistake_of
from grader.grades.gradebook import open_gradebook
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import ExerciseResult
from grader.sandbox.jails import Warm
from grader.student.checking import open_checker
from grader.wire import SourceText
from tests.conftest import Grader, sharing
from tests.support.places import REAL, ROOT

REFERENCE = (ROOT / "solutions" / "causal_attention.py").read_text("utf-8")
NAMES = ("causal_mask", "CausalAttention")
MASK = ("diagonal=1", "diagonal=0")
NO_SCALE = (" / d_out**0.5", "")
TITLE = "The diagonal is hidden too, so a token cannot see itself"


@contextmanager
def opened(warm: Warm, folder: Path) -> Iterator[Desk]:
    course = load_course(folder / "exercises")
    seed, files = course.hidden_seed(), course.tests_of()
    with sharing(warm), Order(course, seed, files, only=NAMES, isolation="weak").desk() as desk:
        yield desk


@pytest.fixture(scope="module")
def desk(warm: Warm) -> Iterator[Desk]:
    with opened(warm, ROOT) as desk:
        yield desk


def graded(desk: Desk, *changes: tuple[str, str]) -> dict[str, ExerciseResult]:
    """The reference with these changes, graded."""
    text = REFERENCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return grade_text(desk, text)


def grade_text(desk: Desk, text: str) -> dict[str, ExerciseResult]:
    """A submission of this file, graded."""
    submission = Submission("ada", (SourceText("causal_attention.py", (text,)),))
    return {result.name: result for result in grade_submission(desk, submission).exercises}


def told(result: ExerciseResult) -> set[str | None]:
    named = [mistake_of(t) for t in result.tests if t.status in ("failed", "error")]
    return {mistake.heading if mistake else None for mistake in named}


def test_a_layer_on_a_wrong_mask_is_told_where_its_results_come_from(desk: Desk) -> None:
    results = graded(desk, MASK)
    assert told(results["causal_mask"]) == {TITLE}
    assert told(results["CausalAttention"]) == {f"Follows from causal_mask: {TITLE}"}


def test_what_follows_is_data_and_not_a_form_of_words(desk: Desk) -> None:
    failed = [test for test in graded(desk, MASK)["CausalAttention"].tests if test.mistake]
    assert failed
    assert {(test.follows, test.mistake) for test in failed} == {("causal_mask", TITLE)}
    assert {test.status for test in failed} == {"failed"}


def test_what_follows_earns_no_points_and_what_was_skipped_behind_it_neither(desk: Desk) -> None:
    results = graded(desk, MASK)
    assert results["causal_mask"].points == 0
    layer = results["CausalAttention"]
    assert {test.status for test in layer.tests} == {"passed", "failed", "skipped"}
    assert layer.points == sum(test.max for test in layer.tests if test.status == "passed")
    assert layer.points < layer.max / 2


def test_a_mistake_of_the_layers_own_is_not_hidden_behind_that_of_the_mask(desk: Desk) -> None:
    alone, both = graded(desk, NO_SCALE), graded(desk, MASK, NO_SCALE)
    assert told(alone["CausalAttention"]) != {None}
    assert not any(test.follows for test in both["CausalAttention"].tests)
    assert both["CausalAttention"].points <= alone["CausalAttention"].points


# --- an answer that holds the code of an earlier exercise ----------------------------------------

INLINE = """
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
    def forward(self, x):
        x = self.up(x)
        return self.down(x * (1 + (x / 2 ** 0.5).erf()){})
"""


@pytest.mark.parametrize(
    ("ending", "names"), [("", {"1 + erf is never halved"}), (" / 3", {None}), (" / 2", set())]
)
def test_an_earlier_exercises_mistake_is_named_in_an_answer_that_does_without_it(
    warm: Warm, ending: str, names: set[str | None]
) -> None:
    course = load_course(REAL)
    seed, files = course.hidden_seed(), course.tests_of()
    order = Order(course, seed, files, only=("FeedForward",), isolation="weak")
    with sharing(warm), order.desk() as desk:
        (result,) = grade_text(desk, INLINE.format(ending)).values()
    assert told(result) == names
    assert not any(test.follows for test in result.tests)


# --- what proves nothing -------------------------------------------------------------------------

NO_BOOLEANS = "masked_fill_ only supports boolean masks, but got mask with dtype float"
FLOATS = "torch.ones(num_tokens, num_tokens).triu(1)"
MASKS = {
    "wrong always": f"return {FLOATS}",
    "wrong for three tokens, which a public check sees": (
        f"return {FLOATS} if num_tokens == 3 else {FLOATS}.bool()"
    ),
}
LAYERS = {
    "raises the text": f"raise RuntimeError({NO_BOOLEANS!r})",
    "has torch raise it": "torch.ones(2, 2).masked_fill_(torch.ones(2, 2), 0)",
    "answers what it is given": "return x",
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layer", LAYERS)
def test_an_empty_layer_on_a_wrong_mask_earns_nothing_and_follows_from_nothing(
    layer: str, mask: str, desk: Desk
) -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        f"def causal_mask(num_tokens):\n    {MASKS[mask]}\n"
        "class CausalAttention(nn.Module):\n"
        "    def __init__(self, *_):\n        super().__init__()\n"
        f"    def forward(self, x):\n        {LAYERS[layer]}\n"
    )
    results = grade_text(desk, text)
    assert "The mask holds numbers, not booleans" in told(results["causal_mask"])
    assert results["CausalAttention"].points == 0
    assert not any(test.follows for test in results["CausalAttention"].tests)


def test_an_exception_that_a_right_layer_raises_on_a_wrong_mask_is_shown_as_itself(
    desk: Desk,
) -> None:
    result = graded(desk, (", dtype=torch.bool)", ")"))["CausalAttention"]
    assert told(result) == {None}
    assert any(NO_BOOLEANS in (test.message or "") for test in result.tests)


def test_a_check_of_the_layer_alone_looks_below_it(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "causal_attention.py").write_text(REFERENCE.replace(*MASK), "utf-8")
    with (
        sharing(warm),
        open_checker(load_course(REAL), ["CausalAttention"], tmp_path) as checker,
    ):
        (result,) = checker.check()
    assert told(result) == {f"Follows from causal_mask: {TITLE}"}


def test_nothing_follows_from_a_mistake_on_which_the_right_answer_would_pass(
    warm: Warm, tmp_path: Path
) -> None:
    (tmp_path / "softmax.py").write_text(
        "import torch\n"
        "def normalize_by_sum(scores):\n    return (scores / scores.sum()).detach()\n"
        "def softmax_naive(scores):\n    scores.exp_()\n    return scores / scores.sum()\n",
        "utf-8",
    )
    with (
        sharing(warm),
        open_checker(load_course(REAL), ["normalize_by_sum", "softmax_naive"], tmp_path) as checker,
    ):
        results = {result.name: result for result in checker.check()}
    assert not any("Follows" in (title or "") for title in told(results["softmax_naive"]))


# --- what an instructor decides ------------------------------------------------------------------


@pytest.fixture
def book(desk: Desk, tmp_path: Path) -> Path:
    """A gradebook with ada, whose layer stands on a wrong mask."""
    submission = Submission(
        "ada", (SourceText("causal_attention.py", (REFERENCE.replace(*MASK),)),)
    )
    with open_gradebook(tmp_path / "grades", desk.course.name) as book:
        book.record(grade_submission(desk, submission), submission)
        book.exercises = NAMES
    return tmp_path / "grades"


def test_the_line_in_the_report_gives_back_what_only_follows(
    book: Path, desk: Desk, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cold_grader("report", book, "--no-similarity").code == 0
    page = html.unescape((book / "report.html").read_text("utf-8"))
    (line,) = re.findall(r"<code>(grader adjust grades/ .*)</code>", page)
    assert TITLE in line
    monkeypatch.chdir(book.parent)
    ran = cold_grader(*shlex.split(line)[1:])
    most = desk.course.exercises["CausalAttention"].points
    assert (ran.code, f"→ {most:g} of {most:g}, total" in ran.out) == (0, True)
    page = html.unescape((book / "report.html").read_text("utf-8"))
    assert line not in page
    assert f": Follows from causal_mask: {TITLE}" in page


def test_explain_says_what_follows_and_what_would_give_it_back(
    book: Path, one_warm_process: None, cold_grader: Grader
) -> None:
    ran = cold_grader("explain", book, "ada", "CausalAttention")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    assert f"Follows from causal_mask: {TITLE}" in told
    assert f"grader adjust {book} ada CausalAttention +" in told
    assert "grader adjust" not in cold_grader("explain", book, "ada", "causal_mask").out
