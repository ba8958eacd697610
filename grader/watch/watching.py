"""The thread that notices when a file of answers is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from grader.records.saves import Snapshot, saves, snapshot

SOURCES = (".py", ".ipynb")


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
        self._seen = snapshot(self._folder, SOURCES)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        for _ in saves(self._folder, SOURCES, self._seen, self._stop, poll=self._poll):
            self._changed()
