"""The bundle for students: what is in it, what it refuses, and that it stands alone."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import nbformat
import pytest
import yaml

from grader import __version__
from grader.course.course import Course, load_course
from grader.course.file import Assignment
from grader.records.bundles import SUMS
from grader.records.faults import CallError
from grader.records.files import files_in
from grader.release import courses as init_module
from grader.release.courses import part_of, write_course
from grader.release.github import WORKFLOW, workflow_texts
from grader.release.student import write_student_bundle
from grader.release.texts import pyproject
from grader.student.watch.words import KEYS
from tests.conftest import Grader
from tests.support.bundles import recorded_in_name
from tests.support.places import ROOT, TINY

COURSE = load_course(ROOT / "exercises")
UNITS = [unit.name for unit in COURSE.units]


@pytest.fixture(autouse=True)
def quick_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.release.recording.record_course", recorded_in_name)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the course, all but its recordings."""
    folder = tmp_path_factory.mktemp("written") / "bundle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.release.recording.record_course", recorded_in_name)
        write_student_bundle(COURSE, folder)
    return folder


@pytest.fixture
def bundle(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(original, tmp_path / "bundle")


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be changed."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


def test_an_assignment_brings_its_units_and_no_others(tmp_path: Path) -> None:
    assignment = Assignment(
        "ps1", ("causal_mask", "positions"), "Masks", due=datetime(2026, 11, 30, 12, tzinfo=UTC)
    )
    file = msgspec.structs.replace(COURSE.file, assignment=(assignment,))
    write_student_bundle(
        part_of(dataclasses.replace(COURSE, file=file), "ps1"), tmp_path / "bundle"
    )
    exercises = tmp_path / "bundle" / "exercises"
    assert {path.name for path in exercises.glob("*.py")} == {"causal_attention.py", "positions.py"}
    part = load_course(exercises)
    assert [unit.name for unit in part.units] == ["causal_attention", "positions"]
    assert part.exercises["masked_softmax"].requires == ("causal_mask",)
    title = (tmp_path / "bundle" / "README.md").read_text("utf-8").splitlines()[0]
    assert title == f"# {COURSE.file.title}: Masks, due Monday, 30 November 2026, 12:00 UTC"


def test_the_readme_of_an_assignment_names_what_is_asked_of_a_unit(tmp_path: Path) -> None:
    assignment = Assignment("ps1", ("masked_softmax", "positions"))
    file = msgspec.structs.replace(COURSE.file, assignment=(assignment,))
    write_student_bundle(
        part_of(dataclasses.replace(COURSE, file=file), "ps1"), tmp_path / "bundle"
    )
    text = (tmp_path / "bundle" / "README.md").read_text("utf-8")
    assert "| 1 | `causal_attention.py` | No peeking | 1 of 5: `masked_softmax` |\n" in text
    assert "| 2 | `positions.py` | Where a token stands | 4 |\n\nIf a row names exercises" in text
    assert "begin with `masked_softmax`. Open `exercises/causal_attention.py`" in text


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.as_posix(): (folder / path).read_bytes() for path in files_in(folder)}


# --- what is in it -------------------------------------------------------------------------------


def test_a_bundle_holds_what_a_student_needs_and_nothing_else(bundle: Path) -> None:
    found = {path for path in bytes_in(bundle) if not path.startswith("grader/")}
    assert found == {
        "README.md",
        "AGENTS.md",
        "LICENSE",
        ".gitignore",
        "pyproject.toml",
        "exercises/course.toml",
        "exercises/recorded/sheet.sqlite",
        SUMS.as_posix(),
        *(f"exercises/{unit}.py" for unit in UNITS),
        *(f"exercises/recorded/stubs/{unit}.py" for unit in UNITS),
        *(f"exercises/checks/test_{unit}.py" for unit in UNITS),
        *(f"exercises/afterwards/{unit}{suffix}" for unit in UNITS for suffix in (".toml", ".py")),
        *(f"exercises/experiments/{name}.py" for of in COURSE.experiments.values() for name in of),
        *(
            f"exercises/{path.relative_to(COURSE.folder).as_posix()}"
            for path in COURSE.plays().values()
        ),
        *(
            f"exercises/afterwards/play/{path.name}"
            for path in COURSE.after_files()
            if path.suffix == ".txt"
        ),
        *(f"notebooks/{unit}.ipynb" for unit in UNITS),
    }


