"""No input makes `grader grade` print a traceback: generated archives and folders, odd calls."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.cli import main
from grader.course.course import NAMED
from tests.support.archives import Member, packed, zipped
from tests.support.places import TINY

steady = settings(derandomize=True, deadline=None, database=None, max_examples=100)
TEXT = "def center(x):\n    return x\n"
NOTE = "submission_metadata.yml"
DIGITS = "1" * 5_000


def said(*arguments: str | Path) -> tuple[int, str]:
    """How `grader grade` ends in this process, and what it prints to a terminal of UTF-8."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors=how) for how in ("strict", "replace")]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(streams[0]):
        patch.delenv(NAMED, raising=False)
        course = () if "--course" in arguments else ("--course", str(TINY))
        patch.setattr(sys, "argv", ["grader", "grade", *map(str, arguments), *course])
        with redirect_stderr(streams[1]), pytest.raises(SystemExit) as stopped:
            main()
    for stream in streams:
        stream.seek(0)
    code = stopped.value.code or 0
    assert isinstance(code, int)
    return code, "".join(stream.read() for stream in streams)


def is_listed_or_refused(path: Path) -> None:
    """A dry run ends with a list, of conflicts too, or with one line that says why not."""
    code, text = said(path, "--dry-run")
    assert code in (0, 1, 2)
    assert (code == 1) is ("\nnot graded: " in text)
    assert "Traceback" not in text
    assert "\x1b" not in text
    if code == 2:
        assert text.startswith("grader: ")
        assert text.count("\n") == 1


# --- what is handed in ---------------------------------------------------------------------------

