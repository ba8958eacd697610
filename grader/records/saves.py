"""When files under a folder were saved.

Events say when to look, and so does a clock: where no events arrive (network folders, some virtual
machines), a save is noticed a second later, or sooner where polling was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event

# The course's own, or other people's: nobody writes answers there.
SKIPPED = frozenset(
    {"__pycache__", "checks", "recorded", "node_modules", "site-packages", "venv"}
)  # fmt: skip
STEP, TOGETHER = 20, 50  # milliseconds: a save is over when nothing came for a step
EVERY = 1000  # milliseconds between looks without an event
POLL = 0.1  # seconds between looks where polling was asked for

Snapshot = Mapping[str, tuple[int, int, int]]


def saves(
    folder: Path, kinds: tuple[str, ...], seen: Snapshot, stop: Event, *, poll: bool = False
) -> Iterator[Snapshot]:
    """Each state of the files of these kinds that differs from the one before, until `stop`."""
    for _ in _moments(folder, kinds, stop, poll):
        now = snapshot(folder, kinds)
        if now != seen and not stop.is_set():
            seen = now
            yield now


def snapshot(folder: Path, kinds: tuple[str, ...]) -> Snapshot:
    """What tells whether a file was saved: time, size and inode of each, by path."""
    found: dict[str, tuple[int, int, int]] = {}
    waiting = [os.fspath(folder)]
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


def _moments(folder: Path, kinds: tuple[str, ...], stop: Event, poll: bool) -> Iterator[None]:
    """When to look."""
    if not poll:
        from watchfiles import watch  # slow to load, for commands that read files but once

        try:
            for _ in watch(
                folder,
                watch_filter=lambda _, path: path.lower().endswith(kinds),
                step=STEP,
                debounce=TOGETHER,
                stop_event=stop,
                rust_timeout=EVERY,
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                yield
        except (OSError, RuntimeError):  # no events are to be had: there may be a limit
            pass
    while not stop.wait(POLL):
        yield