def test_git_keeps_what_the_bundle_holds_and_nothing_that_is_written_beside_it(
    bundle: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bundle, tmp_path / "mine")
    written = (
        ".venv/bin/python",
        "build/lib/x.py",
        "attention_grader.egg-info/PKG-INFO",
        "exercises/__pycache__/basics.pyc",
        "exercises/.backups/basics.1.py",
        "exercises/progress.txt",
        "notebooks/.ipynb_checkpoints/basics.ipynb",
        "answers.zip",
    )
    for name in written:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("written", "utf-8")
    for call in (("init", "-q"), ("add", "--all")):
        subprocess.run(("git", *call), cwd=folder, check=True)
    known = subprocess.run(
        ("git", "ls-files", "-z"), cwd=folder, check=True, capture_output=True, text=True
    )
    assert set(known.stdout.split("\0")) - {""} == bytes_in(bundle).keys()


def test_stubs_and_checks_are_copied_byte_for_byte(bundle: Path) -> None:
    names = [*(f"{unit}.py" for unit in UNITS), *(f"checks/test_{unit}.py" for unit in UNITS)]
    for name in names:
        assert (bundle / "exercises" / name).read_bytes() == (COURSE.folder / name).read_bytes()


def test_the_engine_comes_as_source_and_without_what_was_built(bundle: Path) -> None:
    engine = bytes_in(bundle / "grader")
    for path, source in engine.items():
        assert source == (ROOT / "grader" / path).read_bytes()
    assert {"__init__.py", "py.typed", "cli/student.py", "student/checking.py"} <= engine.keys()
    assert not [path for path in engine if "__pycache__" in path or path.endswith(".pyc")]
    assert not [path for path in engine if path.startswith("bundle/")]


