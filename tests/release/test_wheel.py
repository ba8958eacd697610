"""The kit's wheel carries a course without secrets; without a course it is not built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.release.student import write_student_bundle
from tests.support.bundles import recorded_in_name
from tests.support.places import REAL, ROOT

COURSE = load_course(REAL)
# As `make dist` copies them.
CARRIED = ("exercises", "notebooks", "README.md", "AGENTS.md", ".gitignore")


def run(
    *arguments: str | Path, place: Path | None = None, modules: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a place, with the modules of a folder before all others."""
    before = {"PYTHONPATH": str(modules)} if modules else {}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, **before},
    )


def build(folder: Path, to: Path) -> subprocess.CompletedProcess[str]:
    options = ("--no-build-isolation", "--no-deps", "--disable-pip-version-check")
    return run("-m", "pip", "wheel", folder, "-w", to, *options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "bundle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.release.recording.record_course", recorded_in_name)
        write_student_bundle(COURSE, folder)
    return folder


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build could take from: the engine, and all that must stay at home."""
    clone = tmp_path_factory.mktemp("clone")
    for part in ("grader", "exercises", "solutions"):
        ignored = shutil.ignore_patterns("__pycache__", "bundle", ".*")
        shutil.copytree(ROOT / part, clone / part, ignore=ignored)
    (clone / "tests").mkdir()
    shutil.copy(__file__, clone / "tests")
    for name in ("pyproject.toml", "hatch_build.py", ".gitignore", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    shutil.copy(ROOT / "CHANGELOG.md", clone)
    return clone


@pytest.fixture(scope="module")
def wheel(clone: Path, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with a course in it."""
    to = tmp_path_factory.mktemp("dist")
    refused = build(clone, to)
    assert refused.returncode != 0
    assert "there are no recordings in grader/bundle: run `make dist`" in (
        refused.stdout + refused.stderr
    )
    assert "Traceback" not in refused.stdout + refused.stderr
    for name in CARRIED:
        copy = shutil.copytree if (bundle / name).is_dir() else shutil.copy
        (clone / "grader" / "bundle").mkdir(exist_ok=True)
        copy(bundle / name, clone / "grader" / "bundle" / name)
    built = build(clone, to)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = to.glob("*.whl")
    return path


def test_the_wheel_holds_the_engine_and_the_course_and_no_secret(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("grader/", "attention_grader-")) for name in names)
    carried = {name.removeprefix("grader/bundle/") for name in names if "/bundle/" in name}
    assert {"README.md", "AGENTS.md", ".gitignore", "exercises/course.toml"} <= carried
    for unit in COURSE.units:
        assert {
            f"exercises/{unit.name}.py",
            f"exercises/checks/test_{unit.name}.py",
            f"exercises/recorded/stubs/{unit.name}.py",
            f"notebooks/{unit.name}.ipynb",
        } <= carried
    for whole in ("release/templates/README.md", "lms/canvas.py", "run/cluster.py", "cli/grade.py"):
        assert f"grader/{whole}" in names
    assert not [name for name in names if "solutions" in name or "graders/" in name]
    assert not [name for name in names if "tests" in name or "__pycache__" in name]
    seed = COURSE.hidden_seed().encode()
    assert not [name for name in names if seed in zipfile.ZipFile(wheel).read(name)]


def test_the_long_description_has_no_link_into_the_repository(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    described = archive.read(name).decode().partition("\n\n")[2]
    assert described.startswith("# attention-grader\n")
    assert "the first exercise (`docs/students/first-exercise.md`)" in described
    assert not re.findall(r"\]\((?!https?:)", described)


def test_a_wheel_that_is_installed_writes_the_course(
    wheel: Path, bundle: Path, tmp_path: Path
) -> None:
    place, course = tmp_path / "installed", tmp_path / "attention"
    options = ("--no-deps", "--no-index", "--disable-pip-version-check")
    installed = run("-m", "pip", "install", wheel, "--target", place, *options)
    assert installed.returncode == 0, installed.stderr
    ran = run("-m", "grader", "init", "attention", place=tmp_path, modules=place)
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in course.iterdir()) == sorted(CARRIED)
    for unit in COURSE.units:
        stub = Path("exercises", f"{unit.name}.py")
        assert (course / stub).read_bytes() == (bundle / stub).read_bytes()


def test_a_source_distribution_holds_no_secret_either(
    wheel: Path, clone: Path, tmp_path: Path
) -> None:
    code = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    built = run("-c", code, tmp_path, place=clone)
    assert built.returncode == 0, built.stderr
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    assert {"hatch_build.py", "pyproject.toml", "grader/bundle/exercises/course.toml"} <= set(names)
    assert not [name for name in names if name.startswith(("solutions", "tests", "exercises"))]


def test_an_editable_install_needs_no_recordings(clone: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from hatch_build import CarriedCourse; root, version = sys.argv[1:]; "
        "CarriedCourse(root, {}, None, None, '', '').initialize(version, {})"
    )
    allowed = run("-c", code, tmp_path, "editable", modules=clone)
    assert allowed.returncode == 0, allowed.stderr
    assert run("-c", code, tmp_path, "standard", modules=clone).returncode == 1


def test_a_bundle_can_be_installed(bundle: Path, tmp_path: Path) -> None:
    built = build(bundle, tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(path).namelist()
    wanted = {"grader/cli/app.py", "grader/py.typed", "grader/student/checking.py"}
    assert wanted <= set(names)
    assert all(name.startswith(("grader/", f"{path.name.partition('-')[0]}-")) for name in names)
    (points,) = (name for name in names if name.endswith("entry_points.txt"))
    assert "grader = grader.__main__:main" in zipfile.ZipFile(path).read(points).decode()
