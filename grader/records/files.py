"""Writes each file completely or not at all, even if the machine stops during the write."""

from __future__ import annotations

import errno
import glob
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.records.faults import CallError, unwritten

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; a reader sees either the old or the new content, even after a crash.

    Raises `OSError` for a device or a pipe, which a file must not replace.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    remove_left(path)
    draft = draft_of(path)
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # otherwise the new name may reach the disk before the bytes
        draft.replace(path)
        _sync_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def write_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _sync_folder(folder: Path) -> None:
    """Write a folder's list of files to the disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def draft_of(path: Path) -> Path:
    """The hidden path at which this process writes a file or folder before moving it to `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def remove_left(path: Path) -> None:
    """Remove drafts of `path` whose processes were killed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        number = left.name.rpartition(".")[2]
        if number.isdecimal() and not _is_running(int(number)):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Whether another process with this pid may be running; always true on Windows."""
    if pid == os.getpid():
        return False
    if os.name != "posix":  # on Windows, os.kill(pid, 0) would send Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def zipped(files: Mapping[str, Path | bytes], programs: Collection[str] = ()) -> bytes:
    """Make a zip of files, each given as a path or as bytes; those in `programs` are executable."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            data = path if isinstance(path, bytes) else path.read_bytes()
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@contextmanager
def drafted(
    to: Path,
    *,
    private: bool = False,
    earlier: Callable[[Path], Collection[Path]] = lambda _: (),
    last: Callable[[Path], Path | None] = lambda _: None,
) -> Iterator[Path]:
    """Yield a draft, a new hidden folder next to `to`; at the end, move its files to `to`.

    With `private`, other users cannot read the draft or `to`. The files that `earlier(to)` lists
    are removed if the draft lacks them; all other files in `to` stay. The file `last(draft)` is
    moved after all other files.
    """
    to = to.resolve()
    remove_left(to)
    draft = draft_of(to)
    try:
        draft.mkdir(mode=0o700 if private else 0o777, parents=True)
        yield draft
        if private and to.exists():
            to.chmod(0o700)
        _move_files(draft, to, earlier, last)
    except OSError as error:
        raise unwritten(to, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move_files(
    draft: Path,
    to: Path,
    earlier: Callable[[Path], Collection[Path]],
    last: Callable[[Path], Path | None],
) -> None:
    written = files_in(draft)
    for path in written:
        with (draft / path).open("rb+") as file:
            os.fsync(file.fileno())
    for folder in {(draft / path).parent for path in written}:
        _sync_folder(folder)
    if not to.exists():
        draft.rename(to)
        _sync_folder(to.parent)
        return
    for path in {*earlier(to)} - {*written}:
        (to / path).unlink(missing_ok=True)
    end = last(draft)
    for path in sorted(written, key=lambda path: (path == end, path)):
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (draft / path).replace(to / path)
    for folder in {(to / path).parent for path in written}:
        _sync_folder(folder)


def files_in(folder: Path) -> list[Path]:
    """The paths of all files below a folder, sorted and relative to the folder."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def require_empty(to: Path) -> None:
    """Raise `CallError` unless `to` is new or an empty folder."""
    if to == Path("-"):
        raise CallError("a folder cannot be written to standard output: name a folder")
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        raise CallError(f"{to} already exists and is not an empty folder: name another")
