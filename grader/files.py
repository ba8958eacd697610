"""Files that are written whole or not at all, and zips that are the same bytes every time."""

from __future__ import annotations

import glob
import io
import os
import shutil
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can tell


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; who reads meanwhile, or after a crash, sees the old one or the new one."""
    remove_left(path)
    draft = draft_of(path)
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def draft_of(path: Path) -> Path:
    """Where this process writes what will be `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def remove_left(path: Path) -> None:
    """Remove drafts of `path` that killed processes left."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        number = left.name.rpartition(".")[2]
        if number.isdecimal() and not _is_another(int(number)):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _is_another(pid: int) -> bool:
    """Whether another process of this number runs."""
    if pid == os.getpid():
        return False
    if os.name != "posix":  # elsewhere, to ask is to send Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def zipped(files: Mapping[str, Path], programs: Collection[str] = ()) -> bytes:
    """A zip of files under these names; `programs` are the names of those that can be run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
