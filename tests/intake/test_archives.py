"""Zips: read like the folders that they hold, and never trusted.

The hostile ones are built in `tests/support/archives.py`; the table below says what each earns.
"""

from __future__ import annotations

import csv
import io
import os
import random
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course.course import Course
from grader.intake import Submission, find_submissions, read_submission
from grader.intake import files as limits
from grader.intake.archives import (
    ALIKE,
    BOMB,
    CONTROLS,
    DAMAGED,
    ENCRYPTED,
    ESCAPES,
    METHOD,
    NO_ZIP,
    TOO_LONG,
    TOO_MANY,
    TWICE,
)
from grader.intake.files import NESTED, NO_TEXT, NOT_PLAIN, OTHER_ARCHIVE, OTHER_TYPE
from grader.intake.names import MAX_SHOWN, shown
from grader.records.faults import CallError
from tests.support import archives
from tests.support.archives import HONEST, MEGA, Member, packed, zipped
from tests.support.places import TINY

TEXT = "def center(x):\n    return x - x.mean()\n"

Grader = Callable[..., Any]

steady = settings(derandomize=True, deadline=None, database=None, max_examples=150)


def handed_in(folder: Path, content: bytes, name: str = "alice.zip") -> Submission:
    """A submission that consists of this zip."""
    path = folder / name
    path.write_bytes(content)
    return read_submission(path.stem, path)


def texts(submission: Submission) -> dict[str, tuple[str, ...]]:
    """A submission's files by name."""
    assert len({source.name for source in submission.sources}) == len(submission.sources)
    return {source.name: source.cells for source in submission.sources}


def everything_below(folder: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def notebook(*cells: str) -> str:
    """A notebook as JSON."""
    import json

    told = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    return json.dumps({"cells": told, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


# --- honest zips ---------------------------------------------------------------------------------


def test_a_zip_is_a_submission_named_like_the_file(tmp_path: Path, tiny: Course) -> None:
    path = tmp_path / "alice.zip"
    path.write_bytes(zipped({"softmax.py": TEXT, "more/layers.ipynb": notebook("x = 1", "y = 2")}))
    (found,) = find_submissions([path], tiny)
    assert (found.student, found.status, found.problems) == ("alice", "ready", ())
    assert texts(found) == {"softmax.py": (TEXT,), "more/layers.ipynb": ("x = 1", "y = 2")}


def test_zips_stand_beside_other_submissions(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "alice.zip").write_bytes(zipped({"basics.py": TEXT}))
    (tmp_path / "bob.ZIP").write_bytes(zipped({"basics.py": TEXT}))
    (tmp_path / "cleo.py").write_text(TEXT)
    found = {one.student: list(texts(one)) for one in find_submissions([tmp_path], tiny)}
    assert found == {"alice": ["basics.py"], "bob": ["basics.py"], "cleo": ["cleo.py"]}


def test_a_zip_of_a_folder_is_read_like_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "alice"
    for name in (
        "basics.py",
        "Layers.PY",
        "a/deep/er.py",
        "a.py",
        "a b/ü.py",
        "notes.txt",
        ".hidden.py",
        ".git/x.py",
        "venv/x.py",
        "lib/site-packages/x.py",
        "checks/test_basics.py",
        "__MACOSX/._basics.py",
        "__pycache__/x.py",
        "book.ipynb",
        "odd.ipynb",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(notebook("x = 1") if name == "book.ipynb" else f"# {name}\n")
    content = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"), key=lambda path: path.name)
        if path.is_file()
    }
    as_folder = read_submission("alice", folder)
    assert handed_in(tmp_path, zipped(content)) == as_folder
    assert list(texts(as_folder)) == [
        "Layers.py",
        "a/deep/er.py",
        "a b/ü.py",
        "a.py",
        "basics.py",
        "book.ipynb",
    ]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["alice/softmax.py", "alice/more/x.py"], ["more/x.py", "softmax.py"]),
        (["alice/softmax.py", "bob/softmax.py"], ["alice/softmax.py", "bob/softmax.py"]),
        (["softmax.py", "alice/x.py"], ["alice/x.py", "softmax.py"]),
        (["a/b/softmax.py"], ["b/softmax.py"]),
        (["softmax.py"], ["softmax.py"]),
        (["alice/softmax.py", "__MACOSX/alice/._softmax.py", "alice/.DS_Store"], ["softmax.py"]),
    ],
)
def test_a_folder_that_holds_everything_is_not_shown(
    tmp_path: Path, names: list[str], shown: list[str]
) -> None:
    assert list(texts(handed_in(tmp_path, zipped(dict.fromkeys(names, TEXT))))) == shown


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("size", [0, 1, 70_000, MEGA])
def test_what_went_in_comes_out(tmp_path: Path, method: int, size: int) -> None:
    text = "".join(random.Random(size).choices("abc \n=()", k=size))
    assert texts(handed_in(tmp_path, zipped({HONEST: text}, method))) == {HONEST: (text,)}


