"""What an exercise asks for, read from the docstring of its stub."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from jaxtyping import Float
from torch import Tensor, nn

from grader.author.wording import faults
from grader.course.contract import compile_contract
from grader.course.course import Course, load_course
from grader.course.references import open_oracle
from grader.course.statements import Statement, opening, statement
from grader.records.faults import CallError
from grader.student.lesson import Lesson
from grader.student.tutor import Tutor
from grader.student.watch.drawing import statement_text
from grader.student.watch.plain import prose
from tests.support.places import REAL, TINY
from tests.support.statements import WEIGH, state_weigh

COURSE = load_course(REAL)

Weigh = Callable[[str], Course]


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Course:
    """The tiny course, to be changed."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


@pytest.fixture
def with_weigh(tiny_copy: Course) -> Weigh:
    """The tiny course, in which `weigh` has this docstring."""

    return lambda docstring: state_weigh(tiny_copy, docstring)


@pytest.fixture
def weigh(with_weigh: Weigh) -> Statement:
    return statement(with_weigh(WEIGH), "weigh")


# --- parts ---------------------------------------------------------------------------------------


def test_what_is_computed_is_the_first_sentence_and_the_formula(weigh: Statement) -> None:
    formula = "weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])"
    assert weigh.formula == formula
    assert weigh.computes == f"Turn each row of scores into weights.\n    {formula}"
    assert weigh.sentence("computes") == weigh.computes


def test_rules_are_sentences_by_key_whatever_their_lines(weigh: Statement) -> None:
    assert weigh.rules == {
        "large": "Scores may be as large as ±1000.",
        "unchanged": "`scores` stays as it was.",
    }
    assert weigh.sentence("large") == "Scores may be as large as ±1000."
    assert weigh.sentence("returns") == "Returns (queries, keys): the weights."


def test_two_keys_are_built_in(weigh: Statement) -> None:
    assert weigh.keys == ("computes", "returns", "large", "unchanged")


def test_free_prose_states_no_rules(tiny: Course) -> None:
    free = statement(tiny, "center")
    assert not free.formal
    assert free.rules == {}
    assert free.computes == "Subtract the mean from each element."


def test_a_rule_that_nothing_public_looks_at_is_marked_and_no_other(weigh: Statement) -> None:
    mark = "        (graded, not checked here)"
    lines = weigh.marked({"large"}).splitlines()
    assert lines[lines.index("        as large as ±1000.") + 1] == mark
    assert [line for line in lines if line != mark] == weigh.text.splitlines()
    assert lines.count(mark) == 1
    assert weigh.marked({"unchanged"}).splitlines().count(mark) == 1
    assert weigh.marked(()) == weigh.text


def test_sentence_rules_and_example_come_first_and_nothing_is_lost(weigh: Statement) -> None:
    first, rest = weigh.first_and_rest({"large"})
    places = [first.index(part) for part in ("Turn each row", "Rules:", "Example:")]
    assert places == sorted(places)
    assert first.count("(graded, not checked here)") == 1
    assert rest.startswith("Why:")
    assert sorted(f"{first}\n{rest}".split()) == sorted(weigh.marked({"large"}).split())


def test_an_empty_line_in_an_examples_output_is_shown_as_an_empty_line() -> None:
    tutor = Tutor(COURSE)
    on_screen = statement_text(Lesson(COURSE), "split_heads", 90, whole=True, dark=True).plain
    in_lines = prose(statement(COURSE, "split_heads").text, 78)
    to_an_assistant = tutor.statement("split_heads")
    tutor.close()
    for shown in (on_screen, in_lines, to_an_assistant):
        assert "\n          [4., 5.]],\n\n         [[2., 3.],\n" in shown


def test_free_prose_comes_first_as_a_whole(tiny: Course) -> None:
    found = statement(tiny, "center")
    assert found.first_and_rest() == (found.text, "")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("softmax_stable", "def softmax_stable(scores, dim=-1)"),
        ("SelfAttention_v1", "class SelfAttention_v1: __init__(d_in, d_out), forward(x)"),
    ],
)
def test_a_signature_has_a_form_on_one_line(name: str, line: str) -> None:
    assert statement(COURSE, name).short_signature == line


