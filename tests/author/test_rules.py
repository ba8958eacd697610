"""The audit proves of each rule that the tests look at it, and at nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from grader.author.audit import audit_course
from grader.course.course import Course, load_course
from tests.support.places import TINY
from tests.support.statements import WEIGH, state_weigh

pytestmark = pytest.mark.usefixtures("one_warm_process")

UNCHANGED = """
@mistake("weigh", "in-place", "The scores change", hint="Whose are they?", breaks=("unchanged",))
def in_place(scores):
    e = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = e / e.sum(dim=-1, keepdim=True)
    with torch.no_grad():
        scores.add_(1.0)
    return weights
"""
NAIVE = """
@mistake("weigh", "naive", "Nothing is subtracted", hint="What is exp(1000)?", breaks=("large",))
def naive(scores):
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)
"""
SUMMED = """
mistake("weigh", "summed", "One number a query", hint="How many weights?", breaks=("returns",),
        change={"return weights / weights.sum(dim=-1, keepdim=True)": "return weights.sum(dim=-1)"})
"""
QUOTES = {
    'property("weigh")\ndef test_weigh_leaves': ("unchanged",),
    'stability("weigh")\ndef test_weigh_survives': ("large",),
    'gradient("weigh")\ndef test_weigh_has': ("computes", "unchanged"),
}


def graded_by(
    course: Course, *mistakes: str, quotes: Mapping[str, Sequence[str]] = QUOTES
) -> Course:
    """The course with these mistakes of `weigh`, and hidden tests that quote these rules."""
    graders = course.solutions / "graders" / "test_basics.py"
    text = graders.read_text("utf-8")
    for test, rules in quotes.items():
        assert test in text
        text = text.replace(test, test.replace('"weigh"', f'"weigh", rules={rules!r}'))
    graders.write_text(text, "utf-8")
    library = course.solutions / "mistakes" / "basics.py"
    library.write_text(library.read_text("utf-8") + "".join(mistakes), "utf-8")
    return course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """The tiny course, in which `weigh` states rules."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return state_weigh(load_course(tmp_path / "tiny" / "exercises"), WEIGH)


def doubts(course: Course) -> dict[str, str]:
    findings = audit_course(course, ("weigh",), jobs=1)
    return {f.name: f.text for f in findings if f.kind == "rule" and not f.well}


def test_a_rule_with_a_test_and_a_mistake_of_its_own_is_proved(course: Course) -> None:
    told = doubts(graded_by(course, UNCHANGED, NAIVE, SUMMED))
    assert "weigh/unchanged" not in told
    assert "weigh/large" not in told


def test_a_rule_that_no_mistake_breaks_alone_is_told(course: Course) -> None:
    both = NAIVE.replace('("large",)', '("large", "unchanged")')
    told = doubts(graded_by(course, both))
    assert "no mistake breaks it alone" in told["weigh/unchanged"]
    assert "no mistake breaks it alone" in told["weigh/large"]


def test_a_rule_that_no_hidden_test_quotes_is_told(course: Course) -> None:
    only = {test: rules for test, rules in QUOTES.items() if rules == ("large",)}
    told = doubts(graded_by(course, UNCHANGED, NAIVE, quotes=only))
    assert "no hidden test quotes it" in told["weigh/unchanged"]
    # The test that looks at it says that it looks at something else.
    assert "test_weigh_leaves_the_scores_alone (computes)" in told["weigh/unchanged"]


def test_a_test_that_quotes_a_rule_and_tells_of_nothing_that_breaks_it_is_told(
    course: Course,
) -> None:
    told = doubts(graded_by(course, UNCHANGED, NAIVE.replace('("large",)', '("computes",)')))
    assert (
        "the hidden test_weigh_survives_large_scores quotes it, but catches no mistake that "
        "breaks it" in told["weigh/large"]
    )
    assert (
        "naive breaks it alone, but fails test_weigh_survives_large_scores (large)"
        in (told["weigh/computes"])
    )


def test_of_free_prose_no_rule_is_asked(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    course = load_course(tmp_path / "tiny" / "exercises")
    assert not [f for f in audit_course(course, ("weigh",), jobs=1) if f.kind == "rule"]