def test_a_zip_that_was_written_into_a_pipe_is_read(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: object) -> int:
            raise OSError

        tell = seek

    target = Pipe()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HONEST, TEXT)
    assert texts(handed_in(tmp_path, target.getvalue())) == {HONEST: (TEXT,)}


def test_a_zip_with_fields_for_large_files_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)  # what is written is zip64 above this size
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    content = zipped({HONEST: TEXT, "layers.py": TEXT})
    assert b"PK\6\6" in content
    assert list(texts(handed_in(tmp_path, content))) == [HONEST, "layers.py"]


def test_names_of_old_and_careless_programs_are_read(tmp_path: Path) -> None:
    content = packed(
        Member("über.py".encode(), b"x = 1\n"),  # UTF-8 without its flag, as a Mac writes it
        Member("ä.py".encode("cp437"), b"x = 1\n"),
        Member("cafe\u0301.py", b"x = 1\n"),
        Member("hw\\layers.py", b"x = 1\n"),
    )
    assert set(texts(handed_in(tmp_path, content))) == {
        "über.py",
        "ä.py",
        "caf\u00e9.py",
        "hw/layers.py",
    }


def test_large_files_that_are_no_answers_cost_nothing(tmp_path: Path) -> None:
    files = {f"lib/module_{n}.txt": b"" for n in range(10_000)}
    content = zipped({**files, "weights.pt": bytes(20 * MEGA), HONEST: TEXT}, zipfile.ZIP_STORED)
    found = handed_in(tmp_path, content)
    assert (list(texts(found)), found.problems) == ([HONEST], ())


def test_a_notebook_that_is_no_notebook_costs_no_other_file(tmp_path: Path) -> None:
    found = handed_in(tmp_path, zipped({HONEST: TEXT, "odd.ipynb": "no notebook"}))
    assert list(texts(found)) == [HONEST]
    assert found.problems == ("odd.ipynb: not a notebook: the file is not JSON",)


def test_a_notebook_that_prints_zeros_is_no_bomb(tmp_path: Path) -> None:
    printed = ["tensor([[0., 0., 0., 0., 0., 0., 0., 0.],\n"] * 40_000
    book = notebook("x = 1").replace(
        '"source"', f'"outputs": {printed!r}, "source"'.replace("'", '"')
    )
    content = zipped({"book.ipynb": book})
    assert len(book) > 100 * len(content)
    assert texts(handed_in(tmp_path, content)) == {"book.ipynb": ("x = 1",)}


# --- limits --------------------------------------------------------------------------------------


def test_an_entry_that_is_too_large_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FILE", MEGA)
    files = {HONEST: "#" * MEGA, "large.py": "#" * (MEGA + 1), "plots.ipynb": "#" * (MEGA + 1)}
    found = handed_in(tmp_path, zipped(files, zipfile.ZIP_STORED))
    assert list(texts(found)) == [HONEST]
    assert found.problems == (
        "large.py: larger than 1 MB",
        "plots.ipynb: larger than 1 MB: clear its outputs, and submit it again",
    )


