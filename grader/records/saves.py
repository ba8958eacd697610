"""Watch folders for saved files.

The folders are scanned after each event of the file system, and also once a second. Some network
folders and virtual machines send no events: there, a save is noticed within a second, or sooner
with polling.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

# Events count as one save until STEP milliseconds pass without an event, or TOGETHER milliseconds
# have passed since the first event.
STEP, TOGETHER = 20, 50
EVERY = 1000  # milliseconds between scans without an event
POLL = 0.1  # seconds between scans with polling

Snapshot = Mapping[str, tuple[int, int, int]]


def saves(
    folders: Sequence[Path],
    kinds: tuple[str, ...],
    skipped: Collection[str],
    seen: Snapshot,
    stop: Event,
    *,
    poll: bool = False,
) -> Iterator[Snapshot]:
    """After each change, yield a snapshot of the files whose suffix is in `kinds`.

    `seen` is the snapshot before the first change; `stop` ends the watch. Hidden files and folders,
    and folders whose name is in `skipped`, are ignored.
    """
    for _ in _moments(folders, kinds, stop, poll):
        now = snapshot(folders, kinds, skipped)
        if now != seen and not stop.is_set():
            seen = now
            yield now


def snapshot(folders: Sequence[Path], kinds: tuple[str, ...], skipped: Collection[str]) -> Snapshot:
    """Time, size and inode of each file, by path: a save changes at least one of the three."""
    found: dict[str, tuple[int, int, int]] = {}
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in skipped:
                            waiting.append(entry.path)
                    elif entry.name.lower().endswith(kinds):
                        status = entry.stat()
                        found[entry.path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:  # a folder is being replaced, or is unreadable: the next scan tries again
            continue
    return found


def _moments(
    folders: Sequence[Path], kinds: tuple[str, ...], stop: Event, poll: bool
) -> Iterator[None]:
    """Yield whenever it is time for a scan."""
    if not poll:
        from watchfiles import watch  # slow to load for commands that do not watch

        try:
            for _ in watch(
                *filter(Path.is_dir, folders),  # the regular scans find folders that are made later
                watch_filter=lambda _, path: path.lower().endswith(kinds),
                step=STEP,
                debounce=TOGETHER,
                stop_event=stop,
                rust_timeout=EVERY,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield
        except (OSError, RuntimeError):  # no events, perhaps because of a system limit: poll
            pass
    while not stop.wait(POLL):
        yield
