"""The thread that notices when a file of answers is saved.

Events say when to look, and so does a clock: where no events arrive (network folders, some virtual
machines), a save is noticed a second later, or sooner where polling was asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from watchfiles import Change, watch

SOURCES = (".py", ".ipynb")
# The course's own, or other people's: nobody writes answers there.
SKIPPED = frozenset(
    {"__pycache__", "checks", "recorded", "node_modules", "site-packages", "venv"}
)  # fmt: skip
STEP, TOGETHER = 20, 50  # milliseconds: a save is over when nothing came for a step
EVERY = 1000  # milliseconds between looks without an event
POLL = 0.1  # seconds between looks where polling was asked for

Snapshot = Mapping[str, tuple[int, int, int]]


class Watching:
    """Calls `changed`, from within its thread, after files under a folder were saved."""

    def __init__(self, folder: Path, changed: Callable[[], None], *, poll: bool = False) -> None:
        self._folder = folder
        self._changed = changed
        self._poll = poll
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watching", daemon=True)
        self._seen: Snapshot = {}

    def start(self) -> None:
        """Begin to watch; what is saved from now on is noticed."""
        self._seen = snapshot(self._folder)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        for _ in self._moments():
            now = snapshot(self._folder)
            if now != self._seen and not self._stop.is_set():
                self._seen = now
                self._changed()

    def _moments(self) -> Iterator[None]:
        """When to look."""
        if not self._poll:
            try:
                for _ in watch(
                    self._folder, watch_filter=_is_source, step=STEP, debounce=TOGETHER,
                    stop_event=self._stop, rust_timeout=EVERY, yield_on_timeout=True,
                    raise_interrupt=False, ignore_permission_denied=True,
                ):  # fmt: skip
                    yield
            except (OSError, RuntimeError):  # no events are to be had: there may be a limit
                pass
        while not self._stop.wait(POLL):
            yield


def snapshot(folder: Path) -> Snapshot:
    """What tells whether a file was saved: time, size and inode of each source file, by path."""
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
                    elif _is_source(None, entry.path):
                        known = entry.stat()
                        found[entry.path] = (known.st_mtime_ns, known.st_size, known.st_ino)
        except OSError:  # it is being replaced, or is not ours to read: the next look will tell
            continue
    return found


def _is_source(_: Change | None, path: str) -> bool:
    return path.lower().endswith(SOURCES)
