"""From paths to submissions: whose file is whose, and what cannot be read."""

from __future__ import annotations

import json
import os
import shutil
import socket
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course.course import Course
from grader.intake import (
    NO_ROSTER,
    Roster,
    Submission,
    find_submissions,
    read_submission,
    take_in,
)
from grader.intake import files as limits
from grader.intake.files import (
    NO_TEXT,
    NOT_PLAIN,
    Listed,
    Unreadable,
    on_disk,
    python_encodings,
)
from grader.intake.names import MAX_SHOWN, shown
from grader.records.faults import CallError
from grader.records.rows import Person

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
        {
            "cell_type": "code",
            "metadata": {},
            "source": cell,
            "outputs": [],
            "execution_count": None,
        }
        for cell in cells
    ]
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
    paths = [
        write(tmp_path / "z.py"),
        write(tmp_path / "b" / "basics.py").parent,
        write(tmp_path / "class" / "m.py").parent,
    ]
    assert list(names(find_submissions(paths, tiny))) == ["b", "m", "z"]


def test_a_single_submission_may_be_any_folder(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "one.py")
    write(tmp_path / "two" / "three.py")
    (found,) = find_submissions([tmp_path], tiny, single=True)
    assert [source.name for source in found.sources] == ["one.py", "two/three.py"]


def test_a_student_who_handed_in_an_empty_folder_is_empty(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    write(tmp_path / "class" / "bob.py")
    found, _ = find_submissions([tmp_path / "class"], tiny)
    assert (found.student, found.status, found.sources) == ("ada", "empty", ())


def test_an_empty_folder_that_is_named_beside_others_is_an_empty_submission(
    tmp_path: Path, tiny: Course
) -> None:
    (tmp_path / "ada").mkdir()
    paths = [tmp_path / "ada", write(tmp_path / "bob.py")]
    assert [one.status for one in find_submissions(paths, tiny)] == ["empty", "ready"]


@pytest.mark.parametrize(
    "content", [(), ("notes.txt",), ("ada.pdf",), ("ada/essay.pdf", "bob/x.pdf")]
)
def test_a_folder_in_which_nothing_looks_like_a_submission_is_told(
    tmp_path: Path, tiny: Course, content: Sequence[str]
) -> None:
    (tmp_path / "class").mkdir()
    for name in content:
        write(tmp_path / "class" / name)
    told = r"no submissions in .*class: there is no \.py file, no notebook and no zip of those"
    there = {file.split("/")[0] for file in content}
    with pytest.raises(CallError, match=told) as error:
        find_submissions([tmp_path / "class"], tiny)
    assert all(name in str(error.value).partition("there is: ")[2] for name in there)


def test_a_course_is_not_taken_for_a_submission(tiny: Course) -> None:
    with pytest.raises(CallError, match="is the course itself: name the submissions instead"):
        find_submissions([tiny.folder.parent], tiny)


def test_the_current_folder_gives_its_own_name(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write(tmp_path / "ada" / "basics.py").parent)
    assert names(find_submissions([Path()], tiny)) == {"ada": ["basics.py"]}


# --- what is no class ----------------------------------------------------------------------------


def configuration(place: Path, folders: int) -> Path:
    """A folder like ``/etc``: nothing in it was written for an exercise."""
    for number in range(folders):
        write(place / f"service{number:02}" / "main.conf", "port = 80")
    (place / "empty.d").mkdir(parents=True)
    write(place / "python3" / "debian_config.py")
    write(place / "hosts")
    return place


def test_a_folder_of_something_else_is_refused(tmp_path: Path, tiny: Course) -> None:
    place = configuration(tmp_path / "etc", 40)
    told = (
        f"{place} is no folder of submissions: 40 of 42 folders in it hold files, but no .py file, "
        r"no notebook, no zip and no document \(service00, service01, service02 and 37 more\)"
    )
    with pytest.raises(CallError, match=told):
        take_in([place], tiny)


@pytest.mark.parametrize(
    ("roster", "folders"),
    [
        pytest.param(Roster((Person("service07"),)), 40, id="a roster knows a student"),
        pytest.param(NO_ROSTER, 19, id="it is small"),
    ],
)
def test_a_class_may_look_like_something_else(
    tmp_path: Path, tiny: Course, roster: Roster, folders: int
) -> None:
    arrived = take_in([configuration(tmp_path / "class", folders)], tiny, roster)
    assert len(arrived.submissions) == folders + 2


@pytest.mark.parametrize(
    "wrong", ["empty/", "basics.py", "answers.docx", "answers.rar", "basics.py.txt", "basics.ipynb"]
)
def test_a_class_with_one_good_submission_is_not_refused(
    tmp_path: Path, tiny: Course, wrong: str
) -> None:
    place = tmp_path / "class"
    write(place / "ada" / "basics.py")
    for number in range(60):
        path = place / f"student{number:02}" / wrong
        if wrong.endswith("/"):
            path.mkdir(parents=True)
        else:
            write(path, "\0 def")
    assert len(take_in([place], tiny).submissions) == 61


# --- what is left out ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folder",
    [
        ".git",
        ".ipynb_checkpoints",
        "__pycache__",
        "__MACOSX",
        "checks",
        "afterwards",
        "experiments",
        "venv",
        ".venv",
        "node_modules",
        "recorded",
        "lib/site-packages",
    ],
)
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
    (found,) = find_submissions([tmp_path / "class"], tiny)
    assert names([found]) == {"ada": ["basics.py"]}
    assert found.problems == (f"layers.py: {NOT_PLAIN}",)


