"""otter-grader in both directions: its own commands on what `grader release otter` wrote."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dill
import nbformat
import pytest
from nbclient import NotebookClient
from otter.cli import cli
from otter.run import AutograderConfig
from otter.test_files import GradingResults

from grader.course.course import Course, load_course
from grader.lms import otter_plugin as host
from grader.lms.otter import KIT, release_otter
from grader.records.faults import CallError, HostFault
from grader.records.files import files_in
from grader.records.grade import ExerciseResult, Grade, TestResult
from grader.release.courses import carry, load_carried, part_of
from tests.conftest import Grader
from tests.support.bundles import recorded_in_name, recorded_once
from tests.support.places import TINY

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # otter's own

WRONG = """\
import torch

def center(x):
    return x + x.mean()

def staircase(size):
    return torch.ones(size, size, dtype=torch.bool).tril()

def weigh(scores):
    return torch.softmax(scores, dim=-1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    """What `grader release otter` writes for the tiny course."""
    folder = tmp_path_factory.mktemp("release") / "otter"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.release.recording.record_course", recorded_once)
        release_otter(tiny, folder)
    return folder


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and otter write beside the test, and leave this process as it was."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # otter puts a folder of its own before it


Run = Callable[[Path, Path], dict[str, Any]]


@pytest.fixture
def otter_run(one_warm_process: None, tmp_path: Path) -> Run:
    """`otter run`, in this process: it has torch loaded; what it writes as results."""

    def run(autograder: Path, submission: Path) -> dict[str, Any]:
        out = tmp_path / f"results of {submission.name}"
        out.mkdir()
        options = ["--no-logo", "-a", str(autograder), "-o", str(out), str(submission)]
        cli.main(["run", *options], standalone_mode=False)
        found: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))
        return found

    return run