def test_a_zip_that_is_too_large_in_all_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_TOTAL", MEGA + 100)
    files = {f"{name}.py": "#" * (MEGA // 2) for name in "abc"}
    found = handed_in(tmp_path, zipped({**files, "d.py": "x = 1"}))
    assert list(texts(found)) == ["a.py", "b.py", "d.py"]
    assert found.problems == ("c.py: the submission is larger than 1 MB in all",)


def test_of_very_many_source_files_the_first_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FILES", 3)
    found = handed_in(tmp_path, zipped({f"part_{n}.py": TEXT for n in range(9)}))
    assert list(texts(found)) == ["part_0.py", "part_1.py", "part_2.py"]
    assert found.problems == ("more than 3 source files; only the first ones were read",)


def test_a_zip_of_too_many_entries_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = zipped({f"venv/lib/module_{n}.py": "" for n in range(50)} | {HONEST: TEXT})
    assert list(texts(handed_in(tmp_path, content))) == [HONEST]
    monkeypatch.setattr(limits, "MAX_DIRECTORY", 2_000)
    found = handed_in(tmp_path, content)
    assert (found.status, found.problems) == ("unreadable", (f"alice.zip: {TOO_MANY}",))


def test_of_very_many_problems_the_first_are_told(tmp_path: Path) -> None:
    content = packed(Member(HONEST, b""), *(Member(f"../{n}.py", b"x") for n in range(1_000)))
    found = handed_in(tmp_path, content)
    assert list(texts(found)) == [HONEST]
    assert found.problems[0] == f"../0.py: {ESCAPES}"
    assert len(found.problems) == limits.MAX_PROBLEMS + 1
    assert found.problems[-1] == "and 980 more such lines"


# --- attacks -------------------------------------------------------------------------------------

# What stands beside the honest file, and what is said.
EARNED: dict[Callable[[str], bytes], tuple[list[str], list[str]]] = {
    archives.zip_slip: ([], [f"../../layers.py: {ESCAPES}", f"a/../../b.txt: {ESCAPES}"]),
    archives.absolute_path: ([], [f"/tmp/layers.py: {ESCAPES}", f"/etc/passwd: {ESCAPES}"]),
    archives.drive_letter: ([], [rf"C:\\layers.py: {ESCAPES}", f"d:layers.py: {ESCAPES}"]),
    archives.backslash_slip: (
        [], [rf"..\\layers.py: {ESCAPES}", rf"\\\\server\\layers.py: {ESCAPES}"],
    ),
    archives.symlink: ([], [f"layers.py: {NOT_PLAIN}"]),
    archives.symlinked_folder: (["more/layers.py"], []),
    archives.device: ([], [f"layers.py: {NOT_PLAIN}", f"pipe.py: {NOT_PLAIN}"]),
    archives.bomb: ([], [f"layers.py: {BOMB}"]),
    archives.lying_bomb: ([], [f"layers.py: {DAMAGED}"]),
    archives.endless_stream: ([], ["layers.py: larger than 4 MB"]),
    archives.nested_bomb: ([], [f"lib.zip: {NESTED}", f"more/lib.tar.gz: {NESTED}"]),
    archives.many_bombs: (
        [],
        [f"part_{n:03}.py: {DAMAGED}" for n in range(5)]
        + [f"part_{n:03}.py: the submission is larger than 16 MB in all" for n in range(5, 20)]
        + ["and 280 more such lines"],
    ),
    archives.same_name_twice: ([], [f"{HONEST}: {TWICE}"]),
    archives.same_name_another_way: (["more/caf\u00e9.py"], [f"more/caf\u00e9.py: {TWICE}"]),
    archives.capital_letters: (["BASICS.py"], [f"BASICS.PY: {ALIKE}", f"{HONEST}: {ALIKE}"]),
    archives.newline_in_name: (
        [], [rf"a\nmallory,graded,60.py: {CONTROLS}", rf"b\x1b[2J.py: {CONTROLS}"],
    ),
    archives.nul_in_name: (
        [], [rf"layers.py\x00.txt: {CONTROLS}", rf"lay\x00ers.py: {CONTROLS}"],
    ),
    archives.long_name: (
        [],
        [f"{shown(name)}: {TOO_LONG}" for name in ("a" * 4_093 + ".py", "b/" * 2_000 + "c.py")],
    ),
    archives.deceiving_unicode: (["=cmd().py", r"\u202eyp.sreyal.py"], []),
    archives.encrypted: ([], [f"layers.py: {ENCRYPTED}"]),
    archives.unknown_method: ([], [f"{name}.py: {METHOD}" for name in ("bz2", "lzma", "odd")]),
    archives.wrong_account: ([], [f"{name}.py: {DAMAGED}" for name in "abcde"]),
    archives.two_faces: ([], [f"layers.py: {DAMAGED}"]),
    archives.entries_before_a_comment: ([], []),
    archives.garbage_before_and_after: ([], []),
    archives.polyglot: ([], []),
}  # fmt: skip

# Of these, nothing is read, for one of these reasons: not all versions of zipfile give the same.
GIVEN_UP: dict[Callable[[str], bytes], list[str]] = {
    archives.broken_unicode: [NO_ZIP],
    archives.from_the_future: [NO_ZIP],
    archives.zip64_lies: [NO_ZIP],
    archives.many_entries: [TOO_MANY],
    archives.entries_behind_another_end: [TOO_MANY],
    archives.entries_in_zip64: [TOO_MANY],
    archives.entries_in_zip64_elsewhere: [NO_ZIP, TOO_MANY],
    archives.wide_entries: [TOO_MANY],
    archives.table_that_breaks_off: [NO_ZIP],
}

# Entries that share bytes with others. Some versions of zipfile read them, up to the limits.
SHARED: dict[Callable[[str], bytes], set[str]] = {
    archives.overlapping_bomb: {"part.py", "part_0.py", "part_1.py", "part_2.py"},
    archives.quoting_bomb: {"inner.py", "outer.py"},
}

# Here there is nothing to read: the status, and what is said.
NOTHING: dict[Callable[[], bytes], tuple[str, list[str]]] = {
    archives.not_a_zip: ("unreadable", [f"alice.zip: {NO_ZIP}"]),
    archives.nothing_at_all: ("unreadable", [f"alice.zip: {NO_ZIP}"]),
    archives.cut_off: ("unreadable", [f"alice.zip: {NO_ZIP}"]),
    archives.table_beyond_the_end: ("unreadable", [f"alice.zip: {NO_ZIP}"]),
    archives.offsets_beyond_the_end: ("unreadable", [f"{HONEST}: {DAMAGED}"]),
    archives.all_encrypted: (
        "unreadable", [f"{HONEST}: {ENCRYPTED}", f"layers.ipynb: {ENCRYPTED}"],
    ),
    archives.empty_zip: ("empty", []),
    archives.no_source_file: ("unreadable", [f"report.pdf: {OTHER_TYPE}, not a PDF"]),
}  # fmt: skip


def each(attacks: Iterable[object]) -> pytest.MarkDecorator:
    """A test for each of these attacks, by its name."""
    return pytest.mark.parametrize("attack", attacks, ids=lambda attack: attack.__name__)


def test_every_attack_that_is_built_is_tried() -> None:
    built = {
        builder
        for builder in vars(archives).values()
        if callable(builder) and (builder.__doc__ or "").startswith("Tries: ")
    }
    assert built == {*EARNED, *GIVEN_UP, *SHARED, *NOTHING}


@each(EARNED)
def test_an_attack_costs_a_line_and_no_honest_file(
    tmp_path: Path, attack: Callable[[str], bytes]
) -> None:
    others, problems = EARNED[attack]
    found = handed_in(tmp_path, attack(TEXT))
    assert list(found.problems) == problems
    assert texts(found).pop(HONEST) == (TEXT,)
    assert sorted(texts(found)) == sorted([HONEST, *others])
    assert list(tmp_path.iterdir()) == [tmp_path / "alice.zip"]


@each(GIVEN_UP)
def test_a_zip_that_cannot_be_opened_costs_one_line(
    tmp_path: Path, attack: Callable[[str], bytes]
) -> None:
    found = handed_in(tmp_path, attack(TEXT))
    assert found.status == "unreadable"
    assert found.problems in [(f"alice.zip: {why}",) for why in GIVEN_UP[attack]]


@each(SHARED)
def test_bytes_that_entries_share_cost_no_honest_file(
    tmp_path: Path, attack: Callable[[str], bytes]
) -> None:
    found = handed_in(tmp_path, attack(TEXT))
    assert texts(found)[HONEST] == (TEXT,)
    # A part of a zip is no text: it holds null characters.
    damaged = {
        line.removesuffix(f": {why}")
        for line in found.problems
        for why in (DAMAGED, NO_TEXT)
        if line.endswith(why)
    }
    assert {*texts(found)} ^ damaged == {HONEST, *SHARED[attack]}


@each(NOTHING)
def test_a_zip_without_an_answer_says_why(tmp_path: Path, attack: Callable[[], bytes]) -> None:
    status, problems = NOTHING[attack]
    found = handed_in(tmp_path, attack())
    assert (found.status, found.sources, list(found.problems)) == (status, (), problems)


def test_of_two_files_with_one_path_the_last_is_read(tmp_path: Path) -> None:
    found = handed_in(tmp_path, archives.same_name_another_way(TEXT))
    assert texts(found)["more/caf\u00e9.py"] == ("last\n",)


@each([*EARNED, *GIVEN_UP, *SHARED])
def test_no_attack_takes_more_than_the_memory_that_is_stated(
    tmp_path: Path, attack: Callable[[str], bytes]
) -> None:
    path = tmp_path / "alice.zip"
    path.write_bytes(attack(TEXT))
    assert peak(path) < 50 * MEGA


PER_BYTE = 18  # of memory, for a byte of a table of short names


def test_files_that_grow_once_read_stay_within_the_memory_that_is_stated(tmp_path: Path) -> None:
    wide = ("#" * (limits.MAX_FILE - 4) + "😀").encode()  # four bytes a character, once text
    deep = f"[{('[' * 400 + ']' * 400 + ',') * (limits.MAX_FILE // 801 - 1)}0]".encode()
    files = {"a.py": wide, "b.py": wide, "c.py": wide, "d.ipynb": deep}
    path = tmp_path / "alice.zip"
    path.write_bytes(zipped(files, zipfile.ZIP_STORED))
    assert 200 * MEGA < peak(path) < 350 * MEGA - PER_BYTE * limits.MAX_DIRECTORY


def test_a_table_of_contents_grows_no_more_than_is_reckoned_with(tmp_path: Path) -> None:
    files, table, its_end = archives.crowded(zipped({HONEST: TEXT}), 40_000)
    path = tmp_path / "alice.zip"
    path.write_bytes(files + table + its_end)
    assert peak(path) < PER_BYTE * len(table)


def peak(path: Path) -> int:
    """The most memory in bytes that Python held at a time while it read a submission."""
    tracemalloc.start()
    try:
        read_submission("alice", path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["alice.tar", "alice.tar.gz", "alice.7z", "alice.RAR"])
def test_other_archives_are_told_and_not_passed_over(
    tmp_path: Path, tiny: Course, name: str
) -> None:
    (tmp_path / "bob.py").write_text(TEXT)
    (tmp_path / name).write_bytes(b"whatever")
    found = find_submissions([tmp_path], tiny)
    assert [one.status for one in found] == ["unreadable", "ready"]
    assert found[0].problems == (f"{name}: {OTHER_ARCHIVE}",)


def test_an_archive_in_a_students_folder_is_told(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "homework.zip").write_bytes(zipped({HONEST: TEXT}))
    (found,) = find_submissions([tmp_path], tiny)
    assert (found.student, found.status) == ("alice", "unreadable")
    assert found.problems == (f"homework.zip: {NESTED}",)


def test_a_file_and_a_zip_with_one_name_are_refused_with_both_paths(
    tmp_path: Path, tiny: Course
) -> None:
    (tmp_path / "alice.py").write_text(TEXT)
    (tmp_path / "alice.zip").write_bytes(zipped({HONEST: TEXT}))
    with pytest.raises(CallError, match=r"'alice': .*alice\.py and .*alice\.zip; rename one"):
        find_submissions([tmp_path], tiny)


# --- a whole class -------------------------------------------------------------------------------


def test_a_class_of_attackers_is_graded_to_its_end(
    grader: Grader, tmp_path: Path, right: str
) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "honest.py").write_text(right)
    (folder / "=mallory\n\x1b[2J\x07.py").write_text(right)
    os.mkfifo(folder / "pipe.py")
    (folder / "zoe.zip").write_bytes(zipped({"zoe/answers.py": right}))
    for attack in (*EARNED, *GIVEN_UP, *SHARED):
        (folder / f"{attack.__name__}.zip").write_bytes(attack(right))
    for mistake in NOTHING:
        (folder / f"{mistake.__name__}.zip").write_bytes(mistake())
    before = everything_below(tmp_path)
    ran = grader("grade", folder, "--out", tmp_path / "out", "--course", TINY, "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    with (tmp_path / "out" / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student"]: (row["status"], row["total"]) for row in csv.DictReader(file)}
    full = ("graded", "10")
    assert rows == {
        "honest": full,
        r"'=mallory\n\x1b[2J\x07": full,
        "pipe": ("unreadable", "0"),
        "zoe": full,
        **{attack.__name__: full for attack in (*EARNED, *SHARED)},
        **{attack.__name__: ("unreadable", "0") for attack in GIVEN_UP},
        **{mistake.__name__: (NOTHING[mistake][0], "0") for mistake in NOTHING},
    }
    written = everything_below(tmp_path).keys() - before.keys()
    assert {Path(path).parent for path in written} == {
        tmp_path / "out",
        tmp_path / "out" / "feedback",
    }
    assert "\x1b" not in ran.out
    assert "zip_slip: ../../layers.py: its path leads out of the archive" in ran.out


