"""What is wrong for an earlier exercise's sake says so first; what is not used is not blamed."""

from __future__ import annotations

import html
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from grader.records.grade import ExerciseResult, Grade
from tests.conftest import Grader
from tests.support.gradebooks import folder
from tests.support.places import REAL, ROOT, TINY

UNITS = ("self_attention", "causal_attention", "multi_head_attention")
# Each exercise that is checked, the earlier one, and the file in which that one is written.
SAME_FILE = ("SelfAttention_v2", "scaled_dot_product_attention", "self_attention")
OTHER_FILE = ("MultiHeadAttention", "causal_mask", "causal_attention")
WRONG = {  # as nobody has been wrong before, so it has no name
    "scaled_dot_product_attention": (
        "return attn_weights @ values",
        "return attn_weights @ values + 0.5",
    ),
    "causal_mask": ("diagonal=1", "diagonal=3"),
}
STUB = "def {}(*_):\n    raise NotImplementedError\n"

Change = Callable[[Path, str], object]
First = Callable[..., str]


def write(place: Path, *changes: tuple[str, str]) -> None:
    """Change a file's text."""
    text = place.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    place.write_text(text, "utf-8")


def delete(place: Path, name: str) -> None:
    """Take a definition out of a file, as far as its name goes."""
    write(place, (f"def {name}(", "def something_else("))


def put_stub_back(place: Path, name: str) -> None:
    """Reset an exercise, as `grader reset` does."""
    delete(place, name)
    place.write_text(place.read_text("utf-8") + "\n\n" + STUB.format(name), "utf-8")


def spoil(place: Path, name: str) -> None:
    """Make an answer wrong."""
    write(place, WRONG[name])


STUBBED = "{base} is a stub: write it first, since {name} uses it"
DELETED = (
    "{base} is not there: write it first, since {name} uses it (was it renamed, or is a file left "
    "out?)"
)
FAILING = (
    "{base} fails its own checks now: mend it first, since {name} uses it (`grader check {base}` "
    "says why)"
)
HOW = {"stub": (put_stub_back, STUBBED), "deleted": (delete, DELETED), "failing": (spoil, FAILING)}
ANY = ("is a stub:", "is not there:", "fails its own checks")


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Right answers of three units."""
    place = tmp_path / "answers"
    place.mkdir()
    for unit in UNITS:
        shutil.copy(ROOT / "solutions" / f"{unit}.py", place)
    return place


@pytest.fixture
def check(grader: Grader, answers: Path) -> Callable[..., str]:
    """Check exercises, and give what a student reads."""
    return lambda *names: grader("check", *names, "--in", answers, "--course", REAL).out


def first_wrong(out: str) -> str:
    """What is said below the first thing that is wrong."""
    lines = out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("    ✗"))
    return lines[at + 1].strip()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("name", "base", "unit"), [SAME_FILE, OTHER_FILE])
def test_the_earlier_exercise_that_is_at_fault_is_named_first(
    name: str, base: str, unit: str, how: str, answers: Path, check: First
) -> None:
    change, sentence = HOW[how]
    change(answers / f"{unit}.py", base)
    assert first_wrong(check(name)) == sentence.format(base=base, name=name)


@pytest.mark.parametrize("name", [SAME_FILE[0], OTHER_FILE[0]])
def test_nothing_is_at_fault_before_an_earlier_exercise_is_changed(name: str, check: First) -> None:
    assert "1 of 1 pass" in check(name)


def test_a_mistake_that_has_a_name_is_told_once_and_by_its_name(
    answers: Path, check: First
) -> None:
    write(answers / "causal_attention.py", ("diagonal=1", "diagonal=0"))
    out = check("MultiHeadAttention")
    assert "Follows from causal_mask: " in out
    assert not any(words in out for words in ANY)


def test_of_several_that_stand_on_each_other_the_lowest_is_named(
    answers: Path, check: First
) -> None:
    put_stub_back(answers / "self_attention.py", "scaled_scores")
    out = check("self_attention")
    for name in ("scaled_dot_product_attention", "SelfAttention_v1", "SelfAttention_v2"):
        assert f"scaled_scores is a stub: write it first, since {name} uses it" in out
    assert "fails its own checks" not in out


def test_a_file_that_was_left_out_is_missed(answers: Path, check: First) -> None:
    (answers / "causal_attention.py").unlink()
    said = DELETED.format(base="causal_mask", name="MultiHeadAttention")
    assert said in check("MultiHeadAttention")


def test_an_earlier_exercise_that_never_ends_is_named(answers: Path, check: First) -> None:
    endless = ("return attn_weights @ values", "while True: pass")
    write(answers / "self_attention.py", endless)
    said = FAILING.format(base="scaled_dot_product_attention", name="SelfAttention_v2")
    assert first_wrong(check("SelfAttention_v2")) == said


# --- what is not blamed --------------------------------------------------------------------------

WITHOUT_A_MASK = """
from torch.nn.functional import relu

def merge_heads(x):
    'It needs no causal_mask.'
    return helper(relu(x)) + other(x)

def helper(causal_mask):
    return causal_mask + 1

def other(x):
    causal_mask = x
    return x.causal_mask if causal_mask is None else x
