"""The time of the newest commit in a clone of a student's repository.

A student may have made every file in a repository, its configuration included, which can name
programs that git runs. Therefore git never reads it: git works in an empty repository of ours, and
borrows only the objects. Links and pipes among the objects are not followed, and git's memory is
limited, since a small pack may unpack to gigabytes.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from grader.intake.files import Unreadable, open_plain
from grader.records.times import sensible

_MOST = 1 << 20  # bytes of a list of references, and of a commit
_SECONDS = 20
_MOST_FILES = 200_000  # of a clone's objects
_MEMORY = "32m"  # of one block that git asks for; commits are small
_REF = re.compile(r"refs/heads/(?!.*\.\.)[\w./+@-]{1,200}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_COMMITTER = re.compile(rb"^committer .*> (\d{1,12}) [+-]\d{4}$", re.M)


def commit_time(folder: Path) -> datetime | None:
    """When the commit that a clone shows was made, in UTC; None if that cannot be read.

    The time is that of the student's computer, and a student can set it.
    """
    own = folder / ".git"
    objects = own / "objects"
    if not _is_folder(own) or not _is_folder(objects):
        return None
    # This file would make git read objects in any folder that the student names.
    if os.path.lexists(objects / "info" / "alternates"):
        return None
    if not _is_plain(objects):
        return None
    commit = _head(own)
    return _time_of(commit, objects) if commit is not None else None


def _head(own: Path) -> str | None:
    """The name of the commit that is checked out."""
    text = _line(own / "HEAD")
    if not text.startswith("ref: "):
        return text if _COMMIT.fullmatch(text) else None
    name = text.removeprefix("ref: ")
    if _REF.fullmatch(name) is None:
        return None
    place = own
    for part in name.split("/")[:-1]:  # no folder on the way may lead elsewhere
        place /= part
        if not _is_folder(place):
            break
    else:
        loose = _line(own / name)
        if _COMMIT.fullmatch(loose):
            return loose
    for line in _text(own / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def _time_of(commit: str, objects: Path) -> datetime | None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOC_LIMIT": _MEMORY,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects.resolve()),
    }
    with tempfile.TemporaryDirectory() as ours:
        git = ("git", f"--git-dir={ours}")
        try:
            run = subprocess.run  # a file of ours takes the output: its size is limited below
            run([*git, "init", "--bare", "--quiet"], env=environment, check=True, timeout=_SECONDS,
                capture_output=True)  # fmt: skip
            size = run([*git, "cat-file", "-s", commit], env=environment, check=True,
                       timeout=_SECONDS, capture_output=True).stdout  # fmt: skip
            if int(size) > _MOST:
                return None
            text = run([*git, "cat-file", "commit", commit], env=environment, check=True,
                       timeout=_SECONDS, capture_output=True).stdout  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError):  # no git, or no such object
            return None
    found = _COMMITTER.search(text.partition(b"\n\n")[0])
    if found is None:
        return None
    try:
        return sensible(datetime.fromtimestamp(int(found[1]), UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _quoted(path: Path) -> str:
    """A path in git's quotes: a bare colon would divide it into two paths."""
    text = str(path).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{text}"'


def _is_plain(folder: Path) -> bool:
    """Whether a folder holds, at any depth, only folders and plain files."""
    waiting, seen = [str(folder)], 0
    try:
        while waiting:
            with os.scandir(waiting.pop()) as inside:
                for entry in inside:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        return False
                    if seen > _MOST_FILES:
                        return False
    except OSError:
        return False
    return True


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _line(path: Path) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: Path) -> str:
    """The beginning of a plain file; "" if there is none, or if it is a link."""
    try:
        with open_plain(path) as file:
            return file.read(_MOST).decode("ascii", errors="replace")
    except (OSError, Unreadable):
        return ""
