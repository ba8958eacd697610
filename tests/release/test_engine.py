"""The engine in a student's bundle: what it holds, and that its commands need nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grader.course.course import Course
from grader.lms.classroom50_bundle import RUNNER_MODULES
from grader.release.engine import FOR_STUDENTS, INSTRUCTORS, copy_engine
from grader.release.student import write_student_bundle
from tests.support.environments import make_environment, run
from tests.support.places import ROOT
from tests.tools.structure import Module, foreign_imports_of, imports_of, modules_of

WHOLE = modules_of(ROOT / "grader")
INSTRUCTORS_ROOMS = {"author", "run", "release", "report", "lms", "grades"}
# What is started by its name: a student's programs, and what those start.
STARTED = {
    *("__main__", "cli.student", "cli.play", "cli.doctor", "pytest_plugin", "testing"),
    *("guest.warm", "guest.work"),
}
EDITORS = {"jaxtyping"}  # what stubs are annotated with, which nothing of a bundle loads


# --- what is in it -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Module]:
    """The modules of a student's bundle."""
    folder = tmp_path_factory.mktemp("desk")
    copy_engine(folder / "grader", FOR_STUDENTS)
    return modules_of(folder / "grader")


def test_what_only_instructors_use_stays_out_of_a_bundle(desk: dict[str, Module]) -> None:
    assert {module.room for module in desk.values()}.isdisjoint(INSTRUCTORS_ROOMS)


def test_nothing_in_a_bundle_imports_what_is_not_in_it(desk: dict[str, Module]) -> None:
    missing = {
        name: gone
        for name, module in desk.items()
        if (gone := sorted(imports_of(module, WHOLE) - desk.keys()))
    }
    assert missing == {}, (
        "add it to FOR_STUDENTS of grader/release/engine.py, or import it from elsewhere"
    )


def test_an_autograder_for_classroom_50_lacks_only_what_writes_it(tmp_path: Path) -> None:
    copy_engine(tmp_path / "grader", (*FOR_STUDENTS, *RUNNER_MODULES))
    held = modules_of(tmp_path / "grader")
    missing = {name for module in held.values() for name in imports_of(module, WHOLE) - held.keys()}
    assert missing == {"lms.classroom50_bundle"}
    assert {name for name, module in held.items() if module.room in INSTRUCTORS_ROOMS} == {
        "lms",
        "lms.system",
        "lms.markdown",
        "lms.classroom50",
    }


def test_all_that_is_in_a_bundle_is_used_there(desk: dict[str, Module]) -> None:
    unused = desk.keys() - set(reached(desk, STARTED))
    assert unused == set(), "add it to INSTRUCTORS of grader/release/engine.py"


def reached(modules: dict[str, Module], starts: set[str]) -> Iterator[str]:
    """All that is loaded from these modules on, the packages that they are in too."""
    seen: set[str] = set()
    waiting = {"__init__", *starts}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        yield name
        parts = name.split(".")
        packages = {".".join(parts[:end]) for end in range(1, len(parts))}
        waiting |= ((imports_of(modules[name], modules) | packages) & modules.keys()) - seen


def test_the_lists_of_what_a_bundle_holds_name_what_is_there() -> None:
    rooms = {module.room for module in WHOLE.values()}
    assert {*FOR_STUDENTS, *INSTRUCTORS, *RUNNER_MODULES} <= rooms | WHOLE.keys()


def test_a_bundle_asks_to_install_what_it_imports(desk: dict[str, Module]) -> None:
    template = (ROOT / "grader" / "release" / "templates" / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(re.sub(r".*# for grading\n", "", template))["project"]
    asked = {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]}
    imported = {name for module in desk.values() for name in foreign_imports_of(module.text)}
    loaded = imported - set(sys.stdlib_module_names) - {"grader"}
    optional = {"IPython", "mcp", "sandlock"}  # used where they are there
    assert loaded - optional == asked - EDITORS


def test_the_whole_engine_goes_where_submissions_are_graded(tmp_path: Path) -> None:
    copy_engine(tmp_path / "grader")
    assert modules_of(tmp_path / "grader").keys() == WHOLE.keys()
    assert (tmp_path / "grader" / "lms" / "templates" / "classroom50" / "autograder.py").is_file()


# --- its commands, with nothing of the clone on the path -----------------------------------------

RIGHT = "import torch\n\n\ndef center(x):\n    return x - x.mean()\n"
WRONG = "import torch\n\n\ndef center(x):\n    return x + x.mean()\n"


