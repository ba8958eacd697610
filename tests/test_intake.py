"""From paths to submissions: whose file is whose, and what cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from grader import intake
from grader.course import Course
from grader.faults import CallError
from grader.intake import Submission, find_submissions

TEXT = "def center(x):\n    return x - x.mean()\n"


def write(path: Path, text: str = TEXT) -> Path:
    """A file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def notebook(path: Path, *cells: str) -> Path:
    """A notebook of the current version, with a text cell before its code."""
    told: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": "# Text"}]
    told += [
        {"cell_type": "code", "metadata": {}, "source": cell, "outputs": [],
         "execution_count": None}
        for cell in cells
    ]  # fmt: skip
    content = {"cells": told, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return write(path, json.dumps(content))


def names(found: list[Submission]) -> dict[str, list[str]]:
    """Students, each with the names of their files."""
    return {one.student: [source.name for source in one.sources] for one in found}


# --- what a submission is ------------------------------------------------------------------------


def test_a_python_file_is_a_submission_named_like_the_file(tmp_path: Path, tiny: Course) -> None:
    (found,) = find_submissions([write(tmp_path / "ada.py")], tiny)
    assert found.student == "ada"
    assert found.status == "ready"
    ((name, cells),) = [(source.name, source.cells) for source in found.sources]
    assert (name, cells) == ("ada.py", (TEXT,))


def test_a_notebook_is_a_submission_of_its_code_cells(tmp_path: Path, tiny: Course) -> None:
    (found,) = find_submissions([notebook(tmp_path / "ada.ipynb", "x = 1", TEXT)], tiny)
    assert found.student == "ada"
    assert [source.cells for source in found.sources] == [("x = 1", TEXT)]


@pytest.mark.parametrize("file", ["basics.py", "layers.ipynb", "exercises/basics.py"])
def test_a_folder_with_a_unit_file_is_one_submission(
    tmp_path: Path, tiny: Course, file: str
) -> None:
    write(tmp_path / "ada" / "more" / "tools.py")
    notebook(tmp_path / "ada" / file)  # what is in it does not matter here
    assert names(find_submissions([tmp_path / "ada"], tiny)) == {"ada": [file, "more/tools.py"]}


def test_any_other_folder_is_a_folder_of_submissions(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "ada" / "my_answers.py")
    write(tmp_path / "ada" / "deep" / "down.py")
    write(tmp_path / "bob.py")
    notebook(tmp_path / "cleo.ipynb", TEXT)
    write(tmp_path / "readme.txt")
    assert names(find_submissions([tmp_path], tiny)) == {
        "ada": ["deep/down.py", "my_answers.py"],
        "bob": ["bob.py"],
        "cleo": ["cleo.ipynb"],
    }


def test_several_paths_make_one_batch_in_order_of_names(tmp_path: Path, tiny: Course) -> None:
    paths = [write(tmp_path / "z.py"), write(tmp_path / "b" / "basics.py").parent,
             write(tmp_path / "class" / "m.py").parent]  # fmt: skip
    assert list(names(find_submissions(paths, tiny))) == ["b", "m", "z"]


def test_a_single_submission_may_be_any_folder(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "one.py")
    write(tmp_path / "two" / "three.py")
    (found,) = find_submissions([tmp_path], tiny, single=True)
    assert [source.name for source in found.sources] == ["one.py", "two/three.py"]


@pytest.mark.parametrize("content", [None, "notes.txt"], ids=["nothing", "no source file"])
def test_a_student_who_handed_in_no_source_file_is_empty(
    tmp_path: Path, tiny: Course, content: str | None
) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    if content:
        write(tmp_path / "class" / "ada" / content)
    (found,) = find_submissions([tmp_path / "class"], tiny)
    assert (found.student, found.status, found.sources) == ("ada", "empty", ())


def test_an_empty_folder_that_is_named_is_an_empty_submission(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "ada").mkdir()
    assert [one.status for one in find_submissions([tmp_path / "ada"], tiny)] == ["empty"]


def test_the_current_folder_gives_its_own_name(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write(tmp_path / "ada" / "basics.py").parent)
    assert names(find_submissions([Path()], tiny)) == {"ada": ["basics.py"]}


# --- what is left out ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folder",
    [".git", ".ipynb_checkpoints", "__pycache__", "__MACOSX", "checks", "venv", ".venv",
     "node_modules", "lib/site-packages"],
)  # fmt: skip
def test_folders_that_are_not_the_students_own_work_are_skipped(
    tmp_path: Path, tiny: Course, folder: str
) -> None:
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / folder / "layers.py")
    write(tmp_path / "ada" / "deep" / folder / "layers.py")
    assert names(find_submissions([tmp_path / "ada"], tiny)) == {"ada": ["basics.py"]}


