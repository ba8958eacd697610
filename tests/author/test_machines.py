"""The audit in several settings of the processor: what differs among them is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from grader.author.findings import Audited
from grader.author.machines import SETTINGS, differences
from grader.sandbox.jails import Warm
from grader.wire.frames import PROCESSOR
from tests.conftest import Grader
from tests.support import seats
from tests.support.places import TINY

# A right answer that is one only where torch may use all of the processor: in the jail.
SWAYING = """
accepted(
    "staircase", "swaying", "Right here and there", change={
        ".tril()": '.tril(1 if "MKL_CBWR" in __import__("os").environ else 0)'
    },
)
"""
# A mistake that is called otherwise there: on the trusted side.
RENAMED = """
import os

mistake(
    "staircase", "empty", f"Nothing is True{os.environ.get('ATEN_CPU_CAPABILITY', '')}", hint="?",
    change={".tril()": ".tril(-99)"},
)
"""
# What is wrong in every setting.
WRONG = 'accepted("staircase", "wrong", "W", change={".tril()": ".tril(1)"})\n'
ALL = "ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41"


@pytest.fixture
def two_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor as it is and the oldest, for tests of which three would tell no more."""
    monkeypatch.setattr("grader.author.machines.SETTINGS", (SETTINGS[0], SETTINGS[-1]))


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of which `staircase` passes its audit."""
    for name in PROCESSOR:
        monkeypatch.delenv(name, raising=False)
    folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    toml = folder / "exercises" / "course.toml"
    name = 'name = "staircase"\n'
    assert name in toml.read_text("utf-8")
    hints = 'hints = ["Which?", "Where?", "There."]\n'
    toml.write_text(toml.read_text("utf-8").replace(name, name + hints), "utf-8")
    graders = folder / "solutions" / "graders" / "test_basics.py"
    text, sign = graders.read_text("utf-8"), "def test_staircase_of_one_step"
    assert sign in text
    before, _, after = text.partition(sign)
    decorators = before.rindex("\n\n\n")
    graders.write_text(before[:decorators] + "\n\n\n" + after.partition("\n\n\n")[2], "utf-8")
    return folder


def grow(course: Path, text: str) -> None:
    with (course / "solutions" / "mistakes" / "basics.py").open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.usefixtures("two_settings")
def test_where_nothing_differs_the_audit_of_all_settings_is_clean(
    course: Path, cold_grader: Grader
) -> None:
    ran = cold_grader("audit", "staircase", "--machines", "--jobs", 1, "--course", course)
    assert ran.code == 0, ran.out + ran.err
    first, *each, last = ran.out.splitlines()
    assert first == f"course: tiny, {course / 'exercises'}"
    assert [line.rpartition(": ")[0] for line in each] == [
        "as it is",
        ALL,
    ]
    assert all(line.endswith(" cases, all as they should be") for line in each)
    assert last == "verdicts, names and points are the same in 2 settings"


def test_verdicts_points_and_names_that_differ_are_told_for_each_setting(
    course: Path, cold_grader: Grader
) -> None:
    grow(course, SWAYING + RENAMED + WRONG)
    ran = cold_grader("audit", "staircase", "--machines", "--jobs", 2, "--course", course)
    assert (ran.code, ran.err) == (1, "")
    told = ran.out[ran.out.index("accepted staircase/swaying differs") :].splitlines()
    assert told == [
        "accepted staircase/swaying differs:",
        "  as it is: as it should be, earned 1",
        "  ATEN_CPU_CAPABILITY=default: as it should be, earned 1",
        f"  {ALL}: wrong, earned 0",
        "mistake staircase/empty differs:",
        "  as it is: as it should be, earned 0, called 'Nothing is True'",
        "  ATEN_CPU_CAPABILITY=default: as it should be, earned 0, called 'Nothing is Truedefault'",
        f"  {ALL}: as it should be, earned 0, called 'Nothing is Truedefault'",
    ]
    assert ran.out.count(": accepted staircase/swaying: 0 of 1: ") == 1
    assert ran.out.count(": accepted staircase/wrong: 0 of 1: ") == 3, "and it differs nowhere"


@pytest.mark.usefixtures("two_settings")
def test_for_programs_what_differs_is_json_and_nothing_else(
    course: Path, cold_grader: Grader
) -> None:
    grow(course, SWAYING)
    ran = cold_grader("audit", "staircase", "--machines", "--json", "--course", course)
    assert (ran.code, ran.err) == (1, "")
    (difference,) = json.loads(ran.out)
    assert (difference["kind"], difference["name"]) == ("accepted", "staircase/swaying")
    assert [verdict["points"] for verdict in difference["verdicts"]] == [1, 0]


def test_a_fault_of_the_course_ends_the_first_audit_with_its_line(
    course: Path, cold_grader: Grader
) -> None:
    grow(course, "1 / 0\n")
    ran = cold_grader("audit", "staircase", "--machines", "--course", course)
    assert (ran.code, ran.out) == (2, f"course: tiny, {course / 'exercises'}\n")


def test_a_case_that_is_not_there_in_each_setting_differs() -> None:
    one = Audited("center", "basics", "mutant", "center/L1:a->b", True, "killed")
    found = list(differences([[one], [one], []]))
    assert [(d.kind, d.name, d.verdicts[2]) for d in found] == [("mutant", one.name, None)]
    same = Audited("center", "basics", "mutant", "center/L1:a->b", True, "by another test")
    assert list(differences([[one], [same], [one]])) == []


def test_jails_get_what_says_how_much_of_the_processor_to_use_and_no_other_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**SETTINGS[-1], "A_SECRET": "1"}.items():
        monkeypatch.setenv(name, value)
    source = (
        "import os, torch\n"
        "def found():\n"
        "    return [torch.backends.cpu.get_cpu_capability(), *sorted(os.environ)]\n"
    )
    with Warm() as warm:
        seat = seats.open_seat(warm.open, source, found)
        capability, *names = seat.student().found()
        seat.session.close()
    assert capability == "DEFAULT"
    assert {*PROCESSOR} <= {*names}
    assert "A_SECRET" not in names


def found() -> object:
    """What the answer is called."""