def test_a_stub_that_is_not_there_or_cannot_be_read_is_told(tiny_copy: Course) -> None:
    path = tiny_copy.stub_file("basics")
    path.write_text(path.read_text("utf-8").replace("def center", "def centre"), "utf-8")
    with pytest.raises(CallError, match="does not define center"):
        statement(tiny_copy, "center")
    path.write_text("def (", "utf-8")
    with pytest.raises(CallError, match=r"basics\.py:1: "):
        statement(tiny_copy, "center")
    assert opening(tiny_copy, "basics") == ""


# --- the form ------------------------------------------------------------------------------------


def told(course: Course) -> list[str]:
    contract = open_oracle(course).contracts["weigh"]
    return [*faults(statement(course, "weigh"), contract, forbids=False)]


def test_a_statement_in_the_form_has_no_faults(with_weigh: Weigh) -> None:
    assert told(with_weigh(WEIGH)) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Why:", "Because", "the statement lacks Why"),
        (
            "        weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])\n\n",
            "",
            "the statement has no formula below its first sentence",
        ),
        ("scores: (queries", "score: (queries", "Takes lists score, but the reference takes"),
        (
            "scores: (queries, keys)",
            "scores: (keys, queries)",
            "scores does not say (queries, keys)",
        ),
        ("        (queries, keys): the", "        (queries,): the", "Returns does not say"),
        (">>> ", "", "the statement's example has no numbers"),
        ("https://", "", "the statement's source has no address"),
        ("stays as it was.", "stays", "the rule unchanged is not a sentence"),
        ("large: ", "computes: ", "the rule computes is built in"),
        ("as it was.", "as it was, for at most half of the points.", "does not list it"),
        ("weights[i, j] =", "TODO:", "left for a person: the formula"),
    ],
)
def test_what_a_statement_lacks_is_told(with_weigh: Weigh, old: str, new: str, why: str) -> None:
    assert old in WEIGH
    (one,) = told(with_weigh(WEIGH.replace(old, new)))
    assert why in one


def test_a_rule_at_the_heart_says_what_it_costs(with_weigh: Weigh) -> None:
    course = with_weigh(WEIGH)
    contract = open_oracle(course).contracts["weigh"]
    (fault,) = faults(statement(course, "weigh"), contract, forbids=False, heart=["large"])
    assert "An answer that breaks this rule gets at most half of the points." in fault


def test_a_statement_says_that_the_result_is_an_integer(with_weigh: Weigh) -> None:
    def weigh(scores: Float[Tensor, "queries keys"]) -> int:
        raise NotImplementedError

    stated = statement(with_weigh(WEIGH), "weigh")
    contract = compile_contract("weigh", weigh)
    assert [*faults(stated, contract, forbids=False)] == ["Returns does not say int"]


def test_a_statement_says_that_an_argument_is_a_model(with_weigh: Weigh) -> None:
    def weigh(scores: nn.Module) -> Float[Tensor, "_queries _keys"]:
        raise NotImplementedError

    contract = compile_contract("weigh", weigh)
    as_it_is = statement(with_weigh(WEIGH), "weigh")
    (fault,) = faults(as_it_is, contract, forbids=False)
    assert fault == "Takes: scores does not say nn.Module"


def test_parts_in_another_order_are_told(with_weigh: Weigh) -> None:
    source = "    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.\n"
    moved = WEIGH.replace(source, "").replace("    Why:", f"{source}\n    Why:")
    assert any("are in another order" in one for one in told(with_weigh(moved)))


@pytest.mark.parametrize("name", COURSE.exercises)
def test_every_statement_of_the_course_has_the_form(name: str) -> None:
    contract = open_oracle(COURSE).contracts[name]
    stated = statement(COURSE, name)
    assert stated.formal
    exercise = COURSE.exercises[name]
    assert [*faults(stated, contract, bool(exercise.forbidden), exercise.heart)] == []