class Installed(NamedTuple):
    """A bundle that a student has installed as its README says."""

    folder: Path
    programs: Path

    def run(self, *command: str | Path, said: int = 0) -> str:
        """What a command prints, given the exit code that it is to have."""
        ran = run(self.programs / command[0], *command[1:], place=self.folder, environment={})
        assert ran.returncode == said, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command of `grader` to talk with."""
        return subprocess.Popen(
            [self.programs / "grader", *arguments],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            # A shell's background job ignores Ctrl-C, and hands that down.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Installed:
    """A bundle of the tiny course."""
    place = tmp_path_factory.mktemp("student")
    write_student_bundle(tiny, place / "bundle")
    bundle = Installed(place / "bundle", make_environment(place / "environment"))
    bundle.run("python", "-m", "pip", "install", ".")
    where = bundle.run("python", "-I", "-c", "import grader; print(grader.__file__)")
    assert where.startswith(str(place)), "this is the bundle's engine"
    return bundle


@pytest.fixture
def student(installed: Installed) -> Iterator[Installed]:
    """The bundle as it was released, in the hands of a student."""
    stubs = installed.folder / "exercises" / "basics.py"
    before = stubs.read_bytes()
    yield installed
    stubs.write_bytes(before)
    (installed.folder / "exercises" / "progress.txt").unlink(missing_ok=True)


def solve(student: Installed, text: str = RIGHT) -> None:
    path = student.folder / "exercises" / "basics.py"
    stubs = path.read_text("utf-8")
    path.write_text(stubs[: stubs.index("def center")] + text, "utf-8")


def test_help_offers_a_students_commands_and_no_others(student: Installed) -> None:
    text = student.run("grader", "--help")
    listed = re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)
    assert listed == [
        *("check", "list", "hint", "ask", "after", "look", "reset", "run", "pack"),
        *("watch", "mcp"),
        "doctor",
    ]
    for command in listed:
        assert f"Example: grader {command}" in student.run("grader", command, "--help")


@pytest.mark.parametrize("call", ["grade answers/ --out grades/", "release student", "init", "new"])
def test_a_command_of_the_whole_kit_says_in_one_line_where_it_is(
    student: Installed, call: str
) -> None:
    command, *rest = call.split()
    assert student.run("grader", command, *rest, said=2) == (
        f"grader: {command} is a command of the whole kit, and only the student's part is "
        "installed here: pip install attention-grader, in another environment\n"
    )


def test_what_is_no_command_anywhere_is_no_command_here(student: Installed) -> None:
    text = student.run("grader", "chek", said=2)
    assert "No such command 'chek'. Did you mean 'check'?" in text


def test_a_bundle_lists_gives_hints_resets_and_packs(student: Installed) -> None:
    assert "next: center, in basics.py" in student.run("grader", "list")
    assert student.run("grader", "hint", "center").startswith("center, hint 1 of ")
    solve(student)
    student.run("grader", "reset", "center", "--yes")
    path = student.folder / "exercises" / "basics.py"
    assert "raise NotImplementedError" in path.read_text("utf-8")
    student.run("grader", "reset", "center", "--undo")
    assert path.read_text("utf-8").endswith(RIGHT)
    assert "not written: staircase" in student.run("grader", "pack", "--to", "ada.zip", said=1)
    student.run("grader", "pack", "--to", "ada.zip", "--anyway")
    assert "basics.py" in zipfile.ZipFile(student.folder / "ada.zip").namelist()


def test_a_bundle_checks_answers(student: Installed) -> None:
    assert "still the stub" in student.run("grader", "check", "center", said=1)
    solve(student, WRONG)
    assert "The mean is added" in student.run("grader", "check", "center", said=1)
    solve(student)
    assert "1 of 1 pass the public checks" in student.run("grader", "check", "center")
    assert "1 of 1 pass" in student.run("grader", "check", "center", "--backend", "worker")


def test_a_bundle_shows_code_at_work_and_stops_in_it(student: Installed) -> None:
    solve(student, WRONG)
    assert "tensor" in student.run("grader", "check", "center", "--show", said=1)
    with student.start("check", "center", "--pdb") as debugged:
        told, _ = debugged.communicate("q\n")
    assert "(Pdb)" in told


def test_a_bundle_checks_at_each_save_in_plain_lines(student: Installed) -> None:
    solve(student, WRONG)
    with student.start("watch", "--plain", "center") as watching:
        assert watching.stdout is not None
        assert any("The mean is added" in line for line in watching.stdout)
        solve(student)
        assert any("Solved: center" in line for line in watching.stdout)
        watching.send_signal(signal.SIGINT)
    assert watching.returncode == 0


def test_a_bundle_says_what_the_machine_offers(student: Installed) -> None:
    found = {one["name"]: one for one in json.loads(student.run("grader", "doctor", "--json"))}
    assert found["recordings"]["state"] == "well"


def test_notebooks_of_a_bundle_check_give_hints_and_show_matrices(student: Installed) -> None:
    cells = (
        f"import grader\n{RIGHT}",
        "print(grader.check('center'))\nprint(grader.hint('center'))",
        "print(grader.heatmap(torch.eye(2))._repr_html_()[:4])",
    )
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {cells!r}:\n    shell.run_cell(cell, store_history=True)\n"
    )
    text = student.run("python", "-c", code)
    assert "center" in text
    assert "center, hint 1 of" in text


def test_plain_pytest_runs_the_checks_of_a_bundle(student: Installed) -> None:
    solve(student)
    call = ("python", "-m", "pytest", "-q", "exercises/checks", "-k", "center")
    assert "2 passed" in student.run(*call)
    solve(student, WRONG)
    assert "1 failed" in student.run(*call, said=1)
