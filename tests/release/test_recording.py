"""Recordings of the public checks answer in place of references and mistakes."""

from __future__ import annotations

import re
import shutil
import sqlite3
import zlib
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest

from grader.author.audit import audit_course
from grader.course.course import SHEET, Course, load_course
from grader.grading.order import Order
from grader.grading.replays import Given
from grader.mistakes import load_library
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.release.recording import record_course
from grader.sandbox.jails import Warm
from grader.student.checking import open_checker
from grader.wire import Raised
from tests.conftest import Grader, sharing
from tests.support.bundles import recordings, waits_for_recordings
from tests.support.places import ROOT, TINY
from tests.support.statements import state_weigh

UNNAMED = """
import torch
class Projection(torch.nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.a = torch.nn.Parameter(torch.zeros(d_in, d_out))
    def forward(self, x):
        return x @ self.a
"""
BIASED = "from torch import nn\nclass Projection(nn.Module):\n    def __init__(self, d_in, d_out, bias=False):\n        super().__init__()\n        self.linear = nn.Linear(d_in, d_out)\n    def forward(self, x):\n        return self.linear(x)\n"  # noqa: E501
OTHERS = {
    "unnamed weights": UNNAMED,
    "a bias too many": BIASED,
    "a shape": "def staircase(size):\n    import torch\n    return torch.ones(size)\n",
    "an exception": "def center(x):\n    return x - y\n",
    "no number": "def center(x):\n    return x * float('nan')\n",
}


