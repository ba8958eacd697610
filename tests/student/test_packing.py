"""What a student hands in is what was checked: its zip is read as a grader reads it."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.intake import find_submissions
from grader.student.packing import pack_answers
from grader.student.progress import read_progress, record_progress
from tests.conftest import Grader, Ran
from tests.support.places import TINY

WRONG = "def center(x):\n    return x + x.mean()\n"
SOLVED = (TINY / "solutions" / "basics.py").read_text("utf-8")
RIGHT = "def center(x):\n    return x - x.mean()\n"
Pack = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, all of it solved."""
    shutil.copytree(TINY, tmp_path / "tiny")
    for unit in ("basics", "layers"):
        shutil.copy(TINY / "solutions" / f"{unit}.py", tmp_path / "tiny" / "exercises")
    return tmp_path / "tiny" / "exercises"


@pytest.fixture
def stubs(folder: Path) -> None:
    """As in a student's bundle: the stubs as they were lie beside the files."""
    (folder / "recorded" / "stubs").mkdir(parents=True)
    for unit in ("basics", "layers"):
        shutil.copy(TINY / "exercises" / f"{unit}.py", folder / "recorded" / "stubs")


@pytest.fixture
def pack(grader: Grader, folder: Path, tmp_path: Path, stubs: None) -> Pack:
    """Type the command."""
    return lambda *more: grader("pack", "--to", tmp_path / "ada.zip", "--course", folder, *more)


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": made})


def without(text: str, name: str) -> str:
    """A file's text in which a definition has another name."""
    return text.replace(f"def {name}(", f"def no_{name}(")


# --- what is in it -------------------------------------------------------------------------------


def test_the_zip_is_a_submission_as_it_is(pack: Pack, folder: Path, tmp_path: Path) -> None:
    ran = pack()
    assert ran.code == 0
    assert "to submit: basics.py, layers.py\n4 of 4 pass the public checks" in ran.out
    (submission,) = find_submissions([tmp_path / "ada.zip"], load_course(folder))
    assert submission.student == "ada"
    assert {source.name for source in submission.sources} == {"basics.py", "layers.py"}


def test_what_is_solved_in_it_counts_as_solved(pack: Pack, folder: Path) -> None:
    assert pack().code == 0
    assert len(read_progress(folder).solved) == 4


@pytest.mark.usefixtures("one_warm_process")
def test_the_same_answers_make_the_same_zip(folder: Path) -> None:
    course, to = load_course(folder), folder / "ada.zip"
    assert pack_answers(course, to).data == pack_answers(course, to).data


@pytest.mark.usefixtures("one_warm_process")
def test_notebooks_and_helper_modules_go_along_and_checks_do_not(folder: Path) -> None:
    write(folder, "work.ipynb", "{}")
    write(folder, "../notebooks/basics.ipynb", "{}")
    write(folder, "tools/means.py", "")
    names = ["basics.py", "layers.py", "notebooks/basics.ipynb", "tools/means.py", "work.ipynb"]
    assert list(pack_answers(load_course(folder), folder / "ada.zip").names) == names


def test_a_helper_module_is_there_where_the_answers_are_graded(pack: Pack, folder: Path) -> None:
    write(folder, "means.py", "def mean_of(x):\n    return x.mean()\n")
    imported = "from means import mean_of\n\n\ndef center(x):\n    return x - mean_of(x)\n"
    write(folder, "basics.py", (folder / "basics.py").read_text("utf-8") + imported)
    assert pack().code == 0


def test_a_file_that_is_no_zip_is_not_overwritten(
    cold_grader: Grader, folder: Path, tmp_path: Path
) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work", "utf-8")
    ran = cold_grader("pack", "--to", thesis, "--course", folder)
    assert ran.code == 2
    assert "ends with .zip" in ran.err
    assert thesis.read_text("utf-8") == "years of work"


# --- what is told before it is written -----------------------------------------------------------


def refused(ran: Ran, to: Path, *told: str) -> None:
    """Nothing is written, and these lines say why."""
    assert ran.code == 1
    for line in told:
        assert line in ran.out
    assert "is not written; to submit these files as they are: grader pack --anyway" in ran.out
    assert not to.exists()