"""


@pytest.mark.parametrize("how", HOW)
def test_an_exercise_that_an_answer_does_not_use_is_not_blamed(
    how: str, answers: Path, check: First
) -> None:
    HOW[how][0](answers / "causal_attention.py", "causal_mask")
    (answers / "multi_head_attention.py").write_text(WITHOUT_A_MASK, "utf-8")
    out = check("causal_mask", "merge_heads")
    assert "0 of 2 pass" in out
    assert not any(words in out for words in ANY)


HELPER = """

def causal_mask({}):
    return torch.ones({}, {}).triu(3).bool()
"""


@pytest.mark.parametrize(
    ("takes", "size", "passed"),
    [("rows, columns", "rows", "context_length, None"), ("x", "len(x)", "range(context_length)")],
    ids=["more than the exercise", "something else"],
)
def test_a_helper_that_only_has_an_exercises_name_is_not_blamed(
    takes: str, size: str, passed: str, answers: Path, check: First
) -> None:
    helper = HELPER.format(takes, size, size)
    (answers / "causal_attention.py").write_text(f"import torch\n{helper}", "utf-8")
    used = ("causal_mask(context_length)", f"causal_mask({passed})")
    write(answers / "multi_head_attention.py", used)
    out = check("MultiHeadAttention", "causal_mask")
    assert "0 of 2 pass" in out
    assert not any(words in out for words in ("causal_mask is", "causal_mask fails"))


def test_a_helper_that_does_not_fit_an_exercise_may_stay_as_it_is(
    answers: Path, check: First
) -> None:
    helper = HELPER.format("rows, columns", "rows", "columns")
    (answers / "causal_attention.py").write_text(f"import torch\n{helper}", "utf-8")
    out = check("causal_mask", "MultiHeadAttention")
    assert "MultiHeadAttention uses it: as a helper it may stay as it is" in out


def test_an_earlier_exercise_that_is_right_is_not_blamed(answers: Path, check: First) -> None:
    write(answers / "self_attention.py", ("self.W_key(x)", "self.W_query(x)"))
    out = check("SelfAttention_v2")
    assert "0 of 1 pass" in out
    assert not any(words in out for words in ANY)


def test_nothing_is_blamed_where_all_is_right(answers: Path, check: First) -> None:
    ignored = ("if mask is not None:", "if False:")
    write(answers / "self_attention.py", ignored)
    assert "0 of 1 pass" in check("scaled_dot_product_attention")
    out = check("SelfAttention_v2")  # it gives no mask
    assert "1 of 1 pass" in out
    assert not any(words in out for words in ANY)


# --- wherever a verdict is shown -----------------------------------------------------------------


WEIGH = (
    "import torch\n"
    "def weigh(scores):\n"
    "    return torch.exp(center(scores)) / torch.exp(center(scores)).sum(-1, keepdim=True)\n"
)
CENTER = "def center(x):\n    return x.new_zeros(7)\n"
SAID = FAILING.format(base="center", name="weigh")


def test_pages_of_a_grading_say_it_and_points_stay_as_they_are(
    grader: Grader, tmp_path: Path
) -> None:
    hand_in = folder(tmp_path / "class", ada=WEIGH + CENTER)
    call = ("grade", hand_in, "--course", TINY, "--out")
    assert grader(*call, tmp_path / "all").code == 0
    assert grader(*call, tmp_path / "alone", "--only", "weigh").code == 0
    page = (tmp_path / "all" / "feedback" / "ada.html").read_text("utf-8")
    assert "center fails its own checks now" in html.unescape(page)
    points = [weigh_in(tmp_path / run).points for run in ("all", "alone")]
    assert points[0] == points[1]


def weigh_in(out: Path) -> ExerciseResult:
    """What the gradebook holds of `weigh`."""
    (line,) = (out / "results.jsonl").read_text("utf-8").splitlines()
    grade = msgspec.json.decode(line, type=Grade)
    return next(one for one in grade.exercises if one.name == "weigh")


def test_an_explanation_says_it_and_is_about_a_test_that_ran(
    grader: Grader, tmp_path: Path
) -> None:
    hand_in = folder(tmp_path / "class", ada=WEIGH + CENTER)
    assert grader("grade", hand_in, "--course", TINY, "--out", tmp_path / "out").code == 0
    out = grader("explain", tmp_path / "out", "ada", "weigh", "--course", TINY).out
    assert SAID in " ".join(out.split())
    assert "ada: weigh/test_weigh_" in out


def test_what_was_solved_before_and_is_reset_is_a_stub_again(
    grader: Grader, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    course = tmp_path / "tiny" / "exercises"
    shutil.copytree(TINY / "exercises", course / "recorded" / "stubs")
    right = "def center(x):\n    return x - x.mean()\n"
    (course / "basics.py").write_text(WEIGH + right, "utf-8")
    assert grader("check", "center", "--course", course).code == 0
    assert grader("reset", "center", "--yes", "--course", course).code == 0
    out = grader("check", "weigh", "--course", course).out
    assert "center is a stub again: write it first, since weigh uses it" in out


def test_packing_says_it(grader: Grader, tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    course = tmp_path / "tiny" / "exercises"
    (course / "basics.py").write_text(WEIGH + CENTER, "utf-8")
    ran = grader("pack", "--to", tmp_path / "ada.zip", "--course", course)
    assert f"wrong: weigh: {SAID}" in ran.out
