"""Output that is closed, full or not read, and read-only folders: one line and a code."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from tests.conftest import Grader
from tests.support.gradebooks import SEED, folder, write_class
from tests.support.places import TINY

CENTER = "def center(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """The gradebook of a class."""
    write_class(tmp_path / "grades")
    return tmp_path / "grades"


@pytest.fixture
def place(book: Path) -> Callable[[str], Path | str]:
    """The paths in a command's words; NEW is a folder that is not there, COURSE is a copy."""
    course = book.parent / "tiny"
    shutil.copytree(TINY, course, dirs_exist_ok=True)
    paths = {
        "GRADES": book,
        "COURSE": course,
        "CLASS": folder(book.parent / "class", ada=CENTER),
        "NEW": book.parent / "new",
    }

    def of(word: str) -> Path | str:
        return paths.get(word, word)

    return of


PRINTING = [
    "list",
    "hint center",
    "grade CLASS --dry-run",
    "grade CLASS --only center --out NEW --no-pages",
    "grade CLASS --only center --out NEW --no-pages --json-lines",
    "explain GRADES bob",
    "adjust GRADES ada weigh +1 --reason bonus",
    "forget GRADES ada --yes",
    "diff GRADES GRADES",
    "export GRADES --to csv --out -",
    "doctor --json",
]


@contextmanager
def output(kind: str) -> Iterator[int]:
    """A descriptor to which nothing can be written."""
    if kind == "unread":
        reader, descriptor = os.pipe()
        os.close(reader)
    else:
        full = kind == "full"
        descriptor = os.open("/dev/full" if full else os.devnull, os.O_WRONLY if full else 0)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def stream(descriptor: int) -> TextIO:
    """A stream like the one that Python opens at its start."""
    return os.fdopen(descriptor, "w", encoding="utf-8", closefd=False)


ENDINGS = {
    "unread": (141, ""),
    "full": (
        3,
        "grader: standard output: No space left on device; make room, and run the same command "
        "again\n",
    ),
    "closed": (
        2,
        "grader: standard output is closed: redirect it to a file, or to /dev/null\n",
    ),
}


@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("words", PRINTING)
def test_output_that_is_lost_ends_a_command_with_one_line_or_none(
    grader: Grader,
    place: Callable[[str], Path | str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    kind: str,
) -> None:
    command = [*map(place, words.split()), "--course", place("COURSE")]
    with output(kind) as descriptor, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream(descriptor))
        ran = grader(*command)
    assert (ran.code, ran.err) == ENDINGS[kind]


def test_where_messages_are_not_read_the_command_ends_too(
    cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    with output("unread") as descriptor, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream(descriptor))
        assert cold_grader("explain", "nowhere", "ada", "center", "--course", TINY).code == 141


def test_messages_on_a_full_disk_do_not_change_what_a_command_did(
    cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    with output("full") as descriptor, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream(descriptor))
        assert cold_grader("explain", "nowhere", "ada", "center", "--course", TINY).code == 2


@pytest.mark.parametrize(
    ("closing", "code", "told"),
    [
        ("list >&-", 2, "grader: standard output is closed"),
        ("list 2>&-", 0, ""),
        ("list >/dev/full", 3, "grader: standard output: No space left on device"),
        ("grade CLASS --out NEW --no-pages --only center --quiet >&-", 0, ""),
        ("adjust GRADES --from - <&-", 2, "grader: standard input is empty"),
    ],
)
def test_a_shell_may_close_each_stream(
    place: Callable[[str], Path | str], closing: str, code: int, told: str
) -> None:
    words = " ".join(str(place(word)) for word in closing.split())
    program = Path(sys.executable).with_name("grader")
    ran = subprocess.run(
        ["sh", "-c", f"{program} {words}"],
        capture_output=True,
        text=True,
        env={**os.environ, "GRADER_COURSE": str(TINY)},
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (code, 1 if told else 0)
    assert ran.stderr.startswith(told)


# --- folders that cannot be written --------------------------------------------------------------


@contextmanager
def as_anybody() -> Iterator[None]:
    """Take from root the right to write where permissions forbid it."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    version, thread = 0x20080522, 0
    header = (ctypes.c_uint32 * 2)(version, thread)
    before, without = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    assert libc.capget(header, without) == 0
    without[0] &= ~(1 << 1)  # CAP_DAC_OVERRIDE, in the effective set alone
    assert libc.capset(header, without) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in a folder can be written."""
    paths = [*folder.rglob("*"), folder]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(modes[path] & 0o555)
    try:
        with as_anybody():
            yield
    finally:
        for path in reversed(paths):
            path.chmod(modes[path])


WRITING = [
    "grade CLASS --only center --no-pages --out GRADES/new",
    "grade CLASS --only center --no-pages --out GRADES --replace",
    "grade --again --out GRADES",
    "adjust GRADES ada weigh +1 --reason bonus",
    "forget GRADES ada --yes",
    "report GRADES",
    "report GRADES --anonymous",
    "export GRADES --to csv",
    "export GRADES --to gradescope",
    "export GRADES --to csv --anonymous --out -",
    "release classroom50 --to GRADES/new",
    "new course GRADES/new",
]


@pytest.mark.parametrize("words", WRITING)
def test_a_folder_that_cannot_be_written_is_named_in_one_line(
    grader: Grader, book: Path, place: Callable[[str], Path | str], words: str
) -> None:
    command = [str(place(word)).replace("GRADES", str(book)) for word in words.split()]
    course = () if "new" in words.split() else ("--course", str(TINY))
    seed = ("--seed", SEED) if "--again" in words else ()
    before = {path: path.read_bytes() for path in book.rglob("*") if path.is_file()}
    with read_only(book):
        ran = grader(*command, *course, *seed)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert str(book) in ran.err
    assert "the grader itself failed" not in ran.err
    assert {path: path.read_bytes() for path in book.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        "diff GRADES GRADES",
        "export GRADES --to csv --out -",
    ],
)
def test_a_gradebook_that_cannot_be_written_can_be_read(
    grader: Grader, book: Path, place: Callable[[str], Path | str], words: str
) -> None:
    with read_only(book):
        ran = grader(*map(place, words.split()), "--course", TINY)
    assert (ran.code, bool(ran.out)) == (0, True)
    assert "cannot be written" not in ran.err
