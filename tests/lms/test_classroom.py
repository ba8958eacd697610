"""A GitHub repository whose workflow checks every push, and the steps of that workflow."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from grader.course.course import Course, load_course
from grader.lms.classroom import check_unit, unit_results
from grader.lms.classroom_repository import WORKFLOW, release_classroom
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, TestResult
from tests.conftest import Grader, assigned
from tests.support.environments import make_environment, run
from tests.support.places import TINY

MAX_VARIABLE = 128 * 1024  # bytes: Linux takes no longer one

HALF = """
import torch

def center(x):
    print("::error::not a command")
    return x + x.mean()

def staircase(size):
    return torch.ones(size, size, dtype=torch.bool).tril()

def weigh(scores):
    while True:
        pass
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    """What a student gets, with answers to half of a unit."""
    folder = tmp_path_factory.mktemp("classroom") / "repository"
    release_classroom(tiny, folder)
    (folder / "exercises" / "basics.py").write_text(HALF, "utf-8")
    return folder


@pytest.fixture(scope="module")
def workflow(repository: Path) -> dict[str, Any]:
    text = (repository / WORKFLOW).read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.fixture(scope="module")
def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of the workflow's only job."""
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


class Step(NamedTuple):
    """How a step ended: its log, and the result it set."""

    log: str
    result: dict[str, Any]


@pytest.fixture(scope="module")
def basics(
    repository: Path, steps: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Step:
    """The first unit's step, as a runner runs it after the one that installs."""
    machine = tmp_path_factory.mktemp("runner")
    programs = make_environment(machine / "environment")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "GITHUB_OUTPUT": str(machine / "output")}
    log = ""
    for step in steps:
        if step["name"] == "Install the engine" or step.get("id") == "basics":
            command = ("bash", "-e", "-c", step["run"])
            ran = run(*command, place=repository, environment=environment)
            assert ran.returncode == 0, ran.stderr
            log = ran.stdout
    return Step(log, result_beside(machine))


def result_beside(folder: Path) -> dict[str, Any]:
    """What a step set as its output."""
    key, _, value = (folder / "output").read_text("utf-8").strip().partition("=")
    assert key == "result"
    found: dict[str, Any] = json.loads(base64.b64decode(value, validate=True))
    return found


# --- the repository ------------------------------------------------------------------------------


def test_the_workflow_runs_at_every_push(workflow: dict[str, Any]) -> None:
    assert WORKFLOW.startswith(".github/workflows/")
    assert "push" in workflow["on"]


def test_a_student_is_told_to_commit_and_push(repository: Path) -> None:
    text = (repository / "README.md").read_text("utf-8")
    assert "git add --all\ngit commit -m" in text
    assert "git push\n" in text
    assert "Classroom" not in text


def test_the_reporter_gets_the_result_of_a_step_for_each_unit(
    steps: list[dict[str, Any]], tiny: Course
) -> None:
    reporter = steps[-1]
    assert reporter["uses"].startswith("classroom-resources/autograding-grading-reporter@")
    units = [unit.name for unit in tiny.units]
    assert reporter["with"]["runners"].split(",") == units
    assert [step["id"] for step in steps if "id" in step] == units
    assert reporter["env"] == {
        f"{unit.upper()}_RESULTS": f"${{{{steps.{unit}.outputs.result}}}}" for unit in units
    }


def test_students_are_told_that_marks_are_given_elsewhere(repository: Path) -> None:
    for name in (WORKFLOW, "README.md"):
        text = " ".join((repository / name).read_text("utf-8").replace("#", " ").split())
        assert "come from other tests, which are not in this repository" in text


def test_a_title_is_text_to_the_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    toml = tmp_path / "tiny" / "exercises" / "course.toml"
    title = """It's: "a" {module} # $1"""
    toml.write_text(toml.read_text("utf-8").replace('"A module"', json.dumps(title)), "utf-8")
    monkeypatch.setattr("grader.release.recording.record_course", lambda *_: None)
    release_classroom(load_course(toml.parent), tmp_path / "repository")
    (job,) = yaml.safe_load((tmp_path / "repository" / WORKFLOW).read_text("utf-8"))[
        "jobs"
    ].values()
    (step,) = (step for step in job["steps"] if step.get("id") == "layers")
    assert step["name"] == title