def test_a_link_to_the_unit_file_makes_no_submission_readable(tmp_path: Path, tiny: Course) -> None:
    secret = write(tmp_path / "secret.py", "the secret")
    folder = tmp_path / "ada"
    folder.mkdir()
    (folder / "basics.py").symlink_to(secret)
    (found,) = find_submissions([folder], tiny)
    assert (found.status, found.sources) == ("unreadable", ())


def test_files_of_other_kinds_are_not_read(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / "report.pdf", "%PDF")
    write(tmp_path / "ada" / "weights.pt")
    (tmp_path / "ada" / "folder.py").mkdir()
    assert names(find_submissions([tmp_path / "ada"], tiny)) == {"ada": ["basics.py"]}


# --- what is not read, and never passed over -----------------------------------------------------

NOT_READ = "not read: submit a .py file or a notebook"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ada.docx", f"{NOT_READ}, not a Word document"),
        ("ada.PDF", f"{NOT_READ}, not a PDF"),
        ("ada.html", f"{NOT_READ}, not a web page"),
        ("ada.ipynb.html", f"{NOT_READ}, not a web page"),
        ("ada.ipynb.txt", "not read under this name: call it ada.ipynb"),
        ("ada.py.txt", "not read under this name: call it ada.py"),
        ("ada.ipynb.json", "not read under this name: call it ada.ipynb"),
    ],
)
def test_a_file_of_another_type_in_a_folder_of_submissions_is_its_students(
    tmp_path: Path, tiny: Course, name: str, why: str
) -> None:
    write(tmp_path / "class" / name)
    write(tmp_path / "class" / "bob.py")
    found, bob = find_submissions([tmp_path / "class"], tiny)
    student = "ada.ipynb" if name == "ada.ipynb.html" else "ada"
    assert (found.student, found.status, bob.status) == (student, "unreadable", "ready")
    assert found.problems == (f"{name}: {why}",)


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_files_of_other_types_are_told_where_there_is_no_answer(
    tmp_path: Path, tiny: Course, kind: str
) -> None:
    files = {"essay.docx": TEXT, "more/notes.txt": TEXT, "softmax.ipynb.txt": TEXT}
    for name, text in files.items():
        write(tmp_path / "class" / "ada" / name, text)
    if kind == "zip":
        shutil.make_archive(str(tmp_path / "class" / "ada"), "zip", tmp_path / "class" / "ada")
        shutil.rmtree(tmp_path / "class" / "ada")
    write(tmp_path / "class" / "bob.py")
    found, _ = find_submissions([tmp_path / "class"], tiny)
    assert found.status == "unreadable"
    assert sorted(found.problems) == [
        f"essay.docx: {NOT_READ}, not a Word document",
        f"more/notes.txt: {NOT_READ}",
        "softmax.ipynb.txt: not read under this name: call it softmax.ipynb",
    ]