def scores(results: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """What otter gives for each exercise, of how much."""
    tests = [test for test in results["tests"] if "score" in test]
    return {test["name"]: (test["score"], test["max_score"]) for test in tests}


def notebook(path: Path, *cells: str) -> Path:
    made = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    made.cells = [nbformat.v4.new_code_cell(text) for text in cells]  # type: ignore[no-untyped-call]
    nbformat.write(made, path)  # type: ignore[no-untyped-call]
    return path


# --- otter run -----------------------------------------------------------------------------------


def test_a_script_is_graded_as_by_grader_grade(
    folder: Path, otter_run: Run, grader: Grader, right: str, tmp_path: Path
) -> None:
    path = tmp_path / "ada.py"
    path.write_text(right, "utf-8")
    results = otter_run(folder / "autograder.zip", path)
    assert scores(results) == graded(grader, path)
    assert scores(results)["Projection"] == (4, 4)
    assert results["output"].startswith("Isolation: process")


def test_a_notebook_is_graded_as_by_grader_grade(
    folder: Path, otter_run: Run, grader: Grader, tmp_path: Path
) -> None:
    """Of one unit, as its autograder grades it; with the name of a mistake, and no numbers."""
    path = notebook(tmp_path / "bob.ipynb", *WRONG.split("\n\n"))
    results = otter_run(folder / "autograders" / "basics.zip", path)
    assert scores(results) == graded(grader, path, "--only", "basics")
    assert scores(results) == {"center": (0, 2), "staircase": (1, 1), "weigh": (0, 3)}
    public, center, _, weigh = (test["output"] for test in results["tests"])
    assert "The mean is added" in center
    assert "What is the mean of what remains?" in center
    assert "expected" in public
    hidden = center.partition("The mean is gone from every element result:")[2]
    assert hidden
    assert not re.search(r"expected|\d\.\d", hidden)
    assert "uses softmax: the exercise is to write it yourself" in weigh


def graded(grader: Grader, path: Path, *options: str) -> dict[str, tuple[float, float]]:
    """What `grader grade` gives for each exercise, of how much."""
    out = path.with_suffix(".grades")
    ran = grader("grade", path, "--out", out, "--course", TINY / "exercises", *options)
    assert ran.code == 0, ran.err
    grade = Grade.from_json((out / "results.jsonl").read_bytes())
    return {exercise.name: (exercise.points, exercise.max) for exercise in grade.exercises}


def test_a_notebook_that_cannot_be_read_has_no_score(folder: Path, tmp_path: Path) -> None:
    """As a program of its own: no results, and an exit code."""
    path = tmp_path / "cleo.ipynb"
    path.write_text("no notebook")
    ran = subprocess.run(
        [sys.executable, "-m", "otter", "run", "-a", folder / "autograder.zip", path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode != 0
    assert not (tmp_path / "results.json").exists()


# --- what beats otter alone ----------------------------------------------------------------------

# Each leaves a file of its name where it ran.
CELL = """\
from pathlib import Path
Path({markers!r}, "cell").touch()
from otter.test_files import abstract_test, exception_test
def run(self, env):
    self.test_case_results = [
        abstract_test.TestCaseResult(case, "", True) for case in self.test_cases
    ]
exception_test.ExceptionTestFile.run = run
"""
MODULE = """\
import sys
from pathlib import Path
Path({markers!r}, "module").touch()
del sys.path[0], sys.modules["wrapt"]
import wrapt
"""
CENTER = "def center(x):\n    return x\n"

TEST = """\
from otter.test_files import test_case
OK_FORMAT = False
name = "center"
points = 2
@test_case()
def test_center(center):
    assert center(1) == 0
"""


class Log:
    """A log of otter's that is no log."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self._marker,)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A zip as otter's students hand in, and the folder in which it leaves its marks."""
    markers = tmp_path / "markers"
    markers.mkdir()
    book = notebook(tmp_path / "mallory.ipynb", CELL.format(markers=str(markers)), CENTER)
    with zipfile.ZipFile(tmp_path / "mallory.zip", "w") as archive:
        archive.write(book, "mallory.ipynb")
        archive.writestr("wrapt.py", MODULE.format(markers=str(markers)))
        archive.writestr(".OTTER_LOG", dill.dumps(Log(markers / "log")))
        archive.writestr("tests/center.py", "raise SystemExit")
    return tmp_path / "mallory.zip", markers


def test_otter_alone_is_beaten(hostile: tuple[Path, Path], otter_run: Run, tmp_path: Path) -> None:
    """Else the next test would prove nothing."""
    submission, markers = hostile
    with zipfile.ZipFile(tmp_path / "otter alone.zip", "w") as archive:
        archive.writestr("tests/center.py", TEST)
        archive.writestr("otter_config.json", "{}")
    results = otter_run(tmp_path / "otter alone.zip", submission)
    assert scores(results) == {"center": (2, 2)}
    assert names_in(markers) == {"cell", "log", "module"}


def test_what_beats_otter_alone_changes_nothing(
    hostile: tuple[Path, Path], folder: Path, otter_run: Run
) -> None:
    submission, markers = hostile
    results = otter_run(folder / "autograders" / "basics.zip", submission)
    assert {name: score for name, (score, _) in scores(results).items()} == {
        "center": 0,
        "staircase": 0,
        "weigh": 0,
    }
    assert names_in(markers) == set(), "nothing of it ran outside of the jail"


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- the plugin ----------------------------------------------------------------------------------


@pytest.fixture
def plugged(one_warm_process: None, folder: Path, tmp_path: Path) -> Callable[..., host.Plugin]:
    """The plugin as otter makes it, in the folders in which otter works."""

    def plug(name: str = "ada.py", data: bytes = WRONG.encode(), **config: Any) -> host.Plugin:
        with zipfile.ZipFile(folder / "autograder.zip") as archive:
            archive.extractall(tmp_path / "otter" / "source")
        submission = tmp_path / "otter" / "submission" / name
        submission.parent.mkdir()
        submission.write_bytes(data)
        return host.Plugin(str(submission), {}, config)

    return plug


def results_of(plugin: host.Plugin) -> GradingResults:
    """What otter has in the end, whatever it had before."""
    plugin.before_grading(AutograderConfig())
    plugin.before_execution(None)
    results = GradingResults.without_results(ValueError("of the kernel"))
    plugin.after_grading(results)
    return results


def test_otter_gets_an_empty_notebook_and_an_empty_folder(
    plugged: Callable[..., host.Plugin],
) -> None:
    plugin = plugged()
    submission = Path(plugin.submission_path)
    (submission.parent / "tests").mkdir()
    config = AutograderConfig({"grade_from_log": True})
    plugin.before_grading(config)
    assert names_in(submission.parent) == {submission.name}
    assert not config.grade_from_log
    made = plugin.before_execution("the submission")
    assert (made.cells, made.metadata) == ([], {})
    nbformat.validate(made)
    assert names_in(submission.parent) == set()


def test_what_otter_found_does_not_count(plugged: Callable[..., host.Plugin]) -> None:
    results = results_of(plugged(only=["basics"]))
    assert not results.has_catastrophic_failure()
    assert (results.total, results.possible) == (1, 6)
    assert set(results.results) == {"center", "staircase", "weigh"}


def test_all_points_are_all_points_for_otter_too(
    plugged: Callable[..., host.Plugin], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`otter assign` compares sums of floats."""
    parts = [TestResult(str(points), "", "passed", points, points) for points in (0.1, 0.2)]
    exercise = ExerciseResult("center", "basics", 0.3, 0.3, tuple(parts))
    full = Grade("", "", "graded", 0.3, 0.3, "", "", (), "", 0, (exercise,))
    monkeypatch.setattr(host, "grade_one", lambda *_, **__: full)
    results = results_of(plugged())
    assert results.total == results.possible


def test_a_file_that_is_not_read_is_told(plugged: Callable[..., host.Plugin]) -> None:
    results = results_of(plugged("ada.ipynb", b" " * (5 * 2**20)))
    assert (results.total, results.possible) == (0, 10), "all exercises, where none are named"
    assert results.output.startswith("ada.ipynb: larger than 4 MB: clear its outputs")


def test_weak_isolation_is_named(
    plugged: Callable[..., host.Plugin], monkeypatch: pytest.MonkeyPatch
) -> None:
    unkept = "nothing keeps them from files"
    monkeypatch.setattr("grader.grading.opening.shortfall", lambda *_: unkept)
    plugin = plugged()
    assert "(weak: " in results_of(plugin).output
    assert "(weak: " in plugin.generate_report()


def test_a_fault_of_ours_is_no_score(
    plugged: Callable[..., host.Plugin], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Grade("", "", "grader_error", 0, 10, "", "", (), "", 0, message="a test broke")
    monkeypatch.setattr(host, "grade_one", lambda *_, **__: broken)
    plugin = plugged()
    with pytest.raises(HostFault, match="a test broke"):
        plugin.before_execution(None)
    with pytest.raises(HostFault, match="before the submission was graded"):
        plugin.after_grading(GradingResults([]))


# --- what students get ---------------------------------------------------------------------------


def test_a_student_checks_in_otters_notebook(folder: Path, tmp_path: Path) -> None:
    """In a kernel, with no solution anywhere near."""
    place = tmp_path / "student"
    shutil.copytree(folder / "student", place)
    book = nbformat.read(place / "basics" / "basics.ipynb", 4)  # type: ignore[no-untyped-call]
    cells = {cell.id: cell for cell in book.cells}
    for name, answer in zip(("center", "staircase"), WRONG.split("\n\n")[1:3], strict=True):
        cells[f"{name}-answer"].source = f"import torch\n{answer}"
    client = NotebookClient(
        book,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(place / "basics")}},
    )
    client.execute()
    center, staircase, weigh = (
        cells[f"{name}-check"].outputs[0].data["text/plain"]
        for name in ("center", "staircase", "weigh")
    )
    assert "1, 2, 6 become -2, -1, 3 result:" in center
    assert "The mean is added\n" in center
    assert "What is the mean of what remains?" in center
    assert staircase == "staircase results: All test cases passed!"
    assert "there is a part to write" in weigh
    (handed_in,) = (place / "basics").glob("basics_*.zip")
    assert {"basics.ipynb", ".OTTER_LOG"} <= set(zipfile.ZipFile(handed_in).namelist())


def test_a_student_gets_no_secret(folder: Path, tiny: Course) -> None:
    """Of the references, the hidden graders and the mistakes; the rest is any bundle's."""
    student = folder / "student"
    public = "".join(path.read_text("utf-8") for path in tiny.folder.rglob("*.py"))
    hidden = {
        line.strip()
        for path in tiny.solutions.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if len(line.strip()) > 20 and line.strip() not in public
    }
    assert len(hidden) > 50
    for unit in tiny.units:
        for name in files_in(student / unit.name):
            text = (student / unit.name / name).read_text("utf-8").replace('\\"', '"')
            assert [line for line in hidden if line in text] == []
    shipped = b"".join((student / name).read_bytes() for name in files_in(student))
    assert tiny.hidden_seed().encode() not in shipped
    assert not list(student.rglob("solutions"))


def test_only_the_owner_may_look_into_the_folder(folder: Path) -> None:
    assert folder.stat().st_mode & 0o077 == 0


# --- otter assign, and otter's containers --------------------------------------------------------


def test_otter_assign_takes_a_master_notebook(
    one_warm_process: None, folder: Path, tmp_path: Path
) -> None:
    """It grades the references with the autograder that it made, and wants every point."""
    master = shutil.copytree(folder / "master", tmp_path / "master")
    options = [str(master / "basics.ipynb"), str(tmp_path / "dist")]
    cli.main(["assign", *options], standalone_mode=False)
    student = tmp_path / "dist" / "student"
    assert names_in(student / "tests") == {"center.py", "staircase.py", "weigh.py"}
    book = (student / "basics.ipynb").read_text("utf-8")
    assert book.count("raise NotImplementedError") > 2
    assert "x - x.mean()" not in book
    (made,) = (tmp_path / "dist" / "autograder").glob("basics-autograder_*.zip")
    names = set(zipfile.ZipFile(made).namelist())
    assert {"files/course/solutions/seed", f"files/{KIT}", "otter_config.json"} <= names


@pytest.fixture(scope="module")
def unpacked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        archive.extractall(to)
    return to


def test_an_autograder_has_what_otters_containers_run(unpacked: Path) -> None:
    assert {"run_autograder", "run_otter.py", "setup.sh", "environment.yml"} <= names_in(unpacked)
    environment = (unpacked / "environment.yml").read_text("utf-8")
    assert f"- /autograder/source/{KIT}" in environment
    assert b"sandlock" in zipfile.ZipFile(unpacked / KIT).read("pyproject.toml")
    setup = (unpacked / "setup.sh").read_text("utf-8")
    subprocess.run(["bash", "-n", unpacked / "setup.sh"], check=True)
    assert setup.index("mamba run") < setup.index("echo '{}' > /autograder/submission_metadata")


def test_a_container_can_install_the_kit(unpacked: Path, tmp_path: Path) -> None:
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--target", tmp_path / "kit")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *options, unpacked / KIT], check=True
    )
    assert (tmp_path / "kit" / "grader" / "lms" / "otter_plugin.py").is_file()


def test_a_course_that_is_carried_is_the_same_one(tiny: Course, tmp_path: Path) -> None:
    """A private one with what it lays over the other, too."""
    overlay = tmp_path / "mine"
    (overlay / "solutions" / "graders").mkdir(parents=True)
    (overlay / "solutions" / "graders" / "test_more.py").write_text("")
    (overlay / "solutions" / "seed").write_text("my own")
    (overlay / "course.toml").write_text(
        f'overlay = "{tiny.folder.as_posix()}"\n[feedback]\nhidden = "verdicts"\n'
    )
    for number, course in enumerate((tiny, load_course(overlay))):
        carry(course, tmp_path / f"carried {number}")
        carried = load_carried(tmp_path / f"carried {number}")
        assert carried.file == course.file
        assert [path.name for path in carried.tests_of()] == [p.name for p in course.tests_of()]
        assert carried.hidden_seed() == course.hidden_seed()
        assert carried.folder.is_relative_to(tmp_path)


def test_an_assignment_is_its_units_and_grades_its_exercises(
    otter_run: Run, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And counts its points."""
    handed_in = tmp_path / "ada.py"
    handed_in.write_text(right, "utf-8")
    monkeypatch.setattr("grader.release.recording.record_course", recorded_in_name)
    tiny = shutil.copytree(TINY, tmp_path / "tiny") / "exercises"
    with (tiny / "course.toml").open("a") as text:
        text.write('\n[[assignment]]\nname = "ps1"\nexercises = ["weigh"]\npoints = 100\n')
    release_otter(part_of(load_course(tiny), "ps1"), tmp_path / "ps1")
    assert names_in(tmp_path / "ps1" / "autograders") == {"basics.zip"}
    assert not (tmp_path / "ps1" / "student" / "layers").exists()
    with zipfile.ZipFile(tmp_path / "ps1" / "autograder.zip") as archive:
        (plugin,) = json.loads(archive.read("otter_config.json"))["plugins"]
    assert plugin == {"grader.lms.otter_plugin.Plugin": {"only": ["weigh"]}}
    results = otter_run(tmp_path / "ps1" / "autograder.zip", handed_in)
    assert scores(results) == {"weigh": (100, 100)}
    test_file = tmp_path / "ps1" / "student" / "basics" / "tests" / "weigh.py"
    assert "\npoints = 100\n" in test_file.read_text("utf-8")


# --- what is refused -----------------------------------------------------------------------------


def test_a_notebook_that_was_changed_is_lost_only_when_told_so(
    folder: Path, tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.release.recording.record_course", recorded_once)
    changed = shutil.copytree(folder, tmp_path / "otter") / "master" / "basics.ipynb"
    before = changed.read_bytes()
    changed.write_text("mine")
    with pytest.raises(CallError, match=r"basics\.ipynb changed since the release: --replace"):
        release_otter(tiny, tmp_path / "otter")
    release_otter(tiny, tmp_path / "otter", replace=True)
    assert changed.read_bytes() == before


def test_without_otter_it_says_how_to_get_it(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "otter"]:
        monkeypatch.setitem(sys.modules, name, None)
    ran = grader("release", "otter", "--to", tmp_path / "x", "--course", TINY / "exercises")
    assert ran.code == 2
    assert ran.err.endswith("pip install 'attention-grader[otter]'\n")
    assert list(tmp_path.iterdir()) == []
