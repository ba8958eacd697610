"""When files in folders were saved.

Events say when to look, and so does a clock: where no events arrive (network folders, some virtual
machines), a save is noticed a second later, or sooner where polling was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

STEP, TOGETHER = 20, 50  # milliseconds: a save is over when nothing came for a step
EVERY = 1000  # milliseconds between looks without an event
POLL = 0.1  # seconds between looks where polling was asked for

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
    """Each state of the files of these kinds that differs from the one before, until `stop`.

    Folders of a `skipped` name are not looked into, nor hidden ones.
    """
    for _ in _moments(folders, kinds, stop, poll):
        now = snapshot(folders, kinds, skipped)
        if now != seen and not stop.is_set():
            seen = now
            yield now


def snapshot(folders: Sequence[Path], kinds: tuple[str, ...], skipped: Collection[str]) -> Snapshot:
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
                        if entry.name not in skipped:
                            waiting.append(entry.path)
                    elif entry.name.lower().endswith(kinds):
                        status = entry.stat()
                        found[entry.path] = (status.st_mtime_ns, status.st_size, status.st_ino)
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