def test_beside_an_answer_only_a_source_file_under_another_name_is_told(
    tmp_path: Path, tiny: Course
) -> None:
    for name in ("basics.py", "report.pdf", "layers.ipynb.txt"):
        write(tmp_path / "ada" / name)
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert found.problems == ("layers.ipynb.txt: not read under this name: call it layers.ipynb",)


def test_a_document_beside_a_students_answer_is_no_second_submission(
    tmp_path: Path, tiny: Course
) -> None:
    for name in ("ada.py", "ada.pdf", "bob/x.py", "bob.docx", "cleo.doc", "cleo.pdf"):
        write(tmp_path / "class" / name)
    arrived = take_in([tmp_path / "class"], tiny)
    assert [one.student for one in arrived.submissions] == ["ada", "bob", "cleo"]
    assert any(line.endswith(": ada.pdf, bob.docx, cleo.pdf") for line in arrived.notices)


def test_a_name_that_begins_with_underscores_is_a_students(tmp_path: Path, tiny: Course) -> None:
    for name in ("__ada.py", "__bob/basics.py", "__init__.py", "__pycache__/x.py"):
        write(tmp_path / "class" / name)
    arrived = take_in([tmp_path / "class"], tiny)
    assert [one.student for one in arrived.submissions] == ["__ada", "__bob"]
    assert any(line.endswith(": __init__.py") for line in arrived.notices)


def test_what_else_is_in_a_folder_of_submissions_is_named(tmp_path: Path, tiny: Course) -> None:
    for name in ("ada.py", "roster.csv", "photo.png", ".hidden"):
        write(tmp_path / "class" / name)
    (tmp_path / "class" / "bob.py").symlink_to(tmp_path / "class" / "ada.py")
    told = take_in([tmp_path / "class"], tiny).notices
    assert told == (
        f"{tmp_path / 'class'}: left out (no submissions of their own): "
        "bob.py (a link), photo.png, roster.csv",
    )


def test_of_very_many_files_only_the_first_are_read_and_it_is_said(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FILES", 3)
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
        (b'{"nbformat":' * 100_000, "not a notebook"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["x", 3]}]}', "not a noteb"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": {"x": 3}}]}', "not a noteb"),
        (b'{"nbformat": 4, "cells": {"cell_type": "code"}}', "not a notebook"),
        (b'{"nbformat": 4, "cells": [["cell_type"]]}', "not a notebook"),
        (b'{"nbformat": [4], "cells": []}', "not a notebook"),
        (b'{"nbformat": NaN, "cells": []}', "not a notebook"),
        (b'{"nbformat": 1' + b"0" * 9_999 + b', "cells": []}', "not JSON"),
        (b'{"nbformat": 3, "worksheets": [[]]}', "not a notebook"),
        (b'{"nbformat": 3, "worksheets": {"cells": []}}', "not a notebook"),
        (b'{"nbformat": 3, "cells": []}', "not a notebook"),
        (b'{"nbformat": 1, "cells": [{"cell_type": "code", "code": 3}]}', "not a notebook"),
    ],
    ids=[
        "text",
        "nothing",
        "bytes",
        "cells of the wrong type",
        "a list",
        "a string",
        "a strange version",
        "a version to come",
        "a cell of the wrong type",
        "a cell without source",
        "a deep nest",
        "a deep nest of objects",
        "lines that are no text",
        "a source of the wrong type",
        "cells by name",
        "a cell that is a list",
        "a list of versions",
        "no number as version",
        "a number of 10,000 digits",
        "an old sheet that is a list",
        "old sheets by name",
        "no old sheets",
        "an old cell of the wrong type",
    ],
)
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
    monkeypatch.setattr(limits, "MAX_FILE", 2**20)
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / "large.py", "#" * (2**20 + 1))
    write(tmp_path / "ada" / "limit.py", "#" * 2**20)
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert [source.name for source in found.sources] == ["basics.py", "limit.py"]
    assert found.problems == ("large.py: larger than 1 MB",)


