"""The pytest plugin adds something where a course is, and nothing anywhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.places import TINY

OWN = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--submission", default="ours")

@pytest.fixture
def make(): return "our make"

@pytest.fixture
def student(make): return f"a student of {make}"

@pytest.fixture
def reference(request): return request.config.getoption("--submission")
"""
USES_OWN = """
def test_with_fixtures_of_our_own(make, student, reference):
    assert (make, student, reference) == ("our make", "a student of our make", "ours")
"""
UNDECLARED = "def test_without_a_rung({fixture}):\n    assert {fixture}\n"


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of its own, as in any project of the environment."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def project(folder: Path, files: Mapping[str, str]) -> Path:
    """A project of somebody else's."""
    folder.mkdir()
    for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def test_a_project_without_a_course_keeps_fixtures_and_options_of_its_own(tmp_path: Path) -> None:
    files = {"conftest.py": OWN, "test_own.py": USES_OWN}
    ran = run_pytest(project(tmp_path / "project", files), "-q", "--strict-markers")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_project_without_a_course_gets_nothing_from_the_plugin(tmp_path: Path) -> None:
    folder = project(
        tmp_path / "project", {"test_one.py": UNDECLARED.format(fixture="make"), "x" * 200: ""}
    )
    ran = run_pytest(folder, "-q")
    assert "fixture 'make' not found" in ran.stdout
    assert "NoneType" not in ran.stdout
    offered = run_pytest(folder, "--help").stdout + run_pytest(folder, "--markers").stdout
    assert "--strict-markers" in offered
    assert "grader" not in offered
    assert "--submission" not in offered


@pytest.mark.parametrize("typed", ["x" * 5000, "a\nb", "~", "::"])
def test_what_is_no_path_names_no_course(tmp_path: Path, typed: str) -> None:
    files = {"test_one.py": "def test_one(): pass\n"}
    ran = run_pytest(project(tmp_path / "project", files), "-q", "-k", f"not {typed!r} or one")
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("fixture", ["make", "student", "reference"])
def test_a_test_of_a_course_without_a_rung_is_told_so(tmp_path: Path, fixture: str) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    test = tmp_path / "tiny" / "test_more.py"
    test.write_text(UNDECLARED.format(fixture=fixture), "utf-8")
    ran = run_pytest(tmp_path, "-q", "-W", "error", "-c", "/dev/null", str(test))
    assert ran.returncode == 1
    assert "are for the tests of a course, but this test has no rung" in ran.stdout
    assert "NoneType" not in ran.stdout


def test_a_submission_that_is_not_isolated_is_refused_in_one_line_unless_told_weak(
    tmp_path: Path, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_WITHOUT_LAYERS", "seccomp")
    (tmp_path / "ada.py").write_text(right, "utf-8")
    graders = str(TINY / "solutions" / "graders" / "test_basics.py")
    call = ["-q", "-c", "/dev/null", "-k", "leaves_nothing", graders, "--submission", "ada.py"]
    refused = run_pytest(tmp_path, *call)
    assert refused.returncode == 1
    assert "not isolated enough to be graded: there is no filter" in refused.stdout
    assert "Traceback" not in refused.stdout
    assert "desk.py" not in refused.stdout
    allowed = run_pytest(tmp_path, *call, "--isolation=weak")
    assert allowed.returncode == 0, allowed.stdout


def test_a_course_that_only_the_settings_of_pytest_name_gets_its_fixtures(
    tmp_path: Path, right: str
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    (tmp_path / "tiny" / "exercises" / "basics.py").write_text(right, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tiny/solutions/graders\n", "utf-8")
    ran = run_pytest(tmp_path, "-q", "-W", "error", "-k", "leaves_nothing")
    assert "1 passed" in ran.stdout, ran.stdout


def test_fixtures_that_a_course_brings_itself_come_first(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    (tmp_path / "tiny" / "conftest.py").write_text(OWN.replace("--submission", "--ours"), "utf-8")
    (tmp_path / "tiny" / "test_own.py").write_text(USES_OWN, "utf-8")
    ran = run_pytest(tmp_path / "tiny", "-q", "-c", "/dev/null", "--rootdir=.", "test_own.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
