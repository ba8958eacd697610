"""Files are written whole or not at all, and stay so after a crash of the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from grader.records.files import drafted, write_whole

Event = tuple[str, str]  # what was done, and to which path


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What the disk is asked for, in that order."""
    if sys.platform != "linux":
        pytest.skip("the name of an open file is read from /proc")
    done: list[Event] = []
    fsync, replace, rename = os.fsync, Path.replace, Path.rename

    def syncing(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        size = path.stat().st_size if path.is_file() else ""
        done.append((f"kept {size}".strip(), str(path)))
        fsync(descriptor)

    def replacing(path: Path, target: Path) -> Path:
        done.append(("renamed to", str(target)))
        return replace(path, target)

    def renaming(path: Path, target: Path) -> Path:
        done.append(("renamed to", str(target)))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", replacing)
    monkeypatch.setattr(Path, "rename", renaming)
    return done


def test_the_disk_has_the_bytes_before_the_name_and_then_the_name(
    tmp_path: Path, events: list[Event]
) -> None:
    path = tmp_path / "gradebook.csv"
    write_whole(path, b"some grades")
    (kept, draft), *then = events
    assert (kept, Path(draft).parent) == ("kept 11", tmp_path)
    assert draft != str(path)
    assert then == [("renamed to", str(path)), ("kept", str(tmp_path))]
    assert path.read_bytes() == b"some grades"


@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
def test_the_disk_has_all_files_of_a_folder_before_it_has_its_name(
    tmp_path: Path, events: list[Event], again: bool
) -> None:
    to = tmp_path / "bundle"
    if again:
        to.mkdir()
    with drafted(to) as draft:
        (draft / "inside").mkdir()
        (draft / "one").write_bytes(b"1")
        (draft / "inside" / "two").write_bytes(b"22")
    done = [what for what, _ in events]
    first, last = done.index("renamed to"), len(done) - 1 - done[::-1].index("renamed to")
    assert {"kept 1", "kept 2"} <= {*done[:first]}
    assert done[last + 1 :] == ["kept"] * (2 if again else 1)
    assert (to / "inside" / "two").read_bytes() == b"22"


def test_a_file_that_cannot_be_kept_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.txt"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["progress.txt"]
    assert path.read_bytes() == b"old"
