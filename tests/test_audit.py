"""The audit says what is wrong with a course's tests, and only that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.audit import Finding, audit, totals
from grader.course import Course, load_course
from grader.faults import CallError
from tests.conftest import TINY, Grader

pytestmark = pytest.mark.usefixtures("one_warm_process")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be spoilt."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


def add(course: Course, text: str) -> None:
    library = course.solutions / "mistakes" / "basics.py"
    library.write_text(library.read_text("utf-8") + text, "utf-8")


def excuse(course: Course, text: str) -> None:
    (course.solutions / "mistakes" / "audit.toml").write_text(text, "utf-8")


def found(course: Course, kind: str, *only: str) -> dict[str, Finding]:
    findings = audit(course, only or ("center",), jobs=1)
    return {finding.name: finding for finding in findings if finding.kind == kind}


def test_known_answers_are_graded_as_what_they_are(course: Course) -> None:
    findings = audit(course, ("center", "staircase", "weigh"), jobs=1)
    for kind in ("reference", "stub", "accepted", "mistake"):
        assert {finding.well for finding in findings if finding.kind == kind} == {True}
    counted = totals(findings)["basics"]
    assert counted["reference"] == counted["stub"] == (3, 3)
    assert counted["mistake"] == (6, 6)
    assert counted["diagnosed"] == (5, 6)  # two of them are declared to be alike


def test_a_mistake_that_keeps_its_points_is_told(course: Course) -> None:
    add(course, 'mistake("center", "none", "N", hint="?", change={"x.mean()": "torch.mean(x)"})\n')
    finding = found(course, "mistake")["center/none"]
    assert (finding.well, finding.text) == (False, "keeps its points")


def test_a_right_answer_that_is_refused_is_told_with_the_reason(course: Course) -> None:
    add(course, 'accepted("center", "other", "O", change={"x.mean()": "x.median()"})\n')
    finding = found(course, "accepted")["center/other"]
    assert not finding.well
    assert "elements differ" in finding.text or "The median is subtracted" in finding.text


def test_two_mistakes_that_nobody_can_tell_apart_must_be_declared(course: Course) -> None:
    add(
        course,
        'mistake("center", "more", "M", hint="?", change={"- x.mean()": "+ torch.mean(x)"})\n',
    )
    mistakes = found(course, "mistake")
    assert not mistakes["center/adds"].well
    assert "not named" in mistakes["center/adds"].text
    excuse(course, '[undiagnosed]\n"center/adds" = "as more"\n"center/more" = "as adds"\n')
    assert {finding.well for finding in found(course, "mistake").values()} == {True}


def test_mutants_are_killed_and_a_missing_test_lets_them_live(course: Course) -> None:
    killed = found(course, "mutant", "staircase")
    assert killed
    for tests in (*course.grader_files(), *course.check_files()):
        with tests.open("a", encoding="utf-8") as file:
            file.write("\nassert_agrees = assert_that = lambda *_, **__: None\n")
    survivors = {f.name for f in found(course, "mutant", "staircase").values() if not f.well}
    assert survivors


@pytest.mark.parametrize("table", ["equivalent", "kept", "undiagnosed"])
def test_an_excuse_that_nothing_needs_is_told(course: Course, table: str) -> None:
    excuse(course, f'[{table}]\n"center/gone" = "it was there once"\n')
    findings = audit(course, ("center",), jobs=1)
    assert [f.name for f in findings if "without need" in f.text] == ["center/gone"]


def test_an_excuse_of_an_unknown_kind_is_refused(course: Course) -> None:
    excuse(course, '[pardoned]\n"center/adds" = "nice"\n')
    with pytest.raises(CallError, match="pardoned"):
        audit(course, ("center",), jobs=1)


def test_the_command_prints_a_table_and_ends_with_one_if_anything_is_wrong(
    grader: Grader,
) -> None:
    ran = grader("audit", "center", "--course", TINY)
    assert ran.code == 1  # the tiny course has one hint where three are wanted
    assert "has 1 hints, not three" in ran.out
    assert "references" in ran.out