def test_what_is_refused_for_its_size_costs_no_other_file(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_TOTAL", 100)
    with write(tmp_path / "ada" / "a.ipynb").open("wb") as file:
        file.truncate(100 * 2**20)  # a file with a hole: nothing is written
    write(tmp_path / "ada" / "basics.py")
    write(tmp_path / "ada" / "c.py", "#" * 100)
    write(tmp_path / "ada" / "d.py", "x = 1")
    (found,) = find_submissions([tmp_path / "ada"], tiny)
    assert names([found]) == {"ada": ["basics.py", "d.py"]}
    assert found.problems == (
        "a.ipynb: larger than 4 MB: clear its outputs, and submit it again",
        "c.py: the submission is larger than 0 MB in all",
    )


V1 = {"nbformat": 1, "cells": [{"cell_type": "code", "code": "x = 1\ny = 2"},
                               {"cell_type": "text", "text": "# Text"}]}  # fmt: skip
V3_CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Text"]},
    {"cell_type": "code", "collapsed": False, "input": ["x = 1\n", "y = 2"], "language":
     "python", "metadata": {}, "outputs": []},
]  # fmt: skip
V2 = {"nbformat": 2, "metadata": {"name": ""}, "worksheets": [{"cells": V3_CELLS}]}
V3 = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
      "worksheets": [{"cells": V3_CELLS}, {"cells": []}]}  # fmt: skip


@pytest.mark.parametrize("content", [V1, V2, V3], ids=["first", "second", "third"])
def test_an_old_notebook_is_read_as_its_own_library_reads_it(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    found = read_submission("ada", write(tmp_path / "ada.ipynb", json.dumps(content)))
    assert found.sources[0].cells == ("x = 1\ny = 2",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new: Any = nbformat.convert(nbformat.from_dict(content), 4)  # type: ignore[no-untyped-call]
    theirs = ["".join(cell["source"]) for cell in new.cells if cell.cell_type == "code"]
    assert [*found.sources[0].cells] == theirs


CODE = '{"cell_type": "code", "source": "x = 1"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"nbformat": 4, "cells": [%s], "metadata": {"loss": [NaN, -Infinity, 1e999]}}',
        '{"nbformat": 2, "nbformat": 4, "cells": [], "cells": [%s]}',
        '{"nbformat": 4, "cells": [%s], "metadata": ' + "[" * 500 + "]" * 500 + "}",
        '{"nbformat": 4, "cells": [%s], "outputs": "\\ud83d \\u0000"}',
        '  {"nbformat": 4, "cells": [%s], "": {}}  ',
    ],
    ids=["numbers that JSON has not", "keys twice", "deep metadata", "odd text", "spaces"],
)
def test_a_notebook_with_oddities_is_read(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "ada.ipynb", text % CODE)
    assert read_submission("ada", path).sources[0].cells == ("x = 1",)


def test_a_cell_of_a_million_lines_is_read(tmp_path: Path) -> None:
    found = read_submission("ada", notebook(tmp_path / "ada.ipynb", "x\n" * 1_000_000))
    assert [len(cell) for cell in found.sources[0].cells] == [2_000_000]


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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_with_a_mark_of_its_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = "# naïve “café”\n"
    (tmp_path / "basics.py").write_bytes(text.encode(encoding))
    path = notebook(tmp_path / "layers.ipynb", text)
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    found = read_submission("ada", tmp_path)
    assert [source.cells for source in found.sources] == [(text,), (text,)]


