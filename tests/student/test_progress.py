"""What a student has solved and read is one small text file, which is easily merged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.student.progress import FILE, Progress, read_progress, record_progress
from tests.conftest import Grader
from tests.support.places import TINY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, to be worked in."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return tmp_path / "tiny" / "exercises"


def solve(folder: Path, *units: str) -> None:
    for unit in units:
        shutil.copy(TINY / "solutions" / f"{unit}.py", folder / f"{unit}.py")


# --- the file ------------------------------------------------------------------------------------


def test_nothing_is_known_before_anything_happened(tmp_path: Path) -> None:
    assert read_progress(tmp_path) == Progress()
    record_progress(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    record_progress(tmp_path, solved=["center"])
    record_progress(tmp_path, hints={"weigh": 2})
    record_progress(tmp_path, solved=["weigh"], hints={"weigh": 1})
    assert read_progress(tmp_path) == Progress(frozenset({"center", "weigh"}), {"weigh": 2})


NAMES = st.sampled_from(["center", "weigh", "Projection"])
KNOWN = st.builds(
    Progress, st.frozensets(NAMES), st.dictionaries(NAMES, st.integers(min_value=1, max_value=3))
)


@given(one=KNOWN, other=KNOWN)
def test_two_copies_are_merged_by_putting_their_lines_together(
    tmp_path_factory: pytest.TempPathFactory, one: Progress, other: Progress
) -> None:
    here, there, merged = (tmp_path_factory.mktemp("copy") for _ in range(3))
    record_progress(here, solved=one.solved, hints=one.hints)
    record_progress(there, solved=other.solved, hints=other.hints)
    texts = [copy / FILE for copy in (here, there) if (copy / FILE).exists()]
    lines = sorted(line for path in texts for line in path.read_text("utf-8").splitlines())
    (merged / FILE).write_text("\n".join(lines), "utf-8")
    assert read_progress(merged) == one.with_(other.solved, other.hints)


def test_a_conflict_that_git_left_in_the_file_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(
        b"<<<<<<< HEAD\nsolved center\n=======\nhint weigh 2\n>>>>>>> laptop\nhint weigh many\n"
        b"\xff\n"
    )
    assert read_progress(tmp_path) == Progress(frozenset({"center"}), {"weigh": 2})


def test_exercises_of_another_version_of_the_course_are_kept(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("solved gone_by_now\n", "utf-8")
    assert record_progress(tmp_path, solved=["center"]).solved == {"center", "gone_by_now"}


# --- the commands --------------------------------------------------------------------------------


def test_a_check_records_what_it_solves(grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    assert grader("check", "--course", folder).code == 1
    assert read_progress(folder).solved == {"center", "staircase", "weigh"}
    ran = grader("list", "--course", folder)
    assert ran.code == 0
    assert "3/3" in ran.out
    assert "next: Projection, in layers.py" in ran.out


def test_who_begins_in_the_middle_goes_on_from_there(grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    assert "next: weigh, in basics.py" in grader("check", "staircase", "--course", folder).out
    solve(folder, "layers")
    assert "next: center, in basics.py" in grader("check", "Projection", "--course", folder).out


def test_a_check_of_all_goes_on_with_the_first_exercise_that_is_not_solved(
    grader: Grader, folder: Path
) -> None:
    staircase = (
        "import torch\n\n\ndef staircase(size):\n    return torch.ones(size, size).tril() > 0\n"
    )
    (folder / "basics.py").write_text(staircase, "utf-8")
    assert "next: weigh, in basics.py" in grader("check", "staircase", "--course", folder).out
    grader("pack", "--to", folder.parent / "ada.zip", "--course", folder)
    assert "next: weigh, in basics.py" in grader("list", "--course", folder).out
    for command in ("check", "list"):
        assert "next: center, in basics.py" in grader(command, "--course", folder).out


def test_what_was_solved_once_and_fails_now_is_marked(grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    grader("check", "center", "--course", folder)
    text = (folder / "basics.py").read_text("utf-8")
    (folder / "basics.py").write_text(text.replace("x - x.mean()", "x + x.mean()"), "utf-8")
    assert "center  (it was solved before)" in grader("check", "center", "--course", folder).out
    assert read_progress(folder).solved == {"center"}


def test_the_list_says_what_fails_now_and_no_more_once_it_is_mended(
    grader: Grader, folder: Path
) -> None:
    solve(folder, "basics")
    grader("check", "basics", "--course", folder)
    mended = (folder / "basics.py").read_text("utf-8")
    (folder / "basics.py").write_text(mended.replace("x - x.mean", "x + x.mean"), "utf-8")
    grader("check", "basics", "--course", folder)
    listed = grader("list", "--course", folder).out
    assert "✗ center" in listed
    assert "(solved before, fails now)" in listed
    assert "next: center, in basics.py" in listed
    assert [row["name"] for row in rows(grader, folder) if row["fails_now"]] == ["center"]
    assert "center" in [row["name"] for row in rows(grader, folder, "--todo")]
    (folder / "basics.py").write_text(mended, "utf-8")
    grader("check", "center", "--course", folder)
    assert not any(row["fails_now"] for row in rows(grader, folder))


def test_what_was_checked_before_a_change_is_not_shown_as_a_fact(
    grader: Grader, folder: Path
) -> None:
    solve(folder, "basics")
    right = (folder / "basics.py").read_text("utf-8")
    grader("check", "basics", "--course", folder)
    (folder / "basics.py").write_text(f"{right}\n\ndef of_mine(:\n", "utf-8")
    grader("check", "center", "--course", folder)
    assert signs(grader, folder)["center"] == "✗"
    (folder / "basics.py").write_text(right, "utf-8")
    assert signs(grader, folder) == {
        "center": "?", "staircase": "✓", "weigh": "✓", "Projection": "·"
    }  # fmt: skip
    listed = grader("list", "--course", folder).out
    assert "changed since it was checked" in listed
    assert "fails now" not in listed
    assert "  2/3" in listed


def test_a_comment_changes_no_verdict_and_a_helper_does(grader: Grader, folder: Path) -> None:
    helped = "def middle(x):\n    return x.mean()\n\n\ndef center(x):\n    return x - middle(x)\n"
    (folder / "basics.py").write_text(helped, "utf-8")
    grader("check", "center", "--course", folder)
    (folder / "basics.py").write_text(helped.replace("):", "):  # mine"), "utf-8")
    assert signs(grader, folder)["center"] == "✓"
    (folder / "basics.py").write_text(helped.replace("x.mean()", "x.sum()"), "utf-8")
    assert signs(grader, folder)["center"] == "?"


def test_an_exercise_that_was_reset_is_a_stub_again(grader: Grader, folder: Path) -> None:
    shutil.copytree(TINY / "exercises", folder / "recorded" / "stubs")
    solve(folder, "basics")
    record_progress(folder, solved=["center", "staircase", "weigh"])
    assert "3/3" in grader("list", "basics", "--course", folder).out
    grader("reset", "basics", "-y", "--course", folder)
    listed = grader("list", "basics", "--course", folder).out
    assert "0/3" in listed
    assert "· center" in listed
    assert listed.count("(solved before, a stub now)") == 3
    assert "next: center, in basics.py" in listed


def test_what_fails_and_was_never_solved_is_wrong_and_not_unwritten(
    grader: Grader, folder: Path
) -> None:
    (folder / "basics.py").write_text("def center(x):\n    return x\n", "utf-8")
    assert "(not checked yet)" in grader("list", "--course", folder).out
    grader("check", "--course", folder)
    assert signs(grader, folder)["center"] == "✗"
    assert "(fails now)" in grader("list", "--course", folder).out


def test_a_closer_look_at_what_passes_counts_as_a_check(grader: Grader, folder: Path) -> None:
    (folder / "basics.py").write_text("def center(x):\n    return x\n", "utf-8")
    grader("check", "center", "--course", folder)
    solve(folder, "basics")
    grader("check", "center", "--show", "--course", folder)
    assert signs(grader, folder)["center"] == "✓"


def test_what_fails_comes_next_in_a_check_as_in_the_list(grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    text = (folder / "basics.py").read_text("utf-8")
    (folder / "basics.py").write_text(text.replace("x - x.mean", "x + x.mean"), "utf-8")
    grader("check", "center", "--course", folder)
    wanted = "next: center, in basics.py"
    assert wanted in grader("check", "staircase", "--course", folder).out
    assert wanted in grader("list", "--course", folder).out
    assert "center, hint 1" in grader("hint", "--course", folder).out


def signs(grader: Grader, folder: Path) -> dict[str, str]:
    """The sign of each exercise in the list."""
    lines = grader("list", "--course", folder).out.splitlines()
    return {line.split()[1]: line.split()[0] for line in lines if line.startswith(" ")}


def test_what_was_never_solved_does_not_fail_now(grader: Grader, folder: Path) -> None:
    grader("check", "--course", folder)
    assert not any(row["fails_now"] for row in rows(grader, folder))


def rows(grader: Grader, folder: Path, *options: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(
        grader("list", "--json", "--course", folder, *options).out
    )
    return listed


def test_answers_that_live_elsewhere_are_not_recorded(grader: Grader, folder: Path) -> None:
    grader("check", "--course", folder, "--in", TINY / "solutions" / "basics.py")
    assert read_progress(folder) == Progress()


def test_a_verdict_is_given_where_progress_cannot_be_written(grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    (folder / FILE).mkdir()
    ran = grader("check", "center", "--course", folder)
    assert ran.code == 0
    assert "center" in ran.out
    assert "progress is not recorded" in ran.err


def test_hints_come_one_after_another_and_the_last_one_stays(
    cold_grader: Grader, folder: Path
) -> None:
    toml = folder / "course.toml"
    hints = 'hints = ["What is the mean of what remains?"'
    toml.write_text(toml.read_text("utf-8").replace(hints, f'{hints}, "Subtract."'), "utf-8")
    told = [cold_grader("hint", "--course", folder).out for _ in range(3)]
    assert "center, hint 1 of 2\nWhat is the mean of what remains?" in told[0]
    assert "the next hint: grader hint center" in told[0]
    last = "center, hint 2 of 2\nSubtract.\nthis is the last hint; hints cost no points\n"
    assert last == told[1] == told[2]
    assert read_progress(folder).hints == {"center": 2}


WRONG_HINTS = {
    "staircase": "staircase has no hints",
    "basics": "basics is a unit: a hint is for one exercise",
    "centre": "there is no exercise called 'centre'; did you mean center?",
}


@pytest.mark.parametrize(("name", "told"), WRONG_HINTS.items())
def test_a_hint_that_cannot_be_given_is_told_in_one_line(
    cold_grader: Grader, folder: Path, name: str, told: str
) -> None:
    ran = cold_grader("hint", name, "--course", folder)
    assert (ran.code, ran.out, ran.err) == (2, "", f"grader: {told}\n")


def test_the_list_can_leave_out_what_was_solved(cold_grader: Grader, folder: Path) -> None:
    solve(folder, "basics")
    record_progress(folder, solved=["center", "weigh"], hints={"staircase": 1})
    ran = cold_grader("list", "basics", "--todo", "--json", "--course", folder)
    (row,) = json.loads(ran.out)
    assert (row["name"], row["solved"], row["hints_read"]) == ("staircase", False, 1)