TOPS = st.sampled_from(
    [
        "doejane_1_10_basics.py",
        "doejane_LATE_1_11_hw.zip",
        "roebob_2_text.html",
        "roebob_2_link.html",
        "anon_abc12_11_layers.py",
        "LATE_anon_9_12_layers.py",
        f"max_{DIGITS[:200]}_3_basics.py",
        f"max_3_{DIGITS[:200]}_basics.py",
        f"max_3_{DIGITS}_basics.py",
        f"max_{DIGITS}_3_basics.py",
        "_1_2_basics.py",
        "Jane Doe_5_assignsubmission_file_",
        f"Jane Doe_{DIGITS[:200]}_assignsubmission_file_basics.py",
        "Bob_6_assignsubmission_onlinetext_onlinetext.html",
        NOTE,
        "submission_101",
        "submission_102",
        "submitted",
        "source",
        "basics.py",
        "layers.ipynb",
        "ada.ipynb.txt",
        "ada.docx",
        "__ada.py",
        "__MACOSX",
        "exercises",
        "grades.db",
        "course.toml",
        "..",
        "a\x1b[2J\n.py",
        "\udc80.py",
        "[bold]x[/].py",
        "x" * 240 + ".py",
        DIGITS,
        "C:",
        "\0",
    ]
) | st.text(max_size=5)
NOTES = st.sampled_from(
    [
        "",
        "- 1",
        "&a [*a]",
        "submission_101: 7",
        "submission_101: {':submitters': 7}",
        "submission_101: {':submitters': [7, [], null, ada]}",
        "submission_101: {':submitters': {a: b}, ':history': 3}",
        "submission_101: {':submitters': [{':name': [1], ':sid': {a: b}}]}",
        "submission_101: {':created_at': 0001-01-01 00:00:00 +23:00}",
        "submission_101: {':created_at': 0001-01-01 00:00:00}",
        "submission_101: {':created_at': 2026-13-45}",
        "submission_101: !!timestamp x",
        "submission_101: !!int ''",
        "submission_101: !!bool x",
        f"submission_101: {DIGITS}",
        f"{DIGITS}: 3",
        "? [1, 2]\n: 3",
        "null: {}\n1.5: {}\n2026-01-01: {}",
        "[" * 2_000,
        "\x07",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: {':submitters': [{':name': *b}]}",
    ]
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([":submitters", ":name", ":sid", ":history", ":created_at", "a"]), inner
        )
    ),
    max_leaves=6,
).map(lambda about: yaml.safe_dump({"submission_101": about, "submission_102": {}}))
CONTENTS = st.sampled_from(
    [
        b"",
        TEXT.encode(),
        b"\xff\xfe\x00",
        b'{"nbformat": 4, "cells": []}',
        zipped({"basics.py": TEXT}),
        zipped({"doejane_1_10_basics.py": TEXT}),
        b"PK\5\6" + bytes(18),
    ]
)
PATHS = st.lists(TOPS, min_size=1, max_size=3).map("/".join)
FILES = st.lists(st.tuples(PATHS, CONTENTS), max_size=5)
ARCHIVES = st.sampled_from(
    ["submissions.zip", "assignment_1_export.zip", "CS-hw-1.zip", "submitted.zip", "mallory.zip"]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one input after another."""
    return tmp_path_factory.mktemp("any")


def archive_of(files: Sequence[tuple[str, bytes]], notes: Sequence[str]) -> bytes:
    """A zip of these, entries of one path among them, with as many notes of Gradescope."""
    entries = [*files, *((NOTE, note.encode("utf-8", "replace")) for note in notes)]
    names = (name.encode("utf-8", "surrogatepass")[:60_000] for name, _ in entries)
    return packed(*(Member(name, data) for name, (_, data) in zip(names, entries, strict=True)))


@steady
@given(files=FILES, notes=st.lists(NOTES, max_size=2), name=ARCHIVES)
def test_any_archive_is_listed_or_refused(
    place: Path, files: list[tuple[str, bytes]], notes: list[str], name: str
) -> None:
    path = place / name
    path.write_bytes(archive_of(files, notes))
    is_listed_or_refused(path)
    path.unlink()


def written(folder: Path, files: Mapping[str, bytes]) -> None:
    """Those of these files that the file system takes."""
    for name, data in files.items():
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if not parts or "\0" in name or any(len(os.fsencode(part)) > 255 for part in parts):
            continue
        path = folder.joinpath(*parts)
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@steady
@given(
    files=FILES,
    archives=st.lists(st.tuples(TOPS, FILES), max_size=2),
    note=st.none() | NOTES,
    links=st.lists(TOPS, max_size=1),
)
def test_any_folder_is_listed_or_refused(
    place: Path,
    files: list[tuple[str, bytes]],
    archives: list[tuple[str, list[tuple[str, bytes]]]],
    note: str | None,
    links: list[str],
) -> None:
    packed_too = {f"{name}.zip": archive_of(inside, ()) for name, inside in archives}
    with TemporaryDirectory(dir=place) as folder:
        written(Path(folder), {**dict(files), **packed_too})
        if note is not None:
            written(Path(folder), {NOTE: note.encode("utf-8", "replace")})
        for name in links:
            link = Path(folder, name.replace("/", "").replace("\0", "")[:50])
            if not link.exists():
                link.symlink_to(place)
        is_listed_or_refused(Path(folder))


@pytest.mark.parametrize(
    "files",
    [
        {NOTE: "submission_1: {}", f"a/../{NOTE}": "", "submission_1/basics.py": TEXT},
        {f"{NOTE}/basics.py": TEXT, "submission_1/basics.py": TEXT},
        {f"{NOTE}/": "", "submission_1/basics.py": TEXT},
    ],
)
def test_a_note_of_gradescope_that_is_no_file_is_refused_in_one_line(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    (tmp_path / "submissions.zip").write_bytes(
        packed(*(Member(name, text.encode()) for name, text in files.items()))
    )
    is_listed_or_refused(tmp_path / "submissions.zip")


def test_a_note_of_gradescope_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    notes = [Member(NOTE, b"submission_1: {}"), Member(NOTE, b"submission_1: {}")]
    (tmp_path / "submissions.zip").write_bytes(packed(*notes, Member("submission_1/a.py", b"x")))
    code, text = said(tmp_path / "submissions.zip", "--dry-run")
    assert code == 2
    assert f"{NOTE} is there twice: download the submissions again" in text


def test_a_note_of_gradescope_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "class", {f"{NOTE}/a.py": b"x", "submission_1/a.py": b"x"})
    code, text = said(tmp_path / "class", "--dry-run")
    assert code == 2
    assert f"{NOTE} is no file: download the submissions again" in text


@pytest.mark.parametrize("name", ["submissions.zip", "class"])
def test_a_file_that_is_called_like_nbgrader_s_folder_is_no_tree_of_it(
    tmp_path: Path, name: str
) -> None:
    files = {"submitted": TEXT, "source/basics.py": TEXT}
    (tmp_path / "submissions.zip").write_bytes(zipped(files))
    written(tmp_path / "class", {name: text.encode() for name, text in files.items()})
    assert said(tmp_path / name, "--dry-run") == (
        2,
        f"grader: no submissions in {tmp_path / name}: there is no .py file, no notebook and no "
        "zip of those\n",
    )


def test_numbers_of_thousands_of_digits_are_no_system_s(tmp_path: Path) -> None:
    names = (f"max_3_{DIGITS}_basics.py", f"max_{DIGITS}_3_basics.py", f"a_{DIGITS}_text.html")
    (tmp_path / "submissions.zip").write_bytes(zipped(dict.fromkeys(names, TEXT)))
    code, text = said(tmp_path / "submissions.zip", "--dry-run")
    assert code == 0
    assert "Canvas" not in text


# --- what is called ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        ("CLASS", "--out", DIGITS),
        ("CLASS", "--out", f"CLASS/ada.py/{DIGITS}"),
        ("CLASS", "--out", "/proc/self/nowhere/grades"),
        ("CLASS", "--watch", "--out", "/proc/self/nowhere/grades"),
        ("--again", "--out", DIGITS),
        (DIGITS, "--out", "CLASS/out"),
        (DIGITS, "--dry-run"),
        ("CLASS", "--dry-run", "--roster", DIGITS),
        ("CLASS", "--dry-run", "--roster", "CLASS"),
        ("CLASS", "--dry-run", "--course", DIGITS),
    ],
)
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place where nobody may write")
def test_a_place_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, one_warm_process: None, call: Sequence[str]
) -> None:
    written(tmp_path / "class", {"ada.py": TEXT.encode()})
    code, text = said(*(part.replace("CLASS", str(tmp_path / "class")) for part in call))
    assert code == 2
    assert text.startswith("grader: ") or "\ngrader: " in text
    assert "Traceback" not in text
    assert [path.name for path in (tmp_path / "class").iterdir()] == ["ada.py"]


def test_a_name_that_is_no_text_is_shown_with_escapes(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"zo\xeb\x1b")
    written(path, {"ada.py": TEXT.encode(), "bob.py": TEXT.encode()})
    code, text = said(path, "--dry-run")
    assert code == 0
    assert r"zo\udceb\x1b: 2 submissions: 2 files" in text