def test_a_student_can_check_a_zip(grader: Grader, tmp_path: Path, right: str) -> None:
    (tmp_path / "answers.zip").write_bytes(zipped({"answers/all.py": right}))
    ran = grader("check", "--in", tmp_path / "answers.zip", "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert "4 of 4 pass" in ran.out


# --- properties ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one archive at a time."""
    return tmp_path_factory.mktemp("place")


def is_in_order(place: Path, content: bytes, suffix: str = ".zip") -> Submission:
    """Read a submission, and assert what must hold for any."""
    found = handed_in(place, content, f"alice{suffix}")
    assert list(place.iterdir()) == [place / f"alice{suffix}"]
    (place / f"alice{suffix}").unlink()
    assert len(found.sources) <= limits.MAX_FILES
    assert len(found.problems) <= limits.MAX_PROBLEMS + 1
    read = [cell for source in found.sources for cell in source.cells]
    # Each byte is at most one character; one that means nothing is three bytes once replaced.
    assert sum(map(len, read)) <= limits.MAX_TOTAL
    for name in [source.name for source in found.sources]:
        assert name.isprintable()
        assert len(name) <= MAX_SHOWN
        assert not name.startswith("/")
        assert ".." not in name.split("/")
    for line in found.problems:
        assert line.isprintable()
        assert len(line) <= 500
    "\n".join([*read, *found.problems]).encode()
    return found


@steady
@given(content=st.binary(max_size=2_000), suffix=st.sampled_from([".zip", ".ipynb", ".py"]))
def test_any_bytes_are_read_or_told(place: Path, content: bytes, suffix: str) -> None:
    found = is_in_order(place, content, suffix)
    assert found.status in ("ready", "unreadable", "empty")


PIECES = st.one_of(
    st.sampled_from(
        [
            "..",
            ".",
            "",
            "/",
            "\\",
            "C:",
            "\0",
            "\n",
            "venv",
            "checks",
            "CON",
            "~",
            "-rf",
            "a" * 300,
            "\u202e",
            "e\u0301",
            "\ud800",
            "basics.py",
            "BASICS.PY",
            "x.ipynb",
            "b.zip",
            "Icon\r",
        ]
    ),
    st.text(max_size=6),
)
NAMES = st.builds(
    lambda pieces, end: ("/".join(pieces) + end).encode("utf-8", "surrogatepass")[:60_000],
    st.lists(PIECES, max_size=4),
    st.sampled_from([".py", ".py", ".ipynb", ".zip", "/", "", ".PY", ".py\0"]),
) | st.binary(max_size=20)
ODD = st.none() | st.integers(0, 2**32 - 1)
MEMBERS = st.builds(
    Member,
    name=NAMES,
    data=st.binary(max_size=60) | st.just(TEXT.encode()) | st.just(notebook("x").encode()),
    method=st.sampled_from([0, 8, 8, 8, 12, 99]),
    mode=st.sampled_from([0, 0, 0o100644, 0o100644, 0o120777, 0o040755, 0o010644, 0o177777]),
    flags=st.sampled_from([0, 0, 0, 0x800, 8, 1, 0xFFFF]),
    crc=st.none() | st.none() | ODD,
    size=st.none() | st.none() | ODD,
    body=st.none() | st.none() | st.binary(max_size=60),
    local_name=st.none() | st.none() | NAMES,
    extra=st.just(b"") | st.binary(max_size=40),
    offset=st.none() | st.none() | ODD | st.integers(0, 200),
)


@steady
@given(
    members=st.lists(MEMBERS, max_size=6),
    before=st.binary(max_size=50),
    after=st.binary(max_size=50),
    lie=st.sampled_from([0, 0, 0, 1, 10**6]),
)
def test_any_archive_is_read_or_told(
    place: Path, members: list[Member], before: bytes, after: bytes, lie: int
) -> None:
    honest = Member("honest/honest.py", TEXT.encode(), archives.STORED)
    is_in_order(place, packed(honest, *members, before=before, after=after, lie=lie))


@steady
@given(
    files=st.dictionaries(
        st.text("abü ._-", min_size=1, max_size=9).map(lambda stem: f"x{stem}.py"),
        st.binary(max_size=300).map(lambda data: data.replace(b"\0", b" ")),  # else no text
        max_size=5,
    ),
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
)
def test_what_the_standard_library_writes_is_read_as_it_reads_it(
    place: Path, files: dict[str, bytes], method: int
) -> None:
    content = zipped(files, method)
    found = texts(is_in_order(place, content))
    assert found.keys() == {unicodedata.normalize("NFC", name) for name in files}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            (place / "alone.py").write_bytes(archive.read(name))
            (alone,) = read_submission("alone", place / "alone.py").sources
            assert found[unicodedata.normalize("NFC", name)] == alone.cells
            (place / "alone.py").unlink()


@steady
@given(data=st.data())
def test_a_zip_with_flipped_bytes_is_read_or_told(place: Path, data: st.DataObject) -> None:
    whole = zipped({"basics.py": TEXT, "more/layers.ipynb": notebook("x = 1"), "a.py": "x = 1\n"})
    content = bytearray(whole)
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 30))
    found = is_in_order(place, bytes(content[: len(content) - cut]))
    # A checksum stands for the text: it is the true one, or it is not read.
    assert {cell for source in found.sources for cell in source.cells} <= {TEXT, "x = 1\n", "x = 1"}


@steady
@given(shift=st.integers(0, 100), keep=st.integers(0, 10**6))
def test_a_zip_cut_at_any_place_is_told(place: Path, shift: int, keep: int) -> None:
    whole = zipped({"basics.py": TEXT, "layers.py": "x = 1\n"})
    cut = whole[: keep % len(whole)]
    assert is_in_order(place, cut).status == "unreadable"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts files as Linux lists them")
def test_reading_an_archive_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def still_open() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    monkeypatch.setattr(limits, "MAX_FILES", 1)
    before = still_open()
    kept = [handed_in(tmp_path, zipped({"a.py": TEXT, "b.py": TEXT})) for _ in range(9)]
    kept += [handed_in(tmp_path, b"no zip") for _ in range(9)]
    assert still_open() == before
