"""Files: written whole or not at all, digests of what is in them, and when they were saved."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from grader.records.faults import CallError, unwritten

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can tell


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; who reads meanwhile, or after a crash, sees the old one or the new one."""
    remove_left(path)
    draft = draft_of(path)
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or the disk may keep the name before it has the bytes
        draft.replace(path)
        _keep_names(path.parent)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _keep_names(folder: Path) -> None:
    """Have the disk keep which files a folder holds, where a system can be asked for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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


def zipped(files: Mapping[str, Path | bytes], programs: Collection[str] = ()) -> bytes:
    """A zip of files, or of their bytes, under these names; `programs` can be run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            data = path if isinstance(path, bytes) else path.read_bytes()
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


# What was written, as `sha256sum -c` reads it. By it a later release knows its own files again.
SUMS = Path("exercises", "recorded", "SHA256SUMS")  # at the top, where there are no exercises


@contextmanager
def drafted(to: Path, *, private: bool = False) -> Iterator[Path]:
    """A hidden folder beside `to` to write into; its files go to `to` when all are there.

    A `private` one is closed to other users, and so is `to`.
    """
    to = to.resolve()
    remove_left(to)
    draft = draft_of(to)
    try:
        draft.mkdir(mode=0o700 if private else 0o777, parents=True)
        yield draft
        if private and to.exists():
            to.chmod(0o700)
        _settle(draft, to)
    except OSError as error:
        raise unwritten(to, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def files_in(folder: Path) -> list[Path]:
    """All files below a folder, sorted, relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def require_empty(to: Path) -> None:
    """Raise `CallError` unless `to` is a new or an empty folder."""
    if to == Path("-"):
        raise CallError("a folder cannot go to standard output: name one")
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        raise CallError(f"{to} is there already, and not an empty folder: name another one")


def require_free(to: Path, replace: bool) -> None:
    """Raise `CallError` unless `to` is new, empty, or an earlier bundle.

    With `replace`, changed files of an earlier bundle may be lost. Files that are not of the bundle
    (someone's progress, notes) stay in any case.
    """
    if not (to / _list_in(to)).is_file():
        require_empty(to)
        return
    changed = [path for path, digest in sums(to).items() if is_other(to / path, digest)]
    if changed and not replace:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise CallError(
            f"{to / changed[0]}{more} changed since the release: --replace would lose that"
        )


def remove_stale(to: Path, kept: list[Path]) -> None:
    """Remove what an earlier bundle in `to` had and this one has not."""
    for path in sums(to).keys() - set(kept):
        (to / path).unlink(missing_ok=True)


def write_sums(folder: Path) -> None:
    """Write down what is in a bundle."""
    listed = folder / _list_in(folder)
    listed.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{_digest(folder / path)}  {path.as_posix()}\n" for path in files_in(folder))
    listed.write_bytes("".join(lines).encode())


def _list_in(folder: Path) -> Path:
    return SUMS if (folder / SUMS.parts[0]).is_dir() else Path(SUMS.name)


def _settle(draft: Path, to: Path) -> None:
    written = files_in(draft)
    for path in written:
        with (draft / path).open("rb+") as file:
            os.fsync(file.fileno())
    for folder in {(draft / path).parent for path in written}:
        _keep_names(folder)
    if not to.exists():
        draft.rename(to)
        _keep_names(to.parent)
        return
    remove_stale(to, written)
    # Last comes the list: a run that was cut off is told from a whole one by the files it left.
    for path in sorted(written, key=lambda path: (path == _list_in(draft), path)):
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (draft / path).replace(to / path)
    for folder in {(to / path).parent for path in written}:
        _keep_names(folder)


def sums(folder: Path) -> Mapping[Path, str]:
    """The SHA-256 sums of a bundle's files as they were written; none where it is no bundle."""
    listed = folder / _list_in(folder)
    if not listed.is_file():
        return {}
    lines = listed.read_text("utf-8", errors="replace").splitlines()
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    # Only names below the folder: the list may come from elsewhere.
    return {
        Path(name): digest
        for digest, name in pairs
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def is_other(path: Path, digest: str) -> bool:
    """Whether a file is not what was written under this sum."""
    return path.is_file() and _digest(path) != digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- when files were saved -----------------------------------------------------------------------
#
# Events say when to look, and so does a clock: where no events arrive (network folders, some
# virtual machines), a save is noticed a second later, or sooner where polling was asked for.


# Folders in which nobody writes answers: parts of the course, and other people's.
SKIPPED = frozenset(
    {
        "afterwards", "checks", "experiments", "recorded",
        "__pycache__", "__MACOSX", "node_modules", "site-packages", "venv",
    }
)  # fmt: skip
STEP, TOGETHER = 20, 50  # milliseconds: a save is over when nothing came for a step
EVERY = 1000  # milliseconds between looks without an event
POLL = 0.1  # seconds between looks where polling was asked for

Snapshot = Mapping[str, tuple[int, int, int]]


def saves(
    folders: Sequence[Path],
    kinds: tuple[str, ...],
    seen: Snapshot,
    stop: Event,
    *,
    poll: bool = False,
) -> Iterator[Snapshot]:
    """Each state of the files of these kinds that differs from the one before, until `stop`."""
    for _ in _moments(folders, kinds, stop, poll):
        now = snapshot(folders, kinds)
        if now != seen and not stop.is_set():
            seen = now
            yield now


def snapshot(folders: Sequence[Path], kinds: tuple[str, ...]) -> Snapshot:
    """What tells whether a file was saved: time, size and inode of each, by path."""
    found: dict[str, tuple[int, int, int]] = {}
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in SKIPPED:
                            waiting.append(entry.path)
                    elif entry.name.lower().endswith(kinds):
                        known = entry.stat()
                        found[entry.path] = (known.st_mtime_ns, known.st_size, known.st_ino)
        except OSError:  # it is being replaced, or is not ours to read: the next look will tell
            continue
    return found


def _moments(
    folders: Sequence[Path], kinds: tuple[str, ...], stop: Event, poll: bool
) -> Iterator[None]:
    """When to look."""
    if not poll:
        from watchfiles import watch  # slow to load, for commands that read files but once

        try:
            for _ in watch(
                *filter(Path.is_dir, folders),  # the clock finds what is made later
                watch_filter=lambda _, path: path.lower().endswith(kinds),
                step=STEP,
                debounce=TOGETHER,
                stop_event=stop,
                rust_timeout=EVERY,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield
        except (OSError, RuntimeError):  # no events are to be had: there may be a limit
            pass
    while not stop.wait(POLL):
        yield