def test_a_bundle_installs_only_what_a_student_needs(bundle: Path) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (bundle / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    assert set(project["dependencies"]) == set(ours["dependencies"])
    for_grading = tomllib.loads(pyproject(COURSE, grading=True))["project"]["dependencies"]
    extra = set(ours["optional-dependencies"]["grading"])
    assert set(for_grading) == {*ours["dependencies"], *extra}
    assert {re.split(r"[^a-z]", line)[0] for line in extra} == {"safetensors", "sandlock"}
    assert not re.search("otter|dask|nbclient|hypothesis", text)
    for same in ("requires-python", "scripts", "entry-points", "license"):
        assert project[same] == ours[same]
    assert f'__version__ = "{__version__}"' in (bundle / "grader" / "__init__.py").read_text()


def test_no_text_has_a_hole_where_something_was_to_be_filled_in(bundle: Path) -> None:
    for path in ("README.md", "AGENTS.md", "pyproject.toml"):
        assert not re.search(r"\$[a-z{]", (bundle / path).read_text("utf-8")), path


def test_every_file_is_in_the_list_of_sums(bundle: Path) -> None:
    listed = [line.split("  ")[1] for line in (bundle / SUMS).read_text().splitlines()]
    assert sorted([*listed, SUMS.as_posix()]) == sorted(bytes_in(bundle))


def test_notebooks_are_valid_and_their_cells_are_named(bundle: Path) -> None:
    for unit in COURSE.units:
        text = (bundle / "notebooks" / f"{unit.name}.ipynb").read_text("utf-8")
        nbformat.validate(json.loads(text))
        ids = [cell["id"] for cell in json.loads(text)["cells"]]
        assert len(ids) == len(set(ids))
        for exercise in unit.exercise:
            why = ("why",) if exercise.experiments else ()
            parts = ("statement", *why, "answer", "check", "play")
            assert [name for name in ids if name.startswith(f"{exercise.name}-")] == [
                f"{exercise.name}-{part}" for part in parts
            ]


def test_notebooks_and_the_readme_name_what_helps(bundle: Path) -> None:
    for unit in COURSE.units:
        first, *_ = json.loads((bundle / "notebooks" / f"{unit.name}.ipynb").read_text("utf-8"))[
            "cells"
        ]
        for call in ("check(", f'hint("{unit.exercise[0].name}")', "heatmap("):
            assert f"grader.{call}" in "".join(first["source"])
    readme = (bundle / "README.md").read_text("utf-8")
    assert all(f"`grader.{call}(" in readme for call in ("check", "hint", "heatmap", "experiment"))


def test_the_same_course_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    write_student_bundle(COURSE, tmp_path / "again")
    assert bytes_in(bundle) == bytes_in(tmp_path / "again")


def test_a_course_without_words_of_its_own_gets_general_ones(
    tiny_copy: Course, tmp_path: Path
) -> None:
    written = write_student_bundle(tiny_copy, tmp_path / "bundle")
    assert tmp_path / "bundle" / "notebooks" / "basics.ipynb" in written
    assert "grader check center" in (tmp_path / "bundle" / "README.md").read_text("utf-8")


def texts_of(bundle: Path) -> str:
    paths = [path for path in bundle.rglob("*") if path.suffix in (".md", ".toml", ".ipynb")]
    return "\n".join(path.read_text("utf-8") for path in paths)


def test_a_bundle_promises_only_what_its_course_has(
    tiny_copy: Course, bundle: Path, tmp_path: Path
) -> None:
    """And is called like its course."""
    everything = {"grader after", "grader look", "grader try", "grader play"}
    assert {text for text in everything if text in texts_of(bundle)} == everything
    shutil.rmtree(tiny_copy.folder / "afterwards")
    write_student_bundle(load_course(tiny_copy.folder), tmp_path / "tiny bundle")
    written = texts_of(tmp_path / "tiny bundle")
    promised = (*everything, "grader.experiment", "afterwards", "attention", "<!--")
    assert [text for text in promised if text in written] == []
    assert 'name = "tiny-exercises"' in written


@pytest.mark.parametrize(
    ("missing", "shown"),
    [([], {"after", "look"}), (["basics.py"], {"after"}), (["basics.py", "basics.toml"], set())],
)
def test_the_help_lists_only_commands_for_which_the_course_has_something(
    tiny_copy: Course,
    grader: Grader,
    monkeypatch: pytest.MonkeyPatch,
    missing: list[str],
    shown: set[str],
) -> None:
    for name in missing:
        (tiny_copy.folder / "afterwards" / name).unlink()
    monkeypatch.setenv("GRADER_COURSE", str(tiny_copy.folder))
    listed = re.findall(r"^  ([a-z]+)  ", grader("--help").out, re.MULTILINE)
    assert {"after", "look", "try", "play"}.intersection(listed) == shown
    assert "Example: grader check center" in grader("check", "--help").out


# --- what the texts of the course say ------------------------------------------------------------


def test_the_walkthrough_shows_what_the_commands_print(grader: Grader, tmp_path: Path) -> None:
    """Blocks of the walkthrough stand in the output; `…` stands for lines left out."""
    name = "running_mean_loop"
    for folder in ("exercises", "solutions"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    stubs = (tmp_path / "exercises" / "averaging.py").read_text("utf-8")
    start = stubs.index("    raise NotImplementedError")
    answer = (
        "    means = [x[:, : t + 1].mean(dim=1) for t in range(x.shape[1])]\n"
        "    return torch.stack(means, dim=1)"
    )
    wrong = answer.replace(": t + 1", ":t")
    outputs = [grader("hint", name, "--course", tmp_path / "exercises").out]
    for text in ("    raise NotImplementedError", wrong, answer):
        changed = stubs[:start] + text + stubs[start + len("    raise NotImplementedError") :]
        (tmp_path / "exercises" / "averaging.py").write_text(changed, "utf-8")
        outputs.append(grader("check", name, "--course", tmp_path / "exercises").out)
    printed = " ".join(" ".join(outputs).split())  # the terminal's width decides on line breaks
    walkthrough = (ROOT / "exercises" / "walkthrough.md").read_text("utf-8")
    blocks = re.findall(r"```text\n(.*?)```", walkthrough, re.DOTALL)
    assert len(blocks) == 4
    for part in (part for block in blocks for part in re.split("…", block)):
        assert " ".join(part.split()) in printed


def test_the_readme_names_every_key_of_the_watch_screen(bundle: Path) -> None:
    table = re.findall(r"^\| ([^`|]+) \|", (bundle / "README.md").read_text("utf-8"), re.MULTILINE)
    named = {key for row in table for key in row.split(", ")}
    assert {key.key for key in KEYS} - {"v"} <= named  # a bundle has no solution to show


# --- what it refuses -----------------------------------------------------------------------------


def test_a_solved_stub_is_not_given_away(tiny_copy: Course, tmp_path: Path) -> None:
    path = tiny_copy.stub_file("basics")
    stub = "raise NotImplementedError\n\n\ndef staircase"
    text = path.read_text("utf-8")
    assert stub in text
    path.write_text(text.replace(stub, stub.replace("raise NotImplementedError", "return x")))
    with pytest.raises(CallError, match=r"basics\.py holds a solution of center: a bundle would"):
        write_student_bundle(tiny_copy, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_class_that_is_half_solved_is_not_given_away(tiny_copy: Course, tmp_path: Path) -> None:
    path = tiny_copy.stub_file("layers")
    first, *rest = path.read_text("utf-8").split("raise NotImplementedError")
    path.write_text(first + "self.bias = bias" + "raise NotImplementedError".join(rest))
    with pytest.raises(CallError, match=r"layers\.py holds a solution of Projection"):
        write_student_bundle(tiny_copy, tmp_path / "bundle")


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for replace in (False, True):
        with pytest.raises(CallError, match="not an empty folder"):
            write_student_bundle(COURSE, tmp_path, replace=replace)
    assert bytes_in(tmp_path) == {"notes.txt": b"mine"}


def test_an_empty_folder_is_filled(tiny_copy: Course, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    write_student_bundle(tiny_copy, tmp_path / "bundle")
    assert (tmp_path / "bundle" / "README.md").is_file()


def test_an_earlier_bundle_is_renewed(bundle: Path) -> None:
    (bundle / "exercises" / "progress.txt").write_text("solved running_mean_loop\n")
    stale = bundle / "grader" / "gone.py"
    stale.write_text("")
    with (bundle / SUMS).open("a") as sums:
        empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        sums.write(f"{empty}  grader/gone.py\n")
    write_student_bundle(COURSE, bundle)
    assert not stale.exists()
    assert (bundle / "exercises" / "progress.txt").is_file(), "what is not ours stays"


def test_changed_answers_are_lost_only_when_told_so(bundle: Path) -> None:
    answers = bundle / "exercises" / "softmax.py"
    answers.write_text("mine")
    with pytest.raises(CallError, match=r"softmax\.py changed since the release: --replace"):
        write_student_bundle(COURSE, bundle)
    assert answers.read_text() == "mine"
    write_student_bundle(COURSE, bundle, replace=True)
    assert answers.read_bytes() == COURSE.stub_file("softmax").read_bytes()


def test_what_fails_on_the_way_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        raise CallError("no recording today")

    monkeypatch.setattr("grader.release.recording.record_course", broken)
    with pytest.raises(CallError, match="no recording today"):
        write_student_bundle(COURSE, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_cannot_be_made_from_a_bundle(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="only instructors have it"):
        write_student_bundle(load_course(bundle / "exercises"), tmp_path / "other")


# --- grader init ---------------------------------------------------------------------------------


@pytest.fixture
def carried(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a wheel carries of a bundle."""
    shutil.rmtree(bundle / "grader")
    monkeypatch.setattr(init_module, "CARRIED", bundle)
    return bundle


def test_init_writes_the_course_that_the_wheel_carries(carried: Path, tmp_path: Path) -> None:
    written = write_course(tmp_path / "attention")
    assert bytes_in(tmp_path / "attention") == bytes_in(carried)
    assert tmp_path / "attention" / "README.md" in written
    assert load_course(tmp_path / "attention" / "exercises").name == COURSE.name


def test_init_leaves_a_folder_with_files_alone(carried: Path, tmp_path: Path) -> None:
    write_course(tmp_path / "attention")
    with pytest.raises(CallError, match="not an empty folder: name another"):
        write_course(tmp_path / "attention")


def test_init_without_a_carried_course_says_where_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(init_module, "CARRIED", tmp_path / "bundle")
    with pytest.raises(CallError, match="this install contains no course: make a bundle with"):
        write_course(tmp_path / "attention")


# --- on GitHub -----------------------------------------------------------------------------------


@pytest.fixture
def workflow(tiny_copy: Course, tmp_path: Path) -> dict[str, Any]:
    """The only job of the workflow in the bundle of a course with an odd title."""
    toml = tiny_copy.folder / "course.toml"
    toml.write_text(toml.read_text("utf-8").replace('"A module"', json.dumps(ODD)), "utf-8")
    write_student_bundle(
        course := load_course(tiny_copy.folder),
        tmp_path / "repository",
        texts_beside=workflow_texts(course),
    )
    loaded = yaml.safe_load((tmp_path / "repository" / WORKFLOW).read_text("utf-8"))
    assert "push" in loaded["on"]
    (job,) = loaded["jobs"].values()
    found: dict[str, Any] = job
    return found


ODD = """It's: "a" {module} # $1"""


def test_the_workflow_has_a_step_for_each_unit_whatever_its_title(
    workflow: dict[str, Any],
) -> None:
    *_, first, second = workflow["steps"]
    assert "grader check basics ||" in first["run"]
    assert (second["name"], "grader check layers ||" in second["run"]) == (ODD, True)
    assert not any("classroom" in step.get("uses", "") for step in workflow["steps"])


def test_a_step_fails_as_check_does_and_github_obeys_no_line_of_an_answer(
    workflow: dict[str, Any], tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "grader").write_text("#!/bin/sh\necho ::error::$*\nexit 1\n", "utf-8")
    (programs / "grader").chmod(0o755)
    step = workflow["steps"][-1]
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    ran = subprocess.run(
        ["bash", "-e", "-c", step["run"]], env={"PATH": path}, capture_output=True, text=True
    )
    first, command, last = ran.stdout.splitlines()
    assert (ran.returncode, command) == (1, "::error::check layers")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"


def test_the_command_adds_the_workflow_and_the_way_to_push(grader: Grader, tmp_path: Path) -> None:
    course = TINY / "exercises"
    ran = grader("release", "student", "--github", "--to", tmp_path / "a", "--course", course)
    assert ran.code == 0
    assert (tmp_path / "a" / WORKFLOW).is_file()
    assert "git push\n" in (tmp_path / "a" / "README.md").read_text("utf-8")
    assert "give marks with grader grade" in ran.out
