"""No code runs but the kit's, the code of a course that somebody chose, and what jails run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import grader
from grader.course.course import NAMED, Course, find_course, load_course
from grader.lms.classroom50_bundle import release_classroom50
from grader.lms.gradescope import release_gradescope
from grader.records.faults import CallError
from tests.conftest import Grader
from tests.support.bundles import recorded_in_name
from tests.support.places import REAL, ROOT, TINY

SCRIPT = Path(sys.executable).with_name("grader")

# What a hand-in puts into a file that is not its own to write: it leaves a trace where it runs.
TRACE = "import pathlib\npathlib.Path({trace!r}).write_text('here', 'utf-8')\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file that is there once code of the hand-in has run as whoever typed the command."""
    return tmp_path / "trace"


def poisoned(folder: Path, trace: Path) -> None:
    """Let every file of Python below a folder leave a trace, and do its work besides."""
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8").replace("from __future__ import annotations\n", "")
        path.write_text(TRACE.format(trace=str(trace)) + text, "utf-8")


def with_solutions(handin: Path) -> None:
    shutil.copytree(TINY, handin, dirs_exist_ok=True)


def without_solutions(handin: Path) -> None:
    shutil.copytree(TINY / "exercises", handin / "exercises")


def feigned_bundle(handin: Path) -> None:
    """Solutions, and a file that only a student's bundle has."""
    with_solutions(handin)
    recorded_in_name(load_course(TINY / "exercises"), handin / "exercises" / "recorded")


def overlay(handin: Path) -> None:
    """Solutions laid over another course, even the kit's own."""
    shutil.copytree(TINY / "solutions", handin / "solutions")
    below = json.dumps(str(REAL))
    (handin / "course.toml").write_text(f"overlay = {below}\n", "utf-8")


def named_like_ours(handin: Path) -> None:
    """A course file of its own that says it is ours, and worth more."""
    shutil.copytree(REAL, handin / "exercises", ignore=shutil.ignore_patterns("*.py"))


SHAPES = (with_solutions, without_solutions, feigned_bundle, overlay, named_like_ours)
HOLD_SOLUTIONS = (with_solutions, overlay)


def handed_in(tmp_path: Path, trace: Path, shape: object) -> Path:
    """A hand-in that brings a course; what of it runs in no jail leaves a trace."""
    handin = tmp_path / "class" / "mallory"
    handin.mkdir(parents=True)
    assert callable(shape)
    shape(handin)
    poisoned(handin, trace)
    (handin / "softmax.py").write_text("x = 1\n", "utf-8")
    return handin