def test_what_is_not_written_is_told(pack: Pack, folder: Path, tmp_path: Path) -> None:
    shutil.copy(TINY / "exercises" / "layers.py", folder)
    refused(pack(), tmp_path / "ada.zip", "not written: Projection", "3 of 4 pass")
    assert pack("--anyway").code == 0
    assert zipfile.is_zipfile(tmp_path / "ada.zip")


def test_of_a_unit_without_answers_the_units_name_is_told(
    pack: Pack, folder: Path, tmp_path: Path
) -> None:
    shutil.copy(TINY / "exercises" / "basics.py", folder)
    refused(pack(), tmp_path / "ada.zip", "not written: all of basics (3 exercises)")


def test_what_was_solved_once_and_fails_now_is_told_with_its_mistake(
    pack: Pack, folder: Path, tmp_path: Path
) -> None:
    record_progress(folder, solved=["center"])
    write(folder, "basics.py", (folder / "basics.py").read_text("utf-8") + WRONG)
    told = "wrong: center, solved before: The mean is added"
    refused(pack(), tmp_path / "ada.zip", told, "(grader check center)")


def test_what_was_solved_once_and_is_gone_is_told(pack: Pack, folder: Path, tmp_path: Path) -> None:
    record_progress(folder, solved=["Projection"])
    shutil.copy(TINY / "exercises" / "layers.py", folder)
    refused(pack(), tmp_path / "ada.zip", "solved before, but not written now: Projection")


def test_a_file_that_cannot_be_read_is_told(pack: Pack, folder: Path, tmp_path: Path) -> None:
    write(folder, "layers.py", "class Projection(nn.Module:\n    pass\n")
    told = "wrong: Projection: layers.py line 1 is not valid Python"
    refused(pack(), tmp_path / "ada.zip", told)


def test_what_a_grader_cannot_read_is_told(pack: Pack, folder: Path, tmp_path: Path) -> None:
    write(folder, "work.ipynb", "no JSON")
    write(folder, "big.py", "#" * 5 * 2**20)
    refused(pack(), tmp_path / "ada.zip", "work.ipynb: ", "big.py: ")


def test_of_two_files_of_one_name_none_is_lost_in_silence(
    pack: Pack, folder: Path, tmp_path: Path
) -> None:
    for name in ("notebooks/basics.ipynb", "../notebooks/basics.ipynb"):
        write(folder, name, notebook(RIGHT))
    refused(pack(), tmp_path / "ada.zip", "has the same name: rename one of them")


@pytest.mark.usefixtures("one_warm_process")
def test_a_hidden_notebook_is_nobodys_answer(folder: Path) -> None:
    write(folder, "../notebooks/.basics.ipynb", notebook(RIGHT))
    assert list(pack_answers(load_course(folder), folder / "ada.zip").names) == [
        "basics.py",
        "layers.py",
    ]


def test_a_document_that_is_a_zip_inside_is_not_overwritten(
    grader: Grader, folder: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "thesis.docx", "w") as archive:
        archive.writestr("years", "of work")
    ran = grader("pack", "--to", tmp_path / "thesis.docx", "--course", folder)
    assert ran.code == 2
    assert "ends with .zip" in ran.err


def test_a_later_cell_that_cannot_be_read_is_told(pack: Pack, folder: Path, tmp_path: Path) -> None:
    cells = notebook(RIGHT, "def center(x):\n    return (x\n")
    write(folder, "../notebooks/basics.ipynb", cells)
    told = "center cannot be read in notebooks/basics.ipynb cell 2"
    refused(pack(), tmp_path / "ada.zip", told, "the one in notebooks/basics.ipynb cell 1 counts")


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("../notebooks/basics.ipynb", notebook(WRONG), "notebooks/basics.ipynb"),
        ("scratch.ipynb", notebook(WRONG), "scratch.ipynb"),
        ("basics copy.py", WRONG, "basics.py"),
    ],
    ids=["the unit's notebook", "another notebook", "a stray copy"],
)
def test_two_answers_that_differ_are_told_with_the_one_that_counts(
    pack: Pack, folder: Path, tmp_path: Path, name: str, text: str, counts: str
) -> None:
    write(folder, name, text)
    refused(pack(), tmp_path / "ada.zip", f"; the one in {counts} counts")


