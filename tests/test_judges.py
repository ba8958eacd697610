"""What can be said of the comparison with other judges without a network, and without them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from grader.course.course import load_course
from grader.mistakes import Library, load_library
from tests.benchmarks import judged, judges
from tests.benchmarks.adapters import JUDGE, LEFT_OUT, TASKS, Task
from tests.benchmarks.judges_table import REFERENCE, Fate, left_out, report, rows
from tests.support.places import REAL

BY_TASK = {f"{task.judge} {task.task}": task for task in TASKS}
DATED = {"date": "2026-11-24", "python": "3.11.7", "torch-judge": "0.1.1"}


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(load_course(REAL))


@pytest.fixture(scope="module")
def references(library: Library) -> Mapping[str, Any]:
    return judged.defined(library.together())


def test_adapters_and_what_is_left_out_name_exercises_and_answers_of_the_course(
    library: Library,
) -> None:
    named = [task.exercise for task in TASKS] + [one.exercise for one in LEFT_OUT]
    assert {*named} <= {*library.unit_of}
    for one in LEFT_OUT:
        assert {*one.answers} <= {*judges.answers_of(library, one.exercise)}


@pytest.mark.parametrize("task", BY_TASK.values(), ids=BY_TASK.keys())
def test_an_adapted_reference_gives_the_same_for_the_same_seed(
    task: Task, references: Mapping[str, Any]
) -> None:
    for number in range(6):
        entries = task.adapt(references[task.exercise])
        first, again = (judged.on_input(task.probe, entries, number) for _ in range(2))
        assert all(a.equal(b) for a, b in zip(first.values, again.values, strict=True))
        assert all(value.isfinite().all() for value in first.values)


@pytest.mark.parametrize(
    ("where", "slug", "fate"),
    [
        ("torch-judge softmax", "shift-by-mean", "same"),
        ("torch-judge mha", "no-mask", "same"),
        ("torch-judge mha", "bias-left-on", "same"),
        ("torch-judge mha", "plain-tensors", "unnamed"),
        ("torchleet kv-cache", "no-mask-in-a-chunk", "same"),
    ],
)
def test_what_a_judge_does_not_ask_for_is_not_counted(
    library: Library, references: Mapping[str, Any], where: str, slug: str, fate: str
) -> None:
    task = BY_TASK[where]
    variant = judges.answers_of(library, task.exercise)[slug]
    entries = task.adapt(references[task.exercise])
    expected = [judged.on_input(task.probe, entries, n) for n in range(judged.INPUTS)]
    answer = {"kind": variant.kind, "definition": variant.definition}
    assert judged.fate(task, expected, library.together(), answer)[0] == fate


def test_a_judge_is_asked_about_what_gives_something_else(
    library: Library, references: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = BY_TASK["torch-judge mha"]
    entries = task.adapt(references[task.exercise])
    expected = [judged.on_input(task.probe, entries, n) for n in range(3)]
    variant = judges.answers_of(library, task.exercise)["no-output-layer"]
    answer = {"kind": variant.kind, "definition": variant.definition}
    monkeypatch.setattr(judged, "faults", lambda *_: iter(()))
    assert judged.fate(task, expected, library.together(), answer)[0] == "accepted"
    monkeypatch.setattr(judged, "faults", lambda *_: iter(("it is wrong",)))
    assert judged.fate(task, expected, library.together(), answer)[0] == "refused"


def fate(task: int, id: str, wrong: bool, said: str, ours: bool) -> Fate:
    return Fate(task, id, wrong, said, "", ours)


FATES = [
    fate(0, REFERENCE, False, "accepted", True),
    fate(0, "another", False, "refused", True),
    fate(0, "bad", True, "accepted", False),
    fate(0, "worse", True, "refused", False),
    fate(0, "slow", True, "same", False),
    fate(1, REFERENCE, False, "refused", True),
    fate(1, "bad", True, "accepted", False),
]


def test_the_table_counts_what_is_measured() -> None:
    lines = [*report(FATES, DATED)]
    assert "| `softmax_stable` | torch-judge | 1 of 2 | 1 of 2 | 0 of 2, 0 of 2 |" in lines
    assert lines[-1] == "Measured on 2026-11-24 with python 3.11.7, torch-judge 0.1.1."
    assert not any("scaled_dot_product_attention` |" in line for line in lines)


def test_an_exercise_whose_adapted_reference_is_refused_is_left_out_and_listed() -> None:
    (row,) = (row for row in rows(FATES) if (row.exercise, row.judge) == ("all", JUDGE))
    assert str(row.wrong_accepted) == "1 of 2"
    assert any("the adapted reference is not accepted" in line for line in left_out(FATES))
    assert any("1 wrong answers that give what" in line for line in left_out(FATES))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(judges, "ROOT", tmp_path)
    monkeypatch.setattr(judges, "PLACE", tmp_path / "judges")
    return tmp_path / "judges"


def test_an_environment_that_was_left_half_made_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mkdir()
    (place / "half").touch()
    ran: list[list[str]] = []

    def run(command: list[Any], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(part) for part in command])
        place.mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    judges.environment(Console(quiet=True))
    assert not (place / "half").exists()
    assert [*judges.PACKAGES] == ran[-1][-len(judges.PACKAGES) :]
    judges.environment(Console(quiet=True))
    assert len(ran) == 2, "what is ready is not made again"


def test_what_cannot_be_installed_is_one_line_and_exit_code_2(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[Any], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "", "ERROR: no such version\nERROR: see there\n"
        )

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["judges"])
    assert judges.main() == 2
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "judges:" in line)
    assert line.endswith("cannot be installed: no such version")