@pytest.fixture(scope="session")
def tiny_recording(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    """The tiny course's folder of exercises, with recordings and without solutions."""
    folder = tmp_path_factory.mktemp("recorded") / "exercises"
    shutil.copytree(tiny.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    record_course(tiny, folder / "recorded")
    return folder


@pytest.fixture
def bundle(tiny_recording: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoilt."""
    return shutil.copytree(tiny_recording, tmp_path / "exercises")


def answers() -> dict[str, str]:
    course = load_course(TINY / "exercises")
    library = load_library(course)
    variants = {variant.id: variant.definition for variant in library.variants}
    return (
        {"right": "", "stub": "def center(x):\n    raise NotImplementedError\n"} | variants | OTHERS
    )


@pytest.fixture(scope="module")
def both(
    warm: Warm, tiny: Course, tiny_recording: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[ExerciseResult]], dict[str, list[ExerciseResult]]]:
    """Verdicts on each answer: from the solutions, and from the recordings."""
    folder = tmp_path_factory.mktemp("answers")
    verdicts: list[dict[str, list[ExerciseResult]]] = []
    for course in (tiny, load_course(tiny_recording)):
        verdicts.append({})
        with ExitStack() as stack:
            with sharing(warm):
                checker = stack.enter_context(open_checker(course, folder=folder))
            for name, text in answers().items():
                shutil.copyfile(TINY / "solutions" / "layers.py", folder / "layers.py")
                basics = (TINY / "solutions" / "basics.py").read_text("utf-8")
                (folder / "basics.py").write_text(f"{basics}\n\n{text}\n", "utf-8")
                verdicts[-1][name] = checker.check()
    return verdicts[0], verdicts[1]


@pytest.mark.parametrize("name", answers())
def test_the_verdict_is_that_of_the_solutions(name: str, both: tuple[dict, dict]) -> None:  # type: ignore[type-arg]
    live, recorded = both
    assert recorded[name] == live[name]


def test_mistakes_are_named_without_their_text(both: tuple[dict, dict]) -> None:  # type: ignore[type-arg]
    told = {test.mistake for result in both[1]["center/adds"] for test in result.tests}
    assert "The mean is added" in told


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def test_the_same_course_makes_the_same_bytes(
    tiny: Course, tiny_recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    record_course(tiny, tmp_path / "recorded")
    assert bytes_in(tmp_path / "recorded") == bytes_in(tiny_recording / "recorded")
    assert len(bytes_in(tmp_path / "recorded")) == 3


def test_what_is_known_is_not_run_again(
    tiny: Course, tiny_recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_to_be_called(*_: object) -> Given:
        raise AssertionError("it was known how this ends")

    done: list[str] = []
    monkeypatch.setattr("grader.grading.asking.replay", not_to_be_called)
    record_course(tiny, tmp_path / "recorded", done.append)
    assert bytes_in(tmp_path / "recorded") == bytes_in(tiny_recording / "recorded")
    assert done == [*tiny.exercises]


def test_hidden_rows_of_the_same_sheet_stay_out_of_a_bundle(
    warm: Warm, tiny: Course, tiny_recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is known: of hidden tests, other mistakes, and pairs of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    order = Order(tiny, tiny.seed, tiny.tests_of(), isolation="weak", keeps_sheet=True)
    with sharing(warm), order.desk() as desk:
        assert desk.sheet is not None
        mistakes = [*desk.sheet.mistakes("center"), *desk.sheet.mistakes("weigh")]
        for test in (test for tests in desk.tests.values() for test in tests):
            for mistake in (*mistakes, *desk.sheet.pairs("weigh")):
                desk.sheet.given(mistake, test.key, test.cases[0].label)
                desk.sheet.built_on(mistake, test.key, test.cases[0].label)
    record_course(tiny, tmp_path / "recorded")
    assert bytes_in(tmp_path / "recorded") == bytes_in(tiny_recording / "recorded")


def test_where_nothing_can_be_kept_nothing_is_released(
    tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CallError, match="could not be kept"):
        record_course(tiny, tmp_path / "recorded")


@waits_for_recordings
def test_what_references_give_on_a_mistake_is_recorded_without_exceptions() -> None:
    folder = recordings(load_course(ROOT / "exercises"))
    select = "SELECT kind, value FROM rows JOIN contents USING (digest) WHERE kind IN (?, ?)"
    with closing(sqlite3.connect(folder / SHEET)) as sheet:
        rows = sheet.execute(select, ("gave", "built")).fetchall()
    results = [
        (kind, msgspec.msgpack.decode(zlib.decompress(value), type=Given).results)
        for kind, value in rows
    ]
    raised = [kind for kind, values in results for value in values if isinstance(value, Raised)]
    assert sum(kind == "built" for kind, _ in results) > 100
    assert {*raised} == {"gave"}  # mistakes do raise: it is of them that nothing is built


# --- recordings that are no good -----------------------------------------------------------------


@pytest.mark.parametrize("what", ["garbage", "half", "nothing", "gone"])
def test_a_damaged_recording_is_told_in_one_line(bundle: Path, grader: Grader, what: str) -> None:
    path = bundle / "recorded" / SHEET
    whole = path.read_bytes()
    if what == "gone":
        path.unlink()
    else:
        half = whole[: len(whole) // 2]
        path.write_bytes({"garbage": b"\xff\x00?" * 99, "half": half, "nothing": b""}[what])
    (bundle / "basics.py").write_text("def staircase(size):\n    return size\n", "utf-8")
    ran = grader("check", "staircase", "center", "--course", bundle)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert f"{path} is damaged or missing" in ran.err


def changed(bundle: Path, statement: str) -> None:
    with closing(sqlite3.connect(bundle / "recorded" / SHEET)) as sheet, sheet:
        sheet.execute(statement)


def test_a_row_that_was_changed_is_not_believed(bundle: Path, grader: Grader) -> None:
    changed(
        bundle,
        "UPDATE contents SET value = (SELECT value FROM contents JOIN rows USING (digest) "
        "WHERE kind = 'asked' AND name = 'center') WHERE digest IN "
        "(SELECT digest FROM rows WHERE kind = 'asked' AND name = 'staircase')",
    )
    text = "import torch\ndef staircase(size):\n    return torch.ones(size, size) > 0\n"
    (bundle / "basics.py").write_text(text, "utf-8")
    ran = grader("check", "staircase", "--course", bundle)
    assert (ran.code, "is damaged or missing" in ran.err) == (2, True)
    assert "is damaged or missing" in grader("doctor", "--course", bundle).out


def test_a_recording_of_another_version_or_course_is_refused(bundle: Path, grader: Grader) -> None:
    changed(bundle, "DELETE FROM rows WHERE (kind, name) = ('exercise', 'center')")
    assert "another course" in grader("check", "--course", bundle).err
    changed(bundle, "PRAGMA user_version = 99")
    assert "another version" in grader("check", "--course", bundle).err


def test_a_check_that_was_changed_asks_for_what_nobody_recorded(
    bundle: Path, grader: Grader
) -> None:
    path = bundle / "checks" / "test_basics.py"
    path.write_text(path.read_text("utf-8").replace("[1, 3]", "[3, 7]"), "utf-8")
    shutil.copyfile(TINY / "solutions" / "basics.py", bundle / "basics.py")
    ran = grader("check", "staircase", "--course", bundle)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "staircase" in ran.err
    assert "were the checks changed?" in ran.err


def test_without_recordings_and_solutions_nothing_is_checked(bundle: Path, grader: Grader) -> None:
    shutil.rmtree(bundle / "recorded")
    ran = grader("check", "--course", bundle)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


# --- checks that are no good for a bundle --------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be spoilt."""
    return load_course(shutil.copytree(TINY, tmp_path / "tiny") / "exercises")


def test_what_a_student_gave_may_not_reach_the_reference(course: Course, tmp_path: Path) -> None:
    path = course.folder / "checks" / "test_basics.py"
    add = '''

@rung.property("center")
def test_center_twice(student, reference, make):
    """Once more changes nothing."""
    once = student.center(make.normal(tokens=4))
    assert_agrees(once, reference.center(once))
'''
    path.write_text(path.read_text("utf-8") + add, "utf-8")
    with pytest.raises(CallError, match=r"test_center_twice.* what a student's code gave"):
        record_course(course, tmp_path / "recorded")


def test_a_check_that_fails_on_the_reference_is_not_recorded(
    course: Course, tmp_path: Path
) -> None:
    path = course.folder / "checks" / "test_basics.py"
    path.write_text(path.read_text("utf-8").replace("-1.0, 3.0", "-1.0, 4.0"), "utf-8")
    with pytest.raises(CallError, match="test_center_of_three_numbers fails on the reference"):
        record_course(course, tmp_path / "recorded")


TRAINS_ITSELF = {
    "with gradients": "        torch.autograd.grad(projected.sum(), self.linear.weight)\n",
    "without gradients": "        with torch.no_grad():\n            self.linear.weight *= 0.9\n",
}


@pytest.mark.parametrize("step", TRAINS_ITSELF.values(), ids=TRAINS_ITSELF)
def test_a_module_that_trains_itself_is_refused_by_release_and_audit_with_the_reason(
    course: Course, one_warm_process: None, tmp_path: Path, step: str
) -> None:
    path = course.solutions / "layers.py"
    text = path.read_text("utf-8").replace(
        "        return projected", f"{step}        return projected"
    )
    path.write_text(f"import torch\n{text}", "utf-8")
    reason = r"test_layers\.py:13: test_projection_with_our_weights .*changes its own weights"
    with pytest.raises(CallError, match=reason):
        record_course(course, tmp_path / "recorded")
    found = audit_course(course, ["Projection"], jobs=1)
    told = {f"{finding.place}: {finding.text}": finding.kind for finding in found}
    assert [kind for text, kind in told.items() if re.search(reason, text)] == ["exercise"]


BY_TORCH = """
@mistake("weigh", "by-torch", "Torch's own softmax does the work", hint="Which one is off limits?")
def by_torch(scores):
    return 3 * torch.softmax(scores, dim=-1)
"""
BY_HAND = "def weigh(scores):\n    return 3 * scores.exp() / scores.exp().sum(-1, keepdim=True)\n"


def test_a_forbidden_call_of_a_mistake_is_recorded_so_that_nobody_else_gets_its_name(
    course: Course, warm: Warm, tmp_path: Path
) -> None:
    with (course.solutions / "mistakes" / "basics.py").open("a", encoding="utf-8") as file:
        file.write(BY_TORCH)
    record_course(course, course.folder / "recorded")
    shutil.rmtree(course.solutions)
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "basics.py").write_text(BY_HAND, "utf-8")
    with sharing(warm), open_checker(load_course(course.folder), folder=folder) as checker:
        results = checker.check(["weigh"])
    assert {test.mistake for result in results for test in result.tests} == {None}
    assert not any(result.solved for result in results)


def test_a_bundle_knows_which_rules_a_mistake_breaks(
    course: Course, warm: Warm, tmp_path: Path
) -> None:
    """The check quotes two rules; "Each column sums to one" breaks only one of them."""
    state_weigh(course)
    checks = course.folder / "checks" / "test_basics.py"
    text = checks.read_text("utf-8")
    before = 'value("weigh")'
    assert before in text
    after = 'value("weigh", rules=("large", "computes"))'
    checks.write_text(text.replace(before, after), "utf-8")
    definition = next(v.definition for v in load_library(course).variants if v.slug == "columns")
    record_course(course, course.folder / "recorded")
    shutil.rmtree(course.solutions)
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "basics.py").write_text(f"import torch\n{definition}", "utf-8")
    with sharing(warm), open_checker(load_course(course.folder), folder=folder) as checker:
        (result,) = checker.check(["weigh"])
    assert [[*test.rules] for test in result.tests if test.mistake] == [["computes"]]


def test_a_desk_of_recordings_has_no_reference(warm: Warm, tiny_recording: Path) -> None:
    course = load_course(tiny_recording)
    files = dict.fromkeys(course.check_files(), False)
    with sharing(warm), Order(course, course.seed, files, isolation="weak").desk() as desk:
        assert not hasattr(desk.oracle, "definitions")


def test_a_students_own_folder_called_solutions_is_nobodys_business(
    bundle: Path, grader: Grader
) -> None:
    (bundle.parent / "solutions").mkdir()
    (bundle / "basics.py").write_text("def center(x):\n    return x - x.mean()\n", "utf-8")
    assert grader("check", "center", "--course", bundle).code == 0


@waits_for_recordings
def test_weights_without_a_name_are_found_whatever_the_check_put_into_the_reference(
    tmp_path: Path, grader: Grader
) -> None:
    course = load_course(ROOT / "exercises")
    shutil.copytree(course.folder, tmp_path / "exercises")
    shutil.copytree(recordings(course), tmp_path / "exercises" / "recorded")
    library = load_library(course)
    name, slug = "MultiHeadAttention", "fused-parameter-in-turns"
    (variant,) = (v for v in library.of(name, "accepted") if v.slug == slug)
    for source in library.submission(name, variant):
        (tmp_path / "exercises" / source.name).write_text(source.cells[0], "utf-8")
    ran = grader("check", name, "--course", tmp_path / "exercises")
    assert ran.code == 0, ran.out