def test_a_stray_copy_that_counts_in_place_of_a_stub_is_checked_and_told(
    pack: Pack, folder: Path, tmp_path: Path
) -> None:
    (folder / "layers.py").rename(folder / "layers (1).py")
    shutil.copy(TINY / "exercises" / "layers.py", folder)
    told = "Projection is a stub in layers.py; the one in layers (1).py counts"
    refused(pack(), tmp_path / "ada.zip", told, "4 of 4 pass")


def test_a_notebook_that_counts_in_place_of_a_stub_is_ordinary_work(
    pack: Pack, folder: Path
) -> None:
    (folder / "../notebooks").mkdir()
    write(folder, "../notebooks/layers.ipynb", notebook((folder / "layers.py").read_text("utf-8")))
    shutil.copy(TINY / "exercises" / "layers.py", folder)
    assert pack().code == 0


def test_a_copy_that_says_the_same_is_no_reason_to_ask(pack: Pack, folder: Path) -> None:
    shutil.copy(folder / "basics.py", folder / "basics copy.py")
    assert pack().code == 0


# --- one rule for all commands -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("../notebooks/basics.ipynb", notebook(WRONG), False),
        ("../notebooks/basics.ipynb", notebook(RIGHT), True),
        ("basics copy.py", WRONG, True),
        ("zebra.ipynb", notebook(WRONG), False),
        ("basics.ipynb", notebook(RIGHT), True),
    ],
)
def test_check_pack_and_grade_hold_the_same_answer_for_the_one_that_counts(
    grader: Grader, pack: Pack, folder: Path, tmp_path: Path, name: str, text: str, right: bool
) -> None:
    write(folder, name, text)
    checked = grader("check", "center", "--course", folder)
    assert checked.code == (0 if right else 1)
    pack("--anyway")
    read = grader("check", "center", "--in", tmp_path / "ada.zip", "--course", folder)
    assert read.code == checked.code
    out = tmp_path / "grades"
    grade = ("grade", tmp_path / "ada.zip", "--course", TINY, "--only", "center", "--out", out)
    assert grader(*grade).code == 0
    (line,) = (out / "results.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["total"] == (2 if right else 0)


def test_of_two_notebooks_of_a_unit_check_and_pack_hold_the_same_for_the_one_that_counts(
    grader: Grader, pack: Pack, folder: Path, tmp_path: Path
) -> None:
    write(folder, "basics.ipynb", notebook(RIGHT))
    write(folder, "../notebooks/basics.ipynb", notebook(WRONG))
    pack("--anyway")
    codes = [
        grader("check", "center", "--course", folder, *more).code
        for more in ((), ("--in", tmp_path / "ada.zip"))
    ]
    assert codes[0] == codes[1]


def test_check_says_which_one_counts(grader: Grader, folder: Path) -> None:
    write(folder, "../notebooks/basics.ipynb", notebook(WRONG))
    told = "the one in notebooks/basics.ipynb counts"
    assert told in grader("check", "center", "--course", folder).out
    assert told in grader("check", "--course", folder).out


# --- renamed files -------------------------------------------------------------------------------


def test_a_file_that_a_browser_renamed_is_found_alike_by_list_check_and_pack(
    grader: Grader, pack: Pack, folder: Path
) -> None:
    (folder / "basics.py").rename(folder / "basics (1).py")
    assert "to submit: basics (1).py, layers.py" in pack().out
    assert grader("check", "--course", folder).code == 0
    listed = grader("list", "--course", folder)
    assert listed.out.count("✓") == 4
    asked = grader("check", "center", "--course", folder).out
    assert "basics.py does not exist, and basics (1).py counts in its place: rename it?" in asked


def test_a_file_that_nobody_reads_under_its_name_is_told_alike(
    grader: Grader, pack: Pack, folder: Path
) -> None:
    (folder / "basics.py").rename(folder / "basics.py.txt")
    line = "basics.py.txt: not read under this name: call it basics.py"
    for ran in (pack(), grader("check", "--course", folder), grader("list", "--course", folder)):
        assert line in ran.out


def test_pack_gives_the_reason_and_not_the_title_of_a_check(pack: Pack, folder: Path) -> None:
    write(
        folder, "basics.py", f"{without(SOLVED, 'center')}\n\ndef center(x):\n    return x * 1.7\n"
    )
    (line,) = [line for line in pack().out.splitlines() if line.startswith("wrong: center")]
    assert "elements differ" in line or "every value" in line
    assert "does not pass" not in line
