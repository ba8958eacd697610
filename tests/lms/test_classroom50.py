"""Classroom 50: its autograder on all kinds of submissions, and what its download holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from grader.course.course import Course, load_course
from grader.intake import take_in
from grader.lms import DOWNLOADS
from grader.lms.classroom50 import BODY, RESULT, check_for_classroom50
from grader.lms.classroom50_bundle import release_classroom50, slug
from grader.records.faults import CallError, HostFault
from grader.records.files import files_in
from tests.conftest import Grader, assigned
from tests.support.places import TINY

# The rules of classroom50/result/v1, and those of the classroom's collector.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema", "classroom", "assignment", "assignment_type", "owner", "submission", "commit",
        "release", "review", "datetime", "score", "max-score", "tests",
    ],
    "properties": {
        "schema": {"const": "classroom50/result/v1"},
        "assignment_type": {"enum": ["individual", "group"]},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"},
        "score": {"type": "integer", "minimum": 0},
        "max-score": {"type": "integer", "minimum": 0},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["test-name", "passed", "score", "max-score"],
                "properties": {
                    "test-name": {"type": "string", "minLength": 1},
                    "passed": {"type": "boolean"},
                    "score": {"type": "integer", "minimum": 0},
                    "max-score": {"type": "integer", "minimum": 0},
                },
            },
        },
        **{
            name: {"type": "string", "minLength": 1}
            for name in ("classroom", "assignment", "owner", "commit", "release", "review")
        },
    },
}  # fmt: skip

RUNNER = {
    "CLASSROOM": "cs", "ASSIGNMENT": "tiny", "ASSIGNMENT_TYPE": "individual", "USERNAME": "ada",
    "OWNER": "ada", "SUBMISSION_TAG": "submit/2026-11-28T10-00-00Z-abcdef1",
    "COMMIT_URL": "https://example.org/c", "RELEASE_URL": "https://example.org/r",
    "REVIEW_URL": "https://example.org/v",
}  # fmt: skip

WRONG = """
import torch

def center(x):
    print("::error::not a command")
    return x + x.mean()

def staircase(size):
    return torch.ones(size, size, dtype=torch.bool).tril()
"""
FORGED = '{"schema": "classroom50/result/v1", "score": 99999}'
HOSTILE = f"""
import os
for name in ("result.json", "release-body.md"):
    try:
        open(name, "w").write({FORGED!r})
    except OSError:
        pass
os._exit(0)
"""
KINDS = {
    "wrong": WRONG,
    "endless": "while True:\n    pass\n",
    "hostile": HOSTILE,
    "not Python": "def center(x:\n",
    "binary": "\0\1\2",
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    """What a teacher gets."""
    folder = tmp_path_factory.mktemp("classroom50") / "released"
    release_classroom50(tiny, folder)
    return folder


@pytest.fixture
def checkout(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_warm_process: None
) -> Path:
    """A student's checkout, beside which the runner has unpacked the autograder."""
    monkeypatch.chdir(shutil.copytree(released / "autograder", tmp_path / "autograder"))
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    return shutil.copytree(released / "template", tmp_path / "checkout")


def checked(checkout: Path) -> dict[str, Any]:
    """The result of a checkout, which is valid by the schema."""
    check_for_classroom50(checkout)
    result: dict[str, Any] = json.loads((checkout / RESULT).read_bytes())
    jsonschema.validate(result, SCHEMA)
    tests = result["tests"]
    assert result["score"] == sum(test["score"] for test in tests) <= result["max-score"]
    assert result["max-score"] == sum(test["max-score"] for test in tests) == 10_000
    assert all(test["score"] <= test["max-score"] for test in tests)
    return result


def said(checkout: Path) -> dict[str, str]:
    """What was appended to GitHub's outputs."""
    lines = (checkout.parent / "output").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


# --- the runner ----------------------------------------------------------------------------------


def test_a_right_submission_has_all_points_and_is_a_success(checkout: Path) -> None:
    for unit in ("basics", "layers"):
        shutil.copy(TINY / "solutions" / f"{unit}.py", checkout / "exercises")
    result = checked(checkout)
    assert result["score"] == 10_000
    assert all(test["passed"] for test in result["tests"])
    assert said(checkout) == {
        "status": "success",
        "summary": "10 of 10 points: 4 of 4 exercises are solved",
    }


def test_a_wrong_one_has_the_points_of_check_and_a_text_that_names_the_mistake(
    checkout: Path, grader: Grader
) -> None:
    (checkout / "exercises" / "basics.py").write_text(WRONG, "utf-8")
    result = checked(checkout)
    ran = grader("check", "--in", checkout, "--course", Path.cwd(), "--json")
    points = {one["name"]: (round(1000 * one["points"]), one["max"]) for one in json.loads(ran.out)}
    assert {test["test-name"]: test["score"] for test in result["tests"]} == {
        name: own for name, (own, _) in points.items()
    }
    assert said(checkout)["status"] == "failure"
    body = (checkout / BODY).read_text("utf-8")
    assert "**The mean is added**" in body
    assert "Your grade comes from other tests" in body
    assert "## `center`" in body
    assert "## `weigh`" not in body  # it is not written yet


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_student_did_is_no_error(kind: str, checkout: Path) -> None:
    (checkout / "exercises" / "basics.py").write_text(KINDS[kind], "utf-8")
    assert checked(checkout)["score"] < 10_000
    assert said(checkout)["status"] == "failure"
    assert FORGED not in (checkout / BODY).read_text("utf-8")