@pytest.mark.parametrize(
    ("encoding", "word"),
    [
        ("shift_jis", "注意"), ("Big5", "注意"), ("gb18030", "注意"), ("euc-kr", "주의"),
        ("mac-roman", "é…"), ("cp1251", "внимание"), ("koi8-r", "внимание"), ("latin-1", "née"),
        ("iso-8859-15", "€"), ("utf-8", "注意"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "#!/usr/bin/env python\n", "\r\n", "# first\r\n"])
def test_the_encoding_that_a_python_file_declares_counts(
    tmp_path: Path, encoding: str, word: str, before: str
) -> None:
    text = f"{before}# -*- coding: {encoding} -*-\nx = '{word}'\n"
    (tmp_path / "basics.py").write_bytes(text.encode(encoding))
    assert [source.cells for source in read_submission("ada", tmp_path).sources] == [(text,)]


@pytest.mark.parametrize(
    "declared", ["nonsense", "punycode", "idna", "zlib", "rot13", "unicode_escape", "ascii"]
)
def test_a_declared_encoding_that_does_not_fit_is_ignored(tmp_path: Path, declared: str) -> None:
    text = f"# coding: {declared}\nx = 'née'\n"
    (tmp_path / "basics.py").write_text(text, "utf-8")
    assert [source.cells for source in read_submission("ada", tmp_path).sources] == [(text,)]


def test_the_first_declaration_of_an_encoding_counts(tmp_path: Path) -> None:
    text = "# coding: latin-1\n# encoding: koi8-r\nx = 'é'\n"
    (tmp_path / "basics.py").write_bytes(text.encode("latin-1"))
    assert [source.cells for source in read_submission("ada", tmp_path).sources] == [(text,)]


@pytest.mark.parametrize("encoding", sorted(python_encodings()))
def test_whatever_a_file_declares_its_text_can_be_sent(tmp_path: Path, encoding: str) -> None:
    data = f"# coding: {encoding}\nx = '+2AA-".encode() + bytes(range(1, 256)) + b"'\n"
    (tmp_path / "basics.py").write_bytes(data)
    for source in read_submission("ada", tmp_path).sources:
        source.cells[0].encode("utf-8")


def test_an_encoding_in_the_third_line_or_below_code_declares_nothing(tmp_path: Path) -> None:
    for text in ("\n\n# coding: cp1251\nx = 'é'\n", "x = 1\n# coding: cp1251\ny = 'é'\n"):
        (tmp_path / "basics.py").write_text(text, "utf-8")
        assert [source.cells for source in read_submission("ada", tmp_path).sources] == [(text,)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_file_that_is_no_text_gets_a_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "basics.py").write_bytes("import torch\n".encode(encoding))
    found = read_submission("ada", tmp_path)
    assert found.problems == (f"basics.py: {NO_TEXT}",)


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


# --- what is no plain file ------------------------------------------------------------------------

unix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files as Unix has them")


@unix
def test_pipes_sockets_and_links_block_nobody(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "class" / "ada" / "basics.py").parent
    monkeypatch.chdir(folder)  # a socket's path must be short
    os.mkfifo("pipe.py")
    os.mkfifo("book.ipynb")
    os.mkfifo("../pipe.py")
    os.mkfifo("../zip.zip")
    (folder / "null.py").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind("socket.py")
        found = find_submissions([tmp_path / "class"], tiny)
    assert names(found) == {"ada": ["basics.py"], "pipe": [], "zip": []}
    odd = ["book.ipynb", "null.py", "pipe.py", "socket.py"]
    assert found[0].problems == tuple(f"{name}: {NOT_PLAIN}" for name in odd)
    assert found[1].problems == (f"pipe.py: {NOT_PLAIN}",)
    assert found[2].problems == (f"zip.zip: {NOT_PLAIN}",)


@unix
@pytest.mark.parametrize("path", ["pipe.py", "/dev/zero"])
def test_a_path_that_is_no_file_and_no_folder_is_refused(
    tmp_path: Path, tiny: Course, path: str
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(CallError, match=r"neither a \.py file nor a notebook"):
        find_submissions([tmp_path / path], tiny)


def test_a_folder_that_is_named_like_a_file_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "layers.py" / "inner.py")
    found = read_submission("ada", tmp_path)
    assert names([found]) == {"ada": ["layers.py/inner.py"]}


def swapped(path: Path, change: Callable[[], object]) -> str:
    """What is said of a file that changes after it was listed."""
    listed = on_disk(path, path.name)
    assert isinstance(listed, Listed)
    change()
    with pytest.raises((Unreadable, OSError)) as error:
        listed.read()
    return str(error.value)


@unix
def test_what_changes_between_listing_and_reading_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "ada.py")
    secret = write(tmp_path / "secret.py", "the secret")

    def to_link() -> None:
        path.unlink()
        path.symlink_to(secret)

    def to_pipe() -> None:
        path.unlink()
        os.mkfifo(path)

    assert "it grew" in swapped(path, lambda: write(path, TEXT * 2))
    assert NOT_PLAIN in swapped(path, to_pipe)
    path.unlink()
    write(path)
    assert NOT_PLAIN in swapped(path, to_link)
    path.unlink()
    assert "No such file" in swapped(write(path), path.unlink)