INSTRUCTORS = (
    ("grade", "softmax.py", "--out", "g"),
    ("grade", "softmax.py", "--dry-run"),
    ("grade", "--again", "--out", "g"),
    ("audit",),
    ("release", "student", "--to", "b"),
    ("release", "gradescope", "--to", "b"),
    ("release", "otter", "--to", "b"),
    ("release", "classroom50", "--to", "b"),
    ("new", "course", "b", "--overlay"),
    ("explain", "g", "ada", "center"),
    ("adjust", "g", "ada", "center", "+1", "--reason", "r"),
    ("forget", "g", "ada", "--yes"),
    ("diff", "g"),
    ("report", "g"),
    ("export", "g", "--to", "csv"),
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("command", INSTRUCTORS, ids=" ".join)
def test_an_instructors_command_uses_no_course_that_lies_in_a_hand_in(
    command: tuple[str, ...],
    shape: object,
    cold_grader: Grader,
    tmp_path: Path,
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handin = handed_in(tmp_path, trace, shape)
    before = sorted(handin.rglob("*"))
    (handin / "deeper").mkdir()
    monkeypatch.chdir(handin / "deeper")
    ran = cold_grader(*command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert str(handin) in ran.err
    assert "--course DIR" in ran.err
    assert NAMED in ran.err
    assert ("solutions would run as you" in ran.err) == (shape in HOLD_SOLUTIONS)
    assert not trace.exists()
    assert sorted(p for p in handin.rglob("*") if p.name != "deeper") == before


# --- what a student types -------------------------------------------------------------------------

STUDENTS = (
    ("check",),
    ("check", "center", "--show"),
    ("check", "center", "--pdb"),
    ("list",),
    ("hint",),
    ("reset", "center", "--yes"),
    ("pack",),
    ("watch", "--plain"),
    (),
)  # fmt: skip


@pytest.mark.parametrize("shape", HOLD_SOLUTIONS, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("command", STUDENTS, ids=" ".join)
def test_a_students_command_uses_no_solutions_that_nobody_named(
    command: tuple[str, ...],
    shape: object,
    cold_grader: Grader,
    tmp_path: Path,
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(handed_in(tmp_path, trace, shape))
    ran = cold_grader(*command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "solutions would run as you" in ran.err
    assert not trace.exists()


@pytest.mark.parametrize("shape", HOLD_SOLUTIONS, ids=lambda shape: shape.__name__)
def test_a_notebook_and_a_workflow_use_no_solutions_that_nobody_named(
    shape: object, tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handed_in(tmp_path, trace, shape))
    for ask in (lambda: grader.check(), lambda: grader.hint()):
        with pytest.raises(CallError, match="solutions would run as you"):
            ask()
    assert not trace.exists()


def test_doctor_says_that_a_course_was_not_chosen(
    cold_grader: Grader, tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handed_in(tmp_path, trace, with_solutions))
    ran = cold_grader("doctor", "--json")
    (course,) = (found for found in json.loads(ran.out) if found["topic"] == "course")
    assert course["state"] == "bad"
    assert "was not named" in course["text"]
    assert not trace.exists()


@pytest.mark.parametrize("here", [".", "exercises", "exercises/checks", "notes"])
def test_a_students_command_finds_the_bundle_that_it_is_typed_in(
    here: str, cold_grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they have made a folder `solutions` of their own, which means nothing."""
    feigned_bundle(tmp_path)
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / here)
    ran = cold_grader("list")
    assert (ran.code, "center" in ran.out) == (0, True)


# --- a course that somebody chose -----------------------------------------------------------------


@pytest.fixture
def class_folder(tmp_path: Path, right: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder above which lies a course with solutions, and in which there is a submission."""
    shutil.copytree(TINY, tmp_path / "mine")
    folder = tmp_path / "mine" / "class"
    folder.mkdir()
    (folder / "ada.py").write_text(right, "utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("named", ["option", "environment", "both"])
def test_a_course_with_solutions_is_used_where_it_is_named(
    named: str, grader: Grader, class_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert grader("grade", "ada.py", "--out", "g").code == 2
    assert not (class_folder / "g").exists()
    option = [] if named == "environment" else ["--course", ".."]
    if named != "option":
        elsewhere = class_folder if named == "both" else class_folder.parent
        monkeypatch.setenv(NAMED, str(elsewhere))  # the option wins: there is no course
    ran = grader("grade", "ada.py", "--out", "g", *option)
    assert ran.code == 0, ran.err
    assert f"course: tiny, {class_folder.parent / 'exercises'}\n" in ran.out


@pytest.mark.parametrize("place", ["..", "mine", "~/mine"])
def test_the_environment_names_one_course_and_not_another_in_each_folder(
    place: str, cold_grader: Grader, class_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAMED, place)
    ran = cold_grader("grade", "ada.py", "--out", "g")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"{NAMED} is {place!r}" in ran.err


def test_a_course_of_the_environment_that_is_not_there_is_not_looked_for_elsewhere(
    cold_grader: Grader, class_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAMED, str(class_folder / "gone"))
    assert "there is no course.toml in" in cold_grader("list").err
    monkeypatch.setenv(NAMED, "")  # as if it were not set
    assert "solutions would run as you" in cold_grader("list").err


@pytest.mark.parametrize("here", [".", "exercises/checks", "tests/submissions/ada"])
def test_in_the_kit_its_own_course_is_used(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / here)
    for student in (False, True):
        assert find_course(None, student=student) == REAL


def test_a_link_to_the_kits_course_is_the_kits_course_and_nothing_beside_it(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY / "solutions", tmp_path / "solutions")
    poisoned(tmp_path, trace)
    (tmp_path / "exercises").symlink_to(REAL)
    monkeypatch.chdir(tmp_path)
    course = load_course(find_course(None))
    assert course.secrets == (ROOT / "solutions",)
    assert course.label == f"{course.name} (the kit's own)"


def test_commands_that_run_a_course_say_which(
    grader: Grader, class_folder: Path, tmp_path: Path
) -> None:
    """But not where a program reads."""
    said = f"course: tiny, {class_folder.parent / 'exercises'}\n"
    named = ("--course", "..")
    grade = ("grade", "ada.py", "--out", "g", "--only", "center", "--no-pages", *named)
    explain = ("explain", "g", "ada", "center/test_center_takes_no_loop", *named)
    audit = ("audit", "center", *named)
    release = ("release", "gradescope", "--to", "b", *named)
    calls: tuple[tuple[str, ...], ...] = (grade, (*grade, "--fresh"), explain, audit, release)
    for call in calls:
        assert said in grader(*call).out
    calls = (
        (*grade, "--quiet"),
        (*grade, "--json"),
        (*grade, "--json-lines"),
        (*explain, "--json"),
        (*audit, "--json"),
    )
    for call in calls:
        ran = grader(*call)
        assert ran.err == ""
        assert "course: " not in ran.out
    assert grader("new", "course", "over", "--overlay", *named).code == 0
    (class_folder / "over" / "solutions" / "seed").write_text("s\n", "utf-8")
    ran = grader("grade", "ada.py", "--out", "h", "--only", "center", "--course", "over")
    assert f"course: tiny, {class_folder / 'over'}\n" in ran.out


def test_a_gradebook_holds_no_path_of_its_course(
    grader: Grader, class_folder: Path, tmp_path: Path
) -> None:
    """So a course that moved is named, and nothing looks where it was."""
    before = class_folder.parent
    wrong = class_folder / "bob.py"
    wrong.write_text("def center(x):\n    return x + x.mean()\n", "utf-8")
    assert grader("grade", "ada.py", "bob.py", "--out", "g", "--course", "..").code == 0
    paths = [path for path in (class_folder / "g").rglob("*") if path.is_file()]
    assert {"grades.db", "report.html"} <= {path.name for path in paths}
    for path in paths:
        assert str(before).encode() not in path.read_bytes(), path.name
    moved = before.rename(tmp_path / "moved")
    shutil.copytree(TINY, before)
    trace = tmp_path / "trace"
    poisoned(before, trace)
    book = moved / "class" / "g"
    for call in (
        ("report", book),
        ("export", book, "--to", "csv"),
        ("explain", book, "bob", "center"),
        ("adjust", book, "bob", "center", "+1", "--reason", "r"),
        ("diff", book, book),
        ("grade", "--again", "--fresh", "--out", book),
        ("forget", book, "bob", "--yes"),
    ):
        ran = grader(*call, "--course", moved)
        assert ran.code == 0, (call, ran.err)
    assert not trace.exists()


# --- what lies in the working directory -----------------------------------------------------------


OF_PYTHON = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file named like each module that Python or any package of ours could import.

    Every second one is a package; each leaves a trace beside the folder.
    """
    folder = tmp_path_factory.mktemp("hostile") / "handin"
    folder.mkdir()
    installed = set(metadata.packages_distributions()) - {"grader"}
    names = sorted({*sys.stdlib_module_names, *installed, "sitecustomize", "usercustomize"})
    assert {"typing", "multiprocessing", "typer", "rich", "msgspec", "torch"} <= set(names)
    for number, name in enumerate(names):
        place = folder / name / "__init__.py" if number % 2 else folder / f"{name}.py"
        place.parent.mkdir(exist_ok=True)
        trace = str(folder.parent / f"{name} was here")
        place.write_text(f"open({trace!r}, 'x')\nraise ImportError('a hand-in')\n", "utf-8")
    for name in ("ada.py", "bob.py"):
        (folder / name).write_text("def center(x):\n    return x - x.mean()\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def less_hostile(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without what ``python -m`` itself loads, before any module that it is to run."""
    place = tmp_path_factory.mktemp("probe")
    (place / "probe.py").write_text(OF_PYTHON, "utf-8")
    loaded = subprocess.check_output([sys.executable, "-m", "probe"], cwd=place, text=True).split()
    folder = hostile.parent / "without"
    files = [f"{name}.py" for name in loaded]
    shutil.copytree(hostile, folder, ignore=shutil.ignore_patterns(*loaded, *files))
    left = {path.name.removesuffix(".py") for path in folder.iterdir()}
    assert {"__future__", "typer", "rich", "msgspec"} <= left
    return folder


AS_A_MODULE = (sys.executable, "-m", "grader")
GRADE = (
    "grade", "ada.py", "bob.py", "--only", "center", "--course", str(TINY), "--no-pages", "--fresh",
)  # fmt: skip
CHECK = ("check", "center", "--in", "ada.py", "--course", str(TINY))


def runs_alone(folder: Path, *command: str | Path) -> None:
    """Run a command in a folder of hostile modules, of which none may run."""
    before = {path.name for path in folder.parent.iterdir()}
    unset = ("PYTHONPATH", "PYTHONSAFEPATH")
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={name: value for name, value in os.environ.items() if name not in unset},
    )
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in folder.parent.iterdir()} == before


@pytest.mark.parametrize(
    "command",
    [
        (*GRADE, "--jobs", "1"),
        (*GRADE, "--jobs", "2"),
        (*GRADE, "--cluster", "local:1"),
        (*CHECK, "--backend", "worker"),
        (*CHECK, "--show"),
    ],
    ids=["one process", "two jobs", "cluster", "worker", "show"],
)
def test_nothing_is_imported_from_the_working_directory(
    hostile: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    if "--cluster" in command:
        pytest.importorskip("distributed", reason="many machines need the extra [cluster]")
    out = ("--out", tmp_path / "g") if command[0] == "grade" else ()
    runs_alone(hostile, SCRIPT, *command, *out)


@pytest.mark.parametrize("command", [("--version",), (*GRADE, "--jobs", "2")], ids=" ".join)
def test_as_a_module_nothing_is_imported_from_there_but_what_python_itself_needs(
    less_hostile: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    out = ("--out", tmp_path / "g") if command[0] == "grade" else ()
    runs_alone(less_hostile, *AS_A_MODULE, *command, *out)


def test_nothing_that_is_printed_or_shipped_starts_the_kit_from_the_working_directory(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` looks there first; `python -I -m` does not."""
    monkeypatch.setattr("grader.release.recording.record_course", recorded_in_name)
    release_classroom50(tiny, tmp_path / "classroom50")
    release_gradescope(tiny, tmp_path / "gradescope")
    ours = [
        path
        for folder in (ROOT, ROOT / "grader", REAL, ROOT / "solutions", tmp_path)
        for path in (folder.glob("*") if folder == ROOT else folder.rglob("*"))
        if path.is_file() and path.suffix not in (".pyc", ".zip")
    ]
    assert len(ours) > 300
    started = re.compile(rb"-m[\s\"',]+grader\b")
    for path in ours:
        for found in started.finditer(path.read_bytes()):
            before = path.read_bytes()[: found.start()].rstrip(b" \"',")
            assert before.endswith(b"-I"), f"{path}: {found[0]!r}"