@pytest.mark.parametrize("hidden", [".git", ".DS_Store.py", "__MACOSX", "__pycache__"])
def test_hidden_entries_are_no_students(tmp_path: Path, tiny: Course, hidden: str) -> None:
    write(tmp_path / "ada.py")
    if hidden.endswith(".py"):
        write(tmp_path / hidden)
    else:
        write(tmp_path / hidden / "basics.py")
    assert list(names(find_submissions([tmp_path], tiny))) == ["ada"]


def test_links_are_never_followed(tmp_path: Path, tiny: Course) -> None:
    secret = write(tmp_path / "secret" / "layers.py")
    folder = write(tmp_path / "class" / "ada" / "basics.py").parent
    (folder / "layers.py").symlink_to(secret)
    (folder / "more").symlink_to(secret.parent)
    (folder / "loop").symlink_to(folder)
    (tmp_path / "class" / "bob.py").symlink_to(secret)
    (tmp_path / "class" / "cleo").symlink_to(secret.parent)
    assert names(find_submissions([tmp_path / "class"], tiny)) == {"ada": ["basics.py"]}


def test_a_link_to_the_unit_file_makes_no_submission_readable(tmp_path: Path, tiny: Course) -> None:
    secret = write(tmp_path / "secret.py", "the secret")
    folder = tmp_path / "ada"
    folder.mkdir()
    (folder / "basics.py").symlink_to(secret)
    (found,) = find_submissions([folder], tiny)
    assert found.sources == ()


def test_files_of_other_kinds_are_not_read(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / "report.pdf", "%PDF")
    write(tmp_path / "ada" / "weights.pt")
    (tmp_path / "ada" / "folder.py").mkdir()
    assert names(find_submissions([tmp_path / "ada"], tiny)) == {"ada": ["basics.py"]}


def test_of_very_many_files_only_the_first_are_read_and_it_is_said(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAX_FILES", 3)
    for number in range(5):
        write(tmp_path / "ada" / f"part_{number}.py")
    (found,) = find_submissions([tmp_path / "ada"], tiny, single=True)
    assert len(found.sources) == 3
    assert "more than 3" in found.problems[0]


# --- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"this is not JSON", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"cells": 3, "nbformat": 4, "nbformat_minor": 4}', "not a notebook"),
        (b"[1, 2]", "not a notebook"),
        (b'"text"', "not a notebook"),
        (b'{"nbformat": "four"}', "not a notebook"),
        (b'{"nbformat": 99, "nbformat_minor": 0, "cells": []}', "not a notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 4, "cells": [3]}', "not a notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 4, "cells": [{"cell_type": "code"}]}', "not a noteb"),
        (b"[" * 100_000, "not a notebook"),
    ],
    ids=[
        "text", "nothing", "bytes", "cells of the wrong type", "a list", "a string",
        "a strange version", "a version to come", "a cell of the wrong type",
        "a cell without source", "a deep nest",
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_told_and_costs_no_other_file(
    tmp_path: Path, tiny: Course, content: bytes, why: str
) -> None:
    write(tmp_path / "ada" / "basics.py")
    (tmp_path / "ada" / "odd.ipynb").write_bytes(content)
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert [source.name for source in found.sources] == ["basics.py"]
    (problem,) = found.problems
    assert problem.startswith("odd.ipynb: ")
    assert why in problem
    assert "\n" not in problem


def test_a_submission_of_which_nothing_can_be_read_is_unreadable(
    tmp_path: Path, tiny: Course
) -> None:
    (found,) = find_submissions([write(tmp_path / "ada.ipynb", "no notebook")], tiny)
    assert (found.student, found.status) == ("ada", "unreadable")


def test_a_file_that_is_too_large_is_told(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAX_FILE", 2**20)
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / "large.py", "#" * (2**20 + 1))
    write(tmp_path / "ada" / "limit.py", "#" * 2**20)
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert [source.name for source in found.sources] == ["basics.py", "limit.py"]
    assert found.problems == ("large.py: larger than 1 MB",)


def test_an_old_notebook_is_read_too(tmp_path: Path, tiny: Course) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Text"]},
        {"cell_type": "code", "collapsed": False, "input": ["x = 1\n", "y = 2"], "language":
         "python", "metadata": {}, "outputs": []},
    ]  # fmt: skip
    content = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0,
               "worksheets": [{"cells": cells, "metadata": {}}]}  # fmt: skip
    (found,) = find_submissions([write(tmp_path / "ada.ipynb", json.dumps(content))], tiny)
    assert found.sources[0].cells == ("x = 1\ny = 2",)