def test_the_command_says_that_students_can_change_what_is_checked(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.release.recording.record_course", lambda *_: None)
    course = TINY / "exercises"
    ran = grader("release", "classroom", "--to", tmp_path / "a", "--course", course)
    assert ran.code == 0
    assert f"students can change {WORKFLOW} and the checks: give marks with" in ran.out


# --- the steps -----------------------------------------------------------------------------------


def test_a_steps_result_is_that_of_check(basics: Step, repository: Path, grader: Grader) -> None:
    result = basics.result
    assert (result["version"], result["status"], result["max_score"]) == (3, "fail", 6)
    ran = grader("check", "basics", "--course", repository, "--json")
    kinds = {"passed": "pass", "failed": "fail", "timeout": "error"}
    checked = {
        f"{exercise['name']}: {test['title']}": (kinds[test["status"]], test["points"])
        for exercise in json.loads(ran.out)
        for test in exercise["tests"]
        if test["name"].startswith("test_")
    }
    assert {test["name"]: (test["status"], test["score"]) for test in result["tests"]} == checked
    assert {status for status, _ in checked.values()} == {"pass", "fail", "error"}
    (wrong,) = (test for test in result["tests"] if "1, 2, 6" in test["name"])
    assert wrong["message"].startswith("The mean is added\nWhat is the mean of what remains?\n")
    assert (wrong["test_code"], wrong["filename"]) == ("grader check center", "basics.py")


def test_what_an_answer_prints_is_no_command_to_github(basics: Step) -> None:
    first, *between, last = basics.log.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert any("::error::not a command" in line for line in between)
    assert any("The mean is added" in line for line in between)


def test_what_ends_the_verdict_early_gives_github_its_commands_back(
    in_step: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.feedback.terminal.show_verdict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_unit("layers")
    first, *_, last = capfd.readouterr().out.splitlines()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"


@pytest.fixture
def in_step(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_warm_process: None
) -> Path:
    """A copy of the repository in which this process runs a step."""
    copied = shutil.copytree(repository, tmp_path / "repository")
    monkeypatch.chdir(copied)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    return copied


def test_a_unit_that_is_right_passes(in_step: Path) -> None:
    shutil.copy(TINY / "solutions" / "layers.py", in_step / "exercises")
    check_unit("layers")
    result = result_beside(in_step.parent)
    assert result["status"] == "pass"
    assert {test["status"] for test in result["tests"]} == {"pass"}
    assert sum(test["score"] for test in result["tests"]) == result["max_score"] == 4


def test_an_untouched_unit_says_what_to_do(in_step: Path) -> None:
    check_unit("layers")
    first, *_ = result_beside(in_step.parent)["tests"]
    assert (first["name"], first["status"]) == ("Projection: The exercise is not there yet", "fail")
    assert first["message"].startswith("still the stub")


def test_what_cannot_be_checked_is_an_error_without_points(in_step: Path) -> None:
    (in_step / "exercises" / "recorded" / "sheet.sqlite").write_text("{")
    check_unit("layers")
    result = result_beside(in_step.parent)
    assert (result["status"], result["max_score"]) == ("error", 4)
    (test,) = result["tests"]
    assert (test["status"], test["score"]) == ("error", 0)
    assert "sheet.sqlite" in test["message"]


def test_of_an_assignment_a_step_checks_what_is_asked(in_step: Path) -> None:
    """And it counts what the assignment does: 100 points, of which `weigh` has 3 of 7."""
    assigned(in_step / "exercises", "weigh", "Projection")
    check_unit("basics")
    result = result_beside(in_step.parent)
    assert result["max_score"] == pytest.approx(100 * 3 / 7, abs=0.001)
    assert {test["name"].partition(":")[0] for test in result["tests"]} == {"weigh"}


def test_outside_of_a_workflow_and_for_no_unit_there_is_no_result(
    in_step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CallError, match="there is no exercise called 'layerz'"):
        check_unit("layerz")
    monkeypatch.delenv("GITHUB_OUTPUT")
    with pytest.raises(CallError, match="you want: grader check layers"):
        check_unit("layers")
    assert not (in_step.parent / "output").exists()


def test_long_messages_fit_into_a_variable_of_the_environment(tiny: Course) -> None:
    long = TestResult("test_a", "A title", "failed", hidden=False, message="\U0001f600" * 4_000)
    exercises = [ExerciseResult("center", "basics", 0, 2, (long,) * 5)] * 10
    assert len(unit_results(tiny, "basics", exercises).encoded()) < MAX_VARIABLE