def test_an_empty_repository_has_no_points_and_says_why(checkout: Path) -> None:
    shutil.rmtree(checkout)
    checkout.mkdir()
    assert checked(checkout)["score"] == 0
    summary = "No answers were found: there is no .py file and no notebook in the repository"
    assert said(checkout)["summary"] == summary


def test_what_lies_in_the_place_of_the_result_is_replaced_and_no_link_is_followed(
    checkout: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine", "utf-8")
    (checkout / RESULT).mkdir()
    (checkout / RESULT / "file").write_text("", "utf-8")
    (checkout / BODY).symlink_to(elsewhere)
    checked(checkout)
    assert elsewhere.read_text("utf-8") == "mine"


def test_what_an_answer_prints_is_no_command_to_github(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (checkout / "exercises" / "basics.py").write_text(WRONG, "utf-8")
    checked(checkout)
    first, *between, last = capfd.readouterr().out.splitlines()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    assert any("::error::not a command" in line for line in between)


def test_a_broken_autograder_leaves_no_result(checkout: Path) -> None:
    Path("exercises", "recorded", "sheet.sqlite").write_text("{")
    with pytest.raises((CallError, HostFault), match=r"sheet\.sqlite"):
        check_for_classroom50(checkout)
    assert not (checkout / RESULT).exists()
    assert not (checkout.parent / "output").exists()


def test_outside_of_the_runner_it_says_which_command_is_meant(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMIT_URL")
    with pytest.raises(CallError, match=r"COMMIT_URL is not set.*you want: grader check"):
        check_for_classroom50(checkout)


def test_an_assignment_counts_its_own_points_in_whole_thousandths(
    checkout: Path, released: Path
) -> None:
    """100 points, of which `weigh` has 3 of 7."""
    assigned(Path("exercises").resolve(), "weigh", "Projection")
    shutil.copy(TINY / "solutions" / "basics.py", checkout / "exercises")
    check_for_classroom50(checkout)
    result = json.loads((checkout / RESULT).read_bytes())
    assert (result["score"], result["max-score"]) == (42_857, 100_000)
    assert [test["test-name"] for test in result["tests"]] == ["weigh", "Projection"]


# --- the release ---------------------------------------------------------------------------------


def test_the_published_autograder_holds_nothing_that_a_student_does_not_have(
    released: Path,
) -> None:
    template = {*files_in(released / "template")}
    more = {path.as_posix() for path in files_in(released / "autograder") if path not in template}
    assert more == {
        "autograder.py", "constraints.txt", "grader/cli/host.py", "grader/lms/__init__.py",
        "grader/lms/classroom50.py", "grader/lms/markdown.py", "grader/lms/system.py",
    }  # fmt: skip


def test_the_template_has_no_workflow_and_tells_how_to_submit(released: Path) -> None:
    assert not (released / "template" / ".github").exists()
    assert "gh student submit" in (released / "template" / "README.md").read_text("utf-8")


def test_the_readme_has_commands_for_this_assignment(
    tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.release.recording.record_course", lambda *_: None)
    shutil.copytree(TINY, tmp_path / "course")
    course = tmp_path / "course" / "exercises"
    table = '[[assignment]]\nname = "PS 1"\nexercises = ["basics"]\ndue = 2026-12-01T12:00:00Z\n'
    text = (course / "course.toml").read_text("utf-8")
    (course / "course.toml").write_text(f'assigned = "PS 1"\n{text}\n{table}', "utf-8")
    release_classroom50(load_course(course), tmp_path / "released", torch_index="https://cpu.test")
    readme = (tmp_path / "released" / "README.md").read_text("utf-8")
    assert "gh teacher assignment add ORG CLASSROOM ps-1 --name" in readme
    assert "--runtime runtime.json --due 2026-12-01T12:00:00+00:00" in readme
    pip = (tmp_path / "released" / "autograder" / "pip.conf").read_text("utf-8")
    assert pip == "[global]\nextra-index-url = https://cpu.test\n"


@pytest.mark.parametrize(
    ("name", "short"), [("PS 1", "ps-1"), ("x", "x-1"), ("Ü", "a-1"), ("a" * 60, "a" * 39)]
)
def test_a_slug_has_the_form_that_classroom_50_takes(name: str, short: str) -> None:
    assert slug(name) == short


def test_the_bundle_fits_into_what_classroom_50_fetches(released: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as archive:
        archive.add(released / "autograder", ".")
    assert (tmp_path / "bundle.tar.gz").stat().st_size < 5_000_000  # of 10 MB


def test_without_a_package_index_the_autograder_ends_as_an_error_of_its_own(
    released: Path, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, released / "autograder" / "autograder.py"],
        cwd=tmp_path,
        env={**os.environ, **RUNNER, "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "::error::the engine could not be installed" in ran.stdout
    assert not (tmp_path / RESULT).exists()


# --- the download --------------------------------------------------------------------------------

HEADER = (
    "username,first_name,last_name,email,section,score,max_score,datetime,submission_tag,"
    "submitted_by,review_url,late,override\n"
)


@pytest.fixture
def download(tmp_path: Path) -> Path:
    """A download of two students with two and no submissions, and of a team."""
    folder = tmp_path / "cs-tiny_submissions_2026-11-28T10-00-00"
    for name, answer in {"Ada-L": WRONG, "bob": "", "group-1": WRONG}.items():
        clone = folder / f"cs-tiny-{name}"
        (clone / "exercises").mkdir(parents=True)
        (clone / ".github").mkdir()
        (clone / ".github" / "odd.py").write_text("", "utf-8")
        (clone / "result.json").write_text(FORGED, "utf-8")
        (clone / "exercises" / "basics.py").write_text(answer, "utf-8")
    (folder / "scores.csv").write_text(
        HEADER
        + "ada-l,Ada,Lovelace,ada@example.org,A,1,10,2026-11-27T10:00:00Z,submit/b,ada-l,u,true,\n"
        + "ada-l,Ada,Lovelace,ada@example.org,A,0,10,2026-11-26T10:00:00Z,submit/a,ada-l,u,false,\n"
        + "bob,Bob,,,,,,,,,,,\n",
        "utf-8",
    )
    return folder


def test_a_download_gives_students_times_and_attempts(download: Path, tiny: Course) -> None:
    arrivals = take_in([download], tiny, downloads=DOWNLOADS)
    found = {one.student: one for one in arrivals.submissions}
    assert {*found} == {"Ada-L", "bob", "group-1"}
    ada = found["Ada-L"]
    assert [source.name for source in ada.sources] == ["exercises/basics.py"]
    assert (ada.attempts, ada.late) == (2, True)
    assert f"{ada.submitted:%Y-%m-%d %H:%M}" == "2026-11-27 10:00"
    person = arrivals.people["Ada-L"]
    assert (person.name, person.email, person.login) == ("Ada Lovelace", "ada@example.org", "Ada-L")
    assert found["bob"].submitted is None
    assert any("a download from Classroom 50: 3 submissions" in line for line in arrivals.notices)


def test_a_table_of_another_program_is_refused(download: Path, tiny: Course) -> None:
    (download / "scores.csv").write_text("name,points\nada,1\n", "utf-8")
    with pytest.raises(CallError, match=r"scores\.csv is not as Classroom 50 writes it"):
        take_in([download], tiny, downloads=DOWNLOADS)


def test_members_of_a_team_share_the_clone_of_one_of_them(tmp_path: Path, tiny: Course) -> None:
    folder = tmp_path / "cs-tiny_submissions_2026"
    (folder / "cs-tiny-ann").mkdir(parents=True)
    (folder / "cs-tiny-ann" / "basics.py").write_text(WRONG, "utf-8")
    line = "{},,,,,1,10,2026-11-27T10:00:00Z,submit/a,ann,https://x.test/cs-tiny-ann,false,\n"
    text = HEADER + "".join(map(line.format, ("ann", "ben"))) + "cy,Cy,Young,,,,,,,,,,\n"
    (folder / "scores.csv").write_text(text, "utf-8")
    arrivals = take_in([folder], tiny, downloads=DOWNLOADS)
    assert [one.members for one in arrivals.submissions] == [("ann", "ben"), ("cy",)]
    assert arrivals.submissions[1].status == "empty"  # no clone: listed, and without a grade
    assert arrivals.people["cy"].name == "Cy Young"


def test_other_names_beside_the_clones_do_no_harm(download: Path, tiny: Course) -> None:
    (download / "README.md").write_text("notes", "utf-8")
    (download / "notes").mkdir()
    (download / "notes" / "x.py").write_text(WRONG, "utf-8")
    arrivals = take_in([download], tiny, downloads=DOWNLOADS)
    assert {one.student for one in arrivals.submissions} == {"Ada-L", "bob", "group-1"}
    assert any("left out" in line and "notes" in line for line in arrivals.notices)


def test_a_table_that_is_no_file_is_refused(download: Path, tiny: Course) -> None:
    (download / "scores.csv").unlink()
    (download / "scores.csv").mkdir()
    (download / "scores.csv" / "x").write_text("", "utf-8")
    with pytest.raises(CallError, match=r"scores\.csv is no file"):
        take_in([download], tiny, downloads=DOWNLOADS)


def test_files_that_were_not_read_are_named(checkout: Path) -> None:
    (checkout / "exercises" / "basics.py.txt").write_text("x", "utf-8")
    (checkout / "exercises" / "basics.py").write_text(WRONG, "utf-8")
    checked(checkout)
    body = (checkout / BODY).read_text("utf-8")
    assert "These files were not read:" in body
    assert "basics.py.txt" in body