def test_what_the_system_refuses_to_open_is_told_without_its_path(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "class" / "ada" / "basics.py")
    write(tmp_path / "class" / "ada" / "closed.py")
    write(tmp_path / "class" / "ada" / "locked" / "x.py")
    write(tmp_path / "class" / "bob.py")
    write(tmp_path / "class" / "cleo.zip")

    def refusing(function: Callable[..., Any], *refused: str) -> Callable[..., Any]:
        def checked(path: Any, *arguments: Any, **keywords: Any) -> Any:
            if Path(path).name in refused:
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **keywords)

        return checked

    monkeypatch.setattr(os, "open", refusing(os.open, "closed.py", "bob.py", "cleo.zip"))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "locked"))
    found = find_submissions([tmp_path / "class"], tiny)
    why = "it cannot be read (Permission denied)"
    assert names(found) == {"ada": ["basics.py"], "bob": [], "cleo": []}
    assert [problem for one in found for problem in one.problems] == [
        f"closed.py: {why}",
        f"locked: {why}",
        f"bob.py: {why}",
        f"cleo.zip: {why}",
    ]


def test_folders_may_be_nested_deeper_than_python_calls(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(1_200):
        folder = folder / "d"
        folder.mkdir()
    write(folder / "deep.py")
    try:
        found = read_submission("ada", tmp_path)
        assert [source.cells for source in found.sources] == [(TEXT,)]
        assert found.problems == ()
    finally:
        (folder / "deep.py").unlink()
        while folder != tmp_path:
            folder.rmdir()
            folder = folder.parent


# --- names ---------------------------------------------------------------------------------------


def test_names_with_control_characters_are_shown_with_escapes(tmp_path: Path, tiny: Course) -> None:
    write(tmp_path / "class" / "a\n\x1b[2J\u202e.py")
    write(tmp_path / "class" / r"a\n.py")
    write(tmp_path / "class" / "bob" / "b\x07.py")
    write(tmp_path / "class" / "bob" / "c\n.ipynb", "no notebook")
    found = find_submissions([tmp_path / "class"], tiny)
    assert names(found) == {
        r"a\\n": [r"a\\n.py"],
        r"a\n\x1b[2J\u202e": [r"a\n\x1b[2J\u202e.py"],
        "bob": [r"b\x07.py"],
    }
    assert found[-1].problems == (r"c\n.ipynb: not a notebook: the file is not JSON",)


def test_names_that_are_no_text_make_two_students(tmp_path: Path, tiny: Course) -> None:
    for name in (b"zo\xeb.py", b"zo\xe9.py"):  # neither is UTF-8
        write(tmp_path / os.fsdecode(name))
    assert list(names(find_submissions([tmp_path], tiny))) == [r"zo\udce9", r"zo\udceb"]


def test_long_names_are_cut_and_stay_different(tmp_path: Path, tiny: Course) -> None:
    for middle in "xy":
        write(tmp_path / f"{'é' * 60}{middle}{'é' * 60}.py")
        write(tmp_path / ("\x01" * 120 + middle + "\x01" * 120 + ".py"))
    found = find_submissions([tmp_path], tiny)
    assert len({one.student for one in found}) == 4
    assert [len(one.student) for one in found] == [200, 200, 121, 121]
    assert [len(one.sources[0].name) for one in found] == [200, 200, 124, 124]
    assert all(source.name.endswith(".py") for one in found for source in one.sources)


ANY_TEXT = st.text(st.characters(exclude_categories=()))  # half surrogate pairs too
WORDS = st.lists(
    st.sampled_from(["a", "\\", "x41", "\n", "…", "\udc80", "é", "\u202e", "b" * 90, "\x01" * 60])
).map("".join)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(first=WORDS | ANY_TEXT, second=WORDS | ANY_TEXT)
def test_different_names_are_never_shown_alike(first: str, second: str) -> None:
    assert (shown(first) == shown(second)) == (first == second)
    assert shown(first).isprintable()
    assert len(shown(first)) <= MAX_SHOWN
    shown(first).encode()


# --- properties of notebooks ---------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
SOURCES = JSON | ANY_TEXT | st.lists(ANY_TEXT | JSON, max_size=3)
CELLS = JSON | st.fixed_dictionaries(
    {"cell_type": st.sampled_from(["code", "code", "markdown"]) | JSON},
    optional={"source": SOURCES, "input": SOURCES, "code": SOURCES, "outputs": JSON},
)
SHEETS = JSON | st.lists(JSON | st.fixed_dictionaries({"cells": JSON | st.lists(CELLS)}))
NOTEBOOKS = JSON | st.fixed_dictionaries(
    {"nbformat": st.sampled_from([1, 2, 3, 4, 4, 4, 4.0, True, 5]) | JSON},
    optional={"cells": JSON | st.lists(CELLS), "worksheets": SHEETS, "metadata": JSON},
)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(content=NOTEBOOKS)
def test_any_json_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ipynb"
    path.write_text(json.dumps(content), "utf-8")
    found = read_submission("ada", path)
    assert found.status in ("ready", "unreadable")
    for source in found.sources:
        assert all(isinstance(cell, str) for cell in source.cells)
        "".join(source.cells).encode()
    for problem in found.problems:
        assert problem.startswith("any.ipynb: not a notebook")
        assert problem.isprintable()


@settings(derandomize=True, deadline=None, database=None, max_examples=100)
@given(cells=st.lists(st.text(max_size=20), max_size=4))
def test_every_cell_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = notebook(tmp_path_factory.getbasetemp() / "whole.ipynb", *cells)
    assert read_submission("ada", path).sources[0].cells == tuple(cells)


# --- wrong calls ---------------------------------------------------------------------------------


def test_a_path_that_is_not_there_is_named(tmp_path: Path, tiny: Course) -> None:
    with pytest.raises(CallError, match=r"no such file or folder: .*nobody"):
        find_submissions([write(tmp_path / "ada.py"), tmp_path / "nobody"], tiny)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, tiny: Course) -> None:
    with pytest.raises(
        CallError, match=r"notes\.txt is neither a \.py file nor a notebook nor a zip"
    ):
        find_submissions([write(tmp_path / "notes.txt")], tiny)


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


def test_the_same_path_given_twice_is_refused(tmp_path: Path, tiny: Course) -> None:
    path = write(tmp_path / "ada.py")
    with pytest.raises(CallError, match="two submissions are called 'ada'"):
        find_submissions([path, path], tiny)