@pytest.mark.parametrize(
    "cell",
    [
        {"cell_type": "code", "metadata": {}, "source": ["x = 1\n", "y = 2"]},
        {"cell_type": "code", "metadata": {}, "source": "x = 1\ny = 2", "outputs": "none"},
        {"cell_type": "code", "source": "x = 1\ny = 2"},
    ],
    ids=["without id and outputs", "with odd outputs", "without metadata"],
)
@pytest.mark.filterwarnings("error")
def test_an_untidy_notebook_is_read_without_a_word(
    tmp_path: Path, tiny: Course, cell: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (found,) = find_submissions([write(tmp_path / "ada.ipynb", json.dumps(content))], tiny)
    assert [source.cells for source in found.sources] == [("x = 1\ny = 2",)]
    assert capfd.readouterr() == ("", "")


def test_text_from_windows_is_read(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "basics.py").write_bytes("# naïve “café”\r\n".encode("cp1252"))
    (tmp_path / "ada" / "layers.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert [source.cells for source in found.sources] == [("# naïve “café”\r\n",), ("x = 1\r\n",)]
    assert found.problems == ()


def test_bytes_that_mean_nothing_in_any_encoding_do_not_stop_the_reading(
    tmp_path: Path, tiny: Course
) -> None:
    (tmp_path / "ada.py").write_bytes(b"x = 1 # \x81\x8d\xff")
    (found,) = find_submissions([tmp_path / "ada.py"], tiny)
    assert found.sources[0].cells[0].startswith("x = 1 # ")


def test_a_notebook_that_begins_with_a_byte_order_mark_is_read(
    tmp_path: Path, tiny: Course
) -> None:
    path = notebook(tmp_path / "ada.ipynb", "x = 1")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (found,) = find_submissions([path], tiny)
    assert found.sources[0].cells == ("x = 1",)


# --- wrong calls ---------------------------------------------------------------------------------


def test_a_path_that_is_not_there_is_named(tmp_path: Path, tiny: Course) -> None:
    with pytest.raises(CallError, match=r"no such file or folder: .*nobody"):
        find_submissions([write(tmp_path / "ada.py"), tmp_path / "nobody"], tiny)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, tiny: Course) -> None:
    with pytest.raises(CallError, match=r"notes\.txt is neither a \.py file nor a notebook"):
        find_submissions([write(tmp_path / "notes.txt")], tiny)


def test_a_folder_without_submissions_is_refused(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "class" / "readme.txt")
    with pytest.raises(CallError, match=r"no submissions in .*class"):
        find_submissions([tmp_path / "class"], tiny)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ada.py", "ada.ipynb"),
        ("ada.py", "ada/basics.py"),
        ("monday/ada.py", "tuesday/ada.py"),
    ],
)
def test_two_submissions_with_one_name_are_refused_with_both_paths(
    tmp_path: Path, tiny: Course, first: str, second: str
) -> None:
    paths = [write(tmp_path / "class" / first), write(tmp_path / "class" / second)]
    given = {path.parent if path.stem == "basics" else path for path in paths}
    with pytest.raises(CallError) as error:
        find_submissions(sorted(given), tiny)
    assert "'ada'" in str(error.value)
    assert all(str(path) in str(error.value) for path in given)


def test_two_names_that_would_be_written_alike_are_refused(tmp_path: Path, tiny: Course) -> None:
    for name in (b"zo\xeb.py", b"zo\xe9.py"):  # neither is text in UTF-8
        write(tmp_path / os.fsdecode(name))
    with pytest.raises(CallError, match="two submissions are called"):
        find_submissions([tmp_path], tiny)


def test_the_same_path_given_twice_is_refused(tmp_path: Path, tiny: Course) -> None:
    path = write(tmp_path / "ada.py")
    with pytest.raises(CallError, match="two submissions are called 'ada'"):
        find_submissions([path, path], tiny)


def test_an_archive_is_told_and_not_passed_over(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "zoe.zip").write_bytes(b"PK")
    write(tmp_path / "ada.py")
    found = {submission.student: submission for submission in find_submissions([tmp_path], tiny)}
    assert found["zoe"].status == "unreadable"
    assert "unpack" in found["zoe"].problems[0]
